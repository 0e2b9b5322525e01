"""`torch.autograd`: backward passes, gradients, modes."""

from __future__ import annotations

import importlib as _importlib
from typing import Any

from adjoint.torch.autograd import function as function
from adjoint.torch.autograd import graph as graph
from adjoint.torch.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from adjoint.torch.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
from adjoint.torch.autograd.function import Function as Function
from adjoint.torch.autograd.grad_mode import is_multithreading_enabled as is_multithreading_enabled
from adjoint.torch.autograd.grad_mode import set_multithreading_enabled as set_multithreading_enabled
from adjoint.torch.autograd.gradcheck import GradcheckError as GradcheckError
from adjoint.torch.autograd.gradcheck import gradcheck as gradcheck
from adjoint.torch.autograd.gradcheck import gradgradcheck as gradgradcheck
from adjoint.torch.autograd.variable import Variable as Variable
from adjoint.torch.engine import GradientEdge as GradientEdge
from adjoint.torch.engine import backward as backward
from adjoint.torch.engine import grad as grad
from adjoint.torch.missing import missing as _missing
from adjoint.torch.state import (
    enable_grad as enable_grad,
)
from adjoint.torch.state import (
    inference_mode as inference_mode,
)
from adjoint.torch.state import (
    no_grad as no_grad,
)
from adjoint.torch.state import (
    set_grad_enabled as set_grad_enabled,
)

_ROOMS = {"forward_ad", "functional", "grad_mode"}  # imported when they are first asked for


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    raise _missing(name, "adjoint.torch.autograd")
