"""What a metric is, and how all of them read a batch: examples along the first axis, each with a weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.dtypes import FLOATING
from adjoint.functions.arguments import as_axis, as_flag, as_integer, check_callable
from adjoint.operands import concrete_values

Array = np.ndarray[Any, Any]
State = dict[str, Any]


@dataclasses.dataclass(frozen=True, repr=False)
class Metric:
    """A number, or an array, that says how good predictions are; over batches, that of all their examples together.

    A metric is settings and three functions, and keeps nothing. What is known so far is a state, a dictionary of NumPy
    arrays and numbers that can be saved:

    - `init()` is the state before the first batch,
    - `update(state, prediction, target, weight=None)` the state after one more,
    - `value(state)` what comes out, a float or an array; nan before there was an example.

    `compute(prediction, target, weight=None)` is all three at once. Predictions and targets are tensors on any device,
    or what `np.asarray` takes, with the examples along the first axis; their gradients are not followed. A `weight`
    for each example, (batch,), or for each step of it, up to the target's shape, is how often it counts. Each metric
    has a `name`, which is the column of a table and can be given by `name=`.

    A subclass defines `init`, `update`, `value` and, for a name of its own, `default_name`.

    Examples
    --------
    >>> import adjoint as ad
    >>> metric = ad.train.Accuracy()
    >>> state = metric.init()
    >>> for scores, labels in [([[0.9, 0.1], [0.2, 0.8]], [0, 1]), ([[0.6, 0.4]], [1])]:
    ...     state = metric.update(state, scores, labels)
    >>> metric.name, round(metric.value(state), 4)
    ('accuracy', 0.6667)
    """

    name: str = dataclasses.field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise errors.ArgumentTypeError(
                f"{type(self).__name__}: name is a string, received {errors.shown(self.name)}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.default_name())

    def __repr__(self) -> str:
        """What makes it again: the settings that are not the usual ones."""
        usual = {"name": self.default_name()}
        shown = []
        for field in sorted(dataclasses.fields(self), key=lambda field: field.kw_only is True):
            value = getattr(self, field.name)
            if value != usual.get(field.name, field.default):
                said = getattr(value, "__name__", None) or repr(value)
                shown.append(f"{field.name}={said}" if field.kw_only else said)
        return f"{type(self).__name__}({', '.join(shown)})"

    def default_name(self) -> str:
        """The name where none is given."""
        return type(self).__name__.lower()

    def init(self) -> State:
        """The state before the first batch."""
        raise NotImplementedError

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        """The state after one more batch; the one that came in stays as it is."""
        raise NotImplementedError

    def value(self, state: State) -> Any:
        """The metric of all examples so far."""
        raise NotImplementedError

    def compute(self, prediction: Any, target: Any, weight: Any = None) -> Any:
        """The metric of one batch alone."""
        return self.value(self.update(self.init(), prediction, target, weight))


@dataclasses.dataclass(frozen=True, repr=False)
class Mean(Metric):
    """The mean of a function of prediction and target, such as any loss.

    The function gives a number, the mean of the batch, which counts as many times as the batch has examples; or an
    array, whose first axis is the examples. With a `weight` only an array will do.

    Examples
    --------
    >>> import adjoint as ad
    >>> metric = ad.train.Mean(ad.nn.mse_loss)
    >>> metric.name, metric.compute([1.0, 2.0], [1.0, 4.0])
    ('mse_loss', 2.0)
    """

    f: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        check_callable("Mean", self.f)
        super().__post_init__()

    def default_name(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__).strip("<>")

    def init(self) -> State:
        return {"sum": 0.0, "weight": 0.0}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        values = real(self.f(prediction, target), self.name, "what its function gives")
        if not values.ndim:
            if weight is not None:
                raise errors.ArgumentError(
                    f"{self.name}: weights need a number for each example, and the function gave one for the batch"
                )
            shape = np.shape(prediction)
            count = float(shape[0] if shape else 1)
            return {"sum": state["sum"] + count * float(values), "weight": state["weight"] + count}
        weights = weights_of(weight, values.shape, self.name)
        return {"sum": state["sum"] + float((weights * values).sum()), "weight": state["weight"] + float(weights.sum())}

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["weight"])


@dataclasses.dataclass(frozen=True, repr=False)
class Classified(Metric):
    """Settings of how predictions and targets of classes are read."""

    ignore_index: int = dataclasses.field(default=-100, kw_only=True)
    axis: int = dataclasses.field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("ignore_index", "axis"):
            as_integer(getattr(self, what), type(self).__name__, what)

    def _batch(self, prediction: Any, target: Any, weight: Any, threshold: float = 0.5) -> Batch:
        return classified(prediction, target, weight, self.name, threshold, self.ignore_index, self.axis)


@dataclasses.dataclass(frozen=True, repr=False)
class Scored(Classified):
    """The same, where it matters whether scores are probabilities or logits."""

    logits: bool = dataclasses.field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag(self.logits, type(self).__name__, "logits")


# --- reading -------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A batch of a classification, by rows.

    Of one class for each row, `target` is (rows,) and `predicted` too, `scores` (rows, classes), or (rows,) for two
    classes. Where each row may have several labels, all are (rows, labels). Predicted labels alone have no scores.
    """

    scores: Array | None
    predicted: Array
    target: Array
    weight: Array
    classes: int  # as far as can be seen: one more than the largest where there are no scores


def real(x: Any, name: str, what: str) -> Array:
    """Real numbers in double precision; raises DtypeError for others."""
    values = concrete_values(x, name)
    if values.dtype.kind not in "biuf":
        raise errors.DtypeError(f"{name}: {what} is real numbers, received {values.dtype}")
    return values.astype(np.float64)


def weights_of(weight: Any, shape: tuple[int, ...], name: str) -> Array:
    """A weight for each element; raises ShapeError, and ArgumentError for negative weights and nan."""
    if weight is None:
        return np.ones(shape)
    found = real(weight, name, "a weight")
    if found.shape not in (shape, shape[:1]):
        more = f", or {shape}" if len(shape) > 1 else ""
        raise errors.ShapeError(
            f"{name}: weights have shape {shape[:1]}, one for each example{more}, received {found.shape}"
        )
    if (wrong := found[~(found >= 0)]).size:
        raise errors.ArgumentError(f"{name}: weights are 0 or more, received {wrong[0]}")
    return np.broadcast_to(found.reshape(found.shape + (1,) * (len(shape) - found.ndim)), shape)


def classified(
    prediction: Any, target: Any, weight: Any, name: str, threshold: float, ignore_index: int, axis: int
) -> Batch:
    """A batch of a classification, by its shapes.

    | prediction | target | |
    |---|---|---|
    | (batch, classes), (batch, classes, ...) scores | (batch,), (batch, ...) | one of several classes |
    | (batch,), (batch, 1) scores | (batch,), (batch, 1) | two classes, 1 above the threshold |
    | (batch,) integers | (batch,) | labels |
    | (batch, labels) scores, or 0 and 1 | (batch, labels) of 0 and 1 | several labels at once |

    Classes or labels may be on another `axis` than 1, as -1 for (batch, steps, classes). Raises ShapeError for other
    shapes, AxisError, DtypeError, and ArgumentError for targets that are no labels.
    """
    y = concrete_values(prediction, name)
    t = concrete_values(target, name)
    for x, what in ((y, "a prediction"), (t, "a target")):
        if x.dtype.kind not in "biuf":
            raise errors.DtypeError(f"{name}: {what} is scores or labels, received {x.dtype}")
    if axis != 1 and y.ndim >= 2:
        place = as_axis(axis, y.ndim, name)
        y, t = np.moveaxis(y, place, 1), np.moveaxis(t, place, 1) if t.shape == y.shape else t
    if y.ndim >= 2 and y.shape[1] == 1:
        y = y[:, 0]
        t = t[:, 0] if t.ndim == y.ndim + 1 and t.shape[1] == 1 else t
        w = None if weight is None else real(weight, name, "a weight")
        weight = w[:, 0] if w is not None and w.ndim == t.ndim + 1 and w.shape[1] == 1 else w
    several = y.shape == t.shape and y.ndim >= 2
    if not y.ndim or not (y.shape == t.shape or (y.ndim >= 2 and y.shape[:1] + y.shape[2:] == t.shape)):
        raise errors.ShapeError(
            f"{name}: predictions of shape {np.shape(prediction)} and targets of shape {np.shape(target)} do not fit; "
            "scores are (batch, classes) for targets (batch,), or have the shape of the targets; axis=-1 says "
            "that classes are last"
        )
    if several:
        return _several(y, t, weights_of(weight, t.shape[:1], name), name, threshold)
    w = weights_of(weight, t.shape, name).ravel()
    if y.ndim > t.ndim:
        y = np.moveaxis(y, 1, -1).reshape(-1, y.shape[1])
    t = t.ravel()
    kept = t != ignore_index
    y, t, w = y[kept], _labels(t[kept], name, "targets"), w[kept]
    if y.ndim == 2:
        if y.dtype.kind not in FLOATING:
            raise errors.DtypeError(
                f"{name}: scores of classes are floating numbers, received {y.dtype}; class numbers have the "
                "shape of the targets"
            )
        found = Batch(y.astype(np.float64), y.argmax(axis=1) if len(y) else t, t, w, y.shape[1])
    elif y.dtype.kind in FLOATING:
        found = Batch(y.astype(np.float64), (y > threshold).astype(np.int64), t, w, 2)
    else:
        y = _labels(y, name, "predictions")
        return Batch(None, y, t, w, int(max(y.max(initial=-1), t.max(initial=-1))) + 1)
    if len(t) and t.max() >= found.classes:
        raise errors.OutOfRangeError(
            f"{name}: the target {t.max()} is none of {found.classes} classes, which count from 0"
        )
    return found


def _several(y: Array, t: Array, weight: Array, name: str, threshold: float) -> Batch:
    labels = y.shape[1]
    y, t = (np.moveaxis(x, 1, -1).reshape(-1, labels) for x in (y, t))
    weight = np.repeat(weight, len(t) // len(weight)) if len(weight) else np.ones(0)
    t = _labels(t, name, "targets")
    scores = y.astype(np.float64) if y.dtype.kind in FLOATING else None
    predicted = (y > threshold).astype(np.int64) if scores is not None else _labels(y, name, "predictions")
    if max(t.max(initial=0), predicted.max(initial=0)) > 1:
        raise errors.ArgumentError(
            f"{name}: predictions and targets of one shape, {t.shape}, are 0 or 1 for each label; class numbers of "
            "sequences go in flattened, .reshape(-1), scores of them with axis=-1"
        )
    return Batch(scores, predicted, t, weight, labels)


def _labels(x: Array, name: str, what: str) -> Array:
    """Class numbers; they may come as floating numbers or booleans."""
    found = x.astype(np.int64) if np.isfinite(x).all() else None
    if found is None or not (found == x).all() or (found < 0).any():
        raise errors.ArgumentError(
            f"{name}: {what} are class numbers from 0, received {errors.shown(x.ravel()[:8].tolist())}"
        )
    return found


# --- adding up -----------------------------------------------------------------------------------


def ratio(part: Any, whole: Any) -> float:
    """One number over another, nan where the other is 0."""
    return float(part) / float(whole) if whole else float("nan")


def added(x: Array, y: Array) -> Array:
    """The sum of arrays of which one may be shorter, along each axis: classes that came later are missing in it."""
    shape = tuple(map(max, x.shape, y.shape))
    return grown(x, shape) + grown(y, shape)


def grown(x: Array, shape: tuple[int, ...]) -> Array:
    return np.pad(x, [(0, size - had) for size, had in zip(shape, x.shape, strict=True)])
