"""Random keys: a seed and a counter, all state that a backend has. The same key gives the same numbers anywhere."""

from __future__ import annotations

import contextvars
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.scopes import Block, Variable, innermost

RandomKey = tuple[int, int]  # a seed and a counter

Hand = Callable[[Callable[[], RandomKey]], RandomKey]  # a key, from what draws a new one

_handed: Variable[Hand] = contextvars.ContextVar("adjoint_keys", default=None)


def replayed(known: list[RandomKey]) -> Block[Hand]:
    """In this block the known random keys are handed out again, then new ones, which become known."""
    outer, places = innermost(_handed), itertools.count()

    def hand(draw: Callable[[], RandomKey]) -> RandomKey:
        i = next(places)
        if i == len(known):
            known.append(draw() if outer is None else outer.value(draw))
        return known[i]

    return Block(_handed, hand)


class RandomKeys:
    """A sequence of keys, which a leaf has."""

    def __init__(self) -> None:
        self._seed: int | None = None
        self._counter: Iterator[int] = itertools.count()

    def seed(self, n: int) -> None:
        """Start the sequence of random keys anew; `n` is any non-negative integer."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise errors.ArgumentError(f"seed: expected a non-negative integer, received {errors.shown(n)}")
        self._seed, self._counter = int(n), itertools.count()

    def next_key(self) -> RandomKey:
        """The next key for a random primitive."""
        block = innermost(_handed)
        return self._draw() if block is None else block.value(self._draw)

    def _draw(self) -> RandomKey:
        if self._seed is None:
            self._seed = int.from_bytes(os.urandom(8), "little")
        return self._seed, next(self._counter)


class InnerKeys(RandomKeys):
    """Through a decorator: the keys of the leaf."""

    inner: Any

    def seed(self, n: int) -> None:
        self.inner.seed(n)

    def next_key(self) -> RandomKey:
        return self.inner.next_key()  # type: ignore[no-any-return]
