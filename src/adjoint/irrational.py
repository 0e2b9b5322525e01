"""Constants that are as precise as a leaf's numbers: Python's floats, or tensors where a leaf has more digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import dtypes
from adjoint.operands import operand, run
from adjoint.primitives.sizes import square_root
from adjoint.tensor import Tensor


def irrational(function: str, number: Any, like: Tensor[Any]) -> Any:
    """What a function of `math` gives for a number; on a leaf of more digits a tensor that has them all."""
    if like.device.leaf.digits is None:
        return square_root(number) if function == "sqrt" else getattr(math, function)(number)
    return run(function, (number if isinstance(number, Tensor) else _exactly(number, like),))


def _exactly(number: float, like: Tensor[Any]) -> Tensor[Any]:
    dtype = like.dtype if like.dtype.kind == "f" else dtypes.float64
    return operand(np.asarray(number, dtype), like, "a constant")


def quotient_beside(x: float, y: float, like: Tensor[Any]) -> Any:
    """x / y, likewise."""
    return x / y if like.device.leaf.digits is None else _exactly(x, like) / y


def pi_beside(x: Tensor[Any]) -> Any:
    """Pi, likewise."""
    return irrational("acos", -1.0, x)


def log_2_beside(x: Tensor[Any]) -> Any:
    """The logarithm of 2, likewise."""
    return irrational("log", 2.0, x)


def log_pi_beside(x: Tensor[Any], factor: float = 1.0) -> Any:
    """The logarithm of pi times a factor, likewise."""
    return irrational("log", pi_beside(x) * factor, x)
