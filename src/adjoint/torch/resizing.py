"""Other memory in a tensor's place: `set_`, `resize_`, `as_strided_`."""

from __future__ import annotations

import math
from typing import Any

from adjoint.graph.nodes import var_of
from adjoint.torch.arguments import guarded, public, tensor_of
from adjoint.torch.calls import off
from adjoint.torch.creation import check_placing, sizes_of
from adjoint.torch.graph import result_overwritten
from adjoint.torch.kinds import contiguous_strides
from adjoint.torch.memory import counter_of, memory_of, place_of, shape_of, strided
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.tensor import Rare, Tensor, copied, is_lifted, leaf_node, new, rare_of, unnoticed, values
from adjoint.torch.writes import check_write, move, outgrown


def _refuse_tracked(x: Tensor, name: str) -> None:
    if is_lifted(x) or x.requires_grad:
        raise NotImplementedError(
            f"adjoint.torch: {name}() of a tensor that requires a gradient, or that a function transform made, is not "
            "there; assign another tensor to the name"
        )


def _whole(x: Tensor) -> Tensor:
    """All of the memory that a tensor is part of, without history."""
    memory = memory_of(x)
    made: Tensor = new(Tensor)
    made._dtype, made._rare = x._dtype, Rare()
    made._rare.memory, made._rare.entangled, made._rare.where = memory, True, x._rare.where
    if memory.buffer is None:
        made._array = var_of(memory.value, None)
    memory.add(made)
    return made


def _moved(x: Any, other: Tensor) -> Any:
    """x on the memory of another tensor, which counts as a write to x."""
    move(x, other)
    counter_of(x).version += 1
    return x


def _set(x: Any, other: Tensor) -> Any:
    if x.requires_grad and x.is_leaf:  # graphs that it is in are of the tensor that it was
        node, value = x._array.node, values(x)
        same = shape_of(x) == shape_of(other)
        x._array = var_of(value, leaf_node(value, x) if same else outgrown(x, node, value))
    return _moved(x, other)


def set_(self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
    """From now on the same part of the same memory as source, or a part of it; without source it has no elements."""
    check_write(self, filling=True)
    if not off() or is_lifted(self):
        _refuse_tracked(self, "set_")
    if source is None:
        return _set(self, FUNCTIONS["zeros"](0, dtype=self.dtype, device=self.device))
    if not isinstance(source, Tensor):
        raise NotImplementedError("adjoint.torch: set_() takes a tensor; there are no storages")
    if source._dtype is not self._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.class_name} to a tensor of type {self.dtype.class_name}"
        )
    if size is None:
        return _set(self, source)
    shape = sizes_of((tuple(size),))
    steps = contiguous_strides(shape) if stride is None else tuple(stride)
    return _set(self, strided(_whole(source), shape, steps, storage_offset, "AsStrided"))


def resize_(self: Any, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
    """Another shape of the same memory, in order; where that is too small, of new memory that begins with it."""
    shape = sizes_of(sizes if size is None else (size,))
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    _refuse_tracked(self, "resize_")
    if shape == shape_of(self):
        return self
    whole = _whole(self)
    start, count = place_of(self)[1], math.prod(shape)
    flat: Any = strided(whole, (whole.numel(),), (1,), 0, "AsStrided")
    if start + count > flat.shape[0]:
        if memory_of(self).buffer is not None:  # of NumPy's
            raise RuntimeError("Trying to resize storage that is not resizable")
        known = flat[start:].clone()
        flat, start = FUNCTIONS["zeros"](count, dtype=self.dtype, device=self.device), 0
        flat[: known.shape[0]] = known
    return _moved(self, strided(flat, shape, contiguous_strides(shape), start, "AsStrided"))


def resize_as_(self: Any, the_template: Tensor, *, memory_format: Any = None) -> Any:
    """The shape of another tensor."""
    return resize_(self, tuple(tensor_of(the_template, "resize_as_", "the_template").shape))


def _is_alone(x: Tensor) -> bool:
    """Whether a tensor shares nothing, wherever it is."""
    rare = x._rare
    return rare is None or not rare.entangled or (rare.where is not None and rare.memory is None and not rare.retains)


def as_strided_(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Other sizes, strides and another offset on the same memory."""
    check_write(self, filling=True)
    if self.requires_grad and not off() and _is_alone(self):
        old = self._array
        array = FUNCTIONS["as_strided"](unnoticed(old), size, stride, storage_offset)._array
        array.value = copied(array.value)
        result_overwritten(old.node)
        self._array = array
        rare_of(self).version += 1
        return self
    _refuse_tracked(self, "as_strided_")
    offset = place_of(self)[1] if storage_offset is None else storage_offset
    return _moved(self, strided(_whole(self), sizes_of((tuple(size),)), tuple(stride), offset, "AsStrided"))


METHODS.update({f.__name__: guarded(f) for f in (set_, resize_, resize_as_, as_strided_)})


@public("empty_strided", method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor of zeros whose elements lie in memory at these distances."""
    check_placing("empty_strided", layout, pin_memory)
    shape, steps = tuple(size), tuple(stride)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    count = 1 + sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)]) if math.prod(shape) else 0
    flat = FUNCTIONS["zeros"](count, dtype=dtype, device=device)
    return flat.as_strided(shape, steps).detach().requires_grad_(requires_grad)


@public("empty_permuted", method=False)
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor of zeros whose axes lie in memory in this order, the last one closest together."""
    check_placing("empty_permuted", layout, pin_memory)
    shape, order = tuple(size), [int(axis) for axis in physical_layout]
    if sorted(order) != [*range(len(shape))]:
        raise RuntimeError(f"Dimension out of range or given twice: {order} is no order of {len(shape)} axes")
    steps = dict(zip(order, contiguous_strides([shape[axis] for axis in order]), strict=True))
    return empty_strided(
        shape, [steps[axis] for axis in range(len(shape))], dtype=dtype, device=device, requires_grad=requires_grad
    )


METHODS["new_empty_strided"] = lambda self, size, stride, *, dtype=None, device=None, **options: empty_strided(
    size, stride, dtype=dtype or self.dtype, device=self.device if device is None else device, **options
)
