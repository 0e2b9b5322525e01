"""The trained parameters of a model as constants, complex ones as pairs; the model with other values of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from adjoint import errors
from adjoint.module.base import Module
from adjoint.module.fields import with_arrays
from adjoint.optim.base import _parts, _trained, _value, _whole, gradients_by_path
from adjoint.tensor import Tensor

M = TypeVar("M", bound=Module)


def parameters(model: Module) -> dict[str, Tensor[Any]]:
    """By path, what rules compute with. Frozen parameters are left out."""
    return {leaf.path: _parts(_value(leaf.value)) for leaf in _trained(model)}


def gradients(grads: Any, model: Module) -> dict[str, Tensor[Any]]:
    """By path, the gradients there are, in the same form. Raises as a step does."""
    found = gradients_by_path(grads, model)
    pairs = {}
    for leaf in _trained(model):
        g = found.get(leaf.path)
        if g is not None:
            if g.shape != leaf.value.shape:
                raise errors.ShapeError(f"step: {leaf.path} has shape {leaf.value.shape}, its gradient {g.shape}")
            pairs[leaf.path] = _parts(g)
    return pairs


def with_parameters(model: M, values: Mapping[str, Tensor[Any]]) -> M:
    """The model with these values; leaves of `require_grad` become leaves again."""
    made = {}
    for leaf in _trained(model):
        if leaf.path in values:
            value = _whole(values[leaf.path], leaf.value)
            made[leaf.path] = leaf.value.with_value(value) if leaf.value.is_require_grad() else value
    return with_arrays(model, made)
