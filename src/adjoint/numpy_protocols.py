"""NumPy's functions on tensors: `np.sin(x)`, `np.sum(x, axis=0)` and their like are ours, and stay differentiable.

NumPy asks tensors first (`__array_ufunc__`, `__array_function__`: its enhancement proposals 13 and 18). A function that
is called here by the same name, or stands in a table below, runs as ours; parameters are matched by their names. What
tensors cannot mean (`out=`, `where=`) and what there is no function for is an error that says what to write instead:
nothing leaves a graph silently. This module is imported when NumPy first asks.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors, linalg, special
from adjoint.functions import (
    creation,
    elementwise,
    indexing,
    inspection,
    manipulation,
    products,
    reductions,
)
from adjoint.tensor import Tensor, operand, same

Function = Callable[..., Any]

# --- universal functions: elementwise, and what NumPy derives from them ----------------------------

_OTHER_NAMES = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "power": "pow", "float_power": "pow",
    "rint": "round", "true_divide": "divide", "mod": "remainder",
}  # fmt: skip
_UFUNCS: dict[str, Function] = {
    "matmul": products.matmul,
    "vecdot": products.vecdot,
    "exp2": lambda x: 2.0 ** creation.inexact(x, "exp2"),
    "deg2rad": lambda x: creation.inexact(x, "deg2rad") * (math.pi / 180),
    "radians": lambda x: creation.inexact(x, "radians") * (math.pi / 180),
    "rad2deg": lambda x: creation.inexact(x, "rad2deg") * (180 / math.pi),
    "degrees": lambda x: creation.inexact(x, "degrees") * (180 / math.pi),
}
_REDUCED: dict[str, Function] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
    "logical_and": reductions.all,
    "logical_or": reductions.any,
    "logaddexp": special.logsumexp,
}
_ACCUMULATED: dict[str, Function] = {"add": reductions.cumulative_sum, "multiply": reductions.cumulative_prod}


def array_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a universal function of NumPy's, or a method of one, is on tensors."""
    name: str = ufunc.__name__
    call = name if method == "__call__" else f"{name}.{method}"
    inputs = _beside(inputs)
    function = _UFUNCS.get(name) or getattr(elementwise, _OTHER_NAMES.get(name, name), None)
    if method == "__call__" and function is not None:
        allowed = {"axis"} if name == "vecdot" else set()
        return function(*inputs, **_only(call, options, allowed))
    if method == "reduce" and name in _REDUCED:
        known = _only(call, options, {"axis", "keepdims", *({"dtype"} if name in ("add", "multiply") else ())})
        return _REDUCED[name](inputs[0], **{"axis": 0, **known})
    if method == "accumulate" and name in _ACCUMULATED:
        return _ACCUMULATED[name](inputs[0], **{"axis": 0, **_only(call, options, {"axis", "dtype"})})
    if method == "outer" and function is not None and name not in ("matmul", "vecdot"):
        x, y = (creation.as_tensor(v, call) for v in inputs)
        rows = manipulation.reshape(x, (*x.shape, *(1,) * y.ndim))
        return function(rows, y, **_only(call, options, set()))
    raise _missing(call)


def _only(name: str, options: dict[str, Any], allowed: set[str]) -> dict[str, Any]:
    """The options that are given and mean something on tensors; raises ArgumentTypeError for others."""
    given = {
        key: value
        for key, value in options.items()
        if value is not np._NoValue and (value is not None or key in allowed)
    }
    for key in given:
        if key not in allowed:
            raise _refused(name, key)
    return given


def _refused(name: str, key: str) -> errors.AdjointError:
    instead = {
        "out": "tensors are values: write y = ..., or y[...] = ... to give an object a new value",
        "where": "pick or mask with ad.where",
        "initial": "combine the result with the initial value",
        "dtype": "convert with x.astype(dtype)",
        "order": "tensors have no order in memory; sort or permute explicitly",
    }
    return errors.ArgumentTypeError(
        f"np.{name} of a tensor: {key}= is not supported; {instead.get(key, 'leave it out')}"
    )


_INSTEAD = {
    "fmod": "ad.remainder, which has the sign of the divisor", "fmax": "ad.maximum", "fmin": "ad.minimum",
    "cbrt": "ad.pow with 1/3 and ad.sign", "divmod": "ad.floor_divide and ad.remainder", "modf": "ad.trunc",
    "heaviside": "ad.where", "copyto": "x[...] = v", "put": "x[i] = v", "putmask": "ad.where", "place": "ad.where",
    "put_along_axis": "x[i] = v", "fill_diagonal": "x[i, i] = v", "partition": "ad.sort or ad.topk",
    "argpartition": "ad.topk", "isclose": "ad.abs(x - y) <= tolerance", "linspace": "ad.linspace of numbers",
    "add.at": "x[i] += v", "save": "np.save(file, x.numpy()) or pickle", "unique": "ad.unique_all and its like",
    "argwhere": "ad.nonzero", "flatnonzero": "ad.nonzero", "trace": "ad.linalg.trace", "diagonal": "ad.linalg.diagonal",
}  # fmt: skip


def _missing(name: str) -> errors.AdjointError:
    """The error for a function of NumPy's that tensors have not."""
    instead = _INSTEAD.get(name)
    hint = f"use {instead}" if instead else "adjoint has no function of this name"
    return errors.ArgumentTypeError(
        f"np.{name} does not take tensors: {hint}; np.{name}(x.numpy()) computes with the values, without gradients"
    )


# --- functions -----------------------------------------------------------------------------------


def _beside(values: Sequence[Any]) -> list[Any]:
    """Arguments with NumPy's arrays made tensors on the backend of the first tensor among them."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        return list(values)
    return [operand(v, like, "operand") if isinstance(v, (np.ndarray, np.generic)) else v for v in values]


def _flat(x: Any) -> Tensor[Any]:
    return manipulation.reshape(x, -1)


def _where(condition: Any, *choices: Any) -> Any:
    return elementwise.where(*_beside([condition, *choices])) if choices else indexing.nonzero(condition)


def _transpose(a: Any, axes: Any = None) -> Any:
    x = creation.as_tensor(a, "transpose")
    return manipulation.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else axes)


def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return manipulation.permute_dims(a, order)


def _dot(a: Any, b: Any) -> Any:
    """NumPy's rule: the last axis of a with the last but one of b."""
    x, y = creation.as_tensors(_beside([a, b]), "dot")
    if not x.ndim or not y.ndim:
        return x * y
    return (
        products.matmul(x, y) if y.ndim == 1 or x.ndim <= 2 >= y.ndim else products.tensordot(x, y, axes=([-1], [-2]))
    )


def _inner(a: Any, b: Any) -> Any:
    x, y = creation.as_tensors(_beside([a, b]), "inner")
    return x * y if not x.ndim or not y.ndim else products.tensordot(x, y, axes=([-1], [-1]))


def _vdot(a: Any, b: Any) -> Any:
    x, y = creation.as_tensors(_beside([a, b]), "vdot")
    return products.vecdot(_flat(x), _flat(y))


def _einsum(*operands: Any, optimize: Any = None) -> Any:
    subscripts, *arrays = operands
    return products.einsum(subscripts, *_beside(arrays))


def _round(a: Any, decimals: int = 0) -> Any:
    return elementwise.round(a * 10.0**decimals) / 10.0**decimals if decimals else elementwise.round(a)


def _running(function: Function) -> Function:
    """NumPy's cumsum and cumprod: of the flat array where no axis is named."""

    def run(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return function(_flat(a), dtype=dtype) if axis is None else function(a, axis=axis, dtype=dtype)

    return run


def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: complex = 0) -> Any:
    if mode != "constant":
        raise errors.ArgumentError(f"np.pad of a tensor: the mode is 'constant', received {errors.shown(mode)}")
    return manipulation.pad(array, pad_width, value=constant_values)


def _atleast(ndim: int) -> Function:
    """np.atleast_1d, 2d or 3d: new axes where NumPy puts them."""

    def one(x: Any) -> Any:
        shape = x.shape
        if ndim == 3 and 0 < len(shape) < 3:
            shape = (1, *shape) if len(shape) == 1 else shape
            return manipulation.reshape(x, (*shape, 1))
        return manipulation.reshape(x, (*(1,) * (ndim - len(shape)), *shape))

    def run(*arys: Any) -> Any:
        found = [one(creation.as_tensor(x, "atleast")) for x in _beside(arys)]
        return found[0] if len(found) == 1 else tuple(found)

    return run


def _stacked(ndim: int, axis: int) -> Function:
    """np.vstack and its kin: joined along an axis, once there are so many axes."""

    def run(tup: Any) -> Any:
        parts = [_atleast(ndim)(x) for x in _beside(list(tup))]
        return manipulation.concat(parts, axis=0 if parts[0].ndim == 1 else axis)

    return run


def _column_stack(tup: Any) -> Any:
    parts = [manipulation.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in _beside(list(tup))]
    return manipulation.concat(parts, axis=1)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    bounds = np.array_split(np.arange(ary.shape[axis]), indices_or_sections, axis=0)
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise errors.ShapeError(f"np.split: {ary.shape[axis]} places do not fall in {indices_or_sections} equal parts")
    return _parts(ary, bounds, axis)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    return _parts(ary, np.array_split(np.arange(ary.shape[axis]), indices_or_sections), axis)


def _parts(x: Any, bounds: Sequence[Any], axis: int) -> list[Any]:
    before = (slice(None),) * (axis % x.ndim)
    starts = np.cumsum([0, *map(len, bounds)])
    return [x[(*before, slice(int(a), int(b)))] for a, b in zip(starts[:-1], starts[1:], strict=True)]


def _average(a: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Any:
    if weights is None:
        return reductions.mean(a, axis, keepdims=keepdims)
    x, w = creation.as_tensors(_beside([a, weights]), "average")
    if w.shape != x.shape:
        raise errors.ShapeError(f"np.average: weights of shape {w.shape} for a tensor of shape {x.shape}")
    return reductions.sum(x * w, axis, keepdims=keepdims) / reductions.sum(w, axis, keepdims=keepdims)


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return manipulation.concat(_beside([arr, values]), axis=axis)


def _like(function: Function) -> Function:
    """zeros_like and its kin: memory order and subclasses mean nothing here."""

    def run(a: Any, *value: Any, dtype: Any = None, order: Any = None, subok: bool = True, device: Any = None) -> Any:
        return function(a, *value, dtype=dtype, device=device)

    return run


_FUNCTIONS: dict[Any, Function] = {
    np.where: _where,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.dot: _dot,
    np.inner: _inner,
    np.vdot: _vdot,
    np.einsum: _einsum,
    np.round: _round,
    np.around: _round,
    np.cumsum: _running(reductions.cumulative_sum),
    np.cumprod: _running(reductions.cumulative_prod),
    np.pad: _pad,
    np.atleast_1d: _atleast(1),
    np.atleast_2d: _atleast(2),
    np.atleast_3d: _atleast(3),
    np.vstack: _stacked(2, 0),
    np.hstack: _stacked(1, 1),
    np.dstack: _stacked(3, 2),
    np.column_stack: _column_stack,
    np.split: _split,
    np.array_split: _array_split,
    np.append: _append,
    np.average: _average,
    np.zeros_like: _like(creation.zeros_like),
    np.ones_like: _like(creation.ones_like),
    np.empty_like: _like(creation.empty_like),
    np.full_like: _like(creation.full_like),
    np.concatenate: lambda arrays, axis=0: manipulation.concat(_beside(list(arrays)), axis=axis),
    np.stack: lambda arrays, axis=0: manipulation.stack(_beside(list(arrays)), axis=axis),
    np.meshgrid: lambda *xi, indexing="xy": creation.meshgrid(*_beside(xi), indexing=indexing),
    np.broadcast_arrays: lambda *args: tuple(manipulation.broadcast_arrays(*_beside(args))),
    np.ravel: lambda a: _flat(a),
    np.copy: lambda a: same(a),
    np.fliplr: lambda m: manipulation.flip(m, axis=1),
    np.flipud: lambda m: manipulation.flip(m, axis=0),
    np.angle: lambda z: elementwise.atan2(z.imag, z.real),
    np.ptp: lambda a, axis=None, keepdims=False: (
        reductions.max(a, axis, keepdims=keepdims) - reductions.min(a, axis, keepdims=keepdims)
    ),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.result_type: inspection.result_type,
    np.array_repr: lambda arr: repr(arr),
    np.array_str: lambda a: str(a),
}

# functions whose result is a truth, which has no gradient: NumPy's own, with the values
_READING = (np.allclose, np.array_equal, np.shares_memory, np.may_share_memory)
# parameters of NumPy's that are called otherwise here, and those that say nothing about values
_PARAMETERS = {"ddof": "correction", "a_min": "min", "a_max": "max", "reps": "repetitions"}
_SILENT = {"kind", "subok", "casting", "optimize"}
_HERE = {"amax": "max", "amin": "min"}


def array_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a function of NumPy's is on tensors."""
    name: str = function.__name__
    called = f"{function.__module__}.{name}".removeprefix("numpy.")
    if function in _READING:
        return function(*[v.numpy() if isinstance(v, Tensor) else v for v in args], **options)
    ours = _FUNCTIONS.get(function)
    if ours is not None:
        meant = {key: value for key, value in options.items() if key not in _SILENT}
        return ours(*args, **_only(called, meant, set(inspect.signature(ours).parameters)))
    ours = _named(function.__module__, _HERE.get(name, name))
    if ours is None:
        raise _missing(called)
    return _matched(function, called, ours, args, options)


def _named(module: str, name: str) -> Function | None:
    """Our function of this name, in the namespace that stands for NumPy's."""
    home: Any = sys.modules["adjoint"]
    for part in module.split(".")[1:]:
        home = getattr(home, part, None)
    if module == "numpy" and name in ("cross", "kron"):  # which NumPy has beside its linear algebra
        home = linalg
    found = getattr(home, name, None)
    return found if inspect.isfunction(found) and found.__module__.startswith("adjoint.") else None


def _matched(function: Any, called: str, ours: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call in the terms of our function: what that takes by place alone in NumPy's order, all else by name."""
    theirs = inspect.signature(function)
    given = theirs.bind(*args, **options).arguments
    mine = inspect.signature(ours).parameters
    places = [p.name for p in mine.values() if p.kind is p.POSITIONAL_ONLY]
    leading = [name for name, _ in zip(theirs.parameters, places, strict=False) if name in given]
    keywords = {}
    for name, value in given.items():
        known = _PARAMETERS.get(name, name)
        if name in leading or value is np._NoValue:
            continue
        if known in mine:
            keywords[known] = value
        elif value is not theirs.parameters[name].default and value is not None and name not in _SILENT:
            raise _refused(called, name)
    return ours(*_beside([given[name] for name in leading]), **keywords)
