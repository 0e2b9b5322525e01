"""The leaf backend over PyTorch's tensors, without its autograd."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation
from adjoint.backends import array_api
from adjoint.backends.array_api import ArrayAPI, labels_error, needed
from adjoint.primitives import ARRAY, Key, Primitive, Shape


class Torch(ArrayAPI):
    """PyTorch on one of its devices: `"cpu"`, `"cuda:0"`, `"mps"`.

    Tensors of PyTorch come in without a copy and detached: from then on gradients are ours. Needs
    `pip install 'adjoint[torch]'`. Raises DeviceError where PyTorch is not installed, or has no such device.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.Torch())  # doctest: +SKIP
    Tensor([1., 2.], dtype=float32, device=torch:cpu)
    """

    def __init__(self, device: str = "cpu") -> None:
        torch = needed("torch", "torch")
        try:
            place = torch.device(device)
            torch.empty(0, device=place)
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            raise errors.DeviceError(f"Torch: no device {device!r}: {str(error).splitlines()[0]}") from error
        super().__init__(torch, place)
        self.torch = torch
        self.name = f"torch:{place}"

    def configuration(self) -> tuple[Any, ...]:
        return (str(self.device),)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    def adopted(self, value: Any) -> Array | None:
        if not isinstance(value, self.torch.Tensor):
            return None
        if value.grad_fn is not None:
            raise errors.TrackedError(
                f"PyTorch tracks the tensor of shape {tuple(value.shape)} as a result of {value.grad_fn.name()}; "
                "take its detach() first: gradients do not flow from one library's graph into another's"
            )
        return value.detach().to(self.device).resolve_conj().resolve_neg()

    def copied(self, array: Array) -> Array:
        return array.clone()

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        self.dtype(values.dtype)
        if copy or not values.flags.writeable or any(n < 0 for n in values.strides):
            values = values.copy()
        return self.torch.from_numpy(values).to(self.device)

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return array.resolve_conj().resolve_neg().cpu().numpy()  # type: ignore[no-any-return]

    def implement(self, primitive: Primitive) -> Implementation:
        native = _NATIVE.get(primitive.name)
        if native is None:
            return super().implement(primitive)
        return native if callable(native) else operator.attrgetter(native)(self.torch)  # type: ignore[no-any-return]


# functions that are the primitive as they stand: objects, or names in torch
_NATIVE: dict[str, Implementation | str] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    **{
        name: name
        for name in "negative exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh sqrt square matmul".split()
    },
    "relu": "relu",
    "expit": "sigmoid",
    "erf": "erf",
}


def _sum(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return x.sum(axis, keepdims, dtype=x.dtype) if axis else x  # PyTorch takes no axes for all


def _largest(name: str) -> Callable[..., Array]:
    def run(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
        return getattr(B.torch, name)(x, axis, keepdims) if axis else x

    return run


def _relu_pullback(B: Torch, g: Array, out: Array) -> Array:
    return B.torch.ops.aten.threshold_backward(g, out, 0)


def _logsumexp(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return B.torch.logsumexp(x, axis, keepdims) if axis else x


def _softmax(B: Torch, x: Array, *, axis: int) -> Array:
    return B.torch.softmax(x, axis)


def _log_softmax(B: Torch, x: Array, *, axis: int) -> Array:
    return B.torch.log_softmax(x, axis)


def _cross_entropy(B: Torch, x: Array, labels: Array) -> Array:
    classes = x.shape[-1]
    if labels.numel() and not (labels.min().item() >= 0 and labels.max().item() < classes):
        raise labels_error(B.xp, labels, classes)
    flat = B.torch.nn.functional.cross_entropy(x.reshape(-1, classes), labels.reshape(-1).long(), reduction="none")
    return flat.reshape(labels.shape)


# --- indexing ------------------------------------------------------------------------------------


def _index(B: Torch, x: Array, *arrays: Array, key: Key) -> Array:
    if arrays:
        return x[_filled(key, arrays)] if _plain(key) else array_api.index(B.xp, x, *arrays, key=key)
    forward, turned = _forward(key, x.shape)
    out = x[forward]
    return B.torch.flip(out, turned) if turned else out


def _index_set(B: Torch, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if arrays:  # where a place is named twice the last value counts, which PyTorch does not promise
        return array_api.index_set(B.xp, x, value, *arrays, key=key)
    forward, turned = _forward(key, x.shape)
    out = x.clone()
    part = out[forward]
    part[...] = _turned(B, value, part.shape, turned)
    return out


def _index_add(B: Torch, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    out = x.clone()
    if arrays:
        if not _plain(key):
            return array_api.index_add(B.xp, x, value, *arrays, key=key)
        value = value if isinstance(value, B.torch.Tensor) else x.new_tensor(value)
        places = [None if isinstance(entry, slice) else entry for entry in _filled(key, arrays)]
        return B.torch.ops.aten.index_put_(out, places, value, True)
    forward, turned = _forward(key, x.shape)
    part = out[forward]
    part += _turned(B, value, part.shape, turned)
    return out


def _turned(B: Torch, value: Array, shape: Shape, turned: list[int]) -> Array:
    """A value for a key that went backwards, in the order of the key that goes forward."""
    return B.torch.flip(B.torch.broadcast_to(value, shape), turned) if turned and hasattr(value, "shape") else value


def _forward(key: Key, shape: Shape) -> tuple[tuple[Any, ...], list[int]]:
    """A key whose slices all go forward, as PyTorch wants them, and the axes of `x[key]` that are turned round then."""
    forward: list[Any] = []
    turned: list[int] = []
    axes, out = iter(shape), 0
    for entry in key:
        if isinstance(entry, slice):
            places = range(*entry.indices(next(axes)))
            if places.step < 0:
                entry = slice(places[-1], places[0] + 1, -places.step) if places else slice(0, 0)
                turned.append(out)
        elif entry is not None:
            next(axes)
        out += not isinstance(entry, int)
        forward.append(entry)
    return (*forward, ...), turned


def _plain(key: Key) -> bool:
    """Whether PyTorch reads a key with arrays as NumPy does: beside integers and new axes it need not."""
    return all(entry is ARRAY or (isinstance(entry, slice) and entry == slice(None)) for entry in key)


def _filled(key: Key, arrays: tuple[Array, ...]) -> tuple[Any, ...]:
    rest = iter(arrays)
    return tuple([next(rest).long() if entry is ARRAY else entry for entry in key])


# --- Fourier transforms --------------------------------------------------------------------------


def _fourier(name: str) -> Callable[..., Array]:
    """MKL transforms no empty stack: it takes the shape of the transform of one that is not."""
    transform = getattr(array_api, name)

    def run(B: Torch, x: Array, **how: Any) -> Array:
        if x.numel():
            return transform(B.xp, x, **how)
        some = transform(B.xp, x.new_zeros([max(1, n) for n in x.shape]), **how)
        return some[tuple([slice(None) if n else slice(0) for n in x.shape])]

    return run


Torch.deviations = {
    "sum": _sum,
    "max": _largest("amax"),
    "min": _largest("amin"),
    "relu_pullback": _relu_pullback,
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "softmax_cross_entropy": _cross_entropy,
    "index": _index,
    "index_set": _index_set,
    "index_add": _index_add,
    **{name: _fourier(name) for name in ("fft", "rfft", "hfft")},
}
