"""Elementwise primitives on one vector, with results that are NumPy's to the last bit, beside those of `elementary`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native import elementary
from adjoint.compiler.native.machine import adds_products, has_avx512, is_x86
from adjoint.compiler.native.text import INLINE, Vector, element_type
from adjoint.primitives import DType

BOOL = np.dtype(bool)


def computable(dtype: DType) -> bool:
    """Whether there is machine code for arrays of this dtype."""
    return dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))


def constant(x: Any) -> Any:
    """The number that an operand is in all places; None if there is none."""
    if x.__class__ is not Value:
        return x if x.__class__ in (bool, int, float) or isinstance(x, np.generic) else None
    c = x.const
    if c is None or not c.size or any(s for s, n in zip(np.asarray(c).strides, c.shape, strict=True) if n != 1):
        return None
    return np.asarray(c).reshape(-1)[0]


def operand_dtypes(e: Equation) -> list[DType] | None:
    """The dtypes in which operands meet; None where they would not meet as they do in NumPy."""
    out = e.results[0]
    assert isinstance(out, Value)
    values = [x.dtype for x in e.operands if x.__class__ is Value]
    if e.name == "where":
        wanted = [BOOL, out.dtype, out.dtype]
    elif e.name in _LOGIC:
        wanted = [x.dtype if x.__class__ is Value else BOOL for x in e.operands]
    else:
        if not values:
            return None
        wanted = [values[0]] * len(e.operands)
    for x, dtype in zip(e.operands, wanted, strict=True):
        if x.__class__ is Value:
            if x.dtype != dtype:
                return None
        elif not _fits(x, dtype):
            return None
    return wanted if all(map(computable, (*wanted, out.dtype))) else None


def _fits(x: Any, dtype: DType) -> bool:
    """Whether a Python number becomes one of this dtype when it meets it."""
    if not computable(dtype):
        return False
    if dtype.kind == "f":
        return x.__class__ in (int, float, bool) and (x.__class__ is float or abs(x) < 2**53)
    if dtype.kind == "b":
        return x.__class__ is bool
    return x.__class__ is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max


def supported(e: Equation) -> bool:
    """Whether there is machine code for an equation, if it is elementwise."""
    if e.name not in EMITTERS:
        return False
    wanted = operand_dtypes(e)
    if wanted is None or (e.name in _KINDS and wanted[-1].kind not in _KINDS[e.name]):
        return False
    if e.name in elementary.IN_PIECES and not has_pieces(wanted[-1]):
        return False
    calls = e.name in elementary.CALLED or (e.name in elementary.EXACT and wanted[-1].kind == "f")
    if calls and not adds_products():
        return False
    return e.name != "astype" or _casts(wanted[0], e.parameters["dtype"])


def has_pieces(dtype: DType) -> bool:
    """Whether there are functions in pieces of numbers of this dtype."""
    return dtype.kind == "f" and dtype.itemsize == 4 and has_avx512() and adds_products()


def _casts(old: DType, new: DType) -> bool:
    if old.kind == "f" and new.kind in "iu":  # of what does not fit C says nothing, and NumPy gives what processors do
        return is_x86() and (new.kind == "i" or new.itemsize < 4)
    return computable(new)


# --- emitters: vectors of one dtype in, a vector out ----------------------------------------------

Emitter = Callable[[Vector, DType, Sequence[str], Equation], str]


def _arithmetic(floating: str, integer: str) -> Emitter:
    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        return v.two(floating if dtype.kind == "f" else integer, element_type(dtype), xs[0], xs[1])

    return emit


def _compared(name: str) -> Emitter:
    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        return compare(v, name, dtype, xs[0], xs[1])

    return emit


def compare(v: Vector, name: str, dtype: DType, x: str, y: str) -> str:
    """`name` is eq, ne, lt, le, gt or ge. A nan is unequal to all, and neither less nor greater."""
    if dtype.kind == "f":
        return v.two(f"fcmp {'u' if name == 'ne' else 'o'}{name}", element_type(dtype), x, y)
    sign = "" if name in ("eq", "ne") else "s" if dtype.kind == "i" else "u"
    return v.two(f"icmp {sign}{name}", element_type(dtype), x, y)


def _is_nan(v: Vector, dtype: DType, x: str) -> str:
    return v.two("fcmp uno", element_type(dtype), x, x)


def extreme(v: Vector, name: str, dtype: DType, x: str, y: str) -> str:
    """The maximum or minimum, or a nan; of two zeros the second, as vectors of NumPy have it."""
    t = element_type(dtype)
    found = v.select(compare(v, "gt" if name == "maximum" else "lt", dtype, x, y), t, x, y)
    return v.select(_is_nan(v, dtype, x), t, x, found) if dtype.kind == "f" else found


def _extreme(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return extreme(v, e.name, dtype, xs[0], xs[1])


def _negative(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    t = element_type(dtype)
    return v.b(f"fneg {v.type(t)} {xs[0]}") if dtype.kind == "f" else v.two("sub", t, "zeroinitializer", xs[0])


def _sign(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    t, zero = element_type(dtype), v.constant(0, dtype)
    found = v.select(compare(v, "lt", dtype, xs[0], zero), t, v.constant(-1, dtype), xs[0])
    found = v.select(compare(v, "gt", dtype, xs[0], zero), t, v.constant(1, dtype), found)
    return v.select(compare(v, "eq", dtype, xs[0], zero), t, zero, found)


def _size(v: Vector, dtype: DType, x: str) -> str:
    return v.call("fabs", element_type(dtype), x)


def _abs(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    if dtype.kind == "f":
        return _size(v, dtype, xs[0])
    t = element_type(dtype)
    negated = v.two("sub", t, "zeroinitializer", xs[0])
    return v.select(compare(v, "lt", dtype, xs[0], "zeroinitializer"), t, negated, xs[0])


def _of_llvm(name: str) -> Emitter:
    return lambda v, dtype, xs, e: v.call(name, element_type(dtype), *xs)


def _not(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    ones = True if dtype.kind == "b" else -1 if dtype.kind == "i" else np.iinfo(dtype).max
    return v.two("xor", element_type(dtype), xs[0], v.constant(ones, dtype))


def _logic(name: str) -> Emitter:
    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        wanted: Any = operand_dtypes(e)
        truths = [
            x if t.kind == "b" else compare(v, "ne", t, x, v.constant(0, t)) for x, t in zip(xs, wanted, strict=True)
        ]
        return v.two(name, "i1", truths[0], truths[1] if len(truths) > 1 else v.constant(True, BOOL))

    return emit


def _bits(name: str) -> Emitter:
    return lambda v, dtype, xs, e: v.two(name, element_type(dtype), xs[0], xs[1])


def _divided(name: str) -> Emitter:
    """The quotient rounded down, or a remainder; by zero all are 0, as NumPy has it, and nothing traps."""
    of_floats = _elementary(name)

    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        if dtype.kind == "f":
            return of_floats(v, dtype, xs, e)
        t, zero, sign = element_type(dtype), v.constant(0, dtype), "s" if dtype.kind == "i" else "u"
        x, y = (v.b(f"freeze {v.type(t)} {a}") for a in xs)  # lanes that are not there may hold anything
        by_zero = compare(v, "eq", dtype, y, zero)
        unsafe = by_zero
        if dtype.kind == "i":  # the least number by -1 is itself
            least = compare(v, "eq", dtype, x, v.constant(np.iinfo(dtype).min, dtype))
            unsafe = v.two(
                "or", "i1", by_zero, v.two("and", "i1", least, compare(v, "eq", dtype, y, v.constant(-1, dtype)))
            )
        safe = v.select(unsafe, t, v.constant(1, dtype), y)
        quotient, rest = v.two(f"{sign}div", t, x, safe), v.two(f"{sign}rem", t, x, safe)
        if dtype.kind == "i" and name != "fmod":
            differ = compare(v, "lt", dtype, v.two("xor", t, rest, safe), zero)
            below = v.two("and", "i1", compare(v, "ne", dtype, rest, zero), differ)
            quotient = v.select(below, t, v.two("sub", t, quotient, v.constant(1, dtype)), quotient)
            rest = v.select(below, t, v.two("add", t, rest, safe), rest)
        return v.select(by_zero, t, zero, quotient if name == "floor_divide" else rest)

    return emit


def _shifted(operation: str) -> Emitter:
    """By more bits than there are, or fewer than none, nothing is left but the sign."""

    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        t, bits, zero = element_type(dtype), 8 * dtype.itemsize, v.constant(0, dtype)
        inside = v.two("icmp ult", t, xs[1], v.constant(bits, dtype))
        arithmetic = operation == "right" and dtype.kind == "i"
        by = v.select(inside, t, xs[1], v.constant(bits - 1, dtype) if arithmetic else zero)
        found = v.two("shl" if operation == "left" else "ashr" if arithmetic else "lshr", t, xs[0], by)
        return found if arithmetic else v.select(inside, t, found, zero)

    return emit


def _against_infinity(comparison: str) -> Emitter:
    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        return compare(v, comparison, dtype, _size(v, dtype, xs[0]), v.constant(np.inf, dtype))

    return emit


def _signbit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    whole = f"i{8 * dtype.itemsize}"
    bits = v.cast("bitcast", xs[0], element_type(dtype), whole)
    return v.two("icmp slt", whole, bits, "zeroinitializer")


def _where(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return v.select(xs[0], element_type(dtype), xs[1], xs[2])


def _unchanged(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return xs[0]


def _relu(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return extreme(v, "maximum", dtype, xs[0], v.constant(0, dtype))


def _relu_pullback(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    zero = v.constant(0, dtype)
    return v.select(compare(v, "le", dtype, xs[1], zero), element_type(dtype), zero, xs[0])


def _tanh_pullback(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    t = element_type(dtype)
    rest = v.two("fsub", t, v.constant(1, dtype), v.two("fmul", t, xs[1], xs[1]))
    return v.two("fmul", t, rest, xs[0])


def _absorbing(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    t, zero = element_type(dtype), v.constant(0, dtype)
    either = v.two("or", "i1", *[compare(v, "eq", dtype, x, zero) for x in xs])
    return v.select(either, t, zero, v.two("fmul", t, xs[0], xs[1]))


def _clip(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    """Of two zeros the bound, where bounds are arrays, as vectors of NumPy have it."""
    if all(x.__class__ is not Value or x.shape == () for x in e.operands[1:]):
        return _between(v, dtype, *xs)
    return extreme(v, "minimum", dtype, extreme(v, "maximum", dtype, xs[0], xs[1]), xs[2])


def _between(v: Vector, dtype: DType, x: str, low: str, high: str) -> str:
    """Bounds that are one number each, or a nan: of two zeros NumPy keeps that of the array."""
    t = element_type(dtype)
    found = v.select(compare(v, "lt", dtype, x, low), t, low, x)
    found = v.select(compare(v, "gt", dtype, found, high), t, high, found)
    if dtype.kind != "f":
        return found
    return v.select(_is_nan(v, dtype, low), t, low, v.select(_is_nan(v, dtype, high), t, high, found))


def _hardtanh(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return _between(v, dtype, xs[0], *[v.constant(e.parameters[name], dtype) for name in ("low", "high")])


def _raise_to(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    return extreme(v, "maximum", dtype, xs[0], v.constant(e.parameters["least"], dtype))


def _truncated(v: Vector, dtype: DType, x: str, new: DType) -> str:
    """Floats as integers. Those of 8 and 16 bits are the last ones of 32, and what does not fit is the least number."""
    whole: DType = np.dtype(np.int64 if new.itemsize == 8 else np.int32)
    limit, t, new_type = -float(np.iinfo(whole).min), element_type(whole), element_type(new)
    inside = v.two(
        "and",
        "i1",
        compare(v, "ge", dtype, x, v.constant(-limit, dtype)),
        compare(v, "lt", dtype, x, v.constant(limit, dtype)),
    )
    safe = v.select(inside, element_type(dtype), x, v.constant(0, dtype))
    found = v.cast("fptosi", safe, element_type(dtype), t)
    found = v.select(inside, t, found, v.constant(np.iinfo(whole).min, whole))
    return found if t == new_type else v.cast("trunc", found, t, new_type)


def _astype(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
    new, (x,) = e.parameters["dtype"], xs
    old_type, new_type = element_type(dtype), element_type(new)
    if old_type == new_type:
        return x
    if new.kind == "b":
        return compare(v, "ne", dtype, x, v.constant(0, dtype))
    if new.kind == "f":
        if dtype.kind == "f":
            return v.cast("fpext" if new.itemsize == 8 else "fptrunc", x, old_type, new_type)
        return v.cast("sitofp" if dtype.kind == "i" else "uitofp", x, old_type, new_type)
    if dtype.kind == "f":
        return _truncated(v, dtype, x, new)
    if dtype.kind != "b" and new.itemsize <= dtype.itemsize:
        return v.cast("trunc", x, old_type, new_type)
    return v.cast("sext" if dtype.kind == "i" else "zext", x, old_type, new_type)


@functools.lru_cache(1024)
def _definitions(name: str, dtype: DType, lanes: int) -> tuple[str, dict[str, str]]:
    """The symbol of an elementary function, and the text of it and of what it calls: to be part of its callers.

    A call would have all registers saved, and constants loaded again. What is internal is for rare numbers.
    """
    library = elementary.Library(has_avx512())
    symbol = library.function(name, dtype, lanes)
    rare = "define internal"
    return symbol, {k: x if rare in x else x.replace(") {", INLINE, 1) for k, x in library.definitions.items()}


def _elementary(name: str) -> Emitter:
    def emit(v: Vector, dtype: DType, xs: Sequence[str], e: Equation) -> str:
        symbol, definitions = _definitions(name, dtype, v.lanes)
        v.b.called.update(definitions)
        return v.b.call(symbol, v.type(element_type(dtype)), xs)

    return emit


EMITTERS: dict[str, Emitter] = {
    **{name: _elementary(name) for name in (*elementary.FUNCTIONS, *elementary.IN_PIECES, *elementary.SLOPES)},
    "add": _arithmetic("fadd", "add"),
    "subtract": _arithmetic("fsub", "sub"),
    "multiply": _arithmetic("fmul", "mul"),
    "divide": _arithmetic("fdiv", ""),
    "negative": _negative,
    "square": lambda v, dtype, xs, e: v.two("fmul" if dtype.kind == "f" else "mul", element_type(dtype), xs[0], xs[0]),
    "sign": _sign,
    "abs": _abs,
    **{name: _of_llvm(name) for name in ("sqrt", "floor", "ceil", "trunc", "copysign")},
    "round": _of_llvm("rint"),
    "maximum": _extreme,
    "minimum": _extreme,
    "equal": _compared("eq"),
    "not_equal": _compared("ne"),
    "less": _compared("lt"),
    "less_equal": _compared("le"),
    "greater": _compared("gt"),
    "greater_equal": _compared("ge"),
    "logical_and": _logic("and"),
    "logical_or": _logic("or"),
    "logical_xor": _logic("xor"),
    "logical_not": _logic("xor"),
    "bitwise_and": _bits("and"),
    "bitwise_or": _bits("or"),
    "bitwise_xor": _bits("xor"),
    "bitwise_invert": _not,
    "bitwise_left_shift": _shifted("left"),
    "bitwise_right_shift": _shifted("right"),
    **{name: _divided(name) for name in elementary.EXACT},
    "isnan": lambda v, dtype, xs, e: _is_nan(v, dtype, xs[0]),
    "isinf": _against_infinity("eq"),
    "isfinite": _against_infinity("lt"),
    "signbit": _signbit,
    "where": _where,
    "real": _unchanged,
    "conj": _unchanged,
    "broadcast_to": _unchanged,
    "relu": _relu,
    "hinge": _relu,
    "relu_pullback": _relu_pullback,
    "tanh_pullback": _tanh_pullback,
    "absorbing_multiply": _absorbing,
    "clip": _clip,
    "hardtanh": _hardtanh,
    "raise_to": _raise_to,
    "astype": _astype,
}
_LOGIC = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_FLOATS = (
    "divide sqrt floor ceil trunc copysign round isnan isinf isfinite signbit relu hinge relu_pullback tanh_pullback "
    "absorbing_multiply hardtanh raise_to"
).split()
# the kinds of dtypes whose meaning is the one above; NumPy has another one for others, or none
_KINDS = {
    **dict.fromkeys(_FLOATS, "f"),
    **dict.fromkeys(("add", "subtract", "multiply", "square", "abs", "maximum", "minimum"), "fiu"),
    "negative": "fiu",
    "clip": "fiu",
    "sign": "fiu",
    **dict.fromkeys((*elementary.FUNCTIONS, *elementary.SLOPES), "f"),
    **dict.fromkeys(elementary.EXACT, "fiu"),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "iu"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), "biu"),
}
