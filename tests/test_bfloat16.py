"""bfloat16: values and derivatives on the leaves that have it, promotion as their libraries', and who refuses it."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from cases import CASES, Case
from conftest import peer
from each import Each

import adjoint as ad
from adjoint import dtypes, errors
from adjoint.primitives import TABLE

torch, jax, ml_dtypes, safetensors = (peer(name) for name in ("torch", "jax", "ml_dtypes", "safetensors.torch"))
jnp = jax.numpy
BF16 = np.dtype(ml_dtypes.bfloat16)
STEP = 2.0**-7  # two halves of a unit in the last place
LEAVES = ("torch:cpu", "jax")
leaves = pytest.mark.parametrize("leaf", LEAVES)
compiled = pytest.mark.parametrize("leaf", ["torch:cpu", pytest.param("jax", marks=pytest.mark.slow)])  # one by one
# what the libraries have no kernels for, as for float16
MISSING = frozenset(
    "inv det cofactor cofactor_pullback cholesky solve slogdet sqrtm logm solve_sylvester solve_banded expm "
    "solve_triangular eigh eigvalsh eig eigvals svdvals svd qr lu pinv lstsq rfft".split()
)


def near(found: Any, wanted: Any, steps: float = 1.0) -> None:
    """Within so many steps of the largest of what is wanted."""
    found, wanted = (np.asarray(x).astype(np.float64) for x in (found, wanted))
    assert found.shape == wanted.shape
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    assert np.abs(np.where(same, 0.0, found - wanted)).max(initial=0.0) <= steps * STEP * size


# --- values ---


def in_halves(case: Case) -> bool:
    """Whether operands are real numbers, of which there are several, and integers, and so is what they become."""
    dtype = case.parameters.get("dtype")
    if dtype is not None and (dtype.kind == "c" or dtype == np.float64):  # which JAX has not by itself
        return False
    arrays = [x for x in case.operands if isinstance(x, np.ndarray)]
    complexes = [x for x in case.operands if np.iscomplexobj(x)]
    return not complexes and any(x.dtype.kind == "f" and x.size > 1 for x in arrays)


def check_primitive(leaf: str, name: str, case: Case) -> None:
    """The value is that in float32, rounded or nearly so, or there is none in float16 either."""
    B = ad.device(leaf)

    def run(dtype: Any) -> list[Any]:
        operands = [
            B.from_numpy(x.astype(BF16).astype(dtype) if x.dtype.kind == "f" else x, copy=True)
            if isinstance(x, np.ndarray)
            else x
            for x in case.operands
        ]
        out = getattr(B, name)(*operands, **case.parameters)
        return list(out) if isinstance(out, (tuple, list)) else [out]

    if name in MISSING:
        for dtype in (BF16, dtypes.float16):
            with contextlib.suppress(NotImplementedError, RuntimeError, TypeError, ValueError):
                assert all(B.dtype_of(x) == dtype or B.dtype_of(x).kind not in "fV" for x in run(dtype))
        return
    for x, y in zip(run(BF16), run(dtypes.float32), strict=True):
        dtype = B.dtype_of(y)
        assert B.dtype_of(x) == (BF16 if dtype == np.float32 and case.parameters.get("dtype") != dtype else dtype)
        near(B.to_numpy(x), B.to_numpy(y), 2.0 if name.endswith("pullback") else 1.0)


def check_primitives(leaf: str, most: int) -> None:
    with Each() as each:
        for name, cases in CASES.items():
            if TABLE[name].kind == "random":
                continue
            for case in [case for case in cases if in_halves(case)][:most]:
                with each(name, case):
                    check_primitive(leaf, name, case)


def test_primitives_on_torch() -> None:
    check_primitives("torch", 1)


@pytest.mark.slow
@leaves
def test_primitives(leaf: str) -> None:
    check_primitives(leaf, 2 if leaf == "jax" else 100)  # each shape is compiled there


@leaves
def test_sums_are_those_of_the_library(leaf: str) -> None:
    x = np.random.default_rng(3).normal(size=(3, 300)).astype(BF16)
    ours = ad.asarray(x, device=leaf)
    theirs = [jnp.asarray(x), torch.tensor(x.astype("f4")).bfloat16()][leaf != "jax"]
    for axis in (0, 1):
        found = ad.sum(ours, axis)
        assert found.dtype == BF16
        assert found.tolist() == theirs.sum(axis).tolist()


def test_exponentials_of_matrices() -> None:
    """PyTorch's own overflows in half precision."""
    x = np.asarray([[0.5, 1.25], [-0.25, 0.75]], np.float32)
    for dtype in (dtypes.float16, BF16):
        near(ad.linalg.expm(ad.asarray(x, dtype=dtype, device="torch")).numpy(), ad.linalg.expm(x).numpy())


@compiled
def test_linear_algebra_is_refused_with_a_type(leaf: str) -> None:
    x = ad.asarray(np.eye(2), dtype=BF16, device=leaf)
    for f in (ad.linalg.inv, ad.linalg.cholesky, ad.linalg.eigh, ad.linalg.svd, ad.linalg.qr, ad.linalg.eigvals):
        with pytest.raises(errors.AdjointError, match="bfloat16"):
            f(x)
    assert ad.fft.fft(x).dtype == np.complex64
    assert ad.linalg.vector_norm(ad.full((64, 64), 2.0, dtype=BF16, device=leaf)).item() == 128.0


# --- derivatives ---

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "product": (lambda x, y: x * y, lambda x, y: x * y, lambda x, y: x * y),
    "quotient": (lambda x, y: x / y, lambda x, y: x / y, lambda x, y: x / y),
    "power": (lambda x, y: x**3 * y, lambda x, y: x**3 * y, lambda x, y: x**3 * y),
    "exp": (lambda x, y: ad.exp(x) * y, lambda x, y: torch.exp(x) * y, lambda x, y: jnp.exp(x) * y),
    "sin": (lambda x, y: ad.sin(x) * y, lambda x, y: torch.sin(x) * y, lambda x, y: jnp.sin(x) * y),
    "tanh": (lambda x, y: ad.tanh(x) * y, lambda x, y: torch.tanh(x) * y, lambda x, y: jnp.tanh(x) * y),
    "sqrt": (lambda x, y: ad.sqrt(x * x) * y, lambda x, y: torch.sqrt(x * x) * y, lambda x, y: jnp.sqrt(x * x) * y),
    "matmul": (lambda x, y: x @ y.mT, lambda x, y: x @ y.mT, lambda x, y: x @ y.mT),
    "mean": (lambda x, y: ad.mean(x * y, 0), lambda x, y: (x * y).mean(0), lambda x, y: (x * y).mean(0)),
    "max": (lambda x, y: ad.max(x, 1) * y[:, 0], lambda x, y: x.amax(1) * y[:, 0], lambda x, y: x.max(1) * y[:, 0]),
    "relu": (lambda x, y: ad.nn.relu(x) * y, lambda x, y: torch.relu(x) * y, lambda x, y: jax.nn.relu(x) * y),
    "softmax": (
        lambda x, y: ad.nn.softmax(x) * y,
        lambda x, y: torch.softmax(x, -1) * y,
        lambda x, y: jax.nn.softmax(x) * y,
    ),
    "index": (lambda x, y: x[1:, ::2] * y[:-1, ::2],) * 3,
}


@compiled
def test_derivatives_are_those_of_the_library(leaf: str) -> None:
    """In reverse and forward mode, over one another, and in batches."""
    rng = np.random.default_rng(7)
    x, y = (rng.uniform(0.5, 1.5, (3, 4)).astype(BF16) * rng.choice([-1, 1], (3, 4)).astype(BF16) for _ in "xy")
    x, y = x.astype(BF16), y.astype(BF16)
    ours = [ad.asarray(v, device=f"autodiff<{leaf}>") for v in (x, y)]
    with Each() as each:
        for name, (f, in_torch, in_jax) in FUNCTIONS.items():
            with each(name):
                found = ad.grad(lambda x, y, f=f: f(x, y).sum(), argnums=(0, 1))(*ours)
                if leaf == "jax":
                    wanted = jax.grad(lambda x, y, f=in_jax: f(x, y).sum(), argnums=(0, 1))(
                        jnp.asarray(x), jnp.asarray(y)
                    )
                else:
                    theirs = [torch.tensor(v.astype("f4")).bfloat16().requires_grad_() for v in (x, y)]
                    wanted = [g.float() for g in torch.autograd.grad(in_torch(*theirs).sum(), theirs)]
                for g, h in zip(found, wanted, strict=True):
                    assert g.dtype == BF16
                    near(g.numpy(), h, 2.0)
                wide = [v.astype("float32") for v in ours]
                value, along = ad.jvp(f, tuple(ours), tuple(ours))
                assert value.dtype == along.dtype == BF16
                near(along.numpy(), ad.jvp(f, tuple(wide), tuple(wide))[1].numpy(), 2.0)
                each_row = ad.vmap(ad.grad(lambda x, y, f=f: f(x[None], y[None]).sum()))
                if name not in ("index", "mean", "matmul"):
                    near(each_row(*ours).numpy(), found[0].numpy(), 2.0)
    cube = ad.hessian(lambda x: (x**3).sum())(ours[0][0])
    assert cube.dtype == BF16
    near(cube.numpy(), np.diag(6 * x[0].astype("f4")))


# --- data types ---


def test_promotion_is_that_of_torch_and_jax() -> None:
    with Each() as each:
        for dtype in dtypes.ALL:
            with each(dtype):
                found = ad.result_type(ad.bfloat16, dtype)
                assert found is ad.result_type(dtype, ad.bfloat16) is dtypes.promote(dtype, BF16)
                name = str(torch.promote_types(torch.bfloat16, getattr(torch, dtype.name)))
                assert name == f"torch.{found}"
                assert jnp.promote_types(jnp.bfloat16, dtype) == found
    assert [ad.result_type(BF16, v) for v in (True, 2, 2.5, 1j)] == [BF16, BF16, BF16, np.complex64]
    assert ad.result_type(BF16, BF16) is BF16
    assert dtypes.precision(frozenset([BF16, dtypes.float16])) is dtypes.float32


def test_what_is_asked_of_the_dtype() -> None:
    assert ad.bfloat16 is BF16 is dtypes.as_dtype("bfloat16") is dtypes.as_dtype(ml_dtypes.bfloat16)
    info = ad.finfo(ad.bfloat16)
    assert (info.bits, info.eps, info.dtype, info.max) == (16, 2.0**-7, BF16, float(torch.finfo(torch.bfloat16).max))
    assert ad.isdtype(BF16, "real floating")
    assert ad.isdtype(BF16, "numeric")
    assert not ad.isdtype(BF16, ("bool", "integral", "complex floating", ad.float16))
    assert [ad.can_cast(BF16, d) for d in (BF16, "float16", "float32", "complex64", "int64")] == [
        True, False, True, True, False,
    ]  # fmt: skip
    assert not ad.can_cast(ad.float16, BF16)
    with pytest.raises(errors.DtypeError, match="not supported"):
        dtypes.as_dtype(np.dtype([("a", "f4")]))
    with pytest.raises(errors.DtypeError, match="expected numbers"):
        ad.asarray(np.zeros(2, [("a", "f4")]), device="torch")


@compiled
def test_tensors(leaf: str) -> None:
    x = ad.asarray([1.0, 2.5, -3.0], dtype="bfloat16", device=leaf)
    assert x.dtype is BF16
    assert x.numpy().dtype == BF16
    assert (x.tolist(), x[1].item(), float(x[1]), x.itemsize) == ([1.0, 2.5, -3.0], 2.5, 2.5, 2)
    assert repr(x) == f"Tensor([1, 2.5, -3], dtype=bfloat16, device={leaf})"
    assert f"{x:.1f}" == "[1.0, 2.5, -3.0]"
    assert (x > 1).tolist() == [False, True, False]
    assert [y.dtype for y in (x + 1, x * 2.5, x + ad.asarray([1, 2, 3], device=leaf), x @ x, ad.zeros_like(x))] == [
        BF16
    ] * 5
    assert x.astype(ad.float32).astype(ad.bfloat16).tolist() == x.tolist()
    assert ad.asarray(1 + 2.0**-9, device=leaf).astype(BF16).item() == 1.0  # rounded to even
    assert x.astype(ad.int32).tolist() == [1, 2, -3]
    for other in LEAVES:
        assert x.to_device(other).tolist() == x.tolist()
    for theirs in (torch.ones(3, dtype=torch.bfloat16), jnp.ones(3, jnp.bfloat16)):
        assert ad.asarray(theirs, device=leaf).dtype is BF16
        assert ad.sin(theirs).dtype is BF16
    with ad.use_device(leaf), ad.use_dtype("bfloat16"):
        assert {ad.zeros(2).dtype, ad.asarray([0.5]).dtype, ad.random.normal((2,)).dtype} == {BF16}
        assert ad.asarray([1j]).dtype == np.complex64
        draw = ad.random.uniform((4000,))
        assert draw.dtype is BF16
        assert (draw < 1).all()
        assert math.isclose(draw.mean().item(), 0.5, abs_tol=0.02)


@pytest.mark.parametrize("leaf", ["numpy", "reference", "dask", "array_api[array_api_strict]"])
def test_leaves_without_it_say_which_have_it(leaf: str) -> None:
    x = ad.asarray([1.0], dtype="bfloat16", device="torch")
    makes: list[Callable[[], Any]] = [
        lambda: ad.asarray([1.0], dtype="bfloat16", device=leaf),
        lambda: ad.ones(2, device=leaf).astype(ad.bfloat16),
        lambda: ad.zeros(2, "bfloat16", device=leaf),
        lambda: ad.random.normal((2,), dtype="bfloat16", device=leaf),
        lambda: ad.asarray(x.numpy(), device=leaf),
        lambda: ad.asarray(x.native(), device=leaf),
        lambda: ad.asarray(x.to_device("jax").native(), device=leaf),
        lambda: x.to_device(leaf),
    ]
    with Each() as each:
        for i, make in enumerate(makes):
            with (
                each(i),
                pytest.raises(errors.DtypeError, match=r"no bfloat16; device='torch' .* x.astype\(ad.float32\)"),
            ):
                make()
    assert not ad.can_cast(ad.ones(2, device=leaf), ad.bfloat16)


def test_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, adjoint as ad; ad.ones(2) + 1.5; from adjoint import *; print('ml_dtypes' in sys.modules)"
    out = processes.python(code)
    assert out.stdout == "False\n"
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtypes.bfloat16_dtype.cache_clear()
    for ask in (lambda: dtypes.bfloat16, lambda: dtypes.as_dtype("bfloat16")):
        with pytest.raises(errors.MissingLibraryError, match=r"pip install 'adjoint\[bfloat16\]'"):
            ask()


# --- modules ---


@compiled
def test_modules(leaf: str, tmp_path: Path) -> None:
    with ad.use_device(f"autodiff<{leaf}>"):
        wide = ad.nn.Sequential(ad.nn.Linear(3, 4), ad.nn.LayerNorm(4), ad.nn.relu, ad.nn.Linear(4, 2))
        model = wide.map(lambda x: x.astype("bfloat16"))
        x = ad.random.normal((5, 3), dtype="bfloat16")
        near(model(x).numpy(), model.map(lambda v: v.astype("float32"))(x.astype("float32")).numpy(), 4.0)

        def loss(model: Any) -> Any:
            return (model(x) ** 2).mean()

        for optimizer in (ad.optim.SGD(lr=0.125), ad.optim.AdamW(lr=0.125)):
            state, trained = optimizer.init(model), model
            for _ in range(3):
                trained, state = optimizer.step(trained, ad.grad(loss)(trained), state)
            assert {v.dtype for v in trained.record().values()} == {BF16}
            assert loss(trained).item() < loss(model).item()
        model.save(tmp_path / "ours")
        again = wide.map(lambda v: v.astype("bfloat16") * 0).load(tmp_path / "ours")
        assert all((v == model.record()[name]).all() for name, v in again.record().items())
        with pytest.raises(errors.DtypeError, match="bfloat16 in the record, and float32"):
            wide.load(tmp_path / "ours")
        read = safetensors.load_file(tmp_path / "ours")
        assert {v.dtype for v in read.values()} == {torch.bfloat16}
        theirs = torch.nn.Linear(3, 2).bfloat16()
        safetensors.save_file(theirs.state_dict(), tmp_path / "theirs")
        layer = ad.nn.Linear(3, 2).map(lambda v: v.astype("bfloat16"))
        for ours in (layer.load(tmp_path / "theirs"), layer.load_record(theirs.state_dict())):
            assert ours.weight.tolist() == theirs.weight.tolist()
