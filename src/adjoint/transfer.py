"""Arrays in and out of a backend: NumPy's, a library's own, those of another leaf, and what goes into a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.primitives import DType

Array = Any  # a backend's own value: it has `.shape`, and nothing else is assumed of it


class Transfer:
    """What a backend says of its library's arrays. The first three are a leaf's to write."""

    def dtype_of(self, array: Array) -> DType:
        """The data type of an array, as the NumPy object that all backends share."""
        raise NotImplementedError

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        """A NumPy array as an array of this backend; `copy=False` may share its memory."""
        raise NotImplementedError

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        """The values, which the caller must not write to."""
        raise NotImplementedError

    def from_native(self, value: Any) -> Array | None:
        """An array of the leaf's own library as one of this backend, without a copy; None for anything else."""
        return None

    def to_native(self, array: Array) -> Any:
        """The value as an array of the leaf's own library, which the caller must not write to."""
        return array

    def copied(self, array: Array) -> Array:
        """The same array, tracked as it is, in memory that no assignment to another one reaches."""
        return array

    def transfer(self, array: Array, source: Any) -> Array:
        """An array of `source`, the same chain over another leaf, as one of this backend."""
        return self.from_numpy(source.to_numpy(array), copy=False)

    def widest(self, dtype: DType) -> DType:
        """The dtype of Python's numbers and of other constants, or the next narrower one that the library has."""
        return dtype

    def as_scalar(self, value: complex, dtype: DType) -> Any:
        """A Python number, not zero, in the form in which it meets arrays of this dtype fastest."""
        return value

    def computes_in(self, dtype: DType) -> bool:
        """Whether the library has arrays of a dtype, and arithmetic for them."""
        return True

    def dump(self, array: Array) -> Any:
        """What of an array goes into a pickle."""
        return self.to_numpy(array)

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Array:
        """The array of a `dump`. Leaf tensors keep their keys, or for a copy get new ones, noted in `keys`."""
        state = state.view(
            np.dtype(state.dtype.type)
        )  # a dtype in a pickle is equal to NumPy's own, not the same object
        return self.from_numpy(state, copy=keys is not None)


class InnerTransfer(Transfer):
    """Through a decorator: what the inner backend says, with its arrays wrapped and unwrapped."""

    inner: Any

    def wrap(self, value: Array) -> Array:
        """An inner array as a constant of this level."""
        raise NotImplementedError

    def unwrap(self, array: Array) -> Array:
        """The inner array of an array of this level."""
        raise NotImplementedError

    def map_arrays(self, array: Array, f: Any) -> Array:
        """The array with `f` applied to the inner arrays that it is made of."""
        return self.wrap(f(self.unwrap(array)))

    def dtype_of(self, array: Array) -> DType:
        return self.inner.dtype_of(self.unwrap(array))  # type: ignore[no-any-return]

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        return self.wrap(self.inner.from_numpy(values, copy=copy))

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.inner.to_numpy(self.unwrap(array))  # type: ignore[no-any-return]

    def from_native(self, value: Any) -> Array | None:
        found = self.inner.from_native(value)
        return None if found is None else self.wrap(found)

    def to_native(self, array: Array) -> Any:
        return self.inner.to_native(self.unwrap(array))

    def copied(self, array: Array) -> Array:
        return self.map_arrays(array, self.inner.copied)

    def transfer(self, array: Array, source: Any) -> Array:
        return self.map_arrays(array, lambda value: self.inner.transfer(value, source.inner))

    def dump(self, array: Array) -> Any:
        return self.inner.dump(self.unwrap(array))

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Array:
        return self.wrap(self.inner.load(state, keys=keys))
