"""Infinities, nan and signed zeros: what the array API standard says, with gradients recorded and on every leaf."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from each import Each
from special_cases import BINARY, COMPLEX, REDUCTIONS, UNARY, rows, values
from test_leaf_backends import LEAVES, MARKS, as_leaves_are, jax, needs_mpmath  # noqa: F401 (a fixture)

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


Call = tuple[tuple[float, float], tuple[str, ...]]
# sin z = -i sinh(i z), and so on, also at infinity: i (a + bi) is -b + ai
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}


def complex_calls(name: str) -> list[Call]:
    """The parts of operands and the words for those of results: of the table, and of the conjugate numbers."""
    found: list[Call] = []
    for (a, b), words in rows(COMPLEX[TURNED.get(name, name)]):
        mirrored = (words[0], _turned(words[1])) if len(words) == 2 else words
        for imaginary, expected in ((b, words), (-b, mirrored)):
            if name == "cos":
                found.append(((imaginary, -a), expected))
            elif name in TURNED:
                found.append(((imaginary, -a), (expected[1], _turned(expected[0]))))
            else:
                found.append(((a, imaginary), expected))
    return found


def parts_of(out: Any, words: tuple[str, ...]) -> list[float]:
    return [out.real, out.imag] if len(words) == 2 else [out]


@quiet
@devices
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*COMPLEX, *TURNED])
def test_functions_of_complex_numbers(name: str, dtype: str, device: str) -> None:
    for parts, words in complex_calls(name):
        out = getattr(ad, name)(leaf(complex(*parts), dtype, device)).item()
        check(name, parts, parts_of(out, words), words, np.finfo(dtype).dtype.name)


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


# --- the other leaves ---

NUMPYS = "NumPy's, which array_api_strict calls"
# What stays, by leaf, table and function: the number of calls, and why. That there are fewer is an error too.
KEPT: dict[tuple[str, str, str], tuple[int, str]] = {
    ("array_api[array_api_strict]", "complex", "expm1"): (14, f"{NUMPYS}, beside infinite and nan parts and at -0"),
    ("array_api[array_api_strict]", "complex", "sign"): (2, f"{NUMPYS}: signs of zeros"),
    ("array_api[array_api_strict]", "complex", "tan"): (2, f"{NUMPYS}: the sign of a zero beside infinity"),
    ("array_api[array_api_strict]", "complex", "tanh"): (2, f"{NUMPYS}: the sign of a zero beside infinity"),
    ("array_api[array_api_strict]", "numbers", "pow"): (4, f"{NUMPYS}: the square root for the exponent 0.5"),
    ("reference", "complex", "atan"): (2, "cmath raises an error at i and -i"),
}
TABLES: dict[str, dict[str, list[tuple[tuple[complex, ...], tuple[str, ...]]]]] = {
    "unary": {name: list(rows(table)) for name, table in UNARY.items()},
    "binary": {name: list(rows(table)) for name, table in BINARY.items()},
    "complex": {
        name: [((complex(*parts),), words) for parts, words in complex_calls(name)] for name in (*COMPLEX, *TURNED)
    },
}


def on_others(slow: str = "") -> list[Any]:
    """Leaves but NumPy's, of which `test_functions_*` above tell more, and mpmath's, which has no negative zero."""
    return [
        pytest.param(name, marks=[*MARKS.get(name, []), *([pytest.mark.slow] if name == slow else [])])
        for name in LEAVES
        if name != "numpy" and "digits" not in name
    ]


def deviating(name: str, dtype: str, calls: Any) -> list[str]:
    """What is said of the calls that do not give what the standard has."""
    found = []
    for operands, words, out in calls:
        try:
            check(name, operands, out, words, np.finfo(dtype).dtype.name)
        except AssertionError as error:
            found.append(str(error).partition("\n")[0])
    return found


def compare_kept(leaf: str, table: str, found: dict[str, list[str]]) -> None:
    kept = {name: KEPT.get((leaf, table, name), (0, ""))[0] for name in found}
    complaints = {name: (len(said), said) for name, said in found.items() if len(said) != kept[name]}
    assert not complaints, complaints


@quiet
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("leaf", on_others())
def test_special_cases_on_other_leaves(leaf: str, table: str, dtype: str) -> None:
    """Of arrays long enough for kernels that take several numbers at a time; on JAX compiled."""
    B = LEAVES[leaf]()
    if table == "complex":
        dtype = {"float32": "complex64", "float64": "complex128"}[dtype]
    calls = TABLES[table]
    columns = [
        [ad.asarray(np.asarray(column, dtype), device=B) for column in zip(*[each[0] for each in rows], strict=True)]
        for rows in calls.values()
    ]

    def run(columns: Any) -> Any:
        return [getattr(ad, name)(*operands) for name, operands in zip(calls, columns, strict=True)]

    outs = jax.jit(run)(columns) if leaf == "jax" else run(columns)
    outs = ad.compute(outs) if leaf.startswith("dask") else [x.numpy() for x in outs]
    found = {
        name: deviating(name, dtype, [(ops, w, parts_of(v, w)) for (ops, w), v in zip(rows, out.tolist(), strict=True)])
        for (name, rows), out in zip(calls.items(), outs, strict=True)
    }
    compare_kept(leaf, table, found)


@quiet
@pytest.mark.parametrize("leaf", on_others(slow="jax"))  # it compiles for each number and length
def test_special_cases_beside_numbers_on_other_leaves(leaf: str) -> None:
    """The second operand is one of Python's numbers, for which libraries have kernels of their own."""
    B = LEAVES[leaf]()
    found: dict[str, list[str]] = {}
    for name, table in TABLES["binary"].items():
        said = found[name] = []
        for y, group in itertools.groupby(sorted(table, key=lambda call: repr(call[0][1])), lambda call: call[0][1]):
            calls = list(group)
            x = ad.asarray(np.asarray([operands[0] for operands, _ in calls] * 2), device=B)
            outs = getattr(ad, name)(x, y).tolist()
            said += deviating(name, "float64", [(*call, [out]) for call, out in zip(calls * 2, outs, strict=True)])
    compare_kept(leaf, "numbers", found)


@quiet
@pytest.mark.parametrize("leaf", on_others(slow="jax"))  # it compiles for each number and length
def test_special_cases_along_an_axis_on_other_leaves(leaf: str) -> None:
    B, found = LEAVES[leaf](), {}
    for name, table in REDUCTIONS.items():
        calls = [
            (operands, words, np.atleast_1d(getattr(ad, name)(ad.asarray(np.asarray(operands), device=B)).numpy()))
            for operands, words in rows(table)
        ]
        found[name] = deviating(name, "float64", calls)
    compare_kept(leaf, "axis", found)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "leaf", [name for name in LEAVES if not ("strict" in name or "digits" in name or name in MARKS)]
)
def test_the_sign_of_a_complex_zero_has_none(leaf: str, dtype: str) -> None:
    zeros = np.asarray([complex(x, y) for x in (0.0, -0.0) for y in (0.0, -0.0)], dtype)
    out = ad.sign(ad.asarray(zeros, device=LEAVES[leaf]())).numpy()
    assert not np.any([out != 0, np.signbit(out.real), np.signbit(out.imag)]), out


def test_what_is_kept_is_said_of_leaves_and_functions_that_there_are() -> None:
    tables = {**TABLES, "numbers": BINARY, "axis": REDUCTIONS}
    for (leaf, table, name), (_, why) in KEPT.items():
        assert leaf in (*LEAVES, "array_api[array_api_strict]", "torch:cuda:0", "cupy:0")
        assert name in tables[table]
        assert why


# --- complex numbers that are not special ---


def plane() -> Any:
    """Ordinary numbers, tiny ones, those near singular points and branch cuts, and huge ones."""
    rng = np.random.default_rng(3)

    def points(low: float, high: float, count: int) -> Any:
        size, sign = 10 ** rng.uniform(low, high, (2, count)), rng.choice([-1, 1], (2, count))
        return size[0] * sign[0] + 1j * size[1] * sign[1]

    around = [center + points(-9, -1, 5) for center in (1, -1, 1j, -1j, 0)]
    return np.concatenate([points(-1, 1, 40), points(-30, -10, 10), points(-12, 2, 20), *around, points(3, 30, 10)])


def exactly(name: str, z: complex) -> Any:
    """By mpmath with 80 digits, so that differences keep enough."""
    import mpmath

    with mpmath.workdps(80):
        x = mpmath.mpc(z)
        if name in ("log2", "log10"):
            return mpmath.log(x) / mpmath.log(int(name[3:]))
        if name in ("abs", "sign"):
            return abs(x) if name == "abs" else x / abs(x)
        return getattr(mpmath, name)(x)


OTHERS = [name for name in LEAVES if name not in ("jax", "reference[digits=30]", *MARKS)]
BOUNDED = "sin cos tan sinh cosh tanh exp expm1".split()  # of larger numbers libraries reduce angles as they can


@quiet
@needs_mpmath
@pytest.mark.parametrize("leaves", [pytest.param(["jax"], marks=pytest.mark.slow), OTHERS], ids=["jax", "others"])
@pytest.mark.parametrize("name", [name for name in (*COMPLEX, *TURNED) if not name.startswith("is")])
def test_complex_functions_keep_all_digits(name: str, leaves: list[str]) -> None:
    """Relative to the size of the result; XLA's log1p, by which it takes logarithms, loses seven binary digits."""
    z = plane()
    z = z[np.abs(z) < 20] if name in BOUNDED else z
    exact = [exactly(name, v) for v in z.tolist()]
    with Each() as each, contextlib.nullcontext() if jax is None else jax.enable_x64(True):
        for leaf in leaves:
            with each(leaf):
                found = getattr(ad, name)(ad.asarray(z, device=LEAVES[leaf]())).numpy()
                errors = [abs(v - w) / abs(w) for v, w in zip(found.tolist(), exact, strict=True)]
                bound = (128 if leaf == "jax" and name.startswith("log") else 8) * 2.0**-52
                assert max(errors) < bound, (z[int(np.argmax(errors))], float(max(errors)))


@pytest.mark.parametrize("name", ["exp", "sinh", "acos", "abs"])
def test_jax_takes_its_own_derivatives_of_complex_functions(name: str) -> None:
    """Also on the axes, where results are put together of parts."""
    if jax is None:
        pytest.skip("JAX is not installed")
    with jax.enable_x64(True):
        z, direction = jax.numpy.asarray([0.3 + 0.4j, 0.3, 0.4j, -1.5 - 0.2j]), jax.numpy.asarray([1.0 - 0.5j] * 4)
        ours = jax.jvp(ad.JAX()[name], (z,), (direction,))
        theirs = jax.jvp(getattr(jax.numpy, name), (z,), (direction,))
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-13)
