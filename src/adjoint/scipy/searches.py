"""Minima, least squares and roots."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_number, called, check_callable
from adjoint.operands import cast
from adjoint.scipy.limits import check_inside, vector_bounds, vector_constraints, vector_limits
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
from adjoint.transforms.arguments import Function
from adjoint.transforms.forward import linearize
from adjoint.transforms.jacobians import hessian, jacobian
from adjoint.transforms.reverse import value_and_gradient, vjp

# what the methods of scipy.optimize.minimize take beside values
_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_HESSIANS = {"dogleg", "trust-exact"}
_GRADIENTS = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp"} | _PRODUCTS | _HESSIANS
_ROOTS = (
    "hybr", "lm", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "krylov",
    "df-sane",
)  # fmt: skip
_VALUES = {"nelder-mead", "powell", "cobyla", "cobyqa"}
# those that heed bounds and constraints; of others SciPy warns and goes on without
_CONSTRAINED = ("SLSQP", "trust-constr", "COBYLA", "COBYQA")
_BOUNDED = ("L-BFGS-B", "TNC", *_CONSTRAINED, "Nelder-Mead", "Powell")


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
        SciPy has no such method, or that has no bounds or constraints; these do not fit; derivatives (`jac`, `hess`,
        `hessp`) are given, also of a constraint, which are made here.
    TrackedError
        x0, an argument, or the value of f is tracked: a search leaves the graph.

    Examples
    --------
    >>> import adjoint as ad
    >>> found = ad.scipy.minimize(lambda p: (p["a"] - 3) ** 2 + p["b"] ** 4, {"a": 0.0, "b": 1.0}, method="BFGS")
    >>> bool(found.success), round(float(found.x["a"]), 5)
    (True, 3.0)
    """
    optimize = optimizers()
    check_callable("minimize", f)
    refuse_derivatives("minimize", kw, "jac", "hess", "hessp")
    if kw:
        raise errors.ArgumentTypeError(f"minimize: unknown arguments {', '.join(kw)}; a method's own go into options")
    if options is not None and not isinstance(options, Mapping):
        raise errors.ArgumentTypeError(f"minimize: options are a dictionary, received {errors.shown(options)}")
    tol = None if tol is None else as_number(tol, "minimize", "tol")
    known = method.lower() if isinstance(method, str) else method
    if isinstance(known, str) and known not in _GRADIENTS | _VALUES:
        raise errors.ArgumentError(
            f"minimize: there is no method {errors.shown(method)}; SciPy has {', '.join(sorted(_GRADIENTS | _VALUES))}"
        )
    if known is not None and not isinstance(known, str) and not callable(known):
        raise errors.ArgumentTypeError(f"minimize: method is a name or a callable, received {errors.shown(method)}")
    free = isinstance(constraints, (list, tuple)) and not constraints
    for what, given, able in (("bounds", bounds is not None, _BOUNDED), ("constraints", not free, _CONSTRAINED)):
        if given and isinstance(known, str) and known not in [name.lower() for name in able]:
            raise errors.ArgumentError(f"minimize: the method {method!r} has no {what}; take {', '.join(able)}")
    space = Space("minimize", x0, as_tuple("minimize", args))
    whole = space.on_vectors(f)

    def value(x: Vector) -> float:
        return _scalar(whole(space.tensor(x)))

    pulled = value_and_gradient("minimize", whole)

    def both(x: Vector) -> tuple[float, Vector]:
        y, g = pulled(space.tensor(x))
        return float(float64(y)), float64(g)

    derivatives: dict[str, Any] = {}
    if known not in _VALUES:
        derivatives["jac"] = True
    if callable(known) or known in _PRODUCTS:
        derivatives["hessp"] = Curvature(space, whole)
    if known in _HESSIANS:
        derivatives["hess"] = lambda x: float64(hessian(whole)(space.tensor(x)))
    found = optimize.minimize(
        value if known in _VALUES else both,
        space.start,
        method=method,
        bounds=None if bounds is None else vector_bounds(space, bounds),
        constraints=vector_constraints(space, constraints, second=known == "trust-constr"),
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
    return float(values_of(y))


def _answer(space: Space, found: Any, *names: str) -> Any:
    if not isinstance(found, MutableMapping):  # of a method of the user's
        raise errors.ArgumentTypeError(
            f"{space.name}: a method gives an OptimizeResult, received {errors.shown(found)}"
        )
    for name in ("x", *names):
        if isinstance(found.get(name), np.ndarray) and found[name].size == space.state.size:
            found[name] = space.tree(found[name])
    return found


def _callback(space: Space, callback: Function, plain: bool = False) -> Function:
    """A callback of trees; `plain` where the method hands over the vector alone."""
    check_callable(f"{space.name}'s callback", callback)
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = set()

    if names == {"intermediate_result"} and plain:
        result = optimizers().OptimizeResult
        return lambda x: callback(intermediate_result=result(x=space.tree(x)))
    if names == {"intermediate_result"}:

        def with_result(*, intermediate_result: Any) -> Any:
            seen = type(intermediate_result)(intermediate_result)  # SciPy goes on with its own
            return callback(intermediate_result=_answer(space, seen, "jac"))

        return with_result
    return lambda x, *state: called(space.name, "callback(x)", callback, space.tree(x), *state)


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
    optimize = optimizers()
    refuse_derivatives("least_squares", kw, "jac", "jac_sparsity")
    check_solver("least_squares", method, ("trf", "dogbox", "lm"), bounds)
    space = Space("least_squares", x0, as_tuple("least_squares", args))
    flat = flat_function(space, f, space.args)
    limits: Any = (-np.inf, np.inf)
    if bounds is not None:
        limits = vector_limits(space, bounds)
        check_inside(space, limits)
    if callable(kw.get("callback")):
        kw["callback"] = _callback(space, kw["callback"])

    def matrix(x: Vector) -> Any:
        return float64(jacobian(flat)(space.tensor(x)))

    found = optimize.least_squares(
        lambda x: float64(flat(space.tensor(x))),
        space.start,
        jac=functools.partial(_products, space, flat) if kw.get("tr_solver") == "lsmr" else matrix,
        bounds=limits,
        method=method,
        **kw,
    )
    return _answer(space, found, "grad")


def _products(space: Space, flat: Function, x: Vector) -> Any:
    """The Jacobian as products with it."""
    at = space.tensor(x)
    value, along = linearize(flat, at)
    _, back = vjp(flat, at)
    return operator(
        (value.shape[0], space.state.size),
        lambda p: float64(along(space.tensor(np.ravel(p)))),
        lambda r: float64(back(cast(space.tensor(np.ravel(r)), value.dtype))[0]),
    )


def check_solver(name: str, method: Any, known: tuple[str, ...], bounds: Any = None) -> None:
    as_choice(method, name, "method", known)
    if method == "lm" and bounds is not None:
        raise errors.ArgumentError(f"{name}: the method 'lm' has no bounds; take 'trf' or 'dogbox'")


def refuse_derivatives(name: str, kw: Mapping[str, Any], *refused: str) -> None:
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
    optimize = optimizers()
    refuse_derivatives("root", kw, "jac")
    method = method.lower() if isinstance(method, str) else method
    check_solver("root", method, _ROOTS)
    space = Space("root", x0, as_tuple("root", args))
    flat = flat_function(space, f, space.args)

    def residual(x: Vector) -> Vector:
        y = flat(space.tensor(x))
        if y.shape != (space.state.size,):
            raise errors.ShapeError(
                f"root: the function gives {y.shape[0]} numbers for {space.state.size} unknowns; their number must be "
                "equal, or take least_squares"
            )
        return float64(y)

    if callable(kw.get("callback")):
        inner = kw["callback"]
        kw["callback"] = lambda x, fx: inner(space.tree(x), fx)
    exact = {"jac": lambda x: float64(jacobian(flat)(space.tensor(x)))} if method in ("hybr", "lm") else {}
    return _answer(space, optimize.root(residual, space.start, method=method, **exact, **kw))
