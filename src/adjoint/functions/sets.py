"""Sets of elements: what is there, how often, and where first. Shapes depend on values, as with boolean masks."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from adjoint import errors
from adjoint.backend import Backend
from adjoint.dtypes import int64
from adjoint.functions.arguments import as_flag, as_tensor, as_tensors
from adjoint.functions.creation import made
from adjoint.functions.indexing import nonzero
from adjoint.functions.reduction import cumulative_sum, diff
from adjoint.operands import run
from adjoint.primitives import ARRAY
from adjoint.tensor import Tensor

B = TypeVar("B", bound=Backend)


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


def unique_all(x: Tensor[B], /) -> UniqueAll:
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


def unique_counts(x: Tensor[B], /) -> UniqueCounts:
    """The distinct elements in order, and how often each occurs. See `unique_all`."""
    line = _sorted(x, "unique_counts")
    starts = _starts(line)
    return UniqueCounts(_at(line, starts), _counts(starts, line.size))


def unique_inverse(x: Tensor[B], /) -> UniqueInverse:
    """The distinct elements in order, and which one each element of x is. See `unique_all`."""
    found = unique_all(as_tensor(x, "unique_inverse"))
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor[B], /) -> Tensor[B]:
    """The distinct elements in order. See `unique_all`.

    >>> import adjoint as ad
    >>> ad.unique_values(ad.tensor([2.0, 1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    line = _sorted(x, "unique_values")
    return _at(line, _starts(line))


def _sorted(value: Any, name: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    flat = run("reshape", (x,), shape=(x.size,))
    if x.dtype.kind == "c":
        return flat[_order(flat)]  # type: ignore[no-any-return]
    return run("sort", (flat,), axis=0, descending=False)  # type: ignore[no-any-return]


def isin(x: Tensor[B], values: Any, /, *, invert: bool = False) -> Tensor[B]:
    """Whether each element of x is among the values, or with `invert` whether it is not. nan is among none.

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
