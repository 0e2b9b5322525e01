"""What losses are reduced to."""

from __future__ import annotations

from typing import Any

from adjoint.functions.arguments import as_choice
from adjoint.tensor import Tensor


def is_mean(reduction: Any) -> bool:
    """Whether losses are averaged; what else there is `reduced` says."""
    return isinstance(reduction, str) and reduction == "mean"


def reduced(losses: Tensor[Any], reduction: str, name: str) -> Tensor[Any]:
    """Losses as they are, their sum, or their mean."""
    as_choice(reduction, name, "reduction", ("mean", "sum", "none"))
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
