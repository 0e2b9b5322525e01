"""Machine code of choices and loops, of places that arrays name, and of lines, gives what NumPy gives."""

from __future__ import annotations

import math
import signal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native import arguments, close, program, same, steps
from test_native import native as native

import adjoint as ad
from adjoint.compiler.native.hoisting import hoisted
from adjoint.compiler.native.keeping import kept

pytest.importorskip("llvmlite")


def slow_ones(*values: Any) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


# --- choices and loops ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_have_vectors_of_any_length(dtype: str) -> None:
    """Small arrays of a loop are in registers, of 3 elements too, for which a processor has no instructions."""
    for n in (1, 2, 3, 5, 6, 7, 9, 13, 17):
        x = np.linspace(-0.9, 0.8, n).astype(dtype)
        for f in (ad.exp, ad.tanh, ad.nn.sigmoid):
            loop = lambda x, f=f: ad.scan(lambda c, _: (0.5 * f(c) + x, None), x, None, 3)[0].sum()
            close(ad.grad(loop), x, rtol=1e-4 if dtype == "float32" else 1e-10)


def random_choices(seed: int) -> None:
    """Random programs as the functions of a switch, and of a cond in a while_loop in a scan."""
    rng = np.random.default_rng(seed)
    programs = [program(rng, int(rng.integers(3, 12)), reductions=True) for _ in range(2)]
    arrays = arguments(rng, ("float32", "float64")[seed % 2], False)
    x, y, z, _ = (ad.asarray(np.round(x)) for x in arrays)

    def part(f: Callable[..., Any]) -> Callable[..., Any]:
        def run(x: Any, y: Any, z: Any) -> Any:
            left = [m for m in f(x, y, z) if m.shape == x.shape and m.dtype == x.dtype]
            return ad.clip(left[-1] + x if left else -x, -9.0, 9.0)

        return run

    one, other = map(part, programs)

    def whole(x: Any, y: Any, z: Any, k: Any) -> list[Any]:
        def turn(s: Any) -> Any:
            return s[0] + 1, ad.cond(s[1].sum() > 0, one, other, s[1], y, z)

        def step(c: Any, n: Any) -> Any:
            c = ad.while_loop(lambda s: s[0] < n, turn, (k * 0, c))[1]
            return c, c

        chosen = ad.switch(k, [one, other, lambda x, y, z: x], x, y, z)
        return [chosen, *ad.scan(step, x, ad.stack([k, k + 2, k * 0]))]

    f = ad.compile(whole)
    for k in (0, 1, 2, 5, -1):
        number = ad.asarray(np.int64(k))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = whole(x, y, z, number)
        same(f(x, y, z, number), expected)


@pytest.mark.parametrize("seed", [0, *[pytest.param(i, marks=pytest.mark.slow) for i in range(1, 24)]])
def test_random_choices(seed: int) -> None:
    random_choices(seed)


def test_choices_and_conditional_loops_are_machine_code() -> None:
    x = np.random.default_rng(6).normal(size=(3, 4)) + 0.2
    chosen = lambda x: ad.cond(x.sum() > 0, lambda x: (x**2).sum(), lambda x: (x**3).sum(), x)
    grown = lambda x: ad.while_loop(lambda s: (s**2).sum() < 1e3, lambda s: s * 1.3 + 0.1, x, max_steps=40)
    halved = lambda c, r: ad.cond(c > 1, lambda c: c / 2, lambda c: c + (r * r).sum(), c)
    inside = lambda x: ad.scan(lambda c, r: (halved(c, r), c), 0.0 * x[0, 0], x)
    for f in (
        chosen,
        ad.value_and_grad(chosen),
        ad.hessian(chosen),
        grown,
        ad.grad(lambda x: grown(x).sum()),
        inside,
        ad.grad(lambda x: inside(x)[0] + inside(x)[1].sum()),
    ):
        for sign in (1.0, -1.0):
            close(f, sign * x, rtol=1e-12)
        assert not steps(f, x)
    for f in (chosen, grown, ad.grad(lambda x: grown(x).sum())):
        close(ad.vmap(f), np.stack([x, -x]), rtol=1e-12)
        assert not steps(ad.vmap(f), np.stack([x, -x]))


def test_images_are_results_of_steps_and_branches() -> None:
    """They lie in memory with channels first and examples last, results as the loop has them."""
    rng = np.random.default_rng(7)
    x, w = rng.normal(size=(8, 3, 6, 5)), rng.normal(size=(3, 3, 3, 3)) * 0.2
    conv = lambda x, w: ad.nn.conv2d(x, w, padding=1)
    for f in (
        lambda x, w: ad.scan(lambda c, _: (conv(c, w), c * 2.0), x, None, 3),
        lambda x, w: ad.scan(lambda c, _: (c * 0.5, conv(c, w)), x, None, 3),
        lambda x, w: ad.scan(lambda c, _: (c * 0.5, (ad.nn.relu(conv(c, w)), conv(c, w)[:, 0])), x, None, 3),
        lambda x, w: ad.scan(lambda c, _: (c * 0.5, ad.nn.max_pool2d(conv(c, w), 2)), x, None, 3),
        lambda x, w: ad.scan(lambda c, _: (c * 0.5, ad.nn.avg_pool2d(conv(c, w), 2)), x, None, 3),
        lambda x, w: ad.cond(x.sum() > 0, conv, lambda x, w: x, x, w),
        lambda x, w: ad.while_loop(lambda c: (c * c).sum() > 1e-3, lambda c: conv(c, w) * 0.1, x, max_steps=9),
        lambda x, w: ad.while_loop(lambda c: (c * c).sum() > 1e-3, lambda c: conv(c, 0.1 * w), x, max_steps=9),
    ):
        for sign in (1.0, -1.0):
            close(f, sign * x, w, rtol=1e-11)
            first = lambda x, w, f=f: (ad.tree.flatten(f(x, w))[0][-1] ** 2).sum()
            close(ad.grad(first, argnums=(0, 1)), sign * x, w, rtol=1e-10)
        assert not steps(f, x, w)


def test_checks_in_machine_code_raise_what_is_raised_without() -> None:
    grown = ad.compile(lambda x: ad.while_loop(lambda s: s < 100.0, lambda s: s + 1.0, x, max_steps=9))
    with pytest.raises(ad.errors.ConvergenceError, match="max_steps=9"):
        grown(ad.tensor(0.0))
    assert grown(ad.tensor(98.0)).item() == 100.0
    picked = ad.compile(lambda x, i: ad.scan(lambda c, k: (c + x[k], c), 0.0 * x[0], i)[0])
    x = np.arange(4.0)
    assert picked(x, np.array([1, -1, 2])) == 6.0
    for _ in range(2):
        with pytest.raises(ad.errors.OutOfRangeError, match="4"):
            picked(x, np.array([1, 4, 2]))
    assert picked(x, np.array([3, 3, 3])) == 9.0


def test_a_failing_check_draws_no_other_numbers_and_shows_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        i = ad.random.integers(0, 1000, (3,))
        ad.debug.print("once {}", i.sum())
        return x[i]

    x = ad.arange(10.0)
    found = []
    for run in (f, ad.compile(f)):
        ad.random.seed(0)
        with pytest.raises(ad.errors.OutOfRangeError) as raised:
            run(x)
        found.append((str(raised.value).splitlines()[0], capsys.readouterr().out, ad.random.normal(()).item()))
    assert found[0] == found[1]
    assert found[0][1].count("once") == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt")
def test_an_endless_loop_can_be_interrupted() -> None:
    f = ad.compile(lambda x: ad.while_loop(lambda s: s >= 0.0, lambda s: s * 0.5, x))
    f(ad.tensor(-1.0))

    class Interrupt(BaseException):  # no KeyboardInterrupt, which would end the tests if it came beside the block
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupt):
            (signal.setitimer(signal.ITIMER_REAL, 0.1), f(ad.tensor(1.0)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


# --- places that arrays name ---

PICKS: dict[str, Callable[..., Any]] = {
    "rows": lambda x, i, j, m, n: x[i],
    "columns": lambda x, i, j, m, n: x[:, j],
    "both": lambda x, i, j, m, n: x[i, j],
    "grid": lambda x, i, j, m, n: x[m, n],
    "of a view": lambda x, i, j, m, n: x[::-1, 1:][i],
    "backwards": lambda x, i, j, m, n: x[i, ::-1],
    "new axis": lambda x, i, j, m, n: x[i, None],
    "number": lambda x, i, j, m, n: x[2, j],
    "transposed": lambda x, i, j, m, n: ad.permute_dims(x, tuple(range(x.ndim))[::-1])[..., i],
    "one": lambda x, i, j, m, n: x[i[0], j],
    "constant": lambda x, i, j, m, n: x[:, np.array([2, 2, 0])],
    "apart": lambda x, i, j, m, n: x[i, :, n[0, 0] % 2] if x.ndim > 2 else x[i],
    "along": lambda x, i, j, m, n: ad.take_along_axis(x, (x[::-1] > 0).astype(ad.int64), axis=1),
}


def assigned_to(x: Any, i: Any, j: Any, m: Any, n: Any) -> list[Any]:
    rows, columns, both, grid = (x.copy() for _ in range(4))
    rows[i], columns[:, j], both[i, j], grid[m, n] = x[0], x[:, :1], 1, x[3, 0]
    return [rows, columns, both, grid]


def joined_to(x: Any, i: Any, j: Any, m: Any, n: Any) -> list[Any]:
    scattered = [ad.scatter(x, (i, j), x[i, j], mode=mode) for mode in ("add", "multiply", "max", "min")]
    return [*scattered, *[getattr(ad, f"segment_{name}")(x[i], i % 6, 6) for name in ("sum", "max", "min", "prod")]]


@pytest.mark.parametrize("dtype", ["int16", *slow_ones("float32", "float64", "bool")])
@pytest.mark.parametrize("shape", [(6, 3, 1), *slow_ones((6, 40), (6, 7, 5))])
def test_places_that_arrays_name(dtype: str, shape: tuple[int, ...]) -> None:
    """Some several times, from behind, in any axes; sums of cotangents are in NumPy's order, so equal."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=shape) * 9
    x = x > 0 if dtype == "bool" else x.astype(dtype)
    i, j = rng.integers(-6, 6, 5), rng.integers(-shape[1], shape[1], 5)
    m, n = rng.integers(-6, 6, (3, 1)).astype(np.int32), rng.integers(0, shape[1], (1, 5)).astype(np.uint8)
    xs = [ad.asarray(a) for a in (x, i, j, m, n)]
    joins = joined_to if dtype != "bool" else lambda *xs: []
    f = lambda *xs: [*[pick(*xs) for pick in PICKS.values()], *assigned_to(*xs), *joins(*xs)]
    same(ad.compile(f)(*xs), f(*xs))
    assert not [line for line in steps(f, *xs) if "transpose" not in line]
    if dtype == "float64":
        slopes = [ad.grad(lambda *xs, pick=pick: (pick(*xs) ** 2).sum()) for pick in PICKS.values()]
        f = lambda *xs: [slope(*xs) for slope in slopes]
        same(ad.compile(f)(*xs), f(*xs))


# --- functions of lines ---


def lined(x: Any) -> list[Any]:
    """What moves elements, looks for them and adds them up along each axis and all; to the last bit of integers."""
    found = [ad.flip(x), ad.pad(x, ((2, 0), *[(0, 1)] * (x.ndim - 1)), value=1), ad.argmax(x), ad.argmin(x)]
    for axis in range(x.ndim):
        found += [ad.argmax(x, axis=axis), ad.argmin(x, axis=axis, keepdims=True), ad.flip(x, axis=axis)]
        found += [ad.roll(x, 2, axis=axis)]
        if x.dtype.kind != "b":
            found += [ad.cumulative_sum(x, axis=axis), ad.cumulative_prod(ad.clip(x, -1, 1), axis=axis)]
            found += [ad.cumulative_sum(x[::-1], axis=axis)]
    if x.ndim > 1:
        found += [f(x, k=k) for f in (ad.tril, ad.triu) for k in (-1, 0, 2)]
    return found


_TABLE, _PAIRS = np.linspace(-1, 1, 400).reshape(80, 5), np.array([[3, 1], [-2, 0], [3, 1], [79, 4], [0, -5], [3, 3]])
_READS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an element": lambda c, x, k: ad.sin(c * x[k[0], k[1]]) + x[k[0], 2],
    "a row": lambda c, x, k: ad.sin(c * x[k[0]]) * x[k[1]],
    "several rows": lambda c, x, k: (c * x[k]).sum(axis=0),
    "a part of a row": lambda c, x, k: c + ad.concat([x[k[0], 1:3], x[k[1], ::2]]),
    "places that are computed": lambda c, x, k: ad.cos(c) * x[(k[0] * 7 + k[1]) % 80],
    "a column": lambda c, x, k: c + (x[:, k[1]] ** 2).sum() * x[k[0]],
    "what another step reads": lambda c, x, k: ad.scan(lambda d, i: (ad.sin(d * x[i]) + x[i], None), c, k)[0],
}


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", _READS)
def test_sums_of_what_steps_read_are_behind_the_loop(name: str, reverse: bool) -> None:
    """Each step adds a few elements to the gradient of a table, and does not pass over all of it."""
    pairs, start = ad.tensor(_PAIRS), ad.ones(5, dtype=ad.float64)

    def f(x: Any) -> Any:
        return ad.scan(lambda c, k: (_READS[name](c, x, k), None), start, pairs, reverse=reverse)[0].sum()

    x = ad.tensor(_TABLE)
    gradient = ad.compile(ad.grad(f))
    loops = [e for e in hoisted(gradient.lower(x).graph).equations if e.name == "scan"]
    largest = max(math.prod(y.shape) for e in loops for y in e.results[: e.parameters["count"]])
    assert (largest == 400) == (name == "a column")  # which is as large as what is added
    for transformed in (
        ad.grad(f),
        lambda x: ad.hvp(f, (x,), (x + 1,)),
        lambda x: ad.vmap(ad.grad(f))(ad.stack([x, x / 2])),
        lambda x: ad.grad(lambda x: (ad.grad(f)(x) ** 2).sum())(x),
    ):
        expected = transformed(x)
        found = ad.tree.leaves(ad.compile(transformed)(x))
        for y, z in zip(found, ad.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-12, atol=1e-13)


_PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "of the carry": lambda c, w, x: ad.tanh(c @ w + x),
    "of a slice": lambda c, w, x: ad.tanh(c + x @ w),
    "of a transpose": lambda c, w, x: ad.tanh(c @ w.T + x),
    "from the left": lambda c, w, x: ad.tanh(w @ c.T + x.T).T,
    "of what a step computes": lambda c, w, x: ad.tanh(ad.sin(c * x) @ w),
    "of both": lambda c, w, x: ad.tanh((c + x) @ w) @ w.T,
    "of one row": lambda c, w, x: ad.tanh(c[:1] @ w) + x,
    "of a square": lambda c, w, x: ad.tanh(c @ (w @ w)) + x,
}


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", _PRODUCTS)
def test_products_of_all_steps_are_one_behind_the_loop(name: str, reverse: bool) -> None:
    rng = np.random.default_rng(3)
    w, start = ad.tensor(rng.normal(size=(12, 12)) / 3), ad.tensor(rng.normal(size=(4, 12)))
    xs = ad.tensor(rng.normal(size=(7, 4, 12)))

    def f(w: Any) -> Any:
        last, ys = ad.scan(lambda c, x: (_PRODUCTS[name](c, w, x), c.sum()), start, xs, reverse=reverse)
        return (last**2).sum() + (ys**2).sum()

    loops = [e for e in hoisted(ad.compile(ad.grad(f)).lower(w).graph).equations if e.name == "scan"]
    largest = max(math.prod(y.shape) for e in loops for y in e.results[: e.parameters["count"]])
    assert largest == (144 if name in ("of both", "of a square") else 48)  # a sum of two; one product in each step
    for transformed in (
        ad.grad(f),
        lambda w: ad.hvp(f, (w,), (w + 1,)),
        lambda w: ad.vmap(ad.grad(f))(ad.stack([w, w / 2])),
        lambda w: ad.grad(lambda w: (ad.grad(f)(w) ** 2).sum())(w),
        lambda w: ad.fori_loop(0, 3, lambda i, w: w - 1e-4 * ad.grad(f)(w), w),
    ):
        expected = transformed(w)
        found = ad.tree.leaves(ad.compile(transformed)(w))
        for y, z in zip(found, ad.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("name", "products"), [("of the carry", 1), ("of a slice", 0), ("of both", 4)])
def test_products_are_taken_from_the_loop_before(name: str, products: int) -> None:
    """A step of the gradient makes those that are its own."""
    rng = np.random.default_rng(3)
    w, start = ad.tensor(rng.normal(size=(12, 12)) / 3), ad.tensor(rng.normal(size=(4, 12)))
    xs = ad.tensor(rng.normal(size=(7, 4, 12)))
    for reverse in (False, True):
        f = lambda w, reverse=reverse: (
            ad.scan(lambda c, x: (_PRODUCTS[name](c, w, x), None), start, xs, reverse=reverse)[0] ** 2
        ).sum()
        close(ad.value_and_grad(f), w, rtol=1e-12)
        before = hoisted(ad.compile(ad.grad(f)).lower(w).graph)
        (_, old), (first, later) = (
            [e.graphs[0] for e in graph.equations if e.name == "scan"] for graph in (before, kept(before))
        )
        counts = [sum(e.name == "matmul" for e in g.equations) for g in (first, later)]
        assert counts[1] == products < sum(e.name == "matmul" for e in old.equations)


def test_products_are_taken_from_the_loop_before_in_each_step_of_another() -> None:
    """As where a loop trains a recurrent network."""
    rng = np.random.default_rng(5)
    w, start = ad.tensor(rng.normal(size=(12, 12)) / 3), ad.tensor(rng.normal(size=(2, 12)))

    def train(w: Any) -> Any:
        f = lambda w: (ad.scan(lambda c, _: (ad.tanh(c @ w), None), start, length=5)[0] ** 2).sum()
        return ad.fori_loop(0, 3, lambda _, w: w - 0.1 * ad.grad(f)(w), w)

    close(train, w, rtol=1e-12)
    (outer,) = [e for e in kept(hoisted(ad.compile(train).lower(w).graph)).equations if e.graphs]
    later = [e for e in outer.graphs[0].equations if e.name == "scan"][-1].graphs[0]
    assert [e.name for e in later.equations].count("matmul") == 1


def test_a_transpose_that_all_steps_read_is_made_once() -> None:
    """Of what is given to the loop, not of what it carries along or has a row of."""
    rng = np.random.default_rng(6)
    w, start = ad.tensor(rng.normal(size=(12, 12)) / 3), ad.tensor(rng.normal(size=(2, 12)))
    rows = ad.tensor(rng.normal(size=(4, 12, 12)) / 3)

    def f(w: Any) -> Any:
        step = lambda c, x: ((ad.tanh(c[0] @ w.T + c[0] @ x.T + c[0] @ c[1].T), c[1] * 0.5), c[0])
        (last, _), ys = ad.scan(step, (start, w), rows)
        return (last**2).sum() + ys.sum()

    close(ad.value_and_grad(f), w, rtol=1e-11)
    graph = kept(hoisted(ad.compile(f).lower(w).graph))
    (loop,) = [e for e in graph.equations if e.name == "scan"]
    assert [e.name for e in loop.graphs[0].equations].count("permute_dims") == 2
    assert [e.name for e in graph.equations].count("permute_dims") == 1


def test_values_of_other_rows_are_made_anew() -> None:
    """What a later loop makes of the carry, of rows of another loop, or in another order is no earlier product."""
    rng = np.random.default_rng(4)
    w, xs = ad.tensor(rng.normal(size=(5, 5)) / 3), ad.tensor(rng.normal(size=(6, 3, 5)))
    start = ad.zeros((3, 5), dtype=ad.float64)
    step = lambda c, x: (ad.tanh(c @ w + x @ w), c @ w)

    def f(xs: Any) -> Any:
        last, ys = ad.scan(step, start, xs)
        again, zs = ad.scan(step, last, ys)
        back, us = ad.scan(step, last, xs, reverse=True)
        return (again * back).sum() + (zs * us).sum()

    close(ad.value_and_grad(f), xs, rtol=1e-11)


def test_a_sum_of_no_steps_is_what_it_was() -> None:
    """And one that begins with -0 ends as eager."""
    x, none = ad.tensor(_TABLE[:, 0]), ad.zeros(0, dtype=ad.int64)
    for rows in (none, ad.asarray([0, 3, 3])):

        def f(x: Any, start: Any, rows: Any = rows) -> Any:
            def step(total: Any, k: Any) -> Any:
                return total + ad.grad(lambda x: x[k] ** 3)(x), None

            return ad.scan(step, start, rows)[0]

        start = ad.full(80, -0.0, dtype=ad.float64)
        expected, found = f(x, start).numpy(), ad.compile(f)(x, start).numpy()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["float32", *slow_ones("float64", "int16", "uint8", "bool")])
def test_functions_of_lines(dtype: str) -> None:
    """Extremes are the first of equal ones, or of nans."""
    rng = np.random.default_rng(9)
    for shape in ((1,), (23,), (4, 1), (5, 40), (3, 4, 5)):
        x = np.round(rng.normal(size=shape) * 2)
        if dtype.startswith("float"):
            x = np.where(rng.random(shape) < 0.1, rng.choice([np.inf, -np.inf, np.nan, -0.0], shape), x)
        with np.errstate(all="ignore"):
            a = ad.asarray(np.abs(x).astype(dtype) if dtype == "uint8" else x.astype(dtype))
            expected = lined(a)
        same(ad.compile(lined)(a), expected)
        views = "transpose", "v0["
        assert not [line for line in steps(lined, a) if not any(view in line for view in views)]


@pytest.mark.parametrize("dtype", ["float32", *slow_ones("float64")])
def test_norms_and_logarithms_of_sums(dtype: str) -> None:
    """Also where squares overflow, vanish, or are infinite."""
    rng, limits = np.random.default_rng(10), np.finfo(dtype)
    x = rng.normal(size=(9, 37)).astype(dtype)
    for row, factor in enumerate((limits.max / 64, limits.tiny, 0.0, math.sqrt(limits.tiny))):
        x[row] *= factor
    x[4, 5], x[5, 6], x[6, 7], x[6, 8] = np.inf, -np.inf, np.nan, np.inf
    x[7] = -np.inf
    close_rows(lambda x: [ad.linalg.vector_norm(x, axis=1), ad.linalg.vector_norm(x[3:], axis=0)], x)
    close_rows(lambda x: [ad.special.logsumexp(x, axis=1), ad.special.logsumexp(x, axis=0, keepdims=True)], x)
    close_rows(lambda x: [ad.nn.elu(x, 0.7), ad.nn.celu(x, 1.5), ad.nn.selu(x)], x)
    f = ad.grad(lambda x: ad.linalg.vector_norm(x, axis=1).sum() + ad.special.logsumexp(x, axis=0).sum())
    close(f, x[[3, 8]], rtol=1e-14 if dtype == "float64" else 2e-6)  # terms cancel
    close_rows(lambda i: ad.nn.one_hot(i, 5), np.array([[0, 4], [2, 1]]))


def close_rows(f: Any, x: Any) -> None:
    """Within some units in the last place, element by element, and specials are the same."""
    with np.errstate(all="ignore"):
        expected = ad.tree.flatten(f(ad.asarray(x)))[0]
    for a, b in zip(ad.tree.flatten(ad.compile(f)(ad.asarray(x)))[0], expected, strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14 if x.dtype == np.float64 else 2e-6)
    assert not steps(f, x)


# --- integers ---


@pytest.mark.parametrize("dtype", ["int8", *slow_ones("int32", "int64", "uint8", "uint64")])
def test_divisions_and_shifts_of_integers_are_numpys(dtype: str) -> None:
    """Also by zero, of the least number by -1, and by more bits than there are."""
    rng, limits = np.random.default_rng(7), np.iinfo(dtype)
    divided = lambda x, y: [x // y, x % y, y // 3, y % 3, 7 // y, x[::-1] // y[::-1]]
    f = lambda x, y, z: [*divided(x, y), x << z, x >> z, ad.clip(x, 3, 50), ad.sign(y), (x + y).sum()]
    for size in (1, 7, 40):
        x = rng.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
        y, z = (rng.integers(max(limits.min, low), high, size).astype(dtype) for low, high in ((-4, 5), (-3, 70)))
        x[0], y[0] = limits.min, max(limits.min, -1)
        xs = [ad.asarray(a) for a in (x, y, z)]
        with np.errstate(all="ignore"):
            same(ad.compile(f)(*xs), f(*xs))
        assert size == 1 or not steps(f, *xs)


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 8])
def test_parts_of_a_vector_that_steps_write_in_turn(n: int) -> None:
    """Of these LLVM 22 made one vector before the last of them was there, and ended the process."""

    def last(x: Any) -> Any:
        change = lambda y: x * ad.concat([ad.ones(1, dtype=ad.float64), y[:-1]])

        def step(y: Any, _: Any) -> Any:
            a = change(y)
            b = change(y + 0.5 * a)
            c = change(y + 0.5 * b)
            return y + (a + 2 * (b + c) + change(y + c)) / 6, None

        return ad.scan(step, ad.zeros_like(x), None, length=3)[0][-1]

    x = np.linspace(0.1, 0.9, n)
    found, wanted = ad.compile(ad.grad(last))(x), ad.grad(last)(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_one_integer_of_a_vector() -> None:
    """Of it LLVM 22 made a truncation to as many bits, and ended the process."""
    whole = lambda b: ad.astype(abs(ad.astype(b, ad.uint8))[:1], ad.float32)
    f = ad.compile(lambda p, b: ad.cond(p, whole, lambda b: ad.sqrt(b)[:1], b))
    b = np.array([True, False, True, True])
    assert [f(np.bool_(p), b).tolist() for p in (True, False)] == [[1.0], [1.0]]
