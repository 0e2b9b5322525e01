"""`backward(create_graph=True)`: derivatives of derivatives on one level agree with those on nested levels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, Draw
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad
from adjoint.decorators.batched import Batch
from adjoint.graph.remat import Remat
from adjoint.tensor import wrap

Arrays = Sequence[np.ndarray[Any, Any]]
PLAIN = ad.Autodiff(ad.NumPy())
DEVICES = {
    "plain": PLAIN,
    "balanced": ad.Autodiff(ad.NumPy(), checkpointing="balanced"),
    "strong zero": ad.Autodiff(ad.NumPy(), strong_zero=True),
}


def _total(out: Any, weights: list[Any]) -> Any:
    """A real scalar: the sum of the floating results, each times weights that are drawn at the first call."""
    results = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if x.dtype.kind in "fc"]
    if not weights:
        rng = np.random.default_rng(1)
        weights += [rng.standard_normal(x.shape) for x in results]
    return sum(
        [
            (ad.real(x) * w + (ad.imag(x) * w / 2 if x.dtype.kind == "c" else 0)).sum()
            for x, w in zip(results, weights, strict=True)
        ]
    )


def _along(gradients: Sequence[Any], directions: Arrays) -> Any:
    """A real scalar of gradients: not their linear image, so that third derivatives count as well."""
    parts = [
        ad.real(g) * d + (ad.imag(g) * d if g.dtype.kind == "c" else 0)
        for g, d in zip(gradients, directions, strict=True)
    ]
    return sum([(p + p * p / 4).sum() for p in parts])


def recorded(f: Callable[..., Any], args: Arrays, device: Any, order: int) -> list[np.ndarray[Any, Any]]:
    """Derivatives of this order by `backward` on one level."""
    leaves = [ad.asarray(x, device=device).require_grad() for x in args]
    with ad.use_device(device):
        y = _total(f(*leaves), [])
        for n in range(order - 1):
            if not y.is_tracked():
                break
            grads = y.backward(create_graph=True, wrt=leaves)
            assert all(g.device is device for g in grads.values())
            y = _along([grads.get(x, ad.zeros_like(x)) for x in leaves], _directions(args, n))
        found = [x.grad(y.backward(retain_graph=True)) if y.is_tracked() else None for x in leaves]
    return [np.zeros(x.shape, x.dtype) if g is None else g.numpy() for x, g in zip(leaves, found, strict=True)]


def nested(f: Callable[..., Any], args: Arrays, order: int) -> list[np.ndarray[Any, Any]]:
    """The same by as many levels."""
    every = tuple(range(len(args)))
    g: Callable[..., Any] = lambda *xs: _total(f(*xs), [])
    for n in range(order - 1):
        g = lambda *xs, g=g, n=n: _along(ad.grad(g, every)(*xs), _directions(args, n))
    return [x.numpy() for x in ad.grad(g, every)(*[ad.tensor(x) for x in args])]


def _directions(args: Arrays, n: int) -> Arrays:
    rng = np.random.default_rng(10 + n)
    return [rng.standard_normal(np.shape(x)) for x in args]


def agree(f: Callable[..., Any], args: Arrays, order: int = 2, kinds: Sequence[str] = tuple(DEVICES)) -> None:
    expected = nested(f, args, order)
    for kind in kinds:
        for one, other in zip(recorded(f, args, DEVICES[kind], order), expected, strict=True):
            scale = 1 + np.abs(other[np.isfinite(other)]).max(initial=0)
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10 * scale, err_msg=kind)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=3)
@given(data=st.data())
def test_every_public_function(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    agree(f, args)


# --- functions with rules, loops and devices -----------------------------------------------------


@ad.custom_vjp
def _ruled(x: Any, y: Any) -> Any:
    return ad.sin(x) * y


def _forward(x: Any, y: Any) -> Any:
    kept = ad.cos(x)  # neither an argument nor a result
    return ad.sin(x) * y, (kept, ad.sin(x), y)


_ruled.defvjp(_forward, lambda saved, g: (g * saved[0] * saved[2] * 1.5, g * saved[1]))  # not its true derivative


@ad.custom_vjp
def _noisy(x: Any) -> Any:
    return x * 1.0


def _noisy_forward(x: Any) -> Any:
    noise = ad.random.normal(shape=x.shape, dtype=ad.float64)
    return x * noise, x * x * noise


_noisy.defvjp(_noisy_forward, lambda saved, g: (g * saved,))


@ad.custom_jvp
def _pushed(x: Any, n: int) -> Any:
    return x**n


_pushed.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * tangents[0] * ad.exp(primals[0])))


def _scanned(every: int | None) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        step = lambda carry, row: (ad.tanh(carry * w + row), carry * row)
        last, rows = ad.scan(step, x[0], x, checkpoint_every=every)
        return last + rows.sum()

    return f


def _looped(x: Any) -> Any:
    return ad.fori_loop(0, 3, lambda i, y: ad.sin(y) * x, x)


def _rooted(a: Any) -> Any:
    return ad.implicit.root(lambda x, a: x**3 + x * a - 2.0, ad.ones(a.shape, dtype=ad.float64), a)


def _integrated(**options: Any) -> Callable[..., Any]:
    def f(y: Any, a: Any) -> Any:
        times = ad.linspace(0.0, 0.5, 3, dtype=ad.float64)
        return ad.odeint(lambda y, t, a: -a * y * y, y, times, a, **{"rtol": 1e-10, "atol": 1e-10, **options})

    return f


def _event(y: Any, a: Any) -> Any:
    decay = lambda y, t, a: -a * y * y
    t, y = ad.odeint_event(decay, y, (0.0, 5.0), a, event=lambda y, t, a: y.sum() - 2 * a, rtol=1e-10, atol=1e-10)
    return t * y


def _of_users(x: Any, y: Any) -> Any:
    cubic = ad.primitive("one_level_cubic", lambda x, y: x**3 * y, derivative={
        "x": lambda B, g, x, y: B.multiply(g, B.multiply(B.multiply(B.multiply(x, x), 3.0), y)),
        "y": lambda B, g, x: B.multiply(g, B.multiply(x, B.multiply(x, x))),
    })  # fmt: skip
    return cubic(x, y)


def _there_and_back(x: Any, y: Any) -> Any:
    there = (x * y).to_device(ad.ArrayAPI(np))
    return (ad.sin(there) * there).to_device("numpy") * x


def _balanced(x: Any, y: Any) -> Any:
    h = ad.checkpoint(lambda x, y: ad.sin(ad.exp(x) * y) * x)(x, y)
    return ad.checkpoint(lambda h: ad.tanh(h) @ h, policy="matmuls")(h) + ad.checkpoint(ad.exp, policy=200)(h).sum()


def _complex(x: Any, y: Any) -> Any:
    z = ad.exp((x + 1j * y) * 0.5j) * ad.fft.fft(x * y)
    return ad.abs(z) + (z * ad.conj(z) * z).imag


def _with_integers(x: Any, y: Any) -> Any:
    values, places = ad.topk(x * y, 2)
    return values**3 + x[places] * places


def _assigned(x: Any, y: Any) -> Any:
    out = x * 2.0
    out[1:] = y[1:] * x[0]
    out[0] += y[2]
    return out * out


def _several(x: Any, y: Any) -> Any:
    m = ad.outer(x, y) + 3 * ad.eye(3, dtype=ad.float64)
    q, r = ad.linalg.qr(m)
    values, vectors = ad.linalg.eigh(m @ m.T)
    return q * r + values + ad.abs(vectors) + ad.linalg.svd(m)[1]


def _drawn(x: Any, y: Any) -> Any:
    ad.random.seed(3)
    return ad.random.gamma(ad.exp(x), scale=ad.exp(y)) + ad.nn.dropout(x * y, 0.5)


X, Y = np.array([0.3, -0.7, 1.1]), np.array([0.9, 0.4, -0.6])
SELECTED: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "custom_vjp": (_ruled, [X, Y]),
    "custom_jvp": (lambda x: _pushed(x, 3), [X]),
    "checkpoint": (_balanced, [X, Y]),
    "checkpoint of a rule": (ad.checkpoint(_ruled), [X, Y]),
    "scan": (_scanned(None), [X, Y[0]]),
    "scan in chunks": (_scanned(2), [X, Y[0]]),
    "fori_loop": (_looped, [X]),
    "root": (_rooted, [X + 2]),
    "odeint, steps": (_integrated(gradient="direct"), [X + 1, Y[0]]),
    "odeint, Radau": (_integrated(method="Radau", rtol=1e-3, atol=1e-3), [X + 1, Y[0]]),
    "odeint_event": (_event, [X + 1, Y[0]]),
    "odeint, adjoint": (_integrated(gradient="adjoint"), [X + 1, Y[0]]),
    "a primitive of users": (_of_users, [X, Y]),
    "devices": (_there_and_back, [X, Y]),
    "complex": (_complex, [X, Y]),
    "integers": (_with_integers, [X, Y]),
    "assignment": (_assigned, [X, Y]),
    "several results": (_several, [X, Y]),
    "random": (_drawn, [X, Y]),
    "grad inside": (lambda x, y: ad.grad(lambda x: (ad.sin(x) * x * y).sum())(x) * y, [X, Y]),
    "vmap inside": (lambda x, y: ad.vmap(lambda a, b: ad.sin(a) * b * y)(x, y), [X, Y]),
    "jvp inside": (lambda x, y: ad.jvp(lambda x: ad.sin(x * y), (x,), (y,))[1], [X, Y]),
    "vmap of a rule": (lambda x, y: ad.vmap(_ruled)(x, y), [X, Y]),
    "hessian inside": (lambda x, y: ad.hessian(lambda x: (x**3 * y).sum())(x), [X, Y]),
}


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("name", SELECTED)
def test_functions_with_rules_loops_and_devices(name: str, order: int) -> None:
    f, args = SELECTED[name]
    if not (order == 3 and name == "odeint, adjoint"):  # which takes 10 seconds
        agree(f, args, order)


def test_the_fourth_order() -> None:
    agree(lambda x, y: ad.sin(x * y) * ad.exp(x) + x @ y, [X, Y], order=4)
    agree(lambda x: ad.linalg.inv(ad.outer(x, x) + 2 * ad.eye(3, dtype=ad.float64)), [X], order=4)
    agree(_ruled, [X, Y], order=4)


def test_random_numbers_of_a_rule_are_the_same_again() -> None:
    ad.random.seed(5)
    x = ad.tensor(X).require_grad()
    y = _noisy(x)
    noise = y.numpy() / X
    slope = y.sum().backward(create_graph=True)[x]
    np.testing.assert_allclose(slope.numpy(), X * X * noise)
    np.testing.assert_allclose(slope.sum().backward()[x].numpy(), 2 * X * noise)


# --- inside of transforms' functions -------------------------------------------------------------


def _by_backward(x: Any) -> Any:
    y = (ad.sin(x) * x * x).sum()
    return (y.backward(wrt=x)[x] ** 2 * x).sum()


def _by_grad(x: Any) -> Any:
    return (ad.grad(lambda x: (ad.sin(x) * x * x).sum())(x) ** 2 * x).sum()


def _rows_by_backward(x: Any) -> Any:
    return ad.concat([(ad.sin(x) * x * x).sum().backward()[x] ** 2, x])


def _rows_by_grad(x: Any) -> Any:
    return ad.concat([ad.grad(lambda x: (ad.sin(x) * x * x).sum())(x) ** 2, x])


@ad.custom_vjp
def _scaled(x: Any) -> Any:
    return x * x


_scaled.defvjp(lambda x: (x * x, x), lambda x, g: (3 * g * x,))

NOISE = np.array([[0.5, 1.0, -0.3], [0.2, -1.0, 0.4]])
AROUND: dict[str, Callable[[Callable[..., Any], Callable[..., Any]], Any]] = {
    "grad": lambda f, _: ad.grad(f)(X),
    "value_and_grad": lambda f, _: ad.value_and_grad(f)(X),
    "grad of grad": lambda f, _: ad.grad(lambda x: (ad.grad(f)(x) ** 2).sum())(X),
    "three": lambda f, _: ad.grad(lambda x: (ad.grad(lambda x: (ad.grad(f)(x) ** 2).sum())(x) * x).sum())(X),
    "vjp": lambda _, rows: ad.vjp(rows, X)[1](np.arange(6.0)),
    "vjp of many": lambda _, rows: ad.vmap(ad.vjp(rows, X)[1])(np.eye(6)),
    "linearize": lambda _, rows: ad.linearize(rows, X)[1](Y),
    "hvp": lambda f, _: ad.hvp(f, (X,), (Y,)),
    "jvp of grad": lambda f, _: ad.jvp(ad.grad(f), (X,), (Y,)),
    "hessian": lambda f, _: ad.hessian(f)(X),
    "jacobian": lambda _, rows: ad.jacobian(rows)(X),
    "jacobian, reverse": lambda _, rows: ad.jacobian(rows, mode="reverse")(X),
    "jacobian of jacobian": lambda _, rows: ad.jacobian(ad.jacobian(rows, mode="reverse"), mode="reverse")(X),
    "vmap of grad": lambda f, _: ad.vmap(ad.grad(f))(NOISE),
    "vmap of hessian": lambda f, _: ad.vmap(ad.hessian(f))(NOISE),
    "checkpoint": lambda f, _: ad.grad(ad.checkpoint(f))(X),
    "beside a checkpoint": lambda f, _: ad.grad(lambda x: f(ad.checkpoint(lambda x: f(x) * x)(x)))(X),
    "scan": lambda f, _: ad.grad(lambda x: ad.scan(lambda c, r: (c + r * x * f(x), r), x, x)[0].sum())(X),
    "a rule": lambda f, _: ad.grad(lambda x: f(_scaled(x)))(X),
    "balanced": lambda f, _: _on("balanced", lambda: ad.grad(f)(X)),
    "strong zero": lambda f, _: _on("strong zero", lambda: ad.hessian(f)(X)),
    "tensors": lambda f, _: ad.grad(f)(ad.tensor(X)).numpy(),
    "tracked tensors": lambda f, _: _of_tracked(f),
}


def _on(kind: str, run: Callable[[], Any]) -> Any:
    with ad.use_device(DEVICES[kind]):
        return run()


def _of_tracked(f: Callable[..., Any]) -> Any:
    x = ad.tensor(X).require_grad()
    return (ad.grad(f)(x) ** 2).sum().backward()[x].numpy()


@pytest.mark.parametrize("name", AROUND)
def test_backward_inside_of_a_transform_is_followed(name: str) -> None:
    found, expected = AROUND[name](_by_backward, _rows_by_backward), AROUND[name](_by_grad, _rows_by_grad)
    for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_gradient_of_a_gradient_by_backward() -> None:
    gradient = ad.grad(lambda x: (((x**3).sum().backward()[x]) ** 2).sum())(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [36.0, 288.0])


def test_backward_of_an_outer_level_is_recorded_there() -> None:
    slope = ad.grad(lambda a: ad.grad(lambda x: x * (a**3).backward()[a])(2.0) * a)(3.0)
    assert slope == 9 * 3.0**2  # of 3 a^2 * a


def test_levels_without_reverse_mode_take_one_of_their_own() -> None:
    def f(x: Any) -> Any:
        leaf = ad.from_inner(x).require_grad()
        return (ad.sin(leaf) * leaf * leaf).sum().backward()[leaf]

    plain = ad.grad(lambda x: (ad.sin(x) * x * x).sum())
    np.testing.assert_allclose(ad.vmap(f)(NOISE), ad.vmap(plain)(NOISE))
    np.testing.assert_allclose(ad.jvp(f, (X,), (Y,)), ad.jvp(plain, (X,), (Y,)))
    np.testing.assert_allclose(ad.jacobian(f, mode="forward")(X), ad.jacobian(plain)(X))
    with pytest.raises(ad.errors.NoAutodiffError, match="from_inner"):
        ad.jvp(_rows_by_backward, (X,), (Y,))
    with pytest.raises(ad.errors.NoAutodiffError, match="from_inner"):
        ad.jacobian(_rows_by_backward, mode="forward")(X)


def test_backward_of_constants_inside_of_a_transform() -> None:
    def f(x: Any) -> Any:
        y = (x**3).sum()
        slope = y.backward(create_graph=False, retain_graph=True)[x]
        assert slope.device is x.device.inner
        return y + (slope * x).sum()

    np.testing.assert_allclose(ad.grad(f)(X), 6 * X * X)
    with pytest.raises(ad.errors.FreedGraphError, match="retain_graph"):
        ad.grad(lambda x: (lambda y: y + y.backward(retain_graph=False)[x].sum())((x**3).sum()))(X)


# --- what it gives -------------------------------------------------------------------------------


def test_gradients_are_tensors_of_the_root_s_own_device() -> None:
    x = ad.tensor(X).require_grad()
    y = (x**3).sum()
    first = y.backward(create_graph=True)
    assert first[x].device is x.device
    assert first[x].is_tracked()
    assert first[x].dtype is x.dtype
    plain = y.backward()  # was retained, and is freed now
    assert plain[x].device is x.device.inner
    with pytest.raises(ad.errors.FreedGraphError):
        y.backward()


def test_what_is_recorded_of_a_freed_graph_says_so() -> None:
    x = ad.tensor(X).require_grad()
    slope = ad.sin(x * x).sum().backward(create_graph=True, retain_graph=False)[x]
    with pytest.raises(ad.errors.FreedGraphError, match="retain_graph=True"):
        slope.sum().backward()


def test_gradients_of_cotangents_and_intermediate_results() -> None:
    x, v = ad.tensor(X).require_grad(), ad.tensor(Y).require_grad()
    h = x * x
    grads = (h * h).backward(v, create_graph=True, wrt=[x, h])
    np.testing.assert_allclose(grads[h].numpy(), 2 * X**2 * Y)
    found = grads[x].sum().backward()
    np.testing.assert_allclose(found[v].numpy(), 4 * X**3)
    np.testing.assert_allclose(found[x].numpy(), 12 * X**2 * Y)


def test_gradients_are_containers_in_both_kinds() -> None:
    x = ad.tensor(X).require_grad()
    y = (x**3).sum()
    tracked, plain = y.backward(create_graph=True), y.backward(retain_graph=True)
    for both in (tracked + plain, plain + tracked, sum([tracked, plain]), tracked * 2, 2 * tracked, tracked / 0.5):
        np.testing.assert_allclose(both[x].numpy(), 6 * X**2)
        assert both[x].device is x.device
        assert [g.is_tracked() for g in both.values()] == [True]
        assert x in both
    np.testing.assert_allclose((tracked * 2)[x].sum().backward(retain_graph=True)[x].numpy(), 12 * X)
    np.testing.assert_allclose(tracked.map(lambda g: g * g)[x].sum().backward(retain_graph=True)[x].numpy(), 36 * X**3)
    np.testing.assert_allclose((plain + plain)[x].numpy(), 6 * X**2)
    assert (plain + plain)[x].device is x.device.inner
    weight = ad.tensor(2.0, dtype=ad.float64).require_grad()
    np.testing.assert_allclose((tracked * weight)[x].sum().backward(retain_graph=True)[weight].item(), (3 * X**2).sum())
    tracked[x] = x * 2
    assert x.grad(tracked) is not None
    assert tracked.pop(x).is_tracked()
    assert x not in tracked
    stepped = x.with_value(x - 0.1 * y.backward(create_graph=True)[x])
    np.testing.assert_allclose(stepped.numpy(), X - 0.3 * X**2)
    assert stepped.is_require_grad()


def test_recorded_gradients_are_pickled_as_values() -> None:
    x = ad.tensor(X).require_grad()
    grads = (x**3).sum().backward(create_graph=True)
    with pytest.raises(ad.errors.TrackedError, match="detach"):
        pickle.dumps(grads)
    loaded = pickle.loads(pickle.dumps(grads.map(lambda g: g.detach())))
    np.testing.assert_allclose(loaded[x].numpy(), 3 * X**2)
    assert loaded[x].device is x.device
    assert not loaded[x].is_tracked()


@pytest.mark.parametrize("what", ["create_graph", "retain_graph"])
@pytest.mark.parametrize("value", ["yes", 1, 0.0, []])
def test_options_are_true_false_or_none(what: str, value: Any) -> None:
    x = ad.tensor(X).require_grad()
    with pytest.raises(ad.errors.ArgumentTypeError, match=f"backward: {what} is True, False or None"):
        x.sum().backward(**{what: value})


def test_a_batch_of_cotangents_in_one_walk() -> None:
    x = ad.tensor(X).require_grad()
    y = ad.sin(ad.outer(x, x)).sum(axis=0) * x
    level = x.device
    unit = Batch(np.eye(3), True)
    batch = ad.Batched(level.inner)
    found = level.backward(y._array, unit, retain_graph=True, on=batch)[x._array.node.key][1]
    expected = ad.jacobian(lambda x: ad.sin(ad.outer(x, x)).sum(axis=0) * x)(X)
    assert found.batched
    np.testing.assert_allclose(found.value, expected)
    recording = ad.Batched(level)
    g = level.backward(y._array, Batch(level.wrap(np.eye(3)), True), retain_graph=True, on=recording)
    rows = wrap(g[x._array.node.key][1].value, level)
    second = (rows * expected).sum().backward()[x].numpy()
    hessian = ad.jacobian(ad.jacobian(lambda x: ad.sin(ad.outer(x, x)).sum(axis=0) * x))(X)
    np.testing.assert_allclose(second, np.einsum("ijk,ij->k", hessian, expected))


@pytest.mark.parametrize("inner", ["checked<numpy>", "profiled<numpy>", "reference", "array_api[numpy]"])
def test_other_backends(inner: str) -> None:
    def f(x: Any) -> Any:
        return ad.linalg.vector_norm(ad.sin(x) * x[::-1]) + ad.nn.softplus(x).sum() + (ad.outer(x, x) @ x).prod()

    level = ad.device(f"autodiff<{inner}>")
    for found, expected in zip(recorded(f, [X], level, 3), nested(f, [X], 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_recorded_derivatives_are_checkpointed_as_their_level_is() -> None:
    x = ad.tensor(X, device=DEVICES["balanced"]).require_grad()
    slope = ad.exp(ad.sin(x) * x).sum().backward(create_graph=True)[x]
    pending, kept = [slope._array.node], []
    while pending:
        node = pending.pop()
        pending += node.parents
        kept += getattr(node, "saved", None) or ()
    made = {id(part) for part in kept if isinstance(part, Remat)}
    held = {id(part) for part in kept if isinstance(part, np.ndarray) and part.shape}
    assert len(made) > 3
    assert len(held) == 1  # the leaf's value alone


def test_source_lines_are_known_of_what_is_recorded() -> None:
    with ad.testing.source_locations():
        x = ad.tensor(X).require_grad()
        slope = (_ruled(x, x) * x).sum().backward(create_graph=True)[x]
        assert ad.why(x, (slope * slope).sum()).startswith("connected")
