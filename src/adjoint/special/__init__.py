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
    hankel1,
    hankel2,
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
from adjoint.special.elliptic import (
    ellipe,
    ellipeinc,
    ellipj,
    ellipk,
    ellipkinc,
    ellipkm1,
    elliprc,
    elliprd,
    elliprf,
    elliprg,
    elliprj,
)
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
from adjoint.special.hypergeometric import (
    airy,
    erfi,
    exprel,
    fresnel,
    hyp0f1,
    hyp1f1,
    hyp2f1,
    modstruve,
    owens_t,
    shichi,
    sici,
    spence,
    struve,
    wrightomega,
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
from adjoint.special.powers import boxcox, boxcox1p, inv_boxcox, inv_boxcox1p

__all__ = [
    "airy", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "boxcox", "boxcox1p", "chdtr",
    "chdtrc", "chdtri", "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1",
    "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi",
    "erfinv", "exp1", "expi", "expit", "expn", "exprel", "fresnel", "gamma", "gammainc", "gammaincc",
    "gammainccinv", "gammaincinv", "gammaln", "hankel1", "hankel2", "hyp0f1", "hyp1f1", "hyp2f1", "i0", "i0e",
    "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e", "k1", "k1e",
    "kl_div", "kn", "kv", "kve", "lambertw", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "modstruve", "multigammaln", "ndtr", "ndtri", "owens_t", "polygamma", "psi", "rel_entr", "rgamma",
    "shichi", "sici", "sinc", "softmax", "spence", "stdtr", "stdtrit", "struve", "voigt_profile", "wofz",
    "wrightomega", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "zeta",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
