"""Derivative records: how a primitive is differentiated, as data.

Each primitive has one record, the one that says the most. A record holds one function per
differentiable operand, written against a backend `B` and never against an array library:

    rule(B, g, ...) -> cotangent

`g` is the cotangent of the result. The names of the parameters that follow say what the rule needs,
and a node keeps that and nothing else: an operand (`x`), the result (`out`), a static parameter
(`axis`), or only the shape or dtype of an operand (`x_shape`, `x_dtype`). Python scalars may stand
in for operands; rules combine scalars among themselves in Python. `None` is a cotangent too: none.

Rules are C-linear and never conjugate; `backward` does, at its two ends.

Forward mode follows from the same record. Where it does not (`Custom`, and the few primitives that are
linear over the reals only), the record declares a pushforward for all operands together:

    pushforward(B, tangents, ...) -> tangent

`tangents` has an entry per operand, None for those without; the other parameters are picked as for rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.primitives import Primitive

Rule = Callable[..., Any]


class Record:
    """A rule per differentiable operand, or one joint `pullback` where rules share work.

    The joint form is `pullback(B, g, wanted, ...)`: `wanted` names the operands to answer for, in
    order, and the result is a tuple of their cotangents. With several results `g` is a tuple with
    `None` for those that nothing depends on.
    """

    def __init__(self, *, pullback: Rule | None = None, pushforward: Rule | None = None, **rules: Rule) -> None:
        self.rules = rules
        self.pullback = pullback
        self.pushforward = pushforward
        # accumulate(B, sink, g, ...): adds the cotangent into a buffer instead of making one
        self.accumulate: Rule | None = None
        # series(B, terms): the last coefficient of the result, from those of the only operand, None for zero; for
        # what would otherwise cost exponentially in the order
        self.series: Rule | None = None

    def differentiable(self, primitive: Primitive) -> tuple[str, ...]:
        """The operands that a cotangent can flow to."""
        if self.pullback is None:
            return tuple(self.rules)
        return primitive.operands


class Elementwise(Record):
    """Each rule multiplies `g` by a partial derivative.

    A diagonal Jacobian is its own transpose, so the same rule applied to a tangent is the
    pushforward.
    """


class Linear(Record):
    """Linear in the operands that have rules, each rule the transpose; forward mode is the primitive."""


class Bilinear(Linear):
    """Linear in each of two operands with the other one fixed."""


class Custom(Record):
    """Anything else: pullbacks as they are."""


class Composed(Record):
    """A definition in other primitives, `definition(B, *operands, **parameters)`.

    Whatever is not given follows from the definition; rules given beside it are the fast path of
    reverse mode, and may themselves call composed primitives.
    """

    def __init__(
        self,
        definition: Callable[..., Any],
        *,
        pullback: Rule | None = None,
        pushforward: Rule | None = None,
        **rules: Rule,
    ) -> None:
        super().__init__(pullback=pullback, pushforward=pushforward, **rules)
        self.definition = definition

    @property
    def fused(self) -> bool:
        """Whether reverse mode has rules of its own."""
        return bool(self.rules) or self.pullback is not None


class NotDifferentiable(Record):
    """Said, not left out: the result is a constant of every level."""

    def __init__(self, definition: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.definition = definition  # in other primitives, for leaves that have nothing faster


def names_of(rule: Rule, skip: int) -> tuple[str, ...]:
    """The parameters a rule needs, after the first `skip` ones."""
    code = rule.__code__
    return code.co_varnames[skip : code.co_argcount]
