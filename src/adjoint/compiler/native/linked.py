"""Machine code of this process, by its name: made once, in a thread that no signal interrupts."""

from __future__ import annotations

import collections
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from adjoint import locks
from adjoint.compiler.native.machine import Machine

T = TypeVar("T")

KEPT = 256  # pieces of machine code that nobody may use at the moment


def _uninterrupted(f: Callable[..., T], *args: Any) -> T:
    """What f gives, in a thread of its own: handlers of signals, as of Ctrl-C, run in the main thread alone.

    Where one raises just after llvmlite has freed a text, llvmlite frees it again, and the process ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return f(*args)
    context, found, failed = contextvars.copy_context(), [], []

    def run() -> None:
        try:
            found.append(context.run(f, *args))
        except BaseException as error:
            failed.append(error)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run, name="adjoint-llvm", daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failed:
        raise failed.pop()
    return found.pop()


_STACK = 64 * 2**20  # bytes, of which the system gives what is used: some systems give threads little
_machines: collections.OrderedDict[str, Machine] = collections.OrderedDict()
_lock = locks.lock()


def machine(name: str, code: Callable[[], bytes], shares: bool) -> Machine:
    """The machine code of this name, such as its text, made once; `shares` says that it calls the pool."""

    def made() -> Machine:
        ready = code()
        if shares:
            from adjoint.compiler.native import pool  # which most programs never need

            pool.link()
        return Machine(ready)

    with _lock:
        found = _machines.get(name)
        if found is None:
            found = _machines[name] = _uninterrupted(made)
        _machines.move_to_end(name)
        while len(_machines) > KEPT:
            _machines.popitem(last=False)
        return found
