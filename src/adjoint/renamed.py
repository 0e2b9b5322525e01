"""Public names of earlier versions, and what to write now; CHANGELOG.md has the same table."""

import sys
from collections.abc import Callable

from adjoint.counterparts import counterpart

RENAMED = {
    "adjoint": {"inner": "numpy.inner(x, y), which takes tensors"},
    "adjoint.errors": {"UnsupportedPrimitive": "UnsupportedPrimitiveError"},
    "adjoint.testing": {"trace_origins": "source_locations"},
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    now = RENAMED.get(module, {}).get(name)
    hint = f": it is now {now}" if now else counterpart(module, name)
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[module])


def refusing(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module."""

    def refuse(name: str) -> object:
        raise missing(module, name)

    return refuse
