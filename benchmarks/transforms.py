"""Transformed functions: the same mathematics written once for every library, over its own namespace.

PyTorch stands for `torch.func`. HIPS autograd has neither `vmap` nor forward over reverse for all of its
functions: it is in the cases that it can do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run, import_torch

BOUNDS = {"PyTorch": 0.5, "autograd": 0.5, "JAX": 0.5}


def _jax() -> Any:
    import jax

    return jax


def _of_jax(transformed: Callable[[Any], Callable[..., Any]], values: tuple[Any, ...]) -> dict[str, Callable[[], Run]]:
    """JAX, compiled before it is timed, and operation by operation."""

    def run(compiled: bool) -> Run:
        jax = _jax()
        f = transformed(jax)
        f = jax.jit(f) if compiled else f
        arrays = jax.tree.map(jax.numpy.asarray, values)
        return lambda: jax.block_until_ready(f(*arrays))

    return {"JAX jit": lambda: run(True), "JAX": lambda: run(False)}


def _of_torch(transformed: Callable[[Any], Callable[..., Any]], values: tuple[Any, ...]) -> Callable[[], Run]:
    def make() -> Run:
        torch = import_torch()
        f = transformed(torch)
        arrays = torch.utils._pytree.tree_map(torch.as_tensor, values)
        return lambda: f(*arrays)

    return make


# --- a network ---


def _network() -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(0)
    p = {
        "w1": (rng.standard_normal((64, 128)) / 8).astype(np.float32),
        "b1": np.zeros(128, np.float32),
        "w2": (rng.standard_normal((128, 10)) / 11).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }
    return p, rng.standard_normal((64, 64)).astype(np.float32), np.eye(10, dtype=np.float32)[rng.integers(0, 10, 64)]


def _loss(xp: Any, log_softmax: Any, p: Any, x: Any, y: Any) -> Any:
    """Cross entropy of one example or of the sum of many, whose labels are one-hot."""
    z = xp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return -(log_softmax(z) * y).sum()


def _ours(p: Any, x: Any, y: Any) -> Any:
    return _loss(ad, lambda z: ad.special.log_softmax(z, axis=-1), p, x, y)


def _of(torch: Any) -> Any:
    return lambda p, x, y: _loss(torch, lambda z: torch.log_softmax(z, -1), p, x, y)


def _for_jax(jax: Any) -> Any:
    return lambda p, x, y: _loss(jax.numpy, jax.nn.log_softmax, p, x, y)


def _for_autograd() -> Any:
    import autograd.numpy as anp

    def log_softmax(z: Any) -> Any:
        z = z - anp.max(z, axis=-1, keepdims=True)
        return z - anp.log(anp.sum(anp.exp(z), axis=-1, keepdims=True))

    return lambda p, x, y: _loss(anp, log_softmax, p, x, y)


def _per_example() -> dict[str, Callable[[], Run]]:
    values = _network()
    f = ad.vmap(ad.grad(_ours), in_axes=(None, 0, 0))
    return {
        "adjoint": lambda: lambda: f(*values),
        "PyTorch": _of_torch(lambda t: t.func.vmap(t.func.grad(_of(t)), in_dims=(None, 0, 0)), values),
        **_of_jax(lambda jax: jax.vmap(jax.grad(_for_jax(jax)), in_axes=(None, 0, 0)), values),
    }


def _hvp() -> dict[str, Callable[[], Run]]:
    p, x, y = _network()
    rng = np.random.default_rng(1)
    v = {name: rng.standard_normal(w.shape).astype(np.float32) for name, w in p.items()}

    def torch(t: Any) -> Any:
        return lambda p, v: t.func.jvp(t.func.grad(lambda q: _of(t)(q, t.as_tensor(x), t.as_tensor(y))), (p,), (v,))[1]

    def jax(j: Any) -> Any:
        return lambda p, v: j.jvp(j.grad(lambda q: _for_jax(j)(q, x, y)), (p,), (v,))[1]

    def autograd() -> Run:
        from autograd import grad
        from autograd.misc import flatten

        flat, unflatten = flatten(p)
        direction, _ = flatten(v)
        f = _for_autograd()
        g = grad(lambda w: f(unflatten(w), x, y))
        product = grad(lambda w: (g(w) * direction).sum())  # reverse over reverse: it has no forward rule of indexing
        return lambda: product(flat)

    return {
        "adjoint": lambda: lambda: ad.hvp(lambda q: _ours(q, x, y), (p,), (v,)),
        "PyTorch": _of_torch(torch, (p, v)),
        "autograd": autograd,
        **_of_jax(jax, (p, v)),
    }


# --- the Hessian of logistic regression ---


def _hessian() -> dict[str, Callable[[], Run]]:
    from sklearn.datasets import load_breast_cancer

    data, target = load_breast_cancer(return_X_y=True)
    x = ((data - data.mean(0)) / data.std(0)).astype(np.float32)
    y = target.astype(np.float32)
    w = np.zeros(30, np.float32)

    def loss(xp: Any, x: Any, y: Any, w: Any) -> Any:
        z = x @ w
        return xp.log1p(xp.exp(z)).sum() - (z * y).sum() + 0.5 * (w * w).sum()

    def autograd() -> Run:
        import autograd.numpy as anp
        from autograd import hessian

        h = hessian(lambda w: loss(anp, x, y, w))
        return lambda: h(w)

    h = ad.hessian(lambda w: loss(ad, x, y, w))
    return {
        "adjoint": lambda: lambda: h(w),
        "PyTorch": _of_torch(lambda t: t.func.hessian(lambda w: loss(t, t.as_tensor(x), t.as_tensor(y), w)), (w,)),
        "autograd": autograd,
        **_of_jax(lambda j: j.hessian(lambda w: loss(j.numpy, x, y, w)), (w,)),
    }


# --- loops ---


def _recurrent() -> dict[str, Callable[[], Run]]:
    rng = np.random.default_rng(0)
    u, v, o = (0.1 * rng.standard_normal(s).astype(np.float32) for s in ((32, 32), (8, 32), (32, 4)))
    inputs = rng.standard_normal((100, 16, 8)).astype(np.float32)
    start = np.zeros((16, 32), np.float32)

    def loss(xp: Any, inputs: Any, h: Any, u: Any, v: Any, o: Any) -> Any:
        for x in inputs:
            h = xp.tanh(h @ u + x @ v)
        return ((h @ o) ** 2).sum()

    def autograd() -> Run:
        import autograd.numpy as anp
        from autograd import grad

        g = grad(lambda p: loss(anp, inputs, start, *p))
        return lambda: g((u, v, o))

    g = ad.grad(lambda *p: loss(ad, inputs, start, *p), (0, 1, 2))

    def torch(t: Any) -> Any:
        steps, h = [t.as_tensor(x) for x in inputs], t.as_tensor(start)
        return t.func.grad(lambda *p: loss(t, steps, h, *p), (0, 1, 2))

    return {
        "adjoint": lambda: lambda: g(u, v, o),
        "PyTorch": _of_torch(torch, (u, v, o)),
        "autograd": autograd,
        **_of_jax(lambda j: j.grad(lambda *p: loss(j.numpy, inputs, start, *p), (0, 1, 2)), (u, v, o)),
    }


def _lorenz() -> dict[str, Callable[[], Run]]:
    parameters = np.array([10.0, 28.0, 8.0 / 3.0], np.float32)
    start = np.array([1.0, 1.0, 1.0], np.float32)

    def python_loop(step: Callable[[Any], Any], y: Any) -> Any:
        for _ in range(100):
            y = step(y)
        return y

    def loss(stack: Any, y: Any, p: Any, loop: Callable[..., Any] = python_loop) -> Any:
        """E. Lorenz, Deterministic nonperiodic flow (1963); a hundred classical Runge-Kutta steps."""

        def f(y: Any) -> Any:
            a, b, c = y[0], y[1], y[2]
            return stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])

        def step(y: Any, h: float = 0.01) -> Any:
            k1 = f(y)
            k2 = f(y + 0.5 * h * k1)
            k3 = f(y + 0.5 * h * k2)
            k4 = f(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        y = loop(step, y)
        return (y * y).sum()

    def jax(compiled: bool) -> Run:
        """Compiled, JAX gets the loop that it compiles in a second, not in minutes."""
        j = _jax()

        def scan(step: Callable[[Any], Any], y: Any) -> Any:
            return j.lax.scan(lambda y, _: (step(y), None), y, length=100)[0]

        g = j.grad(lambda p: loss(j.numpy.stack, start, p, scan if compiled else python_loop))
        g = j.jit(g) if compiled else g
        values = j.numpy.asarray(parameters)
        return lambda: j.block_until_ready(g(values))

    def autograd() -> Run:
        import autograd.numpy as anp
        from autograd import grad

        g = grad(lambda p: loss(anp.array, start, p))
        return lambda: g(parameters)

    g = ad.grad(lambda p: loss(ad.stack, start, p))
    return {
        "adjoint": lambda: lambda: g(parameters),
        "PyTorch": _of_torch(lambda t: t.func.grad(lambda p: loss(t.stack, t.as_tensor(start), p)), (parameters,)),
        "autograd": autograd,
        "JAX jit": lambda: jax(True),
        "JAX": lambda: jax(False),
    }


CASES = [
    Case("per-example gradients, vmap(grad) of an MLP 64-128-10, 64 examples", _per_example(), BOUNDS),
    Case("Hessian of logistic regression, 30 features, 569 examples", _hessian(), BOUNDS),
    Case("Hessian-vector product of the MLP", _hvp(), BOUNDS),
    Case("gradient of a recurrent network, 100 steps", _recurrent(), BOUNDS),
    Case("parameter gradient of the Lorenz equations, 100 steps", _lorenz(), BOUNDS),
]
