"""Roots and logarithms of matrices, and systems with structure, against SciPy and mpmath."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases.linalg import MAKERS, complex_normal, normal
from cases.values import regular
from conftest import peer
from test_linalg import adjoint, numbers_of_its_own, rotation  # noqa: F401 (a fixture)

import adjoint as ad
from adjoint import errors

Array = Any
LA = ad.linalg


JORDAN = np.diag([2.0] * 4) + np.diag([1.0] * 3, 1)
TURN = np.array([[np.cos(3.0), -np.sin(3.0)], [np.sin(3.0), np.cos(3.0)]])
# matrices of which an eigenvector is missing, eigenvalues are equal or far apart, or close to the negative axis
HARD: dict[str, Array] = {
    "one": np.array([[2.25]]),
    "identity": np.eye(3),
    "sizes apart": np.diag([1.0, 1e-16, 1e8]),
    "far apart": np.diag([1e-200, 1e200]),
    "triangular": np.array([[1.0, 1e8], [0.0, 2.0]]),
    "defective": JORDAN,
    "defective, full": (lambda q: q @ JORDAN @ q.T)(np.linalg.qr(np.cos(np.arange(16.0)).reshape(4, 4))[0]),
    "rotation": TURN,
    "complex": TURN * np.exp(0.1j) + 0.5j * np.eye(2),
    "near the identity": np.eye(3) + 1e-9 * np.cos(np.arange(9.0)).reshape(3, 3),
}


def by_mpmath(name: str, x: Array) -> Array:
    mpmath = peer("mpmath")
    if not np.any(x - np.diag(np.diag(x))):
        return np.diag((np.sqrt if name == "sqrtm" else np.log)(np.diag(x)))
    with mpmath.workdps(60):
        found = getattr(mpmath, name)(mpmath.matrix(x.tolist()))
        values = np.array([[complex(v) for v in row] for row in found.tolist()])
    return values if x.dtype.kind == "c" else values.real


@pytest.mark.parametrize("matrix", HARD)
@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_roots_and_logarithms_of_hard_matrices(name: str, matrix: str) -> None:
    f, x = getattr(LA, name), HARD[matrix]
    for dtype, tolerance in ((x.dtype, 2e-14), ("c8" if x.dtype.kind == "c" else "f4", 1e-5)):
        if np.dtype(dtype).itemsize < x.dtype.itemsize and matrix in ("far apart", "near the identity", "triangular"):
            continue
        wanted = by_mpmath(name, x)
        found = f(ad.asarray(x.astype(dtype))).numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
    if matrix not in ("sizes apart", "far apart", "triangular"):  # there differences of first order are not right
        ad.testing.check_grads(f, (x,))


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_derivatives_of_roots_and_logarithms_are_those_of_equations(make: Any) -> None:
    """r' r + r r' = x' for the root; the exponential's derivative at the logarithm along l' is x'."""
    scipy = peer("scipy.linalg")
    for n, scale in ((3, 1.0), (8, 1e-3), (8, 1e6)):
        x, t = scale * regular(make)(n, n), make(n, n)
        root, moved = ad.jvp(LA.sqrtm, (x,), (t,))
        np.testing.assert_allclose(root, scipy.sqrtm(x), rtol=1e-11, atol=1e-12 * scale**0.5)
        wanted = scipy.solve_sylvester(root, root, t)
        np.testing.assert_allclose(moved, wanted, rtol=1e-9, atol=1e-11 * np.abs(wanted).max())
        value, moved = ad.jvp(LA.logm, (x,), (t,))
        np.testing.assert_allclose(scipy.expm(value), x, rtol=1e-10, atol=1e-11 * scale)
        np.testing.assert_allclose(
            scipy.expm_frechet(value, moved, compute_expm=False), t, rtol=1e-9, atol=1e-10 * np.abs(t).max()
        )


NO_ROOT = [np.zeros((2, 2)), np.diag([1.0, 0.0]), np.array([[0.0, 1.0], [0.0, 0.0]]), -np.eye(2), np.diag([-1.0, 4.0])]


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_where_there_is_no_principal_root(name: str) -> None:
    f = getattr(LA, name)
    for x in NO_ROOT:
        for dtype in (np.float32, np.complex128):
            for device in ("numpy", "reference"):
                with pytest.raises(errors.SingularError, match=f"{name}: no principal.*zero or negative"):
                    f(ad.asarray(x.astype(dtype), device=device))
    stack = np.stack([np.eye(2), np.array([[math.nan, 0.0], [0.0, 1.0]]), 4 * np.eye(2)])
    found = f(ad.asarray(stack)).numpy()
    assert np.isnan(found[1]).any()
    np.testing.assert_allclose(found[::2], [f(ad.asarray(x)).numpy() for x in stack[::2]], rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("sizes", [(3, 2), (9, 8), (40, 30)])
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_sylvester_equations_are_those_of_scipy(sizes: tuple[int, int], make: Any) -> None:
    """Of a few elements by one system, of more by SciPy; where SciPy is not, by one system as well."""
    scipy, (m, n) = peer("scipy.linalg"), sizes
    a, b, q = make(m, m), make(n, n), make(2, m, n)
    wanted = np.stack([scipy.solve_sylvester(a, b, x) for x in q])
    found = LA.solve_sylvester(ad.asarray(a), ad.asarray(b), ad.asarray(q)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    defective = LA.solve_sylvester(ad.asarray(JORDAN), ad.asarray(JORDAN), ad.eye(4, dtype=ad.float64)).numpy()
    np.testing.assert_allclose(JORDAN @ defective + defective @ JORDAN, np.eye(4), atol=1e-15)


def test_without_scipy_the_definitions_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.backends.numpy import linalg

    ab, right = normal(3, 20) + 4 * np.eye(3)[1:2].T, normal(20, 2)
    a, b, q = regular(normal)(9, 9), regular(normal)(10, 10), normal(9, 10)

    def both() -> list[Array]:
        with_values = [*map(ad.asarray, (ab, right))], [*map(ad.asarray, (a, b, q))]
        return [LA.solve_banded((1, 1), *with_values[0]).numpy(), LA.solve_sylvester(*with_values[1]).numpy()]

    by_scipy = both()
    monkeypatch.setattr(linalg, "_scipy", lambda: None)
    for x, y in zip(both(), by_scipy, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_banded_systems_are_those_of_scipy(make: Any) -> None:
    scipy = peer("scipy.linalg")
    for lower, upper, n in ((1, 1, 30), (2, 0, 9), (0, 3, 12), (3, 1, 5)):
        ab, b = make(lower + upper + 1, n), make(n, 2)
        ab[upper] += 6
        found = LA.solve_banded((lower, upper), ad.asarray(ab), ad.asarray(b)).numpy()
        np.testing.assert_allclose(found, scipy.solve_banded((lower, upper), ab, b), rtol=1e-11, atol=1e-13)
        for below in (False, True):
            half = make(upper + 1, n)
            half[0 if below else upper] = 9
            found = LA.solveh_banded(ad.asarray(half), ad.asarray(b), lower=below).numpy()
            np.testing.assert_allclose(found, scipy.solveh_banded(half, b, lower=below), rtol=1e-11, atol=1e-13)


def test_a_long_banded_system_takes_memory_of_its_length() -> None:
    """And so does its gradient: as a whole matrix it would be 80 GB."""
    n = 10**5
    ab, b = np.ones((3, n)), np.ones(n)
    ab[1] = 4
    x = ad.asarray(ab).require_grad()
    out = LA.solve_banded((1, 1), x, ad.asarray(b))
    slope = out.sum().backward()[x].numpy()
    middle = out.numpy()[n // 2]
    np.testing.assert_allclose([middle, slope[1, n // 2]], [1 / 6, -1 / 36], rtol=1e-12)


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_matrices_with_structure_and_lu_are_those_of_scipy(make: Any) -> None:
    scipy = peer("scipy.linalg")
    c, r, a, b = make(4), make(3), make(4, 4), make(4, 2)
    column, row = ad.asarray(c), ad.asarray(r)
    np.testing.assert_array_equal(LA.toeplitz(column).numpy(), scipy.toeplitz(c))
    np.testing.assert_array_equal(LA.toeplitz(column, row).numpy(), scipy.toeplitz(c, r))
    np.testing.assert_array_equal(LA.circulant(column).numpy(), scipy.circulant(c))
    np.testing.assert_array_equal(LA.block_diag(column, ad.asarray(b), 2.0).numpy(), scipy.block_diag(c, b, 2.0))
    factor = LA.lu_factor(ad.asarray(a))
    np.testing.assert_allclose(factor.LU.numpy(), scipy.lu_factor(a)[0], rtol=1e-12)
    for trans in (0, 1, 2):
        wanted = scipy.lu_solve(scipy.lu_factor(a), b, trans=trans)
        np.testing.assert_allclose(LA.lu_solve(factor, ad.asarray(b), trans=trans).numpy(), wanted, rtol=1e-10)


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_low_ranks_are_found_exactly(make: Any) -> None:
    mean = make(6)
    x = make(2, 9, 3) @ make(3, 6)
    u, s, v = LA.svd_lowrank(ad.asarray(x + mean), q=3, M=ad.asarray(mean))
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(x)[1][:, :3], rtol=1e-12)
    np.testing.assert_allclose((u.numpy() * s.numpy()[:, None]) @ adjoint(v.numpy()), x, atol=1e-12)
    far = (rotation(make, 40, 20) * 0.5 ** np.arange(20)) @ adjoint(rotation(make, 20, 20))
    found = [LA.svd_lowrank(ad.asarray(far), 4, n).S.numpy() for n in (0, 4)]
    np.testing.assert_allclose(found[1], 0.5 ** np.arange(4), rtol=1e-3)
    assert np.abs(found[1] - 0.5 ** np.arange(4)).max() < np.abs(found[0] - 0.5 ** np.arange(4)).max()


def test_the_upper_triangle_is_read_if_that_is_said() -> None:
    x = complex_normal(3, 3)
    for triangle in ("L", "U", "l", "u"):
        wanted = np.linalg.eigvalsh(x, UPLO=triangle)
        np.testing.assert_allclose(LA.eigvalsh(ad.asarray(x), UPLO=triangle).numpy(), wanted, rtol=1e-12)
        np.testing.assert_allclose(LA.eigh(ad.asarray(x), UPLO=triangle).eigenvalues.numpy(), wanted, rtol=1e-12)
    found = LA.pinv(ad.asarray(x), hermitian=True).numpy()
    np.testing.assert_allclose(found, np.linalg.pinv(x, hermitian=True), atol=1e-12)
    assert LA.matrix_rank(ad.tensor([[1.0, 5.0], [0.0, 1.0]]), 2.0).item() == 1
    assert LA.matrix_rank(ad.tensor([[1.0, 9.0], [0.0, 0.0]]), hermitian=True).item() == 1
    assert LA.matrix_rank(ad.tensor([[[1.0, 0.0], [0.0, 3.0]]] * 2), ad.tensor([0.5, 2.0])).tolist() == [2, 1]
    assert [LA.logdet(ad.tensor([[v]])).item() for v in (1.0, 0.0)] == [0.0, -math.inf]
    assert math.isnan(LA.logdet(ad.tensor([[-1.0]])).item())
    assert LA.block_diag().shape == (0, 0)
