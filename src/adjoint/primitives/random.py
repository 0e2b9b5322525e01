"""Random numbers."""

from __future__ import annotations

from typing import Any

from adjoint.primitives.table import RANDOM, Shape, declare, dtype_given, same_dtype, shape_given

declare("random_uniform random_normal", RANDOM, "", "key shape dtype", shape=shape_given, dtype=dtype_given)


declare("random_integers", RANDOM, "", "key low high shape dtype", shape=shape_given, dtype=dtype_given)


declare("random_permutation", RANDOM, "", "key size dtype", shape=lambda *, size, **_: (size,), dtype=dtype_given)


def _drawn_shape(*_: Any, shape: Shape, **__: Any) -> Shape:
    return shape


# numbers of distributions whose parameters are operands; these broadcast to the shape
declare("random_loggamma", RANDOM, "a", "key shape", shape=_drawn_shape, dtype=same_dtype)


declare("random_poisson", RANDOM, "rate", "key shape dtype", shape=_drawn_shape, dtype=dtype_given)


declare("random_binomial", RANDOM, "n p", "key shape dtype", shape=_drawn_shape, dtype=dtype_given)
