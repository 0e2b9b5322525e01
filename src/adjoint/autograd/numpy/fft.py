"""`numpy.fft` for boxes."""

from typing import Any

import numpy as np

from adjoint.autograd.numpy.numpy_wrapper import wrap_namespace

wrap_namespace({k: v for k, v in vars(np.fft).items() if not k.startswith("_")}, globals())


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, which numpy.fft does not have either")
