"""The state of a module: its tensors by their paths, read and loaded; and their types."""

from __future__ import annotations

import functools
from collections import OrderedDict, namedtuple
from typing import Any

from adjoint.torch import devices, dtypes
from adjoint.torch.graph import Handle
from adjoint.torch.nn.parameter import Parameter, Waiting
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What was not in a state, and what was there too much."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class State(OrderedDict[str, Any]):
    """Tensors by path; `_metadata` has the versions of the modules, under PyTorch's name."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._metadata: dict[str, Any] = OrderedDict()

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def __reduce__(self) -> Any:
        """In files it is a plain one, which PyTorch reads."""
        return OrderedDict, (), {"_metadata": self._metadata}, None, iter(self.items())


class States:
    """Members of `Module`."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: dict[int, Any]
    _state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Any]
    _forward_hooks: dict[int, Any]
    _forward_pre_hooks: dict[int, Any]
    _backward_hooks: dict[int, Any]
    _backward_pre_hooks: dict[int, Any]
    _version: int

    # --- reading ---

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and buffers by their paths. They share memory with the module's.

        >>> import adjoint.torch as torch
        >>> list(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict())[:4]
        ['0.weight', '0.bias', '1.weight', '1.bias']
        """
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = State()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, part in self._modules.items():
            if part is not None:
                part.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            answer = hook(self, destination, prefix, metadata)
            if answer is not None:
                destination = answer
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not States.get_extra_state:
            destination[f"{prefix}_extra_state"] = self.get_extra_state()

    def _own_state(self) -> Any:
        kept = [(n, v) for n, v in self._buffers.items() if n not in self._non_persistent_buffers_set]
        return [(name, value) for name, value in [*self._parameters.items(), *kept] if value is not None]

    def get_extra_state(self) -> Any:
        """What else belongs to the state: subclasses say so."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def register_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata)` when the state has been read. It returns None."""

        @functools.wraps(hook)
        def called(*given: Any) -> None:
            if hook(*given) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return Handle(self._state_dict_hooks, called)

    def _register_state_dict_hook(self, hook: Any) -> Handle:
        """The same; what the hook returns takes the place of the state."""
        return Handle(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call `hook(module, prefix, keep_vars)` before the state is read."""
        return Handle(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, ...)` before loading."""
        return Handle(self._load_state_dict_pre_hooks, (hook, True))

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> Handle:
        return Handle(self._load_state_dict_pre_hooks, (hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists of keys."""
        return Handle(self._load_state_dict_post_hooks, hook)

    # --- loading ---

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take the values of a state, with `assign` its very tensors; `strict` asks for all keys and no others."""
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        found = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        wrong: list[str] = []
        metadata = getattr(state_dict, "_metadata", {})
        self._load(found, "", metadata, True, missing, unexpected, wrong, assign)
        if strict:
            if unexpected:
                names = ", ".join([f'"{key}"' for key in unexpected])
                wrong.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing:
                names = ", ".join([f'"{key}"' for key in missing])
                wrong.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if wrong:
            lines = "\n\t".join(wrong)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return _IncompatibleKeys(missing, unexpected)

    def _load(
        self, state: Any, prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any, wrong: Any,
        assign: bool,
    ) -> None:  # fmt: skip
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        self._load_from_state_dict(state, prefix, local, strict, missing, unexpected, wrong)
        for name, part in self._modules.items():
            if part is not None:
                start = f"{prefix}{name}."
                within = {key: value for key, value in state.items() if key.startswith(start)}
                part._load(within, start, metadata, strict, missing, unexpected, wrong, assign)
        keys = _IncompatibleKeys(missing, unexpected)
        for hook in list(self._load_state_dict_post_hooks.values()):
            if hook(self, keys) is not None:
                raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                                     "return new values")  # fmt: skip

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        for hook, with_module in list(self._load_state_dict_pre_hooks.values()):
            args = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
            hook(self, *args) if with_module else hook(*args)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in self._own_state():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            self._load_one(name, value, key, state_dict[key], assign, error_msgs)
        extra = f"{prefix}_extra_state"
        if type(self).set_extra_state is not States.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            known = {name for name, _ in self._own_state()} | {"_extra_state"}
            for key in state_dict:
                if key.startswith(prefix):
                    first, _, rest = key[len(prefix) :].partition(".")
                    if (rest and first not in self._modules) or (not rest and first not in known):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, value: Any, key: str, given: Any, assign: bool, wrong: list[str]) -> None:
        if not isinstance(given, Tensor):
            wrong.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
            return
        if tuple(given.shape) == (1,) and not value.ndim:
            given = given.reshape(())
        if given.shape != value.shape:
            wrong.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {value.shape}."
            )
            return
        with no_grad():
            if not assign:
                value.copy_(given)
            elif name in self._parameters:
                requires = value.requires_grad
                made = given if isinstance(given, Parameter) else Parameter(given, requires)
                self._parameters[name] = made.requires_grad_(requires)
            else:
                self._buffers[name] = given

    # --- types ---

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Give every tensor of the module the value that `fn` makes of it."""
        for part in self._modules.values() if recurse else ():
            if part is not None:
                part._apply(fn, recurse)
        with no_grad():
            for value in self._parameters.values():
                if value is None or isinstance(value, Waiting):
                    continue
                made = fn(value)
                if made is not value:
                    grad = value.grad
                    value.grad = None
                    value.data = made
                    if grad is not None:
                        value.grad = fn(grad)
            for name, value in self._buffers.items():
                if value is not None and not isinstance(value, Waiting):
                    self._buffers[name] = fn(value)
            for waiting in (*self._parameters.values(), *self._buffers.values()):
                if isinstance(waiting, Waiting):
                    waiting.convert(fn)
        return self

    def to(self, *args: Any, **options: Any) -> Any:
        """All floating parameters and buffers in another type, and all on another device."""
        dtype, device = options.get("dtype"), options.get("device")
        for given in args:
            if isinstance(given, dtypes.dtype):
                dtype = given
            elif isinstance(given, Tensor):
                dtype, device = given.dtype, given.device
            elif not isinstance(given, bool) and given is not None:
                device = given
        if device is not None:
            devices.where(device)
        if dtype is None and device is None:
            return self
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        return self._apply(lambda x: x.to(device, dtype=dtype if x.is_floating_point() or x.is_complex() else None))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """All parameters and buffers on another device, with values that are not set."""
        return self._apply(lambda x: x.new_empty(x.shape, device=device), recurse)

    def type(self, dst_type: Any) -> Any:
        """All parameters and buffers in another type."""
        return self._apply(lambda x: x.type(dst_type))

    def float(self) -> Any:
        return self._apply(lambda x: x.float() if x.is_floating_point() else x)

    def double(self) -> Any:
        return self._apply(lambda x: x.double() if x.is_floating_point() else x)

    def half(self) -> Any:
        return self._apply(lambda x: x.half() if x.is_floating_point() else x)

    def bfloat16(self) -> Any:
        """Raises NotImplementedError: there are no tensors of this type."""
        return self._apply(lambda x: x.bfloat16() if x.is_floating_point() else x)

    def cpu(self) -> Any:
        """All parameters and buffers on "cpu"."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Any:
        """All parameters and buffers on a GPU."""
        return self.to(devices.on_gpu(device))

    def share_memory(self) -> Any:
        return self
