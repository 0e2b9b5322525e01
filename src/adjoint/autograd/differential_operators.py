"""HIPS autograd's operators: functions of functions, by the argument at `argnum`.

All take a function and the position of the argument to differentiate by, 0 if none is named, or a tuple or list of
positions, for which answers are tuples. Arguments are arrays of any library with a leaf, floating numbers, or lists,
tuples, dictionaries and other pytrees of these; answers have their structure. Each raises ArgumentTypeError for an
argument without derivatives, such as an int, and OutOfRangeError for a position that the call has no argument at.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.autograd import core
from adjoint.autograd.boxes import boxed, conjugated, has_tensors, tree_unboxed, unboxed
from adjoint.autograd.core import jacobian_of, value_and_gradient, vspace
from adjoint.autograd.wrap_util import unary_to_nary, wraps
from adjoint.devices import current_level
from adjoint.operands import lift_to
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.checkpoints import checkpoint as recomputed
from adjoint.transforms.reverse import vjp

Function = Callable[..., Any]

_make_vjp = core.make_vjp  # geomstats asks for this name
make_vjp: Callable[..., Any] = unary_to_nary(core.make_vjp)
make_jvp: Callable[..., Any] = unary_to_nary(core.make_jvp)


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """The gradient of a function whose result has one real element.

    By a complex argument z = x + iy it is du/dx - i du/dy, as in HIPS autograd: the conjugate of `ad.grad`'s.
    Raises ArgumentTypeError for another result.
    """
    return value_and_gradient("grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> Any:
    """The value of a function and its gradient, as a pair."""
    return value_and_gradient("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """The sum of each column of the Jacobian in one pass: the derivatives of a function that works element by element.

    Raises ArgumentTypeError for a complex result.
    """
    vjp, ans = core.make_vjp(fun, x)
    space = vspace(ans)
    if space.iscomplex:
        raise errors.ArgumentTypeError("elementwise_grad only applies to real-output functions")
    return vjp(space.ones())


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """The derivative of all elements along ones, by forward mode."""
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """The derivatives of each element of a real array by each element of an array, of shape `ans.shape + x.shape`.

    Raises ArgumentTypeError for a complex result, and for containers.
    """
    return jacobian_of(fun, x)


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """The Jacobian of the Jacobian."""
    return jacobian_of(lambda y: jacobian_of(fun, y), x)


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """The complex derivative of a holomorphic function. Warns of a real argument."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return value_and_gradient("holomorphic_grad", lambda z: np.real(fun(z)), x)[1]


def grad_named(fun: Function, argname: str) -> Function:
    """`grad` by the positional argument of this name. Raises ArgumentError where there is none."""
    names = [
        p.name
        for p in inspect.signature(fun).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if argname not in names:
        raise errors.ArgumentError(f"grad_named: no positional argument is called {errors.shown(argname)}: {names}")
    return grad(fun, names.index(argname))  # type: ignore[no-any-return]


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> Any:
    """A function of a vector that gives the Hessian times it, and the gradient: fun runs once for all vectors."""
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The Hessian times a tensor, which is the last argument: a function of (*args, tensor, **kwargs)."""
    gradient = grad(fun, argnum)

    def along(*args: Any, **kwargs: Any) -> Any:
        *args, vector = args  # type: ignore[assignment]
        return boxed(np.tensordot(unboxed(gradient(*args, **kwargs)), unboxed(vector), np.ndim(vector)))

    return grad(along, argnum)  # type: ignore[no-any-return]


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """A tensor, which is the last argument, times the Jacobian: a function of (*args, tensor, **kwargs)."""

    def weighted(*args: Any, **kwargs: Any) -> Any:
        *args, vector = args  # type: ignore[assignment]
        return boxed(np.tensordot(unboxed(vector), unboxed(fun(*args, **kwargs)), np.ndim(vector)))

    return jacobian(weighted, argnum)  # type: ignore[no-any-return]


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Any:
    """A function of a tangent that gives the derivative along it, by reverse mode alone: a transpose transposed."""
    vjp, y = core.make_vjp(fun, x)
    return core.make_vjp(vjp, vspace(y).zeros())[0]


def _half_squares(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Function, g: Function = _half_squares, f_argnum: int = 0) -> Function:
    """Products of the generalised Gauss-Newton matrix of g(f(x)), J' H J, with vectors."""

    @unary_to_nary
    def make(f: Function, x: Any) -> Function:
        f_vjp, f_x = core.make_vjp(f, x)
        g_hvp, grad_g = core.make_vjp(grad(g), f_x)
        f_jvp, _ = core.make_vjp(f_vjp, vspace(grad_g).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return make(f, f_argnum)  # type: ignore[no-any-return]


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> Any:
    """The gradient of the first of two results, summed, and the second as it is."""
    value, pullback, aux = vjp(lambda t: tree_unboxed(fun(boxed(t))), core.argument(x), has_aux=True)
    (found,) = pullback(trees.map(lambda v: np.ones(np.shape(v), unboxed(v).dtype), value))
    return boxed(trees.map(conjugated, found)), boxed(aux)


def multigrad_dict(fun: Function) -> Function:
    """The gradients by all arguments at once: a dictionary by their names."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_arguments(values: dict[str, Any]) -> Any:
            call = inspect.BoundArguments(signature, OrderedDict(values))
            return fun(*call.args, **call.kwargs)

        return grad(of_arguments)(dict(bound.arguments))  # type: ignore[no-any-return]

    return gradients


def checkpoint(fun: Function) -> Function:
    """The function, with its intermediate results made again in the pass back instead of kept."""

    @wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = unboxed(args)
        if not has_tensors(given):
            return fun(*args, **kwargs)
        return boxed(recomputed(lambda *xs: _on_level(tree_unboxed(fun(*boxed(xs), **kwargs))))(*given))

    return run


def _on_level(tree: Any) -> Any:
    """Tensors of a result on the level that is running, which `ad.checkpoint` makes those of its caller."""
    level = current_level()
    assert level is not None
    return trees.map(lambda x: wrap(lift_to(x, level), level) if isinstance(x, Tensor) else x, tree)
