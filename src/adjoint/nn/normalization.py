"""Normalisations, over features, batches, groups and neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_number, integers, ones, zeros
from adjoint.functions.manipulation import reshape
from adjoint.nn.arguments import real
from adjoint.tensor import Tensor, cast, operand, run

B = TypeVar("B", bound=Backend)


def layer_norm(
    x: Tensor[B],
    normalized_shape: int | Sequence[int],
    weight: Tensor[B] | None = None,
    bias: Tensor[B] | None = None,
    eps: float = 1e-5,
) -> Tensor[B]:
    """x with mean 0 and variance 1 over its last axes, then scaled and shifted. J. Ba et al. (2016).

    `normalized_shape` is the shape of those axes, and of weight and bias. Raises ArgumentTypeError where it is no
    shape, ShapeError where they do not agree.
    """
    x, eps = real(x, "layer_norm"), as_number(eps, "layer_norm", "eps")
    shape = integers(normalized_shape, "layer_norm", "the sizes in normalized_shape")
    scale, shift = (None if given is None else operand(given, x, "layer_norm") for given in (weight, bias))
    found = {"x's last axes": x.shape[x.ndim - len(shape) :]}
    found |= {name: given.shape for name, given in (("weight", scale), ("bias", shift)) if given is not None}
    for name, sizes in found.items():
        if sizes != shape or not shape:
            raise errors.ShapeError(f"layer_norm: normalized_shape is {shape}, {name} has shape {sizes}")
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return _normalized(x, axes, eps, scale, shift, shape)


def _normalized(
    x: Tensor[Any], axes: tuple[int, ...], eps: float, scale: Any, shift: Any, shape: tuple[int, ...]
) -> Tensor[Any]:
    """Mean 0 and variance 1 along axes, then scaled and shifted by tensors or None, made of a shape first."""
    dtype = x.dtype
    for given in (scale, shift):
        dtype = dtype if given is None else dtypes.promote(dtype, given.dtype)
    wide = dtypes.summing(dtype)
    if (scale is None and shift is None) or not x.size:
        out = run("standardize", (cast(x, wide),), axis=axes, epsilon=eps)
        out = out if scale is None else out * reshape(scale, shape)
        return cast(out if shift is None else out + reshape(shift, shape), dtype)
    shape = (1,) * (x.ndim - len(shape)) + shape
    scale = ones(shape, dtype=wide, device=x.device) if scale is None else reshape(cast(scale, wide), shape)
    shift = zeros(shape, dtype=wide, device=x.device) if shift is None else reshape(cast(shift, wide), shape)
    return cast(run("normalize", (cast(x, wide), scale, shift), axis=axes, epsilon=eps), dtype)
