"""NumPy's functions that have no counterpart among ours, or say more than it: what they are on tensors.

Compositions of our functions, with NumPy's names and parameters, for `numpy_protocols`. Gradients follow from those
that they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors, linalg, special
from adjoint.functions import (
    arguments,
    binning,
    contraction,
    creation,
    elementwise,
    indexing,
    logic,
    padding,
    parts,
    polynomials,
    reduction,
    sets,
    sorting,
    statistics,
)
from adjoint.functions import shape as shapes
from adjoint.functions.arguments import as_axis, as_choice, inexact
from adjoint.linalg.factors import by_lower
from adjoint.operands import cast, concrete_values, held, is_concrete, is_weak, operand
from adjoint.tensor import Tensor

_given = np._NoValue


def as_operands(values: Sequence[Any]) -> list[Any]:
    """Arguments with NumPy's arrays made tensors on the backend of the first tensor among them.

    Lists of Python's floats are float64 arrays to NumPy, and so they are here; lists of tensors are joined.
    """
    for like in values:
        if isinstance(like, Tensor):
            return [v if v.__class__ is Tensor else _as_operand(v, like) for v in values]
    return list(values)


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


def lambertw(z: Any, k: Any, tol: Any) -> Any:
    """What scipy.special.lambertw calls: complex also of real numbers, and as exact for any tolerance."""
    branch: Any = concrete_values(k, "lambertw")
    wide = cast(z, dtypes.promote_scalar(z.dtype, 1j))
    return special.lambertw(wide, branch if branch.ndim else branch.item())


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
    return elementwise.imag(val)


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
    return parts.split(x, indices_or_sections, axis=min(x.ndim - 1, 1))


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return parts.split(ary, indices_or_sections, axis=0)


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return parts.split(ary, indices_or_sections, axis=2)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return reduction.sum(shapes.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    as_choice(mode, "np.take of a tensor", "the mode", ("raise", "wrap", "clip"))
    x, places = as_operands([a, indices])
    x, axis = _along(x, axis)
    if mode != "raise":
        x, places = _beside(x, places)
        last = x.shape[as_axis(axis, x.ndim, "np.take")] - 1
        places = places % (last + 1) if mode == "wrap" else elementwise.clip(places, 0, last)
    return indexing.take(x, places, axis=axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    x, places = as_operands([arr, indices])
    return indexing.take_along_axis(flat(x) if axis is None else x, places, axis=-1 if axis is None else axis)


def ix_(*args: Any) -> Any:
    """Places along each axis, as vectors that broadcast to all pairs of them; masks are the places where they are."""
    places = [arguments.as_tensor(arg, "np.ix_") for arg in as_operands([*args])]
    for i, place in enumerate(places):
        if place.ndim != 1:
            raise errors.ShapeError(f"np.ix_: expected vectors, received shape {place.shape}")
        place = indexing.flatnonzero(place) if place.dtype.kind == "b" else place
        places[i] = shapes.reshape(place, (*(1,) * i, -1, *(1,) * (len(places) - i - 1)))
    return tuple(places)


def diag_indices_from(arr: Any) -> Any:
    x = _tensor(arr, "diag_indices_from")
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise errors.ShapeError(f"np.diag_indices_from: expected two axes or more of one size, received {x.shape}")
    return indexing.diag_indices(x.shape[0], x.ndim, device=x.device)


def _matrix(value: Any, name: str) -> Tensor[Any]:
    x = _tensor(value, name)
    if x.ndim != 2:
        raise errors.ShapeError(f"np.{name}: expected a matrix, received shape {x.shape}")
    return x


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    x = _matrix(arr, "tril_indices_from")
    return indexing.tril_indices(x.shape[0], k, x.shape[1], device=x.device)


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    x = _matrix(arr, "triu_indices_from")
    return indexing.triu_indices(x.shape[0], k, x.shape[1], device=x.device)


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
    x, axis = _along(x, axis)
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
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Any:
    """Also constant borders of one value for each side."""
    x = _tensor(array, "pad")
    if mode != "constant" or (np.ndim(constant_values) == 0 and not isinstance(constant_values, dict)):
        how: Any = {"end_values": end_values, "stat_length": stat_length, "reflect_type": reflect_type}
        return padding.pad(x, pad_width, mode=mode, value=constant_values if mode == "constant" else 0, **how)
    values = padding.pairs(constant_values, x.ndim, "value", arguments.is_number)
    for axis, (before, after) in enumerate(padding.pairs(pad_width, x.ndim, "pad_width", arguments.is_integer)):
        x = padding.pad(x, {axis: (before, 0)}, value=values[axis][0])
        x = padding.pad(x, {axis: (0, after)}, value=values[axis][1])
    return x


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    a, bins, weights = as_operands([a, bins, weights])
    return binning.histogram(a, bins, range, weights=weights)[1]


# --- sums and differences ------------------------------------------------------------------------

# what an element that is left out is replaced by, and what joins the result with an initial value
_NEUTRAL: dict[str, Any] = {
    "sum": 0, "nansum": 0, "prod": 1, "nanprod": 1, "any": False, "all": True, "logsumexp": -math.inf
}  # fmt: skip
_JOINING: dict[str, Callable[[Any, Any], Any]] = {
    "sum": elementwise.add,
    "nansum": elementwise.add,
    "prod": elementwise.multiply,
    "nanprod": elementwise.multiply,
    "max": elementwise.maximum,
    "min": elementwise.minimum,
    "nanmax": elementwise.fmax,
    "nanmin": elementwise.fmin,
    "any": logic.logical_or,
    "all": logic.logical_and,
    "logsumexp": elementwise.logaddexp,
}
_AVERAGES = ("mean", "var", "std", "nanmean", "nanvar", "nanstd")
# parameters of NumPy's reductions beyond those of ours, by the name of ours
REDUCING = {name: frozenset(("where", "initial" if name in _JOINING else "dtype")) for name in (*_JOINING, *_AVERAGES)}


def reduced(
    function: Callable[..., Any],
    a: Any,
    options: dict[str, Any],
    *,
    where: Any = True,
    initial: Any = None,
    dtype: Any = None,
) -> Any:
    """A reduction of ours with NumPy's other parameters: of some elements, from an initial value on, in another dtype.

    What is left out gets no gradient, also where it is nan.
    """
    name = function.__name__
    x = _tensor(a, name)
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        if wanted.kind not in dtypes.INEXACT:
            raise errors.DtypeError(f"np.{name} of a tensor: dtype= is a floating one, received {wanted}")
        x = cast(x, wanted)
    if where is not True:
        mask = operand(np.asarray(where) if not isinstance(where, Tensor) else where, x, name)
        if mask.dtype.kind != "b":
            raise errors.DtypeError(f"np.{name} of a tensor: where= is a mask of booleans, received {mask.dtype}")
        mask = shapes.broadcast_to(mask, x.shape)
        if name in _AVERAGES:
            return statistics.selected(name, x, mask, **options)
        if name not in _NEUTRAL and initial is None:
            raise errors.ArgumentError(
                f"np.{name} of a tensor: where= needs initial=, the result where all are left out"
            )
        x = elementwise.where(mask, x, _NEUTRAL[name] if name in _NEUTRAL else _initial(name, initial, x))
    out = function(x, **options)
    return out if initial is None else _JOINING[name](out, _initial(name, initial, out))


def _initial(name: str, value: Any, like: Tensor[Any]) -> Any:
    """A number, of the dtype of what it begins: of integers, its whole part."""
    if not isinstance(value, Tensor):
        value = arguments.as_constant(value, like.dtype, f"np.{name} of a tensor: initial=")
        return int(value) if like.dtype.kind in "iu" else value
    if value.ndim:
        raise errors.ShapeError(f"np.{name} of a tensor: initial= is one number, received shape {value.shape}")
    return held(value, like, f"np.{name} of a tensor: initial=")


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return reduction.cumulative_sum(*_along(a, axis), dtype=dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return reduction.cumulative_prod(*_along(a, axis), dtype=dtype)


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """The flat array where no axis is named, and a number as a vector of one element, as NumPy has them."""
    return (flat(a), 0) if axis is None else (a if np.ndim(a) else flat(a), axis)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return statistics.nancumsum(flat(a) if axis is None else a, axis=axis, dtype=dtype)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return statistics.nancumprod(flat(a) if axis is None else a, axis=axis, dtype=dtype)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _given, append: Any = _given) -> Any:
    x = _tensor(a, "diff")
    before, after = (_beside_x(v, x) for v in (prepend, append))
    return reduction.diff(x, axis=axis, n=n, prepend=before, append=after)


def _beside_x(value: Any, x: Tensor[Any]) -> Any:
    if value is _given:
        return None
    return as_operands([x, value])[1] if value is None or np.ndim(value) else value


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = flat(_tensor(ary, "ediff1d"))
    ends = [v for v in (to_begin, x, to_end) if v is not None]
    parts = [flat(v) for v in arguments.as_tensors(as_operands(ends), "ediff1d")]
    inner = 0 if to_begin is None else 1
    return shapes.concat([*parts[:inner], reduction.diff(parts[inner]), *parts[inner + 1 :]])


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Between tensors: differentiable in both ends."""
    return _steps("linspace", lambda x, y, t: x + (y - x) * t, start, stop, num, endpoint, dtype, axis)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    return _steps("geomspace", lambda x, y, t: x * (y / x) ** t, start, stop, num, endpoint, dtype, axis)


def _steps(
    name: str, way: Callable[..., Any], start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    ends = as_operands([start, stop])
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if wanted is not None and wanted.kind in dtypes.INEXACT:
        ends = [cast(v, dtypes.promote(v.dtype, wanted)) if isinstance(v, Tensor) else v for v in ends]
    x, y = (inexact(v, name) for v in arguments.as_tensors(ends, name))
    x, y = shapes.broadcast_arrays(x, y)
    count = arguments.as_integer(num, f"np.{name}", "num")
    closed = bool(endpoint) and count > 1
    steps = np.arange(count).reshape(count, *(1,) * x.ndim) / max(count - bool(endpoint), 1)
    line = way(x, y, operand(steps.astype(x.dtype), x, name))
    if closed:  # the last one is `stop` and not what rounding makes of it
        line = shapes.concat([line[:-1], shapes.expand_dims(y, axis=0)])
    line = shapes.moveaxis(line, 0, axis)
    return line if wanted is None else cast(line, wanted)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    if not any(isinstance(v, Tensor) for v in (start, stop)):
        start = arguments.as_tensor(start, "np.logspace") + creation.zeros_like(base)
    exact = None if dtype is None or dtypes.as_dtype(dtype).kind not in dtypes.INEXACT else dtype
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


def union1d(ar1: Any, ar2: Any) -> Any:
    return sets.unique(shapes.concat([flat(x) for x in as_operands([ar1, ar2])]))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "intersect1d")
    x = sets.unique(x)
    return x[sets.isin(x, y)]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "setdiff1d")
    x = flat(x) if assume_unique else sets.unique(x)
    return x[sets.isin(x, y, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = arguments.as_tensors(as_operands([ar1, ar2]), "setxor1d")
    return sets.unique(shapes.concat([setdiff1d(x, y), setdiff1d(y, x)]))


# --- polynomials, from the highest power down ----------------------------------------------------


def polysub(a1: Any, a2: Any) -> Any:
    x, y = _beside(*as_operands([a1, a2]))
    return polynomials.polyadd(x, elementwise.negative(y))


def polydiv(u: Any, v: Any) -> Any:
    """The remainder without its leading zeros, where values are known."""
    x, y = arguments.as_tensors(as_operands([u, v]), "polydiv")
    quotient, rest = polynomials.polydiv(x, y)
    if is_concrete(rest):
        values = concrete_values(rest, "np.polydiv")
        small = np.isclose(values, 0, rtol=1e-14).reshape(-1, rest.size).all(0)
        rest = rest[min(int(np.argmin(small)) if not small.all() else rest.size, rest.size - 1) :]
    return quotient, rest


def roots(p: Any) -> Any:
    """Without leading coefficients that are zero, where values are known."""
    x = _tensor(p, "roots")
    if x.ndim == 1 and x.size and is_concrete(x):
        used = (concrete_values(x, "np.roots") != 0).reshape(-1, x.size).any(0)
        x = x[int(np.argmax(used)) if used.any() else x.size :]
    return polynomials.roots(x)


def poly(seq_of_zeros: Any) -> Any:
    """Real for complex roots in pairs, where values are known."""
    x = _tensor(seq_of_zeros, "poly")
    out = polynomials.poly(x)
    if x.ndim == 1 and x.dtype.kind == "c" and is_concrete(x):
        values = concrete_values(x, "np.poly")
        return out.real if np.array_equal(np.sort(values), np.sort(values.conj())) else out
    return out


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


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = by_lower(a, "np.linalg.svd") if hermitian else a
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """Residuals only where NumPy has them: a line of them, empty without full rank or more rows than columns.

    Of examples together there are some if one has full rank, or if that is not known.
    """
    x, y = arguments.as_tensors(as_operands([a, b]), "lstsq")
    if x.ndim != 2:
        raise errors.ShapeError(f"np.linalg.lstsq of a tensor: expected one matrix, received shape {x.shape}")
    found = linalg.lstsq(x, y, rtol=rcond)
    (rows, columns), rank = x.shape, found.rank
    whole = not is_concrete(rank) or np.any(concrete_values(rank, "np.linalg.lstsq") == columns)
    residuals = flat(found.residuals)
    return type(found)(
        found.solution, residuals if rows > columns and whole else residuals[:0], rank, found.singular_values
    )


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
