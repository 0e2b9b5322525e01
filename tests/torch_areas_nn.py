"""Programs of modules, parametrizations, packed sequences, hooks and losses, each for both libraries."""

from __future__ import annotations

from typing import Any

from torch_areas import numbers, seen
from torch_autograd import module, program, refused


def filled(torch: Any, net: Any) -> Any:
    """A module of double precision with numbers that both libraries know."""
    net = net.double()
    with torch.no_grad():
        for i, x in enumerate([*net.parameters(), *[b for b in net.buffers() if b.is_floating_point()]]):
            x.copy_(numbers(torch, *x.shape, shift=0.4 * i) * 0.1 + 0.2)
    return net


@program
def functional_calls_with_modules_and_buffers(torch: Any, show: Any) -> None:
    nn, func = torch.nn, torch.func
    net = filled(torch, nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)))
    x = numbers(torch, 5, 3)
    params, buffers = dict(net.named_parameters()), dict(net.named_buffers())

    def loss(params: Any, buffers: Any, x: Any) -> Any:
        return func.functional_call(net, (params, buffers), (x,)).pow(2).sum()

    show(seen(loss(params, buffers, x)))
    show(seen(buffers), seen(dict(net.named_buffers())))
    net.eval()
    g = func.grad(loss)(params, buffers, x)
    show(seen(g))
    h = func.hessian(lambda w: loss({**params, "3.bias": w}, buffers, x))(params["3.bias"].detach())
    show(seen(h.detach()))
    per = func.vmap(func.grad(loss), in_dims=(None, None, 0))(params, buffers, x[:, None])
    show(seen(per))
    _, t = func.jvp(lambda p: loss(p, buffers, x), (params,), ({k: torch.ones_like(v) for k, v in params.items()},))
    show(seen(t), net[3].weight.grad is None)
    refused(show, lambda: func.functional_call(net, {"nothing": x}, (x,), strict=True), 12)
    y = func.functional_call(net, {"3.bias": torch.zeros(2, dtype=torch.float64)}, x)
    show(seen(y))


@program
def models_stacked_for_vmap(torch: Any, show: Any) -> None:
    nn, func = torch.nn, torch.func
    nets = [filled(torch, nn.Linear(2, 3)) for _ in range(3)]
    with torch.no_grad():
        for i, net in enumerate(nets):
            net.weight.mul_(i + 1)
    params, buffers = func.stack_module_state(nets)
    show(seen(params), buffers)
    base = nets[0]
    x = numbers(torch, 4, 2)
    out = func.vmap(lambda p, x: func.functional_call(base, p, (x,)), in_dims=(0, None))(params, x)
    out.pow(2).sum().backward()
    show(seen(out), seen(params["weight"].grad), nets[0].weight.grad)


@program
def own_parametrizations(torch: Any, show: Any) -> None:
    nn = torch.nn
    parametrize = module(torch, "nn.utils.parametrize")

    class Symmetric(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Exp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

        def forward(self, x: Any) -> Any:
            return (x * self.scale).exp()

    net = filled(torch, nn.Linear(3, 3))
    parametrize.register_parametrization(net, "weight", Symmetric())
    parametrize.register_parametrization(net, "weight", Exp())
    show(net)
    show(list(net.state_dict()), [n for n, _ in net.named_parameters()], seen(net.weight))
    net(numbers(torch, 2, 3)).sin().sum().backward()
    show(seen({n: p.grad for n, p in net.named_parameters()}))
    with parametrize.cached():
        show(net.weight is net.weight)
    show(
        net.weight is net.weight,
        type(net).__name__,
        parametrize.is_parametrized(net, "weight"),
        parametrize.is_parametrized(net, "bias"),
    )
    refused(show, lambda: setattr(net, "weight", torch.ones(3, 3, dtype=torch.float64)))
    other = filled(torch, nn.Linear(3, 3))
    parametrize.register_parametrization(other, "weight", Symmetric())
    other.weight = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    show(seen(other.weight), seen(other.parametrizations.weight.original))
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    other(numbers(torch, 2, 3)).pow(2).sum().backward()
    optimizer.step()
    show(seen(other.weight))
    parametrize.remove_parametrizations(other, "weight")
    show(seen(other.weight), other.weight.is_leaf, type(other).__name__, list(other.state_dict()))
    refused(show, lambda: parametrize.register_parametrization(other, "missing", Symmetric()))
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=True)
    show(seen(net.weight))


@program
def parametrizations_that_are_given(torch: Any, show: Any) -> None:
    nn = torch.nn
    parametrizations = module(torch, "nn.utils.parametrizations")
    x = numbers(torch, 2, 3)
    net = parametrizations.weight_norm(filled(torch, nn.Linear(3, 4)), dim=0)
    net(x).pow(2).sum().backward()
    show(list(net.state_dict()), seen(net.weight), seen([p.grad for p in net.parameters()]))
    net = parametrizations.orthogonal(filled(torch, nn.Linear(3, 3)), orthogonal_map="householder")
    show((net.weight @ net.weight.mT).round(decimals=6).tolist() == torch.eye(3).tolist())
    net(x).pow(3).sum().backward()
    show(seen(net.parametrizations.weight.original.grad))
    for kind in ("matrix_exp", "cayley"):
        net = parametrizations.orthogonal(filled(torch, nn.Linear(3, 3)), orthogonal_map=kind, use_trivialization=False)
        net(x).pow(3).sum().backward()
        show(seen(net.weight), seen(net.parametrizations.weight.original.grad))
    conv = parametrizations.weight_norm(filled(torch, nn.Conv1d(2, 3, 2)))
    conv(numbers(torch, 1, 2, 4)).sum().backward()
    show(seen([p.grad for p in conv.parameters()]))
    state = conv.state_dict()
    again = parametrizations.weight_norm(nn.Conv1d(2, 3, 2).double())
    show(again.load_state_dict(state), seen(again.weight))


@program
def packed_sequences(torch: Any, show: Any) -> None:
    nn = torch.nn
    rnn = module(torch, "nn.utils.rnn")
    seqs = [numbers(torch, n, 2, shift=float(n)) for n in (2, 4, 1)]
    padded = rnn.pad_sequence(seqs, batch_first=True, padding_value=-1.0).requires_grad_()
    show(
        seen(padded), seen(rnn.pad_sequence(seqs)), seen(rnn.pad_sequence(seqs, batch_first=True, padding_side="left"))
    )
    packed = rnn.pack_padded_sequence(padded, torch.tensor([2, 4, 1]), batch_first=True, enforce_sorted=False)
    show(seen(packed.data), seen(packed.batch_sizes), seen(packed.sorted_indices), seen(packed.unsorted_indices))
    for net in (
        nn.LSTM(2, 3, 2, bidirectional=True, batch_first=True),
        nn.GRU(2, 3, batch_first=True),
        nn.RNN(2, 3, nonlinearity="relu", batch_first=True),
        nn.LSTM(2, 4, proj_size=2, batch_first=True),
    ):
        net = filled(torch, net)
        out, state = net(packed)
        whole, lengths = rnn.pad_packed_sequence(out, batch_first=True, padding_value=9.0, total_length=5)
        show(seen(whole), seen(lengths), seen(state))
        (g,) = torch.autograd.grad(
            whole.sin().sum() + sum(s.sum() for s in (state if isinstance(state, tuple) else (state,))),
            padded,
            retain_graph=True,
        )
        show(seen(g))
    show(
        seen(list(rnn.unpad_sequence(padded, torch.tensor([2, 4, 1]), batch_first=True))),
        seen(list(rnn.unpack_sequence(packed))),
    )
    show(seen(rnn.pack_sequence(seqs, enforce_sorted=False).data), packed.is_cuda, seen(packed.to(torch.float32).data))
    refused(show, lambda: rnn.pack_padded_sequence(padded, [2, 4, 1], batch_first=True))
    refused(show, lambda: rnn.pack_padded_sequence(padded, [4, 2], batch_first=True))
    refused(show, lambda: rnn.pack_padded_sequence(padded, [4, 2, 0], batch_first=True))
    refused(show, lambda: rnn.pad_packed_sequence(packed, total_length=2))
    refused(show, lambda: nn.GRU(3, 3).double()(packed))


@program
def orders_of_hooks_of_modules(torch: Any, show: Any) -> None:
    nn = torch.nn
    net = filled(torch, nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))

    def said(name: str, out: Any = None) -> Any:
        def hook(m: Any, *given: Any) -> Any:
            show(name, type(m).__name__, [seen(g) for g in given])
            return out(given) if out else None

        return hook

    for n, part in net.named_modules():
        part.register_full_backward_hook(said(f"after {n}"))
        part.register_full_backward_pre_hook(said(f"before {n}"))
        part.register_forward_hook(said(f"forward {n}"))
        part.register_forward_pre_hook(said(f"pre {n}"))
    first = net[0].register_full_backward_hook(said("twice", lambda given: (given[0][0] * 2,)), prepend=True)
    net[2].register_full_backward_pre_hook(said("thrice", lambda given: (given[0][0] * 3,)))
    x = numbers(torch, 4, 2, grad=True)
    net(x).pow(2).sum().backward()
    show(seen(x.grad), seen([p.grad for p in net.parameters()]))
    first.remove()
    x.grad = None
    net(x.detach()).sum().backward()
    net[0].register_forward_hook(lambda m, a, o: o * 0.5, always_call=True)
    net[0].register_forward_pre_hook(lambda m, a, k: ((a[0] + 1,), k), with_kwargs=True)
    show(seen(net(x)))
    refused(show, lambda: net[0].register_full_backward_hook(lambda m, i, o: (1, 2, 3)) and net(x).sum().backward())


@program
def writes_and_full_backward_hooks(torch: Any, show: Any) -> None:
    nn = torch.nn
    net = nn.ReLU()
    net.register_full_backward_hook(lambda m, i, o: show(seen(i), seen(o)))
    x = numbers(torch, 3, grad=True)
    y = net(x * 1)
    show(y.grad_fn.name())
    refused(show, lambda: y.mul_(2), 100)
    z = nn.ReLU(inplace=True)
    z.register_full_backward_hook(lambda m, i, o: None)
    refused(show, lambda: z(x * 1), 100)
    lin = filled(torch, nn.Linear(3, 2))
    lin.register_full_backward_hook(lambda m, i, o: (i[0] * 10,))
    g = torch.autograd.grad(lin(x).sum(), [x, lin.weight], create_graph=True)
    show(seen(list(g)))

    class Two(nn.Module):
        def forward(self, a: Any, b: Any, k: int = 2) -> Any:
            return a * k, {"sum": a + b}

    two = Two()
    two.register_full_backward_hook(lambda m, i, o: show("two", seen(i), seen(o)))
    a, d = two(x, numbers(torch, 3, shift=5.0), k=3)
    (a.sum() + d["sum"].sum()).backward()
    show(seen(x.grad))


@program
def clipping_and_accumulating(torch: Any, show: Any) -> None:
    nn = torch.nn
    net = filled(torch, nn.Linear(3, 2))
    x = numbers(torch, 6, 3)
    for part in x.chunk(3):
        (net(part).pow(2).mean() / 3).backward()
    show(seen([p.grad for p in net.parameters()]))
    show(seen(nn.utils.clip_grad_norm_(net.parameters(), 0.1)), seen([p.grad for p in net.parameters()]))
    show(seen(nn.utils.clip_grad_norm_(net.parameters(), 0.01, norm_type=float("inf"))), seen(net.weight.grad))
    nn.utils.clip_grad_value_(net.weight, 1e-3)
    show(seen(net.weight.grad))
    v = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(v.detach() * 2, net.parameters())
    show(seen(v), seen(net.weight))
    net.weight.grad.fill_(float("nan"))
    refused(show, lambda: nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True))
    net.zero_grad(set_to_none=False)
    show(seen(net.weight.grad))
    net.zero_grad()
    show(net.weight.grad)


@program
def states_of_modules(torch: Any, show: Any) -> None:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = self.a
            self.register_buffer("count", torch.tensor(3))
            self.register_buffer("hidden", torch.ones(1), persistent=False)
            self.register_parameter("none", None)
            self.list = nn.ParameterList([nn.Parameter(torch.zeros(1))])
            self.extra = {"k": 1}

        def get_extra_state(self) -> Any:
            return self.extra

        def set_extra_state(self, state: Any) -> None:
            self.extra = state

    net = filled(torch, Net())
    state = net.state_dict()
    show(
        list(state),
        [n for n, _ in net.named_parameters()],
        [n for n, _ in net.named_parameters(remove_duplicate=False)],
        [n for n, _ in net.named_buffers()],
        [n for n, _ in net.named_modules()],
    )
    other = Net()
    other.load_state_dict(state)
    show(
        other.a.weight.dtype,
        seen(other.a.weight),
        other.extra,
        state["a.weight"].requires_grad,
        net.state_dict(keep_vars=True)["a.weight"].requires_grad,
    )
    del state["a.bias"]
    state["more"] = torch.ones(1)
    state["list.0"] = torch.ones(2)
    refused(show, lambda: other.load_state_dict(state), 400)
    refused(show, lambda: other.load_state_dict(state, strict=False), 400)
    del state["list.0"]
    show(other.load_state_dict(state, strict=False))
    fresh = Net()
    fresh.load_state_dict(net.state_dict(), assign=True)
    show(
        fresh.a.weight.dtype,
        type(fresh.a.weight).__name__,
        fresh.a.weight.requires_grad,
        fresh.a.weight is fresh.b.weight,
    )
    show(net)
    refused(show, lambda: setattr(net, "none", torch.ones(1)))
    refused(show, lambda: setattr(net, "count", 5))
    refused(show, lambda: net.register_buffer("a", None))
    refused(show, lambda: net.get_submodule("nothing.there"))
    refused(show, lambda: net.missing)
    net.requires_grad_(False)
    show(
        [p.requires_grad for p in net.parameters()],
        net.half().a.weight.dtype,
        net.count.dtype,
        net.training,
        net.eval().a.training,
    )
    show(
        seen(
            net.float().apply(lambda m: nn.init.constant_(m.weight, 2.0) if isinstance(m, nn.Linear) else None).a.weight
        )
    )


@program
def norms_and_their_running_values(torch: Any, show: Any) -> None:
    nn = torch.nn
    x = numbers(torch, 4, 3, 2, grad=True)
    for net in (
        nn.BatchNorm1d(3),
        nn.BatchNorm1d(3, momentum=None),
        nn.BatchNorm1d(3, affine=False, track_running_stats=False),
        nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        nn.GroupNorm(3, 3),
        nn.LayerNorm((3, 2)),
        nn.LayerNorm(2, bias=False),
        nn.RMSNorm(2),
        nn.LocalResponseNorm(2),
    ):
        net = filled(torch, net)
        for _ in range(2):
            y = net(x)
        (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.pow(2).sum(), x)
        show(
            seen(y), seen(g), seen(h), seen({k: v for k, v in net.state_dict().items() if "running" in k or "num" in k})
        )
        show(seen(net.eval()(x)))
    refused(show, lambda: nn.BatchNorm1d(3).double()(x[:1, :, 0]))
    refused(show, lambda: nn.BatchNorm1d(3).double()(x[0, 0]))
    refused(show, lambda: nn.BatchNorm2d(3).double()(x))
    refused(show, lambda: nn.LayerNorm(3).double()(x))
    refused(show, lambda: nn.GroupNorm(2, 3))


@program
def losses_with_all_their_options(torch: Any, show: Any) -> None:
    F = torch.nn.functional
    x, y = numbers(torch, 4, 3, grad=True), numbers(torch, 4, 3, shift=2.0)
    t, w = torch.tensor([0, 2, -100, 1]), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    p = y.softmax(1)
    calls = [
        lambda r: F.cross_entropy(x, t, w, reduction=r),
        lambda r: F.cross_entropy(x, t, w, reduction=r, label_smoothing=0.2),
        lambda r: F.cross_entropy(x, p, w, reduction=r, label_smoothing=0.1),
        lambda r: F.nll_loss(x, t, w, reduction=r),
        lambda r: F.nll_loss(x, t.clamp(0), ignore_index=2, reduction=r),
        lambda r: F.binary_cross_entropy_with_logits(x, p, w, pos_weight=w * 2, reduction=r),
        lambda r: F.binary_cross_entropy(x.sigmoid(), p, w, reduction=r),
        lambda r: F.kl_div(x.log_softmax(1), p, reduction=r),
        lambda r: F.kl_div(x.log_softmax(1), p.log(), reduction=r, log_target=True),
        lambda r: F.smooth_l1_loss(x, y, reduction=r, beta=0.5),
        lambda r: F.huber_loss(x, y, reduction=r, delta=0.5),
        lambda r: F.mse_loss(x, y, reduction=r),
        lambda r: F.l1_loss(x, y, reduction=r),
        lambda r: F.margin_ranking_loss(x, y, y.sign(), margin=0.5, reduction=r),
        lambda r: F.hinge_embedding_loss(x, y.sign(), reduction=r),
        lambda r: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, -1]), margin=0.1, reduction=r),
        lambda r: F.triplet_margin_loss(x, y, y.flip(0), swap=True, reduction=r),
        lambda r: F.multi_margin_loss(x, t.clamp(0), p=2, weight=w, reduction=r),
        lambda r: F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1]] * 4), reduction=r),
        lambda r: F.multilabel_soft_margin_loss(x, p.round(), w, reduction=r),
        lambda r: F.soft_margin_loss(x, y.sign(), reduction=r),
        lambda r: F.poisson_nll_loss(x, y.abs(), full=True, reduction=r),
        lambda r: F.gaussian_nll_loss(x, y, y.abs(), full=True, reduction=r),
    ]
    for call in calls:
        for r in ("none", "mean", "sum"):
            out = call(r)
            (g,) = torch.autograd.grad(out.sum(), x)
            show(seen(out), seen(g))
    refused(show, lambda: F.cross_entropy(x, torch.tensor([0, 3, 1, 1])))
    refused(show, lambda: F.cross_entropy(x, t[:2]))
    refused(show, lambda: F.nll_loss(x, t.float()))
    refused(show, lambda: F.mse_loss(x, y, reduction="other"))
    refused(show, lambda: F.binary_cross_entropy(x, p))
    refused(show, lambda: F.binary_cross_entropy_with_logits(x, p[:2]))


@program
def attention_and_transformers(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.nn.functional
    q, k, v = (
        numbers(torch, 2, 3, 4, grad=True),
        numbers(torch, 2, 5, 4, grad=True, shift=1.0),
        numbers(torch, 2, 5, 4, grad=True, shift=2.0),
    )
    mask = torch.ones(3, 5, dtype=torch.bool).tril(1)
    for options in ({}, {"attn_mask": mask}, {"is_causal": True}, {"scale": 0.3, "attn_mask": mask.double() * -2}):
        out = F.scaled_dot_product_attention(q, k, v, **options)
        show(seen(out), seen(list(torch.autograd.grad(out.sin().sum(), [q, k, v]))))
    net = filled(torch, nn.MultiheadAttention(4, 2, batch_first=True, bias=True))
    out, weights = net(
        q, k, v, key_padding_mask=torch.tensor([[False] * 4 + [True]] * 2), attn_mask=~mask, average_attn_weights=False
    )
    show(
        seen(out),
        seen(weights),
        seen(list(torch.autograd.grad(out.sin().sum(), [q, net.in_proj_weight, net.out_proj.weight]))),
    )
    layer = filled(
        torch, nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
    )
    stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    out = stack(q, mask=nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64))
    show(seen(out), seen(torch.autograd.grad(out.sin().sum(), q)[0]))
    decoder = filled(torch, nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0, batch_first=True))
    out = decoder(
        q, k, tgt_is_causal=True, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    )
    show(seen(out), seen(torch.autograd.grad(out.sin().sum(), k)[0]))
    refused(show, lambda: nn.MultiheadAttention(5, 2))
    refused(show, lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True))


@program
def convolutions_and_pools(torch: Any, show: Any) -> None:
    F = torch.nn.functional
    x, w, b = (
        numbers(torch, 2, 4, 6, 5, grad=True),
        numbers(torch, 4, 2, 3, 2, grad=True, shift=1.0),
        numbers(torch, 4, grad=True, shift=2.0),
    )
    for f in (
        lambda: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
        lambda: F.conv2d(x, w, padding="same", groups=2),
        lambda: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=(1, 0), groups=1),
        lambda: F.max_pool2d(x, 2, stride=(2, 1), padding=1, ceil_mode=True),
        lambda: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda: F.avg_pool2d(x, 2, divisor_override=3),
        lambda: F.adaptive_avg_pool2d(x, (None, 2)),
        lambda: F.adaptive_max_pool2d(x, 3),
        lambda: F.lp_pool2d(x, 2, 2),
        lambda: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
        lambda: F.interpolate(x, size=(4, 7), mode="bicubic", align_corners=True),
        lambda: F.interpolate(x, size=3, mode="area"),
        lambda: F.interpolate(x, scale_factor=(0.5, 2), mode="nearest-exact"),
        lambda: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True),
        lambda: F.unfold(x, 2, dilation=2, stride=2),
        lambda: F.fold(x.flatten(2)[:, :, :5], (2, 6), (2, 2)),
        lambda: F.pixel_shuffle(x, 2),
        lambda: F.grid_sample(
            x, numbers(torch, 2, 3, 4, 2) * 0.4, mode="bicubic", padding_mode="reflection", align_corners=False
        ),
        lambda: F.pad(x, (1, 2, 0, 1), mode="circular"),
        lambda: F.pad(x, (2, 1, 1, 1), mode="replicate"),
        lambda: F.conv1d(x[0], w[:, :, :, 0][:, :1].repeat(1, 4, 1)),
        lambda: F.conv3d(x[None], w[None].reshape(1, 2, 1, 3, 4).expand(1, 2, 1, 3, 4)),
    ):
        try:
            out = f()
        except (RuntimeError, ValueError, NotImplementedError) as error:
            show(type(error).__name__)
            continue
        show(seen(out), seen(list(torch.autograd.grad(out.sin().sum(), [x, w, b], allow_unused=True))))


@program
def random_numbers_and_their_arguments(torch: Any, show: Any) -> None:
    refused(show, lambda: torch.multinomial(torch.tensor([-1.0, 2.0]), 1))
    refused(show, lambda: torch.multinomial(torch.tensor([1.0, 2.0]), 3))
    refused(show, lambda: torch.bernoulli(torch.tensor([1.5])), 50)
    refused(show, lambda: torch.normal(torch.zeros(2), -torch.ones(2)), 40)
    show(
        torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True).tolist(),
        torch.bernoulli(torch.tensor([0.0, 1.0])),
        torch.poisson(torch.zeros(2)),
        torch.randperm(1),
    )
    x = torch.ones(3, requires_grad=True)
    y = torch.bernoulli(x) * x
    y.sum().backward()
    show(x.grad, torch.normal(x.detach(), 0.0), torch.randint(3, 4, (2,)))


@program
def embeddings_and_bags(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.nn.functional
    net = filled(torch, nn.Embedding(5, 3, padding_idx=1))
    i = torch.tensor([[0, 1, 4], [4, 4, 2]])
    net(i).pow(2).sum().backward()
    show(seen(net.weight.grad), seen(net(i)))
    w = numbers(torch, 5, 3, grad=True)
    for options in (
        {"mode": "sum"},
        {"mode": "mean"},
        {"mode": "max"},
        {"mode": "sum", "per_sample_weights": numbers(torch, 2, 3)},
        {"mode": "mean", "padding_idx": 4},
    ):
        out = F.embedding_bag(i, w, **options)
        show(seen(out), seen(torch.autograd.grad(out.sin().sum(), w)[0]))
    out = F.embedding_bag(i.flatten(), w, torch.tensor([0, 2, 2]), mode="sum", include_last_offset=False)
    show(seen(out))
    show(seen(F.one_hot(i, 5)), seen(nn.Embedding.from_pretrained(w.detach(), max_norm=1.0)(i)))
    refused(show, lambda: net(torch.tensor([1.0])))
    refused(show, lambda: F.one_hot(torch.tensor([3]), 2))
    refused(show, lambda: F.one_hot(torch.tensor([-1])))
    refused(show, lambda: nn.Embedding(3, 2, padding_idx=3))


@program
def recurrent_cells(torch: Any, show: Any) -> None:
    nn = torch.nn
    x, h = numbers(torch, 2, 3, grad=True), numbers(torch, 2, 4, grad=True, shift=1.0)
    for net in (nn.RNNCell(3, 4, nonlinearity="relu"), nn.GRUCell(3, 4), nn.GRUCell(3, 4, bias=False)):
        out = filled(torch, net)(x, h)
        show(seen(out), seen(list(torch.autograd.grad(out.sin().sum(), [x, h]))))
    a, c = filled(torch, nn.LSTMCell(3, 4))(x, (h, h * 2))
    show(seen(a), seen(c), seen(list(torch.autograd.grad((a * c).sin().sum(), [x, h]))))
    net = filled(torch, nn.LSTM(3, 2, num_layers=2, dropout=0.0, bidirectional=True))
    out, state = net(x[:, None].expand(2, 2, 3))
    show(seen(out), seen(state), seen(torch.autograd.grad(out.sin().sum(), x)[0]))
    one, _ = net(x)
    show(seen(one))
    refused(show, lambda: net(x[..., :2]))
