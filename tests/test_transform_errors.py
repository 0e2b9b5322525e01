"""What transforms refuse: the error's type, that it says what and where, and that nothing was changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import devices, errors

X = np.array([1.0, 2.0, 3.0])
M = np.ones((2, 3))
I = np.arange(3)
W = {"w": X, "b": [X, {"n": np.array(["a"])}]}


@dataclasses.dataclass
class Layer:
    weight: Any
    name: str = "first"


def square(x: Any) -> Any:
    return x * x


def total(x: Any) -> Any:
    return (x * x).sum()


def product(x: Any, y: Any = 1.0, *rest: Any, z: Any = 1.0) -> Any:
    return (x * y * z).sum()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert devices.current_level() is None
    assert ad.default_device() is ad.Autodiff(ad.NumPy())
    np.testing.assert_array_equal(X, [1, 2, 3])


# the call, the error, and what it says
Wrong = tuple[Callable[[], Any], type[Exception], str]

CALLABLE: dict[str, Wrong] = {
    name: (call, errors.ArgumentTypeError, rf"{name}: expected a function, received 3")
    for name, call in {
        "grad": lambda: ad.grad(3),
        "value_and_grad": lambda: ad.value_and_grad(3),
        "jacobian": lambda: ad.jacobian(3),
        "hessian": lambda: ad.hessian(3),
        "vmap": lambda: ad.vmap(3),
        "vjp": lambda: ad.vjp(3, X),
        "jvp": lambda: ad.jvp(3, (X,), (X,)),
        "linearize": lambda: ad.linearize(3, X),
        "linear_transpose": lambda: ad.linear_transpose(3, X),
        "hvp": lambda: ad.hvp(3, (X,), (X,)),
        "checkpoint": lambda: ad.checkpoint(3),
    }.items()
}

ARGNUMS: dict[str, Wrong] = {
    "too large": (lambda: ad.grad(product, 2)(X, X), errors.ArgumentError, "argnums is 2, but the call has 2 pos"),
    "too small": (lambda: ad.grad(product, -3)(X, X), errors.ArgumentError, "argnums is -3"),
    "no arguments": (lambda: ad.grad(product)(), errors.ArgumentError, "0 positional"),
    "by keyword": (lambda: ad.grad(product, 1)(X, y=X), errors.ArgumentError, "1 positional"),
    "twice": (lambda: ad.grad(product, (0, -2))(X, X), errors.ArgumentError, r"\(0, -2\) names an argument twice"),
    "twice by name": (lambda: ad.grad(product, (0, "x"))(X, X), errors.ArgumentError, "twice"),
    "none": (lambda: ad.grad(product, ())(X), errors.ArgumentError, "nothing to differentiate by"),
    "float": (lambda: ad.grad(product, 0.0)(X), errors.ArgumentTypeError, "received 0.0; arguments are for"),
    "None": (lambda: ad.grad(product, None)(X), errors.ArgumentTypeError, "received None"),
    "truth": (lambda: ad.grad(product, True)(X, X), errors.ArgumentTypeError, "received True"),
    "the argument": (lambda: ad.grad(product, X), errors.ArgumentTypeError, r"received .*: grad\(f\)\(x\)"),
    "the argument, of rows": (lambda: ad.jacobian(product, X), errors.ArgumentTypeError, r"jacobian\(f\)\(x\)"),
    "the argument, of a batch": (lambda: ad.vmap(product, X), errors.ArgumentTypeError, r"vmap\(f\)\(x\)"),
    "mixed": (lambda: ad.grad(product, (0, 1.5))(X), errors.ArgumentTypeError, "1.5"),
    "unknown name": (lambda: ad.grad(product, "q")(X), errors.ArgumentError, r"'q', which is .* none of \['x', 'y'\]"),
    "rest": (lambda: ad.grad(product, "rest")(X, X, X), errors.ArgumentError, "'rest'"),
    "default": (lambda: ad.grad(product, "y")(X), errors.ArgumentError, "'y'.*no 'y' by name"),
    "unnamed": (lambda: ad.grad(ad.nn.relu, "q")(X), errors.ArgumentError, "'q'"),
    "jacobian": (lambda: ad.jacobian(product, 5)(X), errors.ArgumentError, "jacobian: argnums is 5"),
    "hessian": (lambda: ad.hessian(product, 5)(X), errors.ArgumentError, "argnums is 5"),
    "vjp of nothing": (lambda: ad.vjp(lambda: 1.0), errors.ArgumentError, "vjp: there is nothing"),
    "jvp of nothing": (lambda: ad.jvp(lambda: 1.0, (), ()), errors.ArgumentError, "jvp: there is nothing"),
    "hvp of a complex result": (
        lambda: ad.hvp(lambda x: (x * 1j).sum(), (X,), (X,)),
        errors.DtypeError,
        "hvp: the function gives complex128; expected a real floating result; take its real part$",
    ),
    "cotangents of a transpose": (
        lambda: ad.linear_transpose(lambda x: 2 * x, X)(X[:1]),
        errors.ShapeError,
        r"linear_transpose: the cotangent has shape \(1,\)",
    ),
    "hvp of nothing": (lambda: ad.hvp(lambda: 1.0, (), ()), errors.ArgumentError, "there is nothing"),
    "linearize of nothing": (lambda: ad.linearize(lambda: 1.0), errors.ArgumentError, "linearize: there is nothing"),
}

# arguments without derivatives: every transform names where they stand
BAD_LEAVES: dict[str, tuple[Any, str]] = {
    "integers": (I, r"argument 0 is int64, which has no derivatives; use astype\(ad.float32\)"),
    "booleans": (X > 2, "argument 0 is bool"),
    "integer": (3, "argument 0 is int 3, not an array of real or complex floating dtype; write it as 3.0$"),
    "text": ("abc", "argument 0 is str 'abc'"),
    "texts": (np.array(["a"]), "argument 0 is <U1, which has no derivatives"),
    "objects": (np.array([None]), "argument 0 is object"),
    "in a tree": (W, r"argument 0\['b'\]\[1\]\['n'\] is <U1"),
    "in a list": ([X, np.array([None])], r"argument 0\[1\] is object"),
    "integers alone": ([I, {"n": 3}], r"argument 0\[0\] is int64"),
    "in a dataclass": (
        Layer(X),
        r"argument 0.name is str 'first', .*; make it another argument, or in a dataclass a field\(metadata=\{'static'",
    ),
    "tensor": (ad.arange(3), "argument 0 is int64"),
    "extended": (np.ones(2, np.longdouble), "argument 0 is an array that is no tensor: dtype"),
}
DIFFERENTIATE: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: ad.grad(lambda x: 1.0)(x),
    "value_and_grad": lambda x: ad.value_and_grad(lambda x: 1.0)(x),
    "vjp": lambda x: ad.vjp(lambda x: 1.0, x),
    "jvp": lambda x: ad.jvp(lambda x: 1.0, (x,), (x,)),
    "linearize": lambda x: ad.linearize(lambda x: 1.0, x),
    "linear_transpose": lambda x: ad.linear_transpose(lambda x: 1.0, x),
    "jacobian": lambda x: ad.jacobian(lambda x: 1.0)(x),
}


@pytest.mark.parametrize("bad", BAD_LEAVES)
@pytest.mark.parametrize("name", DIFFERENTIATE)
def test_arguments_without_derivatives(name: str, bad: str) -> None:
    x, message = BAD_LEAVES[bad]
    with pytest.raises(errors.DtypeError, match=f"^{name}: {message}"):
        DIFFERENTIATE[name](x)


def test_arguments_are_named_by_position_and_by_name() -> None:
    with pytest.raises(errors.DtypeError, match="^grad: argument 1 is int64"):
        ad.grad(product, 1)(X, I)
    with pytest.raises(errors.DtypeError, match=r"^grad: argument 1\[0\] is int64"):
        ad.grad(product, (0, -1))(X, [I])
    with pytest.raises(errors.DtypeError, match="^grad: argument z is int64"):
        ad.grad(product, "z")(X, z=I)
    with pytest.raises(errors.DtypeError, match=r"^grad: argument z\['k'\] is int64"):
        ad.grad(product, "z")(X, z={"k": I})


RESULTS: dict[str, Wrong] = {
    "vector": (lambda: ad.grad(square)(X), errors.ShapeError, r"grad: .* shape \(3,\).*ad.jacobian"),
    "of one": (lambda: ad.grad(square)(X[:1]), errors.ShapeError, r"shape \(1,\)"),
    "two": (lambda: ad.grad(lambda x: (x.sum(), x.sum()))(X), errors.ShapeError, "gives 2 results"),
    "none": (lambda: ad.grad(lambda x: None)(X), errors.ShapeError, "gives no results"),
    "empty": (lambda: ad.value_and_grad(lambda x: ())(X), errors.ShapeError, "value_and_grad: .* no results"),
    "integer": (lambda: ad.grad(lambda x: 3)(X), errors.DtypeError, "gives int64"),
    "truth": (lambda: ad.grad(lambda x: x.sum() > 0)(X), errors.DtypeError, "gives bool"),
    "complex": (lambda: ad.grad(lambda x: x.sum() * 1j)(X), errors.DtypeError, "complex128.*holomorphic=True"),
    "real": (
        lambda: ad.grad(lambda z: abs(z), holomorphic=True)(1j),
        errors.DtypeError,
        "gives float64; expected a complex result",
    ),
    "holomorphic of real": (
        lambda: ad.grad(square, holomorphic=True)(1.0),
        errors.DtypeError,
        "grad: argument 0 is float64, and holomorphic",
    ),
    "holomorphic jacobian of real": (
        lambda: ad.jacobian(square, holomorphic=True)({"x": X}),
        errors.DtypeError,
        r"jacobian: argument 0\['x'\] is float64, and holomorphic",
    ),
    "jacobian of complex": (
        lambda: ad.jacobian(square)([X, X * 1j]),
        errors.DtypeError,
        r"jacobian: argument 0\[1\] is complex128; pass holomorphic=True",
    ),
    "rows of complex": (
        lambda: ad.jacobian(lambda x: (x, x * 1j), mode="reverse")(X),
        errors.DtypeError,
        r"the function's result\[1\] is complex128; .*mode='forward'",
    ),
    "rows of integers": (
        lambda: ad.jacobian(lambda x: {"i": ad.arange(2)}, mode="reverse")(X),
        errors.DtypeError,
        r"the function's result\['i'\] is int64",
    ),
    "columns of integers": (
        lambda: ad.jacobian(lambda x: (x > 0).sum(), mode="forward")(X),
        errors.DtypeError,
        "the function's result is int64",
    ),
    "text": (lambda: ad.vjp(lambda x: (x, "a"), X), errors.ArgumentTypeError, r"vjp: .* result\[1\] is str"),
    "object": (lambda: ad.jvp(lambda x: object(), (X,), (X,)), errors.ArgumentTypeError, "result is object"),
    "array of objects": (
        lambda: ad.vmap(lambda x: np.array([None]))(X),
        errors.ArgumentTypeError,
        "result is an array of object",
    ),
    "no pair": (lambda: ad.grad(total, has_aux=True)(X), errors.ArgumentTypeError, "grad: with has_aux=True"),
    "no pair either": (
        lambda: ad.vjp(lambda x: [x, x], X, has_aux=True),
        errors.ArgumentTypeError,
        "vjp: with has_aux=True",
    ),
    "a triple": (lambda: ad.jacobian(lambda x: (x, x, x), has_aux=True)(X), errors.ArgumentTypeError, "jacobian: with"),
    "hvp": (lambda: ad.hvp(square, (X,), (X,)), errors.ShapeError, "one scalar"),
    "mode": (lambda: ad.jacobian(square, mode="sideways"), errors.ArgumentError, "'sideways'"),
    "no mode": (lambda: ad.jacobian(square, mode=None), errors.ArgumentError, "None"),
}

TANGENTS: dict[str, Wrong] = {
    "no tuples": (lambda: ad.jvp(square, X, X), errors.ArgumentTypeError, "jvp: primals and tangents are tuples"),
    "no tuple": (lambda: ad.hvp(total, (X,), X), errors.ArgumentTypeError, "hvp: primals and tangents are tuples"),
    "too few": (lambda: ad.jvp(product, (X, X), (X,)), errors.ArgumentError, r"jvp: .*nothing is at \[1\]"),
    "too many": (lambda: ad.jvp(square, (X,), (X, X)), errors.ArgumentError, r"jvp: .*nothing belongs at \[1\]"),
    "key": (
        lambda: ad.jvp(lambda d: d["w"], ({"w": X},), ({"v": X},)),
        errors.ArgumentError,
        r"jvp: the tangents do not have the structure of the primals, nothing is at \[0\]\['w'\]",
    ),
    "None": (lambda: ad.jvp(square, (X,), (None,)), errors.ArgumentError, r"jvp: .*\[0\]"),
    "shape": (
        lambda: ad.jvp(lambda d: d["w"], ({"w": X},), ({"w": M},)),
        errors.ShapeError,
        r"the tangent\[0\]\['w'\] has shape \(2, 3\), expected \(3,\)",
    ),
    "0-d": (lambda: ad.jvp(square, (X,), (1.0,)), errors.ShapeError, r"the tangent\[0\] has shape \(\)"),
    "text": (lambda: ad.jvp(square, (X,), ("a",)), errors.ArgumentTypeError, r"the tangent\[0\] is str"),
    "objects": (
        lambda: ad.jvp(square, (X,), (np.array([None] * 3),)),
        errors.ArgumentTypeError,
        r"the tangent\[0\] is an array of object",
    ),
    "complex": (lambda: ad.jvp(square, (X,), (X * 1j,)), errors.DtypeError, r"the tangent\[0\] is complex128"),
    "hvp": (lambda: ad.hvp(total, (X,), (X[:2],)), errors.ShapeError, r"the tangent\[0\] has shape \(2,\)"),
    "linear": (lambda: ad.linearize(square, X)[1](M), errors.ShapeError, r"the tangent\[0\] has shape \(2, 3\)"),
    "linear of two": (lambda: ad.linearize(square, X)[1](X, X), errors.ArgumentError, r"linearize: .*\[1\]"),
    "linear of none": (lambda: ad.linearize(square, X)[1](), errors.ArgumentError, r"linearize: .*\[0\]"),
    "cotangent": (lambda: ad.vjp(square, X)[1](M), errors.ShapeError, r"the cotangent has shape \(2, 3\)"),
    "cotangent's place": (
        lambda: ad.vjp(lambda x: {"a": x, "b": x[0]}, X)[1]({"a": X, "b": X}),
        errors.ShapeError,
        r"the pullback: the cotangent\['b'\] has shape \(3,\), expected \(\)",
    ),
    "cotangent's structure": (
        lambda: ad.vjp(square, X)[1]((X,)),
        errors.ArgumentError,
        r"the pullback: the cotangents do not have the structure of the result, it is no single leaf",
    ),
    "cotangent's key": (
        lambda: ad.vjp(lambda x: {"a": x, "b": x}, X)[1]({"a": X, "c": X}),
        errors.ArgumentError,
        r"the pullback: .*nothing is at \['b'\]",
    ),
    "complex cotangent": (lambda: ad.vjp(square, X)[1](X * 1j), errors.DtypeError, "the cotangent is complex128"),
    "text as cotangent": (lambda: ad.vjp(square, X)[1]("abc"), errors.ArgumentTypeError, "the cotangent is str"),
    "transpose": (
        lambda: ad.linear_transpose(lambda x: x[:2], X)(X),
        errors.ShapeError,
        r"the cotangent has shape \(3,\)",
    ),
    "not linear": (lambda: ad.linear_transpose(lambda x: x + 1, X), errors.ArgumentError, "not linear"),
}

AXES: dict[str, Wrong] = {
    "float": (lambda: ad.vmap(square, 1.0)(M), errors.ArgumentTypeError, "in_axes is an integer.*1.0"),
    "text": (lambda: ad.vmap(square, "0")(M), errors.ArgumentTypeError, "in_axes is an integer.*'0'"),
    "dictionary": (lambda: ad.vmap(square, {"x": 0})(M), errors.ArgumentTypeError, "in_axes"),
    "float in a tuple": (lambda: ad.vmap(square, (1.0,))(M), errors.ArgumentTypeError, "an axis in in_axes.*1.0"),
    "truth": (lambda: ad.vmap(square, True)(M), errors.ArgumentTypeError, "an axis in in_axes.*True"),
    "too few": (lambda: ad.vmap(product, (0,))(X, X), errors.ArgumentError, "1 entries for 2 arguments"),
    "too many": (lambda: ad.vmap(square, (0, 0))(X), errors.ArgumentError, "2 entries for 1 arguments"),
    "keys": (lambda: ad.vmap(total, ({"a": 0, "c": 0},))({"a": X, "b": X}), errors.ArgumentError, "'c'"),
    "lengths": (lambda: ad.vmap(total, ((0, 0, 0),))((X, X)), errors.ArgumentError, "does not fit the structure"),
    "too large": (
        lambda: ad.vmap(square, 2)(M),
        errors.AxisError,
        r"argument 0 has shape \(2, 3\), and in_axes says its axis 2",
    ),
    "too small": (lambda: ad.vmap(square, -3)(M), errors.AxisError, "its axis -3"),
    "0-d": (lambda: ad.vmap(square)(np.float64(1)), errors.AxisError, r"argument 0 has shape \(\)"),
    "in a tree": (
        lambda: ad.vmap(total, ({"a": 0, "b": 1},))({"a": X, "b": X}),
        errors.AxisError,
        r"argument 0\['b'\] has shape \(3,\)",
    ),
    "of a name": (lambda: ad.vmap(product)(X, z=np.float64(1)), errors.AxisError, r"argument z has shape \(\)"),
    "number": (lambda: ad.vmap(product)(X, 2.0), errors.ArgumentTypeError, "argument 1 is float 2.0"),
    "text argument": (lambda: ad.vmap(product)(X, "a"), errors.ArgumentTypeError, "argument 1 is str 'a'"),
    "sizes": (
        lambda: ad.vmap(product)(X, M),
        errors.ShapeError,
        "argument 1 has 2 examples along axis 0, and argument 0 has 3",
    ),
    "sizes in a tree": (
        lambda: ad.vmap(total)({"a": X, "b": [X, M]}),
        errors.ShapeError,
        r"argument 0\['b'\]\[1\] has 2 examples along axis 0, and argument 0\['a'\] has 3",
    ),
    "sizes by name": (
        lambda: ad.vmap(product)(X, z={"k": M}),
        errors.ShapeError,
        r"argument z\['k'\] has 2 examples along axis 0, and argument 0 has 3",
    ),
    "axis_size": (lambda: ad.vmap(square, axis_size=4)(X), errors.ShapeError, "argument 0 has 3.*axis_size says 4"),
    "negative": (lambda: ad.vmap(square, axis_size=-1), errors.ArgumentError, "-1"),
    "axis_size of text": (lambda: ad.vmap(square, axis_size="4"), errors.ArgumentTypeError, "'4'"),
    "no examples": (lambda: ad.vmap(square, None)(X), errors.ArgumentError, "axis_size"),
    "no arguments": (lambda: ad.vmap(lambda: 1.0)(), errors.ArgumentError, "axis_size"),
    "result differs": (
        lambda: ad.vmap(lambda x: {"a": 1.0, "b": x}, out_axes=None)(X),
        errors.ArgumentError,
        r"the result\['b'\] differs between examples",
    ),
    "out too large": (
        lambda: ad.vmap(lambda x: (x, x), out_axes=(0, 2))(M),
        errors.AxisError,
        r"the result\[1\] has 2 axes.*says 2",
    ),
    "out too small": (lambda: ad.vmap(square, out_axes=-3)(M), errors.AxisError, "says -3"),
    "out float": (lambda: ad.vmap(square, out_axes=0.0)(M), errors.ArgumentTypeError, "an axis in out_axes.*0.0"),
    "out structure": (lambda: ad.vmap(square, out_axes=(0, 0))(M), errors.ArgumentError, "out_axes .* does not fit"),
    "out keys": (
        lambda: ad.vmap(lambda x: {"a": x}, out_axes={"b": 0})(M),
        errors.ArgumentError,
        "out_axes .* does not fit",
    ),
    "randomness": (lambda: ad.vmap(square, randomness="some")(X), errors.ArgumentError, "'some'"),
    "drawn": (lambda: ad.vmap(lambda x: ad.random.uniform(2))(X), errors.ArgumentError, "randomness='split'"),
    "value": (lambda: ad.vmap(lambda x: x if x > 0 else -x)(X), errors.TrackedError, "differs between examples"),
    "mask": (lambda: ad.vmap(lambda x: x[x > 1])(M), errors.ShapeError, r"ad\.where"),
}

DEVICES: dict[str, Wrong] = {
    "apart": (
        lambda: ad.grad(product, (0, 1))(ad.ones(3, device="reference"), ad.ones(3)),
        errors.DeviceError,
        r"grad: the .* on reference and the .* on autodiff<numpy> do not meet.*to_device\('numpy'\)",
    ),
    "tangent apart": (
        lambda: ad.jvp(square, (ad.ones(3),), (ad.ones(3, device="reference"),)),
        errors.DeviceError,
        r"jvp: the .* on autodiff<numpy> and the .* on reference do not meet.*to_device\('reference'\)",
    ),
    "cotangent apart": (
        lambda: ad.vjp(square, X)[1](ad.ones(3, device="reference")),
        errors.DeviceError,
        "do not meet",
    ),
    "result apart": (
        lambda: ad.vjp(lambda x: ad.ones(3, device="reference"), ad.ones(3)),
        errors.DeviceError,
        "do not meet",
    ),
}


TABLES = {
    "callable": CALLABLE, "argnums": ARGNUMS, "results": RESULTS, "tangents": TANGENTS, "axes": AXES, "devices": DEVICES
}  # fmt: skip


@pytest.mark.parametrize(("table", "wrong"), [(table, wrong) for table in TABLES for wrong in TABLES[table]])
def test_wrong_input(table: str, wrong: str) -> None:
    call, error, message = TABLES[table][wrong]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, errors.AdjointError)


NAMES: dict[str, Callable[[], Any]] = {
    "hessian: argument 0 is int 3": lambda: ad.hessian(total)(3),
    "hessian: argument 0 is complex128": lambda: ad.hessian(total)(X * 1j),
    "hessian: the function's result is bool": lambda: ad.hessian(lambda x: x > 0)(2.0),
    "hessian: with has_aux=True": lambda: ad.hessian(total, has_aux=True)(X),
    "hessian: the function's result is str": lambda: ad.hessian(lambda x: "text")(X),
    "hvp: argument 0 is int 3": lambda: ad.hvp(total, (3,), (1.0,)),
    "hvp: the tangent": lambda: ad.hvp(total, (X,), (X[:2],)),
    "hvp: the function gives a result of shape": lambda: ad.hvp(square, (X,), (X,)),
    "hvp: there is nothing to differentiate by": lambda: ad.hvp(lambda: 1.0, (), ()),
    "minimize: the function gives bool": lambda: ad.implicit.minimize(lambda x: True, X),
    "vmap: randomness is": lambda: ad.vmap(square, randomness="some"),
}


@pytest.mark.parametrize("name", NAMES)
def test_errors_name_the_transform_that_was_called(name: str) -> None:
    with pytest.raises(errors.AdjointError) as caught:
        NAMES[name]()
    assert str(caught.value).startswith(name)


def test_a_pullback_goes_on_after_a_wrong_cotangent() -> None:
    _, pullback = ad.vjp(square, X)
    _, along = ad.linearize(square, X)
    for wrong in (M, "abc", (X,), X * 1j, None):
        for call in (pullback, along):
            with pytest.raises(errors.AdjointError):
                call(wrong)
    np.testing.assert_array_equal(pullback(np.ones(3))[0], 2 * X)
    np.testing.assert_array_equal(along(np.ones(3)), 2 * X)


def test_errors_of_the_function_are_its_own() -> None:
    """What goes wrong inside is what the same line says outside, and the arguments stay as they were."""
    x = ad.asarray(X, copy=True)

    def f(x: Any) -> Any:
        x[0] = 5.0
        return x @ ad.ones(4)

    with pytest.raises(errors.ShapeError, match="matmul"):
        ad.grad(f)(x)
    np.testing.assert_array_equal(x.numpy(), X)
