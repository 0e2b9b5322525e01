"""What can be picked of several: products of lines, and combinations of the elements of one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_flag, as_integer, as_tensor, as_tensors, check_shape, computed
from adjoint.functions.ranges import meshgrid
from adjoint.functions.shape import reshape, stack
from adjoint.operands import constant_like, run
from adjoint.primitives import ARRAY
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def cartesian_prod(*lines: Any) -> Tensor[Any]:
    """All ways to pick an element of each vector, one in each row, the last one running fastest; one vector stays.

    Raises ShapeError for what are no vectors, ArgumentError for none.

    >>> import adjoint as ad
    >>> ad.cartesian_prod(ad.tensor([1, 2]), ad.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if not lines:
        raise errors.ArgumentError("cartesian_prod: expected at least one vector")
    vectors = as_tensors(lines, "cartesian_prod")
    for x in vectors:
        if x.ndim != 1:
            raise errors.ShapeError(f"cartesian_prod: expected vectors, received shape {x.shape}")
    if len(vectors) == 1:
        return reshape(vectors[0], vectors[0].shape)
    return reshape(
        stack(meshgrid(*vectors, indexing="ij"), axis=-1), (-1 if all(x.size for x in vectors) else 0, len(vectors))
    )


def combinations(x: Operand[B], /, r: int = 2, with_replacement: bool = False) -> Tensor[B]:
    """All ways to pick r elements of a vector, one in each row, in its order, an element once or any number of times.

    Raises ShapeError for what is no vector, ArgumentError for a negative r.

    >>> import adjoint as ad
    >>> ad.combinations(ad.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    x, count = as_tensor(x, "combinations"), as_integer(r, "combinations", "r", 0)
    if x.ndim != 1:
        raise errors.ShapeError(f"combinations: expected a vector, received shape {x.shape}")
    again = as_flag(with_replacement, "combinations", "with_replacement")
    pick = itertools.combinations_with_replacement if again else itertools.combinations
    total = math.comb(x.size + count - 1, count) if again and count else math.comb(x.size, count)
    shape = check_shape((total, count), "combinations")
    flat = itertools.chain.from_iterable(pick(range(x.size), count)) if total else ()
    places = computed("combinations", np.fromiter, flat, np.int64, total * count).reshape(shape)
    return run("index", (x, constant_like(places, x, "combinations")), key=(ARRAY,))  # type: ignore[no-any-return]
