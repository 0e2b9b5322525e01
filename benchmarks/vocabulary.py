"""What is measured of the vocabulary: fused functions of networks against PyTorch's, value and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run, normal


def _both(
    f: Callable[[Any, Any, Any], Any], values: list[Any], constants: list[Any], *, library: str = "nn"
) -> dict[str, Callable[[], Run]]:
    """A scalar function of parameters and constants, `f(functions, parameters, constants)`, in either library."""

    def ours() -> Run:
        leaves, fixed = [ad.tensor(v).require_grad() for v in values], [ad.tensor(v) for v in constants]

        def run() -> None:
            loss = f(getattr(ad, library), leaves, fixed)
            loss.item()
            loss.backward()

        return run

    def torch() -> Run:
        import torch as t

        leaves, fixed = [t.tensor(v, requires_grad=True) for v in values], [t.tensor(v) for v in constants]

        def run() -> None:
            loss = f(t.nn.functional if library == "nn" else t.linalg, leaves, fixed)
            loss.item()
            loss.backward()
            for leaf in leaves:
                leaf.grad = None

        return run

    return {"adjoint": ours, "PyTorch": torch}


def _conv_net() -> dict[str, Callable[[], Run]]:
    """3 x 3 convolutions of 16 and 32 channels with pooling, then a linear layer, of 64 images of 28 x 28."""
    shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, 32 * 7 * 7), (10,)]
    parameters = [v * np.float32(0.1) for v in normal(*shapes)]
    (images,) = normal((64, 1, 28, 28), seed=1)
    labels = np.random.default_rng(2).integers(0, 10, 64)

    def loss(F: Any, p: Any, c: Any) -> Any:
        h = F.max_pool2d(F.relu(F.conv2d(c[0], p[0], p[1], padding=1)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, p[2], p[3], padding=1)), 2)
        return F.cross_entropy(F.linear(h.reshape((64, -1)), p[4], p[5]), c[1])

    return _both(loss, parameters, [images, labels])


def _attention() -> dict[str, Callable[[], Run]]:
    given, weights = normal(*[(8, 4, 128, 32)] * 3), normal((8, 4, 128, 32), seed=1)
    return _both(lambda F, p, c: (F.scaled_dot_product_attention(*p) * c[0]).sum(), given, weights)


def _layer_norm() -> dict[str, Callable[[], Run]]:
    given, weights = normal((1024, 512), (512,), (512,)), normal((1024, 512), seed=1)
    return _both(lambda F, p, c: (F.layer_norm(p[0], (512,), p[1], p[2]) * c[0]).sum(), given, weights)


def _depthwise() -> dict[str, Callable[[], Run]]:
    """Each of 32 channels with a 3 x 3 kernel of its own; 16 images of 28 x 28."""
    given, weights = normal((16, 32, 28, 28), (32, 1, 3, 3)), normal((16, 32, 28, 28), seed=1)
    return _both(lambda F, p, c: (F.conv2d(p[0], p[1], padding=1, groups=32) * c[0]).sum(), given, weights)


# --- linear algebra: 64 matrices of 32 x 32, value and gradients ---

STACK = (64, 32, 32)


def _matrices(
    f: Callable[[Any, Any], Any], values: list[Any], weights: list[tuple[int, ...]]
) -> dict[str, Callable[[], Run]]:
    """A weighted sum of what `f(linalg, parameters)` gives."""

    def loss(linalg: Any, p: Any, c: Any) -> Any:
        out = f(linalg, p)
        parts = out if isinstance(out, tuple) else (out,)
        total = (parts[0] * c[0]).sum()
        return total + (parts[1] * c[1]).sum() if len(c) > 1 else total

    return _both(loss, values, normal(*weights, seed=1), library="linalg")


def _definite() -> Any:
    (x,) = normal(STACK)
    return x @ x.transpose(0, 2, 1) / 32 + np.eye(32, dtype=np.float32)


def _cholesky() -> dict[str, Callable[[], Run]]:
    return _matrices(lambda L, p: L.cholesky(p[0]), [_definite()], [STACK])


def _solve() -> dict[str, Callable[[], Run]]:
    return _matrices(lambda L, p: L.solve(p[0], p[1]), [_definite(), *normal(STACK, seed=2)], [STACK])


def _eigh() -> dict[str, Callable[[], Run]]:
    """Eigenvalues, and the squares of the eigenvectors' elements, which no sign changes."""

    def f(linalg: Any, p: Any) -> Any:
        values, vectors = linalg.eigh(p[0])
        return values, vectors * vectors

    return _matrices(f, [_definite()], [STACK[:2], STACK])


def _svd() -> dict[str, Callable[[], Run]]:
    def f(linalg: Any, p: Any) -> Any:
        u, values, _ = linalg.svd(p[0], full_matrices=False)
        return values, u * u

    return _matrices(f, normal(STACK), [STACK[:2], STACK])


CASES = [
    Case("conv net: 16 and 32 channels, pooling, linear; 64 images of 28 x 28", _conv_net(), {"PyTorch": 2.0}),
    Case("attention, 8 x 4 x 128 x 32", _attention(), {"PyTorch": 1.3}),
    Case("layer_norm, 1024 x 512", _layer_norm(), {"PyTorch": 1.3}),
    Case("depthwise convolution, 16 x 32 x 28 x 28", _depthwise()),
    Case("cholesky, 64 x 32 x 32", _cholesky(), {"PyTorch": 1.2}),
    Case("solve, 64 x 32 x 32", _solve(), {"PyTorch": 1.2}),
    Case("eigh, 64 x 32 x 32", _eigh(), {"PyTorch": 1.2}),
    Case("svd, 64 x 32 x 32", _svd(), {"PyTorch": 1.2}),
]
