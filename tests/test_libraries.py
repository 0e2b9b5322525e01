"""Array libraries as devices: their names, their arrays coming in and going out, and what is missing said kindly."""

from __future__ import annotations

import doctest
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import peer, same
from test_leaf_backends import LEAVES, MARKS

import adjoint as ad
from adjoint import errors

# --- what is not there ---


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("torch", "torch", "torch"),
        ("autodiff<torch:cpu>", "torch", "torch"),
        ("cupy:0", "cupy", "cupy"),
        ("jax", "jax", "jax"),
        ("dask", "dask.array", "dask"),
    ],
)
def test_a_library_that_is_missing_says_what_to_install(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.DeviceError, match=rf"pip install 'adjoint\[{extra}\]'"):
        ad.device(name)


def test_names_that_mean_no_device() -> None:
    for name in ("numpy:0", "autodiff:0<numpy>", "torch:", "torch<numpy>"):
        with pytest.raises(errors.DeviceError):
            ad.device(name)


@pytest.mark.parametrize(("module", "way"), [("jax.numpy", "JAX"), ("dask.array", "Dask")])
def test_a_namespace_with_a_backend_of_its_own_names_it(module: str, way: str) -> None:
    with pytest.raises(errors.DeviceError, match=rf"ad\.{way}\(\)"):
        ad.ArrayAPI(peer(module))


def test_numpy_and_torch_through_the_standard() -> None:
    for module in (np, peer("torch")):
        x = ad.tensor([1.0, 2.0], device=ad.Autodiff(ad.ArrayAPI(module))).require_grad()
        same(ad.exp(x).sum().backward()[x] / ad.exp(x).inner(), np.ones(2, np.float32))


@pytest.fixture
def strict() -> Any:
    return peer("array_api_strict")


def test_a_device_of_another_library(strict: Any) -> None:
    there = strict.Device("device1")
    device = ad.ArrayAPI(strict, there)
    assert pickle.loads(pickle.dumps(device)) is device is not ad.ArrayAPI(strict)
    assert ad.asarray(strict.ones(2), device=device).native().device == there
    assert ad.asarray([1.0, 2.0], device="numpy").to_device(device).native().device == there
    with pytest.raises(errors.DeviceError, match="torch has no device 'cuda:99'"):
        ad.ArrayAPI(peer("torch"), "cuda:99")
    with pytest.raises(errors.DeviceError, match="array_api_strict has no device 'nowhere'"):
        ad.ArrayAPI(strict, "nowhere")


def test_arrays_of_a_namespace_come_in_without_a_copy(strict: Any) -> None:
    values = strict.arange(3, dtype=strict.float64)
    x = ad.asarray(values, device=ad.Autodiff(ad.ArrayAPI(strict))).require_grad()
    values[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 2.0]
    assert ((x * values).sum().backward()[x] == values).all()
    assert ad.tensor(values, device=x.device.inner).native() is not values


@pytest.mark.parametrize("there", ["numpy", "torch", "jax", "dask"])
@pytest.mark.parametrize("here", ["torch", "jax", "dask"])
def test_arrays_of_another_library_meet_no_tensor(here: str, there: str) -> None:
    for module in {here, there} - {"numpy"}:
        peer(module)
    array, x = ad.ones(2, device=here).native(), ad.ones(2, device=f"autodiff<{there}>")
    if here == there:
        assert (x + array).tolist() == [2.0, 2.0]
        return
    for meet in (
        lambda: x + array,
        lambda: x == array,
        lambda: x != array,
        lambda: x @ array,
        lambda: ad.maximum(x, array),
    ):
        with pytest.raises(errors.DeviceError, match=rf"an array on {here}.* to_device\('{here}"):
            meet()
    taken = ad.asarray(array, device=x.device)
    assert (x + taken).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("kind", [ad.Torch, ad.JAX, ad.Dask])
def test_examples_that_are_skipped_without_the_library(kind: type) -> None:
    peer(kind.__name__.lower())
    (docstring,) = doctest.DocTestFinder(recurse=False).find(kind, kind.__name__, globs={})
    assert all(example.options.pop(doctest.SKIP) for example in docstring.examples[1:])
    assert doctest.DocTestRunner().run(docstring) == (0, len(docstring.examples))


@pytest.mark.parametrize("name", ["numpy", "reference", "array_api[array_api_strict]", "torch", "jax", "dask"])
def test_every_leaf_refuses_the_same_data_types(name: str) -> None:
    if name not in ("numpy", "reference"):
        peer(name.strip("]").partition("[")[2] or name)
    floats, bools = (ad.asarray(values, device=name) for values in (np.float32([1, 2]), np.array([True, False])))
    for refused in (
        lambda: -bools,
        lambda: ad.negative(bools),
        lambda: ~floats,
        lambda: floats & floats,
        lambda: floats << 1,
        lambda: floats << floats,
        lambda: ad.atan2(floats * 1j, 1.0),
    ):
        with pytest.raises(errors.DtypeError, match=r"expected .*, received"):
            refused()
    for rounding in (abs, ad.abs, ad.floor, ad.ceil, ad.trunc, ad.round):
        same(rounding(bools), bools.numpy())


# --- PyTorch ---


@pytest.fixture
def torch() -> Any:
    return peer("torch")


def test_dlpack_of_the_leaf_s_own_library_goes_through_nothing_else(torch: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(np, "from_dlpack", None)
    x = torch.ones(3)
    shared, copied = (ad.from_dlpack(x, device="autodiff<torch>", copy=copy) for copy in (None, True))
    assert shared.native().data_ptr() == x.data_ptr() != copied.native().data_ptr()
    same(copied, np.ones(3, np.float32))


def test_eigenvalues_of_what_is_not_finite_are_not_looked_for(torch: Any) -> None:
    x = torch.tensor([[-np.inf, -1.0], [np.nan, np.inf]])  # for which LAPACK does not end
    for find in (ad.linalg.eig, ad.linalg.eigvals):
        with pytest.raises(errors.SingularError, match="isfinite"):
            find(ad.asarray(x, device="torch"))


def test_names_of_torch(torch: Any) -> None:
    assert ad.device("torch") is ad.device("torch:cpu") is ad.Torch() is ad.Torch("cpu")
    assert ad.device("autodiff<torch:cpu>") is ad.Autodiff(ad.Torch())
    assert ad.device(ad.Torch().name) is ad.Torch()
    assert pickle.loads(pickle.dumps(ad.Torch())) is ad.Torch()
    for name in ("torch:nowhere", "torch:7", "torch:cuda:99"):
        with pytest.raises(errors.DeviceError, match="no device"):
            ad.device(name)
    with pytest.raises(errors.DeviceError, match="a device is named, as 'cpu'"):
        ad.Torch(None)  # type: ignore[arg-type]


def test_a_device_of_torch_is_the_one_that_its_tensors_show(torch: Any) -> None:
    assert ad.Torch("cpu:0") is ad.Torch()  # as "cuda" is "cuda:0", and "mps" is "mps:0"
    assert (ad.ones(2, device="torch:cpu:0") + ad.asarray(torch.ones(2), device="torch")).tolist() == [2.0, 2.0]


def test_what_torch_refuses_is_typed(torch: Any) -> None:
    with pytest.raises(errors.DtypeError, match="of booleans there is ~"):
        ad.negative(ad.asarray([True], device="torch"))
    with pytest.raises(errors.UnsupportedPrimitiveError, match="'inv' on float16 .* Low precision"):
        ad.linalg.inv(ad.ones((1, 1), dtype=ad.float16, device="torch"))
    for f in (ad.special.erfcx, ad.special.log_ndtr):
        x = np.asarray([-1.5, 0.0, 2.5], np.float16)
        np.testing.assert_allclose(f(ad.asarray(x, device="torch")).numpy(), f(ad.asarray(x)).numpy(), rtol=2e-3)


def test_tensors_of_torch_that_are_no_arrays_here(torch: Any) -> None:
    for dtype in (torch.float8_e5m2, torch.float8_e4m3fn):
        with pytest.raises(errors.DtypeError, match=rf"{dtype}.* convert it first"):
            ad.asarray(torch.ones(2).to(dtype), device="torch")
        with pytest.raises(errors.DtypeError, match=rf"{dtype}.* convert it first"):
            ad.grad(lambda x: x.sum())(torch.ones(2).to(dtype))
    with pytest.raises(errors.ArgumentTypeError, match=r"sparse_coo; .* to_dense\(\)"):
        ad.grad(lambda x: (x * x).sum())(torch.eye(2).to_sparse())
    with pytest.raises(errors.DeviceError, match="meta, which has no values"):
        ad.asarray(torch.ones(2, device="meta"), device="torch")


def test_tensors_of_torch_come_in_without_a_copy(torch: Any) -> None:
    values = torch.arange(4.0)
    x = ad.asarray(values, device="autodiff<torch>")
    values[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 2.0, 3.0]
    for own in (ad.tensor(values, device="torch"), ad.asarray(values, device="torch", copy=True)):
        values[0] = 6.0
        assert own.tolist()[0] == 5.0
        values[0] = 5.0
    assert ad.asarray(values, dtype=ad.int64, device="torch").dtype == ad.int64


def test_tensors_that_torch_tracks(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    assert ad.asarray(weight, device="torch").tolist() == [1.0, 1.0]  # a parameter is a value
    with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
        ad.asarray(weight * 2, device="torch")


def test_torch_keeps_no_graph_of_its_own(torch: Any) -> None:
    x = ad.asarray(torch.ones(3, requires_grad=True), device="autodiff<torch>").require_grad()
    y = (ad.exp(x) * 2).sum()
    assert y.inner()._array.grad_fn is None
    np.testing.assert_allclose(y.backward()[x].numpy(), np.full(3, 2 * np.e), rtol=1e-6)


# --- what holds on every leaf ---


@pytest.fixture(
    params=[
        pytest.param(name, marks=MARKS.get(name, []))
        for name in LEAVES
        if name not in ("numpy", "reference[digits=30]")
    ]
)
def level(request: pytest.FixtureRequest) -> str:
    """Autodiff over each leaf whose library is installed."""
    return f"autodiff<{request.param}>"


def test_numbers_from_a_seed_are_the_same_as_on_numpy(level: str) -> None:
    drawn = []
    for name in ("autodiff<numpy>", level):
        ad.random.seed(3, device=name)
        first = ad.random.normal((3, 2), device=name).numpy(), ad.random.permutation(5, device=name).numpy()
        drawn.append([*first, ad.random.uniform(4, device=name).numpy()])
    for ours, theirs in zip(*drawn, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_dtypes_meet_as_on_numpy(level: str) -> None:
    narrow = "bool int8 int16 int32 uint8 float32 complex64".split()  # which all libraries have
    for x in narrow:
        for y in narrow:
            if x == y == "bool":
                continue
            pairs = [[ad.tensor([1, 0], dtype=dtype, device=name) for dtype in (x, y)] for name in (None, level)]
            expected, found = (a + b for a, b in pairs)
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist()), (x, y)
    one = ad.tensor([1], dtype=ad.int32, device=level)
    assert (one * 2).dtype == ad.int32
    assert (one * 0.5).dtype == ad.float32
    assert (one / 2).dtype == ad.float32
    assert (one.astype(ad.float32) * 1j).dtype == ad.complex64


def test_sums_of_bytes_are_as_on_numpy(level: str) -> None:
    values = np.asarray([[200, 100, 0], [255, 255, 3]], np.uint8)
    x = ad.asarray(values, device=level)
    if "jax" in level:  # whose 64 bits are 32 wide
        assert (ad.sum(x).item(), ad.prod(x, axis=1).tolist()) == (813, [0, 195075])
        return
    for f in (ad.sum, ad.prod):
        same(f(x, axis=1), f(ad.asarray(values), axis=1).numpy())
        same(f(x), f(ad.asarray(values)).numpy())
    for f in (ad.cumulative_sum, ad.cumulative_prod):
        same(f(x, axis=1), f(ad.asarray(values), axis=1).numpy())


def test_booleans_are_numbers_as_on_numpy(level: str) -> None:
    values = np.asarray([True, False, True])
    x = ad.asarray(values, device=level)
    if "jax" not in level:  # which adds no booleans
        same(ad.diag(x), np.diag(values))
    same(ad.isin(x, x[:1]), np.isin(values, values[:1]))
    for name in ("isnan", "isinf", "isfinite"):
        same(getattr(ad, name)(x), getattr(np, name)(values))


def test_complex_powers_and_roundings_are_as_on_numpy(level: str) -> None:
    z = np.asarray([0, 0, 1.5 + 2.5j, -0.5 - 3.5j], np.complex64)
    w = np.asarray([0, 1, 0, 1j], np.complex64)
    x, y = (ad.asarray(values, device=level) for values in (z, w))
    np.testing.assert_allclose(ad.pow(x, y).numpy(), np.power(z, w), rtol=1e-5)
    np.testing.assert_allclose(ad.pow(x, 0).numpy(), np.ones(4))
    same(ad.round(x), np.round(z))


def test_errors_are_typed_as_on_numpy(level: str) -> None:
    x = ad.ones((2, 3), device=level)
    with pytest.raises(errors.ShapeError):
        x + ad.ones((4,), device=level)
    with pytest.raises(errors.ShapeError):
        x @ x
    with pytest.raises(errors.OutOfRangeError):
        x[5]
    with pytest.raises(errors.OutOfRangeError):
        ad.take(x, ad.tensor([7], device=level), axis=1).numpy()
    with pytest.raises(errors.OutOfRangeError):
        ad.nn.cross_entropy(x, ad.tensor([0, 3], device=level)).numpy()
    with pytest.raises(errors.DeviceError):
        x + ad.ones((2, 3), device="autodiff<numpy>").require_grad()
    with pytest.raises(errors.DtypeError):
        ad.tensor([1], device=level).require_grad()
    with pytest.raises(errors.TrackedError):
        np.asarray(x.require_grad() * 2)
    if "jax" not in level:  # whose functions raise no errors: it says inf
        with pytest.raises(errors.SingularError):
            ad.linalg.inv(ad.zeros((2, 2), device=level)).numpy()
