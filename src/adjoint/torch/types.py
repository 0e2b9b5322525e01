"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

from adjoint.torch.devices import device as _device_class
from adjoint.torch.dtypes import Size, dtype, layout
from adjoint.torch.missing import missing as _missing
from adjoint.torch.tensor import Tensor

Number = builtins.int | builtins.float | builtins.bool
Device = _device_class | str | builtins.int | None
FileLike = str | os.PathLike[str] | IO[bytes]
PySymType = Any
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge = Any
_int, _float, _bool, _complex, _symint = builtins.int, builtins.float, builtins.bool, builtins.complex, builtins.int
_dtype, _device, _layout, _qscheme = dtype, _device_class, layout, Any
_size = Size | list[builtins.int] | tuple[builtins.int, ...]
_dispatchkey = Any


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
