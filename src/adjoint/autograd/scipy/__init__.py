"""Parts of SciPy for functions that are differentiated: special, stats, linalg, signal and integrate.

They need SciPy: `pip install 'adjoint[scipy]'`.
"""

import importlib
from typing import Any

from adjoint import errors

try:
    importlib.import_module("scipy")
except ImportError as error:
    raise errors.MissingLibraryError("adjoint.autograd.scipy: needs SciPy; pip install 'adjoint[scipy]'") from error


def __getattr__(name: str) -> Any:
    if name not in ("integrate", "linalg", "signal", "special", "stats"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
