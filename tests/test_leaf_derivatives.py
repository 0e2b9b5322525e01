"""Every primitive's gradient through `Autodiff` over every leaf, against differences of the NumPy leaf's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, arrays_of, call, is_finite, is_float, rounds
from cases import CASES, Case
from test_leaf_backends import LEAVES, MARKS, as_leaves_are, jax  # noqa: F401 (a fixture)

import adjoint as ad
from adjoint.backend import LeafBackend

Arrays = list[np.ndarray[Any, Any]]


def telling(name: str) -> tuple[Case, tuple[int, ...]]:
    """The case with the most floating operands, and elements among those; and which operands float."""
    best: tuple[Case, tuple[int, ...]] | None = None
    for case in CASES[name]:
        operands = arrays_of(case)
        floats = tuple([i for i, x in enumerate(operands) if is_float(x)])
        size = sum(operands[i].size for i in floats)
        if floats and not rounds(name, case) and is_finite(name, case):
            if best is None or (len(floats), size) > (len(best[1]), sum(arrays_of(best[0])[i].size for i in best[1])):
                best = case, floats
    assert best is not None
    return best


def weighed(f: Callable[..., Any]) -> Callable[..., Any]:
    """One number of a function's floating results: a sum with weights, the real part."""

    def total(*tensors: Any) -> Any:
        out = f(*tensors)
        rng = np.random.default_rng(1)
        parts = []
        for x in out if isinstance(out, tuple) else (out,):
            if x.dtype.kind in "fc":
                weights = [np.asarray(rng.uniform(0.5, 1.5, x.shape)).astype(x.real.dtype) for _ in range(2)]
                parts.append((x.real * weights[0]).sum())
                if x.dtype.kind == "c":
                    parts.append((x.imag * weights[1]).sum())
        return sum(parts[1:], parts[0])

    return total


def gradients(leaf: LeafBackend, f: Callable[..., Any], values: Arrays) -> Arrays:
    """The gradients on a leaf, on JAX those of a compiled function."""
    level = ad.Autodiff(leaf)

    def run(arrays: list[Any]) -> list[Any]:
        leaves = [ad.asarray(x, device=level).require_grad() for x in arrays]
        grads = f(*leaves).backward()
        return [leaf.multiply(x.native(), 0) if x not in grads else grads[x].native() for x in leaves]

    arrays = [leaf.from_numpy(x, copy=True) for x in values]
    found = jax.jit(run)(arrays) if isinstance(leaf, ad.JAX) else run([ad.asarray(x, device=leaf) for x in values])
    return [np.asarray(leaf.to_numpy(x) if not isinstance(x, np.ndarray) else x) for x in found]


@pytest.mark.parametrize(
    "leaf", [pytest.param(name, marks=MARKS.get(name, [])) for name in LEAVES if "digits" not in name]
)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(leaf: str, name: str) -> None:
    case, tracked = telling(name)
    operands = arrays_of(case)
    f, values = weighed(call(name, case, operands, tracked)), [operands[i] for i in tracked]
    with np.errstate(all="ignore"):
        found = gradients(LEAVES[leaf](), f, values)
        rng, step = np.random.default_rng(0), 1e-6
        for _ in range(2):
            along = [
                np.asarray(rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0))
                for x in values
            ]
            ends = [
                f(*[ad.asarray(x + s * step * d, device=ad.NumPy()) for x, d in zip(values, along, strict=True)]).item()
                for s in (1, -1)
            ]
            slope = sum(float((g.conj() * d).real.sum()) for g, d in zip(found, along, strict=True))
            size = sum(float(abs(g * d).sum()) for g, d in zip(found, along, strict=True))
            assert abs((ends[0] - ends[1]) / (2 * step) - slope) <= 1e-6 + 2e-7 * size * max(1, abs(ends[0]))
    for g, x in zip(found, values, strict=True):
        assert (g.shape, g.dtype) == (x.shape, x.dtype)


def test_numpy_s_numbers_are_arrays_of_its_namespace() -> None:
    x = ad.tensor([1.0, 3.0], dtype=ad.float64, device=ad.Autodiff(ad.ArrayAPI(np))).require_grad()
    np.testing.assert_allclose(ad.std(x).backward()[x].numpy(), [-0.5, 0.5])
