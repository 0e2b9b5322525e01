"""Derivatives of reductions, scans and the normalising functions built on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.primitives import INDEX, Primitive
from adjoint.rules.batching import along_axes
from adjoint.rules.elementwise import safe_divide
from adjoint.rules.indexing import places_forward, places_pullback
from adjoint.rules.records import Composed, Custom, Linear, NotDifferentiable, Record
from adjoint.rules.sparsity import Call, Pattern, along, matrix, numbered, union


def _kept(B: Any, g: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """A reduced array with its axes back, of size one."""
    return g if keepdims or not axis else B.expand_dims(g, axis=axis)


def _sum(B: Any, g: Any, x_shape: Any, axis: Any, keepdims: Any) -> Any:
    if len(axis) < len(x_shape):  # else g has no axes, and broadcasts as it is
        g = _kept(B, g, axis, keepdims)
    return B.broadcast_to(g, shape=x_shape)


def _extremum(B: Any, g: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    """Ties share equally, as in PyTorch's amax."""
    best = B.astype(B.equal(x, _kept(B, out, axis, keepdims)), dtype=B.dtype_of(g))
    count = B.sum(best, axis=axis, keepdims=True)
    return B.multiply(best, B.divide(_kept(B, g, axis, keepdims), count))


def _extremum_forward(B: Any, tangents: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    (t,) = tangents
    best = B.astype(B.equal(x, _kept(B, out, axis, keepdims)), dtype=B.dtype_of(t))
    total = B.sum(B.multiply(best, t), axis=axis, keepdims=keepdims)
    return B.divide(total, B.sum(best, axis=axis, keepdims=keepdims))


def _prod(B: Any, g: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    return B.multiply(_kept(B, g, axis, keepdims), _others(B, x, axis))


def _prod_forward(B: Any, tangents: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    return B.sum(B.multiply(tangents[0], _others(B, x, axis)), axis=axis, keepdims=keepdims)


def _others(B: Any, x: Any, axis: Any) -> Any:
    """For each element the product of the others, right with zeros among them.

    Products of those before and after come from two cumulative products over one flat axis.
    """
    rest = tuple(i for i in range(len(x.shape)) if i not in axis)
    order = rest + tuple(axis)
    flat_shape = (*(x.shape[i] for i in rest), math.prod(x.shape[i] for i in axis))
    moved = B.permute_dims(x, axes=order)
    flat = B.reshape(moved, shape=flat_shape)
    last = len(rest)
    before = _exclusive_prod(B, flat, last)
    after = B.flip(_exclusive_prod(B, B.flip(flat, axis=(last,)), last), axis=(last,))
    others = B.reshape(B.multiply(before, after), shape=tuple(x.shape[i] for i in order))
    return B.permute_dims(others, axes=tuple(sorted(range(len(order)), key=order.__getitem__)))


def _exclusive_prod(B: Any, x: Any, axis: int) -> Any:
    """The product of all earlier elements; one for the first."""
    if x.shape[axis] == 0:
        return x
    widths = tuple((1, 0) if i == axis else (0, 0) for i in range(len(x.shape)))
    shifted = B.pad(B.index(x, key=(*[slice(None)] * axis, slice(0, x.shape[axis] - 1, 1))), widths=widths, value=1)
    return B.cumulative_prod(shifted, axis=axis)


def _reverse_cumsum(B: Any, g: Any, axis: int) -> Any:
    return B.flip(B.cumulative_sum(B.flip(g, axis=(axis,)), axis=axis), axis=(axis,))


def _cumulative_prod(B: Any, g: Any, x: Any, axis: int) -> Any:
    """d out_k / d x_i is the product of those before i, times that of those between i and k.

    Nothing is divided, so that zeros need no care at any order. The sums over k obey
    s_i = g_i + x_(i+1) s_(i+1), solved as in W. Hillis and G. Steele, Data parallel algorithms (1986).
    """
    return B.multiply(_exclusive_prod(B, x, axis), _recurrence(B, g, _ahead(B, x, 1, axis), axis, _ahead))


def _cumulative_prod_forward(B: Any, tangents: Any, x: Any, axis: int) -> Any:
    """The transpose of the pullback: s_k = t_k p_k + x_k s_(k-1), p_k the product before k."""
    return _recurrence(B, B.multiply(tangents[0], _exclusive_prod(B, x, axis)), x, axis, _behind)


def _recurrence(B: Any, total: Any, factor: Any, axis: int, shifted: Any) -> Any:
    """s = total + factor s', where s' is s shifted by one place; spans double in each step."""
    step, n = 1, total.shape[axis]
    while step < n:
        total = B.add(total, B.multiply(factor, shifted(B, total, step, axis)))
        factor = B.multiply(factor, shifted(B, factor, step, axis))
        step *= 2
    return total


def _behind(B: Any, x: Any, step: int, axis: int) -> Any:
    """The elements `step` places before, zeros where there are none."""
    widths = tuple((step, 0) if i == axis else (0, 0) for i in range(len(x.shape)))
    return B.pad(B.index(x, key=(*[slice(None)] * axis, slice(0, x.shape[axis] - step, 1))), widths=widths, value=0)


def _ahead(B: Any, x: Any, step: int, axis: int) -> Any:
    """The elements `step` places further on, zeros where there are none."""
    n = x.shape[axis]
    widths = tuple((0, step) if i == axis else (0, 0) for i in range(len(x.shape)))
    return B.pad(B.index(x, key=(*[slice(None)] * axis, slice(step, n, 1))), widths=widths, value=0)


def _logsumexp_definition(B: Any, x: Any, *, axis: Any, keepdims: Any) -> Any:
    top = B.detach(B.max(x, axis=axis, keepdims=True))
    top = B.where(B.isfinite(top), top, 0.0)
    total = B.log(B.sum(B.exp(B.subtract(x, top)), axis=axis, keepdims=True))
    out = B.add(total, top)
    return out if keepdims or not axis else B.squeeze(out, axis=axis)


def _weights(B: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    """exp(x) over its sum along axes, of which `out` is the logarithm.

    `out` may be so large that the logarithm of the number of terms was rounded away; so divide once more.
    """
    peak = _kept(B, out, axis, keepdims)
    peak = B.where(B.equal(peak, -math.inf), 0.0, peak)  # the sum was zero: all weights are
    weights = B.exp(B.subtract(x, peak))
    total = B.sum(weights, axis=axis, keepdims=True)
    return B.divide(weights, B.where(B.greater(total, 0.0), total, 1.0))


def _logsumexp(B: Any, g: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    return B.multiply(_kept(B, g, axis, keepdims), _weights(B, x, out, axis, keepdims))


def _logsumexp_forward(B: Any, tangents: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    weighted = B.multiply(tangents[0], _weights(B, x, out, axis, keepdims))
    return B.sum(weighted, axis=axis, keepdims=keepdims)


def _logcumsumexp(B: Any, g: Any, x: Any, out: Any, axis: int) -> Any:
    """d out_k / d x_i is the part of x_i in the sum of powers up to i, times the part of that in the sum up to k."""
    part, rest = _parts(B, x, out, axis)
    return B.multiply(part, _recurrence(B, g, _moved(B, rest, axis, (0, 1)), axis, _ahead))


def _logcumsumexp_forward(B: Any, tangents: Any, x: Any, out: Any, axis: int) -> Any:
    part, rest = _parts(B, x, out, axis)
    return _recurrence(B, B.multiply(tangents[0], part), _moved(B, rest, axis, (1, 0)), axis, _behind)


def _parts(B: Any, x: Any, out: Any, axis: int) -> tuple[Any, Any]:
    """Of each sum of powers the part that came last, and from the second on the part that was there before.

    They sum up to one whatever of the logarithms was rounded away; of a sum that is zero both are zero.
    """
    before = (slice(None),) * axis
    n = x.shape[axis]
    first, later = (slice(0, min(n, 1), 1), slice(min(n, 1), n, 1))
    last, none = B.index(x, key=(*before, later)), B.equal(B.index(out, key=(*before, later)), -math.inf)
    sums = B.index(out, key=(*before, slice(0, max(n - 1, 0), 1)))
    apart = B.subtract(B.where(none, 0.0, last), B.where(none, 0.0, sums))
    parts = [B.where(none, 0.0, B.expit(t)) for t in (apart, B.negative(apart))]
    whole = B.astype(B.not_equal(B.index(x, key=(*before, first)), -math.inf), dtype=B.dtype_of(x))
    return B.concat(whole, parts[0], axis=axis), parts[1]


def _moved(B: Any, x: Any, axis: int, width: tuple[int, int]) -> Any:
    """With a zero at one end, as long as the line that it is one shorter than."""
    return B.pad(x, widths=tuple(width if i == axis else (0, 0) for i in range(len(x.shape))), value=0)


def _softmax_definition(B: Any, x: Any, *, axis: int) -> Any:
    powers = B.exp(B.subtract(x, B.detach(B.max(x, axis=(axis,), keepdims=True))))
    return B.divide(powers, B.sum(powers, axis=(axis,), keepdims=True))


def _softmax_pullback(B: Any, g: Any, out: Any, *, axis: int) -> Any:
    inner = B.sum(B.multiply(g, out), axis=(axis,), keepdims=True)
    return B.multiply(out, B.subtract(g, inner))


def _log_softmax_definition(B: Any, x: Any, *, axis: int) -> Any:
    """Shifted first: beside a large element its logsumexp rounds the logarithm of a sum away."""
    x = B.subtract(x, B.detach(B.max(x, axis=(axis,), keepdims=True)))
    return B.subtract(x, B.logsumexp(x, axis=(axis,), keepdims=True))


def _log_softmax_pullback(B: Any, g: Any, out: Any, *, axis: int) -> Any:
    return B.subtract(g, B.multiply(B.exp(out), B.sum(g, axis=(axis,), keepdims=True)))


def _log_softmax_forward(B: Any, tangents: Any, out: Any, axis: int) -> Any:
    (t,) = tangents
    return B.subtract(t, B.sum(B.multiply(B.exp(out), t), axis=(axis,), keepdims=True))


def _norm_definition(B: Any, x: Any, *, axis: Any, keepdims: Any) -> Any:
    size = B.abs(x) if B.dtype_of(x).kind == "c" else x
    return B.sqrt(B.sum(B.square(size), axis=axis, keepdims=keepdims))


def _direction(B: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    """x / |x|, and 0 at the origin: of numbers at most 1, where 1 / |x| and its derivatives leave the range."""
    size = _kept(B, out, axis, keepdims)
    if B.dtype_of(x).kind == "c":
        return safe_divide(B, B.conj(x), B.astype(size, dtype=B.dtype_of(x)))
    return safe_divide(B, x, size)


def _norm(B: Any, g: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    g = _kept(B, g, axis, keepdims)
    g = B.astype(g, dtype=B.dtype_of(x)) if B.dtype_of(x).kind == "c" else g
    return B.multiply(g, _direction(B, x, out, axis, keepdims))


def _norm_forward(B: Any, tangents: Any, x: Any, out: Any, axis: Any, keepdims: Any) -> Any:
    along = B.multiply(_direction(B, x, out, axis, keepdims), tangents[0])
    return B.sum(B.real(along) if B.dtype_of(x).kind == "c" else along, axis=axis, keepdims=keepdims)


def _cross_entropy_definition(B: Any, x: Any, labels: Any) -> Any:
    last = len(x.shape) - 1
    column = B.expand_dims(labels, axis=(last,))
    picked = B.take_along_axis(B.log_softmax(x, axis=last), column, axis=last)
    return B.negative(B.squeeze(picked, axis=(last,)))


def _cross_entropy_pullback(B: Any, g: Any, x: Any, labels: Any) -> Any:
    """softmax(x) minus one at the label, times g."""
    last = len(x.shape) - 1
    g = B.expand_dims(g, axis=(last,))
    weighted = B.multiply(B.softmax(x, axis=last), g)
    classes = B.arange(start=0, stop=x.shape[last], step=1, dtype=B.dtype_of(labels))
    hit = B.equal(B.expand_dims(labels, axis=(last,)), classes)
    return B.where(hit, B.subtract(weighted, g), weighted)


def along_labels(B: Any, t: Any, pulled: Any, labels: Any) -> Any:
    """The tangent of a loss for each row, by the gradient `pulled(g)` of them.

    Their definition would do, but it takes a label that is no class for one counted from the end.
    """
    one = B.full(shape=tuple(labels.shape), value=1.0, dtype=B.dtype_of(t))
    return B.sum(B.multiply(pulled(one), t), axis=(len(t.shape) - 1,), keepdims=False)


# --- batches and sparsity ---


def _argument_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    """argmax and argmin: without an axis they count through the flat array."""
    (x,) = values
    if parameters["axis"] is not None:
        return along_axes(B, primitive, values, flags, parameters)
    shape = tuple(x.shape)
    flat = B.reshape(x, shape=(shape[0], math.prod(shape[1:])))
    out = B[primitive](flat, axis=1, keepdims=False)
    return B.reshape(out, shape=(shape[0], *[1] * (len(shape) - 1))) if parameters["keepdims"] else out


def up_to_it(call: Call) -> Pattern:
    """Each element depends on those up to it."""
    axis = call.parameters["axis"]
    lines = np.moveaxis(numbered(call.shape), axis, -1)
    to, since = np.tril_indices(lines.shape[-1])
    size = math.prod(call.shape)
    return matrix(lines[..., to], lines[..., since], (size, size)) @ call.patterns[0]


def _cross_entropy_pullback_sparsity(call: Call) -> Pattern:
    """The cotangents of rows spread over them, the scores of a row over the row."""
    g, x, _ = call.patterns
    rows = call.shape[:-1]
    parts = [] if g is None else [along(g, (*rows, 1), (), call.shape)]
    return union(parts + ([] if x is None else [along(x, call.shape, (len(rows),), call.shape)]))


_none, _argument = NotDifferentiable(), NotDifferentiable(batching=_argument_batched)


def _shifted(B: Any, join: Any, x: Any, step: int, axis: int) -> Any:
    """Each element joined with the one `step` places before."""
    before, n = (slice(None),) * axis, x.shape[axis]
    joined = join(B.index(x, key=(*before, slice(step, n, 1))), B.index(x, key=(*before, slice(0, n - step, 1))))
    return B.concat(B.index(x, key=(*before, slice(0, step, 1))), joined, axis=axis)


def _running(B: Any, join: Any, x: Any, axis: int) -> Any:
    """Spans that double in each step: W. Hillis and G. Steele, Data parallel algorithms (1986)."""
    step = 1
    while step < x.shape[axis]:
        x = _shifted(B, join, x, step, axis)
        step *= 2
    return x


def _running_extreme(name: str) -> Any:
    def definition(B: Any, x: Any, *, axis: int) -> tuple[Any, Any]:
        values, n = _running(B, getattr(B, name), x, axis), x.shape[axis]
        number = B.arange(start=0, stop=n, step=1, dtype=INDEX)
        number = B.reshape(number, shape=tuple(n if i == axis else 1 for i in range(len(x.shape))))
        return values, _running(B, B.maximum, B.where(hits(B, x, values), number, 0), axis)

    return definition


def hits(B: Any, x: Any, out: Any) -> Any:
    """Where an extreme may have come from; nans are extreme."""
    return B.logical_or(B.equal(x, out), B.isnan(x))


def _nan_extreme(name: str, beyond: float) -> Any:
    def definition(B: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        missing = B.isnan(x)
        out = getattr(B, name)(B.where(missing, beyond, x), axis=axis, keepdims=keepdims)
        return B.where(B.all(missing, axis=axis, keepdims=keepdims), math.nan, out)

    return definition


RECORDS: dict[str, Record] = {
    "sum": Linear(x=_sum),
    "cumulative_sum": Linear(x=_reverse_cumsum, sparsity=up_to_it),
    "prod": Custom(x=_prod, pushforward=_prod_forward),
    "cumulative_prod": Custom(x=_cumulative_prod, pushforward=_cumulative_prod_forward, sparsity=up_to_it),
    "max": Custom(x=_extremum, pushforward=_extremum_forward),
    "min": Custom(x=_extremum, pushforward=_extremum_forward),
    "logsumexp": Composed(_logsumexp_definition, x=_logsumexp, pushforward=_logsumexp_forward),
    "logcumsumexp": Composed(
        lambda B, x, *, axis: _running(B, B.logaddexp, x, axis),
        x=_logcumsumexp,
        pushforward=_logcumsumexp_forward,
        sparsity=up_to_it,
    ),
    "softmax": Composed(
        _softmax_definition,
        x=lambda B, g, out, axis: B.softmax_pullback(g, out, axis=axis),
        pushforward=lambda B, tangents, out, axis: B.softmax_pullback(tangents[0], out, axis=axis),  # symmetric
    ),
    "softmax_pullback": Composed(_softmax_pullback),
    "log_softmax": Composed(
        _log_softmax_definition,
        x=lambda B, g, out, axis: B.log_softmax_pullback(g, out, axis=axis),
        pushforward=_log_softmax_forward,
    ),
    "log_softmax_pullback": Composed(_log_softmax_pullback),
    "vector_norm": Composed(_norm_definition, x=_norm, pushforward=_norm_forward),
    "softmax_cross_entropy": Composed(
        _cross_entropy_definition,
        x=lambda B, g, x, labels: B.softmax_cross_entropy_pullback(g, x, labels),
        pushforward=lambda B, tangents, x, labels: along_labels(
            B, tangents[0], lambda g: B.softmax_cross_entropy_pullback(g, x, labels), labels
        ),
    ),
    "softmax_cross_entropy_pullback": Composed(_cross_entropy_pullback, sparsity=_cross_entropy_pullback_sparsity),
    **dict.fromkeys("any all".split(), _none),
    **dict.fromkeys("argmax argmin".split(), _argument),
    "cummax": Composed(
        _running_extreme("maximum"), pullback=places_pullback, pushforward=places_forward, sparsity=up_to_it
    ),
    "cummin": Composed(
        _running_extreme("minimum"), pullback=places_pullback, pushforward=places_forward, sparsity=up_to_it
    ),
    "nanmax": Composed(_nan_extreme("max", -math.inf)),
    "nanmin": Composed(_nan_extreme("min", math.inf)),
}
