"""Forward mode: a backend that carries a tangent beside every value.

`Tangent(B)` answers for a primitive with a *lifted* one: it runs the primitive on `B` and, where an
operand has a tangent, pushes the tangents forward, also on `B`. This is the dual numbers of
W. Clifford (1871) and R. Wengert, A simple automatic derivative evaluation program (1964).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, Implementation
from adjoint.graph.plans import picked, shape_of
from adjoint.primitives import CREATION, ELEMENTWISE, RANDOM, Primitive, Shape
from adjoint.rules import RECORDS, Bilinear, Composed, Linear, NotDifferentiable, Record, names_of

J = TypeVar("J", bound=Backend, covariant=True)

# push(operands, tangents, out, parameters) gives the tangent of the result
Push = Callable[[Sequence[Any], Sequence[Any], Any, dict[str, Any]], Any]


class Dual:
    """An array of a Tangent backend: an inner array, and its tangent of the same shape, or None."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Array, tangent: Array | None) -> None:
        self.value = value
        self.tangent = tangent

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]


class Tangent(Decorator[J]):
    """Derivatives along a direction, computed with the values, over another backend.

    `ad.jvp` is its use; as the device of tensors it computes as the inner backend does.

    >>> import adjoint as ad
    >>> ad.Tangent(ad.NumPy())
    tangent<numpy>
    """

    def wrap(self, value: Array) -> Dual:
        return Dual(value, None)

    def unwrap(self, array: Dual) -> Array:
        return array.value

    def varies(self, array: Dual) -> bool:
        return array.tangent is not None

    def remade(self, array: Dual, f: Callable[[Array], Array]) -> Dual:
        return Dual(f(array.value), None if array.tangent is None else f(array.tangent))

    def implement(self, primitive: Primitive) -> Implementation:
        run, record = self.inner[primitive], RECORDS.get(primitive.name)
        if primitive.kind in (CREATION, RANDOM):
            return lambda **parameters: Dual(run(**parameters), None)
        if record is None:
            raise errors.UnsupportedPrimitive(
                f"{primitive.name} has no derivative record; give it one in adjoint.rules"
            )
        if _defined(primitive, record):
            assert isinstance(record, Composed)
            return self._lift(primitive, run, None, record.definition)
        return self._lift(primitive, run, _pushforward(primitive, record, self.inner), None)

    def _lift(
        self, primitive: Primitive, run: Implementation, push: Push | None, definition: Callable[..., Any] | None
    ) -> Implementation:
        several = primitive.results > 1

        def lifted(*operands: Any, **parameters: Any) -> Any:
            values = [o.value if o.__class__ is Dual else o for o in operands]
            tangents = [o.tangent if o.__class__ is Dual else None for o in operands]
            moving = any([t is not None for t in tangents])
            if moving and definition is not None:
                return definition(self, *operands, **parameters)
            out = run(*values, **parameters)
            tangent = push(values, tangents, out, parameters) if moving and push is not None else None
            if several:
                return tuple([Dual(*pair) for pair in zip(out, tangent or [None] * len(out), strict=True)])
            if tangent is not None and tangent.shape != out.shape:
                tangent = self.inner.broadcast_to(tangent, shape=tuple(out.shape))
            return Dual(out, tangent)

        return lifted


def _defined(primitive: Primitive, record: Record) -> bool:
    """Whether the pushforward follows from the primitive's definition alone."""
    fused = record.pushforward is not None or (primitive.kind is ELEMENTWISE and bool(record.rules))
    return isinstance(record, Composed) and not fused


def _pushforward(primitive: Primitive, record: Record, inner: Any) -> Push | None:
    """How tangents go forward through a primitive: what its record says, or what follows from it."""
    if isinstance(record, NotDifferentiable):
        return None
    if record.pushforward is not None:
        declared = record.pushforward
        pick = _picker(primitive, names_of(declared, 2), inner)
        return lambda v, t, out, p: declared(inner, tuple(t), *pick(v, v, out, p))
    if isinstance(record, Linear) and len(primitive.operands) == 1 and not primitive.variadic:
        run = inner[primitive]
        return lambda v, t, out, p: run(t[0], **p) if inner.dtype_of(out).kind in "fc" else None
    if primitive.kind is ELEMENTWISE and record.rules:
        return _diagonal(primitive, record, inner)
    if isinstance(record, Bilinear):
        return _product(primitive, record, inner)
    if isinstance(record, Linear):
        return _linear(primitive, record, inner)
    raise errors.UnsupportedPrimitive(f"the record of {primitive.name} says no pushforward, and none follows from it")


def _picker(primitive: Primitive, needs: Sequence[str], inner: Any) -> Callable[..., Any]:
    scope = {"shape": shape_of, "dtype": inner.dtype_of}
    return eval(f"lambda v, kept, out, p: {picked(primitive, needs)}", scope)  # type: ignore[no-any-return]


def _diagonal(primitive: Primitive, record: Record, inner: Any) -> Push:
    """A diagonal Jacobian is its own transpose: the rules of reverse mode serve."""
    rules = [
        (i, rule, _picker(primitive, names_of(rule, 2), inner))
        for i, name in enumerate(primitive.operands)
        if (rule := record.rules.get(name)) is not None
    ]
    add = inner.add

    def push(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        total = None
        for i, rule, pick in rules:
            if t[i] is not None:
                part = rule(inner, t[i], *pick(v, v, out, p))
                total = part if total is None else add(total, part)
        return total

    return push


def _product(primitive: Primitive, record: Record, inner: Any) -> Push:
    """Linear in each of two operands: one at a time moves."""
    run = inner[primitive]
    places = [primitive.operands.index(name) for name in record.rules]

    def push(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        total = None
        for i in places:
            if t[i] is not None:
                part = run(*[t[i] if j == i else x for j, x in enumerate(v)], **p)
                total = part if total is None else inner.add(total, part)
        return total

    return push


def _linear(primitive: Primitive, record: Record, inner: Any) -> Push:
    """The primitive itself, of tangents; zeros where an operand does not move."""
    run = inner[primitive]
    names = record.differentiable(primitive)
    first = len(primitive.operands) - 1 if primitive.operands[-1] in names and primitive.variadic else None
    places = {i for i, name in enumerate(primitive.operands) if name in names}

    def push(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        dtype = inner.dtype_of(out)
        moved = []
        for i, x in enumerate(v):
            if i not in places and (first is None or i < first):
                moved.append(x)
            elif t[i] is not None:
                moved.append(t[i])
            else:
                moved.append(inner.full(shape=shape_of(x), value=0, dtype=dtype))
        return run(*moved, **p)

    return push
