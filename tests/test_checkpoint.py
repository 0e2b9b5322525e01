"""`checkpoint`: the same derivatives from values that are made again, under every policy and nesting."""

from __future__ import annotations

import functools
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from options import KEEP, assert_equal_but_rounding, derivatives

import adjoint as ad
from adjoint.backend import interned_backends
from adjoint.graph.remat import Budget

POLICIES: list[Any] = ["nothing", "matmuls", "everything", ["h"], 0, 200, 10**9]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=str)

X = np.array([[0.3, -0.7], [1.1, 0.4]])
W = np.array([[0.5, 0.2], [-0.3, 0.9]])


def block(x: Any, w: Any) -> Any:
    h = ad.checkpoint_name(ad.tanh(x @ w), "h")
    return (ad.exp(h) * ad.sum(h, axis=1, keepdims=True)).sum()


# --- derivatives ---


@every_policy
def test_every_derivative_is_that_of_the_function(policy: Any) -> None:
    f = ad.checkpoint(block, policy)
    many = np.stack([W, W + 0.1])
    transforms: list[tuple[Callable[..., Any], Any]] = [
        (lambda g: ad.grad(g, (0, 1)), W),
        (lambda g: ad.jacobian(g, mode="forward"), W),
        (ad.hessian, W),
        (lambda g: ad.grad(lambda x, w: ad.grad(g)(x, w).sum(), 1), W),
        (lambda g: ad.vmap(ad.grad(g), in_axes=(None, 0)), many),
        (lambda g: ad.grad(lambda x, w: ad.vmap(g, in_axes=(None, 0))(x, w).sum(), 1), many),
        (lambda g: lambda x, w: ad.jvp(ad.grad(g), (x, w), (x, w)), W),
        (lambda g: lambda x, w: ad.vjp(g, x, w)[1](1.0), W),
    ]
    for transform, w in transforms:
        for a, b in zip(_flat(transform(f)(X, w)), _flat(transform(block)(X, w)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def _flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in _flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=2)
@given(data=st.data())
def test_every_public_function(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    kept = derivatives(f, args, KEEP)
    for policy in ("nothing", "matmuls", 100):
        for ours, theirs in zip(derivatives(ad.checkpoint(f, policy), args, KEEP), kept, strict=True):
            assert_equal_but_rounding(ours, theirs, str(policy))


def test_what_a_function_closes_over_gets_its_derivative() -> None:
    w = ad.tensor(2.0, dtype=ad.float64).require_grad()
    x = ad.tensor(3.0, dtype=ad.float64).require_grad()
    plain = (ad.sin(x * w) * ad.cos(w)).backward()
    found = ad.checkpoint(lambda x: ad.sin(x * w) * ad.cos(w))(x).backward()
    assert found[w].item() == plain[w].item()
    assert found[x].item() == plain[x].item()


def test_random_numbers_are_the_same_again() -> None:
    def f(x: Any) -> Any:
        mask = ad.random.bernoulli(0.5, (1000,), device=x.device)
        return ad.sin(ad.where(mask, x, 0.0)).sum()

    x = ad.ones(1000).require_grad()
    x.device.seed(3)
    plain = f(x).backward()[x].numpy()
    x.device.seed(3)
    again = ad.checkpoint(f)(x).backward()[x].numpy()
    np.testing.assert_array_equal(plain, again)
    assert 300 < (again > 0).sum() < 700


def test_nested_checkpoints() -> None:
    f = ad.checkpoint(lambda x: ad.checkpoint(ad.sin)(x) * ad.checkpoint(lambda y: ad.exp(ad.cos(y)), "everything")(x))
    ad.testing.check_grads(f, (np.array([0.3, 1.2]),))


def test_a_long_chain_is_no_recursion() -> None:
    f = ad.checkpoint(lambda x: functools.reduce(lambda y, _: y * 1.0001, range(20_000), x))
    assert ad.grad(f)(1.0) == pytest.approx(1.0001**20_000)


def test_trees_and_plain_arguments() -> None:
    def f(p: dict[str, Any], n: int, *, shift: float) -> dict[str, Any]:
        return {"y": p["a"] ** n + shift, "n": n}

    out = ad.checkpoint(f)({"a": ad.tensor([2.0]).require_grad()}, 3, shift=1.0)
    assert out["n"] == 3
    assert out["y"].tolist() == [9.0]
    assert out["y"].device is ad.default_device()
    assert ad.checkpoint(f)({"a": np.array([2.0])}, 2, shift=0.0)["y"].tolist() == [4.0]  # no level: f itself


def test_a_graph_is_used_once() -> None:
    x = ad.tensor(0.5).require_grad()
    y = ad.checkpoint(lambda x: ad.sin(ad.exp(x)))(x)
    first = y.backward(retain_graph=True)[x].item()
    assert y.backward()[x].item() == first
    with pytest.raises(ad.errors.FreedGraphError):
        y.backward()


# --- memory ---


def _peak(run: Callable[[], Any]) -> int:
    run()
    gc.collect()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_that_of_the_policy() -> None:
    """Eight blocks of eight steps on 100,000 numbers: 64 kept values, or 8 and a block's 8 while it is pulled back."""
    x = ad.ones(100_000, dtype=ad.float64).require_grad()

    def steps(y: Any) -> Any:
        for _ in range(8):
            y = ad.tanh(y)
        return y

    def loss(policy: Any) -> Any:
        y = x
        for _ in range(8):
            y = ad.checkpoint(steps, policy)(y)
        return y.sum().backward()

    unit = 800_000
    assert 60 * unit < _peak(lambda: loss("everything")) < 72 * unit
    assert _peak(lambda: loss("nothing")) < 24 * unit
    half = _peak(lambda: loss(4 * unit))  # tanh is cheap: a budget does not keep it
    assert half < 24 * unit


def test_a_budget_is_filled_and_not_exceeded() -> None:
    kept = Budget(1000)
    matmul = ad.primitives.TABLE["matmul"]
    small, large = np.zeros((5, 10)), np.zeros((20, 10))
    leaf = ad.NumPy()
    assert [kept.keeps(matmul, v, leaf) for v in (large, small, small, small)] == [False, True, True, False]
    assert not Budget(10**9).keeps(ad.primitives.TABLE["add"], small, leaf)


def test_named_values_are_kept() -> None:
    calls = []

    def f(x: Any) -> Any:
        y = ad.checkpoint_name(ad.exp(x), "power")
        return ad.sin(y) * y

    level: Any = ad.Autodiff(ad.NumPy())
    for names, runs in ((["power"], 1), (["other"], 2)):
        x = ad.tensor([0.5], device=level).require_grad()
        leaf = level.leaf
        plain = leaf["exp"]
        level.prototype.forget()
        try:
            leaf.implementations["exp"] = lambda v, plain=plain: (calls.append(1), plain(v))[1]
            calls.clear()
            ad.Autodiff(leaf).forget()
            policy_device = ad.checkpoint(f, names)
            policy_device(x).sum().backward()
        finally:
            leaf.implementations["exp"] = plain
            level.prototype.forget()
        assert len(calls) == runs, names


# --- errors ---


def test_policies_of_the_same_names_share_a_level() -> None:
    for names in (["test"], ("test",), {"test"}):
        ad.grad(ad.checkpoint(ad.sin, policy=names))(1.0)
    assert sum("names=test]" in backend.name for backend in interned_backends()) == 1


@pytest.mark.parametrize("policy", ["some", -1, True, 1.5, [1], None, np.zeros(2)], ids=str)
def test_an_unknown_policy(policy: Any) -> None:
    with pytest.raises(ad.errors.ArgumentError, match="policy"):
        ad.checkpoint(block, policy)


def test_a_name_is_a_string() -> None:
    with pytest.raises(ad.errors.ArgumentTypeError, match="checkpoint_name: a name is a string, received 3"):
        ad.checkpoint_name(ad.ones(2), 3)  # type: ignore[arg-type]


def test_what_is_no_function_or_tensor() -> None:
    with pytest.raises(ad.errors.ArgumentTypeError, match="function"):
        ad.checkpoint(3)  # type: ignore[arg-type]
    with pytest.raises(ad.errors.ArgumentTypeError, match="tensor"):
        ad.checkpoint_name(3, "x")  # type: ignore[arg-type]


def test_the_function_may_fail() -> None:
    def f(x: Any) -> Any:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        ad.checkpoint(f)(ad.ones(2).require_grad())
    assert ad.default_device() is ad.Autodiff(ad.NumPy())
