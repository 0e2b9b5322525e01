"""Spaces of arrays, where HIPS autograd has them."""

from adjoint.autograd.core import ArrayVSpace, ComplexArrayVSpace, VSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace", "VSpace"]
