"""Linear layers, embeddings and dropout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import dtypes, errors, linalg
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import (
    as_choice,
    as_flag,
    as_integer,
    as_number,
    as_probability,
    as_tensor,
    as_tensors,
    images,
    real,
)
from adjoint.functions.contraction import matmul
from adjoint.functions.creation import full, places_beside
from adjoint.functions.elementwise import where
from adjoint.functions.ranges import arange
from adjoint.functions.scatter import bincount, segment_max, segment_mean, segment_sum
from adjoint.functions.shape import expand_dims
from adjoint.functions.sorting import searchsorted
from adjoint.operands import cast, concrete_values, deferred_check, has_none_yet, operand, run
from adjoint.primitives.sizes import stands
from adjoint.random import bernoulli
from adjoint.tensor import Operand, Tensor, same
from adjoint.variables import B


def linear(x: Operand[B], weight: Operand[B], bias: Operand[B] | None = None) -> Tensor[B]:
    """x @ weight.mT + bias: x (..., inputs), weight (outputs, inputs), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    x = as_tensor(x, "linear", weight, bias)
    weight = operand(weight, x, "linear")
    bias = None if bias is None else operand(bias, x, "linear")
    shape, sizes = x.shape, weight.shape
    if len(sizes) != 2:
        raise errors.ShapeError(f"linear: weight is (outputs, inputs), received shape {sizes}")
    if not shape or shape[-1] != sizes[1] or (bias is not None and bias.shape != sizes[:1]):
        raise errors.ShapeError(
            f"linear: x is (..., inputs), weight (outputs, inputs) and bias (outputs,); received {shape}, "
            f"{sizes} and {None if bias is None else bias.shape}"
        )
    if bias is None or len(shape) == 1:
        out = matmul(x, weight.mT)
        return out if bias is None else out + bias
    return run("linear", as_tensors((x, weight, bias), "linear"))  # type: ignore[no-any-return]


def dropout(x: Operand[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """Zeros in place of elements, each with probability p, and the others divided by 1 - p. Unchanged if not training.

    Which ones `ad.random` draws: `ad.random.seed` starts the sequence. Raises ArgumentError unless p is from 0 to 1,
    DtypeError for integers.

    >>> import adjoint as ad
    >>> ad.nn.dropout(ad.ones(2), 0.5, training=False).tolist()
    [1.0, 1.0]
    """
    x, p = real(x, "dropout"), as_probability(p, "dropout")
    return _dropped(x, x.shape, p) if as_flag(training, "dropout", "training") and p > 0 else same(x)


def _dropped(x: Tensor[Any], shape: tuple[int, ...], p: float) -> Tensor[Any]:
    """With elements dropped as a random mask of a shape says, which broadcasts."""
    keep = bernoulli(1 - p, shape, device=x.device)
    return where(keep, x / (1 - p) if p < 1 else x, 0.0)


def dropout1d(x: Operand[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """`dropout2d` of signals (batch, channels, length)."""
    return _channels_dropped("dropout1d", 1, x, p, training)


def dropout2d(x: Operand[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """`dropout` of whole channels: x is (batch, channels, height, width), or one image without batch.

    J. Tompson et al., Efficient Object Localization Using Convolutional Networks (2015). Raises ShapeError for other
    axes, ArgumentError unless p is from 0 to 1.

    >>> import adjoint as ad
    >>> ad.random.seed(0)
    >>> sorted(set(ad.nn.dropout2d(ad.ones((1, 50, 2, 2))).sum(axis=(0, 2, 3)).tolist()))
    [0.0, 8.0]
    """
    return _channels_dropped("dropout2d", 2, x, p, training)


def dropout3d(x: Operand[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """`dropout2d` of volumes (batch, channels, depth, height, width)."""
    return _channels_dropped("dropout3d", 3, x, p, training)


def _channels_dropped(name: str, axes: int, x: Any, p: Any, training: bool) -> Tensor[Any]:
    given, p = images(name, axes, x), as_probability(p, name)
    if not as_flag(training, name, "training") or p == 0:
        return same(given)
    return _dropped(given, given.shape[: given.ndim - axes] + (1,) * axes, p)


def alpha_dropout(x: Operand[B], p: float = 0.5, training: bool = False) -> Tensor[B]:
    """`dropout` for `selu`: of numbers of mean 0 and variance 1 it keeps both. G. Klambauer et al. (2017), section 3.

    What is dropped becomes the least value of `selu`, and all are scaled and shifted. Raises as `dropout`.

    >>> import adjoint as ad
    >>> ad.nn.alpha_dropout(ad.ones(2)).tolist()
    [1.0, 1.0]
    """
    x, p = real(x, "alpha_dropout"), as_probability(p, "alpha_dropout")
    return _saturated(x, x.shape, p) if as_flag(training, "alpha_dropout", "training") and p > 0 else same(x)


def feature_alpha_dropout(x: Operand[B], p: float = 0.5, training: bool = False) -> Tensor[B]:
    """`alpha_dropout` of whole channels: x is (batch, channels, ...). Raises ShapeError for fewer axes."""
    x, p = real(x, "feature_alpha_dropout"), as_probability(p, "feature_alpha_dropout")
    training = as_flag(training, "feature_alpha_dropout", "training")
    if x.ndim < 2:
        raise errors.ShapeError(f"feature_alpha_dropout: expected (batch, channels, ...), received {x.shape}")
    return _saturated(x, x.shape[:2] + (1,) * (x.ndim - 2), p) if training and p > 0 else same(x)


def _saturated(x: Tensor[Any], shape: tuple[int, ...], p: float) -> Tensor[Any]:
    """With elements at the least value of `selu` as a random mask of a shape says, in mean and variance as before."""
    if p == 1:
        return x * 0.0
    least = -1.7580993408473766  # alpha lambda of the paper
    scale = 1 / math.sqrt((1 - p) * (1 + p * least**2))
    return where(bernoulli(1 - p, shape, device=x.device), x, least) * scale - scale * p * least


def embedding(
    indices: Any,
    weight: Operand[B],
    *,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor[B]:
    """The rows of a table at integers: indices of any shape, weight (rows, features); (..., features).

    The row at `padding_idx` gets no gradient. With `max_norm` rows of a larger norm, the `norm_type`-norm, are
    shortened to it; gradients do not see that, and the table stays as it is. With `scale_grad_by_freq` the gradient of
    a row is divided by how often it is among the indices: that is no derivative of the result, and so in every mode
    and order. Raises DtypeError for other indices,
    ShapeError for a weight of other axes, OutOfRangeError for rows that there are not.

    >>> import adjoint as ad
    >>> ad.nn.embedding(ad.tensor([1, 0]), ad.tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    weight, places = _table("embedding", indices, weight)
    if padding_idx is not None:
        row = _padding_row(padding_idx, weight, "embedding")
        padding = arange(weight.shape[0], device=weight.device).reshape((-1, 1)) == row
        weight = where(padding, weight.detach(), weight)
    rows = weight[places]
    if as_flag(scale_grad_by_freq, "embedding", "scale_grad_by_freq") and weight.dtype.kind in INEXACT:
        times = bincount(places.reshape((-1,)), length=weight.shape[0])[places].astype(weight.dtype)
        fixed = rows.detach()
        rows = fixed + (rows - fixed) / expand_dims(times, -1)
    if max_norm is None:
        return rows
    most, p = as_number(max_norm, "embedding", "max_norm"), as_number(norm_type, "embedding", "norm_type")
    fixed = rows.detach()
    size = linalg.vector_norm(fixed, axis=-1, keepdims=True, ord=p)
    return rows + where(size > most, fixed * (most / (size + 1e-7)) - fixed, 0.0)  # 1e-7 as PyTorch has it


def _table(name: str, indices: Any, weight: Any, *beside: Any) -> tuple[Tensor[Any], Tensor[Any]]:
    """A table and the numbers of its rows."""
    weight = as_tensor(weight, name, indices, *beside)
    places = operand(indices, weight, name)
    if weight.ndim != 2:
        raise errors.ShapeError(f"{name}: weight is (rows, features), received shape {weight.shape}")
    if places.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: indices are integers, received {places.dtype}")
    rows = weight.shape[0]
    places = deferred_check(
        places,
        lambda values: (values.min() >= 0) & (values.max() < rows),
        lambda values: errors.OutOfRangeError(
            f"{name}: indices from {values.min()} to {values.max()}, but there are {rows} rows, from 0"
        ),
    )
    return weight, places


def _padding_row(padding_idx: Any, weight: Tensor[Any], name: str) -> int:
    row = as_integer(padding_idx, name, "padding_idx")
    if not -weight.shape[0] <= row < weight.shape[0]:
        raise errors.OutOfRangeError(f"{name}: padding_idx {row} of {weight.shape[0]} rows")
    return row % weight.shape[0]


def embedding_bag(
    indices: Any,
    weight: Operand[B],
    offsets: Any = None,
    *,
    mode: str = "mean",
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor[B]:
    """Rows of a table, joined by bags: (bags, features).

    Parameters
    ----------
    indices
        Integers, (bags, length), or those of all bags one after the other.
    weight
        (rows, features)
    offsets
        Where each bag starts in a row of indices, the first at 0; the last number is where all end with
        `include_last_offset`.
    mode
        "sum", "mean" or "max"; a bag without rows gives zeros.
    per_sample_weights
        Factors of the rows, of the indices' shape, for "sum".
    padding_idx
        A row that does not count.

    Raises
    ------
    ShapeError, DtypeError, OutOfRangeError, ArgumentError
        Shapes that do not fit; indices or offsets that are no integers; rows that there are not, offsets that do not
        start at 0 or fall; another mode.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.embedding_bag(ad.tensor([0, 1, 1]), ad.tensor([[1.0], [3.0]]), ad.tensor([0, 2])).tolist()
    [[2.0], [3.0]]
    """
    name = "embedding_bag"
    weight, places = _table(name, indices, weight, per_sample_weights, offsets)
    as_choice(mode, name, "mode", ("sum", "mean", "max"))
    bags, count = _bags(places, offsets, as_flag(include_last_offset, name, "include_last_offset"), name)
    line = places.reshape((places.size,))
    rows = weight[line]
    if per_sample_weights is not None:
        factors = real(operand(per_sample_weights, weight, name), name)
        if mode != "sum" or factors.shape != places.shape:
            raise errors.ArgumentError(
                f"{name}: per_sample_weights are for mode 'sum', of the indices' shape {places.shape}; received shape "
                f"{factors.shape} and mode {mode!r}"
            )
        rows = rows * factors.reshape((line.size, 1))
    if padding_idx is not None:  # to a bag behind the others
        bags = where(line == _padding_row(padding_idx, weight, name), count, bags)
    if mode == "max":
        found = segment_max(rows, bags, count + 1)[:count]
        members = segment_sum(full(line.shape, 1, device=weight.device), bags, count + 1)[:count]
        return where(expand_dims(members, -1) > 0, found, 0.0)
    join = segment_sum if mode == "sum" else segment_mean
    return join(rows, bags, count + 1)[:count]


def _bags(places: Tensor[Any], offsets: Any, last: bool, name: str) -> tuple[Any, int]:
    """The bag of each index, one after the other, and how many there are."""
    if places.ndim == 2:
        if offsets is not None:
            raise errors.ArgumentError(f"{name}: offsets are for a row of indices, received {places.shape}")
        count, length = places.shape
        if stands(count) or stands(length):
            return places_beside(places, count * length) // length, count
        return operand(np.repeat(np.arange(count), length), places, name), count
    if places.ndim != 1 or offsets is None:
        raise errors.ShapeError(f"{name}: indices are (bags, length), or a row with offsets; received {places.shape}")
    given = operand(offsets, places, name)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: offsets are a row of integers, received {given.dtype} of shape {given.shape}")
    size, starts = places.size, cast(given, dtypes.int64)
    rise: Any = lambda x: (x[..., :1] == 0).all() & (x[..., 1:] >= x[..., :-1]).all() & (x <= size).all()
    error: Any = lambda x: errors.OutOfRangeError(
        f"{name}: offsets rise from 0 to at most {size}, received {errors.shown(x)}"
    )
    if isinstance(offsets, Tensor) and has_none_yet(offsets):
        starts = deferred_check(starts, rise, error)
    elif not rise(concrete_values(offsets, name)):
        raise error(offsets)
    count = max(0, starts.size - 1) if last else starts.size
    numbers = arange(size, device=places.device)
    bags = searchsorted(starts[:count], numbers, side="right") - 1
    return (where(numbers < starts[-1], bags, count) if last and starts.size else bags), count


def bilinear(x1: Operand[B], x2: Operand[B], weight: Operand[B], bias: Operand[B] | None = None) -> Tensor[B]:
    """x1 @ weight[o] @ x2 for each output o: x1 (..., n), x2 (..., m), weight (outputs, n, m), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    given = x1, x2, weight
    x1, x2, weight = as_tensors([real(x, "bilinear", *given, bias) for x in given], "bilinear")
    fits = weight.ndim == 3 and min(x1.ndim, x2.ndim) > 0 and x1.shape[:-1] == x2.shape[:-1]
    if not fits or (x1.shape[-1], x2.shape[-1]) != weight.shape[1:]:
        raise errors.ShapeError(
            f"bilinear: expected x1 (..., n), x2 (..., m) and weight (outputs, n, m), received {x1.shape}, {x2.shape} "
            f"and {weight.shape}"
        )
    bias = None if bias is None else operand(bias, x1, "bilinear")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise errors.ShapeError(f"bilinear: {weight.shape[0]} outputs need a bias of that size, received {bias.shape}")
    rows = x1.reshape((-1, x1.shape[-1]))
    left = matmul(rows, weight)  # (outputs, rows, m)
    out = (left * x2.reshape((-1, x2.shape[-1]))).sum(axis=-1).mT.reshape((*x1.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
