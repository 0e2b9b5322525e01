"""Linear systems without their matrices: Krylov methods on tensors.

They run on leaf backends and on batches over them. The examples of a batch have coefficients of their own, and
those that have converged stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.concrete import Lazy
from adjoint.dtypes import finfo
from adjoint.functions.contraction import vecdot
from adjoint.functions.elementwise import where
from adjoint.functions.shape import stack
from adjoint.linalg import vector_norm
from adjoint.operands import concrete_values
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.carries import with_examples_of

Product = Callable[[Tensor[Any]], Tensor[Any]]
_MEMORY = 2_000_000  # how many numbers directions may take, and images as many
Solution = tuple[Tensor[Any], Tensor[Any]]  # x, and whether it solves the system


def for_all_examples(flag: Tensor[Any]) -> bool:
    """Whether it is true; of a batch, for all examples."""
    return bool(np.all(concrete_values(flag, "a solver")))


def kept(x: Tensor[Any]) -> Tensor[Any]:
    """The tensor; on a leaf that computes later computed now, so that no later step of a search computes it again."""
    leaf = x.device.leaf
    if not isinstance(leaf, Lazy):
        return x
    return wrap(x.device.with_primal(x._array, lambda below: leaf.persisted([below])[0]), x.device)


def _over(x: Tensor[Any], size: Tensor[Any]) -> Tensor[Any]:
    """x / size, and 0 for the size 0."""
    return x / where(size > 0, size, np.inf)


def cg(product: Product, b: Tensor[Any], tol: Any, maxiter: int) -> Solution:
    """The x of A x = b for a symmetric positive definite A, up to |A x - b| <= tol |b|.

    Conjugate gradients, M. Hestenes and E. Stiefel (1952), as algorithm 5.2 of J. Nocedal and S. Wright, Numerical
    Optimization (2006). It stops at a direction of negative curvature as their algorithm 7.1 does: x is what was
    found so far, b itself if nothing was.
    """
    x, r, p = b * 0, b, b
    size = vecdot(r, r)
    bound = tol * tol * size
    going = size > bound
    for count in range(maxiter):
        q = product(p)
        curvature = vecdot(p, q)
        going = going & (curvature > 0)
        alpha = where(going, size / where(going, curvature, 1.0), 0.0)
        x = x + alpha * p if count else where(going, alpha * p, b)
        x, r = kept(x), kept(r - alpha * q)
        before, size = size, vecdot(r, r)
        going = going & (size > bound)
        if for_all_examples(~going):
            break
        p = kept(r + where(going, size / where(going, before, 1.0), 0.0) * p)
    return x, size <= bound


def gmres(product: Product, b: Tensor[Any], tol: float, maxiter: int) -> Solution:
    """The x of A x = b for any regular A, up to |A x - b| <= tol |b|.

    The residual is minimised over Krylov spaces, as by GMRES, Y. Saad and M. Schultz (1986), in the form of
    P. Jiranek and M. Rozloznik, Adaptive version of Simpler GMRES (2010): directions whose images are orthonormal,
    so that there is no least squares problem. The next direction is the residual, or where that has hardly become
    smaller the last image, so that it does not break down. It starts again when the directions fill the memory.
    """
    restart = max(40, _MEMORY // b.size)
    eps = float(finfo(b.dtype).eps)
    x, r = b * 0, b
    bound = tol * vector_norm(b)
    count = 0
    while True:
        size = vector_norm(r)
        if count >= maxiter or for_all_examples(size <= bound):
            return x if count else with_examples_of(x, product(x)), size <= bound
        directions: list[Tensor[Any]] = []
        images: list[Tensor[Any]] = []
        z = _over(r, size)
        for _ in range(min(restart, maxiter - count)):
            w = product(z)
            count += 1
            whole = vector_norm(w)
            if images:
                Z, W = stack(directions), stack(images)
                for _ in range(2):  # once leaves errors of rounding, twice is enough
                    along = W @ w
                    z, w = z - along @ Z, w - along @ W
            rest = vector_norm(w)
            rest = where(rest > 10 * eps * whole, rest, 0.0)  # nothing new but rounding
            z, w = kept(_over(z, rest)), kept(_over(w, rest))
            directions.append(z)
            images.append(w)
            alpha = where(size > bound, vecdot(w, r), 0.0)
            x, r = kept(x + alpha * z), kept(r - alpha * w)
            before, size = size, vector_norm(r)
            if for_all_examples(size <= bound):
                break
            z = where(size < 0.9 * before, _over(r, size), w)
        r = b - product(x)
