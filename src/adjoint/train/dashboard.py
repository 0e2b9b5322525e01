"""A training as one sees it in a terminal: curves over the whole run, speed, time left, memory, metrics."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from adjoint.train.charts import Chart, braille, charts
from adjoint.train.pace import Pace, total
from adjoint.train.run import Run
from adjoint.train.system import gpu_memory, memory
from adjoint.train.text import duration, number, size

_COLOURS = ("bright_blue", "yellow")  # of training and validation


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end the program


class Dashboard:
    """Drawn in place; what the program prints meanwhile appears above."""

    def __init__(self, file: Any) -> None:
        self._live = Live(console=_Console(file=file), auto_refresh=False, vertical_overflow="crop")

    def start(self, run: Run, pace: Pace) -> None:
        self._live.start()
        self.show(run, pace)

    def show(self, run: Run, pace: Pace) -> None:
        try:
            self._live.update(view(run, pace), refresh=True)
        except OSError:  # standard output is to be the program's own again
            with contextlib.suppress(OSError):
                self._live.stop()
            raise

    def epoch(self, run: Run, pace: Pace) -> None:
        pass

    def end(self, run: Run, pace: Pace) -> None:
        try:
            self.show(run, pace)
        finally:
            self._live.stop()  # the cursor comes back


def view(run: Run, pace: Pace) -> Panel:
    """All of it, for one moment."""
    parts: list[Any] = [_heading(run), _facts(run, pace)]
    found, rows = charts(run.history.rows, run.history.steps), _rows(run)
    if found:
        parts += [Text(""), _Charts(found, len(rows))]
    if rows:
        parts += [_table(rows)]
    reason = run.reason or "training"
    colour = {"training": "blue", "done": "green", "error": "red"}.get(reason, "magenta")
    title = Text(f" {reason} ", f"bold white on {colour}")
    return Panel(
        Group(*parts), title=title, title_align="left", border_style="bright_black", box=ROUNDED, padding=(0, 1)
    )


def _heading(run: Run) -> Table:
    whole = total(run)
    epoch = min(run.epoch + (run.reason is None), run.epochs)
    grid = Table.grid(padding=(0, 2), expand=True)
    for ratio in (None, 1, None):
        grid.add_column(ratio=ratio, no_wrap=True)
    place = Text.assemble(("epoch ", "dim"), (f"{epoch}/{run.epochs}", "bold"))
    done = f"{run.step:,}/{whole:,}" if whole is not None else f"{run.step:,}"
    bar = ProgressBar(total=whole or 1, completed=run.step if whole else 0, complete_style="bright_blue")
    part = f"  {run.step / whole:4.0%}" if whole else ""
    grid.add_row(place, bar, Text.assemble(("step ", "dim"), (done, "bold"), part))
    return grid


def _facts(run: Run, pace: Pace) -> Text:
    facts = [
        (f"{number(pace.examples)} examples/s" if pace.examples > 0 else None, "speed"),
        (f"{number(pace.steps)} steps/s" if pace.steps > 0 else None, ""),
        (duration(run.seconds), "time"),
        (duration(pace.left(run)) if run.reason is None else None, "left"),
        (size(memory()), "memory"),
        (size(gpu) if (gpu := gpu_memory()) is not None else None, "GPU"),
        (number(run.lr), "lr"),
    ]
    text = Text()
    for value, what in facts:
        if value is not None and value != "nan":  # lines break between two facts
            text.append("   " if text else "").append(f"{what}\u00a0" if what else "", "dim")
            text.append(value.replace(" ", "\u00a0"))
    return text


class _Charts:
    """The loss, and beside it the first metric where there is room; as high as fits with the rows of a table."""

    def __init__(self, found: list[Chart], rows: int) -> None:
        self._found, self._rows = found, rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self._found[: 2 if options.max_width >= 90 else 1]
        width = (options.max_width - 3 * (len(shown) - 1)) // len(shown)
        grid = Table.grid(padding=(0, 3))
        end = max(x for chart in shown for series in chart.series for x, _ in series.points)
        height = max(3, min(9, console.height - 13 - self._rows))  # 13 lines are of all the rest
        grid.add_row(*[_drawn(chart, width, height, end) for chart in shown])
        yield grid


def _drawn(chart: Chart, width: int, height: int, end: float) -> Text:
    text = Text(no_wrap=True)
    text.append(chart.title, "bold")
    for series, colour in zip(chart.series, _COLOURS, strict=False):
        text.append(f"  ━ {series.name}" if series.name else "", colour)
    for row in braille(chart, width, height, end):
        text.append("\n")
        for cell, k in row:
            text.append(cell, "dim" if k < 0 else _COLOURS[k])
    return text


def _rows(run: Run) -> list[tuple[str, Any, Any, Any]]:
    """A name, the value in the running epoch, in the last one, and in its validation; numbers alone."""
    last = run.history.rows[-1] if run.history.rows else {}
    names = ["loss", *run.metrics, *last, *[name.removeprefix("valid_") for name in last]]
    left_out = ("epoch", "step", "seconds", "lr")
    found = []
    for name in dict.fromkeys(name for name in names if not name.startswith("valid_") and name not in left_out):
        now = run.loss if name == "loss" else run.metrics.get(name)
        values = (now if run.reason is None else None, last.get(name), last.get(f"valid_{name}"))
        row = [x if isinstance(x, (int, float, np.number)) else None for x in values]
        if row != [None] * 3:
            found.append((name, row[0], row[1], row[2]))
    return found


def _table(rows: list[tuple[str, Any, Any, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, border_style="dim", header_style="dim", padding=(0, 2, 0, 0))
    heads = [("", ""), ("now", "bold"), ("last epoch", _COLOURS[0]), ("validation", _COLOURS[1])]
    used = [0, *[k for k in (1, 2, 3) if any(row[k] is not None for row in rows)]]
    for k in used:
        head, style = heads[k]
        table.add_column(head, style=style, justify="right" if k else "left", min_width=10, no_wrap=True)
    for row in rows:
        table.add_row(*[row[k] if k == 0 else number(row[k]) for k in used])
    return table
