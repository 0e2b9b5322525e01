"""Errors from outside, such as that of Ctrl-C: wherever one comes, no level, device, key or phase stays behind.

Python raises the error of a signal where a Python function begins, or when a call returns. A profiler is called at the
same places and may raise as well, so that each of them has its turn.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import backend, concrete, devices, random_keys
from adjoint.scopes import innermost
from adjoint.transforms import control

X = np.array([0.5, -1.0, 2.0])


class Interrupt(BaseException):
    """What the handler of a signal raises; not caught by mistake."""


def loss(x: Any) -> Any:
    return (ad.sin(x) * x).sum()


@ad.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * g * x**2,))


def noisy(x: Any) -> Any:
    return (x * ad.random.normal(x.shape)).sum()


def with_device() -> Any:
    with ad.use_device("reference"):
        ad.zeros(2)
        with ad.use_device(ad.NumPy()):
            return ad.ones(2) + 1


def with_dtype() -> Any:
    with ad.use_dtype(ad.float16):
        ad.zeros(2)
        with ad.use_dtype(ad.float64):
            return ad.grad(lambda x: (x * ad.ones(x.shape)).sum())(X)


def backward_of_tensors() -> Any:
    x = ad.tensor(X).require_grad()
    return cube(x).sum().backward()[x]


WORK: dict[str, Callable[[], Any]] = {
    "grad": lambda: ad.grad(loss)(X),
    "grad of grad": lambda: ad.grad(lambda x: ad.grad(lambda y: (y * y * x).sum())(x).sum())(X),
    "vmap of grad": lambda: ad.vmap(ad.grad(loss))(np.stack([X, X])),
    "jvp": lambda: ad.jvp(ad.sin, (X,), (X,)),
    "vjp": lambda: ad.vjp(ad.sin, X)[1](X),
    "linearize": lambda: ad.linearize(ad.sin, X)[1](X),
    "jacobian": lambda: ad.jacobian(ad.sin)(X),
    "hessian": lambda: ad.hessian(loss)(X),
    "jet": lambda: ad.jet(ad.sin, (X,), ([X, X],)),
    "checkpoint": lambda: ad.grad(ad.checkpoint(noisy))(X),
    "custom": lambda: ad.grad(lambda x: cube(x).sum())(X),
    "backward": backward_of_tensors,
    "scan": lambda: ad.grad(lambda x: ad.scan(lambda c, a: (c * ad.sin(a), c), x[0], x)[0])(X),
    "scan with checkpoints": lambda: ad.grad(
        lambda x: ad.scan(lambda c, a: (c * a + ad.random.normal(()), c), x[0], x, checkpoint_every=1)[0]
    )(X[:2]),
    "while_loop": lambda: ad.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, 0.5),
    "cond": lambda: ad.grad(lambda x: ad.cond(True, ad.sin, ad.cos, x))(0.5),
    "sparse": lambda: ad.sparse_jacobian(ad.sin)(X),
    "use_device": with_device,
    "use_dtype": with_dtype,
    "checked": lambda: loss(ad.tensor(X, device="autodiff<checked<numpy>>")),
}


SLOW = {"scan with checkpoints"}  # thousands of places


def state() -> list[Any]:
    """All that is current in this context."""
    return [
        devices.current_level(),
        ad.default_device(),
        ad.default_dtype(),
        backend.in_backward.get(),
        control._inside.get(),
        innermost(random_keys._run),
        concrete.collecting(),
    ]


def interrupted(work: Callable[[], Any], k: int, kept: list[Interrupt]) -> bool:
    """Run with an error at the k-th place where a signal may come; whether there are so many.

    The error is kept, as Python keeps a user's in `sys.last_traceback`, with all frames that it passed.
    """
    left = k

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left < 0 and frame.f_code is not interrupted.__code__:
                raise Interrupt

    before = sys.getprofile()
    try:
        sys.setprofile(count)
        work()
    except Interrupt as error:
        kept[:] = [error]
    finally:
        sys.setprofile(before)
    return left < 0  # also where Python ignores errors, as where a generator is closed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is closed
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in WORK])
def test_nothing_stays_current_wherever_a_signal_comes(name: str) -> None:
    work, before = WORK[name], state()
    work()
    with np.errstate(all="warn"), Each() as each:
        k, kept = 0, list[Interrupt]()
        while interrupted(work, k, kept):
            if name in ("use_device", "use_dtype"):  # whose object ends its block, at the latest
                kept.clear()
            with each(k):
                assert state() == before
            k += 1
        assert k > 20
    same = ad.grad(lambda x: x * x)(3.0)
    assert type(same) is np.float64
    assert same == 6.0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_stays_current_after_signals_at_random_times() -> None:
    def stop(number: int, frame: Any) -> None:
        raise Interrupt

    for name in ("vmap of grad", "use_device"):
        WORK[name]()  # a module in C whose import is interrupted raises errors of its own
    before, came, times = state(), 0, random.Random(0)
    handler = signal.signal(signal.SIGALRM, stop)
    try:
        with np.errstate():  # which is Python, too: a signal at its end leaves NumPy's warnings off
            for _ in range(1000):
                try:
                    signal.setitimer(signal.ITIMER_REAL, times.uniform(5e-5, 1e-3))
                    for _ in range(50):  # more than there is time for
                        WORK["vmap of grad"]()
                        WORK["use_device"]()
                except Interrupt:
                    came += 1
                assert state() == before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert came > 100  # of some Python takes no notice, as where it closes a generator
