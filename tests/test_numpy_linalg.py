"""NumPy's linear algebra called with tensors: in batches and differentiated as alone, and as NumPy on the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad

_rng = np.random.default_rng(1)
TALL, WIDE, SQUARE = (4, 3), (2, 3), (3, 3)
CUBE = np.eye(6).reshape(2, 3, 6)
LA = np.linalg
# functions, and the shapes of their arguments; those of square matrices and of cubes are near the identity
CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "lstsq": (lambda a, b: LA.lstsq(a, b), [TALL, (4,)]),
    "lstsq, several": (lambda a, b: LA.lstsq(a, b, rcond=None), [TALL, (4, 2)]),
    "lstsq, wide": (lambda a, b: LA.lstsq(a, b), [WIDE, (2,)]),
    "tensorsolve": (LA.tensorsolve, [(2, 3, 6), (2, 3)]),
    "tensorsolve along": (lambda a, b: LA.tensorsolve(a, b, axes=(0,)), [(6, 2, 3), (2, 3)]),
    "tensorinv": (LA.tensorinv, [(2, 3, 6)]),
    "tensorinv, one axis": (lambda a: LA.tensorinv(a, ind=1), [(6, 2, 3)]),
    "multi_dot": (lambda *xs: LA.multi_dot(xs), [TALL, SQUARE, (3, 2)]),
    "multi_dot of vectors": (lambda *xs: LA.multi_dot(xs), [(4,), TALL, (3,)]),
    "matrix_power": (lambda a: LA.matrix_power(a, -2), [SQUARE]),
    "inv": (LA.inv, [SQUARE]),
    "det": (LA.det, [SQUARE]),
    "slogdet": (lambda a: tuple(LA.slogdet(a)), [SQUARE]),
    "solve": (LA.solve, [SQUARE, (3,)]),
    "solve, several": (LA.solve, [SQUARE, (3, 2)]),
    "pinv": (LA.pinv, [TALL]),
    "pinv, hermitian": (lambda a: LA.pinv(a, hermitian=True), [SQUARE]),
    "pinv, rcond": (lambda a: LA.pinv(a, rcond=1e-3), [TALL]),
    "qr": (lambda a: abs(LA.qr(a)[1]), [TALL]),
    "qr, R alone": (lambda a: abs(LA.qr(a, mode="r")), [TALL]),
    "svd": (lambda a: LA.svd(a)[1], [TALL]),
    "svd, values": (lambda a: LA.svd(a, compute_uv=False, hermitian=True), [SQUARE]),
    "svdvals": (LA.svdvals, [WIDE]),
    "eigh": (lambda a: LA.eigh(a + a.T, UPLO="U")[0], [SQUARE]),
    "eigvalsh": (lambda a: LA.eigvalsh(a + a.T, "U"), [SQUARE]),
    "eig": (lambda a: abs(LA.eig(a)[0] ** 2).sum(), [SQUARE]),
    "eigvals": (lambda a: abs(LA.eigvals(a)).sum(), [SQUARE]),
    "cholesky": (lambda a: LA.cholesky(a @ a.T, upper=True), [SQUARE]),
    "norm": (lambda a: LA.norm(a, 1, axis=0), [TALL]),
    "norm, nuclear": (lambda a: LA.norm(a, "nuc"), [TALL]),
    "matrix_norm": (lambda a: LA.matrix_norm(a, ord=2), [TALL]),
    "vector_norm": (lambda a: LA.vector_norm(a, axis=1, ord=3), [TALL]),
    "cond": (lambda a: LA.cond(a, "fro"), [SQUARE]),
    "matrix_rank": (lambda a: LA.matrix_rank(a, 0.5) * a.sum(), [TALL]),
    "cross": (LA.cross, [WIDE, WIDE]),
    "outer": (LA.outer, [(2,), (3,)]),
    "diagonal": (lambda a: LA.diagonal(a, offset=1), [TALL]),
    "trace": (LA.trace, [SQUARE]),
    "tensordot": (LA.tensordot, [(2, 3, 2), (3, 2, 2)]),
    "vecdot": (LA.vecdot, [WIDE, WIDE]),
    "einsum": (lambda a, b: np.einsum("ij,jk", a, b), [TALL, SQUARE]),
    "kron": (np.kron, [(2, 2), (2,)]),
}


def stack(shape: tuple[int, ...]) -> Any:
    """Two examples."""
    values = 0.2 * _rng.normal(size=(2, *shape))
    near = {SQUARE: np.diag([1.0, 2.0, 3.0]), (2, 3, 6): CUBE, (6, 2, 3): CUBE.reshape(6, 2, 3)}
    return values + near.get(shape, 5 * values)


def flat(out: Any) -> list[Any]:
    outs = out if isinstance(out, (tuple, list)) else [out]
    return [x.numpy() if isinstance(x, ad.Tensor) else np.asarray(x) for x in outs]


@pytest.mark.parametrize("name", CALLS)
def test_examples_together_are_as_alone_and_as_numpy_has_them(name: str) -> None:
    f, shapes = CALLS[name]
    stacks = [stack(shape) for shape in shapes]

    def total(*xs: Any) -> Any:
        outs = f(*xs)
        return sum((y * y).sum() for y in (outs if isinstance(outs, tuple) else [outs]) if y.dtype.kind == "f")

    alone = [[x[i] for x in stacks] for i in range(2)]
    together = flat(ad.vmap(f)(*stacks))
    for k, found in enumerate(together):
        np.testing.assert_allclose(found, [flat(f(*xs))[k] for xs in alone], rtol=1e-9, atol=1e-11)
    places = tuple(range(len(shapes)))
    slopes = ad.vmap(ad.grad(total, argnums=places))(*stacks)
    for k, found in enumerate(slopes):
        np.testing.assert_allclose(
            found, [ad.grad(total, argnums=places)(*xs)[k] for xs in alone], rtol=1e-9, atol=1e-10
        )
    ad.testing.check_grads(total, tuple(alone[0]))
    curvature = ad.vmap(ad.hessian(total))(*stacks)
    np.testing.assert_allclose(curvature[1], ad.hessian(total)(*alone[1]), rtol=1e-7, atol=1e-9)
    if len(stacks) == 2:  # one of the arguments the same for all examples
        mixed = flat(ad.vmap(f, in_axes=(None, 0))(alone[0][0], stacks[1]))
        np.testing.assert_allclose(mixed[0][1], flat(f(alone[0][0], alone[1][1]))[0], rtol=1e-9, atol=1e-11)


def test_residuals_of_examples_of_which_one_has_full_rank() -> None:
    a, b = np.stack([np.eye(3, 2), np.ones((3, 2))]), np.arange(6.0).reshape(2, 3)
    residuals = ad.vmap(lambda x, y: LA.lstsq(x, y)[1])(a, b)
    np.testing.assert_allclose(residuals, [[4.0], [2.0]], atol=1e-12)
    assert ad.vmap(lambda y: LA.lstsq(ad.ones((3, 2)), y)[1])(b).shape == (2, 0)
