"""`scipy.special` for boxes: functions with derivatives in `adjoint.special`, all others raise of boxes."""

from __future__ import annotations

from typing import Any

import scipy.special

from adjoint import special
from adjoint.autograd.boxes import getval
from adjoint.autograd.primitives import primitive, traced

for _name in scipy.special.__all__:
    _value = getattr(scipy.special, _name)
    if callable(_value) and not isinstance(_value, type):
        _ours = getattr(special, _name) if _name in special.__all__ else None
        globals()[_name] = primitive(_value) if _ours is None else traced(_value, _ours)


def gammasgn(x: Any) -> Any:
    """The sign of the gamma function, which has no derivative but zero."""
    return scipy.special.gammasgn(getval(x))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
