"""`torch.utils`."""

from __future__ import annotations

from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.utils import checkpoint as checkpoint


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch.utils")
