"""Special functions of single numbers: by mpmath with any number of digits, else by the kernels for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backends.special import KERNELS

Function = Callable[..., Any]


def special_floats() -> dict[str, Function]:
    """Of Python's floats."""

    def of(kernel: Function) -> Function:
        def function(*numbers: float, **parameters: Any) -> float:
            with np.errstate(all="ignore"):
                return float(kernel(np, *[np.asarray(x, np.float64) for x in numbers], **parameters))

        return function

    return {name: of(kernel) for name, kernel in KERNELS.items()}


def special_numbers(mp: Any) -> dict[str, Function]:
    """Of the numbers of an mpmath context; with more digits inside, since differences and sums lose some."""
    inf = mp.inf

    def entr(x: Any) -> Any:
        return -x * mp.log(x) if x > 0 else 0 * x if x == 0 else -inf

    def rel_entr(x: Any, y: Any) -> Any:
        if x > 0 and y > 0:
            return x * mp.log(x / y)
        return mp.mpf(0) if x == 0 and y >= 0 else inf

    def kl_div(x: Any, y: Any) -> Any:
        return rel_entr(x, y) - x + y

    def erfcinv(x: Any) -> Any:
        return mp.erfinv(1 - x)

    def log_ndtr(x: Any) -> Any:
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)

    def gammainc(a: Any, x: Any, *, order: int) -> Any:
        return mp.diff(lambda t: mp.gammainc(t, 0, x, regularized=True), a, order)

    def gamma_density(a: Any, x: Any) -> Any:
        return x ** (a - 1) * mp.exp(-x) / mp.gamma(a)

    def betainc(a: Any, b: Any, x: Any, *, order: tuple[int, int]) -> Any:
        return mp.diff(lambda s, t: mp.betainc(s, t, 0, x, regularized=True), (a, b), order)

    def beta_density(a: Any, b: Any, x: Any) -> Any:
        return x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)

    def bessel_i(x: Any, *, order: int, scaled: bool, reduced: bool) -> Any:
        if x == 0:
            value = mp.mpf(0.5) ** order / mp.factorial(order) if reduced else mp.mpf(order == 0)
        else:
            value = mp.besseli(order, x) / (x**order if reduced else 1)
        return value * (mp.exp(-abs(x)) if scaled else 1)

    def spherical_bessel(x: Any, *, order: int) -> Any:
        if x == 0:
            return 1 / mp.fac2(2 * order + 1)
        z = abs(mp.pi * x)
        return mp.sqrt(mp.pi / (2 * z)) * mp.besselj(order + mp.mpf(0.5), z) / z**order

    def hurwitz(s: Any, q: Any) -> Any:
        """Euler and Maclaurin, DLMF 25.11.43; mpmath's own loses digits for some arguments."""
        count = mp.dps + max(0, -int(mp.floor(q)))
        a = q + count
        total = mp.fsum((q + k) ** -s for k in range(count)) + a ** (1 - s) / (s - 1) + a**-s / 2
        for j in range(1, mp.dps // 2 + 5):
            total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * mp.rf(s, 2 * j - 1) * a ** (1 - s - 2 * j)
        return total

    definitions: dict[str, Function] = {
        "erfc": mp.erfc,
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "erfinv": mp.erfinv,
        "erfcinv": erfcinv,
        "log_ndtr": log_ndtr,
        "gamma": mp.gamma,
        "gammaln": lambda x: mp.log(abs(mp.gamma(x))),
        "digamma": mp.digamma,
        "betaln": lambda a, b: mp.log(abs(mp.beta(a, b))),
        "zeta": lambda s, q, *, order: mp.diff(lambda t: hurwitz(t, q), s, order) if order else hurwitz(s, q),
        "gammainc": gammainc,
        "gammaincc": lambda a, x: mp.gammainc(a, x, regularized=True),
        "gamma_density": gamma_density,
        "betainc": betainc,
        "beta_density": beta_density,
        "bessel_i": bessel_i,
        "spherical_bessel": spherical_bessel,
        "entr": entr,
        "rel_entr": rel_entr,
        "kl_div": kl_div,
        "logit": lambda x: mp.log(x / (1 - x)),
    }

    def precise(definition: Function) -> Function:
        def function(*numbers: Any, **parameters: Any) -> Any:
            numbers = tuple([mp.mpf(x) for x in numbers])
            if any(mp.isnan(x) for x in numbers):
                return mp.nan
            try:
                with mp.workdps(2 * mp.dps):
                    out = definition(*numbers, **parameters)
            except (ValueError, ZeroDivisionError, OverflowError):  # outside the domain, or at a pole
                return mp.nan
            return mp.nan if isinstance(out, mp.mpc) else +out

        return function

    return {name: precise(definition) for name, definition in definitions.items()}
