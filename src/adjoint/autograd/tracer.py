"""Boxes, and functions that they go through."""

from typing import Any

from adjoint.autograd.boxes import Box, getval, isbox
from adjoint.autograd.missing import missing
from adjoint.autograd.primitives import notrace_primitive, primitive, register_notrace

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
