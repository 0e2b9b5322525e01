"""Small helpers that programs import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adjoint.autograd.missing import missing


def subvals(x: Sequence[Any], replacements: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The entries of x as a tuple, with others at some places."""
    entries = list(x)
    for i, value in replacements:
        entries[i] = value
    return tuple(entries)


def subval(x: Sequence[Any], i: int, value: Any) -> tuple[Any, ...]:
    """The entries of x as a tuple, with another at one place."""
    return subvals(x, [(i, value)])


def func(f: Any) -> Any:
    """f itself."""
    return f


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
