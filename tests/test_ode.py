"""Differential equations: solutions with known values, and their derivatives under every nesting of transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from conftest import peer
from numpy.testing import assert_allclose
from test_custom import NESTINGS, _flat

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    TrackedError,
)

TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def grown(x: Any, w: Any) -> Any:
    """The solution at time 1 of dy/dt = w y from x, and of dz/dt = sum(w y) from 0."""
    return {"y": x * ad.exp(w), "z": (x * ad.expm1(w)).sum()}


def by_equation(x: Any, w: Any, gradient: str) -> Any:
    def f(state: Any, t: Any, w: Any) -> Any:
        slope = w * state["y"]
        return {"y": slope, "z": slope.sum()}

    start = {"y": x, "z": np.zeros(())}
    ys = ad.odeint(f, start, np.array([0.0, 1.0]), w, rtol=1e-9, atol=1e-9, gradient=gradient)
    return {key: y[1] for key, y in ys.items()}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_derivatives_are_those_of_the_solution(gradient: str, nesting: str) -> None:
    run = NESTINGS[nesting]
    solved = run(lambda x, w: by_equation(x, w, gradient))
    for mine, wanted in zip(_flat(solved), _flat(run(grown)), strict=True):
        assert_allclose(mine, wanted, rtol=1e-6, atol=1e-6)
        assert np.shape(mine) == np.shape(wanted)
