"""Discrete Fourier transforms of one axis and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_integer,
    axes_in_order,
    check_shape,
    explained,
    inexact,
    integers,
    is_integer,
    keyword_error,
)
from adjoint.operands import cast, run
from adjoint.primitives.linalg import complex_dtype
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B

_NORMS = ("backward", "ortho", "forward")


def floating(value: Any, name: str, *beside: Any, real: bool = False) -> Tensor[Any]:
    """An argument as a tensor of a dtype that transforms know, if it has to be a real one."""
    x = inexact(value, name, *beside)
    if real and x.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real numbers, received {x.dtype}; take .real, or fft for both parts")
    return cast(x, dtypes.summing(x.dtype))


def complex_of(value: Any, name: str, *beside: Any) -> Tensor[Any]:
    """An argument as a complex tensor of a dtype that transforms know."""
    x = floating(value, name, *beside)
    return cast(x, dtypes.as_dtype(complex_dtype(x.dtype)))


def _norm(norm: Any, name: str) -> str:
    return as_choice(norm, name, "norm", _NORMS)  # type: ignore[no-any-return]


def _place(axis: Any, x: Tensor[Any], name: str) -> int:
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis to transform along")
    return as_axis(axis, x.ndim, name)


def _places(s: Any, axes: Any, x: Tensor[Any], name: str) -> tuple[list[int], list[int | None]]:
    """The axes of a transform of several, and their sizes, None for what they are."""
    sizes = None if s is None else _sizes(s, name)
    if axes is None:
        places = list(range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim))
    else:
        places = list(axes_in_order(axes, x.ndim, name))
    if not places or places[0] < 0:
        raise errors.AxisError(f"{name}: {len(places)} axes of a tensor of {x.ndim} axes to transform along")
    if sizes is not None and len(sizes) != len(places):
        raise errors.ArgumentError(f"{name}: {len(sizes)} sizes for {len(places)} axes")
    if sizes is None:
        return places, [None] * len(places)
    known = dict(zip(places, sizes, strict=True))  # all at once: some leaves make what is too large axis by axis
    check_shape(tuple([max(known.get(i) or n, 0) for i, n in enumerate(x.shape)]), name)
    return places, sizes


def _sizes(s: Any, name: str) -> list[int | None]:
    """The sizes that are given, None for what they are: NumPy and PyTorch write -1 for that."""
    given = list(s) if isinstance(s, (tuple, list)) else list(integers(s, name, "sizes s"))
    return [None if n is None or (is_integer(n) and n == -1) else integers((n,), name, "sizes s")[0] for n in given]


def sized(x: Tensor[Any], axis: int, n: Any, name: str) -> Tensor[Any]:
    """Cut or filled with zeros at the end of an axis."""
    have = x.shape[axis]
    size = have if n is None else as_integer(n, name, "n")
    if size < 1:
        raise errors.ShapeError(f"{name}: a transform of {size} elements along axis {axis}; it takes one or more")
    if size < have:
        return run("index", (x,), key=(*[slice(None)] * axis, slice(0, size, 1)))  # type: ignore[no-any-return]
    if size > have:
        check_shape((*x.shape[:axis], size, *x.shape[axis + 1 :]), name)
        widths = tuple((0, size - have) if i == axis else (0, 0) for i in range(x.ndim))
        return run("pad", (x,), widths=widths, value=0)  # type: ignore[no-any-return]
    return x


# --- transforms ----------------------------------------------------------------------------------


def _along(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = complex_of(x, name)
    place = _place(axis, x, name)
    return run("fft", (sized(x, place, n, name),), axis=(place,), inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


def _over(name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = complex_of(x, name)
    places, sizes = _places(s, axes, x, name)
    for place, n in zip(places, sizes, strict=True):
        x = sized(x, place, n, name)
    return run("fft", (x,), axis=tuple(sorted(places)), inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


@explained
def fft(x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never) -> Tensor[B]:
    """The discrete Fourier transform along an axis: out_k is the sum of x_j exp(-2 pi i j k / n).

    x is real or complex, the result complex. `n` elements are taken: x is cut, or filled with zeros at its end.
    Raises AxisError for an axis that is not there, ShapeError for no elements, ArgumentError for another norm.

    >>> import adjoint as ad
    >>> ad.fft.fft(ad.tensor([1.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if unknown:
        raise keyword_error(fft, unknown)
    return _along("fft", x, n, axis, norm, False)


@explained
def ifft(x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never) -> Tensor[B]:
    """The inverse of `fft`. Arguments and errors are the same.

    >>> import adjoint as ad
    >>> ad.fft.ifft(ad.tensor([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if unknown:
        raise keyword_error(ifft, unknown)
    return _along("ifft", x, n, axis, norm, True)


@explained
def fftn(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """The transform along several axes, or all: the last len(s) where sizes `s` are given without axes.

    None or -1 among the sizes leaves an axis as it is.

    Raises AxisError for axes that are not there or named twice, ArgumentError for sizes that do not pair up with them.

    >>> import adjoint as ad
    >>> ad.fft.fftn(ad.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    if unknown:
        raise keyword_error(fftn, unknown)
    return _over("fftn", x, s, axes, norm, False)


@explained
def ifftn(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """The inverse of `fftn`. Arguments and errors are the same."""
    if unknown:
        raise keyword_error(ifftn, unknown)
    return _over("ifftn", x, s, axes, norm, True)


@explained
def fft2(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`fftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(fft2, unknown)
    return _over("fft2", x, s, axes, norm, False)


@explained
def ifft2(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`ifftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(ifft2, unknown)
    return _over("ifft2", x, s, axes, norm, True)


@explained
def rfft(x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never) -> Tensor[B]:
    """The first n // 2 + 1 coefficients of the `fft` of real numbers; the others are their conjugates.

    Raises DtypeError for complex x, else as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.rfft(ad.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    if unknown:
        raise keyword_error(rfft, unknown)
    return _half("rfft", x, n, axis, norm, False)


@explained
def ihfft(
    x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never
) -> Tensor[B]:
    """The inverse of `hfft`: the first n // 2 + 1 coefficients of the `ifft` of real numbers. Errors as `rfft`."""
    if unknown:
        raise keyword_error(ihfft, unknown)
    return _half("ihfft", x, n, axis, norm, True)


def _half(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = floating(x, name, real=True)
    place = _place(axis, x, name)
    return run("rfft", (sized(x, place, n, name),), axis=place, inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


@explained
def irfft(
    x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never
) -> Tensor[B]:
    """The inverse of `rfft`: `n` real numbers, 2 (m - 1) for m coefficients if None.

    Of the first coefficient, and of the middle one of an even n, the real part counts. Errors as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.irfft(ad.fft.rfft(ad.tensor([1.0, 2.0, 3.0])), n=3).tolist()
    [1.0, 2.0, 3.0]
    """
    if unknown:
        raise keyword_error(irfft, unknown)
    return _whole("irfft", x, n, axis, norm, True)


@explained
def hfft(x: Operand[B], /, n: int | None = None, axis: int = -1, norm: str = "backward", **unknown: Never) -> Tensor[B]:
    """The `fft` of numbers whose second half are the conjugates of the first, which are given: `n` real numbers.

    That is 2 (m - 1) for m given numbers if None. Errors as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.hfft(ad.tensor([1.0, 1.0])).tolist()
    [2.0, 0.0]
    """
    if unknown:
        raise keyword_error(hfft, unknown)
    return _whole("hfft", x, n, axis, norm, False)


def _whole(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = complex_of(x, name)
    place = _place(axis, x, name)
    size = 2 * (x.shape[place] - 1) if n is None else as_integer(n, name, "n")
    if size < 1:
        raise errors.ShapeError(f"{name}: {x.shape[place]} coefficients make {size} numbers; give n= of one or more")
    x = sized(x, place, size // 2 + 1, name)
    return run("hfft", (x,), axis=place, size=size, inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


@explained
def rfftn(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`rfft` along the last of the axes, then `fftn` along the others. Errors as these.

    >>> import adjoint as ad
    >>> ad.fft.rfftn(ad.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    if unknown:
        raise keyword_error(rfftn, unknown)
    return _half_over("rfftn", x, s, axes, norm, False)


@explained
def rfft2(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`rfftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(rfft2, unknown)
    return _half_over("rfft2", x, s, axes, norm, False)


@explained
def ihfftn(
    x: Operand[B],
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """The inverse of `hfftn`: `ihfft` along the last of the axes, then `ifftn` along the others. Errors as `rfftn`."""
    if unknown:
        raise keyword_error(ihfftn, unknown)
    return _half_over("ihfftn", x, s, axes, norm, True)


@explained
def ihfft2(
    x: Operand[B],
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`ihfftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(ihfft2, unknown)
    return _half_over("ihfft2", x, s, axes, norm, True)


def _half_over(name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = floating(x, name, real=True)
    places, sizes = _places(s, axes, x, name)
    out = _half(name, x, sizes[-1], places[-1], norm, inverse)
    return _over(name, out, _known(sizes, out, places), places[:-1], norm, inverse) if places[1:] else out


def _known(sizes: list[int | None], x: Tensor[Any], places: list[int]) -> list[int]:
    return [x.shape[i] if n is None else n for n, i in zip(sizes[:-1], places[:-1], strict=True)]


@explained
def irfftn(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """The inverse of `rfftn`; the last of the sizes `s` is 2 (m - 1) for m coefficients if None. Errors as `irfft`."""
    if unknown:
        raise keyword_error(irfftn, unknown)
    return _whole_over("irfftn", x, s, axes, norm, True)


@explained
def irfft2(
    x: Operand[B],
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`irfftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(irfft2, unknown)
    return _whole_over("irfft2", x, s, axes, norm, True)


@explained
def hfftn(
    x: Operand[B],
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`fftn` along all of the axes but the last, then `hfft` along that one. Arguments and errors as `irfftn`.

    >>> import adjoint as ad
    >>> ad.fft.hfftn(ad.ones((2, 2))).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    if unknown:
        raise keyword_error(hfftn, unknown)
    return _whole_over("hfftn", x, s, axes, norm, False)


@explained
def hfft2(
    x: Operand[B],
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **unknown: Never,
) -> Tensor[B]:
    """`hfftn` along two axes, the last ones."""
    if unknown:
        raise keyword_error(hfft2, unknown)
    return _whole_over("hfft2", x, s, axes, norm, False)


def _whole_over(name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = complex_of(x, name)
    places, sizes = _places(s, axes, x, name)
    if places[1:]:
        x = _over(name, x, _known(sizes, x, places), places[:-1], norm, inverse)
    return _whole(name, x, sizes[-1], places[-1], norm, inverse)
