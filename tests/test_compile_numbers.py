"""Python's numbers among the arguments of compiled functions: traced from their second value on, and still Python's."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import random
import warnings
from typing import Any

import numpy as np
import pytest
from test_compile import LEAVES, X, counted

import adjoint as ad
from adjoint import errors


def test_an_integer_that_changes_is_traced() -> None:
    f, runs = counted(lambda x, n: (x * n, n + 1))
    for n in range(5):
        out, after = f(ad.tensor(X), n)
        assert after == n + 1
        assert type(after) is int
        np.testing.assert_array_equal(out.numpy(), (ad.tensor(X) * n).numpy())
    assert len(runs) == 2


@pytest.mark.parametrize("dtype", [ad.float32, ad.float64, ad.complex64, ad.int32])
@pytest.mark.parametrize(
    ("f", "often"),
    [
        (lambda x, r: x * r + r, 2),
        (lambda x, r: (1 - r) ** 2 / 3 * x, 2),
        (lambda x, r: (r, -r, 2.0**r, x / r, r / (x + 3)), 2),
        (lambda x, r: ad.where(x.real > 2 * r, r, x.real), 2),
        (lambda x, r: ad.maximum(x.real, r), 2),
        (lambda x, r: ad.full((2,), r) + ad.asarray(r), 6),  # not yet
        (lambda x, r: x if r > 0.25 else -x, 3),
        (lambda x, r: x * min(r, 0.25), 3),
        (lambda x, r: x * math.sin(r), 6),
        (lambda x, r: ad.scan(lambda c, _: (c * r - 1 / r, c), x * 1.0, None, length=3)[0], 2),
        (lambda x, r: ad.cond(x.real.sum() > 0, lambda y: y * r, lambda y: y / r, x * 1.0), 2),
        (lambda x, r: ad.grad(lambda y: (y.real * r).sum() ** 2)(x * 1.0), 2),
        (lambda x, r: ad.vmap(lambda y: y * r)(x), 2),
        (lambda x, r: ad.checkpoint(lambda y: ad.sin(y * r))(x), 2),
    ],
)
def test_a_float_that_changes_is_traced(f: Any, often: int, dtype: Any) -> None:
    g, runs = counted(f)
    x = ad.tensor([0.5, -1.5]).astype(dtype)
    for r in (0.1, 0.2, 0.3, -0.3, 3.0):
        for found, expected in zip(ad.tree.leaves(g(x, r)), ad.tree.leaves(f(x, r)), strict=True):
            assert type(found) is type(expected)
            assert getattr(found, "dtype", None) is getattr(expected, "dtype", None)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert len(runs) == often
    with contextlib.suppress(ZeroDivisionError), np.errstate(all="ignore"):
        expected = ad.tree.leaves(f(x, 0.0))
        for found, wanted in zip(ad.tree.leaves(g(x, 0.0)), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_numbers_of_which_one_has_to_be_itself() -> None:
    f, runs = counted(lambda x, n, r, s: sum([x * r] * n, x) if s < 0.5 else x)
    for k in range(1, 8):
        np.testing.assert_allclose(f(X, k % 2, 1.5 * k, 0.1), X + (k % 2) * X * 1.5 * k)
    runs.clear()
    for k in range(1, 8):
        np.testing.assert_allclose(f(X, k % 2, 2.5 * k, 0.1), X + (k % 2) * X * 2.5 * k)
    assert not runs
    np.testing.assert_array_equal(f(X, 1, 3.0, 0.7), X)


@pytest.mark.parametrize(
    "f", [lambda x, n, r: x * (n * r), lambda x, n, r: x + (r - n) ** 2, lambda x, n, r: (x, n * r)]
)
def test_an_integer_beside_a_float_is_as_exact_as_both(f: Any) -> None:
    g = ad.compile(f)
    for n, r in ((1, 0.1), (2, 0.3), (3, 0.7)):
        for x, y in zip(ad.tree.leaves(g(X, n, r)), ad.tree.leaves(f(X, n, r)), strict=True):
            assert type(x) is type(y)
            np.testing.assert_array_equal(x, y)


def test_zeros_and_infinities_of_a_traced_float() -> None:
    f, runs = counted(lambda x, r: (-r, x * r, r * x))
    for r in (1.0, 0.0, -0.0, math.inf, -math.inf):
        for found, expected in zip(f(X, r), (-r, X * r, r * X), strict=True):
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
            np.testing.assert_array_equal(found, expected)
    assert len(runs) == 2
    np.testing.assert_array_equal(f(X, math.nan)[1], [math.nan] * 2)
    inverse = ad.compile(lambda x, r: x * (1 / r))
    np.testing.assert_array_equal(inverse(X, 1.0) - inverse(X, 2.0), X / 2)
    with pytest.raises(ZeroDivisionError):
        inverse(X, 0.0)


def test_a_float_is_as_it_is_where_levels_see_the_call() -> None:
    f, runs = counted(lambda x, r: (x * r).sum())
    w = ad.tensor(X).require_grad()
    for r in (0.5, 2.0, 3.0):
        f(X, r)
    assert len(runs) == 2
    for r in (0.5, 2.0):
        np.testing.assert_array_equal(f(w, r).backward()[w].numpy(), [r, r])
        np.testing.assert_array_equal(ad.grad(lambda x, r=r: f(x, r))(X), [r, r])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x * (n / 3),  # which an integer tensor would give in float32
        lambda x, n: sum([x] * n, x),
        lambda x, n: x if n > 2 else -x,
        lambda x, n: ad.zeros(n) + x.sum(),
        lambda x, n: (x.astype(ad.int8) * n, n / 2),
    ],
)
def test_an_integer_that_has_to_be_one_is_no_tensor(f: Any) -> None:
    g = ad.compile(f)
    for n in range(1, 5):
        for x, y in zip(ad.tree.leaves(g(ad.tensor(X), n)), ad.tree.leaves(f(ad.tensor(X), n)), strict=True):
            assert type(x) is type(y)
            assert getattr(x, "dtype", None) is getattr(y, "dtype", None)
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize(
    "f",
    [
        lambda n: n + 1,
        lambda n: n - 1,
        lambda n: n * n,
        lambda n: n**3,
        lambda n: 2 ** (n % 100),
        lambda n: 2 ** (n if abs(n) < 99 else -1),
        lambda n: 2 ** (n // max(abs(n) // 9, 1)),
        lambda n: n << 3,
        lambda n: (-n, abs(n), ~n, n & 6, n | 1, n ^ 3),
        lambda n: sum([n, n]),
        lambda n: (n + 1) / 2,
        lambda n: ad.ones(2) * (n * n),
        lambda n: ad.arange(3) * (n * n),
        lambda n: 1 // n,
        lambda n: 7 % (n - 3),
        lambda n: ad.ones(2) * (1 / (n - 3)),
        lambda n: ad.fori_loop(0, 3, lambda i, c: c + n * n * n * (i + 1), ad.zeros(2)),
        lambda n: ad.where(ad.ones(2) > 0, n * n * n, 0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*was recorded 8 times")
def test_an_integer_has_as_many_digits_as_pythons(f: Any) -> None:
    """They wrapped at 64 bits, and 1 // 0 was 0."""
    g = ad.compile(f)
    for n in (1, 2, 3, -1, -3, 0, 70, 2**31 - 1, 2**31, 2**32, -(2**32), 2**40, 2**62, 2**63 - 1, -(2**63), 2**80):
        try:
            with np.errstate(all="ignore"):
                expected = f(n)
        except (ZeroDivisionError, errors.AdjointError) as error:
            with pytest.raises(type(error)):
                g(n)
            continue
        with np.errstate(all="ignore"):
            assert repr(g(n)) == repr(expected)


@pytest.mark.parametrize("dtype", [ad.int8, ad.uint8, ad.int32, ad.uint64, ad.int64, ad.bool, ad.float16])
def test_an_integer_takes_the_type_of_what_the_function_makes(dtype: Any) -> None:
    """A constant of int8 beside a number of Python's became int64 from the number's second value on."""
    for f in (
        lambda x, n: ad.ones(2, dtype=dtype) * n,
        lambda x, n: ad.ones(2, dtype=dtype) - (n + 1),
        lambda x, n: x * n,
        lambda x, n: ad.fori_loop(0, 3, lambda i, c: c * n, ad.ones(2, dtype=dtype) * 1) if dtype != ad.bool else x,
        lambda x, n: ad.scan(lambda c, y: (c + ad.ones(2, dtype=dtype) * n, y), x * n, None, 2)[0],
    ):
        g, x = ad.compile(f), ad.ones(2, dtype=dtype)
        for n in (1, 2, 3, 4):
            found, expected = g(x, n), f(x, n)
            assert found.dtype is expected.dtype
            assert found.tolist() == expected.tolist()


def test_a_number_is_pythons_whoever_asks() -> None:
    """An integer was a tensor from its second value on: no `int`, and text that says so."""
    for f in (
        lambda n: isinstance(n, int),
        lambda n: isinstance(n + 1, (int, str)),
        lambda n: (str(n), f"{n}", f"{n:.2f}", format(n)),
        lambda n: type(n),
        lambda n: type(n) is int,
        lambda n: complex(n, 1),
        lambda n: (n, [n], {"n": n}, {n: n}, {n}, slice(n), range(int(n))),
        lambda n: np.arange(5) * n,
        lambda n: np.sqrt(n),
        lambda n: "ab" * int(n),
        lambda n: [1, 2, 3, 4, 5][int(n)],
        lambda n: n in (1, 2),
        lambda n: n or 3,
        lambda n: divmod(n, 2),
        lambda n: pow(n, 2),
        lambda n: n.real + n.imag,
        lambda n: ad.ones(6).reshape(n, -1) if isinstance(n, int) else n,
        lambda n: ad.ones(6).sum(axis=int(n - n)),
        lambda n: (n - 9) ** 0.5,
        lambda n: ad.arange(4)[n] if isinstance(n, int) else n,
        lambda n: ad.ones(3, dtype=ad.int32) + n if isinstance(n, int) else n,
        lambda n: ad.ones(3, dtype=ad.bool) * n,
        lambda n: ad.asarray([n, 2]),
        lambda n: ad.clip(ad.arange(5.0), n, 3),
        lambda n: ad.ones(3) ** n,
        lambda n: ad.fori_loop(0, 3, lambda i, c: c + n * i, ad.zeros(2) + n),
    ):
        for values in ((1, 2, 3, 2), (1.0, 2.0, 3.0, 2.0)):
            g = ad.compile(f)
            for n in values:
                with ad.disable_compile():
                    expected = g(n)
                assert repr(g(n)) == repr(expected)


@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x, n: x * (-2) ** n, [1, 2, 3, 4, 0]),  # was -(2**n)
        (lambda x, n: x * ((-1) ** (n + 1) * -(3**n) * (-2.0) ** n), [1, 2, 3, 4, 0]),
        (lambda x, n: x * abs(n), [1.0, 2.0, -0.0, 0.0, -3.0]),
        (lambda x, n: x * (abs(n) + abs(n - 3)), [1, -2, 5, 0]),
        (lambda x, n: x * (7 if n != n else 3), [1.0, 2.0, math.nan, 3.0]),
        (lambda x, n: x * (7 if n == n else 3), [1.0, 2.0, math.nan, 3.0]),
        (lambda x, n: x * ((n + 1) * n // (n + 1) + (n + 1) * 2 % (n + 1)), [1, 2, 3, -1, 4]),  # by zero
        (lambda x, n: x * (pow(n, 3, 5) + pow(2, n, 7)), [1, 2, 3, 4]),
        (lambda x, n: x[n:] * n, [0, 1, 2, -1, 5]),
        (lambda x, n: ad.concat([x[:n] * 2, x[n : n + 1], x[1:][:-n]]), [1, 2, 3, -1]),
        (lambda x, n: ad.grad(lambda y: (y[n:] ** 2).sum())(x), [0, 1, 2, -1]),
        (lambda x, n: ad.vmap(lambda y: y[n:] * n)(ad.stack([x, x])), [0, 1, 2, -1]),
    ],
)
@pytest.mark.parametrize("size", [3, 4])
def test_arithmetic_with_a_number_that_changes_is_pythons(f: Any, values: Any, size: int) -> None:
    g, sizes = ad.compile(f), itertools.cycle([3, size])
    for n in values:
        x = ad.asarray(np.array([1.0, 2.0, -3.0, 0.5])[: next(sizes)])
        try:
            expected = f(x, n).numpy()
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                g(x, n)
            continue
        np.testing.assert_array_equal(g(x, n), expected)
        np.testing.assert_array_equal(np.signbit(g(x, n)), np.signbit(expected))


def test_random_arithmetic_with_numbers_that_change() -> None:
    rows: list[Any] = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv]
    rows += [lambda a, b: a ** (b % 4), lambda a, b: abs(a), lambda a, b: -a, lambda a, b: divmod(a, b)[1]]
    rows += [lambda a, b: min(b, a), lambda a, b: a if a == b else -b, lambda a, b: math.ceil(a / 2)]

    def computed(seed: int, a: Any, b: Any) -> Any:
        r, numbers = random.Random(seed), [a, b, 1, -2, 3, -2.5, 0.0]
        for _ in range(6):
            numbers.append(r.choice(rows)(r.choice(numbers), r.choice(numbers)))
        return numbers

    for seed in range(100):
        f = ad.compile(lambda a, b, seed=seed: computed(seed, a, b))
        for a, b in ((1, 2.0), (3, 0.5), (-2, 2.0), (4, -0.0), (0, -1.5), (-1, math.inf), (5, math.nan)):
            found = []
            for run in (f, lambda a, b, seed=seed: computed(seed, a, b)):
                try:
                    found.append(repr([x.item() if isinstance(x, ad.Tensor) else x for x in run(a, b)]))
                except (ArithmeticError, TypeError, ValueError) as error:  # a complex number, a ceiling of nan
                    found.append(type(error).__name__)
            assert found[0] == found[1], (seed, a, b)


def test_a_comparison_is_recorded_for_what_it_gives() -> None:
    f, runs = counted(lambda x, n, r: (x if n % 3 == 0 else -x) * (r if r < 1 else 1 / r))
    for n in range(1, 30):
        r = n / 9
        np.testing.assert_array_equal(f(X, n, r), (X if n % 3 == 0 else -X) * (r if r < 1 else 1 / r))
    assert len(runs) == 5
    with pytest.raises(ZeroDivisionError):
        ad.compile(lambda x, n: x * (1 / n) if n < 3 else x)(X, 0)
    g, runs = counted(lambda x, n: x * next(k for k in range(99) if k == n))
    with pytest.warns(RuntimeWarning, match="argument 1 changes, and with it what comparisons give"):
        found = [g(X, n) for n in range(1, 25)]
    np.testing.assert_array_equal(found, [X * n for n in range(1, 25)])
    assert len(runs) == 24


def test_sizes_and_numbers_that_change_together() -> None:
    f, runs = counted(lambda x, n, r: sum([x * r] * n, x))
    for size in range(2, 12):
        x = np.ones(size)
        np.testing.assert_array_equal(f(x, size % 2 + 1, size / 2), x + x * (size / 2) * (size % 2 + 1))
    assert len(runs) < 8
    np.testing.assert_array_equal(f(np.ones(3), 2, 0.5), [2.0] * 3)


def test_a_tensor_made_of_an_integer_is_one() -> None:
    """From the number's second value on it was Python's number."""
    for f in (ad.asarray, lambda n: ad.add(n, n), lambda n: ad.maximum(n, 2), lambda n: [n + 1, ad.asarray(n) + 1]):
        g = ad.compile(f)
        for n in (1, 2, 3):
            assert repr(g(n)) == repr(f(n))


@pytest.mark.parametrize("device", LEAVES)
@pytest.mark.parametrize("values", [(0.1, 0.2, -3.0), (1, 2, -3)], ids=["floats", "integers"])
def test_a_number_that_changes_on_every_leaf(values: Any, device: str) -> None:
    """Also on JAX, which has no array as exact as Python's numbers: there each is recorded."""

    def f(x: Any, r: float) -> dict[str, Any]:
        slope = ad.grad(lambda y: (y * y * r).sum())(x)
        return {"rate": 2 * r, "value": x * r + (1 - r) ** 2 / 3, "slope": slope}

    around = ad.grad(lambda y, h, r: (h(y, r)["value"] ** 2).sum())
    g, x = ad.compile(f), ad.tensor(X, dtype=ad.float32, device=device)
    for r in values:
        found, expected = g(x, r), f(x, r)
        assert found["rate"] == expected["rate"]
        for name in ("value", "slope"):
            assert found[name].dtype is expected[name].dtype
            np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), rtol=1e-6)
        np.testing.assert_allclose(around(x, g, r).numpy(), around(x, f, r).numpy(), rtol=1e-6)


@pytest.mark.parametrize("values", [range(1, 9), [k + 0.5 for k in range(8)]], ids=["integers", "floats"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        *(ad.grad, ad.value_and_grad, ad.hessian, ad.checkpoint),
        lambda f: ad.vmap(f, in_axes=(0, None)),
        lambda f: ad.vmap(ad.grad(f), in_axes=(0, None)),
        lambda f: lambda x, n: ad.jvp(lambda x: f(x, n), (x,), (x * n,)),
        lambda f: ad.grad(lambda x, n: ad.scan(lambda c, y: (c * n, f(y, n) + c), f(x, n), x)[1].sum()),
    ],
)
def test_numbers_beside_what_is_differentiated_are_traced(transform: Any, values: Any) -> None:
    f = lambda x, n: (x**2 * n).sum() / (n + 1)
    way = transform(f)
    compiled = ad.compile(way)
    for n in values:
        for found, expected in zip(ad.tree.leaves(compiled(X, n)), ad.tree.leaves(way(X, n)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert compiled._recordings == 2


def of_scalars(f: Any) -> Any:
    """A function whose results are one number that depends on all that is in them."""
    return lambda x, n: sum((ad.cos(y) * y).sum() for y in ad.tree.leaves(f(x, n)) if isinstance(y, ad.Tensor))


def third(f: Any) -> Any:
    slope = lambda x, n: ad.grad(f)(x, n).sum()
    return ad.grad(lambda x, n: ad.grad(slope)(x, n).sum())


def pulled(f: Any) -> Any:
    """Derivatives by a leaf, twice from one graph."""

    def run(x: Any, n: Any) -> Any:
        leaf = ad.tensor(x).require_grad()
        loss = f(leaf, n)
        return loss.detach(), loss.backward(retain_graph=True)[leaf], loss.backward()[leaf]

    return run


AROUND = {
    "grad": ad.grad,
    "hessian": ad.hessian,
    "third": third,
    "jvp": lambda f: lambda x, n: ad.jvp(lambda x: f(x, n), (x,), (x + 1,)),
    "jvp of grad": lambda f: lambda x, n: ad.jvp(lambda x: ad.grad(f)(x, n), (x,), (x + 1,)),
    "vmap": lambda f: lambda x, n: ad.vmap(f, in_axes=(0, None))(np.stack([x, x + 1]), n),
    "vmap of grad": lambda f: lambda x, n: ad.vmap(ad.grad(f), in_axes=(0, None))(np.stack([x, x + 1]), n),
    "grad of vmap": lambda f: lambda x, n: ad.grad(lambda z: ad.vmap(lambda x: f(x, n))(z).sum())(np.stack([x, x])),
    "backward": pulled,
    "backward of vmap": lambda f: pulled(lambda x, n: ad.vmap(lambda x: f(x, n))(ad.stack([x, x + 1])).sum()),
}
WITH_NUMBERS = {  # functions of an array and a number, with the recordings of 1, 2, 3, 4
    "products": (lambda x, n: (x * n + n, (1 - n) ** 2 / 3 * x * x), 2),
    "quotients": (lambda x, n: (x / (n + 9), n / (x * x + 1)), 2),
    "powers": (lambda x, n: (x**n, (n * n + 1) ** x), 2),
    "choices": (lambda x, n: (ad.where(x > 2 * n, n * x * x, x), ad.maximum(x * x, n), ad.clip(x, -1, n)), 2),
    "comparisons": (lambda x, n: x * x * n if n > 2 else {"small": -x}, 3),
    "the least": (lambda x, n: x * min(n, 2.5) * x * abs(n), 3),
    "values": (lambda x, n: x * x * len(f"{n}"), 5),
    "results": (lambda x, n: (x * x * n, 2 * n), 5),
    "loops": (lambda x, n: ad.scan(lambda c, _: (c * n - 1 / (n + 9), c), x * 1.0, None, length=3)[0], 2),
    "conditions": (lambda x, n: ad.cond(x.sum() > 0, lambda y: y * n * y, lambda y: y / n, x * 1.0), 2),
    "derivatives inside": (lambda x, n: ad.grad(lambda y: ((y * n) ** 3).sum())(x), 2),
    "recomputed": (lambda x, n: ad.checkpoint(lambda y: ad.sin(y * n) * y)(x), 2),
    "constants": (lambda x, n: x * 0 + n * n, 2),
}


@pytest.mark.parametrize("kind", [int, lambda n: n / 8], ids=["integers", "floats"])
@pytest.mark.parametrize("transform", AROUND)
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers_are_traced_inside_of_transforms(name: str, transform: str, kind: Any) -> None:
    """Each value was recorded anew."""
    f, often = WITH_NUMBERS[name]
    way = AROUND[transform]
    compiled = ad.compile(of_scalars(f))
    x = np.linspace(0.3, 1.2, 4)
    for k, n in enumerate([1, 2, 3, 4, -3, 0, 2**40, 1]):
        if k == 4:
            assert compiled._recordings <= often
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* was recorded 8 times")
            found, expected = way(compiled)(x, kind(n)), way(of_scalars(f))(x, kind(n))
        for a, b in zip(ad.tree.leaves(found), ad.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-12)


def custom(rule: Any) -> Any:
    """A function whose backward rule computes with a number."""

    def f(x: Any, n: Any) -> Any:
        g = ad.custom_vjp(lambda y: y * 1.0)
        g.defvjp(lambda y: (y * 1.0, None), lambda _, cotangent: (cotangent * rule(n),))
        return (g(x) ** 2).sum()

    return f


@pytest.mark.parametrize("transform", ["grad", "vmap of grad", "grad of vmap", "backward", "backward of vmap"])
@pytest.mark.parametrize(
    "rule",
    [
        lambda n: n * n,
        lambda n: 2.0 if n > 2 else 3.0,  # a comparison that the function itself does not make
        lambda n: len(f"{n}"),
        lambda n: 2**n,  # no integer for -1
    ],
)
def test_backward_rules_compute_with_numbers(rule: Any, transform: str) -> None:
    way, f = AROUND[transform], custom(rule)
    compiled = ad.compile(f)
    for n in (1, 2, 3, -1, 3, -2, 40):
        found, expected = way(compiled)(X, n), way(f)(X, n)
        for a, b in zip(ad.tree.leaves(found), ad.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def test_derivatives_of_earlier_calls_have_their_numbers() -> None:
    f = of_scalars(lambda x, n: x**n if n > 2 else n * x)
    compiled = ad.compile(f)
    leaves = [ad.tensor(X).require_grad() for _ in range(6)]
    losses = [compiled(x, n) for n, x in enumerate(leaves)]
    for n, (x, loss) in enumerate(zip(leaves, losses, strict=True)):
        np.testing.assert_allclose(loss.backward()[x], ad.grad(f)(x.detach(), n))


def test_a_warning_says_who_asks_for_a_number_inside_of_a_transform() -> None:
    slope = ad.grad(ad.compile(lambda x, n: (x * len(f"{n}")).sum()))
    with pytest.warns(RuntimeWarning, match=r"argument 1 changes.*its value is asked for at .*test_compile_numbers"):
        found = [slope(X, n) for n in range(5, 15)]
    assert [x[0] for x in found] == [1.0] * 5 + [2.0] * 5


BESIDE: dict[str, Any] = {
    "x + n": lambda x, n: x + n,
    "n - x": lambda x, n: n - x,
    "x * n": lambda x, n: x * n,
    "n / x": lambda x, n: n / x,
    "x // n": lambda x, n: x // n,
    "x % n": lambda x, n: x % n,
    "n ** x": lambda x, n: n**x,
    "x < n": lambda x, n: x < n,
    "n >= x": lambda x, n: n >= x,
    "x != n": lambda x, n: x != n,
    "n * n": lambda x, n: x * (n * n),
    "where": lambda x, n: ad.where(x != 1, x, n),
    "maximum": lambda x, n: ad.maximum(x, n),
    "full": lambda x, n: ad.full((2,), n) + x.sum(),
    "scan": lambda x, n: ad.scan(lambda c, _: (c * n, c), x * 1, None, length=2)[0],
    "cond": lambda x, n: ad.cond(x.sum() != 0, lambda y: y * n, lambda y: y + 1, x),
    "grad": lambda x, n: ad.grad(lambda y: (y.real * n).sum())(x),
    "vmap": lambda x, n: ad.vmap(lambda y: y * n)(x),
    "fori_loop": lambda x, n: ad.fori_loop(0, 3, lambda i, c: c * n, x),
}


@pytest.mark.parametrize("way", ["1", "replay"])
@pytest.mark.parametrize("dtype", [ad.float32, ad.float64, ad.complex64, ad.int64, ad.uint8])
@pytest.mark.parametrize("name", BESIDE)
def test_integers_of_many_digits(name: str, dtype: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They give what they give without compiling, and the same errors, as constants and as arguments."""
    monkeypatch.setenv("ADJOINT_COMPILE", way)
    f, x = BESIDE[name], ad.tensor([1, 2, 3]).astype(dtype)
    for n in (2**63, 2**64, -(2**70), 2**1023, 2**1024, -(10**400)):

        def constant(x: Any, n: int = n) -> Any:
            return f(x, n)

        def varying(x: Any, n: int = n) -> Any:
            g = ad.compile(f)
            for k in (1, 2):
                with contextlib.suppress(errors.AdjointError):
                    g(x, k)
            return g(x, n)

        with np.errstate(all="ignore"):
            expected = _outcome(f, x, n)
            for g, args in ((ad.compile(f), (x, n)), (ad.compile(constant), (x,)), (varying, (x,))):
                found = _outcome(g, *args)
                if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
                    assert found.dtype == expected.dtype
                    np.testing.assert_allclose(found, expected, rtol=1e-6)
                else:
                    assert found == expected, (name, n)


def _outcome(f: Any, *args: Any) -> Any:
    """What a function gives, or the error that it raises, without the line."""
    try:
        return np.asarray(f(*args))
    except errors.AdjointError as error:
        return type(error), str(error).partition("\n")[0]


WHOLES: dict[str, Any] = {
    "x // n": lambda x, n: x // n,
    "n // x": lambda x, n: n // x,
    "floor_divide(x, n)": lambda x, n: ad.floor_divide(x, n),
    "floor_divide(n, x)": lambda x, n: ad.floor_divide(n, x),
    "x % n": lambda x, n: x % n,
    "n % x": lambda x, n: n % x,
    "divmod(x, n)": lambda x, n: ad.stack(list(divmod(x, n))),
    "fmod(x, n)": lambda x, n: ad.fmod(x, n),
}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.filterwarnings("ignore")
def test_quotients_and_rests_by_numbers_that_the_dtype_does_not_hold(name: str, dtype: str) -> None:
    """The same to the sign of zero as without; a number that is infinite in the dtype counts as that."""
    values = [0.0, -0.0, 1.0, -1.0, -3.5, 7.0, math.inf, -math.inf, math.nan, 6e-8, -1e-40, 6e4]
    x = ad.tensor(np.array(values if dtype[0] == "f" else [0, 1, 2, 7, 100], dtype))
    operation, traced = WHOLES[name], ad.compile(WHOLES[name])
    for n in (3.5, 1e5, -1e5, 1e300, -1e300, 1e-300, -5e-324, math.inf, -math.inf, math.nan, 0.0, -0.0, 2.0**40):
        wanted = operation(x, n)
        for found in (ad.compile(lambda x, n=n: operation(x, n))(x), traced(x, n)):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted.numpy(), err_msg=str(n))
            np.testing.assert_array_equal(
                np.signbit(found.numpy()) | np.isnan(found.numpy()),
                np.signbit(wanted.numpy()) | np.isnan(wanted.numpy()),
                err_msg=str(n),
            )
    if name == "x // n" and dtype in ("f2", "f4"):
        for large in (1e300, 1 << 40) if dtype == "f2" else (1e300,):
            np.testing.assert_array_equal(np.signbit((x[2:4] // large).numpy()), [False, True])  # -0.0, not -1
            assert not (x[2:4] // large).numpy().any()


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
@pytest.mark.filterwarnings("ignore")
def test_derivatives_of_powers_of_a_number_that_becomes_zero(zero: float) -> None:
    """Those that there are without compiling, and of an array of zeros, at any order."""
    x = np.array([-2.0, -1.0, 0.0, 0.5, 2.0, math.nan])

    def f(x: Any, n: Any) -> Any:
        return ad.sum(n**x)

    for _ in range(3):
        f = (lambda g: lambda x, n: ad.sum(ad.grad(g)(x, n)))(f)
        slopes = lambda x, n, f=f: ad.vmap(lambda x: f(x, n))(x)
        compiled = ad.compile(slopes)
        for n in (2.0, 3.0) if isinstance(zero, float) else (2, 3):
            compiled(x, n)
        wanted = np.asarray(slopes(x, zero))
        np.testing.assert_array_equal(compiled(x, zero), wanted)
        np.testing.assert_array_equal(slopes(x, np.array(zero, float)), wanted)
