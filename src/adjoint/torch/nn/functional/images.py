"""Padding, patches, sampling and scaling of images; attention."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from adjoint.torch.arguments import Sizes
from adjoint.torch.calls import call, number
from adjoint.torch.nn.functional.shared import drawing, tensor
from adjoint.torch.tensor import Tensor


def pad(input: Tensor, pad: Sizes, mode: str = "constant", value: Any = None) -> Any:
    """x with so many elements more, or less, before and behind each of its last axes, the last one first."""
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' (position 3) must be str, not {type(mode).__name__}")
    if not isinstance(pad, (list, tuple)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    widths = tuple([int(n) for n in pad])
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) // 2 > tensor(input, "pad").ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {input.ndim}"
        )
    if mode != "constant" and value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    made = {"constant": "ConstantPadNd", "reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "Copy"}
    if mode not in made:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode != "constant" and not 1 <= input.ndim - len(widths) // 2 <= 2:
        raise NotImplementedError(f"Padding size {len(widths)} is not supported for {input.ndim}D input tensor.")
    if input._dtype.kind == "b" and mode in ("reflect", "replicate"):
        kernel = ("reflection" if mode == "reflect" else "replication") + f"_pad{len(widths) // 2}d"
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    name = made[mode] + (f"{len(widths) // 2}D" if mode in ("reflect", "replicate") else "")
    if isinstance(value, complex):
        raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
    fill: Any = 0 if value is None else value
    if not isinstance(fill, Tensor):  # which may be tracked
        fill = number(float(fill) if input._dtype.kind in "uf" else fill, input._dtype)
    return call("nn.pad", name, input, widths, mode, fill)


def _sizes(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Any = 0, stride: Sizes = 1) -> Any:
    """The patches of images, as columns."""
    options = {"dilation": _sizes(dilation), "padding": _sizes(padding), "stride": _sizes(stride)}
    if input._dtype.kind in "iu":  # not in the table of refused types: Tensor.unfold has the same name
        raise NotImplementedError(f"\"im2col_out_cpu\" not implemented for '{input.dtype.class_name}'")
    return call("nn.unfold", "Im2Col", input, _sizes(kernel_size), **options)


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Any = 0, stride: Sizes = 1
) -> Any:
    """Images from patches, which are added up where they meet."""
    options = {"dilation": _sizes(dilation), "padding": _sizes(padding), "stride": _sizes(stride)}
    return call("nn.fold", "Col2Im", input, _sizes(output_size), _sizes(kernel_size), **options)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """Channels as pixels of a finer image."""
    return call("nn.pixel_shuffle", "PixelShuffle", input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """Pixels as channels of a coarser image."""
    return call("nn.pixel_unshuffle", "PixelUnshuffle", input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Any:
    """Channels of groups one after the other."""
    return call("nn.channel_shuffle", "ChannelShuffle", input, groups)


_MODES = {"nearest": "Nearest", "nearest-exact": "NearestExact", "area": "AdaptiveAvgPool", "linear": "Linear",
          "bilinear": "Bilinear", "trilinear": "Trilinear", "bicubic": "Bicubic"}  # fmt: skip


_AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """Images, signals and volumes in another size."""
    if isinstance(size, (tuple, list)):
        size = type(size)([n.item() if isinstance(n, Tensor) and not n.ndim else n for n in size])
    elif isinstance(size, Tensor) and not size.ndim:
        size = size.item()
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    axes = tensor(input, "interpolate").ndim - 2
    for what, given in (("size", size), ("scale_factor", scale_factor)):
        if isinstance(given, (tuple, list)) and len(given) != axes:
            raise ValueError(
                f"Input and {'output' if what == 'size' else what} must have the same number of spatial dimensions, "
                f"but got input with spatial dimensions of {list(input.shape[2:])} and {what} of {tuple(given)}"
            )
    if antialias and (mode not in ("bilinear", "bicubic") or axes != 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if not 1 <= axes <= 3:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {axes + 2}D) for the modes: "
            f"{' | '.join(_MODES)}"
        )
    wanted = _AXES.get(mode)
    if mode not in _MODES:
        raise NotImplementedError(f"Input Error: {mode!r} is none of the modes {' | '.join(_MODES)}")
    if wanted is not None and wanted != axes:
        raise NotImplementedError(f"Got {axes + 2}D input, but {mode} mode needs {wanted + 2}D input")
    if input._dtype.kind in "biuc":
        if input._dtype != np.uint8 or mode in ("linear", "trilinear", "area"):
            raise NotImplementedError(f"\"upsample_{mode}\" not implemented for '{input.dtype.class_name}'")
        # PyTorch rounds and cuts between the axes, too, with weights of 16 bits: its numbers are off these
        out = interpolate(input.float(), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
        return out.round().clamp(0, 255).to(input.dtype)
    name = f"Upsample{_MODES[mode]}{axes}D"
    return call(
        "nn.interpolate", name, input, _sizes(size), _sizes(scale_factor), mode, align_corners,
        recompute_scale_factor, antialias,
    )  # fmt: skip


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode="nearest" by an older name."""
    _warn_of("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode="bilinear" and align_corners=True by an older name."""
    _warn_of("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _warn_of(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=4
    )


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Any:
    """Where an affine map takes the pixels of an image from, for `grid_sample`."""
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {tuple(size)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (axes, axes + 1):
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size {tuple(size)}. Got "
            f"{theta.shape}."
        )
    return call("nn.affine_grid", "AffineGridGenerator", theta, tuple(size), bool(align_corners))


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """The values of images at places between -1 and 1."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if input._dtype is not grid._dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.class_name} but found {grid.dtype.class_name}")
    made = f"GridSampler{input.ndim - 2}D"
    return call("nn.grid_sample", made, input, grid, mode, padding_mode, bool(align_corners))


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query @ key.mT scale + mask) @ value."""
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    name = "nn.scaled_dot_product_attention"
    if min(tensor(query, name).ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if not query._dtype is key._dtype is value._dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} key.dtype: "
            f"{key.dtype} and value.dtype: {value.dtype} instead."
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    run = drawing if dropout_p else call
    of_kernel = query.ndim == key.ndim == value.ndim == 4 and not dropout_p
    made = "ScaledDotProductFlashAttentionForCpu" if of_kernel else "Mm" if query.ndim == 2 else "UnsafeView"
    return run(name, made, query, key, value, attn_mask, **options)
