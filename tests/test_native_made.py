"""How machine code comes about: once for a text, kept in files, replayed without llvmlite; and all functions by it."""

from __future__ import annotations

import math
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, PLAIN, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import ASKS, compared
from test_native import native as native
from test_recording import TRANSFORMS, X, derivatives

import adjoint as ad
from adjoint.compiler.native import linked, machine, stored

pytest.importorskip("llvmlite")


def test_an_argument_that_is_resized_meanwhile_is_an_error() -> None:
    x = np.ones(1000)

    def cut(total: Any) -> Any:
        x.resize(10, refcheck=False)
        return total

    step = ad.external(cut, like=lambda total: total)
    f = ad.compile(lambda y: y * step(ad.sin(y).sum()))
    with pytest.raises(ad.errors.ShapeError, match="nobody may resize its arguments meanwhile"):
        f(x)
    np.testing.assert_allclose(f(np.ones(1000)), np.full(1000, 1000 * math.sin(1)))


def test_code_is_made_once_for_a_text() -> None:
    made = set(linked._machines)
    for _ in range(2):
        ad.compile(lambda x: x * 2.0 - 7.25)(np.ones(11))
    assert len(set(linked._machines) - made) == 1


def test_it_can_be_read() -> None:
    f, x = ad.compile(lambda x: ad.sort(x * x) * 3.0 + 8.25), np.ones(130)  # a line that NumPy sorts
    before = f.lower(x)  # the same, whether it has run or not
    f(x)
    assert f.lower(x).llvm == before.llvm == next(reversed(linked._machines))
    assert all(f"{name}:" in before.assembly for name in ("n0", "n1"))
    assert ad.compile(ad.sort).lower(x).llvm == ad.compile(ad.sort).lower(x).assembly == ""
    g = ad.compile(lambda x: x * 2.0, dynamic=True)
    assert g.lower(x).llvm == ""  # of a graph for all sizes


def test_code_is_kept_for_later_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where = tmp_path / "cache"
    monkeypatch.setenv("ADJOINT_CACHE", str(where))
    f, x = lambda x: ad.exp(x) * 2.0 - 3.5, np.linspace(0.0, 1.0, 9)
    expected = f(ad.asarray(x)).numpy()
    made: list[str] = []
    emit = type(machine._new_target()).emit_object
    monkeypatch.setattr(
        type(machine._new_target()), "emit_object", lambda self, module: made.append("") or emit(self, module)
    )

    def run() -> int:
        """As another process does; how often machine code was made."""
        linked._machines.clear()
        made.clear()
        np.testing.assert_allclose(ad.compile(f)(x), expected, rtol=1e-15)
        return len(made)

    assert [run(), run()] == [1, 0]
    (file,) = where.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-5], whole[:200] + b"?" + whole[201:], b"something else"):
        file.write_bytes(damaged)
        assert [run(), run()] == [1, 0]
        assert file.read_bytes() == whole
    assert [p.name for p in where.iterdir()] == [file.name]
    monkeypatch.setenv("ADJOINT_CACHE", "0")
    assert run() == 1
    monkeypatch.setenv("ADJOINT_CACHE", str(file))  # no folder: nothing is kept
    assert run() == 1


def test_the_older_half_of_many_files_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path))
    monkeypatch.setattr(stored, "_KEPT", 4)
    keys = [f"{i:064x}" for i in range(6)]
    for i, key in enumerate(keys):
        stored.store(key, b"%d" % i)
        os.utime(tmp_path / key, (i, i))
    assert [stored.load(key) for key in keys] == [None, None, b"2", b"3", b"4", b"5"]


def test_files_of_the_user_in_that_folder_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path))
    monkeypatch.setattr(stored, "_KEPT", 4)
    names = [".bashrc", ".gitignore", ".env", *[f"{i}.txt" for i in range(6)], "a" * 63, "a" * 65, "." + "a" * 64]
    for name in names:
        (tmp_path / name).write_text("mine")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".git").mkdir()
    for i in range(6):
        stored.store(f"{i:064x}", b"ours")
    assert {*names, ".git"} <= {p.name for p in tmp_path.iterdir()}


def test_what_a_killed_process_has_left_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ADJOINT_CACHE", "~/cache")  # as a shell leaves it inside of quotes
    key, folder, left = f"{1:064x}", tmp_path / "cache", []
    stored.store(key, b"1")

    def killed(name: str, _: Path) -> None:
        left.append(Path(name))
        raise SystemExit

    with monkeypatch.context() as m:
        m.setattr(os, "replace", killed)
        m.setattr(os, "unlink", lambda _: None)
        for _ in range(2):
            with pytest.raises(SystemExit):
                stored.store(key, b"2")
    os.utime(left[0], (time.time() - 2 * 86_400,) * 2)
    stored.store(key, b"2")
    assert sorted(folder.iterdir()) == sorted([left[1], folder / key])
    assert stored.load(key) == b"2"


def test_without_llvmlite_it_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "llvm", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    machine._say_once.cache_clear()
    f = ad.compile(lambda x: x * 2.0 + 1.0)
    with pytest.warns(RuntimeWarning, match=r'pip install "adjoint\[compile\]"') as found:
        assert f(1.0 * np.ones(2)).tolist() == [3.0, 3.0]
    assert [x.filename for x in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ad.compile(lambda x: x + 1.0)(np.ones(1)) == 2.0
    assert "empty(" not in f.lower(np.ones(2)).source


def test_it_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", "replay")
    lowered = ad.compile(lambda x: x * 2.0 + 1.0).lower(np.ones(2))
    assert "empty(" not in lowered.source
    assert lowered.llvm == lowered.assembly == ""


@pytest.mark.slow  # 25 seconds
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=1)
@given(data=st.data())
def test_functions_and_their_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    compared(derivatives(f), args, asks=name in ASKS, rtol=1e-9)


def test_functions_without_derivatives() -> None:
    rng = np.random.default_rng(0)
    for name in PLAIN:
        x, y = (rng.integers(0, 3, (2, 3)) for _ in range(2))
        two = name == "isin" or name.startswith(("bitwise_", "logical_", "equal", "not_", "less", "greater"))
        two = two and not name.endswith(("invert", "logical_not"))
        compared(getattr(ad, name), [x, y][: 1 + two], asks=name in ASKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    compared(TRANSFORMS[name], [X], rtol=1e-9)
