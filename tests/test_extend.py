"""Primitives of users: SciPy's functions and others, with every transform, on every leaf that can run them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from conftest import peer, pytest_runtest_call
from options import assert_same_under_options

import adjoint as ad
from adjoint.primitives import TABLE
from adjoint.rules import Custom, Linear

scipy_special = peer("scipy.special")


def bessel() -> tuple[Any, Any]:
    """J0 and J1: DLMF 10.6.2, J0' = -J1, and J1'(x) = J0(x) - J1(x) / x."""
    j1 = ad.primitive(
        "bessel_j1",
        scipy_special.j1,
        derivative={"x": lambda B, g, x, out: B.multiply(g, B.subtract(B.bessel_j0(x), B.divide(out, x)))},
    )
    j0 = ad.primitive(
        "bessel_j0", scipy_special.j0, derivative={"x": lambda B, g, x: B.negative(B.multiply(g, B.bessel_j1(x)))}
    )
    return j0, j1


def test_a_function_of_scipy() -> None:
    j0, j1 = bessel()
    x = np.array([[0.5, 1.0], [3.0, -2.0]])
    np.testing.assert_array_equal(j0(x).numpy(), scipy_special.j0(x))
    for f in (j0, j1):
        ad.testing.check_grads(f, (x,), order=3, modes=("reverse", "forward"))
        ad.testing.check_grads(f, (x,), modes=("batched",))
        assert_same_under_options(f, (x,))
    np.testing.assert_allclose(ad.hessian(lambda v: j0(v).sum())(x[0]), np.diag(-0.5 * (
        scipy_special.j0(x[0]) - scipy_special.jv(2, x[0])
    )))  # fmt: skip
    assert j0(np.array([1, 2])).dtype == ad.float32  # integers are made floating, as by our own functions
    assert j0.__name__ == "bessel_j0"
    assert "bessel_j0" in repr(j0)


def test_two_operands_broadcast() -> None:
    hypot = ad.primitive(
        "users_hypot",
        np.hypot,
        derivative={
            "x": lambda B, g, x, out: B.multiply(g, B.divide(x, out)),
            "y": lambda B, g, y, out: B.multiply(g, B.divide(y, out)),
        },
    )
    ad.testing.check_grads(hypot, (np.array([[1.0], [2.0]]), np.array([3.0, 0.5])))
    ad.testing.check_grads(hypot, (np.array([[1.0], [2.0]]), np.array([3.0, 0.5])), modes=("batched",))
    assert hypot(ad.tensor([3.0]), 4.0).tolist() == [5.0]


def test_a_reduction_with_parameters_a_pushforward_and_batching_from_its_kind() -> None:
    ptp = ad.primitive(
        "users_range",
        lambda x, *, axis: np.ptp(x, axis=axis),
        kind="reduction",
        shape=lambda shape, *, axis: tuple(n for i, n in enumerate(shape) if i not in axis),
        definition=lambda B, x, *, axis: B.subtract(
            B.max(x, axis=axis, keepdims=False), B.min(x, axis=axis, keepdims=False)
        ),
    )
    x = np.array([[1.0, 5.0, 2.0], [0.5, 0.25, 7.0]])
    for modes in (("reverse", "forward"), ("batched",)):
        ad.testing.check_grads(lambda v: ptp(v, axis=(1,)), (x,), modes=modes)
    import array_api_strict

    on_strict = ptp(ad.tensor(x, device=ad.ArrayAPI(array_api_strict)), axis=(1,))
    assert on_strict.tolist() == [4.0, 6.75]  # by its definition


def test_a_linear_primitive_with_a_batching_rule_of_its_own() -> None:
    def reverse(x: Any) -> Any:
        return x[::-1]

    made = ad.primitive(
        "users_reverse",
        reverse,
        kind="structural",
        shape=lambda shape: shape,
        derivative=Linear(x=lambda B, g: B.users_reverse(g)),
        batching=lambda B, primitive, values, flags, parameters: B.flip(values[0], axis=(1,)),
    )
    x = np.arange(3.0)
    ad.testing.check_grads(made, (x,))
    ad.testing.check_grads(made, (x,), modes=("batched",))
    np.testing.assert_array_equal(ad.vmap(made)(np.stack([x, -x])), [[2, 1, 0], [-2, -1, 0]])


def test_batching_without_an_axis_runs_one_example_after_the_other() -> None:
    keep = lambda shape: shape
    cumulate = ad.primitive("users_cumulate", lambda x: np.cumsum(x, axis=0), kind="structural", shape=keep)
    total = ad.primitive("users_total", lambda x: x.sum(), kind="reduction", shape=lambda shape: (),
                         derivative={"x": lambda B, g, x_shape: B.broadcast_to(g, shape=x_shape)})  # fmt: skip
    outer = ad.primitive("users_outer", np.multiply.outer, kind="contraction", operands="x y",
                         shape=lambda x, y: x + y)  # fmt: skip
    x = np.arange(6.0).reshape(2, 3)
    for leaf in ("numpy", "autodiff<numpy>"):
        rows = ad.tensor(x, device=leaf)
        assert ad.vmap(cumulate)(rows).tolist() == np.cumsum(x, axis=1).tolist()
        assert ad.vmap(total)(rows).tolist() == [3, 12]
        assert ad.vmap(outer, in_axes=(0, None))(rows, rows[1]).tolist() == np.einsum("bi,j", x, x[1]).tolist()
    np.testing.assert_array_equal(ad.vmap(ad.grad(lambda x: total(x * x)))(x), 2 * x)
    empty = ad.vmap(outer, in_axes=(0, None))(np.zeros((0, 2), np.float32), np.zeros(3, np.float32))
    assert (empty.shape, empty.dtype) == ((0, 2, 3), np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, (0, -1), None])
def test_batching_along_an_axis_however_it_is_given(axis: Any) -> None:
    def shape_of(shape: Any, *, axis: Any) -> Any:
        return np.sum(np.zeros(shape), axis=axis).shape

    def along(x: Any, *, axis: Any) -> Any:
        return np.asarray(np.sum(x, axis=axis))

    made = ad.primitive("users_along", along, kind="reduction", shape=shape_of)
    x = np.arange(24.0).reshape(2, 3, 4)
    found = ad.vmap(lambda x: made(x, axis=axis))(x)
    np.testing.assert_array_equal(found, [np.sum(example, axis=axis) for example in x])


def test_results_that_are_not_those_of_all_examples() -> None:
    size = ad.primitive("users_size", lambda x: np.asarray(np.linalg.norm(x)), kind="linear algebra",
                        shape=lambda shape: ())  # fmt: skip
    with pytest.raises(ad.errors.ShapeError, match=r"users_size: in a batch it gave shape \(\), expected \(2,\)"):
        ad.vmap(size)(np.ones((2, 3, 3)))


def test_custom_rules_say_their_pushforward() -> None:
    total = ad.primitive(
        "users_norm1",
        lambda x: np.abs(x).sum(),
        kind="reduction",
        shape=lambda shape: (),
        derivative={"x": lambda B, g, x: B.multiply(B.sign(x), g)},
        pushforward=lambda B, tangents, x: B.sum(B.multiply(B.sign(x), tangents[0]), axis=(0,), keepdims=False),
    )
    ad.testing.check_grads(total, (np.array([1.0, -2.0, 0.5]),))


def test_implementations_by_backend() -> None:
    twice = ad.primitive(
        "users_twice", {ad.NumPy: lambda x: x * 2, "reference": lambda x: None}, derivative=Linear(x=lambda B, g: g)
    )
    assert twice(ad.tensor([2.0], device="numpy")).tolist() == [4.0]
    only = ad.primitive("users_only", {"numpy": np.sin}, derivative={})
    with pytest.raises(ad.errors.UnsupportedPrimitiveError, match="reference cannot run the primitive 'users_only'"):
        only(ad.tensor([1.0], device="reference"))
    assert not only(ad.tensor([1.0]).require_grad()).is_tracked()  # its derivative is said to be zero


def test_a_name_of_ones_own_may_be_declared_anew() -> None:
    first = ad.primitive("users_again", np.sin)
    x = ad.tensor([0.5]).require_grad()
    assert first(x).tolist() == np.sin(np.float32([0.5])).tolist()
    second = ad.primitive("users_again", np.cos, derivative={"x": lambda B, g, x: B.negative(B.multiply(g, B.sin(x)))})
    assert second(x).tolist() == np.cos(np.float32([0.5])).tolist()
    assert second(x).backward()[x].tolist() == (-np.sin(np.float32([0.5]))).tolist()
    with pytest.raises(ad.errors.ArgumentError, match="^users_again: this function is of an earlier declaration"):
        first(x)
    pending = second(x)
    del second  # rules and graphs find it by its name
    assert pending.backward()[x].tolist() == (-np.sin(np.float32([0.5]))).tolist()
    assert ad.Autodiff(ad.NumPy()).users_again(np.float64(0.0)).value == 1.0


def test_a_graph_keeps_the_rules_that_it_was_made_with() -> None:
    x = ad.tensor([0.5]).require_grad()
    twice = ad.primitive("users_anew", lambda x: 2 * x, derivative={"x": lambda B, g: B.multiply(g, 2.0)})
    before = twice(x)
    thrice = ad.primitive("users_anew", lambda x: 3 * x, derivative={"x": lambda B, g: B.multiply(g, 3.0)})
    assert (before.backward()[x].item(), thrice(x).backward()[x].item()) == (2.0, 3.0)


def test_names_that_look_like_something_else() -> None:
    into = ad.primitive("users_into_bins", np.cbrt)
    assert into(ad.tensor([8.0])).tolist() == [2.0]
    rules = {
        "x": lambda B, g, y: B.sum(B.multiply(g, y), axis=(1,), keepdims=False),
        "y": lambda B, g, x: B.sum(B.multiply(g, B.expand_dims(x, axis=(1,))), axis=(0,), keepdims=False),
    }
    outer = ad.primitive(
        "outer",
        lambda x, y: np.multiply.outer(x, y),
        kind="contraction",
        shape=lambda x, y: (*x, *y),
        derivative=rules,
    )
    y = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ad.grad(lambda x: outer(x, y).sum())(np.ones(2)), [6.0, 6.0])
    default = ad.primitive("default", np.cbrt, derivative={"x": lambda B, g: g})
    assert ad.grad(default)(8.0) == 1.0


@pytest.mark.parametrize("name", "implement inner wrap pull size order name seed ended".split())
def test_a_name_of_a_method_is_no_clash(name: str) -> None:
    """The method stays what it is, and the primitive is found by its name in brackets."""
    root = ad.primitive(name, np.cbrt, derivative={"x": lambda B, g, out: B.divide(g, B.multiply(B.square(out), 3.0))})
    twice = ad.primitive("users_twice", lambda x: 2 * np.cbrt(x), definition=lambda B, x: B.multiply(B[name](x), 2.0))
    x = np.array([8.0, 27.0])
    for f, factor in ((root, 1), (twice, 2)):
        np.testing.assert_allclose(f(ad.tensor(x)).numpy(), factor * np.cbrt(x))
        np.testing.assert_allclose(ad.vmap(ad.grad(f))(x), factor / 3 / np.cbrt(x) ** 2)
        ad.testing.check_grads(f, (x,))
    for device in (ad.Autodiff(ad.NumPy()), ad.Checked(ad.NumPy()), ad.Batched(ad.NumPy())):
        assert device.inner is ad.NumPy()
        assert isinstance(device.name, str)
        device.seed(3)
    assert ad.grad(lambda x: x * x)(2.0) == 4.0


@pytest.mark.parametrize(
    ("error", "match", "name", "options"),
    [
        ("ArgumentError", "taken", "sin", {}),
        ("ArgumentTypeError", "operands are names with spaces between", "users_wrong", {"operands": ("x", "y")}),
        ("ArgumentTypeError", "parameters are names with spaces between", "users_wrong", {"parameters": 3}),
        ("ArgumentError", "identifier", "two words", {}),
        ("ArgumentError", "identifier", 3, {}),
        ("ArgumentError", "a kind is one of", "users_wrong", {"kind": "odd"}),
        ("ArgumentError", "shape=", "users_wrong", {"kind": "reduction"}),
        ("ArgumentError", r"\['z'\]", "users_wrong", {"derivative": {"z": lambda B, g: g}}),
        ("ArgumentError", "'nothing'", "users_wrong", {"derivative": {"x": lambda B, g, nothing: g}}),
        ("ArgumentError", r"rule\(B, g, \.\.\.\).*rule\(B\)$", "users_wrong", {"derivative": {"x": lambda B: B}}),
        ("ArgumentError", r"this one is rule\(B, \*, g\)", "users_wrong", {"derivative": {"x": lambda B, *, g: g}}),
        (
            "ArgumentError",
            r"the pullback is called as rule\(B, g, wanted, \.\.\.\)",
            "users_wrong",
            {"derivative": Custom(pullback=lambda B, g: g)},
        ),
        (
            "ArgumentError",
            r"the pushforward is called as rule\(B, tangents, \.\.\.\)",
            "users_wrong",
            {"derivative": {"x": lambda B, g: g}, "pushforward": lambda B: B},
        ),
        ("ArgumentTypeError", "derivative is a mapping", "users_wrong", {"derivative": 3}),
        ("ArgumentTypeError", "a rule is a Python function.*received 3", "users_wrong", {"derivative": {"x": 3}}),
        ("ArgumentTypeError", "shape is a function, received 3", "users_wrong", {"shape": 3}),
        ("ArgumentTypeError", "dtype is a function", "users_wrong", {"dtype": "float32"}),
        ("ArgumentTypeError", "definition is a function", "users_wrong", {"definition": 3}),
        ("ArgumentTypeError", "batching is a function", "users_wrong", {"batching": "loop"}),
        ("ArgumentTypeError", r"operands are names.*received \['x'\]", "users_wrong", {"operands": ["x"]}),
        ("ArgumentTypeError", "parameters are names", "users_wrong", {"parameters": 3}),
    ],
)
def test_wrong_declarations(error: str, match: str, name: Any, options: Any) -> None:
    before = set(TABLE)
    with pytest.raises(getattr(ad.errors, error), match=match):
        ad.primitive(name, np.sin, **options)
    assert set(TABLE) == before


def test_wrong_implementations_and_calls() -> None:
    with pytest.raises(ad.errors.ArgumentTypeError, match="implementations"):
        ad.primitive("users_wrong", {3: np.sin})  # type: ignore[dict-item]
    with pytest.raises(ad.errors.ArgumentError, match="operands="):
        ad.primitive("users_wrong", min)
    f = ad.primitive("users_f", lambda x, *, power: x**power, operands="x", parameters="power")
    assert f(ad.tensor([2.0]), power=3).tolist() == [8.0]
    with pytest.raises(ad.errors.ArgumentTypeError, match="parameters"):
        f(ad.tensor([2.0]))
    with pytest.raises(ad.errors.ArgumentTypeError, match="operands"):
        f(power=2)
    with pytest.raises(ad.errors.ShapeError):
        ad.primitive("users_add", np.add)(ad.ones(2), ad.ones(3))


WRONG_RULES = {
    "rule": ({"x": lambda B, g: B.multiply(g, 2j)}, "DtypeError", "the rule of x gave complex128.*is float64"),
    "pullback": (Custom(pullback=lambda B, g, wanted: (B.multiply(g, 2j),)), "DtypeError", "take the real part"),
    "number": ({"x": lambda B, g: 2.0}, "ArgumentTypeError", r"an array of B, .* gave 2\.0"),
    "tuple": ({"x": lambda B, g: (g,)}, "ArgumentTypeError", "the rule of x gives an array"),
    "no tuple": (Custom(pullback=lambda B, g, wanted: g), "ArgumentTypeError", "a cotangent for each.*here 1"),
}


@pytest.mark.parametrize("case", WRONG_RULES)
@pytest.mark.parametrize("transform", [lambda f: f, ad.vmap, lambda f: ad.grad(lambda x: f(x) * x)])
def test_rules_that_give_what_no_operand_can_have(case: str, transform: Any) -> None:
    """Nothing imaginary comes into a real gradient, also not in a batch or at the second order."""
    derivative, error, match = WRONG_RULES[case]
    twice = ad.primitive("users_twice", lambda x: 2.0 * x, derivative=derivative)
    with pytest.raises(ad.errors.BackwardError) as caught:
        transform(ad.grad(lambda x: twice(x).sum()))(np.ones(2) if transform is ad.vmap else 1.0)
    assert isinstance(caught.value.__cause__, getattr(ad.errors, error))
    assert re.search(match, str(caught.value.__cause__))


def test_rules_of_complex_operands_may_give_complex_numbers() -> None:
    turned = ad.primitive("users_turned", lambda x: 2j * x, derivative={"x": lambda B, g: B.multiply(g, 2j)})
    assert ad.grad(lambda x: ad.real(turned(x)))(1.0 + 1.0j) == np.conj(2j)


def test_pushforwards_that_give_no_tangent() -> None:
    def pushed(pushforward: Any) -> Any:
        options = {"kind": "structural", "shape": lambda x: x, "pushforward": pushforward}
        twice = ad.primitive("users_twice", lambda x: 2.0 * x, derivative={"x": lambda B, g: g}, **options)
        return ad.jvp(twice, (1.0,), (1.0,))[1]

    assert pushed(lambda B, tangents: B.multiply(tangents[0], 2.0)) == 2
    with pytest.raises(ad.errors.DtypeError, match="its pushforward gave complex128, and the result is float64"):
        pushed(lambda B, tangents: B.multiply(tangents[0], 2j))
    with pytest.raises(ad.errors.ArgumentTypeError, match=r"its pushforward gives an array of B.* gave 2\.0"):
        pushed(lambda B, tangents: 2.0)


def test_sparse_jacobians_know_what_kinds_and_definitions_say() -> None:
    X = np.array([[0.5, 1.5], [-0.7, 2.0]])
    shape = lambda x, **_: x
    rules = {"x": lambda B, g, x: B.multiply(g, B.sin(x))}
    one = ad.primitive("one", lambda x: -np.cos(x), derivative=rules)
    assert ad.sparse_jacobian(one)(X).nnz == 4
    whole = ad.primitive(
        "whole", lambda x: x - x.mean(), kind="structural", shape=shape,
        derivative={"x": lambda B, g: B.subtract(g, B.divide(B.sum(g, axis=(0, 1), keepdims=False), 4.0))},
        pushforward=lambda B, t: B.subtract(t[0], B.divide(B.sum(t[0], axis=(0, 1), keepdims=False), 4.0)),
    )  # fmt: skip
    defined = ad.primitive(
        "defined", lambda x: np.flip(x, 1) * x, kind="structural", shape=shape,
        definition=lambda B, x: B.multiply(B.flip(x, axis=(1,)), x),
    )  # fmt: skip
    for f, entries in ((whole, 16), (defined, 8)):
        found = ad.sparse_jacobian(f)(X)
        np.testing.assert_allclose(found.toarray(), ad.jacobian(f)(X).reshape(4, 4), rtol=1e-14)
        assert found.nnz == entries


def test_series() -> None:
    """J0 and J1, each a part of the other's derivative."""
    mpmath = peer("mpmath")
    for order, f in enumerate(bessel()):
        value, series = ad.jet(f, (0.75,), ([1.0] + [0.0] * 5,))
        with mpmath.workdps(40):
            wanted = [float(mpmath.besselj(order, mpmath.mpf(0.75), derivative=k)) for k in range(7)]
        np.testing.assert_allclose([value, *series], wanted, rtol=1e-12)


def test_a_derivative_that_was_not_given_is_an_error() -> None:
    """Zero would be a wrong value that nobody sees."""
    bare = ad.primitive("bare_sine", np.sin)
    assert bare(ad.tensor(0.5)).item() == pytest.approx(np.sin(0.5), rel=1e-6)
    for derive in (
        lambda: ad.grad(bare)(0.5),
        lambda: ad.jvp(bare, (0.5,), (1.0,)),
        lambda: ad.vmap(ad.grad(bare))(np.ones(2)),
        lambda: bare(ad.tensor(0.5).require_grad()).backward(),
        lambda: ad.jet(bare, (0.5,), ([1.0, 0.0],)),
    ):
        with pytest.raises(
            (ad.errors.UnsupportedPrimitiveError, ad.errors.BackwardError), match="has no derivative: give"
        ):
            derive()
    assert ad.grad(lambda x: bare(ad.stop_gradient(x)) * x)(0.5) == pytest.approx(np.sin(0.5))
    flat = ad.primitive("flat_sine", np.sin, derivative={})
    assert ad.grad(flat)(0.5) == 0
    whole = ad.primitive("whole_part", lambda x: np.floor(x).astype(np.int64), dtype=lambda *_: np.dtype(np.int64))
    assert ad.jvp(lambda x: x * whole(x), (2.5,), (1.0,)) == (5.0, 2.0)
    assert ad.grad(lambda x: x * whole(x))(2.5) == 2.0


def test_what_implementations_give_is_looked_at() -> None:
    listed = ad.primitive("listed", lambda x: x.tolist())
    with pytest.raises(ad.errors.ArgumentTypeError, match="^listed: its implementation gave list, expected an array"):
        listed(np.ones(3))
    first = ad.primitive("first_of_all", lambda x, y: x[:1])
    with pytest.raises(ad.errors.ShapeError, match=r"gave shape \(1,\) for operands of shapes \[\(3,\), \(2, 3\)\]"):
        first(np.ones(3), np.ones((2, 3)))
    with pytest.raises(ad.errors.ShapeError, match="another kind= is for what is not elementwise"):
        ad.vmap(first)(np.ones((4, 3)), np.ones((4, 3)))
    total = ad.primitive("total_of_all", lambda x: np.sum(x), kind="reduction", shape=lambda x: ())
    assert total(np.ones(3)).item() == 3


def test_what_a_test_declares_is_gone_after_it() -> None:
    running = pytest_runtest_call()
    next(running)
    left = ad.primitive("users_left", np.sin)
    assert left(0.0) == 0.0
    assert "users_left" in TABLE
    with pytest.raises(StopIteration):
        running.send(None)
    assert "users_left" not in TABLE
