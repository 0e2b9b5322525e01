"""Training: a loop with all that belongs to it, and its parts, each of which works alone in a loop of your own."""

from adjoint.train.run import Callback, History, Run

__all__ = ["Callback", "History", "Run"]


def __dir__() -> list[str]:
    return __all__
