"""Programs of tensors beside NumPy's arrays and numbers, each for both libraries, as those of `torch_autograd`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from torch_autograd import program, refused

OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt ge divmod iadd imul isub itruediv"
).split()
LEFT = ("float16", "float32", "float64", "int64", "uint8", "bool")
RIGHT = ("float16", "float32", "int64", "int32", "bool", "complex64")


def _told(torch: Any, found: Any) -> str:
    if isinstance(found, tuple):
        return str([_told(torch, part) for part in found])
    if isinstance(found, torch.Tensor):
        rounded = np.round(np.array(found.detach().tolist(), complex), 3).tolist()
        return f"tensor {found.dtype} {found.requires_grad} {rounded}"
    return f"{type(found).__name__} {getattr(found, 'dtype', '')} {found}"


def _outcome(torch: Any, do: Any) -> str:
    try:
        return _told(torch, do())
    except Exception as error:
        return str([kind.__name__ for kind in type(error).__mro__ if kind in (TypeError, ValueError, RuntimeError)])


@program
def operators_with_numbers_and_arrays_of_numpy(torch: Any, show: Any) -> None:
    for name in OPERATORS:
        apply = divmod if name == "divmod" else getattr(operator, name)
        for kind in LEFT:
            for left in (np.dtype(kind).type(2), np.array([2, 3]).astype(kind), np.array(2).astype(kind), np.ones(3)):
                for right in RIGHT:
                    for tracked in (False, True):
                        if tracked and right[0] not in "fc":
                            continue

                        def made(right: str = right, tracked: bool = tracked) -> Any:
                            return torch.tensor([1, 2], dtype=getattr(torch, right)).requires_grad_(tracked)

                        def copied(left: Any = left) -> Any:
                            return left.copy() if isinstance(left, np.ndarray) else left

                        for do in (lambda: apply(copied(), made()), lambda: apply(made(), copied())):  # noqa: B023
                            show(name, kind, right, _outcome(torch, do))


@program
def functions_of_numpy_give_tensors(torch: Any, show: Any) -> None:
    x = torch.tensor([1.0, 2.0])
    for function in (np.sin, np.exp, np.abs, np.isnan, np.modf, np.add.reduce, np.logical_not):
        for given in (x, torch.tensor(3.0), torch.tensor([1, 2])):
            show(function.__name__, _told(torch, function(given)))
        refused(show, lambda function=function: function(x.clone().requires_grad_()), 40)
    show(_told(torch, np.add(x, np.ones(2))), _told(torch, np.multiply(np.ones((2, 1)), x)))
    found = np.negative(x)
    found.mul_(3)
    show(found, x, type(np.asarray(x)).__name__, np.sin(x, out=np.zeros(2)).tolist())
    refused(show, lambda: np.ldexp(torch.tensor([1.0]), "a"), 0)
