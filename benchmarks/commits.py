"""How much faster or slower a commit made us: `python -m benchmarks.commits 1fd021f`.

Each case of the table runs in the sources of that commit and in those that are here, each with its own benchmarks, in
fresh processes that take turns. Compared are medians over processes of their median runs, because processes differ more
than runs do: a heap, a hash seed, a neighbour on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).parent.parent

# run in either checkout, so that it knows of the benchmarks what both have
RUN = """
import gc, json, statistics, sys, time
from threadpoolctl import threadpool_limits
from benchmarks.__main__ import CASES
found = {}
for case in CASES:
    if sys.argv[1] not in case.name or "adjoint" not in case.make:
        continue
    threadpool_limits(1)
    run = case.make["adjoint"]()
    run(), run()
    gc.collect()
    runs, end = [], time.perf_counter() + float(sys.argv[2])
    while len(runs) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        runs.append(time.perf_counter() - start)
    found[case.name] = statistics.median(runs)
print(json.dumps(found))
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commits", description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--only", default="", help="the cases whose name contains this")
    parser.add_argument("--processes", type=int, default=15, help="of each commit")
    parser.add_argument("--seconds", type=float, default=0.3, help="for a case in a process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", options.commit], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        samples: dict[str, tuple[list[float], list[float]]] = {}
        with Progress(console=Console(stderr=True), transient=True) as progress:
            for turn in progress.track(range(options.processes), description="processes"):
                for side in (turn % 2, 1 - turn % 2):  # nobody always goes first
                    found = _measured((Path(folder), ROOT)[side], options.only, options.seconds)
                    for name, seconds in found.items():
                        samples.setdefault(name, ([], []))[side].append(seconds)
    table = Table(title=f"new / old, medians of {options.processes} processes each, one thread")
    for column in ("case", "old", "new", "new / old"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for name, sides in samples.items():
        if all(sides):  # a case that only one of them has is not compared
            old, new = map(statistics.median, sides)
            table.add_row(name, f"{old * 1e3:.3f} ms", f"{new * 1e3:.3f} ms", f"{new / old:.3f}")
    Console(width=130).print(table)
    return 0


def _measured(checkout: Path, only: str, seconds: float) -> dict[str, float]:
    """The median seconds of each case, in a fresh process over the sources of a checkout."""
    path = os.pathsep.join([str(checkout / "src"), str(checkout)])
    command = [sys.executable, "-c", RUN, only, str(seconds)]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "XLA_FLAGS": ""}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
