"""What compiled functions refuse: who asks for a value, or changes what is outside, is told where, and the way out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

X = np.array([0.5, 1.5, 2.5])
OUTSIDE = ad.tensor([1.0, 2.0])
SEEN: list[Any] = []
TABLE = {"a": [1]}
COUNT = 0


def raised(f: Any, *args: Any) -> tuple[type[Exception], str]:
    with pytest.raises(errors.AdjointError) as caught:
        ad.compile(f)(*args)
    return caught.type, str(caught.value)


SIZES: dict[str, Any] = {
    "zeros": lambda x, n: ad.zeros(n),  # here
    "zeros of two axes": lambda x, n: ad.zeros((n, 2)),  # here
    "full": lambda x, n: ad.full((n,), 2.0),  # here
    "eye": lambda x, n: ad.eye(n),  # here
    "linspace": lambda x, n: ad.linspace(0, 1, n),  # here
    "arange": lambda x, n: ad.arange(n),  # here
    "reshape": lambda x, n: x.reshape((n, 1)),  # here
    "tile": lambda x, n: ad.tile(x, n),  # here
    "roll": lambda x, n: ad.roll(x, n),  # here
    "axis": lambda x, n: x.sum(axis=n),  # here
    "topk": lambda x, n: ad.topk(x, n),  # here
    "one_hot": lambda x, n: ad.one_hot(ad.tensor([0]), n),  # here
    "random": lambda x, n: ad.random.normal(n),  # here
    "split": lambda x, n: ad.split(x, n),  # here
}


@pytest.mark.parametrize("name", SIZES)
def test_a_tensor_is_no_number_of_pythons(name: str) -> None:
    f, n = SIZES[name], ad.tensor(3)
    with pytest.raises(errors.AdjointError) as eager:
        f(ad.tensor(X), n)
    kind, text = raised(f, ad.tensor(X), n)
    assert kind is eager.type
    assert "pass a Python number among the arguments" in text
    assert text.count("\n  at ") == 1
    assert text.endswith("# here")


VALUES: dict[str, Any] = {
    "range": ("the value as a size", lambda x, n: list(range(n))),  # here
    "slice": ("the value as a bound of a slice", lambda x, n: x[:n]),  # here
    "list": ("the value as a size or an index", lambda x, n: [1, 2, 3, 4][n]),  # here
    "array": ("float(...)", lambda x, n: np.zeros(3).__setitem__(0, x[0])),  # here
}


@pytest.mark.parametrize("name", VALUES)
def test_who_asks_for_a_value_is_told_the_line(name: str) -> None:
    asked, f = VALUES[name]
    f(ad.tensor(X), ad.tensor(2))
    kind, text = raised(f, ad.tensor(X), ad.tensor(2))
    assert kind is errors.TrackedError
    assert text.startswith(asked)
    assert "ad.while_loop" in text
    assert text.endswith("# here")


def test_errors_of_the_users_stay() -> None:
    def f(x: Any) -> Any:
        try:
            return x.item()
        except errors.TrackedError:
            raise ValueError("mine") from None

    def g(x: Any) -> Any:
        try:
            return x.item()
        except errors.TrackedError as error:
            raise KeyError("mine") from error

    for h, kind in ((f, ValueError), (g, KeyError)):
        with pytest.raises(kind, match="mine"):
            ad.compile(h)(ad.tensor(1.0))


def element(x: Any) -> Any:
    x[0] = 1.0  # here
    return x


def in_place(x: Any) -> Any:
    x += 1.0  # here
    return x


def of_a_helper(x: Any) -> Any:
    x[1:] = element(x.copy())[:2]  # here
    return x


def of_the_module(x: Any) -> Any:
    OUTSIDE[0] = x[0]  # here
    return x


@pytest.mark.parametrize("f", [element, in_place, of_a_helper, of_the_module], ids=lambda f: f.__name__)
@pytest.mark.parametrize("around", [lambda f: f, lambda f: ad.grad(lambda x: f(x).sum())], ids=["alone", "grad"])
def test_assignments_to_what_is_outside_are_refused_with_their_line(f: Any, around: Any) -> None:
    with pytest.raises(errors.AdjointError, match=r"return it\n  at .*# here$"):
        around(ad.compile(f))(ad.tensor(X))
    assert OUTSIDE.tolist() == [1.0, 2.0]


def fills(x: Any) -> Any:
    SEEN.append(x * 2)  # here
    return x


def sets(x: Any) -> Any:
    size = len(TABLE)
    TABLE["a"].append(size)  # here
    return x


def counts(x: Any) -> Any:
    global COUNT
    if COUNT < 100:
        COUNT += 1  # here
    return x


def helped(x: Any) -> Any:
    return fills(x) + 1


def keeps(x: Any) -> Any:
    TABLE["b"] = x * 2  # here
    return x


def counts_in_its_closure() -> Any:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1  # here
        return x * count

    return f


def assigns(x: Any) -> Any:
    OUTSIDE[0] = 3.0
    return x


@pytest.mark.parametrize(
    ("f", "name"),
    [
        *((fills, "SEEN"), (sets, "TABLE"), (counts, "COUNT"), (counts_in_its_closure(), "count")),
        *((helped, "SEEN"), (keeps, "TABLE")),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_what_a_function_changes_outside_is_named(f: Any, name: str) -> None:
    SEEN.clear()
    TABLE.pop("b", None)
    kind, text = raised(f, X)
    assert kind is errors.TrackedError
    assert f"changes {name!r}, which is outside of it" in text
    assert text.endswith("# here")


class Found:
    """No tree of tensors."""

    def __init__(self, value: Any) -> None:
        self.value = value


class FoundInSlots:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (Found, "Found"),
        (lambda x: (x, FoundInSlots(x * 2)), "FoundInSlots"),
        (lambda x: {"a": Found([x * 2])}, "Found"),
        (lambda x: lambda: x * 2, "function"),
        (lambda x: functools.partial(ad.sin, x * 2), "partial"),
        (lambda x: {1.0, Found(x)}, "set"),
        (lambda x: (w := x.require_grad(), (w * w).sum().backward())[1], "Gradients"),
    ],
)
def test_results_that_hide_tensors_are_refused(f: Any, kind: str) -> None:
    error, text = raised(f, X)
    assert error is errors.ArgumentTypeError
    assert f"returns {kind}, which is no pytree and holds tensors" in text
    assert ad.compile(lambda x: (x, Found(3)))(X)[1].value == 3
    assert ad.compile(lambda x: (x, lambda: 3))(X)[1]() == 3


def test_assignment_to_a_tensor_of_the_module_is_named() -> None:
    kind, text = raised(assigns, X)
    assert kind is errors.TrackedError
    assert "assigns to a tensor that the function closes over" in text
    assert "OUTSIDE[0] = 3.0" in text
    assert OUTSIDE.tolist() == [1.0, 2.0]


class Holder:
    """An object that compiled functions write to."""

    seen: Any = None


def test_a_leaked_tensor_has_no_values() -> None:
    holder = Holder()

    def leaks(x: Any) -> Any:
        holder.seen = x * 2
        return x

    ad.compile(leaks)(X)
    for asks in (lambda x: x + 1, lambda x: x.numpy(), lambda x: float(x[0]), lambda x: bool(x.any())):
        with pytest.raises(errors.EndedError, match="a tensor of leaks, .* used after that; only what the function"):
            asks(holder.seen)


def test_bounds_of_slices_say_what_is_wrong() -> None:
    x = ad.tensor(X)
    for bound in (1.5, "a", ad.tensor([1, 2])):
        with pytest.raises(errors.OutOfRangeError, match="slice bounds are integers or None"):
            x[:bound]
    with pytest.raises(errors.OutOfRangeError, match="step must not be zero"):
        x[::0]
