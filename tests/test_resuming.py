"""Trainings that are stopped somewhere and go on, of settings drawn at random: bit by bit those that were not."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad

X = np.random.default_rng(0).normal(size=(35, 3)).astype("float32")
Y = (X[:, :1] * X[:, 1:2]).astype("float32")
SIZE = 8


def noisy(record: Any, rng: Any) -> Any:
    x, y = record
    return x + rng.normal(size=3).astype("float32") / 8, y


class Records:
    """What can be iterated again and again, and nothing else."""

    def __iter__(self) -> Iterator[Any]:
        return zip(X, Y, strict=True)


def of_epoch(epoch: int) -> Iterator[Any]:
    return ((X[i : i + SIZE] + np.float32(epoch), Y[i : i + SIZE]) for i in range(0, len(X), SIZE))


def loader(source: Any = (X, Y), **options: Any) -> ad.data.DataLoader:
    return ad.data.DataLoader(source, SIZE, transform=noisy, **options)


LOADERS = {
    "list": lambda: list(of_epoch(0)),
    "function": lambda: of_epoch,
    "loader": lambda: loader(shuffle=True, seed=3),
    "workers": lambda: loader(shuffle=True, seed=3, workers=1),
    "iterable": lambda: loader(Records()),
}
OPTIMIZERS = (
    ad.optim.Adam(lr=ad.optim.cosine(0.05, 20)),
    ad.optim.Adam(lr=0.05, donate=True),
    ad.optim.ScheduleFreeAdamW(lr=0.05),
    ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.05)),
    ad.optim.Averaged(optimizer=ad.optim.Adam(lr=0.05, donate=True), by=ad.optim.EMA(decay=0.8)),
    ad.optim.SAM(optimizer=ad.optim.Averaged(optimizer=ad.optim.SGD(lr=0.05), by=ad.optim.SWA(), start=3, every=2)),
)


class Stop(ad.train.Callback):
    """Ends the training after some steps, each once: by itself, or as Ctrl-C does."""

    def __init__(self, steps: list[int], by_signal: bool) -> None:
        self.steps, self.by_signal = set(steps), by_signal

    def step(self, run: Any) -> None:
        if run.step in self.steps:
            self.steps.discard(run.step)
            if self.by_signal:
                signal.raise_signal(signal.SIGINT)
            else:
                run.stop("here")


def network(normed: bool) -> Any:
    ad.random.seed(1)
    between = [ad.nn.BatchNorm(5)] if normed else []
    return ad.nn.Sequential(ad.nn.Linear(3, 5), *between, ad.tanh, ad.nn.Dropout(0.3), ad.nn.Linear(5, 1))


def numbers(made: tuple[Any, Any]) -> tuple[Any, str]:
    """The bits of parameters and buffers; the history, whose numbers may be nan, without times."""
    model, history = made
    rows = [{name: x for name, x in row.items() if name != "seconds"} for row in history.rows]
    return {path: x.tobytes() for path, x in model.record().items()}, repr((rows, history.steps))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of steps that the scaler leaves out
def test_it_does_not_matter_where_a_training_was_stopped(tmp_path: Path) -> None:
    """With files a new learner goes on each time, or the same one; without any, the same one."""
    draw = random.Random(0)
    with Each() as each:
        for number in range(40):
            optimizer, train, valid = draw.choice(OPTIMIZERS), draw.choice([*LOADERS]), draw.choice([*LOADERS, None])
            half = not isinstance(optimizer, ad.optim.ClosureOptimizer) and draw.random() < 0.5
            options: dict[str, Any] = {
                "accumulate": draw.choice([1, 2, 3]), "clip": draw.choice([None, 0.5]), "metrics": [ad.train.MAE()],
                "precision": "float16" if half else None,
                "scaler": ad.optim.GradScaler(init_scale=2.0 ** draw.choice([10, 17])) if half else None,
            }  # fmt: skip
            normed, by_signal, fresh, kept = (draw.random() < 0.5 for _ in range(4))
            every = draw.choice([None, 1, 2])
            batches = lambda name: None if name is None else LOADERS[name]()

            def learner(*callbacks: Any) -> ad.train.Learner:
                model = network(normed)  # noqa: B023 (called in this turn)
                return ad.train.Learner(model, ad.nn.mse_loss, optimizer, callbacks=callbacks, **options)  # noqa: B023

            with each((number, optimizer, train, valid, options, normed, by_signal, fresh, kept, every)):
                whole = learner()
                expected = numbers(whole.fit(batches(train), batches(valid), 3))
                steps = draw.sample(range(1, whole.run.step + 1), min(3, whole.run.step))
                stop = Stop(steps, by_signal)
                made, loaders = learner(stop), (batches(train), batches(valid))
                for _ in range(len(steps) + 1):
                    folder = tmp_path / str(number) if fresh or kept else None
                    saver = None if folder is None else ad.train.Checkpoints(folder, every=every, keep=2)
                    found = numbers(made.fit(*loaders, 3, checkpoints=saver))
                    if fresh:
                        made, loaders = learner(stop), (batches(train), batches(valid))
                assert not stop.steps
                assert found == expected
