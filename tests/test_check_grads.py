"""The checker is checked: it must pass what is right and find every kind of wrong rule."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.primitives import Primitive
from adjoint.rules import Bilinear, Custom, Elementwise, Linear, Record

X = np.array([0.3, 0.7, 1.1])
Z = np.array([0.3 + 1j, 0.7 - 0.4j])


def level_with(name: str, record: Record) -> Any:
    """An Autodiff level that differentiates one primitive by another record."""

    class Wrong(ad.Autodiff[Any]):
        def _lift(self, primitive: Primitive, run: Any, known: Record | None) -> Any:
            return super()._lift(primitive, run, record if primitive.name == name else known)

    return Wrong(ad.NumPy())


def fails(f: Any, args: Any, name: str, record: Record, *, order: int = 2) -> str:
    """The message for a rule that is wrong; the right rule passes."""
    ad.testing.check_grads(f, args, order=order)
    with pytest.raises(errors.CheckError) as caught:
        ad.testing.check_grads(f, args, device=level_with(name, record), order=order)
    return str(caught.value)


def test_a_wrong_factor() -> None:
    message = fails(ad.sin, (X,), "sin", Elementwise(x=lambda B, g, x: B.multiply(g, B.multiply(B.cos(x), 1.01))))
    assert message.startswith("order 1, reverse: along a random direction the derivative is ")
    assert re.search(r"worst: argument 0 at \(\d,\): gradient [-\d.]+, differences [-\d.]+$", message)


def test_a_wrong_sign() -> None:
    assert "order 1" in fails(ad.exp, (X,), "exp", Elementwise(x=lambda B, g, out: B.negative(B.multiply(g, out))))


def test_a_missing_term() -> None:
    record = Bilinear(x=lambda B, g, y: B.multiply(g, y))
    message = fails(lambda x, y: x * y, (X, X + 1), "multiply", record)
    assert "order 1" in message
    assert "worst: argument 1 at " in message


def test_a_missing_operand_of_a_sum_of_paths() -> None:
    record = Linear(x=lambda B, g: g)
    assert "order 1" in fails(lambda x: x + x.sin(), (X,), "add", record)


def test_a_list_is_one_of_arguments() -> None:
    ad.testing.check_grads(lambda x, y: x * y, [X, X + 1])
    ad.testing.check_grads(lambda pair: pair[0] * pair[1], ([X, X + 1],))


def test_devices_by_name() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.device.leaf)
        return x * x

    for name in ("reference", "autodiff[strong_zero]<reference>"):
        ad.testing.check_grads(f, (X[:1],), device=name)
        assert set(seen) == {ad.Reference()}
    with pytest.raises(ad.errors.DeviceError, match="'abacus'"):
        ad.testing.check_grads(f, (X,), device="abacus")


def test_a_wrong_second_derivative_of_a_right_first_one() -> None:
    record = Elementwise(x=lambda B, g, x: B.multiply(g, B.detach(B.cos(x))))
    message = fails(ad.sin, (X,), "sin", record)
    assert message.startswith("order 2, ")
    assert "worst: argument 0 at (" in message
    ad.testing.check_grads(ad.sin, (X,), order=1, device=level_with("sin", record))


def test_a_wrong_third_derivative_needs_order_three() -> None:
    def rule(B: Any, g: Any, x: Any) -> Any:
        return B.multiply(
            g, B.add(B.detach(B.cos(x)), B.multiply(B.detach(B.negative(B.sin(x))), B.subtract(x, B.detach(x))))
        )

    record = Elementwise(x=rule)
    ad.testing.check_grads(ad.sin, (X,), order=2, device=level_with("sin", record))
    assert fails(ad.sin, (X,), "sin", record, order=3).startswith("order 3, ")


@pytest.mark.parametrize("place", [(0, 0), (1, 2), (3, 1)])
def test_one_wrong_entry_is_named(place: tuple[int, int]) -> None:
    def rule(B: Any, g: Any, x: Any) -> Any:
        right = B.multiply(g, B.cos(x))
        wrong = B.multiply(B.index(right, key=place), 1.001)
        return B.index_set(right, wrong, key=place)

    x = np.linspace(-1, 1, 12).reshape(4, 3)
    message = fails(lambda x: ad.sin(x), (x,), "sin", Elementwise(x=rule))
    assert f"worst: argument 0 at {place}: gradient " in message


def test_a_wrong_argument_among_pytrees_is_named() -> None:
    record = Elementwise(x=lambda B, g, x: B.multiply(g, 0.0))
    args = ({"a": X, "b": [X + 1, {"c": X + 2}]}, 3)
    message = fails(lambda tree, n: tree["a"] * n + tree["b"][0] + tree["b"][1]["c"].sin(), args, "sin", record)
    assert "worst: argument 2 at " in message


def test_a_wrong_result_among_several() -> None:
    record = Elementwise(x=lambda B, g, x: B.multiply(g, 0.0))
    assert "order 1" in fails(lambda x: (x * 2, {"s": x.sin()}), (X,), "sin", record)


def test_a_wrong_dtype() -> None:
    record = Elementwise(x=lambda B, g, x: B.astype(B.multiply(g, B.cos(x)), dtype=ad.float32))
    message = fails(ad.sin, (X,), "sin", record)
    assert "float32" in message
    assert "float64" in message


def test_a_wrong_shape() -> None:
    record = Elementwise(x=lambda B, g, x: B.index(B.multiply(g, B.cos(x)), key=(slice(0, 2, 1),)))
    message = fails(ad.sin, (X,), "sin", record)
    assert "'sin'" in message
    assert "(3,)" in message


def test_a_missing_conjugate() -> None:
    """The gradient is conjugate to what the rules give; a rule that conjugates by itself is wrong."""
    record = Elementwise(x=lambda B, g, out: B.multiply(g, B.conj(out)))
    message = fails(ad.exp, (Z,), "exp", record)
    assert re.search(r"worst: argument 0 at \(\d,\)(, imaginary part)?: ", message)
    assert "order 1" in fails(ad.conj, (Z,), "conj", Linear(x=lambda B, g: g))


def test_a_wrong_imaginary_part_is_named() -> None:
    record = Linear(x=lambda B, g, x_dtype: B.multiply(B.astype(g, dtype=x_dtype), 1j))
    assert "imaginary part" in fails(ad.imag, (Z,), "imag", record)


def test_a_rule_that_gives_nan() -> None:
    record = Elementwise(x=lambda B, g, x: B.multiply(g, float("nan")))
    assert "nan" in fails(ad.sin, (X,), "sin", record)


def test_a_cut_path() -> None:
    with pytest.raises(errors.CheckError, match="order 1"):
        ad.testing.check_grads(lambda x: x * x.detach(), (X,))


def test_a_joint_pullback() -> None:
    def swapped(B: Any, g: Any, wanted: Any, xs_shape: Any, axis: int) -> Any:
        n = xs_shape[0][axis]
        parts = [B.index(g, key=(slice(n, 2 * n, 1),)), B.index(g, key=(slice(0, n, 1),))]
        return tuple(parts[i] for i in wanted)

    record = Linear(pullback=swapped)
    assert "order 1" in fails(lambda x, y: ad.concat([x, y]), (X, X + 1), "concat", record)


def test_custom_records() -> None:
    record = Custom(x=lambda B, g, out: B.matmul(out, g))
    assert "order 1" in fails(ad.linalg.inv, (np.array([[2.0, 1.0], [0.5, 3.0]]),), "inv", record)


def test_the_right_rules_pass_up_to_order_four() -> None:
    ad.testing.check_grads(lambda x: (x * x.sin()).exp() / (1 + x * x), (X,), order=3)
    ad.testing.check_grads(lambda x: x**5 - x.exp(), (np.array(0.7),), order=4, rtol=1e-4)


def test_large_and_small_derivatives_pass() -> None:
    ad.testing.check_grads(lambda x: 1e6 * x.sin(), (X,))
    ad.testing.check_grads(lambda x: (50 * x).sin(), (X,))
    ad.testing.check_grads(lambda x: x.exp(), (np.array([-20.0, 5.0, 10.0]),))


def test_arguments_of_other_dtypes_are_passed_as_they_are() -> None:
    def f(x: Any, n: int, flags: Any, narrow: Any) -> Any:
        assert isinstance(n, int)
        assert isinstance(flags, np.ndarray)
        assert narrow.dtype == np.float32
        return ad.where(ad.asarray(flags, device=x.device), x * n, 0.0)

    ad.testing.check_grads(f, (X, 3, np.array([True, False, True]), np.ones(3, "f4")))


def test_a_single_argument_needs_no_tuple_and_tensors_are_taken() -> None:
    ad.testing.check_grads(ad.sin, X)
    ad.testing.check_grads(ad.sin, ad.tensor(X).require_grad())
    ad.testing.check_grads(lambda x: x * 1.0, (2.5,))


def test_results_that_depend_on_nothing_have_zero_derivatives() -> None:
    ad.testing.check_grads(lambda x: ad.ones(3, dtype=ad.float64, device=x.device), (X,))
    ad.testing.check_grads(lambda x: (x.sin(), x > 0), (X,))


def test_misuse_is_explained() -> None:
    with pytest.raises(errors.DtypeError, match="float64 or complex128"):
        ad.testing.check_grads(ad.sin, (np.ones(3, "f4"),))
    with pytest.raises(errors.CheckError, match="f returns tensors; received float"):
        ad.testing.check_grads(lambda x: 1.0, (X,))


def test_the_arguments_are_not_changed() -> None:
    x = X.copy()
    ad.testing.check_grads(lambda x: x * x, (x,))
    assert x.tolist() == X.tolist()


def test_other_base_backends() -> None:
    ad.testing.check_grads(ad.sin, (X,), device=ad.Reference())
    with pytest.raises(errors.CheckError):
        ad.testing.check_grads(lambda x: x * x.detach(), (X,), device=ad.Reference())


def test_numbers_of_python_are_arguments() -> None:
    ad.testing.check_grads(lambda x, z: (x * z).real, (0.5, 1 + 2j))
    with pytest.raises(ad.errors.CheckError, match="order 1"):
        ad.testing.check_grads(lambda z: z * ad.stop_gradient(z).conj(), (1 + 2j,))


@dataclasses.dataclass
class Pair:
    x: Any
    y: Any


def test_dataclasses_and_none_are_trees() -> None:
    ad.testing.check_grads(lambda p, none: Pair(p.x * p.y["a"], none), (Pair(X, {"a": X}), None))
    with pytest.raises(errors.CheckError, match="order 1, reverse"):
        ad.testing.check_grads(lambda p: p.x.detach() * p.y, (Pair(X, X),))


@pytest.mark.parametrize("f", [lambda x: None, lambda x: []])
def test_a_check_of_nothing_is_none(f: Any) -> None:
    for modes in (("reverse",), ("forward",), ("batched",)):
        with pytest.raises(errors.CheckError, match=r"f returns tensors; received (None|\[\])"):
            ad.testing.check_grads(f, (X,), modes=modes)


@pytest.mark.parametrize(
    ("f", "options", "match"),
    [
        (3, {}, "expected a function, received 3"),
        (ad.sin, {"rtol": -1}, "rtol is a number of zero or more, received -1"),
        (ad.sin, {"atol": "a"}, "atol is a number of zero or more, received 'a'"),
        (ad.sin, {"atol": float("nan")}, "received nan"),
    ],
)
def test_wrong_arguments(f: Any, options: Any, match: str) -> None:
    with pytest.raises(errors.ArgumentError, match=match):
        ad.testing.check_grads(f, (X,), **options)


# --- the report ---


def test_a_report_has_every_way_and_no_error_above_rounding() -> None:
    report = ad.testing.grads_report(lambda x, z: (ad.sin(x) / x, z * x[1:]), (X, Z))
    ways = [row.path for row in report.comparisons]
    one = [("reverse",), ("forward",)]
    assert sorted(ways) == sorted([*one, *[(first, second) for (first,) in one for (second,) in one]])
    assert report.ok
    assert report.notes == []
    for row in report.comparisons:
        assert row.agrees
        assert abs(row.derivative - row.differences) <= 1e-9
        steps = dict(row.errors)
        assert min(steps.values()) < 1e-9
    text = str(report).splitlines()
    assert text[:2] == ["Derivatives of <lambda>: as differences give them",
                        "at float64 of shape (3,), complex128 of shape (2,)"]  # fmt: skip
    assert len(text) == 3 + len(ways)


def test_errors_of_differences_fall_with_the_fourth_power_of_their_step() -> None:
    (row,) = ad.testing.grads_report(lambda x: ad.exp(3 * x), (X,), order=1, modes=("forward",)).comparisons
    (large, first), (small, second) = [(h, e) for h, e in row.errors if h in (10.0**-1, 10.0**-2)]
    assert 3.9 < np.log(first / second) / np.log(large / small) < 4.1


def test_a_report_goes_on_after_a_wrong_derivative_and_says_what_check_grads_raises() -> None:
    wrong = level_with("sin", Elementwise(x=lambda B, g, x: B.multiply(g, B.multiply(B.cos(x), 1.01))))
    report = ad.testing.grads_report(ad.sin, (X,), device=wrong)
    with pytest.raises(errors.CheckError) as caught:
        ad.testing.check_grads(ad.sin, (X,), device=wrong)
    assert not report.ok
    assert len(report.comparisons) == 6
    found = [row for row in report.comparisons if not row.agrees]
    assert found[0].path == ("reverse",)
    assert f"{found[0].worst}" in str(caught.value)
    assert f"{found[0].derivative:.10g}, differences give {found[0].differences:.10g}" in str(caught.value)
    errors_seen = [e for _, e in found[0].errors]
    np.testing.assert_allclose(errors_seen, abs(found[0].derivative - found[0].differences), rtol=1e-2)
    assert "WRONG" in str(report)
    assert found[0].worst in report._repr_html_()


def test_what_cannot_be_compared_is_a_problem() -> None:
    short = ad.custom_vjp(ad.sin)
    short.defvjp(lambda x: (ad.sin(x), x), lambda x, g: ((g * ad.cos(x))[:2],))
    for f, modes in ((short, ("reverse",)), (lambda x: x.sum() if x.is_tracked() else x.sum() * 2, ("batched",))):
        report = ad.testing.grads_report(f, (X,), modes=modes)
        with pytest.raises(errors.CheckError) as caught:
            ad.testing.check_grads(f, (X,), modes=modes)
        assert not report.ok
        assert report.problems == [str(caught.value)]
    report = ad.testing.grads_report(lambda x: x * np.inf, (X,), order=1)
    assert not any([row.agrees for row in report.comparisons])


def test_the_page_of_a_report() -> None:
    right = ad.testing.grads_report(ad.sin, (X,), order=1)
    wrong = ad.testing.grads_report(
        ad.sin, (X,), order=1, device=level_with("sin", Elementwise(x=lambda B, g, x: B.multiply(g, 2)))
    )
    nothing = ad.testing.grads_report(lambda x: x * np.inf, (X,), order=1)
    for report, dashed in ((right, 0), (wrong, 1), (nothing, 2)):
        drawing = ad.draw(report)
        assert drawing.svg.count("<polyline") == len(report.comparisons)
        assert drawing.svg.count(": wrong</text>") == dashed
        assert drawing.svg in drawing.page
        assert "http" not in drawing.page.replace("http://www.w3.org/2000/svg", "")
        for row in report.comparisons:
            assert row.cells[2] in drawing.page
