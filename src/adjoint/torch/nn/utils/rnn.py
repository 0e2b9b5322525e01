"""`torch.nn.utils.rnn`: sequences of several lengths, padded and packed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adjoint.torch.arguments import guarded
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import Tensor, beside, constant, looked


class PackedSequence(NamedTuple):
    """The steps of sequences one after the other, of each step those of the sequences that have it, longest first."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    def to(self, *args: Any, **options: Any) -> PackedSequence:
        return self._replace(data=self.data.to(*args, **options))

    def cpu(self) -> PackedSequence:
        return self

    def float(self) -> PackedSequence:
        return self._replace(data=self.data.float())

    def double(self) -> PackedSequence:
        return self._replace(data=self.data.double())

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda  # type: ignore[no-any-return]


def _numbers(x: Any) -> Any:
    return constant(np.asarray(x, np.int64))


def _beside(x: Any, numbers: Any) -> Any:
    return None if numbers is None else beside(x, np.asarray(numbers, np.int64))


def _taken(x: Any, index: Any, axis: int = 0) -> Any:
    return FUNCTIONS["index_select"](x, axis, _beside(x, index))


@guarded
def invert_permutation(permutation: Any) -> Any:
    """The order that undoes an order; None for None."""
    return None if permutation is None else permutation.argsort()


@guarded
def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Sequences in one tensor, (steps, batch, ...), as a packed one.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> packed = torch.nn.utils.rnn.pack_padded_sequence(x, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    counts = np.asarray(looked(lengths) if isinstance(lengths, Tensor) else lengths, np.int64)
    order = undo = None
    if enforce_sorted:
        if (np.diff(counts) > 0).any():
            raise RuntimeError(
                "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if "
                "you do not need ONNX exportability."
            )
    else:
        order = np.argsort(-counts, kind="stable")
        undo = np.argsort(order, kind="stable")
        counts = counts[order]
        input = _taken(input, order, 0 if batch_first else 1)
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    if counts.shape != (batch,):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {counts.size} (batch_size={batch})"
        )
    if (counts <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    longest = int(counts.max())
    if longest > steps:
        raise RuntimeError(f"Expected lengths of at most {steps} steps, but got {longest}")
    sizes = (np.arange(longest)[:, None] < counts).sum(1)
    rows = np.concatenate([t * batch + np.arange(n) for t, n in enumerate(sizes)])
    data = _taken(x.reshape(steps * batch, *x.shape[2:]), rows)
    return PackedSequence(data, _numbers(sizes), _beside(input, order), _beside(input, undo))


def _places(sizes: Any) -> Any:
    """For each step and sequence the number of its row, -1 where there is none."""
    places = np.full((len(sizes), int(sizes[0])), -1)
    start = 0
    for t, n in enumerate(sizes):
        places[t, :n] = start + np.arange(n)
        start += int(n)
    return places


def padded(packed: PackedSequence, padding_value: float = 0.0) -> tuple[Any, Any]:
    """The packed sequences as (steps, batch, ...), longest first, and their lengths."""
    places = _places(looked(packed.batch_sizes))
    data = packed.data
    pad = FUNCTIONS["full"]((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    rows = _taken(FUNCTIONS["cat"]([data, pad]), np.where(places < 0, data.shape[0], places).ravel())
    return rows.reshape(*places.shape, *data.shape[1:]), (places >= 0).sum(0)


def repacked(packed: PackedSequence, x: Any) -> PackedSequence:
    """(steps, batch, ...) as a packed sequence of the same lengths."""
    sizes = looked(packed.batch_sizes)
    rows = np.concatenate([t * int(sizes[0]) + np.arange(n) for t, n in enumerate(sizes)])
    return packed._replace(data=_taken(x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), rows))


@guarded
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> tuple[Any, Any]:
    """A packed sequence as one tensor, and the lengths."""
    x, lengths = padded(sequence, padding_value)
    if total_length is not None:
        if total_length < x.shape[0]:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {x.shape[0]}"
            )
        shape = (total_length - x.shape[0], *x.shape[1:])
        more = FUNCTIONS["full"](shape, padding_value, dtype=x.dtype, device=x.device)
        x = FUNCTIONS["cat"]([x, more])
    if sequence.unsorted_indices is not None:
        x = FUNCTIONS["index_select"](x, 1, sequence.unsorted_indices)
        lengths = lengths[looked(sequence.unsorted_indices)]
    return x.transpose(0, 1) if batch_first else x, _numbers(lengths)


@guarded
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Tensors (steps, ...) of several lengths as one, (steps, batch, ...)."""
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    found = list(sequences)
    longest = max([len(x) for x in found])
    out = []
    for x in found:
        pad = FUNCTIONS["full"]((longest - len(x), *x.shape[1:]), padding_value, dtype=x.dtype, device=x.device)
        out.append(FUNCTIONS["cat"]([x, pad] if padding_side == "right" else [pad, x]) if len(x) < longest else x)
    return FUNCTIONS["stack"](out, 0 if batch_first else 1)


@guarded
def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of several lengths in one tensor."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = looked(lengths) if isinstance(lengths, Tensor) else lengths
    return [row[: int(n)] for row, n in zip(rows, counts, strict=True)]


@guarded
def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Tensors (steps, ...) of several lengths as a packed sequence."""
    lengths = [len(x) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@guarded
def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences of a packed one."""
    x, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(x, lengths, batch_first=True)
