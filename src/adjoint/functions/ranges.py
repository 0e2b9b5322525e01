"""Evenly spaced numbers, and grids of them."""

from __future__ import annotations

import math
from typing import Any, Never, overload

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.dtypes import DType
from adjoint.functions.arguments import (
    ELEMENTS,
    as_choice,
    as_constant,
    as_device,
    as_flag,
    as_number,
    as_size,
    as_tensor,
    computed,
    explained,
    keyword_error,
)
from adjoint.functions.creation import D, Default, asarray, dtype_for, is_double, made
from adjoint.functions.elementwise import where
from adjoint.operands import cast, has_none_yet, in_dtype, run
from adjoint.primitives.sizes import as_recorded, stands
from adjoint.tensor import Number, Operand, Tensor


@overload
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: None = None
) -> Default: ...
@overload
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: D
) -> Tensor[D]: ...
@overload
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: str
) -> Tensor[Any]: ...
@explained
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    **unknown: Never,
) -> Tensor[Any]:
    """Evenly spaced values from `start` (0 if only one bound is given) to before `stop`.

    The result is a vector. Ints give int64, floats the default dtype. Raises ArgumentError for a step of zero.

    >>> import adjoint as ad
    >>> ad.arange(5).tolist()
    [0, 1, 2, 3, 4]
    """
    if unknown:
        raise keyword_error(arange, unknown)
    if stop is None:
        start, stop = 0, start
    bounds: list[Any] = [as_number(value, "arange", "a bound or step") for value in (start, stop, step)]
    start, stop, step = bounds
    for value in bounds:
        if not math.isfinite(as_recorded(value)):
            raise errors.ArgumentError(f"arange: a bound or step is finite, received {value}")
    if step == 0:
        raise errors.ArgumentError("arange: the step must not be zero")
    first, last, by = [float(as_recorded(value)) for value in bounds]
    if (last - first) / by > ELEMENTS:
        raise errors.ShapeError(f"arange: from {start} to {stop} there are too many steps of {step}; take longer ones")
    ints = all(isinstance(v, (int, np.integer)) for v in (start, stop, step))
    place = as_device(device)
    wanted = dtypes.default_int if dtype is None and ints else dtype_for(dtype, place)
    return made(place, "arange", start=start, stop=stop, step=step, dtype=wanted)


@overload
def linspace(
    start: complex, stop: complex, /, num: int, endpoint: bool = True, *, dtype: Any = None, device: None = None
) -> Default: ...
@overload
def linspace(
    start: complex, stop: complex, /, num: int, endpoint: bool = True, *, dtype: Any = None, device: D
) -> Tensor[D]: ...
@overload
def linspace(
    start: complex, stop: complex, /, num: int, endpoint: bool = True, *, dtype: Any = None, device: str
) -> Tensor[Any]: ...
@explained
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    endpoint: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    **unknown: Never,
) -> Tensor[Any]:
    """`num` evenly spaced values from `start` to `stop`, which is among them if `endpoint`.

    The result is a vector (num,), of the default dtype unless one is given: of the complex one beside a complex number.

    >>> import adjoint as ad
    >>> ad.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> ad.linspace(0, 1j, 3).tolist()
    [0j, 0.5j, 1j]
    """
    if unknown:
        raise keyword_error(linspace, unknown)
    n, endpoint = as_size(num, "linspace", "num"), as_flag(endpoint, "linspace", "endpoint")
    place = as_device(device)
    turned = dtype is None and any(isinstance(v, complex | np.complexfloating) for v in (start, stop))
    wanted = dtypes.default_on(place, "c") if turned else dtype_for(dtype, place)
    if any([isinstance(v, Number) and has_none_yet(v) for v in (start, stop)]) and wanted.kind == "f":
        return _spaced_later(start, stop, n, endpoint, wanted)
    first, last = as_constant(start, wanted, "linspace"), as_constant(stop, wanted, "linspace")
    return made(place, "linspace", start=first, stop=last, num=n, endpoint=endpoint, dtype=wanted)


def _spaced_later(start: Any, stop: Any, n: int, endpoint: bool, dtype: DType) -> Tensor[Any]:
    """Numbers between two of which a program that is recorded computes one: as NumPy does it, in double precision."""
    like = start if start.__class__ is Number else stop
    first, last = (in_dtype(v, dtypes.float64, like._device, "linspace") for v in (start, stop))
    places = made(like._device, "arange", start=0, stop=n, step=1, dtype=dtypes.float64)
    values = places * ((last - first) / max(n - endpoint, 1)) + first
    if endpoint and n > 1:
        values = where(places == n - 1, last, values)
    return cast(values, dtype)


@explained
def logspace(
    start: float, stop: float, /, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, *,
    device: Any = None, **unknown: Never,
) -> Tensor[Any]:  # fmt: skip
    """Powers of a base with evenly spaced exponents from `start` to `stop`, of the default dtype unless one is given.

    The result is a vector (num,).

    >>> import adjoint as ad
    >>> ad.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    if unknown:
        raise keyword_error(logspace, unknown)
    first, last, factor = (float(as_number(v, "logspace", "a bound")) for v in (start, stop, base))
    count, closed = as_size(num, "logspace", "num"), as_flag(endpoint, "logspace", "endpoint")
    place = as_device(device)
    if stands(count) and is_double(place):
        return cast(_powers(place, factor, first, last, count, closed), dtype_for(dtype, place))
    values = computed("logspace", np.logspace, first, last, count, endpoint=closed, base=factor)
    return asarray(values.astype(dtype_for(dtype, place)), device=place)


def _powers(place: Backend, base: float, first: float, last: float, count: int, closed: bool) -> Tensor[Any]:
    """The powers of a base with so many exponents, in double precision."""
    exponents = made(place, "linspace", start=first, stop=last, num=count, endpoint=closed, dtype=dtypes.float64)
    return run("pow", (base, exponents))  # type: ignore[no-any-return]


def geomspace(
    start: float, stop: float, /, num: int = 50, endpoint: bool = True, dtype: Any = None, *, device: Any = None
) -> Tensor[Any]:
    """Values from `start` to `stop`, each the same multiple of the one before.

    The result is a vector (num,), of the default dtype unless one is given. Raises ArgumentError for bounds of
    which one is zero, or that differ in sign.

    >>> import adjoint as ad
    >>> ad.geomspace(1, 8, 4).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    first, last = (float(as_number(v, "geomspace", "a bound")) for v in (start, stop))
    count, closed = as_size(num, "geomspace", "num"), as_flag(endpoint, "geomspace", "endpoint")
    if not first * last > 0:
        raise errors.ArgumentError(f"geomspace: bounds have one sign and are not zero; received {start} and {stop}")
    place = as_device(device)
    if stands(count) and is_double(place):  # as NumPy does it
        sign = -1.0 if first < 0 else 1.0
        powers = _powers(place, 10.0, math.log10(abs(first)), math.log10(abs(last)), count, closed) * sign
        places = made(place, "arange", start=0, stop=count, step=1, dtype=dtypes.int64)
        powers = where(places == 0, first, powers)
        return cast(where(places == count - 1, last, powers) if closed else powers, dtype_for(dtype, place))
    values = computed("geomspace", np.geomspace, first, last, count, endpoint=closed)
    return asarray(values.astype(dtype_for(dtype, place)), device=place)


def meshgrid(*arrays: Operand[D], indexing: str = "xy") -> tuple[Tensor[D], ...]:
    """Coordinate tensors of a grid from one-dimensional ones; `indexing` is "xy" or "ij".

    Vectors (a,) and (b,) give two tensors (b, a) for "xy", the default, or (a, b) for "ij".
    """
    as_choice(indexing, "meshgrid", "indexing", ("xy", "ij"))
    tensors = [as_tensor(x, "meshgrid", *arrays) for x in arrays]
    sizes = [x.size for x in tensors]
    places = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        places[0], places[1] = 1, 0
    shape = [0] * len(tensors)
    for place, n in zip(places, sizes, strict=True):
        shape[place] = n
    out = []
    for x, place in zip(tensors, places, strict=True):
        line = run("reshape", (x,), shape=tuple(x.size if i == place else 1 for i in range(len(tensors))))
        out.append(run("broadcast_to", (line,), shape=tuple(shape)))
    return tuple(out)
