"""What a problem is written in: one spelling of the functions that adjoint, JAX and PyTorch share."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Function = Callable[..., Any]
Run = Callable[[], Any]


class Library(NamedTuple):
    """Functions are called with places where names differ: `xp.sum(x, 0)`, `xp.stack(xs, 1)`."""

    name: str
    xp: Any
    array: Function  # of a NumPy array
    grad: Function  # grad(f, argnums)
    value_and_grad: Function  # value_and_grad(f, argnums)
    jvp: Function  # jvp(f, primals, tangents): the value and its tangent
    vmap: Function
    scan: Function  # scan(f, init, xs, length)
    while_loop: Function | None  # while_loop(cond, body, init); None: Python's own, on values
    bounded_loop: Function | None  # the same with a largest number of steps, which reverse mode goes through
    compiled: Function
    sigmoid: Function
    logsumexp: Function  # logsumexp(x, axis)
    smallest: Function  # of each row
    concat: Function  # along the first axis
    permute: Function  # permute(x, axes)


class Problem(NamedTuple):
    """A problem: sizes by name, what is made of a size, and what is timed."""

    name: str
    sizes: dict[str, tuple[Any, ...]]
    data: Callable[..., Any]  # of a size: what both of the next take
    run: Callable[[Library, Any], Run]
    without: tuple[tuple[str, str], ...] = ()  # library and size: what it cannot, or not within minutes


def adjoint(compiled: bool = False) -> Library:
    import adjoint as ad

    return Library(
        "adjoint compiled" if compiled else "adjoint",
        ad,
        lambda x: x,
        ad.grad,
        ad.value_and_grad,
        ad.jvp,
        ad.vmap,
        (lambda f, init, xs, length: ad.scan(f, init, xs, length=length))
        if compiled
        else functools.partial(_loop, ad.unstack, ad.stack),
        ad.while_loop if compiled else None,
        (lambda cond, body, init, n: ad.while_loop(cond, body, init, max_steps=n)) if compiled else None,
        ad.compile if compiled else lambda f: f,
        ad.nn.sigmoid,
        ad.special.logsumexp,
        lambda x: ad.min(x, 1),
        ad.concat,
        ad.permute_dims,
    )


def jax() -> Library:
    """In whatever precision JAX is set to: double is asked for with its jax_enable_x64."""
    import jax
    import jax.numpy as jnp

    def compiled(f: Function) -> Function:
        run = jax.jit(f)
        return lambda *args: jax.block_until_ready(run(*args))  # type: ignore[no-untyped-call]

    return Library(
        "JAX",
        jnp,
        jnp.asarray,
        jax.grad,
        jax.value_and_grad,
        jax.jvp,
        jax.vmap,
        lambda f, init, xs, length: jax.lax.scan(f, init, xs, length=length),
        jax.lax.while_loop,
        None,
        compiled,
        jax.nn.sigmoid,
        jax.scipy.special.logsumexp,
        lambda x: jnp.min(x, 1),
        jnp.concat,
        jnp.permute_dims,
    )


def torch() -> Library:
    import torch

    return Library(
        "PyTorch",
        torch,
        torch.tensor,
        torch.func.grad,
        lambda f, by: lambda *x: torch.func.grad_and_value(f, by)(*x)[::-1],
        torch.func.jvp,
        torch.func.vmap,
        functools.partial(_loop, torch.unbind, torch.stack),
        None,
        None,
        lambda f: f,
        torch.sigmoid,
        torch.logsumexp,
        lambda x: torch.amin(x, 1),
        torch.cat,
        torch.permute,
    )


def _loop(rows: Function, stack: Function, f: Function, init: Any, xs: Any, length: int | None) -> tuple[Any, Any]:
    """`scan` as a loop of Python's: `rows` gives those of an array, and `stack` makes one of what the steps give."""
    carry, ys = init, []
    for row in itertools.repeat(None, length or 0) if xs is None else zip(*map(rows, xs), strict=True):
        carry, y = f(carry, row)
        ys.append(y)
    return carry, None if ys[0] is None else stack(ys)


LIBRARIES: dict[str, Callable[[], Library]] = {
    "adjoint": adjoint,
    "adjoint compiled": functools.partial(adjoint, compiled=True),
    "JAX": jax,
    "PyTorch": torch,
}
COMPILED = ("adjoint compiled", "JAX")


def arrays(lib: Library, xs: Sequence[Any]) -> list[Any]:
    return [lib.array(x) if isinstance(x, np.ndarray) else x for x in xs]
