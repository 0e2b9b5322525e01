"""What users see of `ad.compile`: when it records, what it reads, what comes out, and what it refuses."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
import math
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.compiler.graph import Equation, Graph, Value, evaluate, verify
from adjoint.compiler.passes import PASSES, common_subexpressions, dead_code, exact_algebra
from adjoint.compiler.replay import Replay

X = np.array([0.5, 1.5])
NUMPY = ad.NumPy()
FACTOR = 2.0
COUNT = 0
TENSOR = ad.tensor(2.0)


def counted(f: Any) -> tuple[Any, list[int]]:
    """f compiled, and a list that grows with each recording."""
    runs = _Runs()

    @ad.compile
    def g(*args: Any, **kwargs: Any) -> Any:
        runs.seen.append(1)
        return f(*args, **kwargs)

    return g, runs.seen


class _Runs:
    """An object that compiled functions write to."""

    def __init__(self) -> None:
        self.seen: list[int] = []


# --- when it records ---


def test_values_are_traced_and_types_are_not() -> None:
    f, runs = counted(lambda x: x * 2)
    for x in (X, 3 * X, X[:1], X.astype(np.float32), ad.tensor(X), X):
        np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(x) * 2)
    assert len(runs) == 4


def test_zeros_of_different_sign_and_numbers_of_different_type_are_different() -> None:
    f = ad.compile(lambda x, n: (x + n, ad.copysign(x, n), n))
    warnings.simplefilter("ignore")  # that it was recorded often
    for n in (0.0, -0.0, 0, 1, 1.0, True, float("nan")):
        found, expected = f(ad.tensor(X), n)[0], ad.tensor(X) + n
        assert found.dtype is expected.dtype
        assert type(f(X, n)[2]) is type(n)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        np.testing.assert_array_equal(f(X, n)[1], np.copysign(X, n))

    class Scaled(ad.nn.Module):
        n: Any

        def __call__(self, x: Any) -> Any:
            return x * self.n, ad.copysign(1.0, self.n)

    @dataclasses.dataclass
    class Fixed:
        n: Any = dataclasses.field(metadata={"static": True})

        def __call__(self, x: Any) -> Any:
            n = self.n[0] if isinstance(self.n, tuple) else self.n
            return x * n, ad.copysign(1.0, n)

    for make in (Scaled, Fixed, lambda n: Fixed((n,))):
        h = ad.compile(lambda model, x: model(x))
        for n in (2, 2, 2.0, 1.0, True, 0.0, -0.0):
            product, sign = h(make(n), ad.ones(2, dtype=ad.int64))
            assert (product.dtype.kind == "f") == isinstance(n, float)
            np.testing.assert_array_equal(product.numpy(), [n, n])
            assert sign.item() == math.copysign(1, n)
    g = ad.compile(lambda x, n: ad.sqrt(x * n))
    for n in (complex(-1.0, 0.0), complex(-1.0, 0.0), complex(-1.0, -0.0)):  # the second call is like the first
        np.testing.assert_array_equal(g(np.ones(1), n), ad.sqrt(ad.ones(1) * n).numpy())


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
        (lambda x, r: x if r > 0.25 else -x, 6),
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


def test_a_warning_says_what_changes() -> None:
    f = ad.compile(lambda x, rate: x * rate if rate < 9 else x)
    often = lambda: [f(X, rate=0.1 * i) for i in range(12)]
    with pytest.warns(
        RuntimeWarning, match=r"recorded 8 times.*: argument rate changes, from 0.6\d* to 0.7.*asked for at .*rate < 9"
    ) as caught:
        often()
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("what", "calls"),
    [
        ("argument 1 changes, from '6' to '7'$", [(X, str(i)) for i in range(12)]),
        ("argument 1 changes, from .*; make it once, outside of the calls$", [(X, lambda: 1) for i in range(12)]),
        (r"the structure of argument 1 changes, nothing belongs at \[6\]$", [(X, [1.0] * i) for i in range(12)]),
        (r"argument 1 changes, from float64\[1, 1.*\] to float64", [(X, np.ones((1,) * i)) for i in range(12)]),
        ("'COUNT', outside of it, changes; make it an argument$", [(X, None) for i in range(12)]),
    ],
    ids=["text", "function", "list", "axes", "outside"],
)
def test_the_warning_names_the_argument(what: str, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = ad.compile(lambda x, other: x * COUNT)

    def often() -> None:
        for i, args in enumerate(calls):
            monkeypatch.setitem(globals(), "COUNT", i if args[1] is None else 0)
            f(*args)

    with pytest.warns(RuntimeWarning, match=what):
        often()


def test_programs_are_bounded_and_go_with_the_function() -> None:
    f = ad.compile(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, 80):
            f(np.ones(n))
    assert len(f._programs) == 64
    kept = [weakref.ref(f), *map(weakref.ref, f._programs.values())]
    gc.disable()
    try:
        del f
        assert all(x() is None for x in kept)
    finally:
        gc.enable()


def test_arguments_are_not_kept() -> None:
    f = ad.compile(lambda x: (x * 2).sum())
    x = ad.tensor(X)
    f(x)
    ad.grad(f)(x)
    alive = weakref.ref(x)
    del x
    assert alive() is None


def test_several_threads() -> None:
    f, found = ad.compile(ad.grad(lambda x: (ad.sin(x) * x).sum())), []
    work = lambda: found.extend(f(X * i).sum() for i in range(20))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert len(set(found)) == 20


# --- what it reads beside its arguments ---


def test_what_differs_from_the_last_call_is_seen() -> None:
    """Of all pairs of calls, the second gives what it gives alone."""
    weight = ad.tensor([2.0, 3.0])

    def f(x: Any, mode: Any = 1, *, scale: Any = None) -> Any:
        out = x * weight if scale is None else x * weight * scale
        return {"out": out + (mode if isinstance(mode, (int, float)) else 0.5), "x": x, "mode": mode}

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, *mode), how)
        for x in (X, X.astype(np.float32), np.ones((3, 2)), X[::-1], ad.tensor(X), ad.tensor([1, 2]), X[:1])
        for mode in ((), (2,), (2.5,), (True,), ("a",), (np.float64(3.0),))
        for how in ({}, {"scale": 2.0}, {"scale": ad.tensor(3.0)})
    ]
    alone = [ad.compile(f)(*args, **how) for args, how in calls]
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was recorded often
        g = ad.compile(f)
        for i in rng.integers(0, len(calls), 300):
            args, how = calls[i]
            for _ in range(2):
                found = g(*args, **how)
                assert (found["x"] is args[0]) == (alone[i]["x"] is args[0])
                assert found["mode"] == alone[i]["mode"]
                assert type(found["mode"]) is type(alone[i]["mode"])
                for x, y in zip(ad.tree.leaves(found), ad.tree.leaves(alone[i]), strict=True):
                    x, y = (v.detach() if isinstance(v, ad.Tensor) else v for v in (x, y))
                    assert getattr(x, "dtype", None) is getattr(y, "dtype", None)
                    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    w = ad.tensor(X).require_grad()
    square = ad.compile(lambda x: (x * x).sum())
    assert square(w.detach()).item() == square(w.detach()).item() == 2.5
    np.testing.assert_array_equal(square(w).backward()[w].numpy(), 2 * X)


def test_closures_and_names_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scale, shift = ad.tensor(2.0), 1.0
    f = ad.compile(lambda x: x * scale * FACTOR * TENSOR + shift)
    np.testing.assert_array_equal(f(X), X * 8 + 1)
    scale, shift = ad.tensor(3.0), 2.0
    np.testing.assert_array_equal(f(X), X * 12 + 2)
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    np.testing.assert_array_equal(f(X), X * 6 + 2)
    monkeypatch.setitem(globals(), "TENSOR", ad.tensor(1.0))
    np.testing.assert_array_equal(f(X), X * 3 + 2)
    scale[...] = 5.0
    np.testing.assert_array_equal(f(X), X * 5 + 2)


def _shifted(x: Any, by: float = 1.0, *, times: float = 1.0) -> Any:
    return x * times + by


PART = functools.partial(_shifted, by=0.0)


def test_defaults_are_read_anew() -> None:
    """Also of a function that reads nothing else."""

    def f(x: Any, by: Any = (), *, named: Any = None) -> Any:
        return x * by[0] * named["a"]

    f.__defaults__, f.__kwdefaults__ = ([2.0],), {"named": {"a": 3.0}}
    compiled = ad.compile(f)
    np.testing.assert_array_equal(compiled(X), X * 6)
    f.__defaults__[0][0] = 4.0
    np.testing.assert_array_equal(compiled(X), X * 12)
    f.__kwdefaults__["named"]["a"] = 5.0
    np.testing.assert_array_equal(compiled(X), X * 20)
    f.__defaults__ = ([1.0],)
    np.testing.assert_array_equal(compiled(X), X * 5)
    f.__kwdefaults__ = {"named": {"a": 1.0}}
    np.testing.assert_array_equal(compiled(X), X)


def test_what_changes_between_calls_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """After calls that were alike, whose next one is not read anew."""
    w, factors, named, part = ad.tensor([1.0, 2.0]), [1.0, 2.0], {"a": 1.0}, functools.partial(_shifted, times=2.0)

    def plain(x: Any) -> Any:
        late = LATE if "LATE" in globals() else 0.0  # type: ignore[name-defined]  # noqa: F821
        return PART(part(_shifted(x * w))) * factors[0] * factors[-1] + sum(named.values()) + late + TENSOR * FACTOR

    def rebound() -> None:
        nonlocal w
        w = w * 3

    def other(x: Any, by: float = 1.0, *, times: float = 1.0) -> Any:
        return x - by * times

    f, x = ad.compile(plain), ad.tensor(X)
    changes: list[Any] = [
        rebound,
        lambda: w.__setitem__(0, 7.0),
        lambda: factors.__setitem__(0, 3.0),
        lambda: factors.append(5.0),
        lambda: named.__setitem__("a", 2.0),
        lambda: named.__setitem__("b", 4.0),
        lambda: part.keywords.__setitem__("times", 9.0),
        lambda: PART.keywords.__setitem__("times", 3.0),
        lambda: monkeypatch.setattr(_shifted, "__defaults__", (6.0,)),
        lambda: monkeypatch.setitem(_shifted.__kwdefaults__, "times", 4.0),
        lambda: monkeypatch.setattr(_shifted, "__code__", other.__code__),
        lambda: monkeypatch.setitem(globals(), "LATE", 8.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 0.5),
        lambda: monkeypatch.setitem(globals(), "TENSOR", ad.tensor(11.0)),
        lambda: TENSOR.__setitem__((), 13.0),
    ]
    warnings.simplefilter("ignore")  # that it was recorded often
    monkeypatch.setitem(globals(), "TENSOR", ad.tensor(2.0))
    expected = plain(x).tolist()
    for i, change in enumerate(changes):
        assert [f(x).tolist() for _ in range(3)] == [expected] * 3
        change()
        assert plain(x).tolist() != expected, i
        expected = plain(x).tolist()
        assert f(x).tolist() == expected, i


def test_all_that_a_function_reads_is_seen_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each after calls that were alike, whatever the function reads beside it."""
    listed, named, pair = [1.0], {"a": 1.0}, (ad.tensor(1.0), 1.0)

    def inner(x: Any, shift: float = 1.0, *, more: float = 1.0) -> Any:
        return x + shift + more

    def make(part: Any) -> tuple[Any, Any]:
        kept, array = 1.0, ad.tensor([1.0, 1.0])

        def f(x: Any) -> Any:
            return part(x) * kept * array * FACTOR * TENSOR

        def change(k: Any, a: Any) -> None:
            nonlocal kept, array
            kept, array = k, a

        return f, change

    parts = [
        lambda x: inner(x),
        lambda x: x * listed[0],
        lambda x: x * named["a"],
        lambda x: x * pair[0] * pair[1],
        functools.partial(lambda x, y: x * y, y=1.0),
        lambda x: x,
    ]
    for part in parts:
        listed[0] = named["a"] = 1.0
        inner.__defaults__, inner.__kwdefaults__ = (1.0,), {"more": 1.0}
        f, change = make(part)
        g = ad.compile(f)

        def same(f: Any = f, g: Any = g) -> None:
            for _ in range(2):
                np.testing.assert_array_equal(g(X), f(ad.tensor(X)).numpy())

        same()
        change(2.0, ad.tensor([1.0, 1.0]))
        same()
        change(2.0, ad.tensor([3.0, 1.0]))
        same()
        listed[0], named["a"] = 2.0, 3.0
        same()
        inner.__defaults__ = (5.0,)
        same()
        inner.__kwdefaults__ = {"more": 7.0}
        same()
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "FACTOR", 7.0)
            same()
            patch.setitem(globals(), "TENSOR", ad.tensor(5.0))
            same()
        same()


def test_tensors_of_a_closure_have_derivatives() -> None:
    w = ad.tensor([2.0, 3.0]).require_grad()
    f = ad.compile(lambda x: (x * w * w).sum())
    np.testing.assert_array_equal(f(ad.tensor(X)).backward()[w].numpy(), 2 * X * w.numpy())
    slope = ad.grad(lambda v: ad.compile(lambda x: (x * v).sum())(ad.tensor(X)))
    np.testing.assert_array_equal(slope(np.ones(2)), X)


AROUND = {
    "grad": lambda f: ad.grad(lambda x: f(x).sum()),
    "jacobian": ad.jacobian,
    "push": lambda f: lambda x: ad.jvp(f, (x,), (x,))[1],
    "vmap": ad.vmap,
    "step": lambda f: lambda x: _backward(f, x),
}


def _backward(f: Any, x: Any) -> Any:
    leaf = ad.asarray(x).require_grad()
    return f(leaf).sum().backward()[leaf]


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("step", None), *itertools.product([name for name in AROUND if name != "step"], [None, *AROUND])],
)  # gradients of `backward` are values
def test_transforms_around_record_once(inner: str, outer: str | None) -> None:
    def f(x: Any) -> Any:
        return ad.sin(x * 1.5) * x[..., :1] + x**3

    def around(f: Any) -> Any:
        g = AROUND[inner](f)
        return g if outer is None else AROUND[outer](g)

    rng = np.random.default_rng(5)
    compiled, recordings = counted(f)
    run, plain = around(compiled), around(f)
    plain(rng.normal(size=(2, 3, 2)))
    run(rng.normal(size=(2, 3, 2)))
    compiled(rng.normal(size=(2, 3, 2)))  # what another use records is not mixed up with it
    recordings.clear()
    for _ in range(3):
        x = rng.normal(size=(2, 3, 2))
        np.testing.assert_allclose(run(x), plain(x), rtol=1e-12)
    assert not recordings


def test_a_leaf_of_the_module_is_refused() -> None:
    place = _Runs()
    place.w = ad.tensor([2.0, 3.0]).require_grad()  # type: ignore[attr-defined]
    with pytest.raises(errors.DeviceError, match="make what is tracked an argument"):
        ad.compile(lambda x: x * place.w)(ad.tensor(X))  # type: ignore[attr-defined]


def test_a_tracked_result_is_no_array() -> None:
    """Where the arguments are NumPy's, or there are none: what a closure tracks stays tracked."""
    w = ad.tensor([2.0, 3.0], dtype=ad.float64).require_grad()
    by_array, by_none = ad.compile(lambda k: (w * k).sum()), ad.compile(lambda: (w * w).sum())
    for _ in range(4):
        np.testing.assert_array_equal(by_array(np.ones(2)).backward()[w].numpy(), np.ones(2))
        np.testing.assert_array_equal(by_array(2.0).backward()[w].numpy(), 2 * np.ones(2))
        np.testing.assert_array_equal(by_none().backward()[w].numpy(), 2 * w.detach().numpy())
    place = _Runs()
    place.w = w  # type: ignore[attr-defined]
    for f in (lambda: place.w * 2.0, lambda x: [place.w * 2.0, x]):  # type: ignore[attr-defined]
        with pytest.raises(errors.TrackedError, match="make that an argument"):
            ad.compile(f)(*[X] * (f.__code__.co_argcount))


def test_what_an_outer_transform_tracks_in_an_object_is_refused() -> None:
    """Once, and not by transforms that run again and again."""

    def f(w: Any) -> Any:
        place = _Runs()
        place.w = w  # type: ignore[attr-defined]
        return ad.compile(lambda x: (x * place.w).sum())(ad.tensor(X))  # type: ignore[attr-defined]

    with pytest.raises(errors.DeviceError, match="make what is tracked an argument"):
        ad.grad(f)(ad.tensor([1.0, 2.0], dtype=ad.float64))


def test_assignment_to_a_copy_of_an_argument_that_nothing_tracks() -> None:
    def f(x: Any, y: Any) -> Any:
        out = y.copy()
        out[1:] += x[1:] * w
        return (out * out).sum()

    w, y = ad.tensor([0.5]), ad.tensor([3.0, 4.0])
    x = ad.tensor([1.0, 2.0]).require_grad()
    compiled, expected = ad.compile(f), f(x, y).backward()[x].numpy()
    for _ in range(4):
        np.testing.assert_array_equal(compiled(x, y).backward()[x].numpy(), expected)
    np.testing.assert_array_equal(ad.grad(compiled)(x.detach(), y).numpy(), expected)


# --- what comes out ---


def test_results_share_no_memory() -> None:
    x = X.copy()
    f = ad.compile(lambda x: (x, x.reshape((2, 1)), x * 1, x[:1], ad.ones(3), (y := x * 2), y, y[:1]))
    out = f(x)
    for i, a in enumerate(out):
        assert not np.shares_memory(a, x)
        assert not any(np.shares_memory(a, b) for b in out[:i])
        a[...] = 7.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(f(x)[4], np.ones(3))
    t = ad.tensor(X)
    constant = ad.compile(lambda t: ad.arange(3) * 1.0)(t)
    constant[0] = 9.0
    np.testing.assert_array_equal(ad.compile(lambda t: t * 1)(t).numpy(), X)


def test_large_arrays_are_written_over_only_where_nobody_sees() -> None:
    x, w = np.linspace(0.1, 1.0, 5000), np.linspace(1.0, 2.0, 5000)

    def f(x: Any, w: Any) -> Any:
        a = ad.sin(x)
        b = a * w
        view = b.reshape((50, 100))
        c = b + 1.0
        d = c * c
        return d, view.sum(axis=0), a, ad.exp(d) - c

    g = ad.compile(f)
    for _ in range(2):
        for found, expected in zip(g(x, w), f(ad.tensor(x), ad.tensor(w)), strict=True):
            np.testing.assert_array_equal(found, expected.numpy())
    assert "v" in g.lower(x, w).source
    np.testing.assert_array_equal(x, np.linspace(0.1, 1.0, 5000))


def test_leaves_and_other_results() -> None:
    w = ad.tensor([1.0, 2.0]).require_grad()

    @ad.compile
    def step(w: Any, x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        grads = loss.backward()
        return loss.detach(), grads[w], w.with_value(w.inner() - 0.1 * grads[w]), w, "name", None

    for _ in range(2):
        loss, g, new, same, name, nothing = step(w, ad.tensor([1.0, 1.0]))
        assert same is w
        assert name == "name"
        assert nothing is None
        assert new.is_require_grad()
        assert new.device is w.device
        assert g.device is NUMPY
        assert loss.device is w.device
        assert not loss.is_tracked()
        np.testing.assert_allclose(new.detach().numpy(), [0.8, 1.6], rtol=1e-6)
    with pytest.raises(errors.NoGradientError, match="new leaf that with_value made"):
        (w * 2).sum().backward()[new]


LEAVES = [
    *("numpy", "reference", "autodiff<autodiff<numpy>>", "autodiff<checked<numpy>>", "profiled<autodiff<numpy>>"),
    *[pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "jax", "autodiff<dask>", "autodiff<jax>")],
]


@pytest.mark.parametrize("device", LEAVES)
def test_every_leaf(device: str) -> None:
    f = ad.value_and_grad(lambda x: (ad.sin(x) * x).sum())
    g, x = ad.compile(f), ad.tensor(X, dtype=ad.float32, device=device)
    for found, expected in zip(g(x), f(x), strict=True):
        assert found.device is expected.device
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("device", LEAVES)
def test_a_float_that_changes_on_every_leaf(device: str) -> None:
    """Also on JAX, which has no array as exact as Python's floats: there each is recorded."""

    def f(x: Any, r: float) -> dict[str, Any]:
        slope = ad.grad(lambda y: (y * y * r).sum())(x)
        return {"rate": 2 * r, "value": x * r + (1 - r) ** 2 / 3, "slope": slope}

    g, x = ad.compile(f), ad.tensor(X, dtype=ad.float32, device=device)
    for r in (0.1, 0.2, -3.0):
        found, expected = g(x, r), f(x, r)
        assert found["rate"] == expected["rate"]
        for name in ("value", "slope"):
            assert found[name].dtype is expected[name].dtype
            np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), rtol=1e-6)


@pytest.mark.slow  # imports JAX and PyTorch
def test_arrays_of_other_libraries() -> None:
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    f = ad.compile(lambda x: ad.sin(x) * 2)
    for array in (torch.ones(2), jax.numpy.ones(2)):
        assert type(f(array)) is type(array)
    assert jax.jit(lambda x: f(x))(jax.numpy.ones(2)).shape == (2,)
    g = ad.compile(lambda x: ad.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x))
    np.testing.assert_array_equal(jax.jit(lambda x: g(x))(-jax.numpy.ones(2)), np.ones(2))


def test_methods_modules_and_partial_functions() -> None:
    class Scaled:
        factor = 3.0

        @ad.compile
        def times(self, x: Any) -> Any:
            return x * self.factor

    np.testing.assert_array_equal(Scaled().times(X), X * 3)
    net = ad.nn.Linear(2, 2)
    np.testing.assert_array_equal(ad.compile(net)(ad.ones((1, 2))).numpy(), net(ad.ones((1, 2))).numpy())
    assert ad.compile(net).lower(ad.ones((1, 2))).graph.size() > 0


# --- switched off, and looked at ---


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    f, runs = counted(lambda x: x * 2 if x.sum() > 0 else x)
    with pytest.raises(errors.TrackedError):
        f(X)
    with ad.disable_compile():
        np.testing.assert_array_equal(f(X), X * 2)
        assert isinstance(f(X), np.ndarray)
        assert isinstance(f(ad.tensor(X)), ad.Tensor)
    monkeypatch.setenv("ADJOINT_COMPILE", "0")
    np.testing.assert_array_equal(f(X), X * 2)
    assert len(runs) == 5
    for wrong in ("off", "2", "False"):
        monkeypatch.setenv("ADJOINT_COMPILE", wrong)
        with pytest.raises(errors.ArgumentError, match="environment variable ADJOINT_COMPILE: '0' runs .* received"):
            f(X)


def test_values_are_shown_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        ad.debug.print("x = {:.1f}", x.sum())
        ad.debug.print("here")
        return x * 2

    g = ad.compile(f)
    for _ in range(2):
        g(X)
    assert capsys.readouterr().out == "x = 2.0\nhere\n" * 2


def counts(x: Any) -> Any:
    return ad.scan(lambda c, y: (c + ad.one_hot(y, 3), None), ad.zeros(3), x)[0]


def test_checks_and_failures_raise_what_they_raise_otherwise() -> None:
    for f, good, bad in [
        (lambda x: ad.one_hot(x, 3), np.array([0, 2]), np.array([0, 3])),
        (lambda x: ad.tensor([1.0, 2.0])[x], np.array([0, 1]), np.array([0, 2])),
        (lambda x: ad.linalg.cholesky(x), np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])),
        (
            lambda x: ad.scan(lambda c, y: (c + ad.one_hot(y, 3), None), ad.zeros(3), x)[0],
            np.array([0, 2]),
            np.array([0, 3]),
        ),
    ]:
        g = ad.compile(f)
        g(good)
        with pytest.raises(errors.AdjointError) as later:
            g(bad)
        with pytest.raises(errors.AdjointError) as now:
            f(ad.tensor(bad))
        assert (type(later.value), str(later.value)) == (type(now.value), str(now.value))
        g(good)


def test_checked_says_the_line_of_the_user() -> None:
    f = ad.compile(lambda x: ad.log(x))  # this line
    with pytest.raises(errors.NonFiniteError, match="# this line"):
        f(ad.tensor([-1.0], device="autodiff<checked<numpy>>"))


def test_leaked_tensors_have_ended() -> None:
    place = _Runs()
    ad.compile(lambda x: place.seen.append(x * 2) or x)(X)  # type: ignore[func-returns-value, arg-type]
    with pytest.raises(errors.EndedError, match="that ad.compile recorded"):
        place.seen[0] + 1


def test_another_thread_does_not_record() -> None:
    def f(x: Any) -> Any:
        failed: list[Any] = []

        def work() -> None:
            try:
                x * 2
            except errors.TrackedError as error:
                failed.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x, failed[0]

    assert "in the thread that called it" in ad.compile(f)(X)[1]


# --- the graph ---

F8 = np.dtype("f8")


def graph_of(f: Any, *xs: Any) -> Graph:
    return ad.compile(f).lower(*xs).recorded  # type: ignore[no-any-return]


def names(graph: Graph) -> list[str]:
    return [e.name for e in graph.equations]


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, 5e-324])


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: x * 1, 0),
        (lambda x: 1.0 * x, 0),
        (lambda x: x / 1, 0),
        (lambda x: x - 0, 0),
        (lambda x: x + (-0.0), 0),
        (lambda x: ad.negative(ad.negative(x)), 0),
        (lambda x: x.reshape((7,)), 0),
        (lambda x: x + 0, 1),
        (lambda x: x - (-0.0), 1),
        (lambda x: x * 0, 1),
        (lambda x: x * ad.ones((2, 1)), 1),
        (lambda x: (x * (1 + 0j)).real, 3),
    ],
)
def test_algebra_is_exact(f: Any, left: int) -> None:
    graph = graph_of(f, SPECIAL)
    small = dead_code(exact_algebra(graph))
    verify(small)
    assert len(small.equations) == left
    with np.errstate(all="ignore"):
        for x, y in zip(evaluate(graph, [SPECIAL], NUMPY), evaluate(small, [SPECIAL], NUMPY), strict=True):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(np.signbit(x), np.signbit(y))


def test_common_subexpressions_are_computed_once_but_not_across_a_checkpoint() -> None:
    f = lambda x: (ad.sin(x) * ad.sin(x) + ad.sin(x) * ad.sin(x)).sum()
    graph = dead_code(common_subexpressions(graph_of(f, X)))
    assert sorted(names(graph)) == ["add", "multiply", "sin", "sum"]
    zeros = lambda x: (ad.copysign(x, 0.0), ad.copysign(x, -0.0))
    assert len(common_subexpressions(graph_of(zeros, X)).equations) == 2
    slope = ad.grad(ad.checkpoint(lambda x: ad.exp(ad.sin(x)).sum()))
    assert names(ad.compile(lambda x: (ad.exp(ad.sin(x)), slope(x))).lower(X).graph).count("exp") == 2


def test_dead_code_goes_also_from_loops() -> None:
    def f(x: Any) -> Any:
        (a, _), (ys, _) = ad.scan(lambda c, y: ((c[0] * y, ad.exp(c[1])), (c[0], c[1])), (1.0, 2.0), x)
        ad.sin(x)
        return a, ys

    graph = ad.compile(f).lower(X).graph
    (loop,) = [e for e in graph.equations if e.graphs]
    assert "exp" not in names(loop.graphs[0])
    assert loop.parameters["count"] == 1
    assert "sin" not in names(graph)


def test_loops_keep_what_their_gradients_read() -> None:
    def written(x: Any, w: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            y = ad.sin(c[i - 1]) * c[2] + (w @ c[:4])[0]
            c = c.copy()
            c[i] = y
            return c, ()

        return (ad.scan(step, x, ad.arange(1, 50))[0] ** 2).sum()

    f = ad.grad(written, (0, 1))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=60), rng.normal(size=(4, 4))
    compiled = ad.compile(f)
    for found, expected in zip(compiled(x, w), f(x, w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    graph = compiled.lower(x, w).graph
    verify(graph)
    loops = [e for e in graph.equations if e.name == "scan"]
    assert len(loops) == 2
    assert max(x.shape for x in loops[0].results if isinstance(x, Value) and x.shape[0] == 49) == (49, 4)
    held = ad.compile(ad.grad(lambda x: ad.scan(lambda c, r: (ad.sin(c) * r, ()), x, x)[0].sum())).lower(x).graph
    assert any(x.shape == (60, 60) for e in held.equations for x in e.results if isinstance(x, Value))  # all is read


def test_the_verifier_finds_what_is_wrong() -> None:
    x, y, z = (Value((2,), F8) for _ in range(3))
    sine = Equation("sin", [x], {}, [y])
    verify(Graph([x], [sine], [y]))
    for graph in (
        Graph([], [sine], [y]),
        Graph([x], [sine, sine], [y]),
        Graph([x], [sine], [z]),
        Graph([x, x], [sine], [y]),
        Graph([x], [Equation("sin", [x], {}, [Value((3,), F8)])], []),
        Graph([x], [Equation("sin", [x], {}, [Value((2,), np.dtype("f4"))])], []),
    ):
        with pytest.raises(errors.GraphError):
            verify(graph)


def test_passes_keep_graphs_valid_and_replay_is_the_evaluator() -> None:
    f = lambda x: ad.hessian(lambda x: ad.scan(lambda c, y: (ad.sin(c * y), c), 1.0, x)[1].sum())(x)
    graph = graph_of(f, X)
    expected = evaluate(graph, [X], NUMPY)
    for change in PASSES:
        graph = change(graph)
        verify(graph)
        for x, y in zip(Replay(graph, NUMPY)([X]), expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_graph_of_a_loop_as_text() -> None:
    f = ad.compile(lambda x: ad.scan(lambda c, y: (c + y, None), 0.0, x)[0])
    assert str(f.lower(X)).splitlines() == [
        "inputs a: float64[2]",
        "b: float64[] = scan(0.0, a; count=1, rows=1, length=2, reverse=False)",
        "    inputs c: float64[], d: float64[]",
        "    e: float64[] = add(c, d)",
        "    outputs e",
        "outputs b",
    ]


# --- what is looked at the first time ------------------------------------------------------------

LINE = np.array([2.0, -0.5, 1.5])
COMPILED: dict[str, Any] = {
    "grad in": lambda f: ad.compile(ad.grad(f)),
    "grad around": lambda f: ad.grad(ad.compile(f)),
    "vmap in": lambda f: lambda x: ad.compile(ad.vmap(ad.grad(f)))(x[None])[0],
    "hessian in": lambda f: lambda x: ad.compile(ad.hessian(f))(x).sum(axis=0),
}


@pytest.mark.parametrize("way", COMPILED)
def test_rules_that_no_eager_call_has_looked_at(way: str) -> None:
    """A transposed rule is looked at once, whether it is linear: in a program when it runs, each time."""

    def pushed(slope: Any) -> Any:
        f = ad.custom_jvp(lambda x: x**3)
        f.defjvp(lambda primals, tangents: (f(*primals), slope(primals[0], tangents[0])))
        return lambda x: f(x).sum()

    good, bad = lambda x, t: 3 * x**2 * t, lambda x, t: 3 * x**2 * t * t
    wanted = 6 * LINE if way == "hessian in" else 3 * LINE**2
    run, wrong = COMPILED[way](pushed(good)), COMPILED[way](pushed(bad))
    for _ in range(2):
        np.testing.assert_allclose(run(LINE), wanted, rtol=1e-13)
        with pytest.raises(errors.AdjointError, match="not linear in tangents"):
            wrong(LINE)


@pytest.mark.parametrize("way", COMPILED)
def test_transposes_in_programs(way: str) -> None:
    transposed = lambda f: lambda x: (ad.linear_transpose(lambda y: f(x, y), x)(x)[0] * x).sum()
    wanted = 6 * LINE if way == "hessian in" else 3 * LINE**2
    np.testing.assert_allclose(COMPILED[way](transposed(lambda x, y: x * y))(LINE), wanted, rtol=1e-13)
    for f, match in [(lambda x, y: x * y + x, "not zero where"), (lambda x, y: x * y * y, "not its own derivative")]:
        with pytest.raises(errors.AdjointError, match=match):
            COMPILED[way](transposed(f))(LINE)
