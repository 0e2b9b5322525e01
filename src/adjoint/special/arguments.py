"""What special functions read their arguments with."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Decorator
from adjoint.concrete import Staged
from adjoint.functions.arguments import as_tensor, real
from adjoint.functions.creation import asarray
from adjoint.functions.elementwise import where
from adjoint.functions.logic import equal
from adjoint.operands import available_dtype, cast, concrete_values, deferred_check, is_weak, run
from adjoint.primitives import TABLE, broadcast_shapes
from adjoint.tensor import Tensor

Numbers = Any  # a tensor, a Python number, or a NumPy array


def reals(name: str, *values: object) -> list[Tensor[Any]]:
    """Operands as tensors of one real floating dtype; Python's numbers take that of the tensors."""
    given = [v if is_weak(v) else as_tensor(v, name, *values) for v in values]
    tensors = [v for v in given if isinstance(v, Tensor)]
    if not tensors:
        return [real(v, name) for v in given]
    dtype = tensors[0].dtype
    for v in given:
        dtype = dtypes.promote(dtype, v.dtype) if isinstance(v, Tensor) else dtypes.promote_scalar(dtype, v)
    dtype = available_dtype(dtypes.floating(dtype), tensors)
    if dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {dtype}; take abs, real or imag")
    device = tensors[0].device
    return [cast(v, dtype) if isinstance(v, Tensor) else asarray(v, dtype=dtype, device=device) for v in given]


def wide(x: Tensor[Any]) -> Tensor[Any]:
    """In double precision, for what is composed of several functions: rounded once, at the end."""
    return cast(x, x.device.leaf.widest(dtypes.float64))


def one(name: str, x: Any, function: str, **parameters: Any) -> Tensor[Any]:
    tensor = as_tensor(x, function)
    dtype = available_dtype(TABLE[name].promoted(tensor.dtype, function), [tensor])
    return run(name, (cast(tensor, dtype),), **parameters)  # type: ignore[no-any-return]


def constant(x: Any, function: str, what: str) -> None:
    """Raises TrackedError where a derivative by x is asked for: there is none."""
    if _is_differentiated(x):
        raise errors.TrackedError(
            f"{function}: no derivative by {what} is known, and that of shape {x.shape} is tracked; take its "
            "detach(), or ad.stop_gradient of it, for a constant"
        )


def _is_differentiated(x: Any) -> bool:
    level, array = (x.device, x._array) if isinstance(x, Tensor) else (None, None)
    while isinstance(level, Decorator):
        if level.differentiates and level.is_active(array):
            return True
        level, array = level.inner, level.unwrap(array)
    return False


_HIGHEST = 1_000_000  # order: loops run to it, and factorials are multiplied with in parts


def whole(n: Any, function: str) -> Any:
    """Orders of a function that has real ones too, which need not be known yet: whole where they are known.

    Raises ArgumentError for others, TrackedError where a derivative by them is asked for.
    """
    constant(n, function, "the order n")
    if not isinstance(n, Tensor) or n.dtype.kind not in "iuf":
        whole_numbers(n, function, -math.inf)
        return n
    wanted = _wanted(function, -_HIGHEST)

    def error(values: np.ndarray[Any, Any]) -> Exception:
        return errors.ArgumentError(f"{wanted}, received {errors.shown(values)}")

    return deferred_check(n, lambda n: ((n == np.floor(n)) & (n >= -_HIGHEST) & (n <= _HIGHEST)).all(), error)


def _wanted(function: str, lowest: float) -> str:
    return f"{function}: orders are whole numbers from {lowest} to {_HIGHEST}"


def whole_numbers(n: Any, function: str, least: float = 0) -> np.ndarray[Any, Any]:
    """Orders, of known values. Raises ArgumentError where they are none, or not within a million, TrackedError for
    tracked ones."""
    if _is_differentiated(n):
        raise errors.TrackedError(
            f"{function}: orders are whole numbers, between which there is no derivative; pass n.detach()"
        )
    lowest = max(least, -_HIGHEST)
    wanted = _wanted(function, lowest)
    try:
        orders = concrete_values(n, f"{function}: a tensor of orders")
    except ValueError:
        raise errors.ArgumentError(f"{wanted}, received {errors.shown(n)}") from None
    if orders.dtype.kind == "f":
        orders = orders.astype(np.float64)  # in float16 the highest would be infinite
    valid = (
        dtypes.of_numbers(orders.dtype, "iu" + dtypes.FLOATING)
        and ((orders >= lowest) & (orders <= _HIGHEST) & (orders == np.floor(orders))).all()
    )
    if not valid:
        raise errors.ArgumentError(f"{wanted}, received {errors.shown(n)}")
    return orders


def of_order(name: str, n: Any, f: Callable[[int, Tensor[Any]], Tensor[Any]], x: Tensor[Any]) -> Any:
    """f(n, x) of an order, or of an array of orders: one order after the other, each for all of x.

    Where the orders have no values before a program runs, this is a step of it.
    """
    if isinstance(n, Tensor) and isinstance(n.device.leaf, Staged):
        hosted: Any = import_module("adjoint.transforms.hosted")  # by name, because functions stand below transforms
        if hosted.waits([n]):
            results = [(broadcast_shapes(n.shape, x.shape), x.dtype)]
            return hosted.hosted(name, lambda xs: [of_order(name, xs[0], f, xs[1])], [n, x], results)[0]
    orders = whole_numbers(n, name)
    if orders.ndim == 0:
        return f(int(orders), x)
    given = n.detach() if isinstance(n, Tensor) else asarray(orders, device=x.device)
    out = x * 0.0
    for order in np.unique(orders):  # of all examples in a batch
        out = where(equal(given, int(order)), f(int(order), x), out)
    return out
