"""Functions by the conventions of other libraries, where these are not `ad`'s own: what faces call."""

from __future__ import annotations

from typing import Any

from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import cos, maximum, sin, where
from adjoint.functions.logic import isnan, logical_and, logical_or
from adjoint.tensor import Tensor


def fmax_of_first(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """`fmax`, of truths too; of two that are equal the first has the gradient."""
    return logical_or(x, y) if x.dtype.kind == "b" else where((x >= y) | isnan(y), x, y)


def fmin_of_first(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """`fmin`, of truths too; of two that are equal the first has the gradient."""
    return logical_and(x, y) if x.dtype.kind == "b" else where((x <= y) | isnan(y), x, y)


def integer_power(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """x ** y of integers; of a negative exponent the power is rounded to zero, as 1 / x is."""
    positive = x ** maximum(y, 0)
    return where(y < 0, where(size_of(x) == 1, x ** (y % 2), 0), positive)


def polar(r: Tensor[Any], angle: Tensor[Any]) -> Any:
    """The complex numbers of these lengths and angles."""
    return cos(angle) * r + sin(angle) * r * 1j


def add_product(x: Any, a: Any, b: Any, factor: Any) -> Any:
    """x + factor * a * b"""
    return x + a * b * factor if factor != 1 else x + a * b


def add_quotient(x: Any, a: Any, b: Any, factor: Any) -> Any:
    """x + factor * a / b"""
    return x + a / b * factor if factor != 1 else x + a / b
