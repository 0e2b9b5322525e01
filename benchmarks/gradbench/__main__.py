"""`python -m benchmarks.gradbench [problem ...]`: measure, print the table, and write it into docs/gradbench.md."""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.gradbench.libraries import COMPILED, LIBRARIES, Problem, Run
from benchmarks.gradbench.problems import PROBLEMS
from benchmarks.harness import set_threads

PAGE = Path(__file__).parents[2] / "docs" / "gradbench.md"
START, END = "<!-- table -->", "<!-- end of table -->"
LONG = 1.0  # seconds: what has run longer takes no further turn
TURN = 0.03  # seconds: what takes less runs several times in a turn, as GradBench has a tool run a function


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradbench", description=__doc__)
    parser.add_argument("problems", nargs="*", help="all if none is named")
    parser.add_argument("--turns", type=int, default=7, help="turns of each library")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and PyTorch; JAX takes what it finds")
    parser.add_argument("--write", action="store_true", help="write the table into docs/gradbench.md")
    options = parser.parse_args()
    known = [problem.name for problem in PROBLEMS]
    if unknown := sorted(set(options.problems) - set(known)):
        parser.error(f"no problem is called {', '.join(unknown)}; there are {', '.join(known)}")
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    chosen = [problem for problem in PROBLEMS if not options.problems or problem.name in options.problems]
    set_threads(options.threads)
    for library in LIBRARIES.values():
        PROBLEMS[0].run(library(), PROBLEMS[0].data(1.0))()  # what a library imports late is no part of a first run
    rows = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=sum(len(problem.sizes) for problem in chosen))
        for problem in chosen:
            for size in problem.sizes:
                progress.update(task, description=f"{problem.name} {size}")
                rows.append((problem.name, size, _times(problem, size, options.turns)))
                progress.advance(task)
    lines = [[name, size, *[_shown(seconds.get(library)) for library in LIBRARIES]] for name, size, seconds in rows]
    table = Table("problem", "size", *LIBRARIES, title=f"milliseconds of one gradient, {options.threads} threads")
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.print(table)
    summary = _summary([seconds for *_, seconds in rows])
    console.print(summary)
    if options.write:
        heads = ["problem", "size", *LIBRARIES]
        text = "\n".join("| " + " | ".join(line) + " |" for line in [heads, ["---"] * len(heads), *lines])
        libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "jax", "torch"))
        made = f"{START}\n{text}\n\n{summary} Measured with {libraries}, {options.threads} thread(s).\n{END}"
        page = PAGE.read_text()
        PAGE.write_text(page[: page.index(START)] + made + page[page.index(END) + len(END) :])
    return 0


def _times(problem: Problem, size: str, turns: int) -> dict[str, float]:
    """Median seconds by library, which take turns. The first run compiles, and counts if it is long where none does."""
    data = problem.data(*problem.sizes[size])
    gc.collect()
    gc.freeze()  # the collector does not look again at what three libraries and other problems left behind
    runs: dict[str, Run] = {}
    samples: dict[str, list[float]] = {}
    for name, library in LIBRARIES.items():
        if (name, size) not in problem.without:
            runs[name] = problem.run(library(), data)
            first = _seconds(runs[name])
            samples[name] = [first] if name not in COMPILED and first > LONG else []
    for _ in range(turns):
        for name, run in runs.items():
            if sum(samples[name]) < LONG:
                samples[name].append(_turn(run))
    return {name: statistics.median(found) for name, found in samples.items()}


def _turn(run: Run) -> float:
    """Median seconds of runs in a row: one alone finds caches as another library left them."""
    found = [_seconds(run)]
    while sum(found) < TURN:
        found.append(_seconds(run))
    return statistics.median(found)


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _shown(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def _summary(rows: list[dict[str, float]]) -> str:
    """Geometric means of our times over JAX's."""
    parts = []
    for name in ("adjoint", "adjoint compiled"):
        ratios = [math.log(row[name] / row["JAX"]) for row in rows if name in row and "JAX" in row]
        if ratios:
            parts.append(f"{name}: {math.exp(statistics.fmean(ratios)):.2f}")
    return f"Geometric means of our times over JAX's: {', '.join(parts)}."


if __name__ == "__main__":
    raise SystemExit(main())
