"""A function of one line of an array as a function of all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_axis, as_tensor
from adjoint.functions.manipulation import moveaxis, reshape
from adjoint.tensor import Tensor
from adjoint.transforms.batches import vmap


def apply_along_axis(f: Callable[..., Any], axis: int, x: Any, /, *args: Any, **kwargs: Any) -> Any:
    """f of each line along an axis, all together by `vmap`; the axes of its result stand where that axis was.

    `f(line, *args, **kwargs)` gets a vector and returns a tensor. Raises ArgumentTypeError for other results, AxisError
    for an axis that is not there, and the errors of `vmap`.

    >>> import adjoint as ad
    >>> ad.apply_along_axis(ad.median, 1, ad.tensor([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]])).tolist()
    [2.0, 5.0]
    """
    x = as_tensor(x, "apply_along_axis")
    place = as_axis(axis, x.ndim, "apply_along_axis")
    lines = moveaxis(x, place, -1)
    outer = lines.shape[:-1]
    out = vmap(lambda line: f(line, *args, **kwargs))(reshape(lines, (math.prod(outer), x.shape[place])))
    if not isinstance(out, Tensor):
        raise errors.ArgumentTypeError(f"apply_along_axis: f returns a tensor, received {type(out).__name__}")
    inner = out.ndim - 1
    out = reshape(out, (*outer, *out.shape[1:]))
    return moveaxis(out, tuple(range(len(outer), len(outer) + inner)), tuple(range(place, place + inner)))
