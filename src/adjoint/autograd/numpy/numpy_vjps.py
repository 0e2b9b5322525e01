"""What rules of users need: sums over axes that were broadcast, and real parts for real arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.autograd.numpy.numpy_wrapper import metadata


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """x summed over the axes that a target of this `metadata` was broadcast along; its real part for a real target."""
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pullback whose result is summed to the shape of the argument."""
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """x as real as the target."""
    wanted, found = np.iscomplexobj(target), np.iscomplexobj(x)
    if found and not wanted:
        return np.real(x)
    return x + 0j if wanted and not found else x


def replace_zero(x: Any, value: Any) -> Any:
    """x with another value where it is zero."""
    return np.where(x, x, value)


__all__ = ["match_complex", "replace_zero", "unbroadcast", "unbroadcast_f"]
