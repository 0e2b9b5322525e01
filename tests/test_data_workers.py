"""Workers of a loader: what they read is the same, their errors come to the caller, and none outlives the loader."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from conftest import LIMIT
from test_data import Noted, OddError, X, Y, noisy, numbers

from adjoint import errors
from adjoint.data import DataLoader, split, windows


def handed(loader: Any, kept: list[Any], last: int | None = None) -> None:
    """Keep what each batch has of its reader; fail behind the last batch."""
    for _, pid in loader:
        kept.append(pid)
        if last is not None and len(kept) == last:
            raise ZeroDivisionError


def refuse(record: Any, rng: np.random.Generator) -> Any:
    if record[0] == 7:
        raise LookupError(f"no {record[0]}")
    return record


def scaled(batch: Any, rng: np.random.Generator) -> Any:
    return batch * rng.uniform()


def stuck(record: Any, rng: np.random.Generator) -> Any:
    time.sleep(600)


def alive(pids: Any) -> list[int]:
    """Those of the processes that have not ended."""
    found = []
    for pid in set(np.asarray(pids).ravel().tolist()):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        status = Path(f"/proc/{pid}/stat")  # where there is one, it knows those that only wait to be forgotten
        if not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"):
            found.append(pid)
    return found


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same(workers: int) -> None:
    make = lambda workers: DataLoader(
        X, 2, shuffle=True, seed=7, workers=workers, prefetch=1, transform=noisy, batch_transform=scaled
    )
    one, other = make(0), make(workers)
    for _ in range(2):
        for wanted, found in zip(one, other, strict=True):
            np.testing.assert_array_equal(wanted, found)
            assert found.flags.writeable


def test_large_arrays_come_whole() -> None:
    x = np.random.default_rng(0).normal(size=(6, 50_000))
    batches = list(DataLoader({"x": x, "y": x.T[:6].copy()}, 3, workers=2))
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in batches]), x)
    assert batches[0]["x"].flags.writeable


def test_workers_are_kept_for_the_next_epoch_and_end_with_the_loader() -> None:
    loader = DataLoader(Noted(), 5, workers=2)
    pids = [np.concatenate([pid for _, pid in loader]) for _ in range(2)]
    assert set(pids[0]) == set(pids[1])
    assert len(set(pids[0])) == 2
    assert os.getpid() not in pids[0]
    assert len(alive(pids)) == 2
    loader.close()
    assert alive(pids) == []
    again = [pid for _, pid in loader]
    assert len(alive(again)) == 2
    del loader
    assert alive(again) == []


def test_an_iterator_that_is_dropped_ends_its_workers() -> None:
    loader = DataLoader(Noted(400), 5, workers=2)
    batches = iter(loader)
    pids = [next(batches)[1], next(batches)[1]]
    assert len(alive(pids)) == 2
    del batches
    assert alive(pids) == []
    with pytest.raises(ZeroDivisionError):
        handed(loader, pids, last=4)
    assert alive(pids) == []


def test_two_iterators_at_once() -> None:
    loader = DataLoader(np.arange(12), 2, shuffle=True, workers=1)
    wanted = numbers(DataLoader(np.arange(12), 2, shuffle=True))
    pairs = [(one.tolist(), other.tolist()) for one, other in zip(loader, loader, strict=True)]
    assert pairs == [(batch, batch) for batch in wanted]
    assert (loader.record()["epoch"], loader.record()["batch"]) == (1, 0)
    del loader


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_reaches_the_caller(workers: int) -> None:
    loader = DataLoader(Noted(), 5, workers=workers, transform=refuse)
    seen: list[Any] = []
    with pytest.raises(LookupError, match="no 7") as caught:
        handed(loader, seen)
    assert len(seen) == 1  # the batch before comes first
    assert any("record 7" in note for note in caught.value.__notes__)
    if workers:
        assert isinstance(caught.value.__cause__, errors.WorkerError)
        assert "in refuse\n" in str(caught.value.__cause__)
        assert alive(seen) == []
    assert loader.record()["batch"] == 1


def test_an_exception_that_cannot_be_sent_is_told() -> None:
    with pytest.raises(errors.WorkerError, match="in worker 1 of(?s:.*)record 7(?s:.*)") as caught:
        list(DataLoader(Noted(bad=7), 5, workers=2))
    assert "OddError: ab" in str(caught.value)
    with pytest.raises(OddError):
        list(DataLoader(Noted(bad=7), 5))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
def test_a_worker_that_dies_is_an_error() -> None:
    loader = DataLoader(Noted(deadly=13), 5, workers=2)
    pids: list[Any] = []
    with pytest.raises(errors.WorkerError, match=r"worker 0, process \d+, was ended by signal 9; .*memory"):
        handed(loader, pids)
    assert len(pids) == 2
    assert alive(pids) == []
    loader = DataLoader(Noted(4000), 5, workers=2)
    batches = iter(loader)
    _, pid = next(batches)
    os.kill(int(pid[0]), signal.SIGKILL)
    with pytest.raises(errors.WorkerError, match="signal 9"):
        list(batches)


def test_a_source_that_cannot_be_sent_says_what_to_do() -> None:
    loader = DataLoader(np.arange(4), 2, workers=1, start="spawn", transform=lambda record, rng: record)
    with pytest.raises(errors.ArgumentTypeError, match=r"(?s)lambda.*top of a module.*workers=0"):
        list(loader)


PROGRAM = """
import os, signal, sys, time
import numpy as np
import adjoint as ad
sys.path.insert(0, {tests!r})
import test_data

if __name__ == "__main__":
    loader = ad.data.DataLoader(test_data.Noted(10**9), 5, workers=2, {options})
    batches = iter(loader)
    print(*[next(batches)[1][0] for _ in range(2)], flush=True)
    {then}
"""


def program(then: str, options: str = "") -> AbstractContextManager[subprocess.Popen[str]]:
    text = PROGRAM.format(tests=str(Path(__file__).parent), then=then, options=options)
    command = [sys.executable, "-c", text]
    return processes.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(pids: list[int]) -> bool:
    """Whether all of them end within a minute."""
    for _ in range(600):
        if not alive(pids):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("stuck", [False, True])
def test_workers_end_with_a_process_that_is_killed(stuck: bool) -> None:
    then = "loader = ad.data.DataLoader(np.arange(9), 1, workers=1, transform=test_data.stuck); list(loader)"
    with program(then if stuck else "time.sleep(600)") as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        if stuck:
            time.sleep(0.5)
        process.kill()
        process.wait(LIMIT)
    assert len(pids) == 2
    assert ended(pids)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
def test_ctrl_c_ends_all() -> None:
    with program("list(batches)") as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1  # the caller's, and none of a worker
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert ended(pids)


@pytest.mark.slow
@pytest.mark.parametrize("then", ["pass", "sys.exit()", "batches = None"])
def test_a_program_that_ends_leaves_nothing(then: str) -> None:
    with program(then) as process:
        out, said = process.communicate(timeout=LIMIT)
    assert (process.returncode, said) == (0, "")
    assert ended([int(pid) for pid in out.split()])


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_that_do_not_fork(start: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")[1:, ::-1]
    make = lambda **options: DataLoader((mapped, Y[1:]), 3, shuffle=True, **options)
    for wanted, found in zip(make(), make(workers=2, start=start), strict=True):
        np.testing.assert_array_equal(wanted[0], found[0])
        np.testing.assert_array_equal(wanted[1], found[1])


@pytest.mark.slow
def test_a_program_that_spawns_when_it_is_imported_says_so(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import adjoint as ad\nlist(ad.data.DataLoader([1], 1, workers=1, start='spawn'))\n")
    done = processes.run([sys.executable, str(path)], check=False)
    assert "WorkerError" in done.stderr
    assert "`if __name__ == '__main__':`" in done.stderr


def test_a_mapped_array_is_sent_as_its_file(tmp_path: Path) -> None:
    big = np.arange(300_000.0).reshape(-1, 3)
    np.save(tmp_path / "x.npy", big)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    (part, _) = split({"x": mapped[10::2, 1:]}, (0.5, 0.5))
    sent = pickle.dumps(part)
    assert len(sent) < big.nbytes // 4
    indices = np.array([3, 0, 7])
    np.testing.assert_array_equal(pickle.loads(sent).take(indices)["x"], part.take(indices)["x"])
    seen = windows(mapped, 50_000)
    assert len(pickle.dumps(seen)) < 5 * 50_000 * 8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(seen))[3], big[3:50_003])


def test_a_loader_may_be_pickled() -> None:
    loader = DataLoader(X, 2, shuffle=True, workers=1)
    next(iter(loader))
    list(loader)
    other = pickle.loads(pickle.dumps(loader))
    np.testing.assert_array_equal(np.concatenate(list(loader)), np.concatenate(list(other)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_leaves_the_workers_to_its_parent() -> None:
    loader = DataLoader(Noted(), 5, workers=1)
    pids = [pid for _, pid in loader]
    pid = os.fork()
    if pid == 0:
        try:
            loader.close()
            assert len(alive(pids)) == 1
            assert len([1 for _ in loader]) == 8  # with a worker of its own
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(alive(pids)) == 1
    assert [p[0] for _, p in loader] == [p[0] for p in pids]
