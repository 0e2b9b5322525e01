"""How functions read their arguments: what is taken, in which form, and what the errors say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.functions import arguments

TAKEN: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (arguments.as_integer, (np.int8(3), "f", "n"), 3),
    (arguments.as_integer, (0, "f", "n", 0), 0),
    (arguments.integers, (5, "f", "sizes"), (5,)),
    (arguments.integers, (np.array([1, 2]), "f", "sizes"), (1, 2)),
    (arguments.as_number, (np.float32(0.5), "f", "p"), 0.5),
    (arguments.as_positive, (2, "f", "p"), 2),
    (arguments.as_flag, (np.True_, "f"), True),
    (arguments.as_choice, ("b", "f", "mode", ("a", "b")), "b"),
    (arguments.as_shape, ((2, np.int64(0)), "f"), (2, 0)),
    (arguments.sizes, (3, 2, "f", "kernel", 1), (3, 3)),
    (arguments.positive, (1, "f", "groups"), 1),
    (arguments.as_axis, (-1, 3, "f"), 2),
    (arguments.as_axes, ((2, -3), 3, "f"), (0, 2)),
    (arguments.as_axes, (None, 2, "f"), (0, 1)),
    (arguments.axes_in_order, ((2, -3), 3, "f"), (2, 0)),
    (arguments.axes_in_order, (np.int64(-1), 3, "f"), (2,)),
    (arguments.axes_in_order, (None, 2, "f"), (0, 1)),
    (arguments.as_choice, (None, "f", "order", ("C", None)), None),
    (arguments.is_integer, (np.int8(3),), True),
    (arguments.is_integer, (True,), False),
    (arguments.is_number, (np.float32(3),), True),
    (arguments.is_number, (True,), False),
    (arguments.is_number, (1j,), False),
    (arguments.is_array, (np.str_("a"),), True),
    (arguments.is_numeric, (np.str_("a"),), False),
    (arguments.is_numeric, (1.0,), False),
    (arguments.is_value, (1j,), True),
    (arguments.is_value, (np.str_("a"),), False),
    (arguments.is_value, ("a",), False),
    (arguments.kind_of, (np.ones(2),), "an array of float64"),
    (arguments.kind_of, ([1.0],), "list"),
]

REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (arguments.as_integer, (True, "f", "n"), errors.ArgumentTypeError, "f: n is an integer, received True"),
    (arguments.as_integer, (1.0, "f", "n"), errors.ArgumentTypeError, "f: n is an integer, received 1.0"),
    (arguments.as_integer, (-1, "f", "n", 0), errors.ArgumentError, "f: n is a non-negative integer, received -1"),
    (arguments.as_integer, (0, "f", "n", 1), errors.ArgumentError, "f: n is a positive integer, received 0"),
    (arguments.integers, ("12", "f", "sizes"), errors.ArgumentTypeError, "f: sizes are integers; received '12'"),
    (arguments.integers, ((1, True), "f", "sizes"), errors.ArgumentTypeError, "sizes are integers"),
    (arguments.as_number, ("1", "f", "p"), errors.ArgumentTypeError, "f: p is a number, received '1'"),
    (arguments.as_number, (True, "f", "p"), errors.ArgumentTypeError, "f: p is a number, received True"),
    (arguments.as_positive, (True, "f", "p"), errors.ArgumentTypeError, "f: p is a positive number, received True"),
    (arguments.as_positive, (0, "f", "p"), errors.ArgumentError, "f: p is a positive number, received 0"),
    (arguments.as_positive, (np.nan, "f", "p"), errors.ArgumentError, "f: p is a positive number, received nan"),
    (arguments.as_flag, ("yes", "f", "stable"), errors.ArgumentTypeError, "f: stable is True or False, received 'yes'"),
    (arguments.as_choice, ("d", "f", "mode", tuple("abc")), errors.ArgumentError,
        "f: mode is 'a', 'b' or 'c', received 'd'"),
    (arguments.as_choice, (np.ones(2), "f", "mode", ("a", "b")), errors.ArgumentError,
        "'a' or 'b', received <ndarray"),
    (arguments.as_choice, ("d", "f", "mode", ("a",)), errors.ArgumentError, "f: mode is 'a', received 'd'"),
    (arguments.check_callable, ("f", 3, "solver"), errors.ArgumentTypeError, "f: solver is a function, received 3"),
    (arguments.check_callable, ("f", 3), errors.ArgumentTypeError, "f: expected a function, received 3"),
    (arguments.check_tensor, ("f", 3), errors.ArgumentTypeError, "f: expected a tensor, received 3"),
    (arguments.as_shape, ((2, -1), "f"), errors.ShapeError, "f: sizes are not negative; received (2, -1)"),
    (arguments.sizes, ((1, 2, 3), 2, "f", "kernel", 1), errors.ArgumentError,
        "f: kernel is an integer of at least 1 or 2 of them, received (1, 2, 3)"),
    (arguments.as_axis, (3, 3, "f"), errors.AxisError, "f: axis 3 is out of range for a tensor of 3 axes"),
    (arguments.as_axis, (True, 3, "f"), errors.ArgumentTypeError, "f: an axis is an integer, received True"),
    (arguments.axes_in_order, ((0, -3), 3, "f"), errors.AxisError, "f: axis (0, -3) names an axis twice"),
    (arguments.as_axes, ((0, -3), 3, "f"), errors.AxisError, "f: axis (0, -3) names an axis twice"),
    (arguments.real, (1j, "f"), errors.DtypeError, "f: expected real values, received complex"),
    (arguments.as_ordered, ([1j], "f"), errors.DtypeError, "f: complex numbers have no order, received complex"),
    (arguments.square, (np.ones((2, 3)), "f"), errors.NotSquareError, "f: expected square matrices"),
    (arguments.matrices_of, (np.ones(3), "f"), errors.ShapeError, "f: expected matrices, shape (..., m, n)"),
    (arguments.as_parameter, (None, "f", "rate"), errors.ArgumentTypeError, "f: rate is a number or a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "given", "wanted"), TAKEN)
def test_what_is_taken(check: Callable[..., Any], given: tuple[Any, ...], wanted: Any) -> None:
    found = check(*given)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(("check", "given", "kind", "said"), REFUSED)
def test_what_is_refused(check: Callable[..., Any], given: tuple[Any, ...], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        check(*given)
    assert type(caught.value) is kind
    assert said in str(caught.value)


def test_a_number_that_may_be_zero() -> None:
    assert arguments.as_positive(0, "f", "p", zero=True) == 0
    with pytest.raises(errors.ArgumentError, match="f: p is a number of zero or more, received -1"):
        arguments.as_positive(-1, "f", "p", zero=True)


def test_arguments_that_become_tensors() -> None:
    x = ad.tensor([1, 2])
    assert arguments.real(x, "f").dtype is ad.float32
    assert arguments.as_ordered(x, "f") is x
    tolerance = arguments.relative(ad.tensor([0.1, 0.2], dtype=ad.float64), ad.ones((2, 3, 4)), "f")
    assert (tolerance.shape, tolerance.dtype) == ((2, 1, 1), ad.float32)
    assert arguments.relative(None, ad.ones((2, 3, 4)), "f") == 4 * np.finfo(np.float32).eps
