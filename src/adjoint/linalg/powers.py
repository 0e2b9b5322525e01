"""Powers of matrices and functions of them: exponentials, square roots, logarithms."""

from __future__ import annotations

from typing import Any

from adjoint.functions.arguments import as_integer, as_tensor, inexact, square
from adjoint.operands import run
from adjoint.tensor import Operand, Tensor, same, wrap
from adjoint.variables import B


def matrix_power(x: Operand[B], n: int, /) -> Tensor[B]:
    """The n-th powers of square matrices: products of squares, of the inverse for a negative n.

    Integers and booleans keep their type, unless n is negative.
    Raises NotSquareError for other than square matrices, SingularError for the inverse of a singular one.

    >>> import adjoint as ad
    >>> ad.linalg.matrix_power(ad.tensor([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    n = as_integer(n, "matrix_power", "n")
    x = square(x, "matrix_power", inexact if n < 0 else as_tensor)
    if n == 0:
        ones = wrap(x.device.eye(rows=x.shape[-1], columns=x.shape[-1], k=0, dtype=x.dtype), x.device)
        return run("broadcast_to", (ones,), shape=x.shape)  # type: ignore[no-any-return]
    power: Tensor[Any] = run("inv", (x,)) if n < 0 else x
    n, out = abs(n), None
    while True:
        if n % 2:
            out = power if out is None else run("matmul", (out, power))
        n //= 2
        if not n:
            assert out is not None
            return same(out)
        power = run("matmul", (power, power))


def expm(x: Operand[B], /) -> Tensor[B]:
    """The exponentials of square matrices, 1 + x + x x / 2 + ..., by scaling and squaring.

    Raises NotSquareError for other than square matrices.

    >>> import adjoint as ad
    >>> ad.linalg.expm(ad.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return run("expm", (square(x, "expm"),))  # type: ignore[no-any-return]


def sqrtm(x: Operand[B], /) -> Tensor[B]:
    """The principal square roots of square matrices: those r with r r = x whose eigenvalues have positive real parts.

    Of matrices without eigenvalues that are zero or negative; real for real x. By Denman and Beavers's iteration,
    which takes about ten inverses and is as exact as the condition of x allows, also where eigenvectors are missing.
    Raises NotSquareError for other than square matrices, SingularError where there is no such root.

    >>> import adjoint as ad
    >>> ad.linalg.sqrtm(ad.tensor([[4.0, 4.0], [0.0, 4.0]])).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    return run("sqrtm", (square(x, "sqrtm"),))  # type: ignore[no-any-return]


def logm(x: Operand[B], /) -> Tensor[B]:
    """The principal logarithms of square matrices: those with expm(l) = x and eigenvalues between -pi i and pi i.

    By square roots until these are near the identity. Matrices and errors are those of `sqrtm`.

    >>> import adjoint as ad
    >>> ad.linalg.logm(ad.tensor([[1.0, 2.0], [0.0, 1.0]])).round(5).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    return run("logm", (square(x, "logm"),))  # type: ignore[no-any-return]
