"""Loops of machine code that several threads share: same bits whoever computes what, forks, callers, errors, ends."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import processes
import pytest
from each import Each
from test_native import arguments, program

import adjoint as ad
from adjoint.compiler import threads
from adjoint.compiler.native import gemm, parallel

pytest.importorskip("llvmlite")
from adjoint.compiler.native import arena, pool

COUNTS = 1, 2, 3, 7


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    monkeypatch.setattr(threads, "_given", None)
    yield
    pool.stop()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loops of a few numbers be shared."""
    for name, value in {"_WORTH": 1, "_PART": 1, "_ROWS": 1}.items():
        monkeypatch.setattr(parallel, name, value)


def runs(f: Callable[..., Any], xs: Any, often: int = 3) -> list[list[np.ndarray[Any, Any]]]:
    """What a compiled function gives with each number of threads, several times."""
    compiled, found = ad.compile(f), []
    for n in COUNTS:
        ad.set_num_threads(n)
        for _ in range(often):
            pool._word(pool._UNTIL).value = 0  # also where other programs have the processor
            found.append([np.asarray(x) for x in ad.tree.flatten(compiled(*xs))[0]])
    return found


def same(found: list[list[np.ndarray[Any, Any]]]) -> None:
    for xs in found[1:]:
        for x, y in zip(xs, found[0], strict=True):
            assert x.tobytes() == y.tobytes()


LOOPS: dict[str, Callable[[Any], Any]] = {
    "columns": lambda x: ad.exp(x.reshape(-1)) * 2.0 + 1.0,
    "whole sums": lambda x: [(x * x).sum(), x.max(), ad.any(x > 3.0), ad.prod(1.0 + x * 1e-3)],
    "whole sums of columns": lambda x: [ad.tanh(x.reshape(-1)).sum(), x.reshape(-1).min()],
    "rows": lambda x: ad.nn.softmax(x, axis=1),
    "sums over rows": lambda x: [x.sum(axis=0), ad.exp(x).max(axis=0), ad.all(x < 1.0, axis=0)],
    "rows and sums over them": lambda x: ad.grad(lambda x: (ad.nn.softmax(x * x.sum(axis=0), axis=1) ** 2).sum())(x),
    "transposed": lambda x: x.T * 2.0 + x.T.sum(axis=0),
    "three axes": lambda x: ad.permute_dims(x[:60].reshape((3, 4, 5, -1)), (1, 0, 2, 3)) + x[:5],
    "gathered": lambda x: x[ad.arange(500) % 61] * 2.0,
    "loop": lambda x: ad.scan(lambda c, r: (ad.sin(c + r) * 0.5, c.sum()), x, ad.arange(3.0, dtype=x.dtype)),
}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_results_do_not_depend_on_the_number_of_threads(tiny: None, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(61, 203)).astype(dtype)
    for name, f in LOOPS.items():
        with Each() as each, each(name):
            assert any(" parts: " in line for line in ad.compile(f).lower(x).kernels)
            found = runs(f, (x,))
            same(found)
            rtol = 1e-4 if dtype == "float32" else 1e-12
            for y, expected in zip(found[0], ad.tree.flatten(f(ad.asarray(x)))[0], strict=True):
                np.testing.assert_allclose(y, expected.numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_threads_share_blocks_of_a_product(tiny: None, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """As the matrices lie and turned, with blocks at the ends that are smaller, and sums in several parts."""
    monkeypatch.setattr(gemm, "_BLOCK", 1 << 12)
    rng = np.random.default_rng(5)
    for m, k, n in ((130, 300, 70), (1, 520, 330), (300, 40, 10), (24, 600, 300), (70, 90, 33), (260, 1, 260)):
        x, y = (rng.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n)))
        exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
        error = 2 * max(abs(x @ y - exact).max(), np.finfo(dtype).eps * abs(exact).max())
        for i, turned in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
            given = [z.T.copy() if turn else z for z, turn in zip((x, y), turned, strict=True)]
            if m == 1 and turned[1]:
                continue  # one row is a vector, which is BLAS's
            f = ([lambda x, y: x @ y, lambda x, y: x.T @ y, lambda x, y: x @ y.T, lambda x, y: x.T @ y.T])[i]
            with Each() as each, each((m, k, n, turned)):
                assert any(" parts: " in line for line in ad.compile(f).lower(*given).kernels)
                found = runs(f, given)
                same(found)
                assert abs(found[0][0] - exact).max() <= error


def test_large_products_are_blocks() -> None:
    """A program of the usual layers has no product of BLAS, whose threads wait for cores that others have."""
    x, w = np.ones((128, 256), "f"), np.ones((256, 256), "f")
    found = ad.compile(ad.grad(lambda w, x: (ad.nn.relu(x @ w) @ w.T).sum())).lower(w, x).kernels
    products = [line for line in found if " @ " in line]
    assert len(products) >= 4
    assert all(" parts: " in line for line in products)


ROWS: list[Callable[[Any], Any]] = [
    lambda x: ad.nn.softmax(x, axis=-1),
    ad.value_and_grad(lambda x: (ad.nn.layer_norm(x, x.shape[-1]) ** 3).sum()),
    lambda x: ((y := x - x.mean(axis=-1, keepdims=True)) * 2.0, (y * y).sum(axis=-1), x.max()),
    ad.grad(lambda x: (ad.nn.log_softmax(x * x.sum(axis=0), axis=-1) ** 2).sum()),
]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_take_turns(dynamic: bool, shared: bool, request: pytest.FixtureRequest) -> None:
    """Two and two, and a last one alone: of any number of rows, also in parts of threads, and on several axes."""
    if shared:
        request.getfixturevalue("tiny")
    rng = np.random.default_rng(4)
    for columns in (5, 40):
        for i, f in enumerate(ROWS):
            compiled = ad.compile(f, dynamic=True)
            for shape in [*[(n, columns) for n in (4, 3, 2, 5, 7, 8, 9, 33)], *[(n, 3, columns) for n in (2, 3, 5)]]:
                x, g = rng.normal(size=shape), compiled if dynamic else ad.compile(f, dynamic=False)
                found, expected = ad.tree.leaves(g(x)), ad.tree.leaves(f(ad.asarray(x)))
                for y, z in zip(found, expected, strict=True):
                    np.testing.assert_allclose(y, z.numpy(), rtol=1e-11, atol=1e-12, err_msg=f"{i}, {shape}")


@pytest.mark.slow
@pytest.mark.parametrize("on_stack", [True, False])
def test_random_programs(tiny: None, monkeypatch: pytest.MonkeyPatch, on_stack: bool) -> None:
    if not on_stack:
        monkeypatch.setattr(parallel, "_ON_STACK", 0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f = program(rng, int(rng.integers(10, 30)), bool(seed % 3))
        xs = [np.concatenate([x] * 9, axis=-1) if x.ndim else x for x in arguments(rng, "float64", seed % 2 == 0)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            same(runs(f, xs, 2))


def test_sums_keep_what_rounding_takes_away() -> None:
    x = np.random.default_rng(1).normal(size=(400, 1000)).astype("f") + np.float32(1000.0)
    f = ad.compile(lambda x: [x.sum(), (x * 1.0).reshape(-1).sum()])
    assert all(" parts: " in line for line in f.lower(x).kernels)
    for found in f(x):
        assert found.item() == np.float32(math.fsum(x.ravel().tolist()))
    with np.errstate(all="ignore"):
        for bad, expected in ((np.inf, np.inf), (np.nan, np.nan)):
            y = x.copy()
            y[7, 7] = bad
            for found in f(y):
                np.testing.assert_equal(found.item(), expected)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a worker on the caller's processor steps aside")
def test_workers_help_and_end() -> None:
    f, x = ad.compile(lambda x: ad.tanh(ad.exp(x)).sum(axis=1)), np.ones((500, 1000))
    ad.set_num_threads(3)
    before, until = pool.helped(), time.monotonic() + 60
    while pool.helped() == before and time.monotonic() < until:
        pool._word(pool._UNTIL).value = 0  # also where other programs have the processors
        f(x)
    assert pool.helped() > before
    assert len(pool._threads) == 2
    ad.set_num_threads(1)
    assert not [t for t in threading.enumerate() if t.name.startswith("adjoint")]
    before = pool.helped()
    f(x)
    assert pool.helped() == before


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs Linux, and two processors"
)
def test_a_worker_leaves_the_processor_of_the_caller() -> None:
    """Systems begin it again where it was, and so beside the caller, whose time it would take."""
    before = os.sched_getaffinity(0)
    here, there = sorted(before)[:2]
    ad.set_num_threads(2)
    f, x = ad.compile(lambda x: ad.sin(x) * ad.exp(x)), ad.ones(1_000_000)
    wanted = f(x).numpy()
    (worker,) = [thread.native_id for thread in pool._threads]
    assert worker is not None
    try:
        os.sched_setaffinity(0, {here})
        os.sched_setaffinity(worker, {here})
        np.testing.assert_array_equal(f(x).numpy(), wanted)  # there is no other one
        os.sched_setaffinity(worker, {here, there})
        helped, end = pool.helped(), time.monotonic() + 60
        while pool.helped() == helped and time.monotonic() < end:
            pool._word(pool._UNTIL).value = 0  # also where other programs have the processors
            np.testing.assert_array_equal(f(x).numpy(), wanted)
        assert pool.helped() > helped
        while os.sched_getaffinity(worker) != {here, there}:  # it may be at this
            assert time.monotonic() < end
    finally:
        os.sched_setaffinity(0, before)


def test_an_index_out_of_range_is_noted_by_any_part(tiny: None) -> None:
    ad.set_num_threads(3)
    f = ad.compile(lambda x, i: x[i] * 2.0)
    x, i = np.arange(12.0).reshape(4, 3), np.zeros(600, int)
    for place in (0, 299, 599):
        bad = i.copy()
        bad[place] = 4
        with pytest.raises(ad.errors.OutOfRangeError, match="out of range"):
            f(x, bad)
    np.testing.assert_array_equal(f(x, i), x[i] * 2.0)


@pytest.mark.slow
def test_several_callers_one_of_which_fails_and_one_that_sets_the_number(tiny: None) -> None:
    f = ad.compile(lambda x, i: ad.exp(x[i]).sum(axis=1))
    x = np.random.default_rng(2).normal(size=(40, 300))
    good, bad = np.arange(300) % 40, np.arange(300) % 41
    expected = f(x, good)

    def call(k: int) -> None:
        if k % 50 == 7:
            ad.set_num_threads(1 + k % 4)
        if k % 10 == 3:
            with pytest.raises(ad.errors.OutOfRangeError):
                f(x, bad)
        else:
            np.testing.assert_array_equal(f(x, good), expected)

    with ThreadPoolExecutor(5) as callers:
        list(callers.map(call, range(600)))


def test_the_number_may_change_inside_a_call(tiny: None) -> None:
    numbers = iter([2, 3, 1, 2])

    def change(_: Any) -> None:
        ad.set_num_threads(next(numbers))

    def f(x: Any) -> Any:
        y = ad.exp(x) * 2.0
        ad.debug.callback(change, y.sum())
        return (y + 1.0).sum(axis=0)

    ad.set_num_threads(2)
    x, g = np.random.default_rng(3).normal(size=(50, 90)), ad.compile(f)
    first = g(x)
    for _ in range(3):
        np.testing.assert_array_equal(g(x), first)


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in (("3", 3), ("4,2", 4), (" 2 ", 2)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert ad.get_num_threads() == expected
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for text in ("", "0", "-1", "many", "1.5"):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert ad.get_num_threads() == usable
    ad.set_num_threads(np.int64(5))
    assert ad.get_num_threads() == 5
    for wrong in (0, -2):
        with pytest.raises(ad.errors.ArgumentError, match="set_num_threads: n is a positive integer"):
            ad.set_num_threads(wrong)
    for wrong in (1.0, "2", None, True):
        with pytest.raises(ad.errors.ArgumentTypeError, match="set_num_threads: n is an integer"):
            ad.set_num_threads(wrong)  # type: ignore[arg-type]
    assert ad.get_num_threads() == 5


START = """
import faulthandler, os, signal, sys, threading, time, warnings
import numpy as np
import numpy.testing  # now, as a fork in the middle of an import would leave its lock held
import adjoint as ad
from adjoint.compiler.native import pool
f = ad.compile(lambda x: ad.tanh(ad.exp(x)).sum(axis=1))
x = np.random.default_rng(0).normal(size=(400, 1000))
ad.set_num_threads(3)
expected = f(x)
def always():
    while True:
        np.testing.assert_array_equal(f(x), expected)
"""
FORKS = """
warnings.simplefilter("ignore")  # Python warns of forks beside threads: those of the program
for _ in range(2):
    threading.Thread(target=always, daemon=True).start()
for k in range(10):
    time.sleep(0.003)
    pid = os.fork()
    if pid == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(300)  # which ends a child that hangs
        assert not pool._threads
        for _ in range(3):
            np.testing.assert_array_equal(f(x), expected)
        ok = len(pool._threads) == 2
        if k % 2:
            sys.exit(0 if ok else 3)  # as a program ends
        os._exit(0 if ok else 3)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(f(x), expected)
assert pool._threads
"""
ENDS = """
import atexit
atexit.register(lambda: print(bool((f(x) == expected).all()), len(pool._threads)))
"""
BUSY = """
for k in range(2):
    threading.Thread(target=always, daemon=True).start()
time.sleep(0.05)
print("True 2")
"""
INTERRUPTED = """
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    always()
except KeyboardInterrupt:
    f(x)
    print("True", len(pool._threads))
"""


def python(code: str) -> str:
    done = processes.python(START + code, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_while_loops_run() -> None:
    python(FORKS)


@pytest.mark.slow
@pytest.mark.parametrize("code", [ENDS, BUSY, INTERRUPTED])
def test_processes_end(code: str) -> None:
    """At their end, while others compute, and after Ctrl-C."""
    assert python(code) == "True 2\n"


def test_memory_of_a_large_program_is_of_one_call_at_a_time() -> None:
    """It is kept for the next call, of whatever program, and calls at the same time have their own."""
    f, g = (
        ad.compile(lambda x, c=c: [y := ad.exp(x * c), (y @ y)[0], (y.T + y).sum(axis=0)][1:]) for c in (-0.1, -0.2)
    )
    xs = [np.random.default_rng(k).uniform(size=(1600, 1600)) for k in range(4)]
    assert arena.ON_STACK < f.lower(xs[0]).memory < arena.KEPT
    want = [[list(run(x)) for x in xs] for run in (f, g)]
    with ThreadPoolExecutor(4) as pool_of_callers:
        for _ in range(3):
            found = pool_of_callers.map(lambda k: (f, g)[k % 2](xs[k // 2]), range(8))
            for k, ys in enumerate(found):
                for y, expected in zip(ys, want[k % 2][k // 2], strict=True):
                    np.testing.assert_array_equal(y, expected)
    assert arena.spare.value is not None
