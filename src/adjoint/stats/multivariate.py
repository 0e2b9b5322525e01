"""Distributions of vectors, under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.dtypes import finfo
from adjoint.functions.arguments import as_flag, as_tensor
from adjoint.functions.elementwise import exp, floor, log, log1p, where
from adjoint.functions.logic import equal, greater, greater_equal, isinf, less_equal, logical_and
from adjoint.functions.reduction import all as every
from adjoint.functions.reduction import sum as total_of
from adjoint.functions.shape import diagonal, expand_dims
from adjoint.irrational import log_2_beside, log_pi_beside, pi_beside
from adjoint.linalg import cholesky, solve_triangular
from adjoint.operands import cast
from adjoint.special import gammaln, multigammaln, xlogy
from adjoint.special.arguments import reals, wide
from adjoint.stats.families import exp_or_nothing
from adjoint.tensor import Tensor


def _distances(name: str, away: Any, cov: Any) -> tuple[Any, Any, int]:
    """The squares of vectors' lengths in units of a covariance, half the logarithm of its determinant, and d."""
    if not away.ndim:
        raise errors.ShapeError(
            f"stats.{name}.logpdf: expected vectors, shape (..., d), received a single number; x[None] is a vector"
        )
    z, size = _solved(name, expand_dims(away, axis=-1), cov)
    return total_of(z * z, axis=(-2, -1)), size, away.shape[-1]


def _solved(name: str, away: Any, cov: Any) -> tuple[Any, Any]:
    """Columns in units of a covariance, and half the logarithm of its determinant."""
    d = away.shape[-2]
    if cov.ndim >= 2:
        if cov.shape[-2:] != (d, d):
            raise errors.ShapeError(
                f"stats.{name}.logpdf: vectors of {d} numbers have a covariance of shape (..., {d}, {d}), received "
                f"{cov.shape}"
            )
        factor = cholesky(cov)
        return solve_triangular(factor, away, upper=False), total_of(log(diagonal(factor, 0, -2, -1)), axis=-1)
    many = cov + 0.0 * away[..., 0].detach()
    return away / expand_dims(many, axis=-1) ** 0.5, total_of(0.5 * log(many), axis=-1)


class multivariate_normal_type:
    """The normal distribution of vectors along the last axis; stacks broadcast."""

    def __repr__(self) -> str:
        return "adjoint.stats.multivariate_normal"

    def logpdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0, *, allow_singular: bool = False) -> Tensor[Any]:
        """The logarithm of the density of vectors x, shape (..., d).

        `mean` is a vector, shape (..., d), or a number for all; `cov` a number for a multiple of the identity, the
        diagonal, shape (d,), or matrices, shape (..., d, d), of which the lower triangle counts. Raises ShapeError for
        an x without axes or where shapes do not fit, SingularError where a matrix is not positive definite.

        With `allow_singular`, `cov` may be one matrix without an inverse. The density is then that on the vectors that
        the distribution gives, and the logarithm is -inf elsewhere. It has no derivative by `cov`: ArgumentTypeError.

        >>> import adjoint as ad
        >>> x = ad.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=ad.float64)
        >>> ad.stats.multivariate_normal.logpdf(x, 0.0, ad.eye(2, dtype=ad.float64)).numpy().round(4).tolist()
        [-2.3379, -3.8379]
        """
        x, mean, cov = reals("stats.multivariate_normal.logpdf", x, mean, cov)
        if as_flag(allow_singular, "stats.multivariate_normal.logpdf", "allow_singular"):
            return _of_singular(x, mean, cov)
        dtype = x.dtype
        square, size, d = _distances("multivariate_normal", wide(x) - wide(mean), wide(cov))
        return cast(-0.5 * square - size - 0.5 * d * log_pi_beside(square, 2.0), dtype)

    def pdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0, *, allow_singular: bool = False) -> Tensor[Any]:
        """The density of vectors x; arguments are those of `logpdf`."""
        return exp(self.logpdf(x, mean, cov, allow_singular=allow_singular))

    def entropy(self, mean: Any = 0.0, cov: Any = 1.0) -> Tensor[Any]:
        """What -logpdf is on average; arguments are those of `logpdf`, and d is that of `mean` or `cov`, or 1.

        >>> import adjoint as ad
        >>> round(ad.stats.multivariate_normal.entropy(0.0, ad.eye(2, dtype=ad.float64)).item(), 4)
        2.8379
        """
        mean, cov = reals("stats.multivariate_normal.entropy", mean, cov)
        d = max(mean.shape[-1:] + cov.shape[-1:], default=1)
        return 0.5 * d - self.logpdf(cast(as_tensor(np.zeros(d), "entropy", cov), cov.dtype), 0.0, cov)


def _of_singular(x: Tensor[Any], mean: Tensor[Any], cov: Tensor[Any]) -> Tensor[Any]:
    """The logarithm of a density on the span of the eigenvectors of a covariance that have a variance."""
    name = "stats.multivariate_normal.logpdf"
    if cov.is_tracked():
        raise errors.ArgumentTypeError(
            f"{name}: with allow_singular=True there is no derivative by the covariance; give it as a constant, or "
            "leave allow_singular out if it has an inverse"
        )
    away, values = wide(x) - wide(mean), cov.numpy().astype(np.float64)
    d = away.shape[-1] if away.ndim else 0
    matrix = values if values.ndim >= 2 else np.diag(np.broadcast_to(values, values.shape[-1:] or (d,)))
    if not d or matrix.shape != (d, d):
        raise errors.ShapeError(
            f"{name}: vectors of shape {away.shape} do not have one covariance of shape {cov.shape}"
        )
    variances, vectors = np.linalg.eigh(matrix)
    # no variance, and no distance from the span, are in double precision what SciPy takes for them
    factor, distance = (1e6, 1e3) if cov.dtype == np.float64 else (1e3, 10.0)
    least = factor * float(finfo(cov.dtype).eps) * np.abs(variances).max()
    if variances[0] < -least:
        raise errors.SingularError(f"{name}: the covariance has a negative eigenvalue, {variances[0]:.3g}")
    there = variances > least
    bases = vectors[:, there] / np.sqrt(variances[there]), vectors[:, ~there]
    along, across = [away @ cast(as_tensor(basis, name, away), away.dtype) for basis in bases]
    size = 0.5 * float(np.log(variances[there]).sum())
    square = total_of(along * along, axis=-1)
    out = -0.5 * square - size - 0.5 * int(there.sum()) * log_pi_beside(square, 2.0)
    return cast(where(total_of(across * across, axis=-1) < (distance * least) ** 2, out, -math.inf), x.dtype)


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
        rounded = reals("stats.dirichlet.logpdf", x)[0].dtype if hasattr(x, "dtype") else None
        x, alpha = reals("stats.dirichlet.logpdf", x, alpha)
        dtype = x.dtype
        if not x.ndim or not alpha.ndim or x.shape[0] != alpha.shape[0]:
            raise errors.ShapeError(
                "stats.dirichlet.logpdf: expected shares and parameters along the first axis, as many of one as of the "
                f"other; received {x.shape} and {alpha.shape}"
            )
        rounded = rounded or dtype  # what the shares were rounded to, also beside parameters of double precision
        tolerance = 1e-9 if rounded.itemsize == 8 else 10.0 * float(finfo(rounded).eps)
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


class multivariate_t_type:
    """Student's t distribution of vectors along the last axis; stacks broadcast."""

    def __repr__(self) -> str:
        return "adjoint.stats.multivariate_t"

    def logpdf(self, x: Any, loc: Any = 0.0, shape: Any = 1.0, df: Any = 1.0) -> Tensor[Any]:
        """The logarithm of the density of vectors x, shape (..., d), with df degrees of freedom.

        `loc` and `shape` are as the mean and the covariance of `multivariate_normal`; df broadcasts with what comes
        before d, and is nan where it is not positive. Raises as `multivariate_normal` does.

        >>> import adjoint as ad
        >>> x = ad.tensor([1.0, 0.0], dtype=ad.float64)
        >>> round(ad.stats.multivariate_t.logpdf(x, 0.0, ad.eye(2, dtype=ad.float64), 3.0).item(), 4)
        -2.5571
        """
        x, loc, shape, df = reals("stats.multivariate_t.logpdf", x, loc, shape, df)
        square, size, d = _distances("multivariate_t", wide(x) - wide(loc), wide(shape))
        valid = greater(df, 0.0)
        df, dtype = where(valid, wide(df), 1.0), x.dtype
        normal = isinf(df)
        k = where(normal, 1.0, df)
        heavy = gammaln(0.5 * (k + d)) - gammaln(0.5 * k) - 0.5 * d * log(k * pi_beside(square))
        heavy = heavy - 0.5 * (k + d) * log1p(square / k)
        value = where(normal, -0.5 * square - 0.5 * d * log_pi_beside(square, 2.0), heavy) - size
        return cast(where(valid, value, math.nan), dtype)

    def pdf(self, x: Any, loc: Any = 0.0, shape: Any = 1.0, df: Any = 1.0) -> Tensor[Any]:
        """The density of vectors x; arguments are those of `logpdf`."""
        return exp(self.logpdf(x, loc, shape, df))


class dirichlet_multinomial_type:
    """Counts along the last axis of trials whose probabilities are Dirichlet distributed; stacks broadcast."""

    def __repr__(self) -> str:
        return "adjoint.stats.dirichlet_multinomial"

    def logpmf(self, x: Any, alpha: Any, n: Any) -> Tensor[Any]:
        """The logarithm of the probability of counts x, shape (..., k), of n trials; alpha is (..., k).

        -inf for what are no whole numbers from 0 that sum to n; nan where alpha is not positive. Raises ShapeError for
        no axes, or for as many counts as parameters.
        """
        x, alpha, n = reals("stats.dirichlet_multinomial.logpmf", x, alpha, n)
        dtype = x.dtype
        if not x.ndim or not alpha.ndim or x.shape[-1] != alpha.shape[-1]:
            raise errors.ShapeError(
                "stats.dirichlet_multinomial.logpmf: expected counts and parameters along the last axis, as many of "
                f"one as of the other; received {x.shape} and {alpha.shape}"
            )
        x, alpha, n = wide(x), wide(alpha), wide(n)
        valid = every(greater_equal(alpha, 1e-300), axis=-1)
        alpha = where(expand_dims(valid, axis=-1), alpha, 1.0)
        whole = every(logical_and(greater_equal(x, 0.0), equal(floor(x), x)), axis=-1)
        inside = logical_and(whole, equal(total_of(x, axis=-1), n))
        counts = where(expand_dims(inside, axis=-1), x, 0.0)
        value = total_of(gammaln(counts + alpha) - gammaln(counts + 1.0) - gammaln(alpha), axis=-1)
        total = total_of(alpha, axis=-1)
        value = value + gammaln(total) + gammaln(n + 1.0) - gammaln(n + total)
        return cast(where(valid, where(inside, value, -math.inf), math.nan), dtype)

    def pmf(self, x: Any, alpha: Any, n: Any) -> Tensor[Any]:
        """The probability of counts x; arguments are those of `logpmf`."""
        return exp_or_nothing(self.logpmf(x, alpha, n))  # type: ignore[no-any-return]


class wishart_type:
    """The distribution of sums of squares of df normal vectors; matrices are the last two axes, in stacks."""

    def __repr__(self) -> str:
        return "adjoint.stats.wishart"

    def logpdf(self, x: Any, df: Any, scale: Any) -> Tensor[Any]:
        """The logarithm of the density of positive definite matrices x, shape (..., p, p).

        `scale` is (..., p, p), and df a number of at least p, or a stack of such; nan for less than p - 1. The lower
        triangles count. SciPy has stacks along a last axis. Raises ShapeError where shapes do not fit, SingularError
        where a matrix is not positive definite.

        >>> import adjoint as ad
        >>> round(ad.stats.wishart.logpdf(2.0 * ad.eye(2, dtype=ad.float64), 3.0, ad.eye(2)).item(), 4)
        -4.531
        """
        dtype, x, df, scale, factor, sides = _matrices("wishart", x, df, scale)
        p = x.shape[-1]
        below = solve_triangular(factor[1], factor[0], upper=False)
        value = 0.5 * (df - p - 1.0) * sides[0] - 0.5 * df * sides[1] - 0.5 * total_of(below * below, axis=(-2, -1))
        return _of_matrices(value, df, p, dtype)

    def pdf(self, x: Any, df: Any, scale: Any) -> Tensor[Any]:
        """The density of matrices x; arguments are those of `logpdf`."""
        return exp(self.logpdf(x, df, scale))


class invwishart_type:
    """The distribution of the inverse of a Wishart distributed matrix; matrices are the last two axes, in stacks."""

    def __repr__(self) -> str:
        return "adjoint.stats.invwishart"

    def logpdf(self, x: Any, df: Any, scale: Any) -> Tensor[Any]:
        """The logarithm of the density of positive definite matrices x; arguments are those of `wishart`'s."""
        dtype, x, df, scale, factor, sides = _matrices("invwishart", x, df, scale)
        p = x.shape[-1]
        below = solve_triangular(factor[0], factor[1], upper=False)
        value = 0.5 * df * sides[1] - 0.5 * (df + p + 1.0) * sides[0] - 0.5 * total_of(below * below, axis=(-2, -1))
        return _of_matrices(value, df, p, dtype)

    def pdf(self, x: Any, df: Any, scale: Any) -> Tensor[Any]:
        """The density of matrices x; arguments are those of `logpdf`."""
        return exp(self.logpdf(x, df, scale))


class matrix_normal_type:
    """The normal distribution of matrices, the last two axes, with a covariance of rows and one of columns."""

    def __repr__(self) -> str:
        return "adjoint.stats.matrix_normal"

    def logpdf(self, X: Any, mean: Any = 0.0, rowcov: Any = 1.0, colcov: Any = 1.0) -> Tensor[Any]:
        """The logarithm of the density of matrices X, shape (..., m, n), with SciPy's parameters.

        `mean` broadcasts with X; `rowcov`, (..., m, m), and `colcov`, (..., n, n), are covariances as those of
        `multivariate_normal`: a number for a multiple of the identity, a diagonal, or matrices, of which the lower
        triangles count. Raises as `multivariate_normal` does.

        >>> import adjoint as ad
        >>> X = ad.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=ad.float64)
        >>> round(ad.stats.matrix_normal.logpdf(X, 0.0, 2.0 * ad.eye(2, dtype=ad.float64)).item(), 4)
        -6.312
        """
        X, mean, rowcov, colcov = reals("stats.matrix_normal.logpdf", X, mean, rowcov, colcov)
        if X.ndim < 2:
            raise errors.ShapeError(
                f"stats.matrix_normal.logpdf: expected matrices, shape (..., m, n), received shape {X.shape}"
            )
        dtype, away = X.dtype, wide(X) - wide(mean)
        m, n = away.shape[-2:]
        away, rows = _solved("matrix_normal", away, wide(rowcov))
        turned, columns = _solved("matrix_normal", away.mT, wide(colcov))
        square = total_of(turned * turned, axis=(-2, -1))
        value = -0.5 * square - n * rows - m * columns - 0.5 * m * n * log_pi_beside(square, 2.0)
        return cast(value, dtype)

    def pdf(self, X: Any, mean: Any = 0.0, rowcov: Any = 1.0, colcov: Any = 1.0) -> Tensor[Any]:
        """The density of matrices X; arguments are those of `logpdf`."""
        return exp(self.logpdf(X, mean, rowcov, colcov))


def _matrices(name: str, x: Any, df: Any, scale: Any) -> tuple[Any, ...]:
    """The dtype of the result, the operands, their Cholesky factors and the logarithms of their determinants."""
    x, df, scale = reals(f"stats.{name}.logpdf", x, df, scale)
    p = x.shape[-1] if x.ndim else 1
    if x.ndim < 2 or x.shape[-2:] != (p, p) or scale.shape[-2:] != (p, p):
        raise errors.ShapeError(
            f"stats.{name}.logpdf: expected x and scale to be matrices of one size, shape (..., p, p); received "
            f"{x.shape} and {scale.shape}"
        )
    dtype, x, df, scale = x.dtype, wide(x), wide(df), wide(scale)
    factors = cholesky(x), cholesky(scale)
    sides = [2.0 * total_of(log(diagonal(factor, 0, -2, -1)), axis=-1) for factor in factors]
    return dtype, x, df, scale, factors, sides


def _of_matrices(value: Any, df: Any, p: int, dtype: Any) -> Tensor[Any]:
    """Without what the density has of df alone, which is nan where it is too small."""
    valid = greater(df, p - 1.0)
    df = where(valid, df, 1.0 * p)
    value = value - 0.5 * p * df * log_2_beside(df) - multigammaln(0.5 * df, p)
    return cast(where(valid, value, math.nan), dtype)


multivariate_normal: multivariate_normal_type = multivariate_normal_type()
dirichlet: dirichlet_type = dirichlet_type()
multinomial: multinomial_type = multinomial_type()
multivariate_t: multivariate_t_type = multivariate_t_type()
dirichlet_multinomial: dirichlet_multinomial_type = dirichlet_multinomial_type()
wishart: wishart_type = wishart_type()
invwishart: invwishart_type = invwishart_type()
matrix_normal: matrix_normal_type = matrix_normal_type()
