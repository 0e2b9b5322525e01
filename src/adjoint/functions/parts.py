"""Parts of tensors, cut out along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import (
    as_axes,
    as_axis,
    as_integer,
    as_shape,
    as_tensor,
    explained,
    integers,
    keyword_error,
    own_values,
)
from adjoint.functions.shape import refuse_many
from adjoint.operands import run
from adjoint.tensor import Axis, Operand, Tensor
from adjoint.variables import B


@explained
def array_split(x: Operand[B], sections: int | Sequence[int], /, axis: int = 0, **unknown: Never) -> list[Tensor[B]]:
    """Consecutive parts along an axis: a number of them, the first ones longer by one if need be, or cut at places.

    A list, whose tensors have the shape of x but for that axis. Raises ArgumentError for less than one part, and for
    more than 100 000 of fewer elements.

    >>> import adjoint as ad
    >>> [part.tolist() for part in ad.array_split(ad.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if unknown:
        raise keyword_error(array_split, unknown)
    x = as_tensor(x, "array_split")
    place = as_axis(axis, x.ndim, "array_split")
    n = x.shape[place]
    if isinstance(sections, (int, np.integer)):
        count = as_integer(sections, "array_split", "the number of parts", 1)
        refuse_many(count, x, "array_split")
        cuts = [i * (n // count) + min(i, n % count) for i in range(count + 1)]
    else:
        cuts = [0, *integers(sections, "array_split", "the places of cuts"), n]
        refuse_many(len(cuts), x, "array_split")
    before = (slice(None),) * place
    return [x[(*before, slice(start, stop))] for start, stop in zip(cuts, cuts[1:], strict=False)]


@explained
def split(x: Operand[B], sections: int | Sequence[int], /, axis: int = 0, **unknown: Never) -> list[Tensor[B]]:
    """A number of equal parts along an axis, or parts cut at places. Raises ShapeError where they cannot be equal.

    A list, whose tensors have the shape of x but for that axis.
    """
    if unknown:
        raise keyword_error(split, unknown)
    x = as_tensor(x, "split")
    if isinstance(sections, (int, np.integer)) and sections > 0:
        n = x.shape[as_axis(axis, x.ndim, "split")]
        if n % sections:
            raise errors.ShapeError(
                f"split: {n} elements along axis {axis} are not {sections} equal parts; array_split makes unequal ones"
            )
    return array_split(x, sections, axis=axis)


@explained
def split_with_sizes(x: Operand[B], sizes: Sequence[int], /, *, axis: int = 0, **unknown: Never) -> list[Tensor[B]]:
    """Consecutive parts along an axis, of these sizes, as PyTorch's; NumPy's `split` takes the places of cuts.

    A list, whose tensors have the shape of x but for that axis. Raises ShapeError for sizes that are negative or do not
    sum up to that of the axis.

    >>> import adjoint as ad
    >>> [part.tolist() for part in ad.split_with_sizes(ad.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    if unknown:
        raise keyword_error(split_with_sizes, unknown)
    x = as_tensor(x, "split_with_sizes")
    wanted, n = as_shape(sizes, "split_with_sizes"), x.shape[as_axis(axis, x.ndim, "split_with_sizes")]
    if sum(wanted) != n:
        raise errors.ShapeError(f"split_with_sizes: sizes {wanted} sum up to {sum(wanted)}, but the axis has size {n}")
    cuts = np.cumsum((0, *wanted), dtype=np.int64).tolist()
    return [_slice(x, axis, start, stop) for start, stop in zip(cuts, cuts[1:], strict=False)]


@explained
def chunk(x: Operand[B], chunks: int, /, *, axis: int = 0, **unknown: Never) -> list[Tensor[B]]:
    """At most `chunks` parts along an axis, all but the last of one size, as PyTorch's.

    A list, whose tensors have the shape of x but for that axis. Parts may be fewer than asked for: 6 elements in 4
    chunks are 3 of 2. `array_split` gives as many as are asked for. Raises ArgumentError for less than one, and for
    more than 100 000 of fewer elements.

    >>> import adjoint as ad
    >>> [part.tolist() for part in ad.chunk(ad.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    if unknown:
        raise keyword_error(chunk, unknown)
    x = as_tensor(x, "chunk")
    count, n = as_integer(chunks, "chunk", "the number of chunks", 1), x.shape[as_axis(axis, x.ndim, "chunk")]
    refuse_many(count, x, "chunk")
    size = -(-n // count)
    starts = range(0, n, size) if n else [0] * count
    return [_slice(x, axis, start, min(start + size, n)) for start in starts]


def narrow(x: Operand[B], axis: int, start: int, length: int, /) -> Tensor[B]:
    """`length` elements along an axis from `start` on, which may count from the end: a slice, by PyTorch's name.

    The result has the shape of x but for that axis. Raises OutOfRangeError for what is not inside.

    >>> import adjoint as ad
    >>> ad.narrow(ad.arange(5), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    x = as_tensor(x, "narrow")
    n = x.shape[as_axis(axis, x.ndim, "narrow")]
    place, count = as_integer(start, "narrow", "start"), as_integer(length, "narrow", "length", 0)
    first = place + n if place < 0 else place
    if not 0 <= first <= n - count:
        raise errors.OutOfRangeError(
            f"narrow: {count} elements from place {place} on are not inside axis {axis} of shape {x.shape}"
        )
    return _slice(x, axis, first, first + count)


def _slice(x: Tensor[Any], axis: int, start: int, stop: int) -> Tensor[Any]:
    """Elements along an axis, from one place up to another, both inside."""
    before = (slice(None),) * as_axis(axis, x.ndim, "")
    return run("index", (x,), key=(*before, slice(start, stop, 1)))  # type: ignore[no-any-return]


def trim_zeros(x: Operand[B], /, trim: str = "fb", axis: Axis = None) -> Tensor[B]:
    """x without the zeros in front ("f" in `trim`) and behind ("b"), along each of the axes, or of all.

    A slice along an axis is left out if all its elements are zero; of nothing but zeros nothing is left. The shape
    depends on the values. Raises ArgumentError for another `trim`, ShapeError inside vmap, where the examples would
    differ in shape.

    >>> import adjoint as ad
    >>> ad.trim_zeros(ad.tensor([0, 0, 3, 0, 4, 0])).tolist()
    [3, 0, 4]
    """
    x = as_tensor(x, "trim_zeros")
    if not isinstance(trim, str) or trim.lower() not in ("fb", "bf", "f", "b"):
        raise errors.ArgumentError(f"trim_zeros: trim is 'f', 'b' or 'fb', received {errors.shown(trim)}")
    axes = as_axes(axis, x.ndim, "trim_zeros")
    found = np.argwhere(own_values(x, "trim_zeros"))
    key = [slice(None)] * x.ndim
    for place in axes:
        line = found[:, place]
        first, last = (int(line.min()), int(line.max()) + 1) if line.size else (0, 0)
        front, back = "f" in trim.lower(), "b" in trim.lower() or not line.size
        key[place] = slice(first if front else None, last if back else None)
    return x[tuple(key)]
