"""Sets of elements: what is there, how often, and where first. Shapes depend on values, as with boolean masks."""

from __future__ import annotations

from typing import Any, NamedTuple, Never

import numpy as np

from adjoint import errors
from adjoint.dtypes import INEXACT, int64
from adjoint.functions.arguments import as_axis, as_flag, as_tensor, as_tensors, explained, keyword_error, own_values
from adjoint.functions.creation import made
from adjoint.functions.indexing import nonzero
from adjoint.functions.logic import isnan
from adjoint.functions.reduction import count_nonzero, cumulative_sum, diff, sum
from adjoint.functions.shape import moveaxis
from adjoint.operands import constant_like, run
from adjoint.primitives import ARRAY
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor[Any]
    indices: Tensor[Any]
    inverse_indices: Tensor[Any]
    counts: Tensor[Any]


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor[Any]
    counts: Tensor[Any]


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor[Any]
    inverse_indices: Tensor[Any]


def _order(x: Tensor[Any]) -> Tensor[Any]:
    """The places that sort a line, stably; complex numbers by their real parts, then by the imaginary ones."""
    if x.dtype.kind != "c":
        return run("argsort", (x,), axis=0, descending=False)  # type: ignore[no-any-return]
    first = run("argsort", (x.imag,), axis=0, descending=False)
    return first[run("argsort", (x.real[first],), axis=0, descending=False)]  # type: ignore[no-any-return]


def _fresh(line: Tensor[Any]) -> Tensor[Any]:
    """Where a sorted line has another element than before; nan is another one each time."""
    new = run("not_equal", (line[1:], line[:-1]))
    return run("pad", (new,), widths=((min(line.size, 1), 0),), value=True)  # type: ignore[no-any-return]


def _starts(line: Tensor[Any]) -> Tensor[Any]:
    (starts,) = nonzero(_fresh(line))
    return starts


def _at(line: Tensor[Any], places: Tensor[Any]) -> Tensor[Any]:
    """Elements at places that are known to be inside."""
    return run("index", (line, places), key=(ARRAY,))  # type: ignore[no-any-return]


def _counts(starts: Tensor[Any], size: int) -> Tensor[Any]:
    """How many elements each run of a sorted line of this size has."""
    return diff(run("pad", (starts,), widths=((0, 1),), value=size))


def _inverse(x: Tensor[Any], order: Tensor[Any], new: Tensor[Any]) -> Tensor[Any]:
    """For each element of x the number of its run in the sorted line."""
    number = cumulative_sum(new) - 1
    zeros = made(number.device, "full", shape=number.shape, value=0, dtype=int64)
    return run("reshape", (run("index_set", (zeros, number, order), key=(ARRAY,)),), shape=x.shape)  # type: ignore[no-any-return]


def unique_all(x: Operand[B], /) -> UniqueAll:
    """The distinct elements in order, where each is found first in the flat x, which one each element of x is, and
    how often each occurs.

    nan differs from itself, zeros of either sign are one. Gradients flow from the values to the elements found first.
    Raises ShapeError inside vmap, where the examples would differ in shape.

    >>> import adjoint as ad
    >>> found = ad.unique_all(ad.tensor([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 3], [1, 0], [1, 0, 1], [1, 2])
    """
    x = as_tensor(x, "unique_all")
    flat = run("reshape", (x,), shape=(x.size,))
    order = _order(flat)
    new = _fresh(_at(flat, order))
    (starts,) = nonzero(new)
    first = _at(order, starts)
    return UniqueAll(_at(flat, first), first, _inverse(x, order, new), _counts(starts, x.size))


def unique_counts(x: Operand[B], /) -> UniqueCounts:
    """The distinct elements in order, and how often each occurs. See `unique_all`."""
    line = _sorted(x, "unique_counts")
    starts = _starts(line)
    return UniqueCounts(_at(line, starts), _counts(starts, line.size))


def unique_inverse(x: Operand[B], /) -> UniqueInverse:
    """The distinct elements in order, and which one each element of x is. See `unique_all`."""
    found = unique_all(as_tensor(x, "unique_inverse"))
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Operand[B], /) -> Tensor[B]:
    """The distinct elements in order. See `unique_all`.

    >>> import adjoint as ad
    >>> ad.unique_values(ad.tensor([2.0, 1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    line = _sorted(x, "unique_values")
    return _at(line, _starts(line))


@explained
def unique(
    x: Operand[B],
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    **unknown: Never,
) -> Any:
    """The distinct elements in order, or with an axis the distinct slices along it, as NumPy's.

    Parameters
    ----------
    x
        Of any shape and dtype.
    return_index, return_inverse, return_counts
        Whether also to give where each is found first, which one each element is, and how often each occurs; int64.
    axis
        None for elements of the flat tensor. Slices are ordered by their first elements, then by the next.
    equal_nan
        Whether all nans are one; slices with a nan differ always.
    sorted
        Taken for NumPy's sake: the order is what it is.

    Returns
    -------
    The values, or a tuple of them and of what was asked for. Gradients flow from values to what was found first.

    Raises
    ------
    ShapeError, AxisError
        Inside vmap, where the examples would differ in shape; an axis that is not there.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.unique(ad.tensor([[1, 2], [0, 3], [1, 2]]), axis=0).tolist()
    [[0, 3], [1, 2]]
    """
    if unknown:
        raise keyword_error(unique, unknown)
    asked = [as_flag(flag, "unique") for flag in (return_index, return_inverse, return_counts)]
    if axis is None:
        found: Any = _one_nan(*unique_all(x)) if as_flag(equal_nan, "unique", "equal_nan") else unique_all(x)
    else:
        x = as_tensor(x, "unique")
        place = as_axis(axis, x.ndim, "unique")
        known = np.unique(
            own_values(x, "unique"), return_index=True, return_inverse=True, return_counts=True, axis=place
        )
        places, inverse, counts = (constant_like(each.reshape(-1), x, "unique") for each in known[1:])
        found = (run("index", (x, places), key=(*[slice(None)] * place, ARRAY)), places, inverse, counts)
    values, *others = found
    given = [each for wanted, each in zip(asked, others, strict=True) if wanted]
    return (values, *given) if given else values


def _one_nan(values: Tensor[Any], places: Tensor[Any], inverse: Tensor[Any], counts: Tensor[Any]) -> tuple[Any, ...]:
    """What `unique_all` found, all nans made one; they stand at the end."""
    absent = int(count_nonzero(isnan(values))) if values.dtype.kind in INEXACT else 0
    if absent < 2:
        return values, places, inverse, counts
    last = values.size - absent
    counts = run("concat", (counts[:last], sum(counts[last:], keepdims=True)), axis=0)
    return values[: last + 1], places[: last + 1], run("minimum", (inverse, last)), counts


@explained
def unique_consecutive(
    x: Operand[B],
    /,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    **unknown: Never,
) -> Any:
    """The elements of the flat tensor, or slices along an axis, that differ from the one before, as PyTorch's.

    With them which one each is, and how many there are of each, if asked for; int64. nan differs from itself. Gradients
    flow to the first of equal ones. Raises ShapeError inside of vmap, where the examples would differ in shape.

    >>> import adjoint as ad
    >>> ad.unique_consecutive(ad.tensor([1, 1, 2, 1]), return_counts=True)[1].tolist()
    [2, 1, 1]
    """
    if unknown:
        raise keyword_error(unique_consecutive, unknown)
    x = as_tensor(x, "unique_consecutive")
    asked = [as_flag(flag, "unique_consecutive") for flag in (return_inverse, return_counts)]
    flat = axis is None
    line = (
        run("reshape", (x,), shape=(x.size,)) if flat else moveaxis(x, as_axis(axis, x.ndim, "unique_consecutive"), 0)
    )
    new = run("not_equal", (line[1:], line[:-1]))
    new = run("any", (new,), axis=tuple(range(1, line.ndim)), keepdims=False)
    n = line.shape[0]
    new = run("pad", (new,), widths=((min(n, 1), 0),), value=True)
    (starts,) = nonzero(new)
    values = _at(line, starts)
    inverse = cumulative_sum(new) - 1
    found = [run("reshape", (inverse,), shape=x.shape) if flat else inverse, _counts(starts, n)]
    given = [each for wanted, each in zip(asked, found, strict=True) if wanted]
    values = values if axis is None else moveaxis(values, 0, axis)
    return (values, *given) if given else values


def _sorted(value: Any, name: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    flat = run("reshape", (x,), shape=(x.size,))
    if x.dtype.kind == "c":
        return flat[_order(flat)]  # type: ignore[no-any-return]
    return run("sort", (flat,), axis=0, descending=False)  # type: ignore[no-any-return]


def isin(x: Operand[B], values: Any, /, *, invert: bool = False) -> Tensor[B]:
    """Whether each element of x is among the values, or with `invert` whether it is not. nan equals none.

    Raises DtypeError for complex numbers.

    >>> import adjoint as ad
    >>> ad.isin(ad.tensor([1, 2, 3]), [2, 5]).tolist()
    [False, True, False]
    """
    x, among = as_tensors([x, values], "isin")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"isin: complex numbers have no order to search by; received {x.dtype}")
    found = run("isin", (x, run("reshape", (among,), shape=(among.size,))))
    return run("logical_not", (found,)) if as_flag(invert, "isin", "invert") else found  # type: ignore[no-any-return]
