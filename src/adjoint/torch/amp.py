"""`torch.amp`: mixed precision, which there is none of: blocks and scalers that change nothing, as PyTorch's do where
there is no accelerator."""

from __future__ import annotations

import functools
import sys
from typing import Any

from adjoint.torch.dtypes import DTYPES, bfloat16
from adjoint.torch.missing import room, rooms


class autocast:
    """A block, or a decorator, in which numbers keep their types.

    >>> import adjoint.torch as torch
    >>> with torch.autocast("cpu", dtype=torch.float16):
    ...     (torch.ones(1, 2) @ torch.ones(2, 1)).dtype
    torch.float32
    """

    device_type: Any
    dtype: Any
    enabled: bool

    def __init__(
        self, device_type: Any = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        self.device_type, self.dtype, self.enabled = device_type, dtype, False

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def decorated(*args: Any, **options: Any) -> Any:
            return function(*args, **options)

        return decorated


class GradScaler:
    """A scaler of losses that leaves them as they are.

    >>> import adjoint.torch as torch
    >>> scaler = torch.amp.GradScaler()
    >>> scaler.scale(torch.tensor(3.0)), scaler.get_scale(), scaler.is_enabled()
    (tensor(3.), 1.0, False)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._settings = [growth_factor, backoff_factor, growth_interval]

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        pass

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        pass

    def get_scale(self) -> float:
        return 1.0

    def get_growth_factor(self) -> float:
        return self._settings[0]

    def set_growth_factor(self, new_factor: float) -> None:
        self._settings[0] = new_factor

    def get_backoff_factor(self) -> float:
        return self._settings[1]

    def set_backoff_factor(self, new_factor: float) -> None:
        self._settings[1] = new_factor

    def get_growth_interval(self) -> int:
        return int(self._settings[2])

    def set_growth_interval(self, new_interval: int) -> None:
        self._settings[2] = new_interval

    def is_enabled(self) -> bool:
        return False

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """`forward` of a Function as it is: where there is no mixed precision, `cast_inputs` changes nothing."""
    return _checked(fwd, "custom_fwd", device_type)


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """`backward` of a Function as it is."""
    return _checked(bwd, "custom_bwd", device_type)


def _checked(function: Any, name: str, device_type: Any) -> Any:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return (lambda given: given) if function is None else function


def _check_kind(name: str, device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise TypeError(f"{name}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")


def is_autocast_available(device_type: str) -> bool:
    """Whether a block may be entered: always, as it changes nothing."""
    return True


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """No: numbers keep their types in every block."""
    _check_kind("is_autocast_enabled", "cpu" if device_type is None else device_type)
    return False


_types: dict[str, Any] = {}  # that programs set, by the kind of device


def get_autocast_dtype(device_type: str) -> Any:
    """The type that was set for a kind of device, or PyTorch's default; no numbers have it.

    >>> import adjoint.torch as torch
    >>> torch.get_autocast_dtype("cuda")
    torch.float16
    """
    _check_kind("get_autocast_dtype", device_type)
    return _types.get(device_type, DTYPES["float16"] if device_type == "cuda" else bfloat16)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """What `get_autocast_dtype` says from now on."""
    _types[device_type] = dtype


def _nothing(*args: Any) -> None:
    """Nothing."""


def _of(device_type: str) -> dict[str, Any]:
    """The older names for one kind of device."""
    word = "gpu" if device_type == "cuda" else device_type
    return {
        f"get_autocast_{word}_dtype": lambda: get_autocast_dtype(device_type),
        f"set_autocast_{word}_dtype": lambda dtype: set_autocast_dtype(device_type, dtype),
        f"is_autocast_{word}_enabled": lambda: is_autocast_enabled(device_type),
        f"set_autocast_{word}_enabled": _nothing,
    }


# names of `torch` itself
ALL: dict[str, Any] = {
    "autocast": autocast, "GradScaler": GradScaler, "is_autocast_enabled": is_autocast_enabled,
    "get_autocast_dtype": get_autocast_dtype, "set_autocast_dtype": set_autocast_dtype,
    "set_autocast_enabled": _nothing, "clear_autocast_cache": _nothing, "is_autocast_cache_enabled": lambda: True,
    "set_autocast_cache_enabled": _nothing, "autocast_increment_nesting": lambda: 1,
    "autocast_decrement_nesting": lambda: 0, **_of("cpu"), **_of("cuda"),
}  # fmt: skip


def room_of(path: str, device_type: str) -> Any:
    """`torch.cuda.amp` or `torch.cpu.amp`: the names for one kind of device."""

    class autocast_there(autocast):
        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            super().__init__(device_type, get_autocast_dtype(device_type) if dtype is None else dtype)

    class GradScaler_there(GradScaler):
        def __init__(
            self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
            growth_interval: int = 2000, enabled: bool = True,
        ) -> None:  # fmt: skip
            super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval)

    members: dict[str, Any] = {"autocast": autocast_there, "GradScaler": GradScaler_there}
    for name, kind in members.items():
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = path
    if device_type == "cuda":
        members["custom_fwd"] = lambda fwd=None, *, cast_inputs=None: _checked(fwd, "custom_fwd", device_type)
        members["custom_bwd"] = lambda bwd: bwd
        members["amp_definitely_not_available"] = lambda: True
    made = room(path, members, package=True)
    rooms(path, {"autocast_mode": ["autocast"], "grad_scaler": ["GradScaler"]}, members)
    return made


rooms(
    __name__,
    {
        "autocast_mode": ["autocast", "custom_fwd", "custom_bwd", "is_autocast_available"],
        "grad_scaler": ["GradScaler"],
    },
    vars(sys.modules[__name__]),
)
