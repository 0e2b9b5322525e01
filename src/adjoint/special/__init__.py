"""Special functions, under SciPy's names and with its signatures.

All work element by element or along axes, operands broadcast, and integers get the default dtype. Values are computed
in double precision and rounded to the dtype of the operands; `docs/special.md` lists how accurate they are, and which
of them SciPy computes. Numbers of formulas are those of the NIST Digital Library of Mathematical Functions,
dlmf.nist.gov.
"""

from __future__ import annotations

from adjoint.renamed import refusing
from adjoint.special.along_axes import log_softmax, logsumexp, softmax
from adjoint.special.bessel import (
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jn,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kn,
    kv,
    kve,
    sinc,
    y0,
    y1,
    yn,
    yv,
)
from adjoint.special.elliptic import ellipe, ellipeinc, ellipk, ellipkinc, ellipkm1
from adjoint.special.entropies import entr, expit, kl_div, log_expit, logit, rel_entr, xlog1py, xlogy
from adjoint.special.error_functions import (
    dawsn,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    voigt_profile,
    wofz,
)
from adjoint.special.exponential import exp1, expi, expn, lambertw
from adjoint.special.gammas import (
    beta,
    betaln,
    digamma,
    gamma,
    gammaln,
    loggamma,
    multigammaln,
    polygamma,
    psi,
    rgamma,
    zeta,
)
from adjoint.special.incomplete import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    chdtr,
    chdtrc,
    chdtri,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    stdtr,
    stdtrit,
)

__all__ = [
    "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "chdtr", "chdtrc", "chdtri", "dawsn",
    "digamma", "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "entr", "erf", "erfc", "erfcinv", "erfcx",
    "erfinv", "exp1", "expi", "expit", "expn", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv",
    "gammaln", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e", "k1", "k1e", "kl_div",
    "kn", "kv", "kve", "lambertw", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "rel_entr", "rgamma", "sinc", "softmax", "stdtr", "stdtrit",
    "voigt_profile", "wofz", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "zeta",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
