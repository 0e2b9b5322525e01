"""How the functions of neural networks read their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.creation import as_tensor, inexact
from adjoint.tensor import Tensor

Sizes = int | Sequence[int]


def real(value: Any, name: str) -> Tensor[Any]:
    """A tensor of a real floating dtype; integers become float32. Raises DtypeError for complex numbers."""
    x = value if value.__class__ is Tensor else as_tensor(value, name)
    if x.dtype.kind == "f":
        return x
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {x.dtype}")
    return inexact(x, name)


def images(name: str, axes: int, given: Any) -> Tensor[Any]:
    """A real tensor of so many axes behind batch and channels, or behind channels alone."""
    x = real(given, name)
    if x.ndim not in (axes + 1, axes + 2):
        what = ", ".join(("depth", "height", "width")[3 - axes :]) if axes > 1 else "length"
        raise errors.ShapeError(f"{name}: expected (batch, channels, {what}) or (channels, {what}), received {x.shape}")
    return x


def sizes(value: Any, axes: int, name: str, what: str, least: int) -> tuple[int, ...]:
    """A number for each of so many axes, from one for all or a sequence."""
    found = (value,) * axes if isinstance(value, (int, np.integer)) else value
    valid = not isinstance(found, str) and hasattr(found, "__iter__")
    given = tuple(found) if valid else ()
    if len(given) != axes or not all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= least for n in given
    ):
        several = f"an integer of at least {least}" + (f" or {axes} of them" if axes > 1 else "")
        raise errors.ArgumentError(f"{name}: {what} is {several}, received {errors.shown(value)}")
    return tuple([int(n) for n in given])


def positive(value: Any, name: str, what: str) -> int:
    """One integer from 1."""
    return sizes(value, 1, name, what, 1)[0]


def reduced(losses: Tensor[Any], reduction: str, name: str) -> Tensor[Any]:
    """Losses as they are, their sum, or their mean."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.mean()
    raise errors.ArgumentError(f"{name}: reduction is 'mean', 'sum' or 'none', received {errors.shown(reduction)}")


def widened(x: Tensor[Any]) -> Any:
    """The dtype that sums of x are made in."""
    return dtypes.summing(x.dtype)
