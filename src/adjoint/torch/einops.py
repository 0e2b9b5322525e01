"""einops on the face's tensors: `import adjoint.torch.einops`, and `rearrange`, `reduce` and the others take them."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.torch.creation import from_numpy
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.products import einsum
from adjoint.torch.reductions import cat, stack
from adjoint.torch.tensor import Tensor

try:
    from einops._backends import AbstractBackend
except ImportError as error:
    raise errors.MissingLibraryError("adjoint.torch.einops: needs einops; pip install einops") from error


class Backend(AbstractBackend):  # type: ignore[misc, unused-ignore]
    """What einops asks of a library. It finds the class by itself.

    >>> import einops
    >>> import adjoint.torch as torch
    >>> import adjoint.torch.einops
    >>> einops.rearrange(torch.arange(4), "(a b) -> b a", a=2)
    tensor([[0, 2],
            [1, 3]])
    """

    framework_name = "adjoint.torch"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Any:
        return from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Any:
        return FUNCTIONS["arange"](start, stop)

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        if operation in ("prod", "any", "all"):  # of one axis at a time
            for axis in sorted(axes, reverse=True):
                x = getattr(x, operation)(dim=axis)
            return x
        return getattr(x, {"min": "amin", "max": "amax"}.get(operation, operation))(dim=tuple(axes))

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
        return stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x, sizes[position] = x.unsqueeze(position), length
        return x.expand(sizes)

    def tile(self, x: Any, repeats: Any) -> Any:
        return x.repeat(repeats)

    def concat(self, tensors: Any, axis: int) -> Any:
        return cat(tensors, axis)

    def is_float_type(self, x: Any) -> bool:
        return bool(x.is_floating_point())

    def einsum(self, pattern: str, *x: Any) -> Any:
        return einsum(pattern, *x)
