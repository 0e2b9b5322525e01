"""Data types and sizes under PyTorch's names, and how operands of an operation meet in one type."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np

from adjoint import errors
from adjoint.dtypes import RANK
from adjoint.dtypes import promote as promote

_CLASSES = {  # what x.type() says
    "float16": "Half", "float32": "Float", "float64": "Double", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


class dtype:
    """A data type, as `torch.float32`; `of_numpy` is NumPy's object for it."""

    __slots__ = ("__weakref__", "class_name", "name", "of_numpy")
    __module__ = "adjoint.torch"
    name: str
    class_name: str
    of_numpy: Any

    def __init__(self, name: str) -> None:
        for attribute, value in (("name", name), ("class_name", _CLASSES[name]), ("of_numpy", np.dtype(name))):
            object.__setattr__(self, attribute, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"'torch.dtype' object attribute {name!r} is read-only")

    @property
    def is_floating_point(self) -> bool:
        return bool(self.of_numpy.kind == "f")

    @property
    def is_complex(self) -> bool:
        return bool(self.of_numpy.kind == "c")

    @property
    def is_signed(self) -> bool:
        return self.of_numpy.kind in "ifc"

    @property
    def itemsize(self) -> int:
        return int(self.of_numpy.itemsize)

    def to_real(self) -> dtype:
        """The type of the parts of a complex number."""
        return of_numpy(np.dtype(f"f{self.itemsize // 2}")) if self.is_complex else self

    def to_complex(self) -> dtype:
        """The complex type with parts of this one."""
        return of_numpy(complex_of(self.of_numpy)) if self.is_floating_point else self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # of the face's names


class _Absent(dtype):
    """A type that NumPy has not: it can be named and compared, and there are no tensors of it."""

    __slots__ = ()

    def __init__(self, name: str, class_name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "class_name", class_name)

    @property
    def is_floating_point(self) -> bool:
        return True

    @property
    def is_complex(self) -> bool:
        return False

    @property
    def is_signed(self) -> bool:
        return True

    @property
    def itemsize(self) -> int:
        return 2

    @property
    def of_numpy(self) -> Any:
        raise NotImplementedError(
            f"adjoint.torch: there are no tensors of torch.{self.name}, because NumPy has no such type; "
            "torch.float32 has all its values"
        )


DTYPES = {name: dtype(name) for name in _CLASSES}
bfloat16: dtype = _Absent("bfloat16", "BFloat16")
_OF_NUMPY = {known.of_numpy: known for known in DTYPES.values()}
_PYTHONS = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def of_numpy(given: Any) -> dtype:
    """The type of NumPy's dtype object."""
    try:
        return _OF_NUMPY[given]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {given}. The only supported types are: {', '.join(_CLASSES)}."
        ) from None


def numpy_dtype(given: Any) -> Any:
    """NumPy's object for what a caller gave as `dtype=`; None for None."""
    if given is None:
        return None
    if isinstance(given, dtype):
        return given.of_numpy
    if isinstance(given, type) and given in _PYTHONS:
        return np.dtype(_PYTHONS[given])
    raise TypeError(f"dtype must be a torch.dtype, not {type(given).__name__}")


class finfo:
    """The bounds of a floating-point type, by default of the default one."""

    __module__ = "adjoint.torch"

    bits: int
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __init__(self, *types: Any) -> None:
        given = types[0] if types else get_default_dtype()
        if not isinstance(given, dtype):
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {type(given).__name__}")
        if given is bfloat16:
            self.dtype: str = "bfloat16"
            self.bits, self.eps, self.resolution = 16, 2.0**-7, 0.01
            self.max, self.tiny = (2.0 - 2.0**-7) * 2.0**127, 2.0**-126
            self.min, self.smallest_normal = -self.max, self.tiny
            return
        if not (given.is_floating_point or given.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        known = given.to_real()
        found = np.finfo(known.of_numpy)
        self.bits = found.bits
        self.dtype = known.name
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        self.tiny = self.smallest_normal = float(found.smallest_normal)
        self.resolution = 10.0**-found.precision

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join([f'{name}={getattr(self, name):g}' for name in names])}, dtype={self.dtype})"


class iinfo:
    """The bounds of a type of integers."""

    __module__ = "adjoint.torch"

    bits: int
    max: int
    min: int

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' must be torch.dtype, not {errors.shown(type)}")
        if type is bfloat16 or type.of_numpy.kind not in "iu":
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        found = np.iinfo(type.of_numpy)
        self.bits, self.max, self.min = found.bits, int(found.max), int(found.min)
        self.dtype: str = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one type may be written to a tensor of another."""
    for d in (from_, to):
        if not isinstance(d, dtype):
            raise TypeError(f"can_cast(): expected a torch.dtype, received {errors.shown(d)}")
    from_, to = (DTYPES["float16"] if d is bfloat16 else d for d in (from_, to))  # of one kind
    return RANK[from_.of_numpy.kind] <= RANK[to.of_numpy.kind]


def check_cast(found: Any, wanted: Any) -> None:
    """Raise RuntimeError for a result of one of NumPy's dtypes that does not go into a tensor of another."""
    if found is not wanted and RANK[found.kind] > RANK[wanted.kind]:
        kinds = [of_numpy(kind).class_name for kind in (found, wanted)]
        raise RuntimeError(f"result type {kinds[0]} can't be cast to the desired output type {kinds[1]}") from None


class Size(tuple[int, ...]):
    """The sizes of a tensor's axes."""

    __slots__ = ()
    __module__ = "adjoint.torch"

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, i: SupportsIndex | slice) -> Any:
        found: Any = tuple.__getitem__(self, i)
        return Size(found) if isinstance(i, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))


# --- the default type ------------------------------------------------------------------------------

_default = [DTYPES["float32"]]


def get_default_dtype() -> dtype:
    """The type of tensors made of Python's floats; float32 until it is set."""
    return _default[0]


def set_default_dtype(d: dtype) -> None:
    """Make another floating type the default one."""
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type; received {d}")
    d.of_numpy  # noqa: B018  # raises if there are no tensors of it
    _default[0] = d


def default_float() -> Any:
    return _default[0].of_numpy


def default_complex() -> Any:
    return complex_of(_default[0].of_numpy)


def complex_of(real: Any) -> Any:
    """NumPy's complex dtype with parts of this one; of half precision there is none, and single serves."""
    return np.dtype("complex128") if real.itemsize == 8 else np.dtype("complex64")


# --- layouts, orders in memory -------------------------------------------------------------------


class layout(str):
    """How the values of a tensor are kept: `torch.strided` in all; the others are names to compare with."""

    __slots__ = ()
    __module__ = "adjoint.torch"
    __repr__ = str.__str__


class memory_format(str):
    """The order of a tensor's axes in memory, which functions are asked for."""

    __slots__ = ()
    __module__ = "adjoint.torch"
    __repr__ = str.__str__


strided: layout = layout("torch.strided")
LAYOUTS: dict[str, layout] = {
    "strided": strided,
    **{
        name: layout(f"torch.{name}")
        for name in "jagged sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
    },
}
MEMORY_FORMATS: dict[str, memory_format] = {
    name: memory_format(f"torch.{name}")
    for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
}


# --- promotion -------------------------------------------------------------------------------------


def dtype_of_number(value: Any) -> Any:
    """The dtype that one of Python's numbers brings along: floats the default one."""
    if isinstance(value, bool):
        return np.dtype(bool)
    if isinstance(value, int):
        return np.dtype("int64")
    return default_complex() if isinstance(value, complex) else default_float()


def _combined(higher: Any, lower: Any) -> Any:
    """What counts more keeps its type, if its category is not below that of the other."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.kind == "c":
        return higher
    if higher.kind == "f":
        return complex_of(higher) if lower.kind == "c" else higher
    if higher.kind == "b" or lower.kind in "fc":
        return promote(higher, lower)
    return higher


def result_dtype(operands: Any) -> Any:
    """The dtype of an operation on tensors and numbers: tensors with axes count before those without, then numbers.

    See "type promotion" in PyTorch's page on tensor attributes.
    """
    ranks: list[Any] = [None, None, None]
    for x in operands:
        known = getattr(x, "_dtype", None)
        if known is None:
            rank, known = 2, dtype_of_number(x)
        else:
            rank = 0 if x.ndim else 1
        ranks[rank] = known if ranks[rank] is None else promote(ranks[rank], known)
    return _combined(ranks[0], _combined(ranks[1], ranks[2]))
