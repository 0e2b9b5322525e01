"""Products that sum over shared axes: all are bilinear.

The three convolutions are each other's transposes, so they are closed under differentiation.
"""

from __future__ import annotations

from typing import Any

from adjoint.rules.records import Bilinear, Record


def _transposed(B: Any, x: Any) -> Any:
    n = len(x.shape)
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def _conv(stride: Any, padding: Any, dilation: Any, groups: Any) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


RECORDS: dict[str, Record] = {
    "matmul": Bilinear(
        x=lambda B, g, y: B.matmul(g, _transposed(B, y)), y=lambda B, g, x: B.matmul(_transposed(B, x), g)
    ),
    "conv": Bilinear(
        x=lambda B, g, weight, x_shape, stride, padding, dilation, groups: B.conv_input(
            g, weight, size=tuple(x_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        weight=lambda B, g, x, weight_shape, stride, padding, dilation, groups: B.conv_weight(
            x, g, size=tuple(weight_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
    ),
    "conv_input": Bilinear(
        g=lambda B, g, weight, stride, padding, dilation, groups: B.conv(
            g, weight, **_conv(stride, padding, dilation, groups)
        ),
        weight=lambda B, c, g, weight_shape, stride, padding, dilation, groups: B.conv_weight(
            c, g, size=tuple(weight_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
    ),
    "conv_weight": Bilinear(
        x=lambda B, c, g, x_shape, stride, padding, dilation, groups: B.conv_input(
            g, c, size=tuple(x_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        g=lambda B, c, x, stride, padding, dilation, groups: B.conv(x, c, **_conv(stride, padding, dilation, groups)),
    ),
}
