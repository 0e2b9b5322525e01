"""Data types: NumPy's dtype objects serve for all backends, and leaves translate.

Promotion follows the array API standard 2025.12 where it says something; across kinds, which it
leaves open, the higher kind wins (bool < integer < real < complex), as in PyTorch and JAX: int64 with
float32 is float32. Python scalars are weak: they adapt to the tensor, and a float that meets integers
gives the default dtype, which is float32 unless it was set.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import importlib
import itertools
import operator
import os
import re
import sys
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.locks import lock
from adjoint.scopes import Block, Here, Using, Variable, here

DType = np.dtype[Any]

bool: DType = np.dtype(np.bool_)
int8: DType = np.dtype("int8")
int16: DType = np.dtype("int16")
int32: DType = np.dtype("int32")
int64: DType = np.dtype("int64")
uint8: DType = np.dtype("uint8")
uint16: DType = np.dtype("uint16")
uint32: DType = np.dtype("uint32")
uint64: DType = np.dtype("uint64")
float16: DType = np.dtype("float16")
float32: DType = np.dtype("float32")
float64: DType = np.dtype("float64")
complex64: DType = np.dtype("complex64")
complex128: DType = np.dtype("complex128")

default_int = int64

ALL = (
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128,
)  # fmt: skip
_ITSELF = {d: d for d in ALL}
# NumPy's letters for kinds. V is what it says of ml_dtypes' bfloat16; no structured dtype, which has it too, gets in
FLOATING = "fV"
INEXACT = "fcV"
RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # of kinds, which meet in the higher one

_NAME = re.compile(r"[<>=|]?[?b-zB-Z]\w{0,20}")  # NumPy warns of names that begin with an a

_PYTHONS: frozenset[type] = frozenset([builtins.bool, int, float, complex])

process_default: DType | None = None  # the default of the process, once it is set or asked for
_setting = lock()

chosen_in_block: Variable[DType | None] = contextvars.ContextVar(
    "adjoint_dtype", default=None
)  # by a user, if not None


def as_dtype(dtype: Any, name: str = "") -> DType:
    """The dtype that a user means: a dtype object, a NumPy or Python type, or a name.

    Raises DtypeError for what no backend stores, with the name of the function, if there is one; MissingLibraryError
    for bfloat16 without ml_dtypes.

    >>> as_dtype("float32"), as_dtype(float), as_dtype(np.int8)
    (dtype('float32'), dtype('float64'), dtype('int8'))
    """
    found = None
    if isinstance(dtype, np.dtype) and _ITSELF.get(dtype) is dtype:
        return dtype
    if isinstance(dtype, str) and dtype == "bfloat16":
        return bfloat16_dtype()
    if isinstance(dtype, (str, type, np.dtype)) or isinstance(getattr(dtype, "dtype", None), np.dtype):
        try:
            if not isinstance(dtype, str) or _NAME.fullmatch(dtype):
                found = np.dtype(dtype)
                found = found if is_bfloat16(found) else found.newbyteorder("=")
        except (TypeError, ValueError):
            pass
    for known in ALL:
        if found is not None and found == known:
            return known  # the one object, so that `is` compares
    if found is not None and is_bfloat16(found):
        return bfloat16_dtype()
    where = f"{name}: " if name else ""
    raise errors.DtypeError(
        f"{where}dtype {errors.shown(dtype)} is not supported; the dtypes are {', '.join(map(str, ALL))}, and "
        "bfloat16 with ml_dtypes"
    )


@functools.cache
def bfloat16_dtype() -> DType:
    """NumPy's object for bfloat16, which ml_dtypes has. Raises MissingLibraryError where that is not installed."""
    try:
        found: DType = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
        return found
    except ImportError as error:
        raise errors.MissingLibraryError(
            "bfloat16: NumPy has it through ml_dtypes; pip install 'adjoint[bfloat16]'"
        ) from error


def is_bfloat16(dtype: DType) -> builtins.bool:
    """Whether a dtype of NumPy's is ml_dtypes' bfloat16: of those here it is the only one of the kind V."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def of_numbers(dtype: DType, kinds: str) -> builtins.bool:
    """Whether a dtype of any array of NumPy's is of one of these kinds: V may be that of a structure."""
    return dtype.kind in kinds and (dtype.kind != "V" or is_bfloat16(dtype))


def no_bfloat16(where: str) -> errors.DtypeError:
    """The error of a leaf whose library stores bfloat16 at most, and does not compute in it."""
    return errors.DtypeError(
        f"{where} has no bfloat16; device='torch' and device='jax' have it: write x.astype(ad.float32) for this one"
    )


def __getattr__(name: str) -> Any:
    if name != "bfloat16":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return bfloat16_dtype()


def as_real(dtype: Any, name: str) -> DType:
    """A real floating dtype; raises DtypeError for others."""
    found = as_dtype(dtype)
    if found.kind not in FLOATING:
        raise errors.DtypeError(f"{name}: expected a real floating dtype, received {found}")
    return found


# --- the default dtype ---


def default_dtype() -> DType:
    """The dtype of tensors made from Python floats, or without a dtype; complex ones have the same precision.

    That of the innermost `with use_dtype(...)` of this context; else, in a function that a derivative transform runs on
    NumPy arrays or numbers, what the arguments it is differentiated by are promoted to; else what `set_default_dtype`
    set for the process, else the environment variable `ADJOINT_DTYPE`, else float32.
    """
    chosen = None if chosen_in_block.get() is None else chosen_dtype()
    if chosen is not None:
        return chosen
    block = here.get()
    while block is not None:
        dtype: DType | None = block.value[2]
        if dtype is not None and block.holder() is not None:
            return dtype
        block = block.outer
    return _of_the_process() if process_default is None else process_default


def chosen_dtype() -> DType | None:
    """The dtype of the innermost `with use_dtype(...)`, if there is one."""
    block = chosen_in_block.get()
    while block is not None:
        if block.holder() is not None:
            return block.value
        block = block.outer
    return None


def drawn_dtype() -> DType:
    """The default dtype without that of transforms, in which a seed would give other random numbers."""
    chosen = chosen_dtype()
    if chosen is not None:
        return chosen
    return _of_the_process() if process_default is None else process_default


def choosing(dtype: DType | None) -> Block[DType | None]:
    """In this block the user chose this dtype, or none."""
    return Block(chosen_in_block, dtype)


def creating_in(dtype: DType) -> Block[Here]:
    """In this block this is the default dtype, unless the user chose one."""
    return Block(here, (None, None, dtype))


def default_complex() -> DType:
    """The complex dtype of the default precision."""
    return complex128 if default_dtype() is float64 else complex64


def default_on(place: Any, kind: str = "f") -> DType:
    """The default dtype on a backend, real or complex: the next narrower one that its library has."""
    dtype = default_dtype() if kind == "f" else default_complex()
    return dtype if dtype is float32 or dtype is complex64 else place.leaf.widest(dtype)


def _of_the_process() -> DType:
    global process_default
    if process_default is None:
        name = os.environ.get("ADJOINT_DTYPE")
        try:
            found = as_real(name, "default_dtype") if name else float32
        except errors.DtypeError as error:
            raise errors.DtypeError(f"the environment variable ADJOINT_DTYPE: {error}") from None
        with _setting:  # another thread may have set it meanwhile
            process_default = found if process_default is None else process_default
    return process_default


def set_default_dtype(dtype: Any, /) -> None:
    """Set the default dtype of the process: every thread sees it, where no `with ad.use_dtype(...)` says otherwise.

    Raises DtypeError for what is no real floating dtype; nothing is changed then.

    >>> import adjoint as ad
    >>> ad.set_default_dtype(ad.float64)
    >>> ad.tensor([1.0]).dtype, ad.tensor([1j]).dtype
    (dtype('float64'), dtype('complex128'))
    >>> ad.set_default_dtype(ad.float32)
    """
    global process_default
    found = as_real(dtype, "set_default_dtype")
    with _setting:
        process_default = found


class use_dtype(Using[DType]):
    """Make this the default dtype in a `with` block: of this context alone, so other threads do not see it.

    It counts in functions of transforms too, and for random numbers. For the process there is `ad.set_default_dtype`. A
    call without `with` changes nothing: when its result is dropped, a DtypeError says so.

    Raises DtypeError for what is no real floating dtype.

    >>> import adjoint as ad
    >>> with ad.use_dtype(ad.float64):
    ...     ad.zeros(2).dtype
    dtype('float64')
    """

    _variable, _setter, _what, _error = chosen_in_block, "set_default_dtype", "default dtype", errors.DtypeError

    def __init__(self, dtype: Any) -> None:
        found = as_real(dtype, "use_dtype")
        super().__init__(found, found.name, found)


# --- promotion ---


@functools.cache
def promote(x: DType, y: DType) -> DType:
    """The dtype in which two tensors meet.

    bfloat16 with another floating dtype is at least float32, which holds both.
    Raises DtypeError for uint64 with a signed integer, which no integer dtype holds.

    >>> promote(int8, uint8), promote(int64, float32), promote(float64, complex64)
    (dtype('int16'), dtype('float32'), dtype('complex128'))
    """
    if x is y:
        return x
    high, low = (x, y) if RANK[x.kind] >= RANK[y.kind] else (y, x)
    if RANK[high.kind] == RANK[low.kind] or (high.kind == "c" and low.kind in FLOATING):
        joined = np.promote_types(*[float32 if dtype.kind == "V" else dtype for dtype in (x, y)])
        if joined.kind == "f" and high.kind not in FLOATING:
            raise errors.DtypeError(f"{x} and {y} have no common integer dtype; convert one with astype")
        return as_dtype(joined)
    return high


def promote_scalar(dtype: DType, scalar: complex) -> DType:
    """The dtype in which a tensor meets a Python scalar.

    >>> promote_scalar(int64, 0.5), promote_scalar(float64, 2), promote_scalar(float32, 1j)
    (dtype('float32'), dtype('float64'), dtype('complex64'))
    """
    if isinstance(scalar, complex):
        return promote(dtype, complex64) if dtype.kind in INEXACT else default_complex()
    if isinstance(scalar, float):
        return dtype if dtype.kind in INEXACT else default_dtype()
    if dtype.kind == "b" and scalar is not True and scalar is not False:
        return default_int
    return dtype


def floating(dtype: DType) -> DType:
    """The dtype itself if it is real or complex floating, else the default."""
    return dtype if dtype.kind in INEXACT else default_dtype()


@functools.cache
def precision(kinds: frozenset[DType | None]) -> DType | None:
    """The real dtype of the precision that floating dtypes are promoted to; None where None is among them.

    >>> precision(frozenset([float32, complex128]))
    dtype('float64')
    """
    if None in kinds or not kinds:
        return None
    joined = functools.reduce(promote, [kind for kind in kinds if kind is not None])
    return as_dtype(f"f{joined.itemsize // 2}") if joined.kind == "c" else joined


def counting(dtype: DType) -> DType:
    """The dtype itself, but the default integer for booleans."""
    return default_int if dtype.kind == "b" else dtype


def summing(dtype: DType) -> DType:
    """The dtype that elements are summed in: float32 for float16 and bfloat16, whose sums soon overflow or round."""
    return float32 if dtype is float16 or dtype.kind == "V" else dtype


def finfo(dtype: DType) -> Any:
    """NumPy's `finfo` of a floating dtype, for bfloat16 that of ml_dtypes."""
    return importlib.import_module("ml_dtypes").finfo(dtype) if dtype.kind == "V" else np.finfo(dtype)


def limits(dtype: DType) -> tuple[float, float]:
    """The smallest and the largest value, as Python scalars; infinite for floating dtypes."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return -float("inf"), float("inf")


# --- values ---


def refuse_complex(found: DType, wanted: DType, name: str) -> None:
    """Raises DtypeError where values of one dtype would lose their imaginary parts in the other."""
    if found.kind == "c" and wanted.kind not in "cb":
        raise errors.DtypeError(f"{name}: complex values do not fit in {wanted}; take .real first")


def as_numbers(dtype: np.dtype[Any]) -> str:
    """How an array of something else becomes one of numbers: the end of a message."""
    if dtype.names:
        return f"; take a field of it, as in x[{dtype.names[0]!r}]"
    if dtype.kind == "M":
        return "; dates are numbers of seconds by (x - x[0]) / np.timedelta64(1, 's')"
    if dtype.kind == "m":
        return "; times are numbers of seconds by x / np.timedelta64(1, 's')"
    return "; x.astype(float) reads numbers that are stored so"


def values_of(
    values: Any, dtype: Any = None, name: str = "tensor", place: Any = None, wide: builtins.bool = False
) -> np.ndarray[Any, Any]:
    """Anything with values as a NumPy array of a supported dtype.

    Python's floats get the default of the `place`, or double precision where they are beside something `wide`: the
    result is of that dtype, and would have the digits of the other one.

    Raises ShapeError for ragged lists, RangeError for integers that are too large, DtypeError for what is no number,
    or has a mask, TrackedError for what another library tracks.
    """
    if dtype is None and values.__class__ is np.ndarray and _ITSELF.get(values.dtype) is values.dtype:
        return values
    array = array_of(values, name)
    if (
        array.dtype.kind == "f"
        and isinstance(values, (list, tuple))
        and array.size
        and float(abs(array).max()) >= 2**63
    ):
        array = _unrounded(values, array)
    if array.dtype.kind == "O" and all(isinstance(value, int) for value in array.flat):
        array = _of_large_integers(array, default_int if dtype is None else as_dtype(dtype), name)
    if array.dtype.kind in "OUSmMV" and not is_bfloat16(array.dtype):
        raise errors.DtypeError(
            f"{name}: expected numbers or booleans, received {errors.shown(values)} of type {type(values).__name__}"
            + (as_numbers(array.dtype) if hasattr(values, "astype") else "")
        )
    if dtype is not None:
        wanted = as_dtype(dtype)
        refuse_complex(array.dtype, wanted, name)
    elif array.dtype.kind not in INEXACT or hasattr(values, "dtype"):
        wanted = as_dtype(array.dtype, name)
    else:
        kinds = _kinds(values)
        met = as_dtype(np.result_type(*kinds)) if kinds else None
        if met is not None and met.kind in INEXACT:
            wanted = promote_scalar(met, 1j) if array.dtype.kind == "c" else met
        elif wide:
            wanted = complex128 if array.dtype.kind == "c" else float64
            wanted = wanted if place is None else place.leaf.widest(wanted)
        elif place is not None:
            wanted = default_on(place, array.dtype.kind)
        else:
            wanted = default_complex() if array.dtype.kind == "c" else default_dtype()
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size and not hasattr(values, "dtype"):
        low, high = int(array.min()), int(array.max())
        least, most = limits(wanted)
        if low < least or high > most:
            raise errors.RangeError(
                f"{name}: the integer {low if low < least else high} does not fit in {wanted}; take a wider dtype"
            )
    array = array.astype(wanted, copy=False)
    return array if array.dtype is wanted else array.view(wanted)  # other libraries have objects of their own


def array_of(values: Any, name: str) -> np.ndarray[Any, Any]:
    """What NumPy makes of values, of any dtype; raises as `values_of`, and OutOfMemoryError."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except errors.AdjointError:
        raise
    except ValueError as error:
        raise errors.ShapeError(f"{name}: the nested lists do not form an array: {errors.said(error)}") from None
    except MemoryError:
        raise errors.OutOfMemoryError(
            f"{name}: {errors.shown(values)} does not fit into memory as an array; pass fewer values"
        ) from None
    except (TypeError, RuntimeError) as error:
        if is_parameter(values):
            return array_of(values.detach(), name)
        raise unreadable(values, name, error) from error


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
    if wanted.kind in INEXACT:
        try:
            return array.astype(float64)
        except OverflowError:
            pass
    raise errors.RangeError(
        f"{name}: the integer {errors.shown(largest)} overflows {wanted}; take a smaller one or a wider dtype"
    )


def refuse_masked(values: Any, name: str) -> None:
    """Raises DtypeError for NumPy's masked arrays, also in lists: nothing here would heed the mask."""
    if is_masked(values):
        raise errors.DtypeError(
            f"{name}: masked arrays are not supported, their mask would be lost; pass x.filled(value), or x.data and "
            "ad.where with the mask"
        )


def is_masked(values: Any) -> builtins.bool:
    """Whether it is one of NumPy's masked arrays, or a list with one in it."""
    masked = sys.modules.get("numpy.ma")  # NumPy imports it for its first user
    return masked is not None and (isinstance(values, masked.MaskedArray) or holds(values, masked.MaskedArray))


def holds(values: Any, kind: type | tuple[type, ...]) -> builtins.bool:
    """Whether it is a list, at any depth, with something of this kind in it, or one of these."""
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


def is_table(values: Any) -> builtins.bool:
    """Whether it is a Series or a DataFrame, or the like: what has numbers with labels, and hands the numbers out."""
    return hasattr(values, "to_numpy") and hasattr(values, "__array__")


def is_parameter(array: Any) -> builtins.bool:
    """Whether it is a leaf that PyTorch tracks, whose values are no result of a graph that would be lost."""
    return builtins.bool(getattr(array, "requires_grad", False)) and getattr(array, "grad_fn", array) is None


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
    if str(dtype).endswith("bfloat16"):
        return no_bfloat16(f"{name}: NumPy")
    return errors.DtypeError(
        f"{name}: a {kind} of {dtype} cannot be read: {error}; make it a plain array in main memory, of a dtype that "
        "NumPy has too, such as float32"
    )


def is_wide(value: Any) -> builtins.bool:
    """Whether a tensor or an array is in double precision."""
    dtype = getattr(value, "dtype", None)
    return dtype is float64 or dtype is complex128


def _kinds(values: Any) -> set[np.dtype[Any]]:
    """The data types in nested lists: of NumPy's scalars, arrays and other buffers. Python's numbers have none."""
    found: set[np.dtype[Any]] = set()
    numbers = (int, float)  # also those that stand for others
    level: Any = values if isinstance(values, (list, tuple)) else [values]
    while level:
        first = type(level[0])  # mostly that of all, and counting is faster than a set
        classes = {first} if operator.countOf(map(type, level), first) == len(level) else set(map(type, level))
        if classes <= _PYTHONS:
            break
        nested = {kind for kind in classes if issubclass(kind, (list, tuple))}
        scalars = {kind for kind in classes if issubclass(kind, np.generic)}
        found.update([np.dtype(kind) for kind in scalars])
        others = classes - nested - scalars - _PYTHONS
        if others:
            found.update(
                [
                    np.asarray(x).dtype
                    for x in level
                    if type(x) in others and not isinstance(x, numbers) and has_dtype(x)
                ]
            )
        lists = level if nested == classes else [x for x in level if type(x) in nested] if nested else []
        level = list(itertools.chain.from_iterable(lists))
    return found


def has_dtype(value: Any) -> builtins.bool:
    """Whether it is a buffer or the like, of which NumPy makes an array."""
    if any([hasattr(value, name) for name in ("__array__", "__array_interface__", "__array_struct__")]):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def first_value(values: Any) -> Any:
    """The first value of nested lists, as deep as NumPy goes: a list may contain itself."""
    for _ in range(64):
        if not isinstance(values, (list, tuple)) or not values:
            break
        values = values[0]
    return values
