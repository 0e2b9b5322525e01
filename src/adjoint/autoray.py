"""autoray (`import autoray`) on tensors: `adjoint.autoray.register()` gives it all names that it looks for.

autoray finds `ad.sin` for a tensor by itself, since the class of tensors is adjoint's, but calls functions with NumPy's
arguments. So these functions are NumPy's, which run ours on tensors, and numbers of chance are drawn likewise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors, linalg, random, special
from adjoint.functions import creation
from adjoint.locks import released_by_forks
from adjoint.tensor import Tensor

_ASKING_TENSORS = (np.ufunc, type(np.sum))  # functions of NumPy's that tensors may compute


def register() -> None:
    """autoray's functions take tensors from then on, and `like="adjoint"` makes them.

    Raises MissingLibraryError where autoray is not installed.

    >>> import adjoint as ad
    >>> import adjoint.autoray, autoray                                                     # doctest: +SKIP
    >>> adjoint.autoray.register()                                                          # doctest: +SKIP
    >>> ad.grad(lambda x: autoray.do("trace", autoray.do("transpose", x) @ x))(ad.eye(2))   # doctest: +SKIP
    tensor([[2., 0.],
            [0., 2.]])
    """
    try:
        autoray: Any = importlib.import_module("autoray")
    except ImportError as error:
        raise errors.MissingLibraryError("adjoint.autoray: needs autoray; pip install autoray") from error
    for prefix, module in {"": np, "linalg.": np.linalg, "fft.": np.fft}.items():
        for name in module.__all__:
            if isinstance(function := getattr(module, name), _ASKING_TENSORS):
                autoray.register_function("adjoint", prefix + name, function)
    for name in linalg.__all__:
        autoray.register_function("adjoint", f"scipy.linalg.{name}", getattr(linalg, name))
    for name in special.__all__:
        autoray.register_function("adjoint", f"scipy.special.{name}", getattr(special, name))
    for name, function in _FUNCTIONS.items():
        autoray.register_function("adjoint", name, function)
    autoray.to_device.register("adjoint")(_to_device)


def placed(device: Any) -> Any:
    """The device, which other libraries call "cpu" where arrays are NumPy's."""
    return "numpy" if device == "cpu" else device


def _to_device(x: Tensor[Any], device: Any) -> Tensor[Any]:
    """The tensor itself where it is there already, as autoray has it for all libraries."""
    if device is None:
        return x
    moved = x.to_device(placed(device))
    return x if moved.device is x.device else moved


def _uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, **made: Any) -> Tensor[Any]:
    return random.uniform(() if size is None else size, low=low, high=high, **made)


def _normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **made: Any) -> Tensor[Any]:
    return random.normal(() if size is None else size, mean=loc, std=scale, **made)


class _Generator:
    """NumPy's generator, whose numbers come as tensors of the default dtype."""

    def __init__(self, seed: Any = None) -> None:
        self._generator = np.random.default_rng(seed)
        released_by_forks(self._generator.bit_generator.lock)

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self._generator, name)

        def drawn(*args: Any, **options: Any) -> Tensor[Any]:
            values = np.asarray(draw(*(a.numpy() if isinstance(a, Tensor) else a for a in args), **options))
            return creation.asarray(values, dtype=dtypes.default_dtype() if values.dtype.kind == "f" else None)

        return drawn


def _solve_triangular(a: Any, b: Any, lower: bool = False, unit_diagonal: bool = False) -> Any:
    return linalg.solve_triangular(a, b, upper=not lower, unitriangular=unit_diagonal)


def _thin_svd(x: Any, full_matrices: bool = False, **options: Any) -> Any:
    return linalg.svd(x, full_matrices=full_matrices, **options)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array": creation.asarray,
    "complex": lambda real, imag: real + 1j * imag,
    "identity": creation.eye,
    "linalg.svd": _thin_svd,  # as autoray has it for all libraries
    "random.default_rng": _Generator,
    "random.normal": _normal,
    "random.uniform": _uniform,
    "scipy.linalg.solve_triangular": _solve_triangular,
}
