"""NumPy's namespace for functions that are differentiated: `import adjoint.autograd.numpy as np`.

Functions of arrays are NumPy's own. Those of boxes have derivatives where `np.<name>` of a tensor has them, and raise
where it raises.
"""

from typing import Any

import numpy as _np

from adjoint.autograd.numpy import (  # noqa: F401
    fft,
    linalg,
    numpy_boxes,
    numpy_vjps,
    numpy_vspaces,
    numpy_wrapper,
    random,
)

_own = {"fft", "linalg", "random"}
for _name in [name for name in dir(_np) if not name.startswith("_") and name not in _own]:
    globals()[_name] = numpy_wrapper.namespace.get(_name, getattr(_np, _name))
make_diagonal = numpy_wrapper.make_diagonal
__version__ = _np.__version__
__all__ = [name for name in dir(_np) if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, which NumPy does not have either")
