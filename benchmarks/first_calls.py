"""`python -m benchmarks.first_calls`: what the first call of a compiled function takes, in new processes.

Cold, and with the files of an earlier process. Processor time counts, beyond the imports of NumPy, llvmlite and the
functions of networks; Python reads bytecode that is there, as after an installation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.compiled import PROGRAMS, adjoint, whole

STEPS = "MLP 64-32-10, SGD step", "MLP 784-256-256-10, SGD step"
CHAIN = "3,000 operations, a third of them sin"
PROCESSES = 5


def _chain() -> tuple[Callable[..., Any], list[Any]]:
    import numpy as np

    import adjoint as ad

    def f(x: Any) -> Any:
        for _ in range(1000):
            x = ad.sin(x) * 1.01 + 0.5
        return x

    return f, [np.linspace(0.0, 1.0, 1000)]


def _seconds(name: str) -> float:
    """Of the first call in this process."""
    import llvmlite.binding  # noqa: F401

    import adjoint as ad

    if name == CHAIN:
        f, values = _chain()
    else:
        (program,) = [p for p in PROGRAMS if p.name == name]
        f, values = whole(program, program.f(adjoint()), ad.value_and_grad), [ad.tensor(x) for x in program.values]
    compiled = ad.compile(f)
    start = time.process_time()
    compiled(*values)
    return time.process_time() - start


def _in_new_process(name: str, cache: str, bytecode: str) -> float:
    how = {**os.environ, "ADJOINT_CACHE": cache, "PYTHONPYCACHEPREFIX": bytecode, "OMP_NUM_THREADS": "1"}
    how.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-m", "benchmarks.first_calls", name]
    return float(subprocess.run(words, check=True, stdout=subprocess.PIPE, env=how).stdout)


def main() -> int:
    if sys.argv[1:]:
        print(_seconds(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for name in (*STEPS, CHAIN):
            cold, known = [], []
            for i in range(PROCESSES + 1):  # the first of them writes bytecode
                cache = os.path.join(folder, f"{name} {i}")
                cold.append(_in_new_process(name, cache, folder))
                known.append(_in_new_process(name, cache, folder))
            print(f"{name}: {min(cold[1:]):.3f} s cold, {min(known[1:]):.3f} s from files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
