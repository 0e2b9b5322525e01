"""`python -m benchmarks.functions`: what functions cost beside NumPy's own, or the best lines of it.

`python -m benchmarks.functions NAME ...` measures the rows again whose name contains one of these.
Values only, on the NumPy backend without gradients, about 100,000 elements. Both take turns in one process; a figure
is the median of all runs of all turns, in processor time.
"""

from __future__ import annotations

import argparse
import gc
import platform
import re
import statistics
import sys
import time
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import optree

import adjoint as ad
from benchmarks.comparisons import ARRAYS, Comparison
from benchmarks.fields import FIELDS
from benchmarks.harness import Run, set_threads
from benchmarks.networks import NETWORKS

COMPARISONS = [*ARRAYS, *FIELDS, *NETWORKS]
PAGE = Path(__file__).parent.parent / "docs" / "function_costs.md"
CALLS = 40e-6  # seconds: what so little is between them is Python's between primitives, not NumPy's work
EXACT = "accurate where the plain formula cancels, which takes more passes; single precision in double"
CHOICE = "choices with the derivative of one side at the kink, where minimum and maximum would share it"
ALONG = "calls, of some ten primitives"
GAMMA = "logarithms of gamma numbers, which do not underflow, in double precision"
LOOPS = "passes over arrays, of all branches, where theirs is a compiled loop over elements"
CAUSES = {  # of what stays above the bound, by the beginning of the name; others make a pass for each primitive
    "unstack": "a tensor object for each row",
    "special.": EXACT,
    "nn.prelu": CHOICE,
    "nn.hardswish": "a pass more, so that infinite numbers are not multiplied with zero",
    "nn.multi_margin_loss": ALONG,
    "nn.cosine": ALONG,
    "nn.binary_cross_entropy": "whether a logarithm needs its bound is looked up first",
    "nn.kl_div": "whether there are zeros among the targets is looked up first",
    "nn.gaussian_nll_loss": "whether variances are below eps is looked up first",
    "nn.grid_sample": "places outside, infinite and nan ones included, are told for each of the four neighbours",
    "nn.fold": "a transposed convolution, which has the gradient, in place of nine additions into slices",
    "nn.dropout": "numbers are drawn by one generator for all backends, and chosen rather than multiplied",
    "isin, floats": "a search among sorted values, where NumPy sorts both",
    "linalg.lstsq": "the pseudoinverse of a singular value decomposition, which the gradient needs",
    "linalg.vector_norm": "whether there are zeros is looked up first, for the gradient there",
    "random.categorical": "noise for each class, so that logits may differ; those lines have one distribution",
    **dict.fromkeys(("random.gamma", "random.chisquare", "random.beta", "random.dirichlet", "random.student_t"), GAMMA),
    "nanmedian": "the places for all numbers of elements, which need not be known",
    "nanquantile": "the places for all numbers of elements, which need not be known",
    "nanpercentile": "the places for all numbers of elements, which need not be known",
    "unique_": "an order by stable ranks, which gives places found first",
    "one_hot": "classes are checked first",
    "segment_": "segments are checked first, and the array they are joined to is made and copied",
    "scatter": "places are checked first, and x is copied",
    "histogram": "where values lie, over the whole array; NumPy goes block by block",
}
START, END = "<!-- table -->", "<!-- end of table -->"
BOUND, TURNS, TURN, THREADS = 1.3, 40, 0.002, 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.functions", description=__doc__)
    parser.add_argument("names", nargs="*", help="measure those whose name contains one of these, and keep other rows")
    parser.add_argument("--only", help="measure the functions whose name contains this, and leave the page as it is")
    parser.add_argument("--turns", type=int, default=TURNS)
    options = parser.parse_args()
    set_threads(THREADS)
    wanted = [options.only] if options.only else options.names
    known = _known() if options.names else {}
    rows = []
    for case in COMPARISONS:
        if case.name in known and not any(name in case.name for name in wanted):
            rows.append((case, *known[case.name]))
        elif not wanted or options.names or options.only in case.name:
            ours, theirs = _times(case, options.turns)
            rows.append((case, ours, theirs))
            print(f"{case.name:40} {ours * 1e6:10.1f} us {theirs * 1e6:10.1f} us {ours / theirs:6.2f}", flush=True)
    if not options.only:
        _write(rows)
    return 0


def _times(case: Comparison, turns: int) -> tuple[float, float]:
    """The median seconds of both, which take turns."""
    device = ad.NumPy()
    tensors = [ad.asarray(v, device=device) if isinstance(v, np.ndarray) else v for v in case.operands]
    runs: list[Run] = [lambda: case.ours(*tensors), lambda: case.theirs(*case.operands)]
    with ad.use_device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.equal:
            _compare(case.name, runs[0](), runs[1]())
        samples: list[list[float]] = [[], []]
        gc.collect()
        for turn in range(turns):
            for i in (0, 1) if turn % 2 else (1, 0):
                runs[i]()  # finds the caches that the other one left
                spent = len(samples[i])
                samples[i].append(_clock(runs[i]))
                while sum(samples[i][spent:]) < TURN:
                    samples[i].append(_clock(runs[i]))
    return statistics.median(samples[0]), statistics.median(samples[1])


def _clock(run: Run) -> float:
    """Seconds of the processor: what else the machine does would count on the wall, and most for what takes longest."""
    start = time.process_time()
    run()
    return time.process_time() - start


def _compare(name: str, ours: Any, theirs: Any) -> None:
    """Both must have found the same."""
    mine = [np.asarray(x) for x in optree.tree_leaves(optree.tree_map(_array, ours, is_leaf=_tensor))]
    others = [np.asarray(x) for x in optree.tree_leaves(theirs)]
    for x, y in zip(mine, others, strict=True):
        precise = {2: 1e-2, 4: 2e-4}.get(min(x.real.itemsize, y.real.itemsize), 1e-9)
        scale = float(np.nanmax(np.abs(y), initial=1.0)) if y.dtype.kind in "fc" else 1.0
        if x.shape != y.shape or not np.allclose(x, y, rtol=precise, atol=precise * scale, equal_nan=True):
            raise AssertionError(f"{name}: ours is not theirs")


def _tensor(x: Any) -> bool:
    return isinstance(x, ad.Tensor)


def _array(x: Any) -> Any:
    return x.numpy() if _tensor(x) else x


def _known() -> dict[str, tuple[float, float]]:
    """What the page says: the seconds of ours and of theirs."""
    figure = r"([0-9.]+) (ms|µs)"
    rows = re.findall(rf"^\| (.+?) \| {figure} \| {figure}", PAGE.read_text(), re.MULTILINE)
    units = {"ms": 1e-3, "µs": 1e-6}
    return {name: (float(ours) * units[a], float(theirs) * units[b]) for name, ours, a, theirs, b in rows}


def _write(rows: list[tuple[Comparison, float, float]]) -> None:
    """Put the tables between the marks of the page in docs."""
    mine = sorted((r for r in rows if r[0].peer == "NumPy"), key=lambda r: r[2] / r[1])
    above = [r for r in mine if r[1] > BOUND * r[2]]
    others = sorted((r for r in rows if r[0].peer != "NumPy"), key=lambda r: r[2] / r[1])
    python, versions = platform.python_version(), f"numpy {version('numpy')}, scipy {version('scipy')}"
    measured = (
        f"Measured {date.today().isoformat()} on {platform.machine()}, {THREADS} thread, Python {python}, {versions}."
    )
    text = [
        START,
        f"{len(mine)} comparisons with NumPy, {len(mine) - len(above)} of them within {BOUND}.",
        "",
        f"## Above {BOUND}",
        "",
        *_table(above),
        "",
        "## Within",
        "",
        *_table(mine[len(above) :]),
        "",
        "## Beside compiled code of other libraries",
        "",
        *_table(others),
        "",
        measured,
        END,
    ]
    page = PAGE.read_text()
    PAGE.write_text(page.partition(START)[0] + "\n".join(text) + page.partition(END)[2])


def _table(rows: list[tuple[Comparison, float, float]]) -> list[str]:
    lines = ["| function | ours | theirs | ours / theirs | cause |", "| --- | --- | --- | --- | --- |"]
    for case, ours, theirs in rows:
        peer = "" if case.peer == "NumPy" else f" ({case.peer})"
        known = LOOPS if peer else _cause(case.name, ours - theirs)
        cause = known if ours > BOUND * theirs else ""
        lines.append(f"| {case.name} | {_shown(ours)} | {_shown(theirs)}{peer} | {ours / theirs:.2f} | {cause} |")
    return lines


def _cause(name: str, more: float) -> str:
    """Why a function stays above the bound."""
    if more < CALLS:
        return "calls"
    return next((cause for start, cause in CAUSES.items() if name.startswith(start)), "passes")


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


if __name__ == "__main__":
    sys.exit(main())
