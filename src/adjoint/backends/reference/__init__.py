"""The reference leaf: every primitive by its definition, over Python numbers, slowly.

It says what a primitive means; the other leaves are tested against it. With mpmath underneath
(`Reference(digits=50)`) numerical derivatives have no rounding noise worth the name.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Implementation, LeafBackend
from adjoint.backends import composed, without_bfloat16
from adjoint.backends.reference import (
    contraction,
    convolution,
    creation,
    elementwise,
    fft,
    indexing,
    linalg,
    normalization,
    reduction,
    scatter,
    shape,
    sorting,
)
from adjoint.backends.reference.places import Values, broadcast
from adjoint.backends.reference.scalars import Number, Scalars, rounded
from adjoint.primitives import DType, Primitive, Shape, Spec, result_spec

_TOPICS = (
    normalization,
    convolution,
    indexing,
    sorting,
    scatter,
    elementwise,
    reduction,
    shape,
    contraction,
    linalg,
    fft,
    creation,
)
_IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    name: run for topic in _TOPICS for name, run in topic.IMPLEMENTATIONS.items()
}


_MOST_DIGITS = 100_000  # of pi alone are a tenth of a second


class Reference(LeafBackend):
    """Pure Python on the CPU, with `digits` decimal digits (through mpmath) or Python's own floats.

    Floating dtypes are nominal: results are not rounded to them until they leave for NumPy.

    Raises DeviceError where `digits` are given and mpmath is not installed.

    >>> Reference(digits=30)
    reference[digits=30]
    """

    def __init__(self, digits: int | None = None) -> None:
        super().__init__()
        if digits is not None and (isinstance(digits, bool) or not isinstance(digits, int) or digits < 1):
            raise errors.DeviceError(
                f"Reference: digits is a positive integer or None, received {errors.shown(digits)}"
            )
        if digits is not None and digits > _MOST_DIGITS:
            raise errors.DeviceError(f"Reference: digits is at most {_MOST_DIGITS}, received {errors.shown(digits)}")
        self.digits: int | None = digits
        self.many: bool = digits is not None
        self.scalars: Scalars = Scalars(digits)

    def configuration(self) -> tuple[Any, ...]:
        return (self.digits,)

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.name in self.scalars.functions:
            return functools.partial(self._elementwise, primitive, self.scalars.functions[primitive.name])
        if primitive.name not in _IMPLEMENTATIONS:
            return composed(self, primitive)
        run = functools.partial(self._run, primitive, _IMPLEMENTATIONS[primitive.name])
        return without_bfloat16(self, primitive, run)

    def _elementwise(
        self, primitive: Primitive, function: Callable[..., Number], *operands: Any, **parameters: Any
    ) -> Values:
        arrays = self._arrays(operands)
        shape, dtype = result_spec(primitive, [Spec(a.shape, a.dtype) for a in arrays], parameters)
        columns = [broadcast(a, shape).values for a in arrays]
        if parameters:
            function = functools.partial(function, **parameters)
        return self.make(shape, list(itertools.starmap(function, zip(*columns, strict=True))), dtype)

    def _run(self, primitive: Primitive, function: Callable[..., Any], *operands: Any, **parameters: Any) -> Any:
        """Run a definition, which gives flat lists, and put them in the shapes that the table promises."""
        arrays = self._arrays(operands)
        if primitive.dynamic:
            return function(self, *arrays, **parameters)
        specs = result_spec(primitive, [Spec(a.shape, a.dtype) for a in arrays], parameters)
        values = function(self, *arrays, **parameters)
        if primitive.results == 1:
            return self.make(specs.shape, values, specs.dtype)
        return tuple([self.make(s.shape, v, s.dtype) for s, v in zip(specs, values, strict=True)])

    def _arrays(self, operands: tuple[Any, ...]) -> list[Values]:
        """Operands as arrays; Python scalars take the dtype of the last array, which is no condition."""
        if all(isinstance(x, Values) for x in operands):
            return list(operands)
        dtype = next(x.dtype for x in reversed(operands) if isinstance(x, Values))
        for x in operands:
            if not isinstance(x, Values) and dtypes.promote_scalar(dtype, x) != dtype:
                raise errors.DtypeError(f"the scalar {x!r} does not fit arrays of {dtype}; promote them first")
        return [x if isinstance(x, Values) else self.make((), [x], dtype) for x in operands]

    def make(self, shape: Shape, values: list[Number], dtype: DType) -> Values:
        """An array of numbers, each made one of the dtype's kind."""
        assert len(values) == math.prod(shape)
        return Values(tuple(shape), [self.scalars.convert(v, dtype) for v in values], dtype)

    def computes_in(self, dtype: DType) -> bool:
        return dtype.kind != "V"

    def dtype_of(self, array: Values) -> DType:
        return array.dtype

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Values:
        if values.dtype.kind == "V":
            raise dtypes.no_bfloat16(self.name)
        return self.make(values.shape, values.reshape(-1).tolist(), values.dtype)

    def to_numpy(self, array: Values) -> np.ndarray[Any, Any]:
        return rounded(array.values, array.dtype).reshape(array.shape)

    @staticmethod
    def to_list(array: Values) -> list[Number]:
        """The exact values in row-major order: Python's numbers, or mpmath's."""
        return list(array.values)
