"""Hypergeometric functions and their like, of the numbers of an mpmath context. Numbers are DLMF's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backends.special.hypergeometric import omega_coefficients

Function = Callable[..., Any]


def hypergeometric(mp: Any) -> dict[str, Function]:
    def hyp0f1(b: Any, x: Any, *, order: int) -> Any:
        return mp.hyp0f1(b + order, x) / mp.rf(b, order)

    def hyp1f1(a: Any, b: Any, x: Any, *, order: int) -> Any:
        return mp.rf(a, order) / mp.rf(b, order) * mp.hyp1f1(a + order, b + order, x)

    def hyp2f1(a: Any, b: Any, c: Any, x: Any, *, order: int) -> Any:
        front = mp.rf(a, order) * mp.rf(b, order) / mp.rf(c, order)
        return mp.re(front * mp.hyp2f1(a + order, b + order, c + order, x)) if x <= 1 else mp.nan

    def struve(v: Any, x: Any, *, order: int, modified: bool) -> Any:
        """11.4.26 and 11.4.31, whose terms cancel near 0."""
        if not order:
            return (mp.struvel if modified else mp.struveh)(v, x)
        k = order - 1
        with mp.extradps(max(0, -mp.mag(x)) * order + 10 if x else 10):
            power = mp.ff(v, k) and mp.ff(v, k) * (x / 2) ** (v - k) / 2**k
            last = power * mp.rgamma(v + mp.mpf(3) / 2) / mp.sqrt(mp.pi)
            below = struve(v - 1, x, order=k, modified=modified)
            above = struve(v + 1, x, order=k, modified=modified)
            return (below + (above if modified else -above) + last) / 2

    def airy(x: Any, *, kind: int) -> Any:
        return (mp.airyai if kind < 2 else mp.airybi)(x, derivative=kind % 2)

    def trigonometric_integral(x: Any, *, kind: str) -> Any:
        if kind == "ci" and x < 0:
            return mp.nan
        return mp.re(getattr(mp, kind)(x))

    def exponential_mean(x: Any, *, order: int, symmetric: bool) -> Any:
        if not symmetric:
            return mp.hyp1f1(order + 1, order + 2, x) / (order + 1)
        half, even = mp.mpf(1) / 2, order % 2 == 0  # the even or the odd terms of the series
        first = mp.mpf(order + 1 if even else order + 2) / 2
        return (1 if even else x) / (2 * first) * mp.hyp1f2(first, half if even else 3 * half, first + 1, x * x / 4)

    def fresnel(x: Any, *, kind: str) -> Any:
        return (mp.fresnels if kind == "s" else mp.fresnelc)(x)

    def spence(x: Any, *, order: int) -> Any:
        if x < 0:
            return mp.nan
        if not order:
            return mp.re(mp.polylog(2, 1 - x))
        n = order - 1
        with mp.extradps(max(0, -mp.mag(x)) // 3 if x else 0):
            return (-1) ** order * mp.factorial(n) / (n + 1) * mp.hyp2f1(1 + n, 1 + n, 2 + n, 1 - x)

    def wrightomega(x: Any, *, order: int) -> Any:
        w = mp.re(mp.lambertw(mp.exp(x)))
        if not order:
            return w
        terms = [c * w ** (k + 1) for k, c in enumerate(omega_coefficients(order))]
        return mp.fsum(terms) / (1 + w) ** (2 * order - 1)

    def owens_t(h: Any, a: Any) -> Any:
        return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)

    return {
        "hyp0f1": hyp0f1,
        "hyp1f1": hyp1f1,
        "hyp2f1": hyp2f1,
        "struve": struve,
        "airy": airy,
        "trigonometric_integral": trigonometric_integral,
        "exponential_mean": exponential_mean,
        "fresnel": fresnel,
        "spence": spence,
        "owens_t": owens_t,
        "erfi": mp.erfi,
        "wrightomega": wrightomega,
    }


def carlson_and_jacobi(mp: Any) -> dict[str, Function]:
    def carlson(x: Any, y: Any, z: Any, p: Any, *, kind: str, order: tuple[int, ...]) -> Any:
        count = 4 if kind == "rj" else 3
        if any(order[count:]):
            return mp.mpf(0)
        numbers, orders = (x, y, z, p)[:count], order[:count]
        f = getattr(mp, f"ellip{kind}")
        return mp.diff(f, numbers, orders) if any(orders) else f(*numbers)

    def jacobi_elliptic(u: Any, m: Any, *, kind: int) -> Any:
        if kind < 3:
            return mp.re(mp.ellipfun(("sn", "cn", "dn")[kind], u, m=m))
        turns = mp.nint(u / (2 * mp.ellipk(m)))
        rest = mp.asin(mp.re(mp.ellipfun("sn", u - 2 * turns * mp.ellipk(m), m=m)))
        return rest + turns * mp.pi

    return {"carlson": carlson, "jacobi_elliptic": jacobi_elliptic}
