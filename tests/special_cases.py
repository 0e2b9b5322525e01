"""What the array API standard 2025.12 says of infinities, nan and signed zeros, as tables.

A line is a call: operands, `->`, results. Zeros and infinities have their signs. `p`, `n` stand for positive and
negative finite numbers, `x` for finite ones of either sign, each without zero; `z` for both zeros, `i` for both
infinities, `any` for all of these and nan. Operands of complex functions are pairs, real part first; in a result `?`
before a number leaves its sign open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

SETS: dict[str, tuple[float, ...]] = {
    "p": (0.25, 2.0, 3.5),
    "n": (-0.25, -2.0, -3.5),
    "x": (0.75, -0.75, 2.5),
    "z": (0.0, -0.0),
    "i": (math.inf, -math.inf),
    "any": (0.0, -0.0, 1.0, -1.0, 2.5, -2.5, math.inf, -math.inf, math.nan),
    "odd": (1.0, 3.0, 5.0),
    "-odd": (-1.0, -3.0, -5.0),
    "even": (2.0, 4.0, 0.5, 1.5),
    "-even": (-2.0, -4.0, -0.5, -1.5),
    "big": (1.5, -1.5, 7.0, math.inf, -math.inf),
    "small": (0.5, -0.5, 0.0, -0.0),
    "pi": (math.pi,),
    "pi/2": (math.pi / 2,),
    "pi/4": (math.pi / 4,),
    "3pi/4": (3 * math.pi / 4,),
}
Row = tuple[tuple[float, ...], tuple[str, ...]]


def values(word: str) -> tuple[float, ...]:
    """The numbers that a word of the tables stands for."""
    if word in SETS:
        return SETS[word]
    if word[0] == "-" and word[1:] in SETS:
        return tuple(-v for v in SETS[word[1:]])
    return (float(word),)


def rows(table: str) -> Iterator[Row]:
    """Operands and the words of results of each call in a table."""
    for line in filter(None, map(str.strip, table.split("\n"))):
        left, right = line.split("->")
        for operands in itertools.product(*map(values, left.split())):
            yield operands, tuple(right.split())


_ODD = "nan -> nan\n0 -> 0\n-0 -> -0"
_LOG = "nan -> nan\nn -> nan\n-inf -> nan\n0 -> -inf\n-0 -> -inf\ninf -> inf"

UNARY: dict[str, str] = {
    "abs": "nan -> nan\n-0 -> 0\n-inf -> inf\ninf -> inf",
    "acos": "nan -> nan\nbig -> nan\n1 -> 0",
    "acosh": "nan -> nan\nn -> nan\nsmall -> nan\n-inf -> nan\n1 -> 0\ninf -> inf",
    "asin": _ODD + "\nbig -> nan",
    "asinh": _ODD + "\ninf -> inf\n-inf -> -inf",
    "atan": _ODD + "\ninf -> pi/2\n-inf -> -pi/2",
    "atanh": _ODD + "\nbig -> nan\n1 -> inf\n-1 -> -inf",
    "ceil": _ODD + "\ninf -> inf\n-inf -> -inf\n-0.5 -> -0\n3 -> 3",
    "cos": "nan -> nan\nz -> 1\ni -> nan",
    "cosh": "nan -> nan\nz -> 1\ni -> inf",
    "exp": "nan -> nan\nz -> 1\ninf -> inf\n-inf -> 0",
    "expm1": _ODD + "\ninf -> inf\n-inf -> -1",
    "floor": _ODD + "\ninf -> inf\n-inf -> -inf\n-0.5 -> -1\n3 -> 3",
    "isfinite": "nan -> 0\ni -> 0\nx -> 1\nz -> 1",
    "isinf": "nan -> 0\ni -> 1\nx -> 0\nz -> 0",
    "isnan": "nan -> 1\ni -> 0\nx -> 0\nz -> 0",
    "log": _LOG + "\n1 -> 0",
    "log1p": _ODD + "\n-2 -> nan\n-inf -> nan\n-1 -> -inf\ninf -> inf",
    "log2": _LOG + "\n1 -> 0\n8 -> 3",
    "log10": _LOG + "\n1 -> 0\n100 -> 2",
    "negative": "nan -> nan\n0 -> -0\n-0 -> 0\ninf -> -inf",
    "positive": _ODD + "\ninf -> inf",
    "reciprocal": "nan -> nan\n0 -> inf\n-0 -> -inf\ninf -> 0\n-inf -> -0",
    "round": _ODD + "\ninf -> inf\n-inf -> -inf\n0.5 -> 0\n-0.5 -> -0\n1.5 -> 2\n2.5 -> 2\n-2.5 -> -2",
    "sign": "nan -> nan\nz -> 0\np -> 1\ninf -> 1\nn -> -1\n-inf -> -1",
    "signbit": "0 -> 0\n-0 -> 1\np -> 0\nn -> 1\ninf -> 0\n-inf -> 1\nnan -> 0\n-nan -> 1",
    "sin": _ODD + "\ni -> nan",
    "sinh": _ODD + "\ninf -> inf\n-inf -> -inf",
    "sqrt": _ODD + "\nn -> nan\n-inf -> nan\ninf -> inf",
    "square": "nan -> nan\nz -> 0\ni -> inf",
    "tan": _ODD + "\ni -> nan",
    "tanh": _ODD + "\ninf -> 1\n-inf -> -1",
    "trunc": _ODD + "\ninf -> inf\n-inf -> -inf\n-0.5 -> -0\n0.5 -> 0\n3 -> 3",
}

_NANS = "nan any -> nan\nany nan -> nan\n"

BINARY: dict[str, str] = {
    "add": _NANS
    + """inf -inf -> nan
        -inf inf -> nan
        inf inf -> inf
        -inf -inf -> -inf
        inf x -> inf
        -inf x -> -inf
        x inf -> inf
        x -inf -> -inf
        -0 -0 -> -0
        -0 0 -> 0
        0 z -> 0
        2.5 -2.5 -> 0
        z 2.5 -> 2.5
        2.5 z -> 2.5""",
    "subtract": _NANS
    + "inf inf -> nan\n-inf -inf -> nan\ninf -inf -> inf\nx inf -> -inf\n-0 0 -> -0\n0 -0 -> 0\n0 0 -> 0",
    "multiply": _NANS
    + """i z -> nan
        z i -> nan
        inf inf -> inf
        -inf -inf -> inf
        inf -inf -> -inf
        inf p -> inf
        inf n -> -inf
        -inf p -> -inf
        n -inf -> inf
        p -0 -> -0
        n -0 -> 0""",
    "divide": _NANS
    + """i i -> nan
        z z -> nan
        0 p -> 0
        -0 p -> -0
        0 n -> -0
        -0 n -> 0
        p 0 -> inf
        p -0 -> -inf
        n 0 -> -inf
        n -0 -> inf
        inf p -> inf
        inf n -> -inf
        -inf p -> -inf
        -inf n -> inf
        p inf -> 0
        p -inf -> -0
        n inf -> -0
        n -inf -> 0""",
    "floor_divide": _NANS
    + """i i -> nan
        z z -> nan
        0 p -> 0
        -0 p -> -0
        0 n -> -0
        -0 n -> 0
        p 0 -> inf
        p -0 -> -inf
        n 0 -> -inf
        n -0 -> inf
        inf p -> inf
        inf n -> -inf
        -inf p -> -inf
        -inf n -> inf
        p inf -> 0
        p -inf -> -0
        n inf -> -0
        n -inf -> 0
        1 2 -> 0
        -1 -2 -> 0
        -0.5 2 -> -1
        0.5 -2 -> -1""",
    "remainder": _NANS
    + """i i -> nan
        z z -> nan
        z p -> 0
        z n -> -0
        p z -> nan
        n z -> nan
        i x -> nan
        2.5 inf -> 2.5
        2.5 -inf -> -inf
        -2.5 inf -> inf
        -2.5 -inf -> -2.5""",
    "pow": """x nan -> nan
        i nan -> nan
        z nan -> nan
        any z -> 1
        nan x -> nan
        nan i -> nan
        big inf -> inf
        big -inf -> 0
        1 i -> 1
        -1 i -> 1
        1 any -> 1
        small inf -> 0
        small -inf -> inf
        inf p -> inf
        inf n -> 0
        -inf odd -> -inf
        -inf even -> inf
        -inf -odd -> -0
        -inf -even -> 0
        0 p -> 0
        0 n -> inf
        -0 odd -> -0
        -0 even -> 0
        -0 -odd -> -inf
        -0 -even -> inf
        n 0.5 -> nan
        n -1.5 -> nan""",
    "atan2": _NANS
    + """p z -> pi/2
        0 p -> 0
        0 0 -> 0
        0 -0 -> pi
        0 n -> pi
        -0 p -> -0
        -0 0 -> -0
        -0 -0 -> -pi
        -0 n -> -pi
        n z -> -pi/2
        p inf -> 0
        p -inf -> pi
        n inf -> -0
        n -inf -> -pi
        inf x -> pi/2
        -inf x -> -pi/2
        inf inf -> pi/4
        inf -inf -> 3pi/4
        -inf inf -> -pi/4
        -inf -inf -> -3pi/4""",
    "copysign": """2.5 n -> -2.5
        -2.5 p -> 2.5
        2.5 -0 -> -2.5
        -2.5 0 -> 2.5
        0 -inf -> -0
        -0 inf -> 0
        -inf 0 -> inf
        inf -0 -> -inf
        nan any -> nan
        2.5 nan -> 2.5
        2.5 -nan -> -2.5""",
    "hypot": """i any -> inf
        any i -> inf
        x nan -> nan
        nan x -> nan
        z nan -> nan
        nan z -> nan
        z 2.5 -> 2.5
        -2.5 z -> 2.5
        z z -> 0
        3 4 -> 5""",
    "logaddexp": _NANS
    + "inf x -> inf\nx inf -> inf\n-inf -inf -> -inf\ninf inf -> inf\n-inf 2.5 -> 2.5\n2.5 -inf -> 2.5",
    "maximum": _NANS + "inf x -> inf\n-inf 2.5 -> 2.5\n1 2 -> 2\n-inf -inf -> -inf",
    "minimum": _NANS + "-inf x -> -inf\ninf 2.5 -> 2.5\n1 2 -> 1\ninf inf -> inf",
    "nextafter": _NANS + "0 -0 -> -0\n-0 0 -> 0\n0 0 -> 0\n2.5 2.5 -> 2.5\ninf inf -> inf",
    "equal": "nan any -> 0\nany nan -> 0\ninf inf -> 1\n-inf -inf -> 1\ninf -inf -> 0\nz z -> 1\nx inf -> 0",
    "not_equal": "nan any -> 1\nany nan -> 1\ninf inf -> 0\n-inf -inf -> 0\ninf -inf -> 1\nz z -> 0\nx inf -> 1",
    "less": "nan any -> 0\nany nan -> 0\nx inf -> 1\n-inf x -> 1\ninf inf -> 0\nz z -> 0",
    "less_equal": "nan any -> 0\nany nan -> 0\nx inf -> 1\n-inf x -> 1\ninf inf -> 1\nz z -> 1",
    "greater": "nan any -> 0\nany nan -> 0\nx inf -> 0\n-inf x -> 0\ninf inf -> 0\nz z -> 0",
    "greater_equal": "nan any -> 0\nany nan -> 0\nx inf -> 0\ninf x -> 1\ninf inf -> 1\nz z -> 1",
}

# f(conj z) is conj f(z) for all of these; so imaginary parts here have no minus
_TANH = """0 0 -> 0 0
    x inf -> nan nan
    x nan -> nan nan
    inf p -> 1 0
    inf inf -> 1 ?0
    inf nan -> 1 ?0
    nan 0 -> nan 0
    nan x -> nan nan
    nan nan -> nan nan
    0 nan -> 0 nan
    0 inf -> 0 nan"""
COMPLEX: dict[str, str] = {
    "acos": """z 0 -> pi/2 -0
        z nan -> pi/2 nan
        x inf -> pi/2 -inf
        x nan -> nan nan
        -inf 2.5 -> pi -inf
        inf 2.5 -> 0 -inf
        -inf inf -> 3pi/4 -inf
        inf inf -> pi/4 -inf
        i nan -> nan ?inf
        nan x -> nan nan
        nan inf -> nan -inf
        nan nan -> nan nan
        z inf -> pi/2 -inf
        nan z -> nan nan""",
    "acosh": """z 0 -> 0 pi/2
        x inf -> inf pi/2
        0 nan -> nan ?pi/2
        x nan -> nan nan
        -inf p -> inf pi
        inf p -> inf 0
        -inf inf -> inf 3pi/4
        inf inf -> inf pi/4
        i nan -> inf nan
        nan x -> nan nan
        nan inf -> inf nan
        nan nan -> nan nan
        z inf -> inf pi/2
        nan z -> nan nan""",
    "asinh": """0 0 -> 0 0
        p inf -> inf pi/2
        x nan -> nan nan
        inf p -> inf 0
        inf inf -> inf pi/4
        inf nan -> inf nan
        nan 0 -> nan 0
        nan x -> nan nan
        nan inf -> ?inf nan
        nan nan -> nan nan
        z nan -> nan nan""",
    "atanh": """0 0 -> 0 0
        0 nan -> 0 nan
        1 0 -> inf 0
        p inf -> 0 pi/2
        x nan -> nan nan
        inf p -> 0 pi/2
        inf inf -> 0 pi/2
        inf nan -> 0 nan
        nan x -> nan nan
        nan inf -> ?0 pi/2
        nan nan -> nan nan
        nan z -> nan nan""",
    "cosh": """0 0 -> 1 0
        0 inf -> nan ?0
        0 nan -> nan ?0
        x inf -> nan nan
        x nan -> nan nan
        inf 0 -> inf 0
        inf 0.75 -> inf inf
        inf inf -> ?inf nan
        inf nan -> inf nan
        nan 0 -> nan ?0
        nan x -> nan nan
        nan nan -> nan nan
        nan z -> nan ?0
        inf 4 -> -inf -inf""",
    "exp": """z 0 -> 1 0
        x inf -> nan nan
        x nan -> nan nan
        inf 0 -> inf 0
        -inf 0.75 -> 0 0
        inf 0.75 -> inf inf
        -inf inf -> ?0 ?0
        inf inf -> ?inf nan
        -inf nan -> ?0 ?0
        inf nan -> ?inf nan
        nan 0 -> nan 0
        nan x -> nan nan
        nan nan -> nan nan
        z inf -> nan nan
        z nan -> nan nan
        nan i -> nan nan
        -inf 4 -> -0 -0""",
    "expm1": """z 0 -> 0 0
        x inf -> nan nan
        x nan -> nan nan
        inf 0 -> inf 0
        -inf 0.75 -> -1 0
        inf 0.75 -> inf inf
        -inf inf -> -1 ?0
        inf inf -> ?inf nan
        -inf nan -> -1 ?0
        inf nan -> ?inf nan
        nan 0 -> nan 0
        nan x -> nan nan
        nan nan -> nan nan
        z inf -> nan nan
        z nan -> nan nan
        nan i -> nan nan
        -inf 4 -> -1 -0""",
    "log": """-0 0 -> -inf pi
        0 0 -> -inf 0
        x inf -> inf pi/2
        x nan -> nan nan
        -inf p -> inf pi
        inf p -> inf 0
        -inf inf -> inf 3pi/4
        inf inf -> inf pi/4
        i nan -> inf nan
        nan x -> nan nan
        nan inf -> inf nan
        nan nan -> nan nan
        z inf -> inf pi/2
        z nan -> nan nan
        nan z -> nan nan""",
    "log1p": """-1 0 -> -inf 0
        x inf -> inf pi/2
        x nan -> nan nan
        -inf p -> inf pi
        inf p -> inf 0
        -inf inf -> inf 3pi/4
        inf inf -> inf pi/4
        i nan -> inf nan
        nan x -> nan nan
        nan inf -> inf nan
        nan nan -> nan nan
        z inf -> inf pi/2
        z nan -> nan nan
        nan z -> nan nan""",
    "sign": "z 0 -> 0 ?0\nnan any -> nan nan\nany nan -> nan nan\n0 2.5 -> 0 1\n-2.5 0 -> -1 0",
    "sinh": """0 0 -> 0 0
        0 inf -> ?0 nan
        0 nan -> ?0 nan
        x inf -> nan nan
        x nan -> nan nan
        inf 0 -> inf 0
        inf 0.75 -> inf inf
        inf inf -> ?inf nan
        inf nan -> ?inf nan
        nan 0 -> nan 0
        nan x -> nan nan
        nan nan -> nan nan
        inf 4 -> -inf -inf""",
    "sqrt": """z 0 -> 0 0
        any inf -> inf inf
        x nan -> nan nan
        -inf p -> 0 inf
        inf p -> inf 0
        -inf nan -> nan ?inf
        inf nan -> inf nan
        nan x -> nan nan
        nan nan -> nan nan
        z nan -> nan nan
        nan z -> nan nan""",
    "tanh": _TANH,
    "isnan": "nan any -> 1\nany nan -> 1\nx i -> 0\ni x -> 0",
    "isinf": "i any -> 1\nany i -> 1\nx nan -> 0\nnan x -> 0",
    "isfinite": "i any -> 0\nany i -> 0\nnan any -> 0\nx z -> 1",
    "abs": "i any -> inf\nany i -> inf\nnan x -> nan\nx nan -> nan\nz z -> 0",
}
# the same but for the base, by which infinite and nan results do not differ: angles are left to the test of values
_ANGLES = ("pi", "pi/2", "pi/4", "3pi/4")
for _name in ("log2", "log10"):
    COMPLEX[_name] = "\n".join(line for line in COMPLEX["log"].split("\n") if line.split()[-1] not in _ANGLES)


# functions along an axis: the elements, and the result
REDUCTIONS: dict[str, str] = {
    "sum": "-> 0\nnan 1 -> nan\ninf -inf -> nan\ninf 1 -> inf\n-0 -0 -> ?0\n1 2 -> 3",
    "prod": "-> 1\nnan 1 -> nan\ninf 0 -> nan\ninf -1 -> -inf",
    "max": "nan 1 -> nan\n1 nan -> nan\n-inf 1 -> 1\n-inf -inf -> -inf",
    "min": "nan 1 -> nan\n1 nan -> nan\ninf 1 -> 1\ninf inf -> inf",
    "mean": "-> nan\nnan 1 -> nan\ninf 1 -> inf\ninf -inf -> nan\n1 2 -> 1.5",
    "var": "-> nan\nnan 1 -> nan\n1 1 -> 0\n2 -> 0",
    "std": "-> nan\nnan 1 -> nan\n1 1 -> 0\n2 -> 0",
    "any": "-> 0\nnan -> 1\n0 -0 -> 0\n0 inf -> 1",
    "all": "-> 1\nnan -> 1\n1 -0 -> 0\n-inf inf -> 1",
    "count_nonzero": "-> 0\nnan inf 0 -0 1 -> 3",
    "argmax": "1 nan 2 -> 1\n-inf -inf -> 0\n1 inf -> 1",
    "argmin": "1 nan 2 -> 1\ninf inf -> 0\n1 -inf -> 1",
    "cumulative_sum": "1 nan 2 -> 1 nan nan\ninf -inf 1 -> inf nan nan\n1 2 -> 1 3",
    "cumulative_prod": "2 nan 2 -> 2 nan nan\ninf 0 1 -> inf nan nan\n2 3 -> 2 6",
    "sort": "nan 1 -inf inf -> -inf 1 inf nan\n2 nan 1 -> 1 2 nan",
    "unique_values": "nan 1 nan -> 1 nan nan\n-0 0 1 -> ?0 1",
    "diff": "inf inf 1 -> nan -inf\n1 nan 2 -> nan nan",
}
