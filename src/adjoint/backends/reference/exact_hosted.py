"""Special functions whose values elsewhere are SciPy's, of the numbers of an mpmath context. Numbers are DLMF's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backends.reference.exact_hypergeometric import carlson_and_jacobi, hypergeometric
from adjoint.backends.special import HOSTED

Function = Callable[..., Any]


def definitions(mp: Any) -> dict[str, Function]:
    ours = {**_bessel(mp), **_exponential(mp), **_elliptic(mp), **_quantiles(mp)}
    return {**ours, **hypergeometric(mp), **carlson_and_jacobi(mp)}


def _bessel(mp: Any) -> dict[str, Function]:
    def neighbours(f: Function, v: Any, x: Any, order: int, sign: int) -> Any:
        """10.6.7 and 10.29.5."""
        terms = [sign**k * mp.binomial(order, k) * f(v - order + 2 * k, x) for k in range(order + 1)]
        return mp.fsum(terms) / 2**order

    def of(f: Function, sign: int) -> Function:
        def function(v: Any, x: Any, *, order: int) -> Any:
            lost = max(0, -mp.mag(x)) * order // 3 + 10 if x else 0  # the neighbours cancel near 0
            with mp.extradps(lost):
                return neighbours(f, v, x, order, sign)

        return function

    def scaled(f: Function, v: Any, x: Any, order: int, sign: int, rate: int) -> Any:
        """The derivative of exp(rate x) f(v, x), with the digits that it loses."""
        with mp.extradps(order * abs(mp.mag(x)) + 10):
            parts = [
                mp.binomial(order, k) * rate ** (order - k) * neighbours(f, v, x, k, 1) * sign**k
                for k in range(order + 1)
            ]
            return mp.exp(rate * x) * mp.fsum(parts)

    def bessel_ive(v: Any, x: Any, *, order: int) -> Any:
        return scaled(mp.besseli, v, x, order, 1, -1 if x >= 0 else 1)

    def bessel_k(v: Any, x: Any, *, order: tuple[int, int], scaled: bool) -> Any:
        by_v, by_x = order
        if by_v:
            return mp.diff(lambda s: bessel_k(s, x, order=(0, by_x), scaled=scaled), v, by_v)
        if x <= 0:
            return mp.nan
        if scaled:
            return scaled_k(v, x, by_x)
        return (-1) ** by_x * neighbours(mp.besselk, v, x, by_x, 1)

    def scaled_k(v: Any, x: Any, order: int) -> Any:
        return scaled(mp.besselk, v, x, order, -1, 1)

    return {
        "bessel_j": of(mp.besselj, -1),
        "bessel_y": of(mp.bessely, -1),
        "bessel_iv": of(mp.besseli, 1),
        "bessel_ive": bessel_ive,
        "bessel_k": bessel_k,
    }


def _exponential(mp: Any) -> dict[str, Function]:
    def recurrence(value: Any, slope: Any, x: Any, order: int) -> Any:
        """From w' = -2 x w + c, 7.10.2."""
        for n in range(1, order):
            value, slope = slope, -2 * (x * slope + n * value)
        return slope if order else value

    def dawsn(x: Any, *, order: int) -> Any:
        """Far out by 7.12.1, term by term."""
        if mp.isinf(x):
            return mp.mpf(0)
        if abs(x) < 40:
            with mp.extradps(order * 4 + 10):
                value = mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)
                return recurrence(value, 1 - 2 * x * value, x, order)
        terms = [
            mp.fac2(2 * k - 1) / 2 ** (k + 1) * (-1) ** order * mp.rf(2 * k + 1, order) / x ** (2 * k + 1 + order)
            for k in range(mp.dps)
        ]
        return mp.fsum(terms)

    def wofz(z: Any, *, order: int) -> Any:
        with mp.extradps(order * max(0, mp.mag(z)) + 10):
            value = mp.exp(-z * z) * mp.erfc(-1j * z)
            return recurrence(value, 2j / mp.sqrt(mp.pi) - 2 * z * value, z, order)

    def expn(x: Any, *, order: int) -> Any:
        return mp.expint(order, x)

    return {
        "expi": mp.ei,
        "expn": expn,
        "lambertw": lambda x, *, k: mp.lambertw(x, k),
        "dawsn": dawsn,
        "wofz": wofz,
        "erf_complex": mp.erf,
        "erfc_complex": mp.erfc,
    }


def _elliptic(mp: Any) -> dict[str, Function]:
    def complete(p: Any, *, kind: int, order: int) -> Any:
        """19.5.1 and 19.5.2, differentiated by 15.5.2."""
        first, half = mp.mpf(-1 if kind == 2 else 1) / 2, mp.mpf(1) / 2
        with mp.extradps(max(0, -mp.mag(p))):
            front = mp.pi / 2 * mp.rf(first, order) * mp.rf(half, order) / mp.factorial(order)
            return front * mp.hyp2f1(first + order, half + order, 1 + order, 1 - p)

    def incomplete(phi: Any, m: Any, *, kind: int, order: int) -> Any:
        return mp.diff(lambda t: (mp.ellipf if kind == 1 else mp.ellipe)(phi, t), m, order)

    return {"elliptic_complete": complete, "elliptic_incomplete": incomplete}


def _quantiles(mp: Any) -> dict[str, Function]:
    """By Newton's method from what the leaf of NumPy has."""

    def improved(name: str, f: Function, slope: Function) -> Function:
        start = HOSTED[name]

        def function(*numbers: Any) -> Any:
            parameters, y = numbers[:-1], numbers[-1]
            x = mp.mpf(start(*[np.asarray(float(v)) for v in numbers]).item())
            if not mp.isfinite(x) or x == 0:
                return x
            for _ in range(5):
                x -= (f(*parameters, x) - y) / slope(*parameters, x)
            return x

        return function

    def gamma_density(a: Any, x: Any) -> Any:
        return x ** (a - 1) * mp.exp(-x) / mp.gamma(a)

    def student(df: Any, t: Any) -> Any:
        tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
        return tail if t < 0 else 1 - tail

    def student_density(df: Any, t: Any) -> Any:
        return (1 + t * t / df) ** (-(df + 1) / 2) / (mp.sqrt(df) * mp.beta(df / 2, mp.mpf(1) / 2))

    def stdtr(df: Any, t: Any, *, order: int) -> Any:
        if not order:
            return student(df, t)
        share = t * t / (df + t * t)
        part = lambda b: mp.betainc(mp.mpf(1) / 2, b, 0, share, regularized=True)
        return mp.sign(t) * mp.diff(part, df / 2, order) / 2

    return {
        "stdtr": stdtr,
        "gammaincinv": improved("gammaincinv", lambda a, x: mp.gammainc(a, 0, x, regularized=True), gamma_density),
        "gammainccinv": improved(
            "gammainccinv", lambda a, x: mp.gammainc(a, x, regularized=True), lambda a, x: -gamma_density(a, x)
        ),
        "betaincinv": improved(
            "betaincinv",
            lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
            lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
        ),
        "betainccinv": improved(
            "betainccinv",
            lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
            lambda a, b, x: -(x ** (a - 1)) * (1 - x) ** (b - 1) / mp.beta(a, b),
        ),
        "stdtrit": improved("stdtrit", student, student_density),
    }
