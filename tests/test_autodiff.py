"""Flags, backward, nesting and lifting: what section 5 of the blueprint promises on tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors


def same(x: ad.Tensor[Any] | None, y: Any) -> None:
    assert isinstance(x, ad.Tensor)
    expected = np.asarray(y)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(x.numpy(), expected)


def leaf(*values: float) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


# --- flags ---


def test_flags(device: Any) -> None:
    x = ad.tensor([1.0, 2.0])
    assert not x.is_require_grad()
    w = x.require_grad()
    assert w is not x
    assert w.is_require_grad()
    assert not x.is_require_grad()
    assert w.require_grad() is w
    y = w * 2
    assert not y.is_require_grad()
    assert y.is_tracked()
    assert w.is_tracked()
    assert not x.is_tracked()
    assert w.grad_fn is None
    assert x.grad_fn is None
    assert y.grad_fn.name == "multiply"


def test_set_require_grad(device: Any) -> None:
    x = leaf(1, 2)
    assert x.set_require_grad(True) is x
    off = x.set_require_grad(False)
    assert not off.is_require_grad()
    assert x.is_require_grad()
    assert off.set_require_grad(True).is_require_grad()
    result = (x * 2).set_require_grad(False)
    assert not result.is_tracked()
    same(result, [2.0, 4.0])


def test_detach_cuts(device: Any) -> None:
    x = leaf(3)
    y = x * 2
    assert not y.detach().is_tracked()
    same((y.detach() * x).sum().backward()[x], [6.0])
    same(y.detach(), [6.0])


def test_with_value_makes_another_leaf(device: Any) -> None:
    w = leaf(1, 2)
    for value in (
        [3, 4],
        np.array([3.0, 4.0]),
        ad.tensor([3.0, 4.0], dtype=ad.float64, device="numpy"),
        w * 0 + w.inner() + 2,
    ):
        new = w.with_value(value)
        assert new.is_require_grad()
        assert new.device is w.device
        same(new, [3.0, 4.0])
        assert w not in (new * 2).sum().backward()
    same(w, [1.0, 2.0])
    with pytest.raises(errors.ShapeError, match=r"\(2,\).*\(3,\)"):
        w.with_value([1.0, 2.0, 3.0])
    with pytest.raises(errors.DtypeError, match=r"float64.*float32"):
        w.with_value(ad.ones(2, device="numpy"))
    with pytest.raises(errors.DeviceError):
        w.with_value(ad.from_inner(w))


@pytest.mark.parametrize("dtype", [ad.bool, ad.int8, ad.int64, ad.uint8])
def test_integers_and_bools_refuse_to_require_grad(device: Any, dtype: Any) -> None:
    with pytest.raises(errors.DtypeError, match=rf"{dtype} has no derivatives.*astype"):
        ad.ones(2, dtype=dtype).require_grad()


@pytest.mark.parametrize("dtype", [ad.float16, ad.float32, ad.float64, ad.complex64, ad.complex128])
def test_floating_and_complex_leaves(device: Any, dtype: Any) -> None:
    x = ad.ones(2, dtype=dtype).require_grad()
    assert (x * 3).sum().backward()[x].dtype is dtype


def test_results_refuse_to_require_grad(device: Any) -> None:
    with pytest.raises(errors.GraphError, match=r"'sin'.*wrt=\[x\].*detach\(\)"):
        leaf(1).sin().require_grad()


def test_results_of_integer_kind_are_constants(device: Any) -> None:
    x = leaf(1.5, 2.5)
    for y in (x > 2, x.astype(ad.int64), x.argmax(), ad.isnan(x), x.argsort(), ad.topk(x, 1)[1], x.astype(ad.bool)):
        assert not y.is_tracked()
    assert x.floor().is_tracked()  # zero is a derivative too
    same(x.floor().sum().backward()[x], [0.0, 0.0])


# --- backward ---


def test_the_first_example(device: Any) -> None:
    x = ad.tensor([1.0, 2.0, 3.0, 4.0]).require_grad()
    loss = (x * 2).sum()
    assert loss.item() == 20
    same(loss.backward()[x], np.array([2, 2, 2, 2], "f4"))


def test_gradients_live_on_the_inner_backend(device: Any) -> None:
    x = leaf(1, 2)
    g = (x * x).sum().backward()[x]
    assert g.device is device.inner
    assert not g.is_tracked()


def test_without_a_cotangent_the_root_is_filled_with_ones(device: Any) -> None:
    x = leaf(1, 2, 3)
    same((x * x).backward()[x], [2.0, 4.0, 6.0])
    z = ad.tensor([1 + 1j]).require_grad()
    same((z * 2j).backward()[z], np.array([-2j], "c8"))


@pytest.mark.parametrize(
    "cotangent",
    [
        [1, 10, 100], (1.0, 10.0, 100.0), np.array([1, 10, 100]), np.array([1, 10, 100], "f4"),
        lambda d: ad.tensor([1.0, 10.0, 100.0], dtype=ad.float64, device=d.inner), lambda d: ad.tensor([1, 10, 100], device=d.inner),
    ],
)  # fmt: skip
def test_forms_of_a_cotangent(device: Any, cotangent: Any) -> None:
    x = leaf(1, 2, 3)
    given = cotangent(device) if callable(cotangent) else cotangent
    same((x * 2).backward(given)[x], [2.0, 20.0, 200.0])


def test_a_scalar_cotangent(device: Any) -> None:
    x = leaf(1, 2, 3)
    same((x * 2).sum().backward(5)[x], [10.0, 10.0, 10.0])
    same((x * 2).sum().backward(np.float32(0.5))[x], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("cotangent", [1.0, [1.0, 2.0], [[1.0, 2.0, 3.0]], np.ones((3, 1))])
def test_a_cotangent_of_the_wrong_shape_is_refused_and_uses_nothing_up(device: Any, cotangent: Any) -> None:
    x = leaf(1, 2, 3)
    y = x * 2
    with pytest.raises(errors.ShapeError, match=r"root has shape \(3,\), the cotangent"):
        y.backward(cotangent)
    same(y.backward()[x], [2.0, 2.0, 2.0])


def test_a_cotangent_of_the_outer_level_is_refused(device: Any) -> None:
    x = leaf(1, 2)
    y = x * 2
    with pytest.raises(errors.DeviceError, match=r"inner\(\)"):
        y.backward(ad.tensor([1.0, 2.0], dtype=ad.float64))
    same(y.backward()[x], [2.0, 2.0])


def test_a_complex_cotangent_of_a_real_root_is_refused(device: Any) -> None:
    x = leaf(1, 2)
    y = x * 2
    for cotangent in ([1j, 2], np.array([1j, 2]), ad.tensor([1j, 2], device=device.inner)):
        with pytest.raises(errors.DtypeError, match="complex"):
            y.backward(cotangent)
    same(y.backward()[x], [2.0, 2.0])


def test_backward_of_a_constant_says_so(device: Any) -> None:
    x = leaf(1, 2)
    for constant in (ad.ones(2), x.detach() * 2, x > 1):
        with pytest.raises(errors.GraphError, match=r"require_grad\(\).*ad\.why"):
            constant.backward()


def test_backward_of_a_leaf(device: Any) -> None:
    x = leaf(1, 2)
    for _ in range(2):  # a leaf is not freed
        same(x.backward()[x], [1.0, 1.0])
    same(x.backward([3.0, 4.0])[x], [3.0, 4.0])


def test_a_tensor_used_many_times_accumulates(device: Any) -> None:
    x, y = leaf(2), leaf(3)
    loss = (x * y + x * x + x.exp() * y + x).sum()
    grads = loss.backward()
    np.testing.assert_allclose(grads[x].numpy(), [3 + 4 + math.exp(2) * 3 + 1])
    np.testing.assert_allclose(grads[y].numpy(), [2 + math.exp(2)])


def test_accumulation_does_not_write_into_shared_cotangents(device: Any) -> None:
    """`add` hands the same cotangent to both sides: adding into one must not change the other."""
    x, y = leaf(1, 1), leaf(1, 1)
    grads = (((x + y) + x) + x + (y * 1)).backward()
    same(grads[x], [3.0, 3.0])
    same(grads[y], [2.0, 2.0])
    given = np.array([1.0, 2.0])
    for f in (lambda: (x + x) + x, lambda: x[0:2] + x[0:2] + x, lambda: x + x[:] + x.reshape((2, 1)).reshape(2)):
        same(f().backward(given)[x], [3.0, 6.0])
        assert given.tolist() == [1.0, 2.0]
    cotangent = ad.tensor([1.0, 2.0], dtype=ad.float64, device=device.inner)
    first = (x + y + x + x).backward(cotangent)
    same(first[y], [1.0, 2.0])
    same(cotangent, [1.0, 2.0])


def test_gradients_of_intermediate_tensors(device: Any) -> None:
    x = leaf(1, 2, 3)
    h = x * x
    u = h.sin()
    loss = (u * h).sum()
    grads = loss.backward(wrt=[h, x], retain_graph=True)
    assert len(grads) == 2
    v = h.numpy()
    np.testing.assert_allclose(grads[h].numpy(), v * np.cos(v) + np.sin(v))
    np.testing.assert_allclose(grads[x].numpy(), (v * np.cos(v) + np.sin(v)) * 2 * x.numpy())
    only = loss.backward(wrt=[u], retain_graph=True)
    np.testing.assert_allclose(only[u].numpy(), v)
    assert x not in only
    same(loss.backward(wrt=[loss])[loss], 1.0)


def test_gradients_with_respect_to_one_of_several_results(device: Any) -> None:
    x = leaf(3, 1, 2)
    values, places = ad.topk(x, 2)
    grads = (values * values).sum().backward(wrt=[values, x])
    same(grads[values], [6.0, 4.0])
    same(grads[x], [6.0, 0.0, 4.0])
    assert not places.is_tracked()


def test_wrt_leaves_answers_for_nothing_else(device: Any) -> None:
    x, y = leaf(1), leaf(2)
    grads = (x * y).sum().backward(wrt=[x])
    assert list(map(repr, grads)) == [repr(x)]
    assert y not in grads
    assert len((x * y).backward(wrt=[])) == 0
    z = leaf(5)
    assert z not in (x * y).backward(wrt=[x, z])


def test_wrt_refuses_constants_and_other_levels(device: Any) -> None:
    x = leaf(1)
    y = (x * x).sum()
    for wrong in (ad.ones(1), ad.from_inner(x).require_grad(), x.inner()):
        with pytest.raises(errors.GraphError, match="wrt is not tracked"):
            y.backward(wrt=[wrong])
    with pytest.raises(errors.AdjointError, match="wrt"):
        y.backward(wrt=[1.0])
    same(y.backward()[x], [2.0])


def test_grad_grad_remove_and_grad_replace(device: Any) -> None:
    x, other = leaf(1, 2), leaf(3)
    grads = (x * x).sum().backward()
    same(x.grad(grads), [2.0, 4.0])
    assert other.grad(grads) is None
    assert (x * 2).grad(grads) is None
    x.grad_replace(grads, [5.0, 6.0])
    same(x.grad(grads), [5.0, 6.0])
    same(x.grad_remove(grads), [5.0, 6.0])
    assert x.grad(grads) is None
    assert x.grad_remove(grads) is None
    x.grad_replace(grads, x.inner() * 2)
    same(grads[x], [2.0, 4.0])


# --- a backend without autodiff ---


def test_flags_do_nothing_without_autodiff() -> None:
    x = ad.tensor([1.0, 2.0], device="numpy")
    assert x.require_grad() is x
    assert x.set_require_grad(True) is x
    assert x.set_require_grad(False) is x
    assert not x.is_require_grad()
    assert not x.is_tracked()
    assert x.grad_fn is None
    same(x.detach(), x.numpy())
    same(x.with_value([3.0, 4.0]), np.array([3, 4], "f4"))
    assert ad.ones(2, dtype=ad.int64, device="numpy").require_grad().dtype is ad.int64


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, g: x.backward(), lambda x, g: x.grad(g), lambda x, g: x.grad_remove(g), lambda x, g: x.grad_replace(g, x),
        lambda x, g: x.inner(), lambda x, g: ad.why(x, x),
    ],
)  # fmt: skip
def test_gradients_without_autodiff_are_a_clear_error(ask: Any) -> None:
    w = leaf(1)
    grads = w.backward()
    x = ad.tensor([1.0], device="numpy")
    with pytest.raises(errors.NoAutodiffError, match=r"numpy computes without gradients.*ad\.Autodiff.*ad\.from_inner"):
        ask(x, grads)
    assert issubclass(errors.NoAutodiffError, TypeError)


# --- levels ---


def nth_derivative(f: Any, at: float, order: int) -> list[float]:
    """f(at) and its derivatives, with one level per order."""
    leaves = [ad.tensor(at, dtype=ad.float64).require_grad()]
    for _ in range(order - 1):
        leaves.append(ad.from_inner(leaves[-1]).require_grad())
    value = f(leaves[-1])
    found = [value.item()]
    for x in leaves[::-1]:
        value = value.backward()[x]
        found.append(value.item())
    return found


def test_three_levels(device: Any) -> None:
    x = 0.7
    s, c = math.sin(x), math.cos(x)
    np.testing.assert_allclose(nth_derivative(ad.sin, x, 3), [s, c, -s, -c])
    np.testing.assert_allclose(nth_derivative(lambda t: t**4, 2.0, 3), [16, 32, 48, 48])
    e = math.exp(x)
    np.testing.assert_allclose(
        nth_derivative(lambda t: t * t.exp(), x, 3), [x * e, (1 + x) * e, (2 + x) * e, (3 + x) * e]
    )


def test_the_name_of_nested_levels() -> None:
    device = ad.Autodiff(ad.Autodiff(ad.NumPy()))
    assert device.name == "autodiff<autodiff<numpy>>"
    assert device.inner is ad.Autodiff(ad.NumPy())
    assert device.inner.inner is ad.NumPy()
    assert ad.device(device.name) is device


def test_perturbations_are_not_confused() -> None:
    """d/dw of w * d/du(w * u) is 2 w: the inner derivative is w, not a constant."""
    w = ad.tensor(3.0, dtype=ad.float64).require_grad()
    lifted = ad.from_inner(w)
    u = ad.tensor(5.0, dtype=ad.float64, device=lifted.device).require_grad()
    inside = (lifted * u).backward()[u]  # d/du (w u) = w, on the level that knows w
    assert inside.item() == 3.0
    assert (w * inside).backward()[w].item() == 6.0


def test_at_one_level_backward_gives_constants() -> None:
    w, u = leaf(3), leaf(5)
    inside = (w * u).sum().backward()[u]  # of the inner backend: w is a number there
    assert not inside.is_tracked()
    assert ((w * ad.from_inner(inside)).sum().backward()[w]).item() == 3.0


def test_hessian_by_columns() -> None:
    values = np.array([0.5, -1.0, 2.0])
    x = ad.tensor(values).require_grad()
    lifted = ad.from_inner(x).require_grad()
    g = (lifted**3 + lifted * lifted.sum() ** 2).sum().backward()[lifted]
    rows = [g[i].backward(retain_graph=True)[x].numpy() for i in range(3)]
    total = values.sum()
    # sum_i x_i^3 + s^3 with s the sum: H = diag(6 x) + 6 s
    np.testing.assert_allclose(rows, np.diag(6 * values) + 6 * total)


def test_levels_meet_by_lifting() -> None:
    low = leaf(2)
    high = ad.from_inner(low).require_grad()
    for out in (high * low, low * high, high + low * high, ad.maximum(low, high * 2), ad.concat([low, high])):
        assert out.device is high.device
    grads = (high * low * low).sum().backward()
    same(grads[high], [4.0])
    same(grads[high].backward()[low], [4.0])
    constant = ad.ones(1, dtype=ad.float64, device="numpy")
    assert (constant * high).device is high.device


def test_levels_of_different_chains_do_not_meet() -> None:
    x = leaf(1)
    other = ad.ones(1, dtype=ad.float64, device=ad.Autodiff(ad.NumPy(), strong_zero=True))
    with pytest.raises(
        errors.DeviceError, match=r"autodiff<numpy> and autodiff\[strong_zero\]<numpy> do not meet.*inner\(\)"
    ):
        x + other
    for f in (ad.add, ad.matmul, ad.maximum, lambda a, b: ad.concat([a, b]), lambda a, b: ad.where(a > 0, a, b)):
        with pytest.raises(ValueError, match="do not meet"):
            f(x, other)


# --- lifting ---


def test_inner_and_from_inner(device: Any) -> None:
    x = leaf(1, 2)
    below = x.inner()
    assert below.device is device.inner
    same(below, [1.0, 2.0])
    above = ad.from_inner(x)
    assert above.device is ad.Autodiff(device)
    assert not above.is_require_grad()
    assert above.is_tracked()  # on the level below
    assert above.inner().is_require_grad()
    assert ad.from_inner(below, device).device is device
    assert ad.from_inner(below, device=device.name).device is device
    with pytest.raises(errors.DeviceError, match="no decorator over"):
        ad.from_inner(x, device)
    with pytest.raises(errors.DeviceError, match="no decorator over"):
        ad.from_inner(below, "numpy")


def test_asarray_and_to_device_lift_differentiably(device: Any) -> None:
    x = leaf(2, 3)
    high = ad.Autodiff(ad.Autodiff(device))
    for lifted in (ad.asarray(x * x, device=high), (x * x).to_device(high)):
        assert lifted.device is high
        assert lifted.is_tracked()
        out = (lifted * 3).inner().inner()
        same(out.sum().backward()[x], [12.0, 18.0])
    assert x.to_device(device) is x
    assert ad.asarray(x, device=device) is x


def test_to_device_refuses_to_leave_a_graph_silently(device: Any) -> None:
    x = leaf(1, 2)
    for target in ("numpy", "reference", "autodiff[strong_zero]<numpy>", "autodiff<reference>"):
        with pytest.raises(errors.TrackedError, match=r"detach\(\).*inner\(\)"):
            (x * 2).to_device(target)
        moved = (x * 2).detach().to_device(target)
        assert moved.device is ad.device(target)
        same(moved, [2.0, 4.0])


def test_inner_of_a_result_stays_tracked_below() -> None:
    x = leaf(2)
    high = ad.from_inner(x).require_grad()
    out = (high * x * x).inner()
    assert out.device is x.device
    same(out.backward()[x], [2 * 2.0 * 2 + 4.0])


# --- why ---


def test_why_lists_the_path(device: Any) -> None:
    x, y = leaf(1), leaf(2)
    assert ad.why(x, ((x * y).sin() + y).sum()) == "connected: x -> multiply -> sin -> add -> sum"
    assert ad.why(x, x) == "connected: x"
    h = x * y
    assert ad.why(h, h.sum()) == "connected: x -> sum"


def test_why_tells_that_there_is_no_path(device: Any) -> None:
    x, y = leaf(1), leaf(2)
    assert "not among what it was computed from" in ad.why(x, (y * y).sum())
    assert "not tracked" in ad.why(ad.ones(1), (y * y).sum())
    assert "the loss is a constant" in ad.why(x, (x.detach() * 2).sum())
    assert "trace_origins" in ad.why(x, x.detach() * 2)
    assert "gradients flow on one backend" in ad.why(x.inner(), x * 1)
    loss = (x * y).sum()
    loss.backward()
    assert "freed" in ad.why(x, loss)


def test_why_names_the_line_that_cuts(device: Any) -> None:
    with ad.testing.trace_origins():
        x = leaf(1, 2)
        y = x * 2
        z = y.detach() + 1  # the cut
        loss = (z * z).sum()
        text = ad.why(x, loss)
        assert text.startswith("cut at 'detach'")
        assert "test_autodiff.py" in text
        assert "z = y.detach() + 1  # the cut" in text
        rounded = y.astype(ad.int64).astype(ad.float64)
        text = ad.why(x, (rounded * x.detach()).sum())
        assert "cut at" in text
        compared = ad.where(x > 1, 1.0, 0.0)
        assert "'greater'" in ad.why(x, compared.sum())
        assert ad.why(x, (y * y).sum()).startswith("connected")
        w = leaf(5, 5)
        assert "cut at 'detach'" in ad.why(x, (z * w).sum())


# --- errors inside backward ---


class Fails(ad.Autodiff[Any]):
    """An Autodiff level on which the pullback of exp fails."""

    def _lift(self, primitive: Any, run: Any, record: Any) -> Any:
        from adjoint.rules import Elementwise

        def rule(B: Any, g: Any, out: Any) -> Any:
            raise ZeroDivisionError("on purpose")

        return super()._lift(primitive, run, Elementwise(x=rule) if primitive.name == "exp" else record)


def test_errors_inside_backward_name_primitive_and_shapes() -> None:
    x = ad.ones((2, 3), device=Fails(ad.NumPy())).require_grad()
    loss = (x * 2).exp().sum()
    with pytest.raises(errors.BackwardError) as caught:
        loss.backward()
    message = str(caught.value)
    assert "'exp'" in message
    assert "(2, 3)" in message
    assert "ZeroDivisionError: on purpose" in message
    assert "trace_origins" in message
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_errors_inside_backward_name_the_line_of_the_forward_call() -> None:
    level = Fails(ad.NumPy())
    with ad.testing.trace_origins():
        x = ad.ones(3, device=level).require_grad()
        y = (x * 2).exp()  # this very line
        with pytest.raises(
            errors.BackwardError, match=r"made at .*test_autodiff\.py:\d+: y = \(x \* 2\)\.exp\(\)  # this very line"
        ):
            y.sum().backward()


def test_after_an_error_the_graph_counts_as_freed() -> None:
    x = ad.ones(3, device=Fails(ad.NumPy())).require_grad()
    loss = ((x * 2).exp() * x).sum()
    with pytest.raises(errors.BackwardError):
        loss.backward()
    with pytest.raises(errors.FreedGraphError):
        loss.backward()


def test_trace_origins_restores_what_was_before() -> None:
    level = ad.Autodiff(ad.NumPy())
    assert not level.traces_origins()
    with ad.testing.trace_origins():
        assert level.traces_origins()
        with ad.testing.trace_origins(False):
            assert not level.traces_origins()
        assert level.traces_origins()
    assert not level.traces_origins()
    with pytest.raises(KeyError), ad.testing.trace_origins():
        raise KeyError
    assert not level.traces_origins()


# --- freed graphs ---


def test_a_second_backward_names_retain_graph(device: Any) -> None:
    x = leaf(1, 2)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(errors.FreedGraphError, match=r"retain_graph=True") as caught:
        loss.backward()
    assert isinstance(caught.value, RuntimeError)
    assert "'sum'" in str(caught.value)


def test_retain_graph(device: Any) -> None:
    x = leaf(1, 2)
    loss = ((x * x).exp() / x).sum()
    first = loss.backward(retain_graph=True)
    second = loss.backward(retain_graph=True)
    third = loss.backward()
    for grads in (second, third):
        same(grads[x], first[x].numpy())
    with pytest.raises(errors.FreedGraphError):
        loss.backward(retain_graph=True)


def test_a_shared_prefix_is_freed_with_the_first_root(device: Any) -> None:
    x = leaf(1, 2)
    h = x * x
    a, b = h.sum(), (h * 2).sum()
    a.backward()
    with pytest.raises(errors.FreedGraphError, match="'multiply'"):
        b.backward()
    with pytest.raises(errors.FreedGraphError):
        (h + 1).sum().backward()
    same((x * 1).sum().backward()[x], [1.0, 1.0])  # leaves are not used up


def test_a_refused_backward_claims_nothing(device: Any) -> None:
    """`b` finds part of its graph used up: the rest of it stays usable."""
    x, y = leaf(1, 2), leaf(3, 4)
    used, rest = x * x, y * y
    used.sum().backward()
    joined = used + rest
    with pytest.raises(errors.FreedGraphError):
        joined.sum().backward()
    same(rest.sum().backward()[y], [6.0, 8.0])


def test_a_graph_of_views_of_a_used_up_tensor_can_be_read(device: Any) -> None:
    x = leaf(1, 2)
    h = x * x
    h.sum().backward()
    same(h, [1.0, 4.0])
    same((h.detach() * x).sum().backward()[x], [1.0, 4.0])
