"""Derivatives of functions of one argument, which all operators are made of; names of users' rules and spaces."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

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
from adjoint.autograd.spaces import ArrayVSpace as ArrayVSpace
from adjoint.autograd.spaces import ComplexArrayVSpace as ComplexArrayVSpace
from adjoint.autograd.spaces import VSpace, vspace
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
        if space.size != 1 or not isinstance(space, ArrayVSpace):
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


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
