"""Products with unit vectors, which `vmap` makes for Jacobians and Hessians: a copy, where all numbers are finite.

With an infinity a product has nan in other rows, too, as zero times infinity is. So the copy is one of two branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.gemm import pays
from adjoint.compiler.native.machine import integer_bits
from adjoint.compiler.native.views import contiguous
from adjoint.primitives import INDEX
from adjoint.primitives.sizes import places_along

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_LEAST = 4  # unit vectors, from which on to look for infinities costs less than the product


def take_units(plan: Plan, e: Equation) -> bool:
    """Take a product of unit vectors, one below the other, and a matrix: rows of the matrix."""
    (units, y), (out,) = e.operands, e.results
    first = _first(units)
    if plan.inner or first is None or y.const is not None or len(y.shape) != 2 or not isinstance(out, Value):
        return False
    if not (integer_bits() or pays(contiguous(units.shape), contiguous(y.shape))):
        return False  # which would be a step of Python's
    across = plan.layout[y].strides[0] == 1 < y.shape[1] if y in plan.layout else False
    if across:  # columns of a matrix whose lines are read as they lie
        whole = Value(y.shape[::-1], y.dtype)
        plan._take(Equation("permute_dims", [y], {"axes": (1, 0)}, [whole]))
        found = Value(out.shape[::-1], out.dtype)
        given = np.ascontiguousarray(units.const.T)
    else:
        whole, found, given = y, out, units.const
    finite, all_finite, index = Value(whole.shape, np.dtype(bool)), Value((), np.dtype(bool)), Value((), INDEX)
    plan._take(Equation("isfinite", [whole], {}, [finite]))
    plan._take(Equation("all", [finite], {"axis": (0, 1), "keepdims": False}, [all_finite]))
    plan._take(Equation("astype", [all_finite], {"dtype": INDEX}, [index]))
    ways = _product(whole, given, across, found), _rows(whole, given, across, first, found)
    plan._take(Equation("branch", [index, whole, Value(given.shape, given.dtype, given)], {}, [found], ways))
    if across:
        plan._order_as(found, out, (1, 0))
        plan.leading.add(found)
    return True


def _first(units: Any) -> int | None:
    """Which row of the unit matrix is the first, if a constant is rows of it that follow each other."""
    if units.const is None or len(units.shape) != 2 or not _LEAST <= units.shape[0] <= units.shape[1]:
        return None
    (rows, columns), first = units.shape, int(np.argmax(units.const[0]))
    same = np.array_equal(units.const, np.eye(rows, columns, first, dtype=units.dtype))
    return first if same else None


def _product(x: Value, units: Any, across: bool, like: Value) -> Graph:
    one, other, out = Value(x.shape, x.dtype), Value(units.shape, units.dtype), Value(like.shape, like.dtype)
    return Graph([one, other], [Equation("matmul", [one, other] if across else [other, one], {}, [out])], [out])


def _rows(x: Value, units: Any, across: bool, first: int, like: Value) -> Graph:
    one, other, out = Value(x.shape, x.dtype), Value(units.shape, units.dtype), Value(like.shape, like.dtype)
    part = Value(like.shape, like.dtype)
    key = [places_along(slice(None), n) for n in x.shape]
    key[across] = range(first, first + like.shape[across])
    equations = [Equation("index", [one], {"key": tuple(key)}, [part])]
    equations.append(Equation("add", [part, 0.0], {}, [out]))  # which a sum begins with
    return Graph([one, other], equations, [out])
