"""Derivatives of random numbers by the parameters of their distribution."""

from __future__ import annotations

from typing import Any

from adjoint.rules.records import Custom, NotDifferentiable, Record


def _slope(B: Any, a: Any, y: Any) -> Any:
    """dy / da for the logarithm y of a number of the gamma distribution of shape a.

    How the number moves where its place in the distribution stays: -(dP / da) / (dP / dy), by M. Figurnov, S. Mohamed
    and A. Mnih, Implicit reparameterization gradients (2018). Of small numbers P(a, z) is z^a / gamma(a + 1).
    """
    small = B.less(y, -40.0)
    z = B.exp(B.where(small, 0.0, y))
    usual = B.negative(B.divide(B.gammainc(a, z, order=1), B.multiply(z, B.gamma_density(a, z))))
    return B.where(small, B.divide(B.subtract(B.digamma(B.add(a, 1.0)), y), a), usual)


RECORDS: dict[str, Record] = {
    "random_loggamma": Custom(
        a=lambda B, g, a, out: B.multiply(g, _slope(B, a, out)),
        pushforward=lambda B, tangents, a, out: B.multiply(tangents[0], _slope(B, a, out)),
    ),
    "random_poisson": NotDifferentiable(),
    "random_binomial": NotDifferentiable(),
}
