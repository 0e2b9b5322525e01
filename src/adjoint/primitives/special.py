"""Special functions, element by element."""

from __future__ import annotations

from adjoint.dtypes import floating
from adjoint.primitives.table import ELEMENTWISE, REAL, broadcast, declare, same_dtype, same_shape


def _declare(names: str, operands: str, parameters: str = "") -> None:
    shape = broadcast if " " in operands else same_shape
    declare(names, ELEMENTWISE, operands, parameters, shape=shape, dtype=same_dtype, accepts=REAL, promotes=floating)


_declare("erfc erfcx erfinv erfcinv log_ndtr gamma gammaln digamma entr logit", "x")
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
