"""Array functions beyond the standard: values are NumPy's, also at edges, and errors say what was wrong."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors
from adjoint.functions import contraction

_rng = np.random.default_rng(5)
NAN, INF = np.nan, np.inf


def normal(*shape: int) -> Any:
    return np.asarray(_rng.standard_normal(shape))


def cplx(*shape: int) -> Any:
    return normal(*shape) + 1j * normal(*shape)


def ints(*shape: int) -> Any:
    return _rng.integers(-5, 6, shape)


def holed(*shape: int) -> Any:
    x = normal(*shape)
    return np.where(_rng.uniform(size=shape) < 0.3, NAN, x)


A, C, N, H = normal(3, 4), cplx(3, 4), ints(3, 4), holed(4, 5)
CUBE, LINE, SPECIAL = normal(2, 3, 4), normal(7), np.array([0.0, -0.0, 1.5, -2.5, INF, -INF, NAN])
COMPLEX = np.array([complex(x, y) for x in (1.0, NAN, -INF) for y in (2.0, INF, NAN)])
EMPTY = np.zeros((0, 3))
SIDES: Any = ("left", "right")

# name, arguments, options: called with the same ones in both libraries
SAME: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("matrix_transpose", (x,), {}) for x in (A, CUBE, EMPTY)],
    *[("astype", (x, np.dtype(dtype)), {}) for x in (A, N) for dtype in ("float32", "int8", "bool", "complex64")],
    *[("swapaxes", (CUBE, i, j), {}) for i, j in ((0, 2), (-1, 0), (1, 1))],
    *[("ravel", (x,), {}) for x in (A, N, EMPTY, np.float64(2.0))],
    *[(f"atleast_{n}d", (x,), {}) for n in (1, 2, 3) for x in (np.array(2.0), LINE, A, CUBE, normal(1, 1, 1, 2))],
    *[(f, ([x, x + 1],), {}) for f in ("hstack", "vstack", "dstack") for x in (np.array(1.0), LINE, A, CUBE, C, N)],
    *[("column_stack", (x,), {}) for x in ([LINE, LINE + 1], [A, A[:, 0]], [N, N])],
    *[("block", (x,), {}) for x in ([[A, A], [A, A]], [LINE, LINE], A, [[CUBE], [CUBE]], [[np.array(1.0), LINE]])],
    *[("array_split", (x, n), {"axis": axis}) for x in (A, N) for n in (2, 3, 5, [1, 2], [2, 1]) for axis in (0, -1)],
    *[("split", (A, n), {"axis": 1}) for n in (1, 2, 4, [1, 3])],
    *[("delete", (A, i), {"axis": axis}) for i in (1, -1, [0, 2], slice(0, 2), []) for axis in (None, 0, 1)],
    *[("insert", (A, i, 9.0), {"axis": axis}) for i in (1, -1, [0, 2, 2], slice(0, 2)) for axis in (None, 0, 1)],
    ("insert", (A, 1, [1.0, 2.0, 3.0]), {"axis": 1}),
    ("insert", (A, [1], [[1.0], [2.0], [3.0]]), {"axis": 1}),
    ("insert", (A, [0, 3], [[1.0, 2.0]]), {"axis": 1}),
    ("insert", (LINE, 2, [1.0, 2.0, 3.0]), {}),
    ("insert", (CUBE, 1, normal(2, 2, 4)[:, 0]), {"axis": 1}),
    *[("append", (A, x), {"axis": axis}) for x, axis in ((A, 0), (A, 1), (LINE, None))],
    *[(f, (x,), {}) for f in ("fliplr", "flipud") for x in (A, CUBE)],
    *[("rot90", (x, k), {"axes": axes}) for x in (A, CUBE) for k in range(-1, 5) for axes in ((0, 1), (1, 0), (-1, 0))],
    *[("diagonal", (CUBE, k, i, j), {}) for k in (0, 1, -2, 5) for i, j in ((0, 1), (2, 0), (-1, 1))],
    *[("diag", (x,), {"k": k}) for x in (LINE, A, N, np.zeros(0)) for k in (0, 1, -2)],
    *[("diagflat", (x,), {"k": k}) for x in (LINE, A) for k in (0, -1)],
    ("put_along_axis", (A, N[:, :2] % 4, 5.0), {"axis": 1}),
    *[("bincount", (abs(N).reshape(-1),), {"minlength": n}) for n in (0, 3, 9)],
    ("bincount", (abs(N).reshape(-1), A.reshape(-1)), {}),
    ("bincount", (np.zeros(0, dtype=np.int64),), {"minlength": 2}),
    *[(f, (H,), {"axis": axis}) for f in "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian".split()
      for axis in (None, 0, 1, (0, 1))],
    *[(f, (x,), {}) for f in "nansum nanprod nanmean nanmax nanmin nanmedian".split() for x in (np.full((3,), NAN), N)],
    *[(f, (H,), {"axis": axis}) for f in ("nanargmax", "nanargmin") for axis in (None, 0)],
    *[("median", (x,), {"axis": axis}) for x in (A, N * 1.0, H, CUBE) for axis in (None, 0, -1)],
    *[("median", (np.array(x),), {}) for x in ([INF, INF], [-INF, 1.0], [1.0, INF, INF, 2.0], [NAN, 1.0], [3.0])],
    *[("ptp", (x,), {"axis": axis}) for x in (A, N, CUBE) for axis in (None, 0, (0, 1))],
    *[("average", (A,), {"axis": axis, "weights": w}) for axis, w in ((0, None), (1, LINE[:4]), (None, A), (0, A))],
    *[("average", (CUBE,), {"axis": axis, "weights": w}) for axis, w in (((0, 2), CUBE[:, 0]), ((2, 0), CUBE[:, 0].T))],
    *[("cov", (x,), {}) for x in (A, C, LINE, N * 1.0)],
    ("cov", (A, A[::-1] ** 2), {"rowvar": False}),
    ("cov", (A,), {"aweights": np.arange(1.0, 5), "fweights": np.arange(1, 5)}),
    *[("corrcoef", (x,), {}) for x in (A, C, LINE)],
    ("corrcoef", (LINE, LINE**2), {}),
    *[("searchsorted", (np.sort(LINE), x), {"side": s}) for x in (A, LINE, np.array([NAN, INF])) for s in SIDES],
    *[("digitize", (x, b), {"right": r}) for x in (A, np.array([1.0, 2.0, 3.0])) for r in (False, True)
      for b in (np.array([-1.0, 0.0, 1.0, 2.0]), np.array([2.0, 1.0, -1.0]), np.array([1.0]))],
    *[("histogram", (x,), {"bins": b, "range": r, "weights": w, "density": d})
      for x in (LINE, np.array([1.0, 1.0, 1.0, 2, 3, 4, 5]))
      for b, r in ((10, None), (3, (-1.0, 1.0)), ([-1.0, 0.0, 0.5, 3.0], None), (1, None)) for w in (None, LINE**2)
      for d in (False, True)],
    ("histogram", (np.full(5, 2.0),), {"bins": 4}),
    ("histogram", (np.zeros(0),), {"bins": 3}),
    *[("interp", (x, np.sort(LINE), LINE), o) for x in (A, SPECIAL, 0.3) for o in ({}, {"left": -7.0, "right": 8.0})],
    ("interp", (A, np.sort(LINE), LINE * 1j), {}),
    ("interp", (A * 5, LINE % 1, LINE), {"period": 1.0}),
    ("interp", (A, [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]), {}),
    *[("gradient", (x,), {"edge_order": o}) for x in (LINE, A, C) for o in (1, 2)],
    *[("gradient", (A, 2.0), {"axis": axis}) for axis in (0, -1, (1, 0))],
    *[("gradient", (A, np.array([0.0, 1.0, 3.0]), 0.5), {"edge_order": o}) for o in (1, 2)],
    *[("gradient", (LINE, np.cumsum(abs(LINE))), {"edge_order": o}) for o in (1, 2)],
    *[("trapezoid", (A, x), {"axis": axis}) for x, axis in ((None, 0), (LINE[:4], 1), (A, 0))],
    *[(f, (x, y), {"mode": m}) for f in ("convolve", "correlate") for m in ("full", "same", "valid")
      for x, y in ((LINE, LINE[:3]), (LINE[:2], LINE), (LINE, LINE[:4]), (LINE[:4], LINE), (C[0], C[1, :3]),
                   (C[0, :3], C[1]),
                   (N[0], N[1]), (LINE[:1], LINE[:1]))],
    *[("polyval", (p, x), {}) for p in (LINE, LINE[:1], C[0]) for x in (A, 2.0)],
    *[("vander", (x, n), {"increasing": i}) for x in (LINE, N[0], C[0]) for n in (None, 0, 1, 3)
      for i in (False, True)],
    *[("unwrap", (x * 5,), o) for x in (A, LINE, np.array([0.0, np.pi, 2 * np.pi, -np.pi, 0.0]))
      for o in ({}, {"axis": 0}, {"period": 3.0}, {"discont": 4.0})],
    ("select", ([A > 0, A > -1], [A, A * A], 3.0), {}),
    ("piecewise", (A, [A < 0, A > 0.5], [lambda t: -t, lambda t: t * t, 7.0]), {}),
    ("piecewise", (A, [A < 0], [-1.0]), {}),
    *[("fmod", (x, y), {}) for x, y in ((A * 10, A[::-1]), (N, N + 7), (SPECIAL, 1.0), (1.5, SPECIAL),
                                        (1e17 * A, A[::-1]))],
    *[(f, (x,), {}) for f in ("deg2rad", "rad2deg") for x in (A, SPECIAL)],
    ("heaviside", (SPECIAL, 0.5), {}),
    *[("ldexp", (x, n), {}) for x in (A, SPECIAL) for n in (3, -2, 0)],
    ("ldexp", (np.array([1e-300, 1e300, 3.0]), np.array([2000, -2000, 5000])), {}),
    *[("frexp", (x,), {})
      for x in (A, SPECIAL, A.astype(np.float32), np.array([5e-324, 1e308, -1e-310, 2.0, 0.5, 1.0]))],
    *[("nan_to_num", (x,), o) for x in (SPECIAL, SPECIAL.astype(np.float32), N, COMPLEX)
      for o in ({}, {"nan": 2.0, "posinf": 3.0, "neginf": -4.0})],
    *[("isclose", (x, y), {"equal_nan": e}) for e in (False, True)
      for x, y in ((SPECIAL, SPECIAL), (A, A + 1e-9), (A, A * 1.1), (N, N), (A, 0.0))],
    *[("allclose", (A, A + x), {}) for x in (0.0, 1e-9, 1.0)],
    *[("array_equal", (x, y), {"equal_nan": e}) for x, y in ((A, A), (SPECIAL, SPECIAL), (A, LINE))
      for e in (False, True)],
    *[(f, (H,), {"axis": axis}) for f in ("nancumsum", "nancumprod") for axis in (0, -1)],
    *[(f, (x,), {}) for f in ("nancumsum", "nancumprod") for x in (SPECIAL, N[0], C[0])],
    *[(f, (x, y), {}) for f in ("fmax", "fmin") for x, y in ((SPECIAL, 1.0), (SPECIAL, SPECIAL[::-1]), (N, N[::-1]))],
    *[("exp2", (x,), {}) for x in (SPECIAL, C)],
    *[("angle", (x,), {}) for x in (SPECIAL, C, COMPLEX, N)],
    *[("dot", (x, y), {}) for x, y in ((LINE, LINE), (A, A.T), (CUBE, A.T), (CUBE, CUBE.transpose(0, 2, 1)), (2.0, A),
                                       (C, C.T), (N, N.T))],
    *[("vdot", (x, y), {}) for x, y in ((LINE, LINE), (A, A.T), (C, C.T), (N, N), (C, A))],
    *[("polyadd", (x, y), {}) for x, y in ((LINE, LINE[:3]), (N[0], LINE), (LINE[:0], LINE[:2]))],
    *[("polymul", (x, y), {}) for x, y in ((LINE, LINE[:3]), (N[0], N[1]), (C[0], LINE))],
    *[(f, (x, m), {}) for f in ("polyder", "polyint") for x in (LINE, N[0], C[0], LINE[:1]) for m in (1, 3)],
    ("polyint", (LINE, 2), {"k": 3.0}),
    *[("argwhere", (x,), {}) for x in (N, A > 0, EMPTY, np.array(1.0), np.array(0.0))],
    *[("flatnonzero", (x,), {}) for x in (N, A > 0, EMPTY, np.array(1.0))],
    *[("diag_indices", a, {}) for a in ((3,), (2, 3), (0,))],
    *[("unravel_index", (x, (3, 4)), {}) for x in (np.array([[11, 0], [5, 7]]), np.array(3))],
    ("ravel_multi_index", ((np.array([2, 0]), np.array([3, 1])), (3, 4)), {}),
    *[("tri", a, {"k": k}) for a in ((3,), (2, 4)) for k in (0, 1, -1)],
    *[(f, a, {"k": k}) for f in ("tril_indices", "triu_indices") for k in (0, 1, -1) for a in ((3,),)],
    *[(f, a, {}) for f in ("tril_indices", "triu_indices") for a in ((3, 1), (3, -1, 5), (4, 0, 2))],
    ("indices", ((2, 3),), {}),
    *[("logspace", (0, 3, n), {"endpoint": e, "base": b}) for n in (0, 1, 4) for e in (True, False)
      for b in (10.0, 2.0)],
    *[("geomspace", (a, b, 5), {"endpoint": e}) for a, b in ((1, 1000), (-8, -1), (5.0, 0.2)) for e in (True, False)],
]  # fmt: skip


def numpys(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name == "put_along_axis":
        out = args[0].copy()
        np.put_along_axis(out, *args[1:], **options)
        return out
    return getattr(np, name)(*args, **options)


def tensors(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(tensors(v) for v in value)
    if isinstance(value, list) and any(isinstance(v, list) for v in value):
        return [tensors(v) for v in value]
    return ad.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    ("name", "args", "options"), [pytest.param(*case, id=f"{case[0]}-{i}") for i, case in enumerate(SAME)]
)
def test_values_are_numpys(name: str, args: Any, options: Any) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = numpys(name, args, options)
        ours = getattr(ad, name)(*[tensors(a) for a in args], **{k: tensors(v) for k, v in options.items()})
    if not isinstance(theirs, (tuple, list)):
        ours, theirs = [ours], [theirs]
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        y = np.asarray(y)
        assert x.shape == y.shape
        if (
            y.dtype.kind in "fc" and x.dtype.itemsize < y.dtype.itemsize
        ):  # integers and Python's numbers are float32 here
            assert x.dtype.kind == y.dtype.kind
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-6, atol=1e-6)
        else:
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-12, atol=1e-14)


METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation "
    "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
).split()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_quantiles_are_numpys(name: str, method: str) -> None:
    scale = 100 if "percentile" in name else 1
    for x in (LINE, normal(1), normal(2, 6), H if name.startswith("nan") else A, ints(9) * 1.0):
        for axis in (None, 0, -1):
            for q in (0.0, 0.3, 0.5, 1.0, [0.25, 0.5, 0.1, 1 / 3], []):
                for keepdims in (False, True):
                    how: Any = {"axis": axis, "method": method, "keepdims": keepdims}
                    theirs = getattr(np, name)(x, np.asarray(q) * scale, **how)
                    ours = getattr(ad, name)(ad.asarray(x), np.asarray(q) * scale, **how)
                    assert ours.shape == theirs.shape
                    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-14)


def test_quantiles_with_weights_are_numpys() -> None:
    x, w = normal(4, 6), abs(normal(4, 6))
    w[1:, 2] = w[2, :3] = 0
    for axis, weights in ((None, w), (0, w), (1, w), (1, w[0])):
        how: Any = {"axis": axis, "method": "inverted_cdf", "weights": weights}
        for q in (0.0, 0.4, [0.1, 0.9, 1.0]):
            np.testing.assert_array_equal(ad.quantile(ad.asarray(x), q, **how).numpy(), np.quantile(x, q, **how))


def test_windows_are_numpys() -> None:
    view = np.lib.stride_tricks.sliding_window_view
    for x, size, axis in (
        (LINE, 3, None),
        (A, (2, 3), None),
        (CUBE, (2, 2), (2, 0)),
        (LINE, (2, 2), (0, 0)),
        (A, 4, 1),
    ):
        np.testing.assert_array_equal(
            ad.sliding_window_view(ad.asarray(x), size, axis=axis).numpy(), view(x, size, axis)
        )


@pytest.mark.parametrize(
    ("mode", "join"), [("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)]
)
def test_scatters_are_numpys(mode: str, join: Any) -> None:
    for x, key, shape in (
        (LINE, ([0, 2, 0, -1],), (4,)), (A, ([0, 2, 0],), (3, 4)), (A, ([[0], [1]], [[1, 1]]), (2, 2)),
        (CUBE, (slice(None), [0, 0]), (2, 2, 4)), (N, (1,), (4,)), (A, (slice(0, 2),), ()), (C, ([0, 0],), (2, 4)),
    ):  # fmt: skip
        if x.dtype.kind == "c" and mode in ("max", "min"):
            continue
        values = ints(*shape).astype(x.dtype)
        expected = x.copy()
        join.at(expected, tuple(np.asarray(k) if isinstance(k, list) else k for k in key), values)
        np.testing.assert_allclose(ad.scatter(ad.asarray(x), key, values, mode=mode).numpy(), expected, rtol=1e-13)


def test_scatter_sets_as_assignment_does() -> None:
    expected = A.copy()
    expected[[0, 2, 0]] = [[1.0], [2.0], [3.0]]
    np.testing.assert_array_equal(ad.scatter(A, [0, 2, 0], [[1.0], [2.0], [3.0]]).numpy(), expected)


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min", "segment_mean"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_segments(name: str, dtype: str) -> None:
    x, segments = abs(ints(8, 2)).astype(dtype), np.array([3, 0, 0, 3, 1, 0, 3, 1])
    parts = [x[segments == i] for i in range(5)]
    least, most = _limits(dtype)
    theirs = {
        "segment_sum": [p.sum(0) for p in parts],
        "segment_prod": [p.prod(0) for p in parts],
        "segment_max": [p.max(0) if len(p) else np.full(2, least) for p in parts],
        "segment_min": [p.min(0) if len(p) else np.full(2, most) for p in parts],
        "segment_mean": [p.mean(0) if len(p) else np.zeros(2) for p in parts],
    }[name]
    f = getattr(ad, name)
    ours = f(ad.asarray(x), segments, 5)
    assert ours.dtype == (x.dtype if name != "segment_mean" or dtype.startswith("f") else np.float32)
    np.testing.assert_allclose(ours.numpy(), np.array(theirs).astype(ours.dtype), rtol=1e-6)
    np.testing.assert_array_equal(f(ad.asarray(x.T), segments, axis=1).numpy(), ours.numpy()[:4].T)


def _limits(dtype: str) -> tuple[float, float]:
    if dtype.startswith("float"):
        return -INF, INF
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes(name: str) -> None:
    accumulate = {"cummax": np.maximum, "cummin": np.minimum}[name].accumulate
    for x in (A, N, H, np.array([1.0, 3.0, 3.0, NAN, 5.0, NAN]), np.zeros((0, 3))):
        for axis in (0, -1):
            values, places = getattr(ad, name)(ad.asarray(x), axis=axis)
            np.testing.assert_array_equal(values.numpy(), accumulate(x, axis=axis))
            if x.size:
                np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), axis=axis), values.numpy())
                assert (np.diff(places.numpy(), axis=axis) >= 0).all()


def test_one_hot() -> None:
    x = np.array([[2, 0], [1, 1]])
    for axis in (-1, 0, 1):
        expected = np.moveaxis(np.where(np.arange(3) == x[..., None], 1, 0), -1, axis)
        np.testing.assert_array_equal(ad.one_hot(x, 3, axis=axis).numpy(), expected)
    assert ad.one_hot(x).shape == (2, 2, 3)
    assert ad.one_hot(x.astype(np.uint8)).shape == (2, 2, 3)
    assert ad.one_hot(x[:0]).shape == (0, 2, 0)
    assert ad.one_hot(x, 3).dtype == ad.int64
    assert ad.one_hot(x, 3, dtype=bool).dtype == ad.bool
    assert ad.nn.one_hot is ad.one_hot
    np.testing.assert_array_equal(ad.vmap(lambda i: ad.one_hot(i, 3))(x), np.eye(3)[x])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_borders_are_numpys(mode: Any) -> None:
    for x in (A, N, C, LINE, CUBE, normal(1, 2), A.astype(np.float16), N > 0):
        for width in (0, 1, (2, 0), 7, [(0, 3)] * x.ndim):
            if x.dtype.kind == "b" and mode == "reflect":
                continue
            ours = ad.pad(ad.asarray(x), width, mode=mode)
            np.testing.assert_array_equal(ours.numpy(), np.pad(x, width, mode=mode))
            assert ours.dtype == x.dtype
    assert ad.pad(ad.zeros((0, 2)), ((0, 0), (1, 1)), mode=mode).shape == (0, 4)


@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_partitions_have_the_places_that_are_asked_for(name: str) -> None:
    for x in (LINE, A, N, H):
        for axis in (0, -1):
            for kth in (0, 1, -1, [0, 2]):
                whole = np.partition(x, kth, axis=axis)
                ours = getattr(ad, name)(ad.asarray(x), kth, axis=axis).numpy()
                ours = ours if name == "partition" else np.take_along_axis(x, ours, axis)
                np.testing.assert_array_equal(np.take(ours, kth, axis), np.take(whole, kth, axis))


def test_fits_are_numpys() -> None:
    x, y, w = np.linspace(-1, 2, 9), normal(9, 2), abs(normal(9))
    for degree in (0, 1, 4):
        for right in (y, y[:, 0]):
            for weights in (None, w):
                ours = ad.polyfit(ad.asarray(x), right, degree, w=weights)
                np.testing.assert_allclose(ours.numpy(), np.polyfit(x, right, degree, w=weights), rtol=1e-10)
    far = 1e3 + x  # columns of very different sizes
    np.testing.assert_allclose(
        ad.polyval(ad.polyfit(far, y[:, 0], 1), far).numpy(), np.polyval(np.polyfit(far, y[:, 0], 1), far)
    )
    assert ad.polyfit(ad.tensor([1, 2, 3]), [1, 2, 3], 1).dtype == ad.float32


def test_lines_of_an_array() -> None:
    for axis in (0, 1, -1):
        for f, g in ((ad.median, np.median), (ad.sort, np.sort), (lambda x: ad.outer(x, x), lambda x: np.outer(x, x))):
            ours = ad.apply_along_axis(f, axis, ad.asarray(CUBE))
            np.testing.assert_allclose(ours.numpy(), np.apply_along_axis(g, axis, CUBE))
    ad.testing.check_grads(lambda x: ad.apply_along_axis(lambda v, k: (v * v).sum() ** k, 0, x, 2), (A,))
    with pytest.raises(errors.AxisError):
        ad.apply_along_axis(ad.sum, 2, A)


def test_nothing_but_nans() -> None:
    x = ad.tensor([[NAN, NAN], [1.0, NAN]])
    assert ad.nanargmax(x, axis=1).tolist() == [-1, 0]
    assert ad.nanargmin(x, axis=1).tolist() == [-1, 0]
    assert ad.isnan(ad.nanvar(x, axis=1, correction=1)).all()
    leaf = ad.tensor([[NAN, 2.0], [1.0, NAN]]).require_grad()
    for f in (ad.nansum, ad.nanmean, ad.nanmax, ad.nanmedian, ad.nanprod, ad.nanvar, ad.nanstd):
        grads = f(leaf).backward()[leaf].numpy()
        assert np.isfinite(grads).all()
        assert grads[0, 0] == grads[1, 1] == 0


THROUGH_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "median": lambda a, b: np.median(a, axis=1),
    "quantile": lambda a, b: np.quantile(a, [0.1, 0.4], axis=0, method="lower"),
    "percentile": lambda a, b: np.percentile(a, 30, 0),
    "interp": lambda a, b: np.interp(a, np.sort(LINE), b),
    "histogram": lambda a, b: np.histogram(LINE, 3, weights=b)[0],
    "bincount": lambda a, b: np.bincount(np.array([1, 2, 0, 2, 1, 1, 0]), b),
    "convolve": lambda a, b: np.convolve(b, b, "same"),
    "correlate": lambda a, b: np.correlate(b, b, mode="full"),
    "gradient": lambda a, b: np.gradient(a, 2.0, axis=0),
    "diag": lambda a, b: np.diag(b, 1),
    "diagonal": lambda a, b: np.diagonal(a, 1),
    "insert": lambda a, b: np.insert(a, 1, b[:4], axis=0),
    "delete": lambda a, b: np.delete(a, 1, 0),
    "block": lambda a, b: np.block([[a], [a]]),
    "select": lambda a, b: np.select([a > 0], [a], 2.0),
    "select, a default": lambda a, b: np.select([a > 0.5, a > 0], [a * a, 3 * a], default=5 * a),
    "piecewise": lambda a, b: np.piecewise(a, [a > 0], [lambda t: t * t, 0.0]),
    "trapezoid": lambda a, b: np.trapezoid(a, LINE[:4], axis=1),
    "cov": lambda a, b: np.cov(a),
    "unwrap": lambda a, b: np.unwrap(a),
    "rot90": lambda a, b: np.rot90(a, 2),
    "polyval": lambda a, b: np.polyval(b, a),
    "nanstd": lambda a, b: np.nanstd(a, ddof=1),
    "average": lambda a, b: np.average(a, axis=1, weights=LINE[:4]),
    "split": lambda a, b: np.split(a, 3)[1],
    "dstack": lambda a, b: np.dstack([a, a]),
    "atleast_3d": lambda a, b: np.atleast_3d(b),
    "fmod": lambda a, b: np.fmod(a, 0.3),
    "ldexp": lambda a, b: np.ldexp(a, 3),
    "frexp": lambda a, b: np.frexp(a)[0],
    "sliding_window_view": lambda a, b: np.lib.stride_tricks.sliding_window_view(b, 2),
    "apply_along_axis": lambda a, b: np.apply_along_axis(lambda t: t * 2, 0, a),
    "maximum.accumulate": lambda a, b: np.maximum.accumulate(a, axis=1),
    "minimum.accumulate": lambda a, b: np.minimum.accumulate(a),
}


@pytest.mark.parametrize("name", THROUGH_NUMPY)
def test_numpys_functions_of_tensors_are_ours(name: str) -> None:
    f, leaves = THROUGH_NUMPY[name], [ad.tensor(x).require_grad() for x in (A, LINE)]
    out = f(*leaves)
    assert isinstance(out, ad.Tensor)
    assert out.is_tracked()
    np.testing.assert_allclose(out.numpy(), f(A, LINE), rtol=1e-12, atol=1e-13)


def test_exponents_of_other_leaves() -> None:
    """Powers of two and their neighbours, small and large ones, are split as NumPy splits them."""
    xp = peer("array_api_strict")
    x = np.ldexp(1.0, np.arange(-1000, 1000, 37))
    x = np.concatenate([x, -x, np.nextafter(x, 0), np.nextafter(x, np.inf), SPECIAL, [5e-324, 1e-310]])
    for device in (ad.ArrayAPI(xp), ad.Reference()):
        mantissa, exponent = ad.frexp(ad.asarray(x, device=device))
        np.testing.assert_array_equal(exponent.numpy(), np.frexp(x)[1])
        np.testing.assert_array_equal(mantissa.numpy(), np.frexp(x)[0])


def test_python_numbers_are_weak() -> None:
    x = np.zeros(2)
    assert ad.scatter(x, [0], 0.1).numpy()[0] == 0.1
    assert ad.lerp(x, x + 1, 0.1).numpy()[0] == 0.1
    assert ad.polyval(np.array([1.0, 0.0]), 0.1).item() == 0.1
    assert ad.interp(0.1, np.array([0.0, 1.0]), np.array([0.0, 1.0])).item() == 0.1
    assert ad.scatter(x.astype(np.float32), [0], 0.1).dtype == ad.float32
    assert ad.append(ad.tensor([1, 2]), ad.tensor([0.5])).dtype == ad.float32


# --- errors ---

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ad.scatter(A, [0], 1.0, mode="divide"), errors.ArgumentError, "mode"),
    (lambda: ad.scatter(C, [0], 1.0, mode="max"), errors.DtypeError, "max"),
    (lambda: ad.scatter(A > 0, [0], True, mode="add"), errors.DtypeError, "bool"),
    (lambda: ad.scatter(A, [0], normal(3)), errors.ShapeError, "broadcast"),
    (lambda: ad.scatter(A, [3], 1.0), errors.OutOfRangeError, "3"),
    (lambda: ad.put_along_axis(A, [0], 1.0), errors.OutOfRangeError, "axes"),
    (lambda: ad.put_along_axis(A, [[9]], 1.0), errors.OutOfRangeError, "9"),
    (lambda: ad.segment_sum(A, [0, 1]), errors.ShapeError, "segment_sum"),
    (lambda: ad.segment_sum(A, [0, 1, 5], 3), errors.OutOfRangeError, "5"),
    (lambda: ad.segment_max(A, [0, 1, -1]), errors.OutOfRangeError, "-1"),
    (lambda: ad.bincount([1, -1]), errors.OutOfRangeError, "-1"),
    (lambda: ad.bincount(A), errors.ShapeError, "vector"),
    (lambda: ad.bincount([1, 2], [1.0]), errors.ShapeError, "weights"),
    (lambda: ad.one_hot(A, 3), errors.DtypeError, "integers"),
    (lambda: ad.cummax(C, axis=0), errors.DtypeError, "complex"),
    (lambda: ad.cummax(A), errors.AxisError, "axis="),
    (lambda: ad.quantile(A, 1.5), errors.ArgumentError, "q is from 0 to 1"),
    (lambda: ad.percentile(A, -1), errors.ArgumentError, "q is from 0 to 100"),
    (lambda: ad.quantile(A, 0.5, method="best"), errors.ArgumentError, "method"),
    (lambda: ad.quantile(A, 0.5, weights=A), errors.ArgumentError, "inverted_cdf"),
    (lambda: ad.quantile(A, 0.5, weights=LINE, method="inverted_cdf"), errors.ShapeError, "weights"),
    (lambda: ad.median(C), errors.DtypeError, "complex"),
    (lambda: ad.average(A, weights=LINE), errors.ShapeError, "weights"),
    (lambda: ad.cov(CUBE), errors.ShapeError, "cov"),
    (lambda: ad.cov(A, aweights=LINE), errors.ShapeError, "weights"),
    (lambda: ad.histogram(A, 0), errors.ArgumentError, "interval"),
    (lambda: ad.histogram(A, [2.0, 1.0]), errors.ArgumentError, "increase"),
    (lambda: ad.histogram(H), errors.ArgumentError, "finite"),
    (lambda: ad.histogram(A, 3, range=(1.0, 0.0)), errors.ArgumentError, "range"),
    (lambda: ad.histogram(A, weights=LINE), errors.ShapeError, "weights"),
    (lambda: ad.interp(A, LINE, LINE[:3]), errors.ShapeError, "interp"),
    (lambda: ad.interp(A, LINE, LINE, period=0), errors.ArgumentError, "period"),
    (lambda: ad.gradient(A, edge_order=3), errors.ArgumentError, "edge_order"),
    (lambda: ad.gradient(A, 1.0, 2.0, 3.0), errors.ArgumentError, "spacings"),
    (lambda: ad.gradient(A, LINE, axis=0), errors.ShapeError, "coordinates"),
    (lambda: ad.gradient(A[:2], edge_order=2), errors.ShapeError, "samples"),
    (lambda: ad.trapezoid(A, LINE), errors.ShapeError, "coordinates"),
    (lambda: ad.convolve(A, LINE), errors.ShapeError, "vectors"),
    (lambda: ad.convolve(LINE, []), errors.ShapeError, "element"),
    (lambda: ad.correlate(LINE, LINE, mode="circular"), errors.ArgumentError, "mode"),
    (lambda: ad.polyval(A, 1.0), errors.ShapeError, "polyval"),
    (lambda: ad.vander(A), errors.ShapeError, "vander"),
    (lambda: ad.vander(LINE, -1), errors.ShapeError, "vander"),
    (lambda: ad.sliding_window_view(LINE, 8), errors.ShapeError, "windows"),
    (lambda: ad.sliding_window_view(LINE, 0), errors.ShapeError, "windows"),
    (lambda: ad.sliding_window_view(A, 2), errors.ShapeError, "sizes"),
    (lambda: ad.split(A, 3, axis=1), errors.ShapeError, "array_split"),
    (lambda: ad.array_split(A, 0), errors.ArgumentError, "part"),
    (lambda: ad.delete(A, 5, axis=0), errors.OutOfRangeError, "delete"),
    (lambda: ad.insert(A, 5, 1.0, axis=0), errors.OutOfRangeError, "insert"),
    (lambda: ad.delete(A, "x"), errors.ArgumentTypeError, "places"),
    (lambda: ad.diag(CUBE), errors.ShapeError, "diag"),
    (lambda: ad.diagonal(LINE), errors.AxisError, "axis"),
    (lambda: ad.rot90(A, axes=(0, 0)), errors.AxisError, "rot90"),
    (lambda: ad.block([[A], A]), errors.ArgumentError, "depth"),
    (lambda: ad.block([]), errors.ArgumentError, "empty"),
    (lambda: ad.hstack([]), errors.ArgumentError, "hstack"),
    (lambda: ad.atleast_1d(), errors.ArgumentError, "atleast_1d"),
    (lambda: ad.select([], []), errors.ArgumentError, "select"),
    (lambda: ad.select([A], [A]), errors.DtypeError, "boolean"),
    (lambda: ad.piecewise(A, [A > 0], []), errors.ArgumentError, "functions"),
    (lambda: ad.geomspace(-1, 1), errors.ArgumentError, "sign"),
    (lambda: ad.heaviside(C, 0.5), errors.DtypeError, "real"),
    (lambda: ad.pad(A, 1, mode="mirror"), errors.ArgumentError, "reflect"),
    (lambda: ad.pad(EMPTY, 1, mode="edge"), errors.ShapeError, "axis 0"),
    (lambda: ad.partition(A, 4), errors.OutOfRangeError, "kth 4"),
    (lambda: ad.argpartition(LINE, "a"), errors.ArgumentTypeError, "places"),
    (lambda: ad.fmax(C, 1.0), errors.DtypeError, "real"),
    (lambda: ad.vdot(A, LINE), errors.ShapeError, "elements"),
    (lambda: ad.dot(A, A), errors.ShapeError, "matmul"),
    (lambda: ad.polyfit(LINE, LINE[:3], 1), errors.ShapeError, "vectors of one size"),
    (lambda: ad.polyfit(LINE, LINE, -1), errors.ArgumentError, "degree"),
    (lambda: ad.polyder(A), errors.ShapeError, "vector"),
    (lambda: ad.polyint(LINE, -1), errors.ArgumentError, "negative"),
    (lambda: ad.unravel_index([12], (3, 4)), errors.OutOfRangeError, "0 to 11"),
    (lambda: ad.unravel_index([1.0], (3, 4)), errors.DtypeError, "integers"),
    (lambda: ad.ravel_multi_index(([0],), (3, 4)), errors.ArgumentError, "2 axes"),
    (lambda: ad.one_hot([0, 3], 3), errors.OutOfRangeError, "3 classes"),
    (lambda: ad.one_hot([], -2), errors.DtypeError, "integers"),
    (lambda: ad.one_hot(N[:0], -2), errors.ShapeError, "one_hot"),
    (lambda: ad.quantile(A, "half"), errors.ArgumentError, "q is from 0 to 1"),
    (lambda: ad.median(A, axis=np.array("a")), errors.ArgumentTypeError, "axes are integers"),
    (lambda: ad.quantile(A, 0.5, method=LINE), errors.ArgumentError, "method"),
    (lambda: ad.select(..., [A]), errors.ArgumentTypeError, "lists"),
    (lambda: ad.piecewise(A, [A > 0], 2.0), errors.ArgumentTypeError, "lists"),
    (lambda: ad.gradient(A, edge_order=LINE), errors.ArgumentTypeError, "edge_order"),
    (lambda: ad.repeat(A, [[1], [1, 2]], axis=0), errors.ArgumentTypeError, "repeats"),
    (lambda: ad.diag_indices(LINE), errors.ArgumentTypeError, "integer"),
    (lambda: ad.gradient(A, axis=object()), errors.ArgumentTypeError, "axes are integers"),
    (lambda: ad.insert(A, [[1], [1, 2]], 1.0), errors.ArgumentTypeError, "places"),
    (lambda: ad.histogram(A, 3, range=2.0), errors.ArgumentError, "range"),
    (lambda: ad.searchsorted(LINE, A, side=LINE), errors.ArgumentError, "side"),
    (lambda: ad.cumulative_sum(LINE, include_initial=LINE), errors.ArgumentTypeError, "include_initial"),
    (lambda: ad.astype(1.0, object()), errors.DtypeError, "dtype"),
    (lambda: ad.astype("a", ad.float32), errors.DtypeError, "astype"),
    (lambda: ad.zeros(3, dtype="ij,jk->ik"), errors.DtypeError, "dtype"),
    (lambda: ad.result_type("ij,jk", 1.0), errors.DtypeError, "dtype"),
    (lambda: ad.can_cast(np.array(["2020"], dtype="M8[Y]"), ad.float32), errors.DtypeError, "dtype"),
    (lambda: ad.linalg.cross(A[:, :3], A[:, :3], axis=(0, 1)), errors.ArgumentTypeError, "axis"),
    (lambda: ad.linalg.qr(A, mode=LINE), errors.ArgumentError, "mode"),
    (lambda: ad.stack(np.array(1.0)), errors.ArgumentError, "at least one"),
    (lambda: ad.vstack(np.array(1.0)), errors.ArgumentError, "at least one"),
    (lambda: ad.tensordot(A, A, axes=np.array(1.5)), errors.ArgumentTypeError, "axes"),
    (lambda: ad.linspace(0, 1, (2, 3)), errors.ArgumentTypeError, "num"),
    (lambda: ad.meshgrid(LINE, indexing=LINE), errors.ArgumentError, "indexing"),
    (lambda: ad.linalg.eig(ad.ones((2, 2), dtype=ad.float16)), errors.DtypeError, "float16"),
]


@pytest.mark.parametrize(("call", "kind", "text"), [pytest.param(*w, id=str(i)) for i, w in enumerate(WRONG)])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, errors.AdjointError)
    assert text in str(caught.value)


@pytest.mark.parametrize("library", ["opt_einsum", "NumPy alone"])
def test_orders_of_einsum(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both libraries' orders give the same: names of axes left out, broadcast sizes, diagonals, scalars."""
    if library == "opt_einsum":
        pytest.importorskip("opt_einsum")
    else:
        monkeypatch.setitem(sys.modules, "opt_einsum", None)
    contraction._path.cache_clear()
    for text, shapes in (
        ("ij,jk,kl,lm->im", ((5, 2), (2, 6), (6, 3), (3, 4))), ("ij,ij,ij->", ((2, 3),) * 3),
        ("i,j,k->kji", ((2,), (3,), (4,))),
        ("...ij,...jk,...kl->...il", ((2, 3, 2), (2, 4), (2, 4, 1))), ("ij,jk,k->i", ((2, 1), (3, 4), (4,))),
        ("ii,ij,j,->", ((3, 3), (3, 2), (2,), ())),
        ("abc,bd,ce,df,eg->afg", ((2, 3, 4), (3, 2), (4, 3), (2, 5), (3, 2))),
    ):  # fmt: skip
        operands = [normal(*shape) for shape in shapes]
        ours = ad.einsum(text, *map(ad.asarray, operands))
        np.testing.assert_allclose(ours.numpy(), np.einsum(text, *operands), rtol=1e-12)
        ad.testing.check_grads(lambda *xs, text=text: ad.einsum(text, *xs), tuple(operands), order=1)
    contraction._path.cache_clear()


def test_density_in_half_precision() -> None:
    """100,000 values are more than float16 counts to."""
    x = ad.asarray(np.tile(np.array([0.0, 0.25, 0.5, 1.0], dtype=np.float16), 25_000))
    density, bounds = ad.histogram(x, 2, density=True)
    assert density.dtype == bounds.dtype == ad.float16
    assert density.tolist() == [1.0, 1.0]


def test_inside_vmap() -> None:
    """Also where what is sorted, or where, differs between examples."""
    xs, xp, fp = normal(5, 6), np.sort(normal(5, 4)), normal(5, 4)
    together = ad.vmap(ad.interp)(xs, xp, fp)
    np.testing.assert_allclose(together, [np.interp(*each) for each in zip(xs, xp, fp, strict=True)], rtol=1e-12)
    for side in ("left", "right"):
        lines, values = np.sort(ints(5, 9) * 1.0), np.concatenate([ints(5, 4) * 1.0, np.full((5, 1), NAN)], axis=1)
        lines[0, -1] = NAN
        ours = ad.vmap(lambda a, b, side=side: ad.searchsorted(a, b, side=side))(lines, values)
        np.testing.assert_array_equal(
            ours, [np.searchsorted(a, b, side=side) for a, b in zip(lines, values, strict=True)]
        )
    counts, edges = ad.vmap(lambda x: ad.histogram(x, 3))(xs)
    for i in range(5):
        theirs = np.histogram(xs[i], 3)
        np.testing.assert_array_equal(counts[i], theirs[0])
        np.testing.assert_allclose(edges[i], theirs[1], rtol=1e-13)
    segments = _rng.integers(0, 3, (5, 6))
    ours = ad.vmap(lambda x, s: ad.segment_max(x, s, 3))(xs, segments)
    for i in range(5):
        for k in range(3):
            assert ours[i, k] == xs[i][segments[i] == k].max(initial=-INF)
    np.testing.assert_array_equal(
        ad.vmap(lambda s: ad.bincount(s, length=3))(segments), [np.bincount(s, minlength=3) for s in segments]
    )


@pytest.mark.parametrize("places", [[], [True, False, True], [2, 0], [1, 1], [-1]])
def test_values_are_inserted_at_lists_of_places(places: list[Any]) -> None:
    x = np.asarray([1.0, 2.0, 3.0])
    numbers = np.asarray(places) if places else np.zeros(0, dtype=np.int64)
    np.testing.assert_array_equal(ad.insert(ad.tensor(x), places, 9.0).numpy(), np.insert(x, numbers, 9.0))


def test_what_einsum_leaves_alone_is_a_tensor_of_its_own() -> None:
    x = ad.tensor([1.0, 2.0])
    y = ad.einsum("i->i", x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "int64"])
@pytest.mark.parametrize("scalar", [False, True])
def test_many_choices_are_those_of_few(dtype: str, scalar: bool) -> None:
    """Large arrays are chosen from by bits: also nan, infinities and zeros of either sign."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, 5000).astype(dtype) for _ in range(2))
    if dtype.startswith("f"):
        x[:4], y[4:8] = [np.nan, np.inf, -0.0, 0.0], [np.nan, -np.inf, -0.0, 0.0]
    chosen = rng.random(5000) < 0.5
    other = y.dtype.type(3) if scalar else y
    expected = np.where(chosen, x, other)
    out = ad.where(ad.tensor(chosen), ad.tensor(x), 3 if scalar else ad.tensor(y)).numpy()
    assert out.dtype == expected.dtype
    assert out.tobytes() == expected.tobytes()


NOTHING_TO_DO: dict[str, Callable[[ad.Tensor], ad.Tensor]] = {
    "roll by a turn": lambda x: ad.roll(x, 4, 1),
    "roll by nothing": lambda x: ad.roll(x, (), ()),
    "roll flat": lambda x: ad.roll(x, 0),
    "tile": lambda x: ad.tile(x, (1, 1)),
    "repeat": lambda x: ad.repeat(x, 1, axis=0),
    "pad": lambda x: ad.pad(x, (0, 0)),
    "astype": lambda x: ad.astype(x, x.dtype),
    "broadcast_to": lambda x: ad.broadcast_to(x, x.shape),
    "concat": lambda x: ad.concat([x]),
    "permute_dims": lambda x: ad.permute_dims(x, (0, 1)),
    "moveaxis": lambda x: ad.moveaxis(x, 0, 0),
    "reshape": lambda x: ad.reshape(x, x.shape),
    "squeeze": lambda x: ad.squeeze(x, axis=()),
    "flip": lambda x: ad.flip(x, axis=()),
    "real": ad.real,
    "conj": ad.conj,
    "clip": ad.clip,
    "round": ad.round,
    "sum": lambda x: ad.sum(x, axis=()),
    "tril": lambda x: ad.tril(x, 5),
    "diff": lambda x: ad.diff(x, n=0),
    "matrix_power": lambda x: ad.linalg.matrix_power(x[:, :3], 1),
    "einsum": lambda x: ad.einsum("ij->ij", x),
    "atleast_2d": ad.atleast_2d,
    "fftshift": lambda x: ad.fft.fftshift(x, axes=()),
    "positive": lambda x: +x,
    "dropout": lambda x: ad.nn.dropout(x, 0.0),
    "dropout1d": lambda x: ad.nn.dropout1d(x, training=False),
    "alpha_dropout": ad.nn.alpha_dropout,
    "feature_alpha_dropout": ad.nn.feature_alpha_dropout,
}


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_a_result_is_another_tensor_where_nothing_is_to_do(name: str) -> None:
    x = ad.asarray(np.arange(12.0).reshape(3, 4))
    out = NOTHING_TO_DO[name](x)
    assert out is not x
    out[(0,) * out.ndim] = 99.0
    assert x[0, 0].item() == 0
