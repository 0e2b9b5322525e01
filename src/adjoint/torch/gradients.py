"""What a tensor says of gradients: `requires_grad`, `grad`, `grad_fn`, hooks, `detach`, shared memory."""

from __future__ import annotations

import operator
import warnings
import weakref
from typing import Any

import numpy as np

from adjoint.graph.nodes import var_of
from adjoint.torch import engine, lifted, memory, writes
from adjoint.torch.dtypes import dtype, numpy_dtype, of_numpy
from adjoint.torch.dtypes import memory_format as MemoryFormat
from adjoint.torch.grad_fn import grad_fn
from adjoint.torch.graph import Accumulate, Handle, leaves_are_watched, watched_marks
from adjoint.torch.kinds import Bits, strides_contiguous
from adjoint.torch.memory import base_of, detached, is_view, node_of_base
from adjoint.torch.refusals import InFunction
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    Tensor,
    adopt,
    is_lifted,
    leaf_node,
    looked,
    rare_of,
    refuse_numpy,
    values,
    where_is,
)

_NOT_A_LEAF = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)
_GRAD_OF_RESULT = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations."
)


def _own_node(x: Tensor) -> Any:
    """The node that gradients of x come to, None for a constant; a view's is made again where need be."""
    if is_lifted(x):  # of a dual number
        return lifted.primal_of(x).node
    return node_of_base(x) if not is_view(x) else x._array.node


def _grad_dtype(x: Tensor) -> Any:
    """The type that a gradient of x is to have, None for any."""
    known = False if x._rare is None else x._rare.grad_dtype
    return x._dtype if known is False else known


@adopt
class Gradients:
    """Members of `Tensor`."""

    # slots of the class, for type checkers
    _array: Any
    _dtype: Any
    _rare: Any

    @property
    def requires_grad(self: Any) -> bool:
        """Whether gradients are recorded for it."""
        rare = self._rare
        if rare is not None and rare.inner is not None:
            return lifted.requires_grad(self)
        if rare is None or rare.memory is None:
            return self._array.node is not None
        if rare.parent is not None:
            return self._dtype.kind in "fc" and base_of(self).requires_grad
        return node_of_base(self) is not None

    @requires_grad.setter
    def requires_grad(self: Any, on: bool) -> None:
        if on.__class__ is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if self.requires_grad is not on:
            self.requires_grad_(on)
        elif on and not is_lifted(self) and not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")

    @requires_grad.deleter
    def requires_grad(self: Any) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Record gradients for this tensor from now on, or no longer."""
        if requires_grad.__class__ is not bool:
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' must be bool, not {kind}")
        if (requires_grad or self.requires_grad) and lifted.in_transform(self):
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
                "APIs) inside of a function being transformed by a functorch transform. This is unsupported, please "
                "attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
                "requires_grad_() outside of a function being transformed instead."
            )
        if self.requires_grad == requires_grad:
            return self
        if requires_grad:
            if self._dtype.kind not in "fc":
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            if self.is_inference() and not modes.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
            if is_view(self):
                writes.stand_alone(self)
            node: Any = leaf_node(values(self), self)
        else:
            if not self.is_leaf:
                raise RuntimeError(_NOT_A_LEAF)
            node = None
        if self._rare is not None and self._rare.memory is not None:
            if self._rare.memory.buffer is not None:
                self._rare.node = node
                return self
        self._array = var_of(values(self), node)
        if self._rare is not None and self._rare.memory is not None:
            memory.views_again(self)
        return self

    @property
    def volatile(self: Any) -> bool:
        """False: PyTorch's name for what `no_grad` does now."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        return False

    @property
    def is_leaf(self: Any) -> bool:
        """Whether it was computed by no recorded operation."""
        if is_lifted(self):
            return self._rare.argument or not lifted.requires_grad(self)
        if is_view(self) and not self.requires_grad:
            return True
        node = _own_node(self)
        return node is None or node.__class__ is Accumulate

    @property
    def grad(self: Any) -> Any:
        """The gradient that backward passes gathered, or None."""
        rare = self._rare
        found = None if rare is None else rare.grad
        if found is None and not (rare is not None and rare.retains) and not self.is_leaf:
            warnings.warn(_GRAD_OF_RESULT, UserWarning, stacklevel=2)
        return found

    @grad.setter
    def grad(self: Any, g: Any) -> None:
        if g is not None:
            if not isinstance(g, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}"
                )
            if g is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if g.device != self.device:
                raise RuntimeError(
                    f"attempting to assign a gradient with device type '{g.device.type}' to a tensor with device type "
                    f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
                )
            known = _grad_dtype(self)
            if known is not None and g._dtype is not known:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{g.dtype.class_name}' to a tensor with grad_dtype "
                    f"'{of_numpy(known).class_name}'. The gradient must have that dtype, by default the tensor's. You "
                    "can set grad_dtype, to None for any dtype."
                )
            if tuple(g.shape) != tuple(self.shape):
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(g.shape)}' to a tensor of size "
                    f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
        rare_of(self).grad = g

    @grad.deleter
    def grad(self: Any) -> None:
        rare_of(self).grad = None

    @property
    def grad_dtype(self: Any) -> Any:
        """The type that gradients of this leaf are given, by default its own; None leaves them as they are."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        known = _grad_dtype(self)
        return None if known is None else of_numpy(known)

    @grad_dtype.setter
    def grad_dtype(self: Any, kind: Any) -> None:
        if kind is not None and not isinstance(kind, dtype):
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(kind).__name__}")
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        new, rare = None if kind is None else numpy_dtype(kind), rare_of(self)
        if new is not None and rare.grad is not None and rare.grad._dtype is not new:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{of_numpy(new).class_name}' because there is already a gradient with dtype "
                f"'{rare.grad.dtype.class_name}'. Please clear the gradient (.grad = None) before changing grad_dtype."
            )
        rare.grad_dtype = new
        if (node := _own_node(self)) is not None:
            watched_marks(node).cast = "any" if new is None else None if new is self._dtype else new

    @property
    def grad_fn(self: Any) -> Any:
        """The node that computed it, None for leaves."""
        if self.is_leaf:
            return None
        if is_lifted(self):
            return grad_fn(lifted.node_of(self))
        return grad_fn(_own_node(self))

    @property
    def output_nr(self: Any) -> int:
        return 0 if self.is_leaf else _own_node(self).result or 0

    @property
    def retains_grad(self: Any) -> bool:
        return self._rare is not None and self._rare.retains and not self.is_leaf

    def retain_grad(self: Any) -> None:
        """Keep the gradient of an intermediate result in `.grad`."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if lifted.in_transform(self):
            raise RuntimeError(
                "You are attempting to call Tensor.retain_grad() inside of a function being transformed by a functorch "
                "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, "
                "jacrev, jacfwd, hessian) or call retain_grad() outside of a function being transformed instead."
            )
        if self.is_leaf or self.retains_grad:
            return
        rare = rare_of(self)
        rare.retains = rare.entangled = True
        node = _own_node(self)
        watched_marks(node).retained = weakref.ref(self)
        if is_view(self):
            rare.retained_at = node

    def register_hook(self: Any, hook: Any) -> Handle:
        """Call `hook(gradient)` when a backward pass has the gradient; what it returns takes the gradient's place."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return Handle(watched_marks(_own_node(self)).hooks, hook)

    def register_post_accumulate_grad_hook(self: Any, hook: Any) -> Handle:
        """Call `hook(tensor)` when a backward pass has added to `.grad` of this leaf."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        rare = rare_of(self)
        leaves_are_watched[0] = True
        if rare.post is None:
            rare.post = {}
        return Handle(rare.post, hook)

    def backward(
        self: Any,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves that it was computed from."""
        for flag in (retain_graph, create_graph):
            if flag is not None and flag.__class__ is not bool:
                operator.index(flag)
        engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    # --- without history ---

    def detach(self: Any) -> Any:
        """A tensor that shares the memory, and has no history."""
        return detached(self)

    def detach_(self: Any) -> Any:
        """Forget how this tensor was computed."""
        if is_view(self):
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients."
            )
        rare = self._rare
        if is_lifted(self):
            lifted.detach_(self)
            return self
        if rare is not None and rare.memory is not None and rare.memory.buffer is not None:
            rare.node = None
            memory.views_again(self)
            return self
        self._array = var_of(self._array.value, None)
        if rare is not None:
            rare.retains = False
            if rare.memory is not None:
                memory.views_again(self)
        return self

    @property
    def data(self: Any) -> Any:
        """As `detach()`, but what is written to it is not noticed by what was saved of this tensor."""
        return detached(self, silent=True)

    @data.setter
    def data(self: Any, other: Tensor) -> None:
        if not isinstance(other, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
        if self.requires_grad and other._dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if memory.is_same_part(self, other):  # w.data -= step: it was written to already
            return
        writes.move(self, other)

    @data.deleter
    def data(self: Any) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    # --- memory ---

    @property
    def _version(self: Any) -> int:
        if self.is_inference():
            raise RuntimeError("Inference tensors do not track version counter.")
        rare = self._rare
        if rare is None:
            return 0
        if rare.memory is None:
            return rare.version  # type: ignore[no-any-return]
        return memory.counter_of(self).version  # type: ignore[no-any-return]

    @property
    def _base(self: Any) -> Any:
        return base_of(self) if is_view(self) else None

    def _is_view(self: Any) -> bool:
        rare = self._rare
        if rare is None or isinstance(rare.view, Bits) or rare.inference:
            return False
        return is_view(self) or rare.was_view or isinstance(rare.creation, InFunction)

    def stride(self: Any, dim: int | None = None) -> Any:
        """How far apart neighbours along each axis are in memory, in elements."""
        strides = memory.place_of(self)[0]
        return strides if dim is None else strides[dim]

    def storage_offset(self: Any) -> int:
        return memory.place_of(self)[1]

    def is_contiguous(self: Any, memory_format: Any = None) -> bool:
        """Whether its elements lie in memory one after the other, in its own order."""
        if memory_format is not None and not isinstance(memory_format, MemoryFormat):
            kind = type(memory_format).__name__
            raise TypeError(f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {kind}")
        if memory_format is not None and "channels_last" in memory_format:
            if self.ndim != (5 if "3d" in memory_format else 4):
                return False
            order, strides = (0, *range(2, self.ndim), 1), self.stride()
            return strides_contiguous([self.shape[i] for i in order], [strides[i] for i in order])
        return memory.is_contiguous(self)

    def numpy(self: Any, *, force: bool = False) -> Any:
        """The values as an array of NumPy's that shares the memory: what is written to one is in the other."""
        if force.__class__ is not bool:
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if self.requires_grad and modes.enabled and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if is_lifted(self):
            raise RuntimeError(
                "Cannot access data pointer of Tensor that doesn't have storage: it is inside of a transform"
            )
        if force and where_is(self) is not None:
            return np.array(looked(self))
        return memory.share_with_numpy(self)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        refuse_numpy(self)
        return np.array(values(self), dtype=dtype)

    def __array_wrap__(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """What NumPy's functions of tensors give; truths are numbers, as in PyTorch."""
        found = np.asarray(array)
        of_numpy(found.dtype)
        return memory.of_numpy_array(found.astype(np.uint8) if found.dtype.kind == "b" else found)
