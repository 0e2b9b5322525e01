"""What all optimizers do: find the gradient of each parameter, update it, and make the next model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from adjoint import errors
from adjoint.functions.elementwise import where
from adjoint.functions.gradients import Gradients
from adjoint.functions.shape import stack
from adjoint.module.base import Module
from adjoint.module.fields import Leaf, leaves_of, value_of, with_arrays
from adjoint.tensor import Tensor

M = TypeVar("M", bound=Module)
Slots = dict[str, Tensor[Any]]
Rate = float | Callable[[Any], Any]  # a number, or a schedule: a function of the number of steps done


class State(NamedTuple):
    """What an optimizer remembers: how many steps it has done, and the slots of each parameter by path and name."""

    step: Any
    slots: dict[str, Slots]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimizer:
    """An optimizer: settings, and two functions. Nothing is kept in it.

    `init(model)` gives a state, `step(model, grads, state)` the next model and the next state.

    A subclass says what it remembers of a parameter (`begin`) and how it makes the next one (`update`). The rate is a
    number, or a schedule: a function of the number of steps that were done.

    Examples
    --------
    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.SGD(lr=0.1)
    >>> state = optimizer.init(model)
    >>> grads = ad.grad(lambda model: (model(ad.ones((1, 1))) ** 2).sum())(model)
    >>> model, state = optimizer.step(model, grads, state)
    >>> round(model.weight.item(), 4), state.step
    (0.8, 1)
    """

    lr: Rate = 1e-3

    def begin(self, x: Tensor[Any]) -> Slots:
        """What is remembered of a parameter before the first step."""
        return {}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> tuple[Tensor[Any], Slots]:
        """The next value of a parameter and its next slots; `step` counts from 1."""
        raise NotImplementedError

    def init(self, model: Module) -> State:
        """The state before the first step."""
        return State(0, {leaf.path: self.begin(_parts(value_of(leaf.value))) for leaf in _trained(model)})

    def step(self, model: M, grads: Any, state: State, *, lr: Any = None) -> tuple[M, State]:
        """The next model and the next state.

        Parameters
        ----------
        model
            A module. Leaves of `require_grad` become leaves again, other parameters stay constants.
        grads
            What `backward` gave, a module of gradients as `ad.grad` gives it, or a mapping from paths. Parameters that
            have none stay as they are, and so do frozen ones.
        state
            What `init` or the last `step` gave.
        lr
            The rate of this step, in the place of the optimizer's.

        Raises
        ------
        ArgumentError, ArgumentTypeError, ShapeError
            The state is not of this model; there is no gradient at all; one does not fit its parameter.
        """
        found = gradients_by_path(grads, model)
        done = state.step + 1
        rate = (self.lr(state.step) if callable(self.lr) else self.lr) if lr is None else lr
        values: dict[str, Tensor[Any]] = {}
        slots = dict(state.slots)
        for leaf in _trained(model):
            g = found.get(leaf.path)
            if g is None:
                continue
            if leaf.path not in slots:
                raise errors.ArgumentError(f"step: the state knows nothing of {leaf.path}; init(model) makes a new one")
            x = value_of(leaf.value)
            if g.shape != x.shape:
                raise errors.ShapeError(f"step: {leaf.path} has shape {x.shape}, its gradient {g.shape}")
            g = _parts(_gradient(g, leaf.value))
            value, slots[leaf.path] = self.update(_parts(x), g, slots[leaf.path], done, rate)
            values[leaf.path] = _again(leaf.value, _whole(value, x))
        return with_arrays(model, values), State(done, slots)


def gradients_by_path(grads: Any, model: Module) -> Mapping[str, Tensor[Any]]:
    """The gradients of a model's parameters, by their paths. Raises ArgumentError where there is none."""
    if isinstance(grads, Gradients):
        pairs = ((leaf.path, grads.get(leaf.value)) for leaf in _trained(model))
        found: Mapping[str, Tensor[Any]] = {path: g for path, g in pairs if g is not None}
    elif isinstance(grads, Module):
        found = {leaf.path: leaf.value for leaf in leaves_of(grads)}
    elif isinstance(grads, Mapping):
        found = grads
    else:
        raise errors.ArgumentTypeError(
            f"step: grads are what backward() gave, a module of gradients, or a mapping from paths, received "
            f"{errors.shown(grads)}"
        )
    if not any(leaf.path in found for leaf in _trained(model)):
        raise errors.ArgumentError(
            "step: there is no gradient of a parameter of this model; gradients of backward() are those of the very "
            "model that the loss was computed with"
        )
    return found


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """x if the condition holds, else y: by Python's own truth, and in a step that is compiled by tensors."""
    return where(condition, x, y) if isinstance(condition, Tensor) else (x if condition else y)


def _trained(model: Module) -> list[Leaf]:
    return [leaf for leaf in leaves_of(model) if leaf.kind == "parameter"]


def _gradient(g: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    """A gradient by a parameter. That by a leaf is a value: what it was computed of would be held in the slots."""
    return g.inner() if value_of(x) is not x and g.device is x.device else g


def _again(x: Tensor[Any], value: Tensor[Any]) -> Tensor[Any]:
    """The next value of a parameter: a leaf where it was one of `require_grad`."""
    return value if value_of(x) is x else x.with_value(value)


def _parts(x: Tensor[Any]) -> Tensor[Any]:
    """Complex numbers as pairs of real ones along a last axis, each of which is updated by itself, as in PyTorch."""
    return stack([x.real, x.imag], axis=-1) if x.dtype.kind == "c" else x


def _whole(x: Tensor[Any], like: Tensor[Any]) -> Tensor[Any]:
    return (x[..., 0] + 1j * x[..., 1]).astype(like.dtype) if like.dtype.kind == "c" else x


# --- for rules that look at several parameters at once -------------------------------------------


def parameters(model: Module) -> dict[str, Tensor[Any]]:
    """By path, what rules compute with. Frozen parameters are left out."""
    return {leaf.path: _parts(value_of(leaf.value)) for leaf in _trained(model)}


def gradients(grads: Any, model: Module) -> dict[str, Tensor[Any]]:
    """By path, the gradients there are, in the same form. Raises as a step does."""
    found = gradients_by_path(grads, model)
    pairs = {}
    for leaf in _trained(model):
        g = found.get(leaf.path)
        if g is not None:
            if g.shape != leaf.value.shape:
                raise errors.ShapeError(f"step: {leaf.path} has shape {leaf.value.shape}, its gradient {g.shape}")
            pairs[leaf.path] = _parts(_gradient(g, leaf.value))
    return pairs


def with_parameters(model: M, values: Mapping[str, Tensor[Any]]) -> M:
    """The model with these values; leaves of `require_grad` become leaves again."""
    made = {}
    for leaf in _trained(model):
        if leaf.path in values:
            made[leaf.path] = _again(leaf.value, _whole(values[leaf.path], leaf.value))
    return with_arrays(model, made)
