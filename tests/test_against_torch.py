"""Values, gradients and second derivatives against PyTorch, for every function that it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad

torch = peer("torch")
F = torch.nn.functional

RNG = np.random.default_rng(11)


def real(*shape: int) -> Any:
    return np.asarray(RNG.uniform(0.3, 2.0, shape) * RNG.choice([-1.0, 1.0], shape))


def positive(*shape: int) -> Any:
    return np.asarray(RNG.uniform(0.3, 2.5, shape))


def unit(*shape: int) -> Any:
    return np.asarray(RNG.uniform(0.1, 0.8, shape) * RNG.choice([-1.0, 1.0], shape))


def above(*shape: int) -> Any:
    return np.asarray(RNG.uniform(1.3, 3.0, shape))


def cplx(*shape: int) -> Any:
    return real(*shape) + 1j * real(*shape)


def square(*shape: int) -> Any:
    return 0.5 * real(*shape) + 2.5 * np.eye(shape[-1])


def csquare(*shape: int) -> Any:
    return 0.5 * cplx(*shape) + 2.5 * np.eye(shape[-1])


def definite(*shape: int) -> Any:
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


MASK = np.array([[True, False, True], [False, False, True]])
TARGET = np.array([2, 0])
PLACES = np.array([[2, 0, 2], [1, 1, 0]])

Row = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
ROWS: dict[str, Row] = {}


def row(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any) -> None:
    assert name not in ROWS
    ROWS[name] = (ours, theirs, args)


# elementwise: real, and complex where PyTorch's derivative is defined
for _name, _make, _complex in [
    ("negative", real, True), ("square", real, True), ("exp", real, True), ("expm1", real, True), ("sin", real, True),
    ("cos", real, True), ("tan", unit, True), ("sinh", real, True), ("cosh", real, True), ("tanh", real, True),
    ("asin", unit, True), ("acos", unit, True), ("atan", real, True), ("asinh", real, True), ("acosh", above, True),
    ("atanh", unit, True), ("sqrt", positive, True), ("log", positive, True), ("log2", positive, True),
    ("log10", positive, True), ("log1p", unit, True), ("abs", real, True), ("reciprocal", real, True),
    ("floor", real, False), ("ceil", real, False), ("trunc", real, False), ("round", real, False),
]:  # fmt: skip
    row(_name, getattr(ad, _name), getattr(torch, _name), _make(2, 3))
    if _complex:
        row(f"{_name}, complex", getattr(ad, _name), getattr(torch, _name), cplx(2, 3))
row("sign", ad.sign, torch.sign, real(3))
row("sign, complex", ad.sign, torch.sgn, cplx(3))
row("conj", ad.conj, lambda x: torch.conj(x).resolve_conj(), cplx(3))
row("real", ad.real, torch.real, cplx(3))
row("imag", ad.imag, torch.imag, cplx(3))
row("erf", ad.special.erf, torch.special.erf, real(2, 3))
row("expit", ad.special.expit, torch.special.expit, real(2, 3))
row("relu", ad.nn.relu, F.relu, real(2, 3))
row("relu of squares", lambda x: ad.nn.relu(x) ** 2 * -1, lambda x: F.relu(x) ** 2 * -1, real(2, 3))
row("sigmoid", ad.nn.sigmoid, torch.sigmoid, real(2, 3))
row("silu", ad.nn.silu, F.silu, real(2, 3))
row("gelu", ad.nn.gelu, F.gelu, real(2, 3))
row("softplus", ad.nn.softplus, F.softplus, real(2, 3))
for _name, _torch in [("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div")]:
    row(_name, getattr(ad, _name), getattr(torch, _torch), real(2, 3), real(3))
    row(f"{_name}, complex", getattr(ad, _name), getattr(torch, _torch), cplx(2, 1), cplx(3))
    row(f"{_name}, mixed", getattr(ad, _name), getattr(torch, _torch), real(2, 3), cplx(3))
row("pow", ad.pow, torch.pow, positive(2, 3), real(3))
row("pow, complex", ad.pow, torch.pow, cplx(2, 3), cplx(3))
row("pow, scalar exponent", lambda x: x**3, lambda x: x**3, real(2, 3))
row("pow, negative exponent", lambda x: x**-1.5, lambda x: x**-1.5, positive(2, 3))
row("pow, scalar base", lambda x: 2.5**x, lambda x: 2.5**x, real(2, 3))
row("remainder", ad.remainder, torch.remainder, np.array([5.3, -5.3, 4.4]), np.array([2.0, 2.0, -3.0]))
row("atan2", ad.atan2, torch.atan2, real(2, 3), real(3))
row("logaddexp", ad.logaddexp, torch.logaddexp, real(2, 3), real(3))
row("maximum", ad.maximum, torch.maximum, real(2, 3), real(3))
row("minimum", ad.minimum, torch.minimum, real(2, 3), real(3))
row("clip", lambda x: ad.clip(x, -0.5, 0.8), lambda x: torch.clamp(x, -0.5, 0.8), real(2, 3))
row("clip, one bound", lambda x: ad.clip(x, max=0.8), lambda x: torch.clamp(x, max=0.8), real(2, 3))
row("clip, arrays", ad.clip, torch.clamp, real(2, 3), -positive(3), positive(2, 1))
row(
    "where",
    lambda x, y: ad.where(ad.asarray(MASK, device=x.device), x, y),
    lambda x, y: torch.where(torch.tensor(MASK), x, y),
    real(2, 3),
    real(3),
)

# reductions and scans
for _axis in (None, 0, 1, (0, 1)):
    for _name, _torch in [("sum", torch.sum), ("mean", torch.mean)]:
        row(
            f"{_name} over {_axis}",
            lambda x, f=getattr(ad, _name), a=_axis: f(x, axis=a),
            lambda x, f=_torch, a=_axis: f(x, dim=a),
            real(2, 3),
        )
    for _name, _torch in [("max", torch.amax), ("min", torch.amin)]:
        _dim = (0, 1) if _axis is None else _axis
        row(
            f"{_name} over {_axis}",
            lambda x, f=getattr(ad, _name), a=_axis: f(x, axis=a),
            lambda x, f=_torch, a=_dim: f(x, dim=a),
            real(2, 3),
        )
    for _correction in (0, 1):
        for _name, _torch in [("var", torch.var), ("std", torch.std)]:
            row(
                f"{_name} over {_axis}, correction {_correction}",
                lambda x, f=getattr(ad, _name), a=_axis, c=_correction: f(x, axis=a, correction=c),
                lambda x, f=_torch, a=_axis, c=_correction: f(x, dim=a, correction=c),
                real(2, 3) if _axis != 0 or _correction == 0 else real(3, 3),
            )
    if _axis is not None:
        row(
            f"logsumexp over {_axis}",
            lambda x, a=_axis: ad.special.logsumexp(x, a),
            lambda x, a=_axis: torch.logsumexp(x, a),
            real(2, 3),
        )
row("var, complex", lambda x: ad.var(x, axis=1), lambda x: torch.var(x, dim=1, correction=0), cplx(2, 3))
row("std, complex", lambda x: ad.std(x, axis=1), lambda x: torch.std(x, dim=1, correction=0), cplx(2, 3))
row("sum, complex", ad.sum, torch.sum, cplx(2, 3))
row("prod", ad.prod, torch.prod, real(2, 3))
row("prod over 1", lambda x: ad.prod(x, axis=1, keepdims=True), lambda x: torch.prod(x, 1, keepdim=True), real(2, 3))
row("prod, complex", lambda x: ad.prod(x, axis=0), lambda x: torch.prod(x, 0), cplx(2, 3))
row("prod with a zero", ad.prod, torch.prod, np.array([2.0, 0.0, 3.0]))
row("prod with zeros", ad.prod, torch.prod, np.array([2.0, 0.0, 0.0, 3.0]))
row("cumulative_sum", lambda x: ad.cumulative_sum(x, axis=1), lambda x: torch.cumsum(x, 1), real(2, 3))
row("cumulative_prod", lambda x: ad.cumulative_prod(x, axis=1), lambda x: torch.cumprod(x, 1), real(2, 5))
row("cumulative_prod, complex", lambda x: ad.cumulative_prod(x, axis=0), lambda x: torch.cumprod(x, 0), cplx(4, 2))
row(
    "cumulative_prod with zeros",
    lambda x: ad.cumulative_prod(x, axis=1),
    lambda x: torch.cumprod(x, 1),
    np.array([[2.0, 0.0, 3.0, -1.0], [0.0, 1.5, 0.0, 2.0]]),
)
row("softmax", lambda x: ad.special.softmax(x, axis=0), lambda x: torch.softmax(x, 0), real(2, 3))
row("log_softmax", lambda x: ad.special.log_softmax(x, axis=-1), lambda x: torch.log_softmax(x, -1), real(2, 3))

# structure and indexing
row("reshape", lambda x: ad.reshape(x, (3, 2)), lambda x: torch.reshape(x, (3, 2)), real(2, 3))
row("permute_dims", lambda x: ad.permute_dims(x, (2, 0, 1)), lambda x: torch.permute(x, (2, 0, 1)), real(2, 3, 2))
row("moveaxis", lambda x: ad.moveaxis(x, 0, -1), lambda x: torch.movedim(x, 0, -1), real(2, 3, 2))
row("expand_dims", lambda x: ad.expand_dims(x, 1), lambda x: torch.unsqueeze(x, 1), real(2, 3))
row("squeeze", lambda x: ad.squeeze(x, 1), lambda x: torch.squeeze(x, 1), real(2, 1, 3))
row("broadcast_to", lambda x: ad.broadcast_to(x, (4, 2, 3)), lambda x: torch.broadcast_to(x, (4, 2, 3)), real(2, 1))
row("concat", lambda x, y: ad.concat([x, y], axis=1), lambda x, y: torch.cat([x, y], 1), real(2, 3), real(2, 2))
row("stack", lambda x, y: ad.stack([x, y], axis=1), lambda x, y: torch.stack([x, y], 1), real(2, 3), real(2, 3))
row("flip", lambda x: ad.flip(x, axis=(0, 1)), lambda x: torch.flip(x, (0, 1)), real(2, 3))
row("roll", lambda x: ad.roll(x, (1, -2), axis=(0, 1)), lambda x: torch.roll(x, (1, -2), (0, 1)), real(2, 3))
row("tile", lambda x: ad.tile(x, (2, 3)), lambda x: torch.tile(x, (2, 3)), real(2, 3))
row("repeat", lambda x: ad.repeat(x, 2, axis=1), lambda x: torch.repeat_interleave(x, 2, 1), real(2, 3))
row("pad", lambda x: ad.pad(x, ((0, 0), (1, 2)), value=3.0), lambda x: F.pad(x, (1, 2), value=3.0), real(2, 3))
row("tril", lambda x: ad.tril(x, k=1), lambda x: torch.tril(x, 1), real(3, 3))
row("triu", lambda x: ad.triu(x, k=-1), lambda x: torch.triu(x, -1), real(3, 3))
row("unstack", lambda x: ad.unstack(x, axis=1)[1], lambda x: torch.unbind(x, 1)[1], real(2, 3))
row("index by slices", lambda x: x[1:, ::2], lambda x: x[1:, ::2], real(2, 3))
row("index by arrays", lambda x: x[[0, 1, 0], [2, 2, 2]], lambda x: x[[0, 1, 0], [2, 2, 2]], real(2, 3))
row("index by a mask", lambda x: x[ad.asarray(MASK, device=x.device)], lambda x: x[torch.tensor(MASK)], real(2, 3))
row("take", lambda x: ad.take(x, TARGET, axis=1), lambda x: torch.index_select(x, 1, torch.tensor(TARGET)), real(2, 3))
row(
    "take_along_axis",
    lambda x: ad.take_along_axis(x, PLACES, axis=1),
    lambda x: torch.take_along_dim(x, torch.tensor(PLACES), 1),
    real(2, 3),
)
row("sort", lambda x: ad.sort(x, axis=0, descending=True), lambda x: torch.sort(x, 0, descending=True)[0], real(3, 2))
row("topk", lambda x: ad.topk(x, 2)[0], lambda x: torch.topk(x, 2)[0], real(2, 4))
row(
    "topk, smallest",
    lambda x: ad.topk(x, 2, axis=0, largest=False)[0],
    lambda x: torch.topk(x, 2, 0, largest=False)[0],
    real(3, 2),
)

# products and linear algebra
row("matmul", ad.matmul, torch.matmul, real(2, 3), real(3, 4))
row("matmul, batched", ad.matmul, torch.matmul, real(2, 1, 2, 3), real(4, 3, 2))
row("matmul, vectors", ad.matmul, torch.matmul, real(3), real(2, 3, 2))
row("matmul, complex", ad.matmul, torch.matmul, cplx(2, 3), cplx(3, 2))
row("vecdot", ad.vecdot, torch.linalg.vecdot, cplx(2, 3), cplx(3))
row("outer", ad.outer, torch.outer, real(2), real(3))
row(
    "tensordot",
    lambda x, y: ad.tensordot(x, y, axes=((1, 0), (0, 2))),
    lambda x, y: torch.tensordot(x, y, ((1, 0), (0, 2))),
    real(2, 3, 2),
    real(3, 2, 2),
)
for _text, _shapes in [
    ("ij,jk->ki", ((2, 3), (3, 2))),
    ("bij,bkj->bik", ((2, 2, 3), (2, 3, 3))),
    ("ii->i", ((3, 3),)),
    ("ij,j,i->", ((2, 3), (3,), (2,))),
]:
    row(
        f"einsum {_text}",
        lambda *xs, t=_text: ad.einsum(t, *xs),
        lambda *xs, t=_text: torch.einsum(t, *xs),
        *[real(*s) for s in _shapes],
    )
row("inv", ad.linalg.inv, torch.linalg.inv, square(2, 3, 3))
row("inv, complex", ad.linalg.inv, torch.linalg.inv, csquare(2, 2))
row("det", ad.linalg.det, torch.linalg.det, square(2, 3, 3))
row("det, complex", ad.linalg.det, torch.linalg.det, csquare(3, 3))
row("solve", ad.linalg.solve, torch.linalg.solve, square(3, 3), real(3, 2))
row("solve, a vector", ad.linalg.solve, torch.linalg.solve, square(3, 3), real(3))
row("solve, batched", ad.linalg.solve, torch.linalg.solve, csquare(2, 1, 2, 2), cplx(3, 2, 2))
row("cholesky", ad.linalg.cholesky, torch.linalg.cholesky, definite(2, 3, 3))
# only the Hermitian part counts; PyTorch's gradient is Hermitian for some cotangents only
row(
    "cholesky, complex",
    lambda x: ad.linalg.cholesky((x + x.mT.conj()) / 2),
    lambda x: torch.linalg.cholesky((x + x.mH) / 2),
    (lambda a: a @ a.conj().T + np.eye(3))(cplx(3, 3)),
)
row(
    "cholesky, upper",
    lambda x: ad.linalg.cholesky(x, upper=True),
    lambda x: torch.linalg.cholesky(x, upper=True),
    definite(3, 3),
)
for _ord in (2, 1, 3, 0.5, math.inf, -math.inf, -1):
    row(
        f"vector_norm {_ord}",
        lambda x, o=_ord: ad.linalg.vector_norm(x, axis=1, ord=o),
        lambda x, o=_ord: torch.linalg.vector_norm(x, o, 1),
        real(2, 3),
    )
for _ord in ("fro", 1, -1, math.inf, -math.inf):
    row(
        f"matrix_norm {_ord}",
        lambda x, o=_ord: ad.linalg.matrix_norm(x, ord=o),
        lambda x, o=_ord: torch.linalg.matrix_norm(x, o),
        real(2, 3),
    )
row("vector_norm, complex", ad.linalg.vector_norm, torch.linalg.vector_norm, cplx(2, 3))
row(
    "vector_norm 3, complex",
    lambda x: ad.linalg.vector_norm(x, ord=3),
    lambda x: torch.linalg.vector_norm(x, 3),
    cplx(2, 3),
)

# neural networks
row("linear", ad.nn.linear, F.linear, real(2, 3), real(4, 3), real(4))
row(
    "layer_norm",
    lambda x, w, b: ad.nn.layer_norm(x, (3,), w, b),
    lambda x, w, b: F.layer_norm(x, (3,), w, b),
    real(2, 3),
    real(3),
    real(3),
)
row(
    "layer_norm, two axes",
    lambda x: ad.nn.layer_norm(x, (2, 3), eps=0.1),
    lambda x: F.layer_norm(x, (2, 3), eps=0.1),
    real(4, 2, 3),
)
for _reduction in ("mean", "sum", "none"):
    row(
        f"cross_entropy, {_reduction}",
        lambda x, r=_reduction: ad.nn.cross_entropy(x, TARGET, reduction=r),
        lambda x, r=_reduction: F.cross_entropy(x, torch.tensor(TARGET), reduction=r),
        real(2, 3),
    )
    row(
        f"binary_cross_entropy_with_logits, {_reduction}",
        lambda x, y, r=_reduction: ad.nn.binary_cross_entropy_with_logits(x, y, reduction=r),
        lambda x, y, r=_reduction: F.binary_cross_entropy_with_logits(x, y, reduction=r),
        real(2, 3), np.abs(unit(2, 3)),
    )  # fmt: skip
    row(
        f"mse_loss, {_reduction}",
        lambda x, y, r=_reduction: ad.nn.mse_loss(x, y, reduction=r),
        lambda x, y, r=_reduction: F.mse_loss(x, y, reduction=r),
        real(2, 3), real(2, 3),
    )  # fmt: skip
row(
    "cross_entropy of images",
    lambda x: ad.nn.cross_entropy(x, PLACES),
    lambda x: F.cross_entropy(x, torch.tensor(PLACES)),
    real(2, 3, 3),
)
for _how in (
    {}, {"stride": 2, "padding": 1}, {"padding": (0, 2), "dilation": (2, 1)},
    {"stride": (1, 2), "groups": 2}, {"groups": 2, "padding": 1},
):  # fmt: skip
    row(
        f"conv2d {_how}",
        lambda x, w, b, h=_how: ad.nn.conv2d(x, w, b, **h),
        lambda x, w, b, h=_how: F.conv2d(x, w, b, **h),
        real(2, 4, 5, 6), real(6, 4 // _how.get("groups", 1), 2, 3), real(6),
    )  # fmt: skip
for _kernel, _stride, _padding in ((2, None, 0), ((2, 3), (2, 1), (1, 0)), (3, 2, 1), ((3, 2), 1, (0, 1))):
    row(
        f"max_pool2d {_kernel} {_stride} {_padding}",
        lambda x, k=_kernel, s=_stride, p=_padding: ad.nn.max_pool2d(x, k, s, padding=p),
        lambda x, k=_kernel, s=_stride, p=_padding: F.max_pool2d(x, k, s, padding=p),
        real(2, 3, 5, 6),
    )


def weights(shape: Any, dtype: Any) -> Any:
    """Fixed cotangents and directions."""
    size = math.prod(shape)
    values = np.cos(np.arange(1, 1 + size)).reshape(shape)
    return (values + (1j * np.sin(2 + np.arange(size)).reshape(shape) if dtype.kind == "c" else 0)).astype(dtype)


def ours_of(f: Any, args: Any, device: Any) -> tuple[Any, list[Any], list[Any]]:
    """Value, gradients, and the gradients of a projection of the gradients."""
    low = [ad.asarray(x, device=device).require_grad() for x in args]
    high = [ad.from_inner(x, device.over(device)).require_grad() for x in low]
    out = f(*high)
    first = out.backward(weights(out.shape, out.dtype))
    gradients = [first[x] for x in high]
    total = sum((g * weights(g.shape, g.dtype)).real.sum() for g in gradients)
    second = total.backward() if total.is_tracked() else {}
    seconds = [second.get(x) if second else None for x in low]
    return out.numpy(), [g.numpy() for g in gradients], [None if g is None else g.numpy() for g in seconds]


def theirs_of(f: Any, args: Any) -> tuple[Any, list[Any], list[Any]]:
    leaves = [torch.tensor(x, requires_grad=True) for x in args]
    out = f(*leaves)
    value = out.detach().numpy(force=True)
    firsts = torch.autograd.grad(out, leaves, torch.tensor(weights(value.shape, value.dtype)), create_graph=True)
    total = sum((g * torch.tensor(weights(g.shape, g.numpy(force=True).dtype))).real.sum() for g in firsts)
    seconds = [None] * len(leaves)
    if total.requires_grad:
        seconds = torch.autograd.grad(total, leaves, allow_unused=True)
    return value, [g.numpy(force=True) for g in firsts], [None if g is None else g.numpy(force=True) for g in seconds]


@pytest.mark.parametrize("name", ROWS)
def test_values_gradients_and_second_derivatives(name: str, device: Any) -> None:
    ours, theirs, args = ROWS[name]
    found, expected = ours_of(ours, args, device), theirs_of(theirs, args)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-13)
    assert found[0].dtype == expected[0].dtype
    for order in (1, 2):
        for x, mine, other in zip(args, found[order], expected[order], strict=True):
            mine, other = (np.zeros_like(x) if g is None else g for g in (mine, other))  # nothing depends on it
            np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-11, err_msg=f"order {order}")


@pytest.mark.parametrize("name", ROWS)
def test_single_precision(name: str) -> None:
    """The same dtypes as PyTorch's, and values and gradients as close as single precision is."""
    ours, theirs, args = ROWS[name]
    narrow = [x.astype({"d": np.float32, "D": np.complex64}[x.dtype.char]) for x in args]
    leaves = [ad.asarray(x).require_grad() for x in narrow]
    out = ours(*leaves)
    peers = [torch.tensor(x, requires_grad=True) for x in narrow]
    other = theirs(*peers)
    assert out.dtype == other.numpy(force=True).dtype
    np.testing.assert_allclose(out.numpy(), other.numpy(force=True), rtol=2e-5, atol=2e-5)
    g = weights(out.shape, out.dtype)
    grads = out.backward(g)
    for leaf, gradient in zip(leaves, torch.autograd.grad(other, peers, torch.tensor(g)), strict=True):
        assert grads[leaf].dtype is leaf.dtype
        np.testing.assert_allclose(grads[leaf].numpy(), gradient.numpy(force=True), rtol=1e-4, atol=1e-4)


# --- tensors and DLPack ---


def test_dlpack_both_ways() -> None:
    theirs = torch.arange(6.0).reshape(2, 3)
    ours = ad.from_dlpack(theirs)
    assert ours.tolist() == theirs.tolist()
    assert ad.asarray(theirs.T).tolist() == theirs.T.tolist()
    assert ad.asarray(theirs, dtype=ad.float64).dtype is ad.float64
    back = torch.from_dlpack(ad.tensor([[1.0, 2.0]]))
    assert back.tolist() == [[1.0, 2.0]]
    assert ad.asarray(torch.tensor([True, False])).dtype is ad.bool


def test_torch_cannot_write_to_a_tensor() -> None:
    """It takes read-only memory and writes to it, so it gets a copy unless it insists on sharing."""
    x = ad.tensor([1.0, 2.0])
    for take in (torch.from_dlpack, lambda x: torch.from_dlpack(x, copy=True), torch.asarray, torch.as_tensor):
        values = take(x)
        values[0] = 9.0
        assert values.tolist() == [9.0, 2.0]
        assert x.tolist() == [1.0, 2.0]
    assert torch.from_dlpack(x, copy=False).data_ptr() == x.numpy().ctypes.data


def test_tracked_tensors_do_not_leave_through_dlpack() -> None:
    x = ad.tensor([1.0]).require_grad()
    with pytest.raises(TypeError, match=r"detach\(\)"):
        torch.from_dlpack(x * 2)
    with pytest.raises(TypeError, match=r"detach\(\)"):
        torch.from_dlpack(x)


def test_tensors_of_a_torch_graph_are_not_taken_silently() -> None:
    theirs = 2 * torch.ones(2, requires_grad=True)  # of a leaf, as a parameter is, the values come
    for make in (ad.asarray, ad.from_dlpack, ad.tensor):
        with pytest.raises(ad.errors.TrackedError, match=r"tracked by torch.*detach\(\)"):
            make(theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, dtype=torch.float8_e5m2),
        lambda: torch.eye(2).to_sparse(),
        lambda: torch.ones(2, device="meta"),
        lambda: torch.ones(2, dtype=torch.complex64).conj(),
    ],
)
def test_torch_tensors_that_cannot_be_read(make: Any) -> None:
    theirs = make()
    for read in (ad.asarray, ad.from_dlpack, ad.tensor):
        if read is ad.tensor and theirs.is_conj():
            continue  # which NumPy asks torch for, and gets
        with pytest.raises(ad.errors.DtypeError, match="cannot be read.*main memory"):
            read(theirs)


def test_tensors_without_values_are_shown() -> None:
    x = ad.ones((2, 3), device="torch:meta")
    shown = "Tensor(tensor(..., device='meta', size=(2, 3)), dtype=float32, device=torch:meta)"
    assert [repr(x), str(x), f"{x}", f"{x:.3f}"] == [shown] * 4
    assert "size=(2, 3)" in x._repr_html_()
    tracked = ad.ones(3, device=ad.Autodiff(ad.device("torch:meta"))).require_grad()
    assert repr((tracked * tracked).sum()).endswith("device=autodiff<torch:meta>, tracked by sum)")
    seen: list[str] = []
    ad.vmap(lambda row: seen.append(f"{row:.2f}") or row)(x)
    assert "shape=(3,) of each example" in seen[0]
    for ask in (ad.Tensor.numpy, ad.Tensor.tolist, bool, float, lambda x: ad.cond(x > 0, lambda: 1, lambda: 2)):
        with pytest.raises(ad.errors.DeviceError, match="torch:meta: a tensor .* no values on meta.*another device"):
            ask(ad.ones((), device="torch:meta"))
