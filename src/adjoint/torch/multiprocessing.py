"""`torch.multiprocessing`: Python's own module. Tensors go to other processes as copies."""

from __future__ import annotations

import multiprocessing as _python
from typing import Any

from adjoint.torch.missing import missing as _missing

__path__: list[str] = []
_strategy = ["file_descriptor"]


def get_sharing_strategy() -> str:
    """What was set; no memory is shared."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """What `get_sharing_strategy` says."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"set_sharing_strategy: one of {get_all_sharing_strategies()}, received {new_strategy!r}")
    _strategy[0] = new_strategy


def get_all_sharing_strategies() -> set[str]:
    """The names that may be set."""
    return {"file_descriptor", "file_system"}


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False) -> Any:
    """Start processes that call `fn(i, *args)`; with `join` wait for them. Raises RuntimeError where one fails."""
    context = _python.get_context("spawn")
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    for process in processes:
        process.join()
    for i, process in enumerate(processes):
        if process.exitcode:
            raise RuntimeError(f"process {i} terminated with exit code {process.exitcode}")
    return None


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and hasattr(_python, name):
        return getattr(_python, name)
    raise _missing(name, __name__)
