"""Functions of neural networks, with PyTorch's names, argument orders and conventions."""

from adjoint.functions.nn import (
    binary_cross_entropy_with_logits,
    conv2d,
    cross_entropy,
    gelu,
    layer_norm,
    linear,
    max_pool2d,
    mse_loss,
    relu,
    sigmoid,
    silu,
    softplus,
)

__all__ = [
    "binary_cross_entropy_with_logits",
    "conv2d",
    "cross_entropy",
    "gelu",
    "layer_norm",
    "linear",
    "max_pool2d",
    "mse_loss",
    "relu",
    "sigmoid",
    "silu",
    "softplus",
]
