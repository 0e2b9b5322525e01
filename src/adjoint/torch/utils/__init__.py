"""`torch.utils`: data, and recomputation in backward."""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import room as _room
from adjoint.torch.utils import checkpoint as checkpoint

_ROOMS = {"data", "hooks"}  # imported when they are first asked for
dlpack: Any = _room(f"{__name__}.dlpack", ["from_dlpack", "to_dlpack"], _sys.modules["adjoint.torch"])
deterministic: Any = _room(f"{__name__}.deterministic", {"fill_uninitialized_memory": True})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    raise _missing(name, "adjoint.torch.utils")
