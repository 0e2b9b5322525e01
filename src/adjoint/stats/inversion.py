"""Quantiles of distributions whose distribution function has no inverse that is known: by Newton's method."""

from __future__ import annotations

from collections.abc import Callable

from adjoint.functions.elementwise import exp, log, where
from adjoint.functions.logic import equal, greater, less, logical_and
from adjoint.special import ndtri
from adjoint.stats.families import Cumulative, Number

_STEPS = 30  # Newton's, and bisections where these leave the bounds: six are the rule


def normal_quantile(q: Number, p: Number) -> Number:
    """Of a normal number with the probability q below and p above, from the smaller one."""
    low = less(q, p)
    z = ndtri(where(low, q, p))
    return where(low, z, -z)


def inverted(
    of: Cumulative, q: Number, p: Number, bounds: Callable[..., tuple[Number, Number]], *shapes: Number
) -> Number:
    """The z > 0 with the probability q below and p above, which is between `bounds(q, p, *shapes)`.

    In logarithms of z and of the smaller probability, so that neither has to be near 1. What finds the value has no
    derivatives; two more steps have those of the inverse, up to the third.
    """
    low = less(q, p)

    def step(u: Number, goal: Number, *shapes: Number) -> tuple[Number, Number]:
        """How far the logarithm of the probability is off, and Newton's step."""
        z = exp(u)
        share = where(low, of._logcdf(z, *shapes), of._logsf(z, *shapes))
        off = where(low, share - goal, goal - share)
        return off, off / exp(of._logpdf(z, *shapes) + u - share)

    goal = log(where(low, q, p))
    known = [v.detach() for v in shapes]
    lowest, highest = (log(v) for v in bounds(q.detach(), p.detach(), *known))
    u = highest
    for _ in range(_STEPS):
        off, by = step(u, goal.detach(), *known)
        lowest, highest = where(less(off, 0.0), u, lowest), where(greater(off, 0.0), u, highest)
        nearer = u - by
        inside = logical_and(greater(nearer, lowest), less(nearer, highest))
        u = where(equal(off, 0.0), u, where(inside, nearer, 0.5 * (lowest + highest)))
    for _ in range(2):
        u = u - step(u, goal, *shapes)[1]
    return exp(u)


__all__ = ["inverted", "normal_quantile"]
