"""Processes that read batches. Each has a pipe of its own, is asked for batches by number, and answers in order."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
import traceback
import weakref
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from adjoint import errors
from adjoint.data.batches import Batches

GRACE = 0.5  # seconds that workers have to end by themselves
INLINE = 1 << 16  # bytes of arrays from which on they are sent beside the pickle, not in it
_our_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # of all pipes: a forked worker has copies, and closes them


class Pool:
    """The workers of one iterator at a time."""

    def __init__(self, batches: Batches, workers: int, start: str | None) -> None:
        context: Any = get_context(start)
        self._owner = os.getpid()
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self.stop = weakref.finalize(self, _stop, self._owner, self._processes, self._pipes)
        try:
            for number in range(workers):
                ours, theirs = context.Pipe()
                _our_ends.add(ours)
                self._pipes.append(ours)
                process = context.Process(
                    target=_work, args=(theirs, batches), name=f"DataLoader worker {number}", daemon=True
                )
                with theirs:  # it is closed here, so that reading ends when the worker does
                    _start(process)
                self._processes.append(process)
        except BaseException:
            self.stop()
            raise

    @property
    def size(self) -> int:
        return len(self._processes)

    def is_ours(self) -> bool:
        """Whether it runs, and was not copied into this process by a fork."""
        return self.stop.alive and self._owner == os.getpid()

    def ask(self, worker: int, task: tuple[Any, ...]) -> None:
        """Ask a worker for a batch."""
        with contextlib.suppress(OSError):  # it ended, and `answer` says so, after its earlier answers
            self._pipes[worker].send(task)

    def answer(self, worker: int) -> Any:
        """The next batch of a worker. Raises what it raised, and WorkerError where it ended."""
        pipe = self._pipes[worker]
        try:
            content, *sizes = pickle.loads(pipe.recv_bytes())
            buffers = [bytearray(size) for size in sizes]
            for buffer in buffers:
                pipe.recv_bytes_into(buffer)
        except (EOFError, OSError):
            raise self._ended(worker) from None
        batch, failure = pickle.loads(content, buffers=buffers)
        if failure is None:
            return batch
        error, text = failure
        cause = errors.WorkerError(f"in worker {worker} of a DataLoader, where this happened:\n\n{text}")
        if error is None:  # it could not be sent
            raise cause
        raise error from cause

    def _ended(self, worker: int) -> errors.WorkerError:
        process = self._processes[worker]
        process.join(GRACE)
        code = process.exitcode
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        why = ""
        if code == -9:
            why = "; the system does that where memory runs out, and fewer workers need less of it"
        elif code == 1:
            why = (
                "; what it printed says why. Workers that do not fork import the program again: what it runs stands "
                "below `if __name__ == '__main__':`"
            )
        return errors.WorkerError(f"DataLoader: worker {worker}, process {process.pid}, {how}{why}")


def _start(process: BaseProcess) -> None:
    try:
        process.start()
    except OSError as error:
        raise errors.WorkerError(f"DataLoader: no worker can be started: {error}; use fewer, or workers=0") from error
    except Exception as error:  # pickle raises of many kinds
        raise errors.ArgumentTypeError(
            f"DataLoader: no worker can be started: {errors.said(error)}. The source and what changes its records are "
            "sent to workers that do not fork: make them of functions and classes at the top of a module, not lambdas, "
            "and open files when they are first read; or use start='fork' where there is that, or workers=0"
        ) from error


def _stop(owner: int, processes: list[BaseProcess], pipes: list[Connection]) -> None:
    if os.getpid() != owner:  # a fork's copy
        return
    for pipe in pipes:
        with contextlib.suppress(OSError):
            pipe.send(None)
        pipe.close()
    end = time.monotonic() + GRACE
    for process in processes:
        process.join(max(end - time.monotonic(), 0))
    for process in processes:
        if process.is_alive():
            process.kill()
    for process in processes:
        process.join()
        process.close()


def _work(pipe: Connection, batches: Batches) -> None:
    """What a worker does: it reads the batches that it is asked for, until its pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who stops the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in list(_our_ends):
        end.close()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while (task := pipe.recv()) is not None:
            try:
                message = _message(batches.read(*task), None)
            except BaseException as error:
                message = _message(None, (_sendable(error), "".join(traceback.format_exception(error))))
            for part in message:
                pipe.send_bytes(part)


def _end_with(parent: int) -> None:
    """End this process when its parent does, whatever it is at: a parent that was killed closes no pipe in time."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _message(batch: Any, failure: Any) -> list[Any]:
    """What is sent: a pickle of (content, *sizes), then as many buffers."""
    buffers: list[Any] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < INLINE:
            return True
        buffers.append(raw)
        return False

    content = pickle.dumps((batch, failure), protocol=5, buffer_callback=beside)
    return [pickle.dumps((content, *[len(buffer) for buffer in buffers]), protocol=5), *buffers]


def _sendable(error: BaseException) -> BaseException | None:
    """The exception, if a pickle of it is read as one again."""
    try:
        return error if isinstance(pickle.loads(pickle.dumps(error)), type(error)) else None
    except Exception:
        return None
