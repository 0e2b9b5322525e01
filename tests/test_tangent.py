"""Forward mode: what tangents are made of; `test_derivatives` checks their numbers, alone and with reverse mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, arrays_of, halved
from cases import CASES
from each import Each

import adjoint as ad
from adjoint.decorators.tangent import Dual
from adjoint.primitives import ELEMENTWISE, TABLE, Primitive
from adjoint.rules import RECORDS, Custom, NotDifferentiable


@pytest.mark.parametrize("name", RECORDS)
def test_every_primitive_has_a_pushforward(name: str) -> None:
    ad.Tangent(ad.NumPy()).implement(TABLE[name])


@pytest.mark.parametrize("name", sorted(n for n, record in RECORDS.items() if isinstance(record, NotDifferentiable)))
def test_constants_have_no_tangent(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                active = [
                    Dual(x, x) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x for x in arrays_of(case)
                ]
                with np.errstate(all="ignore"):
                    out = getattr(ad.Tangent(ad.NumPy()), name)(*active, **case.parameters)
                assert out.tangent is None


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_tangents_have_the_dtype_of_the_result(name: str) -> None:
    level: Any = ad.Tangent(ad.NumPy())
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = halved(arrays_of(case))
                active = [
                    Dual(x, x if x.dtype.kind in "fc" else None) if isinstance(x, np.ndarray) else x for x in operands
                ]
                with np.errstate(all="ignore"):
                    out = getattr(level, name)(*active, **case.parameters)
                for part in out if isinstance(out, tuple) else (out,):
                    if part.tangent is not None:
                        assert (part.tangent.shape, part.tangent.dtype) == (part.value.shape, part.value.dtype)


def test_a_record_without_a_pushforward_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORDS, "prod", Custom(x=lambda B, g: g))
    with pytest.raises(ad.errors.UnsupportedPrimitiveError, match="pushforward"):
        ad.Tangent(ad.NumPy()).implement(TABLE["prod"])


def test_a_wrong_pushforward_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Custom(x=RECORDS["prod"].rules["x"], pushforward=lambda B, tangents, axis, keepdims: B.sum(
        tangents[0], axis=axis, keepdims=keepdims
    ))  # fmt: skip
    monkeypatch.setitem(RECORDS, "prod", wrong)
    level: Any = ad.Tangent(ad.NumPy())
    level.forget()
    try:
        with pytest.raises(ad.errors.CheckError, match="order 1, forward"):
            ad.testing.check_grads(ad.prod, (np.array([1.5, 2.0, 3.0]),))
    finally:
        level.forget()


def test_a_wrong_batching_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(B: Any, primitive: Primitive, values: Any, flags: Any, parameters: Any) -> Any:
        return B.flip(B.sin(values[0]), axis=(0,))

    monkeypatch.setattr(RECORDS["sin"], "batching", mixed)
    ad.backend.forget("sin")
    try:
        with pytest.raises(ad.errors.CheckError, match="batched values 0 of example 0"):
            ad.testing.check_grads(ad.sin, (np.array([1.5, 2.0, 3.0]),), modes=("batched",))
    finally:
        ad.backend.forget("sin")


def test_modes_are_checked() -> None:
    with pytest.raises(ad.errors.ArgumentError, match="modes"):
        ad.testing.check_grads(ad.sin, (np.ones(2),), modes=("sideways",))


def test_a_plain_call() -> None:
    """On the device itself, without a transform, it computes as the inner backend does."""
    x = ad.tensor([0.5, 1.0], device=ad.Tangent(ad.NumPy()))
    np.testing.assert_array_equal(ad.sin(x).numpy(), np.sin(np.float32([0.5, 1.0])))
    assert not x.is_tracked()


PAIRS = sorted(
    name
    for name, primitive in TABLE.items()
    if primitive.kind is ELEMENTWISE and len(primitive.operands) == 2 and not primitive.parameters
    if primitive.results == 1 and len(RECORDS[name].differentiable(primitive)) == 2
)


@pytest.mark.parametrize("inner", [ad.NumPy(), ad.Tangent(ad.NumPy()), ad.Autodiff(ad.NumPy())], ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_beside_a_wider_constant_a_tangent_has_the_shape_of_the_result(name: str, inner: Any) -> None:
    level: Any = ad.Tangent(inner)
    constant = lambda *values: inner.from_numpy(np.array(values), copy=False)
    narrow, wide = Dual(constant(1.5), constant(1.0)), Dual(constant(1.25, 2.5, 0.5), None)
    run = getattr(level, name)
    assert run(narrow, wide).tangent.shape == (3,)
    assert run(wide, narrow).tangent.shape == (3,)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_one_array_as_both_operands_is_like_two_equal_ones(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    value, tangent = rng.uniform(1.2, 2.0, shape), rng.normal(size=shape)
    for inner in (ad.NumPy(), ad.Tangent(ad.NumPy())):
        lift = lambda x, on=inner: on.from_numpy(np.asarray(x) if shape else np.float64(x), copy=False)
        x, y = (Dual(lift(value), lift(tangent)) for _ in range(2))
        run = getattr(ad.Tangent(inner), name)
        once, twice = (inner.to_numpy(out.tangent) for out in (run(x, x), run(x, y)))
        np.testing.assert_array_equal(once, twice)
