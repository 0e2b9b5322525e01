"""A compiled function that was called often sees what changes: each call gives what the function itself gives."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from each import Each
from test_compiled import alike

import adjoint as ad
from adjoint.compiler import again
from adjoint.compiler import compiled as compiler
from adjoint.compiler.environment import Environment

X = np.array([0.5, -1.5])
ONE, TWO = ad.Autodiff(ad.NumPy()), ad.Autodiff(ad.Autodiff(ad.NumPy()))
FACTOR, WEIGHT = 2.0, ad.tensor([1.0, 3.0])


class Pair(NamedTuple):
    a: Any
    b: Any


class Other(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Point:
    x: Any
    n: Any = dataclasses.field(default=1, metadata={"static": True})


class Sub(np.ndarray[Any, Any]):
    pass


class Scaled(ad.nn.Module):
    w: ad.Tensor
    n: Any = 1

    def __call__(self, x: Any) -> Any:
        return self.w * x * (2 if self.training else 3)


class Net(ad.nn.Module):
    first: Any
    rest: Any
    names: Any = None
    f: Any = math.sin

    def __call__(self, x: Any) -> Any:
        return x


def t(x: Any = X, device: Any = ONE, dtype: Any = None) -> Any:
    return ad.tensor(x, device=device, dtype=dtype)


def assigned() -> Any:
    x = t()
    x[0] = 3.0
    return x


VALUES: dict[str, Any] = {
    "array": lambda: X,
    "longer": lambda: np.ones(3),
    "float32": lambda: X.astype(np.float32),
    "integers": lambda: np.array([1, 2]),
    "no axes": lambda: np.array(0.5),
    "one axis more": lambda: X[None],
    "every other": lambda: np.array([1.0, 2.0, 3.0, 4.0])[::2],
    "byte order": lambda: X.astype(">f8"),
    "subclass": lambda: X.view(Sub),
    "NumPy number": lambda: np.float64(0.5),
    "another one": lambda: np.float32(0.5),
    "tensor": t,
    "tensor, longer": lambda: t(np.ones(3)),
    "tensor, float32": lambda: t(dtype=ad.float32),
    "tensor, integers": lambda: t([1, 2]),
    "tensor, no axes": lambda: t(0.5),
    "on NumPy": lambda: t(device=ad.NumPy()),
    "on two levels": lambda: t(device=TWO),
    "strong zeros": lambda: t(device=ad.Autodiff(ad.NumPy(), strong_zero=True)),
    "checked": lambda: t(device=ad.Checked(ad.NumPy())),
    "tracked": lambda: t().require_grad(),
    "a tracked result": lambda: t().require_grad() * 2,
    "tracked inside": lambda: t().require_grad().to_device(TWO),
    "tracked outside": lambda: t(device=TWO).require_grad(),
    "assigned": assigned,
    "zero": lambda: 0.0,
    "minus zero": lambda: -0.0,
    "nan": lambda: float("nan"),
    "one": lambda: 1,
    "two": lambda: 2,
    "large": lambda: 2**70,
    "1.0": lambda: 1.0,
    "true": lambda: True,
    "complex": lambda: complex(0.0, -0.0),
    "complex zero": lambda: 0j,
    "text": lambda: "a",
    "another text": lambda: "b",
    "nothing": lambda: None,
    "function": lambda: math.sin,
    "another function": lambda: math.cos,
    "tuple": lambda: (X, 1),
    "empty": lambda: (),
    "list": lambda: [X, 1],
    "empty list": list,
    "tensors": lambda: [t(), t()],
    "three": lambda: [t(), t(), t()],
    "dict": lambda: {"a": t(), "b": t(np.ones(3))},
    "turned": lambda: {"b": t(np.ones(3)), "a": t()},
    "other names": lambda: {"a": t(), "c": t(np.ones(3))},
    "one more": lambda: {"a": t(), "b": t(np.ones(3)), "c": 1},
    "numbered": lambda: {0: t(), 1: 2},
    "ordered": lambda: collections.OrderedDict(a=t(), b=t(np.ones(3))),
    "nested": lambda: {"a": [t(), {"b": (X, None)}], "c": "text"},
    "nested otherwise": lambda: {"a": [t(), {"b": (X, 1)}], "c": "text"},
    "pair": lambda: Pair(t(), 1),
    "other pair": lambda: Other(t(), 1),
    "dataclass": lambda: Point(t()),
    "static": lambda: Point(t(), 1.0),
    "module": lambda: Scaled(t()),
    "in evaluation": lambda: Scaled(t()).train(False),
    "frozen": lambda: Scaled(t()).freeze("w"),
    "setting": lambda: Scaled(t(), 2),
    "setting 1.0": lambda: Scaled(t(), 1.0),
    "setting -0.0": lambda: Scaled(t(), -0.0),
    "setting 0.0": lambda: Scaled(t(), 0.0),
    "in a module": lambda: Net(Scaled(t()), (t(), 2, None)),
    "in it another": lambda: Net(Scaled(t(), 3), (t(), 2, None)),
    "array in it": lambda: Net(Scaled(t()), (t(), X, None)),
    "longer in it": lambda: Net(Scaled(t()), (t(), 2)),
    "names in it": lambda: Net(Scaled(t()), (t(), 2, None), {"a": t(), "b": 3}),
    "names in it, others": lambda: Net(Scaled(t()), (t(), 2, None), {"a": t(), "b": 4}),
    "dataclass in it": lambda: Net(Scaled(t()), Point(t())),
    "its function": lambda: Net(Scaled(t()), (t(), 2, None), None, math.cos),
    "network": lambda: ad.nn.Sequential(ad.nn.Linear(2, 3), ad.nn.relu, ad.nn.Linear(3, 1)),
    "dropout": lambda: ad.nn.Sequential(ad.nn.Linear(2, 3), ad.nn.relu, ad.nn.Dropout(0.5)),
}
# read from scratch each time: functions that have derivatives on several levels, and an array that is copied
FROM_SCRATCH = {"tracked inside", "tracked outside", "byte order"}


def described(x: Any) -> Any:
    """What depends on all that there is in a tree."""
    leaves, structure = ad.tree.flatten(x)
    twice = [y * 2 if isinstance(y, (ad.Tensor, np.ndarray, np.generic)) else repr(y) for y in leaves]
    return twice, str(structure), x(1.0) if isinstance(x, Scaled) else None


def plain(f: Any, *args: Any, **kwargs: Any) -> Any:
    with ad.disable_compile():
        return f(*args, **kwargs)


def same(f: Any, *args: Any, **kwargs: Any) -> None:
    """Assert that a compiled function gives what it gives as it is."""
    found, expected = f(*args, **kwargs), plain(f, *args, **kwargs)
    texts = [[x for x in ad.tree.leaves(y) if isinstance(x, str)] for y in (found, expected)]
    assert texts[0] == texts[1]
    found, expected = (ad.tree.map(lambda x: 0 if isinstance(x, str) else x, y) for y in (found, expected))
    alike(found, expected)
    for x, y in zip(ad.tree.leaves(found), ad.tree.leaves(expected), strict=True):
        if isinstance(x, ad.Tensor):
            assert x.device.tracked(x._array) or not y.device.tracked(y._array)


@contextlib.contextmanager
def nothing_is_read_from_scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refused(*args: Any) -> None:
        raise AssertionError("the call was read from scratch")

    with monkeypatch.context() as patched:
        patched.setattr(compiler, "Signature", refused)
        yield


@pytest.fixture(autouse=True)
def many_recordings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* was recorded")
        yield


WAYS: dict[str, Any] = {
    "an argument": (described, lambda f, x: same(f, x)),
    "by name": (lambda *, x: described(x), lambda f, x: same(f, x=x)),
    "in a tuple": (lambda xs: described(xs[0]), lambda f, x: same(f, (x, X))),
}


@pytest.mark.parametrize("how", [pytest.param(x, marks=[pytest.mark.slow] * (x != "an argument")) for x in WAYS])
def test_arguments_of_all_kinds_one_after_the_other(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "KEPT", 1000)
    function, call = WAYS[how]
    f = ad.compile(function)
    with Each() as each:
        for name, value in VALUES.items():
            for _ in range(3):
                call(f, value())
            for other, another in VALUES.items():
                with each(f"{name}, then {other}"):
                    call(f, another())
                    call(f, value())


def test_calls_that_are_like_an_earlier_one_are_not_read_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    with Each() as each:
        for name, value in VALUES.items():
            f = ad.compile(lambda x: described(x))
            for _ in range(3):
                f(value())
            with each(name):
                if name in FROM_SCRATCH:
                    continue
                with nothing_is_read_from_scratch(monkeypatch):
                    f(value())


def test_some_kinds_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ad.compile(lambda x: described(x))
    kinds = [VALUES[name] for name in ("tensor", "dict", "array", "module")]
    for _ in range(3):
        for value in kinds:
            same(f, value())
    with nothing_is_read_from_scratch(monkeypatch):
        for value in (*kinds, *kinds):
            f(value())


def test_modules_that_are_compiled() -> None:
    x = t(np.ones((4, 2)))
    net = ad.nn.Sequential(ad.nn.Linear(2, 3), ad.nn.relu, ad.nn.Linear(3, 1))
    f = ad.compile(net)
    for k in range(6):
        same(f, x)
        net[0].bias[0] = k  # which gives its tensor another value


# --- with derivatives ---

POINT = np.array([0.3, 0.8, -0.4])
TRACKED: dict[str, Any] = {
    "product": lambda w, x: (w * x).sum(),
    "several": lambda w, x: (ad.sin(w) * x, {"a": (w @ x) ** 2, "b": 3, "c": None}),
    "one not used": lambda w, x: [ad.exp(w).sum(), (w * w * x).sum()][1:],
    "not by all": lambda w, x: (ad.sin(w).sum(), x * 2),
    "all of an argument": lambda w, x: (w[:], x[:], (w * w).sum()),
    "views": lambda w, x: (w[:2], w[::-1], (w * x)[None]),
    "integers": lambda w, x: ((w * x).sum(), ad.argmax(w), ad.ones(2)),
    "loop": lambda w, x: ad.scan(lambda c, y: (ad.tanh(c * y + x), c.sum()), x, w),
    "choice": lambda w, x: ad.cond(w[0] > 0, lambda w: (w * x).sum(), lambda w: (w**2).sum(), w),
    "random": lambda w, x: (ad.nn.dropout(w, 0.5) * x).sum(),
    "complex": lambda w, x: ad.abs(w * 1j + x).sum(),
    "checked": lambda w, x: (ad.take(w, ad.argsort(x)) ** 2).sum() + w @ x,
    "a derivative in it": lambda w, x: (ad.grad(lambda w: (w**3 * x).sum())(w) ** 2).sum(),
}
DERIVED: dict[str, Any] = {
    "backward": lambda y, w: y.backward(wrt=[w])[w],
    "twice": lambda y, w: (y.backward(retain_graph=True, wrt=[w])[w], y.backward(wrt=[w])[w]),
    "second order": lambda y, w: (y.backward(create_graph=True, wrt=[w])[w] ** 2).sum().backward(wrt=[w])[w],
    "third order": lambda y, w: (
        ((y.backward(create_graph=True, wrt=[w])[w] ** 2).sum().backward(create_graph=True, wrt=[w])[w] ** 2)
        .sum()
        .backward(wrt=[w])[w]
    ),
}


def total(tree: Any) -> Any:
    """A number that depends on all floating results, on each in its own way."""
    parts = [x for x in ad.tree.leaves(tree) if isinstance(x, ad.Tensor) and x.dtype.kind == "f"]
    return sum([(x**2 * (k + 1)).sum() for k, x in enumerate(parts)])


@pytest.mark.parametrize("name", TRACKED)
def test_derivatives_of_often_called_functions(name: str) -> None:
    f = ad.compile(TRACKED[name])
    with Each() as each:
        for tracked in ("w", "x", "wx", "w is x"):
            for k in range(5):
                w = t(POINT + 0.1 * k)
                w = w.require_grad() if "w" in tracked else w
                x = w if tracked == "w is x" else t(POINT * (k - 2.2))
                x = x.require_grad() if "x" in tracked and tracked != "w is x" else x
                for by in [y for y in (w, x) if y.device.tracked(y._array)]:
                    for derived, derive in DERIVED.items():
                        with each(name, tracked, k, derived):
                            found, expected = (ad.random.seed(7) or total(g(w, x)) for g in (f, TRACKED[name]))
                            alike(ad.tensor(found.item()), ad.tensor(expected.item()))
                            alike(derive(found, by), derive(expected, by))


def test_only_what_is_tracked_is_differentiated_by() -> None:
    """The cotangent of the images of a network, say, was computed for nobody."""
    f = ad.compile(lambda w, x: ad.tanh(x @ w).sum())
    w, x = ad.ones((3, 2)).require_grad(), ad.ones((4, 3))
    for _ in range(4):
        np.testing.assert_allclose(f(w, x).backward()[w].numpy(), 4 * (1 - np.tanh(3.0) ** 2) * np.ones((3, 2)), 1e-5)
    ((called,),) = f._families.values()
    (parts,) = {id(parts): parts for parts in called.family.programs.values()}.values()
    products = [e for e in (*parts.forward.graph.equations, *parts.backward.graph.equations) if e.name == "matmul"]
    assert len(products) == 2


def test_settings_at_the_time_of_backward_do_not_count() -> None:
    def f(w: Any) -> Any:
        return (w * ad.ones(2)).sum() ** 2

    g = ad.compile(f)
    for k in range(5):
        w = t().require_grad()
        y = g(w)
        with ad.use_dtype("float64"), ad.use_device("numpy"):
            slope = y.backward(create_graph=k % 2 == 1)[w]
        np.testing.assert_allclose(slope.detach().numpy(), -2.0)


# --- what is no argument ---


def test_variables_of_a_closure() -> None:
    k: Any = 1
    w, v, held, names = t(), t(), [1.0, t()], {"a": 1}

    def inner(x: Any) -> Any:
        return x * k

    def f(x: Any) -> Any:
        return inner(x) * w + v * held[0], held[-1] * len(held), names.get("b", 0) + x

    def put(**new: Any) -> None:
        nonlocal k, w, v, held
        k, w, v, held = (new.get(name, x) for name, x in {"k": k, "w": w, "v": v, "held": held}.items())

    g = ad.compile(f)
    changes = [
        lambda: put(k=2),
        lambda: put(k=2.0),
        lambda: put(k=True),
        lambda: put(k=-0.0),
        lambda: put(k=t(np.array([3.0, 4.0]))),
        lambda: put(w=t() * 3),
        lambda: put(v=t()[:1]),
        lambda: put(w=v),
        lambda: put(v=5.0),
        lambda: put(held=[2.0, t()]),
        lambda: held.append(3.0),
        lambda: held.__setitem__(0, t()),
        lambda: names.update(b=2),
        lambda: names.update(a=7),
        lambda: names.pop("b"),
        lambda: w.__setitem__(0, 9.0),
        lambda: setattr(inner, "__code__", (lambda x: (x, k)[0] + k).__code__),
        lambda: put(k=t().require_grad()),
    ]
    with Each() as each:
        for i, change in enumerate([lambda: None, *changes]):
            change()
            with each(i):
                for _ in range(5):
                    same(g, t())


def test_a_closed_over_tensor_that_each_step_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    w = t()

    def f(x: Any) -> Any:
        return w - 0.1 * x

    g = ad.compile(f)
    for k in range(6):
        with nothing_is_read_from_scratch(monkeypatch) if k > 2 else contextlib.nullcontext():
            w = g(t())
    np.testing.assert_allclose(w.numpy(), 0.4 * X)


def test_names_of_the_module_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    def helper(x: Any, n: Any = 1) -> Any:
        return x * n

    def f(x: Any, n: Any = 1, *, m: Any = 2) -> Any:
        return helper(x) * FACTOR + n * m * WEIGHT, scaled(x) if "scaled" in globals() else None  # noqa: F821

    g = ad.compile(f)
    changes = [
        lambda: None,
        lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 3),
        lambda: monkeypatch.setitem(globals(), "WEIGHT", t() * 5),
        lambda: WEIGHT.__setitem__(0, 7.0),
        lambda: monkeypatch.setitem(globals(), "scaled", lambda x: x * 4),
        lambda: monkeypatch.setitem(globals(), "scaled", lambda x: x * 6),
        lambda: monkeypatch.delitem(globals(), "scaled"),
        lambda: monkeypatch.setattr(f, "__defaults__", (4,)),
        lambda: monkeypatch.setattr(f, "__kwdefaults__", {"m": 5}),
        lambda: f.__kwdefaults__.update(m=6),  # type: ignore[attr-defined]
        lambda: monkeypatch.setattr(helper, "__defaults__", (7,)),
    ]
    with Each() as each:
        for i, change in enumerate(changes):
            change()
            with each(i):
                for _ in range(4):
                    same(g, t())
                    same(g, X)


def test_functions_of_ours_that_hold_the_users() -> None:
    """A transform's function in a closure holds the user's, and so does a function of a library with defaults."""
    k = 1.0

    def inner(x: Any) -> Any:
        return (x * x * k).sum()

    slope, each_one = ad.grad(inner), ad.vmap(ad.value_and_grad(inner))
    part = functools.partial(lambda n, x: x * n * k, 2.0)
    g = ad.compile(lambda x: (slope(x), each_one(x[:, None]), part(x)))
    with Each() as each:
        for value in (1.0, 2.0, t([2.0, 3.0])[0], 3):
            k = value
            with each(value):
                for _ in range(4):
                    same(g, t())


def test_the_body_of_a_class_reads_names_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        class Held:
            factor = FACTOR

        return x * Held.factor

    g = ad.compile(f)
    for k in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", k)
        for _ in range(4):
            np.testing.assert_array_equal(g(X), X * k)


def test_names_that_are_attributes_alone_are_no_names_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = types.SimpleNamespace(unheard_of=3.0)
    runs: list[int] = []

    def f(x: Any) -> Any:
        return x * holder.unheard_of

    g = ad.compile(f)
    g(X)
    recordings = g._recordings
    monkeypatch.setitem(globals(), "unheard_of", runs)
    g(X)
    assert g._recordings == recordings == 1


def test_settings_of_the_context_and_the_process() -> None:
    f = ad.compile(lambda x: (x * 2, x.astype("float32") * ad.ones(2)))
    inside = ad.compile(lambda x: f(x)[0].sum())

    def everywhere() -> None:
        for _ in range(4):
            for x in (t(), X):
                same(f, x)
                same(inside, x)

    device, dtype = ad.default_device(), ad.default_dtype()
    everywhere()
    with ad.use_device("numpy"):
        everywhere()
        with ad.use_dtype("float64"):
            everywhere()
        everywhere()
    with ad.use_dtype("float64"), ad.use_dtype("float32"):
        everywhere()
    everywhere()
    try:
        ad.set_default_device("numpy")
        everywhere()
        ad.set_default_dtype("float64")
        everywhere()
        ad.set_default_device(device)
        everywhere()
    finally:
        ad.set_default_device(device)
        ad.set_default_dtype(dtype)
    everywhere()
    for _ in range(4):
        for g in (ad.grad(lambda x: f(x)[0].sum()), ad.vmap(lambda x: f(x)[0].sum()), ad.hessian(inside)):
            x = np.ones((3, 2)) if "vmap" in g.__name__ else X
            np.testing.assert_array_equal(g(x), plain(g, x))
    everywhere()


def test_a_device_of_a_block_is_seen_each_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ad.compile(lambda x: x * ad.ones(2))
    for k in range(6):
        with ad.use_device("numpy"), nothing_is_read_from_scratch(monkeypatch) if k > 2 else contextlib.nullcontext():
            np.testing.assert_array_equal(f(X), X)


def test_a_list_of_results_is_new_each_time() -> None:
    f = ad.compile(lambda x: {"a": [x * 2], "b": x, "c": (ad.ones(2), 1, np.ones(2))})
    for give in (lambda: X, t):
        first = f(give())
        for _ in range(5):
            found, x = f(give()), give()
            alike(found, plain(f, x))
            assert found is not first
            assert found["a"] is not first["a"]
            assert list(found) == ["a", "b", "c"]
            assert found["c"][2] is not first["c"][2]
            found["a"].append(1)
            for y in ad.tree.leaves(found):
                if isinstance(y, np.ndarray):
                    assert not np.shares_memory(y, X)
                    y[...] = 7.0


def test_it_lives_as_long_as_its_function() -> None:
    import gc
    import weakref

    def made() -> Any:
        w = t()
        f = ad.compile(lambda x: x * w)
        for _ in range(4):
            f(t())
        return weakref.ref(w), weakref.ref(f)

    gc.disable()
    try:
        gone = made()
        assert [x() for x in gone] == [None, None]
    finally:
        gc.enable()


def test_a_number_that_comes_back_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the function and its module all is read after a change, and not again in each call."""
    space: dict[str, Any] = {"rate": 0.5}
    exec("def f(x):\n    return x * rate", space)
    f, x = ad.compile(space["f"]), ad.tensor([1.0, 2.0])
    for rate in (0.5, 0.25, 0.125):
        space["rate"] = rate
        for _ in range(3):
            f(x)
    space["rate"] = 0.5
    f(x)
    read: list[Any] = []
    monkeypatch.setattr(again, "Environment", lambda *args: read.append(args) or Environment(*args))
    assert [f(x).tolist() for _ in range(5)] == [[0.5, 1.0]] * 5
    assert not read
