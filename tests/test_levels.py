"""Nested levels, lifting, why a path is cut, errors inside backward, and graphs that were used up."""

from __future__ import annotations

import gc
import math
import sys
from typing import Any

import numpy as np
import pytest
from conftest import same

import adjoint as ad
from adjoint import errors


def leaf(*values: float) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


# --- what a transform costs beside the work ---


def test_a_small_gradient_is_few_calls() -> None:
    """Calls of Python functions, the four primitives' own and NumPy's among them: a simulation makes many of these."""
    ad.grad(lambda x: (x * x).sum())(np.ones(3))
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    gc.collect()  # what other tests have left is not counted
    gc.disable()
    sys.setprofile(count)
    try:
        ad.grad(lambda x: (x * x).sum())(np.ones(3))
    finally:
        sys.setprofile(before)
        gc.enable()
    assert calls <= 67, calls


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
        errors.DeviceError,
        match=r"leaf .* on autodiff<numpy> and .* on autodiff\[strong_zero\]<numpy> do not meet.*inner\(\)",
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
    assert x.to_device(device) is not x  # a value of its own, in the same graph
    assert x.to_device(device).grad_fn is x.grad_fn
    assert ad.asarray(x, device=device) is x


def test_to_device_refuses_to_leave_a_graph_silently(device: Any) -> None:
    x = leaf(1, 2)
    for target in ("autodiff[strong_zero]<numpy>", "tangent<reference>"):
        with pytest.raises(errors.TrackedError, match=r"detach\(\).*inner\(\)"):
            (x * 2).to_device(target)
        moved = (x * 2).detach().to_device(target)
        assert moved.device is ad.device(target)
        same(moved, [2.0, 4.0])
    for target in ("numpy", "reference"):  # where a device is named for what is made, no levels come along
        with pytest.raises(errors.TrackedError, match=r"detach\(\).*inner\(\)"):
            ad.asarray(x * 2, device=target)
        assert ad.asarray((x * 2).detach(), device=target).device is ad.device(target)


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
    assert "source_locations" in ad.why(x, x.detach() * 2)
    assert "gradients flow on one backend" in ad.why(x.inner(), x * 1)
    loss = (x * y).sum()
    loss.backward()
    assert "freed" in ad.why(x, loss)


def test_why_names_the_line_that_cuts(device: Any) -> None:
    with ad.testing.source_locations():
        x = leaf(1, 2)
        y = x * 2
        z = y.detach() + 1  # the cut
        loss = (z * z).sum()
        text = ad.why(x, loss)
        assert text.startswith("cut at 'detach'")
        assert "test_levels.py" in text
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
    assert "source_locations" in message
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_errors_inside_backward_name_the_line_of_the_forward_call() -> None:
    level = Fails(ad.NumPy())
    with ad.testing.source_locations():
        x = ad.ones(3, device=level).require_grad()
        y = (x * 2).exp()  # this very line
        with pytest.raises(
            errors.BackwardError, match=r"made at .*test_levels\.py:\d+: y = \(x \* 2\)\.exp\(\)  # this very line"
        ):
            y.sum().backward()


def test_after_an_error_the_graph_counts_as_freed() -> None:
    x = ad.ones(3, device=Fails(ad.NumPy())).require_grad()
    loss = ((x * 2).exp() * x).sum()
    with pytest.raises(errors.BackwardError):
        loss.backward()
    with pytest.raises(errors.FreedGraphError):
        loss.backward()


def test_lines_under_decorators_that_were_used_before() -> None:
    double = ad.vmap(lambda x: ad.sin(x) * 2)
    w = ad.ones(2).require_grad()
    double(w)
    with ad.testing.source_locations():
        traced = double(w).grad_fn
    assert traced is not None
    assert traced.location.file == __file__
    after = double(w).grad_fn
    assert not hasattr(after, "origin")

    def inside(x: Any) -> Any:
        before = ad.sin(x)
        with ad.testing.source_locations():
            traced = ad.sin(before)
        assert traced.grad_fn.location.file == __file__
        return ad.sin(traced) * 2

    ad.grad(inside)(1.0)


def test_source_locations_restores_what_was_before() -> None:
    level = ad.Autodiff(ad.NumPy())
    assert not level.records_locations()
    with ad.testing.source_locations():
        assert level.records_locations()
        with ad.testing.source_locations(False):
            assert not level.records_locations()
        assert level.records_locations()
    assert not level.records_locations()
    with pytest.raises(KeyError), ad.testing.source_locations():
        raise KeyError
    assert not level.records_locations()


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
