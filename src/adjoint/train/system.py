"""What a training runs on: memory, and the versions of what it uses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from adjoint.backends import imported
from adjoint.constants import __version__

_LIBRARIES = "numpy optree scipy torch jax cupy dask".split()


def memory() -> float:
    """Bytes of this process that are in memory now; the most there ever were where the system says no more."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most * (1 if sys.platform == "darwin" else 1024))


def gpu_memory() -> float | None:
    """Bytes that PyTorch's and CuPy's arrays take on the present GPU; None where neither is in use there."""
    torch, cupy = imported("torch"), imported("cupy")
    found: list[Any] = []
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        found.append(torch.cuda.memory_allocated())
    if cupy is not None:
        found.append(cupy.get_default_memory_pool().used_bytes())
    return float(sum(found)) if found else None


def environment() -> dict[str, str]:
    """Versions, system and processors, as a report shows them."""
    import importlib.metadata  # with all that they bring, which no training needs before its end
    import platform

    found = {"adjoint": __version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        if imported(name) is not None:
            found[name] = importlib.metadata.version("cupy-cuda12x" if name == "cupy" else name)
    found["system"] = f"{platform.system()} {platform.release()} ({platform.machine()})"
    found["processors"] = str(os.cpu_count())
    torch = imported("torch")
    if torch is not None and torch.cuda.is_available():
        found["GPU"] = torch.cuda.get_device_name()
    return found
