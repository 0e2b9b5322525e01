"""`torch.amp`: mixed precision, which there is none of: blocks and scalers that change nothing, as PyTorch's do where
there is no accelerator."""

from __future__ import annotations

import functools
from typing import Any


class autocast:
    """A block, or a decorator, in which numbers keep their types.

    >>> import adjoint.torch as torch
    >>> with torch.autocast("cpu", dtype=torch.float16):
    ...     (torch.ones(1, 2) @ torch.ones(2, 1)).dtype
    torch.float32
    """

    device_type: Any
    dtype: Any
    enabled: bool

    def __init__(
        self, device_type: Any = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        self.device_type, self.dtype, self.enabled = device_type, dtype, False

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def decorated(*args: Any, **options: Any) -> Any:
            return function(*args, **options)

        return decorated


class GradScaler:
    """A scaler of losses that leaves them as they are.

    >>> import adjoint.torch as torch
    >>> scaler = torch.amp.GradScaler()
    >>> scaler.scale(torch.tensor(3.0)), scaler.get_scale(), scaler.is_enabled()
    (tensor(3.), 1.0, False)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        pass

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        pass

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        pass

    def get_scale(self) -> float:
        return 1.0

    def is_enabled(self) -> bool:
        return False

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass
