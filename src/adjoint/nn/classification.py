"""Losses of predictions against classes, and against sequences of them."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from adjoint import dtypes, errors, special
from adjoint.functions.arguments import as_axis, as_flag, as_integer, as_number, as_tensors, is_number, real
from adjoint.functions.creation import made
from adjoint.functions.elementwise import clip, divide, maximum, where
from adjoint.functions.indexing import take_along_axis
from adjoint.functions.ranges import arange
from adjoint.functions.reduction import cumulative_sum
from adjoint.functions.scatter import put_along_axis
from adjoint.functions.shape import broadcast_to, concat, expand_dims, moveaxis, reshape, squeeze, stack
from adjoint.nn.activations import logsigmoid
from adjoint.nn.losses import above, both
from adjoint.nn.reduction import is_mean, reduced
from adjoint.operands import cast, concrete_values, deferred_check, has_none_yet, operand, run
from adjoint.primitives import ARRAY
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def cross_entropy(
    logits: Operand[B],
    target: Any,
    *,
    weight: Any = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    axis: int | None = None,
) -> Tensor[B]:
    """The negative log-probability of classes under softmax(logits).

    Parameters
    ----------
    logits
        (classes,), (batch, classes), or (batch, classes, ...) with more axes behind the classes.
    target
        Integers below the number of classes: the shape of the logits without their class axis. Or probabilities of
        classes, of the logits' own shape.
    weight
        A factor for each class, (classes,). The mean over class numbers is then that of the weights.
    ignore_index
        A class number that counts nothing, of targets that are integers.
    label_smoothing
        So much of every target is shared evenly among all classes, from 0 to 1.
    reduction
        "mean", "sum" or "none".
    axis
        Where the classes are, if not as above: -1 for (batch, steps, classes).

    Raises
    ------
    ShapeError, DtypeError, OutOfRangeError, ArgumentError, AxisError
        Shapes that do not fit; complex targets; targets that are no class; a smoothing out of range; no such axis.

    Examples
    --------
    >>> import adjoint as ad
    >>> loss = ad.nn.cross_entropy(ad.tensor([[0.0, 0.0]]), ad.tensor([1]))
    >>> round(loss.item(), 4)
    0.6931
    """
    name = "cross_entropy"
    x = real(logits, name, target, weight)
    labels = operand(target, x, name)
    smoothing = as_number(label_smoothing, name, "label_smoothing")
    if not 0 <= smoothing <= 1:
        raise errors.ArgumentError(f"{name}: label_smoothing is from 0 to 1, received {smoothing}")
    shape = x.shape
    if not shape:
        raise errors.ShapeError(f"{name}: 0-d logits have no class axis")
    place = _class_axis(axis, x, name)
    factors = _class_weights(weight, x, shape[place], name)
    if labels.dtype.kind in dtypes.FLOATING and labels.shape == shape:
        return _of_probabilities(x, labels, factors, smoothing, reduction, place)
    if labels.dtype.kind not in "iu":
        raise errors.DtypeError(
            f"{name}: targets are integers, or probabilities of the logits' shape {shape}; received {labels.dtype} "
            f"of shape {labels.shape}"
        )
    rows, wanted = x if place == len(shape) - 1 else moveaxis(x, place, -1), shape[:place] + shape[place + 1 :]
    if labels.shape != wanted:
        hint = "; axis=-1 says that classes are last" if axis is None and shape[:-1] == labels.shape else ""
        raise errors.ShapeError(f"{name}: logits {shape} need targets of shape {wanted}, received {labels.shape}{hint}")
    wide = cast(rows, dtypes.summing(x.dtype))
    labels, ignored = cast(labels, dtypes.int64), as_integer(ignore_index, name, "ignore_index")
    losses = run("labelled_cross_entropy", (wide, labels), ignore=ignored)
    weights = _weights(factors, labels, ignored)
    losses = losses if weights is None else losses * weights
    if smoothing:
        each = -special.log_softmax(wide, -1)
        shared = (each if factors is None else each * factors).sum(axis=-1)
        share = smoothing / x.shape[place]
        losses = losses * (1 - smoothing) + _counted(shared, labels, ignored) * share
    return cast(_averaged(losses, labels, weights, ignored, reduction, name), x.dtype)


def _class_axis(axis: int | None, x: Tensor[Any], name: str) -> int:
    """The axis of classes: the second one, of one example the first."""
    return min(1, x.ndim - 1) if axis is None else as_axis(axis, x.ndim, name)


def _class_weights(weight: Any, x: Tensor[Any], classes: int, name: str) -> Tensor[Any] | None:
    if weight is None:
        return None
    given = real(operand(weight, x, name), name)
    if given.shape != (classes,):
        raise errors.ShapeError(f"{name}: {classes} classes need a weight of that size, received {given.shape}")
    return cast(given, dtypes.summing(x.dtype))


def _of_probabilities(
    x: Tensor[Any], target: Tensor[Any], factors: Tensor[Any] | None, smoothing: float, reduction: str, axis: int
) -> Tensor[Any]:
    dtype = x.dtype
    x, target = as_tensors([cast(x, dtypes.summing(dtype)), target], "cross_entropy")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / x.shape[axis]
    each = -special.log_softmax(x, axis) * target
    if factors is not None:
        each = each * reshape(factors, (-1, *[1] * (x.ndim - axis - 1)))
    return cast(reduced(each.sum(axis=axis), reduction, "cross_entropy"), dtype)


def _classes(labels: Tensor[Any], ignored: int) -> Tensor[Any]:
    """Labels, with 0 for those that count nothing."""
    return run("replace_where_equal", (labels, labels), target=ignored, value=0)  # type: ignore[no-any-return]


def _counted(losses: Tensor[Any], labels: Tensor[Any], ignored: int) -> Tensor[Any]:
    """Losses or weights, with 0 for labels that count nothing."""
    return run("replace_where_equal", (losses, labels), target=ignored, value=0.0)  # type: ignore[no-any-return]


def _weights(factors: Tensor[Any] | None, labels: Tensor[Any], ignored: int) -> Tensor[Any] | None:
    """The weight of each label, 0 for those that count nothing."""
    if factors is None:
        return None
    return _counted(run("index", (factors, _classes(labels, ignored)), key=(ARRAY,)), labels, ignored)


def _averaged(
    losses: Tensor[Any], labels: Tensor[Any], weights: Tensor[Any] | None, ignored: int, reduction: str, name: str
) -> Tensor[Any]:
    """Weighted losses, 0 for labels that count nothing; their mean is over the weights of those that count."""
    if not is_mean(reduction):
        return reduced(losses, reduction, name)
    if weights is None:
        return run("labelled_mean", (losses, labels), axis=tuple(range(losses.ndim)), ignore=ignored)  # type: ignore[no-any-return]
    return divide(losses.sum(), weights.sum())


def nll_loss(
    x: Operand[B], target: Any, *, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    axis: int | None = None,
) -> Tensor[B]:  # fmt: skip
    """Minus the element of x at the class: the `cross_entropy` where x are logarithms of probabilities.

    x is (classes,), (batch, classes) or (batch, classes, ...), or has the classes on an `axis`; the other arguments and
    errors are as there.
    """
    name = "nll_loss"
    x = real(x, name, target, weight)
    labels = operand(target, x, name)
    if labels.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: targets are integers, received {labels.dtype}")
    if not x.ndim:
        raise errors.ShapeError(f"{name}: 0-d predictions have no class axis")
    place = _class_axis(axis, x, name)
    rows = moveaxis(x, place, -1) if place < x.ndim - 1 else x
    if rows.shape[:-1] != labels.shape:
        raise errors.ShapeError(
            f"{name}: x {x.shape} needs targets of shape {rows.shape[:-1]}, received {labels.shape}"
        )
    factors = _class_weights(weight, x, rows.shape[-1], name)
    labels, ignored = cast(labels, dtypes.int64), as_integer(ignore_index, name, "ignore_index")
    classes = _check_classes(_classes(labels, ignored), rows.shape[-1], name)
    picked = run("take_along_axis", (rows, expand_dims(classes, -1)), axis=rows.ndim - 1)
    losses = -squeeze(picked, -1)
    weights = _weights(factors, labels, ignored)
    if weights is not None or not is_mean(reduction):  # which leaves out itself what counts nothing
        losses = _counted(losses, labels, ignored)
    losses = losses if weights is None else losses * weights
    return cast(_averaged(losses, labels, weights, ignored, reduction, name), x.dtype)


def _check_classes(labels: Tensor[Any], classes: int, name: str, least: int = 0) -> Tensor[Any]:
    """The labels, which are numbers of classes."""
    return deferred_check(
        labels,
        lambda values: (values.min() >= least) & (values.max() < classes),
        lambda values: errors.OutOfRangeError(
            f"{name}: targets from {values.min()} to {values.max()}, but there are {classes} classes, from 0"
        ),
    )


def _rows(x: Any, target: Any, name: str, *beside: Any, labels: bool) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """Predictions (batch, classes) with their targets, and whether they were of one example."""
    x = real(x, name, target, *beside)
    target = operand(target, x, name)
    wanted = x.shape[:-1] if labels else x.shape
    if x.ndim not in (1, 2) or target.shape != wanted or target.dtype.kind not in "iu":
        raise errors.ShapeError(
            f"{name}: expected x (classes,) or (batch, classes) and integer targets "
            f"{'without' if labels else 'with'} the class axis; received {x.shape} and {target.dtype} of "
            f"{target.shape}"
        )
    if x.ndim == 1:
        return expand_dims(x, 0), expand_dims(target, 0), True
    return x, target, False


def multi_margin_loss(
    x: Operand[B], target: Any, *, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Tensor[B]:
    """The mean over classes i of max(0, margin - x_y + x_i)^p for all but the target y.

    x is (classes,) or (batch, classes), targets integers; `weight` is a factor for each class of a target.
    Raises ShapeError, OutOfRangeError, or ArgumentError unless p is 1 or 2.
    """
    name = "multi_margin_loss"
    if not is_number(p) or p not in (1, 2):
        raise errors.ArgumentError(f"{name}: p is 1 or 2, received {errors.shown(p)}")
    x, labels, single = _rows(x, target, name, weight, labels=True)
    factors = _class_weights(weight, x, x.shape[1], name)
    labels = _check_classes(labels, x.shape[1], name)
    column = expand_dims(labels, -1)
    apart = above(as_number(margin, name, "margin") - take_along_axis(x, column, axis=1) + x)
    apart = apart if p == 1 else apart * apart
    if factors is not None:
        apart = apart * factors[column]
    losses = put_along_axis(apart, column, 0.0, axis=1).sum(axis=1) / x.shape[1]
    return reduced(squeeze(losses, 0) if single else losses, reduction, name)


def multilabel_margin_loss(x: Operand[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """The sum over targets y and other classes i of max(0, 1 - x_y + x_i), over the number of classes.

    x is (classes,) or (batch, classes); targets are class numbers up to the first -1, of x's shape.
    Raises ShapeError or OutOfRangeError for others.
    """
    name = "multilabel_margin_loss"
    x, labels, single = _rows(x, target, name, labels=False)
    labels = _check_classes(labels, x.shape[1], name, -1)
    counts = (labels < 0).astype(dtypes.int64)
    valid = run("cumulative_sum", (counts,), axis=1) == 0
    safe = where(valid, labels, 0)
    classes = arange(x.shape[1], device=x.device)
    named = ((expand_dims(safe, -1) == classes) & expand_dims(valid, -1)).any(axis=1)
    apart = above(1 - expand_dims(take_along_axis(x, safe, axis=1), -1) + expand_dims(x, 1))
    counted = expand_dims(valid, -1) & expand_dims(~named, 1)
    losses = where(counted, apart, 0.0).sum(axis=(1, 2)) / x.shape[1]
    return reduced(squeeze(losses, 0) if single else losses, reduction, name)


def multilabel_soft_margin_loss(
    x: Operand[B], target: Any, *, weight: Any = None, reduction: str = "mean"
) -> Tensor[B]:
    """The mean over the last axis of the binary cross entropy of logits, one for each class.

    `weight` is a factor for each class. Raises ShapeError unless x and targets have one shape.
    """
    name = "multilabel_soft_margin_loss"
    x, target = both(x, target, name, weight)
    each = of_labels(x, target)
    if weight is not None:
        each = each * real(operand(weight, x, name), name)
    return reduced(each.mean(axis=-1), reduction, name)


def of_labels(x: Tensor[Any], target: Tensor[Any]) -> Tensor[Any]:
    """The losses of `multilabel_soft_margin_loss` for each class, also of complex targets."""
    return -(target * logsigmoid(x) + (1 - target) * logsigmoid(-x))


def ctc_loss(
    log_probs: Operand[B],
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor[B]:
    """Connectionist temporal classification: minus the log-probability of a sequence under all its alignments.

    A. Graves et al. (2006), equations 5 to 8. It loops over time, for all examples and states at once.

    Parameters
    ----------
    log_probs
        (time, batch, classes), or (time, classes) of one example: logarithms of probabilities.
    targets
        Class numbers, none of them the blank: (batch, length), or all of them one after the other.
    input_lengths, target_lengths
        (batch,): so much of each counts.
    blank
        The class that stands between others.
    reduction
        "mean" divides each loss by the target's length first; "sum" or "none".
    zero_infinity
        Zero in place of infinite losses, of targets that do not fit into the time.

    Raises
    ------
    ShapeError, OutOfRangeError, DtypeError
        Shapes and lengths that do not fit, classes that there are not, targets that are no integers.

    Examples
    --------
    >>> import adjoint as ad
    >>> even = ad.full((2, 1, 2), -0.6931472)
    >>> round(ad.nn.ctc_loss(even, ad.tensor([[1]]), [2], [1]).item(), 4)
    0.2877
    """
    name = "ctc_loss"
    x = real(log_probs, name, targets, input_lengths, target_lengths)
    single = x.ndim == 2
    if single:
        x = expand_dims(x, 1)
    if x.ndim != 3:
        raise errors.ShapeError(f"{name}: expected log_probs (time, batch, classes), received {x.shape}")
    time, batch, classes = x.shape
    steps, taken = _lengths(input_lengths, batch, "input", x)
    sizes, known = _lengths(target_lengths, batch, "target", x)
    labels = _labels(targets, sizes, known, classes, x)
    steps = deferred_check(
        steps,
        lambda values: values.max() <= time,
        lambda values: errors.OutOfRangeError(
            f"{name}: input_lengths up to {values.max()}, but there are {time} steps"
        ),
    )
    if not 0 <= as_integer(blank, name, "blank") < classes:
        raise errors.OutOfRangeError(f"{name}: the blank {blank} is none of {classes} classes")
    # states: a blank, a label, a blank, ...; from a label to the next one the blank between may be left out
    longest = labels.shape[1]
    blanks = made(x.device, "full", shape=(batch, longest + 1), value=blank, dtype=dtypes.int64)
    between = reshape(stack([blanks[:, 1:], labels], axis=2), (batch, 2 * longest))
    states = concat([between, blanks[:, :1]], axis=1)
    follows = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    skip = concat([blanks[:, :1] != blank] * min(2, states.shape[1]) + [follows], axis=1)
    scores = take_along_axis(x, broadcast_to(expand_dims(states, 0), (time, *states.shape)), axis=2)
    never = made(x.device, "full", shape=(batch, 2), value=-math.inf, dtype=x.dtype)
    first = arange(states.shape[1], device=x.device) < 2
    alpha = where(first, scores[0], -math.inf) if time else where(first, never[:, :1], -math.inf)

    def moved(alpha: Tensor[Any], score: Tensor[Any], t: Any) -> Tensor[Any]:
        before = concat([never, alpha], axis=1)
        paths = stack([alpha, before[:, 1:-1], where(skip, before[:, :-2], -math.inf)])
        return where(expand_dims(steps, 1) > t, special.logsumexp(paths, 0) + score, alpha)

    if x.device.leaf.is_fresh and time > 1:  # a recording has a loop in the place of as many steps
        scan = import_module("adjoint.transforms.control").scan  # which is above
        parts = scores[1:], arange(1, time, device=x.device)
        alpha, _ = scan(lambda alpha, part: (moved(alpha, *part), None), alpha, parts)
    else:
        for t in range(1, time):
            alpha = moved(alpha, scores[t], t)
    ends = stack([2 * sizes, maximum(2 * sizes - 1, 0)], axis=1)
    last = take_along_axis(alpha, ends, axis=1)
    last = where(stack([sizes >= 0, sizes > 0], axis=1), last, -math.inf)
    losses = -special.logsumexp(last, 1)
    if taken is None or (taken == 0).any():  # no time: only the empty sequence is possible
        losses = where(steps == 0, where(sizes == 0, 0.0, -never[:, 0]), losses)
    if as_flag(zero_infinity, name, "zero_infinity"):
        losses = where(losses == math.inf, 0.0, losses)
    if single:
        losses = squeeze(losses, 0)
    if is_mean(reduction):
        lengths = cast(maximum(sizes, 1), x.dtype)
        return divide(losses, lengths[0] if single else lengths).mean()
    return reduced(losses, reduction, name)


def _values(given: Any, what: str) -> np.ndarray[Any, Any] | None:
    """The values, where there are such before a program runs, and the same for all examples of `vmap`."""
    if isinstance(given, Tensor) and has_none_yet(given):
        return None
    values = concrete_values(given, what)
    return None if isinstance(given, Tensor) and values.shape != given.shape else values


def _lengths(given: Any, batch: int, what: str, x: Tensor[Any]) -> tuple[Tensor[Any], np.ndarray[Any, Any] | None]:
    """How much of each example counts, and the values of that."""

    def wrong(shown: Any) -> errors.AdjointError:
        return errors.ShapeError(
            f"ctc_loss: {what}_lengths are {batch} integers, one for each example, received {errors.shown(shown)}"
        )

    values = _values(given, "ctc_loss: lengths")
    lengths: Any = given if values is None else np.atleast_1d(values)
    if values is None and not lengths.ndim:
        lengths = lengths[None]
    if lengths.shape != (batch,) or (batch and lengths.dtype.kind not in "iu"):
        raise wrong(given)
    if values is None:
        checked = deferred_check(lengths, lambda values: values.min() >= 0, wrong)
        return cast(checked, dtypes.int64), None
    if (lengths < 0).any():
        raise wrong(given)
    lengths = lengths.astype(np.int64)
    return operand(lengths, x, "ctc_loss"), lengths


def _labels(
    targets: Any, sizes: Tensor[Any], known: np.ndarray[Any, Any] | None, classes: int, x: Tensor[Any]
) -> Tensor[Any]:
    """The labels of all examples, padded with class 0. Where sizes have no values yet, as many as there may be."""
    given = targets if isinstance(targets, Tensor) else concrete_values(targets, "ctc_loss: targets")
    if math.prod(given.shape) and given.dtype.kind not in "iu":
        raise errors.DtypeError(f"ctc_loss: targets are integers, received {errors.shown(targets)}")
    batch, shape, size = sizes.shape[0], given.shape, math.prod(given.shape)
    rows = given.ndim == 2 and shape[0] == batch
    most = shape[1] if rows else size
    longest = most if known is None else int(known.max(initial=0))
    if longest > size:
        raise errors.ShapeError(f"ctc_loss: targets of shape {shape}, and lengths up to {longest}")
    if longest > most or not (rows or (given.ndim == 1 and (known is None or known.sum() <= size))):
        raise errors.ShapeError(
            "ctc_loss: targets are (batch, length), or one after the other, of lengths "
            f"{'that are not known yet' if known is None else known.tolist()}; received shape {shape}"
        )
    if known is None:
        deferred_check(
            sizes if rows else sizes.sum(),
            lambda values: values.max() <= most,
            lambda values: errors.ShapeError(
                f"ctc_loss: targets of shape {shape}, and lengths {'up to' if rows else 'of'} {values.max()}"
            ),
        )
    given = cast(operand(given, x, "ctc_loss"), dtypes.int64)
    numbers = arange(longest, device=x.device)
    if rows:
        labels = given[:, :longest]
    elif size:
        begin = cumulative_sum(sizes) - sizes
        labels = given[clip(expand_dims(begin, 1) + numbers, 0, size - 1)]
    else:
        labels = broadcast_to(given[None], (batch, 0))
    labels = where(numbers < expand_dims(sizes, 1), labels, 0)
    return deferred_check(
        labels,
        lambda values: (values.min() >= 0) & (values.max() < classes),
        lambda values: errors.OutOfRangeError(
            f"ctc_loss: targets from {values.min()} to {values.max()}, but there are {classes} classes, from 0"
        ),
    )
