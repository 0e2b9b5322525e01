"""Trigonometric functions and their inverses.

The reduction of arguments is that of Cody and Waite, 1980, with pi / 2 in three parts; for large ones it is that of
M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, SIGNUM 18, 1983.
"""

from __future__ import annotations

import math

from adjoint.compiler.native.elementary.code import Code, Value, constant
from adjoint.compiler.native.elementary.coefficients import TABLES, TWO_OVER_PI

# where n pi / 2 is no longer exact enough with three parts of pi / 2
_LARGE = {"double": 2.0**28, "float": 2.0**15}

_SYMBOL = "adjoint_reduced_by_half_pi"


def _large_reduction() -> str:
    """x = n pi / 2 + high + low, of large x of double precision, exact: a function of single numbers.

    With x = M 2^E, bits of 2 / pi whose product with x is a multiple of 4 are left out; the next 192 give n mod 4 and a
    fraction of 190 bits, of which no double has more than 62 zeros behind the point.
    """
    high, low = (constant(v, "double") for v in TABLES["HALF_PI", "double"][:2])
    words = ", ".join(f"i64 {word}" for word in TWO_OVER_PI)
    return f"""\
@{_SYMBOL}_bits = internal constant [{len(TWO_OVER_PI)} x i64] [{words}]

define internal {{ double, double, i64 }} @{_SYMBOL}(double %x) {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %field = and i64 %shifted, 2047
  %fraction = and i64 %bits, {(1 << 52) - 1}
  %m = or i64 %fraction, {1 << 52}
  ; the first bit that counts, behind the 64 zeros; what is small is not used
  %place = sub i64 %field, {1075 + 2 - 64}
  %p = call i64 @llvm.smax.i64(i64 %place, i64 0)
  %word = lshr i64 %p, 6
  %by = and i64 %p, 63
  %at0 = getelementptr i64, ptr @{_SYMBOL}_bits, i64 %word
  %at1 = getelementptr i64, ptr %at0, i64 1
  %at2 = getelementptr i64, ptr %at0, i64 2
  %at3 = getelementptr i64, ptr %at0, i64 3
  %t0 = load i64, ptr %at0
  %t1 = load i64, ptr %at1
  %t2 = load i64, ptr %at2
  %t3 = load i64, ptr %at3
  %w2 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %by)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %by)
  %w0 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %by)
  ; the product modulo 2^192, without its last 64 bits
  %mm = zext i64 %m to i128
  %v0 = zext i64 %w0 to i128
  %v1 = zext i64 %w1 to i128
  %a = mul i128 %mm, %v0
  %b = mul i128 %mm, %v1
  %c = mul i64 %m, %w2
  %carry = lshr i128 %a, 64
  %cc = zext i64 %c to i128
  %top = shl i128 %cc, 64
  %d = add i128 %b, %carry
  %total = add i128 %d, %top
  ; the nearest multiple of pi / 2
  %half = add i128 %total, {1 << 125}
  %q = lshr i128 %half, 126
  %whole = shl i128 %q, 126
  %rest = sub i128 %total, %whole
  %negative = icmp slt i128 %rest, 0
  %opposite = sub i128 0, %rest
  %size = select i1 %negative, i128 %opposite, i128 %rest
  ; 53 bits, which are exact, and the next 64
  %upper = lshr i128 %size, 75
  %u = trunc i128 %upper to i64
  %lower = lshr i128 %size, 11
  %l = trunc i128 %lower to i64
  %uf = sitofp i64 %u to double
  %lf = uitofp i64 %l to double
  %f1 = fmul double %uf, {constant(2.0**-51, "double")}
  %f2 = fmul double %lf, {constant(2.0**-115, "double")}
  %f = fadd double %f1, %f2
  %g = fsub double %f1, %f
  %e = fadd double %g, %f2
  ; times pi / 2
  %r = fmul double %f, {high}
  %n = fneg double %r
  %r1 = call double @llvm.fma.f64(double %f, double {high}, double %n)
  %r2 = call double @llvm.fma.f64(double %f, double {low}, double %r1)
  %r3 = call double @llvm.fma.f64(double %e, double {high}, double %r2)
  %sign = icmp slt i64 %bits, 0
  %flip = xor i1 %sign, %negative
  %nr = fneg double %r
  %nr3 = fneg double %r3
  %high = select i1 %flip, double %nr, double %r
  %low = select i1 %flip, double %nr3, double %r3
  %quadrant = trunc i128 %q to i64
  %other = sub i64 0, %quadrant
  %n4 = select i1 %sign, i64 %other, i64 %quadrant
  %s0 = insertvalue {{ double, double, i64 }} poison, double %high, 0
  %s1 = insertvalue {{ double, double, i64 }} %s0, double %low, 1
  %s2 = insertvalue {{ double, double, i64 }} %s1, i64 %n4, 2
  ret {{ double, double, i64 }} %s2
}}
"""


def _reduced_lanes(c: Code, x: Value) -> list[Value]:
    """The reduction of large arguments, lane by lane."""
    c.helpers[_SYMBOL] = _large_reduction()
    form = c.format
    results = [c.lift(0.0), c.lift(0.0), c.lift(0, form.whole)]
    single = c.kind == "float"
    pair = "{ double, double, i64 }"

    def line(text: str) -> str:
        name = "%" + c.fresh()
        c.lines.append(f"  {name} = {text}")
        return name

    for lane in range(c.lanes):
        element = line(f"extractelement {x.typed}, i32 {lane}")
        wide = line(f"fpext float {element} to double") if single else element
        reduced = line(f"call {pair} @{_SYMBOL}(double {wide})")
        high, low, n = (line(f"extractvalue {pair} {reduced}, {i}") for i in range(3))
        if single:
            total = line(f"fadd double {high}, {low}")
            high = line(f"fptrunc double {total} to float")
            back = line(f"fpext float {high} to double")
            low = line(f"fptrunc double {line(f'fsub double {total}, {back}')} to float")
            n = line(f"trunc i64 {n} to i32")
        results = [
            c.value(f"insertelement {old.typed}, {old.kind} {new}, i32 {lane}", old.kind)
            for old, new in zip(results, (high, low, n), strict=True)
        ]
    return results


def reduced(c: Code, x: Value) -> tuple[Value, Value, Value]:
    """high, low and n modulo 4: x = n pi / 2 + high + low, |high| <= pi / 4."""
    p1, p2, p3 = c.table("HALF_PI")
    n, whole = c.rounded(x, 2.0 / math.pi)
    first = c.fma(n, -p1, x)  # exact: a multiple of the last bit of p1, and less than 1
    product, rest = c.two_product(p2, n)
    high, error = c.two_sum(first, -product)
    high, low = c.fast_two_sum(high, error - c.fma(n, p3, rest))
    large = abs(x) >= _LARGE[c.kind]
    usual = [high, low, whole]
    high, low, whole = c.seldom(
        large, usual, lambda: [c.select(large, y, z) for y, z in zip(_reduced_lanes(c, x), usual, strict=True)]
    )
    return high, low, whole


def _sine(c: Code, r: Value, low: Value) -> tuple[Value, Value]:
    """sin(r + low) as r and what is added to it."""
    square = r * r
    return r, c.fma(r * square, c.polynomial("sin", square), low)


def _cosine(c: Code, r: Value, low: Value) -> tuple[Value, Value]:
    square = r * r
    half = 0.5 * square
    first = 1.0 - half
    rest = (1.0 - first) - half
    return first, rest + c.fma(square * square, c.polynomial("cos", square), -(r * low))


def _sine_or_cosine(c: Code, x: Value, shift: int) -> Value:
    r, low, n = reduced(c, x)
    n = n + shift if shift else n
    sine, more = _sine(c, r, low)
    cosine, less = _cosine(c, r, low)
    odd = (n & 1).equals(1)
    y = c.select(odd, cosine + less, sine + more)
    # the second bit of n is the sign
    sign = (n & 2) << (c.format.stored + (11 if c.kind == "double" else 8) - 1)
    return c.select(abs(x) < math.inf, c.number(c.pattern(y) ^ sign), x - x)


def sin(c: Code, x: Value) -> Value:
    return c.select(abs(x) < c.format.normal, x, _sine_or_cosine(c, x, 0))


def cos(c: Code, x: Value) -> Value:
    return _sine_or_cosine(c, x, 1)


def tan(c: Code, x: Value) -> Value:
    """The quotient of sine and cosine, both as sums."""
    r, low, n = reduced(c, x)
    odd = (n & 1).equals(1)
    sine, more = c.fast_two_sum(*_sine(c, r, low))
    cosine, less = c.fast_two_sum(*_cosine(c, r, low))
    above, above_low = c.select(odd, -cosine, sine), c.select(odd, -less, more)
    below, below_low = c.select(odd, sine, cosine), c.select(odd, more, less)
    inverse = 1.0 / below
    quotient = above * inverse
    residual = c.fma(-quotient, below, above) + (above_low - quotient * below_low)
    y = c.fma(residual, inverse, quotient)
    y = c.select(abs(x) < math.inf, y, x - x)
    return c.select(abs(x) < c.format.normal, x, y)


# --- inverse functions ---------------------------------------------------------------------------


def _pi_over_two(c: Code) -> tuple[float, float]:
    first, last, _ = c.table("HALF_PI")
    return first, last


def _arcsine(c: Code, x: Value, square: Value) -> Value:
    """asin(x) - x for |x| <= 1/2."""
    return x * square * c.polynomial("asin", square)


def _from_one(c: Code, size: Value) -> tuple[Value, Value]:
    """asin(sqrt((1 - |x|) / 2)) as a sum."""
    half = 0.5 - 0.5 * size
    root = c.sqrt(half)
    low = c.select(root > 0.0, c.fma(-root, root, half) / (root + root), 0.0)
    return root, _arcsine(c, root, half) + low


def asin(c: Code, x: Value) -> Value:
    """Beyond 1/2, pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    size = abs(x)
    high, low = _pi_over_two(c)
    near = x + _arcsine(c, x, x * x)
    root, rest = _from_one(c, size)
    far = high - (2.0 * root - c.fma(rest, -2.0, low))
    return c.select(size < 0.5, near, c.copysign(far, x))


def acos(c: Code, x: Value) -> Value:
    size = abs(x)
    high, low = _pi_over_two(c)
    near = high - (x - (low - _arcsine(c, x, x * x)))
    root, rest = _from_one(c, size)
    twice = 2.0 * (root + rest)
    far = c.select(x < 0.0, 2.0 * (high - (root - (low - rest))), twice)
    return c.select(size < 0.5, near, far)


def _arctangent(c: Code, above: Value, below: Value, sign: Value, left: Value | None = None) -> Value:
    """The angle of (below, above), which are not negative; with the second's sign taken as that of `left`."""
    high, low = _pi_over_two(c)
    steep = above > below
    small, large = c.select(steep, below, above), c.select(steep, above, below)
    quotient = small / large
    rest = c.fma(-quotient, large, small) / large
    same = small.equals(large)  # of two zeros or infinities
    quotient = c.select(same, c.select(large.equals(0.0), 0.0, 1.0), quotient)
    rest = c.select(same | ~(large < math.inf), 0.0, rest)
    square = quotient * quotient
    # the slope of the arctangent, for the quotient's own rounding error
    rest = rest / (1.0 + square) + quotient * square * c.polynomial("atan", square)
    # the angle is a multiple of pi / 2 plus or minus that
    turned = steep if left is None else steep | left
    base = c.select(steep, high, c.select(turned, 2.0 * high, 0.0))
    base_low = c.select(steep, low, c.select(turned, 2.0 * low, 0.0))
    flip = turned if left is None else steep ^ left
    term, term_low = c.select(flip, -quotient, quotient), c.select(flip, -rest, rest)
    total, error = c.fast_two_sum(base, term)
    return c.copysign(total + (error + (base_low + term_low)), sign)


def atan(c: Code, x: Value) -> Value:
    y = _arctangent(c, abs(x), c.lift(1.0), x)
    return c.select(x.is_nan(), x, y)


def atan2(c: Code, y: Value, x: Value) -> Value:
    left = c.pattern(x) < 0
    above, below = abs(y), abs(x)
    # quotients of subnormal numbers have rounding errors that are none
    limit = 2.0 ** (-c.format.bias + 3 * c.format.bits)
    scale = c.select(c.select(above > below, above, below) < limit, 2.0 ** (4 * c.format.bits), 1.0)
    angle = _arctangent(c, above * scale, below * scale, y, left)
    return c.select(x.is_nan() | y.is_nan(), x + y, angle)
