"""Arrays of places and of spaced values, out of nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_integer, as_number, as_shape, as_tensor
from adjoint.functions.creation import ShapeLike, asarray
from adjoint.operands import cast, deferred_check
from adjoint.tensor import Tensor


def tri(rows: int, columns: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Ones at and below the k-th diagonal, zeros above; float32 unless a dtype is given."""
    n, m = as_shape((rows, rows if columns is None else columns), "tri")
    return asarray(np.tri(n, m, as_integer(k, "tri", "k"), dtype=_dtype(dtype)), device=device)


def _dtype(dtype: Any) -> dtypes.DType:
    return dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)


def _triangle(rows: Any, columns: Any, k: Any, device: Any, name: str) -> tuple[Tensor[Any], Tensor[Any]]:
    n, m = as_shape((rows, rows if columns is None else columns), name)
    row, column = (np.tril_indices if name == "tril_indices" else np.triu_indices)(n, as_integer(k, name, "k"), m)
    return asarray(row, device=device), asarray(column, device=device)


def tril_indices(rows: int, columns: int | None = None, /, *, k: int = 0, device: Any = None) -> Any:
    """The rows and the columns of the elements at and below the k-th diagonal of a matrix: two vectors of int64."""
    return _triangle(rows, columns, k, device, "tril_indices")


def triu_indices(rows: int, columns: int | None = None, /, *, k: int = 0, device: Any = None) -> Any:
    """The rows and the columns of the elements at and above the k-th diagonal of a matrix: two vectors of int64."""
    return _triangle(rows, columns, k, device, "triu_indices")


def diag_indices(n: int, /, ndim: int = 2, *, device: Any = None) -> Any:
    """The places on the diagonal of a cube of `ndim` axes of size n: for each axis a vector of int64."""
    (count,) = as_shape(as_integer(n, "diag_indices", "n"), "diag_indices")
    axes = as_integer(ndim, "diag_indices", "ndim")
    return (asarray(np.arange(count), device=device),) * axes


def unravel_index(places: Any, shape: ShapeLike, /) -> Any:
    """The place in each axis of elements that are named by their place in the flattened tensor of a shape.

    Raises DtypeError for other than integers, OutOfRangeError for places outside.

    >>> import adjoint as ad
    >>> [i.tolist() for i in ad.unravel_index(ad.tensor([5, 0]), (2, 3))]
    [[1, 0], [2, 0]]
    """
    sizes = as_shape(shape, "unravel_index")
    rest = _places(places, math.prod(sizes), "unravel_index")
    found = []
    for n in reversed(sizes):
        found.append(rest % n)
        rest = rest // n
    return tuple(reversed(found))


def ravel_multi_index(places: Sequence[Any], shape: ShapeLike, /) -> Tensor[Any]:
    """The place in the flattened tensor of a shape of elements that are named by their place in each axis.

    Raises ArgumentError for another number of axes, DtypeError for other than integers, OutOfRangeError for places
    outside.

    >>> import adjoint as ad
    >>> ad.ravel_multi_index((ad.tensor([1, 0]), ad.tensor([2, 0])), (2, 3)).tolist()
    [5, 0]
    """
    sizes = as_shape(shape, "ravel_multi_index")
    if not isinstance(places, (list, tuple)) or len(places) != len(sizes) or not sizes:
        raise errors.ArgumentError(
            f"ravel_multi_index: expected places for each of {len(sizes)} axes, received {errors.shown(places)}"
        )
    out: Any = 0
    for line, n in zip(places, sizes, strict=True):
        out = out * n + _places(line, n, "ravel_multi_index")
    return out  # type: ignore[no-any-return]


def _places(value: Any, size: int, name: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    if x.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: places are integers, received {x.dtype}")
    x = deferred_check(
        x,
        lambda values: (values.min() >= 0) & (values.max() < size),
        lambda values: errors.OutOfRangeError(
            f"{name}: expected places from 0 to {size - 1}, received some from {values.min()} to {values.max()}"
        ),
    )
    return cast(x, dtypes.int64)


def indices(shape: ShapeLike, /, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The place of each element of a shape: along a first axis those in each axis; int64 unless a dtype is given."""
    wanted = dtypes.default_int if dtype is None else dtypes.as_dtype(dtype)
    return asarray(np.indices(as_shape(shape, "indices"), dtype=wanted), device=device)


def logspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
    device: Any = None,
) -> Tensor[Any]:  # fmt: skip
    """Powers of a base with evenly spaced exponents from `start` to `stop`; float32 unless a dtype is given.

    >>> import adjoint as ad
    >>> ad.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    bounds = [as_number(v, "logspace", "a bound") for v in (start, stop, base)]
    (count,) = as_shape(num, "logspace")
    values = np.logspace(bounds[0], bounds[1], count, endpoint=endpoint, base=bounds[2])
    return asarray(values.astype(_dtype(dtype)), device=device)


def geomspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """Values from `start` to `stop` of which each is the same multiple of the one before.

    float32 unless a dtype is given. Raises ArgumentError for bounds of which one is zero, or that differ in sign.

    >>> import adjoint as ad
    >>> ad.geomspace(1, 8, 4).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    first, last = (as_number(v, "geomspace", "a bound") for v in (start, stop))
    (count,) = as_shape(num, "geomspace")
    if not first * last > 0:
        raise errors.ArgumentError(f"geomspace: bounds have one sign and are not zero; received {start} and {stop}")
    return asarray(np.geomspace(first, last, count, endpoint=endpoint).astype(_dtype(dtype)), device=device)
