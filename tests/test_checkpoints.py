"""Checkpoints: what they keep, what does not fit, full disks, and runs that are killed at any moment."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import processes
import pytest

import adjoint as ad
from adjoint import errors

X = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
BATCHES = [(X[i : i + 8], X[i : i + 8, :2]) for i in range(0, 24, 8)]


def network(width: int = 4) -> Any:
    return ad.nn.Sequential(ad.nn.Linear(3, width), ad.nn.BatchNorm(width), ad.nn.Dropout(0.2), ad.nn.Linear(width, 2))


def learner(width: int = 4, **options: Any) -> ad.train.Learner:
    ad.random.seed(0)
    return ad.train.Learner(network(width), ad.nn.mse_loss, ad.optim.Adam(lr=0.01), **options)


def same(x: Any, y: Any) -> bool:
    a, b = x.record(), y.record()
    return a.keys() == b.keys() and all(a[path].tobytes() == b[path].tobytes() for path in a)


class Slots(NamedTuple):
    mean: Any
    count: int


# --- what they keep ---


def test_trees_come_back_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "tree.safetensors"
    odd = np.array([complex(np.nan, -0.0), complex(np.inf, 1e-320)])
    tree = {
        "model": network().require_grad(),
        "slots": Slots(ad.tensor([1.5, -0.0], dtype=ad.float16), 3),
        "more": [odd, np.array(True), np.float32(0.1), (), None, True, 0.1, np.ones((0, 2), np.int8)],
        "big": 2**60 + 1,
    }
    ad.train.save(path, tree, {"epoch": 3, "note": "ä", "loss": float("nan")})
    others = [np.zeros(2, complex), np.array(False), np.float32(0), (), None, False, 0.0, np.ones((0, 2), np.int8)]
    like = {
        "model": network().require_grad(), "slots": Slots(ad.zeros(2, dtype=ad.float16), 0), "more": others, "big": 0,
    }  # fmt: skip
    found, about = ad.train.load(path, like)
    assert same(found["model"], tree["model"])
    assert found["model"].layers[0].weight.is_require_grad()
    assert isinstance(found["slots"], Slots)
    assert found["slots"].count == 3
    assert found["slots"].mean.numpy().tobytes() == tree["slots"].mean.numpy().tobytes()
    assert found["more"][0].tobytes() == odd.tobytes()
    assert found["more"][1:7] == tree["more"][1:7]
    assert type(found["more"][2]) is np.float32
    assert found["more"][5] is True
    assert found["more"][7].shape == (0, 2)
    assert found["big"] == 2**60 + 1
    assert about["epoch"] == 3
    assert about["note"] == "ä"
    part, _ = ad.train.load(path, network(), part="model")
    assert same(part, tree["model"])
    with pytest.raises(errors.ArgumentTypeError, match="is plain JSON"):
        ad.train.save(path, tree, {"model": object()})
    assert same(ad.train.load(path, network(), part="model")[0], part)  # which has left the file alone


def test_a_parameter_in_two_places_stays_one(tmp_path: Path) -> None:
    layer = ad.nn.Linear(3, 3)
    make = lambda: ad.train.Learner(ad.nn.Sequential(layer, ad.tanh, layer), ad.nn.mse_loss, ad.optim.Adam(lr=0.01))
    batches = [(x, x) for x, _ in BATCHES]
    wanted, _ = make().fit(batches, epochs=2)
    make().fit(batches, epochs=1, checkpoints=tmp_path)
    found, _ = make().fit(batches, epochs=2, checkpoints=tmp_path)
    assert found.layers[0].weight is found.layers[2].weight
    assert same(found, wanted)


def test_a_loop_of_ones_own_goes_on(tmp_path: Path) -> None:
    def train(steps: int) -> Any:
        ad.random.seed(0)
        model, optimizer = ad.nn.Linear(3, 2), ad.optim.AdamW(lr=ad.optim.cosine(0.1, 10))
        state, checkpoints = optimizer.init(model), ad.train.Checkpoints(tmp_path, keep=1)
        done = 0
        if checkpoints.steps():
            (model, state), about = checkpoints.load((model, state))
            done = about["step"]
        for step in range(done, steps):
            x, y = BATCHES[step % 3]
            grads = ad.grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(x), y))(model)
            model, state = optimizer.step(model, grads, state)
            checkpoints.save(step + 1, (model, state), {"step": step + 1})
        return model

    train(4)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000004.safetensors"]
    resumed = train(9)
    for path in tmp_path.iterdir():
        path.unlink()
    assert same(resumed, train(9))


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path) -> None:
    made = ad.train.Checkpoints(tmp_path / "a" / "b", keep=2)
    model = ad.nn.Linear(1, 1)
    scores = [5.0, float("nan"), 3.0, 4.0, 3.0, 6.0]
    for step, score in enumerate(scores):
        if step == 4:  # a process of its own, which knows nothing but the files
            made = ad.train.Checkpoints(tmp_path / "a" / "b", keep=2)
        made.save(step, model, {"step": step}, score=score)
    assert made.steps() == [4, 5]
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "best.safetensors", "step-00000004.safetensors", "step-00000005.safetensors",
    ]  # fmt: skip
    assert made.load(model, best=True)[1] == {"step": 2}
    assert made.load(model)[1] == {"step": 5}
    assert "steps [4, 5]" in repr(made)
    largest = ad.train.Checkpoints(tmp_path / "c", mode="max")
    for step, score in enumerate(scores):
        largest.save(step, model, {"step": step}, score=score)
    assert largest.load(model, best=True)[1] == {"step": 5}


def test_what_fit_keeps(tmp_path: Path) -> None:
    every = ad.train.Checkpoints(tmp_path / "a", every=2, keep=10, best="valid_loss")
    model, history = learner().fit(BATCHES, BATCHES, epochs=3, checkpoints=every)
    assert every.steps() == [2, 3, 4, 6, 8, 9]
    best = int(np.argmin(history["valid_loss"]))
    found, about = every.load(model, best=True, part="model")
    assert about["run"]["epoch"] == best + 1
    if best == 2:
        assert same(found, model)
    when = ad.train.Checkpoints(tmp_path / "b", every=lambda run: run.step == 5, keep=10)
    learner().fit(BATCHES, epochs=2, checkpoints=when)
    assert when.steps() == [3, 5, 6]
    with pytest.raises(errors.ArgumentError, match="no column 'valid_acuracy' to choose the best by; there are 'epoch"):
        learner().fit(BATCHES, checkpoints=ad.train.Checkpoints(tmp_path / "c", best="valid_acuracy"))


def test_arguments() -> None:
    for wrong in ({"every": 0}, {"keep": 0}, {"mode": "least"}):
        with pytest.raises(errors.ArgumentError, match=next(iter(wrong))):
            ad.train.Checkpoints("nowhere", **wrong)
    with pytest.raises(errors.FileError, match="nowhere: there is no checkpoint yet"):
        ad.train.Checkpoints("nowhere").load(network())
    assert ad.train.Checkpoints("nowhere").steps() == []


def test_loaders_of_ours_go_on_from_any_step(tmp_path: Path) -> None:
    make = lambda: ad.data.DataLoader((X, X[:, :2]), 4, shuffle=True, seed=1)
    wanted, history = learner(accumulate=4).fit(make(), make(), epochs=3)
    assert history["step"] == [2, 4, 6]

    class Stop(ad.train.Callback):
        def __init__(self, at: int) -> None:
            self.at = at

        def step(self, run: Any) -> None:
            if run.step == self.at:
                run.stop("for now")

    for at in range(1, 6):
        stopped = learner(accumulate=4, callbacks=[Stop(at)])
        stopped.fit(make(), make(), epochs=3, checkpoints=tmp_path / str(at))
        model, _ = learner(accumulate=4).fit(make(), make(), epochs=3, checkpoints=tmp_path / str(at))
        assert same(model, wanted)
        assert same(stopped.fit(make(), make(), epochs=3)[0], wanted)  # of the same learner, and a fresh loader


# --- what does not fit ---


def trained(folder: Path) -> Path:
    made = learner()
    made.fit(BATCHES, epochs=2, checkpoints=ad.train.Checkpoints(folder, every=1, keep=2))
    return folder / "step-00000006.safetensors"


@pytest.mark.parametrize("cut", [0, 7, 100, -1])
def test_a_file_that_is_not_whole(cut: int, tmp_path: Path) -> None:
    path = trained(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    made = learner()
    before = made.model
    with pytest.raises(
        errors.FileError,
        match=r"step-00000006\.safetensors: this is no whole .* remove it to go on from .*step-00000005",
    ):
        made.fit(BATCHES, epochs=3, checkpoints=tmp_path)
    assert made.model is before
    assert (made.run.step, made.run.history.rows) == (0, [])
    path.unlink()
    made.fit(BATCHES, epochs=3, checkpoints=tmp_path)
    assert made.run.step == 9


def test_foreign_files_and_other_models(tmp_path: Path) -> None:
    path = trained(tmp_path)
    whole = path.read_bytes()
    sgd = ad.train.Learner(network(), ad.nn.mse_loss, ad.optim.SGD(momentum=0.9))
    for made, error, said in [
        (learner(5), errors.ShapeError, r"step-00000006\.safetensors: model\.layers\.0\.weight has shape \(4, 3\)"),
        (sgd, errors.ArgumentError, r"of this model or optimizer; missing: 'optimizer\.slots\.layers\.0\.bias\.vel"),
        (ad.train.Learner(network().map(lambda x: x.astype("float64")), ad.nn.mse_loss, ad.optim.Adam()),
         errors.DtypeError, r"model\.layers\.0\.weight is float32 in the record, and float64"),
    ]:  # fmt: skip
        before = made.model
        with pytest.raises(error, match=said):
            made.fit(BATCHES, epochs=3, checkpoints=tmp_path)
        assert made.model is before
        assert made.run.step == 0
    network().save(path)
    with pytest.raises(errors.FileError, match="this is no checkpoint, but another file of safetensors"):
        learner().fit(BATCHES, checkpoints=tmp_path)
    path.write_text("nothing of the kind " * 100)
    with pytest.raises(errors.FileError, match="this is no whole file of safetensors"):
        learner().fit(BATCHES, checkpoints=tmp_path)
    path.write_bytes(whole)
    other = learner(seed=5)
    other.fit(BATCHES)
    with pytest.raises(errors.ArgumentError, match="there is a checkpoint of step 6 already, and this is step 3"):
        other.fit(BATCHES, epochs=2, checkpoints=tmp_path)
    assert path.read_bytes() == whole


# --- disks ---


class Failing:
    """A file whose n-th call fails, as that of a full disk."""

    def __init__(self, file: Any, calls: list[int]) -> None:
        self.file, self.calls = file, calls

    def __enter__(self) -> Any:
        self.file.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self.file.__exit__(*args)
        count(self.calls)  # closing may say it first

    def write(self, content: bytes) -> None:
        self.file.write(content[: len(content) // 2])
        count(self.calls)
        self.file.write(content[len(content) // 2 :])

    def flush(self) -> None:
        count(self.calls)
        self.file.flush()

    def fileno(self) -> int:
        return self.file.fileno()  # type: ignore[no-any-return]


def count(calls: list[int]) -> None:
    calls[0] -= 1
    if calls[0] == 0:
        raise OSError(28, "No space left on device")


def test_a_full_disk_at_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_, fsync, replace = Path.open, os.fsync, os.replace
    calls = [0]
    checkpoints = ad.train.Checkpoints(tmp_path, keep=1)
    model, wanted = ad.nn.Linear(3, 2), ad.nn.Linear(3, 2)
    checkpoints.save(1, model, {"step": 1})

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if mode == "xb":
            count(calls)
            return Failing(open_(self, mode, *args, **options), calls)
        return open_(self, mode, *args, **options)

    def synced(file: int) -> None:
        count(calls)
        fsync(file)

    def replaced(*paths: Any) -> None:
        count(calls)
        replace(*paths)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    for at in range(1, 8):  # open, write, flush, fsync, close, rename, and the folder's fsync
        calls[0] = at
        with pytest.raises(errors.FileError) as error:
            checkpoints.save(2, wanted, {"step": 2})
        assert "step-00000002.safetensors: No space left on device; " in str(error.value)
        if at == 7:  # the folder's: the file is there by then
            assert "may not outlast a loss of power" in str(error.value)
            continue
        assert "what was there before is unchanged" in str(error.value)
        assert [path.name for path in tmp_path.iterdir()] == ["step-00000001.safetensors"]
        found, about = checkpoints.load(model.map(ad.zeros_like))
        assert about == {"step": 1}
        assert same(found, model)
    checkpoints.save(2, wanted, {"step": 2})
    assert calls[0] == -7  # and there was no eighth
    assert same(checkpoints.load(model)[0], wanted)


def test_a_full_disk_stops_training_and_a_restart_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = learner().fit(BATCHES, epochs=3)
    fsync, left = os.fsync, [9]

    def full(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", full)
    made = learner()
    with pytest.raises(errors.FileError, match="No space left"):
        made.fit(BATCHES, epochs=3, checkpoints=ad.train.Checkpoints(tmp_path, every=1))
    assert made.run.reason == "error"
    monkeypatch.undo()
    assert same(learner().fit(BATCHES, epochs=3, checkpoints=tmp_path)[0], wanted)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    code = f"""
        import resource, adjoint as ad
        checkpoints = ad.train.Checkpoints({str(tmp_path)!r})
        checkpoints.save(1, ad.nn.Linear(10, 10), {{"step": 1}})
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            checkpoints.save(2, ad.nn.Linear(300, 300), {{"step": 2}})
        except ad.errors.FileError as error:
            print(error)
        print(checkpoints.load(ad.nn.Linear(10, 10))[1])
    """
    found = processes.python(textwrap.dedent(code))
    assert "File too large; what was there before is unchanged" in found.stdout
    assert found.stdout.endswith("{'step': 1}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001.safetensors"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = learner()
    with pytest.raises(errors.FileError, match=r"file/run: Not a directory|File exists"):
        made.fit(BATCHES, checkpoints=tmp_path / "file" / "run")
    assert made.run.step == 0  # known before the first step


# --- killed at any moment ---

# A driver, which imports the library once and forks a process for each attempt: these are killed by SIGKILL.
_DRIVER = """
import json, os, random, signal, sys, time
import numpy as np
import adjoint as ad
from pathlib import Path

class Shuffled:
    "A loader with a position of its own, as ad.data.DataLoader has."
    def __init__(self):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(44, 3)).astype("float32")
        self.y = self.x[:, :2] ** 2
        self.epoch = self.done = 0
    def record(self):
        return {"epoch": self.epoch, "done": self.done}
    def load_record(self, record):
        self.epoch, self.done = record["epoch"], record["done"]
    def __iter__(self):
        order = np.random.default_rng([7, self.epoch]).permutation(44)
        while self.done < 11:
            chosen = order[4 * self.done : 4 * self.done + 4]
            self.done += 1
            yield self.x[chosen], self.y[chosen]
        self.epoch, self.done = self.epoch + 1, 0

class Error:
    name = "error"
    def init(self):
        return {"sum": np.zeros(()), "all": np.zeros((0,), "float32")}  # of which one grows
    def update(self, state, prediction, target):
        gap = abs(prediction.numpy() - target.numpy()).ravel()
        return {"sum": state["sum"] + gap.sum(), "all": np.concatenate([state["all"], gap])}
    def value(self, state):
        return float(state["sum"]) + float(np.median(state["all"]))

def train(folder, epochs=int(sys.argv[3])):
    ad.random.seed(0)
    model = ad.nn.Sequential(
        ad.nn.Linear(3, 8), ad.nn.BatchNorm(8), ad.nn.relu, ad.nn.Dropout(0.3), ad.nn.Linear(8, 2))
    rate = ad.optim.warmup(ad.optim.cosine(0.02, 40), 5)
    learner = ad.train.Learner(
        model, ad.nn.mse_loss, ad.optim.AdamW(lr=rate), [Error()], [ad.train.EarlyStopping("valid_loss", 3)],
        seed=3, accumulate=2, clip=1.0)
    kept = ad.train.Checkpoints(folder, every=2, keep=2, best="valid_loss")
    model, history = learner.fit(Shuffled(), Shuffled(), epochs=epochs, checkpoints=kept)
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in history.rows]
    values = {path: x.tobytes().hex() for path, x in model.record().items()}
    best = ad.train.load(Path(folder) / "best.safetensors", model, part="model")[0]
    values |= {"best " + path: x.tobytes().hex() for path, x in best.record().items()}
    return json.dumps([values, rows, history.steps, learner.run.reason], sort_keys=True)

def slowly():
    "Writes take their time, so that many are killed in the midst of one."
    open_, fsync = Path.open, os.fsync
    class Slow:
        def __init__(self, file):
            self.file = file
        def __enter__(self):
            return self
        def __exit__(self, *_):
            self.file.close()
        def write(self, content):
            for i in range(0, len(content), 2000):
                self.file.write(content[i : i + 2000])
                self.file.flush()
                time.sleep(0.001)
        def flush(self):
            self.file.flush()
        def fileno(self):
            return self.file.fileno()
    def opened(self, mode="r", *args, **options):
        file = open_(self, mode, *args, **options)
        return Slow(file) if mode == "xb" else file
    def synced(file):
        time.sleep(0.002)
        fsync(file)
    Path.open, os.fsync = opened, synced

def names(place):
    return {path.name for path in place.glob("step-*")}

slowly()
folder, kills = Path(sys.argv[1]), int(sys.argv[2])
began = time.perf_counter()
wanted = train(folder / "undisturbed")
took = time.perf_counter() - began
rng, killed, number, in_a_write = random.Random(1), 0, 0, 0
while killed < kills:
    number += 1
    place = folder / f"run{number}"
    while True:
        child = os.fork()
        if child == 0:
            try:
                (folder / "out").write_text(train(place))
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)

        if killed < kills:
            before, until = names(place), time.perf_counter() + took
            # Every other one is killed after it has gone on from a checkpoint, and come to another.
            while killed % 2 == 0 and names(place) <= before and time.perf_counter() < until:
                time.sleep(0.0005)
            time.sleep(rng.uniform(0, took / 6))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            in_a_write += any(path.name.startswith(".") for path in place.glob("*")) if place.is_dir() else 0
            continue
        assert status == 0, status
        break
    assert (folder / "out").read_text() == wanted, number
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
print(json.dumps({"killed": killed, "runs": number, "in a write": in_a_write}))
"""


def killed(folder: Path, kills: int, epochs: int) -> dict[str, int]:
    done = processes.run([sys.executable, "-c", _DRIVER, str(folder), str(kills), str(epochs)], check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_killed_twice_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    assert killed(tmp_path, 2, 3)["killed"] == 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_killed_at_any_moment_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    found = killed(tmp_path, 40, 8)
    assert found["killed"] == 40
    assert found["in a write"] >= 5  # and not only between
