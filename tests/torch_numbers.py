"""Python's numbers where tensors of other types take them: `t` is a library, `x` a tensor of [1, 2], `v` a number."""

from __future__ import annotations

DTYPES = "uint8 int8 int16 int32 int64 bool float16 float32 float64".split()
NUMBERS = [
    "-0.5", "-2.6", "-1", "-1.0", "-255", "-256", "255.5", "256", "256.0", "-255.0", "True", "300", "-129", "127.5",
    "2**31", "-2**31 - 1", "2**40", "2**53 + 1", "1e20", "1e39", "70000", "65510.0", "0", "0.0", "-0.0",
    "float('inf')", "float('nan')", "1j", "3 + 0j",
]  # fmt: skip
CALLS = """
t.full_like(x, v)
t.full((2,), v, dtype=x.dtype)
x.new_full((2,), v)
x.fill_(v)
(x.__setitem__(0, v), x)[1]
t.tensor(v, dtype=x.dtype)
t.tensor([v], dtype=x.dtype)
t.where(x > 1, x, v)
x.masked_fill(x > 1, v)
x.index_fill(0, t.tensor([0]), v)
x.scatter(0, t.tensor([0]), v)
x.clamp(min=v)
x.clamp(max=v)
x.clamp(v, v)
x + v
x.add_(v)
v - x
x * v
x.mul_(v)
x / v
x // v
x % v
t.fmod(x, v)
t.remainder(v, x)
x == v
x != v
x < v
x > v
x.eq_(v)
x & v
x | v
x << v
t.addcmul(x, x, x, value=v)
t.isin(x, v)
t.bucketize(v, x)
t.linspace(0, v, 3, dtype=x.dtype)
t.arange(v, v + 3, dtype=x.dtype)
t.arange(0, 3, v, dtype=x.dtype)
t.nn.functional.pad(x, (1, 1), value=v)
t.nn.functional.threshold(x, v, v)
t.nn.functional.hardtanh(x, v, v)
t.nn.functional.hardtanh(x, -100, v)
t.vmap(lambda y: y + v)(x)
""".strip().splitlines()

# What differs, as "call number type": a pattern with the reason.
OTHERWISE = {
    "there are no complex numbers of half precision": r".* (1j|3 \+ 0j) float16",
    "a number that PyTorch takes for true here alone": r"x\.masked_fill.* 1j bool",
    "PyTorch divides halves by numbers of single precision": r"x //? v (70000|-2\*\*31 - 1) float16",
    "the numbers up to infinity are finite or infinite, not nan": r"t\.linspace.* float\('inf'\) float.*",
    "PyTorch counts in double precision": r"t\.arange.* 2\*\*53 \+ 1 .*",
    "what single precision does not hold either ends in half as infinity": r"t\.arange.* 1e39 float16",
    "these are functions of real numbers": r"x\.clamp.* (1j|3 \+ 0j) .*|t\.arange.* 3 \+ 0j .*",
    "a range of no length, or a wrong type, is looked at first": r"t\.arange.* (float.*|1j) bool",
}
