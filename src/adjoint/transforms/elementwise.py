"""Choices element by element between functions that are not defined everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_tensor, check_callable
from adjoint.functions.elementwise import where
from adjoint.functions.indexing import take
from adjoint.functions.logic import logical_not
from adjoint.functions.reduction import argmax
from adjoint.functions.shape import broadcast_arrays, reshape
from adjoint.operands import concrete_values, is_concrete, operand
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function
from adjoint.transforms.carries import examples_of
from adjoint.transforms.closures import closed_over, substituted
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.reverse import stop_gradient


@of_any_library
def apply_where(cond: Any, args: Any, f1: Function, f2: Function | None = None, *, fill_value: Any = None) -> Any:
    """`f1(*args)` where a condition holds, `f2(*args)` or a value elsewhere; each function sees only its own elements.

    `ad.where(x > 0, ad.sqrt(x), 0.0)` computes the root everywhere, and its slope: at 0 that is infinite, and zero
    times infinity makes the gradient nan. Here the elements that a function is not meant for are replaced by one that
    it is meant for, so that there is no nan, in values and derivatives of any order. Name and signature are those of
    array_api_extra.

    Parameters
    ----------
    cond
        Booleans.
    args
        A tensor, or a tuple of several; they broadcast with the condition.
    f1, f2
        Elementwise functions of them. That holds for arguments, not for what a function finds in its closure.
    fill_value
        In the place of f2, a number or a tensor.

    Raises
    ------
    ArgumentTypeError, DtypeError
        f1 or f2 is no function, both or none of f2 and fill_value are given; the condition is not boolean.
    ShapeError
        A function is not elementwise.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> root = lambda x: ad.apply_where(x > 0, x, ad.sqrt, fill_value=0.0).sum()
    >>> ad.grad(root)(np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """
    name = "apply_where"
    check_callable(name, f1, "f1")
    if f2 is not None:
        check_callable(name, f2, "f2")
    if (f2 is None) == (fill_value is None):
        raise errors.ArgumentTypeError(f"{name}: give either f2 or fill_value")
    given = list(args) if isinstance(args, (tuple, list)) else [args]
    first = next((x for x in (*given, cond) if isinstance(x, Tensor)), None)
    mask = as_tensor(cond, name) if first is None else operand(cond, first, name)
    if mask.dtype.kind != "b":
        raise errors.DtypeError(f"{name}: the condition is {mask.dtype}, expected booleans; compare, as in x > 0")
    mask, *xs = broadcast_arrays(mask, *[operand(x, mask, name) for x in given])

    def applied(f: Any, chosen: Tensor[Any], label: str) -> Any:
        stand_in = _stand_in(chosen)
        if not is_concrete(chosen):
            f = _while_some(chosen, f)
        return _checked(f(*[where(chosen, x, stand_in(x)) for x in xs]), chosen, label)

    if 0 in mask.shape:
        return _checked(f1(*xs), mask, "f1")
    if is_concrete(mask):
        values = concrete_values(mask, name)
        if values.all():
            return _checked(f1(*xs), mask, "f1")
        if not values.any():
            return where(mask, xs[0], fill_value) if f2 is None else _checked(f2(*xs), mask, "f2")
    other = fill_value if f2 is None else applied(f2, logical_not(mask), "f2")
    return where(mask, applied(f1, mask, "f1"), other)


def _stand_in(chosen: Tensor[Any]) -> Callable[[Tensor[Any]], Tensor[Any]]:
    """From a tensor to one of its chosen elements, as a constant.

    Of any example, since one of a batch may have none. Where values are not concrete, as under `jax.jit`, it is the
    first chosen one of this array.
    """
    if not is_concrete(chosen):
        place = argmax(reshape(chosen, -1))
        return lambda x: stop_gradient(take(reshape(x, -1), place))
    array, leaf, levels = examples_of(chosen)
    index = np.argwhere(concrete_values(wrap(array, leaf), "apply_where"))[0].tolist()
    example, element = dict(zip(levels, index, strict=False)), index[len(levels) :]

    def of(x: Tensor[Any]) -> Tensor[Any]:
        array, leaf, levels = examples_of(x)
        return wrap(leaf.index(array, key=(*[example.get(level, 0) for level in levels], *element)), leaf)

    return of


def _while_some(chosen: Tensor[Any], f: Function) -> Function:
    """The function, in whose closure tensors are constants where no element is chosen.

    It then sees an element that it is not meant for. The result is dropped, but its cotangent, which is zero, would
    meet the slope there, which may be infinite.
    """
    closed = {key: x for key, x in closed_over(f).items() if x.device.tracked(x._array)}
    return substituted(f, {key: where(chosen.any(), x, stop_gradient(x)) for key, x in closed.items()})


def _checked(out: Any, mask: Tensor[Any], label: str) -> Any:
    if isinstance(out, Tensor) and out.shape not in (mask.shape, ()):
        raise errors.ShapeError(
            f"apply_where: {label} gives shape {out.shape} for arguments of shape {mask.shape}, and is not elementwise"
        )
    return out
