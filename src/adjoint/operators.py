"""The operators of tensors, made of primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes
from adjoint.operands import (
    COMPARISONS,
    binary,
    change,
    chosen_number,
    fail,
    met,
    numbers_bounds,
    refuse_leaf,
    unary_of,
)
from adjoint.primitives import TABLE
from adjoint.tensor import Number, Tensor, allocate, same


def infix(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """The body of a binary operator: straight to the primitive where operands agree, else `binary`."""
    primitive = TABLE[name]
    comparison = not primitive.keeps_dtype
    direct = primitive.direct  # of other kinds the dtype may change, or be refused
    usual = dtypes.float64 if dtypes.float64.kind in direct else None  # which needs no look at its kind
    # where Python's numbers change no dtype
    beside_numbers = "".join([kind for kind in direct if kind in dtypes.INEXACT])

    def body(self: Tensor[Any], other: Any) -> Any:
        backend, dtype = self._device, self._dtype
        kind = other.__class__
        if kind is Tensor and other._device is backend and dtype is usual and other._dtype is usual:
            value, mine = other._array, self._array
        elif kind is Tensor:
            if other._dtype is not dtype or (dtype is not usual and dtype.kind not in direct):
                return binary(name, other, self) if reflected else binary(name, self, other)
            if other._device is not backend:
                backend, mine, value = met(self, other)
            else:
                value, mine = other._array, self._array
        elif (kind is float or kind is int) and dtype.kind in beside_numbers:
            value, mine = other, self._array
        elif kind is np.float64 and dtype is dtypes.float64 and beside_numbers:
            value = other = float(other)
            mine = self._array
        else:
            return binary(name, other, self) if reflected else binary(name, self, other)
        try:
            if value is other and other:  # zeros differ by their sign, which the cache does not see
                value = backend.as_scalar(other, dtype)
            if reflected:
                array = getattr(backend, name)(value, mine)
            else:
                array = getattr(backend, name)(mine, value)
        except Exception as error:
            if kind is int and isinstance(error, OverflowError):  # `binary` makes floats of large integers
                return binary(name, other, self) if reflected else binary(name, self, other)
            fail(error, backend, name, (mine, value if kind is Tensor else other), {})
        out = allocate(Tensor)
        out._array = array
        out._device = backend
        out._dtype = dtypes.bool if comparison else dtype
        return out

    body.__name__ = body.__qualname__ = name
    return body


def assigning(name: str) -> Callable[..., Any]:
    """The body of `+=` and its like: the object gets the new value; shape, dtype and device stay."""

    def body(self: Tensor[Any], other: Any) -> Any:
        refuse_leaf(self, "augmented assignment")
        out = binary(name, self, other)
        if out is NotImplemented:
            return out
        change(self, out, f"{name} in place")
        return self

    body.__name__ = body.__qualname__ = f"{name} in place"
    return body


def _methods(name: str, short: str) -> dict[str, Callable[..., Any]]:
    """What Python calls for the operator of a primitive."""
    if len(TABLE[name].operands) == 1:
        return {f"__{short}__": unary_of(name)}
    if short in COMPARISONS:
        return {f"__{short}__": infix(name)}
    return {f"__{short}__": infix(name), f"__r{short}__": infix(name, reflected=True), f"__i{short}__": assigning(name)}


OPERATORS: dict[str, Callable[..., Any]] = {
    "__pos__": same,
    **{
        method: body
        for name, primitive in TABLE.items()
        if primitive.operator
        for method, body in _methods(name, primitive.operator).items()
    },
}


def _of_number(name: str, short: str) -> None:
    """The operators of a primitive for chosen numbers, which no short way leads past `binary`."""
    if len(TABLE[name].operands) == 1:
        setattr(Number, f"__{short}__", lambda x: chosen_number(unary_of(name)(same(x)), numbers_bounds(name, x)))
    elif short not in COMPARISONS:
        setattr(Number, f"__{short}__", lambda x, y: binary(name, x, y))
        setattr(Number, f"__r{short}__", lambda x, y: binary(name, y, x))


_of_number("pow", "pow")
for _name, _primitive in TABLE.items():
    if _primitive.operator:
        _of_number(_name, _primitive.operator)
