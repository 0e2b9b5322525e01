"""Elementary functions of compiled code: their errors, special values, and that they need nothing else."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from each import Each
from scipy import special

import adjoint as ad

llvm = pytest.importorskip("llvmlite.binding", reason="needs llvmlite: pip install 'adjoint[compile]'")

import coefficients  # noqa: E402
import native_code  # noqa: E402
from native_code import EXACT, FUNCTIONS, arity, functions  # noqa: E402

from adjoint.compiler.native import elementary  # noqa: E402
from adjoint.compiler.native.elementary.coefficients import TABLES, TWO_OVER_PI  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs/elementary.md"
DTYPES = (np.float32, np.float64)
NAMES = tuple(FUNCTIONS)


def bounds() -> dict[str, tuple[float, float]]:
    """What the page says."""
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: (float(single), float(double)) for name, single, double in rows}


def test_the_page_has_all_functions_and_no_error_above_two_units() -> None:
    table = bounds()
    assert list(table) == list(NAMES)
    assert all(0.5 <= bound <= 2.0 for row in table.values() for bound in row)


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_are_those_of_the_page(dtype: Any) -> None:
    """By NumPy and SciPy in a wider type, where there is one, and by mpmath."""
    functions(NAMES, dtype, 8)
    with Each() as each:
        for name in NAMES:
            with each(name):
                bound = bounds()[name][0 if dtype == np.float32 else 1]
                if dtype == np.float32 or (native_code.WIDE and name not in native_code.NARROW):
                    worst, where = native_code.error(name, dtype, native_code.points(name, dtype, 3000))
                    assert worst <= bound, where
                worst, where = native_code.exact_error(name, dtype, native_code.points(name, dtype, 12, seed=1))
                assert worst <= bound, where


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    math.inf,
    -math.inf,
    math.nan,
    1e30,
    -1e30,
    1e-30,
    -1e-30,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_are_those_of_eager_functions(dtype: Any) -> None:
    """Zeros with their signs, infinities and nan; finite values within the errors of both."""
    info = np.finfo(dtype)
    ends = [float(v) for v in (info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, info.tiny / 2)]
    single = np.array([*SPECIAL, *ends], dtype)
    least = 2 * float(info.smallest_subnormal)
    pairs = np.array(list(itertools.product(single, single)), dtype).T
    leaf: Any = ad.NumPy()
    with np.errstate(all="ignore"), Each() as each:
        for name, code in functions(NAMES, dtype, 4).items():
            xs = [single] if arity(name) == 1 else list(pairs)
            want, out = np.asarray(leaf[name](*xs)), code(*xs)
            # near the zeros of negative numbers eager results lose digits
            terms = native_code.terms(name, xs) if name == "digamma" else np.zeros(xs[0].size)
            for i, (w, o, term) in enumerate(zip(want, out, terms, strict=True)):
                with each(f"{name} of {[x[i] for x in xs]}: {o}, and eager {w}"):
                    assert np.isnan(w) == np.isnan(o)
                    if not np.isnan(w):
                        assert np.signbit(w) == np.signbit(o)
                        assert w == o or np.isclose(w, o, rtol=8 * info.eps, atol=least + 8 * info.eps * term)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_lanes_gives_the_same(dtype: Any) -> None:
    with Each() as each:
        for name in NAMES:
            xs = native_code.points(name, dtype, 20, seed=2)
            want = functions(NAMES, dtype, 8)[name](*xs)
            for lanes in (1, 16, 32) if name in ("sin", "pow", "exp", "erf") else (2,):
                with each(f"{name}, {lanes}"):
                    np.testing.assert_array_equal(functions((name,), dtype, lanes)[name](*xs), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_processors_without_avx512_give_results_as_exact(dtype: Any) -> None:
    """What AVX-512 does at once is done in steps there: with the same bits, but for reciprocals, tables and pieces."""
    names = ("exp", "tanh", "expit", "sinh", "erf", "erfc", "softplus")
    with Each() as each:
        for name, code in functions(names, dtype, 8, wide=False).items():
            xs = native_code.points(name, dtype, 3000)
            out, other = code(*xs), functions(names, dtype, 8)[name](*xs)
            with each(name):
                if name in ("tanh", "expit") or (name in ("exp", "erf") and dtype == np.float32):
                    np.testing.assert_array_max_ulp(out, other, 2)
                    if dtype == np.float32 or native_code.WIDE:
                        worst, where = native_code.error(name, dtype, xs, avx512=False)
                        assert worst <= bounds()[name][0 if dtype == np.float32 else 1], where
                else:
                    np.testing.assert_array_equal(out, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainders_are_exact_on_any_processor(dtype: Any) -> None:
    """As NumPy's, for vectors of any length."""
    leaf: Any = ad.NumPy()
    with Each() as each, np.errstate(all="ignore"):
        for name in EXACT:
            xs = native_code.points(name, dtype, 500)
            want = leaf[name](*xs)
            for lanes, wide in ((8, True), (8, False), (1, False), (2, True)):
                with each(f"{name}, {lanes}, {wide}"):
                    out = functions((name,), dtype, lanes, wide)[name](*xs)
                    np.testing.assert_array_equal(out, want)
                    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_functions_in_pieces_meet_where_these_do(name: str) -> None:
    """Around the ends of pieces errors are within the bounds, and no result is above 1."""
    step = TABLES[f"{name}_pieces", "float"][0]
    ends = np.float32(step) * np.arange(0.5, 48, 0.5, dtype=np.float32)
    near = (ends.view(np.int32)[:, None] + np.arange(-40, 41, dtype=np.int32)).view(np.float32).ravel()
    with Each() as each:
        for avx512 in (True, False):
            with each(f"AVX-512: {avx512}"):
                worst, where = native_code.error(name, np.float32, [np.concatenate([near, -near])], 8, avx512)
                assert worst <= bounds()[name][0], where
                assert functions((name,), np.float32, 8, avx512)[name](near).max() == 1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_derivative_of_expit_is_exact_on_any_processor(dtype: Any) -> None:
    """Where exp(-|x|) has all digits; special values are eager's."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-80, 80, 20_000), rng.uniform(-2, 2, 20_000), 10.0 ** rng.uniform(-9, 1.9, 2000)])
    g = 10.0 ** rng.uniform(-3, 3, x.size)
    rare = np.array([0.0, -0.0, 1e-30, 90.0, -90.0, 1e4, -1e4, np.inf, -np.inf, np.nan], dtype)
    ones = np.ones_like(rare)
    leaf: Any = ad.NumPy()
    for avx512 in (True, False):
        if dtype == np.float32 or native_code.WIDE:
            worst, where = native_code.error("expit_pullback", dtype, [g.astype(dtype), x.astype(dtype)], 8, avx512)
            assert worst <= 3.0, where
        found = functions(("expit_pullback",), dtype, 8, avx512)["expit_pullback"](ones, rare)
        info = np.finfo(dtype)  # what is subnormal is zero without compiling
        np.testing.assert_allclose(found, leaf.expit_pullback(ones, rare), rtol=8 * info.eps, atol=info.tiny)


def test_gelu_in_pieces_is_as_exact_as_eager() -> None:
    """In units of the last place of x, over all sizes and around the ends of pieces; special values are eager's."""
    step = TABLES["normal_pieces", "float"][0]
    bits = np.arange(0, 2**32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ends = np.float32(step) * np.arange(0.5, 48, 0.5, dtype=np.float32)
    near = (ends.view(np.int32)[:, None] + np.arange(-40, 41, dtype=np.int32)).view(np.float32).ravel()
    x = np.concatenate([bits[np.isfinite(bits)], near, -near])
    exact = x.astype(np.float64) * special.ndtr(x.astype(np.float64))
    gelu = ad.compile(ad.nn.gelu)
    errors = [np.max(np.abs(f(x) - exact) / np.spacing(np.abs(x))) for f in (gelu, ad.nn.gelu)]
    assert errors[0] <= errors[1] < 2.2
    rare = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, -6.0, -40.0, 3e38, -3e38] * 2, np.float32)
    with np.errstate(invalid="ignore"):
        found, expected = gelu(rare), ad.nn.gelu(rare)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_large_angles_are_reduced_exactly() -> None:
    """Also the double that is nearest to a multiple of pi / 2 (J.-M. Muller, 2016, table 11.1)."""
    worst = math.ldexp(6381956970095103.0, 797)
    x = np.array([1e4, -1e4, 1e15, 1e22, 2.0**28, 2.0**28 - 1.0, 1e300, worst, -worst, 1.7976931348623157e308])
    for name in ("sin", "cos", "tan"):
        units, where = native_code.exact_error(name, np.float64, [x], 2)
        assert units < 1.5, (name, where)
        units, where = native_code.exact_error(name, np.float32, [x[:6].astype(np.float32)], 2)
        assert units < 1.5, (name, where)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [2, 3, 4.0, -1, -2, -2.0])
def test_powers_that_are_products(exponent: float, dtype: Any, compiled: bool) -> None:
    """Within two units, and special values and those beyond all numbers are NumPy's."""
    f = lambda x: ad.pow(x, exponent)
    run = ad.compile(f) if compiled else lambda x: f(ad.asarray(x)).numpy()
    x = np.random.default_rng(3).uniform(1, 2, 300_000).astype(dtype) * dtype(2) ** np.arange(-20, 20).repeat(7_500)
    x = x.astype(dtype) * np.where(np.arange(x.size) % 2, 1, -1).astype(dtype)
    exact = x.astype(np.longdouble) ** int(exponent)
    found = run(x)
    assert found.dtype == x.dtype
    assert float((abs(found - exact) / np.spacing(abs(exact).astype(dtype))).max()) <= 2
    limits = np.finfo(dtype)
    edges = [0.0, 1.0, limits.max, limits.tiny, limits.smallest_subnormal, np.sqrt(limits.max), limits.max ** (1 / 3)]
    edges = np.array([*edges, np.sqrt(limits.tiny) / 3, np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        for z in (edges, -edges):
            y, wanted = run(z), np.power(z, dtype(exponent))
            np.testing.assert_array_max_ulp(y[np.isfinite(wanted)], wanted[np.isfinite(wanted)], 2)
            np.testing.assert_array_equal(y[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
            np.testing.assert_array_equal(np.signbit(y), np.signbit(wanted))


@pytest.mark.parametrize("base", [2, 2.0])
def test_numbers_to_the_power_of_an_array_without_axes(base: float) -> None:
    exponent = ad.tensor(3.0, dtype=ad.float64)
    assert ad.pow(base, exponent).item() == 8.0
    assert ad.compile(lambda y: ad.pow(base, y))(exponent).item() == 8.0
    assert ad.exp2(exponent).item() == 8.0


def test_powers_of_whole_numbers_have_signs() -> None:
    power = functions(("pow",), np.float64, 4)["pow"]
    np.testing.assert_array_equal(power([-2.0, -2.0, -2.0, 10.0], [3.0, -2.0, 0.5, 2.0]), [-8.0, 0.25, np.nan, 100.0])
    np.testing.assert_array_equal(power([-1.5], [2.0**53]), [np.inf])


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
def test_code_calls_nothing_outside_of_itself(cpu: str) -> None:
    library = elementary.Library()
    for name, dtype in itertools.product((*NAMES, *EXACT), DTYPES):
        library.function(name, dtype, 8 if dtype == np.float32 else 4)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, opt=2)
    text = machine.emit_assembly(llvm.parse_assembly(library.text))
    called = set(re.findall(r"\b(?:call|jmp)q?\s+([A-Za-z_]\w*)", text))
    assert called <= {"adjoint_reduced_by_half_pi"}
    assert "vfmadd" in text


def test_functions_of_one_library_are_defined_once() -> None:
    library = elementary.Library()
    symbols = [library.function(name, np.float64, 2) for name in ("sin", "cos", "sin")]
    assert symbols[0] == symbols[2]
    assert library.text.count("define internal") == 1
    symbol, text = elementary.function("sin", np.float64, 2)
    assert symbol == symbols[0]
    assert f"define <2 x double> @{symbol}(<2 x double> %x0)" in text


def test_coefficients_are_what_the_script_makes() -> None:
    singles = [(name, "float") for name in ("exp", "cos", "LN2", "erf_pieces", "normal_pieces")]
    for name, kind in (*singles, ("HALF_PI", "double")):
        made = [float(coefficients.rounded(x, coefficients.BITS[kind])) for x in coefficients.table(name, kind)]
        assert made == list(TABLES[name, kind])
    with mp.workprec(1400):
        total = sum(mp.mpf(word) * mp.mpf(2) ** (-64 * k) for k, word in enumerate(TWO_OVER_PI))
        assert abs(total - 2 / mp.pi) < mp.mpf(2) ** -1279
