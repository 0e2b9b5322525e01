"""Linear layers, embeddings and dropout."""

from __future__ import annotations

from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import arange, as_integer, as_number, as_tensor, as_tensors
from adjoint.functions.elementwise import where
from adjoint.functions.manipulation import expand_dims
from adjoint.functions.products import matmul
from adjoint.nn.arguments import real
from adjoint.random import bernoulli
from adjoint.tensor import Tensor, operand, verified

B = TypeVar("B", bound=Backend)


def linear(x: Tensor[B], weight: Tensor[B], bias: Tensor[B] | None = None) -> Tensor[B]:
    """x @ weight.mT + bias: x (..., inputs), weight (outputs, inputs), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    if weight.ndim != 2:
        raise errors.ShapeError(f"linear: weight is (outputs, inputs), received shape {weight.shape}")
    if not x.ndim or x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        raise errors.ShapeError(
            f"linear: x is (..., inputs), weight (outputs, inputs) and bias (outputs,); received {x.shape}, "
            f"{weight.shape} and {None if bias is None else bias.shape}"
        )
    out = matmul(x, weight.mT)
    return out if bias is None else out + bias


def dropout(x: Tensor[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """Zeros in place of elements, each with probability p, and the others divided by 1 - p. Unchanged if not training.

    Which ones `ad.random` draws: `ad.random.seed` starts the sequence. Raises ArgumentError unless p is from 0 to 1,
    DtypeError for integers.

    >>> import adjoint as ad
    >>> ad.nn.dropout(ad.ones(2), 0.5, training=False).tolist()
    [1.0, 1.0]
    """
    x, p = real(x, "dropout"), as_number(p, "dropout", "p")
    if not 0 <= p <= 1:
        raise errors.ArgumentError(f"dropout: p is a probability, received {errors.shown(p)}")
    return _dropped(x, x.shape, p) if training and p > 0 else x


def _dropped(x: Tensor[Any], shape: tuple[int, ...], p: float) -> Tensor[Any]:
    """With elements dropped as a random mask of a shape says, which broadcasts."""
    keep = bernoulli(1 - p, shape, device=x.device)
    return where(keep, x / (1 - p) if p < 1 else x, 0.0)


def embedding(indices: Any, weight: Tensor[B], *, padding_idx: int | None = None) -> Tensor[B]:
    """The rows of a table at integers: indices of any shape, weight (rows, features); (..., features).

    The row at `padding_idx` gets no gradient. Raises DtypeError for other indices, ShapeError for a weight of other
    axes, OutOfRangeError for rows that there are not.

    >>> import adjoint as ad
    >>> ad.nn.embedding(ad.tensor([1, 0]), ad.tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    weight = as_tensor(weight, "embedding")
    places = operand(indices, weight, "embedding")
    if weight.ndim != 2:
        raise errors.ShapeError(f"embedding: weight is (rows, features), received shape {weight.shape}")
    if places.dtype.kind not in "iu":
        raise errors.DtypeError(f"embedding: indices are integers, received {places.dtype}")
    rows = weight.shape[0]
    places = verified(
        places,
        lambda values: values.min() >= 0 and values.max() < rows,
        lambda values: errors.OutOfRangeError(
            f"embedding: indices from {values.min()} to {values.max()}, but there are {rows} rows, from 0"
        ),
    )
    if padding_idx is not None:
        row = as_integer(padding_idx, "embedding", "padding_idx")
        if not -weight.shape[0] <= row < weight.shape[0]:
            raise errors.OutOfRangeError(f"embedding: padding_idx {row} of {weight.shape[0]} rows")
        padding = arange(weight.shape[0], device=weight.device).reshape((-1, 1)) == row % weight.shape[0]
        weight = where(padding, weight.detach(), weight)
    return weight[places]


def one_hot(indices: Any, num_classes: int = -1) -> Tensor[Any]:
    """Zeros with a one at each integer's place of a new last axis, int64.

    The number of classes is one more than the largest index unless given. Raises DtypeError for what are no integers,
    OutOfRangeError for negative ones, or no less than the number of classes.

    >>> import adjoint as ad
    >>> ad.nn.one_hot(ad.tensor([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    places, classes = as_tensor(indices, "one_hot"), as_integer(num_classes, "one_hot", "num_classes")
    if places.dtype.kind not in "iu":
        raise errors.DtypeError(f"one_hot: expected integers, received {places.dtype}")
    if classes == -1:
        classes = int(places.device.values_of(places._array).max(initial=-1)) + 1
    places = verified(
        places,
        lambda values: values.min() >= 0 and values.max() < classes,
        lambda values: errors.OutOfRangeError(
            f"one_hot: indices from {values.min()} to {values.max()}, but there are {classes} classes, from 0"
        ),
    )
    line = arange(classes, dtype=places.dtype, device=places.device)
    return (expand_dims(places, -1) == line).astype(dtypes.int64)


def bilinear(x1: Tensor[B], x2: Tensor[B], weight: Tensor[B], bias: Tensor[B] | None = None) -> Tensor[B]:
    """x1 @ weight[o] @ x2 for each output o: x1 (..., n), x2 (..., m), weight (outputs, n, m), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    x1, x2, weight = as_tensors([real(x, "bilinear") for x in (x1, x2, weight)], "bilinear")
    fits = weight.ndim == 3 and min(x1.ndim, x2.ndim) > 0 and x1.shape[:-1] == x2.shape[:-1]
    if not fits or (x1.shape[-1], x2.shape[-1]) != weight.shape[1:]:
        raise errors.ShapeError(
            f"bilinear: expected x1 (..., n), x2 (..., m) and weight (outputs, n, m), received {x1.shape}, {x2.shape} "
            f"and {weight.shape}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise errors.ShapeError(f"bilinear: {weight.shape[0]} outputs need a bias of that size, received {bias.shape}")
    rows = x1.reshape((-1, x1.shape[-1]))
    left = matmul(rows, weight)  # (outputs, rows, m)
    out = (left * x2.reshape((-1, x2.shape[-1]))).sum(axis=-1).mT.reshape((*x1.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
