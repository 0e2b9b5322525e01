"""`Tensor`: an array and the backend it belongs to. All sugar of the user's type lives here.

Methods marked `@bound` are declared here with their types, and get their bodies from the functions
of the same name in `adjoint.functions`, so that `x.sum()` and `ad.sum(x)` are one thing.
"""

from __future__ import annotations

import math
import operator
import reprlib
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeGuard, TypeVar

import numpy as np

from adjoint import dtypes, errors, trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import home
from adjoint.dtypes import DType
from adjoint.graph.nodes import Node
from adjoint.primitives import TABLE, Shape, Spec, result_spec

if TYPE_CHECKING:
    from adjoint.functions.gradients import Gradients

B = TypeVar("B", bound=Backend, covariant=True)
J = TypeVar("J", bound=Backend)
F = TypeVar("F", bound=Callable[..., Any])

Axis: TypeAlias = int | Sequence[int] | None
Scalar = (bool, int, float, complex)  # Python's own; NumPy's count as arrays

_new = object.__new__
_BOOL = dtypes.bool
# what integers are made float for, and booleans integers
_FLOATING = frozenset("divide atan2 hypot logaddexp copysign nextafter".split())
_NUMERIC = frozenset(
    "add subtract multiply maximum minimum floor_divide remainder pow bitwise_left_shift bitwise_right_shift".split()
)
# what complex numbers have no answer to
_ORDERED = frozenset("less less_equal greater greater_equal maximum minimum floor_divide remainder".split())
# what has an answer for integers of any size
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_LOGIC = frozenset("logical_and logical_or logical_xor".split())
# what else a data type must be, for errors
_WANTED = {
    "negative": "numbers; of booleans there is ~",
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor bitwise_invert".split(), "integers or booleans"),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), "integers"),
    **dict.fromkeys("atan2 hypot logaddexp copysign nextafter".split(), "real numbers"),
}


def _operator(name: str, *, reflected: bool = False) -> Callable[[F], F]:
    """The body of a binary operator: straight to the primitive where operands agree, else `binary`."""
    comparison = TABLE[name].dtype(dtypes.float32) is not dtypes.float32
    picky = name in _FLOATING | _NUMERIC | _ORDERED  # the dtype may have to change first, or be refused
    direct = "f" if name in _ORDERED else "fc"

    def body(self: Tensor[Any], other: Any) -> Any:
        backend, dtype = self._device, self._dtype
        kind = other.__class__
        if kind is Tensor:
            if other._device is not backend or other._dtype is not dtype or (picky and dtype.kind not in direct):
                return binary(name, self, other)
            value = other._array
        elif (kind is float or kind is int) and dtype.kind in direct:
            value = other
        else:
            return binary(name, other, self) if reflected else binary(name, self, other)
        try:
            if value is other and other:  # zeros differ by their sign, which the cache does not see
                value = backend.weak(other, dtype)
            if reflected:
                array = getattr(backend, name)(value, self._array)
            else:
                array = getattr(backend, name)(self._array, value)
        except Exception as error:
            raise explain(error, backend, name, (self._array, getattr(other, "_array", other)), {}) from error
        out = _new(Tensor)
        out._array = array
        out._device = backend
        out._dtype = _BOOL if comparison else dtype
        return out

    return lambda method: _named(body, method)


def _named(body: Any, method: Any) -> Any:
    body.__name__, body.__qualname__, body.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return body


def _assigning(name: str) -> Callable[[F], F]:
    """The body of `+=` and its like: the object gets the new value; shape, dtype and device stay."""

    def body(self: Tensor[Any], other: Any) -> Any:
        refuse_leaf(self, "augmented assignment")
        out = binary(name, self, other)
        if out is NotImplemented:
            return out
        change(self, out, f"{name} in place")
        return self

    return lambda method: _named(body, method)


def bound(method: F) -> F:
    """Marks a method whose body is the function of the same name in `adjoint.functions`."""
    method._bound = True  # type: ignore[attr-defined]
    return method


class Tensor(Generic[B]):
    """An n-dimensional array on a backend, with NumPy's broadcasting and the array API's names.

    Made by `ad.tensor`, `ad.asarray` and the creation functions. Tensors are values: an assignment
    gives the object a new value and never changes what a graph saved.

    >>> import adjoint as ad
    >>> x = ad.tensor([1.0, 2.0, 3.0])
    >>> (x * x).sum()
    Tensor(14., dtype=float32, device=autodiff<numpy>)
    """

    __slots__ = ("__weakref__", "_array", "_device", "_dtype")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    _array: Array
    _device: Backend
    _dtype: DType

    def __new__(cls, *args: Any, **options: Any) -> Tensor[B]:
        raise TypeError("tensors are made by ad.tensor(values), ad.asarray(array) and the creation functions")

    # --- what it is ---

    @property
    def shape(self) -> Shape:
        """The sizes of its axes."""
        return tuple(self._array.shape)

    @property
    def dtype(self) -> DType:
        """The data type of its elements."""
        return self._dtype

    @property
    def device(self) -> B:
        """The backend that runs its operations."""
        return self._device  # type: ignore[return-value]

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self._array.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Tensor[B]:
        """The transpose of a matrix.

        Raises ShapeError unless there are two axes; `mT` transposes stacks of matrices.
        """
        if self.ndim != 2:
            raise errors.ShapeError(f"T: expected a matrix, received shape {self.shape}; use mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Tensor[B]:
        """The transposes of a stack of matrices: the last two axes change places."""
        if self.ndim < 2:
            raise errors.ShapeError(f"mT: expected two axes or more, received shape {self.shape}")
        return self.permute_dims((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    # --- operators ---

    @_operator("add")
    def __add__(self, other: Any) -> Tensor[B]: ...
    @_operator("add", reflected=True)
    def __radd__(self, other: Any) -> Tensor[B]: ...
    @_operator("subtract")
    def __sub__(self, other: Any) -> Tensor[B]: ...
    @_operator("subtract", reflected=True)
    def __rsub__(self, other: Any) -> Tensor[B]: ...
    @_operator("multiply")
    def __mul__(self, other: Any) -> Tensor[B]: ...
    @_operator("multiply", reflected=True)
    def __rmul__(self, other: Any) -> Tensor[B]: ...
    @_operator("divide")
    def __truediv__(self, other: Any) -> Tensor[B]: ...
    @_operator("divide", reflected=True)
    def __rtruediv__(self, other: Any) -> Tensor[B]: ...
    @_operator("floor_divide")
    def __floordiv__(self, other: Any) -> Tensor[B]: ...
    @_operator("floor_divide", reflected=True)
    def __rfloordiv__(self, other: Any) -> Tensor[B]: ...
    @_operator("remainder")
    def __mod__(self, other: Any) -> Tensor[B]: ...
    @_operator("remainder", reflected=True)
    def __rmod__(self, other: Any) -> Tensor[B]: ...
    @_operator("pow", reflected=True)
    def __rpow__(self, other: Any) -> Tensor[B]: ...

    def __pow__(self, other: Any) -> Tensor[B]:
        if other.__class__ in (int, float) and other == 2 and self._dtype.kind in "fc":
            return unary("square", self)
        return binary("pow", self, other)  # type: ignore[no-any-return]

    @_operator("less")
    def __lt__(self, other: Any) -> Tensor[B]: ...
    @_operator("less_equal")
    def __le__(self, other: Any) -> Tensor[B]: ...
    @_operator("greater")
    def __gt__(self, other: Any) -> Tensor[B]: ...
    @_operator("greater_equal")
    def __ge__(self, other: Any) -> Tensor[B]: ...
    @_operator("equal")
    def __eq__(self, other: Any) -> Tensor[B]: ...  # type: ignore[override]
    @_operator("not_equal")
    def __ne__(self, other: Any) -> Tensor[B]: ...  # type: ignore[override]

    def __and__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_and", self, other)  # type: ignore[no-any-return]

    def __or__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_or", self, other)  # type: ignore[no-any-return]

    def __xor__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_xor", self, other)  # type: ignore[no-any-return]

    def __lshift__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_left_shift", self, other)  # type: ignore[no-any-return]

    def __rshift__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_right_shift", self, other)  # type: ignore[no-any-return]

    def __rlshift__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_left_shift", other, self)  # type: ignore[no-any-return]

    def __rrshift__(self, other: Any) -> Tensor[B]:
        return binary("bitwise_right_shift", other, self)  # type: ignore[no-any-return]

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    @_assigning("add")
    def __iadd__(self, other: Any) -> Tensor[B]: ...
    @_assigning("subtract")
    def __isub__(self, other: Any) -> Tensor[B]: ...
    @_assigning("multiply")
    def __imul__(self, other: Any) -> Tensor[B]: ...
    @_assigning("divide")
    def __itruediv__(self, other: Any) -> Tensor[B]: ...
    @_assigning("floor_divide")
    def __ifloordiv__(self, other: Any) -> Tensor[B]: ...
    @_assigning("remainder")
    def __imod__(self, other: Any) -> Tensor[B]: ...
    @_assigning("pow")
    def __ipow__(self, other: Any) -> Tensor[B]: ...
    @_assigning("bitwise_and")
    def __iand__(self, other: Any) -> Tensor[B]: ...
    @_assigning("bitwise_or")
    def __ior__(self, other: Any) -> Tensor[B]: ...
    @_assigning("bitwise_xor")
    def __ixor__(self, other: Any) -> Tensor[B]: ...
    @_assigning("bitwise_left_shift")
    def __ilshift__(self, other: Any) -> Tensor[B]: ...
    @_assigning("bitwise_right_shift")
    def __irshift__(self, other: Any) -> Tensor[B]: ...

    def __neg__(self) -> Tensor[B]:
        return unary("negative", self)

    def __pos__(self) -> Tensor[B]:
        return same(self)

    def __abs__(self) -> Tensor[B]:
        return unary("abs", self)

    def __invert__(self) -> Tensor[B]:
        return unary("bitwise_invert", self)

    @bound
    def __matmul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rmatmul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __imatmul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __getitem__(self, key: Any) -> Tensor[B]: ...
    @bound
    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __delitem__(self, key: Any) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"del: a tensor keeps its shape, here {self.shape}; join what is left, as in ad.concat([x[:i], x[i + 1:]])"
        )

    # --- as a container ---

    def __len__(self) -> int:
        if not self.ndim:
            raise errors.ArgumentTypeError("len: a 0-d tensor has no length; it is one element, item() gives it")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor[B]]:
        if not self.ndim:
            raise errors.ArgumentTypeError("iteration over a 0-d tensor: it is one element, item() gives it")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        equal = self == value
        return bool(equal.any()) if isinstance(equal, Tensor) else equal

    # --- to Python and to other libraries ---

    @bound
    def numpy(self) -> np.ndarray[Any, Any]: ...
    @bound
    def native(self) -> Any: ...
    @bound
    def compute(self) -> np.ndarray[Any, Any]: ...
    @bound
    def persist(self) -> Tensor[B]: ...
    @bound
    def item(self) -> Any: ...
    @bound
    def tolist(self) -> Any: ...
    @bound
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    @bound
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
    @bound
    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any: ...
    @bound
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType: ...
    @bound
    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    @bound
    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __bool__(self) -> bool:
        if self.size != 1:
            raise errors.ArgumentError(
                f"the truth of a tensor of shape {self.shape} is ambiguous; use .any() or .all(), or ad.where"
            )
        return bool(self.item())

    def __int__(self) -> int:
        value = _only(self, "int")
        if value - value != 0:  # infinite, or nan
            kind = errors.ArgumentError if value != value else errors.RangeError
            raise kind(f"int: {value} is no integer; isfinite tells where numbers are")
        return int(value)

    def __float__(self) -> float:
        return float(_only(self, "float"))

    def __complex__(self) -> complex:
        return complex(_only(self, "complex"))

    def __index__(self) -> int:
        if self._dtype.kind not in "iu" or self.ndim:
            raise errors.ArgumentTypeError(
                f"only 0-d integer tensors are indices; received {self._dtype} of shape {self.shape}"
            )
        return int(self.item())

    @bound
    def __repr__(self) -> str: ...
    @bound
    def _repr_html_(self) -> str: ...
    @bound
    def __format__(self, spec: str) -> str: ...
    @bound
    def __reduce__(self) -> Any: ...
    @bound
    def __copy__(self) -> Tensor[B]: ...
    @bound
    def __deepcopy__(self, memo: Any) -> Tensor[B]: ...
    @bound
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor[Any]: ...
    @bound
    def astype(self, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor[Any]: ...

    # --- array functions as methods ---

    @bound
    def sum(self, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def prod(self, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def var(self, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def std(self, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def cumulative_sum(self, axis: int | None = None) -> Tensor[B]: ...
    @bound
    def cumulative_prod(self, axis: int | None = None) -> Tensor[B]: ...
    @bound
    def reshape(self, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor[B]: ...
    @bound
    def permute_dims(self, axes: Sequence[int]) -> Tensor[B]: ...
    @bound
    def expand_dims(self, axis: int | Sequence[int] = 0) -> Tensor[B]: ...
    @bound
    def squeeze(self, axis: Axis = None) -> Tensor[B]: ...
    @bound
    def broadcast_to(self, shape: int | Sequence[int]) -> Tensor[B]: ...
    @bound
    def flip(self, axis: Axis = None) -> Tensor[B]: ...
    @bound
    def take(self, indices: Any, *, axis: int | None = None) -> Tensor[B]: ...
    @bound
    def sort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor[B]: ...
    @bound
    def argsort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor[B]: ...
    @bound
    def matmul(self, other: Any) -> Tensor[B]: ...
    @bound
    def clip(self, min: Any = None, max: Any = None) -> Tensor[B]: ...
    @bound
    def abs(self) -> Tensor[B]: ...
    @bound
    def sign(self) -> Tensor[B]: ...
    @bound
    def round(self) -> Tensor[B]: ...
    @bound
    def floor(self) -> Tensor[B]: ...
    @bound
    def ceil(self) -> Tensor[B]: ...
    @bound
    def sqrt(self) -> Tensor[B]: ...
    @bound
    def square(self) -> Tensor[B]: ...
    @bound
    def exp(self) -> Tensor[B]: ...
    @bound
    def log(self) -> Tensor[B]: ...
    @bound
    def sin(self) -> Tensor[B]: ...
    @bound
    def cos(self) -> Tensor[B]: ...
    @bound
    def tanh(self) -> Tensor[B]: ...
    @bound
    def conj(self) -> Tensor[B]: ...

    @property
    def real(self) -> Tensor[B]:
        """The real part; the tensor itself if it is real."""
        return unary("real", self) if self._dtype.kind == "c" else same(self)

    @property
    def imag(self) -> Tensor[B]:
        """The imaginary part of a complex tensor."""
        if self._dtype.kind != "c":
            raise errors.DtypeError(f"imag: expected a complex tensor, received {self._dtype}")
        return unary("imag", self)

    # --- gradients ---

    @bound
    def require_grad(self) -> Tensor[B]: ...
    @bound
    def set_require_grad(self, require: bool) -> Tensor[B]: ...
    @bound
    def is_require_grad(self) -> bool: ...
    @bound
    def is_tracked(self) -> bool: ...
    @bound
    def with_value(self, value: Any) -> Tensor[B]: ...
    @bound
    def detach(self) -> Tensor[B]: ...
    @bound
    def backward(
        self: Tensor[Autodiff[J]],
        cotangent: Any = None,
        retain_graph: bool = False,
        wrt: Tensor[Autodiff[J]] | Sequence[Tensor[Autodiff[J]]] | None = None,
    ) -> Gradients[J]: ...
    @bound
    def grad(self: Tensor[Autodiff[J]], grads: Gradients[J]) -> Tensor[J] | None: ...
    @bound
    def grad_remove(self: Tensor[Autodiff[J]], grads: Gradients[J]) -> Tensor[J] | None: ...
    @bound
    def grad_replace(self: Tensor[Autodiff[J]], grads: Gradients[J], g: Any) -> None: ...
    @bound
    def inner(self: Tensor[Autodiff[J]]) -> Tensor[J]: ...

    @property
    def grad_fn(self) -> Node | None:
        """The node that recorded this tensor, or None for leaves and constants."""
        node = getattr(self._array, "node", None)
        return node if isinstance(node, Node) and node.parents != () else None


def _only(x: Tensor[Any], name: str) -> Any:
    """The only element, for a conversion to one of Python's numbers."""
    if x.size != 1:
        raise errors.ArgumentTypeError(f"{name}: expected one element, received shape {x.shape}; use tolist()")
    if x._dtype.kind == "c" and name != "complex":
        raise errors.DtypeError(f"{name}: expected a real number, received {x._dtype}; take .real, .imag or abs first")
    value = x.item()
    device = x.device
    if device.template is not device and device.tracked(x._array):  # the level of a transform
        raise errors.TrackedError(
            f"{name}() inside a transform would lose the derivative silently; x.item() reads the value, and adjoint "
            "has the functions of math"
        )
    return value


owning = threading.RLock()  # held while an owned buffer is read or written in place, and to end an ownership


class _Owner(Tensor[B]):
    """A tensor whose buffer nothing else refers to, because an assignment just made it.

    Whoever reads `_array` may keep it, so the first reader ends the ownership: the object becomes a
    plain Tensor. Only assignment looks without reading (`peek`).
    """

    __slots__ = ()

    @property
    def _array(self) -> Array:
        with owning:  # not in the middle of another thread's assignment
            self.__class__ = Tensor  # type: ignore[assignment]
        return self._array

    @_array.setter
    def _array(self, value: Array) -> None:
        _slot.__set__(self, value)

    @property
    def shape(self) -> Shape:
        return tuple(peek(self).shape)

    @property
    def ndim(self) -> int:
        return len(peek(self).shape)


trees.ATOMS.update((Tensor, _Owner))
_slot: Any = Tensor.__dict__["_array"]


def peek(x: Tensor[Any]) -> Array:
    """The array of a tensor, for a look at its shape: the caller must not keep it."""
    return _slot.__get__(x)


def owns(x: Tensor[Any]) -> bool:
    """Whether nothing but this tensor refers to its buffer."""
    return x.__class__ is _Owner


def own(x: Tensor[Any], array: Array) -> None:
    """Give the tensor a new value that nothing else refers to."""
    x.__class__ = _Owner
    _slot.__set__(x, array)


def wrap(array: Array, device: Backend) -> Tensor[Any]:
    """The tensor of an array of a backend."""
    out: Tensor[Any] = _new(Tensor)
    out._array = array
    out._device = device
    out._dtype = device.dtype_of(array)
    return out


def refuse_ended(x: Tensor[Any], what: str) -> None:
    """Raises EndedError for a tensor that a transform has left over."""
    if x._device.ended:
        raise x._device.left_over(what)


def same(x: Tensor[Any]) -> Tensor[Any]:
    """Another object with the same value: assignment to one does not change the other."""
    return wrap(x._array, x._device)


# --- how operands meet ---------------------------------------------------------------------------


def meet(*tensors: Tensor[Any]) -> Backend:
    """The backend that all tensors can be lifted to: the highest of them on one chain.

    Raises DeviceError, with both chains, where there is none.
    """
    top = tensors[0]._device
    for x in tensors[1:]:
        other = x._device
        if other is not top and not _in_chain(other, top):
            if not _in_chain(top, other):
                return _meet_as_constants(tensors)
            top = other
    return top


def _in_chain(backend: Backend, of: Backend) -> bool:
    return any(level is backend for level in of.chain())


def _meet_as_constants(tensors: Sequence[Tensor[Any]]) -> Backend:
    """A transform's level takes in constants of any level: nothing is lost with what is theirs."""
    devices = {id(x._device): x._device for x in tensors}.values()
    for top in devices:
        if top.template is not top and all(grounded(x._array, x._device, top) is not None for x in tensors):
            return top
    raise _apart(list(devices))


def _apart(devices: Sequence[Backend]) -> errors.AdjointError:
    """The error for tensors on backends none of which continues the others' chains."""
    for device in devices:
        for level in device.chain():
            if level.ended:
                return level.left_over("tensors that do not meet")
    return errors.DeviceError(
        f"tensors on {' and '.join(map(str, devices))} do not meet: neither backend is in the other's chain; move one "
        "with to_device, or go down to a common backend with inner(); of a transform's function, make what it is "
        "differentiated by and what else is tracked arguments of it, on one device"
    )


def grounded(array: Array, source: Backend, device: Backend) -> tuple[Array, Backend] | None:
    """An array and its backend, or the same constant of one further in that is in the chain of `device`."""
    while not _in_chain(source, device):
        if not isinstance(source, Decorator) or source.varies(array):
            return None
        array, source = source.unwrap(array), source.inner
    return array, source


def lifted(x: Tensor[Any], device: Backend) -> Array:
    """The array of a tensor, as a constant of `device` if it is of a backend further in.

    Raises DeviceError, or EndedError, if it is of no such backend and more than a constant.
    """
    if x._device is device:
        return x._array
    found = grounded(x._array, x._device, device)
    if found is None:
        raise _apart([x._device, device])
    return device.lift(*found)


def operand(value: Any, like: Tensor[Any], name: str) -> Tensor[Any]:
    """A tensor as it is; a copy of anything with values as a constant on the backend of `like`."""
    if isinstance(value, Tensor):
        return value
    device = like._device
    if not isinstance(value, (np.ndarray, np.generic, list, tuple)):
        adopted = device.adopted(value)
        if adopted is not None:
            return wrap(adopted, device)
    return wrap(device.from_numpy(dtypes.values_of(value, None, name), copy=True), device)


def table(values: np.ndarray[Any, Any], like: Tensor[Any], name: str) -> Tensor[Any]:
    """An array of our own as a constant beside `like`, in no wider dtype than its library has."""
    return operand(values.astype(like._device.leaf.widest(values.dtype), copy=False), like, name)


def weak(value: Any) -> TypeGuard[complex]:
    """Whether it is one of Python's own numbers, which adapt to the dtype of the tensor they meet."""
    return isinstance(value, Scalar) and not isinstance(value, np.generic)


def cast(x: Tensor[Any], dtype: DType) -> Tensor[Any]:
    """The tensor in this dtype; differentiable."""
    return x if x._dtype is dtype else run("astype", (x,), dtype=dtype)


def binary(name: str, x: Any, y: Any) -> Any:
    """An elementwise primitive of two operands, one of them a tensor, with promotion.

    Returns NotImplemented for operands that are no arrays, so that Python asks the other side; raises
    DtypeError for Python's own, which know no tensors.
    """
    pair = []
    for value, other in ((x, y), (y, x)):
        if not isinstance(value, Tensor) and not weak(value):
            if not isinstance(value, (np.ndarray, np.generic, list, tuple)) and other._device.adopted(value) is None:
                return foreign(value, other, name)
            value = operand(value, other, name)
        pair.append(value)
    x, y = pair
    if name in _LOGIC:  # all that counts of a number is whether it is zero, and numbers may be of any size
        x, y = (int(v != 0) if weak(v) and not isinstance(v, bool) else v for v in pair)
    if not isinstance(x, Tensor):
        if not isinstance(y, Tensor):
            raise errors.ArgumentError(f"{name}: expected a tensor among {x!r} and {y!r}")
        dtype = dtypes.promote_scalar(y._dtype, x)
    elif not isinstance(y, Tensor):
        dtype = dtypes.promote_scalar(x._dtype, y)
    else:
        try:
            dtype = dtypes.promote(x._dtype, y._dtype)
        except errors.DtypeError as error:
            raise errors.DtypeError(f"{name}: {error}") from None
    if dtype.kind == "c" and name in _ORDERED:
        raise errors.DtypeError(f"{name}: expected real numbers, received {dtype}; take abs, real or imag")
    if name in _FLOATING:
        dtype = dtypes.floating(dtype)
    elif name in _NUMERIC and dtype.kind == "b":
        dtype = dtypes.default_int
    try:
        pair = [cast(v, dtype) if isinstance(v, Tensor) else fitting(v, dtype, name) for v in (x, y)]
    except errors.RangeError:
        if name not in _COMPARISONS:
            raise
        # every element stands to an integer outside the dtype as zero does
        answer = _COMPARISONS[name](*[0 if isinstance(v, Tensor) else v for v in (x, y)])
        tensor = x if isinstance(x, Tensor) else y
        return run("equal" if answer else "not_equal", (tensor, tensor))
    return run(name, pair)


def foreign(value: Any, like: Tensor[Any], name: str) -> Any:
    """NotImplemented for an operand of a class that may know tensors, or that need only be compared; else an error.

    DeviceError for an array of another library, DtypeError for Python's own: Python would take a tensor for a number
    of repetitions of a string, if it were asked.
    """
    if (leaf := home(value)) is not None:
        raise errors.DeviceError(
            f"{name}: an array on {leaf} meets a tensor on {like._device}; move the tensor with "
            f"to_device({leaf.name!r}), or take the array over with ad.asarray(array, device={like._device.name!r})"
        )
    if name in ("equal", "not_equal") or type(value).__module__ not in ("builtins", "array", "collections"):
        return NotImplemented
    raise errors.DtypeError(
        f"{name}: expected a tensor, an array or a number, received {reprlib.repr(value)} of type "
        f"{type(value).__name__}; convert it to numbers first"
    )


def fitting(scalar: Any, dtype: DType, name: str) -> Any:
    """A Python scalar that the dtype can hold; the standard knows Python's booleans among booleans only."""
    if scalar is True or scalar is False:
        return scalar if dtype.kind == "b" else int(scalar)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= scalar <= np.iinfo(dtype).max:
        raise errors.RangeError(f"{name}: {scalar} does not fit in {dtype}; convert the tensor with astype")
    return scalar


def known(x: Tensor[Any]) -> np.ndarray[Any, Any] | None:
    """All values, of a batch those of every example, for checks; None where a library has not computed them yet."""
    return x._device.known_values(x._array)


def at_hand(x: Tensor[Any]) -> np.ndarray[Any, Any] | None:
    """All values where it costs nothing to look at them, to choose a shorter way: where the leaf is NumPy."""
    return x._device.values_of(x._array) if x._device.leaf.name == "numpy" else None


def nowhere_zero(x: Tensor[Any]) -> bool:
    """Whether it is known at no cost that no element is zero."""
    values = at_hand(x)
    return values is not None and bool(values.all())


def verified(
    x: Tensor[Any], test: Callable[[np.ndarray[Any, Any]], bool], error: Callable[[np.ndarray[Any, Any]], Exception]
) -> Tensor[Any]:
    """The tensor, with values that pass a test: now, or when they are computed, each part of them.

    Test and error may be sent to other processes: they hold no tensors.
    """
    values = known(x)
    if values is None:
        return wrap(x._device.verified(x._array, test, error), x._device)
    if values.size and not test(values):
        raise error(values)
    return x


def unary(name: str, x: Tensor[Any]) -> Tensor[Any]:
    """An elementwise primitive of one operand that keeps the dtype, or is of its own."""
    return run(name, (x,))  # type: ignore[no-any-return]


def run(name: str, operands: Sequence[Any], **parameters: Any) -> Any:
    """Run a primitive on tensors and Python scalars that already have their dtypes.

    Tensors are lifted to where they meet. A failing call is explained as a typed error. A primitive
    of several results gives a tuple.
    """
    first = operands[0]
    if len(operands) == 1:
        device, arrays = first._device, [first._array]
    else:
        device = meet(*[x for x in operands if isinstance(x, Tensor)])
        arrays = [lifted(x, device) if isinstance(x, Tensor) else x for x in operands]
    try:
        out = getattr(device, name)(*arrays, **parameters)
    except Exception as error:
        raise explain(error, device, name, arrays, parameters) from error
    if isinstance(out, tuple):
        return tuple([wrap(array, device) for array in out])
    if not TABLE[name].keeps_dtype or not isinstance(first, Tensor):
        return wrap(out, device)
    result: Tensor[Any] = _new(Tensor)
    result._array, result._device, result._dtype = out, device, first._dtype
    return result


def explain(
    error: Exception, device: Backend, name: str, arrays: Sequence[Any], parameters: dict[str, Any]
) -> Exception:
    """The error a user should see for a primitive that failed: what the shape rule finds, or a wrap."""
    vague = isinstance(error, (errors.ShapeError, errors.SingularError)) and not TABLE[name].dynamic
    if isinstance(error, errors.AdjointError) and not vague:
        return error
    specs = [Spec(tuple(a.shape), device.dtype_of(a)) if hasattr(a, "shape") else a for a in arrays]
    try:
        if not TABLE[name].dynamic:
            result_spec(TABLE[name], specs, parameters)
    except errors.ShapeError as found:
        return found if str(found).startswith(name) else type(found)(f"{name}: {found}")
    received = ", ".join(f"{s.dtype} of shape {s.shape}" if isinstance(s, Spec) else repr(s) for s in specs)
    if isinstance(error, np.linalg.LinAlgError):
        fault = "not positive definite" if name == "cholesky" else "singular"
        if name.startswith(("eig", "svd", "pinv", "lstsq")):
            return errors.SingularError(
                f"{name}: no singular values or eigenvalues were found; received {received}; LAPACK finds none where "
                "nan or inf stand among the elements, which ad.isfinite shows"
            )
        return errors.SingularError(
            f"{name}: a matrix is {fault}; received {received}; a small multiple of the identity added to it may help"
        )
    if isinstance(error, errors.AdjointError):
        return error
    if isinstance(error, NotImplementedError):
        return errors.UnsupportedPrimitive(f"{device.leaf} cannot run the primitive {name!r} on {received}: {error}")
    if isinstance(error, TypeError) and name in _WANTED:
        return errors.DtypeError(f"{name}: expected {_WANTED[name]}, received {received}; convert with astype")
    kinds: list[tuple[type[Exception], type[errors.AdjointError]]] = [
        (IndexError, errors.OutOfRangeError),
        (OverflowError, errors.RangeError),
        (TypeError, errors.DtypeError),
        (ValueError, errors.ArgumentError),
    ]
    for builtin, ours in kinds:
        if isinstance(error, builtin):
            return ours(f"{name}: {error}; received {received or parameters}")
    return error


# --- assignment ----------------------------------------------------------------------------------


def refuse_leaf(x: Tensor[Any], what: str) -> None:
    """Leaf tensors are what gradients are asked for: they keep their value.

    The arguments of a transform's function do not matter to it as objects.
    """
    node = getattr(peek(x), "node", None)
    if node is not None and node.parents == () and x._device.template is x._device:
        raise errors.GraphError(
            f"{what} on a leaf tensor of shape {x.shape}: the graph answers for its value; w.with_value(v) gives a "
            "new leaf, w.detach() a constant that can be assigned to"
        )


def change(x: Tensor[Any], value: Tensor[Any], what: str) -> None:
    """Give the object `x` a new value of the same shape, dtype and backend."""
    if value._device is not x._device:
        raise errors.DeviceError(
            f"{what}: a tensor on {x._device} cannot take a value on {value._device}; detach() the value, or start "
            "from a tensor there"
        )
    if value.shape != x.shape:
        raise errors.ShapeError(f"{what}: the tensor has shape {x.shape} and the result {value.shape}; shapes stay")
    if value._dtype is not x._dtype:
        raise errors.DtypeError(
            f"{what}: the tensor is {x._dtype} and the result {value._dtype}; dtypes stay, so write x = x.astype(...)"
        )
    x._array = value._array


def bind(functions: dict[str, Callable[..., Any]]) -> None:
    """Give the methods marked `@bound` their bodies; called once, by `adjoint.functions`."""
    for name, method in list(vars(Tensor).items()):
        if getattr(method, "_bound", False):
            setattr(Tensor, name, functions[name])
