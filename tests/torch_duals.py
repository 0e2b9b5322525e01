"""Programs of gradients of dual numbers, gradient checks, and views whose memory changes, each for both libraries."""

from __future__ import annotations

from typing import Any

from torch_autograd import module, program, refused

_POINT, _ALONG = [0.3, 0.7], [0.5, -1.0]


def _shown(forward: Any, g: Any) -> Any:
    """A gradient and its tangent."""
    if g is None:
        return None
    parts = forward.unpack_dual(g)
    return [None if x is None else [round(v, 8) + 0.0 for v in x.detach().reshape(-1).tolist()] for x in parts]


@program
def gradients_of_dual_numbers_have_tangents(torch: Any, show: Any) -> None:
    forward = module(torch, "autograd.forward_ad")

    def numbers(values: Any) -> Any:
        return torch.tensor(values, dtype=torch.float64)

    functions: list[Any] = [
        torch.sin, lambda d: d**3 * d.exp(), lambda d: torch.softmax(d, 0), lambda d: (d[0] * d[1]).expand(2),
        lambda d: d.detach() * d, lambda d: torch.tanh(d) @ torch.stack([d, d * 2]), lambda d: d.cumprod(0),
        lambda d: torch.fft.fft(d).abs(), lambda d: torch.linalg.inv(torch.outer(d, d) + torch.eye(2).double())[0],
    ]  # fmt: skip
    for function in functions:
        for create in (True, False):
            for cotangent in (None, forward.make_dual):
                with forward.dual_level():
                    x = numbers(_POINT).requires_grad_()
                    d = forward.make_dual(x, numbers(_ALONG))
                    z = function(d)
                    c = None if cotangent is None else cotangent(numbers([1.0, 2.0]), numbers([3.0, -1.0]))
                    (g,) = torch.autograd.grad(z.sum() if c is None else z, d, c, create_graph=create)
                    show(_shown(forward, g), g.requires_grad)
    with forward.dual_level():
        x, y, w = (numbers(v).requires_grad_() for v in (_POINT, [1.0, 2.0], [1.0, 2.0]))
        d, e = forward.make_dual(x, numbers(_ALONG)), forward.make_dual(y, numbers([1.0, 1.0]))
        m = d * e
        for g in torch.autograd.grad((m.sin() * d).sum(), (m, d, e), create_graph=True):
            show(_shown(forward, g))
        (g,) = torch.autograd.grad((d * e).sum(), d, create_graph=True)
        show(_shown(forward, torch.autograd.grad((g**2).sum(), e)[0]))
        for g in torch.autograd.grad((d * w).prod(), (w, d, e), allow_unused=True):
            show(_shown(forward, g))
        show(_shown(forward, torch.autograd.grad((x * 3).sum(), x)[0]))
    b = numbers([[0.5, 0.2], [0.1, 0.9]]).requires_grad_()
    for f in (torch.sin, lambda x: x @ x, lambda x: (x * x.sum()).exp()):
        show(torch.autograd.gradgradcheck(f, (b,), check_fwd_over_rev=True))


@program
def gradients_are_checked(torch: Any, show: Any) -> None:
    check = torch.autograd.gradcheck

    def wrong(function: Any) -> Any:
        def hooked(x: Any) -> Any:
            y = function(x)
            y.register_hook(lambda g: g + 1e-2)
            return y

        return hooked

    for fast in (True, False):
        x = torch.ones(1, dtype=torch.float64, requires_grad=True)
        refused(show, lambda x=x, fast=fast: check(wrong(torch.clone), x, atol=0.1, fast_mode=fast), 0)
        refused(show, lambda x=x, fast=fast: check(wrong(torch.clone), x, fast_mode=fast), 40)
        show(check(wrong(torch.clone), x, raise_exception=False, fast_mode=fast))
        for other in (lambda y: torch.cat([y, y]), lambda y: y.float()):

            def changes(y: Any, other: Any = other) -> Any:
                return other(y) if torch.all(y >= 1) else y

            refused(show, lambda changes=changes, x=x, fast=fast: check(changes, x, fast_mode=fast), 80)
        show(check(torch.sin, x, check_forward_ad=True, check_batched_grad=True, fast_mode=fast))
    z = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    refused(show, lambda: check(wrong(torch.clone), z), 60)
    refused(show, lambda: check(wrong(torch.real), z), 54)
    for options in ({"check_batched_grad": True}, {"check_batched_forward_grad": True, "check_backward_ad": True}):
        options = {"check_backward_ad": False, "check_forward_ad": "check_backward_ad" not in options, **options}
        refused(show, lambda options=options: check(torch.sin, x, **options), 60)


@program
def views_keep_their_hooks_where_data_is_written(torch: Any, show: Any) -> None:
    makers: list[Any] = [lambda x: x.view(-1), lambda x: x[0:1], lambda x: x.t(), lambda x: x[0][1:]]
    for make in makers:
        for leaf in (True, False):
            x = torch.ones(2, 2, requires_grad=True)
            base = x if leaf else x * 1
            view = make(base)
            calls: list[int] = []
            view.register_hook(lambda g, calls=calls: (calls.append(1), g * 2)[1])
            view.retain_grad()
            node, version = view.grad_fn, view._version
            base.data.mul_(3)
            show(view.tolist(), view._version - version, view.grad_fn is node)
            (view * view).sum().backward()
            show(x.grad.tolist(), calls, view.grad.tolist())
            base.data[0, 1] = 5.0
            show(view.tolist())


@program
def hooks_of_dual_numbers(torch: Any, show: Any) -> None:
    forward = module(torch, "autograd.forward_ad")
    x = torch.ones(2, requires_grad=True)
    with forward.dual_level():
        d = forward.make_dual(x, torch.full((2,), 3.0))
        y = d * d
        calls: list[int] = []
        y.register_hook(lambda g: (calls.append(1), g * 2)[1])
        y.retain_grad()
        show(y.output_nr, type(y.grad_fn).__name__, y.retains_grad)
        y.sum().backward()
        show(x.grad.tolist(), y.grad.tolist(), calls)
        refused(show, lambda: forward.make_dual(d, torch.ones(2)), 60)


@program
def tangents_are_what_was_given(torch: Any, show: Any) -> None:
    forward = module(torch, "autograd.forward_ad")
    value, tangent = torch.tensor([1.0, 2.0]), torch.ones(2)
    with forward.dual_level():
        d = forward.make_dual(value, tangent)
        show(forward.unpack_dual(d).tangent is tangent, forward.unpack_dual(d).primal is value)
        d.mul_(3)
        show(forward.unpack_dual(d).tangent.tolist(), forward.unpack_dual(d[0]).tangent.tolist())
    show(forward.unpack_dual(d).tangent)

    def function(jvp: Any, forward_of: Any, **more: Any) -> Any:
        members = {"forward": forward_of, "jvp": jvp, "vjp": lambda ctx, *g: None, **more}
        return type("Mine", (torch.autograd.Function,), {name: staticmethod(f) for name, f in members.items()})

    def marks(ctx: Any, x: Any, y: Any) -> Any:
        out = y.clone()
        ctx.mark_non_differentiable(out)
        return x.clone(), out

    def writes(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    with forward.dual_level():
        d = forward.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        found = function(lambda ctx, a, b: (a, None), marks).apply(d, torch.tensor(3.0))
        tangents = [forward.unpack_dual(y).tangent for y in found]
        show([x if x is None else x.tolist() for x in tangents])
        show(found[1].tolist(), found[1].requires_grad)
        show(forward.unpack_dual(function(lambda ctx, g: g.mul_(2), writes).apply(d.clone())).tangent.tolist())
        for jvp in (lambda ctx, g: 2 * g, lambda ctx, g: g.mul_(2).clone()):
            refused(show, lambda jvp=jvp: function(jvp, writes).apply(d.clone()), 80)
