"""What settings of optimizers may be: each is read when an optimizer is made."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_positive, items
from adjoint.tensor import Tensor


def check_rate(optimizer: Any) -> None:
    """Raises ArgumentError for a rate below zero, ArgumentTypeError for what is neither a number nor a schedule."""
    if not callable(optimizer.lr):
        check_not_negative(optimizer, "lr")


def check_not_negative(optimizer: Any, *fields: str) -> None:
    """Raises ArgumentError for numbers below zero and nan, ArgumentTypeError for what is no number."""
    for field in fields:
        for value in numbers(optimizer, field):
            as_positive(value, type(optimizer).__name__, field, zero=True)


def check_fractions(optimizer: Any, *fields: str) -> None:
    """As `check_not_negative`; raises ArgumentError for one or more, too: what decays would grow."""
    check_not_negative(optimizer, *fields)
    for field in fields:
        for value in numbers(optimizer, field):
            if not value < 1:
                raise errors.ArgumentError(
                    f"{type(optimizer).__name__}: {field} is less than 1, received {errors.shown(value)}"
                )


def numbers(optimizer: Any, field: str) -> tuple[Any, ...]:
    """What a setting is: one number, or as many as in its default. Raises ArgumentTypeError for another count.

    Tensors are left out: a step can be differentiated by a setting.
    """
    value, default, name = getattr(optimizer, field), getattr(type(optimizer), field), type(optimizer).__name__
    found: Any = (value,)
    if isinstance(default, tuple):
        found = items(value)
        if found is None or len(found) != len(default):
            count = len(default)
            raise errors.ArgumentTypeError(f"{name}: {field} are {count} numbers, received {errors.shown(value)}")
    return tuple([v for v in found if not isinstance(v, Tensor)])
