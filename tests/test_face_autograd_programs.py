"""`adjoint.autograd`: whole programs give what HIPS autograd gives, also on arrays of other libraries."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from autograd_programs import OF_NUMPY, PROGRAMS
from conftest import peer
from each import Each


def modules_of(package: str) -> Callable[[str], Any]:
    return lambda name: importlib.import_module(f"{package}.{name}" if name else package)


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x)]
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from leaves(part)
    else:
        yield x


def assert_same(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    assert pairs
    for x, y in pairs:
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-11)


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_with_hips_autograd(name: str) -> None:
    peer("autograd")
    peer("scipy")
    program = PROGRAMS[name]
    tolerance = 1e-6 if name == "spiral" else 1e-10  # two integrators
    assert_same(program(modules_of("adjoint.autograd"), np.array), program(modules_of("autograd"), np.array), tolerance)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("library", ["torch", "jax", "dask"])
def test_programs_take_arrays_of_other_libraries(library: str) -> None:
    peer("scipy")
    puts = {
        "torch": lambda: peer("torch").tensor,
        "jax": lambda: peer("jax.numpy").asarray,
        "dask": lambda: lambda x: peer("dask.array").from_array(x, chunks=3),
    }
    chosen = set(PROGRAMS) - OF_NUMPY
    if library != "torch":  # they take long for each operation
        chosen = {"components", "hidden_states", "spectrum"}
    put, ours = puts[library](), modules_of("adjoint.autograd")
    with Each() as each, peer("jax").enable_x64(True):
        for name in sorted(chosen):
            with each(name):
                assert_same(PROGRAMS[name](ours, put), PROGRAMS[name](ours, np.array))


@pytest.mark.peers
@pytest.mark.parametrize("module", ["", "extend", "tracer", "util", "misc.tracers", "misc.optimizers", "test_util"])
def test_every_name_is_there_or_says_why_not(module: str) -> None:
    peer("autograd")
    theirs, ours = modules_of("autograd")(module), modules_of("adjoint.autograd")(module)
    homes = (
        {theirs.__name__} if module not in ("", "extend") else {"autograd.core", "autograd.tracer", "autograd.builtins"}
    )
    names = [name for name, value in vars(theirs).items() if getattr(value, "__module__", None) in homes]
    assert names
    for name in names:
        if not hasattr(ours, name) and name != "const_graph_unary":  # which const_graph is made of
            with pytest.raises(AttributeError, match=f"has no '{name}': "):
                getattr(ours, name)
