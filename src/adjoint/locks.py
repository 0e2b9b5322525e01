"""Locks that a forked process can take.

A fork copies a lock as it is, also one that another thread holds; that thread is not in the child, so nobody would
release it. The loaders of PyTorch and Python's `multiprocessing` fork. What these locks keep together is whole after
any single step, so the child gets them released, and all locks of the package are made here.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.RLock:
    """A lock that the thread that holds it can take again: a finalizer or a handler of signals may come in between."""
    made = threading.RLock()
    _made.add(made)
    return made


def released_by_forks(lock: Any) -> None:
    """Have forked processes release a lock of Python's that another library keeps, as those of this module."""
    _made.add(lock)


def held_over_forks(lock: Any) -> None:
    """Have forks wait for a lock of another library's, whose threads may hold more, in C, while they hold it."""
    forking = threading.local()  # a fork of another thread may have begun before this one is told of

    def enter() -> None:
        lock.__enter__()
        forking.holds = True

    def leave() -> None:
        if getattr(forking, "holds", False):
            forking.holds = False
            lock.__exit__(None, None, None)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=enter, after_in_parent=leave, after_in_child=leave)


def _release_all() -> None:
    for made in _made:  # as Python's own threading does after a fork: a lock of another thread cannot be released
        made._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_release_all)
