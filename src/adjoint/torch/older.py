"""Names that PyTorch keeps from earlier versions, and those that it only answers for."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from adjoint.torch import linalg
from adjoint.torch.arguments import public, same_types, tensor_of
from adjoint.torch.creation import size_of
from adjoint.torch.graph import label
from adjoint.torch.operators import METHODS
from adjoint.torch.overriding import DisableTorchFunctionSubclass
from adjoint.torch.tensor import Tensor, is_lifted, next_number

REMOVED: dict[str, Any] = {  # what to use instead; then the functions, which raise
    "symeig": "The lower triangle is used where the upper one was: see torch.linalg.eigh and torch.linalg.eigvalsh",
    "eig": "`torch.linalg.eig` returns complex tensors: see it and torch.linalg.eigvals",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`, which takes the matrix first",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`, which takes the matrix first",
    "matrix_rank": "Please use the `torch.linalg.matrix_rank` function instead, whose `symmetric` is `hermitian`",
}


def _removed(name: str, instead: str) -> Any:
    def function(*args: Any, **options: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {instead}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed from PyTorch. {instead}."
    return function


for _name, _instead in REMOVED.items():
    REMOVED[_name] = _removed(_name, _instead)


class _Solved(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


@public("triangular_solve", out=True)
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The solution of A X = input for a triangular A, and a copy of A: `linalg.solve_triangular` by its older name."""
    warnings.warn(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular, which takes the matrix first",
        UserWarning,
        stacklevel=3,
    )
    same_types("triangular_solve", input, A)
    matrix = A.mT if transpose else A
    found = linalg.solve_triangular(matrix, input, upper=upper != transpose, unitriangular=unitriangular)
    return _Solved(found, A.clone())


@public("split_with_sizes")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Parts of these sizes along an axis, as views."""
    return input.split(list(split_sizes), dim)


@public("unsafe_split_with_sizes")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Parts of these sizes, each a copy, which may be written to."""
    return _parts(input, split_sizes, dim, "UnsafeSplitWithSizes")


def _parts(input: Tensor, split_sizes: Any, dim: int, made: str) -> Any:
    sizes = [size_of(n) for n in split_sizes]
    if sum(sizes) != input.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[dim]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={sizes}"
        )
    start_of = next_number()
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    found = [input.narrow(dim, start, n).clone() for start, n in zip(starts, sizes, strict=True)]
    for part in found:
        if not is_lifted(part):
            label(part._array.node, made, start_of)
    return tuple(found)


@public("unsafe_split")
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """Parts of one size, the last of which may be smaller, each a copy, which may be written to."""
    return _parts(input, [part.shape[dim] for part in input.split(split_size, dim)], dim, "UnsafeSplit")


@public("unsafe_chunk")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """So many parts, each a copy, which may be written to."""
    return _parts(input, [part.shape[dim] for part in input.chunk(chunks, dim)], dim, "UnsafeSplit")


@public("nonzero_static", out=True)
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """So many places of what is not zero: no more, and filled up where there are fewer."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, received {size}")
    found = input.nonzero()[:size]
    made = found.new_full((size, input.ndim), fill_value)
    made[: found.shape[0]] = found
    return made


def _resize(self: Any, *sizes: Any) -> Any:
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if math.prod(shape) != self.numel():
        raise RuntimeError(
            f"requested resize to {tuple(shape)} ({math.prod(shape)} elements in total), but the given tensor has a "
            f"size of {tuple(self.shape)} ({self.numel()} elements). autograd's resize can only change the shape of a "
            "given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(*shape)


METHODS["resize"] = _resize
METHODS["resize_as"] = lambda self, tensor: _resize(self, *tensor_of(tensor, "resize_as", "tensor").shape)


def _reinforce(self: Any, reward: Any) -> None:
    raise RuntimeError(
        "reinforce() was removed. Use the logarithms of probabilities: loss = -log_prob(action) * reward"
    )


def _as_subclass(self: Any, cls: Any) -> Any:
    """The same memory and history as a tensor of a subclass of `Tensor`."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor."
        )
    with DisableTorchFunctionSubclass():
        made = self.expand(self.shape)
    made.__class__ = cls
    return made


def _apply(self: Any, callable: Any) -> Any:
    """Write `callable(value)` to each place; slow, as in PyTorch."""
    return _map(self, callable)


def _map(self: Any, *given: Any) -> Any:
    """Write `callable(value, others...)` to each place; slow, as in PyTorch."""
    *others, function = given
    if self.requires_grad:
        name = ("apply_", "map_", "map2_")[len(others)]
        raise TypeError(f"{name}() is only implemented for tensors that do not require a gradient")
    others = [tensor_of(x, ("apply_", "map_", "map2_")[len(others)]) for x in others]
    flat = [x.expand(self.shape).reshape(-1).tolist() for x in (self, *others)]
    found = [function(*values) for values in zip(*flat, strict=True)]
    return self.copy_(self.new_tensor(found).reshape(self.shape)) if found else self


REMOVED["reinforce"] = _reinforce
METHODS.update({name: made for name, made in REMOVED.items() if name != "matrix_rank"})
METHODS["as_subclass"] = _as_subclass
METHODS["apply_"] = _apply
METHODS["map_"] = lambda self, other, callable: _map(self, other, callable)
METHODS["map2_"] = lambda self, x, y, callable: _map(self, x, y, callable)


def _of_layers(name: str) -> None:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        from adjoint.torch.nn import functional

        return functional.ALL[name](self, *args, **options)

    METHODS[name] = method


_of_layers("hardshrink")
_of_layers("prelu")
