"""How much memory a process grows by, the graph's own objects included: `python -m benchmarks.resident PyTorch`.

Allocators that count bytes see arrays only; of a graph of small arrays most is nodes, in Python for us and
in C++ for PyTorch. So a long chain is run in a fresh process, and the growth of its peak resident size
divided by its links. Linux only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

LINKS = 200_000


def _peak() -> int:
    # not getrusage: what that reports, a process inherits from the one that started it
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main(library: str) -> None:
    """Print the bytes per link of the chain of the table, forward and backward."""
    x0, w0 = np.full(16, 0.9, np.float32), np.full(16, 0.99, np.float32)
    if library == "adjoint":
        import adjoint as ad

        x, w = ad.tensor(x0).require_grad(), ad.tensor(w0).require_grad()
    else:
        import torch

        x, w = torch.tensor(x0, requires_grad=True), torch.tensor(w0, requires_grad=True)
    _run(x, w, 1000)  # what is allocated once
    before = _peak()
    _run(x, w, LINKS)
    print((_peak() - before) / LINKS)


def _run(x: object, w: object, links: int) -> None:
    y = x
    for _ in range(links // 4):
        y = y * w
        y = y + w
        y = y * w
        y = y - w
    y.sum().backward()


if __name__ == "__main__":
    main(sys.argv[1])
