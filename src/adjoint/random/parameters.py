"""What all distributions share: where their numbers are made, and parameters that broadcast to their shape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.devices import current_level
from adjoint.dtypes import DType
from adjoint.functions.arguments import as_device, as_drawn_dtype, as_parameter, as_shape
from adjoint.functions.creation import made
from adjoint.functions.elementwise import maximum
from adjoint.operands import cast, common_backend, deferred_check, fail, lift_to
from adjoint.primitives import Shape, broadcast_shapes
from adjoint.tensor import Tensor, wrap

ShapeLike = int | Sequence[int]
Test = tuple[Callable[[Any], Any], str]  # what holds of valid values, and its wording

ANY: Test = (lambda v: v == v, "be numbers")
POSITIVE: Test = (lambda v: v > 0, "be positive")
NOT_NEGATIVE: Test = (lambda v: v >= 0, "not be negative")
PROBABILITY: Test = (lambda v: (v >= 0) & (v <= 1), "be between 0 and 1")
POSITIVE_PROBABILITY: Test = (lambda v: (v > 0) & (v <= 1), "be above 0 and at most 1")
WHOLE: Test = (lambda v: (v >= 0) & (v == np.floor(v)), "be whole numbers from 0")


def place_of(device: Any, *values: Any) -> Backend:
    """Where numbers are drawn: on the device that is named, the level of a transform, beside the parameters."""
    if device is None:
        device = current_level() or next((v.device for v in values if isinstance(v, Tensor)), None)
    return as_device(device)


class Draw:
    """A draw of a distribution: its shape, dtype and device, and its parameters as tensors, in order.

    Raises ArgumentTypeError for parameters that are no numbers, ArgumentError for values that the distribution does
    not have, ShapeError where parameters do not broadcast to the shape, DtypeError for a dtype that is not real.
    """

    def __init__(
        self,
        name: str,
        shape: ShapeLike | None,
        dtype: Any,
        device: Any,
        tests: dict[str, Test],
        *values: Any,
        events: tuple[int, ...] = (),
        precise: bool = False,
    ) -> None:
        self.name = name
        self.place: Backend = place_of(device, *values)
        given = [as_parameter(v, name, what) for v, what in zip(values, tests, strict=True)]
        self.precise: DType = self.place.leaf.widest(dtypes.float64)
        self.dtype: DType = self.precise if precise else _floating(dtype, given, name, self.place)
        parameters = [
            _checked(self._tensor(v), name, what, *test) for v, (what, test) in zip(given, tests.items(), strict=True)
        ]
        # the last axes of some parameters belong to one number, as those of a matrix do
        counts = events or (0,) * len(parameters)
        try:
            own = broadcast_shapes(*[p.shape[: max(0, p.ndim - n)] for p, n in zip(parameters, counts, strict=True)])
        except errors.ShapeError as error:
            raise errors.ShapeError(f"{name}: the parameters' {error}") from None
        self.shape: Shape = own if shape is None else as_shape(shape, name)
        if not fits(own, self.shape):
            raise errors.ShapeError(
                f"{name}: parameters of shape {own} do not broadcast to numbers of shape {self.shape}; leave the "
                "shape out for one number for each parameter"
            )
        self.parameters = parameters

    def _tensor(self, value: Any) -> Tensor[Any]:
        if isinstance(value, Tensor):
            return cast(value, self.dtype)
        array = np.asarray(value, dtype=self.dtype)
        return wrap(self.place.from_numpy(array, copy=True), self.place)

    def uniform(self, shape: Shape | None = None, dtype: DType | None = None) -> Tensor[Any]:
        """Uniform numbers strictly between 0 and 1: the 0 that a generator gives becomes half its step."""
        dtype = self.dtype if dtype is None else dtype
        step = float(dtypes.finfo(dtype).eps) / 2
        return maximum(self.noise("random_uniform", shape, dtype), step / 2)

    def noise(
        self, name: str = "random_uniform", shape: Shape | None = None, dtype: DType | None = None
    ) -> Tensor[Any]:
        """Numbers that depend on no parameters."""
        how = {"shape": self.shape if shape is None else shape, "dtype": self.dtype if dtype is None else dtype}
        return made(self.place, name, key=self.place.next_key(), **how)

    def sampled(self, name: str, *parameters: Tensor[Any], **options: Any) -> Tensor[Any]:
        """Run a random primitive whose operands are parameters, where they meet the place of the draw."""
        anchor = wrap(self.place.full(shape=(), value=0, dtype=self.dtype), self.place)
        device = common_backend(anchor, *parameters)
        arrays = [lift_to(x, device) for x in parameters]
        options = {"shape": self.shape, **options}
        try:
            return wrap(getattr(device, name)(*arrays, key=device.next_key(), **options), device)
        except Exception as error:
            fail(error, device, name, arrays, options)


def fits(shape: Shape, whole: Shape) -> bool:
    """Whether a shape broadcasts to another one."""
    try:
        return broadcast_shapes(shape, whole) == whole
    except errors.ShapeError:
        return False


def _floating(dtype: Any, values: Sequence[Any], name: str, place: Backend) -> DType:
    """The given dtype, or that of the parameters: the default one beside Python's numbers and integers."""
    kinds = [v.dtype for v in values if isinstance(v, (Tensor, np.ndarray)) and v.dtype.kind in dtypes.INEXACT]
    if dtype is None and kinds:
        dtype = functools.reduce(dtypes.promote, kinds)
    return as_drawn_dtype(dtype, name, place)


def _checked(x: Tensor[Any], name: str, what: str, test: Callable[[Any], Any], wording: str) -> Tensor[Any]:
    """The tensor, where each of its numbers passes the test."""
    return deferred_check(
        x,
        lambda values: test(values).all(),
        lambda values: errors.ArgumentError(
            f"{name}: {what} must {wording}, received {values[~np.asarray(test(values))].flat[0]}"
        ),
    )
