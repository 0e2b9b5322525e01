"""Leaf backends: the ones that compute."""

import importlib
from typing import Any

from adjoint import errors
from adjoint.backend import Implementation, LeafBackend
from adjoint.primitives import Primitive
from adjoint.rules import RECORDS


def composed(leaf: LeafBackend, primitive: Primitive) -> Implementation:
    """An implementation that a user gave, or one from the primitive's definition in other primitives.

    Raises UnsupportedPrimitiveError where there is none.
    """
    if (given := leaf.given(primitive.implementations)) is not None:
        return given
    definition = getattr(RECORDS.get(primitive.name), "definition", None)
    if definition is None:
        raise errors.UnsupportedPrimitiveError(f"{leaf.name} cannot run the primitive {primitive.name!r}")
    return lambda *operands, **parameters: definition(leaf, *operands, **parameters)


def needed(module: str, extra: str) -> Any:
    """A module of an optional library. Raises DeviceError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise errors.DeviceError(f"{error}; install it, as with pip install 'adjoint[{extra}]'") from error
