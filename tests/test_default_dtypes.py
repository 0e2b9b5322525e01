"""What dtype tensors have that are made without one, or with one of Python's types."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import processes
import pytest
from conftest import joined
from each import Each

import adjoint as ad
from adjoint import errors
from adjoint.functions import creation, ranges
from adjoint.primitives import ELEMENTWISE, TABLE

# What makes floating tensors of a dtype that may be given; what follows from integers, and complex numbers.
CREATED: dict[str, Callable[..., Any]] = {
    "zeros": lambda **kw: ad.zeros(3, **kw),
    "ones": lambda **kw: ad.ones((2, 2), **kw),
    "empty": lambda **kw: ad.empty(3, **kw),
    "full": lambda **kw: ad.full(3, 0.5, **kw),
    "arange": lambda **kw: ad.arange(0.0, 1.0, 0.25, **kw),
    "linspace": lambda **kw: ad.linspace(0, 1, 4, **kw),
    "eye": lambda **kw: ad.eye(2, **kw),
    "tri": lambda **kw: ad.tri(2, **kw),
    "logspace": lambda **kw: ad.logspace(0, 1, 4, **kw),
    "geomspace": lambda **kw: ad.geomspace(1, 2, 4, **kw),
    "tensor": lambda **kw: ad.tensor([0.1, 2], **kw),
    "asarray": lambda **kw: ad.asarray([[0.1], [2.0]], **kw),
    "fftfreq": lambda **kw: ad.fft.fftfreq(4, **kw),
    "rfftfreq": lambda **kw: ad.fft.rfftfreq(4, **kw),
    "hann": lambda **kw: ad.fft.hann(4, **kw),
}
PROMOTED: dict[str, Callable[[], Any]] = {
    "a number": lambda: ad.tensor(0.1),
    "an int over an int": lambda: ad.arange(1, 4) / 3,
    "an int by a float": lambda: ad.arange(3) * 0.1,
    "a root of an int": lambda: ad.sqrt(ad.arange(3)),
    "a mean of ints": lambda: ad.mean(ad.arange(4)),
    "where": lambda: ad.where(ad.arange(3) > 1, 0.1, 1),
    "where with ints": lambda: ad.where(ad.arange(3) > 1, ad.arange(3), 0.1),
    "clip": lambda: ad.clip(ad.arange(3), 0.5, None),
    "special": lambda: ad.special.xlogy(ad.arange(1, 3), 2),
    "concat": lambda: ad.stack([ad.tensor(1), 0.5]),
    "solve": lambda: ad.linalg.inv(ad.tensor([[1, 0], [0, 1]])),
}
COMPLEX: dict[str, Callable[[], Any]] = {
    "a number": lambda: ad.tensor(1j),
    "a list": lambda: ad.asarray([0.1, 1j]),
    "full": lambda: ad.full(2, 1j),
    "an int by a number": lambda: ad.arange(2) * 1j,
}
PRECISE = {ad.float16: ad.complex64, ad.float32: ad.complex64, ad.float64: ad.complex128}
X = np.array([0.5, 1.5])


def expect(each: Each, dtype: Any, label: str = "") -> None:
    """What is made here has this dtype, or the complex one of its precision."""
    with each((label, "default")):
        assert ad.default_dtype() is dtype
    for name, make in {**CREATED, **PROMOTED}.items():
        if dtype is ad.float16 and name == "solve":
            continue  # which LAPACK does not know
        with each((label, name)):
            assert make().dtype is dtype
    for name, make in COMPLEX.items():
        with each((label, name, "complex")):
            assert make().dtype is PRECISE[dtype]


def watching(each: Each, dtype: Any, label: str) -> Callable[..., Any]:
    """A function of a vector or a number that looks at what is made in it."""

    def f(x: Any, *others: Any) -> Any:
        runs.append(label)
        expect(each, dtype, label)
        return ad.real(x * x * x).sum()

    runs: list[str] = []
    f.runs = runs  # type: ignore[attr-defined]
    return f


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "value_and_grad": lambda f, x: ad.value_and_grad(f)(x),
    "vjp": lambda f, x: ad.vjp(f, x),
    "jvp": lambda f, x: ad.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: ad.linearize(f, x),
    "hvp": lambda f, x: ad.hvp(f, (x,), (x,)),
    "jacobian, reverse": lambda f, x: ad.jacobian(f, mode="reverse")(x),
    "jacobian, forward": lambda f, x: ad.jacobian(f, mode="forward")(x),
    "jacobian": lambda f, x: ad.jacobian(f)(x),
    "hessian": lambda f, x: ad.hessian(f)(x),
    "hessian of a vector": lambda f, x: ad.hessian(lambda x: ad.stack([f(x)]))(x),
    "jet": lambda f, x: ad.jet(f, (x,), ([x, x],)),
    "sparse_jacobian": lambda f, x: ad.sparse_jacobian(lambda x: ad.stack([f(x)]))(x),
    "linear_transpose": lambda f, x: ad.linear_transpose(lambda x: (f(x), x.sum())[1], x),
}

SOLVERS: dict[str, Callable[[Any, Any], Any]] = {
    "root": lambda f, x: ad.implicit.root(lambda x: (f(x), 2 * x - 1)[1], x),
    "fixed_point": lambda f, x: ad.implicit.fixed_point(lambda x: (f(x), x / 2)[1], x),
    "minimize": lambda f, x: ad.implicit.minimize(lambda x: (f(x), ((x - 1) ** 2).sum())[1], x),
    "odeint": lambda f, x: ad.odeint(lambda y, t: (f(y), -y)[1], x, [0.0, 0.1], rtol=0.1, atol=0.1),
    "odeint, adjoint": lambda f, x: ad.odeint(
        lambda y, t: (f(y), -y)[1], x, [0.0, 0.1], rtol=0.1, atol=0.1, gradient="adjoint"
    ),
    "scipy.minimize": lambda f, x: ad.scipy.minimize(
        lambda x: (f(x), (x * x).sum())[1], x, method="SLSQP", constraints={"type": "eq", "fun": f}
    ),
    "scipy.least_squares": lambda f, x: ad.scipy.least_squares(lambda x: (f(x), x - 1)[1], x),
    "scipy.root": lambda f, x: ad.scipy.root(lambda x: (f(x), x - 1)[1], x),
    "scipy.curve_fit": lambda f, x: ad.scipy.curve_fit(
        lambda t, p: (f(p), p * t)[1], np.arange(6.0).reshape(3, 2), np.eye(3, 2), {"p": x}
    ),
}


@pytest.fixture
def fresh_process() -> Iterator[None]:
    """The process's default is put back after the test."""
    before = ad.default_dtype()
    yield
    ad.set_default_dtype(before)


# --- what is asked for ---


def test_pythons_types_are_what_they_are_everywhere_else() -> None:
    for kind, dtype in ((float, ad.float64), (complex, ad.complex128), (int, ad.int64), (bool, ad.bool)):
        assert ad.zeros(2, dtype=kind).dtype is dtype
        assert ad.tensor([1, 0], dtype=kind).dtype is dtype
        assert ad.ones(2).astype(kind).dtype is dtype
        assert ad.full_like(ad.ones(2), 1, dtype=kind).dtype is dtype
        assert ad.result_type(np.dtype(kind)) is dtype


@pytest.mark.parametrize("default", [ad.float16, ad.float32, ad.float64], ids=str)
def test_a_dtype_that_is_given_is_the_dtype(default: Any) -> None:
    given = {float: ad.float64, "float32": ad.float32, np.float64: ad.float64, np.dtype("f2"): ad.float16}

    def f(x: Any) -> Any:
        for name, make in CREATED.items():
            for wanted, dtype in given.items():
                with each((name, wanted)):
                    assert make(dtype=wanted).dtype is dtype
        return x.sum()

    with Each() as each, ad.use_dtype(default):
        f(ad.ones(2))
        ad.grad(f)(X)


def test_every_creation_function_is_among_them() -> None:
    """Those that take a dtype and are not told one by an argument."""
    takes = {
        name
        for module in (creation, ranges)
        for name, f in inspect.getmembers(module, inspect.isfunction)
        if name in ad.__all__ and f.__module__ == module.__name__ and "dtype" in inspect.signature(f).parameters
    }
    assert "linspace" in takes
    assert takes - {"astype", "zeros_like", "ones_like", "empty_like", "full_like"} <= set(CREATED)


# --- the default ---


def test_the_default_is_float32() -> None:
    with Each() as each:
        expect(each, ad.float32)


@pytest.mark.parametrize("dtype", [ad.float16, ad.float32, ad.float64], ids=str)
def test_the_ways_to_set_it(dtype: Any, fresh_process: None) -> None:
    with Each() as each:
        with ad.use_dtype(dtype) as found:
            assert found is dtype
            expect(each, dtype, "use_dtype")
            with ad.use_dtype("float32"):
                expect(each, ad.float32, "inner")
            expect(each, dtype, "use_dtype again")
        expect(each, ad.float32, "after")
        ad.set_default_dtype(dtype)
        expect(each, dtype, "set_default_dtype")
        with ad.use_dtype(float):
            expect(each, ad.float64, "use_dtype over set_default_dtype")


def test_the_namespace_names_it() -> None:
    with ad.use_dtype(ad.float64):
        found = ad.__array_namespace_info__().default_dtypes()
    assert found["real floating"] is ad.float64
    assert found["complex floating"] is ad.complex128


def test_python_numbers_stay_weak() -> None:
    with ad.use_dtype(ad.float64):
        x = ad.ones(2, dtype=ad.float32)
        assert (x * 0.1).dtype is (x + 1).dtype is ad.float32
        assert (x * 1j).dtype is ad.complex64
        assert ad.where(x > 0, x, 0.1).dtype is ad.float32
        assert ad.special.xlogy(ad.arange(2), x).dtype is ad.float32


def test_every_thread_sees_what_is_set_and_none_a_block(fresh_process: None) -> None:
    wanted, seen = threading.Event(), []

    def look() -> None:
        wanted.wait(60)
        seen.append(ad.zeros(1).dtype)

    threads = [threading.Thread(target=look)]
    threads[0].start()
    ad.set_default_dtype(ad.float64)
    with ad.use_dtype(ad.float16):
        wanted.set()
        threads.append(threading.Thread(target=look))
        threads[1].start()
        for thread in threads:
            joined(thread)
        inside: list[Any] = []
        contextvars.copy_context().run(lambda: inside.append(ad.zeros(1).dtype))
        assert inside == [ad.float16]
    assert seen == [ad.float64, ad.float64]


def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return processes.python(source, check=False, env={**os.environ, **environment})


def test_the_environment_sets_it() -> None:
    source = "import adjoint as ad; print(ad.zeros(1).dtype); ad.set_default_dtype('float16'); print(ad.zeros(1).dtype)"
    assert run(source, ADJOINT_DTYPE="float64").stdout.split() == ["float64", "float16"]
    assert run(source, ADJOINT_DTYPE="").stdout.split() == ["float32", "float16"]
    for name in ("int64", "complex64", "nothing"):
        failed = run(source, ADJOINT_DTYPE=name)
        assert failed.returncode == 1
        assert "DtypeError: the environment variable ADJOINT_DTYPE" in failed.stderr
        assert name in failed.stderr


@pytest.mark.parametrize("wrong", [ad.int64, complex, ad.complex64, bool, "float128", "nothing", 3.0, object])
def test_what_is_no_default(wrong: Any) -> None:
    before = ad.default_dtype()
    for name, change in (("set_default_dtype", ad.set_default_dtype), ("use_dtype", ad.use_dtype)):
        with pytest.raises(errors.DtypeError, match="dtype") as caught:
            change(wrong)
        assert name in str(caught.value) or "not supported" in str(caught.value)
    assert ad.default_dtype() is before


def test_use_dtype_without_with_says_that_it_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = ad.default_dtype(), []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_value))
    ad.use_dtype(ad.float16)
    assert ad.default_dtype() is before
    (error,) = seen
    assert isinstance(error, errors.DtypeError)
    assert "ad.set_default_dtype('float16')" in str(error)
    assert "test_default_dtypes.py" in str(error)
    double = ad.use_dtype(float)
    assert repr(double) == "use_dtype('float64')"
    with double, double:
        assert ad.default_dtype() is ad.float64
    with double:
        assert ad.default_dtype() is ad.float64
    assert ad.default_dtype() is before
    assert len(seen) == 1


# --- in functions of transforms ---


@pytest.mark.parametrize("name", [*TRANSFORMS, *SOLVERS])
def test_what_a_function_makes_is_as_precise_as_its_arguments(name: str) -> None:
    transform = {**TRANSFORMS, **SOLVERS}[name]
    with Each() as each:
        for label, x, dtype in (
            ("float64", X, ad.float64),
            ("float32", X.astype(np.float32), ad.float32),
            ("a number", 0.5, ad.float64),
            ("NumPy's number", np.float32(0.5), ad.float32),
            ("a tensor", ad.tensor(X), ad.float32),
        ):
            if name.startswith("sparse") and np.ndim(x) == 0:
                x = np.reshape(np.asarray(x), 1)
            f = watching(each, dtype, label)
            transform(f, x)
            assert f.runs, label  # type: ignore[attr-defined]
            with ad.use_dtype(ad.float16):  # outside of the transform
                transform(watching(each, ad.float16, f"{label} in use_dtype"), x)
        expect(each, ad.float32, "after")


def test_of_several_arguments_the_precision_of_what_is_differentiated_counts() -> None:
    single, double, other = X.astype(np.float32), X, X.astype(np.complex128)
    with Each() as each:
        ad.grad(watching(each, ad.float32, "not the others"))(single, double)
        ad.grad(watching(each, ad.float64, "both"), argnums=(0, 1))(single, double)
        ad.grad(watching(each, ad.float64, "complex"))(other)
        ad.grad(watching(each, ad.float32, "complex64"))(other.astype(np.complex64))
        ad.grad(lambda tree: watching(each, ad.float64, "a tree")(tree["a"]))({"a": single, "b": [double]})
        ad.grad(watching(each, ad.float32, "a tensor among them"), argnums=(0, 1))(double, ad.tensor(double))
        ad.grad(watching(each, ad.float64, "beside a tensor"))(double, ad.ones(2))
        ad.grad(watching(each, ad.float16, "half"))(X.astype(np.float16))


def test_the_process_does_not_win_over_a_transform_and_a_block_does(fresh_process: None) -> None:
    ad.set_default_dtype(ad.float16)

    def f(x: Any) -> Any:
        expect(each, ad.float64, "transform")
        with ad.use_dtype(ad.float32):
            expect(each, ad.float32, "block inside")
            ad.grad(watching(each, ad.float32, "transform in a block inside"))(X)
        expect(each, ad.float64, "transform again")
        return (x * x).sum()

    with Each() as each:
        ad.grad(f)(X)
        ad.grad(watching(each, ad.float16, "a tensor"))(ad.tensor(X))


def test_vmap_loops_and_tensors_change_nothing() -> None:
    def loops(x: Any, dtype: Any, label: str) -> Any:
        look = watching(each, dtype, label)
        ad.scan(lambda c, a: (look(c), a), ad.sum(x), np.ones(2))
        ad.map(look, np.ones((2, 2)))
        ad.fori_loop(0, 1, lambda i, c: look(c), ad.sum(x))
        ad.while_loop(lambda c: c < 0.1, lambda c: c + look(c) + 1, 0.0)
        ad.cond(True, look, look, x)
        ad.vmap(look)(np.ones((2, 3)))
        ad.checkpoint(look)(x)
        ad.grad(look)(ad.asarray(x))
        ad.jvp(look, (ad.asarray(x),), (ad.asarray(x),))
        return (x * x).sum()

    with Each() as each:
        loops(ad.tensor(X), ad.float32, "outside")
        ad.vmap(lambda x: loops(x, ad.float32, "vmap"))(np.stack([X, X]))
        ad.grad(lambda x: loops(x, ad.float64, "grad"))(X)
        ad.vmap(ad.grad(lambda x: loops(x, ad.float32, "vmap of grad")))(np.stack([X, X]))
        ad.grad(lambda x: ad.vmap(lambda y: loops(y, ad.float64, "grad of vmap"))(x).sum())(np.stack([X, X]))


@pytest.mark.slow
def test_a_compiled_function_is_as_precise_as_the_function() -> None:
    """What `ad.compile` records stands for the arrays that were given."""

    def scaled(x: Any) -> Any:
        return (x * x * ad.full(2, 0.1)).sum()

    def inner(x: Any) -> Any:
        return ad.grad(lambda y: (y * ad.full(2, 0.1)).sum())(x * 2) + x

    ways: dict[str, Any] = {
        "grad": ad.grad(scaled), "value_and_grad": lambda x: ad.value_and_grad(scaled)(x)[0],
        "jvp": lambda x: ad.jvp(scaled, (x,), (x,))[1], "hessian": ad.hessian(scaled),
        "hvp": lambda x: ad.hvp(scaled, (x,), (x,)), "jacobian": ad.jacobian(lambda x: x * ad.full(2, 0.1)),
        "inner": inner, "function": scaled,
    }  # fmt: skip
    x = X[:2]
    with Each() as each:
        for name, way in ways.items():
            for given in (x, x.astype(np.float32), ad.tensor(x)):
                with each((name, type(given).__name__, given.dtype)):
                    expected, found = way(given), ad.compile(way)(given)
                    close = {"rtol": 1e-14 if given.dtype == np.float64 else 1e-6}
                    assert found.dtype == expected.dtype
                    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), **close)


def test_the_innermost_transform_of_numpy_arrays_counts() -> None:
    def f(x: Any) -> Any:
        expect(each, ad.float64, "outer")
        ad.grad(watching(each, ad.float32, "inner"))(X.astype(np.float32))
        ad.vmap(lambda y: ad.grad(watching(each, ad.float16, "in vmap"))(X.astype(np.float16)))(np.ones(2))
        expect(each, ad.float64, "outer again")
        return (x * x).sum()

    with Each() as each:
        ad.grad(f)(X)


def test_it_ends_with_an_error() -> None:
    def f(x: Any) -> Any:
        raise KeyError

    with pytest.raises(KeyError):
        ad.grad(f)(X)
    assert ad.zeros(1).dtype is ad.float32


def test_gradients_through_what_is_made_are_exact() -> None:
    """A third is no number of float32's."""
    assert ad.grad(lambda x: (x * ad.arange(1, 3) / 3).sum())(X).tolist() == [1 / 3, 2 / 3]
    assert ad.grad(lambda x: (x * ad.full(2, 0.1)).sum())(X).tolist() == [0.1, 0.1]
    assert ad.hessian(lambda x: (x * x * ad.tensor([0.1, 0.3])).sum())(X).tolist() == [[0.2, 0.0], [0.0, 0.6]]


# --- random numbers ---


def test_a_seed_gives_the_same_numbers_in_every_function() -> None:
    def drawn() -> list[tuple[Any, Any]]:
        ad.random.seed(0)
        found = [
            ad.random.normal(2),
            ad.random.uniform(2),
            ad.random.normal(2, mean=1.0, std=2.0),
            ad.random.gamma(2.0, shape=(2,)),
        ]
        return [(x.dtype, ad.stop_gradient(x).tolist()) for x in found]

    def f(x: Any) -> Any:
        seen.append(drawn())
        return x.sum()

    seen: list[Any] = []
    with Each() as each:
        for dtype in (None, ad.float32, ad.float64):
            with contextlib.nullcontext() if dtype is None else ad.use_dtype(dtype):
                outside = drawn()
                assert {kind for kind, _ in outside} == {dtype or ad.float32}
                for name, transform in TRANSFORMS.items():
                    seen.clear()
                    with each((dtype, name)):
                        transform(f, X)
                        assert seen[0] == outside


# --- functions that run again ---


def test_a_function_that_runs_again_makes_the_same() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((ad.zeros(1).dtype, ad.random.normal(()).dtype))
        return (x * ad.full((), 0.1)) ** 2

    x = np.ones((2, 2))
    for dtype, drawn in ((None, ad.float32), (ad.float16, ad.float16), (ad.float64, ad.float64)):
        created = dtype or ad.float64
        seen.clear()
        if dtype is None:
            _, pullback = ad.vjp(f, X)
            _, along = ad.linearize(f, X)
        else:
            with ad.use_dtype(dtype):
                _, pullback = ad.vjp(f, X)
                _, along = ad.linearize(f, X)
        first = len(seen)
        with ad.use_dtype(ad.float32):
            ad.vmap(pullback)(x)
            ad.jacobian(lambda c, pull=pullback: pull(c)[0])(X)
            ad.jvp(along, (X,), (X,))
        assert len(seen) > first
        assert set(seen) == {(created, drawn)}


def test_chunks_of_a_loop_run_again_with_the_same() -> None:
    seen: Any = collections.deque()  # what runs again has copies of lists

    def step(c: Any, a: Any) -> Any:
        seen.append((ad.zeros(1).dtype, ad.random.normal(()).dtype))
        ad.grad(lambda y: (inner.append(ad.zeros(1).dtype), y * y)[1])(np.float16(1))
        return c * ad.full((), 0.1) + a, c

    inner: Any = collections.deque()
    loop = lambda x: ad.scan(step, x[0], x, checkpoint_every=1)[0]
    ad.grad(loop)(X)
    assert len(seen) > len(X)
    assert set(seen) == {(ad.float64, ad.float32)}
    assert set(inner) == {ad.float16}
    seen.clear()
    x = ad.tensor(X).require_grad()
    with ad.use_dtype(ad.float64):
        y = loop(x)
    forward = len(seen)
    y.backward()
    assert len(seen) > forward
    assert set(seen) == {(ad.float64, ad.float64)}


def test_rules_of_a_function_make_what_it_makes() -> None:
    seen: list[Any] = []

    @ad.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    def forward(x: Any) -> Any:
        seen.append(ad.zeros(1).dtype)
        return cube(x), x

    def backward(x: Any, g: Any) -> Any:
        seen.append(ad.zeros(1).dtype)
        return (g * 3 * x * x,)

    cube.defvjp(forward, backward)
    ad.grad(lambda x: cube(x).sum())(X)
    ad.vjp(cube, X)[1](X)
    x = ad.tensor(X).require_grad()
    with ad.use_dtype(ad.float64):
        y = cube(x).sum()
    y.backward()
    assert len(seen) == 6
    assert set(seen) == {ad.float64}


# --- leaves that lack a dtype ---


def test_a_leaf_without_float64_has_the_widest_it_has() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False), ad.use_device("autodiff<jax>"), Each() as each:
        with ad.use_dtype(ad.float64):
            for name, make in {**CREATED, **PROMOTED}.items():
                with each(name):
                    assert make().dtype is ad.float32
            for name, make in COMPLEX.items():
                with each(name):
                    assert make().dtype is ad.complex64
            with each("random"):
                assert ad.random.normal(2).dtype is ad.float32
            for name, make in CREATED.items():
                with each((name, "asked for")), pytest.raises(errors.DtypeError, match="float64"):
                    make(dtype=float)
        with each("transform"):
            ad.grad(lambda x: (x * ad.zeros(()) + ad.arange(3).mean()) * x)(0.5)
        with each("weights"):
            assert ad.bincount(ad.tensor([0, 1]), ad.ones(2)).dtype is ad.float32


TWO = [
    name
    for name, primitive in TABLE.items()
    if primitive.kind is ELEMENTWISE
    and len(primitive.operands) == 2
    and name != "ldexp"  # its second operand is of integers
    and "f" in primitive.accepts.kinds
    and callable(getattr(ad, name, None))
]


@pytest.mark.parametrize("name", TWO)
def test_numbers_in_front_of_an_array_are_as_exact_as_behind_it(name: str) -> None:
    """They were rounded to float32: subtract(1.1, array) gave float64 with seven digits."""
    f, x = getattr(ad, name), np.array([0.7, 1.1])
    for number in (1.1, [1.1, 0.7], 2):
        found, expected = f(number, x), f(ad.asarray(number, dtype=ad.float64), x)
        assert found.dtype is expected.dtype
        assert found.tolist() == expected.tolist()
    assert f(1.1, np.float32(0.7)).dtype is f(np.float32(1.1), 0.7).dtype
