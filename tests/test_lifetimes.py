"""What users can make in a loop goes with its last reference."""

from __future__ import annotations

import copy
import dataclasses
import gc
import mmap
import pickle
import subprocess
import sys
import tracemalloc
import types
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest

import adjoint as ad
import adjoint.torch as torch
from adjoint.autograd import grad
from adjoint.autograd.extend import defjvp, defvjp, primitive
from adjoint.backend import Backend
from adjoint.compiler.general import KEPT
from adjoint.compiler.replay import Replay
from adjoint.primitives import TABLE
from adjoint.torch.utils.checkpoint import checkpoint


def _module(n: int) -> types.ModuleType:
    made = types.ModuleType(f"made{n}")
    vars(made).update(vars(array_api_strict), __name__=f"made{n}")
    return made


MAKE: dict[str, Callable[[int], ad.Backend]] = {
    "Profiled": lambda n: ad.Profiled(ad.NumPy(), n + 9000),
    "Reference": lambda n: ad.Reference(digits=n + 140),  # of which no other test keeps one
    "Batched": lambda n: ad.Batched(ad.NumPy(), n + 40),
    "Taylor": lambda n: ad.Taylor(ad.NumPy(), n + 40),
    "ArrayAPI": lambda n: ad.ArrayAPI(_module(n)),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_backend_goes_with_its_last_reference(name: str) -> None:
    def use(n: int) -> weakref.ref[Any]:
        backend = MAKE[name](n)
        assert MAKE[name](n) is backend or name == "ArrayAPI"  # of another module
        x = ad.ones(3, device=ad.Autodiff(backend)).require_grad()
        (x * x).sum().backward()
        ad.grad(lambda y: (y * y).sum())(ad.ones(3, device=backend))
        return weakref.ref(backend)

    found = [use(n) for n in range(3)]
    gc.collect()
    assert [ref() for ref in found] == [None] * 3


@pytest.mark.parametrize("name", ["Profiled", "Batched"])
def test_a_backend_without_use_needs_no_collector(name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        made = weakref.ref(MAKE[name](0))
        assert made() is None
    finally:
        gc.enable()


def test_a_seeded_leaf_stays() -> None:
    ad.Reference(digits=55).seed(3)
    first = ad.random.uniform(2, device=ad.Reference(digits=55)).tolist()
    gc.collect()
    ad.Reference(digits=55).seed(3)
    gc.collect()
    assert ad.random.uniform(2, device=ad.Reference(digits=55)).tolist() == first


def test_a_primitive_that_is_declared_anew_frees_what_it_was() -> None:
    def declare(n: int) -> weakref.ref[Any]:
        def scaled(x: Any) -> Any:
            return n * x

        f = ad.primitive("lifetimes_scaled", scaled, derivative={"x": lambda B, g: B.multiply(g, float(n))})
        assert ad.grad(f)(1.0) == n
        assert ad.vmap(ad.grad(f))(np.ones(2)).tolist() == [n, n]
        assert ad.jvp(f, (1.0,), (1.0,)) == (n, n)
        return weakref.ref(scaled)

    found = [declare(n) for n in range(5)]
    gc.collect()
    assert [ref() for ref in found] == [None] * 5


def _declared(name: str, factor: float, derivative: Any = None) -> Any:
    rule = derivative or (lambda B, g: B.multiply(g, factor))
    return ad.primitive(name, lambda x: factor * x, derivative={"x": rule})


def test_primitives_of_new_names_go_with_their_functions() -> None:
    def make(n: int) -> None:
        f = _declared(f"lifetimes_{n}", 2.0)
        assert ad.grad(f)(1.0) == 2.0
        assert ad.vmap(ad.grad(f))(np.ones(2)).tolist() == [2.0, 2.0]
        assert ad.jvp(f, (1.0,), (1.0,)) == (2.0, 2.0)
        w = ad.tensor(1.0).require_grad()
        assert f(w).backward(create_graph=True)[w].item() == 2.0

    def kept(numbers: range) -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for n in numbers:
            make(n)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    kept(range(20))
    tracemalloc.start()
    try:
        # dictionaries of backends that have met many primitives grow once, until each has been through that
        assert any(kept(range(n, n + 50)) < 100 * 50 for n in range(100, 1500, 50))
    finally:
        tracemalloc.stop()
    assert not [name for name in TABLE if name.startswith("lifetimes_")]


def test_primitives_that_nobody_calls_go_too() -> None:
    def left() -> int:
        return len([name for name in TABLE if name.startswith("uncalled_")])

    _declared("uncalled_helper", 3.0)  # a rule may ask for it by its name, so the last ones stay
    assert left() == 1
    for n in range(300):
        _declared(f"uncalled_{n}", 2.0)
    gc.collect()
    assert left() <= 100


def test_the_end_of_the_interpreter_is_quiet() -> None:
    program = "import numpy as np, adjoint as ad; ad.primitive('mine', np.sin, derivative={'x': lambda B, g, x: g})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""


def test_a_graph_keeps_the_primitives_that_it_needs() -> None:
    def squared() -> tuple[Any, Any]:
        f = ad.primitive(
            "lifetimes_square", np.square, derivative={"x": lambda B, g, x: B.multiply(g, B.lifetimes_double(x))}
        )
        double = _declared("lifetimes_double", 2.0)
        w = ad.tensor(3.0).require_grad()
        assert double(1.0) == 2.0
        return w, f(f(w))

    for _ in range(2):  # a name is free again
        w, y = squared()
        gc.collect()
        assert "lifetimes_square" not in TABLE
        slope = y.backward(create_graph=True)[w]
        assert slope.item() == 4 * 27.0
        assert slope.backward()[w].item() == 12 * 9.0
        del w, y, slope
        gc.collect()  # the squares
        gc.collect()  # what their rule asked for
        assert not {"lifetimes_square", "lifetimes_double"} & {*TABLE, *TABLE.leaving}


def test_a_primitive_that_rules_ask_for_by_name_stays() -> None:
    _declared("lifetimes_slope", 3.0)  # nobody has its function
    f = _declared("lifetimes_slow", 3.0, lambda B, g: B["lifetimes_slope"](g))
    gc.collect()
    assert ad.grad(f)(1.0) == 3.0
    slope = _declared("lifetimes_slope", 4.0)
    assert slope(1.0) == ad.grad(f)(1.0) == 4.0
    del slope
    gc.collect()
    assert ad.grad(f)(1.0) == 4.0
    assert copy.copy(f) is copy.deepcopy([f])[0] is pickle.loads(pickle.dumps(f)) is f
    file = pickle.dumps(f)
    del f
    gc.collect()
    assert not {"lifetimes_slow", "lifetimes_slope"} & {*TABLE}
    with pytest.raises(ad.errors.ArgumentError, match="lifetimes_slow: no primitive of this name is declared here"):
        pickle.loads(file)


def _backends() -> int:
    gc.collect()
    return sum(n for cls, n in Counter(map(type, gc.get_objects())).items() if issubclass(cls, Backend))


@pytest.mark.parametrize("randomness", ["error", "split"])
def test_batches_of_other_sizes_keep_a_few_backends(randomness: str) -> None:
    def run(sizes: range) -> int:
        for n in sizes:
            ad.vmap(ad.grad(lambda x: (x * x).sum()), randomness=randomness)(np.ones((n, 2)))
        return _backends()

    before = run(range(2, 10))
    assert run(range(10, 40)) <= before


def test_names_kept_by_checkpoints_keep_a_few_backends() -> None:
    def run(start: int) -> int:
        for n in range(start, start + 100):
            ad.grad(ad.checkpoint(lambda x: ad.sin(ad.sin(x)), policy=[f"name{n}"]))(0.5)
        return _backends()

    before = run(0)
    assert run(100) <= before


# --- compiled functions, the face of PyTorch, trainings and pictures ------------------------------


def _compiled(n: int) -> list[Any]:
    def f(x: Any) -> Any:
        return (ad.sin(x) * x).sum() * n

    compiled = ad.compile(f)
    compiled(np.ones(3))
    ad.grad(compiled)(np.ones(3))
    return [f, compiled]


def _compiled_scan(n: int) -> list[Any]:
    def f(x: Any) -> Any:
        return ad.scan(lambda c, a: (c * a, c), x[0], x)[0] * n

    ad.grad(ad.compile(f))(np.ones(3))
    return [f]


def _learner(n: int) -> list[Any]:
    learner = ad.train.Learner(ad.nn.Linear(3, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1))
    learner.fit([(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))])
    return [learner]


def _drawn(n: int) -> list[Any]:
    def f(x: Any) -> Any:
        return (ad.sin(x) * x).sum() * n

    x = ad.ones(3).require_grad()
    return [f, x, ad.draw(f, np.ones(3)), ad.draw((x * x).sum())]


def _face_training(n: int) -> list[Any]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    rate = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    seen: list[Any] = []
    model[0].register_forward_hook(lambda *given: seen.append(len(given)))
    model[0].weight.register_hook(lambda g: g * 1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        optimizer.step()
        rate.step()
    return [model, optimizer, rate, model[0].weight, loss]


def _face_graphs(n: int) -> list[Any]:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * n * ctx.saved_tensors[0]

    x = torch.ones(3, requires_grad=True)
    y = Scaled.apply(x)
    y.retain_grad()
    view = (y * 1)[0]
    view.mul_(2)
    checkpointed = checkpoint(lambda t: t.sin() * t, x, use_reentrant=False)
    (y.sum() + view + checkpointed.sum()).backward()
    return [x, y, view, checkpointed]


def _ruled(n: int) -> list[Any]:
    def scaled(x: Any) -> Any:
        return n * x

    f = primitive(scaled)
    defvjp(f, lambda ans, x: lambda g: f(g))
    defjvp(f, "same")
    grad(f)(1.0)
    return [f, scaled]


DROPPED = {"compile": _compiled, "compiled scan": _compiled_scan, "learner": _learner, "draw": _drawn,
           "face, training": _face_training, "face, graphs": _face_graphs, "autograd's rules": _ruled}  # fmt: skip
IN_CYCLES = {"compile", "compiled scan", "learner", "autograd's rules"}  # which the collector ends


@pytest.mark.parametrize("name", DROPPED)
def test_what_was_made_goes_with_its_last_reference(name: str) -> None:
    if name == "draw":
        pytest.importorskip("pygraphviz")
    DROPPED[name](0)  # imports, and makes what stays
    gc.collect()
    gc.disable()
    try:
        refs = [weakref.ref(x) for n in (1, 2) for x in DROPPED[name](n)]
        if name in IN_CYCLES:
            gc.collect()
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()


# --- classes --------------------------------------------------------------------------------------


def _module_class() -> type:
    class Line(ad.nn.Module):
        weight: Any
        parts: Any

        def __call__(self, x: Any) -> Any:
            return self.parts[0](x) * self.weight

    def loss(model: Line, x: Any) -> Any:
        return (model(x) ** 2).sum()

    x = np.ones((2, 3), np.float32)
    model = Line(ad.tensor(2.0), [ad.nn.Linear(3, 1), Line(ad.tensor(2.0), [])])
    ad.grad(loss)(model, x)
    ad.compile(ad.grad(loss))(model, x)
    ad.vmap(loss, in_axes=(None, 0))(model, x)
    ad.checkpoint(loss)(model, x)
    model.summary((2, 3))
    ad.nn.Sequential(model).freeze("*.weight").to_device(ad.NumPy()).train().valid()
    optimizer = ad.optim.Adam(lr=0.1)
    optimizer.step(model, ad.grad(loss)(model, x), optimizer.init(model))
    learner = ad.train.Learner(model, ad.nn.mse_loss, optimizer)
    learner.fit([(x, np.ones((2, 1), np.float32))])
    ad.tree.map(lambda x: x, {"a": [model]})
    repr(model)
    return Line


def _dataclass() -> type:
    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any
        name: str = dataclasses.field(default="", metadata={"static": True})

    ad.grad(lambda pair: (pair.x * pair.y["v"][0].x).sum())(Pair(np.ones(2), {"v": [Pair(1.0, 2.0)]}))
    ad.compile(lambda pair: pair.x * pair.y)(Pair(1.0, 2.0))
    return Pair


def _optimizer_class() -> type:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Mine(ad.optim.Optimizer):
        lr: float = 0.1

        def update(self, x: Any, g: Any, slots: Any, step: Any, lr: Any) -> Any:
            return x - lr * g, slots

    model = ad.nn.Linear(1, 1)
    optimizer = Mine(lr=0.5)
    optimizer.step(model, model, optimizer.init(model))
    return Mine


CLASSES = {"module": _module_class, "dataclass": _dataclass, "optimizer": _optimizer_class}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_goes_with_its_last_reference(name: str) -> None:
    CLASSES[name]()
    found = [weakref.ref(CLASSES[name]()) for _ in range(3)]
    gc.collect()
    assert [ref() for ref in found] == [None] * 3


@pytest.mark.filterwarnings("ignore:.* was recorded 8 times")
def test_compiled_functions_of_many_sizes_keep_some_programs() -> None:
    f = ad.compile(lambda x: (ad.sin(x) * x).sum(), dynamic=False)

    def run(sizes: range) -> int:
        for n in sizes:
            ad.grad(f)(np.ones(n))
        gc.collect()
        return sum([issubclass(type(x), (Replay, Backend)) for x in gc.get_objects()])

    before = run(range(2, KEPT + 4))
    assert run(range(KEPT + 4, KEPT + 14)) <= before


@pytest.mark.slow
@pytest.mark.parametrize("how", ["replay", ""], ids=["replay", "machine code"])
def test_compiled_functions_made_in_a_loop_leave_nothing(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """CPython keeps the names of files of code that is made while the program runs: 60 bytes each time."""
    monkeypatch.setenv("ADJOINT_COMPILE", how)

    def make() -> None:
        ad.compile(lambda x: (ad.sin(x) * x).sum())(np.ones(3))

    def kept(times: int) -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    kept(20)
    tracemalloc.start()
    try:
        kept(20)
        assert any(kept(300) < 20 * 300 for _ in range(4))  # what a call leaves, it leaves in each
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say how much memory is in use")
def test_machine_code_that_is_kept_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some stays for who compiles the same again, and what LLVM needed to make it does not."""
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", "")
    monkeypatch.setenv("ADJOINT_CACHE", "0")

    def kilobytes(start: int, times: int) -> float:
        for n in range(start, start + times):
            ad.compile(lambda x, n=n: x * (n + 0.625))(np.ones(3))
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE / 1024

    before = kilobytes(0, 25)  # after these LLVM's thread has the memory that it works in
    assert kilobytes(25, 20) - before < 20 * 150


def test_backward_passes_with_hooks_of_modules_keep_nothing() -> None:
    model = torch.nn.Linear(3, 1)
    model.register_full_backward_hook(lambda module, before, after: None)

    def run(steps: int) -> int:
        for _ in range(steps):
            model(torch.ones(2, 3, requires_grad=True)).sum().backward()
        gc.collect()
        return len(gc.get_objects())

    run(5)
    before = run(5)
    assert run(50) < before + 50
