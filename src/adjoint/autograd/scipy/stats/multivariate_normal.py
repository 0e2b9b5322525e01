"""`scipy.stats.multivariate_normal` for boxes."""

from __future__ import annotations

from typing import Any

import scipy.stats

from adjoint import stats
from adjoint.autograd.primitives import traced
from adjoint.autograd.scipy.stats.by_name import functions

_theirs, _ours = scipy.stats.multivariate_normal, stats.multivariate_normal
globals().update(functions("multivariate_normal"))


def _logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    return _ours.logpdf(x, 0.0 if mean is None else mean, cov, allow_singular=allow_singular)


def _pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    return _ours.pdf(x, 0.0 if mean is None else mean, cov, allow_singular=allow_singular)


def _entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    return _ours.entropy(0.0 if mean is None else mean, cov)


logpdf, pdf, entropy = traced(_theirs.logpdf, _logpdf), traced(_theirs.pdf, _pdf), traced(_theirs.entropy, _entropy)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
