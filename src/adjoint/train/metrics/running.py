"""Metrics of the run itself: how fast it is, and the memory it takes. They look at no prediction but for its size."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from adjoint.train.metrics.base import Metric, State, ratio
from adjoint.train.system import memory

_PROCESS = time.time()  # tells this process from that which a state was saved in


@dataclasses.dataclass(frozen=True, repr=False)
class Rate(Metric):
    """Examples per second, since `init`. In a state that another process saved the time between does not count.

    >>> import adjoint as ad
    >>> ad.train.Rate().compute(ad.ones((8, 2)), ad.ones(8)) > 0
    True
    """

    def init(self) -> State:
        return {"examples": 0, "seconds": 0.0, "since": time.perf_counter(), "process": _PROCESS}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        new = {**state, "since": time.perf_counter(), "process": _PROCESS}
        if state["process"] == _PROCESS:
            shape = np.shape(prediction)
            new["examples"] += shape[0] if shape else 1
            new["seconds"] += new["since"] - state["since"]
        return new

    def value(self, state: State) -> float:
        return ratio(state["examples"], state["seconds"])


@dataclasses.dataclass(frozen=True, repr=False)
class Memory(Metric):
    """The most memory of the process at any update, in MiB.

    >>> import adjoint as ad
    >>> ad.train.Memory().compute(ad.ones(1), ad.ones(1)) > 1
    True
    """

    def init(self) -> State:
        return {"most": float("nan")}

    def update(self, state: State, prediction: Any, target: Any, weight: Any = None) -> State:
        return {"most": float(np.fmax(state["most"], memory() / 2**20))}

    def value(self, state: State) -> float:
        return float(state["most"])
