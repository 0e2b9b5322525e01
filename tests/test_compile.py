"""What users see of `ad.compile`: when it records, what comes out, and how it is looked at and switched off."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import joined

import adjoint as ad
from adjoint import errors

X = np.array([0.5, 1.5])
NUMPY = ad.NumPy()
FACTOR = 2.0
COUNT = 0
TENSOR = ad.tensor(2.0)


def counted(f: Any) -> tuple[Any, list[int]]:
    """f compiled, and a list that grows with each recording."""
    runs = Runs()

    @ad.compile
    def g(*args: Any, **kwargs: Any) -> Any:
        runs.seen.append(1)
        return f(*args, **kwargs)

    return g, runs.seen


class Runs:
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


def test_a_warning_says_what_changes() -> None:
    f = ad.compile(lambda x, rate: x * math.sin(rate))
    often = lambda: [f(X, rate=0.1 * i) for i in range(12)]
    with pytest.warns(
        RuntimeWarning,
        match=r"recorded 8 times.*: argument rate changes, from 0.6\d* to 0.7.*asked for at .*math.sin\(rate",
    ) as caught:
        often()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_warning_says_where_an_integer_is_asked_for() -> None:
    """It said that a tensor might stand in its place, where `range` asks for its value."""
    f = ad.compile(lambda x, n: sum([x * k for k in range(n)], x))
    often = lambda: [f(X, n) for n in range(12)]
    with pytest.warns(
        RuntimeWarning, match=r"argument 1 changes, from 6 to 7; its value is asked for at .*in range\(n\)"
    ):
        often()


def test_results_that_are_used_up_are_refused() -> None:
    """Later calls gave the first one's generator, which was empty by then."""

    def steps(x: Any) -> Any:
        yield x

    async def later(x: Any) -> Any:
        return x

    for f, what in ((steps, "generator"), (lambda x: (x, map(ad.sin, [x])), "map"), (later, "coroutine")):
        for x in (X, ad.tensor(X).require_grad()):
            with pytest.raises(errors.ArgumentTypeError, match=f"returns {what}, .*return a list"):
                ad.compile(f)(x)


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


@pytest.mark.parametrize("dynamic", [None, False])
def test_programs_are_bounded_and_go_with_the_function(dynamic: bool | None) -> None:
    f = ad.compile(lambda x: x * 2, dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, 80):
            f(np.ones(n))
    if dynamic is False:
        assert len(f._programs) == 64
    programs = [*f._programs.values(), *[p for general in f._general.values() for p in general.programs]]
    kept = [weakref.ref(f), *map(weakref.ref, programs), *[weakref.ref(p.replay) for p in programs]]
    del programs
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
        joined(thread)
    assert len(found) == 80
    assert len(set(found)) == 20


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
    views = ad.compile(
        lambda x: (
            ad.sin(x).reshape((2, 1)),
            ad.exp(x)[:1],
            ad.broadcast_to(ad.cos(x), (3, 2)),
            (w := ad.tan(x), w[None]),
        )
    )
    first, again = ad.tree.leaves(views(x)), ad.tree.leaves(views(x))
    for i, a in enumerate(first):
        assert not any(np.shares_memory(a, b) for b in [x, *again, *first[:i]])
        before = again[i].copy()
        a[...] = 7.0
        np.testing.assert_array_equal(again[i], before)
    turned = ad.compile(lambda x: (x * 2).T)(np.ones((2, 3)))
    np.testing.assert_array_equal(ad.compile(lambda y: y + 1, donate=0)(turned), np.full((3, 2), 3.0))
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


@pytest.mark.parametrize("disabled", [False, True])
def test_transforms_inside_are_as_precise_as_the_arrays_given(disabled: bool) -> None:
    """Also where it is switched off: tensors stand for arrays of NumPy."""
    weighed = lambda x: (x * ad.asarray([0.1, 0.2])).sum()
    ways: list[Any] = [
        ad.grad(weighed),
        lambda x: ad.jvp(weighed, (x,), (x,))[1],
        lambda x: ad.grad(weighed)(x * 2),
        ad.compile(ad.grad(weighed)),
    ]
    for way in ways:
        for x, kind in ((np.ones(2), float), (np.ones(2, np.float16), np.float16)):
            with ad.disable_compile() if disabled else contextlib.nullcontext():
                found = ad.compile(way)(x)
            assert found.dtype == kind
            np.testing.assert_array_equal(found, way(x))
    x = ad.asarray(np.ones(2))  # a tensor does not say how precise what is made is
    with ad.disable_compile() if disabled else contextlib.nullcontext():
        assert ad.compile(ad.grad(weighed))(x).tolist() == np.float32([0.1, 0.2]).tolist()


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


@pytest.mark.parametrize("label", [7, -1, -9])
@pytest.mark.parametrize("way", ["1", "replay"])
def test_labels_are_checked_where_only_the_gradient_is_asked_for(
    way: str, label: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", way)
    x, good, bad = np.zeros((3, 4)), np.array([0, 1, -100]), np.array([0, 1, label])
    loss = lambda x, y: ad.nn.cross_entropy(x, y)
    smooth = lambda x, y: ad.nn.cross_entropy(x, y, label_smoothing=0.1, reduction="none").sum()
    looped = lambda x, y: ad.fori_loop(0, 3, lambda i, c: c + loss(x * c, y), 1.0)
    hessian = lambda x, y: ad.jvp(ad.grad(lambda x: loss(x, y)), (x,), (x,))[1]
    tangent = lambda x, y: ad.jvp(lambda x: loss(x, y), (x,), (x,))[1]
    series = lambda x, y: ad.jet(lambda x: loss(x, y), (x,), ([x, x],))[1][1]
    for f in (ad.grad(loss), ad.grad(smooth), ad.grad(looped), hessian, tangent, series, ad.grad(ad.compile(loss))):
        compiled = ad.compile(f)
        np.testing.assert_allclose(compiled(x, good), f(x, good), rtol=1e-12)
        with pytest.raises(errors.OutOfRangeError, match="targets from") as eager:
            f(x, bad)
        for _ in range(2):
            with pytest.raises(errors.OutOfRangeError) as error:
                compiled(x, bad)
            assert str(error.value) == str(eager.value)
    both = ad.compile(ad.value_and_grad(loss)).lower(x, good)
    assert "check" not in str(both)  # the loss itself looks at its labels


def test_checked_says_the_line_of_the_user() -> None:
    f = ad.compile(lambda x: ad.log(x))  # this line
    with pytest.raises(errors.NonFiniteError, match="# this line"):
        f(ad.tensor([-1.0], device="autodiff<checked<numpy>>"))


def test_leaked_tensors_have_ended() -> None:
    place = Runs()
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
        joined(thread)
        return x, failed[0]

    assert "in the thread that called it" in ad.compile(f)(X)[1]


def test_attributes_of_a_function_do_not_stand_before_what_a_compiled_one_has() -> None:
    class Runner(ad.nn.Module):
        run: Any
        cost: float = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.run * self.cost

    net = ad.compile(Runner(ad.ones(2)))
    assert net(ad.ones(2)).tolist() == [2.0, 2.0]
    assert len(net.cost(ad.ones(2)).steps) >= 1

    def f(x: Any) -> Any:
        return x + 1.0

    f.lower, f.note = "?", "kept"  # type: ignore[attr-defined]
    g = ad.compile(f)
    assert str(g.lower(ad.ones(2))).count("add") == 1
    assert g.note == "kept"


@pytest.mark.parametrize("disabled", [False, True])
def test_results_without_arrays_are_tensors(disabled: bool) -> None:
    """As those of the function itself; floats count as arrays, as transforms have it."""
    drawn = lambda: ad.random.normal((2,))
    for f, args in (
        (lambda: TENSOR * 2, ()),
        (lambda: [ad.ones(3), 1.5, "a"], ()),
        (lambda n: ad.ones(n), (3,)),
        (lambda name, more: {name: ad.zeros(2)}, ("a", None)),
        (drawn, ()),
    ):
        expected = f(*args)
        compiled = ad.compile(f)
        for _ in range(4):
            with ad.disable_compile() if disabled else contextlib.nullcontext():
                found = compiled(*args)
            xs, ys = (ad.tree.flatten(x)[0] for x in (found, expected))
            assert list(map(type, xs)) == list(map(type, ys))
            if f is not drawn:
                for x, y in zip(xs, ys, strict=True):
                    assert x.tolist() == y.tolist() if isinstance(x, ad.Tensor) else x == y
    slope = ad.grad(lambda x: x * x)
    for args in ((2.0,), (np.float64(2.0),)):
        found = ad.compile(slope)(*args)
        assert type(found) is type(slope(*args)) is np.float64
        assert found == 4
    assert type(ad.compile(lambda x: TENSOR * x)(X)) is np.ndarray
