"""`ArrayBox`: what a function that is differentiated is called with, in the place of an array.

A box holds a tensor that some level follows. Whatever no level follows is a plain array, so functions of this face
meet boxes where there are derivatives, and nothing else of adjoint's. A box lies on the lowest level that follows it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Decorator
from adjoint.devices import leaf_of, libraries_imported
from adjoint.tensor import Tensor, wrap


class Box:
    """What stands for a value while it is differentiated: the class of all boxes."""

    __slots__ = ("__weakref__", "_held")
    __array_priority__ = 100.0
    __hash__ = object.__hash__
    _held: Tensor[Any]

    @property
    def _tensor(self) -> Tensor[Any]:
        """The tensor of the box; that of its value once the derivative of its level was computed."""
        return _left(self._held) if self._held._device.ended else self._held

    @classmethod
    def register(cls, value_type: type) -> None:
        """Classes of containers are registered with optree, as `ad.tree` says; arrays need none."""
        raise errors.ArgumentTypeError(
            f"{cls.__name__}.register({getattr(value_type, '__name__', value_type)}): boxes are of arrays alone; a "
            'container is made known by optree.register_pytree_node(..., namespace="adjoint")'
        )

    @property
    def _value(self) -> Any:
        """The value one level further in: a box where an outer derivative follows it, else an array."""
        level = self._held.device
        assert isinstance(level, Decorator)
        if not level.differentiates:
            raise errors.TrackedError(
                f"the value of a box of shape {self._held.shape} was asked for, which differs between the examples "
                "of ad.vmap: write np.where for a choice"
            )
        return boxed_tensor(wrap(level.unwrap(self._held._array), level.inner))

    def __bool__(self) -> bool:
        return bool(getval(self))

    def __int__(self) -> int:
        return int(getval(self))  # which has no derivative

    def __str__(self) -> str:
        try:
            return f"Autograd {type(self).__name__} with value {getval(self)}"
        except errors.TrackedError:
            return f"Autograd {type(self).__name__} of shape {self._held.shape} of each example of a batch"

    __repr__ = __str__


class ArrayBox(Box):
    """An array that is differentiated, with the operators, attributes and methods of NumPy's arrays."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._tensor.shape

    @property
    def ndim(self) -> int:
        return self._tensor.ndim

    @property
    def size(self) -> int:
        return self._tensor.size

    @property
    def dtype(self) -> Any:
        return self._tensor.dtype

    @property
    def T(self) -> Any:
        return boxed_tensor(self._tensor.transpose())

    @property
    def real(self) -> Any:
        return boxed_tensor(self._tensor.real)

    @property
    def imag(self) -> Any:
        return boxed_tensor(self._tensor.imag)

    def __len__(self) -> int:
        return len(self._tensor)

    def __iter__(self) -> Iterator[Any]:
        return map(boxed_tensor, self._tensor)

    def __getitem__(self, key: Any) -> Any:
        return boxed_tensor(self._tensor[unboxed(key)])

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise errors.ArgumentTypeError(
            "'ArrayBox' object does not support item assignment, as in HIPS autograd; join parts with np.concatenate "
            "or choose with np.where. Tensors of adjoint's own can be assigned to, in a function that ad.grad takes"
        )

    def __delitem__(self, key: Any) -> NoReturn:
        raise errors.ArgumentTypeError(
            "'ArrayBox' object doesn't support item deletion; join what is left with np.concatenate, or take it by an "
            "index of places"
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> types.ModuleType:
        return sys.modules["adjoint.autograd.numpy"]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _asked(self._tensor.__array_ufunc__, (ufunc, method, *inputs), options, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if not all(issubclass(kind, (Box, Tensor, np.ndarray, np.generic)) for kind in types):
            return NotImplemented
        return boxed(self._tensor.__array_function__(function, (), unboxed(args), unboxed(options)))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), options: Any = None) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"PyTorch's {function.__name__} takes PyTorch's own tensors, and would take an ArrayBox out of its graph: "
            "write it with the functions of adjoint.autograd.numpy"
        )


def _left(x: Tensor[Any]) -> Tensor[Any]:
    """The value of a tensor without the levels that have ended, from which no derivative can be asked any more."""
    device, array = x._device, x._array
    while device.ended and isinstance(device, Decorator) and device.differentiates:
        device, array = device.inner, device.unwrap(array)
    return wrap(array, device)


def _asked(method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], inputs: Any) -> Any:
    """What a method of tensors gives, boxed; NotImplemented beside values of a kind that it does not know."""
    out = method(*unboxed(args), **unboxed(options))
    return out if out is NotImplemented else boxed(out)


def boxed_tensor(x: Tensor[Any]) -> Any:
    """A tensor as users see it: a box on the lowest level that follows it, a plain array where none does.

    A backend whose arrays are not known by their class, such as the reference, keeps its tensors.
    """
    device, array = x._device, x._array
    while isinstance(device, Decorator):
        if device.is_active(array):
            box = object.__new__(ArrayBox)
            box._held = x if device is x._device else wrap(array, device)
            return box
        device, array = device.inner, device.unwrap(array)
    native = device.to_native(array)
    if not isinstance(native, (np.ndarray, np.generic)):
        return native if leaf_of(native) is not None else wrap(array, device)
    return np.array(native) if native.ndim else np.asarray(native)[()]


def boxed(tree: Any) -> Any:
    """A tree with each tensor in it as users see it."""
    if isinstance(tree, Tensor):
        return boxed_tensor(tree)
    if tree.__class__ in trees.ATOMS or tree is None:
        return tree
    return trees.map(lambda x: boxed_tensor(x) if isinstance(x, Tensor) else x, tree)


_ATOMS = {
    np.ndarray, bool, int, float, complex, str, type(None), type(Ellipsis), slice, type, Tensor, np.bool_, np.float16,
    np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64, np.intp,
}  # fmt: skip
_FUNCTIONS = (types.FunctionType, types.MethodType)


def unboxed(x: Any) -> Any:
    """The same with tensors for boxes and for arrays of optional libraries; the object itself where there are none.

    Functions become functions of tensors.
    """
    cls = x.__class__
    if cls is ArrayBox:
        return x._tensor
    if cls in _ATOMS:
        return x
    if isinstance(x, (tuple, list)):
        parts = [v._tensor if v.__class__ is ArrayBox else v if v.__class__ in _ATOMS else unboxed(v) for v in x]
        if all([new is old for new, old in zip(parts, x, strict=True)]):
            return x
        return cls(*parts) if hasattr(cls, "_fields") else list(parts) if isinstance(x, list) else tuple(parts)
    if cls is dict:
        entries: dict[Any, Any] = x
        values = {k: unboxed(v) for k, v in entries.items()}
        return values if any([values[k] is not v for k, v in entries.items()]) else x
    if isinstance(x, _FUNCTIONS):
        return lambda *args, **options: unboxed(x(*boxed(args), **boxed(options)))
    if libraries_imported() and (leaf := leaf_of(x)) is not None:
        return wrap(leaf.from_native(x), leaf)
    return x


def tree_unboxed(tree: Any) -> Any:
    """A tree of any containers with tensors for the boxes in it."""
    return unboxed(tree) if tree.__class__ in trees.ATOMS or tree is None else trees.map(unboxed, tree)


def has_tensors(x: Any) -> bool:
    """Whether there is a tensor in what `unboxed` gave."""
    if isinstance(x, (tuple, list)):
        return any([has_tensors(v) for v in x])
    return isinstance(x, Tensor) or (x.__class__ is dict and has_tensors(list(x.values())))


def conjugated(x: Any) -> Any:
    """The complex conjugate of a number, an array or a tensor, and what is real as it is."""
    if isinstance(x, complex):
        return x.conjugate()
    return x.conj() if getattr(getattr(x, "dtype", None), "kind", "f") == "c" else x


def isbox(x: Any) -> bool:
    """Whether a value is a box."""
    return isinstance(x, Box)


def getval(x: Any) -> Any:
    """The value of a box without all levels: no derivative flows through it. Anything else as it is."""
    while isinstance(x, Box):
        x = x._value
    return x


# --- operators -----------------------------------------------------------------------------------

_OPERANDS = (np.ndarray, np.generic, int, float, complex)


def _operator(name: str) -> Callable[[ArrayBox, Any], Any]:
    method = getattr(Tensor, name)

    def body(self: ArrayBox, other: Any) -> Any:
        if other.__class__ is ArrayBox:
            other = other._tensor
        elif not isinstance(other, _OPERANDS):
            other = unboxed(other)
            if isinstance(other, (list, tuple)):
                from adjoint.functions.creation import asarray

                other = asarray(other) if has_tensors(other) else np.asarray(other)
            elif not isinstance(other, Tensor):
                return NotImplemented
        out = method(self._tensor, other)
        return out if out is NotImplemented else boxed(out)

    body.__name__ = body.__qualname__ = name
    return body


for _name in "add sub mul truediv floordiv mod divmod pow matmul".split():
    for _full in (f"__{_name}__", f"__r{_name}__"):
        setattr(ArrayBox, _full, _operator(_full))
for _name in "lt le gt ge eq ne and or xor".split():
    setattr(ArrayBox, f"__{_name}__", _operator(f"__{_name}__"))


def _unary(name: str) -> Callable[[ArrayBox], Any]:
    method = getattr(Tensor, name)

    def body(self: ArrayBox) -> Any:
        return boxed_tensor(method(self._tensor))

    body.__name__ = body.__qualname__ = name
    return body


for _name in "neg pos abs invert".split():
    setattr(ArrayBox, f"__{_name}__", _unary(f"__{_name}__"))
ArrayBox.__hash__ = Box.__hash__  # type: ignore[method-assign]  # `==` compares elements, boxes are keys by identity

# --- methods of NumPy's arrays, which are its functions ---


def _method(name: str) -> Callable[..., Any]:
    def body(self: ArrayBox, *args: Any, **options: Any) -> Any:
        return boxed(getattr(np, name)(self._tensor, *unboxed(args), **unboxed(options)))

    body.__name__ = body.__qualname__ = name
    return body


for _name in (
    "all any argmax argmin argpartition argsort clip cumprod cumsum diagonal dot max mean min nonzero prod ptp ravel "
    "repeat round searchsorted squeeze std sum swapaxes take trace var"
).split():
    setattr(ArrayBox, _name, _method(_name))


def _of_tensor(name: str) -> Callable[..., Any]:
    def body(self: ArrayBox, *args: Any, **options: Any) -> Any:
        return boxed(getattr(self._tensor, name)(*unboxed(args), **unboxed(options)))

    body.__name__ = body.__qualname__ = name
    return body


for _name in "astype choose compress conj conjugate copy flatten reshape transpose".split():
    setattr(ArrayBox, _name, _of_tensor(_name))
