"""What programs set and ask of compilers, precision and threads: most changes nothing, and the answers say so."""

from __future__ import annotations

import contextlib
from typing import Any

from adjoint.compiler.threads import get_num_threads, set_num_threads
from adjoint.torch import accelerators, amp, devices, generators
from adjoint.torch.missing import room


def _no(*args: Any, **options: Any) -> bool:
    return False


def _none(*args: Any, **options: Any) -> None:
    return None


def _one() -> int:
    return 1


# --- compilers -------------------------------------------------------------------------------------


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module itself; as a decorator with options, too."""
    return (lambda given: given) if model is None else model


def _itself(fn: Any = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """The function itself."""
    return (lambda given: given) if fn is None else fn


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """One function or the other, called with the operands.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor(3.0)
    >>> torch.cond(x > 2, torch.sin, torch.cos, (x,)) == torch.sin(x)
    tensor(True)
    """
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Values that a function makes of them while another one says so."""
    while cond_fn(*carried_inputs):
        found = body_fn(*carried_inputs)
        carried_inputs = found if isinstance(found, (tuple, list)) else (found,)
    return tuple(carried_inputs)


def _nowhere(exclude_tags: Any = ()) -> list[str]:
    """No backends."""
    return []


def _stance(*args: Any, **options: Any) -> Any:
    """A block that changes nothing."""
    return contextlib.nullcontext()


def set_rng_state(new_state: Any) -> None:
    """Go on with random numbers from a state."""
    generators.default_generator.set_state(new_state)


# --- precision, determinism ------------------------------------------------------------------------

_said: dict[str, Any] = {"precision": "highest", "deterministic": 0, "warn_always": False}


def set_float32_matmul_precision(precision: str) -> None:
    """What `get_float32_matmul_precision` says; products are in the precision of their operands."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', received {precision!r}")
    _said["precision"] = precision


def get_float32_matmul_precision() -> Any:
    """What was set."""
    return _said["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """What `are_deterministic_algorithms_enabled` says: there are no others."""
    _said["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """What was set."""
    return bool(_said["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether warnings were asked for instead of errors."""
    return bool(_said["deterministic"] == 1)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by numbers: "default" or 0, "warn" or 1, "error" or 2."""
    words = ("default", "warn", "error")
    if debug_mode not in (*words, 0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected `default`, `warn`, or `error`, or 0, 1, 2, but got {debug_mode}"
        )
    _said["deterministic"] = words.index(debug_mode) if isinstance(debug_mode, str) else debug_mode


def get_deterministic_debug_mode() -> int:
    """What was set, as a number."""
    return int(_said["deterministic"])


def set_warn_always(b: bool) -> None:
    """What `is_warn_always_enabled` says."""
    _said["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What was set."""
    return bool(_said["warn_always"])


COMPILER: dict[str, Any] = {  # `torch.compiler`
    "compile": compile, "disable": _itself, "allow_in_graph": _itself, "assume_constant_result": _itself,
    "reset": _none, "cudagraph_mark_step_begin": _none, "is_compiling": _no, "is_dynamo_compiling": _no,
    "is_exporting": _no, "list_backends": _nowhere, "set_default_backend": _none,
    "get_default_backend": lambda: "inductor", "set_stance": _stance,
}  # fmt: skip
ALL: dict[str, Any] = {
    "set_default_device": devices.set_default_device, "get_default_device": devices.get_default_device,
    "get_num_threads": get_num_threads, "get_num_interop_threads": _one, "init_num_threads": _none,
    "set_warn_always": set_warn_always, "is_warn_always_enabled": is_warn_always_enabled,
    "default_generator": generators.default_generator, "get_rng_state": generators.default_generator.get_state,
    "set_rng_state": set_rng_state, "compile": compile, "cond": cond, "while_loop": while_loop,
    "set_float32_matmul_precision": set_float32_matmul_precision,
    "get_float32_matmul_precision": get_float32_matmul_precision,
    "use_deterministic_algorithms": use_deterministic_algorithms,
    "are_deterministic_algorithms_enabled": are_deterministic_algorithms_enabled,
    "is_deterministic_algorithms_warn_only_enabled": is_deterministic_algorithms_warn_only_enabled,
    "set_deterministic_debug_mode": set_deterministic_debug_mode, "set_flush_denormal": _no,
    "get_deterministic_debug_mode": get_deterministic_debug_mode, "set_num_threads": lambda num: set_num_threads(num),
    "set_num_interop_threads": _none, "compiled_with_cxx11_abi": _no, "is_vulkan_available": _no,
    **amp.ALL, **accelerators.ALL,
    "compiler": room("adjoint.torch.compiler", COMPILER, package=True),
}  # fmt: skip
