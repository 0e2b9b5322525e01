"""Our array functions beside NumPy's own, or the best lines of NumPy for the same values, on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import adjoint as ad

Value = Any


@dataclass(frozen=True)
class Comparison:
    """One row: both functions take the same operands, ours as tensors."""

    name: str
    ours: Callable[..., Value]
    theirs: Callable[..., Value]
    operands: tuple[Value, ...] = ()
    peer: str = "NumPy"  # whose compiled function stands beside ours where NumPy has none
    equal: bool = True  # whether the values are the same: those of other random numbers are not


_RNG = np.random.default_rng(0)


def normal(*shape: int) -> Value:
    return _RNG.standard_normal(shape).astype(np.float32)


N = 100_000
X, Y, Z = normal(N), normal(N), normal(N)
M, W = normal(250, 400), normal(250, 400)
DOUBLE = X.astype(np.float64)
HOLES = np.where(_RNG.random(N) < 0.1, np.float32(np.nan), X)
HOLED = HOLES.reshape(250, 400)
CUBE = normal(32, 50, 64)
WHOLE = _RNG.integers(0, 1000, N)
PLACES = _RNG.integers(0, 400, (250, 50))
SORTED, LINE = np.sort(normal(1000)), normal(1000)
TRUE, OTHER = X > 0.5, X < -0.5
POWERS = _RNG.integers(-8, 8, N)
SMALL = normal(100)
A, B = normal(32, 32, 50), normal(32, 50, 64)


def _cummax(x: Value) -> Value:
    out = np.maximum.accumulate(x)
    hits = np.flatnonzero(x == out)
    return out, np.repeat(hits, np.diff(hits, append=len(x)))


def _cummin(x: Value) -> Value:
    out = np.minimum.accumulate(x)
    hits = np.flatnonzero(x == out)
    return out, np.repeat(hits, np.diff(hits, append=len(x)))


def _segments(join: np.ufunc, start: float) -> Callable[..., Value]:
    def run(x: Value, segments: Value) -> Value:
        out = np.full(1000, start, x.dtype)
        join.at(out, segments, x)
        return out

    return run


def _segment_sum(x: Value, segments: Value) -> Value:
    return np.bincount(segments, x, 1000).astype(x.dtype)


def _segment_mean(x: Value, segments: Value) -> Value:
    counts = np.bincount(segments, minlength=1000)
    return (np.bincount(segments, x, 1000) / np.maximum(counts, 1)).astype(x.dtype)


def _put(join: str) -> Callable[..., Value]:
    def run(x: Value, places: Value, values: Value) -> Value:
        out, rows = x.copy(), np.arange(len(x))[:, None]
        if join == "set":
            out[rows, places] = values
        else:
            getattr(np, join).at(out.reshape(-1), (rows * x.shape[1] + places).reshape(-1), values.reshape(-1))
        return out

    return run


def _added(x: Value, places: Value, values: Value) -> Value:
    out = x.copy()
    np.add.at(out, places, values)
    return out


def _one_hot(places: Value) -> Value:
    out = np.zeros((places.size, 16), np.float32)
    out[np.arange(places.size), places] = 1
    return out


def _sliding(x: Value) -> Value:
    return np.lib.stride_tricks.sliding_window_view(x, 16)


def _topk(x: Value) -> Value:
    places = np.argpartition(x, x.size - 1000)[-1000:]
    places = places[np.argsort(-x[places], kind="stable")]
    return x[places], places


def _cumulative_trapezoid(x: Value) -> Value:
    return np.cumsum((x[1:] + x[:-1]) * np.float32(0.5))


def _unique(x: Value) -> Value:
    return np.unique(x, return_index=True, return_inverse=True, return_counts=True)


def _logspace(rows: int) -> Value:
    return np.logspace(0, 1, rows, dtype=np.float32)


ARRAYS = [
    # elementwise, choices
    Comparison("clip", lambda x: ad.clip(x, -1.0, 1.0), lambda x: np.clip(x, -1.0, 1.0), (X,)),
    Comparison("lerp", lambda x, y, w: ad.lerp(x, y, w), lambda x, y, w: x + w * (y - x), (X, Y, Z)),
    Comparison("fmod", ad.fmod, np.fmod, (X, Y)),
    Comparison("ldexp", ad.ldexp, np.ldexp, (X, POWERS)),
    Comparison("frexp", ad.frexp, np.frexp, (X,)),
    Comparison("deg2rad", ad.deg2rad, np.deg2rad, (X,)),
    Comparison("rad2deg", ad.rad2deg, np.rad2deg, (X,)),
    Comparison("heaviside", lambda x: ad.heaviside(x, 0.5), lambda x: np.heaviside(x, np.float32(0.5)), (X,)),
    Comparison("nan_to_num", ad.nan_to_num, np.nan_to_num, (HOLES,)),
    Comparison("isclose", ad.isclose, np.isclose, (X, Y)),
    Comparison("allclose", ad.allclose, np.allclose, (X, X)),
    Comparison("array_equal", ad.array_equal, np.array_equal, (X, X)),
    Comparison(
        "select",
        lambda c, d, x, y: ad.select([c, d], [x, y], 0.0),
        lambda c, d, x, y: np.select([c, d], [x, y], np.float32(0)),
        (TRUE, OTHER, X, Y),
    ),
    Comparison(
        "piecewise",
        lambda c, x: ad.piecewise(x, [c], [lambda t: 2 * t, lambda t: -t]),
        lambda c, x: np.piecewise(x, [c], [lambda t: 2 * t, lambda t: -t]),
        (TRUE, X),
    ),
    # statistics
    Comparison("mean", ad.mean, np.mean, (X,)),
    Comparison("var", ad.var, np.var, (X,)),
    Comparison("std", ad.std, np.std, (X,)),
    Comparison("var along rows", lambda x: ad.var(x, axis=1), lambda x: np.var(x, axis=1), (M,)),
    Comparison("std along rows", lambda x: ad.std(x, axis=1), lambda x: np.std(x, axis=1), (M,)),
    Comparison("ptp", ad.ptp, np.ptp, (X,)),
    Comparison("average", lambda x, w: ad.average(x, weights=w), lambda x, w: np.average(x, weights=w), (X, np.abs(Y))),
    Comparison("median", ad.median, np.median, (X,)),
    Comparison("median along rows", lambda x: ad.median(x, axis=1), lambda x: np.median(x, axis=1), (M,)),
    Comparison("quantile", lambda x: ad.quantile(x, 0.9), lambda x: np.quantile(x, np.float32(0.9)), (X,)),
    Comparison("percentile", lambda x: ad.percentile(x, 90.0), lambda x: np.percentile(x, np.float32(90)), (X,)),
    Comparison("nansum", ad.nansum, np.nansum, (HOLES,)),
    Comparison("nanprod", ad.nanprod, np.nanprod, (HOLES,)),
    Comparison("nanmean", ad.nanmean, np.nanmean, (HOLES,)),
    Comparison("nanvar", ad.nanvar, np.nanvar, (HOLES,)),
    Comparison("nanstd", ad.nanstd, np.nanstd, (HOLES,)),
    Comparison("nanmax", ad.nanmax, np.nanmax, (HOLES,)),
    Comparison("nanmin", ad.nanmin, np.nanmin, (HOLES,)),
    Comparison("nanargmax", ad.nanargmax, np.nanargmax, (HOLES,)),
    Comparison("nanargmin", ad.nanargmin, np.nanargmin, (HOLES,)),
    Comparison("nanmedian", ad.nanmedian, np.nanmedian, (HOLES,)),
    Comparison("nanquantile", lambda x: ad.nanquantile(x, 0.9), lambda x: np.nanquantile(x, np.float32(0.9)), (HOLES,)),
    Comparison(
        "nanpercentile", lambda x: ad.nanpercentile(x, 90.0), lambda x: np.nanpercentile(x, np.float32(90)), (HOLES,)
    ),
    Comparison("cov", ad.cov, lambda x: np.cov(x, dtype=x.dtype), (M,)),
    Comparison("corrcoef", ad.corrcoef, lambda x: np.corrcoef(x, dtype=x.dtype), (M,)),
    Comparison("count_nonzero", ad.count_nonzero, np.count_nonzero, (X,)),
    # running totals and differences
    Comparison("cumulative_sum", ad.cumulative_sum, np.cumsum, (X,)),
    Comparison("cumulative_prod", ad.cumulative_prod, np.cumprod, (1 + X / 1000,)),
    Comparison("cummax", ad.cummax, _cummax, (X,)),
    Comparison("cummin", ad.cummin, _cummin, (X,)),
    Comparison("diff", ad.diff, np.diff, (X,)),
    Comparison("gradient", ad.gradient, np.gradient, (X,)),
    Comparison("gradient of a matrix", ad.gradient, np.gradient, (M,)),
    Comparison("trapezoid", ad.trapezoid, np.trapezoid, (X,)),
    Comparison("cumulative_trapezoid", ad.cumulative_trapezoid, _cumulative_trapezoid, (X / 100,)),
    Comparison("unwrap", ad.unwrap, np.unwrap, (3 * X,)),
    # polynomials and convolution
    Comparison("polyval", ad.polyval, np.polyval, (LINE[:6], X)),
    Comparison("vander", lambda x: ad.vander(x, 10), lambda x: np.vander(x, 10), (X[:10_000],)),
    Comparison("convolve", ad.convolve, np.convolve, (X, SMALL)),
    Comparison("correlate", ad.correlate, np.correlate, (X, SMALL)),
    # among sorted values
    Comparison("interp", ad.interp, np.interp, (DOUBLE, SORTED.astype(np.float64), LINE.astype(np.float64))),
    Comparison("digitize", ad.digitize, np.digitize, (X, SORTED)),
    Comparison("searchsorted", lambda x, y: ad.searchsorted(x, y), np.searchsorted, (SORTED, X)),
    Comparison("histogram", lambda x: ad.histogram(x, 50)[0], lambda x: np.histogram(x, 50)[0], (X,)),
    Comparison(
        "histogram with weights",
        lambda x, w: ad.histogram(x, 50, weights=w)[0],
        lambda x, w: np.histogram(x, 50, weights=w)[0],
        (X, Y),
    ),
    Comparison("bincount", ad.bincount, np.bincount, (WHOLE,)),
    Comparison("bincount with weights", ad.bincount, np.bincount, (WHOLE, DOUBLE)),
    Comparison("sort", ad.sort, np.sort, (X,)),
    Comparison("argsort", ad.argsort, lambda x: np.argsort(x, kind="stable"), (X,)),
    Comparison("topk", lambda x: ad.topk(x, 1000), _topk, (X,)),
    Comparison("unique_all", ad.unique_all, _unique, (WHOLE,)),
    Comparison("unique_counts", ad.unique_counts, lambda x: np.unique(x, return_counts=True), (X,)),
    Comparison("unique_inverse", ad.unique_inverse, lambda x: np.unique(x, return_inverse=True), (WHOLE,)),
    Comparison("unique_values", ad.unique_values, np.unique, (X,)),
    Comparison("isin", ad.isin, np.isin, (WHOLE, WHOLE[:100])),
    Comparison("isin, floats", ad.isin, np.isin, (X, X[:100])),
    # places
    Comparison("take", lambda x, i: ad.take(x, i), np.take, (X, WHOLE)),
    Comparison("x[i]", lambda x, i: x[i], lambda x, i: x[i], (X, WHOLE)),
    Comparison("x[mask]", lambda x, m: x[m], lambda x, m: x[m], (X, TRUE)),
    Comparison(
        "take_along_axis",
        lambda x, i: ad.take_along_axis(x, i, axis=1),
        lambda x, i: np.take_along_axis(x, i, axis=1),
        (M, PLACES),
    ),
    *[
        Comparison(
            f"put_along_axis, {mode}",
            lambda x, i, v, mode=mode: ad.put_along_axis(x, i, v, axis=1, mode=mode),
            _put({"max": "maximum"}.get(mode, mode)),
            (M, PLACES, W[:, :50].copy()),
        )
        for mode in ("set", "add", "max")
    ],
    Comparison("scatter, add", lambda x, i, v: ad.scatter(x, i, v, mode="add"), _added, (X, WHOLE, Y)),
    Comparison("segment_sum", lambda x, s: ad.segment_sum(x, s, 1000), _segment_sum, (X, WHOLE)),
    Comparison("segment_mean", lambda x, s: ad.segment_mean(x, s, 1000), _segment_mean, (X, WHOLE)),
    Comparison("segment_max", lambda x, s: ad.segment_max(x, s, 1000), _segments(np.maximum, -np.inf), (X, WHOLE)),
    Comparison("segment_min", lambda x, s: ad.segment_min(x, s, 1000), _segments(np.minimum, np.inf), (X, WHOLE)),
    Comparison("segment_prod", lambda x, s: ad.segment_prod(x, s, 1000), _segments(np.multiply, 1), (X, WHOLE)),
    Comparison("one_hot", lambda i: ad.one_hot(i, 16), _one_hot, (WHOLE[:6250] % 16,)),
    Comparison("nonzero", ad.nonzero, np.nonzero, (TRUE,)),
    # shapes
    Comparison("concat", lambda x, y: ad.concat([x, y]), lambda x, y: np.concatenate([x, y]), (X, Y)),
    Comparison("stack", lambda x, y: ad.stack([x, y]), lambda x, y: np.stack([x, y]), (X, Y)),
    Comparison("hstack", lambda x, y: ad.hstack([x, y]), lambda x, y: np.hstack([x, y]), (M, W)),
    Comparison("vstack", lambda x, y: ad.vstack([x, y]), lambda x, y: np.vstack([x, y]), (M, W)),
    Comparison("dstack", lambda x, y: ad.dstack([x, y]), lambda x, y: np.dstack([x, y]), (M, W)),
    Comparison("column_stack", lambda x, y: ad.column_stack([x, y]), lambda x, y: np.column_stack([x, y]), (X, Y)),
    Comparison("block", lambda x, y: ad.block([[x, y], [y, x]]), lambda x, y: np.block([[x, y], [y, x]]), (M, W)),
    Comparison("append", lambda x, y: ad.append(x, y), np.append, (X, Y)),
    Comparison("insert", lambda x: ad.insert(x, 5000, 1.0), lambda x: np.insert(x, 5000, 1.0), (X,)),
    Comparison(
        "insert at several places", lambda x: ad.insert(x, [5, 700], 1.0), lambda x: np.insert(x, [5, 700], 1.0), (X,)
    ),
    Comparison("delete", lambda x: ad.delete(x, [5, 700]), lambda x: np.delete(x, [5, 700]), (X,)),
    Comparison("split", lambda x: ad.split(x, 10), lambda x: np.split(x, 10), (X,)),
    Comparison("array_split", lambda x: ad.array_split(x, 7), lambda x: np.array_split(x, 7), (X,)),
    Comparison("unstack", ad.unstack, lambda x: list(x), (M,)),
    Comparison("roll", lambda x: ad.roll(x, 777), lambda x: np.roll(x, 777), (X,)),
    Comparison("tile", lambda x: ad.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (M,)),
    Comparison("repeat", lambda x: ad.repeat(x, 3), lambda x: np.repeat(x, 3), (X,)),
    Comparison("repeat rows", lambda x: ad.repeat(x, 3, axis=0), lambda x: np.repeat(x, 3, axis=0), (M,)),
    Comparison("rot90", lambda x: ad.rot90(x) + 0, lambda x: np.rot90(x) + 0, (M,)),
    Comparison("pad", lambda x: ad.pad(x, 3), lambda x: np.pad(x, 3), (M,)),
    Comparison("diagonal", lambda x: ad.diagonal(x, 0, 1, 2), lambda x: np.diagonal(x, 0, 1, 2).copy(), (CUBE,)),
    Comparison("diag", ad.diag, np.diag, (LINE[:316],)),
    Comparison("diagflat", ad.diagflat, np.diagflat, (LINE[:316],)),
    Comparison("tril", ad.tril, np.tril, (M,)),
    Comparison("sliding_window_view", lambda x: ad.sliding_window_view(x, 16), _sliding, (X,)),
    Comparison("meshgrid", lambda x: ad.meshgrid(x, x)[0] + 0, lambda x: np.meshgrid(x, x)[0] + 0, (LINE[:316],)),
    Comparison(
        "broadcast_arrays",
        lambda x, y: ad.broadcast_arrays(x, y)[1] + 0,
        lambda x, y: np.broadcast_arrays(x, y)[1] + 0,
        (M, LINE[:400]),
    ),
    # products
    Comparison("outer", lambda x, y: ad.linalg.outer(x, y), np.outer, (LINE[:316], LINE[:316])),
    Comparison("vecdot", lambda x, y: ad.vecdot(x, y), lambda x, y: np.vecdot(x, y), (M, W)),
    Comparison(
        "tensordot", lambda x, y: ad.tensordot(x, y, axes=1), lambda x, y: np.tensordot(x, y, 1), (CUBE, M[:64])
    ),
    Comparison(
        "einsum bij,bjk->bik",
        lambda x, y: ad.einsum("bij,bjk->bik", x, y),
        lambda x, y: np.matmul(x, y),
        (A, B),
    ),
    Comparison("einsum ij,ij->i", lambda x, y: ad.einsum("ij,ij->i", x, y), lambda x, y: np.vecdot(x, y), (M, W)),
    Comparison("einsum ij->ji", lambda x: ad.einsum("ij->ji", x) + 0, lambda x: x.T + 0, (M,)),
    # of nothing
    Comparison("linspace", lambda: ad.linspace(0.0, 1.0, N), lambda: np.linspace(0, 1, N, dtype=np.float32)),
    Comparison("logspace", lambda: ad.logspace(0.0, 1.0, N), lambda: _logspace(N)),
    Comparison("geomspace", lambda: ad.geomspace(1.0, 10.0, N), lambda: np.geomspace(1, 10, N, dtype=np.float32)),
    Comparison("indices", lambda: ad.indices((250, 400)), lambda: np.indices((250, 400))),
    Comparison("tri", lambda: ad.tri(316), lambda: np.tri(316, dtype=np.float32)),
    Comparison("tril_indices", lambda: ad.tril_indices(316), lambda: np.tril_indices(316)),
    Comparison("triu_indices", lambda: ad.triu_indices(316), lambda: np.triu_indices(316)),
]
