"""Whole Jacobians and Hessians: all rows or columns in one batch."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Array, Backend
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import transform_level
from adjoint.dtypes import FLOATING, INEXACT
from adjoint.functions.arguments import as_choice, as_flag, check_shape, computed
from adjoint.graph.nodes import Var, key_of, new_leaf
from adjoint.random_keys import Replay, replayed
from adjoint.transforms.arguments import (
    Argnums,
    Arguments,
    Function,
    as_argnums,
    count,
    named,
    on_level,
    results_of,
    reverse_level,
    split_aux,
    to_base,
)
from adjoint.transforms.levels import Noticed, noticing


def jacobian(
    f: Function,
    argnums: Argnums = 0,
    mode: str = "auto",
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """A function that gives the Jacobian of f, all columns or rows together.

    On NumPy arrays, where f meets a tensor that `require_grad` tracks, f begins again: what it prints comes twice.

    Parameters
    ----------
    f
        A function whose result is a pytree of tensors.
    argnums
        The positions or names of the arguments to differentiate by.
    mode
        "reverse" pulls back one row per element of the result, "forward" pushes one column per element of the
        arguments; "auto" takes what there are fewer of, or forward where reverse mode cannot, as through `while_loop`;
        where that is forward, it runs f twice.
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
    as_choice(mode, "jacobian", "mode", ("auto", "forward", "reverse"))
    return _jacobian("jacobian", f, argnums, mode, has_aux, holomorphic)


def _jacobian(name: str, f: Function, argnums: Argnums, mode: str, has_aux: bool, holomorphic: bool) -> Function:
    argnums = as_argnums(name, argnums)
    has_aux, holomorphic = as_flag(has_aux, name, "has_aux"), as_flag(holomorphic, name, "holomorphic")

    @named(name, f)
    def run(*args: Any, **kwargs: Any) -> Any:
        call = Arguments(name, f, argnums, args, kwargs)
        call.check_complex(
            holomorphic,
            "pass holomorphic=True if the function is, else take ad.vjp or split it into real and imaginary part",
        )
        replay = Replay()
        answer = None
        if mode != "forward":
            try:
                with replayed(replay):
                    answer = _rows(f, call, has_aux, holomorphic, None if mode == "reverse" else count(call.arrays))
            except errors.ForwardOnlyError:
                if mode == "reverse":
                    raise
        if answer is None:
            try:
                with replayed(replay):
                    answer = _columns(f, call, has_aux, holomorphic)
            except errors.NoAutodiffError:  # f calls backward, for which there is no level then
                if mode == "forward":
                    raise
                with replayed(replay):
                    answer = _rows(f, call, has_aux, holomorphic, None)
        return answer

    return run


def _basis(call: Arguments, arrays: Sequence[Array], i: int, total: int, start: int) -> Array:
    """For the i-th array, its part of the unit vectors of all: of shape (total, *its shape)."""
    x = arrays[i]
    base: Any = call.base
    size, shape = math.prod(x.shape), check_shape((total, *x.shape), call.name)
    unit = computed(call.name, base.eye, rows=total, columns=size, k=-start, dtype=base.dtype_of(x))
    return base.reshape(unit, shape=shape)


def _rows(f: Function, call: Arguments, has_aux: bool, holomorphic: bool, at_most: int | None) -> Any:
    """The Jacobian in reverse mode, or None where it has more rows than `at_most`, or reverse mode cannot."""
    base: Any = call.base
    batch: Batched[Any] = Batched.fresh(base, None, "shared")  # of directions: there is one example
    level = reverse_level(batch)
    with transform_level(level, call.dtype, batch):
        variables = [new_leaf(batch.wrap(array)) for array in call.arrays]
        out, aux = split_aux(call.name, call.run(f, level, variables), has_aux)
        leaves, structure = results_of(call.name, out)
        roots = [on_level(x, level) for x in leaves]
        complex_rows = not holomorphic and any([level.dtype_of(root).kind == "c" for root in roots])
        if at_most is not None and (complex_rows or count(roots) > at_most):
            return None
        _check_kinds(call, roots, level, "c" if holomorphic else FLOATING, structure)
        aux = trees.map(lambda x: to_base(x, level, call), aux)
        del out
        blocks = []
        for root in roots:
            size = math.prod(root.shape)
            unit = Batch(_basis(call, [root.value.value], 0, size, 0), True)
            found = level.pull([(root, unit)], retain_graph=True) if root.node is not None else {}
            row = []
            for x in variables:
                shape = check_shape((*root.shape, *x.shape), call.name)
                g = found[key_of(x)][1] if key_of(x) in found else None
                if g is None:
                    row.append(base.full(shape=shape, value=0, dtype=base.dtype_of(x.value.value)))
                    continue
                whole = g.value if g.batched else base.broadcast_to(g.value, shape=(size, *x.shape))
                whole = base.conj(whole) if holomorphic else whole
                row.append(base.reshape(whole, shape=shape))
            blocks.append(call.answer(row))
    answer = trees.unflatten(structure, blocks)
    return (answer, aux) if has_aux else answer


def _columns(f: Function, call: Arguments, has_aux: bool, holomorphic: bool) -> Any:
    """The Jacobian in forward mode."""
    base: Any = call.base
    total = count(call.arrays)
    starts = [count(call.arrays[:i]) for i in range(len(call.arrays))]
    batch: Batched[Any] = Batched.fresh(base, None, "shared")  # of directions: there is one example
    level: Tangent[Any] = Tangent.fresh(batch)
    with transform_level(level, call.dtype, batch):
        duals = [
            Dual(batch.wrap(x), Batch(_basis(call, call.arrays, i, total, starts[i]), True))
            for i, x in enumerate(call.arrays)
        ]
        out, aux = split_aux(call.name, call.run(f, level, duals), has_aux)
        leaves, structure = results_of(call.name, out)
        results = [on_level(x, level) for x in leaves]
        _check_kinds(call, results, level, "c" if holomorphic else INEXACT, structure)
        aux = trees.map(lambda x: to_base(x, level, call), aux)
        blocks = []
        for result in results:
            column, t = [], result.tangent
            if t is not None and t.batched:
                rank = len(result.shape)
                whole = base.permute_dims(t.value, axes=(*range(1, rank + 1), 0))
            else:
                dtype = level.dtype_of(result)
                whole = base.full(shape=(*result.shape, total), value=0, dtype=dtype)
            for i, x in enumerate(call.arrays):
                part = slice(starts[i], starts[i] + math.prod(x.shape), 1)
                piece = base.index(whole, key=(*[slice(0, n, 1) for n in result.shape], part))
                column.append(base.reshape(piece, shape=check_shape((*result.shape, *x.shape), call.name)))
            blocks.append(call.answer(column))
    answer = trees.unflatten(structure, blocks)
    return (answer, aux) if has_aux else answer


def _check_kinds(call: Arguments, results: Sequence[Array], level: Backend, kinds: str, structure: Any) -> None:
    """Raises DtypeError for results of kinds without derivatives."""
    for i, result in enumerate(results):
        dtype = level.dtype_of(result)
        if dtype.kind not in kinds:
            forward = dtype.kind == "c" and call.name == "jacobian"
            raise errors.DtypeError(
                f"{call.name}: the function's result{trees.paths(structure)[i]} is {dtype}; expected "
                + ("complex results of a holomorphic function" if kinds == "c" else "real floating results")
                + ("; mode='forward' takes complex results of real arguments" if forward else "")
            )


def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """A function that gives the second derivatives of f.

    For a scalar f of one argument of shape s, an array of shape s + s: the gradient is recorded on its own level, and
    its rows are pulled back together. In general the Jacobian of the Jacobian, forward over reverse, or where f calls a
    `custom_vjp` reverse over reverse, for which f runs once more.
    Parameters are those of `jacobian`, and f begins again where it would there.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    argnums = as_argnums("hessian", argnums)
    rows = _jacobian("hessian", f, argnums, "reverse", has_aux, holomorphic)
    nested = _jacobian("hessian", rows, argnums, "forward", has_aux, holomorphic)
    twice = _jacobian("hessian", rows, argnums, "reverse", has_aux, holomorphic)  # rules may have no transpose

    @named("hessian", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        replay = Replay()
        answer = None
        with replayed(replay), noticing() as noticed:
            if not holomorphic:
                answer = _of_gradient(f, Arguments("hessian", f, argnums, args, kwargs), has_aux, noticed)
        if noticed.found:
            with contextlib.suppress(errors.ForwardOnlyError), replayed(replay):
                answer = twice(*args, **kwargs)
        if answer is None:
            with replayed(replay):
                answer = nested(*args, **kwargs)
        return answer

    return run


def _of_gradient(f: Function, call: Arguments, has_aux: bool, noticed: Noticed) -> Any:
    """The Jacobian of a scalar function's gradient, both by pulling back; None where that does not serve."""
    base: Any = call.base
    if any([base.dtype_of(x).kind == "c" for x in call.arrays]):
        return None
    batch: Batched[Any] = Batched.fresh(base, None, "shared")  # of directions: there is one example
    level = reverse_level(base)
    with transform_level(level, call.dtype, batch):
        variables = [new_leaf(array) for array in call.arrays]
        try:
            out, aux = split_aux(call.name, call.run(f, level, variables), has_aux)
            leaves, structure = results_of(call.name, out)
            if noticed.found or len(leaves) != 1 or leaves[0].shape != ():
                return None
            root = on_level(leaves[0], level)
            _check_kinds(call, [root], level, FLOATING, structure)
            aux = trees.map(lambda x: to_base(x, level, call), aux)
            del out
            found = {} if root.node is None else level.backward(root, retain_graph=True, on=level)
            blocks = []
            for x in variables:
                g = found[key_of(x)][1] if key_of(x) in found else None
                size = math.prod(x.shape)
                unit = Batch(_basis(call, [x.value], 0, size, 0), True)
                pulled = {} if g is None or g.node is None else level.pull([(g, unit)], retain_graph=True, on=batch)
                blocks.append([_block(call, x, y, pulled.get(key_of(y))) for y in variables])
        except errors.ForwardOnlyError:
            return None
    answer = trees.unflatten(structure, [call.structured([call.answer(row) for row in blocks])])
    return (answer, aux) if has_aux else answer


def _block(call: Arguments, x: Var, y: Var, found: tuple[Any, Batch] | None) -> Array:
    """The derivative of x's gradient by y, of a batch with an example for each element of x."""
    base: Any = call.base
    shape = check_shape((*x.shape, *y.shape), call.name)
    if found is None:
        return base.full(shape=shape, value=0, dtype=base.dtype_of(y.value))
    g = found[1]
    whole = g.value if g.batched else base.broadcast_to(g.value, shape=(math.prod(x.shape), *y.shape))
    return base.reshape(whole, shape=shape)
