"""Metrics of predicted numbers: mean absolute error, root mean squared error, R2. As in scikit-learn."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.train.metrics.base import Array, Metric, State, real, weights_of


def _pair(prediction: Any, target: Any, weight: Any, name: str) -> tuple[Array, Array, Array]:
    """Predictions and targets as (examples, outputs), weights as (examples, 1). Raises ShapeError for others."""
    y, t = real(prediction, name, "a prediction"), real(target, name, "a target")
    if y.shape != t.shape or not y.ndim:
        raise errors.ShapeError(
            f"{name}: predictions and targets have one shape, (batch, ...), received {y.shape} and {t.shape}"
        )
    # with a weight for each step, say, each step is an example
    axes = 1 if weight is None else max(np.ndim(weight), 1)
    w = weights_of(weight, y.shape[:axes], name)
    sizes = math.prod(y.shape[:axes]), math.prod(y.shape[axes:])
    return y.reshape(sizes), t.reshape(sizes), w.reshape(-1, 1)


@dataclasses.dataclass(frozen=True, repr=False)
class MAE(Metric):
    """The mean absolute error, over all outputs. `sklearn.metrics.mean_absolute_error`.

    Predictions and targets have one shape, (batch, ...); raises ShapeError for others, (batch, 1) beside (batch,) too.

    >>> import adjoint as ad
    >>> ad.train.MAE().compute([1.0, 2.0, 3.0], [1.0, 4.0, 2.0])
    1.0
    """

    def init(self) -> State:
        return {"sum": np.zeros(1), "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        y, t, w = _pair(prediction, target, weight, self.name)
        return {"sum": state["sum"] + (w * np.abs(y - t)).sum(axis=0), "weight": state["weight"] + float(w.sum())}

    def value(self, state: State) -> float:
        return float((state["sum"] / state["weight"]).mean()) if state["weight"] else float("nan")


@dataclasses.dataclass(frozen=True, repr=False)
class RMSE(Metric):
    """The root of the mean squared error; of several outputs, the mean of the root of each.
    `sklearn.metrics.root_mean_squared_error`.

    >>> import adjoint as ad
    >>> ad.train.RMSE().compute([1.0, 2.0], [4.0, 6.0]) == 12.5**0.5
    True
    """

    def init(self) -> State:
        return {"sum": np.zeros(1), "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        y, t, w = _pair(prediction, target, weight, self.name)
        return {"sum": state["sum"] + (w * (y - t) ** 2).sum(axis=0), "weight": state["weight"] + float(w.sum())}

    def value(self, state: State) -> float:
        return float(np.sqrt(state["sum"] / state["weight"]).mean()) if state["weight"] else float("nan")


@dataclasses.dataclass(frozen=True, repr=False)
class R2(Metric):
    """The part of the variance that is explained; of several outputs, the mean of that of each.
    `sklearn.metrics.r2_score`.

    For targets that do not vary it is 1 where all predictions are right, else 0; nan for fewer than two examples. The
    variance is added up as in T. Chan, G. Golub, R. LeVeque (1979), which keeps its digits where the mean is large.

    >>> import adjoint as ad
    >>> ad.train.R2().compute([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]) == 1 - 3 / 14
    True
    """

    def init(self) -> State:
        return {"count": 0, "weight": 0.0, "mean": np.zeros(1), "spread": np.zeros(1), "residual": np.zeros(1)}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        y, t, w = _pair(prediction, target, weight, self.name)
        here, before = float(w.sum()), state["weight"]
        count = state["count"] + len(y)
        if not here:
            return {**state, "count": count}
        mean = (w * t).sum(axis=0) / here
        apart = mean - state["mean"]
        whole = before + here
        return {
            "count": count,
            "weight": whole,
            "mean": state["mean"] + apart * (here / whole),
            "spread": state["spread"] + (w * (t - mean) ** 2).sum(axis=0) + apart**2 * (before * here / whole),
            "residual": state["residual"] + (w * (y - t) ** 2).sum(axis=0),
        }

    def value(self, state: State) -> float:
        spread, residual = state["spread"], state["residual"]
        if state["count"] < 2 or not state["weight"]:
            return float("nan")
        constant = np.where(residual == 0, 1.0, 0.0)
        return float(np.where(spread == 0, constant, 1 - residual / np.where(spread == 0, 1.0, spread)).mean())
