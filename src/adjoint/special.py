"""Special functions, under SciPy's names; all elementwise or along one axis, integers become float32."""

from __future__ import annotations

from typing import TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import inexact
from adjoint.functions.reductions import as_axes, as_axis, as_flag
from adjoint.tensor import Axis, Tensor, cast, run

B = TypeVar("B", bound=Backend)

__all__ = ["erf", "expit", "log_softmax", "logsumexp", "softmax"]


def _real(x: object, name: str) -> Tensor[Backend]:
    tensor = inexact(x, name)
    if tensor.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {tensor.dtype}")
    return tensor


def erf(x: Tensor[B], /) -> Tensor[B]:
    """The error function of real x: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    >>> import adjoint as ad
    >>> round(ad.special.erf(ad.tensor(1.0)).item(), 5)
    0.8427
    """
    return run("erf", (_real(x, "erf"),))  # type: ignore[no-any-return]


def expit(x: Tensor[B], /) -> Tensor[B]:
    """The logistic function 1 / (1 + exp(-x)) of real x, without overflow."""
    return run("expit", (_real(x, "expit"),))  # type: ignore[no-any-return]


def logsumexp(x: Tensor[B], /, axis: Axis = None, *, keepdims: bool = False) -> Tensor[B]:
    """log(sum(exp(x))) along axes, or all, without overflow; -inf where there is nothing to sum.

    Raises DtypeError for complex x, AxisError for an axis that is not there.
    """
    x = _real(x, "logsumexp")  # type: ignore[assignment]
    axes, keepdims = as_axes(axis, x.ndim, "logsumexp"), as_flag(keepdims, "logsumexp")
    return cast(run("logsumexp", (cast(x, dtypes.summing(x.dtype)),), axis=axes, keepdims=keepdims), x.dtype)


def softmax(x: Tensor[B], /, axis: int = -1) -> Tensor[B]:
    """exp(x) over its sum along an axis."""
    return _along("softmax", x, axis)


def log_softmax(x: Tensor[B], /, axis: int = -1) -> Tensor[B]:
    """The logarithm of `softmax`, accurate also where that underflows."""
    return _along("log_softmax", x, axis)


def _along(name: str, x: Tensor[B], axis: int) -> Tensor[B]:
    x = _real(x, name)  # type: ignore[assignment]
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis")
    place = as_axis(axis, x.ndim, name)
    if not x.shape[place]:
        return x
    return cast(run(name, (cast(x, dtypes.summing(x.dtype)),), axis=place), x.dtype)
