"""Functions of one number and their first three derivatives, over the whole range of a dtype, beside 50 digits.

The exact values are those of the rules on the reference leaf, which other tests compare with difference quotients. An
error is in units of the dtype's epsilon, and relative to the derivative and to how much it changes where x does by that
unit: a backward error, so that a zero of a derivative counts as much as any other point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad
from adjoint.primitives import ELEMENTWISE, TABLE

mpmath = peer("mpmath")
S, N = ad.special, ad.nn
Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]

# name: (function, the interval); where derivatives overflow with the function, the interval ends
ALL, POSITIVE = (-math.inf, math.inf), (0.0, math.inf)
FUNCTIONS: dict[str, tuple[Function, tuple[float, float]]] = {
    **{name: (getattr(S, name), ALL) for name in "erf erfc erfcx ndtr log_ndtr i0e i1e sinc expit log_expit".split()},
    **{name: (getattr(S, name), (-80.0, 80.0)) for name in ("i0", "i1")},
    "erfinv": (S.erfinv, (-1.0, 1.0)),
    "erfcinv": (S.erfcinv, (0.0, 2.0)),
    "ndtri": (S.ndtri, (0.0, 1.0)),
    "gamma": (S.gamma, (-20.0, 30.0)),
    "gammaln": (S.gammaln, (-100.0, math.inf)),
    "loggamma": (S.loggamma, POSITIVE),
    "digamma": (S.digamma, (-100.0, math.inf)),
    "polygamma": (lambda x: S.polygamma(1, x), (-30.0, math.inf)),
    **{name: (getattr(S, name), (-1e4, 1e4)) for name in ("j0", "j1")},
    "jv": (lambda x: S.jv(2.5, x), (0.0, 1e4)),
    **{name: (getattr(S, name), (0.0, 1e4)) for name in ("y0", "y1")},
    "yv": (lambda x: S.yv(2.5, x), (1e-30, 1e4)),
    **{name: (getattr(S, name), (1e-60, math.inf)) for name in ("k0", "k1", "k0e", "k1e")},
    "kv": (lambda x: S.kv(2.5, x), (1e-30, math.inf)),
    "kve": (lambda x: S.kve(2.5, x), (1e-30, math.inf)),
    "iv": (lambda x: S.iv(2.5, x), (0.0, 80.0)),
    "ive": (lambda x: S.ive(2.5, x), POSITIVE),
    "rgamma": (S.rgamma, (-30.0, 150.0)),
    "multigammaln": (lambda x: S.multigammaln(x, 3), (1.0, math.inf)),
    "dawsn": (S.dawsn, ALL),
    "expi": (S.expi, (-80.0, 80.0)),
    "exp1": (S.exp1, POSITIVE),
    "expn": (lambda x: S.expn(3, x), POSITIVE),
    "lambertw": (S.lambertw, (-math.exp(-1.0), math.inf)),
    "Ai": (lambda x: S.airy(x)[0], (-1e3, 100.0)),
    "Bi": (lambda x: S.airy(x)[2], (-1e3, 100.0)),
    "Si": (lambda x: S.sici(x)[0], (-1e4, 1e4)),
    "Ci": (lambda x: S.sici(x)[1], (1e-12, 1e4)),
    "Shi": (lambda x: S.shichi(x)[0], (-80.0, 80.0)),
    "Chi": (lambda x: S.shichi(x)[1], (1e-12, 80.0)),
    "FresnelS": (lambda x: S.fresnel(x)[0], (-1e3, 1e3)),
    "FresnelC": (lambda x: S.fresnel(x)[1], (-1e3, 1e3)),
    "spence": (S.spence, POSITIVE),
    "erfi": (S.erfi, (-9.0, 9.0)),
    "exprel": (S.exprel, (-math.inf, 80.0)),
    "wrightomega": (S.wrightomega, ALL),
    "hyp1f1": (lambda x: S.hyp1f1(0.5, 1.5, x), (-100.0, 80.0)),
    "hyp2f1": (lambda x: S.hyp2f1(0.5, 1.2, 1.5, x), (-10.0, 0.999)),
    "struve": (lambda x: S.struve(0.5, x), (1e-3, 1e3)),
    "modstruve": (lambda x: S.modstruve(0.5, x), (1e-3, 80.0)),
    "ellipk": (S.ellipk, (-math.inf, 1.0)),
    "ellipkm1": (S.ellipkm1, POSITIVE),
    "ellipe": (S.ellipe, (-math.inf, 1.0)),
    "logit": (S.logit, (0.0, 1.0)),
    "entr": (S.entr, POSITIVE),
    **{
        name: (getattr(ad, name), ALL)
        for name in "exp expm1 sin cos tan atan sinh cosh tanh asinh square reciprocal cbrt".split()
    },
    **{name: (getattr(ad, name), POSITIVE) for name in "sqrt log log2 log10".split()},
    **{name: (getattr(ad, name), (-1.0, 1.0)) for name in "asin acos atanh".split()},
    "log1p": (ad.log1p, (-1.0, math.inf)),
    "acosh": (ad.acosh, (1.0, math.inf)),
    "logaddexp": (lambda x: ad.logaddexp(x, -x), ALL),
    "softplus": (N.softplus, ALL),
    "silu": (N.silu, ALL),
    "gelu": (N.gelu, ALL),
}  # fmt: skip

# whose even or odd derivatives are differences near x = 0, where they are 0: x counts as at least 1
ROUND_ZERO = {"expit", "log_expit", "softplus", "logaddexp"}
ABSOLUTE = {"tanh", "gelu", "silu"}  # errors relative to 1
# digits that the reference needs, where differences from 1 are as small as exp(-x)
DIGITS = dict.fromkeys("tanh silu gelu".split(), 400)

# in several primitives, or none of one smooth function
OTHERS = set(
    "negative abs sign floor ceil trunc round conj real imag relu hardtanh leaky_relu hardswish hinge softshrink elu "
    "huber astype mantissa bounded_log raise_to".split()
)
ALIASES = {
    "expn": "exp1 expn", "bessel_i": "i0 i0e i1 i1e", "ierfcx": "erfcx", "log_ndtr_derivative": "log_ndtr",
    "i0e_derivative": "i0e", "airy": "Ai Bi", "trigonometric_integral": "Si Ci Shi Chi",
    "exponential_mean": "exprel Shi", "fresnel": "FresnelS FresnelC",
}  # fmt: skip


def test_every_function_of_one_number_is_compared() -> None:
    from adjoint.rules import RECORDS

    for name, primitive in TABLE.items():
        if primitive.kind is ELEMENTWISE and primitive.operands == ("x",) and RECORDS[name].differentiable(primitive):
            assert name in OTHERS or set(ALIASES.get(name, name).split()) <= set(FUNCTIONS), name
    # zeta's reference sums take seconds for a number; polygamma is zeta by its other operand
    of_several = set(
        "beta betainc betaincc betaincinv betainccinv betaln chdtr chdtrc chdtri ellipeinc ellipkinc gammainc "
        "gammaincc gammaincinv gammainccinv kl_div rel_entr stdtr stdtrit voigt_profile xlog1py xlogy boxcox boxcox1p "
        "inv_boxcox inv_boxcox1p ellipj elliprc elliprd elliprf elliprg elliprj hankel1 hankel2 hyp0f1 owens_t".split()
    )
    along_axes = {"log_softmax", "logsumexp", "softmax"}
    # of complex numbers; digamma, jv, yv and kv; of several results, each of which has a line
    others = {"wofz", "zeta", "psi", "jn", "yn", "kn", "airy", "sici", "shichi", "fresnel"}
    assert set(S.__all__) - of_several - along_axes - others <= set(FUNCTIONS)


# --- measurement ---------------------------------------------------------------------------------


def points(name: str, dtype: Any, count: int) -> Array:
    """Numbers of all sizes and both signs, some of usual size, and some close to the ends of the interval."""
    rng = np.random.default_rng(7)
    low, high = FUNCTIONS[name][1]
    reach = 35.0 if dtype == np.float32 else 150.0
    sizes = 10.0 ** np.concatenate([rng.uniform(-reach, reach, count), rng.uniform(-3, 5, count)])
    near = 10.0 ** rng.uniform(math.log10(4 * np.finfo(dtype).eps), -1, count)
    ends = [end + sign * near for end in (low, high) if math.isfinite(end) and end for sign in (-1, 1)]
    usual = rng.uniform(max(low, -10.0), min(high, 10.0), 2 * count)
    with np.errstate(over="ignore"):
        x = np.concatenate([sizes, -sizes, usual, *ends]).astype(dtype)
    return x[np.isfinite(x) & (x > low) & (x < high) & (np.abs(x) > np.finfo(dtype).tiny)]


def derivatives(f: Function, x: Any, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        found.append(f(x))
        f = ad.grad(lambda t, f=f: f(t).sum())
    return found


def errors(name: str, dtype: Any, count: int) -> list[float]:
    """The largest error of the function and of its first three derivatives."""
    f, x = FUNCTIONS[name][0], points(name, dtype, count)
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        ours = [y.numpy() for y in derivatives(f, ad.asarray(x, device="numpy"), 4)]
    leaf = ad.Reference(digits=DIGITS.get(name, 50))
    exact = [leaf.to_list(y._array) for y in derivatives(f, ad.asarray(x.astype(np.float64), device=leaf), 5)]
    worst = [0.0] * 4
    with mpmath.workdps(60):
        for order in range(4):
            assert ours[order].dtype == dtype
            for point, mine, wanted, slope in zip(x, ours[order], exact[order], exact[order + 1], strict=True):
                assert mpmath.isfinite(wanted), (name, order, point)
                if abs(wanted) > float(limits.max) / 4:
                    error = 0.0 if abs(mine) > float(limits.max) / 16 and (mine > 0) == (wanted > 0) else math.inf
                elif max(abs(wanted), abs(float(mine))) < float(limits.tiny):
                    error = 0.0  # below the normal numbers, where zero will do
                elif not np.isfinite(mine):
                    error = math.inf
                else:
                    step = max(abs(float(point)), 1.0) if name in ROUND_ZERO else abs(float(point))
                    scale = max(abs(wanted) + step * abs(slope), float(limits.tiny), name in ABSOLUTE)
                    error = float(abs(mpmath.mpf(float(mine)) - wanted) / scale / float(limits.eps))
                worst[order] = max(worst[order], error)
    return worst


# --- the promises of docs/special.md -------------------------------------------------------------

PAGE = (Path(__file__).parent.parent / "docs" / "special.md").read_text()
_LIST = r"((?:\d+, ){3}\d+)"
BOUNDS = {
    (name, dtype): [int(bound) for bound in bounds.split(", ")]
    for name, *columns in re.findall(rf"^\| `(\w+)` \| {_LIST} \| {_LIST} \|", PAGE, re.MULTILINE)
    for dtype, bounds in zip(("float32", "float64"), columns, strict=True)
}


def test_every_function_has_a_line_on_the_page() -> None:
    assert {name for name, _ in BOUNDS} == set(FUNCTIONS)


# whose exact values take long: at few points over the whole range alone
SLOW = set(
    "polygamma gamma gammaln loggamma digamma gelu y0 y1 k0 k1 k0e k1e kve ellipk ellipkm1 ellipe rgamma multigammaln "
    "dawsn ive spence struve modstruve".split()
)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SLOW])
def test_derivatives_at_some_points(name: str) -> None:
    with Each() as each:
        for dtype in ("float32", "float64"):
            with each(dtype):
                found = errors(name, np.dtype(dtype).type, 3)
                assert all(e <= b for e, b in zip(found, BOUNDS[name, dtype], strict=True)), found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_over_the_whole_range(name: str, dtype: str) -> None:
    found = errors(name, np.dtype(dtype).type, 4 if name in SLOW else 12)
    assert all(e <= b for e, b in zip(found, BOUNDS[name, dtype], strict=True)), found


# --- infinities ----------------------------------------------------------------------------------

INF = math.inf
# at -inf and at inf: the limits of the function and of its first three derivatives
LIMITS: dict[str, tuple[list[float] | None, list[float] | None]] = {
    "erf": ([-1.0, 0, 0, 0], [1.0, 0, 0, 0]),
    "erfc": ([2.0, 0, 0, 0], [0.0, 0, 0, 0]),
    "erfcx": ([INF, -INF, INF, -INF], [0.0, 0, 0, 0]),
    "ndtr": ([0.0, 0, 0, 0], [1.0, 0, 0, 0]),
    "log_ndtr": ([-INF, INF, -1, 0], [0.0, 0, 0, 0]),
    **{name: ([0.0, 0, 0, 0], [0.0, 0, 0, 0]) for name in ("i0e", "i1e", "sinc")},
    "i0": ([INF, -INF, INF, -INF], [INF, INF, INF, INF]),
    "gammaln": (None, [INF, INF, 0, 0]),
    "digamma": (None, [INF, 0, 0, 0]),
    "expit": ([0.0, 0, 0, 0], [1.0, 0, 0, 0]),
    "log_expit": ([-INF, 1, 0, 0], [0.0, 0, 0, 0]),
    "softplus": ([0.0, 0, 0, 0], [INF, 1, 0, 0]),
    "logaddexp": ([INF, -1, 0, 0], [INF, 1, 0, 0]),
    "exp": ([0.0, 0, 0, 0], [INF, INF, INF, INF]),
    "expm1": ([-1.0, 0, 0, 0], [INF, INF, INF, INF]),
    "atan": ([-math.pi / 2, 0, 0, 0], [math.pi / 2, 0, 0, 0]),
    "asinh": ([-INF, 0, 0, 0], [INF, 0, 0, 0]),
    "tanh": ([-1.0, 0, 0, 0], [1.0, 0, 0, 0]),
    **{name: (None, [INF, 0, 0, 0]) for name in ("sqrt", "log", "log1p", "log2", "log10", "acosh")},
    "reciprocal": ([0.0, 0, 0, 0], [0.0, 0, 0, 0]),
    "gelu": (None, [INF, 1, 0, 0]),
    "silu": (None, [INF, 1, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits_at_infinity(name: str) -> None:
    with Each() as each:
        for x, wanted in zip((-INF, INF), LIMITS[name], strict=True):
            for dtype in (np.float32, np.float64):
                if wanted is not None:
                    with each(f"{x} {dtype.__name__}"), np.errstate(all="ignore"):
                        found = derivatives(FUNCTIONS[name][0], ad.asarray(np.array([x], dtype), device="numpy"), 4)
                        np.testing.assert_allclose([y.item() for y in found], wanted, rtol=1e-6)
