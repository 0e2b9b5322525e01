"""Programs around PyTorch's autograd, each for both libraries: what they print is compared, errors too."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any, Any], None]] = {}


def program(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    PROGRAMS[function.__name__] = function
    return function


def printed(name: str, torch: Any) -> list[str]:
    """What a program prints under a library."""
    lines: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PROGRAMS[name](torch, lambda *values: lines.append(" ".join(map(str, values))))
    return lines


def module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


def refused(show: Any, do: Any, upto: int = 60) -> None:
    """Show what a call raises: the type, and how the message begins."""
    try:
        do()
    except Exception as error:
        show(type(error).__name__, str(error)[:upto])
    else:
        show("nothing was raised")


def shown(x: Any) -> Any:
    """Nested tensors as nested rounded numbers."""
    if isinstance(x, (tuple, list)):
        return [shown(entry) for entry in x]
    if isinstance(x, dict):
        return {name: shown(entry) for name, entry in x.items()}
    if not hasattr(x, "detach"):
        return x
    return (tuple(x.shape), [round(v, 3) + 0.0 for v in x.detach().reshape(-1).tolist()])


# --- Function -------------------------------------------------------------------------------------------


def _product(torch: Any) -> Any:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, k: Any, b: Any) -> Any:
            ctx.k = k
            ctx.save_for_backward(a, b)
            return a + k * b + a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g + g * b, None, g * ctx.k + g * a

    return Product


@program
def functions_and_their_derivatives(torch: Any, show: Any) -> None:
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    z = _product(torch).apply(x, 2, y)
    show(z, z.grad_fn.name(), z.grad_fn.next_functions[0][0].name(), z.grad_fn.needs_input_grad)
    gx, gy = torch.autograd.grad(z.sum(), [x, y], create_graph=True)
    show(gx, gy, torch.autograd.grad(gx.sum(), [y]))
    z.sum().backward()
    refused(show, lambda: z.sum().backward())
    with torch.no_grad():
        show(_product(torch).apply(x, 1, x).requires_grad)
    node = _product(torch).apply(x, 2, y).grad_fn
    show(node.name(), len(node.next_functions))


@program
def functions_of_several_results(torch: Any, show: Any) -> None:
    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            o, p, n = a * 2, a * 3, a > 1
            ctx.save_for_backward(o)
            ctx.mark_non_differentiable(n)
            return o, p, n, 5, None

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            show([None if q is None else q.tolist() for q in g], ctx.saved_tensors[0].requires_grad)
            return g[0] * 2 + g[1] * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    o, p, n, five, none = Several.apply(x)
    show(o, p, n, five, none, o.output_nr, p.output_nr, n.requires_grad)
    (o.sum() * 2).backward(retain_graph=True)
    (o * p).sum().backward()
    show(x.grad)


@program
def functions_that_write(torch: Any, show: Any) -> None:
    class AddTwo(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a)
            a.add_(2)
            return a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    class Forgets(AddTwo):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a)
            return a.clone()

    w = torch.ones(2, requires_grad=True)
    refused(show, lambda: AddTwo.apply(w))
    refused(show, lambda: Forgets.apply(w * 1))
    v = torch.ones(2, requires_grad=True) * 1
    r = AddTwo.apply(v)
    show(r is v, v._version, v.grad_fn.name(), v)
    base = torch.ones(3, requires_grad=True)
    x = base * 1
    AddTwo.apply(x[1:])
    show(x, torch.autograd.grad((x * x).sum(), base))


@program
def functions_that_return_an_argument(torch: Any, show: Any) -> None:
    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    class First(Identity):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.repeat(2)

    w = torch.ones(2, requires_grad=True)
    i = Identity.apply(w)
    show(i is w, i.requires_grad, i._is_view(), i, w.is_leaf)
    refused(show, lambda: i.mul_(2), 80)
    show(torch.autograd.grad(i.sum(), w))
    part = First.apply(w)
    show(part, torch.autograd.grad(part.sum(), w))
    refused(show, lambda: part.add_(1), 80)
    with torch.no_grad():
        show(Identity.apply(w).requires_grad)


@program
def functions_with_wrong_backwards(torch: Any, show: Any) -> None:
    def made(rule: Any, count: int = 1) -> Any:
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *a: Any) -> Any:
                return a[0] * 2

            if rule is not None:
                backward = staticmethod(rule)

        return lambda: Wrong.apply(*[torch.ones(2, requires_grad=True)] * count).sum().backward()

    refused(show, made(lambda ctx, g: g, 2), 100)
    refused(show, made(lambda ctx, g: (g, g, g), 2), 100)
    refused(show, made(lambda ctx, g: (g, g, None), 2), 100)
    refused(show, made(lambda ctx, g: g[:1].repeat(5)), 120)
    refused(show, made(lambda ctx, g: g.expand(3, 2)), 100)
    refused(show, made(lambda ctx, g: g.double()), 100)
    refused(show, made(None), 90)
    refused(show, made(lambda ctx, g: 1 / 0))

    class Legacy(torch.autograd.Function):
        def forward(self, a: Any) -> Any:
            return a

    refused(show, lambda: Legacy()(1), 50)
    refused(show, lambda: Legacy.apply(torch.ones(1)), 50)


@program
def functions_differentiable_once(torch: Any, show: Any) -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @module(torch, "autograd.function").once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    w = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(Once.apply(w).sum(), w, create_graph=True)
    show(g.requires_grad, g.tolist())
    show(torch.autograd.grad(Once.apply(w).sum(), w))
    refused(show, lambda: g.sum().backward(), 80)


@program
def functions_with_setup_context(torch: Any, show: Any) -> None:
    class Setup(torch.autograd.Function):
        @staticmethod
        def forward(a: Any, b: Any) -> Any:
            return a * b, a + b

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            show(g is None, h is None)
            a, b = ctx.saved_tensors
            return g * b, g * a

    w = torch.ones(2, requires_grad=True)
    product, _ = Setup.apply(w, w * 3)
    product.sum().backward()
    show(w.grad)


@program
def functions_and_versions_of_what_they_saved(torch: Any, show: Any) -> None:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            out = a * b
            ctx.save_for_backward(a, b, out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b, _ = ctx.saved_tensors
            return g * b.conj(), g * a.conj()

    w = torch.ones(2, requires_grad=True)
    u = w * 2
    t = Product.apply(u, w)
    show(t.grad_fn.saved_tensors[0] is u, t.grad_fn.saved_tensors[2].grad_fn is t.grad_fn)
    u.add_(1)
    refused(show, lambda: t.sum().backward(), 90)
    t = Product.apply(w, w)
    t.mul_(2)
    refused(show, lambda: t.sum().backward(), 90)
    t = Product.apply(w * 1j, w * 2j)
    show(torch.autograd.grad(t.abs().sum(), w))


@program
def hooks_on_functions(torch: Any, show: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = _product(torch).apply(x, 2, x * 3)
    z.register_hook(lambda g: show("tensor", g))
    z.grad_fn.register_prehook(lambda grads: show("pre", grads))
    z.grad_fn.register_hook(lambda pulled, grads: show("post", pulled, grads))
    z.grad_fn.metadata["a"] = 3
    show(z.grad_fn.metadata, z.grad_fn is z.grad_fn)
    z.backward(torch.ones(2))
    show(x.grad)


@program
def backward_inside_of_backward(torch: Any, show: Any) -> None:
    class Reentrant(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            with torch.enable_grad():
                ctx.x = a.detach().requires_grad_()
                ctx.out = (ctx.x**2).sum()
            return ctx.out.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with torch.enable_grad():
                ctx.out.backward(retain_graph=True)
            return ctx.x.grad * g

    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (Reentrant.apply(w) * 2).backward()
    show(w.grad)


# --- what graphs keep, and the graph itself ---------------------------------------------------------------


@program
def hooks_for_saved_tensors(torch: Any, show: Any) -> None:
    graph = module(torch, "autograd.graph")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append((round(sum(t.tolist()), 3), t.requires_grad))
        return t.tolist()

    def unpack(kept: Any) -> Any:
        seen.append(kept)
        return torch.tensor(kept) * 10

    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
        z = y * 2 + x.sin().sum()
    show(seen)
    z.sum().backward()
    show(len(seen), x.grad)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    refused(show, lambda: y.sum().backward(), 90)
    with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        refused(show, lambda: x.exp(), 60)
    with (
        graph.saved_tensors_hooks(lambda t: (1, t), lambda p: p[1]),
        graph.saved_tensors_hooks(lambda t: (2, t), lambda p: p[1] * p[0]),
    ):
        y = x.exp()
    show(torch.autograd.grad(y.sum(), x))
    with graph.save_on_cpu():
        y = _product(torch).apply(x, 2, x * x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    show(g, torch.autograd.grad(g.sum(), x))
    with graph.disable_saved_tensors_hooks("not here"):
        refused(show, lambda: graph.save_on_cpu().__enter__())
    with torch.no_grad(), graph.saved_tensors_hooks(pack, unpack):
        show((x * x).requires_grad)


@program
def hooks_of_several_gradients(torch: Any, show: Any) -> None:
    graph = module(torch, "autograd.graph")
    a, b, c = (torch.ones(2, requires_grad=True) for _ in range(3))
    for mode in ("all", "any"):
        handle = graph.register_multi_grad_hook((a, b, c), lambda grads, mode=mode: show(mode, grads), mode=mode)
        (a * 2 + b * 3).sum().backward()
        (a * b * c).sum().backward()
        (a * 2).sum().backward(inputs=[a])
        handle.remove()
    (a * b * c).sum().backward()
    refused(show, lambda: graph.register_multi_grad_hook((a,), show, mode="some"))
    mid = a * 2
    graph.register_multi_grad_hook((mid, b), lambda grads: show("mid", grads))
    (mid * b).sum().backward()


@program
def edges_and_what_nodes_saved(torch: Any, show: Any) -> None:
    graph = module(torch, "autograd.graph")
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (a * 2).exp()
    edge = graph.get_gradient_edge(a)
    show(type(edge).__name__, edge.node.name(), edge.output_nr, isinstance(y.grad_fn, graph.Node))
    show(
        torch.autograd.grad(y.sum(), edge),
        torch.autograd.grad(y.sum(), graph.get_gradient_edge(a * 1), allow_unused=True),
    )
    refused(show, lambda: graph.get_gradient_edge(torch.ones(1)), 80)
    y = (a * 2).exp()
    show(y.grad_fn._saved_result.sum() > 61, y.grad_fn._saved_result.grad_fn is y.grad_fn)
    s = a.sin()
    show(s.grad_fn._saved_self is a or s.grad_fn._saved_self.tolist(), s.grad_fn._saved_self.requires_grad)
    s.sum().backward()
    refused(show, lambda: s.grad_fn._saved_self)
    refused(show, lambda: s.grad_fn._saved_no_such_thing)
    p = a * torch.ones(2)
    graph.increment_version(a)
    show(a._version)
    with graph.allow_mutation_on_saved_tensors():
        b = a * 2
        e = b.exp()
        e.mul_(3)
        e.sum().backward()
        refused(show, lambda: graph.allow_mutation_on_saved_tensors().__enter__())
    show(a.grad, p.grad_fn.next_functions[1])


@program
def checkpoints(torch: Any, show: Any) -> None:
    utils = module(torch, "utils.checkpoint")
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    runs = [0]

    def function(v: Any, k: Any = 1) -> Any:
        runs[0] += 1
        return (v * v).sin() * k + torch.rand(2) * v.exp()

    for reentrant in (True, False):
        runs[0] = 0
        torch.manual_seed(3)
        y = utils.checkpoint(function, x, use_reentrant=reentrant)
        y.sum().backward()
        torch.manual_seed(3)
        expected = torch.autograd.grad(function(x).sum(), x)[0]
        show(bool(torch.allclose(x.grad, expected)), runs)
        x.grad = None
    y = utils.checkpoint(lambda v: (v * v).sin(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    show(g, torch.autograd.grad(g.sum(), x))
    y = utils.checkpoint(lambda v: (v * v).sin(), x, use_reentrant=True)
    refused(show, lambda: torch.autograd.grad(y.sum(), x), 70)
    y = utils.checkpoint(function, x, k=2, use_reentrant=False)
    refused(show, lambda: utils.checkpoint(function, x, k=2, use_reentrant=True))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    refused(show, lambda: y.sum().backward())
    nested = lambda v: utils.checkpoint(lambda u: u.exp().sin(), v * v, use_reentrant=False) * v
    y = utils.checkpoint(nested, x, use_reentrant=False)
    show(torch.autograd.grad(y.sum(), x))
    changing = iter([1, 2, 3])
    fickle = lambda v: v.sin().exp() if next(changing) == 1 else v * 2
    y = utils.checkpoint(fickle, x, use_reentrant=False)
    refused(show, lambda: y.sum().backward(), 120)
    shapes = iter([2, 1])
    y = utils.checkpoint(lambda v: v[: next(shapes)].sin().sum(), x, use_reentrant=False)
    refused(show, lambda: y.backward(), 100)
    refused(show, lambda: utils.checkpoint(function, x, use_reentrant=False, determinism_check="x"))
    chain = [torch.sin, torch.exp, torch.cos, torch.tanh]
    for reentrant in (True, False):
        x.grad = None
        utils.checkpoint_sequential(chain, 2, x, use_reentrant=reentrant).sum().backward()
        show(x.grad)
    with torch.no_grad():
        show(utils.checkpoint(torch.sin, x, use_reentrant=False).requires_grad)


@program
def anomalies(torch: Any, show: Any) -> None:
    def caught(do: Any) -> None:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            refused(show, do)
        for warning in found:
            text = str(warning.message)
            show(warning.category.__name__, text[:70], "anomalies" in text)

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    caught(lambda: torch.autograd.detect_anomaly())
    with torch.autograd.detect_anomaly():
        show(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        y = (x * 0).sqrt() * 0
        caught(lambda: y.sum().backward())
    show(torch.is_anomaly_enabled())
    y = (x * 0).sqrt() * 0
    with torch.autograd.set_detect_anomaly(True):
        caught(lambda: y.sum().backward())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        caught(lambda: ((x * 0).sqrt() * 0).sum().backward())
    with torch.autograd.set_detect_anomaly(True):

        class Raises(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                raise RuntimeError("in backward")

        caught(lambda: Raises.apply(x).sum().backward())


@program
def variables_and_passes_inside_of_passes(torch: Any, show: Any) -> None:
    Variable = torch.autograd.Variable
    x = Variable(torch.ones(2), requires_grad=True)
    show(x, isinstance(torch.ones(1), Variable))
    refused(show, lambda: Variable._execution_engine.queue_callback(lambda: None))
    x.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: show("at the end", x.grad)))
    (x * 2).sum().backward()

    def raises(g: Any) -> Any:
        raise ValueError("in a hook")

    y = x * 3
    handle = y.register_hook(raises)
    total = (y * y).sum()
    refused(show, lambda: total.backward(retain_graph=True))
    handle.remove()
    x.grad = None
    total.backward()
    show(x.grad, torch.is_grad_enabled())
    nested = torch.ones(2, requires_grad=True)
    outer = torch.ones(2, requires_grad=True)
    product = outer * 2

    def again(g: Any) -> None:
        with torch.enable_grad():
            (nested * 4).sum().backward()

    product.register_hook(again)
    product.sum().backward()
    show(nested.grad, outer.grad)
    deep = torch.ones(1, requires_grad=True)
    chain = deep
    for _ in range(5000):
        chain = chain + 1
    chain.backward()
    show(deep.grad)
    a = torch.ones(2, requires_grad=True)
    a.grad = torch.ones(2)
    kept = a.grad
    (a * 2).sum().backward()
    show(a.grad is kept, kept)
    (a**2).sum().backward(create_graph=True)
    show(a.grad.requires_grad, a.grad)
    b = torch.ones(2, requires_grad=True)
    c = b * 2
    c.retain_grad()
    c.retain_grad()
    c.register_hook(lambda g: g * 2)
    c.sum().backward(inputs=[b, c])
    show(b.grad, c.grad, c.retains_grad, b.retains_grad)
    refused(show, lambda: b.detach().retain_grad())
    refused(show, lambda: torch.ones(2).register_hook(show))
    refused(show, lambda: c.register_post_accumulate_grad_hook(show))
    refused(show, lambda: c.sum().backward(inputs=[]))
    refused(show, lambda: torch.autograd.backward([c.sum()], [torch.ones(3)]))
    refused(show, lambda: torch.autograd.grad(c.sum(), [torch.ones(2)]))
