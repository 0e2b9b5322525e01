"""Transposes of the primitives that only move values: all are linear."""

from __future__ import annotations

from typing import Any

from adjoint.primitives import ARRAY, INDEX, Primitive
from adjoint.rules.batching import aligned
from adjoint.rules.records import Composed, Linear, Record


def unbroadcast(B: Any, g: Any, x_shape: Any) -> Any:
    """Sum over the axes that broadcasting made or stretched."""
    extra = len(g.shape) - len(x_shape)
    axes = (*range(extra), *[i + extra for i, n in enumerate(x_shape) if n == 1 and g.shape[i + extra] != 1])
    total = B.sum(g, axis=axes, keepdims=False)
    return total if tuple(total.shape) == x_shape else B.reshape(total, shape=x_shape)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _split(B: Any, g: Any, wanted: tuple[int, ...], xs_shape: Any, axis: int) -> tuple[Any, ...]:
    """Each operand of a concat gets its slice back."""
    slices, before, end = [], (slice(None),) * axis, 0
    for shape in xs_shape:
        slices.append(slice(end, end + shape[axis], 1))
        end += shape[axis]
    return tuple([B.index(g, key=(*before, slices[i])) for i in wanted])


def crop(B: Any, g: Any, x_shape: Any, widths: Any) -> Any:
    return B.index(g, key=tuple(slice(before, before + n, 1) for (before, _), n in zip(widths, x_shape, strict=True)))


# --- batches ---


def _broadcast_to_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    (x,), shape = values, parameters["shape"]
    return B.broadcast_to(aligned(B, x, True, len(shape)), shape=(x.shape[0], *shape))


def _reshape_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    (x,) = values
    return B.reshape(x, shape=(x.shape[0], *parameters["shape"]))


def _permute_dims_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    return B.permute_dims(values[0], axes=(0, *[i + 1 for i in parameters["axes"]]))


def _pad_batched(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    return B.pad(values[0], widths=((0, 0), *parameters["widths"]), value=parameters["value"])


def _roll_definition(B: Any, x: Any, *, shift: int, axis: int) -> Any:
    before, cut = (slice(None),) * axis, x.shape[axis] - shift
    parts = [B.index(x, key=(*before, part)) for part in (slice(cut, None), slice(None, cut))]
    return B.concat(*parts, axis=axis)


def _windows_definition(B: Any, x: Any, *, axis: int, size: int) -> Any:
    count = x.shape[axis] - size + 1
    first = B.reshape(B.arange(start=0, stop=count, step=1, dtype=INDEX), shape=(count, 1))
    places = B.add(first, B.arange(start=0, stop=size, step=1, dtype=INDEX))
    out = B.index(x, places, key=(*[slice(None)] * axis, ARRAY))
    last = len(out.shape) - 1
    return B.permute_dims(out, axes=(*[i for i in range(last + 1) if i != axis + 1], axis + 1))


def _windows(B: Any, g: Any, x_shape: Any, axis: int, size: int) -> Any:
    return _add_windows(B, B.full(shape=x_shape, value=0, dtype=B.dtype_of(g)), g, axis, size)


def _add_windows(B: Any, sink: Any, g: Any, axis: int, size: int) -> Any:
    """Places of windows one after the other, or windows, of which there may be fewer."""
    count, before = g.shape[axis], (slice(None),) * axis
    if size <= count:
        for j in range(size):
            part = B.index(g, key=(*[slice(None)] * (len(g.shape) - 1), j))
            sink = B.index_add_into(sink, part, key=(*before, slice(j, j + count, 1)))
        return sink
    for i in range(count):
        part = B.index(g, key=(*before, i))
        order = (*range(axis), len(part.shape) - 1, *range(axis, len(part.shape) - 1))
        sink = B.index_add_into(sink, B.permute_dims(part, axes=order), key=(*before, slice(i, i + size, 1)))
    return sink


RECORDS: dict[str, Record] = {
    "reshape": Linear(x=lambda B, g, x_shape: B.reshape(g, shape=x_shape), batching=_reshape_batched),
    "broadcast_to": Linear(x=unbroadcast, batching=_broadcast_to_batched),
    "permute_dims": Linear(x=lambda B, g, axes: B.permute_dims(g, axes=_inverse(axes)), batching=_permute_dims_batched),
    "expand_dims": Linear(x=lambda B, g, axis: B.squeeze(g, axis=axis)),
    "squeeze": Linear(x=lambda B, g, axis: B.expand_dims(g, axis=axis)),
    "concat": Linear(pullback=_split),
    "flip": Linear(x=lambda B, g, axis: B.flip(g, axis=axis)),
    "roll": Composed(
        _roll_definition,
        x=lambda B, g, shift, axis: B.roll(g, shift=g.shape[axis] - shift, axis=axis),
        pushforward=lambda B, tangents, shift, axis: B.roll(tangents[0], shift=shift, axis=axis),
    ),
    "pad": Linear(
        x=crop,
        pushforward=lambda B, tangents, widths: B.pad(tangents[0], widths=widths, value=0),
        batching=_pad_batched,
    ),
    "tril": Linear(x=lambda B, g, k: B.tril(g, k=k)),
    "triu": Linear(x=lambda B, g, k: B.triu(g, k=k)),
    "windows": Composed(
        _windows_definition,
        x=_windows,
        accumulate=lambda B, sink, g, x_shape, axis, size: _add_windows(B, sink, g, axis, size),
        pushforward=lambda B, tangents, axis, size: B.windows(tangents[0], axis=axis, size=size),
    ),
}
