"""Every leaf runs every primitive and means the same by it; NumPy's answers fit the table."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import math
import os
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from calls import DETERMINED, halved
from cases import CASES, Case
from each import Each

import adjoint as ad
from adjoint import errors
from adjoint.backend import LeafBackend
from adjoint.backends import special
from adjoint.backends.array_api import ArrayAPI
from adjoint.backends.numpy import NumPy
from adjoint.backends.reference import Reference
from adjoint.dtypes import as_dtype
from adjoint.primitives import ARRAY, TABLE, Spec, index_shape, result_spec
from adjoint.user_primitives import DECLARED


def optional(module: str, *, in_ci: bool = True) -> Any:
    """A module, or None where it is not installed; CI has all but those that need a GPU."""
    needed = in_ci and os.environ.get("CI")
    return importlib.import_module(module) if needed or importlib.util.find_spec(module) else None


array_api_strict, mpmath = optional("array_api_strict"), optional("mpmath")
if array_api_strict is not None:  # what ArrayAPI promises to do with; later versions have more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array_api_strict.set_array_api_strict_flags(api_version="2024.12")

torch, jax = optional("torch"), optional("jax")
dask = optional("dask")
needs_mpmath = pytest.mark.skipif(mpmath is None, reason="mpmath is not installed")

LEAVES: dict[str, Callable[[], LeafBackend]] = {"numpy": NumPy, "reference": Reference}
if array_api_strict is not None:
    LEAVES["array_api[array_api_strict]"] = lambda: ArrayAPI(array_api_strict)
if mpmath is not None:
    LEAVES["reference[digits=30]"] = lambda: Reference(digits=30)
if torch is not None:
    LEAVES["torch:cpu"] = ad.Torch
if jax is not None:
    LEAVES["jax"] = ad.JAX
if dask is not None:
    LEAVES["dask[chunks=2]"] = lambda: ad.Dask(chunks=2)  # so that the arrays of cases are in several
MARKS: dict[str, list[Any]] = {}
# with pytest -m gpu, where there is one
if torch is not None and torch.cuda.is_available():
    LEAVES["torch:cuda:0"], MARKS["torch:cuda:0"] = lambda: ad.Torch("cuda:0"), [pytest.mark.gpu]
if optional("cupy", in_ci=False) is not None:
    LEAVES["cupy:0"], MARKS["cupy:0"] = ad.CuPy, [pytest.mark.gpu]
every_leaf = pytest.mark.parametrize("leaf", [pytest.param(name, marks=MARKS.get(name, [])) for name in LEAVES])
other_leaves = pytest.mark.parametrize(
    "leaf", [pytest.param(name, marks=MARKS.get(name, [])) for name in LEAVES if name != "numpy"]
)

# What leaves do otherwise, by the name of the test without the leaf's; that it passes after all is an error too.
KNOWN: dict[str, dict[str, str]] = {"jax": {"test_subnormal_numbers_are_numbers": "XLA takes them for zeros"}}


@pytest.fixture(autouse=True)
def as_leaves_are(request: pytest.FixtureRequest) -> Iterator[None]:
    """Known deviations are expected to fail; JAX is set to have 64 bits, Dask to run in this thread."""
    callspec = getattr(request.node, "callspec", None)
    leaf = None if callspec is None else callspec.params.get("leaf")
    reason = KNOWN.get(leaf, {}).get(request.node.name.replace(f"{leaf}-", "").replace(f"[{leaf}]", ""))
    if reason is not None:
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    with contextlib.ExitStack() as settings:
        if leaf == "jax":
            settings.enter_context(jax.enable_x64(True))
        if leaf == "dask[chunks=2]":
            settings.enter_context(dask.config.set(scheduler="synchronous"))
        yield


def kinds(case: Case) -> tuple[str, ...]:
    return tuple([x.dtype.kind if isinstance(x, np.ndarray) else type(x).__name__ for x in case.operands])


def representative(cases: list[Case]) -> list[Case]:
    """Of the cases with operands of the same kinds one, neither the smallest nor the largest."""
    found: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        found.setdefault(kinds(case), []).append(case)
    return [same[len(same) // 2] for same in found.values()]


every_primitive = pytest.mark.parametrize("name", CASES)


def each_primitive_on(*leaves: str) -> pytest.MarkDecorator:
    """A test for each leaf and primitive."""
    slow = {("reference[digits=30]", "zeta"): [pytest.mark.slow]}  # whose sums take seconds
    return pytest.mark.parametrize(
        ("leaf", "name"),
        [
            pytest.param(leaf, name, marks=[*MARKS.get(leaf, []), *slow.get((leaf, name), [])])
            for leaf in leaves
            for name in CASES
        ],
    )


def run(B: LeafBackend, name: str, *operands: Any, **parameters: Any) -> list[np.ndarray[Any, Any]]:
    """A primitive's results as NumPy arrays, from NumPy operands."""
    arrays = [B.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in operands]
    with np.errstate(all="ignore"):
        out = (compiled if isinstance(B, ad.JAX) else called)(B, name, arrays, parameters)
    return [B.to_numpy(x) for x in (out if TABLE[name].results > 1 else (out,))]


def called(B: LeafBackend, name: str, arrays: list[Any], parameters: dict[str, Any]) -> Any:
    return B[TABLE[name]](*arrays, **parameters)


def compiled(B: LeafBackend, name: str, arrays: list[Any], parameters: dict[str, Any]) -> Any:
    """By `jax.jit`, as most users of JAX run it: so nothing looks at values that there are none of."""
    if TABLE[name].dynamic:
        return called(B, name, arrays, parameters)

    def f(*traced: Any) -> Any:
        rest = iter(traced)
        return called(B, name, [next(rest) if isinstance(x, jax.Array) else x for x in arrays], parameters)

    return jax.jit(f)(*[x for x in arrays if isinstance(x, jax.Array)])


def known(B: LeafBackend, name: str, *operands: Any, **parameters: Any) -> list[np.ndarray[Any, Any]]:
    """The same, without what is free in the results: signs, phases, an order."""
    arrays = run(B, name, *operands, **parameters)
    if name not in DETERMINED:
        return arrays
    out = DETERMINED[name](*[ad.asarray(x, device=NumPy()) for x in arrays])
    return [x.numpy() for x in (out if isinstance(out, tuple) else (out,))]


def assert_same(ours: list[Any], theirs: list[Any], tolerance: float = 1e-12) -> None:
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        if y.dtype.kind in "fc":
            tolerance = max(tolerance, 4 * float(np.finfo(y.dtype).eps))
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(x, y)


def promised(name: str, case: Case) -> list[Spec]:
    operands = [Spec(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in case.operands]
    out = result_spec(TABLE[name], operands, case.parameters)
    return [out] if isinstance(out, Spec) else list(out)


def narrow(case: Case) -> Case:
    return Case(tuple(halved(case.operands)), case.parameters)


# --- every case ---


def test_known_deviations_are_of_tests_and_leaves_that_there_are() -> None:
    for leaf, names in KNOWN.items():
        assert leaf in (*LEAVES, "jax", "torch:cuda:0", "cupy:0")
        assert all(name.partition("[")[0] in globals() and reason for name, reason in names.items())
    assert all(dtype in DTYPES for _, dtype in WITHOUT)


def test_every_primitive_has_cases() -> None:
    assert set(CASES) == set(TABLE) - set(DECLARED)  # those of other tests
    assert all(CASES.values())


@pytest.mark.parametrize("name", [name for name in CASES if not TABLE[name].dynamic])
def test_numpy_keeps_what_the_table_promises(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            for one in (case, narrow(case)):
                with each(one):
                    out = run(NumPy(), name, *one.operands, **one.parameters)
                    assert [(x.shape, x.dtype) for x in out] == [tuple(spec) for spec in promised(name, one)]


@each_primitive_on(*[leaf for leaf in LEAVES if leaf != "numpy"])
def test_leaves_agree(leaf: str, name: str) -> None:
    # JAX compiles each case, which takes a tenth of a second: some of them tell
    with Each() as each:
        for case in representative(CASES[name]) if leaf == "jax" else CASES[name]:
            with each(case):
                expected = known(NumPy(), name, *case.operands, **case.parameters)
                assert_same(known(LEAVES[leaf](), name, *case.operands, **case.parameters), expected)


@each_primitive_on(*[leaf for leaf in LEAVES if leaf != "numpy"])
def test_leaves_keep_narrow_dtypes(leaf: str, name: str) -> None:
    with Each() as each:
        for case in map(narrow, CASES[name][-1:] if leaf == "jax" else CASES[name]):
            with each(case):
                expected = known(NumPy(), name, *case.operands, **case.parameters)
                assert_same(known(LEAVES[leaf](), name, *case.operands, **case.parameters), expected, 1e-4)


@each_primitive_on(*[leaf for leaf in LEAVES if leaf != "jax"])
def test_operands_stay_as_they_were(leaf: str, name: str) -> None:  # nothing can write to JAX's arrays
    B = LEAVES[leaf]()
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                arrays = [B.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in case.operands]
                with np.errstate(all="ignore"):
                    B[TABLE[name]](*arrays, **case.parameters)
                for array, operand in zip(arrays, case.operands, strict=True):
                    if isinstance(operand, np.ndarray):
                        np.testing.assert_array_equal(B.to_numpy(array), operand)


# --- devices: no GPU is needed to see that all arrays are made on the backend's own ---

NEEDS_VALUES = {  # PyTorch's device `meta` has none
    **dict.fromkeys("sign index index_add index_multiply index_max index_min nonzero".split(), "sizes that they give"),
    **dict.fromkeys(
        "zeta erfcinv gammainc gammaincc betainc stdtr sqrtm logm".split(), "a loop ends when all have converged"
    ),
    **dict.fromkeys("random_poisson random_binomial random_loggamma".split(), "NumPy draws by the parameters"),
    **dict.fromkeys(special.HOSTED, "SciPy computes them in main memory"),
    "softmax_cross_entropy": "labels are checked",
    "labelled_cross_entropy": "labels are checked",
    **dict.fromkeys(("eig", "eigvals"), "LAPACK may not end where there are nans"),
}


@every_primitive
@pytest.mark.parametrize("device", ["array_api_strict", "torch"])
def test_arrays_are_made_on_the_device(device: str, name: str) -> None:
    library = optional(device)
    if library is None:
        pytest.skip(f"{device} is not installed")
    B = ad.Torch("meta") if device == "torch" else ArrayAPI(library, library.Device("device1"))
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                arrays = [B.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in case.operands]
                try:
                    out = called(B, name, arrays, case.parameters)
                except (RuntimeError, NotImplementedError, errors.DeviceError) as error:
                    if device == "torch" and name in NEEDS_VALUES and re.search("item|no values|nonzero", str(error)):
                        continue
                    raise
                for x in out if TABLE[name].results > 1 else (out,):
                    assert x.device == B.device


# --- dtypes ---

# what a library cannot do, and why
WITHOUT = {
    (leaf, dtype): "PyTorch stores unsigned integers of this width, and has hardly any arithmetic for them"
    for leaf in ("torch:cpu", "torch:cuda:0")
    for dtype in ("uint16", "uint32", "uint64")
} | {("array_api[array_api_strict]", "float16"): "the standard has no float16"}
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
@other_leaves
def test_arithmetic_of_every_dtype(leaf: str, dtype: str, request: pytest.FixtureRequest) -> None:
    if (leaf, dtype) in WITHOUT:
        request.applymarker(
            pytest.mark.xfail(reason=WITHOUT[leaf, dtype], raises=(NotImplementedError, errors.DtypeError))
        )
    B, kind = LEAVES[leaf](), np.dtype(dtype).kind
    x, y = (np.asarray(values).astype(dtype) for values in ([[3, 0, 1], [2, 5, 1]], [[1, 1, 2], [3, 0, 1]]))
    every = {"axis": (1,), "keepdims": False}
    calls: list[tuple[str, list[Any], dict[str, Any]]] = [
        *[(name, [x, y], {}) for name in ("equal", "not_equal")],
        *[(name, [x, y], {}) for name in ("add", "multiply", "subtract") if kind != "b"],
        *[(name, [x, y], {}) for name in ("less", "greater_equal", "maximum", "minimum") if kind != "c"],
        *[(name, [x, np.maximum(y, 1).astype(dtype)], {}) for name in ("floor_divide", "remainder") if kind in "iu"],
        *[(name, [x, y], {}) for name in ("bitwise_and", "bitwise_or", "bitwise_xor") if kind in "biu"],
        ("where", [x != y, x, y], {}),
        *[("matmul", [x, y.T], {})] * (kind != "b"),
        *[(name, [x], every) for name in ("any", "all")],
        *[(name, [1j * x], every) for name in ("any", "all") if kind == "c"],
        *[(name, [x], every) for name in ("sum", "prod") if kind != "b"],
        *[(name, [x], every) for name in ("max", "min") if kind != "c"],
        *[(name, [x], {"axis": 1, "descending": False}) for name in ("sort", "argsort") if kind != "c"],
        ("concat", [x, y], {"axis": 0}),
        ("index", [x, np.asarray([1, 0, 1])], {"key": (ARRAY,)}),
        ("index_set", [x, y[0]], {"key": (1,)}),
        *[
            ("astype", [x], {"dtype": as_dtype(other)})
            for other in DTYPES
            if (kind != "c" or other[0] == "c") and (leaf, other) not in WITHOUT
        ],
    ]
    for name, operands, how in calls:
        expected = run(NumPy(), name, *operands, **how)
        assert_same(run(B, name, *operands, **how), expected, 4e-3 if dtype == "float16" else 1e-12)


# --- special functions and singular points ---


@needs_mpmath
def test_erf_is_within_two_units_in_the_last_place() -> None:
    points = np.concatenate([np.linspace(-7, 7, 2801), np.geomspace(1e-300, 1, 601), [0.0, 30.0, -1e300]])
    exact = np.asarray([float(mpmath.erf(mpmath.mpf(x))) for x in points.tolist()])
    error = np.abs(special.erf(np, points) - exact)
    assert np.max(error / np.where(exact == 0, 1, np.abs(exact))) <= 4e-16
    assert np.all(error[exact == 0] == 0)
    assert special.erf(np, np.asarray([np.inf, -np.inf])).tolist() == [1.0, -1.0]
    assert np.isnan(special.erf(np, np.asarray([np.nan]))).all()


SINGULAR = np.asarray([0.0, 1.0, -1.0, 2.0, -2.5, 800.0, -800.0, np.inf, -np.inf, np.nan])
UNARY = [name for name, p in TABLE.items() if p.kind == "elementwise" and p.operands == ("x",) and not p.parameters]
BINARY = [name for name, p in TABLE.items() if p.kind == "elementwise" and p.operands == ("x", "y")]


# mpmath has exponents without bounds, where floats overflow
with_infinities = pytest.mark.parametrize(
    "leaf",
    [pytest.param(name, marks=MARKS.get(name, [])) for name in LEAVES if name not in ("numpy", "reference[digits=30]")],
)


@with_infinities
@pytest.mark.parametrize("name", [name for name in UNARY if "bitwise" not in name])
def test_unary_functions_at_singular_points(leaf: str, name: str) -> None:
    with np.errstate(all="ignore"):
        assert_same(run(LEAVES[leaf](), name, SINGULAR), run(NumPy(), name, SINGULAR))


@with_infinities
@pytest.mark.parametrize("name", [name for name in BINARY if "f" in TABLE[name].accepts.kinds])
def test_binary_functions_at_singular_points(leaf: str, name: str) -> None:
    x, y = SINGULAR[:, None], SINGULAR[None, :]
    assert_same(run(LEAVES[leaf](), name, x, y), run(NumPy(), name, x, y))


@other_leaves
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_puts_nan_last_and_keeps_ties_in_order(leaf: str, name: str, descending: bool) -> None:
    x = np.asarray([2.0, np.nan, 1.0, 2.0, -np.inf, 1.0, np.nan])
    expected = run(NumPy(), name, x, axis=0, descending=descending)
    assert_same(run(LEAVES[leaf](), name, x, axis=0, descending=descending), expected)


@other_leaves
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_nan_and_ties(leaf: str, name: str) -> None:
    for x in (np.asarray([1.0, np.nan, 2.0, np.nan]), np.asarray([1.0, 2.0, 2.0, 1.0])):
        axis = (0,) if name in ("max", "min") else 0
        expected = run(NumPy(), name, x, axis=axis, keepdims=False)
        assert_same(run(LEAVES[leaf](), name, x, axis=axis, keepdims=False), expected)


@every_leaf
def test_relu_passes_what_belongs_to_nan(leaf: str) -> None:
    (out,) = run(LEAVES[leaf](), "relu_pullback", np.asarray([2.0, 3.0, 4.0]), np.asarray([np.nan, 0.0, 1.0]))
    assert out.tolist() == [2, 0, 4]


@every_leaf
def test_a_window_with_nan_has_its_gradient_there(leaf: str) -> None:
    how = {"kernel": (2,), "stride": (2,), "padding": ((0, 0),), "dilation": (1,)}
    x = np.asarray([1.0, np.nan, 2.0, 3.0, np.nan, 4.0])
    (out,) = run(LEAVES[leaf](), "max_pool_pullback", np.asarray([5.0, 6.0, 7.0]), x, **how)
    assert out.tolist() == [0, 5, 0, 6, 7, 0]


@other_leaves
def test_singular_values_of_nan_are_an_error_or_nan(leaf: str) -> None:
    B, x = LEAVES[leaf](), np.asarray([[3.0, -0.5], [np.nan, 1.0]])
    for name, operands in (("svdvals", [x]), ("cofactor", [x]), ("cofactor_pullback", [x, x])):
        try:
            (out,) = run(B, name, *operands)
        except (np.linalg.LinAlgError, errors.SingularError):
            continue
        assert np.isnan(out).any()


@every_leaf
def test_logsumexp_of_infinities(leaf: str) -> None:
    x = np.asarray([[-np.inf, -np.inf], [np.inf, 0.0], [-np.inf, 1.0], [1000.0, 1000.0]])
    (out,) = run(LEAVES[leaf](), "logsumexp", x, axis=(1,), keepdims=False)
    np.testing.assert_allclose(out, [-np.inf, np.inf, 1.0, 1000.0 + np.log(2)])


@every_leaf
def test_integers_wrap_and_divide_by_zero_to_zero(leaf: str) -> None:
    B = LEAVES[leaf]()
    x = np.asarray([250, 3], dtype=np.uint8)
    assert run(B, "add", x, x)[0].tolist() == [244, 6]
    assert run(B, "negative", x)[0].tolist() == [6, 253]
    assert run(B, "bitwise_invert", x)[0].tolist() == [5, 252]
    assert run(B, "astype", np.asarray([-1, 300]), dtype=np.dtype("u1"))[0].tolist() == [255, 44]
    assert run(B, "floor_divide", x, np.zeros_like(x))[0].tolist() == [0, 0]
    assert run(B, "remainder", x, np.zeros_like(x))[0].tolist() == [0, 0]


@every_leaf
def test_cofactors_of_singular_matrices(leaf: str) -> None:
    B = LEAVES[leaf]()
    rank_two = np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    (out,) = run(B, "cofactor", rank_two)
    np.testing.assert_allclose(out, [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]], atol=1e-12)
    np.testing.assert_allclose(run(B, "cofactor", np.zeros((3, 3)))[0], np.zeros((3, 3)), atol=1e-12)


@every_leaf
def test_linear_algebra_refuses_singular_matrices(leaf: str) -> None:
    B = LEAVES[leaf]()
    for name, *operands in (
        ("inv", np.zeros((2, 2))),
        ("solve", np.zeros((2, 2)), np.ones((2, 1))),
        ("cholesky", -np.eye(2)),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            B.to_numpy(called(B, name, [B.from_numpy(x, copy=True) for x in operands], {}))


@every_leaf
def test_cholesky_reads_the_lower_triangle_alone(leaf: str) -> None:
    x = np.asarray([[4.0, 99.0], [2.0, 5.0]])
    np.testing.assert_allclose(run(LEAVES[leaf](), "cholesky", x)[0], [[2, 0], [1, 2]], rtol=1e-14)


@every_leaf
@pytest.mark.parametrize("label", [-1, 3])
def test_cross_entropy_refuses_labels_that_are_no_classes(leaf: str, label: int) -> None:
    B = LEAVES[leaf]()
    arrays = [B.from_numpy(x, copy=True) for x in (np.zeros((2, 3)), np.asarray([0, label]))]
    with pytest.raises(errors.OutOfRangeError):  # where values are computed later, when they are
        B.to_numpy(called(B, "softmax_cross_entropy", arrays, {}))


@every_leaf
def test_subnormal_numbers_are_numbers(leaf: str) -> None:
    tiny = np.finfo(np.float64).tiny / 4
    assert run(LEAVES[leaf](), "multiply", np.asarray([tiny]), 2.0)[0].tolist() == [2 * tiny]


# --- indexing, at random ---


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """A key of ints, slices, None and integer arrays that broadcast together, for an array of a shape."""
    common = [(), (2,), (2, 3), (0,)][rng.integers(4)]
    key: list[Any] = []
    arrays = []
    for size in shape[: rng.integers(len(shape) + 1)]:
        if rng.random() < 0.2:
            key.append(None)
        match rng.integers(4) if size else 3:
            case 0:
                key.append(int(rng.integers(-size, size)))
            case 1 | 2:
                kept = tuple([n if rng.random() < 0.7 else 1 for n in common]) if 0 not in common else common
                arrays.append(np.asarray(rng.integers(-size, size, kept)))
                key.append(ARRAY)
            case _:
                start, stop = (int(v) for v in rng.integers(-size - 1, size + 2, 2))
                key.append(slice(start, stop, int(rng.choice([-2, -1, 1, 2]))))
    return tuple(key), arrays


@other_leaves
@pytest.mark.parametrize("first", range(0, 150, 25))
def test_random_keys(leaf: str, first: int) -> None:
    with Each() as each:
        for seed in range(first, first + 25):
            with each("seed", seed):
                rng = np.random.default_rng(seed)
                shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(4)))
                key, arrays = random_key(rng, shape)
                x = rng.normal(size=shape)
                target = index_shape(shape, *[a.shape for a in arrays], key=key)
                B = LEAVES[leaf]()
                expected = run(NumPy(), "index", x, *arrays, key=key)
                assert expected[0].shape == target
                assert_same(run(B, "index", x, *arrays, key=key), expected)
                for value in (np.asarray(rng.normal(size=target)), np.asarray(rng.normal())):
                    for name in ("index_set", "index_add"):
                        expected = run(NumPy(), name, x, value, *arrays, key=key)
                        assert_same(run(B, name, x, value, *arrays, key=key), expected)


@every_leaf
def test_arrays_apart_put_their_axes_in_front(leaf: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    arrays = (np.asarray([1, 0, 1, 1, 0]), np.asarray([3, 2, 3, 0, 0]))
    (out,) = run(LEAVES[leaf](), "index", x, *arrays, key=(ARRAY, slice(None), ARRAY))
    np.testing.assert_array_equal(out, x[arrays[0], :, arrays[1]])
    assert out.shape == (5, 3)


@every_leaf
def test_places_written_twice(leaf: str) -> None:
    B = LEAVES[leaf]()
    x, places, values = (np.zeros(4), np.asarray([1, 3, 1, 1]), np.asarray([1.0, 2.0, 3.0, 4.0]))
    assert run(B, "index_set", x, values, places, key=(ARRAY,))[0].tolist() == [0, 4, 0, 2]
    assert run(B, "index_add", x, values, places, key=(ARRAY,))[0].tolist() == [0, 8, 0, 2]


# --- backends as objects ---


@every_leaf
def test_equal_configurations_are_one_backend(leaf: str) -> None:
    B = LEAVES[leaf]()
    assert B is LEAVES[leaf]()
    assert pickle.loads(pickle.dumps(B)) is B
    assert copy.deepcopy(B) is B
    assert repr(B) == leaf


def test_different_configurations_are_different_backends() -> None:
    backends: list[LeafBackend] = [NumPy(), Reference()]
    assert backends[0] is not backends[1]
    with pytest.raises(errors.DeviceError):
        Reference(digits=0)
    with pytest.raises(errors.DeviceError):
        ArrayAPI("array_api_strict")  # type: ignore[arg-type]
    with pytest.raises(errors.DeviceError, match="math does not follow the array API standard"):
        ArrayAPI(math)


@every_leaf
def test_arrays_go_through_numpy_unchanged(leaf: str) -> None:
    B = LEAVES[leaf]()
    arrays: list[Any] = [[[1 + 2j]], 1.5, np.zeros((0, 2)), [True], np.asarray([0.1, np.nan], dtype=np.float32)]
    for values in map(np.asarray, arrays):
        array = B.from_numpy(values, copy=True)
        assert tuple(array.shape) == values.shape
        assert B.dtype_of(array) is as_dtype(values.dtype)
        assert_same([B.to_numpy(array)], [values], 0)
        assert_same([B.to_numpy(B.load(pickle.loads(pickle.dumps(B.dump(array))), keys=None))], [values], 0)


@every_leaf
def test_random_keys_give_the_same_numbers_everywhere(leaf: str) -> None:
    B = LEAVES[leaf]()
    B.seed(5)
    keys = [B.next_key(), B.next_key()]
    B.seed(5)
    assert keys == [B.next_key(), B.next_key()]
    for name, parameters in [
        ("random_uniform", {"shape": (3,), "dtype": np.dtype("f8")}),
        ("random_normal", {"shape": (3,), "dtype": np.dtype("f8")}),
        ("random_integers", {"low": 0, "high": 1000, "shape": (3,), "dtype": np.dtype("i8")}),
        ("random_permutation", {"size": 50, "dtype": np.dtype("i8")}),
    ]:
        first, again, second = (run(B, name, key=key, **parameters)[0] for key in (keys[0], keys[0], keys[1]))
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first, run(NumPy(), name, key=keys[0], **parameters)[0])
        assert (first != second).any()


@needs_mpmath
def test_reference_keeps_its_digits_and_leaves_mpmath_alone() -> None:
    before = mpmath.mp.dps
    B = Reference(digits=40)
    third = B.divide(B.full(shape=(1,), value=1, dtype=np.dtype("f4")), 3)
    (value,) = Reference.to_list(third)
    with mpmath.workdps(50):
        assert abs(mpmath.mpf(value) * 3 - 1) < mpmath.mpf(10) ** -39
    assert mpmath.mp.dps == before
    assert B.to_numpy(third).tolist() == [np.float32(1) / np.float32(3)]


def test_reference_refuses_scalars_that_need_promotion() -> None:
    B = Reference()
    with pytest.raises(errors.DtypeError):
        B.add(B.from_numpy(np.asarray([1, 2]), copy=True), 0.5)


@pytest.mark.skipif(array_api_strict is None, reason="array_api_strict is not installed")
def test_a_missing_dtype_is_named() -> None:
    with pytest.raises(errors.DtypeError, match="float16"):
        ArrayAPI(array_api_strict).full(shape=(), value=0, dtype=np.dtype("f2"))


def test_erf_in_single_precision_is_near_that_in_double() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20_001), np.geomspace(1e-30, 1, 2001)]).astype("f4")
    exact = NumPy().erf(x.astype("f8"))
    found = NumPy().erf(x)
    assert found.dtype == np.float32
    near = x != 0
    assert np.max(np.abs(found[near] - exact[near]) / np.abs(exact[near])) < 2.5e-7
    assert np.max(np.abs(found)) <= 1
    assert np.isnan(NumPy().erf(np.array([np.nan], "f4"))).all()
    assert NumPy().erf(np.zeros(1, "f4")).tolist() == [0.0]
