"""Checkpoints: all that a training needs to go on, in one file that is there as a whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adjoint import errors, files
from adjoint.functions.arguments import as_choice, as_integer, is_array, is_number
from adjoint.functions.conversion import compute
from adjoint.module.base import Module, in_place
from adjoint.module.fields import Leaf, joined, leaves_of, mapped, opened
from adjoint.tensor import Tensor

FORMAT = "adjoint checkpoint 1"
_NAME = re.compile(r"step-(\d+)\.safetensors")
_LEFT = re.compile(r"\.(step-\d+|best)\.safetensors\.[0-9a-f]{8}")  # what a killed write leaves


def save(path: Any, tree: Any, about: Mapping[str, Any] | None = None) -> None:
    """Write the arrays and numbers of a tree, such as a model and the state of its optimizer, to a file of safetensors.

    `about` is a dictionary of plain JSON that is kept with them. The file is there as a whole or not at all: what was
    there before stays until the new one is on the disk. Nothing in it is ever run.

    Raises
    ------
    MissingLibraryError
        safetensors is not installed.
    FileError
        It cannot be written; what was there is unchanged.
    ArgumentTypeError
        `about` is no plain JSON.

    Examples
    --------
    >>> import adjoint as ad
    >>> import tempfile
    >>> model, optimizer = ad.nn.Linear(2, 1), ad.optim.Adam()
    >>> state = optimizer.init(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ad.train.save(f"{folder}/last.safetensors", (model, state), {"epoch": 3})
    ...     (model, state), about = ad.train.load(f"{folder}/last.safetensors", (model, state))
    >>> about
    {'epoch': 3}
    """
    _write(path, tree, {} if about is None else about, {})


def load(path: Any, like: Any, *, part: str = "") -> tuple[Any, dict[str, Any]]:
    """The tree of a file that `save` wrote, and what was kept with it; `like` is a tree of the same structure.

    Arrays come to the devices of those of `like`, and are leaves where these are. `part` is the path of a part of the
    tree that alone is wanted: files of `Learner.fit` have the parts "model", "optimizer" and "metrics".

    Raises
    ------
    FileError
        There is no such file, it is not whole, or no checkpoint.
    ArgumentError, ShapeError, DtypeError
        It is one of another model. The message has the path of the file, and of the place in the tree.
    """
    content = _read(path)
    return content.fill(like, part), content.about


class Checkpoints:
    """The checkpoints of a run, in a folder: the last ones, and the best.

    `Learner.fit(..., checkpoints=...)` takes one, or only the folder; in a loop of your own call `save` and `load`.
    A file is removed only when a newer one is on the disk.

    Parameters
    ----------
    folder
        Where they are: `step-00000120.safetensors` and `best.safetensors`. It is made if it does not exist.
    every
        For `fit`, beside the end of each epoch: a number of steps, or a function of the `Run` that says whether now.
    keep
        How many of the last ones stay.
    best
        For `fit`: the column of the history whose best epoch is kept, such as "valid_loss".
    mode
        "min" or "max": which is the best.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        `every`, `keep` or `best` are none of these, or not positive; `mode` is another word.

    Examples
    --------
    >>> import adjoint as ad
    >>> import tempfile
    >>> model = ad.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = ad.train.Checkpoints(folder, keep=2)
    ...     for step in (1, 2, 3):
    ...         path = checkpoints.save(step, model, {"step": step}, score=(step - 2) ** 2)
    ...     model, about = checkpoints.load(model)
    ...     print(checkpoints.steps(), about, checkpoints.load(model, best=True)[1])
    [2, 3] {'step': 3} {'step': 2}
    """

    best: str | None
    mode: Any

    def __init__(
        self, folder: Any, every: int | Callable[[Any], Any] | None = None, keep: int = 3, best: str | None = None,
        mode: str = "min",
    ) -> None:  # fmt: skip
        self.folder: Path = files.as_path(folder, "Checkpoints", "folder is the path of one")
        self.every: Any = every if every is None or callable(every) else as_integer(every, "Checkpoints", "every", 1)
        self.keep: int = as_integer(keep, "Checkpoints", "keep", 1)
        if not isinstance(best, (str, type(None))):
            raise errors.ArgumentTypeError(
                f"Checkpoints: best is a column of the history, such as 'valid_loss', received {errors.shown(best)}"
            )
        self.best, self.mode = best, as_choice(mode, "Checkpoints", "mode", ["min", "max"])
        self._score: float | None = None  # the best so far
        self._known = self._prepared = False  # whether the last one was read, and the folder made

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}: steps {self.steps()})"

    def steps(self) -> list[int]:
        """The steps that there are checkpoints of."""
        if not self.folder.is_dir():
            return []
        return sorted(int(found[1]) for path in self.folder.iterdir() if (found := _NAME.fullmatch(path.name)))

    def path(self, step: int | None = None) -> Path:
        """The file of a step, or of the best."""
        return self.folder / ("best.safetensors" if step is None else f"step-{step:08d}.safetensors")

    def save(self, step: int, tree: Any, about: Mapping[str, Any] | None = None, *, score: float | None = None) -> Path:
        """Write a checkpoint, also as the best if its score is, then remove the oldest. Gives its path.

        Raises as `ad.train.save`, and ArgumentError where there is one of a later step, which is of another run.
        """
        step = as_integer(step, "Checkpoints.save", "the step", 0)
        self.prepare(step)
        about = {} if about is None else about
        if score is not None and is_better(score, self._score, self.mode):
            self._score = float(score)  # first, because a run that is killed in between comes to this step again
            _write(self.path(), tree, about, {"score": self._score})
        _write(self.path(step), tree, about, {"score": self._score})
        for old in self.steps()[: -self.keep]:
            self.path(old).unlink(missing_ok=True)
        return self.path(step)

    def load(self, like: Any, *, best: bool = False, part: str = "") -> tuple[Any, dict[str, Any]]:
        """The tree of the last checkpoint, or of the best, and what was kept with it, as `ad.train.load`.

        Raises FileError where there is none.
        """
        content = self.content(best)
        return content.fill(like, part), content.about

    def is_due(self, run: Any) -> bool:
        """Whether one is to be written after a step of a `Run`."""
        if self.every is None:
            return False
        return bool(self.every(run)) if callable(self.every) else run.step % self.every == 0

    def content(self, best: bool = False) -> Content:
        """What is in the last checkpoint, or in the best. Raises FileError."""
        steps = self.steps()
        if not steps:
            raise errors.FileError(f"{self.folder}: there is no checkpoint yet")
        path = self.path(None if best else steps[-1])
        try:
            content = _read(path)
        except errors.FileError as error:
            others = f"; remove it to go on from {self.path(steps[-2])}" if len(steps) > 1 and not best else ""
            raise errors.FileError(f"{error}{others}") from error
        if not best:
            self._score, self._known = content.extra.get("score"), True
        return content

    def prepare(self, step: int) -> None:
        """Make the folder, remove what a killed write has left in it, and see to it that nothing later is there.

        Raises FileError, or ArgumentError where there is a checkpoint of a later step. `save` does it as well.
        """
        if not self._prepared:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                files.sync_folder(self.folder.parent)
                for path in self.folder.iterdir():
                    if _LEFT.fullmatch(path.name):
                        path.unlink(missing_ok=True)
            except OSError as error:
                raise errors.FileError(f"{self.folder}: {error.strerror or error}") from error
            self._prepared = True
        last = max(self.steps(), default=-1)
        if last > step:
            raise errors.ArgumentError(
                f"{self.folder}: there is a checkpoint of step {last} already, and this is step {step}; load it first, "
                "or give another folder"
            )
        if not self._known and last >= 0:
            self.content()
        self._known = True


# --- what is in a file ---------------------------------------------------------------------------


class Content:
    """What is in a file: arrays and numbers by their places, and JSON."""

    about: Any
    arrays: files.Record
    extra: Any
    numbers: Any
    path: Any

    def __init__(self, path: Any, arrays: files.Record, header: Mapping[str, Any]) -> None:
        self.path, self.arrays = path, arrays
        self.numbers, self.about, self.extra = header["numbers"], header["about"], header["extra"]

    def fill(self, like: Any, part: str = "", *, free: bool = False) -> Any:
        """The tree with the values of the file at a part of it.

        Raises ArgumentError, ShapeError or DtypeError where they are not those of `like`; shapes and dtypes of arrays
        may differ if `free`.
        """
        if not isinstance(part, str):
            raise errors.ArgumentTypeError(
                f"load: part is the path of a part, such as 'model', received {errors.shown(part)}"
            )
        wanted = [path for path, _ in _places(like, part)]
        known = [p for p in (*self.arrays, *self.numbers) if not part or p == part or p.startswith(f"{part}.")]
        apart = {
            "missing": [path for path in wanted if path not in self.arrays and path not in self.numbers],
            "unexpected": [path for path in known if path not in set(wanted)],
        }
        if any(apart.values()):
            parts = [f"{what}: {errors.shown(', '.join(names))}" for what, names in apart.items() if names]
            raise errors.ArgumentError(
                f"{self.path}: the checkpoint is not of this model or optimizer; {'; '.join(parts)}"
            )
        return _replaced(like, part, lambda path, x: self._value(path, x, free))

    def _value(self, path: str, like: Any, free: bool) -> Any:
        found = self.arrays[path] if path in self.arrays else self.numbers[path]
        if isinstance(like, Tensor):
            return in_place(found, like, f"{self.path}: {path}")
        if free or not (is_array(like) or path in self.arrays):
            return found.copy() if path in self.arrays else found
        value = np.asarray(found)
        if value.shape != np.shape(like):
            raise errors.ShapeError(
                f"{self.path}: {path} has shape {value.shape} in the record, and {np.shape(like)} in what is loaded"
            )
        return value.copy() if isinstance(like, np.ndarray) else value[()]


def is_better(score: float, best: float | None, mode: str) -> bool:
    """Whether a score is below ("min") or above ("max") the best so far; a nan is not."""
    if best is None:
        return score == score
    return score < best if mode == "min" else score > best


def _write(path: Any, tree: Any, about: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    import json  # here, so that `import adjoint` need not wait for it

    places = list(_places(tree, ""))
    arrays = {name: x.detach() if isinstance(x, Tensor) else x for name, x in places if is_array(x)}
    numbers = {name: x for name, x in places if not is_array(x)}
    try:
        header = json.dumps({"numbers": numbers, "about": about, "extra": extra})
    except (TypeError, ValueError) as error:
        raise errors.ArgumentTypeError(
            f"{path}: what is kept beside the arrays is plain JSON (strings, numbers, lists, dictionaries): {error}"
        ) from None
    values = {name: np.asarray(x) for name, x in compute(arrays).items()}
    files.write(path, values, {"format": FORMAT, "header": header})


def _read(path: Any) -> Content:
    import json

    arrays, about = files.read_all(path)
    if about.get("format") != FORMAT:
        raise errors.FileError(
            f"{path}: this is no checkpoint, but another file of safetensors; the `load` of a module reads weights"
        )
    return Content(path, arrays, json.loads(about["header"]))


def _places(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The arrays and numbers of a tree, with their paths; of a module its parameters and buffers."""
    if isinstance(tree, Module):
        yield from ((leaf.path, leaf.value) for leaf in leaves_of(tree, path) if leaf.kind != "constant")
    elif is_array(tree) or is_number(tree) or isinstance(tree, bool):
        yield path, tree
    else:
        children, names, _ = opened(tree)
        for name, child in zip(names, children, strict=True):
            yield from _places(child, joined(path, name))


def _replaced(tree: Any, path: str, f: Callable[[str, Any], Any]) -> Any:
    """The tree with other values in these places."""
    if isinstance(tree, Module):
        made: dict[int, Any] = {}  # a tensor in several places of a module stays one

        def new(leaf: Leaf) -> Any:
            if leaf.kind == "constant":
                return leaf.value
            if id(leaf.value) not in made:
                made[id(leaf.value)] = f(joined(path, leaf.path), leaf.value)
            return made[id(leaf.value)]

        return mapped(tree, new)
    if is_array(tree) or is_number(tree) or isinstance(tree, bool):
        return f(path, tree)
    children, names, build = opened(tree)
    return build([_replaced(child, joined(path, name), f) for name, child in zip(names, children, strict=True)])
