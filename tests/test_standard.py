"""The array API standard 2025.12: its names, its signatures, and what data types come of which."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest
from conftest import peer
from test_leaf_backends import LEAVES, MARKS, as_leaves_are, every_leaf  # noqa: F401 (a fixture)

import adjoint as ad

DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128").split()
INTEGERS = [name for name in DTYPES if "int" in name]
FLOATING = [name for name in DTYPES if "float" in name or "complex" in name]

# --- names and signatures ------------------------------------------------------------------------

_UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan "
    "log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan "
    "tanh trunc"
).split()
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
    "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply nextafter not_equal pow remainder subtract"
).split()
_REDUCED = "x, /, *, axis=None, keepdims=False"
_TOTAL = "x, /, *, axis=None, dtype=None, keepdims=False"
_LIKE = "x, /, *, dtype=None, device=None"
_MADE = "shape, *, dtype=None, device=None"

ELEMENTWISE: dict[str, str] = {
    **dict.fromkeys(_UNARY, "x, /"),
    **dict.fromkeys(_BINARY, "x1, x2, /"),
    "clip": "x, /, min=None, max=None",
}
FUNCTIONS: dict[str, str] = {
    **ELEMENTWISE,
    # creation
    "arange": "start, /, stop=None, step=1, *, dtype=None, device=None",
    "asarray": "obj, /, *, dtype=None, device=None, copy=None",
    "empty": _MADE,
    "empty_like": _LIKE,
    "eye": "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None",
    "from_dlpack": "x, /, *, device=None, copy=None",
    "full": "shape, fill_value, *, dtype=None, device=None",
    "full_like": "x, /, fill_value, *, dtype=None, device=None",
    "linspace": "start, stop, /, num, *, dtype=None, device=None, endpoint=True",
    "meshgrid": "*arrays, indexing='xy'",
    "ones": _MADE,
    "ones_like": _LIKE,
    "tril": "x, /, *, k=0",
    "triu": "x, /, *, k=0",
    "zeros": _MADE,
    "zeros_like": _LIKE,
    # data types, inspection
    "astype": "x, dtype, /, *, copy=True, device=None",
    "can_cast": "from_, to, /",
    "finfo": "type, /",
    "iinfo": "type, /",
    "isdtype": "dtype, kind",
    "result_type": "*arrays_and_dtypes",
    "__array_namespace_info__": "",
    # indexing, searching, sets, sorting
    "take": "x, indices, /, *, axis=None",
    "take_along_axis": "x, indices, /, *, axis=-1",
    "argmax": _REDUCED,
    "argmin": _REDUCED,
    "count_nonzero": _REDUCED,
    "nonzero": "x, /",
    "searchsorted": "x1, x2, /, *, side='left', sorter=None",
    "where": "condition, x1, x2, /",
    "isin": "x1, x2, /, *, invert=False",
    **dict.fromkeys(["unique_all", "unique_counts", "unique_inverse", "unique_values"], "x, /"),
    "argsort": "x, /, *, axis=-1, descending=False, stable=True",
    "sort": "x, /, *, axis=-1, descending=False, stable=True",
    # linear algebra
    "matmul": "x1, x2, /",
    "matrix_transpose": "x, /",
    "tensordot": "x1, x2, /, *, axes=2",
    "vecdot": "x1, x2, /, *, axis=-1",
    # manipulation
    "broadcast_arrays": "*arrays",
    "broadcast_shapes": "*shapes",
    "broadcast_to": "x, /, shape",
    "concat": "arrays, /, *, axis=0",
    "expand_dims": "x, /, axis",
    "flip": "x, /, *, axis=None",
    "moveaxis": "x, source, destination, /",
    "permute_dims": "x, /, axes",
    "repeat": "x, repeats, /, *, axis=None",
    "reshape": "x, /, shape, *, copy=None",
    "roll": "x, /, shift, *, axis=None",
    "squeeze": "x, /, axis",
    "stack": "arrays, /, *, axis=0",
    "tile": "x, repetitions, /",
    "unstack": "x, /, *, axis=0",
    # statistics, utilities
    "cumulative_prod": "x, /, *, axis=None, dtype=None, include_initial=False",
    "cumulative_sum": "x, /, *, axis=None, dtype=None, include_initial=False",
    "max": _REDUCED,
    "mean": _REDUCED,
    "min": _REDUCED,
    "prod": _TOTAL,
    "std": "x, /, *, axis=None, correction=0.0, keepdims=False",
    "sum": _TOTAL,
    "var": "x, /, *, axis=None, correction=0.0, keepdims=False",
    "all": _REDUCED,
    "any": _REDUCED,
    "diff": "x, /, *, axis=-1, n=1, prepend=None, append=None",
}
LINALG: dict[str, str] = {
    "cholesky": "x, /, *, upper=False",
    "cross": "x1, x2, /, *, axis=-1",
    "det": "x, /",
    "diagonal": "x, /, *, offset=0",
    "eig": "x, /",
    "eigh": "x, /",
    "eigvals": "x, /",
    "eigvalsh": "x, /",
    "inv": "x, /",
    "matmul": "x1, x2, /",
    "matrix_norm": "x, /, *, keepdims=False, ord='fro'",
    "matrix_power": "x, n, /",
    "matrix_rank": "x, /, *, rtol=None",
    "matrix_transpose": "x, /",
    "outer": "x1, x2, /",
    "pinv": "x, /, *, rtol=None",
    "qr": "x, /, *, mode='reduced'",
    "slogdet": "x, /",
    "solve": "x1, x2, /",
    "svd": "x, /, *, full_matrices=True",
    "svdvals": "x, /",
    "tensordot": "x1, x2, /, *, axes=2",
    "trace": "x, /, *, offset=0, dtype=None",
    "vecdot": "x1, x2, /, *, axis=-1",
    "vector_norm": "x, /, *, axis=None, keepdims=False, ord=2",
}
_LINE = "x, /, *, n=None, axis=-1, norm='backward'"
_SPACE = "x, /, *, s=None, axes=None, norm='backward'"
FFT: dict[str, str] = {
    **dict.fromkeys("fft ifft rfft irfft hfft ihfft".split(), _LINE),
    **dict.fromkeys("fftn ifftn rfftn irfftn".split(), _SPACE),
    **dict.fromkeys("fftfreq rfftfreq".split(), "n, /, *, d=1.0, dtype=None, device=None"),
    **dict.fromkeys("fftshift ifftshift".split(), "x, /, *, axes=None"),
}
METHODS: dict[str, str] = {
    **{
        f"__{name}__": "self, other, /"
        for stem in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
        for name in (stem, f"r{stem}", f"i{stem}")
    },
    **dict.fromkeys("__eq__ __ge__ __gt__ __le__ __lt__ __ne__".split(), "self, other, /"),
    **dict.fromkeys(
        "__abs__ __bool__ __complex__ __dlpack_device__ __float__ __index__ __int__ __invert__ __neg__ __pos__".split(),
        "self, /",
    ),
    "__array_namespace__": "self, /, *, api_version=None",
    "__dlpack__": "self, /, *, stream=None, max_version=None, dl_device=None, copy=None",
    "__getitem__": "self, key, /",
    "__setitem__": "self, key, value, /",
    "to_device": "self, device, /, *, stream=None",
}
INFO: dict[str, str] = {
    "capabilities": "self",
    "default_device": "self",
    "default_dtypes": "self, *, device=None",
    "devices": "self",
    "dtypes": "self, *, device=None, kind=None",
}


def signature_of(text: str) -> inspect.Signature:
    scope: dict[str, Any] = {}
    exec(f"def f({text}): ...", scope)
    return inspect.signature(scope["f"])


def refused(ours: inspect.Signature, standard: inspect.Signature) -> str | None:
    """Why some call that the standard allows would not mean the same here, or None.

    More than the standard has is allowed: keywords that may be positional too, defaults where it has none, and more
    parameters with defaults.
    """
    mine = list(ours.parameters.values())
    for i, wanted in enumerate(standard.parameters.values()):
        if wanted.kind in (wanted.VAR_POSITIONAL, wanted.VAR_KEYWORD):
            if [p.kind for p in mine].count(wanted.kind) != 1:
                return f"no {wanted}"
            continue
        if wanted.kind is wanted.KEYWORD_ONLY:
            found = ours.parameters.get(wanted.name)
            if found is None or found.kind is found.POSITIONAL_ONLY:
                return f"no keyword {wanted.name}"
        else:
            found = mine[i] if i < len(mine) else None
            if found is None or found.kind in (found.KEYWORD_ONLY, found.VAR_POSITIONAL):
                return f"no positional {wanted.name}"
            if wanted.kind is wanted.POSITIONAL_OR_KEYWORD:
                if found.kind is not wanted.kind or found.name != wanted.name:
                    return f"{wanted.name} is no keyword too"
            elif wanted.name == "x" and found.kind is not found.POSITIONAL_ONLY and len(standard.parameters) > 1:
                return f"{wanted.name} is not positional alone"
        if wanted.default is not wanted.empty and found.default != wanted.default:
            return f"{wanted.name} is {found.default!r} by default"
        if wanted.default is wanted.empty and wanted.name != "axis" and found.default is not found.empty:
            return f"{wanted.name} has a default"
    extra = [p for p in mine if p.name not in standard.parameters and p.default is p.empty]
    known = [p for p in standard.parameters.values() if p.kind is p.POSITIONAL_ONLY]
    if len([p for p in extra if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]) > len(known):
        return f"needs more: {extra}"
    return None


@pytest.mark.parametrize(
    ("namespace", "table"),
    [
        (ad, FUNCTIONS),
        (ad.linalg, LINALG),
        (ad.fft, FFT),
        (ad.Tensor, METHODS),
        (type(ad.__array_namespace_info__()), INFO),
    ],
    ids=["functions", "linalg", "fft", "methods", "info"],
)
def test_signatures_take_what_the_standard_has(namespace: Any, table: dict[str, str]) -> None:
    complaints = {
        name: why
        for name, text in table.items()
        if (why := refused(inspect.signature(getattr(namespace, name)), signature_of(text)))
    }
    assert complaints == {}


@pytest.mark.parametrize(
    ("ours", "standard"),
    [
        ("x, /", "x, /, *, axis=None"),
        ("x, /, *, axis", "x, /, axis"),
        ("x, /, *, axis=0", "x, /, *, axis=None"),
        ("x, y, /", "x, y"),
        ("x, /, *, axis=None", "x, y, /, *, axis=None"),
        ("arrays", "*arrays"),
        ("x, axis=None", "x, /, *, axis=None"),
        ("x, y, z, /", "x, /"),
    ],
)
def test_the_comparison_of_signatures_sees_differences(ours: str, standard: str) -> None:
    assert refused(signature_of(ours), signature_of(standard)) is not None


def test_the_tables_are_those_of_the_reference_implementation() -> None:
    strict = peer("array_api_strict")
    theirs = {
        name
        for name, value in vars(strict).items()
        if inspect.isfunction(value) and value.__module__.startswith("array_api_strict.") and "flags" not in name
    }
    assert theirs <= set(FUNCTIONS)
    assert set(strict.linalg.__all__) | {"eig", "eigvals"} == set(LINALG)  # which array_api_strict has from 2.5 on
    assert set(strict.fft.__all__) == set(FFT)
    for name in sorted(set(FUNCTIONS) & theirs - {"astype"}):  # its decorators hide some
        parameters = inspect.signature(getattr(strict, name)).parameters
        assert list(parameters)[1:] == list(signature_of(FUNCTIONS[name]).parameters)[1:], name


def test_constants_data_types_and_attributes() -> None:
    assert ad.__array_api_version__ == "2025.12"
    assert (ad.e, ad.pi, ad.inf, ad.newaxis) == (np.e, np.pi, np.inf, None)
    assert ad.nan != ad.nan
    assert [getattr(ad, name).name for name in DTYPES] == DTYPES
    x = ad.zeros((2, 3))
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, ad.float32)
    assert x.device is ad.default_device()
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.__array_namespace__() is ad
    assert x.__array_namespace__(api_version="2025.12") is ad
    with pytest.raises(ValueError, match=r"__array_namespace__.*2019\.12"):
        x.__array_namespace__(api_version="2019.12")


def test_what_the_namespace_says_of_itself() -> None:
    info = ad.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert isinstance(info.devices(), list)
    assert info.default_device() in info.devices()
    for device in info.devices():
        defaults = info.default_dtypes(device=device)
        for made, kind in ((0.5, "real floating"), (1j, "complex floating"), (1, "integral")):
            assert ad.asarray(made, device=device).dtype == defaults[kind]
        assert ad.argmax(ad.ones(2, device=device)).dtype == defaults["indexing"]
        for name, dtype in info.dtypes(device=device).items():
            assert ad.empty(1, dtype=dtype, device=device).dtype.name == name
    assert list(info.dtypes()) == DTYPES
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    assert ad.zeros((1,) * 64).ndim == 64


@every_leaf
def test_what_the_namespace_says_of_each_leaf(leaf: str) -> None:
    place = LEAVES[leaf]()
    info, narrow = ad.__array_namespace_info__(), ["uint16", "uint32", "uint64"] if leaf.startswith("torch") else []
    assert list(info.dtypes(device=place)) == [name for name in DTYPES if name not in narrow]
    x = ad.asarray(1, dtype="uint8", device=place)
    assert [ad.can_cast(x, name) for name in narrow] == [False] * len(narrow)
    assert ad.can_cast(x, "int16")
    for kind, made in (("real floating", 0.5), ("complex floating", 1j), ("integral", 1)):
        assert ad.asarray(made, device=place).dtype == info.default_dtypes(device=place)[kind]
    for name in info.dtypes(device=place, kind="unsigned integer"):
        ones = ad.ones(2, dtype=name, device=place)
        assert (ad.maximum(ones + ones, ones) <= 2).tolist() == [True, True]


def test_jax_without_64_bits_says_so() -> None:
    jax = peer("jax")
    place, info = ad.JAX(), ad.__array_namespace_info__()
    with jax.enable_x64(False), ad.use_dtype(ad.float64):
        assert [name for name in DTYPES if name not in info.dtypes(device=place)] == [
            "int64", "uint64", "float64", "complex128",
        ]  # fmt: skip
        defaults = info.default_dtypes(device=place)
        assert list(defaults.values()) == ["float32", "complex64", "int32", "int32"]
        x = ad.ones(2, device=place)
        assert (x.dtype, ad.argmax(x).dtype, ad.can_cast(x, ad.float64)) == ("float32", "int32", False)
    with jax.enable_x64(True):
        assert list(info.dtypes(device=place)) == DTYPES
        assert ad.can_cast(ad.ones(2, dtype=ad.float32, device=place), ad.float64)


# --- data types ----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>"])
def test_all_pairs_of_data_types_promote_as_the_standard_says(device: str) -> None:
    strict = peer("array_api_strict")
    for a, b in itertools.product(DTYPES, repeat=2):
        x, y = ad.ones(2, dtype=a, device=device), ad.ones(2, dtype=b, device=device)
        try:
            wanted = strict.result_type(getattr(strict, a), getattr(strict, b))
        except TypeError:
            continue  # of kinds that the standard does not mix
        wanted = np.dtype(str(wanted).rpartition(".")[2])
        assert ad.result_type(x, y) == ad.result_type(x.dtype, b) == wanted
        assert ad.can_cast(a, b) == (wanted.name == b)
        assert ad.concat([x, y]).dtype == ad.where(x == x, x, y).dtype == wanted
        if "bool" not in (a, b):
            for out in (x + y, x * y, ad.subtract(x, y), ad.pow(x, y)):
                assert out.dtype == wanted
        assert (x == y).dtype == ad.bool


def test_kinds_that_the_standard_does_not_mix() -> None:
    """The higher kind wins; no integers hold both those of uint64 and negative ones."""
    assert ad.result_type("int64", "float32") == ad.float32
    assert ad.result_type("float32", "int64", "uint64") == ad.result_type("int64", "uint64", "float32") == ad.float32
    assert ad.result_type("bool", "int8") == ad.int8
    with pytest.raises(TypeError, match="no common integer dtype"):
        ad.result_type("int64", "uint64")
    assert not ad.can_cast("int64", "uint64")
    assert not ad.can_cast("int8", "float64")
    with pytest.raises(ValueError, match="result_type"):
        ad.result_type(1, 2.0)


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>"])
def test_pythons_numbers_adapt_to_the_tensor(device: str) -> None:
    for name in DTYPES:
        x = ad.ones(2, dtype=name, device=device)
        kind = x.dtype.kind
        scalars = {"b": [True], "i": [True, 2], "u": [True, 2], "f": [True, 2, 0.5], "c": [True, 2, 0.5, 1j]}[kind]
        for scalar in scalars:
            assert ad.result_type(x, scalar) == x.dtype
            assert ad.where(x == x, x, scalar).dtype == x.dtype
            if kind != "b":
                assert (x + scalar).dtype == (scalar + x).dtype == ad.multiply(scalar, x).dtype == x.dtype
            assert (x == scalar).dtype == (scalar != x).dtype == ad.bool
    with pytest.raises(OverflowError, match="300"):
        ad.ones(2, dtype=ad.uint8, device=device) + 300


@pytest.mark.parametrize("operation", [lambda x: x & 1.5, lambda x: x << 0.5, lambda x: ~x, lambda x: x | x])
def test_operations_without_a_meaning_are_type_errors(operation: Any) -> None:
    with pytest.raises(TypeError):
        operation(ad.ones(2))


def test_complex_numbers_have_no_order() -> None:
    x = ad.tensor([1j, 2])
    for f in (ad.maximum, ad.less, ad.floor_divide, ad.remainder, ad.atan2, ad.hypot, ad.copysign, ad.nextafter):
        with pytest.raises(TypeError, match="real"):
            f(x, x)
    for f in (ad.max, ad.sort, ad.argmin, ad.floor, ad.signbit):
        with pytest.raises(TypeError, match=f.__name__):
            f(x)
    for f in (ad.searchsorted, ad.isin):
        with pytest.raises(TypeError, match="order"):
            f(x, x)


def test_limits_of_data_types() -> None:
    for name in ("float16", "float32", "float64", "complex64", "complex128"):
        info, theirs = ad.finfo(name), np.finfo(name)
        assert info == ad.finfo(ad.ones(1, dtype=name))
        for attribute in ("bits", "eps", "max", "min", "smallest_normal"):
            value = getattr(info, attribute)
            assert type(value) is (int if attribute == "bits" else float)
            assert value == getattr(theirs, attribute)
        assert info.dtype == theirs.dtype
    for name in INTEGERS:
        info = ad.iinfo(name)
        assert (info.bits, info.max, info.min) == (np.iinfo(name).bits, np.iinfo(name).max, np.iinfo(name).min)
        assert info == ad.iinfo(ad.ones(1, dtype=name))
        assert info.dtype == name
    with pytest.raises(TypeError, match="iinfo"):
        ad.finfo(ad.int8)
    with pytest.raises(TypeError, match="finfo"):
        ad.iinfo(ad.float32)


def test_kinds_of_data_types() -> None:
    strict = peer("array_api_strict")
    kinds: list[Any] = [
        "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
        ("bool", "integral"),
    ]  # fmt: skip
    for name, kind in itertools.product(DTYPES, kinds):
        assert ad.isdtype(getattr(ad, name), kind) is strict.isdtype(getattr(strict, name), kind)
    assert ad.isdtype(ad.int8, ad.int8) is True
    assert ad.isdtype(ad.int8, (ad.int16, "bool")) is False
    with pytest.raises(ValueError, match="integer kinds"):
        ad.isdtype(ad.int8, "integer kinds")
