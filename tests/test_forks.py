"""Processes that fork while other threads work: the child has no such thread, and must not wait for one."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import processes
import pytest
from conftest import joined

import adjoint
from adjoint import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

PROGRAM = """
import dataclasses, faulthandler, os, signal, sys, threading, warnings
import numpy as np
import adjoint as ad
import adjoint.torch as torch
from adjoint import locks

warnings.simplefilter("ignore")  # Python warns of forks beside threads

@dataclasses.dataclass
class Pair:
    a: object
    b: object

shared = ad.compile(lambda x: (ad.sin(x) * ad.exp(x)).sum())

def work():
    x = ad.tensor(np.ones(3)).require_grad()
    (x * x).sum().backward()
    y = ad.zeros(3)
    y[0] = 2.0
    y[1] = 3.0
    ad.set_default_device("autodiff<numpy>")
    observed = ad.Profiled(ad.NumPy())
    ad.zeros(3, device=observed) + 1
    observed.profile()
    ad.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0))
    repr(ad.Autodiff(observed))
    shared(np.ones(5))
    ad.grad(ad.compile(lambda x: (ad.sin(x) * x).sum() * 2))(np.ones(5))  # recorded anew each time
    t = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        t * 2
    torch.rand(2)
    torch.Generator().manual_seed(torch.initial_seed())
    (t * t).sum().backward()
    torch.func.vmap(torch.sin)(t)
    layer = ad.nn.Linear(3, 1)
    ad.train.Learner(layer, ad.nn.mse_loss, ad.optim.SGD(lr=0.1)).fit([(np.ones((2, 3)), np.ones((2, 1)))])

def child():
    pid = os.fork()
    if pid == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(200)  # which ends a child that hangs
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]

"""

HELD = """
work()
held, done = threading.Event(), threading.Event()

def hold():
    for lock in [*locks._made, torch.default_generator.source.bit_generator.lock]:
        lock.acquire(False)
    held.set()
    done.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
assert child() == 0
done.set()
os._exit(0)
"""

BUSY = """
work()  # imports what there is: a lock of Python's own is held meanwhile
for _ in range(4):
    def busy():
        while True:
            work()
    threading.Thread(target=busy, daemon=True).start()
assert [child() for _ in range(10)] == [0] * 10
os._exit(0)
"""


@pytest.mark.parametrize(
    ("others", "how"),
    [
        (HELD, "replay"),
        pytest.param(BUSY, "replay", marks=pytest.mark.slow),
        pytest.param(BUSY, "", marks=pytest.mark.slow),
    ],
    ids=["held", "busy", "busy with machine code"],
)
def test_a_child_does_not_wait_for_threads_of_its_parent(others: str, how: str) -> None:
    processes.python(PROGRAM + others, env={**os.environ, "ADJOINT_COMPILE": how, "ADJOINT_CACHE": "0"})


def test_a_fork_releases_what_its_own_thread_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: dict[str, Any] = {}
    monkeypatch.setattr(os, "register_at_fork", hooks.update)
    lock = locks.lock()
    locks.held_over_forks(lock)
    hooks["after_in_parent"]()  # of a fork that had begun before the hooks were there
    hooks["before"]()
    other = threading.Thread(target=hooks["after_in_parent"])
    other.start()
    joined(other)
    taken: list[bool] = []
    for after in (lambda: None, hooks["after_in_parent"]):
        after()
        other = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        other.start()
        joined(other)
    assert taken == [False, True]


def test_all_locks_are_made_in_one_place() -> None:
    """Python's cached properties hold a lock, too, before version 3.12."""
    root = Path(adjoint.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text()
        assert path == root / "locks.py" or not any(
            made in text for made in ("threading.Lock", "threading.RLock", "Condition(", "functools.cached_property")
        ), path
