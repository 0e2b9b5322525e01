"""What a primitive is, the table of them, and the shape and dtype rules that many share."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.dtypes import FLOATING, INEXACT

Shape = tuple[int, ...]
DType = np.dtype[Any]


class Kind(str):
    """What sort of operation a primitive is; batching, fusion, costs and checkpointing follow it."""

    __slots__ = ()


ELEMENTWISE = Kind("elementwise")
REDUCTION = Kind("reduction")
STRUCTURAL = Kind("structural")
INDEXING = Kind("indexing")
CONTRACTION = Kind("contraction")
LINALG = Kind("linear algebra")
CREATION = Kind("creation")
RANDOM = Kind("random")
KINDS = (ELEMENTWISE, REDUCTION, STRUCTURAL, INDEXING, CONTRACTION, LINALG)  # of those that take arrays


class Spec(NamedTuple):
    """What is known of an array without looking at its values."""

    shape: Shape
    dtype: DType


class Accepted(NamedTuple):
    """What data types an operation has an answer to: their kinds, as NumPy's letters; what errors say of the others."""

    kinds: str
    words: str
    advice: str = "convert with astype"


ANY = Accepted("biu" + INEXACT, "numbers or booleans")
NUMBERS = Accepted("iu" + INEXACT, "numbers; of booleans there is ~")
REAL = Accepted("biu" + FLOATING, "real numbers", "take abs, real or imag")
ORDERED = Accepted("iu" + FLOATING, "real numbers")
COMPLEX = Accepted("c", "complex numbers", "the imaginary part of real ones is zero")
INTEGERS = Accepted("iu", "integers")
BITS = Accepted("biu", "integers or booleans")


class Primitive:
    """One operation a backend can be asked for.

    `operands` are the names of the array arguments; a last name that starts with `*` takes any
    number. `shape(*shapes, **parameters)` gives the shape of the result, or a list of them where
    there are several, or raises the error a user should read. `dtype(*dtypes, **parameters)` gives
    the result's dtype likewise. `dynamic` marks the few whose shape depends on values.

    Before a call, operands meet in one dtype, which `promotes(dtype)` may change, and which then has to
    be among what it `accepts`. For the kinds of dtypes in `identity` the result is the operand itself;
    `truth` says that of a number counts only whether it is zero. `operator` is Python's operator for it,
    without underscores, and `failure` what a matrix is that LAPACK gives up on, and the way out.
    """

    __slots__ = (
        "__weakref__",
        "accepts",
        "direct",
        "dtype",
        "dynamic",
        "failure",
        "helpers",
        "identity",
        "implementations",
        "into",
        "keeps_dtype",
        "kind",
        "name",
        "operands",
        "operator",
        "parameters",
        "promotes",
        "record",
        "results",
        "shape",
        "truth",
    )

    def __init__(
        self,
        name: str,
        kind: Kind,
        operands: str,
        parameters: str = "",
        *,
        shape: Callable[..., Any],
        dtype: Callable[..., Any],
        results: int = 1,
        dynamic: bool = False,
        accepts: Accepted = ANY,
        promotes: Callable[[DType], DType] | None = None,
        identity: str = "",
        truth: bool = False,
        operator: str = "",
        failure: tuple[str, str] = ("a matrix is singular", "a small multiple of the identity added to it may help"),
    ) -> None:
        self.name: str = name
        self.kind: Kind = kind
        self.operands: tuple[str, ...] = tuple(operands.split())
        self.parameters: tuple[str, ...] = tuple(parameters.split())
        self.shape: Callable[..., Any] = shape
        self.dtype: Callable[..., Any] = dtype
        self.keeps_dtype: bool = dtype is same_dtype  # the result has the first operand's
        self.results: int = results
        self.dynamic: bool = dynamic
        self.accepts: Accepted = accepts
        self.promotes: Callable[[DType], DType] | None = promotes
        self.identity: str = identity
        # kinds that go to the primitive as they are: promotion leaves real and complex numbers alone
        unchanged = ANY.kinds if promotes is None else INEXACT
        self.direct: str = "".join([kind for kind in unchanged if kind in accepts.kinds and kind not in identity])
        self.truth: bool = truth
        self.operator: str = operator
        self.failure: tuple[str, str] = failure
        # by class or name of leaf backend, if a user gave some; `into` those that write into their first operand
        self.implementations: dict[Any, Callable[..., Any]] = {}
        self.into: dict[Any, Callable[..., Any]] = {}
        self.record: Any = None  # of a user's primitive; those of ours are in adjoint.rules
        self.helpers: dict[
            str, Any
        ] = {}  # names in a user's rules, with the functions of the primitives that have them

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _lookup, (self.name,)

    @property
    def variadic(self) -> bool:
        """Whether the last operand stands for any number of arrays."""
        return bool(self.operands) and self.operands[-1].startswith("*")

    def promoted(self, dtype: DType, function: str | None = None) -> DType:
        """The dtype that operands which meet in this one are converted to.

        Raises DtypeError for what is refused, by the name of the function if that is another one.
        """
        if self.promotes is not None:
            dtype = self.promotes(dtype)
        if dtype.kind not in self.accepts.kinds:
            parts = dtype.kind == "c" and "f" in self.accepts.kinds
            advice = "take abs, real or imag" if parts else self.accepts.advice
            raise errors.DtypeError(
                f"{function or self.name}: expected {self.accepts.words}, received {dtype}; {advice}"
            )
        return dtype


class Table(dict[str, Primitive]):
    """All primitives by name.

    `leaving` has those of users whose functions are gone, as long as a graph needs them: rules find them by name, and
    no backend keeps an answer for them.
    """

    def __init__(self) -> None:
        self.leaving: weakref.WeakValueDictionary[str, Primitive] = weakref.WeakValueDictionary()

    def __missing__(self, name: str) -> Primitive:
        return self.leaving[name]


TABLE = Table()


def function_named(name: str, operands: str = "") -> Primitive:
    """What stands for a function that is no primitive where a node names its primitive; it is not in the table."""
    return Primitive(name, Kind("function"), operands, shape=unspecified_shape, dtype=same_dtype)


def _lookup(name: str) -> Primitive:
    return TABLE[name]


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that operands of these shapes broadcast to, by NumPy's rule.

    Raises ShapeError where they do not.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    if shapes and shapes.count(shapes[0]) == len(shapes):  # mostly they are one shape
        return tuple(shapes[0])
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for axis, sizes in enumerate(zip(*padded, strict=True)):
        larger = [size for size in sizes if size != 1]
        if any([size != larger[0] for size in larger]):
            raise errors.ShapeError(
                f"shapes {' and '.join(map(str, shapes))} do not broadcast: axis {axis - ndim} has sizes "
                f"{' and '.join(map(str, sorted(set(larger))))}; sizes must be equal or 1"
            )
        result.append(larger[0] if larger else 1)
    return tuple(result)


# --- rules that many share: shapes, then dtypes ---


def broadcast(*shapes: Shape, **_: Any) -> Shape:
    return broadcast_shapes(*shapes)


def same_shape(shape: Shape, *_: Any, **__: Any) -> Shape:
    return shape


def unspecified_shape(*_: Any, **__: Any) -> Shape:
    raise errors.ShapeError("the shape depends on the values")


def shape_given(*, shape: Shape, **_: Any) -> Shape:
    return shape


BOOL = np.dtype(np.bool_)
INDEX = np.dtype(np.int64)


def same_dtype(*dtypes: DType | None, **_: Any) -> DType:
    """The dtype of the first array among the operands."""
    return next(dtype for dtype in dtypes if dtype is not None)


def second_dtype(*dtypes: DType | None, **_: Any) -> DType:
    return next(dtype for dtype in dtypes[1:] if dtype is not None)


def bool_dtype(*_: Any, **__: Any) -> DType:
    return BOOL


def index_dtype(*_: Any, **__: Any) -> DType:
    return INDEX


def real_dtype(dtype: DType) -> DType:
    """The real dtype of the same precision: float32 for complex64, float64 for complex128."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def real_part_dtype(dtype: DType, *_: Any, **__: Any) -> DType:
    return real_dtype(dtype)


def dtype_given(*_: Any, dtype: DType, **__: Any) -> DType:
    return dtype


def declare(names: str, kind: Kind, operands: str, parameters: str = "", **rules: Any) -> None:
    for name in names.split():
        TABLE[name] = Primitive(name, kind, operands, parameters, **rules)


def result_spec(primitive: Primitive, operands: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """What a call would give: a Spec, or a list of them where there are several results.

    `operands` are Specs, or Python scalars. Raises the error a user should read where the operands
    do not fit.

    >>> f4 = np.dtype("f4")
    >>> result_spec(TABLE["matmul"], [Spec((2, 3), f4), Spec((3, 5), f4)], {})
    Spec(shape=(2, 5), dtype=dtype('float32'))
    """
    shapes = [operand.shape if isinstance(operand, Spec) else () for operand in operands]
    dtypes = [operand.dtype if isinstance(operand, Spec) else None for operand in operands]
    shape, dtype = primitive.shape(*shapes, **parameters), primitive.dtype(*dtypes, **parameters)
    if primitive.results == 1:
        return Spec(shape, dtype)
    return [Spec(*pair) for pair in zip(shape, dtype, strict=True)]
