"""The table of primitives: what a backend can be asked to do.

A primitive is a name with a kind, the names of its operands (arrays, positional), the names of its
parameters (static, by keyword), the number of its results, and two rules that say what shape and
dtype come out. Nothing here computes: leaf backends implement primitives, `rules` says how they
are differentiated, and functions on tensors validate and normalise what users pass.

What a call may rely on: axes are non-negative and in range, `axis` of a reduction is a tuple, all
floating operands of a call share one dtype or are Python scalars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors

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


class Primitive:
    """One operation a backend can be asked for.

    `operands` are the names of the array arguments; a last name that starts with `*` takes any
    number. `shape(*shapes, **parameters)` gives the shape of the result, or a list of them where
    there are several, or raises the error a user should read. `dtype(*dtypes, **parameters)` gives
    the result's dtype likewise. `dynamic` marks the few whose shape depends on values.
    """

    __slots__ = (
        "dtype",
        "dynamic",
        "implementations",
        "keeps_dtype",
        "kind",
        "name",
        "operands",
        "parameters",
        "results",
        "shape",
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
    ) -> None:
        self.name = name
        self.kind = kind
        self.operands = tuple(operands.split())
        self.parameters = tuple(parameters.split())
        self.shape = shape
        self.dtype = dtype
        self.keeps_dtype = dtype is same_dtype  # the result has the first operand's
        self.results = results
        self.dynamic = dynamic
        self.implementations: dict[
            Any, Callable[..., Any]
        ] = {}  # by class or name of leaf backend, if a user gave some

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _lookup, (self.name,)

    @property
    def variadic(self) -> bool:
        """Whether the last operand stands for any number of arrays."""
        return bool(self.operands) and self.operands[-1].startswith("*")


TABLE: dict[str, Primitive] = {}


def function_named(name: str) -> Primitive:
    """What stands for a function of the user's where a node names its primitive; it is not in the table."""
    return Primitive(name, Kind("function"), "", shape=_unspecified, dtype=same_dtype)


def _lookup(name: str) -> Primitive:
    return TABLE[name]


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that operands of these shapes broadcast to, by NumPy's rule.

    Raises ShapeError where they do not.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for axis, sizes in enumerate(zip(*padded, strict=True)):
        distinct = {size for size in sizes if size != 1}
        if len(distinct) > 1:
            raise errors.ShapeError(
                f"shapes {' and '.join(map(str, shapes))} do not broadcast: axis {axis - ndim} has sizes "
                f"{' and '.join(map(str, sorted(distinct)))}; sizes must be equal or 1"
            )
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


# --- shape rules ---------------------------------------------------------------------------------


def _broadcast(*shapes: Shape, **_: Any) -> Shape:
    return broadcast_shapes(*shapes)


def _same(shape: Shape, *_: Any, **__: Any) -> Shape:
    return shape


def _reduced(shape: Shape, *_: Any, axis: tuple[int, ...], keepdims: bool = False) -> Shape:
    if keepdims:
        return tuple(1 if i in axis else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def _extremum_shape(shape: Shape, *, axis: tuple[int, ...], keepdims: bool = False) -> Shape:
    if any(shape[i] == 0 for i in axis):
        raise errors.ShapeError(
            f"an empty axis has no maximum or minimum: shape {shape}, axis {axis}; give at least one element"
        )
    return _reduced(shape, axis=axis, keepdims=keepdims)


def _arg_shape(shape: Shape, *, axis: int | None, keepdims: bool) -> Shape:
    axes = tuple(range(len(shape))) if axis is None else (axis,)
    return _extremum_shape(shape, axis=axes, keepdims=keepdims)


def _reshape_shape(old: Shape, *, shape: Shape) -> Shape:
    if math.prod(old) != math.prod(shape):
        raise errors.ShapeError(
            f"reshape: {math.prod(old)} elements of shape {old} do not fill shape {shape} of {math.prod(shape)}"
        )
    return shape


def _broadcast_to_shape(old: Shape, *, shape: Shape) -> Shape:
    if len(old) > len(shape) or any(n not in (1, m) for n, m in zip(old[::-1], shape[::-1], strict=False)):
        raise errors.ShapeError(f"broadcast_to: shape {old} does not broadcast to {shape}")
    return shape


def _expand_shape(shape: Shape, *, axis: tuple[int, ...]) -> Shape:
    sizes = iter(shape)
    return tuple(1 if i in axis else next(sizes) for i in range(len(shape) + len(axis)))


def _squeeze_shape(shape: Shape, *, axis: tuple[int, ...]) -> Shape:
    for i in axis:
        if shape[i] != 1:
            raise errors.ShapeError(f"squeeze: axis {i} of shape {shape} has size {shape[i]}, not 1")
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def _concat_shape(*shapes: Shape, axis: int) -> Shape:
    first = shapes[0]
    for shape in shapes:
        if len(shape) != len(first) or any(
            n != m for i, (n, m) in enumerate(zip(shape, first, strict=True)) if i != axis
        ):
            raise errors.ShapeError(
                f"concat along axis {axis}: shapes {first} and {shape} differ elsewhere; all other axes must agree"
            )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _pad_shape(shape: Shape, *, widths: Sequence[tuple[int, int]], value: Any) -> Shape:
    return tuple(n + before + after for n, (before, after) in zip(shape, widths, strict=True))


class _Slot:
    """Stands in an index key where an integer array goes; there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ARRAY"

    def __reduce__(self) -> str:
        return "ARRAY"


ARRAY = _Slot()
Key = tuple[Any, ...]  # of int, slice with int bounds, None, ARRAY; as long as the array needs


def index_shape(shape: Shape, *arrays: Shape, key: Key) -> Shape:
    """The shape of `x[key]`, where the ARRAYs in `key` are integer arrays of the given shapes.

    NumPy's rule: array and integer entries broadcast together; their axes stand where the first of
    them stood if they are adjacent, else in front. Without arrays, integers merely drop their axis.
    """
    sizes = iter(shape)
    advanced = any(entry is ARRAY for entry in key)
    common = broadcast_shapes(*arrays)
    result: list[int] = []
    runs: list[int] = []  # how many basic axes precede each array-like entry
    for entry in key:
        if entry is None:
            result.append(1)
        elif isinstance(entry, slice):
            result.append(len(range(*entry.indices(next(sizes)))))
        else:
            next(sizes)
            if advanced:
                runs.append(len(result))
    result.extend(sizes)
    if advanced:
        at = runs[0] if adjacent(key) else 0
        result[at:at] = common
    return tuple(result)


def adjacent(key: Key) -> bool:
    """Whether the array and integer entries of an index key stand side by side."""
    places = [i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int)]
    return not places or places == list(range(places[0], places[-1] + 1))


def _index_shape(shape: Shape, *arrays: Shape, key: Key) -> Shape:
    return index_shape(shape, *arrays, key=key)


def _index_set_shape(shape: Shape, value: Shape, *arrays: Shape, key: Key) -> Shape:
    target = index_shape(shape, *arrays, key=key)
    try:
        fits = broadcast_shapes(value, target) == target
    except errors.ShapeError:
        fits = False
    if not fits:
        raise errors.ShapeError(f"a value of shape {value} does not broadcast to the indexed shape {target}")
    return shape


def _take_along(shape: Shape, indices: Shape, *, axis: int) -> Shape:
    if len(shape) != len(indices):
        raise errors.ShapeError(
            f"take_along_axis: indices of shape {indices} need as many axes as the array of shape {shape}"
        )
    others = broadcast_shapes(
        tuple(1 if i == axis else n for i, n in enumerate(shape)),
        tuple(1 if i == axis else n for i, n in enumerate(indices)),
    )
    return (*others[:axis], indices[axis], *others[axis + 1 :])


def _topk_shape(shape: Shape, *, k: int, axis: int, largest: bool) -> list[Shape]:
    return [(*shape[:axis], k, *shape[axis + 1 :])] * 2


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-2]:
        raise errors.ShapeError(
            f"matmul: shapes {x} and {y} do not fit; the last axis of the left one and the last but one of the "
            "right one must be equal"
        )
    return (*broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])


def conv_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many places a kernel has along one axis of a convolution."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _conv2d_shape(
    x: Shape,
    weight: Shape,
    *,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> Shape:
    if len(x) != 4 or len(weight) != 4:
        raise errors.ShapeError(
            f"conv2d: expected x (batch, channels, height, width) and weight (out, channels / groups, height, "
            f"width), received {x} and {weight}"
        )
    if x[1] != weight[1] * groups or weight[0] % groups:
        raise errors.ShapeError(
            f"conv2d: {x[1]} input channels and weight {weight} do not fit {groups} groups: weight.shape[1] must "
            f"be channels / groups and weight.shape[0] divisible by groups"
        )
    sizes = tuple(conv_size(x[2 + i], weight[2 + i], stride[i], padding[i], dilation[i]) for i in range(2))
    if min(sizes) < 1:
        raise errors.ShapeError(f"conv2d: a kernel of {weight[2:]} does not fit images of {x[2:]} padded by {padding}")
    return (x[0], weight[0], *sizes)


def _square(shape: Shape) -> None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.NotSquareError(f"expected square matrices, shape (..., n, n); received {shape}")


def _square_same(shape: Shape) -> Shape:
    _square(shape)
    return shape


def _det_shape(shape: Shape) -> Shape:
    _square(shape)
    return shape[:-2]


def _solve_shape(a: Shape, b: Shape) -> Shape:
    _square(a)
    if len(b) < 2 or b[-2] != a[-1]:
        raise errors.ShapeError(f"solve: a right-hand side of shape {b} does not fit matrices of shape {a}")
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


def _cross_entropy_shape(x: Shape, labels: Shape) -> Shape:
    if not x or x[:-1] != labels:
        raise errors.ShapeError(
            f"cross entropy: logits of shape {x} need integer targets of shape {x[:-1]}; received {labels}"
        )
    return labels


def _unspecified(*_: Any, **__: Any) -> Shape:
    raise errors.ShapeError("the shape depends on the values")


def _param_shape(*, shape: Shape, **_: Any) -> Shape:
    return shape


# --- dtype rules ---------------------------------------------------------------------------------

BOOL = np.dtype(np.bool_)
INDEX = np.dtype(np.int64)


def same_dtype(*dtypes: DType | None, **_: Any) -> DType:
    """The dtype of the first array among the operands."""
    return next(dtype for dtype in dtypes if dtype is not None)


def _second(*dtypes: DType | None, **_: Any) -> DType:
    return next(dtype for dtype in dtypes[1:] if dtype is not None)


def _bool(*_: Any, **__: Any) -> DType:
    return BOOL


def _index(*_: Any, **__: Any) -> DType:
    return INDEX


def real_dtype(dtype: DType) -> DType:
    """The real dtype of the same precision: float32 for complex64, float64 for complex128."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _real(dtype: DType, *_: Any, **__: Any) -> DType:
    return real_dtype(dtype)


def _param(*_: Any, dtype: DType, **__: Any) -> DType:
    return dtype


# --- the table -----------------------------------------------------------------------------------


def _declare(names: str, kind: Kind, operands: str, parameters: str = "", **rules: Any) -> None:
    for name in names.split():
        TABLE[name] = Primitive(name, kind, operands, parameters, **rules)


_declare(
    "negative sign floor ceil trunc round square sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh conj expit erf relu softplus silu gelu bitwise_invert",
    ELEMENTWISE,
    "x",
    shape=_same,
    dtype=same_dtype,
)
_declare("abs real imag", ELEMENTWISE, "x", shape=_same, dtype=_real)
_declare("logical_not isnan isinf isfinite", ELEMENTWISE, "x", shape=_same, dtype=_bool)
_declare(
    "add subtract multiply divide floor_divide remainder pow maximum minimum atan2 logaddexp "
    "absorbing_multiply bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
    ELEMENTWISE,
    "x y",
    shape=_broadcast,
    dtype=same_dtype,
)
_declare(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
    ELEMENTWISE,
    "x y",
    shape=_broadcast,
    dtype=_bool,
)
# the pullbacks that leaves fuse: g times the derivative, from the output y or the input x alone
_declare("tanh_pullback expit_pullback relu_pullback", ELEMENTWISE, "g y", shape=_broadcast, dtype=same_dtype)
_declare("silu_pullback gelu_pullback", ELEMENTWISE, "g x", shape=_broadcast, dtype=same_dtype)
_declare("where", ELEMENTWISE, "condition x y", shape=_broadcast, dtype=_second)
_declare("clip", ELEMENTWISE, "x low high", shape=_broadcast, dtype=same_dtype)
_declare("astype", ELEMENTWISE, "x", "dtype", shape=_same, dtype=_param)

_declare("sum prod logsumexp", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=same_dtype)
_declare("vector_norm", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=_real)
_declare("max min", REDUCTION, "x", "axis keepdims", shape=_extremum_shape, dtype=same_dtype)
_declare("any all", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=_bool)
_declare("argmax argmin", REDUCTION, "x", "axis keepdims", shape=_arg_shape, dtype=_index)
_declare("cumulative_sum cumulative_prod softmax log_softmax", REDUCTION, "x", "axis", shape=_same, dtype=same_dtype)
_declare("softmax_pullback log_softmax_pullback", REDUCTION, "g y", "axis", shape=_same, dtype=same_dtype)
_declare("standardize", REDUCTION, "x", "axis epsilon", shape=_same, dtype=same_dtype)
_declare("softmax_cross_entropy", REDUCTION, "x labels", shape=_cross_entropy_shape, dtype=same_dtype)
_declare("softmax_cross_entropy_pullback", REDUCTION, "g x labels", shape=lambda g, x, labels: x, dtype=same_dtype)

_declare("reshape", STRUCTURAL, "x", "shape", shape=_reshape_shape, dtype=same_dtype)
_declare("broadcast_to", STRUCTURAL, "x", "shape", shape=_broadcast_to_shape, dtype=same_dtype)
_declare("permute_dims", STRUCTURAL, "x", "axes", shape=lambda s, *, axes: tuple(s[i] for i in axes), dtype=same_dtype)
_declare("expand_dims", STRUCTURAL, "x", "axis", shape=_expand_shape, dtype=same_dtype)
_declare("squeeze", STRUCTURAL, "x", "axis", shape=_squeeze_shape, dtype=same_dtype)
_declare("concat", STRUCTURAL, "*xs", "axis", shape=_concat_shape, dtype=same_dtype)
_declare("flip", STRUCTURAL, "x", "axis", shape=_same, dtype=same_dtype)
_declare("pad", STRUCTURAL, "x", "widths value", shape=_pad_shape, dtype=same_dtype)
_declare("tril triu", STRUCTURAL, "x", "k", shape=_same, dtype=same_dtype)

_declare("index", INDEXING, "x *arrays", "key", shape=_index_shape, dtype=same_dtype)
_declare("index_set index_add", INDEXING, "x value *arrays", "key", shape=_index_set_shape, dtype=same_dtype)
_declare("take_along_axis", INDEXING, "x indices", "axis", shape=_take_along, dtype=same_dtype)
_declare("sort", INDEXING, "x", "axis descending", shape=_same, dtype=same_dtype)
_declare("argsort", INDEXING, "x", "axis descending", shape=_same, dtype=_index)
_declare("topk", INDEXING, "x", "k axis largest", results=2, shape=_topk_shape, dtype=lambda d, **_: [d, INDEX])
_declare("nonzero", INDEXING, "x", shape=_unspecified, dtype=_index, dynamic=True)

_CONV = "stride padding dilation groups"
_declare("matmul", CONTRACTION, "x y", shape=_matmul_shape, dtype=same_dtype)
_declare("conv2d", CONTRACTION, "x weight", _CONV, shape=_conv2d_shape, dtype=same_dtype)
_declare(
    "conv2d_input",
    CONTRACTION,
    "g weight",
    _CONV + " size",
    shape=lambda g, weight, *, size, groups, **_: (g[0], weight[1] * groups, *size),
    dtype=same_dtype,
)
_declare(
    "conv2d_weight",
    CONTRACTION,
    "x g",
    _CONV + " size",
    shape=lambda x, g, *, size, groups, **_: (g[1], x[1] // groups, *size),
    dtype=same_dtype,
)

_declare("inv cholesky cofactor", LINALG, "x", shape=_square_same, dtype=same_dtype)
_declare("det", LINALG, "x", shape=_det_shape, dtype=same_dtype)
_declare("solve", LINALG, "a b", shape=_solve_shape, dtype=same_dtype)

_declare("full", CREATION, "", "shape value dtype", shape=_param_shape, dtype=_param)
_declare(
    "arange",
    CREATION,
    "",
    "start stop step dtype",
    shape=lambda *, start, stop, step, **_: (max(0, math.ceil((stop - start) / step)),),
    dtype=_param,
)
_declare("linspace", CREATION, "", "start stop num endpoint dtype", shape=lambda *, num, **_: (num,), dtype=_param)
_declare("eye", CREATION, "", "rows columns k dtype", shape=lambda *, rows, columns, **_: (rows, columns), dtype=_param)

_declare("random_uniform random_normal", RANDOM, "", "key shape dtype", shape=_param_shape, dtype=_param)
_declare("random_integers", RANDOM, "", "key low high shape dtype", shape=_param_shape, dtype=_param)
_declare("random_permutation", RANDOM, "", "key size dtype", shape=lambda *, size, **_: (size,), dtype=_param)


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
