"""Taylor mode: a backend that carries a power series beside every value.

An array of `Taylor(B)` stands for a function y of one variable t at t = 0: its value, and its derivatives y', y'', ...
there, which are coefficients that no factorial divides. So the series of y' is that of y without its head, and every
primitive gets its series from its derivative record: of y = f(x), y' is the record's pushforward of x', run on this
level itself. A coefficient of order k of y is one of order k - 1 of y', which asks for lower orders of x and y alone.

For that to end, and to compute nothing twice, coefficients of what a rule computes are not made before they are asked
for: M. D. McIlroy, Power series, power serious (1999). Products follow Leibniz. What comes out are the recurrences of
A. Griewank and A. Walther, Evaluating Derivatives (2008), table 13.2, where order k takes about k products; where a
function's derivative is another function, as of sines and powers, each order brings a new one, and it takes k^2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Array, Decorator, Implementation
from adjoint.dtypes import INEXACT
from adjoint.graph.jvp import definition_of, make_jvp, or_zeros
from adjoint.primitives import CREATION, RANDOM, Primitive, Shape
from adjoint.rules import Bilinear, Linear, NotDifferentiable, Record, record_of
from adjoint.rules.taylor import leibniz
from adjoint.variables import J

NextTerm = Callable[[int], Any]  # the coefficient of an order above 0, an inner array; None is zero


class Series:
    """An array of a Taylor backend: an inner array and its derivatives in t, each of its shape.

    `terms` are those of order 1, 2, ... that are known, None for zeros; `following` gives the next one, and is None
    where there are no more.
    """

    __slots__ = ("following", "terms", "value")

    def __init__(self, value: Array, terms: list[Array | None], following: NextTerm | None) -> None:
        self.value: Array = value
        self.terms: list[Array | None] = terms
        self.following = following

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]

    def term(self, order: int) -> Array | None:
        """The derivative of an order, or None for zero."""
        if order == 0:
            return self.value
        while self.following is not None and len(self.terms) < order:
            self.terms.append(self.following(len(self.terms) + 1))
        return self.terms[order - 1] if order <= len(self.terms) else None

    def finish(self, order: int) -> None:
        """Compute all up to an order, and let go of what they are computed from."""
        try:
            for k in range(1, order + 1):
                self.term(k)
        except RecursionError:
            raise errors.ArgumentError(
                f"series of order {order} go deeper than Python's recursion limit allows; raise it with "
                "sys.setrecursionlimit, or take a lower order"
            ) from None
        self.following = None


def is_active(operand: Any) -> bool:
    """Whether an operand is a series with more than a value."""
    return operand.__class__ is Series and (
        operand.following is not None or any([t is not None for t in operand.terms])
    )


def _value(operand: Any) -> Any:
    return operand.value if operand.__class__ is Series else operand


def _term(operand: Any, order: int) -> Any:
    """That of an operand, which may be a Python scalar."""
    if operand.__class__ is Series:
        return operand.term(order)
    return None if order else operand


class Taylor(Decorator[J]):
    """Derivatives along a curve up to any order, computed with the values, over another backend.

    `ad.jet` is its use; as the device of tensors it computes as the inner backend does.

    Parameters
    ----------
    inner
        The backend that runs the primitives.
    order
        Up to where coefficients are computed, at once. None computes those that are asked for, then.

    Raises
    ------
    DeviceError, ArgumentError
        `inner` is no backend; an order that is no whole number from 0.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.Taylor(ad.NumPy())
    taylor<numpy>
    """

    differentiates = True

    def __init__(self, inner: J, order: int | None = None) -> None:
        super().__init__(inner)
        if order is not None and (order.__class__ is not int or order < 0):
            raise errors.ArgumentError(
                f"Taylor: the order is a whole number from 0, or None; received {errors.shown(order)}"
            )
        self.order = order
        self.many: bool = order is not None
        self._on_demand: Taylor[J] = self if order is None else Taylor(inner)

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.order)

    def wrap(self, value: Array) -> Series:
        return Series(value, [], None)

    def unwrap(self, array: Series) -> Array:
        return array.value

    def is_active(self, array: Series) -> bool:
        return is_active(array)

    def with_primal(self, array: Series, f: Callable[[Array], Array]) -> Series:
        return Series(self.inner.with_primal(array.value, f), array.terms, array.following)

    def map_arrays(self, array: Series, f: Callable[[Array], Array]) -> Series:
        def each(term: Array | None) -> Array | None:
            return None if term is None else f(term)

        following = None if array.following is None else lambda k: each(array.term(k))
        return Series(f(array.value), [each(term) for term in array.terms], following)

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """The rule pushes the derivatives in t of the arguments, series of one order less, to those of the results."""
        if not any([self.is_active(x._array) for x in xs]):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        if not (rules.differentiates and rules.differs):
            return rules.plain(xs)  # type: ignore[no-any-return]
        inner, order = self.inner, self.order
        assert order is not None  # what is active on a level without an order comes from rules, not from users
        lower: Taylor[Any] = Taylor.fresh(inner, order - 1)
        below, derivatives = [], []
        for x in xs:
            terms = [x._array.term(k) for k in range(order + 1)]
            below.append(rules.tensor(Series(terms[0], terms[1:-1], None), lower))
            if self.is_active(x._array):
                first = or_zeros(inner, terms[1], terms[0])
                derivatives.append(rules.tensor(Series(first, terms[2:], None), lower))
            else:
                derivatives.append(None)
        with rules.running_on(lower):
            ys, moved = rules.push_of(below, derivatives)
        answers = []
        for y, t in zip(ys, moved, strict=True):
            known: list[Array | None] = []
            if t is not None and t.dtype.kind in INEXACT:
                derivative: Series = rules.lift_to(t, lower)
                known = [derivative.term(k) for k in range(order)]
            answers.append(rules.tensor(Series(rules.lift_to(y, lower).value, known, None), self))
        return answers

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]
        if primitive.kind in (CREATION, RANDOM) and not primitive.operands:
            return lambda **parameters: self.wrap(run(**parameters))
        record = record_of(primitive)
        definition = definition_of(primitive, record) if record.taylor is None else None
        return self._lift(primitive, run, None if definition else self._rule(primitive, record), definition)

    def _rule(self, primitive: Primitive, record: Record) -> SeriesRule | None:
        if isinstance(record, NotDifferentiable):
            return None
        if record.taylor is not None:
            return _declared(record.taylor, self.inner)
        if isinstance(record, Bilinear):
            return _product(primitive, record, self.inner)
        if isinstance(record, Linear):
            return _linear(primitive, record, self.inner)
        return _from_derivative(primitive, record, self._on_demand)

    def _lift(
        self, primitive: Primitive, run: Implementation, rule: SeriesRule | None, definition: Callable[..., Any] | None
    ) -> Implementation:
        several, dtype_of = primitive.results > 1, self.inner.dtype_of

        def lifted(*operands: Any, **parameters: Any) -> Any:
            active = any([is_active(o) for o in operands])
            if active and definition is not None:
                return definition(self, *operands, **parameters)
            out = run(*[_value(o) for o in operands], **parameters)
            results = [self.wrap(value) for value in (out if several else (out,))]
            if active and rule is not None:
                moved = [x for x in results if dtype_of(x.value).kind in INEXACT]  # all others are constant
                known = [Series(x.value, x.terms, _not_yet) if x in moved else x for x in results]
                followings = rule(operands, known, parameters)
                if several:
                    followings = _in_step([x.terms if x in moved else None for x in results], followings)
                for x, following in zip(results, followings, strict=True):
                    x.following = following if x in moved else None
                if self.order is not None:
                    for x in moved:
                        x.finish(self.order)
            return tuple(results) if several else results[0]

        return lifted


def _in_step(terms: list[list[Array | None] | None], followings: Sequence[NextTerm | None]) -> list[NextTerm]:
    """Coefficients of several results, where each may need the lower orders of all the others."""
    pairs = [(known, f) for known, f in zip(terms, followings, strict=True) if known is not None and f is not None]

    def stepping(following: NextTerm | None) -> NextTerm:
        def step(k: int) -> Any:
            for order in range(1, k):
                for known, f in pairs:
                    if len(known) < order:
                        known.append(f(order))
            return None if following is None else following(k)

        return step

    return [stepping(f) for f in followings]


def _not_yet(order: int) -> Any:
    raise AssertionError(f"a rule asks for order {order} of the result to compute it")


# --- rules ---------------------------------------------------------------------------------------
#
# rule(operands, results, parameters) -> for each result what gives its coefficients. Operands and results are series,
# or Python scalars; of the results coefficients are known up to the one that is asked for. To refer to them makes no
# cycle: they share their terms with what the caller gets, and are not that.

SeriesRule = Callable[[Sequence[Any], Sequence[Series], dict[str, Any]], Sequence[NextTerm | None]]


def _broadcast(B: Any, term: Any, like: Any) -> Any:
    return term if term is None or term.shape == like.shape else B.broadcast_to(term, shape=tuple(like.shape))


def _linear(primitive: Primitive, record: Record, B: Any) -> SeriesRule:
    """Each coefficient goes forward as a tangent does."""
    jvp = make_jvp(primitive, record, B)
    assert jvp is not None

    def rule(operands: Sequence[Any], results: Sequence[Series], parameters: dict[str, Any]) -> list[NextTerm]:
        values, out = [_value(o) for o in operands], results[0].value

        def following(k: int) -> Any:
            terms = [_term(o, k) for o in operands]
            if all([t is None for t in terms]):
                return None
            return _broadcast(B, jvp(values, terms, out, parameters), out)

        return [following]

    return rule


def _product(primitive: Primitive, record: Record, B: Any) -> SeriesRule:
    run = B[primitive]
    left, right = [primitive.operands.index(name) for name in record.rules]

    def rule(operands: Sequence[Any], results: Sequence[Series], parameters: dict[str, Any]) -> list[NextTerm]:
        values = [_value(o) for o in operands]

        def product(x: Any, y: Any) -> Any:
            factors = list(values)
            factors[left], factors[right] = x, y
            return run(*factors, **parameters)

        x, y = [functools.partial(_term, operands[i]) for i in (left, right)]
        return [lambda k: leibniz(B, product, x, y, k, range(k + 1))]

    return rule


def _declared(taylor: Callable[..., Any], B: Any) -> SeriesRule:
    """The record says it."""

    def rule(operands: Sequence[Any], results: Sequence[Series], parameters: dict[str, Any]) -> list[NextTerm]:
        out, known = results[0], [results[0].value]
        terms = [[_value(o)] for o in operands]

        def following(k: int) -> Any:
            for all_of, o in zip(terms, operands, strict=True):
                while len(all_of) <= k:  # an error may have come between
                    all_of.append(_term(o, len(all_of)))
            found = _broadcast(B, taylor(B, terms, known, **parameters), out.value)
            known.append(found)
            return found

        return [following]

    return rule


def _from_derivative(primitive: Primitive, record: Record, level: Taylor[Any]) -> SeriesRule:
    """The pushforward of the operands' derivatives is the result's, one order down."""
    jvp = make_jvp(primitive, record, level)
    assert jvp is not None
    several, B = primitive.results > 1, level

    def rule(operands: Sequence[Any], results: Sequence[Series], parameters: dict[str, Any]) -> list[NextTerm]:
        found: list[Series | None] = []

        def following(i: int, k: int) -> Any:
            if not found:
                tangents = [_derivative(o, level) if is_active(o) else None for o in operands]
                pushed = jvp(operands, tangents, tuple(results) if several else results[0], parameters)
                found.extend(pushed if several else [_broadcast(B, pushed, results[0])])
            derivative = found[i]
            return None if derivative is None else derivative.term(k - 1)

        return [lambda k, i=i: following(i, k) for i in range(len(results))]  # type: ignore[misc]

    return rule


def _derivative(x: Series, level: Taylor[Any]) -> Series:
    """The series of x'."""
    B: Any = level.inner
    first = x.term(1)
    if first is None:
        first = B.full(shape=tuple(x.shape), value=0, dtype=B.dtype_of(x.value))
    return Series(first, [], lambda k: x.term(k + 1))
