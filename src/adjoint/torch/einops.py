"""einops on the face's tensors: `import adjoint.torch.einops`, and `rearrange`, `reduce` and the others take them.

Its layers for PyTorch are here, as modules of the face: `einops.layers.torch` itself imports PyTorch.
"""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.torch import nn
from adjoint.torch.creation import from_numpy
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.products import einsum
from adjoint.torch.reductions import cat, stack
from adjoint.torch.tensor import Tensor

try:
    import einops.layers._einmix as _mix
    from einops._backends import AbstractBackend
    from einops.layers import RearrangeMixin, ReduceMixin
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


class Rearrange(RearrangeMixin, nn.Module):  # type: ignore[misc, unused-ignore]
    """A layer that does what `rearrange` does.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.einops import Rearrange
    >>> torch.nn.Sequential(Rearrange("b c h w -> b (c h w)"), torch.nn.Linear(12, 2))(torch.ones(5, 3, 2, 2)).shape
    torch.Size([5, 2])
    """

    def forward(self, input: Any) -> Any:
        return self._apply_recipe(input)  # type: ignore[no-untyped-call, unused-ignore]


class Reduce(ReduceMixin, nn.Module):  # type: ignore[misc, unused-ignore]
    """A layer that does what `reduce` does."""

    def forward(self, input: Any) -> Any:
        return self._apply_recipe(input)  # type: ignore[no-untyped-call, unused-ignore]


class EinMix(_mix._EinmixMixin, nn.Module):  # type: ignore[misc, unused-ignore]
    """A linear layer along named axes."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        def drawn(shape: Any, bound: float) -> Any:
            return None if shape is None else nn.Parameter(FUNCTIONS["zeros"](shape).uniform_(-bound, bound))

        self.weight, self.bias = drawn(weight_shape, weight_bound), drawn(bias_shape, bias_bound)

    def _create_rearrange_layers(
        self, pre_reshape_pattern: Any, pre_reshape_lengths: Any, post_reshape_pattern: Any, post_reshape_lengths: Any
    ) -> None:
        pre, post = pre_reshape_pattern, post_reshape_pattern
        self.pre_rearrange = None if pre is None else Rearrange(pre, **pre_reshape_lengths)
        self.post_rearrange = None if post is None else Rearrange(post, **post_reshape_lengths)

    def forward(self, input: Any) -> Any:
        found = einsum(
            self.einsum_pattern, input if self.pre_rearrange is None else self.pre_rearrange(input), self.weight
        )
        if self.bias is not None:
            found = found + self.bias
        return found if self.post_rearrange is None else self.post_rearrange(found)
