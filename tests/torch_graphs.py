"""Random programs of Functions, hooks, checkpoints, complex and dual numbers, for PyTorch and for the face."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def _functions(torch: Any) -> dict[str, Any]:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b.conj(), g * a.conj()

    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            out = a.tanh()
            ctx.save_for_backward(out)
            return out, a * 2, 7

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any, _: Any) -> Any:
            (out,) = ctx.saved_tensors
            return g * (1 - out * out).conj() + 2 * h

    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a)
            a.mul_(2)
            return a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return {"product": Product.apply, "parts": Parts.apply, "doubles": Doubles.apply}


# Each takes the library, its Functions, two tensors and a small number, and gives a tensor.
STEPS: dict[str, Any] = {
    "mul": lambda t, F, x, y, k: x * y,
    "add": lambda t, F, x, y, k: x + y * 0.5,
    "sin": lambda t, F, x, y, k: x.sin(),
    "tanh": lambda t, F, x, y, k: (x * 0.3).tanh(),
    "exp": lambda t, F, x, y, k: (x * 0.1).exp(),
    "conj": lambda t, F, x, y, k: x.conj() * y,
    "parts": lambda t, F, x, y, k: x.real * 1.5 + x.imag if x.is_complex() else x * (1 + 0.5j),
    "abs": lambda t, F, x, y, k: (x * x.conj()).real + 0.1 if x.is_complex() else x.abs(),
    "product": lambda t, F, x, y, k: F["product"](x, y) if x.dtype == y.dtype else x + y,
    "two results": lambda t, F, x, y, k: sum(F["parts"](x)[:2]),
    "doubles": lambda t, F, x, y, k: F["doubles"](x * 1),
    "view": lambda t, F, x, y, k: x.reshape(-1)[: x.numel()].reshape(x.shape),
    "write": lambda t, F, x, y, k: (x * 1).mul_(1.5),
    "checkpoint": lambda t, F, x, y, k: _checkpoint(t)(lambda a, b: (a * b).sin(), x, y, use_reentrant=False),
    "row": lambda t, F, x, y, k: x[k % x.shape[0]].expand(x.shape),
    "softened": lambda t, F, x, y, k: t.where(x.real > 0, x, x * 0.2),
    "sum": lambda t, F, x, y, k: x.sum(0, keepdim=True) * y,
    "stack": lambda t, F, x, y, k: t.stack([x, x * 2]).mean(0),
}


def _checkpoint(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint


def _shown(x: Any) -> Any:
    return None if x is None else np.array(x.detach().resolve_conj().tolist())


def program(torch: Any, seed: int) -> list[Any]:
    """What a random program gives: calls of hooks with what they saw, gradients of two orders, tangents."""
    r = np.random.default_rng(seed)
    start = [r.standard_normal((2, 3)) * 0.7 for _ in range(2)] + [r.standard_normal((2, 3)) * 0.5 * (1 + 0.3j)]
    leaves = [torch.tensor(v).requires_grad_() for v in start[: 2 + seed % 2]]
    F, log = _functions(torch), []
    names = list(STEPS)
    choices = [(names[int(r.integers(len(names)))], *(int(v) for v in r.integers(0, 99, 4))) for _ in range(7)]

    def noted(name: str, factor: float) -> Any:
        def hook(g: Any) -> Any:
            log.append((name, _shown(g)))
            return g * factor if factor != 1 else None

        return hook

    def run(given: Any, hooks: bool) -> Any:
        pool = list(given)
        for i, (name, a, b, k, hooked) in enumerate(choices):
            x, y = pool[a % len(pool)], pool[b % len(pool)]
            made = STEPS[name](torch, F, x, y, k)
            pool.append(made)
            if hooks and made.requires_grad:
                if hooked % 4 == 1:
                    made.register_hook(noted(f"tensor {i}", 1.25 if k % 2 else 1))
                if hooked % 4 == 2:
                    made.retain_grad()
                if hooked % 8 == 3:
                    made.grad_fn.register_prehook(lambda gs, i=i: log.append((f"pre {i}", _shown(gs[0]))))
        total = sum(((p * p.conj()).real if p.is_complex() else p * p).sum() * (i + 1) for i, p in enumerate(pool))
        return total, pool

    graph = importlib.import_module(f"{torch.__name__}.autograd.graph")
    if seed % 3 == 0:
        with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            total, pool = run(leaves, True)
    else:
        total, pool = run(leaves, True)
    for i, leaf in enumerate(leaves):
        leaf.register_post_accumulate_grad_hook(lambda t, i=i: log.append((f"accumulated {i}", _shown(t.grad))))
    handle = graph.register_multi_grad_hook(leaves, lambda gs: log.append(("all", None)))
    total.backward(retain_graph=True)
    out: list[Any] = [("total", _shown(total)), *[("grad", _shown(leaf.grad)) for leaf in leaves]]
    out += [("retained", _shown(p.grad)) for p in pool if not p.is_leaf and p.retains_grad]
    total.backward()
    out += [("twice", _shown(leaf.grad)) for leaf in leaves]
    handle.remove()
    total, _ = run(leaves, False)
    first = torch.autograd.grad(total, leaves, create_graph=True)
    size = sum((g * g.conj()).real.sum() for g in first)
    out += [("second", _shown(g)) for g in torch.autograd.grad(size, leaves, allow_unused=True)]
    if not any([name in ("product", "two results", "doubles", "checkpoint") for name, *_ in choices]):
        dual = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
        with dual.dual_level():
            duals = [dual.make_dual(x.detach(), x.detach() * 0.5 + 0.1) for x in leaves]
            out.append(("tangent", _shown(dual.unpack_dual(run(duals, False)[0]).tangent)))
        func = importlib.import_module(f"{torch.__name__}.func")
        stacks = [torch.stack([x.detach(), x.detach() * 0.9]) for x in leaves]
        out.append(("batch", _shown(func.vmap(lambda *xs: run(xs, False)[0])(*stacks))))
        if not any([x.is_complex() for x in leaves]):
            out.append(("batch of gradients", _shown(func.vmap(func.grad(lambda *xs: run(xs, False)[0]))(*stacks))))
    return [*out, *log]


ORDER = "leaves that one operation of two types leads to get their gradients in another order"


def difference(theirs: list[Any], ours: list[Any]) -> str | None:
    """What differs, or None."""
    names, its = [name for name, _ in theirs], [name for name, _ in ours]
    if names != its:
        leaves = [name for name in names if name.startswith("accumulated") or name == "all"]
        inner = [[n for n in order if n not in leaves] for order in (names, its)]
        return ORDER if inner[0] == inner[1] else f"order: PyTorch {names}, here {its}"
    for (name, a), (_, b) in zip(theirs, ours, strict=True):
        if (a is None) != (b is None):
            return f"{name}: PyTorch {a}, here {b}"
        if a is not None and not np.allclose(a, b, 1e-8, 1e-9 * max(1.0, float(np.abs(a).max(initial=0.0)))):
            return f"{name}: PyTorch {a}, here {b}"
    return None
