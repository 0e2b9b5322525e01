"""NumPy's functions that have no counterpart among ours, or say more than it: what they are on tensors.

Compositions of our functions, with NumPy's names and parameters, for `numpy_protocols`. Gradients follow from those
that they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors, linalg
from adjoint.functions import (
    arguments,
    contraction,
    creation,
    elementwise,
    indexing,
    logic,
    polynomials,
    reduction,
    sets,
    sorting,
    statistics,
)
from adjoint.functions import shape as shapes
from adjoint.functions.arguments import as_axis, as_choice, inexact
from adjoint.operands import cast, is_weak, operand
from adjoint.tensor import Tensor

_given = np._NoValue


def as_operands(values: Sequence[Any]) -> list[Any]:
    """Arguments with NumPy's arrays made tensors on the backend of the first tensor among them.

    Lists of Python's floats are float64 arrays to NumPy, and so they are here; lists of tensors are joined.
    """
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        return list(values)
    return [_as_operand(v, like) for v in values]


def _as_operand(value: Any, like: Tensor[Any]) -> Any:
    if isinstance(value, (list, tuple)):
        first = dtypes.first_value(value)
        if isinstance(first, Tensor):
            return creation.asarray(value)
        return operand(dtypes.array_of(value, "operand"), like, "operand") if isinstance(first, float) else value
    return operand(np.asarray(value), like, "operand") if isinstance(value, (np.ndarray, np.generic)) else value


def _beside(x: Any, y: Any) -> list[Tensor[Any]]:
    """Two operands, each with its dtype, on the device of the one that is a tensor."""
    like = x if isinstance(x, Tensor) else y
    return [operand(v, like, "operand") for v in (x, y)]


def flat(x: Any) -> Tensor[Any]:
    return shapes.reshape(x, -1)


def _tensor(x: Any, name: str) -> Tensor[Any]:
    return arguments.as_tensor(x, f"np.{name}")


# --- elementwise ---------------------------------------------------------------------------------


def float_power(x: Any, y: Any) -> Any:
    """In double precision at least, as NumPy's."""
    x, y = (v * 1.0 if is_weak(v) else _wide(_tensor(v, "float_power")) for v in as_operands([x, y]))
    return elementwise.pow(x, y)


def _wide(x: Tensor[Any]) -> Tensor[Any]:
    return cast(x, x.device.leaf.widest(dtypes.promote(x.dtype, dtypes.float64)))


def divmod(x: Any, y: Any) -> Any:
    x, y = as_operands([x, y])
    return elementwise.floor_divide(x, y), elementwise.remainder(x, y)


def modf(x: Any) -> Any:
    """The part behind the point, with the sign of x, and the whole number."""
    x = inexact(x, "modf")
    whole = elementwise.trunc(x)
    nothing = elementwise.copysign(creation.zeros_like(x), x)
    return elementwise.where(logic.isinf(x), nothing, elementwise.fmod(x, 1.0)), whole


def logaddexp2(x: Any, y: Any) -> Any:
    x, y = (v * math.log(2) if is_weak(v) else inexact(v, "logaddexp2") * math.log(2) for v in as_operands([x, y]))
    return elementwise.logaddexp(x, y) / math.log(2)


def matvec(x: Any, y: Any) -> Any:
    x, y = arguments.as_tensors(as_operands([x, y]), "matvec")
    return shapes.squeeze(contraction.matmul(x, shapes.expand_dims(y, axis=-1)), -1)


def vecmat(x: Any, y: Any) -> Any:
    x, y = arguments.as_tensors(as_operands([x, y]), "vecmat")
    row = shapes.expand_dims(elementwise.conj(x), axis=-2)
    return shapes.squeeze(contraction.matmul(row, y), -2)


def angle(z: Any, deg: bool = False) -> Any:
    turned = elementwise.angle(z)
    return elementwise.rad2deg(turned) if deg else turned


def imag(val: Any) -> Any:
    x = _tensor(val, "imag")
    return x.imag if x.dtype.kind == "c" else creation.zeros_like(x)


def isreal(x: Any) -> Any:
    return imag(x) == 0


def iscomplex(x: Any) -> Any:
    return imag(x) != 0


def isposinf(x: Any) -> Any:
    return _tensor(x, "isposinf") == math.inf


def isneginf(x: Any) -> Any:
    return _tensor(x, "isneginf") == -math.inf


# --- axes and elements ---------------------------------------------------------------------------


def transpose(a: Any, axes: Any = None) -> Any:
    x = _tensor(a, "transpose")
    return shapes.permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    x = _tensor(a, "rollaxis")
    axis = as_axis(axis, x.ndim, "rollaxis")
    start = as_axis(start, x.ndim + 1, "rollaxis")
    return shapes.moveaxis(x, axis, start - (axis < start))


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    x = _tensor(ary, "hsplit")
    return shapes.split(x, indices_or_sections, axis=min(x.ndim - 1, 1))


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return shapes.split(ary, indices_or_sections, axis=0)


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return shapes.split(ary, indices_or_sections, axis=2)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return reduction.sum(shapes.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    as_choice(mode, "np.take of a tensor", "the mode", ("raise", "wrap", "clip"))
    x, places = as_operands([a, indices])
    if axis is None:
        x, axis = flat(x), 0
    if mode != "raise":
        x, places = _beside(x, places)
        last = x.shape[as_axis(axis, x.ndim, "np.take")] - 1
        places = places % (last + 1) if mode == "wrap" else elementwise.clip(places, 0, last)
    return indexing.take(x, places, axis=axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    x, places = as_operands([arr, indices])
    return indexing.take_along_axis(flat(x) if axis is None else x, places, axis=-1 if axis is None else axis)


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, and where that is equal by the one before it."""
    first, *rest = arguments.as_tensors(as_operands(list(keys)), "lexsort")
    order = sorting.argsort(first, axis=axis)
    for key in rest:
        sorted_key = indexing.take_along_axis(key, order, axis=axis)
        order = indexing.take_along_axis(order, sorting.argsort(sorted_key, axis=axis), axis=axis)
    return order


def extract(condition: Any, arr: Any) -> Any:
    return compress(condition, arr)


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    mask, x = _beside(*as_operands([condition, a]))
    x, axis = (flat(x), 0) if axis is None else (x, axis)
    return indexing.take(x, indexing.flatnonzero(mask), axis=axis)


def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    as_choice(mode, "np.choose of a tensor", "the mode", ("raise", "wrap", "clip"))
    given = arguments.items(choices)
    if not given:
        raise errors.ArgumentTypeError(
            f"np.choose of a tensor: choices are a list of at least one array, received {errors.shown(choices)}"
        )
    options = arguments.as_tensors(as_operands([*given, a])[:-1], "choose")
    which = operand(a, options[0], "np.choose")
    which, *options = shapes.broadcast_arrays(which, *options)
    if mode != "raise":
        last = len(options) - 1
        which = which % (last + 1) if mode == "wrap" else elementwise.clip(which, 0, last)
    rows = shapes.expand_dims(which, axis=0)
    return indexing.take_along_axis(shapes.stack(options), rows, axis=0)[0]


def pad(
    array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0, reflect_type: str = "even"
) -> Any:
    """Constant borders, of one value or one for each side, and those that repeat elements of the array."""
    as_choice(mode, "np.pad of a tensor", "the mode", ("constant", "edge", "reflect", "symmetric", "wrap"))
    as_choice(reflect_type, "np.pad of a tensor", "the reflect_type", ("even",))
    x = _tensor(array, "pad")
    pairs = _pairs(pad_width, x.ndim, "the width")
    if mode != "constant" or np.ndim(constant_values) == 0:
        return shapes.pad(x, pairs, mode=mode, value=constant_values)
    for axis, (before, after) in enumerate(pairs):
        sides = [(0, 0)] * x.ndim
        for side, value in enumerate(_pairs(constant_values, x.ndim, "the values")[axis]):
            sides[axis] = (0, after) if side else (before, 0)
            x = shapes.pad(x, sides, value=value)
    return x


def _pairs(value: Any, ndim: int, what: str) -> list[Any]:
    """One pair for each axis, of a number, a pair, pairs, or a dict of them by axis."""
    if isinstance(value, dict):
        found = {as_axis(axis, ndim, "np.pad"): each for axis, each in value.items()}
        return [_pairs(found.get(axis, 0), 1, what)[0] for axis in range(ndim)]
    return _as_numpy(f"pad: {what}", lambda: np.broadcast_to(value, (ndim, 2)).tolist())  # type: ignore[no-any-return]


def _as_numpy(name: str, call: Any) -> Any:
    """What NumPy makes of arguments that hold no tensors; its complaints are ours."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        raise errors.ArgumentError(f"np.{name}: {error}") from None


# --- sums and differences ------------------------------------------------------------------------


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return reduction.cumulative_sum(*_along(a, axis), dtype=dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return reduction.cumulative_prod(*_along(a, axis), dtype=dtype)


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """The flat array where no axis is named, as NumPy's running sums have it."""
    return (flat(a), 0) if axis is None else (a, axis)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return statistics.nancumsum(flat(a) if axis is None else a, axis=axis, dtype=dtype)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return statistics.nancumprod(flat(a) if axis is None else a, axis=axis, dtype=dtype)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _given, append: Any = _given) -> Any:
    x = _tensor(a, "diff")
    before, after = (_as_line(v, x, axis) for v in (prepend, append))
    return reduction.diff(x, axis=axis, n=n, prepend=before, append=after)


def _as_line(value: Any, x: Tensor[Any], axis: int) -> Any:
    """A number as an element for each line along the axis."""
    if value is _given or value is None or np.ndim(value):
        return None if value is _given else as_operands([x, value])[1]
    place = as_axis(axis, x.ndim, "np.diff")
    line = (*x.shape[:place], 1, *x.shape[place + 1 :])
    return shapes.broadcast_to(arguments.as_tensors([x, value], "diff")[1], line)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = flat(_tensor(ary, "ediff1d"))
    ends = [v for v in (to_begin, x, to_end) if v is not None]
    parts = [flat(v) for v in arguments.as_tensors(as_operands(ends), "ediff1d")]
    inner = 0 if to_begin is None else 1
    return shapes.concat([*parts[:inner], reduction.diff(parts[inner]), *parts[inner + 1 :]])


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Between tensors: differentiable in both ends."""
    ends = as_operands([start, stop])
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if wanted is not None and wanted.kind in "fc":
        ends = [cast(v, dtypes.promote(v.dtype, wanted)) if isinstance(v, Tensor) else v for v in ends]
    x, y = (inexact(v, "linspace") for v in arguments.as_tensors(ends, "linspace"))
    x, y = shapes.broadcast_arrays(x, y)
    count = arguments.as_integer(num, "np.linspace", "num")
    closed = bool(endpoint) and count > 1
    steps = np.arange(count).reshape(count, *(1,) * x.ndim) / max(count - bool(endpoint), 1)
    part = operand(steps.astype(x.dtype), x, "linspace")
    line = x + (y - x) * part
    if closed:  # the last one is `stop` and not what rounding makes of it
        line = shapes.concat([line[:-1], shapes.expand_dims(y, axis=0)])
    line = shapes.moveaxis(line, 0, axis)
    return line if wanted is None else cast(line, wanted)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    if not any(isinstance(v, Tensor) for v in (start, stop)):
        start = arguments.as_tensor(start, "np.logspace") + creation.zeros_like(base)
    exact = None if dtype is None or dtypes.as_dtype(dtype).kind not in "fc" else dtype
    line = base ** linspace(start, stop, num, endpoint, exact, axis)
    return line if dtype is None else cast(line, dtypes.as_dtype(dtype))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    x, y = arguments.as_tensors(as_operands([a, b]), "cross")
    if axis is not None:
        axisa = axisb = axisc = axis
    product = linalg.cross(shapes.moveaxis(x, axisa, -1), shapes.moveaxis(y, axisb, -1))
    return shapes.moveaxis(product, -1, axisc)


def inner(a: Any, b: Any) -> Any:
    """The sums of products over the last axes, without a conjugate; with a 0-d one the product."""
    x, y = arguments.as_tensors(as_operands([a, b]), "inner")
    return x * y if not x.ndim or not y.ndim else contraction.tensordot(x, y, axes=([-1], [-1]))


def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = arguments.as_tensors(as_operands([a1, a2]), "array_equiv")
    try:
        return reduction.all(x == y)
    except errors.ShapeError:
        return False


# --- sets ----------------------------------------------------------------------------------------


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """As `ad.unique_all`, in which every nan is another value: here they are one, unless `equal_nan` is false."""
    if axis is not None:
        raise errors.ArgumentError("np.unique of a tensor: axis= is not supported; the elements count as one line")
    values, places, inverse, counts = sets.unique_all(ar)
    absent = int(reduction.count_nonzero(logic.isnan(values))) if values.dtype.kind in "fc" else 0
    if equal_nan and absent > 1:
        last = values.size - absent  # they stand at the end
        values, places, inverse = values[: last + 1], places[: last + 1], elementwise.clip(inverse, None, last)
        counts = shapes.concat([counts[:last], counts[last:].sum(keepdims=True)])
    asked = zip((return_index, return_inverse, return_counts), (places, inverse, counts), strict=True)
    found = [each for wanted, each in asked if wanted]
    return (values, *found) if found else values


def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(shapes.concat([flat(x) for x in as_operands([ar1, ar2])]))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "intersect1d")
    x = unique(x)
    return x[sets.isin(x, y)]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "setdiff1d")
    x = flat(x) if assume_unique else unique(x)
    return x[sets.isin(x, y, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "setxor1d")
    return unique(shapes.concat([setdiff1d(x, y), setdiff1d(y, x)]))


# --- polynomials, from the highest power down ----------------------------------------------------


def polysub(a1: Any, a2: Any) -> Any:
    x, y = _beside(*as_operands([a1, a2]))
    return polynomials.polyadd(x, elementwise.negative(y))


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """With a constant for each integration, or one for all."""
    if k is None or np.ndim(k) == 0:
        return polynomials.polyint(p, m, k=0 if k is None else k)
    for constant in list(k):
        p = polynomials.polyint(p, 1, k=constant)
    return p


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, w: Any = None) -> Any:
    x, y, *weights = as_operands([x, y, *([] if w is None else [w])])
    return polynomials.polyfit(x, y, deg, rcond=rcond, w=weights[0] if weights else None)


# --- linear algebra ------------------------------------------------------------------------------


def einsum(*operands: Any, optimize: Any = None) -> Any:
    """With a string, or with the axes of each array as integers behind it."""
    if isinstance(operands[0], str):
        subscripts, *arrays = operands
        return contraction.einsum(subscripts, *as_operands(arrays))
    arrays, axes = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    out = [operands[-1]] if len(operands) % 2 else []
    words = [_axes_word(each) for each in [*axes, *out]]
    return contraction.einsum("->".join([",".join(words[: len(arrays)]), *words[len(arrays) :]]), *as_operands(arrays))


def _axes_word(axes: Any) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if not isinstance(axes, (list, tuple)) or not all(i is Ellipsis or i in range(len(letters)) for i in axes):
        raise errors.ArgumentError(
            f"np.einsum: the axes of an array are a list of integers below 52, received {errors.shown(axes)}"
        )
    return "".join("..." if i is Ellipsis else letters[i] for i in axes)


def qr(a: Any, mode: str = "reduced") -> Any:
    as_choice(mode, "np.linalg.qr of a tensor", "the mode", ("reduced", "complete", "r"))
    return linalg.qr(a).R if mode == "r" else linalg.qr(a, mode=mode)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = _hermitian(a) if hermitian else a
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def eigh(a: Any, UPLO: str = "L") -> Any:
    return linalg.eigh(_lower(a, UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return linalg.eigvalsh(_lower(a, UPLO))


def _lower(a: Any, triangle: str) -> Tensor[Any]:
    """The Hermitian matrix of which one triangle is given, by its lower one."""
    as_choice(triangle, "np.linalg.eigh of a tensor", "UPLO", ("L", "U", "l", "u"))
    x = _tensor(a, "linalg.eigh")
    return elementwise.conj(shapes.matrix_transpose(x)) if triangle in "uU" else x


def _hermitian(a: Any) -> Tensor[Any]:
    """The matrix of this lower triangle, which is all that NumPy reads."""
    x = _tensor(a, "linalg")
    below = shapes.tril(x, k=-1)
    return shapes.tril(x) + elementwise.conj(shapes.matrix_transpose(below))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _given) -> Any:
    return linalg.pinv(_hermitian(a) if hermitian else a, rtol=rcond if rtol is _given else rtol)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    A = _hermitian(A) if hermitian else A
    if tol is None:
        return linalg.matrix_rank(A, rtol=rtol)
    values = linalg.svdvals(A)
    bound = as_operands([values, tol])[1]
    return reduction.count_nonzero(values > (bound[..., None] if np.ndim(bound) else bound), axis=-1)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """Residuals only where NumPy has them: a line of them, empty without full rank or more rows than columns."""
    x, y = arguments.as_tensors(as_operands([a, b]), "lstsq")
    found = linalg.lstsq(x, y, rtol=rcond)
    rows, columns = x.shape
    whole = rows > columns and int(found.rank) == columns
    residuals = flat(found.residuals)
    return type(found)(found.solution, residuals if whole else residuals[:0], found.rank, found.singular_values)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = arguments.as_tensors(as_operands([a, b]), "tensorsolve")
    if axes is not None:
        x = shapes.moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    inner = x.shape[y.ndim :]
    return shapes.reshape(linalg.solve(shapes.reshape(x, (y.size, math.prod(inner))), flat(y)), inner)


def tensorinv(a: Any, ind: int = 2) -> Any:
    x = _tensor(a, "linalg.tensorinv")
    arguments.as_integer(ind, "np.linalg.tensorinv", "ind", 1)
    rows, columns = x.shape[:ind], x.shape[ind:]
    return shapes.reshape(linalg.inv(shapes.reshape(x, (math.prod(rows), math.prod(columns)))), (*columns, *rows))
