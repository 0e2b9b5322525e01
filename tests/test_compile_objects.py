"""Compiled functions read attributes of objects, of classes and of modules anew with each call."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import numpy as np
import pytest
from test_compile import counted

import adjoint as ad

X = np.array([0.5, 1.5])
FACTOR = 2.0


class _Scaled:
    """An object, of which functions read attributes."""

    shift = 0.0

    def __init__(self) -> None:
        self.factor: Any = 1.0
        self.calls = 0
        self.unread = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1  # only while it is recorded
        return self.run(x) + self.shift

    def run(self, x: Any) -> Any:
        return x * self.factor * FACTOR

    @property
    def twice(self) -> Any:
        return 2 * self.factor

    @functools.cached_property
    def kept(self) -> float:
        return 3.0

    @ad.compile
    def compiled(self, x: Any) -> Any:
        return self.run(x)


class _Slotted:
    __slots__ = ("factor",)

    def __init__(self) -> None:
        self.factor: Any = 1.0


class _Module(ad.nn.Module):
    w: ad.Tensor

    def __init__(self) -> None:
        self.w = ad.tensor(1.0)

    def __call__(self, x: Any) -> Any:
        return x * self.w * FACTOR


READS: dict[str, Any] = {  # of an object: a function of it and x
    "attribute": lambda o, x: x * o.factor,
    "named": lambda o, x: x * getattr(o, "factor", 1.0),
    "property": lambda o, x: x * o.twice,
    "cached": lambda o, x: x * o.kept * o.factor,
    "method": lambda o, x: o.run(x),
    "call": lambda o, x: o(x),
    "in a container": lambda o, x: {"o": [o]}["o"][0].run(x),
    "rule": lambda o, x: _rule(o)(x),
}


def _rule(o: Any) -> Any:
    f = ad.custom_vjp(lambda x: x * o.factor)
    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * o.factor,))
    return f


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("how", ["closure", "argument", "partial", "argument of a method"])
def test_attributes_of_objects_are_read_anew(name: str, how: str) -> None:
    o, read = _Scaled(), READS[name]
    compiled: Any = {
        "closure": ad.compile(lambda x: read(o, x)),
        "argument": functools.partial(ad.compile(read), o),
        "partial": ad.compile(functools.partial(read, o)),
        "argument of a method": functools.partial(ad.compile(lambda run, x: run(x)), functools.partial(read, o)),
    }[how]
    for factor in (1.0, 2.0, ad.tensor(3.0), ad.tensor([4.0, 5.0]), 1.0):
        o.factor = factor
        for _ in range(4):
            np.testing.assert_array_equal(compiled(ad.tensor(X)).numpy(), read(o, ad.tensor(X)).numpy())
    o.factor = ad.tensor(1.0)
    compiled(ad.tensor(X))
    o.factor[...] = 7.0
    np.testing.assert_array_equal(compiled(ad.tensor(X)).numpy(), read(o, ad.tensor(X)).numpy())


def test_objects_that_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that are called, methods, modules: what they read, and what their class has."""
    o, module = _Scaled(), _Module()
    kinds = [ad.compile(o), ad.compile(o.run), o.compiled, ad.compile(module), ad.compile(lambda x: module(x))]
    plain = [o, o.run, o.run, module, module]
    changes: list[Any] = [
        lambda: setattr(o, "factor", 2.0),
        lambda: setattr(_Scaled, "shift", 1.0),
        lambda: setattr(o, "shift", 3.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 5.0),
        lambda: module.w.__setitem__((), 6.0),
        lambda: monkeypatch.setattr(_Scaled, "run", lambda self, x: x - self.factor),
    ]
    monkeypatch.setattr(_Scaled, "shift", 0.0)
    x = ad.tensor(X)
    for change in [lambda: None, *changes]:
        change()
        for _ in range(4):
            for f, g in zip(kinds, plain, strict=True):
                if f is not kinds[2] or change is not changes[-1]:
                    np.testing.assert_array_equal(f(x).numpy(), g(x).numpy())


def _shifted(x: Any) -> Any:
    return x * FACTOR


NET: Any = None


def test_functions_and_objects_among_the_settings_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """As arguments, in closures and in the module: what they read was not looked at again."""
    o = _Scaled()
    net = ad.nn.Sequential(ad.nn.Linear(2, 2), _shifted, o, functools.partial(_Scaled.run, o)).require_grad()
    other = net.at("layers.0.weight").set(ad.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad())
    monkeypatch.setitem(globals(), "NET", net)
    x = ad.tensor([1.0, 2.0])
    given, closed, of_module = (ad.compile(f) for f in (lambda m, x: m(x), lambda x: net(x), lambda x: NET(x)))
    changes: list[Any] = [
        lambda: None,
        lambda: setattr(o, "factor", 2.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 5.0),
        lambda: monkeypatch.setitem(globals(), "NET", other),
    ]
    for change in changes:
        change()
        for _ in range(4):
            for f, args, m in ((given, (NET, x), NET), (closed, (x,), net), (of_module, (x,), NET)):
                np.testing.assert_allclose(f(*args).numpy(), m(x).numpy(), rtol=1e-5)


def test_other_kinds_of_containers_and_slots() -> None:
    slotted, several, queue, code = _Slotted(), {1.0}, collections.deque([1.0]), bytearray(b"1")
    module = types.ModuleType("written")
    exec("FACTOR = 1.0\ndef scaled(x): return x * FACTOR", vars(module))

    def f(x: Any) -> Any:
        return module.scaled(x) * slotted.factor * sum(several) * queue[0] * code[0] * len(queue)

    compiled, x = ad.compile(f), ad.tensor(X)
    changes: list[Any] = [
        lambda: None,
        lambda: setattr(slotted, "factor", 2.0),
        lambda: several.add(5.0),
        lambda: queue.append(7.0),
        lambda: code.__setitem__(0, 3),
        lambda: setattr(module, "FACTOR", 4.0),
        lambda: setattr(module, "scaled", lambda x: x + 1.0),
    ]
    for change in changes:
        change()
        for _ in range(4):
            np.testing.assert_array_equal(compiled(x).numpy(), f(x).numpy())


def test_a_warning_names_the_attribute_that_changes() -> None:
    o = _Scaled()
    f = ad.compile(lambda x: o(x))

    def called() -> None:
        for k in range(9):
            o.factor = float(k)
            assert f(ad.tensor(X)).tolist() == o(ad.tensor(X)).tolist()

    with pytest.warns(RuntimeWarning, match="the attribute 'factor' of an object or a module changes"):
        called()


def test_attributes_that_do_not_count() -> None:
    """What a function does not read, or changes itself, makes no other recording."""
    o = _Scaled()
    f, recordings = counted(lambda x: o(x) * o.kept)
    for k in range(4):
        o.unread = k
        f(ad.tensor(X))
    assert len(recordings) == 1
    assert o.calls == 1

    def filled(x: Any) -> Any:
        o.factor = 2.0
        o.kinds[x.shape] = x.dtype
        return x * o.factor

    o.kinds = {}  # type: ignore[attr-defined]
    g, recordings = counted(filled)
    for _ in range(4):
        np.testing.assert_array_equal(g(ad.tensor(X)).numpy(), 2.0 * X)
    assert list(o.kinds) == [X.shape]  # type: ignore[attr-defined]
