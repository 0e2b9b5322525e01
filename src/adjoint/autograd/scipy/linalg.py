"""`scipy.linalg` for boxes: the functions below have derivatives, all others raise of boxes.

Parameters are SciPy's. Those about memory and checks say nothing about values, and are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from adjoint import errors, linalg
from adjoint.autograd.numpy.numpy_wrapper import joined
from adjoint.autograd.primitives import primitive, traced
from adjoint.functions import arguments, elementwise
from adjoint.numpy_functions import as_operands

_SILENT = {"overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "blocksize"}


def _check(name: str, options: dict[str, Any], **usual: Any) -> None:
    """Raises ArgumentTypeError for options that mean something else than is there."""
    for key, value in options.items():
        if key not in _SILENT and (key not in usual or value != usual[key]):
            raise errors.ArgumentTypeError(f"scipy.linalg.{name} of a box: {key}={errors.shown(value)} is not there")


def _sqrtm(A: Any, disp: Any = True, **options: Any) -> Any:
    _check("sqrtm", {"disp": disp, **options}, disp=True)
    return linalg.sqrtm(A)


def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Any:
    _check("solve_triangular", options)
    a, b = arguments.as_tensors(as_operands([a, b]), "solve_triangular")
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise errors.ArgumentError(
            f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', received {errors.shown(trans)}"
        )
    upper = not lower
    if trans not in (0, "N"):
        a, upper = a.mT, lower
        a = elementwise.conj(a) if trans in (2, "C") and a.dtype.kind == "c" else a
    return linalg.solve_triangular(a, b, upper=bool(upper), unitriangular=unit_diagonal)


def _solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    return linalg.solve_sylvester(*arguments.as_tensors(as_operands([a, b, q]), "solve_sylvester"))


def _solve_banded(l_and_u: Any, ab: Any, b: Any, **options: Any) -> Any:
    _check("solve_banded", options)
    return linalg.solve_banded(l_and_u, *as_operands([ab, b]))


def _solve(
    a: Any, b: Any, lower: bool = False, *, assume_a: Any = None, transposed: bool = False, **options: Any
) -> Any:
    _check("solve", {"assume_a": assume_a or "gen", **options}, assume_a="gen")
    a, b = arguments.as_tensors(as_operands([a, b]), "solve")
    return linalg.solve(a.mT if transposed else a, b)


def _cholesky(a: Any, lower: bool = False, **options: Any) -> Any:
    _check("cholesky", options)
    return linalg.cholesky(a, upper=not lower)


def _one(name: str, **usual: Any) -> Callable[..., Any]:
    """A function of one matrix."""

    def run(a: Any, **options: Any) -> Any:
        _check(name, options, **usual)
        return getattr(linalg, name)(a)

    return run


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
    _check("norm", options)
    return np.linalg.norm(a, ord, axis, keepdims)


def _block_diag(*arrays: Any) -> Any:
    return linalg.block_diag(*[joined(x) for x in arrays])


_OURS: dict[str, Callable[..., Any]] = {
    "block_diag": _block_diag,
    "cholesky": _cholesky,
    "det": _one("det"),
    "expm": _one("expm"),
    "inv": _one("inv"),
    "logm": _one("logm", disp=True),
    "norm": _norm,
    "solve": _solve,
    "solve_banded": _solve_banded,
    "solve_sylvester": _solve_sylvester,
    "solve_triangular": _solve_triangular,
    "sqrtm": _sqrtm,
}
for _name in scipy.linalg.__all__:
    _value = getattr(scipy.linalg, _name)
    if callable(_value) and not isinstance(_value, type):
        globals()[_name] = traced(_value, _OURS[_name]) if _name in _OURS else primitive(_value)
    elif isinstance(_value, type):
        globals()[_name] = _value


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
