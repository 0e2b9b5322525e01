"""Arguments whose memory a compiled function may write its results into."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Backend, Decorator, LeafBackend, computed_name
from adjoint.tensor import Tensor, put


class Donated(LeafBackend):
    """Stands in the place of the device of a tensor that was given away."""

    ended = True

    @classmethod
    def to(cls, function: str) -> Donated:
        level = cls.__new__(cls)
        level.function = function
        return level

    function: str

    @computed_name
    def name(self) -> str:
        return f"donated to {self.function}"

    def ended_error(self, what: str) -> errors.EndedError:
        return errors.EndedError(
            f"{what}: the tensor was donated to {self.function}, which may have written results over it; use what that "
            "returned, or compile it without donate="
        )

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise self.ended_error("a value")

    to_numpy = from_numpy = to_native = concrete_values = leaf_array = lift = copied = _refused


def exclusive(inputs: Sequence[Any], places: Sequence[int], arrays: list[Any]) -> bool:
    """Whether nobody else sees the memory of these arguments: each is an array of its own, and no other refers to it.

    Of NumPy arrays, which are the caller's, it is enough that no other argument shares their memory.
    """
    for i in places:
        x, array = inputs[i], arrays[i]
        if array.__class__ is not np.ndarray or not array.flags.writeable or not array.flags.owndata:
            return False
        if isinstance(x, Tensor):
            if (
                not _held_once(x, array) or sys.getrefcount(array) > 4
            ):  # a level or tensor, the list, the name, the call
                return False
        elif array is not x:
            return False
        if any([np.may_share_memory(array, other) for k, other in enumerate(arrays) if k != i]):
            return False
    return True


def _held_once(x: Tensor[Any], array: Any) -> bool:
    """Whether the levels' parts of a tensor are its own."""
    part, level = x._array, x._device
    while isinstance(level, Decorator):
        if sys.getrefcount(part) > 3:  # the tensor or the level above, the name, the call
            return False
        part, level = level.unwrap(part), level.inner
    return part is array


def give_away(inputs: Sequence[Any], places: Sequence[int], function: str, returned: set[int]) -> None:
    """Have every use of these tensors raise EndedError, but of those that are results."""
    device: Backend | None = None
    for i in places:
        x = inputs[i]
        if isinstance(x, Tensor) and id(x) not in returned:
            device = device or Donated.to(function)
            put(x, np.broadcast_to(np.zeros((), x._dtype), x.shape), device)
