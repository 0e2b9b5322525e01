"""Training: a loop with all that belongs to it, and its parts, each of which works alone in a loop of your own."""

from adjoint.renamed import refusing
from adjoint.train.checkpoints import Checkpoints, load, save
from adjoint.train.cluster import Cluster
from adjoint.train.learner import Learner
from adjoint.train.metrics.base import Mean, Metric
from adjoint.train.metrics.classes import Accuracy, ConfusionMatrix, FBeta, Precision, Recall, TopK
from adjoint.train.metrics.numbers import MAE, R2, RMSE
from adjoint.train.metrics.running import Memory, Rate
from adjoint.train.metrics.scores import AUROC, Calibration, CalibrationError, Perplexity
from adjoint.train.parallel import data_parallel
from adjoint.train.progress import Progress
from adjoint.train.report import Report
from adjoint.train.run import Callback, History, Run
from adjoint.train.stopping import EarlyStopping
from adjoint.train.tensorboard import TensorBoard

__all__ = [
    "AUROC",
    "MAE",
    "R2",
    "RMSE",
    "Accuracy",
    "Calibration",
    "CalibrationError",
    "Callback",
    "Checkpoints",
    "Cluster",
    "ConfusionMatrix",
    "EarlyStopping",
    "FBeta",
    "History",
    "Learner",
    "Mean",
    "Memory",
    "Metric",
    "Perplexity",
    "Precision",
    "Progress",
    "Rate",
    "Recall",
    "Report",
    "Run",
    "TensorBoard",
    "TopK",
    "data_parallel",
    "load",
    "save",
]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__
