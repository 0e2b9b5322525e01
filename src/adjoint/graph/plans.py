"""Plans: what a node keeps of a primitive's call, and how it pulls back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backend import Array, Backend
from adjoint.primitives import Primitive
from adjoint.rules.records import Rule


class Plan:
    """How one primitive pulls back to one choice of tracked operands.

    `pull(g, saved)` gives the cotangents of the tracked operands, in order; `accumulate(sink, g, saved)`,
    where there is one, adds the only cotangent into a buffer. `saved` is the source of the expression
    that picks what the rules need: `v` are the operands, `kept` the operands or recipes for them,
    `out` the result, `p` the parameters. `cooks` says that recipes may be among what is saved. Cotangents of the
    result are arrays of `inner`, those of the operands of `below`: another one where an array moved between devices.
    """

    __slots__ = ("accumulate", "below", "cooks", "inner", "primitive", "pull", "saved")

    def __init__(
        self,
        primitive: Primitive,
        saved: str,
        pull: Callable[[Any, Any], Any],
        accumulate: Callable[..., Any] | None,
        cooks: bool,
        inner: Backend,
        below: Backend | None = None,
    ) -> None:
        self.primitive = primitive
        self.saved = saved
        self.pull = pull
        self.accumulate = accumulate
        self.cooks = cooks
        self.inner = inner
        self.below = below or inner


def absorbing(rule: Rule) -> Rule:
    """The rule with its partial derivative multiplied so that a zero cotangent stays zero."""

    def pull(B: Any, g: Array, *saved: Any) -> Array:
        slope = rule(B, B.full(shape=tuple(g.shape), value=1, dtype=B.dtype_of(g)), *saved)
        if B.dtype_of(slope) != B.dtype_of(g):
            g = B.astype(g, dtype=B.dtype_of(slope))
        return B.absorbing_multiply(g, slope)

    return pull
