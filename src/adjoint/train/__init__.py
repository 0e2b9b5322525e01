"""Training: a loop with all that belongs to it, and its parts, each of which works alone in a loop of your own."""

from adjoint.train.checkpoints import Checkpoints, load, save
from adjoint.train.learner import Learner
from adjoint.train.parallel import data_parallel
from adjoint.train.run import Callback, History, Run
from adjoint.train.stopping import EarlyStopping

__all__ = ["Callback", "Checkpoints", "EarlyStopping", "History", "Learner", "Run", "data_parallel", "load", "save"]


def __dir__() -> list[str]:
    return __all__
