"""The functions of `safetensors.torch`, of this face's tensors: `from adjoint.torch.safetensors import save_file`."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors, files
from adjoint.torch.devices import chosen
from adjoint.torch.memory import is_same_part
from adjoint.torch.tensor import Tensor, looked, placed


class MissingFileError(errors.FileError, FileNotFoundError):
    """There is no such file."""


def save_file(tensors: dict[str, Tensor], filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name. Other libraries read the file; complex128, which the format lacks, are pairs to them.

    The file is there as a whole or not at all. Raises ValueError for what is no tensor, RuntimeError for two names of
    one memory, FileError where the file cannot be written, MissingLibraryError without safetensors
    (`pip install 'adjoint[train]'`).

    >>> import tempfile, pathlib
    >>> import adjoint.torch as torch
    >>> from adjoint.torch.safetensors import load_file, save_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "weights.safetensors"
    >>> save_file({"w": torch.ones(2)}, path)
    >>> load_file(path)
    {'w': tensor([1., 1.])}
    """
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(x)}")
    shared = _shared(tensors)
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk: {shared}. "
            "Use save_model of the model, which writes each once"
        )
    files.write(filename, {name: looked(x) for name, x in tensors.items()}, metadata or {})


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file by name; bfloat16, which the face lacks, become float32, which has all their values.

    Raises FileError for a file that is damaged or not there; the latter is a FileNotFoundError, too.
    """
    there = chosen(device)
    try:
        found = files.read(filename)
    except errors.FileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise MissingFileError(str(error)) from error
        raise
    wide = {n: x.astype(np.float32) if x.dtype.name == "bfloat16" else np.array(x) for n, x in found.items()}
    return {n: placed(x, there) for n, x in wide.items()}


def save_model(
    model: Any, filename: str, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write the state of a module; of tensors with several names the first one is in the file."""
    state = model.state_dict()
    again = {name for _, *others in _shared(state) for name in others}
    save_file({name: x for name, x in state.items() if name not in again}, filename, metadata)


def load_model(model: Any, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Give a module the state of a file. Returns what of the module is not in the file, and the other way round.

    Raises RuntimeError for these where `strict`.
    """
    state = load_file(filename, device)
    own = model.state_dict()
    names = {name: others for others in _shared(own) for name in others}
    for name, others in names.items():
        known = next((other for other in others if other in state), None)
        if known is not None:
            state.setdefault(name, state[known])
    missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: Missing key(s) in state_dict: {missing}; "
            f"Unexpected key(s) in state_dict: {unexpected}"
        )
    model.load_state_dict(state, strict=False)
    return missing, unexpected


def _shared(tensors: dict[str, Any]) -> list[list[str]]:
    """The names of tensors that are one memory, in groups."""
    groups: list[list[str]] = []
    for name, x in tensors.items():
        for group in groups:
            first = tensors[group[0]]
            if first is x or is_same_part(first, x):
                group.append(name)
                break
        else:
            groups.append([name])
    return [group for group in groups if len(group) > 1]
