"""Modules: what they are, and the fields that they are made of."""
