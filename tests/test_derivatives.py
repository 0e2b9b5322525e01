"""Every primitive's derivative record, numerically: values, layouts, tracked operands, two orders.

The calls are those of `cases`, so that a primitive cannot join the table without being checked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, RECORDED, arrays_of, call, halved, is_finite, is_float, rounds, subsets
from cases import CASES, Case
from each import Each
from hypothesis import given, settings
from hypothesis import strategies as st
from options import assert_same_under_options

import adjoint as ad
from adjoint.operands import run
from adjoint.primitives import TABLE
from adjoint.rules import RECORDS, Composed, Elementwise, names_of
from adjoint.tensor import wrap
from adjoint.user_primitives import DECLARED

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: np.array(x, order="C"),
    "Fortran": lambda x: np.array(x, order="F"),
    "every other": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "backwards": lambda x: np.flip(np.array(np.flip(x)))[...] if x.ndim else x,
}


# --- the tables are complete ---


def test_every_primitive_has_one_record() -> None:
    assert set(RECORDS) == {name for name, primitive in TABLE.items() if primitive.operands} - set(DECLARED)
    assert set(RECORDED) <= set(RECORDS)  # these are compared with differences; random numbers have tests of their own


def test_every_recorded_primitive_is_in_a_case_with_floats() -> None:
    for name in DIFFERENTIABLE:
        assert any(is_float(x) for case in CASES[name] for x in arrays_of(case)), name


def test_no_operand_is_called_what_rules_call_the_result() -> None:
    """A rule that names `out` gets the result, so that an operand of that name would be out of its reach."""
    for primitive in TABLE.values():
        assert not {"out", "outs"} & {name.lstrip("*") for name in primitive.operands}, primitive


def test_rules_name_operands() -> None:
    for name, record in RECORDS.items():
        assert set(record.rules) <= set(TABLE[name].operands), name
        assert record.pullback is None or not record.rules, name


def test_elementwise_records_belong_to_elementwise_primitives() -> None:
    for name, record in RECORDS.items():
        if isinstance(record, Elementwise):
            assert TABLE[name].kind == "elementwise", name


# --- numerically ---


def checked_cases(name: str) -> list[Case]:
    """Those that have differences."""
    return [
        case
        for case in CASES[name]
        if any(map(is_float, arrays_of(case))) and not rounds(name, case) and is_finite(name, case)
    ]


# whose rules are quadratures, and are those of others too
SLOW = {"betainccinv", "gammainccinv", "lstm_pullback", "stdtr", "stdtrit"}
EACH = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in DIFFERENTIABLE]


@pytest.mark.parametrize("name", EACH)
def test_derivatives_of_every_case(name: str) -> None:
    """All choices of tracked operands at order 1; at order 2, where modes nest in four ways, all of them tracked."""
    with Each() as each:
        for case in checked_cases(name):
            operands = arrays_of(case)
            choices = subsets(operands)
            for tracked in choices:
                f, order = call(name, case, operands, tracked), 2 if tracked == choices[-1] else 1
                with each(case, "operands", tracked):
                    ad.testing.check_grads(f, tuple(operands[i] for i in tracked), order=order)


@pytest.mark.parametrize("name", EACH)
def test_options_do_not_change_derivatives(name: str) -> None:
    """Of every case, for all choices of tracked operands; at order 2 where all are."""
    with Each() as each:
        for case in checked_cases(name):
            operands = arrays_of(case)
            choices = subsets(operands)
            for tracked in choices:
                f, order = call(name, case, operands, tracked), 2 if tracked == choices[-1] else 1
                with each(case, "operands", tracked):
                    assert_same_under_options(f, [operands[i] for i in tracked], order)


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=5)
@given(data=st.data())
def test_derivatives_at_other_values_and_layouts(name: str, data: Any) -> None:
    case = data.draw(st.sampled_from(checked_cases(name)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    operands = []
    for x in arrays_of(case):
        if is_float(x):  # cases keep away from kinks by more than this; not of lu, which chooses its pivots
            x = x + 0.02 * rng.uniform(-1, 1, x.shape) if name not in ("cholesky", "lu") else x
            x = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))](np.asarray(x))
        operands.append(x)
    choices = subsets(operands)
    tracked = data.draw(st.sampled_from(choices))
    f, order = call(name, case, operands, tracked), 2 if tracked == choices[-1] else 1
    values = [operands[i] for i in tracked]
    ad.testing.check_grads(f, tuple(values), order=order, seed=int(rng.integers(1000)))
    assert_same_under_options(f, values, order)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_have_the_dtype_of_their_operand(name: str) -> None:
    """Also in single precision; and where an operand gets no cotangent there is no gradient."""
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = halved(arrays_of(case))
                floats = [i for i, x in enumerate(operands) if is_float(x)]
                leaves = [ad.asarray(operands[i]).require_grad() for i in floats]
                if not leaves:
                    continue
                with np.errstate(all="ignore"):
                    results = call(name, case, operands, tuple(floats))(*leaves)
                for out in results if isinstance(results, tuple) else (results,):
                    if out.dtype.kind not in "fc":
                        assert not out.is_tracked()
                        continue
                    for leaf, gradient in out.backward(retain_graph=True).items():
                        assert gradient.shape == leaf.shape
                        assert gradient.dtype is leaf.dtype, leaf.dtype


@pytest.mark.parametrize("name", sorted(set(RECORDED) - set(DIFFERENTIABLE)))
def test_results_without_derivatives_are_constants(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                tensors = []
                for x in arrays_of(case):
                    tensor = ad.asarray(x) if isinstance(x, np.ndarray) else x
                    tensors.append(tensor.require_grad() if is_float(x) else tensor)
                if not any(isinstance(x, ad.Tensor) for x in tensors):
                    continue
                out = run(name, tensors, **case.parameters)
                assert not out.is_tracked()


@pytest.mark.parametrize("case", [c for c in CASES["astype"] if rounds("astype", c)], ids=str)
def test_casts_to_32_bits_are_their_own_transpose(case: Case) -> None:
    """<g, astype(x)> is <astype'(g), x>, in the real inner product, for values that 32 bits hold."""
    x = np.round(8 * case.operands[0]) / 8 if np.size(case.operands[0]) else case.operands[0]
    if x.dtype.kind not in "fc":
        return
    leaf = ad.asarray(np.asarray(x)).require_grad()
    out = leaf.astype(case.parameters["dtype"])
    g = np.arange(1, 1 + out.size).reshape(out.shape).astype(out.dtype) * (1 - 2j if out.dtype.kind == "c" else 1)
    back = out.backward(g)[leaf].numpy()
    assert back.dtype == x.dtype
    assert np.sum(np.real(np.conj(g) * out.numpy())) == np.sum(np.real(np.conj(back) * x))


@pytest.mark.parametrize("keepdims", [False, True])
def test_the_log_of_an_empty_sum_has_an_empty_gradient(keepdims: bool) -> None:
    x = ad.zeros((2, 0)).require_grad()
    out = ad.special.logsumexp(x, axis=1, keepdims=keepdims)
    assert out.numpy().tolist() == ([[-np.inf], [-np.inf]] if keepdims else [-np.inf, -np.inf])
    assert out.backward()[x].shape == (2, 0)


# --- what records say twice must agree ---

COMPOSED = sorted(name for name, record in RECORDS.items() if isinstance(record, Composed))


@pytest.mark.parametrize("name", COMPOSED)
def test_definitions_mean_what_leaves_compute(name: str) -> None:
    """A definition is what forward mode and batching will use; the fused forms must be the same function."""
    record, B = RECORDS[name], ad.NumPy()
    assert isinstance(record, Composed)
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = arrays_of(case)
                if any(np.size(x) == 0 for x in operands):
                    continue  # definitions take maxima, which nothing has none of
                found = record.definition(B, *operands, **case.parameters)
                wanted = B[TABLE[name]](*operands, **case.parameters)
                pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
                for ours, theirs in pairs:
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in COMPOSED if RECORDS[name].rules])
def test_definitions_have_the_derivatives_of_the_fused_rules(name: str) -> None:
    record, device = RECORDS[name], ad.Autodiff(ad.NumPy())
    assert isinstance(record, Composed)
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = arrays_of(case)
                if any(np.size(x) == 0 for x in operands) or not any(is_float(x) for x in operands):
                    continue
                found = []
                for form in (device[TABLE[name]], functools.partial(record.definition, device)):
                    leaves = [
                        ad.asarray(x, device=device).require_grad() if is_float(x) else ad.asarray(x) for x in operands
                    ]
                    out = wrap(form(*[x._array for x in leaves], **case.parameters), device)
                    grads = out.backward(np.cos(np.arange(out.size)).reshape(out.shape))
                    reached = [grads.get(x) for x in leaves if x.is_require_grad()]
                    assert any(g is not None for g in reached)
                    found.append([None if g is None else g.numpy() for g in reached])
                for ours, other in zip(*found, strict=True):
                    assert (ours is None) == (other is None)
                    if ours is not None:
                        np.testing.assert_allclose(ours, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if record.accumulate])
def test_accumulating_is_adding_what_the_rule_gives(name: str) -> None:
    record, B = RECORDS[name], ad.NumPy()
    (rule,) = record.rules.values()
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                x, *arrays = arrays_of(case)
                if x.dtype.kind not in "fc":
                    continue
                g = np.cos(np.arange(x.size + 50.0))[: B[TABLE[name]](x, *arrays, **case.parameters).size]
                g = g.reshape(B[TABLE[name]](x, *arrays, **case.parameters).shape).astype(x.dtype)
                known = {"x_shape": x.shape, "arrays": tuple(arrays), **case.parameters}
                saved = [known[needed] for needed in names_of(rule, 2)]
                sink = np.sin(np.arange(x.size, dtype=float)).reshape(x.shape).astype(x.dtype)
                expected = sink + rule(B, g, *saved)
                np.testing.assert_allclose(record.accumulate(B, sink.copy(), g, *saved), expected, rtol=1e-14)
