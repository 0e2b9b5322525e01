"""`python -m benchmarks`: measure, print the table, write JSON, bar charts and the page in docs."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from benchmarks import arrays, cases, faces, leaves, loading, training, transforms, vocabulary
from benchmarks.harness import MODULES, installed, peak_bytes, resident_bytes, times

_TOPICS = (cases, training, transforms, arrays, vocabulary, leaves, loading, faces)
CASES = [case for topic in _TOPICS for case in topic.CASES]
DOCS = Path(__file__).parent.parent / "docs"
# the cases of README's picture: many small operations, a small network, large arrays, and a fused kernel of PyTorch's
SHORT = [
    "chain of 1,000 small operations, tensors",
    "MLP 64-32-10, batch 32, SGD step",
    "sum((tanh(a*b)+sigmoid(a))*exp(-b*b)), 1,000,000 elements",
    "layer_norm, 1024 x 512",
]
START, END = "<!-- table -->", "<!-- end of table -->"
PEERS = ["PyTorch", "autograd", "JAX jit", "JAX"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", help="measure the cases whose name contains this")
    parser.add_argument("--draw", action="store_true", help="measure nothing: draw what benchmarks.json in --out says")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for benchmarks.json and benchmarks.png")
    options = parser.parse_args()
    if options.draw:
        _draw(json.loads((options.out / "benchmarks.json").read_text())["rows"], options.out)
        return 0
    chosen = [case for case in CASES if not options.only or options.only in case.name]
    if not chosen:
        parser.error(f"no case contains {options.only!r}; there are: {'; '.join(c.name for c in CASES)}")
    rows = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(chosen))
        for case in chosen:
            seconds, first = times(case, lambda text: progress.update(task, description=text))
            memory = resident_bytes() if case.resident else peak_bytes(case.memory) if case.memory else {}
            rows.append(
                {
                    "case": case.name,
                    "threads": case.threads,
                    "seconds": seconds,
                    "first": first,
                    "targets": case.targets,
                    "bytes": memory,
                }
            )
            progress.advance(task)
    _print(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    facts = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, 2 cores",
        "python": platform.python_version(),
        "versions": {m: version(m) for m in ["numpy", *sorted(set(MODULES.values()))] if m != "adjoint"},
        "rows": rows,
    }
    (options.out / "benchmarks.json").write_text(json.dumps(facts, indent=1) + "\n")
    _draw(rows, options.out)
    if options.out == DOCS and not options.only:
        _write_page(rows, facts, DOCS / "benchmarks.md")
    return 0


def _there(module: str) -> bool:
    return any(installed(library) for library, name in MODULES.items() if name == module)


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table(title="adjoint against its peers: ours / theirs, medians, float32 (targets in brackets)")
    table.add_column("case", max_width=44)
    table.add_column("threads", justify="right")
    table.add_column("ours", justify="right")
    for peer in PEERS:
        table.add_column(peer, justify="right")
    for cells in _cells(rows):
        table.add_row(*[escape(cell) for cell in cells])
    Console(width=130).print(table)


def _cells(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The table as text: a row per case, one for cold runs, and one more where memory was measured."""
    cells = []
    for row in rows:
        held = row["bytes"]
        for name, threads, seconds in (
            (row["case"], str(row["threads"]), row["seconds"]),
            ("... cold", "", row["first"]),
        ):
            ratios = [_ratio(seconds, peer, row["targets"].get(peer)) for peer in PEERS]
            cells.append([name, threads, f"{seconds['adjoint'] * 1e3:.3f} ms", *ratios])
        if held:
            ours = f"{held['adjoint']:.0f} B / link" if held["adjoint"] < 10_000 else f"{held['adjoint'] / 1e6:.2f} MB"
            cells.append(["... peak memory", "", ours, _ratio(held, "PyTorch", 1.05), "", "", ""])
    return cells


def _ratio(found: dict[str, float], peer: str, target: float | None) -> str:
    """Ours / theirs with the target, and a mark where it is missed."""
    if peer not in found:
        return "-"
    ratio = found["adjoint"] / found[peer]
    if target is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} [{target:g}]" + (" missed" if ratio > target else "")


def _write_page(rows: list[dict[str, Any]], facts: dict[str, Any], path: Path) -> None:
    """Put the table between the marks of the page in docs."""
    head = ["case", "threads", "ours", *PEERS]
    lines = [" | ".join(cells) for cells in [head, ["---"] * len(head), *_cells(rows)]]
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    table = "\n".join(f"| {line} |" for line in lines)
    measured = f"Measured {facts['date']} on {facts['machine']}, Python {facts['python']}, {versions}."
    text = f"{START}\n{table}\n\n{measured}\n{END}"
    page = path.read_text()
    before, _, rest = page.partition(START)
    path.write_text(before + text + rest.partition(END)[2])


def _draw(rows: list[dict[str, Any]], folder: Path) -> None:
    """The picture of all cases, and README's."""
    _chart(rows, folder / "benchmarks.png")
    short = [row for name in SHORT for row in rows if row["case"] == name]
    if short:
        _chart(short, folder / "benchmarks_short.png", width=6.2, height=0.45)


def _chart(rows: list[dict[str, Any]], path: Path, width: float = 9.0, height: float = 0.75) -> None:
    """Bars of the table's ratios, ours / theirs, from the line where both take as long; `height` is that of a case."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    peers = [p for p in PEERS if any(p in row["seconds"] for row in rows)]
    figure, axes = plt.subplots(figsize=(width, 0.8 + height * (len(rows) + 0.5)))
    thick = 0.8 / max(len(peers), 1)
    colours = {"PyTorch": "#d65f3d", "autograd": "#8f8f8f", "JAX jit": "#3d7ad6", "JAX": "#9dbdec"}
    for i, peer in enumerate(peers):
        for j, row in enumerate(rows):
            if peer in row["seconds"]:
                ratio = row["seconds"]["adjoint"] / row["seconds"][peer]
                place = j + i * thick
                axes.barh(place, ratio - 1, thick * 0.9, left=1, color=colours[peer], label=peer if not j else None)
                axes.annotate(
                    f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}",
                    (ratio, place),
                    xytext=(3 if ratio >= 1 else -3, 0),
                    textcoords="offset points",
                    ha="left" if ratio >= 1 else "right",
                    va="center",
                    fontsize=7,
                )
    axes.set_yticks(
        [j + 0.4 - thick / 2 for j in range(len(rows))], [_wrapped(row["case"]) for row in rows], fontsize=8
    )
    axes.set_ylim(len(rows) - 0.1, -0.2)
    axes.set_xscale("log")
    axes.margins(x=0.1)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("our time / theirs: left of the line adjoint is faster")
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=len(peers), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _wrapped(text: str, width: int = 36) -> str:
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
