"""Bounds and constraints of trees, as SciPy takes them of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.functions.contraction import vecdot
from adjoint.operands import cast
from adjoint.scipy.spaces import (
    Curvature,
    Space,
    Vector,
    as_tuple,
    flat_function,
    float64,
    operator,
    optimizers,
    values_of,
)
from adjoint.tensor import Tensor
from adjoint.transforms.jacobians import jacobian


def vector_bounds(space: Space, bounds: Any) -> Any:
    """SciPy's bounds, from those or from a tree of pairs."""
    state = space.state
    one_array = state.structure.num_nodes == 1
    if isinstance(bounds, optimizers().Bounds):
        if not one_array:
            raise errors.ArgumentError(
                "minimize: Bounds are for one array; of a tree, bounds are a pair (low, high) for each leaf"
            )
        return _ordered("minimize", bounds)
    if one_array and not _is_pair(bounds):
        if isinstance(bounds, (np.ndarray, Tensor)):
            bounds = bounds if bounds.size != 2 * state.size else np.asarray(values_of(bounds)).tolist()
        pairs = bounds if isinstance(bounds, Sequence) else []
        if len(pairs) != state.size or any([np.shape(pair) != (2,) for pair in pairs]):
            raise errors.ArgumentError(
                f"minimize: bounds are a pair (low, high), {state.size} of them, or scipy.optimize.Bounds; received "
                f"{errors.shown(bounds)}"
            )
        ends = [
            [otherwise if v is None else v for v, otherwise in zip(p, (-np.inf, np.inf), strict=True)] for p in pairs
        ]
        lowest, highest = np.transpose([[_bound("minimize", v) for v in pair] for pair in ends])
        return _ordered("minimize", optimizers().Bounds(lowest, highest))
    pairs = [bounds] if one_array else _pairs_of(space, bounds)
    lows: list[Vector] = []
    highs: list[Vector] = []
    for (low, high), shape in zip(pairs, state.shapes, strict=True):
        for value, otherwise, gathered in ((low, -np.inf, lows), (high, np.inf, highs)):
            whole = _bound("minimize", otherwise if value is None else value)
            try:
                gathered.append(np.broadcast_to(whole, shape).ravel())
            except ValueError:
                raise errors.ShapeError(
                    f"minimize: a bound of shape {whole.shape} does not fit an array of shape {shape}"
                ) from None
    if np.dtype(complex).kind in {dtype.kind for dtype in state.dtypes}:
        raise errors.DtypeError("minimize: complex numbers have no order, and so no bounds")
    return _ordered("minimize", optimizers().Bounds(np.concatenate(lows), np.concatenate(highs)))


def _bound(name: str, value: Any) -> Vector:
    try:
        return np.asarray(values_of(value), np.float64)
    except (TypeError, ValueError):
        raise errors.ArgumentTypeError(f"{name}: bounds are numbers or None, received {errors.shown(value)}") from None


def _ordered(name: str, bounds: Any, apart: bool = False) -> Any:
    """Bounds as they are; raises ArgumentError for a lowest value above the highest, or at it where they are apart."""
    low, high = np.broadcast_arrays(bounds.lb, bounds.ub)
    wrong = low >= high if apart else low > high
    if wrong.any():
        raise errors.ArgumentError(
            f"{name}: a lower bound is {'below' if apart else 'at most'} the upper one, received {low[wrong].flat[0]} "
            f"and {high[wrong].flat[0]}"
        )
    return bounds


def _is_pair(x: Any) -> bool:
    """(low, high) of a whole leaf: not two such pairs, one per entry."""
    return isinstance(x, tuple) and len(x) == 2 and not any([isinstance(end, (tuple, list)) for end in x])


def _pairs_of(space: Space, bounds: Any) -> list[Any]:
    """The pair of each leaf."""
    import optree

    structure = space.state.structure
    seen: Any = trees.held(bounds)
    pairs, found = optree.tree_flatten(seen, is_leaf=lambda x: _is_pair(x) or x is None, namespace="adjoint")
    pairs = [(None, None) if pair is None else pair for pair in pairs]
    if found.num_leaves != structure.num_leaves or trees.paths(found) != trees.paths(structure):
        raise errors.ArgumentError(
            f"minimize: bounds have a pair (low, high) for each leaf of x0, in its structure {structure}; "
            f"received {found}, {trees.difference(found, structure)}"
        )
    for pair, path in zip(pairs, trees.paths(structure), strict=True):
        if not _is_pair(pair):
            raise errors.ArgumentError(f"minimize: the bounds at {path} are no pair (low, high): {errors.shown(pair)}")
    return pairs


def vector_limits(space: Space, bounds: Any) -> Any:
    if isinstance(bounds, optimizers().Bounds):
        bounds = bounds.lb, bounds.ub
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise errors.ArgumentError(
            f"{space.name}: bounds are a pair (lowest, highest), each a number or a tree like x0; received "
            f"{errors.shown(bounds)}"
        )
    low, high = (otherwise if v is None else v for v, otherwise in zip(bounds, (-np.inf, np.inf), strict=True))
    limits = optimizers().Bounds(space.spread(low, "a bound"), space.spread(high, "a bound"))
    _ordered(space.name, limits, apart=True)
    return limits.lb, limits.ub


def check_inside(space: Space, limits: tuple[Vector, Vector]) -> None:
    outside = (space.start < limits[0]) | (space.start > limits[1])
    if outside.any():
        raise errors.ArgumentError(
            f"{space.name}: the search starts outside of the bounds, at {space.start[outside][0]}, not from "
            f"{limits[0][outside][0]} to {limits[1][outside][0]}"
        )


def vector_constraints(space: Space, constraints: Any, second: bool) -> Any:
    """SciPy's constraints on vectors, with exact Jacobians, and Hessians if the method has a use for them."""
    if isinstance(constraints, (list, tuple)):
        return [_constraint(space, c, second) for c in constraints]
    return _constraint(space, constraints, second)


def _constraint(space: Space, constraint: Any, second: bool) -> Any:
    optimize = optimizers()
    if isinstance(constraint, optimize.LinearConstraint):
        columns = np.shape(constraint.A)[-1]
        if columns != space.state.size:
            raise errors.ShapeError(
                f"minimize: a LinearConstraint of {columns} columns for {space.state.size} unknowns"
            )
        return constraint
    if isinstance(constraint, optimize.NonlinearConstraint):
        if callable(constraint.jac) or callable(constraint.hess):
            raise _derivatives_given()
        flat = flat_function(space, constraint.fun)
        _check_sides(space, flat, constraint)

        def hess(x: Vector, v: Vector) -> Any:
            weights = np.asarray(v)
            along = Curvature(space, lambda x: vecdot(flat(x), cast(space.tensor(weights), space.state.dtype)))
            n = space.state.size
            return operator((n, n), lambda p: along(x, np.ravel(p)))

        return optimize.NonlinearConstraint(
            lambda x: float64(flat(space.tensor(x))),
            constraint.lb,
            constraint.ub,
            jac=lambda x: float64(jacobian(flat)(space.tensor(x))),
            **({"hess": hess} if second else {}),
            keep_feasible=constraint.keep_feasible,
        )
    if not isinstance(constraint, Mapping) or not {"type", "fun"} <= set(constraint):
        raise errors.ArgumentTypeError(
            "minimize: a constraint is a dictionary with 'type' and 'fun', a NonlinearConstraint or a "
            f"LinearConstraint, received {errors.shown(constraint)}"
        )
    if constraint["type"] not in ("eq", "ineq"):
        raise errors.ArgumentError(
            f"minimize: a constraint's type is 'eq' or 'ineq', received {errors.shown(constraint['type'])}"
        )
    if constraint.get("jac") is not None:
        raise _derivatives_given()
    extra = as_tuple("minimize", constraint.get("args", ()))
    flat = flat_function(space, constraint["fun"], extra)
    return {
        "type": constraint["type"],
        "fun": lambda x: float64(flat(space.tensor(x))),
        "jac": lambda x: float64(jacobian(flat)(space.tensor(x))),
    }


def _derivatives_given() -> errors.ArgumentError:
    return errors.ArgumentError(
        "minimize: derivatives of constraints are exact and made here; leave out their jac= and hess="
    )


def _check_sides(space: Space, flat: Any, constraint: Any) -> None:
    """Raises ShapeError for limits that are not as many as the function gives numbers."""
    shape = flat(space.tensor(space.start)).shape
    for side in (constraint.lb, constraint.ub):
        try:
            np.broadcast_to(side, shape)
        except ValueError:
            raise errors.ShapeError(
                f"minimize: a NonlinearConstraint has limits of shape {np.shape(side)}, and its function gives "
                f"{shape[0]} numbers"
            ) from None
