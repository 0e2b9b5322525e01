"""Data types: NumPy's dtype objects serve for all backends, and leaves translate.

Promotion follows the array API standard 2024.12 where it says something; across kinds, which it
leaves open, the higher kind wins (bool < integer < real < complex), as in PyTorch and JAX: int64 with
float32 is float32. Python scalars are weak: they adapt to the tensor, and a float that meets integers
gives the default float32.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import sys
from typing import Any

import numpy as np

from adjoint import errors

DType = np.dtype[Any]

bool = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

default_float, default_int, default_complex = float32, int64, complex64

ALL = (
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128,
)  # fmt: skip
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def as_dtype(dtype: Any) -> DType:
    """The dtype that a user means: a dtype object, a NumPy or Python type, or a name.

    Raises DtypeError for what no backend stores.

    >>> as_dtype("float32"), as_dtype(float), as_dtype(np.int8)
    (dtype('float32'), dtype('float32'), dtype('int8'))
    """
    if dtype is float or dtype is complex:  # Python's types mean the defaults
        return default_float if dtype is float else default_complex
    try:
        found = np.dtype(dtype).newbyteorder("=")
    except (TypeError, ValueError):
        found = None
    for known in ALL:
        if found is not None and found == known:  # NumPy takes None for float64
            return known  # the one object, so that `is` compares
    raise errors.DtypeError(f"dtype {dtype!r} is not supported; the dtypes are {', '.join(map(str, ALL))}")


@functools.cache
def promote(x: DType, y: DType) -> DType:
    """The dtype in which two tensors meet.

    Raises DtypeError for uint64 with a signed integer, which no integer dtype holds.

    >>> promote(int8, uint8), promote(int64, float32), promote(float64, complex64)
    (dtype('int16'), dtype('float32'), dtype('complex128'))
    """
    high, low = (x, y) if _RANK[x.kind] >= _RANK[y.kind] else (y, x)
    if _RANK[high.kind] == _RANK[low.kind] or (high.kind == "c" and low.kind == "f"):
        joined = np.promote_types(x, y)
        if joined.kind == "f" and high.kind != "f":
            raise errors.DtypeError(f"{x} and {y} have no common integer dtype; convert one with astype")
        return as_dtype(joined)
    return high


def promote_scalar(dtype: DType, scalar: complex) -> DType:
    """The dtype in which a tensor meets a Python scalar.

    >>> promote_scalar(int64, 0.5), promote_scalar(float64, 2), promote_scalar(float32, 1j)
    (dtype('float32'), dtype('float64'), dtype('complex64'))
    """
    if isinstance(scalar, complex):
        return promote(dtype, default_complex) if dtype.kind in "fc" else default_complex
    if isinstance(scalar, float):
        return dtype if dtype.kind in "fc" else default_float
    if dtype.kind == "b" and scalar is not True and scalar is not False:
        return default_int
    return dtype


def floating(dtype: DType) -> DType:
    """The dtype itself if it is real or complex floating, else the default."""
    return dtype if dtype.kind in "fc" else default_float


def counting(dtype: DType) -> DType:
    """The dtype itself, but the default integer for booleans."""
    return default_int if dtype.kind == "b" else dtype


def summing(dtype: DType) -> DType:
    """The dtype that elements are summed in: float32 for float16, whose sums soon overflow, else the same."""
    return float32 if dtype is float16 else dtype


def limits(dtype: DType) -> tuple[float, float]:
    """The smallest and the largest value, as Python scalars; infinite for floating dtypes."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return -float("inf"), float("inf")


def values_of(values: Any, dtype: Any = None, name: str = "tensor") -> np.ndarray[Any, Any]:
    """Anything with values as a NumPy array of a supported dtype; Python floats become float32.

    Raises ShapeError for ragged lists, RangeError for integers that are too large, DtypeError for what is no number,
    or has a mask, TrackedError for what another library tracks.
    """
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except errors.AdjointError:
        raise
    except ValueError as error:
        raise errors.ShapeError(f"{name}: the nested lists do not form an array: {error}") from None
    except (TypeError, RuntimeError) as error:
        raise unreadable(values, name, error) from error
    if array.dtype.kind == "f" and isinstance(values, (list, tuple)) and array.size and abs(array).max() >= 2.0**63:
        array = _unrounded(values, array)
    if array.dtype.kind == "O" and all(isinstance(value, int) for value in array.flat):
        array = _of_large_integers(array, default_int if dtype is None else as_dtype(dtype), name)
    if array.dtype.kind in "OUSmMV":
        raise errors.DtypeError(
            f"{name}: expected numbers or booleans, received {type(values).__name__} of {array.dtype}"
        )
    if dtype is not None:
        wanted = as_dtype(dtype)
        if array.dtype.kind == "c" and wanted.kind not in "cb":
            raise errors.DtypeError(f"{name}: complex values do not fit in {wanted}; take .real first")
    elif hasattr(values, "dtype") or _has_numpy(values):
        wanted = as_dtype(array.dtype)
    else:
        wanted = {"f": default_float, "c": default_complex}.get(array.dtype.kind) or as_dtype(array.dtype)
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size and not hasattr(values, "dtype"):
        low, high = int(array.min()), int(array.max())
        least, most = limits(wanted)
        if low < least or high > most:
            raise errors.RangeError(f"{name}: the integer {low if low < least else high} does not fit in {wanted}")
    return array.astype(wanted, copy=False)


def _unrounded(values: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers of 64 bits with and without sign, which NumPy meets in float64: as they are, if they are that."""
    exact = np.asarray(values, dtype=object)
    if not all(isinstance(value, (int, np.integer)) for value in exact.flat):
        return array
    fits = min(exact.flat) >= 0 and max(exact.flat) <= np.iinfo(np.uint64).max
    return exact.astype(np.uint64) if fits else exact


def _of_large_integers(array: np.ndarray[Any, Any], wanted: DType, name: str) -> np.ndarray[Any, Any]:
    """Python's integers where 64 bits do not hold them; floats may."""
    largest = max(array.flat, key=abs, default=0)
    if abs(largest) < 2**63:
        return array  # of objects, as the user made it
    if wanted.kind in "fc":
        try:
            return array.astype(float64)
        except OverflowError:
            pass
    raise errors.RangeError(f"{name}: the integer {errors.shown(largest)} overflows {wanted}")


def refuse_masked(values: Any, name: str) -> None:
    """Raises DtypeError for NumPy's masked arrays, also in lists: nothing here would heed the mask."""
    masked = sys.modules.get("numpy.ma")  # NumPy imports it for its first user
    if masked is not None and (isinstance(values, masked.MaskedArray) or holds(values, masked.MaskedArray)):
        raise errors.DtypeError(
            f"{name}: masked arrays are not supported, their mask would be lost; pass x.filled(value), or x.data and "
            "ad.where with the mask"
        )


def holds(values: Any, kind: type) -> builtins.bool:
    """Whether it is a list, at any depth, with something of this kind in it."""
    level = values if isinstance(values, (list, tuple)) else ()
    seen: set[int] = set()  # a list may contain itself
    while level:
        kinds = set(map(type, level))
        if any([issubclass(found, kind) for found in kinds]):
            return True
        nested = any([issubclass(found, (list, tuple)) for found in kinds])
        lists = {id(x): x for x in level if isinstance(x, (list, tuple))} if nested else {}
        level = list(itertools.chain(*[x for key, x in lists.items() if key not in seen]))
        seen.update(lists)
    return False


def unreadable(array: Any, name: str, error: Exception) -> errors.AdjointError:
    """The error for another library's array that it does not hand out."""
    kind, dtype = type(array).__name__, getattr(array, "dtype", None)
    if getattr(array, "requires_grad", False):
        return errors.TrackedError(
            f"{name}: the {kind} is tracked by {type(array).__module__}, and gradients do not flow from one library to "
            f"the other; pass x.detach() ({error})"
        )
    if kind.endswith("Tracer"):
        return errors.TrackedError(
            f"{name}: JAX traces the array of shape {array.shape}, which has no values to read before the compiled "
            "function runs; device='jax' takes it as it is"
        )
    return errors.DtypeError(
        f"{name}: a {kind} of {dtype} cannot be read: {error}; make it a plain array in main memory, of a dtype that "
        "NumPy has too, such as float32"
    )


def _has_numpy(values: Any) -> builtins.bool:
    """Whether a nested list holds NumPy scalars or arrays, which keep their dtype."""
    return isinstance(first_value(values), (np.generic, np.ndarray))


def first_value(values: Any) -> Any:
    """The first value of nested lists, as deep as NumPy goes: a list may contain itself."""
    for _ in range(64):
        if not isinstance(values, (list, tuple)) or not values:
            break
        values = values[0]
    return values
