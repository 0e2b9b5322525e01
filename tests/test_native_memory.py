"""Where machine code reads and writes: arrays that lie in any way, what is donated, ends of arrays, several threads."""

from __future__ import annotations

import ctypes
import math
import mmap
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_native import native as native

import adjoint as ad
from adjoint.compiler import replay
from adjoint.compiler.graph import Value
from adjoint.compiler.native import arena, machine
from adjoint.compiler.native.blocks import shared_places
from adjoint.compiler.native.kernels import bytes_of
from benchmarks.compiled import MEMORY, MEMORY_END, PROGRAMS, Program, ours

pytest.importorskip("llvmlite")


def laid_out(x: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The same values, in memory in all kinds of ways."""
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield np.ascontiguousarray(x[::-1])[::-1]
    yield x.astype(x.dtype.newbyteorder())
    frozen = x.copy()
    frozen.flags.writeable = False
    yield frozen
    odd = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)  # not aligned
    odd[...] = x
    yield odd
    yield x.view(type("Subclass", (np.ndarray,), {}))
    yield np.lib.stride_tricks.as_strided(x, x.shape, (0, *x.strides[1:]))


def test_arrays_lie_in_memory_in_any_way() -> None:
    x = np.random.default_rng(5).normal(size=(4, 6))
    f = ad.compile(lambda x, y: [x * y + 1.0, (x - y).sum(axis=1), x.max(axis=0)])
    for a in laid_out(x):
        for b in laid_out(x + 1.0):
            kept = np.array(a), np.array(b)
            expected = a * b + 1.0, (a - b).sum(axis=1), a.max(axis=0)
            for found, wanted in zip(f(a, b), expected, strict=True):
                assert type(found) is np.ndarray
                np.testing.assert_allclose(found, wanted, rtol=1e-14)
            np.testing.assert_array_equal(a, kept[0])
            np.testing.assert_array_equal(b, kept[1])
    whole = np.arange(10.0)
    np.testing.assert_array_equal(ad.compile(lambda x, y: x - y)(whole[:-1], whole[1:]), -np.ones(9))  # overlapping
    assert type(ad.compile(lambda x: x * 2.0)(np.float64(1.5))) is np.float64
    assert ad.compile(lambda x: x * 2.0)(np.zeros((0, 3))).shape == (0, 3)


def test_results_are_written_over_what_was_donated() -> None:
    def step(w: Any, m: Any, g: Any, rate: Any) -> Any:
        m = 0.9 * m + g
        return w - rate * m, m, (m * w).sum(axis=1), w[::-1].max()

    rng = np.random.default_rng(10)
    given = [rng.normal(size=(300, 8)) for _ in range(3)]  # rows that vectors of any processor fill
    expected = [x.numpy() for x in step(*map(ad.asarray, given), 0.1)]
    f = ad.compile(step, donate=(0, 1))
    kept = ad.compile(lambda w, m, g: (w - m, w.sum(axis=0) + m[0]), donate=(0, 1))
    for laid in (np.copy, np.asfortranarray, lambda x: x.astype(">f8")):
        xs = [laid(x) for x in given]
        for x, y in zip(f(*xs, 0.1), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13)
        np.testing.assert_array_equal(xs[2], given[2])
    w, m, g = (x.copy() for x in given)
    found = f(w, m, g, 0.1)
    assert [np.shares_memory(x, m) for x in found[:2]].count(True) == 1
    np.testing.assert_array_equal(w, given[0])  # which is read later
    wanted = w - g, w.sum(axis=0) + g[0]
    for x, y in zip(kept(w, g, g.copy()), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_temporary_arrays_lie_in_the_place_of_others() -> None:
    """Products cannot be written over what they read; what is computed elementwise can."""

    def chain(x: Any, w: Any) -> Any:
        for _ in range(6):
            x = ad.tanh(x @ w) * 0.5
        return x

    x, w = np.random.default_rng(11).normal(size=(2, 64, 64))
    run = ad.compile(chain)
    np.testing.assert_allclose(run(x, w), chain(ad.asarray(x), ad.asarray(w)).numpy(), atol=1e-12)
    assert run.lower(x, w).memory == 2 * x.nbytes


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("columns", [3, 8, 9, 16, 40])
def test_what_products_read_is_there_until_they_are_added_up(columns: int, axis: int | None) -> None:
    """Another result of the same columns is not written over it before that."""

    def apart(x: Any, y: Any, z: Any) -> Any:
        product = x * y
        return x * z, product.sum(axis=axis)

    def square(x: Any, y: Any, z: Any) -> Any:
        product = y * y
        return x * z, product.sum(axis=axis)

    def temporary(x: Any, y: Any, z: Any) -> Any:
        turned = ad.cumulative_prod(ad.tanh(y), axis=0)
        product = x * turned
        return ad.cumulative_sum(x * z, axis=0), product.sum(axis=axis)

    given = np.random.default_rng(13).normal(size=(3, 6, columns))
    for f in (apart, square, temporary):
        expected = f(*map(ad.asarray, given))
        for donated in ((), (1,), (0, 1, 2)):
            for x, y in zip(ad.compile(f, donate=donated)(*[x.copy() for x in given]), expected, strict=True):
                np.testing.assert_allclose(x, y.numpy(), rtol=1e-12, atol=1e-12)


def test_gradients_lie_in_the_place_of_what_follows_from_them() -> None:
    def step(w: Any, v: Any, x: Any) -> Any:
        loss, grads = ad.value_and_grad(lambda p: (ad.tanh(x @ p[0]) @ p[1]).sum())((w, v))
        return loss, w - 0.1 * grads[0], v - 0.1 * grads[1]

    rng = np.random.default_rng(12)
    given = [rng.normal(size=s) for s in ((200, 60), (60, 50), (30, 200))]
    expected = [x.numpy() for x in step(*map(ad.asarray, given))]
    plain, donated = ad.compile(step), ad.compile(step, donate=(0, 1))
    assert plain.lower(*given).memory < given[0].nbytes
    w, v = given[0].copy(), given[1].copy()
    for found in (plain(*given), donated(w, v, given[2])):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9)
    assert np.shares_memory(found[1], w)
    assert np.shares_memory(found[2], v)


def test_nothing_is_read_beyond_the_end_of_an_array() -> None:
    """Behind the array there is a page that nobody may touch."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(start + page, page, 0) == 0
    f = lambda x: [ad.exp(x) * 2.0, x.sum(), x.reshape(-1)[::-1] + 1.0, (x * x).max(axis=0)]
    for dtype in (np.float32, np.float64, np.int8, np.bool_):
        for shape in ((1,), (3,), (17,), (3, 5), (2, 33)):
            size = math.prod(shape) * np.dtype(dtype).itemsize
            x = np.ndarray(shape, dtype, memory, page - size)
            x[...] = 1
            g = f if np.dtype(dtype).kind == "f" else ad.compile(lambda x: [ad.astype(x, ad.float32) + 1.0, ~x])
            for found, expected in zip(g(x), g(x.copy()), strict=True):
                np.testing.assert_array_equal(found, expected)


ROOMS = {
    "elementwise": lambda x, w: ad.cumulative_sum(ad.tanh(x), axis=0) * ad.cumulative_sum(ad.exp(-x * x), axis=1),
    "products": lambda x, w: (ad.tanh(x @ w) @ w.T - x).sum(axis=0),
    "gradient of products": ad.grad(lambda x, w: (ad.special.log_softmax(ad.tanh(x @ w) @ w.T, axis=1) ** 2).sum()),
    "statistics": ad.grad(lambda x, w: (((x - x.mean(axis=0)) / ad.sqrt(x.var(axis=0))) ** 3).sum()),
    "distances": ad.grad(lambda x, w: ad.exp(-((x[:, None] - x) ** 2).sum(axis=-1)).sum()),
    "filters": lambda x, w: ad.nn.conv1d(x.T[None], w[:, :40].reshape(8, -1, 5)[:, : x.shape[1]], padding=2),
    "steps": ad.grad(lambda x, w: ad.scan(lambda c, row: (ad.tanh(c + row), c), x[0], x)[1].sum()),
}


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mprotect"), reason="pages cannot be protected")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ROOMS)
def test_intermediate_results_stay_in_their_memory(name: str, dynamic: bool) -> None:
    """The memory that a call finds ends where a page begins that nobody may touch."""
    rng, f = np.random.default_rng(14), ad.compile(ROOMS[name])
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    free = ctypes.pythonapi.PyMem_RawFree
    free.argtypes, free.restype = [ctypes.c_void_p], None
    used = 0
    for rows in (131, 257, 200, 203, 128):
        for columns in (40, 67):
            given = rng.normal(size=(rows, columns)), rng.normal(size=(columns, 40))
            if not dynamic:
                f = ad.compile(ROOMS[name], dynamic=False)
            arena.spare.value = None
            expected = f(*given)
            if arena.spare.value is None:  # it lay on the stack, or there is none
                continue
            used += 1
            size, whole = (ctypes.c_size_t.from_address(arena.spare.value - k).value for k in (8, 16))
            wanted = -(-size * 2 // 3)  # half as much was taken beside it
            assert wanted + wanted // 2 == size
            free(whole)
            pages = -(-(wanted + 79) // mmap.PAGESIZE)
            memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
            end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages * mmap.PAGESIZE
            assert protect(end, mmap.PAGESIZE, 0) == 0
            piece = (end - wanted) & -64
            header = (ctypes.c_size_t * 2).from_address(piece - 16)
            header[:] = 0, wanted  # which nobody has to free
            arena.spare.value = piece
            np.testing.assert_array_equal(f(*given), expected)
            assert (arena.spare.value, list(header)) == (piece, [0, wanted])
            arena.spare.value = None
    assert used


SIGNS = {
    "signs": lambda a, b: [ad.signbit(a) != ad.signbit(b), b == 0, ad.sign(a)],
    "power of a copied sign": ad.grad(lambda a, b: (abs(ad.copysign(a, b)) + 0.2).var(axis=-1).sum()),
    "integers": lambda a, b: [ad.astype(3 * a, ad.int8), ad.astype(b, ad.int16), (a < 0) & (b > a)],
    "other floats": lambda a, b: [ad.astype(a * b, ad.float32), ad.astype(a - b, ad.float64), ad.astype(a, ad.int32)],
    "sums": lambda a, b: [(a * b).sum(axis=-1), (a < b).any(axis=0), ad.exp(a) * b],
}


@pytest.mark.parametrize("name", SIGNS)
def test_nothing_is_written_beyond_the_end_of_an_array(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Around each new array there are bytes that nobody may change."""
    made, empty = [], np.empty

    def among_others(shape: Any, dtype: Any) -> Any:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = np.full(size + 256, 0xA5, np.uint8)
        made.append((memory, size))
        return memory[128 : 128 + size].view(dtype).reshape(shape) if size else empty(shape, dtype)

    for shape in ((9,), (5, 9), (3, 17), (2, 5, 33), (7, 3), (4, 1)):
        for dtype in (np.float32, np.float64):
            a, b = [np.random.default_rng(k).normal(size=shape).astype(dtype) for k in (1, 2)]
            f = ad.compile(SIGNS[name])
            expected = f(a, b)
            with monkeypatch.context() as context:
                context.setattr(replay.np, "empty", among_others)
                found = ad.compile(SIGNS[name])(a, b)
            for x, y in zip(*[y if isinstance(y, list) else [y] for y in (found, expected)], strict=True):
                np.testing.assert_array_equal(x, y)
    assert made
    for memory, size in made:
        assert (memory[:128] == 0xA5).all()
        assert (memory[128 + size :] == 0xA5).all()


@pytest.mark.parametrize("name", ["signs", "integers", "other floats", "sums"])
def test_one_integer_is_stored_without_a_mask(name: str) -> None:
    """LLVM may store eight bytes for a masked one, and so write beyond the end of the array."""
    for shape in ((9,), (5, 9), (3, 17), (2, 5, 33)):
        a, b = [np.random.default_rng(k).normal(size=shape) for k in (1, 2)]
        text = ad.compile(SIGNS[name]).lower(a, b).llvm
        assert "store" in text
        assert not re.findall(r"masked\.store\.v\d+i.*<i1 1(?:, i1 0)+>", text)


def test_several_threads() -> None:
    f = ad.compile(lambda x: [(ad.sin(x) * x).sum(axis=1), ad.cumulative_sum(x, axis=1)])
    xs = [np.full((30, 3000), float(i)) for i in range(8)]
    expected = [f(x) for x in xs]
    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(pool.map(f, xs * 4), expected * 4, strict=True):
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(x, y)


class Step:
    """What the places of arrays depend on, of a step: what it has in memory, and what may be written over what."""

    def __init__(self, buffers: list[Any], over: list[tuple[Any, Any]]) -> None:
        self.buffers, self._over = buffers, over

    def over(self) -> list[tuple[Any, Any]]:
        return self._over


def test_arrays_that_are_needed_at_once_have_places_of_their_own() -> None:
    rng = np.random.default_rng(20)
    for _ in range(200):
        count = int(rng.integers(1, 12))
        lives = [sorted(rng.integers(0, 8, 2).tolist()) for _ in range(count)]
        xs = [Value((int(rng.integers(1, 5)) * 40,), np.dtype(np.float32)) for _ in lives]
        steps = []
        for i in range(8):
            over = [
                (out, x)
                for out, (begins, _) in zip(xs, lives, strict=True)
                for x, (before, ends) in zip(xs, lives, strict=True)
                if begins == i == ends and before < i and out.shape == x.shape
            ]
            steps.append(Step([x for x, (first, last) in zip(xs, lives, strict=True) if first <= i <= last], over))
        places, whole = shared_places(steps, xs)
        assert max(sum(bytes_of(x) for x in s.buffers) for s in steps[:1]) <= whole
        for a, (first, last) in zip(xs, lives, strict=True):
            begin, end = places[id(a)], places[id(a)] + bytes_of(a)
            assert begin % 64 == 0
            assert end <= whole
            for b, (other_first, other_last) in zip(xs, lives, strict=True):
                written_over = any((b, a) in s.over() or (a, b) in s.over() for s in steps) and places[id(b)] == begin
                if b is not a and first <= other_last and other_first <= last and not written_over:
                    assert places[id(b)] + bytes_of(b) <= begin or end <= places[id(b)]


def test_the_gradient_of_a_convolution_needs_no_copy_of_its_cotangent() -> None:
    """Kernels' gradients read it where it lies with zeros around; large arrays lie where results will be."""

    def step(x: Any, w: Any) -> Any:
        return ad.value_and_grad(lambda x, w: (ad.nn.conv2d(x, w, padding=1, groups=4) ** 2).sum(), (0, 1))(x, w)

    x, w = np.random.default_rng(21).normal(size=(16, 4, 20, 20)), np.random.default_rng(22).normal(size=(4, 1, 3, 3))
    expected, f = step(ad.asarray(x), ad.asarray(w)), ad.compile(step)
    found = f(ad.asarray(x), ad.asarray(w))
    padded = 16 * 4 * 22 * 22 * 8
    assert f.lower(ad.asarray(x), ad.asarray(w)).memory < 2 * padded + x.nbytes
    for a, b in zip(ad.tree.leaves(found), ad.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-11, atol=1e-11)
    for size, padding, dilation, groups in (
        ((3, 3), 0, 1, 1),
        ((3, 3), 2, 1, 2),
        ((3, 3), 1, 2, 4),
        ((3, 1), (1, 0), 1, 1),
        ((3, 1), 0, 1, 4),
        ((1, 3), (0, 1), 1, 2),
        ((2, 3), (0, 2), 1, 1),
    ):
        w = np.random.default_rng(23).normal(size=(8, 4 // groups, *size))
        how: Any = {"padding": padding, "dilation": dilation, "groups": groups}
        slope = ad.grad(lambda x, w, how=how: (ad.nn.conv2d(x, w, **how) ** 3).sum(), argnums=(0, 1))
        for a, b in zip(ad.compile(slope)(x, w), slope(x, w), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_benchmarks_need_no_more_memory_than_jax(program: Program) -> None:
    """Than the page says that JAX reports; all of a program is one call of machine code."""
    page = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text()
    table = page[page.index(MEMORY) : page.index(MEMORY_END)]
    (row,) = [line.split(" | ") for line in table.splitlines() if line.startswith(f"| {program.name} |")]
    f, values = ours(program)
    lowered = f.lower(*values)
    assert lowered.memory <= int(row[2].replace(",", ""))
    assert set(re.findall(r"^ (n\d+)\(", lowered.source, re.MULTILINE)) == {"n0"}
    assert not re.search(r"= c\d+\(", lowered.source)


def test_vectors_on_the_stack_do_not_lie_across_lines_of_the_cache() -> None:
    if machine.vector_bytes() != 64:
        pytest.skip("needs vectors as long as a line")
    f = ad.compile(lambda a, b: (ad.tanh(a * b) + ad.nn.sigmoid(a)) * ad.exp(-b * b))
    step = ad.compile(ad.grad(lambda a, b: f(a, b).sum(), (0, 1)))
    x = np.ones(100_000, np.float32)
    code = step.lower(x, x).assembly
    kept = re.findall(r"vmov\w+\s+%zmm\d+, (?:-?\d+)?\(%rsp\)", code)
    assert kept
    assert not [line for line in kept if line.startswith("vmovu")]
    assert "andq\t$-64, %rsp" in code


def test_a_function_is_computed_once_for_a_row_that_is_read_again() -> None:
    softmax = ad.compile(lambda x: ad.nn.softmax(x * 2.0, axis=-1))
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    text = softmax.lower(x).llvm
    assert len(re.findall(r"call .*@adjoint_exp_", text)) == 2  # of two rows that take turns
    np.testing.assert_allclose(softmax(x), ad.nn.softmax(ad.tensor(x) * 2.0, axis=-1).numpy(), rtol=1e-6)
