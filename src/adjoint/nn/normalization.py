"""Normalisations, over features, batches, groups and neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_number, integers
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
    out = cast(run("standardize", (cast(x, dtypes.summing(x.dtype)),), axis=axes, epsilon=eps), x.dtype)
    if scale is not None:
        out = out * scale
    return out if shift is None else out + shift
