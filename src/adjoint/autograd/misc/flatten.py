"""Nested containers of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.autograd.builtins import type
from adjoint.autograd.core import make_vjp


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All elements of nested lists, tuples and dictionaries as a vector, and the function that makes the same of one.

    Dictionaries are in the order of their sorted keys.

    >>> import numpy as np
    >>> vector, unflatten = flatten({"b": np.array([1.0, 2.0]), "a": 3.0})
    >>> vector
    array([3., 1., 2.])
    >>> unflatten(vector * 2)
    {'b': array([2., 4.]), 'a': np.float64(6.0)}
    """
    unflatten, vector = make_vjp(_flat, value)
    return vector, unflatten


def _flat(value: Any) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        return _concatenated([_flat(v) for v in value])
    if kind is dict:
        return _concatenated([_flat(value[k]) for k in sorted(value)])
    return np.ravel(value)


def _concatenated(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.array([])


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """A function of containers as one of vectors; the function from vectors to containers; the example as a vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector


__all__ = ["flatten", "flatten_func"]
