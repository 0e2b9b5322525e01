"""`numpy.random`, whose numbers are constants. A parameter that is followed raises: ad.random has derivatives by it."""

from typing import Any

import numpy as np

from adjoint.autograd.primitives import primitive

for _name in np.random.__all__:
    _value = getattr(np.random, _name)
    globals()[_name] = primitive(_value) if callable(_value) and not isinstance(_value, type) else _value


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, which numpy.random does not have either")
