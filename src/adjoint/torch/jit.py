"""`torch.jit`, which is out of scope: functions that programs mark for it stay functions, and all else says so.

>>> import warnings
>>> import adjoint.torch as torch
>>> with warnings.catch_warnings(record=True) as said:
...     warnings.simplefilter("always")
...     double = torch.jit.script(lambda x: 2 * x)
>>> double(torch.ones(2)), str(said[0].message)[:45]
(tensor([2., 2.]), 'adjoint.torch: torch.jit.script leaves what i')
"""

from __future__ import annotations

import warnings
from typing import Any, Final, TypeVar

from adjoint.torch.missing import stand_ins

F = TypeVar("F")
Final = Final  # PyTorch's place of it


def is_scripting() -> bool:
    """Whether a compiler of PyTorch's runs the function: never."""
    return False


is_tracing = is_scripting


def script(obj: F, *args: Any, **options: Any) -> F:
    """What it is given: it runs as it is, and a warning says so."""
    warnings.warn(
        "adjoint.torch: torch.jit.script leaves what it is given as it is: there is no compiler of PyTorch's programs",
        UserWarning,
        stacklevel=2,
    )
    return obj


script_if_tracing = script


def export(fn: F) -> F:
    """What it is given: a mark for the compiler."""
    return fn


unused = script_method = interface = export


def ignore(drop: Any = False, **options: Any) -> Any:
    """What it is given: a mark for the compiler, also with options."""
    return drop if callable(drop) else export


def annotate(the_type: Any, the_value: F) -> F:
    """The value."""
    return the_value


__getattr__ = stand_ins(
    __name__,
    "Attribute CompilationUnit Error Future ONNXTracedModule RecursiveScriptClass RecursiveScriptModule "
    "ScriptFunction ScriptModule ScriptWarning TopLevelTracedModule TracedModule TracerWarning TracingCheckError "
    "annotations enable_onednn_fusion export_opnames fork freeze frontend fuser isinstance jit_module_from_flatbuffer "
    "last_executed_optimized_graph load mobile onednn_fusion_enabled optimize_for_inference optimized_execution "
    "run_frozen_optimizations save save_jit_module_to_flatbuffer set_fusion_strategy set_module strict_fusion "
    "supported_ops trace trace_module unsupported_tensor_ops wait",
)
