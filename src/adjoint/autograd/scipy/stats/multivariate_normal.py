"""`scipy.stats.multivariate_normal` for boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

from adjoint import errors, stats
from adjoint.autograd.boxes import boxed, getval
from adjoint.autograd.primitives import traced
from adjoint.autograd.scipy.stats.by_name import functions
from adjoint.functions.elementwise import exp
from adjoint.tensor import Tensor

_theirs, _ours = scipy.stats.multivariate_normal, stats.multivariate_normal
globals().update(functions("multivariate_normal"))


def _logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    mean = 0.0 if mean is None else mean
    return _of_singular(x, mean, cov) if allow_singular else _ours.logpdf(x, mean, cov)


def _pdf(*args: Any, **options: Any) -> Any:
    return exp(_logpdf(*args, **options))


def _of_singular(x: Any, mean: Any, cov: Any) -> Any:
    """By x and the mean, on the vectors that the distribution gives; elsewhere it is -inf, as SciPy's is.

    The square of a distance is that of x - mean divided by the deviations along the eigenvectors that have any.
    """
    if isinstance(cov, Tensor):
        raise errors.ArgumentTypeError(
            "multivariate_normal.logpdf: with allow_singular=True there is no derivative by the covariance; give it as "
            "an array that is no box, or leave allow_singular out if it has an inverse"
        )
    values = [np.asarray(getval(boxed(v))) for v in (x, mean)]
    cov = np.asarray(cov, np.float64)
    size = max([1, *[v.shape[-1] for v in (*values, cov) if v.ndim]])
    matrix = cov if cov.ndim > 1 else np.diag(np.broadcast_to(cov, (size,)))
    variances, vectors = np.linalg.eigh(matrix)
    there = variances > 1e6 * np.finfo(np.float64).eps * np.abs(variances).max()  # the bound that SciPy counts by
    distances = np.matmul(x - mean, vectors[:, there] / np.sqrt(variances[there]))
    center = np.broadcast_to(values[1], (size,))
    most = _theirs.logpdf(center, center, cov, allow_singular=True)
    inside = np.isfinite(_theirs.logpdf(values[0], values[1], cov, allow_singular=True))
    return np.where(inside, most - 0.5 * np.sum(distances**2, axis=-1), -np.inf)


def _entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """It is what the logarithm of the density is on average: half the number of axes below its value at the mean."""
    size = max([1, *[np.shape(v)[-1] for v in (mean, cov) if v is not None and np.ndim(v)]])
    center = np.zeros(size)
    return 0.5 * size - _ours.logpdf(center, center, cov)


logpdf, pdf, entropy = traced(_theirs.logpdf, _logpdf), traced(_theirs.pdf, _pdf), traced(_theirs.entropy, _entropy)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
