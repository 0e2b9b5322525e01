"""Linear algebra: stacks of matrices."""

from __future__ import annotations

import numpy as np

from adjoint import errors
from adjoint.dtypes import FLOATING
from adjoint.primitives.table import INDEX, LINALG, DType, Shape, broadcast_shapes, declare, real_dtype, same_dtype


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype of the same precision: complex64 for float32, complex128 for float64."""
    if dtype.kind in FLOATING and dtype.itemsize == 2:
        raise errors.DtypeError(f"{dtype} has no complex dtype, and no LAPACK; convert it with astype(ad.float32)")
    return dtype if dtype.kind == "c" else np.dtype(f"c{2 * dtype.itemsize}")


def _square(shape: Shape) -> None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.NotSquareError(f"expected square matrices, shape (..., n, n); received {shape}")


def _square_same(shape: Shape) -> Shape:
    _square(shape)
    return shape


def _matrices(shape: Shape) -> tuple[Shape, int, int]:
    """The stack, and rows and columns of its matrices."""
    if len(shape) < 2:
        raise errors.ShapeError(f"expected matrices, shape (..., m, n); received {shape}")
    return shape[:-2], shape[-2], shape[-1]


def _det_shape(shape: Shape) -> Shape:
    _square(shape)
    return shape[:-2]


def _slogdet_shape(shape: Shape) -> list[Shape]:
    return [_det_shape(shape)] * 2


def _pullback_shape(g: Shape, x: Shape) -> Shape:
    _square(x)
    return broadcast_shapes(g, x)


def _solve_shape(a: Shape, b: Shape, *, upper: bool = False, unit: bool = False) -> Shape:
    _square(a)
    if len(b) < 2 or b[-2] != a[-1]:
        raise errors.ShapeError(f"solve: a right-hand side of shape {b} does not fit matrices of shape {a}")
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


def _sylvester_shape(a: Shape, b: Shape, q: Shape) -> Shape:
    _square(a)
    _square(b)
    if len(q) < 2 or q[-2:] != (a[-1], b[-1]):
        raise errors.ShapeError(f"solve_sylvester: a right-hand side of shape {q} does not fit {a} and {b}")
    return (*broadcast_shapes(a[:-2], b[:-2], q[:-2]), *q[-2:])


def _banded_shape(ab: Shape, b: Shape, *, lower: int, upper: int) -> Shape:
    if len(ab) < 2 or ab[-2] != lower + upper + 1 or len(b) < 2 or b[-2] != ab[-1]:
        raise errors.ShapeError(f"solve_banded: a right-hand side of shape {b} does not fit diagonals of shape {ab}")
    return (*broadcast_shapes(ab[:-2], b[:-2]), *b[-2:])


def _eigenvalues_shape(shape: Shape) -> Shape:
    _square(shape)
    return shape[:-1]


def _eigh_shape(shape: Shape) -> list[Shape]:
    return [_eigenvalues_shape(shape), shape]


def _singular_shape(shape: Shape) -> Shape:
    stack, m, n = _matrices(shape)
    return (*stack, min(m, n))


def _svd_shape(shape: Shape, *, full_matrices: bool) -> list[Shape]:
    stack, m, n = _matrices(shape)
    k = min(m, n)
    left, right = (m, n) if full_matrices else (k, k)
    return [(*stack, m, left), (*stack, k), (*stack, right, n)]


def _qr_shape(shape: Shape, *, complete: bool) -> list[Shape]:
    stack, m, n = _matrices(shape)
    k = m if complete else min(m, n)
    return [(*stack, m, k), (*stack, k, n)]


def _lu_shape(shape: Shape) -> list[Shape]:
    stack, m, n = _matrices(shape)
    k = min(m, n)
    return [(*stack, m), (*stack, m, k), (*stack, k, n)]


def _pinv_shape(shape: Shape, rtol: Shape) -> Shape:
    stack, m, n = _matrices(shape)
    return (*broadcast_shapes(stack, rtol[:-2]), n, m)


def _lstsq_shape(a: Shape, b: Shape, rtol: Shape) -> list[Shape]:
    stack, m, n = _matrices(a)
    if len(b) < 2 or b[-2] != m:
        raise errors.ShapeError(f"lstsq: a right-hand side of shape {b} does not fit matrices of shape {a}")
    stack = broadcast_shapes(stack, b[:-2], rtol[:-2])
    return [(*stack, n, b[-1]), (*stack, min(m, n))]


def _real(dtype: DType) -> DType:
    return real_dtype(dtype)


_NONE_FOUND = (
    "no singular values or eigenvalues were found",
    "LAPACK finds none where nan or inf stand among the elements, which ad.isfinite shows",
)

declare("inv cofactor expm", LINALG, "x", shape=_square_same, dtype=same_dtype)
for _name, _what in (("sqrtm", "square root"), ("logm", "logarithm")):
    declare(
        _name,
        LINALG,
        "x",
        shape=_square_same,
        dtype=same_dtype,
        failure=(
            f"no principal {_what} is found: an eigenvalue of a matrix is zero or negative, or nearly so",
            "a small multiple of the identity added to it may help, or of a Hermitian one a function of ad.linalg.eigh",
        ),
    )
declare(
    "cholesky",
    LINALG,
    "x",
    shape=_square_same,
    dtype=same_dtype,
    failure=("a matrix is not positive definite", "a small multiple of the identity added to it may help"),
)
# the derivative of the cofactors along g: symmetric, so that it serves both modes
declare("cofactor_pullback", LINALG, "g x", shape=_pullback_shape, dtype=same_dtype)
declare("det", LINALG, "x", shape=_det_shape, dtype=same_dtype)
declare("slogdet", LINALG, "x", shape=_slogdet_shape, dtype=lambda x: [x, real_dtype(x)], results=2)
declare("solve", LINALG, "a b", shape=_solve_shape, dtype=same_dtype)
declare("solve_triangular", LINALG, "a b", "upper unit", shape=_solve_shape, dtype=lambda a, b, **_: a)
# a x + x b = q
declare(
    "solve_sylvester",
    LINALG,
    "a b q",
    shape=_sylvester_shape,
    dtype=lambda a, b, q: q,
    failure=("a and -b have an eigenvalue in common", "a small multiple of the identity added to a may help"),
)
# row i of ab is diagonal upper - i: the element of column j of each diagonal is in column j
declare("solve_banded", LINALG, "ab b", "lower upper", shape=_banded_shape, dtype=lambda ab, b, **_: b)
# Hermitian matrices, of which the lower triangle is read: values in rising order, vectors in columns
declare("eigvalsh", LINALG, "x", shape=_eigenvalues_shape, dtype=_real, failure=_NONE_FOUND)
declare("eigh", LINALG, "x", shape=_eigh_shape, dtype=lambda x: [real_dtype(x), x], results=2, failure=_NONE_FOUND)
declare("eigvals", LINALG, "x", shape=_eigenvalues_shape, dtype=complex_dtype, failure=_NONE_FOUND)
declare("eig", LINALG, "x", shape=_eigh_shape, dtype=lambda x: [complex_dtype(x)] * 2, results=2, failure=_NONE_FOUND)
declare("svdvals", LINALG, "x", shape=_singular_shape, dtype=_real, failure=_NONE_FOUND)
declare(
    "svd",
    LINALG,
    "x",
    "full_matrices",
    shape=_svd_shape,
    dtype=lambda x, **_: [x, real_dtype(x), x],
    results=3,
    failure=_NONE_FOUND,
)
# Q and R as LAPACK has them: the diagonal of R is real, of either sign
declare("qr", LINALG, "x", "complete", shape=_qr_shape, dtype=lambda x, **_: [x, x], results=2)
# x[order] = L U, row i of the left side is row order[i] of x
declare("lu", LINALG, "x", shape=_lu_shape, dtype=lambda x: [INDEX, x, x], results=3)
# singular values of at most rtol times the largest count as zeros; rtol is a number, or of shape (..., 1, 1)
declare("pinv", LINALG, "x rtol", shape=_pinv_shape, dtype=same_dtype, failure=_NONE_FOUND)
declare(
    "lstsq",
    LINALG,
    "a b rtol",
    shape=_lstsq_shape,
    dtype=lambda a, b, rtol: [a, real_dtype(a)],
    results=2,
    failure=_NONE_FOUND,
)
