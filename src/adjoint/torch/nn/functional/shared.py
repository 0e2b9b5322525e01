"""What functions of several topics need: keys of random numbers, and PyTorch's older way to name a reduction."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.random_keys import seeded
from adjoint.torch import generators, lifted, overriding
from adjoint.torch.calls import call
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.tensor import Tensor


def tensor(value: Any, name: str, place: str = "input") -> Tensor:
    """A tensor. Raises TypeError for anything else."""
    if not isinstance(value, Tensor):
        raise WrongKindError(f"{name}(): argument '{place}' (position 1) must be Tensor, not {type(value).__name__}")
    return value


def real(value: Any, name: str, *, integers: bool = False) -> Tensor:
    """A tensor of real floating numbers, or of integers. Raises NotImplementedError for another type."""
    x = tensor(value, name)
    kind = x._dtype.kind
    if kind != "f" and not (integers and kind in "iu"):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{x.dtype.class_name}'")
    return x


def drawing(function: Any, made: str | None, *args: Any, generator: Any = None, **options: Any) -> Any:
    """A function of adjoint's that draws random numbers, which follow a generator or `torch.manual_seed` here."""
    examples = generators.apart()
    if examples:  # what all examples share is a value of each, for numbers of its own
        args = tuple([lifted.spread(x, examples) if isinstance(x, Tensor) else x for x in args])
    with seeded(int(generators.source(generator, apart=True).integers(0, 1 << 63))):
        return call(function, made, *args, **options)


def of_integers(function: Any) -> Any:
    """A function of floating numbers, for tensors of integers, too: its results are cut to integers."""

    kinds = "i" if function.__name__.startswith("avg_pool") else "iu"  # PyTorch has no means of bytes

    @functools.wraps(function)
    def spelled(input: Tensor, *args: Any, **options: Any) -> Any:
        if not isinstance(input, Tensor) or input._dtype.kind not in kinds:
            return function(input, *args, **options)

        for other in (*args, *options.values()):
            if isinstance(other, Tensor) and other._dtype is not input._dtype:
                raise RuntimeError(
                    f"{function.__name__}: Input type ({input.dtype}) and the type of weights or bias ({other.dtype}) "
                    "should be the same"
                )

        def wide(value: Any) -> Any:
            return value.to(dtype=np.dtype("float64")) if isinstance(value, Tensor) else value

        def cut(x: Any) -> Any:
            return x.to(dtype=input._dtype) if x._dtype.kind == "f" else x

        out = function(wide(input), *[wide(a) for a in args], **{k: wide(v) for k, v in options.items()})
        return tuple([cut(x) for x in out]) if isinstance(out, tuple) else cut(out)

    overriding.public[function] = spelled
    return spelled


def probability(p: float, what: str = "dropout") -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"{what} probability has to be between 0 and 1, but got {p}")


def reduction_of(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction, which was said by two flags once."""
    if size_average is not None or reduce is not None:
        size_average = True if size_average is None else size_average
        reduce = True if reduce is None else reduce
        reduction = ("mean" if size_average else "sum") if reduce else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=4,
        )
    if reduction not in ("none", "mean", "sum"):
        name = errors.said(reduction) if isinstance(reduction, str) else errors.shown(reduction)
        raise ValueError(f"{name} is not a valid value for reduction")
    return reduction
