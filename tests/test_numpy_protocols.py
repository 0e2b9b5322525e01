"""NumPy's functions called with tensors: the values are NumPy's, the gradients are right, and nothing leaks out."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import processes
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

V = np.array([[0.5, 1.25, 2.0], [3.5, 4.0, 5.25]])
W = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
S = np.array([[2.0, 0.5], [0.25, 1.5]])

# differentiable functions of one array
CALLS: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "absolute": np.absolute,
    "arctan": np.arctan,
    "exp2": np.exp2,
    "deg2rad": np.deg2rad,
    "degrees": np.degrees,
    "conjugate": np.conjugate,
    "array on the left": lambda a: V + a,
    "array on the left of @": lambda a: V.T @ a,
    "a number of NumPy's on the left": lambda a: np.float64(2) * a,
    "array divided": lambda a: W / a,
    "array to the power": lambda a: V**a,
    "add": lambda a: np.add(W, a),
    "arctan2": lambda a: np.arctan2(a, V),
    "hypot": lambda a: np.hypot(W, a),
    "power": lambda a: np.power(a, 3),
    "float_power": lambda a: np.float_power(a, 2),
    "maximum": lambda a: np.maximum(a, W),
    "matmul": lambda a: np.matmul(a, W.T),
    "vecdot": lambda a: np.vecdot(a, W),
    "add.reduce": np.add.reduce,
    "add.reduce of all": lambda a: np.add.reduce(a, axis=None, keepdims=True),
    "multiply.reduce": lambda a: np.multiply.reduce(a, axis=1),
    "maximum.reduce": lambda a: np.maximum.reduce(a, axis=None),
    "logaddexp.reduce": np.logaddexp.reduce,
    "add.accumulate": lambda a: np.add.accumulate(a, axis=1),
    "multiply.accumulate": np.multiply.accumulate,
    "multiply.outer": lambda a: np.multiply.outer(a[0], W),
    "subtract.outer": lambda a: np.subtract.outer(W[0], a),
    "sum": lambda a: np.sum(a, axis=0),
    "sum by place": lambda a: np.sum(a, 1, keepdims=True),
    "sum in another dtype": lambda a: np.sum(a, dtype=np.float64),
    "prod": np.prod,
    "mean": lambda a: np.mean(a, axis=1),
    "average": lambda a: np.average(a, axis=1, weights=V),
    "std": lambda a: np.std(a, axis=0, ddof=1),
    "var": lambda a: np.var(a, correction=1),
    "max": lambda a: np.max(a, axis=0),
    "amin": np.amin,
    "ptp": lambda a: np.ptp(a, axis=1),
    "cumsum": np.cumsum,
    "cumsum along": lambda a: np.cumsum(a, axis=1),
    "cumprod": lambda a: np.cumprod(a, axis=0),
    "cumulative_sum": lambda a: np.cumulative_sum(a, axis=0, include_initial=True),
    "diff": lambda a: np.diff(a, axis=1, prepend=W[:, :1]),
    "clip": lambda a: np.clip(a, 1, 4.5),
    "clip by name": lambda a: np.clip(a, a_min=1, a_max=None),
    "where": lambda a: np.where(V > 1, a, 0.0),
    "where with an array": lambda a: np.where(W > 0, W, a),
    "concatenate": lambda a: np.concatenate([a, W], axis=1),
    "concatenate, flat": lambda a: np.concatenate((W, a), axis=None),
    "stack": lambda a: np.stack([W, a], axis=-1),
    "vstack": lambda a: np.vstack([a, W[0]]),
    "hstack": lambda a: np.hstack([a, W]),
    "hstack of lines": lambda a: np.hstack([a[0], W[0]]),
    "dstack": lambda a: np.dstack([a, W]),
    "column_stack": lambda a: np.column_stack([a, W[:, 0]]),
    "append": lambda a: np.append(a, W),
    "split": lambda a: np.split(a, 3, axis=1)[1],
    "split at places": lambda a: np.split(a, [1], axis=1)[1],
    "array_split": lambda a: np.array_split(a, 2, axis=1)[0],
    "transpose": np.transpose,
    "permute_dims": lambda a: np.permute_dims(a, (1, 0)),
    "swapaxes": lambda a: np.swapaxes(a, 0, -1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 1),
    "reshape": lambda a: np.reshape(a, (3, -1)),
    "ravel": np.ravel,
    "squeeze": lambda a: np.squeeze(a[:1], axis=0),
    "expand_dims": lambda a: np.expand_dims(a, 1),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 2, 3)),
    "broadcast_arrays": lambda a: np.broadcast_arrays(a[0], W)[0],
    "atleast_1d": lambda a: np.atleast_1d(a[0, 0]),
    "atleast_3d": np.atleast_3d,
    "flip": lambda a: np.flip(a, axis=1),
    "flipud": np.flipud,
    "fliplr": np.fliplr,
    "roll": lambda a: np.roll(a, 1, axis=1),
    "tile": lambda a: np.tile(a, (2, 1)),
    "repeat": lambda a: np.repeat(a, [2, 1], axis=0),
    "pad": lambda a: np.pad(a, ((0, 1), (1, 0)), constant_values=2.0),
    "pad by reflection": lambda a: np.pad(a, 1, mode="reflect"),
    "tril": np.tril,
    "triu": lambda a: np.triu(a, k=1),
    "meshgrid": lambda a: np.meshgrid(a[0], W[0], indexing="ij")[0],
    "copy": np.copy,
    "sort": lambda a: np.sort(a, axis=0),
    "sort, stable": lambda a: np.sort(a, kind="stable"),
    "take": lambda a: np.take(a, [2, 0], axis=1),
    "take_along_axis": lambda a: np.take_along_axis(a, np.array([[1], [0]]), axis=1),
    "unstack": lambda a: np.unstack(a, axis=1)[2],
    "round": lambda a: np.round(a + 0.1),
    "round to digits": lambda a: np.round(a * 1.2345, 1),
    "real": np.real,
    "dot": lambda a: np.dot(a, W.T),
    "dot of vectors": lambda a: np.dot(W[0], a[1]),
    "dot of many axes": lambda a: np.dot(a, np.stack([W.T, V.T])),
    "dot of a number": lambda a: np.dot(a[0, 0], W),
    "inner": lambda a: np.inner(a, W),
    "inner of vectors": lambda a: np.inner(W[0], a[1]),
    "inner of many axes": lambda a: np.inner(np.stack([a, W]), V),
    "inner of a number": lambda a: np.inner(a[0, 0], W),
    "vdot": lambda a: np.vdot(a, W),
    "outer": lambda a: np.outer(a[0], W[1]),
    "tensordot": lambda a: np.tensordot(a, W, axes=([1], [1])),
    "einsum": lambda a: np.einsum("ij,kj->ik", a, W),
    "einsum, optimized": lambda a: np.einsum("ij,kj,k->i", a, W, V[:, 0], optimize=True),
    "median": lambda a: np.median(a, axis=1),
    "quantile": lambda a: np.quantile(a, 0.3, axis=0),
    "nanmean": np.nanmean,
    "interp": lambda a: np.interp(a, [0.0, 2.2, 6.0], [1.0, 0.0, 3.0]),
    "trapezoid": lambda a: np.trapezoid(a, dx=0.5, axis=1),
    "gradient": lambda a: np.gradient(a[1]),
    "convolve": lambda a: np.convolve(a[0], a[1], mode="same"),
    "diag": lambda a: np.diag(a[0]),
    "diagonal": np.diagonal,
    "cov": np.cov,
    "polyval": lambda a: np.polyval([1.0, -2.0, 3.0], a),
    "fmod": lambda a: np.fmod(a, 1.7),
    "ldexp": lambda a: np.ldexp(a, 3),
    "nan_to_num": np.nan_to_num,
    "linalg.norm": np.linalg.norm,
    "linalg.norm along": lambda a: np.linalg.norm(a, axis=1, keepdims=True),
    "linalg.inv": lambda a: np.linalg.inv(a[:, :2] @ S),
    "linalg.det": lambda a: np.linalg.det(a[:, :2]),
    "linalg.solve": lambda a: np.linalg.solve(S, a),
    "linalg.vector_norm": lambda a: np.linalg.vector_norm(a, axis=0, ord=3),
    # those that are made of several of ours
    "fmax": lambda a: np.fmax(a, np.where(W > 0, W * 3, np.nan)),
    "fmin": lambda a: np.fmin(np.nan, a),
    "divmod": lambda a: np.divmod(a, 0.7)[1],
    "modf": lambda a: np.modf(-a)[0],
    "logaddexp2": lambda a: np.logaddexp2(a, 1.5),
    "matvec": lambda a: np.matvec(a, W[1]),
    "vecmat": lambda a: np.vecmat(W[:, 0], a),
    "float_power of two": lambda a: np.float_power(W[0] + 3, a),
    "round to tens": lambda a: np.round(a * 11.0, -1),
    "angle": lambda a: np.angle(a + 2j * W, deg=True),
    "reshape, columns first": lambda a: np.reshape(a, (3, 2), order="F"),
    "ravel, columns first": lambda a: np.ravel(a, "F"),
    "reshape, rows first": lambda a: np.reshape(a, -1, order="C", copy=True),
    "rollaxis": lambda a: np.rollaxis(a, 1),
    "hsplit": lambda a: np.hsplit(a, [1])[1],
    "vsplit": lambda a: np.vsplit(a, 2)[1],
    "dsplit": lambda a: np.dsplit(a[..., None] * W[0, :2], 2)[0],
    "trace": lambda a: np.trace(a, 1),
    "trace of a stack": lambda a: np.trace(a[None] * W[0, 0], axis1=1, axis2=2),
    "take of all": lambda a: np.take(a, [5, 0]),
    "take, wrapped": lambda a: np.take(a, [3, -4], axis=1, mode="wrap"),
    "take, clipped": lambda a: np.take(a, [[3, -4]], 1, None, "clip"),
    "take_along_axis of all": lambda a: np.take_along_axis(a, np.array([5, 1]), axis=None),
    "sort of all": lambda a: np.sort(a, axis=None),
    "partition": lambda a: np.partition(-a, 1, axis=1),
    "extract": lambda a: np.extract(W > 0, a),
    "compress": lambda a: np.compress([True, False, True], a, axis=1),
    "choose": lambda a: np.choose([[0, 1, 0], [1, 1, 0]], [a, W]),
    "choose, wrapped": lambda a: np.choose([0, 3, -1], [a[0], 2.0], mode="wrap"),
    "pad edge": lambda a: np.pad(a, ((2, 1), (0, 3)), mode="edge"),
    "pad reflect": lambda a: np.pad(a, ((0, 1), (2, 2)), "reflect"),
    "pad symmetric": lambda a: np.pad(a, 1, "symmetric"),
    "pad wrap": lambda a: np.pad(a, {1: (1, 4)}, "wrap"),
    "pad, values for each side": lambda a: np.pad(a, 1, constant_values=((1.0, 2.0), (3.0, 4.0))),
    "nancumsum": lambda a: np.nancumsum(np.where(V > 4.5, np.nan, a), axis=1),
    "nancumprod": lambda a: np.nancumprod(np.where(V > 4.5, np.nan, a)),
    "diff beside a number": lambda a: np.diff(a, prepend=0.0, append=W[:, :2]),
    "ediff1d": lambda a: np.ediff1d(a, to_begin=1.0, to_end=[2.0, 3.0]),
    "linspace": lambda a: np.linspace(a, W, 4),
    "linspace without its end": lambda a: np.linspace(1.0, a[0], 3, endpoint=False, axis=1),
    "linspace of one": lambda a: np.linspace(a, W, 1),
    "logspace": lambda a: np.logspace(0.0, a[0], 3, base=2.0),
    "unique": lambda a: np.unique(np.concatenate([a, a])),
    "union1d": lambda a: np.union1d(a[0], W),
    "setdiff1d": lambda a: np.setdiff1d(a, [2.0, 4.0]),
    "polyadd": lambda a: np.polyadd(a[0], W[0, :2]),
    "polysub": lambda a: np.polysub([1.0], a[0]),
    "polymul": lambda a: np.polymul(a[0], a[1, :2]),
    "polyder": lambda a: np.polyder(a[0]),
    "polyint": lambda a: np.polyint(a[0], 2, k=[1.0, 2.0]),
    "polyfit": lambda a: np.polyfit(a.reshape(-1), W.reshape(-1), 2),
    "polyfit with weights": lambda a: np.polyfit(W[0], a.mT, 1, w=V[0]),
    "i0": np.i0,
    "sinc": np.sinc,
    "einsum with axes": lambda a: np.einsum(a, [0, 1], W, [2, 1], [0, 2]),
    "linalg.qr, R alone": lambda a: np.linalg.qr(a[:, :2] @ S, "r"),
    "linalg.svd, values alone": lambda a: np.linalg.svd(a, compute_uv=False),
    "linalg.eigvalsh of the upper triangle": lambda a: np.linalg.eigvalsh(a[:, :2] + a[:, :2].T, "U"),
    "linalg.pinv": lambda a: np.linalg.pinv(a, rcond=1e-9),
    "linalg.pinv of a triangle": lambda a: np.linalg.pinv(a[:, :2], hermitian=True),
    "linalg.lstsq": lambda a: np.linalg.lstsq(a.mT, W[0], rcond=None)[0],
    "linalg.lstsq, residuals": lambda a: np.linalg.lstsq(a.mT, W[0])[1],
    "linalg.tensorinv": lambda a: np.linalg.tensorinv(np.reshape(a[:, :2] @ S, (2, 1, 2)), ind=1),
    "linalg.tensorsolve": lambda a: np.linalg.tensorsolve(np.reshape(a[:, :2] @ S, (2, 1, 2)), W[:, 0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_numpys_and_gradients_right(name: str) -> None:
    f = CALLS[name]
    expected = f(V)
    for device in ("numpy", "autodiff<numpy>"):
        x = ad.tensor(V, device=device)
        out = f(x.require_grad() if device != "numpy" else x)
        assert isinstance(out, ad.Tensor)
        assert out.device.name == device
        assert out.is_tracked() is (device != "numpy")
        assert (out.shape, out.dtype) == (np.shape(expected), np.asarray(expected).dtype)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13, atol=1e-14)
    ad.testing.check_grads(f, (V + 0.01 * W,))


CONSTANT: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda a: np.argmax(a, axis=1),
    "argsort": lambda a: np.argsort(a, axis=0, kind="stable"),
    "nonzero": lambda a: np.nonzero(a > 1)[0],
    "where of one": lambda a: np.where(a > 1)[1],
    "count_nonzero": np.count_nonzero,
    "isnan": np.isnan,
    "equal": lambda a: a == V,
    "less": lambda a: np.less(a, 2),
    "logical_and": lambda a: np.logical_and(a > 1, V > 2),
    "logical_or.reduce": lambda a: np.logical_or.reduce(a > 1),
    "any": lambda a: np.any(a > 1, axis=0),
    "searchsorted": lambda a: np.searchsorted([1.0, 2.0, 3.0], a, side="right"),
    "unique_values": np.unique_values,
    "isclose": lambda a: np.isclose(a, W + 4),
    "digitize": lambda a: np.digitize(a, [1.0, 3.0]),
    "isin": lambda a: np.isin(a, [2.0, 4.0]),
    "zeros_like": lambda a: np.zeros_like(a, dtype=np.int64),
    "full_like": lambda a: np.full_like(a, 2.0),
    "shape": np.shape,
    "ndim": np.ndim,
    "size": np.size,
    "allclose": lambda a: np.allclose(a, V),
    "array_equal": lambda a: np.array_equal(a, W),
    "iscomplexobj": np.iscomplexobj,
    "modf": lambda a: np.modf(-a)[1],
    "divmod": lambda a: divmod(V, a)[0],
    "round of integers": lambda a: np.round((a * 100).astype(np.int64), -1),
    "round of integers to digits": lambda a: np.round(a.astype(np.int64), 2),
    "argsort of all": lambda a: np.argsort(-a, axis=None),
    "argpartition": lambda a: np.argpartition(a, 1),
    "lexsort": lambda a: np.lexsort((a[0], np.array([1, 0, 1]))),
    "argwhere": lambda a: np.argwhere(a > 1),
    "flatnonzero": lambda a: np.flatnonzero(a > 1),
    "fix": lambda a: np.fix(-a),
    "isreal": lambda a: np.isreal(a + 1j * (W > 0)),
    "iscomplex": np.iscomplex,
    "isposinf": lambda a: np.isposinf(np.where(W > 0, a, np.inf)),
    "isneginf": lambda a: np.isneginf(np.where(W > 0, a, np.inf)),
    "array_equiv": lambda a: np.array_equiv(a, a[:1]),
    "intersect1d": lambda a: np.intersect1d(a, [4.0, 2.0, 9.0]),
    "setxor1d": lambda a: np.setxor1d(a, [4.0, 2.0, 9.0]),
    "ix_": lambda a: np.ix_(np.argsort(a[0]), [0, 1])[0],
    "ix_ of a list": lambda a: np.ix_(np.argsort(a[0]), [0, 1])[1],
    "ix_ of a mask": lambda a: np.ix_([2, 0], a[0] > 1)[1],
    "indexed by ix_": lambda a: V[np.ix_([1, 0], [True, False, True])] + 0 * a[:, :2] > 2,
    "tril_indices_from": lambda a: np.tril_indices_from(a, 1)[1],
    "triu_indices_from": lambda a: np.triu_indices_from(a, k=-1)[0],
    "diag_indices_from": lambda a: np.diag_indices_from(a @ W.T)[1],
    "unique, nan": lambda a: np.unique(np.where(W > 0, a, np.nan), return_counts=True)[1],
    "unique, nan, inverse": lambda a: np.unique(np.where(W > 0, a, np.nan), return_inverse=True)[1],
    "unique, nan, index": lambda a: np.unique(np.where(W > 0, a, np.nan), True)[1],
    "unique, each nan": lambda a: np.unique(np.where(W > 0, a, np.nan), equal_nan=False),
    "imag": np.imag,
    "linalg.matrix_rank": lambda a: np.linalg.matrix_rank(a, tol=3.0),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_what_has_no_gradient_is_numpys_too(name: str) -> None:
    ours, theirs = CONSTANT[name](ad.tensor(V)), CONSTANT[name](V)
    np.testing.assert_array_equal(ours.numpy() if isinstance(ours, ad.Tensor) else ours, theirs)
    truth = isinstance(theirs, bool) and name != "iscomplexobj"
    assert isinstance(ours, ad.Tensor) is (truth or isinstance(theirs, (np.ndarray, np.generic)))


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda x: np.sin(x, out=np.zeros(3)), ["np.sin", "out=", "values"]),
        (lambda x: np.add(x, x, where=np.ones(3, bool)), ["np.add", "where=", "ad.where"]),
        (lambda x: np.sum(x, out=np.zeros(())), ["np.sum", "out="]),
        (lambda x: np.sum(x, where=[1, 0, 1]), ["np.sum", "where=", "booleans", "int64"]),
        (lambda x: np.sum(x, where=np.ones((2, 3), bool)), ["(2, 3)", "(3,)"]),
        (lambda x: np.max(x, where=[True, False, True]), ["np.max", "where=", "initial="]),
        (lambda x: np.sum(x, initial=1j), ["np.sum", "initial=", "1j"]),
        (lambda x: np.sum(x, initial=np.ones(2)), ["np.sum", "initial=", "one number"]),
        (lambda x: np.sum(x, initial=ad.ones(2)), ["np.sum", "initial=", "one number"]),
        (lambda x: np.max(x.astype(ad.int64), initial=-np.inf), ["np.max", "initial=", "-inf"]),
        (lambda x: np.mean(x, dtype=int), ["np.mean", "dtype=", "int64"]),
        (lambda x: np.var(x, mean=2.0), ["np.var", "mean="]),
        (lambda x: np.concatenate([x, x], out=np.zeros(6)), ["np.concatenate", "out="]),
        (lambda x: np.einsum("i->", x, out=np.zeros(())), ["np.einsum", "out="]),
        (lambda x: np.spacing(x), ["np.spacing", "ad.nextafter"]),
        (lambda x: np.add.at(x, [0], 1), ["np.add.at", "ad.scatter(x, i, v, mode='add')", "repeated"]),
        (lambda x: np.subtract.at(np.ones(3), [0, 0], x[:2]), ["ad.scatter(x, i, -v, mode='add')", "repeated"]),
        (lambda x: np.add.reduceat(x, [0, 1]), ["np.add.reduceat", "ad.segment_sum", "x.detach().numpy()"]),
        (lambda x: np.copyto(np.zeros(3), x), ["np.copyto", "x[...] = v"]),
        (lambda x: np.unique(x, axis=1), ["unique", "axis 1"]),
        (lambda x: np.pad(x, 1, mode=lambda *a: None), ["pad", "constant", "mean"]),
        (lambda x: np.pad(x, 1, "reflect", reflect_type="off"), ["pad", "reflect_type", "odd"]),
        (lambda x: np.pad(x, -1, "edge"), ["pad", "non-negative"]),
        (lambda x: np.pad(x, ((1, 2), (3, 4)), "wrap"), ["pad", "width"]),
        (lambda x: np.take(x, [0], 0, np.zeros(1)), ["np.take", "out="]),
        (lambda x: np.take(x, [0], mode="nearest"), ["np.take", "mode", "nearest"]),
        (lambda x: np.linspace(x, 1.0, 3, retstep=True), ["np.linspace", "retstep="]),
        (lambda x: np.reshape(x, (3, 1), order="K"), ["reshape: order", "K"]),
        (lambda x: np.round(x, 1, np.zeros(3)), ["np.round", "out="]),
        (lambda x: np.polyfit(x, x, 1, full=True), ["np.polyfit", "full=", "ad.linalg.lstsq"]),
        (lambda x: np.cov(x, bias=True), ["np.cov", "bias=", "ddof=0"]),
        (lambda x: np.meshgrid(x, x, sparse=True), ["np.meshgrid", "sparse=", "x[:, None]"]),
        (lambda x: np.linalg.eigh(x[:, None] * x, "X"), ["eigh", "UPLO", "X"]),
        (lambda x: np.linalg.qr(x[:, None] * x, "raw"), ["qr", "mode", "raw"]),
        (lambda x: np.einsum(x, [77]), ["np.einsum", "integers", "77"]),
        (lambda x: np.choose([0], [x, x], mode="any"), ["np.choose", "mode", "any"]),
        (lambda x: np.split(x, 2), ["split", "equal parts"]),
        (lambda x: np.put_along_axis(x, np.array([0]), 1.0, axis=0), ["np.put_along_axis", "ad.put_along_axis"]),
    ],
)
def test_what_tensors_cannot_mean_is_an_error_with_a_way_out(call: Any, parts: list[str]) -> None:
    for x in (ad.tensor([1.0, 2.0, 3.0]).require_grad(), ad.tensor([1.0, 2.0, 3.0], device="numpy")):
        with pytest.raises(errors.AdjointError) as caught:
            call(x)
        for part in parts:
            assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "leave",
    [
        lambda x: np.array([x[0], x[1]]),
        lambda x: np.asarray([[x[0], 1.0], [2.0, 3.0]]),
        lambda x: np.zeros(2).__setitem__(slice(None), x),
        lambda x: np.full(3, x[0]),
        lambda x: np.ma.asarray(x),
        lambda x: np.random.default_rng(0).normal(x),
    ],
)
def test_what_numpy_does_not_ask_about_refuses_tracked_tensors(leave: Any) -> None:
    leave(ad.tensor([1.0, 2.0]))
    with pytest.raises(errors.TrackedError, match="detach"):
        leave(ad.tensor([1.0, 2.0]).require_grad() * 2)


def test_options_that_say_nothing_about_values_are_taken() -> None:
    x = ad.tensor(V).require_grad()
    for call in (
        lambda a: np.sin(a, where=True, casting="same_kind", order="K", subok=True, out=(None,)),
        lambda a: np.sum(a, where=True, out=None),
        lambda a: np.add.reduce(a, where=True),
        lambda a: np.broadcast_to(a, (2, 2, 3), subok=True),
        lambda a: np.meshgrid(a[0], W[0], copy=False)[0],
        lambda a: np.nan_to_num(a, copy=False),
        lambda a: np.copy(a, order="C"),
        lambda a: np.round(a, 1, None),
        lambda a: np.concatenate([a, a], 1, None),
    ):
        out = call(x)
        assert isinstance(out, ad.Tensor)
        assert out.is_tracked()
        np.testing.assert_array_equal(out.numpy(), call(V))


def test_memory_is_compared_by_values() -> None:
    values = np.ones(3)
    assert np.may_share_memory(ad.asarray(values), values)
    assert not np.shares_memory(ad.tensor(values), values)
    assert sorted(np.random.default_rng(0).permutation(ad.tensor(V[0]))) == sorted(V[0])


def test_integers_are_rounded_exactly() -> None:
    """NumPy rounds them in float64."""
    x = ad.tensor([2**62 + 1, -(2**62) - 1, 15, 25, -15, -25, 14])
    assert np.round(x, -1).tolist() == [2**62 - 4, 4 - 2**62, 20, 20, -20, -20, 10]  # type: ignore[call-overload]


def test_text_is_that_of_the_values() -> None:
    x = ad.tensor([1.0, 2.54]).require_grad()
    assert np.array2string(x, precision=1, separator=", ") == "[1. , 2.5]"  # type: ignore[call-overload]
    texts: list[str] = []

    def f(x: Any) -> Any:  # text is no computation
        texts.append(np.array2string(x, precision=1))
        return x.sum()

    ad.grad(f)(np.array([1.0, 2.5]))
    ad.vmap(f)(np.array([[1.0, 2.5], [3.0, 4.0]]))
    assert texts[0] == "[1.  2.5]"
    assert "3. , 4. " in texts[1]
    assert (np.array_repr(x), np.array_str(x)) == (repr(x), str(x))  # type: ignore[arg-type]


def test_an_array_does_not_take_a_tensor_in_place() -> None:
    values = np.ones(2)
    with pytest.raises(errors.ArgumentTypeError, match=r"np\.add.*out="):
        values += ad.ones(2)
    assert values.tolist() == [1.0, 1.0]


def test_other_libraries_operands_are_left_to_them() -> None:
    class Foreign:
        __array_ufunc__ = None

        def __radd__(self, other: Any) -> str:
            return "theirs"

    class Other:
        def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> str:
            return "theirs"

    assert ad.ones(2) + Foreign() == "theirs"
    assert np.concatenate([ad.ones(2), Other()]) == "theirs"  # type: ignore[call-overload]


@pytest.mark.parametrize("name", [*CALLS, *CONSTANT])
def test_keywords_and_defaults_of_numpys_are_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call again with all that can be named by its name, and with NumPy's defaults written out."""
    from adjoint import numpy_protocols

    array_function = numpy_protocols.array_function

    def thrice(function: Any, args: Any, options: Any) -> Any:
        out = array_function(function, args, options)
        bound = inspect.signature(function).bind(*args, **options)
        for defaults in (False, True):
            if defaults:
                default = {
                    p.name: p.default for p in bound.signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY
                }
                bound.arguments |= {
                    k: v for k, v in default.items() if v is not inspect.Parameter.empty
                } | bound.arguments
            positional, named = [], {}
            for p in bound.signature.parameters.values():
                if p.name not in bound.arguments:
                    continue
                value = bound.arguments[p.name]
                if p.kind is p.VAR_POSITIONAL:
                    positional += value
                elif p.kind is p.VAR_KEYWORD:
                    named |= value
                elif p.kind is p.POSITIONAL_ONLY:
                    positional.append(value)
                else:
                    named[p.name] = value
            again = array_function(function, tuple(positional), named)
            same(again, out)
        return out

    def same(again: Any, out: Any) -> None:
        if isinstance(out, (list, tuple)):
            assert len(again) == len(out)
            for a, b in zip(again, out, strict=True):
                same(a, b)
        elif isinstance(out, ad.Tensor):
            assert (again.dtype, again.is_tracked()) == (out.dtype, out.is_tracked())
            np.testing.assert_array_equal(again.numpy(), out.numpy())
        else:
            assert again == out

    monkeypatch.setattr(numpy_protocols, "array_function", thrice)
    (CALLS | CONSTANT)[name](ad.tensor(V).require_grad())


EXPLICIT: dict[str, Callable[[Any], Any]] = {
    "fft.fft": lambda a: np.fft.fft(a, norm=None).real,
    "fft.irfft2": lambda a: np.fft.irfft2(a, s=None, axes=(0, 1), norm=None),
    "meshgrid": lambda a: np.meshgrid(a[0], a[1], sparse=False, copy=True)[1],
    "full_like": lambda a: a * np.full_like(a, fill_value=1.0),
    "histogram": lambda a: np.histogram(a, bins=3, range=None, density=None, weights=a * a)[0],
    "cov": lambda a: np.cov(a, ddof=None, bias=False, rowvar=True),
    "cross": lambda a: np.cross(a, W, axis=None),
    "clip": lambda a: np.clip(a, min=1.0, max=4.5),
    "geomspace": lambda a: np.geomspace(a, V + 1, num=4, endpoint=False, axis=1),
    "geomspace from a number": lambda a: np.geomspace(-1.0, -a, 3),
    "concatenate in another dtype": lambda a: np.concatenate([a, W.astype(np.float32)], dtype=np.float64),
    "apply_along_axis by names": lambda a: np.apply_along_axis(func1d=lambda x: x * x, axis=0, arr=a),
    "cross of columns": lambda a: np.cross(a.T, W, axisa=0),
    "cross into columns": lambda a: np.cross(a.T, W, 0, -1, axisc=0),
    "cross along": lambda a: np.cross(a.T, W.T, axis=0),
    "concatenate of a list": lambda a: np.concatenate([[a[0, 0], a[1, 1]], a[0]]),
    "append of a list": lambda a: np.append([a[0, 0], 2.0], a[0]),
    "append to a list": lambda a: np.append(a[0], [a[0, 0], a[1, 2]]),
    "dot of a list": lambda a: np.dot([[a[0, 0], a[1, 1]]], a),
    "a list beside a tensor": lambda a: np.add(a[0], [a[0, 0], a[1, 1], a[1, 2]]),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_defaults_and_lists_of_tensors_are_taken(name: str) -> None:
    f = EXPLICIT[name]
    out = f(ad.tensor(V).require_grad())
    assert isinstance(out, ad.Tensor)
    assert out.is_tracked()
    np.testing.assert_allclose(out.numpy(), f(V), rtol=1e-13)
    ad.testing.check_grads(f, (V + 0.01 * W,))


@pytest.mark.parametrize(
    "joined",
    [
        lambda x, y: np.array([x, y]), lambda x, y: np.array([x[0], y[0]]), lambda x, y: np.append([x], [y]),
        lambda x, y: np.r_[x, y], lambda x, y: np.c_[x, y], lambda x, y: np.mean([x, y]),
        lambda x, y: np.sum([x[0], y[1]]),
    ],
)  # fmt: skip
def test_lists_that_numpy_makes_arrays_of_name_stack(joined: Any) -> None:
    x, y = ad.tensor([1.0, 2.0], dtype=ad.float64), ad.tensor([3.0, 4.0], dtype=ad.float64)
    np.testing.assert_array_equal(joined(x, y), joined(x.numpy(), y.numpy()))
    with pytest.raises(errors.TrackedError, match=r"ad\.stack"):
        joined(x.require_grad(), y.require_grad())


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        (operator.iadd, "+"), (operator.isub, "-"), (operator.imul, "*"), (operator.itruediv, "/"),
        (operator.ifloordiv, "//"), (operator.imod, "%"), (operator.ipow, "**"), (operator.imatmul, "@"),
    ],
)  # fmt: skip
def test_an_array_changed_by_a_tensor_names_the_operator(change: Any, sign: str) -> None:
    u = np.eye(2)
    with pytest.raises(errors.ArgumentTypeError, match=re.escape(f"write u = u {sign} x for u {sign}= x")):
        change(u, ad.ones((2, 2)))
    with pytest.raises(errors.ArgumentTypeError, match=re.escape("u = np.arctan2(u, x)")):
        np.arctan2(u, ad.ones((2, 2)), out=u)
    assert u.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_advice_for_repeated_indices_counts_them() -> None:
    u, i, v = np.zeros(3), np.array([0, 0, 2]), ad.tensor([1.0, 2.0, 4.0])
    expected = u.copy()
    np.add.at(expected, i, v.numpy())
    assert ad.scatter(u, i, v, mode="add").tolist() == expected.tolist()


def test_levels_are_kept() -> None:
    slopes = ad.grad(lambda a: np.sum(np.exp(a) * V[0]))(V[0])
    np.testing.assert_allclose(slopes, np.exp(V[0]) * V[0])
    curvature = ad.hessian(lambda a: np.sum(np.sin(a)))(V[0])
    np.testing.assert_allclose(curvature, np.diag(-np.sin(V[0])))
    np.testing.assert_allclose(ad.vmap(lambda a: np.dot(a, W[0]))(V), V @ W[0])
    with pytest.raises(errors.TrackedError, match="detach"):
        ad.grad(lambda a: np.sum(np.asarray(a)))(V)


def test_every_function_named_there_exists() -> None:
    """The parameters that the tables' functions take are ones that NumPy's have."""
    from adjoint import numpy_protocols

    for function, ours in numpy_protocols._FUNCTIONS.items():
        theirs = inspect.signature(function).parameters.values()
        named = {p.name for p in theirs} | {"constant_values", "end_values", "stat_length", "reflect_type"}
        for p in inspect.signature(ours).parameters.values():
            assert p.default is p.empty or p.name in named, (function.__name__, p.name)


def test_every_function_that_errors_name_exists() -> None:
    from adjoint import numpy_protocols

    for name, hint in numpy_protocols._INSTEAD.items():
        assert functools.reduce(getattr, name.split("."), np), name
        for ours in re.findall(r"\bad\.([a-z_.]*[a-z_])", hint):
            assert callable(functools.reduce(getattr, ours.split("."), ad)), ours
    for mode in set(re.findall(r"mode '(\w+)'", str(numpy_protocols._INSTEAD))):
        ad.scatter(ad.ones(3), [0], 2.0, mode=mode)


def test_the_tables_are_imported_when_numpy_asks() -> None:
    code = (
        "import sys, numpy as np, adjoint as ad; x = ad.ones(2); x + 1.0; name = 'adjoint.numpy_protocols'; "
        "before = name in sys.modules; np.sin(x); print(before, name in sys.modules)"
    )
    done = processes.python(code)
    assert done.stdout.split() == ["False", "True"]


def test_universal_functions_of_scipy_are_ours() -> None:
    theirs = peer("scipy.special")
    compared = 0
    values = [np.array([0.3, 0.6]), np.array([0.4, 0.7]), np.array([0.25, 0.5]), np.array([0.2, 0.8])]
    orders = "jn jv yn yv kn iv ive expn hankel1 hankel2 struve modstruve hyp0f1 hyp1f1 hyp2f1".split()
    for name in ad.special.__all__:
        f = getattr(theirs, name, None)
        if not isinstance(f, np.ufunc):
            continue
        args = values[: f.nin]
        if name in orders:  # by which there is no derivative
            args = [*[np.array([1, 2])] * (f.nin - 1), values[0]]
        xs = [ad.asarray(v) if v.dtype.kind == "i" else ad.asarray(v).require_grad() for v in args]
        found, expected = f(*xs), f(*args)
        for out, wanted in zip(found, expected, strict=True) if f.nout > 1 else [(found, expected)]:
            assert isinstance(out, ad.Tensor), name
            assert out.is_tracked(), name
            np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-9, err_msg=name)
        compared += 1
    assert compared > 20
    for args, f in (
        ([values[0]], theirs.lambertw),
        ([-values[2]], lambda x: theirs.lambertw(x, -1, 1e-3).real),
        ([np.array([0.3 + 2j, -1.0 - 1j])], lambda z: theirs.lambertw(z, k=2)),
        ([values[0] - 3.0], theirs.zeta),
        ([values[0] + 1.5, values[1]], theirs.zeta),
    ):  # functions of Python around universal functions, whose names are their own
        xs = [ad.asarray(v).require_grad() for v in args]
        out = f(*xs)
        assert out.is_tracked()
        np.testing.assert_allclose(out.numpy(), f(*args), rtol=1e-9)
        assert out.dtype == f(*args).dtype
        h, left = 1e-5, ad.real(out).sum().backward()
        for i, x in enumerate(xs):
            moved = [f(*[v + s * h if i == j else v for j, v in enumerate(args)]).real for s in (1, -1)]
            np.testing.assert_allclose(ad.real(left[x]).numpy(), (moved[0] - moved[1]) / (2 * h), rtol=1e-6)
    with pytest.raises(ad.errors.ArgumentTypeError, match="k is an integer"):
        theirs.lambertw(ad.asarray(values[0]), [0, -1])
    with pytest.raises(ad.errors.ArgumentTypeError, match="hyperu"):
        theirs.hyperu(1.0, 2.0, ad.asarray(values[0]))
