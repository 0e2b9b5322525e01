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


# --- functions of functions ---------------------------------------------------------------------------------


def shown(x: Any) -> Any:
    """Nested tensors as nested rounded numbers."""
    if isinstance(x, (tuple, list)):
        return [shown(entry) for entry in x]
    if isinstance(x, dict):
        return {name: shown(entry) for name, entry in x.items()}
    if not hasattr(x, "detach"):
        return x
    return (tuple(x.shape), [round(v, 3) + 0.0 for v in x.detach().reshape(-1).tolist()])


@program
def functional_products_and_matrices(torch: Any, show: Any) -> None:
    F = module(torch, "autograd.functional")
    x = torch.tensor([[0.3, 0.5], [0.7, 1.1]], dtype=torch.float64)
    w = torch.tensor([1.0, 2.0], dtype=torch.float64)
    one = lambda a: (a.exp() * a).sum(1)
    two = lambda a, b: (a * b, (a.sin() @ b).sum())
    number = lambda a, b: (a.sin() @ b).exp().sum()
    show(shown(F.vjp(one, x, w)), shown(F.vjp(two, (x, w), (x, torch.tensor(2.0, dtype=torch.float64)))))
    show(shown(F.jvp(one, x, x)), shown(F.jvp(two, (x, w), (x, w))))
    for vectorize in (False, True):
        show(shown(F.jacobian(one, x, vectorize=vectorize)), shown(F.jacobian(two, (x, w), vectorize=vectorize)))
        show(shown(F.hessian(number, (x, w), vectorize=vectorize)))
        show(shown(F.hessian(lambda a: (a**3).sum(), w, vectorize=vectorize)))
    show(shown(F.vhp(number, (x, w), (x, w))), shown(F.hvp(number, (x, w), (x, w))))
    show(shown(F.vjp(lambda a: a.sum(), x)), shown(F.jacobian(lambda a: w, x)))
    tracked = w.clone().requires_grad_()
    jacobian = F.jacobian(lambda a: a**3, tracked, create_graph=True)
    show(jacobian.requires_grad, shown(torch.autograd.grad(jacobian.sum(), tracked)))
    out, product = F.hvp(lambda a: (a**4).sum(), tracked, w, create_graph=True)
    show(shown(torch.autograd.grad(product.sum(), tracked)), out.requires_grad)


@program
def functional_refusals(torch: Any, show: Any) -> None:
    F = module(torch, "autograd.functional")
    x = torch.tensor([0.3, 0.5])
    with_strict = lambda f: lambda: f(lambda a: torch.ones(()), x, strict=True)
    for name in ("vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"):
        f = getattr(F, name)
        refused(show, lambda f=f: f(lambda a: a.sum(), [1.0]), 140)
        refused(show, lambda f=f: f(lambda a: [a.sum()], x), 140)
        refused(show, with_strict(f), 100)
    for name in ("vjp", "jvp", "vhp", "hvp"):
        f = getattr(F, name)
        refused(show, lambda f=f: f(lambda a: a.exp().sum() if f in (F.vhp, F.hvp) else a.exp(), x), 120)
        refused(show, lambda f=f: f(lambda a: a.exp().sum() if f in (F.vhp, F.hvp) else a, x, torch.ones(3)), 120)
        refused(show, lambda f=f: f(lambda a: a.sum() if f in (F.vhp, F.hvp) else a, x, (x, x)), 120)
    refused(show, lambda: F.hessian(lambda a: a, x), 120)
    refused(show, lambda: F.hessian(lambda a: (a.sum(), a.sum()), x), 120)
    refused(show, lambda: F.hessian(lambda a: a.sum(), x, strict=True), 140)
    refused(show, lambda: F.jacobian(lambda a: a, x, strict=True, vectorize=True), 140)
    refused(show, lambda: F.jacobian(lambda a: a, x, strategy="some"), 140)
    refused(show, lambda: F.vhp(lambda a: a.sum(), x, x, strict=True), 140)
    refused(show, lambda: F.jacobian(lambda a, b: a, (x, x), strict=True), 140)


@program
def checks_of_gradients(torch: Any, show: Any) -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    def drawn(*shape: int, kind: Any = torch.float64) -> Any:
        return torch.linspace(0.2, 1.3, 6).reshape(shape or (2, 3)).to(kind).requires_grad_()

    check, second = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for fast in (False, True):
        show(check(lambda a, b: (a * b.sin(), a.exp()), (drawn(), drawn()), fast_mode=fast, check_batched_grad=True))
        show(second(lambda a, b: a * b.sin(), (drawn(), drawn()), fast_mode=fast))
        show(check(lambda z: z * z.conj() * z.exp(), (drawn(kind=torch.complex128) * (1 + 0.5j),), fast_mode=fast))
        refused(show, lambda fast=fast: check(Wrong.apply, (drawn(),), fast_mode=fast), 30)
        show(check(Wrong.apply, (drawn(),), raise_exception=False, fast_mode=fast))
    refused(show, lambda: check(torch.sin, (torch.ones(2),)))
    refused(show, lambda: check(torch.sin, (drawn(6, 1).expand(6, 2),)))
    refused(show, lambda: check(lambda a: a.detach() * 2, (drawn(),)))
    show(check(lambda a, k: a[:k], (drawn(), 1)))


@program
def transforms_of_functions(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    x = torch.tensor([0.3, 0.5, 0.7], dtype=torch.float64)
    w = torch.tensor([[0.2, 0.4, 0.6], [0.8, 1.0, 1.2]], dtype=torch.float64)
    total = lambda a, b: (a.sin() * b).sum()
    show(
        shown(F.grad(total)(x, x * 2)),
        shown(F.grad(total, argnums=(0, 1))(x, x)),
        shown(F.grad(total, argnums=-1)(x, x)),
    )
    show(shown(F.grad_and_value(lambda a: (a.exp().sum(), {"a": a}), has_aux=True)(x)))
    show(shown(F.grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": (x * 2,)})))
    show(shown(F.grad(F.grad(F.grad(torch.sin)))(torch.tensor(0.5))))
    value, pull = F.vjp(lambda a, b: {"p": a * b, "s": a.sum()}, x, x * 3)
    show(shown(value), shown(pull({"p": x, "s": torch.tensor(2.0, dtype=torch.float64)})))
    show(shown(F.vjp(torch.sin, x)[1](x)), shown(F.vjp(lambda a: (a * 2, a), x, has_aux=True)[2]))
    show(
        shown(F.jvp(lambda a, b: (a * b, a.exp()), (x, x), (x, w[0]))),
        shown(F.jvp(lambda a: (a, 1 * a), (x,), (x,), has_aux=True)),
    )
    value, along = F.linearize(lambda a: a**3, x)
    show(shown(value), shown(along(w[1])))
    for f in (F.jacrev, F.jacfwd):
        show(shown(f(lambda a: a[:2] * a[2])(x)), shown(f(lambda a, b: a.outer(b), argnums=(0, 1))(x, w[0])))
        show(
            shown(f(lambda a: {"s": a.sin(), "t": (a.sum(), a * a)})(x)),
            shown(f(lambda a: (a * a, a), has_aux=True)(x)),
        )
    show(shown(F.hessian(lambda a: (a**3).sum() * a[0])(x)), shown(F.jacrev(F.jacrev(lambda a: (a**3).sum()))(x)))
    show(shown(F.jacfwd(F.jacrev(lambda a: a.exp().prod()))(x)))

    def writes(v: Any) -> Any:
        v = v.clone()
        v[0] = v[1] * 2
        part = v[1:]
        part.mul_(3)
        v.t().add_(1)
        return v.prod()

    show(shown(F.grad(writes)(x)), shown(F.vmap(writes)(w)), shown(F.vmap(F.grad(writes))(w)))
    show(shown(F.jvp(writes, (x,), (x,))), shown(F.hessian(writes)(x)))
    outside = x.clone().requires_grad_()
    out = F.grad(lambda a: (a**2 * outside).sum())(x)
    show(shown(out), out.requires_grad, shown(torch.autograd.grad(out.sum(), outside)))
    out = F.vmap(lambda a: (a * outside).sum())(w)
    show(shown(torch.autograd.grad(out.sum(), outside)))
    with torch.no_grad():
        show(shown(F.grad(lambda a: (a * a).sum())(x)))
    refused(show, lambda: F.grad(lambda a: a)(x), 60)
    refused(show, lambda: F.grad(lambda a: a.sum(), argnums=3)(x))
    refused(show, lambda: F.grad(lambda a: a.sum(), argnums=())(x))
    refused(show, lambda: F.jvp(torch.sin, x, x), 40)
    refused(show, lambda: F.vjp(torch.sin, x)[1]((x, x)), 80)


@program
def batches(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    w = torch.linspace(0.1, 1.2, 12, dtype=torch.float64).reshape(2, 3, 2)
    for name, f in {
        "sin": torch.sin,
        "sum": lambda a: a.sum(0),
        "max": lambda a: a.amax(1),
        "reshape": lambda a: a.reshape(-1),
        "view": lambda a: a.view(2, 3)[0],
        "t": lambda a: a.t(),
        "matmul": lambda a: a.t() @ a,
        "cat": lambda a: torch.cat([a, a]),
        "stack": lambda a: torch.stack([a, a], 1),
        "where": lambda a: torch.where(a > 0.5, a, -a),
        "index": lambda a: a[1, :],
        "softmax": lambda a: torch.softmax(a, 1),
        "norm": lambda a: a.norm(),
        "mean": lambda a: a.mean(),
        "const": lambda a: torch.ones(2),
        "gather": lambda a: a.gather(1, torch.tensor([[0], [1], [0]])),
        "cumsum": lambda a: a.cumsum(0),
        "flip": lambda a: a.flip(0),
        "diagonal": lambda a: a.diagonal(),
        "unbind": lambda a: a.unbind(0)[1],
        "einsum": lambda a: torch.einsum("ij,ik->jk", a, a),
        "argmax": lambda a: a.argmax(1),
        "sort": lambda a: a.sort(0, descending=True)[0],
        "max0": lambda a: a.max(0)[0],
        "any": lambda a: (a > 0.5).any(1),
        "all": lambda a: (a > 0.1).all(),
        "expand": lambda a: a[0].expand(3, 2),
        "to": lambda a: a.float(),
        "clamp": lambda a: a.clamp(0.3, 0.8),
        "var": lambda a: a.var(0),
        "detach": lambda a: a.detach() * 2,
        "unsqueeze": lambda a: a.unsqueeze(0),
        "topk": lambda a: a.topk(2, 0)[0],
        "pow": lambda a: a**2,
        "rsub": lambda a: 1 - a,
        "neg": lambda a: -a,
        "cmp": lambda a: a == a,
    }.items():
        for in_dim in (0, 2):
            show(
                name,
                in_dim,
                shown(torch.vmap(f, in_dims=in_dim)(w))
                if (in_dim == 0 or name not in ("view", "gather", "expand"))
                else "",
            )
    show(shown(F.vmap(lambda a, b: a * b, in_dims=(0, None))(w, w[0])), F.vmap(lambda a: a, out_dims=1)(w).shape)
    show(shown(F.vmap(lambda p, k: p["a"] * k, in_dims=({"a": 1}, None))({"a": w}, 3)))
    show(shown(F.vmap(F.vmap(lambda a, b: a @ b, in_dims=(0, None)), in_dims=(0, 0))(w, w[:, 0])))
    show([t.shape for t in F.vmap(lambda a: (a, a.sum()), out_dims=(2, 0))(w)])
    show(
        shown(F.vmap(torch.sin, chunk_size=1)(w)),
        shown(F.vmap(lambda a, b: a + b, in_dims=(1, None), out_dims=1, chunk_size=2)(w, w[:, 0])),
    )
    show(
        shown(F.vmap(F.grad(lambda a: (a**3).sum()))(w)),
        shown(F.grad(lambda a: F.vmap(lambda r: r.prod())(a).sum())(w)),
    )
    show(shown(F.vmap(F.jacrev(torch.sin))(w[0])), shown(F.vmap(lambda a: a * 2, in_dims=-1)(w)))
    show(F.vmap(lambda a: torch.rand(3) + 0 * a.sum(), randomness="same")(w[0]).shape)
    drawn = F.vmap(lambda a: torch.randn(4), randomness="different")(w[0])
    show(drawn.shape, bool((drawn[0] == drawn[1]).any()))
    drawn = F.vmap(lambda a: torch.randn(4), randomness="same")(w[0])
    show(bool((drawn[0] == drawn[1]).all()))
    refused(show, lambda: F.vmap(lambda a: torch.rand(3))(w))
    refused(show, lambda: F.vmap(lambda a: a.item())(w[0, 0]))
    refused(show, lambda: F.vmap(lambda a: a if a.sum() > 0 else -a)(w))
    refused(show, lambda: F.vmap(lambda a: a, in_dims=5)(w), 30)
    refused(show, lambda: F.vmap(lambda a: a, in_dims=(0, 0))(w), 30)
    refused(show, lambda: F.vmap(lambda a, b: a)(w, 3.0), 30)
    refused(show, lambda: F.vmap(lambda a, b: a)(w, w[0]), 50)
    refused(show, lambda: F.vmap(lambda a: 3)(w), 5)
    refused(show, lambda: F.vmap(lambda a: torch.zeros(3, 2).add_(a))(w), 0)


@program
def functions_inside_of_transforms(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, k: Any) -> Any:
            return x**3 * k, x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * g * ctx.k + 2 * h, None

        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * t * ctx.k, 2 * t

    class ByHand(Cube):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, k: Any) -> Any:
            show(info.batch_size, info.randomness, in_dims, x.shape)
            return ByHand.apply(x.movedim(in_dims[0], 0), k), (0, 0)

    class Without(ByHand):
        pass

    class OldStyle(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = torch.tensor([1.0, 2.0])
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for f in (Cube, ByHand):
        first = lambda v, f=f: f.apply(v, 2)[0].sum()
        show(shown(F.grad(first)(x)), shown(F.grad(lambda v, first=first: F.grad(first)(v).sum())(x)))
        show(shown(F.vmap(lambda v, f=f: f.apply(v, 2))(w)), shown(F.vmap(F.grad(first))(w)))
        show(
            shown(F.jvp(lambda v, f=f: f.apply(v, 2), (x,), (x,))), shown(F.jacrev(lambda v, f=f: f.apply(v, 2)[0])(x))
        )
        tracked = w.clone().requires_grad_()
        show(shown(torch.autograd.grad(F.vmap(lambda v, f=f: f.apply(v, 2)[0])(tracked).sum(), tracked)))
    refused(show, lambda: F.grad(lambda v: OldStyle.apply(v).sum())(x), 80)
    forward_ad = module(torch, "autograd.forward_ad")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        show(shown(forward_ad.unpack_dual(Cube.apply(dual, 3)[0]).tangent))
        refused(show, lambda: OldStyle.apply(dual), 60)


@program
def dual_numbers(torch: Any, show: Any) -> None:
    A = module(torch, "autograd.forward_ad")
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])
    refused(show, lambda: A.make_dual(x, t), 80)
    show(A.unpack_dual(x).tangent)
    with A.dual_level():
        d = A.make_dual(x, t)
        y = (d * d).exp().sum() + d[0] * 3
        show(shown(A.unpack_dual(y).primal), shown(A.unpack_dual(y).tangent), A.unpack_dual(x).tangent, y.shape)
        refused(show, lambda: A.enter_dual_level())
        refused(show, lambda: A.make_dual(x, torch.ones(3)), 60)
        refused(show, lambda: A.make_dual(torch.ones(2).long(), t))
        refused(show, lambda: A.make_dual(x, torch.ones(2).long()))
        out = torch.zeros(2)
        out[0] = d[1] * 2
        out.mul_(3)
        show(shown(A.unpack_dual(out).tangent), shown(A.unpack_dual(out).primal))
        e = d.clone()
        view = e.view(2, 1)
        view.mul_(2)
        show(shown(A.unpack_dual(e).tangent), shown(A.unpack_dual(view).tangent), e.tolist(), float(e[0]))
        with torch.no_grad():
            show(shown(A.unpack_dual(d * 2).tangent))
        show(A.unpack_dual(d.detach()).tangent, bool(d.sum() > 0), shown(A.unpack_dual(d.max(0)[0]).tangent))
        kept = d * 2
    show(A.unpack_dual(kept).tangent, shown(kept + 1))
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([0.5, 1.0], requires_grad=True)
    with A.dual_level():
        d = A.make_dual(w, v)
        y = (d**3).sum()
        tangent = A.unpack_dual(y).tangent
        show(tangent.requires_grad, shown(torch.autograd.grad(tangent, [w, v], retain_graph=True)), y.requires_grad)
        y.backward()
    show(shown(w.grad))
    c = torch.tensor([1 + 2j, -1j])
    with A.dual_level():
        d = A.make_dual(c, c * 1j)
        show([str(p) for p in A.unpack_dual((d * d.conj()).real).tangent.tolist()])
        refused(show, lambda: A.exit_dual_level(level=3), 50)


@program
def views_that_become_leaves_and_views_of_bits(torch: Any, show: Any) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    v = base[0]
    v.requires_grad_()
    show(v.requires_grad, v.is_leaf, v._is_view(), base.requires_grad, v)
    (v * v).sum().backward()
    show(v.grad)
    refused(show, lambda: v.mul_(2))
    with torch.no_grad():
        v.mul_(2)
    show(v, base, v._version, base._version)
    base[0, 1] = 50.0
    show(v, (v * 1).grad_fn.next_functions[0][0].variable is v)
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    i = x.view(torch.int32)
    show(i, x.view(torch.int64).shape, x.view(torch.uint8).shape, x.view(torch.float16).shape, i._is_view())
    i[0, 0] = 1077936128
    show(x)
    x.mul_(2)
    show(i, x.view(torch.int64).stride(), x.view(torch.uint8).stride())
    refused(show, lambda: torch.ones(3).view(torch.float64), 90)
    refused(show, lambda: torch.tensor(1.0).view(torch.float64), 90)
    refused(show, lambda: x.t().view(torch.int64), 90)
    show(x.requires_grad_().view(torch.int32).requires_grad)


def differentiated(torch: Any, f: Any, x: Any) -> Any:
    """A value, and its derivatives of first and second order."""
    x = x.clone().requires_grad_()
    out = f(x)
    real = out.abs().square().sum() if out.is_complex() else (out * out).sum()
    (g,) = torch.autograd.grad(real, x, create_graph=True)
    second = torch.autograd.grad((g * torch.conj(g)).real.sum() if g.is_complex() else (g * g).sum(), x)[0]
    return shown([p for v in (out, g, second) for p in ((v.real, v.imag) if v.is_complex() else (v,))])


@program
def fourier_transforms(torch: Any, show: Any) -> None:
    x = torch.linspace(0.1, 1.2, 12, dtype=torch.float64).reshape(3, 4).sin()
    z = torch.complex(x, x.cos())
    F = torch.fft
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        given = x if name in ("rfft", "ihfft") else z
        for options in ({}, {"n": 3, "dim": 0}, {"n": 6, "norm": "ortho"}, {"norm": "forward"}):
            show(name, options, differentiated(torch, lambda v, n=name, o=options: getattr(F, n)(v, **o), given))
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfft2", "ihfftn"):
        given = x if name in ("rfft2", "rfftn", "ihfftn") else z
        for options in ({}, {"s": (2, 5)}, {"dim": (0,), "norm": "ortho"}):
            if not (name.endswith("2") and "dim" in options):
                show(name, options, differentiated(torch, lambda v, n=name, o=options: getattr(F, n)(v, **o), given))
    show(F.fftfreq(5, 0.5), F.rfftfreq(4), F.fftshift(x)[0, 0], F.ifftshift(x, 1)[0], F.fft(torch.arange(4)).dtype)
    refused(show, lambda: F.rfft(z), 40)
    refused(show, lambda: F.fft(x, n=0), 40)
    refused(show, lambda: F.fft(x, dim=5), 40)


@program
def special_functions(torch: Any, show: Any) -> None:
    S = torch.special
    u = torch.linspace(0.55, 0.85, 4, dtype=torch.float64)
    differentiable = (
        "digamma psi entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit ndtr ndtri "
        "sinc"
    )
    for name in differentiable.split():
        show(name, differentiated(torch, getattr(S, name), u))
    for name in (
        "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1"
    ).split():
        show(name, shown(getattr(S, name)(u)))
    for name in ("xlogy", "xlog1py"):
        show(name, differentiated(torch, lambda v, n=name: getattr(S, n)(v, v + 1), u), shown(getattr(S, name)(2, u)))
    for name in ("gammainc", "gammaincc", "zeta"):
        show(name, shown(getattr(S, name)(u + 2, u)))
    show(
        differentiated(torch, lambda v: S.polygamma(1, v), u),
        differentiated(torch, lambda v: S.multigammaln(v + 1, 2), u),
    )
    show(differentiated(torch, lambda v: S.softmax(v, 0), u), differentiated(torch, lambda v: S.log_softmax(v, 0), u))
    show(shown(S.logsumexp(u, 0)), shown(S.round(u)), S.erf(torch.tensor([1, 2])).dtype)
    refused(show, lambda: S.polygamma(-1, u))
