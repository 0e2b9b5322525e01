"""Roots, fixed points and minima: their values, and their derivatives under every nesting of transforms."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from test_custom import NESTINGS, _flat, plain

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    SingularError,
    TrackedError,
)
from adjoint.transforms.krylov import cg, gmres

START = {"y": np.zeros(3), "z": 0.0}


# --- one function, `plain` of the tests of custom functions, as the answer of three inner problems ---


def by_root(x: Any, w: Any) -> Any:
    def f(u: Any, x: Any, w: Any) -> Any:
        wanted = plain(x, w)
        return {"y": ad.sinh(u["y"]) - ad.sinh(wanted["y"]), "z": u["z"] ** 3 + u["z"] - wanted["z"] ** 3 - wanted["z"]}

    return ad.implicit.root(f, START, x, w, tol=1e-14)


def by_fixed_point(x: Any, w: Any) -> Any:
    def f(u: Any) -> Any:  # closes over x and w
        wanted = plain(x, w)
        return {key: wanted[key] + 0.3 * ad.sin(u[key] - wanted[key]) for key in u}

    return ad.implicit.fixed_point(f, START, tol=1e-14)


def by_minimum(x: Any, w: Any) -> Any:
    def f(u: Any, x: Any) -> Any:  # closes over w
        wanted = plain(x, w)
        return ad.cosh(u["y"] - wanted["y"]).sum() + (u["z"] - wanted["z"]) ** 2 + (u["z"] - wanted["z"]) ** 4

    return ad.implicit.minimize(f, START, x, tol=1e-14)


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("unknowns", ["few", "many"])
@pytest.mark.parametrize("problem", [by_root, by_fixed_point, by_minimum])
def test_derivatives_are_those_of_the_solution(
    problem: Any, unknowns: str, nesting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if unknowns == "many":
        monkeypatch.setattr("adjoint.implicit.DENSE", 0)  # Krylov methods from the first unknown on
    run = NESTINGS[nesting]
    for mine, wanted in zip(_flat(run(problem)), _flat(run(plain)), strict=True):
        assert_allclose(mine, wanted, rtol=1e-8, atol=1e-9)
        assert np.shape(mine) == np.shape(wanted)
