"""`torch.nn.modules`: where PyTorch has its layers; here they are those of `torch.nn`."""

from __future__ import annotations

from typing import Any

from adjoint.torch import nn as _nn


def __getattr__(name: str) -> Any:
    return getattr(_nn, name)
