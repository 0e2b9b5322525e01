"""Solvers with derivatives of their own: roots, fixed points and minima; linear systems; differential equations."""
