"""`Tensor`: an array of the face's level and what PyTorch's users expect of it. Methods are hung on by the other files.

The array is a `Var` of adjoint's reverse mode: a value and the node that made it. Values are never written to: an
in-place operation gives the object another `Var`, and what shares its memory reads again (`memory.py`). What few
tensors have, such as a gradient, hooks or aliases, is in one object, `Rare`.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import numpy as np

from adjoint.backends.numpy import NumPy
from adjoint.decorators.autodiff import Autodiff
from adjoint.graph.nodes import LeafNode, Var, new_leaf, numbers, var_of
from adjoint.torch import dtypes, state
from adjoint.torch.dtypes import Size, dtype
from adjoint.torch.state import modes

LEVEL: Any = Autodiff(NumPy())
INNER: Any = LEVEL.inner
new = object.__new__


class Rare:
    """What few tensors have; what is not set is as here."""

    grad: Any = None
    version = 0  # how often it was written to, unless its memory counts
    memory: Any = None  # what it shares with others (`memory.Memory`), once there are any
    parent: Any = None  # the tensor that it is a view of, and how
    view: Any = None
    creation: Any = None  # why the view may not be written to, if so
    quiet = False  # the view was made where nothing is recorded
    tracked = False  # ... of what was tracked
    named: Any = None  # what the node of a view will be called, which is made when it is first read
    seen = 0  # the memory's version when a view was made or read again
    path: tuple[Any, ...] = ()  # the views that lead from the memory's value to this tensor, which is none itself
    silent = False  # writes to it count for itself alone, as of `.data`
    node: Any = None  # its node, where its value is read from NumPy's memory each time
    place: Any = None  # strides and offset
    retains = False  # retain_grad() was called
    retained_at: Any = None  # of a view, the node at which its gradient is kept
    post: Any = None  # hooks after accumulation
    inference = False  # made in inference mode
    was_view = False  # it was a view until it became a leaf
    entangled = False  # writing to it takes more than another value
    inner: Any = None  # of what is on a level of a function transform: the tensor of adjoint's


class Tensor:
    """An n-dimensional array that remembers how it was computed.

    Made by `torch.tensor` and the other creation functions.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_dtype", "_rare")
    __array_priority__ = 1000
    is_cpu = True
    is_cuda = is_sparse = is_quantized = is_nested = is_meta = is_mkldnn = False

    _array: Any
    _dtype: Any
    _rare: Any

    def __new__(cls, *args: Any, **options: Any) -> Any:
        made = _made_of(cls, *args, **options)
        return made

    def __getattr__(self, name: str) -> Any:
        if name == "_array":  # of what shares memory that was written to
            return _read_again(self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    # --- what it is ---

    @property
    def shape(self) -> Size:
        return Size(values(self).shape)

    @property
    def ndim(self) -> int:
        return len(values(self).shape)

    @property
    def dtype(self) -> dtype:
        return dtypes.of_numpy(self._dtype)

    @property
    def device(self) -> dtypes.device:
        return dtypes.CPU

    @property
    def itemsize(self) -> int:
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    @property
    def layout(self) -> str:
        return "torch.strided"

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[axis_of(dim, self.ndim)]

    def dim(self) -> int:
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        return self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        return self.itemsize

    def is_floating_point(self) -> bool:
        return self._dtype.kind == "f"  # type: ignore[no-any-return]

    def is_complex(self) -> bool:
        return self._dtype.kind == "c"  # type: ignore[no-any-return]

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        return self._rare is not None and self._rare.inference

    def is_same_size(self, other: Tensor) -> bool:
        return self.shape == other.shape

    def is_conj(self) -> bool:
        return False  # conj() is computed at once, as neg() is

    is_neg = is_conj
    is_pinned = is_conj
    is_shared = is_conj

    def is_nonzero(self) -> bool:
        return bool(self)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        dtypes.device("cuda")  # which refuses

    def get_device(self) -> int:
        return -1

    # --- as a container ---

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return values(self).shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any().item())

    # --- to Python ---

    def item(self) -> Any:
        """The only element as one of Python's numbers."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return values(self).item()

    def tolist(self) -> Any:
        return values(self).tolist()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            of = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {of} is ambiguous")
        return bool(values(self))

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._dtype.kind not in "iub" or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return np.array(values(self), dtype=dtype)

    def __repr__(self) -> str:
        from adjoint.torch.printing import text

        return text(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim else object.__format__(self, spec)

    def __deepcopy__(self, memo: Any) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        out = _rebuilt(type(self), np.array(values(self)), self.requires_grad, vars(self).copy())
        if self.grad is not None:
            out._rare.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = out
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), np.array(values(self)), self.requires_grad and self.is_leaf, vars(self).copy())


def _rebuilt(kind: type, value: Any, requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    out = constant(value.view(np.dtype(value.dtype.type)))  # its dtype is equal to NumPy's own, not the same object
    out.__class__ = kind
    vars(out).update(attributes)
    rare_of(out)
    return out.requires_grad_() if requires_grad else out


def of(var: Var) -> Tensor:
    """The tensor of an array of the face's level."""
    out: Tensor = new(Tensor)
    out._array = var
    out._dtype = var.value.dtype
    out._rare = None
    if state.special:
        if modes.inference:
            rare_of(out).inference = out._rare.entangled = True
        if var.node is not None:
            if modes.saved_hooks:
                pack_nodes(var)
            if state.anomaly[0]:
                _located(var.node)
    return out


def pack_nodes(var: Var) -> None:
    """Hand what new nodes keep to the hooks for saved tensors."""
    from adjoint.torch import saving

    saving.pack_nodes(var)


def unnoticed(var: Var) -> Tensor:
    """The tensor of an array whose node is no new one, so that no hook is to see it."""
    out: Tensor = new(Tensor)
    out._array, out._dtype, out._rare = var, var.value.dtype, None
    return out


def give_array(x: Tensor, var: Var, *, alone: bool = False) -> Tensor:
    """Give a tensor another array, of the same value; `alone` says that it shares nothing any more."""
    x._array = var
    if alone:
        x._rare = None
    return x


def constant(value: Any) -> Tensor:
    """The tensor of a NumPy array, which nobody else writes to."""
    return of(var_of(value, None))


def rare_of(x: Tensor) -> Rare:
    rare = x._rare
    if rare is None:
        rare = x._rare = Rare()
    return rare  # type: ignore[no-any-return]


_slot: Any = Tensor.__dict__["_array"]


def values(x: Tensor) -> Any:
    """The values, for a look: they are not to be kept or written to."""
    try:
        return _slot.__get__(x).value
    except AttributeError:
        return _values_again(x)


def is_lifted(x: Tensor) -> bool:
    """Whether a tensor is on a level of a function transform (`lifted.py`)."""
    return x._rare is not None and x._rare.inner is not None


def forget(x: Tensor) -> None:
    """What shares memory is to be read again."""
    with contextlib.suppress(AttributeError):
        _slot.__delete__(x)


def _read_again(x: Tensor) -> Var:
    from adjoint.torch.memory import read_again

    if x._rare is None or x._rare.inner is not None:
        raise AttributeError("adjoint.torch: this is not there for a tensor inside of a function transform")
    return read_again(x)


def _values_again(x: Tensor) -> Any:
    from adjoint.torch.memory import values_again

    if x._rare.inner is not None:
        from adjoint.torch.lifted import values_of

        return values_of(x)
    return values_again(x)


def _made_of(cls: type, *args: Any, **options: Any) -> Any:
    from adjoint.torch.creation import legacy

    return legacy(cls, *args, **options)


def _located(node: Any) -> None:
    from adjoint.torch import anomaly

    anomaly.locate(node)


class Accumulate(LeafNode):
    """The node of a leaf, which knows its tensor weakly: backward adds to the tensor's gradient."""

    __slots__ = ("tensor",)

    tensor: Any


def leaf_node(value: Any, tensor: Tensor | None) -> Accumulate:
    """A new leaf; without a tensor what comes to it goes nowhere."""
    node: Any = new_leaf(value, LEVEL).node
    leaf = Accumulate()
    leaf.number, leaf.saved, leaf.first, leaf.second = node.number, None, None, None
    leaf.visit, leaf.shape, leaf.value, leaf.level, leaf.key = 0, node.shape, value, LEVEL, node.key
    leaf.tensor = None if tensor is None else weakref.ref(tensor)
    return leaf


def axis_of(dim: Any, ndim: int) -> int:
    """The axis that a possibly negative number means; a tensor without axes counts as one of one axis."""
    size = max(ndim, 1)
    try:
        dim = dim.__index__()
    except AttributeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    if not -size <= dim < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})")
    return dim + size if dim < 0 else dim  # type: ignore[no-any-return]


def next_number() -> int:
    """A number that all nodes made from now on are above."""
    return next(numbers)


def adopt(members: type) -> type:
    """Give `Tensor` the methods and properties of a class that is written beside it."""
    for name, member in vars(members).items():
        if name not in ("__module__", "__doc__", "__dict__", "__weakref__", "__qualname__"):
            setattr(Tensor, name, member)
    return members
