"""Derivatives of any order along a curve: series pushed forward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Array
from adjoint.decorators.taylor import Series, Taylor
from adjoint.devices import transform_level
from adjoint.functions.arguments import as_flag, is_value, kind_of
from adjoint.transforms.arguments import (
    Arguments,
    Function,
    below,
    check_tuples,
    matching,
    on_level,
    results_of,
    zeros_like,
)
from adjoint.transforms.libraries import of_any_library


@of_any_library
def jet(
    f: Function, primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """f's value on a curve x(t) at t = 0, and its derivatives in t there, up to any order.

    Parameters
    ----------
    f
        A function of arrays; its result is a pytree of them.
    primals
        A tuple with x(0) for each argument of f: an array or a number of a floating dtype.
    series
        A tuple with, for each argument, the list of derivatives x'(0), x''(0), ... up to the order that is wanted,
        each of the argument's shape. For derivatives along a direction it is [direction, 0, 0, ...].
    factorial_scaled
        False if the series are the coefficients of t, t^2, ... instead, which are the derivatives divided by
        factorials; so are those of the answer then.

    Returns
    -------
    tuple
        f's value, and in its structure a list of derivatives for each array. Names and conventions are those of
        `jax.experimental.jet`.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        Arguments without a series of their own, of one length and their shape and dtype; an argument that is no array,
        or has no derivatives.

    Examples
    --------
    >>> import adjoint as ad
    >>> value, derivatives = ad.jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    >>> print(value, *derivatives)
    8.0 12.0 12.0 6.0
    """
    check_tuples("jet", primals=primals, series=series)
    factorial_scaled = as_flag(factorial_scaled, "jet", "factorial_scaled")
    for i, terms in enumerate(series):
        if not isinstance(terms, (tuple, list)):
            raise errors.ArgumentTypeError(f"jet: the series of argument {i} is a list, received {errors.shown(terms)}")
    lengths = [len(terms) for terms in series]
    if len(series) != len(primals) or len(set(lengths)) > 1:
        raise errors.ArgumentError(
            f"jet: {len(primals)} arguments need as many series of one length; received lengths {lengths}"
        )
    for place, x in [
        *[(f"argument {i}", x) for i, x in enumerate(primals)],
        *[(f"the derivative {k} of argument {i}", x) for i, xs in enumerate(series) for k, x in enumerate(xs, 1)],
    ]:
        if not is_value(x):
            raise errors.ArgumentTypeError(f"jet: {place} is {kind_of(x)}, expected an array; split up containers")
    others = [x for terms in series for x in terms]
    call = Arguments("jet", f, range(len(primals)), (*primals,), {}, beside=others)
    base: Any = call.base
    order = max(lengths)
    curves: list[list[Array | None]] = [[] for _ in primals]
    for k in range(order):
        terms = [s[k] for s in series]
        given = matching("jet", f"derivative {k + 1}", terms, call.structure, call.arrays, base)
        for curve, x in zip(curves, given, strict=True):
            curve.append(x if factorial_scaled else base.multiply(x, math.factorial(k + 1)))
    level: Taylor[Any] = Taylor.fresh(base, order)
    with transform_level(level, call.dtype):
        active = [Series(x, curve, None) for x, curve in zip(call.arrays, curves, strict=True)]
        leaves, structure = results_of("jet", call.run(f, level, active))
        results: list[Series] = [on_level(x, level) for x in leaves]
        value = trees.unflatten(structure, [below(x, level, call) for x in results])

    def answer(x: Series, k: int) -> Any:
        term = x.term(k)
        if term is None:
            term = zeros_like(base, x.value)
        return call.result(term if factorial_scaled else base.divide(term, math.factorial(k)))

    return value, trees.unflatten(structure, [[answer(x, k) for k in range(1, order + 1)] for x in results])
