"""Nested lists of numbers as arrays, in the types that PyTorch gives them."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from adjoint.torch.calls import number, overflow
from adjoint.torch.dtypes import default_complex, default_float, of_numpy, promote
from adjoint.torch.tensor import Tensor, looked

_SEQUENCES = (list, tuple, range)


def array_of(data: Any, dtype: Any = None) -> Any:
    """Nested sequences of numbers, of tensors of one element, and of NumPy's, as an array of a type; without one in
    the type that all of them meet in.

    Raises ValueError, TypeError or RuntimeError as PyTorch does for anything else.
    """
    met: set[Any] = set()
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    try:
        plain = _plain(data, met, dtype)
    except RecursionError:
        raise ValueError(f"too many dimensions {type(data).__name__!r}, or a list that contains itself") from None
    except _TextError:
        if isinstance(_first(data), str):
            raise ValueError("too many dimensions 'str'") from None
        raise TypeError("new(): invalid data type 'str'") from None
    kind = dtype or functools.reduce(promote, [_kind_of(k) for k in met], np.dtype(bool) if met else default_float())
    try:
        made = np.array(plain)
    except ValueError as error:
        if _mixed(plain):
            raise TypeError(f"not a sequence: numbers and lists stand side by side in {type(data).__name__}") from None
        raise ValueError(f"expected sequence of one length everywhere: {error}") from None
    return cast(made, kind)


def _kind_of(kind: Any) -> Any:
    known = {bool: np.dtype(bool), int: np.dtype("int64")}
    if kind is float or kind is complex:
        return default_float() if kind is float else default_complex()
    return known.get(kind, kind)


class _TextError(Exception):
    """Text among numbers."""


def _first(data: Any) -> Any:
    """What stands first in nested sequences, from which PyTorch takes the number of axes."""
    while isinstance(data, _SEQUENCES) and len(data):
        data = data[0]
    return data


def _plain(data: Any, met: set[Any], dtype: Any) -> Any:
    """Nested lists with numbers of Python's and NumPy's alone; their types are added to a set."""
    kind = data.__class__
    if kind is float or kind is int or kind is bool or kind is complex:
        if kind is complex and dtype is not None and dtype.kind in "iuf":
            raise TypeError("must be real number, not complex")
        met.add(kind)
        return data
    if isinstance(data, _SEQUENCES):
        return [_plain(entry, met, dtype) for entry in data]
    if isinstance(data, Tensor):
        met.add(data._dtype)
        if data.numel() != 1:
            if dtype is not None and dtype.kind in "iu":
                raise TypeError("only integer tensors of a single element can be converted to an index")
            raise ValueError("only one element tensors can be converted to Python scalars")
        if data.requires_grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider "
                "using tensor.detach() first.",
                UserWarning,
                stacklevel=2,
            )
        return looked(data).item()
    if isinstance(data, (np.ndarray, np.generic)):
        of_numpy(data.dtype)
        met.add(data.dtype)
        return data
    number_kind: Any
    for number_kind in (bool, int, float, complex):
        if isinstance(data, number_kind):
            met.add(number_kind)
            return number_kind(data)
    if isinstance(data, str):
        raise _TextError
    if dtype is None:
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    raise TypeError(f"must be real number, not {type(data).__name__}")


def _mixed(plain: Any) -> bool:
    """Whether lists and numbers stand side by side somewhere."""
    if not isinstance(plain, list):
        return False
    return len({isinstance(entry, (list, np.ndarray)) for entry in plain}) > 1 or any([_mixed(e) for e in plain])


def cast(made: Any, dtype: Any) -> Any:
    """Numbers that a caller wrote in a type. Raises PyTorch's error for one that does not fit there."""
    if made.dtype.kind == "O" or (made.dtype.kind == "u" and made.dtype.itemsize == 8):  # more than 63 bits
        if dtype.kind in "iu":
            raise ValueError("Overflow when unpacking long long")
        made = made.astype(bool if dtype.kind == "b" else complex if dtype.kind == "c" else float)
    if made.dtype is dtype:
        return made
    if made.dtype.kind == "c" and dtype.kind not in "cb" and made.size:
        raise overflow(dtype)
    if dtype.kind in "iu" and made.size and made.dtype.kind in "iuf":
        for v in (made.min(), made.max()):
            number(v.item(), dtype)
        if dtype.kind == "u":
            made = made.astype(np.int64)  # -1 is 255
    return made.astype(dtype)
