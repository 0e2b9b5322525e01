"""Small helpers that programs import."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adjoint.autograd.missing import missing
from adjoint.autograd.test_util import check_grads
from adjoint.autograd.wrap_util import subvals


def subval(x: Sequence[Any], i: int, value: Any) -> tuple[Any, ...]:
    """The entries of x as a tuple, with another at one place."""
    return subvals(x, [(i, value)])


def func(f: Any) -> Any:
    """f itself."""
    return f


def quick_grad_check(
    fun: Any, arg0: Any, extra_args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **settings: Any
) -> None:
    """`check_grads` of first derivatives in reverse, by one argument; deprecated there and here.

    Other settings are taken and not looked at. Raises CheckError where derivatives differ from differences.
    """
    warnings.warn("quick_grad_check is deprecated: see check_grads of adjoint.autograd.test_util", stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
