"""Methods that NumPy's arrays have and the standard has not, with NumPy's parameters: bodies for `Tensor`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from adjoint import errors, numpy_functions
from adjoint.functions import arguments, creation, elementwise, indexing
from adjoint.functions import shape as shapes
from adjoint.operands import is_weak, operand
from adjoint.tensor import Tensor

# --- another order, other elements ---------------------------------------------------------------


def copy(x: Tensor[Any], /, order: str | None = "C") -> Tensor[Any]:
    """Another object with the same value, connected with x; it may be assigned to, also where x is a leaf."""
    return creation.asarray(x, copy=True)


def flatten(x: Tensor[Any], /, order: str | None = "C") -> Tensor[Any]:
    """As `ravel`: whether tensors share memory cannot be seen."""
    return shapes.ravel(x, order)


def transpose(x: Tensor[Any], /, *axes: Any) -> Tensor[Any]:
    """The axes in another order, given as one tuple or one by one; in reverse if none are named."""
    return numpy_functions.transpose(x, axes[0] if len(axes) == 1 else axes or None)  # type: ignore[no-any-return]


def trace(x: Tensor[Any], /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor[Any]:
    """The sums of diagonals."""
    return numpy_functions.trace(x, offset, axis1, axis2, dtype)  # type: ignore[no-any-return]


def cumsum(x: Tensor[Any], /, axis: int | None = None, dtype: Any = None) -> Tensor[Any]:
    """Running sums along an axis, or of all elements."""
    return numpy_functions.cumsum(x, axis, dtype)  # type: ignore[no-any-return]


def cumprod(x: Tensor[Any], /, axis: int | None = None, dtype: Any = None) -> Tensor[Any]:
    """Running products along an axis, or of all elements."""
    return numpy_functions.cumprod(x, axis, dtype)  # type: ignore[no-any-return]


def conjugate(x: Tensor[Any], /) -> Tensor[Any]:
    """The complex conjugate."""
    return elementwise.conj(x)


def take(x: Tensor[Any], /, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Tensor[Any]:
    """Slices at integer places along an axis, or elements of the flattened tensor."""
    return numpy_functions.take(x, indices, axis, mode)  # type: ignore[no-any-return]


def compress(x: Tensor[Any], /, condition: Any, axis: int | None = None) -> Tensor[Any]:
    """Slices along an axis where the condition holds, or such elements of the flattened tensor."""
    return numpy_functions.compress(condition, x, axis)  # type: ignore[no-any-return]


def choose(x: Tensor[Any], /, choices: Any, *, mode: str = "raise") -> Tensor[Any]:
    """Of these arrays, at each place the element of the one whose number x is there."""
    return numpy_functions.choose(x, choices, mode)  # type: ignore[no-any-return]


# --- arithmetic ----------------------------------------------------------------------------------


def __divmod__(x: Tensor[Any], y: Any, /) -> Any:
    whole = x.__floordiv__(y)
    return NotImplemented if whole is NotImplemented else (whole, x % y)


def __rdivmod__(y: Tensor[Any], x: Any, /) -> Any:
    whole = y.__rfloordiv__(x)
    return NotImplemented if whole is NotImplemented else (whole, x % y)


# --- changes of the object -----------------------------------------------------------------------


def fill(x: Tensor[Any], /, value: Any) -> None:
    """`x[...] = value`."""
    x[...] = value


def put(x: Tensor[Any], /, indices: Any, values: Any, mode: str = "raise") -> None:
    """Values assigned to places of the flattened tensor, as `x[...] = v` does; too few are repeated."""
    arguments.as_choice(mode, "put", "mode", ("raise", "wrap", "clip"))
    places, new = shapes.ravel(operand(indices, x, "put")), numpy_functions.as_operands([x, values])[1]
    if not is_weak(new):
        new = shapes.ravel(operand(new, x, "put"))
        if not new.size:
            return
        if new.size not in (1, places.size):
            new = indexing.take(new, np.arange(places.size) % new.size)
    if not places.size:
        return
    if mode != "raise":
        places = places % x.size if mode == "wrap" else elementwise.clip(places, 0, x.size - 1)
    line = shapes.ravel(x)
    line[places] = new
    x[...] = shapes.reshape(line, x.shape)


def _in_place(name: str, instead: str) -> Any:
    """What NumPy does to the array itself: a statement `x.sort()` that leaves x as it was would be a silent mistake."""

    def refuse(x: Tensor[Any], /, *args: Any, **options: Any) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"x.{name}() changes an array of NumPy's, and a tensor is a value: write {instead}"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


sort: Any = _in_place("sort", "x = ad.sort(x), or x[...] = ad.sort(x) to give the object its new value")
partition: Any = _in_place("partition", "x = ad.partition(x, k), or x[...] = ad.partition(x, k)")
resize: Any = _in_place("resize", "x.reshape(shape) for as many elements; ad.resize repeats them, ad.pad adds zeros")
