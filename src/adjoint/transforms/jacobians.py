"""Whole Jacobians and Hessians: all rows or columns in one batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint import errors, trees
from adjoint.backend import Array
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import active
from adjoint.graph.nodes import Var, key_of, leaf_of
from adjoint.transforms.calls import (
    Argnums,
    Arguments,
    Function,
    count,
    named,
    on_level,
    outcome,
    peeled,
    results_of,
)


def jacobian(
    f: Function,
    argnums: Argnums = 0,
    mode: str = "auto",
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """A function that gives the Jacobian of f, all columns or rows together.

    Parameters
    ----------
    f
        A function whose result is a pytree of tensors.
    argnums
        The positions or names of the arguments to differentiate by.
    mode
        "reverse" pulls back one row per element of the result, "forward" pushes one column per element of the
        arguments, "auto" takes what there are fewer of.
    has_aux
        f returns a pair (result, aux), and the answer is a pair of Jacobian and aux.
    holomorphic
        f is a holomorphic function of complex arguments.

    Returns
    -------
    Function
        Its answer has the structure of the result with, in the place of each leaf, the structure of the argument (a
        tuple for several argnums), and there an array of shape `result.shape + argument.shape`.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise errors.ArgumentError(f"jacobian: mode is 'auto', 'forward' or 'reverse', received {errors.shown(mode)}")

    @named("jacobian", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        call = Arguments("jacobian", f, argnums, args, kwargs)
        for x in call.arrays:
            if call.base.dtype_of(x).kind != ("c" if holomorphic else "f"):
                raise errors.DtypeError(
                    "jacobian: expected complex arguments of a holomorphic function"
                    if holomorphic
                    else "jacobian: an argument is complex; pass holomorphic=True if the function is, else take ad.vjp "
                    "or split it into real and imaginary part"
                )
        answer = None
        if mode != "forward":
            answer = _rows(f, call, has_aux, holomorphic, at_most=None if mode == "reverse" else count(call.arrays))
        if answer is None:
            answer = _columns(f, call, has_aux)
        return answer

    return run


def _basis(base: Any, arrays: Sequence[Array], i: int, total: int, start: int) -> Array:
    """For the i-th array, its part of the unit vectors of all: of shape (total, *its shape)."""
    x = arrays[i]
    size = math.prod(x.shape)
    unit = base.eye(rows=total, columns=size, k=-start, dtype=base.dtype_of(x))
    return base.reshape(unit, shape=(total, *x.shape))


def _rows(f: Function, call: Arguments, has_aux: bool, holomorphic: bool, at_most: int | None) -> Any:
    """The Jacobian in reverse mode, or None where it has more rows than `at_most`."""
    base: Any = call.base
    batch: Batched[Any] = Batched.fresh(base)
    level: Autodiff[Any] = Autodiff.fresh(batch)
    with active(level):
        variables = [leaf_of(batch.wrap(array)) for array in call.arrays]
        out, aux = outcome("jacobian", call.run(f, level, variables), has_aux)
        leaves, structure = results_of("jacobian", out)
        roots = [on_level(x, level) for x in leaves]
        if at_most is not None and count(roots) > at_most:
            return None
        _check_kind(roots, level, holomorphic)
        aux = trees.map(lambda x: peeled(x, level, call), aux)
        del out
        blocks = []
        for root in roots:
            size = math.prod(root.shape)
            unit = Batch(_basis(base, [root.value.value], 0, size, 0), True)
            found = level.pull([(root, unit)], retain_graph=True) if root.node is not None else {}
            row = []
            for x in variables:
                shape = (*root.shape, *x.shape)
                g = found[key_of(x)][1] if key_of(x) in found else None
                if g is None:
                    row.append(base.full(shape=shape, value=0, dtype=base.dtype_of(x.value.value)))
                    continue
                whole = g.value if g.batched else base.broadcast_to(g.value, shape=(size, *x.shape))
                whole = base.conj(whole) if holomorphic else whole
                row.append(base.reshape(whole, shape=shape))
            blocks.append(call.answer(row))
    answer = trees.unflatten(structure, blocks)
    batch.end()
    return (answer, aux) if has_aux else answer


def _columns(f: Function, call: Arguments, has_aux: bool) -> Any:
    """The Jacobian in forward mode."""
    base: Any = call.base
    total = count(call.arrays)
    starts = [count(call.arrays[:i]) for i in range(len(call.arrays))]
    batch: Batched[Any] = Batched.fresh(base)
    level: Tangent[Any] = Tangent.fresh(batch)
    with active(level):
        duals = [
            Dual(batch.wrap(x), Batch(_basis(base, call.arrays, i, total, starts[i]), True))
            for i, x in enumerate(call.arrays)
        ]
        out, aux = outcome("jacobian", call.run(f, level, duals), has_aux)
        leaves, structure = results_of("jacobian", out)
        results = [on_level(x, level) for x in leaves]
        aux = trees.map(lambda x: peeled(x, level, call), aux)
        blocks = []
        for result in results:
            column, t = [], result.tangent
            if t is not None and t.batched:
                rank = len(result.shape)
                whole = base.permute_dims(t.value, axes=(*range(1, rank + 1), 0))
            else:
                like = call.arrays[0] if t is None else t.value
                whole = base.full(shape=(*result.shape, total), value=0, dtype=base.dtype_of(like))
            for i, x in enumerate(call.arrays):
                part = slice(starts[i], starts[i] + math.prod(x.shape), 1)
                piece = base.index(whole, key=(*[slice(0, n, 1) for n in result.shape], part))
                column.append(base.reshape(piece, shape=(*result.shape, *x.shape)))
            blocks.append(call.answer(column))
    answer = trees.unflatten(structure, blocks)
    batch.end()
    return (answer, aux) if has_aux else answer


def _check_kind(roots: Sequence[Var], level: Autodiff[Any], holomorphic: bool) -> None:
    for root in roots:
        dtype = level.dtype_of(root)
        if dtype.kind != ("c" if holomorphic else "f"):
            raise errors.DtypeError(
                f"jacobian: the function gives {dtype}; expected "
                + ("complex results of a holomorphic function" if holomorphic else "real floating results")
            )


def hessian(f: Function, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """A function that gives the second derivatives of f, forward over reverse.

    For a scalar f of one argument of shape s, an array of shape s + s; in general the Jacobian of the Jacobian.
    Parameters are those of `jacobian`.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    rows = jacobian(f, argnums, "reverse", has_aux=has_aux, holomorphic=holomorphic)
    return named("hessian", f)(jacobian(rows, argnums, "forward", has_aux=has_aux, holomorphic=holomorphic))
