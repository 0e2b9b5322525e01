"""Leaf backends: the ones that compute."""

import importlib
import sys
from typing import Any

from adjoint import errors
from adjoint.backend import Implementation, LeafBackend
from adjoint.dtypes import DType, no_bfloat16
from adjoint.primitives import Primitive
from adjoint.rules import RECORDS


def composed(leaf: LeafBackend, primitive: Primitive) -> Implementation:
    """An implementation that a user gave, or one from the primitive's definition in other primitives.

    Raises UnsupportedPrimitiveError where there is none.
    """
    if (given := leaf.given(primitive.implementations)) is not None:
        return given
    definition = getattr(primitive.record or RECORDS.get(primitive.name), "definition", None)
    if definition is None:
        raise errors.UnsupportedPrimitiveError(f"{leaf.name} cannot run the primitive {primitive.name!r}")
    return lambda *operands, **parameters: definition(leaf, *operands, **parameters)


def without_bfloat16(leaf: LeafBackend, primitive: Primitive, run: Implementation) -> Implementation:
    """What runs a primitive on a leaf without bfloat16: raises DtypeError where that is the dtype of the result."""
    if "dtype" not in primitive.parameters:
        return run

    def checked(*operands: Any, dtype: DType, **parameters: Any) -> Any:
        if dtype.kind == "V":
            raise no_bfloat16(leaf.name)
        return run(*operands, dtype=dtype, **parameters)

    return checked


def needed(module: str, extra: str) -> Any:
    """A module of an optional library. Raises DeviceError that says what to install."""
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise errors.DeviceError(f"{error}; install it, as with pip install 'adjoint[{extra}]'") from error
    if imported(module) is None:
        raise errors.DeviceError(
            f"{module} is {found.__name__} in this program, which python -m {found.__name__} runs; start it with "
            f"python where {module} itself is wanted"
        )
    return found


def imported(module: str) -> Any:
    """A module of an optional library if it was imported, and is no face of ours in its place; else None."""
    found: Any = sys.modules.get(module)
    return None if found is None or found.__name__.startswith("adjoint.") else found
