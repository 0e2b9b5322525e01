"""Optimizers: from gradients to the next model. What they remember is a state, which is handed on."""

from adjoint.optim.base import Optimizer, State
from adjoint.optim.descent import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, NAdam, RAdam, RMSprop
from adjoint.optim.gradients import GradientsAccumulator, GradientsParams
from adjoint.optim.schedules import (
    constant,
    cosine,
    exponential,
    joined,
    linear,
    noam,
    one_cycle,
    polynomial,
    stairs,
    warmup,
)

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "GradientsAccumulator",
    "GradientsParams",
    "Lion",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "State",
    "constant",
    "cosine",
    "exponential",
    "joined",
    "linear",
    "noam",
    "one_cycle",
    "polynomial",
    "stairs",
    "warmup",
]


def __dir__() -> list[str]:
    return __all__
