"""Deformable convolutions: values and gradients of a plain composition in PyTorch, by samples and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

deform_conv2d = ad.nn.deform_conv2d


def composed(
    torch: Any, x: Any, offset: Any, weight: Any, bias: Any, mask: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """Each element of the kernel is a sample of its group's channels, and a product with its weights."""
    n, c, h, w = x.shape
    outputs, each, kh, kw = weight.shape
    rows, columns = offset.shape[2:]
    parts, groups = offset.shape[1] // (2 * kh * kw), c // each
    out = torch.zeros(n, outputs, rows, columns, dtype=x.dtype)
    for part in range(parts):
        channels = range(part * c // parts, (part + 1) * c // parts)
        for i in range(kh):
            for j in range(kw):
                number = part * kh * kw + i * kw + j
                down = torch.arange(rows, dtype=x.dtype)[:, None] * stride[0] - padding[0] + i * dilation[0]
                right = torch.arange(columns, dtype=x.dtype) * stride[1] - padding[1] + j * dilation[1]
                y, z = down + offset[:, 2 * number], right + offset[:, 2 * number + 1]
                grid = torch.stack([2 * z / (w - 1) - 1, 2 * y / (h - 1) - 1], -1)
                part_of = x[:, channels.start : channels.stop]
                found = torch.nn.functional.grid_sample(part_of, grid, align_corners=True)
                found = found if mask is None else found * mask[:, number : number + 1]
                for at, channel in enumerate(channels):
                    group = channel // each
                    some = slice(group * outputs // groups, (group + 1) * outputs // groups)
                    factors = weight[some, channel % each, i, j]
                    terms = found[:, at, None] * factors[:, None, None]
                    out = out + torch.nn.functional.pad(terms, (0, 0, 0, 0, some.start, outputs - some.stop))
    return out if bias is None else out + bias[:, None, None]


@pytest.mark.peers
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (1, 2))])
@pytest.mark.parametrize("masked", [False, True])
def test_it_is_samples_and_products(
    groups: int, parts: int, stride: Any, padding: Any, dilation: Any, masked: bool
) -> None:
    torch, rng = peer("torch"), np.random.default_rng(3)
    x, weight, bias = (
        rng.standard_normal((2, 4, 6, 5)),
        rng.standard_normal((6, 4 // groups, 3, 2)),
        rng.standard_normal(6),
    )
    size = ad.nn.conv2d(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups).shape[2:]
    offset = rng.standard_normal((2, 2 * parts * 6, *size)) * 2
    offset[0, :, 0, 0] = 100.0  # far outside
    args = [x, offset, weight, bias, *([rng.random((2, parts * 6, *size))] if masked else [])]
    leaves = [ad.tensor(a).require_grad() for a in args]
    theirs = [torch.tensor(a, requires_grad=True) for a in args]
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    out = ad.nn.deform_conv2d(*leaves[:4], mask=leaves[4] if masked else None, **how)
    other = composed(torch, *theirs[:4], theirs[4] if masked else None, stride, padding, dilation)
    np.testing.assert_allclose(out.numpy(), other.detach().numpy(), rtol=1e-11, atol=1e-12)
    w = rng.standard_normal(out.shape)
    grads = (out * w).sum().backward()
    for leaf, expected in zip(leaves, torch.autograd.grad((other * torch.tensor(w)).sum(), theirs), strict=True):
        np.testing.assert_allclose(grads[leaf].numpy(), expected.numpy(), rtol=1e-9, atol=1e-11)


def test_without_steps_it_is_a_convolution() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("float16", "float32", "float64"):
        for n in (0, 2):
            x, weight = rng.standard_normal((n, 4, 6, 5)).astype(dtype), rng.standard_normal((2, 2, 3, 3)).astype(dtype)
            expected = ad.nn.conv2d(ad.tensor(x), ad.tensor(weight), padding=1, groups=2)
            found = deform_conv2d(ad.tensor(x), np.zeros((n, 18, 6, 5), dtype), ad.tensor(weight), padding=1)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
            np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=tolerance)


IMAGE, KERNEL = np.ones((1, 2, 4, 4)), np.ones((2, 2, 2, 2))
STEPS = np.zeros((1, 8, 3, 3))
WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: deform_conv2d(IMAGE[0], STEPS, KERNEL), errors.ShapeError, "batch"),
    (lambda: deform_conv2d(IMAGE, STEPS[:, :6], KERNEL), errors.ShapeError, "expected an offset"),
    (lambda: deform_conv2d(IMAGE, STEPS[..., :2], KERNEL), errors.ShapeError, "expected an offset"),
    (lambda: deform_conv2d(IMAGE, np.zeros((1, 24, 3, 3)), KERNEL), errors.ShapeError, "divide 2 channels"),
    (lambda: deform_conv2d(IMAGE, STEPS, np.ones((2, 3, 2, 2))), errors.ShapeError, "channels"),
    (lambda: deform_conv2d(IMAGE, STEPS, KERNEL, mask=STEPS), errors.ShapeError, "expected a mask"),
    (lambda: deform_conv2d(IMAGE, STEPS, KERNEL, np.ones(3)), errors.ShapeError, "bias"),
    (lambda: deform_conv2d(IMAGE, STEPS, KERNEL, stride=0), errors.ArgumentError, "stride"),
    (lambda: deform_conv2d(IMAGE * 1j, STEPS, KERNEL), errors.DtypeError, "real"),
]


@pytest.mark.parametrize(("call", "kind", "text"), [pytest.param(*w, id=str(i)) for i, w in enumerate(WRONG)])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert text in str(caught.value)
