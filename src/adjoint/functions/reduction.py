"""Functions that sum up along axes: reductions, statistics and running totals."""

from __future__ import annotations

import builtins
import math
from itertools import accumulate
from typing import Any, Literal, Never, overload

from adjoint import dtypes, errors
from adjoint.dtypes import DType
from adjoint.functions.arguments import (
    as_axes,
    as_axis,
    as_flag,
    as_integer,
    as_number,
    as_ordered,
    as_tensor,
    as_tensors,
    explained,
    inexact,
    keyword_error,
)
from adjoint.operands import cast, run
from adjoint.tensor import Axis, Operand, Tensor, same
from adjoint.variables import B

_ALL = [tuple(range(ndim)) for ndim in range(65)]  # NumPy's limit is 64


def _reduce(name: str, x: Tensor[Any], axis: Axis, keepdims: bool) -> Any:
    ndim = len(x._array.shape)
    if keepdims is not False:
        keepdims = as_flag(keepdims, name)
    return run(name, (x,), axis=_ALL[ndim] if axis is None else as_axes(axis, ndim, name), keepdims=keepdims)


def _summable(x: Tensor[Any], dtype: Any) -> Tensor[Any]:
    """Totals keep floating dtypes; small integers and booleans are summed as 64-bit ones."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    if x.dtype.kind in "bi":
        return cast(x, dtypes.int64)
    return cast(x, dtypes.uint64) if x.dtype.kind == "u" else x


@explained
def sum(
    x: Operand[B], /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """The sum of elements along one, several or (None) all axes.

    Integers and booleans are summed as 64-bit integers unless `dtype` says otherwise. Raises
    AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> ad.sum(ad.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [4.0, 6.0]
    """
    if unknown:
        raise keyword_error(sum, unknown)
    if not isinstance(x, Tensor):
        x = as_tensor(x, "sum")
    if dtype is not None or x._dtype.kind not in dtypes.INEXACT:
        x = _summable(x, dtype)
    return _reduce("sum", x, axis, keepdims)  # type: ignore[no-any-return]


@explained
def prod(
    x: Operand[B], /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """The product of elements along axes; its gradient is right with zeros among them."""
    if unknown:
        raise keyword_error(prod, unknown)
    return _reduce("prod", _summable(as_tensor(x, "prod"), dtype), axis, keepdims)  # type: ignore[no-any-return]


@explained
def mean(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """The arithmetic mean along axes; of nothing nan. Integers give the default dtype.

    float16 and bfloat16 are summed in float32.
    """
    if unknown:
        raise keyword_error(mean, unknown)
    x = inexact(x, "mean")
    shape = x.shape
    axes, keepdims = as_axes(axis, len(shape), "mean"), as_flag(keepdims, "mean")
    count = math.prod(shape if axis is None else [shape[i] for i in axes])
    total = run("sum", (cast(x, dtypes.summing(x.dtype)),), axis=axes, keepdims=keepdims)
    return cast(total / count if count else total * math.nan, x.dtype)


@explained
def var(
    x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """The variance along axes, divided by the count less `correction` (1 gives the unbiased one).

    Real also for complex x. nan where the count does not exceed the correction. float16 and bfloat16 are summed in
    float32. Raises ArgumentTypeError for a correction that is no number.
    """
    if unknown:
        raise keyword_error(var, unknown)
    centred, axes, freedom, dtype = _centred("var", x, axis, correction)
    if dtype.kind == "c":
        squares = run("square", (centred.real,)) + run("square", (centred.imag,))
    else:
        squares = run("square", (centred,))
    total = run("sum", (squares,), axis=axes, keepdims=as_flag(keepdims, "var"))
    return _narrowed(total / freedom if freedom > 0 else total * math.nan, dtype)


@explained
def std(
    x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """The standard deviation along axes: the square root of `var`. Its derivative at 0 is 0."""
    if unknown:
        raise keyword_error(std, unknown)
    centred, axes, freedom, dtype = _centred("std", x, axis, correction)
    if freedom <= 0:  # nan, and so is its derivative
        spread: Tensor[B] = run("sqrt", (var(x, axis, correction=correction, keepdims=keepdims),))
        return spread
    from adjoint.irrational import irrational

    length = run("vector_norm", (centred,), axis=axes, keepdims=as_flag(keepdims, "std"))
    return _narrowed(length / irrational("sqrt", freedom, length), dtype)


def _centred(name: str, x: Any, axis: Axis, correction: Any) -> tuple[Tensor[Any], tuple[int, ...], float, DType]:
    """x less its mean, in what sums are made in; the axes, the count there less the correction, and the dtype of x."""
    x, correction = inexact(x, name), float(as_number(correction, name, "correction"))
    axes, dtype = as_axes(axis, x.ndim, name), x.dtype
    x = cast(x, dtypes.summing(dtype))
    return x - mean(x, axes, keepdims=True), axes, math.prod(x.shape[i] for i in axes) - correction, dtype


def _narrowed(x: Tensor[Any], dtype: DType) -> Tensor[Any]:
    return cast(x, dtype) if x.dtype is dtypes.summing(dtype) else x


@explained
def var_mean(
    x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> tuple[Tensor[B], Tensor[B]]:
    """`var` and `mean`. The correction is 0 unless given, as there; PyTorch has 1.

    >>> import adjoint as ad
    >>> [each.item() for each in ad.var_mean(ad.tensor([1.0, 3.0]))]
    [1.0, 2.0]
    """
    if unknown:
        raise keyword_error(var_mean, unknown)
    return var(x, axis, correction=correction, keepdims=keepdims), mean(x, axis, keepdims=keepdims)


@explained
def std_mean(
    x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> tuple[Tensor[B], Tensor[B]]:
    """`std` and `mean`. The correction is 0 unless given, as there; PyTorch has 1.

    >>> import adjoint as ad
    >>> [each.item() for each in ad.std_mean(ad.tensor([1.0, 3.0]))]
    [1.0, 2.0]
    """
    if unknown:
        raise keyword_error(std_mean, unknown)
    return std(x, axis, correction=correction, keepdims=keepdims), mean(x, axis, keepdims=keepdims)


@overload
def max(
    x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, return_indices: Literal[False] = False
) -> Tensor[B]: ...
@overload
def max(
    x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False, return_indices: Literal[True]
) -> tuple[Tensor[B], Tensor[B]]: ...
@explained
def max(
    x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, return_indices: bool = False, **unknown: Never
) -> Any:
    """The largest element along axes; ties share the gradient equally.

    With `return_indices` also where it is: as `argmax`, along one axis or in the flattened tensor, the first of equal
    ones, and the gradient goes there alone. Raises ShapeError for an empty axis, DtypeError for complex x,
    ArgumentTypeError for places along several axes.

    >>> import adjoint as ad
    >>> values, places = ad.max(ad.tensor([[3.0, 1.0], [2.0, 4.0]]), axis=1, return_indices=True)
    >>> values.tolist(), places.tolist()
    ([3.0, 4.0], [0, 1])
    """
    if unknown:
        raise keyword_error(max, unknown)
    x = as_ordered(x, "max")
    if as_flag(return_indices, "max", "return_indices"):
        return _placed("max", x, axis, keepdims)
    return _reduce("max", x, axis, keepdims)


@overload
def min(
    x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, return_indices: Literal[False] = False
) -> Tensor[B]: ...
@overload
def min(
    x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False, return_indices: Literal[True]
) -> tuple[Tensor[B], Tensor[B]]: ...
@explained
def min(
    x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, return_indices: bool = False, **unknown: Never
) -> Any:
    """The smallest element along axes; ties share the gradient equally. Arguments and errors as `max`."""
    if unknown:
        raise keyword_error(min, unknown)
    x = as_ordered(x, "min")
    if as_flag(return_indices, "min", "return_indices"):
        return _placed("min", x, axis, keepdims)
    return _reduce("min", x, axis, keepdims)


def _placed(name: str, x: Tensor[Any], axis: Any, keepdims: bool) -> tuple[Tensor[Any], Tensor[Any]]:
    """The extreme along an axis, or of all, and the first place of it."""
    places = _place(f"arg{name}", x, axis, keepdims)
    line, at, place = x, places, axis
    if axis is None:
        line, at, place = run("reshape", (x,), shape=(x.size,)), run("reshape", (places,), shape=(1,)), 0
    else:
        place = as_axis(axis, x.ndim, name)
        at = places if keepdims or not x.ndim else run("expand_dims", (places,), axis=(place,))
    if not x.ndim:
        return run("reshape", (x,), shape=()), places
    values = run("take_along_axis", (line, at), axis=place)
    return run("reshape", (values,), shape=places.shape), places


def _place(name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    x = as_ordered(x, name)
    place = None if axis is None else as_axis(axis, x.ndim, name)
    return run(name, (x,), axis=place, keepdims=as_flag(keepdims, name))


@explained
def argmax(x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """The place of the first largest element along an axis, or in the flattened tensor; int64."""
    if unknown:
        raise keyword_error(argmax, unknown)
    return _place("argmax", x, axis, keepdims)  # type: ignore[no-any-return]


@explained
def argmin(x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """The place of the first smallest element along an axis, or in the flattened tensor; int64."""
    if unknown:
        raise keyword_error(argmin, unknown)
    return _place("argmin", x, axis, keepdims)  # type: ignore[no-any-return]


@explained
def any(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """Whether some element along axes is true, that is not zero."""
    if unknown:
        raise keyword_error(any, unknown)
    return _reduce("any", as_tensor(x, "any"), axis, keepdims)  # type: ignore[no-any-return]


@explained
def all(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """Whether all elements along axes are true, that is not zero."""
    if unknown:
        raise keyword_error(all, unknown)
    return _reduce("all", as_tensor(x, "all"), axis, keepdims)  # type: ignore[no-any-return]


def _cumulative(name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Any:
    x = _summable(as_tensor(x, name), dtype)
    if axis is None:
        if x.ndim > 1:
            raise errors.AxisError(f"{name}: a tensor of {x.ndim} axes needs axis=")
        axis = 0
    if not x.ndim:
        x = run("reshape", (x,), shape=(1,))
    place = as_axis(axis, x.ndim, name)
    if name == "logcumsumexp" and x.dtype.kind == "c":
        from adjoint.functions.elementwise import logaddexp  # few programs need them
        from adjoint.functions.shape import stack, unstack

        return stack([*accumulate(unstack(x, axis=place), logaddexp)], axis=place) if x.shape[place] else x
    out = run(name, (x,), axis=place)
    if as_flag(include_initial, name, "include_initial"):
        widths = tuple((1, 0) if i == place else (0, 0) for i in range(x.ndim))
        out = run("pad", (out,), widths=widths, value=0 if name == "cumulative_sum" else 1)
    return out


@explained
def cumulative_sum(
    x: Operand[B], /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False, **unknown: Never
) -> Tensor[B]:
    """Running sums along an axis, which may be left out for one axis; `include_initial` starts at 0.

    >>> import adjoint as ad
    >>> ad.cumulative_sum(ad.tensor([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    if unknown:
        raise keyword_error(cumulative_sum, unknown)
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)  # type: ignore[no-any-return]


@explained
def cumulative_prod(
    x: Operand[B], /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False, **unknown: Never
) -> Tensor[B]:
    """Running products along an axis; `include_initial` starts at 1. Right gradients at zeros."""
    if unknown:
        raise keyword_error(cumulative_prod, unknown)
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)  # type: ignore[no-any-return]


@explained
def logcumsumexp(x: Operand[B], /, *, axis: int | None = None, **unknown: Never) -> Tensor[B]:
    """The logarithms of the running sums of exp(x) along an axis, which may be left out for one axis; no overflow.

    Complex numbers are joined one after the other, as by `logaddexp`. Raises AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> ad.logcumsumexp(ad.tensor([1000.0, 1000.0])).tolist()
    [1000.0, 1000.6931762695312]
    """
    if unknown:
        raise keyword_error(logcumsumexp, unknown)
    return _cumulative("logcumsumexp", inexact(x, "logcumsumexp"), axis, None, False)  # type: ignore[no-any-return]


@explained
def count_nonzero(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """How many elements along axes are not zero, that is true; int64.

    >>> import adjoint as ad
    >>> ad.count_nonzero(ad.tensor([[0.0, 2.0], [1.0, 3.0]]), axis=0).tolist()
    [1, 2]
    """
    if unknown:
        raise keyword_error(count_nonzero, unknown)
    x = as_tensor(x, "count_nonzero")
    true = x if x.dtype.kind == "b" else run("not_equal", (x, 0))
    return _reduce("sum", cast(true, dtypes.int64), axis, keepdims)  # type: ignore[no-any-return]


@explained
def diff(
    x: Operand[B], /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None, **unknown: Never
) -> Tensor[B]:
    """The differences of neighbours along an axis, n times over.

    `prepend` and `append`, tensors or numbers, are joined to x before.
    Raises AxisError for an axis that is not there, ArgumentError for a negative n, ShapeError for what does not join.

    >>> import adjoint as ad
    >>> ad.diff(ad.tensor([1.0, 4.0, 9.0, 16.0]), n=2).tolist()
    [2.0, 2.0]
    """
    if unknown:
        raise keyword_error(diff, unknown)
    parts = as_tensors([t for t in (prepend, x, append) if t is not None], "diff")
    shape = parts[prepend is not None].shape
    place = as_axis(axis, len(shape), "diff")
    one = (*shape[:place], 1, *shape[place + 1 :])
    joined = [t if t.ndim else run("broadcast_to", (t,), shape=one) for t in parts]
    n = as_integer(n, "diff", "n", 0)
    if n == 0:
        return same(as_tensor(x, "diff"))
    out = joined[0] if len(joined) == 1 else run("concat", joined, axis=place)
    whole = (slice(None),) * place
    if n >= out.shape[place]:  # none is left, as of the first alone
        out, n = out[(*whole, slice(0, 1))], builtins.min(1, out.shape[place])
    for _ in range(n):
        out = out[(*whole, slice(1, None))] - out[(*whole, slice(None, -1))]
    return out


@explained
def cummax(x: Operand[B], /, *, axis: int | None = None, **unknown: Never) -> tuple[Tensor[B], Tensor[B]]:
    """The largest element so far along an axis, and its place, the last one of equal ones; nan from the first nan on.

    The axis may be left out for one axis. The gradient goes to that place. Raises DtypeError for complex numbers.

    >>> import adjoint as ad
    >>> values, places = ad.cummax(ad.tensor([1.0, 3.0, 2.0]))
    >>> values.tolist(), places.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    if unknown:
        raise keyword_error(cummax, unknown)
    return _running("cummax", x, axis)


@explained
def cummin(x: Operand[B], /, *, axis: int | None = None, **unknown: Never) -> tuple[Tensor[B], Tensor[B]]:
    """The smallest element so far along an axis, and its place. As `cummax`."""
    if unknown:
        raise keyword_error(cummin, unknown)
    return _running("cummin", x, axis)


def _running(name: str, x: Any, axis: int | None) -> tuple[Tensor[Any], Tensor[Any]]:
    x = as_tensor(x, name)
    if x.dtype.kind in "bc":
        raise errors.DtypeError(f"{name}: expected real numbers, received {x.dtype}; take abs, real or imag")
    if axis is None:
        if x.ndim > 1:
            raise errors.AxisError(f"{name}: a tensor of {x.ndim} axes needs axis=")
        axis = 0
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis to go along")
    values, places = run(name, (x,), axis=as_axis(axis, x.ndim, name))
    return values, places
