"""Derivatives of compiled loops at infinite slopes: what nobody asks for counts nothing, as without compiling."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import alike

import adjoint as ad

# Steps of a carry of three numbers, with an argument and a row; what they give has slopes that may be infinite.
PARTS = {
    "kept": lambda a, b, c, x, t: a,
    "next": lambda a, b, c, x, t: b,
    "last": lambda a, b, c, x, t: c,
    "product": lambda a, b, c, x, t: a * x,
    "sum": lambda a, b, c, x, t: b + c * t,
    "root": lambda a, b, c, x, t: ad.sqrt(abs(b)),
    "root of the row": lambda a, b, c, x, t: ad.sqrt(t) * x,
    "root with the row": lambda a, b, c, x, t: ad.sqrt(abs(a - x)) + t,
    "quotient": lambda a, b, c, x, t: t / c,
    "argument": lambda a, b, c, x, t: x + t,
    "constant": lambda a, b, c, x, t: x * 0 + 1.0,
    "log": lambda a, b, c, x, t: ad.log(abs(c - t)),
}


def loop_of(kind: str, parts: Any, read: Any, start: Any, rows: Any) -> Any:
    """A function of one number: a loop of the kind over such steps, of which it reads some results."""

    def step(state: Any, x: Any, t: Any) -> Any:
        return tuple([PARTS[name](*state, x, t) for name in parts])

    def scalar(last: Any, ys: Any) -> Any:
        found = [last[i] for i in range(3) if i in read] + (ys if "ys" in read else [])
        return sum([y.sum() for y in found], 0.0 * last[0] if not found else 0.0)

    def f(x: Any) -> Any:
        init = tuple([x * k if k else x.detach() for k in start])
        if kind in ("scan", "scan, reverse", "chunks", "choices"):
            turned = lambda s: (s[1], s[0], s[2])
            choose = lambda s, t: ad.cond(s[0] > 1, lambda s: step(s, x, t), turned, s)
            body = lambda s, t: (choose(s, t) if kind == "choices" else step(s, x, t), s[0])
            how = {"checkpoint_every": 2} if kind == "chunks" else {"reverse": kind == "scan, reverse"}
            last, ys = ad.scan(body, init, rows, **how)
            return scalar(last, [ys])
        if kind == "scan in a scan":
            inner = lambda s, t: (ad.scan(lambda s, u: (step(s, x, t * u), s[1]), s, rows)[0], s[0])
            last, ys = ad.scan(inner, init, rows)
            return scalar(last, [ys])
        if kind == "fori_loop":
            return scalar(ad.fori_loop(0, len(rows), lambda i, s: step(s, x, 1.0 * i), init), [])
        going = lambda s: s[0] < len(rows)
        taken = lambda s: (s[0] + 1, step(s[1], x, 1.0 + s[0]))
        return scalar(ad.while_loop(going, taken, (0 * x.detach(), init), max_steps=len(rows) + 1)[1], [])

    return f


KINDS = ["scan", "scan, reverse", "fori_loop", "while_loop", "scan in a scan", "chunks", "choices"]
USES: dict[str, Any] = {
    "reverse": ad.grad,
    "forward": lambda f: lambda x: ad.jvp(f, (x,), (1.0 + 0 * x,)),
    "reverse twice": lambda f: ad.grad(ad.grad(f)),
    "forward over reverse": lambda f: lambda x: ad.jvp(ad.grad(f), (x,), (1.0 + 0 * x,)),
    "examples": lambda f: lambda x: ad.vmap(ad.grad(f))(ad.stack([x, x + 1])),
}
# Where loops are compiled, what a step has depends on no value: on how it chooses, or on whether it was the last.
ALIKE = sorted({*KINDS} - {"while_loop", "choices"})
ONCE = ["reverse", "forward", "examples"]
SIMPLE: dict[str, Any] = {
    "a root that nobody reads": (("root with the row", "kept", "last"), ["ys"], (1, 1, 1), [0.0, 0.5, 0.25]),
    "a row of zero": (("root of the row", "kept", "last"), [1], (1, 1, 0), [0.0, 0.0, 1.0]),
    "a chain": (("next", "root", "kept"), [0], (1, 0, 1), [0.0, 0.0, 1.0]),
    "forgotten": (("constant", "root", "sum"), [2], (0, 0, 1), [1.0, 0.0, 0.0]),
}


def compare(use: Any, kind: str, parts: Any, read: Any, start: Any, rows: Any, number: float) -> None:
    f, plain = (loop_of(k, parts, read, start, np.array(rows)) for k in (kind, "scan" if kind == "chunks" else kind))
    x = ad.asarray(np.array(number))
    with np.errstate(all="ignore"):
        expected = use(plain)(x)
        for run in (use(f), ad.compile(use(f)), use(ad.compile(f))):
            alike(run(x), expected, rtol=1e-9)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("kind", "name"), [*itertools.product(KINDS, SIMPLE)])
def test_a_carry_that_nobody_reads_counts_nothing(kind: str, name: str, use: str) -> None:
    parts, read, start, rows = SIMPLE[name]
    compare(USES[use], kind, parts, read, start, rows, 1.0)


@settings(max_examples=20)
@given(
    kind=st.sampled_from(ALIKE),
    use=st.sampled_from(ONCE),
    parts=st.tuples(*[st.sampled_from(list(PARTS))] * 3),
    read=st.sets(st.sampled_from([0, 1, 2, "ys"])),
    start=st.tuples(*[st.sampled_from([0, 1, 2])] * 3),
    rows=st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=1, max_size=4),
    x=st.sampled_from([0.0, 1.0, 2.0, 1e200]),
)
def test_random_loops_at_infinite_slopes(
    kind: str, use: str, parts: Any, read: Any, start: Any, rows: Any, x: float
) -> None:
    compare(USES[use], kind, parts, read, start, rows, x)


COUNTED: dict[str, Any] = {
    "a number": lambda x, n: (0, x),
    "a tensor": lambda x, n: (ad.tensor(0), x),
    "NumPy's": lambda x, n: (np.int64(0), x),
    "an argument": lambda x, n: (n, x),
}


@pytest.mark.parametrize("start", COUNTED)
@pytest.mark.parametrize("bounded", [False, True])
def test_a_while_loop_that_counts_up_from_a_constant_is_a_loop_of_the_program(start: str, bounded: bool) -> None:
    def sizes(use: Any) -> list[int]:
        found = []
        for count in (100, 1000):
            most = count + 3 if bounded else None
            going, step = lambda s: s[0] < count, lambda s: (s[0] + 1, ad.sin(s[1]) + 0.1)  # noqa: B023
            f = lambda x, n: ad.while_loop(going, step, COUNTED[start](x, n), max_steps=most)[1].sum()  # noqa: B023
            compiled = ad.compile(use(f))
            x, n = np.array([0.5, 1.5]), np.int64(0)
            np.testing.assert_allclose(compiled(x, n), use(f)(x, n), rtol=1e-9)
            found.append(compiled.lower(x, n).graph.size())
        return found

    for use in (lambda f: f, *([ad.grad, ad.hessian] if bounded else [lambda f: ad.jacobian(f, mode="forward")])):
        few, many = sizes(use)
        assert few == many < 300


def _looked_up(x: Any) -> Any:
    table = [1.0, 2.0, 3.0]
    return ad.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * table[int(s[0])]), (0, x))[1]


def _drawn(x: Any) -> Any:
    return ad.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + ad.random.normal((2,))), (0, x))[1]


def _kept(x: Any) -> Any:
    seen: list[Any] = []
    ad.while_loop(lambda s: s[0] < 3, lambda s: (seen.append(s[1]), (s[0] + 1, s[1] * 2))[1], (0, x))
    return seen


@pytest.mark.parametrize("f", [_looked_up, _drawn, _kept])
def test_a_while_loop_whose_steps_ask_for_what_is_known_runs_them_one_by_one(f: Any) -> None:
    x = ad.tensor([0.5, 1.5])
    ad.random.seed(0)
    expected = f(x)
    ad.random.seed(0)
    for found, wanted in zip(ad.compile(f)(x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("use", ["value", "slope", "twice"])
def test_in_a_batch_no_check_of_a_branch_that_is_not_taken_holds(use: str, dynamic: Any) -> None:
    """Branches were recorded once for their kinds, and the checks of their indices stayed."""
    rows, number = ad.asarray(np.arange(10.0).reshape(2, 5)), ad.tensor(7)
    chosen = lambda x, i: ad.cond(i < x.shape[0], lambda x, i: ad.sin(x[i]), lambda x, i: x[0] * 2, x, i)
    counted = lambda x, i: ad.while_loop(
        lambda s: s[1] < x.shape[0], lambda s: (s[0] + x[s[1]] ** 2, s[1] + 1), (0.0 * x.sum(), 0), max_steps=9
    )[0]
    for f in (chosen, counted):
        g = {"value": f, "slope": ad.grad(f), "twice": ad.vmap(ad.grad(f), in_axes=(None, 0))}[use]
        second = number if use != "twice" else ad.stack([number, number + 1])
        h = ad.vmap(g, in_axes=(0, None))
        alike(ad.compile(h, dynamic=dynamic)(rows, second), h(rows, second), rtol=1e-12)
