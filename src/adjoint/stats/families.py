"""What distributions share: their parameters, location and scale, the support and what is outside of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from adjoint import errors
from adjoint.counterparts import counterpart
from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import exp, expm1, floor, log, where
from adjoint.functions.elementwise import log1p as log_of_one_more
from adjoint.functions.logic import (
    equal,
    greater,
    greater_equal,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
)
from adjoint.irrational import irrational, log_pi_beside, pi_beside
from adjoint.operands import cast
from adjoint.special import gammaln
from adjoint.special.arguments import reals, wide
from adjoint.tensor import Tensor

Number = Any  # a tensor in double precision
_MISSING: Any = object()
_FUNCTIONS = frozenset("cdf logcdf sf logsf ppf isf".split())  # that some lack

# What distributions state takes a number z, or k or q, and the shapes. Bases say `*at: Any, **_: Any`, which type
# checkers take for any parameters, and distributions name theirs.


class Family:
    """A distribution by the names of its parameters, in SciPy's order; `loc` and `scale` are the last ones."""

    shapes: tuple[str, ...] = ()
    defaults: dict[str, float] = {"loc": 0.0, "scale": 1.0}

    def __init__(self) -> None:
        self.name: str = type(self).__name__
        self.parameters: tuple[str, ...] = (*self.shapes, *self.defaults)

    def __repr__(self) -> str:
        return f"adjoint.stats.{self.name}"

    if not TYPE_CHECKING:  # type checkers refuse other names themselves

        def __getattr__(self, name: str) -> Any:
            hint = counterpart("distribution", name)
            if name in _FUNCTIONS:
                summed = "ad.sum adds up its pmf" if hasattr(self, "pmf") else "ad.trapezoid adds up its pdf"
                hint = (
                    f": of {self.name} there is no {name} with derivatives; {summed}, and ad.external gives SciPy's "
                    "the derivatives that you know"
                )
            said = f"{type(self).__name__!r} object has no attribute {errors.shown(name)}{hint}"
            raise AttributeError(said, name=name, obj=self)

        def __call__(self, *parameters: Any, **named: Any) -> NoReturn:
            method = "logpmf" if hasattr(self, "logpmf") else "logpdf"
            raise errors.ArgumentTypeError(
                f"stats.{self.name}: distributions are not frozen with their parameters, which come after x: "
                f"ad.stats.{self.name}.{method}(x, {', '.join(self.parameters)}), or functools.partial of that"
            )

    def valid(self, *shapes: Number) -> Any:
        """Where the distribution has such parameters: in general where all are positive."""
        found: Any = True
        for value in shapes:
            found = logical_and(greater(value, 0.0), found)
        return found

    def _read(self, function: str, x: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, list[Number]]:
        """The dtype of the result; the argument and all parameters, in double precision.

        Raises ArgumentTypeError for parameters that the distribution does not have, or lacks; DtypeError for complex
        numbers.
        """
        name = f"stats.{self.name}.{function}"
        values = dict(zip(self.parameters, given, strict=False))
        listed = ", ".join(self.parameters)
        if len(given) > len(self.parameters):
            raise errors.ArgumentTypeError(f"{name}: the parameters are {listed}; received {len(given)}")
        for key, value in named.items():
            if key not in self.parameters or key in values:
                fault = "is given twice" if key in values else "is none of them"
                raise errors.ArgumentTypeError(f"{name}: the parameters are {listed}; {key} {fault}")
            values[key] = value
        for key in self.parameters:
            if values.setdefault(key, self.defaults.get(key, _MISSING)) is _MISSING:
                raise errors.ArgumentTypeError(f"{name}: the parameters are {listed}; {key} is missing")
        tensors = reals(name, x, *[values[key] for key in self.parameters])
        return tensors[0].dtype, [wide(v) for v in tensors]


class Density(Family):
    """A continuous distribution of which the density is known: `_logpdf` of the standard one, inside of its support.

    What is outside has probability 0, whatever the parameters: gradients there are 0. At infinity values are limits.
    Parameters that the distribution does not have give nan.
    """

    low: float = -math.inf
    high: float = math.inf
    point: float = 0.5  # inside of the support: what stands in for all that is outside
    open_low: bool = False  # whether the support is without its lower end,
    open_high: bool = False  # and without the upper one
    reach: float = math.inf  # what is as good as infinite: its square overflows
    steep = False  # whether the density is a power of the distance to finite ends, as `_end` says

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return self.low, self.high

    def _logpdf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        """One more than the power at an end, and the logarithm of the density there where that is 1."""
        raise NotImplementedError

    def _standard(
        self,
        function: str,
        f: Callable[..., Number],
        below: float,
        above: float,
        x: Any,
        given: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Tensor[Any]:
        """f(z, scale, *shapes) in the support, with z in its place there, else what is below or above it.

        At a steep end values are limits, and there is no derivative but that of a finite logarithm of the density.
        """
        dtype, (x, *values) = self._read(function, x, given, named)
        *shapes, loc, scale = values
        valid = logical_and(self.valid(*shapes), greater(scale, 0.0))
        shapes, scale = (
            [where(valid, v, p) for v, p in zip(shapes, self.usual(), strict=True)],
            where(valid, scale, 1.0),
        )
        low, high = self.support(*shapes)
        away = x - loc
        place = (away / scale).detach()
        under = logical_or(less_equal(place, low) if self.open_low else less(place, low), less(place, -self.reach))
        under = logical_or(under, equal(place, -math.inf))
        over = logical_or(
            greater_equal(place, high) if self.open_high else greater(place, high),
            logical_or(greater(place, self.reach), equal(place, math.inf)),
        )
        ends = {i: equal(place, end) for i, end in enumerate((low, high)) if self.steep and math.isfinite(end)}
        outside = logical_or(logical_or(under, over), isnan(place))
        for end in ends.values():
            outside = logical_or(outside, end)
        z = where(outside, self.middle(*shapes), where(outside, 0.0, away) / scale)
        out = where(under, below, where(over, above, f(z, scale, *shapes)))
        for i, end in ends.items():
            if function in ("pdf", "logpdf"):
                power, value = self._end(i == 1, *shapes)
                power, value = power + 0.0 * scale, value + 0.0 * scale
                value = exp(value) / scale if function == "pdf" else value - log(scale)
                limit: Any = where(equal(power, 1.0), value, where(less(power, 1.0), math.inf, below))
            else:
                limit = (below, above)[i]
            out = where(end, limit, out)
        return cast(where(logical_and(valid, equal(place, place)), out, math.nan), dtype)

    def usual(self) -> tuple[float, ...]:
        """Parameters that the distribution has."""
        return (1.0,) * len(self.shapes)

    def middle(self, *shapes: Number) -> Any:
        """A number inside of the support."""
        return self.point

    def logpdf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of the density at x; -inf outside of the support, with gradients of 0.

        Parameters are SciPy's: those of the distribution, then loc and scale, in order or by name. They are numbers, or
        arrays that broadcast with x, and may be tracked; nan where the distribution has no such ones. The dtype is
        that of operands which are floating, else the default. Raises ArgumentTypeError for parameters that are missing,
        unknown or given twice, DtypeError for complex numbers, ShapeError where shapes do not broadcast.

        >>> import adjoint as ad
        >>> scale = ad.tensor(2.0, dtype=ad.float64).require_grad()
        >>> y = ad.stats.norm.logpdf(ad.tensor([1.0, 3.0], dtype=ad.float64), scale=scale)
        >>> y.numpy().round(6).tolist(), round(y.sum().backward()[scale].item(), 6)
        ([-1.737086, -2.737086], 0.25)
        """

        def f(z: Number, scale: Number, *shapes: Number) -> Number:
            return self._logpdf(z, *shapes) - log(scale)

        return self._standard("logpdf", f, -math.inf, -math.inf, x, parameters, named)

    def pdf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The density at x; 0 outside of the support."""

        def f(z: Number, scale: Number, *shapes: Number) -> Number:
            return exp(self._logpdf(z, *shapes)) / scale

        return self._standard("pdf", f, 0.0, 0.0, x, parameters, named)


class Cumulative(Density):
    """A distribution with its distribution function `_cdf` too.

    `_sf` is 1 - _cdf without cancellation; of a `symmetric` distribution it follows.
    """

    symmetric = False

    def _cdf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def _sf(self, *at: Any, **_: Any) -> Number:
        if not self.symmetric:
            raise NotImplementedError
        return self._cdf(-at[0], *at[1:])

    def _logcdf(self, *at: Any, **_: Any) -> Number:
        return log_of_share(self._cdf(*at), self._sf(*at))

    def _logsf(self, *at: Any, **_: Any) -> Number:
        return self._logcdf(-at[0], *at[1:]) if self.symmetric else log_of_share(self._sf(*at), self._cdf(*at))

    def cdf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The probability of numbers up to x."""
        return self._standard("cdf", lambda z, _, *s: self._cdf(z, *s), 0.0, 1.0, x, parameters, named)

    def logcdf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of `cdf`."""
        return self._standard("logcdf", lambda z, _, *s: self._logcdf(z, *s), -math.inf, 0.0, x, parameters, named)

    def sf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The probability of numbers above x, 1 - cdf, accurate also where that is small."""
        return self._standard("sf", lambda z, _, *s: self._sf(z, *s), 1.0, 0.0, x, parameters, named)

    def logsf(self, x: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of `sf`."""
        return self._standard("logsf", lambda z, _, *s: self._logsf(z, *s), 0.0, -math.inf, x, parameters, named)


class Continuous(Cumulative):
    """A distribution with its quantiles `_ppf` too; `_isf` is the inverse of `_sf`, and follows if `symmetric`."""

    def _ppf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def _isf(self, *at: Any, **_: Any) -> Number:
        if not self.symmetric:
            raise NotImplementedError
        return -self._ppf(*at)

    def ppf(self, q: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The number up to which the probability is q, the inverse of `cdf`; nan for q outside [0, 1].

        Of t, chi2, f, gamma, invgamma and beta values are SciPy's: raises MissingLibraryError where that is missing.

        >>> import adjoint as ad
        >>> round(ad.stats.norm.ppf(ad.tensor(0.975)).item(), 5)
        1.95996
        """
        return self._quantile("ppf", self._ppf, False, q, parameters, named)

    def isf(self, q: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The number above which the probability is q, the inverse of `sf`; nan for q outside [0, 1]."""
        return self._quantile("isf", self._isf, True, q, parameters, named)

    def _quantile(
        self, function: str, f: Any, turned: bool, q: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> Tensor[Any]:
        dtype, (q, *values) = self._read(function, q, given, named)
        *shapes, loc, scale = values
        valid = logical_and(self.valid(*shapes), greater(scale, 0.0))
        shapes, scale = (
            [where(valid, v, p) for v, p in zip(shapes, self.usual(), strict=True)],
            where(valid, scale, 1.0),
        )
        ends = self.support(*shapes)
        first, last = ends[::-1] if turned else ends
        inside = logical_and(greater(q, 0.0), less(q, 1.0))
        z = f(where(inside, q, 0.5), *shapes)
        z = where(equal(q, 0.0), _finite(first), where(equal(q, 1.0), _finite(last), z))
        out = loc + scale * z
        out = where(logical_and(equal(q, 0.0), isinf(first + 0.0 * q)), first, out)
        out = where(logical_and(equal(q, 1.0), isinf(last + 0.0 * q)), last, out)
        known = logical_and(valid, logical_and(greater_equal(q, 0.0), less_equal(q, 1.0)))
        return cast(where(known, out, math.nan), dtype)


def _finite(end: Any) -> Any:
    if isinstance(end, float):
        return end if math.isfinite(end) else 0.0
    return where(isinf(end), 0.0, end)


class Mass(Family):
    """A distribution of whole numbers from `low` on, of which the probabilities are known: `_logpmf`."""

    defaults: dict[str, float] = {"loc": 0.0}
    low: float = 0.0
    high: float = math.inf

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return self.low, self.high

    def usual(self) -> tuple[float, ...]:
        return (0.5,) * len(self.shapes)

    def inner(self, low: Any) -> Any:
        """What stands in for all that is outside of the support."""
        return low

    def _logpmf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def _standard(
        self, function: str, f: Any, below: float, above: float, k: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> Tensor[Any]:
        dtype, (k, *values) = self._read(function, k, given, named)
        *shapes, loc = values
        valid = self.valid(*shapes)
        shapes = [where(valid, v, p) for v, p in zip(shapes, self.usual(), strict=True)]
        low, high = self.support(*shapes)
        place = (k - loc).detach()
        whole = floor(place)
        under, over = less(place, low), greater(place, high)
        outside = logical_or(logical_or(under, over), isinf(place))
        if function in ("pmf", "logpmf"):
            outside = logical_or(outside, logical_and(equal(place, place), logical_or(less(whole, place), outside)))
        n = where(outside, self.inner(low), whole)
        out = where(outside, where(greater(place, low), above, below), f(n, *shapes))
        return cast(where(logical_and(valid, equal(place, place)), out, math.nan), dtype)

    def logpmf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of the probability of k; -inf for what is no whole number of the support.

        Parameters are SciPy's: those of the distribution, then loc, in order or by name, and read as those of the
        continuous distributions; k has no gradient.

        >>> import adjoint as ad
        >>> mu = ad.tensor(2.0, dtype=ad.float64).require_grad()
        >>> y = ad.stats.poisson.logpmf(3, mu)
        >>> round(y.item(), 6), y.backward()[mu].item()
        (-1.712318, 0.5)
        """
        return self._standard("logpmf", self._logpmf, -math.inf, -math.inf, k, parameters, named)

    def pmf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The probability of k; 0 for what is no whole number of the support."""
        return self._standard("pmf", lambda n, *s: exp(self._logpmf(n, *s)), 0.0, 0.0, k, parameters, named)


class Discrete(Mass):
    """A distribution of whole numbers with its distribution function: of k in the support, `_cdf` and `_sf`."""

    def _cdf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def _sf(self, *at: Any, **_: Any) -> Number:
        raise NotImplementedError

    def cdf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The probability of numbers up to k."""
        return self._standard("cdf", self._cdf, 0.0, 1.0, k, parameters, named)

    def logcdf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of `cdf`."""
        return self._standard(
            "logcdf",
            lambda n, *s: log_of_share(self._cdf(n, *s), self._sf(n, *s)),
            -math.inf,
            0.0,
            k,
            parameters,
            named,
        )

    def sf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The probability of numbers above k, 1 - cdf, accurate also where that is small."""
        return self._standard("sf", self._sf, 1.0, 0.0, k, parameters, named)

    def logsf(self, k: Any, *parameters: Any, **named: Any) -> Tensor[Any]:
        """The logarithm of `sf`."""
        return self._standard(
            "logsf", lambda n, *s: log_of_share(self._sf(n, *s), self._cdf(n, *s)), 0.0, -math.inf, k, parameters, named
        )


def log_root(x: Number) -> Any:
    """The logarithm of the root of 2 pi, as precise as x is."""
    return 0.5 * log_pi_beside(x, 2.0)


def log_2_over_pi(x: Number) -> Any:
    return irrational("log", 2.0 / pi_beside(x), x)


def log1p_ratio(u: Number) -> Number:
    """log(1 + u) / u, which is 1 for u = 0, with derivatives there: near it by the series of 2 atanh(u / (2 + u))."""
    near = less(absolute(u), 0.125)
    small, away = where(near, u, 0.0), where(near, 1.0, u)
    half = small / (2.0 + small)
    square, total = half * half, 1.0 + 0.0 * small
    for k in range(_terms(u, 9), 0, -1):
        total = 1.0 + square * total * (2.0 * k - 1.0) / (2.0 * k + 1.0)
    return where(near, total * 2.0 / (2.0 + small), log_of_one_more(away) / away)


def log1p_rest(u: Number) -> Number:
    """(u - log(1 + u)) / u^2, which is 1 / 2 for u = 0, with derivatives there."""
    half = u / (2.0 + u)
    near = less(absolute(half), 0.2)
    small, away = where(near, half, 0.0), where(near, 1.0, u)
    square, total = small * small, 1.0 + 0.0 * small
    for k in range(_terms(u, 13), 0, -1):
        total = 1.0 + square * total * (2.0 * k + 1.0) / (2.0 * k + 3.0)
    first = (1.0 - small) * (0.5 - (1.0 - small) * small * total / 6.0)
    return where(near, first, (away - log_of_one_more(away)) / (away * away))


_STIELTJES = [(1, 12), (1, 30), (53, 210), (195, 371), (22999, 22737), (29944523, 19733142)]


def stirling(t: Number) -> Number:
    """gammaln(a) - (a - 1/2) log(a) + a - log(2 pi) / 2 of a = 1 / t: by its continued fraction, DLMF 5.10.1."""
    digits = t.device.leaf.digits
    near = less(t, 0.05 if digits is None else 2.0**-digits)
    small, a = where(near, t, 0.0), 1.0 / where(near, 1.0, t)
    rest: Number = 0.0 * small
    for above, below in _STIELTJES[:0:-1]:
        rest = float(above) * small * small / (float(below) * (1.0 + rest))
    first = small / (12.0 * (1.0 + rest))
    return where(near, first, gammaln(a) - (a - 0.5) * log(a) + a - log_root(a))


def expm1_ratio(u: Number) -> Number:
    """(exp(u) - 1) / u, which is 1 for u = 0, with derivatives there."""
    near = less(absolute(u), 0.125)
    small, away = where(near, u, 0.0), where(near, 1.0, u)
    total = 1.0 + 0.0 * small
    for k in range(_terms(u, 14), 1, -1):
        total = 1.0 + total * small / float(k)
    return where(near, total, expm1(away) / away)


def _terms(u: Number, usual: int) -> int:
    """How many terms of a series a leaf's digits need, where the usual ones are enough for double precision."""
    digits = u.device.leaf.digits
    return usual if digits is None else usual * (digits // 15 + 1)


def log_of_share(p: Number, rest: Number) -> Number:
    """log(p) = log(1 - rest), from the smaller one; of p = 0 it is -inf with a derivative of 0."""
    small = less(p, 0.5)
    some = logical_and(small, greater(p, 0.0))
    value = where(some, log(where(some, p, 1.0)), log_of_one_more(-where(small, 0.0, rest)))
    return where(equal(p, 0.0), -math.inf, value)


def log_of_rest(u: Number) -> Number:
    """log(1 - exp(-u)) for u > 0, accurate for small and for large u (M. Mächler, 2012); -inf for u = 0."""
    small = less(u, 0.6875)
    near = where(small, u, 1.0)
    some = greater(near, 0.0)
    first = where(some, log(-expm1(-where(some, near, 1.0))), -math.inf)
    return where(small, first, log_of_one_more(-exp(-where(small, 1.0, u))))


def exp_or_nothing(x: Number) -> Number:
    """exp(x); of -inf it is 0 with a derivative of 0."""
    nothing = equal(x, -math.inf)
    return where(nothing, 0.0, exp(where(nothing, 0.0, x)))
