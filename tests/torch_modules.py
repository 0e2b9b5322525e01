"""What modules, loaders and helpers of PyTorch do: one text for both libraries, whose lines are compared."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from typing import Any

import numpy as np

_R = np.random.default_rng(0)
_NUMBERS = _R.standard_normal(4000)


def filled(torch: Any, module: Any, start: int = 0) -> Any:
    """The module with parameters that both libraries have."""
    with torch.no_grad():
        for x in module.parameters():
            x.copy_(torch.tensor(_NUMBERS[start : start + x.numel()].reshape(tuple(x.shape)), dtype=x.dtype))
            start += x.numel()
    return module


def shown(x: Any) -> Any:
    return [round(v, 5) for v in x.detach().double().reshape(-1).tolist()]


def refused(f: Any) -> None:
    """The type of the error that a call raises, and the first line of its text."""
    try:
        print("not refused", f())
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])


class Held:
    """A model with a part of each kind."""

    @staticmethod
    def of(torch: Any) -> Any:
        nn = torch.nn

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(3, 4)
                self.rest = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4)])
                self.named = nn.ModuleDict({"a": nn.Dropout(0.0), "b": nn.Linear(4, 2, bias=False)})
                self.scale = nn.Parameter(torch.ones(2))
                self.register_buffer("seen", torch.zeros(1))
                self.register_buffer("temporary", torch.ones(2), persistent=False)
                self.register_parameter("nothing", None)
                self.extra = [1, 2]

            def forward(self, x: Any) -> Any:
                x = self.first(x)
                for layer in self.rest:
                    x = layer(x)
                self.seen += 1
                return self.named["b"](self.named["a"](x)) * self.scale

            def extra_repr(self) -> str:
                return "held=True"

        return filled(torch, Net())


def registration(torch: Any) -> None:
    """Parameters, buffers and parts: named, counted, removed, replaced."""
    net = Held.of(torch)
    print(net)
    print([name for name, _ in net.named_parameters()], [name for name, _ in net.named_buffers()])
    print([name for name, _ in net.named_modules()], [name for name, _ in net.named_children()])
    print(list(net.state_dict()), len(list(net.parameters())), net.nothing, net.extra)
    print(net.get_parameter("rest.0.weight").shape, net.get_buffer("rest.2.running_mean"), net.get_submodule("named.b"))
    net.rest.append(torch.nn.Tanh())
    net.rest[1] = torch.nn.GELU()
    del net.rest[0]
    print(net.rest, len(net.rest), net.rest[-1], net.rest[0:2])
    net.named.update({"c": torch.nn.Identity()})
    print(list(net.named.keys()), "c" in net.named, net.named.pop("c"))
    del net.scale
    refused(lambda: net.scale)
    net.scale = torch.nn.Parameter(torch.zeros(2))
    refused(lambda: setattr(net, "scale", torch.ones(2)))
    refused(lambda: setattr(net, "first", 3))
    net.seen = torch.ones(3)
    print(net.seen, [name for name, _ in net.named_buffers()])
    shared = torch.nn.Linear(2, 2)
    both = torch.nn.Sequential(shared, torch.nn.ReLU(), shared)
    print(
        len(list(both.parameters())), len(list(both.named_parameters(remove_duplicate=False))), len(both.state_dict())
    )
    print(both[0] is both[2], both[-1], both[:2])
    values = torch.nn.ParameterList([torch.ones(2, 3), torch.nn.Parameter(torch.zeros(1))])
    values.append(torch.ones(1))
    print(values, len(values), [name for name, _ in values.named_parameters()])
    table = torch.nn.ParameterDict({"a": torch.ones(2)})
    table["b"] = torch.zeros(1)
    print(list(table), [name for name, _ in table.named_parameters()], table["a"])
    print(torch.nn.Parameter(torch.ones(2), requires_grad=False), isinstance(torch.ones(1), torch.nn.Parameter))
    holder = torch.nn.Module()
    holder.b = torch.nn.Buffer(torch.ones(2))
    holder.c = torch.nn.Buffer(torch.ones(1), persistent=False)
    print(list(holder.state_dict()), [name for name, _ in holder.named_buffers()])


def states(torch: Any) -> None:
    """State dictionaries: read, loaded, strict or not, assigned; copies; pickles; types."""
    net, other = Held.of(torch), Held.of(torch)
    filled(torch, other, 100)
    x = torch.tensor(_NUMBERS[:15].reshape(5, 3), dtype=torch.float32)
    print(other.load_state_dict(net.state_dict()), shown(net(x)) == shown(other(x)))
    state = net.state_dict()
    state["first.weight"].zero_()  # it is the parameter's memory
    print(shown(net.first.weight)[:3], state._metadata["rest.2"])
    short = {name: value for name, value in state.items() if "rest" not in name}
    refused(lambda: other.load_state_dict(short))
    print(other.load_state_dict({**short, "more": torch.ones(1)}, strict=False))
    refused(lambda: other.load_state_dict({**state, "scale": torch.ones(3)}, strict=False))
    given = {name: value.clone() for name, value in net.state_dict().items()}
    other.load_state_dict(given, assign=True)
    other.seen.add_(7)
    print(given["seen"], other.scale.requires_grad)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.scale.mul_(2)
    print(shown(net.scale), shown(twin.scale), twin.scale.is_leaf, twin.training)
    layer = filled(torch, torch.nn.Linear(2, 2))
    print(shown(pickle.loads(pickle.dumps(layer)).weight) == shown(layer.weight))
    layer.double()
    print(layer.weight.dtype, layer(torch.ones(1, 2, dtype=torch.float64)).dtype, layer.half().weight.dtype)
    layer.to(torch.float32)
    print(layer.weight, layer.to("cpu") is layer)
    refused(lambda: layer.to(torch.int64))

    class Extra(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.note = "a"

        def get_extra_state(self) -> Any:
            return {"note": self.note}

        def set_extra_state(self, state: Any) -> None:
            self.note = state["note"]

    one, two = Extra(), Extra()
    one.note = "b"
    print(one.state_dict(), two.load_state_dict(one.state_dict()), two.note)


def modes_and_hooks(torch: Any) -> None:
    """train and eval, apply, frozen parts, gradients cleared, hooks before and after, and on the way back."""
    net = Held.of(torch)
    x = torch.tensor(_NUMBERS[:15].reshape(5, 3), dtype=torch.float32, requires_grad=True)
    print([m.training for m in net.eval().modules()][:3], [m.training for m in net.train().modules()][:3])
    names: list[str] = []
    net.apply(lambda m: names.append(type(m).__name__))
    print(names)
    net.first.requires_grad_(False)
    print([name for name, value in net.named_parameters() if value.requires_grad])
    net(x).sum().backward()
    print(net.first.weight.grad, net.scale.grad is None)
    net.zero_grad()
    print(net.scale.grad)
    layer = filled(torch, torch.nn.Linear(3, 2))
    calls: list[str] = []
    layer.register_forward_pre_hook(lambda m, args: calls.append("before") or (args[0] * 2,))
    layer.register_forward_hook(lambda m, args, out: calls.append("after") or out + 1)
    first = layer.register_forward_hook(lambda m, args, out: calls.append("first"), prepend=True)
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: calls.append(str(sorted(kwargs))) or (args, kwargs), with_kwargs=True
    )
    layer.register_full_backward_pre_hook(lambda m, grads: calls.append(f"back {grads[0].shape}"))
    layer.register_full_backward_hook(
        lambda m, gi, go: calls.append("through") or (None if gi[0] is None else (gi[0] * 10,))
    )
    out = layer(x)
    print(shown(out), calls)
    x.grad = None
    out.sum().backward()
    print(calls, shown(x.grad)[:4], shown(layer.bias.grad))
    first.remove()
    calls.clear()
    layer(x.detach()).sum().backward()
    print(calls)

    def watch(m: Any, gi: Any, go: Any) -> None:
        print("bilinear", [tuple(g.shape) for g in gi], [tuple(g.shape) for g in go])

    two = filled(torch, torch.nn.Bilinear(2, 3, 2))
    two.register_full_backward_hook(watch)
    two(torch.ones(4, 2, requires_grad=True), torch.ones(4, 3, requires_grad=True)).sum().backward()
    lone = filled(torch, torch.nn.Linear(2, 2))
    lone.register_full_backward_hook(lambda m, gi, go: print("no input", gi, tuple(go[0].shape)))
    lone(torch.ones(1, 2)).sum().backward()
    saved = torch.nn.Linear(1, 1)
    saved.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("bias") and None)
    saved.register_load_state_dict_post_hook(lambda m, keys: print("loaded", keys.missing_keys))
    print(list(saved.state_dict()), saved.load_state_dict({"weight": torch.ones(1, 1)}, strict=False))


def clipping(torch: Any) -> None:
    """Gradients clipped, parameters as a vector, sequences packed and padded."""
    layer = filled(torch, torch.nn.Linear(3, 2))
    (layer(torch.ones(4, 3)) ** 2).sum().backward()
    utils = torch.nn.utils
    print(utils.clip_grad_norm_(layer.parameters(), 1.0), shown(layer.weight.grad))
    print(utils.clip_grad_norm_(layer.parameters(), 1.0, norm_type=float("inf")), utils.clip_grad_norm_([], 1.0))
    utils.clip_grad_value_(layer.parameters(), 0.1)
    print(shown(layer.weight.grad))
    vector = utils.parameters_to_vector(layer.parameters())
    utils.vector_to_parameters(vector * 2, layer.parameters())
    print(shown(layer.bias), vector.shape)
    rnn = utils.rnn
    rows = [torch.tensor(_NUMBERS[:n], dtype=torch.float32).unsqueeze(1) for n in (2, 4, 3)]
    padded = rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    print(padded.squeeze(2))
    packed = rnn.pack_padded_sequence(padded, [2, 4, 3], batch_first=True, enforce_sorted=False)
    print(packed.data.squeeze(1), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    for kind in ("LSTM", "GRU", "RNN"):
        layer = filled(torch, getattr(torch.nn, kind)(1, 2, num_layers=2, bidirectional=True, batch_first=True))
        out, state = layer(packed)
        back, lengths = rnn.pad_packed_sequence(out, batch_first=True, total_length=5)
        back.sum().backward()
        print(shown(back)[:12], lengths, shown(state[0])[:4], shown(layer.weight_ih_l0_reverse.grad)[:2])
    refused(lambda: rnn.pack_padded_sequence(padded, [2, 4, 3], batch_first=True))
    print([tuple(x.shape) for x in rnn.unpack_sequence(rnn.pack_sequence(rows, enforce_sorted=False))])


def parametrisations(torch: Any) -> None:
    """Weights as functions of others: symmetric ones, lengths and directions, spectral norms."""
    parametrize, made = torch.nn.utils.parametrize, torch.nn.utils.parametrizations

    class Symmetric(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, a: Any) -> Any:
            return a.triu()

    layer = filled(torch, torch.nn.Linear(3, 3))
    parametrize.register_parametrization(layer, "weight", Symmetric())
    print(layer, list(layer.state_dict()), shown(layer.weight))
    layer(torch.ones(2, 3)).sum().backward()
    print(shown(layer.parametrizations.weight.original.grad), parametrize.is_parametrized(layer, "bias"))
    layer.weight = torch.ones(3, 3)
    with parametrize.cached():
        print(layer.weight is layer.weight, shown(layer.parametrizations.weight.original))
    twin = copy.deepcopy(layer)
    print(type(twin).__name__, shown(twin.weight))
    parametrize.remove_parametrizations(layer, "weight")
    print(layer, type(layer.weight).__name__, layer.weight.requires_grad)
    refused(lambda: parametrize.register_parametrization(layer, "x", Symmetric()))
    refused(lambda: parametrize.register_parametrization(layer, "weight", torch.nn.Flatten(0)))
    x = torch.tensor(_NUMBERS[:6].reshape(2, 3), dtype=torch.float32)
    for wrap in (made.weight_norm, torch.nn.utils.weight_norm):
        layer = wrap(filled(torch, torch.nn.Linear(3, 4)), dim=1)
        print(layer, {name: tuple(v.shape) for name, v in layer.state_dict().items()}, shown(layer(x)))
        layer(x).sum().backward()
        print([shown(p.grad)[:4] for p in layer.parameters()])
    print(torch.nn.utils.remove_weight_norm(layer), shown(layer(x)), [name for name, _ in layer.named_parameters()])
    state = {"_u": torch.tensor([0.6, 0.8]), "_v": torch.tensor([1.0, 0.0, 0.0])}
    for wrap in (made.spectral_norm, torch.nn.utils.spectral_norm):
        layer = wrap(filled(torch, torch.nn.Linear(3, 2)))
        filled(torch, layer)
        layer.load_state_dict(
            {name: state.get(name[-2:], v) if v.ndim == 1 and name[-2] == "_" else v
             for name, v in layer.state_dict().items()}
        )  # fmt: skip
        layer(x).sum().backward()
        print(shown(layer(x)), [shown(p.grad) for p in layer.parameters()], list(layer.state_dict()))
        print(shown(layer.eval()(x)), shown(layer(x)))


def loaders(torch: Any) -> None:
    """Datasets, samplers, loaders, and how records become batches."""
    data = torch.utils.data
    rows = data.TensorDataset(torch.arange(10).reshape(5, 2), torch.arange(5.0))
    print(len(rows), rows[1], rows[1:3])
    for batch in data.DataLoader(rows, batch_size=2):
        print(batch)
    print(len(data.DataLoader(rows, 2)), len(data.DataLoader(rows, 2, drop_last=True)))
    both = rows + rows
    print(len(both), both[7], both[-1])
    print([len(part) for part in data.random_split(rows, [3, 2])], len(data.Subset(rows, [0, 3])))
    mixed = sorted([n for batch in data.DataLoader(range(7), 3, shuffle=True) for n in batch.tolist()])
    print(mixed, sorted(data.RandomSampler(range(4))), list(data.SequentialSampler(range(3))))
    print(list(data.BatchSampler(data.SequentialSampler(range(5)), 2, True)))
    print(len(list(data.WeightedRandomSampler([0.0, 1.0], 3))), list(data.WeightedRandomSampler([0.0, 1.0], 3)))
    print(sorted(data.SubsetRandomSampler([4, 2])), len(data.RandomSampler(range(3), replacement=True, num_samples=8)))

    class Squares(data.Dataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i: int) -> Any:
            return {"x": float(i), "y": np.array([i, i * i]), "name": f"row {i}", "pair": (i, [True, np.float32(2)])}

    for batch in data.DataLoader(Squares(), batch_size=3):
        print(batch)
    print(list(data.DataLoader(Squares(), batch_size=None))[2])
    print(next(iter(data.DataLoader(Squares(), batch_sampler=[[4, 0]], collate_fn=lambda batch: batch[0]["name"]))))

    class Stream(data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(5))

    print(list(data.DataLoader(Stream(), batch_size=2)), list(data.DataLoader(Stream(), 2, drop_last=True)))
    print(data.get_worker_info(), data.StackDataset(a=[1, 2], b=[3, 4])[1])
    refused(lambda: data.TensorDataset(torch.ones(2), torch.ones(3)))
    refused(lambda: data.DataLoader(rows, shuffle=True, sampler=data.SequentialSampler(rows)))
    refused(lambda: data.DataLoader(rows, batch_sampler=[[0]], batch_size=2))
    refused(lambda: data.DataLoader(rows, num_workers=-1))
    refused(lambda: data.DataLoader(rows, prefetch_factor=2))
    refused(lambda: data.DataLoader(Stream(), shuffle=True))
    refused(lambda: data.random_split(rows, [1, 2]))
    refused(lambda: data.default_collate([object()]))
    refused(lambda: data.default_collate([[1], [1, 2]]))
    refused(lambda: data.RandomSampler([]))
    refused(lambda: data.BatchSampler([1], 0, False))
    refused(lambda: data.ConcatDataset([]))


def first_values(torch: Any) -> None:
    """Bounds, means and spreads of first values, and those that are not drawn."""
    torch.manual_seed(0)
    init = torch.nn.init
    for name, options in [
        ("uniform_", {"a": -2.0, "b": 1.0}), ("xavier_uniform_", {"gain": 2.0}), ("kaiming_uniform_", {"a": 1.0}),
        ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}), ("trunc_normal_", {"a": -0.7, "b": 0.7}),
    ]:  # fmt: skip
        x = getattr(init, name)(torch.empty(300, 40), **options)
        print(
            name,
            round(x.max().item(), 2),
            round(x.min().item(), 2),
            abs(x.mean().item() - (-0.5 if options.get("b") else 0)) < 0.02,
        )
    for name, options in [("normal_", {"std": 0.3}), ("xavier_normal_", {}), ("kaiming_normal_", {"mode": "fan_out"})]:
        x = getattr(init, name)(torch.empty(400, 100), **options)
        print(name, round(x.std().item(), 2), abs(x.mean().item()) < 0.01)
    q = init.orthogonal_(torch.empty(3, 5), gain=2.0)
    print([abs(round(v, 4)) for v in (q @ q.T / 4).reshape(-1).tolist()], q.shape)
    print(init.eye_(torch.empty(2, 3)), init.constant_(torch.empty(2), 3.0), init.ones_(torch.empty(1)))
    print(init.dirac_(torch.empty(4, 1, 3), groups=2), (init.sparse_(torch.empty(10, 3), 0.35) == 0).sum(0))
    print([round(float(init.calculate_gain(n)), 6) for n in ("relu", "tanh", "leaky_relu", "selu", "conv2d")])
    refused(lambda: init.xavier_uniform_(torch.ones(2)))
    refused(lambda: init.kaiming_normal_(torch.ones(2, 2), mode="x"))
    refused(lambda: init.calculate_gain("x"))
    for layer in (
        torch.nn.Linear(100, 50),
        torch.nn.Conv2d(4, 50, 5),
        torch.nn.LSTM(10, 100),
        torch.nn.Bilinear(100, 3, 9),
    ):
        print({name: round(x.abs().max().item(), 1) for name, x in layer.named_parameters()})
    print(round(torch.nn.Embedding(100, 50, padding_idx=3).weight.std().item(), 1), torch.nn.PReLU().weight)


def nothing_done(torch: Any) -> None:
    """What is there to be asked, and does nothing without an accelerator."""
    print(torch.cuda.is_available(), torch.cuda.device_count(), torch.backends.mps.is_available())
    net = torch.nn.Linear(2, 1)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.autocast("cpu", enabled=False):
        loss = net(torch.ones(3, 2)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale(), scaler.state_dict(), loss.dtype)
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(0)
    print(torch.ones(2).pin_memory if False else "done")


def lazy_layers(torch: Any) -> None:
    """Layers that learn their sizes from the first input, before and after it."""
    nn = torch.nn

    def made() -> Any:
        first = nn.LazyConv2d(4, 3, groups=2, padding=1), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten()
        return nn.Sequential(*first, nn.LazyLinear(3))

    net = made()
    print(net, [type(p).__name__ for p in net.parameters()], list(net.state_dict()))
    print(net[0].has_uninitialized_params(), type(net[1].running_mean).__name__, net[0].weight)
    refused(lambda: net[0].weight.shape)
    net(torch.ones(2, 2, 5, 5)).sum().backward()
    print(net, [(n, tuple(p.shape), p.requires_grad, type(p).__name__) for n, p in net.named_parameters()])
    print(net[1].num_batches_tracked, net[0].weight.grad.shape)
    other = made()
    other.load_state_dict(net.state_dict())
    print(tuple(other[0].weight.shape), [part.eval() and None for part in (net, other)])
    x = torch.ones(1, 2, 5, 5)
    print(bool((net(x) == other(x)).all()), type(other[0]).__name__)
    for text, shape in [
        ("Conv1d(2, 2)", (3, 5)), ("Conv3d(2, 1)", (1, 2, 2, 2, 2)), ("ConvTranspose1d(2, 2)", (1, 3, 5)),
        ("ConvTranspose2d(2, 2)", (3, 5, 4)), ("ConvTranspose3d(2, 2, bias=False)", (1, 3, 5, 4, 4)),
        ("InstanceNorm1d()", (2, 3, 5)), ("InstanceNorm2d(affine=False)", (1, 3, 5, 4)),
        ("InstanceNorm3d(track_running_stats=False)", (1, 3, 2, 2, 2)), ("BatchNorm1d(affine=False)", (4, 3)),
        ("BatchNorm3d()", (2, 3, 1, 2, 2)), ("Linear(2, bias=False)", (7,)),
    ]:  # fmt: skip
        layer = eval(f"nn.Lazy{text}", {"nn": nn})
        print(tuple(layer(torch.ones(shape)).shape), layer, type(layer).__name__)
        print([tuple(x.shape) for x in (*layer.parameters(), *layer.buffers())])
    refused(lambda: nn.LazyConv1d(4, 2, groups=2)(torch.ones(1, 3, 5)))
    waiting = nn.parameter.UninitializedParameter()
    waiting.materialize((2, 3))
    print(tuple(waiting.shape), waiting.requires_grad, type(waiting).__name__)


def hooks_of_all(torch: Any) -> None:
    """Hooks of every module, which run before a module's own."""
    from importlib import import_module

    where = import_module(f"{torch.__name__}.nn.modules.module")
    net = filled(torch, torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()))
    own = net[0].register_forward_hook(lambda m, args, out: print("own", shown(out)))
    handles = [
        where.register_module_forward_pre_hook(lambda m, args: print("before", type(m).__name__, shown(args[0]))),
        where.register_module_forward_hook(lambda m, args, out: out * 2),
        where.register_module_forward_hook(
            lambda m, a, k, out: print(type(m).__name__, k, shown(out)), with_kwargs=True
        ),
        where.register_module_full_backward_pre_hook(lambda m, g: print("pulls", type(m).__name__, shown(g[0]))),
        where.register_module_full_backward_hook(lambda m, g, h: print("pulled", type(m).__name__, shown(h[0]))),
    ]
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    print(shown(net[0].weight.grad))
    for handle in [own, *handles]:
        handle.remove()
    print(shown(net(torch.ones(1, 2))))

    def told(what: str) -> Any:
        return lambda m, name, value: print(what, type(m).__name__, name, type(value).__name__)

    seen = [
        where.register_module_parameter_registration_hook(told("parameter")),
        where.register_module_buffer_registration_hook(told("buffer")),
        where.register_module_module_registration_hook(told("module")),
        where.register_module_module_registration_hook(lambda m, name, value: torch.nn.ReLU() if name == "1" else None),
    ]
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Tanh())
    net[0].running_mean = torch.zeros(2)
    net.last = torch.nn.Linear(2, 1, bias=False)
    for handle in seen:
        handle.remove()
    print(net)


def averages(torch: Any) -> None:
    """Averages of weights, statistics for them, and their rates."""
    swa = torch.optim.swa_utils
    nn = torch.nn
    for options, make, buffers in [
        ({}, lambda: None, False),
        ({"anneal_strategy": "linear"}, lambda: swa.get_ema_avg_fn(0.9), True),
    ]:
        net = nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
        filled(torch, net.double())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        rates = swa.SWALR(optimizer, swa_lr=0.02, anneal_epochs=3, **options)
        mean = swa.AveragedModel(net, avg_fn=make(), use_buffers=buffers)
        x = torch.tensor(_NUMBERS[:12].reshape(4, 3))
        for _ in range(5):
            optimizer.zero_grad()
            (net(x) ** 2).mean().backward()
            optimizer.step()
            mean.update_parameters(net)
            rates.step()
            print([round(r, 8) for r in rates.get_last_lr()])
        swa.update_bn([x[:2], (x[2:], 0)], mean)
        print({name: shown(v) for name, v in mean.state_dict().items()}, shown(mean(x)), mean.training)
    several = swa.AveragedModel(net, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5))
    for _ in range(2):
        several.update_parameters(mean.module)
    print(shown(several.module[0].weight))
    refused(lambda: swa.get_ema_avg_fn(1.5))
    refused(lambda: swa.SWALR(optimizer, 0.1, anneal_strategy="x"))
    refused(lambda: swa.SWALR(optimizer, [0.1, 0.2]))


def orthogonal_weights(torch: Any) -> None:
    """Orthogonal matrices, by each map and of each form; those that complete a basis are random."""
    nn = torch.nn
    make = nn.utils.parametrizations.orthogonal
    for shape in ((3, 3), (5, 3), (3, 5)):
        for name in (None, "matrix_exp", "cayley", "householder"):
            layer = make(nn.Linear(shape[1], shape[0], bias=False).double(), orthogonal_map=name)
            base = np.linalg.qr(_NUMBERS[: max(shape) ** 2].reshape(max(shape), -1))[0]
            given = _NUMBERS[50 : 50 + shape[0] * shape[1]].reshape(shape) * 0.5
            if name == "householder" or (name is None and shape != (3, 3)):
                given[np.diag_indices(3)] = [-1.0, 1.0, -1.0]
            state = {"parametrizations.weight.original": given, "parametrizations.weight.0.base": base}
            print(list(layer.state_dict()) == list(state), layer)
            layer.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
            w = layer.weight
            (w**3).sum().backward()
            print(shown(w), shown(layer.parametrizations.weight.original.grad))
            layer.weight = w.detach()
            print((layer.weight - w).abs().max().item() < 1e-9)
    layer = make(nn.Linear(3, 3), use_trivialization=False)
    gram = layer.weight @ layer.weight.T
    print((gram - torch.eye(3)).abs().max().item() < 1e-5, list(layer.state_dict()))
    refused(lambda: setattr(layer, "weight", torch.eye(3)))
    refused(lambda: make(nn.Linear(3, 3), "bias"))
    refused(lambda: make(nn.Linear(3, 3), orthogonal_map="x"))


ALL = [
    "registration", "states", "modes_and_hooks", "clipping", "parametrisations", "loaders", "first_values",
    "nothing_done", "lazy_layers", "hooks_of_all", "averages", "orthogonal_weights",
]  # fmt: skip


def printed(name: str, torch: Any) -> list[str]:
    """The lines that a program prints under a library."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        globals()[name](torch)
    return out.getvalue().splitlines()
