"""Statistics: quantiles, averages with weights, what leaves nans out, covariances, histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axes,
    as_choice,
    as_flag,
    as_number,
    as_ordered,
    as_tensor,
    as_tensors,
    axes_in_order,
    explained,
    inexact,
    keyword_error,
)
from adjoint.functions.creation import asarray, is_double, made, places_beside
from adjoint.functions.elementwise import where
from adjoint.functions.logic import isnan
from adjoint.functions.reduction import all as every
from adjoint.functions.reduction import argmax, argmin, cumulative_prod, cumulative_sum, max, mean, min, prod, sum
from adjoint.functions.shape import broadcast_to, concat, moveaxis, permute_dims, reshape
from adjoint.functions.sorting import sort
from adjoint.operands import cast, constant_like, deferred_check, operand, run
from adjoint.primitives import ARRAY
from adjoint.primitives.sizes import stands
from adjoint.tensor import Axis, Operand, Tensor
from adjoint.variables import B

# --- quantiles ---

# R. Hyndman and Y. Fan, Sample quantiles in statistical packages (1996): place n q + alpha + q (1 - alpha - beta) - 1
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = (
    *_CONTINUOUS, "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation",
)  # fmt: skip


def _ranks(q: Any, n: Any, method: str) -> tuple[Any, Any, Any]:
    """For quantiles of n elements two places among the sorted, and how far between them the value is.

    q is a NumPy array, or a tensor of which NumPy's functions make tensors.
    """
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("lower", "higher", "midpoint", "nearest"):
        place = (n - 1) * q
    else:
        place = n * q - (1.5 if method == "closest_observation" else 1)
    top = n - 1 if stands(n) else np.maximum(n - 1, 0)  # a size that stands for several is not zero
    low = np.floor(place)
    part = place - low
    match method:
        case "lower":
            part = part * 0
        case "higher":
            low, part = np.ceil(place), part * 0
        case "midpoint":
            part = np.where(part == 0, 0.0, 0.5)
        case "nearest":
            low, part = np.rint(place), part * 0
        case "inverted_cdf":
            low, part = np.ceil(place), part * 0
        case "averaged_inverted_cdf":
            low, part = np.where(part == 0, place, np.ceil(place)), np.where(part == 0, 0.5, 0.0)
        case "closest_observation":
            low, part = np.where((part == 0) & (low % 2 == 1), low, low + 1), part * 0
    inside = (low >= 0) & (low < top)
    low = np.clip(low, 0, top)
    part = np.where(inside, part, 0.0)
    return low.astype(np.int64), np.minimum(low + 1, top).astype(np.int64), part


def _probabilities(q: Any, scale: float, name: str) -> Any:
    def wrong(q: Any) -> Exception:
        return errors.ArgumentError(
            f"{name}: q is from 0 to {scale:g}, or a vector of such; received {errors.shown(q)}"
        )

    if dtypes.holds(q, Tensor):
        q = asarray(q)
    if isinstance(q, Tensor):
        if q.ndim > 1 or q.dtype.kind not in "iu" + dtypes.FLOATING:
            raise wrong(q)
        q = deferred_check(q, lambda values: ((values >= 0) & (values <= scale)).all(), wrong)
        return cast(q, q.device.leaf.widest(dtypes.float64)) / scale
    given = dtypes.array_of(q, name)
    if not dtypes.of_numbers(given.dtype, "biu" + dtypes.FLOATING):
        raise wrong(q)
    values = given.astype(np.float64) / scale
    if values.ndim > 1 or not np.all((values >= 0) & (values <= 1)):
        raise wrong(q)
    return values


def _lines(x: Tensor[Any], axes: tuple[int, ...]) -> Tensor[Any]:
    """The reduced axes made one, the last."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    shape = (*[x.shape[i] for i in rest], math.prod(x.shape[i] for i in axes))
    return reshape(permute_dims(x, (*rest, *axes)), shape)


def _quantile(name: str, x: Any, q: Any, axis: Axis, method: str, keepdims: Any, weights: Any, skip: bool) -> Any:
    x = as_ordered(inexact(x, name, q, weights), name)
    axes, keepdims = as_axes(axis, x.ndim, name), as_flag(keepdims, name)
    as_choice(method, name, "method", _METHODS)
    lines = _lines(x, axes)
    n = lines.shape[-1]
    if not n:
        values = made(x.device, "full", shape=(*lines.shape[:-1], q.size), value=math.nan, dtype=x.dtype)
    elif weights is not None:
        values = _weighted(name, x, lines, q.reshape(-1), axes, method, _as_weights(name, x, weights, axis))
    elif skip:
        ordered = sort(lines)
        count = reshape(_known(isnan(lines), (lines.ndim - 1,)), lines.shape[:-1])
        # all that a number of elements can ask for, so that the numbers need not be known
        counts = places_beside(x, n + 1, dtype=dtypes.int64 if isinstance(q, Tensor) else dtypes.float64)
        low, high, part = _ranks(q.reshape(-1), counts[:, None], method)
        values = _between(ordered, *[constant_like(values, x, name)[count] for values in (low, high, part)])
    else:
        ordered = sort(lines)
        shares = q.reshape(-1)
        shares = constant_like(shares, x, name) if stands(n) and is_double(x.device) else shares
        low, high, part = _ranks(shares, n, method)
        values = _between(ordered, *[constant_like(values, x, name) for values in (low, high, part)])
        values = where(isnan(ordered[..., -1:]), math.nan, values)
    values = moveaxis(values, -1, 0)
    kept = tuple(1 if i in axes else m for i, m in enumerate(x.shape)) if keepdims else values.shape[1:]
    return reshape(values, (*q.shape, *kept))


def _between(ordered: Tensor[Any], low: Tensor[Any], high: Tensor[Any], part: Tensor[Any]) -> Tensor[Any]:
    """Between two elements of the sorted lines; where it is one of them, the other one does not count."""
    last = ordered.ndim - 1
    if low.ndim == 1:
        key = (*[slice(None)] * last, ARRAY)
        below, above = (run("index", (ordered, places), key=key) for places in (low, high))
    else:
        below, above = (run("take_along_axis", (ordered, places), axis=last) for places in (low, high))
    part = cast(part, ordered.dtype)
    alone = part == 0
    # what is infinite has the right sum and no difference, and above it there may be what was left out
    unfit = run("isinf", (below,)) | run("isinf", (above,)) | isnan(above)
    step = (where(unfit, 0.0, above) - where(unfit, 0.0, below)) * part  # also where it is 0: q has a gradient there
    return below + where(unfit & ~alone, above, step)  # type: ignore[no-any-return]


def _weighted(
    name: str, x: Tensor[Any], lines: Tensor[Any], q: Any, axes: tuple[int, ...], method: str, weights: Any
) -> Tensor[Any]:
    """The first element up to which the share q of all weight is: the inverse of the cumulative distribution."""
    if method != "inverted_cdf":
        raise errors.ArgumentError(
            f"{name}: with weights the method is 'inverted_cdf', received {errors.shown(method)}"
        )
    weights = _lines(weights, axes)
    last = lines.ndim - 1
    order = run("argsort", (lines,), axis=last, descending=False)
    total = run("cumulative_sum", (run("take_along_axis", (weights, order), axis=last),), axis=last)
    share = (total / total[..., -1:])[..., None]
    before = (share < constant_like(q, x, name)) | (share == 0)
    place = sum(cast(before, dtypes.int64), -2)
    place = run("minimum", (place, lines.shape[-1] - 1))
    ordered = run("take_along_axis", (lines, order), axis=last)
    out = run("take_along_axis", (ordered, place), axis=last)
    return where(isnan(ordered[..., -1:]), math.nan, out)


def _as_weights(name: str, x: Tensor[Any], weights: Any, axis: Axis) -> Tensor[Any]:
    """Weights of the shape of x: given so, or for the elements along axes, in the order in which these are named."""
    weights = operand(weights, x, name)
    if weights.shape != x.shape:
        places = axes_in_order(axis, x.ndim, name)
        if weights.shape != tuple(x.shape[i] for i in places):
            raise errors.ShapeError(
                f"{name}: weights of shape {weights.shape} for a tensor of shape {x.shape}; they have the same shape, "
                "or that of the axes"
            )
        weights = permute_dims(weights, sorted(range(len(places)), key=places.__getitem__))
        shape = tuple(n if i in places else 1 for i, n in enumerate(x.shape))
        weights = broadcast_to(reshape(weights, shape), x.shape)
    return weights  # type: ignore[no-any-return]


@explained
def quantile(
    x: Operand[B],
    q: Any,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
    **unknown: Never,
) -> Tensor[B]:
    """The values below which a share q of the elements along axes lies: elements, or values between two.

    Parameters
    ----------
    x
        Real values. Integers give the default dtype; lines with a nan give nan.
    q
        A number from 0 to 1, or a vector of them, whose axis comes first in the result. At an element the gradient that
        flows to it is that of the interval above.
    axis
        One, several or (None) all axes.
    method
        What is between two elements: "linear", "lower", "higher", "midpoint", "nearest", and the others of NumPy.
    keepdims
        Keep the reduced axes, of size one.
    weights
        Of the shape of x, or of the axes; the method is then "inverted_cdf". No gradient flows to them.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        A q outside, an unknown method; weights that do not fit; complex x.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.quantile(ad.tensor([1.0, 2.0, 4.0]), [0.0, 0.75]).tolist()
    [1.0, 3.0]
    """
    if unknown:
        raise keyword_error(quantile, unknown)
    return _quantile("quantile", x, _probabilities(q, 1, "quantile"), axis, method, keepdims, weights, False)  # type: ignore[no-any-return]


def percentile(
    x: Operand[B], q: Any, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Tensor[B]:
    """`quantile` with q from 0 to 100."""
    return _quantile("percentile", x, _probabilities(q, 100, "percentile"), axis, method, keepdims, weights, False)  # type: ignore[no-any-return]


@explained
def nanquantile(
    x: Operand[B], q: Any, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """`quantile` of the elements that are not nan; nan where there are none."""
    if unknown:
        raise keyword_error(nanquantile, unknown)
    return _quantile("nanquantile", x, _probabilities(q, 1, "nanquantile"), axis, method, keepdims, None, True)  # type: ignore[no-any-return]


def nanpercentile(
    x: Operand[B], q: Any, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor[B]:
    """`percentile` of the elements that are not nan; nan where there are none."""
    return _quantile("nanpercentile", x, _probabilities(q, 100, "nanpercentile"), axis, method, keepdims, None, True)  # type: ignore[no-any-return]


@explained
def median(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """The middle element along axes, or the mean of the two in the middle; nan where one of them is nan.

    >>> import adjoint as ad
    >>> ad.median(ad.tensor([3.0, 1.0, 2.0, 10.0])).item()
    2.5
    """
    if unknown:
        raise keyword_error(median, unknown)
    return _quantile("median", x, np.asarray(0.5), axis, "averaged_inverted_cdf", keepdims, None, False)  # type: ignore[no-any-return]


@explained
def nanmedian(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """`median` of the elements that are not nan; nan where there are none."""
    if unknown:
        raise keyword_error(nanmedian, unknown)
    return _quantile("nanmedian", x, np.asarray(0.5), axis, "averaged_inverted_cdf", keepdims, None, True)  # type: ignore[no-any-return]


# --- without nans: what is left out gets no gradient ---


def _without(x: Tensor[Any], value: Any) -> Tensor[Any]:
    return where(isnan(x), value, x) if x.dtype.kind in dtypes.INEXACT else x


def _known(missing: Tensor[Any], axes: tuple[int, ...]) -> Tensor[Any]:
    """How many elements along axes are not missing."""
    return math.prod(missing.shape[i] for i in axes) - run("sum", (cast(missing, _COUNTS),), axis=axes, keepdims=True)  # type: ignore[no-any-return]


_COUNTS = dtypes.int32  # as many as there is memory for along axes, and half as much to sum up


def _kept(x: Tensor[Any], axes: tuple[int, ...], keepdims: bool) -> Tensor[Any]:
    return x if keepdims or not axes else run("squeeze", (x,), axis=axes)


@explained
def nansum(
    x: Operand[B], /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """`sum` of the elements that are not nan.

    >>> import adjoint as ad
    >>> ad.nansum(ad.tensor([1.0, ad.nan, 2.0])).item()
    3.0
    """
    if unknown:
        raise keyword_error(nansum, unknown)
    return sum(_without(as_tensor(x, "nansum"), 0.0), axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Operand[B], /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor[B]:
    """`prod` of the elements that are not nan."""
    return prod(_without(as_tensor(x, "nanprod"), 1.0), axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Operand[B], /, axis: int | None = None, dtype: Any = None) -> Tensor[B]:
    """`cumulative_sum` in which nan counts as 0.

    >>> import adjoint as ad
    >>> ad.nancumsum(ad.tensor([1.0, ad.nan, 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumulative_sum(_without(as_tensor(x, "nancumsum"), 0.0), axis=axis, dtype=dtype)


def nancumprod(x: Operand[B], /, axis: int | None = None, dtype: Any = None) -> Tensor[B]:
    """`cumulative_prod` in which nan counts as 1."""
    return cumulative_prod(_without(as_tensor(x, "nancumprod"), 1.0), axis=axis, dtype=dtype)


@explained
def nanmean(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False, **unknown: Never) -> Tensor[B]:
    """`mean` of the elements that are not nan; nan where there are none."""
    if unknown:
        raise keyword_error(nanmean, unknown)
    x = inexact(x, "nanmean")
    return _mean("nanmean", x, isnan(x), axis, keepdims)


def _mean(name: str, x: Tensor[Any], missing: Tensor[Any], axis: Axis, keepdims: Any) -> Tensor[Any]:
    axes, keepdims = as_axes(axis, x.ndim, name), as_flag(keepdims, name)
    return _kept(cast(_nanmean(cast(x, dtypes.summing(x.dtype)), missing, axes)[0], x.dtype), axes, keepdims)


def _nanmean(x: Tensor[Any], missing: Tensor[Any], axes: tuple[int, ...]) -> tuple[Tensor[Any], Tensor[Any]]:
    """The mean and the number of elements that are not missing."""
    count = cast(_known(missing, axes), x.real.dtype)
    total = sum(where(missing, 0.0, x), axes, keepdims=True)
    return where(count == 0, math.nan, total / where(count == 0, 1.0, count)), count


def nanvar(x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Tensor[B]:
    """`var` of the elements that are not nan; nan where they are no more than the correction."""
    x = inexact(x, "nanvar")
    return _spread("nanvar", x, isnan(x), axis, correction, keepdims)  # type: ignore[no-any-return]


def nanstd(x: Operand[B], /, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Tensor[B]:
    """`std` of the elements that are not nan; nan where they are no more than the correction."""
    x = inexact(x, "nanstd")
    return _spread("nanstd", x, isnan(x), axis, correction, keepdims)  # type: ignore[no-any-return]


def _spread(name: str, x: Tensor[Any], missing: Tensor[Any], axis: Axis, correction: Any, keepdims: Any) -> Any:
    correction = as_number(correction, name, "correction")
    axes, keepdims = as_axes(axis, x.ndim, name), as_flag(keepdims, name)
    wide = cast(x, dtypes.summing(x.dtype))
    middle, count = _nanmean(wide, missing, axes)
    centred = where(missing, 0.0, wide - middle)
    freedom = count - correction
    known = freedom > 0
    freedom = where(known, freedom, 1.0)
    if name.endswith("var"):
        squares = run("square", (centred.real,))
        squares = squares + run("square", (centred.imag,)) if wide.dtype.kind == "c" else squares
        out = sum(squares, axes, keepdims=True) / freedom
    else:
        out = run("vector_norm", (centred,), axis=axes, keepdims=True) / run("sqrt", (freedom,))
    out = where(known, out, math.nan)
    return _kept(cast(out, x.dtype) if dtypes.summing(x.dtype) is not x.dtype else out, axes, keepdims)


def selected(
    name: str, x: Any, mask: Tensor[Any], axis: Axis = None, *, correction: float = 0, keepdims: bool = False
) -> Any:
    """The mean, variance or deviation of this name, or that without nans, of the elements where the mask is true."""
    x = inexact(x, name)
    missing = ~mask | isnan(x) if name.startswith("nan") else ~mask
    if name.endswith("mean"):
        return _mean(name, x, missing, axis, keepdims)
    return _spread(name, x, missing, axis, correction, keepdims)


def _nanextreme(name: str, x: Any, axis: Axis, keepdims: Any, pick: Callable[..., Any]) -> Any:
    x = as_ordered(x, name)
    if x.dtype.kind not in dtypes.FLOATING:
        return pick(x, axis, keepdims=keepdims)
    return run(name, (x,), axis=as_axes(axis, x.ndim, name), keepdims=as_flag(keepdims, name))


def nanmax(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]:
    """`max` of the elements that are not nan; nan where there are none."""
    return _nanextreme("nanmax", x, axis, keepdims, max)  # type: ignore[no-any-return]


def nanmin(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]:
    """`min` of the elements that are not nan; nan where there are none."""
    return _nanextreme("nanmin", x, axis, keepdims, min)  # type: ignore[no-any-return]


def _nanplace(name: str, x: Any, axis: int | None, keepdims: Any, pick: Callable[..., Any], beyond: float) -> Any:
    x = as_ordered(x, name)
    if x.dtype.kind not in dtypes.FLOATING:
        return pick(x, axis, keepdims=keepdims)
    missing = isnan(x)
    place = pick(where(missing, beyond, x), axis, keepdims=keepdims)
    return where(every(missing, axis, keepdims=keepdims), -1, place)


def nanargmax(x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False) -> Tensor[B]:
    """`argmax` of the elements that are not nan; -1 where there are none."""
    return _nanplace("nanargmax", x, axis, keepdims, argmax, -math.inf)  # type: ignore[no-any-return]


def nanargmin(x: Operand[B], /, axis: int | None = None, *, keepdims: bool = False) -> Tensor[B]:
    """`argmin` of the elements that are not nan; -1 where there are none."""
    return _nanplace("nanargmin", x, axis, keepdims, argmin, math.inf)  # type: ignore[no-any-return]


# --- averages and covariances ---


def average(x: Operand[B], /, axis: Axis = None, weights: Any = None, *, keepdims: bool = False) -> Tensor[B]:
    """The mean along axes, with weights of the shape of x or of these axes; gradients flow to both.

    >>> import adjoint as ad
    >>> ad.average(ad.tensor([1.0, 2.0]), weights=ad.tensor([3.0, 1.0])).item()
    1.25
    """
    x = inexact(x, "average", weights)
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    axes = as_axes(axis, x.ndim, "average")
    weights = _as_weights("average", x, weights, axis)
    total = sum(weights, axes, keepdims=keepdims)
    return sum(x * weights, axes, keepdims=keepdims) / total


def ptp(x: Operand[B], /, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]:
    """The largest element less the smallest along axes. Errors as `max`."""
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def cov(
    x: Operand[B],
    y: Any = None,
    /,
    rowvar: bool = True,
    *,
    correction: float = 1,
    fweights: Any = None,
    aweights: Any = None,
) -> Tensor[B]:
    """The matrix of covariances of variables: the rows of x (without `rowvar` its columns), and those of y.

    `fweights` says how often each observation counts, `aweights` how much; divided is by the sum of weights less the
    correction (1 gives the unbiased ones). Of one vector it is a 0-d variance. Gradients flow to all but `fweights`.
    Raises ShapeError for more than two axes, or weights that do not fit.

    >>> import adjoint as ad
    >>> ad.cov(ad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = _variables("cov", x, y, rowvar, fweights, aweights)
    correction, n = float(as_number(correction, "cov", "correction")), x.shape[1]
    weights: Any = None
    freedom: Any
    for given in (fweights, aweights):
        if given is not None:
            part = operand(given, x, "cov")
            if part.shape != (n,):
                raise errors.ShapeError(f"cov: weights of shape {part.shape} for {n} observations")
            part = cast(part, _real_dtype(x)) if part.dtype.kind in "biu" else part
            weights = part if weights is None else weights * part
    if weights is None:
        centred = x - mean(x, 1, keepdims=True)
        scaled, freedom = centred, n - correction
    else:
        total = sum(weights)
        centred = x - sum(x * weights, 1, keepdims=True) / total
        scaled = centred * weights
        freedom = total - correction
        if aweights is not None and correction:
            freedom = total - correction * sum(weights * operand(aweights, x, "cov")) / total
    product = run("matmul", tuple(as_tensors([scaled, _conj(centred).mT], "cov")))
    out = product / freedom if isinstance(freedom, Tensor) or freedom > 0 else product * math.nan
    return reshape(out, ()) if out.size == 1 else out


def _variables(name: str, x: Any, y: Any, rowvar: Any, *weights: Any) -> Tensor[Any]:
    """Variables as rows, observations as columns."""
    parts = [inexact(x, name, y, *weights)]
    if y is not None:
        parts = as_tensors([*parts, inexact(operand(y, parts[0], name), name)], name)
    turned = not as_flag(rowvar, name, "rowvar")
    rows = []
    for part in parts:
        if part.ndim > 2:
            raise errors.ShapeError(f"{name}: expected a vector or a matrix of variables, received shape {part.shape}")
        rows.append(reshape(part, (1, -1)) if part.ndim < 2 else part.mT if turned else part)
    return rows[0] if len(rows) == 1 else concat(rows, axis=0)


def _conj(x: Tensor[Any]) -> Tensor[Any]:
    return run("conj", (x,)) if x.dtype.kind == "c" else x


def _real_dtype(x: Tensor[Any]) -> Any:
    return x.real.dtype


def corrcoef(x: Operand[B], y: Any = None, /, rowvar: bool = True) -> Tensor[B]:
    """The matrix of correlations of variables: covariances divided by both standard deviations. Arguments as `cov`."""
    c = cov(x, y, rowvar=rowvar)
    if not c.ndim:
        return c / c
    places = operand(places_beside(c, c.shape[0]), c, "corrcoef")
    deviation = run("sqrt", (run("index", (c, places, places), key=(ARRAY, ARRAY)).real,))
    return c / reshape(deviation, (-1, 1)) / deviation  # type: ignore[no-any-return]
