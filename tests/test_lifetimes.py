"""What users can make in a loop goes with its last reference."""

from __future__ import annotations

import gc
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest

import adjoint as ad
from adjoint.backend import Backend


def _module(n: int) -> types.ModuleType:
    made = types.ModuleType(f"made{n}")
    vars(made).update(vars(array_api_strict), __name__=f"made{n}")
    return made


MAKE: dict[str, Callable[[int], ad.Backend]] = {
    "Profiled": lambda n: ad.Profiled(ad.NumPy(), n + 9000),
    "Reference": lambda n: ad.Reference(digits=n + 40),
    "Batched": lambda n: ad.Batched(ad.NumPy(), n + 40),
    "Taylor": lambda n: ad.Taylor(ad.NumPy(), n + 40),
    "ArrayAPI": lambda n: ad.ArrayAPI(_module(n)),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_backend_goes_with_its_last_reference(name: str) -> None:
    def use(n: int) -> weakref.ref[Any]:
        backend = MAKE[name](n)
        assert MAKE[name](n) is backend or name == "ArrayAPI"  # of another module
        x = ad.ones(3, device=ad.Autodiff(backend)).require_grad()
        (x * x).sum().backward()
        ad.grad(lambda y: (y * y).sum())(ad.ones(3, device=backend))
        return weakref.ref(backend)

    found = [use(n) for n in range(3)]
    gc.collect()
    assert [ref() for ref in found] == [None] * 3


@pytest.mark.parametrize("name", ["Profiled", "Batched"])
def test_a_backend_without_use_needs_no_collector(name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        made = weakref.ref(MAKE[name](0))
        assert made() is None
    finally:
        gc.enable()


def test_a_seeded_leaf_stays() -> None:
    ad.Reference(digits=55).seed(3)
    first = ad.random.uniform(2, device=ad.Reference(digits=55)).tolist()
    gc.collect()
    ad.Reference(digits=55).seed(3)
    gc.collect()
    assert ad.random.uniform(2, device=ad.Reference(digits=55)).tolist() == first


def test_a_primitive_that_is_declared_anew_frees_what_it_was() -> None:
    def declare(n: int) -> weakref.ref[Any]:
        def scaled(x: Any) -> Any:
            return n * x

        f = ad.primitive("lifetimes_scaled", scaled, derivative={"x": lambda B, g: B.multiply(g, float(n))})
        assert ad.grad(f)(1.0) == n
        assert ad.vmap(ad.grad(f))(np.ones(2)).tolist() == [n, n]
        assert ad.jvp(f, (1.0,), (1.0,)) == (n, n)
        return weakref.ref(scaled)

    found = [declare(n) for n in range(5)]
    gc.collect()
    assert [ref() is None for ref in found] == [True] * 4 + [False]


def _backends() -> int:
    gc.collect()
    return sum(n for cls, n in Counter(map(type, gc.get_objects())).items() if issubclass(cls, Backend))


@pytest.mark.parametrize("randomness", ["error", "split"])
def test_batches_of_other_sizes_keep_a_few_backends(randomness: str) -> None:
    def run(sizes: range) -> int:
        for n in sizes:
            ad.vmap(ad.grad(lambda x: (x * x).sum()), randomness=randomness)(np.ones((n, 2)))
        return _backends()

    before = run(range(2, 10))
    assert run(range(10, 40)) <= before


def test_names_kept_by_checkpoints_keep_a_few_backends() -> None:
    def run(start: int) -> int:
        for n in range(start, start + 100):
            ad.grad(ad.checkpoint(lambda x: ad.sin(ad.sin(x)), policy=[f"name{n}"]))(0.5)
        return _backends()

    before = run(0)
    assert run(100) <= before
