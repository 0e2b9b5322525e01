"""Programs of derivatives as functions, forward mode, transforms and other rooms of the face, for both libraries."""

from __future__ import annotations

from typing import Any

from torch_autograd import module, program, refused, shown


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
    forward = {"vectorize": True, "strategy": "forward-mode"}
    show(shown(F.jacobian(one, x, **forward)), shown(F.jacobian(two, (x, w), **forward)))
    forward = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    show(shown(F.hessian(number, (x, w), **forward)), shown(F.hessian(lambda a: (a**3).sum(), w, **forward)))
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
    rates = torch.tensor([[0.0, 1e6], [1e4, 0.0]])
    counts, chances = torch.tensor([1e6, 4e4]), torch.tensor([[0.0, 0.5], [1.0, 0.25]])
    for drawn, mean in (
        (F.vmap(torch.poisson, randomness="different")(rates), rates),
        (F.vmap(F.vmap(torch.poisson, randomness="different"), randomness="different")(rates), rates),
        (F.vmap(torch.poisson, in_dims=1, randomness="different")(rates), rates.T),
        (F.vmap(lambda c: torch.binomial(counts, c), randomness="different")(chances), counts * chances),
        (F.grad(lambda r: (torch.poisson(r) * r).sum())(rates), rates),
    ):
        show(drawn.shape, drawn.dtype, bool(((drawn - mean).abs() <= 6 * mean.sqrt()).all()))
    drawn = F.vmap(lambda a: torch.poisson(rates[0] + 1e6) + 0 * a.sum(), randomness="different")(w)
    show(bool((drawn[0] == drawn[1]).any()))
    drawn = F.vmap(lambda a: torch.poisson(rates[0]) + 0 * a.sum(), randomness="same")(w)
    show(bool((drawn[0] == drawn[1]).all()))
    refused(show, lambda: F.vmap(torch.poisson, randomness="same")(rates))
    refused(show, lambda: F.vmap(torch.poisson)(rates))
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


@program
def modules_as_functions(torch: Any, show: Any) -> None:
    F, nn = module(torch, "func"), module(torch, "nn")
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(torch.linspace(-0.5, 0.7 + k, p.numel()).reshape(p.shape))
    params = {name: p.detach() * 2 for name, p in model.named_parameters()}
    x, y = torch.linspace(-1, 1, 8).reshape(4, 2), torch.tensor([0, 1, 1, 0])
    show(shown(F.functional_call(model, params, (x,))), shown(model(x)))
    loss = lambda p, a, b: nn.functional.cross_entropy(F.functional_call(model, p, (a,)), b)
    show(shown(F.grad(loss)(params, x, y)))
    each = lambda p, a, b: loss(p, a.unsqueeze(0), b.unsqueeze(0))
    show(shown(F.vmap(F.grad(each), in_dims=(None, 0, 0))(params, x, y)))
    show(shown(F.jacrev(lambda a: F.functional_call(model, params, (a,)))(x[0])))
    models = [nn.Linear(2, 3) for _ in range(3)]
    stacked, buffers = F.stack_module_state(models)
    show({name: (p.shape, p.requires_grad, p.is_leaf) for name, p in stacked.items()}, buffers)
    run = lambda p, b, a: F.functional_call(models[0], (p, b), (a,))
    out = F.vmap(run, in_dims=(0, 0, None))(stacked, buffers, x)
    show([bool(torch.allclose(out[i], models[i](x), atol=1e-6)) for i in range(3)])
    refused(show, lambda: F.functional_call(model, {"no": x}, (x,), strict=True), 0)


@program
def writes_to_what_is_outside_of_a_transform(torch: Any, show: Any) -> None:
    func = module(torch, "func")
    x, outside = torch.arange(3.0) + 1, torch.ones(3)

    def in_place(write: Any) -> Any:
        def function(a: Any) -> Any:
            refused(show, lambda: write(a))
            return a.sum()

        return function

    for write in (
        lambda a: outside.add_(a), lambda a: outside.mul_(2), lambda a: outside.copy_(a),
        lambda a: outside.__setitem__(0, a[0]), lambda a: a.mul_(2),
    ):  # fmt: skip
        f = in_place(write)
        func.grad(f)(x)
        func.vjp(f, x)
        func.jacrev(f)(x)
        func.grad(lambda a, f=f: func.grad(f)(a).sum())(x)
    func.jvp(in_place(lambda a: outside.add_(a)), (x,), (x,))
    func.grad(lambda a: func.grad(in_place(lambda b: a.mul_(2)))(x).sum() * a.sum())(x)
    show(outside, x)
    made = lambda a: (a.new_zeros(3).add_(a) * torch.zeros(3).copy_(a) * a.clone().zero_().add_(a)).sum()
    show(shown(func.grad(made)(x)), shown(func.hessian(made)(x)))
    zeroed = lambda a: (a.new_zeros(3).add_(a) * a.clone().zero_().add_(a)).sum()
    show(shown(torch.vmap(func.grad(zeroed))(torch.stack([x, x + 1]))))
    running = torch.zeros(3), torch.ones(3)
    norm = lambda a: module(torch, "nn.functional").batch_norm(a, *running, training=True).pow(3).sum()
    show(shown(func.grad(norm)(torch.arange(6.0).reshape(2, 3))), shown(running))
    refused(show, lambda: torch.vmap(norm)(torch.ones(2, 2, 3)))


@program
def backward_passes_inside_of_transforms(torch: Any, show: Any) -> None:
    func = module(torch, "func")
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)

    def outside(a: Any) -> Any:
        (w * w).sum().backward()
        return a.sum()

    def inside(a: Any) -> Any:
        y = a.sin().sum()
        y.backward()
        return y

    for f in (outside, inside):
        refused(show, lambda f=f: func.grad(f)(x))
        refused(show, lambda f=f: func.vjp(f, x))
        refused(show, lambda f=f: func.jvp(f, (x,), (x,)))
        refused(show, lambda f=f: torch.vmap(f)(torch.ones(2, 3)))
    show(w.grad)
    by_grad = lambda a: torch.autograd.grad((a**3).sum(), a)[0].sum()
    refused(show, lambda: torch.vmap(by_grad)(torch.ones(2, 3)))
    refused(show, lambda: func.jvp(by_grad, (x,), (x,)))
