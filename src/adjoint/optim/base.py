"""What all optimizers do: find the gradient of each parameter, update it, and make the next model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from adjoint import errors
from adjoint.counterparts import counterpart
from adjoint.devices import leaf_of
from adjoint.functions.arguments import called, is_integer
from adjoint.functions.creation import asarray
from adjoint.functions.elementwise import where
from adjoint.functions.gradients import Gradients
from adjoint.functions.shape import stack
from adjoint.module.base import Module
from adjoint.module.fields import Leaf, exchanged, fits, leaves_of, once_each, opened, value_of, with_arrays
from adjoint.optim.fused import Job, Slots, updated
from adjoint.optim.settings import Settings, flag, not_negative, rate, setting
from adjoint.tensor import Tensor

M = TypeVar("M")  # a module, or dictionaries, lists and tuples of tensors and modules
Rate = float | Callable[[Any], Any]  # a number, or a schedule: a function of the number of steps done
Where = str | Callable[[str, Any], bool]  # parameters by path, pattern, or function of path and value


class State(NamedTuple):
    """What an optimizer remembers: how many steps it has done, and the slots of each parameter by path and name."""

    step: Any
    slots: dict[str, Slots]


@dataclasses.dataclass(frozen=True, eq=False)
class Group(Settings):
    """Parameters, and their optimizer, which has a rate of its own or takes that of the others."""

    where: tuple[Where, ...]
    optimizer: Optimizer
    has_rate: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimizer(Settings):
    """An optimizer: settings, and two functions. Nothing is kept in it.

    `init(model)` gives a state, `step(model, grads, state)` the next model and the next state. A model is an
    `ad.nn.Module`, or a dictionary, list or tuple of tensors, whose paths are their keys and places: "layers.0.weight".

    A subclass says what it remembers of a parameter (`begin`) and how it makes the next one (`update`). The rate is a
    number, or a schedule: a function of the number of steps that were done.

    Parameters may have any shape, unless an optimizer says otherwise. Gradients have the shapes of the parameters, and
    the next model has the same shapes and dtypes.

    With `donate` a step writes the next model and state over those it is given, which halves the time of large
    parameters on NumPy. Use neither of the two afterwards, nor other models with the same tensors;
    `copy.deepcopy(model)` is one to keep. Arrays that no step has made stay as they are.

    Settings are numbers, or tensors of one number. An optimizer is a tree of its real numbers and tensors, so that
    `ad.grad(f)(ad.optim.Adam(lr=0.1))` is one of derivatives. Raises ArgumentError or ArgumentTypeError for settings
    that make no sense.

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
    >>> w = {"slope": ad.tensor(2.0), "shift": ad.tensor(1.0)}
    >>> w, state = optimizer.step(w, ad.grad(lambda w: w["slope"] ** 2 + w["shift"])(w), optimizer.init(w))
    >>> [round(x.item(), 4) for x in w.values()]
    [1.6, 0.9]
    """

    lr: Rate = setting(1e-3, rate)
    donate: bool = setting(False, flag)
    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.groups, tuple) or not all(isinstance(each, Group) for each in self.groups):
            raise errors.ArgumentTypeError(
                f"{type(self).__name__}: groups are made by the method group, received {errors.shown(self.groups)}"
            )

    if not TYPE_CHECKING:  # type checkers refuse other names themselves

        def __getattr__(self, name: str) -> Any:
            hint = counterpart("Optimizer", name)
            said = f"{type(self).__name__!r} object has no attribute {errors.shown(name)}{hint}"
            raise AttributeError(said, name=name, obj=self)

    def group(self, *where: Where, use: Optimizer | None = None, **settings: Any) -> Self:
        """The optimizer with other settings for some parameters, or with another one for them.

        Parameters
        ----------
        *where
            Paths of parameters or parts, patterns such as `layers.*.bias`, or functions of path and value.
        use
            The optimizer of these parameters; this one if it is left out.
        **settings
            What to change in it. A rate given here is that of the group, whatever `lr` a step is given.

        Of several groups with a parameter the last one counts.

        Raises
        ------
        ArgumentError
            There is no setting of that name; `use` has groups itself, or an average that this one has not; from `init`,
            nothing in the model fits.
        ArgumentTypeError
            `use` is no optimizer that goes by parameters; `where` is missing.

        Examples
        --------
        >>> import adjoint as ad
        >>> model = ad.nn.Linear(1, 1, bias=True).map(ad.ones_like)
        >>> optimizer = ad.optim.SGD(lr=0.5, weight_decay=1.0).group("bias", weight_decay=0.0)
        >>> grads = {"weight": ad.zeros((1, 1)), "bias": ad.zeros(1)}
        >>> model, _ = optimizer.step(model, grads, optimizer.init(model))
        >>> model.weight.item(), model.bias.item()
        (0.5, 1.0)
        """
        for choice in where or (None,):
            if not isinstance(choice, str) and not callable(choice):
                raise errors.ArgumentTypeError(
                    f"group: a path, a pattern or a function says which parameters, received {errors.shown(choice)}"
                )
        other = dataclasses.replace(self, groups=()) if use is None else use
        if not isinstance(other, Optimizer) or type(other).step is not Optimizer.step:
            raise errors.ArgumentTypeError(
                f"group: use is an optimizer that goes parameter by parameter, such as ad.optim.SGD(), received "
                f"{errors.shown(use)}"
            )
        if other.groups:
            raise errors.ArgumentError("group: use has groups of its own; give them to the optimizer around it")
        if hasattr(other, "averaged") and not hasattr(self, "averaged"):
            name, own = type(other).__name__, type(self).__name__
            raise errors.ArgumentError(
                f"group: {name} has an average to evaluate, and {own} gives none; make {name} the optimizer, and "
                f"{own} that of a group"
            )
        known = {field.name for field in dataclasses.fields(other)} - {"groups"}
        if unknown := settings.keys() - known:
            raise errors.ArgumentError(
                f"group: {type(other).__name__} has no setting {', '.join(sorted(unknown))}; there are "
                f"{', '.join(sorted(known))}"
            )
        made = Group(where, dataclasses.replace(other, **settings), use is not None or "lr" in settings)
        return dataclasses.replace(self, groups=(*self.groups, made))

    def begin(self, x: Tensor[Any]) -> Slots:
        """What is remembered of a parameter before the first step."""
        return {}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> tuple[Tensor[Any], Slots]:
        """The next value of a parameter and its next slots; `step` counts from 1."""
        raise NotImplementedError

    def init(self, model: Any) -> State:
        """The state before the first step, of a module or of a dictionary, list or tuple of tensors.

        Raises ArgumentError if a group fits nothing in the model or a container has no tensor to train,
        ArgumentTypeError for what is no model.
        """
        leaves = _trained(model, "init")
        for each in self.groups:
            for choice in each.where:
                if not any(fits(choice, leaf) for leaf in leaves):
                    known = ", ".join([leaf.path for leaf in leaves])
                    raise errors.ArgumentError(
                        f"group: nothing fits {errors.shown(choice)}; parameters are {errors.shown(known)}"
                    )
        slots = {}
        for leaf in leaves:
            slots[leaf.path] = self.rule_of(leaf).begin(_parts(value_of(leaf.value)))
        return State(0, slots)

    def _group_of(self, leaf: Leaf) -> Group | None:
        """The last group that a parameter is in."""
        return next((g for g in reversed(self.groups) if any(fits(choice, leaf) for choice in g.where)), None)

    def rule_of(self, leaf: Leaf) -> Optimizer:
        """The optimizer of a parameter: that of its group, or this one."""
        group = self._group_of(leaf)
        return group.optimizer if group else self

    def step(self, model: M, grads: Any, state: State, *, lr: Any = None) -> tuple[M, State]:
        """The next model and the next state.

        Parameters
        ----------
        model
            A module, or a dictionary, list or tuple of tensors or modules. Leaves of `require_grad` become leaves
            again, other parameters stay constants.
        grads
            What `backward` gave, a module or container of gradients as `ad.grad` gives it, or a mapping from paths.
            They may be arrays of NumPy. Parameters that have none stay as they are, and so do frozen ones.
        state
            What `init` or the last `step` gave.
        lr
            The rate of this step, in the place of the optimizer's: a number, or a schedule.

        Raises
        ------
        ArgumentError, ArgumentTypeError, ShapeError
            The state is not of this model; there is no gradient at all; one does not fit its parameter.
        """
        check_state(state)
        check_module("step", model)
        leaves = leaves_of(model)
        own = _once(leaves)
        found = _found(grads, leaves, own)
        jobs: dict[tuple[Group | None, Any], list[tuple[Leaf, Tensor[Any], Job]]] = {}
        counted = is_integer(state.step)
        for leaf in own:
            x = value_of(leaf.value)
            g = _gradient(found, leaf, x)
            if g is None:
                continue
            if leaf.path not in state.slots:
                raise errors.ArgumentError(f"step: the state knows nothing of {leaf.path}; init(model) makes a new one")
            job = Job(_parts(x), g, state.slots[leaf.path])
            # a count that is a tensor, as in a step that is compiled, is as exact as the parameter
            dtype = None if counted else job.x.dtype
            jobs.setdefault((self._group_of(leaf) if self.groups else None, dtype), []).append((leaf, x, job))
        images, slots = {}, dict(state.slots)
        for (of, dtype), rows in jobs.items():
            count = state.step
            if dtype is not None:
                place = count.device if isinstance(count, Tensor) else leaf_of(count)
                count = asarray(count, dtype=dtype, device=place)
            optimizer = of.optimizer if of else self
            now = rate_at(optimizer.lr if lr is None or (of and of.has_rate) else lr, count)
            update = functools.partial(optimizer.update, step=count + 1, lr=now)
            results = updated(update, [job for *_, job in rows], optimizer.donate)
            for (leaf, x, _), (value, slots[leaf.path]) in zip(rows, results, strict=True):
                images[id(leaf.value)] = _again(leaf.value, x, _whole(value, x))
        return exchanged(model, images), State(state.step + 1, slots)


def rate_at(lr: Any, step: Any, name: str = "step", form: str = "lr(step)") -> Any:
    """The rate of a step. Raises as the setting does, also for what a schedule gives."""
    found = called(name, form, lr, step) if callable(lr) else lr
    if not isinstance(found, Tensor):
        not_negative(found, name, "the rate")
    elif found.ndim:
        raise errors.ShapeError(f"{name}: the rate is one number, received a tensor of shape {found.shape}")
    return found


def check_state(state: Any, name: str = "step") -> None:
    """Raises ArgumentTypeError for what is no state."""
    if not isinstance(state, State):
        raise errors.ArgumentTypeError(
            f"{name}: the state comes last and is what init(model) or the last step gave, received "
            f"{errors.shown(state)}"
        )


def check_module(name: str, model: Any) -> None:
    """Raises ArgumentTypeError for what is neither a module nor a container of tensors."""
    if not isinstance(model, (Module, dict, list, tuple)):
        raise errors.ArgumentTypeError(
            f"{name}: the model is an ad.nn.Module, or a dictionary, list or tuple of tensors, received "
            f"{errors.shown(model)}"
        )


def gradients_by_path(grads: Any, model: Any) -> Mapping[str, Tensor[Any]]:
    """The gradients of a model's parameters, by their paths. Raises ArgumentError where there is none."""
    check_module("gradients", model)
    leaves = leaves_of(model)
    found = _found(grads, leaves, _once(leaves))
    return {path: g for path, g in found.items() if g is not None}


def _found(grads: Any, leaves: list[Leaf], own: list[Leaf]) -> Mapping[str, Tensor[Any]]:
    """The gradients by the paths of the parameters. Raises as a step does."""
    found: Mapping[str, Any]
    if isinstance(grads, Gradients):
        found = {leaf.path: g for leaf in own if (g := grads.get(leaf.value)) is not None}
    else:
        found = _as_tensors(_added(_by_path(grads), leaves, own), own)
    if not any([leaf.path in found for leaf in own]):
        raise errors.ArgumentError(
            "step: there is no gradient of a parameter of this model; gradients of backward() are those of the very "
            "model that the loss was computed with"
        )
    return found


def _by_path(grads: Any) -> Mapping[str, Any]:
    """Gradients in a module, in containers or in a mapping by their paths."""
    if isinstance(grads, Module):
        return {leaf.path: leaf.value for leaf in leaves_of(grads)}
    if isinstance(grads, (dict, list, tuple)):
        return _paths(grads)
    if isinstance(grads, Mapping):
        return grads
    raise errors.ArgumentTypeError(
        f"step: grads are what backward() gave, a module or container of gradients, or a mapping from paths, "
        f"received {errors.shown(grads)}"
    )


def _as_tensors(found: dict[str, Any], own: list[Leaf]) -> dict[str, Any]:
    """The gradients with tensors where a transform of arrays has given arrays."""
    for leaf in own:
        if isinstance(found.get(leaf.path), (np.ndarray, np.generic)):
            device = value_of(leaf.value).device
            found[leaf.path] = asarray(found[leaf.path], dtype=leaf.value.dtype, device=device)
    return found


def _paths(grads: Any) -> dict[str, Any]:
    """Gradients in containers, or in a dictionary, by their paths."""
    children, names, _ = opened(grads)
    found: dict[str, Any] = {}
    for name, child in zip(names, children, strict=True):
        found |= {leaf.path: leaf.value for leaf in leaves_of(child, name)} or {name: child}
    return found


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """x if the condition holds, else y: by Python's own truth, and in a step that is compiled by tensors."""
    return where(condition, x, y) if isinstance(condition, Tensor) else (x if condition else y)


def _added(found: Mapping[str, Any], leaves: list[Leaf], own: list[Leaf]) -> dict[str, Any]:
    """The gradients with those of the places of one tensor added up at the first."""
    first = {id(leaf.value): leaf.path for leaf in own}
    sums = dict(found)
    for leaf in leaves:
        path = first.get(id(leaf.value), leaf.path)
        if path != leaf.path and leaf.path in sums:
            g = sums.pop(leaf.path)
            sums[path] = sums[path] + g if path in sums else g
    return sums


def _trained(model: Any, name: str = "parameters") -> list[Leaf]:
    check_module(name, model)
    leaves = leaves_of(model)
    if not isinstance(model, Module) and not any([leaf.kind == "parameter" for leaf in leaves]):
        raise errors.ArgumentError(
            f"{name}: parameters are tensors of floating dtypes, as ad.tensor(w) of an array, and there is none in "
            f"{errors.shown(model)}"
        )
    return _once(leaves)


def _once(leaves: list[Leaf]) -> list[Leaf]:
    """What an optimizer changes. A tensor that is in several places of the model is one parameter."""
    return once_each([leaf for leaf in leaves if leaf.kind == "parameter"])


def _gradient(found: Mapping[str, Any], leaf: Leaf, x: Tensor[Any]) -> Tensor[Any] | None:
    """The gradient by a parameter with the value x, as rules compute with it; None where there is none.

    That by a leaf is a value: what it was computed of would be held in the slots.
    """
    g = found.get(leaf.path)
    if g is None:
        return None
    if not isinstance(g, Tensor):
        raise errors.ArgumentTypeError(f"step: the gradient of {leaf.path} is a tensor, received {errors.shown(g)}")
    if g._array.shape != x._array.shape:
        raise errors.ShapeError(f"step: {leaf.path} has shape {x.shape}, its gradient {g.shape}")
    return _parts(g.inner() if x is not leaf.value and g._device is leaf.value._device else g)


def _again(leaf: Tensor[Any], x: Tensor[Any], value: Tensor[Any]) -> Tensor[Any]:
    """The next value of a parameter with the value x: a leaf where it was one of `require_grad`."""
    return value if x is leaf else leaf.with_value(value)


def _parts(x: Tensor[Any]) -> Tensor[Any]:
    """Complex numbers as pairs of real ones along a last axis, each of which is updated by itself, as in PyTorch."""
    return stack([x.real, x.imag], axis=-1) if x._dtype.kind == "c" else x


def _whole(x: Tensor[Any], like: Tensor[Any]) -> Tensor[Any]:
    return (x[..., 0] + 1j * x[..., 1]).astype(like.dtype) if like._dtype.kind == "c" else x


# --- for rules that look at several parameters at once -------------------------------------------


def parameters(model: Any) -> dict[str, Tensor[Any]]:
    """By path, what rules compute with. Frozen parameters are left out."""
    return {leaf.path: _parts(value_of(leaf.value)) for leaf in _trained(model)}


def gradients(grads: Any, model: Any) -> dict[str, Tensor[Any]]:
    """By path, the gradients there are, in the same form. Raises as a step does."""
    found = gradients_by_path(grads, model)
    pairs = {leaf.path: _gradient(found, leaf, value_of(leaf.value)) for leaf in _trained(model)}
    return {path: g for path, g in pairs.items() if g is not None}


def with_parameters(model: M, values: Mapping[str, Tensor[Any]]) -> M:
    """The model with these values; leaves of `require_grad` become leaves again."""
    made = {}
    for leaf in _trained(model):
        if leaf.path in values:
            made[leaf.path] = _again(leaf.value, value_of(leaf.value), _whole(values[leaf.path], leaf.value))
    return with_arrays(model, made)
