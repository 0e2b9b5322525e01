"""`ad.train.Cluster`: the bits of as many devices in one process, whatever becomes of the workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

distributed = peer("distributed")
pytestmark = pytest.mark.peers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(49, 3)).astype("float32")
Y = (X[:, :1] * X[:, 1:2] + X[:, 2:]).astype("float32")
SHARDS = 4


def noisy(record: Any, rng: Any) -> Any:
    x, y = record
    return x + rng.normal(size=3).astype("float32") / 8, y


def loader(**options: Any) -> ad.data.DataLoader:
    return ad.data.DataLoader((X, Y), 10, shuffle=True, seed=3, **{"transform": noisy, **options})


def network(middle: Any = None) -> Any:
    """With dropout and running statistics."""
    ad.random.seed(1)
    middle = ad.nn.BatchNorm(5) if middle is None else middle
    return ad.nn.Sequential(ad.nn.Linear(3, 5), middle, ad.tanh, ad.nn.Dropout(0.3), ad.nn.Linear(5, 1))


def trained(
    devices: Any, batches: Any = None, epochs: int = 2, loss: Any = ad.nn.mse_loss, model: Any = None, **options: Any
) -> Any:
    """The numbers of a training: parameters and buffers, as bytes, and the rows of its history."""
    learner = ad.train.Learner(model or network(), loss, ad.optim.Adam(lr=0.01), devices=devices, **options)
    model, history = learner.fit(loader() if batches is None else batches, epochs=epochs)
    rows = [{name: value for name, value in row.items() if name != "seconds"} for row in history.rows]
    return {path: x.tobytes() for path, x in model.record().items()}, rows, history.steps


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers that are threads of this process."""
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as made:
        yield made


def test_it_is_as_many_devices(client: Any) -> None:
    """Rows are read by workers or here, in parts that are not equal, and metrics see all of them."""
    cluster = ad.train.Cluster(client, shards=SHARDS)
    options: Any = {"metrics": [ad.train.MAE()], "epochs": 1}
    assert trained(cluster, **options) == trained(["numpy"] * SHARDS, **options)
    assert trained(cluster, list(loader())[-2:]) == trained(["numpy"] * SHARDS, list(loader())[-2:])


def test_what_goes_wrong_is_said(client: Any) -> None:
    def fails(prediction: Any, target: Any) -> Any:
        raise LookupError("no such label")

    cluster = ad.train.Cluster(client, shards=2)
    with pytest.raises(LookupError, match="no such label") as found:
        trained(cluster, loss=fails)
    assert any("in shard " in note for note in found.value.__notes__)
    frames = []
    trace = found.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert frames[-1] == "fails"  # the worker's traceback
    held = threading.Lock()
    with pytest.raises(errors.ArgumentTypeError, match="cannot be sent to workers"):
        trained(cluster, loss=lambda p, t: held and ad.nn.mse_loss(p, t))
    for wrong, message in ((None, "a distributed.Client"), (cluster, "a distributed.Client")):
        with pytest.raises(errors.ArgumentTypeError, match=message):
            ad.train.Cluster(wrong, shards=2)
    for options in ({"shards": 0}, {"shards": 2.5}, {"shards": 2, "wait": -1.0}):
        with pytest.raises(errors.ArgumentError, match="Cluster: "):
            ad.train.Cluster(client, **options)
    assert repr(cluster).endswith("shards=2)")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(errors.MissingLibraryError, match=r"pip install 'adjoint\[dask\]'"):
        ad.train.Cluster(None, shards=2)


# --- with one process, more closely ---


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2, 3, 7, 20])
def test_any_number_of_shards(client: Any, shards: int) -> None:
    """Also more than a batch has examples."""
    model = network(ad.nn.LayerNorm(5))
    assert trained(ad.train.Cluster(client, shards), model=model) == trained(["numpy"] * shards, model=model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of steps that the scaler leaves out
@pytest.mark.parametrize("options", [
    {"accumulate": 2, "clip": 0.5}, {"precision": "float16", "scaler": ad.optim.GradScaler()}, {"seed": 5},
], ids=str)  # fmt: skip
def test_options_of_a_learner(client: Any, options: Any) -> None:
    assert trained(ad.train.Cluster(client, SHARDS), **options) == trained(["numpy"] * SHARDS, **options)


@pytest.mark.slow
def test_other_batches(client: Any) -> None:
    """Where the caller's process reads: by processes of a loader, by a change of batches, of a generator."""
    cluster = ad.train.Cluster(client, SHARDS)
    reversing = lambda batch, rng: (batch[0][::-1], batch[1][::-1])
    for make in (
        lambda: loader(workers=1), lambda: loader(batch_transform=reversing), lambda: iter,
        lambda: ad.data.DataLoader(zip(X, Y, strict=True), 10),
    ):  # fmt: skip
        batches = [make(), make()]
        if batches[0] is iter:
            batches = [lambda: ((x, y) for x, y in loader())] * 2
        assert trained(cluster, batches[0], epochs=1) == trained(["numpy"] * SHARDS, batches[1], epochs=1)


@pytest.mark.slow
def test_it_is_one_device_up_to_rounding(client: Any) -> None:
    ad.random.seed(0)
    layers = [ad.nn.Linear(3, 5, dtype="float64"), ad.tanh, ad.nn.Linear(5, 1, dtype="float64")]
    batches = ad.data.DataLoader((X.astype("float64"), Y.astype("float64")), 8, shuffle=True)
    found = []
    for devices in (None, ad.train.Cluster(client, 3)):
        learner = ad.train.Learner(ad.nn.Sequential(*layers), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), devices=devices)
        batches.load_record({**batches.record(), "epoch": 0, "batch": 0})
        found.append(learner.fit(batches, epochs=4)[0].record())
    for path, x in found[0].items():
        np.testing.assert_allclose(found[1][path], x, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_a_loop_of_ones_own(client: Any) -> None:
    loss = lambda model, batch: ad.nn.mse_loss(model(batch[0]), batch[1])
    model = network()
    run = ad.train.data_parallel(loss, ad.train.Cluster(client, 2))
    for batch, known in zip(loader().unread(), loader(), strict=True):
        ad.random.seed(4)
        value, grads = run(model, batch)
        ad.random.seed(4)
        expected, slopes = ad.train.data_parallel(loss, ["numpy"] * 2)(model, known)
        assert value.item() == expected.item()
        assert {path: g.tolist() for path, g in grads.items()} == {path: g.tolist() for path, g in slopes.items()}


@pytest.mark.slow
def test_shared_parameters_and_defaults_of_the_caller(client: Any) -> None:
    ad.random.seed(0)
    line = ad.nn.Linear(3, 3)
    model = ad.nn.Sequential(line, ad.tanh, line)
    seen = lambda model, batch: (ad.nn.mse_loss(model(batch[0]), batch[0]) * ad.ones(()), str(ad.ones(()).dtype))
    with ad.use_dtype("float64"):
        run = ad.train.data_parallel(seen, ad.train.Cluster(client, 2), has_aux=True)
        (_, dtypes), grads = run(model, (X,))
        (_, known), slopes = ad.train.data_parallel(seen, ["numpy"] * 2, has_aux=True)(model, (X,))
    assert dtypes == known == ["float64"] * 2
    assert {path: g.tolist() for path, g in grads.items()} == {path: g.tolist() for path, g in slopes.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_layer_that_gives_a_nan_is_named(client: Any) -> None:
    bad = ad.data.DataLoader((np.where(np.arange(49)[:, None] == 13, np.nan, X), Y), 10)
    with pytest.raises(errors.NonFiniteError, match=r"step 2, epoch 1: the loss is nan, in the batch, at batch\[0\]"):
        trained(ad.train.Cluster(client, SHARDS), bad)


@pytest.mark.slow
def test_results_that_take_longer_than_a_look(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(prediction: Any, target: Any) -> Any:
        raise TimeoutError("of the task")

    monkeypatch.setattr("adjoint.train.cluster._LOOK", 1e-4)
    cluster = ad.train.Cluster(client, SHARDS)
    assert trained(cluster, epochs=1) == trained(["numpy"] * SHARDS, epochs=1)
    with pytest.raises(TimeoutError, match="of the task"):
        trained(cluster, loss=late)


# --- with workers that are processes ---


PROCESSES = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}


class At(ad.train.Callback):
    """What is done after a step."""

    def __init__(self, step: int, act: Callable[[], Any]) -> None:
        self.number, self.act = step, act

    def step(self, run: Any) -> None:
        if run.step == self.number:
            self.act()


def killing(flag: Path) -> Callable[..., Any]:
    """A loss that kills the process that computes it, once."""

    def loss(prediction: Any, target: Any) -> Any:
        with contextlib.suppress(FileNotFoundError):
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return ad.nn.mse_loss(prediction, target)

    return loss


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_is_killed_and_comes_again(workers: int, tmp_path: Path) -> None:
    """In a task, and between two steps; with one worker all that there was is lost, the source of data, too."""
    expected = trained(["numpy"] * SHARDS)
    flag = tmp_path / "kill"
    with distributed.LocalCluster(n_workers=workers, **PROCESSES) as made, distributed.Client(made) as client:
        cluster = ad.train.Cluster(client, SHARDS)
        first = client.run(os.getpid)
        found = trained(cluster, loss=killing(flag), callbacks=[At(3, flag.touch)])
        assert found == expected
        second = client.run(os.getpid)
        assert not flag.exists()
        assert set(second.values()) != set(first.values())
        kill = lambda: os.kill(next(iter(second.values())), signal.SIGKILL)
        assert trained(cluster, callbacks=[At(8, kill)]) == expected


@contextlib.contextmanager
def worker(address: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that nobody restarts, as on another machine."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with processes.started([*command, "--no-dashboard"], env=environment, stderr=subprocess.DEVNULL) as process:
        yield process


@pytest.mark.slow
def test_workers_come_and_go(tmp_path: Path) -> None:
    """One is killed for good, one begins, the last one ends: and what there is to do is said."""
    expected = trained(["numpy"] * SHARDS, epochs=3)
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(distributed.LocalCluster(n_workers=0, **PROCESSES))
        client = stack.enter_context(distributed.Client(made))
        processes = [stack.enter_context(worker(made.scheduler_address)) for _ in range(2)]
        client.wait_for_workers(2, timeout=60)

        def more() -> None:
            processes.append(stack.enter_context(worker(made.scheduler_address)))
            client.wait_for_workers(2, timeout=60)

        flag = tmp_path / "kill"
        cluster = ad.train.Cluster(client, SHARDS, wait=1.0)
        acts = [At(3, flag.touch), At(8, more)]
        assert trained(cluster, epochs=3, loss=killing(flag), callbacks=acts) == expected
        assert [process.poll() is None for process in processes].count(True) == 2
        for process in processes:
            process.kill()
        started = time.monotonic()
        with pytest.raises(errors.WorkerError, match="no worker for 1 s; start some, as with `dask worker tcp"):
            trained(cluster)
        assert time.monotonic() - started < 30
    with pytest.raises(errors.WorkerError, match="the client is closed"):
        trained(cluster)
    with pytest.raises(errors.WorkerError, match="the client is closed"):
        ad.train.Cluster(client, SHARDS)


TERMINAL = """
import os, signal, sys, time
import distributed
import adjoint as ad
from test_cluster import PROCESSES, SHARDS, At, loader, network

def press():
    os.killpg(0, signal.SIGINT)
    time.sleep(0.5)  # which ends a process that does not pass over it

if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=2, **PROCESSES) as made, distributed.Client(made) as client:
        cluster, before = ad.train.Cluster(client, SHARDS, wait=1.0), client.run(os.getpid)
        make = lambda *callbacks: ad.train.Learner(
            network(), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), devices=cluster, callbacks=callbacks
        )
        learner = make(At(3, press))
        learner.fit(loader(), epochs=2, checkpoints=sys.argv[1])
        assert (learner.run.step, learner.run.reason) == (3, "interrupted"), learner.run
        assert client.run(os.getpid) == before
        ended = make().fit(loader(), epochs=2, checkpoints=sys.argv[1])[0]
        whole = ad.train.Learner(network(), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), devices=["numpy"] * SHARDS)
        expected = whole.fit(loader(), epochs=2)[0].record()
        assert all((x == expected[path]).all() for path, x in ended.record().items())
        print("ended")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent like this there")
def test_ctrl_c_in_a_terminal_is_the_callers(tmp_path: Path) -> None:
    """A terminal sends it to workers of a LocalCluster, too."""
    script = tmp_path / "train.py"
    script.write_text(TERMINAL)
    paths = os.pathsep.join([str(Path(__file__).parent), *[path for path in sys.path if path]])
    done = processes.run([sys.executable, str(script), str(tmp_path / "run")], env={**os.environ, "PYTHONPATH": paths})
    assert done.stdout == "ended\n"
    assert done.stderr.startswith("Interrupted after step 3, in epoch 1 of 2, saved in ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_shard_that_kills_every_worker() -> None:
    def deadly(prediction: Any, target: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    with distributed.LocalCluster(n_workers=1, **PROCESSES) as made, distributed.Client(made) as client:
        with pytest.raises(errors.WorkerError, match="killed again and again, 4 in all") as found:
            trained(ad.train.Cluster(client, 2), loss=deadly)
        assert isinstance(found.value.__cause__, distributed.KilledWorker)


@pytest.mark.slow
def test_a_scheduler_that_ends() -> None:
    with distributed.LocalCluster(n_workers=1, **PROCESSES) as made, distributed.Client(made) as client:
        cluster = ad.train.Cluster(client, 2, wait=1.0)
        with pytest.raises(errors.WorkerError, match="Cluster: "):
            trained(cluster, callbacks=[At(2, made.close)])
