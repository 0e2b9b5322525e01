"""Numbers of continuous distributions; gradients flow to all their parameters.

Most are functions of uniform or normal numbers. Those made of gamma distributed ones have implicit derivatives, by
M. Figurnov, S. Mohamed and A. Mnih, Implicit reparameterization gradients (2018): along them a number keeps its place
in the distribution.

What they have in common: `shape` is that of the result, by default the one that the parameters broadcast to; they
have to broadcast to it. Unless given, the dtype is that of the parameters that are tensors or arrays, else the
default, which transforms do not change here. The device is that of a transform's function, else the first tensor's
among the parameters, else the default.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint import errors
from adjoint.functions.contraction import matmul
from adjoint.functions.elementwise import clip, exp, log, log1p, sqrt, where
from adjoint.functions.elementwise import tan as tangent
from adjoint.functions.shape import expand_dims, squeeze
from adjoint.linalg import cholesky
from adjoint.operands import cast, deferred_check
from adjoint.random.parameters import ANY, NOT_NEGATIVE, POSITIVE, Draw, ShapeLike
from adjoint.special import erfc, erfcinv, expit, softmax
from adjoint.tensor import Tensor


def exponential(
    shape: ShapeLike | None = None, *, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the exponential distribution with this mean. Raises ArgumentError for a negative scale.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.

    >>> import adjoint as ad
    >>> ad.random.seed(0)
    >>> scale = ad.tensor(2.0).require_grad()
    >>> x = ad.random.exponential(1000, scale=scale)
    >>> abs(x.mean().item() - 2.0) < 0.2, abs(x.mean().backward()[scale].item() - 1.0) < 0.1
    (True, True)
    """
    draw = Draw("exponential", shape, dtype, device, {"scale": NOT_NEGATIVE}, scale)
    return -log(draw.uniform()) * draw.parameters[0]


def _located(name: str, shape: Any, loc: Any, scale: Any, dtype: Any, device: Any, standard: Any) -> Tensor[Any]:
    """loc + scale * a number of the standard distribution, a function of the draw."""
    draw = Draw(name, shape, dtype, device, {"loc": ANY, "scale": NOT_NEGATIVE}, loc, scale)
    return standard(draw) * draw.parameters[1] + draw.parameters[0]  # type: ignore[no-any-return]


def cauchy(
    shape: ShapeLike | None = None, *, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the Cauchy distribution. Raises ArgumentError for a negative scale.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    return _located("cauchy", shape, loc, scale, dtype, device, lambda d: tangent((d.uniform() - 0.5) * math.pi))


def gumbel(
    shape: ShapeLike | None = None, *, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the Gumbel distribution, of the largest of many. Raises ArgumentError for a negative scale.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    return _located("gumbel", shape, loc, scale, dtype, device, lambda d: -log(-log(d.uniform())))


def laplace(
    shape: ShapeLike | None = None, *, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the Laplace distribution: of differences of two exponential ones.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given. Raises ArgumentError for a negative scale.
    """
    return _located("laplace", shape, loc, scale, dtype, device, lambda d: log(d.uniform()) - log(d.uniform()))


def _logistic(draw: Draw) -> Tensor[Any]:
    u = draw.uniform()
    return log(u) - log1p(-u)


def logistic(
    shape: ShapeLike | None = None, *, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the logistic distribution. Raises ArgumentError for a negative scale.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    return _located("logistic", shape, loc, scale, dtype, device, _logistic)


def lognormal(
    shape: ShapeLike | None = None, *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers whose logarithms are normal, of this mean and standard deviation.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given. Raises ArgumentError for a negative standard deviation.
    """
    draw = Draw("lognormal", shape, dtype, device, {"mean": ANY, "std": NOT_NEGATIVE}, mean, std)
    return exp(draw.noise("random_normal") * draw.parameters[1] + draw.parameters[0])


def weibull(
    concentration: Any, shape: ShapeLike | None = None, *, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the Weibull distribution. Raises ArgumentError unless the concentration is positive.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    tests = {"concentration": POSITIVE, "scale": NOT_NEGATIVE}
    draw = Draw("weibull", shape, dtype, device, tests, concentration, scale)
    return (-log(draw.uniform())) ** (1.0 / draw.parameters[0]) * draw.parameters[1]


def _loggamma(draw: Draw, concentration: Tensor[Any]) -> Tensor[Any]:
    return draw.sampled("random_loggamma", concentration)


def gamma(
    concentration: Any, shape: ShapeLike | None = None, *, scale: Any = 1.0, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Numbers of the gamma distribution; they may be zero where the concentration is small.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given. Raises ArgumentError unless the concentration is positive, and
    for a negative scale.

    >>> import adjoint as ad
    >>> ad.random.seed(0)
    >>> a = ad.tensor(3.0).require_grad()
    >>> x = ad.random.gamma(a, 2000)
    >>> round(x.mean().backward()[a].item(), 1)     # of the mean, which is a
    1.0
    """
    tests = {"concentration": POSITIVE, "scale": NOT_NEGATIVE}
    draw = Draw("gamma", shape, dtype, device, tests, concentration, scale)
    return exp(_loggamma(draw, draw.parameters[0])) * draw.parameters[1]


def chisquare(df: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Numbers of the chi-squared distribution. Raises ArgumentError unless the degrees of freedom are positive.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    draw = Draw("chisquare", shape, dtype, device, {"df": POSITIVE}, df)
    return exp(_loggamma(draw, draw.parameters[0] * 0.5)) * 2.0


def beta(a: Any, b: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Numbers of the beta distribution. Raises ArgumentError unless both parameters are positive.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given.
    """
    draw = Draw("beta", shape, dtype, device, {"a": POSITIVE, "b": POSITIVE}, a, b)
    first, second = (_loggamma(draw, p) for p in draw.parameters)
    return expit(first - second)


def dirichlet(
    concentration: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Shares that sum to one along the last axis, as many as the concentration has there.

    They have the dtype of the concentration, or the default one, unless one is given. `shape` is the result's without
    that axis. Raises ArgumentError unless the concentration is positive, ShapeError where it has no axis.

    >>> import adjoint as ad
    >>> ad.random.dirichlet([1.0, 2.0, 3.0], 5).shape
    (5, 3)
    """
    draw = Draw("dirichlet", shape, dtype, device, {"concentration": POSITIVE}, concentration, events=(1,))
    (alpha,) = draw.parameters
    if not alpha.ndim or not alpha.shape[-1]:
        raise errors.ShapeError(
            f"dirichlet: the concentration has shape {alpha.shape}, and needs a last axis of shares"
        )
    parts = draw.sampled("random_loggamma", alpha, shape=(*draw.shape, alpha.shape[-1]))
    return softmax(parts, axis=-1)


def student_t(
    df: Any,
    shape: ShapeLike | None = None,
    *,
    loc: Any = 0.0,
    scale: Any = 1.0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor[Any]:
    """Numbers of Student's t distribution: normal ones over the root of a chi-squared one's mean.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given. Raises ArgumentError unless the degrees of freedom are
    positive, and for a negative scale.
    """
    tests = {"df": POSITIVE, "loc": ANY, "scale": NOT_NEGATIVE}
    draw = Draw("student_t", shape, dtype, device, tests, df, loc, scale)
    half = draw.parameters[0] * 0.5
    spread = exp((log(half) - _loggamma(draw, half)) * 0.5)
    return draw.noise("random_normal") * spread * draw.parameters[2] + draw.parameters[1]


def multivariate_normal(
    mean: Any, cov: Any, shape: ShapeLike | None = None, *, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Vectors of the normal distribution of a mean, whose last axis they have, and of a covariance matrix.

    `shape` is the result's without the last axis. Gradients flow through the Cholesky factor of the covariance, of
    which the lower triangle is read.

    Raises SingularError for a covariance that is not positive definite, ShapeError where mean and matrix do not fit.

    >>> import adjoint as ad
    >>> ad.random.multivariate_normal([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]], 4).shape
    (4, 2)
    """
    name = "multivariate_normal"
    draw = Draw(name, shape, dtype, device, {"mean": ANY, "cov": ANY}, mean, cov, events=(1, 2))
    centre, matrix = draw.parameters
    if centre.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != (centre.shape[-1],) * 2:
        raise errors.ShapeError(
            f"{name}: a mean of shape (..., n) goes with a covariance of shape (..., n, n); received {centre.shape} "
            f"and {matrix.shape}"
        )
    noise, factor = draw.noise("random_normal", (*draw.shape, centre.shape[-1])), cholesky(matrix)
    if matrix.ndim == 2 and noise.ndim > 1:  # one matrix: one product
        return matmul(noise, factor.mT) + centre
    return squeeze(matmul(factor, expand_dims(noise, -1)), -1) + centre


_FAR = -37.0  # where the normal distribution function is near the smallest number


def truncated_normal(
    low: Any,
    high: Any,
    shape: ShapeLike | None = None,
    *,
    mean: Any = 0.0,
    std: Any = 1.0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor[Any]:
    """Numbers of a normal distribution between two bounds, which may be infinite.

    The result has the shape `shape`, by default the one to which the parameters broadcast. Its dtype is that of the
    parameters, or the default one, unless one is given. By the inverse of the distribution function, computed in double
    precision on the side where its values are small; beyond 37 standard deviations, where those underflow, by that of
    its tail.

    Raises ArgumentError unless the standard deviation is positive and each lower bound below its upper one.
    """
    tests = {"low": ANY, "high": ANY, "mean": ANY, "std": POSITIVE}
    draw = Draw("truncated_normal", shape, dtype, device, tests, low, high, mean, std)
    low, high, mean, std = (cast(p, draw.precise) for p in draw.parameters)
    deferred_check(
        low.detach() < high.detach(),
        lambda values: values.all(),
        lambda _: errors.ArgumentError("truncated_normal: each lower bound must be below its upper one"),
    )
    a, b = (low - mean) / std, (high - mean) / std
    flipped = (a + b).detach() > 0
    a, b = where(flipped, -b, a), where(flipped, -a, b)
    root = math.sqrt(0.5)
    far = b < _FAR
    start, end = erfc(where(far, -2.0, a) * -root), erfc(where(far, -1.0, b) * -root)  # twice the distribution function
    share = draw.uniform(dtype=draw.precise)
    number = erfcinv(start + (end - start) * share) * -math.sqrt(2.0)
    number = clip(where(far, _of_tail(a, b, share), number), a, b)
    return cast(where(flipped, -number, number) * std + mean, draw.dtype)


def _of_tail(a: Tensor[Any], b: Tensor[Any], share: Tensor[Any]) -> Tensor[Any]:
    """Numbers between a and b, far below zero, where the distribution function is the density over -x, to 1 / x^2.

    So log F(x) = log F(b) - t is x^2 = b^2 + 2 t - 2 log(x / b), whose right side changes little with x.
    """
    b = where(b < _FAR, b, _FAR)
    gap = where((b - a > 0) & (b - a < 40.0), b - a, 40.0)  # there is nothing beyond
    t = -log(share + (1.0 - share) * exp(-gap * (gap * 0.5 - b)) * (b / (b - gap)))
    x = b
    for _ in range(6):  # each time 1 / b^2 nearer
        x = -sqrt(b * b + 2.0 * t - 2.0 * log(x / b))
    return x
