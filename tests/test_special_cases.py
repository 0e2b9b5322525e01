"""Infinities, nan and signed zeros: what the array API standard says, on NumPy and with gradients recorded."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from special_cases import BINARY, COMPLEX, REDUCTIONS, UNARY, rows, values

import adjoint as ad

devices = pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>"])
floats = pytest.mark.parametrize("dtype", ["float32", "float64"])
quiet = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of dividing by zero and the like


def agrees(found: float, word: str, tolerance: float) -> bool:
    """Whether a number is what a word of a table says, with the sign of zeros and infinities."""
    free, word = word.startswith("?"), word.removeprefix("?")
    (wanted,) = values(word)
    if math.isnan(wanted):
        return math.isnan(found)
    if free:
        found, wanted = abs(found), abs(wanted)
    if wanted == 0 or math.isinf(wanted):
        return found == wanted and math.copysign(1, found) == math.copysign(1, wanted)
    return math.isclose(found, wanted, rel_tol=tolerance)


def check(name: str, operands: Any, found: Any, words: tuple[str, ...], dtype: str) -> None:
    found = [float(v) for v in found]
    tolerance = 4 * float(np.finfo(dtype).eps)
    assert len(found) == len(words), f"{name}{operands}: {found}, expected {words}"
    for value, word in zip(found, words, strict=True):
        assert agrees(value, word, tolerance), f"{name}{operands}: {found}, expected {words}"


def leaf(numbers: Any, dtype: str, device: str) -> Any:
    x = ad.tensor(np.asarray(numbers, dtype=dtype), device=device)
    return x.require_grad() if device != "numpy" else x


@quiet
@devices
@floats
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name: str, dtype: str, device: str) -> None:
    for operands, words in rows(UNARY[name]):
        for shape in ((), (2,)):  # NumPy has other loops for long arrays than for single numbers
            out = getattr(ad, name)(leaf(np.full(shape, *operands), dtype, device))
            for value in np.atleast_1d(out.numpy()):
                check(name, operands, [value], words, dtype)


def calls(name: str) -> Any:
    """The function, the operator, the reflected one and the one in place."""
    operator = {
        "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
        "remainder": "mod", "pow": "pow", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
        "greater": "gt", "greater_equal": "ge",
    }.get(name)  # fmt: skip
    yield getattr(ad, name)
    if operator is not None:
        yield lambda x, y: getattr(x, f"__{operator}__")(y)
        if operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
            yield lambda x, y: getattr(y, f"__r{operator}__")(x)
            yield lambda x, y: getattr(x * 1, f"__i{operator}__")(y)


@quiet
@devices
@floats
@pytest.mark.parametrize("name", BINARY)
def test_functions_and_operators_of_two_operands(name: str, dtype: str, device: str) -> None:
    table = list(rows(BINARY[name]))
    for call in calls(name):
        columns = [leaf(column, dtype, device) for column in zip(*[operands for operands, _ in table], strict=True)]
        for (operands, words), value in zip(table, call(*columns).numpy(), strict=True):
            check(name, operands, [value], words, dtype)
    for operands, words in table:
        x, y = (leaf(v, dtype, device) for v in operands)
        for out in (getattr(ad, name)(x, y), getattr(ad, name)(x, operands[1]), getattr(ad, name)(operands[0], y)):
            check(name, operands, [out.item()], words, dtype)
        line = getattr(ad, name)(leaf([operands[0]] * 9, dtype, device), operands[1])
        check(name, operands, [line[8].item()], words, dtype)


@devices
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
def test_logic(name: str, device: str) -> None:
    wanted = {"logical_and": bool.__and__, "logical_or": bool.__or__, "logical_xor": bool.__xor__}.get(name)
    for x, y in itertools.product([False, True], repeat=2):
        if wanted is None:
            assert ad.logical_not(ad.tensor(x, device=device)).item() is (not x)
        else:
            assert getattr(ad, name)(ad.tensor(x, device=device), ad.tensor(y, device=device)).item() is wanted(x, y)


def _turned(word: str) -> str:
    """The word for the number with the other sign."""
    if word.startswith("?") or word == "nan":
        return word
    return word.removeprefix("-") if word.startswith("-") else f"-{word}"


@quiet
@devices
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_numbers(name: str, dtype: str, device: str) -> None:
    part = "float32" if dtype == "complex64" else "float64"
    for (a, b), words in rows(COMPLEX[name]):
        mirrored = (words[0], _turned(words[1])) if len(words) == 2 else words
        for imaginary, expected in ((b, words), (-b, mirrored)):
            out = getattr(ad, name)(leaf(complex(a, imaginary), dtype, device)).item()
            found = [out.real, out.imag] if len(words) == 2 else [out]
            check(name, (a, imaginary), found, expected, part)


@quiet
@devices
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("name", "hyperbolic"), [("asin", "asinh"), ("atan", "atanh"), ("sin", "sinh"), ("tan", "tanh"), ("cos", "cosh")]
)
def test_circular_functions_are_the_hyperbolic_ones_turned(name: str, hyperbolic: str, dtype: str, device: str) -> None:
    """sin z = -i sinh(i z), and so on, also at infinity: i (a + bi) is -b + ai."""
    part = "float32" if dtype == "complex64" else "float64"
    for (a, b), words in rows(COMPLEX[hyperbolic]):
        out = getattr(ad, name)(leaf(complex(b, -a), dtype, device)).item()  # i times it is a + bi
        found = [out.real, out.imag] if name == "cos" else [-out.imag, out.real]
        check(name, (b, -a), found, words, part)


@quiet
@devices
@floats
@pytest.mark.parametrize("name", REDUCTIONS)
def test_functions_along_an_axis(name: str, dtype: str, device: str) -> None:
    for operands, words in rows(REDUCTIONS[name]):
        out = getattr(ad, name)(leaf(operands, dtype, device))
        check(name, operands, np.atleast_1d(out.numpy()), words, dtype)


@quiet
@devices
def test_a_variance_with_too_large_a_correction_is_nan(device: str) -> None:
    x = leaf([1.0, 2.0], "float64", device)
    for f in (ad.var, ad.std):
        assert math.isnan(f(x, correction=2).item())
        assert math.isnan(f(x, correction=3).item())
        assert f(x, correction=1).item() == pytest.approx(0.5 if f is ad.var else 0.5**0.5)


def test_the_tables_name_every_elementwise_function() -> None:
    """Those that have special cases: bitwise functions have none, and of where and clip all is said elsewhere."""
    from test_standard import ELEMENTWISE

    others = set(
        "clip conj imag real where logical_and logical_or logical_xor logical_not asin atan sin tan cos".split()
    )
    others |= {name for name in ELEMENTWISE if name.startswith("bitwise")}
    assert set(UNARY) | set(BINARY) | others >= set(ELEMENTWISE)
    assert set(ELEMENTWISE) >= set(UNARY) | set(BINARY)
