"""Writes the polynomials of compiled elementary functions, adjoint/compiler/native/elementary/coefficients.py.

    python scripts/coefficients.py            # all, a minute or two
    python scripts/coefficients.py sin tanh   # these alone, printed

Each is the polynomial of least largest error, weighted, found by Remez' exchange (E. Ya. Remez, 1934; J.-M. Muller,
Elementary Functions, 2016, chapter 3) in 300 bits on 60 points per coefficient, and of the lowest degree whose error is
below the bound that is given in bits. Constants that are used as sums, such as pi / 2, are split here as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp

FILE = Path(__file__).parents[1] / "src/adjoint/compiler/native/elementary/coefficients.py"
BITS = {"double": 53, "float": 24}  # of the significands

Function = Callable[[Any], Any]
Entry = tuple[Function, Function, Any, Any]

mp.mp.prec = 300


def solved(xs: list[Any], fs: list[Any], ws: list[Any], count: int) -> tuple[list[Any], Any]:
    """The polynomial whose weighted errors at the count + 1 points are one number with alternating signs; and it."""
    rows = mp.matrix(count + 1, count + 1)
    right = mp.matrix(count + 1, 1)
    for i, (x, f, w) in enumerate(zip(xs, fs, ws, strict=True)):
        power = mp.mpf(1)
        for k in range(count):
            rows[i, k] = power
            power *= x
        rows[i, count] = (-1) ** i / w
        right[i] = f
    solution = mp.lu_solve(rows, right)
    return [solution[k] for k in range(count)], abs(solution[count])


def remez(grid: list[Any], values: list[Any], weights: list[Any], count: int) -> tuple[list[Any], Any]:
    """The best polynomial of `count` coefficients on the grid, and its largest weighted error there."""
    at = [round(i * (len(grid) - 1) / count) for i in range(count + 1)]
    for _ in range(30):
        coefficients, level = solved(*([column[i] for i in at] for column in (grid, values, weights)), count)
        errors = [w * (value(coefficients, x) - f) for x, f, w in zip(grid, values, weights, strict=True)]
        largest = max(abs(e) for e in errors)
        if largest <= level * mp.mpf("1.001"):
            break
        runs: list[int] = []  # the extremum of each run of one sign
        for i, e in enumerate(errors):
            if not runs or (e > 0) != (errors[runs[-1]] > 0):
                runs.append(i)
            elif abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        while len(runs) > count + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < count + 1:
            break
        at = runs
    return coefficients, largest


def value(coefficients: Sequence[Any], x: Any) -> Any:
    """A polynomial at x by Horner's scheme; its constant comes first."""
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def polynomial(f: Function, weight: Function, low: Any, high: Any, bits: int, counts: Sequence[int] = ()) -> list[Any]:
    """Of the lowest degree whose weighted error is below 2^-bits, or of the numbers of coefficients that are given."""
    low, high = mp.mpf(low), mp.mpf(high)
    size = 60 * 20
    # Chebyshev's points, none of them at an end where a quotient has no value
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf(0.5)) / size) for i in range(size)]
    values = [f(x) for x in grid]
    weights = [weight(x) for x in grid]
    for count in counts or range(2, 40):
        coefficients, error = remez(grid, values, weights, count)
        if error < mp.mpf(2) ** -bits:
            return coefficients
    raise ValueError(f"no polynomial of {count} coefficients is within 2^-{bits}")


COUNT, HALF_COUNT = 32, 16  # of pieces


def middles(doubles: bool) -> list[int]:
    """Where pieces have their middles, in steps: those of the second half two steps apart, or all one."""
    return [k if k < HALF_COUNT or not doubles else 2 * k - HALF_COUNT for k in range(COUNT)]


def around_middles(step: Any, doubles: bool) -> list[tuple[Any, Any, Any]]:
    """The middle of each piece, and where it begins and ends from there: a little is rounded."""
    half = step / 2 * mp.mpf("1.0005")
    before, after = ([half * (1 + (doubles and k > end)) for k in range(COUNT)] for end in (HALF_COUNT, HALF_COUNT - 1))
    return [(n * step, -low, high) for n, low, high in zip(middles(doubles), before, after, strict=True)]


def by_powers(step: Any, top: Any, found: Sequence[Sequence[Any]], doubles: bool) -> list[Any]:
    """The step, where the last piece ends, and coefficients: those of one power follow each other.

    Where steps are doubled, pieces are numbered so that the first half of them comes last.
    """
    if doubles:
        found = [*found[HALF_COUNT:], *found[:HALF_COUNT]]
    return [step, top, *[piece[power] for power in range(len(found[0])) for piece in found]]


def settled(piece: Sequence[Any], low: Any, high: Any, weight: Function) -> list[Any]:
    """The polynomial with its first two coefficients rounded, and others that mend what they can of that.

    What is rounded away from the first one is made the same part of the function all over the piece.
    """
    first = rounded(piece[0], BITS["float"])
    piece = [c * first / piece[0] for c in piece]
    second = rounded(piece[1], BITS["float"])
    points = [low + (high - low) * i / 40 for i in range(41)]
    rows = mp.matrix([[weight(t) * t**k for k in range(2, len(piece))] for t in points])
    mended = mp.lu_solve(rows, mp.matrix([weight(t) * t * (piece[1] - second) for t in points]))
    return [first, second, *[c + more for c, more in zip(piece[2:], mended, strict=True)]]


def pieces(f: Function, step: Any, top: Any, count: int, bits: int, doubles: bool) -> list[Any]:
    """The step, the end, and polynomials of an odd function around multiples of the step.

    Errors are relative. The first piece is what is added to x: so it is as exact near zero as elsewhere. From the end
    on the function is 1, rounded: a piece that ends there is 1 at its end, and one that begins there is 1.
    """
    step, top = mp.mpf(step), mp.mpf(top)
    over: Function = lambda t: f(t) / t
    found = []
    for k, (middle, low, high) in enumerate(around_middles(step, doubles)):
        if k == 0:
            piece = polynomial(lambda t: over(t) - 1, lambda t: 1 / over(t), 0, high, bits, [count - 1])
            found.append([mp.mpf(0), *piece])
        elif middle + low > top:
            found.append([mp.mpf(1), *[mp.mpf(0)] * (count - 1)])
        else:
            scale = f(top) if middle + high > top else mp.mpf(1)
            around: Function = lambda t, at=middle, scale=scale: f(at + t) / scale
            weight: Function = lambda t, at=middle: 1 / f(at + t)
            piece = polynomial(around, weight, low, high, bits, [count])
            found.append(settled(piece, low, high, weight))
    return by_powers(step, top, found, doubles)


def summands(f: Function, step: Any, count: int, bits: int, last: Any, doubles: bool) -> list[Any]:
    """As `pieces`, of what is added to something larger: errors are absolute. The last polynomial is a constant."""
    step = mp.mpf(step)
    *others, end = around_middles(step, doubles)
    found = [
        polynomial(lambda t, at=at: f(at + t), lambda t: 1, low if at else 0, high, bits, [count])
        for at, low, high in others
    ]
    found.append([mp.mpf(last)] + [mp.mpf(0)] * (count - 1))
    return by_powers(step, end[0], found, doubles)


def rounded(x: Any, bits: int) -> Any:
    with mp.workprec(bits):
        return +x


def parts(x: Any, bits: int, *sizes: int) -> list[Any]:
    """x as a sum of numbers of so many bits, and one of `bits` at last."""
    out = []
    for size in (*sizes, bits):
        out.append(rounded(x, size))
        x = x - out[-1]
    return out


# --- what there is: a function, the weight of its error, an interval -------------------------------


def of_square(f: Function) -> Function:
    """(f(x) / x - 1) / x^2 as a function of x^2, so that f(x) = x + x^3 p(x^2)."""
    return lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def odd(f: Function, high: Any) -> tuple[Function, Function, Any, Any]:
    """The error relative to f of x + x^3 p(x^2)."""
    return of_square(f), lambda z: z * mp.sqrt(z) / f(mp.sqrt(z)), 0, mp.mpf(high) ** 2


LN2 = mp.log(2)
HALF = LN2 / 2 * mp.mpf("1.0005")  # of the interval of reduced exponents, which rounding makes larger
S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0005")  # f / (2 + f) for 1 + f = sqrt(2)
QUARTER = mp.pi / 4 * mp.mpf("1.01")


def scaled_erfc(u: Any) -> Any:
    x = 4 * (1 + u) / (1 - u)
    return (x + 4) * mp.exp(x * x) * mp.erfc(x)


MIDDLE = mp.mpf(1.125)  # of erf


def erf_tail(end: int) -> Entry:
    """erfc on 1.125 to the end, of the variable from -1 to 1; its error is relative to erf."""

    def at(u: Any) -> Any:
        return ((end + MIDDLE) + (end - MIDDLE) * u) / 2

    return lambda u: mp.erfc(at(u)), lambda u: 1 / mp.erf(at(u)), -1, 1


ROOT = mp.findroot(mp.digamma, 1.5)  # of digamma
LOG_2_PI = mp.log(2 * mp.pi)


def stirling(w: Any) -> Any:
    """What Stirling's formula lacks, times x, of 1 / x^2."""
    x = 1 / mp.sqrt(w)
    return x * (mp.loggamma(x) - (x - mp.mpf(0.5)) * (mp.log(x) - 1) - (LOG_2_PI - 1) / 2)


def digamma_far(w: Any) -> Any:
    """x^2 (log(x) - 1 / (2 x) - digamma(x)), of 1 / x^2."""
    x = 1 / mp.sqrt(w)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / w


def relative(f: Function, low: Any, high: Any) -> Entry:
    """The error relative to the function itself."""
    return f, lambda x: 1 / abs(f(x)), low, high


TABLES: dict[str, Entry | dict[str, Entry]] = {
    # exp(r) = 1 + r + r^2 p(r)
    "exp": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)), -HALF, HALF),
    # the same for |r| <= log(2) / 32, of single precision; the error is relative to exp(r)
    "exp_near": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -HALF / 16, HALF / 16),
    # log(1 + f) = 2 atanh(s) = 2 s + s^3 p(s^2), s = f / (2 + f)
    "log": (lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z / 2, 0, S**2),
    "sin": odd(mp.sin, QUARTER),
    # cos(x) = 1 - x^2 / 2 + x^4 p(x^2)
    "cos": (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)), 0, QUARTER**2),
    # its second term and those that follow, for powers
    "log_tail": (
        lambda z: 2 * ((mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mp.mpf(1) / 3) / z,
        lambda z: z**2 / 2,
        0,
        S**2,
    ),
    "asin": odd(mp.asin, "0.501"),
    "atan": odd(mp.atan, 1),
    "tanh": odd(mp.tanh, "0.65"),
    "sinh": odd(mp.sinh, 1),
    # erf(x) = x + x p(x^2) up to 1.125
    "erf": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), 0, MIDDLE**2),
    "erf_tail": {"double": erf_tail(6), "float": erf_tail(4)},
    # (x + 4) exp(x^2) erfc(x) of (x - 4) / (x + 4) + 3 / 8 from 3/4 to 4, and of (x - 4) / (x + 4) - 3 / 8 from 4 to 28
    "erfcx_left": (lambda v: scaled_erfc(v - 0.375), lambda v: 1 / scaled_erfc(v - 0.375), -0.31, 0.375),
    "erfcx_right": (lambda v: scaled_erfc(v + 0.375), lambda v: 1 / scaled_erfc(v + 0.375), -0.375, 0.375),
    # log(gamma(x)) / ((x - 1) (x - 2)), and digamma over the distance from its root, of x - 2 on 1 to 3
    "gammaln": relative(lambda u: mp.loggamma(2 + u) / (u * (u + 1)), -1, 1),
    "digamma": relative(lambda u: mp.digamma(2 + u) / (2 + u - ROOT), -1, 1),
    # from 3 on, of 1 / x^2
    "stirling": (stirling, lambda w: mp.sqrt(w) / mp.loggamma(1 / mp.sqrt(w)), mp.mpf(10) ** -12, mp.mpf(1) / 9),
    "digamma_far": (digamma_far, lambda w: w / mp.digamma(1 / mp.sqrt(w)), mp.mpf(10) ** -12, mp.mpf(1) / 9),
    # sin(pi r) / (pi r) = 1 + r^2 p(r^2), pi / tan(pi r) = 1 / r + r p(r^2), pi tan(pi r) = r p(r^2)
    "sine_over": (lambda z: (mp.sinpi(mp.sqrt(z)) / (mp.pi * mp.sqrt(z)) - 1) / z, lambda z: 2 * z, 0, mp.mpf(0.25)),
    "cotangent": (lambda z: (mp.pi * mp.cot(mp.pi * mp.sqrt(z)) - 1 / mp.sqrt(z)) / mp.sqrt(z), lambda z: z, 0, 0.07),
    "tangent": relative(lambda z: mp.pi * mp.tan(mp.pi * mp.sqrt(z)) / mp.sqrt(z), 0, 0.07),
    # where iterations begin, on 1 / 2^1.5 to 2^1.5
    "cbrt": (lambda g: g ** (-mp.mpf(1) / 3), lambda g: mp.cbrt(g), mp.mpf(2) ** -1.51, mp.mpf(2) ** 1.51),
}
SPLIT: dict[str, Callable[[int], list[Any]]] = {
    "LN2": lambda bits: parts(LN2, bits, bits),
    "LOG2_E": lambda bits: parts(1 / LN2, bits, bits),
    "LOG10_E": lambda bits: parts(1 / mp.log(10), bits, bits),
    "LOG10_2": lambda bits: parts(LN2 / mp.log(10), bits, bits),
    "TWO_THIRDS": lambda bits: parts(mp.mpf(2) / 3, bits, bits),
    "HALF_PI": lambda bits: parts(mp.pi / 2, bits, bits, bits),
    "STIRLING": lambda bits: parts((LOG_2_PI - 1) / 2, bits, bits),
    "DIGAMMA_ROOT": lambda bits: parts(ROOT, bits, bits),
}
# functions that are 1 in single precision from the end on: the function, the step, the end, coefficients, bits of the
# error, and whether steps are doubled in the second half; steps are powers of two, so that middles are found by sums
PIECES: dict[str, tuple[Function, Any, Any, int, int, bool]] = {
    "tanh_pieces": (mp.tanh, 0.25, 9.25, 6, 24, True),
    "erf_pieces": (mp.erf, 0.125, 3.92, 5, 24, False),
}
SUMMANDS: dict[str, tuple[Function, Any, int, int, float, bool]] = {
    "normal_pieces": (lambda x: mp.erf(x / mp.sqrt(2)) / 2, 0.125, 5, 27, 0.5, True),
}
# the bound of the error: bits below half a unit in the last place, or these
SLACK = {"double": 7, "float": 5}
ACCURACY = {
    ("exp_near", "float"): 27,
    **{("cbrt", kind): 9 for kind in BITS},
    **{("log_tail", kind): bits for kind, bits in (("double", 68), ("float", 36))},
    **{("erf_tail", kind): bits for kind, bits in (("double", 56), ("float", 27))},
}


def table(name: str, kind: str) -> list[Any]:
    if name in SPLIT:
        return SPLIT[name](BITS[kind])
    if name in PIECES:
        return pieces(*PIECES[name])
    if name in SUMMANDS:
        return summands(*SUMMANDS[name])
    entry = TABLES[name]
    f, weight, low, high = entry[kind] if isinstance(entry, dict) else entry
    return polynomial(f, weight, low, high, ACCURACY.get((name, kind), BITS[kind] + SLACK[kind]))


def number(x: Any, bits: int) -> str:
    return repr(float(rounded(x, bits)))


def shown(name: str, kind: str) -> str:
    """The entry of one table as Python, in lines of up to 120 characters."""
    lines, line = [f'    ("{name}", "{kind}"): ('], "       "
    for x in table(name, kind):
        text = f" {number(x, BITS[kind])},"
        if len(line) + len(text) > 118:
            lines.append(line)
            line = "       "
        line += text
    return "\n".join([*lines, line, "    ),"])


def two_over_pi() -> str:
    """The first 1280 bits of 2 / pi behind 64 zeros, in words."""
    with mp.workprec(1400):
        bits = int(mp.floor(mp.ldexp(2 / mp.pi, 1280)))
    words = [0] + [bits >> (1280 - 64 * k) & (1 << 64) - 1 for k in range(1, 21)]
    lines = []
    for i in range(0, len(words), 4):
        lines.append("    " + ", ".join(f"0x{word:016X}" for word in words[i : i + 4]) + ",")
    return "\n".join(["TWO_OVER_PI = (", *lines, ")  # fmt: skip"])


HEAD = '''\
"""Polynomials and constants of elementary functions: written by `python scripts/coefficients.py`, which says of what.

Coefficients are from the lowest power on. Constants in parts are sums, from the largest part on.
"""

from __future__ import annotations

TABLES: dict[tuple[str, str], tuple[float, ...]] = {
'''


def main(names: list[str]) -> None:
    chosen, single = names or [*SPLIT, *TABLES, *PIECES, *SUMMANDS], {"exp_near", *PIECES, *SUMMANDS}
    entries = [shown(name, kind) for name in chosen for kind in BITS if kind == "float" or name not in single]
    if names:
        print("\n".join(entries))
        return
    FILE.write_text(HEAD + "\n".join(entries) + "\n}  # fmt: skip\n\n" + two_over_pi() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
