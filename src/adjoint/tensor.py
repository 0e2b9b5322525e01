"""`Tensor`: an array and the backend it belongs to. All sugar of the user's type lives here.

Methods marked `@bound` are declared here with their types. Their bodies are the functions of the same name in
`adjoint.functions`, which are imported when they are first asked for, so that `x.sum()` and `ad.sum(x)` are one thing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Protocol, TypeAlias, overload

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.counterparts import OBJECTS, scipy_counterpart, torch_counterpart
from adjoint.locks import lock
from adjoint.methods import Absent, bound
from adjoint.variables import B, J

if TYPE_CHECKING:  # the class comes with `import adjoint`, and what computes when it is first used
    from adjoint.backend import Array, Backend
    from adjoint.decorators.autodiff import Autodiff
    from adjoint.dtypes import DType
    from adjoint.functions.gradients import Gradients
    from adjoint.graph.nodes import Node
    from adjoint.primitives import Shape

Axis: TypeAlias = int | Sequence[int] | None
Scalar = (bool, int, float, complex)  # Python's own; NumPy's count as arrays

allocate = object.__new__  # where a call of `wrap` would count


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
    __pandas_priority__ = 5000  # above DataFrames, so that pandas leaves operators to tensors
    if TYPE_CHECKING:
        __hash__: ClassVar[None]  # type: ignore[assignment]
    else:

        def __hash__(self) -> NoReturn:
            raise errors.ArgumentTypeError(
                "unhashable type: 'Tensor'; its == compares elements, so it is no key of a dict or a set: use id(x) or "
                "a list of pairs; of gradients look up grads[x], or take grads.items()"
            )

    _array: Array
    _device: Backend
    _dtype: DType

    def __new__(cls, *args: Any, **options: Any) -> Tensor[B]:
        raise TypeError("tensors are made by ad.tensor(values), ad.asarray(array) and the creation functions")

    # --- what it is ---

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in OBJECTS["Tensor"]]

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
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self._dtype.itemsize

    @property
    def T(self) -> Tensor[B]:
        """The transpose of a matrix; a vector is its own.

        Raises ShapeError for more axes: `mT` transposes stacks of matrices.
        """
        if self.ndim > 2:
            raise errors.ShapeError(
                f"T: expected a matrix, received shape {self.shape}; mT transposes stacks of matrices, "
                f"ad.permute_dims(x, {tuple(range(self.ndim))[::-1]}) reverses all axes"
            )
        return self.mT if self.ndim == 2 else same(self)

    @property
    def mT(self) -> Tensor[B]:
        """The transposes of a stack of matrices: the last two axes change places."""
        if self.ndim < 2:
            raise errors.ShapeError(f"mT: expected two axes or more, received shape {self.shape}")
        return self.permute_dims((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    # --- operators ---

    @bound
    def __add__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __radd__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __sub__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rsub__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __mul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rmul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __truediv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rtruediv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __floordiv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rfloordiv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __mod__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rmod__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __divmod__(self, other: Any) -> tuple[Tensor[B], Tensor[B]]: ...
    @bound
    def __rdivmod__(self, other: Any) -> tuple[Tensor[B], Tensor[B]]: ...
    @bound
    def __pow__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rpow__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __lt__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __le__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __gt__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ge__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __eq__(self, other: Any) -> Tensor[B]: ...  # type: ignore[override]
    @bound
    def __ne__(self, other: Any) -> Tensor[B]: ...  # type: ignore[override]
    @bound
    def __and__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rand__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __or__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ror__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __xor__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rxor__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __lshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rlshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __rrshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __iadd__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __isub__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __imul__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __itruediv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ifloordiv__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __imod__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ipow__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __iand__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ior__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ixor__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __ilshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __irshift__(self, other: Any) -> Tensor[B]: ...
    @bound
    def __neg__(self) -> Tensor[B]: ...
    @bound
    def __pos__(self) -> Tensor[B]: ...
    @bound
    def __abs__(self) -> Tensor[B]: ...
    @bound
    def __invert__(self) -> Tensor[B]: ...

    def __round__(self, digits: int | None = None) -> Tensor[B]:
        return self.round(0 if digits is None else digits)

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
    def item(self, *index: Any) -> Any: ...
    @bound
    def tolist(self) -> Any: ...

    if TYPE_CHECKING:  # what NumPy's functions take, without array * tensor being an array, as it were with __array__

        def __buffer__(self, flags: int, /) -> memoryview: ...

    else:

        @bound
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...

    @bound
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
    @bound
    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any: ...
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), options: Any = None) -> NoReturn:
        name = function.__name__
        ours = torch_counterpart(name)
        raise errors.ArgumentTypeError(
            f"PyTorch's {name} takes PyTorch's own tensors: "
            + (f"{ours} is for tensors of adjoint, and " if ours else "")
            + "x.to_device('torch').native() is the array of one there, which leaves the graph"
        )

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

    @bound
    def __bool__(self) -> bool: ...
    @bound
    def __int__(self) -> int: ...
    @bound
    def __float__(self) -> float: ...
    @bound
    def __complex__(self) -> complex: ...

    def __trunc__(self) -> int:
        return int(self)

    def __index__(self) -> int:
        if self._dtype.kind not in "iu" or self.ndim:
            raise errors.ArgumentTypeError(
                f"only 0-d integer tensors are indices; received {self._dtype} of shape {self.shape}, of which "
                "x.astype(ad.int64) makes integers"
            )
        return int(self._device.to_numpy(self._array).item())

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
    def astype(self, dtype: Any, *, copy: bool = True, device: Any = None) -> Tensor[Any]: ...

    # --- array functions as methods ---

    @bound
    def sum(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]: ...
    @bound
    def prod(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor[B]: ...
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
    def reshape(
        self, shape: int | Sequence[int], *sizes: int, order: str | None = "C", copy: bool | None = None
    ) -> Tensor[B]: ...
    @bound
    def ravel(self, order: str | None = "C") -> Tensor[B]: ...
    @bound
    def flatten(self, order: str | None = "C") -> Tensor[B]: ...
    @bound
    def copy(self, order: str | None = "C") -> Tensor[B]: ...
    @bound
    def transpose(self, *axes: int | Sequence[int] | None) -> Tensor[B]: ...
    @bound
    def swapaxes(self, axis1: int, axis2: int, /) -> Tensor[B]: ...
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
    def repeat(self, repeats: Any, /, axis: int | None = None) -> Tensor[B]: ...
    @bound
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor[B]: ...
    @bound
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor[B]: ...
    @bound
    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Tensor[B]: ...
    @bound
    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Tensor[B]: ...
    @bound
    def nonzero(self) -> tuple[Tensor[B], ...]: ...
    @bound
    def take(self, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Tensor[B]: ...
    @bound
    def compress(self, condition: Any, axis: int | None = None) -> Tensor[B]: ...
    @bound
    def choose(self, choices: Any, *, mode: str = "raise") -> Tensor[B]: ...
    @bound
    def argsort(self, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor[B]: ...
    @bound
    def argpartition(self, kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor[B]: ...
    @bound
    def searchsorted(
        self, values: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None
    ) -> Tensor[B]: ...
    @bound
    def matmul(self, other: Any) -> Tensor[B]: ...
    @bound
    def dot(self, other: Any, /) -> Tensor[B]: ...
    @bound
    def fill(self, value: Any) -> None: ...
    @bound
    def put(self, indices: Any, values: Any, mode: str = "raise") -> None: ...
    @bound
    def sort(self, *args: Any, **options: Any) -> NoReturn: ...
    @bound
    def partition(self, *args: Any, **options: Any) -> NoReturn: ...
    @bound
    def resize(self, *args: Any, **options: Any) -> NoReturn: ...
    @bound
    def clip(self, min: Any = None, max: Any = None) -> Tensor[B]: ...
    @bound
    def abs(self) -> Tensor[B]: ...
    @bound
    def sign(self) -> Tensor[B]: ...
    @bound
    def round(self, decimals: int = 0) -> Tensor[B]: ...
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
    @bound
    def conjugate(self) -> Tensor[B]: ...

    @bound  # type: ignore[prop-decorator]
    @property
    def real(self) -> Tensor[B]: ...
    @bound  # type: ignore[prop-decorator]
    @property
    def imag(self) -> Tensor[B]: ...

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
    @overload
    def backward(
        self: Tensor[Autodiff[J]],
        cotangent: Any = None,
        *,
        retain_graph: bool | None = None,
        create_graph: Literal[False] | None = None,
        wrt: Tensor[Autodiff[J]] | Sequence[Tensor[Autodiff[J]]] | None = None,
    ) -> Gradients[J]: ...
    @overload
    def backward(
        self: Tensor[Autodiff[J]],
        cotangent: Any = None,
        *,
        retain_graph: bool | None = None,
        create_graph: Literal[True],
        wrt: Tensor[Autodiff[J]] | Sequence[Tensor[Autodiff[J]]] | None = None,
    ) -> Gradients[Autodiff[J]]: ...
    @overload
    def backward(
        self: Tensor[Autodiff[J]],
        cotangent: Any = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool | None,
        wrt: Tensor[Autodiff[J]] | Sequence[Tensor[Autodiff[J]]] | None = None,
    ) -> Gradients[Any]: ...
    @bound
    def backward(
        self: Any,
        cotangent: Any = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool | None = None,
        wrt: Any = None,
    ) -> Gradients[Any]: ...
    @bound
    def grad(self: Tensor[Autodiff[Any]], grads: Gradients[J]) -> Tensor[J] | None: ...
    @bound
    def grad_remove(self: Tensor[Autodiff[Any]], grads: Gradients[J]) -> Tensor[J] | None: ...
    @bound
    def grad_replace(self: Tensor[Autodiff[Any]], grads: Gradients[Any], g: Any) -> None: ...
    @bound
    def inner(self: Tensor[Autodiff[J]]) -> Tensor[J]: ...

    @property
    def grad_fn(self) -> Node | None:
        """The node that recorded this tensor, or None for leaves and constants."""
        from adjoint.graph.nodes import Node

        node = getattr(self._array, "node", None)
        return node if isinstance(node, Node) and node.parents != () else None


def refused_by_scipy() -> errors.ArgumentTypeError | None:
    """The error where a function of SciPy's asks for what tensors have not; None where another one asks."""
    from adjoint.lines import asked_by  # which `import adjoint` does without

    asked = asked_by()
    if asked is None:
        return None
    ours = scipy_counterpart(asked)
    use = f"for them there is {ours}" if ours else "ad.external gives a function of NumPy arrays its derivatives"
    return errors.ArgumentTypeError(f"{asked} does not take tensors: {use}; x.detach().numpy() leaves the graph")


class Sought(Absent):
    """An absent name that SciPy looks for in a matrix, which it gives up without a reason: its caller is told one."""

    def __get__(self, x: Any, cls: type) -> Any:
        if x is not None and (error := refused_by_scipy()) is not None:
            raise error
        super().__get__(x, cls)


for _name in OBJECTS["Tensor"]:
    setattr(Tensor, _name, Absent(_name))
for _name in ("matvec", "strides"):
    setattr(Tensor, _name, Sought(_name))

unique_lock = lock()  # held while an owned buffer is read or written in place, and to end an ownership


class UniqueTensor(Tensor[B]):
    """A tensor whose buffer nothing else refers to, because an assignment just made it.

    Whoever reads `_array` may keep it, so the first reader ends the ownership: the object becomes a
    plain Tensor. Only assignment looks without reading (`raw_array`).
    """

    __slots__ = ()

    @property
    def _array(self) -> Array:
        with unique_lock:  # not in the middle of another thread's assignment
            self.__class__ = Tensor  # type: ignore[assignment]
        return self._array

    @_array.setter
    def _array(self, value: Array) -> None:
        _slot.__set__(self, value)

    @property
    def shape(self) -> Shape:
        return tuple(raw_array(self).shape)

    @property
    def ndim(self) -> int:
        return len(raw_array(self).shape)


class Number(Tensor[B]):
    """One of Python's numbers, of which a program or each example chooses one: it adapts to what it meets, as they do.

    It is kept in full precision.
    """

    __slots__ = ()


class Counter(Number[B]):
    """An integer of Python's that numbers the steps of a loop, and what follows from it and other numbers.

    To `isinstance` it is Python's, as without compiling, and its text is the number: who asks for that, learns that
    there is none. In this package it counts as a `Number`. It lies between its `bounds`.
    """

    __slots__ = ("bounds",)
    bounds: tuple[Any, Any]

    @property
    def __class__(self) -> Any:
        frame: Any = sys._getframe(1)
        while frame.f_globals.get("__name__") == "abc":  # which asks for a class of its own
            frame = frame.f_back
        asked = frame.f_globals.get("__name__", _OURS)
        if asked.partition(".")[0] == _OURS:
            return Number
        return _PYTHONS[self._dtype.kind]

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("a number of a step has the class of Python's numbers")

    def __getattr__(self, name: str) -> Any:
        if not hasattr(_PYTHONS[self._dtype.kind], name):
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        return getattr(self.item(), name)  # as of i.bit_length()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return super().__pow__(other) if modulus is None else pow(self.item(), other, modulus)

    def __mul__(self, other: Any) -> Any:
        return other * self.__index__() if isinstance(other, _REPEATED) else super().__mul__(other)

    def __rmul__(self, other: Any) -> Any:
        return other * self.__index__() if isinstance(other, _REPEATED) else super().__rmul__(other)

    def __round__(self, digits: Any = None) -> Any:
        return super().__round__() if digits is None else round(self.item(), digits)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec)

    def __repr__(self) -> str:
        frame: Any = sys._getframe(1)
        while frame.f_globals.get("__name__") == "reprlib":  # which writes messages
            frame = frame.f_back
        asked = frame.f_globals.get("__name__", _OURS)
        return super().__repr__() if asked.partition(".")[0] == _OURS else repr(self.item())

    def __str__(self) -> str:
        return str(self.item())


_OURS = __name__.partition(".")[0]
_REPEATED = (list, tuple, str, bytes, bytearray)  # as often as a number says
_PYTHONS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class SupportsArray(Protocol):
    """An array of NumPy or of another library, a Series or a DataFrame of pandas."""

    def __array__(self) -> Any: ...


# what functions take beside tensors: their values are copied to where the tensors are
Operand: TypeAlias = Tensor[B] | SupportsArray | Sequence[Any] | complex

trees.ATOMS.update((Tensor, UniqueTensor, Number, Counter))
_slot: Any = Tensor.__dict__["_array"]


def raw_array(x: Tensor[Any]) -> Array:
    """The array of a tensor, for a look at its shape: the caller must not keep it."""
    return _slot.__get__(x)


def is_unique(x: Tensor[Any]) -> bool:
    """Whether nothing but this tensor refers to its buffer."""
    return x.__class__ is UniqueTensor


def make_unique(x: Tensor[Any], array: Array) -> None:
    """Give the tensor a new value that nothing else refers to."""
    x.__class__ = UniqueTensor
    _slot.__set__(x, array)


def wrap(array: Array, device: Backend, dtype: DType | None = None) -> Tensor[Any]:
    """The tensor of an array of a backend; `dtype` is the array's, where the caller has it at hand."""
    out: Tensor[Any] = allocate(Tensor)
    out._array = array
    out._device = device
    out._dtype = device.dtype_of(array) if dtype is None else dtype
    return out


def refuse_ended(x: Tensor[Any], what: str) -> None:
    """Raises EndedError for a tensor that a transform has left over."""
    if x._device.ended:
        raise x._device.ended_error(what)


def put(x: Tensor[Any], array: Array, device: Backend) -> None:
    """Another array, on another device, in the place of a tensor's."""
    x._array, x._device = array, device


def same(x: Tensor[Any]) -> Tensor[Any]:
    """Another object with the same value: assignment to one does not change the other."""
    out: Tensor[Any] = allocate(Tensor)
    out._array = x._array
    out._device = x._device
    out._dtype = x._dtype
    return out
