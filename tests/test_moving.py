"""Tensors that move between leaf backends, and gradients that flow back through the move."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import processes
import pytest
from conftest import peer, same

import adjoint as ad
from adjoint import errors

HERE, THERE = "autodiff<numpy>", "autodiff<reference>"


def leaf(*values: Any, device: str = HERE) -> Any:
    return ad.tensor(values, device=device).require_grad()


@pytest.mark.parametrize("target", ["reference", THERE, ad.Reference()])
def test_a_leaf_takes_the_chain_along_and_gradients_come_back(target: Any) -> None:
    x = leaf(1.0, 2.0)
    moved = (x * x).to_device(target)
    assert moved.device is ad.device(THERE)
    assert moved.is_tracked()
    grads = (moved * moved).sum().backward()
    assert grads[x].device is ad.NumPy()
    same(grads[x], np.float32([4.0, 32.0]))
    assert [x.device.name for x in grads] == [HERE]


def test_to_its_own_leaf_nothing_moves() -> None:
    x = leaf(1.0)
    assert (x * 2).to_device("numpy").device is x.device
    same((x * 2).to_device("numpy").sum().backward()[x], np.float32([2.0]))


def test_one_graph_goes_there_and_back_and_meets_itself() -> None:
    w, v = leaf(3.0), leaf(2.0, device=THERE)
    y = w * w
    there = y.to_device("reference") * v
    back = there.to_device("numpy")
    grads = (back * y).sum().backward()  # w^4 v
    same(grads[w], np.float32([4 * 27.0 * 2]))
    assert grads[v].device is ad.Reference()
    assert grads[v].tolist() == [81.0]
    assert {x.device.name for x in grads} == {HERE, THERE}
    assert w in grads
    assert v in grads
    doubled = grads + grads * 2
    assert doubled[v].tolist() == [243.0]
    assert doubled[w].tolist() == [648.0]
    again = pickle.loads(pickle.dumps((grads, v, w)))
    assert again[0][again[1]].tolist() == [81.0]
    assert again[0][again[2]].tolist() == [216.0]


def test_a_gradient_is_asked_for_on_another_device() -> None:
    w = leaf(3.0)
    moved = (w * w).to_device("reference")
    grads = (moved * moved).sum().backward(wrt=[w, moved])
    assert grads[w].tolist() == [108.0]
    assert grads[moved].tolist() == [18.0]
    assert grads[moved].device is ad.Reference()
    with pytest.raises(errors.NoGradientError):
        grads[leaf(1.0, device=THERE)]


def test_complex_and_broadcast_cotangents_cross() -> None:
    x = ad.tensor([1 + 2j, 3 - 1j], device=HERE).require_grad()
    scale = leaf(2.0)
    moved = (x * scale).to_device("reference")
    grads = (moved * moved.conj()).real.sum().backward()
    expected = ad.tensor([1 + 2j, 3 - 1j], device=HERE).require_grad(), leaf(2.0)
    there = (expected[0] * expected[1]) * (expected[0] * expected[1]).conj()
    oracle = there.real.sum().backward()
    np.testing.assert_allclose(grads[x].numpy(), oracle[expected[0]].numpy(), rtol=1e-6)
    np.testing.assert_allclose(grads[scale].numpy(), oracle[expected[1]].numpy(), rtol=1e-6)


def test_second_derivatives_cross() -> None:
    high = ad.Autodiff(ad.Autodiff(ad.NumPy()))
    x = ad.tensor([2.0], device=high).require_grad()
    inside = x.inner().require_grad()
    x = ad.from_inner(inside, high).require_grad()
    y = (x * x * x).to_device("reference")
    assert y.device.name == "autodiff<autodiff<reference>>"
    (first,) = [y.sum().backward()[x]]
    same(first, np.float32([12.0]))
    assert first.device.name == HERE
    same(first.sum().backward()[inside], np.float32([12.0]))


def test_inside_of_transforms() -> None:
    def f(x: Any) -> Any:
        return (x.to_device("reference") ** 3).to_device("numpy").sum()

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(ad.grad(f)(x), 3 * x**2)
    np.testing.assert_allclose(ad.hessian(f)(x), np.diag(6 * x))
    np.testing.assert_allclose(ad.jvp(f, (x,), (np.ones(2),))[1], (3 * x**2).sum())
    np.testing.assert_allclose(ad.vmap(lambda v: (v.to_device("reference") ** 2).to_device("numpy"))(x), x**2)


def test_a_level_ends_also_over_the_other_leaf() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x.to_device("reference"))
        return x.sum()

    ad.grad(f)(np.ones(2))
    with pytest.raises(errors.EndedError):
        kept[0] + 1


def test_a_used_graph_is_freed_on_all_devices() -> None:
    x = leaf(1.0)
    root = (x.to_device("reference") * 2).sum()
    root.backward()
    with pytest.raises(errors.FreedGraphError):
        root.backward()


def test_profiled_and_checked_chains_move() -> None:
    x = ad.tensor([1.0, 4.0], device=ad.Autodiff(ad.Checked(ad.NumPy()))).require_grad()
    moved = x.to_device("reference")
    assert moved.device.name == "autodiff<checked<reference>>"
    same(ad.sqrt(moved).sum().backward()[x], np.float32([0.5, 0.25]))


# --- memory ---


def test_memory_is_shared_where_both_libraries_allow_it() -> None:
    peer("torch")
    x = ad.tensor(np.arange(6.0), device="numpy")
    there = x.to_device("torch")
    assert there.device is ad.Torch()
    assert np.shares_memory(there.numpy(), x.numpy())
    assert np.shares_memory(there.to_device("numpy").numpy(), x.numpy())


@pytest.mark.parametrize("source", ["numpy", "torch", "array_api[array_api_strict]"])
def test_no_library_narrows_silently(source: str) -> None:
    for module in ("jax", "torch", "array_api_strict"):
        peer(module)
    with peer("jax").enable_x64(False):
        for dtype in (ad.float64, ad.complex128):
            with pytest.raises(errors.DtypeError, match=f"no {dtype}"):
                ad.asarray(np.ones(2, dtype), device=source).to_device("jax")
        with pytest.raises(errors.RangeError):
            ad.asarray(np.asarray([2**40]), device=source).to_device("jax")
        assert ad.asarray(np.asarray([7]), device=source).to_device("jax").tolist() == [7]


BACKWARDS = """
import numpy as np
import adjoint as ad

for source in ("numpy", "array_api[array_api_strict]"):
    x = ad.tensor(np.arange(6.0).reshape(2, 3), device=source)
    for turned in (x[::-1], ad.flip(x), ad.flip(x).T):
        assert turned.to_device("torch").tolist() == turned.tolist()
print("alive")
"""


def test_arrays_that_go_backwards_move_to_torch() -> None:  # which ends the process where it is handed one
    peer("torch")
    peer("array_api_strict")
    done = processes.python(BACKWARDS, check=False)
    assert done.stdout.strip() == "alive", done.stderr


def test_assignment_reaches_no_other_device() -> None:
    peer("torch")
    x = ad.tensor(np.arange(6.0), device="numpy")
    there = x.to_device("torch")
    x[0] = 7.0
    there[1] = 9.0
    assert x.tolist() == [7.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert there.tolist() == [0.0, 9.0, 2.0, 3.0, 4.0, 5.0]
    once = there + 1  # owned by nobody but this name
    moved = once.to_device("numpy")
    once[0] = -1.0
    assert moved.tolist() == [1.0, 10.0, 3.0, 4.0, 5.0, 6.0]


def test_a_model_on_two_libraries() -> None:
    torch = peer("torch")
    rng = np.random.default_rng(0)
    w, v, x = (rng.standard_normal(shape) for shape in ((4, 3), (3, 2), (5, 4)))
    a, b = ad.tensor(w).require_grad(), ad.tensor(v, device="autodiff<torch>").require_grad()
    loss = ((ad.tanh(ad.asarray(x) @ a).to_device("torch") @ b) ** 2).sum()
    grads = loss.backward()
    oracle = [torch.tensor(value, requires_grad=True) for value in (w, v)]
    ((torch.tanh(torch.tensor(x) @ oracle[0]) @ oracle[1]) ** 2).sum().backward()
    np.testing.assert_allclose(grads[a].numpy(), oracle[0].grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(grads[b].numpy(), oracle[1].grad.numpy(), rtol=1e-12)
    assert (grads[a].device, grads[b].device) == (ad.NumPy(), ad.Torch())
