"""The transforms on functions of trees: what JAX gives, for the same functions and the same options."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest
from conftest import peer

import adjoint as ad

jax = peer("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

RNG = np.random.default_rng(5)


def real(*shape: int) -> Any:
    return RNG.uniform(0.2, 1.5, shape) * RNG.choice([-1.0, 1.0], shape)


def cplx(*shape: int) -> Any:
    return real(*shape) + 1j * real(*shape)


def flat(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree, namespace="adjoint")


def agree(mine: Any, theirs: Any) -> None:
    """The same leaves: values to rounding, shapes and dtypes; ours are NumPy's."""
    ours, others = flat(mine), jax.tree_util.tree_leaves(theirs)
    assert len(ours) == len(others)
    for x, y in zip(ours, others, strict=True):
        assert isinstance(x, (np.ndarray, np.generic)), type(x)
        expected = np.asarray(y)
        assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-12)


# --- functions that both libraries run -----------------------------------------------------------


def mlp(xp: Any, p: Any, x: Any) -> Any:
    return xp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def loss(xp: Any, p: Any, x: Any, y: Any) -> Any:
    return ((mlp(xp, p, x) - y) ** 2).mean()


def vector(xp: Any, x: Any, y: Any) -> Any:
    """Of two vectors of different lengths, with broadcasting, indexing and a reduction."""
    return xp.sin(x)[:, None] * xp.exp(y) + (x * x).sum() * y[1]


def scalar(xp: Any, x: Any, y: Any) -> Any:
    return (vector(xp, x, y) ** 3).sum()


def tree(xp: Any, d: Any) -> Any:
    a, (b, c) = d["a"], d["bc"]
    return {"out": [xp.cos(a) * c, b @ b], "one": (a.sum() * c,)}


def scalar_of_tree(xp: Any, d: Any) -> Any:
    out = tree(xp, d)
    return (out["out"][0] ** 2).sum() + out["out"][1].sum() * out["one"][0]


def shapes(xp: Any, x: Any) -> Any:
    """Moves of axes, sorts, cumulations and choices."""
    y = xp.concatenate([x, x[::-1] ** 2]) if xp is jnp else xp.concat([x, ad.flip(x) ** 2])
    sums = xp.cumsum(y) if xp is jnp else xp.cumulative_sum(y)
    return xp.where(y > 0, sums, xp.sort(y)) * xp.max(x)


PARAMETERS = {"w1": real(3, 4), "b1": real(4), "w2": real(4, 2), "b2": real(2)}
XS, YS = real(5, 3), real(5, 2)
X, Y = real(3), real(4)
TREE = {"a": real(2), "bc": (real(2, 2), np.asarray(real()))}
SHAPES = real(4)

# name: the function of the library, and its arguments
VECTORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "vector": (vector, (X, Y)),
    "tree": (tree, (TREE,)),
    "mlp": (mlp, (PARAMETERS, XS)),
    "shapes": (shapes, (SHAPES,)),
    "constant": (lambda xp, x: xp.ones((2, 2), dtype=xp.float64), (X,)),
    "part": (lambda xp, x, y: (y * 2, x * 0, y[0]), (X, Y)),
    "empty": (lambda xp, x: x[:0], (X,)),
    "of empty": (lambda xp, x: x.sum() + xp.ones(2, dtype=xp.float64), (real(0),)),
    "matrix": (lambda xp, x: xp.linalg.inv(x) @ x.mT, (real(2, 2) + 3 * np.eye(2),)),
}
SCALARS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalar": (scalar, (X, Y)),
    "tree": (scalar_of_tree, (TREE,)),
    "loss": (loss, (PARAMETERS, XS, YS)),
    "shapes": (lambda xp, x: shapes(xp, x).sum(), (SHAPES,)),
    "constant": (lambda xp, x: xp.ones((), dtype=xp.float64), (X,)),
    "ignores one": (lambda xp, x, y: (y**3).sum(), (X, Y)),
    "0-d": (lambda xp, x: xp.exp(x) * x, (np.asarray(0.7),)),
}


def both(f: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return lambda *args: f(ad, *args), lambda *args: f(jnp, *args)


def every(count: int) -> list[Any]:
    """Choices of arguments: one, from the end, several in any order."""
    return [0, -1, tuple(range(count)), tuple(reversed(range(count)))]


def chosen(parts: Any, argnums: Any) -> Any:
    return parts[argnums] if isinstance(argnums, int) else tuple([parts[i] for i in argnums])


def expected(transform: Callable[..., Any], f: Callable[..., Any], args: Any, *more: Any) -> Any:
    """What a transform of JAX gives, compiled as a whole: that is faster here."""
    return jax.jit(lambda *xs: transform(f, *more)(*xs))(*args)


# --- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALARS)
def test_grad(name: str) -> None:
    f, args = SCALARS[name]
    ours, theirs = both(f)
    value, wanted = expected(jax.value_and_grad, theirs, args, tuple(range(len(args))))
    for argnums in every(len(args)):
        agree(ad.grad(ours, argnums)(*args), chosen(wanted, argnums))
        agree(ad.value_and_grad(ours, argnums)(*args), (value, chosen(wanted, argnums)))


@pytest.mark.parametrize("name", VECTORS)
def test_jacobian(name: str) -> None:
    f, args = VECTORS[name]
    ours, theirs = both(f)
    wanted = expected(jax.jacrev, theirs, args, tuple(range(len(args))))
    value = jax.eval_shape(theirs, *args)
    for argnums in every(len(args)):
        for mode in ("reverse", "forward", "auto"):
            agree(
                ad.jacobian(ours, argnums, mode)(*args),
                jax.tree_util.tree_map(lambda _, row, argnums=argnums: chosen(row, argnums), value, wanted),
            )


@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name: str) -> None:
    f, args = SCALARS[name]
    ours, theirs = both(f)
    wanted = expected(jax.hessian, theirs, args, tuple(range(len(args))))
    for argnums in every(len(args)):
        rows = jax.tree_util.tree_map(lambda _, row, argnums=argnums: chosen(row, argnums), args, wanted)
        agree(ad.hessian(ours, argnums)(*args), chosen(rows, argnums))


@pytest.mark.parametrize("name", VECTORS)
def test_products_with_the_jacobian(name: str) -> None:
    f, args = VECTORS[name]
    ours, theirs = both(f)
    tangents = jax.tree_util.tree_map(lambda x: np.cos(3 * x) + 1, args)
    wanted = jax.jit(lambda xs, ts: jax.jvp(theirs, xs, ts))(args, tangents)
    agree(ad.jvp(ours, args, tangents), wanted)
    value, along = ad.linearize(ours, *args)
    agree((value, along(*tangents)), wanted)
    cotangents = jax.tree_util.tree_map(lambda x: np.sin(np.arange(1.0, 1 + x.size)).reshape(x.shape), wanted[0])
    pulled = jax.jit(lambda xs, c: jax.vjp(theirs, *xs)[1](c))(args, cotangents)
    value, pullback = ad.vjp(ours, *args)
    agree(value, wanted[0])
    for _ in range(2):
        agree(pullback(cotangents), pulled)


@pytest.mark.parametrize("name", SCALARS)
def test_hvp(name: str) -> None:
    f, args = SCALARS[name]
    ours, theirs = both(f)
    tangents = jax.tree_util.tree_map(lambda x: np.cos(3 * x) + 1, args)
    gradient = jax.grad(theirs, tuple(range(len(args))))
    wanted = jax.jit(lambda xs, ts: jax.jvp(gradient, xs, ts)[1])(args, tangents)
    agree(ad.hvp(ours, args, tangents), wanted[0] if len(args) == 1 else wanted)


def test_third_derivatives() -> None:
    ours, theirs = both(lambda xp, x: (xp.sin(x) * x**2).sum())
    agree(ad.jacobian(ad.hessian(ours))(X), expected(lambda f: jax.jacfwd(jax.hessian(f)), theirs, (X,)))
    total = lambda x: jax.grad(theirs)(x).sum()
    agree(ad.hessian(lambda x: ad.grad(ours)(x).sum())(X), expected(jax.hessian, total, (X,)))


def test_keyword_arguments_and_names() -> None:
    def f(x: Any, y: Any, *, z: Any, flag: bool = True) -> Any:
        return (x * y**2 * z**3).sum() if flag else x.sum()

    z = real(3)
    wanted = jax.grad(lambda x, y, z: (x * y**2 * z**3).sum(), (0, 1, 2))(X, X + 1, z)
    for argnums, place in ((0, 0), ("x", 0), (1, 1), ("y", 1), ("z", 2)):
        agree(ad.grad(f, argnums)(X, X + 1, z=z), wanted[place])
        agree(ad.jacobian(f, argnums)(X, X + 1, z=z), wanted[place])
    agree(ad.grad(f, ("z", 0, "y"))(X, X + 1, z=z), (wanted[2], wanted[0], wanted[1]))
    agree(ad.grad(f, ["y", "x"])(X, y=X + 1, z=z), (wanted[1], wanted[0]))
    agree(ad.grad(f, np.int64(1))(X, X + 1, z=z), wanted[1])
    agree(ad.grad(f)(X, X + 1, z=z, flag=False), np.ones(3))
    assert ad.grad(f).__name__ == "grad(f)"
    assert ad.hessian(f).__wrapped__ is f


def test_what_stands_beside_the_result() -> None:
    def f(x: Any) -> Any:
        return (x**2).sum(), {"twice": 2 * x, "note": "kept", "none": None, "count": 3, "array": np.ones(1)}

    for out in (
        ad.grad(f, has_aux=True)(X),
        ad.value_and_grad(f, has_aux=True)(X)[0],
        ad.jacobian(f, mode="reverse", has_aux=True)(X),
        ad.jacobian(f, mode="forward", has_aux=True)(X),
        ad.hessian(f, has_aux=True)(X),
        ad.jvp(f, (X,), (X,), has_aux=True)[1:],
        ad.vjp(f, X, has_aux=True)[1:],
        ad.linearize(f, X, has_aux=True)[1:],
    ):
        aux = out[1]
        agree(aux["twice"], 2 * X)
        assert (aux["note"], aux["none"], aux["count"]) == ("kept", None, 3)
    agree(ad.value_and_grad(f, has_aux=True)(X)[1], 2 * X)
    agree(ad.hessian(f, has_aux=True)(X)[0], 2 * np.eye(3))
    agree(ad.vjp(f, X, has_aux=True)[1](1.0), (2 * X,))
    agree(ad.linearize(f, X, has_aux=True)[1](X), np.asarray(2 * X @ X))


# --- complex functions ---------------------------------------------------------------------------

Z, W = cplx(3), cplx(3)


def holomorphic(xp: Any, z: Any) -> Any:
    return xp.exp(z) * z**2 + (z * W).sum() / z


def test_derivatives_of_holomorphic_functions() -> None:
    ours, theirs = both(holomorphic)
    wanted = expected(lambda f: jax.jacrev(f, holomorphic=True), theirs, (Z,))
    for mode in ("reverse", "forward", "auto"):
        agree(ad.jacobian(ours, mode=mode, holomorphic=True)(Z), wanted)
    agree(ad.jvp(ours, (Z,), (W,))[1], wanted @ W)
    agree(ad.linearize(ours, Z)[1](W), wanted @ W)
    ours, theirs = both(lambda xp, z: holomorphic(xp, z).sum())
    agree(ad.grad(ours, holomorphic=True)(Z), wanted.sum(axis=0))
    agree(ad.hessian(ours, holomorphic=True)(Z), expected(lambda f: jax.hessian(f, holomorphic=True), theirs, (Z,)))


def test_real_functions_of_complex_arguments() -> None:
    """The gradient is the direction of steepest ascent, as in PyTorch: the conjugate of JAX's."""
    ours, theirs = both(lambda xp, z: (abs(xp.sin(z)) ** 2).sum())
    agree(ad.grad(ours)(Z), np.conj(jax.grad(theirs)(Z)))
    agree(ad.jvp(ours, (Z,), (W,)), jax.jvp(theirs, (Z,), (W,)))
    agree(ad.linearize(ours, Z)[1](W), jax.jvp(theirs, (Z,), (W,))[1])
    agree(ad.vjp(ours, Z)[1](1.0)[0], np.conj(jax.vjp(theirs, Z)[1](1.0)[0]))
    agree(ad.hvp(ours, (Z,), (W,)), np.conj(jax.jvp(jax.grad(theirs), (Z,), (W,))[1]))


def test_complex_functions_of_real_arguments() -> None:
    ours, theirs = both(lambda xp, x: xp.exp(1j * x) * x.sum())
    wanted = jax.jacfwd(theirs)(X)
    agree(ad.jacobian(ours)(X), wanted)
    agree(ad.jacobian(ours, mode="forward")(X), wanted)
    agree(ad.jvp(ours, (X,), (X,)), jax.jvp(theirs, (X,), (X,)))
    agree(ad.vjp(ours, X)[1](Z)[0], jax.vjp(theirs, X)[1](np.conj(Z))[0])


# --- batches -------------------------------------------------------------------------------------


def test_axes_of_arguments_and_results() -> None:
    x, y = real(4, 3, 2), real(3, 4)

    def f(xp: Any, a: Any, b: Any) -> Any:
        return {"p": a * b, "q": (a.sum(axis=0), b)}

    ours, theirs = both(f)
    for in_axes in ((0, 1), (0, -1), (-3, 1), [0, 1]):
        for out_axes in (0, 1, -1, {"p": 1, "q": (0, 0)}, {"p": -1, "q": 0}):
            agree(
                ad.vmap(lambda a, b: ours(a, b[:, None]), in_axes, out_axes)(x, y),
                jax.vmap(lambda a, b: theirs(a, b[:, None]), tuple(in_axes), out_axes)(x, y),
            )
    for in_axes in ((0, None), (None, 0), (1, None), (2, None), (-1, None)):
        small = y[:, 0] if in_axes[0] is not None else real(5)
        mine = ad.vmap(lambda a, b: a.sum() * b, in_axes, -1)(x, small)
        agree(mine, jax.vmap(lambda a, b: a.sum() * b, in_axes, -1)(x, small))


def test_axes_as_trees() -> None:
    d = {"a": real(5, 2), "b": (real(2), real(2, 5))}
    for in_axes in (({"a": 0, "b": (None, 1)},), ({"a": None, "b": (None, -1)},), ({"a": 0, "b": None},)):

        def f(xp: Any, t: Any) -> Any:
            return xp.sin(t["a"]).sum() * t["b"][0] + t["b"][1].sum()

        ours, theirs = both(f)
        agree(ad.vmap(ours, in_axes)(d), jax.vmap(theirs, in_axes)(d))


def test_results_that_all_examples_share() -> None:
    x = real(4, 2)
    mine = ad.vmap(lambda a: (a, ad.ones(2, dtype=ad.float64), 2.5), out_axes=(0, None, None))(x)
    agree(mine, jax.vmap(lambda a: (a, jnp.ones(2), jnp.asarray(2.5)), out_axes=(0, None, None))(x))
    agree(ad.vmap(lambda a: (2.5, True, 3))(x), (np.full(4, 2.5), np.full(4, True), np.full(4, 3)))
    agree(ad.vmap(lambda: ad.ones(2, dtype=ad.float64), axis_size=3)(), np.ones((3, 2)))
    agree(ad.vmap(lambda a: a + 1, None, axis_size=3)(x[0]), np.stack([x[0] + 1] * 3))
    agree(ad.vmap(lambda a: a * 2, axis_size=4)(x), x * 2)


def test_batches_in_batches() -> None:
    x, y = real(4, 3), real(5, 3)
    for f, axes in ((lambda a, b: a @ b, [(None, 0), (0, None)]), (lambda a, b: a * b.sum(), [(0, None), (None, 0)])):
        agree(ad.vmap(ad.vmap(f, axes[0]), axes[1])(x, y), jax.vmap(jax.vmap(f, axes[0]), axes[1])(x, y))
    cube = real(2, 3, 4)
    agree(
        ad.vmap(ad.vmap(ad.vmap(ad.exp, 0, 0), 1, 1), 1, 2)(cube),
        jax.vmap(jax.vmap(jax.vmap(jnp.exp, 0, 0), 1, 1), 1, 2)(cube),
    )


def test_batches_of_nothing_and_of_one() -> None:
    for n in (0, 1):
        x = real(n, 3)
        agree(ad.vmap(lambda a: (a.sum(), a[:2]))(x), jax.vmap(lambda a: (a.sum(), a[:2]))(x))
        agree(ad.vmap(ad.grad(lambda a: (a**2).sum()))(x), 2 * x)


def test_keyword_arguments_have_their_first_axis_split() -> None:
    x, y = real(4, 3), real(4)
    agree(ad.vmap(lambda a, *, k: a * k)(x, k=y), jax.vmap(lambda a, *, k: a * k)(x, k=y))
    agree(ad.vmap(lambda k: k["u"] * 2)(k={"u": x}), x * 2)


def test_per_example_gradients() -> None:
    ours, theirs = both(loss)
    each = (PARAMETERS, XS, YS)
    value, wanted = expected(lambda f: jax.vmap(jax.value_and_grad(f), (None, 0, 0)), theirs, each)
    agree(ad.vmap(ad.grad(ours), (None, 0, 0))(*each), wanted)
    agree(ad.vmap(ad.value_and_grad(ours), (None, 0, 0))(*each), (value, wanted))


def test_jacobians_and_batches() -> None:
    ours, theirs = both(lambda xp, x: xp.sin(x) * x.sum())
    x = real(4, 3)
    each = expected(lambda f: jax.vmap(jax.jacrev(f)), theirs, (x,))
    whole = expected(lambda f: jax.jacrev(jax.vmap(f)), theirs, (x,))
    columns = expected(lambda f: jax.jacrev(jax.vmap(f, 1, 1)), theirs, (x,))
    for mode in ("reverse", "forward", "auto"):
        agree(ad.vmap(ad.jacobian(ours, mode=mode))(x), each)
        agree(ad.jacobian(ad.vmap(ours), mode=mode)(x), whole)
        agree(ad.jacobian(ad.vmap(ours, 1, 1), mode=mode)(x), columns)
    energy, theirs_energy = (lambda x: ours(x).sum()), (lambda x: theirs(x).sum())
    hessians = expected(lambda f: jax.vmap(jax.hessian(f)), theirs_energy, (x,))
    agree(ad.vmap(ad.hessian(energy))(x), hessians)
    agree(ad.vmap(lambda t: ad.hvp(energy, (x[0],), (t,)))(np.eye(3)), hessians[0])  # one product per unit vector
    diagonal = np.zeros((4, 3, 4, 3))
    diagonal[range(4), :, range(4)] = hessians
    agree(ad.hessian(lambda x: ad.vmap(energy)(x).sum())(x), diagonal)
    agree(
        ad.vmap(lambda p, t: ad.jvp(ours, (p,), (t,)), (0, None))(x, X),
        jax.vmap(lambda p, t: jax.jvp(theirs, (p,), (t,)), (0, None))(x, X),
    )


def test_pullbacks_and_derivatives_inside_of_later_transforms() -> None:
    """Jacobians as JAX's documentation makes them: batches of products."""
    ours, theirs = both(vector)
    in_x, in_y = expected(jax.jacrev, theirs, (X, Y), (0, 1))
    _, pullback = ad.vjp(ours, X, Y)
    basis = np.eye(12).reshape(12, 3, 4)
    agree(ad.vmap(pullback)(basis), (in_x.reshape(12, 3), in_y.reshape(12, 4)))
    _, along = ad.linearize(ours, X, Y)
    agree(ad.vmap(along, (0, None), -1)(np.eye(3), np.zeros(4)), in_x)
    c = real(3, 4)
    pulled = np.tensordot(c, in_x, 2)
    agree(ad.grad(lambda c: (pullback(c)[0] ** 2).sum())(c), 2 * in_x @ pulled)
    agree(ad.jvp(lambda t: along(t, Y), (X,), (X,)), (in_x @ X + in_y @ Y, in_x @ X))
    hidden = ad.asarray(c).require_grad()  # also where the pullback knows no gradients
    agree((pullback(hidden)[0] ** 2).sum().backward()[hidden].numpy(), 2 * in_x @ pulled)
    transposed = ad.linear_transpose(lambda x: 3 * x[:2], X)
    agree(ad.vmap(transposed)(np.eye(2)), (3 * np.eye(2, 3),))


def test_random_functions() -> None:
    """What runs the function again draws the same numbers again."""

    def f(x: Any) -> Any:
        return x * ad.random.normal(3, dtype=ad.float64)

    value, pullback = ad.vjp(f, np.ones(3))
    agree(pullback(np.ones(3)), (value,))
    agree(ad.grad(lambda c: pullback(c)[0].sum())(X), value)
    value, along = ad.linearize(f, np.ones(3))
    agree(along(np.ones(3)), value)
    agree(ad.jvp(along, (X,), (np.ones(3),))[1], value)
    for mode in ("reverse", "forward", "auto"):  # the last runs a function of more results than arguments twice
        found, drawn = ad.jacobian(lambda x: ((y := f(x)), y.detach()), mode=mode, has_aux=True)(np.ones(3))
        agree(found, np.diag(drawn))
    found = ad.jacobian(lambda x: (f(x), x), mode="auto")(np.ones(3))[0]
    assert np.count_nonzero(found) == 3
    assert len({tuple(f(ad.ones(3)).tolist()) for _ in range(3)}) == 3


# --- transposes, constants -----------------------------------------------------------------------


NOT_LINEAR: dict[str, Any] = {
    "square": lambda x: x * x,
    "sine": ad.sin,
    "relu": ad.nn.relu,
    "abs": ad.abs,
    "a constant of the argument": lambda x: x * ad.stop_gradient(x),
    "in one of several": lambda x: {"a": x, "b": [x[0] ** 3]},
}


@pytest.mark.parametrize("name", NOT_LINEAR)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
def test_what_is_zero_at_zero_and_not_linear(name: str, dtype: Any) -> None:
    f, x = NOT_LINEAR[name], np.ones(4, dtype)
    if name == "relu" and dtype is np.complex128:
        pytest.skip("of real numbers alone")
    with pytest.raises(ad.errors.ArgumentError, match="not linear"):
        ad.linear_transpose(f, x)
    one = ad.vmap(lambda a, x: ad.vmap(lambda b: ad.linear_transpose(lambda x: (f(x), 0 * a * b * x), x))(x), (0, None))
    with pytest.raises(ad.errors.ArgumentError, match="not linear"):
        one(x, x[:, None])
    with pytest.raises(ad.errors.ArgumentError, match="not linear"):
        ad.linear_transpose(lambda x, y: x * y, x, x)  # in each, and not in both


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_what_is_linear_is_transposed(dtype: Any) -> None:
    x = np.linspace(0.5, 2.0, 300).astype(dtype)
    for f in (ad.cumulative_sum, lambda x: x[::-1] * 1e3, lambda x: ad.conj(x) - x, lambda x: (x.sum(), x[:0])):
        ad.linear_transpose(f, x)
    nested = ad.vmap(
        lambda a: ad.vmap(lambda b: ad.linear_transpose(lambda x: (x * a, x * b, x), a)((a, a, a))[0])(x[:3])
    )
    expected = (x[:2, None] + x[:3] + 1) * x[:2, None]
    np.testing.assert_allclose(nested(x[:2]), expected, rtol=8 * np.finfo(dtype).eps)


def test_linear_transpose() -> None:
    a = cplx(2, 3)

    def f(xp: Any, x: Any, y: Any) -> Any:
        return xp.asarray(a) @ x + y.sum(), {"flip": x[::-1]}

    ours, theirs = both(f)
    cotangents = cplx(2), {"flip": cplx(3)}
    agree(
        ad.linear_transpose(ours, Z, cplx(2))(cotangents),
        jax.linear_transpose(theirs, Z, cplx(2))(cotangents),
    )
    agree(ad.linear_transpose(lambda x: x.astype(ad.float64) * 2, np.float32(np.inf))(1.0), (np.float32(2),))
    agree(ad.vmap(lambda y: ad.linear_transpose(lambda x: x * y, y)(y)[0])(XS), XS**2)
    agree(ad.grad(lambda y: ad.linear_transpose(lambda x: x * y, y)(y)[0].sum())(X), 2 * X)
    with pytest.raises(ad.errors.ArgumentError, match="not linear"):
        ad.linear_transpose(lambda x: x + 1, X)
    with pytest.raises(ad.errors.ArgumentError, match="not linear"):
        ad.vmap(lambda y: ad.linear_transpose(lambda x: x + y, y)(y)[0])(XS)


def test_stop_gradient() -> None:
    def f(xp: Any, x: Any) -> Any:
        stop = ad.stop_gradient if xp is ad else jax.lax.stop_gradient
        held = stop({"x": xp.sin(x), "n": None})
        return (held["x"] * x**2).sum()

    ours, theirs = both(f)
    for transform, other in (
        (ad.grad(ours), jax.grad(theirs)),
        (ad.hessian(ours), jax.hessian(theirs)),
        (lambda x: ad.jvp(ours, (x,), (x,)), lambda x: jax.jvp(theirs, (x,), (x,))),
        (lambda x: ad.vmap(ours)(x[:, None]), lambda x: jax.vmap(theirs)(x[:, None])),
    ):
        agree(transform(X), jax.jit(other)(X))


# --- trees of every sort -------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


@dataclasses.dataclass(frozen=True)
class Model:
    first: Layer
    rest: list[Layer]
    built: str = dataclasses.field(default="here", init=False)


class Registered:
    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name


optree.register_pytree_node(
    Registered, lambda r: ([r.value], r.name), lambda name, children: Registered(children[0], name), namespace="adjoint"
)


def _layer(scale: float) -> Layer:
    return Layer(scale * np.eye(2), np.full(2, scale))


def _through(layer: Layer, x: Any) -> Any:
    return ad.tanh(layer.weight @ x + layer.bias)


def _energy(model: Model, x: Any) -> Any:
    x = _through(model.first, x)
    for layer in model.rest:
        x = _through(layer, x)
    return (x**2).sum()


def test_dataclasses_named_tuples_and_registered_types() -> None:
    x = np.array([0.3, -0.5])
    model = Model(_layer(0.5), [_layer(1.5), _layer(-0.7)])
    gradient = ad.grad(_energy)(model, x)
    assert isinstance(gradient, Model)
    assert isinstance(gradient.rest[1], Layer)
    wanted = ad.grad(lambda ws: _energy(Model(Layer(*ws[0]), [Layer(*w) for w in ws[1:]]), x))(
        [(layer.weight, layer.bias) for layer in (model.first, *model.rest)]
    )
    for layer, (weight, bias) in zip((gradient.first, *gradient.rest), wanted, strict=True):
        agree([layer.weight, layer.bias], [weight, bias])

    pair = ad.vmap(lambda p: Pair(p.left * 2, p.right.sum()), (Pair(0, 1),))(Pair(XS, XS.T))
    assert isinstance(pair, Pair)
    agree([*pair], [2 * XS, XS.sum(axis=1)])
    tangent = ad.jvp(lambda p: Pair(p.right, p.left * p.right), (Pair(X, X),), (Pair(X, 2 * X),))[1]
    agree([*tangent], [2 * X, X * X * 3])

    own = ad.grad(lambda r: (r.value**2).sum())(Registered(X, "mine"))
    assert isinstance(own, Registered)
    assert own.name == "mine"
    agree(own.value, 2 * X)
    batch = ad.vmap(lambda r: Registered(r.value.sum(), r.name))(Registered(XS, "batch"))
    assert batch.name == "batch"
    agree(batch.value, XS.sum(axis=1))
    nested = ad.jacobian(lambda d: Pair(d["m"].weight.sum(), d["m"].bias))({"m": _layer(1.0)})
    agree(nested.left["m"].weight, np.ones((2, 2)))
    agree(nested.right["m"].bias, np.eye(2))


@dataclasses.dataclass
class Named:
    weight: Any
    activation: Any = dataclasses.field(default=ad.tanh, metadata={"static": True})
    name: str = dataclasses.field(default="first", metadata={"static": True})

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight @ x)


def test_static_fields_of_dataclasses_go_along() -> None:
    layer = Named(np.eye(2), ad.sin, "mine")
    gradient = ad.grad(lambda layer: layer(X[:2]).sum())(layer)
    assert (gradient.activation, gradient.name) == (ad.sin, "mine")
    agree(gradient.weight, np.outer(np.cos(X[:2]), X[:2]))
    stack = Named(np.stack([np.eye(2), 2 * np.eye(2)]))
    batch = ad.vmap(lambda layer: dataclasses.replace(layer, weight=layer(X[:2])))(stack)
    assert batch.name == "first"
    agree(batch.weight, np.tanh([X[:2], 2 * X[:2]]))
    last, _ = ad.scan(lambda c, _: (dataclasses.replace(c, weight=c.weight * 2), None), layer, length=3)
    agree(last.weight, 8 * np.eye(2))
    with pytest.raises(ad.errors.ArgumentError, match="do not have the structure of the primals"):
        ad.jvp(lambda layer: layer.weight, (layer,), (Named(np.eye(2), ad.cos, "mine"),))


def test_none_and_empty_containers_stay() -> None:
    found = ad.grad(lambda d: d["x"].sum())({"x": X, "none": None, "empty": [], "nested": {"t": ()}})
    assert {**found, "x": None} == {"x": None, "none": None, "empty": [], "nested": {"t": ()}}
    assert ad.vmap(lambda d: (d["none"], d["x"]))({"x": X, "none": None})[0] is None
    assert ad.grad(lambda d: 3.0)({}) == {}
    agree(ad.jacobian(lambda x: (x, None, {}))(X)[0], np.eye(3))


# --- arrays of every sort ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_derivatives_have_the_dtype_of_what_they_are_taken_by(dtype: str) -> None:
    for shape in ((), (3,), (0, 2), (2, 1)):
        x = (cplx(*shape) if "c" in dtype else real(*shape)).astype(dtype)
        kind = np.ndarray if shape else np.generic
        f: Any = lambda x: (x * x.conj()).real.sum() if "c" in dtype else (x * x).sum()
        value, gradient = ad.value_and_grad(f)(x)
        assert isinstance(gradient, kind)
        assert (gradient.dtype, gradient.shape) == (dtype, shape)
        assert value.dtype == np.abs(x).dtype
        np.testing.assert_allclose(gradient, 2 * x, rtol=1e-3 if dtype == "float16" else 1e-6)
        moved = ad.jvp(ad.exp, (x,), (x,))[1]
        assert isinstance(moved, kind)
        assert (moved.dtype, moved.shape) == (dtype, shape)
        (pulled,) = ad.vjp(ad.exp, x)[1](x)
        assert (pulled.dtype, pulled.shape) == (dtype, shape)
        assert ad.linearize(ad.exp, x)[1](x).dtype == dtype
        hessian = ad.hessian(f)(x) if "f" in dtype else None
        assert hessian is None or (hessian.dtype, hessian.shape) == (dtype, shape * 2)


def test_python_numbers_are_64_bits_wide() -> None:
    for found in (
        ad.grad(lambda x: x**2)(0.1),
        ad.value_and_grad(lambda x: 0.1)(0.1)[0],
        ad.jvp(lambda x: 0.1, (1.0,), (1.0,))[0],
        ad.vjp(lambda x: 0.1, 1.0)[0],
        ad.linearize(lambda x: 0.1, 1.0)[0],
        ad.vmap(lambda x: 0.1)(np.zeros(1))[0],
        ad.jvp(lambda x: ad.vjp(lambda y: 0.1, x)[0] * x, (1.0,), (1.0,))[1],
    ):
        assert isinstance(found, np.float64)
        assert found in (0.2, 0.1)
    assert isinstance(ad.grad(lambda z: (z * z).real)(1 + 2j), np.complex128)


def test_tensors_give_tensors_of_their_device() -> None:
    for name in ("numpy", "reference", "autodiff<numpy>", "autodiff<autodiff<numpy>>"):
        device = ad.device(name)
        x = ad.asarray(X, device=device)
        for out in (
            ad.grad(lambda x: (x**2).sum())(x),
            ad.value_and_grad(lambda x: (1.5, x), has_aux=True)(x),
            ad.jvp(lambda x: (x, 2.5), (x,), (X,)),
            ad.jvp(lambda x: x, (X,), (x,)),
            ad.vjp(lambda x: (x * x, 2.5), x)[0],
            ad.vjp(lambda x: x * x, x)[1](X),
            ad.linearize(lambda x: x * x, x)[1](X),
            ad.jacobian(lambda x: x)(x),
            ad.hessian(lambda x: (x**3).sum())(x),
            ad.hvp(lambda x: (x**3).sum(), (X,), (x,)),
            ad.vmap(lambda x: (x, 2.5))(x),
            ad.vmap(lambda x, y: x * y, (0, None))(X, x),
            ad.grad(lambda x, y: (x * y).sum())(X, x),
            ad.grad(lambda x, *, y: (x * y).sum(), "y")(X, y=x),
        ):
            for leaf in flat(out):
                assert isinstance(leaf, ad.Tensor)
                assert leaf.device is device


def test_numpy_arguments_are_computed_on_the_leaf_of_the_default_device() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.device.leaf)
        return x.sum() + ad.ones(2).sum()

    for name in ("numpy", "reference", "autodiff<reference>"):
        with ad.use_device(name):
            agree(ad.grad(f)(X), np.ones(3))
        assert seen[-1] is ad.device(name).leaf


def test_answers_are_the_callers_own() -> None:
    """Writable, and of memory that neither arguments nor other answers have."""
    x, y, t = real(2, 3), real(2, 3), real(2, 3)
    constant = real(2, 3)

    def same(x: Any, y: Any) -> Any:
        return x, y, x + 0 * y, constant

    def total(x: Any, y: Any) -> Any:
        return (x + y).sum(), (x, y, constant)

    answers = {
        "grad": lambda: ad.grad(total, (0, 1), has_aux=True)(x, y)[0],
        "aux": lambda: ad.value_and_grad(total, (0, 1), has_aux=True)(x, y)[0][1][:2],
        "vjp": lambda: ad.vjp(same, x, y)[0],
        "pullback": lambda: ad.vjp(same, x, y)[1]((t, t, t, t)),
        "jvp": lambda: ad.jvp(same, (x, y), (t, t)),
        "linearize": lambda: ad.linearize(same, x, y)[0],
        "derivative": lambda: ad.linearize(same, x, y)[1](t, t),
        "transpose": lambda: ad.linear_transpose(lambda x: x, x)(t),
        "jacobian": lambda: ad.jacobian(same, (0, 1), "reverse")(x, y),
        "columns": lambda: ad.jacobian(same, (0, 1), "forward")(x, y),
        "hvp": lambda: ad.hvp(lambda x, y: (x * y).sum(), (x, y), (t, t)),
        "hessian": lambda: ad.hessian(lambda x, y: (x * y).sum(), (0, 1))(x, y),
        "vmap": lambda: ad.vmap(same)(x, y),
        "shared": lambda: ad.vmap(lambda x, y: (x, y, y), (0, None), (0, None, None))(x, y),
    }
    for name, answer in answers.items():
        given = [x, y, t, constant]
        for leaf in flat(answer()):
            if isinstance(leaf, np.ndarray):
                assert leaf.flags.writeable, name
                assert not any(np.shares_memory(leaf, other) for other in given), name
                given.append(leaf)


def test_later_writes_to_the_arguments_change_nothing() -> None:
    x, y, c = real(3), real(3), real(3)
    _, pullback = ad.vjp(lambda x, y: x * x * y * c, x, y)
    _, along = ad.linearize(lambda x, y: x * x * y * c, x, y)
    ones = np.ones(3)
    before = pullback(ones), along(ones, ones)
    x[:], y[:], c[:] = 100, 100, 100
    agree((pullback(ones), along(ones, ones)), before)


def test_a_function_may_assign_to_its_argument() -> None:
    def f(x: Any) -> Any:
        x += 1.0
        x[0] = 2.0 * x[1]
        return (x * x).sum()

    def theirs(x: Any) -> Any:
        x = x + 1.0
        x = x.at[0].set(2.0 * x[1])
        return (x * x).sum()

    gradient = expected(jax.grad, theirs, (X,))
    agree(ad.grad(f)(X), gradient)
    agree(ad.hessian(f)(X), expected(jax.hessian, theirs, (X,)))
    agree(ad.jvp(f, (X,), (X,)), (np.asarray(theirs(jnp.asarray(X))), np.asarray(gradient @ X)))
    agree(ad.vmap(ad.grad(f))(XS), expected(lambda f: jax.vmap(jax.grad(f)), theirs, (XS,)))
    agree(ad.vmap(f)(XS), expected(jax.vmap, theirs, (XS,)))
    for mode in ("reverse", "forward"):
        agree(ad.jacobian(f, mode=mode)(X), gradient)
    x = ad.asarray(X, copy=True)
    ad.grad(f)(x)
    agree(x.numpy(), X)


def test_arrays_of_another_byte_order() -> None:
    x = np.array([1.0, 2.0], ">f8")
    for found in (
        ad.grad(lambda x: (x**2).sum())(x),
        ad.vmap(lambda x: 2 * x)(x),
        ad.jvp(lambda x: x * x, (x,), (x,))[0],
    ):
        assert found.dtype == np.dtype("<f8")
        assert found.dtype.isnative
    doubled = ad.custom_vjp(lambda x: 2 * x)
    doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    np.testing.assert_array_equal(ad.grad(lambda x: doubled(x).sum())(x), [2.0, 2.0])
    assert ad.cond(True, lambda x: x, ad.sin, x).dtype.isnative


def test_signatures_are_those_of_jax() -> None:
    """Positions of parameters, and the names of those that are given by name; the function itself is f here."""
    jax = peer("jax")
    for name in ("grad", "value_and_grad", "hessian", "jvp", "vjp", "linearize", "linear_transpose", "vmap"):
        _same_parameters(getattr(ad, name), getattr(jax, name), skip=1)
    for name in ("cond", "switch", "while_loop", "fori_loop", "map"):
        _same_parameters(getattr(ad, name), getattr(jax.lax, name))
    for name in ("custom_vjp", "custom_jvp"):
        _same_parameters(getattr(ad, name), getattr(jax, name), skip=1)


def _same_parameters(mine: Any, theirs: Any, skip: int = 0) -> None:
    ours, jaxs = (list(inspect.signature(f).parameters.values())[skip:] for f in (mine, theirs))
    for p in ours:
        if p.name == "randomness":
            continue
        (twin,) = [q for q in jaxs if q.name == p.name]
        if p.kind is not p.KEYWORD_ONLY:
            assert (p.kind, ours.index(p)) == (twin.kind, jaxs.index(twin)), (mine.__name__, p.name)


def test_levels_have_the_options_of_the_device() -> None:
    """Strong zeros and checkpointing are the user's choice, and a transform's own level makes it too."""

    def f(x: Any) -> Any:
        return ad.where(x > 0, ad.sqrt(x), 0.0).sum()

    x = np.array([0.0, 4.0])
    assert np.isnan(ad.grad(f)(x)[0])
    strong = ad.Autodiff(ad.NumPy(), strong_zero=True)
    with ad.use_device(strong):
        np.testing.assert_array_equal(ad.grad(f)(x), [0, 0.25])
        np.testing.assert_array_equal(ad.vjp(f, x)[1](1.0)[0], [0, 0.25])
        np.testing.assert_array_equal(ad.jacobian(f, mode="reverse")(x), [0, 0.25])
        np.testing.assert_array_equal(ad.vmap(ad.grad(f))(x[None]), [[0, 0.25]])
    given = ad.tensor(x, device=strong)
    np.testing.assert_array_equal(ad.grad(f)(given).numpy(), [0, 0.25])

    def levels(x: Any) -> Any:
        seen.append(x.device.checkpointing)
        return (x * x).sum()

    seen: list[Any] = []
    ad.grad(levels)(x)
    with ad.use_device(ad.Autodiff(ad.NumPy(), checkpointing="balanced")):
        ad.grad(levels)(x)
        ad.hessian(levels)(x)
    assert seen[:2] == [None, "balanced"]
    assert set(seen[1:]) == {"balanced"}


@pytest.mark.parametrize("convert", [math.sin, float, int, complex, lambda x: x * float(x)])
def test_numbers_of_python_are_not_made_of_what_a_transform_follows(convert: Any) -> None:
    """They would be constants, and the derivative zero: nobody would see."""
    for derive in (
        ad.grad(convert),
        ad.jacobian(convert),
        ad.hessian(convert),
        lambda x: ad.jvp(convert, (x,), (1.0,)),
    ):
        with pytest.raises(ad.errors.TrackedError, match=r"inside a transform .* x.item\(\) reads"):
            derive(0.5)
    w = ad.tensor(0.5).require_grad()
    assert float(w * 2) == 1.0  # of a graph of the user's own it reads
    assert ad.grad(lambda x: x * float(ad.stop_gradient(x)))(2.0) == 2.0
    assert ad.grad(lambda x: x * x.item())(2.0) == 2.0


# --- ad.tree ---


def test_trees_are_flattened_and_built_again() -> None:
    x = ad.tensor([1.0, 2.0])
    tree = {"b": [x, 3.0], "a": (None, np.ones(2))}
    leaves, structure = ad.tree.flatten(tree)
    assert leaves[1] is x
    assert ad.tree.paths(structure) == ["['a'][1]", "['b'][0]", "['b'][1]"]
    again = ad.tree.unflatten(structure, leaves)
    assert again["b"][0] is x
    assert again["a"][0] is None
    assert ad.tree.structure(again) == structure
    assert [y is z for y, z in zip(ad.tree.leaves(again), leaves, strict=True)] == [True] * 3
    assert ad.tree.map(lambda *pair: pair, (1, [2]), (3, [4])) == ((1, 3), [(2, 4)])
    with pytest.raises(ad.errors.ArgumentError, match="3 leaves, received 2"):
        ad.tree.unflatten(structure, leaves[:2])
    with pytest.raises(ad.errors.ArgumentError, match="do not go together"):
        ad.tree.map(lambda x, y: x, [1], (1,))


def test_what_a_class_refuses_is_its_own_error() -> None:
    @dataclasses.dataclass
    class Positive:
        value: Any

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError("not negative")

    structure = ad.tree.structure(Positive(1.0))
    with pytest.raises(ValueError, match="not negative") as caught:
        ad.tree.unflatten(structure, [-1.0])
    assert not isinstance(caught.value, ad.errors.AdjointError)
