"""`Tensor`: an array of the face's level and what PyTorch's users expect of it. Methods are hung on by the other files.

The array is a `Var` of adjoint's reverse mode: a value and the node that made it. Values are never written to: an
in-place operation gives the object another `Var`, and what shares its memory reads again (`memory.py`). What few
tensors have, such as a gradient, hooks, aliases or another device, is in one object, `Rare`.
"""

from __future__ import annotations

import contextlib
import copy
import weakref
from typing import Any

import numpy as np

from adjoint.backends.numpy import NumPy
from adjoint.decorators.autodiff import Autodiff
from adjoint.graph.nodes import Var, new_leaf, numbers, var_of
from adjoint.torch import anomaly, devices, dtypes, state
from adjoint.torch.devices import device as Device
from adjoint.torch.devices import dtype_of, where_of
from adjoint.torch.dtypes import Size, dtype, strided
from adjoint.torch.graph import Accumulate
from adjoint.torch.missing import why_not
from adjoint.torch.state import modes

LEVEL: Any = Autodiff(NumPy())
INNER: Any = LEVEL.inner
new = object.__new__


class Rare:
    """What few tensors have; what is not set is as here."""

    grad: Any = None
    grad_dtype: Any = False  # the type of the gradient where it was set; None is any, False that of the tensor
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
    silent: Any = None  # what counts writes to it apart from the memory's (`memory.Apart`), as of `.data`
    moved = False  # it took the memory of another by `x.data = y`
    node: Any = None  # its node, where its value is read from NumPy's memory each time
    place: Any = None  # strides and offset
    retains = False  # retain_grad() was called
    retained_at: Any = None  # of a view, the node at which its gradient is kept
    post: Any = None  # hooks after accumulation
    inference = False  # made in inference mode
    born: tuple[Any, ...] = ()  # the function transforms that ran when it was made
    argument = False  # it is what a transform differentiates by
    was_view = False  # it was a view until it became a leaf
    entangled = False  # writing to it takes more than another value
    inner: Any = None  # of what is on a level of a function transform: the tensor of adjoint's
    where: Any = None  # the device, if it is not "cpu" (`devices.Where`)
    away: Any = None  # the array there, None where it is to be read again

    def values_again(self, x: Any) -> Any:
        """The values of a tensor that shares memory that was written to, for a look."""
        return self.memory.values_again(x)


class Tensor:
    """An n-dimensional array that remembers how it was computed.

    Made by `torch.tensor` and the other creation functions.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # hot code reads `_here`, which is empty for what is on no level of NumPy's; all other code asks for `_array`
    __slots__ = ("__dict__", "__weakref__", "_dtype", "_here", "_rare")
    __array_priority__ = 1000
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_meta = is_mkldnn = is_vulkan = False
    is_mps = is_xpu = is_ipu = is_xla = is_mtia = is_maia = False
    name: Any = None

    _here: Any
    _dtype: Any
    _rare: Any

    @property
    def _array(self) -> Any:
        rare = self._rare
        if rare is None or rare.where is None:
            return self._here
        return _read_again(self) if rare.away is None else rare.away

    @_array.setter
    def _array(self, var: Var) -> None:
        where = None if var.value.__class__ is np.ndarray else where_of(var.value)
        if where is None:
            self._here = var
            if self._rare is not None and self._rare.where is not None:
                self._rare.where = self._rare.away = None
        else:
            forget(self)
            _set_away(self, var, where)

    def __getattr__(self, name: str) -> Any:
        if name == "_here" and where_is(self) is None:  # of what shares memory that was written to
            return _read_again(self)
        why = None if name.startswith("_") else why_not(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}" + (f": {why}" if why else ""))

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
    def device(self) -> devices.device:
        where = where_is(self)
        return devices.CPU if where is None else where.device

    @property
    def is_cpu(self) -> bool:
        return where_is(self) is None

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def itemsize(self) -> int:
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    @property
    def layout(self) -> Any:
        return strided

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
        if not isinstance(other, Tensor):
            raise TypeError(f"is_same_size(): argument 'other' must be Tensor, not {type(other).__name__}")
        return self.shape == other.shape

    def is_conj(self) -> bool:
        return False  # conj() is computed at once, as neg() is

    is_neg = is_distributed = is_shared = is_conj

    def is_pinned(self, device: Any = None) -> bool:
        if device is not None and not isinstance(device, (Device, str, int)):
            raise TypeError(f"is_pinned(): argument 'device' must be torch.device, not {type(device).__name__}")
        return False

    def is_nonzero(self) -> bool:
        return bool(self)

    def get_device(self) -> int:
        index = self.device.index
        return -1 if index is None else index

    # --- as a container ---

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return values(self).shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Any:
        return self.flip(0) if self.ndim else self

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any().item())

    # --- to Python ---

    def item(self) -> Any:
        """The only element as one of Python's numbers."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return looked(self).item()

    def tolist(self) -> Any:
        return looked(self).tolist()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            of = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {of} is ambiguous")
        return bool(looked(self))

    def __float__(self) -> float:
        return float(_real(_only(self), "double"))

    def __int__(self) -> int:
        return int(_real(_only(self), "int64_t"))

    def __complex__(self) -> complex:
        return complex(_only(self))

    def __index__(self) -> int:
        if self._dtype.kind not in "iub" or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim and type(self) is Tensor else object.__format__(self, spec)

    def __copy__(self) -> Tensor:
        """Another leaf on the same memory."""
        out: Any = self.data
        out.__class__ = type(self)
        vars(out).update(vars(self))
        return out.requires_grad_() if self.requires_grad else out  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: Any) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        attributes = copy.deepcopy(vars(self), memo)
        if self._rare is not None and self._rare.memory is not None:
            out: Any = self._rare.memory.copied_with(self, memo)
            out.__class__ = type(self)
            vars(out).update(attributes)
            out.requires_grad_(self.requires_grad)
        else:
            out = _rebuilt(type(self), np.array(looked(self)), self.requires_grad, attributes, self.device)
        if self.grad is not None:
            out._rare.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = out
        return out  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        made = np.array(looked(self)), self.requires_grad, vars(self).copy(), self.device
        return _rebuilt, (type(self), *made)


def _only(x: Tensor) -> Any:
    """The only element, for one of Python's numbers."""
    if x.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return x.item()


def _real(value: Any, kind: str) -> Any:
    """A number as a real one. Raises RuntimeError for an imaginary part."""
    if value.__class__ is complex:
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def _rebuilt(kind: type, value: Any, requires_grad: bool, attributes: dict[str, Any], device: Any = None) -> Tensor:
    own = value.view(np.dtype(value.dtype.type))  # its dtype is equal to NumPy's own, not the same object
    out = placed(own, devices.where(devices.CPU if device is None else device))
    out.__class__ = kind
    vars(out).update(attributes)
    rare_of(out)
    return out.requires_grad_() if requires_grad else out


def of(var: Var) -> Tensor:
    """The tensor of an array of the face's level."""
    out: Tensor = new(Tensor)
    value = var.value
    out._rare = None
    if value.__class__ is np.ndarray or (where := where_of(value)) is None:
        out._here = var
        out._dtype = value.dtype
    else:
        out._dtype = where.leaf.dtype_of(value)
        _set_away(out, var, where)
    if state.special:
        if modes.inference:
            rare_of(out).inference = out._rare.entangled = True
        if (running := modes.transforms) != ():
            rare_of(out).born = running
        if var.node is not None:
            if modes.saved_hooks:
                modes.saved_hooks[-1].pack_nodes(var)
            if state.anomaly[0]:
                anomaly.locate(var.node)
    return out


def unnoticed(var: Var) -> Tensor:
    """The tensor of an array whose node is no new one, so that no hook is to see it."""
    out: Tensor = new(Tensor)
    out._rare = None
    out._array, out._dtype = var, dtype_of(var.value)
    return out


def give_array(x: Tensor, var: Var, *, alone: bool = False) -> Tensor:
    """Give a tensor another array, of the same value; `alone` says that it shares nothing any more."""
    if alone:
        x._rare = None
    x._array = var
    return x


def constant(value: Any) -> Tensor:
    """The tensor of an array, which nobody else writes to."""
    return of(var_of(value, None))


def placed(value: Any, where: Any) -> Tensor:
    """The tensor of a NumPy array on a device, None for "cpu"."""
    return of(var_of(np.asarray(value) if where is None else where.constant(value), None))


def beside(x: Tensor, value: Any) -> Tensor:
    """The tensor of a NumPy array on the device of another tensor."""
    return placed(value, where_is(x))


# --- devices ----------------------------------------------------------------------------------------


def _set_away(x: Tensor, var: Var, where: Any) -> None:
    rare = rare_of(x)
    rare.where, rare.away, rare.entangled = where, var, True


def where_is(x: Tensor) -> Any:
    """Where a tensor is, None for "cpu"."""
    rare = x._rare
    if rare is None:
        return None
    return rare.where if rare.inner is None else devices.where_of_leaf(rare.inner.device.leaf)


def is_elsewhere(x: Tensor) -> bool:
    """Whether a tensor is on another device than "cpu", or on a level of a function transform."""
    rare = x._rare
    return rare is not None and (rare.where is not None or rare.inner is not None)


def level_of(x: Tensor) -> Any:
    """The level that records what is done with a tensor."""
    where = where_is(x)
    return LEVEL if where is None else where.level


def leaf_of(value: Any) -> Any:
    """The leaf of an array."""
    where = None if value.__class__ is np.ndarray else where_of(value)
    return INNER if where is None else where.leaf


def meeting(tensors: Any) -> Any:
    """Where operands meet, None for "cpu". Raises RuntimeError for two devices; a number of the CPU goes anywhere."""
    found: Any = None
    known = False
    for x in tensors:
        where = where_is(x)
        if where is None and not x.ndim:
            continue
        if known and where is not found:
            raise devices.different(found, where)
        found, known = where, True
    return found if known else next((where for x in tensors if (where := where_is(x)) is not None), None)


def array_on(x: Tensor, where: Any, quiet: bool) -> Any:
    """The array of an operand where it meets others: of its level, or if nothing is recorded of the leaf."""
    its = where_is(x)
    array = values(x) if quiet else x._array
    if its is where:
        return array
    here, there = (INNER, LEVEL) if where is None else (where.leaf, where.level)
    source, level = (INNER, LEVEL) if its is None else (its.leaf, its.level)
    return here.transfer(array, source) if quiet else there.transfer(array, level)


def copied(value: Any) -> Any:
    """Another array with the same values."""
    where = None if value.__class__ is np.ndarray else where_of(value)
    return np.array(value) if where is None else where.copied(value)


def in_order(value: Any) -> Any:
    """NumPy's array with its elements in memory one after the other; those of other devices count as such."""
    return np.ascontiguousarray(value) if isinstance(value, (np.ndarray, np.generic)) else value


def refuse_numpy(x: Tensor) -> None:
    """Only what is on "cpu" shares memory with NumPy."""
    if where_is(x) is not None:
        raise TypeError(
            f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
            "first."
        )


def rare_of(x: Tensor) -> Rare:
    rare = x._rare
    if rare is None:
        rare = x._rare = Rare()
    return rare  # type: ignore[no-any-return]


_slot: Any = Tensor.__dict__["_here"]


def values(x: Tensor) -> Any:
    """The values, for a look, as an array of the tensor's leaf: they are not to be kept or written to."""
    try:
        return _slot.__get__(x).value
    except AttributeError:
        rare = x._rare
        if rare.away is not None:
            return rare.away.value
        return rare.values_again(x)


def looked(x: Tensor) -> Any:
    """The values for a look, as NumPy's array, wherever the tensor is."""
    value = values(x)
    return value if x._rare is None or x._rare.where is None else x._rare.where.leaf.to_numpy(value)


def is_lifted(x: Tensor) -> bool:
    """Whether a tensor is on a level of a function transform (`lifted.py`)."""
    return x._rare is not None and x._rare.inner is not None


def forget(x: Tensor) -> None:
    """What shares memory is to be read again."""
    with contextlib.suppress(AttributeError):
        _slot.__delete__(x)
    if x._rare is not None and x._rare.where is not None:
        x._rare.away = None


def known_array(x: Tensor) -> Var | None:
    """The array of a tensor that is not to be read again."""
    try:
        return _slot.__get__(x, Tensor)  # type: ignore[no-any-return]
    except AttributeError:
        return None


def _read_again(x: Tensor) -> Var:
    rare = x._rare
    if rare is None or rare.inner is not None:
        raise AttributeError("adjoint.torch: this is not there for a tensor inside of a function transform")
    return rare.memory.read_again(x)  # type: ignore[no-any-return]


def leaf_node(value: Any, tensor: Tensor | None) -> Accumulate:
    """A new leaf; without a tensor what comes to it goes nowhere."""
    where = where_of(value)
    level = LEVEL if where is None else where.level
    node: Any = new_leaf(value, level).node
    leaf = Accumulate()
    leaf.number, leaf.saved, leaf.first, leaf.second = node.number, None, None, None
    leaf.visit, leaf.shape, leaf.value, leaf.level, leaf.key = 0, node.shape, value, level, node.key
    leaf.tensor = None if tensor is None else weakref.ref(tensor)
    return leaf


def axis_of(dim: Any, ndim: int) -> int:
    """The axis that a possibly negative number means; a tensor without axes counts as one of one axis."""
    size = max(ndim, 1)
    if dim.__class__ is bool:
        raise TypeError("argument 'dim' must be int, not bool")
    try:
        dim = dim.__index__()
    except AttributeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    if not -size <= dim < size:
        if not -(1 << 63) <= dim < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
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
