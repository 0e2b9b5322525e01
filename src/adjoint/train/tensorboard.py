"""A run as event files, which TensorBoard shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import errors, files
from adjoint.functions.arguments import as_integer
from adjoint.train.run import Callback, Run


class TensorBoard(Callback):
    """Writes event files for TensorBoard: the loss and the rate of steps, and of each epoch all that is a number.

    The tags are step/loss, step/lr, train/<metric> and valid/<metric>, and model and optimizer are there as text. A run
    that goes on after a checkpoint goes on in the same folder; what it does again replaces what was there. Needs
    tensorboardX (`pip install 'adjoint[train]'`); show it with `tensorboard --logdir path`.

    Parameters
    ----------
    path
        The folder, which is made if there is none. One run has one folder.
    every
        Steps from one point of the curves by steps to the next.

    Raises
    ------
    MissingLibraryError, ArgumentError, FileError
        tensorboardX is not installed; `every` is no positive integer; the folder cannot be made, at the start.

    Examples
    --------
    >>> import tempfile
    >>> import adjoint as ad
    >>> folder = tempfile.TemporaryDirectory()
    >>> board = ad.train.TensorBoard(folder.name)
    >>> learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=[board])
    >>> model, history = learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))], epochs=2)
    >>> import pathlib
    >>> [file.name.split(".")[0] for file in pathlib.Path(folder.name).iterdir()]
    ['events']
    >>> folder.cleanup()
    """

    every: int
    path: str

    def __init__(self, path: Any, *, every: int = 1) -> None:
        self.path = str(files.as_path(path, "TensorBoard", "path is a folder"))
        self.every = as_integer(every, "TensorBoard", "every", 1)
        self._library = _library()
        self._writer: Any = None

    def start(self, run: Run) -> None:
        try:
            self._writer = self._library.SummaryWriter(
                self.path, purge_step=run.step + 1 if run.step else None, filename_suffix=f".{run.step}"
            )
        except OSError as error:
            raise errors.FileError(f"TensorBoard: {self.path}: {error.strerror or error}") from error
        texts = {"model": run.model, "optimizer": getattr(run.learner, "optimizer", None)}
        for name, value in texts.items():
            self._writer.add_text(name, "\n".join(f"    {line}" for line in repr(value).splitlines()), run.step)

    def step(self, run: Run) -> None:
        if run.step % self.every == 0:
            self._add("step/loss", run.loss, run.step)
            self._add("step/lr", run.lr, run.step)

    def epoch(self, run: Run) -> None:
        for name, value in run.history.rows[-1].items():
            if name not in ("epoch", "step", "seconds", "lr"):
                part = "valid" if name.startswith("valid_") else "train"
                self._add(f"{part}/{name.removeprefix('valid_')}", value, run.step)
        self._writer.flush()

    def end(self, run: Run) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, tag: str, value: Any, step: int) -> None:
        if isinstance(value, (int, float, np.number)) and not math.isnan(value):
            self._writer.add_scalar(tag, float(value), step)


def _library() -> Any:
    try:
        import tensorboardX
    except ImportError as error:
        raise errors.MissingLibraryError("TensorBoard: needs tensorboardX; pip install 'adjoint[train]'") from error
    return tensorboardX
