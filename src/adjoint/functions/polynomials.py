"""Polynomials as vectors of coefficients, that of the highest power first: sums, products, quotients, roots, fits."""

from __future__ import annotations

from typing import Any

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_integer, as_number, as_tensor, as_tensors, as_wide, inexact
from adjoint.functions.calculus import vander
from adjoint.functions.convolution import convolve
from adjoint.functions.creation import places_beside, zeros_like
from adjoint.functions.elementwise import where
from adjoint.functions.padding import pad
from adjoint.functions.shape import concat, reshape
from adjoint.operands import cast, constant_like, operand, run
from adjoint.primitives import real_dtype
from adjoint.tensor import Operand, Tensor, wrap
from adjoint.variables import B


def _coefficients(value: Any, name: str) -> Tensor[Any]:
    p = as_tensor(value, name)
    if p.ndim != 1:
        raise errors.ShapeError(f"{name}: coefficients are a vector, received shape {p.shape}")
    return cast(p, dtypes.int64) if p.dtype.kind == "b" else p


def polyadd(a: Operand[B], b: Any, /) -> Tensor[B]:
    """The sum of two polynomials; as many coefficients as the longer one has.

    >>> import adjoint as ad
    >>> ad.polyadd(ad.tensor([1.0, 2.0]), ad.tensor([3.0, 4.0, 5.0])).tolist()
    [3.0, 5.0, 7.0]
    """
    a, b = (_coefficients(p, "polyadd") for p in as_tensors([a, b], "polyadd"))
    longer = max(a.size, b.size)
    return pad(a, (longer - a.size, 0)) + pad(b, (longer - b.size, 0))


def _filled(name: str, a: Tensor[Any], b: Tensor[Any]) -> None:
    """Raises ShapeError for a polynomial without coefficients."""
    if not a.size or not b.size:
        raise errors.ShapeError(f"{name}: expected polynomials of one coefficient or more, received {a.size}, {b.size}")


def polymul(a: Operand[B], b: Any, /) -> Tensor[B]:
    """The product of two polynomials of at least one coefficient each.

    >>> import adjoint as ad
    >>> ad.polymul(ad.tensor([1.0, 1.0]), ad.tensor([1.0, -1.0])).tolist()
    [1.0, 0.0, -1.0]
    """
    a, b = (_coefficients(p, "polymul") for p in as_tensors([a, b], "polymul"))
    _filled("polymul", a, b)
    return convolve(a, b)


def polydiv(u: Any, v: Any, /) -> tuple[Any, Any]:
    """The quotient and the remainder of two polynomials: of len(u) - len(v) + 1 and len(v) - 1 coefficients, or one.

    The remainder keeps its leading zeros, so that shapes do not depend on values; it is u, and the quotient zero, for a
    divisor that is longer. Integers give the default dtype.
    Raises ShapeError for other than vectors with elements, SingularError where v begins with zero.

    >>> import adjoint as ad
    >>> q, r = ad.polydiv(ad.tensor([3.0, 5.0, 2.0]), ad.tensor([2.0, 1.0]))
    >>> q.tolist(), r.tolist()
    ([1.5, 1.75], [0.25])
    """
    name = "polydiv"
    u, v = (inexact(_coefficients(p, name), name) for p in as_tensors([u, v], name))
    _filled(name, u, v)
    count = u.size - v.size + 1
    if count < 1:
        return zeros_like(u[:1]), u
    # long division as one triangular system: v times the quotient has the first coefficients of u
    places = places_beside(v, count)
    column = pad(v[:count], (0, max(count - v.size, 0)))
    shifted = column[constant_like(abs(places[:, None] - places), v, name)]
    system = (run("tril", (shifted,), k=0), reshape(u[:count], (count, 1)))
    quotient = reshape(run("solve_triangular", system, upper=False, unit=False), (count,))
    if v.size == 1:
        return quotient, zeros_like(u[:1])
    return quotient, (u - convolve(quotient, v))[count:]


def roots(p: Operand[B], /) -> Tensor[B]:
    """The roots of a polynomial whose first coefficient is not zero: complex, in no order.

    By the eigenvalues of its companion matrix. Gradients are those of simple roots; a multiple one has none, and what
    is found for it is large or a BackwardError. Integers give the default dtype.
    Raises ShapeError for other than a vector, SingularError where it begins with zero, or for nan and inf.

    >>> import adjoint as ad
    >>> sorted(ad.roots(ad.tensor([1.0, -3.0, 2.0])).real.round().tolist())
    [1.0, 2.0]
    """
    p = inexact(_coefficients(p, "roots"), "roots")
    n = max(p.size - 1, 0)
    below = wrap(p.device.eye(rows=max(n - 1, 0), columns=n, k=0, dtype=p.dtype), p.device)
    first = reshape(-p[1:] / p[:1], (min(n, 1), n))
    try:
        return run("eigvals", (concat([first, below]),))  # type: ignore[no-any-return]
    except errors.SingularError:
        raise errors.SingularError(
            "roots: the first coefficient is zero, or some are nan or inf; a slice, p[1:], drops a leading zero"
        ) from None


def poly(roots: Operand[B], /) -> Tensor[B]:
    """The polynomial of which these are the roots, or the characteristic one of a square matrix; it begins with 1.

    Real for real roots and for real matrices, whose eigenvalues are taken, and so are their gradients.
    Raises NotSquareError for what is neither a vector nor a square matrix.

    >>> import adjoint as ad
    >>> ad.poly(ad.tensor([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    x = inexact(roots, "poly")
    if x.ndim != 1 and (x.ndim != 2 or x.shape[0] != x.shape[1]):
        raise errors.NotSquareError(f"poly: expected a vector of roots or a square matrix, received shape {x.shape}")
    values = x if x.ndim == 1 else run("eigvals", (x,))
    out = wrap(values.device.full(shape=(1,), value=1, dtype=values.dtype), values.device)
    for i in range(values.size):
        out = pad(out, (0, 1)) - pad(out, (1, 0)) * values[i]
    return out.real if x.ndim == 2 and x.dtype.kind in dtypes.FLOATING else out


def polyder(p: Operand[B], /, m: int = 1) -> Tensor[B]:
    """The m-th derivative of a polynomial: m coefficients less, none for a constant. m is not negative.

    Of small integers the derivative is int64, as in NumPy.

    >>> import adjoint as ad
    >>> ad.polyder(ad.tensor([1.0, 5.0, 2.0])).tolist()
    [2.0, 5.0]
    """
    p = _coefficients(p, "polyder")
    m = as_integer(m, "polyder", "m", 0)
    if m >= p.size:  # none is left, as of the first alone
        p, m = p[:1], min(1, p.size)
    p = as_wide(p) if m else p
    for _ in range(m):
        powers = operand(places_beside(p, 0, p.size - 1, -1), p, "polyder")
        p = p[:-1] * cast(powers, p.dtype)
    return p


def polyint(p: Operand[B], /, m: int = 1, k: float = 0) -> Tensor[B]:
    """The m-th integral of a polynomial: m coefficients more, of which each integration adds the constant k.

    Integers give the default dtype. Raises ArgumentError for a negative m, and for one of more than 10 000.

    >>> import adjoint as ad
    >>> ad.polyint(ad.tensor([2.0, 5.0])).tolist()
    [1.0, 5.0, 0.0]
    """
    p = inexact(_coefficients(p, "polyint"), "polyint")
    if as_integer(m, "polyint", "m", 0) > 10_000:
        raise errors.ArgumentError(f"polyint: m is at most 10000, received {errors.shown(m)}")
    for _ in range(m):
        powers = operand(places_beside(p, 0, p.size, -1), p, "polyint")
        p = pad(p / cast(powers, p.dtype), (0, 1), value=k)
    return p


def polyfit(x: Operand[B], y: Any, deg: int, /, rcond: float | None = None, *, w: Any = None) -> Tensor[B]:
    """The polynomial of a degree that fits points best, by least squares: its coefficients, the highest power first.

    Parameters
    ----------
    x, y
        The coordinates of n points: vectors, or for several fits at once y of shape (n, k). Integers give the default
        dtype.
    deg
        The degree, from 0.
    w
        What the distance of each point is multiplied with before it is squared: a vector.
    rcond
        Singular values of at most this times the largest count as zeros; n times the dtype's epsilon if None.

    Returns
    -------
    A vector of deg + 1 coefficients, or for several fits a column of them for each. Gradients flow to x, y and w.

    Raises
    ------
    ShapeError, ArgumentError
        Points that are no vectors of one size, or none of them; a negative degree.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.polyfit(ad.tensor([0.0, 1.0, 2.0]), ad.tensor([1.0, 3.0, 5.0]), 1).round().tolist()
    [2.0, 1.0]
    """
    name = "polyfit"
    x, y, *weights = [inexact(v, name) for v in as_tensors([x, y] if w is None else [x, y, w], name)]
    degree = as_integer(deg, name, "the degree", 0)
    n = x.shape[0] if x.ndim == 1 else 0
    if not n or y.ndim not in (1, 2) or y.shape[0] != n or any(v.shape != (n,) for v in weights):
        shapes = ", ".join(str(v.shape) for v in (x, y, *weights))
        raise errors.ShapeError(
            f"{name}: expected vectors of one size, of at least one point; received shapes {shapes}"
        )
    left, right = vander(x, degree + 1), y if y.ndim == 2 else reshape(y, (n, 1))
    for v in weights:
        left, right = left * reshape(v, (n, 1)), right * reshape(v, (n, 1))
    size = run("vector_norm", (left,), axis=(0,), keepdims=True)  # columns of one size lose fewer digits
    size = cast(where(size == 0, 1.0, size), left.dtype)
    bound = (
        n * float(dtypes.finfo(real_dtype(left.dtype)).eps) if rcond is None else as_number(rcond, "polyfit", "rcond")
    )
    solution, _ = run("lstsq", (left / size, right, bound))
    out = solution / reshape(size, (degree + 1, 1))
    return reshape(out, (degree + 1,)) if y.ndim == 1 else out
