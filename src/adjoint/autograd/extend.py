"""What extends the face: functions with rules of one's own, and vector spaces."""

from typing import Any

from adjoint.autograd.boxes import Box
from adjoint.autograd.core import (
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from adjoint.autograd.missing import missing
from adjoint.autograd.primitives import notrace_primitive, register_notrace

__all__ = [
    "Box", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace", "vspace",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
