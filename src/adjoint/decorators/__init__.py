"""Backends built on other backends: each adds one thing to what its inner backend computes."""
