"""Derivatives against the reference backend with 30 digits: no rounding noise, no rule of thumb.

The reference computes values by their definitions with mpmath. Its difference quotients are right to
about 20 digits, so that a rule that is wrong in the tenth shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from calls import DETERMINED, DIFFERENTIABLE, HERMITIAN, arrays_of, call, is_finite, is_float, rounds
from cases import CASES, Case
from conftest import peer
from each import Each

import adjoint as ad
from adjoint.decorators.tangent import Dual
from adjoint.operands import run
from adjoint.primitives import ELEMENTWISE, TABLE
from adjoint.tensor import wrap

mpmath = peer("mpmath")

EXACT = ad.Reference(digits=30)
STEP = 2.0**-33  # the error of a difference quotient is about its square, 1e-20
# rules that multiply by a constant in double precision: ln 2, ln 10, ln of a scalar, sqrt(2 pi)
ROUNDED = {"log2", "log10", "erf", "gelu", "gelu_pullback", "pow"}


def cotangent(shape: Any, dtype: Any) -> Any:
    count = int(np.prod(shape))
    values = np.cos(np.arange(1, 1 + count)).reshape(shape)
    return values + (1j * np.sin(np.arange(1, 1 + count)).reshape(shape) if dtype.kind == "c" else 0.0)


def gradients(name: str, case: Case, leaf: Any) -> tuple[list[Any], list[Any]] | None:
    """The leaves and their gradients from fixed cotangents, on Autodiff over a leaf backend."""
    operands = arrays_of(case)
    tracked = tuple(i for i, x in enumerate(operands) if is_float(x))
    if not tracked or rounds(name, case) or not is_finite(name, case):
        return None
    device = ad.Autodiff(leaf)
    leaves = [ad.asarray(operands[i], device=device).require_grad() for i in tracked]
    out = call(name, case, operands, tracked)(*leaves)
    found: list[Any] = [None] * len(leaves)
    for result in out if isinstance(out, tuple) else (out,):
        if result.is_tracked():
            grads = result.backward(cotangent(result.shape, result.dtype), retain_graph=True)
            found = [grads.get(x) for x in leaves]
    return leaves, found


_SLOW = {"zeta", "elliptic_complete", "elliptic_incomplete", "bessel_y", "bessel_k"}  # whose exact values take long


def slowly(names: Iterable[str]) -> list[Any]:
    """Names as parameters."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in _SLOW else name for name in names]


@pytest.mark.parametrize("name", slowly(DIFFERENTIABLE))
def test_double_precision_agrees_with_30_digits(name: str) -> None:
    compared = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                low, high = gradients(name, case, ad.NumPy()), gradients(name, case, EXACT)
                if low is None or high is None:
                    continue
                for ours, exact in zip(low[1], high[1], strict=True):
                    assert (ours is None) == (exact is None)
                    if ours is not None:
                        scale = float(np.max(np.abs(exact.numpy()), initial=1.0))
                        np.testing.assert_allclose(ours.numpy(), exact.numpy(), rtol=1e-12, atol=1e-14 * scale)
                        compared += 1
    assert compared


def exact_sum(values: Any, weights: Any) -> Any:
    """The real part of the sum of conj(weights) * values, with 30 digits."""
    with mpmath.workdps(40):
        pairs = zip(EXACT.to_list(values), np.asarray(weights).reshape(-1).tolist(), strict=True)
        return sum((mpmath.re(mpmath.conj(mpmath.mpmathify(w)) * v) for v, w in pairs), mpmath.mpf(0))


@pytest.mark.parametrize(
    "name", slowly([name for name in DIFFERENTIABLE if TABLE[name].kind is ELEMENTWISE and name != "astype"])
)
def test_rules_agree_with_difference_quotients_of_30_digits(name: str) -> None:
    compared = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                result = gradients(name, case, EXACT)
                if result is None:
                    continue
                leaves, found = result
                operands = arrays_of(case)
                tracked = [i for i, x in enumerate(operands) if is_float(x)]
                arrays = [EXACT.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in operands]
                for i, x, gradient in zip(tracked, leaves, found, strict=True):
                    for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
                        ahead, back = (
                            EXACT[TABLE[name]](
                                *arrays[:i], EXACT.add(arrays[i], step), *arrays[i + 1 :], **case.parameters
                            )
                            for step in (STEP * unit, -STEP * unit)
                        )
                        weights = cotangent(ahead.shape, EXACT.dtype_of(ahead))
                        # all elements of the operand move together by `unit`
                        with mpmath.workdps(40):
                            numeric = (exact_sum(ahead, weights) - exact_sum(back, weights)) / (2 * mpmath.mpf(STEP))
                            analytic = mpmath.mpf(0)
                            if gradient is not None:
                                analytic = exact_sum(gradient._array, np.full(gradient.shape, unit))
                            tolerance = mpmath.mpf(10) ** (-14 if name in ROUNDED else -17)
                            scale = 1 + abs(numeric)
                            assert abs(analytic - numeric) <= tolerance * scale, (i, unit, analytic, numeric)
                        compared += 1
    assert compared


# --- forward mode --------------------------------------------------------------------------------


def directions(name: str, operands: list[Any]) -> dict[int, Any]:
    """How the floating operands move, all together; of what Cholesky takes, only the Hermitian part may."""
    found = {i: cotangent(x.shape, x.dtype) for i, x in enumerate(operands) if is_float(x)}
    if name in HERMITIAN:
        found[0] = found[0] + found[0].swapaxes(-1, -2).conj()
    return found


def pushed(name: str, case: Case, leaf: Any) -> list[Any] | None:
    """The results of a call on a Tangent level over a leaf backend, as pairs."""
    operands = arrays_of(case)
    moves = directions(name, operands)
    if not moves or rounds(name, case) or not is_finite(name, case):
        return None
    arrays = [leaf.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in operands]
    for i, direction in moves.items():
        arrays[i] = Dual(arrays[i], leaf.from_numpy(np.array(direction), copy=True))
    arrays = [Dual(x, None) if hasattr(x, "shape") and not isinstance(x, Dual) else x for x in arrays]
    return settled(name, ad.Tangent(leaf)[TABLE[name]](*arrays, **case.parameters), ad.Tangent(leaf))


def settled(name: str, out: Any, level: Any) -> list[Any]:
    """The results, without what is free in them."""
    arrays = out if isinstance(out, tuple) else (out,)
    if name not in DETERMINED:
        return list(arrays)
    found = DETERMINED[name](*[wrap(x, level) for x in arrays])
    return [x._array for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", slowly(DIFFERENTIABLE))
def test_tangents_in_double_precision_agree_with_30_digits(name: str) -> None:
    compared = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                low, high = pushed(name, case, ad.NumPy()), pushed(name, case, EXACT)
                if low is None or high is None:
                    continue
                for ours, exact in zip(low, high, strict=True):
                    assert (ours.tangent is None) == (exact.tangent is None)
                    if ours.tangent is not None:
                        wanted = EXACT.to_numpy(exact.tangent)
                        scale = float(np.max(np.abs(wanted), initial=1.0))
                        np.testing.assert_allclose(ours.tangent, wanted, rtol=1e-12, atol=1e-14 * scale)
                        compared += 1
    assert compared


@pytest.mark.parametrize("name", slowly([name for name in DIFFERENTIABLE if name != "astype"]))
def test_pushforwards_agree_with_difference_quotients_of_30_digits(name: str) -> None:
    """Every element of every result, where reverse mode is compared in sums."""
    compared = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                results = pushed(name, case, EXACT)
                if results is None:
                    continue
                operands = arrays_of(case)
                moves = directions(name, operands)
                sides = []
                for step in (STEP, -STEP):
                    arrays = [EXACT.from_numpy(x, copy=True) if isinstance(x, np.ndarray) else x for x in operands]
                    for i, direction in moves.items():
                        arrays[i] = EXACT.add(arrays[i], EXACT.from_numpy(np.array(direction * step), copy=True))
                    sides.append(settled(name, EXACT[TABLE[name]](*arrays, **case.parameters), EXACT))
                for result, ahead, back in zip(results, *sides, strict=True):
                    if result.tangent is None:
                        assert EXACT.to_list(ahead) == EXACT.to_list(back)
                        continue
                    assert result.tangent.shape == result.value.shape == ahead.shape
                    with mpmath.workdps(40):
                        tolerance = mpmath.mpf(10) ** (-14 if name in ROUNDED else -17)
                        lists = [EXACT.to_list(x) for x in (result.tangent, ahead, back)]
                        for t, a, b in zip(*lists, strict=True):
                            numeric = (mpmath.mpmathify(a) - b) / (2 * mpmath.mpf(STEP))
                            assert abs(t - numeric) <= tolerance * (1 + abs(numeric)), (t, numeric)
                            compared += 1
    assert compared


def test_third_derivatives_at_30_digits() -> None:
    """Nested levels over the reference: (x log x)''' = -1 / x^2, sin''' = -cos, to all digits."""
    for f, third in ((lambda t: t * t.log(), lambda v: -1 / v**2), (ad.sin, lambda v: -mpmath.cos(v))):
        leaves = [ad.tensor(0.7, dtype=ad.float64, device=ad.Autodiff(EXACT)).require_grad()]
        for _ in range(2):
            leaves.append(ad.from_inner(leaves[-1]).require_grad())
        value: Any = f(leaves[-1])
        for x in leaves[::-1]:
            value = value.backward()[x]
        with mpmath.workdps(30):
            expected = third(mpmath.mpf(0.7))
            assert abs(EXACT.to_list(value._array)[0] - expected) < mpmath.mpf(10) ** -27


def test_a_training_step_agrees_with_30_digits() -> None:
    """A small network: many primitives, broadcasting and accumulation together."""
    rng = np.random.default_rng(3)
    data, labels = rng.standard_normal((3, 4)), np.array([0, 2, 1])
    parameters = [rng.standard_normal(shape) * 0.5 for shape in ((5, 4), (5,), (3, 5), (3,))]
    found = []
    for leaf in (ad.NumPy(), EXACT):
        device = ad.Autodiff(leaf)
        w1, b1, w2, b2 = (ad.asarray(p, device=device).require_grad() for p in parameters)
        hidden = ad.nn.gelu(ad.nn.layer_norm(ad.nn.linear(ad.asarray(data, device=device), w1, b1), 5))
        loss = (
            ad.nn.cross_entropy(ad.nn.linear(hidden, w2, b2), ad.asarray(labels, device=device)) + 0.1 * (w1**2).sum()
        )
        grads = loss.backward()
        found.append([loss.item(), *[grads[x].numpy() for x in (w1, b1, w2, b2)]])
    for ours, exact in zip(*found, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-12, atol=1e-14)


def test_scalars_keep_all_digits() -> None:
    x = ad.tensor(2.0, dtype=ad.float64, device=ad.Autodiff(EXACT)).require_grad()
    gradient = run("sqrt", (x,)).backward()[x]
    with mpmath.workdps(30):
        assert abs(EXACT.to_list(gradient._array)[0] - 1 / (2 * mpmath.sqrt(2))) < mpmath.mpf(10) ** -29
