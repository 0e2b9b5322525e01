"""`torch.autograd.grad_mode`: blocks that record, and blocks that do not."""

from __future__ import annotations

import contextlib

from adjoint.torch.state import enable_grad as enable_grad
from adjoint.torch.state import inference_mode as inference_mode
from adjoint.torch.state import no_grad as no_grad
from adjoint.torch.state import set_grad_enabled as set_grad_enabled


class set_multithreading_enabled(contextlib.nullcontext[None]):
    """A block that changes nothing: a backward pass runs in the thread that asked for it."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
