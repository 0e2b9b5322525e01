"""Compiled functions of arrays whose sizes change: one graph for all sizes, and never a wrong one."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from each import Each
from functions import FUNCTIONS, Draw
from hypothesis import Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from test_compile_threads import together
from test_compiled import ASKS, alike, derivatives

import adjoint as ad
from adjoint import errors
from adjoint.compiler.graph import verify
from adjoint.compiler.sizes import Symbols, filled, is_size
from adjoint.primitives.sizes import square_root
from adjoint.random_keys import Replay, replayed

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 2))


def rows(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, 3))


def network(x: Any) -> Any:
    return ad.tanh(x @ ad.tensor(W))


# from (n, 3) to results, recorded once for all sizes from 2 on
GENERAL: dict[str, Any] = {
    "elementwise": lambda x: ad.sin(x) * x + 1,
    "network": network,
    "mean": lambda x: x.mean(),
    "fori_loop": lambda x: ad.fori_loop(0, x.shape[0], lambda i, c: c + i * x[i], x[0]),
    "gradient of a fori_loop": ad.grad(
        lambda x: ad.fori_loop(0, x.shape[0] - 1, lambda i, c: ad.sin(c) * x[i] + x[i + 1], x[0]).sum()
    ),
    "var": lambda x: x.var(axis=0),
    "gradient": ad.grad(lambda x: (network(x) ** 2).mean()),
    "value and gradient of parameters": lambda x: ad.value_and_grad(lambda w: (ad.tanh(x @ w) ** 2).mean())(
        ad.tensor(W)
    ),
    "hessian": lambda x: ad.hessian(lambda w: (ad.tanh(x @ w) ** 2).mean())(ad.tensor(W[:, 0])),
    "vmap": lambda x: ad.vmap(lambda row: ad.sin(row).sum())(x),
    "per-example gradients": lambda x: ad.vmap(ad.grad(lambda row: ad.sin(row).prod()))(x),
    "jvp": lambda x: ad.jvp(network, (x,), (x,)),
    "backward": lambda x: (lambda w: ((x @ w) ** 2).mean().backward()[w])(ad.tensor(W).require_grad()),
    "reshape": lambda x: (x.reshape((-1,)), x.reshape((3, -1)), x.reshape((x.shape[0] * 3,))),
    "concat": lambda x: ad.grad(lambda x: (ad.concat([x, 2 * x, x[:1]]) ** 2).sum())(x),
    "slices": lambda x: (x[:, 0], x[1:], x[:-1], x[::-1], x[0], x[-1], x[:, 1:]),
    "gradients of slices": ad.grad(lambda x: (x[1:] * x[:-1]).sum() + x[-1].sum() ** 2),
    "assignment": lambda x: assigned(x),
    "softmax": lambda x: ad.nn.softmax(x, axis=0),
    "sort": lambda x: (ad.sort(x, axis=0), ad.argmax(x, axis=0), ad.max(x)),
    "cumulative": ad.grad(lambda x: (ad.cumulative_sum(x, axis=0) ** 2).sum()),
    "arange": lambda x: ad.arange(x.shape[0]) * x[:, 0],
    "eye": lambda x: x @ x.T + ad.eye(x.shape[0]),
    "ones": lambda x: ad.ones((x.shape[0], 2)) + ad.zeros(x.shape[:1])[:, None] + ad.full(x.shape[0], 3)[:, None],
    "random": lambda x: ad.random.normal(x.shape) * x + ad.random.uniform(x.shape[:1])[:, None],
    "dropout": lambda x: ad.nn.dropout(x, 0.5),
    "scan": lambda x: ad.scan(lambda c, row: (ad.tanh(c + row), c.sum()), ad.zeros_like(x[0]), x),
    "gradient of scan": ad.grad(
        lambda x: ad.scan(lambda c, row: (ad.tanh(c + row), None), ad.zeros_like(x[0]), x)[0].sum()
    ),
    "cond": lambda x: ad.cond(x.sum() > 0, lambda x: x / x.shape[0], lambda x: -x, x),
    "while_loop": lambda x: ad.while_loop(lambda x: abs(x).sum() < 100, lambda x: 2 * x, x),
    "arithmetic": lambda x: (x.shape[0], x.shape[0] // 2, x.shape[0] / 2, 2 ** x.shape[0], x * (x.shape[0] + 2)),
    "size as a number": lambda x: (x.sum() / x.size, x.astype(ad.float32) * x.shape[0], ad.pow(x, len(x.shape))),
    "einsum": lambda x: ad.einsum("ij,kj->ik", x, x),
    "solve": lambda x: ad.linalg.solve(x.T @ x + x.shape[0] * ad.eye(3), ad.ones(3)),
    "where": lambda x: ad.where(x > 0, x, 0.0).sum(axis=0),
    "checkpoint": ad.grad(lambda x: ad.checkpoint(lambda x: ad.sin(ad.sin(x)).mean())(x)),
    "median": lambda x: ad.median(x, axis=0),
    "std": lambda x: x.std(axis=0),
    "cross entropy": lambda x: ad.grad(lambda x: ad.nn.cross_entropy(x, ad.zeros(x.shape[0], dtype=ad.int64)))(x),
}


def assigned(x: Any) -> Any:
    y = x.copy()
    y[0] = 1.0
    y[:, 1] = 0.0
    return y * x


# ... and those that choose by a size, or ask for it
ASKING: dict[str, Any] = {
    "if": lambda x: x if x.shape[0] > 3 else -x,
    "if not": lambda x: x if x.shape[0] != 5 else -x,
    "parity": lambda x: x * (x.shape[0] % 2),
    "odd": lambda x: x if x.shape[0] % 2 else -x,
    "truth": lambda x: x if x.shape[0] - 4 else -x,
    "literal": lambda x: x.reshape((4, 3)) if x.size == 12 else x,
    "range": lambda x: sum([x[i] for i in range(x.shape[0])]),
    "len": lambda x: x * len(x),
    "in": lambda x: x if x.shape[0] in (3, 4) else -x,
    "in a set": lambda x: x if x.shape[0] in {3, 4} else -x,
    "NumPy's functions": lambda x: x * np.sqrt(x.shape[0]) + np.add.reduce([x.shape[0], 2]),
    "no numbers": lambda x: x if x.shape[0] in (None, "4", Fraction(4), ...) and x.shape[0] != (4,) else -x,
    "NumPy's numbers": lambda x: x if np.int64(4) != x.shape[0] and x.shape[0] < np.float32(8) else -x,
    "an array of NumPy's": lambda x: x if (np.arange(3) < x.shape[0]).all() else -x,
    "dict": lambda x: x * {4: 2.0}.get(x.shape[0], 1.0),
    "text": lambda x: x if f"{x.shape[0]}" == "4" else -x,
    "isinstance": lambda x: x if isinstance(x.shape[0], int) else -x,
    "max": lambda x: x * max(x.shape[0], 4),
    "first three": lambda x: x[:3],
    "every second": lambda x: (x[::2], x[::-2]),
    "NumPy": lambda x: x + np.arange(x.shape[0])[:, None] + np.float64(2.0) * x.shape[0] + np.zeros(x.shape),
    "math": lambda x: x * np.sqrt(x.shape[0]) * float(x.shape[0]) * int(x.shape[0]) * round(x.shape[0] / 3),
    "unpacked": lambda x: ad.stack([*x]),
    "other axes": lambda x: x + ad.ones(3) if x.shape[0] == x.shape[1] else x.T,
    "bits": lambda x: x * (x.shape[0] & 1) * (x.shape[0] << 2) * (7 ^ x.shape[0]),
}

SIZES = (5, 4, 6, 3, 9, 2, 1, 7, 4, 12)


def same_numbers() -> Any:
    keys = Replay()
    keys.keys = [(0, i) for i in range(100)]
    return replayed(keys)


def compared(f: Any, sizes: Any, **options: Any) -> int:
    """Compare f compiled with f for arrays of these sizes; the number of recordings."""
    g = ad.compile(lambda x: f(x), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was recorded often
        for n in sizes:
            x = ad.tensor(rows(n))
            with same_numbers():
                expected = f(x)
            with same_numbers():
                alike(g(x), expected)
    return g._recordings


@pytest.mark.parametrize("name", GENERAL)
def test_one_graph_serves_for_all_sizes(name: str) -> None:
    assert compared(GENERAL[name], (5, 4, 6, 8, 6, 9, 2, 1, 7, 6)) == 3  # the first, the second, and one row
    compared(GENERAL[name], (2, 3, 5), dynamic=True)


def test_a_size_has_machine_code_of_its_own_when_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    f = ad.compile(lambda x: ad.sin(x) * x + 1)

    def general() -> list[bool]:
        return [program.symbols is not None for program in f._programs.values()]

    for n in (4, 5, *[6, 7] * 10):
        f(np.ones(n))
    assert general().count(False) == 1  # that of 4: others would take longer to make than they have saved so far
    f.compile(np.ones(6))
    assert general().count(False) == 2
    for _ in range(10):  # a million numbers are worth it soon
        f(np.ones(1_000_000))
    assert f._programs.popitem()[1].symbols is None
    assert f._recordings == 2


def around_tracked(f: Any) -> Any:
    def run(x: Any) -> Any:
        w = ad.tensor(x).require_grad()
        return f(w).sum().backward()[w]

    return run


AROUND: dict[str, Any] = {  # of a function of an array with one axis, which gives another one
    "value": lambda f: lambda x: f(ad.tensor(x)),
    "grad": lambda f: ad.grad(lambda x: f(x).sum()),
    "grad of grad": lambda f: ad.grad(lambda x: (ad.grad(lambda y: f(y).sum())(x) ** 2).sum()),
    "hessian": lambda f: ad.hessian(lambda x: f(x).sum()),
    "jacobian": lambda f: ad.jacobian(f),
    "jvp": lambda f: lambda x: ad.jvp(f, (x,), (x + 1,)),
    "vjp": lambda f: lambda x: ad.vjp(f, x)[1](x * 2),
    "vmap": lambda f: lambda x: ad.vmap(f)(x[:, None] + x),
    "vmap of grad": lambda f: lambda x: ad.vmap(ad.grad(lambda y: f(y).sum()))(x[:3, None] + x),
    "grad of vmap": lambda f: ad.grad(lambda x: ad.vmap(f, in_axes=1, out_axes=1)(x[:, None] * x).sum()),
    "jvp of grad": lambda f: lambda x: ad.jvp(ad.grad(lambda y: f(y).sum()), (x,), (x,)),
    "tracked": around_tracked,
}


@pytest.mark.parametrize("around", AROUND)
def test_a_new_size_in_a_transform_around_is_not_recorded(around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.compiler import rules

    recorded: list[int] = []
    placed = rules.placed
    monkeypatch.setattr(rules, "placed", lambda *args: (recorded.append(1), placed(*args))[1])
    f = ad.compile(lambda x: (ad.sin(x) * x.sum() + x[::-1]) / x.shape[0])
    compiled, plain = AROUND[around](f), AROUND[around](f.f)
    for n in (4, 5, 6, 7, 12, 5, 4, 7):
        x = np.linspace(0.0, 1.0, n)
        for found, expected in zip(*[ad.tree.leaves(h(x)) for h in (compiled, plain)], strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12, atol=1e-12)
        if n == 5:
            before = len(recorded)
    assert len(recorded) == before


def test_results_that_follow_from_a_size_belong_to_it() -> None:
    """A transform around has to see what is no tensor: a size, or one structure for small arrays, another for large."""

    @ad.compile
    def f(x: Any) -> Any:
        return (x * 2, x.shape[0], "small") if x.shape[0] < 6 else [x * 3]

    for n in (4, 5, 7, 8, 3, 5, 9, 4):
        w = ad.tensor(np.linspace(1.0, 2.0, n)).require_grad()
        out = f(w)
        if n < 6:
            assert isinstance(out, tuple)
            assert out[1:] == (n, "small")
        else:
            assert isinstance(out, list)
            assert len(out) == 1
        np.testing.assert_allclose(out[0].sum().backward()[w].numpy(), 2.0 if n < 6 else 3.0)


def test_which_results_have_cotangents_is_known_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.compiler import rules

    recorded: list[int] = []
    placed = rules.placed
    monkeypatch.setattr(rules, "placed", lambda *args: (recorded.append(1), placed(*args))[1])
    f = ad.compile(lambda x: (ad.sin(x), ad.cos(x) * x.sum(), x.sum()))
    for n in (4, 5, 6, 7, 8, 4, 6):
        x = np.linspace(0.0, 1.0, n)
        w = ad.tensor(x).require_grad()
        np.testing.assert_allclose(f(w)[0].sum().backward()[w].numpy(), np.cos(x), rtol=1e-12)
        if n == 6:
            before = len(recorded)
    assert len(recorded) == before


@pytest.mark.parametrize("around", ["grad", "vmap"])
def test_a_function_that_asks_for_a_size_is_named_in_a_transform_around(around: str) -> None:
    f = ad.compile(lambda x: sum([x[i] * (i + 1) for i in range(x.shape[0])]))
    run = ad.grad(f) if around == "grad" else lambda x: ad.vmap(f)(x[None])

    def calls() -> None:
        for n in range(2, 12):
            run(np.ones(n))

    with pytest.warns(RuntimeWarning, match=r"<lambda> was recorded 8 times, .*: argument 0 changes, from float64"):
        calls()


def test_other_results_have_cotangents_and_sizes_go_other_ways_at_once() -> None:
    """What serves for the results and sizes of one thread is not taken for those of another."""

    @ad.compile
    def f(x: Any) -> Any:
        return (ad.sin(x), x * x.sum()) if x.shape[0] > 6 else (x * 2, x**3)

    def run(k: int) -> None:
        for n in [4, 5, 7, 8, 5, 9, 4, 12, 6, 7] * 3:
            x = np.linspace(0.1, 1.0, n)
            w = ad.tensor(x).require_grad()
            slopes = (np.cos(x), 2 * x.sum() * np.ones(n)) if n > 6 else (2.0 * np.ones(n), 3 * x**2)
            which = (n + k) % 3
            y = f(w)
            loss = y[which].sum() if which < 2 else y[0].sum() + y[1].sum()
            expected = slopes[which] if which < 2 else slopes[0] + slopes[1]
            np.testing.assert_allclose(loss.backward()[w].numpy(), expected, rtol=1e-12)

    run(0)
    together(run)


def test_what_is_noted_of_results_stays_as_long_as_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.compiler import rules

    monkeypatch.setattr(rules, "MOST", 8)
    monkeypatch.setattr(rules, "KEPT", 3)
    f = ad.compile(lambda x: (sum([x[i] for i in range(x.shape[0])]), x.shape[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for n in [2, 3, 4, 5, 6, 2, 7, 8, 9, 10, 11, 12, 13, 12, 11, 2, 14, 15, 16, 17, 16, 15, 2, 3, 4]:
            w = ad.tensor(np.ones(n)).require_grad()
            y, size = f(w)
            assert size == n
            np.testing.assert_array_equal(y.backward()[w].numpy(), np.ones(n))
            assert ad.vmap(f)(np.ones((3, n)))[0].shape == (3,)


def test_many_bounds_of_a_size_are_two() -> None:
    """What a guard says of one symbol is put together; it holds for the same sizes as all of them."""
    rng = random.Random(0)
    for _ in range(2000):
        symbols = Symbols()
        symbols.values.update(n0=7, n1=3, f0=2.5)
        for _ in range(rng.randrange(1, 6)):
            name, factor, more = rng.choice(["n0", "n1", "f0"]), rng.choice([1, 2, 3, 8]), rng.choice([0, 0, 1, 5, -3])
            left = (f"{factor}*" if factor > 1 else "") + name + (f" {'+-'[more < 0]} {abs(more)}" if more else "")
            left = left if left.isidentifier() else f"({left})"
            symbols.guards[f"{left} {rng.choice(['<', '<=', '>', '>=', '=='])} {rng.randrange(40)}"] = (
                rng.random() < 0.5
            )
        texts = [f"({text})" if holds else f"not ({text})" for text, holds in symbols.guards.items()]
        found, all_of_them = map(symbols.function, (symbols.conditions, " and ".join(texts)))
        for n0, n1, f0 in itertools.product(range(0, 45, 3), range(0, 45, 7), (0.5, 2.0, 4.5)):
            assert found(n0, n1, f0) == all_of_them(n0, n1, f0), symbols.guards


@pytest.mark.slow
def test_sizes_that_come_often_have_machine_code_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    monkeypatch.setattr("adjoint.compiler.programs._to_make", lambda graph: 0.0)
    with Each() as each:
        for name, function in GENERAL.items():
            f = ad.compile(lambda x, function=function: function(x))
            with each(name):
                for n in (4, 5, 6, 7, 7, 6, 7, 6):
                    x = ad.tensor(rows(n))
                    with same_numbers():
                        expected = function(x)
                    with same_numbers():
                        found = f(x)
                    for ours, theirs in zip(*(ad.tree.flatten(y)[0] for y in (found, expected)), strict=True):
                        assert type(ours) is type(theirs)
                        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-12, atol=1e-12)
                general = [program.symbols is not None for program in f._programs.values()]
                assert general == [False, True, False, False]  # those of 4, 5, 6 and 7 rows
                assert f._recordings == 2


def test_a_size_is_not_compared_with_itself() -> None:
    """Whoever looks for nan does so: a guard would be tested in each call. What may become nan is compared."""
    for function, guards in ((lambda n: n**0.5 - 1.0, 0), (lambda n: (n * 1e308) * 1e308 - (n * 1e308) * 1e308, 1)):
        asked = ad.compile(lambda x, f=function: x if f(x.shape[0]) == f(x.shape[0]) else -x, dynamic=True)
        for n in (4, 7):
            np.testing.assert_array_equal(asked(np.ones(n)), np.ones(n) if not guards else -np.ones(n))
        (general,) = asked._general.values()
        assert [len(p.symbols.guards) for p in general.programs if p.symbols is not None] == [guards]


def test_a_size_that_is_another_by_chance_stays_a_symbol() -> None:
    def f(x: Any) -> Any:
        return x.sum() if x.shape[0] == x.shape[1] else x * 2

    g = ad.compile(f)
    for n in (5, 7, 9, 11, 7, 13, 15):  # of matrices of seven columns
        x = rows(n * 7).reshape(-1)[: n * 7].reshape(n, 7)
        np.testing.assert_allclose(g(x), f(x), rtol=1e-12)
    assert g._recordings == 3


@pytest.mark.parametrize("name", ASKING)
def test_who_asks_for_a_size_is_recorded_for_it(name: str) -> None:
    compared(ASKING[name], SIZES)
    compared(ASKING[name], SIZES, dynamic=True)


def test_axes_that_are_named_are_of_any_size_at_once() -> None:
    for dynamic, recordings in ((True, 1), ((0, 0), 1), ([(0, -1), 0], 1), ((0,), 2), (None, 2), (False, 3)):
        f = ad.compile(lambda x, y: (x @ y.T) * y.shape[0], dynamic=dynamic)
        for n, m in ((4, 5), (6, 7), (8, 5)):
            x, y = RNG.normal(size=(n, 3)), RNG.normal(size=(m, 3))
            np.testing.assert_array_equal(f(x, y), x @ y.T * m)
        assert f._recordings == recordings
    f = ad.compile(lambda module, x: module(x), dynamic=(None, 0))
    net = ad.nn.Linear(3, 2)
    for n in (4, 5):
        np.testing.assert_array_equal(f(net, ad.tensor(rows(n))).numpy(), net(ad.tensor(rows(n))).numpy())
    assert f._recordings == 1


@pytest.mark.parametrize(
    "device",
    ["reference", "autodiff<checked<numpy>>"]
    + [pytest.param(x, marks=pytest.mark.slow) for x in ("torch", "jax", "dask")],
)
def test_every_leaf(device: str) -> None:
    f = ad.value_and_grad(lambda x: (x[1:] ** 2 * ad.arange(1, x.shape[0])[:, None]).mean())
    g = ad.compile(f)
    for n in (4, 5, 6, 7):
        x = ad.tensor(rows(n), dtype=ad.float32, device=device)
        for found, expected in zip(g(x), f(x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    assert g._recordings == 2


def test_a_guard_that_divides_by_nothing_does_not_hold() -> None:
    f = ad.compile(lambda x: x if x.shape[0] == 3 or 12 % (x.shape[0] - 3) == 0 else -x, dynamic=True)
    for n in (5, 4, 3, 8, 6):
        np.testing.assert_array_equal(f(rows(n)), rows(n) if n == 3 or 12 % (n - 3) == 0 else -rows(n))


def test_axes_that_are_not_there_are_refused() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="dynamic is True, False, None"):
        ad.compile(ad.sin, dynamic=3)
    with pytest.raises(errors.AxisError, match="dynamic: axis 2 is out of range"):
        ad.compile(lambda x: x, dynamic=(2,))(rows(2))
    with pytest.raises(errors.ArgumentError, match="2 entries for 1 positional"):
        ad.compile(lambda x: x, dynamic=(0, 0))(rows(2))


def test_sizes_that_belong_together_stay_together() -> None:
    f = ad.compile(lambda x, y: (x * y).sum())
    for n in (4, 5, 6):
        np.testing.assert_array_equal(f(rows(n), rows(n)), (ad.tensor(rows(n)) * ad.tensor(rows(n))).sum().numpy())
    assert f._recordings == 2
    with pytest.raises(errors.ShapeError):
        f(rows(4), rows(5))
    np.testing.assert_array_equal(f(rows(7), rows(1)), (ad.tensor(rows(7)) * ad.tensor(rows(1))).sum().numpy())


def test_a_graph_with_symbols() -> None:
    f = ad.compile(lambda x: x.reshape((-1,)) / x.shape[0], dynamic=True)
    lowered = f.lower(rows(4))
    assert str(lowered) == (
        "inputs a: float64[n0, n1]\nb: float64[n0*n1] = reshape(a; shape=(n0*n1,))\n"
        "c: float64[n0*n1] = divide(b, n0)\noutputs c"
    )
    for n in (2, 4, 9):
        verify(lowered.graph.at({"n0": n, "n1": 3}))


def test_what_runs_later_knows_the_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, places: Any) -> Any:
        n = x.shape[0]
        ad.debug.callback(lambda total: print(f"{n} rows, {total.shape}"), x.sum(axis=1))
        return x[places]

    g, seen = ad.compile(f), []
    for n in (4, 5, 6):
        g(rows(n), np.array([n - 1]))
        seen.append(f"{n} rows, ({n},)")
    assert g._recordings == 2
    assert capsys.readouterr().out.splitlines() == seen
    for n in (7, 8):
        with pytest.raises(errors.OutOfRangeError) as later:
            g(rows(n), np.array([n]))
        with pytest.raises(errors.OutOfRangeError) as now:
            ad.tensor(rows(n))[np.array([n])]
        assert str(later.value) == str(now.value)


SOLVED: dict[str, Any] = {
    "root": lambda x: ad.implicit.root(lambda z: z + 0.3 * ad.tanh(z) - x, x * 0.5),
    "odeint": lambda x: ad.odeint(lambda z, t: ad.sin(x.sum()) - z, x, ad.asarray(np.array([0.0, 0.5])))[-1],
}


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("dynamic", [None, True])
def test_solvers_know_the_sizes(name: str, dynamic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the program for one size that is made of that for any, for machine code."""
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    for f in (SOLVED[name], lambda x: SOLVED[name](x[2:])):
        compiled = ad.compile(f, dynamic=dynamic)
        for n in (5, 5, 7, 7, 9, 5, 9, 9):
            x = ad.asarray(np.linspace(0.0, 1.0, n))
            np.testing.assert_allclose(compiled(x).numpy(), f(x).numpy(), rtol=1e-7)


class Sized(ad.nn.Module):
    weight: ad.Tensor
    n: Any


class Noted:
    def __init__(self, n: Any) -> None:
        self.n = n

    def __repr__(self) -> str:
        return f"Noted({self.n})"


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: {n: x},
        lambda x, n: {n, 2 * n},
        lambda x, n: Sized(weight=x * 1, n=n),
        lambda x, n: Sized(weight=x * 1, n=(n, [n + 1])),
        lambda x, n: slice(n, None),
        lambda x, n: Noted(n),
    ],
)
def test_results_have_no_symbols_in_their_keys_and_settings(f: Any, dynamic: Any) -> None:
    """There was n0 for 4, and twice in a dictionary."""
    sized = ad.compile(lambda x: f(x, x.shape[0]), dynamic=dynamic)
    rated = ad.compile(lambda x, r: f(x, r))
    for n in (3, 4, 5, 5):
        x = ad.ones(n)
        assert repr(sized(x)) == repr(f(x, n))
        assert repr(rated(x, n / 2)) == repr(f(x, n / 2))


def test_a_size_that_leaks_has_ended() -> None:
    kept: list[Any] = []
    place = type("Place", (), {"kept": kept})()
    f = ad.compile(lambda x: place.kept.append(x.shape[0]) or x, dynamic=True)  # type: ignore[func-returns-value]
    f(rows(3))
    for use in (int, lambda n: n + 1, lambda n: n < 3, float, lambda n: range(n), lambda n: f"{n:d}"):
        with pytest.raises(errors.EndedError, match="a size of a function that ad.compile recorded"):
            use(kept[0])


def test_the_warning_says_who_asks_for_a_size() -> None:
    f = ad.compile(lambda x: x * range(x.shape[0])[-1])  # who asks
    often = lambda: [f(rows(n)) for n in range(2, 12)]
    with pytest.warns(RuntimeWarning, match=r"float64\[\d, 3\].*asked for at .*# who asks"):
        often()


# --- random programs -------------------------------------------------------------------------------

CHANGES: list[Any] = [
    lambda x, r: ad.sin(x) * r.choice([x, 2.0, x.shape[0]]),
    lambda x, r: x + x.mean(axis=r.choice([0, 1, None]), keepdims=True),
    lambda x, r: ad.concat([x, x[: r.randint(0, 3)]], axis=0),
    lambda x, r: x[r.randint(0, 2) :],
    lambda x, r: x[: -r.randint(1, 2)] if x.shape[0] > 2 else x,
    lambda x, r: x.reshape((-1,)).reshape(x.shape),
    lambda x, r: x.reshape((x.shape[1], x.shape[0])).T,
    lambda x, r: ad.cumulative_sum(x, axis=r.randint(0, 1)),
    lambda x, r: x[::-1] * (x.shape[0] - r.randint(0, 3)),
    lambda x, r: x @ ad.ones((x.shape[1], r.randint(1, 4))),
    lambda x, r: (x.T @ x) / x.shape[0],
    lambda x, r: x * ad.arange(x.shape[0])[:, None],
    lambda x, r: ad.tanh(x) if x.shape[0] > r.randint(2, 5) else -x,
    lambda x, r: ad.pad(x, ((r.randint(0, 2), 1), (0, 0))),
    lambda x, r: ad.repeat(x, 2, axis=0),
    lambda x, r: ad.vmap(lambda row: row / (1 + (row * row).sum()))(x),
    lambda x, r: ad.grad(lambda x: (ad.sin(x) ** 2).mean())(x),
    lambda x, r: ad.where(x > 0, x, x.sum() / x.size),
    lambda x, r: x.reshape((2, -1)) if x.shape[0] % 2 == 0 else x,
    lambda x, r: ad.broadcast_to(x[:1], x.shape) + ad.eye(*x.shape),
    lambda x, r: ad.sort(x, axis=0),
    lambda x, r: ad.scan(lambda c, row: (c + row, ad.tanh(c)), ad.zeros_like(x[0]), x)[1],
]


def program(seed: int) -> Any:
    def f(x: Any) -> Any:
        r = random.Random(seed)
        for _ in range(r.randint(2, 10)):
            x = r.choice(CHANGES)(x, r)
        return x

    return r_nested(f, random.Random(-seed))


def r_nested(f: Any, r: random.Random) -> Any:
    """The function, or some transform of it."""
    return r.choice(
        [
            f,
            ad.grad(lambda x: (f(x) ** 2).mean()),
            lambda x: ad.jvp(f, (x,), (ad.ones_like(x),)),
            lambda x: ad.vmap(f)(ad.stack([x, 2 * x])),
            lambda x: ad.grad(lambda y: (ad.grad(lambda x: f(x).sum())(y) ** 2).sum())(x),
        ]
    )


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.slow)], ids=str)
def test_random_programs(seeds: Any) -> None:
    with np.errstate(all="ignore"):
        for seed in seeds:
            compared(program(seed), (4, 5, 2, 6, 3, 9))


@pytest.mark.slow  # 25 seconds
def test_every_function_at_other_sizes() -> None:
    served = 0
    for name in sorted(FUNCTIONS.keys() - ASKS.keys()):
        served += at_other_sizes(name)
    assert served > 400


def at_other_sizes(name: str) -> int:
    """Record derivatives of a function for any size, and compare where the graph serves for another one."""
    served = 0

    @seeded(0)
    @settings(max_examples=1, phases=[Phase.generate])
    @given(data=st.data())
    def run(data: Any) -> None:
        nonlocal served
        f, *args = FUNCTIONS[name](Draw(data))
        xs = [ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in args]
        arrays = [i for i, x in enumerate(xs) if isinstance(x, ad.Tensor)]
        slopes = derivatives(f)
        g = ad.compile(lambda *xs: slopes(*xs), dynamic=True)
        with np.errstate(all="ignore"), same_numbers():
            g(*xs)
        for p in [p for general in g._general.values() for p in general.programs]:
            assert p.symbols is not None
            for more in (1, 4):
                shapes = [tuple([n.value + more if is_size(n) else n for n in s]) for s in p.symbols.pattern]
                ys = list(xs)
                for i, shape in zip(arrays, shapes, strict=True):
                    ys[i] = ad.asarray(np.resize(xs[i].numpy(), shape))
                if not p.symbols.fits(shapes):
                    continue
                verify(p.graph.at(p.symbols.bind(shapes)))
                try:
                    with np.errstate(all="ignore"), same_numbers():
                        expected = slopes(*ys)
                except (errors.SingularError, errors.BackwardError):  # of numbers that are repeated
                    with pytest.raises(errors.AdjointError), np.errstate(all="ignore"), same_numbers():
                        g(*ys)
                else:
                    with np.errstate(all="ignore"), same_numbers():
                        alike(g(*ys), expected)
                    served += 1

    run()
    return served


# --- sizes -----------------------------------------------------------------------------------------

OPERATIONS: list[Any] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x // y if y != 0 else x,
    lambda x, y: x % y if y != 0 else y,
    lambda x, y: x / y if y != 0 else y,
    lambda x, y: -x if x < y else y + 1,
    lambda x, y: abs(x) if x >= y else x * 3,
    lambda x, y: math.ceil(x) + math.floor(y) if x == y else x - 2,
    lambda x, y: max(x, y) - min(x, 4),
    lambda x, y: square_root(x) if x >= 0 else math.floor(y / 2),
    lambda x, y: x**2 - math.ceil(x / 3),
    lambda x, y: (x * y) // y if y > 0 else divmod(x, 3)[1],
]


def computed(seed: int, a: Any, b: Any) -> Any:
    r, numbers = random.Random(seed), [a, b, 1, 3, 2.5]
    for _ in range(6):
        numbers.append(r.choice(OPERATIONS)(r.choice(numbers), r.choice(numbers)))
    return numbers


def test_arithmetic_of_sizes_is_that_of_numbers() -> None:
    for seed in range(200):
        symbols = Symbols()
        ((a, b),) = symbols.shapes([(4, 6)], {(0, 0), (0, 1)})
        with contextlib.suppress(OverflowError):
            found = computed(seed, a, b)
            symbols.is_open = False
            for n, m in itertools.product((4, 2, 5, 7), (6, 3, 9)):
                if symbols.fits([(n, m)]):
                    values = [filled(x, {"n0": n, "n1": m}) for x in found]
                    expected = computed(seed, n, m)
                    assert [(type(x), x) for x in values] == [(type(x), x) for x in expected]
