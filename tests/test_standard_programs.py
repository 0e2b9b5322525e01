"""Random calls of the standard's functions: every leaf gives what array_api_strict gives, in value, dtype and shape."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from functions.draw import Draw, Shape
from hypothesis import given, settings
from hypothesis import strategies as st
from test_leaf_backends import LEAVES, MARKS, as_leaves_are  # noqa: F401 (a fixture)
from test_standard import DTYPES, FFT, FLOATING, FUNCTIONS, INTEGERS, LINALG

import adjoint as ad
from adjoint import errors

strict = peer("array_api_strict")

REAL = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Program(Draw):
    """Arguments of one call; arrays are NumPy's until a library is known."""

    def values(self, shape: Shape, dtype: str, finite: bool = False) -> Any:
        kind = np.dtype(dtype).kind
        pool: list[Any] = [0, 1, 2, 3, 7] + [-1, -2, -5] * (kind != "u")
        if kind in "fc":
            pool += [0.5, -1.5, 2.5, 0.3] + [-0.0, np.inf, -np.inf, np.nan] * (kind == "f" and not finite)
        out = self.rng.choice(pool, shape)
        if kind == "c":
            out = out + 1j * self.rng.choice([-2.0, 0.5, 1.0, 3.0], shape)
        return self.lay(out.astype(dtype))

    def dtype(self, *kinds: Any) -> str:
        return str(self.pick(*(kinds or DTYPES)))

    def wider(self, x: Any) -> str:
        """A dtype to sum in: what unsigned integers negative floating numbers become is open."""
        return self.dtype(*FLOATING, *(INTEGERS if x.dtype.kind in "iu" else []))

    def one(self, *kinds: Any, least: int = 0, finite: bool = False, sizes: tuple[int, ...] = (3, 1, 2, 0)) -> Any:
        return self.values(self.shape(least, sizes=sizes), self.dtype(*kinds), finite)

    def two(self, *kinds: Any, finite: bool = False) -> list[Any]:
        """Two that broadcast; the second may be of another dtype, or a number."""
        first = self.dtype(*kinds)
        second = self.pick(first, first, self.dtype(*kinds))
        return [self.values(s, d, finite) for s, d in zip(self.shapes(2), (first, second), strict=True)]

    def matrix(self, *kinds: Any, square: bool = True, definite: bool = False) -> Any:
        """Finite, and far from singular."""
        stack, n = self.pick((), (), (2,), (0,), (2, 1)), self.pick(3, 1, 2, 0 if square and not definite else 2)
        m = n if square else self.pick(1, 2, 4)
        dtype = np.dtype(self.dtype(*kinds or FLOATING))
        x = self.rng.uniform(-1, 1, (*stack, n, m))
        x = x + 1j * self.rng.uniform(-1, 1, x.shape) if dtype.kind == "c" else x
        if definite:
            x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(n)
        elif square:
            x = x + 3 * np.eye(n)
        return x.astype(dtype)


# for functions of any, so that most calls are those of dtypes that they take
KINDS = (FLOATING, REAL, [*INTEGERS, *REAL], ["bool"])


def _unary(p: Program) -> Call:
    return (p.one(*p.pick(*KINDS)),), {}


def _binary(p: Program) -> Call:
    return tuple(p.two(*p.pick(*KINDS))), {}


def _logical(p: Program) -> Call:
    return tuple(p.two("bool")), {}


def _quotient(p: Program) -> Call:
    return tuple(p.two(*p.pick(INTEGERS, REAL), finite=True)), {}  # beside infinities there is a choice


def _divided(p: Program) -> Call:
    x, y = p.two(*p.pick(*KINDS))
    if np.iscomplexobj(x) or np.iscomplexobj(y):  # over zero, which infinities come is open
        y = np.where(y == 0, np.asarray(2, y.dtype), y)
    return (x, y), {}


def _shift(p: Program) -> Call:
    x, y = p.two(*INTEGERS)
    return (x, np.abs(y)), {}


def _power(p: Program) -> Call:
    x, y = p.two(*INTEGERS, *FLOATING, finite=True)
    return (x, np.abs(y) if y.dtype.kind == "i" else y), {}


def _clip(p: Program) -> Call:
    x = p.one(*INTEGERS, *REAL)
    low, high = (p.pick(None, n, p.values((), x.dtype.name)) for n in (0, 3))
    return (x, low, high), {}


def _reduced(p: Program) -> Call:
    x = p.one()
    return (x,), {"axis": p.axes(x.shape), "keepdims": p.pick(False, True)}


def _total(p: Program) -> Call:
    x = p.one(finite=True)  # of infinities there are no integers
    how = {"axis": p.axes(x.shape), "keepdims": p.pick(False, True)}
    return (x,), how | p.pick({}, {}, {"dtype": p.wider(x)})


def _spread(p: Program) -> Call:
    x = p.one(*REAL)
    return (x,), {"axis": p.axes(x.shape), "keepdims": p.pick(False, True), "correction": p.pick(0, 1, 0.5)}


def _along(p: Program) -> Call:
    x = p.one(*INTEGERS, *FLOATING, least=1)
    return (x,), {"axis": p.axis(x.shape)}


def _arg(p: Program) -> Call:
    x = p.one(*INTEGERS, *REAL, least=1, sizes=(3, 1, 2))
    return (x,), {"axis": p.pick(None, p.axis(x.shape)), "keepdims": p.pick(False, True)}


def _cumulative(p: Program) -> Call:
    x = p.one(*INTEGERS, *FLOATING, least=1, finite=True)
    how = {"axis": p.axis(x.shape)}
    return (x,), how | {"include_initial": p.pick(False, True)} | p.pick({}, {"dtype": p.wider(x)})


def _sort(p: Program) -> Call:
    x = p.one(*INTEGERS, *REAL, least=1)
    x = np.where(np.isnan(x), np.asarray(1, x.dtype), x) if x.dtype.kind == "f" else x  # the place of nan is open
    return (x,), {"axis": p.axis(x.shape), "descending": p.pick(False, True)}


def _diff(p: Program) -> Call:
    (x,), how = _along(p)
    ends = p.pick({}, {"prepend": x}, {"append": x})
    return (x,), how | {"n": p.pick(1, 2, 0)} | ends


def _like(p: Program) -> Call:
    return (p.one(),), p.pick({}, {"dtype": p.dtype()})


def _made(p: Program) -> Call:
    return (p.pick(p.shape(), 3),), p.pick({}, {"dtype": p.dtype()})


def _indexed(p: Program) -> Call:
    x = p.one(least=1, sizes=(3, 1, 2))
    axis = p.axis(x.shape)
    places = p.rng.integers(-x.shape[axis], x.shape[axis], p.pick(0, 1, 4))
    return (x, places.astype(p.dtype("int64", "int32", "int8"))), {"axis": axis}


def _gathered(p: Program) -> Call:
    x = p.one(least=1, sizes=(3, 1, 2))
    axis = p.axis(x.shape)
    shape = list(x.shape)
    shape[axis] = p.pick(1, 4)
    return (x, p.rng.integers(-x.shape[axis], x.shape[axis], shape)), {"axis": axis}


def _where(p: Program) -> Call:
    x, y = p.two()
    return (p.values(p.pick((), np.broadcast_shapes(x.shape, y.shape)), "bool"), x, y), {}


def _search(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS, *REAL)
    line, wanted = np.sort(p.values((p.pick(3, 1, 5),), dtype, True)), p.values(p.shape(), dtype, True)
    if p.pick(False, True):
        return (line, wanted), {"side": p.pick("left", "right")}
    order = p.rng.permutation(line.size)
    return (line[np.argsort(order)], wanted), {"sorter": order}


def _isin(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS)
    return (p.one(dtype), p.pick(p.one(dtype), 1)), {}  # array_api_strict 2.6.1 overlooks `invert`


def _sums(p: Program) -> Call:
    """Matrices of integers, or of numbers whose products and sums are exact."""
    dtype, other = p.dtype(*INTEGERS, *FLOATING), p.pick(0, 1, 2)
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 1, 3), (5, 3, 2)), ((3,), (2, 3, 2)), ((0, 3), (3, 1))]
    return tuple(p.values(s, dtype, True) for s in [*shapes, shapes[other]][p.pick(*range(6))]), {}


def _tensordot(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS, *FLOATING)
    x, y = p.values((2, 3, 4), dtype, True), p.values((3, 4, 2), dtype, True)
    return (x, y), {"axes": p.pick(2, ((1, 2), (0, 1)), ((0,), (-1,)), ((2, 1), (1, 0)))}


def _vecdot(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS, *FLOATING)
    return (p.values(p.pick((3,), (2, 3)), dtype, True), p.values(p.pick((3,), (1, 3)), dtype, True)), {"axis": -1}


def _cross(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS, *FLOATING)
    return (p.values((2, 3), dtype, True), p.values((2, 3), dtype, True)), {"axis": -1}


def _outer(p: Program) -> Call:
    dtype = p.dtype(*INTEGERS, *FLOATING)
    return (p.values((p.pick(3, 0),), dtype, True), p.values((2,), dtype, True)), {}


def _concat(p: Program) -> Call:
    x = p.one(*INTEGERS, *FLOATING, least=1)
    y = p.values(x.shape, p.pick(x.dtype.name, p.dtype(*INTEGERS, *FLOATING)))
    return ([x, y],), {"axis": p.pick(None, p.axis(x.shape))}


def _stack(p: Program) -> Call:
    x = p.one(*INTEGERS, *FLOATING)
    return ([x, p.values(x.shape, x.dtype.name)],), {"axis": p.pick(*range(-x.ndim - 1, x.ndim + 1))}


def _expand(p: Program) -> Call:
    x = p.one()
    return (x,), {"axis": p.pick(0, -1, x.ndim, (0, -1), (0, 1))}


def _moved(p: Program) -> Call:
    x = p.one(least=1)
    return (x, p.axis(x.shape), p.axis(x.shape)), {}


def _shaped(p: Program) -> Call:
    x = p.one(sizes=(3, 1, 2))
    return (x, p.pick((-1,), x.shape, x.shape[::-1], (x.size, 1))), {}


def _broadcast(p: Program) -> Call:
    small, large = p.shapes(2)
    return (p.values(small, p.dtype()), np.broadcast_shapes(small, large)), {}


def _permuted(p: Program) -> Call:
    x = p.one()
    return (x, tuple(p.rng.permutation(x.ndim).tolist())), {}


def _rolled(p: Program) -> Call:
    x = p.one(least=1)
    return (x, p.pick(1, -2, 5)), {"axis": p.pick(None, p.axis(x.shape))}


def _flipped(p: Program) -> Call:
    x = p.one()
    return (x,), {"axis": p.axes(x.shape)}


def _repeated(p: Program) -> Call:
    x = p.one(least=1)
    axis = p.pick(None, p.axis(x.shape))
    count = x.size if axis is None else x.shape[axis]
    return (x, p.pick(0, 2, p.rng.integers(0, 3, count))), {"axis": axis}


def _squeezed(p: Program) -> Call:
    return (p.values(p.pick((1, 3, 1), (1, 1, 1)), p.dtype()), p.pick(0, -1, (0, 2))), {}


def _triangle(p: Program) -> Call:
    return (p.one(least=2),), {"k": p.pick(0, 1, -1, 5)}


def _unstacked(p: Program) -> Call:
    x = p.one(least=1)
    return (x,), {"axis": p.axis(x.shape)}


def _transforms(p: Program) -> Call:
    x = p.values(p.shape(1, sizes=(4, 3, 1)), p.dtype(*COMPLEX), True)
    return (x,), {"axis": p.axis(x.shape), "n": p.pick(None, 3, 4), "norm": p.pick("backward", "ortho", "forward")}


def _real_transforms(p: Program) -> Call:
    (x,), how = _transforms(p)
    return (np.ascontiguousarray(x.real),), how


def _half_transforms(p: Program) -> Call:
    (x,), how = _transforms(p)
    return (x,), how | {"n": p.pick(3, 4)}


def _space(p: Program) -> Call:
    x = p.values(p.shape(2, sizes=(4, 3, 2)), p.dtype(*COMPLEX), True)
    return (x,), {"axes": p.pick((0, 1), (-1,), (1, 0)), "norm": p.pick("backward", "ortho", "forward")}


def _real_space(p: Program) -> Call:
    (x,), how = _space(p)
    return (np.ascontiguousarray(x.real),), how


def _frequencies(p: Program) -> Call:
    return (p.pick(1, 4, 5),), {"d": p.pick(1.0, 0.5)} | p.pick({}, {"dtype": p.dtype(*REAL)})


def _shifted(p: Program) -> Call:
    x = p.one(*FLOATING, least=1)
    return (x,), {"axes": p.pick(None, p.axis(x.shape))}


def _norm(p: Program) -> Call:
    x = p.one(*FLOATING, least=1, finite=True, sizes=(3, 1, 2))
    return (x,), {
        "axis": p.pick(None, p.axis(x.shape)),
        "ord": p.pick(1, 2, np.inf, 0),
        "keepdims": p.pick(True, False),
    }


CALLS: dict[str, Callable[[Program], Call]] = {
    **{name: _unary for name, text in FUNCTIONS.items() if text == "x, /" and not name.startswith("unique")},
    **{name: _binary for name, text in FUNCTIONS.items() if text == "x1, x2, /"},
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], _shift),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), _logical),
    "logical_not": lambda p: ((p.one("bool"),), {}),
    **dict.fromkeys("floor_divide remainder".split(), _quotient),
    "divide": _divided,
    "pow": _power,
    "clip": _clip,
    **dict.fromkeys("max min any all mean count_nonzero".split(), _reduced),
    **dict.fromkeys("sum prod".split(), _total),
    **dict.fromkeys("var std".split(), _spread),
    **dict.fromkeys("argmax argmin".split(), _arg),
    **dict.fromkeys("cumulative_sum cumulative_prod".split(), _cumulative),
    **dict.fromkeys("sort argsort".split(), _sort),
    "diff": _diff,
    **dict.fromkeys("zeros_like ones_like".split(), _like),
    "full_like": lambda p: ((p.one(*FLOATING, *INTEGERS), p.pick(2, 3)), p.pick({}, {"dtype": p.dtype(*FLOATING)})),
    **dict.fromkeys("zeros ones".split(), _made),
    "full": lambda p: ((p.shape(), p.pick(True, 2, 0.5, 1j)), {}),
    "arange": lambda p: (p.pick((3,), (1, 5), (5, 0, -2), (0, 1, 0.25), (2.5,)), {}),
    "linspace": lambda p: ((0, p.pick(1, -2.5), p.pick(0, 1, 4)), {"endpoint": p.pick(True, False)}),
    "eye": lambda p: ((p.pick(2, 0), p.pick(None, 3)), {"k": p.pick(0, 1, -1)} | p.pick({}, {"dtype": p.dtype()})),
    "astype": lambda p: ((p.one("int8", "bool", *REAL, finite=True), p.dtype("float32", "int64", "complex128")), {}),
    "take": _indexed,
    "take_along_axis": _gathered,
    "where": _where,
    "searchsorted": _search,
    "isin": _isin,
    "matmul": _sums,
    "tensordot": _tensordot,
    "vecdot": _vecdot,
    "matrix_transpose": lambda p: ((p.one(least=2),), {}),
    "broadcast_arrays": _binary,
    "broadcast_to": _broadcast,
    "meshgrid": lambda p: ((p.values((2,), "int64"), p.values((3,), "int64")), {"indexing": p.pick("xy", "ij")}),
    "concat": _concat,
    "stack": _stack,
    "expand_dims": _expand,
    "moveaxis": _moved,
    "reshape": _shaped,
    "permute_dims": _permuted,
    "roll": _rolled,
    "flip": _flipped,
    "repeat": _repeated,
    "tile": lambda p: ((p.one(), p.pick((2,), (1, 2), (2, 1, 1), ())), {}),
    "squeeze": _squeezed,
    **dict.fromkeys("tril triu".split(), _triangle),
    "unstack": _unstacked,
    "nonzero": lambda p: ((p.one(least=1),), {}),
    **{name: lambda p: ((p.one(*INTEGERS, *COMPLEX),), {}) for name in FUNCTIONS if name.startswith("unique")},
    **dict.fromkeys([f"fft.{name}" for name in "fft ifft".split()], _transforms),
    **dict.fromkeys([f"fft.{name}" for name in "rfft ihfft".split()], _real_transforms),
    **dict.fromkeys([f"fft.{name}" for name in "irfft hfft".split()], _half_transforms),
    **dict.fromkeys([f"fft.{name}" for name in "fftn ifftn irfftn".split()], _space),
    "fft.rfftn": _real_space,
    **dict.fromkeys(["fft.fftfreq", "fft.rfftfreq"], _frequencies),
    **dict.fromkeys(["fft.fftshift", "fft.ifftshift"], _shifted),
    "linalg.cholesky": lambda p: ((p.matrix(definite=True),), {"upper": p.pick(False, True)}),
    "linalg.cross": _cross,
    "linalg.diagonal": lambda p: ((p.one(least=2),), {"offset": p.pick(0, 1, -1)}),
    "linalg.trace": lambda p: ((p.one(*INTEGERS, *FLOATING, least=2, finite=True),), {"offset": p.pick(0, 1, -1)}),
    **dict.fromkeys([f"linalg.{name}" for name in "det inv slogdet".split()], lambda p: ((p.matrix(),), {})),
    **dict.fromkeys(
        [f"linalg.{name}" for name in "svdvals svd qr pinv matrix_norm matrix_rank".split()],
        lambda p: ((p.matrix(square=False),), {}),
    ),
    **dict.fromkeys([f"linalg.{name}" for name in "eigh eigvalsh".split()], lambda p: ((p.matrix(definite=True),), {})),
    **dict.fromkeys([f"linalg.{name}" for name in "eig eigvals".split()], lambda p: ((p.matrix(),), {})),
    "linalg.matrix_power": lambda p: ((p.matrix(), p.pick(0, 1, 3, -2)), {}),
    "linalg.solve": lambda p: ((x := p.matrix(*REAL), p.values((x.shape[-1], p.pick(1, 2)), x.dtype.name, True)), {}),
    "linalg.outer": _outer,
    "linalg.vector_norm": _norm,
    "linalg.matmul": _sums,
    "linalg.tensordot": _tensordot,
    "linalg.vecdot": _vecdot,
    "linalg.matrix_transpose": lambda p: ((p.one(least=2),), {}),
}
ELSEWHERE = "asarray empty empty_like from_dlpack can_cast finfo iinfo isdtype result_type broadcast_shapes"
# whose results are free in signs, phases or an order: dtype and shape are compared
FREE = "linalg.eig linalg.eigh linalg.eigvals linalg.qr linalg.svd".split()


def found_in(namespace: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), namespace)


def converted(value: Any, array: Callable[[Any], Any], dtype: Callable[[str], Any]) -> Any:
    """Arguments with a library's arrays and dtypes."""
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, list):
        return [converted(v, array, dtype) for v in value]
    return dtype(value) if isinstance(value, str) and value in DTYPES else value


def listed(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def standard(name: str, call: Call) -> list[Any] | None:
    """What array_api_strict gives, as NumPy arrays; None for a call that the standard does not allow."""
    args, how = converted(list(call[0]), strict.asarray, lambda d: getattr(strict, d)), call[1]
    how = {key: converted(value, strict.asarray, lambda d: getattr(strict, d)) for key, value in how.items()}
    with strict.ArrayAPIStrictFlags(api_version="2025.12"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(x._array) for x in listed(found_in(strict, name)(*args, **how))]
        except (TypeError, ValueError, IndexError, RuntimeError, np.linalg.LinAlgError):
            return None


def compare(name: str, call: Call, leaf: str) -> None:
    wanted = standard(name, call)
    if wanted is None:
        return
    B = LEAVES[leaf]()
    made = {"device": B} if not any(isinstance(x, (np.ndarray, list)) for x in call[0]) else {}
    args = converted(list(call[0]), lambda x: ad.asarray(x, device=B), lambda d: getattr(ad, d))
    how = {k: converted(v, lambda x: ad.asarray(x, device=B), lambda d: getattr(ad, d)) for k, v in call[1].items()}
    with np.errstate(all="ignore"), ad.use_dtype(ad.float64):  # as array_api_strict has it
        try:
            found = [x.numpy() for x in listed(found_in(ad, name)(*args, **how, **made))]
        except errors.UnsupportedPrimitiveError:
            if leaf.startswith("torch") and unsigned(call):
                return
            raise
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in wanted]
    for ours, other in zip(found, wanted, strict=True):
        if name not in FREE and ours.dtype.kind in "fc":
            tolerance = 64 * float(np.finfo(ours.dtype).eps)
            np.testing.assert_allclose(ours, other, rtol=tolerance, atol=tolerance)
        elif name not in FREE:
            np.testing.assert_array_equal(ours, other)


def unsigned(call: Call) -> bool:
    """PyTorch has hardly any arithmetic for these."""
    return any(f"uint{n}" in repr(call) for n in (16, 32, 64))


@pytest.fixture(autouse=True)
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """What JAX compiled for the shapes of one function serves no other: it would come to gigabytes."""
    yield
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params["leaf"] == "jax":
        sys.modules["jax"].clear_caches()


def on(leaf: str) -> Any:
    """The test of a leaf, a function of its own: hypothesis keeps what each run of a function was set to."""

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("leaf", [pytest.param(leaf, marks=MARKS.get(leaf, []))])
    @pytest.mark.parametrize("name", CALLS)
    @pytest.mark.slow
    @settings(max_examples=10 if leaf == "jax" else 25)  # which compiles each shape
    @given(data=st.data())
    def test_calls_give_what_the_standard_gives(name: str, leaf: str, data: Any) -> None:
        compare(name, CALLS[name](Program(data)), leaf)

    return test_calls_give_what_the_standard_gives


for _leaf in [n for n in LEAVES if "digits" not in n]:
    globals()[f"test_calls_on_{_leaf}_give_what_the_standard_gives"] = on(_leaf)


class Seeded(Program):
    """Chosen by a seed alone, which takes a tenth of the time."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("leaf", [n for n in LEAVES if n in ("numpy", "torch:cpu") or "strict" in n])
def test_some_calls_of_each_function(leaf: str) -> None:
    with Each() as each:
        for (name, draw), seed in itertools.product(CALLS.items(), range(3)):
            call = draw(Seeded(seed))
            with each(name, call):
                compare(name, call, leaf)


def test_all_functions_are_called() -> None:
    names = {*FUNCTIONS, *(f"linalg.{name}" for name in LINALG), *(f"fft.{name}" for name in FFT)}
    assert names - {*CALLS, *ELSEWHERE.split(), "__array_namespace_info__"} == set()
    assert {*CALLS} <= names
