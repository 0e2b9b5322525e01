"""Checked finds what first goes wrong and whose line it was; Profiled counts exactly; neither changes anything else."""

from __future__ import annotations

import gc
import importlib.util
import json
import linecache
import pickle
import re
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, arrays_of, call, is_finite, is_float
from cases import CASES
from conftest import same

import adjoint as ad
from adjoint import errors
from adjoint.backend import LeafBackend, in_backward
from adjoint.decorators import observed
from adjoint.decorators.observed import Profile, Row, flops
from adjoint.extend import _own
from adjoint.primitives import TABLE
from adjoint.rules import RECORDS, Elementwise

ROOT = Path(__file__).resolve().parent.parent


# --- nothing else changes ---

LEAVES: dict[str, Callable[[], LeafBackend]] = {"numpy": ad.NumPy, "reference": ad.Reference}
if importlib.util.find_spec("array_api_strict"):
    import array_api_strict

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array_api_strict.set_array_api_strict_flags(api_version="2024.12")
    LEAVES["array_api_strict"] = lambda: ad.ArrayAPI(array_api_strict)

CHAINS: dict[str, Callable[[Any], Any]] = {
    "checked": ad.Checked,
    "profiled": ad.Profiled,
    "profiled checked": lambda B: ad.Profiled(ad.Checked(B)),
    "checked profiled": lambda B: ad.Checked(ad.Profiled(B)),
    "checked autodiff": lambda B: ad.Checked(ad.Autodiff(B)),
    "profiled autodiff": lambda B: ad.Profiled(ad.Autodiff(B)),
    "checked tangent": lambda B: ad.Checked(ad.Tangent(B)),
    "profiled tangent": lambda B: ad.Profiled(ad.Tangent(B)),
    "checked batched": lambda B: ad.Checked(ad.Batched(B)),
    "profiled batched": lambda B: ad.Profiled(ad.Batched(B)),
    "autodiff checked": lambda B: ad.Autodiff(ad.Checked(B)),
    "autodiff profiled": lambda B: ad.Autodiff(ad.Profiled(B)),
    "autodiff checked autodiff profiled": lambda B: ad.Autodiff(ad.Checked(ad.Autodiff(ad.Profiled(B)))),
    "checked taylor": lambda B: ad.Checked(ad.Taylor(B)),
    "profiled dependence": lambda B: ad.Profiled(ad.Dependence(B)),
    "tangent checked": lambda B: ad.Tangent(ad.Checked(B)),
    "batched profiled": lambda B: ad.Batched(ad.Profiled(B)),
}


def model(x: Any) -> Any:
    """Something of most kinds: products, reductions, moves, reads, writes, several results, constants."""
    y = ad.tanh(x @ x.mT) + ad.ones(2, dtype=ad.float64, device=x.device)
    y[0] = x[1, :2] * 2.0
    largest, _ = ad.topk(y, 1)
    return (ad.where(y > 0, y, 1.0) * largest).sum() + ad.linalg.det(y)


@ad.custom_vjp
def twice(x: Any) -> Any:
    """sin(2 x), with half the derivative that it has."""
    return ad.sin(x * 2)


twice.defvjp(lambda x: (twice(x), x), lambda x, g: (g * ad.cos(x * 2),))

POINT = np.array([[0.3, -0.5, 0.2], [0.7, 0.1, -0.4]])
USES: dict[str, Callable[[Any], Any]] = {
    "values": model,
    "grad": ad.grad(model),
    "jvp": lambda x: ad.jvp(model, (x,), (x,))[1],
    "hessian": ad.hessian(model),
    "checkpoint": ad.grad(ad.checkpoint(model)),
    "custom_vjp": lambda x: ad.grad(lambda t: ad.vmap(twice)(t).sum() + twice(t).sum())(x),
    "scan": ad.grad(lambda x: ad.scan(lambda c, row: (ad.sin(c + row), c), x[0] * 0, x)[0].sum()),
    "jet": lambda x: ad.jet(model, (x,), ((x, x * 0.5),))[1][1],
    "vmap": lambda x: ad.vmap(lambda scale: model(x * scale))(x[0]),
    "grad of vmap": ad.grad(lambda x: ad.vmap(lambda scale: model(x * scale))(x[0]).sum()),
    "vmap of grad": lambda x: ad.vmap(lambda scale: ad.grad(model)(x * scale))(x[0]),
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("use", USES)
def test_any_nesting_computes_what_the_leaf_does(leaf: str, use: str) -> None:
    B = LEAVES[leaf]()
    expected = USES[use](ad.asarray(POINT, device=B)).numpy()
    for name, chain in CHAINS.items():
        device = chain(B)
        out = USES[use](ad.asarray(POINT, device=device))
        assert out.device is device, name
        same(out, expected)


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_what_is_tracked_below_stays_tracked(observer: Any) -> None:
    """The gradient of a function of a gradient, through an observer between two levels."""
    level = ad.Autodiff(ad.NumPy())
    x = ad.asarray(POINT, device=level).require_grad()
    slope = (ad.grad(model)(x.to_device(observer(level))) ** 2).sum()
    assert slope.is_tracked()
    expected = ad.grad(lambda t: (ad.grad(model)(t) ** 2).sum())(POINT)
    ((_, found),) = level.backward(slope._array).values()  # an observer's arrays are those of its inner backend
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "call",
    {
        "grad": lambda x: ad.grad(lambda x: ad.sqrt(x).sum())(x),
        "jvp": lambda x: ad.jvp(ad.sqrt, (x,), (np.ones(2),)),
        "vmap": lambda x: ad.vmap(ad.log)(x),
        "hessian": lambda x: ad.hessian(lambda x: ad.sqrt(x).sum())(x),
        "scan": lambda x: ad.scan(lambda c, x: (c + ad.log(x), None), 0.0, x),
    }.values(),
)
def test_observers_of_the_default_device_see_transforms_of_numpy_arrays(call: Any) -> None:
    profiled = ad.Profiled(ad.NumPy())
    with ad.use_device(ad.Autodiff(profiled)), np.errstate(all="ignore"):
        call(np.array([1.0, 0.0]))
    assert profiled.profile().rows
    with ad.use_device(ad.Autodiff(ad.Checked(ad.NumPy()))):
        assert isinstance(ad.grad(lambda x: ad.sqrt(x).sum())(np.array([4.0, 1.0])), np.ndarray)
        with pytest.raises((ad.errors.NonFiniteError, ad.errors.BackwardError), match="gave (-?inf|nan) at"):
            call(np.array([1.0, 0.0]))


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_a_level_can_be_observed_inside_a_transform(observer: Any) -> None:
    def f(x: Any) -> Any:
        return model(x.to_device(observer(x.device)))

    stack = np.stack([POINT, 2 * POINT])
    np.testing.assert_array_equal(ad.vmap(f)(stack), ad.vmap(model)(stack))
    np.testing.assert_array_equal(ad.grad(f)(POINT), ad.grad(model)(POINT))


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_arrays_are_those_of_the_inner_backend(observer: Any) -> None:
    device = observer(ad.NumPy())
    x = ad.asarray(POINT, device=device)
    assert type(x.exp()._array) is np.ndarray
    assert x.exp().device is (x + ad.asarray(POINT, device=ad.NumPy())).device is device
    with pytest.raises(errors.DeviceError, match="decorates a backend"):
        observer("numpy")


@pytest.mark.parametrize(
    "device",
    [ad.Checked(ad.NumPy()), ad.Checked(ad.NumPy(), shapes=False, finite=False), ad.Profiled(ad.NumPy()),
     ad.device("profiled<numpy>"), ad.Profiled(ad.Checked(ad.Reference()), number=7)],
    ids=str,
)  # fmt: skip
def test_they_are_values_with_names(device: Any) -> None:
    assert ad.device(device.name) is device
    assert pickle.loads(pickle.dumps(device)) is device
    assert type(device)(*device.configuration()) is device
    assert device.over(device.inner) is device


# --- Checked: what is right passes ---


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_passes(name: str) -> None:
    leaf, primitive = ad.NumPy(), TABLE[name]
    for case in CASES[name]:
        checked = ad.Checked(leaf)[primitive]
        if not is_finite(name, case) and case.operands[0].shape != (0, 3):  # minus infinity, of an empty sum
            with pytest.raises(errors.NonFiniteError, match="-inf"):
                checked(*case.operands, **case.parameters)
            checked = ad.Checked(leaf, finite=False)[primitive]
        found = checked(*case.operands, **case.parameters)
        expected = leaf[primitive](*case.operands, **case.parameters)
        for x, y in zip(found, expected, strict=True) if primitive.results > 1 else [(found, expected)]:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_rule_passes(name: str) -> None:
    def gradients(leaf: Any, case: Any) -> list[Any]:
        operands = arrays_of(case)
        floats = tuple(i for i, x in enumerate(operands) if is_float(x))
        leaves = [ad.asarray(operands[i], device=ad.Autodiff(leaf)).require_grad() for i in floats]
        if not leaves:
            return []
        out = call(name, case, operands, floats)(*leaves)
        outs = out if isinstance(out, tuple) else (out,)
        found = [x.backward(wrt=leaves, retain_graph=True) for x in outs if x.is_tracked()]
        return [None if g is None else g.numpy() for grads in found for g in map(grads.get, leaves)]

    compared = 0
    for case in CASES[name]:
        if is_finite(name, case):
            expected = gradients(ad.NumPy(), case)
            for x, y in zip(gradients(ad.Checked(ad.NumPy()), case), expected, strict=True):
                np.testing.assert_array_equal(x, y)
                compared += 1
    assert compared


@pytest.mark.parametrize("leaf", LEAVES)
def test_infinities_that_were_there_pass(leaf: str) -> None:
    level = ad.Checked(LEAVES[leaf]())
    x = ad.full(3, ad.inf, device=level)
    for y in (x + 1, -x, ad.exp(x), x * ad.asarray([1.0, 2.0, 3.0], device=level), ad.ones(3, device=level) * ad.inf):
        assert np.isinf(y.numpy()).all()
    assert np.isnan((ad.tensor([ad.nan], device=level) * 2).numpy()).all()  # a missing value
    assert ad.pad(ad.ones(1, device=level), 1, value=-ad.inf).tolist() == [-ad.inf, 1.0, -ad.inf]
    assert (ad.ones(1, device=level) / ad.full(1, ad.inf, device=level)).tolist() == [0.0]


# --- Checked: what is wrong is found ---


class Wrong(ad.NumPy):
    """Some of its implementations are wrong."""

    def implement(self, primitive: Any) -> Any:
        right = super().implement(primitive)
        wrong: dict[str, Callable[..., Any]] = {
            "sinh": lambda x: np.append(np.sinh(x), 1.0).astype(x.dtype),
            "sin": lambda x: np.sin(x).astype(np.float64),
            "cos": lambda x: np.cos(x).tolist(),
            "topk": lambda x, **how: (right(x, **how)[0], right(x, **how)[1].astype(np.int32)),
            "sort": lambda x, **how: (right(x, **how), None),
            "eye": lambda *, rows, columns, k, dtype: np.eye(rows, columns + 1, k, dtype),
        }
        return wrong.get(primitive.name, right)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("sinh", "sinh(float32 (2,)) gave shape (3,) on wrong, where the primitive promises (2,)"),
        ("sin", "sin(float32 (2,)) gave float64 on wrong, where the primitive promises float32"),
        ("cos", "cos(float32 (2,)) gave [1.0, 1.0] on wrong, which is no array"),
        (
            "sort",
            "sort(float32 (2,), axis=0, descending=False) gave 2 results on wrong, where the primitive promises 1",
        ),
    ],
)
def test_a_wrong_implementation_is_found(name: str, fault: str) -> None:
    leaf = Wrong()
    leaf.name = "wrong"
    x = ad.asarray(np.zeros(2, np.float32), device=ad.Checked(leaf))
    with pytest.raises(errors.CheckError) as caught:
        getattr(ad, name)(x)  # this one
    assert str(caught.value).startswith(f"forward: {fault}\n  called from {__file__}:")
    assert str(caught.value).endswith(": getattr(ad, name)(x)  # this one")


def test_the_checks_can_be_left_out() -> None:
    def runs(name: str, **options: Any) -> bool:
        x = ad.asarray(np.ones(2, np.float32), device=ad.Checked(Wrong(), **options))
        try:
            {"log": lambda x: ad.log(x - 1)}.get(name, getattr(ad, name))(x)
        except errors.AdjointError:
            return False
        return True

    with np.errstate(divide="ignore"):
        found = {
            (name, off): runs(name, **{off: False})
            for name in ("sinh", "sin", "log")
            for off in ("shapes", "dtypes", "finite")
        }
    right = {("sinh", "shapes"), ("sin", "dtypes"), ("log", "finite")}
    assert {key for key, passed in found.items() if passed} == right
    for bad in (2, 1.0, "yes", None, np.ones(2)):
        with pytest.raises(errors.ArgumentError, match="shapes is True or False"):
            ad.Checked(ad.NumPy(), shapes=bad)  # type: ignore[arg-type]


def test_one_wrong_result_of_several_is_found() -> None:
    x = ad.asarray(np.arange(3.0), device=ad.Checked(Wrong()))
    with pytest.raises(errors.CheckError, match=r"topk\(float64 \(3,\), k=2, axis=0, largest=True\) gave int32"):
        ad.topk(x, 2)


def test_a_wrong_creation_is_found() -> None:
    with pytest.raises(errors.CheckError, match=r"eye\(rows=2, columns=2, .* gave shape \(2, 3\)"):
        ad.eye(2, device=ad.Checked(Wrong()))


def test_operands_that_do_not_fit_are_the_same_error_as_without() -> None:
    def message(device: Any) -> str:
        with pytest.raises(errors.ShapeError) as caught:
            ad.ones((2, 3), device=device) @ ad.ones((2, 3), device=device)
        return str(caught.value)

    assert message(ad.Checked(ad.NumPy())) == message(ad.NumPy())


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(
    ("f", "fault"),
    [
        (lambda x: x.log(), "log(float64 (2, 2)) gave -inf at (0, 1)"),
        (lambda x: 1 / x, "divide(1, float64 (2, 2)) gave inf at (0, 1)"),
        (lambda x: x / x, "divide(float64 (2, 2), float64 (2, 2)) gave nan at (0, 1)"),
        (lambda x: x / (x * 0), "divide(float64 (2, 2), float64 (2, 2)) gave nan at (0, 1)"),  # beside infinities
        (lambda x: x.sum() / x[0, 1], "divide(float64 (), float64 ()) gave inf at ()"),
        (lambda x: x[0] ** -1, "pow(float64 (2,), -1) gave inf at (1,)"),
        # a nan of infinities is new, although they are not
        (lambda x: x * ad.inf, "multiply(float64 (2, 2), inf) gave nan at (0, 1)"),
        (
            lambda x: ad.special.softmax(x[0] * 0 + ad.asarray([-ad.inf] * 2, device=x.device)),
            "softmax(float64 (2,), axis=0) gave nan at (0,)",
        ),
        (lambda x: ad.where(x > 0, x, 1.0).log() / x, "divide(float64 (2, 2), float64 (2, 2)) gave nan at (0, 1)"),
        (lambda x: ad.exp(x * 1e3 + 1), "exp(float64 (2, 2)) gave inf at (0, 0)"),
    ],
)
def test_the_first_that_is_not_finite_is_found(leaf: str, f: Any, fault: str) -> None:
    x = ad.asarray(np.array([[1.0, 0.0], [0.0, 2.0]]), device=ad.Checked(LEAVES[leaf]()))
    with np.errstate(all="ignore"), pytest.raises(errors.NonFiniteError) as caught:  # array_api_strict warns
        f(x)
    assert isinstance(caught.value, FloatingPointError)
    what, line = str(caught.value).splitlines()
    assert what.startswith(f"forward: {fault}, and no operand has ")
    assert what.endswith("; keep operands where it is finite, with ad.where or ad.clip, or pass finite=False")
    assert line.startswith(f"  called from {__file__}:")


def test_an_overflow_of_a_cast_or_a_number_is_found() -> None:
    x = ad.asarray(np.array([1.0, 1e300]), device=ad.Checked(ad.NumPy()))
    with pytest.raises(errors.NonFiniteError, match=r"astype\(float64 \(2,\), dtype=.*\) gave inf at \(1,\)"):
        x.astype(ad.float32)
    with pytest.raises(errors.NonFiniteError, match=r"multiply\(float32 \(1,\), 1e\+300\) gave inf"):
        ad.ones(1, device=x.device) * 1e300


def test_complex_values() -> None:
    z = ad.asarray(np.array([1j, 0j]), device=ad.Checked(ad.NumPy()))
    assert (z * 2).tolist() == [2j, 0j]
    with pytest.raises(errors.NonFiniteError, match=r"log\(complex128 \(2,\)\) gave \(-inf\+0j\) at \(1,\)"):
        ad.log(z)


def test_numbers_beyond_floats_are_finite_where_the_leaf_has_them() -> None:
    pytest.importorskip("mpmath")
    x = ad.asarray(np.array([1e300]), device=ad.Checked(ad.Reference(digits=30)))
    assert (x * x / x).tolist() == [1e300]


# --- Checked: whose line it was ---


def place(needle: str) -> str:
    """The line of this file that ends in a remark, as messages show it."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# {needle}")]
    return f"{__file__}:{number}: {lines[number - 1].strip()}"


LEVELS: dict[str, Callable[[], Any]] = {
    "one": lambda: ad.Autodiff(ad.Checked(ad.NumPy())),
    "two": lambda: ad.Autodiff(ad.Autodiff(ad.Checked(ad.NumPy()))),
    "between": lambda: ad.Autodiff(ad.Checked(ad.Autodiff(ad.NumPy()))),
    "balanced": lambda: ad.Autodiff(ad.Checked(ad.NumPy()), "balanced"),
    "batched": lambda: ad.Autodiff(ad.Batched(ad.Checked(ad.NumPy()))),
    "tangent": lambda: ad.Autodiff(ad.Tangent(ad.Checked(ad.NumPy()))),
    "reference": lambda: ad.Autodiff(ad.Checked(ad.Reference())),
}


@pytest.mark.parametrize("level", LEVELS)
def test_log_of_zero_in_forward(level: str) -> None:
    x = ad.tensor([1.0, 0.0], device=LEVELS[level]()).require_grad()
    y = x * 2
    with pytest.raises(errors.NonFiniteError) as caught:
        y.log()  # the logarithm
    message = str(caught.value)
    assert message.startswith("forward: log(float32 (2,)) gave -inf at (1,), and no operand has inf; ")
    assert message.endswith(f"\n  called from {place('the logarithm')}")


@pytest.mark.parametrize("level", LEVELS)
def test_sqrt_at_zero_in_backward(level: str) -> None:
    x = ad.tensor([1.0, 0.0], device=LEVELS[level]()).require_grad()
    y = ad.sqrt(x * 2)  # the root
    loss = (y * 3).sum()
    with pytest.raises(errors.BackwardError) as caught:
        loss.backward()  # the pass
    cause = caught.value.__cause__
    assert isinstance(cause, errors.NonFiniteError)
    assert str(cause).startswith(
        "backward: divide(float32 (2,), float32 (2,)) gave inf at (1,), and no operand has inf"
    )
    assert str(cause).endswith(f"\n  called from {place('the pass')}")
    assert str(caught.value).startswith(
        "backward through 'sqrt' of tracked operands [(2,)] with result (2,): NonFinite"
    )
    assert str(caught.value).endswith(f"{cause}\n  made at {place('the root')}")


def test_the_lines_of_transforms() -> None:
    device = ad.Checked(ad.NumPy())

    def f(x: Any) -> Any:
        return ad.sqrt(x).sum()  # in f

    for transform in (ad.grad, ad.jacobian, lambda f: ad.vmap(ad.grad(f))):
        with pytest.raises(errors.BackwardError, match=re.escape(f"made at {place('in f')}")):
            transform(f)(ad.zeros((2, 2), device=device) if transform is not ad.grad else ad.zeros(2, device=device))
    with pytest.raises(errors.NonFiniteError, match=re.escape(f"called from {place('in f')}")):
        ad.jvp(f, (ad.zeros(2, device=device),), (ad.ones(2, device=device),))


def test_under_batched_the_place_names_the_example() -> None:
    x = ad.tensor([[1.0, 2.0], [3.0, 0.0], [4.0, 5.0]], device=ad.Checked(ad.NumPy()))
    with pytest.raises(errors.NonFiniteError, match=r"log\(float32 \(3, 2\)\) gave -inf at \(1, 1\)"):
        ad.vmap(ad.log)(x)
    with pytest.raises(errors.NonFiniteError, match=r"log\(float32 \(2,\)\) gave -inf at \(1, 1\)"):
        ad.vmap(lambda row: ad.log(row.to_device(ad.Checked(row.device))))(x.numpy())


def test_the_line_of_a_function_with_a_rule_of_its_own() -> None:
    @ad.custom_vjp
    def root(x: Any) -> Any:
        return ad.sqrt(x)

    root.defvjp(lambda x: (root(x), x), lambda x, g: (g / ad.sqrt(x),))  # the rule
    x = ad.zeros(2, device=ad.Autodiff(ad.Checked(ad.NumPy()))).require_grad()
    y = root(x)  # its call
    with pytest.raises(errors.BackwardError) as caught:
        y.sum().backward()
    assert str(caught.value).endswith(f"called from {place('the rule')}\n  made at {place('its call')}")


def test_a_wrong_primitive_of_a_user_is_found() -> None:
    double = ad.primitive("observed_double", lambda x: (2 * x).astype(np.float64))
    try:
        x = ad.ones(2, device=ad.Checked(ad.NumPy()))
        with pytest.raises(errors.CheckError, match=r"observed_double\(float32 \(2,\)\) gave float64 on numpy"):
            double(x)
        p = ad.Profiled(ad.NumPy())
        double(ad.ones(2, device=p))
        assert counts(p)[("observed_double", "forward")] == (1, 8 + 16, 2)
        ad.primitive("observed_double", lambda x: np.concatenate([x, x]), kind="contraction", shape=lambda s: (4,))
        assert double(x).tolist() == [1.0] * 4  # declared anew, for observers as well
        assert double(ad.ones(2, device=p)).tolist() == [1.0] * 4
        assert counts(p)[("observed_double", "forward")] == (2, 8 + 16 + 8 + 16, 2)
    finally:
        del TABLE["observed_double"], RECORDS["observed_double"]
        _own.discard("observed_double")
        ad.backend.forget("observed_double")


class WrongRule(ad.Autodiff[Any]):
    """An Autodiff level with another rule for exp."""

    def __init__(self, inner: Any, rule: Any) -> None:
        super().__init__(inner)
        self.rule = rule

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.rule)

    def _lift(self, primitive: Any, run: Any, record: Any) -> Any:
        return super()._lift(primitive, run, Elementwise(x=self.rule) if primitive.name == "exp" else record)


def failure(rule: Any, *, leaf: Any = None) -> BaseException:
    """What a wrong rule of exp runs into."""
    level = WrongRule(ad.Checked(ad.NumPy() if leaf is None else leaf), rule)
    x = ad.asarray(np.ones((2, 3), np.float32), device=level).require_grad()
    y = ad.exp(x)  # with a wrong rule
    with pytest.raises(errors.BackwardError) as caught:
        y.sum().backward()
    assert str(caught.value).endswith(f"made at {place('with a wrong rule')}")
    assert str(caught.value).startswith("backward through 'exp' of tracked operands [(2, 3)] with result (2, 3): ")
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def test_wrong_rules_are_found() -> None:
    found = failure(lambda B, g, out: B.divide(g, B.subtract(out, out)))
    assert isinstance(found, errors.NonFiniteError)
    assert str(found).startswith("backward: divide(float32 (2, 3), float32 (2, 3)) gave inf at (0, 0)")
    found = failure(lambda B, g, out: B.matmul(g, out))
    assert isinstance(found, errors.ShapeError)
    assert "matmul: shapes (2, 3) and (2, 3) do not fit" in str(found)
    found = failure(lambda B, g, x: B.multiply(g, B.sin(x)), leaf=Wrong())
    assert isinstance(found, errors.CheckError)
    assert "backward: sin(float32 (2, 3)) gave float64" in str(found)


def test_source_lines_are_recorded_over_checked_alone() -> None:
    for name, chain in CHAINS.items():
        level = ad.Autodiff(chain(ad.NumPy()))
        assert level.records_locations() == ("checked" in name), name
    x = ad.tensor([1.0, 2.0], device=ad.Autodiff(ad.Checked(ad.NumPy()))).require_grad()
    y = x.detach() * 2  # the cut
    assert ad.why(x, y.sum()) == f"cut at 'detach', {place('the cut')}: its result is a constant"


def test_origins_of_nested_levels_and_of_several_results() -> None:
    """Functions made from source are not the user's lines; the maker of several results has a line as each has."""
    with ad.testing.source_locations():
        x = ad.tensor([3.0, 1.0, 2.0], device="autodiff<autodiff<numpy>>")
        lower = ad.from_inner(x.inner().require_grad()).require_grad()
        largest = ad.topk(lower * 2, 2)[0]  # of several results
        for node in (largest._array.node, largest._array.node.parents[0], largest.inner()._array.node):
            assert str(node.location) == place("of several results")


def test_a_folder_beside_the_package_is_not_the_package() -> None:
    file = str(Path(ad.__file__).parent) + "_demo/script.py"
    with pytest.raises(errors.NonFiniteError, match=re.escape(f"called from {file}:2")):
        exec(compile("\nad.log(x)", file, "exec"), {"ad": ad, "x": ad.zeros(1, device=ad.Checked(ad.NumPy()))})


# --- Profiled: exact counts ---


def counts(p: Any) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {(row.primitive, row.phase): (row.calls, row.bytes, row.flops) for row in p.profile().rows}


def test_a_known_program_is_counted_exactly() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((2, 3)), device=ad.Autodiff(p)).require_grad()
    w = ad.asarray(np.ones((3, 4)), device=x.device)
    for _ in range(3):
        y = (x @ w).tanh().sum()
    assert counts(p) == {
        ("matmul", "forward"): (3, 3 * 8 * (6 + 12 + 8), 3 * 2 * 2 * 3 * 4),
        ("tanh", "forward"): (3, 3 * 8 * (8 + 8), 3 * 8),
        ("sum", "forward"): (3, 3 * 8 * (8 + 1), 3 * 8),
    }
    p.reset()
    assert p.profile().rows == []
    y.backward()
    assert counts(p) == {
        ("full", "backward"): (1, 8, 0),
        ("broadcast_to", "backward"): (1, 8 * (1 + 8), 0),
        ("tanh_pullback", "backward"): (1, 8 * (8 + 8 + 8), 8),
        ("permute_dims", "backward"): (1, 8 * (12 + 12), 0),
        ("matmul", "backward"): (1, 8 * (8 + 12 + 6), 2 * 2 * 4 * 3),
    }


def test_forward_and_backward_are_told_apart() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones(5), device=ad.Autodiff(p)).require_grad()
    grads = (x * x).sum().backward()
    calls = {key: n for key, (n, _, _) in counts(p).items()}
    assert calls[("multiply", "forward")] == 1
    assert calls[("multiply", "backward")] == 2
    assert calls[("add", "backward")] == 1
    assert ("add", "forward") not in calls
    assert (grads[x] + 1).shape == (5,)
    assert counts(p)[("add", "forward")][0] == 1


def test_the_phase_ends_with_the_walk_and_is_of_its_thread() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.ones(2, device=p)

    def rule(B: Any, g: Any, out: Any) -> Any:
        thread = threading.Thread(target=x.sin)  # meanwhile, elsewhere
        thread.start()
        thread.join()
        x.cos()
        raise ZeroDivisionError("on purpose")

    y = ad.exp(ad.ones(2, device=WrongRule(p, rule)).require_grad())
    with pytest.raises(errors.BackwardError, match="on purpose"):
        y.backward()
    assert not in_backward.get()
    x.tanh()
    phases = dict(counts(p).keys())
    assert (phases["sin"], phases["cos"], phases["tanh"]) == ("forward", "backward", "forward")


def test_inner_levels_are_counted_below() -> None:
    """Gradients of gradients: the upper walk records on the lower level, which runs on the profiled backend."""
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.array(0.5), device=p)
    assert ad.grad(ad.grad(ad.sin))(x).item() == -np.sin(0.5)
    assert counts(p)[("sin", "forward")] == (1, 16, 1)
    assert counts(p)[("cos", "backward")] == (1, 16, 1)
    assert counts(p)[("sin", "backward")] == (1, 16, 1)
    p.reset()
    ad.vmap(ad.sin)(ad.asarray(np.zeros((4, 3)), device=p))
    assert counts(p) == {("sin", "forward"): (1, 8 * 24, 12)}


def test_checkpointed_functions_are_counted() -> None:
    """They run on views of the levels, which count with what they are views of."""
    for inner in (ad.NumPy(), ad.Reference(digits=31)):  # of the second nothing else here has made a level
        p = ad.Profiled(ad.Autodiff(inner))
        ad.checkpoint(ad.sin)(ad.asarray(np.ones(2), device=p))
        assert counts(p)[("sin", "forward")] == (1, 32, 2)


def test_buffers_are_reused_unless_their_values_are_evidence() -> None:
    x = np.zeros(2)
    assert ad.Profiled(ad.NumPy()).index_set_into(x, 1.0, key=(0,)) is x
    assert ad.Checked(ad.NumPy()).index_set_into(x, ad.inf, key=(1,)).tolist() == [1.0, ad.inf]
    assert x.tolist() == [1.0, 0.0]


def test_assignments_are_counted() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.zeros(100), device=p)
    x[0] = 1.0
    p.reset()
    x[1] = 2.0
    x[2:4] = ad.asarray(np.ones(2), device=p)
    assert x.tolist()[:5] == [1.0, 2.0, 1.0, 1.0, 0.0]
    assert counts(p)[("index_set", "forward")][0] == 2


SIZES: list[tuple[str, list[tuple[int, ...]], tuple[int, ...], int]] = [
    ("exp", [(2, 3)], (2, 3), 6),
    ("add", [(2, 1), (3,)], (2, 3), 6),
    ("where", [(3,), (), (2, 3)], (2, 3), 6),
    ("sum", [(4, 5)], (), 20),
    ("softmax_cross_entropy_pullback", [(4,), (4, 5), (4,)], (4, 5), 20),
    ("matmul", [(2, 3), (3, 5)], (2, 5), 2 * 2 * 3 * 5),
    ("matmul", [(7, 1, 2, 3), (6, 3, 5)], (7, 6, 2, 5), 7 * 6 * 2 * 2 * 3 * 5),
    ("matmul", [(2, 0), (0, 5)], (2, 5), 0),
    ("conv", [(8, 4, 9, 9), (6, 2, 3, 3)], (8, 6, 7, 7), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("conv_input", [(8, 6, 7, 7), (6, 2, 3, 3)], (8, 4, 9, 9), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("conv_weight", [(8, 4, 9, 9), (8, 6, 7, 7)], (6, 2, 3, 3), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("convolve", [(2, 9), (2, 4)], (2, 12), 2 * 2 * 9 * 4),
    ("convolve", [(2, 9), (2, 4)], (2, 6), 2 * 2 * 6 * 4),
    ("attention", [(2, 8, 3), (2, 5, 3), (2, 5, 4)], (2, 8, 4), 2 * (2 * 8 * 5) * (3 + 4)),
    ("attention_pullback", [(8, 4), (8, 3), (5, 3), (5, 4), (8, 4)], (8, 3), 2 * (8 * 5) * (3 + 4 + 3 + 3 + 4)),
    ("solve", [(5, 3, 3), (3, 2)], (5, 3, 2), 5 * 27),
    ("det", [(5, 3, 3)], (5,), 5 * 27),
    ("inv", [(0, 0)], (0, 0), 0),
    ("reshape", [(6,)], (2, 3), 0),
    ("index", [(6,)], (), 0),
    ("full", [], (2, 3), 0),
]


@pytest.mark.parametrize(("name", "operands", "result", "expected"), SIZES)
def test_operations_are_estimated_by_kind(
    name: str, operands: list[tuple[int, ...]], result: tuple[int, ...], expected: int
) -> None:
    assert flops(TABLE[name], operands, result, {}) == expected


def test_operations_of_fourier_transforms() -> None:
    assert flops(TABLE["fft"], [(3, 8, 4)], (3, 8, 4), {"axis": (1, 2)}) == 5 * 96 * (3 + 2)
    assert flops(TABLE["rfft"], [(3, 8)], (3, 5), {"axis": 1}) == 2.5 * 24 * 3
    assert flops(TABLE["hfft"], [(3, 5)], (3, 8), {"axis": 1}) == 2.5 * 24 * 3
    assert flops(TABLE["hfft"], [(3, 2)], (3, 2), {"axis": 1}) == 2.5 * 6
    p = ad.Profiled(ad.NumPy())
    ad.fft.fft(ad.fft.irfft(ad.fft.rfft(ad.ones(16, device=p), n=16), n=16))
    work = {row.primitive: row.flops for row in p.profile().rows}
    assert (work["rfft"], work["hfft"], work["fft"]) == (160, 160, 320)


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_is_counted(name: str) -> None:
    p = ad.Profiled(ad.NumPy())
    for case in CASES[name]:
        p[TABLE[name]](*case.operands, **case.parameters)
    assert counts(p)[(name, "forward")][0] == len(CASES[name])


def test_threads_lose_no_counts() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones(3), device=ad.Autodiff(p)).require_grad()

    def work() -> None:
        for _ in range(300):
            (x * x).sum().backward()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert counts(p)[("multiply", "forward")] == (2400, 2400 * 72, 2400 * 3)
    assert counts(p)[("multiply", "backward")] == (4800, 4800 * 72, 4800 * 3)


# --- Profiled: who counts ---


def test_each_one_counts_for_itself() -> None:
    p, q = ad.Profiled(ad.NumPy()), ad.Profiled(ad.NumPy())
    assert p is not q
    ad.ones(2, device=p)
    assert (len(p.profile().rows), len(q.profile().rows)) == (1, 0)
    assert ad.Profiled(ad.NumPy(), p.number) is p
    ad.ones(2, device=p.over(ad.Reference())).sin()  # the same level elsewhere: they count together
    assert counts(p) == {("full", "forward"): (2, 16, 0), ("sin", "forward"): (1, 16, 2)}
    assert ad.Autodiff(p) is ad.Autodiff(p)
    assert ad.device(f"autodiff<{p.name}>") is ad.Autodiff(p)
    assert ad.device("profiled<numpy>") is ad.device("profiled<numpy>")  # so that tensors made by name meet
    assert ad.device("profiled<numpy>") is not ad.Profiled(ad.NumPy())
    for bad in (-1, 1.5, True, "x"):
        with pytest.raises(errors.ArgumentError, match="natural number"):
            ad.Profiled(ad.NumPy(), bad)  # type: ignore[arg-type]


def test_one_that_nobody_uses_goes() -> None:
    p = ad.Profiled(ad.NumPy())
    ad.ones(2, device=ad.Autodiff(p))
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None


# --- Profiled: what it shows ---


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a microsecond later than the one before."""
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(observed, "time", types.SimpleNamespace(perf_counter_ns=lambda: next(ticks)))


def test_the_table(clock: None) -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((50, 100)), device=p)
    for _ in range(3):
        x.exp()
    y = x @ x.mT
    assert y.shape == (50, 50)
    assert [row.primitive for row in p.profile().rows] == ["exp", "permute_dims", "matmul"]
    assert p.profile().rows[0] == Row("exp", "forward", 3, 3e-6, 3 * 80000, 15000)
    table = """
primitive     phase      calls          ms  µs per call         MB  GFLOP/s
exp           forward        3       0.003          1.0      0.240     5.00
permute_dims  forward        1       0.001          1.0      0.080
matmul        forward        1       0.001          1.0      0.100   500.00
total                        5       0.005          1.0      0.420   103.00"""
    assert str(p.profile()) == repr(p.profile()) == table.strip()
    assert str(Profile([])).splitlines()[1].split() == ["total", "0", "0.000", "0.0", "0.000"]


def test_the_trace(clock: None, tmp_path: Path) -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((2, 3), np.float32), device=ad.Autodiff(p)).require_grad()
    values, _ = ad.topk(x * 2.0, 1)
    values.sum().backward()
    p.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert set(trace) == {"traceEvents", "otherData"}
    assert trace["otherData"] == {"left out": 0}
    events = trace["traceEvents"]
    assert len(events) == sum(row.calls for row in p.profile().rows)
    for i, event in enumerate(events):
        assert set(event) == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
        assert event["ph"] == "X"
        assert event["cat"] in ("forward", "backward")
        assert (event["ts"], event["dur"]) == (2 * i, 1)
        assert 0 < event["pid"] < 2**32
        assert 0 < event["tid"] < 2**32  # what Perfetto reads
        assert len(event["args"]["shapes"]) == len(event["args"]["dtypes"])
    assert [event["name"] for event in events[:3]] == ["multiply", "topk", "sum"]
    assert events[1]["args"] == {
        "shapes": [[2, 3], [2, 1], [2, 1]],
        "dtypes": ["float32", "float32", "int64"],
        "bytes": 24 + 8 + 16,
        "flops": 0,
    }
    assert events[-1]["cat"] == "backward"


def test_a_trace_keeps_the_last_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observed, "EVENTS", 2)
    p = ad.Profiled(ad.NumPy())
    x = ad.ones(1, device=p)
    x.exp().sin().cos()
    p.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert [event["name"] for event in trace["traceEvents"]] == ["sin", "cos"]
    assert trace["otherData"] == {"left out": 2}
    assert sum(row.calls for row in p.profile().rows) == 4


def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    p = ad.Profiled(ad.NumPy())
    for path in (tmp_path / "no" / "trace.json", tmp_path, "a\0b"):
        with pytest.raises(errors.FileError, match="a folder that may be written to") as caught:
            p.trace(path)
        assert isinstance(caught.value, OSError)
    for bad in (None, 1):
        with pytest.raises(errors.ArgumentTypeError, match="path of a file"):
            p.trace(bad)  # type: ignore[arg-type]


# --- the page ---


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/debugging.md").read_text(), re.DOTALL)


def test_the_page_shows_what_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each block of Python is a file; the text that follows is the error it ends with, or what it prints."""
    monkeypatch.chdir(tmp_path)
    for source, shown in zip(blocks("py"), blocks("text"), strict=True):
        linecache.cache["train.py"] = (len(source), None, source.splitlines(keepends=True), "train.py")
        printed: list[str] = []
        try:
            exec(compile(source, "train.py", "exec"), {"print": lambda x, to=printed: to.append(str(x))})
        except errors.AdjointError as error:
            printed.append(f"adjoint.errors.{type(error).__name__}: {error}")
        # times differ from run to run, and with them the order of lines
        found, said = [re.sub(r"\d+\.\d+", "0", text).splitlines() for text in ("\n".join(printed), shown)]
        assert sorted(map(str.split, found)) == sorted(map(str.split, said))
    del linecache.cache["train.py"]
