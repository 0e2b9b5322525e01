"""The named tuples that functions give: `torch.return_types.max` for one, called as PyTorch's with a sequence."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

_PAIR = "values indices"
TABLE = {
    **dict.fromkeys("max min median nanmedian mode kthvalue sort topk cummax cummin".split(), _PAIR),
    "aminmax": "min max",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "lu_unpack": "P L U",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "svd": "U S V",
    "triangular_solve": "solution cloned_coefficient",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
}


def _made(name: str) -> Any:
    """The class of what a function gives."""
    make: Any = namedtuple
    base = make(name, TABLE[name])

    def new(cls: Any, *values: Any) -> Any:
        """Of a sequence, and of what PyTorch adds to it, or of as many values."""
        return tuple.__new__(cls, values[0] if isinstance(values[0], (tuple, list)) else values)

    def text(self: Any) -> str:
        parts = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    def reduce(self: Any) -> Any:
        return type(self), (tuple(self), {})

    members = {"__slots__": (), "__new__": new, "__repr__": text, "__reduce__": reduce, "__module__": __name__}
    return type(name, (base,), members)


def __getattr__(name: str) -> Any:
    if name not in TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _made(name)
    return made
