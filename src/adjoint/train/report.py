"""What is left of a run to read: one page of HTML, with nothing beside it."""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import errors, files
from adjoint.functions.arguments import items
from adjoint.train.charts import Chart, Series, charts, svg
from adjoint.train.metrics.classes import ConfusionMatrix
from adjoint.train.metrics.scores import Calibration
from adjoint.train.run import Callback, Run
from adjoint.train.system import environment, memory
from adjoint.train.text import duration, number, size

_FUNCTION = re.compile(r"<function ([\w.]+?)(?:\.<locals>\S*)? at 0x[0-9a-f]+>")  # a repr says where it is in memory
_ROWS = 200  # of the history that are shown
_NUMBERS = 30  # classes up to which a confusion matrix has numbers in it


class Report(Callback):
    """Writes a page about the run when it ends, also by Ctrl-C or an exception.

    It has a summary, curves, the confusion matrix and the calibration where there are such metrics (of the validation
    if there is one), the history, the settings, the model and the environment. It is one file of HTML with its pictures
    in it, without scripts, light or dark as the reader's system is.

    Parameters
    ----------
    path
        The file.
    title
        What the run is called.
    labels
        The names of the classes, for the confusion matrix.
    example
        An input of the model, or its shape: then the page has the model's `summary` of it, layer by layer.

    Raises
    ------
    ArgumentTypeError, FileError
        A title that is no text, or labels that are none; the file cannot be written, at the end.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import adjoint as ad
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "report.html")
    >>> report = ad.train.Report(path, title="A line")
    >>> learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=[report])
    >>> model, history = learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))], epochs=2)
    >>> "<h1>A line</h1>" in path.read_text()
    True
    >>> folder.cleanup()
    """

    labels: list[str] | None
    path: str
    title: str

    def __init__(
        self, path: Any, *, title: str = "Training", labels: Sequence[str] | None = None, example: Any = None
    ) -> None:
        self.path = str(files.as_path(path, "Report"))
        if not isinstance(title, str):
            raise errors.ArgumentTypeError(f"Report: the title is a string, received {errors.shown(title)}")
        names = None if labels is None else items(labels)
        if labels is not None and names is None:
            raise errors.ArgumentTypeError(f"Report: labels are the names of classes, received {errors.shown(labels)}")
        self.title, self.labels = title, None if names is None else [str(name) for name in names]
        self.example = example

    def end(self, run: Run) -> None:
        files.replace(self.path, page(run, self.title, self.labels, self.example).encode())


def page(run: Run, title: str, labels: list[str] | None, example: Any) -> str:
    """The whole page."""
    reason = run.reason or "running"
    state = {"done": "good", "error": "bad"}.get(reason, "partly")
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    drawn = [f"<figure>{svg(chart)}</figure>" for chart in charts(run.history.rows, run.history.steps)]
    sections = [
        ("Curves", f'<div class="grid">{"".join(drawn)}</div>' if drawn else ""),
        *_pictures(run, labels),
        ("Epochs", _history(run)),
        ("Settings", _table(_settings(run))),
        ("Model", _model(run.model, example)),
        ("Environment", _table({**environment(), "memory at the end": size(memory())})),
    ]
    body = "".join(f"<section><h2>{head}</h2>{text}</section>" for head, text in sections if text)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{html.escape(title)}</title><style>{_STYLE}</style></head>'
        f'<body><header><h1>{html.escape(title)}</h1><p><span class="state {state}">{html.escape(reason)}</span> {now}'
        f"</p></header><main>{_cards(run)}{body}</main></body></html>\n"
    )


def _model(model: Any, example: Any) -> str:
    shown = f"<pre>{html.escape(repr(model))}</pre>"
    if example is None:
        return shown
    try:
        return f'<div class="wide">{model.summary(example)._repr_html_()}</div>{shown}'
    except Exception as error:  # a page without it is better than none after hours
        return f"<p>summary: {html.escape(errors.said(str(error)))}</p>{shown}"


def _cards(run: Run) -> str:
    """The numbers that one looks for first."""
    last = run.history.rows[-1] if run.history.rows else {}
    found = [
        ("epochs", f"{run.epoch} of {run.epochs}", ""),
        ("steps", f"{run.step:,}", ""),
        ("time", duration(run.seconds), _speed(run)),
    ]
    for name in dict.fromkeys(name.removeprefix("valid_") for name in last):
        if name in ("epoch", "step", "seconds", "lr"):
            continue
        own, valid = last.get(name), last.get(f"valid_{name}")
        if _is_number(valid):
            low = f"training {number(own)}" if _is_number(own) else ""
            if name == "loss":
                losses = {row["epoch"]: row.get("valid_loss") for row in run.history.rows}
                finite = [(x, epoch) for epoch, x in losses.items() if x is not None and x == x]
                best = min(finite, default=(valid, run.epoch))
                low = f"best {number(best[0])}, epoch {best[1]}"
            found.append((f"validation {name}", number(valid), low))
        elif _is_number(own):
            found.append((name, number(own), ""))
    cards = (f"<div><small>{html.escape(a)}</small><b>{b}</b><small>{c}</small></div>" for a, b, c in found)
    return f'<div class="cards">{"".join(cards)}</div>'


def _speed(run: Run) -> str:
    if not run.seconds:
        return ""
    what, count = ("examples", run.examples) if run.examples else ("steps", run.step)
    return f"{number(count / run.seconds)} {what}/s"


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.number)) and not isinstance(x, bool)


# --- metrics that are arrays ---------------------------------------------------------------------


def _pictures(run: Run, labels: list[str] | None) -> list[tuple[str, str]]:
    """Sections for the metrics that are arrays: of the last validation, or of the last epoch."""
    last = run.history.rows[-1] if run.history.rows else {}
    found = []
    for metric in getattr(run.learner, "metrics", ()):
        where = "validation" if f"valid_{metric.name}" in last else "training"
        value = last.get(f"valid_{metric.name}", last.get(metric.name))
        if value is None or _is_number(value):
            continue
        array, name = np.asarray(value, float), html.escape(metric.name)
        if isinstance(metric, ConfusionMatrix) and array.size:
            found.append((f"Confusion matrix <small>{where}, {name}</small>", _matrix(array, labels)))
        elif isinstance(metric, Calibration):
            found.append((f"Calibration <small>{where}, {name}</small>", _calibration(array)))
        elif array.ndim == 1:
            names = labels if labels is not None and len(labels) == len(array) else map(str, range(len(array)))
            rows = {f"class {k}": number(float(x)) for k, x in zip(names, array, strict=True)}
            found.append((f"{name} <small>{where}, by class</small>", _table(rows)))
    return found


def _matrix(counts: np.ndarray[Any, Any], labels: list[str] | None) -> str:
    """Rows are true, columns predicted; the colour is the part of the row."""
    classes = len(counts)
    names = labels if labels is not None and len(labels) == classes else [str(k) for k in range(classes)]
    sums = counts.sum(axis=1, keepdims=True)
    parts = np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0)
    heads = "".join(f"<th><span>{html.escape(name)}</span></th>" for name in names)
    rows = []
    for name, row, shares in zip(names, counts, parts, strict=True):
        cells = []
        for other, x, share in zip(names, row, shares, strict=True):
            said = html.escape(f"{name} as {other}: {number(_whole(x))}, {share:.1%} of the row", quote=True)
            shown = number(_whole(x)) if classes <= _NUMBERS and x else ""
            strong = ' class="strong"' if share > 0.55 else ""
            cells.append(f'<td title="{said}" style="--part:{share:.3f}"{strong}>{shown}</td>')
        rows.append(f"<tr><th>{html.escape(name)}</th>{''.join(cells)}</tr>")
    small = ' class="matrix small"' if classes > _NUMBERS else ' class="matrix"'
    return (
        f'<div class="wide"><table{small}><caption>rows: true; columns: predicted; colour: part of the row</caption>'
        f"<tr><td></td>{heads}</tr>{''.join(rows)}</table></div>"
    )


def _whole(x: float) -> float:
    return int(x) if float(x).is_integer() else float(x)


def _calibration(bins: np.ndarray[Any, Any]) -> str:
    points = [(float(p), float(true)) for p, true, weight in bins if weight]
    if not points:
        return ""
    ideal = Series("ideal", [(0.0, 0.0), (1.0, 1.0)])
    chart = Chart("how often it was true", [Series("model", points), ideal], "predicted probability")
    return f'<div class="grid"><figure>{svg(chart)}</figure></div>'


# --- tables --------------------------------------------------------------------------------------


def _history(run: Run) -> str:
    """The rows of the history, thinned where they are many; columns that are no numbers are left out."""
    rows = run.history.rows
    if not rows:
        return ""
    names = [name for name in run.history.columns if any(_is_number(row.get(name)) for row in rows)]
    every = -(-len(rows) // _ROWS)
    kept = rows[(len(rows) - 1) % every :: every]  # the last is among them
    heads = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
    shown = [[row.get(name) for name in names] for row in kept]
    cells = ["".join(f"<td>{number(x) if _is_number(x) else ''}</td>" for x in row) for row in shown]
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    note = f"<p><small>every {every}th of {len(rows):,} epochs</small></p>" if every > 1 else ""
    return (
        f'<details{" open" if len(kept) <= 15 else ""}><summary>{len(kept)} rows</summary>{note}<div class="wide">'
        f'<table class="rows"><tr>{heads}</tr>{lines}</table></div></details>'
    )


def _settings(run: Run) -> dict[str, str]:
    """What the learner was given, by its public attributes; and where the model is."""
    learner = run.learner
    devices = dict.fromkeys(str(x.device) for x in run.model.named_parameters().values())
    found = {"epochs": str(run.epochs)}
    if run.steps_per_epoch is not None:
        found["steps per epoch"] = str(run.steps_per_epoch)
    for name, value in vars(learner).items() if hasattr(learner, "__dict__") else ():
        if name.startswith("_") or name in ("model", "run") or value is None:
            continue
        if name == "callbacks":
            found[name] = ", ".join(type(callback).__name__ for callback in value)
        else:
            found[name.replace("_", " ")] = _said(value)
    return {**found, "device": ", ".join(devices)}


def _said(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_said, value))
    own = getattr(value, "__qualname__", None)
    return str(own) if own else errors.said(_FUNCTION.sub(r"\1", repr(value)))


def _table(rows: Mapping[str, str]) -> str:
    lines = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
    return f'<table class="pairs">{lines}</table>'


_STYLE = """
:root{color-scheme:light dark;--back:#fff;--card:#f6f7f9;--text:#1c2128;--soft:#667080;--line:#dde1e7}
@media(prefers-color-scheme:dark){:root{--back:#14171c;--card:#1d2229;--text:#e4e7eb;--soft:#97a0ad;--line:#323943}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;margin:0 auto;max-width:1080px;padding:32px 24px 64px;
background:var(--back);color:var(--text)}
h1{font-size:28px;margin:0}h2{font-size:18px;margin:36px 0 12px}
h2 small,small{font-weight:400;color:var(--soft);font-size:13px}
header p{margin:6px 0 20px;color:var(--soft)}
.state{color:#fff;border-radius:99px;padding:2px 12px;font-size:13px;font-weight:600;margin-right:6px}
.good{background:#15803d}.bad{background:#c62828}.partly{background:#b45309}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px}
.cards div{background:var(--card);border-radius:10px;padding:12px 11px}
.cards b{display:block;font-size:21px;font-weight:600;font-variant-numeric:tabular-nums}
.cards small{display:block;min-height:1.4em;font-size:12.5px}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(440px,100%),1fr));gap:16px}
figure{margin:0;background:var(--card);border-radius:10px;padding:10px 8px 4px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}
.wide{overflow-x:auto}
.pairs th{text-align:left;font-weight:400;color:var(--soft);padding:5px 24px 5px 0;vertical-align:top;
white-space:nowrap}
.pairs td{overflow-wrap:anywhere;padding:5px 0}.pairs tr+tr{border-top:1px solid var(--line)}
.rows th,.rows td{text-align:right;padding:4px 12px;border-bottom:1px solid var(--line)}
.rows th{color:var(--soft);font-weight:400}
caption{caption-side:bottom;text-align:left;color:var(--soft);font-size:13px;padding-top:8px}
.matrix td,.matrix th{min-width:40px;height:34px;text-align:center;font-weight:400;padding:2px 6px}
.matrix tr>th:first-child{text-align:right;color:var(--soft);padding-right:10px}
.matrix tr:first-child th{color:var(--soft)}
.matrix td+td,.matrix th+td{border:1px solid var(--back);border-radius:4px;
background:color-mix(in srgb,#2563eb calc(var(--part)*100%),var(--card))}
.matrix .strong{color:#fff}
.small td,.small th{min-width:0;height:12px;padding:0 2px;font-size:8px}
pre{background:var(--card);border-radius:10px;padding:14px 16px;overflow-x:auto;font-size:13px;line-height:1.45}
summary{cursor:pointer;color:var(--soft);margin-bottom:8px}
@media print{body{max-width:none}}
"""
