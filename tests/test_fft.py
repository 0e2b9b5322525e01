"""Fourier transforms against NumPy, PyTorch and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

F = ad.fft
rng = np.random.default_rng(5)
NORMS = ["backward", "ortho", "forward"]
REAL = {"rfft", "ihfft", "rfftn", "rfft2", "ihfftn", "ihfft2"}  # of real numbers alone


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    return x.astype(dtype)


def operand(name: str, shape: tuple[int, ...], narrow: bool) -> Any:
    return values(shape, ("f4" if narrow else "f8") if name in REAL else ("c8" if narrow else "c16"))


def compare(name: str, x: Any, options: dict[str, Any], torch_options: dict[str, Any]) -> None:
    """Values with NumPy's or SciPy's and PyTorch's, and the gradient with PyTorch's."""
    torch = peer("torch")
    narrow = x.dtype.itemsize <= 4 + 4 * (x.dtype.kind == "c")
    leaf, other = ad.asarray(x).require_grad(), torch.tensor(x, requires_grad=True)
    out, theirs = getattr(F, name)(leaf, **options), getattr(torch.fft, name)(other, **torch_options)
    assert (out.shape, str(out.dtype)) == (tuple(theirs.shape), str(theirs.dtype).removeprefix("torch."))
    tolerance = 2e-5 if narrow else 1e-13
    library = np.fft if hasattr(np.fft, name) else peer("scipy.fft")
    wanted = getattr(library, name)(x, **options)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=tolerance, atol=tolerance * max(1, np.abs(wanted).max()))
    w = values(out.shape, out.numpy().dtype)
    found = (out * ad.asarray(w)).real.sum().backward()[leaf]
    (expected,) = torch.autograd.grad((theirs * torch.tensor(w)).real.sum(), other)
    size = max(1, expected.abs().max().item())
    np.testing.assert_allclose(found.numpy(), expected.resolve_conj().numpy(), rtol=tolerance, atol=tolerance * size)
    assert found.dtype is leaf.dtype


@pytest.mark.peers
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 5, 6, 9])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name: str, narrow: bool, axis: int, n: int | None, norm: str) -> None:
    x = operand(name, (5, 6), narrow)
    compare(name, x, {"n": n, "axis": axis, "norm": norm}, {"n": n, "dim": axis, "norm": norm})


@pytest.mark.peers
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "axes"),
    [(None, (0, 2)), ((3, 5), (2, 0)), ((6, 2), (1, 2)), (None, (1,)), ((2, 3, 4), (0, 1, 2)), (None, (2, 1, 0))],
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_several_axes(name: str, s: Any, axes: Any, norm: str) -> None:
    x = operand(name, (3, 4, 5), False)
    compare(name, x, {"s": s, "axes": axes, "norm": norm}, {"s": s, "dim": axes, "norm": norm})


@pytest.mark.peers
@pytest.mark.parametrize("name", "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn".split())
def test_the_axes_that_are_meant_without_naming_them(name: str) -> None:
    compare(name, operand(name, (3, 4, 5), False), {}, {})


@pytest.mark.parametrize("size", [None, -1])
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_sizes_that_stay(name: str, size: Any) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    for s in ((size, 6), (6, size)):
        whole = [n if v == size else v for n, v in zip(x.shape[1:], s, strict=True)]
        if name.startswith("irfft") and s[1] == size:
            whole[1] = 2 * (x.shape[-1] - 1)
        found = getattr(ad.fft, name)(ad.asarray(x), s=s, axes=(1, 2))
        np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(x, s=whole, axes=(1, 2)), atol=1e-12)
    with pytest.raises(ad.errors.ArgumentTypeError, match="sizes s are integers"):
        getattr(ad.fft, name)(x, s=(2.0, size), axes=(1, 2))


@pytest.mark.parametrize("kind", ["reverse", "forward", "batched"])
def test_imaginary_parts_that_do_not_count(kind: str) -> None:
    """Of the ends of half a spectrum the real part is read: no gradient flows to the other."""
    x = values((4,), "c16")
    for size in (6, 7):
        ad.testing.check_grads(lambda z, size=size: F.irfft(z, n=size), (x,), modes=(kind,))
        leaf = ad.asarray(x).require_grad()
        gradient = (F.irfft(leaf, n=size) ** 2).sum().backward()[leaf].numpy()
        assert gradient[0].imag == 0
        assert (gradient[3].imag == 0) == (size == 6)


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool", "float32"])
def test_what_is_transformed_in_single_precision(dtype: str) -> None:
    x = ad.asarray(np.array([1, 0, 1, 1]).astype(dtype))
    for f in (F.fft, F.rfft, F.ihfft):
        assert f(x).dtype is ad.complex64
    for f in (F.irfft, F.hfft):
        assert f(x).dtype is ad.float32
    np.testing.assert_allclose(F.fft(x).numpy(), np.fft.fft([1, 0, 1, 1]), atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_frequencies_and_shifts(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        found = getattr(F, name)(n, d=0.3, dtype=ad.float64)
        np.testing.assert_array_equal(found.numpy(), getattr(np.fft, name)(n, 0.3))
    x = values((n, 3), "f8")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (1,), (0, 1)):
            np.testing.assert_array_equal(
                getattr(F, name)(ad.asarray(x), axes=axes).numpy(), getattr(np.fft, name)(x, axes)
            )
    assert F.fftfreq(n).dtype is ad.float32
    assert F.rfftfreq(n, device="numpy").device is ad.NumPy()


@pytest.mark.peers
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser", "cosine", "nuttall", "gaussian"])
def test_windows_are_those_of_scipy_and_pytorch(name: str, periodic: bool, n: int) -> None:
    torch, windows = peer("torch"), peer("scipy.signal.windows")
    more = {"kaiser": (8.6,), "gaussian": (1.7,)}.get(name, ())
    found = getattr(F, name)(n, *more, periodic=periodic, dtype=ad.float64).numpy()
    np.testing.assert_allclose(found, getattr(windows, name)(n, *more, sym=not periodic), atol=1e-15)
    if name in ("cosine", "nuttall", "gaussian"):
        how = {"std": 1.7} if more else {}
        theirs = getattr(torch.signal.windows, name)(n, sym=not periodic, dtype=torch.float64, **how)
    else:
        theirs = getattr(torch, name + "_window")(n, periodic, *more, dtype=torch.float64)
    np.testing.assert_allclose(found, theirs.numpy(), atol=1e-14)
    if more:
        tuned = getattr(F, name)(n, ad.tensor(more[0], dtype=ad.float64), periodic=periodic)
        np.testing.assert_allclose(tuned.numpy(), found, atol=1e-15)
    assert getattr(F, name)(n).dtype is ad.float32


STFT: list[dict[str, Any]] = [
    {}, {"hop_length": 3}, {"center": False}, {"pad_mode": "constant"}, {"normalized": True}, {"onesided": False},
    {"win_length": 5, "hop_length": 2}, {"hop_length": 11},
]  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("options", STFT, ids=str)
@pytest.mark.parametrize("shape", [(40,), (2, 33)])
@pytest.mark.parametrize("windowed", [False, True])
def test_short_time_transforms_are_those_of_pytorch(options: dict[str, Any], shape: Any, windowed: bool) -> None:
    torch = peer("torch")
    x, w = values(shape, "f8"), rng.uniform(0.5, 1.5, options.get("win_length", 8))
    leaves = [ad.asarray(v).require_grad() for v in (x, w)]
    others = [torch.tensor(v, requires_grad=True) for v in (x, w)]
    hop = {"hop_length": 2, **options}
    out = F.stft(leaves[0], 8, window=leaves[1] if windowed else None, **hop)
    weights = others[1] if windowed else torch.ones(len(w), dtype=torch.float64)  # None warns there
    theirs = torch.stft(others[0], 8, window=weights, return_complex=True, **hop)
    np.testing.assert_allclose(out.numpy(), theirs.detach().numpy(), atol=1e-12)
    g = values(out.shape, "c16")
    found = (out * ad.asarray(g)).real.sum().backward()
    chosen = others if windowed else others[:1]
    wanted = torch.autograd.grad((theirs * torch.tensor(g)).real.sum(), chosen)
    for leaf, other in zip(leaves, wanted, strict=False):
        np.testing.assert_allclose(found[leaf].numpy(), other.numpy(), atol=1e-11)


@pytest.mark.peers
@pytest.mark.parametrize("options", [o for o in STFT if o.get("hop_length") != 11 and "pad_mode" not in o], ids=str)
@pytest.mark.parametrize("length", [None, 30])
def test_their_inverses_are_those_of_pytorch(options: dict[str, Any], length: int | None) -> None:
    torch = peer("torch")
    one = options.get("onesided", True)
    z = values((2, 5 if one else 8, 16), "c16")
    w = rng.uniform(0.5, 1.5, options.get("win_length", 8))
    options = {"hop_length": 2, **options}
    if length and not options.get("center", True):
        options["hop_length"] = 2
    leaves = [ad.asarray(v).require_grad() for v in (z, w)]
    others = [torch.tensor(v, requires_grad=True) for v in (z, w)]
    out = F.istft(leaves[0], 8, window=leaves[1], length=length, **options)
    theirs = torch.istft(others[0], 8, window=others[1], length=length, **options)
    assert out.shape == tuple(theirs.shape)
    np.testing.assert_allclose(out.numpy(), theirs.detach().numpy(), atol=1e-12)
    g = values(out.shape, "f8")
    found = (out * ad.asarray(g)).sum().backward()
    wanted = torch.autograd.grad((theirs * torch.tensor(g)).sum(), others)
    for leaf, other in zip(leaves, wanted, strict=True):
        np.testing.assert_allclose(found[leaf].numpy(), other.numpy(), atol=1e-11)


def test_signals_come_back() -> None:
    window = F.hann(8, dtype=ad.float64)
    for x, complex_ in ((values((2, 50), "f8"), False), (values((50,), "c16"), True)):
        z = F.stft(ad.asarray(x), 8, window=window, onesided=not complex_)
        y = F.istft(z, 8, window=window, length=50, return_complex=complex_)
        np.testing.assert_allclose(y.numpy(), x, atol=1e-13)
    y = ad.vmap(lambda v: F.istft(F.stft(v, 8, window=window), 8, window=window, length=50))(
        ad.asarray(values((3, 50), "f8"))
    )
    assert y.shape == (3, 50)


def test_patterns_of_transforms() -> None:
    """Every element depends on all along the axis, and on no others."""
    x = values((3, 4), "f8")
    found = ad.sparse_jacobian(lambda a: F.irfft(F.rfft(a, axis=1) * 2.0, n=4, axis=1))(x)
    np.testing.assert_allclose(found.toarray(), 2 * np.eye(12), atol=1e-14)
    assert found.nnz == 3 * 16


BAD: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: F.fft(ad.ones(3), n=0), errors.ShapeError),
    (lambda: F.fft(ad.ones((2, 0))), errors.ShapeError),
    (lambda: F.fft(ad.ones(3), n=2.5), errors.ArgumentTypeError),
    (lambda: F.fft(ad.ones(3), axis=1), errors.AxisError),
    (lambda: F.fft(ad.tensor(1.0)), errors.AxisError),
    (lambda: F.fft(ad.ones(3), norm="both"), errors.ArgumentError),
    (lambda: F.rfft(ad.ones(3, dtype=ad.complex64)), errors.DtypeError),
    (lambda: F.irfft(ad.ones(1)), errors.ShapeError),
    (lambda: F.fftn(ad.ones((2, 2)), axes=(0, 0)), errors.AxisError),
    (lambda: F.fftn(ad.ones((2, 2)), s=(2,), axes=(0, 1)), errors.ArgumentError),
    (lambda: F.fftn(ad.ones(2), s=(2, 2)), errors.AxisError),
    (lambda: F.fft2(ad.ones(3)), errors.AxisError),
    (lambda: F.fftfreq(0), errors.ArgumentError),
    (lambda: F.rfftfreq(3, d=0.0), errors.ArgumentError),
    (lambda: F.fftfreq(3, dtype=ad.int64), errors.DtypeError),
    (lambda: F.hann(-1), errors.ShapeError),
    (lambda: F.kaiser(3, "steep"), errors.ArgumentTypeError),
    (lambda: F.kaiser(3, ad.ones(2)), errors.ShapeError),
    (lambda: F.kaiser(3, ad.tensor(1j)), errors.DtypeError),
    (lambda: F.gaussian(3, -1.0), errors.ArgumentError),
    (lambda: F.gaussian(3, ad.tensor(1.0), device="numpy"), errors.ArgumentError),
    (lambda: F.stft(ad.ones(20), 0), errors.ArgumentError),
    (lambda: F.stft(ad.ones(20), 8, hop_length=0), errors.ArgumentError),
    (lambda: F.stft(ad.ones(20), 8, window=ad.ones(5)), errors.ShapeError),
    (lambda: F.stft(ad.ones(3), 8), errors.ShapeError),
    (lambda: F.stft(ad.ones(3), 8, center=False), errors.ShapeError),
    (lambda: F.stft(ad.ones(20), 8, pad_mode="wrap"), errors.ArgumentError),
    (lambda: F.stft(ad.ones(20, dtype=ad.complex64), 8, onesided=True), errors.DtypeError),
    (lambda: F.stft(ad.tensor(1.0), 8), errors.AxisError),
    (lambda: F.istft(ad.ones((4, 3)), 8), errors.ShapeError),
    (lambda: F.istft(ad.ones((5, 3)), 8, window=F.hann(8), center=False), errors.ArgumentError),
    (lambda: F.istft(ad.ones((5, 3)), 8, length=0), errors.ArgumentError),
    (lambda: F.istft(ad.ones((5, 3)), 8, onesided=True, return_complex=True), errors.ArgumentError),
]


@pytest.mark.parametrize(("call", "error"), BAD, ids=range(len(BAD)))
def test_bad_arguments(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
