"""Entropies and the logit, over any array namespace."""

from __future__ import annotations

import math
from typing import Any

from adjoint.backends.special.common import excess, kernel, log_ratio


@kernel
def entr(xp: Any, x: Any) -> Any:
    one = xp.ones_like(x)
    out = -x * xp.log(xp.where(x > 0.0, x, one))
    return xp.where(x > 0.0, out, xp.where(x == 0.0, 0.0 * one, -math.inf * one))


def _both(xp: Any, x: Any, y: Any, inside: Any, at_zero: Any) -> Any:
    """What is inside where x and y are positive, something else at x = 0, and infinity elsewhere."""
    one = xp.ones_like(x)
    return xp.where((x > 0.0) & (y > 0.0), inside, xp.where((x == 0.0) & (y >= 0.0), at_zero, math.inf * one))


@kernel
def rel_entr(xp: Any, x: Any, y: Any) -> Any:
    one = xp.ones_like(x)
    inside = (x > 0.0) & (y > 0.0)
    return _both(xp, x, y, x * log_ratio(xp, xp.where(inside, x, one), xp.where(inside, y, one)), 0.0 * one)


@kernel
def kl_div(xp: Any, x: Any, y: Any) -> Any:
    """x log(x / y) - x + y, which is x (exp(s) - 1 - s) with s = log(y / x): nothing cancels."""
    one = xp.ones_like(x)
    inside = (x > 0.0) & (y > 0.0)
    s = log_ratio(xp, xp.where(inside, y, one), xp.where(inside, x, one))
    near = xp.abs(s) < 1.0
    value = xp.where(near, x * excess(xp, xp.where(near, s, 0.0 * one)), (y - x) - x * s)
    return _both(xp, x, y, value, y)


@kernel
def logit(xp: Any, x: Any) -> Any:
    """log(x / (1 - x)), near 1/2 by the inverse hyperbolic tangent."""
    near = xp.abs(x - 0.5) < 0.25
    middle = 2.0 * xp.atanh(xp.where(near, 2.0 * x - 1.0, xp.zeros_like(x)))
    return xp.where(near, middle, xp.log(x / (1.0 - x)))
