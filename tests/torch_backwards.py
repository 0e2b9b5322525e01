"""Programs of backward passes: who sees gradients and when, what is kept and shared, for both libraries."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from torch_autograd import module, program, refused, shown


def _described(node: Any) -> str:
    if node is None:
        return "None"
    return f"{type(node).__name__}({', '.join([_described(known) for known, _ in node.next_functions])})"


@program
def writes_to_what_a_norm_or_a_root_gave(torch: Any, show: Any) -> None:
    F = module(torch, "nn.functional")
    x = torch.arange(24.0).reshape(2, 3, 2, 2).requires_grad_()
    for f in (
        lambda v: F.instance_norm(v), lambda v: F.group_norm(v, 3), lambda v: F.layer_norm(v, (2, 2)),
        lambda v: F.batch_norm(v, None, None, training=True), lambda v: (v + 1) ** 0.5, lambda v: (v + 1) ** 1.5,
    ):  # fmt: skip
        for write in ("relu_", "neg_", "square_"):
            x.grad = None
            y = f(x)
            getattr(y, write)()
            (y * torch.arange(24.0).reshape(2, 3, 2, 2)).sum().backward()
            show(write, [round(v, 1) + 0.0 for v in x.grad.flatten().tolist()[:4]])
    exponent = torch.full((2, 3, 2, 2), 1.5, requires_grad=True)
    y = (x + 1) ** exponent
    y.neg_()
    refused(show, lambda: y.sum().backward())


@program
def hooks_of_functions_and_leaves_in_order(torch: Any, show: Any) -> None:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2, a * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h * 3

    order: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    for i, out in enumerate(outs := Two.apply(x)):
        out.register_hook(lambda g, i=i: order.append(i))
    (outs[0] + outs[1] * 2).sum().backward()
    model = module(torch, "nn").Linear(2, 2)
    for name, p in (("x", x), *model.named_parameters()):
        p.register_hook(lambda g, name=name: order.append(name))
        p.register_post_accumulate_grad_hook(lambda p, name=name: order.append(name + " added"))
    model(x.reshape(1, 2)).sum().backward()
    show(order)
    y = x * 2
    y.grad_fn.register_hook(lambda given, got: show(shown(given), shown(got)))
    y.grad_fn.register_hook(lambda given, got: (given[0] * 3, None))
    x.grad = None
    y.sum().backward()
    show(shown(x.grad))


@program
def gradients_that_are_kept_and_their_graphs(torch: Any, show: Any) -> None:
    edge = module(torch, "autograd.graph").get_gradient_edge
    leaf = torch.ones(2, requires_grad=True)
    x, y = leaf.clone(), leaf.clone()
    out = x.clone()
    for inputs in ((edge(x), y), (x, y), (x, edge(y)), (edge(x), edge(y))):
        torch.autograd.backward(out.sum(), inputs=inputs)
        show(shown(x.grad), y.grad, x.retains_grad, y.retains_grad)
    product = (leaf * 3) * leaf
    product.sum().backward(torch.ones((), requires_grad=True), create_graph=True)
    show(_described(leaf.grad.grad_fn))
    leaf.grad = None
    known = edge(leaf)
    out = leaf.clone()
    with torch.no_grad():
        leaf.set_(torch.zeros(2))
    refused(show, lambda: torch.autograd.grad(out.sum(), leaf))
    show(shown(torch.autograd.grad(out.sum(), known)))
    show(leaf.volatile)


@program
def functions_keep_and_clear_what_they_are_told(torch: Any, show: Any) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            out, other = a * 2, a.clone()
            ctx.mark_non_differentiable(other)
            ctx._materialize_non_diff_grads = False
            return out, other

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            show(h, shown(ctx.saved_variables))
            return g.double()

    class Once(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            show(shown(ctx.saved_tensors))
            refused(show, lambda: ctx.saved_tensors)
            return g

    for kind in (torch.float32, None, torch.float16):
        x = torch.ones(2, requires_grad=True)
        x.grad_dtype = kind
        Doubled.apply(x)[0].sum().backward()
        show(x.grad)
    Once.apply(torch.ones(2, requires_grad=True)).sum().backward()


@program
def what_a_nested_error_says(torch: Any, show: Any) -> None:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g / 0 * 0

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return Inner.apply(g * ctx.saved_tensors[0])

    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            (slope,) = torch.autograd.grad(Outer.apply(x).sum(), x, create_graph=True)
            refused(show, lambda: slope.sum().backward(), 80)
    texts = [str(warning.message) for warning in found]
    show(len(texts), ["Inner.apply" in text for text in texts], ["Outer.apply" in text for text in texts])
    show(["induced by OuterBackward" in text for text in texts])


@program
def checkpoints_share_in_a_group_and_say_more(torch: Any, show: Any) -> None:
    checkpoints = module(torch, "utils.checkpoint")
    for group in (checkpoints.GraphExecGroup, contextlib.nullcontext):
        runs: list[int] = []

        def two(a: Any, runs: Any = runs) -> Any:
            runs.append(1)
            y = a.sin().cos()
            return y, y.sin().cos()

        x = torch.ones(3, requires_grad=True)
        y, z = checkpoints.checkpoint(two, x, use_reentrant=False)
        with group():
            (slope,) = torch.autograd.grad(z, y, torch.ones(3))
            show(shown(torch.autograd.grad(y, x, slope)), len(runs))
    out = checkpoints.checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False)
    with checkpoints.GraphExecGroup():
        out.sum().backward(retain_graph=True)
        try:
            out.sum().backward()
        except RuntimeError as error:
            show("Performing two backward calls that overlap" in str(error))
    for said, debug in ((None, True), (True, False), (False, True)):
        runs = []

        def changing(a: Any, runs: Any = runs) -> Any:
            runs.append(1)
            return (a.sin() * (a if len(runs) == 1 else torch.ones(1))).sum()

        with checkpoints.set_checkpoint_debug_enabled(said):
            try:
                checkpoints.checkpoint(changing, x, use_reentrant=False, debug=debug).backward()
            except RuntimeError as error:
                show(type(error).__name__, "because you passed `debug=True`" in str(error))


@program
def a_hook_that_unpacks_leaves_no_hooks(torch: Any, show: Any) -> None:
    hooks = torch.autograd.graph.saved_tensors_hooks
    seen: list[str] = []
    more = hooks(lambda t: seen.append("more") or t, lambda t: t)

    def unpack(t: Any) -> Any:
        more.__enter__()
        return t

    with hooks(lambda t: t, unpack):
        y = torch.ones(2, requires_grad=True).exp()
    y.sum().backward()
    torch.ones(2, requires_grad=True).exp()
    show(seen)


@program
def gradients_of_extremes_and_middles_that_are_nan(torch: Any, show: Any) -> None:
    nan = float("nan")
    for f in (torch.max, torch.min, torch.median, torch.nanmedian):
        for values in ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [nan, nan, nan], [nan, 1.0, nan], [nan, 1.0, 1.0, 2.0]):
            x = torch.tensor(values, requires_grad=True)
            y = f(x)
            y.backward()
            show(f.__name__, y, [round(v, 3) for v in x.grad.tolist()])


@program
def functions_that_write_to_duals(torch: Any, show: Any) -> None:
    duals = torch.autograd.forward_ad

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, right: bool) -> Any:
            ctx.mark_dirty(a)
            ctx.right = right
            return a.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None

        @staticmethod
        def jvp(ctx: Any, t: Any, right: Any) -> Any:
            return t.mul_(2) if ctx.right else t * 2

    class Part(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, how: str) -> Any:
            ctx.how = how
            return a.narrow(0, 0, 1)

        @staticmethod
        def jvp(ctx: Any, t: Any, how: Any) -> Any:
            part = t.narrow(0, 0, 1)
            return {"view": part, "copy": part.clone(), "other": part.clone().view(1)}[ctx.how]

    with duals.dual_level():
        x = duals.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
        out = Doubled.apply(x, True)
        show(out is x, shown(duals.unpack_dual(x)))
        refused(show, lambda: Doubled.apply(x.clone(), False), 34)
        show(shown(duals.unpack_dual(Part.apply(x, "view"))))
        refused(show, lambda: Part.apply(x, "copy"))
        refused(show, lambda: Part.apply(x, "other"), 100)
        show(x * 1, torch.ones(1))
        z = x.clone()
        z.detach_()
        show(shown(duals.unpack_dual(z * 2)))


@program
def hooks_of_several_gradients_that_a_pass_reaches(torch: Any, show: Any) -> None:
    x, y, z = [torch.ones(2, requires_grad=True) * 1 for _ in range(3)]
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook((x, y, z), lambda gs: seen.append([g is not None for g in gs]))
    out = (y * z).sum()
    for inputs in ((y, z), (x,), (x, z)):
        out.backward(inputs=inputs, retain_graph=True)
        show(seen)
