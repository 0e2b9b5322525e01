"""Derivatives of functions of one argument, which all operators are made of, and vector spaces of values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.autograd.boxes import ArrayBox, Box, boxed, conjugated, getval, isbox, tree_unboxed, unboxed
from adjoint.autograd.missing import missing
from adjoint.autograd.primitives import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    primitive_jvps,
    primitive_vjps,
)
from adjoint.devices import leaf_of, libraries_imported
from adjoint.functions.shape import reshape
from adjoint.tensor import Tensor
from adjoint.transforms import forward, reverse
from adjoint.transforms.jacobians import jacobian as all_rows
from adjoint.transforms.libraries import of_any_library

__all__ = [
    "Box", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "getval", "isbox", "make_jvp", "make_vjp", "primitive", "primitive_jvps", "primitive_vjps",
    "vspace",
]  # fmt: skip

Function = Callable[..., Any]
_NUMBERS = "biuf"


def argument(x: Any) -> Any:
    """What is differentiated by, as tensors and arrays: arrays of integers count as numbers of double precision."""
    if isinstance(x, (bool, int, str)) or x is None or callable(x):
        raise errors.ArgumentTypeError(
            f"can't differentiate w.r.t. type {type(x)}: {errors.shown(x)} is no array or floating number"
            + (f"; write it as {float(x)}" if isinstance(x, int) and abs(x) < 2**53 else "")
        )
    return trees.map(_floating, x)


def _floating(x: Any) -> Any:
    x = unboxed(x)
    return x.astype(np.float64) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biu" else x


class _OnTensors:
    """A function of boxes as one of tensors, which knows whether its result followed its argument."""

    def __init__(self, fun: Function) -> None:
        self.fun, self.connected = fun, False

    def __call__(self, x: Any) -> Any:
        out = tree_unboxed(self.fun(boxed(x)))
        level = next((leaf._device for leaf in trees.flatten(x)[0] if isinstance(leaf, Tensor)), None)
        self.connected = any(
            [isinstance(y, Tensor) and level in list(y._device.chain()) for y in trees.flatten(out)[0]]
        )
        return out

    def warn(self) -> None:
        if not self.connected:
            warnings.warn("Output seems independent of input.", stacklevel=4)


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """The pullback of a function of one argument, and its value: `vjp(g)` is g times the derivative.

    Of complex numbers nothing is conjugated, as in HIPS autograd: the pullback of z**2 is `g * 2 * z`.
    """
    run = _OnTensors(fun)
    value, pullback = reverse.vjp(run, argument(x))
    run.warn()

    def vjp(g: Any) -> Any:
        (found,) = pullback(trees.map(conjugated, tree_unboxed(g)))
        return boxed(trees.map(conjugated, found))

    return vjp, boxed(value)


def make_jvp(fun: Function, x: Any) -> Function:
    """The pushforward of a function of one argument: `jvp(v)` is its value and its derivative along v."""

    def jvp(v: Any) -> tuple[Any, Any]:
        run = _OnTensors(fun)
        found: tuple[Any, Any] = boxed(forward.jvp(run, (argument(x),), (tree_unboxed(v),)))
        run.warn()
        return found

    return jvp


def value_and_gradient(name: str, fun: Function, x: Any) -> tuple[Any, Any]:
    """The value of a function whose result has one real element, and its gradient."""
    shape: list[Any] = []

    def scalar(x: Any) -> Any:
        out = run.fun(x)
        space = vspace(out)
        if space.size != 1:
            raise errors.ArgumentTypeError(
                f"{name} only applies to real scalar-output functions, and this one gives {space}; try jacobian, "
                "elementwise_grad or holomorphic_grad"
            )
        shape.append(space.shape)
        return out if space.shape == () else reshape_box(out, ())

    run = _OnTensors(fun)
    whole = _OnTensors(scalar)
    value, gradient = _pulled(lambda x: whole(x), argument(x))
    whole.warn()
    value, gradient = boxed(value), trees.map(lambda g: boxed(conjugated(g)), gradient)
    return value if shape[-1] == () else reshape_box(value, shape[-1]), gradient


@of_any_library
def _pulled(fun: Function, x: Any) -> tuple[Any, Any]:
    """`ad.value_and_grad(fun)(x)`, without a function that is made for one call."""
    call, value, _, gradient = reverse.pulled("value_and_grad", fun, 0, False, False, (x,), {})
    return call.result(value), gradient


def reshape_box(x: Any, shape: tuple[int, ...]) -> Any:
    """A box or an array in another shape."""
    return boxed(reshape(unboxed(x), shape)) if isinstance(x, ArrayBox) else np.reshape(x, shape)


def jacobian_of(fun: Function, x: Any) -> Any:
    """The derivative of each element of a real result by each element of an array."""
    shapes: list[Any] = []

    def checked(x: Any) -> Any:
        out = fun(x)
        space = vspace(out)
        if not isinstance(space, ArrayVSpace) or space.iscomplex:
            raise errors.ArgumentTypeError(
                f"jacobian applies to functions whose result is a real array, received {space}"
            )
        shapes.append(space)
        return out

    space = vspace(x)
    if not isinstance(space, ArrayVSpace):
        raise errors.ArgumentTypeError(f"jacobian is by one array, received {space}; choose it by argnum")
    if not space.iscomplex:
        run = _OnTensors(checked)
        found = boxed(all_rows(run, mode="reverse")(argument(x)))
        run.warn()
        return found
    from adjoint.transforms.batches import vmap  # rows of complex numbers

    run = _OnTensors(checked)
    _, pullback = reverse.vjp(run, argument(x))
    run.warn()
    of = shapes[-1]
    rows = np.eye(of.size, dtype=of.dtype).reshape((of.size, *of.shape))
    (found,) = vmap(pullback)(rows)
    return reshape_box(boxed(conjugated(found)), (*of.shape, *space.shape))


# --- vector spaces -------------------------------------------------------------------------------


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


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
