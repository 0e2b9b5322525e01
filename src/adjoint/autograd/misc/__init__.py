"""Nested containers as vectors, and optimizers of those."""

from adjoint.autograd.misc.flatten import flatten
from adjoint.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
