"""Programs of `torch.func` about what a transformed function is given: tensors that are written, printed, asked."""

from __future__ import annotations

from typing import Any

from torch_autograd import module, program, refused, shown
from torch_func import rows


@program
def arguments_that_are_written_to(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    def copied(x: Any, y: Any) -> Any:
        y.copy_(x * 2)
        return y.sin()

    def part(x: Any, y: Any, z: Any) -> Any:
        y[:2] = x
        return torch.stack([(y**2).sum(), (z**3).sum()])

    for jacobian in (F.jacrev, F.jacfwd):
        y = torch.zeros(3, dtype=torch.float64)
        show(shown(jacobian(copied)(rows(torch, 3), y)), shown(y), y.requires_grad)
        y = rows(torch, 3)
        show(shown(jacobian(part, argnums=(0, 2))(rows(torch, 2), y, rows(torch, 2))), shown(y))
    y = torch.zeros(3, dtype=torch.float64)
    show(shown(F.grad(lambda x, y: copied(x, y).sum())(rows(torch, 3), y)), shown(y))
    show(shown(F.grad(lambda x, y: copied(x, y).sum())(rows(torch, 3), y=y)), shown(y))
    base = torch.zeros(2, 3, dtype=torch.float64)
    show(shown(F.vjp(lambda x: copied(x, base.clone()), rows(torch, 3))[0]), shown(base))
    refused(show, lambda: F.vjp(lambda x: copied(x, base[0]), rows(torch, 3)), 100)
    refused(show, lambda: F.grad(lambda x: F.grad(lambda z: copied(z, y).sum())(x).sum())(rows(torch, 3)), 100)

    def both(x: Any, y: Any) -> Any:
        x.mul_(y)
        return x.sin()

    x = rows(torch, 3)
    show(shown(F.jvp(both, (x, x * 2), (x.clone(), x.clone()))), shown(x))
    a, b = rows(torch, 3, 2), rows(torch, 2, 3)
    along = lambda x, y: F.jvp(both, (x, y), (y.clone(), y.clone()))
    show(shown(F.vmap(along, in_dims=(1, 0))(a, b)), shown(a), shown(b))
    show(shown(F.vmap(F.jacrev(copied))(rows(torch, 2, 3), b)), shown(b))

    def failing(x: Any, y: Any) -> Any:
        y.copy_(x)
        raise ValueError("after the write")

    y = torch.zeros(3, dtype=torch.float64)
    refused(show, lambda: F.grad(failing)(rows(torch, 3), y))
    show((y + 1).requires_grad, y.grad_fn)


@program
def what_tensors_say_inside(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    def seen(transform: Any, x: Any, ask: Any) -> Any:
        found: list[Any] = []
        transform(lambda v: [found.append(ask(v)), v.sum()][1])(x)
        return found

    x = rows(torch, 2, 3)
    for transform in (F.grad, F.vmap, lambda f: F.vmap(F.grad(f)), lambda f: lambda x: F.jvp(f, (x,), (x,))):
        show(*seen(transform, x, repr), *seen(transform, x, str))
        show(seen(transform, x, lambda v: (v.is_leaf, v.grad_fn is None, v.sin().is_leaf, v.sin().grad_fn is None)))
    show(*seen(lambda f: F.vmap(F.vmap(f)), x, repr), *seen(lambda f: F.grad(lambda x: F.grad(f)(x).sum()), x, repr))
    show(seen(F.grad, x, lambda v: [type(n).__name__ for n in (v.sin().grad_fn, (v * 2).grad_fn)]))
    for do in (lambda v: v.requires_grad_(), lambda v: v.sin().requires_grad_()):
        refused(show, lambda do=do: seen(F.grad, x, do), 100)
        refused(show, lambda do=do: seen(F.vmap, x, do), 100)
    refused(show, lambda: seen(F.grad, x, lambda v: v.requires_grad_(False)), 100)
    seen(F.grad, x, lambda v: setattr(v, "requires_grad", True))
    refused(show, lambda: F.vmap(torch.nonzero)(x), 90)


@program
def shapes_in_place_inside(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    def f(w: Any, x: Any) -> Any:
        y = x.mm(w)
        return (y.squeeze_(0) * rows(torch, 2)).sin().sum()

    def turned(x: Any) -> Any:
        y = x * 2
        y.t_().unsqueeze_(0)
        return y.mul_(x.T).transpose_(0, 2)

    def viewed(x: Any) -> Any:
        y = (x * 2)[0]
        y.unsqueeze_(1)
        y.mul_(3)
        return y

    show(shown(F.vmap(F.grad(f), in_dims=(None, 0))(rows(torch, 3, 2), rows(torch, 4, 1, 3))))
    show(shown(F.jacrev(turned)(rows(torch, 2, 3))), shown(F.vmap(turned)(rows(torch, 2, 2, 3))))
    show(shown(F.jacrev(viewed)(rows(torch, 2, 3))), shown(F.vmap(viewed)(rows(torch, 2, 2, 3))))


@program
def what_transforms_refuse(torch: Any, show: Any) -> None:
    F, nn = module(torch, "func"), module(torch, "nn")
    x = rows(torch, 3)
    for aux in (1, "name", [x, 2.0]):
        for name in ("grad", "grad_and_value", "jacrev", "jacfwd"):
            refused(show, lambda name=name, aux=aux: getattr(F, name)(lambda v: (v.sum(), aux), has_aux=True)(x))
        refused(show, lambda aux=aux: F.vjp(lambda v: (v, aux), x, has_aux=True))
        refused(show, lambda aux=aux: F.jvp(lambda v: (v, aux), (x,), (x,), has_aux=True))
    refused(show, lambda: F.jvp(lambda v: (v, v, v), (x,), (x,), has_aux=True), 80)
    for tangents in (x, [x], (x, x)):
        refused(show, lambda tangents=tangents: F.jvp(torch.sin, (x,), tangents), 100)
    _, along = F.linearize(torch.sin, x)
    refused(show, lambda: along(x[None]), 100)
    kept = torch.autograd.graph.save_on_cpu

    def held(v: Any) -> Any:
        with kept():
            return v.sin().sum()

    for name in ("grad", "jacrev", "grad_and_value", "hessian", "jacfwd", "vmap"):
        refused(show, lambda name=name: getattr(F, name)(held)(x), 100)
        with kept():
            refused(show, lambda name=name: getattr(F, name)(lambda v: v.sin().sum())(x), 100)
    refused(show, lambda: F.vjp(held, x), 100)
    show(shown(F.jvp(held, (x,), (x,))))
    layers = [nn.Linear(2, 2) for _ in range(3)]
    layers[1].weight.requires_grad_(False)
    refused(show, lambda: F.stack_module_state(layers))


@program
def functions_that_return_their_argument(torch: Any, show: Any) -> None:
    F, A = module(torch, "func"), module(torch, "autograd.forward_ad")
    for dirty in (True, False):
        for saved in ("", "input", "output"):
            for keep in ("save_for_forward", "save_for_backward"):

                class Same(torch.autograd.Function):
                    @staticmethod
                    def forward(x: Any) -> Any:
                        return x

                    @staticmethod
                    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                        if dirty:  # noqa: B023
                            ctx.mark_dirty(inputs[0])
                        if saved:  # noqa: B023
                            getattr(ctx, keep)(inputs[0] if saved == "input" else output)  # noqa: B023

                    @staticmethod
                    def backward(ctx: Any, g: Any) -> Any:
                        return g

                    @staticmethod
                    def jvp(ctx: Any, t: Any) -> Any:
                        return t.add_(0) if dirty else t.view_as(t)  # noqa: B023

                for tracked in (True, False):
                    x = torch.tensor(2.0, requires_grad=tracked)
                    refused(show, lambda: F.grad(lambda v: Same.apply(v.clone()))(x))  # noqa: B023
                    t = torch.tensor(2.0)
                    refused(show, lambda: F.jvp(lambda v: Same.apply(v.clone()), (x,), (t,)))  # noqa: B023
                    refused(show, lambda: show(Same.apply(x.clone()).requires_grad))  # noqa: B023
                    with A.dual_level():
                        if not (dirty and saved and keep == "save_for_backward"):
                            dual = A.make_dual(x.clone(), t)
                            refused(show, lambda: show(Same.apply(dual) is dual))  # noqa: B023


@program
def functions_that_write_to_clones(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    class Doubled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.mul_(2)

    def f(x: Any) -> Any:
        square = x * x  # which saves x
        return square * Doubled.apply(x.clone())

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for found in (F.jacfwd(f)(x), F.jacrev(f)(x), *F.jvp(f, (x,), (torch.ones(2),)), F.jacfwd(F.jacrev(f))(x)):
        show(shown(found.detach()))
        show(shown(torch.autograd.grad(found.sum(), x, retain_graph=True)[0]))


@program
def what_functions_are_told_inside(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * 1, y * 1

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, gx: Any, gy: Any) -> Any:
            show(ctx.needs_input_grad, gx is None, gy is None)
            return gx, gy

    x, y = torch.tensor(2.0), torch.tensor(3.0)
    show(F.grad(lambda x, y: Two.apply(x, y)[0] ** 2)(x, y), F.grad(lambda x, y: Two.apply(x, y)[1] * x)(x, y))
    show(F.grad(F.grad(lambda x, y: Two.apply(x, y)[0] ** 3))(x, y))

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, others: Any) -> Any:
            return x + others[0] * others[1]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, others: Any) -> Any:
            show(info.batch_size, in_dims, type(others).__name__)
            return x + others[0] * others[1], 0

    show(shown(F.vmap(Sum.apply)(rows(torch, 3), [rows(torch, 3), rows(torch, 3)])))

    def answering(answer: Any) -> Any:
        class Answer(Sum):
            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, others: Any) -> Any:
                return answer(torch.zeros(3))

        return lambda: F.vmap(Answer.apply)(rows(torch, 3), [rows(torch, 3), rows(torch, 3)])

    answers = (
        lambda r: r, lambda r: (r, r, 0), lambda r: (r, (None,)), lambda r: ((r, r), (0,)), lambda r: (r, None),
        lambda r: ((r, r), None), lambda r: ((r, r), (None, 0)),
    )  # fmt: skip
    for answer in answers:
        refused(show, answering(answer), 100)


@program
def jacobians_some_rows_at_a_time(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    f = lambda x, y: ((x.sin(), x + y), (x + 2, x.sum()))
    for size in (1, 2, 3, 100):
        show(shown(F.jacrev(f, argnums=(0, 1), chunk_size=size)(rows(torch, 3, 2), rows(torch, 1, 2))))
        show(shown(F.vmap(F.jacrev(F.jacrev(torch.sin, chunk_size=size), chunk_size=size))(rows(torch, 2, 2))))
    show(shown(F.jacrev(lambda x: x[:0] * 2, chunk_size=2)(rows(torch, 3))))
    show(shown(F.jacrev(lambda x: (x**2, x.cos()), chunk_size=1, has_aux=True)(rows(torch, 2))))

    class Looks(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 1

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * len(g.nonzero())

    show(shown(F.jacrev(Looks.apply, chunk_size=1)(rows(torch, 2, 2))))


@program
def registered_containers_inside(torch: Any, show: Any) -> None:
    F, trees = module(torch, "func"), module(torch, "utils._pytree")

    class Held:
        def __init__(self, x: Any) -> None:
            self.x = x

    trees.register_pytree_node(Held, lambda held: ([held.x], None), lambda parts, _: Held(*parts))
    try:
        g = F.grad(lambda held, y: (held.x**2 * y).sum())(Held(rows(torch, 3)), rows(torch, 3))
        show(type(g).__name__, shown(g.x))
        show(shown(F.vmap(lambda held: held.x.sum())(Held(rows(torch, 2, 3)))))
    finally:
        trees._deregister_pytree_node(Held)


@program
def functions_of_what_requires_a_gradient(torch: Any, show: Any) -> None:
    F = module(torch, "func")

    class Square(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2 * ctx.saved_tensors[0]

    x = rows(torch, 3).requires_grad_()
    cube = lambda v: Square.apply(v) * v
    transforms = (
        F.jacrev, F.jacfwd, F.hessian, F.vmap, lambda f: F.jacrev(F.jacrev(f)), lambda f: F.vmap(F.grad(f)),
        lambda f: F.grad(lambda v: f(v).sum()), lambda f: F.jacfwd(F.grad(lambda v: f(v).sum())),
        lambda f: lambda v: F.jvp(f, (v,), (v.detach(),))[1], lambda f: lambda v: F.vjp(f, v)[1](v.detach())[0],
        lambda f: F.jacrev(F.vmap(f)), lambda f: F.vmap(F.jacrev(f)),
    )  # fmt: skip
    for transform in transforms:
        y = transform(cube)(x)
        show(shown(y), y.requires_grad, shown(torch.autograd.grad(y.sum(), x)))
