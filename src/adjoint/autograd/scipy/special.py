"""`scipy.special` for boxes: functions with derivatives in `adjoint.special`, all others raise of boxes."""

from __future__ import annotations

from typing import Any

import scipy.special

from adjoint import special
from adjoint.autograd.primitives import primitive, traced
from adjoint.conventions import gamma_sign
from adjoint.numpy_protocols import of_number


def _along(function: Any) -> Any:
    """A function along axes, to which 0 and -1 are axes of a number too, as to SciPy's."""

    def run(a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
        a, of_axis = of_number("logsumexp", a, {"axis": axis})
        return function(a, of_axis["axis"], *args, **options)

    return run


_ALONG = {name: _along(getattr(special, name)) for name in ("log_softmax", "logsumexp", "softmax")}

for _name in scipy.special.__all__:
    _value = getattr(scipy.special, _name)
    if callable(_value) and not isinstance(_value, type):
        _ours = _ALONG.get(_name, getattr(special, _name) if _name in special.__all__ else None)
        globals()[_name] = primitive(_value) if _ours is None else traced(_value, _ours)


gammasgn = traced(scipy.special.gammasgn, gamma_sign)  # whose derivative is zero


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
