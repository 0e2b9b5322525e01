"""Metrics over batches, each equal to that of all examples at once."""

from adjoint.train.metrics.base import Mean, Metric
from adjoint.train.metrics.classes import Accuracy, ConfusionMatrix, FBeta, Precision, Recall, TopK
from adjoint.train.metrics.numbers import MAE, R2, RMSE
from adjoint.train.metrics.running import Memory, Rate
from adjoint.train.metrics.scores import AUROC, Calibration, CalibrationError, Perplexity

__all__ = [
    "AUROC",
    "MAE",
    "R2",
    "RMSE",
    "Accuracy",
    "Calibration",
    "CalibrationError",
    "ConfusionMatrix",
    "FBeta",
    "Mean",
    "Memory",
    "Metric",
    "Perplexity",
    "Precision",
    "Rate",
    "Recall",
    "TopK",
]


def __dir__() -> list[str]:
    return __all__
