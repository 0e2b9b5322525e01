"""Functions that array libraries lack: `erf`, and others by the primitive's name.

`KERNELS` run over any array namespace `xp`, `HOSTED` on NumPy's arrays in main memory, with SciPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint.backends.special import bessel, entropy, error, gammas, incomplete
from adjoint.backends.special.error import erf

Functions = dict[str, Callable[..., Any]]


def _of(topics: list[tuple[Any, str]]) -> Functions:
    return {name: getattr(module, name) for module, names in topics for name in names.split()}


KERNELS = _of(
    [
        (error, "erfc erfcx ierfcx erfinv erfcinv log_ndtr log_ndtr_derivative"),
        (gammas, "gamma rgamma gammaln digamma betaln zeta"),
        (incomplete, "gammainc gammaincc gamma_density betainc beta_density stdtr"),
        (bessel, "bessel_i i0e_derivative sinc"),
        (entropy, "entr rel_entr kl_div logit"),
    ]
)

_CYLINDER = "bessel_j bessel_y bessel_iv bessel_ive bessel_k"
_ELLIPTIC = "elliptic_complete elliptic_incomplete carlson jacobi_elliptic"
_HYPERGEOMETRIC = (
    "hyp0f1 hyp1f1 hyp2f1 struve airy trigonometric_integral exponential_mean fresnel spence owens_t erfi wrightomega"
)
_EXPONENTIAL = "expi expn lambertw dawsn wofz erf_complex erfc_complex"
_QUANTILES = "gammaincinv gammainccinv betaincinv betainccinv stdtrit"


@functools.cache
def _hosted() -> Functions:
    """Imported when one is first asked for: few programs do."""
    from adjoint.backends.special import cylinder, elliptic, exponential, hypergeometric, quantiles

    topics = [(cylinder, _CYLINDER), (elliptic, _ELLIPTIC), (exponential, _EXPONENTIAL), (quantiles, _QUANTILES)]
    return _of([*topics, (hypergeometric, _HYPERGEOMETRIC)])


def _run(name: str, *operands: Any, **parameters: Any) -> Any:
    return _hosted()[name](*operands, **parameters)


HOSTED: Functions = {
    name: functools.partial(_run, name)
    for name in f"{_CYLINDER} {_ELLIPTIC} {_EXPONENTIAL} {_QUANTILES} {_HYPERGEOMETRIC}".split()
}

__all__ = ["HOSTED", "KERNELS", "erf"]
