"""Rules as expressions: what a rule calls, found by calling it once with terms in place of arrays.

`lambda B, g, y: B.multiply(g, y)` becomes `B.multiply(g, s[0])`, or `g * s[0]` of numbers, in the source that `codegen`
writes: without a call of the rule. A rule that does more with arrays than hand them to elementwise primitives has no
expression, and is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from adjoint.primitives import ELEMENTWISE, TABLE, Primitive
from adjoint.rules.records import Rule

SIGNS = "add + subtract - multiply * divide / less < less_equal <= greater > greater_equal >= equal == not_equal !="
OPERATORS = dict(zip(SIGNS.split()[::2], SIGNS.split()[1::2], strict=True))  # of two operands


class _NoExpressionError(Exception):
    """A rule does something else."""


def _refuse(*_: Any) -> Any:
    raise _NoExpressionError


class Term:
    """Stands for an array: an operand by its name in the source, or a primitive of other terms and numbers."""

    __slots__ = ("left", "operands", "source")

    def __init__(self, source: str, operands: tuple[Any, ...] | None = None) -> None:
        self.source = source  # a primitive's name, where there are operands
        self.operands = operands
        self.left: float = math.inf if operands is None else 1  # how often it may be written down: not computed twice

    __class__ = property(_refuse)  # what isinstance asks for
    __bool__ = __eq__ = __ne__ = __len__ = __iter__ = __getattr__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class _Primitives:
    """Stands for the backend."""

    def __getattr__(self, name: str) -> Callable[..., Term]:
        primitive = TABLE.get(name)
        if primitive is None or primitive.kind is not ELEMENTWISE or primitive.variadic or primitive.parameters:
            raise _NoExpressionError

        def term(*operands: Any) -> Term:
            for x in operands:
                if type(x) is Term:
                    x.left -= 1
                    if x.left < 0:
                        raise _NoExpressionError
                elif type(x) not in (int, float) or not math.isfinite(x):
                    raise _NoExpressionError
            return Term(name, operands)

        return term


def term_of(rule: Rule, needs: Sequence[str], primitive: Primitive, places: Sequence[str], g: str) -> Any:
    """What one of our rules computes, if it is an expression: its needs have these places in the source."""
    arrays = {*primitive.operands, "out"}
    ours = str(getattr(rule, "__module__", None)).startswith("adjoint.rules.")
    if not ours or not arrays.issuperset(needs):
        return None  # a user's may do anything when it is called
    try:
        found = rule(_Primitives(), Term(g), *map(Term, places))
    except Exception:  # of whatever a rule does with a term
        return None
    return found if type(found) is Term else None


def written(term: Any, backend: str, numbers: bool = False) -> str:
    """The source of a term: calls of the backend, which of `numbers` are operators where Python has them."""
    if type(term) is not Term:
        return repr(term)
    if term.operands is None:
        return term.source
    parts = [written(x, backend, numbers) for x in term.operands]
    if numbers and term.source in OPERATORS:
        return f"({parts[0]} {OPERATORS[term.source]} {parts[1]})"
    if numbers and term.source == "negative":
        return f"(-{parts[0]})"
    return f"{backend}.{term.source}({', '.join(parts)})"
