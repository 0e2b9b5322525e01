"""Calls of the array functions beyond the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases.linalg import MAKERS, diagonalizable

import adjoint as ad
from functions.draw import Call, Draw, Shape

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}


def _each(names: str, maker: Callable[[Any, Draw], Call]) -> None:
    for name in names.split():
        FUNCTIONS[name] = lambda d, f=getattr(ad, name): maker(f, d)


# --- moves ---


def _moving(name: str) -> Callable[[Draw], Call]:
    def make(d: Draw) -> Call:
        shape = d.shape(2)
        n = len(shape)
        match name:
            case "swapaxes":
                i, j = d.axis(shape), d.axis(shape)
                f: Any = lambda a: ad.swapaxes(a, i, j)
            case "rot90":
                k, axes = d.pick(0, 1, 2, 3, -1), d.pick((0, 1), (1, 0), (-1, 0))
                f = lambda a: ad.rot90(a, k, axes=axes)
            case "split":
                f = d.pick(lambda a: ad.split(a, 1, axis=-1), lambda a: ad.split(a, [1], axis=0))
            case "array_split":
                axis, count = d.axis(shape), d.pick(1, 2, 3, [1, 2])
                f = lambda a: ad.array_split(a, count, axis=axis)
            case "diagonal":
                k, axes = d.pick(0, 1, -1, 4), d.pick((0, 1), (1, 0), (0, n - 1))
                f = lambda a: ad.diagonal(a, k, *axes)
            case "ravel" | "fliplr" | "flipud":
                f = getattr(ad, name)
            case "delete":
                f = d.pick(lambda a: ad.delete(a, []), lambda a: ad.delete(a, slice(0, 1), axis=0))
            case _:
                raise AssertionError(name)
        return f, d.either(shape)

    return make


FUNCTIONS |= {
    name: _moving(name) for name in "swapaxes rot90 split array_split diagonal ravel fliplr flipud delete".split()
}
_each(
    "atleast_1d atleast_2d atleast_3d",
    lambda f, d: d.pick((f, d.either(d.shape(0, 4))), (f, d.either(d.shape(0, 4)), d.either(d.shape(0, 4)))),
)


def _stacks(f: Any, d: Draw) -> Call:
    shape = d.pick((2,), (2, 3), (2, 3, 1), (0, 2)) if f is not ad.column_stack else d.pick((2,), (2, 3), (0, 2))
    return (lambda *xs: f(xs)), *[d.either(shape) for _ in range(d.pick(2, 1, 3))]


_each("hstack vstack dstack column_stack", _stacks)


def _block(d: Draw) -> Call:
    return d.pick(
        (lambda a, b, c: ad.block([[a, b], [c]]), d.either((2, 1)), d.either((2, 2)), d.either((1, 3))),
        (lambda a, b: ad.block([a, b]), d.either((2,)), d.either((1,))),
        (lambda a: ad.block(a), d.either(())),
        (lambda a, b: ad.block([[[a]], [[b]]]), d.either((1, 2)), d.either((2, 1, 2))),
    )


def _insert(d: Draw) -> Call:
    return d.pick(
        (lambda a, v: ad.insert(a, 1, v), d.either((2, 2)), d.either(())),
        (lambda a, v: ad.insert(a, 1, v, axis=1), d.either((2, 3)), d.either((2,))),
        (lambda a, v: ad.insert(a, [2, 0], v, axis=1), d.either((2, 3)), d.either((2, 2))),
        (lambda a, v: ad.insert(a, [0, 0, 3], v), d.either((3,)), d.either((3,))),
        (lambda a, v: ad.insert(a, slice(0, 2), v, axis=0), d.either((2, 3)), d.either((3,))),
    )


def _append(d: Draw) -> Call:
    return d.pick(
        (lambda a, b: ad.append(a, b), d.either((2, 2)), d.either((3,))),
        (lambda a, b: ad.append(a, b, axis=0), d.either((2, 2)), d.either((1, 2))),
    )


def _diag(d: Draw) -> Call:
    k = d.pick(0, 1, -2)
    return (lambda a: ad.diag(a, k=k)), d.either(d.pick((3,), (0,), (2, 3), (3, 2)))


def _sliding(d: Draw) -> Call:
    shape, size, axis = d.pick(
        ((5,), 2, 0), ((5,), 4, -1), ((3, 4), (2, 3), None), ((3, 4), (2, 2), (1, 0)), ((2, 3), 1, 1),
        ((4,), (2, 2), (0, 0)), ((0, 3), 2, 1),
    )  # fmt: skip
    return (lambda a: ad.sliding_window_view(a, size, axis=axis)), d.either(shape)


FUNCTIONS |= {
    "block": _block,
    "insert": _insert,
    "append": _append,
    "diag": _diag,
    "diagflat": lambda d: ((lambda a: ad.diagflat(a, k=1)), d.either(d.shape(0, 2, sizes=(2, 1)))),
    "sliding_window_view": _sliding,
}

# --- places ---


def _scatter(d: Draw) -> Call:
    mode, own = d.pick("set", "add", "multiply", "max", "min", "mean"), d.pick(True, False)
    shape, key, part = d.pick(
        ((4,), [2, 0, 2], (3,)), ((3, 2), (slice(None), [1, 1]), (3, 2)), ((3, 2), ([0, 2, 0], [1, 0, 1]), (3,)),
        ((3,), slice(1, None), (2,)), ((3, 2), 1, ()), ((2, 3), ([1, 1],), (1, 3)), ((3,), [True, False, True], (2,)),
        ((3,), [], (0,)),
    )  # fmt: skip
    x, v = two(d, shape, part) if mode in ("max", "min") else (d.either(shape), d.either(part))
    return (lambda a, b: ad.scatter(a, key, b, mode=mode, include_self=own)), x, v


def two(d: Draw, left: Shape, right: Shape) -> tuple[Any, Any]:
    """Two arrays of which no elements tie."""
    count = int(np.prod(left))
    values = np.asarray(d.distinct((count + int(np.prod(right)),)))
    return d.lay(values[:count].reshape(left)), d.lay(values[count:].reshape(right))


def _put_along_axis(d: Draw) -> Call:
    mode, own = d.pick("set", "add", "multiply", "max", "min", "mean"), d.pick(True, False)
    shape, places, axis = d.pick(
        ((3, 2), (3, 4), 1), ((3, 2), (1, 2), 0), ((3,), (4,), -1), ((2, 3, 2), (2, 2, 2), 1), ((2, 3), (2, 0), 1)
    )
    indices = d.indices(places, shape[axis])
    part = d.pick(places, (), (1,) * len(places))
    if part and 0 in places:
        part = places
    x, v = two(d, shape, part) if mode in ("max", "min") else (d.either(shape), d.either(part))
    return (lambda a, b: ad.put_along_axis(a, indices, b, axis=axis, mode=mode, include_self=own)), x, v


def _segment(f: Any, d: Draw) -> Call:
    shape = d.pick((4,), (4, 2), (2, 3), (0, 2))
    axis = d.axis(shape)
    segments, count = d.rng.integers(0, 3, shape[axis]), d.pick(3, 4)
    if f in (ad.segment_max, ad.segment_min):  # what is empty is infinite, and then has no differences
        return (
            lambda a: ad.where(ad.isfinite(f(a, segments, count, axis=axis)), f(a, segments, count, axis=axis), 0.0)
        ), (d.distinct(shape))
    return (lambda a: f(a, segments, count, axis=axis)), d.either(shape)


def _bincount(d: Draw) -> Call:
    n = d.pick(4, 1, 0)
    numbers, least = d.rng.integers(0, 3, n), d.pick(0, 5)
    return d.pick(
        (lambda w: ad.bincount(numbers, w, minlength=least), d.either((n,))),
        (lambda w: ad.bincount(numbers, w, length=3), d.either((n,))),
    )


def _running(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.axis(shape)
    return (lambda a: f(a, axis=axis)), d.distinct(shape)


_each("segment_sum segment_prod segment_max segment_min segment_mean", _segment)
_each("cummax cummin", _running)
FUNCTIONS |= {"scatter": _scatter, "put_along_axis": _put_along_axis, "bincount": _bincount}

# --- statistics ---


def _holes(d: Draw, x: Any) -> Any:
    """A function of x with nans at places that are no function of it, so that differences make sense."""
    mask = d.rng.uniform(size=x.shape) < 0.3
    return lambda a: ad.where(ad.asarray(mask, device=a.device), ad.nan, a)


def _nan_reduction(f: Any, d: Draw) -> Call:
    shape = d.shape(sizes=(3, 2))
    axis, keepdims = d.axes(shape), d.pick(False, True)
    x = d.distinct(shape)
    holed = _holes(d, x)

    def call(a: Any) -> Any:
        out = f(holed(a), axis=axis, keepdims=keepdims)
        return ad.where(ad.isnan(out), 0.0, out)

    return call, x


_each("nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian", _nan_reduction)


def _quantile(f: Any, d: Draw) -> Call:
    shape = d.shape(sizes=(3, 1, 2))
    axis, keepdims = d.axes(shape), d.pick(False, True)
    scale = 100 if f in (ad.percentile, ad.nanpercentile) else 1
    q = d.pick(0.4, [0.1, 0.5], 1.0, [], [[0.2]][0])
    method = d.pick("linear", "lower", "higher", "midpoint", "nearest", "hazen", "inverted_cdf", "median_unbiased")
    q = np.asarray(q) * scale
    weights = None
    if f in (ad.quantile, ad.percentile) and method == "inverted_cdf":
        weights = d.between(shape, 0.5, 1.5)
    x = d.distinct(shape)
    if f in (ad.nanquantile, ad.nanpercentile):
        holed = _holes(d, x)

        def call(a: Any) -> Any:
            out = f(holed(a), q, axis, method=method, keepdims=keepdims)
            return ad.where(ad.isnan(out), 0.0, out)

        return call, x
    return (lambda a: f(a, q, axis, method=method, keepdims=keepdims, weights=weights)), x


def _whole(f: Any, d: Draw) -> Call:
    shape = d.shape(sizes=(3, 1, 2))
    axis, keepdims = d.axes(shape), d.pick(False, True)
    return (lambda a: f(a, axis=axis, keepdims=keepdims)), d.distinct(shape)


def _average(d: Draw) -> Call:
    return d.pick(
        (ad.average, d.either((2, 3))),
        (lambda a, w: ad.average(a, axis=0, weights=w), d.either((2, 3)), d.positive((2, 3))),
        (lambda a, w: ad.average(a, axis=1, weights=w, keepdims=True), d.either((2, 3)), d.positive((3,))),
        (lambda a, w: ad.average(a, weights=w), d.either((2, 3)), d.positive((2, 3))),
    )


def _cov(d: Draw) -> Call:
    return d.pick(
        (ad.cov, d.either((2, 4))),
        (lambda a, b: ad.cov(a, b, rowvar=False), d.either((4, 2)), d.either((4, 1))),
        (lambda a, w: ad.cov(a, aweights=w), d.either((2, 4)), d.positive((4,))),
        (lambda a, w: ad.cov(a, aweights=w, fweights=[1, 2, 1, 3], correction=0), d.either((2, 4)), d.positive((4,))),
        (ad.cov, d.either((4,))),
    )


def _corrcoef(d: Draw) -> Call:
    return d.pick((ad.corrcoef, d.either((2, 5))), (ad.corrcoef, d.either((5,)), d.real((5,))))


_each("median ptp", _whole)
_each("quantile percentile nanquantile nanpercentile", _quantile)
FUNCTIONS |= {"average": _average, "cov": _cov, "corrcoef": _corrcoef}

# --- among sorted values ---


def _interp(d: Draw) -> Call:
    xp = np.sort(d.distinct((4,)))
    x = d.pick(
        np.concatenate([xp[:-1] + 0.4 * np.diff(xp), [xp[0] - 0.5, xp[-1] + 0.5]]),
        np.asarray(xp[1] + 0.05),
        np.zeros(0),
    )
    left = d.pick(None, 2.5)
    return d.pick(
        (lambda a, b, c: ad.interp(a, b, c, left=left), d.lay(x), d.lay(xp), d.either((4,))),
        (lambda a, b, c: ad.interp(a, b, c, period=7.0), d.lay(x), d.lay(xp), d.real((4,))),
        (lambda a, b, c: ad.interp(a, b, c), d.lay(x), d.real((1,)) + 9.0, d.real((1,))),
    )


def _histogram(d: Draw) -> Call:
    x = d.distinct((6,))
    bins, span, density = d.pick(3, [-1.0, 0.0, 0.5, 2.0]), d.pick(None, (-0.5, 0.7)), d.pick(False, True)
    return (lambda w: ad.histogram(x, bins, range=span, weights=w, density=density)[0]), d.positive((6,)) + 1.0


FUNCTIONS |= {"interp": _interp, "histogram": _histogram}

# --- calculus ---


def _gradient(d: Draw) -> Call:
    order = d.pick(1, 2)
    h = np.cumsum(d.rng.uniform(0.5, 1.5, 4))
    return d.pick(
        (lambda a: ad.gradient(a, edge_order=order), d.either((4, 3))),
        (lambda a: ad.gradient(a, 2.0, axis=0, edge_order=order), d.either((4, 2))),
        (lambda a, b: ad.gradient(a, b, axis=1, edge_order=order), d.either((2, 4)), h),
        (lambda a, b, c: ad.gradient(a, b, c, edge_order=order), d.real((4, 3)), h, d.positive(())),
    )


def _trapezoid(f: Any, d: Draw) -> Call:
    shape = d.pick((4,), (2, 3), (1, 2), (2, 0)) if f is ad.trapezoid else d.pick((4,), (2, 3), (1, 2))
    return d.pick(
        (f, d.either(shape)),
        (lambda a, b: f(a, b), d.either(shape), d.real((shape[-1],))),
        (lambda a, b: f(a, b, axis=0), d.either(shape), d.real(shape)),
        (lambda a, b: f(a, dx=b), d.either(shape), d.real(())),
    )


def _convolve(f: Any, d: Draw) -> Call:
    mode = d.pick("full", "same", "valid")
    n, m = d.pick((4, 2), (2, 4), (3, 3), (5, 1), (1, 1))
    return (lambda a, b: f(a, b, mode=mode)), d.either((n,)), d.either((m,))


def _polyval(d: Draw) -> Call:
    return ad.polyval, d.either((d.pick(3, 1, 0),)), d.either(d.shape(0, 2))


def _vander(d: Draw) -> Call:
    n, increasing = d.pick(None, 0, 1, 4), d.pick(False, True)
    return (lambda a: ad.vander(a, n, increasing=increasing)), d.either((d.pick(3, 1, 0),))


def _unwrap(d: Draw) -> Call:
    return d.pick(
        (ad.unwrap, np.cumsum(d.distinct((5,)) * 2.3)),
        (lambda a: ad.unwrap(a, axis=0, period=1.7, discont=1.3), d.distinct((3, 2))),
    )


_each("trapezoid cumulative_trapezoid", _trapezoid)
_each("convolve correlate", _convolve)
FUNCTIONS |= {"gradient": _gradient, "polyval": _polyval, "vander": _vander, "unwrap": _unwrap}

# --- choices ---


def _select(d: Draw) -> Call:
    first, second = d.mask((2, 3)), d.mask((3,))
    return d.pick(
        (lambda a, b: ad.select([first, second], [a, b], 0.5), d.either((2, 3)), d.either((3,))),
        (lambda a, b: ad.select([first], [a], b), d.either((2, 3)), d.either(())),
    )


def _piecewise(d: Draw) -> Call:
    return d.pick(
        (lambda a: ad.piecewise(a, [a < 0, a > 1], [lambda t: t * t, ad.sin, 2.0]), d.real((2, 3))),
        (lambda a: ad.piecewise(a, [a < 0], [lambda t, k: t * k], 3.0), d.real((3,))),
    )


def _fmod(d: Draw) -> Call:
    x, y = d.shapes(2)
    whole = d.rng.integers(1, 4, y) * d.rng.choice([-1.0, 1.0], y)
    return ad.fmod, (d.rng.integers(0, 6, x) + d.between(x, 0.2, 0.4)) * d.rng.choice([-1.0, 1.0], x), d.lay(whole)


def _ldexp(d: Draw) -> Call:
    x, y = d.shapes(2)
    powers = d.rng.integers(-4, 5, y)
    return (lambda a: ad.ldexp(a, powers)), d.real(x)


def _heaviside(d: Draw) -> Call:
    x = d.rng.integers(-1, 2, (5,)) * 1.0
    return (lambda h: ad.heaviside(x, h)), d.real(d.pick((), (5,)))


def _nan_to_num(d: Draw) -> Call:
    x = d.either((5,))
    holed = _holes(d, x)
    return (lambda a: ad.nan_to_num(holed(a) if a.dtype.kind == "f" else a, nan=1.5)), x


def _lerp(d: Draw) -> Call:
    x, y, w = d.shapes(3)
    return d.pick(
        (ad.lerp, d.either(x), d.either(y), d.real(w)), ((lambda a, b: ad.lerp(a, b, 0.3)), d.real(x), d.real(y))
    )


_each("deg2rad rad2deg", lambda f, d: (f, d.real(d.shape())))
FUNCTIONS |= {
    "select": _select,
    "piecewise": _piecewise,
    "fmod": _fmod,
    "ldexp": _ldexp,
    "frexp": lambda d: (lambda a: ad.frexp(a)[0], d.between(d.shape(), 0.55, 0.95) * 2.0 ** d.pick(0, 3, -2)),
    "heaviside": _heaviside,
    "nan_to_num": _nan_to_num,
    "lerp": _lerp,
}


def _beside_nan(f: Any, d: Draw) -> Call:
    x, y = d.shapes(2)
    left, right = d.grid(x, 0.1), d.grid(y, 0.4)
    holed = _holes(d, left)
    return (lambda a, b: f(holed(a), b)), left, right


_each("fmax fmin", _beside_nan)
FUNCTIONS |= {
    "exp2": lambda d: (ad.exp2, d.either(d.shape())),
    "angle": lambda d: (ad.angle, d.either(d.shape())),
}

# --- products, polynomials, running sums, parts ---


def _product(f: Any, d: Draw) -> Call:
    x, y = d.pick(((3,), (3,)), ((2, 3), (3, 4)), ((), (2,)), ((0,), (0,)), ((2, 2, 3), (3,)))
    if f is ad.vdot:
        x, y = d.pick(((3,), (3,)), ((2, 3), (3, 2)), ((), ()), ((0,), (0,)))
    return f, d.either(x), d.either(y)


def _running_without_nans(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis, x = d.axis(shape), d.real(shape)
    holed = _holes(d, x)
    return (lambda a: f(holed(a), axis=axis)), x


def _partition(d: Draw) -> Call:
    kth = d.pick(0, 1, [0, -1])
    return (lambda a: ad.partition(a, kth, axis=0)), d.distinct(d.pick((4,), (3, 2)))


def _pairs(f: Any, d: Draw) -> Call:
    return f, d.either((d.pick(3, 1),)), d.either((d.pick(2, 4),))


def _polyfit(d: Draw) -> Call:
    degree = d.pick(0, 1, 2)
    x = d.distinct((5,))
    return d.pick(
        (lambda a, b: ad.polyfit(a, b, degree), x, d.either((5,))),
        (lambda a, b, c: ad.polyfit(a, b, degree, w=c), x, d.real((5, 2)), d.positive((5,))),
    )


_each("dot vdot", _product)
_each("nancumsum nancumprod", _running_without_nans)
_each("polyadd polymul", _pairs)
_each("polyder polyint", lambda f, d: ((lambda a, m=d.pick(1, 0, 2): f(a, m)), d.either((d.pick(3, 1),))))


def _roots(d: Draw) -> Call:
    """Of roots that are apart in size, in the order of their sizes."""
    apart = np.array([0.5, -1.2, 2.0, 3.1])[: d.pick(3, 1, 2, 0, 4)] * d.pick(1.0, 1 + 0.5j)

    def ordered(p: Any) -> Any:
        found = ad.roots(p)
        return ad.take(found, ad.argsort(abs(found)))

    return ordered, d.lay(np.atleast_1d(np.poly(apart)) * d.pick(1.0, 2.5))


def _poly(d: Draw) -> Call:
    return ad.poly, d.pick(d.either((3,)), d.real((1,)), d.either((0,)), diagonalizable(d.pick(*MAKERS))(3, 3))


def _polydiv(d: Draw) -> Call:
    u, v = d.either((d.pick(5, 1, 2),)), d.either((d.pick(2, 1, 3),))
    return ad.polydiv, u, v


FUNCTIONS |= {"partition": _partition, "polyfit": _polyfit, "roots": _roots, "poly": _poly, "polydiv": _polydiv}

# made from nothing, or without derivatives and of other arguments: tests of their own compare them
OTHER = set(
    "tri tril_indices triu_indices indices logspace geomspace one_hot digitize nanargmax nanargmin "
    "isclose allclose array_equal argpartition argwhere flatnonzero diag_indices unravel_index "
    "ravel_multi_index gcd lcm trim_zeros unique unique_consecutive".split()
)
