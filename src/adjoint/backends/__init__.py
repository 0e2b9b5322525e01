"""Leaf backends: the ones that compute."""
