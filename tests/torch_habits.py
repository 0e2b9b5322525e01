"""What autograd's users rely on, in small programs for both libraries: sums, views, Functions, hooks, refusals."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from typing import Any

from torch_autograd import module, program, refused, shown


@program
def attribute_deletion(torch: Any, show: Any) -> None:
    x = torch.randn(5, 5, requires_grad=True)
    del x.grad
    show(x.grad is None)
    for n in ("data", "requires_grad"):
        refused(show, lambda n=n: delattr(x, n), 0)


@program
def grad_fn_attrs(torch: Any, show: Any) -> None:
    a = torch.randn(3, requires_grad=True)
    show(a.clamp(0.1, 2).grad_fn.name(), torch.clamp(a, torch.zeros(3)).grad_fn.name())


@program
def accumulate_grad(torch: Any, show: Any) -> None:
    go = torch.ones(5, 5)
    for cg in (True, False):
        x = torch.ones(5, 5, requires_grad=True)
        y = x * x
        y.backward(go, retain_graph=True)
        g = x.grad
        y.backward(go, create_graph=cg)
        show(g is x.grad, g.tolist() == x.grad.tolist(), x.grad.requires_grad)


@program
def hessian_vector(torch: Any, show: Any) -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = torch.full((2, 2), 2.0, requires_grad=True)
    z = x**2 + y * x + y**2
    z.backward(torch.ones(2, 2), create_graph=True)
    gs2 = 2 * x + y
    show(x.grad.tolist() == gs2.tolist())
    x.grad.sum().backward()
    show(x.grad.detach().tolist(), y.grad.detach().tolist())


@program
def gradients_lie_in_order(torch: Any, show: Any) -> None:
    rows = torch.arange(12.0).reshape(4, 3)
    for f in (
        lambda x: x.mean(0), lambda x: x.T * rows, lambda x: x.T @ torch.ones(3, 2), lambda x: x.permute(1, 0)[2:],
        lambda x: torch.nn.functional.linear(torch.ones(2, 4), x), lambda x: torch.einsum("ij,jk->ki", x, rows),
    ):  # fmt: skip
        for graph in (False, True):
            x = torch.ones(3, 4, requires_grad=True)
            f(x).sum().backward(create_graph=graph)
            show(x.grad.stride(), x.grad.view(-1).tolist())
    layer = torch.nn.Linear(300, 300, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(2, 300)).sum().backward()
    optimizer.step()
    show(layer.weight.stride(), layer.weight.grad.stride(), layer.weight.detach().view(-1).shape)


@program
def grad_nonleaf(torch: Any, show: Any) -> None:
    x = torch.full((2,), 0.5, requires_grad=True)
    y = x**2
    for _ in range(2):
        (g,) = torch.autograd.grad([y], x, grad_outputs=[torch.ones(2)], create_graph=True)
        y = y + g * 0.1
    show(shown(y), x.grad)


@program
def unused_inputs(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    z = (x * 2).sum()
    refused(show, lambda: torch.autograd.grad(z, [x, y]))
    x = torch.ones(2, requires_grad=True)
    out = x.new_zeros(2)
    refused(show, lambda: torch.autograd.grad(out.sum(), x))


@program
def multi_backward(torch: Any, show: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.ones(3, requires_grad=True)
    q = torch.ones(3, requires_grad=True)
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    q2 = q * 2
    z = x + y + q2
    c = a * b + q2
    torch.autograd.backward([z, c], [torch.ones(3), torch.full((3,), 2.0)])
    show(x.grad, y.grad, a.grad, b.grad, q.grad)


@program
def backward_no_grad_errors(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x + 2
    show(y.requires_grad)
    refused(show, lambda: torch.autograd.backward([y], [torch.ones(2)]))
    with torch.inference_mode():
        q = x * 2
    show(q.is_inference())


@program
def sparse_indexing(torch: Any, show: Any) -> None:
    x = torch.arange(1.0, 17).reshape(4, 4).requires_grad_()
    for idx in [
        (1, 2),
        (slice(None), 1),
        (torch.tensor([0, 2]),),
        ([0, 1], [2, 3]),
        (Ellipsis, 1),
        (None, 2),
        (torch.tensor([[0, 1], [1, 0]]), torch.tensor([1, 2])),
    ]:
        y = x[idx]
        x.grad = None
        y.backward(torch.ones_like(y))
        show(y.shape, x.grad.tolist())


@program
def in_place_detects(torch: Any, show: Any) -> None:
    a = torch.ones(2, requires_grad=True)
    b = a.exp()
    c = b * b
    b.add_(1)
    refused(show, lambda: c.sum().backward(), 90)
    x = torch.ones(2, 2, requires_grad=True) + 0
    y = x[0]
    y.mul_(2)
    x.sum().backward()
    show(x.grad_fn.name(), y.grad_fn.name(), y.grad_fn.next_functions[0][0].name())


@program
def leaf_assignment(torch: Any, show: Any) -> None:
    x = torch.ones(5)
    y = torch.ones(5, requires_grad=True)
    z = torch.ones(5, requires_grad=True)
    x[0] = y[0]
    x[1] = 2 * z[1]
    show(x.requires_grad, x.grad_fn is not None)
    x.sum().backward()
    show(y.grad, z.grad)


@program
def volatile_assign(torch: Any, show: Any) -> None:

    b = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        v = b.narrow(0, 0, 2)
    refused(show, lambda: v.mul_(2), 60)
    with torch.no_grad():
        v.mul_(3)
    show(b, b._version, v._version)


@program
def backward_copy(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    a = x + 2
    b = y + 2
    c = x + 2
    add1 = a + b
    add2 = add1 + c
    for _ in range(4):
        a = a * 2
        b = b * 2
        c = c * 2
    br = a + b + c
    out = add2 + br
    out.backward(torch.ones(2))
    show(x.grad, y.grad)


@program
def save_none(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(None, x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            n1, x, n2 = ctx.saved_tensors
            show(n1, n2)
            return 2 * x * g

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    show(x.grad)


@program
def too_many_grads(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g, None, None)

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    show(x.grad)


@program
def dont_materialize(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return (x * 2, y * 3, torch.ones(2))

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            show(a is None, b is None, c is None)
            return (a, b)

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    a, b, c = F.apply(x, y)
    show(c.requires_grad)
    a.sum().backward()
    show(x.grad, y.grad)


@program
def naughty(torch: Any, show: Any) -> None:

    class Id(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x, x)

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

    x = torch.ones(2, requires_grad=True)
    a, b = Id.apply(x)
    show(a.requires_grad, b.requires_grad, a is b)

    class Noncontig(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.t()

    y = torch.ones(2, 2, requires_grad=True)
    (Noncontig.apply(y) * torch.tensor([[1.0, 2], [3, 4]])).sum().backward()
    show(y.grad)


@program
def mark_non_diff_mixed(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, i: Any) -> Any:
            a = i + 1
            b = i + 2
            ctx.mark_non_differentiable(a)
            return (a, b)

        @staticmethod
        def backward(ctx: Any, ga: Any, gb: Any) -> Any:
            show(ga.tolist(), gb.tolist())
            return gb

    x = torch.ones(2, requires_grad=True)
    a, b = F.apply(x)
    show(a.requires_grad, b.requires_grad)
    b.sum().backward()
    show(x.grad)


@program
def return_leaf(torch: Any, show: Any) -> None:

    class Id(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return (a, a + b)

        @staticmethod
        def backward(ctx: Any, ga: Any, gb: Any) -> Any:
            return (ga + gb, gb)

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    q, p = Id.apply(x, y)
    show(q is not x, q.is_leaf, q.grad_fn is p.grad_fn)
    (q + p + x).sum().backward()
    show(x.grad, y.grad)


@program
def return_leaf_inplace(torch: Any, show: Any) -> None:

    class In(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.mark_dirty(a)
            return (a.add_(b), b + 2)

        @staticmethod
        def backward(ctx: Any, ga: Any, gb: Any) -> Any:
            return (ga, ga + gb)

    x = torch.ones(2)
    y = torch.ones(2, requires_grad=True)
    q, p = In.apply(x, y)
    show(q is x, q.grad_fn is p.grad_fn, x.requires_grad)
    q.sum().backward()
    show(y.grad)


@program
def named_args_vjp(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0].cos()

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    show(shown(x.grad))


@program
def free_deep_graph(torch: Any, show: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x.clone()
    for _ in range(30000):
        y = y + y * 1e-06
    del y
    show("ok")


@program
def function_deep(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20000):
        y = F.apply(y)
    del y
    show("ok")


@program
def pyfunc_ctx_attr(torch: Any, show: Any) -> None:

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shape: Any) -> Any:
            ctx.shape = x.shape
            ctx.name2 = "a"
            ctx.first = 1
            ctx.saved = 2
            ctx.number = 3
            ctx.key = 4
            return x.reshape(shape)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            show(ctx.shape, ctx.first, ctx.saved, ctx.number)
            return (g.reshape(ctx.shape), None)

    x = torch.ones(2, 3, requires_grad=True)
    (F.apply(x, (6,)) * 2).sum().backward()
    show(x.grad)


@program
def deepcopy_pickle(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = copy.deepcopy(x)
    show(y, y.requires_grad, y is x)
    z = pickle.loads(pickle.dumps(x))
    show(z)
    refused(show, lambda: copy.deepcopy(x * 2))


@program
def set_requires_only_cont(torch: Any, show: Any) -> None:
    for dt in (torch.int32, torch.bool):
        refused(show, lambda dt=dt: torch.ones(2).to(dt).requires_grad_())
    show(torch.ones(2, dtype=torch.complex64).requires_grad_().requires_grad)
    refused(show, lambda: torch.ones(2, dtype=torch.int64, requires_grad=True))


@program
def thread(torch: Any, show: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    outs = []

    def f() -> Any:
        y = (x * x).sum()
        y.backward()
        outs.append(1)

    ths = [threading.Thread(target=f) for _ in range(4)]
    [q.start() for q in ths]
    [q.join() for q in ths]
    show(len(outs), x.grad is not None)


@program
def is_leaf_and_views(torch: Any, show: Any) -> None:
    x = torch.zeros(3, requires_grad=True)
    v = x.view(3)
    show(v.is_leaf, v._base is x, v._is_view(), x.detach()._is_view(), x.detach().is_leaf)
    y = torch.zeros(3)
    w = y[1:]
    show(w.is_leaf, w.requires_grad)
    w.add_(x[1:] * 1)
    show(y.requires_grad, y.grad_fn.name(), w.grad_fn.name())


@program
def post_acc(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    seen = []
    h = x.register_post_accumulate_grad_hook(lambda p: (seen.append(p is x), setattr(p, "grad", None))[1])
    (x * 2).sum().backward()
    show(seen, x.grad)
    h.remove()
    (x * 2).sum().backward()
    show(x.grad)
    refused(show, lambda: torch.ones(2).register_post_accumulate_grad_hook(print))
    torch.autograd.grad((x * 2).sum(), x)
    show(seen)


@program
def hook_with_no_name_errors(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 3)
    refused(show, lambda: y.sum().backward())
    y = x * 2
    y.register_hook(lambda g: torch.ones(3))
    refused(show, lambda: y.sum().backward(), 40)
    y = x * 2
    y.register_hook(lambda g: g.double())
    refused(show, lambda: y.sum().backward(), 40)


@program
def retain_inplace(torch: Any, show: Any) -> None:
    a = torch.ones(2, requires_grad=True).clone()
    a.retain_grad()
    a.register_hook(lambda g: g * 2)
    a.mul_(3)
    a.register_hook(lambda g: g * 5)
    a.sum().backward()
    show(a.grad)


@program
def complex_grads(torch: Any, show: Any) -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z.abs() ** 2).sum().backward()
    show(z.grad)
    refused(show, lambda: z.sum().backward(), 70)
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * z.detach()).abs().sum().backward()
    show(shown(w.grad), w.grad.dtype)


@program
def autograd_grad_edge(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    e = module(torch, "autograd.graph").get_gradient_edge(x)
    y = (x * 3).sum()
    show(torch.autograd.grad(y, [e]))
    y = x * 3
    ey = module(torch, "autograd.graph").get_gradient_edge(y)
    show(torch.autograd.grad(ey, x, grad_outputs=torch.ones(2)))


@program
def checkpoint_detect(torch: Any, show: Any) -> None:
    ck = module(torch, "utils.checkpoint").checkpoint
    x = torch.ones(2, requires_grad=True)

    def f(a: Any, b: Any = None) -> Any:
        return (a.sin().exp(), 5, {"k": a * 2})

    o = ck(f, x, use_reentrant=False)
    show(o[1])
    (o[0].sum() + o[2]["k"].sum()).backward()
    show(shown(x.grad))
    refused(show, lambda: ck(f, x, use_reentrant=True, zz=3))
    m = ck(lambda a: a * 2, torch.ones(2), use_reentrant=True)
    show(m.requires_grad)


@program
def anomaly_parent(torch: Any, show: Any) -> None:
    with torch.autograd.detect_anomaly():
        x = torch.ones(2, requires_grad=True)
        y = x.log()
        z = (y * float("inf") * 0).sum()
        refused(show, lambda: z.backward(), 70)


@program
def inference(torch: Any, show: Any) -> None:
    with torch.inference_mode():
        a = torch.ones(2)
        show(a.is_inference(), a.requires_grad)
        b = torch.ones(2, requires_grad=True)
        show(b.requires_grad, b.is_leaf, (b * 2).requires_grad)
    refused(show, lambda: a.add_(1))
    show(torch.is_inference_mode_enabled())
    c = a.clone()
    show(c.is_inference())
    refused(show, lambda: a._version)


@program
def graph_methods(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    n = y.grad_fn
    h = n.register_prehook(lambda g: (g[0] * 2,))
    h2 = n.register_hook(lambda gi, go: (gi[0] * 3,))
    y.sum().backward()
    show(shown(x.grad))
    h.remove()
    h2.remove()
    n.metadata["k"] = 1
    show(n.metadata, n._sequence_nr() >= 0)
    acc = (x * 1).grad_fn.next_functions[0][0]
    seen = []
    acc.register_prehook(lambda g: seen.append("pre"))
    acc.register_hook(lambda a, b: seen.append("post"))
    (x * 2).sum().backward()
    show(seen)


@program
def grads_batched(torch: Any, show: Any) -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = (x.sin() @ x).sum(0)
    g = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)[0]
    show(shown(g))
    refused(show, lambda: torch.autograd.grad((x * x).sum(0), x, torch.ones(3, 4), is_grads_batched=True), 40)


@program
def set_data(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.zeros(2)
    show(x)
    x.data = torch.ones(3)
    show(x, x.shape)
    refused(show, lambda: setattr(x, "data", torch.ones(2).long()), 50)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)  # its views keep the memory that it had, and its history
    part = w[:2]
    last = part[1:]
    w.data = torch.tensor([5.0, 6.0, 7.0])
    show(w, part.tolist(), last.tolist(), w.is_leaf, part.requires_grad)
    (part.sum() * 2 + (w**2).sum() + last.sum()).backward()
    show(w.grad)
    x = torch.zeros(2, 3)
    column, row, apart = x.view(3, 2), x[0:1], x.detach()
    x.data = torch.ones(2, 3)
    column.add_(1)
    show(x, column, row, apart)
    row.mul_(3)
    x[1].zero_()
    show(x, column, row, apart)
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = a * 2
    c = b[0]
    b.data = torch.tensor([9.0, 9.0])
    (b * b).sum().backward(retain_graph=True)
    c.backward()
    show(a.grad, c.item())


@program
def assign_grad(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    refused(show, lambda: setattr(x, "grad", torch.ones(3)))
    refused(show, lambda: setattr(x, "grad", 0))
    refused(show, lambda: setattr(x, "grad", x))
    x.grad = None
    show(x.grad)


@program
def cat_with_empty_vectors(torch: Any, show: Any) -> None:
    for start, rest, dim in (
        ((0,), (1,), -1),
        ((0,), (2, 1), -1),
        ((0,), (0,), 0),
        ((0,), (1, 1, 0), 2),
        ((0,), (3,), 0),
    ):
        x, y = torch.empty(start, requires_grad=True), torch.ones(rest, requires_grad=True)
        z = torch.cat([x, y, x], dim)
        z.sum().backward()
        show(tuple(z.shape), tuple(x.grad.shape), y.grad.tolist())
    refused(show, lambda: torch.cat([torch.empty(0), torch.ones(2)], 1), 0)
    parts = torch.tensor([])
    for k in range(3):
        parts = torch.cat((parts, torch.full((1,), float(k))))
    show(parts.tolist())


@program
def numbers_before_tensors(torch: Any, show: Any) -> None:
    x, y, m, s = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]), torch.eye(3), torch.ones(2, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        show(
            x.add(0.5, y).tolist(), torch.add(x, 0.5, y).tolist(), x.sub(0.5, y).tolist(), x.clone().sub_(2, y).tolist()
        )
        show(x.clone().add_(0.5, y).tolist(), x.addcmul(0.5, y, y).tolist(), x.clone().addcdiv_(0.5, y, y).tolist())
        show(torch.addcmul(x, 0.5, y, y).tolist(), m.addmm(0.5, m, m).tolist(), torch.addmm(0.5, m, 2, m, m).tolist())
        show(x.addmv(0.5, m, y).tolist(), m.addr(0.5, x, y).tolist(), s.baddbmm(0.5, s, s).tolist())
        show(m.addbmm(0.5, s, s).tolist(), m.clone().addmm_(0.5, 2, m, m).tolist())
    show(x.split(split_size=2)[0].tolist(), torch.split(x, 2)[1].tolist(), x.split([1, 2])[1].tolist())
    show(torch.randint_like(x, low=1, high=2).tolist(), torch.randint_like(x, high=1).tolist())
    show(torch.randint_like(x, 1, 2).tolist(), torch.randint_like(x, 1).tolist())
