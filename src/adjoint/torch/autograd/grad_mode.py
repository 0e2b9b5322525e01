"""`torch.autograd.grad_mode`: blocks that record, and blocks that do not."""

from __future__ import annotations

from adjoint.torch.state import enable_grad as enable_grad
from adjoint.torch.state import inference_mode as inference_mode
from adjoint.torch.state import no_grad as no_grad
from adjoint.torch.state import set_grad_enabled as set_grad_enabled
