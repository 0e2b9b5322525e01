"""`torch.random`: where random numbers go on from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from adjoint.torch.generators import default_generator as default_generator
from adjoint.torch.generators import initial_seed as initial_seed
from adjoint.torch.generators import manual_seed as manual_seed
from adjoint.torch.generators import seed as seed
from adjoint.torch.missing import missing as _missing
from adjoint.torch.settings import set_rng_state as set_rng_state


def get_rng_state() -> Any:
    """The state of random numbers, as a tensor of bytes."""
    return default_generator.get_state()


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:  # fmt: skip
    """A block after which random numbers go on as if it had drawn none; all devices have one source.

    >>> import adjoint.torch as torch
    >>> with torch.random.fork_rng():
    ...     drawn = torch.rand(2)
    >>> torch.equal(drawn, torch.rand(2))
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
