"""Functions of vectors as LLVM IR, written with Python's operators.

A `Value` is a vector of one kind, `double`, `float`, `i64`, `i32`, or `i1` for truths. Its operators append an
instruction to the `Code` of the function, and Python numbers beside it are constants of its kind. So a formula reads as
in NumPy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np

from adjoint.compiler.native.elementary.coefficients import TABLES

_PIECES = 32  # of functions that have polynomials in pieces
_SUFFIX = {"double": "f64", "float": "f32"}
_COMPARISONS = {"lt": ("olt", "slt"), "le": ("ole", "sle"), "gt": ("ogt", "sgt"), "ge": ("oge", "sge")}


def constant(value: float, kind: str) -> str:
    """A literal of LLVM: bits of the double, also of a single."""
    if kind[0] == "i":
        return str(int(value))
    exact = float(np.float32(value)) if kind == "float" else float(value)
    return "0x" + struct.pack(">d", exact).hex().upper()


class Value:
    code: Code
    kind: str
    name: str

    __slots__ = ("code", "kind", "name")

    def __init__(self, code: Code, name: str, kind: str):
        self.code, self.name, self.kind = code, name, kind

    @property
    def typed(self) -> str:
        return f"{self.code.vector(self.kind)} {self.name}"

    def _with(self, operation: str, other: Value | float, kind: str | None = None) -> Value:
        right = self.code.lift(other, self.kind)
        return self.code.value(f"{operation} {self.typed}, {right.name}", kind or self.kind)

    def _arithmetic(self, name: str, other: Value | float) -> Value:
        return self._with(name if self.kind[0] == "i" else "f" + name, other)

    def __add__(self, other: Value | float) -> Value:
        return self._arithmetic("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self._arithmetic("mul", other)

    def __radd__(self, other: float) -> Value:
        return self.code.lift(other, self.kind) + self

    def __rsub__(self, other: float) -> Value:
        return self.code.lift(other, self.kind) - self

    def __rmul__(self, other: float) -> Value:
        return self.code.lift(other, self.kind) * self

    def __truediv__(self, other: Value | float) -> Value:
        return self._with("fdiv", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.code.lift(other, self.kind) / self

    def __neg__(self) -> Value:
        return self.code.value(f"fneg {self.typed}", self.kind)

    def __abs__(self) -> Value:
        return self.code.intrinsic("fabs", self)

    def __and__(self, other: Value | int) -> Value:
        return self._with("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._with("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._with("xor", other)

    def __lshift__(self, other: int) -> Value:
        return self._with("shl", other)

    def __rshift__(self, other: int) -> Value:
        """Zeros come in from above."""
        return self._with("lshr", other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.kind == "i1" else -1)

    def _compared(self, name: str, other: Value | float) -> Value:
        real, whole = _COMPARISONS[name]
        return self._with(f"icmp {whole}" if self.kind[0] == "i" else f"fcmp {real}", other, "i1")

    def __lt__(self, other: Value | float) -> Value:
        return self._compared("lt", other)

    def __le__(self, other: Value | float) -> Value:
        return self._compared("le", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compared("gt", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compared("ge", other)

    def equals(self, other: Value | float) -> Value:
        return self._with("icmp eq" if self.kind[0] == "i" else "fcmp oeq", other, "i1")

    def is_nan(self) -> Value:
        return self._with("fcmp uno", self, "i1")


class Format:
    """A floating-point format of IEEE 754: the numbers that formulas need of it."""

    kind: str
    largest: float
    normal: float

    def __init__(self, kind: str):
        info = np.finfo(np.float32 if kind == "float" else np.float64)
        self.kind, self.whole = kind, "i32" if kind == "float" else "i64"
        self.stored: int = int(info.nmant)  # bits of the significand, without the first
        self.bits: int = self.stored + 1
        self.bias = 127 if kind == "float" else 1023
        self.normal, self.largest = float(info.tiny), float(info.max)
        self.epsilon: float = float(info.eps)
        self.sign = -(2 ** (31 if kind == "float" else 63))
        # added to a number below 2^(stored - 1) it rounds that to an integer
        self.magic: float = 1.5 * 2.0**self.stored

    def bits_of(self, value: float) -> int:
        """The number's pattern as an integer."""
        if self.kind == "float":
            return int(np.float32(value).view(np.int32))
        return int(np.float64(value).view(np.int64))


FORMATS = {kind: Format(kind) for kind in ("double", "float")}


class Code:
    """The body of one function of vectors of `lanes` numbers of one format."""

    avx512: bool
    format: Format
    kind: str
    lanes: int

    def __init__(self, kind: str, lanes: int, avx512: bool = False):
        self.format, self.kind, self.lanes, self.avx512 = FORMATS[kind], kind, lanes, avx512
        self.lines: list[str] = []
        self.block: str = "entry"
        self._count = 0
        self.helpers: dict[str, str] = {}  # functions that this one calls, by their symbols

    # --- text ---

    def vector(self, kind: str) -> str:
        return f"<{self.lanes} x {kind}>"

    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def value(self, text: str, kind: str) -> Value:
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, kind)

    def lift(self, x: Value | float, kind: str | None = None) -> Value:
        if isinstance(x, Value):
            return x
        kind = kind or self.kind
        return Value(self, f"splat ({kind} {constant(x, kind)})", kind)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        kind = operands[0].kind
        arguments = ", ".join(x.typed for x in operands)
        suffix = _SUFFIX.get(kind, kind)
        return self.value(f"call {self.vector(kind)} @llvm.{name}.v{self.lanes}{suffix}({arguments})", kind)

    # --- what formulas are made of ---

    def fma(self, x: Value | float, y: Value | float, z: Value | float) -> Value:
        kind = next(v.kind for v in (x, y, z) if isinstance(v, Value))
        return self.intrinsic("fma", *(self.lift(v, kind) for v in (x, y, z)))

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        kind = next((v.kind for v in (x, y) if isinstance(v, Value)), self.kind)
        left, right = self.lift(x, kind), self.lift(y, kind)
        return self.value(f"select {condition.typed}, {left.typed}, {right.typed}", kind)

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def copysign(self, x: Value | float, sign: Value) -> Value:
        return self.intrinsic("copysign", self.lift(x, sign.kind), sign)

    def clipped(self, x: Value, low: float | None, high: float | None) -> Value:
        """x between the bounds; what is nan stays nan."""
        if low is not None:
            x = self.select(x < low, low, x)
        return x if high is None else self.select(x > high, high, x)

    def pattern(self, x: Value) -> Value:
        """The bits of numbers as integers."""
        whole = FORMATS[x.kind].whole
        return self.value(f"bitcast {x.typed} to {self.vector(whole)}", whole)

    def number(self, x: Value) -> Value:
        """The numbers that have these bits."""
        return self.value(f"bitcast {x.typed} to {self.vector(self.kind)}", self.kind)

    def table(self, name: str) -> tuple[float, ...]:
        return TABLES[name, self.kind]

    def polynomial(self, name: str, x: Value) -> Value:
        """Horner's rule, with one rounding for each coefficient."""
        return self.horner(self.table(name), x)

    def horner(self, coefficients: Sequence[Value | float], x: Value) -> Value:
        total = self.lift(coefficients[-1], x.kind)
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def halved(self, name: str, x: Value) -> Value:
        """A polynomial as even and odd powers, which a processor computes side by side; it rounds a little more."""
        table, square = self.table(name), x * x
        return self.fma(self.horner(table[1::2], square), x, self.horner(table[::2], square))

    @property
    def has_pieces(self) -> bool:
        """Whether `in_pieces` is there: a register of AVX-512 has sixteen numbers of single precision."""
        return self.avx512 and self.kind == "float"

    def in_pieces(self, name: str, x: Value, doubles: bool = False) -> Value:
        """An odd function of x >= 0: x + x p(x), then 31 polynomials around multiples of a step.

        A coefficient of all pieces is two registers, and a permutation of them has that of each lane's own piece (P.
        T. P. Tang, Table-lookup algorithms for elementary functions, 1991, with a table that is no memory). `doubles`
        has steps be twice as long from the sixteenth on.
        """
        (first, *others), t = self._pieces(name, x, doubles)
        # of the first piece that is zero, and of others more than t
        return self.fma(self.horner(others, t), t, self.select(t > first, t, first))

    def summand_in_pieces(self, name: str, x: Value, doubles: bool = False) -> Value:
        """A function of x >= 0 by polynomials, of which the first one is as exact as the others, not more."""
        return self.horner(*self._pieces(name, x, doubles))

    def _pieces(self, name: str, x: Value, doubles: bool = False) -> tuple[list[Value], Value]:
        """The coefficients of each lane's own piece, and how far x is from the piece's middle.

        Steps are powers of two, so sums are all it takes, which are exact. They double where numbers, added to x in
        steps, reach 2^24: from there on these are even.
        """
        step, top, *table = self.table(name)
        x = self.clipped(x, None, top)
        magic = step * (2.0**24 - _PIECES // 2 if doubles else self.format.magic)
        shifted = x + magic
        piece = self.pattern(shifted)
        return [self.picked(table[k : k + _PIECES], piece) for k in range(0, len(table), _PIECES)], x - (
            shifted - magic
        )

    def rounded(self, x: Value, factor: float) -> tuple[Value, Value]:
        """The integer n nearest to x * factor, as a number and as an integer of which only low bits count.

        Adding 1.5 * 2^52 leaves n in the low bits: conversions of 64 bits are no instructions of AVX2. For |n| < 2^21
        in single precision.
        """
        shifted = self.fma(x, factor, self.format.magic)
        return shifted - self.format.magic, self.pattern(shifted)

    def power_of_two(self, whole: Value) -> Value:
        """2^n of the integer that `rounded` gives, for n of normal numbers."""
        return self.number((whole << self.format.stored) + self.format.bits_of(1.0))

    def inverse(self, x: Value) -> Value:
        """1 / x for x from 2^-100 to 2^100, within 0.6 units in the last place: by Newton's iteration if that pays."""
        return self._newton(x, self.estimate(x)) if self.avx512 else 1.0 / x

    def estimate(self, x: Value) -> Value:
        """1 / x for such x, of which half of the bits are right, or all: for quotients that are mended."""
        if not self.avx512:
            return 1.0 / x
        r = self._of_avx512("rcp14", [x])
        return r if self.kind == "float" else self._newton(x, r)

    def _newton(self, x: Value, r: Value) -> Value:
        return self.fma(r, self.fma(-x, r, 1.0), r)

    def _of_avx512(self, name: str, operands: Sequence[Value]) -> Value:
        """An instruction of AVX-512 of 16, 32 or 64 bytes, as often as there are lanes for."""
        size = 4 if self.kind == "float" else 8
        lanes = max(16 // size, min(64 // size, 1 << (self.lanes - 1).bit_length()))
        t, bits = f"<{lanes} x {self.kind}>", 8 * size * lanes
        masks = f"i{max(8, lanes)} -1"
        last = ", i32 4" if name == "scalef" and bits == 512 else ""  # rounding as it is set
        suffix = f"{name}.{'ps' if self.kind == 'float' else 'pd'}.{bits}"
        full = f"llvm.x86.avx512.{'mask.' if name == 'scalef' else ''}{suffix}"
        return self._in_registers(
            lanes, operands, lambda xs: f"call {t} @{full}({', '.join([*xs, f'{t} zeroinitializer', masks])}{last})"
        )

    def picked(self, table: Sequence[float], places: Value) -> Value:
        """Of a table of 16 or 32 numbers those at the places, of which four or five bits count."""
        if len(set(table)) == 1:
            return self.lift(table[0])
        numbers = [f"float {constant(x, 'float')}" for x in table]
        first, *last = [f"<16 x float> <{', '.join(numbers[k : k + 16])}>" for k in range(0, len(table), 16)]
        name = "@llvm.x86.avx512.vpermi2var.ps.512" if last else "@llvm.x86.avx512.permvar.sf.512"
        return self._in_registers(
            16, [places], lambda xs: f"call <16 x float> {name}({', '.join([first, xs[0], *last])})"
        )

    def _in_registers(self, lanes: int, operands: Sequence[Value], call: Callable[[list[str]], str]) -> Value:
        """Of vectors of so many lanes what a call gives, as often as there are lanes for; missing ones are added."""
        found = []
        for first in range(0, self.lanes, lanes):
            places = ", ".join(f"i32 {min(first + i, self.lanes - 1)}" for i in range(lanes))
            words = []
            for x in operands:
                v = self.vector(x.kind)
                part = self.value(f"shufflevector {x.typed}, {v} poison, <{lanes} x i32> <{places}>", "")
                words.append(f"<{lanes} x {x.kind}> {part.name}")
            found.append(self.value(call(words), ""))
        while True:
            t = f"<{lanes} x {self.kind}>"
            lanes *= 2
            places = ", ".join(f"i32 {i}" for i in range(min(lanes, self.lanes)))
            size = min(lanes, self.lanes)
            pairs = zip(found[::2], [*[x.name for x in found[1::2]], "poison"], strict=False)
            found = [
                self.value(f"shufflevector {t} {x.name}, {t} {y}, <{size} x i32> <{places}>", self.kind)
                for x, y in pairs
            ]
            if len(found) == 1:
                return found[0]

    def scaled(self, x: Value, n: Value) -> Value:
        """x * 2^n for any n that is a number, in two steps: the result may be subnormal or overflow."""
        if self.avx512:
            return self._of_avx512("scalef", [x, n])
        half, first = self.rounded(n, 0.5)
        last = self.pattern((n - half) + self.format.magic)
        return x * self.power_of_two(first) * self.power_of_two(last)

    # --- sums of two numbers (T. J. Dekker, 1971; D. E. Knuth, 4.2.2) ---

    def two_sum(self, x: Value | float, y: Value) -> tuple[Value, Value]:
        x = self.lift(x, y.kind)
        total = x + y
        part = total - x
        return total, (x - (total - part)) + (y - part)

    def fast_two_sum(self, x: Value | float, y: Value) -> tuple[Value, Value]:
        """For |x| >= |y|, or x = 0."""
        x = self.lift(x, y.kind)
        total = x + y
        return total, y - (total - x)

    def two_product(self, x: Value | float, y: Value) -> tuple[Value, Value]:
        product = self.lift(x, y.kind) * y
        return product, self.fma(x, y, -product)

    # --- control ---

    def seldom(self, condition: Value, usual: Sequence[Value], compute: Callable[[], Sequence[Value]]) -> list[Value]:
        """The usual values, or where the condition holds for any lane, all lanes of those that `compute` gives."""
        n = self.fresh("")
        test = self._any(condition)
        before = self.block
        self.lines.append(f"  br i1 {test.name}, label %seldom{n}, label %joined{n}")
        self.label(f"seldom{n}")
        others = compute()
        after = self.block
        self.lines.append(f"  br label %joined{n}")
        self.label(f"joined{n}")
        return [
            self.value(f"phi {self.vector(x.kind)} [ {x.name}, %{before} ], [ {y.name}, %{after} ]", x.kind)
            for x, y in zip(usual, others, strict=True)
        ]

    def repeated(
        self, start: Sequence[Value], step: Callable[[Sequence[Value]], tuple[Sequence[Value], Value]]
    ) -> Sequence[Value]:
        """Values that a step is applied to, until the condition that it gives holds in no lane."""
        n, before = self.fresh(""), self.block
        self.lines.append(f"  br label %repeated{n}")
        self.label(f"repeated{n}")
        names = ["%" + self.fresh() for _ in start]
        place = len(self.lines)
        made, goes = step([Value(self, name, x.kind) for name, x in zip(names, start, strict=True)])
        test = self._any(goes)
        for name, x, y in zip(names, start, made, strict=True):
            phi = f"phi {self.vector(x.kind)} [ {x.name}, %{before} ], [ {y.name}, %{self.block} ]"
            self.lines.insert(place, f"  {name} = {phi}")
        self.lines.append(f"  br i1 {test.name}, label %repeated{n}, label %left{n}")
        self.label(f"left{n}")
        return made

    def _any(self, condition: Value) -> Value:
        """One truth: whether it holds in any lane."""
        if self.lanes == 1:
            return self.value(f"extractelement {condition.typed}, i32 0", "i1")
        return self.value(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({condition.typed})", "i1")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name
