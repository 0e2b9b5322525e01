"""Reductions inside of a loop: what is carried along, how a vector joins it, and how its lanes become one number.

Of a long sum of floating-point numbers also what was rounded away is carried along. That takes seven operations, so
`PLAIN` steps are added up without it before. Each lane has few of their numbers: NumPy rounds as often for so many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from adjoint.compiler.graph import Equation
from adjoint.compiler.native.elements import extreme
from adjoint.compiler.native.text import Builder, Vector, element_type, number
from adjoint.primitives import DType

JOINED = {"sum": ("add", "fadd"), "prod": ("mul", "fmul"), "any": ("or", ""), "all": ("and", "")}

State = dict[int, list[str]]  # of equations, by their identity
PLAIN = 16  # steps of a loop whose vectors are added up without what is rounded away


def identity(e: Equation) -> str:
    """What changes nothing."""
    dtype: DType = e.operands[0].dtype
    if e.name in ("sum", "any"):
        return number(0, dtype)
    if e.name in ("prod", "all"):
        return number(1, dtype)
    if dtype.kind == "f":
        return number(-math.inf if e.name == "max" else math.inf, dtype)
    limits = np.iinfo(dtype)
    return number(limits.min if e.name == "max" else limits.max, dtype)


def is_rounded(e: Equation) -> bool:
    """Whether it is a sum of floating-point numbers."""
    return e.name == "sum" and e.operands[0].dtype.kind == "f"


def started(e: Equation, plain: bool = False) -> list[str]:
    """What a reduction carries along: of a sum that is not plain also what was rounded away."""
    first = f"splat ({element_type(e.operands[0].dtype)} {identity(e)})"
    return [first, "zeroinitializer"] if is_rounded(e) and not plain else [first]


def carried(equations: Sequence[Equation], states: Sequence[list[str]], lanes: int) -> list[tuple[str, str]]:
    """Types and values of all that is carried along by these."""
    pairs = zip(equations, states, strict=True)
    return [(f"<{lanes} x {element_type(e.operands[0].dtype)}>", x) for e, values in pairs for x in values]


def flat(equations: Sequence[Equation], state: State) -> list[str]:
    return [x for e in equations for x in state[id(e)]]


def unflat(equations: Sequence[Equation], names: Sequence[str]) -> State:
    left = iter(names)
    return {id(e): [next(left) for _ in started(e)] for e in equations}


def combined(v: Vector, e: Equation, x: str, y: str) -> str:
    dtype: DType = e.operands[0].dtype
    if "of_sizes" in e.parameters:  # bits of what is not negative are in order, nan behind infinity
        whole = f"i{8 * dtype.itemsize}"
        bits = [v.cast("bitcast", z, element_type(dtype), whole) for z in (x, y)]
        return v.cast("bitcast", v.call("smax", whole, *bits), whole, element_type(dtype))
    if e.name in JOINED:
        return v.two(JOINED[e.name][dtype.kind == "f"], element_type(dtype), x, y)
    return extreme(v, "maximum" if e.name == "max" else "minimum", dtype, x, y)


def reduced(v: Vector, e: Equation, state: list[str], x: str, lanes: int) -> list[str]:
    """The state, which has so many lanes, with a vector that has as many, or more: then its parts become one first."""
    t = element_type(e.operands[0].dtype)
    while v.lanes > lanes:
        first, last = _halves(v.b, v.lanes, t, x)
        v = Vector(v.b, v.lanes // 2)
        x = combined(v, e, first, last)
    if len(state) == 2:
        total, lost = _two_sum(v, t, state[0], x)
        return [total, v.two("fadd", t, state[1], lost)]
    return [combined(v, e, state[0], x)]


def with_products(v: Vector, e: Equation, total: str, x: str, y: str, lanes: int) -> str:
    """A plain sum of so many lanes, with the products of two vectors that have as many, or more."""
    t = element_type(e.operands[0].dtype)
    if v.lanes == lanes:
        return v.call("fma", t, x, y, total)
    half = Vector(v.b, v.lanes // 2)
    (x, x_last), (y, y_last) = (_halves(v.b, v.lanes, t, z) for z in (x, y))
    found = half.call("fma", t, x_last, y_last, half.two("fmul", t, x, y))
    while half.lanes > lanes:
        parts = _halves(v.b, half.lanes, t, found)
        half = Vector(v.b, half.lanes // 2)
        found = half.two("fadd", t, *parts)
    return half.two("fadd", t, total, found)


def finished(b: Builder, e: Equation, state: list[str], lanes: int) -> str:
    """The lanes as one value."""
    t = element_type(e.operands[0].dtype)
    while lanes > 1:
        half = Vector(b, lanes // 2)
        parts = [part for x in state for part in _halves(b, lanes, t, x)]
        if len(state) == 2:
            total, lost = _two_sum(half, t, parts[0], parts[1])
            state = [total, half.two("fadd", t, half.two("fadd", t, parts[2], parts[3]), lost)]
        else:
            state = [combined(half, e, parts[0], parts[1])]
        lanes //= 2
    if len(state) == 1:
        return state[0]
    one = Vector(b, 1)
    exact = one.two("fadd", t, state[0], state[1])  # a nan beside an infinite sum
    return one.select(one.two("fcmp ord", t, state[1], state[1]), t, exact, state[0])


def _two_sum(v: Vector, element: str, x: str, y: str) -> tuple[str, str]:
    """The sum and what is rounded away of it (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B)."""
    total = v.two("fadd", element, x, y)
    part = v.two("fsub", element, total, x)
    left = v.two("fsub", element, x, v.two("fsub", element, total, part))
    return total, v.two("fadd", element, left, v.two("fsub", element, y, part))


def _halves(b: Builder, lanes: int, element: str, x: str) -> list[str]:
    half, whole = lanes // 2, f"<{lanes} x {element}>"
    places = [", ".join(f"i32 {first + i}" for i in range(half)) for first in (0, half)]
    return [b(f"shufflevector {whole} {x}, {whole} poison, <{half} x i32> <{p}>") for p in places]
