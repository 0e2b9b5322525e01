"""Rules of one's own, solvers, control flow, checkpoints, functions from outside."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

import adjoint as ad
from adjoint import Tensor

Array = npt.NDArray[np.float64]


@ad.custom_vjp
def bounded(x: Tensor) -> Tensor:
    return x


def forward(x: Tensor) -> tuple[Tensor, None]:
    return x, None


def backward(_: None, g: Tensor) -> tuple[Tensor]:
    return (ad.clip(g, -1.0, 1.0),)


bounded.defvjp(forward, backward)
print(ad.grad(lambda x: (10 * bounded(x)).sum())(np.ones(2)))


@functools.partial(ad.custom_jvp, nondiff_argnums=(1,))
def root(x: Tensor, n: int) -> Tensor:
    return x ** (1 / n)


@root.defjvp
def root_jvp(n: int, primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    y = root(primals[0], n)
    return y, tangents[0] * y / (n * primals[0])


print(ad.grad(root)(8.0, 3))


def spring(x: Array) -> Array:
    return -0.5 * x**2


outside = ad.external(spring, vjp=lambda g, x: -g * x)
print(ad.vmap(ad.grad(lambda x: outside(2 * x)))(np.array([1.0, 3.0])))


def rates(y: Tensor, t: Tensor, friction: Tensor) -> Tensor:
    return ad.stack([y[1], -9.81 - friction * y[1]])


def height(friction: Tensor) -> Tensor:
    states: Tensor = ad.odeint(rates, np.array([2.0, 5.0]), np.array([0.0, 1.0]), friction)
    return states[-1, 0]


print(ad.grad(height)(0.1))


def square(x: Tensor, a: Tensor) -> Tensor:
    return x * x - a


def sqrt(a: Tensor) -> Tensor:
    root: Tensor = ad.implicit.root(square, 1.0, a)
    return root


print(ad.grad(sqrt)(2.0))


def body(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    carry = carry * 0.5 + x
    return carry, carry


final, outputs = ad.scan(body, ad.zeros(()), ad.arange(3.0))
print(final, outputs.shape)
print(ad.cond(final > 0, lambda x: x, lambda x: -x, final))
print(ad.while_loop(lambda x: x < 10, lambda x: x * 2, ad.ones(())))
print(ad.fori_loop(0, 3, lambda i, x: x + i, ad.zeros(())))


@ad.checkpoint
def block(x: Tensor) -> Tensor:
    return ad.tanh(x) * x


@ad.compile
def fast(x: Array) -> Tensor:
    return block(ad.asarray(x)).sum()


print(fast(np.ones(3)), ad.grad(fast)(np.ones(3)), ad.stop_gradient(ad.ones(2)))


def inner(x: Tensor) -> Tensor:
    ad.debug.print("x = {}", x)
    logs: Tensor = ad.apply_where(x > 0, (x,), ad.log, ad.zeros_like)
    return logs.sum()


print(ad.grad(inner)(np.array([-1.0, 2.0])))
ad.testing.check_grads(inner, (np.array([1.0, 2.0]),))
tree = {"a": np.ones(2), "b": [1.0, 2.0]}


def of_tree(tree: dict[str, Tensor]) -> Tensor:
    return tree["a"].sum() * tree["b"][0]


slopes = ad.grad(of_tree)(tree)
print(slopes["a"], ad.tree.map(lambda x: x * 2, slopes))
