"""`adjoint.pot`: POT's functions on tensors have POT's values, and right gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors, pot

ot = pytest.importorskip("ot", reason="needs POT: pip install POT")
pot.register()

_rng = np.random.default_rng(0)
A, B = (w / w.sum() for w in _rng.uniform(0.5, 1.5, (2, 5)))
X, Y = _rng.normal(size=(2, 5, 2))
COSTS = ((X[:, None] - Y) ** 2).sum(-1)
NEAR = np.abs(X[:, :1] - X[:, 0])
FAR = np.abs(Y[:, :1] - Y[:, 0]) * 3

# functions to a number, or to an array
CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dist": (ot.dist, (X, Y)),
    "sinkhorn": (lambda c: ot.sinkhorn(A, B, c, 0.5), (COSTS,)),
    "sinkhorn_log": (lambda x: ot.sinkhorn2(A, B, ot.dist(x, Y), 0.5, method="sinkhorn_log"), (X,)),
    "sinkhorn_unbalanced": (lambda a, c: ot.sinkhorn_unbalanced2(a, B, c, 0.5, 1.0), (A, COSTS)),
    "sinkhorn_stabilized": (lambda c: ot.sinkhorn2(A, B, c, 0.5, method="sinkhorn_stabilized"), (COSTS,)),
    "barycenter": (
        lambda a: ot.bregman.barycenter(a, COSTS, 1.0, numItermax=50, warn=False),
        (np.stack([A, B], axis=1),),
    ),
    "wasserstein_1d": (lambda x: ot.wasserstein_1d(x, Y[:, 0], p=2), (X[:, 0],)),
    "sliced": (lambda x: ot.sliced_wasserstein_distance(x, Y, n_projections=5, seed=0), (X,)),
    "bures": (lambda x: ot.gaussian.empirical_bures_wasserstein_distance(x, Y), (X,)),
    "smooth": (lambda c: ot.gaussian.bures_wasserstein_distance(X[0], Y[0], c.T @ c, Y.T @ Y), (X,)),
    "solve": (lambda c: ot.solve(c, A, B, reg=0.5).value, (COSTS,)),
    "emd2": (lambda c: ot.emd2(A, B, c), (COSTS,)),
    "emd2 of points": (lambda x: ot.emd2(A, B, ot.dist(x, Y, metric="euclidean")), (X,)),
    "gromov": (lambda c: ot.gromov_wasserstein2(c, FAR, A, B), (NEAR,)),
    "fused": (lambda c: ot.gromov.fused_gromov_wasserstein2(c, NEAR, FAR, A, B), (COSTS,)),
}
GIVEN = {"emd2", "emd2 of points", "gromov", "fused"}  # whose derivatives POT gives, for reverse mode


def tensors(f: Any) -> Any:
    """The function with its constants as tensors: POT takes arrays of one library."""
    held = {name: ad.asarray(globals()[name]) for name in ("A", "B", "X", "Y", "COSTS", "NEAR", "FAR")}
    code = f.__code__ if hasattr(f, "__code__") and f.__module__ == __name__ else None
    return f if code is None else type(f)(code, globals() | held)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    f, args = CALLS[name]
    ours = tensors(f)
    out = ours(*map(ad.asarray, args))
    assert isinstance(out, ad.Tensor)
    np.testing.assert_allclose(out.numpy(), f(*args), rtol=1e-9)
    modes = ("reverse",) if name in GIVEN else ("reverse", "forward")
    ad.testing.check_grads(ours, args, modes=modes, order=1)


def test_a_function_in_a_batch() -> None:
    f = tensors(CALLS["wasserstein_1d"][0])
    np.testing.assert_allclose(ad.vmap(f)(X.T), [f(ad.asarray(x)).numpy() for x in X.T], rtol=1e-12)
    slopes = [ad.grad(f)(x) for x in X.T]
    np.testing.assert_allclose(ad.vmap(ad.grad(f))(X.T), slopes, rtol=1e-12)


def test_weights_have_the_gradient_of_pots_potentials() -> None:
    a, b = ad.asarray(A).require_grad(), ad.asarray(B).require_grad()
    slopes = ot.emd2(a, b, ad.asarray(COSTS)).backward()
    change = np.array([0.01, -0.01, 0.0, 0.02, -0.02])
    for w, f in ((a, lambda v: ot.emd2(v, B, COSTS)), (b, lambda v: ot.emd2(A, v, COSTS))):
        measured = (f(w.detach().numpy() + 1e-3 * change) - f(w.detach().numpy() - 1e-3 * change)) / 2e-3
        np.testing.assert_allclose(slopes[w].numpy() @ change, measured, rtol=1e-8)


def test_a_derivative_that_pot_does_not_give_is_refused() -> None:
    f = tensors(CALLS["emd2"][0])
    with pytest.raises(errors.TrackedError, match="jvp"):
        ad.jvp(f, (COSTS,), (COSTS,))
    with pytest.raises(errors.TrackedError, match="derivative"):
        ad.hessian(f)(COSTS)


def test_sparse_plans_are_dense_matrices() -> None:
    plan = ot.emd_1d(ad.asarray(X[:, 0]), ad.asarray(Y[:, 0]), dense=False)
    np.testing.assert_allclose(plan.numpy(), ot.emd_1d(X[:, 0], Y[:, 0]), rtol=1e-12)


def test_new_tensors_are_as_those_beside_them() -> None:
    nx = ot.backend.get_backend(ad.ones(2))
    assert nx.__name__ == "adjoint"
    like = ad.tensor(1.0, dtype=ad.float64, device="numpy")
    for x in (
        nx.zeros(2, type_as=like), nx.ones(2, type_as=like), nx.full(2, 3, type_as=like), nx.eye(2, type_as=like),
        nx.linspace(0, 1, 3, type_as=like), nx.rand(2, type_as=like), nx.randn(2, type_as=like),
        nx.from_numpy(np.ones(2), type_as=like),
    ):  # fmt: skip
        nx.assert_same_dtype_device(x, like)
    assert nx.arange(3, type_as=like).device is like.device
    assert sorted(nx.randperm(4).tolist()) == [0, 1, 2, 3]
    with pytest.raises(AssertionError, match="differ"):
        nx.assert_same_dtype_device(ad.zeros(1, dtype=ad.float32), like)
