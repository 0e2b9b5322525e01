"""Derivatives by pushing forward: Jacobian-vector products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import current_level, transform_level
from adjoint.dtypes import choosing, chosen_dtype, creating_in, default_dtype, float64
from adjoint.functions.arguments import as_flag, check_callable
from adjoint.graph.nodes import key_of, new_leaf
from adjoint.random_keys import Replay, replayed
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import (
    Arguments,
    Function,
    Nested,
    are_on,
    below,
    check_tuples,
    fitted,
    matching,
    on_level,
    results_of,
    reverse_level,
    split_aux,
    to_base,
    zeros_like,
)
from adjoint.transforms.libraries import kept_of_any_library, of_any_library
from adjoint.transforms.reverse import inner_gradient


@of_any_library
def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """f's value at the primals and its derivative along the tangents, computed together.

    Tangents have the shapes of their primals, and the result's tangent that of the value. `primals` and `tangents` are
    tuples of one structure. Gives (value, tangent), with `has_aux` (value, tangent, aux). Raises ArgumentError,
    ShapeError and DtypeError for tangents that do not fit their primals.

    >>> import adjoint as ad
    >>> ad.jvp(lambda x: x**3, (2.0,), (1.0,))
    (np.float64(8.0), np.float64(12.0))
    """
    if primals.__class__ is not tuple or tangents.__class__ is not tuple:
        check_tuples("jvp", primals=primals, tangents=tangents)
    if has_aux is not False:
        has_aux = as_flag(has_aux, "jvp", "has_aux")
    return _jvp("jvp", f, primals, tangents, has_aux)


def _jvp(name: str, f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any:
    around = current_level()
    duals = None if around is None or not callable(f) else _nested_duals(around, primals, tangents)
    call: Arguments | None = None
    base: Backend
    if around is not None and duals is not None:
        base = around
    else:
        leaves, structure = trees.flatten(list(tangents))
        call = Arguments(name, f, range(len(primals)), (*primals,), {}, beside=leaves)
        base = call.base
        given = fitted(name, "tangent", leaves, structure, call.structure, call.arrays, base, call.dtypes)
        duals = list(map(Dual, call.arrays, given))
    level: Tangent[Any] = Tangent.fresh(base)
    with transform_level(level, None if call is None else call.dtype):
        if call is None:
            out = f(*map(wrap, duals, itertools.repeat(level), [x._dtype for x in primals]))
        else:
            out = call.run(f, level, duals)
        if not has_aux and out.__class__ is Tensor and out._device is level:  # what follows, of one result
            dual = out._array
            tangent = zeros_like(base, dual.value) if dual.tangent is None else dual.tangent
            if call is None:
                return wrap(dual.value, base, out._dtype), wrap(tangent, base)
            return call.result(dual.value, out._dtype), call.result(tangent)
        call = call or Nested(base, primals)
        out, aux = split_aux(name, out, has_aux)
        leaves, structure = results_of(name, out)
        duals = [on_level(x, level) for x in leaves]
        known = [x._dtype if x.__class__ is Tensor else None for x in leaves]
        value = trees.unflatten(structure, [call.result(d.value, k) for d, k in zip(duals, known, strict=True)])
        tangent = trees.unflatten(
            structure,
            [call.result(zeros_like(base, d.value) if d.tangent is None else d.tangent) for d in duals],
        )
        if has_aux:
            aux = trees.map(lambda x: to_base(x, level, call), aux)
    return (value, tangent, aux) if has_aux else (value, tangent)


def _nested_duals(level: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Dual] | None:
    """Tensors of the level around with tangents on it, or of single numbers; None if a closer look is needed."""
    if not are_on(level, primals) or len(primals) != len(tangents):
        return None
    duals: list[Dual] = []
    for x in primals:  # zip would take a quarter of the time
        array, t = x._array, tangents[len(duals)]
        if t.__class__ is np.float64 and x._dtype is float64 and array.shape == ():
            duals.append(Dual(array, level.from_numpy(t, copy=False)))
        elif t.__class__ is Tensor and t._device is level and t._dtype is x._dtype and t._array.shape == array.shape:
            duals.append(Dual(array, t._array))
        else:
            return None
    return duals


@kept_of_any_library
def linearize(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """f's value, and its derivative there as a linear function of tangents.

    Tangents have the shapes of the primals, and what the derivative gives those of the value. Gives (value,
    derivative), with `has_aux` (value, derivative, aux). f runs once. What is kept is the pullback as a function of the
    cotangent, whose own pullback is the derivative: a transpose transposed. Of a tangent that a later transform
    follows, the derivative runs f again.

    >>> import adjoint as ad
    >>> value, along = ad.linearize(lambda x: x**3, 2.0)
    >>> along(1.0), along(0.5)
    (np.float64(12.0), np.float64(6.0))
    """
    has_aux = as_flag(has_aux, "linearize", "has_aux")
    call = Arguments("linearize", f, range(len(primals)), primals, {}, keep=True)
    lower = reverse_level(call.base)
    level = reverse_level(lower)
    replay = Replay()
    with transform_level(level, call.dtype), replayed(replay):
        chosen, dtype = chosen_dtype(), default_dtype()
        variables = [new_leaf(lower.wrap(array)) for array in call.arrays]
        out, aux = split_aux("linearize", call.run(f, level, variables), has_aux)
        leaves, structure = results_of("linearize", out)
        roots = [on_level(x, level) for x in leaves]
        value = trees.unflatten(structure, [below(root, level, call) for root in roots])
        aux = trees.map(lambda x: to_base(x, level, call), aux)
        cotangents = [new_leaf(zeros_like(call.base, r.value.value)) for r in roots]
        pairs = [(r, c) for r, c in zip(roots, cotangents, strict=True) if r.node is not None]
        found = level.pull(pairs) if pairs else {}
        pulled = [found[key_of(x)][1] if key_of(x) in found else None for x in variables]

    def along(*tangents: Any) -> Any:
        if (later := call.above(tangents)) is not None:
            with replayed(replay), choosing(chosen), creating_in(dtype):
                return call.again(lambda primals: _jvp("linearize", f, primals, tangents, has_aux)[1], later)
        given = matching("linearize", "tangent", list(tangents), call.structure, call.arrays, call.base)
        roots = [
            (g, t) for g, t in zip(pulled, given, strict=True) if g is not None and g.node is not None and t is not None
        ]
        answers = lower.pull(roots, retain_graph=True) if roots else {}
        moved = [answers.get(key_of(c)) for c in cotangents]
        return trees.unflatten(
            structure,
            [
                call.result(zeros_like(call.base, c.value) if t is None else t[1])
                for c, t in zip(cotangents, moved, strict=True)
            ],
        )

    return (value, along, aux) if has_aux else (value, along)


@of_any_library
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a scalar f times the tangents, without the Hessian: forward over reverse.

    `primals` and `tangents` are tuples of one structure. Gives the product for the first argument, or a tuple
    for several.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 6., 12.])
    """
    check_callable("hvp", f)
    check_tuples("hvp", primals=primals, tangents=tangents)
    argnums = 0 if len(primals) == 1 else range(len(primals))
    return _jvp("hvp", inner_gradient("hvp", f, argnums), primals, tangents, False)[1]
