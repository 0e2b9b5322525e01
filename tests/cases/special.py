"""Cases of special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cases.values import PAIRS, Array, Case, between, cplx, either_sign, positive, real, unary, unit

_TRIPLES: list[tuple[tuple[int, ...], ...]] = [
    ((), (), ()), ((3,), (3,), (3,)), ((2, 1), (3,), ()), ((0,), (1,), (1,)), ((2,), (1,), (2, 2)),
]  # fmt: skip
_FEW: list[tuple[tuple[int, ...], ...]] = [((2, 1), (2,)), ((0,), (1,)), ((), ())]
_share = between(0.1, 0.9)


def _on(shapes: Any, *makers: Callable[..., Array], **parameters: Any) -> list[Case]:
    return [Case(tuple([make(*s) for make, s in zip(makers, each, strict=True)]), parameters) for each in shapes]


def _each(make: Callable[..., Array], **parameters: Any) -> list[Case]:
    return [Case(case.operands, parameters) for case in unary(make)]


def _below(*shape: int) -> Array:
    """Negative numbers away from integers."""
    return np.asarray(-1.0 - between(0.2, 0.8)(*shape))


CASES: dict[str, list[Case]] = {
    **{name: unary(real) for name in ("erfc", "erfcx", "log_ndtr")},
    "erfinv": unary(unit),
    "erfcinv": unary(between(0.1, 1.8)),
    "logit": unary(_share),
    "entr": unary(positive),
    **{name: unary(positive, _below) for name in ("gamma", "gammaln", "digamma")},
    **{
        name: [case for order in (1, 2) for case in _each(real, order=order)]
        for name in ("ierfcx", "log_ndtr_derivative")
    },
    "i0e_derivative": [case for order in (1, 2) for case in _each(either_sign(0.2, 3.0), order=order)],
    "bessel_i": [
        case
        for order, scaled, reduced in [(0, False, False), (1, True, False), (1, False, True), (2, False, True)]
        for case in _each(real, order=order, scaled=scaled, reduced=reduced)
    ],
    "sinc": [case for order in (0, 1, 2) for case in _each(either_sign(0.2, 3.0), order=order)],
    **{name: _on(PAIRS, positive, positive) for name in ("rel_entr", "kl_div", "betaln")},
    "zeta": [case for order in (0, 1) for case in _on(PAIRS, between(1.5, 5.0), positive, order=order)]
    + [Case((2.0, positive(2, 2)), {"order": 0}), Case((3.0, _below(3)), {"order": 0})],
    # few cases of these: each call is a quadrature
    "gammainc": [*_on(_FEW, positive, positive, order=0), *_on(_FEW[:1], positive, positive, order=1)],
    **{name: _on(_FEW, positive, positive) for name in ("gammaincc", "gamma_density")},
    "betainc": [
        *_on([((2, 1), (2,), ()), ((0,), (1,), (1,))], positive, positive, _share, order=(0, 0)),
        Case((positive(), positive(), _share()), {"order": (1, 0)}),
    ],
    "beta_density": _on(_TRIPLES, positive, positive, _share),
    "rgamma": unary(positive),
    **{
        name: [
            Case((v, positive(*shape)), {"order": order})  # no derivative by the order v
            for v, order, shape in ((0.0, 0, (2,)), (1.0, 1, ()), (2.5, 2, (0,)), (2.5, 0, (2, 1)))
        ]
        for name in ("bessel_j", "bessel_y", "bessel_iv", "bessel_ive")
    },
    "bessel_k": [
        *_on(_FEW, positive, positive, order=(0, 0), scaled=False),
        *_on(_FEW[:1], positive, positive, order=(0, 1), scaled=True),
        *_on(_FEW[:1], positive, positive, order=(1, 0), scaled=True),
        Case((1.0, positive(2)), {"order": (0, 0), "scaled": True}),
    ],
    "expi": unary(real),
    "expn": [case for order in (-1, 0, 1, 3) for case in _each(positive, order=order)],
    "dawsn": [case for order in (0, 2) for case in _each(real, order=order)],
    "lambertw": [*_each(positive, k=0), *_each(between(-0.3, -0.1), k=-1), Case((cplx(3),), {"k": 1})],
    **{name: [Case((cplx(*shape),)) for shape in ((3,), (2, 2), (), (0,))] for name in ("erf_complex", "erfc_complex")},
    "wofz": [Case((cplx(*shape),), {"order": order}) for shape in ((3,), (), (0,)) for order in (0, 1)],
    "elliptic_complete": [
        Case((positive(*shape),), {"kind": kind, "order": order})
        for kind, order, shape in ((1, 0, (2,)), (2, 0, ()), (1, 1, (2, 1)), (2, 1, (0,)))
    ],
    "elliptic_incomplete": [
        Case((positive(2, 1), _share(2)), {"kind": 1, "order": 0}),
        Case((positive(), _share()), {"kind": 2, "order": 0}),
        Case((positive(1), _share(2)), {"kind": 2, "order": 1}),
    ],
    "carlson": [
        Case((positive(2), positive(2), positive(), 1.0), {"kind": kind, "order": (0, 0, 0, 0)})
        for kind in ("rf", "rd", "rg")
    ]
    + [
        Case((positive(1), positive(1), positive(1), positive(2)), {"kind": "rj", "order": (0, 0, 0, 0)}),
        Case((positive(), 1.2, 0.7, 1.0), {"kind": "rf", "order": (1, 0, 0, 0)}),
    ],
    "jacobi_elliptic": [Case((real(2, 1), _share(2)), {"kind": kind}) for kind in range(4)],
    # no derivative by parameters
    "hyp0f1": [Case((1.5, real(*shape)), {"order": order}) for order, shape in ((0, (3,)), (1, ()), (0, (0,)))],
    "hyp1f1": [Case((0.5, 1.5, real(*shape)), {"order": order}) for order, shape in ((0, (3,)), (1, ()), (0, (0,)))],
    "hyp2f1": [Case((0.5, 1.2, 1.5, _share(*shape)), {"order": order}) for order, shape in ((0, (3,)), (1, ()))],
    "struve": [
        Case((v, positive(*shape)), {"order": order, "modified": modified})
        for v, order, modified, shape in ((0.0, 0, False, (3,)), (1.5, 1, True, ()), (0.5, 0, True, (0,)))
    ],
    "airy": [case for kind in range(4) for case in _each(real, kind=kind)],
    "trigonometric_integral": [case for kind in ("si", "ci", "shi", "chi") for case in _each(positive, kind=kind)],
    "exponential_mean": [
        case for order in (0, 1) for whole in (False, True) for case in _each(real, order=order, symmetric=whole)
    ],
    "fresnel": [case for kind in "sc" for case in _each(real, kind=kind)],
    "spence": [case for order in (0, 1, 2) for case in _each(positive, order=order)],
    "wrightomega": [case for order in (0, 1, 2) for case in _each(real, order=order)],
    "erfi": unary(real),
    "owens_t": _on(_FEW, real, real),
    # two cases of each: their rules are quadratures
    **{name: _on([((), (2,)), ((0,), (1,))], positive, _share) for name in ("gammaincinv", "gammainccinv")},
    **{
        name: _on([((), (2,), ()), ((0,), (1,), (1,))], positive, positive, _share)
        for name in ("betaincinv", "betainccinv")
    },
    "stdtr": [Case((positive(2), real(2, 1)), {"order": 0}), Case((positive(), real()), {"order": 1})],
    "stdtrit": _on([((), (2,)), ((0,), (1,))], positive, between(0.55, 0.9)),
}
