"""`vmap`, alone and with derivatives: what JAX gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from with_jax import PARAMETERS, XS, YS, X, Y, agree, both, expected, jax, jnp, loss, real, vector

import adjoint as ad


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
