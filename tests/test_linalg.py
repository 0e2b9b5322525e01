"""Linear algebra against PyTorch, SciPy and NumPy, and where matrices are singular or values equal."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import cases.linalg
import cases.values
import numpy as np
import pytest
from cases.linalg import MAKERS, apart, complex_normal, diagonalizable, hermitian, normal
from conftest import peer

import adjoint as ad
from adjoint import errors

Array = Any
LA = ad.linalg


def adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.fixture(autouse=True)
def numbers_of_its_own(request: pytest.FixtureRequest) -> None:
    """Each test draws the same numbers, whatever ran before it."""
    state = np.random.default_rng(zlib.crc32(request.node.name.encode())).bit_generator.state
    for generator in (cases.linalg._rng, cases.values._rng):
        generator.bit_generator.state = state


def rotation(make: Callable[..., Array], m: int, n: int) -> Array:
    """Orthonormal columns."""
    return np.linalg.qr(make(m, n))[0]


def gradients(f: Callable[..., Any], *xs: Array) -> list[Array]:
    leaves = [ad.tensor(x).require_grad() for x in xs]
    grads = f(*leaves).backward()
    return [grads[x].numpy() for x in leaves]


def weights(shape: tuple[int, ...], dtype: Any) -> Array:
    """Fixed numbers of a shape, complex if need be."""
    values = np.cos(np.arange(1, 1 + math.prod(shape))).reshape(shape)
    return values + 1j * np.sin(3 * values) if np.dtype(dtype).kind == "c" else values


def projected(outs: Any, lib: Any) -> Any:
    """A real number that depends on all results."""
    total = 0.0
    for out in outs if isinstance(outs, tuple) else (outs,):
        if str(out.dtype).rpartition(".")[2].startswith(("float", "complex")):
            w = weights(tuple(out.shape), np.complex128 if "complex" in str(out.dtype) else np.float64)
            product = out * (lib.tensor(w) if lib.__name__ == "torch" else ad.asarray(w))
            total = total + (product.real if "complex" in str(out.dtype) else product).sum()
    return total


def phases(u: Any, vh: Any) -> tuple[Any, Any]:
    """What of vectors in columns and in rows no phase changes."""
    return abs(u) ** 2, abs(vh) ** 2


def definite(make: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *shape: (lambda a: a @ adjoint(a) + np.eye(shape[-1]))(make(*shape))


# ours, PyTorch's, and makers of operands with their shapes
Row = tuple[Callable[..., Any], Callable[..., Any], list[tuple[Callable[[Any], Any], tuple[int, ...]]]]


def plain(make: Any) -> Any:
    return make


def regular(make: Any) -> Any:
    return lambda *shape: make(*shape) + 3 * np.eye(shape[-1])


def _torch(name: str) -> Callable[..., Any]:
    return lambda torch, *xs: getattr(torch.linalg, name)(*xs)


AGREE: dict[str, Row] = {
    "inv": (LA.inv, _torch("inv"), [(regular, (2, 3, 3))]),
    "det": (LA.det, _torch("det"), [(regular, (2, 3, 3))]),
    "slogdet": (
        lambda a: tuple(LA.slogdet(a)), lambda torch, a: tuple(torch.linalg.slogdet(a)), [(regular, (2, 3, 3))]
    ),
    "logdet": (LA.logdet, lambda torch, a: torch.logdet(a), [(regular, (2, 3, 3))]),
    "block_diag": (
        lambda *xs: LA.block_diag(*xs), lambda torch, *xs: torch.block_diag(*xs),
        [(plain, (2, 3)), (plain, (2,)), (plain, ()), (plain, (0, 1))],
    ),
    "solve": (LA.solve, _torch("solve"), [(regular, (2, 3, 3)), (plain, (2, 3, 2))]),
    "solve, a vector": (LA.solve, _torch("solve"), [(regular, (3, 3)), (plain, (3,))]),
    "solve_triangular": (
        lambda a, b: LA.solve_triangular(a, b, upper=False, unitriangular=True),
        lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True),
        [(regular, (2, 3, 3)), (plain, (3, 2))],
    ),
    "cholesky": (
        lambda a: LA.cholesky(a, upper=True), lambda torch, a: torch.linalg.cholesky(a, upper=True),
        [(definite, (2, 3, 3))],
    ),
    "cholesky_solve": (
        LA.cholesky_solve, lambda torch, b, a: torch.cholesky_solve(b, a.tril()),
        [(plain, (2, 3, 2)), (regular, (2, 3, 3))],
    ),
    "qr": (lambda a: tuple(LA.qr(a)), lambda torch, a: tuple(torch.linalg.qr(a)), [(apart, (2, 4, 3))]),
    "qr of wide matrices": (
        lambda a: tuple(LA.qr(a)), lambda torch, a: tuple(torch.linalg.qr(a)), [(apart, (2, 2, 4))]
    ),
    "lu": (lambda a: tuple(LA.lu(a)), lambda torch, a: tuple(torch.linalg.lu(a)), [(plain, (2, 4, 4))]),
    **{
        f"lu {shape}": (
            lambda a: tuple(LA.lu(a)), lambda torch, a: tuple(torch.linalg.lu(a)), [(plain, shape)]
        )
        for shape in [(2, 4), (4, 2)]
    },
    "eigh": (
        lambda a: (LA.eigh(a)[0], abs(LA.eigh(a)[1]) ** 2),
        lambda torch, a: (torch.linalg.eigh(a)[0], abs(torch.linalg.eigh(a)[1]) ** 2), [(hermitian, (2, 3, 3))],
    ),
    "eigvalsh": (LA.eigvalsh, _torch("eigvalsh"), [(hermitian, (2, 3, 3))]),
    "eig": (
        lambda a: (LA.eig(a)[0], abs(LA.eig(a)[1]) ** 2),
        lambda torch, a: (torch.linalg.eig(a)[0], abs(torch.linalg.eig(a)[1]) ** 2), [(diagonalizable, (2, 3, 3))],
    ),
    "eigvals": (LA.eigvals, _torch("eigvals"), [(diagonalizable, (2, 3, 3))]),
    "svdvals": (LA.svdvals, _torch("svdvals"), [(apart, (2, 3, 2))]),
    **{
        f"svd {shape}": (
            lambda a: (lambda u, s, vh: (s, *phases(u, vh), (u * s[..., None, :].astype(u.dtype)) @ vh))(
                *LA.svd(a, full_matrices=False)
            ),
            lambda torch, a: (lambda u, s, vh: (s, *phases(u, vh), (u * s[..., None, :]) @ vh))(
                *torch.linalg.svd(a, full_matrices=False)
            ),
            [(apart, shape)],
        )
        for shape in [(3, 3), (2, 4, 3), (2, 2, 4)]
    },
    "pinv": (LA.pinv, _torch("pinv"), [(apart, (2, 4, 3))]),
    "pinv of wide matrices": (LA.pinv, _torch("pinv"), [(apart, (2, 3, 4))]),
    "lstsq": (
        lambda a, b: LA.lstsq(a, b).solution, lambda torch, a, b: torch.linalg.lstsq(a, b).solution,
        [(apart, (2, 4, 3)), (plain, (2, 4, 2))],
    ),
    "pinv of Hermitian matrices": (
        lambda a: LA.pinv(a, hermitian=True),
        lambda torch, a: (lambda half: torch.linalg.pinv(half + half.mH))((a.tril() + a.tril(-1)) / 2),
        [(hermitian, (2, 3, 3))],
    ),
    "qr, R alone": (lambda a: LA.qr(a, mode="r"), lambda torch, a: torch.linalg.qr(a).R, [(apart, (2, 4, 3))]),
    "expm": (LA.expm, _torch("matrix_exp"), [(plain, (2, 3, 3))]),
    "matrix_power": (
        lambda a: LA.matrix_power(a, 5), lambda torch, a: torch.linalg.matrix_power(a, 5), [(plain, (2, 3, 3))]
    ),
    "multi_dot": (
        lambda *xs: LA.multi_dot(xs), lambda torch, *xs: torch.linalg.multi_dot(xs),
        [(plain, (2, 5)), (plain, (5, 3)), (plain, (3, 4)), (plain, (4, 1))],
    ),
    "householder_product": (
        LA.householder_product, _torch("householder_product"), [(plain, (2, 4, 3)), (plain, (2, 2))]
    ),
    "kron": (LA.kron, lambda torch, x, y: torch.kron(x, y), [(plain, (2, 3)), (plain, (3, 1, 2))]),
    "cross": (LA.cross, _torch("cross"), [(plain, (4, 3)), (plain, (4, 3))]),
    "diagonal": (
        lambda a: LA.diagonal(a, offset=-1), lambda torch, a: torch.linalg.diagonal(a, offset=-1), [(plain, (2, 3, 4))]
    ),
    **{
        f"matrix_norm {order}": (
            lambda a, order=order: LA.matrix_norm(a, ord=order),
            lambda torch, a, order=order: torch.linalg.matrix_norm(a, ord=order), [(apart, (2, 3, 2))],
        )
        for order in ("nuc", 2, -2, "fro", 1, -1, math.inf, -math.inf)
    },
    **{
        f"cond {p}": (
            lambda a, p=p: LA.cond(a, p), lambda torch, a, p=p: torch.linalg.cond(a, p), [(apart, (2, 3, 3))]
        )
        for p in (None, 2, -2)
    },
    **{
        f"cond {p}": (  # PyTorch's own overwrites what its gradient needs
            lambda a, p=p: LA.cond(a, p),
            lambda torch, a, p=p: torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(torch.linalg.inv(a), p),
            [(apart, (2, 3, 3))],
        )
        for p in ("fro", "nuc", 1, -math.inf)
    },
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
@pytest.mark.parametrize("name", AGREE)
def test_pytorch_has_the_same_values_and_gradients(name: str, make: Any) -> None:
    torch = peer("torch")
    ours, theirs, operands = AGREE[name]
    xs = [kind(make)(*shape) for kind, shape in operands]
    leaves = [ad.tensor(x).require_grad() for x in xs]
    others = [torch.tensor(x, requires_grad=True) for x in xs]
    mine, wanted = ours(*leaves), theirs(torch, *others)
    pairs = zip(mine, wanted, strict=True) if isinstance(mine, tuple) else [(mine, wanted)]
    for x, y in pairs:
        assert (x.shape, str(x.dtype)) == (tuple(y.shape), str(y.dtype).removeprefix("torch."))
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-11, atol=1e-12)
    found = projected(mine, ad).backward()
    expected = torch.autograd.grad(projected(wanted, torch), others)
    for x, y in zip(leaves, expected, strict=True):
        other = y.numpy()
        if name in ("eigh", "eigvalsh", "cholesky"):  # ours is Hermitian; theirs may be any with that Hermitian part
            other = (other + adjoint(other)) / 2
        np.testing.assert_allclose(found[x].numpy(), other, rtol=1e-9, atol=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize("scale", [1e-3, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_exponentials_are_those_of_scipy(n: int, scale: float, dtype: Any) -> None:
    scipy = peer("scipy.linalg")
    x = (scale * (complex_normal if dtype is np.complex128 else normal)(2, n, n) / math.sqrt(n)).astype(dtype)
    wanted = scipy.expm(x.astype(np.complex128 if dtype is np.complex128 else np.float64))
    found = LA.expm(ad.asarray(x)).numpy()
    assert found.dtype == dtype
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found / size, wanted / size, atol=2e-12 if dtype is not np.float32 else 1e-3)


@pytest.mark.peers
def test_exponentials_to_all_digits() -> None:
    """Also where the norm is large and the exponential is not: no more halvings than the powers of x need."""
    mpmath = peer("mpmath")
    for x in ([[1.0, 1e8], [0.0, -1.0]], [[-49.0, 24.0], [-64.0, 31.0]], [[0.1, 0.2], [-0.3, 0.4]]):
        with mpmath.workdps(60):
            wanted = np.array(mpmath.expm(mpmath.matrix(x)).tolist(), dtype=float)
        np.testing.assert_allclose(LA.expm(ad.asarray(np.array(x))).numpy(), wanted, rtol=2e-13)
    assert np.isnan(LA.expm(ad.tensor([[math.nan]])).item())
    assert LA.expm(ad.tensor([[0.0]], dtype=ad.float64)).item() == 1.0


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float64"])
def test_powers_of_integers_are_exact(dtype: str) -> None:
    x = np.asarray([[1, 1], [1, 0]]).astype(dtype)
    for n in (0, 1, 2, 5, 80):
        expected = np.linalg.matrix_power(x, n)
        for found in (LA.matrix_power(ad.asarray(x), n).numpy(), ad.compile(lambda x, n=n: LA.matrix_power(x, n))(x)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 150])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles_of_any_size(n: int, upper: bool) -> None:
    scipy = peer("scipy.linalg")
    a, b = normal(2, n, n) + n * np.eye(n), normal(2, n, 3)
    found = LA.solve_triangular(ad.asarray(a), ad.asarray(b), upper=upper).numpy()
    wanted = np.stack([scipy.solve_triangular(x, y, lower=not upper) for x, y in zip(a, b, strict=True)])
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


def test_triangles_that_no_pivoting_spoils() -> None:
    """Substitution finds each element to all digits, however different the rows are in size."""
    a = np.array([[1e-20, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(
        LA.solve_triangular(ad.asarray(a), ad.asarray(np.array([1.0, 1e20])), upper=False), [1e20, 0.0]
    )


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (40, 40), (70, 33), (33, 70), (100, 100), (0, 3), (3, 0)])
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_lu_of_any_size(shape: tuple[int, int], make: Any) -> None:
    scipy = peer("scipy.linalg")
    x = make(*shape)
    p, lower, upper = LA.lu(ad.asarray(x))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), x, atol=1e-12)
    if x.size:
        for found, wanted in zip((p, lower, upper), scipy.lu(x), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted, atol=1e-10)


def test_lu_of_singular_matrices() -> None:
    for x in (np.zeros((3, 3)), np.ones((3, 2)), np.array([[0.0, 1.0], [0.0, 2.0]])):
        p, lower, upper = LA.lu(ad.asarray(x))
        np.testing.assert_array_equal((p @ lower @ upper).numpy(), x)


def test_householder_product_is_what_qr_began_with() -> None:
    x = complex_normal(5, 3)
    h, tau = np.linalg.qr(x, mode="raw")
    found = LA.householder_product(ad.asarray(h.T.copy()), ad.asarray(tau)).numpy()
    np.testing.assert_allclose(found, np.linalg.qr(x)[0], atol=1e-14)


@pytest.mark.parametrize("b", [(4,), (4, 2), (2, 4, 1)])
@pytest.mark.parametrize("shape", [(4, 3), (4, 4), (4, 6)])
def test_least_squares_are_those_of_numpy(shape: tuple[int, int], b: tuple[int, ...]) -> None:
    a, y = normal(*shape), normal(*b)
    found = LA.lstsq(ad.asarray(a), ad.asarray(y))
    many = y if y.ndim != 1 else y[:, None]
    for i in np.ndindex(many.shape[:-2]):
        x, residuals, rank, s = np.linalg.lstsq(a, many[i], rcond=None)
        ours = found.solution.numpy()[i] if y.ndim > 1 else found.solution.numpy()[:, None]
        np.testing.assert_allclose(ours, x, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(found.singular_values.numpy()[i], s, rtol=1e-13)
        assert found.rank.numpy()[i] == rank
        if residuals.size:
            np.testing.assert_allclose(np.ravel(found.residuals.numpy()[i]), residuals, rtol=1e-11)
    assert found.residuals.shape == (*b[:-2], *([b[-1]] if len(b) > 1 else []))


def test_least_squares_keep_the_digits_that_the_system_has() -> None:
    """The pseudo-inverse would lose those twice over."""
    u, v = rotation(normal, 20, 5), rotation(normal, 5, 5)
    a, x = (u * np.logspace(0, -6, 5)) @ v.T, normal(5)
    for device in ("numpy", "autodiff<numpy>"):
        found = LA.lstsq(ad.asarray(a, device=device).require_grad(), ad.asarray(a @ x, device=device)).solution
        np.testing.assert_allclose(found.numpy(), x, rtol=1e-8)


def test_ranks() -> None:
    x = np.stack([np.diag([3.0, 1.0, 1e-9]), np.zeros((3, 3)), np.eye(3)])
    assert LA.matrix_rank(ad.asarray(x)).tolist() == [3, 0, 3]
    assert LA.matrix_rank(ad.asarray(x), rtol=1e-6).tolist() == [2, 0, 3]
    assert LA.matrix_rank(ad.asarray(x), rtol=ad.tensor([0.5, 0.5, 1.0])).tolist() == [1, 0, 0]
    assert LA.matrix_rank(ad.zeros((2, 0, 3))).tolist() == [0, 0]
    assert LA.matrix_rank(ad.asarray(x)).dtype is ad.int64


# --- singular matrices, and equal values ---


def second(f: Callable[[Any], Any], x: Array, direction: Array) -> Array:
    """The Hessian's product with a direction, reverse over reverse."""
    inner = ad.tensor(x).require_grad()
    outer = ad.from_inner(inner).require_grad()
    slope = f(outer).backward()[outer]
    return (slope * ad.asarray(direction)).sum().backward()[inner].numpy()


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_the_second_derivative_of_det_at_any_rank(rank: int) -> None:
    """It is a polynomial: differences of the cofactors, which are right at any rank, tell."""
    x = rotation(normal, 3, 3)[:, :rank] @ normal(rank, 3)
    e, step = normal(3, 3), 0.25

    def cofactors(at: Array) -> Array:
        return np.array(
            [
                [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(at, i, 0), j, 1)) for j in range(3)]
                for i in range(3)
            ]
        )

    wanted = (cofactors(x + step * e) - cofactors(x - step * e)) / (2 * step)  # of second degree: exact
    np.testing.assert_allclose(second(LA.det, x, e), wanted, atol=1e-12)
    pushed = ad.jvp(lambda a: ad.jvp(LA.det, (a,), (e,))[1], (x,), (e,))[1]
    np.testing.assert_allclose(pushed, np.sum(wanted * e), atol=1e-12)


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [2.0, 2.0, -1.0], [0.0, 0.0, 3.0], [0.5, 1.5, 2.5]])
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_sums_over_eigenvalues_that_are_equal(values: list[float], make: Any) -> None:
    """tr f(A) has the gradient f'(A), whatever the eigenvalues are."""
    v, w = rotation(make, 3, 3), np.array(values)
    a = (v * w) @ adjoint(v)
    wanted = (v * np.cos(w)) @ adjoint(v)
    for f in (lambda x: ad.sin(LA.eigvalsh(x)).sum(), lambda x: ad.sin(LA.eigh(x).eigenvalues).sum()):
        np.testing.assert_allclose(gradients(f, a)[0], wanted, atol=1e-13)
    found = gradients(lambda x: ad.sin(LA.eigvals(x)).real.sum(), a)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_the_space_of_equal_eigenvalues(make: Any) -> None:
    """The projection on it turns against the other vectors alone: P' = sum of those parts over the gaps."""
    v, w = rotation(make, 3, 3), np.array([1.0, 1.0, 4.0])
    a, weight = (v * w) @ adjoint(v), hermitian(make)(3, 3)

    def f(x: Any) -> Any:
        vectors = LA.eigh(x).eigenvectors[:, :2]
        turned = vectors.mT.conj() if x.dtype.kind == "c" else vectors.mT
        return (vectors @ turned * ad.asarray(weight.conj())).real.sum()

    inner = adjoint(v) @ weight @ v
    gaps = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]]) / -3.0
    np.testing.assert_allclose(gradients(f, a)[0], v @ (inner * gaps) @ adjoint(v), atol=1e-12)


SPECTRA = [[3.0, 2.0, 1.0], [2.0, 2.0, 2.0], [2.0, 2.0, 1.0]]


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("s", SPECTRA)
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_the_nuclear_norm_and_the_polar_factor(make: Any, s: list[float], shape: tuple[int, int]) -> None:
    """Their derivatives exist where singular values are equal: U V^H, and what turns U and V against each other."""
    u, v = rotation(make, shape[0], 3), rotation(make, shape[1], 3)
    a, polar = (u * s) @ adjoint(v), u @ adjoint(v)
    np.testing.assert_allclose(gradients(lambda x: LA.matrix_norm(x, ord="nuc"), a)[0], polar, atol=1e-13)
    weight = make(*shape)

    def loss(x: Any) -> Any:
        left, _, right = LA.svd(x, full_matrices=False)
        return (left @ right * ad.asarray(weight.conj())).real.sum()

    inner = adjoint(u) @ weight @ v
    wanted = u @ ((inner - adjoint(inner)) / np.add.outer(s, s)) @ adjoint(v)
    wanted = wanted + (weight - u @ (adjoint(u) @ weight)) @ v @ np.diag(1 / np.array(s)) @ adjoint(v)
    wanted = wanted + u @ np.diag(1 / np.array(s)) @ adjoint(u) @ (weight - weight @ v @ adjoint(v))
    if shape[0] != shape[1]:
        np.testing.assert_allclose(gradients(loss, a)[0], wanted, atol=1e-12)
    else:
        np.testing.assert_allclose(
            gradients(loss, a)[0], u @ ((inner - adjoint(inner)) / np.add.outer(s, s)) @ adjoint(v), atol=1e-12
        )
    tangent = make(*shape)
    pushed = ad.jvp(loss, (a,), (tangent,))[1]
    np.testing.assert_allclose(pushed, np.sum(gradients(loss, a)[0].conj() * tangent).real, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_values_that_rounding_alone_keeps_apart_are_equal(make: Any) -> None:
    """U V^H of many matrices: where 1 / (s_j - s_i) came of rounding, the derivative would be any number."""
    s = np.array([2.0, 2.0, 1.0])
    for _ in range(200):
        u, v, weight = rotation(make, 3, 3), rotation(make, 3, 3), make(3, 3)

        def loss(x: Any, weight: Array = weight) -> Any:
            left, _, right = LA.svd(x, full_matrices=False)
            return (left @ right * ad.asarray(weight.conj())).real.sum()

        inner = adjoint(u) @ weight @ v
        wanted = u @ ((inner - adjoint(inner)) / np.add.outer(s, s)) @ adjoint(v)
        np.testing.assert_allclose(gradients(loss, (u * s) @ adjoint(v))[0], wanted, atol=1e-12)


def test_singular_values_that_are_zero_have_no_gradient() -> None:
    """As the absolute value of zero; so that of the nuclear norm is the part of U V^H that is determined."""
    x = np.diag([2.0, 1.0, 0.0])
    np.testing.assert_array_equal(gradients(lambda a: LA.matrix_norm(a, ord="nuc"), x)[0], np.diag([1.0, 1.0, 0.0]))
    for order in ("nuc", 2, -2):
        zero = gradients(lambda a, order=order: LA.matrix_norm(a, ord=order), np.zeros((2, 3)))[0]
        np.testing.assert_array_equal(zero, 0)
        np.testing.assert_array_equal(
            second(lambda a, o=order: LA.matrix_norm(a, ord=o), np.zeros((2, 3)), normal(2, 3)), 0
        )


def test_the_largest_singular_values_share_the_gradient() -> None:
    np.testing.assert_allclose(gradients(lambda a: LA.matrix_norm(a, ord=2), np.eye(2))[0], np.eye(2) / 2, atol=1e-15)


@pytest.mark.parametrize("gap", [1.0, 1e-3, 1e-6])
def test_derivatives_of_the_second_order_near_equal_values(gap: float) -> None:
    """The squares of all singular values add up to those of all elements, whose Hessian is two."""
    u, v, e = rotation(normal, 3, 3), rotation(normal, 3, 3), normal(3, 3)
    a = (u * [2.0 + gap, 2.0, 1.0]) @ v.T
    np.testing.assert_allclose(second(lambda x: (LA.svdvals(x) ** 2).sum(), a, e), 2 * e, atol=1e-14 / gap + 1e-12)


def test_derivatives_of_the_second_order_at_equal_values_leave_a_part_out() -> None:
    """As documented: what is left, at a multiple of the identity, is right for directions that keep the vectors."""
    x, e = 2 * np.eye(3), np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(second(lambda a: (LA.eigvalsh(a) ** 2).sum(), x, e), 2 * e, atol=1e-12)
    turned = np.ones((3, 3)) - np.eye(3)
    np.testing.assert_allclose(second(lambda a: (LA.eigvalsh(a) ** 2).sum(), x, turned), 0 * e, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 4)])
@pytest.mark.parametrize("make", MAKERS, ids=["real", "complex"])
def test_the_pseudo_inverse_at_a_lower_rank(shape: tuple[int, int], make: Any) -> None:
    """Within the matrices of that rank it has derivatives; a factorised matrix stays among them."""
    left, right = make(shape[0], 2), make(2, shape[1])
    ad.testing.check_grads(lambda x, y: LA.pinv(x @ y, rtol=1e-6), (left, right))
    ad.testing.check_grads(lambda x, y, b: LA.lstsq(x @ y, b, rtol=1e-6).solution, (left, right, make(shape[0], 1)))


def test_gradients_that_do_not_exist_are_errors() -> None:
    singular = np.diag([1.0, 0.0])  # without rounding in any LAPACK
    for f in (lambda a: LA.slogdet(a).logabsdet, lambda a: LA.qr(a).R.sum(), lambda a: LA.lu(a).U.sum()):
        with pytest.raises(errors.BackwardError, match="(?i)singular"):
            f(ad.tensor(singular).require_grad()).backward()


@pytest.mark.parametrize("name", ["svd", "svdvals", "eig", "eigvals", "pinv", "lstsq"])
def test_what_lapack_cannot_factor_is_named(name: str) -> None:
    more = (ad.ones(2),) if name == "lstsq" else ()
    with pytest.raises(errors.SingularError, match="nan or inf"):
        getattr(LA, name)(ad.tensor([[math.nan, 1.0], [1.0, 1.0]]), *more)


BAD: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: LA.eigh(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.svd(ad.ones(3)), errors.ShapeError),
    (lambda: LA.qr(ad.ones((2, 2)), mode="raw"), errors.ArgumentError),
    (lambda: LA.qr(ad.ones(2)), errors.ShapeError),
    (lambda: LA.eigh(ad.ones((2, 2)), UPLO="X"), errors.ArgumentError),
    (lambda: LA.eigvalsh(ad.ones((2, 2)), UPLO=1), errors.ArgumentError),
    (lambda: LA.sqrtm(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.logm(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.logdet(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.lu_factor(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.lu_solve(ad.eye(2), ad.ones(2)), errors.ArgumentTypeError),
    (lambda: LA.lu_solve((ad.eye(2), ad.ones(2)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.lu_solve((ad.eye(2), ad.arange(3)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.lu_solve(LA.lu_factor(ad.eye(2)), ad.ones(3)), errors.ShapeError),
    (lambda: LA.lu_solve(LA.lu_factor(ad.eye(2)), ad.ones(2), trans=3), errors.ArgumentError),
    (lambda: LA.lu_solve(LA.lu_factor(ad.ones((2, 2))), ad.ones(2)), errors.SingularError),
    (lambda: LA.solve_sylvester(ad.ones((2, 3)), ad.eye(2), ad.ones((2, 2))), errors.NotSquareError),
    (lambda: LA.solve_sylvester(ad.eye(2), ad.eye(3), ad.ones((3, 2))), errors.ShapeError),
    (lambda: LA.solve_sylvester(ad.eye(2), -ad.eye(2), ad.ones((2, 2))), errors.SingularError),
    (lambda: LA.solve_sylvester(ad.eye(9), -ad.eye(9), ad.ones((9, 9))), errors.SingularError),
    (lambda: LA.solve_banded((1, 1), ad.ones((2, 3)), ad.ones(3)), errors.ShapeError),
    (lambda: LA.solve_banded((1, 0), ad.ones((2, 3)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.solve_banded((1, -1), ad.ones((1, 3)), ad.ones(3)), errors.ArgumentError),
    (lambda: LA.solve_banded((1, 1), ad.zeros((3, 3)), ad.ones(3)), errors.SingularError),
    (lambda: LA.solve_banded((1, 1), ad.zeros((3, 20)), ad.ones(20)), errors.SingularError),
    (lambda: LA.solveh_banded(ad.ones((2, 3)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.solveh_banded(ad.ones((0, 3)), ad.ones(3)), errors.ShapeError),
    (lambda: LA.block_diag(ad.ones((2, 1, 1)), ad.ones((3, 1, 1))), errors.ShapeError),
    (lambda: LA.toeplitz(ad.tensor(1.0)), errors.ShapeError),
    (lambda: LA.toeplitz(ad.ones((2, 2)), ad.ones((3, 2))), errors.ShapeError),
    (lambda: LA.circulant(ad.tensor(1.0)), errors.ShapeError),
    (lambda: LA.svd_lowrank(ad.ones((2, 2))), errors.ArgumentError),
    (lambda: LA.svd_lowrank(ad.ones((2, 2)), 0), errors.ArgumentError),
    (lambda: LA.svd_lowrank(ad.ones(2), 1), errors.ShapeError),
    (lambda: LA.matrix_rank(ad.ones((2, 2)), 1.0, rtol=1.0), errors.ArgumentError),
    (lambda: LA.pinv(ad.ones((2, 3)), hermitian=True), errors.NotSquareError),
    (lambda: LA.lu(ad.ones(2)), errors.ShapeError),
    (lambda: LA.slogdet(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.expm(ad.ones((2, 3))), errors.NotSquareError),
    (lambda: LA.matrix_power(ad.ones((2, 2)), 0.5), errors.ArgumentTypeError),
    (lambda: LA.matrix_power(ad.ones((2, 2)), -1), errors.SingularError),
    (lambda: LA.solve_triangular(ad.ones((2, 3)), ad.ones(2), upper=True), errors.NotSquareError),
    (lambda: LA.solve_triangular(ad.ones((2, 2)), ad.ones(3), upper=True), errors.ShapeError),
    (lambda: LA.solve_triangular(ad.zeros((2, 2)), ad.ones(2), upper=True), errors.SingularError),
    (lambda: LA.cholesky_solve(ad.ones(3), ad.ones((2, 2))), errors.ShapeError),
    (lambda: LA.lstsq(ad.ones((3, 2)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.lstsq(ad.ones((3, 2)), ad.tensor(1.0)), errors.ShapeError),
    (lambda: LA.pinv(ad.ones((3, 2)), rtol="small"), errors.ArgumentTypeError),
    (lambda: LA.matrix_norm(ad.ones((2, 2)), ord=3), errors.ArgumentError),
    (lambda: LA.cond(ad.ones((2, 3)), 1), errors.NotSquareError),
    (lambda: LA.cond(ad.ones((0, 3))), errors.ShapeError),
    (lambda: LA.cross(ad.ones(2), ad.ones(2)), errors.ShapeError),
    (lambda: LA.cross(ad.ones((2, 3)), ad.ones((4, 3))), errors.ShapeError),
    (lambda: LA.cross(ad.ones(3), ad.ones(3), axis=-2), errors.AxisError),
    (lambda: LA.diagonal(ad.ones(3)), errors.ShapeError),
    (lambda: LA.trace(ad.ones((2, 2)), offset=0.5), errors.ArgumentTypeError),
    (lambda: LA.multi_dot([ad.ones((2, 2))]), errors.ArgumentError),
    (lambda: LA.multi_dot([ad.ones((2, 2)), ad.ones(2), ad.ones((2, 2))]), errors.ShapeError),
    (lambda: LA.multi_dot([ad.ones((2, 2)), ad.ones((3, 2))]), errors.ShapeError),
    (lambda: LA.householder_product(ad.ones((2, 3)), ad.ones(2)), errors.ShapeError),
    (lambda: LA.householder_product(ad.ones((3, 2)), ad.ones(3)), errors.ShapeError),
    (lambda: LA.svd(ad.ones((2, 2), dtype=ad.float16)), errors.DtypeError),
]


@pytest.mark.parametrize(("call", "error"), BAD, ids=range(len(BAD)))
def test_bad_arguments(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_results_have_names_and_integers_become_floats() -> None:
    x = ad.tensor([[2, 1], [1, 2]])
    assert LA.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert LA.qr(x)._fields == ("Q", "R")
    assert LA.svd(x)._fields == ("U", "S", "Vh")
    assert LA.slogdet(x)._fields == ("sign", "logabsdet")
    assert LA.eig(x).eigenvalues.dtype is ad.complex64
    assert LA.svdvals(x.astype(ad.complex128)).dtype is ad.float64
    assert LA.trace(x).dtype is ad.int64
    assert LA.kron(x, x).dtype is ad.int64


@pytest.mark.parametrize("offset", [-3, -2, -1, 0, 1, 2, 3, 4])
def test_diagonals_are_those_of_numpy(offset: int) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(
        LA.diagonal(ad.asarray(x), offset=offset).numpy(), np.linalg.diagonal(x, offset=offset)
    )
    np.testing.assert_array_equal(LA.trace(ad.asarray(x), offset=offset).numpy(), np.linalg.trace(x, offset=offset))


@pytest.mark.parametrize("make", [normal, complex_normal])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_third_derivatives_of_determinants_along_a_batch(make: Callable[..., Array], shape: tuple[int, ...]) -> None:
    """The point is one for all examples, and has fewer axes than they."""
    x, u, v, w = [make(*shape) for _ in range(4)]

    def total(x: Any) -> Any:
        found = LA.det(x)
        return (found.real if found.dtype.kind == "c" else found).sum()

    def along(f: Any, *directions: Array) -> Any:
        for t in directions:
            f = functools.partial(lambda f, t, x: ad.jvp(f, (x,), (t,))[1], f, t)
        return f

    many = ad.vmap(lambda t: along(total, u, t, w)(x))(np.stack([v, w]))
    slopes = ad.jvp(lambda x: ad.vmap(lambda t: along(total, u, t)(x))(np.stack([v, w])), (x,), (w,))[1]
    for i, t in enumerate([v, w]):
        expected = along(total, u, t, w)(x)
        h = 1e-5
        differences = (along(total, u, t)(x + h * w) - along(total, u, t)(x - h * w)) / (2 * h)
        np.testing.assert_allclose(expected, differences, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose([many[i], slopes[i]], expected, rtol=1e-9, atol=1e-9)
    if make is normal:
        hessian = ad.hessian(along(total, u))(x).reshape(x.size, x.size)
        np.testing.assert_allclose(v.ravel() @ hessian @ w.ravel(), along(total, u, v, w)(x), rtol=1e-9, atol=1e-9)
