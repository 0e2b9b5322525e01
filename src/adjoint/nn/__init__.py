"""Functions of neural networks, with PyTorch's names, argument orders and conventions."""

from adjoint.nn.activations import gelu, relu, sigmoid, silu, softplus
from adjoint.nn.attention import scaled_dot_product_attention
from adjoint.nn.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from adjoint.nn.layers import dropout, linear
from adjoint.nn.losses import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from adjoint.nn.normalization import layer_norm
from adjoint.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "gelu",
    "layer_norm",
    "linear",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softplus",
]
