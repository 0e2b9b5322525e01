"""Programs of graphs, checkpoints, loaders, files and transforms that few write, each for both libraries."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import threading
from typing import Any

from torch_areas import numbers, seen
from torch_autograd import module, program, refused


@program
def gradients_by_edges(torch: Any, show: Any) -> None:
    edge_of = torch.autograd.graph.get_gradient_edge
    x = numbers(torch, 3, grad=True)
    y = x * 2
    z = (y**2).sum()
    edge = edge_of(y)
    show(seen(torch.autograd.grad(z, edge, retain_graph=True)[0]))
    show(seen(list(torch.autograd.grad(z, (edge, edge_of(x), x), retain_graph=True))))
    show(seen(list(torch.autograd.grad(edge_of(z), x, retain_graph=True))))
    show(seen(list(torch.autograd.grad(edge, x, grad_outputs=torch.ones(3, dtype=torch.float64), retain_graph=True))))
    refused(show, lambda: torch.autograd.grad(edge, x, retain_graph=True))
    other = edge_of(numbers(torch, 2, grad=True) * 1)
    refused(show, lambda: torch.autograd.grad(z, other, retain_graph=True))
    show(torch.autograd.grad(z, (other, x), allow_unused=True, retain_graph=True)[0])
    b = x[1]
    part = edge_of(b)
    show(part.output_nr, part.node.name(), edge_of(z).node is z.grad_fn)
    show(seen(torch.autograd.grad((b * b * 2).sum(), part)[0]))
    z.backward(inputs=[edge_of(x)], retain_graph=True)
    show(seen(x.grad))
    g = torch.autograd.grad(z, edge, create_graph=True)[0]
    show(g.requires_grad, seen(torch.autograd.grad(g.sum(), x, retain_graph=True)[0]))
    torch.autograd.backward(edge_of(z))
    show(seen(x.grad))
    refused(show, lambda: edge_of(torch.ones(2)))


@program
def checkpoints_that_run_to_their_end(torch: Any, show: Any) -> None:
    tools = module(torch, "utils.checkpoint")
    for stop in (True, False):
        ran: list[str] = []

        def function(x: Any, ran: Any = ran) -> Any:
            y = x.sin().exp()
            ran.append("middle")
            z = y + 1
            ran.append("end")
            return z

        x = numbers(torch, 2, grad=True)
        with tools.set_checkpoint_early_stop(stop):
            out = tools.checkpoint(function, x, use_reentrant=False)
        out.sum().backward()
        show(stop, ran, seen(x.grad))
        ran.clear()
        with tools.set_checkpoint_early_stop(stop):
            out = tools.checkpoint(
                lambda x, f=function: tools.checkpoint(f, x, use_reentrant=False).cos(), x, use_reentrant=False
            )
        out.sum().backward()
        show(stop, ran, seen(x.grad))
    ran = []
    tools.checkpoint(lambda x: function(x, ran), x, use_reentrant=False, early_stop=False).sum().backward()
    show(ran)


@program
def checks_of_loaders(torch: Any, show: Any) -> None:
    data = module(torch, "utils.data")
    items = list(range(5))
    refused(show, lambda: data.DataLoader(items, timeout=-1))
    refused(show, lambda: data.DataLoader(items, num_workers=-1))
    refused(show, lambda: data.DataLoader(items, prefetch_factor=2))
    refused(show, lambda: data.DataLoader(items, num_workers=1, prefetch_factor=-2))
    refused(show, lambda: data.DataLoader(items, persistent_workers=True))
    refused(show, lambda: data.DataLoader(items, multiprocessing_context="spawn"))
    refused(show, lambda: data.DataLoader(items, num_workers=1, multiprocessing_context="nothing"))
    refused(show, lambda: data.DataLoader(items, num_workers=1, multiprocessing_context=3))
    refused(show, lambda: data.DataLoader(items, batch_size=0))
    refused(show, lambda: data.DataLoader(items, batch_size=None, drop_last=True))
    refused(show, lambda: data.DataLoader(items, shuffle=True, sampler=data.SequentialSampler(items)))
    refused(show, lambda: data.DataLoader(items, batch_size=2, batch_sampler=[[0]]))
    loader = data.DataLoader(items, batch_size=2)
    for name, value in (
        ("batch_size", 3),
        ("sampler", None),
        ("batch_sampler", None),
        ("drop_last", True),
        ("dataset", [1]),
        ("persistent_workers", True),
    ):
        refused(show, lambda name=name, value=value: setattr(loader, name, value), 80)
    loader.collate_fn = list
    show([*loader], loader.multiprocessing_context, len(loader), loader.timeout, loader.num_workers)


@program
def batches_of_records(torch: Any, show: Any) -> None:
    collate = module(torch, "utils.data").default_collate
    show(collate(["a", "b"]), collate([("a", 1), ("b", 2)]), collate([["a", "x"], ["b", "y"]]))
    show(collate([{"n": "a", "v": 1.5}, {"n": "b", "v": 2.5}]), collate([(("a", 1), 2), (("b", 3), 4)]))
    show(collate([b"a", b"b"]), type(collate([("a", "b"), ("c", "d")])).__name__, collate([1, 2]), collate([1.5, 2]))
    refused(show, lambda: collate([(1, 2), (3,)]))
    refused(show, lambda: collate([torch.ones(2), torch.ones(3)]))
    refused(show, lambda: collate([object(), object()]))
    refused(show, lambda: collate([None]))


@program
def errors_of_files(torch: Any, show: Any) -> None:
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "x.pt")

    def kind(do: Any, expected: Any) -> None:
        try:
            do()
        except expected as error:
            show(expected, isinstance(error, Exception))
        else:
            show("nothing was raised")

    kind(lambda: torch.load(path), OSError)
    kind(lambda: torch.save(torch.ones(2), os.path.join(folder, "none", "x.pt")), RuntimeError)
    kind(lambda: torch.load(io.BytesIO()), EOFError)
    kind(lambda: torch.load(io.BytesIO(b"nothing of this kind")), pickle.UnpicklingError)
    kind(lambda: torch.load(3), AttributeError)
    kind(lambda: torch.save(torch.ones(2), 3), AttributeError)
    kind(lambda: torch.save(torch.ones(2), None), AttributeError)
    kind(lambda: torch.save(threading.Lock(), path), TypeError)
    kind(lambda: torch.save(lambda: 1, path), (AttributeError, pickle.PicklingError))
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(20)}, buffer)
    whole = buffer.getvalue()
    kind(lambda: torch.load(io.BytesIO(whole[:-30])), RuntimeError)
    kind(lambda: torch.load(io.BytesIO(whole[:30])), RuntimeError)
    with open(path, "wb"):
        pass
    kind(lambda: torch.load(path), EOFError)


@program
def dual_numbers_that_are_overwritten(torch: Any, show: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        for write in (
            lambda x: x.fill_(2.0),
            lambda x: x.zero_(),
            lambda x: x.copy_(torch.ones(3)),
            lambda x: x.mul_(0),
            lambda x: x.__setitem__(0, 5.0),
            lambda x: x[1:].fill_(1.0),
            lambda x: x.clamp_(5.0),
            lambda x: x.normal_(),
            lambda x: x.masked_fill_(torch.tensor([True, True, True]), 1.0),
        ):
            x = fw.make_dual(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]))
            y = x * 1
            write(y)
            show(fw.unpack_dual(y).tangent, fw.unpack_dual(x).tangent)
        z = torch.zeros(3)
        z.copy_(x)
        show(fw.unpack_dual(z).tangent)
        z.fill_(1.0)
        show(fw.unpack_dual(z).tangent)


@program
def states_that_are_shared(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, grad=True)
    for kind, options in ((torch.optim.Adam, {}), (torch.optim.SGD, {"momentum": 0.9})):
        first, second = kind([x], lr=0.1, **options), kind([x], lr=0.1, **options)
        x.grad = torch.ones(2, dtype=torch.float64)
        first.step()
        state = first.state_dict()
        second.load_state_dict(state)
        for name, value in second.state[x].items():
            if isinstance(value, torch.Tensor):
                mine = first.state[x][name]
                show(kind.__name__, name, value is mine, value is state["state"][0][name])
                value.add_(1)
                show(seen(value), seen(mine))
        second.step()
        show(seen(dict(first.state[x].items())), seen(dict(second.state[x].items())))


@program
def saved_tensors_in_second_derivatives(torch: Any, show: Any) -> None:
    hooks = torch.autograd.graph.saved_tensors_hooks
    counts = [0, 0]

    def pack(x: Any) -> Any:
        counts[0] += 1
        return x.clone()

    def unpack(x: Any) -> Any:
        counts[1] += 1
        return x

    for function in (lambda x: x * x, lambda x: x.exp(), lambda x: x**3, lambda x: x.sin() * 2, lambda x: x.sum() * x):
        counts[:] = [0, 0]
        x = numbers(torch, 2, grad=True)
        with hooks(pack, unpack):
            y = function(x).sum()
            first = list(counts)
            (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        show(seen(g), seen(h), first)


@program
def tangents_of_arguments_that_are_returned(torch: Any, show: Any) -> None:
    fw = torch.autograd.forward_ad

    def made(how: Any, viewed: bool = False) -> Any:
        class Through(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.view_as(x) if viewed else x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

            @staticmethod
            def jvp(ctx: Any, t: Any) -> Any:
                return how(t)

        return Through

    for viewed in (False, True):
        for how in (lambda t: t, lambda t: t * 2, lambda t: t.view_as(t), lambda t: t.clone()):
            with fw.dual_level():
                x = fw.make_dual(torch.ones(2), torch.full((2,), 3.0))
                try:
                    show(fw.unpack_dual(made(how, viewed).apply(x)).tangent)
                except RuntimeError as error:
                    show(error)


@program
def data_counts_its_writes_apart(torch: Any, show: Any) -> None:
    def versions(*tensors: Any) -> list[int]:
        return [x._version for x in tensors]

    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    d, e = y.data, y.detach()
    first, held, part = d[0], d.detach(), y.data[:1]
    d.add_(1)
    show(versions(y, d, e, first, held, part), y.tolist(), e.tolist(), part.tolist())
    first.mul_(2)
    held[:1].zero_()
    e.mul_(3)
    part.sub_(1)
    show(versions(y, d, e, first, held, part), d.tolist(), part.tolist(), y.data._version)
    y.data = d.data
    d.data[0] = 5.0
    show(versions(y, d, e, first, held, part), y.tolist(), part.tolist())
    for write in (
        lambda v, d: v.add_(2), lambda v, d: d.add_(2), lambda v, d: v.data.add_(2), lambda v, d: d.detach().add_(2),
        lambda v, d: d[0].zero_(), lambda v, d: v[0].zero_(), lambda v, d: d.data.add_(2),
        lambda v, d: v.detach().add_(2),
    ):  # fmt: skip
        for saved in (lambda v, d: v * d, lambda v, d: v * d[:], lambda v, d: v * d.detach(), lambda v, d: v * v):
            v = x * 2
            d = v.data
            made = saved(v, d)
            write(v, d)
            refused(show, made.sum().backward)


@program
def hooks_of_views(torch: Any, show: Any) -> None:
    for shared in (False, True):  # with an array of NumPy's
        for write in (False, True):
            x = numbers(torch, 3, grad=True)
            y = x * 1
            v = y[:2]
            node = v.grad_fn
            v.register_hook(lambda g: g * 3)
            v.retain_grad()
            if shared:
                y.detach().numpy()
            if write:
                v.mul_(2)
                v.register_hook(lambda g: g * 5)
            else:
                show(v.grad_fn is node)
            w = v[0]
            w.register_hook(lambda g: g * 7)
            for out in (y, v, w):
                show(seen(torch.autograd.grad(out.sum(), x, retain_graph=True)[0]))
            (v * v).sum().backward(retain_graph=True)
            show(seen(v.grad), seen(x.grad))
            u = w.view(1)
            u.mul_(11)
            u.register_hook(lambda g: g * 13)
            for out in (y, v, w, u):
                show(seen(torch.autograd.grad(out.sum(), x, retain_graph=True)[0]))
            y.data.add_(1)
            show(seen(v), seen(torch.autograd.grad((u * u).sum(), x)[0]))
    x = numbers(torch, 3, grad=True)
    x.detach().numpy()
    v = x[1:]
    v.grad_fn.register_hook(lambda gi, go: (gi[0] * 2,))
    q = v * v
    q.sum().backward()
    show(seen(x.grad))
    y = x * 1
    y.detach().numpy()
    v = y[1:]
    q = v * v
    y.mul_(2)
    refused(show, lambda: q.sum().backward())


@program
def views_of_what_gets_another_shape(torch: Any, show: Any) -> None:
    bases = (
        lambda x: x, lambda x: x.detach(), lambda x: x.data, lambda x: x[:], lambda x: (x.numpy(), x)[1],
        lambda x: (x[0], x)[1],
    )  # fmt: skip
    for base in bases:
        for part in (lambda d: d[0], lambda d: d[:1], lambda d: d[-1][1:], lambda d: d.view(-1)):
            x = torch.arange(6.0).view(2, 3).clone()
            d = base(x)
            v = part(d)
            d.transpose_(0, 1)
            show(v.tolist(), d.tolist(), x.tolist(), x._version, d._version, v._version)
            v.add_(10)
            d[0] = 7
            show(v.tolist(), d.tolist(), x.tolist(), x._version, d._version, v._version)
            for write in (lambda d: d.transpose_(0, 1), lambda d: setattr(d, "data", torch.zeros(2, 3))):
                x = torch.arange(6.0).view(2, 3).clone()
                d = base(x)
                v, w = part(d), d[:, 1]
                d.add_(1)  # so that the views are to be read again
                write(d)
                v.mul_(2)
                show(v.tolist(), w.tolist(), d.tolist(), x.tolist())


@program
def shapes_that_do_not_fit(torch: Any, show: Any) -> None:
    F, linalg, ones = torch.nn.functional, torch.linalg, torch.ones
    s, v, w, m, b = ones(()), ones(3), ones(2), ones(2, 3), ones(2, 2, 3)
    calls = (
        lambda: torch.mm(v, m), lambda: torch.mm(m, v), lambda: torch.mm(m, m), lambda: torch.mv(m, w),
        lambda: torch.mv(v, v), lambda: torch.mv(m, m), lambda: torch.bmm(m, m), lambda: torch.bmm(b, m),
        lambda: torch.bmm(b, b), lambda: torch.dot(m, m), lambda: torch.dot(v, w), lambda: torch.dot(s, s),
        lambda: torch.vdot(m, m), lambda: torch.vdot(v, w), lambda: torch.addmm(m, m, m),
        lambda: torch.addmm(ones(2, 2), m, v), lambda: torch.addmm(ones(2, 2), v, m),
        lambda: torch.addmm(ones(5, 5), m, ones(3, 2)), lambda: torch.addmv(v, v, v), lambda: torch.baddbmm(b, m, m),
        lambda: torch.addr(m, m, v), lambda: v @ w, lambda: m @ w, lambda: b @ b, lambda: m @ m, lambda: v @ b,
        lambda: torch.dot(v, v.double()), lambda: ones(2, 2).expand(3, 3), lambda: ones(3, 2).expand(2, 2),
        lambda: s.split(1), lambda: s.chunk(2), lambda: v.split(0), lambda: torch.isclose(m, w),
        lambda: torch.allclose(m, w), lambda: m.masked_scatter(m > 0, w), lambda: m.masked_scatter(w > 0, w),
        lambda: torch.cdist(m, w), lambda: torch.cdist(m, ones(2, 2)), lambda: torch.where(m, m, m),
        lambda: torch.where(m > 0, m, w), lambda: torch.clamp(m, w, w), lambda: torch.lerp(m, w, 0.5),
        lambda: torch.addcmul(m, m, w), lambda: torch.addcdiv(w, m, m), lambda: torch.logaddexp(m, w),
        lambda: torch.xlogy(m, w), lambda: torch.dist(m, w), lambda: F.cosine_similarity(m, w, dim=0),
        lambda: F.pairwise_distance(m, w), lambda: torch.polar(m, w), lambda: torch.igamma(m, w),
        lambda: torch.ldexp(m, w), lambda: torch.heaviside(m, w), lambda: torch.tensordot(m, w, 1),
        lambda: torch.hstack([v, m]), lambda: torch.vstack([v, ones(4)]), lambda: torch.det(m),
        lambda: torch.inverse(m), lambda: torch.inverse(v), lambda: linalg.eigh(m), lambda: linalg.svd(v),
        lambda: linalg.norm(b, 2), lambda: linalg.norm(v, "x"), lambda: linalg.norm(v, "fro"),
        lambda: torch.bincount(torch.tensor([-1])), lambda: torch.bucketize(m, m),
        lambda: torch.complex(m, w), lambda: torch.dstack([m, v]), lambda: torch.column_stack([m, v]),
    )  # fmt: skip
    for call in calls:
        refused(show, call, 200)
    for call in (
        lambda: m.index_select(0, torch.tensor([7])), lambda: m.take(torch.tensor([9])), lambda: v.fill_("a"),
        lambda: v.fill_(None),
    ):  # fmt: skip
        refused(show, call, 5)
    for call, known in (
        (lambda: linalg.cholesky(-torch.eye(2)), "because the input is not positive-definite"),
        (lambda: linalg.inv(torch.zeros(2, 2)), "because the input matrix is singular"),
        (lambda: linalg.solve(torch.zeros(2, 2), w), "The solver failed because the input matrix is singular"),
    ):
        try:
            call()
        except linalg.LinAlgError as error:
            show(known in str(error))


@program
def gradients_of_results_that_were_not_used(torch: Any, show: Any) -> None:
    nn = module(torch, "nn")

    class Two(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any, z: Any = None) -> Any:
            return x * 2, y * 3

    for tracked in ((True, True), (True, False), (False, True)):
        for which in (0, 1):
            if tracked[which]:
                two = Two()
                two.register_full_backward_hook(lambda m, given, out: show(seen(list(given)), seen(list(out))))
                x, y = (torch.ones(2, requires_grad=flag) for flag in tracked)
                two(x, y, 3)[which].sum().backward()
                show(seen(x.grad), seen(y.grad))


@program
def nodes_of_products_and_sums_of_products(torch: Any, show: Any) -> None:
    def x(*shape: int) -> Any:
        return torch.ones(*shape, dtype=torch.float64, requires_grad=True)

    functional = module(torch, "nn.functional")
    shapes = [((4,), (3, 4, 2)), ((2, 4), (3, 4, 2)), ((4,), (4, 2)), ((3, 2, 4), (4,)), ((2, 3, 4), (2, 4, 3))]
    for one, other in shapes:
        show(type((x(*one) @ x(*other)).grad_fn).__name__)
    show(type((torch.ones(2, 4, dtype=torch.float64) @ x(3, 4, 2)).grad_fn).__name__)
    show(type(torch.bmm(x(2, 3, 4), x(2, 4, 3)).grad_fn).__name__)
    equations = {
        "bij->ji": [(2, 3, 4)], "ij->ji": [(3, 4)], "ii": [(3, 3)], "...ij->ji": [(2, 3, 4)], "ij,jk": [(2, 3), (3, 4)],
        "i,j->ij": [(2,), (3,)], "i,i->i": [(3,), (3,)], "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
        "i,j,k->ijk": [(2,), (3,), (2,)],
    }  # fmt: skip
    for equation, sizes in equations.items():
        show(equation, type(torch.einsum(equation, *[x(*size) for size in sizes]).grad_fn).__name__)
    for size in ((4,), (2, 4), (2, 3, 4)):
        for bias in (None, x(5)):
            show(type(functional.linear(x(*size), x(5, 4), bias).grad_fn).__name__)
    attention = functional.scaled_dot_product_attention
    for size in ((3, 4), (2, 3, 4), (1, 2, 3, 4)):
        show(type(attention(x(*size), x(*size), x(*size)).grad_fn).__name__)
    show(seen(torch.chain_matmul(x(2, 3))))


@program
def integers_in_functions_of_three(torch: Any, show: Any) -> None:
    n, b = torch.tensor([1, 2]), torch.tensor([True, False])
    show(seen([torch.addcmul(n, n, n), torch.addcmul(n, n, n, value=3), torch.addcmul(n, n, n, value=0.5)]))
    show(seen([torch.addcmul(n, n, b), torch.addcmul(n * 1.0, n, n, value=0.5), torch.addcdiv(n, n * 1.0, n)]))
    for call in (
        lambda: torch.addcdiv(n, n, n), lambda: torch.addcdiv(n * 1.0, b, n), lambda: torch.addcmul(b, b, b),
        lambda: n.clone().addcmul_(n * 1.0, n),
    ):  # fmt: skip
        refused(show, call, 30)


@program
def groups_of_one_element(torch: Any, show: Any) -> None:
    group_norm = module(torch, "nn.functional").group_norm
    for size, groups in (((0, 2), 1), ((3, 2), 2), ((2, 2, 1), 2), ((1, 2), 1)):
        show(seen(group_norm(torch.ones(*size), groups)))
    for size, groups in (((1, 2), 2), ((1, 2, 1), 2)):
        refused(show, lambda size=size, groups=groups: group_norm(torch.ones(*size), groups), 50)


@program
def functions_of_complex_numbers(torch: Any, show: Any) -> None:
    functional = module(torch, "nn.functional")
    one, other = [1 + 2j, -0.5 + 0.3j, -3 - 1j, 0.2 - 2j], [0.5 - 1j, 2 + 0.1j, -1 - 0.3j, 2j]

    def found(function: Any, *values: Any) -> None:
        xs = [torch.tensor(v, dtype=torch.complex128, requires_grad=True) for v in values]
        y = function(*xs)
        grads = torch.autograd.grad(y.abs().sum(), xs, create_graph=True)
        again = torch.autograd.grad(sum([g.abs().sum() for g in grads]), xs)
        show(
            [[complex(round(c.real, 7), round(c.imag, 7)) + 0 for c in v.ravel().tolist()] for v in (y, *grads, *again)]
        )

    found(torch.sigmoid, one)
    found(torch.sinc, one)
    found(torch.logaddexp, one, other)
    found(lambda x: torch.logcumsumexp(x, 0), one)
    found(lambda x: functional.rms_norm(x, (4,)), one)
    found(lambda x, y: functional.rms_norm(x, (4,), y, 0.1), one, other)
    found(lambda x, y: functional.triplet_margin_loss(x[None], y[None], x[None] * 2, 9.0, swap=True), one, other)
    show(seen(functional.silu(torch.tensor(one))), seen(torch.sinc(torch.tensor([0j, 1e-5 + 0j]))))
    x = numbers(torch, 3, grad=True)
    show(torch.autograd.grad(x.angle().sqrt().sum(), x)[0].tolist(), x.angle().grad_fn.name())
    infinite = torch.tensor([complex(-torch.inf, 0.0)])
    show(seen(torch.logaddexp(infinite, infinite)), seen(torch.sigmoid(torch.tensor([-40 + 0j, 800 + 1j]))))


@program
def adjoints_of_what_is_no_matrix(torch: Any, show: Any) -> None:
    for x in (torch.ones(3), torch.tensor(2.0 + 1.0j)):
        for call in (lambda x=x: show(x.mH.tolist()), lambda x=x: show(torch.adjoint(x).tolist())):
            refused(show, call, 40)


@program
def integers_to_powers(torch: Any, show: Any) -> None:
    n = torch.tensor([-3, -1, 0, 1, 2])
    small = torch.tensor([2, 3], dtype=torch.int8)
    show(seen([2**n, 1**n, (-1) ** n, torch.pow(n[n != 0], n[n != 0]), small**small, 2**small, small.pow_(n[:2])]))
    for call in (lambda: n**-1, lambda: (n > 0) ** (n > 0), lambda: torch.logaddexp(n, n)):
        refused(show, call, 30)
    empty = torch.ones(0, 1, 2, dtype=torch.int64)
    show(module(torch, "nn.functional").local_response_norm(empty, 1).dtype)
