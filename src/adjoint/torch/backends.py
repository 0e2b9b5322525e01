"""`torch.backends`: libraries of kernels that programs ask for and set up; none of them is in use here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import room as _room
from adjoint.torch.nn.attention import SDPBackend as _SDPBackend

__path__: list[str] = []


@contextlib.contextmanager
def _sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[Any]:
    """The older form of `sdpa_kernel`."""
    yield {}


@contextlib.contextmanager
def _flags(**options: Any) -> Iterator[None]:
    """A block that changes nothing."""
    yield


def _no(*args: Any, **options: Any) -> bool:
    return False


def _none(*args: Any, **options: Any) -> None:
    return None


def _yes() -> bool:
    return True


def _settable(path: str, **members: Any) -> ModuleType:
    """A module of things that may be set, and do nothing."""
    return _room(f"{__name__}.{path}", members, package=True)


def _modules() -> dict[str, ModuleType]:
    matmul = SimpleNamespace(
        allow_tf32=False, allow_fp16_reduced_precision_reduction=True, fp32_precision="none",
        allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False,
    )  # fmt: skip
    enabled = {
        "flash_sdp_enabled": _no, "mem_efficient_sdp_enabled": _no, "math_sdp_enabled": _yes, "cudnn_sdp_enabled": _no
    }  # fmt: skip
    setters = [f"enable_{kind}_sdp" for kind in ("flash", "mem_efficient", "math", "cudnn")]
    return {
        "cudnn": _settable(
            "cudnn", benchmark=False, deterministic=False, enabled=False, allow_tf32=False, benchmark_limit=10,
            is_available=_no, version=_none, flags=_flags, is_acceptable=_no, fp32_precision="none",
        ),
        "cuda": _settable(
            "cuda", matmul=matmul, is_built=_no, sdp_kernel=_sdp_kernel, SDPBackend=_SDPBackend, **enabled,
            **dict.fromkeys(setters, _none), is_flash_attention_available=_no, preferred_linalg_library=_none,
            preferred_blas_library=_none, allow_fp16_bf16_reduction_math_sdp=_none,
            fp16_bf16_reduction_math_sdp_allowed=_no,
        ),
        "mps": _settable("mps", is_available=_no, is_built=_no, is_macos_or_newer=_no, is_macos13_or_newer=_no),
        "mkl": _settable("mkl", is_available=_no, verbose=_flags, VERBOSE_OFF=0, VERBOSE_ON=1),
        "mkldnn": _settable(
            "mkldnn", enabled=False, deterministic=False, allow_tf32=False, is_available=_no, flags=_flags,
            verbose=_flags, VERBOSE_OFF=0, VERBOSE_ON=1,
        ),
        "openmp": _settable("openmp", is_available=_no),
        "opt_einsum": _settable(
            "opt_einsum", enabled=False, strategy=None, is_available=_no, get_opt_einsum=_none
        ),
        "nnpack": _settable("nnpack", is_available=_no, set_flags=_no, flags=_flags),
        "cpu": _settable("cpu", get_cpu_capability=lambda: "NO AVX"),
        "mha": _settable("mha", get_fastpath_enabled=_no, set_fastpath_enabled=_none),
        "cusparselt": _settable("cusparselt", is_available=_no, version=_none),
    }  # fmt: skip


globals().update(_modules())


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
