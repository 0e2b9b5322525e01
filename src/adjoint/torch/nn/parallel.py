"""`torch.nn.parallel`, which is out of scope: a program is one process. Libraries ask what a module is, and may."""

from __future__ import annotations

from adjoint.torch.missing import stand_ins

__getattr__ = stand_ins(
    __name__,
    "DataParallel DistributedDataParallel DistributedDataParallelCPU comm data_parallel distributed gather "
    "parallel_apply replicate scatter scatter_gather",
)
