"""Public names of earlier versions, and what to write now; CHANGELOG.md has the same table."""

import sys
from collections.abc import Callable

from adjoint.counterparts import counterpart, family

RENAMED = {
    "adjoint": {"inner": "numpy.inner(x, y), which takes tensors"},
    "adjoint.errors": {"UnsupportedPrimitive": "UnsupportedPrimitiveError"},
    "adjoint.testing": {"trace_origins": "source_locations"},
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    now = RENAMED.get(module, {}).get(name)
    hint = f": it is now {now}" if now else ""
    asked_for = "importlib" not in sys._getframe(2).f_code.co_filename  # which asks before it imports a module
    if not hint and asked_for and not name.startswith("_"):
        hint = _hint(module, name) or _changing(module, name) or _at_the_top(module, name) or family(name) or _LISTED
    cut = name if len(name) <= 200 else f"{name[:120]}...{name[-77:]}"  # not by `errors.shown`: errors imports this
    return AttributeError(f"module {module!r} has no attribute {cut!r}{hint}", name=name, obj=sys.modules[module])


def _hint(module: str, name: str) -> str:
    return counterpart(module, name) or _elsewhere(name)


def _changing(module: str, name: str) -> str:
    """What there is for PyTorch's functions that change a tensor, or copy it: those of the name without the ending."""
    plain = name.removesuffix("_copy").rstrip("_")
    if plain in ("", name):
        return ""
    here = plain in dir(sys.modules[module])
    hint = f": use {module.replace('adjoint', 'ad', 1)}.{plain}" if here else _hint(module, plain)
    return hint and f"{hint}; functions change no tensor, which is a value"


_LISTED = "; docs/functions.md lists what there is"
_ROOMS = "linalg fft special random stats nn optim scipy train data tree"  # the first that has a name is meant


def _elsewhere(name: str) -> str:
    """Which module has the name, as the end of a message."""
    ad = sys.modules["adjoint"]
    if name in ad.__all__:
        return f": use ad.{name}"
    for room in _ROOMS.split():
        if name in getattr(ad, room).__all__:
            return f": use ad.{room}.{name}"
    if hasattr(ad.Tensor, name):
        return f": tensors have it, x.{name}{'()' if callable(getattr(ad.Tensor, name)) else ''}"
    return ""


def _at_the_top(module: str, name: str) -> str:
    """What stands for a method of other libraries' arrays, or that NumPy has the function, as `ad.errstate`."""
    if module != "adjoint":
        return ""
    numpys = name in getattr(sys.modules.get("numpy"), "__all__", ())
    return counterpart("Tensor", name) or (f": use NumPy's, np.{name}" if numpys else "")


def refusing(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module."""

    def refuse(name: str) -> object:
        raise missing(module, name)

    return refuse
