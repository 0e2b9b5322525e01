"""What a learner differentiates: the loss of a batch, with what else the loop needs of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.dtypes import FLOATING
from adjoint.functions.arguments import as_tensor, called, check_tensor
from adjoint.functions.creation import asarray
from adjoint.module.base import Module
from adjoint.module.fields import leaves_of
from adjoint.operands import deferred_check
from adjoint.tensor import Tensor
from adjoint.train.parts import seed_of

Forward = Callable[[Any, Any, int], Any]  # of a model, a batch and a seed


class Outcome(NamedTuple):
    """What a batch gives beside its loss: for metrics, then the next buffers. None is what there is not."""

    prediction: Any = None
    target: Any = None
    weight: Any = None
    buffers: Any = None


class Objective:
    """A loss that is scaled, and its scale: all that another process needs of a learner.

    Predictions and targets are given where somebody, such as a metric, asks for them: they may be large.
    """

    forward: Forward
    is_seen: bool
    place: Backend
    precision: Any

    def __init__(self, forward: Forward, place: Backend, precision: Any, scaler: Any, is_seen: bool) -> None:
        self.forward, self.place, self.precision, self.is_seen = forward, place, precision, is_seen
        self.scaler = scaler
        self.scaling: Any = None if scaler is None else scaler.init()

    def loss(self, model: Any, batch: Any) -> tuple[Any, Outcome]:
        """The loss of a batch, and what there is beside it."""
        key = seed_of(self.place.next_key())
        if self.precision is not None and model.training:
            model = model.map(lambda x: _cast(x, self.precision))
        loss, found = _read(called("Learner: forward", "forward(model, batch, key)", self.forward, model, batch, key))
        check_tensor("Learner: the loss", loss)
        if loss.shape != ():
            raise errors.ShapeError(
                f"Learner: the loss is one number, a mean over examples, received shape {loss.shape}; take its mean()"
            )
        if loss.dtype.kind not in FLOATING:
            raise errors.DtypeError(f"Learner: the loss is a real floating number, received {loss.dtype}")
        if self.is_seen and (found.prediction is None or found.target is None):
            raise errors.ArgumentError(
                "Learner: metrics see a prediction and a target, and forward gave none; let it give (loss, prediction, "
                "target)"
            )
        return loss, found

    def __call__(self, model: Any, batch: Any) -> tuple[Any, Outcome]:
        loss, found = self.loss(model, batch)
        scaled = loss if self.scaler is None else self.scaler.scale(loss, self.scaling)
        return scaled, found if self.is_seen else Outcome(buffers=found.buffers)


def _read(found: Any) -> tuple[Any, Outcome]:
    """What a forward gave. Raises ArgumentTypeError."""
    if isinstance(found, Tensor):
        return found, Outcome()
    if isinstance(found, (tuple, list)) and len(found) in (3, 4):
        loss, prediction, target, *buffers = found
        return loss, Outcome(prediction, target, None, *buffers)
    if isinstance(found, dict) and "loss" in found and found.keys() <= {"loss", *Outcome._fields}:
        return found["loss"], Outcome(**{name: x for name, x in found.items() if name != "loss"})
    raise errors.ArgumentTypeError(
        "Learner: forward gives a loss, or (loss, prediction, target), or a dictionary of these and of weight and "
        f"buffers, this one gave {errors.shown(found)}"
    )


def has_buffers(model: Module) -> bool:
    return any(leaf.kind == "buffer" for leaf in leaves_of(model))


def with_buffers(model: Any, found: list[Any], place: Any) -> Any:
    """The model with the buffers that a batch gave; those of several devices' parts are averaged."""
    if found[0] is None:
        return model
    new = (
        found[0]
        if len(found) == 1
        else trees.map(lambda *xs: sum(asarray(x, device=place) for x in xs) / len(xs), *found)
    )
    like = {leaf.path: leaf.value for leaf in leaves_of(model) if leaf.kind == "buffer"}
    by_path = {leaf.path: leaf.value for leaf in leaves_of(new)}
    if like.keys() - by_path.keys():
        raise errors.ArgumentTypeError(
            "Learner: the buffers that forward gives are those of model.apply(x, model.state()), its second result, "
            f"received {errors.shown(new)}"
        )
    state = model.state()
    for path, x in like.items():
        state = state.at(path).set(asarray(by_path[path], device=x.device, dtype=x.dtype))
    return model.with_state(state)


def paired(loss: Any, buffered: bool, precision: Any) -> Forward:
    """The forward of batches that are pairs."""

    def forward(model: Any, batch: Any, key: int) -> dict[str, Any]:
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise errors.ArgumentError(
                "Learner: a batch is a pair (input, target), or (input, target, weight), received "
                f"{errors.shown(batch)}; for others give forward="
            )
        x, target, *weight = batch
        if weight:
            weight = [_checked_weight(weight[0], target)]
        half = precision is not None and model.training
        if half:
            x = trees.map(lambda x: _cast(x, precision), x)
        buffers = None
        if model.training and buffered:
            prediction, buffers = model.apply(x, model.state(), key=key)
        else:
            prediction = model(x, key=key)
        if half:  # sums of many half numbers are no good
            prediction = trees.map(lambda x: _cast(x, np.promote_types(precision, np.float32)), prediction)
        found = {"prediction": prediction, "target": target, "weight": weight[0] if weight else None}
        value = called(
            "Learner: the loss",
            f"loss(prediction, target{', weight' * len(weight)})",
            loss,
            prediction,
            target,
            *weight,
        )
        return {"loss": value, **found, "buffers": buffers}

    return forward


def _checked_weight(weight: Any, target: Any) -> Any:
    """Raises DtypeError for other than real numbers, ShapeError for other than one for each example, and ArgumentError
    for negative ones and nan.
    """
    dtype, shape = getattr(weight, "dtype", None), getattr(weight, "shape", None)
    if shape is None or getattr(dtype, "kind", "f") not in "biuf":
        raise errors.DtypeError(
            "Learner: the weight of a batch (input, target, weight) is an array of real numbers, received "
            f"{errors.shown(weight)}"
        )
    first = {tuple(x.shape)[:1] for x in trees.leaves(target) if getattr(x, "shape", ())}
    if len(first) == 1 and tuple(shape)[:1] not in first:
        raise errors.ShapeError(
            "Learner: the weight of a batch (input, target, weight) is a number for each example, so of shape "
            f"{first.pop()}, received {tuple(shape)}"
        )
    wrong: Callable[[Any], Exception] = lambda values: errors.ArgumentError(
        "Learner: the weight of a batch (input, target, weight) is 0 or more for each example, received "
        f"{values[~(values >= 0)].flat[0]}; where others have a meaning, as gains in a policy's loss, give forward="
    )
    not_negative: Callable[[Any], Any] = lambda values: (values >= 0).all()
    return deferred_check(as_tensor(weight, "Learner"), not_negative, wrong)


def _cast(x: Any, dtype: Any) -> Any:
    """A real tensor in another floating dtype; anything else as it is."""
    return x.astype(dtype) if isinstance(x, Tensor) and x.dtype.kind in FLOATING else x
