"""Flags, cotangents, gradients of one level, and backends without autodiff."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import CASES
from conftest import same
from each import Each

import adjoint as ad
from adjoint import errors
from adjoint.primitives import TABLE


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
        lambda d: ad.tensor([1.0, 10.0, 100.0], dtype=ad.float64, device=d.inner),
        lambda d: ad.tensor([1, 10, 100], device=d.inner),
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


def test_a_tracked_cotangent_of_the_outer_level_is_refused(device: Any) -> None:
    x = leaf(1, 2)
    y = x * 2
    for cotangent in (x, y):
        with pytest.raises(errors.DeviceError, match=r"inner\(\)"):
            y.backward(cotangent)
    same(y.backward(y.detach())[x], [4.0, 8.0])


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
    assert not x.set_require_grad(False).is_require_grad()
    assert not x.is_require_grad()
    assert not x.is_tracked()
    assert x.grad_fn is None
    same(x.detach(), x.numpy())
    same(x.with_value([3.0, 4.0]), np.array([3, 4], "f4"))
    assert ad.ones(2, dtype=ad.int64, device="numpy").require_grad().dtype is ad.int64


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, g: x.backward(), lambda x, g: x.grad(g), lambda x, g: x.grad_remove(g),
        lambda x, g: x.grad_replace(g, x),
        lambda x, g: x.inner(), lambda x, g: ad.why(x, x),
    ],
)  # fmt: skip
def test_gradients_without_autodiff_are_a_clear_error(ask: Any) -> None:
    w = leaf(1)
    grads = w.backward()
    x = ad.tensor([1.0], device="numpy")
    wanted = r"numpy computes without gradients.*device=.autodiff<numpy>.*ad\.from_inner"
    with pytest.raises(errors.NoAutodiffError, match=wanted):
        ask(x, grads)
    assert issubclass(errors.NoAutodiffError, TypeError)


@pytest.mark.parametrize("name", [name for name, primitive in TABLE.items() if primitive.results > 1])
def test_constants_have_all_results(name: str) -> None:
    level = ad.Autodiff(ad.NumPy())
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                arrays = [level.wrap(x) if isinstance(x, np.ndarray) else x for x in case.operands]
                found, expected = (
                    B[TABLE[name]](*xs, **case.parameters) for B, xs in ((level, arrays), (ad.NumPy(), case.operands))
                )
                assert len(found) == TABLE[name].results
                for x, y in zip(found, expected, strict=True):
                    assert not level.tracked(x)
                    np.testing.assert_array_equal(level.to_numpy(x), y)


def test_gradients_of_attention_of_a_tensor_where_nothing_is_tracked() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    gradient = ad.grad(lambda q: (ad.nn.scaled_dot_product_attention(q, q, q) ** 2).sum())
    np.testing.assert_array_equal(gradient(ad.asarray(x)).numpy(), gradient(x))


def test_numbers_of_a_chain_are_made_arrays_once() -> None:
    """NumPy is faster with an array of the dtype than with a number of Python's; levels ask their leaf for it."""
    half = ad.NumPy().as_scalar(0.5, ad.float32)
    assert (type(half), half.shape, half.dtype) == (np.ndarray, (), np.float32)
    assert ad.Autodiff(ad.Autodiff(ad.NumPy())).as_scalar(0.5, ad.float32) is half
    assert ad.NumPy().as_scalar(0.5, ad.float64).dtype == np.float64
