"""`torch.futures`, which is out of scope: programs ask whether something is a `Future`, and nothing is."""

from __future__ import annotations

from adjoint.torch.missing import stand_ins

__getattr__ = stand_ins(__name__, "Future collect_all wait_all")
