"""`ArrayBox`, where HIPS autograd has it."""

from adjoint.autograd.boxes import ArrayBox, Box

__all__ = ["ArrayBox", "Box"]
