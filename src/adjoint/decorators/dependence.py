"""Sparsity: a backend that knows of each element which elements of the input it depends on.

An array of `Dependence(B)` carries, beside the value, a sparse matrix of booleans with a row for each of its elements
and a column for each element of the input: the pattern of its Jacobian. How patterns go through a primitive follows
from its kind: elementwise primitives join rows, reductions join them along axes, moves of elements move them. What is
moved where is asked of the inner backend, by running the primitive on the numbers of the elements.

Patterns are not of this point alone: both branches of `where` count, and every element that might be the largest.
Only what the function itself decides by values, in Python or by computing indices, is as it is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.backend import Array, Decorator, Implementation
from adjoint.dtypes import INEXACT
from adjoint.primitives import CREATION, ELEMENTWISE, LINALG, RANDOM, REDUCTION, STRUCTURAL, Kind, Primitive, Shape
from adjoint.rules import Composed, NotDifferentiable, Record, record_of
from adjoint.rules.sparsity import (
    Call,
    Pattern,
    SparsityRule,
    by_definition,
    everything,
    joined_along,
    matrices,
    moved,
    reduced_axes,
    whole,
)
from adjoint.variables import J


class Dependent:
    """An array of a Dependence backend: an inner array, and the pattern of its elements, or None for a constant."""

    __slots__ = ("pattern", "value")

    def __init__(self, value: Array, pattern: Pattern | None) -> None:
        self.value: Array = value
        self.pattern: Pattern | None = pattern

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]


class Dependence(Decorator[J]):
    """Which elements of the input each element depends on, beside the values, over another backend. Needs SciPy.

    `ad.sparse_jacobian` is its use; as the device of tensors it computes as the inner backend does.

    >>> import adjoint as ad
    >>> ad.Dependence(ad.NumPy())
    dependence<numpy>
    """

    differentiates = True
    in_rule = False  # the level of a rule for the derivative of a function

    def wrap(self, value: Array) -> Dependent:
        return Dependent(value, None)

    def unwrap(self, array: Dependent) -> Array:
        return array.value

    def is_active(self, array: Dependent) -> bool:
        return array.pattern is not None

    def map_arrays(self, array: Dependent, f: Callable[[Array], Array]) -> Dependent:
        return Dependent(f(array.value), array.pattern)

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """What the tangents that the rule gives depend on, where those of the arguments do on what they do.

        Where a rule applies such a function to tangents, itself perhaps, that stands for everything.
        """
        if not any([self.is_active(x._array) for x in xs]):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        if not (rules.differentiates and rules.differs):
            return rules.plain(xs)  # type: ignore[no-any-return]
        inner, below = self.inner, rules.below(xs, self)
        if self.in_rule:
            with rules.running_on(inner):
                values = [rules.lift_to(y, inner) for y in rules.plain(below)]
            patterns = [x._array.pattern for x in xs if x._array.pattern is not None]
            return [
                rules.tensor(
                    Dependent(y, whole(patterns, math.prod(y.shape)) if inner.dtype_of(y).kind in INEXACT else None),
                    self,
                )
                for y in values
            ]
        lower: Dependence[Any] = Dependence.fresh(inner)
        lower.in_rule = True
        given = [rules.tensor(lower.wrap(y._array), lower) for y in below]
        active = [
            None if x._array.pattern is None else rules.tensor(Dependent(y._array, x._array.pattern), lower)
            for x, y in zip(xs, below, strict=True)
        ]
        with rules.running_on(lower):
            ys, moved = rules.push_of(given, active)
        return [
            rules.tensor(
                Dependent(rules.lift_to(y, lower).value, None if t is None else rules.lift_to(t, lower).pattern), self
            )
            for y, t in zip(ys, moved, strict=True)
        ]

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]
        if primitive.kind in (CREATION, RANDOM) and not primitive.operands:
            return lambda **parameters: Dependent(run(**parameters), None)
        record = record_of(primitive)
        through, several, inner = _through(primitive, record), primitive.results > 1, self.inner
        composed = record if isinstance(record, Composed) else None
        rule = record.sparsity or _BY_KIND.get(primitive.kind) or (by_definition if composed else everything)
        definition = composed.definition if composed and rule is by_definition else None

        def lifted(*operands: Any, **parameters: Any) -> Any:
            if definition is not None:
                return definition(self, *operands, **parameters)
            values = [o.value if o.__class__ is Dependent else o for o in operands]
            patterns = [o.pattern if o.__class__ is Dependent and through(i) else None for i, o in enumerate(operands)]
            out = run(*values, **parameters)
            active = any([p is not None for p in patterns])
            results = []
            for value in out if several else (out,):
                pattern = None
                if active and inner.dtype_of(value).kind in INEXACT:
                    pattern = rule(Call(primitive, values, patterns, parameters, tuple(value.shape), inner, through))
                results.append(Dependent(value, pattern))
            return tuple(results) if several else results[0]

        return lifted


def _through(primitive: Primitive, record: Record) -> Callable[[int], bool]:
    """Whether a derivative goes through the operand in a place; the last name may stand for many."""
    if isinstance(record, NotDifferentiable):
        return lambda i: False
    names = primitive.operands
    if not isinstance(record, Composed) or record.fused:
        names = record.differentiable(primitive)
    flags = [name in names for name in primitive.operands]
    return lambda i: flags[min(i, len(flags) - 1)]


# What the result of a primitive depends on whose record says nothing: of indexing and products, what the definition
# does, or all operands.
_BY_KIND: dict[Kind, SparsityRule] = {
    ELEMENTWISE: joined_along(lambda call, i: ()),
    RANDOM: joined_along(lambda call, i: ()),  # numbers of given parameters
    REDUCTION: joined_along(reduced_axes),
    STRUCTURAL: moved,
    LINALG: matrices,
}
