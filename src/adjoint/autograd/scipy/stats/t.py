"""`scipy.stats.t` for boxes."""

from typing import Any

from adjoint.autograd.scipy.stats.by_name import functions

globals().update(functions("t"))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
