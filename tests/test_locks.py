"""Locks of the package: finalizers and handlers of signals come in the middle of anything, and may compute as well."""

from __future__ import annotations

import processes

IN_THE_MIDDLE = """
import contextvars
import numpy as np
from adjoint import locks

entered, computes = [], False

class Watched:
    def __init__(self):
        self.lock = plain()

    def __getattr__(self, name):
        return getattr(self.lock, name)

    def __enter__(self):
        global computes
        self.lock.__enter__()
        entered.append(self)
        if ready and not computes:
            computes = True
            contextvars.Context().run(work)  # else it is on the level of what it interrupts
            computes = False

    def __exit__(self, *error):
        self.lock.__exit__(*error)

plain, locks.lock, ready = locks.lock, Watched, False
import adjoint as ad
import adjoint.torch as torch

level = ad.Profiled(ad.NumPy())

def work():
    x = ad.tensor(np.ones(3)).require_grad()
    (x * x).sum().backward()
    ad.Autodiff(ad.Profiled(ad.NumPy()))
    (ad.zeros(3, device=level) + 1) * 2
    level.profile()
    y = ad.zeros(3)
    y[0] = 2.0
    y[:2].numpy()
    ad.set_default_device("autodiff<numpy>")
    ad.set_default_dtype("float32")
    t = torch.ones(2)
    with torch.no_grad(), torch.inference_mode():
        t * 2
    with torch.inference_mode(False), torch.enable_grad():  # it may come where these were off
        t = torch.ones(2, requires_grad=True)
        (t * t).sum().backward()
    ad.grad(ad.compile(lambda x: (ad.sin(x) * x).sum() * 2.0))(np.ones(3))

work()
ready = True
del entered[:]
work()
print(len(set(map(id, entered))))
"""


def test_who_comes_in_the_middle_of_a_lock_may_compute() -> None:
    assert int(processes.python(IN_THE_MIDDLE, limit=120).stdout) >= 6
