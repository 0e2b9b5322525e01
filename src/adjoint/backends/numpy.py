"""The leaf backend over NumPy: every primitive as a NumPy call, fused where that saves a pass.

Arrays are `numpy.ndarray`s, or NumPy scalars where NumPy returns those.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation, Leaf
from adjoint.backends import composed, convolution, special
from adjoint.primitives import ARRAY, DType, Key, Primitive


class NumPy(Leaf):
    """NumPy on the CPU.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.NumPy())
    Tensor([1., 2.], dtype=float32, device=numpy)
    """

    name = "numpy"

    def implement(self, primitive: Primitive) -> Implementation:
        try:
            return _IMPLEMENTATIONS[primitive.name]
        except KeyError:
            return composed(self, primitive)

    def implement_into(self, primitive: Primitive) -> Implementation:
        return _INTO.get(primitive.name) or self[primitive]

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        return values.copy() if copy else values

    weak = staticmethod(functools.lru_cache(4096)(lambda value, dtype: np.array(value, dtype)))

    def copied(self, array: Array) -> Array:
        return np.array(array)

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array)


# --- elementwise ---------------------------------------------------------------------------------


_BLOCK = 16384  # elements: a few such blocks stay in a core's second-level cache


def _in_blocks(kernel: Implementation) -> Implementation:
    """An elementwise kernel of many passes (a polynomial), run block by block to stay in the cache."""

    def run(*arrays: Array) -> Array:
        first = arrays[0]
        if first.size <= 2 * _BLOCK or not all(
            a.shape == first.shape and (a.ndim == 1 or a.flags.c_contiguous) for a in arrays
        ):
            return kernel(*arrays)
        flat = [a.reshape(-1) for a in arrays]
        out = np.empty(first.size, first.dtype)
        for start in range(0, first.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = kernel(*[a[block] for a in flat])
        return out.reshape(first.shape)

    return run


def _expit(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-x) may be infinite: its reciprocal is the right zero
        t = np.exp(np.negative(x))
    if t.ndim == 0:
        return 1 / (1 + t)
    np.add(t, 1, out=t)
    return np.divide(1, t, out=t)


def _round(x: Array) -> Array:
    return np.rint(x) if x.dtype.kind in "fc" else x  # rint makes integers floats


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


def _tanh_pullback(g: Array, out: Array) -> Array:
    t = np.square(out)
    if t.ndim == 0 or g.shape != t.shape:
        return g * (1 - t)
    np.subtract(1, t, out=t)
    return np.multiply(t, g, out=t)


def _expit_pullback(g: Array, out: Array) -> Array:
    t = np.subtract(1, out)
    if t.ndim == 0 or g.shape != t.shape:
        return g * (t * out)
    np.multiply(t, out, out=t)
    return np.multiply(t, g, out=t)


def _relu_pullback(g: Array, out: Array) -> Array:
    return np.where(np.less_equal(out, 0), out.dtype.type(0), g)


# erf(x) / x in single precision, as a polynomial in u = 2 (x / 3.92)^2 - 1: a Chebyshev interpolant computed with
# mpmath, within 2.5e-7 of erf, relative (a test measures it). Beyond 3.92 erf rounds to one.
_SINGLE = (
    0.36073681712150574, -0.18010856211185455, 0.13408330082893372, -0.10918185114860535, 0.09062451124191284,
    -0.07398989051580429, 0.058167435228824615, -0.04358573257923126, 0.030624324455857277, -0.019617490470409393,
    0.012177927419543266, -0.008170483633875847, 0.004379645921289921, -0.0010452779242768884,
    0.0005528946639969945, -0.0009392719366587698, 0.00039374089101329446,
)  # fmt: skip


@_in_blocks
def _erf(x: Array) -> Array:
    if x.dtype != np.float32 or x.ndim == 0:
        return special.erf(np, x)
    x = np.clip(x, -3.92, 3.92)
    u = np.square(x)
    np.multiply(u, 2 / 3.92**2, out=u)
    np.subtract(u, 1, out=u)
    total = np.full_like(u, _SINGLE[-1])
    for coefficient in _SINGLE[-2::-1]:
        np.multiply(total, u, out=total)
        np.add(total, coefficient, out=total)
    np.multiply(total, x, out=total)
    return np.clip(total, -1, 1, out=total)


def _normal_cdf(x: Array) -> Array:
    return 0.5 * (1 + _erf(x * math.sqrt(0.5)))


@_in_blocks
def _gelu(x: Array) -> Array:
    return x * _normal_cdf(x)


@_in_blocks
def _gelu_pullback(g: Array, x: Array) -> Array:
    density = np.exp(-0.5 * np.square(x)) * (1 / math.sqrt(2 * math.pi))
    return g * (_normal_cdf(x) + x * density)


def _silu(x: Array) -> Array:
    return x * _expit(x)


def _silu_pullback(g: Array, x: Array) -> Array:
    s = _expit(x)
    return g * (s * (1 + x * (1 - s)))


def _absorbing_multiply(x: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.multiply(x, y)
    absorbed = np.logical_or(np.equal(x, 0), np.equal(y, 0))
    return np.where(absorbed, product.dtype.type(0), product)


def _clip(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _astype(x: Array, *, dtype: DType) -> Array:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype)


# --- reductions ----------------------------------------------------------------------------------


def _sum(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)  # type: ignore[call-overload]


def _prod(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)  # type: ignore[call-overload]


def _cumulative_sum(x: Array, *, axis: int) -> Array:
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def _cumulative_prod(x: Array, *, axis: int) -> Array:
    return np.cumprod(x, axis=axis, dtype=x.dtype)


def _logsumexp(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    with np.errstate(divide="ignore"):  # the logarithm of an empty sum is -inf
        out = np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else out.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _softmax(x: Array, *, axis: int) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
    np.exp(t, out=t)
    return np.divide(t, np.add.reduce(t, axis=axis, keepdims=True), out=t)


def _softmax_pullback(g: Array, out: Array, *, axis: int) -> Array:
    t = np.multiply(g, out)
    inner = np.add.reduce(t, axis=axis, keepdims=True)
    np.subtract(g, inner, out=t)
    return np.multiply(t, out, out=t)


def _log_softmax(x: Array, *, axis: int) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
    return np.subtract(t, np.log(np.add.reduce(np.exp(t), axis=axis, keepdims=True)), out=t)


def _log_softmax_pullback(g: Array, out: Array, *, axis: int) -> Array:
    t = np.exp(out)
    np.multiply(t, np.add.reduce(g, axis=axis, keepdims=True), out=t)
    return np.subtract(g, t, out=t)


def _vector_norm(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    squares = np.square(x) if x.dtype.kind != "c" else np.square(x.real) + np.square(x.imag)
    return np.sqrt(np.add.reduce(squares, axis=axis, keepdims=keepdims))  # type: ignore[call-overload]


def _standardize(x: Array, *, axis: tuple[int, ...], epsilon: float) -> Array:
    count = math.prod(x.shape[i] for i in axis)
    t = x - np.add.reduce(x, axis=axis, keepdims=True) / count
    variance = np.add.reduce(np.square(t), axis=axis, keepdims=True) / count
    return np.divide(t, np.sqrt(variance + epsilon), out=t)


def _at_labels(x: Array, labels: Array) -> tuple[Array, tuple[Array, Array]]:
    """The logits as rows, and the key of each row's label."""
    rows = x if x.ndim == 2 else x.reshape(labels.size, x.shape[-1])
    return rows, (np.arange(len(rows)), labels.reshape(-1))


def _no_class(labels: Array, classes: int) -> errors.OutOfRangeError:
    return errors.OutOfRangeError(
        f"cross entropy: targets from {labels.min()} to {labels.max()}, but the logits have {classes} classes, from 0"
    )


def _softmax_cross_entropy(x: Array, labels: Array) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=-1, keepdims=True))
    rows, key = _at_labels(t, labels)
    if np.minimum.reduce(labels, axis=None, initial=0) < 0:  # a negative one would count from the end
        raise _no_class(labels, x.shape[-1])
    try:
        picked = rows[key]
    except IndexError:
        raise _no_class(labels, x.shape[-1]) from None
    np.exp(t, out=t)
    losses = np.log(np.add.reduce(t, axis=-1))
    return np.subtract(losses, picked.reshape(losses.shape))


def _softmax_cross_entropy_pullback(g: Array, x: Array, labels: Array) -> Array:
    t = _softmax(x, axis=x.ndim - 1)
    rows, key = _at_labels(t, labels)
    rows[key] -= 1
    t = rows.reshape(t.shape)  # of a transposed t the rows are a copy
    return np.multiply(t, g[..., None], out=t)


# --- structure and indexing ----------------------------------------------------------------------


def _expand_dims(x: Array, *, axis: tuple[int, ...]) -> Array:
    sizes = list(x.shape)
    for i in axis:  # in order, so that each place is one of the result
        sizes.insert(i, 1)
    return x.reshape(sizes)


def _broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    """A view with strides of zero: what np.broadcast_to makes, without its iterator."""
    if x.__class__ is not np.ndarray:  # a scalar, whose buffer is read-only
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    extra = len(shape) - x.ndim
    if extra < 0 or not x.flags.c_contiguous or 0 in shape:
        return np.broadcast_to(x, shape)
    strides = [0] * extra
    for n, m, step in zip(x.shape, shape[extra:], x.strides, strict=True):
        if n != m and n != 1:
            return np.broadcast_to(x, shape)  # raises
        strides.append(step if n == m else 0)
    view: Array = np.ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def _concat(*xs: Array, axis: int) -> Array:
    return np.concatenate(xs, axis=axis)


def _pad(x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    out = np.full(shape, value, dtype=x.dtype)
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True))] = x
    return out


def _filled(key: Key, arrays: tuple[Array, ...]) -> Any:
    """The index key with its arrays in their places."""
    if not arrays:
        return key
    rest = iter(arrays)
    return tuple(next(rest) if entry is ARRAY else entry for entry in key)


def _index(x: Array, *arrays: Array, key: Key) -> Array:
    return x[_filled(key, arrays)]


def _index_set(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_set_into(np.array(x), value, *arrays, key=key)


def _index_set_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    x[_filled(key, arrays)] = value
    return x


def _index_add(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_add_into(np.array(x), value, *arrays, key=key)


def _index_add_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if arrays:
        np.add.at(x, _filled(key, arrays), value)
        return x
    view = x[key]
    if view.__class__ is np.ndarray:
        np.add(view, value, out=view)
    else:  # a single element
        x[key] = view + value
    return x


def _take_along_axis(x: Array, indices: Array, *, axis: int) -> Array:
    return np.take_along_axis(x, indices, axis=axis)


def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    out = np.sort(x, axis=axis)
    return np.flip(out, axis=axis) if descending else out


def _argsort(x: Array, *, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(np.flip(x, axis=axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis=axis)


def _topk(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    n = x.shape[axis]
    if k == 0:
        places = np.zeros([0 if i == axis else m for i, m in enumerate(x.shape)], dtype=np.int64)
    elif largest:
        places = np.take(np.argpartition(x, n - k, axis=axis), np.arange(n - k, n), axis=axis)
    else:
        places = np.take(np.argpartition(x, k - 1, axis=axis), np.arange(k), axis=axis)
    values = np.take_along_axis(x, places, axis=axis)
    order = _argsort(values, axis=axis, descending=largest)
    return np.take_along_axis(values, order, axis=axis), np.take_along_axis(places, order, axis=axis)


def _nonzero(x: Array) -> Array:
    return np.stack(np.nonzero(x)).astype(np.int64, copy=False)


def _matmul(x: Array, y: Array) -> Array:
    """Stacks of outer products, as per-example gradients are, are multiplications, which BLAS is not asked for."""
    if x.shape[-1] == 1 and x.ndim > 2 and y.shape[-2] == 1:
        return np.multiply(x, y)
    return np.matmul(x, y)


# --- linear algebra ------------------------------------------------------------------------------


def _cofactor(x: Array) -> Array:
    """det(A) A^-T through the singular values, whose products skip one: A may be singular."""
    n = x.shape[-1]
    u, s, vh = np.linalg.svd(x)
    others = np.where(np.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :])
    skipping = np.multiply.reduce(others, axis=-1)
    orientation = np.linalg.det(u) * np.linalg.det(vh)
    # A = U S V^H, so cof(A) = cof(U) cof(S) cof(V^H) with cof(Q) = det(Q) Q^-T = det(Q) conj(Q)
    return orientation[..., None, None] * np.matmul(np.conj(u) * skipping[..., None, :], np.conj(vh))


# --- creation and random numbers -----------------------------------------------------------------


def _full(*, shape: tuple[int, ...], value: Any, dtype: DType) -> Array:
    # zeros come untouched from the operating system, and cost only where they are used
    if value.__class__ is int and value == 0:
        return np.zeros(shape, dtype=dtype)
    return np.full(shape, value, dtype=dtype)


def _generator(key: tuple[int, int]) -> np.random.Generator:
    """Philox is counter-based: the same key gives the same numbers in any process.

    J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    seed, counter = key
    return np.random.Generator(np.random.Philox(key=seed % 2**128, counter=[0, 0, counter, seed >> 128 & 2**64 - 1]))


def random_uniform(*, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    draw = np.asarray(_generator(key).random(shape, dtype=np.float32 if dtype.itemsize <= 4 else np.float64))
    if dtype.itemsize < 4:  # cut to the digits that half precision has: rounding would make ones
        draw = np.asarray(np.floor(draw * 2048) / 2048)
    return draw.astype(dtype, copy=False)


def random_normal(*, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    precise = np.float32 if dtype.itemsize <= 4 else np.float64
    return np.asarray(_generator(key).standard_normal(shape, dtype=precise)).astype(dtype, copy=False)


def random_integers(*, key: tuple[int, int], low: int, high: int, shape: tuple[int, ...], dtype: DType) -> Array:
    return np.asarray(_generator(key).integers(low, high, size=shape, dtype=dtype.type))


def random_permutation(*, key: tuple[int, int], size: int, dtype: DType) -> Array:
    return _generator(key).permutation(size).astype(dtype, copy=False)


_IMPLEMENTATIONS: dict[str, Implementation] = {
    **{
        name: getattr(np, name)
        for name in (
            "negative floor ceil trunc square sqrt exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh conj "
            "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift logical_not "
            "isnan isinf isfinite add subtract multiply divide floor_divide remainder pow maximum minimum logaddexp "
            "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor acos asin atan "
            "acosh asinh atanh atan2 abs tril triu"
        ).split()
    },
    "round": _round,
    "sign": np.sign,
    "real": np.real,
    "imag": np.imag,
    "expit": _expit,
    "erf": _erf,
    "relu": lambda x: np.maximum(x, 0),
    "softplus": _softplus,
    "silu": _silu,
    "gelu": _gelu,
    "tanh_pullback": _tanh_pullback,
    "expit_pullback": _expit_pullback,
    "relu_pullback": _relu_pullback,
    "silu_pullback": _silu_pullback,
    "gelu_pullback": _gelu_pullback,
    "absorbing_multiply": _absorbing_multiply,
    "where": np.where,
    "clip": _clip,
    "astype": _astype,
    "sum": _sum,
    "prod": _prod,
    "max": lambda x, *, axis, keepdims: np.maximum.reduce(x, axis=axis, keepdims=keepdims),
    "min": lambda x, *, axis, keepdims: np.minimum.reduce(x, axis=axis, keepdims=keepdims),
    "any": lambda x, *, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims),
    "all": lambda x, *, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims),
    "argmax": lambda x, *, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    "argmin": lambda x, *, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    "cumulative_sum": _cumulative_sum,
    "cumulative_prod": _cumulative_prod,
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "softmax_pullback": _softmax_pullback,
    "log_softmax": _log_softmax,
    "log_softmax_pullback": _log_softmax_pullback,
    "vector_norm": _vector_norm,
    "standardize": _standardize,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "softmax_cross_entropy_pullback": _softmax_cross_entropy_pullback,
    "reshape": lambda x, *, shape: x.reshape(shape),
    "broadcast_to": _broadcast_to,
    "permute_dims": lambda x, *, axes: x.transpose(axes),
    "expand_dims": _expand_dims,
    "squeeze": lambda x, *, axis: np.squeeze(x, axis),
    "concat": _concat,
    "flip": lambda x, *, axis: np.flip(x, axis),
    "pad": _pad,
    "index": _index,
    "index_set": _index_set,
    "index_add": _index_add,
    "take_along_axis": _take_along_axis,
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "nonzero": _nonzero,
    "matmul": _matmul,
    "conv2d": lambda x, weight, **how: convolution.conv2d(np, x, weight, **how),
    "conv2d_input": lambda g, weight, **how: convolution.conv2d_input(np, g, weight, **how),
    "conv2d_weight": lambda x, g, **how: convolution.conv2d_weight(np, x, g, **how),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "cholesky": np.linalg.cholesky,
    "solve": np.linalg.solve,
    "cofactor": _cofactor,
    "full": _full,
    "arange": lambda *, start, stop, step, dtype: np.arange(start, stop, step, dtype=dtype),
    "linspace": lambda *, start, stop, num, endpoint, dtype: np.linspace(start, stop, num, endpoint, dtype=dtype),
    "eye": lambda *, rows, columns, k, dtype: np.eye(rows, columns, k, dtype=dtype),
    "random_uniform": random_uniform,
    "random_normal": random_normal,
    "random_integers": random_integers,
    "random_permutation": random_permutation,
}


def _add_into(x: Array, y: Array) -> Array:
    if x.__class__ is not np.ndarray or not x.ndim:
        return x + y
    return np.add(x, y, out=x)


_INTO: dict[str, Implementation] = {
    "add": _add_into,
    "index_set": _index_set_into,
    "index_add": _index_add_into,
}
