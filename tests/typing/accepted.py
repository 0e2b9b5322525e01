"""What type checkers must accept, and what they must know about it."""

from __future__ import annotations

from typing import Any, TypeVar, assert_type

import numpy as np

import adjoint as ad

B = TypeVar("B", bound=ad.Backend)

numpy = ad.NumPy()
Single = ad.Autodiff[ad.NumPy]
Double = ad.Autodiff[ad.Autodiff[ad.NumPy]]

# --- where tensors live ---

x = ad.tensor([1.0, 2.0])
assert_type(x, ad.Tensor[Single])
assert_type(ad.zeros(2), ad.Tensor[Single])
assert_type(ad.ones((2, 3)), ad.Tensor[Single])
assert_type(ad.tensor([1.0], device=numpy), ad.Tensor[ad.NumPy])
assert_type(ad.zeros(2, device=numpy), ad.Tensor[ad.NumPy])
assert_type(ad.tensor([1.0], device="numpy"), ad.Tensor[Any])
for made in (ad.empty(2), ad.full(2, 1.0), ad.arange(3), ad.linspace(0, 1, 5), ad.eye(2), ad.asarray([1.0])):
    assert_type(made, ad.Tensor[Single])
for drawn in (ad.random.uniform(2), ad.random.normal(), ad.random.integers(6), ad.random.bernoulli(0.5)):
    assert_type(drawn, ad.Tensor[Single])
assert_type(ad.random.permutation(5, device=numpy), ad.Tensor[ad.NumPy])
assert_type(ad.asarray(ad.arange(3, device=numpy)), ad.Tensor[ad.NumPy])
assert_type(ad.asarray(ad.arange(3, device=numpy), device=ad.Autodiff(numpy)), ad.Tensor[Single])
assert_type(ad.zeros_like(ad.eye(2, device=numpy)), ad.Tensor[ad.NumPy])
assert_type(ad.full(2, ad.ones((), device=numpy)), ad.Tensor[ad.NumPy])
assert_type(ad.full(2, x[0], device=numpy), ad.Tensor[ad.NumPy])
assert_type(x.device, Single)
assert_type(ad.Autodiff(numpy), Single)
assert_type(ad.Autodiff(numpy).inner, ad.NumPy)
assert_type(ad.from_inner(ad.tensor([1.0], device=numpy)), ad.Tensor[Single])
assert_type(ad.asarray(np.zeros(2), device=ad.Reference()), ad.Tensor[ad.Reference])

# --- operations keep the backend ---

assert_type(x + 1, ad.Tensor[Single])
assert_type(x + ad.ones(2, device=numpy), ad.Tensor[Single])  # of mixed backends the left one's
assert_type(2 * x, ad.Tensor[Single])
assert_type(x @ x, ad.Tensor[Single])
assert_type(x[0], ad.Tensor[Single])
assert_type(x.sum(axis=0), ad.Tensor[Single])
assert_type(x.mean().reshape((1, 1)), ad.Tensor[Single])
assert_type(x.mean().reshape(1, -1).transpose(1, 0).ravel(), ad.Tensor[Single])
assert_type(round(x, 1), ad.Tensor[Single])
assert_type(ad.sin(x), ad.Tensor[Single])
assert_type(ad.maximum(x, 0.0), ad.Tensor[Single])
assert_type(ad.nn.relu(x), ad.Tensor[Single])
assert_type(ad.linalg.norm(x), ad.Tensor[Single])
assert_type(ad.special.softmax(x), ad.Tensor[Single])
assert_type(ad.sum(ad.zeros(2, device=numpy)), ad.Tensor[ad.NumPy])
assert_type(ad.stack([x, x]), ad.Tensor[Single])
assert_type(ad.concat((x, x), axis=1), ad.Tensor[Single])
assert_type(ad.vstack([x, x]), ad.Tensor[Single])
assert_type(ad.stack([x, np.ones(2)]), ad.Tensor[Any])  # a list of tensors and arrays or numbers
assert_type(ad.concat([np.ones(2), x]), ad.Tensor[Any])
assert_type(ad.hstack([np.ones(2), np.ones(2)]), ad.Tensor[Any])
assert_type(ad.stack([x.sum(), 2.0]), ad.Tensor[Any])
ad.vstack((x, np.ones(2)))
ad.dstack([x, np.ones(2)])
ad.column_stack([np.ones(2), x])
ad.linalg.multi_dot([np.eye(2), x])
ad.meshgrid(np.ones(2), x)
for like in (ad.zeros_like, ad.ones_like, ad.empty_like):
    like(np.ones(2))
ad.full_like(np.ones(2), 3.0)
ad.astype(np.ones(2), ad.float32)
assert_type(x.require_grad(), ad.Tensor[Single])
assert_type(x.detach(), ad.Tensor[Single])
assert_type(x.numpy(), np.ndarray[Any, Any])

# --- gradients live on the backend below ---

loss = (x * x).sum()
grads = loss.backward()
assert_type(grads, ad.Gradients[ad.NumPy])
assert_type(grads[x], ad.Tensor[ad.NumPy])
assert_type(grads.get(x), ad.Tensor[ad.NumPy] | None)
assert_type(grads + grads, ad.Gradients[ad.NumPy])
assert_type(grads * 0.5, ad.Gradients[ad.NumPy])
assert_type(grads.map(lambda g: g * 2), ad.Gradients[ad.NumPy])
assert_type(grads.values(), list[ad.Tensor[ad.NumPy]])
assert_type(next(iter(grads)), ad.Tensor[Single])
assert_type(x in grads, bool)
assert_type(x.grad(grads), ad.Tensor[ad.NumPy] | None)
assert_type(x.grad_remove(grads), ad.Tensor[ad.NumPy] | None)
x.grad_replace(grads, grads[x] * 2)
assert_type(x.inner(), ad.Tensor[ad.NumPy])
loss.backward(ad.ones((), device=numpy), retain_graph=True, wrt=[x])
assert_type(loss.backward(wrt=x), ad.Gradients[ad.NumPy])
assert_type(loss.backward(None, retain_graph=True, wrt=[x]), ad.Gradients[ad.NumPy])
assert_type(loss.backward(create_graph=False), ad.Gradients[ad.NumPy])
recorded = loss.backward(create_graph=True)
assert_type(recorded, ad.Gradients[Single])
assert_type(recorded[x], ad.Tensor[Single])
assert_type(recorded * 2, ad.Gradients[Single])
assert_type(x.grad(recorded), ad.Tensor[Single] | None)
assert_type(recorded[x].sum().backward(), ad.Gradients[ad.NumPy])
assert_type(recorded[x].sum().backward(create_graph=True)[x], ad.Tensor[Single])

# --- levels nest ---

twice = ad.Autodiff(ad.Autodiff(numpy))
assert_type(twice, Double)
y = ad.tensor([1.0], device=twice)
assert_type(y, ad.Tensor[Double])
first = (y * y).sum().backward()
assert_type(first, ad.Gradients[Single])
assert_type(first[y], ad.Tensor[Single])
second = first[y].sum().backward()
assert_type(second, ad.Gradients[ad.NumPy])
assert_type(second[y.inner()], ad.Tensor[ad.NumPy])
assert_type(y.inner().inner(), ad.Tensor[ad.NumPy])

# --- functions for any backend, and for any Autodiff ---


def double(t: ad.Tensor[B]) -> ad.Tensor[B]:
    return (t + t).require_grad()


def gradient(t: ad.Tensor[ad.Autodiff[B]]) -> ad.Tensor[B]:
    return t.sum().backward()[t]


assert_type(double(x), ad.Tensor[Single])
assert_type(double(ad.zeros(2, device=numpy)), ad.Tensor[ad.NumPy])
assert_type(gradient(x), ad.Tensor[ad.NumPy])
assert_type(gradient(y), ad.Tensor[Single])

# --- NumPy arrays and numbers stand beside tensors; alone they say nothing of a backend ---

array = np.ones(2)
alone: ad.Tensor[Any] = ad.sin(array)
summed: ad.Tensor[Single] = ad.sum(array)
ad.maximum(array, 0.5)
ad.sqrt(2.0)
ad.linalg.norm(array)
ad.special.softmax(array)
ad.fft.fft(array)
ad.nn.relu(array)
assert_type(ad.add(x, array), ad.Tensor[Single])
assert_type(ad.where(x > 0, array, 0.0), ad.Tensor[Single])
assert_type(ad.nn.mse_loss(x, array), ad.Tensor[Single])
assert_type(ad.nn.linear(array, x), ad.Tensor[Single])
assert_type(ad.nn.linear(x, array, array), ad.Tensor[Single])
assert_type(ad.nn.linear(array, ad.eye(2, device=numpy)), ad.Tensor[ad.NumPy])
assert_type(ad.nn.scaled_dot_product_attention(array, x, x), ad.Tensor[Single])
joined: list[ad.Tensor[Single] | np.ndarray[Any, Any]] = [x, array]
assert_type(ad.stack(joined), ad.Tensor[Any])

# modules
assert_type(ad.nn.Conv2d(1, 8, 3).bias, ad.Tensor[Any] | None)
ad.nn.ConvTranspose1d(1, 8, 3, output_padding=0)
ad.nn.LSTM(3, 4, num_layers=2)
ad.nn.GRUCell(3, 4)
ad.nn.TransformerDecoder(8, 2, 3)
assert_type(ad.nn.LowRank(ad.nn.Linear(3, 4), 2).merged(), ad.nn.Linear)


class Scaled(ad.nn.Module):
    factor: ad.Tensor[Any]
    power: int = 2


Scaled(x, power=3)
