"""Taylor mode: every primitive's series, against nested forward mode, JAX, and series that are known."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, RECORDED, arrays_of, call, halved, is_finite, is_float, rounds, subsets
from cases import CASES, Case
from conftest import peer
from each import Each

import adjoint as ad
from adjoint import errors
from adjoint.decorators.taylor import Series
from adjoint.primitives import TABLE
from adjoint.rules import RECORDS, Custom

LEAF = ad.NumPy()
ORDER = 3
Values = np.ndarray[Any, Any]


def curves(xs: list[Values], order: int) -> list[list[Values]]:
    """Random derivatives of each array along a curve, small enough to stay clear of kinks."""
    rng = np.random.default_rng(11)

    def values(x: Values) -> Values:
        real, imaginary = 0.3 * rng.uniform(-1, 1, (2, *x.shape))
        return np.asarray(real + 1j * imaginary if x.dtype.kind == "c" else real).astype(x.dtype)

    return [[values(x) for _ in range(order)] for x in xs]


def nested(f: Callable[..., Any], xs: list[Values], series: list[list[Values]], base: Any = LEAF) -> list[Any]:
    """f on the curve of these derivatives, and its derivatives in t at 0, by forward mode over forward mode."""

    def at(t: Any) -> Any:
        points = []
        for x, terms in zip(xs, series, strict=True):
            moved: Any = 0.0
            for k in range(len(terms), 0, -1):
                moved = (moved + ad.asarray(terms[k - 1], device=base) / math.factorial(k)) * t
            points.append(ad.asarray(x, device=base) + moved)
        return f(*points)

    def slope(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda t: ad.jvp(g, (t,), (1.0,))[1]

    start, found, g = ad.tensor(0.0, dtype=ad.float64, device=base), [], at
    for _ in range(len(series[0]) + 1):
        found.append(g(start))
        g = slope(g)
    return found


def first(f: Callable[..., Any]) -> Callable[..., Any]:
    def of_the_first(*xs: Any) -> Any:
        out = f(*xs)
        return out[0] if isinstance(out, tuple) else out

    return of_the_first


def calls(name: str) -> Iterator[tuple[Case, Callable[..., Any], list[Values]]]:
    """Each case of a primitive with each choice of active operands."""
    for case in CASES[name]:
        operands = arrays_of(case)
        if rounds(name, case) or not is_finite(name, case):
            continue
        for tracked in subsets(operands):
            yield case, first(call(name, case, operands, tracked)), [operands[i] for i in tracked]


def on(level: Any, x: Any, order: int) -> Any:
    """An operand on a level: floating arrays move, each derivative half of the array."""
    if is_float(x):
        return Series(x, [x * x.dtype.type(0.5)] * order, None)
    return level.wrap(x) if isinstance(x, np.ndarray) else x


def compare(ours: Any, theirs: Any, what: str = "", rtol: float = 1e-12) -> None:
    x, y = np.asarray(ours), np.asarray(theirs)
    assert (x.shape, x.dtype) == (y.shape, y.dtype), what
    np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.max(np.abs(y), initial=1.0), err_msg=what)


def along(f: Callable[[Any], Any], x: Any, order: int) -> list[Any]:
    """f and its derivatives at a number."""
    value, series = ad.jet(f, (x,), ([1.0] + [0.0] * (order - 1),))
    return [value, *series]


# --- every primitive ---


# whose rules are quadratures
SLOW = {"attention_pullback", "betaincinv", "betainccinv", "lstm_pullback", "stdtr", "stdtrit"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in DIFFERENTIABLE])
def test_every_case_is_as_with_nested_forward_mode(name: str) -> None:
    compared = 0
    with Each() as each:
        for case, f, xs in calls(name):
            with each(case):
                series = curves(xs, ORDER)
                with np.errstate(all="ignore"):
                    value, derivatives = ad.jet(f, tuple(xs), tuple(series))
                    expected = nested(f, xs, series)
                if expected[0].dtype.kind not in "fc":
                    continue
                for k, (mine, wanted) in enumerate(zip([value, *derivatives], expected, strict=True)):
                    compare(mine, wanted.numpy(), f"order {k}")
                    compared += 1
    assert compared


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_terms_have_the_shape_and_dtype_of_the_result(name: str) -> None:
    level: Any = ad.Taylor(LEAF, 2)
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = halved(arrays_of(case))
                with np.errstate(all="ignore"):
                    out = getattr(level, name)(*[on(level, x, 2) for x in operands], **case.parameters)
                for part in out if isinstance(out, tuple) else (out,):
                    for term in [part.term(1), part.term(2)]:
                        if term is not None:
                            assert (term.shape, term.dtype) == (part.value.shape, part.value.dtype)


@pytest.mark.parametrize("name", sorted(set(RECORDED) - set(DIFFERENTIABLE)))
def test_constants_have_no_series(name: str) -> None:
    level: Any = ad.Taylor(LEAF, 2)
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                with np.errstate(all="ignore"):
                    out = getattr(level, name)(*[on(level, x, 2) for x in arrays_of(case)], **case.parameters)
                assert not level.is_active(out)
                assert out.term(1) is None


class Counting(ad.NumPy):
    """NumPy that counts what it runs."""

    runs = 0

    def implement(self, primitive: Any) -> Any:
        run = super().implement(primitive)

        def counted(*arrays: Any, **parameters: Any) -> Any:
            self.runs += 1
            return run(*arrays, **parameters)

        return counted


# Derivatives by a parameter are primitives of their own, one for each order: of two operands at once 2^n of order n,
# and the incomplete gamma functions multiply by polynomials of n terms besides.
QUANTILES = {"gammaincinv", "gammainccinv", "betaincinv", "betainccinv", "stdtrit"}
BRANCHING = {"zeta", "betainc", "gammainc", "gammaincc", "stdtr", "bessel_k", "elliptic_incomplete"} | QUANTILES
BRANCHING |= {"carlson", "jacobi_elliptic"}


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name not in BRANCHING])
def test_work_grows_with_a_power_of_the_order(name: str) -> None:
    """Nothing is computed twice: an order twice as high costs about 8 times as much, and not 64 times."""
    device = Counting()
    level = {order: ad.Taylor(device, order) for order in (8, 16)}
    for case in CASES[name]:
        operands = arrays_of(case)
        if not any(is_float(x) for x in operands):
            continue
        runs = []
        for order in level:
            active = [on(level[order], x, order) for x in operands]
            before = device.runs
            with np.errstate(all="ignore"):
                getattr(level[order], name)(*active, **case.parameters)
            runs.append(device.runs - before)
        assert runs[1] <= 10 * runs[0], (str(case), runs)
        break


# --- against JAX ---

X, Y, M = np.array([0.3, 1.2, 0.7]), np.array([1.5, 0.4, 0.9]), np.array([[1.0, 2.0, 0.5], [0.3, 1.0, 2.0]])
# what JAX's jet knows, in its words and in ours
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Values, ...]]] = {
    **{
        name: (getattr(ad, name), lambda jnp, x, name=name: getattr(jnp, name)(x), (X,))
        for name in "exp expm1 log log1p sin cos sinh cosh tanh sqrt square abs sign".split()
    },
    "erf": (ad.special.erf, lambda jnp, x: __import__("jax").scipy.special.erf(x), (X,)),
    "expit": (ad.special.expit, lambda jnp, x: __import__("jax").nn.sigmoid(x), (X,)),
    "divide": (lambda x, y: x / y, lambda jnp, x, y: x / y, (X, Y)),
    "multiply": (lambda x, y: x * y, lambda jnp, x, y: x * y, (X, Y)),
    "x ** 3": (lambda x: x**3, lambda jnp, x: x**3, (X,)),
    "x ** y": (lambda x, y: x**y, lambda jnp, x, y: x**y, (X, Y)),
    "maximum": (ad.maximum, lambda jnp, x, y: jnp.maximum(x, y), (X, Y)),
    "max": (ad.max, lambda jnp, x: jnp.max(x), (X,)),
    "where": (lambda x: ad.where(x > 0.5, x * x, x), lambda jnp, x: jnp.where(x > 0.5, x * x, x), (X,)),
    "cumulative_sum": (ad.cumulative_sum, lambda jnp, x: jnp.cumsum(x), (X,)),
    "matmul": (lambda x, m: m @ x, lambda jnp, x, m: m @ x, (X, M)),
    "index": (lambda x: x[ad.asarray([2, 0, 0])], lambda jnp, x: x[jnp.array([2, 0, 0])], (X,)),
    "a layer": (
        lambda x, m: ad.special.log_softmax(ad.tanh(m @ x) ** 2, axis=0),
        lambda jnp, x, m: __import__("jax").nn.log_softmax(jnp.tanh(m @ x) ** 2),
        (X, M),
    ),
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("factorial_scaled", [True, False])
def test_jax_agrees(name: str, factorial_scaled: bool) -> None:
    jax = peer("jax")
    jet = __import__("jax.experimental.jet", fromlist=["jet"]).jet
    ours, theirs, xs = PAIRS[name]
    series = curves(list(xs), 5)
    mine = ad.jet(ours, xs, tuple(series), factorial_scaled)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        wanted = jet(lambda *vs: theirs(jax.numpy, *vs), xs, tuple(series), factorial_scaled=factorial_scaled)
        for a, b in zip([mine[0], *mine[1]], [wanted[0], *wanted[1]], strict=True):
            compare(a, np.asarray(b), rtol=1e-10)
    finally:
        jax.config.update("jax_enable_x64", before)


# --- against series that are known ---

KNOWN: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "exp": (ad.exp, lambda mp, x: mp.exp(x)),
    "sin": (ad.sin, lambda mp, x: mp.sin(x)),
    "tan": (ad.tan, lambda mp, x: mp.tan(x)),
    "tanh": (ad.tanh, lambda mp, x: mp.tanh(x)),
    "asin": (ad.asin, lambda mp, x: mp.asin(x)),
    "acos": (ad.acos, lambda mp, x: mp.acos(x)),
    "atan": (ad.atan, lambda mp, x: mp.atan(x)),
    "asinh": (ad.asinh, lambda mp, x: mp.asinh(x)),
    "atanh": (ad.atanh, lambda mp, x: mp.atanh(x)),
    "log": (ad.log, lambda mp, x: mp.log(x)),
    "sqrt": (ad.sqrt, lambda mp, x: mp.sqrt(x)),
    "erf": (ad.special.erf, lambda mp, x: mp.erf(x)),
    "reciprocal": (lambda x: 1 / x, lambda mp, x: 1 / x),
    "x ** 2.5": (lambda x: x**2.5, lambda mp, x: x ** mp.mpf(2.5)),
    "2 ** x": (lambda x: 2.0**x, lambda mp, x: mp.mpf(2) ** x),
    "x ** x": (lambda x: x**x, lambda mp, x: x**x),
    "exp(sin(x^2))": (lambda x: ad.exp(ad.sin(x * x)), lambda mp, x: mp.exp(mp.sin(x * x))),
    "sqrt(1 + tanh(x)) / x": (lambda x: ad.sqrt(1 + ad.tanh(x)) / x, lambda mp, x: mp.sqrt(1 + mp.tanh(x)) / x),
    "atan2": (lambda x: ad.atan2(x, ad.exp(x)), lambda mp, x: mp.atan(x / mp.exp(x))),
}


@pytest.mark.parametrize("name", KNOWN)
def test_ten_orders(name: str) -> None:
    """In double precision against mpmath's differences at 60 digits."""
    mpmath = peer("mpmath")
    f, exact = KNOWN[name]
    with mpmath.workdps(60):
        wanted = [float(mpmath.diff(lambda t: exact(mpmath, t), mpmath.mpf(0.375), k)) for k in range(11)]
    np.testing.assert_allclose(along(f, 0.375, 10), wanted, rtol=1e-9)


def test_ten_orders_at_thirty_digits() -> None:
    """On the reference backend: tanh' = 1 - tanh^2 gives all its derivatives as polynomials of tanh."""
    mpmath = peer("mpmath")
    exact = ad.Reference(digits=30)
    x = ad.tensor(0.375, dtype=ad.float64, device=exact)
    one, zero = ad.ones_like(x), ad.zeros_like(x)
    _, series = ad.jet(ad.tanh, (x,), ([one] + [zero] * 9,))
    polynomial = np.array([0, 1], dtype=object)  # of tanh, with whole coefficients
    with mpmath.workdps(30):
        y = mpmath.tanh(mpmath.mpf(0.375))
        for term in series:
            slope = np.array([k * c for k, c in enumerate(polynomial)][1:], dtype=object)
            polynomial = np.convolve(slope, np.array([1, 0, -1], dtype=object))
            wanted = sum(c * y**k for k, c in enumerate(polynomial.tolist()))
            assert abs(exact.to_list(term._array)[0] - wanted) <= mpmath.mpf(10) ** -26 * (1 + abs(wanted))


def test_polynomials_are_exact_and_end() -> None:
    assert along(lambda x: 3 * x**4 - x, 2.0, 6) == [46.0, 95.0, 144.0, 144.0, 72.0, 0.0, 0.0]
    assert along(lambda x: x**3.0, 0.0, 4) == [0.0, 0.0, 0.0, 6.0, 0.0]


def test_coefficients_without_factorials() -> None:
    value, series = ad.jet(ad.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose([value, *series], [1, 1, 1 / 2, 1 / 6], rtol=1e-15)
    value, series = ad.jet(lambda x: x, (0.0,), ([1.0, 5.0, 7.0],), factorial_scaled=False)
    assert [value, *series] == [0, 1, 5, 7]


def test_faa_di_bruno() -> None:
    """The example of JAX's documentation: sin(z^3) at z = 0.5."""
    h0, h1, h2 = 0.5**3, 3 * 0.5**2, 6 * 0.5
    f0, (f1, f2) = ad.jet(ad.sin, (h0,), ([h1, h2],))
    np.testing.assert_allclose(f0, np.sin(h0))
    np.testing.assert_allclose(f1, np.cos(h0) * h1)
    np.testing.assert_allclose(f2, -np.sin(h0) * h1**2 + np.cos(h0) * h2)


# --- among other transforms ---


def f(x: Any) -> Any:
    return ad.sin(x) * ad.exp(x * x) / (1 + x)


def test_gradients_of_series_and_series_of_gradients() -> None:
    _, wanted = ad.jet(f, (0.4,), ([1.0, 0.0, 0.0, 0.0],))

    def third(x: Any) -> Any:
        return ad.jet(f, (x,), ([1.0, 0.0, 0.0],))[1][2]

    np.testing.assert_allclose(ad.grad(third)(0.4), wanted[3], rtol=1e-12)
    value, series = ad.jet(ad.grad(f), (0.4,), ([1.0, 0.0, 0.0],))
    np.testing.assert_allclose([value, *series], wanted, rtol=1e-12)


def test_series_of_series() -> None:
    """The second derivative in t of the second derivative in t."""
    wanted = along(f, 0.4, 4)[4]
    inside = lambda x: ad.jet(f, (x,), ([1.0, 0.0],))[1][1]
    np.testing.assert_allclose(along(inside, 0.4, 2)[2], wanted, rtol=1e-12)


def test_batches() -> None:
    xs = np.array([0.1, 0.4, 0.9])
    wanted = [along(f, x, 3) for x in xs]

    def each(x: Any) -> Any:
        value, series = ad.jet(f, (x,), ([1.0, 0.0, 0.0],))
        return (value, *series)

    np.testing.assert_allclose(np.stack(ad.vmap(each)(xs), axis=1), wanted, rtol=1e-14)
    value, series = ad.jet(ad.vmap(f), (xs,), ([np.ones(3), np.zeros(3), np.zeros(3)],))
    np.testing.assert_allclose(np.stack([value, *series], axis=1), wanted, rtol=1e-14)


def test_functions_with_rules_of_their_own() -> None:
    """The rule counts, at every order: here it is twice the derivative of sin."""

    @ad.custom_jvp
    def pushed(x: Any) -> Any:
        return ad.sin(x)

    @ad.custom_vjp
    def pulled(x: Any) -> Any:
        return ad.sin(x)

    pushed.defjvp(lambda p, t: (pushed(p[0]), 2 * t[0] * ad.cos(p[0])))
    pulled.defvjp(lambda x: (ad.sin(x), x), lambda x, g: (2 * g * ad.cos(x),))
    x = 0.7
    expected = [math.sin(x), *(2 * d for d in (math.cos(x), -math.sin(x), -math.cos(x), math.sin(x)))]
    for g in (pushed, pulled, lambda v: ad.vmap(pushed)(ad.stack([v, v]))[1]):
        np.testing.assert_allclose(along(g, x, 4), expected, rtol=1e-12)
    composite = lambda v: ad.exp(pushed(v * v))
    wanted = nested(composite, [np.asarray(x)], [[np.ones(()), np.zeros(()), np.zeros(())]])
    np.testing.assert_allclose(along(composite, x, 3), [w.item() for w in wanted], rtol=1e-12)


def test_checkpointed_functions() -> None:
    g = ad.checkpoint(f)
    assert along(g, 0.4, 3) == along(f, 0.4, 3)
    third = lambda x: ad.jet(g, (x,), ([1.0, 0.0, 0.0],))[1][2]
    np.testing.assert_allclose(ad.grad(third)(0.4), along(f, 0.4, 4)[4], rtol=1e-12)
    series = ad.jet(lambda x: ad.grad(g)(x), (0.4,), ([1.0, 0.0],))[1]
    np.testing.assert_allclose(series, along(f, 0.4, 3)[2:], rtol=1e-12)


def test_control_flow() -> None:
    def scanned(x: Any, every: int | None = None) -> Any:
        return ad.scan(lambda c, v: (c * ad.sin(v), c + v), x[0], x, checkpoint_every=every)[1]

    loops = [
        scanned,
        lambda x: scanned(x, 2),
        lambda x: ad.while_loop(lambda v: v.sum() < 20, lambda v: v * (1 + x), x),
        lambda x: ad.cond(x[0] > 0, ad.sin, ad.cos, x),
        lambda x: ad.map(lambda v: v**3, x),
    ]
    for g in loops:
        series = curves([X], ORDER)
        value, derivatives = ad.jet(g, (X,), tuple(series))
        for mine, wanted in zip([value, *derivatives], nested(g, [X], series), strict=True):
            compare(mine, wanted.numpy())
    slope = lambda x: ad.grad(lambda v: ad.jet(loops[1], (v,), ([X, X],))[1][1].sum())(x)
    third = lambda x: ad.grad(lambda v: ad.jet(loops[0], (v,), ([X, X],))[1][1].sum())(x)
    np.testing.assert_allclose(slope(X), third(X), rtol=1e-12)


def test_tensors_give_tensors_that_stay_tracked() -> None:
    x = ad.tensor(0.5, dtype=ad.float64).require_grad()
    value, (slope,) = ad.jet(lambda v: v**3, (x,), ([ad.ones_like(x)],))
    assert value.device is x.device
    np.testing.assert_allclose(slope.backward()[x].item(), 6 * 0.5)


def test_pytrees_of_results() -> None:
    value, series = ad.jet(lambda x: {"a": x * x, "b": (ad.argmax(x), 3.0)}, (X,), ([np.ones(3)],))
    np.testing.assert_array_equal(value["a"], X * X)
    np.testing.assert_array_equal(series["a"], [2 * X])
    assert (value["b"][0], series["b"][0]) == (1, [0])
    assert (value["b"][1], series["b"][1]) == (3.0, [0.0])


def test_no_orders() -> None:
    value, series = ad.jet(ad.exp, (0.0,), ([],))
    assert (value, series) == (1.0, [])


# --- levels ---


def test_a_plain_call() -> None:
    """On the device itself, without a transform, it computes as the inner backend does."""
    x = ad.tensor([0.5, 1.0], device=ad.Taylor(ad.NumPy()))
    np.testing.assert_array_equal(ad.sin(x).numpy(), np.sin(np.float32([0.5, 1.0])))
    assert not x.is_tracked()


def test_names_and_identity() -> None:
    assert ad.device("taylor<numpy>") is ad.Taylor(LEAF)
    assert ad.device("taylor[order=3]<numpy>") is ad.Taylor(LEAF, 3)
    assert ad.Taylor(LEAF, 3).name == "taylor[order=3]<numpy>"
    assert ad.Taylor(LEAF, 3).over(ad.Reference()) is ad.Taylor(ad.Reference(), 3)


def test_nothing_but_reference_counts_is_needed_to_free_series() -> None:
    level: Any = ad.Taylor(LEAF)  # computes on demand, so that what would be freed by force is not
    gc.collect()
    gc.disable()
    try:
        x = Series(np.asarray(0.5), [np.asarray(1.0)] * 6, None)
        for name in ("exp", "tan", "sqrt", "pow", "divide"):
            out = getattr(level, name)(*([x] if name not in ("pow", "divide") else [x, x]))
            assert np.isfinite(out.term(6))
        del out, x
        assert not [o for o in gc.get_objects() if type(o) is Series]
    finally:
        gc.enable()


def test_a_record_without_a_pushforward_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORDS, "prod", Custom(x=lambda B, g: g))
    with pytest.raises(errors.UnsupportedPrimitiveError, match="pushforward"):
        ad.Taylor(LEAF).implement(TABLE["prod"])
    monkeypatch.delitem(RECORDS, "prod")
    with pytest.raises(errors.UnsupportedPrimitiveError, match="prod has no derivative record"):
        ad.Taylor(LEAF).implement(TABLE["prod"])


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: ad.jet(ad.sin, 0.5, ([1.0],)), errors.ArgumentTypeError, "primals and series are tuples"),
        (lambda: ad.jet(ad.sin, (0.5,), [1.0]), errors.ArgumentTypeError, "series of argument 0 is a list"),
        (lambda: ad.jet(ad.sin, (0.5,), ([1.0], [1.0])), errors.ArgumentError, "1 arguments need as many series"),
        (lambda: ad.jet(ad.add, (0.5, 1.0), ([1.0], [1.0, 2.0])), errors.ArgumentError, r"lengths \[1, 2\]"),
        (lambda: ad.jet(ad.sin, ((0.5,),), ([1.0],)), errors.ArgumentTypeError, "argument 0 is tuple"),
        (lambda: ad.jet(ad.sin, (0.5,), (["a"],)), errors.ArgumentTypeError, "derivative 1 of argument 0 is str"),
        (lambda: ad.jet(ad.sin, (X,), ([np.ones(2)],)), errors.ShapeError, r"derivative 1.*\(2,\), expected \(3,\)"),
        (lambda: ad.jet(ad.sin, (X,), ([X, 1j * X],)), errors.DtypeError, "derivative 2.*complex128, expected float64"),
        (lambda: ad.jet(ad.sin, (np.arange(3),), ([X],)), errors.DtypeError, "int64, which has no derivatives"),
        (lambda: ad.jet(ad.sin, (3,), ([1.0],)), errors.DtypeError, "argument 0 is int 3"),
        (lambda: ad.jet(3, (0.5,), ([1.0],)), errors.ArgumentTypeError, "expected a function"),
        (lambda: ad.jet(lambda x: "text", (0.5,), ([1.0],)), errors.ArgumentTypeError, "results are tensors"),
        (lambda: along(ad.sin, 0.5, 400), errors.ArgumentError, "recursion limit"),
        (lambda: ad.Taylor(ad.NumPy(), -1), errors.ArgumentError, "whole number"),
        (lambda: ad.Taylor(3), errors.DeviceError, "decorates a backend"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_constant_results_are_as_others() -> None:
    held = np.ones(2)
    (number, array), _ = ad.jet(lambda x: (3.0, held), (1.0,), ([1.0],))
    assert isinstance(number, np.float64)
    assert array is not held
    x = ad.tensor(1.0)
    number, _ = ad.jet(lambda x: 3.0, (x,), ([x],))
    assert isinstance(number, ad.Tensor)
