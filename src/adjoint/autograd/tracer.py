"""Boxes, and functions that they go through."""

from adjoint.autograd.boxes import Box, getval, isbox
from adjoint.autograd.primitives import notrace_primitive, primitive, register_notrace

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]
