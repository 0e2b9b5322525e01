"""Rules written out as expressions give what calls of them give."""

from __future__ import annotations

import numpy as np

import adjoint as ad
from adjoint.graph.codegen import term_of, written
from adjoint.primitives import TABLE
from adjoint.rules import names_of, record_of


def test_rules_that_call_elementwise_primitives_are_expressions() -> None:
    primitive = TABLE["divide"]
    rule = record_of(primitive).rules["y"]
    needs = names_of(rule, 2)
    term = term_of(rule, needs, primitive, needs, "g")
    assert written(term, "B") == "B.negative(B.divide(B.multiply(g, out), y))"
    assert written(term, "N", numbers=True) == "(-((g * out) / y))"


def test_what_does_more_is_called() -> None:
    primitive = TABLE["multiply"]

    def of_a_user(B: object, g: object, y: object) -> object:
        raise AssertionError("called where it is declared")

    assert term_of(of_a_user, ["y"], primitive, ["y"], "g") is None

    def twice(B: object, g: object) -> object:
        part = B.exp(g)  # type: ignore[attr-defined]
        return B.multiply(part, part)  # type: ignore[attr-defined]

    def looks(B: object, g: object) -> object:
        return g if isinstance(g, float) else B.exp(g)  # type: ignore[attr-defined]

    def chooses(B: object, g: object) -> object:
        return B.exp(g) if g == 0 else g  # type: ignore[attr-defined]

    for rule in (twice, looks, chooses):
        rule.__module__ = "adjoint.rules.elementwise"
        assert term_of(rule, [], primitive, [], "g") is None, rule.__name__


def test_numbers_and_arrays_agree_to_second_order() -> None:
    def f(x: object, y: object) -> object:
        return ad.sqrt(x * y) / (1.5 - x) + ad.exp(-x) * y - 2.0 * ad.tanh(y / x)  # type: ignore[operator]

    x, y = np.float64(0.7), np.float64(1.3)
    rows = np.full(3, x), np.full(3, y)
    for one, many in (
        (ad.grad(ad.grad(f))(x, y), ad.vmap(ad.grad(ad.grad(f)))(*rows)),
        (ad.jvp(ad.grad(f, 1), (x, y), (y, x))[1], ad.jvp(ad.vmap(ad.grad(f, 1)), rows, rows[::-1])[1]),
        (ad.grad(lambda x, y: ad.jvp(f, (x, y), (y, x))[1])(x, y), None),
    ):
        if many is not None:
            np.testing.assert_allclose(many, np.full(3, one), rtol=1e-14)
        else:
            h = 1e-6
            slope = lambda x: ad.jvp(f, (x, y), (y, x))[1]
            np.testing.assert_allclose(one, (slope(x + h) - slope(x - h)) / (2 * h), rtol=1e-7)
