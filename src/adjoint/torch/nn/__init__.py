"""`torch.nn`: this face's modules, over adjoint's functions of networks."""

from __future__ import annotations

import importlib as _importlib
from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.nn import functional as functional
from adjoint.torch.nn import init as init
from adjoint.torch.nn import utils as utils
from adjoint.torch.nn.containers import ModuleDict as ModuleDict
from adjoint.torch.nn.containers import ModuleList as ModuleList
from adjoint.torch.nn.containers import ParameterDict as ParameterDict
from adjoint.torch.nn.containers import ParameterList as ParameterList
from adjoint.torch.nn.containers import Sequential as Sequential
from adjoint.torch.nn.layers import attention as _attention
from adjoint.torch.nn.layers import parametric as _parametric
from adjoint.torch.nn.layers import recurrent as _recurrent
from adjoint.torch.nn.layers.lazy import ALL as _LAZY
from adjoint.torch.nn.layers.simple import ALL as _SIMPLE
from adjoint.torch.nn.module import Module as Module
from adjoint.torch.nn.parameter import Buffer as Buffer
from adjoint.torch.nn.parameter import Parameter as Parameter
from adjoint.torch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from adjoint.torch.nn.parameter import UninitializedParameter as UninitializedParameter

LAYERS: dict[str, Any] = {**_SIMPLE, **_LAZY}  # every layer and loss by its name
for _module in (_parametric, _recurrent, _attention):
    for _name, _member in vars(_module).items():
        if isinstance(_member, type) and issubclass(_member, Module) and _member.__module__ == _module.__name__:
            if not _name.startswith("_"):
                LAYERS[_name] = _member
for _name in ("NonDynamicallyQuantizableLinear",):
    del LAYERS[_name]
for _member in LAYERS.values():
    _member.__module__ = __name__
globals().update(LAYERS)


def __getattr__(name: str) -> Any:
    if name in ("attention", "common_types", "grad", "modules"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise _missing(name, "adjoint.torch.nn")
