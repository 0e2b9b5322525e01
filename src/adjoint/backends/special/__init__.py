"""Functions that array libraries lack, over any array namespace `xp`: `erf`, and `KERNELS` by the primitive's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backends.special import bessel, entropy, error, gammas, incomplete
from adjoint.backends.special.error import erf

KERNELS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module, names in [
        (error, "erfc erfcx ierfcx erfinv erfcinv log_ndtr log_ndtr_derivative"),
        (gammas, "gamma gammaln digamma betaln zeta"),
        (incomplete, "gammainc gammaincc gamma_density betainc beta_density"),
        (bessel, "bessel_i i0e_derivative sinc"),
        (entropy, "entr rel_entr kl_div logit"),
    ]
    for name in names.split()
}

__all__ = ["KERNELS", "erf"]
