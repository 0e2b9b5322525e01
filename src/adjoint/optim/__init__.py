"""Optimizers: from gradients to the next model. What they remember is a state, which is handed on."""

from adjoint.optim.adaptive import LAMB, Adan, Rprop
from adjoint.optim.averages import ASGD, AveragingOptimizer, ScheduleFreeAdamW, ScheduleFreeSGD
from adjoint.optim.base import Optimizer, State
from adjoint.optim.closures import LBFGS, SAM, ClosureOptimizer
from adjoint.optim.descent import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, NAdam, RAdam, RMSprop
from adjoint.optim.gradients import GradientsAccumulator, GradientsParams
from adjoint.optim.matrices import SOAP, Adafactor, Muon, Shampoo
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
    "ASGD",
    "LAMB",
    "LBFGS",
    "SAM",
    "SGD",
    "SOAP",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Adan",
    "AveragingOptimizer",
    "ClosureOptimizer",
    "GradientsAccumulator",
    "GradientsParams",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "ScheduleFreeAdamW",
    "ScheduleFreeSGD",
    "Shampoo",
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
