"""Errors from outside, such as that of Ctrl-C: wherever one comes, no level, device, key or phase stays behind.

Python raises the error of a signal where a Python function begins, or when a call returns. A profiler is called at the
same places and may raise as well, so that each of them has its turn.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
import adjoint.torch as torch
from adjoint import backend, concrete, devices, random_keys
from adjoint.compiler import environment, sizes, traced, turns
from adjoint.compiler.native import linked, machine
from adjoint.scopes import innermost
from adjoint.torch import state as face
from adjoint.torch.autograd import forward_ad
from adjoint.transforms import control, watched

X = np.array([0.5, -1.0, 2.0])


class Interrupt(BaseException):
    """What the handler of a signal raises; not caught by mistake."""


def loss(x: Any) -> Any:
    return (ad.sin(x) * x).sum()


@ad.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * g * x**2,))


class Held:
    def __init__(self, weight: Any) -> None:
        self.weight = weight

    def scaled(self, x: Any) -> Any:
        return self.weight * x


held = Held(ad.tensor([2.0, 3.0, 4.0]).require_grad())
layer = torch.nn.Linear(2, 1)


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


product = ad.compile(loss)


def without_compile() -> Any:
    with ad.disable_compile():
        return product(X)


def backward_in_the_face() -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: g * 2)
    (x * x).sum().backward()
    return x.grad


def modes_in_the_face() -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            y = y + (x * x).sum()
    with torch.inference_mode():
        torch.ones(2) * 2
    return torch.no_grad()(lambda: y * x)()


def hooks_in_the_face() -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * x).sum()
    y.backward()
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(torch.ones(2), torch.ones(2)) * 2)


def step_in_the_face() -> Any:
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def learner() -> Any:
    data = [(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))]
    model = ad.nn.Linear(3, 1)
    return ad.train.Learner(model, ad.nn.mse_loss, ad.optim.SGD(lr=0.1)).fit(data)


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
    "compile": lambda: ad.compile(loss)(X),
    "compiled": lambda: product(X),
    "object compiled": lambda: ad.compile(lambda x: held.scaled(x).sum())(X),
    "compile for sizes": lambda: ad.compile(lambda x: (x * x.shape[0]).sum(), dynamic=True)(X),
    "disable_compile": without_compile,
    "grad of compile": lambda: ad.grad(ad.compile(loss))(X),
    "compile a scan": lambda: ad.compile(lambda x: ad.scan(lambda c, a: (c * ad.sin(a), c), x[0], x)[0])(X),
    "face, backward": backward_in_the_face,
    "face, modes": modes_in_the_face,
    "face, hooks": hooks_in_the_face,
    "face, vmap": lambda: torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(torch.ones(2, 3)),
    "face, step": step_in_the_face,
    "functional_call": lambda: torch.func.functional_call(
        layer, {"weight": torch.ones(1, 2), "bias": torch.ones(1)}, torch.ones(1, 2)
    ),
    "learner": learner,
}


# by the places at which there may be a signal, of which one in so many has its turn
SLOW = {
    "scan with checkpoints": 1,
    "grad of compile": 3,
    "compile a scan": 3,
    "compile for sizes": 1,
    "object compiled": 3,
    "face, vmap": 1,
    "face, step": 1,
    "learner": 29,
}
# whose objects end their blocks, at the latest
ENDED_BY_OBJECTS = ("use_device", "use_dtype", "disable_compile", "face", "learner", "object")


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
        innermost(environment.disabled),
        innermost(traced._recording),
        innermost(sizes._bound),
        *[mode.now() for mode in (face.recorded, face.saved_hooks, face.no_saved_hooks, face.duals, face.transforms)],
        face.special,
        face.running(),
        face.modes.drawing,
        signal.getsignal(signal.SIGINT),
        type(held),
        dict(watched._watches),
        innermost(turns._turn),
        *map(id, layer.parameters()),
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
            if name.startswith(ENDED_BY_OBJECTS):
                kept.clear()
            with each(k):
                assert state() == before
            k += SLOW.get(name, 1)
        assert k > 20
    if "compile" in name:
        ad.compile(lambda x: x + 1.0)(X)
        assert not turns._one._is_owned()
    same = ad.grad(lambda x: x * x)(3.0)
    assert type(same) is np.float64
    assert same == 6.0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_stays_current_after_signals_at_random_times() -> None:
    works = False

    def stop(number: int, frame: Any) -> None:
        nonlocal works
        if works:  # a busy system may hand a signal to another thread, and have it wait
            works = False
            raise Interrupt

    for name in ("vmap of grad", "use_device"):
        WORK[name]()  # a module in C whose import is interrupted raises errors of its own
    before, came, times = state(), 0, random.Random(0)
    handler = signal.signal(signal.SIGALRM, stop)
    try:
        with np.errstate():  # which is Python, too: a signal at its end leaves NumPy's warnings off
            for _ in range(1000):
                try:
                    works = True
                    signal.setitimer(signal.ITIMER_REAL, times.uniform(5e-5, 1e-3))
                    for _ in range(50):  # more than there is time for
                        WORK["vmap of grad"]()
                        WORK["use_device"]()
                    works = False
                except Interrupt:
                    came += 1
                assert state() == before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert came > 100  # of some Python takes no notice, as where it closes a generator


def test_llvm_is_called_where_no_handler_of_signals_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """llvmlite frees texts twice where a handler raises between freeing one and noting that."""
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", "")
    monkeypatch.setenv("ADJOINT_CACHE", "0")
    linked._machines.clear()
    ad.compile(lambda x: ad.sin(x) * 0.8125)(np.ones(3))  # what is asked once, such as which processor this is
    made: list[str] = []
    here: list[tuple[str, str]] = []
    build = machine.Machine.__init__
    monkeypatch.setattr(
        machine.Machine,
        "__init__",
        lambda self, *how: (made.append(threading.current_thread().name), build(self, *how))[1],
    )
    sys.setprofile(lambda frame, *_: here.append((frame.f_code.co_filename, frame.f_code.co_name)))
    try:
        f = ad.compile(lambda x: ad.sin(x) * 0.6875)
        found = f(np.ones(3))
    finally:
        sys.setprofile(None)
    np.testing.assert_allclose(found, np.sin(1) * 0.6875 * np.ones(3), rtol=1e-14)
    assert made == ["adjoint-llvm"]
    assert not [name for file, name in here if "llvmlite" in file and name in ("close", "_dispose")]


def test_errors_of_machine_code_come_from_the_thread_that_makes_it() -> None:
    pytest.importorskip("llvmlite")
    text = "this is no text of LLVM's"
    with pytest.raises(RuntimeError, match="LLVM|expected|parsing"):
        linked.machine(text, lambda: machine.emitted(text), False)
