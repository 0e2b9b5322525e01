"""What compiled functions refuse: who asks for a value, or changes what is outside, is told where, and the way out."""

from __future__ import annotations

import array
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


def _no_numbers() -> dict[str, Any]:
    import scipy.sparse

    found = {
        "objects": np.array([1.0, 2.0], dtype=object),
        "tensors": np.array([ad.tensor(1.0), None], dtype=object),
        "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
        "a masked number": np.ma.array(1.0, mask=True),
        "nothing masked": np.ma.array([1.0, 2.0]),
        "long double": np.array([1.0, 2.0], np.longdouble),
        "one long double": np.longdouble(1.5),
        "complex long double": np.array([1.0], np.clongdouble),
        "a structure": np.zeros(2, [("a", float), ("b", int)]),
        "an entry of a structure": np.zeros(2, [("a", float), ("b", int)])[0],
        "bytes of memory": np.zeros(2, "V4"),
        "strings": np.array(["1", "2"]),
        "byte strings": np.array([b"1", b"2"]),
        "dates": np.array(["2020-01-01"], "M8[D]"),
        "times": np.array([1, 2], "m8[s]"),
        "buffer": array.array("d", [1.0, 2.0]),
        "view": memoryview(bytearray(b"ab")),
        "sparse": scipy.sparse.csr_matrix(np.eye(2)),
        "a sparse array": scipy.sparse.coo_array(np.eye(2)),
    }
    if hasattr(np.dtypes, "StringDType"):
        found["strings of any length"] = np.array(["a", "b"], np.dtypes.StringDType())
    return found


NO_NUMBERS = _no_numbers()
CALLS: dict[str, Any] = {
    "compiled": lambda f, x: ad.compile(f)(x),
    "compiled gradient": lambda f, x: ad.compile(ad.grad(f))(x),
    "gradient": lambda f, x: ad.grad(ad.compile(f))(x),
    "compiled batch": lambda f, x: ad.compile(ad.vmap(f))(x),
    "batch": lambda f, x: ad.vmap(ad.compile(f))(x),
    "second": lambda f, x: ad.compile(lambda y, x: f(x) * y)(X, x),
    "gradient by another": lambda f, x: ad.grad(ad.compile(lambda y, x: (f(x) * y).sum()))(X, x),
    "in a tree": lambda f, x: ad.compile(lambda tree: f(tree["x"]))({"x": x}),
    "by name": lambda f, x: ad.compile(lambda *, x: f(x))(x=x),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_array_of_numbers(kind: str, call: str) -> None:
    """It is refused with the type of error that there is without compiling, which says which argument it is."""
    x = NO_NUMBERS[kind]
    with pytest.raises(errors.DtypeError):
        ad.sin(x)
    with pytest.raises((errors.DtypeError, errors.ArgumentTypeError, errors.AxisError)) as caught:
        CALLS[call](lambda x: ad.sin(x).sum(), x)
    assert "argument" in str(caught.value)
    if "gradient" in call.split() or "batch" in call.split():  # where transforms refuse it
        transform = ad.vmap if "batch" in call else ad.grad
        with pytest.raises(errors.AdjointError) as plain:
            transform(lambda x: ad.sin(x).sum())(x)
        assert call == "gradient by another" or caught.type is plain.type
    if call not in ("gradient", "batch", "compiled gradient", "compiled batch"):
        assert caught.type is errors.DtypeError
        assert any(
            x in str(caught.value) for x in ("pass", "x.astype", "x['a']", "/ np.", "the dtypes are")
        )  # the way out


WRONG: dict[str, Any] = {
    "a set": {1.0},
    "strings": np.array(["a"]),
    "objects": np.array([1, None], object),
    "masked": np.ma.masked_array([1.0, 2.0], [0, 1]),
    "long doubles": np.zeros(2, np.longdouble),
    "a slice": slice(0, 2),
    "None": None,
    "a string": "abc",
    "an object": object(),
    "a number": 1.5,
    "an integer": 3,
    "complex numbers": np.array([1j, 2.0]),
    "integers": np.array([1, 2]),
    "truths": np.array([True, False]),
    "none": np.zeros(0),
    "rows of two lengths": [np.ones(2), np.ones(3)],
    "a mapping of strings": {"a": 1.0, "b": "c"},
    "a large integer": 10**400,
    "a type": int,
    "a matrix": np.ones((2, 3)),
}
WRONG_WAYS: dict[str, Any] = {
    "vmap": lambda f: ad.vmap(f),
    "an axis that is not there": lambda f: ad.vmap(f, in_axes=3),
    "axes of two arguments": lambda f: ad.vmap(f, in_axes=(0, 0)),
    "grad": lambda f: ad.grad(lambda x: ad.sum(f(x))),
    "an argument that is not there": lambda f: ad.grad(f, 1),
    "of no number": lambda f: ad.grad(f),
    "jacobian": lambda f: ad.jacobian(f),
    "hessian": lambda f: ad.hessian(lambda x: ad.sum(f(x))),
    "each": lambda f: ad.vmap(ad.grad(lambda x: ad.sum(f(x)))),
}


@pytest.mark.parametrize("way", WRONG_WAYS)
@pytest.mark.parametrize("part", [lambda x: ad.sin(x), lambda x: x * 2.0, lambda x: None, lambda x: x[9]])
def test_compiled_transforms_raise_what_they_raise_as_they_are(part: Any, way: str) -> None:
    for kind, x in WRONG.items():
        found: list[Any] = []
        for f in (WRONG_WAYS[way](part), ad.compile(WRONG_WAYS[way](part)), WRONG_WAYS[way](ad.compile(part))):
            try:
                f(x)
                found.append("a result")
            except Exception as error:
                found.append(type(error))
        assert found[1] is found[2] is found[0], (kind, found)


def test_single_strings_and_dates_are_parts_of_the_recording() -> None:
    f = ad.compile(lambda x, mode, when: x * 2 if mode == "twice" and when > np.datetime64("2020-01-01") else x)
    for when in (np.datetime64("2021-01-01"), np.datetime64("2021-01-01", "ns"), np.datetime64("NaT")):
        for mode in (np.str_("twice"), np.bytes_(b"twice")):
            for _ in range(4):
                scale = 2 if mode == "twice" and when > np.datetime64("2020-01-01") else 1
                np.testing.assert_array_equal(f(X, mode, when), X * scale)
    with pytest.raises(errors.DtypeError, match="sin: expected numbers or booleans, received np.datetime64"):
        ad.compile(ad.sin)(np.datetime64("2021-01-01"))
    assert isinstance(ad.compile(lambda n, mode: ad.ones(n))(2, np.str_("a")), ad.Tensor)


def test_numbers_of_numpy_around_a_function_count_with_their_signs() -> None:
    r = np.float64(0.0)
    f = ad.compile(lambda x: ad.copysign(x, r))
    for r in (np.float64(0.0), np.float64(-0.0), np.float64(0.0), np.float64(-0.0)):
        np.testing.assert_array_equal(f(X), np.copysign(X, r))


class Foreign:
    """An array of some library, which equals others element by element."""

    shape, dtype = (3,), np.dtype(np.float64)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3)

    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth of several elements")

    __hash__ = object.__hash__


def test_arrays_of_other_libraries_are_no_settings() -> None:
    import adjoint.torch

    for x in (Foreign(), adjoint.torch.ones(3), adjoint.torch.ones(3, requires_grad=True)):
        f = ad.compile(lambda x: x)
        for _ in range(2):
            with pytest.raises(errors.DtypeError, match=r"argument 0 is .* which is no array; pass np.asarray\(x\)"):
                f(x)
