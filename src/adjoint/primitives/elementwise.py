"""Primitives that work element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.dtypes import counting, floating
from adjoint.primitives.table import (
    BITS,
    COMPLEX,
    ELEMENTWISE,
    INTEGERS,
    NUMBERS,
    ORDERED,
    REAL,
    TABLE,
    bool_dtype,
    broadcast,
    declare,
    dtype_given,
    real_part_dtype,
    same_dtype,
    same_shape,
    second_dtype,
)


def _one(names: str, parameters: str = "", *, dtype: Any = same_dtype, **rules: Any) -> None:
    declare(names, ELEMENTWISE, "x", parameters, shape=same_shape, dtype=dtype, **rules)


def _two(names: str, operands: str = "x y", *, dtype: Any = same_dtype, **rules: Any) -> None:
    declare(names, ELEMENTWISE, operands, shape=broadcast, dtype=dtype, **rules)


_one("negative", operator="neg", accepts=NUMBERS)
_one("sign square conj", promotes=counting)
_one("floor ceil trunc", accepts=REAL, identity="b")
_one("round", identity="b")
_one(
    "sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh", promotes=floating
)
_one("cbrt expit erf relu softplus silu gelu", accepts=REAL, promotes=floating)
_one("bitwise_invert", operator="invert", accepts=BITS)
_one("abs", dtype=real_part_dtype, operator="abs", identity="b")
_one("real", dtype=real_part_dtype, identity=REAL.kinds)
_one("imag", dtype=real_part_dtype, accepts=COMPLEX)
_one("logical_not isnan isinf isfinite", dtype=bool_dtype)
_one("signbit", dtype=bool_dtype, accepts=REAL, promotes=floating)

_two("add", operator="add", promotes=counting)
_two("subtract", operator="sub", promotes=counting)
_two("multiply", operator="mul", promotes=counting)
_two("divide", operator="truediv", promotes=floating)
_two("floor_divide", operator="floordiv", accepts=REAL, promotes=counting)
_two("remainder", operator="mod", accepts=REAL, promotes=counting)
_two("pow", promotes=counting)
_two("maximum minimum", accepts=REAL, promotes=counting)
_two("atan2 hypot logaddexp copysign nextafter", accepts=REAL, promotes=floating)
_two("absorbing_multiply")  # zero if either factor is zero
_two("bitwise_and", operator="and", accepts=BITS)
_two("bitwise_or", operator="or", accepts=BITS)
_two("bitwise_xor", operator="xor", accepts=BITS)
_two("bitwise_left_shift", operator="lshift", accepts=INTEGERS, promotes=counting)
_two("bitwise_right_shift", operator="rshift", accepts=INTEGERS, promotes=counting)
_two("gcd lcm", accepts=INTEGERS, promotes=counting)
_two("equal", dtype=bool_dtype, operator="eq")
_two("not_equal", dtype=bool_dtype, operator="ne")
_two("less", dtype=bool_dtype, operator="lt", accepts=REAL)
_two("less_equal", dtype=bool_dtype, operator="le", accepts=REAL)
_two("greater", dtype=bool_dtype, operator="gt", accepts=REAL)
_two("greater_equal", dtype=bool_dtype, operator="ge", accepts=REAL)
_two("logical_and logical_or logical_xor", dtype=bool_dtype, truth=True)
# the pullbacks that leaves fuse: g times the derivative, from the output y or the input x alone
_two("tanh_pullback relu_pullback", "g y")
_two("expit_pullback silu_pullback gelu_pullback", "g x")
_two("where", "condition x y", dtype=second_dtype)
# between two bounds, where the derivative is zero; x times a slope where it is not positive
_one("hardtanh", "low high", accepts=REAL, promotes=floating)
_one("leaky_relu", "slope", accepts=REAL, promotes=floating)
# other activations and losses that leaves fuse: `hinge` is max(x, 0) with derivative 1 at 0
_one("hardswish hinge", accepts=REAL, promotes=floating)
_one("softshrink", "bound", accepts=REAL, promotes=floating)
_one("elu", "alpha rate", accepts=REAL, promotes=floating)
_one("huber", "delta", accepts=REAL, promotes=floating)
_two("logistic_loss", "x target", accepts=REAL, promotes=floating)
_two("clip", "x low high", accepts=ORDERED)
_one("astype", "dtype", dtype=dtype_given)

CAST = TABLE["astype"]  # what promotion is made of


INT32 = np.dtype(np.int32)


# the remainder with the sign of x
declare("fmod", ELEMENTWISE, "x y", shape=broadcast, dtype=same_dtype, accepts=ORDERED)


# x times two to the power of an integer, and the power that leaves a mantissa from a half to one
declare("ldexp", ELEMENTWISE, "x exponent", shape=broadcast, dtype=same_dtype)


declare("mantissa", ELEMENTWISE, "x", shape=same_shape, dtype=same_dtype, accepts=REAL, promotes=floating)


declare("binary_exponent", ELEMENTWISE, "x", shape=same_shape, dtype=lambda *_: INT32, accepts=REAL, promotes=floating)
