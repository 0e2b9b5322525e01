"""Sparsity: a backend that knows of each element which elements of the input it depends on.

An array of `Dependence(B)` carries, beside the value, a sparse matrix of booleans with a row for each of its elements
and a column for each element of the input: the pattern of its Jacobian. How patterns go through a primitive follows
from its kind: elementwise primitives join rows, reductions join them along axes, moves of elements move them. What is
moved where is asked of the inner backend, by running the primitive on the numbers of the elements.

Patterns are not of this point alone: both branches of `where` count, and every element that might be the largest.
Only what the function itself decides by values, in Python or by computing indices, is as it is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, Implementation
from adjoint.graph.codegen import shape_of
from adjoint.primitives import CREATION, ELEMENTWISE, LINALG, RANDOM, REDUCTION, STRUCTURAL, TABLE, Primitive, Shape
from adjoint.rules import RECORDS, Composed, NotDifferentiable, Record

J = TypeVar("J", bound=Backend, covariant=True)

Pattern = Any  # a scipy.sparse.csr_array of booleans
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def scipy_sparse() -> Any:
    """SciPy's module of sparse arrays, imported when it is first needed."""
    try:
        from scipy import sparse
    except ModuleNotFoundError:
        raise errors.MissingLibraryError(
            "sparse Jacobians and Hessians are SciPy matrices, and SciPy is not installed: pip install adjoint[sparse]"
        ) from None
    return sparse


class Dependent:
    """An array of a Dependence backend: an inner array, and the pattern of its elements, or None for a constant."""

    __slots__ = ("pattern", "value")

    def __init__(self, value: Array, pattern: Pattern | None) -> None:
        self.value = value
        self.pattern = pattern

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]


class Call(NamedTuple):
    """One call of a primitive, as rules see it."""

    primitive: Primitive
    values: Sequence[Any]  # the operands: inner arrays, or Python scalars
    patterns: Sequence[Pattern | None]  # theirs, None where nothing goes through
    parameters: dict[str, Any]
    shape: Shape  # of the result
    inner: Any

    def shape_of(self, i: int) -> Shape:
        return shape_of(self.values[i])


class Dependence(Decorator[J]):
    """Which elements of the input each element depends on, beside the values, over another backend. Needs SciPy.

    `ad.sparse_jacobian` is its use; as the device of tensors it computes as the inner backend does.

    >>> import adjoint as ad
    >>> ad.Dependence(ad.NumPy())
    dependence<numpy>
    """

    in_rule = False  # the level of a rule for the derivative of a function

    def wrap(self, value: Array) -> Dependent:
        return Dependent(value, None)

    def unwrap(self, array: Dependent) -> Array:
        return array.value

    def varies(self, array: Dependent) -> bool:
        return array.pattern is not None

    def remade(self, array: Dependent, f: Callable[[Array], Array]) -> Dependent:
        return Dependent(f(array.value), array.pattern)

    def implement(self, primitive: Primitive) -> Implementation:
        run, record = self.inner[primitive], RECORDS.get(primitive.name)
        if primitive.kind in (CREATION, RANDOM) and not primitive.operands:
            return lambda **parameters: Dependent(run(**parameters), None)
        through, several, inner = _through(primitive, record), primitive.results > 1, self.inner
        rule = _RULES.get(primitive.name)
        definition = record.definition if rule is None and isinstance(record, Composed) else None
        if rule is None:  # random numbers of given parameters, or a user's primitive
            rule = _BY_KIND[ELEMENTWISE] if primitive.kind in (ELEMENTWISE, RANDOM) else _everything

        def lifted(*operands: Any, **parameters: Any) -> Any:
            if definition is not None:
                return definition(self, *operands, **parameters)
            values = [o.value if o.__class__ is Dependent else o for o in operands]
            patterns = [o.pattern if o.__class__ is Dependent and through(i) else None for i, o in enumerate(operands)]
            out = run(*values, **parameters)
            moving = any([p is not None for p in patterns])
            results = []
            for value in out if several else (out,):
                pattern = None
                if moving and inner.dtype_of(value).kind in "fc":
                    pattern = rule(Call(primitive, values, patterns, parameters, tuple(value.shape), inner))
                results.append(Dependent(value, pattern))
            return tuple(results) if several else results[0]

        return lifted


def _through(primitive: Primitive, record: Record | None) -> Callable[[int], bool]:
    """Whether a derivative goes through the operand in a place; the last name may stand for many."""
    if isinstance(record, NotDifferentiable):
        return lambda i: False
    names = primitive.operands
    if record is not None and not (isinstance(record, Composed) and not record.fused):
        names = record.differentiable(primitive)
    flags = [name in names for name in primitive.operands]
    return lambda i: flags[min(i, len(flags) - 1)]


# --- matrices of booleans ------------------------------------------------------------------------


def _matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> Pattern:
    rows, columns = np.broadcast_arrays(rows, columns)
    ones = np.ones(rows.size, dtype=np.bool_)
    return scipy_sparse().csr_array((ones, (rows.reshape(-1), columns.reshape(-1))), shape=shape)


def _numbers(shape: Shape) -> Numbers:
    """Each element's number."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


def _picked(pattern: Pattern, numbers: Numbers, shape: Shape) -> Pattern:
    """For each element of the shape the row that its number says; negative numbers stand for none.

    Further axes in front, of examples whose numbers differ, join the rows of all.
    """
    rows, known = np.broadcast_to(_numbers(shape), numbers.shape), numbers >= 0
    return _matrix(rows[known], numbers[known], (math.prod(shape), pattern.shape[0])) @ pattern


def _along(pattern: Pattern, shape: Shape, axes: Sequence[int], out: Shape) -> Pattern:
    """Rows of an array joined along axes, and those repeated as they broadcast to a result."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    numbers = _numbers(kept)
    if kept != shape:
        pattern = _matrix(np.broadcast_to(numbers, shape), _numbers(shape), (numbers.size, pattern.shape[0])) @ pattern
    if numbers.size == math.prod(out):  # in the same order
        return pattern
    return _picked(pattern, np.broadcast_to(numbers, out), out)


def _joined(patterns: Sequence[Pattern]) -> Pattern:
    total = patterns[0]
    for pattern in patterns[1:]:
        if pattern is not total:
            total = total + pattern
    return total


def whole(patterns: Sequence[Pattern], size: int) -> Pattern:
    """A pattern of that many elements, each of which depends on all of these: right whatever is done with them."""
    columns = np.flatnonzero(sum([pattern.sum(axis=0) for pattern in patterns]))
    return _matrix(np.arange(size)[:, None], columns, (size, patterns[0].shape[1]))


# --- rules: what a call's result depends on ------------------------------------------------------

Rule = Callable[[Call], Pattern]


def _joining(axes_of: Callable[[Call, int], Sequence[int]]) -> Rule:
    """Every operand is joined along axes of its own, and broadcasts to the result."""

    def rule(call: Call) -> Pattern:
        return _joined(
            [
                _along(pattern, call.shape_of(i), axes_of(call, i), call.shape)
                for i, pattern in enumerate(call.patterns)
                if pattern is not None
            ]
        )

    return rule


def _everything(call: Call) -> Pattern:
    return whole([pattern for pattern in call.patterns if pattern is not None], math.prod(call.shape))


def _axes(call: Call, i: int) -> Sequence[int]:
    axis = call.parameters.get("axis", len(call.shape_of(i)) - 1)
    return (axis,) if isinstance(axis, int) else axis


def _matrices(call: Call) -> Pattern:
    """Every element of a result depends on all of its own matrices, of a right-hand side on a column."""
    parts = []
    for i, pattern in enumerate(call.patterns):
        if pattern is None:
            continue
        *stack, rows, columns = call.shape_of(i)
        if i == 1 and call.primitive.name in ("solve", "solve_triangular"):
            parts.append(_along(pattern, call.shape_of(i), (len(stack),), call.shape))
            continue
        joined = _along(pattern, (*stack, rows * columns), (len(stack),), (*stack, 1))
        ones = len(call.shape) - _stacked(call)
        parts.append(_along(joined, (*stack, *[1] * ones), (), call.shape))
    return _joined(parts)


def _stacked(call: Call) -> int:
    """How many axes of the result count matrices: those that the operands have beside rows and columns."""
    return max([len(call.shape_of(i)) - 2 for i in range(len(call.values))])


def _factors(call: Call, i: int) -> Sequence[int]:
    return (len(call.shape_of(i)) - 1 - i,)  # of matmul: the last axis of the left, the last but one of the right


def _moved(call: Call) -> Pattern:
    """The primitive itself, run on the numbers of all elements from one; what it fills in is zero."""
    inner, sparse = call.inner, scipy_sparse()
    arguments, parts, start = [], [], 1
    through = _through(call.primitive, RECORDS[call.primitive.name])
    for i, (value, pattern) in enumerate(zip(call.values, call.patterns, strict=True)):
        if not through(i):
            arguments.append(value)  # it says where to
            continue
        shape = call.shape_of(i)
        numbers = _numbers(shape) + start if pattern is not None else np.zeros(shape, dtype=np.int64)
        if pattern is not None:
            parts.append(pattern)
            start += numbers.size
        arguments.append(inner.from_numpy(numbers, copy=True))
    parameters = {**call.parameters, "value": 0} if "value" in call.parameters else call.parameters
    sources = inner.values_of(getattr(inner, call.primitive.name)(*arguments, **parameters))
    stacked = sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
    return _picked(stacked, sources - 1, call.shape)


def _index_add(call: Call) -> Pattern:
    """What was there stays, and the values join it at their places."""
    x, value, *arrays = call.values
    kept, added = call.patterns[:2]
    if added is None:
        return kept
    inner, shape = call.inner, call.shape_of(1)
    places = inner.values_of(inner.index(inner.from_numpy(_numbers(call.shape), copy=True), *arrays, **call.parameters))
    numbers = np.broadcast_to(_numbers(shape), places.shape)
    spread = _matrix(places, numbers, (math.prod(call.shape), math.prod(shape))) @ added
    return spread if kept is None else kept + spread


def _cumulative(call: Call) -> Pattern:
    """Each element depends on those up to it."""
    axis = call.parameters["axis"]
    lines = np.moveaxis(_numbers(call.shape), axis, -1)
    to, since = np.tril_indices(lines.shape[-1])
    size = math.prod(call.shape)
    return _matrix(lines[..., to], lines[..., since], (size, size)) @ call.patterns[0]


def _cross_entropy_pullback(call: Call) -> Pattern:
    """The cotangents of rows spread over them, the scores of a row over the row."""
    g, x, _ = call.patterns
    rows = call.shape[:-1]
    parts = [] if g is None else [_along(g, (*rows, 1), (), call.shape)]
    return _joined(parts + ([] if x is None else [_along(x, call.shape, (len(rows),), call.shape)]))


def _convolve(call: Call) -> Pattern:
    """Each element depends on as many of an operand as fit, counted back from its place."""
    full, out = call.parameters["full"], _numbers(call.shape)
    sizes = [call.shape_of(i)[-1] for i in range(2)]
    place = np.arange(call.shape[-1]) + (0 if full else sizes[1] - 1)
    parts = []
    for i, pattern in enumerate(call.patterns):
        if pattern is not None:
            shape = (*call.shape[:-1], sizes[i])
            steps = place[:, None] - np.arange(sizes[i])  # which element of the other operand stands beside one of this
            there, element = np.nonzero((steps >= 0) & (steps < sizes[1 - i]))
            seen = _matrix(out[..., there], _numbers(shape)[..., element], (out.size, math.prod(shape)))
            parts.append(seen @ _along(pattern, call.shape_of(i), (), shape))
    return _joined(parts)


def _windows(image: Shape, weight: Shape, out: Shape, parameters: dict[str, Any]) -> Pattern:
    """Which elements of images each element of a convolution sees: (out elements, image elements)."""
    groups, axes = parameters["groups"], len(image) - 2
    shape = (*out, *weight[1:])  # example, channel of the result, places, channel in the group, offsets
    example, made, *rest = np.ogrid[tuple(map(slice, shape))]
    channel = rest[axes] + made // max(1, out[1] // groups) * weight[1]
    inside = np.ones(shape, dtype=np.bool_)
    seen = example * image[1] + channel
    for i, size in enumerate(image[2:]):
        at = rest[i] * parameters["stride"][i] + rest[axes + 1 + i] * parameters["dilation"][i]
        at = at - parameters["padding"][i][0]
        inside &= (at >= 0) & (at < size)
        seen = seen * size + at
    made_by = np.broadcast_to(_numbers(out)[(..., *[None] * (axes + 1))], shape)
    return _matrix(made_by[inside], np.broadcast_to(seen, shape)[inside], (math.prod(out), math.prod(image)))


def _conv(call: Call) -> Pattern:
    """Windows of the images, and all of the kernel that makes a channel."""
    x, weight = call.patterns
    parts = []
    if x is not None:
        parts.append(_windows(call.shape_of(0), call.shape_of(1), call.shape, call.parameters) @ x)
    if weight is not None:
        made, *rest = call.shape_of(1)
        ones = [1] * len(rest)
        kernels = _along(weight, (made, *rest), range(1, len(rest) + 1), (made, *ones))
        parts.append(_along(kernels, (made, *ones[1:]), (), call.shape))
    return _joined(parts)


def _conv_input(call: Call) -> Pattern:
    """The transpose of what a convolution sees, and all the kernels of a channel's group."""
    g, weight = call.patterns
    parts = []
    if g is not None:
        parts.append(_windows(call.shape, call.shape_of(1), call.shape_of(0), call.parameters).T.tocsr() @ g)
    if weight is not None:
        groups, (made, size, *kernel) = call.parameters["groups"], call.shape_of(1)
        others = (1, *range(3, 3 + len(kernel)))
        channels = _along(weight, (groups, made // groups, size, *kernel), others, (groups * size,))
        parts.append(_along(channels, (groups * size, *[1] * len(kernel)), (), call.shape))
    return _joined(parts)


def _conv_weight(call: Call) -> Pattern:
    """Of a kernel, its channel of all images and its channel of all results."""
    x, g = call.patterns
    groups, (made, size, *kernel) = call.parameters["groups"], call.shape
    others, ones = (0, *range(2, 2 + len(kernel))), [1] * len(kernel)
    parts = []
    if x is not None:
        channels = _along(x, call.shape_of(0), others, (groups * size,))
        spread = np.broadcast_to(_numbers((groups, 1, size)), (groups, made // groups, size))
        parts.append(_along(_picked(channels, spread, spread.shape), (made, size, *ones), (), call.shape))
    if g is not None:
        results = _along(g, call.shape_of(1), others, (made,))
        parts.append(_along(results, (made, 1, *ones), (), call.shape))
    return _joined(parts)


_BY_KIND: dict[str, Rule] = {
    ELEMENTWISE: _joining(lambda call, i: ()),
    REDUCTION: _joining(_axes),
    STRUCTURAL: _moved,
    LINALG: _matrices,
}
_RULES: dict[str, Rule] = {
    **{
        name: _BY_KIND[made.kind]
        for name, made in TABLE.items()
        if made.kind in _BY_KIND and not name.startswith("normalize")  # whose definition says it
    },
    **dict.fromkeys("index index_set take_along_axis".split(), _moved),
    **dict.fromkeys("cumulative_sum cumulative_prod cummax cummin".split(), _cumulative),
    **dict.fromkeys("sort topk".split(), _joining(_axes)),
    **dict.fromkeys("index_add index_multiply index_max index_min".split(), _index_add),
    "softmax_cross_entropy_pullback": _cross_entropy_pullback,
    "matmul": _joining(_factors),
    "convolve": _convolve,
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_weight": _conv_weight,
}
