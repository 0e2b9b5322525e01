"""`scipy.integrate.odeint` for boxes."""

from __future__ import annotations

from typing import Any

import scipy.integrate

from adjoint import errors
from adjoint.autograd.numpy.numpy_wrapper import joined
from adjoint.autograd.primitives import traced
from adjoint.solvers import ode

_KNOWN = {"rtol", "atol", "mxstep", "hmax"}


def _odeint(func: Any, y0: Any, t: Any, args: Any = (), *, tfirst: bool = False, **options: Any) -> Any:
    """By adjoint's solver, to the same tolerances."""
    unknown = [name for name, value in options.items() if name not in _KNOWN and value]
    if unknown:
        raise errors.ArgumentTypeError(f"odeint of a box: {unknown[0]}= is not there; of numbers it is SciPy's")
    given = {name: value for name, value in options.items() if name in _KNOWN and value}
    args = args if isinstance(args, tuple) else (args,)

    def slope(y: Any, t: Any, *args: Any) -> Any:
        return joined(func(t, y, *args) if tfirst else func(y, t, *args))

    return ode.odeint(slope, joined(y0), joined(t), *args, **given)


_traced = traced(scipy.integrate.odeint, _odeint)


def odeint(func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """SciPy's; of boxes among y0, t and args by `ad.odeint`."""
    return _traced(func, y0, t, args, **options)


__all__ = ["odeint"]
