"""Every public function's derivatives, numerically, at shapes, values and layouts that hypothesis draws."""

from __future__ import annotations

import inspect
import operator
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest
from functions import BITWISE, EINSUMS, FUNCTIONS, OTHER, PLAIN, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from options import BALANCED, assert_same_under_options

import adjoint as ad


def public_functions() -> set[str]:
    """The names under which users find functions."""
    found = set()
    for prefix, module in [
        ("", ad),
        *[(f"{n}.", getattr(ad, n)) for n in ("fft", "implicit", "linalg", "special", "nn", "random", "testing")],
    ]:
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for name in names:
            value = getattr(module, name)
            is_class = inspect.isclass(value) and not value.__name__.islower()
            if callable(value) and not inspect.ismodule(value) and not is_class and get_origin(value) is None:
                found.add(prefix + name)
    return found


def transforms() -> set[str]:
    """Functions of functions: they have tests of their own."""
    namespaces = ("adjoint.transforms", "adjoint.solvers", "adjoint.compiler")
    return {name for name in public_functions() if operator.attrgetter(name)(ad).__module__.startswith(namespaces)}


def test_every_public_function_is_in_a_case() -> None:
    known = {name for name in FUNCTIONS if not name.startswith("operator.")} | set(PLAIN) | OTHER
    assert public_functions() - transforms() == known


def test_every_transform_is_in_a_test() -> None:
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in transforms():
        assert f"ad.{name}(" in texts, name


# quadratures: test_special has derivatives of these at points
SLOW = set(
    "special.stdtr special.stdtrit special.betaincc special.betaincinv special.betainccinv special.gammainccinv "
    "special.chdtr special.chdtrc special.chdtri special.ellipk special.ellipe special.ellipkinc "
    "special.ellipeinc special.betainc nn.grid_sample".split()
)
EACH = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in FUNCTIONS]


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=25)
@given(data=st.data())
def test_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    ad.testing.check_grads(f, tuple(args), order=1)
    assert_same_under_options(f, args, 1, [BALANCED])


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=5)
@given(data=st.data())
def test_second_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    ad.testing.check_grads(f, tuple(args))
    assert_same_under_options(f, args, 2, [BALANCED])


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=12)
@given(data=st.data())
def test_examples_together_are_as_alone(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    ad.testing.check_grads(f, tuple(args), modes=("batched",))


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=8)
@given(data=st.data())
def test_what_is_differentiated_is_what_is_computed(name: str, data: Any) -> None:
    """Plain, tracked, and tracked under balanced checkpointing: the same values, shapes and dtypes."""
    f, *args = FUNCTIONS[name](Draw(data))
    balanced = ad.Autodiff(ad.NumPy(), checkpointing="balanced")
    plain = f(*[ad.asarray(x, device="numpy") for x in args])
    for device in (ad.Autodiff(ad.NumPy()), balanced):
        tracked = f(*[ad.asarray(x, device=device).require_grad() for x in args])
        pairs = zip(plain, tracked, strict=True) if isinstance(plain, (tuple, list)) else [(plain, tracked)]
        for x, y in pairs:
            assert y.device is device
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS, ids=str)
def test_every_pattern_of_einsum(subscripts: str, shapes: Any) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal(shape) for shape in shapes]
    ours = ad.einsum(subscripts, *map(ad.tensor, operands))
    theirs = np.einsum(subscripts, *operands)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-13)
    ad.testing.check_grads(lambda *xs: ad.einsum(subscripts, *xs), tuple(operands))


@pytest.mark.parametrize("name", PLAIN)
def test_functions_without_derivatives_give_constants(name: str) -> None:
    rng = np.random.default_rng(0)
    f, expected = getattr(ad, name), PLAIN[name]
    for shape in ((3,), (2, 3), (0,)):
        x, y = rng.integers(0, 3, shape), rng.integers(0, 3, shape)
        if not (name in BITWISE or name == "argsort"):
            x, y = x * 1.0, y * 1.0
        if name.startswith("arg") and 0 in shape:
            continue
        two = [p.default for p in inspect.signature(f).parameters.values()].count(inspect.Parameter.empty) == 2
        leaves = [ad.tensor(v) for v in (x, y)[: 1 + two]]
        leaves = [v.require_grad() if v.dtype.kind == "f" else v for v in leaves]
        options = {"kind": "stable"} if name == "argsort" else {}
        out, theirs = f(*leaves), expected(*(x, y)[: 1 + two], **options)
        for ours, other in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (out, theirs)], strict=True):
            assert not ours.is_tracked()
            np.testing.assert_array_equal(ours.numpy(), other)
            assert ours.dtype == np.asarray(other).dtype
