"""On a leaf of many digits nothing has 16 of them: what a formula brings along are simple numbers, or constants that
the leaf computes itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from conftest import peer
from functions import FUNCTIONS, Draw
from test_stats import CONSTANT, CONTINUOUS, DISCRETE, methods

import adjoint as ad
from adjoint.backends.reference.scalars import Scalars

mpmath = peer("mpmath")
MANY = ad.Reference(digits=40)


def is_simple(value: float) -> bool:
    """Whether it is a fraction of a few bits, which is what it looks like, or a power of ten that is a bound."""
    mantissa, _ = math.frexp(value)
    power = round(math.log10(abs(value))) if value and math.isfinite(value) else 0
    bound = abs(power) > 3 and abs(value) == float(f"1e{power}")
    return bound or not math.isfinite(value) or (mantissa * 2.0**30).is_integer()


@contextmanager
def watched(given: list[Any]) -> Iterator[set[float]]:
    """The floats that reach the leaf, but for those given, and simple ones."""
    known = {v for x in given if isinstance(x, np.ndarray) for v in _parts(x)}
    found: set[float] = set()
    convert = Scalars.convert

    def watching(self: Any, value: Any, dtype: Any) -> Any:
        if self is MANY.scalars and isinstance(value, (float, complex)):
            found.update(v for v in (value.real, value.imag) if not is_simple(v) and v not in known)
        return convert(self, value, dtype)

    Scalars.convert = watching  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Scalars.convert = convert  # type: ignore[method-assign]


def _parts(x: np.ndarray[Any, Any]) -> list[float]:
    return [float(v) for v in np.concatenate([np.real(x).ravel(), np.imag(x).ravel()]).tolist()]


def assert_precise(f: Any, args: list[Any]) -> None:
    """In values and gradients."""
    with watched(args) as found:
        tracked = [ad.asarray(x, device=ad.Autodiff(MANY)) for x in args]
        tracked = [x.require_grad() if x.dtype.kind in "fc" else x for x in tracked]
        for y in ad.tree.leaves(f(*tracked)):
            if isinstance(y, ad.Tensor) and y.is_tracked() and y.dtype.kind in "fc":
                y = ad.sum(ad.real(y) + ad.imag(y) if y.dtype.kind == "c" else y)
                y.backward(retain_graph=True)
    assert not found, found


class Seeded(Draw):
    """What hypothesis would draw, of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]


# numbers that define the function, bounds beside which it takes another way, or places of pixels
DEFINED = set(
    "clip floor_divide unwrap nan_to_num lerp nn.layer_norm nn.leaky_relu nn.rrelu nn.selu nn.threshold nn.interpolate "
    "nn.affine_grid nn.local_response_norm nn.normalize special.rgamma maximum minimum fmin fmax".split()
)
# whose calls have an operand of their own, which is no argument
CLOSED = set(
    "add subtract multiply divide remainder pow atan2 logaddexp copysign nextafter fmod histogram special.beta "
    "special.betaln special.xlogy special.xlog1py special.rel_entr special.kl_div special.elliprj special.hyp2f1 "
    "special.hankel1 special.hankel2 special.multigammaln special.betaincc linalg.eig linalg.eigvals".split()
)
# of random numbers, which have 53 bits, and of a parameter of the primitive
DRAWN = {name for name in FUNCTIONS if name.startswith(("random.", "operator."))}
DRAWN |= {name for name in FUNCTIONS if "dropout" in name or "fractional" in name or "gumbel" in name}
DRAWN |= {"linalg.svd_lowrank", "nn.scaled_dot_product_attention", "nn.max_pool3d"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - DEFINED - CLOSED - DRAWN))
def test_functions(name: str) -> None:
    for seed in range(2):
        f, *args = FUNCTIONS[name](Seeded(seed))
        assert_precise(f, args)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_distributions(name: str) -> None:
    for method in methods(name):
        fixed = [float(v) for v in (CONTINUOUS.get(name) or [])[: CONSTANT.get(name, 0)]]
        f = lambda x, *p, m=method, fixed=fixed: getattr(getattr(ad.stats, name), m)(x, *fixed, *p)
        shapes = (CONTINUOUS.get(name) or DISCRETE.get(name) or [])[CONSTANT.get(name, 0) :]
        at = [0.3] if method in ("ppf", "isf") else [2.4 if name in ("pareto", "loguniform") else 0.9]
        if name in DISCRETE:
            at, rest = [1.0], []
        else:
            rest = [0.2, 1.7]
        assert_precise(f, [np.asarray(v) for v in (*at, *shapes, *rest)])


def test_digits_are_those_of_mpmath() -> None:
    leaf = ad.Reference(digits=50)
    with mpmath.workdps(60):
        at = mpmath.mpf(0.7)
        root = mpmath.log(2 * mpmath.pi) / 2
        inner = mpmath.sqrt(2 / mpmath.pi) * (at + at**3 * mpmath.mpf(0.044715))
        wanted = {
            "norm": (ad.stats.norm.logpdf, -at * at / 2 - root, -at),
            "halfnorm": (ad.stats.halfnorm.cdf, mpmath.erf(at / mpmath.sqrt(2)), 2 * mpmath.npdf(at)),
            "cauchy": (ad.stats.cauchy.cdf, mpmath.atan(at) / mpmath.pi + 0.5, 1 / (mpmath.pi * (1 + at * at))),
            "genpareto": (lambda x: ad.stats.genpareto.logsf(x, 0.0), -at, mpmath.mpf(-1)),
            "deg2rad": (ad.deg2rad, at * mpmath.pi / 180, mpmath.pi / 180),
            "rad2deg": (ad.rad2deg, at * 180 / mpmath.pi, 180 / mpmath.pi),
            "exp2": (lambda x: 2.0**x, 2**at, 2**at * mpmath.log(2)),
            "gelu": (lambda x: ad.nn.gelu(x, approximate="tanh"), at / 2 * (1 + mpmath.tanh(inner)), None),
        }
        for name, (f, value, slope) in wanted.items():
            x = ad.asarray(np.float64(0.7), device=ad.Autodiff(leaf)).require_grad()
            y = f(x)
            (ours,) = ad.Reference.to_list(y.inner().native())
            assert abs(mpmath.mpf(ours) / value - 1) < mpmath.mpf(10) ** -47, name
            if slope is not None:
                (ours,) = ad.Reference.to_list(y.backward()[x].native())
                assert abs(mpmath.mpf(ours) / slope - 1) < mpmath.mpf(10) ** -47, name
