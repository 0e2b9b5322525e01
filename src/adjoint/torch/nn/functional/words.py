"""What PyTorch says of windows and kernels that do not fit, once adjoint has refused them."""

from __future__ import annotations

from typing import Any

from adjoint.torch.tensor import Tensor


def _each(value: Any, axes: int) -> tuple[int, ...] | None:
    """A setting as an integer for each axis; None where it is none."""
    given = (value,) * axes if not isinstance(value, (tuple, list)) else tuple(value) * (axes if len(value) == 1 else 1)
    return given if len(given) == axes and all([isinstance(n, int) for n in given]) else None


def _crossed(sizes: Any) -> str:
    return "(" + " x ".join(map(str, sizes)) + ")"


def of_convolution(
    axes: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> str | None:
    """Why a convolution was refused, in PyTorch's words; None for another reason."""
    steps, pads, gaps = (_each(value, axes) for value in (stride, padding, dilation))
    if steps is not None and min(steps) <= 0:
        return "non-positive stride is not supported"
    if pads is not None and min(pads) < 0:
        return "negative padding is not supported"
    if gaps is not None and min(gaps) <= 0:
        return "dilation should be greater than zero"
    if weight.shape[0] % groups:
        return (
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(weight.shape)}] instead"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        return (
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {weight.shape[0]} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )
    if pads is None or gaps is None:
        return None
    sizes = [n + 2 * pad for n, pad in zip(x.shape[-axes:], pads, strict=True)]
    kernel = [gap * (n - 1) + 1 for n, gap in zip(weight.shape[-axes:], gaps, strict=True)]
    if any([k > n for k, n in zip(kernel, sizes, strict=True)]):
        return (
            f"Calculated padded input size per channel: {_crossed(sizes)}. Kernel size: {_crossed(kernel)}. Kernel "
            "size can't be greater than actual input size"
        )
    return None


def of_pool(name: str, axes: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> str | None:
    """The same of a pool."""
    windows, pads, gaps = (_each(value, axes) for value in (kernel, padding, dilation))
    steps = windows if stride is None else _each(stride, axes)
    if windows is None:
        return f"{name}: kernel_size must either be a single int, or a tuple of {axes} ints"
    if steps is None or pads is None or gaps is None:
        return None
    if min(steps) <= 0:
        return "stride should not be zero"
    if x.ndim not in (axes + 1, axes + 2):
        return f"non-empty {axes + 1}D or {axes + 2}D (batch mode) tensor expected for input"
    for pad, window, gap in zip(pads, windows, gaps, strict=True):
        if pad > (gap * (window - 1) + 1) // 2:
            return (
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad}, kernel_size={window} and dilation={gap}"
            )
    return _too_small(name, axes, x, windows, steps, pads, gaps)


def _too_small(name: str, axes: int, x: Tensor, windows: Any, steps: Any, pads: Any, gaps: Any) -> str | None:
    found = [
        (n + 2 * pad - gap * (window - 1) - 1) // step + 1
        for n, pad, gap, window, step in zip(x.shape[-axes:], pads, gaps, windows, steps, strict=True)
    ]
    if min(found) > 0:
        return None
    if name == "max_pool1d":
        return f"max_pool1d() Invalid computed output size: {found[0]}"
    if name == "avg_pool3d":
        image, kernel = (
            " ".join([f"{letter}: {n}" for letter, n in zip(letters, sizes, strict=True)])
            for letters, sizes in ((("T", "H", "W"), x.shape[-3:]), (("kT", "kH", "kW"), windows))
        )
        return f"input image ({image}) smaller than kernel size ({kernel})"
    front = [*x.shape[:-axes]][-1:] + ([1] if axes == 1 else [])
    given, made = ("x".join(map(str, [*front, *sizes])) for sizes in (x.shape[-axes:], found))
    return f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small"
