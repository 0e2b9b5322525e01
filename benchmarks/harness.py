"""How it is measured: all libraries in one process, taking turns, medians of wall-clock time."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from benchmarks.cases import Case, Run

MODULES = {"adjoint": "adjoint", "PyTorch": "torch", "torch.compile": "torch", "autograd": "autograd"}
MODULES |= {"JAX jit": "jax", "JAX": "jax"}
SLOW = 0.5  # seconds: what takes longer gets fewer turns
TURN = 0.01  # seconds a turn lasts at least, so that caches are warm for most of its runs
REST = 0.02  # seconds between turns: threads of PyTorch's look for work for up to seven milliseconds after a call


def installed(library: str) -> bool:
    """Whether a library of the table is there."""
    return importlib.util.find_spec(MODULES[library]) is not None


def times(case: Case, tick: Callable[[str], Any]) -> tuple[dict[str, float], dict[str, float]]:
    """The median seconds of each library, measured in turns: A A B B C, B B C A A, C A A B B, ...

    Two medians: of all runs, and of the first runs of turns, which find another library's caches.
    """
    set_threads(case.threads)
    runs: dict[str, Run] = {}
    samples: dict[str, list[list[float]]] = {}
    count: dict[str, int] = {}
    for library, make in case.make.items():
        if installed(library):
            tick(f"{case.name}: {library}")
            run = make()
            run()  # compiles, where a library compiles
            first = _clock(run)
            runs[library], samples[library] = run, []
            count[library] = case.repeats if first < SLOW else 3
    gc.collect()
    gc.disable()
    try:
        for turn in range(case.repeats):
            order = list(runs)
            first = turn % len(order)  # nobody always follows the one that leaves cold caches behind
            for library in order[first:] + order[:first]:
                if turn < count[library]:
                    time.sleep(REST)
                    samples[library].append(_turn(runs[library]))
            if turn % 20 == 19:
                gc.collect()
    finally:
        gc.enable()
    return (
        {library: statistics.median(itertools.chain(*turns)) for library, turns in samples.items()},
        {library: statistics.median([turn[0] for turn in turns]) for library, turns in samples.items()},
    )


def _turn(run: Run) -> list[float]:
    """The seconds of each run in a turn, the cold first one included."""
    seconds = [_clock(run)]
    while sum(seconds) < TURN:
        seconds.append(_clock(run))
    return seconds


def _clock(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def set_threads(threads: int) -> None:
    """Threads of ours, of PyTorch and of NumPy's BLAS; JAX uses what the process has."""
    from threadpoolctl import threadpool_limits

    import adjoint as ad

    threadpool_limits(threads)
    ad.set_num_threads(threads)
    if installed("PyTorch"):
        import torch

        torch.set_num_threads(threads)


def resident_bytes() -> dict[str, float]:
    """What a process grows by per link of a long chain, the graph's own objects included."""
    libraries = [library for library in ("adjoint", "PyTorch") if installed(library)]
    command = [sys.executable, "-m", "benchmarks.resident"]
    return {
        library: float(subprocess.run([*command, library], capture_output=True, text=True, check=True).stdout)
        for library in libraries
    }


def peak_bytes(make: dict[str, Callable[[], Run]]) -> dict[str, float]:
    """The most bytes that one run holds at a time beyond what is there before it.

    For us what Python and NumPy allocate (tracemalloc, with the graph's objects), for PyTorch what its
    allocator hands out (its profiler; the graph's C++ objects are not in it).
    """
    found = {}
    run = make["adjoint"]()
    run()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run()
    found["adjoint"] = float(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    if installed("PyTorch"):
        found["PyTorch"] = _torch_peak(make["PyTorch"]())
    return found


def _torch_peak(run: Run) -> float:
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        run()
    live = peak = 0
    events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return float(peak)
