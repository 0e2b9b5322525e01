"""What PyTorch's programs ask of devices, compilers and kernels: there are none, and the answers say so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from adjoint.compiler.threads import get_num_threads, set_num_threads
from adjoint.torch import creation, dtypes
from adjoint.torch.amp import GradScaler, autocast


def _no(*args: Any, **options: Any) -> bool:
    return False


def _none(*args: Any, **options: Any) -> None:
    return None


def _zero(*args: Any, **options: Any) -> int:
    return 0


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module itself; as a decorator with options, too."""
    return (lambda given: given) if model is None else model


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products are in the precision of their operands."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', received {precision!r}")


def get_float32_matmul_precision() -> str:
    return "highest"


def _device_module(*names: str) -> Any:
    """A kind of device that is not here."""
    given = dict.fromkeys(names, _none)
    return SimpleNamespace(
        is_available=_no, device_count=_zero, synchronize=_none, manual_seed=_none, manual_seed_all=_none,
        empty_cache=_none, **given,
    )  # fmt: skip


cuda: Any = _device_module("set_device", "reset_peak_memory_stats")
cuda.amp = SimpleNamespace(autocast=autocast, GradScaler=GradScaler)
cuda.is_bf16_supported, cuda.max_memory_allocated, cuda.memory_allocated = _no, _zero, _zero
mps: Any = _device_module()
xpu: Any = _device_module()
accelerator: SimpleNamespace = SimpleNamespace(
    is_available=_no, device_count=_zero, current_accelerator=_none, synchronize=_none, set_device_index=_none
)
backends: SimpleNamespace = SimpleNamespace(
    cudnn=SimpleNamespace(
        benchmark=False, deterministic=False, enabled=False, allow_tf32=False, is_available=_no, version=_none
    ),
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=_no),
    mps=SimpleNamespace(is_available=_no, is_built=_no),
    mkldnn=SimpleNamespace(enabled=False, is_available=_no),
    openmp=SimpleNamespace(is_available=_no),
)


def set_default_device(device: Any) -> None:
    """Nothing: tensors are on "cpu". Raises RuntimeError for another device."""
    if device is not None:
        dtypes.device(device)


def _cpu() -> Any:
    return dtypes.CPU


def _one() -> int:
    return 1


ALL: dict[str, Any] = {
    "set_default_device": set_default_device, "get_default_device": _cpu, "get_num_threads": get_num_threads,
    "get_num_interop_threads": _one, "set_warn_always": _none, "is_warn_always_enabled": _no,
    "GradScaler": GradScaler, "default_generator": creation.default_generator,
    "get_rng_state": creation.default_generator.get_state, "set_rng_state": creation.default_generator.set_state,
    "compile": compile, "autocast": autocast, "cuda": cuda, "mps": mps, "xpu": xpu, "accelerator": accelerator,
    "backends": backends, "set_float32_matmul_precision": set_float32_matmul_precision,
    "get_float32_matmul_precision": get_float32_matmul_precision, "use_deterministic_algorithms": _none,
    "are_deterministic_algorithms_enabled": _no, "set_num_threads": set_num_threads, "set_num_interop_threads": _none,
    "is_autocast_enabled": _no,
}  # fmt: skip
