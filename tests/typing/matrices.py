"""Jacobians, Hessians, products, vmap, linear algebra, special functions and distributions."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np

import adjoint as ad

A = np.array([[2.0, 0.5], [0.5, 1.0]])
b = np.ones(2)


def f(x: ad.Tensor) -> ad.Tensor:
    return ad.stack([x[0] * x[1], ad.sin(x[0])])


def g(x: ad.Tensor) -> ad.Tensor:
    return 0.5 * x @ A @ x - ad.dot(b, x)


J = ad.jacobian(f)(b)
H = ad.hessian(g)(b)
print(J @ b, H - A, np.linalg.eigvalsh(H), J.shape, H.T)
print(ad.hvp(g, (b,), (b,)) * 2)
value, tangent = ad.jvp(f, (b,), (b,))
value, pullback = ad.vjp(f, b)
(cotangent,) = pullback(np.ones(2))
print(tangent, cotangent, value)
batch = np.zeros((10, 2))
rows = ad.vmap(ad.grad(g))(batch)
print(rows.mean(axis=0), ad.vmap(ad.dot, in_axes=(0, None))(batch, b))
sparse = ad.sparse_jacobian(f)(b)
print(sparse.shape)

x = ad.linalg.solve(A, b)
L = ad.linalg.cholesky(A)
values, vectors = ad.linalg.eigh(A)
U, S, Vh = ad.linalg.svd(A)
sign, logdet = ad.linalg.slogdet(A)
Q, R = ad.linalg.qr(A)
print(x.sum(), L @ L.T, values[0], vectors @ vectors.T, U, S, Vh, sign, logdet, Q @ R)
print(ad.linalg.norm([3.0, 4.0]), ad.linalg.inv([[2.0, 0.0], [0.0, 1.0]]), ad.linalg.det(A), ad.linalg.expm(A))
print(ad.special.gammaln([1.0, 2.0]), ad.special.erf(0.5), ad.special.softmax([1.0, 2.0]), ad.special.logsumexp(b))
print(ad.special.jv(1, 2.0), ad.special.betainc(1.0, 2.0, [0.5, 0.25]), ad.special.logsumexp([[1.0, 2.0]], axis=-1))
print(ad.stats.norm.logpdf([1.0, 2.0], 0.0, 1.0), ad.stats.gamma.cdf(b, 2.0), ad.stats.poisson.logpmf([1, 2], 1.5))
print(ad.stats.multivariate_normal.logpdf(b, np.zeros(2), A))
print(ad.nn.relu([1.0, -1.0]), ad.nn.softmax([[1.0, 2.0]], axis=-1), ad.nn.one_hot([0, 1], 3))
print(ad.nn.cross_entropy([[1.0, 2.0]], [1]), ad.nn.mse_loss([1.0], [2.0]))
print(ad.where([True, False], [1.0, 2.0], 0.0), ad.where(b > 0, b, 0.0), ad.where(np.array([True, False]), 1.0, 2.0))
print(ad.sum([1.0, 2.0]), ad.exp([1.0]), ad.maximum([1.0], b), ad.concat([[1.0], [2.0]]), ad.clip([1.0, 2.0], 0.0, 1.5))
print(ad.fft.fft([1.0, 2.0, 3.0]).real, ad.interp(0.5, [0.0, 1.0], [1.0, 2.0]), ad.cumulative_sum([1.0, 2.0]))
print(ad.stats.norm.ppf(0.5), ad.einsum("ij,j->i", A, b), ad.tensordot(A, b, axes=1), ad.argmax([1.0, 2.0]))
print(ad.isfinite([1.0]).all(), ad.matmul(A, [1.0, 2.0]), ad.mean([[1.0, 2.0]], axis=0), ad.sort([2.0, 1.0]))
print(
    bool(ad.allclose(A, A)),
    ad.tensor(A)[0, 1].item(),
    ad.tensor(A)[:, None].shape,
    ad.outer(b, b),
    ad.interp(0.5, [0.0, 1.0], b),
    ad.polyval([1.0, 2.0], b),
    ad.var([1.0, 2.0]),
)
