"""`Module`: what is assigned to it is registered; called, it runs `forward` and the hooks."""

from __future__ import annotations

import functools
from typing import Any

from adjoint.torch.graph import Handle
from adjoint.torch.nn.parameter import Buffer, Parameter
from adjoint.torch.nn.states import States
from adjoint.torch.nn.watching import Watch
from adjoint.torch.tensor import Tensor

_DICTIONARIES = (
    "_parameters", "_buffers", "_modules", "_backward_pre_hooks", "_backward_hooks", "_forward_hooks",
    "_forward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks", "_plain_backward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip

_BOTH = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)

# hooks of all modules, which run before a module's own; see `nn.modules.module`
EVERYWHERE: dict[str, dict[int, Any]] = {
    name: {} for name in ("forward", "forward_pre", "backward", "backward_pre", "parameter", "buffer", "module")
}
_FORWARD, _FORWARD_PRE, _BACKWARD, _BACKWARD_PRE, *_ = EVERYWHERE.values()


def kind_of(value: Any) -> str:
    """What PyTorch calls the type of a value in messages."""
    if isinstance(value, Tensor):
        return f"torch.{value.dtype.class_name}Tensor"
    module = type(value).__module__
    return type(value).__name__ if module == "builtins" else f"{module}.{type(value).__qualname__}"


class Module(States):
    """The base of all layers and models: parameters, buffers and parts are what is assigned to its attributes.

    >>> import adjoint.torch as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(torch.tensor(3.0)), [name for name, _ in scale.named_parameters()]
    (tensor(6., grad_fn=<MulBackward0>), ['factor'])
    """

    training: bool
    dump_patches = False
    _plain_backward_hooks: dict[int, Any]
    _forward_hooks_with_kwargs: dict[int, bool]  # which hooks are called so, by their number
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            what = "positional" if args else "keyword"
            raise TypeError(f"{type(self).__name__}.__init__() got unexpected {what} arguments")
        own = self.__dict__
        own["training"] = True
        for name in _DICTIONARIES:
            own[name] = {}
        own["_non_persistent_buffers_set"] = set()

    # --- calling ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes: subclasses say so."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]) and not (
            own["_backward_pre_hooks"]
            or own["_plain_backward_hooks"]
            or _FORWARD
            or _FORWARD_PRE
            or _BACKWARD
            or _BACKWARD_PRE
        ):
            return self.forward(*args, **kwargs)
        return self._with_hooks(args, kwargs)

    def _with_hooks(self, args: Any, kwargs: Any) -> Any:
        named_keys = self._forward_pre_hooks_with_kwargs
        own = [(hook, key in named_keys, False) for key, hook in self._forward_pre_hooks.items()]
        for hook, named, _ in [*_FORWARD_PRE.values(), *own]:
            answer = hook(self, args, kwargs) if named else hook(self, args)
            if answer is None:
                continue
            if named:
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
            else:
                args = answer if isinstance(answer, tuple) else (answer,)
        watch = None
        backward = [*_BACKWARD.values(), *self._backward_hooks.values()]
        before = [*_BACKWARD_PRE.values(), *self._backward_pre_hooks.values()]
        if backward or before:
            watch = Watch(self, backward, before)
            args = watch.inputs(args)
        done = False
        try:
            result = self.forward(*args, **kwargs)
            done = True
            for hook, named, _ in self._hooks_after():
                answer = hook(self, args, kwargs, result) if named else hook(self, args, result)
                result = result if answer is None else answer
        except Exception:
            for hook, named, always in self._hooks_after():
                if always and not done:  # a hook that runs in any case sees that there is no result
                    hook(self, args, kwargs, None) if named else hook(self, args, None)
            raise
        if self._plain_backward_hooks:
            self._hang_on(result)
        return result if watch is None else watch.outputs(result)

    def _hooks_after(self) -> list[Any]:
        """The hooks after `forward`, whether each takes arguments by name, and whether it runs in any case."""
        named, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        return [*_FORWARD.values(), *[(hook, key in named, key in always) for key, hook in self._forward_hooks.items()]]

    def _hang_on(self, result: Any) -> None:
        """Hang the hooks of `register_backward_hook` on the node of a result, the last of the module."""
        while not isinstance(result, Tensor):
            result = next(iter(result.values())) if isinstance(result, dict) else result[0]
        if result.grad_fn is not None:
            for hook in self._plain_backward_hooks.values():
                result.grad_fn.register_hook(functools.partial(hook, self))

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args)` before `forward`; what it returns takes the place of the arguments."""
        handle = _hooked(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after `forward`; what it returns takes the place of the output."""
        handle = _hooked(self._forward_hooks, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_backward_hook(self, hook: Any) -> Handle:
        """Call `hook(module, grad_input, grad_output)` of the last node of a module alone; see the full one."""
        if self._backward_hooks:
            raise RuntimeError(_BOTH)
        return Handle(self._plain_backward_hooks, hook)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` when gradients by the inputs are there; it may replace them."""
        if self._plain_backward_hooks:
            raise RuntimeError(_BOTH)
        return _hooked(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` before gradients go through the module; it may replace them."""
        return _hooked(self._backward_pre_hooks, hook, prepend)

    # --- what is registered ---

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter under a name, or None as a place for one."""
        self._check_name("parameter", name, self._parameters, param)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{kind_of(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = self._hooked_in("parameter", name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; `persistent` ones are in the state."""
        self._check_name("buffer", name, self._buffers, tensor)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{kind_of(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = self._hooked_in("buffer", name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a part under a name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{kind_of(module)} is not a Module subclass")
        self._check_name("module", name, self._modules, module)
        self._modules[name] = self._hooked_in("module", name, module)

    register_module = add_module

    def _hooked_in(self, kind: str, name: str, value: Any) -> Any:
        """What is registered, once the hooks of all modules have seen it."""
        for hook in list(EVERYWHERE[kind].values()):
            answer = hook(self, name, value)
            value = value if answer is None else answer
        return value

    def _check_name(self, what: str, name: Any, among: Any, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {kind_of(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in among:
            raise KeyError(f"attribute '{name}' already exists")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            own["_modules"][name] = self._hooked_in("module", name, value)
            return
        for kind, wanted in (("parameter", "Parameter"), ("module", "Module")):
            known = own.get(f"_{kind}s")
            if known is not None and name in known:
                if value is not None:
                    where = "torch.nn.Parameter" if wanted == "Parameter" else "torch.nn.Module"
                    as_what = "parameter" if wanted == "Parameter" else "child module"
                    raise TypeError(
                        f"cannot assign '{kind_of(value)}' as {as_what} '{name}' ({where} or None expected)"
                    )
                known[name] = value
                return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor) and isinstance(value, Buffer) and buffers is not None:
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{kind_of(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                    "expected)"
                )
            buffers[name] = self._hooked_in("buffer", name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, among: str) -> None:
        """Take a name away wherever it is but in one dictionary."""
        own = self.__dict__
        own.pop(name, None)
        for other in ("_parameters", "_buffers", "_modules"):
            if other != among:
                own[other].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for among in ("_parameters", "_buffers", "_modules"):
            found = own.get(among)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for among in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[among]:
                del self.__dict__[among][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted([name for name in names if not name[0].isdigit()])

    # --- what is in it ---

    def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
        """This module and all parts of parts, with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, part in self._modules.items():
            if part is not None:
                yield from part.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Any:
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Any:
        """The parts, with their names."""
        memo = set()
        for name, part in self._modules.items():
            if part is not None and part not in memo:
                memo.add(part)
                yield name, part

    def children(self) -> Any:
        for _, part in self.named_children():
            yield part

    def _named_members(self, among: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Any:
        memo = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in getattr(module, among).items():
                if value is None or value in memo:
                    continue
                if remove_duplicate:
                    memo.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        """The parameters, with their paths."""
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Any:
        """The parameters, each once."""
        for _, value in self.named_parameters(recurse=recurse):
            yield value

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Any:
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def get_submodule(self, target: str) -> Any:
        """The part at a path."""
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a part at a path."""
        path, _, name = target.rpartition(".")
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        setattr(self.get_submodule(path), name, module)

    def get_parameter(self, target: str) -> Any:
        """The parameter at a path."""
        return self._member(target, "_parameters", "nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """The buffer at a path."""
        return self._member(target, "_buffers", "buffer")

    def _member(self, target: str, among: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, among):
            raise AttributeError(f"`{name}` is not a{'n' if what[0] == 'n' else ''} {what}")
        return getattr(module, name)

    # --- for all parts ---

    def apply(self, fn: Any) -> Any:
        """Call `fn(module)` for each part, and last for this module."""
        for part in self.children():
            part.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Say that the module is trained, so that dropout drops, for one; or that it is not."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for part in self.children():
            part.train(mode)
        return self

    def eval(self) -> Any:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Record gradients for the parameters from now on, or no longer."""
        for value in self.parameters():
            value.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take the gradients of the parameters away, or make them zeros."""
        for value in self.parameters():
            clear_gradient(value, set_to_none)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: there is no compiler of PyTorch's programs."""

    # --- as text ---

    def extra_repr(self) -> str:
        """What stands between the brackets."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        first = extra.split("\n") if extra else []
        parts = [f"({name}): " + "\n  ".join(repr(part).split("\n")) for name, part in self._modules.items()]
        lines = first + parts
        if not lines:
            body = ""
        elif len(first) == 1 and not parts:
            body = first[0]
        else:
            body = "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"


def _hooked(hooks: dict[int, Any], hook: Any, prepend: bool) -> Handle:
    handle = Handle(hooks, hook)
    if prepend:
        others = [(key, known) for key, known in hooks.items() if key != handle.id]
        hooks.clear()
        hooks.update([(handle.id, hook), *others])
    return handle


def clear_gradient(x: Any, set_to_none: bool) -> None:
    """Take the gradient of a tensor away, or make it zeros without history."""
    if x.grad is None:
        return
    if set_to_none:
        x.grad = None
    elif x.grad.grad_fn is not None:
        x.grad = x.grad.detach().clone().zero_()
    else:
        x.grad.requires_grad_(False)
        x.grad.zero_()
