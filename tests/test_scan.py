"""Scan at its ends, and in chunks that run again."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loops import (
    BATCH,
    POINTS,
    all_close,
    close,
    compare,
    derivatives,
    derivatives_of_batches,
    nested,
    recurrence,
    recurrence_in_reverse,
    without_xs,
)

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(5)


# --- scan's ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_no_steps(reverse: bool) -> None:
    rows = np.zeros((0, 3))

    def step(c: Any, x: Any) -> Any:
        return c + x.sum(), {"s": 1 / x, "t": c}  # 1 / 0 without a warning

    last, ys = ad.scan(step, 0.5, rows, reverse=reverse)
    assert (last, last.dtype) == (0.5, np.float64)
    assert (ys["s"].shape, ys["s"].dtype, ys["t"].shape) == ((0, 3), np.float64, (0,))
    _, ys = ad.scan(lambda c, _: (c, ad.ones((2, 1))), 1.0, length=0)
    assert ys.shape == (0, 2, 1)
    assert ad.map(lambda x: x[:2] > 0, rows).shape == (0, 2)
    assert ad.map(lambda x: x[:2] > 0, rows).dtype == np.bool_
    batch = ad.vmap(lambda x, c: ad.scan(lambda c, v: (c, v * c), c, x))(np.zeros((4, 0)), np.arange(4.0))
    assert batch[0].tolist() == [0, 1, 2, 3]
    assert batch[1].shape == (4, 0)
    assert ad.grad(lambda c: ad.scan(lambda c, v: (c * c, v), c, rows)[0])(3.0) == 1.0
    with pytest.raises(errors.DtypeError, match=r"the carry was float64.*became bool"):
        ad.scan(lambda c, x: (c > 0, x), np.array(1.0), rows)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_map_in_batches(size: int) -> None:
    xs = {"a": RNG.normal(size=(7, 3)), "b": np.arange(7)}
    f = lambda x: (ad.sin(x["a"]) * x["b"], {"n": x["a"].sum()})
    all_close(ad.map(f, xs, batch_size=size), ad.map(f, xs))
    loss = lambda size: lambda a: (ad.map(f, {"a": a, "b": xs["b"]}, batch_size=size)[0] ** 2).sum()
    close(ad.grad(loss(size))(xs["a"]), ad.grad(loss(None))(xs["a"]))
    close(ad.hvp(loss(size), (xs["a"],), (xs["a"],)), ad.hvp(loss(None), (xs["a"],), (xs["a"],)))
    sizes: list[Any] = []
    ad.map(lambda x: sizes.append(x.device) or x, xs["a"], batch_size=size)
    assert len(sizes) == -(-7 // size)  # f runs once for each batch
    empty = ad.map(lambda x: x["a"] > 0, {"a": np.zeros((0, 3))}, batch_size=size)
    assert (empty.shape, empty.dtype) == ((0, 3), np.bool_)


@pytest.mark.parametrize("every", [None, 2])
def test_loops_draw_as_python_does(every: int | None) -> None:
    """Also where the first step is run twice, because a number of the carry takes another dtype."""

    def f(x: Any) -> Any:
        return x * ad.random.normal((), dtype=ad.float64)

    answers = []
    for run in (
        lambda x: f(x) + f(x) + f(x),
        lambda x: ad.scan(lambda c, _: (c + f(x), None), 0.0, length=3, checkpoint_every=every)[0],
        lambda x: ad.fori_loop(0, 3, lambda _, c: c + f(x), 0.0),
    ):
        ad.random.seed(3)
        answers.append(ad.value_and_grad(run)(1.0))
    np.testing.assert_allclose(answers, np.broadcast_to(answers[0], (3, 2)), rtol=1e-14)
    np.testing.assert_allclose(*answers[0], rtol=1e-14)


def test_batches_of_map_draw_for_each_slice() -> None:
    drawn = ad.map(lambda x: x + ad.random.normal(()), np.zeros(7), batch_size=3)
    assert drawn.shape == (7,)
    assert len(set(drawn.tolist())) == 7


def test_length() -> None:
    assert ad.scan(lambda c, _: (c + 2, c), 1, None, 3)[1].tolist() == [1, 3, 5]
    assert ad.scan(lambda c, _: (c + 2, c), 1, length=np.int64(3), reverse=True)[1].tolist() == [5, 3, 1]
    assert ad.scan(lambda c, x: (c, x), 1, np.arange(2), length=2)[1].tolist() == [0, 1]
    assert ad.scan(lambda c, x: (c, None), 1, np.arange(2))[1] is None


# --- chunks that run again ---------------------------------------------------------------------------


class Chunked:
    """What `L` stands for in programs, with scans in chunks of two steps."""

    cond, fori_loop, map = staticmethod(ad.cond), staticmethod(ad.fori_loop), staticmethod(ad.map)
    scan = staticmethod(functools.partial(ad.scan, checkpoint_every=2))


@pytest.mark.parametrize("program", [recurrence, recurrence_in_reverse, without_xs, nested], ids=lambda p: p.__name__)
def test_chunks_change_no_derivative(program: Any) -> None:
    def plain(x: Any) -> Any:
        return program(ad, ad, x)

    def chunked(x: Any) -> Any:
        return program(Chunked, ad, x)

    compare(derivatives(ad, chunked)(POINTS[0]), derivatives(ad, plain)(POINTS[0]))
    compare(ad.vmap(derivatives(ad, chunked))(BATCH), ad.vmap(derivatives(ad, plain))(BATCH))
    twice = BATCH.reshape(2, 2, 3)
    compare(derivatives_of_batches(ad, chunked)(twice), derivatives_of_batches(ad, plain)(twice))
    close(
        ad.grad(lambda x: ad.grad(chunked)(x).sum())(POINTS[0]), ad.grad(lambda x: ad.grad(plain)(x).sum())(POINTS[0])
    )
    value, pullback = ad.vjp(chunked, POINTS[1])  # pulled back when the levels have ended
    close(pullback(1.0)[0], ad.grad(plain)(POINTS[1]))
    close(ad.linearize(chunked, POINTS[1])[1](POINTS[0]), ad.jvp(plain, (POINTS[1],), (POINTS[0],))[1])


def test_chunks_of_leaf_tensors(device: Any) -> None:
    w, b = ad.tensor([0.3, -0.2], dtype=ad.float64).require_grad(), ad.tensor(0.1, dtype=ad.float64).require_grad()
    xs = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.1]])

    def loss(every: Any) -> Any:
        last, ys = ad.scan(lambda c, x: (ad.tanh(c * w + x), c * b), xs[0], xs, None, False, every)
        return last.sum() + ys.sum()

    wanted = loss(None).backward()
    for every in (1, 2, 3, 4):
        value = loss(every)
        assert value.device is device
        found = value.backward()
        close(found[w].numpy(), wanted[w].numpy())
        close(found[b].numpy(), wanted[b].numpy())
        with pytest.raises(errors.FreedGraphError):
            value.backward()


def peak_of_gradient(length: int, every: int | None, body: Callable[[Any], Any], size: int = 100) -> int:
    """The most memory that a gradient through a scan takes."""

    def loss(w: Any) -> Any:
        step = body(w)
        init = np.full(size, 0.1)
        return ad.scan(lambda c, _: (step(c), 1.0), init, length=length, checkpoint_every=every)[0].sum()

    tracemalloc.start()
    gradient = ad.grad(loss)(0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(gradient)
    return peak


def test_memory_grows_as_the_square_root_of_the_length() -> None:
    body = lambda w: lambda c: ad.tanh(ad.sin(c * w) + c)
    peak_of_gradient(9, 3, body)  # fills caches
    peaks = [peak_of_gradient(n * n, n, body) for n in (10, 20, 40)]
    assert peaks[1] < 2.4 * peaks[0]
    assert peaks[2] < 2.4 * peaks[1]
    assert 10 * peaks[2] < peak_of_gradient(1600, None, body)


class Cell:
    """A step with its weight in an attribute, where nobody sees it in advance."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, c: Any) -> Any:
        return ad.tanh(ad.sin(c * self.w) + c)


def test_chunks_of_what_is_no_closure() -> None:
    def loss(body: Any, every: Any) -> Any:
        def f(w: Any, x: Any) -> Any:
            step = body(w)
            last, ys = ad.scan(lambda c, _: (step(c), step(c) * 2), x, length=5, checkpoint_every=every)
            return (last + ys.sum()).sum()

        return f

    w, x = np.array(0.9), np.array([0.1, -0.2])
    plain = loss(lambda w: lambda c: ad.tanh(ad.sin(c * w) + c), None)
    hidden = loss(Cell, 2)
    for argnum in (0, 1):
        close(ad.grad(hidden, argnum)(w, x), ad.grad(plain, argnum)(w, x))
        close(ad.hessian(hidden, argnum)(w, x), ad.hessian(plain, argnum)(w, x))
    close(ad.jvp(hidden, (w, x), (w, x))[1], ad.jvp(plain, (w, x), (w, x))[1])
    both = np.stack([x, -x])
    for argnum in (0, 1):
        mine, wanted = (ad.vmap(ad.grad(f, argnum), (None, 0))(w, both) for f in (hidden, plain))
        close(mine, wanted)
        mine, wanted = (
            ad.grad(lambda *a, f=f: ad.vmap(f, (None, 0))(*a).sum(), argnum)(w, both) for f in (hidden, plain)
        )
        close(mine, wanted)
    leaf = ad.tensor(0.9, dtype=ad.float64).require_grad()
    close(hidden(leaf, x).backward()[leaf].item(), ad.grad(plain)(w, x))
    assert 3 * peak_of_gradient(400, 20, Cell, 1000) < peak_of_gradient(400, None, Cell, 1000)


@pytest.mark.parametrize("device", ["autodiff<numpy>", "autodiff<reference>"])
def test_chunks_beside_a_tracked_tensor_that_is_no_closure(device: str) -> None:
    """A level between that of the derivative and the leaf follows it, and none of the arguments."""
    w = ad.tensor(0.9, dtype=ad.float64, device=device).require_grad()
    loss = lambda a, every: ad.scan(lambda c, _: (Cell(w)(c), None), a, length=5, checkpoint_every=every)[0]
    found, wanted = ([ad.grad(loss)(0.3, every), ad.hessian(loss)(0.3, every)] for every in (2, None))
    close([x.item() for x in found], [x.item() for x in wanted])
    mine, theirs = (x[0].backward()[w].item() for x in (found, wanted))
    close(mine, theirs)


def test_chunks_keep_strong_zeros() -> None:
    x = ad.tensor([0.0, 4.0], device=ad.Autodiff(ad.NumPy(), strong_zero=True)).require_grad()

    def gradient(every: Any) -> Any:
        step = lambda c, _: (ad.where(c > 0, ad.sqrt(c), 0.0) + c, None)
        return ad.scan(step, x, length=3, checkpoint_every=every)[0].sum().backward()[x].numpy()

    assert np.isfinite(gradient(None)).all()
    np.testing.assert_array_equal(gradient(2), gradient(None))


def test_chunks_draw_the_same_random_numbers_again() -> None:
    def loss(w: Any, every: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            inner, _ = ad.scan(lambda d, _: (d * (1 + ad.random.uniform(())), None), w, length=3, checkpoint_every=2)
            return c * inner + ad.random.normal(()), ad.random.uniform(()) * c

        last, ys = ad.scan(step, 1.0, length=5, checkpoint_every=every)
        return last + ys.sum()

    found = []
    for every in (None, 2, 5):
        ad.random.seed(3)
        twice = ad.grad(lambda w, every=every: ad.grad(loss)(w, every))(0.7)
        found.append((*ad.value_and_grad(loss)(0.7, every), twice, ad.random.uniform(()).item()))
    close(found[1], found[0])
    close(found[2], found[0])


def test_chunks_of_loops_over_constants() -> None:
    """What was no variable when it ran first is none when it runs again: a while_loop over it is allowed."""

    def f(w: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            scaled = ad.while_loop(lambda v: v < 10, lambda v: v * 2, x["v"])
            return {"h": ad.sin(c["h"] * w) + scaled, "n": c["n"] + 1}, c["n"]

        last, counts = ad.scan(step, {"h": 0.5, "n": 0}, {"v": np.array([1.0, 3.0, 6.0])}, checkpoint_every=2)
        return last["h"] * counts.sum()

    def plain(w: Any) -> Any:
        h = 0.5
        for x in (16.0, 12.0, 12.0):
            h = ad.sin(h * w) + x
        return h * 3.0

    close(ad.grad(f)(0.4), ad.grad(plain)(0.4))
    close(ad.hessian(f)(0.4), ad.hessian(plain)(0.4))
    close(ad.jvp(f, (0.4,), (1.0,)), ad.jvp(plain, (0.4,), (1.0,)))


def test_chunks_with_assignment_and_numbers() -> None:
    def f(w: Any, every: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            buffer, total = c
            buffer[i] = buffer[i - 1] * w
            return (buffer, total + buffer[i]), total

        (buffer, total), ys = ad.scan(step, (ad.ones(6, dtype=ad.float64), 0.0), np.arange(1, 6), None, False, every)
        return total + (ys * buffer[1:]).sum()

    for every in (1, 2, 3, 9):
        close(ad.value_and_grad(f)(0.7, every), ad.value_and_grad(f)(0.7, None))


def test_assignment_to_a_carry_that_is_a_variable() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            c[i] = c[i] * c[i - 1]
            return c, None

        return ad.scan(step, x, np.arange(1, 4))[0].sum()

    close(ad.grad(f)(np.array([2.0, 3.0, 5.0, 7.0])), [1 + 3 + 15 + 105, 2 + 10 + 70, 6 + 42, 30])
    x = ad.tensor([2.0, 3.0, 5.0, 7.0]).require_grad()
    assert f(x).backward()[x].tolist() == [124.0, 82.0, 48.0, 30.0]
    assert x.tolist() == [2.0, 3.0, 5.0, 7.0]
