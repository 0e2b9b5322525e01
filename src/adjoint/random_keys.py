"""Random keys: a seed and a counter, all state that a backend has. The same key gives the same numbers anywhere."""

from __future__ import annotations

import contextvars
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.scopes import Block, Variable, innermost

RandomKey = tuple[int, int]  # a seed and a counter


class Replay:
    """What a function does once although it runs again: the random keys it drew, and how many calls it made."""

    def __init__(self) -> None:
        self.keys: list[RandomKey] = []
        self.calls = 0


class _Run:
    """A run of a function, which may have run before; a silent one makes no calls: others make or `made` them."""

    silent: bool
    made = False

    def __init__(self, known: Replay, outer: _Run | None) -> None:
        self.known, self.outer = known, outer
        self.silent = outer is not None and outer.silent
        self.made = outer is not None and outer.made
        self.place, self.calls = 0, itertools.count()

    def key(self, draw: Callable[[], RandomKey]) -> RandomKey:
        i, keys = self.place, self.known.keys
        if i == len(keys):
            keys.append(draw() if self.outer is None else self.outer.key(draw))
        self.place = i + 1  # not where drawing is refused
        return keys[i]

    def is_first_call(self) -> bool:
        if self.silent and not self.made:
            return False
        if next(self.calls) < self.known.calls:
            return False
        self.known.calls += 1
        first = self.outer is None or self.outer.is_first_call()  # which counts it, also where it is not made
        return first and not self.silent


class _Seeded(_Run):
    """A run with the keys of a seed. After a loop of a recorded program, which draws nobody knows how many, others."""

    def __init__(self, seed: int, outer: _Run | None) -> None:
        known: Any = Replay()
        known.keys = _Sequence(seed)
        super().__init__(known, outer)
        self.seed = seed
        self.rest: Any = None  # what the program draws them from

    def key(self, draw: Callable[[], RandomKey]) -> RandomKey:
        if self.rest is None and not hasattr(draw, "is_source"):
            return super().key(draw)
        leaf: Any = getattr(draw, "__self__", None)
        if self.rest is None:
            self.rest = leaf.rest_of_seed(self.seed, self.place)
        return leaf.next_of(self.rest)  # type: ignore[no-any-return]


class _Apart(_Run):
    """A run that is recorded: whatever runs around it, the recorded program draws keys of its own when it runs."""

    silent = False

    def __init__(self, leaf: RandomKeys) -> None:
        self.leaf = leaf

    def key(self, draw: Callable[[], RandomKey]) -> RandomKey:
        if getattr(draw, "__self__", self.leaf) is not self.leaf:
            raise errors.TrackedError(
                "a random number on another device than that of the arguments would be drawn once, when the function "
                "is recorded; leave device= out, or draw it before"
            )
        return draw()

    def is_first_call(self) -> bool:
        return True


class _Step(_Apart):
    """A run of a step of a loop that is recorded, which makes its calls where what is around it makes its own."""

    def __init__(self, leaf: RandomKeys, outer: _Run | None) -> None:
        super().__init__(leaf)
        self.outer = outer
        self.silent = outer is not None and outer.silent
        self.made = outer is not None and outer.made

    def is_first_call(self) -> bool:
        return self.outer is None or self.outer.is_first_call()


class _Instead(_Run):
    """A run that draws from no sequence: it has keys of its own, or none."""

    def __init__(self, own: Callable[[], RandomKey], outer: _Run | None) -> None:
        self.own, self.outer = own, outer
        self.silent = outer is not None and outer.silent
        self.made = outer is not None and outer.made

    def key(self, draw: Callable[[], RandomKey]) -> RandomKey:
        return self.own()

    def is_first_call(self) -> bool:
        return self.outer is None or self.outer.is_first_call()


class _Again(_Run):
    """A run of what another one stands for: it draws as what is around it does, and its calls are not made."""

    silent = True

    def __init__(self, outer: _Run | None, made: bool) -> None:
        self.outer, self.made = outer, made

    def key(self, draw: Callable[[], RandomKey]) -> RandomKey:
        return draw() if self.outer is None else self.outer.key(draw)

    def is_first_call(self) -> bool:
        return False


_run: Variable[_Run] = contextvars.ContextVar("adjoint_replay", default=None)


def replayed(known: Replay) -> Block[_Run]:
    """In this block the known random keys are handed out again, then new ones, which become known."""
    outer = innermost(_run)
    return Block(_run, _Run(known, None if outer is None else outer.value))


def recorded_on(leaf: RandomKeys) -> Block[_Run]:
    """In this block keys are drawn by this leaf alone, and by no run around it."""
    return Block(_run, _Apart(leaf))


def step_recorded_on(leaf: RandomKeys) -> Block[_Run]:
    """In this block, which is a step of a loop, keys are drawn by this leaf alone, and by no run around it."""
    outer = innermost(_run)
    return Block(_run, _Step(leaf, None if outer is None else outer.value))


def keys_from(own: Callable[[], RandomKey]) -> Block[_Run]:
    """In this block, of whose results nothing but types is read, or which must not draw, no sequence moves."""
    outer = innermost(_run)
    return Block(_run, _Instead(own, None if outer is None else outer.value))


def any_key() -> RandomKey:
    """One for numbers that nobody reads."""
    return 0, 0


def without_calls(made: bool = False) -> Block[_Run]:
    """In this block nothing is called for its effects: what runs does so for derivatives, or for shapes.

    With `made`, other runs have made its calls: they are not made later either, where a part of it runs again.
    """
    outer = innermost(_run)
    return Block(_run, _Again(None if outer is None else outer.value, made))


class _Sequence(Sequence[RandomKey]):
    """The keys of a seed, which has no end of them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __getitem__(self, i: Any) -> Any:
        return self.seed, i

    def __len__(self) -> int:
        return sys.maxsize


def seeded(seed: int) -> Block[_Run]:
    """In this block random keys are those of a seed, from the first on; other sequences do not move."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise errors.ArgumentError(f"key: a non-negative integer, received {errors.shown(seed)}")
    outer = innermost(_run)
    return Block(_run, _Seeded(int(seed), None if outer is None else outer.value))


def is_first_call() -> bool:
    """For what has effects, such as printing: whether this call was not made by an earlier run of the same function."""
    run = innermost(_run)
    return run is None or run.value.is_first_call()


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
        return self._of_runs(self._draw)

    def _of_runs(self, draw: Callable[[], RandomKey]) -> RandomKey:
        """What this draws, or has drawn in an earlier run of what runs."""
        run = innermost(_run)
        return draw() if run is None else run.value.key(draw)

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
