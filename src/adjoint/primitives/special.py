"""Special functions, element by element."""

from __future__ import annotations

from adjoint.dtypes import floating
from adjoint.primitives.table import COMPLEX, ELEMENTWISE, REAL, broadcast, declare, same_dtype, same_shape


def _declare(names: str, operands: str, parameters: str = "") -> None:
    shape = broadcast if " " in operands else same_shape
    declare(names, ELEMENTWISE, operands, parameters, shape=shape, dtype=same_dtype, accepts=REAL, promotes=floating)


_declare("erfc erfcx erfinv erfcinv log_ndtr gamma rgamma gammaln digamma entr logit", "x")
# exp(x^2) times the repeated integral of erfc; derivatives of log_ndtr, of sinc and, by |x|, of exp(-|x|) I_0(x)
_declare("ierfcx log_ndtr_derivative sinc i0e_derivative", "x", "order")
# over x to the order, the derivative of one order is x times the next one
_declare("bessel_i", "x", "order scaled reduced")
_declare("rel_entr kl_div", "x y")
_declare("betaln", "a b")
# `order` counts derivatives by s, by a, and by a and b
_declare("zeta", "s q", "order")
_declare("gammainc", "a x", "order")
_declare("gammaincc gamma_density", "a x")
_declare("betainc", "a b x", "order")
_declare("beta_density", "a b x")
_declare("stdtr", "df t", "order")  # counts derivatives by b of I_y(1/2, b), with b = df / 2 and y of t^2 / df

# --- whose values are SciPy's; `order` counts derivatives by x, by v and by x, by the parameter m ---

_declare("bessel_j bessel_y bessel_iv bessel_ive", "v x", "order")
_declare("bessel_k", "v x", "order scaled")
_declare("expi", "x")
_declare("expn dawsn", "x", "order")  # of expn the order is that of the function
_declare("elliptic_complete", "p", "kind order")
_declare("elliptic_incomplete", "phi m", "kind order")
_declare("carlson", "x y z p", "kind order")
_declare("jacobi_elliptic", "u m", "kind")
_declare("hyp0f1", "b x", "order")
_declare("hyp1f1", "a b x", "order")
_declare("hyp2f1", "a b c x", "order")
_declare("struve", "v x", "order modified")
_declare("airy fresnel trigonometric_integral", "x", "kind")
_declare("exponential_mean", "x", "order symmetric")
_declare("spence wrightomega", "x", "order")
_declare("erfi", "x")
_declare("owens_t", "h a")
_declare("gammaincinv gammainccinv", "a y")
_declare("betaincinv betainccinv", "a b y")
_declare("stdtrit", "df p")
declare("lambertw", ELEMENTWISE, "x", "k", shape=same_shape, dtype=same_dtype, promotes=floating)
for _name, _parameters in (("wofz", "order"), ("erf_complex", ""), ("erfc_complex", "")):
    declare(_name, ELEMENTWISE, "z", _parameters, shape=same_shape, dtype=same_dtype, accepts=COMPLEX)
