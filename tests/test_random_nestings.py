"""Any nesting of the decorators over any leaf is legal: random programs on random nestings.

What comes out is compared with the program alone on NumPy, and its derivatives of as many orders as the nesting
differentiates with difference quotients of the reference backend, of 60 digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import array_api_strict
import numpy as np
import pytest
from conftest import peer
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad
from adjoint.backend import Decorator
from adjoint.decorators.batched import Batch
from adjoint.decorators.dependence import Dependent
from adjoint.decorators.tangent import Dual
from adjoint.decorators.taylor import Series
from adjoint.graph.nodes import key_of, new_leaf
from adjoint.tensor import wrap

peer("mpmath")
eye_array = peer("scipy.sparse").eye_array

Array = np.ndarray[Any, Any]
Level = Callable[[Any], Any]

EXACT = ad.Reference(digits=60)
STEP = 2.0**-36
SHAPE = (2, 3)
COUNT = 3  # tensors that a program starts with
EXAMPLES = 2

LEAVES: dict[str, Any] = {
    "numpy": ad.NumPy(),
    "strict": ad.ArrayAPI(array_api_strict),
    "reference": ad.Reference(digits=20),
}
LEVELS: dict[str, Level] = {
    "autodiff": ad.Autodiff,
    "balanced": lambda inner: ad.Autodiff(inner, checkpointing="balanced"),
    "strong zero": lambda inner: ad.Autodiff(inner, strong_zero=True),
    "balanced strong zero": lambda inner: ad.Autodiff(inner, checkpointing="balanced", strong_zero=True),
    "tangent": ad.Tangent,
    "taylor": lambda inner: ad.Taylor(inner, 2),
    "taylor on demand": ad.Taylor,
    "dependence": ad.Dependence,
    "batched": lambda inner: ad.Batched(inner, randomness="shared"),
    "of a size": lambda inner: ad.Batched(inner, EXAMPLES, "shared"),
}


# --- programs: each step makes of two tensors of SHAPE another one, of sizes up to about 2 ---------


def _assigned(x: Any, y: Any) -> Any:
    out = x * 1.0
    out[0] = y[1]
    out[:, 1] = 0.5
    out[1, 2] += y[0, 0]
    return out


def _in_place(x: Any, y: Any) -> Any:
    out = ad.zeros(SHAPE, dtype=ad.float64)
    out += x
    out *= y
    return out


def _apart(x: Any) -> Any:
    """Elements in an order that no small change turns round."""
    return 0.2 * ad.tanh(x) + ad.tensor(np.array([[2.0, 0.0, 1.0], [-1.0, 3.0, -2.0]]))


def _where(x: Any, y: Any) -> Any:
    return ad.where(x > 0.123456789, ad.sin(x), y)


def _solved(x: Any, y: Any) -> Any:
    return ad.linalg.solve(x @ x.mT + 3 * ad.eye(2, dtype=ad.float64), y)


def _random(x: Any, y: Any) -> Any:
    device = ad.default_device()
    draw = device.random_normal(key=(7, 3), shape=SHAPE, dtype=np.dtype(np.float64))
    return ad.sin(x * wrap(draw, device)) + y


def _convolved(x: Any, y: Any) -> Any:
    return ad.nn.conv2d(x[None, None], y[None, None, :, :2] / 2, padding=1)[0, 0, :2, :3]


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: (x + y) / 2,
    "subtract": lambda x, y: (x - 2 * y) / 3,
    "multiply": lambda x, y: ad.sin(x * y),
    "divide": lambda x, y: x / (1 + y * y),
    "power": lambda x, y: (1.5 + ad.cos(x)) ** ad.tanh(y),
    "exp": lambda x, _: ad.exp(-x * x),
    "log": lambda x, y: ad.log(2 + ad.sin(x) * y / 3),
    "sqrt": lambda x, _: ad.sqrt(1 + x**2) - 1,
    "atan2": lambda x, y: ad.atan2(x, 3 + y),
    "gelu": lambda x, _: ad.nn.gelu(x),
    "complex": lambda x, y: (ad.exp(1j * x) * (y + 0.5j)).real,
    "sum": lambda x, y: ad.tanh(x + y.sum(axis=0)),
    "mean": lambda x, y: x - y.mean(axis=1, keepdims=True),
    "prod": lambda x, y: x * ad.prod(1 + y / 4, axis=0) / 2,
    "logsumexp": lambda x, y: x - ad.special.logsumexp(y, axis=1, keepdims=True) / 2,
    "softmax": lambda x, y: ad.special.softmax(x * y, axis=1),
    "layer norm": lambda x, y: ad.nn.layer_norm(x + ad.arange(3) / 2, 3) + y,
    "norm": lambda x, y: x / ad.linalg.norm(y + 3.0),
    "transpose": lambda x, y: ad.reshape(x.T, SHAPE) + y.T.reshape(SHAPE) / 2,
    "flip": lambda x, y: ad.flip(x, axis=1) - ad.roll(y, 1, axis=0) / 2,
    "concat": lambda x, y: ad.concat([x, y, x])[1:3],
    "stack": lambda x, y: ad.stack([x, y], axis=1)[:, 1] / 2 + ad.stack([y, x], axis=-1)[..., 0] / 2,
    "slices": lambda x, y: ad.concat([x[:, 1:], y[::-1, :1]], axis=1),
    "places": lambda x, y: x[[1, 0]][:, [2, 2, 0]] - y[[0, 1], [1, 2]][:, None] / 2,
    "take along": lambda x, y: ad.take_along_axis(x, ad.argsort(_apart(y), axis=1), axis=1),
    "assign": _assigned,
    "in place": _in_place,
    "mask": lambda x, y: ad.where(np.array([[True, False, True], [False, True, False]]), x, y),
    "choose": _where,
    "max": lambda x, y: ad.max(_apart(x), axis=1, keepdims=True) - y,
    "sort": lambda x, y: ad.sort(_apart(x), axis=0) / 2 + y,
    "cumulate": lambda x, y: ad.sin(ad.cumulative_sum(x, axis=1)) * y,
    "matmul": lambda x, y: ad.tanh(x @ y.T) @ y / 2,
    "einsum": lambda x, y: ad.sin(ad.einsum("ij,kj,kl->il", x, y, x)),
    "solve": _solved,
    "inverse": lambda x, y: ad.linalg.inv(3 * ad.eye(2, dtype=ad.float64) + y @ x.T / 4) @ x,
    "cholesky": lambda x, y: ad.linalg.cholesky(x @ x.T + 2 * ad.eye(2, dtype=ad.float64)) @ y / 2,
    "convolve": _convolved,
    "random": _random,
    "created": lambda x, y: x * ad.linspace(-1, 1, 3, dtype=ad.float64) + ad.ones(SHAPE, dtype=ad.float64) * y,
    "checkpoint": lambda x, y: ad.checkpoint(lambda x: ad.sin(ad.exp(x) * y))(x),
    "grad": lambda x, y: ad.grad(lambda x: (ad.sin(x) * y).sum())(x),
    "backward": lambda x, y: ad.grad(lambda x: ((ad.sin(x) * y).sum().backward(wrt=x)[x] * y).sum() / 2)(x),
    "vjp": lambda x, y: ad.vjp(lambda x: ad.tanh(x * y), x)[1](y)[0],
    "jvp": lambda x, y: ad.jvp(lambda x: ad.sin(x) * x, (x,), (y,))[1],
    "linearize": lambda x, y: ad.linearize(lambda x: ad.cos(x) * y, x)[1](y),
    "vmap": lambda x, y: ad.vmap(lambda r, s: ad.sin(r) * s.sum(), (1, None), 1)(x, y),
    "vmap grad": lambda x, y: ad.vmap(ad.grad(lambda r, s: (ad.sin(r) * s).sum()))(x, y),
    "jacobian": lambda x, y: x @ ad.jacobian(lambda r: ad.sin(r) * r.sum())(y[0]) / 3,
    "hessian": lambda x, y: x @ ad.hessian(lambda r: ad.cos(r).sum() * r[0])(y[0]),
}

Program = list[tuple[str, int, int]]


def run(program: Program, inputs: Sequence[Any]) -> Any:
    """One number: a sum over all values, each with weights of its own."""
    values = list(inputs)
    for name, i, j in program:
        values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
    weights = [np.cos(np.arange(6.0) + k).reshape(SHAPE) for k in range(len(values))]
    total = (values[-1] * weights[-1]).sum()
    for value, weight in zip(values[COUNT:-1], weights, strict=False):
        total = total + (value * weight).sum() / 3
    return total


# --- nestings ------------------------------------------------------------------------------------


def place(device: Any, inputs: list[Array], directions: list[list[Array]]) -> list[Any]:
    """The inputs on a nesting: tracked, active along directions, batched at the levels that do so."""
    if not isinstance(device, Decorator):
        return [device.from_numpy(x, copy=True) for x in inputs]
    differentiates = isinstance(device, ad.Autodiff | ad.Tangent | ad.Taylor)
    inner = place(device.inner, inputs, directions[1:] if differentiates else directions)
    if isinstance(device, ad.Autodiff):
        return [new_leaf(x) for x in inner]
    if isinstance(device, ad.Batched):
        return [Batch(x, True) for x in inner]
    if isinstance(device, ad.Dependence):
        return [Dependent(x, eye_array(math.prod(x.shape), dtype=np.bool_, format="csr")) for x in inner]
    if isinstance(device, ad.Taylor):
        active = [constant(device.inner, d, x.shape) for x, d in zip(inner, directions[0], strict=True)]
        return [Series(x, [d, None], None) for x, d in zip(inner, active, strict=True)]
    return [Dual(x, constant(device.inner, d, x.shape)) for x, d in zip(inner, directions[0], strict=True)]


def constant(device: Any, values: Array, shape: Any) -> Any:
    return device.from_numpy(np.array(np.broadcast_to(values, shape)), copy=True)


def take_apart(device: Any, out: Any, placed: list[Any], directions: list[list[Array]], orders: list[bool]) -> Array:
    """What every level knows of the result: its derivative where `orders` says so, else its value."""
    if not isinstance(device, Decorator):
        return np.asarray(device.to_numpy(out), dtype=np.float64)
    inner = device.inner
    below = [x.value for x in placed]
    if isinstance(device, ad.Batched):
        value = out.value if out.batched else inner.broadcast_to(out.value, shape=(EXAMPLES, *out.shape))
        return take_apart(inner, value, below, directions, orders)
    if isinstance(device, ad.Dependence):
        return take_apart(inner, out.value, below, directions, orders)
    if not orders[0]:
        return take_apart(inner, out.value, below, directions[1:], orders[1:])
    moved = inner.full(shape=tuple(out.shape), value=0, dtype=np.dtype(np.float64))
    if isinstance(device, ad.Tangent):
        moved = moved if out.tangent is None else out.tangent
    elif isinstance(device, ad.Taylor):
        moved = moved if out.term(1) is None else out.term(1)
    elif out.node is not None:
        found = device.backward(out)
        for x, d in zip(placed, directions[0], strict=True):
            if key_of(x) in found:
                slope = inner.multiply(found[key_of(x)][1], constant(inner, d, x.shape))
                rank = len(x.shape)
                moved = inner.add(moved, inner.sum(slope, axis=(rank - 2, rank - 1), keepdims=False))
    return take_apart(inner, moved, below, directions[1:], orders[1:])


def numerical(program: Program, inputs: list[Array], directions: list[list[Array]]) -> float:
    """The derivative along all directions, one after the other, by central differences."""
    total = ad.zeros((), dtype=ad.float64, device=EXACT)
    with ad.use_device(EXACT):
        start = [ad.asarray(x) for x in inputs]
        for signs in itertools.product((1.0, -1.0), repeat=len(directions)):
            moved = list(start)
            for sign, along in zip(signs, directions, strict=True):
                moved = [x + (sign * STEP) * ad.asarray(d) for x, d in zip(moved, along, strict=True)]
            total = total + float(np.prod(signs)) * run(program, moved)
        for _ in directions:
            total = total / (2 * STEP)
    return float(total.item())


programs = st.lists(
    st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5
)
nestings = st.lists(st.sampled_from(list(LEVELS)), max_size=3)


@pytest.mark.parametrize("examples", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_random_programs_on_random_nestings(examples: int) -> None:
    @settings(max_examples=examples)
    @given(
        leaf=st.sampled_from(list(LEAVES)), nesting=nestings, program=programs, orders=st.tuples(*[st.booleans()] * 3)
    )
    def run(leaf: str, nesting: list[str], program: Program, orders: tuple[bool, ...]) -> None:
        check(leaf, nesting, program, orders)

    run()


def check(leaf: str, nesting: Sequence[str], program: Program, orders: Sequence[bool]) -> None:
    """The levels of the nesting from the innermost; `orders` says which of those that differentiate do."""
    device = LEAVES[leaf]
    for name in nesting:
        device = LEVELS[name](device)
    levels = list(device.chain())
    batches = sum(isinstance(level, ad.Batched) for level in levels)
    count = sum(isinstance(level, ad.Autodiff | ad.Tangent | ad.Taylor) for level in levels)
    wanted = [*orders, True, True, True][:count]

    rng = np.random.default_rng(11)
    inputs = [rng.uniform(-1.2, 1.2, (*[EXAMPLES] * batches, *SHAPE)) for _ in range(COUNT)]
    directions = [[rng.uniform(-1, 1, SHAPE) for _ in range(COUNT)] for _ in range(count)]

    placed = place(device, inputs, directions)
    with ad.use_device(device):
        out = run(program, [wrap(x, device) for x in placed])
    assert out.device is device
    assert out.shape == ()
    found = take_apart(device, out._array, placed, directions, wanted)
    assert found.shape == (EXAMPLES,) * batches

    chosen = [d for d, wants in zip(directions, wanted, strict=True) if wants]
    for example in itertools.product(range(EXAMPLES), repeat=batches):
        one = [x[example] for x in inputs]
        if not chosen:
            with ad.use_device("numpy"):
                np.testing.assert_allclose(found[example], run(program, [ad.asarray(x) for x in one]).item(), 1e-11)
        np.testing.assert_allclose(found[example], numerical(program, one, chosen), rtol=1e-9, atol=1e-10)
