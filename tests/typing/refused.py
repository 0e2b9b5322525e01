"""What type checkers must refuse: the lines marked so, and no others."""

from __future__ import annotations

import adjoint as ad

plain = ad.tensor([1.0], device=ad.NumPy())
x = ad.tensor([1.0])
grads = x.backward()
twice = ad.tensor([1.0], device=ad.Autodiff(ad.Autodiff(ad.NumPy())))

# no gradients on a backend that computes without them
plain.backward()  # refused
plain.sum().backward()  # refused
plain.grad(grads)  # refused
plain.grad_remove(grads)  # refused
plain.grad_replace(grads, plain)  # refused
plain.inner()  # refused
ad.tensor([1.0], device=ad.Reference()).backward()  # refused
ad.zeros(2, device=ad.NumPy()).exp().backward()  # refused

# one level has one gradient: the tensor below it has none
x.inner().backward()  # refused
grads[x].backward()  # refused
x.inner().inner()  # refused
twice.inner().inner().backward()  # refused

# gradients of one level are not those of another
wrong_gradients: ad.Gradients[ad.Autodiff[ad.NumPy]] = x.backward()  # refused
wrong_tensor: ad.Tensor[ad.Autodiff[ad.NumPy]] = grads[x]  # refused
wrong_level: ad.Tensor[ad.NumPy] = ad.tensor([1.0])  # refused
certain: ad.Tensor[ad.NumPy] = x.grad(grads)  # refused

# arguments
ad.Autodiff("numpy")  # refused
ad.Autodiff(ad.NumPy(), checkpointing=3)  # refused
x.require_gradient()  # refused
x.sum(axis="rows")  # refused
x.permute_dims(1, 0)  # refused
x.unsqueeze(0)  # refused
x.backward(wrt=[3])  # refused
x.backward(wrt=plain)  # refused
hash(x) + x.ndim + x.shape  # refused

# names that are not there, or not any more
ad.nothing  # refused
ad.inner  # refused
ad.errors.UnsupportedPrimitive  # refused
