"""Forward mode: a backend that carries a tangent beside every value.

`Tangent(B)` answers for a primitive with a *lifted* one: it runs the primitive on `B` and, where an
operand has a tangent, pushes the tangents forward, also on `B`. This is the dual numbers of
W. Clifford (1871) and R. Wengert, A simple automatic derivative evaluation program (1964).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from adjoint.backend import Array, Decorator, Implementation
from adjoint.dtypes import INEXACT
from adjoint.graph import codegen
from adjoint.graph.jvp import JVP, definition_of, make_jvp, written
from adjoint.primitives import CREATION, ELEMENTWISE, RANDOM, DType, Primitive
from adjoint.rules import NotDifferentiable, record_of
from adjoint.variables import J


class Dual:
    """An array of a Tangent backend: an inner array, and its tangent of the same shape, or None."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Array, tangent: Array | None) -> None:
        self.value: Array = value
        self.tangent: Array | None = tangent

    shape = property(operator.attrgetter("value.shape"))  # in C, where a call of Python's costs three times as much


class Tangent(Decorator[J]):
    """Derivatives along a direction, computed with the values, over another backend.

    `ad.jvp` is its use; as the device of tensors it computes as the inner backend does.

    >>> import adjoint as ad
    >>> ad.Tangent(ad.NumPy())
    tangent<numpy>
    """

    differentiates = True

    def wrap(self, value: Array) -> Dual:
        dual = Dual.__new__(Dual)
        dual.value, dual.tangent = value, None
        return dual

    def unwrap(self, array: Dual) -> Array:
        return array.value

    def dtype_of(self, array: Dual) -> DType:
        return self.inner.dtype_of(array.value)

    def is_active(self, array: Dual) -> bool:
        return array.tangent is not None

    def with_primal(self, array: Dual, f: Callable[[Array], Array]) -> Dual:
        return Dual(self.inner.with_primal(array.value, f), array.tangent)

    def map_arrays(self, array: Dual, f: Callable[[Array], Array]) -> Dual:
        return Dual(f(array.value), None if array.tangent is None else f(array.tangent))

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """The function and its tangents, as its rule pushes them forward."""
        if not any([self.is_active(x._array) for x in xs]):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        if not rules.differentiates:
            return rules.plain(xs)  # type: ignore[no-any-return]
        inner, below = self.inner, rules.below(xs, self)
        tangents = [None if x._array.tangent is None else rules.tensor(x._array.tangent, inner) for x in xs]
        with rules.running_on(inner):
            ys, moved = rules.push_of(below, tangents)
        return [
            rules.tensor(
                Dual(
                    rules.lift_to(y, inner),
                    None if t is None or t.dtype.kind not in INEXACT else rules.lift_to(t, inner),
                ),
                self,
            )
            for y, t in zip(ys, moved, strict=True)
        ]

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]
        if primitive.kind in (CREATION, RANDOM) and not primitive.operands:
            return lambda **parameters: Dual(run(**parameters), None)
        record = record_of(primitive)
        definition = definition_of(primitive, record)
        if definition is None and (rules := written(primitive, record)):
            return codegen.pushed(primitive, run, rules, self.inner, Dual)
        if isinstance(record, NotDifferentiable) and primitive.results == 1:
            if primitive.kind is ELEMENTWISE and not primitive.variadic:
                return codegen.constant(primitive, run, self.inner, Dual, "tangent")
            return _lift_constant(run)
        jvp = None if definition else make_jvp(primitive, record, self.inner)
        return self._lift(primitive, run, jvp, definition)

    def _lift(
        self, primitive: Primitive, run: Implementation, jvp: JVP | None, definition: Callable[..., Any] | None
    ) -> Implementation:
        several = primitive.results > 1

        def lifted(*operands: Any, **parameters: Any) -> Any:
            values = [o.value if o.__class__ is Dual else o for o in operands]
            tangents = [o.tangent if o.__class__ is Dual else None for o in operands]
            active = any([t is not None for t in tangents])
            if active and definition is not None:
                return definition(self, *operands, **parameters)
            out = run(*values, **parameters)
            tangent = jvp(values, tangents, out, parameters) if active and jvp is not None else None
            if several:
                return tuple([Dual(*pair) for pair in zip(out, tangent or [None] * len(out), strict=True)])
            if tangent is not None and tangent.shape != out.shape:
                tangent = self.inner.broadcast_to(tangent, shape=tuple(out.shape))
            return Dual(out, tangent)

        return lifted


def _lift_constant(run: Implementation) -> Implementation:
    def lifted(*operands: Any, **parameters: Any) -> Dual:
        return Dual(run(*[o.value if o.__class__ is Dual else o for o in operands], **parameters), None)

    return lifted
