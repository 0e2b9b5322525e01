"""What a training is while it runs, what happens beside it, and what is left of it: `Run`, `Callback`, `History`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adjoint import errors

COLUMNS = ("epoch", "step", "seconds", "loss", "lr")  # of a history, before those of metrics
KEPT = 2000  # the most points of a curve by steps that a history keeps


class Callback:
    """What is done beside training. Each method does nothing unless a subclass says what; each is given the `Run`.

    >>> import adjoint as ad
    >>> class Print(ad.train.Callback):
    ...     def epoch(self, run):
    ...         print(run.epoch, run.step)
    >>> pairs = [(ad.ones((4, 2)), ad.ones((4, 1)))] * 3
    >>> learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=[Print()])
    >>> model, history = learner.fit(pairs, epochs=2)
    1 3
    2 6
    """

    def start(self, run: Run) -> None:
        """Before the first step, or before the first after a checkpoint."""

    def step(self, run: Run) -> None:
        """After each step of the optimizer."""

    def epoch(self, run: Run) -> None:
        """After an epoch and its validation; the history has its row."""

    def end(self, run: Run) -> None:
        """At the end, also after an exception or Ctrl-C; `run.reason` says why."""

    def record(self) -> dict[str, Any]:
        """What it remembers, as plain JSON: checkpoints keep it."""
        return {}

    def load_record(self, record: Mapping[str, Any]) -> None:
        """Go on from what `record` gave."""


class History:
    """A table with a row per epoch, and a curve of the loss by steps.

    `rows` are dictionaries: epoch, step, seconds, loss (the mean over the epoch), lr, then the metrics, then valid_loss
    and the metrics of the validation as valid_<name>. `steps` has the columns step and loss over the whole run; when
    there are many steps it keeps every second, then every fourth and so on, at most 2000. `history["loss"]` is a
    column, which is empty before the first epoch ends.

    >>> import adjoint as ad
    >>> history = ad.train.History()
    >>> history.rows.append({"epoch": 1, "step": 10, "loss": 0.5})
    >>> history.rows.append({"epoch": 2, "step": 20, "loss": 0.25, "valid_loss": 0.375})
    >>> history["valid_loss"], len(history)
    ([None, 0.375], 2)
    >>> print(history)
    epoch  step  loss  valid_loss
        1    10   0.5
        2    20  0.25       0.375
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.steps: dict[str, list[Any]] = {"step": [], "loss": []}
        self._every = 1  # steps that the curve keeps are multiples of it

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order in which they came."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __getitem__(self, column: str) -> list[Any]:
        if self.rows and column not in self.columns:
            raise errors.ArgumentError(
                f"history: there is no column {errors.shown(column)}; there are {errors.shown(', '.join(self.columns))}"
            )
        return [row.get(column) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def add_step(self, step: int, loss: float) -> None:
        """A point of the curve."""
        if step % self._every:
            return
        self.steps["step"].append(step)
        self.steps["loss"].append(loss)
        if len(self.steps["step"]) > KEPT:
            self._every *= 2
            kept = [k for k, at in enumerate(self.steps["step"]) if at % self._every == 0]
            self.steps = {name: [column[k] for k in kept] for name, column in self.steps.items()}

    def __repr__(self) -> str:
        names = self.columns
        lines = [names, *[[_shown(row.get(name)) for name in names] for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        """For notebooks: the curves, and the table of epochs below them."""
        from adjoint.markup import folded, table  # used by few
        from adjoint.train.charts import charts, svg

        drawn = "".join(
            f'<div style="flex:1 1 300px;max-width:460px">{svg(chart)}</div>' for chart in charts(self.rows, self.steps)
        )
        rows = [[_shown(row.get(name)) for name in self.columns] for row in self.rows]
        epochs = folded(f"{len(self)} epochs", table(self.columns, rows), len(self) <= 20)
        return f'<div><div style="display:flex;flex-wrap:wrap;gap:12px">{drawn}</div>{epochs}</div>'

    def record(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        return {"rows": self.rows, "steps": self.steps, "every": self._every}

    def load_record(self, record: Mapping[str, Any]) -> None:
        """Be what `record` gave."""
        self.rows = [dict(row) for row in record["rows"]]
        self.steps = {name: list(column) for name, column in record["steps"].items()}
        self._every = record["every"]


@dataclasses.dataclass
class Run:
    """A training while it runs, as callbacks read it; `stop` ends it.

    `step`, `examples` and `epoch` count what is done. `steps_per_epoch` is None where the loader has no length;
    `reason` is None while it runs, then "done", "interrupted", "stopped: ..." or "error".
    """

    learner: Any
    model: Any
    state: Any
    epochs: int
    steps_per_epoch: int | None = None
    step: int = 0
    examples: int = 0
    epoch: int = 0
    loss: float = float("nan")
    lr: float = float("nan")
    measure: Callable[[], dict[str, Any]] = dict
    history: History = dataclasses.field(default_factory=History)
    seconds: float = 0.0
    reason: str | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the running epoch so far, computed now: some take a while, as an area under a curve."""
        return self.measure()

    def stop(self, reason: str) -> None:
        """End after this step."""
        if self.reason is None:
            self.reason = f"stopped: {reason}"


def check_names(metrics: Sequence[str]) -> None:
    """Raises ArgumentError for metrics whose columns in the history would be one."""
    known = [*COLUMNS, "valid_loss"]
    for name in metrics:
        if name in known:
            raise errors.ArgumentError(
                f"Learner: two columns of the history would be {name!r}; give the metric another name, as "
                f"ad.train.MAE(name='error')"
            )
        known += [name, f"valid_{name}"]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
