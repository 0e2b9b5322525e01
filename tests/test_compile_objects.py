"""Compiled functions read attributes of objects, of classes and of modules anew with each call."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import operator
import pickle
import threading
import types
from typing import Any

import numpy as np
import pytest
from test_compile import counted

import adjoint as ad
from adjoint import errors

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


# --- tensors in attributes ---


@dataclasses.dataclass(frozen=True)
class _Frozen:
    w: Any


class _OfTensors:
    def __init__(self, w: Any) -> None:
        self.frozen, self.slotted, self.of_module = _Frozen(w), _Slotted(), types.ModuleType("settings")
        self.put(w)

    def put(self, w: Any) -> None:
        self.w, self.listed, self.named = w, [w, 1.0], {"a": (w, "text")}
        self.layer, self.act = _Module().at("w").set(w), lambda x: ad.sin(x * w)
        for x, name in ((self.frozen, "w"), (self.slotted, "factor"), (self.of_module, "w")):
            object.__setattr__(x, name, w)

    @property
    def square(self) -> Any:
        return self.w * self.w

    def run(self, x: Any) -> Any:
        return ad.sin(self.w * x) * self.listed[0]

    def __call__(self, x: Any) -> Any:
        return self.run(x) * self.w

    @ad.compile
    def compiled(self, x: Any) -> Any:
        return self.run(x).sum()


TENSORS: dict[str, Any] = {
    "attribute": lambda o, x: ad.sin(x * o.w),
    "named": lambda o, x: ad.sin(x * getattr(o, "w", 1.0)),
    "in a list": lambda o, x: ad.sin(x * o.listed[0]),
    "in a dictionary": lambda o, x: ad.sin(x * o.named["a"][0]),
    "in a module of layers": lambda o, x: ad.sin(o.layer(x)) * o.layer.w,
    "in a frozen object": lambda o, x: ad.sin(x * o.frozen.w),
    "in slots": lambda o, x: ad.sin(x * o.slotted.factor),
    "in a module of Python": lambda o, x: ad.sin(x * o.of_module.w),
    "in a function": lambda o, x: o.act(x) ** 2,
    "property": lambda o, x: ad.sin(x * o.square),
    "method": lambda o, x: o.run(x),
    "call": lambda o, x: o(x),
    "in a step": lambda o, x: ad.scan(lambda c, _: (ad.sin(c * o.w), None), x, None, 3)[0],
    "in a choice": lambda o, x: ad.cond(x.sum() > 0, lambda x: ad.sin(x * o.w), lambda x: x, x),
    "differentiated inside": lambda o, x: ad.grad(lambda x: (ad.sin(x * o.w) * x).sum())(x),
    "in a checkpoint": lambda o, x: ad.checkpoint(o.run)(x),
}


@pytest.mark.parametrize("way", ["replay", pytest.param("1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_in_attributes_are_like_arguments(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracked ones were refused. They may be others before the derivatives are taken."""
    monkeypatch.setenv("ADJOINT_COMPILE", way)
    o, read, x = _OfTensors(ad.tensor(X)), TENSORS[name], ad.tensor([0.3, 0.7], dtype=ad.float64)
    f, recordings = counted(lambda x: (read(o, x) ** 2).sum())
    given, _ = counted(lambda o, x: (read(o, x) ** 2).sum())
    once = 0
    for shift in (0.0, 0.2, -0.3):
        for g in (f, functools.partial(given, o)):
            w, v = (ad.tensor(X + shift).require_grad() for _ in range(2))
            other = _OfTensors(v)
            expected = (read(other, x) ** 2).sum()
            o.put(w)
            y = g(x)
            o.put(ad.tensor(X + 9).require_grad())  # which is not what y was computed from
            np.testing.assert_allclose(y.item(), expected.item(), rtol=1e-6)
            slope, theirs = y.backward(create_graph=True)[w], expected.backward(create_graph=True)[v]
            np.testing.assert_allclose(slope.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)
            np.testing.assert_allclose(
                (slope**2).sum().backward()[w].numpy(), (theirs**2).sum().backward()[v].numpy(), rtol=1e-4
            )
            assert type(o) is _OfTensors
        once = once or len(recordings)
    assert len(recordings) <= once + 1  # its derivatives, when they are first asked for


def test_transforms_around_functions_that_read_tensors_in_attributes() -> None:
    o, x = _OfTensors(ad.tensor(X)), ad.tensor([0.3, 0.7])

    def loss(f: Any) -> Any:
        def with_weights(w: Any) -> Any:
            o.put(w)
            return f(x)

        return with_weights

    plain, compiled = loss(lambda x: o.run(x).sum()), loss(o.compiled)
    for transform in (ad.grad, ad.hessian, lambda f: ad.vmap(ad.grad(f))):
        w = np.stack([X, X + 0.1]) if transform not in (ad.grad, ad.hessian) else X
        np.testing.assert_allclose(transform(compiled)(w), transform(plain)(w), rtol=1e-6)
    tangent = ad.jvp(compiled, (X,), (X,))[1]
    np.testing.assert_allclose(tangent, ad.jvp(plain, (X,), (X,))[1], rtol=1e-6)


def test_training_with_weights_in_attributes() -> None:
    """A step that puts new weights there outside of the compiled function; a loss inside and outside."""
    o, x, found = _OfTensors(ad.tensor(X)), ad.tensor([0.3, 0.7]), []
    inside, recordings = counted(lambda x: (lambda loss: loss.backward()[o.w])(o.run(x).sum()))
    for way in (inside, lambda x: o.compiled(x).backward()[o.w], lambda x: o.run(x).sum().backward()[o.w]):
        o.put(ad.tensor(X).require_grad())
        for _ in range(5):
            o.put(o.w.with_value(o.w.detach() - 0.1 * way(x)))
        found.append(o.w.detach().numpy())
    np.testing.assert_allclose(found[0], found[2], rtol=1e-6)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-6)
    assert len(recordings) == 1


def test_objects_are_left_as_they_are_while_a_function_is_recorded() -> None:
    """For other threads, and after an error."""
    o, seen = _OfTensors(ad.tensor(X)), types.SimpleNamespace(w=ad.tensor(X).require_grad(), by_others=None)
    o.put(seen.w)

    def f(x: Any) -> Any:
        def looks() -> None:
            seen.by_others = o.w is seen.w and o.listed[0] is seen.w

        other = threading.Thread(target=looks)
        other.start()
        other.join(60)
        assert o.__class__ is _OfTensors
        assert o.w is not seen.w
        assert o.w is o.listed[0]
        assert o.listed is o.listed
        return x if (x * o.w).sum() > 0 else -x

    for _ in range(2):
        seen.by_others = False
        with pytest.raises(errors.TrackedError, match="the truth was asked for"):
            ad.compile(f)(ad.tensor(X))
        assert type(o) is _OfTensors
        assert o.w is seen.w
        assert seen.by_others


def test_objects_that_a_function_makes_of_others_are_ordinary() -> None:
    """By type(self), and by copies: while a function is recorded the class of an object is another one."""

    class Scaled:
        def __init__(self, weight: Any) -> None:
            self.weight = weight

        def doubled(self) -> Any:
            return type(self)(self.weight * 2.0)

        def __eq__(self, other: object) -> bool:
            return self.__class__ is other.__class__

        __hash__ = None  # type: ignore[assignment]

    def f(x: Any) -> Any:
        new, alike = scaled.doubled(), copy.copy(scaled)
        assert [type(new), type(alike)] == [Scaled] * 2
        assert new == scaled
        assert isinstance(scaled, Scaled)
        return (new.weight * x).sum()

    w = ad.tensor([2.0, 3.0]).require_grad()
    scaled = Scaled(w)
    y = ad.compile(f)(X)
    np.testing.assert_array_equal(y.backward()[w].numpy(), 2.0 * X)
    assert type(scaled) is Scaled


def test_what_has_changed_before_a_later_derivative_is_recorded() -> None:
    """The gradient of a gradient was that of another function, silently, and later calls kept the old number."""
    o, k = _Scaled(), 2.0
    o.factor = 2.0
    for f in (ad.compile(lambda x: (x**3 * o.factor).sum()), ad.compile(lambda x: (x**3 * k).sum())):  # noqa: B023
        o.factor = k = 2.0
        x = ad.tensor([1.0]).require_grad()
        y = f(x)
        o.factor = k = 5.0
        with pytest.raises(errors.TrackedError, match="changed after the call whose .* make it an argument"):
            y.backward(create_graph=True)
        assert f(x).backward()[x].tolist() == [15.0]
        o.factor = k = 2.0
        assert y.backward(create_graph=True)[x].sum().backward()[x].tolist() == [12.0]


def test_attributes_with_tensors_that_the_function_changes() -> None:
    """They are read and changed while it is recorded, as others are."""
    o = _OfTensors(ad.tensor(X))

    def assigns(x: Any) -> Any:
        o.w = ad.tensor(X) * 2
        return x * o.w

    def sets(x: Any) -> Any:
        setattr(o, "".join("w"), ad.tensor(X) * 3)
        return x * o.w

    for f, factor in ((assigns, 2), (sets, 3)):
        o.put(ad.tensor(X))
        compiled = ad.compile(f)
        for _ in range(4):
            np.testing.assert_array_equal(compiled(ad.tensor(X)).numpy(), factor * X * X)


def test_what_no_tensor_can_be_given_to() -> None:
    """Attributes of classes, and of objects whose class is not written in Python: the message says the way out."""

    class Config:
        w = ad.tensor(X).require_grad()

    bare = types.SimpleNamespace(w=Config.w)
    for f in (lambda x: x * Config.w, lambda x: x * Config().w, lambda x: x * bare.w):
        with pytest.raises(errors.DeviceError, match="make what is tracked an argument.*attribute"):
            ad.compile(f)(ad.tensor(X))
    Config.w = bare.w = ad.tensor(2.0)
    for f in (lambda x: x * Config.w, lambda x: x * Config().w, lambda x: x * bare.w):
        compiled = ad.compile(f)
        for factor in (2.0, 3.0, 4.0):
            Config.w = bare.w = ad.tensor(factor)
            np.testing.assert_array_equal(compiled(X), factor * X)


# --- attributes that no code names ---


class _Hidden:
    """The value of another attribute."""

    def __get__(self, owner: Any, kind: Any) -> Any:
        return owner.w


class _OfOperators:
    """Attributes are read by operators, and by names that are made when they are read."""

    described = _Hidden()

    def __init__(self, w: Any, n: int) -> None:
        self.w, self.n, self.passes = w, n, 0

    def scaled(self, x: Any) -> Any:
        return x * self.w

    def __getitem__(self, i: int) -> Any:
        return self.w

    def __mul__(self, x: Any) -> Any:
        return x * self.w

    def __matmul__(self, x: Any) -> Any:
        return x * self.w

    def __neg__(self) -> Any:
        return -self.w

    def __iter__(self) -> Any:
        self.passes = 0
        return self

    def __next__(self) -> Any:
        if self.passes:
            raise StopIteration
        self.passes += 1
        return self.w

    def __enter__(self) -> Any:
        return self.w

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name != "another":
            raise AttributeError(name)
        return self.w

    def __len__(self) -> int:
        return self.n

    def __contains__(self, x: Any) -> bool:
        return self.n > 2

    def __bool__(self) -> bool:
        return self.n > 2


def _entered(o: Any, x: Any) -> Any:
    with o as w:
        return x * w


UNNAMED: dict[str, Any] = {
    "index": lambda o, x: x * o[0],
    "operator": lambda o, x: o * x,
    "product": lambda o, x: o @ x,
    "sign": lambda o, x: x * -o,
    "loop": lambda o, x: sum(x * w for w in o),
    "block": _entered,
    "any name": lambda o, x: x * o.another,
    "descriptor": lambda o, x: x * o.described,
    "length": lambda o, x: x * len(o),
    "in": lambda o, x: x * 2 if 1 in o else x,
    "truth": lambda o, x: x * 2 if o else x,
    "a name that is made": lambda o, x: x * getattr(o, "".join("w")),
    "a method by a name that is made": lambda o, x: getattr(o, "".join(["sca", "led"]))(x),
    "names in a tuple": lambda o, x: sum(x * getattr(o, name) for name in ("w", "n")),
    "attrgetter": lambda o, x: x * operator.attrgetter("w")(o),
    "methodcaller": lambda o, x: operator.methodcaller("scaled", x)(o),
    "vars": lambda o, x: x * vars(o)["w"],
    "dictionary": lambda o, x: x * o.__dict__["w"],
    "copy": lambda o, x: x * copy.copy(o).w,
}
BYPASSING = ("vars", "dictionary", "copy")  # tracked tensors are refused there


@pytest.mark.parametrize("kind", ["numbers", "tensors", "tracked"])
@pytest.mark.parametrize("how", ["closure", "argument"])
@pytest.mark.parametrize("name", UNNAMED)
def test_attributes_that_no_code_names(name: str, how: str, kind: str) -> None:
    """They were read when the function was recorded, and not again."""
    o, read, x = _OfOperators(1.0, 1), UNNAMED[name], ad.tensor(X)
    f = ad.compile(lambda x: read(o, x)) if how == "closure" else functools.partial(ad.compile(read), o)
    for k in range(1, 5):
        w = ad.tensor(0.5 + k, dtype=ad.float64)
        o.w, o.n = {"numbers": (0.5 + k, k), "tensors": (w, 1), "tracked": (w.require_grad(), 1)}[kind]
        if kind == "tracked" and name in BYPASSING:
            with pytest.raises(errors.DeviceError, match="do not meet"):
                f(x)
            continue
        expected = read(o, x)
        for _ in range(3):
            np.testing.assert_array_equal(f(x).detach().numpy(), expected.detach().numpy())
        if expected.is_tracked():
            theirs = expected.sum().backward()[o.w]
            np.testing.assert_array_equal(f(x).sum().backward()[o.w].numpy(), theirs.numpy())
    assert type(o) is _OfOperators


def test_containers_that_are_written_in_python() -> None:
    class Named(collections.UserDict[str, Any]):
        pass

    plain: dict[str, Any] = {}
    holders: list[Any] = [collections.UserDict(), Named(), collections.ChainMap(), collections.Counter(), plain]
    for o in holders:
        seen = types.MappingProxyType(o) if o is plain else o

        @ad.compile
        def f(x: Any, seen: Any = seen) -> Any:
            return x * seen["w"]

        for k in range(4):
            o["w"] = ad.tensor(0.5 + k, dtype=ad.float64)
            np.testing.assert_array_equal(f(ad.tensor(X)).numpy(), X * (0.5 + k))


@ad.compile
def doubled(x: Any) -> Any:
    return x * 2


def scaled(x: Any, y: Any) -> Any:
    return x * 3 + y


class Holder:
    @ad.compile
    def method(self, x: Any) -> Any:
        return x + 1


def test_compiled_functions_are_pickled_and_copied_as_functions_are() -> None:
    x = np.array([1.0, 2.0])
    for again in (copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))):
        for f in (doubled, Holder.method):
            assert again(f) is f
        f = ad.compile(scaled, dynamic=(0, None), donate=1)
        layer = ad.compile(ad.nn.Linear(2, 3))
        for n in (2, 3, 4, 2):
            f(np.ones(n), 1.0 * n)
            layer(ad.ones((n, 2)))
        g = again(f)
        assert (g.dynamic, g.donate, g.__name__) == (f.dynamic, (1,), "scaled")
        np.testing.assert_array_equal(g(x, 1.0), 3 * x + 1)
        other = again(layer)
        np.testing.assert_array_equal(other(ad.tensor([x])), layer(ad.tensor([x])))
        assert (other.f.weight is layer.f.weight) == (again is copy.copy)
    closed = ad.compile(lambda x: x * 2)
    np.testing.assert_array_equal(copy.deepcopy(closed)(x), 2 * x)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(closed)
