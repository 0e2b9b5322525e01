"""Machine code that serves for any size: what it gives beside what is compiled for one size, and when there is none."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_compile_threads import together

import adjoint as ad
from adjoint import errors
from adjoint.compiler import turns
from adjoint.compiler.native.symbolic import Written
from adjoint.compiler.sizes import Size

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)


SIZES = [2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 129, 500, 513, 1025]
LARGE = [4097, 30_011]
VECTORS = [  # of arrays a, b, c of one axis
    "ad.sin({a}) * {b}",
    "{a} / ad.sqrt(1 + {b} ** 2)",
    "ad.where({a} > {b}, {a}, ad.tanh({c}))",
    "{a} - {a}.mean()",
    "{a} * ad.maximum({b}, {c}) / (1 + abs({b}).sum())",
    "ad.tanh({a} + {b}.max())",
    "ad.concat([{a}[1:], {b}[:1]])",
    "ad.concat([{a}[:2], {b}[2:]]) * 0.5",
    "{a}[::-1] - {b}",
    "ad.concat([{a}[::2] * 0.5, ad.sin({b}[1::2])])",
    "{a} * ad.tanh({c}[1::3].sum())",
    "ad.concat([{a}[::-2], {b}[1::2]])",
    "ad.roll({a}, 1) * ad.tanh({b})",
    "ad.sort({a})",
    "ad.cumulative_sum({a}) / {a}.shape[0]",
    "ad.tril({a}[:, None] * {b}).sum(axis=0)",
    "ad.triu({a} + ad.zeros(({b}.shape[0], 1)), k=1) @ {c}",
    "(ad.eye({a}.shape[0]) * 0.5) @ {a} + {b}",
    "ad.pad({a}, ((1, 2),))[1:-2] * {b}",
    "{a} * ad.argmax({b})",
    "{a} * ({b}[ad.argmin({b})] + 1)",
    "ad.convolve({a}, ad.asarray([1.0, 0.5, -1.0, 0.25]), mode='same')",
    "ad.convolve({a}, ad.asarray([0.5, 0.25]), mode='full')[1:] + {c}",
    "ad.concat([ad.diff({a}), {b}[:1]])",
    "ad.where(ad.arange({a}.shape[0]) % 2 == 0, {a}, {b})",
    "ad.concat([ad.ones(3), {a}])[3:] * {c}",
    "ad.tanh({a}) * (ad.arange({a}.shape[0]) / {a}.shape[0])",
    "({a} > 0) * {b}",
    "ad.special.erf({a}) + {b}",
    "ad.nn.softmax({a}, axis=0) + {b}",
    "ad.grad(lambda u: (ad.sin(u) * {b}).sum())({a})",
    "ad.vmap(lambda u, v: u * ad.sin(v))({a}, {b})",
    "ad.checkpoint(lambda u: ad.sin(u) * {b})({a})",
    "ad.scan(lambda s, z: (ad.tanh(s + z), s), {a}[0], {b})[1]",
    "ad.cond({a}.sum() > {b}.sum(), lambda u: u * 0.5, lambda u: -u, {a})",
    "ad.fori_loop(0, 3, lambda i, u: ad.tanh(u + {b}), {a})",
]
MATRICES = [  # of arrays of two axes
    "ad.sin({a}) * {b}",
    "{a} - {a}.mean(axis=1, keepdims=True)",
    "{a} - {a}.mean(axis=0)",
    "{a} / ad.sqrt(1 + ({b} ** 2).sum(axis=1, keepdims=True))",
    "ad.nn.softmax({a}, axis=1) + {b}",
    "ad.nn.log_softmax({a}, axis=1) / {a}.shape[1]",
    "ad.nn.layer_norm({a}, ({a}.shape[1],)) + ad.tanh({b})",
    "ad.tanh({a}) * {b}.max(axis=1)[:, None]",
    "ad.tanh({a} + {b}.sum())",
    "{a} @ ({b}.T @ {c}) / ({a}.shape[0] * {a}.shape[1])",
    "{a} + {b}[:1]",
    "{a}[:, ::-1] - {b}",
    "ad.concat([{a}[1:], {b}[:1]])",
    "({a}.T * 0.5).T + {b}",
    "ad.maximum({a}, {b}).mean(axis=0) - {c}",
    "ad.vmap(lambda u, v: ad.tanh(u) * v.mean())({a}, {b})",
    "{a}.reshape(-1)[None, :].reshape({a}.shape) - {b}",
]


def program(seed: int) -> tuple[Any, str]:
    """A random function of two arrays, whose terms are bounded, and the kind of its arrays."""
    rng = random.Random(seed)
    kind = rng.choice(["vectors", "rows", "columns", "both"])
    names = ["x", "w", "v"]
    lines = ["def f(x, w):", "    v = x * w"]
    for k in range(rng.randrange(1, 7)):
        line = rng.choice(VECTORS if kind == "vectors" else MATRICES)
        lines.append(f"    v{k} = {line.format(**{name: rng.choice(names[-4:]) for name in 'abc'})}")
        names.append(f"v{k}")
    lines.append(f"    return {', '.join(names[2:])}")
    scope = {"ad": ad}
    exec("\n".join(lines), scope)
    f: Any = scope["f"]
    f.text = "\n".join(lines)
    if rng.random() < 0.5:
        whole = f
        f = ad.value_and_grad(
            lambda x, w: sum([ad.tanh(y).mean() for y in ad.tree.leaves(whole(x, w))]), argnums=(0, 1)
        )
        f.text = whole.text + "\n# its gradient"
    return f, kind


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_of_many_sizes(seed: int) -> None:
    f, kind = program(seed)
    rng = random.Random(seed)
    dtype = rng.choice([np.float32, np.float64])
    g = ad.compile(f)
    sizes = rng.sample(SIZES, 6)
    long = "scan", "cumulative", "tri", "eye"  # steps, or numbers for each pair of elements
    if kind == "vectors" and not any(word in f.text for word in long):
        sizes += rng.sample(LARGE, 1)
    before = ad.get_num_threads()
    try:
        for n in sizes:
            ad.set_num_threads(rng.choice([1, 2]))
            shape = {"vectors": (n,), "rows": (n, 17), "columns": (5, n), "both": (n, rng.choice([3, 8, 33]))}[kind]
            x, w = np.random.default_rng(n).normal(size=(2, *shape)).astype(dtype)
            alone = ad.compile(f, dynamic=False)
            for found, expected, eager in zip(*[ad.tree.leaves(h(x, w)) for h in (g, alone, f)], strict=True):
                assert found.dtype == expected.dtype
                error = np.abs(np.asarray(expected) - np.asarray(eager)).max()  # of what is compiled for this size
                atol = 4 * error + 16 * np.finfo(dtype).eps * max(1.0, np.abs(np.asarray(eager)).max())
                np.testing.assert_allclose(found, eager, rtol=0, atol=atol, err_msg=f"{f.text}\n{shape}")
    finally:
        ad.set_num_threads(before)


def no_further_than_eager(g: Any, f: Any, wide: Any, dtype: Any, note: str) -> None:
    """See that results of g are as near to those in float64 as twice those of f, and a little more."""
    narrow = [np.asarray(x).astype(dtype) for x in wide]
    results = g(*narrow), f(*narrow), f(*[x.astype(float) for x in narrow])
    for found, *others in zip(*map(ad.tree.leaves, results), strict=True):
        eager, exact = map(np.asarray, others)
        assert (found.shape, found.dtype) == (eager.shape, eager.dtype)
        atol = 2 * np.abs(eager - exact).max() + 512 * np.finfo(dtype).eps * max(1.0, np.abs(exact).max())
        np.testing.assert_allclose(found, exact, rtol=0, atol=atol, err_msg=f"{note} {dtype}")


def variants(f: Any) -> list[int]:
    """How often code for any size was made, for each program."""
    return [len(p.replay._variants or ()) for general in f._general.values() for p in general.programs]


def test_one_piece_of_code_serves_for_all_sizes() -> None:
    f = ad.compile(lambda x: (ad.sin(x) * x, (x - x.mean()) / x.shape[0]))
    for n in [*range(2, 300), 5000, 20_000, 300_000]:
        x = np.linspace(0.0, 1.0, n)
        found, mean = f(x)
        np.testing.assert_allclose(found, np.sin(x) * x, rtol=1e-15)
        np.testing.assert_allclose(mean, (x - x.mean()) / n, rtol=1e-12, atol=1e-15)
    assert f._recordings == 2
    assert max(variants(f)) == 1


@pytest.mark.parametrize(
    "size",
    [
        lambda n: n // 3 + 1,
        lambda n: n - n // 2,
        lambda n: n % 7 + 1,
        lambda n: -(-n // 4),
        lambda n: (n - 5) // 3 + 3,
    ],
)
def test_sizes_that_follow_from_others(size: Any) -> None:
    """Python's floor division and remainder, of negative integers as well."""

    def f(x: Any) -> Any:
        k = size(x.shape[0])
        return x[:k] * k, x[-k:] / k + 1 / k, ad.full((k,), 2.0) * (k - 9), ad.sin(x) * ((k - 9) // 4) * ((k - 9) % 4)

    g = ad.compile(f)
    for n in range(2, 60):
        x = np.linspace(-1.0, 1.0, n)
        for found, expected in zip(g(x), f(ad.tensor(x)), strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x > 0.5, (x > 2).any(), (x > 0.5).sum()),
        lambda x: (ad.astype(x * 7, ad.int8), ad.astype(x * 7, ad.int64) // 2),
    ],
)
def test_truth_and_integers_of_any_size(f: Any) -> None:
    """A last vector of one element is stored like any other."""
    g = ad.compile(f)
    for n in [*range(2, 80), 5000]:
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        for found, expected in zip(g(x), f(ad.tensor(x)), strict=True):
            np.testing.assert_array_equal(found, expected.numpy())
    assert max(variants(g)) > 0


def test_places_out_of_range_are_an_error_of_any_size() -> None:
    f = ad.compile(lambda x, i: ad.sin(x)[i] * 2)
    for n in (5, 6, 7, 8):
        x = np.linspace(0.0, 1.0, n)
        np.testing.assert_allclose(f(x, np.array([0, n - 1])), np.sin(x)[[0, n - 1]] * 2)
    for n in (9, 10):
        with pytest.raises(errors.AdjointError):
            f(np.ones(n), np.array([0, n]))


def test_a_size_that_comes_again_gets_code_of_its_own() -> None:
    f = ad.compile(lambda x: ad.sin(x) * 2)
    for n in (5, 6, 7, 7, 7, 7):
        f(np.ones(n))
    assert [p.symbols is None for p in f._programs.values()].count(True) >= 1


def test_donated_arrays_of_any_size() -> None:
    f = ad.compile(lambda x, g: (x - 0.5 * g, (x * g).sum()), donate=0)
    for n in (1000, 2000, 3000, 3001, 4000):
        x, g = np.linspace(0.0, 1.0, n), np.linspace(1.0, 2.0, n)
        stepped, total = x - 0.5 * g, (x * g).sum()
        found, summed = f(x.copy(), g)
        np.testing.assert_allclose(found, stepped, rtol=1e-15)
        np.testing.assert_allclose(summed, total, rtol=1e-13)


def test_tensors_of_any_size_and_modules() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(5, 7), ad.nn.ReLU(), ad.nn.Linear(7, 2))
    f = ad.compile(lambda model, x: (model(x) ** 2).mean())
    for n in range(3, 40, 3):
        x = ad.tensor(np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32))
        np.testing.assert_allclose(f(model, x).item(), (model(x) ** 2).mean().item(), rtol=1e-5)


def test_answers_that_hold_for_all_sizes_are_no_guards() -> None:
    """A remainder is less than its divisor, a product of one may be anything."""
    symbols = Written({"n0": 37})
    n: Any = Size(37, {("n0",): 1}, "n0", symbols)
    assert n % 16 != 16
    assert symbols.guards == {}
    assert (n // 2) * (n % 16) != 32
    assert len(symbols.guards) == 1


def test_a_size_times_infinity() -> None:
    f = ad.compile(lambda x: (x * (x.shape[0] * np.inf), ad.sin(x)))
    for n in (5, 6, 7, 8):
        found, sine = f(np.ones(n))
        np.testing.assert_array_equal(found, np.full(n, np.inf))
        np.testing.assert_allclose(sine, np.sin(np.ones(n)))


@pytest.fixture
def turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.usefixtures("turns_often")
def test_threads_make_code_for_any_size_once() -> None:
    """Each made its own, and eight are all that is kept."""
    f = ad.compile(lambda x: ad.sin(x) * x.mean() + x.shape[0])
    f(np.ones(5))
    together(lambda _: np.testing.assert_allclose(f(np.ones(64)), np.sin(1.0) + 64.0 + np.zeros(64), rtol=1e-15))
    assert variants(f) == [1]


@pytest.mark.usefixtures("turns_often")
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_threads_call_with_other_sizes(seed: int, warm: bool) -> None:
    """The first calls of all come at once, or while one of them makes new code."""
    f, kind = program(seed + 100)
    sizes = random.Random(seed).sample(SIZES, 8)
    shapes = {
        "vectors": lambda n: (n,),
        "rows": lambda n: (n, 17),
        "columns": lambda n: (5, n),
        "both": lambda n: (n, 8),
    }
    given = {n: np.random.default_rng(n).normal(size=(2, *shapes[kind](n))) for n in sizes}
    expected = {n: ad.tree.leaves(f(*pair)) for n, pair in given.items()}
    g = ad.compile(f)

    def run(k: int) -> None:
        for turn in range(2 * len(sizes)):
            n = sizes[(turn + (k if warm else 0)) % len(sizes)]
            for found, wanted in zip(ad.tree.leaves(g(*given[n])), expected[n], strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{f.text}\n{n}")

    if warm:
        for n in sizes[:2]:
            g(*given[n])
    together(run)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_calls_after_interrupts() -> None:
    """Wherever an interrupt comes, of recording, of making code or of a call, later calls are right."""
    works = False

    def stop(number: int, frame: Any) -> None:
        nonlocal works
        if works:
            works = False
            raise KeyboardInterrupt

    times, came = random.Random(0), 0
    handler = signal.signal(signal.SIGALRM, stop)
    try:
        for turn in range(60):
            f = ad.compile(lambda x, turn=turn: (ad.sin(x) * (x.shape[0] + turn), (x - x.mean()).sum()))
            for n in (5, 6, 33, 64, 33):
                x = np.linspace(0.0, 1.0, n)
                try:
                    works = True
                    signal.setitimer(signal.ITIMER_REAL, times.choice([1e-4, 1e-3, 1e-2, 3e-2]) * times.uniform(0.5, 2))
                    f(x)
                    works = False
                except KeyboardInterrupt:
                    came += 1
                works = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                np.testing.assert_allclose(f(x)[0], np.sin(x) * (n + turn), rtol=1e-14)
            assert not turns._one._is_owned()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert came > 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_makes_code_for_other_sizes() -> None:
    """While a thread of the first process makes some, which the second has not."""
    f = ad.compile(lambda x: ad.sin(x) * x.mean())
    right = lambda n: np.allclose(f(np.ones(n)), np.sin(1.0), rtol=1e-15)
    assert right(5)
    assert right(6)
    g = ad.compile(lambda x: [ad.sin(x * k) / (x.shape[0] % (k + 2) + 1) for k in range(40)])
    stopped = threading.Event()

    def work() -> None:
        n = 4
        while not stopped.is_set():
            g(np.ones(n))
            n += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for n in (33, 64, 500, 4097):
            pid = os.fork()
            if not pid:
                signal.alarm(100)
                os._exit(0 if right(n) and right(n + 1) and right(5) and len(g(np.ones(n))) == 40 else 1)
            assert os.waitpid(pid, 0)[1] == 0
            assert right(n)
    finally:
        stopped.set()
        thread.join(60)
