"""Copies of what views show, under PyTorch's names: `torch.unsqueeze_copy(x, 0)` is `torch.unsqueeze(x, 0).clone()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.torch import placing
from adjoint.torch.arguments import public
from adjoint.torch.functions import clone
from adjoint.torch.operators import METHODS
from adjoint.torch.tensor import Tensor

VIEWS = ("as_strided diagonal expand permute select split squeeze t transpose unbind unfold unsqueeze view").split()


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)]  # type: ignore[index]


def _narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    if dim >= max(input.ndim, 1):
        raise RuntimeError(f"narrow_copy: Expected dim < {input.ndim}, received {dim}")
    if length < 0:
        raise RuntimeError(
            f"narrow_copy: start ({start}) + length ({length}) exceeds dimension size ({input.shape[dim]})."
        )
    return input.narrow(dim, start, length)


def _copied(name: str, view: Callable[..., Any]) -> None:
    def copy(input: Tensor, *args: Any, **options: Any) -> Any:
        seen = view(input, *args, **options)
        return tuple([clone(part) for part in seen]) if isinstance(seen, (tuple, list)) else clone(seen)

    copy.__wrapped__ = view  # type: ignore[attr-defined]
    copy.__doc__ = f"A copy of what `{name}` shows."
    public(f"{name}_copy", method=name == "narrow", out=True)(copy)


for _name in VIEWS:
    _copied(_name, METHODS[_name])
_copied("detach", lambda input: input.detach())
_copied("view_as_complex", placing.view_as_complex)
_copied("view_as_real", placing.view_as_real)
_copied("narrow", _narrow)
_copied("slice", _slice)
_copied("alias", lambda input: input)
_copied("split_with_sizes", lambda input, split_sizes, dim=0: input.split(list(split_sizes), dim))
