"""How tangents go forward through a primitive: what its record says, or what follows from it.

Decorators that carry derivatives with the values share this: it is written against the backend that the
tangents are arrays of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.dtypes import INEXACT
from adjoint.graph.codegen import saved_getter, saved_source, shape_of
from adjoint.primitives import ELEMENTWISE, Primitive
from adjoint.rules import Bilinear, Composed, Linear, NotDifferentiable, Record, names_of
from adjoint.rules.records import Rule

# jvp(operands, tangents, out, parameters) gives the tangent of the result
JVP = Callable[[Sequence[Any], Sequence[Any], Any, dict[str, Any]], Any]


def definition_of(primitive: Primitive, record: Record) -> Callable[..., Any] | None:
    """The primitive's definition, where the pushforward follows from that alone."""
    fused = record.pushforward is not None or (primitive.kind is ELEMENTWISE and bool(record.rules))
    return record.definition if isinstance(record, Composed) and not fused else None


def written(primitive: Primitive, record: Record) -> dict[int, Rule | None]:
    """The rules of a primitive whose pushforward is written out, by operand; none where `make_jvp` serves."""
    if record.pushforward is not None or primitive.results > 1 or "dtype" in primitive.parameters:
        return {}
    if isinstance(record, Linear) and len(primitive.operands) == 1 and not primitive.variadic:
        return {0: None}
    if primitive.kind is not ELEMENTWISE or primitive.variadic:
        return {}
    rules = {i: record.rules[name] for i, name in enumerate(primitive.operands) if name in record.rules}
    return rules if 0 < len(rules) <= 2 else {}  # type: ignore[return-value]


def make_jvp(primitive: Primitive, record: Record, inner: Any) -> JVP | None:
    """How tangents go forward through a primitive: what its record says, or what follows from it."""
    if isinstance(record, NotDifferentiable):
        return None
    if record.pushforward is not None:
        declared = record.pushforward
        get = _getter(primitive, names_of(declared, 2), inner)
        return lambda v, t, out, p: declared(inner, tuple(t), *get(v, v, out, p))
    if isinstance(record, Linear) and len(primitive.operands) == 1 and not primitive.variadic:
        run = inner[primitive]
        return lambda v, t, out, p: run(t[0], **p) if inner.dtype_of(out).kind in INEXACT else None
    if primitive.kind is ELEMENTWISE and record.rules:
        return _diagonal(primitive, record, inner)
    if isinstance(record, Bilinear):
        return _product(primitive, record, inner)
    if isinstance(record, Linear):
        return _linear(primitive, record, inner)
    raise errors.UnsupportedPrimitiveError(
        f"the record of {primitive.name} says no pushforward, and none follows from it"
    )


def or_zeros(B: Any, tangent: Any, value: Any) -> Any:
    """The tangent of a value: zeros where there is none."""
    return B.full(shape=tuple(value.shape), value=0, dtype=B.dtype_of(value)) if tangent is None else tangent


def _getter(primitive: Primitive, needs: Sequence[str], inner: Any) -> Callable[..., Any]:
    return saved_getter(saved_source(primitive, needs), inner)


def _diagonal(primitive: Primitive, record: Record, inner: Any) -> JVP:
    """A diagonal Jacobian is its own transpose: the rules of reverse mode are those of forward mode."""
    rules = [
        (i, rule, _getter(primitive, names_of(rule, 2), inner))
        for i, name in enumerate(primitive.operands)
        if (rule := record.rules.get(name)) is not None
    ]
    add = inner.add

    def jvp(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        total = None
        for i, rule, get in rules:
            if t[i] is not None:
                part = rule(inner, t[i], *get(v, v, out, p))
                total = part if total is None else add(total, part)
        return total

    return jvp


def _product(primitive: Primitive, record: Record, inner: Any) -> JVP:
    """Linear in each of two operands: one at a time has a tangent."""
    run = inner[primitive]
    places = [primitive.operands.index(name) for name in record.rules]

    def jvp(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        total = None
        for i in places:
            if t[i] is not None:
                part = run(*[t[i] if j == i else x for j, x in enumerate(v)], **p)
                total = part if total is None else inner.add(total, part)
        return total

    return jvp


def _linear(primitive: Primitive, record: Record, inner: Any) -> JVP:
    """The primitive itself, of tangents; zeros where an operand has none."""
    run = inner[primitive]
    names = record.differentiable(primitive)
    first = len(primitive.operands) - 1 if primitive.operands[-1] in names and primitive.variadic else None
    places = {i for i, name in enumerate(primitive.operands) if name in names}

    def jvp(v: Sequence[Any], t: Sequence[Any], out: Any, p: dict[str, Any]) -> Any:
        dtype = inner.dtype_of(out)
        operands = []
        for i, x in enumerate(v):
            if i not in places and (first is None or i < first):
                operands.append(x)
            elif t[i] is not None:
                operands.append(t[i])
            else:
                operands.append(inner.full(shape=shape_of(x), value=0, dtype=dtype))
        return run(*operands, **p)

    return jvp
