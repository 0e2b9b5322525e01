"""Random numbers on NumPy, for all leaves: the same key gives the same numbers on each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.dtypes import finfo
from adjoint.primitives import DType


def _generator(key: tuple[int, int]) -> np.random.Generator:
    """Philox is counter-based: the same key gives the same numbers in any process.

    J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    seed, counter = key
    return np.random.Generator(np.random.Philox(key=seed % 2**128, counter=[0, 0, counter, seed >> 128 & 2**64 - 1]))


def uniform(*, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    draw = np.asarray(_generator(key).random(shape, dtype=np.float32 if dtype.itemsize <= 4 else np.float64))
    if dtype.itemsize < 4:  # cut to the digits that half precision has: rounding would make ones
        digits = 2.0 / float(finfo(dtype).eps)
        draw = np.asarray(np.floor(np.multiply(draw, digits)) / digits)
    return draw.astype(dtype, copy=False)


def normal(*, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    precise = np.float32 if dtype.itemsize <= 4 else np.float64
    return np.asarray(_generator(key).standard_normal(shape, dtype=precise)).astype(dtype, copy=False)


def integers(*, key: tuple[int, int], low: int, high: int, shape: tuple[int, ...], dtype: DType) -> Array:
    return np.asarray(_generator(key).integers(low, high, size=shape, dtype=dtype.type))


def permutation(*, key: tuple[int, int], size: int, dtype: DType) -> Array:
    return _generator(key).permutation(size).astype(dtype, copy=False)


def loggamma(a: Array, *, key: tuple[int, int], shape: tuple[int, ...]) -> Array:
    """Logarithms of gamma distributed numbers, which themselves would be zero for small a.

    A number of the shape a + 1 times a power 1 / a of a uniform one has the shape a. nan where a is not positive.
    """
    generator = _generator(key)
    valid = np.greater(a, 0) & np.isfinite(a)
    precise: Any = np.where(valid, a, 1.0).astype(np.float64)
    if precise.ndim and (precise == precise.flat[:1]).all() and precise.size:
        precise = precise.flat[0]
    draw = np.log(generator.standard_gamma(precise + 1.0, size=shape))
    with np.errstate(over="ignore"):
        draw -= generator.standard_exponential(shape) / precise
    return np.asarray(draw if valid.all() else np.where(valid, draw, np.nan)).astype(a.dtype)


def poisson(rate: Array, *, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    return np.asarray(_generator(key).poisson(rate, size=shape)).astype(dtype, copy=False)


def binomial(n: Array, p: Array, *, key: tuple[int, int], shape: tuple[int, ...], dtype: DType) -> Array:
    return np.asarray(_generator(key).binomial(np.asarray(n).astype(np.int64), p, size=shape)).astype(dtype, copy=False)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "random_uniform": uniform,
    "random_normal": normal,
    "random_integers": integers,
    "random_permutation": permutation,
    "random_loggamma": loggamma,
    "random_poisson": poisson,
    "random_binomial": binomial,
}
