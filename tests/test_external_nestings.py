"""`ad.external` under any two transforms: what the plain function gives, or an error that says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

X = np.array([0.5, 1.5, 2.5])
Map = Callable[[Any], Any]


class Way(NamedTuple):
    """A function of a vector from another one that works element by element; the derivatives and rules it takes."""

    of: Callable[[Map], Map]
    order: int = 0
    needs: frozenset[str] = frozenset()
    transposed: bool = False  # whether a rule is transposed, which is a derivative in the cotangent


REVERSE, FORWARD = frozenset(["vjp"]), frozenset(["jvp"])


WAYS: dict[str, Way] = {
    "itself": Way(lambda f: f),
    "vmap": Way(lambda f: lambda x: ad.vmap(f)(ad.stack([x, 2 * x])).sum(0)),
    "vmap along the last axis": Way(
        lambda f: lambda x: ad.vmap(f, in_axes=-1, out_axes=-1)(ad.stack([x, 2 * x], axis=-1)).sum(-1)
    ),
    "vmap with x for all": Way(lambda f: lambda x: ad.vmap(lambda a: a * f(x))(np.array([1.0, 2.0])).sum(0)),
    "scan": Way(lambda f: lambda x: ad.scan(lambda c, _: (f(c), None), x, None, length=2)[0]),
    "scan, recomputed": Way(
        lambda f: lambda x: ad.scan(lambda c, _: (f(c), None), x, None, length=2, checkpoint_every=1)[0]
    ),
    "cond": Way(lambda f: lambda x: ad.cond(x.sum() > 0.0, f, lambda x: x, x)),
    "checkpoint": Way(lambda f: lambda x: ad.checkpoint(f)(x)),
    "compile": Way(lambda f: ad.compile(f)),
    "grad": Way(lambda f: ad.grad(lambda x: f(x).sum()), 1, REVERSE),
    "vjp": Way(lambda f: lambda x: ad.vjp(f, x)[1](x)[0], 1, REVERSE),
    "jacobian, reverse": Way(lambda f: lambda x: ad.jacobian(f, mode="reverse")(x).sum(0), 1, REVERSE),
    "jacobian, forward": Way(lambda f: lambda x: ad.jacobian(f, mode="forward")(x).sum(0), 1, FORWARD),
    "jvp": Way(lambda f: lambda x: ad.jvp(f, (x,), (x + 1.0,))[1], 1, FORWARD),
    "linearize": Way(lambda f: lambda x: ad.linearize(f, x)[1](x), 1, REVERSE | FORWARD, True),
    "a series": Way(lambda f: lambda x: ad.jet(f, (x,), ((x,),))[1][0], 1, FORWARD),
    "hvp": Way(lambda f: lambda x: ad.hvp(lambda x: f(x).sum(), (x,), (x,)), 2, REVERSE | FORWARD),
}

_rule = ad.external(
    lambda g, x: g * np.cos(x),
    vjp=lambda c, g, x: (c * np.cos(x), -c * g * np.sin(x)),
    jvp=lambda dg, dx, g, x: dg * np.cos(x) - g * np.sin(x) * dx,
    like=lambda g, x: x,
)
_plain: Any = lambda g, x: g * np.cos(x)


def _outside(**rules: Any) -> Map:
    return ad.external(np.sin, **rules, like=lambda x: x)


# functions with rules, which rules these are, and how often they can be differentiated
OUTSIDE: dict[str, tuple[Map, frozenset[str], int]] = {
    "twice": (_outside(vjp=_rule, jvp=_rule), REVERSE | FORWARD, 2),
    "once": (_outside(vjp=_plain, jvp=_plain), REVERSE | FORWARD, 1),
    "once in reverse": (_outside(vjp=_plain), REVERSE, 1),
    "once forward": (_outside(jvp=_plain), FORWARD, 1),
    "never": (_outside(), frozenset(), 0),
}


@pytest.mark.parametrize("outer", WAYS)
def test_any_two_transforms(outer: str) -> None:
    with Each() as each:
        for inner, way in WAYS.items():
            theirs = np.asarray(WAYS[outer].of(way.of(ad.sin))(X))
            order, needs = WAYS[outer].order + way.order, WAYS[outer].needs | way.needs
            if (way.transposed and WAYS[outer].order) or (WAYS[outer].transposed and inner == "scan, recomputed"):
                order += 1  # the transposed rule is differentiated in x, or run again where x is followed
            for name, (f, rules, most) in OUTSIDE.items():
                with each((inner, name)):
                    run = WAYS[outer].of(way.of(f))
                    if order <= most and needs <= rules:
                        np.testing.assert_allclose(np.asarray(run(X)), theirs, rtol=1e-12)
                    else:
                        refused(run, rules)


def refused(run: Map, rules: frozenset[str]) -> None:
    found: Any = None
    try:
        values = run(X)
    except (errors.TrackedError, errors.BackwardError) as error:
        found = error
    assert found is not None, f"there was no error, but {values}"
    while not isinstance(found, errors.TrackedError):
        found = found.__cause__
    missing = [f"give it {rule}=" for rule in ("vjp", "jvp") if rule not in rules]
    second = ["a derivative of its derivative is asked for"]
    assert any(words in str(found) for words in missing + second), found
