"""SciPy's optimizers with exact derivatives, on pytrees: `scipy.optimize` does the search.

Functions get tensors and are differentiated as often as a method asks for: gradients, Jacobians, Hessians, and
products with Hessians where a method is content with those. Where the search starts is a pytree, and the answer has
its structure; a list or tuple of Python numbers is an array, as it is in SciPy. SciPy works in float64; the function
gets the dtypes of the start, integers as float64.

Needs SciPy: `pip install adjoint[scipy]`. To differentiate *through* a solution see `adjoint.implicit`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import errors, trees
from adjoint.functions.creation import as_number
from adjoint.functions.manipulation import concat
from adjoint.functions.products import vecdot
from adjoint.tensor import Tensor, cast, wrap
from adjoint.transforms.calls import Function, array_of, base_of, check_callable, constants, is_numeric, to_numpy
from adjoint.transforms.forward import linearize
from adjoint.transforms.jacobians import hessian, jacobian
from adjoint.transforms.reverse import _value_and_grad, grad, vjp
from adjoint.transforms.states import State

__all__ = ["curve_fit", "least_squares", "minimize", "root"]

Vector = np.ndarray[Any, np.dtype[np.float64]]

# what the methods of scipy.optimize.minimize take beside values
_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_HESSIANS = {"dogleg", "trust-exact"}
_GRADIENTS = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp"} | _PRODUCTS | _HESSIANS
_ROOTS = (
    "hybr", "lm", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "krylov",
    "df-sane",
)  # fmt: skip
_VALUES = {"nelder-mead", "powell", "cobyla", "cobyqa"}


def _optimize() -> Any:
    try:
        import scipy.optimize
    except ModuleNotFoundError:
        raise errors.MissingLibraryError(
            "ad.scipy needs SciPy, which is not installed: pip install adjoint[scipy]"
        ) from None
    return scipy.optimize


class _Space:
    """Where a search takes place: the vectors of SciPy, and the trees of the user."""

    def __init__(self, name: str, x0: Any, args: Any) -> None:
        self.name = name
        x0 = _as_floats(x0)
        leaves = [*trees.flatten(x0)[0], *trees.flatten(args)[0]]
        for x in leaves:
            if isinstance(x, Tensor) and x.is_tracked():
                raise errors.TrackedError(
                    f"{name}: an argument is tracked, and SciPy's search leaves the graph; detach() it, or see "
                    "ad.implicit for solutions with derivatives"
                )
        self.base = base_of(leaves, name)
        self.as_numpy = not any([isinstance(x, Tensor) for x in leaves])
        self.state = State(name, "x0", x0, self.base)
        self.args = tuple([constants(x, self.base) for x in args])
        self.start = _float64(self.state.vector)

    def tensor(self, vector: Vector) -> Tensor[Any]:
        """SciPy's vector on the base, in the dtype of the state."""
        return cast(wrap(array_of(np.asarray(vector, np.float64), self.base, keep=True), self.base), self.state.dtype)

    def tree(self, vector: Vector) -> Any:
        """A vector as the user's tree."""
        tree = self.state.unravel(self.tensor(vector))
        return trees.map(lambda x: to_numpy(x._array, x.device), tree) if self.as_numpy else tree

    def on_vectors(self, f: Function) -> Function:
        """A function of trees as one of vectors."""
        check_callable(self.name, f)
        return named(f)(lambda x: f(self.state.unravel(x), *self.args))

    def spread(self, bound: Any, what: str) -> Vector:
        """A number for every entry of the vector, from one for all or a tree with numbers or arrays as leaves."""
        parts = []
        structure = self.state.structure
        values = [bound]
        if structure.num_nodes > 1:
            values = trees.spread(bound, structure, f"{self.name}: {what}")
        for value, shape, size, dtype in zip(
            values, self.state.shapes, self.state.sizes, self.state.dtypes, strict=True
        ):
            if dtype.kind == "c":
                raise errors.DtypeError(f"{self.name}: {what} has no meaning for complex numbers, which have no order")
            try:
                parts.append(np.broadcast_to(np.asarray(_values(value), np.float64), shape).reshape(size))
            except (TypeError, ValueError) as error:
                raise errors.ArgumentError(
                    f"{self.name}: {what} of an array of shape {shape} is {errors.shown(value)}; {error}"
                ) from None
        return np.concatenate(parts)


def named(f: Function) -> Callable[[Function], Function]:
    """Keeps a function's name for messages, but not its signature."""

    def rename(run: Function) -> Function:
        run.__name__ = getattr(f, "__name__", repr(f))
        return run

    return rename


def _as_floats(tree: Any) -> Any:
    """Rows of Python numbers as arrays, and integers as float64, as SciPy reads them."""
    if isinstance(tree, (list, tuple)) and tree and _only_numbers(tree):
        with contextlib.suppress(ValueError):  # rows of different lengths are a tree
            tree = np.asarray(tree)
    return trees.map(_as_float, tree)


def _only_numbers(tree: Any) -> bool:
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return all([_only_numbers(x) for x in tree])
    return isinstance(tree, (bool, int, float, complex))


def _as_float(x: Any) -> Any:
    if isinstance(x, (bool, int)) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biu"):
        return np.asarray(x, np.float64)
    if isinstance(x, Tensor) and x.dtype.kind in "biu":
        return x.astype(np.dtype(np.float64))
    return x


def _values(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    if x.is_tracked():
        raise errors.TrackedError(
            "ad.scipy: a function closes over a tensor that is tracked, and SciPy's search leaves the graph; detach() "
            "it, or see ad.implicit for solutions with derivatives"
        )
    return x.numpy()


def _float64(x: Any) -> Vector:
    return np.array(_values(x), np.float64)  # SciPy's own, which it may write to


def _flat(name: str, tree: Any) -> Tensor[Any]:
    """The arrays of a function's result, one behind the other, as one real vector."""
    leaves, structure = trees.flatten(tree)
    parts = []
    for i, x in enumerate(leaves):
        if not isinstance(x, Tensor) and is_numeric(x):
            x = np.asarray(x)
        kind = getattr(getattr(x, "dtype", None), "kind", "")
        if not isinstance(x, Tensor) or kind != "f":
            what = f"{type(x).__name__} {errors.shown(x)}" if not kind else f"an array of {x.dtype}"
            raise errors.DtypeError(
                f"{name}: the function's result{trees.paths(structure)[i]} is {what}; expected real floating tensors"
            )
        parts.append(x.reshape((x.size,)))
    if not parts:
        raise errors.ArgumentError(f"{name}: the function has no results")
    return parts[0] if len(parts) == 1 else concat(parts)


class _Curvature:
    """Products with the Hessian of a function, linearised once for all directions at a point."""

    def __init__(self, space: _Space, f: Function) -> None:
        self.space, self.f = space, f
        self.at: Vector | None = None
        self.along: Function | None = None

    def __call__(self, x: Vector, direction: Vector) -> Vector:
        if self.at is None or not np.array_equal(self.at, x):
            self.at = np.array(x)
            _, self.along = linearize(grad(self.f), self.space.tensor(x))
        assert self.along is not None
        return _float64(self.along(self.space.tensor(direction)))


def minimize(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: Any = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Function | None = None,
    options: Mapping[str, Any] | None = None,
    **kw: Any,
) -> Any:
    """A minimum of a scalar function by `scipy.optimize.minimize`, with exact derivatives.

    Parameters
    ----------
    f
        `f(x, *args)`, with x like x0 but of tensors, gives a real scalar.
    x0
        Where the search starts: an array, or a pytree of arrays and numbers.
    args
        Further arguments of f, not differentiated.
    method
        SciPy's names, or a callable as SciPy describes it; None for SciPy's choice. `CG`, `BFGS`, `L-BFGS-B`, `TNC`
        and `SLSQP` get the gradient; `Newton-CG`, `trust-ncg`, `trust-krylov` and `trust-constr` also products with
        the Hessian; `dogleg` and `trust-exact` the Hessian. `Nelder-Mead`, `Powell`, `COBYLA` and `COBYQA` use values.
    bounds
        A pair (low, high) for each leaf of x0, in a tree of its structure; None is no bound. For one array also what
        SciPy takes: a pair per entry, or `scipy.optimize.Bounds`.
    constraints
        One or a list of SciPy's: dictionaries with "type" and "fun", `NonlinearConstraint`, whose functions get the
        same tree as f and are differentiated exactly, or `LinearConstraint` on the entries of x0, leaf after leaf.
    tol, options
        As in SciPy.
    callback
        As in SciPy, but it gets trees: `callback(x)` or `callback(intermediate_result)`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` and `jac` have the structure of x0: NumPy arrays, or tensors where tensors were given.

    Raises
    ------
    MissingLibraryError
        SciPy is not installed.
    ShapeError, DtypeError
        f is no real scalar; x0 has leaves without derivatives.
    ArgumentError, ArgumentTypeError
        SciPy has no such method; bounds or constraints do not fit; derivatives (`jac`, `hess`, `hessp`) are given,
        which are made here.
    TrackedError
        x0, an argument, or the value of f is tracked: a search leaves the graph.

    Examples
    --------
    >>> import adjoint as ad
    >>> found = ad.scipy.minimize(lambda p: (p["a"] - 3) ** 2 + p["b"] ** 4, {"a": 0.0, "b": 1.0}, method="BFGS")
    >>> bool(found.success), round(float(found.x["a"]), 5)
    (True, 3.0)
    """
    optimize = _optimize()
    check_callable("minimize", f)
    _refuse_derivatives("minimize", kw, "jac", "hess", "hessp")
    if kw:
        raise errors.ArgumentTypeError(f"minimize: unknown arguments {', '.join(kw)}; a method's own go into options")
    if options is not None and not isinstance(options, Mapping):
        raise errors.ArgumentTypeError(f"minimize: options are a dictionary, received {errors.shown(options)}")
    tol = None if tol is None else as_number(tol, "minimize", "tol")
    known = method.lower() if isinstance(method, str) else method
    if isinstance(known, str) and known not in _GRADIENTS | _VALUES:
        raise errors.ArgumentError(
            f"minimize: there is no method {method!r}; SciPy has {', '.join(sorted(_GRADIENTS | _VALUES))}"
        )
    if known is not None and not isinstance(known, str) and not callable(known):
        raise errors.ArgumentTypeError(f"minimize: method is a name or a callable, received {errors.shown(method)}")
    space = _Space("minimize", x0, _tuple("minimize", args))
    whole = space.on_vectors(f)

    def value(x: Vector) -> float:
        return _scalar(whole(space.tensor(x)))

    def value_and_gradient(x: Vector) -> tuple[float, Vector]:
        y, g = _value_and_grad("minimize", whole, 0, False, False, (space.tensor(x),), {})
        return float(_float64(y)), _float64(g)

    derivatives: dict[str, Any] = {}
    if known not in _VALUES:
        derivatives["jac"] = True
    if callable(known) or known in _PRODUCTS:
        derivatives["hessp"] = _Curvature(space, whole)
    if known in _HESSIANS:
        derivatives["hess"] = lambda x: _float64(hessian(whole)(space.tensor(x)))
    found = optimize.minimize(
        value if known in _VALUES else value_and_gradient,
        space.start,
        method=method,
        bounds=None if bounds is None else _bounds(space, bounds),
        constraints=_constraints(space, constraints, second=known == "trust-constr"),
        tol=tol,
        callback=None if callback is None else _callback(space, callback, plain=known == "tnc"),
        options=None if options is None else dict(options),
        **derivatives,
    )
    return _answer(space, found, "jac", "grad")


def _scalar(y: Any) -> float:
    shape = getattr(y, "shape", () if isinstance(y, (float, int)) else None)
    if shape != ():
        what = f"{type(y).__name__} {errors.shown(y)}" if shape is None else f"a result of shape {shape}"
        raise errors.ShapeError(f"minimize: the function gives {what}; what is minimised is one real scalar")
    if getattr(getattr(y, "dtype", None), "kind", "f") == "c":
        raise errors.DtypeError("minimize: the function gives complex numbers, which have no order; take .real or abs")
    return float(_values(y))


def _tuple(name: str, args: Any) -> tuple[Any, ...]:
    """SciPy takes a single argument without a tuple, too."""
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def _answer(space: _Space, found: Any, *names: str) -> Any:
    for name in ("x", *names):
        if isinstance(found.get(name), np.ndarray) and found[name].size == space.state.size:
            found[name] = space.tree(found[name])
    return found


def _callback(space: _Space, callback: Function, plain: bool = False) -> Function:
    """A callback of trees; `plain` where the method hands over the vector alone."""
    check_callable(f"{space.name}'s callback", callback)
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = set()

    if names == {"intermediate_result"} and plain:
        result = _optimize().OptimizeResult
        return lambda x: callback(intermediate_result=result(x=space.tree(x)))
    if names == {"intermediate_result"}:

        def with_result(*, intermediate_result: Any) -> Any:
            seen = type(intermediate_result)(intermediate_result)  # SciPy goes on with its own
            return callback(intermediate_result=_answer(space, seen, "jac"))

        return with_result
    return lambda x, *state: callback(space.tree(x), *state)


def _bounds(space: _Space, bounds: Any) -> Any:
    """SciPy's bounds, from those or from a tree of pairs."""
    state = space.state
    one_array = state.structure.num_nodes == 1
    if isinstance(bounds, _optimize().Bounds):
        if not one_array:
            raise errors.ArgumentError(
                "minimize: Bounds are for one array; of a tree, bounds are a pair (low, high) for each leaf"
            )
        return _ordered("minimize", bounds)
    if one_array and not _is_pair(bounds):
        if isinstance(bounds, (np.ndarray, Tensor)):
            bounds = np.asarray(_values(bounds)).tolist()
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
        return _ordered("minimize", _optimize().Bounds(lowest, highest))
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
    return _ordered("minimize", _optimize().Bounds(np.concatenate(lows), np.concatenate(highs)))


def _bound(name: str, value: Any) -> Vector:
    try:
        return np.asarray(_values(value), np.float64)
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


def _pairs_of(space: _Space, bounds: Any) -> list[Any]:
    """The pair of each leaf."""
    import optree

    structure = space.state.structure
    pairs, found = optree.tree_flatten(bounds, is_leaf=lambda x: _is_pair(x) or x is None, namespace="adjoint")
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


def _constraints(space: _Space, constraints: Any, second: bool) -> Any:
    """SciPy's constraints on vectors, with exact Jacobians, and Hessians if the method has a use for them."""
    if isinstance(constraints, (list, tuple)):
        return [_constraint(space, c, second) for c in constraints]
    return _constraint(space, constraints, second)


def _constraint(space: _Space, constraint: Any, second: bool) -> Any:
    optimize = _optimize()
    if isinstance(constraint, optimize.LinearConstraint):
        columns = np.shape(constraint.A)[-1]
        if columns != space.state.size:
            raise errors.ShapeError(
                f"minimize: a LinearConstraint of {columns} columns for {space.state.size} unknowns"
            )
        return constraint
    if isinstance(constraint, optimize.NonlinearConstraint):
        flat = _flat_function(space, constraint.fun)

        def hess(x: Vector, v: Vector) -> Any:
            weights = np.asarray(v)
            along = _Curvature(space, lambda x: vecdot(flat(x), cast(space.tensor(weights), space.state.dtype)))
            n = space.state.size
            return _operator((n, n), lambda p: along(x, np.ravel(p)))

        return optimize.NonlinearConstraint(
            lambda x: _float64(flat(space.tensor(x))),
            constraint.lb,
            constraint.ub,
            jac=lambda x: _float64(jacobian(flat)(space.tensor(x))),
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
    extra = _tuple("minimize", constraint.get("args", ()))
    flat = _flat_function(space, constraint["fun"], extra)
    return {
        "type": constraint["type"],
        "fun": lambda x: _float64(flat(space.tensor(x))),
        "jac": lambda x: _float64(jacobian(flat)(space.tensor(x))),
    }


def _flat_function(space: _Space, f: Function, args: tuple[Any, ...] = ()) -> Function:
    """A function of trees as one from vectors to vectors."""
    check_callable(space.name, f)
    args = tuple([constants(x, space.base) for x in args])
    return named(f)(lambda x: _flat(space.name, f(space.state.unravel(x), *args)))


def least_squares(f: Function, x0: Any, bounds: Any = None, method: str = "trf", *, args: Any = (), **kw: Any) -> Any:
    """The least sum of squared residuals by `scipy.optimize.least_squares`, with exact Jacobians.

    Parameters
    ----------
    f
        `f(x, *args)`, with x like x0 but of tensors, gives the residuals: real arrays in a pytree.
    x0
        Where the search starts: an array, or a pytree of arrays and numbers.
    bounds
        A pair (lowest, highest), each a number or a tree of x0's structure with numbers or arrays as leaves.
    method
        "trf", "dogbox" or "lm".
    args
        Further arguments of f, not differentiated.
    kw
        SciPy's other options. With `tr_solver="lsmr"` the Jacobian is never made: products with it are enough.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` and `grad` have the structure of x0; `fun` and the rows of `jac` are the residuals leaf after leaf.

    Raises
    ------
    MissingLibraryError, DtypeError, ArgumentError, TrackedError
        As in `minimize`.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> found = ad.scipy.least_squares(lambda p: ad.exp(p[0] * t) - p[1] - t, np.array([0.1, 0.5]))
    >>> bool(found.success)
    True
    """
    optimize = _optimize()
    _refuse_derivatives("least_squares", kw, "jac", "jac_sparsity")
    _check_solver("least_squares", method, ("trf", "dogbox", "lm"), bounds)
    space = _Space("least_squares", x0, _tuple("least_squares", args))
    flat = _flat_function(space, f, space.args)
    limits = (-np.inf, np.inf)
    if bounds is not None:
        limits = _limits(space, bounds)
        _check_inside(space, limits)
    if callable(kw.get("callback")):
        kw["callback"] = _callback(space, kw["callback"])

    def matrix(x: Vector) -> Any:
        return _float64(jacobian(flat)(space.tensor(x)))

    found = optimize.least_squares(
        lambda x: _float64(flat(space.tensor(x))),
        space.start,
        jac=functools.partial(_products, space, flat) if kw.get("tr_solver") == "lsmr" else matrix,
        bounds=limits,
        method=method,
        **kw,
    )
    return _answer(space, found, "grad")


def _products(space: _Space, flat: Function, x: Vector) -> Any:
    """The Jacobian as products with it."""
    at = space.tensor(x)
    value, along = linearize(flat, at)
    _, back = vjp(flat, at)
    return _operator(
        (value.shape[0], space.state.size),
        lambda p: _float64(along(space.tensor(np.ravel(p)))),
        lambda r: _float64(back(cast(space.tensor(np.ravel(r)), value.dtype))[0]),
    )


def _operator(shape: tuple[int, int], product: Function, transposed: Function | None = None) -> Any:
    import scipy.sparse.linalg

    make: Any = scipy.sparse.linalg.LinearOperator
    return make(shape, matvec=product, rmatvec=transposed, dtype=np.float64)


def _limits(space: _Space, bounds: Any) -> Any:
    if isinstance(bounds, _optimize().Bounds):
        bounds = bounds.lb, bounds.ub
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise errors.ArgumentError(
            f"{space.name}: bounds are a pair (lowest, highest), each a number or a tree like x0; received "
            f"{errors.shown(bounds)}"
        )
    low, high = (otherwise if v is None else v for v, otherwise in zip(bounds, (-np.inf, np.inf), strict=True))
    limits = _optimize().Bounds(space.spread(low, "a bound"), space.spread(high, "a bound"))
    _ordered(space.name, limits, apart=True)
    return limits.lb, limits.ub


def _check_inside(space: _Space, limits: tuple[Vector, Vector]) -> None:
    outside = (space.start < limits[0]) | (space.start > limits[1])
    if outside.any():
        raise errors.ArgumentError(
            f"{space.name}: the search starts outside of the bounds, at {space.start[outside][0]}, not from "
            f"{limits[0][outside][0]} to {limits[1][outside][0]}"
        )


def _check_solver(name: str, method: Any, known: tuple[str, ...], bounds: Any = None) -> None:
    if method not in known:
        raise errors.ArgumentError(
            f"{name}: method is one of {', '.join(map(repr, known))}, received {errors.shown(method)}"
        )
    if method == "lm" and bounds is not None:
        raise errors.ArgumentError(f"{name}: the method 'lm' has no bounds; take 'trf' or 'dogbox'")


def _refuse_derivatives(name: str, kw: Mapping[str, Any], *refused: str) -> None:
    for word in refused:
        if word in kw:
            raise errors.ArgumentError(f"{name}: derivatives are exact and made here; leave out {word}=")


def root(f: Function, x0: Any, args: Any = (), method: str = "hybr", **kw: Any) -> Any:
    """A root of a function by `scipy.optimize.root`, with exact Jacobians.

    Parameters
    ----------
    f
        `f(x, *args)`, with x like x0 but of tensors, gives as many real numbers as x0 has, in any pytree.
    x0
        Where the search starts: an array, or a pytree of arrays and numbers.
    args
        Further arguments of f, not differentiated.
    method
        "hybr" and "lm" get the Jacobian; SciPy's other methods use values.
    kw
        SciPy's `tol`, `callback`, `options`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` has the structure of x0.

    Raises
    ------
    MissingLibraryError, DtypeError, ArgumentError, TrackedError
        As in `minimize`.
    ShapeError
        f gives more or fewer numbers than x0 has.

    Examples
    --------
    >>> import adjoint as ad
    >>> found = ad.scipy.root(lambda x: ad.stack([x[0] + x[1] - 3, x[0] * x[1] - 2]), [0.0, 5.0])
    >>> found.x.round(6)
    array([1., 2.])
    """
    optimize = _optimize()
    _refuse_derivatives("root", kw, "jac")
    method = method.lower() if isinstance(method, str) else method
    _check_solver("root", method, _ROOTS)
    space = _Space("root", x0, _tuple("root", args))
    flat = _flat_function(space, f, space.args)

    def residual(x: Vector) -> Vector:
        y = flat(space.tensor(x))
        if y.shape != (space.state.size,):
            raise errors.ShapeError(
                f"root: the function gives {y.shape[0]} numbers for {space.state.size} unknowns; their number must be "
                "equal, or take least_squares"
            )
        return _float64(y)

    if callable(kw.get("callback")):
        inner = kw["callback"]
        kw["callback"] = lambda x, fx: inner(space.tree(x), fx)
    exact = {"jac": lambda x: _float64(jacobian(flat)(space.tensor(x)))} if method in ("hybr", "lm") else {}
    return _answer(space, optimize.root(residual, space.start, method=method, **exact, **kw))


def curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    *,
    bounds: Any = None,
    **kw: Any,
) -> Any:
    """Parameters of a model fitted to data by `scipy.optimize.curve_fit`, with exact Jacobians.

    Parameters
    ----------
    f
        The model: `f(xdata, *p)` for a sequence or an array of parameters, `f(xdata, **p)` for a dictionary,
        `f(xdata, p)` for any other tree. Gives a real array of ydata's shape.
    xdata
        What the model gets: any pytree; its arrays become tensors.
    ydata
        A real array of any shape.
    p0
        Where the search starts. None is 1 for each parameter that f has by name; with bounds in the middle of them, or
        1 from the only one.
    sigma, absolute_sigma
        Standard deviations of ydata, one or of its shape, or the covariance matrix of its entries; whether they are
        more than relative. As in SciPy.
    bounds
        A pair (lowest, highest), each a number or a tree of p0's structure.
    kw
        SciPy's `method`, `full_output`, `check_finite`, `nan_policy` and options of its solver.

    Returns
    -------
    popt, pcov
        The parameters in the structure of p0 (an array where that is None or a row of numbers), and their covariance
        matrix; more with `full_output`, as in SciPy.

    Raises
    ------
    MissingLibraryError, DtypeError, ArgumentError, TrackedError
        As in `minimize`.
    ShapeError
        The model gives another number of values than ydata has.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> t = np.linspace(0.0, 4.0, 20)
    >>> popt, pcov = ad.scipy.curve_fit(lambda t, a, k: a * ad.exp(-k * t), t, 2.5 * np.exp(-1.3 * t))
    >>> popt.round(6)
    array([2.5, 1.3])
    """
    optimize = _optimize()
    check_callable("curve_fit", f)
    _refuse_derivatives("curve_fit", kw, "jac")
    if kw.get("method") is not None:
        _check_solver("curve_fit", kw["method"], ("lm", "trf", "dogbox"), bounds)
    anywhere = p0 is None
    p0 = _ones_for(f) if p0 is None else p0
    space = _Space("curve_fit", p0, (xdata,))
    limits = (-np.inf, np.inf) if bounds is None else _limits(space, bounds)
    if bounds is not None and anywhere:
        space.start = _middle(*limits)
    elif bounds is not None:
        _check_inside(space, limits)
    (inputs,) = space.args
    measured = np.asarray(_values(ydata))
    if measured.dtype.kind not in "biuf":
        raise errors.DtypeError(f"curve_fit: ydata is real numbers, received {errors.shown(ydata)}")
    if not measured.size:
        raise errors.ShapeError(f"curve_fit: ydata of shape {measured.shape} has no values to fit")
    spread = _spread_over(p0)

    def model(x: Tensor[Any]) -> Tensor[Any]:
        y = _flat("curve_fit", spread(f, inputs, space.state.unravel(x)))
        if y.shape != (measured.size,):
            raise errors.ShapeError(
                f"curve_fit: the model gives {y.shape[0]} values for data of shape {measured.shape}"
            )
        return y

    deviations = _values(sigma)
    n = measured.size
    if deviations is not None:
        shape = np.shape(deviations)
        if shape in ((), measured.shape):
            deviations = np.broadcast_to(deviations, measured.shape).ravel()
        elif shape != (n, n):
            raise errors.ShapeError(
                f"curve_fit: sigma has shape {shape}, expected ydata's, {measured.shape}, or that of a matrix, {(n, n)}"
            )
    popt, *rest = optimize.curve_fit(
        lambda rows, *p: _float64(model(space.tensor(np.asarray(p))))[rows.astype(int)],
        np.arange(n),  # which rows are left where nan are omitted
        measured.ravel(),
        p0=space.start,
        sigma=deviations,
        absolute_sigma=absolute_sigma,
        bounds=limits,
        jac=lambda rows, *p: _float64(jacobian(model)(space.tensor(np.asarray(p))))[rows.astype(int)],
        **kw,
    )
    return space.tree(popt), *rest


def _middle(low: Vector, high: Vector) -> Vector:
    """Where SciPy starts within bounds."""
    floor, top = np.isfinite(low), np.isfinite(high)
    low, high = np.where(floor, low, 0.0), np.where(top, high, 0.0)
    both = 0.5 * (low + high)
    return np.where(floor & top, both, np.where(floor, low + 1.0, np.where(top, high - 1.0, 1.0)))


def _ones_for(f: Function) -> Any:
    """A start for a model whose parameters have names."""
    try:
        parameters = list(inspect.signature(f).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not named or len(named) < len(parameters):
        raise errors.ArgumentError("curve_fit: the model does not tell how many parameters it has; give p0")
    return np.ones(len(named))


def _spread_over(p0: Any) -> Callable[[Function, Any, Any], Any]:
    """How parameters are handed to the model."""
    if isinstance(p0, Mapping):
        return lambda f, x, p: f(x, **p)
    if (isinstance(p0, Sequence) and not hasattr(p0, "_fields")) or getattr(p0, "ndim", 0) == 1:
        return lambda f, x, p: f(x, *p)
    return lambda f, x, p: f(x, p)
