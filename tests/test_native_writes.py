"""Arrays that loops carry along and write to: in place where nobody needs the old values, and always as without."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native import native as native

import adjoint as ad

pytest.importorskip("llvmlite")

N = 97  # more than what is copied in each step


def put(x: Any, key: Any, value: Any) -> Any:
    x = x.copy()
    x[key] = value
    return x


def line(x: Any) -> Any:
    return ad.fori_loop(1, N, lambda i, c: put(c, i, c[i - 1] * 0.5 + i), x)


def sine(x: Any) -> Any:
    return ad.fori_loop(1, N, lambda i, c: put(c, i, ad.sin(c[i - 1])), x)


def added(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        c = c.copy()
        c[i] += c[0] * i
        return c

    return ad.fori_loop(1, N, step, x)


def row(x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        return put(c, r % 7, ad.sin(c[r % 5]) + 1.0), c[r, 0]

    return ad.scan(step, ad.outer(x, x[:5]), ad.arange(N))[0]


def until(x: Any) -> Any:
    start = (ad.argmax(x) * 0, x)
    step = lambda s: (s[0] + 1, put(s[1], s[0] + 1, s[1][s[0]] * 0.5))
    return ad.while_loop(lambda s: s[0] < N - 1, step, start)[1]


def sieve(x: Any) -> Any:
    """Places that what is written to names itself."""
    x = (x * 50).astype(ad.int64) % N
    return ad.fori_loop(0, 20, lambda i, c: put(c, c[i], c[i] + 1), x)


def same_values(x: Any, y: Any) -> Any:
    return ad.scan(lambda c, i: ((c[0], c[1] + c[0][i]), c[1]), (x, y[0]), ad.arange(N))[1]


IN_PLACE: dict[str, Callable[..., Any]] = {
    "by number": line,
    "added": added,
    "rows": row,
    "while": until,
    "places of its own": sieve,
    "never changed": lambda x: same_values(x, x),
    "grad": ad.grad(lambda x: (line(x) ** 2).sum()),
    "grad that reads values": ad.grad(lambda x: (sine(x) ** 2).sum()),
    "grad of a sum": ad.grad(lambda x: (added(x) ** 2).sum()),
    "vmap": lambda x: ad.vmap(line)(ad.stack([x, -x])),
    "jvp": lambda x: ad.jvp(line, (x,), (x,)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_step_costs_what_it_writes(name: str) -> None:
    f = IN_PLACE[name]
    x = ad.asarray(np.random.default_rng(0).normal(size=N))
    compiled = ad.compile(f)
    alike(compiled(x), f(x), 1e-13)
    inside = [text for text in compiled.lower(x).kernels if re.match(r"n\d+_\d+s", text.strip())]
    assert inside
    assert not [text for text in inside if re.search(rf": (2 x )?{N}\b", text)], inside


def kept(x: Any) -> Any:
    return ad.scan(lambda c, i: (put(c, i, c[0] + 1), c), x, ad.arange(5))


def turned(x: Any) -> Any:
    return ad.fori_loop(1, 6, lambda i, c: (put(c[1], i, c[0][i]), c[0]), (x, 2 * x))


def both(x: Any) -> Any:
    return ad.fori_loop(1, 6, lambda i, c: (put(c[0], i, 1.0), put(c[0], 0, c[1][i])), (x, 2 * x))


def shifted(x: Any) -> Any:
    """Parts that overlap."""

    def step(i: Any, c: Any) -> Any:
        c = c.copy()
        c[1:] = c[:-1]
        c[::-1][:3] += c[:3]
        return c

    return ad.fori_loop(0, 4, step, x)


def read_later(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        new = put(c, i, c[i + 1] + 1)
        new = put(new, i + 2, c[i] + new[i])  # the first is of the old array
        return new + (c - new) * 2

    return ad.fori_loop(0, 9, step, x)


def through_a_choice(x: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        c = ad.cond(c[i] > 0, lambda c: put(c, i, -c[i]), lambda c: c, c)
        return ad.switch(
            i % 3, [lambda c: put(c, 0, c[i]), lambda c: c * 2, lambda c: put(put(c, 1, c[2]), i, 3.0)], c
        ), ()

    return ad.scan(step, x, ad.arange(9))[0]


def nested(x: Any) -> Any:
    def outer(c: Any, i: Any) -> Any:
        inner = lambda c, j: (put(c, (i, j), c[i - 1, j] + c[i, j - 1]), c[j, i])
        c, seen = ad.scan(inner, c, ad.arange(7))
        return c, seen.sum()

    return ad.scan(outer, ad.outer(x[:9], x[:9]), ad.arange(9))


def as_operand_too(x: Any) -> Any:
    """The inner loop writes to what each of its steps also reads as it was."""

    def outer(c: Any, i: Any) -> Any:
        return ad.scan(lambda d, j: (put(d, j, c[j] + d[j - 1]), ()), c, ad.arange(7))[0], ()

    return ad.scan(outer, x, ad.arange(4))[0]


def nothing(x: Any) -> Any:
    return ad.fori_loop(0, 4, lambda i, c: put(c, slice(3, 3), 1.0) + 0 * i, x), ad.scan(
        lambda c, i: (put(c, slice(3, 3), 1.0), i), x, ad.arange(3)
    )


OTHERWISE: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (kept, turned, both, shifted, read_later, through_a_choice, nested, as_operand_too, nothing)
}


@pytest.mark.parametrize("name", OTHERWISE)
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_old_values_that_are_read_are_there(name: str, dtype: str) -> None:
    f = OTHERWISE[name]
    x = ad.asarray(np.round(np.random.default_rng(1).normal(size=N) * 9).astype(dtype))
    alike(ad.compile(f)(x), f(x), 0)
    if dtype == "float64":
        slope = ad.grad(lambda x: sum((y * y).sum() for y in ad.tree.leaves(f(x))))
        alike(ad.compile(slope)(x), slope(x), 1e-10)


def alike(found: Any, expected: Any, rtol: float) -> None:
    xs, ys = ad.tree.leaves(found), ad.tree.leaves(expected)
    for x, y in zip(xs, ys, strict=True):
        x, y = x.numpy(), y.numpy()
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12 if rtol else 0)


def test_parts_without_elements() -> None:
    x, places = ad.asarray(np.arange(12.0).reshape(3, 4)), ad.asarray(np.array([0, 2]))
    for key in (slice(3, 3), (slice(None), slice(2, 2)), (places, slice(4, 4)), (0, slice(1, 0))):
        set_to_one = lambda x, key=key: put(x, key, 1.0) * 2
        alike(ad.compile(set_to_one)(x), set_to_one(x), 0)
        slope = ad.grad(lambda x, key=key: (put(x, key, x.sum()) ** 2).sum())
        alike(ad.compile(slope)(x), slope(x), 0)


# --- random loops --------------------------------------------------------------------------------


def random_step(rng: np.random.Generator, depth: int, n: int) -> Callable[..., Any]:
    """A step that writes to three arrays of n, n and n times m elements, reads old ones, and hands them on turned."""
    draws = rng.integers(0, 1 << 30, (int(rng.integers(2, 7)), 6)).tolist()
    inner = [random_step(rng, depth - 1, n) for _ in range(2)] if depth else []
    end = int(rng.integers(6))

    def step(i: Any, state: Any, row: Any) -> Any:
        s, old = list(state), list(state)
        for kind, which, a, b, c, d in draws:
            x, y, z, j = s[a % 2], (old if c % 3 == 0 else s)[b % 2], s[2], (i + d) % n
            writes: list[Callable[[], Any]] = [
                lambda x=x, y=y, j=j, c=c: put(x, j, y[(i + c) % n] + 1),
                lambda x=x, y=y, j=j, d=d: put(x, j, x[j] + y[d % n]),
                lambda x=x, y=y, j=j, c=c, d=d: put(x, d % n, y[c % n] - x[j]),
                lambda x=x, y=y: put(x, slice(1, None), y[:-1]),
                lambda x=x, y=y: ad.clip(x + y, -50, 50),
                lambda x=x, y=y, j=j: ad.where(x > y[j], x, y),
                lambda x=x: put(x, slice(None, None, 2), x[::-1][::2]),
                lambda x=x, z=z, j=j: put(put(x, j, z[j, 0]), (j + 1) % n, x[j] * 2 % 7),
            ]
            parts: list[Callable[[Any], Any]] = [
                lambda s, z=z, j=j: (s[0], s[1], put(z, j, row)),
                lambda s, x=x, z=z, d=d: (s[0], s[1], put(z, (slice(None), d % z.shape[1]), x)),
            ]
            if depth:
                f = inner[which % 2]
                parts += [
                    lambda s, f=f, x=x, j=j: ad.cond(
                        x[j] > 0, lambda i, s, r: f(i, s, r)[0], lambda i, s, r: s, i, s, row
                    ),
                    lambda s, f=f: ad.fori_loop(0, 3, lambda k, s: f(k + i, s, row)[0], s),
                    lambda s, f=f: ad.while_loop(
                        lambda t: t[0] < 2, lambda t: (t[0] + 1, f(t[0], t[1], row)[0]), (i * 0, s), max_steps=4
                    )[1],
                ]
            if (k := kind % (len(writes) + len(parts))) < len(writes):
                s[a % 2] = writes[k]()
            else:
                s = list(parts[k - len(writes)](tuple(s)))
            s = [ad.clip(x, -99, 99) for x in s]
        seen = [s[0], old[1], s[2][0], s[0][0]][draws[0][0] % 4]
        turned = {0: [s[0], s[0]], 1: [s[1], s[0]], 2: [s[1], s[0]], 3: [old[0], old[0]]}.get(end, s[:2])
        return (*turned, s[2]), seen

    return step


@pytest.mark.parametrize("seed", [0, 1, 2, *[pytest.param(i, marks=pytest.mark.slow) for i in range(3, 60)]])
def test_random_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.choice([3, 40, 300])), int(rng.choice([1, 3, 30]))
    dtype = ("float64", "float32", "int64", "int32")[seed % 4]
    step, reverse = random_step(rng, int(rng.integers(0, 3)), n), bool(rng.integers(2))

    def whole(x: Any, y: Any, z: Any, rows: Any) -> Any:
        numbers = ad.arange(4)
        return ad.scan(lambda s, r: step(r[0], s, r[1]), (x, y, z), (numbers, rows), reverse=reverse)

    f: Any = whole
    if seed % 3 == 2 and dtype.startswith("float"):
        f = ad.grad(lambda *xs: sum((y * y).sum() for y in ad.tree.leaves(whole(*xs))), (0, 1, 2, 3))
    xs = [ad.asarray(np.round(rng.normal(size=s) * 3).astype(dtype)) for s in ((n,), (n,), (n, m), (4, m))]
    alike(ad.compile(f)(*xs), f(*xs), 0 if f is whole else 1e-4 if dtype == "float32" else 1e-10)
