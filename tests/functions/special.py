"""Calls of special functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}


def _each(names: str, maker: Callable[[Any, Draw], Call]) -> None:
    for name in names.split():
        FUNCTIONS[f"special.{name}"] = lambda d, f=operator.attrgetter(name)(ad.special): maker(f, d)


_each("erfc", lambda f, d: (f, d.either(d.shape())))
_each("erfcx ndtr log_ndtr log_expit i0 i0e i1 i1e sinc", lambda f, d: (f, d.real(d.shape())))
_each("erfinv", lambda f, d: (f, d.unit(d.shape())))
_each("erfcinv", lambda f, d: (f, d.between(d.shape(), 0.1, 1.8)))
_each("ndtri logit", lambda f, d: (f, d.between(d.shape(), 0.1, 0.9)))
_each("entr loggamma", lambda f, d: (f, d.positive(d.shape())))


def _sometimes_negative(f: Any, d: Draw) -> Call:
    x = d.positive(d.shape())
    return f, d.pick(x, d.lay(-np.ceil(x) - 0.2 - 0.2 * x))


_each("gamma gammaln digamma psi", _sometimes_negative)


def _polygamma(d: Draw) -> Call:
    order = d.pick(0, 1, 2)
    return (lambda x: ad.special.polygamma(order, x)), d.positive(d.shape())


FUNCTIONS["special.polygamma"] = _polygamma


def _two(f: Any, d: Draw) -> Call:
    x, y = d.shapes(2)
    if d.pick(False, True):
        scalar = d.positive(()).item()
        return (lambda a: f(a, scalar)), d.positive(x)
    return f, d.positive(x), d.positive(y)


_each("beta betaln xlogy xlog1py rel_entr kl_div", _two)


def _few(d: Draw, count: int) -> list[Any]:
    """Small shapes: these functions are quadratures."""
    return list(d.pick([(2,), (2,), ()][:count], [(2, 1), (2,), (1,)][:count], [(0,), (1,), ()][:count]))


_each("gammainc gammaincc", lambda f, d: (f, *[d.positive(s) for s in _few(d, 2)]))


_each(
    "j0 j1 y0 y1 k0 k0e k1 k1e expi exp1 rgamma ellipkm1",
    lambda f, d: (f, d.positive(d.pick((2, 1), (3,), (0,), ()))),
)
_each("dawsn", lambda f, d: (f, d.real(d.shape())))
_each("ellipk ellipe", lambda f, d: (f, d.pick(d.between((3,), 0.1, 0.8), -d.positive((2, 1)))))
_each("kv kve", lambda f, d: (f, *[d.positive(s) for s in _few(d, 2)]))
_each("ellipkinc ellipeinc", lambda f, d: (f, *[d.between(s, 0.1, 0.8) for s in _few(d, 2)]))
_each("chdtr chdtrc stdtr", lambda f, d: (f, *[d.positive(s) for s in _few(d, 2)]))
_each("voigt_profile", lambda f, d: (f, *[d.positive(s) for s in _few(d, 3)]))


_each("erfi exprel wrightomega", lambda f, d: (f, d.real(d.shape())))
_each("spence", lambda f, d: (f, d.positive(d.shape())))
_each("airy fresnel", lambda f, d: (lambda x: sum(f(x)), d.real(d.shape())))
_each("sici shichi", lambda f, d: (lambda x: sum(f(x)), d.positive(d.shape())))
_each("owens_t", lambda f, d: (f, *[d.real(s) for s in _few(d, 2)]))
_each("boxcox boxcox1p", lambda f, d: (f, *[d.positive(s) for s in _few(d, 2)]))
_each("inv_boxcox inv_boxcox1p", lambda f, d: (f, *[d.between(s, 0.1, 0.8) for s in _few(d, 2)]))
_each("elliprc", lambda f, d: (lambda x, y: f(x, y) + 2 * f(x, -y), *[d.positive(s) for s in _few(d, 2)]))
_each("elliprf elliprd elliprg", lambda f, d: (f, *[d.positive(s) for s in _few(d, 3)]))
_each("elliprj", lambda f, d: (lambda *xs: f(*xs, 0.7), *[d.positive(s) for s in _few(d, 3)]))
_each("ellipj", lambda f, d: (lambda u, m: sum(f(u, m)), *[d.between(s, 0.1, 0.8) for s in _few(d, 2)]))
_each("hyp0f1", lambda f, d: (lambda x: f(1.5, x), d.real(d.pick((3,), (2, 1), (0,)))))
_each("hyp1f1", lambda f, d: (lambda x: f(0.5, 1.5, x), d.real(d.pick((3,), (2, 1), (0,)))))
_each("hyp2f1", lambda f, d: (lambda x: f(0.5, 1.2, 1.5, x), d.between(d.pick((3,), (2, 1), (0,)), 0.1, 0.8)))


def _of_constant_order(orders: tuple[Any, ...]) -> Callable[[Any, Draw], Call]:
    def call(f: Any, d: Draw) -> Call:
        order = d.pick(*orders)
        return (lambda x: f(order, x)), d.positive(d.pick((3,), (2, 1), (0,)))

    return call


_each("jn jv yv iv ive struve modstruve", _of_constant_order((0, 1, 2, 0.7, np.asarray([[0.5], [2.0]]))))


def _hankel(f: Any, d: Draw) -> Call:
    order, side = d.pick(0, 1, 0.7), d.pick(1, -1)
    return (lambda x: ad.real(f(order, side * x)) + 2 * ad.imag(f(order, side * x))), d.positive(
        d.pick((3,), (2, 1), (0,))
    )


_each("hankel1 hankel2", _hankel)
_each("yn kn expn", _of_constant_order((0, 1, 3, np.asarray([[1], [2]]))))


def _quantile(f: Any, d: Draw) -> Call:
    a, y = _few(d, 2)
    return f, d.positive(a), d.between(y, 0.2, 0.45)


_each("gammaincinv gammainccinv chdtri stdtrit", _quantile)


def _quantile_of_beta(f: Any, d: Draw) -> Call:
    a, b, y = _few(d, 3)
    return f, d.positive(a), d.positive(b), d.between(y, 0.2, 0.8)


_each("betaincinv betainccinv", _quantile_of_beta)


def _lambertw(d: Draw) -> Call:
    shape = d.pick((3,), (2, 1), ())
    return d.pick(
        (ad.special.lambertw, d.positive(shape)),
        (lambda x: ad.special.lambertw(x, -1), d.between(shape, -0.3, -0.1)),
        (lambda z: ad.special.lambertw(z, 1), d.complex(shape)),
    )


FUNCTIONS["special.lambertw"] = _lambertw
_each("wofz", lambda f, d: (f, d.complex(d.pick((3,), (2, 1), ()))))
_each("multigammaln", lambda f, d: ((lambda a: f(a, 3)), 1.2 + d.positive(d.pick((3,), (2, 1), ()))))


def _betainc(d: Draw) -> Call:
    a, b, x = _few(d, 3)
    p, q = d.positive(a), d.positive(b)
    return d.pick(
        (ad.special.betainc, p, q, d.between(x, 0.2, 0.8)),
        (lambda s, t: ad.special.betainc(s, t, 0.4), p, q),
    )


def _zeta(d: Draw) -> Call:
    s, q = _few(d, 2)
    return d.pick(
        (ad.special.zeta, d.between(s, 1.5, 4.0), d.positive(q)),
        (ad.special.zeta, d.between(s, -3.5, -2.2)),
        (ad.special.zeta, d.between(s, 1.5, 4.0)),
    )


def _logsumexp(d: Draw) -> Call:
    shape = d.shape(sizes=(3, 1, 2))
    axis, keepdims = d.axes(shape), d.pick(False, True)
    how = {"axis": axis, "keepdims": keepdims}
    factors = d.positive(shape)
    return d.pick(
        (lambda a: ad.special.logsumexp(a, **how), d.real(shape)),
        (lambda a, b: ad.special.logsumexp(a, b=b, **how), d.real(shape), factors),
        (lambda a, b: ad.special.logsumexp(a, b=-b, return_sign=True, **how)[0], d.real(shape), factors),
    )


def _along(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.pick(d.axis(shape), None, tuple(range(min(2, len(shape)))))
    return (lambda a: f(a, axis=axis)), d.real(shape)


_each("softmax log_softmax", _along)
_each("betaincc", lambda f, d: ((lambda a, b: f(a, b, 0.4)), *[d.positive(s) for s in _few(d, 2)]))
FUNCTIONS |= {"special.betainc": _betainc, "special.zeta": _zeta, "special.logsumexp": _logsumexp}
