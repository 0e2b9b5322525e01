"""The reference leaf: every primitive by its definition, over Python numbers, slowly.

It says what a primitive means; the other leaves are tested against it. With mpmath underneath
(`Reference(digits=50)`) numerical derivatives have no rounding noise worth the name.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Implementation, Leaf
from adjoint.backends import composed, factors
from adjoint.backends.numpy import random
from adjoint.backends.scalars import Number, Scalars, rounded
from adjoint.primitives import (
    ARRAY,
    INDEX,
    TABLE,
    DType,
    Key,
    Primitive,
    Shape,
    Spec,
    adjacent,
    broadcast_shapes,
    index_shape,
    result_spec,
)

Line = list[Number]
Matrix = list[Line]


class Values:
    """An array of the reference backend: Python numbers in row-major order, a shape and a nominal dtype."""

    __slots__ = ("dtype", "shape", "values")

    def __init__(self, shape: Shape, values: list[Number], dtype: DType) -> None:
        self.shape = shape
        self.values = values
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Values({self.shape}, {self.values}, {self.dtype})"


class Reference(Leaf):
    """Pure Python on the CPU, with `digits` decimal digits (through mpmath) or Python's own floats.

    Floating dtypes are nominal: results are not rounded to them until they leave for NumPy.

    Raises DeviceError where `digits` are given and mpmath is not installed.

    >>> Reference(digits=30)
    reference[digits=30]
    """

    def __init__(self, digits: int | None = None) -> None:
        super().__init__()
        if digits is not None and (isinstance(digits, bool) or not isinstance(digits, int) or digits < 1):
            raise errors.DeviceError(f"Reference: digits is a positive integer or None, received {digits!r}")
        self.digits = digits
        self.name = "reference" if digits is None else f"reference[digits={digits}]"
        self.scalars = Scalars(digits)

    def configuration(self) -> tuple[Any, ...]:
        return (self.digits,)

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.name in self.scalars.functions:
            return functools.partial(self._elementwise, primitive, self.scalars.functions[primitive.name])
        if primitive.name not in _IMPLEMENTATIONS:
            return composed(self, primitive)
        return functools.partial(self._run, primitive, _IMPLEMENTATIONS[primitive.name])

    def _elementwise(
        self, primitive: Primitive, function: Callable[..., Number], *operands: Any, **parameters: Any
    ) -> Values:
        arrays = self._arrays(operands)
        shape, dtype = result_spec(primitive, [Spec(a.shape, a.dtype) for a in arrays], parameters)
        columns = [_broadcast(a, shape).values for a in arrays]
        if parameters:
            function = functools.partial(function, **parameters)
        return self.make(shape, list(itertools.starmap(function, zip(*columns, strict=True))), dtype)

    def _run(self, primitive: Primitive, function: Callable[..., Any], *operands: Any, **parameters: Any) -> Any:
        """Run a definition, which gives flat lists, and put them in the shapes that the table promises."""
        arrays = self._arrays(operands)
        if primitive.dynamic:
            return function(self, *arrays, **parameters)
        specs = result_spec(primitive, [Spec(a.shape, a.dtype) for a in arrays], parameters)
        values = function(self, *arrays, **parameters)
        if primitive.results == 1:
            return self.make(specs.shape, values, specs.dtype)
        return tuple([self.make(s.shape, v, s.dtype) for s, v in zip(specs, values, strict=True)])

    def _arrays(self, operands: tuple[Any, ...]) -> list[Values]:
        """Operands as arrays; Python scalars take the dtype of the last array, which is no condition."""
        if all(isinstance(x, Values) for x in operands):
            return list(operands)
        dtype = next(x.dtype for x in reversed(operands) if isinstance(x, Values))
        for x in operands:
            if not isinstance(x, Values) and dtypes.promote_scalar(dtype, x) != dtype:
                raise errors.DtypeError(f"the scalar {x!r} does not fit arrays of {dtype}; promote them first")
        return [x if isinstance(x, Values) else self.make((), [x], dtype) for x in operands]

    def make(self, shape: Shape, values: list[Number], dtype: DType) -> Values:
        """An array of numbers, each made one of the dtype's kind."""
        assert len(values) == math.prod(shape)
        return Values(tuple(shape), [self.scalars.convert(v, dtype) for v in values], dtype)

    def dtype_of(self, array: Values) -> DType:
        return array.dtype

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Values:
        return self.make(values.shape, values.reshape(-1).tolist(), values.dtype)

    def to_numpy(self, array: Values) -> np.ndarray[Any, Any]:
        return rounded(array.values, array.dtype).reshape(array.shape)

    @staticmethod
    def to_list(array: Values) -> list[Number]:
        """The exact values in row-major order: Python's numbers, or mpmath's."""
        return list(array.values)


# --- places: where elements are ------------------------------------------------------------------


def _places(shape: Sequence[int]) -> Iterator[Shape]:
    """All indices of a shape, in row-major order."""
    return itertools.product(*map(range, shape))


def _flat(shape: Shape, place: Sequence[int]) -> int:
    """Where the element of an index stands in the list."""
    number = 0
    for size, i in zip(shape, place, strict=True):
        number = number * size + i
    return number


def _gather(x: Values, shape: Shape, source: Callable[[Shape], Sequence[int]]) -> Line:
    """For every place of a shape, the element of `x` at `source(place)`."""
    return [x.values[_flat(x.shape, source(place))] for place in _places(shape)]


def _broadcast(x: Values, shape: Shape) -> Values:
    extra = len(shape) - len(x.shape)
    values = _gather(x, shape, lambda place: [0 if n == 1 else i for n, i in zip(x.shape, place[extra:], strict=True)])
    return Values(shape, values, x.dtype)


def _groups(shape: Shape, axis: tuple[int, ...]) -> list[list[int]]:
    """Per place outside `axis`, the list positions of the elements along it, both in row-major order."""
    kept = [i for i in range(len(shape)) if i not in axis]
    groups = []
    for outer in _places([shape[i] for i in kept]):
        where = dict(zip(kept, outer, strict=True))
        group = []
        for inner in _places([shape[i] for i in axis]):
            where.update(zip(axis, inner, strict=True))
            group.append(_flat(shape, [where[i] for i in range(len(shape))]))
        groups.append(group)
    return groups


# --- reductions ----------------------------------------------------------------------------------


def _reduction(function: Callable[[Reference, Line], Number]) -> Callable[..., Line]:
    """A primitive that makes one number of those along its axes."""

    def run(B: Reference, x: Values, *, axis: Any, keepdims: bool) -> Line:
        axes = tuple(range(len(x.shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return [function(B, [x.values[p] for p in group]) for group in _groups(x.shape, tuple(sorted(axes)))]

    return run


def _linewise(function: Callable[..., Line]) -> Callable[..., Line]:
    """A primitive that makes a line of each line along its axes."""

    def run(B: Reference, *arrays: Values, axis: Any, **parameters: Any) -> Line:
        shape = broadcast_shapes(*[a.shape for a in arrays])
        arrays = tuple([_broadcast(a, shape) for a in arrays])
        values: Line = [0] * math.prod(shape)
        for group in _groups(shape, axis if isinstance(axis, tuple) else (axis,)):
            line = function(B, *[[a.values[p] for p in group] for a in arrays], **parameters)
            for p, value in zip(group, line, strict=True):
                values[p] = value
        return values

    return run


def _largest(B: Reference, line: Line) -> Number:
    return functools.reduce(B.scalars.maximum, line)


def _smallest(B: Reference, line: Line) -> Number:
    return functools.reduce(B.scalars.minimum, line)


def _first_of(B: Reference, line: Line, best: Number) -> int:
    return next(i for i, value in enumerate(line) if value == best or B.scalars.isnan(value))


def _logsumexp(B: Reference, line: Line) -> Number:
    f = B.scalars.functions
    top = _largest(B, line) if line else -B.scalars.inf
    shift = top if B.scalars.isfinite(top) else 0
    return f["log"](sum([f["exp"](v - shift) for v in line], B.scalars.real_type(0))) + shift


def _softmax(B: Reference, line: Line) -> Line:
    return [B.scalars.functions["exp"](v) for v in _log_softmax(B, line)]


def _softmax_pullback(B: Reference, g: Line, out: Line) -> Line:
    inner = sum(a * b for a, b in zip(g, out, strict=True))
    return [b * (a - inner) for a, b in zip(g, out, strict=True)]


def _log_softmax(B: Reference, line: Line) -> Line:
    if not line:
        return line
    top = _largest(B, line)
    shifted = [v - top for v in line]  # so that no large total rounds the logarithm of a sum away
    total = _logsumexp(B, shifted)
    return [v - total for v in shifted]


def _log_softmax_pullback(B: Reference, g: Line, out: Line) -> Line:
    total = sum(g)
    return [a - B.scalars.functions["exp"](b) * total for a, b in zip(g, out, strict=True)]


def _vector_norm(B: Reference, line: Line) -> Number:
    return B.scalars.functions["sqrt"](sum([v.real**2 + v.imag**2 for v in line], B.scalars.real_type(0)))


def _standardize(B: Reference, line: Line, *, epsilon: float) -> Line:
    mean = sum(line) / len(line) if line else 0
    variance = sum([(v - mean) ** 2 for v in line]) / len(line) if line else 0
    deviation = B.scalars.functions["sqrt"](variance + B.scalars.real_type(epsilon))
    return [B.scalars.divide(v - mean, deviation) for v in line]


def _softmax_cross_entropy(B: Reference, x: Values, labels: Values) -> Line:
    lines = _groups(x.shape, (len(x.shape) - 1,))
    out = []
    for line, label in zip(lines, labels.values, strict=True):
        if not 0 <= label < len(line):
            raise errors.OutOfRangeError(f"cross entropy: target {label}, but the logits have {len(line)} classes")
        out.append(-_log_softmax(B, [x.values[p] for p in line])[label])
    return out


def _nextafter(B: Reference, x: Values, y: Values) -> Line:
    """One step of the nominal dtype, on numbers that may be more precise than it: the slope stays one."""
    shape = broadcast_shapes(x.shape, y.shape)
    left, right = (_broadcast(a, shape).values for a in (x, y))
    start, end = rounded(left, x.dtype), rounded(right, x.dtype)
    after = np.nextafter(start, end)
    steps = zip(left, start.tolist(), after.tolist(), strict=True)
    return [v + (b - a) if math.isfinite(a) and math.isfinite(b) else b for v, a, b in steps]


# --- structure -----------------------------------------------------------------------------------


def _same_values(B: Reference, x: Values, **_: Any) -> Line:
    return x.values


def _permute_dims(B: Reference, x: Values, *, axes: tuple[int, ...]) -> Line:
    return _gather(x, tuple(x.shape[i] for i in axes), lambda place: [place[axes.index(i)] for i in range(len(axes))])


def _flip(B: Reference, x: Values, *, axis: tuple[int, ...]) -> Line:
    return _gather(x, x.shape, lambda place: [x.shape[i] - 1 - p if i in axis else p for i, p in enumerate(place)])


def _concat(B: Reference, *xs: Values, axis: int) -> Line:
    shape = (*xs[0].shape[:axis], sum(x.shape[axis] for x in xs), *xs[0].shape[axis + 1 :])
    out = []
    for place in _places(shape):
        at, which = place[axis], 0
        while at >= xs[which].shape[axis]:
            at -= xs[which].shape[axis]
            which += 1
        out.append(xs[which].values[_flat(xs[which].shape, (*place[:axis], at, *place[axis + 1 :]))])
    return out


def _pad(B: Reference, x: Values, *, widths: tuple[tuple[int, int], ...], value: Number) -> Line:
    out = []
    for place in _places([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]):
        source = [i - before for i, (before, _) in zip(place, widths, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        out.append(x.values[_flat(x.shape, source)] if inside else value)
    return out


def _triangle(keep: Callable[[int, int], bool]) -> Callable[..., Line]:
    """The elements whose column minus row is kept; zeros elsewhere."""

    def run(B: Reference, x: Values, *, k: int) -> Line:
        return [v if keep(p[-1] - p[-2], k) else 0 for v, p in zip(x.values, _places(x.shape), strict=True)]

    return run


# --- indexing ------------------------------------------------------------------------------------


def _indexed(x: Values, arrays: tuple[Values, ...], key: Key) -> tuple[Shape, list[int]]:
    """The shape of `x[key]`, and for each of its elements the list position in `x` it comes from."""
    shape = index_shape(x.shape, *[a.shape for a in arrays], key=key)
    common = broadcast_shapes(*[a.shape for a in arrays])
    entries = [*key, *[slice(None)] * (len(x.shape) - sum(entry is not None for entry in key))]
    # the axes of the arrays stand where the first array or integer stood, or in front
    block = 0
    if arrays and adjacent(key):
        first = next(i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int))
        block = first  # every entry before it gives one axis
    positions = []
    for place in _places(shape):
        shared = place[block : block + len(common)]
        rest = iter(place[:block] + place[block + len(common) :])
        pending = iter(arrays)
        sizes = iter(x.shape)
        source = []
        for entry in entries:
            if entry is None:
                next(rest)
                continue
            size = next(sizes)
            if isinstance(entry, slice):
                source.append(range(*entry.indices(size))[next(rest)])
                continue
            if entry is ARRAY:
                entry = _broadcast(next(pending), common).values[_flat(common, shared)]
            if not -size <= entry < size:
                raise errors.OutOfRangeError(f"index {entry} is out of range for an axis of size {size}")
            source.append(entry % size)
        positions.append(_flat(x.shape, source))
    return shape, positions


def _index(B: Reference, x: Values, *arrays: Values, key: Key) -> Line:
    return [x.values[p] for p in _indexed(x, arrays, key)[1]]


def _index_set(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
    shape, positions = _indexed(x, arrays, key)
    values = list(x.values)
    for p, v in zip(positions, _broadcast(value, shape).values, strict=True):
        values[p] = v  # where one place is written twice, the last writer wins
    return values


def _joining(join: Callable[[Scalars, Number, Number], Number]) -> Callable[..., Line]:
    """Elements at a key joined with a value, once for each time that a place is named."""

    def run(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
        shape, positions = _indexed(x, arrays, key)
        values = list(x.values)
        for p, v in zip(positions, _broadcast(value, shape).values, strict=True):
            values[p] = join(B.scalars, values[p], v)
        return values

    return run


def _take_along_axis(B: Reference, x: Values, indices: Values, *, axis: int) -> Line:
    others = broadcast_shapes(*[(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (x, indices)])
    x = _broadcast(x, (*others[:axis], x.shape[axis], *others[axis + 1 :]))
    indices = _broadcast(indices, (*others[:axis], indices.shape[axis], *others[axis + 1 :]))
    numbers = iter(indices.values)
    return _gather(x, indices.shape, lambda place: (*place[:axis], next(numbers) % x.shape[axis], *place[axis + 1 :]))


def _order(B: Reference, line: Line, *, descending: bool) -> Line:
    """The places of the sorted line; equal elements keep their order."""
    return sorted(range(len(line)), key=lambda i: B.scalars.order(line[i]), reverse=descending)


def _sort(B: Reference, line: Line, *, descending: bool) -> Line:
    return [line[i] for i in _order(B, line, descending=descending)]


def _topk(B: Reference, x: Values, *, k: int, axis: int, largest: bool) -> tuple[Line, Line]:
    short = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    values: Line = [0] * math.prod(short)
    places: Line = [0] * math.prod(short)
    for source, target in zip(_groups(x.shape, (axis,)), _groups(short, (axis,)), strict=False):
        line = [x.values[p] for p in source]
        for p, i in zip(target, _order(B, line, descending=largest), strict=False):
            values[p], places[p] = line[i], i
    return values, places


def _searchsorted(B: Reference, x: Values, values: Values, *, side: str) -> Line:
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    lines = [[x.values[p] for p in group] for group in _groups(x.shape, (len(x.shape) - 1,))]
    return [
        find(line, B.scalars.order(values.values[p]), key=B.scalars.order)
        for line, group in zip(lines, _groups(values.shape, (len(x.shape) - 1,)), strict=True)
        for p in group
    ]


def _nonzero(B: Reference, x: Values) -> Values:
    found = [place for place, v in zip(_places(x.shape), x.values, strict=True) if v != 0]
    values = [place[i] for i in range(len(x.shape)) for place in found]
    return B.make((len(x.shape), len(found)), values, INDEX)


# --- products ------------------------------------------------------------------------------------


def _matmul(B: Reference, x: Values, y: Values) -> Line:
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (_broadcast(a, (*batch, *a.shape[-2:])) for a in (x, y))
    out = []
    for left, right in zip(_matrices(x), _matrices(y), strict=True):
        for i in range(x.shape[-2]):
            for j in range(y.shape[-1]):
                out.append(sum(left[i][k] * right[k][j] for k in range(x.shape[-1])))
    return out


def _taps(
    x: Shape, weight: Shape, out: Shape, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Iterator[tuple[int, int, int]]:
    """What a convolution multiplies: list positions in x, in the weight, and in the result that gets the product."""
    for n, o, *place in _places(out):
        for c, *offset in _places(weight[1:]):
            channel = o // (weight[0] // groups) * weight[1] + c
            at = [
                i * s + j * d - p for i, j, s, d, (p, _) in zip(place, offset, stride, dilation, padding, strict=True)
            ]
            if all(0 <= i < size for i, size in zip(at, x[2:], strict=True)):
                yield (_flat(x, (n, channel, *at)), _flat(weight, (o, c, *offset)), _flat(out, (n, o, *place)))


def _conv(B: Reference, x: Values, weight: Values, **how: Any) -> Line:
    shape = TABLE["conv"].shape(x.shape, weight.shape, **how)
    out: Line = [0] * math.prod(shape)
    for a, b, c in _taps(x.shape, weight.shape, shape, **how):
        out[c] += x.values[a] * weight.values[b]
    return out


def _conv_input(B: Reference, g: Values, weight: Values, *, size: Shape, groups: int, **how: Any) -> Line:
    shape = (g.shape[0], weight.shape[1] * groups, *size)
    x: Line = [0] * math.prod(shape)
    for a, b, c in _taps(shape, weight.shape, g.shape, groups=groups, **how):
        x[a] += g.values[c] * weight.values[b]
    return x


def _conv_weight(B: Reference, x: Values, g: Values, *, size: Shape, groups: int, **how: Any) -> Line:
    shape = (g.shape[1], x.shape[1] // groups, *size)
    weight: Line = [0] * math.prod(shape)
    for a, b, c in _taps(x.shape, shape, g.shape, groups=groups, **how):
        weight[b] += x.values[a] * g.values[c]
    return weight


def _convolve(B: Reference, a: Values, v: Values, *, full: bool) -> Line:
    batch = broadcast_shapes(a.shape[:-1], v.shape[:-1])
    n, m = a.shape[-1], v.shape[-1]
    a, v = _broadcast(a, (*batch, n)), _broadcast(v, (*batch, m))
    places = range(n + m - 1) if full else range(m - 1, n)
    out = []
    for number in range(math.prod(batch)):
        left, right = a.values[number * n : (number + 1) * n], v.values[number * m : (number + 1) * m]
        out += [sum(left[k - j] * right[j] for j in range(m) if 0 <= k - j < n) for k in places]
    return out


# --- linear algebra ------------------------------------------------------------------------------


def _matrices(x: Values) -> Iterator[Matrix]:
    """The matrices along the last two axes, as lists of rows."""
    rows, columns = x.shape[-2:]
    for number in range(math.prod(x.shape[:-2])):
        start = number * rows * columns
        yield [x.values[start + i * columns : start + (i + 1) * columns] for i in range(rows)]


def _minor(matrix: Matrix, row: int, column: int) -> Matrix:
    return [[v for j, v in enumerate(line) if j != column] for i, line in enumerate(matrix) if i != row]


def _determinant(matrix: Matrix) -> Number:
    """Laplace's expansion along the first row."""
    if not matrix:
        return 1
    return sum((-1) ** j * v * _determinant(_minor(matrix, 0, j)) for j, v in enumerate(matrix[0]))


def _det(B: Reference, x: Values) -> Line:
    return [_determinant(matrix) for matrix in _matrices(x)]


def _cofactor(B: Reference, x: Values) -> Line:
    return [
        (-1) ** (i + j) * _determinant(_minor(matrix, i, j))
        for matrix in _matrices(x)
        for i, j in _places(x.shape[-2:])
    ]


def _eliminate(matrix: Matrix, right: Matrix) -> Matrix:
    """matrix^-1 right by Gauss and Jordan, with partial pivoting."""
    n = len(matrix)
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if rows[pivot][i] == 0:
            raise errors.SingularError("singular matrix: it has no inverse")
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return [row[n:] for row in rows]


def _solve(B: Reference, a: Values, b: Values) -> Line:
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (_broadcast(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return [v for m, right in zip(_matrices(a), _matrices(b), strict=True) for row in _eliminate(m, right) for v in row]


def _inv(B: Reference, x: Values) -> Line:
    n = x.shape[-1]
    identity: Matrix = [[int(i == j) for j in range(n)] for i in range(n)]
    return [v for matrix in _matrices(x) for row in _eliminate(matrix, identity) for v in row]


def _cholesky(B: Reference, x: Values) -> Line:
    """Cholesky and Banachiewicz, row by row; only the lower triangle is read."""
    out: Line = []
    for matrix in _matrices(x):
        n = len(matrix)
        lower: Matrix = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                rest = matrix[i][j] - sum(lower[i][k] * lower[j][k].conjugate() for k in range(j))
                if i != j:
                    lower[i][j] = rest / lower[j][j]
                elif rest.real > 0:
                    lower[i][i] = B.scalars.functions["sqrt"](rest.real)
                else:
                    raise errors.SingularError("cholesky: the matrix is not positive definite")
        out.extend(v for row in lower for v in row)
    return out


def _expm(B: Reference, x: Values) -> Line:
    return [v for matrix in _matrices(x) for row in factors.expm(B.scalars, matrix) for v in row]


def _eigh(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.eigh(B.scalars, matrix) for matrix in _matrices(x)], 2)


def _eig(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.eig(B.scalars, matrix, _minor, _determinant) for matrix in _matrices(x)], 2)


def _svd(B: Reference, x: Values, *, full_matrices: bool) -> tuple[Line, ...]:
    size = x.shape[-2:]
    return _joined([factors.svd(B.scalars, matrix, *size, full=full_matrices) for matrix in _matrices(x)], 3)


def _qr(B: Reference, x: Values, *, complete: bool) -> tuple[Line, ...]:
    size = x.shape[-2:]
    return _joined([factors.qr(B.scalars, matrix, *size, complete=complete) for matrix in _matrices(x)], 2)


def _lu(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.lu(matrix, x.shape[-1]) for matrix in _matrices(x)], 3)


def _joined(found: list[Any], results: int) -> tuple[Line, ...]:
    """Each result of all matrices as one flat list."""
    return tuple([[v for each in found for v in _flattened(each[i])] for i in range(results)])


def _flattened(part: Any) -> Line:
    return [v for row in part for v in row] if part and isinstance(part[0], list) else part


# --- Fourier transforms --------------------------------------------------------------------------


def _unit_root(B: Reference, size: int, power: int, inverse: bool) -> Number:
    """exp(-2 pi i power / size), or its conjugate."""
    angle = B.scalars.pi * 2 * (power % size) / size
    cos, sin = B.scalars.functions["cos"](angle), B.scalars.functions["sin"](angle)
    return B.scalars.complex_type(cos, sin if inverse else -sin)


def _divisor(B: Reference, size: int, inverse: bool, norm: str) -> Number:
    if norm == "ortho":
        return B.scalars.functions["sqrt"](B.scalars.real_type(size))
    return size if inverse == (norm == "backward") else 1


def _spectrum(B: Reference, line: Line, count: int, inverse: bool, norm: str) -> Line:
    """The first coefficients of the transform of a line."""
    n = len(line)
    roots = [_unit_root(B, n, k, inverse) for k in range(n)]
    divisor = _divisor(B, n, inverse, norm)
    return [sum(x * roots[j * k % n] for j, x in enumerate(line)) / divisor for k in range(count)]


def _resized(x: Values, axis: int, size: int, function: Callable[[Line], Line]) -> Line:
    """A function of lines along an axis that gives lines of another size."""
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    out: Line = [0] * math.prod(shape)
    for source, target in zip(_groups(x.shape, (axis,)), _groups(shape, (axis,)), strict=True):
        for p, value in zip(target, function([x.values[p] for p in source]), strict=True):
            out[p] = value
    return out


def _fft(B: Reference, x: Values, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Line:
    for i in axis:
        size = x.shape[i]
        values = _resized(x, i, size, lambda line: _spectrum(B, line, len(line), inverse, norm))
        x = Values(x.shape, values, x.dtype)
    return x.values


def _rfft(B: Reference, x: Values, *, axis: int, inverse: bool, norm: str) -> Line:
    count = x.shape[axis] // 2 + 1
    return _resized(x, axis, count, lambda line: _spectrum(B, line, count, inverse, norm))


def _hfft(B: Reference, x: Values, *, axis: int, size: int, inverse: bool, norm: str) -> Line:
    """The transform of the whole spectrum, whose other half are the conjugates; it is real."""

    def whole(half: Line) -> Line:
        ends = [0, size // 2] if size % 2 == 0 else [0]
        known = [v.real if k in ends else v for k, v in enumerate(half)]
        line = [known[k] if k < len(known) else known[size - k].conjugate() for k in range(size)]
        return [v.real for v in _spectrum(B, line, size, inverse, norm)]

    return _resized(x, axis, size, whole)


# --- creation ------------------------------------------------------------------------------------


def _full(B: Reference, *, shape: Shape, value: Number, dtype: DType) -> Line:
    return [value] * math.prod(shape)


def _arange(B: Reference, *, start: Number, stop: Number, step: Number, dtype: DType) -> Line:
    count = max(0, math.ceil((stop - start) / step))
    first, difference = B.scalars.convert(start, dtype), B.scalars.convert(step, dtype)
    return [first + i * difference for i in range(count)]


def _linspace(B: Reference, *, start: Number, stop: Number, num: int, endpoint: bool, dtype: DType) -> Line:
    first, last = B.scalars.convert(start, dtype), B.scalars.convert(stop, dtype)
    steps = num - 1 if endpoint else num
    return [first + (last - first) * i / steps if i else first for i in range(num)]


def _eye(B: Reference, *, rows: int, columns: int, k: int, dtype: DType) -> Line:
    return [int(j - i == k) for i, j in _places((rows, columns))]


def _random(function: Callable[..., Any]) -> Callable[..., Line]:
    """The numbers that the NumPy leaf draws."""

    def run(B: Reference, *operands: Values, **parameters: Any) -> Line:
        return function(*map(B.to_numpy, operands), **parameters).reshape(-1).tolist()  # type: ignore[no-any-return]

    return run


_IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "nextafter": _nextafter,
    "astype": lambda B, x, *, dtype: [B.scalars.cast(v, dtype) for v in x.values],
    "sum": _reduction(lambda B, line: sum(line)),
    "prod": _reduction(lambda B, line: math.prod(line)),
    "max": _reduction(_largest),
    "min": _reduction(_smallest),
    "any": _reduction(lambda B, line: any(line)),
    "all": _reduction(lambda B, line: all(line)),
    "argmax": _reduction(lambda B, line: _first_of(B, line, _largest(B, line))),
    "argmin": _reduction(lambda B, line: _first_of(B, line, _smallest(B, line))),
    "logsumexp": _reduction(_logsumexp),
    "vector_norm": _reduction(_vector_norm),
    "cumulative_sum": _linewise(lambda B, line: list(itertools.accumulate(line))),
    "cumulative_prod": _linewise(lambda B, line: list(itertools.accumulate(line, lambda x, y: x * y))),
    "softmax": _linewise(_softmax),
    "softmax_pullback": _linewise(_softmax_pullback),
    "log_softmax": _linewise(_log_softmax),
    "log_softmax_pullback": _linewise(_log_softmax_pullback),
    "standardize": _linewise(_standardize),
    "softmax_cross_entropy": _softmax_cross_entropy,
    "reshape": _same_values,
    "expand_dims": _same_values,
    "squeeze": _same_values,
    "broadcast_to": lambda B, x, *, shape: _broadcast(x, shape).values,
    "permute_dims": _permute_dims,
    "flip": _flip,
    "concat": _concat,
    "pad": _pad,
    "tril": _triangle(lambda diagonal, k: diagonal <= k),
    "triu": _triangle(lambda diagonal, k: diagonal >= k),
    "index": _index,
    "index_set": _index_set,
    "index_add": _joining(lambda scalars, x, y: x + y),
    "index_multiply": _joining(lambda scalars, x, y: x * y),
    "index_max": _joining(Scalars.maximum),
    "index_min": _joining(Scalars.minimum),
    "convolve": _convolve,
    "take_along_axis": _take_along_axis,
    "sort": _linewise(_sort),
    "argsort": _linewise(_order),
    "topk": _topk,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
    "matmul": _matmul,
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_weight": _conv_weight,
    "det": _det,
    "cofactor": _cofactor,
    "inv": _inv,
    "solve": _solve,
    "cholesky": _cholesky,
    "expm": _expm,
    "eigh": _eigh,
    "eig": _eig,
    "svd": _svd,
    "qr": _qr,
    "lu": _lu,
    "fft": _fft,
    "rfft": _rfft,
    "hfft": _hfft,
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    **{name: _random(run) for name, run in random.IMPLEMENTATIONS.items()},
}
