"""Checks of derivatives against central differences along random directions, with HIPS autograd's names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.autograd.core import make_jvp, make_vjp, vspace
from adjoint.autograd.wrap_util import get_name, unary_to_nary

Function = Callable[..., Any]
TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than a millionth, absolutely or relatively."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """The derivative of f at x along a vector, by a central difference."""
    space, result = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        above = f(space.add(x, space.scalar_mul(v, EPS / 2)))
        below = f(space.add(x, space.scalar_mul(v, -EPS / 2)))
        return result.scalar_mul(result.add(above, result.scalar_mul(below, -1.0)), 1 / EPS)

    return jvp


def check_vjp(f: Function, x: Any) -> None:
    """Raises CheckError, an AssertionError, where the pullback of a random cotangent is not the differences' own."""
    vjp, y = make_vjp(f, x)
    space, result = vspace(x), vspace(y)
    v, w = space.randn(), result.randn()
    pulled = space.covector(vjp(result.covector(w)))
    if vspace(pulled) != space:
        raise errors.CheckError(f"the VJP of {get_name(f)} gives {vspace(pulled)}, its argument is in {space}")
    exact, numeric = space.inner_prod(v, pulled), result.inner_prod(w, make_numerical_jvp(f, x)(v))
    if not scalar_close(numeric, exact):
        raise errors.CheckError(
            f"derivative (VJP) check of {get_name(f)} failed with arg {errors.shown(x)}:\nanalytic: {exact}\n"
            f"numeric:  {numeric}"
        )


def check_jvp(f: Function, x: Any) -> None:
    """Raises CheckError where the tangent along a random direction is not the difference."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """Raises CheckError for values of two spaces, and where their products with a random vector differ."""
    space, other = vspace(x), vspace(y)
    if space != other:
        raise errors.CheckError(f"VSpace mismatch:\nx: {space}\ny: {other}")
    v = space.randn()
    if not scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)):
        raise errors.CheckError(f"Value mismatch:\nx: {errors.shown(x)}\ny: {errors.shown(y)}")


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check derivatives up to an order, in forward ("fwd") and reverse mode ("rev"), each of the other's.

    >>> import adjoint.autograd.numpy as np
    >>> check_grads(np.tanh)(np.array([0.5, -1.0]))
    """
    if set(modes) - {"fwd", "rev"}:
        raise errors.ArgumentError(f"check_grads: modes are 'fwd' and 'rev', received {errors.shown(modes)}")
    for mode, check in (("fwd", check_jvp), ("rev", check_vjp)):
        if mode not in modes:
            continue
        check(f, x)
        if order < 2:
            continue
        if mode == "fwd":
            of_tangent = lambda x, v: make_jvp(f, x)(v)[1]
            of_tangent.__name__ = f"jvp_{get_name(f)}"
            v = vspace(x).randn()
        else:
            of_tangent = lambda x, v: make_vjp(f, x)[0](v)
            of_tangent.__name__ = f"vjp_{get_name(f)}"
            v = vspace(f(x)).randn()
        check_grads(of_tangent, (0, 1), modes, order=order - 1)(x, v)


def combo_check(fun: Function, *check_args: Any, **check_kwargs: Any) -> Function:
    """`check_grads` with all combinations of the arguments that each position, and each name, has a list of."""

    def run(*args: Any, **kwargs: Any) -> None:
        named = [[(key, value) for value in values] for key, values in kwargs.items()]
        for given in itertools.product(*args):
            for options in itertools.product(*named):
                check_grads(fun, *check_args, **check_kwargs)(*given, **dict(options))

    return run
