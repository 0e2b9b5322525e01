"""Functions along axes: sums of exponentials, and shares of them."""

from __future__ import annotations

import math
from typing import Any, Never

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_axes, as_axis, as_flag, explained, inexact, keyword_error, real
from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import exp, log, where
from adjoint.functions.elementwise import sign as sign_of
from adjoint.functions.logic import equal, isfinite
from adjoint.functions.reduction import max as largest
from adjoint.functions.reduction import sum as total_of
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, reals
from adjoint.tensor import Axis, Operand, Tensor
from adjoint.variables import B


@explained
def logsumexp(
    a: Operand[B],
    /,
    axis: Axis = None,
    b: Numbers = None,
    keepdims: bool = False,
    return_sign: bool = False,
    **unknown: Never,
) -> Any:
    """log(sum(b exp(a))) along axes, or all, without overflow; -inf where there is nothing to sum.

    `b` are factors, 1 if None; elements whose factor is 0 do not count. A negative sum has no real logarithm, so nan;
    with `return_sign` the result is a pair, the logarithm of the sum's absolute value and the sum's sign. Complex
    elements are taken without factors and signs; their logarithm is the principal one.

    Raises DtypeError for other complex operands, AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> value, sign = ad.special.logsumexp(ad.tensor([1000.0, 1000.0]), b=ad.tensor([1.0, -2.0]), return_sign=True)
    >>> value.item(), sign.item()
    (1000.0, -1.0)
    """
    if unknown:
        raise keyword_error(logsumexp, unknown)
    name = "logsumexp"
    keepdims, return_sign = as_flag(keepdims, name), as_flag(return_sign, name, "return_sign")
    if b is None and not return_sign:
        x = inexact(a, name)
        if x.dtype.kind == "c":
            return _complex_logsumexp(x, as_axes(axis, x.ndim, name), keepdims)
        axes = as_axes(axis, x.ndim, name)
        return cast(run(name, (cast(x, dtypes.summing(x.dtype)),), axis=axes, keepdims=keepdims), x.dtype)
    x, factor = reals(name, a, 1.0 if b is None else b)
    dtype = x.dtype
    x, factor = (cast(v, dtypes.summing(dtype)) for v in (x, factor))
    axes = as_axes(axis, max(x.ndim, factor.ndim), name)
    counted = where(equal(factor, 0.0), -math.inf, x + factor * 0.0)
    top: Any = 0.0
    if 0 not in counted.shape:
        top = largest(counted.detach(), axis=axes, keepdims=True)  # taken off and added again: it cancels
        top = where(isfinite(top), top, 0.0)
    parts = factor * exp(where(equal(factor, 0.0), 0.0, x) - top)
    total = total_of(parts, axis=axes, keepdims=True)
    size = absolute(total) if return_sign else total
    positive = size > 0.0
    value = where(positive, log(where(positive, size, 1.0)) + top, where(equal(size, 0.0), -math.inf, math.nan))
    sign = sign_of(total)
    if not keepdims:
        kept = [n for i, n in enumerate(value.shape) if i not in axes]
        value, sign = value.reshape(kept), sign.reshape(kept)
    return (cast(value, dtype), cast(sign, dtype)) if return_sign else cast(value, dtype)


def _complex_logsumexp(x: Tensor[Any], axes: tuple[int, ...], keepdims: bool) -> Tensor[Any]:
    top: Any = 0.0
    if all(x.shape[i] for i in axes):
        top = largest(x.real.detach(), axis=axes, keepdims=True)
        top = where(isfinite(top), top, 0.0)
    total = total_of(exp(x - top), axis=axes, keepdims=True)
    none = equal(total, 0.0)
    value = where(none, -math.inf, log(where(none, 1.0, total)) + top)
    return value if keepdims else value.reshape([n for i, n in enumerate(x.shape) if i not in axes])


@explained
def softmax(x: Operand[B], /, axis: int | tuple[int, ...] | None = None, **unknown: Never) -> Tensor[B]:
    """exp(x) over its sum along axes, of all elements if None, as in SciPy."""
    if unknown:
        raise keyword_error(softmax, unknown)
    return _along("softmax", x, axis)


@explained
def log_softmax(x: Operand[B], /, axis: int | tuple[int, ...] | None = None, **unknown: Never) -> Tensor[B]:
    """The logarithm of `softmax`, accurate also where that underflows."""
    if unknown:
        raise keyword_error(log_softmax, unknown)
    return _along("log_softmax", x, axis)


def _along(name: str, x: Operand[B], axis: Any) -> Tensor[B]:
    x = real(x, name)
    if axis is None or isinstance(axis, (tuple, list)):
        axes = as_axes(axis, x.ndim, name)
        if len(axes) != 1:  # the axes become one, at the end
            rest = [i for i in range(x.ndim) if i not in axes]
            order = [*rest, *axes]
            moved = _permuted(x, order)
            flat = moved.reshape([*[x.shape[i] for i in rest], math.prod(x.shape[i] for i in axes)])
            back = [order.index(i) for i in range(x.ndim)]
            return _permuted(_along(name, flat, -1).reshape(moved.shape), back)
        axis = axes[0]
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis")
    place = as_axis(axis, x.ndim, name)
    if not x.shape[place]:
        return x
    return cast(run(name, (cast(x, dtypes.summing(x.dtype)),), axis=place), x.dtype)


def _permuted(x: Tensor[Any], order: list[int]) -> Tensor[Any]:
    return run("permute_dims", (x,), axes=tuple(order))  # type: ignore[no-any-return]
