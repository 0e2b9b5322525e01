"""Gradients of a batch whose shards are on the workers of a `dask.distributed` cluster."""

from __future__ import annotations

import contextlib
import os
import pickle
import time
import weakref
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Backend
from adjoint.data.batches import Batches, Unread
from adjoint.devices import chosen_device, creating_on
from adjoint.dtypes import choosing, chosen_dtype, drawn_dtype
from adjoint.functions.arguments import as_integer, as_positive
from adjoint.locks import lock
from adjoint.optim.gradients import GradientsParams
from adjoint.train.parts import (
    Found,
    GradientsOf,
    Loss,
    added,
    divided,
    part_gradients,
    place_of,
    recording,
    seed_of,
    tree_sum,
)

_LOOK = 1.0  # seconds after which who waits for a result looks whether there is still somebody to make it
_LARGE = "distributed.admin.large-graph-warning-threshold"
_reading = lock()  # threads of a worker share a source, which may have a place in a file


class Cluster:
    """The workers of a `dask.distributed` client, in the place of devices: each batch is divided into shards for them.

    What a shard gives follows from the model, its rows and its number, and shards are added up in pairs in a fixed
    order. So all bits are the same with any number of workers, also where some end or begin meanwhile: what a lost
    worker had is computed again elsewhere. Nothing but gradients, buffers, and predictions where there are metrics,
    comes back; optimizer, validation and checkpoints stay in the caller's process.

    Rows of an `ad.data.DataLoader` are read by the workers, which are sent its source once: arrays as they are, files
    by their names. Its own `workers`, or a `batch_transform`, read in the caller's process, and so does any other
    iterable; the rows then go along with each shard.

    Parameters
    ----------
    client
        A `distributed.Client`. Its scheduler and its workers have this version of adjoint.
    shards
        Into how many parts a batch is divided: as many as there will be workers, or threads of these, or more.
    wait
        How many seconds a step waits for a worker where there is none, such as after the last one was lost.

    Raises
    ------
    MissingLibraryError
        `distributed` is not installed.
    ArgumentTypeError, ArgumentError
        An argument is none of these.
    WorkerError
        The client is closed, no worker came, or the same shard ended several of them. What a task raises itself is
        raised as it is, with the worker's traceback.

    Examples
    --------
    >>> import adjoint as ad
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client(n_workers=2) as client:  # doctest: +SKIP
    ...     cluster = ad.train.Cluster(client, shards=4)
    ...     learner = ad.train.Learner(model, loss, ad.optim.Adam(), devices=cluster)
    ...     model, history = learner.fit(loader, epochs=10)
    """

    def __init__(self, client: Any, shards: int, wait: float = 60.0) -> None:
        try:
            import distributed
        except ImportError as error:
            raise errors.MissingLibraryError("Cluster: needs distributed; pip install 'adjoint[dask]'") from error
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise errors.ArgumentTypeError(
                f"Cluster: the client is a distributed.Client that is not asynchronous, received {errors.shown(client)}"
            )
        self.client: Any = client
        self.shards: int = as_integer(shards, "Cluster", "shards", 1)
        self.wait: Any = as_positive(wait, "Cluster", "wait", zero=True)
        self._sources: weakref.WeakKeyDictionary[Batches, Any] = weakref.WeakKeyDictionary()
        self._check()
        client.register_plugin(_sparing(os.getpid()))

    def __repr__(self) -> str:
        return f"Cluster({self.client!r}, shards={self.shards})"

    def gradients(self, f: Loss, has_aux: bool = False) -> GradientsOf:
        """What `data_parallel` of these workers gives."""

        def run(model: Any, batch: Any) -> tuple[Any, GradientsParams]:
            home = place_of(model)
            key, parts = home.next_key(), divided(batch, self.shards)
            workers = self._workers()
            whole = self._submit(_held, _packed((f, has_aux, home, _defaults(), model)))
            source = self._source(batch.batches) if isinstance(batch, Unread) else None
            found = []
            for part in parts:
                if isinstance(part.batch, Unread):
                    part = part._replace(batch=_Rows.of(part.batch))
                told = _packed((part, seed_of(key, part.number)))
                worker = workers[part.number % len(workers)]  # if it lives; left alone, small tasks gather on one
                found.append(self._submit(_part, whole, source, told, workers=[worker], allow_other_workers=True))
            return self._result(tree_sum(found, lambda x, y: self._submit(added, x, y))).result(has_aux)

        return run

    def _source(self, batches: Batches) -> Any:
        """The source of a loader, as a task: whoever has lost it makes it again from what the scheduler keeps."""
        future = self._sources.get(batches)
        if future is None or future.cancelled():
            self._sources[batches] = future = self._submit(_held, _packed(batches))
        return future

    def _submit(self, task: Any, *args: Any, **where: Any) -> Any:
        import dask.config

        try:
            with dask.config.set({_LARGE: "1 TiB"}):  # a model is as large as it is
                return self.client.submit(task, *args, pure=False, **where)
        except Exception:
            self._check()
            raise

    def _result(self, future: Any) -> Found:
        """What a task gives, as long as there is somebody to make it."""
        import asyncio

        from distributed import CancelledError, KilledWorker

        # not `future.result(timeout=...)`: what is on its way when its time is over would have to come from the start
        given = self.client.gather(future, asynchronous=True)
        fetched = asyncio.run_coroutine_threadsafe(given, self.client.loop.asyncio_loop)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    fetched.exception(_LOOK)
                if fetched.done():
                    return fetched.result()  # type: ignore[no-any-return]
                self._workers()
        except KilledWorker as error:
            raise errors.WorkerError(
                f"Cluster: workers were killed again and again, {error.allowed_failures + 1} in all, while they "
                "computed the same shard; where memory ran out, take more shards or smaller batches"
            ) from error
        except CancelledError as error:
            self._check()
            raise errors.WorkerError(f"Cluster: the scheduler has lost a task: {errors.said(error)}") from error
        finally:
            fetched.cancel()

    def _workers(self) -> list[str]:
        """The addresses of the workers. Waits for one where there is none. Raises WorkerError."""
        started = time.monotonic()
        while True:
            self._check()
            with contextlib.suppress(OSError, TimeoutError):  # a scheduler that is away for a moment
                if found := sorted(self.client.nthreads()):
                    return found
            if time.monotonic() - started >= self.wait:
                raise errors.WorkerError(
                    f"Cluster: there was no worker for {self.wait:g} s; start some, as with `dask worker "
                    f"{self.client.scheduler.address}` or cluster.scale(2), or give a longer wait="
                )
            time.sleep(min(0.1, self.wait))

    def _check(self) -> None:
        """Raises WorkerError where the client is closed."""
        if self.client.status in ("closed", "closing"):
            raise errors.WorkerError(
                "Cluster: the client is closed, or its scheduler is; make a Client and a Cluster of it, and call fit "
                "of a Learner that has it: with checkpoints it goes on from the last one"
            )


class _Rows:
    """Rows that a worker reads from the source that it was sent."""

    def __init__(self, *place: int) -> None:
        self.place = place

    @classmethod
    def of(cls, rows: Unread) -> _Rows:
        return cls(rows.epoch, rows.number, rows.start, rows.stop)

    def read(self, batches: Batches) -> Any:
        with _reading:
            return Unread(batches, *self.place).read()


def _defaults() -> tuple[Backend, np.dtype[Any] | None]:
    """The default device and dtype of the caller; no dtype where it is everybody's."""
    dtype = drawn_dtype()
    return chosen_device(), None if chosen_dtype() is None and dtype == np.float32 else dtype


def _sparing(caller: int) -> Any:
    """What lets workers that a process has started itself pass over Ctrl-C.

    A terminal sends it to all processes of a program. It is for the caller, who ends the step with their help.
    """
    import distributed

    class Sparing(distributed.WorkerPlugin):
        name = f"adjoint-ctrl-c-{caller}"
        idempotent = True

        def setup(self, worker: Any) -> None:
            import signal
            import threading

            if os.getppid() == caller and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Sparing()


# --- tasks: what they are given is bytes, so that a scheduler needs neither devices nor the user's code ---


def _packed(value: Any) -> bytes:
    from distributed.protocol import pickle as theirs  # also takes lambdas, and what stands in a notebook

    try:
        return theirs.dumps(value)  # type: ignore[no-any-return, no-untyped-call]
    except Exception as error:  # pickle raises of many kinds
        raise errors.ArgumentTypeError(
            f"Cluster: this cannot be sent to workers: {errors.said(error)}. They are sent the model, the loss, and "
            "batches or their source: none of these can hold open files, locks or generators"
        ) from error


def _held(content: bytes) -> Any:
    """What several tasks are given, unpacked on the first worker that has one of them."""
    return pickle.loads(content)


def _part(whole: Any, source: Any, content: bytes) -> Found:
    """What a shard gives."""
    f, has_aux, home, (device, dtype), model = whole
    part, seed = pickle.loads(content)
    try:
        if isinstance(part.batch, _Rows):
            part = part._replace(batch=part.batch.read(source))
        with creating_on(device), contextlib.nullcontext() if dtype is None else choosing(dtype):
            return part_gradients(f, has_aux, recording(home), home, model, part, seed)
    except Exception as error:
        error.add_note(f"Cluster: in shard {part.number} of a batch, on a worker of process {os.getpid()}")
        raise
