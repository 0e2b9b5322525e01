"""`torch.cuda`, `accelerator`, `mps`, `xpu`, `mtia` and `cpu`: what programs ask of devices.

"cuda" is CuPy's or PyTorch's, where there is a GPU (`devices.gpus`); the others are not here. Work is done in order, in
one stream: streams and events change nothing, and an event's time is taken when all work before it is done.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from adjoint import errors
from adjoint.torch import amp, devices
from adjoint.torch.devices import device as _device
from adjoint.torch.generators import default_generator
from adjoint.torch.missing import room


def _leaf_of(given: Any) -> Any:
    """The leaf of a GPU; raises RuntimeError where there is none."""
    return devices.where(devices.on_gpu(given)).leaf


def _of_library(leaf: Any) -> tuple[Any, bool]:
    """What CuPy or PyTorch has for devices, and whether it is PyTorch."""
    library = sys.modules.get("cupy")
    if library is not None and leaf.name.startswith("cupy"):
        return library, False
    return sys.modules["torch"].cuda, True


# --- torch.cuda ------------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether there is a GPU that "cuda" can use."""
    return devices.gpus() > 0


def device_count() -> int:
    """How many of them there are."""
    return devices.gpus()


def current_device() -> int:
    """The number of the device "cuda", which is the first one."""
    _leaf_of(None)
    return 0


def set_device(device: Any) -> None:
    """Nothing for the first GPU, which "cuda" is; NotImplementedError for another, which `device=` names."""
    _leaf_of(device)
    if devices.on_gpu(device).index:
        raise NotImplementedError(f"adjoint.torch: 'cuda' is the first GPU: make tensors with device='cuda:{device}'")


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done."""
    if devices.gpus():
        library, theirs = _of_library(_leaf_of(device))
        number = devices.on_gpu(device).index or 0
        library.synchronize(number) if theirs else library.cuda.Device(number).synchronize()


def empty_cache() -> None:
    """Give memory back that nobody uses."""
    if devices.gpus():
        library, theirs = _of_library(_leaf_of(None))
        library.empty_cache() if theirs else library.get_default_memory_pool().free_all_blocks()


def _memory(theirs_name: str, cupys_name: str | None) -> Any:
    def asked(device: Any = None) -> int:
        if not devices.gpus():
            return 0
        library, theirs = _of_library(_leaf_of(device))
        if theirs:
            return int(getattr(library, theirs_name)(devices.on_gpu(device).index or 0))
        if cupys_name is None:
            raise NotImplementedError(f"adjoint.torch: cuda.{theirs_name}: CuPy does not count this")
        return int(getattr(library.get_default_memory_pool(), cupys_name)())

    asked.__name__ = asked.__qualname__ = theirs_name
    asked.__doc__ = f"Bytes of a device, as PyTorch's `{theirs_name}` has it; 0 where there is none."
    return asked


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin anew with the largest count of memory, where it is counted."""
    if devices.gpus():
        library, theirs = _of_library(_leaf_of(device))
        if theirs:
            library.reset_peak_memory_stats(devices.on_gpu(device).index or 0)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of memory of a GPU: those that are free, and all."""
    library, theirs = _of_library(_leaf_of(device))
    number = devices.on_gpu(device).index or 0
    free, total = library.mem_get_info(number) if theirs else library.cuda.Device(number).mem_info
    return int(free), int(total)


def get_device_name(device: Any = None) -> str:
    """What a GPU is called."""
    library, theirs = _of_library(_leaf_of(device))
    number = devices.on_gpu(device).index or 0
    if theirs:
        return str(library.get_device_name(number))
    return str(library.cuda.runtime.getDeviceProperties(number)["name"].decode())


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The version of what a GPU can do."""
    library, theirs = _of_library(_leaf_of(device))
    number = devices.on_gpu(device).index or 0
    if theirs:
        major, minor = library.get_device_capability(number)
        return major, minor
    digits = library.cuda.Device(number).compute_capability
    return int(digits[:-1]), int(digits[-1])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """No: there are no tensors of bfloat16."""
    return False


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return any([given.type == "cuda" for given in devices.in_use])


def _nothing(*args: Any, **options: Any) -> None:
    """Nothing."""


def manual_seed(seed: int) -> None:
    """Start random numbers anew where there is a GPU: one source draws those of all devices."""
    if devices.gpus():
        default_generator.manual_seed(seed)


def seed() -> None:
    """Start random numbers anew with a seed of chance, where there is a GPU."""
    if devices.gpus():
        default_generator.seed()


def initial_seed() -> int:
    """The seed that random numbers began with."""
    _leaf_of(None)
    return default_generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of random numbers, which all devices share."""
    _leaf_of(device)
    return default_generator.get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Go on with random numbers from a state."""
    _leaf_of(device)
    default_generator.set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """A state for each GPU."""
    return [default_generator.get_state()] * devices.gpus()


def set_rng_state_all(new_states: Any) -> None:
    """Go on from the first of these states."""
    for state in [*new_states][:1]:
        default_generator.set_state(state)


class Stream:
    """A stream of a GPU's work. There is one, in which all work is done in order."""

    device: Any

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        _leaf_of(device)
        self.device, self.priority = devices.on_gpu(device), priority

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        synchronize(self.device)

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> Any:
        made = Event() if event is None else event
        made.record(self)
        return made

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Event:
    """A moment of a GPU's work, which is waited for when it is recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        _leaf_of(None)
        self._when: float | None = None

    def record(self, stream: Any = None) -> None:
        synchronize()
        self._when = time.perf_counter()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds until another event."""
        if self._when is None or end_event.when is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1e3 * float(end_event.when - self._when)

    @property
    def when(self) -> float | None:
        return self._when

    def wait(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return True


def current_stream(device: Any = None) -> Stream:
    """The stream that there is."""
    return Stream(device)


@contextlib.contextmanager
def stream(stream: Any) -> Iterator[Any]:
    """A block that changes nothing."""
    yield stream


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """A block in which "cuda" is the first GPU, as everywhere; another one is refused as by `set_device`."""
    set_device(device)
    yield


# --- other modules ---------------------------------------------------------------------------------


def _false(*args: Any, **options: Any) -> bool:
    """No."""
    return False


def _zero(*args: Any, **options: Any) -> int:
    """None of them."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The device "cuda" where there is a GPU, else None."""
    return _device("cuda") if devices.gpus() else None


_STREAMS: dict[str, Any] = {
    "Stream": Stream, "Event": Event, "current_stream": current_stream, "stream": stream,
}  # fmt: skip
_MEMORY: dict[str, Any] = {
    name: _memory(name, cupys)
    for name, cupys in {
        "memory_allocated": "used_bytes", "memory_reserved": "total_bytes", "max_memory_allocated": None,
        "max_memory_reserved": None,
    }.items()
}  # fmt: skip
_MEMORY |= {
    "empty_cache": empty_cache, "reset_peak_memory_stats": reset_peak_memory_stats, "mem_get_info": mem_get_info,
    "reset_accumulated_memory_stats": _nothing,
}  # fmt: skip
_RANDOM: dict[str, Any] = {
    "manual_seed": manual_seed, "manual_seed_all": manual_seed, "seed": seed, "seed_all": seed,
    "initial_seed": initial_seed, "get_rng_state": get_rng_state, "set_rng_state": set_rng_state,
    "get_rng_state_all": get_rng_state_all, "set_rng_state_all": set_rng_state_all,
}  # fmt: skip
_HERE: dict[str, Any] = {
    "is_available": is_available, "device_count": device_count, "synchronize": synchronize,
    "current_device": current_device, "set_device": set_device, "is_initialized": is_initialized,
}  # fmt: skip
_ABSENT: dict[str, Any] = {  # of kinds of devices that are not here
    "is_available": _false, "device_count": _zero, "synchronize": _nothing, "manual_seed": _nothing,
    "manual_seed_all": _nothing, "empty_cache": _nothing, "is_bf16_supported": _false, "is_initialized": _false,
    "memory_allocated": _zero, "max_memory_allocated": _zero, "current_allocated_memory": _zero, "seed": _nothing,
    "driver_allocated_memory": _zero, "reset_peak_memory_stats": _nothing, "memory_reserved": _zero,
    "max_memory_reserved": _zero,
}  # fmt: skip
_CPU: dict[str, Any] = {
    "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: "cpu", "set_device": _nothing,
    "synchronize": _nothing, "is_initialized": lambda: True, "current_stream": _nothing,
    "stream": contextlib.nullcontext,
}  # fmt: skip
_ACCELERATOR: dict[str, Any] = {
    **_HERE, **_MEMORY, "current_accelerator": current_accelerator, "set_device_index": set_device,
    "set_device_idx": set_device, "current_device_index": current_device, "current_device_idx": current_device,
    "device_index": device, "current_stream": current_stream, "set_stream": _nothing,
    "get_memory_info": mem_get_info, "get_device_capability": get_device_capability,
}  # fmt: skip


def _modules(package: str) -> dict[str, Any]:
    """Make them, with the modules in them; by name."""
    cuda = {
        **_HERE, **_MEMORY, **_RANDOM, **_STREAMS, "default_stream": current_stream, "set_stream": _nothing,
        "init": _nothing, "ipc_collect": _nothing, "device": device, "is_bf16_supported": is_bf16_supported,
        "is_tf32_supported": _false, "get_device_name": get_device_name, "has_half": True, "has_magma": False,
        "get_device_capability": get_device_capability, "is_current_stream_capturing": _false,
        "OutOfMemoryError": OutOfMemoryError,
    }  # fmt: skip
    inside = {
        "cuda": {
            "random": _RANDOM,
            "memory": _MEMORY,
            "streams": {name: _STREAMS[name] for name in ("Stream", "Event")},
        },
        "xpu": {"random": _ABSENT, "memory": _ABSENT},
        "mtia": {"memory": _ABSENT},
        "accelerator": {"memory": _MEMORY},
    }
    found: dict[str, Any] = {}
    for name, members in {
        "cuda": cuda, "accelerator": _ACCELERATOR, "mps": _ABSENT, "xpu": _ABSENT, "mtia": _ABSENT, "cpu": _CPU,
    }.items():  # fmt: skip
        found[name] = room(f"{package}.{name}", members, package=True)
        for part, names in inside.get(name, {}).items():
            setattr(found[name], part, room(f"{package}.{name}.{part}", names))
    for kind in ("cuda", "cpu"):
        found[kind].amp = amp.room_of(f"{package}.{kind}.amp", kind)
    return found


OutOfMemoryError = errors.OutOfMemoryError
ALL: dict[str, Any] = {
    **_modules("adjoint.torch"),
    "OutOfMemoryError": OutOfMemoryError,
    "Stream": Stream,
    "Event": Event,
}
