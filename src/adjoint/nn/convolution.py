"""Convolutions along one, two or three axes, and their transposes."""

from __future__ import annotations

from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import Sizes, as_tensors, inexact, positive, sizes
from adjoint.functions.shape import expand_dims, pad, reshape, squeeze
from adjoint.operands import cast, operand, run
from adjoint.primitives import conv_shape
from adjoint.tensor import Tensor

B = TypeVar("B", bound=Backend)


def conv1d(
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor[B]:
    """One-dimensional cross-correlation: `conv2d` of signals (batch, channels, length)."""
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
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
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor[B]:
    """Three-dimensional cross-correlation: `conv2d` of volumes (batch, channels, depth, height, width)."""
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
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
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
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
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor[B]:
    """The transpose of `conv3d`: `conv_transpose2d` of volumes (batch, channels, depth, height, width)."""
    return _conv_transpose("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


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
    x, weight, single = _operands(name, axes, x, weight)
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
    x, weight, single = _operands(name, axes, x, weight)
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


def _operands(name: str, axes: int, x: Any, weight: Any) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """The operands in one floating dtype, with an axis of examples; and whether x had none."""
    x, weight = as_tensors([inexact(x, name), inexact(weight, name)], name)
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
    """The primitive, with sums of float16 in float32."""
    dtype = dtypes.summing(x.dtype)
    return cast(run(primitive, (cast(x, dtype), cast(weight, dtype)), **how), x.dtype)


def _finished(out: Tensor[Any], bias: Any, axes: int, single: bool) -> Tensor[Any]:
    if bias is not None:
        out = out + reshape(bias, (-1, *[1] * axes))
    return squeeze(out, 0) if single else out
