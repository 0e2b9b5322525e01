"""Functions that array libraries lack: `erf`, and others by the primitive's name.

`KERNELS` run over any array namespace `xp`, `HOSTED` on NumPy's arrays in main memory, with SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backends.special import (
    bessel,
    cylinder,
    elliptic,
    entropy,
    error,
    exponential,
    gammas,
    incomplete,
    quantiles,
)
from adjoint.backends.special.error import erf


def _of(topics: list[tuple[Any, str]]) -> dict[str, Callable[..., Any]]:
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
HOSTED = _of(
    [
        (cylinder, "bessel_j bessel_y bessel_iv bessel_ive bessel_k"),
        (elliptic, "elliptic_complete elliptic_incomplete"),
        (exponential, "expi expn lambertw dawsn wofz erf_complex erfc_complex"),
        (quantiles, "gammaincinv gammainccinv betaincinv betainccinv stdtrit"),
    ]
)

__all__ = ["HOSTED", "KERNELS", "erf"]
