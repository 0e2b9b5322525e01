"""`const_graph`, which in HIPS autograd keeps the graph of a function that always does the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint.autograd.missing import missing
from adjoint.autograd.wrap_util import wraps


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function with these arguments in front. It runs each time: nothing is kept of earlier calls."""
    return wraps(fun)(functools.partial(fun, *args, **kwargs))


__all__ = ["const_graph"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
