"""Uniform and normal numbers, coin tosses, integers and permutations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import (
    as_device,
    as_drawn_dtype,
    as_integer,
    as_parameter,
    as_shape,
    as_size,
    is_integer,
)
from adjoint.functions.creation import Default, made
from adjoint.functions.indexing import take
from adjoint.operands import deferred_check
from adjoint.primitives.sizes import stands
from adjoint.random.parameters import place_of
from adjoint.tensor import Tensor

__all__ = ["bernoulli", "integers", "normal", "permutation", "seed", "uniform"]

D = TypeVar("D", bound=Backend)
ShapeLike = int | Sequence[int]


def seed(n: int, device: Backend | str | None = None) -> None:
    """Start the random sequence of a device's leaf anew, and no other; the default device's if None.

    Raises ArgumentError for what is no non-negative integer, DeviceError for a name that means no backend.

    >>> import adjoint as ad
    >>> ad.random.seed(1)
    >>> a = ad.random.uniform(2)
    >>> ad.random.seed(1)
    >>> (a == ad.random.uniform(2)).tolist()
    [True, True]
    """
    as_device(device).seed(n)


@overload
def uniform(
    shape: ShapeLike = (), *, low: Any = 0.0, high: Any = 1.0, dtype: Any = None, device: None = None
) -> Default: ...
@overload
def uniform(shape: ShapeLike = (), *, low: Any = 0.0, high: Any = 1.0, dtype: Any = None, device: D) -> Tensor[D]: ...
@overload
def uniform(
    shape: ShapeLike = (), *, low: Any = 0.0, high: Any = 1.0, dtype: Any = None, device: str
) -> Tensor[Any]: ...
def uniform(
    shape: ShapeLike = (), *, low: Any = 0.0, high: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers evenly distributed in [low, high), of the default dtype unless one is given.

    `low` and `high` are numbers or tensors that broadcast with the shape. The numbers are low + (high - low) * u with
    u in [0, 1), which as in NumPy may round to `high`; u itself is never 1. Raises ArgumentTypeError for other bounds.
    """
    low, high = as_parameter(low, "uniform", "low"), as_parameter(high, "uniform", "high")
    place = place_of(device, low, high)
    how = {"shape": as_shape(shape, "uniform"), "dtype": as_drawn_dtype(dtype, "uniform", place)}
    unit = made(place, "random_uniform", key=place.next_key(), **how)
    if _is(low, 0) and _is(high, 1):
        return unit
    low, high = _as_real(low, unit), _as_real(high, unit)
    return unit * (high - low) + low  # type: ignore[no-any-return]  # bounds are anything


def _as_real(bound: Any, like: Tensor[Any]) -> Any:
    """A bound whose differences do not leave its dtype, as those of integers would."""
    if not isinstance(bound, (Tensor, np.ndarray)) or bound.dtype.kind in dtypes.FLOATING:
        return bound
    return bound.astype(like.dtype)


@overload
def normal(
    shape: ShapeLike = (), *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: None = None
) -> Default: ...
@overload
def normal(shape: ShapeLike = (), *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: D) -> Tensor[D]: ...
@overload
def normal(
    shape: ShapeLike = (), *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: str
) -> Tensor[Any]: ...
def normal(
    shape: ShapeLike = (), *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Normally distributed numbers of a mean and a standard deviation, of the default dtype unless one is given.

    `shape` is that of the result; () by default, or that of `mean` and `std`, which broadcast. `mean` and `std` may be
    tensors, and gradients flow to them (reparameterisation). Raises ArgumentError for a negative `std`.
    """
    mean, std = as_parameter(mean, "normal", "mean"), as_parameter(std, "normal", "std")
    std = _within(std, 0, math.inf, "normal: the standard deviation must not be negative")
    place = place_of(device, mean, std)
    how = {"shape": as_shape(shape, "normal"), "dtype": as_drawn_dtype(dtype, "normal", place)}
    unit = made(place, "random_normal", key=place.next_key(), **how)
    if _is(mean, 0) and _is(std, 1):
        return unit
    return unit * std + mean  # type: ignore[no-any-return]


def _within(value: Any, low: float, high: float, message: str) -> Any:
    """The value. Raises ArgumentError for numbers out of a range, and for nan."""
    test: Callable[[Any], Any] = lambda values: (values >= low) & (values <= high)
    wrong: Callable[[Any], Exception] = lambda values: errors.ArgumentError(
        f"{message}, received {values[~test(values)].flat[0]}"
    )
    if isinstance(value, Tensor):
        return deferred_check(value, lambda values: test(values).all(), wrong)
    if not (test(value) if stands(value) else np.all(test(np.asarray(value)))):
        raise wrong(np.asarray(value))
    return value


def _is(value: Any, number: int) -> bool:
    return isinstance(value, (int, float)) and value == number


@overload
def bernoulli(p: Tensor[D], shape: ShapeLike | None = None, *, device: None = None) -> Tensor[D]: ...
@overload
def bernoulli(p: float = 0.5, shape: ShapeLike | None = None, *, device: None = None) -> Default: ...
@overload
def bernoulli(p: float = 0.5, shape: ShapeLike | None = None, *, device: D) -> Tensor[D]: ...
@overload
def bernoulli(p: float = 0.5, shape: ShapeLike | None = None, *, device: str) -> Tensor[Any]: ...
def bernoulli(p: Any = 0.5, shape: ShapeLike | None = None, *, device: Any = None) -> Tensor[Any]:
    """Booleans that are true with probability `p`, a number or a tensor; of p's shape unless given.

    Raises ArgumentError for numbers outside [0, 1].
    """
    p = as_parameter(p, "bernoulli", "p")
    p = _within(p, 0, 1, "bernoulli: a probability is between 0 and 1")
    if isinstance(p, Tensor):
        device = p.device if device is None else device
        shape = p.shape if shape is None else shape
        p = p.detach()
    return uniform(() if shape is None else shape, device=device) < p  # type: ignore[no-any-return]


@overload
def integers(
    low: int, high: int | None = None, shape: ShapeLike = (), *, dtype: Any = None, device: None = None
) -> Default: ...
@overload
def integers(
    low: int, high: int | None = None, shape: ShapeLike = (), *, dtype: Any = None, device: D
) -> Tensor[D]: ...
@overload
def integers(
    low: int, high: int | None = None, shape: ShapeLike = (), *, dtype: Any = None, device: str
) -> Tensor[Any]: ...
def integers(
    low: int, high: int | None = None, shape: ShapeLike = (), *, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Integers evenly distributed in [low, high), or [0, low) if one bound is given; int64.

    `shape` is that of the result, a scalar by default. Raises ArgumentError for an empty range or one that the dtype
    does not hold.
    """
    if high is None:
        low, high = 0, low
    found = dtypes.default_int if dtype is None else dtypes.as_dtype(dtype)
    if found.kind not in "iu":
        raise errors.DtypeError(f"integers: expected an integer dtype, received {found}")
    low, high = (as_integer(n, "integers", "a bound") for n in (low, high))
    info = np.iinfo(found)
    if not info.min <= low < high <= int(info.max) + 1:
        raise errors.ArgumentError(f"integers: [{low}, {high}) is empty or does not fit in {found}")
    place = as_device(device)
    how = {"low": low, "high": high, "shape": as_shape(shape, "integers"), "dtype": found}
    return made(place, "random_integers", key=place.next_key(), **how)


@overload
def permutation(x: Tensor[D], *, device: None = None) -> Tensor[D]: ...
@overload
def permutation(x: int, *, device: None = None) -> Default: ...
@overload
def permutation(x: int, *, device: D) -> Tensor[D]: ...
@overload
def permutation(x: int, *, device: str) -> Tensor[Any]: ...
def permutation(x: Any, *, device: Any = None) -> Tensor[Any]:
    """The integers below x in random order, or a tensor's slices along its first axis.

    The result is a vector (x,) of int64, or has the shape of the tensor. Gradients flow through the reordering of a
    tensor. Raises ArgumentTypeError for anything else.
    """
    if isinstance(x, Tensor):
        if not x.ndim:
            raise errors.ShapeError("permutation: a 0-d tensor has no slices; pass an int for integers below it")
        return take(x, permutation(x.shape[0], device=x.device), axis=0)
    if not is_integer(x):
        raise errors.ArgumentTypeError(
            f"permutation: expected a tensor or an int, received {errors.shown(x)}; see ad.tensor"
        )
    size, place = as_size(x, "permutation", "x"), as_device(device)
    return made(place, "random_permutation", key=place.next_key(), size=size, dtype=dtypes.default_int)
