"""Special functions of single numbers: by mpmath with any number of digits, else by the kernels for arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backends.reference import exact_hosted
from adjoint.backends.special import HOSTED, KERNELS

Function = Callable[..., Any]


def special_floats() -> dict[str, Function]:
    """Of Python's floats."""

    def of(kernel: Function) -> Function:
        def function(*numbers: complex, **parameters: Any) -> complex:
            kind = np.complex128 if any(isinstance(x, complex) for x in numbers) else np.float64
            with np.errstate(all="ignore"):
                return kernel(*[np.asarray(x, kind) for x in numbers], **parameters).item()  # type: ignore[no-any-return]

        return function

    kernels: dict[str, Function] = {name: functools.partial(kernel, np) for name, kernel in KERNELS.items()}
    return {name: of(kernel) for name, kernel in {**kernels, **HOSTED}.items()}


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
        lost = max(0, -mp.mag(x)) // 3 if x > 0 else 0
        with mp.extradps(lost):
            return mp.erfinv(1 - x)

    def erfcx(x: Any) -> Any:
        return ierfcx(x, order=0)

    def ierfcx(x: Any, *, order: int) -> Any:
        """DLMF 7.18.10, and 7.18.7 where x is negative."""
        if mp.isinf(x):
            return mp.mpf(0) if x > 0 else mp.inf
        if x >= 0:
            return mp.hyperu(mp.mpf(order + 1) / 2, mp.mpf(0.5), x * x) / (2**order * mp.sqrt(mp.pi))
        before, value = 2 / mp.sqrt(mp.pi), mp.exp(x * x) * mp.erfc(x)
        for n in range(1, order + 1):
            before, value = value, (before / 2 - x * value) / n
        return value

    def log_ndtr(x: Any) -> Any:
        t = x / mp.sqrt(2)
        return mp.log1p(-mp.erfc(t) / 2) if x > 0 else mp.log(mp.erfc(-t) / 2)

    def log_ndtr_derivative(x: Any, *, order: int) -> Any:
        """By the recurrence from h' = -h (x + h), with the digits that it loses."""
        if mp.isinf(x):
            return mp.mpf(0) if x > 0 or order > 2 else -x if order == 1 else mp.mpf(-1)
        with mp.extradps(2 * order * max(0, mp.mag(x)) // 3):
            h = mp.sqrt(2 / mp.pi) / erfcx(-x / mp.sqrt(2))
            mean = [x + h]  # of the normal numbers below x, but for the sign, and its derivatives
            slopes = [h]
            for n in range(1, order):
                slopes.append(-mp.fsum(mp.binomial(n - 1, k) * slopes[k] * mean[n - 1 - k] for k in range(n)))
                mean.append((1 if n == 1 else 0) + slopes[n])
            return slopes[order - 1]

    def i0e_derivative(x: Any, *, order: int) -> Any:
        """Of exp(-x) I_0(x) = M(1/2, 1, -2 x), DLMF 10.39.5, by 13.3.16."""
        if mp.isinf(x):
            return mp.mpf(0)
        half = mp.mpf(0.5)
        return (
            (-2) ** order * mp.rf(half, order) / mp.factorial(order) * mp.hyp1f1(half + order, 1 + order, -2 * abs(x))
        )

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

    def sinc(x: Any, *, order: int) -> Any:
        """By the series, or from z f = sin(z) differentiated, where z = pi x."""
        z, value = mp.pi * x, mp.mpf(0)
        if mp.isinf(x):
            return value
        if abs(z) < 1:
            for k in range((order + 1) // 2, order + mp.dps):
                value += (-1) ** k * z ** (2 * k - order) / ((2 * k + 1) * mp.factorial(2 * k - order))
            return value * mp.pi**order
        value = mp.sinpi(x) / z
        for n in range(1, order + 1):
            wave = (mp.sinpi, mp.cospi)[n % 2](x) * (-1) ** (n // 2)
            value = (wave - n * value) / z
        return value * mp.pi**order

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
        "erfcx": erfcx,
        "ierfcx": ierfcx,
        "erfinv": mp.erfinv,
        "erfcinv": erfcinv,
        "log_ndtr": log_ndtr,
        "log_ndtr_derivative": log_ndtr_derivative,
        "gamma": mp.gamma,
        "rgamma": mp.rgamma,
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
        "i0e_derivative": i0e_derivative,
        "sinc": sinc,
        "entr": entr,
        "rel_entr": rel_entr,
        "kl_div": kl_div,
        "logit": lambda x: mp.log(x / (1 - x)),
        **exact_hosted.definitions(mp),
    }

    def precise(definition: Function) -> Function:
        def function(*numbers: Any, **parameters: Any) -> Any:
            numbers = tuple([mp.convert(x) for x in numbers])
            complex_numbers = any(isinstance(x, mp.mpc) for x in numbers)
            if any(mp.isnan(x) for x in numbers):
                return mp.nan
            try:
                with mp.workdps(2 * mp.dps):
                    out = definition(*numbers, **parameters)
            except (ValueError, ZeroDivisionError, OverflowError):  # outside the domain, or at a pole
                return mp.nan
            return mp.nan if isinstance(out, mp.mpc) and not complex_numbers else +out

        return function

    return {name: precise(definition) for name, definition in definitions.items()}
