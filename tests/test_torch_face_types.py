"""Functions of `adjoint.torch` of all types: the values and types of PyTorch, or an error that the same `except`
catches."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch_functions_later  # noqa: F401  # further cases
import torch_numbers
import torch_odd_types
from conftest import peer
from each import Each
from torch_functions import CASES

import adjoint.torch as ours

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()

# What differs, as "function case type": a pattern with the reason.
OTHERWISE = {
    "there is no complex number of half precision here, and complex64 serves": (
        r"(complex|view_as_complex|view_as_complex_copy|view_as_real_copy) \d float16|istft \d float16"
    ),
    "of equal elements another one is found": r"(topk|kthvalue) \d (u?int\d+|bool)",
    "PyTorch adds bytes in bytes": r"(trapezoid|trapz|cumulative_trapezoid) \d uint8",
    "PyTorch's exponential of a matrix in half precision overflows": r"(linalg\.)?matrix_exp \d float16",
    "a bound below zero bounds no byte; PyTorch takes -1 for 255": r"clamp_ 0 uint8",
    "PyTorch takes matrices without elements of any type": r"linalg\.lu_factor 4 .*",
    "differences of booleans are refused, also at coordinates": r"gradient 2 bool",
}


class Answer(NamedTuple):
    error: Exception | None
    values: list[Any]
    types: list[str]


def made(torch: Any, values: Any, dtype: str) -> Any:
    """A tensor of a type, of numbers that are next to the given ones."""
    array = np.asarray(values)
    if dtype == "bool":
        array = np.rint(np.abs(array)) % 2 == 1
    elif "int" in dtype:
        array = np.rint(np.abs(array) if dtype == "uint8" else array)
    return torch.tensor(array.astype(dtype).tolist(), dtype=getattr(torch, dtype))


def answered(torch: Any, case: Any, dtype: str) -> Answer:
    function, makers, _ = case
    r = np.random.default_rng(1)
    tensors = [made(torch, maker(r), dtype) for maker in makers]
    torch.manual_seed(0)
    try:
        found = function(torch, *tensors)
    except Exception as error:
        return Answer(error, [], [])
    found = found if isinstance(found, (tuple, list)) else (found,)
    return Answer(None, [np.array(x.tolist()) for x in found], [f"{x.dtype} {tuple(x.shape)}" for x in found])


def differs(wanted: Answer, found: Answer, dtype: str) -> str | None:
    """How two answers differ."""
    if wanted.error is not None:
        kind = next(k for k in type(wanted.error).__mro__ if k.__module__ == "builtins")
        return None if isinstance(found.error, kind) else f"{wanted.error!r} and {found.error!r} {found.types}"
    if found.error is not None:
        return f"refused: {found.error!r}"
    if wanted.types != found.types:
        return f"{wanted.types} and {found.types}"
    tolerance = 2e-2 if dtype == "float16" else 1e-4
    for a, b in zip(wanted.values, found.values, strict=True):
        if not np.allclose(a.astype(complex), b.astype(complex), tolerance, tolerance, equal_nan=True):
            return f"{a} and {b}"
    return None


def compare(names: Iterable[str], every: int | None = None) -> None:
    theirs = peer("torch")
    known = re.compile("|".join([f"(?:{pattern})" for pattern in OTHERWISE.values()]))
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            for i, case in enumerate(CASES[name][:every]):
                for dtype in DTYPES:
                    if known.fullmatch(f"{name} {i} {dtype}"):
                        continue
                    with each(f"{name} {i} {dtype}"):
                        wrong = differs(answered(theirs, case, dtype), answered(ours, case, dtype), dtype)
                        assert wrong is None, wrong


@pytest.mark.peers
def test_functions_of_all_types_are_those_of_pytorch() -> None:
    compare([*CASES][::40], 1)  # the others are slow


@pytest.mark.slow
@pytest.mark.peers
def test_all_functions_of_all_types_are_those_of_pytorch() -> None:
    compare(CASES)


@pytest.mark.peers
def test_functions_of_integers_follow_the_default_type() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each, np.errstate(invalid="ignore"):  # of nan, which is no integer
        for torch in (ours, theirs):
            torch.set_default_dtype(torch.float64)
        try:
            for name, cases in CASES.items():
                for i, case in enumerate(cases):
                    with each(f"{name} {i}"):
                        here, there = answered(ours, case, "int32"), answered(theirs, case, "int32")
                        assert here.error or there.error or here.types == there.types
        finally:
            for torch in (ours, theirs):
                torch.set_default_dtype(torch.float32)


@pytest.mark.peers
def test_numbers_types_and_flags_that_pytorch_refuses_are_refused() -> None:
    theirs = peer("torch")

    def ended(t: Any) -> list[str]:
        f, ones, whole = t.nn.functional, t.ones(2), t.ones(2, dtype=t.int64)
        double, bits, z = ones.double(), ones.bool(), t.ones(2) * 1j
        result, logits, rows = t.ones(2, requires_grad=True) * 2, t.ones(2, 3), t.tensor([0, 1])
        schedule = t.optim.lr_scheduler
        optimizer = t.optim.SGD([t.nn.Parameter(t.ones(2))], lr=1.0)
        both = schedule.SequentialLR(optimizer, [schedule.ConstantLR(optimizer), schedule.ConstantLR(optimizer)], [2])
        module = t.nn.Linear(1, 1)
        module.register_state_dict_post_hook(lambda *given: 5)

        def put(x: Any, key: Any, value: Any) -> Any:
            x[key] = value
            return x

        calls: list[Any] = [
            *[lambda v=v, d=d, m=m: m(v, d)
              for v in (300, -300, -1, 1.5, float("nan"), float("inf"), 2**70, 1j, True)
              for d in (t.int8, t.uint8, t.int64, t.bool, t.float32)
              for m in (lambda v, d: t.tensor(v, dtype=d), lambda v, d: t.tensor([v], dtype=d))],
            *[lambda v=v: t.full((1,), v, dtype=t.int8) for v in (300, float("nan"), 1j, 1.5)],
            *[lambda v=v: t.zeros(2, dtype=t.int16).fill_(v) for v in (float("nan"), 1j, 1.5)],
            *[lambda v=v: t.tensor(v) for v in (
                [ones, ones], [ones[0], ones[1]], [ones[0], 1], [ones[:1], ones[:1]], [[ones[:1]], [ones[:1]]],
                [double[0]],
                [rows[0].int()], [rows[0].int(), 1], [np.float64(1)], [np.float32(1), 2], [np.int8(3)], [np.ones(2)],
                [bits[0], ones[0]], [z[0], 1.0], [[1], 2], [1, [2]], None, [None], {"a": 1}, ["a"], "a", [2**63],
                [2**70, 1.0], [1, 2.5], [], [[], []], range(3), np.float64(2))],
            *[lambda v=v: t.Tensor(v) for v in (3.0, True, "a", [1, 2], (2, 3), np.float32(3), -1)],
            lambda: t.Tensor(2, 3.0), lambda: t.Tensor([1.0], [2.0]), lambda: t.IntTensor(3.0),
            lambda: t.ByteTensor([300]), lambda: t.LongTensor(ones),
            *[lambda a=a, x=x: t.add(x, x, alpha=a) for a in (1.5, 1.0, 1j, True, 2) for x in (ones, whole, bits, z)],
            *[lambda a=a, x=x: t.rsub(x, x, alpha=a) for a in (1.5, 1j, True, 2) for x in (ones, whole, z)],
            *[lambda a=a, x=x: t.addcmul(x, x, x, value=a) for a in (1.5, 1j) for x in (ones, whole, z)],
            *[lambda a=a, x=x: t.addmv(x, x.diag(), x, beta=a) for a in (1.5, 1j) for x in (ones, whole, z)],
            lambda: z > 1, lambda: z < 2.0, lambda: z == 1, lambda: z.ge(1.5), lambda: z.abs_(),
            lambda: ones[rows.short()], lambda: put(t.ones(2), rows.char(), 1.0), lambda: ones[rows.int()],
            lambda: t.where(bits.byte(), ones, 0.0), lambda: ones.masked_scatter(bits.byte(), ones),
            lambda: ones.index_put((rows,), double), lambda: ones.index_put((rows[:1],), whole[0]),
            lambda: t.index_select(ones, 0, t.tensor([5])), lambda: t.take(ones, rows.int()),
            lambda: t.index_fill(ones, 0, rows.int(), 1.0), lambda: ones.index_add(0, rows, double),
            lambda: t.lerp(ones, double, 0.5), lambda: t.lerp(ones, ones, double),
            lambda: f.cross_entropy(logits, rows.int()), lambda: f.nll_loss(logits, rows.int()),
            lambda: f.nll_loss(logits, rows.byte()), lambda: f.cross_entropy(logits, rows),
            lambda: f.binary_cross_entropy(ones, double), lambda: f.embedding(rows.short(), logits),
            lambda: f.one_hot(rows[:0]), lambda: f.one_hot(rows.int()), lambda: f.one_hot(rows[:0], 3),
            lambda: t.inner(ones[0], double), lambda: t.inner(ones, double),
            lambda: t.einsum("i,i->i", bits, bits), lambda: t.einsum("i,i->", bits, bits),
            lambda: t.einsum("i->", bits.byte()), lambda: t.linalg.matrix_power(whole.diag().int(), 3),
            lambda: t.rand(2, dtype=t.int32), lambda: t.randn_like(whole), lambda: t.arange(3, dtype=t.bool),
            lambda: t.randperm(300, dtype=t.int8), lambda: t.randint(0, 3, (2,), dtype=t.bool),
            lambda: t.bernoulli(whole), lambda: whole.clone().normal_(), lambda: whole.clone().exponential_(),
            lambda: setattr(result, "requires_grad", True), lambda: setattr(result, "requires_grad", False),
            lambda: result.requires_grad_(), lambda: whole.requires_grad_(), lambda: both.step(5), module.state_dict,
        ]  # fmt: skip
        out = []
        for call in calls:
            try:
                out.append(f"{call()}".partition("grad_fn")[0])
            except Exception as error:
                kinds = type(error).__mro__
                out.append(next(k.__name__ for k in kinds if k in (RuntimeError, TypeError, ValueError, IndexError)))
        return out

    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, (a, b) in enumerate(zip(ended(theirs), ended(ours), strict=True)):
            with each(str(i)):
                assert a == b


SUMMED = (
    ("sum", {}),
    ("prod", {}),
    ("nansum", {}),
    ("cumsum", {"dim": 0}),
    ("cumprod", {"dim": 0}),
    ("sum", {"dim": 0}),
)
ADDED = "bool uint8 int8 int16 int32 int64 float32 float64".split()


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ADDED)
def test_sums_and_products_in_a_type(dtype: str) -> None:
    theirs = pytest.importorskip("torch")

    def found(t: Any) -> list[str]:
        tensors = (t.tensor([100, 100, 3]), t.tensor([1.5, 2.0]), t.tensor([[1, 0], [2, 3]], dtype=t.int8), t.tensor(5))
        said = []
        for x in tensors:
            for name, options in SUMMED:
                try:
                    out = getattr(x, name)(**options, dtype=getattr(t, dtype))
                    said.append(f"{name} {out.tolist()} {out.dtype}")
                except NotImplementedError:
                    said.append(f"{name} is not there")
        return said

    assert found(ours) == found(theirs)


@pytest.mark.peers
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_images_of_bytes_are_resized_to_bytes(mode: str) -> None:
    theirs = pytest.importorskip("torch")
    r = np.random.default_rng(5)

    def resized(t: Any, image: Any, size: tuple[int, int], **options: Any) -> Any:
        return t.nn.functional.interpolate(t.tensor(image), size=size, mode=mode, **options)

    for settings in ({}, {"antialias": True}) if mode[0] == "b" else ({},):
        for _ in range(10):
            image, size = r.integers(0, 256, (1, 3, *r.integers(2, 9, 2))).astype(np.uint8), (5, 7)
            if mode == "area":
                for t in (ours, theirs):
                    with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
                        resized(t, image, size)
                continue
            here, there = resized(ours, image, size, **settings), resized(theirs, image, size, **settings)
            assert str(here.dtype) == str(there.dtype) == "torch.uint8"
            exact = resized(theirs, image.astype(float), size, **settings).numpy()
            clear = np.abs(exact % 1 - 0.5) > 1e-3  # from the middle between two integers
            np.testing.assert_array_equal(here.numpy()[clear], np.clip(np.rint(exact), 0, 255)[clear])
            if mode[0] == "n":
                np.testing.assert_array_equal(here.numpy(), there.numpy())
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        resized(ours, np.ones((1, 1, 2, 2), int), (3, 3))


_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)")


def _told(torch: Any, call: str) -> tuple[str, str]:
    """What a call of `torch_odd_types` ends with: its values, types and shapes, or an error's type and words."""
    try:
        found = eval(call, {"t": torch, "f": torch.nn.functional})
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        return kinds[0], str(error)

    def shown(x: Any) -> str:
        if isinstance(x, (tuple, list)):
            return f"{[shown(each) for each in x]}"
        tensor = hasattr(x, "dtype") and hasattr(x, "detach")
        return f"{type(x).__name__} {x.tolist()} {x.dtype} {tuple(x.shape)}" if tensor else repr(x)

    return "", shown(found)


def _near(a: str, b: str) -> bool:
    ours, theirs = ([float(n) for n in _NUMBER.findall(text)] for text in (a, b))
    same = _NUMBER.sub("#", a) == _NUMBER.sub("#", b) and len(ours) == len(theirs)
    return same and np.allclose(ours, theirs, 1e-3, 1e-6, equal_nan=True)


@pytest.mark.peers
def test_odd_types_and_sizes_are_taken_and_refused_as_in_pytorch() -> None:
    theirs = peer("torch")
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for how, calls in (
            ("value", torch_odd_types.VALUES), ("words", torch_odd_types.WORDS), ("kind", torch_odd_types.KINDS),
        ):  # fmt: skip
            for call in calls.strip().splitlines():
                with each(call):
                    (kind, said), (wanted, text) = _told(ours, call), _told(theirs, call)
                    assert kind == wanted, (said, text)
                    assert bool(kind) is (how != "value")
                    if how == "value":
                        assert _near(said, text), (said, text)
                    elif how == "words":
                        assert said[:30] == text[:30]


@pytest.mark.peers
def test_zeros_have_the_sign_that_they_have_in_pytorch() -> None:
    theirs = peer("torch")
    for call in (
        "t.xlogy(0, t.tensor(0.5))", "t.xlogy(t.tensor([0.0, -0.0, -2.0]), t.tensor([0.5, 2.0, 1.0]))",
        "t.special.xlog1py(t.tensor([0.0, -0.0]), -0.5)", "t.tensor([0.0]).xlogy_(t.tensor([0.5]))",
    ):  # fmt: skip
        assert str(eval(call, {"t": ours})) == str(eval(call, {"t": theirs}))


def test_methods_that_pytorch_lacks_are_not_there() -> None:
    for name in "conj_ maximum_ minimum_ fmax_ fmin_ logaddexp_ bucketize cdist isin".split():
        assert not hasattr(ours.Tensor, name)


def test_the_class_tensor_makes_no_tensors_of_subclasses() -> None:
    class Own(ours.Tensor):
        pass

    for x in (Own([1.0]), ours.ones(2).as_subclass(Own), ours.nn.Parameter(ours.ones(2))):
        assert type(ours.Tensor(x)) is type(ours.FloatTensor(x)) is ours.Tensor


@pytest.mark.peers
@pytest.mark.parametrize("dtype", torch_numbers.DTYPES)
def test_numbers_meet_tensors_of_all_types_as_in_pytorch(dtype: str) -> None:
    theirs = peer("torch")
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in torch_numbers.CALLS:
            for v in torch_numbers.NUMBERS:
                name = f"{call} {v} {dtype}"
                if any([re.fullmatch(pattern, name) for pattern in torch_numbers.OTHERWISE.values()]):
                    continue
                spelled = f"(lambda x, v: {call})(t.tensor([1, 2], dtype=t.{dtype}), {v})"
                with each(name):
                    (kind, said), (wanted, text) = _told(ours, spelled), _told(theirs, spelled)
                    assert kind == wanted, (said, text)
                    assert kind or _near(said, text), (said, text)


def test_integers_that_double_precision_does_not_hold_are_refused() -> None:
    f, x = ours.nn.functional, ours.full((1, 1, 4, 4), 2**53 + 1)
    for refused in (
        lambda: f.max_pool2d(x, 2),
        lambda: f.max_pool1d(x[0], 2, return_indices=True),
        lambda: f.avg_pool2d(x // 8, 2),
        lambda: f.conv2d(x // 4, ours.ones(1, 1, 3, 3, dtype=ours.int64)),
        lambda: f.conv2d(x // 2**40, ours.ones(1, 1, 3, 3, dtype=ours.int64), bias=ours.tensor([2**54])),
        lambda: f.bilinear(x[0, 0] // 2**20, x[0, 0] // 2**20, ours.ones(1, 4, 4, dtype=ours.int64)),
    ):
        with pytest.raises(RuntimeError, match=r"of integers is computed in double precision"):
            refused()
