"""Primitives that work element by element."""

from __future__ import annotations

from adjoint.primitives.table import (
    ELEMENTWISE,
    bool_dtype,
    broadcast,
    declare,
    dtype_given,
    real_part_dtype,
    same_dtype,
    same_shape,
    second_dtype,
)

declare(
    "negative sign floor ceil trunc round square sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh conj expit erf relu softplus silu gelu bitwise_invert",
    ELEMENTWISE,
    "x",
    shape=same_shape,
    dtype=same_dtype,
)
declare("abs real imag", ELEMENTWISE, "x", shape=same_shape, dtype=real_part_dtype)
declare("logical_not isnan isinf isfinite signbit", ELEMENTWISE, "x", shape=same_shape, dtype=bool_dtype)
declare(
    "add subtract multiply divide floor_divide remainder pow maximum minimum atan2 hypot logaddexp copysign nextafter "
    "absorbing_multiply bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
    ELEMENTWISE,
    "x y",
    shape=broadcast,
    dtype=same_dtype,
)
declare(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
    ELEMENTWISE,
    "x y",
    shape=broadcast,
    dtype=bool_dtype,
)
# the pullbacks that leaves fuse: g times the derivative, from the output y or the input x alone
declare("tanh_pullback expit_pullback relu_pullback", ELEMENTWISE, "g y", shape=broadcast, dtype=same_dtype)
declare("silu_pullback gelu_pullback", ELEMENTWISE, "g x", shape=broadcast, dtype=same_dtype)
declare("where", ELEMENTWISE, "condition x y", shape=broadcast, dtype=second_dtype)
# between two bounds, where the derivative is zero; x times a slope where it is not positive
declare("hardtanh", ELEMENTWISE, "x", "low high", shape=same_shape, dtype=same_dtype)
declare("leaky_relu", ELEMENTWISE, "x", "slope", shape=same_shape, dtype=same_dtype)
# other activations and losses that leaves fuse: `hinge` is max(x, 0) with derivative 1 at 0
declare("hardswish hinge", ELEMENTWISE, "x", shape=same_shape, dtype=same_dtype)
declare("softshrink", ELEMENTWISE, "x", "bound", shape=same_shape, dtype=same_dtype)
declare("elu", ELEMENTWISE, "x", "alpha rate", shape=same_shape, dtype=same_dtype)
declare("huber", ELEMENTWISE, "x", "delta", shape=same_shape, dtype=same_dtype)
declare("logistic_loss", ELEMENTWISE, "x target", shape=broadcast, dtype=same_dtype)
declare("clip", ELEMENTWISE, "x low high", shape=broadcast, dtype=same_dtype)
declare("astype", ELEMENTWISE, "x", "dtype", shape=same_shape, dtype=dtype_given)
