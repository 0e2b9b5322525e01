"""The leaf backend over NumPy: every primitive as a NumPy call, fused where that saves a pass.

Arrays are `numpy.ndarray`s, or NumPy scalars where NumPy returns those.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation, LeafBackend, computed_name
from adjoint.backends import composed, without_bfloat16
from adjoint.backends.numpy import (
    attention,
    contraction,
    convolution,
    creation,
    elementwise,
    fft,
    indexing,
    linalg,
    masks,
    normalization,
    pooling,
    random,
    recurrence,
    reduction,
    scatter,
    shape,
    sorting,
    special,
)
from adjoint.dtypes import no_bfloat16
from adjoint.primitives import DType, Primitive

# An allocation that is never touched, freed at once. From then on glibc keeps up to twice as much freed memory for the
# next arrays (mallopt(3), M_MMAP_THRESHOLD): else it hands large ones back, and a pass spends half of its time on pages
# that the system makes anew.
np.empty(31 << 20, np.uint8)

_TOPICS = (
    convolution,
    scatter,
    elementwise,
    reduction,
    shape,
    indexing,
    sorting,
    contraction,
    linalg,
    creation,
    random,
    special,
    fft,
    pooling,
    attention,
    recurrence,
    normalization,
    masks,
)
IMPLEMENTATIONS: dict[str, Implementation] = {
    name: run for topic in _TOPICS for name, run in topic.IMPLEMENTATIONS.items()
}
_INTO = {**elementwise.INTO, **scatter.INTO}
_FAST = "add subtract multiply divide negative square sqrt exp log sin cos tan tanh".split()  # with their rules
_FAST += "less less_equal greater greater_equal equal not_equal".split()


class NumPy(LeafBackend):
    """NumPy on the CPU.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.NumPy())
    Tensor([1., 2.], dtype=float32, device=numpy)
    """

    number_type = np.float64

    @computed_name
    def name(self) -> str:
        return "numpy"  # that of its subclasses too

    def implement(self, primitive: Primitive) -> Implementation:
        try:
            return without_bfloat16(self, primitive, IMPLEMENTATIONS[primitive.name])
        except KeyError:
            run = composed(self, primitive)
            return linalg.by_scipy(primitive.name, run) if primitive.name in linalg.BY_SCIPY else run

    def numbers(self, primitive: Primitive) -> LeafBackend | None:
        return Numbers() if primitive.name in _FAST else None

    def implement_into(self, primitive: Primitive) -> Implementation:
        return _INTO.get(primitive.name) or super().implement_into(primitive)

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def computes_in(self, dtype: DType) -> bool:
        return dtype.kind != "V"

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        if values.dtype.kind == "V":
            raise no_bfloat16(self.name)
        return values.copy() if copy else values

    as_scalar = staticmethod(functools.lru_cache(4096)(lambda value, dtype: np.array(value, dtype)))

    def copied(self, array: Array) -> Array:
        return np.array(array)

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array)


class Numbers(NumPy):
    """NumPy, as primitives and rules run on single numbers of double precision: by Python's operators."""

    def implement(self, primitive: Primitive) -> Implementation:
        return elementwise.NUMBERS.get(primitive.name) or super().implement(primitive)
