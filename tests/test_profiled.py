"""`Profiled` counts exactly, and shows what it counted."""

from __future__ import annotations

import gc
import json
import sys
import threading
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import CASES
from conftest import joined
from each import Each
from observers import WrongRule, counts

import adjoint as ad
from adjoint import errors
from adjoint.backend import in_backward
from adjoint.decorators import observed
from adjoint.decorators.observed import Profile, Row, flops
from adjoint.primitives import TABLE

# --- exact counts ---


def test_a_known_program_is_counted_exactly() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((2, 3)), device=ad.Autodiff(p)).require_grad()
    w = ad.asarray(np.ones((3, 4)), device=x.device)
    for _ in range(3):
        y = (x @ w).tanh().sum()
    assert counts(p) == {
        ("matmul", "forward"): (3, 3 * 8 * (6 + 12 + 8), 3 * 2 * 2 * 3 * 4),
        ("tanh", "forward"): (3, 3 * 8 * (8 + 8), 3 * 8),
        ("sum", "forward"): (3, 3 * 8 * (8 + 1), 3 * 8),
    }
    p.reset()
    assert p.profile().rows == []
    y.backward()
    assert counts(p) == {
        ("broadcast_to", "backward"): (1, 8 * (1 + 8), 0),
        ("tanh_pullback", "backward"): (1, 8 * (8 + 8 + 8), 8),
        ("permute_dims", "backward"): (1, 8 * (12 + 12), 0),
        ("matmul", "backward"): (1, 8 * (8 + 12 + 6), 2 * 2 * 4 * 3),
    }


def test_forward_and_backward_are_told_apart() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones(5), device=ad.Autodiff(p)).require_grad()
    grads = (x * x).sum().backward()
    calls = {key: n for key, (n, _, _) in counts(p).items()}
    assert calls[("multiply", "forward")] == 1
    assert calls[("multiply", "backward")] == 1  # the same for both operands
    assert calls[("add", "backward")] == 1
    assert ("add", "forward") not in calls
    assert (grads[x] + 1).shape == (5,)
    assert counts(p)[("add", "forward")][0] == 1


def test_the_phase_ends_with_the_walk_and_is_of_its_thread() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.ones(2, device=p)

    def rule(B: Any, g: Any, out: Any) -> Any:
        thread = threading.Thread(target=x.sin)  # meanwhile, elsewhere
        thread.start()
        joined(thread)
        x.cos()
        raise ZeroDivisionError("on purpose")

    y = ad.exp(ad.ones(2, device=WrongRule(p, rule)).require_grad())
    with pytest.raises(errors.BackwardError, match="on purpose"):
        y.backward()
    assert not in_backward.get()
    x.tanh()
    phases = dict(counts(p).keys())
    assert (phases["sin"], phases["cos"], phases["tanh"]) == ("forward", "backward", "forward")


def test_inner_levels_are_counted_below() -> None:
    """Gradients of gradients: the upper pass records on the lower level, which runs on the profiled backend."""
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.array(0.5), device=p)
    assert ad.grad(ad.grad(ad.sin))(x).item() == -np.sin(0.5)
    assert counts(p)[("sin", "forward")] == (1, 16, 1)
    assert counts(p)[("cos", "backward")] == (1, 16, 1)
    assert counts(p)[("sin", "backward")] == (1, 16, 1)
    p.reset()
    ad.vmap(ad.sin)(ad.asarray(np.zeros((4, 3)), device=p))
    assert counts(p) == {("sin", "forward"): (1, 8 * 24, 12)}


def test_checkpointed_functions_are_counted() -> None:
    """They run on views of the levels, which count with what they are views of."""
    for inner in (ad.NumPy(), ad.Reference(digits=31)):  # of the second nothing else here has made a level
        p = ad.Profiled(ad.Autodiff(inner))
        ad.checkpoint(ad.sin)(ad.asarray(np.ones(2), device=p))
        assert counts(p)[("sin", "forward")] == (1, 32, 2)


def test_buffers_are_reused_unless_their_values_are_evidence() -> None:
    x = np.zeros(2)
    assert ad.Profiled(ad.NumPy()).index_set_into(x, 1.0, key=(0,)) is x
    assert ad.Checked(ad.NumPy()).index_set_into(x, ad.inf, key=(1,)).tolist() == [1.0, ad.inf]
    assert x.tolist() == [1.0, 0.0]


def test_assignments_are_counted() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.zeros(100), device=p)
    x[0] = 1.0
    p.reset()
    x[1] = 2.0
    x[2:4] = ad.asarray(np.ones(2), device=p)
    assert x.tolist()[:5] == [1.0, 2.0, 1.0, 1.0, 0.0]
    assert counts(p)[("index_set", "forward")][0] == 2


SIZES: list[tuple[str, list[tuple[int, ...]], tuple[int, ...], int]] = [
    ("exp", [(2, 3)], (2, 3), 6),
    ("add", [(2, 1), (3,)], (2, 3), 6),
    ("where", [(3,), (), (2, 3)], (2, 3), 6),
    ("sum", [(4, 5)], (), 20),
    ("softmax_cross_entropy_pullback", [(4,), (4, 5), (4,)], (4, 5), 20),
    ("matmul", [(2, 3), (3, 5)], (2, 5), 2 * 2 * 3 * 5),
    ("matmul", [(7, 1, 2, 3), (6, 3, 5)], (7, 6, 2, 5), 7 * 6 * 2 * 2 * 3 * 5),
    ("matmul", [(2, 0), (0, 5)], (2, 5), 0),
    ("linear", [(7, 2, 3), (5, 3), (5,)], (7, 2, 5), 7 * 2 * 5 * (2 * 3 + 1)),
    ("conv", [(8, 4, 9, 9), (6, 2, 3, 3)], (8, 6, 7, 7), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("conv_input", [(8, 6, 7, 7), (6, 2, 3, 3)], (8, 4, 9, 9), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("conv_weight", [(8, 4, 9, 9), (8, 6, 7, 7)], (6, 2, 3, 3), 2 * (8 * 6 * 7 * 7) * (2 * 3 * 3)),
    ("convolve", [(2, 9), (2, 4)], (2, 12), 2 * 2 * 9 * 4),
    ("convolve", [(2, 9), (2, 4)], (2, 6), 2 * 2 * 6 * 4),
    ("attention", [(2, 8, 3), (2, 5, 3), (2, 5, 4)], (2, 8, 4), 2 * (2 * 8 * 5) * (3 + 4)),
    ("attention_pullback", [(8, 4), (8, 3), (5, 3), (5, 4), (8, 4)], (8, 3), 2 * (8 * 5) * (3 + 4 + 3 + 3 + 4)),
    ("lstm", [(7, 2, 12), (12, 3), (2, 3), (2, 3)], (7, 2, 2, 3), 2 * (7 * 2) * 12 * 3),
    ("solve", [(5, 3, 3), (3, 2)], (5, 3, 2), 5 * 27),
    ("det", [(5, 3, 3)], (5,), 5 * 27),
    ("inv", [(0, 0)], (0, 0), 0),
    ("reshape", [(6,)], (2, 3), 0),
    ("index", [(6,)], (), 0),
    ("full", [], (2, 3), 0),
]


@pytest.mark.parametrize(("name", "operands", "result", "expected"), SIZES)
def test_operations_are_estimated_by_kind(
    name: str, operands: list[tuple[int, ...]], result: tuple[int, ...], expected: int
) -> None:
    assert flops(TABLE[name], operands, result, {}) == expected


def test_operations_of_fourier_transforms() -> None:
    assert flops(TABLE["fft"], [(3, 8, 4)], (3, 8, 4), {"axis": (1, 2)}) == 5 * 96 * (3 + 2)
    assert flops(TABLE["rfft"], [(3, 8)], (3, 5), {"axis": 1}) == 2.5 * 24 * 3
    assert flops(TABLE["hfft"], [(3, 5)], (3, 8), {"axis": 1}) == 2.5 * 24 * 3
    assert flops(TABLE["hfft"], [(3, 2)], (3, 2), {"axis": 1}) == 2.5 * 6
    p = ad.Profiled(ad.NumPy())
    ad.fft.fft(ad.fft.irfft(ad.fft.rfft(ad.ones(16, device=p), n=16), n=16))
    work = {row.primitive: row.flops for row in p.profile().rows}
    assert (work["rfft"], work["hfft"], work["fft"]) == (160, 160, 320)


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_is_counted(name: str) -> None:
    p = ad.Profiled(ad.NumPy())
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                p[TABLE[name]](*case.operands, **case.parameters)
    assert counts(p)[(name, "forward")][0] == len(CASES[name])


def test_threads_lose_no_counts() -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones(3), device=ad.Autodiff(p)).require_grad()

    def work() -> None:
        for _ in range(300):
            (x * x).sum().backward()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            joined(thread)
    finally:
        sys.setswitchinterval(before)
    assert counts(p)[("multiply", "forward")] == (2400, 2400 * 72, 2400 * 3)
    assert counts(p)[("multiply", "backward")] == (2400, 2400 * 72, 2400 * 3)


# --- who counts ---


def test_each_one_counts_for_itself() -> None:
    p, q = ad.Profiled(ad.NumPy()), ad.Profiled(ad.NumPy())
    assert p is not q
    ad.ones(2, device=p)
    assert (len(p.profile().rows), len(q.profile().rows)) == (1, 0)
    assert ad.Profiled(ad.NumPy(), p.number) is p
    ad.ones(2, device=p.over(ad.Reference())).sin()  # the same level elsewhere: they count together
    assert counts(p) == {("full", "forward"): (2, 16, 0), ("sin", "forward"): (1, 16, 2)}
    assert ad.Autodiff(p) is ad.Autodiff(p)
    assert ad.device(f"autodiff<{p.name}>") is ad.Autodiff(p)
    assert ad.device("profiled<numpy>") is ad.device("profiled<numpy>")  # so that tensors made by name meet
    assert ad.device("profiled<numpy>") is not ad.Profiled(ad.NumPy())
    for bad in (-1, 1.5, True, "x"):
        with pytest.raises(errors.ArgumentError, match="natural number"):
            ad.Profiled(ad.NumPy(), bad)  # type: ignore[arg-type]


def test_one_that_nobody_uses_goes() -> None:
    p = ad.Profiled(ad.NumPy())
    ad.ones(2, device=ad.Autodiff(p))
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None


# --- what it shows ---


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a microsecond later than the one before."""
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(observed, "time", types.SimpleNamespace(perf_counter_ns=lambda: next(ticks)))


def test_the_table(clock: None) -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((50, 100)), device=p)
    for _ in range(3):
        x.exp()
    y = x @ x.mT
    assert y.shape == (50, 50)
    assert [row.primitive for row in p.profile().rows] == ["exp", "permute_dims", "matmul"]
    assert p.profile().rows[0] == Row("exp", "forward", 3, 3e-6, 3 * 80000, 15000)
    table = """
primitive     phase      calls          ms  µs per call         MB  GFLOP/s
exp           forward        3       0.003          1.0      0.240     5.00
permute_dims  forward        1       0.001          1.0      0.080
matmul        forward        1       0.001          1.0      0.100   500.00
total                        5       0.005          1.0      0.420   103.00"""
    assert str(p.profile()) == repr(p.profile()) == table.strip()
    assert str(Profile([])).splitlines()[1].split() == ["total", "0", "0.000", "0.0", "0.000"]


def test_the_trace(clock: None, tmp_path: Path) -> None:
    p = ad.Profiled(ad.NumPy())
    x = ad.asarray(np.ones((2, 3), np.float32), device=ad.Autodiff(p)).require_grad()
    values, _ = ad.topk(x * 2.0, 1)
    values.sum().backward()
    p.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert set(trace) == {"traceEvents", "otherData"}
    assert trace["otherData"] == {"left out": 0}
    events = trace["traceEvents"]
    assert len(events) == sum(row.calls for row in p.profile().rows)
    for i, event in enumerate(events):
        assert set(event) == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
        assert event["ph"] == "X"
        assert event["cat"] in ("forward", "backward")
        assert (event["ts"], event["dur"]) == (2 * i, 1)
        assert 0 < event["pid"] < 2**32
        assert 0 < event["tid"] < 2**32  # what Perfetto reads
        assert len(event["args"]["shapes"]) == len(event["args"]["dtypes"])
    assert [event["name"] for event in events[:3]] == ["multiply", "topk", "sum"]
    assert events[1]["args"] == {
        "shapes": [[2, 3], [2, 1], [2, 1]],
        "dtypes": ["float32", "float32", "int64"],
        "bytes": 24 + 8 + 16,
        "flops": 0,
    }
    assert events[-1]["cat"] == "backward"


def test_a_trace_keeps_the_last_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observed, "EVENTS", 2)
    p = ad.Profiled(ad.NumPy())
    x = ad.ones(1, device=p)
    x.exp().sin().cos()
    p.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert [event["name"] for event in trace["traceEvents"]] == ["sin", "cos"]
    assert trace["otherData"] == {"left out": 2}
    assert sum(row.calls for row in p.profile().rows) == 4


def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    p = ad.Profiled(ad.NumPy())
    for path in (tmp_path / "no" / "trace.json", tmp_path, "a\0b"):
        with pytest.raises(errors.FileError, match="a folder that may be written to") as caught:
            p.trace(path)
        assert isinstance(caught.value, OSError)
    for bad in (None, 1):
        with pytest.raises(errors.ArgumentTypeError, match="path of a file"):
            p.trace(bad)  # type: ignore[arg-type]
