"""NumPy's functions on tensors: `np.sin(x)`, `np.sum(x, axis=0)` and their like are ours, and stay differentiable.

NumPy asks tensors first (`__array_ufunc__`, `__array_function__`: its enhancement proposals 13 and 18). A function that
is called here by the same name, or stands in a table below, runs as ours; parameters are matched by their names. What
tensors cannot mean (`out=`, `where=`) and what there is no function for is an error that says what to write instead:
nothing leaves a graph silently. This module is imported when NumPy first asks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors, linalg, special
from adjoint.functions import (
    calculus,
    choosing,
    creation,
    elementwise,
    indexing,
    manipulation,
    placing,
    products,
    rearranging,
    reductions,
    statistics,
)
from adjoint.tensor import Tensor, operand, same

Function = Callable[..., Any]
_signature = functools.cache(inspect.signature)

# --- universal functions: elementwise, and what NumPy derives from them ----------------------------

_OTHER_NAMES = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "power": "pow", "float_power": "pow",
    "degrees": "rad2deg", "radians": "deg2rad", "rint": "round", "true_divide": "divide", "mod": "remainder",
}  # fmt: skip
_UFUNCS: dict[str, Function] = {
    "matmul": products.matmul,
    "vecdot": products.vecdot,
    "deg2rad": choosing.deg2rad,
    "radians": choosing.deg2rad,
    "rad2deg": choosing.rad2deg,
    "degrees": choosing.rad2deg,
    "fmod": choosing.fmod,
    "frexp": choosing.frexp,
    "heaviside": choosing.heaviside,
    "ldexp": choosing.ldexp,
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
_ACCUMULATED: dict[str, Function] = {
    "add": reductions.cumulative_sum,
    "multiply": reductions.cumulative_prod,
    "maximum": lambda x, axis: placing.cummax(x, axis=axis)[0],
    "minimum": lambda x, axis: placing.cummin(x, axis=axis)[0],
}


# operators with an array on the left, which are too frequent for the long way
_REFLECTED: dict[Any, Function] = {
    np.add: Tensor.__radd__,
    np.subtract: Tensor.__rsub__,
    np.multiply: Tensor.__rmul__,
    np.true_divide: Tensor.__rtruediv__,
    np.matmul: Tensor.__rmatmul__,
}


def array_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a universal function of NumPy's, or a method of one, is on tensors."""
    if ufunc in _REFLECTED and method == "__call__" and not options and isinstance(inputs[1], Tensor):
        return _REFLECTED[ufunc](inputs[1], inputs[0])
    name: str = ufunc.__name__
    call = name if method == "__call__" else f"{name}.{method}"
    inputs = _beside(inputs)
    function = _UFUNCS.get(name) or _named("numpy", _OTHER_NAMES.get(name, name))
    if method == "__call__" and function is not None:
        allowed = {"axis"} if name == "vecdot" else set()
        return function(*inputs, **_only(call, options, allowed))
    if method == "reduce" and name in _REDUCED:
        known = _only(call, options, {"axis", "keepdims", *({"dtype"} if name in ("add", "multiply") else ())})
        return _REDUCED[name](inputs[0], **{"axis": 0, **known})
    if method == "accumulate" and name in _ACCUMULATED:
        known = _only(call, options, {"axis", *({"dtype"} if name in ("add", "multiply") else ())})
        return _ACCUMULATED[name](inputs[0], **{"axis": 0, **known})
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
    "cbrt": "ad.pow with 1/3 and ad.sign", "divmod": "ad.floor_divide and ad.remainder", "modf": "ad.trunc",
    "copyto": "x[...] = v", "put": "x[i] = v", "putmask": "ad.where", "place": "ad.where",
    "put_along_axis": "ad.put_along_axis, which gives another tensor", "fill_diagonal": "x[i, i] = v",
    "linspace": "ad.linspace of numbers",
    "add.at": "x[i] += v", "save": "np.save(file, x.numpy()) or pickle", "unique": "ad.unique_all and its like",
    "trace": "ad.linalg.trace",
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
    """Arguments with NumPy's arrays made tensors on the backend of the first tensor among them.

    Lists of Python's floats are float64 arrays to NumPy, and so they are here.
    """
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        return list(values)
    return [
        operand(np.asarray(v), like, "operand") if isinstance(v, (np.ndarray, np.generic)) or _holds_floats(v) else v
        for v in values
    ]


def _holds_floats(value: Any) -> bool:
    """Whether it is a list, at any depth, whose first number is a float."""
    nested = isinstance(value, (list, tuple))
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return nested and isinstance(value, float)


def _flat(x: Any) -> Tensor[Any]:
    return manipulation.reshape(x, -1)


def _where(condition: Any, *choices: Any) -> Any:
    return elementwise.where(*_beside([condition, *choices])) if choices else indexing.nonzero(condition)


def _transpose(a: Any, axes: Any = None) -> Any:
    x = creation.as_tensor(a, "transpose")
    return manipulation.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else axes)


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
    return manipulation.pad(array, pad_width, mode=mode, value=constant_values)


def _like(function: Function) -> Function:
    """zeros_like and its kin: memory order and subclasses mean nothing here."""

    def run(a: Any, *value: Any, dtype: Any = None, order: Any = None, subok: bool = True, device: Any = None) -> Any:
        return function(a, *value, dtype=dtype, device=device)

    return run


_FUNCTIONS: dict[Any, Function] = {
    np.where: _where,
    np.transpose: _transpose,
    np.dot: lambda a, b: products.dot(*_beside([a, b])),
    np.inner: lambda a, b: products.inner(*_beside([a, b])),
    np.vdot: lambda a, b: products.vdot(*_beside([a, b])),
    np.einsum: _einsum,
    np.round: _round,
    np.around: _round,
    np.cumsum: _running(reductions.cumulative_sum),
    np.cumprod: _running(reductions.cumulative_prod),
    np.nancumsum: _running(statistics.nancumsum),
    np.nancumprod: _running(statistics.nancumprod),
    np.pad: _pad,
    np.atleast_1d: lambda *arys: rearranging.atleast_1d(*_beside(arys)),
    np.atleast_2d: lambda *arys: rearranging.atleast_2d(*_beside(arys)),
    np.atleast_3d: lambda *arys: rearranging.atleast_3d(*_beside(arys)),
    np.vstack: lambda tup: rearranging.vstack(list(tup)),
    np.hstack: lambda tup: rearranging.hstack(list(tup)),
    np.dstack: lambda tup: rearranging.dstack(list(tup)),
    np.column_stack: lambda tup: rearranging.column_stack(list(tup)),
    np.gradient: lambda f, *varargs, axis=None, edge_order=1: calculus.gradient(
        *_beside([f, *varargs]), axis=axis, edge_order=edge_order
    ),
    np.lib.stride_tricks.sliding_window_view: lambda x, window_shape, axis=None: rearranging.sliding_window_view(
        x, window_shape, axis=axis
    ),
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
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.array2string: lambda a, precision=None, separator=" ": np.array2string(
        a.numpy(), precision=precision, separator=separator
    ),
    np.array_repr: lambda arr: repr(arr),
    np.array_str: lambda a: str(a),
}

# what changes its argument, which a tensor is no argument for
_CHANGING = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}
# parameters of NumPy's that are called otherwise here, and those that say nothing about values
_PARAMETERS = {"ddof": "correction", "a_min": "min", "a_max": "max", "reps": "repetitions"}
_SILENT = {"kind", "subok", "casting", "optimize"}
_HERE = {"amax": "max", "amin": "min", "concatenate": "concat"}


def array_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a function of NumPy's is on tensors."""
    name: str = function.__name__
    called = f"{function.__module__}.{name}".removeprefix("numpy.")
    ours = _FUNCTIONS.get(function)
    if ours is not None:
        meant = {key: value for key, value in options.items() if key not in _SILENT}
        return ours(*args, **_only(called, meant, set(_signature(ours).parameters)))
    ours = _named(function.__module__, _HERE.get(name, name))
    if ours is None or name in _CHANGING:
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
    theirs = _signature(function)
    given = theirs.bind(*args, **options).arguments
    mine = _signature(ours).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in mine.values()):
        return ours(*_beside(args), **_only(called, options, set(mine)))
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
