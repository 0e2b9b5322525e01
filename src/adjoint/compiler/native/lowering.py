"""Larger primitives as what machine code is made of, in the formulas of the NumPy leaf."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from adjoint.backends.numpy import NumPy
from adjoint.backends.numpy.reduction import no_class
from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native import lines, matrices
from adjoint.compiler.native.elements import computable, constant, has_pieces, supported
from adjoint.compiler.native.hoisting import hoisted
from adjoint.compiler.native.keeping import kept
from adjoint.compiler.native.orders import like
from adjoint.compiler.native.pieces import joined
from adjoint.compiler.native.symbolic import FixedError
from adjoint.compiler.passes import dead_code, identity
from adjoint.compiler.sizes import has_sizes, is_size
from adjoint.dtypes import float32, float64
from adjoint.primitives import INDEX, TABLE, DType, Shape, broadcast_shapes, result_spec
from adjoint.primitives.sizes import as_recorded, places_along
from adjoint.rules import RECORDS
from adjoint.rules.records import Composed

_SCORES = 1 << 22  # of attention: more are made in blocks, and again for the backward pass
_SMALL = 16  # times smaller is small
_TINY, _MANY = 4, 8  # rows and columns of a matrix, and matrices


def lowered(graph: Graph, checks: bool = True, whole: Collection[str] = ()) -> Graph:
    """The graph with larger primitives taken apart, in its own equations. Checks of values come last.

    `checks` says that machine code may check values, which it does of places and of matrices. `whole` are names of
    primitives that are left as they are.
    """
    graph = joined(kept(hoisted(graph)))
    equations: list[Equation] = []
    found: list[Equation] = []
    recorded = dict.fromkeys(graph.inputs, False)
    for e in graph.equations:
        recorded.update(dict.fromkeys(e.results, e.backward))
        if e.name in LOWERED and e.name not in whole and all(_ready(x) for x in (*e.operands, *e.results)):
            writer, known = _Writer(found, recorded, e.backward, e.line, checks, whole), len(found)
            try:
                made = LOWERED[e.name](writer, *e.operands, **e.parameters)
            except FixedError:  # it is NumPy's
                made = None
                del found[known:]
            equations += [e] if made is None else writer.named(made if isinstance(made, tuple) else (made,), e)
        else:
            equations.append(e)
    # of the results of one primitive not all may be read
    made = _with_numbers(_numbers_first(Graph(graph.inputs, [*equations, *found], graph.outputs)))
    return dead_code(_by_reciprocals(_shared(_weights_first(made))))


def _weights_first(graph: Graph) -> Graph:
    """The same with gradients of kernels before those of the images: so what they read may make room for these.

    With a stride of 1 they read the cotangent where it lies with zeros around for the gradient of the images.
    """
    if not any(e.name == "conv_weight" for e in graph.equations):
        return graph
    found: list[Equation] = []
    for e in graph.equations:
        place = len(found)
        if e.name == "conv_weight" and any(s != 1 for s in e.parameters["stride"]):
            made = [i for i, earlier in enumerate(found) if not set(e.operands).isdisjoint(earlier.results)]
            images = range(max(made, default=-1) + 1, len(found))
            place = next(
                (i for i in images if found[i].name == "conv_input" and found[i].operands[0] is e.operands[1]), place
            )
        found.insert(place, e)
    return Graph(graph.inputs, found, graph.outputs)


def _numbers_first(graph: Graph) -> Graph:
    """With numbers that follow from sizes alone in front, where no loop has to wait for them."""
    first: list[Equation] = []
    rest: list[Equation] = []
    known: set[Any] = set()
    for e in graph.equations:
        values = [x for x in e.operands if x.__class__ is Value]
        is_number = supported(e) and e.results[0].shape == ()  # type: ignore[union-attr]
        if is_number and all(x.const is not None or x in known for x in values):
            known.update(e.results)
            first.append(e)
        else:
            rest.append(e)
    return Graph(graph.inputs, [*first, *rest], graph.outputs) if first else graph


def _with_numbers(graph: Graph) -> Graph:
    """With a number where elementwise equations read it spread over a shape that another operand has.

    Tracing folds what is spread, but for shapes that stand for several.
    """
    spread: dict[Any, Value] = {}
    equations = []
    for e in graph.equations:
        out: Any = e.results[0] if e.results else None
        if e.name == "broadcast_to" and (number := constant(e.operands[0])) is not None:
            spread[out] = Value((), out.dtype, np.asarray(number, out.dtype))
        elif spread and any(x in spread for x in e.operands if x.__class__ is Value) and supported(e):
            wide = any(x.__class__ is Value and x not in spread and like(x, out) for x in e.operands)
            if wide:
                e = e.on([spread.get(x, x) if x.__class__ is Value else x for x in e.operands])
        equations.append(e)
    return Graph(graph.inputs, equations, graph.outputs)


def _by_reciprocals(graph: Graph) -> Graph:
    """With `x * r` in the place of `x / y` where r is `1 / y`, of which there may be many: divisions are slow.

    So where r is a factor of x, as in the derivatives of r: where r overflows, so does x. And where y is a square root,
    so that r is far from overflow and from what is too small to have all digits; r is made for the second quotient, or
    for one with more elements. The two are the same but for a rounding.
    """
    makers: dict[Any, Equation] = {}
    reciprocals: dict[Any, Value] = {}
    divides = [e for e in graph.equations if e.name == "divide" and _is_real(e.results[0])]
    often = collections.Counter([e.operands[1] for e in divides])

    def has_factor(x: Any, r: Value, depth: int = 4) -> bool:
        maker = makers.get(x)
        if x is r or maker is None or not depth or maker.name not in ("multiply", "negative"):
            return x is r
        return any(has_factor(factor, r, depth - 1) for factor in maker.operands)

    equations = []
    for e in graph.equations:
        if e.name == "divide" and isinstance(out := e.results[0], Value) and _is_real(out):
            x, y = e.operands
            r, rooted = reciprocals.get(y), y in makers and makers[y].name == "sqrt"
            if r is None and _is_one(x) and y.__class__ is Value and y.shape == out.shape:
                reciprocals[y] = out
            elif r is None and rooted and (often[y] > 1 or math.prod(out.shape) > math.prod(y.shape)):
                r = reciprocals[y] = Value(y.shape, y.dtype)
                equations.append(Equation("divide", [1.0, y], {}, [r], backward=e.backward, line=e.line))
            if r is not None and (rooted or has_factor(x, r)):
                e = Equation("multiply", [x, r], {}, e.results, backward=e.backward, line=e.line)
        makers.update(dict.fromkeys(e.results, e))
        equations.append(e)
    return Graph(graph.inputs, equations, graph.outputs)


def _is_real(x: Any) -> bool:
    return isinstance(x, Value) and x.dtype in (float32, float64)


def _is_one(x: Any) -> bool:
    return bool(x.const is not None and (x.const == 1).all() if x.__class__ is Value else x == 1)


def _shared(graph: Graph) -> Graph:
    """Without equations that compute what others do.

    What a backward pass computes again is taken from before it only if it is small beside what it follows from, such as
    the mean of each row: to keep it costs next to nothing.
    """
    written: dict[Any, Value] = {}  # by operands
    equal: dict[Any, Value] = {}  # by what operands are equal to
    same: dict[Any, Value] = {}  # equal values, the first of them
    known: dict[Any, Value] = {}  # what is in the place of another
    largest: dict[Any, int] = {}  # elements of what a value follows from
    equations = []
    for e in graph.equations:
        values = [x for x in e.operands if x.__class__ is Value]
        if any(x in known for x in values):
            e = e.on([known.get(x, x) if x.__class__ is Value else x for x in e.operands])
        if e.name in TABLE and len(e.results) == 1:
            out: Any = e.results[0]
            size = as_recorded(math.prod(out.shape))
            sources = [largest[x] if x in largest else as_recorded(math.prod(x.shape)) for x in values]
            largest[out] = max([size, *sources])
            how = e.name, identity(e.parameters)
            plain = e.backward, how, *map(_identity, e.operands)
            deep = how, *[_identity(same.get(x, x) if x.__class__ is Value else x) for x in e.operands]
            try:
                found, first = written.get(plain), equal.setdefault(deep, out)
            except TypeError:  # a parameter that has no hash
                equations.append(e)
                continue
            if first is not out:
                same[out] = first
                if found is None and size * _SMALL <= largest[out]:
                    found = first
            if found is not None:
                known[out] = found
                continue
            written[plain] = out
        equations.append(e)
    outputs: list[Any] = [known.get(x, x) for x in graph.outputs]
    return Graph(graph.inputs, equations, outputs)


def _identity(x: Any) -> Any:
    """Equal also for constants of one element that each formula makes anew."""
    if x.__class__ is Value and x.const is not None and x.const.size == 1:
        return x.shape, x.dtype, x.const.tobytes()
    return identity(x)


def _ready(x: Any) -> bool:
    return x.__class__ is not Value or (computable(x.dtype) and math.prod(x.shape) > 0)


class _Writer:
    """A backend of formulas: each primitive is written down as an equation."""

    def __init__(
        self,
        checks: list[Equation],
        recorded: dict[Any, bool],
        backward: bool,
        line: Any,
        may_check: bool,
        whole: Collection[str],
    ) -> None:
        self.equations: list[Equation] = []
        self.may_check, self.whole = may_check, whole
        self.checks, self.recorded = checks, recorded  # of the whole graph; the latter, in a backward pass or not
        self.backward, self._line = backward, line

    def within(self) -> _Writer:
        """For the graph of an equation of this one."""
        return _Writer(self.checks, self.recorded, self.backward, self._line, self.may_check, self.whole)

    def dtype_of(self, x: Value) -> DType:
        return x.dtype

    def detach(self, x: Value) -> Value:
        return x

    def numbers(self, count: int, dtype: DType) -> Value:
        """0, 1, ... as many."""
        if not is_size(count):
            values: np.ndarray[Any, Any] = np.arange(count, dtype=dtype)
            return Value(values.shape, values.dtype, values)
        out, how = Value((count,), dtype), {"start": 0, "stop": count, "step": 1, "dtype": dtype}
        self.equations.append(Equation("arange", [], how, [out], backward=self.backward, line=self._line))
        return out

    def full(self, *, shape: Shape, value: Any, dtype: DType) -> Value:
        """One number in all places."""
        one = np.asarray(value).astype(dtype)
        if has_sizes(shape):
            return self.broadcast_to(Value((), dtype, one), shape=shape)  # type: ignore[no-any-return]
        return Value(shape, dtype, np.broadcast_to(one, shape))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def write(*operands: Any, **parameters: Any) -> Any:
            rule = None if name in self.whole else LOWERED.get(name)
            if rule is not None and (made := rule(self, *operands, **parameters)) is not None:
                return made
            known = all(x.__class__ is not Value or x.const is not None for x in operands)
            if known and not has_sizes(parameters):
                value = NumPy()[name](*[x.const if x.__class__ is Value else x for x in operands], **parameters)
                return Value(value.shape, value.dtype, value)
            specs: list[Any] = [x.spec() if x.__class__ is Value else x for x in operands]
            found = result_spec(TABLE[name], specs, parameters)
            out = Value(tuple(found.shape), found.dtype)
            made = Equation(name, operands, parameters, [out], backward=self.backward, line=self._line)
            self.equations.append(made)
            return out

        return write

    def check(self, holds: Value, values: Value, error: Callable[[Any], Exception]) -> None:
        self.checks.append(Equation("check", [holds, values], {"error": error}, [], line=self._line))

    def named(self, made: tuple[Value, ...], e: Equation) -> list[Equation]:
        """The equations, the last of which define what this one defines."""
        results: dict[Any, Any] = dict(zip(made, e.results, strict=True))
        whole = {x for written in self.equations for x in written.results}
        if len(results) < len(e.results) or any(x not in whole or x.spec() != out.spec() for x, out in results.items()):
            return [e]  # a formula that gives an operand
        read: Callable[[Any], Any] = lambda x: results.get(x, x) if x.__class__ is Value else x
        for written in self.equations:
            written.operands = list(map(read, written.operands))
            written.results = list(map(read, written.results))
        return self.equations


# --- formulas ------------------------------------------------------------------------------------


def _mean(B: Any, x: Any, axis: Any) -> Any:
    return B.divide(B.sum(x, axis=axis, keepdims=True), math.prod(x.shape[i] for i in axis))


def _over_deviation(B: Any, x: Any, axis: Any, epsilon: float) -> tuple[Any, Any]:
    """x minus its mean, and one over its standard deviation, also where squares overflow: these are made of smaller x.

    A power of two makes them smaller, so nothing is rounded. What is added to their variance has not to vanish.
    """
    info = np.finfo(x.dtype)
    small = 2.0**-75 if x.dtype.itemsize == 4 else 2.0**-600
    top = B.max(B.abs(x), axis=axis, keepdims=True)
    large = B.logical_and(B.greater(top, math.sqrt(info.max) / 2e4), B.isfinite(top))
    either: Callable[[float, float], Any] = lambda y, z: B.where(large, B.full(shape=(), value=y, dtype=x.dtype), z)
    scale = either(small, 1.0)
    rest = either(max(epsilon * small * small, float(info.tiny)) if epsilon else 0.0, epsilon)
    centred = B.subtract(x, _mean(B, x, axis))
    variance = _mean(B, B.square(B.multiply(centred, scale)), axis)
    return centred, B.divide(scale, B.sqrt(B.add(variance, rest)))


def _standardize(B: Any, x: Any, *, axis: Any, epsilon: float) -> Any:
    return B.multiply(*_over_deviation(B, x, axis, epsilon))


def _normalize(B: Any, x: Any, weight: Any, bias: Any, *, axis: Any, epsilon: float) -> Any:
    return B.add(B.multiply(_standardize(B, x, axis=axis, epsilon=epsilon), weight), bias)


def _normalize_pullback(B: Any, g: Any, x: Any, weight: Any, bias: Any, *, axis: Any, epsilon: float) -> Any:
    if weight.shape.count(1) == len(weight.shape) or not _same_reduced(weight, bias, g):
        return None
    centred, over = _over_deviation(B, x, axis, epsilon)
    normal = B.multiply(centred, over)
    scaled = B.multiply(g, weight)
    slope = B.multiply(normal, _mean(B, B.multiply(scaled, normal), axis))
    to_x = B.multiply(B.subtract(B.subtract(scaled, slope), _mean(B, scaled, axis)), over)
    return to_x, _summed_to(B, B.multiply(g, normal), weight.shape), _summed_to(B, g, bias.shape)


def _same_reduced(weight: Any, bias: Any, g: Any) -> bool:
    """Whether cotangents of both are sums of what has their number of axes."""
    return all(len(x.shape) == len(g.shape) and x.shape != g.shape for x in (weight, bias))


def _summed_to(B: Any, x: Any, shape: Any) -> Any:
    axis = tuple(i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return B.sum(x, axis=axis, keepdims=True)


def _softmax(B: Any, x: Any, *, axis: int) -> Any:
    t = B.exp(B.subtract(x, B.max(x, axis=(axis,), keepdims=True)))
    return B.multiply(t, B.divide(1.0, B.sum(t, axis=(axis,), keepdims=True)))  # a quotient for each row


def _softmax_pullback(B: Any, g: Any, y: Any, *, axis: int) -> Any:
    return B.multiply(B.subtract(g, B.sum(B.multiply(g, y), axis=(axis,), keepdims=True)), y)


def _log_softmax(B: Any, x: Any, *, axis: int) -> Any:
    t = B.subtract(x, B.max(x, axis=(axis,), keepdims=True))
    return B.subtract(t, B.log(B.sum(B.exp(t), axis=(axis,), keepdims=True)))


def _log_softmax_pullback(B: Any, g: Any, y: Any, *, axis: int) -> Any:
    return B.subtract(g, B.multiply(B.exp(y), B.sum(g, axis=(axis,), keepdims=True)))


def _hit(B: Any, x: Any, labels: Any) -> Any:
    classes = B.numbers(x.shape[-1], labels.dtype)
    return B.equal(B.expand_dims(labels, axis=(len(labels.shape),)), classes)


def _cross_entropy(B: Any, x: Any, labels: Any) -> Any:
    last, classes = len(x.shape) - 1, x.shape[-1]
    if labels.const is not None:
        return None
    B.check(
        B.logical_and(B.greater_equal(labels, 0), B.less(labels, classes)),
        labels,
        lambda found: no_class(found, classes),
    )
    t = B.subtract(x, B.max(x, axis=(last,), keepdims=True))
    picked = B.sum(B.where(_hit(B, x, labels), t, 0.0), axis=(last,), keepdims=False)
    return B.subtract(B.log(B.sum(B.exp(t), axis=(last,), keepdims=False)), picked)


def _cross_entropy_pullback(B: Any, g: Any, x: Any, labels: Any) -> Any:
    t = _softmax(B, x, axis=len(x.shape) - 1)
    moved = B.where(_hit(B, x, labels), B.subtract(t, 1.0), t)
    return B.multiply(moved, B.expand_dims(g, axis=(len(g.shape),)))


def _silu_pullback(B: Any, g: Any, x: Any) -> Any:
    s = B.expit(x)
    inner = B.multiply(B.clip(x, -1e4, 1e4), B.subtract(1.0, s))  # not infinity times zero
    return B.multiply(g, B.multiply(s, B.add(1.0, inner)))


def _normal_cdf(B: Any, x: Any) -> Any:
    return B.multiply(0.5, B.add(1.0, B.erf(B.multiply(x, math.sqrt(0.5)))))


def _gelu_pullback(B: Any, g: Any, x: Any) -> Any:
    density = B.multiply(B.exp(B.multiply(-0.5, B.square(x))), 1 / math.sqrt(2 * math.pi))
    slope = B.multiply(density, B.clip(x, -1e4, 1e4))  # not infinity times zero
    return B.multiply(g, B.add(slope, _normal_cdf(B, x)))


def _leaky_relu(B: Any, x: Any, *, slope: float) -> Any:
    if slope == 0 or not slope <= 1:
        return B.where(B.greater(x, 0.0), x, B.multiply(x, slope))
    return B.maximum(x, B.multiply(x, slope))


def _hardswish(B: Any, x: Any) -> Any:
    t = B.maximum(x, -3.0)  # no infinite one to be multiplied with zero
    return B.multiply(t, B.divide(B.clip(B.add(t, 3.0), 0.0, 6.0), 6.0))


def _huber(B: Any, x: Any, *, delta: float) -> Any:
    size = B.abs(x)
    near = B.minimum(size, delta)
    return B.multiply(near, B.subtract(size, B.multiply(0.5, near)))


def _logistic_loss(B: Any, x: Any, target: Any) -> Any:
    rest = B.log1p(B.exp(B.negative(B.abs(x))))
    factor = B.subtract(B.astype(B.greater(x, 0.0), dtype=x.dtype), target)
    return B.add(B.absorbing_multiply(factor, x), rest)


def _elu(B: Any, x: Any, *, alpha: float, rate: float) -> Any:
    below = B.minimum(x, 0.0)
    below = B.expm1(below if rate == 1 else B.multiply(below, rate))
    return B.add(B.maximum(x, 0.0), below if alpha == 1 else B.multiply(below, alpha))


def _power(B: Any, x: Any, y: Any) -> Any:
    """To the power of one number: integers by squares (D. E. Knuth, 4.6.3), floats where it is a product of few."""
    exponent = constant(y)
    if x.__class__ is not Value or exponent is None or x.dtype.kind not in "iuf":
        return None
    if x.dtype.kind == "f":
        if x.dtype.itemsize < 4 or exponent not in (2, 3, 4, -2):
            return None
        x = B.divide(1.0, x) if exponent < 0 else x
        square = B.multiply(x, x)
        return square if abs(exponent) == 2 else B.multiply(square, x if exponent == 3 else square)
    if exponent < 0:
        return None
    left, found = int(exponent), B.add(B.multiply(x, 0), 1)
    while left:
        if left & 1:
            found = B.multiply(found, x)
        left >>= 1
        x = B.multiply(x, x) if left else x
    return found


def _flip(B: Any, x: Any, *, axis: Any) -> Any:
    key = [places_along(slice(None, None, -1 if i in axis else None), n) for i, n in enumerate(x.shape)]
    return B.index(x, key=tuple(key))


def _triangle(name: str) -> Callable[..., Any]:
    def rule(B: Any, x: Any, *, k: int) -> Any:
        rows, columns = (B.numbers(n, np.dtype(np.int32)) for n in x.shape[-2:])
        last = B.add(B.expand_dims(rows, axis=(1,)), k)
        mask = B.less_equal(columns, last) if name == "tril" else B.greater_equal(columns, last)
        return B.where(mask, x, x.dtype.type(0).item())

    return rule


def _pad(B: Any, x: Any, *, widths: Any, value: Any) -> Any:
    if any(before < 0 or after < 0 for before, after in widths):
        return None
    if has_sizes(x.shape):
        for axis, pair in enumerate(widths):
            before, after = [B.full(shape=_resized(x.shape, axis, n), value=value, dtype=x.dtype) for n in pair]
            parts = [*[before] * (pair[0] > 0), x, *[after] * (pair[1] > 0)]
            x = B.concat(*parts, axis=axis) if len(parts) > 1 else x
        return x
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)])
    around = B.full(shape=shape, value=value, dtype=x.dtype)
    key = tuple([range(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)])
    return B.index_set(around, x, key=key)


def _resized(shape: Shape, axis: int, n: int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _one_hot(B: Any, indices: Any, *, count: int, dtype: DType) -> Any:
    if indices.dtype.kind not in "iu" or not count or count - 1 > np.iinfo(indices.dtype).max:
        return None
    if indices.dtype.kind == "i":
        indices = B.where(B.less(indices, 0), B.add(indices, count), indices)
    classes = B.numbers(count, indices.dtype)
    return B.astype(B.equal(B.expand_dims(indices, axis=(len(indices.shape),)), classes), dtype=dtype)


def _logsumexp(B: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    if not axis or x.dtype.kind != "f":
        return None
    top = B.max(x, axis=axis, keepdims=True)
    top = B.where(B.isfinite(top), top, 0.0)
    found = B.add(B.log(B.sum(B.exp(B.subtract(x, top)), axis=axis, keepdims=True)), top)
    return found if keepdims else B.reshape(found, shape=tuple(n for i, n in enumerate(x.shape) if i not in axis))


def _vector_norm(B: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    """Elements over the largest of them where their squares would overflow or vanish."""
    if not axis or x.dtype.kind != "f":
        return None
    limits = np.finfo(x.dtype)
    top = B.max(B.abs(x), axis=axis, keepdims=True)
    safe = B.logical_and(B.greater(top, math.sqrt(limits.tiny) * 1e4), B.less(top, math.sqrt(limits.max) / 1e4))
    usual = B.logical_or(safe, B.logical_or(B.equal(top, 0.0), B.logical_not(B.isfinite(top))))
    scale = B.where(usual, 1.0, top)
    found = B.multiply(B.sqrt(B.sum(B.square(B.divide(x, scale)), axis=axis, keepdims=True)), scale)
    return found if keepdims else B.reshape(found, shape=tuple(n for i, n in enumerate(x.shape) if i not in axis))


def _place_of(name: str) -> Callable[..., Any]:
    """The first place of the extreme, or of a nan."""

    def rule(B: Any, x: Any, *, axis: int | None, keepdims: bool) -> Any:
        if axis is None and (keepdims or len(x.shape) != 1):
            found = rule(B, B.reshape(x, shape=(math.prod(x.shape),)), axis=0, keepdims=False)
            return B.reshape(found, shape=(1,) * len(x.shape)) if keepdims and x.shape else found
        axis, n = axis or 0, x.shape[axis or 0]
        if x.dtype.kind == "b":
            x = B.astype(x, dtype=np.dtype(np.int8))
        top = getattr(B, name)(x, axis=(axis,), keepdims=True)
        hit = B.equal(x, top)
        if x.dtype.kind == "f":
            hit = B.logical_or(hit, B.isnan(x))
        places = B.numbers(n, INDEX)
        places = B.reshape(places, shape=[n if i == axis else 1 for i in range(len(x.shape))])
        return B.min(B.where(hit, places, n), axis=(axis,), keepdims=keepdims)

    return rule


def _matmul(B: Any, x: Any, y: Any) -> Any:
    """Of one summed element there is no sum, and a matrix times each vector of a stack is one product.

    Of many tiny matrices, such as rotations, the sums are written out.
    """
    if len(x.shape) < 2 or len(y.shape) < 2 or x.dtype != y.dtype or x.dtype.kind != "f":
        return None
    stack = math.prod(broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    if all([not is_size(n) and n <= _TINY for n in (*x.shape[-2:], *y.shape[-2:])]) and stack >= _MANY:
        return _written_out(B, x, y)
    if x.shape[-1] == 1:
        return B.add(B.multiply(x, y), 0.0)  # which a sum begins with
    if y.shape[-1] == 1 < x.shape[0] and len(x.shape) == 2 < len(y.shape):
        vectors = B.reshape(y, shape=(math.prod(y.shape[:-2]), y.shape[-2]))
        found = B.matmul(vectors, B.permute_dims(x, axes=(1, 0)))
        return B.reshape(found, shape=(*y.shape[:-2], x.shape[0], 1))
    return None


def _written_out(B: Any, x: Any, y: Any) -> Any:
    total: Any = 0.0  # which a sum begins with
    for k in range(x.shape[-1]):
        column = B.index(x, key=(*map(range, x.shape[:-1]), range(k, k + 1)))
        row = B.index(y, key=(*map(range, y.shape[:-2]), range(k, k + 1), range(y.shape[-1])))
        total = B.add(B.multiply(column, row), total)
    return total


def _linear(B: Any, x: Any, weight: Any, bias: Any) -> Any:
    return B.add(B.matmul(x, B.permute_dims(weight, axes=(1, 0))), bias) if len(x.shape) == 2 else None


def _reduced(name: str) -> Callable[..., Any]:
    """Over axes that are not the last ones nor before them: one after the other. Of one element there is nothing."""

    def rule(B: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        if x.const is not None or (x.dtype.kind == "b" and name not in ("any", "all")):
            return None
        if name in ("any", "all") and x.dtype.kind != "b":
            return getattr(B, name)(B.not_equal(x, 0), axis=axis, keepdims=keepdims)
        over = [i for i in axis if x.shape[i] != 1]
        kept = [i for i, n in enumerate(x.shape) if n != 1 and i not in axis]
        if not over:
            found = B.add(x, 0.0) if name == "sum" and x.dtype.kind == "f" else x
            return B.reshape(
                found, shape=x.shape if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axis)
            )
        if not kept or min(kept) > max(over) or max(kept) < min(over) or kept[-1] > over[-1]:
            return None
        last = tuple(i for i in over if i > kept[-1])
        if len(last) == len(over):
            return None
        run = getattr(B, name)
        found = run(x, axis=last, keepdims=True)
        found = run(found, axis=tuple(i for i in axis if i not in last), keepdims=True)
        if keepdims:
            return found
        return B.reshape(found, shape=tuple(n for i, n in enumerate(x.shape) if i not in axis))

    return rule


def _whole(name: str) -> Callable[..., Any]:
    """Attention with all its scores at once, where these are few."""
    definition = _as_defined(name)

    def rule(B: Any, *operands: Any, **parameters: Any) -> Any:
        q, k = operands[name == "attention_pullback" :][:2]
        scores = math.prod(q.shape[:-1]) * k.shape[-2]
        if scores > _SCORES:
            return None
        if name == "attention_pullback":  # the weights of the result are there
            B.backward = B.recorded.get(operands[4], B.backward)
        return definition(B, *operands, **parameters)

    return rule


def _as_defined(name: str) -> Callable[..., Any]:
    record = RECORDS[name]
    assert isinstance(record, Composed)
    return record.definition


def _full(B: Any, *, shape: Shape, value: Any, dtype: DType) -> Any:
    """Of sizes that stand for several: others are constants."""
    plain = value.__class__ in (bool, int, float)
    return B.full(shape=shape, value=value, dtype=dtype) if plain and has_sizes(shape) and computable(dtype) else None


def _eye(B: Any, *, rows: int, columns: int, k: int, dtype: DType) -> Any:
    if not has_sizes((rows, columns)) or not computable(dtype):
        return None
    down, right = (B.numbers(n, np.dtype(np.int32)) for n in (rows, columns))
    return B.astype(B.equal(right, B.add(B.expand_dims(down, axis=(1,)), k)), dtype=dtype)


LOWERED: dict[str, Callable[..., Any]] = {
    "eye": _eye,
    "full": _full,
    "standardize": _standardize,
    "normalize": _normalize,
    "normalize_pullback": _normalize_pullback,
    "softmax": _softmax,
    "softmax_pullback": _softmax_pullback,
    "log_softmax": _log_softmax,
    "log_softmax_pullback": _log_softmax_pullback,
    "softmax_cross_entropy": _cross_entropy,
    "softmax_cross_entropy_pullback": _cross_entropy_pullback,
    "silu": lambda B, x: B.multiply(x, B.expit(x)),
    "silu_pullback": _silu_pullback,
    "gelu": lambda B, x: None if has_pieces(x.dtype) else B.multiply(x, _normal_cdf(B, x)),
    "gelu_pullback": _gelu_pullback,
    "leaky_relu": _leaky_relu,
    "hardswish": _hardswish,
    "softshrink": lambda B, x, *, bound: B.subtract(x, B.clip(x, -bound, bound)),
    "huber": _huber,
    "logistic_loss": _logistic_loss,
    "linear": _linear,
    "elu": _elu,
    "pow": _power,
    "flip": _flip,
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "pad": _pad,
    "one_hot": _one_hot,
    "logsumexp": _logsumexp,
    "vector_norm": _vector_norm,
    "argmax": _place_of("max"),
    "argmin": _place_of("min"),
    **lines.LOWERED,
    **matrices.LOWERED,
    "attention": _whole("attention"),
    "attention_pullback": _whole("attention_pullback"),
    "matmul": _matmul,
    **{name: _reduced(name) for name in ("sum", "prod", "max", "min", "any", "all")},
    **{
        name: _as_defined(name)
        for name in (
            "replace_where_equal inside_log inside_log_pullback bounded_log bounded_log_pullback "
            "labelled_cross_entropy labelled_cross_entropy_pullback labelled_mean labelled_mean_pullback nanmax nanmin "
            "roll"
        ).split()
    },
}
