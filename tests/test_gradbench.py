"""The problems of GradBench give the same derivatives with every library that they are measured with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from benchmarks.gradbench.libraries import LIBRARIES
from benchmarks.gradbench.problems import PROBLEMS

jax, torch = peer("jax"), peer("torch")
BY_NAME = {problem.name: problem for problem in PROBLEMS}
# small ones, of which ours run in a moment; a nested minimum is looked for beside where it is
SIZES: dict[str, tuple[Any, ...]] = {
    "hello": (3.0,),
    "lse": (30,),
    "llsq": (5, 64),
    "det": (5,),
    "ode": (6, 3),
    "gmm": (3, 4, 20),
    "kmeans": (3, 40, 2),
    "lstm": (2, 12),
    "ba": (3, 5, 11),
    "ht": (7,),
}
NEAR = {"particle": (0.207,), "saddle": (2e-4, 1e-4)}


def derivatives(library: str, name: str, data: Any) -> np.ndarray[Any, Any]:
    """All numbers that a library gives, one after the other."""
    leaves, _ = ad.tree.flatten(BY_NAME[name].run(LIBRARIES[library](), data)())
    return np.concatenate([np.ravel(np.asarray(x)) for x in leaves])


def test_all_problems_are_here() -> None:
    assert sorted(BY_NAME) == sorted([*SIZES, *NEAR])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # in torch.func.jvp
@pytest.mark.parametrize("name", SIZES)
def test_libraries_agree(name: str) -> None:
    data = BY_NAME[name].data(*SIZES[name])
    with jax.enable_x64(True):
        found = {library: derivatives(library, name, data) for library in LIBRARIES}
    assert np.abs(found["adjoint"]).max() > 0
    for library in LIBRARIES:
        np.testing.assert_allclose(found[library], found["adjoint"], rtol=1e-8, atol=1e-10, err_msg=library)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEAR)
def test_nested_minima(name: str) -> None:
    """In all modes as in JAX, which has no reverse mode through its loop."""
    with jax.enable_x64(True):
        wanted = derivatives("JAX", name, ("ff", NEAR[name]))
    for modes in ("ff", "fr", "rf", "rr"):
        np.testing.assert_allclose(derivatives("adjoint", name, (modes, NEAR[name])), wanted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(derivatives("adjoint compiled", name, ("ff", NEAR[name])), wanted, rtol=1e-7, atol=1e-12)


def test_places_in_the_sparse_jacobian() -> None:
    """Residuals of an observation depend on its camera, point and weight; a weight's own on that alone."""
    rows, columns, values = BY_NAME["ba"].run(LIBRARIES["adjoint"](), BY_NAME["ba"].data(2, 2, 3))()
    assert len(rows) == len(columns) == len(values) == 31 * 3
    assert rows.max() == 3 * 3 - 1
    assert columns.max() == 11 * 2 + 3 * 2 + 3 - 1
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
