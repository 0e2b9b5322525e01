"""`torch.functional`: names of `torch`, where PyTorch has them."""

from __future__ import annotations

from typing import Any

import adjoint.torch as _torch
from adjoint.torch.missing import missing as _missing

_NAMES = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index
""".split()


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_torch, name)
    raise _missing(name, __name__)
