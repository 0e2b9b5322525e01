"""`torch.nn.grad`: gradients of convolutions by their input or their weight, by name."""

from __future__ import annotations

from typing import Any

from adjoint.torch.engine import grad
from adjoint.torch.nn import functional
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.state import enable_grad, is_grad_enabled


def _by(number: int, of_input: bool) -> Any:
    convolution = functional.ALL[f"conv{number}d"]

    def gradient(
        first: Any, second: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        size, other = (first, second) if of_input else (second, first)
        with enable_grad():
            x = FUNCTIONS["zeros"](tuple(size), dtype=other.dtype, device=other.device).requires_grad_()
            pair = (x, other) if of_input else (other, x)
            out = convolution(*pair, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return grad(out, x, grad_output, create_graph=is_grad_enabled())[0]

    if of_input:

        def conv_input(
            input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1,
        ) -> Any:  # fmt: skip
            return gradient(input_size, weight, grad_output, stride, padding, dilation, groups)

        return conv_input

    def conv_weight(
        input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        return gradient(input, weight_size, grad_output, stride, padding, dilation, groups)

    return conv_weight


conv1d_input, conv2d_input, conv3d_input = (_by(number, True) for number in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_by(number, False) for number in (1, 2, 3))
