"""Custom derivatives and batching rules, alone and under every nesting of transforms; closure conversion."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import peer

import adjoint as ad

X = np.array([0.3, -0.7, 1.1])
W = np.array([0.5, 0.2, -0.3])


def plain(x: Any, w: Any) -> Any:
    """The function whose derivatives the custom ones are."""
    return {"y": ad.sin(x) * w, "z": (x * w).sum()}


@ad.custom_vjp
def pulled(x: Any, w: Any) -> Any:
    return plain(x, w)


def _pulled_back(saved: Any, g: Any) -> Any:
    x, w = saved
    return g["y"] * ad.cos(x) * w + g["z"] * w, g["y"] * ad.sin(x) + g["z"] * x


pulled.defvjp(lambda x, w: (plain(x, w), (x, w)), _pulled_back)


@ad.custom_jvp
def pushed(x: Any, w: Any) -> Any:
    return plain(x, w)


def _pushed_forward(primals: Any, tangents: Any) -> Any:
    (x, w), (a, b) = primals, tangents
    return plain(x, w), {"y": ad.cos(x) * w * a + ad.sin(x) * b, "z": (a * w + x * b).sum()}


pushed.defjvp(_pushed_forward)


@ad.custom_batching
def batched(x: Any, w: Any) -> Any:
    return plain(x, w)


def _batch(size: int, flags: Any, x: Any, w: Any) -> Any:
    x, w = (v if flag else ad.broadcast_to(v, (size, *v.shape)) for v, flag in zip((x, w), flags, strict=True))
    return {"y": ad.sin(x) * w, "z": (x * w).sum(axis=1)}, {"y": True, "z": True}


batched.def_batching(_batch)


def scalar(f: Any) -> Callable[..., Any]:
    def g(x: Any, w: Any) -> Any:
        out = f(x, w)
        return (out["y"] * out["y"]).sum() + ad.exp(out["z"])

    return g


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = tuple(tree[key] for key in sorted(tree))
    return [x for part in tree for x in flat(part)] if isinstance(tree, tuple) else [tree]


XS, WS = np.stack([X, 2 * X, -X]), np.stack([W, W + 1, W * 3])
NESTINGS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(X, W),
    "grad": lambda f: ad.grad(scalar(f), (0, 1))(X, W),
    "grad of one": lambda f: ad.grad(scalar(f), 1)(X, W),
    "jvp": lambda f: ad.jvp(f, (X, W), (W, X)),
    "vjp": lambda f: ad.vjp(f, X, W)[1]({"y": X, "z": 2.0}),
    "linearize": lambda f: ad.linearize(f, X, W)[1](W, X),
    "jacobian forward": lambda f: ad.jacobian(f, (0, 1), "forward")(X, W),
    "jacobian reverse": lambda f: ad.jacobian(f, (0, 1), "reverse")(X, W),
    "hessian": lambda f: ad.hessian(scalar(f), (0, 1))(X, W),
    "reverse over reverse": lambda f: ad.grad(lambda x: ad.grad(scalar(f))(x, W).sum())(X),
    "reverse over forward": lambda f: ad.grad(lambda x: ad.jvp(scalar(f), (x, W), (W, X))[1])(X),
    "forward over forward": lambda f: ad.jvp(lambda x: ad.jvp(scalar(f), (x, W), (W, X))[1], (X,), (W,)),
    "vmap": lambda f: ad.vmap(f)(XS, WS),
    "vmap shared": lambda f: ad.vmap(f, in_axes=(0, None))(XS, W),
    "vmap grad": lambda f: ad.vmap(ad.grad(scalar(f), (0, 1)))(XS, WS),
    "vmap grad shared": lambda f: ad.vmap(ad.grad(scalar(f), (0, 1)), in_axes=(None, 0))(X, WS),
    "grad vmap": lambda f: ad.grad(lambda x, w: ad.vmap(scalar(f))(x, w).sum(), (0, 1))(XS, WS),
    "grad vmap shared": lambda f: ad.grad(lambda x, w: ad.vmap(scalar(f), (0, None))(x, w).sum(), (0, 1))(XS, W),
    "jvp vmap": lambda f: ad.jvp(ad.vmap(f), (XS, WS), (WS, XS)),
    "jvp vmap shared": lambda f: ad.jvp(ad.vmap(f, (0, None)), (XS, W), (WS, X)),
    "grad vmap vmap": lambda f: ad.grad(
        lambda x, w: ad.vmap(ad.vmap(scalar(f), (None, 0)), (0, None))(x, w).sum(), (0, 1)
    )(XS, WS),
    "vmap hessian": lambda f: ad.vmap(ad.hessian(scalar(f)))(XS, WS),
    "hessian vmap": lambda f: ad.hessian(lambda x: ad.vmap(scalar(f))(x, WS).sum())(XS),
    "checkpoint": lambda f: ad.grad(ad.checkpoint(scalar(f)), (0, 1))(X, W),
    "pullback after vmap": lambda f: ad.vjp(ad.vmap(f), XS, WS)[1]({"y": XS, "z": X}),
}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("custom", [pulled, pushed, batched], ids=["vjp", "jvp", "batching"])
def test_right_rules_change_nothing(custom: Any, nesting: str) -> None:
    run = NESTINGS[nesting]
    for mine, wanted in zip(flat(run(custom)), flat(run(plain)), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-12, atol=1e-13)
        assert np.shape(mine) == np.shape(wanted)


# --- the rule is what is used ---


def marked() -> tuple[Any, Any, Any]:
    """Functions whose rules are wrong on purpose: ten times the derivative, minus the batch."""
    f, g, h = ad.custom_vjp(ad.sin), ad.custom_jvp(ad.sin), ad.custom_batching(ad.sin)
    f.defvjp(lambda x: (ad.sin(x), x), lambda x, c: (10 * c * ad.cos(x),))
    g.defjvp(lambda p, t: (ad.sin(p[0]), 10 * t[0] * ad.cos(p[0])))
    h.def_batching(lambda size, flags, x: (-ad.sin(x), True))
    return f, g, h


def test_the_rule_is_used_by_both_modes_and_in_batches() -> None:
    f, g, h = marked()
    for custom in (f, g):
        assert ad.grad(custom)(0.0) == 10
        assert ad.jvp(custom, (0.0,), (1.0,))[1] == 10
        np.testing.assert_allclose(ad.vmap(ad.grad(custom))(np.zeros(2)), [10, 10])
        np.testing.assert_allclose(ad.grad(lambda x, c=custom: ad.vmap(c)(x).sum())(np.zeros(2)), [10, 10])
        np.testing.assert_allclose(ad.jvp(ad.vmap(custom), (np.zeros(2),), (np.ones(2),))[1], [10, 10])
        x = ad.zeros(()).require_grad()
        assert custom(x).backward()[x].item() == 10
        assert ad.checkpoint(custom)(x).backward()[x].item() == 10
    assert ad.grad(h)(0.0) == 1
    np.testing.assert_allclose(ad.vmap(h)(X), -np.sin(X))
    np.testing.assert_allclose(ad.grad(lambda x: ad.vmap(h)(x).sum())(X), -np.cos(X))
    np.testing.assert_allclose(ad.vmap(ad.vmap(h))(XS), -np.sin(XS))


def test_the_rule_may_be_differentiated() -> None:
    f, g, _ = marked()
    for custom in (f, g):
        assert ad.grad(ad.grad(custom))(1.0) == pytest.approx(-10 * np.sin(1.0))


def test_complex_cotangents_are_those_of_backward() -> None:
    @ad.custom_vjp
    def f(z: Any) -> Any:
        return z * (2 + 1j)

    seen = []
    f.defvjp(lambda z: (z * (2 + 1j), None), lambda _, g: (seen.append(g.tolist()), (g * (2 - 1j),))[1])
    z = np.array([1 + 2j, 0.5j])
    mine = ad.vjp(f, z)[1](z)[0]
    np.testing.assert_allclose(mine, ad.vjp(lambda z: z * (2 + 1j), z)[1](z)[0])
    assert seen == [z.tolist()]


def test_none_is_a_zero_cotangent_and_integers_have_none() -> None:
    @ad.custom_vjp
    def f(x: Any, n: Any, w: Any) -> Any:
        return x * n + w

    f.defvjp(lambda x, n, w: (x * n + w, n), lambda n, g: (g * n, None, None))
    value, pullback = ad.vjp(lambda x, w: f(x, np.array(3), w), 2.0, 1.0)
    assert value == 7
    assert pullback(1.0) == (3, 0)


def test_results_are_numpy_for_numpy_and_tensors_for_tensors() -> None:
    f, _, _ = marked()
    assert isinstance(f(X), np.ndarray)
    assert isinstance(f(ad.tensor(X)), ad.Tensor)
    assert f(ad.tensor(X, device="numpy")).device is ad.NumPy()


# --- errors ---


def test_numpy_results_are_the_callers_own() -> None:
    f = ad.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    x = X.copy()
    out = f(x)
    out[0] = 7
    np.testing.assert_array_equal(x, X)


@dataclasses.dataclass
class Strict:
    """Makes sure of what it holds."""

    x: Any

    def __post_init__(self) -> None:
        assert isinstance(self.x, (ad.Tensor, np.ndarray)), type(self.x)


def test_arguments_of_types_that_check_what_they_hold() -> None:
    f = ad.custom_vjp(lambda s, y: s.x * y)
    f.defvjp(lambda s, y: (s.x * y, (s.x, y)), lambda saved, g: (Strict(g * saved[1]), g * saved[0]))
    np.testing.assert_array_equal(ad.grad(lambda s: f(s, W).sum())(Strict(X)).x, W)
    np.testing.assert_array_equal(ad.vmap(lambda s, y: s.x * y, in_axes=(0, None))(Strict(X), 2.0), 2 * X)


def test_rules_are_missing() -> None:
    for custom, name in (
        (ad.custom_vjp(ad.sin), "defvjp"),
        (ad.custom_jvp(ad.sin), "defjvp"),
        (ad.custom_batching(ad.sin), "def_batching"),
    ):
        with pytest.raises(ad.errors.GraphError, match=name):
            custom(X)
    for make in (ad.custom_vjp, ad.custom_jvp, ad.custom_batching):
        with pytest.raises(ad.errors.ArgumentTypeError, match="function"):
            make(3)  # type: ignore[arg-type]


def test_rules_that_do_not_fit() -> None:
    f = ad.custom_vjp(ad.sin)
    f.defvjp(lambda x: ad.sin(x), lambda _, g: (g,))
    with pytest.raises(ad.errors.ArgumentTypeError, match="pair"):
        ad.grad(f)(1.0)
    f.defvjp(lambda x: (ad.sin(x), None), lambda _, g: (g, g))
    with pytest.raises(ad.errors.BackwardError, match="entry per argument, 1"):
        ad.grad(f)(1.0)
    f.defvjp(lambda x: (ad.sin(x), None), lambda _, g: (ad.stack([g, g]),))
    with pytest.raises(ad.errors.BackwardError, match="argument 0 is float64 of shape"):
        ad.grad(f)(1.0)
    h = ad.custom_jvp(ad.sin)
    h.defjvp(lambda p, t: (p[0], ad.stack([t[0], t[0]])))
    with pytest.raises(ad.errors.ShapeError, match="tangent has shape"):
        ad.jvp(h, (1.0,), (1.0,))
    h.defjvp(lambda p, t: (p[0], (t[0], t[0])))
    with pytest.raises(ad.errors.ArgumentError, match="structure"):
        ad.jvp(h, (1.0,), (1.0,))
    h.defjvp(lambda p, t: (p[0], t[0] * 1j))
    with pytest.raises(ad.errors.DtypeError, match="a tangent is complex128, its result float64"):
        ad.jvp(h, (1.0,), (1.0,))
    b = ad.custom_batching(ad.sin)
    b.def_batching(lambda size, flags, x: (x.sum(), True))
    with pytest.raises(ad.errors.ShapeError, match="does not count 3 examples"):
        ad.vmap(b)(X)


def test_rules_that_are_not_linear_have_no_transpose() -> None:
    def rule(p: Any, t: Any) -> Any:
        return ad.sin(p[0]), t[0] * slope(p[0]) + rest(t[0])

    for rest in (lambda t: 1.0, lambda t: t * t, lambda t: 3 * ad.exp(t)):
        f, slope = ad.custom_jvp(ad.sin), ad.cos
        f.defjvp(rule)
        for run in (ad.grad(lambda x, f=f: f(x).sum()), ad.vmap(ad.grad(f)), ad.jacobian(f, mode="reverse")):
            with pytest.raises(ad.errors.BackwardError) as caught:
                run(X)
            assert isinstance(caught.value.__cause__, ad.errors.ArgumentError)
            assert "custom_jvp(sin): its rule is not linear in tangents" in str(caught.value.__cause__)
        rest, kept = (lambda t: 0.0), rest
        f.defjvp(rule)  # another one, which is
        np.testing.assert_allclose(ad.vmap(ad.grad(f))(X), np.cos(X))
        rest = kept
        f.defjvp(rule)  # and the first again
        with pytest.raises(ad.errors.BackwardError):
            ad.grad(f)(1.0)
    clipped = ad.custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda _, g: (ad.clip(g, -0.1, 0.1),))
    np.testing.assert_array_equal(ad.grad(lambda x: clipped(x).sum())(X), np.full_like(X, 0.1))
    with pytest.raises(ad.errors.ArgumentError, match="its rule is not linear in cotangents"):
        ad.jvp(clipped, (X,), (X,))


@pytest.mark.parametrize("seed", range(5))
def test_a_rule_that_is_zero_but_for_rounding_has_a_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=3), rng.normal(size=3)
    turned = ad.custom_jvp(lambda x: ad.abs(ad.exp(1j * x) * (y + 0.7j)))
    turned.defjvp(lambda p, t: ad.jvp(turned.function, p, t))
    np.testing.assert_allclose(ad.grad(lambda x: turned(x).sum())(x), 0.0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_linear_rules_have_a_transpose_whatever_is_rounded(dtype: str, size: int) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(size) * 10).astype(dtype)
    f = ad.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], 2 * p[0] * t[0]))
    g = ad.vjp(f, x)[1](np.conj(x) / 10)[0]
    np.testing.assert_allclose(g, ad.vjp(lambda x: x * x, x)[1](np.conj(x) / 10)[0], rtol=1e-2)
    assert np.isnan(ad.grad(f)(np.float64("nan")))
    assert ad.grad(f)(np.float64("inf")) == np.inf


def test_rules_are_functions() -> None:
    for give in (
        lambda: ad.custom_vjp(ad.sin).defvjp(ad.sin, 3),
        lambda: ad.custom_jvp(ad.sin).defjvp(3),
        lambda: ad.custom_batching(ad.sin).def_batching(None),
    ):
        with pytest.raises(ad.errors.ArgumentTypeError, match="is a function, received"):
            give()


def test_tangents_have_the_dtypes_of_results() -> None:
    f = ad.custom_jvp(lambda x: (x * 2, ad.astype(x, ad.int64)))
    f.defjvp(lambda p, t: (f(*p), (ad.astype(t[0], ad.float32) * 2, t[0])))
    value, tangent = ad.jvp(f, (X,), (W,))
    assert [x.dtype for x in tangent] == [x.dtype for x in value]
    np.testing.assert_allclose(tangent[0], 2 * W, rtol=1e-7)
    np.testing.assert_array_equal(tangent[1], 0)
    f = ad.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (p[0] * 2, t[0] * 2j))
    with pytest.raises(ad.errors.DtypeError, match="tangent is complex128, its result float64"):
        ad.jvp(f, (X,), (W,))


def test_integers_and_other_constants_have_no_tangents() -> None:
    @ad.custom_jvp
    def power(x: Any, n: int, name: str) -> Any:
        return x**n

    def rule(p: Any, t: Any) -> Any:
        x, n, name = p
        assert (t[1], t[2]) == (0, None)
        return power(*p), n * x ** (n - 1) * t[0] + ad.log(x) * x**n * t[1]

    power.defjvp(rule)
    assert ad.grad(power)(2.0, 3, "cube") == 12.0
    assert ad.jvp(lambda x: power(x, 3, "cube"), (2.0,), (1.0,))[1] == 12.0


def test_arguments_by_name() -> None:
    def scaled(x: Any, n: int = 2, *, name: str = "") -> Any:
        return x * n

    f = ad.custom_vjp(lambda x, n=2, m=1: x * n * m)
    f.defvjp(lambda x, n, m: (x * n * m, n * m), lambda r, g: (g * r, None, None))
    assert ad.grad(lambda x: f(x=x, m=5))(1.0) == 10.0
    with pytest.raises(ad.errors.ArgumentTypeError, match=r"custom_vjp\(<lambda>\): .*'other'"):
        f(1.0, other=3)
    f = ad.custom_jvp(scaled)
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ad.errors.ArgumentTypeError, match=r"custom_jvp\(scaled\): .*by position, and \['name'\]"):
        f(1.0, name="a")


def test_functions_and_rules_may_assign_to_what_they_are_given() -> None:
    def squared(x: Any) -> Any:
        x *= x
        return x

    def doubled(x: Any, g: Any) -> Any:
        x *= 2
        return (g * x,)

    f = ad.custom_jvp(squared)
    f.defjvp(lambda p, t: (f(p[0]), 2 * p[0] * t[0]))
    assert ad.grad(f)(3.0) == 6.0
    f = ad.custom_vjp(squared)
    f.defvjp(lambda x: (x * x, x), doubled)
    _, pullback = ad.vjp(f, 3.0)
    assert [pullback(1.0), pullback(1.0)] == [(6.0,), (6.0,)]


def test_arrays_of_the_user_are_copied() -> None:
    held = np.ones(2)
    product = ad.custom_vjp(lambda x, y: x * y)
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, g: (g * r[1], g * r[0]))
    _, pullback = ad.vjp(lambda x: product(x, held), np.ones(2))
    same = ad.custom_vjp(lambda x: held)
    same.defvjp(lambda x: (held, None), lambda _, g: (g,))
    result = same(ad.ones(2))
    held[:] = 7.0
    np.testing.assert_array_equal(pullback(np.ones(2))[0], 1.0)
    assert result.tolist() == [1.0, 1.0]


def test_a_tangent_has_the_dtype_of_its_result() -> None:
    f = ad.custom_jvp(lambda x: x * 1)
    f.defjvp(lambda p, t: (p[0] * 1, t[0].astype(ad.float32)))
    value, tangent = ad.jvp(f, (X,), (X,))
    assert (value.dtype, tangent.dtype) == (np.float64, np.float64)
    np.testing.assert_array_equal(tangent, X.astype(np.float32))
    np.testing.assert_array_equal(ad.grad(lambda x: f(x).sum())(X), np.ones(3))
    f = ad.custom_jvp(lambda x: (ad.argmax(x), x))
    f.defjvp(lambda p, t: ((ad.argmax(p[0]), p[0]), (0.0, t[0])))
    (_, value), (index, tangent) = ad.jvp(f, (X,), (W,))
    assert index == 0
    np.testing.assert_array_equal(tangent, W)


@pytest.mark.parametrize("rule", [3, None, "f"])
def test_rules_that_are_no_functions(rule: Any) -> None:
    f, g, h = ad.custom_vjp(ad.sin), ad.custom_jvp(ad.sin), ad.custom_batching(ad.sin)
    for give in (
        lambda: f.defvjp(ad.sin, rule),
        lambda: f.defvjp(rule, ad.sin),
        lambda: g.defjvp(rule),
        lambda: h.def_batching(rule),
    ):
        with pytest.raises(ad.errors.ArgumentTypeError, match="is a function, received"):
            give()
    with pytest.raises(ad.errors.GraphError, match="no rules yet"):  # nothing was taken over
        f(X)


@functools.partial(ad.custom_vjp, nondiff_argnums=(0, 2))
def applied(f: Any, x: Any, times: int = 2) -> Any:
    return f(x) * times


applied.defvjp(
    lambda f, x, times: (f(x) * times, ad.cos(x)), lambda f, times, slope, g: (g * slope * times + 0 * f(g),)
)


@functools.partial(ad.custom_jvp, nondiff_argnums=(0, 2))
def pushed_on(f: Any, x: Any, times: int = 2) -> Any:
    return f(x) * times


@pushed_on.defjvp
def _(f: Any, times: int, primals: Any, tangents: Any) -> Any:
    return f(primals[0]) * times, tangents[0] * ad.cos(primals[0]) * times


@pytest.mark.parametrize("f", [applied, pushed_on])
def test_arguments_that_are_not_differentiated(f: Any) -> None:
    calls = {2: lambda x: f(ad.sin, x), 3: lambda x: f(ad.sin, x, 3), 4: lambda x: f(ad.sin, times=4, x=x)}
    for times, call in calls.items():
        total = lambda x, call=call: call(x).sum()
        np.testing.assert_allclose(call(X), times * np.sin(X), rtol=1e-15)
        np.testing.assert_allclose(ad.grad(total)(X), times * np.cos(X), rtol=1e-15)
        np.testing.assert_allclose(ad.jvp(call, (X,), (W,))[1], times * np.cos(X) * W, rtol=1e-15)
        np.testing.assert_allclose(ad.vmap(ad.grad(call))(X), times * np.cos(X), rtol=1e-15)
        np.testing.assert_allclose(ad.hessian(total)(X), np.diag(-times * np.sin(X)), rtol=1e-15)
    with pytest.raises(ad.errors.ArgumentTypeError, match="argument 2, one of nondiff_argnums, is a tensor"):
        f(ad.sin, X, ad.tensor(2.0))
    with pytest.raises(ad.errors.ArgumentTypeError, match="missing a required argument: 'x'"):
        f(ad.sin)


def test_arguments_by_name_and_defaults_reach_the_rule_by_position() -> None:
    def product(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    f = ad.custom_vjp(product)
    f.defvjp(lambda x, scale: (x * scale, (x, scale)), lambda saved, g: (g * saved[1], g * saved[0]))
    for call in (f, lambda x: f(x=x), lambda x: f(x, scale=2.0), lambda x: f(scale=2.0, x=x)):
        assert ad.grad(call)(3.0) == 2
    assert ad.grad(f, 1)(3.0, 5.0) == 3
    with pytest.raises(ad.errors.ArgumentTypeError, match="unexpected keyword argument 'sale'"):
        f(3.0, sale=2.0)
    named = ad.custom_jvp(lambda x, *, power: x**power)
    named.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ad.errors.ArgumentTypeError, match=r"\['power'\] can only be given by name"):
        named(3.0, power=2)


@pytest.mark.parametrize("argnums", [1, "x", (True,), (-1,), (0.5,)])
def test_wrong_nondiff_argnums(argnums: Any) -> None:
    for make in (ad.custom_vjp, ad.custom_jvp):
        with pytest.raises(ad.errors.ArgumentTypeError, match="nondiff_argnums are positions, received"):
            make(ad.sin, nondiff_argnums=argnums)
    beyond = ad.custom_jvp(ad.sin, nondiff_argnums=(3,))
    beyond.defjvp(lambda *_: None)
    with pytest.raises(ad.errors.ArgumentError, match="the call has 1 arguments"):
        beyond(X)


def test_a_rule_for_each_argument() -> None:
    def product(x: Any, y: Any, z: Any) -> Any:
        return {"out": x * y * z}

    f = ad.custom_jvp(product)
    f.defjvps(lambda t, out, x, y, z: {"out": t * y * z}, lambda t, out, x, y, z: {"out": t * out["out"] / y}, None)
    for by, slope in enumerate((W * 2, X * 2, 0 * X)):
        got = ad.grad(lambda *args: f(*args)["out"].sum(), by)(X, W, np.full(3, 2.0))
        np.testing.assert_allclose(got, slope, rtol=1e-15)
    f.defjvps(None, None, None)
    assert not ad.jvp(lambda x: f(x, x, x)["out"], (X,), (X,))[1].any()
    f.defjvps(None)
    with pytest.raises(ad.errors.ArgumentError, match="defjvps has 1 rules, and the call 3 arguments"):
        ad.jvp(lambda x: f(x, x, x)["out"], (X,), (X,))
    with pytest.raises(ad.errors.ArgumentTypeError, match="a rule is a function, received 3"):
        f.defjvps(3)  # type: ignore[arg-type]
    with pytest.raises(ad.errors.ArgumentError, match="nondiff_argnums"):
        pushed_on.defjvps(None)


def test_the_same_declarations_as_in_jax() -> None:
    jax = peer("jax")

    def declared(library: Any, custom: Any) -> Any:
        f = functools.partial(custom, nondiff_argnums=(1,))(lambda x, n: x**n)
        f.defvjp(lambda x, n: (x**n, x), lambda n, x, g: (n * x ** (n - 1) * g,))
        g = functools.partial(library, nondiff_argnums=(1,))(lambda x, n: x**n)
        g.defjvp(lambda n, primals, tangents: (primals[0] ** n, n * primals[0] ** (n - 1) * tangents[0]))
        h = library(lambda x, y: x * y)
        h.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)
        return lambda x: f(x, 3) * g(x, n=2) + h(x, x)

    ours, theirs = declared(ad.custom_jvp, ad.custom_vjp), declared(jax.custom_jvp, jax.custom_vjp)
    np.testing.assert_allclose(ad.value_and_grad(ours)(1.5), jax.value_and_grad(theirs)(1.5), rtol=1e-6)


def test_a_closed_over_tracked_tensor_is_refused() -> None:
    w = ad.tensor(2.0).require_grad()
    f = ad.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (x * w, None), lambda _, g: (g,))
    with pytest.raises(ad.errors.TrackedError, match="closure_convert"):
        f(ad.tensor(1.0).require_grad())


# --- closures ---


def make(w: Any, b: Any) -> Any:
    def affine(x: Any) -> Any:
        return x * w + b["shift"]

    def f(x: Any, *, power: int = 2) -> Any:
        return affine(x) ** power

    return f


def test_closed_over_tensors_become_arguments() -> None:
    w, b = ad.tensor(X), ad.tensor(2.0, dtype=ad.float64)
    f = make(w, {"shift": b, "other": "text"})
    converted, closed = ad.closure_convert(f, 1.0)
    assert [c is t for c, t in zip(closed, (b, w), strict=True)] == [True, True]
    np.testing.assert_array_equal(converted(3.0, *closed).numpy(), f(3.0).numpy())
    found = ad.grad(lambda x, *c: converted(x, *c).sum(), (0, 1, 2))(3.0, *closed)
    theirs = ad.grad(lambda x, b, w: ((x * w + b) ** 2).sum(), (0, 1, 2))(3.0, b, w)
    for mine, wanted in zip(found, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy())
    np.testing.assert_array_equal(f(3.0).numpy(), ((3.0 * w + b) ** 2).numpy())  # f itself is as it was


def test_closures_of_partials_and_recursive_functions() -> None:
    w = ad.tensor(2.0)
    converted, closed = ad.closure_convert(functools.partial(lambda a, x: a * x, w), 1.0)
    assert ad.grad(converted, 1)(3.0, *closed).item() == 3.0

    def power(x: Any, n: int) -> Any:
        return w if n == 0 else x * power(x, n - 1)

    converted, closed = ad.closure_convert(lambda x: power(x, 3), 1.0)
    assert len(closed) == 1
    assert ad.grad(converted, 1)(3.0, *closed).item() == 27.0


class Affine(NamedTuple):
    w: Any
    b: Any


def test_closures_over_any_tuple_list_or_dictionary() -> None:
    w, b = ad.tensor(2.0), ad.tensor(1.0)
    itself: list[Any] = [w]
    itself.append(itself)
    for held, f in (
        (Affine(w, b), lambda p: lambda x: p.w * x + p.b),
        (collections.OrderedDict(w=w, b=b), lambda p: lambda x: p["w"] * x + p["b"]),
        (collections.defaultdict(list, {"w": [w], "b": [b]}), lambda p: lambda x: p["w"][0] * x + p["b"][0]),
        (itself, lambda p: lambda x: p[1][1][0] * x + 1),
    ):
        converted, closed = ad.closure_convert(f(held), 1.0)
        assert closed[0] is w
        assert ad.grad(converted, 1)(3.0, *closed).item() == 3.0
    assert itself[1] is itself


def test_what_closes_over_nothing() -> None:
    for f in (ad.sin, lambda x: x, np.sin):
        converted, closed = ad.closure_convert(f, 1.0)
        assert closed == []
        assert converted(ad.tensor(0.0)).item() == 0 if f is not np.sin else converted(0.0) == 0
    with pytest.raises(ad.errors.ArgumentTypeError, match="function"):
        ad.closure_convert(3)  # type: ignore[arg-type]
    converted, _ = ad.closure_convert(make(ad.tensor(1.0), {"shift": ad.tensor(1.0)}), 1.0)
    with pytest.raises(ad.errors.ArgumentError, match="2 closed-over"):
        converted(ad.tensor(1.0))


def test_a_tangent_of_each_example_of_a_result_that_they_share() -> None:
    f = ad.custom_jvp(lambda x: ad.zeros(()))
    f.defjvp(lambda primals, tangents: (ad.zeros((), dtype=tangents[0].dtype), tangents[0] * primals[0]))
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(ad.jacobian(ad.vmap(f), mode="forward")(x), np.diag(x))
    np.testing.assert_array_equal(ad.jvp(ad.vmap(lambda x: f(x) * 3), (x,), (x,))[1], 3 * x * x)


def _ruled() -> dict[str, Any]:
    """sin(a) * b, by rules of either mode."""
    reverse = ad.custom_vjp(lambda a, b: ad.sin(a) * b)
    reverse.defvjp(
        lambda a, b: (ad.sin(a) * b, (a, b)), lambda r, g: (g * ad.cos(r[0]) * r[1], (g * ad.sin(r[0])).sum())
    )
    forward = ad.custom_jvp(lambda a, b: ad.sin(a) * b)
    forward.defjvp(lambda p, t: (ad.sin(p[0]) * p[1], ad.cos(p[0]) * p[1] * t[0] + ad.sin(p[0]) * t[1]))
    return {"custom_vjp": reverse, "custom_jvp": forward}


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
def test_python_numbers_adapt_to_the_tensors_beside_them(kind: str, dtype: str) -> None:
    f, plain = _ruled()[kind], lambda a, b: ad.sin(a) * b
    x = ad.tensor([1.25, 0.5] if dtype != "int32" else [1, 2], dtype=dtype)
    calls: list[Any] = [lambda g: g(x, -0.6), lambda g: ad.vmap(lambda a: g(a, -0.6))(x)]
    calls += [lambda g: ad.cond(True, lambda: g(x, ad.cond(True, lambda: 0.1, lambda: 0.2)), lambda: g(x, 0.3))]
    if dtype != "int32":
        calls += [lambda g: ad.compile(lambda a: g(a, -0.6))(x)]
    if dtype.startswith("float"):
        calls += [
            lambda g: ad.grad(lambda a: g(a, -0.6).sum())(x),
            lambda g: ad.jvp(lambda a: g(a, -0.6), (x,), (x,))[1],
            lambda g: ad.hessian(lambda a: g(a, -0.6).sum())(x),
            lambda g: ad.jacobian(lambda a: g(a, -0.6), mode="reverse")(x.numpy()),
        ]
    for run in calls:
        found, wanted = run(f), run(plain)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6)
    assert f(np.float64(1.25), -0.6).dtype == "float64"
    assert ad.grad(f, argnums=1)(0.5, 2.0) == np.sin(0.5)
