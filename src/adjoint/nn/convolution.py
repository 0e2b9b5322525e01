"""Convolutions along one, two or three axes, and their transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import Sizes, as_tensors, inexact, positive, real, sizes
from adjoint.functions.contraction import matmul
from adjoint.functions.creation import places_beside
from adjoint.functions.padding import pad
from adjoint.functions.shape import expand_dims, reshape, squeeze
from adjoint.nn.images import bilinear
from adjoint.operands import cast, constant_like, operand, run
from adjoint.primitives import conv_shape
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def conv1d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor[B]:
    """One-dimensional cross-correlation: `conv2d` of signals (batch, channels, length)."""
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor[B]:
    """Two-dimensional cross-correlation.

    Parameters
    ----------
    x
        (batch, channels, height, width), or (channels, height, width) of one image.
    weight
        (outputs, channels / groups, kernel height, kernel width)
    bias
        (outputs,)
    stride, padding, dilation
        Steps between places, zeros on each side, steps between the kernel's elements: one number or
        (vertical, horizontal). Padding "same" keeps the size of images, with stride 1, and pads more behind than
        before where it must; "valid" is 0.
    groups
        Channels and outputs are split into so many independent convolutions.

    Returns
    -------
    (batch, outputs, rows, columns), of the dtype that x and weight promote to; complex numbers are not conjugated.

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit; parameters out of range.

    Examples
    --------
    >>> import adjoint as ad
    >>> image = ad.reshape(ad.arange(9.0), (1, 1, 3, 3))
    >>> ad.nn.conv2d(image, ad.ones((1, 1, 2, 2))).tolist()
    [[[[8.0, 12.0], [20.0, 24.0]]]]
    """
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor[B]:
    """Three-dimensional cross-correlation: `conv2d` of volumes (batch, channels, depth, height, width)."""
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor[B]:
    """The transpose of `conv1d`: `conv_transpose2d` of signals (batch, channels, length)."""
    return _conv_transpose("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor[B]:
    """The transpose of `conv2d` with these parameters, as a map of images: it makes them larger by the stride.

    Parameters
    ----------
    x
        (batch, channels, height, width), or (channels, height, width) of one image.
    weight
        (channels, outputs / groups, kernel height, kernel width)
    bias
        (outputs,)
    stride, padding, dilation, groups
        Those of the convolution that this transposes; padding is taken off the result.
    output_padding
        Added to the size of the result, behind: a convolution with a stride gives several sizes of images the same
        size. Less than the stride or the dilation.

    Returns
    -------
    (batch, outputs, rows, columns), with rows = (height - 1) stride - 2 padding + dilation (kernel height - 1) +
    output_padding + 1.

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit; parameters out of range.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.conv_transpose2d(ad.ones((1, 1, 1, 2)), ad.ones((1, 1, 1, 2))).tolist()
    [[[[1.0, 2.0, 1.0]]]]
    """
    return _conv_transpose("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: Operand[B],
    weight: Operand[B],
    bias: Operand[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor[B]:
    """The transpose of `conv3d`: `conv_transpose2d` of volumes (batch, channels, depth, height, width)."""
    return _conv_transpose("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def deform_conv2d(
    x: Operand[B],
    offset: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    mask: Any = None,
) -> Tensor[B]:
    """`conv2d` whose kernel's elements are moved from their places, at each place by other steps.

    J. Dai et al., Deformable convolutional networks (2017), and with a mask X. Zhu et al. (2019). Names and order are
    those of torchvision.

    Parameters
    ----------
    x
        (batch, channels, height, width); between its elements values are bilinear, beyond them there are zeros.
    offset
        (batch, 2 offset groups kernel elements, rows, columns): for each group and each element of the kernel a step
        down and a step to the right. Channels are split into so many groups that are moved alike.
    weight
        (outputs, channels / groups, kernel height, kernel width)
    bias
        (outputs,)
    stride, padding, dilation
        As those of `conv2d`.
    mask
        (batch, offset groups kernel elements, rows, columns): factors of what is sampled.

    Returns
    -------
    (batch, outputs, rows, columns); differentiable in all tensors.

    Raises
    ------
    ShapeError, ArgumentError, DtypeError
        Shapes that do not fit; parameters out of range; complex numbers.

    Examples
    --------
    >>> import adjoint as ad
    >>> image = ad.reshape(ad.arange(9.0), (1, 1, 3, 3))
    >>> half_right = ad.tensor([0.0, 0.5]).reshape((1, 2, 1, 1)).broadcast_to((1, 2, 3, 3))
    >>> ad.nn.deform_conv2d(image, half_right, ad.ones((1, 1, 1, 1)))[0, 0, 0].tolist()
    [0.5, 1.5, 1.0]
    """
    name = "deform_conv2d"
    given = (x, offset, weight, bias, mask)
    x, offset, weight = as_tensors([real(v, name, *given) for v in given[:3]], name)
    how: dict[str, Any] = {
        "stride": sizes(stride, 2, name, "stride", 1),
        "padding": tuple([(p, p) for p in sizes(padding, 2, name, "padding", 0)]),
        "dilation": sizes(dilation, 2, name, "dilation", 1),
    }
    channels, each = x.shape[1] if x.ndim == 4 else 0, weight.shape[1] if weight.ndim == 4 else 0
    batch, outputs, *size = conv_shape(x.shape, weight.shape, **how, groups=max(1, channels // max(each, 1)), name=name)
    count = weight.shape[2] * weight.shape[3]
    parts = offset.shape[1] // (2 * count) if offset.ndim == 4 else 0
    if offset.shape != (batch, 2 * parts * count, *size) or not parts or channels % parts:
        raise errors.ShapeError(
            f"{name}: expected an offset of shape ({batch}, 2 groups {count}, {size[0]}, {size[1]}) with groups that "
            f"divide {channels} channels, received {offset.shape}"
        )
    dtype = x.dtype
    wide = dtypes.summing(dtype)
    x, weight = reshape(cast(x, wide), (batch * parts, channels // parts, *x.shape[2:])), cast(weight, wide)
    steps = reshape(cast(offset, wide), (batch * parts, count, 2, *size))
    at = []
    for axis in (0, 1):
        places = places_beside(x, size[axis]) * how["stride"][axis] - how["padding"][axis][0]
        kernel = places_beside(x, weight.shape[2 + axis], of=weight.shape[2:]) * how["dilation"][axis]
        kernel = np.broadcast_to(kernel[:, None] if axis == 0 else kernel, weight.shape[2:]).reshape(-1, 1, 1)
        grid = (kernel + (places[:, None] if axis == 0 else places)).astype(wide)
        at.append(steps[:, :, axis] + constant_like(grid, x, name))
    picked = bilinear(x, at)  # (batch groups, channels / groups, kernel elements, rows, columns)
    if mask is not None:
        factors = cast(real(operand(mask, x, name), name), wide)
        if factors.shape != (batch, parts * count, *size):
            raise errors.ShapeError(
                f"{name}: expected a mask of shape {(batch, parts * count, *size)}, received {factors.shape}"
            )
        picked = picked * reshape(factors, (batch * parts, 1, count, *size))
    groups = channels // each if each else 1
    columns = reshape(picked, (batch, groups, each * count, size[0] * size[1]))
    out = matmul(reshape(weight, (groups, outputs // groups, each * count)), columns)
    out = cast(reshape(out, (batch, outputs, *size)), dtype)
    return _finished(out, _bias(name, bias, outputs, out), 2, False)


def _conv(
    name: str,
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor[Any]:
    x, weight, single = _operands(name, axes, x, weight, bias)
    how: dict[str, Any] = {
        "stride": sizes(stride, axes, name, "stride", 1),
        "dilation": sizes(dilation, axes, name, "dilation", 1),
        "groups": positive(groups, name, "groups"),
    }
    if isinstance(padding, str):
        how["padding"] = _named_padding(name, padding, weight.shape[2:], how["stride"], how["dilation"])
    else:
        how["padding"] = tuple([(p, p) for p in sizes(padding, axes, name, "padding", 0)])
    conv_shape(x.shape, weight.shape, **how, name=name)  # raises where they do not fit
    bias = _bias(name, bias, weight.shape[0], x)
    return _finished(_wide("conv", x, weight, **how), bias, axes, single)


def _named_padding(name: str, padding: str, kernel: Any, stride: Any, dilation: Any) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise errors.ArgumentError(
            f"{name}: padding is a number, one for each axis, 'same' or 'valid', received {errors.shown(padding)}"
        )
    if any(s > 1 for s in stride):
        raise errors.ArgumentError(f"{name}: padding 'same' needs stride 1, received {stride}")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=False)]
    return tuple([(total // 2, total - total // 2) for total in totals])


def _conv_transpose(
    name: str,
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor[Any]:
    x, weight, single = _operands(name, axes, x, weight, bias)
    stride, dilation = sizes(stride, axes, name, "stride", 1), sizes(dilation, axes, name, "dilation", 1)
    padding, groups = sizes(padding, axes, name, "padding", 0), positive(groups, name, "groups")
    extra = sizes(output_padding, axes, name, "output_padding", 0)
    if any(more >= max(s, d) for more, s, d in zip(extra, stride, dilation, strict=True)):
        raise errors.ArgumentError(
            f"{name}: output_padding is less than the stride or the dilation, received {extra} with stride {stride} "
            f"and dilation {dilation}"
        )
    if x.ndim != axes + 2 or weight.ndim != axes + 2 or x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
        raise errors.ShapeError(
            f"{name}: expected x (batch, channels, {axes} sizes) and weight (channels, outputs / groups, {axes} sizes) "
            f"with channels that {groups} groups divide; received {x.shape} and {weight.shape}"
        )
    bias = _bias(name, bias, weight.shape[1] * groups, x)
    # what is added behind are rows that the padding would take off; beyond those there are only zeros
    after = [max(0, p - more) for p, more in zip(padding, extra, strict=True)]
    beyond = [max(0, more - p) for p, more in zip(padding, extra, strict=True)]
    pads = tuple(zip(padding, after, strict=True))
    size = tuple(
        [
            (n - 1) * s + d * (k - 1) + 1 - sum(p)
            for n, s, d, k, p in zip(x.shape[2:], stride, dilation, weight.shape[2:], pads, strict=True)
        ]
    )
    if any(n + more < 1 for n, more in zip(size, beyond, strict=True)):
        raise errors.ShapeError(
            f"{name}: images of {x.shape[2:]} with a kernel of {weight.shape[2:]} and padding {padding} leave nothing"
        )
    out = _wide("conv_input", x, weight, size=size, stride=stride, padding=pads, dilation=dilation, groups=groups)
    if any(beyond):
        out = pad(out, [(0, 0), (0, 0), *[(0, more) for more in beyond]])
    return _finished(out, bias, axes, single)


def _operands(name: str, axes: int, x: Any, weight: Any, bias: Any) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """The operands in one floating dtype, with an axis of examples; and whether x had none."""
    x, weight = as_tensors([inexact(v, name, x, weight, bias) for v in (x, weight)], name)
    single = x.ndim == axes + 1 and weight.ndim == axes + 2
    return (expand_dims(x, 0) if single else x), weight, single


def _bias(name: str, bias: Any, outputs: int, x: Tensor[Any]) -> Tensor[Any] | None:
    if bias is None:
        return None
    given = operand(bias, x, name)
    if given.shape != (outputs,):
        raise errors.ShapeError(f"{name}: {outputs} outputs need a bias of that size, received shape {given.shape}")
    return given


def _wide(primitive: str, x: Tensor[Any], weight: Tensor[Any], **how: Any) -> Tensor[Any]:
    """The primitive, with sums of float16 and bfloat16 in float32."""
    dtype = dtypes.summing(x.dtype)
    return cast(run(primitive, (cast(x, dtype), cast(weight, dtype)), **how), x.dtype)


def _finished(out: Tensor[Any], bias: Any, axes: int, single: bool) -> Tensor[Any]:
    if bias is not None:
        out = out + reshape(bias, (-1, *[1] * axes))
    return squeeze(out, 0) if single else out
