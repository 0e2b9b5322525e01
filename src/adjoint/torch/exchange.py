"""Memory that other libraries share: buffers, and arrays by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.torch.arguments import public
from adjoint.torch.creation import from_numpy
from adjoint.torch.devices import numpy_of
from adjoint.torch.dtypes import numpy_dtype
from adjoint.torch.operators import METHODS
from adjoint.torch.tensor import Tensor, values


@public("frombuffer", method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """A vector on the memory of a buffer, such as a bytearray: what is written to one is in the other."""
    size, item = memoryview(buffer).nbytes, numpy_dtype(dtype).itemsize
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    rest = size - offset
    if count < 0 and rest % item:
        raise ValueError(
            f"buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    made: Any = from_numpy(np.frombuffer(buffer, numpy_dtype(dtype), count, offset))
    return made.requires_grad_(requires_grad)


@public("from_dlpack", method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor on the memory of another library's array in main memory."""
    made: Any = from_numpy(np.from_dlpack(ext_tensor, copy=copy))
    return made if device is None else made.to(device)


def _shared(x: Tensor) -> Any:
    if x.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return numpy_of(values(x))


METHODS["__dlpack__"] = lambda self, **options: _shared(self).__dlpack__(**options)
METHODS["__dlpack_device__"] = lambda self: _shared(self).__dlpack_device__()
public("to_dlpack", method=False)(lambda tensor: tensor.__dlpack__())
