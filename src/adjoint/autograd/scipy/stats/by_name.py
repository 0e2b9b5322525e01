"""Distributions by name: SciPy's functions, which with boxes are those of `adjoint.stats`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.stats

from adjoint import errors, stats
from adjoint.autograd.primitives import primitive, traced

_FUNCTIONS = ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "pmf", "logpmf"]


def functions(name: str) -> dict[str, Any]:
    """What SciPy has of a distribution, by name; those without derivatives here raise of boxes."""
    theirs, ours = getattr(scipy.stats, name), getattr(stats, name)
    found: dict[str, Any] = {}
    for each in [*_FUNCTIONS, "rvs", "entropy", "mean", "var", "std"]:
        function = getattr(theirs, each, None)
        if function is not None:
            here = getattr(ours, each, None) if each in _FUNCTIONS else None
            found[each] = primitive(function) if here is None else traced(function, _without_singular(name, each, here))
    return found


def _without_singular(name: str, each: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which `allow_singular=False` may be said to."""
    if name != "multivariate_normal":
        return function

    def run(*args: Any, allow_singular: bool = False, **options: Any) -> Any:
        args, allow_singular = args[:3], args[3] if len(args) > 3 else allow_singular
        if allow_singular:
            raise errors.ArgumentTypeError(
                f"multivariate_normal.{each} of a box: allow_singular=True is not there; the covariance has an inverse"
            )
        return function(*args, **options)

    return run


class Distribution:
    """The functions of a distribution as attributes."""

    def __init__(self, name: str) -> None:
        vars(self).update(functions(name))
