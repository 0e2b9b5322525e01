"""Plain gradient descent, RMSProp and Adam, of nested containers of arrays.

`grad(x, i)` gives the gradient at step i; `callback(x, i, g)` is called before each step. The steps themselves can be
differentiated. Averages have the library and the data type of the arrays. `adjoint.optim` has more, with states that
can be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.autograd import numpy as np
from adjoint.autograd.misc.flatten import flatten
from adjoint.autograd.wrap_util import wraps

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """An optimizer of vectors as one of nested containers."""

    @wraps(optimize)
    def run(grad: Function, x0: Any, callback: Function | None = None, *args: Any, **kwargs: Any) -> Any:
        vector, unflatten = flatten(x0)
        shown = None if callback is None else lambda x, i, g: callback(unflatten(x), i, unflatten(g))
        of_vector = lambda x, i: flatten(grad(unflatten(x), i))[0]
        return unflatten(optimize(of_vector, vector, shown, *args, **kwargs))

    return run


def _steps(grad: Function, x: Any, callback: Function | None, num_iters: int, step: Function) -> Any:
    for i in range(num_iters):
        g = grad(x, i)
        if callback is not None:
            callback(x, i, g)
        x = x + step(i, g)
    return x


@unflatten_optimizer
def sgd(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum: steps along a moving average of gradients.

    >>> import numpy as np
    >>> sgd(lambda x, i: 2 * (x - 3.0), np.zeros(2)).round(3)
    array([3., 3.])
    """
    velocity = np.zeros_like(x)

    def step(i: int, g: Any) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _steps(grad, x, callback, num_iters, step)


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """RMSProp (T. Tieleman and G. Hinton 2012), whose average of squares starts at ones."""
    squares = np.ones_like(x)

    def step(i: int, g: Any) -> Any:
        nonlocal squares
        squares = squares * gamma + g**2 * (1 - gamma)
        return -step_size * g / (np.sqrt(squares) + eps)

    return _steps(grad, x, callback, num_iters, step)


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (D. Kingma and J. Ba 2015)."""
    mean, squares = np.zeros_like(x), np.zeros_like(x)

    def step(i: int, g: Any) -> Any:
        nonlocal mean, squares
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * g**2 + b2 * squares
        unbiased = mean / (1 - b1 ** (i + 1))
        return -step_size * unbiased / (np.sqrt(squares / (1 - b2 ** (i + 1))) + eps)

    return _steps(grad, x, callback, num_iters, step)


__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]
