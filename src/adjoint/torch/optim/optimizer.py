"""`Optimizer`: groups of parameters with settings, a state for each parameter, and both as dictionaries."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from adjoint.torch.graph import Handle
from adjoint.torch.nn.module import clear_gradient, kind_of
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import Tensor

required: Any = object()  # optimizers of old had it in the place of a rate that must be given
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_PRE: dict[int, Any] = {}  # hooks of all optimizers
_POST: dict[int, Any] = {}


def register_optimizer_step_pre_hook(hook: Any) -> Handle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimizer."""
    return Handle(_PRE, hook)


def register_optimizer_step_post_hook(hook: Any) -> Handle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimizer."""
    return Handle(_POST, hook)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's `step` with the hooks around it; a step that a subclass calls by super() is a part of its own step."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        if type(self).step is not wrapper:
            return step(*args, **kwargs)
        for hook in [*_PRE.values(), *self._step_pre_hooks.values()]:
            found = hook(self, args, kwargs)
            if found is None:
                continue
            if not isinstance(found, tuple) or len(found) != 2:
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {found}.")
            args, kwargs = found
        out = step(*args, **kwargs)
        self._opt_called = True
        for hook in [*self._step_post_hooks.values(), *_POST.values()]:
            hook(self, args, kwargs)
        return out

    return wrapper


class Optimizer:
    """The base of optimizers: subclasses say what `step` does with `param_groups` and `state`.

    >>> import adjoint.torch as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if not isinstance(defaults, dict):
            raise WrongKindError(f"defaults must be a dict of settings, not {kind_of(defaults)}")
        self.defaults = defaults
        self._begin_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + kind_of(params)
            )
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _begin_hooks(self) -> None:
        for name in _HOOKS:
            setattr(self, name, OrderedDict())

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize further parameters, with settings of their own or the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        found = [given] if isinstance(given, Tensor) else list(given)
        named = [isinstance(entry, tuple) for entry in found]
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in found]
            found = [x for _, x in found]
        for x in found:
            if not isinstance(x, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {kind_of(x)}")
            if not (x.is_leaf or x.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = found
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        if len(found) != len({id(x) for x in found}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            which, others = ("with", "without") if "param_names" in param_group else ("without", "with")
            raise ValueError(
                f"all optimizer param groups should be with/without names. cannot add param group {which} names to the "
                f"optimizer, whose groups are {others} names"
            )
        known = {id(x) for group in self.param_groups for x in group["params"]}
        if any([id(x) in known for x in found]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take the gradients of all parameters away, or make them zeros."""
        for group in self.param_groups:
            for x in group["params"]:
                clear_gradient(x, set_to_none)

    def step(self, closure: Any = None) -> Any:
        """Change the parameters by their gradients; `closure` computes the loss anew, with its gradients."""
        loss = self._loss(closure)
        self._step()
        return loss

    def _step(self) -> None:
        """What a step does once the gradients are there: subclasses say it, or have a `step` of their own."""
        raise NotImplementedError

    def _watch_steps(self) -> None:
        """Remember what stands in the place of the class's `step`, and from now on whether it ran."""
        if not hasattr(self, "_step_known"):
            self._step_known, self._opt_called = vars(self).get("step"), False

    def _loss(self, closure: Any) -> Any:
        if closure is None:
            return None
        with grad_mode(True):
            return closure()

    def register_step_pre_hook(self, hook: Any) -> Handle:
        """Call `hook(optimizer, args, kwargs)` before each step."""
        return Handle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> Handle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return Handle(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may give another one."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; it may give another one."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --- as dictionaries ---

    def state_dict(self) -> dict[str, Any]:
        """The state and the settings; parameters are numbers in it, in the order of the groups."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for x in group["params"]:
                numbers.setdefault(id(x), len(numbers))
            packed = {name: value for name, value in group.items() if name != "params"}
            groups.append({**packed, "params": [numbers[id(x)] for x in group["params"]]})
        state = {numbers.get(id(x), x) if isinstance(x, Tensor) else x: value for x, value in self.state.items()}
        made: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            found = hook(self, made)
            made = made if found is None else found
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave, for parameters in the same order."""
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            found = hook(self, state_dict)
            state_dict = state_dict if found is None else found
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for old, new in zip(self.param_groups, saved, strict=True):
            if len(old["params"]) != len(new["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
        places = [n for group in saved for n in group["params"]]
        known = dict(zip(places, [x for group in self.param_groups for x in group["params"]], strict=True))
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            x = known.get(key)
            state[key if x is None else x] = copy.deepcopy(value) if x is None else _fitted(value, x)
        groups = []
        for old, new in zip(self.param_groups, saved, strict=True):
            taken = {name: copy.deepcopy(value) for name, value in new.items() if name != "params"}
            if "param_names" in old:
                taken.setdefault("param_names", old["param_names"])
            groups.append({**taken, "params": old["params"]})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {i}"] if i else [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join(lines) + "\n)"

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._begin_hooks()

    # what `_begin_hooks` makes
    _step_pre_hooks: OrderedDict[int, Any]
    _step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]


_HOOKS = tuple([name for name in Optimizer.__annotations__ if name.endswith("_hooks")])

Optimizer.step = _hooked(Optimizer.step)  # type: ignore[method-assign]


def _registered(hooks: OrderedDict[int, Any], hook: Any, prepend: bool) -> Handle:
    handle = Handle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _fitted(value: Any, x: Tensor, key: str = "") -> Any:
    """A saved state in the type and on the device of its parameter, itself where it is; counts stay as they are."""
    if isinstance(value, Tensor):
        as_it_is = key == "step" or not x.is_floating_point()
        return value if as_it_is else value.to(x.device, dtype=x.dtype)
    if isinstance(value, dict):
        return {name: _fitted(entry, x, name) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_fitted(entry, x) for entry in value])
    return copy.copy(value)
