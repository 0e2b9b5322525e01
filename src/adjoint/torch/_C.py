"""`torch._C`, of which what subclasses of `Tensor` name is here."""

from __future__ import annotations

from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from adjoint.torch.overriding import disabled as _disabled

_disabled_torch_function_impl = _disabled


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch._C")
