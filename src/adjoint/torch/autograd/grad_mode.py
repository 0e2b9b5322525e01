"""`torch.autograd.grad_mode`: blocks that record, and blocks that do not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from adjoint.torch.state import enable_grad as enable_grad
from adjoint.torch.state import inference_mode as inference_mode
from adjoint.torch.state import no_grad as no_grad
from adjoint.torch.state import set_grad_enabled as set_grad_enabled

F = TypeVar("F", bound=Callable[..., Any])
_multithreading = [True]


class set_multithreading_enabled:
    """Remember whether backward passes may use threads, as a block or from now on; they use the one that asked."""

    def __init__(self, mode: bool) -> None:
        self._before: bool = _multithreading[0]
        _multithreading[0] = mode

    def __call__(self, function: F) -> F:
        """The function with this mode, which holds from its calls alone."""
        mode, _multithreading[0] = _multithreading[0], self._before

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            with set_multithreading_enabled(mode):
                return function(*args, **options)

        return called  # type: ignore[return-value]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _multithreading[0] = self._before


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` set last."""
    return _multithreading[0]
