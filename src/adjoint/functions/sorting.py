"""Orders, and places in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Never

from adjoint import errors
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_flag,
    as_integer,
    as_ordered,
    as_tensors,
    explained,
    integers,
    is_integer,
    keyword_error,
)
from adjoint.functions.elementwise import where
from adjoint.functions.indexing import take, take_along_axis
from adjoint.functions.reduction import argmax, cumulative_sum
from adjoint.functions.shape import ravel, squeeze
from adjoint.operands import run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def searchsorted(
    x: Operand[B], values: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Tensor[B]:
    """Where each value goes in the sorted line x so that it stays sorted: before its equals, or on the right after.

    x is one line for all values, or has lines along its last axis, in each of which the values of its own are searched
    for: these have the other axes of x then. `sorter` are the places that sort x, if it is not. nan comes last. int64,
    in the shape of the values. Raises ShapeError for a 0-d x or other axes, DtypeError for complex numbers,
    ArgumentError for another side.

    >>> import adjoint as ad
    >>> ad.searchsorted(ad.tensor([1.0, 2.0, 2.0, 3.0]), ad.tensor([2.0, 0.5])).tolist()
    [1, 0]
    >>> ad.searchsorted(ad.tensor([[1, 3], [2, 4]]), ad.tensor([[2], [2]])).tolist()
    [[1], [0]]
    """
    as_choice(side, "searchsorted", "side", ("left", "right"))
    x, wanted = as_tensors([x, values], "searchsorted")
    x = as_ordered(x, "searchsorted")
    if not x.ndim or (x.ndim > 1 and x.shape[:-1] != wanted.shape[:-1]):
        raise errors.ShapeError(
            f"searchsorted: expected one sorted line, or lines and values that agree but for the last axis; received "
            f"shapes {x.shape} and {wanted.shape}"
        )
    if sorter is not None:
        x = take(x, sorter) if x.ndim == 1 else take_along_axis(x, sorter)
    if x.ndim > 1:
        return run("searchsorted", (x, wanted), side=side)  # type: ignore[no-any-return]
    flat = run("reshape", (wanted,), shape=(wanted.size,))
    return run("reshape", (run("searchsorted", (x, flat), side=side),), shape=wanted.shape)  # type: ignore[no-any-return]


def _line(x: Any, axis: int | None, name: str) -> tuple[Tensor[Any], int]:
    x = as_ordered(x, name)
    if axis is None:
        return ravel(x), 0
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis to sort along")
    return x, as_axis(axis, x.ndim, name)


@explained
def sort(
    x: Operand[B], /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, **unknown: Never
) -> Tensor[B]:
    """Elements sorted along an axis (None: all); nan comes last, first if descending. Equal ones keep their order."""
    if unknown:
        raise keyword_error(sort, unknown)
    x, place = _line(x, axis, "sort")
    return run("sort", (x,), axis=place, descending=_descending(descending, stable, "sort"))  # type: ignore[no-any-return]


def _descending(descending: Any, stable: Any, name: str) -> bool:
    as_flag(stable, name, "stable")  # all sorting is
    return as_flag(descending, name, "descending")


@explained
def argsort(
    x: Operand[B], /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, **unknown: Never
) -> Tensor[B]:
    """The places of elements in the order of `sort`; int64. Equal elements keep their order."""
    if unknown:
        raise keyword_error(argsort, unknown)
    x, place = _line(x, axis, "argsort")
    return run("argsort", (x,), axis=place, descending=_descending(descending, stable, "argsort"))  # type: ignore[no-any-return]


def partition(x: Operand[B], kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor[B]:
    """Elements reordered along an axis, or all for None: the k-th smallest at place k, none larger before it.

    The result has the shape and the dtype of x; for axis None it is a vector. NumPy leaves open how the others are
    ordered; here all are sorted. `kth` may name several places, also from the end. Raises OutOfRangeError for a place
    that is not there.

    >>> import adjoint as ad
    >>> ad.partition(ad.tensor([3.0, 1.0, 2.0]), 1)[1].item()
    2.0
    """
    _kth(x, kth, axis, "partition")
    return sort(x, axis=axis)


def argpartition(x: Operand[B], kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor[B]:
    """The places of elements in the order of `partition`; int64.

    They have the shape of x; for axis None they are a vector.
    """
    _kth(x, kth, axis, "argpartition")
    return argsort(x, axis=axis)


def _kth(x: Any, kth: Any, axis: int | None, name: str) -> None:
    x, place = _line(x, axis, name)
    for k in integers(kth, name, "places"):
        if not -x.shape[place] <= k < x.shape[place]:
            raise errors.OutOfRangeError(f"{name}: kth {k} is out of range for an axis of size {x.shape[place]}")


@explained
def topk(
    x: Operand[B], k: int, /, *, axis: int | None = -1, largest: bool = True, **unknown: Never
) -> tuple[Tensor[B], Tensor[B]]:
    """The k largest (or smallest) elements along an axis, or of all for None, best first, and their places.

    Both have the shape of x with k along that axis; vectors (k,) for None. Raises ArgumentError unless 0 <= k <= the
    axis's size.

    >>> import adjoint as ad
    >>> values, places = ad.topk(ad.tensor([3.0, 1.0, 2.0]), 2)
    >>> values.tolist(), places.tolist()
    ([3.0, 2.0], [0, 2])
    """
    if unknown:
        raise keyword_error(topk, unknown)
    x, place = _line(x, axis, "topk")
    if not is_integer(k) or not 0 <= k <= x.shape[place]:
        raise errors.ArgumentError(
            f"topk: k is between 0 and the axis's size {x.shape[place]}, received {errors.shown(k)}"
        )
    values, places = run("topk", (x,), k=int(k), axis=place, largest=as_flag(largest, "topk", "largest"))
    return values, places


@explained
def kthvalue(
    x: Operand[B], k: int, /, *, axis: int | None = -1, keepdims: bool = False, **unknown: Never
) -> tuple[Tensor[B], Tensor[B]]:
    """The k-th smallest element along an axis, or of all for None, counted from 1, and its place; nan comes last.

    Both have the shape of x without that axis, or with length 1 there by `keepdims`. The gradient goes to that place.
    Raises OutOfRangeError unless 1 <= k <= the axis's size, DtypeError for complex numbers.

    >>> import adjoint as ad
    >>> value, place = ad.kthvalue(ad.tensor([3.0, 1.0, 2.0]), 2)
    >>> value.item(), place.item()
    (2.0, 2)
    """
    if unknown:
        raise keyword_error(kthvalue, unknown)
    x, place = _line(x, axis, "kthvalue")
    n, k, keepdims = x.shape[place], as_integer(k, "kthvalue", "k"), as_flag(keepdims, "kthvalue")
    if not 1 <= k <= n:
        raise errors.OutOfRangeError(f"kthvalue: k is between 1 and the axis's size {n}, received {k}")
    found = run("topk", (x,), k=k, axis=place, largest=False)
    last = slice(k - 1, k, 1) if keepdims else k - 1
    values, places = (run("index", (each,), key=(*[slice(None)] * place, last)) for each in found)
    return values, places


@explained
def mode(
    x: Operand[B], /, *, axis: int | None = -1, keepdims: bool = False, **unknown: Never
) -> tuple[Tensor[B], Tensor[B]]:
    """The most frequent element along an axis (of all for None), the smallest of several, and its last place.

    A nan is another one each time. The gradient goes to that place. Raises ShapeError for an empty axis, DtypeError for
    complex numbers.

    >>> import adjoint as ad
    >>> value, place = ad.mode(ad.tensor([3, 1, 2, 1, 3]))
    >>> value.item(), place.item()
    (1, 3)
    """
    if unknown:
        raise keyword_error(mode, unknown)
    x, axis = _line(x, axis, "mode")
    keepdims = as_flag(keepdims, "mode")
    order = run("argsort", (x,), axis=axis, descending=False)
    line = run("take_along_axis", (x, order), axis=axis)
    before = (slice(None),) * axis
    n = x.shape[axis]
    same = run("equal", (line[(*before, slice(1, n))], line[(*before, slice(0, max(n - 1, 0)))]))
    widths = tuple((min(n, 1), 0) if i == axis else (0, 0) for i in range(x.ndim))
    same = run("pad", (same,), widths=widths, value=False)
    # how many equal ones stand before each place: all of them less those before the run began
    total = cumulative_sum(same, axis=axis)
    began = run("cummax", (where(same, 0, total),), axis=axis)[0]
    last = argmax(total - began, axis=axis, keepdims=True)
    place = run("take_along_axis", (order, last), axis=axis)
    value = run("take_along_axis", (x, place), axis=axis)
    return (value, place) if keepdims else (squeeze(value, axis), squeeze(place, axis))
