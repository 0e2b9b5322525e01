"""Activations: elementwise functions between the layers of a network, and gates."""

from __future__ import annotations

from typing import TypeVar

from adjoint.backend import Backend
from adjoint.nn.arguments import real
from adjoint.tensor import Tensor, run

B = TypeVar("B", bound=Backend)


def relu(x: Tensor[B], /) -> Tensor[B]:
    """max(x, 0); its derivative at 0 is 0.

    >>> import adjoint as ad
    >>> ad.nn.relu(ad.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return run("relu", (real(x, "relu"),))  # type: ignore[no-any-return]


def sigmoid(x: Tensor[B], /) -> Tensor[B]:
    """1 / (1 + exp(-x)), without overflow."""
    return run("expit", (real(x, "sigmoid"),))  # type: ignore[no-any-return]


def silu(x: Tensor[B], /) -> Tensor[B]:
    """x * sigmoid(x)."""
    return run("silu", (real(x, "silu"),))  # type: ignore[no-any-return]


def gelu(x: Tensor[B], /) -> Tensor[B]:
    """x times the standard normal distribution function at x, exact. D. Hendrycks, K. Gimpel (2016)."""
    return run("gelu", (real(x, "gelu"),))  # type: ignore[no-any-return]


def softplus(x: Tensor[B], /) -> Tensor[B]:
    """log(1 + exp(x)), without overflow."""
    return run("softplus", (real(x, "softplus"),))  # type: ignore[no-any-return]
