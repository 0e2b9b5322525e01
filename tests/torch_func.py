"""Programs of `torch.func` where modes, writes, random numbers and results meet transforms, for both libraries."""

from __future__ import annotations

from typing import Any

from torch_autograd import module, program, refused, shown


def rows(torch: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(0.2, 1.7, count, dtype=torch.float64).reshape(shape)


@program
def modes_inside_of_transforms(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    x, one = torch.tensor(0.4), torch.tensor(1.0)

    def held(v: Any) -> Any:
        with torch.no_grad():
            c = v.sin()
        return v * c

    def inner(v: Any) -> Any:
        with torch.no_grad():
            return F.grad(torch.sin)(v) * v

    def part(v: Any) -> Any:
        with torch.no_grad():
            first = (v * 2)[0]
        return (first * v).sum()

    for f in (held, inner, lambda v: F.vjp(torch.sin, v)[0] * held(v)):
        show(shown(F.grad(f)(x)), shown(F.grad(F.grad(f))(x)), shown(F.vjp(f, x)[1](one)))
        show(shown(F.jvp(f, (x,), (one,))), shown(F.jacrev(f)(x)), shown(F.vmap(F.grad(f))(rows(torch, 3))))
    show(shown(F.grad(part)(rows(torch, 3))), shown(F.vmap(F.grad(part))(rows(torch, 2, 3))))
    with torch.no_grad():
        show(shown(F.grad(held)(x)), torch.is_grad_enabled(), F.vjp(torch.sin, x)[0].requires_grad)
        w = one.clone().requires_grad_()
        show(F.grad(lambda v: v * w)(x).requires_grad, shown(F.grad(lambda v: v * w)(x)))


@program
def writes_inside_of_transforms(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    x = rows(torch, 3)
    outside = torch.zeros(3, dtype=torch.float64)
    copied = lambda v: (outside.copy_(v) * v).sum()
    for do in (lambda: F.grad(copied)(x), lambda: F.vjp(copied, x), lambda: F.jvp(copied, (x,), (x,))):
        refused(show, do, 20)
        show(shown(outside))
    refused(show, lambda: F.vmap(copied)(rows(torch, 2, 3)), 22)
    refused(show, lambda: F.vmap(lambda a, b: a.mul_(b), in_dims=(None, 0))(x.clone(), rows(torch, 2, 3)), 22)

    def made(v: Any) -> Any:
        c = torch.zeros(3, dtype=torch.float64)
        c[1:].copy_(v[1:] * 2)
        return c

    def like(v: Any, kind: str) -> Any:
        c = torch.zeros_like(v) if kind == "like" else v.new_zeros(3) if kind == "new" else torch.full_like(v, 2.0)
        c[0] = v[1]
        return c

    show(shown(F.grad(lambda v: (made(v) * v).sum())(x)), shown(F.jvp(made, (x,), (x,))), shown(F.jacrev(made)(x)))
    for kind in ("like", "new", "full"):
        show(shown(F.vmap(lambda v, kind=kind: like(v, kind))(rows(torch, 2, 3))))
    for in_dim, write in ((0, lambda v: v.mul_(2)), (1, lambda v: v[:1].zero_()), (-1, lambda v: v.add_(v.sum()))):
        y = rows(torch, 2, 3)
        F.vmap(write, in_dims=in_dim)(y)
        show(shown(y))
    y = rows(torch, 2, 3)
    F.vmap(F.vmap(lambda a: a.add_(1)))(y)
    F.vmap(lambda a: a.add_(1), chunk_size=1)(y)
    F.vmap(lambda a, b: a.copy_(b))(y[:1], y[1:] * 2)
    show(shown(y))
    leaf = rows(torch, 2, 3).requires_grad_()
    z = leaf * 1
    F.vmap(lambda a: a.mul_(3))(z)
    z.sum().backward()
    show(shown(leaf.grad))


@program
def tensors_kept_from_transforms(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    kept: list[Any] = []

    def keeping(v: Any) -> Any:
        kept.append(v.sin())
        return kept[-1].sum()

    x = rows(torch, 3)
    F.grad(keeping)(x)
    F.jvp(keeping, (x,), (x,))
    show([shown(k) for k in kept], shown(kept[0] * 2 + kept[1]), kept[0].shape, kept[0].sum().item())

    def outer(v: Any) -> Any:
        F.grad(keeping)(v)
        return (kept[-1] * v).sum()

    show(shown(F.grad(outer)(x)))
    F.vmap(keeping)(rows(torch, 2, 3))
    refused(show, lambda: kept[-1].sum(), 0)


@program
def numbers_drawn_inside_of_vmap(torch: Any, show: Any) -> None:
    F, vmap = torch.nn.functional, torch.vmap
    x, shared = rows(torch, 3, 40), torch.ones(40)
    for name, f in {
        "rand": lambda a: torch.rand(40), "normal": lambda a: torch.normal(0.0, 1.0, (40,)),
        "randint": lambda a: torch.randint(0, 99, (40,)), "randperm": lambda a: torch.randperm(40),
        "randint_like": lambda a: torch.randint_like(a, 0, 99), "normal_": lambda a: a.clone().normal_(),
        "uniform_": lambda a: a.clone().uniform_(), "exponential_": lambda a: a.clone().exponential_(),
        "dropout": lambda a: F.dropout(shared, 0.5) + 0 * a, "rand_like": lambda a: torch.rand_like(shared) + 0 * a,
    }.items():  # fmt: skip
        refused(show, lambda f=f: vmap(f)(x), 60)
        for randomness in ("same", "different"):
            out = vmap(f, randomness=randomness)(x)
            show(name, randomness, out.shape, out.dtype, bool((out[0] == out[1]).all()))
    for f in (
        torch.bernoulli,
        lambda a: F.dropout(a),
        lambda a: F.alpha_dropout(a),
        lambda a: F.gumbel_softmax(a, dim=0),
    ):
        show(vmap(f, randomness="different")(x.clamp(0, 1)).shape)
    refused(show, lambda: vmap(lambda a: shared.clone().normal_() + a, randomness="different")(x), 6)
    refused(show, lambda: torch.func.jacfwd(lambda a: a * torch.rand(40))(x[0]), 60)
    show(torch.func.jacfwd(lambda a: a * torch.rand(40), randomness="same")(x[0]).shape)
    drawn = vmap(vmap(lambda a: torch.rand(2), randomness="different"), randomness="different")(x[:, :3])
    show(drawn.shape, len(set(drawn.reshape(-1).tolist())))


@program
def arguments_and_results_of_vmap(torch: Any, show: Any) -> None:
    x, vmap = rows(torch, 3, 2), torch.vmap
    show(shown(vmap(lambda a, b=1: a * b)(x, b=x)), shown(vmap(lambda a, *, k: a + k.sum())(x, k=x)))
    for out_dims in ("a", (0, 0), None, 0.5, {"a": 1}):
        refused(show, lambda out_dims=out_dims: vmap(lambda a: a * 2, out_dims=out_dims)(x), 30)
    show(shown(vmap(lambda a: a * 2, out_dims=(1,))(x)), shown(vmap(lambda a: x[0], out_dims=None)(x)))
    show(shown(vmap(lambda a: {"p": a, "q": a}, out_dims={"p": 1, "q": 0})(x)))
    show(shown(vmap(lambda a: (a, (a, a)), out_dims=(0, (1, 0)))(x)))
    refused(show, lambda: vmap(lambda a: (a, 3))(x), 60)
    refused(show, lambda: torch.func.jacrev(lambda a: a * (1 + 1j))(x), 60)
    decided = lambda a: (a * a.max().item()).sum() if a.sum() > 0 else a.sum()
    show(shown(torch.func.jacrev(decided)(x)), shown(torch.func.grad(decided)(x)))


@program
def results_that_are_no_tensors(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    x = rows(torch, 3)
    for f in (lambda v: 3, lambda v: None, lambda v: (v, 3), lambda v: [], lambda v: {"a": 1}, lambda v: "abc"):
        for do in (
            lambda f=f: F.vjp(f, x), lambda f=f: F.jvp(f, (x,), (x,)), lambda f=f: F.jacrev(f)(x),
            lambda f=f: F.jacfwd(f)(x), lambda f=f: F.grad(f)(x),
        ):  # fmt: skip
            refused(show, do, 50)
    for do in (
        lambda: F.jacrev(lambda v: v.argmax())(x), lambda: F.vjp(lambda v: (v * 9).long(), x),
        lambda: F.grad(lambda v: v.sum())(x.long()), lambda: F.vjp(torch.sin, x)[1](3.0),
        lambda: F.jvp(torch.sin, (x,), (x[:2],)), lambda: F.jvp(torch.sin, (x,), (3.0,)),
        lambda: F.jvp(torch.sin, (3.0,), (x,)), lambda: F.jvp(lambda: x, (), ()),
        lambda: F.grad(lambda v: v.sum(), has_aux=True)(x), lambda: F.grad(lambda v: v)(x),
        lambda: F.grad(lambda v, w: v.sum(), argnums=(0, -2))(x, x), lambda: F.jacfwd(torch.sin)(x * 1j),
        lambda: F.functionalize(torch.sin, remove="all")(x),
    ):  # fmt: skip
        refused(show, do, 60)


@program
def modules_and_values_inside_of_transforms(torch: Any, show: Any) -> None:
    F = module(torch, "func")
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    show(F.replace_all_batch_norm_modules_(layers)[1].running_mean, layers[1].track_running_stats)

    def written(v: Any) -> Any:
        y = v.clone()
        y[0].mul_(3)
        return y

    x = rows(torch, 2, 3)
    show(shown(F.functionalize(written)(x)), shown(F.vmap(F.functionalize(written))(x)))
    seen: list[Any] = []
    F.vmap(lambda v: [seen.append(F.debug_unwrap(v)), v][1])(x)
    F.grad(lambda v: [seen.append(F.debug_unwrap(v)), v.sum()][1])(x)
    show(shown(seen), shown(F.debug_unwrap(x)))


@program
def tangents_that_end(torch: Any, show: Any) -> None:
    A = module(torch, "autograd.forward_ad")

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            return x * 2, k.clone()

        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            return 2 * t, None

    class Wrong(Both):
        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            return 2 * t, t.clone()

    with A.dual_level():
        dual = A.make_dual(torch.ones(2), torch.ones(2))
        with torch.inference_mode():
            show(A.unpack_dual(dual * 2).tangent)
        show(shown(A.unpack_dual(dual * 2).tangent))
        first, second = Both.apply(dual, torch.tensor(3))
        show(shown(A.unpack_dual(first).tangent), A.unpack_dual(second).tangent)
        refused(show, lambda: Wrong.apply(dual, torch.tensor(3)), 100)
    with torch.autograd.set_multithreading_enabled(False), torch.autograd.grad_mode.set_multithreading_enabled(True):
        show(torch.is_grad_enabled())
