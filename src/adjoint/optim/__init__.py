"""Optimizers: from gradients to the next model. What they remember is a state, which is handed on."""

from adjoint.optim.base import Optimizer, State
from adjoint.optim.descent import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, NAdam, RAdam, RMSprop

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "State",
]


def __dir__() -> list[str]:
    return __all__
