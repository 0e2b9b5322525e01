"""Elementwise primitives as expressions of CUDA's C, and the text that stands before all kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation
from adjoint.compiler.native.elements import operand_dtypes
from adjoint.primitives import DType

TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}


def c_type(dtype: DType) -> str:
    return TYPES[dtype.name]


def literal(value: Any, dtype: DType) -> str:
    """A number of this dtype, with all its bits."""
    with np.errstate(all="ignore"):
        x = np.asarray(value).astype(dtype)[()]
    if dtype.kind == "b":
        return "true" if x else "false"
    if dtype.kind != "f":
        n = int(x)
        if n == np.iinfo(np.int64).min:
            return "(-9223372036854775807LL - 1)"
        return f"(({c_type(dtype)}){n}{'ULL' if dtype.kind == 'u' else 'LL'})"
    if not math.isfinite(x):
        bits = int(x.view(f"u{dtype.itemsize}"))
        return f"__int_as_float({bits:#x})" if dtype.itemsize == 4 else f"__longlong_as_double({bits:#x}LL)"
    return f"({float(x).hex()}{'f' if dtype.itemsize == 4 else ''})"


def supported(e: Equation) -> bool:
    """Whether an equation is elementwise and has an expression."""
    if e.name not in EXPRESSIONS:
        return False
    wanted = operand_dtypes(e)
    return wanted is not None and wanted[-1].kind in KINDS.get(e.name, "biuf")


def expression(e: Equation, operands: Sequence[str]) -> str:
    """What an equation computes, of operands that are names or literals."""
    wanted: Any = operand_dtypes(e)
    return EXPRESSIONS[e.name](wanted[-1], operands, e)


# --- expressions: the dtype of the last operand, operands, the equation --------------------------------

Expression = Callable[[DType, Sequence[str], Equation], str]


def _wrapping(operator: str) -> Expression:
    """Arithmetic; that of integers wraps around, which C says of unsigned ones alone."""

    def write(dtype: DType, xs: Sequence[str], e: Equation) -> str:
        if dtype.kind == "f":
            return f"{xs[0]} {operator} {xs[1]}"
        wide = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
        return f"({c_type(dtype)})(({wide}){xs[0]} {operator} ({wide}){xs[1]})"

    return write


def _operator(operator: str) -> Expression:
    return lambda dtype, xs, e: f"({c_type(e.results[0].dtype)})({xs[0]} {operator} {xs[1]})"  # type: ignore[union-attr]


def _function(name: str) -> Expression:
    """One of CUDA's library, in the precision of its operands."""
    return lambda dtype, xs, e: f"{name}{'f' if dtype.itemsize == 4 else ''}({', '.join(xs)})"


def _own(name: str) -> Expression:
    """A template of the text below."""
    return lambda dtype, xs, e: f"adjoint_{name}<{c_type(dtype)}>({', '.join(xs)})"


def _truth(operator: str) -> Expression:
    def write(dtype: DType, xs: Sequence[str], e: Equation) -> str:
        truths = [f"({x} != 0)" for x in xs]
        return f"{truths[0]} {operator} {truths[1]}" if len(xs) > 1 else f"!{truths[0]}"

    return write


def _shifted(operator: str) -> Expression:
    """By more bits than there are, or fewer than none, nothing is left but the sign."""

    def write(dtype: DType, xs: Sequence[str], e: Equation) -> str:
        x, by = xs
        bits, unsigned = 8 * dtype.itemsize, c_type(np.dtype(f"u{dtype.itemsize}"))
        inside, t = f"(unsigned long long)({by}) < {bits}ULL", c_type(dtype)
        if operator == "<<":
            return f"({inside} ? ({t})(({unsigned}){x} << {by}) : ({t})0)"
        return f"({inside} ? ({t})({x} >> {by}) : ({t})({x} < 0 ? -1 : 0))"

    return write


def _signbit(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return f"(__float_as_int({xs[0]}) < 0)" if dtype.itemsize == 4 else f"(__double_as_longlong({xs[0]}) < 0)"


def _negative(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return f"-{xs[0]}" if dtype.kind == "f" else _wrapping("-")(dtype, [literal(0, dtype), xs[0]], e)


def _abs(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    if dtype.kind == "f":
        return _function("fabs")(dtype, xs, e)
    return xs[0] if dtype.kind == "u" else f"({xs[0]} < 0 ? {_negative(dtype, xs, e)} : {xs[0]})"


def _clip(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    t = c_type(dtype)
    return f"adjoint_minimum<{t}>(adjoint_maximum<{t}>({xs[0]}, {xs[1]}), {xs[2]})"


def _astype(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    new = e.parameters["dtype"]
    return f"{xs[0]} != 0" if new.kind == "b" else f"({c_type(new)}){xs[0]}"


def _gelu(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    half, root = literal(0.5, dtype), literal(math.sqrt(0.5), dtype)
    erf = _function("erf")(dtype, [f"{xs[0]} * {root}"], e)
    return f"{xs[0]} * ({half} * ({literal(1, dtype)} + {erf}))"


def _gammaln(dtype: DType, xs: Sequence[str], e: Equation) -> str:
    low = literal(-math.inf, dtype)  # where CUDA's function has the limit of its size
    return f"({xs[0]} == {low} ? {low} : {_function('lgamma')(dtype, xs, e)})"


def _with_parameters(*names: str) -> Callable[[Expression], Expression]:
    return lambda write: (
        lambda dtype, xs, e: write(dtype, [*xs, *[literal(e.parameters[name], dtype) for name in names]], e)
    )


_LIBRARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
    "cbrt floor ceil trunc copysign hypot atan2 pow fmod"
).split()
_COMPARED = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_OWN = (
    "maximum minimum sign expit softplus logaddexp relu relu_pullback tanh_pullback expit_pullback "
    "absorbing_multiply remainder floor_divide"
).split()

EXPRESSIONS: dict[str, Expression] = {
    **{name: _function(name) for name in _LIBRARY},
    **{name: _operator(operator) for name, operator in _COMPARED.items()},
    **{name: _own(name) for name in _OWN},
    "add": _wrapping("+"),
    "subtract": _wrapping("-"),
    "multiply": _wrapping("*"),
    "divide": lambda dtype, xs, e: f"{xs[0]} / {xs[1]}",
    "square": lambda dtype, xs, e: _wrapping("*")(dtype, [xs[0], xs[0]], e),
    "negative": _negative,
    "abs": _abs,
    "round": _function("rint"),
    "gammaln": _gammaln,
    "gelu": _gelu,
    "remainder": lambda dtype, xs, e: _own("remainder" if dtype.kind == "f" else "integer_remainder")(dtype, xs, e),
    "floor_divide": lambda dtype, xs, e: _own("floor_divide" if dtype.kind == "f" else "integer_floor_divide")(
        dtype, xs, e
    ),
    "logical_and": _truth("&&"),
    "logical_or": _truth("||"),
    "logical_xor": _truth("!="),
    "logical_not": _truth(""),
    "bitwise_invert": lambda dtype, xs, e: f"!{xs[0]}" if dtype.kind == "b" else f"({c_type(dtype)})~{xs[0]}",
    "bitwise_left_shift": _shifted("<<"),
    "bitwise_right_shift": _shifted(">>"),
    "isnan": lambda dtype, xs, e: f"{xs[0]} != {xs[0]}",
    "isinf": lambda dtype, xs, e: f"{_abs(dtype, xs, e)} == {literal(math.inf, dtype)}",
    "isfinite": lambda dtype, xs, e: f"{_abs(dtype, xs, e)} < {literal(math.inf, dtype)}",
    "signbit": _signbit,
    "where": lambda dtype, xs, e: f"({xs[0]} ? {xs[1]} : {xs[2]})",
    **{name: lambda dtype, xs, e: xs[0] for name in ("real", "conj", "broadcast_to")},
    "hinge": _own("relu"),
    "clip": _clip,
    "hardtanh": _with_parameters("low", "high")(_clip),
    "raise_to": _with_parameters("least")(_own("maximum")),
    "astype": _astype,
}
# the kinds of dtypes for which an expression means what the primitive does, where these are not all
KINDS = {
    **dict.fromkeys(_LIBRARY, "f"),
    **dict.fromkeys(_OWN, "f"),
    **dict.fromkeys(("divide", "round", "gammaln", "gelu", "isnan", "isinf", "isfinite", "signbit", "hinge"), "f"),
    **dict.fromkeys(("hardtanh", "raise_to"), "f"),
    **dict.fromkeys(("add", "subtract", "multiply", "square", "abs", "negative", "sign"), "fiu"),
    **dict.fromkeys(("maximum", "minimum", "clip", "remainder", "floor_divide"), "fiu"),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "iu"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), "biu"),
}
