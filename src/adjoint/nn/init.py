"""First values of parameters, by shape: `ad.nn.init.kaiming_normal((256, 784))`. All draw as `ad.random` does.

A shape is (outputs, inputs, ...), as weights of layers are: the fan in is the product of all sizes but the first, the
fan out that of all but the second.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint import errors, linalg
from adjoint.functions.arguments import as_choice, as_number, as_positive, as_shape
from adjoint.functions.creation import full
from adjoint.functions.creation import ones as all_ones
from adjoint.functions.creation import zeros as all_zeros
from adjoint.functions.elementwise import sign, where
from adjoint.functions.shape import diagonal, reshape
from adjoint.primitives.sizes import square_root
from adjoint.random import normal as draw_normal
from adjoint.random import truncated_normal as draw_truncated
from adjoint.random import uniform as draw_uniform
from adjoint.renamed import refusing
from adjoint.tensor import Tensor

__all__ = [
    "constant", "kaiming_normal", "kaiming_uniform", "lecun_normal", "normal", "ones", "orthogonal", "truncated_normal",
    "uniform", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / (1 + 0.01**2)),
    "selu": 0.75,
}  # fmt: skip


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Zeros."""
    return all_zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Ones."""
    return all_ones(shape, dtype=dtype, device=device)


def constant(shape: Any, value: float, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """One number everywhere."""
    return full(shape, float(as_number(value, "constant", "the value")), dtype=dtype, device=device)


def uniform(shape: Any, low: float = 0.0, high: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Evenly distributed between two bounds."""
    return draw_uniform(shape, low=low, high=high, dtype=dtype, device=device)


def normal(shape: Any, mean: float = 0.0, std: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Normal numbers."""
    return draw_normal(shape, mean=mean, std=std, dtype=dtype, device=device)


def truncated_normal(
    shape: Any, mean: float = 0.0, std: float = 1.0, low: float = -2.0, high: float = 2.0, *, dtype: Any = None,
    device: Any = None,
) -> Tensor[Any]:  # fmt: skip
    """Normal numbers between two bounds, which count from 0."""
    bounds = [as_number(v, "truncated_normal", "a bound") for v in (low, high)]
    return draw_truncated(bounds[0], bounds[1], shape, mean=mean, std=std, dtype=dtype, device=device)


def xavier_uniform(shape: Any, gain: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Uniform within gain sqrt(6 / (fan in + fan out)). X. Glorot, Y. Bengio (2010).

    >>> import adjoint as ad
    >>> bool((abs(ad.nn.init.xavier_uniform((3, 3))) <= 1).all())
    True
    """
    bound = math.sqrt(3) * _xavier(shape, gain, "xavier_uniform")
    return draw_uniform(shape, low=-bound, high=bound, dtype=dtype, device=device)


def xavier_normal(shape: Any, gain: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Normal with a deviation of gain sqrt(2 / (fan in + fan out))."""
    return draw_normal(shape, std=_xavier(shape, gain, "xavier_normal"), dtype=dtype, device=device)


def kaiming_uniform(
    shape: Any, nonlinearity: str = "relu", fan: str = "in", *, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Uniform within gain sqrt(3 / fan), in or out. K. He et al. (2015).

    The gain is that of the nonlinearity: "linear", "sigmoid", "tanh", "relu", "leaky_relu" (with slope 0.01)
    or "selu".
    """
    bound = math.sqrt(3) * _kaiming(shape, nonlinearity, fan, "kaiming_uniform")
    return draw_uniform(shape, low=-bound, high=bound, dtype=dtype, device=device)


def kaiming_normal(
    shape: Any, nonlinearity: str = "relu", fan: str = "in", *, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Normal with a deviation of gain / sqrt(fan); the rest is as in `kaiming_uniform`."""
    return draw_normal(shape, std=_kaiming(shape, nonlinearity, fan, "kaiming_normal"), dtype=dtype, device=device)


def lecun_normal(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Normal with a deviation of 1 / sqrt(fan in). Y. LeCun et al. (1998)."""
    return kaiming_normal(shape, "linear", dtype=dtype, device=device)


def orthogonal(shape: Any, gain: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Orthonormal rows or columns, whichever are fewer, of the shape as a matrix. A. Saxe et al. (2014).

    >>> import adjoint as ad
    >>> q = ad.nn.init.orthogonal((2, 5))
    >>> bool(ad.allclose(q @ q.mT, ad.eye(2), atol=1e-6))
    True
    """
    sizes = as_shape(shape, "orthogonal")
    if len(sizes) < 2:
        raise errors.ShapeError(f"orthogonal: a matrix or more axes, received shape {sizes}")
    rows, columns = sizes[0], math.prod(sizes[1:])
    drawn = draw_normal((max(rows, columns), min(rows, columns)), dtype=dtype, device=device)
    q, r = linalg.qr(drawn)
    signs = sign(diagonal(r))
    q = q * where(signs == 0, 1.0, signs)  # evenly distributed: F. Mezzadri (2007)
    return reshape(q if rows >= columns else q.mT, sizes) * as_positive(gain, "orthogonal", "gain")  # type: ignore[no-any-return]


def _kaiming(shape: Any, nonlinearity: str, fan: str, name: str) -> float:
    as_choice(nonlinearity, name, "nonlinearity", tuple(GAINS))
    inputs, outputs = _fans(shape, name)
    chosen = inputs if as_choice(fan, name, "fan", ("in", "out")) == "in" else outputs
    return GAINS[nonlinearity] / square_root(chosen) if chosen else 0.0


def _fans(shape: Any, name: str) -> tuple[int, int]:
    sizes = as_shape(shape, name)
    if len(sizes) < 2:
        raise errors.ShapeError(f"{name}: a weight of inputs and outputs has two axes or more, received shape {sizes}")
    return math.prod(sizes[1:]), sizes[0] * math.prod(sizes[2:])


def _xavier(shape: Any, gain: float, name: str) -> float:
    total = sum(_fans(shape, name))
    return as_positive(gain, name, "gain") * square_root(2 / total) if total else 0.0


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
