"""Programs in the manner of PyTorch's tutorials, one text for both libraries: each shows the same under both."""

from __future__ import annotations

import copy
import importlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

RECIPES: dict[str, Callable[[Any, Any], None]] = {}


def recipe(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    RECIPES[function.__name__] = function
    return function


def shown(name: str, torch: Any) -> list[str]:
    """What a recipe shows under a library, numbers to six digits."""
    lines: list[str] = []

    def plain(x: Any) -> Any:
        if isinstance(x, float):
            return float(f"{x:.6g}") if abs(x) > 1e-9 else 0.0
        if type(x) in (list, tuple):
            return type(x)([plain(value) for value in x])
        return {key: plain(value) for key, value in x.items()} if type(x) is dict else x

    RECIPES[name](torch, lambda *values: lines.append(" ".join([str(plain(x)) for x in values])))
    return lines


def _data(torch: Any, *shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def _started(torch: Any, model: Any, seed: int = 3) -> Any:
    model.double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(_data(torch, *p.shape, seed=seed + i) * 0.3)
    return model


@recipe
def distillation(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.nn.functional
    teacher = _started(torch, nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))).eval()
    student = _started(torch, nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)))
    x, y = _data(torch, 8, 5), torch.arange(8) % 3
    hidden: dict[str, Any] = {}
    hook = student[0].register_forward_hook(lambda module, args, out: hidden.update(student=out))
    teacher[0].register_forward_hook(lambda module, args, out: hidden.update(teacher=out.detach()[:, :4]))
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    classes, angle, divergence = nn.CrossEntropyLoss(), nn.CosineEmbeddingLoss(), nn.KLDivLoss(reduction="batchmean")
    for _ in range(3):
        optimizer.zero_grad()
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, dim=-1)
        found = student(x)
        loss = classes(input=found, target=y) + 4 * divergence(F.log_softmax(found / 2, dim=-1), target=soft)
        loss = loss + angle(hidden["student"], input2=hidden["teacher"], target=torch.ones(8))
        loss.backward()
        optimizer.step()
        show(loss.item())
    hook.remove()
    show(len(student[0]._forward_hooks))
    rates, counts = _data(torch, 2), _data(torch, 2, seed=1).exp()
    show(nn.PoissonNLLLoss()(log_input=rates, target=counts).item(), nn.MSELoss()(target=counts, input=rates).item())
    show(nn.GaussianNLLLoss()(rates, target=counts, var=counts).item(), nn.L1Loss()(rates, target=counts).item())


@recipe
def ensembles_and_kernels(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.func

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(5, 4), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.second(torch.tanh(self.first(x)))

    nets = [_started(torch, Net(), 10 * k) for k in range(3)]
    params, buffers = F.stack_module_state(nets)
    base = copy.deepcopy(nets[0])
    x = _data(torch, 3, 2, 5)
    each = torch.vmap(lambda p, b, x: F.functional_call(base, (p, b), (x,)))(params, buffers, x)
    show(torch.allclose(each[1], nets[1](x[1])), {name: list(p.shape) for name, p in params.items()})
    own = {name: p.detach() for name, p in nets[0].named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(F.functional_call(nets[0], p, (x.unsqueeze(0),)), y.unsqueeze(0))

    of_examples = torch.vmap(F.grad(loss), in_dims=(None, 0, 0))(own, x[0], torch.tensor([0, 2]))
    show({name: (list(g.shape), g.sum().item()) for name, g in of_examples.items()})

    def one(p: Any, x: Any) -> Any:
        return F.functional_call(nets[0], p, (x.unsqueeze(0),)).squeeze(0)

    parts = [[j.flatten(2) for j in torch.vmap(F.jacrev(one), (None, 0))(own, x[i]).values()] for i in range(2)]
    kernel = sum([torch.einsum("naf,mbf->nmab", a, b) for a, b in zip(*parts, strict=True)])

    def by_products(a: Any, b: Any) -> Any:
        pull = F.vjp(lambda p: one(p, b), own)[1]
        return torch.vmap(lambda v: F.jvp(lambda p: one(p, a), (own,), pull(v))[1])(torch.eye(3, dtype=torch.float64))

    again = torch.vmap(torch.vmap(by_products, (None, 0)), (0, None))(x[0], x[1])
    show(kernel.sum().item(), torch.allclose(kernel, again.transpose(-1, -2)))


@recipe
def saved_and_resumed(torch: Any, show: Any) -> None:
    nn, optim = torch.nn, torch.optim

    def made() -> tuple[Any, Any, Any]:
        model = _started(torch, nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        return model, optimizer, optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    x, y = _data(torch, 6, 3), _data(torch, 6, 1, seed=1)

    def steps(model: Any, optimizer: Any, scheduler: Any) -> list[float]:
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    parts = made()
    show(steps(*parts))
    file = io.BytesIO()
    torch.save({"epoch": 3, "parts": [part.state_dict() for part in parts]}, file)
    file.seek(0)
    known = torch.load(file, weights_only=True)
    others = made()
    for part, state in zip(others, known["parts"], strict=True):
        part.load_state_dict(state)
    ahead = steps(*parts)
    show(steps(*others) == ahead, ahead, known["epoch"])
    wider = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    without = {name: x for name, x in known["parts"][0].items() if not name.startswith("2.")}
    show(wider.load_state_dict({**without, "extra": x}, strict=False))
    try:
        wider.load_state_dict(known["parts"][0])
    except RuntimeError as error:
        show(error)


@recipe
def parametrized_and_pruned(torch: Any, show: Any) -> None:
    nn = torch.nn
    parametrize, prune = [importlib.import_module(f"{torch.__name__}.nn.utils.{n}") for n in ("parametrize", "prune")]

    class Skew(nn.Module):
        def forward(self, X: Any) -> Any:
            return X.triu(1) - X.triu(1).transpose(-1, -2)

    class Exponential(nn.Module):
        def forward(self, X: Any) -> Any:
            return torch.matrix_exp(X)

    layer = _started(torch, nn.Linear(3, 3))
    for part in (Skew(), Exponential()):
        parametrize.register_parametrization(layer, "weight", part)
    show(layer, torch.dist(layer.weight.T @ layer.weight, torch.eye(3)).item() < 1e-9)
    layer(_data(torch, 2, 3)).pow(2).sum().backward()
    show(layer.parametrizations.weight.original.grad.sum().item())
    parametrize.remove_parametrizations(layer, "weight")
    show(layer, [name for name, _ in layer.named_parameters()])
    conv = _started(torch, nn.Conv2d(1, 4, 3))
    prune.l1_unstructured(conv, "weight", amount=9)
    prune.ln_structured(conv, "weight", amount=0.5, n=2, dim=0)
    for hook in conv._forward_pre_hooks.values():
        if hook._tensor_name == "weight":
            show([type(method).__name__ for method in hook], int((conv.weight == 0).sum()))
    prune.remove(conv, "weight")
    show(list(conv._forward_pre_hooks), [name for name, _ in conv.named_parameters()])

    def before(module: Any, args: Any, kwargs: Any) -> Any:
        return args, {"input": kwargs["input"] * 2}

    handle = conv.register_forward_pre_hook(before, with_kwargs=True)
    show(next(iter(conv._forward_pre_hooks.values())) is before, handle.id in conv._forward_pre_hooks_with_kwargs)
    show(conv(input=torch.ones(1, 1, 3, 3, dtype=torch.float64)).sum().item())


@recipe
def optimizer_of_ones_own(torch: Any, show: Any) -> None:
    class Lion(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 1e-2, betas: Any = (0.9, 0.99), weight_decay: float = 0.0) -> None:
            super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            with torch.enable_grad():
                loss = closure()
            for group in self.param_groups:
                (one, two), lr = group["betas"], group["lr"]
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state["average"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    p.data.mul_(1 - lr * group["weight_decay"])
                    p.add_(torch.sign(state["average"] * one + p.grad * (1 - one)), alpha=-lr)
                    state["average"].mul_(two).add_(p.grad, alpha=1 - two)
            return loss

    layer = _started(torch, torch.nn.Linear(3, 1))
    optimizer = Lion([{"params": [layer.weight], "lr": 0.1}, {"params": [layer.bias]}], weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.1, 0.2], total_steps=5, cycle_momentum=False)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = layer(_data(torch, 5, 3)).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(4):
        show(optimizer.step(closure).item(), scheduler.get_last_lr())
        scheduler.step()
    state = optimizer.state_dict()
    show(state["param_groups"], state["state"][0]["average"].tolist())
    show(optimizer, isinstance(optimizer, torch.optim.Optimizer), optimizer.defaults)
