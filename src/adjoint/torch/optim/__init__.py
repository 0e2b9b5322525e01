"""`torch.optim`: PyTorch's optimizers, with groups and states, around the rules of `adjoint.optim`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import rooms as _rooms
from adjoint.torch.optim import lr_scheduler as lr_scheduler
from adjoint.torch.optim.lbfgs import LBFGS as LBFGS
from adjoint.torch.optim.muon import Muon as Muon
from adjoint.torch.optim.optimizer import Optimizer as Optimizer
from adjoint.torch.optim.rules import ALL as _RULES

OPTIMIZERS: dict[str, Any] = {**_RULES, "LBFGS": LBFGS, "Muon": Muon}  # every optimizer by its name
globals().update(_RULES)
_rooms(__name__, {name.lower(): [name] for name in _RULES if name != "Adafactor"}, _RULES)


def __getattr__(name: str) -> Any:
    if name == "swa_utils":
        return import_module(f"{__name__}.swa_utils")
    raise _missing(name, "adjoint.torch.optim")
