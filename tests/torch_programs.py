"""Random programs of views and in-place writes, written for PyTorch's names: one function for both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

# Each step takes the library, two tensors and a small number, and gives a tensor for the pool, or None.
STEPS: dict[str, Any] = {
    "mul": lambda t, x, y, k: x * y,
    "add": lambda t, x, y, k: x + y,
    "sub": lambda t, x, y, k: x - y * 0.5,
    "sin": lambda t, x, y, k: x.sin(),
    "exp": lambda t, x, y, k: (x * 0.1).exp(),
    "tanh": lambda t, x, y, k: x.tanh(),
    "sigmoid": lambda t, x, y, k: x.sigmoid(),
    "relu": lambda t, x, y, k: x.relu(),
    "square": lambda t, x, y, k: x**2 * 0.1,
    "clone": lambda t, x, y, k: x.clone(),
    "sum": lambda t, x, y, k: x.sum(0, keepdim=True),
    # views
    "select": lambda t, x, y, k: x[k % x.shape[0]] if x.ndim > 1 else x[k % x.shape[0] :],
    "slice": lambda t, x, y, k: x[::2],
    "column": lambda t, x, y, k: x[..., : max(1, x.shape[-1] - 1)],
    "t": lambda t, x, y, k: x.t() if x.ndim <= 2 else x.transpose(0, 1),
    "T": lambda t, x, y, k: x.permute(*range(x.ndim)[::-1]),
    "reshape": lambda t, x, y, k: x.reshape(-1),
    "view": lambda t, x, y, k: x.view(-1, x.shape[-1]),
    "unsqueeze": lambda t, x, y, k: x.unsqueeze(0).squeeze(0),
    "narrow": lambda t, x, y, k: x.narrow(-1, 0, max(1, x.shape[-1] - 1)),
    "diagonal": lambda t, x, y, k: x.diagonal() if x.ndim == 2 else x.clone(),
    "expand": lambda t, x, y, k: x.expand(2, *x.shape)[1],
    "expanded": lambda t, x, y, k: x.expand(2, *x.shape),
    "as_strided": lambda t, x, y, k: x.as_strided((min(2, x.shape[-1]),), (x.stride(-1),), x.storage_offset()),
    "unbind": lambda t, x, y, k: x.unbind(0)[0] if x.ndim > 1 else x.view_as(x),
    "split": lambda t, x, y, k: x.split(1, -1)[0],
    "detach": lambda t, x, y, k: x.detach(),
    # writes
    "mul_": lambda t, x, y, k: _none(x.mul_(0.5 + k)),
    "add_": lambda t, x, y, k: _none(x.add_(_other(x, y))),
    "imul": lambda t, x, y, k: _none(x.mul_(_other(x, y))),
    "iadd": lambda t, x, y, k: _none(x.__iadd__(1.5)),
    "sin_": lambda t, x, y, k: _none(x.sin_()),
    "tanh_": lambda t, x, y, k: _none(x.tanh_()),
    "zero_": lambda t, x, y, k: _none(x.zero_()),
    "fill_": lambda t, x, y, k: _none(x.fill_(0.5)),
    "copy_": lambda t, x, y, k: _none(x.copy_(_other(x, y))),
    "row": lambda t, x, y, k: _none(x.__setitem__(0, y[0] if k % 2 else 2.0)),
    "part": lambda t, x, y, k: _none(x[:1].mul_(3.0)),
    "mask": lambda t, x, y, k: _none(x.__setitem__(x > 0.3, 0.25)),
    "places": lambda t, x, y, k: _none(x.__setitem__(t.tensor([0]), y[:1] if k % 2 else 1.5)),
    "no_grad": lambda t, x, y, k: _quiet(t, lambda: x.mul_(1.1)),
    "no_grad_view": lambda t, x, y, k: _quiet(t, lambda: x[:1], keep=True),
    "no_grad_part": lambda t, x, y, k: _quiet(t, lambda: x[:1].add_(0.1)),
    "detached_write": lambda t, x, y, k: _none(x.detach().mul_(1.2)),
}  # fmt: skip


def _dense(x: Any) -> bool:
    return sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) + 1 == x.numel()


def _other(x: Any, y: Any) -> Any:
    """What is written into x; a copy where PyTorch would not see that they overlap, and its values hang on chance."""
    return y if y is x or (_dense(x) and _dense(y)) else y.clone()


def _none(_: Any) -> None:
    return None


def _quiet(t: Any, do: Any, keep: bool = False) -> Any:
    with t.no_grad():
        found = do()
    return found if keep else None


def program(torch: Any, seed: int, device: str = "cpu") -> dict[str, Any]:
    """What a random program of so many steps gives: values, flags, versions, gradients, and where it raised."""
    r = np.random.default_rng(seed)
    names = list(STEPS)
    leaves = [torch.tensor(r.standard_normal(shape), device=device).requires_grad_() for shape in ((3, 4), (4,))]
    constant = torch.tensor(r.standard_normal((3, 4)), device=device)
    pool = [leaves[0] * 1.5, leaves[1] * 1.0, leaves[0].clone(), constant]
    if seed % 3 == 0:
        pool.append(leaves[0])
    log: list[tuple[str, str]] = []
    for _ in range(int(r.integers(5, 16))):
        x, y = (pool[int(r.integers(len(pool)))] for _ in range(2))
        name, k = names[int(r.integers(len(names)))], int(r.integers(8))
        try:
            made = STEPS[name](torch, x, y, k)
            log.append((name, ""))
        except (RuntimeError, IndexError) as error:
            made = None
            log.append((name, f"{type(error).__name__}: {error}"))
        if made is not None and made.ndim > 0 and made.numel() > 1:
            pool.append(made)
    out: dict[str, Any] = {"log": log}
    out["values"] = [np.array(x.detach().cpu().numpy()) for x in pool]
    out["versions"] = [x._version for x in pool]
    out["requires_grad"] = [x.requires_grad for x in pool]
    out["leaf"] = [_is_leaf(x) for x in pool]
    out["view"] = [x._is_view() for x in pool]
    try:
        total = sum((x * (i + 1)).sum() for i, x in enumerate(pool))
        if not total.requires_grad:
            return out
        first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        out["first"] = [None if g is None else np.array(g.detach().cpu().numpy()) for g in first]
        size = sum((g * g).sum() for g in first if g is not None)
        if not isinstance(size, int) and size.requires_grad:
            second = torch.autograd.grad(size, leaves, allow_unused=True)
            out["second"] = [None if g is None else np.array(g.detach().cpu().numpy()) for g in second]
    except RuntimeError as error:
        out["error"] = str(error)
    return out


def _is_leaf(x: Any) -> bool | None:
    try:
        return bool(x.is_leaf)
    except RuntimeError:  # a view that may not be used any more
        return None


def _kind(message: str) -> str:
    """What sort of refusal a message is."""
    for phrase in (
        "modified by an inplace operation", "a view of a leaf", "a leaf Variable", "no_grad mode", "returns multiple",
        "single memory location", "view size is not compatible", "must match the size", "broadcast shape", "index",
        "shape mismatch",
    ):  # fmt: skip
        if phrase in message:
            return phrase
    return message[:30]


STRIDES = "results of expanded operands have other strides"
REFUSED = "an expanded tensor was written to: one of the two refuses that"
TOLERATED = (STRIDES, REFUSED)


def difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """What differs, or None."""
    for (name, a), (_, b) in zip(theirs["log"], ours["log"], strict=True):
        if name == "view" and bool(a) != bool(b):
            return STRIDES
        if name in ("mask", "places", "copy_") and "single memory location" in b:
            return REFUSED
        if bool(a) != bool(b):
            return f"refusal at {name}: PyTorch {a!r}, here {b!r}"
    if "more than one element" in theirs.get("error", "") and "first" in ours:
        return REFUSED  # zero_() of an expanded tensor: PyTorch raises in backward
    for one, other in ((theirs, ours), (ours, theirs)):  # one records a gradient that is constant, the other does not
        if "first" in one and "first" in other and "second" not in one and "error" not in one and "second" in other:
            one["second"] = [None, None]
    for what in ("values", "first", "second"):
        if (what in theirs) != (what in ours):
            return f"{what}: PyTorch {theirs.get('error', what in theirs)!r}, here {ours.get('error', what in ours)!r}"
        for i, (a, b) in enumerate(zip(theirs.get(what, ()), ours.get(what, ()), strict=True)):
            zero = [g is None or not np.any(g) for g in (a, b)]
            if a is None or b is None:
                if zero != [True, True]:
                    return f"{what} {i}: {a} and {b}"
            elif not np.allclose(a, b, rtol=1e-8, atol=1e-10 * max(1.0, np.abs(a).max()), equal_nan=True):
                return f"{what} {i}: PyTorch {a}, here {b}"
    for what in ("versions", "requires_grad", "leaf", "view"):
        if theirs[what] != ours[what]:
            return f"{what}: PyTorch {theirs[what]}, here {ours[what]}"
    if ("error" in theirs) != ("error" in ours):
        return f"error: PyTorch {theirs.get('error')!r}, here {ours.get('error')!r}"
    for (name, a), (_, b) in zip(theirs["log"], ours["log"], strict=True):
        if _kind(a) != _kind(b) and _kind(b) != "single memory location":  # which is asked first here
            return f"message at {name}: PyTorch {a!r}, here {b!r}"
    return None
