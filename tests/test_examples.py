"""The examples, run for real: their figures, their errors, and that a training can be stopped."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import digits as digits_example
import gallery
import numpy as np
import processes
import pytest
import tour
from conftest import LIMIT
from numpy.testing import assert_allclose

import adjoint as ad

ROOT = Path(__file__).resolve().parent.parent
DIGITS, TOUR = ROOT / "examples" / "digits.py", ROOT / "examples" / "tour.py"

needs_extras = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "safetensors", "sklearn")),
    reason="needs the examples' libraries: pip install 'adjoint[examples]'",
)


# --- the tour ---


def test_doubled() -> None:
    total, gradient = tour.doubled()
    assert total.item() == 20
    assert gradient.tolist() == [2, 2, 2, 2]


def test_squared() -> None:
    assert tour.squared().tolist() == [2, 4, 6, 8]


def test_chained() -> None:
    assert_allclose(tour.chained().numpy(), [0, 1.0806046, -2.6145744, -5.4667816], atol=1e-6)


def test_descent(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{tour.descent():.4f}" == "2.9654"
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert lines[1] == "iteration  1: x=0.6000, loss=5.7600"
    assert lines[19].startswith("iteration 19: x=2.9568,")
    assert lines[20] == "final: x=2.9654"


def test_regression() -> None:
    slope, intercept = tour.regression()
    assert abs(slope.item() - 2) < 0.1
    assert abs(intercept.item() - 1) < 0.3


def test_squared_error() -> None:
    gradient, twice_the_error = tour.squared_error()
    assert gradient.tolist() == twice_the_error.tolist() == [-1, 1, 0, 2]


def test_one_layer() -> None:
    """The gradient of the loss in the scores is (sigmoid(scores) - target) / count."""
    loss, of_weights, of_biases = tour.one_layer()
    ad.random.seed(0)
    weights, biases = ad.random.normal((5, 3)).numpy(), ad.random.normal(3).numpy()
    scores = np.ones(5) @ weights + biases
    sigmoid = 1 / (1 + np.exp(-scores))
    assert_allclose(loss.item(), -np.log(1 - sigmoid).mean(), rtol=1e-5)
    assert_allclose(of_biases.numpy(), sigmoid / 3, rtol=1e-5)
    assert_allclose(of_weights.numpy(), np.outer(np.ones(5), sigmoid / 3), rtol=1e-5)


def test_jacobian_product() -> None:
    assert_allclose(tour.jacobian_product().numpy(), 2 + 2 * np.eye(4, 5))


def test_the_tour_prints_all_stops(capsys: pytest.CaptureFixture[str]) -> None:
    tour.main()
    out = capsys.readouterr().out
    assert re.findall(r"^\(([a-z])\)", out, re.MULTILINE) == list("abcdefgh")


def test_the_tour_has_no_options_but_help() -> None:
    for option, status in (("--help", 0), ("--slow", 2), ("more", 2)):
        done = processes.run([sys.executable, str(TOUR), option], check=False)
        assert done.returncode == status
        assert "tour.py" in (done.stderr if status else done.stdout)
        assert "Traceback" not in done.stderr
        assert "(a)" not in done.stdout
        assert status == 0 or option in done.stderr


def _same_text(ours: str, theirs: str) -> None:
    """Equal words, and numbers that are as good as equal."""
    number = r"-?\d+\.\d*(?:e[-+]\d+)?"
    assert re.sub(number, "#", "".join(ours.split())) == re.sub(number, "#", "".join(theirs.split()))
    found = [[float(n) for n in re.findall(number, text)] for text in (ours, theirs)]
    assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_the_notebook_shows_the_tour(capsys: pytest.CaptureFixture[str]) -> None:
    """Its cells are the code of examples/tour.py and its outputs are what that gives."""
    import tour_notebook

    cells = json.loads(tour_notebook.NOTEBOOK.read_text())["cells"]
    assert [(c["cell_type"], "".join(c["source"])) for c in cells] == tour_notebook.cells()
    code = [cell for cell in cells if cell["cell_type"] == "code"][1:]
    assert len(code) == len(tour.STOPS)
    for cell, stop in zip(code, tour.STOPS, strict=True):
        outputs: dict[str, str] = {}
        for output in cell["outputs"]:
            outputs[output["output_type"]] = "".join(output.get("text") or output["data"]["text/plain"])
        result = stop()
        _same_text(outputs["execute_result"], repr(result))
        _same_text(outputs.get("stream", ""), capsys.readouterr().out)


# --- digits ---


def digits(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return processes.run([sys.executable, str(DIGITS), *arguments], check=False, cwd=folder)


def accuracy(out: str) -> float:
    found = re.search(r"test accuracy: ([\d.]+)%", out)
    assert found, out
    return float(found[1])


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The picture of a run of one epoch on NumPy, and what it prints."""
    folder = tmp_path_factory.mktemp("epoch")
    done = digits("--epochs", "1", "--device", "numpy", folder=folder)
    assert done.returncode == 0, done.stderr
    return (folder / "digits.png").read_bytes(), done.stdout


@needs_extras
@pytest.mark.slow
def test_digits_are_learnt() -> None:
    """In the run of the site's gallery."""
    assert accuracy(gallery.run("digits").printed) >= 98.5


@needs_extras
@pytest.mark.slow
def test_a_few_epochs_of_digits_with_a_report(tmp_path: Path) -> None:
    done = digits("--epochs", "4", "--report", "digits.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert accuracy(done.stdout) >= 85
    assert "loss" in done.stderr
    assert "accuracy" in done.stderr
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert "Confusion matrix" in (tmp_path / "digits.html").read_text()


@needs_extras
@pytest.mark.slow
def test_two_runs_are_the_same(one_epoch: tuple[bytes, str], tmp_path: Path) -> None:
    picture, printed = one_epoch
    again = digits("--epochs", "1", "--out", "again.png", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert printed == again.stdout.replace("again.png", "digits.png")
    assert picture == (tmp_path / "again.png").read_bytes()


@needs_extras
@pytest.mark.slow
def test_another_seed_gives_other_numbers(one_epoch: tuple[bytes, str], tmp_path: Path) -> None:
    other = digits("--epochs", "1", "--seed", "1", folder=tmp_path)
    assert other.returncode == 0, other.stderr
    assert other.stdout != one_epoch[1]


@needs_extras
@pytest.mark.slow
def test_other_backends_learn_too(one_epoch: tuple[bytes, str], tmp_path: Path) -> None:
    """Levels that do not change values give the very same training."""
    runs = [
        digits("--epochs", "1", "--device", name, folder=tmp_path)
        for name in ("autodiff<numpy>", "autodiff[checkpointing=balanced]<numpy>", "tangent<numpy>")
    ]
    assert [run.returncode for run in runs] == [0] * 3, runs[-1].stderr
    assert {run.stdout for run in runs} == {one_epoch[1]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--colour"], "--colour"),
        (["--epochs", "0"], "--epochs"),
        (["--epochs", "many"], "'many'"),
        (["--seed", "-1"], "--seed"),
        (["--seed"], "--seed"),
        (["--device", "abacus"], "abacus"),
        (["--device", "autodiff[digits=3]<numpy>"], "digits"),
        (["--device", "autodiff[checkpointing=always]<numpy>"], "'always'"),
        (["--out", "nowhere/digits.png"], "nowhere/digits.png"),
        (["--out", "folder.png"], "folder.png"),
        (["--out", "digits.doc"], "digits.doc"),
    ],
)
def test_wrong_options_get_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        digits_example.main(arguments)
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_a_program_with_wrong_options_ends_with_2(tmp_path: Path) -> None:
    done = digits("--colour", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch("digits.py: .*--colour.*\n", done.stderr)


def test_help(tmp_path: Path) -> None:
    done = digits("--help", folder=tmp_path)
    assert done.returncode == 0
    for option in ("--epochs", "--seed", "--device", "--out"):
        assert option in done.stdout


def refused(script: Path, *arguments: str, output: int, folder: Path, **variables: str) -> str:
    """What a script says where its output cannot be written."""
    command, env = [sys.executable, str(script), *arguments], os.environ | variables
    done = processes.run(command, check=False, stdout=output, cwd=folder, env=env)
    os.close(output)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@needs_extras
@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(("script", "arguments"), [(DIGITS, ["--epochs", "1"]), (DIGITS, ["--help"]), (TOUR, [])])
def test_output_that_cannot_be_written_is_said_in_one_line(script: Path, arguments: list[str], tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    said = refused(script, *arguments, output=full, folder=tmp_path)
    assert said == f"{script.name}: cannot write: No space left on device"
    read, write = os.pipe()
    os.close(read)  # as `| head -c 5` does, once it has seen enough
    at_once = "" if "--help" in arguments else "1"  # argparse passes over what it cannot write itself
    said = refused(script, *arguments, output=write, folder=tmp_path, PYTHONUNBUFFERED=at_once)
    assert said == f"{script.name}: cannot write: Broken pipe"


@contextlib.contextmanager
def _training(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A training without end, under way: two epochs were shown."""
    command = [sys.executable, str(DIGITS), "--epochs", "100000", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    env = os.environ | {"FORCE_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    with processes.started(command, cwd=folder, env=env, **pipes) as process:
        _shown(process.stderr, b"valid_accuracy", times=2)
        yield process


def _shown(stream: IO[bytes] | None, what: bytes, times: int = 1) -> None:
    """Read what a program shows until it has shown this so often."""
    assert stream is not None
    shown = b""
    while shown.count(what) < times:
        part = os.read(stream.fileno(), 4096)
        assert part, shown
        shown += part


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent like this there")


@needs_extras
@needs_signals
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--checkpoints", "run")])
def test_ctrl_c_stops_with_what_was_learnt(options: tuple[str, ...], tmp_path: Path) -> None:
    """Standard output is the example's alone; how to go on is said where there is something to go on from."""
    with _training(tmp_path, *options) as process:
        process.send_signal(signal.SIGINT)
        out, err = (part.decode() for part in process.communicate(timeout=LIMIT))
    assert process.returncode == 0, err
    found = re.fullmatch(
        r"stopped after (\d+\.\d) of 100000 epochs\n"
        r"test loss: \d\.\d{4}\n"
        r"test accuracy: \d\d\.\d\d% of 360 images\n"
        r"picture: digits\.png\n",
        out,
    )
    assert found, out
    assert accuracy(out) >= 50
    said = [line for line in err.splitlines() if line.startswith("Interrupted")]
    last = sorted((tmp_path / "run").glob("step-*"))[-1:]
    how = [
        f"Interrupted after step {int(path.stem[5:])}, in epoch {int(float(found[1])) + 1} of 100000, saved in "
        f"{path.relative_to(tmp_path)}; the same call of fit, or the same command, goes on from there."
        for path in last
    ]
    assert said == how
    assert bool(how) is bool(options)
    assert "Traceback" not in err
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


@needs_extras
@needs_signals
@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    command = [sys.executable, str(DIGITS), "--epochs", "3", "--checkpoints", "run"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    with processes.started(command, cwd=tmp_path, **pipes) as process:
        _shown(process.stderr, b"valid_accuracy", times=2)  # the second epoch may be on the disk, or on its way
        process.kill()
    again = digits("--epochs", "3", "--checkpoints", "run", folder=tmp_path)
    whole = digits("--epochs", "3", folder=tmp_path)
    assert again.returncode == whole.returncode == 0, again.stderr
    assert again.stdout == whole.stdout
    assert again.stderr.count("valid_accuracy") < whole.stderr.count("valid_accuracy")
    last = tmp_path / "run" / "step-00000135.safetensors"
    last.write_bytes(last.read_bytes()[:1000])
    refused = digits("--checkpoints", "run", folder=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("digits.py: run/step-00000135.safetensors: this is no whole file")
    assert refused.stderr.endswith("remove it to go on from run/step-00000090.safetensors\n")


@needs_extras
@needs_signals
@pytest.mark.slow
def test_ctrl_c_twice_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "digits.png").write_bytes(b"an older picture")
    with _training(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        _shown(process.stdout, b"test accuracy")  # what comes now is the picture
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, err
    assert b"picture" not in out
    assert b"Traceback" not in err
    assert err.endswith(b"digits.py: interrupted; no picture was written\n")
    assert b"Interrupted" not in err
    assert (tmp_path / "digits.png").read_bytes() == b"an older picture"
