"""`scipy.stats` for boxes: the distributions of `adjoint.stats`."""

from typing import Any

from adjoint import stats
from adjoint.autograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t
from adjoint.autograd.scipy.stats.by_name import Distribution

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in stats.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = Distribution(name)
    return found
