"""Programs of arguments, containers and attributes of tensors, each for both libraries."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from torch_areas import numbers, seen, slopes
from torch_autograd import program, refused


@program
def reductions_over_nothing_and_of_masks(torch: Any, show: Any) -> None:
    empty = torch.zeros(0, 3)
    for f in (
        lambda x: x.sum(0),
        lambda x: x.prod(0),
        lambda x: x.mean(0),
        lambda x: x.all(),
        lambda x: x.any(),
        lambda x: x.norm(),
        lambda x: x.cumsum(0),
        lambda x: torch.cat([x, torch.ones(1, 3)]),
        lambda x: x.reshape(3, 0),
        lambda x: x.T @ x,
        lambda x: x.std(0),
        lambda x: x.var(),
        lambda x: x.argsort(0),
        lambda x: x.unique(),
        lambda x: x.nonzero(),
        lambda x: x.logsumexp(0),
        lambda x: x.softmax(0),
        lambda x: torch.stack([x, x]),
        lambda x: x.expand(2, 0, 3),
        lambda x: x.sum(),
    ):
        show(seen(f(empty)))
    for f in (
        lambda x: x.max(),
        lambda x: x.argmax(),
        lambda x: x.max(0),
        lambda x: x.median(),
        lambda x: x.view(-1, 0),
        lambda x: x.amin(0),
    ):
        refused(show, lambda f=f: f(empty), 30)


@program
def shapes_and_their_arguments(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, 3, 4, grad=True)
    for f in (
        lambda x: x.reshape(-1, 2),
        lambda x: x.view(6, -1),
        lambda x: x.permute(2, 0, 1),
        lambda x: x.permute((1, 0, 2)),
        lambda x: x.transpose(0, -1),
        lambda x: x.flatten(1),
        lambda x: x.flatten(0, 1),
        lambda x: x.unflatten(2, (2, 2)),
        lambda x: x.squeeze(),
        lambda x: x[:1].squeeze(0),
        lambda x: x.unsqueeze(-1),
        lambda x: x.expand(2, 2, 3, 4),
        lambda x: x.split([1, 3], 2)[1],
        lambda x: x.chunk(2, 1)[1],
        lambda x: x.tensor_split(3, 2)[0],
        lambda x: x.unbind(1)[2],
        lambda x: x.narrow(1, 1, 2),
        lambda x: x.select(0, -1),
        lambda x: x.diagonal(0, 0, 2),
        lambda x: x.unfold(2, 2, 2),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.movedim((0, 1), (1, 2)),
        lambda x: x.T if x.ndim == 2 else x.mT,
        lambda x: x.as_strided((2, 2), (4, 1), 1),
        lambda x: x.roll(1),
        lambda x: x.roll((1, 2), (0, 2)),
        lambda x: x.flip([0, 2]),
        lambda x: x.take_along_dim(torch.zeros(2, 3, 1, dtype=torch.int64), 2),
        lambda x: torch.atleast_3d(x[0, 0]),
        lambda x: torch.hstack([x[0], x[1]]),
        lambda x: torch.dstack([x[0], x[1]]),
        lambda x: torch.block_diag(x[0], x[1, :, 0]),
        lambda x: x.tril(1) + x.triu(-1),
        lambda x: torch.diag_embed(x[0], 1),
        lambda x: x[0].diag(1),
        lambda x: torch.diagflat(x[0, 0]),
        lambda x: x.repeat_interleave(torch.tensor([1, 2, 0]), 1),
        lambda x: x.select_scatter(x[0] * 2, 0, 1),
        lambda x: x.slice_scatter(x[:, :1] * 3, 1, 1, 2),
        lambda x: x[0].diagonal_scatter(x[1, :, 0]),
        lambda x: torch.vstack([x[0], x[1]]),
        lambda x: x.index_fill(1, torch.tensor([0]), 2.0),
        lambda x: x.index_copy(0, torch.tensor([1, 0]), x * 2),
    ):
        slopes(torch, show, f, x)


@program
def arithmetic_of_python_numbers(torch: Any, show: Any) -> None:
    x = numbers(torch, 4, grad=True)
    for f in (
        lambda x: 2 - x,
        lambda x: 2 / x,
        lambda x: 2**x,
        lambda x: x**3,
        lambda x: x**-1,
        lambda x: x % 0.7,
        lambda x: -x,
        lambda x: +x,
        lambda x: abs(x),
        lambda x: x @ x,
        lambda x: x.add(x, alpha=2),
        lambda x: x.sub(1, alpha=3),
        lambda x: torch.rsub(x, 1),
        lambda x: torch.sub(x, x * x, alpha=0.5),
        lambda x: x.div(0.3, rounding_mode="trunc"),
        lambda x: x.true_divide(x + 3),
        lambda x: x.fmod(0.7),
        lambda x: x.remainder(x.detach() + 2),
        lambda x: torch.pow(2.0, x),
        lambda x: x.pow(torch.tensor(2)),
        lambda x: x.square().sqrt(),
        lambda x: x.lerp(x * 2, 0.3),
        lambda x: torch.lerp(x, x * x, x),
        lambda x: x.clamp(-0.2, 0.5),
        lambda x: x.clip(max=0.4),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: torch.where(x > 0, 1.0, x),
        lambda x: x * True,
        lambda x: x + (x > 0),
        lambda x: x * torch.tensor(2),
        lambda x: x * torch.tensor(2.0),
        lambda x: x.float() * 2,
        lambda x: x + 1j,
        lambda x: (x * 1j).imag,
        lambda x: torch.ldexp(x, torch.tensor(2)),
        lambda x: x.copysign(-1.0),
        lambda x: x.hypot(x + 1),
        lambda x: torch.nextafter(x.detach(), x.detach() + 1) * x,
        lambda x: x.exp2() + x.expm1() + (x + 2).log2() + (x + 2).log10() + (x + 2).log1p(),
        lambda x: x.sigmoid().logit(),
        lambda x: x.tanh().atanh(),
        lambda x: x.sinh().asinh(),
        lambda x: (x + 3).cosh().acosh(),
        lambda x: (x * 0.2).asin() + (x * 0.2).acos() + x.atan(),
        lambda x: x.atan2(x + 1),
        lambda x: x.frac() + x.trunc() + x.round(decimals=1),
        lambda x: x.deg2rad() + x.rad2deg(),
        lambda x: (x + 2).lgamma() + (x + 2).digamma(),
        lambda x: x.erf() + x.erfc(),
        lambda x: (x * 0.3).erfinv(),
        lambda x: x.nan_to_num(),
        lambda x: x.reciprocal() + (x + 2).rsqrt(),
        lambda x: x.sgn() * x.sign(),
        lambda x: x.logaddexp(x * 2) + x.logaddexp2(x),
        lambda x: x.xlogy(x.abs() + 1),
    ):
        slopes(torch, show, f, x)


@program
def copies_and_pickles(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, 2, grad=True)
    x.grad = torch.ones(2, 2, dtype=torch.float64)
    x.note = "kept"
    y, z = copy.copy(x), copy.deepcopy(x)
    show(seen(y), y.grad is x.grad, y.note, seen(z), seen(z.grad), z.note, z.is_leaf)
    with torch.no_grad():
        y.add_(1)
    show(seen(x), seen(z))
    pair = copy.deepcopy([x, x, x[0].detach()])
    show(pair[0] is pair[1], seen(pair[2]))
    back = pickle.loads(pickle.dumps(x))
    result = pickle.loads(pickle.dumps(x * 2))
    show(result.requires_grad, result.is_leaf, pickle.loads(pickle.dumps((x * 2).detach())).requires_grad)
    show(seen(back), back.grad, type(back) is type(x))
    refused(show, lambda: copy.deepcopy(x * 2), 40)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    again = copy.deepcopy(net)
    show(again[0].weight is again[1].weight, again[0].weight is net[0].weight, again[0].weight.grad)
    p = torch.nn.Parameter(x.detach(), requires_grad=False)
    show(copy.deepcopy(p).requires_grad, type(copy.deepcopy(p)).__name__, p.data.requires_grad)


@program
def creating_like_others(torch: Any, show: Any) -> None:
    x = torch.ones(2, 3, dtype=torch.float64).T
    for f in (
        lambda: torch.zeros_like(x),
        lambda: torch.ones_like(x, dtype=torch.int32),
        lambda: torch.full_like(x, 2),
        lambda: x.new_tensor([1, 2]),
        lambda: x.new_zeros(2),
        lambda: x.new_full((2,), 3),
        lambda: x.new_ones((2, 1)),
        lambda: torch.arange(1, 2, 0.3),
        lambda: torch.arange(5, 0, -2),
        lambda: torch.arange(3.0),
        lambda: torch.linspace(0, 1, 4),
        lambda: torch.logspace(0, 2, 3),
        lambda: torch.eye(2, 3),
        lambda: torch.tensor([[1], [2]]),
        lambda: torch.as_tensor(x, dtype=torch.float32),
        lambda: torch.tensor(x),
        lambda: torch.tensor(3 + 0j),
        lambda: torch.tensor([]),
        lambda: torch.empty(0, 2).sum(),
        lambda: torch.scalar_tensor(2),
        lambda: torch.tril_indices(3, 2),
        lambda: torch.vander(torch.tensor([1.0, 2])),
        lambda: torch.range(0, 3),
        lambda: torch.complex(torch.ones(1), torch.zeros(1)),
        lambda: torch.hann_window(4),
        lambda: torch.full((), 2.5),
        lambda: torch.tensor([True, 0.5]),
        lambda: torch.tensor([1, 2.5, 3 + 1j]),
        lambda: torch.triu_indices(2, 3, 1),
        lambda: torch.tensor([torch.tensor(1), torch.tensor(2)]),
        lambda: torch.asarray([1.5]),
        lambda: torch.ones(2, dtype=torch.bool).to(torch.float16),
    ):
        y = f()
        show(seen(y))
    for f in (
        lambda: torch.tensor([[1], [2, 3]]),
        lambda: torch.tensor("a"),
        lambda: torch.arange(0, 1, -1),
        lambda: torch.linspace(0, 1, -1),
        lambda: torch.eye(-1),
        lambda: torch.tensor([1], requires_grad=True),
        lambda: torch.ones(2, dtype=float, requires_grad=True).int().requires_grad_(),
    ):
        refused(show, f, 20)


@program
def attributes_of_tensors(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, 3, grad=True)
    y = (x * 2)[0]
    for t in (x, y, y.detach(), x.T, x[:, 1], x.sum(), torch.tensor(3), x.to(torch.complex128)):
        show(
            t.shape,
            t.stride(),
            t.storage_offset(),
            t.is_contiguous(),
            t.is_leaf,
            t.requires_grad,
            t.dtype,
            t.numel(),
            t.ndim,
            t.element_size(),
            t.nbytes,
            t.is_floating_point(),
            t.is_complex(),
            t._version,
            t._is_view(),
            t.output_nr,
            t.grad_fn.name() if t.grad_fn else None,
            t.retains_grad,
            len(t.size()),
            t.layout,
            t.device,
        )
    show(
        x.size(0),
        x.size(-1),
        x.dim(),
        x.T.shape,
        x.mT.stride(),
        y.tolist(),
        [*x.shape],
        x.shape == (2, 3),
        x.shape.numel(),
        x.shape[1:],
        type(x.shape[1:]).__name__,
    )
    show(
        float(x.detach()[0, 0]) == x[0, 0].item(),
        int(torch.tensor(2.7)),
        bool(torch.tensor(0.0)),
        complex(torch.tensor(1j)),
        range(5)[torch.tensor(2)],
        [1, 2][torch.tensor(1)],
        len(x),
        torch.tensor(1) in torch.tensor([1, 2]),
        x.type(),
        x.detach().float().type(),
    )
    refused(show, lambda: float(x))
    refused(show, lambda: bool(x))
    refused(show, lambda: len(torch.tensor(1)))
    refused(show, lambda: x.item())
    refused(show, lambda: x.numpy())
    refused(show, lambda: x.size(3))
    refused(show, lambda: x.unknown)
    refused(show, lambda: [0][torch.tensor(1.5)])


@program
def gradients_added_up_and_reset(torch: Any, show: Any) -> None:
    x, w = numbers(torch, 3), numbers(torch, 3, grad=True, shift=1.0)
    for _ in range(3):
        ((x * w).sum() ** 2).backward()
    g = w.grad
    show(seen(g), g._version, g is w.grad)
    w.grad.zero_()
    (w * x).sum().backward()
    show(seen(w.grad), g is w.grad)
    w.grad = None
    (w * x).sum().backward(create_graph=True)
    show(w.grad.requires_grad, g is w.grad)
    w.grad = None
    loss = (w.sin() * x).sum()
    (g,) = torch.autograd.grad(loss, w, create_graph=True)
    penalty = g.pow(2).sum() + loss
    penalty.backward()
    show(seen(w.grad), seen(g))
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
    w.requires_grad_(False)
    show((w * 2).requires_grad, w.is_leaf)
    w.requires_grad_()
    v = w.clone()
    v.retain_grad()
    v[0] = 0
    (v * v).sum().backward()
    show(seen(v.grad), seen(w.grad))
    h = w.register_hook(lambda g: g * 10)
    (w * x).sum().backward()
    h.remove()
    (w * x).sum().backward()
    show(seen(w.grad))


@program
def broadcast_gradients(torch: Any, show: Any) -> None:
    a, b, c = (
        numbers(torch, 3, 1, grad=True),
        numbers(torch, 4, grad=True, shift=1.0),
        numbers(torch, grad=True, shift=2.0),
    )
    for f in (
        lambda a, b, c: a * b + c,
        lambda a, b, c: torch.maximum(a, b) * c,
        lambda a, b, c: torch.where(a > b, a, b) + c,
        lambda a, b, c: (a - b).pow(2) / c,
        lambda a, b, c: torch.addcmul(a * b, a, b, value=0.5) * c,
        lambda a, b, c: torch.atan2(a, b) + c**2,
        lambda a, b, c: torch.einsum("ij,k->ik", a, b) * c,
        lambda a, b, c: torch.outer(a[:, 0], b) @ b * c,
        lambda a, b, c: (a - b).abs() * c,
        lambda a, b, c: torch.stack(torch.broadcast_tensors(a, b, c)),
        lambda a, b, c: a.expand(3, 4) * b.expand(3, 4) * c.expand(4),
    ):
        slopes(torch, show, f, a, b, c)
    refused(show, lambda: a[:, 0] + b)
    refused(show, lambda: torch.cat([a, b]))
    refused(show, lambda: torch.stack([a, b]))
    refused(show, lambda: torch.mm(a, a))
