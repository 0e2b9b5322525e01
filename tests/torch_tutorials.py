"""The introductory tutorials of PyTorch, written anew: one text for both libraries, whose lines are compared."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import numpy as np

_R = np.random.default_rng(0)
_WEIGHTS = _R.standard_normal((5, 3)).astype(np.float32)
_BIASES = _R.standard_normal(3).astype(np.float32)
_COEFFICIENTS = _R.standard_normal(4)


def tensors(torch: Any) -> None:
    """What a tensor is: made, indexed, joined, multiplied, written to, shared with NumPy."""
    data = torch.tensor([[1, 2], [3, 4]])
    print(data, torch.ones_like(data), torch.zeros(2, 3))
    x = torch.arange(16.0).reshape(4, 4)
    print(x.shape, x.dtype, x.device, x[0], x[:, 0], x[..., -1])
    x[:, 1] = 0
    print(x, torch.cat([x, x, x], dim=1))
    print(x @ x.T, x.matmul(x.T) == x @ x.T, x * x, x.mul(x).sum().item())
    x.add_(5)
    print(x)
    t = torch.ones(5)
    n = t.numpy()
    t.add_(1)
    print(t, n)
    n = np.ones(5)
    t = torch.from_numpy(n)
    np.add(n, 1, out=n)
    print(t, n)


def autograd(torch: Any) -> None:
    """A layer with binary cross entropy, tracking switched off, and a backward pass of several results."""
    x, y = torch.ones(5), torch.zeros(3)
    w = torch.tensor(_WEIGHTS, requires_grad=True)
    b = torch.tensor(_BIASES, requires_grad=True)
    z = torch.matmul(x, w) + b
    loss = (torch.clamp(z, min=0) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()
    print(f"Gradient function for z = {type(z.grad_fn).__name__}")
    print(f"Gradient function for loss = {type(loss.grad_fn).__name__}")
    loss.backward()
    print(w.grad, b.grad)
    print(z.requires_grad)
    with torch.no_grad():
        z = torch.matmul(x, w) + b
    print(z.requires_grad, z.detach(), (torch.matmul(x, w) + b).detach().requires_grad)

    inp = torch.eye(4, 5, requires_grad=True)
    out = (inp + 1).pow(2).t()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"First call\n{inp.grad}")
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nSecond call\n{inp.grad}")
    inp.grad.zero_()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nCall after zeroing gradients\n{inp.grad}")


def two_tensors(torch: Any) -> None:
    """Gradients of a vector with a cotangent, frozen parameters, and detached results."""
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    print(q, q.grad_fn.next_functions[0][0].name())
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    print(9 * a**2 == a.grad, -2 * b == b.grad)
    x, z = torch.rand(5, 5), torch.rand((5, 5), requires_grad=True)
    print((x + x).requires_grad, (x + z).requires_grad)


def sine_by_hand(torch: Any) -> None:
    """A polynomial of third degree fitted to the sine, its gradients written out."""
    x = torch.linspace(-math.pi, math.pi, 200, dtype=torch.float64)
    y = torch.sin(x)
    a, b, c, d = (torch.tensor(v, dtype=torch.float64) for v in _COEFFICIENTS)
    rate = 1e-6
    for step in range(300):
        predicted = a + b * x + c * x**2 + d * x**3
        loss = (predicted - y).pow(2).sum().item()
        if step % 100 == 99:
            print(step, f"{loss:.6f}")
        slope = 2.0 * (predicted - y)
        a -= rate * slope.sum()
        b -= rate * (slope * x).sum()
        c -= rate * (slope * x**2).sum()
        d -= rate * (slope * x**3).sum()
    print(f"y = {a.item():.8f} + {b.item():.8f} x + {c.item():.8f} x^2 + {d.item():.8f} x^3")


def sine_by_autograd(torch: Any) -> None:
    """The same fit, by backward and steps under no_grad: the same coefficients."""
    x = torch.linspace(-math.pi, math.pi, 200, dtype=torch.float64)
    y = torch.sin(x)
    coefficients = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in _COEFFICIENTS]
    a, b, c, d = coefficients
    rate = 1e-6
    for step in range(300):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        if step % 100 == 99:
            print(step, f"{loss.item():.6f}")
        loss.backward()
        with torch.no_grad():
            for v in coefficients:
                v -= rate * v.grad
                v.grad = None
    print(f"y = {a.item():.8f} + {b.item():.8f} x + {c.item():.8f} x^2 + {d.item():.8f} x^3")


def mixed_derivatives(torch: Any) -> None:
    """Second derivatives of a function of two variables, in both orders."""
    x = torch.tensor(1.5, requires_grad=True)
    y = torch.tensor(-0.5, requires_grad=True)
    f = x**3 * y**2 + torch.sin(x * y)
    fx, fy = torch.autograd.grad(f, (x, y), create_graph=True)
    print(f, fx, fy)
    fxx, fxy = torch.autograd.grad(fx, (x, y), retain_graph=True)
    fyx, fyy = torch.autograd.grad(fy, (x, y))
    print(fxx, fxy, fyx, fyy)


def views_and_writes(torch: Any) -> None:
    """What a write to a view does to the rest, and to gradients."""
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    v = y.view(4)[1:3]
    v *= torch.tensor([2.0, 5.0])
    y.T[0].add_(1)
    print(y, v, y._version, y.grad_fn.name(), v.grad_fn.name())
    (y**2).sum().backward()
    print(x.grad)
    try:
        x.add_(1)
    except RuntimeError as error:
        print(error)


ALL = [
    "tensors",
    "autograd",
    "two_tensors",
    "sine_by_hand",
    "sine_by_autograd",
    "mixed_derivatives",
    "views_and_writes",
]


def printed(name: str, torch: Any) -> list[str]:
    """The lines that a tutorial prints under a library."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        globals()[name](torch)
    return out.getvalue().splitlines()
