"""What lies between two steps of Python's: kernels and products, launched one by one, or at once as a CUDA graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.cuda.plan import CudaPlan
from adjoint.compiler.cuda.preamble import PREAMBLE
from adjoint.compiler.cuda.products import Multiply, library
from adjoint.compiler.cuda.source import Launch, Source
from adjoint.compiler.graph import Graph, Value
from adjoint.compiler.native.blocks import shared_places
from adjoint.compiler.native.kernels import Kernel, Product, between_hosts, bytes_of
from adjoint.compiler.native.steps import joined
from adjoint.compiler.setting import setting
from adjoint.locks import lock

OPTIONS = ("-std=c++17", "--fmad=false")  # each product is rounded, as it is in CuPy's functions
_FEW = 3  # launches, from which on a graph of them is made
_COPIED = 1 << 24  # bytes that a graph is given and gives, at most: they are copied
_BYTE = np.dtype(np.uint8)


def wanted(base: Any) -> bool:
    """Whether there is to be CUDA source for a CuPy backend: of ROCm there is none."""
    cupy = base.cupy
    return hasattr(cupy, "RawModule") and not getattr(cupy.cuda.runtime, "is_hip", False) and setting() != "replay"


@functools.lru_cache(256)
def _module(raw_module: Any, text: str) -> Any:
    return raw_module(code=text, options=OPTIONS)


class Code:
    """The kernels of a program, compiled together."""

    def __init__(self, base: Any) -> None:
        self.base, self.segments = base, list[Segment]()
        self._functions: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return "\n".join([PREAMBLE, *[step.text for s in self.segments for step in s.steps if step.text], ""])

    def link(self) -> None:
        """Compile, and find the functions."""
        with self.base.device:
            names = [step.name for s in self.segments for step in s.steps if isinstance(step, Launch)]
            if names:
                module = _module(self.base.cupy.RawModule, self.text)
                self._functions = {name: module.get_function(name) for name in names}

    def function(self, name: str) -> Any:
        return self._functions[name]


class Segment:
    """Steps that need nothing of Python's: call it with the arrays of its inputs, and it gives those of its outputs."""

    inputs: list[Value]
    outputs: list[Any]

    def __init__(self, plan: CudaPlan, first: int, last: int, name: str, wanted: set[Any], code: Code) -> None:
        self.code, self.name = code, name
        self.steps: list[Any] = []
        self.kernels: list[str] = []
        for i, step in enumerate(plan.steps[first:last]):
            if isinstance(step, Kernel):
                made = Source(plan, step, f"{name}_{i}").launches
                names = ", ".join([e.name for e in step.equations])
                size = " x ".join(map(str, step.domain)) or "1"
                self.kernels.append(f"{name}_{i}: {size} in {len(made)} launches: {names}")
                self.steps += made
            elif isinstance(step, Product):
                self.steps.append(Multiply(step, [plan.root.get(x, x) for x in step.operands]))
                self.kernels.append(f"{name}_{i}: {' x '.join(map(str, step.out.shape))}: cuBLAS")
        made_here = list(dict.fromkeys(x for step in self.steps for x in self._written(step)))
        buffers = list(dict.fromkeys(x for step in self.steps for x in step.buffers if isinstance(x, Value)))
        self.outputs = [x for x in made_here if x in wanted]
        self.inputs = [x for x in buffers if x.const is None and x not in made_here]
        self._constants = {x: None for x in buffers if x.const is not None}
        self._places, self.memory = shared_places(self.steps, [x for x in made_here if x not in wanted])
        self._given: Sequence[Value] | None = None  # of the equation: also what other segments have begun
        self._graph: Captured | None = None
        self._calls, self._lock = 0, lock()

    def _written(self, step: Any) -> list[Value]:
        if isinstance(step, Multiply):
            return [step.out]
        return [x for i, x in enumerate(step.buffers) if isinstance(x, Value) and i in step.writes]

    def given(self, operands: Sequence[Any]) -> None:
        """The arrays that a call brings. Those that it also writes parts of are no new ones."""
        self._given = list(operands)
        self._begun = [x for x in operands if x in self.outputs]
        self.outputs = [x for x in self.outputs if x not in self._begun]
        moved = sum(map(bytes_of, [*self._given, *self.outputs]))
        self._fits = len(self.steps) >= _FEW and moved <= _COPIED and not self._begun

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        with self.code.base.device:
            if self._fits and self._calls > 0:  # the first call has had cuBLAS and modules made ready
                with self._lock:
                    if self._graph is None:
                        self._graph = self._captured()
                    if self._graph is not None:
                        return self._graph(arrays)
            self._calls += 1
            return self._one_by_one(arrays)

    # --- one by one ---

    def _one_by_one(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        assert self._given is not None
        cupy = self.code.base.cupy
        given = [_as_read(x, like) for x, like in zip(arrays, self._given, strict=True)]
        outs = [cupy.empty(tuple(x.shape), x.dtype) for x in self.outputs]
        found = dict(zip(map(id, (*self._given, *self.outputs)), (*given, *outs), strict=True))
        for run in self._runs(found):
            run()
        return tuple(outs)

    def _runs(self, found: dict[int, Any]) -> list[Callable[[], None]]:
        """What launches each step, on arrays by the identity of values; all others get memory here."""
        base = self.code.base
        cupy = base.cupy
        room = cupy.empty((self.memory,), _BYTE)
        for x in self._constants:
            if self._constants[x] is None:  # once; whatever stream runs later finds it there
                self._constants[x] = base.from_numpy(np.array(x.const, order="C"), copy=True)
                cupy.cuda.get_current_stream().synchronize()
            found[id(x)] = self._constants[x]
        runs: list[Callable[[], None]] = []
        for step in self.steps:
            arrays = []
            for x in step.buffers:
                if id(x) not in found:
                    count, dtype = (math.prod(x.shape), x.dtype) if isinstance(x, Value) else x
                    start = self._places[id(x)]
                    array = room[start : start + count * dtype.itemsize].view(dtype)
                    found[id(x)] = array.reshape(tuple(x.shape)) if isinstance(x, Value) else array
                arrays.append(found[id(x)])
            if isinstance(step, Launch):
                runs.append(functools.partial(self.code.function(step.name), step.grid, step.block, tuple(arrays)))
            else:
                run = step.by_cupy if library() is None else step.by_cublas
                runs.append(functools.partial(run, cupy, arrays))
        return runs

    # --- as a graph ---

    def _captured(self) -> Captured | None:
        assert self._given is not None
        if library() is None and any(isinstance(step, Multiply) for step in self.steps):
            self._fits = False
            return None
        try:
            return Captured(self.code.base.cupy, self._given, self.outputs, self._runs)
        except Exception:  # whatever this GPU or this version of CuPy does not record runs as before
            self._fits = False
            return None


class Captured:
    """Launches recorded once on memory of their own, which arguments are copied into and results out of."""

    def __init__(
        self,
        cupy: Any,
        given: Sequence[Value],
        outputs: Sequence[Value],
        runs: Callable[[dict[int, Any]], list[Callable[[], None]]],
    ) -> None:
        self.cupy = cupy
        self._inputs = [cupy.empty(tuple(x.shape), x.dtype) for x in given]
        self._outputs = [cupy.empty(tuple(x.shape), x.dtype) for x in outputs]
        found = dict(zip(map(id, (*given, *outputs)), (*self._inputs, *self._outputs), strict=True))
        self._runs = runs(found)  # which hold the memory between
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                for run in self._runs:
                    run()
            finally:
                self._graph = stream.end_capture()
        self._event = cupy.cuda.Event(disable_timing=True)
        self._stream: Any = cupy.cuda.get_current_stream()  # where the memory was last used
        self._event.record(self._stream)

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        stream = self.cupy.cuda.get_current_stream()
        if stream.ptr != self._stream.ptr:
            stream.wait_event(self._event)
            self._stream = stream
        for place, x in zip(self._inputs, arrays, strict=True):
            place[...] = x
        self._graph.launch(stream)
        found = tuple([x.copy() for x in self._outputs])
        self._event.record(stream)
        return found


def _as_read(x: Any, like: Value) -> Any:
    """An array as kernels read it: of this dtype, without gaps, aligned."""
    if x.dtype != like.dtype:
        x = x.astype(like.dtype)
    return x if x.flags.c_contiguous and not x.data.ptr % like.dtype.itemsize else x.copy(order="C")


def with_segments(graph: Graph, name: Callable[[], str], code: Code) -> Graph:
    """The graph with equations `segment` in the place of others. Views are made where CuPy reads them."""
    plan = CudaPlan(graph)

    def segments(wanted: set[Any]) -> dict[int, Segment]:
        return {
            steps.start: Segment(plan, steps.start, steps.stop, name(), wanted, code)
            for steps in between_hosts(plan.steps)
        }

    made, found = joined(plan, "segment", segments)
    code.segments += found.values()
    for e in made.equations:
        if e.name == "segment":
            e.parameters["region"].given(e.operands)
    return made
