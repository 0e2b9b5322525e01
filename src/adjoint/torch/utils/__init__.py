"""`torch.utils`."""

from __future__ import annotations

import importlib
from typing import Any

from adjoint.torch.missing import missing as _missing

_MODULES = frozenset({"checkpoint"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"adjoint.torch.utils.{name}")
    raise _missing(name, "adjoint.torch.utils")
