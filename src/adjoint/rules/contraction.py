"""Products that sum over shared axes: all are bilinear, but for what is added in one of them.

The three convolutions are each other's transposes, so they are closed under differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint.primitives import Primitive
from adjoint.rules.batching import in_stacks
from adjoint.rules.records import Bilinear, Composed, Record
from adjoint.rules.sparsity import Call, joined_along


def _transposed(B: Any, x: Any) -> Any:
    n = len(x.shape)
    if n == 2:
        return B.permute_dims(x, axes=(1, 0))
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def _to_right(B: Any, g: Any, x: Any, y_shape: Any) -> Any:
    """Of one matrix for all of a stack one product, in place of a stack of products that is then summed."""
    if len(y_shape) == 2 and len(g.shape) > 2 and g.shape[:-1] == x.shape[:-1]:
        return _of_rows(B, x, g)
    return B.matmul(_transposed(B, x), g)


def _of_rows(B: Any, x: Any, y: Any) -> Any:
    """The sum of outer products of rows, over all axes but the last."""
    if len(x.shape) > 2:
        x, y = (B.reshape(part, shape=(math.prod(part.shape[:-1]), part.shape[-1])) for part in (x, y))
    return B.matmul(_transposed(B, x), y)


def _linear_definition(B: Any, x: Any, weight: Any, bias: Any) -> Any:
    return B.add(B.matmul(x, _transposed(B, weight)), bias)


# --- batches ---


def _matmul_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    x, y = values
    if flags == [True, False] and len(x.shape) == 3 and len(y.shape) == 2:  # one product for all
        rows = B.reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2]))
        return B.reshape(B.matmul(rows, y), shape=(x.shape[0], x.shape[1], y.shape[1]))
    return in_stacks(B, primitive, values, flags, parameters)


# --- sparsity ---


def _factors(call: Call, i: int) -> Sequence[int]:
    return (len(call.shape_of(i)) - 1 - i,)  # of matmul: the last axis of the left, the last but one of the right


RECORDS: dict[str, Record] = {
    "matmul": Bilinear(
        x=lambda B, g, y: B.matmul(g, _transposed(B, y)),
        y=_to_right,
        batching=_matmul_batched,
        sparsity=joined_along(_factors),
        operations=lambda operands, result, _: 2 * math.prod(result) * operands[0][-1],
    ),
    "linear": Composed(
        _linear_definition,
        x=lambda B, g, weight: B.matmul(g, weight),
        weight=lambda B, g, x: _of_rows(B, g, x),
        bias=lambda B, g: B.sum(g, axis=tuple(range(len(g.shape) - 1)), keepdims=False),
        operations=lambda operands, result, _: math.prod(result) * (2 * operands[0][-1] + 1),
    ),
}
