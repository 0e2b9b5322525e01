"""Distributions of vectors, under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from adjoint import errors
from adjoint.dtypes import finfo
from adjoint.functions.elementwise import exp, floor, log, where
from adjoint.functions.logic import equal, greater_equal, less_equal, logical_and
from adjoint.functions.reduction import all as every
from adjoint.functions.reduction import sum as total_of
from adjoint.functions.shape import diagonal, expand_dims, squeeze
from adjoint.linalg import cholesky, solve_triangular
from adjoint.operands import cast
from adjoint.special import gammaln, xlogy
from adjoint.special.arguments import reals, wide
from adjoint.stats.families import exp_or_nothing
from adjoint.tensor import Tensor


class multivariate_normal_type:
    """The normal distribution of vectors along the last axis; stacks broadcast."""

    def __repr__(self) -> str:
        return "adjoint.stats.multivariate_normal"

    def logpdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Tensor[Any]:
        """The logarithm of the density of vectors x, shape (..., d).

        `mean` is a vector, shape (..., d), or a number for all; `cov` a number for a multiple of the identity, the
        diagonal, shape (d,), or matrices, shape (..., d, d), of which the lower triangle counts. Raises ShapeError for
        an x without axes or where shapes do not fit, SingularError where a matrix is not positive definite.

        >>> import adjoint as ad
        >>> x = ad.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=ad.float64)
        >>> ad.stats.multivariate_normal.logpdf(x, 0.0, ad.eye(2, dtype=ad.float64)).numpy().round(4).tolist()
        [-2.3379, -3.8379]
        """
        x, mean, cov = reals("stats.multivariate_normal.logpdf", x, mean, cov)
        dtype = x.dtype
        x, mean, cov = wide(x), wide(mean), wide(cov)
        if not x.ndim:
            raise errors.ShapeError(
                "stats.multivariate_normal.logpdf: expected vectors, shape (..., d), received a single number; x[None] "
                "is a vector"
            )
        away = x - mean
        d = away.shape[-1]
        if cov.ndim >= 2:
            if cov.shape[-2:] != (d, d):
                raise errors.ShapeError(
                    f"stats.multivariate_normal.logpdf: vectors of {d} numbers have a covariance of shape "
                    f"(..., {d}, {d}), received {cov.shape}"
                )
            factor = cholesky(cov)
            z = squeeze(solve_triangular(factor, expand_dims(away, axis=-1), upper=False), axis=-1)
            size = total_of(log(diagonal(factor, 0, -2, -1)), axis=-1)
        else:
            z = away / cov**0.5
            size = total_of(0.5 * log(cov + 0.0 * away.detach()), axis=-1)
        return cast(-0.5 * total_of(z * z, axis=-1) - size - 0.5 * d * math.log(2.0 * math.pi), dtype)

    def pdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Tensor[Any]:
        """The density of vectors x; arguments are those of `logpdf`."""
        return exp(self.logpdf(x, mean, cov))


class dirichlet_type:
    """The Dirichlet distribution of shares along the first axis, as SciPy has it.

    x and alpha are (k, ...), the density is (...).
    """

    def __repr__(self) -> str:
        return "adjoint.stats.dirichlet"

    def logpdf(self, x: Any, alpha: Any) -> Tensor[Any]:
        """The logarithm of the density of shares x, shape (k, ...), which sum to 1; -inf for others.

        `alpha` has shape (k,), or broadcasts with x; nan where it is not positive. Raises ShapeError for no axes.
        """
        x, alpha = reals("stats.dirichlet.logpdf", x, alpha)
        dtype = x.dtype
        if not x.ndim or not alpha.ndim or x.shape[0] != alpha.shape[0]:
            raise errors.ShapeError(
                "stats.dirichlet.logpdf: expected shares and parameters along the first axis, as many of one as of the "
                f"other; received {x.shape} and {alpha.shape}"
            )
        tolerance = 1e-9 if dtype.itemsize == 8 else 10.0 * float(finfo(dtype).eps)
        x, alpha = wide(x), wide(alpha)
        alpha = alpha.reshape((*alpha.shape, *(1,) * (x.ndim - alpha.ndim)))
        valid = every(greater_equal(alpha, 1e-300), axis=0)
        alpha = where(expand_dims(valid, axis=0), alpha, 1.0)
        near = less_equal(abs(total_of(x, axis=0) - 1.0), tolerance)
        inside = logical_and(every(greater_equal(x, 0.0), axis=0), near)
        shares = where(expand_dims(inside, axis=0), x, 0.5)
        value = total_of(xlogy(alpha - 1.0, shares), axis=0)
        value = value + gammaln(total_of(alpha, axis=0)) - total_of(gammaln(alpha), axis=0)
        return cast(where(valid, where(inside, value, -math.inf), math.nan), dtype)

    def pdf(self, x: Any, alpha: Any) -> Tensor[Any]:
        """The density of shares x; arguments are those of `logpdf`."""
        return exp_or_nothing(self.logpdf(x, alpha))  # type: ignore[no-any-return]


class multinomial_type:
    """The multinomial distribution of counts along the last axis.

    x and p are (..., k), n broadcasts with what comes before k, as the result does.
    """

    def __repr__(self) -> str:
        return "adjoint.stats.multinomial"

    def logpmf(self, x: Any, n: Any, p: Any) -> Tensor[Any]:
        """The logarithm of the probability of counts x, shape (..., k), of n trials with probabilities p, (..., k).

        -inf for what are no whole numbers from 0 that sum to n; nan for probabilities below 0. They should sum to 1,
        which is not tested: the gradient is by each of them as it stands. Raises ShapeError for no axes.
        """
        x, n, p = reals("stats.multinomial.logpmf", x, n, p)
        dtype = x.dtype
        if not x.ndim or not p.ndim:
            raise errors.ShapeError(
                "stats.multinomial.logpmf: expected counts and probabilities along the last axis, received shapes "
                f"{x.shape} and {p.shape}"
            )
        if x.shape[-1] != p.shape[-1]:
            raise errors.ShapeError(
                f"stats.multinomial.logpmf: {x.shape[-1]} counts along the last axis, and {p.shape[-1]} probabilities"
            )
        x, n, p = wide(x), wide(n), wide(p)
        valid = every(greater_equal(p, 0.0), axis=-1)
        p = where(expand_dims(valid, axis=-1), p, 1.0)
        whole = every(logical_and(greater_equal(x, 0.0), equal(floor(x), x)), axis=-1)
        inside = logical_and(whole, equal(total_of(x, axis=-1), n))
        counts = where(expand_dims(inside, axis=-1), x, 0.0)
        value = gammaln(n + 1.0) + total_of(xlogy(counts, p) - gammaln(counts + 1.0), axis=-1)
        return cast(where(valid, where(inside, value, -math.inf), math.nan), dtype)

    def pmf(self, x: Any, n: Any, p: Any) -> Tensor[Any]:
        """The probability of counts x; arguments are those of `logpmf`."""
        return exp_or_nothing(self.logpmf(x, n, p))  # type: ignore[no-any-return]


multivariate_normal: multivariate_normal_type = multivariate_normal_type()
dirichlet: dirichlet_type = dirichlet_type()
multinomial: multinomial_type = multinomial_type()
