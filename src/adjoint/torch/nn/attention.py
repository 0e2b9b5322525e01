"""`torch.nn.attention`: the ways to compute attention, of which there is one here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from adjoint.torch.missing import missing as _missing

__path__: list[str] = []


class SDPBackend(enum.IntEnum):
    """PyTorch's ways to compute attention, of which the first is the one here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block that changes nothing: attention is computed in one way.

    >>> from adjoint.torch.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     pass
    """
    for given in [backends] if isinstance(backends, SDPBackend) else backends:
        if not isinstance(given, SDPBackend):
            raise AssertionError(f"sdpa_kernel: expected SDPBackend, received {given!r}")
    yield


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
