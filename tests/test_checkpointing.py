"""Balanced checkpointing: the same gradients from fewer kept arrays, each made again at most once."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad
from adjoint import errors
from adjoint.primitives import Primitive

KEEP = ad.Autodiff(ad.NumPy())
BALANCED = ad.Autodiff(ad.NumPy(), checkpointing="balanced")


def peak_bytes(device: Any, f: Callable[[Any], Any], size: int = 100_000) -> int:
    """The most memory that forward and backward hold at once, in multiples of an array."""
    x = ad.asarray(np.linspace(0.1, 1.0, size), device=device).require_grad()
    f(x).backward()
    tracemalloc.start()
    try:
        f(x).backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak // (8 * size)


def chain(length: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(length // 4):
            x = ((x * 1.01).sin() + 0.5).exp() * 0.3
        return x.sum()

    return f


def test_balanced_needs_less_memory_on_a_chain() -> None:
    keep, balanced = peak_bytes(KEEP, chain(96)), peak_bytes(BALANCED, chain(96))
    assert keep >= 48  # sin and exp each keep an array
    assert balanced <= keep / 2


def test_balanced_never_needs_more_memory() -> None:
    """Not even where one pass makes everything again: each value goes with its last use."""

    def products(x: Any) -> Any:
        for _ in range(10):
            x = (x.reshape((100, 1000)).mT @ ad.eye(100, dtype=ad.float64, device=x.device)).reshape(-1)
        return x.sum()

    def gated(x: Any) -> Any:
        y = x * 0.5 - 1
        return ((ad.tanh(x * y) + ad.special.expit(x)) * ad.exp(-y * y)).sum()

    def repeated(x: Any) -> Any:
        y = x
        for _ in range(8):
            y = (y * x).tanh() + x
        return y.sum()

    for f in (
        chain(4), chain(8), chain(16), products, gated, repeated, lambda x: (x * x).sum(),
        lambda x: ad.special.softmax(x).exp().sum(), lambda x: (ad.nn.gelu(x * x + 1) * ad.nn.silu(x)).sum(),
    ):  # fmt: skip
        assert peak_bytes(BALANCED, f) <= peak_bytes(KEEP, f)


def test_what_nobody_wants_is_not_made_again() -> None:
    """The result of a product is wanted by nobody here, and so its `Remat` wants nothing either."""
    x = ad.ones(3, dtype=ad.float64, device=BALANCED).require_grad()
    a, b = x.sin(), x.cos()
    product = a * b
    remat = product._array.remat
    assert remat.uses == 0
    assert [operand.uses for operand in remat.operands] == [1, 1]  # by the node of the product
    root = product.exp() * product  # exp keeps its own result, which the other factor needs
    assert remat.uses == 2
    assert [operand.uses for operand in remat.operands] == [2, 2]
    value = np.sin(1) * np.cos(1)
    expected = np.exp(value) * (1 + value) * np.cos(2)
    np.testing.assert_allclose(root.sum().backward()[x].numpy(), [expected] * 3)


class Counting(ad.NumPy):
    """NumPy that counts how often each primitive runs."""

    calls: Counter[str] = Counter()

    def implement(self, primitive: Primitive) -> Any:
        run = super().implement(primitive)

        def counted(*operands: Any, **parameters: Any) -> Any:
            self.calls[primitive.name] += 1
            return run(*operands, **parameters)

        return counted


def runs(f: Callable[[Any], Any], checkpointing: str | None) -> tuple[int, int]:
    """How many primitives forward and backward of a function run."""
    device = ad.Autodiff(Counting(), checkpointing=checkpointing)
    x = ad.ones(3, dtype=ad.float64, device=device).require_grad()
    Counting.calls.clear()
    loss = f(x)
    forward = Counting.calls.total()
    loss.backward()
    return forward, Counting.calls.total() - forward


def test_every_value_is_made_again_at_most_once() -> None:
    for f in (chain(8), chain(40), chain(400), branching):
        forward, backward = runs(f, None)
        again, balanced = runs(f, "balanced")
        assert again == forward
        assert backward <= balanced <= backward + forward


def branching(x: Any) -> Any:
    """Values that several others need, none of which any rule saves directly."""
    a, b = x + 1, x - 1
    for _ in range(20):
        a, b = a * 0.5 + b, a - b * 0.25
    return (a.sin() * b.cos() + (a + b).exp()).sum()


def test_the_work_grows_linearly() -> None:
    (_, small), (_, large) = runs(chain(400), "balanced"), runs(chain(4000), "balanced")
    assert large <= 10.5 * small


def test_shared_values_are_made_again_once() -> None:
    device = ad.Autodiff(Counting(), checkpointing="balanced")
    x = ad.ones(3, dtype=ad.float64, device=device).require_grad()
    h = x.sin()
    loss = sum((h * h.exp()).sum() for _ in range(10))
    Counting.calls.clear()
    loss.backward()
    assert Counting.calls["sin"] <= 1


def test_expensive_primitives_are_not_run_again() -> None:
    device = ad.Autodiff(Counting(), checkpointing="balanced")
    x = ad.asarray(np.eye(3) + 0.1, device=device).require_grad()
    loss = (ad.linalg.inv(x).exp() @ x).sin().sum() + ad.special.logsumexp(x * 2)
    Counting.calls.clear()
    loss.backward()
    assert Counting.calls["inv"] == 0
    assert Counting.calls["logsumexp"] == 0
    assert Counting.calls["matmul"] == 4  # those of the pullbacks of inv and of matmul itself


def test_nothing_is_made_again_after_the_walk_or_kept_by_it() -> None:
    x = ad.ones(3, dtype=ad.float64, device=BALANCED).require_grad()
    loss = ((x * 2).sin().exp() * x).sum()
    first = loss.backward(retain_graph=True)[x].numpy()
    again = loss.backward(retain_graph=True)[x].numpy()
    np.testing.assert_array_equal(first, again)
    loss.backward()
    with pytest.raises(errors.FreedGraphError):
        loss.backward()


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 2 * b,
    lambda a, b: a / (b * b + 1.5),
    lambda a, b: (a * 0.3).exp() * 0.5,
    lambda a, b: a.sin(),
    lambda a, b: (a * a + 0.5).sqrt(),
    lambda a, b: a.tanh() ** 3,
    lambda a, b: ad.maximum(a, b + 0.01),
    lambda a, b: ad.where(a > b, a, b * 2),
    lambda a, b: ad.clip(a, -0.7, 0.9),
    lambda a, b: abs(a) * b,
    lambda a, b: a.reshape((2, 2)).mT.reshape(-1),
    lambda a, b: a.flip() + b[::-1],
    lambda a, b: ad.concat([a[:1], b[1:]]),
    lambda a, b: a.sum() * b,
    lambda a, b: a - a.mean(),
    lambda a, b: (a.reshape((2, 2)) @ b.reshape((2, 2))).reshape(-1) * 0.3,
    lambda a, b: ad.special.softmax(a) * b,
    lambda a, b: a[[3, 1, 1, 0]],
    lambda a, b: ad.sort(a) + b,
    lambda a, b: a.astype(ad.float32).astype(ad.float64) + b,
    lambda a, b: ad.topk(a, 4)[0] * b,
    lambda a, b: assigned(a, b),
    lambda a, b: incremented(a, b),
    lambda a, b: a.detach() * b,
]


def assigned(a: Any, b: Any) -> Any:
    y = a * 1
    y[1:3] = b[:2] * 2
    z = y * y
    y[0] = b[3]
    return z + y


def incremented(a: Any, b: Any) -> Any:
    y = a + 0.5
    z = y.sin()
    y += b
    y *= y
    return y * 0.1 + z


programs = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30
)


def run_program(program: Any, x: Any) -> Any:
    pool = [x, x * 0.5 + 0.1]
    for which, i, j in program:
        value = OPERATIONS[which](pool[i % len(pool)], pool[j % len(pool)])
        pool.append(value / (1 + ad.max(abs(value)).detach()))
        pool = pool[-6:]
    return sum(value.sum() for value in pool)


@settings(max_examples=150)
@given(program=programs)
def test_programs_have_the_same_gradients_under_every_option(program: Any) -> None:
    start = np.array([0.3, -0.8, 1.1, 0.45])
    expected = None
    for device in (
        KEEP,
        BALANCED,
        ad.Autodiff(ad.NumPy(), strong_zero=True),
        ad.Autodiff(ad.NumPy(), "balanced", True),
    ):
        x = ad.asarray(start, device=device).require_grad()
        value = run_program(program, x)
        found = (value.item(), value.backward()[x].numpy())
        expected = expected or found
        assert found[0] == expected[0]
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-14)


@settings(max_examples=60)
@given(program=programs)
def test_programs_have_the_same_second_derivatives_under_every_option(program: Any) -> None:
    start = np.array([0.3, -0.8, 1.1, 0.45])
    expected = None
    for device in (KEEP, BALANCED, ad.Autodiff(ad.NumPy(), strong_zero=True)):
        x = ad.asarray(start, device=device).require_grad()
        high = ad.from_inner(x, device.over(device)).require_grad()
        gradient = run_program(program, high).backward()[high]
        root = (gradient * gradient.detach()).sum()
        found = root.backward()[x].numpy() if root.is_tracked() else np.zeros(4)
        expected = found if expected is None else expected
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_options_are_part_of_the_name_and_the_identity() -> None:
    assert BALANCED.name == "autodiff[checkpointing=balanced]<numpy>"
    assert ad.device(BALANCED.name) is BALANCED
    assert BALANCED is not KEEP
    assert BALANCED.over(BALANCED).checkpointing == "balanced"
    with pytest.raises(errors.ArgumentError, match="'balanced', received 'all'"):
        ad.Autodiff(ad.NumPy(), checkpointing="all")
    with pytest.raises(errors.ArgumentError, match="strong_zero is True or False"):
        ad.Autodiff(ad.NumPy(), strong_zero=1)
