"""NumPy's namespace for boxes: each function is NumPy's own without boxes, and with them runs on tensors.

Tensors take part in NumPy's protocols, so its functions are called with them. The table has those that ask nobody.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.autograd.boxes import boxed, getval, has_tensors, unboxed
from adjoint.autograd.primitives import notrace_primitive, traced
from adjoint.functions import creation, elementwise
from adjoint.functions import shape as shapes
from adjoint.numpy_functions import as_operands
from adjoint.tensor import Tensor

Function = Callable[..., Any]
numpy_version = np.__version__

# functions whose lists are several arrays, and not the rows of one
_SEVERAL = {
    "block", "broadcast_arrays", "choose", "column_stack", "concat", "concatenate", "dstack", "einsum", "histogramdd",
    "hstack", "lexsort", "meshgrid", "multi_dot", "piecewise", "row_stack", "select", "stack", "vstack",
}  # fmt: skip

# functions that join the arrays of any iterable, as in HIPS autograd, of a generator too
_JOINING = {"column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack"}


def joined(values: Any) -> Any:
    """The tensor of nested lists with tensors in them."""
    if not isinstance(values, (list, tuple)):
        return values if isinstance(values, Tensor) else np.asarray(values)
    parts = [joined(v) for v in values]
    return shapes.stack(as_operands(parts)) if has_tensors(parts) else np.stack(parts)


def _array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0,
    like: Any = None,
) -> Any:  # fmt: skip
    x = joined(object)
    x = x if dtype is None else creation.astype(x, dtype)
    return shapes.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)


def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    return _array(a, dtype)


def _contiguous(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return _array(a, dtype, ndmin=1)


def _full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    x = _array(fill_value, dtype)
    return shapes.broadcast_to(x, shape)


def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    like, value = as_operands([joined(a), joined(fill_value)])
    value = creation.astype(value, like.dtype if dtype is None else dtype)
    return shapes.broadcast_to(value, like.shape if shape is None else shape)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    out = default if np.isscalar(default) else _asarray(default)
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        out = np.where(condition, choice, out)
    return out


def _isscalar(element: Any) -> bool:
    return isinstance(element, Tensor) and element.shape == ()


def _real_if_close(a: Any, tol: float = 100) -> Any:
    x = joined(a)
    return elementwise.real(x) if np.isrealobj(np.real_if_close(np.asarray(getval(boxed(x))), tol)) else x


_OWN: dict[str, Function] = {
    "array": _array,
    "asarray": _asarray,
    "asanyarray": _asarray,
    "ascontiguousarray": _contiguous,
    "asfortranarray": _contiguous,
    "full": _full,
    "full_like": _full_like,
    "isscalar": _isscalar,
    "real_if_close": _real_if_close,
    "select": _select,
}


# whose derivatives are zero: what they give is followed no further
_STEPS = {"around", "ceil", "fix", "floor", "floor_divide", "rint", "round", "sign", "trunc"}


def wrapped(name: str, function: Function) -> Function:
    """A function of NumPy's, also of boxes."""
    if name in _OWN:
        return traced(function, _OWN[name])
    if name in _STEPS:
        return traced(function, lambda *args, **kwargs: _step(function(*args, **kwargs)))

    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        if name not in _SEVERAL and any([isinstance(x, (list, tuple)) for x in args]):
            args = tuple([joined(x) if isinstance(x, (list, tuple)) and has_tensors(x) else x for x in args])
        return function(*args, **kwargs)

    run = traced(function, on_tensors)
    if name not in _JOINING:
        return run

    @functools.wraps(run)
    def of_any_iterable(*args: Any, **kwargs: Any) -> Any:
        if args and not hasattr(args[0], "__getitem__"):
            args = (list(args[0]), *args[1:])
        return run(*args, **kwargs)

    return of_any_iterable


def _step(out: Tensor[Any]) -> Tensor[Any]:
    return out if out.dtype.kind == "c" else out.detach()  # the sign of a complex number is no step


def wrap_namespace(old: Any, new: Any) -> None:
    """Put the names of one namespace into another, functions as functions of boxes; the same function stays one."""
    made: dict[int, Function] = {}
    for name, value in list(old.items()):
        if callable(value) and not isinstance(value, type):
            if id(value) not in made:
                made[id(value)] = wrapped(value.__name__ if hasattr(value, "__name__") else name, value)
            new[name] = made[id(value)]
        elif isinstance(value, (type, int, float, type(None))):
            new[name] = value


class _Rows:
    """`np.r_` and `np.c_`, which join what stands in brackets."""

    columns: bool
    own: Any

    def __init__(self, own: Any, columns: bool) -> None:
        self.own, self.columns = own, columns

    def __getitem__(self, key: Any) -> Any:
        given = unboxed(key)
        if not has_tensors(given):
            return self.own[key]
        parts = given if isinstance(given, tuple) else (given,)
        if isinstance(parts[0], str):
            raise errors.ArgumentTypeError("np.r_ and np.c_ of boxes take no string: write np.concatenate or np.stack")
        rows = [np.atleast_1d(np.r_[x] if isinstance(x, slice) else joined(x)) for x in parts]
        return boxed(np.column_stack(rows) if self.columns else np.concatenate(rows))


r_, c_ = _Rows(np.r_, False), _Rows(np.c_, True)


_where = wrapped("where", np.where)


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """NumPy's, with x and y also by name; of Python's numbers and lists alone it gives such."""
    if not args and not kwargs:
        return _where(condition)
    if len(args) + len(kwargs) != 2 or set(kwargs) - {"x", "y"}:
        raise errors.ArgumentError("where: either both or neither of x and y should be given")
    x = args[0] if args else kwargs["x"]
    y = args[1] if len(args) > 1 else kwargs["y"]
    out = _where(condition, x, y)
    plain = all([isinstance(v, (bool, int, float, complex, list, tuple)) for v in (condition, x, y)])
    return out.tolist() if plain and isinstance(out, np.ndarray) else out


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with the last axis on their diagonals. Raises ArgumentError for other places than the last two axes."""
    if offset or (axis1, axis2) != (-1, -2):
        raise errors.ArgumentError("make_diagonal: there is offset=0, axis1=-1, axis2=-2 alone")
    return D[..., None] * np.eye(D.shape[-1])


@notrace_primitive
def metadata(x: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """The shape, number of axes and dtype of an array, and whether it is complex."""
    return np.shape(x), np.ndim(x), np.result_type(x), np.iscomplexobj(x)


def concatenate_args(axis: int, *args: Any) -> Any:
    """`np.concatenate` of arguments."""
    return boxed(np.concatenate(unboxed(args), axis))


def array_from_args(array_args: Sequence[Any], array_kwargs: dict[str, Any], *args: Any) -> Any:
    """`np.array` of arguments."""
    return wrapped("array", np.array)(args, *array_args, **array_kwargs)


namespace: dict[str, Any] = {}
wrap_namespace({k: v for k, v in vars(np).items() if not k.startswith("_")}, namespace)
namespace |= {"r_": r_, "c_": c_, "where": where, "make_diagonal": make_diagonal}


def __getattr__(name: str) -> Any:
    if name not in namespace:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return namespace[name]
