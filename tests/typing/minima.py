"""SciPy's own optimizers with our gradients, and pandas' columns as data."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# mypy: disable-error-code="import-untyped, import-not-found"
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize

import adjoint as ad

Array = npt.NDArray[np.float64]

frame = pd.DataFrame({"x": np.arange(5.0), "y": np.arange(5.0) * 2})


def rosenbrock(x: ad.Tensor) -> ad.Tensor:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def product(x: Array, p: Array) -> Array:
    out: Array = ad.hvp(rosenbrock, (x,), (p,))
    return out


def line(p: ad.Tensor) -> ad.Tensor:
    a, b = p
    return ad.mean((a * frame["x"] + b - frame["y"]) ** 2)


found = optimize.minimize(ad.value_and_grad(rosenbrock), np.zeros(3), jac=True)
print(found.x)
found = optimize.minimize(
    rosenbrock, np.zeros(3), jac=ad.grad(rosenbrock), hess=ad.hessian(rosenbrock), method="trust-exact"
)
found = optimize.minimize(rosenbrock, np.zeros(3), jac=ad.grad(rosenbrock), hessp=product, method="newton-cg")
print(ad.grad(line)(np.array([1.0, 2.0])))
x = ad.tensor(frame["x"])
table = ad.asarray(frame)
print((x * frame["y"]).sum().item(), table.shape, table[:, 0], ad.sum(frame["x"]), frame["x"] @ x)
w = ad.zeros(5).require_grad()
loss = ad.nn.mse_loss(w * frame["x"].to_numpy(), frame["y"])
grads = loss.backward()
slope = grads[w]
print(slope.numpy(), loss.item(), loss.item(), len(w), [v.item() for v in w], slope.tolist())
w = w - 0.1 * slope


def callback(x: Any) -> None:
    print(x)


ad.scipy.minimize(rosenbrock, [0.0, 1.0, 2.0], callback=callback, bounds=[(0, 1), (0, 1), (0, 1)])
