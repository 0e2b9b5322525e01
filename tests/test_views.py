"""What one sees of a training: speed and time left, curves, dashboard, lines, notebook, event files, the report."""

from __future__ import annotations

import importlib
import io
import math
import os
import re
import signal
import struct
import sys
import time
import types
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from conftest import LIMIT
from each import Each

import adjoint as ad
from adjoint import errors
from adjoint.train.charts import Chart, Scale, Series, braille, charts, means, svg
from adjoint.train.pace import Pace, total
from adjoint.train.progress import page as notebook_page
from adjoint.train.run import History, Run

pytest.importorskip("rich", reason="needs adjoint[train]")

NAN = math.nan


def curves(history: History) -> list[Chart]:
    return charts(history.rows, history.steps)


def a_run(epochs: int = 4, done: int = 2, steps: int = 10, **options: Any) -> Run:
    """A run after some epochs and some steps of the next; every number is known."""
    run = Run(learner=types.SimpleNamespace(metrics=()), model=ad.nn.Linear(2, 1), state=None, epochs=epochs)
    run.steps_per_epoch, run.epoch, run.step = steps, done, done * steps + steps // 2
    run.examples, run.loss, run.lr, run.seconds = 8 * run.step, 0.125, 0.01, 65.0
    run.measure = lambda: {"accuracy": 0.8125, "confusion": [[1, 0], [0, 1]]}
    for step in range(1, run.step + 1):
        run.history.add_step(step, 2.0 / step)
    for k in range(1, done + 1):
        row = {"epoch": k, "step": k * steps, "seconds": 10.0 * k, "loss": 2.0 / k, "lr": 0.01 / k}
        row |= {"accuracy": 1 - 1 / (k + 1), "confusion": [[3, 1], [2, 4]]}
        row |= {"valid_loss": 2.5 / k, "valid_accuracy": 1 - 1 / (k + 2), "valid_confusion": [[5, 1], [0, 2]]}
        run.history.rows.append(row)
    for name, value in options.items():
        setattr(run, name, value)
    return run


def trained(*callbacks: Any, epochs: int = 2, metrics: Any = (), **options: Any) -> Any:
    """A training of a few steps on two batches of four, in three classes."""
    rng = np.random.default_rng(0)
    batches = [(ad.asarray(rng.normal(size=(4, 2))), ad.asarray(rng.integers(0, 3, 4))) for _ in range(2)]
    with ad.use_dtype(ad.float64):
        model = ad.nn.Linear(2, 3)
    learner = ad.train.Learner(model, ad.nn.cross_entropy, ad.optim.SGD(lr=0.1), metrics, callbacks)
    learner.fit(batches, batches, epochs=epochs, **options)
    return learner.run


class Failing(ad.train.Callback):
    """Raises at a step."""

    def __init__(self, error: BaseException, at: int = 3) -> None:
        self.error, self.at = error, at

    def step(self, run: Run) -> None:
        if run.step == self.at:
            raise self.error


# --- speed and time left ---


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pace_is_steady_and_follows() -> None:
    clock = Clock()
    pace, run = Pace(clock), a_run(epochs=100, done=0, steps=100, step=0, examples=0)
    pace.start(run)
    assert math.isnan(pace.steps)
    assert math.isnan(pace.left(run))
    for k in range(2000):  # ten steps a second, of a tenth of a second, in turn short and long
        clock.now += 0.05 if k % 2 else 0.15
        run.step, run.examples = run.step + 1, run.examples + 8
        pace.mark(run)
        if k > 100:
            assert abs(pace.steps - 10) < 0.2
    assert abs(pace.examples - 80) < 1
    assert abs(pace.left(run) - 800) < 8
    for _ in range(1200):  # then half as fast: what was before is forgotten
        clock.now += 0.2
        run.step += 1
        pace.mark(run)
    assert abs(pace.steps - 5) < 0.3
    assert len(pace._marks) < 250


def test_pace_goes_on_where_a_run_goes_on() -> None:
    clock = Clock()
    pace, run = Pace(clock), a_run()
    before = run.step
    pace.start(run)
    clock.now += 2.0
    run.step = before + 4
    pace.mark(run)
    assert (pace.steps, pace.left(run)) == (2.0, (40 - run.step) / 2)


def test_the_whole_is_guessed_from_an_epoch_where_a_loader_has_no_length() -> None:
    assert total(a_run(steps_per_epoch=None)) == 40
    assert total(a_run(done=0, steps_per_epoch=None)) is None


# --- curves ---


def test_charts_of_a_history() -> None:
    found = curves(a_run().history)
    assert [chart.title for chart in found] == ["loss", "accuracy", "learning rate"]
    assert [series.name for series in found[0].series] == ["training", "validation"]
    assert found[0].series[1].points == [(10, 2.5), (20, 1.25)]
    assert found[0].log
    assert not found[1].log
    assert not found[2].log
    assert curves(History()) == []
    run = a_run(done=1)
    run.history.steps["loss"][3] = NAN
    run.history.rows[0]["valid_loss"] = math.inf
    assert len(curves(run.history)[0].series[0].points) == run.step - 1
    assert [series.name for series in curves(run.history)[0].series] == ["training"]
    assert [chart.title for chart in curves(run.history)] == ["loss", "accuracy"]  # the rate is one


def test_means_are_of_equal_parts() -> None:
    points = [(float(x), float(x % 2)) for x in range(100)]
    assert means(points, 10) == [(10 * k + 4.5, 0.5) for k in range(10)]
    assert means([(0.0, 1.0), (9.0, 3.0)], 5) == [(0.0, 1.0), (9.0, 3.0)]
    assert means([(3.0, 1.0)], 5) == [(3.0, 1.0)]


def test_ticks_are_round_and_on_the_scale() -> None:
    rng = np.random.default_rng(0)
    with Each() as each:
        for _ in range(200):
            more = 10 ** rng.uniform(-6, 6)
            low = rng.normal() * more * 10 ** rng.uniform(-3, 3)
            with each(low, more):
                scale = Scale.of([low, low + more])
                ticks = scale.ticks(5)
                assert 2 <= len(ticks) <= 7
                assert all(scale.low - more / 1e6 <= t <= scale.high + more / 1e6 for t in ticks)
                step = ticks[1] - ticks[0]
                np.testing.assert_allclose(np.diff(ticks), step, rtol=1e-6)
                assert f"{step:.1e}"[:3] in ("1.0", "2.0", "2.5", "5.0")
                assert len({text for _, text in scale.labels(5)}) == len(ticks)
            low, factor = 10 ** rng.uniform(-9, 9), 10 ** rng.uniform(1.3, 12)
            with each(low, factor, "logarithmic"):
                ticks = Scale.of([low, low * factor], True).ticks(5)
                assert 1 <= len(ticks) <= 7
                assert all(low <= t <= low * factor for t in ticks)
                assert all(f"{t:.0e}"[0] in "1235" for t in ticks)
    assert Scale.of([3.0, 3.0]).low < 3 < Scale.of([3.0]).high
    for high, said in (
        (1.0, "0 0.2 0.4 0.6 0.8 1"), (1.2, "0 0.25 0.5 0.75 1"), (5e3, "0 1,000 2,000 3,000 4,000 5,000"),
        (4e6, "0 1e6 2e6 3e6 4e6"), (5e-6, "0 1e-6 2e-6 3e-6 4e-6 5e-6"),
    ):  # fmt: skip
        assert " ".join(text for _, text in Scale(0.0, high).labels(5)) == said
    assert [text for _, text in Scale(0.69314, 0.69318).labels(4)] == [f"0.6931{k}" for k in range(4, 9)]
    assert [text for _, text in Scale(0.005, 1e4, True).labels(5)] == ["0.01", "1", "100", "10,000"]


def test_a_line_of_dots() -> None:
    line = Series("", [(0.0, 0.0), (10.0, 1.0)])
    rows = braille(Chart("", [line]), 30, 6, 10.0)
    cells = [[cell for cell, k in row if k == 0] for row in rows[:6]]
    assert all(cells)  # a diagonal is in every row
    assert all(sum(len(cell) for cell, _ in row) == 30 for row in rows)
    low, high = rows[5], rows[0]
    assert ord(low[1][0]) - 0x2800 & 0x40  # the lowest dot on the left, the highest on the right
    assert ord(high[-1][0]) - 0x2800 & 0x08
    dots = sum((ord(cell) - 0x2800).bit_count() for row in rows[:6] for cell, k in row if k == 0)
    assert dots >= 2 * (30 - 5)
    two = braille(Chart("", [line, Series("", [(0.0, 1.0), (10.0, 0.0)])]), 30, 6, 10.0)
    assert {k for row in two for _, k in row} == {-1, 0, 1}


@pytest.mark.parametrize("points", [[(1.0, 2.0)], [(1.0, 2.0), (2.0, 2.0)], [(0.0, -1.0), (5.0, 1e9)]])
def test_few_or_extreme_points_are_drawn(points: Any) -> None:
    chart = Chart("x", [Series("training", points, True)])
    assert any(k == 0 for row in braille(chart, 40, 5, points[-1][0]) for _, k in row)
    ET.fromstring(svg(chart))


def test_svg_is_well_formed_and_escaped() -> None:
    for chart in [*curves(a_run().history), Chart("<b>&\"'", [Series("<i>", [(0.0, 1.0), (1.0, 2.0)])])]:
        root = ET.fromstring(svg(chart))
        assert root.get("aria-label") == chart.title
        assert len(root.findall("path")) >= 3
    numbers = [float(x) for path in re.findall(r' d="([^"]*)"', svg(curves(a_run().history)[0]))
               for x in re.findall(r"[\d.]+", path)]  # fmt: skip
    assert 0 <= min(numbers) < max(numbers) <= 460


# --- the dashboard ---


def drawn(run: Run, width: int, height: int = 50) -> list[str]:
    from rich.console import Console

    from adjoint.train.dashboard import view

    clock = Clock()
    pace = Pace(clock)
    pace.start(a_run(step=0, examples=0))
    clock.now += 2.0
    pace.mark(run)
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False, color_system=None)
    console.print(view(run, pace))
    return console.file.getvalue().replace("\u00a0", " ").splitlines()  # type: ignore[attr-defined]


def test_the_dashboard_says_what_there_is() -> None:
    text = "\n".join(drawn(a_run(), 120))
    for said in (
        "training", "epoch 3/4", "step 25/40", "62%", "speed 100 examples/s", "12.5 steps/s", "time 1:05", "left 0:01",
        "memory", "lr 0.01", "loss", "accuracy", "25 steps",
    ):  # fmt: skip
        assert said in text
    cells = next(line.split() for line in text.splitlines() if re.search(r"accuracy +0\.8125", line))
    assert cells[1:5] == ["accuracy", "0.8125", "0.6667", "0.75"]
    assert "confusion" not in text
    ended = "\n".join(drawn(a_run(reason="interrupted"), 120))
    assert "interrupted" in ended
    assert "left" not in ended
    assert "now" not in ended


@pytest.mark.parametrize("width", [20, 40, 60, 89, 90, 200])
def test_the_dashboard_fits(width: int) -> None:
    runs = [
        a_run(),
        a_run(done=0, step=0, examples=0, loss=NAN, lr=NAN, seconds=0.0, steps_per_epoch=None, history=History()),
        a_run(done=0, steps_per_epoch=None),
        a_run(epochs=0, done=0, step=0, steps_per_epoch=10),
        a_run(reason="stopped: valid_loss did not get better"),
    ]
    for run in runs:
        lines = drawn(run, width)
        assert max(map(len, lines)) <= width
        assert 5 <= len(lines) < 40


def test_the_dashboard_fits_low_terminals() -> None:
    assert [len(drawn(a_run(), 100, height)) for height in (18, 20, 24, 60)] == [17, 19, 23, 23]


# --- which view ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, file: Any, view: str | None = None, **environment: str) -> str:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    trained(ad.train.Progress(view, file=file))
    return str(file.getvalue())


CURSOR = "\x1b[?25h"


def test_the_view_fits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "epoch 2/2  step 4  loss"
    assert lines in shown(monkeypatch, io.StringIO())
    assert lines in shown(monkeypatch, io.StringIO(), FORCE_COLOR="1")
    assert lines in shown(monkeypatch, Terminal(), TERM="dumb")
    assert lines in shown(monkeypatch, Terminal(), "lines")
    text = re.sub(r"\x1b\[[\d;]*m", "", shown(monkeypatch, Terminal()))
    assert lines not in text
    assert "step 4/4" in text
    assert text.rstrip().endswith(CURSOR)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert lines in shown(monkeypatch, Terminal())
    with pytest.raises(errors.MissingLibraryError, match=r"needs rich; pip install 'adjoint\[train\]'"):
        ad.train.Progress("dashboard")


@pytest.mark.parametrize(("error", "reason"), [(KeyboardInterrupt(), "interrupted"), (ZeroDivisionError(), "error")])
def test_the_terminal_is_as_before_after_an_exception(
    error: BaseException, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file, before = Terminal(), (sys.stdout, sys.stderr)
    broken = ad.train.Report(Path("/nowhere/report.html"))  # ends before the dashboard, with an error of its own
    with pytest.raises((type(error), errors.FileError)):
        trained(Failing(error), broken, ad.train.Progress("dashboard", file=file))
    assert file.getvalue().rstrip().endswith(CURSOR)
    assert reason in file.getvalue()
    assert (sys.stdout, sys.stderr) == before


def test_lines_within_an_epoch() -> None:
    file = io.StringIO()
    run = trained(ad.train.Progress("lines", every=0, file=file), metrics=[ad.train.Accuracy()])
    lines = file.getvalue().splitlines()
    assert len(lines) == 2 * 3 + 1
    assert re.match(r"epoch 1/2  step 1/4  loss [\d.]+  accuracy [\d.]+  [\d,.]+ examples/s  0:00 left$", lines[0])
    assert re.match(r"epoch 1/2  step 2  loss .*valid_accuracy [\d.]+ ", lines[2])
    assert lines[-1] == "done after epoch 2, step 4, 0:00"
    assert run.examples == 16


def test_training_goes_on_where_the_terminal_is_gone() -> None:
    class Gone(Terminal):
        """Which can be written to so many times."""

        def __init__(self, writes: int) -> None:
            super().__init__()
            self.writes = writes

        def write(self, text: str) -> int:
            self.writes -= 1
            if self.writes < 0:
                raise BrokenPipeError(32, "Broken pipe")
            return super().write(text)

    before = sys.stdout, sys.stderr
    for writes in range(0, 12, 3):
        for view in ("lines", "dashboard"):
            assert trained(ad.train.Progress(view, file=Gone(writes), every=0)).reason == "done"
            assert (sys.stdout, sys.stderr) == before


def test_a_view_is_drawn_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at every step: steps may be much shorter than a picture."""
    drawn = []
    monkeypatch.setattr("adjoint.train.dashboard.view", lambda run, pace: drawn.append(run.step) or "")
    trained(ad.train.Progress("dashboard", file=Terminal(), every=60), epochs=20)
    assert drawn == [0, 40]


def test_pictures_take_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 seconds one, where a picture takes a second."""
    clock, drawn = Clock(), []

    def view(run: Run, pace: Pace) -> str:
        clock.now += 1.0
        drawn.append(run.step)
        return ""

    monkeypatch.setattr("adjoint.train.dashboard.view", view)
    monkeypatch.setattr("adjoint.train.progress.time", types.SimpleNamespace(monotonic=clock))
    run = a_run(step=0)
    progress = ad.train.Progress("dashboard", file=Terminal())
    progress.start(run)
    for run.step in range(1, 101):
        clock.now += 0.5
        progress.step(run)
    progress.end(run)
    assert drawn == [0, 1, 41, 81, 100]


# --- notebooks ---


class Display(types.ModuleType):
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.pages: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, text: str, display_id: bool) -> Any:
        self.pages.append(text)
        return types.SimpleNamespace(update=self.pages.append)


def test_a_notebook_has_one_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython, display = types.ModuleType("IPython"), Display()
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)  # type: ignore[attr-defined]
    ipython.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    trained(ad.train.Progress(every=0))
    assert "training" in display.pages[0]
    assert "done" in display.pages[-1]
    assert "step 4/4" in display.pages[-1]
    for text in (display.pages[-1], notebook_page(a_run(reason="<b>"), Pace())):
        assert "<b>&lt;b&gt;</b>" in text or "<svg" in text
        ET.fromstring(text)


@pytest.mark.slow
def test_a_notebook_runs(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = """
import adjoint as ad
seen = [ad.train.Progress(every=0)]
learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=seen)
learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))] * 3, epochs=3);
"""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    (output,) = book.cells[0].outputs
    assert output.output_type == "display_data"
    assert "<b>done</b>" in output.data["text/html"]
    assert "<svg" in output.data["text/html"]


# --- TensorBoard ---


def events(folder: Path) -> list[Any]:
    """The events of all files there: a length, its checksum, the event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for file in sorted(folder.iterdir()):
        content, at = file.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            found.append(Event.FromString(content[at + 12 : at + 12 + length]))
            at += 16 + length
    return found


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for event in events(folder):
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_event_files_have_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs adjoint[train]")
    metrics = [ad.train.Accuracy(), ad.train.ConfusionMatrix()]
    run = trained(ad.train.TensorBoard(tmp_path, every=2), metrics=metrics)
    found = scalars(tmp_path)
    tags = ["step/loss", "step/lr", "train/loss", "train/accuracy", "valid/loss", "valid/accuracy"]
    assert sorted(found) == sorted(tags)
    assert [step for step, _ in found["step/loss"]] == [2, 4]
    for part, column in (("train", ""), ("valid", "valid_")):
        for name in ("loss", "accuracy"):
            steps, values = zip(*found[f"{part}/{name}"], strict=True)
            assert steps == (2, 4)
            np.testing.assert_allclose(values, run.history[column + name], rtol=1e-6)
    texts = [value for event in events(tmp_path) for value in event.summary.value if "text" in value.tag]
    assert any(b"Linear" in text for value in texts for text in value.tensor.string_val)


def test_event_files_of_a_run_that_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs adjoint[train]")
    board = ad.train.TensorBoard(tmp_path)
    run = a_run()
    for _ in range(2):
        board.start(run)
        run.step += 1
        board.step(run)
        board.end(run)
        board.end(run)
        time.sleep(0.01)
    assert [event.step for event in events(tmp_path) if event.HasField("session_log")] == [26, 27]
    assert [step for step, _ in scalars(tmp_path)["step/loss"]] == [26, 27]


# --- a terminal, and what is refused ---


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    pty = importlib.import_module("pty")
    code = """
import time
import adjoint as ad
class Slow(ad.train.Callback):
    def step(self, run):
        time.sleep(0.02)
        print("step", run.step, flush=True)
seen = [Slow(), ad.train.Progress()]
learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=seen)
learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))] * 10, epochs=10_000)
print("after", learner.run.reason)
"""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    ends = {"stdin": slave, "stdout": slave, "stderr": slave}
    with processes.started([sys.executable, "-c", code], env=environment, **ends) as child:
        os.close(slave)
        seen, sent = b"", False
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            seen += part
            if not sent and b"step 30" in seen:
                child.send_signal(signal.SIGINT)
                sent = True
        os.close(master)
        assert child.wait(timeout=LIMIT) == 0
    text = seen.decode(errors="replace")
    assert "\x1b[?25l" in text
    assert text.rfind(CURSOR) > text.rfind("\x1b[?25l")
    assert "interrupted" in text
    assert "after interrupted" in text[text.rfind(CURSOR) :]


def test_what_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: ad.train.Progress("window"), errors.ArgumentError, "view is 'dashboard'"),
        (lambda: ad.train.Progress(every=-1), errors.ArgumentError, "every is a number of zero or more"),
        (lambda: ad.train.Report(3), errors.ArgumentTypeError, "path is a file"),
        (lambda: ad.train.Report("r.html", title=3), errors.ArgumentTypeError, "title is a string"),
        (lambda: ad.train.Report("r.html", labels="ab"), errors.ArgumentTypeError, "names of classes"),
        (lambda: ad.train.TensorBoard(3), errors.ArgumentTypeError, "path is a folder"),
        (lambda: ad.train.TensorBoard("x", every=0), errors.ArgumentError, "every is a positive integer"),
        (lambda: ad.train.TensorBoard(file).start(a_run()), errors.FileError, "file"),
    ]
    with Each() as each:
        for call, error, message in calls:
            with each(message), pytest.raises(error, match=re.escape(message)):
                call()
    for library, make in (("tensorboardX", lambda: ad.train.TensorBoard("x")),
                          ("IPython", lambda: ad.train.Progress("notebook"))):  # fmt: skip
        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.setitem(sys.modules, f"{library}.display", None)
        with pytest.raises(errors.MissingLibraryError, match=f"needs {library}; pip install"):
            make()
