"""A fit in NumPy's habits: functions and data of NumPy, gradients by ad.grad, a minimum by SciPy."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import adjoint as ad

Array = npt.NDArray[np.float64]

rng = np.random.default_rng(0)
t = np.linspace(0.0, 1.0, 50)
y = 2.0 * np.exp(-3.0 * t) + rng.normal(size=50) * 0.01


def loss(p: Array) -> np.floating:
    residual: Array = p[0] * np.exp(-p[1] * t) - y
    return np.mean(residual**2)


def of_tensors(p: ad.Tensor) -> ad.Tensor:
    residual = p[0] * ad.exp(-p[1] * t) - y
    return (residual * residual).mean()


p = np.array([1.0, 1.0])
slope = ad.grad(loss)
for _ in range(100):
    p = p - 0.1 * slope(p)
for _ in range(100):
    p -= 0.1 * ad.grad(of_tensors)(p)
value, gradient = ad.value_and_grad(of_tensors)(p)
print(f"{float(value):.3g}", np.linalg.norm(gradient), gradient.shape)
values: list[float] = []
for _ in range(3):
    value, gradient = ad.value_and_grad(loss)(p)
    values.append(float(value))

found = ad.scipy.minimize(of_tensors, p, method="BFGS")
print(found.x, found.fun)
best, covariance = ad.scipy.curve_fit(lambda t, a, b: a * ad.exp(-b * t), t, y, p0=[1.0, 1.0])
print(best[0], covariance.diagonal())


def two(weights: Array, bias: float) -> np.float64:
    return np.sum(weights * bias)


dw, db = ad.grad(two, argnums=(0, 1))(p, 2.0)
print(dw.sum(), db)


def with_aux(p: ad.Tensor) -> tuple[ad.Tensor, dict[str, ad.Tensor]]:
    error = of_tensors(p)
    return error, {"error": error}


(value, aux), gradient = ad.value_and_grad(with_aux, has_aux=True)(p)
print(value, aux["error"], gradient)


@ad.grad
def decorated(x: ad.Tensor) -> ad.Tensor:
    return ad.sin(x).sum()


print(decorated(p), decorated(1.0), decorated(ad.tensor([1.0, 2.0])))
