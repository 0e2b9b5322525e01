"""`torch.version`: which PyTorch this is compared with, and what it was built with, which is nothing."""

from __future__ import annotations

from adjoint.torch.torch_version import TorchVersion as _TorchVersion

__version__: _TorchVersion = _TorchVersion("2.13.0+adjoint")
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
