"""What one sees of a training while it runs: a dashboard, plain lines, or a widget of a notebook."""

from __future__ import annotations

import html
import sys
import time
from importlib import import_module
from typing import Any, Protocol, TextIO

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_positive
from adjoint.train.charts import charts, svg
from adjoint.train.pace import Pace, total
from adjoint.train.run import Callback, Run
from adjoint.train.system import memory
from adjoint.train.text import duration, number, size


class View(Protocol):
    """How a run is shown: `show` now and then, and more at certain moments."""

    def start(self, run: Run, pace: Pace) -> None: ...
    def show(self, run: Run, pace: Pace) -> None: ...
    def epoch(self, run: Run, pace: Pace) -> None: ...
    def end(self, run: Run, pace: Pace) -> None: ...


class Progress(Callback):
    """Shows a training while it runs: curves over the whole run, metrics, speed, time left, memory.

    Parameters
    ----------
    view
        "dashboard" draws in a terminal (`pip install 'adjoint[train]'`), "lines" prints a line for each epoch,
        "notebook" updates the output of a cell. None takes the one that fits: the notebook's in Jupyter or VS Code, the
        dashboard where the stream is a terminal and rich is installed, else lines.
    every
        Seconds from one picture to the next; for None 0.25 in a terminal, 1 in a notebook, and 30 for lines within an
        epoch, or more, so that pictures take no more than a twentieth of the time.
    file
        Where to: standard error for None.

    Raises
    ------
    ArgumentError, MissingLibraryError
        There is no such view, or what it needs is not installed.

    Examples
    --------
    >>> import sys
    >>> import adjoint as ad
    >>> progress = ad.train.Progress("lines", file=sys.stdout)
    >>> run = ad.train.Run(learner=None, model=None, state=None, epochs=2)
    >>> progress.start(run)
    >>> run.epoch, run.step, run.reason = 1, 10, "interrupted"
    >>> run.history.rows.append({"epoch": 1, "step": 10, "loss": 0.5, "valid_accuracy": 0.75})
    >>> progress.epoch(run)
    epoch 1/2  step 10  loss 0.5  valid_accuracy 0.75
    >>> progress.end(run)
    interrupted after epoch 1, step 10, 0:00
    """

    def __init__(self, view: str | None = None, *, every: float | None = None, file: TextIO | None = None) -> None:
        self._name = as_choice(view, "Progress", "view", ("dashboard", "lines", "notebook", None))
        self._every = None if every is None else as_positive(every, "Progress", "every", zero=True)
        self._file = file
        if view == "dashboard":
            _rich()
        if view == "notebook":
            _ipython()
        self._view: View | None = None
        self._pace = Pace()
        self._next = 0.0

    def start(self, run: Run) -> None:
        file = sys.stderr if self._file is None else self._file
        name = self._name or _fitting(file)
        every = {"dashboard": 0.25, "notebook": 1.0, "lines": 30.0}[name]
        self._seconds = every if self._every is None else self._every
        self._pace.start(run)
        self._next = time.monotonic() + self._seconds
        self._view = _made(name, file)
        self._tell("start", run)

    def step(self, run: Run) -> None:
        self._pace.mark(run)
        before = time.monotonic()
        if before >= self._next:
            self._tell("show", run)
            after = time.monotonic()
            slow = 20 * (after - before) if self._every is None else 0.0  # some metrics take a while
            self._next = after + max(self._seconds, slow)

    def epoch(self, run: Run) -> None:
        self._tell("epoch", run)
        self.step(run)

    def end(self, run: Run) -> None:
        self._tell("end", run)
        self._view = None

    def _tell(self, what: str, run: Run) -> None:
        try:
            if self._view is not None:
                getattr(self._view, what)(run, self._pace)
        except OSError:  # the terminal is gone: training goes on
            self._view = None


def _made(name: str, file: Any) -> View:
    if name == "lines":
        return Lines(file)
    if name == "notebook":
        return Notebook()
    _rich()
    from adjoint.train.dashboard import Dashboard

    return Dashboard(file)


def _fitting(file: Any) -> str:
    """The view for where this runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        return "notebook"
    try:
        console = _rich().Console(file=file)
    except errors.MissingLibraryError:
        return "lines"
    terminal = file.isatty() and console.is_terminal and not console.is_dumb_terminal  # not where colours are forced
    return "dashboard" if terminal else "lines"


def _rich() -> Any:
    try:
        import rich.console
    except ImportError as error:
        raise errors.MissingLibraryError("Progress: the dashboard needs rich; pip install 'adjoint[train]'") from error
    return rich.console


def _ipython() -> Any:
    try:
        return import_module("IPython.display")
    except ImportError as error:
        raise errors.MissingLibraryError("Progress: the notebook's view needs IPython; pip install ipython") from error


# --- lines ---------------------------------------------------------------------------------------


class Lines:
    """A line for each epoch, and now and then one within."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def _print(self, *parts: str) -> None:
        print("  ".join(part for part in parts if part), file=self._file, flush=True)

    def start(self, run: Run, pace: Pace) -> None:
        pass

    def show(self, run: Run, pace: Pace) -> None:
        if run.history.rows and run.history.rows[-1]["step"] == run.step:
            return  # that is the line of the epoch
        whole = total(run)
        place = f"epoch {run.epoch + 1}/{run.epochs}  step {run.step}{'' if whole is None else f'/{whole}'}"
        self._print(place, *_listed({"loss": run.loss, **run.metrics}), *_speed(run, pace))

    def epoch(self, run: Run, pace: Pace) -> None:
        row = run.history.rows[-1]
        shown = {name: x for name, x in row.items() if name not in ("epoch", "step", "seconds")}
        self._print(f"epoch {run.epoch}/{run.epochs}  step {run.step}", *_listed(shown), *_speed(run, pace))

    def end(self, run: Run, pace: Pace) -> None:
        self._print(f"{run.reason} after epoch {run.epoch}, step {run.step}, {duration(run.seconds)}")


def _listed(values: dict[str, Any]) -> list[str]:
    return [f"{name} {number(x)}" for name, x in values.items() if isinstance(x, (int, float, np.number))]


def _speed(run: Run, pace: Pace) -> list[str]:
    if not pace.steps > 0:
        return []
    speed = f"{number(pace.examples)} examples/s" if pace.examples > 0 else f"{number(pace.steps)} steps/s"
    return [speed, f"{duration(pace.left(run))} left" if run.reason is None else ""]


# --- notebooks -----------------------------------------------------------------------------------


class Notebook:
    """The output of a cell, updated in place; it needs no widgets, and stays in the notebook's file."""

    def start(self, run: Run, pace: Pace) -> None:
        display = _ipython()
        self._html = display.HTML
        self._handle = display.display(self._html(page(run, pace)), display_id=True)

    def show(self, run: Run, pace: Pace) -> None:
        self._handle.update(self._html(page(run, pace)))

    def epoch(self, run: Run, pace: Pace) -> None:
        pass

    def end(self, run: Run, pace: Pace) -> None:
        self.show(run, pace)


def page(run: Run, pace: Pace) -> str:
    """The run at one moment, as HTML."""
    whole = total(run)
    part = run.step / whole if whole else 0.0
    colour = {None: "#3b82f6", "done": "#16a34a", "error": "#dc2626"}.get(run.reason, "#d97706")
    facts = [
        f"<b>{html.escape(run.reason or 'training')}</b>",
        f"epoch {min(run.epoch + (run.reason is None), run.epochs)}/{run.epochs}",
        f"step {run.step:,}" + (f"/{whole:,}" if whole is not None else ""),
        *_speed(run, pace),
        f"{duration(run.seconds)} so far",
        size(memory()),
    ]
    drawn = "".join(f"<div>{svg(chart)}</div>" for chart in charts(run.history.rows, run.history.steps))
    now = {} if run.reason else {"loss": run.loss, **run.metrics}
    last = run.history.rows[-1] if run.history.rows else {}
    values = [*_listed(now), *_listed({name: x for name, x in last.items() if name.startswith("valid_")})]
    row = '<div style="display:flex;gap:1.2em;flex-wrap:wrap;padding:4px 0">'
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:13px;max-width:1000px">'
        f"{row}{''.join(f'<span>{x}</span>' for x in facts if x)}</div>"
        '<div style="height:6px;border-radius:3px;background:rgba(128,128,128,.25)">'
        f'<div style="height:6px;border-radius:3px;width:{part:.1%};background:{colour}"></div></div>'
        f"{row}{''.join(f'<span>{html.escape(x)}</span>' for x in values)}</div>"
        '<div style="display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(300px,1fr))">'
        f"{drawn}</div></div>"
    )
