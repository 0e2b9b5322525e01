"""Programs around nodes, their hooks and what they saved, each for both libraries, as those of `torch_autograd`."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from torch_autograd import module, program, refused, shown


def _function(torch: Any, forward: Any, backward: Any, **more: Any) -> Any:
    members = {"forward": forward, "backward": backward, **more}
    methods = {name: staticmethod(member) for name, member in members.items()}
    return type("Mine", (torch.autograd.Function,), methods)


@program
def nodes_are_called(torch: Any, show: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    z = torch.tensor([1.0 + 2.0j, 3.0 - 1.0j], dtype=torch.complex128, requires_grad=True)
    g = torch.tensor([1.0, 10.0], dtype=torch.float64)
    for out in (x * y, x * x, x * 3.0, 3.0 * x, x + y, x**2, x.exp(), x[0:2], x.detach() * y):
        show(type(out.grad_fn).__name__, shown(out.grad_fn(g)))
    show(shown(torch.view_as_real((z * z).grad_fn(g.to(torch.complex128))[0])))
    found = (x**3).grad_fn(g.requires_grad_())
    show(found.requires_grad, shown(torch.autograd.grad(found.sum(), (x, g))))
    with torch.no_grad():
        show((x**3).grad_fn is None)
    node = (x * y).grad_fn
    with torch.no_grad():
        show([p.requires_grad for p in node(g)])
    for grads in ((), (g, g)):
        refused(show, lambda grads=grads: x.exp().grad_fn(*grads), 32)
    accumulate = (x * 2).grad_fn.next_functions[0][0]
    show(accumulate(g.detach()), shown(x.grad))
    out = x.exp()
    out.sum().backward()
    refused(show, lambda: out.grad_fn(g))
    calls: list[int] = []
    out = x.sin()
    out.register_hook(lambda g: calls.append(1))
    out.grad_fn.register_prehook(lambda g: calls.append(2))
    out.grad_fn(g)
    show(calls)
    mine = _function(torch, lambda ctx, x, k: x * k, lambda ctx, g: (g * 7, None))
    show(shown(mine.apply(x, 2).grad_fn.apply(g)))


@program
def hooks_of_what_is_asked_for(torch: Any, show: Any) -> None:
    seen: list[str] = []

    def of(name: str) -> Any:
        return lambda *grads: seen.append(name)

    def run(do: Any) -> None:
        seen.clear()
        do()
        show(*seen)

    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    c = b.exp()
    first = b.grad_fn.next_functions[0][0]
    for name, x, node in (("a", a, first), ("b", b, b.grad_fn), ("c", c, c.grad_fn)):
        x.register_hook(of(f"{name} tensor"))
        node.register_prehook(of(f"{name} before"))
        node.register_hook(of(f"{name} after"))
    a.register_post_accumulate_grad_hook(of("a added"))
    kept = {"retain_graph": True}
    for inputs in ((a,), (b,), (a, b), (b, c)):
        run(lambda inputs=inputs: torch.autograd.grad(c, inputs, **kept))
        run(lambda inputs=inputs: torch.autograd.backward(c, inputs=inputs, **kept))
    run(lambda: c.backward(**kept))
    show(shown(a.grad))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    half = x.exp()
    for _ in range(2):  # what is asked for is not pulled back, so that nothing of it is used up
        show(shown(torch.autograd.grad(half.sum(), half)))
    half.sum().backward()

    t = torch.zeros(2, requires_grad=True)

    def added(x: Any) -> None:
        x.grad.add_(0.5)

    def last(inputs: Any, outputs: Any) -> None:
        t.grad = outputs[0].mul(10)

    t.register_post_accumulate_grad_hook(added)
    leaf = t.view_as(t).grad_fn.next_functions[0][0]
    leaf.register_hook(last)
    (t * 2).sum().backward()
    show(shown(t.grad))


@program
def edges_in_places_of_tensors(torch: Any, show: Any) -> None:
    edge = torch.autograd.graph.get_gradient_edge
    x, y = (torch.tensor([1.0, 2.0], requires_grad=True).clone() for _ in range(2))
    out = (x * x).sum()
    for inputs in ((edge(x), y), (x, edge(y)), (edge(x), edge(y))):
        out = (x * x).sum()
        torch.autograd.backward(out, inputs=inputs, retain_graph=True)
    options: Any = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
    show(shown(torch.autograd.grad(out, (edge(x), y), **options)))
    refused(show, lambda: torch.autograd.grad(out, (x, edge(y)), **options))
    for create in (False, True):
        found = torch.autograd.grad(out, (x, y), create_graph=create, **options)
        show([g.requires_grad for g in found])


@program
def hooks_and_gradients_of_views_that_are_written_to(torch: Any, show: Any) -> None:
    def base() -> Any:
        return torch.tensor([1.0, 2.0], requires_grad=True).clone()

    x = base()
    one, other = x[:], x[:]
    one.retain_grad()
    other.retain_grad()
    one.mul_(2)
    (one + other).sum().backward()
    show(shown([one.grad, other.grad]))

    x = base()
    one, other = x[:], x[:]
    seen: list[Any] = []
    one.register_hook(lambda g: seen.append("one"))
    other.register_hook(lambda g: seen.append("other"))
    one.mul_(2)
    other.grad_fn
    other.register_hook(lambda g: seen.append(g.tolist()))
    (one + other).sum().backward()
    show(seen)


@program
def values_that_numpy_shares_are_checked(torch: Any, show: Any) -> None:
    leaf = torch.ones(2, requires_grad=True)
    x = leaf.clone()
    x.detach().numpy()
    z = x * (x + 2)
    x.add_(2)
    refused(show, lambda: z.backward(torch.ones(2)))
    with torch.no_grad():
        show(leaf.numpy().tolist())
    refused(show, lambda: leaf.numpy())
    same = _function(torch, lambda ctx, x: (x, x * 2), lambda ctx, g, h: g + 2 * h)
    t = torch.ones(2, requires_grad=True)
    t.detach().numpy()
    first, second = same.apply(t)
    show(first.requires_grad, second.requires_grad)
    (first * 3 + second).sum().backward()
    show(shown(t.grad))


@program
def what_functions_are_given_and_leave(torch: Any, show: Any) -> None:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        show(len(inputs))
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.k * x ** (ctx.k - 1), None

    power = _function(torch, lambda x, k=3: x**k, backward, setup_context=setup)
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for args in ((x,), (x, 2)):
        show(shown(torch.autograd.grad(power.apply(*args), x)))

    def marks_another(ctx: Any, x: Any) -> Any:
        out = x.clone().view_as(x)
        ctx.mark_dirty(out)
        return out

    refused(show, lambda: _function(torch, marks_another, lambda ctx, g: g).apply(x.clone()), 52)

    def writes(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    def saves(ctx: Any, x: Any) -> Any:
        out = x.clone()
        ctx.save_for_backward(out)
        known.append(weakref.ref(out))
        return out

    known: list[Any] = []
    wrote, saved = _function(torch, writes, lambda ctx, g: g), _function(torch, saves, lambda ctx, g: g)
    checkpoint = module(torch, "utils.checkpoint").checkpoint
    gc.disable()
    try:
        view = torch.ones(2, requires_grad=True).clone().view(2, 1)
        wrote.apply(view)
        known.append(weakref.ref(view))
        del view
        checkpoint(saved.apply, torch.ones(2, requires_grad=True), use_reentrant=False).sum().backward()
        show([reference() for reference in known])
    finally:
        gc.enable()


@program
def saved_tensors_take_hooks(torch: Any, show: Any) -> None:
    def leaf() -> Any:
        return torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)

    for make in (leaf, lambda: leaf() + 1):
        for unpack in (lambda x: x / 2, lambda x: x):
            a = make()
            y = a * a
            y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, unpack)
            show(shown(y.grad_fn._saved_self), shown(torch.autograd.grad(y.sum(), a)))
        a = make()
        y = a**3
        y.grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)
        (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
        show(shown(torch.autograd.grad(g.sum(), a)))
    y = leaf().exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: 1)
    refused(show, lambda: y.grad_fn._saved_result)
    refused(show, lambda: y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x))
    y = leaf() * leaf()
    refused(show, lambda: y.grad_fn._raw_saved_self.register_hooks(lambda x: x.mul_(2), lambda x: x))


@program
def backward_hooks_of_modules_do_not_see_second_derivatives(torch: Any, show: Any) -> None:
    x = torch.tensor([0.5], requires_grad=True)
    loss = torch.nn.MSELoss()
    seen: list[int] = []
    loss.register_full_backward_hook(lambda *_: seen.append(1))
    (g,) = torch.autograd.grad(loss(x, torch.tensor([2.0])), x, create_graph=True)
    show(seen)
    show(shown(torch.autograd.grad(g, x)), seen)


@program
def types_as_classes(torch: Any, show: Any) -> None:
    x = torch.ones(2, dtype=torch.float64)
    show(x.new().shape, x.new(2, 3).shape, x.new(torch.Size([])).shape, x.new([1, 2]).tolist(), x.new(2).dtype)
    show(torch.IntTensor.dtype, x.type(torch.IntTensor).dtype, x.type(torch.float32).dtype)
    refused(show, lambda: setattr(x, "data", None), 20)
    show(torch.autograd.grad_mode.no_grad is torch.no_grad)


@program
def checkpoints_in_checkpoints(torch: Any, show: Any) -> None:
    utils = module(torch, "utils.checkpoint")

    def kept(f: Any) -> Any:
        return lambda *args: utils.checkpoint(f, *args, use_reentrant=False)

    def slope(f: Any) -> Any:
        def of(x: Any) -> Any:
            with torch.enable_grad():
                return torch.autograd.grad(f(x), x, create_graph=True)[0]

        return of

    def f(x: Any) -> Any:
        return x.sin().exp().sin()

    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    for early in (True, False):
        with utils.set_checkpoint_early_stop(early):
            for g in (slope(kept(slope(f))), kept(slope(slope(kept(f)))), slope(kept(slope(slope(kept(f)))))):
                show(shown(g(x)))
    got: list[Any] = []

    def keep(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        return x

    def tell(ctx: Any, g: Any) -> Any:
        got.extend(ctx.saved_tensors)
        return g, None

    constant = torch.tensor(1.0)
    kept(_function(torch, keep, tell).apply)(torch.tensor(1.0, requires_grad=True), constant).backward()
    show([x is constant for x in got])
    calls: list[int] = []

    def last(x: Any) -> Any:
        calls.append(1)
        return x.clone()

    for outer in (None, True, False):
        for options in ({}, {"early_stop": True}, {"early_stop": False}):
            calls.clear()
            a = torch.tensor(1.0, requires_grad=True)
            if outer is None:
                out = utils.checkpoint(lambda x: last(x.sin().cos()), a, use_reentrant=False, **options)
            else:
                with utils.set_checkpoint_early_stop(outer):
                    out = utils.checkpoint(lambda x: last(x.sin().cos()), a, use_reentrant=False, **options)
            out.backward()
            show(len(calls))


@program
def views_reshaped_where_nothing_is_recorded(torch: Any, show: Any) -> None:
    makers: list[Any] = [lambda x: x.view_as(x), lambda x: x.unbind()[0]]
    changes: list[Any] = [lambda v: v.transpose_(0, 0), lambda v: v.squeeze_(0), lambda v: v.unsqueeze_(0)]
    for make in makers:
        for change in changes:
            for made in (True, False):
                for changed in (True, False):
                    base = torch.ones(2, 3, requires_grad=True).clone()
                    with torch.set_grad_enabled(made):
                        view = make(base)
                    with torch.set_grad_enabled(changed):
                        refused(show, lambda change=change, view=view: change(view), 17)
                    refused(show, lambda view=view: view.add_(1), 17)


@program
def dual_numbers_where_nothing_is_recorded(torch: Any, show: Any) -> None:
    forward = module(torch, "autograd.forward_ad")
    x, v = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    with forward.dual_level():
        dual = forward.make_dual(x, v)
        for function in (lambda d: d * 3, torch.sin, lambda d: torch.softmax(d, 0), lambda d: d @ d):
            for enabled in (False, True):
                with torch.set_grad_enabled(enabled):
                    out = function(dual)
                value, tangent = forward.unpack_dual(out)
                show(value.requires_grad, tangent.requires_grad, shown([value, tangent]))
        refused(show, lambda: forward.make_dual(v, dual), 0)


@program
def what_functions_saved_takes_hooks(torch: Any, show: Any) -> None:
    def saves(ctx: Any, x: Any) -> Any:
        out = x * 2
        ctx.save_for_backward(x, None, out)
        return out

    def backward(ctx: Any, g: Any) -> Any:
        x, nothing, out = ctx.saved_tensors
        show(nothing)
        return g * x * out

    function = _function(torch, saves, backward)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = function.apply(x)
    saved = y.grad_fn._raw_saved_tensors
    show(len(saved))
    refused(show, lambda: saved[1].register_hooks(lambda x: x, lambda x: x), 60)
    for hooks in ((lambda x: x,), (1, 1)):
        refused(show, lambda hooks=hooks: saved[0].register_hooks(*hooks), 46)
    for part, factor in ((saved[0], 2), (saved[2], 3)):
        part.register_hooks(lambda x, factor=factor: x * factor, lambda x: x * 5)
    refused(show, lambda: saved[0].register_hooks(lambda x: x, lambda x: x), 60)
    show(shown([v for v in y.grad_fn.saved_tensors if v is not None]), y.grad_fn.saved_tensors[2].requires_grad)
    y.sum().backward()
    show(shown(x.grad))
    refused(show, lambda: y.grad_fn._raw_saved_tensors, 40)
    show(_function(torch, lambda ctx, x: x, lambda ctx, g: g).apply(x).grad_fn._raw_saved_tensors)
    refused(show, lambda: (x * x).grad_fn._raw_saved_self.register_hooks(lambda x: x), 46)


@program
def gradients_of_piecewise_functions_are_recorded(torch: Any, show: Any) -> None:
    F = torch.nn.functional
    x = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    functions: list[Any] = [
        torch.relu, F.leaky_relu, F.hardtanh, F.relu6, F.softshrink, F.hardshrink, lambda x: F.threshold(x, 0.1, 0),
        lambda x: F.prelu(x, torch.tensor(0.3, dtype=torch.float64)), lambda x: F.max_pool2d(x[None], 2), torch.abs,
        lambda x: F.avg_pool2d(x[None], 2), lambda x: F.nll_loss(x, torch.tensor([0, 1])), lambda x: x.clamp(0, 1),
        lambda x: F.max_pool1d(x, 2), lambda x: F.adaptive_max_pool2d(x[None], 1), lambda x: x.max(), torch.sign,
        torch.floor, lambda x: torch.where(x > 0, x, -x),
        lambda x: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Hardtanh(), torch.nn.ReLU6())(x) * 2,
    ]  # fmt: skip
    for function in functions:
        (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        show(g.requires_grad, shown(g))
        if g.requires_grad:
            (h,) = torch.autograd.grad((g * g + 1).sum(), x, allow_unused=True)
            show(shown(h.clone()))
        x.grad = None
        function(x).sum().backward(create_graph=True)
        show(x.grad.requires_grad)
    y = torch.tensor([0.5, 1.5], requires_grad=True)
    g = y.relu().sum()
    for _ in range(3):
        (g,) = torch.autograd.grad(g.sum(), y, create_graph=True)
        show(g.requires_grad, type(g.grad_fn).__name__, shown(g))


@program
def tensors_that_are_stretched_are_filled_with_numbers_alone(torch: Any, show: Any) -> None:
    makers: list[Any] = [
        lambda: torch.ones(4).expand(2, 4), lambda: (torch.ones(4, requires_grad=True) * 1).expand(2, 4),
        lambda: torch.ones(3, 4).expand(2, 3, 4).transpose(0, 1)[0], lambda: torch.ones(()).expand(1, 1)[0],
    ]  # fmt: skip
    writes: list[Any] = [
        lambda x: x.fill_(2.0), lambda x: x.zero_(), lambda x: x.fill_(torch.tensor(2.0)), lambda x: x.add_(1),
        lambda x: x.copy_(torch.tensor(2.0)),
        *[lambda x, key=key: x.__setitem__(key, 2.0) for key in (slice(None), ..., (), 0, None)],
    ]  # fmt: skip
    for make in makers:
        for write in writes:
            x = make()
            refused(show, lambda write=write, x=x: write(x))
            show(shown(x))


@program
def generators_that_were_given_no_seed(torch: Any, show: Any) -> None:
    show(torch.Generator().initial_seed(), torch.Generator().manual_seed(5).initial_seed())


@program
def hooks_that_change_the_type(torch: Any, show: Any) -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    x.register_hook(lambda g: torch.ones(3))
    refused(show, lambda: (x * 2).sum().backward(), 60)


@program
def parameters_of_classes_of_their_own(torch: Any, show: Any) -> None:
    class Own(torch.nn.Parameter):  # type: ignore[misc]
        pass

    show(Own(torch.ones(2)), torch.nn.Parameter(torch.ones(2)), Own(torch.ones(2, 2), requires_grad=False))
    show([Own(torch.ones(2))])


@program
def nodes_of_single_examples_of_recurrent_layers(torch: Any, show: Any) -> None:
    for name in ("RNN", "GRU", "LSTM"):
        for made in (
            getattr(torch.nn, name)(4, 5)(torch.ones(3, 4)),
            (0, getattr(torch.nn, name + "Cell")(4, 5)(torch.ones(4))),
        ):
            parts = [made[0], *(made[1] if isinstance(made[1], tuple) else made[1:])]
            show(name, [x.grad_fn.name() for x in parts if isinstance(x, torch.Tensor)])


@program
def penalties_of_gradients_reach_biases_behind_piecewise_functions(torch: Any, show: Any) -> None:
    x = torch.tensor([[0.3, -0.4]], dtype=torch.float64, requires_grad=True)
    for function in (torch.relu, torch.nn.functional.leaky_relu):
        w, b = (torch.ones(size, dtype=torch.float64, requires_grad=True) for size in ((2, 3), (3,)))
        (g,) = torch.autograd.grad((function(x @ w + b) @ w.t()).sum(), x, create_graph=True)
        show([shown(part) for part in torch.autograd.grad((g.norm() - 1) ** 2, (w, b, x))])
