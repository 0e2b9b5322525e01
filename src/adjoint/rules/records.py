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

All else that is known of a primitive beyond its declaration stands in its record too, where it does not follow
from the primitive's kind and the record's class; `Record` lists these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint.primitives import Primitive, Shape
from adjoint.rules.batching import BatchingRule
from adjoint.rules.sparsity import SparsityRule

Rule = Callable[..., Any]


class Record:
    """A rule per differentiable operand, or one joint `pullback` where rules share work.

    The joint form is `pullback(B, g, wanted, ...)`: `wanted` names the operands to answer for, in
    order, and the result is a tuple of their cotangents. With several results `g` is a tuple with
    `None` for those that nothing depends on.

    What follows from kind and class where it is None:

    accumulate(B, sink, g, ...)
        The sum of a buffer and the cotangent of the only differentiable operand, written into the buffer.
    batching(B, primitive, values, flags, parameters)
        The result for all examples, see `rules.batching`.
    sparsity(call)
        Which elements of the input the result depends on, see `rules.sparsity`.
    taylor(B, terms, out, **parameters)
        The next coefficient of the result's series, see `rules.taylor`. For primitives of one result.
    operations(operands, result, parameters)
        How many floating-point operations a call takes, from the shapes of the operands and of the result.
    strong_zero
        Whether an elementwise rule gives zero for a zero cotangent as it stands, also where the derivative is infinite.
    """

    absorbs = False  # what `strong_zero` is for the class

    def __init__(
        self,
        *,
        pullback: Rule | None = None,
        pushforward: Rule | None = None,
        accumulate: Rule | None = None,
        batching: BatchingRule | None = None,
        sparsity: SparsityRule | None = None,
        taylor: Rule | None = None,
        operations: Callable[[Sequence[Shape], Shape, dict[str, Any]], float] | None = None,
        strong_zero: bool | None = None,
        **rules: Rule,
    ) -> None:
        self.rules = rules
        self.pullback = pullback
        self.pushforward = pushforward
        self.accumulate = accumulate
        self.batching = batching
        self.sparsity = sparsity
        self.taylor = taylor
        self.operations = operations
        self.strong_zero: bool = self.absorbs if strong_zero is None else strong_zero

    def reuses(self, primitive: Primitive) -> bool:
        """Whether the result may be written into the first operand: no rule of reverse mode needs either of them."""
        needs = {name for rule in self.rules.values() for name in names_of(rule, 2)}
        if self.pullback is not None:
            needs = set(names_of(self.pullback, 3))
        return not needs & {primitive.operands[0].lstrip("*"), "out", "outs"}

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

    absorbs = True


class Bilinear(Linear):
    """Linear in each of two operands with the other one fixed."""

    absorbs = False


class Custom(Record):
    """Anything else: pullbacks as they are."""

    absorbs = True


class Composed(Record):
    """A definition in other primitives, `definition(B, *operands, **parameters)`.

    Whatever is not given follows from the definition; rules given beside it are the fast path of
    reverse mode, and may themselves call composed primitives.
    """

    def __init__(self, definition: Callable[..., Any], **rules: Any) -> None:
        super().__init__(**rules)
        self.definition = definition

    @property
    def fused(self) -> bool:
        """Whether reverse mode has rules of its own."""
        return bool(self.rules) or self.pullback is not None

    def reuses(self, primitive: Primitive) -> bool:
        return self.fused and super().reuses(primitive)


class NotDifferentiable(Record):
    """Said, not left out: the result is a constant of every level."""

    def __init__(self, definition: Callable[..., Any] | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self.definition = definition  # in other primitives, for leaves that have nothing faster


def names_of(rule: Rule, skip: int) -> tuple[str, ...]:
    """The parameters a rule needs, after the first `skip` ones."""
    code = rule.__code__
    return code.co_varnames[skip : code.co_argcount]
