"""Plans: what a node keeps of a primitive's call, and how it pulls back.

The names of a rule's parameters say what it needs; here they become the source of an expression that
picks just that, made once per primitive and choice of tracked operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint.backend import Array, Backend
from adjoint.graph.origins import WRITTEN
from adjoint.primitives import Primitive, Shape
from adjoint.rules import Rule


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


def picked(primitive: Primitive, needs: Sequence[str]) -> str:
    """The source of a tuple of what rules name."""
    places = {name: f"[{i}]" for i, name in enumerate(primitive.operands)}
    many = ""
    if primitive.variadic:
        many = primitive.operands[-1].lstrip("*")
        places[many] = f"[{len(primitive.operands) - 1}:]"

    def source(need: str) -> str:
        operand, _, what = need.rpartition("_")
        if need in places:
            return "kept" + places[need]
        if need in ("out", "outs"):
            return "out"
        if need in primitive.parameters:
            return f"p[{need!r}]"
        if operand in places and what == "shape":
            return f"tuple([shape(a) for a in v{places[operand]}])" if operand == many else f"shape(v{places[operand]})"
        if operand in places and what == "dtype":
            return f"dtype(v{places[operand]})"
        raise TypeError(f"the rule of {primitive.name} asks for {need!r}, which is no operand, result or parameter")

    return "(" + "".join(source(need) + ", " for need in needs) + ")"


def puller(rules: Sequence[Rule], counts: Sequence[int], inner: Backend) -> Callable[[Any, Any], Any]:
    """A function that calls each rule with its part of what was saved.

    Written out as a lambda expression: `lambda g, s: (r0(B, g, s[0]), r1(B, g, s[1], s[2]), )`.
    """
    calls, start = [], 0
    for i, count in enumerate(counts):
        calls.append(f"r{i}(B, g{''.join(f', s[{k}]' for k in range(start, start + count))}), ")
        start += count
    scope = {"B": inner, **{f"r{i}": rule for i, rule in enumerate(rules)}}
    source = f"lambda g, s: ({''.join(calls)})"
    return eval(compile(source, WRITTEN, "eval"), scope)  # type: ignore[no-any-return]


def shape_of(value: Any) -> Shape:
    return tuple(value.shape) if hasattr(value, "shape") else ()


def absorbing(rule: Rule) -> Rule:
    """The rule with its partial derivative multiplied so that a zero cotangent stays zero."""

    def pull(B: Any, g: Array, *saved: Any) -> Array:
        slope = rule(B, B.full(shape=tuple(g.shape), value=1, dtype=B.dtype_of(g)), *saved)
        if B.dtype_of(slope) != B.dtype_of(g):
            g = B.astype(g, dtype=B.dtype_of(slope))
        return B.absorbing_multiply(g, slope)

    return pull
