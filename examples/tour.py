"""A tour of adjoint in eight stops: from the gradient of a sum to Jacobian products."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Sequence
from typing import Any

import adjoint as ad


def doubled() -> tuple[Any, ...]:
    """A first gradient.

    `require_grad()` makes a leaf, whatever is computed from it is recorded, and `backward()` gives a
    `Gradients` container: a mapping from leaves to their gradients.
    """
    x = ad.tensor([1.0, 2.0, 3.0, 4.0]).require_grad()
    y = (x * 2).sum()
    grads = y.backward()
    return y, grads[x]


def squared() -> Any:
    """The derivative of x^2 is 2x.

    A root that is not a scalar is pulled back from ones, which gives the gradient of its sum.
    """
    x = ad.tensor([1.0, 2.0, 3.0, 4.0]).require_grad()
    return (x**2).backward()[x]


def chained() -> Any:
    """The chain rule: the derivative of sin(x^2) is 2x cos(x^2)."""
    x = ad.tensor([0.0, 1.0, 2.0, 3.0]).require_grad()
    return ad.sin(x**2).backward()[x]


def descent() -> Any:
    """Gradient descent on (x - 3)^2.

    Gradients are tensors of the backend below, and so is `x.inner()`: the step itself is not
    recorded. `with_value` makes the next leaf; nothing is changed in place.
    """
    x = ad.tensor(0.0).require_grad()
    for i in range(20):
        loss = (x - 3) ** 2
        print(f"iteration {i:2}: x={x:.4f}, loss={loss:.4f}")
        grads = loss.backward()
        x = x.with_value(x.inner() - 0.1 * grads[x])
    print(f"final: x={x:.4f}")
    return x


def regression() -> tuple[Any, ...]:
    """Linear regression: the line y = 2x + 1, found again under noise.

    After a hundred steps the slope is near 2 and the intercept near 1.
    """
    ad.random.seed(0)
    x = ad.arange(100) / 10
    y = 2 * x + 1 + ad.random.uniform(100, low=-0.25, high=0.25)

    w, b = ad.tensor(0.5).require_grad(), ad.tensor(0.5).require_grad()
    for _ in range(100):
        loss = ad.nn.mse_loss(w * x + b, y)
        grads = loss.backward()
        w = w.with_value(w.inner() - 0.01 * grads[w])
        b = b.with_value(b.inner() - 0.01 * grads[b])
    return w, b


def squared_error() -> tuple[Any, ...]:
    """The gradient of a sum of squared errors is twice the error; here are both."""
    predicted = ad.tensor([2.5, 0.0, 2.0, 8.0]).require_grad()
    real = ad.tensor([3.0, -0.5, 2.0, 7.0])
    loss = ((predicted - real) ** 2).sum()
    return loss.backward()[predicted], 2 * (predicted - real).inner()


def one_layer() -> tuple[Any, ...]:
    """A network of one layer: the loss, and the gradients of its weights and its biases."""
    ad.random.seed(0)
    x = ad.ones(5)
    target = ad.zeros(3)
    w = ad.random.normal((5, 3)).require_grad()
    b = ad.random.normal(3).require_grad()
    loss = ad.nn.binary_cross_entropy_with_logits(x @ w + b, target)
    grads = loss.backward()
    return loss, grads[w], grads[b]


def jacobian_product() -> Any:
    """A product with a Jacobian: pull any cotangent back, here ones, through a function of a matrix."""
    x = ad.eye(4, 5).require_grad()
    y = ((x + 1) ** 2).T
    grads = y.backward(ad.ones((5, 4)).inner())
    return grads[x]


STOPS = (doubled, squared, chained, descent, regression, squared_error, one_layer, jacobian_product)


def main(arguments: Sequence[str] = ()) -> None:
    argparse.ArgumentParser(prog="tour.py", description=__doc__, allow_abbrev=False).parse_args(arguments)
    for letter, stop in zip("abcdefgh", STOPS, strict=True):
        print(f"({letter}) {inspect.getdoc(stop)}\n")
        result = stop()
        print(*(result if isinstance(result, tuple) else [result]), sep="\n", end="\n\n")


if __name__ == "__main__":
    try:
        try:
            main(sys.argv[1:])
        finally:
            print(end="", flush=True)  # now, where it can still be said that it fails
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python would still write at its exit
        sys.exit(f"tour.py: cannot write: {error.strerror or error}")
