"""The type variables of backends.

Where neither an annotation nor an argument says which backend, any is meant: `Tensor` is `Tensor[Any]`, and so is the
result of a function of NumPy's arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # that of Python 3.13, which has defaults

    from adjoint.backend import Backend

    B = TypeVar("B", bound=Backend, covariant=True, default=Any)
    J = TypeVar("J", bound=Backend, covariant=True, default=Any)
else:
    from typing import TypeVar

    B, J = TypeVar("B", covariant=True), TypeVar("J", covariant=True)
