"""Taylor rules: coefficients of a result's series where the derivative record would take exponentially many steps.

    taylor(B, terms, out, **parameters)

gives the coefficient of order k = len(out): `out` has those of the result of lower orders, and `terms` for each operand
those of orders 0 to k. They are derivatives, which no factorial divides, and None is zero; of a Python scalar there is
that of order 0 alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any


def leibniz(
    B: Any,
    product: Callable[[Any, Any], Any],
    x: Callable[[int], Any],
    y: Callable[[int], Any],
    k: int,
    orders: range,
) -> Any:
    """The sum over `orders` m of (k over m) product(x(k - m), y(m)), of coefficients by order; None if it is zero."""
    total = None
    for m in orders:
        left, right = x(k - m), y(m)
        if left is not None and right is not None:
            part = product(left, right)
            if m not in (0, k):
                part = B.multiply(part, math.comb(k, m))
            total = part if total is None else B.add(total, part)
    return total


def quotient(
    B: Any,
    product: Callable[[Any, Any], Any],
    divided: Callable[[Any, Any], Any],
    dividend: Sequence[Any],
    divisor: Sequence[Any],
    out: Sequence[Any],
) -> Any:
    """From product(divisor, out) = dividend, by Leibniz, the highest coefficient of `out`."""
    k = len(out)
    known = leibniz(B, product, divisor.__getitem__, out.__getitem__, k, range(k))
    rest = dividend[k]
    if known is not None:
        rest = B.negative(known) if rest is None else B.subtract(rest, known)
    return None if rest is None else divided(rest, divisor[0])
