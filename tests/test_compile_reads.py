"""What compiled functions read beside their arguments: closures, names of modules, defaults, tracked tensors."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import dis
import functools
import itertools
import operator
import sys
import threading
import types
import warnings
from typing import Any

import numpy as np
import pytest
from test_compile import counted

import adjoint as ad
from adjoint import errors
from adjoint.lines import names_in

X = np.array([0.5, 1.5])
FACTOR = 2.0
TENSOR = ad.tensor(2.0)


def test_what_differs_from_the_last_call_is_seen() -> None:
    """Of all pairs of calls, the second gives what it gives alone."""
    weight = ad.tensor([2.0, 3.0])

    def f(x: Any, mode: Any = 1, *, scale: Any = None) -> Any:
        out = x * weight if scale is None else x * weight * scale
        return {"out": out + (mode if isinstance(mode, (int, float)) else 0.5), "x": x, "mode": mode}

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, *mode), how)
        for x in (X, X.astype(np.float32), np.ones((3, 2)), X[::-1], ad.tensor(X), ad.tensor([1, 2]), X[:1])
        for mode in ((), (2,), (2.5,), (True,), ("a",), (np.float64(3.0),))
        for how in ({}, {"scale": 2.0}, {"scale": ad.tensor(3.0)})
    ]
    alone = [ad.compile(f)(*args, **how) for args, how in calls]
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was recorded often
        g = ad.compile(f)
        for i in rng.integers(0, len(calls), 300):
            args, how = calls[i]
            for _ in range(2):
                found = g(*args, **how)
                assert (found["x"] is args[0]) == (alone[i]["x"] is args[0])
                assert found["mode"] == alone[i]["mode"]
                assert type(found["mode"]) is type(alone[i]["mode"])
                for x, y in zip(ad.tree.leaves(found), ad.tree.leaves(alone[i]), strict=True):
                    x, y = (v.detach() if isinstance(v, ad.Tensor) else v for v in (x, y))
                    assert getattr(x, "dtype", None) is getattr(y, "dtype", None)
                    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    w = ad.tensor(X).require_grad()
    square = ad.compile(lambda x: (x * x).sum())
    assert square(w.detach()).item() == square(w.detach()).item() == 2.5
    np.testing.assert_array_equal(square(w).backward()[w].numpy(), 2 * X)


def test_closures_and_names_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scale, shift = ad.tensor(2.0), 1.0
    f = ad.compile(lambda x: x * scale * FACTOR * TENSOR + shift)
    np.testing.assert_array_equal(f(X), X * 8 + 1)
    scale, shift = ad.tensor(3.0), 2.0
    np.testing.assert_array_equal(f(X), X * 12 + 2)
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    np.testing.assert_array_equal(f(X), X * 6 + 2)
    monkeypatch.setitem(globals(), "TENSOR", ad.tensor(1.0))
    np.testing.assert_array_equal(f(X), X * 3 + 2)
    scale[...] = 5.0
    np.testing.assert_array_equal(f(X), X * 5 + 2)


def _shifted(x: Any, by: float = 1.0, *, times: float = 1.0) -> Any:
    return x * times + by


PART = functools.partial(_shifted, by=0.0)


def test_defaults_are_read_anew() -> None:
    """Also of a function that reads nothing else."""

    def f(x: Any, by: Any = (), *, named: Any = None) -> Any:
        return x * by[0] * named["a"]

    f.__defaults__, f.__kwdefaults__ = ([2.0],), {"named": {"a": 3.0}}
    compiled = ad.compile(f)
    np.testing.assert_array_equal(compiled(X), X * 6)
    f.__defaults__[0][0] = 4.0
    np.testing.assert_array_equal(compiled(X), X * 12)
    f.__kwdefaults__["named"]["a"] = 5.0
    np.testing.assert_array_equal(compiled(X), X * 20)
    f.__defaults__ = ([1.0],)
    np.testing.assert_array_equal(compiled(X), X * 5)
    f.__kwdefaults__ = {"named": {"a": 1.0}}
    np.testing.assert_array_equal(compiled(X), X)


def test_what_changes_between_calls_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """After calls that were alike, whose next one is not read anew."""
    w, factors, named, part = ad.tensor([1.0, 2.0]), [1.0, 2.0], {"a": 1.0}, functools.partial(_shifted, times=2.0)

    def plain(x: Any) -> Any:
        late = LATE if "LATE" in globals() else 0.0  # type: ignore[name-defined]  # noqa: F821
        return PART(part(_shifted(x * w))) * factors[0] * factors[-1] + sum(named.values()) + late + TENSOR * FACTOR

    def rebound() -> None:
        nonlocal w
        w = w * 3

    def other(x: Any, by: float = 1.0, *, times: float = 1.0) -> Any:
        return x - by * times

    f, x = ad.compile(plain), ad.tensor(X)
    changes: list[Any] = [
        rebound,
        lambda: w.__setitem__(0, 7.0),
        lambda: factors.__setitem__(0, 3.0),
        lambda: factors.append(5.0),
        lambda: named.__setitem__("a", 2.0),
        lambda: named.__setitem__("b", 4.0),
        lambda: part.keywords.__setitem__("times", 9.0),
        lambda: PART.keywords.__setitem__("times", 3.0),
        lambda: monkeypatch.setattr(_shifted, "__defaults__", (6.0,)),
        lambda: monkeypatch.setitem(_shifted.__kwdefaults__, "times", 4.0),
        lambda: monkeypatch.setattr(_shifted, "__code__", other.__code__),
        lambda: monkeypatch.setitem(globals(), "LATE", 8.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 0.5),
        lambda: monkeypatch.setitem(globals(), "TENSOR", ad.tensor(11.0)),
        lambda: TENSOR.__setitem__((), 13.0),
    ]
    warnings.simplefilter("ignore")  # that it was recorded often
    monkeypatch.setitem(globals(), "TENSOR", ad.tensor(2.0))
    expected = plain(x).tolist()
    for i, change in enumerate(changes):
        assert [f(x).tolist() for _ in range(3)] == [expected] * 3
        change()
        assert plain(x).tolist() != expected, i
        expected = plain(x).tolist()
        assert f(x).tolist() == expected, i


def test_all_that_a_function_reads_is_seen_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each after calls that were alike, whatever the function reads beside it."""
    listed, named, pair = [1.0], {"a": 1.0}, (ad.tensor(1.0), 1.0)

    def inner(x: Any, shift: float = 1.0, *, more: float = 1.0) -> Any:
        return x + shift + more

    def make(part: Any) -> tuple[Any, Any]:
        kept, array = 1.0, ad.tensor([1.0, 1.0])

        def f(x: Any) -> Any:
            return part(x) * kept * array * FACTOR * TENSOR

        def change(k: Any, a: Any) -> None:
            nonlocal kept, array
            kept, array = k, a

        return f, change

    parts = [
        lambda x: inner(x),
        lambda x: x * listed[0],
        lambda x: x * named["a"],
        lambda x: x * pair[0] * pair[1],
        functools.partial(lambda x, y: x * y, y=1.0),
        lambda x: x,
    ]
    for part in parts:
        listed[0] = named["a"] = 1.0
        inner.__defaults__, inner.__kwdefaults__ = (1.0,), {"more": 1.0}
        f, change = make(part)
        g = ad.compile(f)

        def same(f: Any = f, g: Any = g) -> None:
            for _ in range(2):
                np.testing.assert_array_equal(g(X), f(ad.tensor(X)).numpy())

        same()
        change(2.0, ad.tensor([1.0, 1.0]))
        same()
        change(2.0, ad.tensor([3.0, 1.0]))
        same()
        listed[0], named["a"] = 2.0, 3.0
        same()
        inner.__defaults__ = (5.0,)
        same()
        inner.__kwdefaults__ = {"more": 7.0}
        same()
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "FACTOR", 7.0)
            same()
            patch.setitem(globals(), "TENSOR", ad.tensor(5.0))
            same()
        same()


def test_tensors_of_a_closure_have_derivatives() -> None:
    w = ad.tensor([2.0, 3.0]).require_grad()
    f = ad.compile(lambda x: (x * w * w).sum())
    np.testing.assert_array_equal(f(ad.tensor(X)).backward()[w].numpy(), 2 * X * w.numpy())
    slope = ad.grad(lambda v: ad.compile(lambda x: (x * v).sum())(ad.tensor(X)))
    np.testing.assert_array_equal(slope(np.ones(2)), X)


AROUND = {
    "grad": lambda f: ad.grad(lambda x: f(x).sum()),
    "jacobian": ad.jacobian,
    "push": lambda f: lambda x: ad.jvp(f, (x,), (x,))[1],
    "vmap": ad.vmap,
    "step": lambda f: lambda x: _backward(f, x),
}


def _backward(f: Any, x: Any) -> Any:
    leaf = ad.asarray(x).require_grad()
    return f(leaf).sum().backward()[leaf]


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("step", None), *itertools.product([name for name in AROUND if name != "step"], [None, *AROUND])],
)  # gradients of `backward` are values
def test_transforms_around_record_once(inner: str, outer: str | None) -> None:
    def f(x: Any) -> Any:
        return ad.sin(x * 1.5) * x[..., :1] + x**3

    def around(f: Any) -> Any:
        g = AROUND[inner](f)
        return g if outer is None else AROUND[outer](g)

    rng = np.random.default_rng(5)
    compiled, recordings = counted(f)
    run, plain = around(compiled), around(f)
    plain(rng.normal(size=(2, 3, 2)))
    run(rng.normal(size=(2, 3, 2)))
    compiled(rng.normal(size=(2, 3, 2)))  # what another use records is not mixed up with it
    recordings.clear()
    for _ in range(3):
        x = rng.normal(size=(2, 3, 2))
        np.testing.assert_allclose(run(x), plain(x), rtol=1e-12)
    assert not recordings


def test_a_leaf_of_the_module_is_refused() -> None:
    place = types.SimpleNamespace(w=ad.tensor([2.0, 3.0]).require_grad())  # whose class is not written in Python
    with pytest.raises(errors.DeviceError, match="make what is tracked an argument"):
        ad.compile(lambda x: x * place.w)(ad.tensor(X))


def test_a_tracked_result_is_no_array() -> None:
    """Where the arguments are NumPy's, or there are none: what a closure tracks stays tracked."""
    w = ad.tensor([2.0, 3.0], dtype=ad.float64).require_grad()
    by_array, by_none = ad.compile(lambda k: (w * k).sum()), ad.compile(lambda: (w * w).sum())
    for _ in range(4):
        np.testing.assert_array_equal(by_array(np.ones(2)).backward()[w].numpy(), np.ones(2))
        np.testing.assert_array_equal(by_array(2.0).backward()[w].numpy(), 2 * np.ones(2))
        np.testing.assert_array_equal(by_none().backward()[w].numpy(), 2 * w.detach().numpy())
    place = types.SimpleNamespace(w=w)  # whose class is not written in Python
    for f in (lambda: place.w * 2.0, lambda x: [place.w * 2.0, x]):
        with pytest.raises(errors.TrackedError, match="make that an argument"):
            ad.compile(f)(*[X] * (f.__code__.co_argcount))


def test_what_an_outer_transform_tracks_in_an_object_is_refused() -> None:
    """Once, and not by transforms that run again and again."""

    def f(w: Any) -> Any:
        place = types.SimpleNamespace(w=w)
        return ad.compile(lambda x: (x * place.w).sum())(ad.tensor(X))

    with pytest.raises(errors.DeviceError, match="make what is tracked an argument"):
        ad.grad(f)(ad.tensor([1.0, 2.0], dtype=ad.float64))


def test_assignment_to_a_copy_of_an_argument_that_nothing_tracks() -> None:
    def f(x: Any, y: Any) -> Any:
        out = y.copy()
        out[1:] += x[1:] * w
        return (out * out).sum()

    w, y = ad.tensor([0.5]), ad.tensor([3.0, 4.0])
    x = ad.tensor([1.0, 2.0]).require_grad()
    compiled, expected = ad.compile(f), f(x, y).backward()[x].numpy()
    for _ in range(4):
        np.testing.assert_array_equal(compiled(x, y).backward()[x].numpy(), expected)
    np.testing.assert_array_equal(ad.grad(compiled)(x.detach(), y).numpy(), expected)


def test_variables_that_the_function_changes_beside_tensors() -> None:
    """With a tensor in the closure the function was given another closure, and what it changed there was lost."""
    w, count, kept = ad.tensor(1.0), 0, [ad.tensor(1.0)]

    def rebinds(x: Any) -> Any:
        nonlocal w
        w = w * 2
        return x * w

    def counts(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * w

    def grows(x: Any) -> Any:
        kept.append(w)
        return x * kept[-1]

    for f, name in ((rebinds, "w"), (counts, "count"), (grows, "kept")):
        with pytest.raises(errors.TrackedError, match=f"changes '{name}', which is outside of it"):
            ad.compile(f)(ad.tensor(X))


def test_tensors_in_other_kinds_of_containers_are_read_anew() -> None:
    """In a queue a tensor counted as an argument, which no function can be given there."""
    queue = collections.deque([ad.tensor(1.0)])
    f = ad.compile(lambda x: x * queue[0])
    for k in range(4):
        queue[0] = ad.tensor(float(k))
        np.testing.assert_array_equal(f(X), k * X)


class _Holder:
    value: Any = 1.0

    def read(self) -> Any:
        return self.value

    renamed = property(operator.attrgetter("value"))


class _Meta(type):
    value = 1.0


class _List(list[Any]):
    value = 1.0


class _Float(float):
    value = 1.0


class _Module(ad.nn.Module):
    rates: dict[str, float]

    def __init__(self) -> None:
        self.rates = {"a": 1.0}

    def __call__(self, x: Any) -> Any:
        return x * self.rates["a"]


def _views(kind: Any) -> Any:
    held = kind({"a": 1.0, "b": 2.0})
    values, items = held.values(), held.items()
    return (lambda x: x * sum(values) * next(iter(items))[1] * sum(held.values())), lambda: held.update(a=3.0)


def _keys() -> Any:
    held = {"a": 1.0}
    keys = held.keys()
    return (lambda x: x * len(keys)), lambda: held.update(b=3.0)


def _of_array(part: Any, made: Any = None) -> Any:
    held = {"a": np.array([1.0, 2.0]) if made is None else made}

    def change() -> None:
        held["a"][...] = 3.0

    return (lambda x: x * part(held["a"])), change


def _of_objects(first: Any, change: Any, part: Any = lambda x: x) -> Any:
    held = np.empty(2, object)
    held[0] = first
    return (lambda x: x * part(held[0])), lambda: change(held)


def _of_holder(read: Any, make: Any = _Holder) -> Any:
    held = make()
    held.value = 1.0
    return (lambda x: x * read(held)), lambda: setattr(held, "value", 3.0)


def _of_class() -> Any:
    nearer = type("Nearer", (_Holder,), {"__module__": __name__})
    return (lambda x: x * nearer.value), lambda: setattr(nearer, "value", 3.0)


def _of_metaclass() -> Any:
    made = _Meta("Made", (), {"__module__": __name__})
    _Meta.value = 1.0
    return (lambda x: x * made.value), lambda: setattr(_Meta, "value", 3.0)


def _of_key() -> Any:
    held = {_Holder(): 1.0}
    return (lambda x: x * sum(key.value for key in held)), lambda: [setattr(key, "value", 3.0) for key in held]


def _bound(name: str, *args: Any) -> Any:
    held = {"a": 1.0}
    get = getattr(held, name)
    partial = functools.partial(get, *args)
    return (lambda x: x * get(*args) * partial()), lambda: held.update(a=3.0)


def _cached() -> Any:
    held = [1.0]
    cached = functools.cache(lambda: held)
    return (lambda x: x * cached()[0]), lambda: held.__setitem__(0, 3.0)


def _of_context() -> Any:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable", default=1.0)
    return (lambda x: x * variable.get()), lambda: variable.set(3.0)


def _of_module() -> Any:
    module = _Module()
    return (lambda x: module(x)), lambda: module.rates.update(a=3.0)


def _of_buffer(made: Any) -> Any:
    return (lambda x: x * made[0]), lambda: made.__setitem__(0, 3)


getter, caller = operator.attrgetter("value"), operator.methodcaller("read")


@pytest.mark.parametrize(
    "case",
    [
        *[functools.partial(_views, kind) for kind in (dict, collections.OrderedDict, collections.UserDict)],
        _keys,
        *[
            functools.partial(_of_array, part)
            for part in (lambda a: a, lambda a: a[0], lambda a: a.tolist()[0], lambda a: np.sin(a), lambda a: sum(a))
        ],
        lambda: _of_array(lambda a: a, np.array(1.0)),
        lambda: _of_array(lambda a: float(a), np.array(1.0)),
        lambda: _of_array(lambda a: a["f"], np.ones(2, [("f", float)])),
        lambda: _of_array(lambda a: a[0], np.ones((4, 4))[1:, 1]),
        lambda: _of_objects(1.0, lambda held: held.__setitem__(0, 3.0)),
        lambda: _of_objects(ad.tensor(1.0), lambda held: held.__setitem__(0, ad.tensor(3.0))),
        lambda: _of_objects({"a": 1.0}, lambda held: held[0].update(a=3.0), lambda held: held["a"]),
        lambda: _of_objects(_Holder(), lambda held: setattr(held[0], "value", 3.0), lambda held: held.value),
        *[
            functools.partial(_of_holder, read)
            for read in (
                lambda held: held.renamed,
                lambda held: getter(held),
                lambda held: caller(held),
                lambda held: vars(held)["value"],
                lambda held: sum(vars(held).values()),
            )
        ],
        *[
            functools.partial(_of_holder, lambda held: held.value, make)
            for make in (_List, _Float, threading.local, types.SimpleNamespace)
        ],
        lambda: _of_holder(lambda held: vars(held)["value"], types.SimpleNamespace),
        lambda: _of_holder(lambda held: sum(held.__dict__.values()), types.SimpleNamespace),
        _of_class,
        _of_metaclass,
        _of_key,
        lambda: _bound("get", "a"),
        lambda: _bound("__getitem__", "a"),
        _cached,
        _of_context,
        _of_module,
        *[
            functools.partial(_of_buffer, made)
            for made in (bytearray([1]), array.array("d", [1.0]), memoryview(np.ones(2)), (ctypes.c_double * 2)(1.0))
        ],
    ],
)
@pytest.mark.parametrize("how", [lambda f: f, lambda f: ad.grad(lambda x: f(x).sum())])
def test_what_is_read_by_other_ways_is_seen_to_change(case: Any, how: Any) -> None:
    f, change = case()
    f = how(f)
    g = ad.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(g(X), f(X))
    change()
    for _ in range(2):
        np.testing.assert_array_equal(g(X), f(X))


def test_arrays_that_the_function_changes() -> None:
    filled, buffer, runs = np.zeros(2), np.zeros(2), _Holder()

    def assigns(x: Any) -> Any:
        filled[0] = 3.0
        return x * filled

    with pytest.raises(errors.TrackedError, match="changes 'filled'"):
        ad.compile(assigns)(X)

    def outside(x: Any) -> Any:
        buffer[:] = x
        return buffer * 2

    external = ad.external(outside, like=lambda x: x)

    def f(x: Any) -> Any:
        runs.value += 1
        ad.debug.callback(lambda value: filled.__setitem__(slice(None), value), x)
        return external(x) * 1.0

    runs.value = 0
    g = ad.compile(f)
    for k in range(4):  # what callbacks and functions outside fill is none of what the function reads
        np.testing.assert_array_equal(g(X + k), (X + k) * 2)
    assert runs.value <= 2
    np.testing.assert_array_equal(filled, X + 3)


def test_names_are_those_that_dis_gives() -> None:
    """Of all functions that are loaded here, in their order, and where other operations stand between."""
    endings = "GLOBAL", "GLOBALS", "_NAME", "DEREF", "_ATTR", "_METHOD"

    def by_dis(code: types.CodeType) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for x in dis.get_instructions(code):
            if x.opname.endswith(endings):
                found.append((x.opname, x.argval))
            elif found and found[-1][0]:
                found.append(("", ""))
        return found

    modules = [vars(m) for name, m in [*sys.modules.items()] if name.split(".")[0] in ("adjoint", "numpy", "inspect")]
    functions = [x for names in modules for x in [*names.values()] if isinstance(x, types.FunctionType)]
    seen: set[types.CodeType] = set()
    left = [f.__code__ for f in functions]
    while left:
        code = left.pop()
        if code not in seen:
            seen.add(code)
            assert list(names_in(code)) == by_dis(code), code
            left += [x for x in code.co_consts if isinstance(x, types.CodeType)]
    assert len(seen) > 1000
