"""quimb (`import quimb`) on tensors: `adjoint.quimb.register()` gives its optimizers a backend of ours.

`TNOptimizer(..., autodiff_backend="adjoint")` then takes gradients, and products of Hessians and vectors, from adjoint,
on the default device or another one, and compiled if asked.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import autoray, errors, tree
from adjoint.compiler.compiled import compile
from adjoint.functions import creation
from adjoint.transforms.forward import hvp
from adjoint.transforms.reverse import value_and_grad


def register() -> None:
    """quimb's optimizers know `autodiff_backend="adjoint"` from then on; autoray's functions take tensors, too.

    Raises MissingLibraryError where quimb is not installed.

    >>> import adjoint.quimb, quimb.tensor                                                    # doctest: +SKIP
    >>> adjoint.quimb.register()                                                              # doctest: +SKIP
    >>> state = quimb.tensor.MPS_rand_state(8, 4)                                             # doctest: +SKIP
    >>> target = quimb.tensor.MPS_rand_state(8, 2)                                            # doctest: +SKIP
    >>> optimizer = quimb.tensor.TNOptimizer(                                                 # doctest: +SKIP
    ...     state,
    ...     lambda state, target: -abs(state.H @ target),
    ...     norm_fn=lambda state: state / (state.H @ state) ** 0.5,
    ...     loss_constants={"target": target},
    ...     autodiff_backend="adjoint",
    ... )
    >>> optimizer.optimize(100)                                                               # doctest: +SKIP
    """
    try:
        optimize: Any = importlib.import_module("quimb.tensor.optimize")
    except ImportError as error:
        raise errors.MissingLibraryError("adjoint.quimb: needs quimb; pip install quimb") from error
    autoray.register()
    optimize._BACKEND_HANDLERS["adjoint"] = _Handler


class _Handler:
    """What quimb asks of a backend. Options: the device of tensors, and whether functions are compiled."""

    def __init__(self, device: Any = None, jit_fn: bool = False) -> None:
        self._device, self._jit = autoray.placed(device), jit_fn

    def to_constant(self, x: Any) -> Any:
        return creation.asarray(x, device=self._device)

    to_variable = to_constant

    def setup_fn(self, fn: Callable[[Any], Any]) -> None:
        made: Callable[[Any], Any] = compile if self._jit else lambda f: f
        self._value, self._value_and_grad = made(fn), made(value_and_grad(fn))
        self._hvp = made(lambda x, v: hvp(fn, (x,), (v,)))

    def value(self, arrays: Any) -> Any:
        return self._numpy(self._value(self._tensors(arrays)))

    def value_and_grad(self, arrays: Any) -> Any:
        return self._numpy(self._value_and_grad(self._tensors(arrays)))

    def hessp(self, primals: Any, tangents: Any) -> Any:
        return self._numpy(self._hvp(self._tensors(primals), self._tensors(tangents)))

    def _tensors(self, arrays: Any) -> Any:
        return tree.map(self.to_constant, arrays)

    def _numpy(self, tensors: Any) -> Any:
        return tree.map(lambda x: np.asarray(x.numpy()), tensors)
