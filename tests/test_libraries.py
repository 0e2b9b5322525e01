"""Array libraries as devices: their names, their arrays coming in and going out, and what is missing said kindly."""

from __future__ import annotations

import doctest
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import peer, same

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


@pytest.mark.parametrize("kind", [ad.Torch, ad.JAX, ad.Dask])
def test_examples_that_are_skipped_without_the_library(kind: type) -> None:
    peer(kind.__name__.lower())
    (docstring,) = doctest.DocTestFinder(recurse=False).find(kind, kind.__name__, globs={})
    assert all(example.options.pop(doctest.SKIP) for example in docstring.examples[1:])
    assert doctest.DocTestRunner().run(docstring) == (0, len(docstring.examples))


# --- PyTorch ---


@pytest.fixture
def torch() -> Any:
    return peer("torch")


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

LEAVES = {"torch": "torch", "jax": "jax", "dask[chunks=2]": "dask", "array_api[array_api_strict]": "array_api_strict"}


@pytest.fixture(params=LEAVES)
def level(request: pytest.FixtureRequest) -> str:
    """Autodiff over each library that is installed."""
    peer(LEAVES[request.param])
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
