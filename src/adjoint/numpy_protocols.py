"""NumPy's functions on tensors: `np.sin(x)`, `np.sum(x, axis=0)` and their like are ours, and stay differentiable.

NumPy asks tensors first (`__array_ufunc__`, `__array_function__`: its enhancement proposals 13 and 18). A function that
is called here by the same name, or stands in a table below, runs as ours; parameters are matched by their names. What
tensors cannot mean (`out=`) and what there is no function for is an error that says what to write instead:
nothing leaves a graph silently. This module is imported when NumPy first asks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors, linalg, numpy_functions, special
from adjoint.counterparts import NUMPY_NAMES
from adjoint.dtypes import as_dtype
from adjoint.functions import (
    arguments,
    calculus,
    contraction,
    creation,
    elementwise,
    indexing,
    numbers,
    polynomials,
    ranges,
    reduction,
)
from adjoint.functions import shape as shapes
from adjoint.lines import numpy_caller
from adjoint.numpy_functions import as_operands
from adjoint.operands import cast, is_number
from adjoint.tensor import Number, Tensor, UniqueTensor, refused_by_scipy, same

Function = Callable[..., Any]
_signature = functools.cache(inspect.signature)

# --- universal functions: elementwise, and what NumPy derives from them ----------------------------

_UFUNCS: dict[str, Function] = {
    "divmod": numpy_functions.divmod,
    "float_power": numpy_functions.float_power,
    "logaddexp2": numpy_functions.logaddexp2,
    "matvec": numpy_functions.matvec,
    "modf": numpy_functions.modf,
    "vecmat": numpy_functions.vecmat,
    "matmul": contraction.matmul,
    "vecdot": contraction.vecdot,
    "deg2rad": elementwise.deg2rad,
    "radians": elementwise.deg2rad,
    "rad2deg": elementwise.rad2deg,
    "degrees": elementwise.rad2deg,
    "fmod": elementwise.fmod,
    "frexp": numbers.frexp,
    "heaviside": elementwise.heaviside,
    "ldexp": numbers.ldexp,
    "_lambertw": numpy_functions.lambertw,  # SciPy's, which its functions of Python call
    "_riemann_zeta": special.zeta,
    "_zeta": special.zeta,
}
_REDUCED: dict[str, Function] = {
    "add": reduction.sum,
    "multiply": reduction.prod,
    "maximum": reduction.max,
    "minimum": reduction.min,
    "logical_and": reduction.all,
    "logical_or": reduction.any,
    "logaddexp": special.logsumexp,
}
_ACCUMULATED: dict[str, Function] = {
    "add": reduction.cumulative_sum,
    "multiply": reduction.cumulative_prod,
    "maximum": lambda x, axis: reduction.cummax(x, axis=axis)[0],
    "minimum": lambda x, axis: reduction.cummin(x, axis=axis)[0],
}


# operators with an array on the left, which are too frequent for the long way
_REFLECTED: dict[Any, Function] = {
    np.add: Tensor.__radd__,
    np.subtract: Tensor.__rsub__,
    np.multiply: Tensor.__rmul__,
    np.true_divide: Tensor.__rtruediv__,
    np.matmul: Tensor.__rmatmul__,
}


_TENSORS = Tensor, UniqueTensor  # and no chosen numbers


_SIGNS = {  # of augmented assignments, which NumPy calls with out=
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//",
    "remainder": "%", "power": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip


def array_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a universal function of NumPy's, or a method of one, is on tensors."""
    if ufunc in _REFLECTED and method == "__call__" and not options and inputs[1].__class__ in _TENSORS:
        return _REFLECTED[ufunc](inputs[1], inputs[0])
    name: str = ufunc.__name__
    call = name if method == "__call__" else f"{name}.{method}"
    if method == "__call__" and any(out is inputs[0] and not isinstance(out, Tensor) for out in options.get("out", ())):
        sign, full = _SIGNS.get(name), f"{_home(ufunc)}{name}"
        new = f"u = u {sign} x for u {sign}= x" if sign else f"u = {full}(u, x)"
        raise errors.ArgumentTypeError(
            f"{full} of a tensor: out= is an array of NumPy's, which takes no tensor in place; write {new}, and u "
            "is a tensor"
        )
    inputs = as_operands(_as_numpys(ufunc, inputs) if method == "__call__" else inputs)
    function = _UFUNCS.get(name) or _named("numpy", NUMPY_NAMES.get(name, name))
    if function is None:  # SciPy's universal functions, whose names are ours
        function = _named("scipy.special", name)
    if method == "__call__" and function is not None:
        allowed = {"axis"} if name == "vecdot" else set()
        return function(*inputs, **_only(call, options, allowed, ufunc))
    if method == "reduce" and name in _REDUCED:
        ours = _REDUCED[name]
        more = numpy_functions.REDUCING[ours.__name__]
        known = _only(call, options, {"axis", "keepdims", *more, *({"dtype"} if name in ("add", "multiply") else ())})
        return _reduced(ours, inputs[0], {"axis": 0, **known}, more)
    if method == "accumulate" and name in _ACCUMULATED:
        known = _only(call, options, {"axis", *({"dtype"} if name in ("add", "multiply") else ())})
        return _ACCUMULATED[name](inputs[0], **{"axis": 0, **known})
    if method == "outer" and function is not None and name not in ("matmul", "matvec", "vecdot", "vecmat"):
        x, y = (arguments.as_tensor(v, call) for v in inputs)
        rows = shapes.reshape(x, (*x.shape, *(1,) * y.ndim))
        return function(rows, y, **_only(call, options, set(), ufunc))
    raise _missing(call, _home(ufunc))


def _as_numpys(ufunc: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Chosen numbers among nothing but Python's, which NumPy makes arrays of, in the dtypes that it gives them."""
    if not any([x.__class__ is Number for x in inputs]) or not all(map(is_number, inputs)):
        return inputs
    given = [x._dtype if x.__class__ is Number else type(x) for x in inputs]
    found = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    return [cast(same(x), as_dtype(d)) if x.__class__ is Number else x for x, d in zip(inputs, found, strict=False)]


def _home(ufunc: Any) -> str:
    """Where users find a universal function."""
    places = {"np": np, "scipy.special": sys.modules.get("scipy.special")}
    found = [name for name, module in places.items() if getattr(module, ufunc.__name__, None) is ufunc]
    return found[0] + "." if found else ""


# parameters that say nothing about values
_SILENT = {"kind", "subok", "casting", "optimize", "copy", "overwrite_input", "assume_unique"}


def _only(name: str, options: dict[str, Any], allowed: set[str], ufunc: Any = None) -> dict[str, Any]:
    """The options that are given and mean something on tensors; raises ArgumentTypeError for others."""
    given = {key: value for key, value in options.items() if key in allowed or not _says_nothing(key, value)}
    for key in given:
        if key not in allowed:
            raise _refused(name, key, "np." if ufunc is None else _home(ufunc))
    return given


def _is_default(function: Any, name: str, value: Any) -> bool:
    """Whether a parameter of NumPy's is given its own default, as if it had been left out."""
    parameter = _signature(function).parameters.get(name)
    default = inspect.Parameter.empty if parameter is None else parameter.default
    plain = isinstance(default, (bool, int, float, str)) and value.__class__ is default.__class__
    return value is default or (plain and value == default)


def _said(function: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options without those that are given NumPy's default."""
    return {name: value for name, value in options.items() if not _is_default(function, name, value)}


def _says_nothing(key: str, value: Any) -> bool:
    """Whether an option is NumPy's default, or is about memory and kinds of arrays, and not about values."""
    if key == "out" and isinstance(value, tuple):
        return all(x is None for x in value)
    silent = value is None or value is np._NoValue or key in _SILENT
    return silent or (key == "where" and value is True) or (key == "order" and value in ("K", "A", "C"))


def _refused(name: str, key: str, home: str = "np.") -> errors.AdjointError:
    instead = {
        "out": "tensors are values: write y = ..., or y[...] = ... to give an object a new value",
        "where": "pick or mask with ad.where",
        "mean": "it is found beside the spread",
        "dtype": "convert with x.astype(dtype)",
        "order": "tensors have no order in memory; sort or permute explicitly",
        "axes": "move the axes first, with ad.moveaxis",
        "bias": "give ddof=0",
        "cov": "the parameters alone are found",
        "full": "ad.linalg.lstsq gives residuals and rank",
        "retstep": "the step is (stop - start) / (num - 1)",
        "returned": "np.sum of the weights is what it would give",
        "shape": "ad.zeros, ad.ones and ad.full make any shape",
        "sparse": "x[:, None] and y broadcast as an open grid does",
    }
    caller = numpy_caller()
    if caller is not None:
        return errors.ArgumentTypeError(
            f"{caller} computes with NumPy's arrays if its first argument is one, and a tensor is among the others; "
            f"write {caller}(ad.asarray(x), ...), which is a function of tensors"
        )
    return refused_by_scipy() or errors.ArgumentTypeError(
        f"{home}{name} of a tensor: {key}= is not supported; {instead.get(key, 'leave it out')}"
    )


_REPEATED = ", which counts an index that is repeated each time, as x[i] += v does not"
_INSTEAD = {
    "spacing": "ad.nextafter",
    "add.reduceat": "ad.segment_sum", "multiply.reduceat": "ad.segment_prod",
    "maximum.reduceat": "ad.segment_max", "minimum.reduceat": "ad.segment_min",
    "copyto": "x[...] = v of a tensor x, such as ad.zeros(shape), or ad.full(shape, v)",
    "put": "x[i] = v", "putmask": "ad.where", "place": "ad.where",
    "put_along_axis": "ad.put_along_axis, which gives another tensor", "fill_diagonal": "x[i, i] = v",
    "add.at": f"ad.scatter(x, i, v, mode='add'){_REPEATED}",
    "subtract.at": f"ad.scatter(x, i, -v, mode='add'){_REPEATED}",
    "multiply.at": f"ad.scatter(x, i, v, mode='multiply'){_REPEATED}", "maximum.at": "ad.scatter with mode 'max'",
    "minimum.at": "ad.scatter with mode 'min'",
    "save": "np.save(file, x.numpy()) or pickle", "savez": "np.savez(file, x.numpy()) or pickle",
    "savetxt": "np.savetxt(file, x.numpy())",
    "histogram2d": "ad.scatter with mode 'add'", "histogramdd": "ad.scatter with mode 'add'",
    "apply_over_axes": "the function with a tuple of axes",
    "common_type": "ad.result_type",
    "min_scalar_type": "x.dtype", "real_if_close": "ad.real",
    "einsum_path": "np.einsum_path of x.numpy()",
}  # fmt: skip


def _missing(name: str, home: str = "np.") -> errors.AdjointError:
    """The error for a function of NumPy's, or a universal function of another library, that tensors have not."""
    instead = _INSTEAD.get(name) if home == "np." else None
    if instead:
        hint = f"use {instead}"
    elif home == "np.":
        hint = "adjoint has no function of this name"
    else:
        hint = "adjoint has no function of this name, and ad.primitive makes one of it and of its derivative"
    return refused_by_scipy() or errors.ArgumentTypeError(
        f"{home}{name} does not take tensors: {hint}; {home}{name}(x.detach().numpy()) computes with the values, "
        "without gradients"
    )


# --- functions -----------------------------------------------------------------------------------


def _array2string(a: Tensor[Any], precision: int | None = None, separator: str = " ") -> str:
    if tuple(a.device.leaf_array(a._array).shape) != a.shape:  # of a batch all examples are shown
        return str(a)
    return np.array2string(a.device.concrete_values(a._array), precision=precision, separator=separator)


def _where(condition: Any, *choices: Any) -> Any:
    return elementwise.where(*as_operands([condition, *choices])) if choices else indexing.nonzero(condition)


def _cast(x: Tensor[Any], dtype: Any) -> Tensor[Any]:
    return x if dtype is None else creation.astype(x, dtype)


def _memory(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


_FUNCTIONS: dict[Any, Function] = {
    np.where: _where,
    np.dot: lambda a, b: contraction.dot(*as_operands([a, b])),
    np.inner: numpy_functions.inner,
    np.vdot: lambda a, b: contraction.vdot(*as_operands([a, b])),
    np.polyadd: lambda a1, a2: polynomials.polyadd(*as_operands([a1, a2])),
    np.polymul: lambda a1, a2: polynomials.polymul(*as_operands([a1, a2])),
    np.i0: special.i0,
    np.sinc: special.sinc,
    np.atleast_1d: lambda *arys: shapes.atleast_1d(*as_operands(arys)),
    np.atleast_2d: lambda *arys: shapes.atleast_2d(*as_operands(arys)),
    np.atleast_3d: lambda *arys: shapes.atleast_3d(*as_operands(arys)),
    np.vstack: lambda tup, dtype=None: _cast(shapes.vstack(list(tup)), dtype),
    np.hstack: lambda tup, dtype=None: _cast(shapes.hstack(list(tup)), dtype),
    np.dstack: lambda tup: shapes.dstack(list(tup)),
    np.column_stack: lambda tup: shapes.column_stack(list(tup)),
    np.gradient: lambda f, *varargs, axis=None, edge_order=1: calculus.gradient(
        *as_operands([f, *varargs]), axis=axis, edge_order=edge_order
    ),
    np.lib.stride_tricks.sliding_window_view: lambda x, window_shape, axis=None: shapes.sliding_window_view(
        x, window_shape, axis=axis
    ),
    np.concatenate: lambda arrays, axis=0, dtype=None: _cast(
        shapes.concat(as_operands(list(arrays)), axis=axis), dtype
    ),
    np.stack: lambda arrays, axis=0, dtype=None: _cast(shapes.stack(as_operands(list(arrays)), axis=axis), dtype),
    np.meshgrid: lambda *xi, copy=True, indexing="xy": ranges.meshgrid(*as_operands(xi), indexing=indexing),
    np.broadcast_arrays: lambda *args: shapes.broadcast_arrays(*as_operands(args)),
    np.reshape: lambda a, /, shape, order="C", *, copy=None: shapes.reshape(a, shape, order=order, copy=copy),
    np.piecewise: elementwise.piecewise,  # whose conditions are a list of tensors, and stay one
    np.select: lambda condlist, choicelist, default=0: elementwise.select(condlist, choicelist, default),
    np.copy: lambda a, order="K": creation.asarray(a, copy=True),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.may_share_memory: lambda a, b: np.may_share_memory(_memory(a), _memory(b)),
    np.shares_memory: lambda a, b: np.shares_memory(_memory(a), _memory(b)),
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.array2string: _array2string,
    np.array_repr: lambda arr: repr(arr),
    np.array_str: lambda a: str(a),
}

_OURS = [
    "angle", "array_equiv", "choose", "compress", "cross", "cumprod", "cumsum", "diag_indices_from", "diff",
    "dsplit", "ediff1d", "einsum", "extract", "geomspace", "histogram_bin_edges", "hsplit", "imag", "intersect1d",
    "iscomplex", "isneginf", "isposinf", "isreal", "ix_", "lexsort", "linspace", "logspace", "nancumprod",
    "nancumsum", "pad", "poly", "polydiv", "polyfit", "polyint", "polysub", "rollaxis", "roots", "setdiff1d",
    "setxor1d", "take", "take_along_axis", "trace", "transpose", "tril_indices_from", "triu_indices_from",
    "union1d", "vsplit",
]  # fmt: skip
_OURS_OF_LINALG = "lstsq svd tensorinv tensorsolve".split()
_FUNCTIONS |= {getattr(np, name): getattr(numpy_functions, name) for name in _OURS}
_FUNCTIONS |= {getattr(np.linalg, name): getattr(numpy_functions, name) for name in _OURS_OF_LINALG}

# what changes its argument, which a tensor is no argument for
_CHANGING = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}
# parameters of NumPy's that are called otherwise here
_PARAMETERS = {"ddof": "correction", "a_min": "min", "a_max": "max", "reps": "repetitions", "rcond": "rtol"}


def array_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a function of NumPy's is on tensors."""
    name: str = function.__name__
    called = f"{function.__module__}.{name}".removeprefix("numpy.")
    ours = _FUNCTIONS.get(function)
    if ours is not None:
        return _placed(function, called, ours, args, options)
    ours = _named(function.__module__, NUMPY_NAMES.get(name, name))
    if ours is None or name in _CHANGING:
        raise _missing(called)
    return _matched(function, called, ours, args, options)


@functools.cache
def _named(module: str, name: str) -> Function | None:
    """Our function of this name, in the namespace that stands for NumPy's."""
    namespace: Any = sys.modules["adjoint"]
    for part in module.split(".")[1:]:
        namespace = getattr(namespace, part, None)
    if (module, name) == ("numpy", "kron"):  # which NumPy has beside its linear algebra
        namespace = linalg
    found = getattr(namespace, name, None)
    return found if inspect.isfunction(found) and found.__module__.startswith("adjoint.") else None


@functools.cache
def _parameters(function: Any) -> tuple[list[str], frozenset[str], frozenset[str]] | None:
    """The names of a function's parameters by place, all that may be given by name, and all that must be given.

    None where it takes any number.
    """
    parameters = _signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return (
        [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY],
        frozenset([p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]),
        frozenset([p.name for p in parameters if p.default is p.empty]),
    )


def _given(function: Any, args: Sequence[Any], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the names of its parameters, as `inspect` binds them in thirty times the time."""
    known = _parameters(function)
    if known is not None:
        places, names, needed = known
        given = dict(zip(places, args, strict=False))
        if len(args) <= len(places) and names.issuperset(options) and given.keys().isdisjoint(options):
            given |= options
            if needed <= given.keys():
                return given
    return _signature(function).bind(*args, **options).arguments


@functools.cache
def _alike(function: Any, ours: Function) -> int:
    """How many arguments mean the same by place: those that ours must have, and those of the same name behind them."""
    pairs = zip(_signature(function).parameters.values(), _signature(ours).parameters.values(), strict=False)
    same_place = [p.kind is p.VAR_POSITIONAL or p.default is p.empty or p.name == q.name for q, p in pairs]
    return [*same_place, False].index(False)


def _placed(function: Any, called: str, ours: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call of a function in the table: what it must have by place, all else by NumPy's names."""
    if not options and len(args) <= _alike(function, ours):
        return ours(*args)
    theirs, mine = _signature(function), _signature(ours).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in [*mine.values(), *theirs.parameters.values()]):
        bound = theirs.bind(*args, **options)
        return ours(*bound.args, **_only(called, _said(function, bound.kwargs), set(mine)))
    given = _given(function, args, options)
    given |= given.pop("kwargs", {})
    needed = sum(p.default is p.empty for p in mine.values())
    leading = list(given)[:needed]
    rest = _said(function, {name: value for name, value in given.items() if name not in leading})
    for name in [name for name in rest if name not in mine]:
        if not _says_nothing(name, rest.pop(name)):
            raise _refused(called, name)
    return ours(*[given[name] for name in leading], **rest)


# reductions to which 0 and -1 are axes of a number, and functions to which a number is a vector
_REDUCING_NUMBERS = frozenset((
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "min", "nanargmax", "nanargmin", "nanmax",
    "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "prod", "ptp", "squeeze", "sum",
))  # fmt: skip
_OF_VECTORS = frozenset(("argpartition", "argsort", "repeat"))


def of_number(name: str, x: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The operand and the options of a function of ours, with what NumPy's takes for the axis of a number.

    To reductions other than averages 0 and -1 are as no axis. To some functions a number is a vector of one element.
    """
    if isinstance(x, Tensor) and not x.ndim:
        if name in _OF_VECTORS:
            return numpy_functions.flat(x), options
        axis = options.get("axis")
        if name in _REDUCING_NUMBERS and arguments.is_integer(axis) and axis in (0, -1):
            return x, {**options, "axis": None}
    return x, options


def _reduced(ours: Function, x: Any, options: dict[str, Any], more: frozenset[str]) -> Any:
    """A reduction of ours with those of NumPy's parameters that it has not."""
    given = {name: options.pop(name) for name in more & options.keys() if not _says_nothing(name, options[name])}
    x, options = of_number(ours.__name__, x, options)
    return numpy_functions.reduced(ours, x, {k: v for k, v in options.items() if k not in more}, **given)


@functools.cache
def _by_place(function: Any, ours: Function) -> tuple[list[str], bool]:
    """NumPy's names of what our function takes by place alone, and whether NumPy's takes any number of arguments."""
    theirs = _signature(function).parameters
    count = sum(p.kind is p.POSITIONAL_ONLY for p in _signature(ours).parameters.values())
    return list(theirs)[:count], any(p.kind is p.VAR_POSITIONAL for p in theirs.values())


def _matched(function: Any, called: str, ours: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call in the terms of our function: what that takes by place alone in NumPy's order, all else by name."""
    mine = _signature(ours).parameters
    in_front, any_number = _by_place(function, ours)
    if any_number:
        bound = _signature(function).bind(*args, **options)
        return ours(*as_operands(bound.args), **_only(called, _said(function, bound.kwargs), set(mine)))
    given = _given(function, args, options)
    leading = [name for name in in_front if name in given]
    keywords, beyond = {}, {}
    more = numpy_functions.REDUCING.get(ours.__name__, frozenset())
    for name, value in _said(function, {name: value for name, value in given.items() if name not in leading}).items():
        known = _PARAMETERS.get(name, name)
        if known in mine:
            keywords[known] = value
        elif not _says_nothing(name, value):
            if name not in more:
                raise _refused(called, name)
            beyond[name] = value
    operands = as_operands([given[name] for name in leading])
    operands[0], keywords = of_number(ours.__name__, operands[0], keywords)
    return numpy_functions.reduced(ours, operands[0], keywords, **beyond) if beyond else ours(*operands, **keywords)
