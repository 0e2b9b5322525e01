"""Metrics of predicted classes: accuracy, precision, recall, F-beta, the confusion matrix. As in scikit-learn."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_integer, as_number, as_positive
from adjoint.train.metrics.base import Array, Batch, Classified, Scored, State, added, ratio


@dataclasses.dataclass(frozen=True, repr=False)
class _Classes(Scored):
    """Settings of which of two classes a score is of."""

    threshold: float = dataclasses.field(default=0.5, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        threshold = as_number(self.threshold, name, "threshold")
        if self.logits and not 0 < threshold < 1:
            raise errors.ArgumentError(
                f"{name}: with logits=True the threshold is a probability, between 0 and 1, received {threshold}"
            )

    def _decided(self, prediction: Any, target: Any, weight: Any) -> Batch:
        """The batch, with classes by the threshold; with weights of nan where some score is nan."""
        bound = math.log(self.threshold / (1 - self.threshold)) if self.logits else self.threshold
        batch = self._batch(prediction, target, weight, bound)
        if batch.scores is not None and np.isnan(batch.scores).any():  # which decide for no class
            batch = batch._replace(weight=batch.weight * math.nan)
        return batch


@dataclasses.dataclass(frozen=True, repr=False)
class Accuracy(_Classes):
    """The part of examples whose class is right. `sklearn.metrics.accuracy_score`.

    Predictions are scores, (batch, classes) or with more axes behind, whose largest is the class; scores (batch,) of
    two classes, 1 above the `threshold`; or labels. Of several labels at once, (batch, labels), all have to be right.
    With `logits` scores of two classes or labels are logits, whose sigmoid is compared with the threshold. Classes or
    labels may be on another `axis`, as -1 for (batch, steps, classes). Targets that are `ignore_index` do not count, as
    in `ad.nn.cross_entropy`. Where a score is nan, so is the metric.

    Raises ShapeError where the two do not fit, ArgumentError for targets that are no class numbers, OutOfRangeError
    for a class that has no score; so do all metrics of classes.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.train.Accuracy().compute([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]], [0, 1, 1, 1])
    0.75
    >>> ad.train.Accuracy(logits=True).compute(ad.tensor([-2.0, 0.4]), ad.tensor([0.0, 1.0]))
    1.0
    """

    def init(self) -> State:
        return {"right": 0.0, "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch = self._decided(prediction, target, weight)
        right = batch.predicted == batch.target
        return _with_right(state, right.all(axis=1) if right.ndim == 2 else right, batch.weight)

    def value(self, state: State) -> float:
        return ratio(state["right"], state["weight"])


@dataclasses.dataclass(frozen=True, repr=False)
class TopK(Classified):
    """The part of examples whose class is among the k with the largest scores. `sklearn.metrics.top_k_accuracy_score`.

    Scores are (batch, classes), or with more axes behind; `axis` as of `Accuracy`. Among equal scores the later class
    comes first, as in scikit-learn. Raises ArgumentError where there are no scores of several classes.

    Examples
    --------
    >>> import adjoint as ad
    >>> metric = ad.train.TopK(2)
    >>> metric.name, metric.compute([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], [1, 2])
    ('top2_accuracy', 0.5)
    """

    k: int = 5

    def __post_init__(self) -> None:
        as_integer(self.k, "TopK", "k", 1)
        super().__post_init__()

    def default_name(self) -> str:
        return f"top{self.k}_accuracy"

    def init(self) -> State:
        return {"right": 0.0, "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch = self._batch(prediction, target, weight)
        if batch.scores is None or batch.scores.ndim == 1 or batch.target.ndim == 2:
            raise errors.ArgumentError(f"{self.name}: needs scores of several classes, (batch, classes)")
        own = np.take_along_axis(batch.scores, batch.target[:, None], axis=1)
        later = np.arange(batch.classes) > batch.target[:, None]
        above = ((batch.scores > own) | ((batch.scores == own) & later)).sum(axis=1)
        return _with_right(state, (above < self.k) & ~np.isnan(own[:, 0]), batch.weight)

    def value(self, state: State) -> float:
        return ratio(state["right"], state["weight"])


def _with_right(state: State, right: Array, weight: Array) -> State:
    return {
        "right": state["right"] + float((right * weight).sum()),
        "weight": state["weight"] + float(weight.sum()),
    }


# --- precision, recall and what is between them --------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class _Ratio(_Classes):
    """A ratio of counts for each class: of what was right (`hits`), was predicted as it, and is of it."""

    average: str | None = dataclasses.field(default="binary", kw_only=True)

    def __post_init__(self) -> None:
        as_choice(self.average, type(self).__name__, "average", ("binary", "micro", "macro", "weighted", None))
        super().__post_init__()

    def _parts(self, hits: Any, predicted: Any, actual: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def init(self) -> State:
        return {"hits": np.zeros(0), "predicted": np.zeros(0), "actual": np.zeros(0), "occurs": np.zeros(0, int)}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch = self._decided(prediction, target, weight)
        y, t, w = batch.predicted, batch.target, batch.weight
        if self.average == "binary" and (t.ndim == 2 or batch.classes > 2):
            raise errors.ArgumentError(
                f"{self.name}: there are {batch.classes} {'labels' if t.ndim == 2 else 'classes'}, and "
                'average="binary" is for two classes; choose average="macro", "micro", "weighted" or None'
            )
        if t.ndim == 2:
            w = w[:, None]
            hits, predicted, actual = ((x * w).sum(axis=0) for x in (y * t, y, t))
            occurs = np.ones(batch.classes, int)
        else:
            pairs = [(t[y == t], w[y == t]), (y, w), (t, w)]
            hits, predicted, actual = (np.bincount(x, v, batch.classes).astype(float) for x, v in pairs)
            occurs = np.bincount(np.concatenate([y, t]), minlength=batch.classes)
        if np.isnan(w).any():
            hits, predicted, actual = (np.full(batch.classes, math.nan) for _ in range(3))
        new = {"hits": hits, "predicted": predicted, "actual": actual, "occurs": occurs}
        return {key: added(state[key], x) for key, x in new.items()}

    def value(self, state: State) -> Any:
        hits, predicted, actual = state["hits"], state["predicted"], state["actual"]
        occurs = state["occurs"] > 0
        if not occurs.any():
            return np.full(len(hits), np.nan) if self.average is None else float("nan")
        if self.average == "micro":
            part, whole = self._parts(hits.sum(), predicted.sum(), actual.sum())
            return ratio(part, whole) if whole else 0.0
        part, whole = self._parts(hits, predicted, actual)
        each = np.divide(part, whole, out=np.zeros(len(hits)), where=~(whole <= 0))  # nan where it is nan
        if self.average == "binary":
            return float(each[1]) if len(each) > 1 else 0.0
        if self.average is None:
            return np.where(occurs, each, np.nan)
        if self.average == "macro":
            return float(each[occurs].mean())
        return ratio((each * actual).sum(), actual.sum()) if actual.any() else 0.0


@dataclasses.dataclass(frozen=True, repr=False)
class Precision(_Ratio):
    """The part of the predictions of a class that are right. `sklearn.metrics.precision_score`.

    Parameters
    ----------
    average
        "binary": of class 1 of two. "micro": of all decisions together. "macro": the mean over the classes that occur
        in targets or predictions. "weighted": the same, by how often each occurs in the targets. None: an array with
        one number for each class, nan for one that never occurs. Labels of which each row may have several all occur.
    threshold, logits, ignore_index, axis
        As of `Accuracy`.

    Notes
    -----
    Where a class was never predicted, or never there, 0/0 is 0, as in scikit-learn.

    Raises
    ------
    ArgumentError
        "binary" with more than two classes or labels.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.train.Precision().compute([0.9, 0.8, 0.1, 0.6], [1, 1, 1, 0]) == 2 / 3
    True
    """

    def _parts(self, hits: Any, predicted: Any, actual: Any) -> tuple[Any, Any]:
        return hits, predicted


@dataclasses.dataclass(frozen=True, repr=False)
class Recall(_Ratio):
    """The part of a class's examples that are found; settings as of `Precision`. `sklearn.metrics.recall_score`.

    >>> import adjoint as ad
    >>> ad.train.Recall(average=None).compute([0, 0, 2, 2], [0, 1, 2, 2])
    array([1., 0., 1.])
    """

    def _parts(self, hits: Any, predicted: Any, actual: Any) -> tuple[Any, Any]:
        return hits, actual


@dataclasses.dataclass(frozen=True, repr=False)
class FBeta(_Ratio):
    """The harmonic mean of precision and recall, in which recall has beta^2 times the weight; settings as of
    `Precision`. `sklearn.metrics.fbeta_score`; `FBeta(1)` is the F1 score.

    >>> import adjoint as ad
    >>> metric = ad.train.FBeta(1, average="macro")
    >>> metric.name, round(metric.compute([0, 1, 2, 2], [0, 1, 1, 2]), 4)
    ('f1', 0.7778)
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        as_positive(self.beta, "FBeta", "beta")
        super().__post_init__()

    def default_name(self) -> str:
        return f"f{self.beta:g}"

    def _parts(self, hits: Any, predicted: Any, actual: Any) -> tuple[Any, Any]:
        square = self.beta**2
        return (1 + square) * hits, predicted + square * actual


# --- who was taken for whom ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class ConfusionMatrix(_Classes):
    """How often each class (a row) was predicted as each (a column). `sklearn.metrics.confusion_matrix`.

    `normalize` is None, "true" (parts of each row), "pred" (of each column) or "all". The matrix is as large as there
    are scores, or the largest label says; rows of a class that never occurs are 0.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.train.ConfusionMatrix().compute([0, 1, 1, 2], [0, 1, 2, 2])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 1.]])
    """

    normalize: str | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        as_choice(self.normalize, "ConfusionMatrix", "normalize", ("true", "pred", "all", None))
        super().__post_init__()

    def default_name(self) -> str:
        return "confusion"

    def init(self) -> State:
        return {"counts": np.zeros((0, 0))}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        batch = self._decided(prediction, target, weight)
        if batch.target.ndim == 2:
            raise errors.ArgumentError(
                f"{self.name}: a confusion matrix is of one class for each example, not of labels"
            )
        n = batch.classes
        flat = np.bincount(batch.target * n + batch.predicted, batch.weight, minlength=n * n)
        return {"counts": added(state["counts"], flat.reshape(n, n).astype(float))}

    def value(self, state: State) -> Array:
        counts: Array = state["counts"]
        if self.normalize is None:
            return counts
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        whole = np.broadcast_to(counts.sum(axis=axis, keepdims=True), counts.shape)
        out: Array = np.divide(counts, whole, out=np.zeros(counts.shape), where=whole > 0)
        return out
