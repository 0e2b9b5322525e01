"""Records and files of modules: what they keep, what does not fit, and what an interrupted write leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors


def model(width: int = 4) -> Any:
    return ad.nn.Sequential(ad.nn.Linear(3, width), ad.nn.BatchNorm(width), ad.nn.relu, ad.nn.Linear(width, 2))


def same(x: Any, y: Any) -> bool:
    a, b = x.record(), y.record()
    return a.keys() == b.keys() and all((a[path] == b[path]).all() for path in a)


def test_records() -> None:
    made, other = model(), model().require_grad().freeze("layers.0")
    record = made.record()
    assert list(record) == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "layers.1.running_mean",
        "layers.1.running_var", "layers.3.weight", "layers.3.bias",
    ]  # fmt: skip
    assert all(isinstance(x, np.ndarray) for x in record.values())
    loaded = other.load_record(record)
    assert same(loaded, made)
    assert not same(other, made)
    assert loaded.layers[3].weight.is_require_grad()
    record["layers.3.weight"] = record["layers.3.weight"] * 2
    assert same(loaded, made)  # which has its own arrays


def test_what_does_not_fit() -> None:
    record = model().record()
    with pytest.raises(errors.ShapeError, match=r"load_record: layers\.0\.weight has shape \(4, 3\) in the record"):
        model(5).load_record(record)
    with pytest.raises(
        errors.DtypeError, match=r"layers\.0\.weight is float64 in the record, and float32 in the module"
    ):
        model().load_record({path: x.astype("float64") for path, x in record.items()})
    del record["layers.0.bias"]
    record["extra"] = np.ones(2)
    with pytest.raises(
        errors.ArgumentError, match=r"missing: 'layers\.0\.bias'; unexpected: 'extra'\. With strict=False"
    ):
        model().load_record(record)
    before = model()
    after, loaded = before.load_record(record, strict=False)
    assert loaded == (("layers.0.bias",), ("extra",))
    assert (after.layers[0].bias == before.layers[0].bias).all()
    assert (after.layers[0].weight.numpy() == record["layers.0.weight"]).all()
    with pytest.raises(errors.ArgumentError, match="two entries of the record are renamed to x"):
        model().load_record(record, rename=lambda name: "x")


def test_files(tmp_path: Path) -> None:
    made, path = model(), tmp_path / "model.safetensors"
    made.save(path)
    assert same(model().load(path), made)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    assert same(model().load(str(path)), made)


def test_numbers_and_complex_numbers_in_files(tmp_path: Path) -> None:
    class Scale(ad.nn.Module):
        factor: ad.Tensor
        turn: ad.Tensor

    made = Scale(ad.tensor(2.5), ad.tensor([[1 + 2j, complex(-0.0, np.inf)]] * 2, dtype=ad.complex128))
    made.save(tmp_path / "a")
    found = made.map(ad.zeros_like).load(tmp_path / "a")
    assert found.factor.shape == ()
    assert same(found, made)
    assert found.turn.numpy().tobytes() == made.turn.numpy().tobytes()


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
def test_files_have_the_rights_of_any_new_file(tmp_path: Path) -> None:
    model().save(tmp_path / "model.safetensors")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("cut", [0, 7, 8, 100, -1])
def test_files_that_are_not_whole(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model().save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(errors.FileError, match=r"model\.safetensors: this is no whole file of safetensors"):
        model().load(path)


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind " * 50)
    with pytest.raises(errors.FileError, match=r"notes\.txt: this is no whole file of safetensors"):
        model().load(path)
    with pytest.raises(errors.FileError, match="none: No such file or directory"):
        model().load(tmp_path / "none")
    with pytest.raises(errors.FileError, match="No such file or directory; what was there before is unchanged"):
        model().save(tmp_path / "no" / "folder")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, path = model(), tmp_path / "model.safetensors"
    made.save(path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.FileError, match="No space left on device; what was there before is unchanged"):
        model().save(path)
    monkeypatch.undo()
    assert same(model().load(path), made)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.slow
def test_a_killed_write_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    code = f"""
        import adjoint as ad
        model = ad.nn.Linear(300, 300)
        while True:
            model.save({str(path)!r})
            print("saved", flush=True)
    """
    rng = np.random.default_rng(0)
    for _ in range(10):
        with processes.started([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"saved\n"
            time.sleep(rng.uniform(0, 0.05))
            process.kill()
        assert ad.nn.Linear(300, 300).load(path).weight.shape == (300, 300)


@pytest.mark.peers
def test_weights_of_pytorch(tmp_path: Path) -> None:
    torch = peer("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    net(torch.randn(10, 3))
    path = tmp_path / "net.safetensors"
    save_file(net.state_dict(), path)
    rename = lambda name: None if name.endswith("num_batches_tracked") else f"layers.{name}"
    made = model().load(path, rename=rename).train(False)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    wanted = net.eval()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(made(ad.asarray(x)).numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("values", [np.array([object()]), np.array(["a"]), np.zeros(1, "datetime64[s]")])
def test_arrays_that_no_file_has(values: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.DtypeError, match=r"save: w\.0: "):
        ad.train.save(tmp_path / "file", {"w": [values]})
    assert not list(tmp_path.iterdir())


def test_names_that_no_file_can_have() -> None:
    name = "file\0of.svg"
    calls: list[Any] = [
        lambda: ad.train.save(name, {"w": 1.0}),
        lambda: ad.train.load(name, {"w": 1.0}),
        lambda: model().save(name),
        lambda: ad.train.Checkpoints(name),
        lambda: ad.train.Report(name),
        lambda: ad.data.ImageFolder(name, 3),
        lambda: ad.draw(ad.sin, 1.0).save(name),
    ]
    for call in calls:
        with pytest.raises(errors.ArgumentError, match="null character"):
            call()
