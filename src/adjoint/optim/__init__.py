"""Optimizers: from gradients to the next model. What they remember is a state, which is handed on."""

from adjoint.optim.adaptive import LAMB, Adan, Rprop
from adjoint.optim.averaging import EMA, SWA, Average, AverageState, batch_statistics
from adjoint.optim.averaging_optimizers import ASGD, Averaged, AveragingOptimizer, ScheduleFreeAdamW, ScheduleFreeSGD
from adjoint.optim.base import Optimizer, State
from adjoint.optim.closures import LBFGS, SAM, ClosureOptimizer
from adjoint.optim.descent import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, NAdam, RAdam, RMSprop
from adjoint.optim.gradients import GradientsAccumulator, GradientsParams
from adjoint.optim.matrices import SOAP, Adafactor, Muon, Shampoo
from adjoint.optim.scaling import GradScaler, ScaleState
from adjoint.optim.schedules import (
    Plateau,
    PlateauState,
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
from adjoint.renamed import refusing

__all__ = [
    "ASGD",
    "EMA",
    "LAMB",
    "LBFGS",
    "SAM",
    "SGD",
    "SOAP",
    "SWA",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Adan",
    "Average",
    "AverageState",
    "Averaged",
    "AveragingOptimizer",
    "ClosureOptimizer",
    "GradScaler",
    "GradientsAccumulator",
    "GradientsParams",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "Plateau",
    "PlateauState",
    "RAdam",
    "RMSprop",
    "Rprop",
    "ScaleState",
    "ScheduleFreeAdamW",
    "ScheduleFreeSGD",
    "Shampoo",
    "State",
    "batch_statistics",
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


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
