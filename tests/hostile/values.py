"""What the calls are made of, and what is put in the place of their arguments."""

from __future__ import annotations

import array
import collections
import decimal
import fractions
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad

X = np.array([0.5, -1.5, 2.0, 0.25])
LEAF = ad.NumPy()
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])


def _twice(x: Any, *rest: Any) -> Any:
    return 2.0 * x


def _patient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a loop, which may go on for ever: after some steps it has enough."""
    steps = itertools.count()

    def run(*args: Any) -> Any:
        if next(steps) == 100:
            raise StopIteration
        return f(*args)

    return run


def _random(*shape: int) -> Any:
    return ad.tensor(np.random.default_rng(0).uniform(0.1, 0.9, shape))


def _tracked() -> Any:
    return ad.tensor([0.5, 1.0], device="autodiff<numpy>").require_grad()


def _whole(x: Any) -> Any:
    return (x * x).sum()


# the names in calls; each is made anew, because a call may assign to it, or use it up
NAMES: dict[str, Callable[[], Any]] = {
    "V": lambda: ad.tensor(X),
    "M": lambda: ad.tensor(MATRIX),
    "ROW": lambda: ad.tensor([0.5, 1.0, 2.0], dtype=ad.float64),
    "COPY": lambda: ad.tensor(MATRIX),
    "CUBE": lambda: _random(2, 3, 3),
    "ONE": lambda: ad.tensor(1.5),
    "I": lambda: ad.tensor([0, 2, 1, 2]),
    "A": lambda: X,
    "POSITIVE": lambda: ad.tensor([0.5, 1.5, 2.0, 0.25], dtype=ad.float64),
    "UNIT": lambda: ad.tensor([0.5, 0.25, 0.75, 0.1], dtype=ad.float64),
    "SIGNS": lambda: ad.tensor([1.0, -1.0, 1.0], dtype=ad.float64),
    "CLASSES": lambda: ad.tensor([0, 2, 1]),
    "OFFSETS": lambda: _random(1, 8, 3, 3),
    "EVENT": lambda: lambda y, t, *rest: y.sum() - 1.0,
    "TIMES": lambda: np.array([0.0, 0.1, 0.2]),
    "SEQUENCE": lambda: _random(1, 2, 6),
    "IMAGE": lambda: _random(1, 2, 4, 4),
    "VOLUME": lambda: _random(1, 2, 4, 4, 4),
    "PIXELS": lambda: _random(1, 4, 4, 4),
    "KERNEL1": lambda: _random(2, 2, 2),
    "KERNEL2": lambda: _random(2, 2, 2, 2),
    "KERNEL3": lambda: _random(2, 2, 2, 2, 2),
    "COLUMNS": lambda: _random(1, 4, 4),
    "THETA": lambda: _random(1, 2, 3),
    "GRID": lambda: _random(1, 2, 2, 2),
    "CTC": lambda: _random(3, 1, 4),
    "PLACES1": lambda: ad.tensor(np.arange(12).reshape(1, 2, 6) % 6),
    "PLACES2": lambda: ad.tensor(np.arange(32).reshape(1, 2, 4, 4) % 16),
    "PLACES3": lambda: ad.tensor(np.arange(128).reshape(1, 2, 4, 4, 4) % 64),
    "SIGNAL": lambda: _random(32),
    "SPECTRUM": lambda: ad.tensor(np.full((5, 7), 0.5) + 0j),
    "TRACKED": lambda: _tracked(),
    "LOSS": lambda: _whole(_tracked()),
    "GRADIENTS": lambda: _whole(_tracked()).backward(),
    "STRUCTURE": lambda: ad.tree.structure([1.0, 2.0]),
    "LEAF": lambda: LEAF,
    "NUMPY": lambda: np,
    "F32": lambda: ad.float32,
    "F64": lambda: ad.float64,
    "F": lambda: lambda *xs: xs[0] * xs[0],
    "G": lambda: lambda *xs: (xs[0] * xs[0]).sum(),
    "EACH": lambda: _patient(lambda x: x * x),
    "TWICE": lambda: _twice,
    "HALF": lambda: lambda x, *rest: 0.5 * x + 1.0,
    "BOWL": lambda: lambda x, *rest: ((x - 1.0) ** 2).sum(),
    "LOOP": lambda: _patient(lambda i, x: x + 1.0),
    "STOP": lambda: _patient(lambda x: x.sum() < 2.0),
    "STEP": lambda: _patient(lambda carry, x: (carry + x, carry * x)),
    "ODE": lambda: lambda y, t, *rest: -y,
    "MODEL": lambda: lambda x, *a, **b: (a or list(b.values()))[0] * x,
    "NF": lambda: lambda x: np.asarray(x) * 2.0,
    "NG": lambda: lambda g, x: g * 2.0,
    "NOTHING": lambda: lambda *xs: None,
}


class Scope(dict[str, Any]):
    """The names in calls, made when they are asked for."""

    def __missing__(self, name: str) -> Any:
        return NAMES[name]()


def _generator() -> Any:
    yield from (1.0, 2.0)


class Pretending:
    """Says that it has a shape and a dtype, and has no values."""

    shape = "shape"
    dtype = "float32"
    ndim = None


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


def returning(value: Any) -> Callable[..., Any]:
    """A function that returns this, whatever it is called with."""
    return lambda *args, **options: value


def _ended() -> Any:
    kept = []
    ad.grad(lambda x: kept.append(x) or (x * x).sum())(np.ones(4))
    return kept[0]


def _itself() -> Any:
    found: list[Any] = [1.0]
    found.append(found)
    return found


def _named() -> Any:
    found: dict[str, Any] = {}
    found["a"] = found
    return found


def deep() -> Any:
    found: Any = 1.0
    for _ in range(2000):
        found = [found]
    return found


NUMBERS: dict[str, Callable[[], Any]] = {
    repr(value): lambda value=value: value
    for value in (
        0, -1, 1, 3, 2**16, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**20, -(10**20), 10**30,
        True, False, 0.0, -0.0, 0.5, 1.5, -2.5, float("nan"), float("inf"), -float("inf"), 1e-310, 5e-324, 1e308, 1j,
        complex("nan"),
    )
} | {
    "10**5000": lambda: 10**5000,
    "-(10**5000)": lambda: -(10**5000),
}  # fmt: skip

SEQUENCES: dict[str, Callable[[], Any]] = {
    "()": tuple,
    "[]": list,
    "{}": dict,
    "set()": set,
    "{1, 2}": lambda: {1, 2},
    "{'a': 1.0}": lambda: {"a": 1.0},
    "[[]]": lambda: [[]],
    "ragged": lambda: [[1, 2], [3]],
    "ragged floats": lambda: [[1.0, 2.0], [3.0]],
    "(0,)": lambda: (0,),
    "(-1,)": lambda: (-1,),
    "(0, 0)": lambda: (0, 0),
    "(0, 1)": lambda: (0, 1),
    "(2, 3)": lambda: (2, 3),
    "(-1, 2)": lambda: (-1, 2),
    "(1.5, 2)": lambda: (1.5, 2),
    "(None, 1)": lambda: (None, 1),
    "('a', 'b')": lambda: ("a", "b"),
    "(2**40, 2**40)": lambda: (2**40, 2**40),
    "(2**62, 0)": lambda: (2**62, 0),
    "(10**30, 0)": lambda: (10**30, 0),
    "(10**30, 2)": lambda: (10**30, 2),
    "(True, False)": lambda: (True, False),
    "(nan,)": lambda: (float("nan"),),
    "(1,) * 100": lambda: (1,) * 100,
    "[1] * 400": lambda: [1] * 400,
    "[None]": lambda: [None],
    "[None, 1.0]": lambda: [None, 1.0],
    "[[1.0, 'a']]": lambda: [[1.0, "a"]],
    "[object()]": lambda: [object()],
    "itself": _itself,
    "a dict of itself": _named,
    "2,000 lists": deep,
    "range(3)": lambda: range(3),
    "range(10**12)": lambda: range(10**12),
    "generator": _generator,
    "iterator": lambda: iter([1.0, 2.0]),
    "deque": lambda: collections.deque([1, 2]),
    "array.array": lambda: array.array("d", [1.0, 2.0]),
    "memoryview": lambda: memoryview(b"ab"),
    "bytearray": lambda: bytearray(b"ab"),
}

OBJECTS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "''": lambda: "",
    "'a'": lambda: "a",
    "'1'": lambda: "1",
    "'sum'": lambda: "sum",
    "'float32'": lambda: "float32",
    "'torch:nowhere'": lambda: "torch:nowhere",
    "'a' * 10**6": lambda: "a" * 10**6,
    "surrogate": lambda: "\udc80",
    "null": lambda: "a\0b",
    "b'ab'": lambda: b"ab",
    "...": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "slice(None)": lambda: slice(None),
    "slice('a', 1.5)": lambda: slice("a", 1.5),
    "object()": object,
    "class": lambda: Pretending,
    "int": lambda: int,
    "module": lambda: types,
    "Pretending()": Pretending,
    "Unhashable()": Unhashable,
    "Decimal": lambda: decimal.Decimal("1.5"),
    "Fraction": lambda: fractions.Fraction(1, 2),
    "error": lambda: ValueError("a"),
    "backend": lambda: LEAF,
    "dtype": lambda: ad.float32,
    "lambda": lambda: lambda *args, **options: None,
}

ARRAYS: dict[str, Callable[[], Any]] = {
    "int64(3)": lambda: np.int64(3),
    "uint8(3)": lambda: np.uint8(3),
    "float32(0.5)": lambda: np.float32(0.5),
    "bool_(True)": lambda: np.bool_(True),
    "longdouble(1)": lambda: np.longdouble(1),
    "str_('a')": lambda: np.str_("a"),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "array(2)": lambda: np.array(2),
    "array(2.5)": lambda: np.array(2.5),
    "array(nan)": lambda: np.array(np.nan),
    "array(None)": lambda: np.array(None),
    "array(['a', 'b'])": lambda: np.array(["a", "b"]),
    "array([b'a'])": lambda: np.array([b"a"]),
    "objects": lambda: np.array([object(), 1.0], dtype=object),
    "numbers as objects": lambda: np.array([1.0, 2], dtype=object),
    "huge integers": lambda: np.array([10**30, 1]),
    "structured": lambda: np.zeros(4, dtype=[("a", "f8"), ("b", "i4")]),
    "datetimes": lambda: np.array(["2020-01-01"] * 4, dtype="datetime64[D]"),
    "timedeltas": lambda: np.zeros(4, dtype="timedelta64[s]"),
    "masked": lambda: np.ma.array([1.0, 2.0], mask=[True, False]),
    "matrix of NumPy": lambda: np.ones((3, 3)).view(np.recarray),
    "empty": lambda: np.zeros(0),
    "empty integers": lambda: np.zeros(0, dtype=np.int64),
    "(3, 0)": lambda: np.zeros((3, 0)),
    "integers": lambda: np.array([0, 2, 1, 2]),
    "booleans": lambda: np.array([True, False, True, True]),
    "complex": lambda: np.array([1j, 2.0, -1j, 0.5]),
    "nans": lambda: np.full(4, np.nan),
    "negative integers": lambda: np.array([-1, -5]),
    "large integers": lambda: np.array([2**62, -(2**63)]),
    "uint64": lambda: np.array([2**64 - 1], dtype=np.uint64),
    "swapped": lambda: np.arange(4.0).astype(">f8"),
    "float16": lambda: np.ones(4, dtype=np.float16),
    "longdoubles": lambda: np.ones(4, dtype=np.longdouble),
    "broadcast": lambda: np.broadcast_to(1.0, (2**40,))[:4],
    "32 axes": lambda: np.ones((1,) * 32),
    "64 axes": lambda: np.ones((1,) * 64),
    "matrix": lambda: np.ones((3, 3)),
    "cube": lambda: np.ones((2, 3, 3)),
}

TENSORS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: ad.tensor([1.0, 2.0, 3.0]),
    "0-d tensor": lambda: ad.tensor(1.0),
    "tensor of an integer": lambda: ad.tensor(2),
    "tensor of a boolean": lambda: ad.tensor(True),
    "tensor of integers": lambda: ad.tensor([1, 0, 2, 1]),
    "tensor of booleans": lambda: ad.tensor([True, False, True, True]),
    "tensor of complex numbers": lambda: ad.tensor([1j, 1.0, 2.0, 0.0]),
    "tensor of nothing": lambda: ad.zeros((0,)),
    "tensor of no rows": lambda: ad.zeros((0, 3)),
    "tensor of no columns": lambda: ad.zeros((3, 0)),
    "tensor of nan": lambda: ad.tensor([float("nan")] * 4),
    "tensor of bytes": lambda: ad.tensor(np.arange(4, dtype=np.uint8)),
    "tensor of halves": lambda: ad.tensor(np.ones(4, dtype=np.float16)),
    "tensor of 64 axes": lambda: ad.tensor(np.ones((1,) * 64)),
    "tensor of many empty rows": lambda: ad.zeros((2**40, 0)),
    "tracked tensor": lambda: ad.tensor(X).require_grad(),
    "tracked number": lambda: ad.tensor(1.0).require_grad(),
    "tracked matrix": lambda: ad.tensor(MATRIX).require_grad(),
    "ended tensor": _ended,
    "tensor of the leaf": lambda: ad.tensor(X, device=LEAF),
    "tensor of another leaf": lambda: ad.tensor(X, device="reference"),
    "tracked tensor of another leaf": lambda: ad.tensor(X, device="autodiff<reference>").require_grad(),
    "list of tensors": lambda: [ad.tensor(1.0), ad.tensor(2.0)],
    "list of a tracked tensor": lambda: [ad.tensor(1.0).require_grad(), 2],
    "ragged tensors": lambda: [ad.tensor([1.0]), 2.0],
    "array of tensors": lambda: _objects(ad.tensor(1.0), ad.tensor(2.0)),
}


def _objects(*values: Any) -> Any:
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


HOSTILE: dict[str, Callable[[], Any]] = {**NUMBERS, **SEQUENCES, **OBJECTS, **ARRAYS, **TENSORS}
