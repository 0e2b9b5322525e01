"""Curves fitted to data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_flag, called, check_callable
from adjoint.scipy.limits import check_inside, vector_limits
from adjoint.scipy.searches import check_solver, refuse_derivatives
from adjoint.scipy.spaces import Space, Vector, flat_of, float64, optimizers, values_of
from adjoint.tensor import Tensor
from adjoint.transforms.arguments import Function
from adjoint.transforms.jacobians import jacobian


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
    optimize = optimizers()
    check_callable("curve_fit", f)
    refuse_derivatives("curve_fit", kw, "jac")
    if kw.get("method") is not None:
        check_solver("curve_fit", kw["method"], ("lm", "trf", "dogbox"), bounds)
    anywhere = p0 is None
    p0 = _ones_for(f) if p0 is None else p0.to_numpy() if dtypes.is_table(p0) else p0
    space = Space("curve_fit", p0, (xdata,))
    limits: Any = (-np.inf, np.inf) if bounds is None else vector_limits(space, bounds)
    if bounds is not None and anywhere:
        space.start = _middle(*limits)
    elif bounds is not None:
        check_inside(space, limits)
    (inputs,) = space.args
    measured = dtypes.array_of(values_of(ydata), "curve_fit")
    if measured.dtype.kind not in "biuf":
        raise errors.DtypeError(f"curve_fit: ydata is real numbers, received {errors.shown(ydata)}")
    if not measured.size:
        raise errors.ShapeError(f"curve_fit: ydata of shape {measured.shape} has no values to fit")
    spread = _spread_over(p0)

    def model(x: Tensor[Any]) -> Tensor[Any]:
        y = flat_of("curve_fit", space.call(spread, f, inputs, space.state.unravel(x)))
        if y.shape != (measured.size,):
            raise errors.ShapeError(
                f"curve_fit: the model gives {y.shape[0]} values for data of shape {measured.shape}"
            )
        return y

    deviations = None if sigma is None else dtypes.array_of(values_of(sigma), "curve_fit")
    n = measured.size
    if deviations is not None:
        if deviations.dtype.kind not in "biuf":
            raise errors.DtypeError(f"curve_fit: sigma is real numbers, received {errors.shown(sigma)}")
        shape = deviations.shape
        if shape in ((), measured.shape):
            deviations = np.broadcast_to(deviations, measured.shape).ravel()
        elif shape != (n, n):
            raise errors.ShapeError(
                f"curve_fit: sigma has shape {shape}, expected ydata's, {measured.shape}, or that of a matrix, {(n, n)}"
            )
    popt, *rest = optimize.curve_fit(
        lambda rows, *p: float64(model(space.tensor(np.asarray(p))))[rows.astype(int)],
        np.arange(n),  # which rows are left where nan are omitted
        measured.ravel(),
        p0=space.start,
        sigma=deviations,
        absolute_sigma=as_flag(absolute_sigma, "curve_fit", "absolute_sigma"),
        bounds=limits,
        jac=lambda rows, *p: float64(jacobian(model)(space.tensor(np.asarray(p))))[rows.astype(int)],
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
        return lambda f, x, p: called("curve_fit", "f(x, *parameters)", f, x, *p)
    return lambda f, x, p: called("curve_fit", "f(x, parameters)", f, x, p)
