"""backward() and Gradients, as in PyTorch's habits."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import adjoint as ad
from adjoint import Gradients, Tensor

w = ad.tensor([1.0, 2.0]).require_grad()
b = ad.zeros(()).require_grad()
Array = npt.NDArray[np.float64]

x = np.ones((4, 2))


def model(w: Tensor, b: Tensor, x: Array) -> Tensor:
    return x @ w + b


def train(parameters: dict[str, Tensor], grads: Gradients, lr: float) -> dict[str, Tensor]:
    return {name: p - lr * grads[p] for name, p in parameters.items()}


for _ in range(3):
    loss = ((model(w, b, x) - 1.0) ** 2).mean()
    grads = loss.backward()
    w = w.with_value(w.inner() - 0.1 * grads[w])
    b = b.with_value(b.inner() - 0.1 * grads[b])
    print(loss.item(), f"{loss:.3f}", loss.detach().item())

second = (w**3).sum().backward(create_graph=True)
again = second[w].sum().backward()
print(again[w], w.grad_fn, w.shape[0], w.numpy().tolist())
total: float = 0.0
total += (w * 2).sum().item()
total = total + w.sum().item()
parameters: list[Tensor] = [w, b]
updated = [p - 0.1 * g for p, g in zip(parameters, [ad.ones(2), ad.zeros(())], strict=True)]
print(updated, sum(p.sum() for p in parameters))
frozen = w.detach()
mask: Tensor = w > 0
changed = w.detach()
changed[0] = 1.0
changed[mask.detach()] = 0.0
y = ad.zeros((2, 2), dtype=ad.float64, device="numpy")
y[0] += 1.0
print(frozen, y.astype(float), -w, abs(w), w**2, 2**w, w // 2, w % 2, ~mask, mask & mask, w == b, w.T)
print(np.sin(frozen), np.sum(frozen), np.asarray(frozen), ad.asarray(np.ones(3), dtype=ad.float32).dtype == ad.float32)
for row in y:
    print(row.sum().item() + 1)
a, c = w
shape: tuple[int, ...] = w.shape
print(a, c, ad.random.normal(shape), ad.zeros_like(w, dtype=ad.float32), ad.arange(3, dtype=float))
print(
    w.reshape(-1, 1).squeeze(axis=1),
    w.mean(axis=0, keepdims=True),
    w.max(),
    w.argmax(),
    ad.concat([w, w]),
    w.astype(ad.float64),
)
