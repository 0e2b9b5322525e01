"""Solvers of float16 and bfloat16 compute in float32, and are right to the last digit."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad

SOLVED: dict[str, tuple[Any, float, float]] = {
    # of a = 0.75: a number that solvers find, the exact one, and its derivative
    "root": (lambda a, one: ad.implicit.root(lambda x, a: x * x - a, one, a), 0.75**0.5, 0.5 / 0.75**0.5),
    "fixed_point": (lambda a, one: ad.implicit.fixed_point(lambda x, a: a / (1 + x), one, a), 0.5, 0.5),
    "minimize": (
        lambda a, one: ad.implicit.minimize(lambda x, a: (1 - x[0]) ** 2 + 9 * (x[1] - a * x[0] ** 2) ** 2,
                                            ad.stack([one, one]) * 0, a)[1],
        0.75, 1.0,
    ),
    "odeint": (
        lambda a, one: ad.odeint(lambda y, t, a: -a * y, one, [0.0, 2.0], a)[-1],
        np.exp(-1.5), -2 * np.exp(-1.5),
    ),
    "adjoint": (
        lambda a, one: ad.odeint(lambda y, t, a: -a * y, one, [0.0, 2.0], a, gradient="adjoint")[-1],
        np.exp(-1.5), -2 * np.exp(-1.5),
    ),
    "Radau": (
        lambda a, one: ad.odeint(lambda y, t, a: -a * y, one, [0.0, 2.0], a, method="Radau")[-1],
        np.exp(-1.5), -2 * np.exp(-1.5),
    ),
    "event": (
        lambda a, one: ad.odeint_event(lambda y, t, a: -a + 0 * y, one, (0.0, 9.0), a, event=lambda y, t, a: y)[0],
        4 / 3, -16 / 9,
    ),
}  # fmt: skip


def test_solvers_are_right_to_the_last_digit() -> None:
    a, one = (ad.tensor(v, dtype=ad.float16) for v in (0.75, 1.0))
    with Each() as each:
        for name, (solve, value, slope) in SOLVED.items():
            with each(name):
                found, pulled = ad.value_and_grad(functools.partial(solve, one=one))(a)
                assert pulled.dtype is ad.float16
                assert name == "event" or found.dtype is ad.float16
                assert abs(float(found) / value - 1) <= 2**-10
                assert abs(float(pulled) / slope - 1) <= 2**-10


@pytest.mark.parametrize("name", ["root", "odeint"])
def test_in_other_modes_and_in_bfloat16(name: str) -> None:
    pytest.importorskip("torch")
    solve, value, slope = SOLVED[name]
    a, one = (ad.tensor(v, dtype=ad.bfloat16, device="autodiff<torch>") for v in (0.75, 1.0))
    found, pushed = ad.jvp(functools.partial(solve, one=one), (a,), (one,))
    many = ad.vmap(functools.partial(solve, one=one))(ad.stack([a, a]))
    for x, exact in ((found, value), (many[1], value), (pushed, slope)):
        assert x.dtype is ad.bfloat16
        assert abs(float(x) / exact - 1) <= 2**-7


def test_a_search_of_scipys_goes_on_in_float32() -> None:
    pytest.importorskip("scipy")
    x = ad.tensor([0.0, 0.0], dtype=ad.float16)
    found = ad.scipy.minimize(lambda x: (1 - x[0]) ** 2 + 9 * (x[1] - x[0] ** 2) ** 2, x)
    assert found.x.dtype is ad.float16
    np.testing.assert_allclose(found.x.numpy(), [1, 1], atol=1e-3)
