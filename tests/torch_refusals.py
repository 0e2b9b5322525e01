"""What modules, layers and transforms take and refuse, in small programs for both libraries."""

from __future__ import annotations

import copy
import warnings
from typing import Any

from torch_autograd import module, program, refused


def _numbers(torch: Any, *shape: int, start: float = 0.0) -> Any:
    count = 1
    for n in shape:
        count *= n
    return ((torch.arange(count, dtype=torch.float64) + start) * 0.7).sin().reshape(shape)


@program
def rows_and_names_of_modules(torch: Any, show: Any) -> None:
    nn = torch.nn
    row = nn.Sequential(nn.ReLU(), nn.Tanh())
    show(row * 2, 2 * row)
    row *= 2
    show(row)
    row += nn.Sequential(nn.GELU())
    show(row)
    for wrong in (lambda: row * 0, lambda: row * 1.5, lambda: row + 3):
        refused(show, wrong, 30)
    refused(show, lambda: row.set_submodule("1", 3), 60)
    refused(show, lambda: nn.ParameterList([torch.ones(1)])(1))
    refused(show, lambda: nn.ParameterDict({})(1))
    held = nn.ParameterDict({"a": torch.ones(2), "b": torch.zeros(1)})
    show(held, held.setdefault("n", torch.ones(1)), held.get("zz"), list(held.copy()), list(reversed(held)))
    held |= {"t": torch.zeros(1)}
    show(list(held | {"r": torch.ones(1)}), list({"q": torch.ones(1)} | held), held.popitem()[0], list(held))
    show(dict(held.fromkeys(["x"], 3).items()))
    layer = nn.Linear(2, 2)
    show(layer.to_empty(device="cpu").weight.shape, layer.dump_patches)


@program
def copies_of_parameters_have_no_gradient(torch: Any, show: Any) -> None:
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    again = copy.deepcopy(layer)
    show(again.weight.grad, type(again.weight).__name__, torch.equal(again.weight, layer.weight), again.weight.is_leaf)
    fixed = copy.deepcopy(torch.nn.Parameter(torch.ones(1), requires_grad=False))
    show(fixed.requires_grad, copy.deepcopy(torch.nn.LazyLinear(2)).weight)
    show(layer(torch.ones(1, 2)).grad_fn.name())
    refused(show, lambda: torch.nn.LazyLinear(2).requires_grad_(False), 40)


@program
def older_hooks_of_modules(torch: Any, show: Any) -> None:
    nn = torch.nn
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        for p in layer.parameters():
            p.fill_(0.5)
    handle = layer.register_backward_hook(lambda m, gi, go: show(type(m).__name__, go))
    layer(torch.ones(1, 2)).sum().backward()
    refused(show, lambda: layer.register_full_backward_hook(lambda *a: None))
    handle.remove()
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda *a: None)
    refused(show, lambda: layer.register_backward_hook(lambda *a: None))
    y = layer(torch.ones(1, 2, requires_grad=True))
    refused(show, lambda: y.mul_(2), 90)
    rectified = nn.ReLU(inplace=True)
    rectified.register_full_backward_hook(lambda *a: None)
    refused(show, lambda: rectified(torch.ones(1, requires_grad=True) * 1), 90)
    inside = module(torch, "nn.modules.module")
    with inside.register_module_forward_hook(lambda m, i, o: show(type(m).__name__)):
        rectified(torch.ones(1))


@program
def operands_that_do_not_fit(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.nn.functional
    x = _numbers(torch, 2, 3)
    image = _numbers(torch, 1, 1, 4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(show, lambda: nn.LSTM(2, 3, dropout=0.5))
    attention = nn.MultiheadAttention(4, 2, batch_first=True).double()
    q = _numbers(torch, 1, 3, 4)
    places, values = F.max_pool2d(image, 2, return_indices=True)[::-1]
    for wrong, upto in (
        (lambda: F.linear(x, _numbers(torch, 2, 3), _numbers(torch, 5)), 0),
        (lambda: F.one_hot(torch.tensor([-1])), 40),
        (lambda: F.softmax(torch.ones(2, dtype=torch.int64), 0), 40),
        (lambda: F.group_norm(_numbers(torch, 1, 2), 2), 60),
        (lambda: F.max_unpool2d(values, places, 2, output_size=(9, 9)), 60),
        (lambda: F.interpolate(image, size=2, mode="foo"), 0),
        (lambda: F.interpolate(image, size=2, mode="linear"), 40),
        (lambda: F.interpolate(image, size=(1, 2, 3)), 60),
        (lambda: F.interpolate(image, scale_factor=(1, 2, 3)), 60),
        (lambda: F.interpolate(image, scale_factor=2, mode="nearest", antialias=True), 40),
        (lambda: F.affine_grid(torch.ones(1, 2, 3), (1, 1, 0, 2)), 40),
        (lambda: F.affine_grid(torch.ones(1, 3, 3), (1, 1, 2, 2)), 60),
        (lambda: F.grid_sample(image, torch.zeros(1, 2, 2, 2)), 40),
        (lambda: F.pad(image, (1, 1), mode="reflect"), 50),
        (lambda: F.pad(image, (1, 1), mode="reflect", value=3), 60),
        (lambda: nn.Embedding.from_pretrained(torch.ones(2)), 40),
        (lambda: nn.LSTM(2.5, 3), 30),
        (lambda: nn.LSTM(4, 3)(q), 30),
        (lambda: nn.utils.rnn.pad_sequence(3), 40),
        (lambda: nn.utils.rnn.pad_sequence([torch.ones(1)], padding_side="x"), 40),
        (lambda: nn.utils.spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 2))), 60),
        (lambda: attention(q, q, q[:, :2]), 0),
        (lambda: attention(_numbers(torch, 3, 4), q, q), 60),
        (lambda: attention(q, q, q, key_padding_mask=torch.tensor([[False, False]])), 40),
        (lambda: attention(q, q, q, attn_mask=torch.ones(3, 3, dtype=torch.int64)), 60),
        (lambda: F.scaled_dot_product_attention(_numbers(torch, 3), q, q), 40),
        (lambda: F.scaled_dot_product_attention(q, q.float(), q), 60),
    ):  # fmt: skip
        refused(show, wrong, upto)
    bag = nn.EmbeddingBag(5, 2, mode="max")
    few = torch.tensor([0, 1]), torch.tensor([0])
    refused(show, lambda: bag(*few, per_sample_weights=torch.ones(2)), 60)
    show(F.nll_loss(torch.ones(3), torch.tensor([0])))
    seen = torch.ones(3, 3, dtype=torch.bool)
    refused(show, lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=seen, is_causal=True))


@program
def orders_of_examples(torch: Any, show: Any) -> None:
    func = module(torch, "func")
    vmap = func.vmap
    x = _numbers(torch, 3, 5)
    rounded = (x * 2).round()
    holes = torch.where(x > 0.8, float("nan"), x)
    edges = torch.tensor([-1.0, 0.0, 0.5], dtype=torch.float64)
    for f, given in (
        (torch.median, x), (torch.median, holes), (lambda r: torch.median(r, 0), x), (torch.nanmedian, holes),
        (lambda r: torch.median(r, 0), holes), (lambda r: torch.nanmedian(r, 0), holes),
        (lambda r: torch.kthvalue(r, 2), x), (lambda r: torch.kthvalue(r, 2, keepdim=True), x), (torch.mode, rounded),
        (lambda r: torch.mode(r, keepdim=True), rounded), (torch.count_nonzero, rounded),
        (lambda r: torch.count_nonzero(r, 0), rounded), (lambda r: torch.histc(r, 4, -1.0, 0.9), x),
        (lambda r: torch.bucketize(r, edges), x), (lambda r: torch.bucketize(r, edges, right=True), rounded),
        (lambda r: torch.searchsorted(r.sort()[0], r), x), (lambda r: torch.isin(r, edges), rounded),
        (torch.median, rounded.long()), (lambda r: torch.median(r.reshape(5, 1), 1), x),
    ):  # fmt: skip
        found = vmap(f)(given)
        show([part.tolist() for part in found] if isinstance(found, tuple) else found)
    for f in (
        torch.median,
        lambda r: torch.kthvalue(r, 2)[0],
        lambda r: torch.median(r, 0)[0],
        lambda r: torch.mode(r)[0],
    ):
        show(vmap(func.grad(f))(x))
    show(vmap(func.grad(torch.median))(rounded))
    show(vmap(vmap(torch.median))(x.reshape(3, 5, 1)))
    i = torch.tensor([0, 4, 1])
    show(vmap(lambda r, k: r[k])(x, i), vmap(lambda k: edges[k % 3])(i), vmap(lambda r, k: r[None, k])(x, i))
    refused(show, lambda: vmap(lambda k: torch.nn.functional.one_hot(k))(i), 60)
    refused(show, lambda: vmap(lambda r: None)(x), 60)
    refused(show, lambda: vmap(lambda r: r.numpy())(x), 40)


@program
def gradients_inside_of_transforms(torch: Any, show: Any) -> None:
    func = module(torch, "func")
    x = _numbers(torch, 3, start=1.0)

    def square_of_slope(x: Any) -> Any:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return (g * x).sum()

    def of_two(x: Any) -> Any:
        y = x * x
        a, b = torch.autograd.grad([(y**3).sum(), y.sum()], (y, x), create_graph=True)
        return (a * b).sum()

    def along(x: Any) -> Any:
        return torch.autograd.grad(x * x, x, torch.ones_like(x) * 3, create_graph=True)[0].sum()

    def unused(x: Any) -> Any:
        a, b = torch.autograd.grad((x**2).sum(), (x, x * 1), allow_unused=True, create_graph=True)
        show(b)
        return a.sum()

    for f in (square_of_slope, of_two, along, unused):
        show(func.grad(f)(x))
    show(func.jvp(func.grad(square_of_slope), (x,), (x,)), func.grad(lambda x: func.grad(square_of_slope)(x).sum())(x))
    z = torch.complex(x, -2 * x)

    def of_complex(z: Any) -> Any:
        weight = torch.tensor(2j, dtype=torch.complex128)
        (g,) = torch.autograd.grad((z**3).sum(), z, weight, create_graph=True)
        return (g * z).real.sum()

    show(func.grad(of_complex)(z))
    refused(show, lambda: func.grad(lambda x: torch.autograd.grad(x * 2, x)[0].sum())(x))
    refused(show, lambda: func.grad(lambda x: (x**2).sum().backward())(x))
    refused(show, lambda: func.grad(lambda x: x.retain_grad())(x))
    refused(show, lambda: func.vmap(lambda x: x.requires_grad_())(x))
    refused(show, lambda: func.jvp(lambda x: torch.ones(2), (x,), (x,), strict=True))
    refused(show, lambda: func.jacfwd(torch.sin, randomness="some")(x))
    _, slope = func.linearize(torch.sin, x)
    refused(show, lambda: slope(x.float()))


@program
def calls_with_other_parameters(torch: Any, show: Any) -> None:
    func, nn = module(torch, "func"), torch.nn

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.a(x) + self.b(x)

    x, one, two = torch.ones(1, 1), torch.ones(1, 1), torch.full((1, 1), 2.0)
    show(
        func.functional_call(Tied(), {"a.weight": two}, x),
        func.functional_call(Tied(), {"a.weight": one, "b.weight": one}, x),
    )
    refused(show, lambda: func.functional_call(Tied(), {"a.weight": one, "b.weight": two}, x), 40)
    show(func.functional_call(Tied(), {"a.weight": one, "b.weight": two}, x, tie_weights=False))
    refused(show, lambda: func.functional_call(Tied(), 3, x))
