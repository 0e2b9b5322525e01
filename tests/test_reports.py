"""What a report of a training says, and that it stands alone."""

from __future__ import annotations

import html.parser
import inspect
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from test_views import Failing, a_run, trained

import adjoint as ad
from adjoint import errors
from adjoint.train.report import page as report_page
from adjoint.train.run import History


class Page(html.parser.HTMLParser):
    """Which elements there are and what they say; fails where one is not closed, or asks for something elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.said: dict[str, list[str]] = {}
        self.count: dict[str, int] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not {"src", "href", "onload", "srcset"} & {name for name, _ in attrs}
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("meta", "path"):
            self.open.append(tag)
            self.said.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.said[tag][-1] += data


def read(text: str) -> Page:
    assert "<script" not in text.lower()
    assert not re.search(r"https?:|url\(|@import", text)
    return Page(text)


METRICS = (
    ad.train.Accuracy(),
    ad.train.ConfusionMatrix(),
    ad.train.Calibration(4, logits=True),
    ad.train.Recall(average=None, name="by class"),
)


def test_a_report_says_what_the_run_was(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    labels = ["<script>cat</script>", "dog & co", "bird"]
    run = trained(ad.train.Report(path, title="<script>x", labels=labels), metrics=METRICS)
    page = read(path.read_text())
    assert page.said["h1"] == ["<script>x"]
    assert page.said["span"][0] == "done"
    heads = [re.split(r" validation", head)[0] for head in page.said["h2"]]
    sections = ["Curves", "Confusion matrix", "Calibration", "by class", "Epochs", "Settings", "Model", "Environment"]
    assert heads == sections
    assert page.count["svg"] == 3
    cells = [[int(x or 0) for x in re.findall(r"<td title[^>]*>(\d*)</td>", line)]
             for line in path.read_text().split("<tr>") if "<td title" in line]  # fmt: skip
    assert cells == run.history["valid_confusion"][-1]
    assert [name for name in labels if name in page.said["th"]] == labels
    text = " ".join(page.said["td"])
    for said in ("cross_entropy", "SGD(lr=0.1", "Accuracy(), ConfusionMatrix(), Calibration(4, logits=True)", "Report"):
        assert said in text
    assert ad.__version__ in text
    assert page.said["pre"] == [repr(run.model)]
    assert f"{run.history['valid_accuracy'][-1]:.4g}" in page.said["b"]


def test_a_report_has_all_that_a_learner_was_given(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "seed": 7, "accumulate": 3, "clip": 0.125, "precision": "float16", "devices": ["numpy", "reference"],
        "lr_by_epoch": ad.optim.constant(0.5), "scaler": ad.optim.GradScaler(init_scale=32.0),
    }  # fmt: skip
    options = set(inspect.signature(ad.train.Learner).parameters) - {"model", "loss", "optimizer", "metrics"}
    assert options - {"callbacks", "forward"} == set(given)  # a new one is to be shown, too
    model, x, y = ad.nn.Linear(2, 3), ad.ones((4, 2)), ad.zeros(4, dtype=ad.int64)
    path = tmp_path / "report.html"
    ad.train.Learner(
        model, ad.nn.cross_entropy, ad.optim.SGD(lr=0.1), callbacks=[ad.train.Report(path)], **given
    ).fit([(x, y)])  # fmt: skip
    shown = dict(re.findall(r"<tr><th>([^<]*)</th><td>([^<]*)</td></tr>", path.read_text()))
    for name, said in {
        "seed": "7", "accumulate": "3", "clip": "0.125", "precision": "float16", "devices": "reference",
        "lr by epoch": "constant", "scaler": "GradScaler(init_scale=32.0",
    }.items():  # fmt: skip
        assert said in shown[name], name


@pytest.mark.parametrize("reason", ["interrupted", "error", "stopped: <b>"])
def test_a_report_of_a_run_that_did_not_finish(reason: str) -> None:
    for run in (a_run(reason=reason), a_run(done=0, reason=reason, history=History(), step=0, examples=0, seconds=0.0)):
        page = read(report_page(run, "x", None, None))
        assert page.said["span"][0] == reason
    run = a_run(reason=reason)
    run.history.rows[-1] |= {"valid_loss": math.nan, "loss": math.inf, "accuracy": None}
    run.history.rows[0]["valid_loss"] = math.nan
    assert "best nan" in report_page(run, "x", None, None)


def test_a_report_is_written_after_an_exception(tmp_path: Path) -> None:
    for error, reason in ((ZeroDivisionError(), "error"), (KeyboardInterrupt(), "interrupted")):
        with pytest.raises(type(error)):
            trained(Failing(error), ad.train.Report(tmp_path / "r.html"))
        assert read((tmp_path / "r.html").read_text()).said["span"][0] == reason
    with pytest.raises(errors.FileError, match="nowhere"):
        trained(ad.train.Report(tmp_path / "nowhere" / "r.html"))


def test_a_report_of_many_epochs_and_classes_stays_small() -> None:
    run = a_run(epochs=3000, done=3000, steps=2, reason="done")
    metric = ad.train.ConfusionMatrix()
    run.learner.metrics = (metric,)
    run.history.rows[-1]["valid_confusion"] = np.eye(60).tolist()
    text = report_page(run, "x", None, None)
    page = read(text)
    assert "every 15th of 3,000 epochs" in text
    assert any("3,000" in cell for cell in page.said["td"])
    assert len(text) < 1_500_000
    assert 'class="matrix small"' in text


def test_a_report_shows_the_model_layer_by_layer(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    run = trained(ad.train.Report(path, example=(1, 2)))
    assert str(run.model.summary((1, 2)).rows[0].parameters) in read(path.read_text()).said["td"]
    trained(ad.train.Report(path, example=(1, 5)))
    assert "summary: " in path.read_text()  # and all else stands there


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_draws_the_report(tmp_path: Path) -> None:
    """In light and dark, which differ; and it asks for nothing."""
    trained(ad.train.Report(tmp_path / "r.html"), metrics=METRICS)
    pictures = []
    for scheme in (1, 0):
        out = tmp_path / f"{scheme}.png"
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/{scheme}",
                   "--window-size=1100,2000", f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={out}",
                   f"file://{tmp_path}/r.html"]  # fmt: skip
        processes.run(command)
        pictures.append(out.read_bytes())
    assert min(map(len, pictures)) > 30_000
    assert pictures[0] != pictures[1]
