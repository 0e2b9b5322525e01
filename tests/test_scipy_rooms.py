"""SciPy's functions called with tracked tensors: no result has lost its derivative, under no transform."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

pytest.importorskip("scipy")
V = np.array([1.0, 2.0, 4.0, 3.0, 7.0, 5.0])
M = np.array([[3.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 5.0]])
I = np.arange(6.0)
E = np.eye(3)

# by the room: calls with a vector and a matrix
CALLS: dict[str, list[Callable[[Any, Any, Any], Any]]] = {
    "ndimage": [
        lambda s, v, m: s.gaussian_filter(m, 1.0),
        lambda s, v, m: s.convolve(m, m),
        lambda s, v, m: s.convolve1d(M, v[:3]),
        lambda s, v, m: s.zoom(m, 2.0),
        lambda s, v, m: s.rotate(M, v[0]),
        lambda s, v, m: s.map_coordinates(M, m[:2]),
        lambda s, v, m: s.maximum(m),
        lambda s, v, m: s.label(m),
        lambda s, v, m: s.distance_transform_edt(m),
    ],
    "spatial": [
        lambda s, v, m: s.distance_matrix(m, M),
        lambda s, v, m: s.KDTree(m),
        lambda s, v, m: s.cKDTree(m),
        lambda s, v, m: s.cKDTree(M).query(m),
        lambda s, v, m: s.ConvexHull(m),
        lambda s, v, m: s.procrustes(m, M),
    ],
    "spatial.distance": [
        lambda s, v, m: s.cdist(M, m),
        lambda s, v, m: s.pdist(m),
        lambda s, v, m: s.minkowski(V, v, 3),
        lambda s, v, m: s.jensenshannon(v, V),
        lambda s, v, m: s.mahalanobis(V[:3], V[3:], m),
    ],
    "spatial.transform": [
        lambda s, v, m: s.Rotation.from_rotvec(v[:3]),
        lambda s, v, m: s.Rotation.from_matrix(E).apply(m),
    ],
    "cluster.vq": [lambda s, v, m: s.kmeans2(m, 2, seed=0), lambda s, v, m: s.vq(M, m), lambda s, v, m: s.whiten(m)],
    "cluster.hierarchy": [lambda s, v, m: s.linkage(m)],
    "interpolate": [
        lambda s, v, m: s.CubicSpline(I, v),
        lambda s, v, m: s.CubicSpline(I, V)(v),
        lambda s, v, m: s.interp1d(I, v),
        lambda s, v, m: s.UnivariateSpline(I, v),
        lambda s, v, m: s.splev(v, s.splrep(I, V)),
        lambda s, v, m: s.BSpline(V, v[:3], 2),
        lambda s, v, m: s.griddata(M[:, :2], v[:3], M[:, :2]),
        lambda s, v, m: s.RegularGridInterpolator((I[:3], I[:3]), m),
        lambda s, v, m: s.RBFInterpolator(M, V[:3])(m),
    ],
    "signal": [
        lambda s, v, m: s.convolve(v, V),
        lambda s, v, m: s.lfilter([1.0], [1.0, 0.5], v),
        lambda s, v, m: s.savgol_filter(v, 3, 1),
        lambda s, v, m: s.butter(2, v[0] / 10),
        lambda s, v, m: s.welch(v, nperseg=4),
        lambda s, v, m: s.find_peaks(v),
        lambda s, v, m: s.hilbert(v),
        lambda s, v, m: s.argrelmax(v),
        lambda s, v, m: s.gausspulse(v),
        lambda s, v, m: s.StateSpace(m, M, M, M),
    ],
    "sparse": [
        lambda s, v, m: s.csr_array(m),
        lambda s, v, m: s.csr_array((v[:3], (np.arange(3), np.arange(3)))),
        lambda s, v, m: s.diags(v),
        lambda s, v, m: s.eye_array(3).tocsr() @ m,
        lambda s, v, m: m @ s.eye_array(3).tocsc(),
        lambda s, v, m: s.eye_array(3).tocoo() * v[0],
        lambda s, v, m: s.eye_array(3).tolil().__setitem__((0, 0), v[0]),
        lambda s, v, m: s.kron(m, M),
    ],
    "sparse.linalg": [
        lambda s, v, m: s.cg(m, V[:3]),
        lambda s, v, m: s.gmres(E, v[:3]),
        lambda s, v, m: s.lsqr(m, V[:3]),
        lambda s, v, m: s.eigsh(m, 1),
        lambda s, v, m: s.svds(m, 1),
        lambda s, v, m: s.splu(m),
        lambda s, v, m: s.expm_multiply(m, V[:3]),
        lambda s, v, m: s.expm_multiply(M, v[:3]),
        lambda s, v, m: s.matrix_power(m, 2),
    ],
    "sparse.csgraph": [lambda s, v, m: s.shortest_path(m), lambda s, v, m: s.laplacian(m)],
}


def kept(result: Any) -> bool:
    """Whether a tensor is in the result, which a derivative goes through."""
    return any(isinstance(leaf, ad.Tensor) for leaf in ad.tree.leaves(result))


def seen(call: Callable[[Any, Any, Any], Any], room: Any, x: Any, a: Any) -> Any:
    """Its result, or that there was an error."""
    try:
        return call(room, x, a)
    except (errors.AdjointError, TypeError, ValueError):
        return x


@pytest.mark.filterwarnings("ignore")  # of SciPy's, which we do not call in earnest
@pytest.mark.parametrize("name", CALLS)
def test_no_function_loses_a_derivative(name: str) -> None:
    room = importlib.import_module(f"scipy.{name}")
    with Each() as each:
        for number, call in enumerate(CALLS[name]):
            with each(f"scipy.{name}, call {number}"):
                found = [seen(call, room, ad.tensor(V).require_grad(), ad.tensor(M).require_grad())]

                def f(x: Any, a: Any, call: Any = call, found: Any = found) -> Any:
                    found.append(seen(call, room, x, a))
                    return x.sum() + a.sum()

                ad.grad(f, argnums=(0, 1))(V, M)
                ad.vmap(f)(np.stack([V, V]), np.stack([M, M]))
                ad.vmap(ad.grad(f))(np.stack([V, V]), np.stack([M, M]))
                ad.jvp(f, (V, M), (V, M))
                assert all(kept(result) for result in found), found
