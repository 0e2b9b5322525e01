"""The transforms on functions of trees: what JAX gives, for the same functions and the same options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from with_jax import SCALARS, VECTORS, XS, X, agree, both, chosen, cplx, every, expected, jax, real

import adjoint as ad

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


def test_the_gradient_by_a_leaf_is_tracked_by_it() -> None:
    """A leaf of `require_grad` as an argument: second derivatives flow into it, none is lost silently."""
    w = ad.tensor([1.0, 2.0]).require_grad()

    def cube(w: Any) -> Any:
        return (w**3).sum()

    assert ad.grad(cube)(w).is_tracked()
    penalty = cube(w) + (ad.grad(cube)(w) ** 2).sum()
    np.testing.assert_allclose(penalty.backward()[w].numpy(), [3 + 36, 12 + 288])
    for value in (w.inner(), w.detach()):  # the way out
        assert not ad.grad(cube)(value).is_tracked()
        assert not (value - 0.1 * ad.grad(cube)(value)).is_tracked()
    assert (w - 0.1 * ad.grad(cube)(w.inner())).is_tracked()  # by w itself
