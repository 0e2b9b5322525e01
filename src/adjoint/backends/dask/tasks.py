"""What tasks of a graph run, in any process: the NumPy leaf's implementations on blocks of arrays.

Tasks are sent to workers, so they hold names and parameters, and import nothing but NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array
from adjoint.backends.numpy import NumPy
from adjoint.primitives import ARRAY, TABLE, Primitive


class Task:
    """A primitive on NumPy. A user's own is sent along as a function: other processes know no other primitives."""

    def __init__(self, primitive: Primitive, parameters: dict[str, Any]) -> None:
        self.name: str = primitive.name
        self.parameters = parameters
        self.function: Callable[..., Any] | None = primitive.implementations.get(NumPy)

    def __call__(self, *blocks: Any, **more: Any) -> Any:
        run = self.function or NumPy()[TABLE[self.name]]
        try:
            with np.errstate(all="ignore"):
                return run(*map(block, blocks), **self.parameters, **more)
        except errors.AdjointError:
            raise
        except np.linalg.LinAlgError as error:
            raise errors.SingularError(f"{self.name}: {error}") from None
        except IndexError as error:
            raise errors.OutOfRangeError(f"{self.name}: {error}") from None

    def __str__(self) -> str:
        return self.name

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.name, repr(self.parameters), self.function


def block(x: Any) -> Any:
    """A block, which stands in a list for each axis that is needed whole and has no part in the result's blocks."""
    while x.__class__ is list:
        (x,) = x
    return x


class Stacked(Task):
    """The result with leading axes of size one: a term of a sum over blocks."""

    def __init__(self, primitive: Primitive, parameters: dict[str, Any], axes: int = 1) -> None:
        super().__init__(primitive, parameters)
        self.axes = axes

    def __call__(self, *blocks: Any, **more: Any) -> Any:
        out = np.asarray(super().__call__(*blocks, **more))
        return out.reshape((1,) * self.axes + out.shape)


class Added:
    """What values at places of one axis add to a block of an array: places elsewhere add nothing.

    `rows` are the places that the block has.
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __call__(self, value: Array, places: Array, rows: Array) -> Array:
        axis, k = self.axis, places.ndim
        before, after = value.shape[:axis], value.shape[axis + k :]
        out = np.zeros((*before, len(rows), *after), value.dtype)
        if len(rows):
            flat = places.reshape(-1)
            inside = (flat >= rows[0]) & (flat <= rows[-1])
            value = np.compress(inside, value.reshape((*before, flat.size, *after)), axis=axis)
            out = NumPy().index_add_into(out, value, flat[inside] - rows[0], key=(slice(None),) * axis + (ARRAY,))
        return out.reshape((1,) * k + out.shape)

    def __str__(self) -> str:
        return "index_add"


class Taken:
    """What a block has of an axis's elements at places: their order among the places, and the elements."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __call__(self, x: Array, places: Array, rows: Array) -> tuple[Array, Array]:
        flat = places.reshape(-1)
        inside = (flat >= rows[0]) & (flat <= rows[-1])
        return np.nonzero(inside)[0], np.take(x, flat[inside] - rows[0], axis=self.axis)

    def __str__(self) -> str:
        return "taken"


class Joined:
    """The elements at places, from what each block along the axis has of them."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __call__(self, places: Array, parts: list[tuple[Array, Array]]) -> Array:
        axis, (_, some) = self.axis, parts[0]
        before, after = some.shape[:axis], some.shape[axis + 1 :]
        out = np.empty((*before, places.size, *after), some.dtype)
        for order, values in parts:
            out[(slice(None),) * axis + (order,)] = values
        return out.reshape(before + places.shape + after)

    def __str__(self) -> str:
        return "index"


class Places:
    """Places along an axis counted from its front. Raises OutOfRangeError for those that there are not."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, places: Array) -> Array:
        low, high = (np.min(places), np.max(places)) if places.size else (0, -1)
        if low < -self.size or high >= self.size:
            raise errors.OutOfRangeError(
                f"index {low if low < -self.size else high} is out of range for an axis of size {self.size}"
            )
        return np.where(places < 0, places + self.size, places) if low < 0 else places

    def __str__(self) -> str:
        return "places"


class BlockCheck:
    """A block that passes a test."""

    def __init__(self, test: Callable[[Any], Any], error: Callable[[Any], Exception]) -> None:
        self.test = test
        self.error = error

    def __call__(self, x: Array) -> Array:
        values = np.asarray(x)
        if values.size and not self.test(values):
            raise self.error(values)
        return x

    def __str__(self) -> str:
        return "check"


class Part:
    """One of several results."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, results: Any) -> Any:
        return block(results)[self.number]

    def __str__(self) -> str:
        return "part"
