"""Derivatives by pushing forward: Jacobian-vector products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import errors, trees
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import active
from adjoint.graph.nodes import key_of, leaf_of
from adjoint.tensor import Tensor
from adjoint.transforms.calls import (
    Arguments,
    Function,
    array_of,
    base_of,
    matching,
    on_level,
    outcome,
    peeled,
    results_of,
    zeros_like,
)
from adjoint.transforms.reverse import grad


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """f's value at the primals and its derivative along the tangents, computed together.

    `primals` and `tangents` are tuples of one structure. Gives (value, tangent), with `has_aux` (value, tangent, aux).
    Raises ArgumentError, ShapeError and DtypeError for tangents that do not fit their primals.

    >>> import adjoint as ad
    >>> ad.jvp(lambda x: x**3, (2.0,), (1.0,))
    (np.float64(8.0), np.float64(12.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise errors.ArgumentTypeError("jvp: primals and tangents are tuples, one entry per argument of the function")
    call = Arguments("jvp", f, tuple(range(len(primals))), (*primals,), {})
    others, _ = trees.flatten(list(tangents))
    call.base = base_of([*call.leaves, *others], "jvp")
    call.arrays = [array_of(x, call.base) for x in call.leaves]
    call.as_numpy = call.as_numpy and not any(isinstance(x, Tensor) for x in others)
    given = matching("jvp", "tangent", list(tangents), call.structure, call.arrays, call.base)
    level: Tangent[Any] = Tangent.fresh(call.base)
    with active(level):
        moving = [Dual(x, t) for x, t in zip(call.arrays, given, strict=True)]
        out, aux = outcome("jvp", call.run(f, level, moving), has_aux)
        leaves, structure = results_of("jvp", out)
        duals = [on_level(x, level) for x in leaves]
        value = trees.unflatten(structure, [peeled(x, level, call) for x in leaves])
        tangent = trees.unflatten(
            structure,
            [call.result(zeros_like(call.base, d.value) if d.tangent is None else d.tangent) for d in duals],
        )
        aux = trees.map(lambda x: peeled(x, level, call), aux)
    return (value, tangent, aux) if has_aux else (value, tangent)


def linearize(f: Function, *primals: Any) -> tuple[Any, Function]:
    """f's value, and its derivative there as a linear function of tangents.

    f runs once. What is kept is the pullback as a function of the cotangent, whose own pullback is the derivative: a
    transpose transposed.

    >>> import adjoint as ad
    >>> value, along = ad.linearize(lambda x: x**3, 2.0)
    >>> along(1.0), along(0.5)
    (np.float64(12.0), np.float64(6.0))
    """
    call = Arguments("linearize", f, tuple(range(len(primals))), primals, {}, keep=True)
    lower: Autodiff[Any] = Autodiff.fresh(call.base)
    level: Autodiff[Any] = Autodiff.fresh(lower)
    with active(level):
        variables = [leaf_of(lower.wrap(array)) for array in call.arrays]
        leaves, structure = results_of("linearize", call.run(f, level, variables))
        roots = [on_level(x, level) for x in leaves]
        value = trees.unflatten(structure, [peeled(x, level, call) for x in leaves])
        cotangents = [leaf_of(zeros_like(call.base, r.value.value)) for r in roots]
        pairs = [(r, c) for r, c in zip(roots, cotangents, strict=True) if r.node is not None]
        found = level.pull(pairs) if pairs else {}
        pulled = [found[key_of(x)][1] if key_of(x) in found else None for x in variables]

    def along(*tangents: Any) -> Any:
        given = matching("linearize", "tangent", list(tangents), call.structure, call.arrays, call.base)
        roots = [
            (g, t) for g, t in zip(pulled, given, strict=True) if g is not None and g.node is not None and t is not None
        ]
        answers = lower.pull(roots, retain_graph=True) if roots else {}
        keys = [key_of(c) for c in cotangents]
        return trees.unflatten(
            structure,
            [
                call.result(answers[key][1] if key in answers else zeros_like(call.base, c.value))
                for key, c in zip(keys, cotangents, strict=True)
            ],
        )

    return value, along


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a scalar f times the tangents, without the Hessian: forward over reverse.

    `primals` and `tangents` are tuples of one structure. Gives the product for the first argument, or a tuple
    for several.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 6., 12.])
    """
    if not isinstance(primals, (tuple, list)):
        raise errors.ArgumentTypeError("hvp: primals and tangents are tuples, one entry per argument of the function")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]
