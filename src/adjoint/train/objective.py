"""What a learner differentiates: the loss of a batch, with what else the loop needs of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.dtypes import FLOATING
from adjoint.module.base import Module
from adjoint.module.fields import leaves_of
from adjoint.tensor import Tensor
from adjoint.train.parts import seed_of

Forward = Callable[[Any, Any, int], Sequence[Any]]  # of a model, a batch and a seed


class Objective:
    """A loss that is scaled, and its scale: all that another process needs of a learner.

    Predictions and targets are given where somebody, such as a metric, asks for them: they may be large.
    """

    def __init__(self, forward: Forward, place: Backend, precision: Any, scaler: Any, is_seen: bool) -> None:
        self.forward, self.place, self.precision, self.is_seen = forward, place, precision, is_seen
        self.scaler = scaler
        self.scaling: Any = None if scaler is None else scaler.init()

    def loss(self, model: Any, batch: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        """The loss of a batch, and beside it prediction, target, and the next buffers or None."""
        key = seed_of(self.place.next_key())
        if self.precision is not None and model.training:
            model = model.map(lambda x: _cast(x, self.precision))
        found = self.forward(model, batch, key)
        if not isinstance(found, (tuple, list)) or len(found) not in (3, 4):
            raise errors.ArgumentTypeError(
                "Learner: forward gives (loss, prediction, target), or the buffers after it too, this one gave "
                f"{errors.shown(found)}"
            )
        loss, prediction, target, *buffers = found
        return loss, (prediction, target, buffers[0] if buffers else None)

    def __call__(self, model: Any, batch: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        loss, (prediction, target, buffers) = self.loss(model, batch)
        scaled = loss if self.scaler is None else self.scaler.scale(loss, self.scaling)
        return scaled, (prediction, target, buffers) if self.is_seen else (None, None, buffers)


def has_buffers(model: Module) -> bool:
    return any(leaf.kind == "buffer" for leaf in leaves_of(model))


def paired(loss: Any, buffered: bool, precision: Any) -> Forward:
    """The forward of batches that are pairs."""

    def forward(model: Any, batch: Any, key: int) -> Sequence[Any]:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise errors.ArgumentError(
                f"Learner: a batch is a pair (input, target), received {errors.shown(batch)}; for others give forward="
            )
        x, target = batch
        half = precision is not None and model.training
        if half:
            x = trees.map(lambda x: _cast(x, precision), x)
        buffers: tuple[Any, ...] = ()
        if model.training and buffered:
            prediction, state = model.apply(x, model.state(), key=key)
            buffers = (state,)
        else:
            prediction = model(x, key=key)
        if half:  # sums of many half numbers are no good
            prediction = trees.map(lambda x: _cast(x, np.promote_types(precision, np.float32)), prediction)
        return loss(prediction, target), prediction, target, *buffers

    return forward


def _cast(x: Any, dtype: Any) -> Any:
    """A real tensor in another floating dtype; anything else as it is."""
    return x.astype(dtype) if isinstance(x, Tensor) and x.dtype.kind in FLOATING else x
