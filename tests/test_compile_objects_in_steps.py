"""Steps of loops and branches that close over objects: attributes are read there as they are outside."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

import adjoint as ad

X = np.array([0.5, 1.5])


@dataclasses.dataclass(slots=True)
class _SlottedData:
    w: Any

    def run(self, x: Any) -> Any:
        return x * self.w


@dataclasses.dataclass(slots=True, frozen=True, eq=False)
class _FrozenData:
    w: Any

    def run(self, x: Any) -> Any:
        return x * self.w


class _Private:
    __slots__ = ("__hidden",)

    def __init__(self, w: Any) -> None:
        self.__hidden = [w]

    @property
    def w(self) -> Any:
        return self.__hidden[0]

    def run(self, x: Any) -> Any:
        return x * self.w


class _Child(_Private):
    """With a dictionary beside the slots."""

    def __call__(self, x: Any) -> Any:
        return super().run(x)


class _Outer:
    __slots__ = ("inner",)

    def __init__(self, w: Any) -> None:
        self.inner = _Child(w)

    @property
    def w(self) -> Any:
        return self.inner.w

    def run(self, x: Any) -> Any:
        return self.inner(x)


class _Pair(NamedTuple):
    w: Any

    def run(self, x: Any) -> Any:
        return x * self.w


class _OfLayers(ad.nn.Module):
    w: ad.Tensor

    def __init__(self, w: Any) -> None:
        self.w = w

    def run(self, x: Any) -> Any:
        return x * self.w


class _Dictionary:
    def __init__(self, w: Any) -> None:
        self.w = w

    def run(self, x: Any) -> Any:
        return x * self.w


HOLDERS = [_Dictionary, _SlottedData, _FrozenData, _Private, _Child, _Outer, _Pair, _OfLayers]
WAYS: dict[str, Any] = {  # to have an object in the closure of a function
    "attribute": lambda o: lambda x: x * o.w,
    "method": lambda o: lambda x: o.run(x),
    "bound method": lambda o: o.run,
    "partial": lambda o: functools.partial(type(o).run, o),
    "list": lambda o: (lambda held: lambda x: held[0].run(x))([o]),
    "default": lambda o: lambda x, o=o: o.run(x),
    "object": lambda o: (lambda held: lambda x: held.w.run(x))(_Dictionary(o)),
    "slots": lambda o: (lambda held: lambda x: held.w.run(x))(_SlottedData(o)),
    "compiled": lambda o: ad.compile(lambda x: o.run(x)),
}


def _three_times(f: Any, x: Any) -> Any:
    return ad.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (x[0] * 0, x), max_steps=4)[1]


PARTS: dict[str, Any] = {
    "scan": lambda f, x: ad.scan(lambda c, _: (f(c), None), x, None, 9)[0],
    "fori_loop": lambda f, x: ad.fori_loop(0, 9, lambda i, c: f(c), x),
    "while_loop": lambda f, x: _three_times(f, x),
    "cond": lambda f, x: ad.cond(x.sum() > 0, f, lambda c: c, x),
    "switch": lambda f, x: ad.switch((x.sum() > 0).astype(int), [lambda c: c, f], x),
    "checkpoint": lambda f, x: ad.checkpoint(f)(x),
    "batch": lambda f, x: ad.vmap(lambda y: ad.cond(y > 1, f, lambda c: c, y))(x),
    "nothing": lambda f, x: f(x),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", HOLDERS)
def test_objects_that_steps_and_branches_close_over(kind: Any, way: str, part: str) -> None:
    """Choices refused those that the compiled function made itself, and loops of them were unrolled."""
    x, w = ad.tensor(X), ad.tensor(1.25, dtype=ad.float64)

    def made(w: Any, x: Any) -> Any:
        return (PARTS[part](WAYS[way](kind(w)), x) ** 2).sum()

    expected = ad.grad(lambda w, x: (PARTS[part](lambda c: c * w, x) ** 2).sum(), (0, 1))(w, x)
    inside, outside = ad.compile(ad.grad(made, (0, 1))), ad.grad(ad.compile(made), (0, 1))
    leaf, other = w.require_grad(), x.require_grad()
    f = WAYS[way](kind(leaf))
    closed = ad.compile(lambda x: (PARTS[part](f, x) ** 2).sum())(other).backward()
    for found in (inside(w, x), outside(w, x), (closed[leaf], closed[other])):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    if part in ("scan", "fori_loop"):
        assert str(inside.lower(w, x)).count("\n") < 40


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", [_Dictionary, _SlottedData])
def test_attributes_that_change_after_a_step_was_recorded(kind: Any, part: str) -> None:
    """Their derivatives, which are recorded later, are those of what the step has read."""

    def f(w: Any, x: Any) -> Any:
        o, factor = kind(w), kind(3.0)
        y = PARTS[part](lambda c: c * c * o.w * factor.w, x)
        o.w, factor.w = w * 100.0, 7.0
        return (y**2).sum() + o.w

    x, w = ad.tensor(0.1 * X), ad.tensor(1.25, dtype=ad.float64)
    expected = ad.grad(f, (0, 1))(w, x)
    for g in (ad.compile(ad.grad(f, (0, 1))), ad.grad(ad.compile(f), (0, 1))):
        for a, b in zip(g(w, x), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
