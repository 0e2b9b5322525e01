"""`python -m benchmarks`: measure, print the table, write JSON, a bar chart and the page in docs."""

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
from rich.progress import Progress
from rich.table import Table

from benchmarks.cases import CASES
from benchmarks.harness import MODULES, installed, peak_bytes, times

DOCS = Path(__file__).parent.parent / "docs"
PEERS = ["PyTorch", "autograd", "JAX jit", "JAX"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", help="measure the cases whose name contains this")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for benchmarks.json and benchmarks.png")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or options.only in case.name]
    if not cases:
        parser.error(f"no case contains {options.only!r}; there are: {'; '.join(c.name for c in CASES)}")
    rows = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(cases))
        for case in cases:
            seconds = times(case, lambda text: progress.update(task, description=text))
            memory = peak_bytes(case.memory) if case.memory else {}
            rows.append(
                {
                    "case": case.name,
                    "threads": case.threads,
                    "seconds": seconds,
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
    _chart(rows, options.out / "benchmarks.png")
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
    for row in rows:
        ours = row["seconds"]["adjoint"]
        cells = [_cell(row["seconds"], peer, row["targets"].get(peer)) for peer in PEERS]
        table.add_row(row["case"], str(row["threads"]), f"{ours * 1e3:.3f} ms", *cells)
        if row["bytes"]:
            held = row["bytes"]
            ratio = f"{held['adjoint'] / held['PyTorch']:.2f} [1.05]" if "PyTorch" in held else ""
            table.add_row("  peak bytes", "", f"{held['adjoint'] / 1e6:.3f} MB", ratio, "", "", "")
    Console(width=130).print(table)


def _cell(seconds: dict[str, float], peer: str, target: float | None) -> str:
    if peer not in seconds:
        return "-"
    ratio = seconds["adjoint"] / seconds[peer]
    bound = "" if target is None else f" [{target:g}]"
    colour = "" if target is None else "green" if ratio <= target else "red"
    return f"[{colour}]{ratio:.2f}[/]\\{bound}" if colour else f"{ratio:.2f}"


def _chart(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    peers = [p for p in PEERS if any(p in row["seconds"] for row in rows)]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.75 * len(rows)))
    height = 0.8 / max(len(peers), 1)
    colours = {"PyTorch": "#d65f3d", "autograd": "#8f8f8f", "JAX jit": "#3d7ad6", "JAX": "#9dbdec"}
    for i, peer in enumerate(peers):
        for j, row in enumerate(rows):
            if peer in row["seconds"]:
                ratio = row["seconds"][peer] / row["seconds"]["adjoint"]
                place = j + i * height
                axes.barh(place, ratio, height * 0.9, color=colours[peer], label=peer if not j else None)
                axes.text(ratio * 1.05, place, f"{ratio:.2g}", va="center", fontsize=7)
    axes.set_yticks(
        [j + 0.4 - height / 2 for j in range(len(rows))], [_wrapped(row["case"]) for row in rows], fontsize=8
    )
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("their time / ours: right of the line adjoint is faster")
    axes.legend(fontsize=8, loc="lower right")
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
