"""Special functions, element by element."""

from __future__ import annotations

from adjoint.primitives.table import ELEMENTWISE, broadcast, declare, same_dtype, same_shape

declare(
    "erfc erfcx erfinv erfcinv log_ndtr gamma gammaln digamma entr logit",
    ELEMENTWISE,
    "x",
    shape=same_shape,
    dtype=same_dtype,
)
# over x to the order, the derivative of one order is x times the next one
declare("bessel_i", ELEMENTWISE, "x", "order scaled reduced", shape=same_shape, dtype=same_dtype)
declare("spherical_bessel", ELEMENTWISE, "x", "order", shape=same_shape, dtype=same_dtype)
declare("rel_entr kl_div", ELEMENTWISE, "x y", shape=broadcast, dtype=same_dtype)
declare("betaln", ELEMENTWISE, "a b", shape=broadcast, dtype=same_dtype)
# `order` counts derivatives by s, by a, and by a and b
declare("zeta", ELEMENTWISE, "s q", "order", shape=broadcast, dtype=same_dtype)
declare("gammainc", ELEMENTWISE, "a x", "order", shape=broadcast, dtype=same_dtype)
declare("gammaincc gamma_density", ELEMENTWISE, "a x", shape=broadcast, dtype=same_dtype)
declare("betainc", ELEMENTWISE, "a b x", "order", shape=broadcast, dtype=same_dtype)
declare("beta_density", ELEMENTWISE, "a b x", shape=broadcast, dtype=same_dtype)
