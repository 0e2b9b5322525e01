"""Products and convolutions by their sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line, Values, broadcast, matrices
from adjoint.primitives import broadcast_shapes

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _matmul(B: Reference, x: Values, y: Values) -> Line:
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (broadcast(a, (*batch, *a.shape[-2:])) for a in (x, y))
    out = []
    for left, right in zip(matrices(x), matrices(y), strict=True):
        for i in range(x.shape[-2]):
            for j in range(y.shape[-1]):
                out.append(sum(left[i][k] * right[k][j] for k in range(x.shape[-1])))
    return out


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
}
