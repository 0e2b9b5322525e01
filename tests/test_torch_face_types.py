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
