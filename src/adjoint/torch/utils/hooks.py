"""`torch.utils.hooks`: what a hook's registration gives."""

from __future__ import annotations

from typing import Any

from adjoint.torch.graph import Handle as RemovableHandle
from adjoint.torch.missing import missing as _missing

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Any) -> Any:
    """The hook itself: hooks of tensors are never saved."""
    return f


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
