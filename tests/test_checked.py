"""`Checked` finds what first goes wrong and whose line it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, arrays_of, call, is_finite, is_float
from cases import CASES
from each import Each
from observers import CHAINS, LEAVES, WrongRule, counts

import adjoint as ad
from adjoint import errors
from adjoint.primitives import TABLE

# --- what is right passes ---


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_passes(name: str) -> None:
    leaf, primitive = ad.NumPy(), TABLE[name]
    with Each() as each:
        for case in CASES[name]:
            with each(case):
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
    with Each() as each:
        for case in CASES[name]:
            with each(case):
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


# --- what is wrong is found ---


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


# --- whose line it was ---


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
    x = ad.ones(2, device=ad.Checked(ad.NumPy()))
    with pytest.raises(errors.CheckError, match=r"observed_double\(float32 \(2,\)\) gave float64 on numpy"):
        double(x)
    p = ad.Profiled(ad.NumPy())
    double(ad.ones(2, device=p))
    assert counts(p)[("observed_double", "forward")] == (1, 8 + 16, 2)
    double = ad.primitive("observed_double", lambda x: np.concatenate([x, x]), kind="contraction", shape=lambda s: (4,))
    assert double(x).tolist() == [1.0] * 4  # declared anew, for observers as well
    assert double(ad.ones(2, device=p)).tolist() == [1.0] * 4
    assert counts(p)[("observed_double", "forward")] == (2, 8 + 16 + 8 + 16, 2)


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
