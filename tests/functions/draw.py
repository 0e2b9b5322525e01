"""Random shapes, values and layouts of memory for calls of functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

Array = Any
Shape = tuple[int, ...]


class Draw:
    """Shapes, choices and values for one call."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.rng = np.random.default_rng(data.draw(st.integers(0, 10_000), label="seed"))

    def pick(self, *options: Any) -> Any:
        return self._data.draw(st.sampled_from(options))

    def shape(self, least: int = 0, most: int = 3, sizes: tuple[int, ...] = (3, 1, 2, 0)) -> Shape:
        ndim = self.pick(*range(least, most + 1))
        return tuple(self.pick(*sizes) for _ in range(ndim))

    def shapes(self, count: int) -> list[Shape]:
        """Shapes that broadcast together: axes of size one, and missing leading ones."""
        whole = self.shape()
        found = []
        for _ in range(count):
            part = tuple(self.pick(n, 1) for n in whole)
            found.append(part[self.pick(*range(len(part) + 1)) :])
        return found

    def axis(self, shape: Shape) -> int:
        return self.pick(*range(len(shape)), -1)

    def axes(self, shape: Shape) -> Any:
        """An `axis` argument of a reduction: None, one axis, or several."""
        n = len(shape)
        several = [pair for r in range(n + 1) for pair in itertools.combinations(range(n), r)]
        return self.pick(None, *range(-n, n), *several)

    # --- values: the layout of memory is drawn too ---

    def lay(self, x: Array) -> Array:
        x = np.asarray(x)
        match self.pick("C", "F", "strided", "backwards"):
            case "F":
                return np.array(x, order="F")
            case "strided" if x.ndim:
                return np.repeat(x, 2, axis=-1)[..., ::2]
            case "backwards" if x.ndim:
                return np.flip(np.array(np.flip(x)))
        return x

    def between(self, shape: Shape, low: float, high: float) -> Array:
        return self.lay(self.rng.uniform(low, high, shape))

    def real(self, shape: Shape) -> Array:
        """Sizes from 0.3 to 2, of both signs."""
        return self.lay(self.rng.uniform(0.3, 2.0, shape) * self.rng.choice([-1.0, 1.0], shape))

    def positive(self, shape: Shape) -> Array:
        return self.between(shape, 0.3, 2.5)

    def unit(self, shape: Shape) -> Array:
        return self.lay(self.rng.uniform(0.1, 0.8, shape) * self.rng.choice([-1.0, 1.0], shape))

    def complex(self, shape: Shape) -> Array:
        return self.lay(self.real(shape) + 1j * self.real(shape))

    def either(self, shape: Shape) -> Array:
        """Real or complex."""
        return self.pick(self.real, self.complex)(shape)

    def distinct(self, shape: Shape) -> Array:
        """At least 0.2 apart, none near zero."""
        count = math.prod(shape)
        values = 0.3 * (self.rng.permutation(count) - count // 2) + 0.1 + self.rng.uniform(-0.05, 0.05, count)
        return self.lay(values.reshape(shape))

    def grid(self, shape: Shape, offset: float) -> Array:
        """Multiples of 0.6 plus an offset: arrays of offsets 0.1 and 0.4 do not tie."""
        return self.lay(0.6 * self.rng.integers(-3, 3, shape) + offset)

    def mask(self, shape: Shape) -> Array:
        return self.rng.integers(0, 2, shape) == 1

    def indices(self, shape: Shape, size: int) -> Array:
        return self.rng.integers(-size, size, shape)

    def square(self, kind: str = "") -> Array:
        """Stacks of square matrices of a good condition number."""
        n = self.pick(2, 1, 3, 0)
        shape = (*self.pick((), (2,), (1, 2), (0,)), n, n)
        x = (self.complex if kind == "complex" else self.real if kind == "real" else self.either)(shape)
        return self.lay(0.5 * x + 2.5 * np.eye(n))


Call = tuple[Any, ...]  # the function, then its arguments
Maker = Callable[[Draw], Call]
