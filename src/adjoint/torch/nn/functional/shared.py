"""What functions of several topics need: keys of random numbers, and PyTorch's older way to name a reduction."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.random_keys import seeded
from adjoint.torch import generators, lifted, overriding
from adjoint.torch.calls import call
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.tensor import Tensor, is_lifted, looked


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


def check_exact(name: str, x: Tensor, *, factors: Any = (), added: Any = None, count: int = 1) -> None:
    """Raise RuntimeError for integers whose results double precision may not hold. In `vmap` nobody looks.

    A result is a sum of x's elements times those of the factors, and of what is added, or of `count` elements of x.
    """
    tensors = [x, *factors, *([] if added is None else [added])]
    if any([is_lifted(y) for y in tensors]) or not all([y.numel() for y in tensors]):
        return
    sizes = [int(np.abs(looked(y)).sum(dtype=np.float64)) for y in factors]
    bound = _largest(x) * math.prod(sizes or [count])
    if bound + (0 if added is None else _largest(added)) > 1 << 53:
        raise RuntimeError(
            f"{name} of integers is computed in double precision, which has them all up to 2**53; results of these may "
            "be larger: convert them to torch.float64 if roundings do no harm"
        )


def _largest(x: Tensor) -> int:
    array = looked(x)
    return max(-int(array.min()), int(array.max()))


def of_integers(function: Any) -> Any:
    """A function of floating numbers, for tensors of integers, too: its results are cut to integers."""

    means = function.__name__.startswith("avg_pool")
    kinds = "i" if means else "iu"  # PyTorch has no means of bytes

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

        def cut(x: Any) -> Any:  # of more than a small type holds the last bits count
            return x.to(dtype=np.dtype("int64")).to(dtype=input._dtype) if x._dtype.kind == "f" else x

        known = inspect.signature(function).bind_partial(input, *args, **options).arguments
        given = {name: x for name, x in known.items() if isinstance(x, Tensor)}
        check_exact(
            function.__name__, input, factors=[given[n] for n in ("input2", "weight") if n in given],
            added=given.get("bias"), count=input.numel() if means else 1,
        )  # fmt: skip
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
