"""Machine code of earlier processes, found by the graph: nothing is written again, and nothing is taken for another."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from test_native import native as native

import adjoint as ad
from adjoint import errors, lines
from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native import linked, machine, remembered, steps, stored

pytest.importorskip("llvmlite")

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    where = tmp_path / "cache"
    monkeypatch.setenv("ADJOINT_CACHE", str(where))
    remembered._source_at_first.cache_clear()
    yield where
    remembered._source_at_first.cache_clear()


class Watched:
    """How often graphs are planned and texts compiled, in calls that begin as those of a new process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.planned = self.emitted = 0
        plan, emit = steps.with_regions, type(machine._new_target()).emit_object

        def with_regions(*args: Any, **how: Any) -> Any:
            self.planned += 1
            return plan(*args, **how)

        def emit_object(target: Any, module: Any) -> Any:
            self.emitted += 1
            return emit(target, module)

        monkeypatch.setattr(steps, "with_regions", with_regions)
        monkeypatch.setattr(type(machine._new_target()), "emit_object", emit_object)

    def __call__(self, f: Callable[..., Any], *args: Any, **how: Any) -> tuple[int, int, Any]:
        linked._machines.clear()
        remembered._source_at_first.cache_clear()
        self.planned = self.emitted = 0
        compiled = ad.compile(f, **how)
        compiled(*args) if not how else None
        out = compiled(*args)
        return self.planned, self.emitted, out


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def _loss(w: Any, x: Any) -> Any:
    return (ad.tanh(x @ w) ** 2).sum()


def _looped(x: Any) -> Any:
    """A loop that Python runs, with machine code for parts of its step."""

    def step(c: Any, row: Any) -> Any:
        return ad.sort(c * row + ad.fft.fft(c).real) * 0.5, c.sum()

    return ad.scan(step, x[0], x)


def _drawn(x: Any) -> Any:
    ad.random.seed(7)
    return ad.random.normal(x.shape) * x + ad.exp(x)


def _checked(x: Any) -> Any:
    return ad.exp(x)[ad.astype(x[0], ad.int64) * 0]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x: ad.exp(x) * 2.0 - 3.5,
    "gradients": lambda x: ad.value_and_grad(_loss)(x.mT, x),
    "several results, of which one is an argument": lambda x: {"a": x, "b": (x + 1.0, 3, "c"), "d": x.sum()},
    "constants": lambda x: x * ad.asarray(np.arange(6.0).reshape(2, 3)) + np.float64(0.1),
    "a loop": lambda x: ad.fori_loop(0, 5, lambda i, c: c * 1.5 + ad.sin(c), x),
    "a loop of Python's": _looped,
    "a choice": lambda x: ad.cond(x.sum() > 0, ad.sin, lambda x: x * x, x),
    "while": lambda x: ad.while_loop(lambda x: x.sum() < 100, lambda x: x * 1.5, x, max_steps=60),
    "calls of NumPy's": lambda x: ad.linalg.svd(ad.exp(x) @ x.mT)[1] * 2.0,
    "nothing but calls of NumPy's": lambda x: ad.fft.fft(x).real,
    "random numbers": _drawn,
    "places": _checked,
    "integers": lambda x: (x * 7).astype(ad.int32) % 3 + (x > 1.0),
    "views": lambda x: ad.concat([x[:, ::-1], x * 2.0], axis=0).mT.reshape((-1,))[2:],
    "batches": ad.vmap(ad.grad(lambda x: (ad.sin(x) * x).sum())),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_process_writes_nothing(name: str, watched: Watched) -> None:
    f = PROGRAMS[name]
    planned, emitted, first = watched(f, X)
    assert planned > 0
    assert emitted == (name != "nothing but calls of NumPy's")
    planned, emitted, second = watched(f, X)
    assert (planned, emitted) == (0, 0)
    xs, structure = ad.tree.flatten(first)
    ys, again = ad.tree.flatten(second)
    assert structure == again
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_shown_is_the_same() -> None:
    shown = []
    for _ in range(2):
        linked._machines.clear()
        f = ad.compile(ad.value_and_grad(_loss))
        f(X.T, X)
        lowered = f.lower(X.T, X)
        shown.append((lowered.kernels, lowered.memory, lowered.source, lowered.llvm, str(lowered)))
    assert shown[0] == shown[1]
    assert all(shown[0])


def test_another_process_finds_it_whatever_its_hashes(cache: Path) -> None:
    program = (
        "import sys, numpy as np, adjoint as ad\n"
        "x = np.linspace(0.0, 1.0, 12).reshape(3, 4)\n"
        "f = ad.compile(ad.value_and_grad(lambda x: (ad.sin(x) * ad.exp(x @ x.mT).sum()).sum()))\n"
        "value, slope = f(x)\n"
        "print(float(value).hex(), slope.tobytes().hex())\n"
        "print([m for m in sys.modules if m.startswith('adjoint.compiler.native')], file=sys.stderr)\n"
    )
    found = []
    for seed in ("1", "2"):
        how = {**os.environ, "PYTHONHASHSEED": seed}
        found.append(processes.python(program, env=how))
    assert found[0].stdout == found[1].stdout
    assert "native.entry" in found[0].stderr
    assert "native.entry" not in found[1].stderr
    assert "native.plan" not in found[1].stderr
    assert len(list(cache.iterdir())) == 1


# --- what a name holds ---


def _graph(**changes: Any) -> Graph:
    """x * c + 2.0, summed along an axis."""
    has: dict[str, Any] = {
        "shape": (2, 3), "dtype": np.dtype(np.float64), "name": "add", "number": 2.0, "axis": (0,), "backward": False,
        "constant": np.ones(3), "given": True, "outputs": 1, **changes,
    }  # fmt: skip
    x = Value(has["shape"], has["dtype"])
    c = Value(has["constant"].shape, has["constant"].dtype, has["constant"]) if has["given"] else Value((3,), x.dtype)
    y, z = Value(has["shape"], has["dtype"]), Value(has["shape"], has["dtype"])
    s = Value(tuple(n for i, n in enumerate(x.shape) if i not in has["axis"]), x.dtype)
    equations = [
        Equation("multiply", [x, c], {}, [y]),
        Equation(has["name"], [y, has["number"]], {}, [z], backward=has["backward"]),
        Equation("sum", [z], {"axis": has["axis"], "keepdims": False}, [s]),
    ]
    return Graph([x] if has["given"] else [x, c], equations, [s, z][: has["outputs"]])


CHANGES: dict[str, dict[str, Any]] = {
    "shape": {"shape": (4, 3)},
    "dtype": {"dtype": np.dtype(np.float32), "constant": np.ones(3, np.float32)},
    "dtype of a constant": {"constant": np.ones(3, np.float32)},
    "primitive": {"name": "subtract"},
    "number": {"number": 3.0},
    "type of a number": {"number": 2},
    "bool": {"number": True},
    "sign of zero": {"number": -0.0},
    "zero": {"number": 0.0},
    "nan": {"number": float("nan")},
    "nan of another sign": {"number": np.copysign(float("nan"), -1.0).item()},
    "NumPy's number": {"number": np.float64(2.0)},
    "parameter": {"axis": (1,)},
    "type of a parameter": {"axis": [0]},
    "of a backward pass": {"backward": True},
    "constant": {"constant": np.array([1.0, 1.0, 2.0])},
    "sign of a constant's zero": {"constant": np.array([1.0, 1.0, -0.0])},
    "zero of a constant": {"constant": np.array([1.0, 1.0, 0.0])},
    "shape of a constant": {"constant": np.ones((1, 3))},
    "an input": {"given": False},
    "outputs": {"outputs": 2},
}


def _key(graph: Graph, donated: Any = ()) -> str:
    key = remembered.Entry(graph, donated).key
    assert key is not None
    return key


def test_what_a_graph_is_changes_the_name() -> None:
    assert _key(_graph()) == _key(_graph())
    keys = [_key(_graph()), _key(_graph(), (0,)), *[_key(_graph(**change)) for change in CHANGES.values()]]
    assert len(set(keys)) == len(keys) == len(CHANGES) + 2


def test_graphs_of_loops_change_the_name() -> None:
    def looped(**changes: Any) -> Graph:
        inner, operand = _graph(shape=(3,), axis=(), **changes), Value((3,), np.dtype(np.float64))
        out = Value((3,), np.dtype(np.float64))
        how = {"count": 1, "rows": 0, "length": 5, "reverse": False}
        return Graph([operand], [Equation("scan", [operand], how, [out], [inner])], [out])

    keys = {_key(looped()), _key(looped()), _key(looped(number=3.0)), _key(looped(constant=np.zeros(3)))}
    assert len(keys) == 3


FACTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    **{
        name: lambda m, name=name, value=value: m.setattr(machine, name, lambda: value)
        for name, value in {
            "vector_bytes": 4, "has_avx512": "?", "multiplies_twice": "?", "registers": 3, "adds_products": "?",
            "is_x86": "?", "integer_bits": 7, "blas_is_narrow": "?", "_is_arm": "?",
        }.items()
    },
    **{
        f"host {i}": lambda m, i=i: m.setattr(machine, "_host", lambda h=machine._host(): (*h[:i], "?", *h[i + 1 :]))
        for i in range(5)
    },
    "version": lambda m: m.setattr(machine, "VERSION", 0),
    "NumPy": lambda m: m.setattr(np, "__version__", "0"),
    "Python": lambda m: m.setattr(sys, "version", "0"),
    "source": lambda m: m.setattr(remembered, "_source", lambda: "?"),
}  # fmt: skip


def test_what_the_host_tells() -> None:
    triple, cpu, features, llvmlite, llvm = machine._host()
    assert triple == machine.llvm().get_process_triple()
    assert cpu == machine.llvm().get_host_cpu_name()
    assert features == machine.llvm().get_host_cpu_features().flatten()
    assert llvmlite.count(".") >= 1
    assert tuple(llvm) == tuple(machine.llvm().llvm_version_info)


@pytest.mark.parametrize("name", FACTS)
def test_what_code_depends_on_beside_a_graph_changes_the_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _key(_graph())
    FACTS[name](monkeypatch)
    remembered._source_at_first.cache_clear()
    assert _key(_graph()) != before


def test_changes_of_this_packages_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder in ("", *remembered._SOURCE):
        (tmp_path / "copy" / folder).mkdir()
        (tmp_path / "copy" / folder / "a.py").write_text("x = 1")
    deep = tmp_path / "copy" / "compiler" / "native" / "b.py"
    deep.parent.mkdir()
    deep.write_text("y = 1")
    monkeypatch.setattr(remembered, "PACKAGE", os.path.join(tmp_path, "copy", ""))
    monkeypatch.setattr(remembered, "IMPORTED", 1e12)
    seen = [remembered._source()]

    def changed() -> bool:
        seen.append(remembered._source())
        return None not in seen and len(set(seen)) == len(seen)

    assert remembered._source() == seen[0]
    deep.write_text("y = 12")
    assert changed()
    os.utime(deep, ns=(1, 1))  # of the same size
    assert changed()
    deep.rename(deep.with_name("c.py"))
    assert changed()
    deep.with_name("d.py").write_text("")
    assert changed()
    monkeypatch.setattr(remembered, "IMPORTED", deep.with_name("d.py").stat().st_ctime - 1.0)
    assert remembered._source() is None  # it runs as it was before the last change
    shutil.rmtree(tmp_path / "copy")
    assert remembered._source() is None  # as in an archive


def test_source_that_changes_under_a_process_is_not_taken_for_what_runs(
    monkeypatch: pytest.MonkeyPatch, watched: Watched, cache: Path
) -> None:
    monkeypatch.setattr(remembered, "IMPORTED", 0.0)
    f = PROGRAMS["elementwise"]
    assert watched(f, X)[:2] == (1, 1)
    assert watched(f, X)[:2] == (1, 0)  # by the text
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(remembered, "IMPORTED", lines.IMPORTED)
    assert watched(f, X)[:2] == (1, 1)
    store = stored.store
    monkeypatch.setattr(stored, "store", lambda *_: pytest.fail("kept"))
    source = remembered._source()
    answers = iter([source, None])  # it changes while the graph is planned
    monkeypatch.setattr(remembered, "_source", lambda: next(answers))
    watched(lambda x: x * 7.5, X)
    monkeypatch.setattr(stored, "store", store)


def test_all_that_writes_machine_code_is_looked_at() -> None:
    program = (
        "import sys\n"
        "import adjoint.compiler.native.steps, adjoint.compiler.native.pool\n"
        "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('adjoint.') and m.count('.') > 1}))\n"
    )
    run = processes.python(program)
    assert set(run.stdout.split()) <= set(remembered._SOURCE)


def test_graphs_that_have_no_name(watched: Watched) -> None:
    twice = ad.primitive("twice", lambda x: x * 2.0)
    for _ in range(2):
        assert watched(lambda x: twice(ad.asarray(x)) + 1.0, X)[0] > 0
    large = np.ones(1 << 20)
    np.testing.assert_array_equal(watched(lambda x: (ad.asarray(large) * x[0, 0]).sum(), X)[2], 0.5 * large.size)
    graph = _graph()
    graph.equations[2].parameters["axis"] = lambda: 0
    assert remembered.Entry(graph, ()).key is None


# --- values of the process that reads ---


def test_errors_and_functions_are_those_of_the_graph_that_asks(watched: Watched) -> None:
    def picked(x: Any, i: Any) -> Any:
        return ad.exp(x)[i] * 2.0

    for _ in range(2):
        linked._machines.clear()
        f = ad.compile(picked)
        np.testing.assert_allclose(f(X, np.array([1, 0])), np.exp(X)[[1, 0]] * 2.0)
        with pytest.raises(IndexError, match="index 5 is out of range for axis 0 of size 2"):
            f(X, np.array([0, 5]))

    def asking(step: Any, seen: list[Any]) -> Callable[..., Any]:
        host = ad.external(step, like=lambda x: x)

        def f(x: Any) -> Any:
            ad.debug.callback(seen.append, x.sum())
            return host(ad.exp(x)) * 2.0

        return f

    lists: tuple[list[Any], list[Any]] = [], []
    _, _, out = watched(asking(lambda x: x + 1.0, lists[0]), X)
    np.testing.assert_allclose(out, (np.exp(X) + 1.0) * 2.0)
    planned, _, out = watched(asking(lambda x: x * 3.0, lists[1]), X)
    np.testing.assert_allclose(out, np.exp(X) * 6.0)
    assert planned == 0
    assert len(lists[0]) == len(lists[1]) == 2


def test_donated_arguments(watched: Watched) -> None:
    step = lambda x, g: x - 0.5 * ad.exp(g)
    expected = X - 0.5 * np.exp(X)
    for planned in (1, 0):
        linked._machines.clear()
        watched.planned = 0
        f = ad.compile(step, donate=0)
        x = np.array(X)
        np.testing.assert_allclose(f(x, X), expected)
        assert watched.planned == planned
    np.testing.assert_allclose(watched(step, X, X)[2], expected)
    np.testing.assert_array_equal(X, np.linspace(0.5, 2.0, 6).reshape(2, 3))


# --- files ---


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("was here",)


def test_files_that_are_not_ours(
    monkeypatch: pytest.MonkeyPatch, watched: Watched, cache: Path, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    f = PROGRAMS["gradients"]
    _, _, (value, _) = watched(f, X)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    watched(PROGRAMS["elementwise"], X)
    (other,) = [p for p in cache.iterdir() if p != file]
    copied = other.read_bytes()
    key = file.name
    sound = [pickle.dumps(x) for x in (Evil(), 42, None, (key, []), ("another", [], b""))]

    def with_sum(content: bytes) -> bytes:
        stored.store(key, content)
        return file.read_bytes()

    damaged = [whole[:n] for n in (0, 5, 20, 60, len(whole) // 2, len(whole) - 1)]
    damaged += [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole), len(whole) // 7)]
    for content in [*damaged, copied, *map(with_sum, sound)]:
        file.write_bytes(content)
        planned, emitted, (again, _) = watched(f, X)
        assert (planned, emitted) == (1, 1)
        np.testing.assert_array_equal(again, value)
        assert file.read_bytes() == whole
        assert watched(f, X)[:2] == (0, 0)
    assert not (tmp_path / "was here").exists()


def test_a_folder_that_cannot_be_written_to_is_read(
    monkeypatch: pytest.MonkeyPatch, watched: Watched, cache: Path
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError("read-only")

    f, g = PROGRAMS["elementwise"], PROGRAMS["gradients"]
    watched(f, X)
    before = {p.name: p.read_bytes() for p in cache.iterdir()}
    for module, name in ((stored.tempfile, "mkstemp"), (os, "replace"), (os, "mkdir"), (os, "unlink")):
        monkeypatch.setattr(module, name, refused)
    assert watched(f, X)[:2] == (0, 0)
    for _ in range(2):
        assert watched(g, X)[:2] == (1, 1)
    assert {p.name: p.read_bytes() for p in cache.iterdir() if not p.name.startswith(".")} == before


def test_a_folder_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, watched: Watched, cache: Path) -> None:
    f = PROGRAMS["elementwise"]
    watched(f, X)
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.parent == cache:
            raise PermissionError("not readable")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert watched(f, X)[:2] == (1, 1)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other means")
def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, watched: Watched, cache: Path) -> None:
    f = PROGRAMS["elementwise"]
    watched(f, X)
    assert watched(f, X)[:2] == (0, 0)
    own = cache.stat().st_uid
    cache.chmod(0o777)  # whoever can write there could have code of theirs run
    assert watched(f, X)[:2] == (1, 1)
    cache.chmod(0o700)
    assert watched(f, X)[:2] == (0, 0)
    stat = Path.stat

    def of_another(path: Path, **how: Any) -> Any:
        found = stat(path, **how)
        return os.stat_result((*found[:4], own + 1 or 1, *found[5:])) if path == cache else found

    monkeypatch.setattr(Path, "stat", of_another)
    assert watched(f, X)[:2] == (1, 1)
    watched(PROGRAMS["gradients"], X)
    monkeypatch.setattr(Path, "stat", stat)
    assert len(list(cache.iterdir())) == 1


def test_nothing_is_read_but_parts_of_graphs() -> None:
    for x in (os.system, errors.AdjointError("?"), Watched, np.load):
        with pytest.raises(pickle.UnpicklingError):
            remembered._Reader(io.BytesIO(pickle.dumps(x)), []).load()
