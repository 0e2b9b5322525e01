"""Numbers of discrete distributions, and choices. They are constants: no gradient flows to their parameters.

Shapes, parameters and devices are as for the continuous ones; results are int64 unless a dtype is given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_axis, as_flag, as_shape, as_size, check_shape, check_tensor
from adjoint.functions.elementwise import floor, log, log1p, minimum, where
from adjoint.functions.indexing import take
from adjoint.functions.reduction import argmax
from adjoint.functions.sorting import argsort, searchsorted
from adjoint.operands import deferred_check, run
from adjoint.random.basic import integers, permutation
from adjoint.random.parameters import (
    ANY,
    NOT_NEGATIVE,
    POSITIVE_PROBABILITY,
    PROBABILITY,
    WHOLE,
    Draw,
    ShapeLike,
    fits,
)
from adjoint.tensor import Tensor
from adjoint.variables import B


def _integer(dtype: Any, name: str) -> dtypes.DType:
    found = dtypes.default_int if dtype is None else dtypes.as_dtype(dtype)
    if found.kind not in "iu" + dtypes.FLOATING:
        raise errors.DtypeError(f"{name}: expected an integer or real dtype, received {found}")
    return found


def poisson(rate: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Counts of the Poisson distribution of a mean. Raises ArgumentError for a negative rate.

    The result has the shape `shape`, by default the one to which the parameters broadcast; int64 unless a dtype is
    given.

    >>> import adjoint as ad
    >>> ad.random.poisson([0.0, 1e6]).dtype
    dtype('int64')
    """
    draw = Draw("poisson", shape, None, device, {"rate": NOT_NEGATIVE}, rate, precise=True)
    return draw.sampled("random_poisson", *_constant(draw), dtype=_integer(dtype, "poisson"))


def binomial(n: Any, p: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Counts of successes among n of probability p. Raises ArgumentError unless n is whole and p is a probability.

    The result has the shape `shape`, by default the one to which the parameters broadcast; int64 unless a dtype is
    given.
    """
    draw = Draw("binomial", shape, None, device, {"n": WHOLE, "p": PROBABILITY}, n, p, precise=True)
    return draw.sampled("random_binomial", *_constant(draw), dtype=_integer(dtype, "binomial"))


def geometric(p: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Counts of trials up to the first success, from 1; at most what the dtype holds.

    The result has the shape `shape`, by default the one to which the parameters broadcast; int64 unless a dtype is
    given.
    Raises ArgumentError unless 0 < p <= 1.
    """
    draw = Draw("geometric", shape, None, device, {"p": POSITIVE_PROBABILITY}, p, precise=True)
    (share,) = _constant(draw)
    wanted = _integer(dtype, "geometric")
    count = floor(log(draw.uniform()) / log1p(-share)) + 1.0
    if wanted.kind in "iu":  # the largest that a dtype holds stands for what is larger
        largest = int(np.iinfo(wanted).max)
        held = np.nextafter(float(largest), 0.0) if float(largest) > largest else float(largest)
        return where(count > held, largest, minimum(count, held).astype(wanted))
    return count.astype(wanted)


def rademacher(shape: ShapeLike = (), *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """-1 or 1, each with probability 1/2.

    They are int64 unless a dtype is given; `shape` is that of the result, a scalar by default.
    """
    draw = Draw("rademacher", shape, None, device, {})
    return ((draw.noise() >= 0.5).astype(dtypes.int64) * 2 - 1).astype(_integer(dtype, "rademacher"))


def categorical(logits: Any, shape: ShapeLike | None = None, *, axis: int = -1, device: Any = None) -> Tensor[Any]:
    """Class numbers, each with the probability that softmax(logits) has along an axis.

    `shape` is the result's; by default that of the logits without the axis, which then must broadcast to it. As the
    largest of the logits with Gumbel noise: -inf is never drawn.

    Raises AxisError for an axis that is not there, ArgumentError for logits that are nan, or all -inf.

    >>> import adjoint as ad
    >>> ad.random.categorical([[0.0, -ad.inf], [-ad.inf, 0.0]]).tolist()
    [0, 1]
    """
    name = "categorical"
    draw = Draw(name, None, None, device, {"logits": ANY}, logits)
    (x,) = _constant(draw)
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor of logits has no axis of classes")
    place = as_axis(axis, x.ndim, name)
    if not x.shape[place]:
        raise errors.ShapeError(f"{name}: there are no classes in logits of shape {x.shape}")
    deferred_check(
        run("max", (x,), axis=(place,), keepdims=False),
        lambda values: (values > -np.inf).all(),
        lambda _: errors.ArgumentError(f"{name}: logits that are all -inf leave no class to draw"),
    )
    own = (*x.shape[:place], *x.shape[place + 1 :])
    outer = own if shape is None else as_shape(shape, name)
    from_end = place - x.ndim  # the axis of classes, counted from the end
    full = [*outer]
    full.insert(len(full) + from_end + 1, x.shape[place])
    if len(outer) < len(own) or not fits(x.shape, tuple(full)):
        raise errors.ShapeError(f"{name}: logits of shape {own} do not broadcast to classes of shape {outer}")
    return argmax(x - log(-log(draw.uniform(check_shape(tuple(full), name)))), axis=from_end)


def choice(
    x: Any,
    shape: ShapeLike = (),
    *,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    device: Any = None,
) -> Tensor[Any]:
    """Random slices of a tensor along an axis, or integers below x; gradients flow to what was chosen.

    `shape` stands in the place of the axis: x (a, b, c) and shape (n,) give (a, n, c) for axis 1. `p` are
    probabilities, equal ones by default. Without replacement none is chosen twice; with `p` then one after the other,
    each in proportion among those that are left.

    Raises ArgumentError for probabilities that are negative or do not sum to one, and for more choices than there are.

    >>> import adjoint as ad
    >>> sorted(ad.random.choice(4, 4, replace=False).tolist())
    [0, 1, 2, 3]
    >>> ad.random.choice(ad.tensor([10.0, 20.0]), 3, p=[0.0, 1.0]).tolist()
    [20.0, 20.0, 20.0]
    """
    name = "choice"
    if isinstance(x, (list, tuple, np.ndarray)):
        raise errors.ArgumentTypeError(
            f"{name}: expected a tensor or an int, received {errors.shown(x)}; see ad.tensor"
        )
    if isinstance(x, Tensor):
        size, device = x.shape[as_axis(axis, x.ndim, name)], x.device if device is None else device
    else:
        size = as_size(x, name, "x")
    replace = as_flag(replace, name, "replace")
    wanted = as_shape(shape, name)
    count = math.prod(wanted)
    if count and not size:
        raise errors.ArgumentError(f"{name}: there is nothing to choose from")
    if not replace and count > size:
        raise errors.ArgumentError(f"{name}: {count} choices of {size} without replacement; shape is {wanted}")
    if p is not None:
        places = _weighted(name, size, wanted, replace, p, device)
    elif replace:
        places = integers(0, max(size, 1), wanted, device=device)
    else:
        places = permutation(size, device=device)[:count].reshape(wanted)
    return take(x, places, axis=axis) if isinstance(x, Tensor) else places


def _weighted(name: str, size: int, shape: tuple[int, ...], replace: bool, p: Any, device: Any) -> Tensor[Any]:
    draw = Draw(name, None, None, device, {"p": PROBABILITY}, p, precise=True)
    (share,) = _constant(draw)
    if share.shape != (size,):
        raise errors.ShapeError(f"{name}: there are {size} to choose from, and probabilities of shape {share.shape}")
    deferred_check(
        share.sum(axis=-1),
        lambda values: (abs(values - 1.0) <= 1e-6).all(),
        lambda values: errors.ArgumentError(
            f"{name}: probabilities must sum to one, received a sum of {values.flat[0]}"
        ),
    )
    count = math.prod(shape)
    if replace:  # how many partial sums a uniform number is not below
        ends = share.cumulative_sum(axis=0)
        ends = (ends / ends[-1])[:-1]
        return searchsorted(ends, draw.uniform(shape), side="right")
    deferred_check(
        (share > 0).sum(axis=-1),
        lambda values: (values >= count).all(),
        lambda _: errors.ArgumentError(f"{name}: {count} choices without replacement, and fewer that are possible"),
    )
    noise = -log(-log(draw.uniform((size,))))
    return argsort(log(share) + noise, descending=True)[:count].reshape(shape)


def shuffle(x: Tensor[B], axis: int = 0) -> Tensor[B]:
    """The slices of a tensor along an axis in random order, as a new tensor; gradients flow through.

    The result has the shape of x.

    >>> import adjoint as ad
    >>> sorted(ad.random.shuffle(ad.tensor([1.0, 2.0, 3.0])).tolist())
    [1.0, 2.0, 3.0]
    """
    check_tensor("shuffle", x)
    if not x.ndim:
        raise errors.ShapeError("shuffle: a 0-d tensor has no slices")
    place = as_axis(axis, x.ndim, "shuffle")
    return take(x, permutation(x.shape[place], device=x.device), axis=place)


def _constant(draw: Draw) -> list[Tensor[Any]]:
    return [x.detach() for x in draw.parameters]
