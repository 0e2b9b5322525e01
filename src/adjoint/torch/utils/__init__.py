"""`torch.utils`: data, and recomputation in backward."""

from __future__ import annotations

import importlib as _importlib
from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.utils import checkpoint as checkpoint

_ROOMS = {"data"}  # imported when they are first asked for


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    raise _missing(name, "adjoint.torch.utils")
