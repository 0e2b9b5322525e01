"""What is not there says so by name, and what is elsewhere in PyTorch is found there, too."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

_OUT_OF_SCOPE = {  # by what a name has in it
    "sparse": "there are no sparse tensors",
    "Sparse": "there are no sparse tensors; Adam takes the gradients of tables, which are dense",
    "jit": "there is no compiler of PyTorch's programs",
    "Script": "there is no compiler of PyTorch's programs",
    "export": "there is no compiler of PyTorch's programs",
    "profiler": "see ad.Profiled",
    "_C": "it is PyTorch's own inside",
    "quant": "there are no quantized tensors",
    "nested": "there are no nested tensors",
    "distributed": "a program is one process; ad.train.Learner trains on several devices",
    "DataParallel": "a program is one process; ad.train.Learner trains on several devices",
    "SyncBatchNorm": "a program is one process, and BatchNorm is what it is there",
    "bfloat16": "NumPy has no such type; float32 has all its values",
    "storage": "values are NumPy's arrays, which x.numpy() gives",
    "cudnn": "kernels are those of NumPy",
    "mkldnn": "kernels are those of NumPy",
}


def missing(name: str, of: str = "adjoint.torch") -> AttributeError:
    """The error for a name that PyTorch has and the face has not."""
    why = next((reason for part, reason in _OUT_OF_SCOPE.items() if part in name), None)
    return AttributeError(f"{of} has no {name!r}" + (f": {why}" if why else "; docs/torch.md lists what is there"))


def rooms(package: str, names: Mapping[str, Iterable[str]], found: Mapping[str, Any]) -> None:
    """Modules of a package where PyTorch has some of its names: `from torch.optim.sgd import SGD` finds it, too."""
    for room, members in names.items():
        module = ModuleType(f"{package}.{room}", "Names of the package, where PyTorch has them.")
        vars(module).update({name: found[name] for name in members})
        sys.modules[module.__name__] = module
        setattr(sys.modules[package], room, module)
