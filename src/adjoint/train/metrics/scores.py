"""Metrics of scores and probabilities: the area under the ROC curve, calibration, perplexity."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_integer
from adjoint.train.metrics.base import Array, Batch, Classified, Scored, State, ratio


def _scored(metric: Classified, prediction: Any, target: Any, weight: Any) -> tuple[Batch, Array]:
    batch = metric._batch(prediction, target, weight)
    if batch.scores is None:
        raise errors.ArgumentError(f"{metric.name}: needs scores, floating numbers, and received labels")
    return batch, batch.scores


def _softmax(x: Array) -> Array:
    with np.errstate(invalid="ignore"):  # rows of infinities are nan
        powers: Array = np.exp(x - x.max(axis=1, keepdims=True))
    out: Array = powers / powers.sum(axis=1, keepdims=True)
    return out


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    out: Array = np.where(x >= 0, 1.0, small) / (1 + small)
    return out


@dataclasses.dataclass(frozen=True, repr=False)
class AUROC(Scored):
    """The area under the receiver operating characteristic: how often a positive example has a higher score than a
    negative one, where equal scores count half. `sklearn.metrics.roc_auc_score`.

    It is exact: the state has all scores, 8 bytes each, and 16 for the example.

    Parameters
    ----------
    average
        With several classes (each against the rest) or labels: "macro", "weighted" by how often each occurs, "micro"
        of all decisions together, or None for an array with one for each. A class without a positive or without a
        negative example has none, and is nan, as is a mean with it.
    logits
        Scores of several classes have to be probabilities, because softmax changes their order among examples;
        with True they are logits, whose softmax is taken. With two classes, (batch,), or labels any scores will do.
    ignore_index, axis
        A target that does not count, and where classes or labels are, as of `Accuracy`.

    Raises
    ------
    ArgumentError
        Labels in the place of scores; scores of several classes that do not add up to 1.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.train.AUROC().compute([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """

    average: str | None = dataclasses.field(default="macro", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_choice(self.average, "AUROC", "average", ("macro", "micro", "weighted", None))

    def init(self) -> State:
        return {"chunks": ()}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch, scores = _scored(self, prediction, target, weight)
        if scores.ndim == 2 and batch.target.ndim == 1:
            scores = _probabilities(scores, self.logits, self.name)
        chunks = list(state["chunks"])
        chunk = (scores, batch.target, batch.weight)
        while chunks and len(chunks[-1][0]) <= len(chunk[0]):  # so that there are few, and each is copied a few times
            chunk = tuple(np.concatenate(pair) for pair in zip(chunks.pop(), chunk, strict=True))  # type: ignore[assignment]
        return {"chunks": (*chunks, chunk)}

    def value(self, state: State) -> Any:
        if not state["chunks"]:
            return float("nan")
        scores, target, weight = (np.concatenate(parts) for parts in zip(*state["chunks"], strict=True))
        if scores.ndim == 1:
            return _area(scores, target > 0, weight)
        positive = target > 0 if target.ndim == 2 else target[:, None] == np.arange(scores.shape[1])
        if self.average == "micro":
            return _area(scores.ravel(), positive.ravel(), np.repeat(weight, scores.shape[1]))
        areas = np.array([_area(scores[:, k], positive[:, k], weight) for k in range(scores.shape[1])])
        if self.average is None:
            return areas
        if self.average == "macro":
            return float(areas.mean())
        counts = (positive * weight[:, None]).sum(axis=0)
        counted = counts > 0
        return ratio((areas * counts)[counted].sum(), counts.sum())


def _area(scores: Array, positive: Array, weight: Array) -> float:
    """The area for one class: H. B. Mann, D. R. Whitney (1947)."""
    if np.isnan(scores).any():
        return float("nan")
    levels, at = np.unique(scores, return_inverse=True)
    up = np.bincount(at, weight * positive, minlength=len(levels))
    down = np.bincount(at, weight * ~positive, minlength=len(levels))
    return ratio((up * (down.cumsum() - down / 2)).sum(), up.sum() * down.sum())


def _probabilities(scores: Array, logits: bool, name: str) -> Array:
    """Probabilities of classes by rows. Raises ArgumentError for scores that are none; nan may be among them."""
    if logits:
        return _softmax(scores)
    if (np.abs(scores.sum(axis=1) - 1) > 1e-3).any() or (scores < 0).any():
        raise errors.ArgumentError(
            f"{name}: the scores are no probabilities that add up to 1; with logits=True their softmax is taken"
        )
    return scores


# --- calibration ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class _Binned(Scored):
    """Examples in bins of equal width by the probability that was predicted."""

    bins: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.bins, type(self).__name__, "bins", 1)

    def init(self) -> State:
        return {key: np.zeros(self.bins) for key in ("weight", "predicted", "true")}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch, scores = _scored(self, prediction, target, weight)
        if batch.target.ndim == 2:
            raise errors.ArgumentError(f"{self.name}: is of one class for each example, not of several labels")
        if scores.ndim == 2:
            p, true = _probabilities(scores, self.logits, self.name).max(axis=1), batch.predicted == batch.target
        else:
            p, true = _sigmoid(scores) if self.logits else scores, batch.target > 0
            if ((p < 0) | (p > 1)).any():
                raise errors.ArgumentError(
                    f"{self.name}: probabilities are from 0 to 1; with logits=True their sigmoid is taken"
                )
        at = np.searchsorted(np.linspace(0, 1, self.bins + 1)[1:-1], p)
        new = {"weight": batch.weight, "predicted": batch.weight * p, "true": batch.weight * true}
        return {key: state[key] + np.bincount(at, x, minlength=self.bins) for key, x in new.items()}

    def _means(self, state: State) -> tuple[Array, Array, Array]:
        weight: Array = state["weight"]
        means = [np.divide(state[key], weight, out=np.full(self.bins, np.nan), where=weight > 0) for key in state]
        return weight, means[1], means[2]


@dataclasses.dataclass(frozen=True, repr=False)
class Calibration(_Binned):
    """Predicted probabilities against how often they came true. `sklearn.metrics`'s `calibration_curve`.

    Examples are in `bins` of equal width by their probability: of class 1 for (batch,), of the predicted class for
    (batch, classes). The value is (bins, 3): the mean probability of the bin, how often it was true, and how many
    examples there are; nan, nan and 0 for a bin without any. With `logits` the sigmoid or softmax is taken.

    Raises ArgumentError for scores that are no probabilities, or labels.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.train.Calibration(2).compute([0.125, 0.375, 0.75, 1.0], [0, 1, 1, 1])
    array([[0.25 , 0.5  , 2.   ],
           [0.875, 1.   , 2.   ]])
    """

    def value(self, state: State) -> Array:
        weight, predicted, true = self._means(state)
        return np.stack([predicted, true, weight], axis=1)


@dataclasses.dataclass(frozen=True, repr=False)
class CalibrationError(_Binned):
    """The mean distance between probability and how often it was true, over bins as those of `Calibration`.

    C. Guo et al., On calibration of modern neural networks (2017), equation 3.

    >>> import adjoint as ad
    >>> ad.train.CalibrationError(2).compute([0.125, 0.375, 0.75, 1.0], [0, 1, 1, 1])
    0.1875
    """

    def default_name(self) -> str:
        return "calibration_error"

    def value(self, state: State) -> float:
        weight, predicted, true = self._means(state)
        used = weight > 0
        return ratio((weight * np.abs(true - predicted))[used].sum(), weight.sum())


@dataclasses.dataclass(frozen=True, repr=False)
class Perplexity(Classified):
    """exp of the mean negative log-probability of the true classes: how many classes the choice is as hard as.

    Scores are logits, (batch, classes) or with more axes behind, as in `ad.nn.cross_entropy`; logarithms of
    probabilities are logits too. `ignore_index` and `axis` are as of `Accuracy`. exp of `sklearn.metrics.log_loss`.
    Raises ArgumentError where there are no scores of several classes.

    Examples
    --------
    >>> import adjoint as ad
    >>> round(ad.train.Perplexity().compute(ad.zeros((3, 4)), [0, 1, 3]), 4)
    4.0
    """

    def init(self) -> State:
        return {"sum": 0.0, "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch, scores = _scored(self, prediction, target, weight)
        if scores.ndim == 1 or batch.target.ndim == 2:
            raise errors.ArgumentError(f"{self.name}: needs logits of several classes, (batch, classes)")
        if not len(scores):
            return state
        with np.errstate(invalid="ignore"):
            shifted = scores - scores.max(axis=1, keepdims=True)
        own = np.take_along_axis(shifted, batch.target[:, None], axis=1)[:, 0]
        loss = np.log(np.exp(shifted).sum(axis=1)) - own
        return {
            "sum": state["sum"] + float(loss[batch.weight > 0] @ batch.weight[batch.weight > 0]),
            "weight": state["weight"] + float(batch.weight.sum()),
        }

    def value(self, state: State) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(ratio(state["sum"], state["weight"])))
