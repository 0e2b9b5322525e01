"""POT, Python Optimal Transport (`import ot`), on tensors: `adjoint.pot.register()` makes its functions take them.

Where POT gives derivatives itself, as for the value of `ot.emd2`, they are its own, of first order, in reverse mode;
all else is differentiated through, in any mode and order. What POT computes from values alone, as the plan of
`ot.emd`, is a constant.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors, linalg, special
from adjoint.functions import creation, elementwise, ranges, scatter, sorting
from adjoint.tensor import Tensor
from adjoint.transforms.external import external
from adjoint.transforms.reverse import stop_gradient


def _placed(like: Tensor[Any] | None) -> dict[str, Any]:
    """Where something new is made, and in which dtype: as a tensor, or by default."""
    return {} if like is None else {"dtype": like.dtype, "device": like.device}


def register() -> None:
    """POT's functions take tensors from then on.

    Raises MissingLibraryError where POT is not installed.

    >>> import adjoint as ad, numpy as np
    >>> import adjoint.pot, ot                                            # doctest: +SKIP
    >>> adjoint.pot.register()                                            # doctest: +SKIP
    >>> a, b = ad.tensor([0.5, 0.5]), ad.tensor([0.25, 0.75])
    >>> costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> ad.grad(lambda costs: ot.emd2(a, b, costs))(costs)                # doctest: +SKIP
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    """
    try:
        pot = importlib.import_module("ot.backend")
    except ImportError as error:
        raise errors.MissingLibraryError("adjoint.pot: needs POT; pip install POT") from error
    if not any(issubclass(backend, _Tensors) for backend in pot.get_available_backend_implementations()):
        ones = [creation.ones((), dtype=dtype) for dtype in (dtypes.float32, dtypes.float64)]
        names = {"__name__": "adjoint", "__type__": Tensor, "__type_list__": ones}
        pot._register_backend_implementation(type("Backend", (_Tensors, pot.NumpyBackend), names))


class _Tensors:
    """What creates or converts, or is SciPy's, in POT's backend for NumPy, whose other functions run on tensors."""

    rng_: Any  # NumPy's generator of POT

    def _to_numpy(self, a: Any) -> Any:
        return np.array(stop_gradient(a).numpy() if isinstance(a, Tensor) else a)

    def _from_numpy(self, a: Any, type_as: Any = None) -> Tensor[Any]:
        return creation.asarray(a, **_placed(type_as))

    def _detach(self, a: Any) -> Any:
        return stop_gradient(a)

    def set_gradients(self, val: Any, inputs: Any, grads: Any) -> Any:
        several = isinstance(inputs, Sequence)
        xs, slopes = (inputs, grads) if several else ((inputs,), (grads,))
        value, slopes = self._to_numpy(val), [self._to_numpy(slope) for slope in slopes]

        def transport(*xs: Any) -> Any:
            return value

        return external(transport, vjp=lambda g, *xs: tuple(g * slope for slope in slopes))(*xs)

    def zeros(self, shape: Any, type_as: Any = None) -> Tensor[Any]:
        return creation.zeros(shape, **_placed(type_as))

    def ones(self, shape: Any, type_as: Any = None) -> Tensor[Any]:
        return creation.ones(shape, **_placed(type_as))

    def arange(self, stop: Any, start: Any = 0, step: Any = 1, type_as: Any = None) -> Tensor[Any]:
        return ranges.arange(start, stop, step, device=_placed(type_as).get("device"))

    def full(self, shape: Any, fill_value: Any, type_as: Any = None) -> Tensor[Any]:
        return creation.full(shape, fill_value, **_placed(type_as))

    def eye(self, N: Any, M: Any = None, type_as: Any = None) -> Tensor[Any]:
        return creation.eye(N, M, **_placed(type_as))

    def linspace(self, start: Any, stop: Any, num: Any, type_as: Any = None) -> Tensor[Any]:
        return ranges.linspace(start, stop, num, **_placed(type_as))

    def rand(self, *size: Any, type_as: Any = None) -> Tensor[Any]:
        return self._drawn(self.rng_.rand(*size), type_as)

    def randn(self, *size: Any, type_as: Any = None) -> Tensor[Any]:
        return self._drawn(self.rng_.randn(*size), type_as)

    def _drawn(self, values: Any, type_as: Any) -> Tensor[Any]:
        how: dict[str, Any] = {"dtype": dtypes.default_dtype(), **_placed(type_as)}
        return creation.asarray(values, **how)

    def randperm(self, size: Any, type_as: Any = None) -> Tensor[Any]:
        return creation.asarray(super().randperm(size), device=_placed(type_as).get("device"))  # type: ignore[misc]

    def logsumexp(self, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return special.logsumexp(a, axis=axis, keepdims=keepdims)

    def searchsorted(self, a: Any, v: Any, side: Any = "left") -> Any:
        return sorting.searchsorted(a, v, side=side)

    def inv(self, a: Any) -> Any:
        return linalg.inv(a)

    # sparse matrices are dense ones, as POT has them for JAX

    def coo_matrix(self, data: Any, rows: Any, cols: Any, shape: Any = None, type_as: Any = None) -> Any:
        data = creation.asarray(data, **_placed(type_as))
        size = tuple(int(i.max()) + 1 for i in (rows, cols)) if shape is None else shape
        zeros = creation.zeros(size, **_placed(data))
        return scatter.scatter(zeros, (rows, cols), data, mode="add")

    def issparse(self, a: Any) -> bool:
        return False

    def tocsr(self, a: Any) -> Any:
        return a

    def eliminate_zeros(self, a: Any, threshold: float = 0.0) -> Any:
        return elementwise.where(abs(a) <= threshold, 0.0, a) if threshold > 0 else a

    def sparse_coo_data(self, a: Any) -> Any:
        values = self._to_numpy(a)
        rows, cols = values.nonzero()
        return rows, cols, values[rows, cols], values.shape

    def dtype_device(self, a: Any) -> Any:
        return (a.dtype, a.device) if isinstance(a, Tensor) else (np.asarray(a).dtype, "cpu")

    def assert_same_dtype_device(self, a: Any, b: Any) -> None:
        if self.dtype_device(a) != self.dtype_device(b):
            raise AssertionError(f"{self.dtype_device(a)} and {self.dtype_device(b)} differ")
