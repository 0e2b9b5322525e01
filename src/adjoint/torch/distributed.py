"""`torch.distributed`, which is out of scope: programs ask whether they are one of several processes, and are not.

>>> import adjoint.torch as torch
>>> torch.distributed.is_available()
False
"""

from __future__ import annotations

from adjoint.torch.missing import stand_ins


def is_available() -> bool:
    """Whether there are several processes: never."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available

__getattr__ = stand_ins(__name__)
