"""Vector spaces of values: arrays, and containers of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.autograd.boxes import ArrayBox, boxed, conjugated, unboxed
from adjoint.devices import leaf_of, libraries_imported
from adjoint.tensor import Tensor

Function = Callable[..., Any]


class VSpace:
    """The space that a value lies in: its shapes and data types, zeros, ones, a basis, and products."""

    mappings: ClassVar[dict[type, Function]] = {}
    iscomplex = False
    shape: Any
    dtype: Any

    def __init__(self, value: Any) -> None:
        raise NotImplementedError

    @classmethod
    def register(cls, value_type: type, vspace_maker: Function | None = None) -> None:
        """Make values of this type members of a space: that of `vspace_maker(value)`, or of this class."""
        VSpace.mappings[value_type] = vspace_maker or cls

    @property
    def size(self) -> int:
        """How many real numbers a value has."""
        raise NotImplementedError

    def zeros(self) -> Any:
        raise NotImplementedError

    def ones(self) -> Any:
        raise NotImplementedError

    def randn(self) -> Any:
        raise NotImplementedError

    def standard_basis(self) -> Iterator[Any]:
        raise NotImplementedError

    def add(self, x: Any, y: Any) -> Any:
        return boxed(trees.map(lambda a, b: unboxed(a) + unboxed(b), x, y))

    def scalar_mul(self, x: Any, a: Any) -> Any:
        return trees.map(lambda v: v * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The sum of products of all elements; of complex ones the real part, with one conjugated."""
        raise NotImplementedError

    def covector(self, x: Any) -> Any:
        """Complex elements conjugated."""
        return trees.map(conjugated, x)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{vars(self)}"


class ArrayVSpace(VSpace):
    """Real arrays of one shape and data type."""

    def __init__(self, value: Any) -> None:
        if not hasattr(value, "shape"):
            value = np.asarray(value)
        self.shape: tuple[int, ...] = tuple(value.shape)
        self.dtype = _numpy_dtype(value)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        return np.ones(self.shape, self.dtype)

    def randn(self) -> Any:
        return np.array(np.random.randn(*self.shape)).astype(self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        for place in np.ndindex(*self.shape):
            unit = np.zeros(self.shape, self.dtype)
            unit[place] = 1
            yield unit

    def inner_prod(self, x: Any, y: Any) -> Any:
        return boxed(np.sum(unboxed(x) * unboxed(y)))


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of one shape and data type: real vector spaces of twice as many dimensions."""

    iscomplex = True

    @property
    def size(self) -> int:
        return 2 * super().size

    def ones(self) -> Any:
        return np.full(self.shape, 1 + 1j, self.dtype)

    def randn(self) -> Any:
        return np.asarray(np.random.randn(*self.shape) + 1j * np.random.randn(*self.shape)).astype(self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        for unit in super().standard_basis():
            yield unit
            yield unit * np.asarray(1j, self.dtype)

    def inner_prod(self, x: Any, y: Any) -> Any:
        return boxed(np.real(np.sum(np.conj(unboxed(x)) * unboxed(y))))


class ContainerVSpace(VSpace):
    """Lists, tuples, dictionaries and other pytrees of such; `shape` has the space of each part."""

    def __init__(self, value: Any) -> None:
        leaves, self._structure = trees.flatten(value)
        self._spaces = [vspace(x) for x in leaves]

    @property
    def shape(self) -> Any:
        return self._map(lambda space: space)

    @property
    def size(self) -> int:
        return sum(space.size for space in self._spaces)

    def _map(self, f: Function) -> Any:
        return trees.unflatten(self._structure, [f(space) for space in self._spaces])

    def zeros(self) -> Any:
        return self._map(lambda space: space.zeros())

    def ones(self) -> Any:
        return self._map(lambda space: space.ones())

    def randn(self) -> Any:
        return self._map(lambda space: space.randn())

    def standard_basis(self) -> Iterator[Any]:
        for k, space in enumerate(self._spaces):
            for unit in space.standard_basis():
                leaves = [unit if i == k else other.zeros() for i, other in enumerate(self._spaces)]
                yield trees.unflatten(self._structure, leaves)

    def inner_prod(self, x: Any, y: Any) -> Any:
        pairs = zip(self._spaces, trees.flatten(x)[0], trees.flatten(y)[0], strict=True)
        return sum(space.inner_prod(a, b) for space, a, b in pairs)


def _numpy_dtype(x: Any) -> Any:
    dtype = x.dtype
    return dtype if isinstance(dtype, np.dtype) else unboxed(x).dtype


def vspace(value: Any) -> VSpace:
    """The space of a value. Raises ArgumentTypeError for what is no floating number, array or container of such."""
    maker = VSpace.mappings.get(type(value))
    if maker is not None:
        return maker(value)  # type: ignore[no-any-return]
    if isinstance(value, (ArrayBox, Tensor)):
        return ComplexArrayVSpace(value) if value.dtype.kind == "c" else ArrayVSpace(value)
    if isinstance(value, (np.ndarray, np.inexact, float, complex)):
        return ComplexArrayVSpace(value) if np.iscomplexobj(value) else ArrayVSpace(value)
    if libraries_imported() and leaf_of(value) is not None:
        return ComplexArrayVSpace(value) if _numpy_dtype(value).kind == "c" else ArrayVSpace(value)
    if isinstance(value, (int, str, np.generic)) or (trees.opened(value) is None):
        raise errors.ArgumentTypeError(
            f"can't find vector space for value {errors.shown(value)} of type {type(value)}: spaces are of floating "
            "numbers, arrays and containers of these"
        )
    return ContainerVSpace(value)
