"""Distributions by name: SciPy's functions, which with boxes are those of `adjoint.stats`."""

from __future__ import annotations

from typing import Any

import scipy.stats

from adjoint import stats
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
            found[each] = primitive(function) if here is None else traced(function, here)
    return found


class Distribution:
    """The functions of a distribution as attributes."""

    def __init__(self, name: str) -> None:
        vars(self).update(functions(name))
