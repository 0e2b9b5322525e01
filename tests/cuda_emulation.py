"""CUDA on a processor: kernels compiled by g++, and what adjoint calls of CuPy to run them.

A block's threads are fibres, which take turns at `__syncthreads()`. Arrays know their sizes, and a kernel that reads or
writes beside one stops with an error. Launches that a stream captures are recorded with addresses, and run with these
when the graph is launched, so a graph that holds an array which is gone is an error too.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import processes

HEADER = r"""
#include <math.h>
#include <string.h>
#include <stdio.h>
#define __global__
#define __device__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(n)
struct Dim { unsigned x, y, z; };
static Dim threadIdx, blockIdx, blockDim, gridDim;
static char emulated_error[200];
static inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
static inline int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
static inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }

#define ADJOINT_ARRAY
template <class T> struct Array {
  T* data; long long size;
  T& operator[](long long i) const {
    if (i < 0 || i >= size) {
      if (!emulated_error[0]) snprintf(emulated_error, 200, "element %lld of %lld", i, size);
      return data[0];
    }
    return data[i];
  }
};

// Fibres: a context is the stack pointer, with the registers that a called function must keep on the stack.
static const int EMULATED_THREADS = 1024, EMULATED_STACK = 32768;
extern "C" void emulated_switch(void** from, void* to);
asm(".text\n.globl emulated_switch\n.type emulated_switch,@function\nemulated_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
static void *emulated_main, *emulated_fibres[EMULATED_THREADS];
alignas(16) static char emulated_stacks[EMULATED_THREADS][EMULATED_STACK];
static bool emulated_ended[EMULATED_THREADS];
static int emulated_now;
static void (*emulated_body)(void**, long long*);
static void** emulated_data;
static long long* emulated_sizes;
static void __syncthreads() { emulated_switch(&emulated_fibres[emulated_now], emulated_main); }
static void emulated_fibre() {
  emulated_body(emulated_data, emulated_sizes);
  emulated_ended[emulated_now] = true;
  __syncthreads();
}
static void emulated_thread(int t) {
  emulated_now = t;
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}
extern "C" const char* emulated_run(void (*body)(void**, long long*), bool waits, const unsigned* grid,
                                    const unsigned* block, void** data, long long* sizes) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  emulated_body = body; emulated_data = data; emulated_sizes = sizes; emulated_error[0] = 0;
  const int count = block[0] * block[1] * block[2];
  for (unsigned z = 0; z < grid[2]; ++z) for (unsigned y = 0; y < grid[1]; ++y) for (unsigned x = 0; x < grid[0]; ++x) {
    blockIdx = {x, y, z};
    if (!waits) {
      for (int t = count - 1; t >= 0; --t) { emulated_thread(t); body(data, sizes); }
      continue;
    }
    for (int t = 0; t < count; ++t) {
      void** top = (void**)(emulated_stacks[t] + EMULATED_STACK) - 2;
      *top = (void*)emulated_fibre;  // where the first switch returns to
      emulated_fibres[t] = top - 6;
      emulated_ended[t] = false;
    }
    for (bool odd = false, goes = true; goes; odd = !odd) {
      goes = false;
      int at_barrier = 0;
      for (int k = 0; k < count; ++k) {
        const int t = odd ? count - 1 - k : k;  // in either order, so that what lacks a barrier shows
        if (emulated_ended[t]) continue;
        emulated_thread(t);
        emulated_switch(&emulated_main, emulated_fibres[t]);
        at_barrier += !emulated_ended[t];
        goes = goes || !emulated_ended[t];
      }
      if (at_barrier && at_barrier != count) {
        snprintf(emulated_error, 200, "a barrier that not all reach");
        return emulated_error;
      }
    }
  }
  return emulated_error;
}
"""
_HEAD = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\)')


class KernelError(AssertionError):
    """A kernel does what a GPU would not forgive."""


@functools.cache
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="adjoint-cuda-"))
    weakref.finalize(folder, shutil.rmtree, made, ignore_errors=True)
    return made


@functools.lru_cache(512)
def library(code: str) -> Any:
    """The source compiled by g++."""
    lines = [HEADER, code]
    for name, parameters in _HEAD.findall(code):
        types = [re.sub(r" \w+$", "", p.strip()) for p in parameters.split(",")] if parameters else []
        arguments = ", ".join(f"{t}{{({t[6:-1]}*)p[{i}], n[{i}]}}" for i, t in enumerate(types))
        lines.append(f'extern "C" void emulated_{name}(void** p, long long* n) {{ {name}({arguments}); }}')
    path = folder() / hashlib.sha256(code.encode()).hexdigest()[:20]
    path.with_suffix(".cpp").write_text("\n".join(lines))
    command = ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w", "-o", f"{path}.so"]
    done = processes.run([*command, str(path.with_suffix(".cpp"))], check=False)
    if done.returncode:
        raise KernelError(done.stderr)
    found = ctypes.CDLL(f"{path}.so")
    found.emulated_run.restype = ctypes.c_char_p
    return found


class Raw:
    """Memory by address, as a kernel has it: it keeps no array alive, but knows whether it is."""

    def __init__(self, x: Any) -> None:
        assert isinstance(x, np.ndarray)
        owner: Any = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self.address, self.count = x.ctypes.data, x.size
        self._alive = weakref.ref(owner)

    def __call__(self) -> int:
        if self._alive() is None:
            raise KernelError("a launch refers to an array that is gone")
        return self.address


class Emulation:
    """The state of a device: what is captured at the moment, and what has been launched."""

    def __init__(self) -> None:
        self.recording: list[Any] | None = None
        self.launched: list[str] = []
        self.modules: list[str] = []
        self.graphs = 0
        self.streams = 1
        self.callbacks: list[Any] = []

    def do(self, run: Any) -> None:
        if self.recording is None:
            run()
        else:
            self.recording.append(run)

    def raw_module(self, *, code: str, options: tuple[str, ...]) -> Any:
        assert isinstance(options, tuple)
        self.modules.append(code)
        emulation = self

        class Module:
            def get_function(self, name: str) -> Any:
                return functools.partial(emulation.launch, library(code), code, name)

        return Module()

    def launch(self, made: Any, code: str, name: str, grid: Any, block: Any, arguments: Any) -> None:
        sizes = [*grid, 1, 1][:3], [*block, 1, 1][:3]
        assert np.prod(sizes[1]) <= 1024
        assert all(x.flags.c_contiguous for x in arguments)
        body = re.search(rf"\b{name}\([^)]*\) \{{(.*?)\n\}}", code, re.DOTALL)
        waits = "adjoint_joined" in body.group(1)  # type: ignore[union-attr]
        self.do(functools.partial(self._run, made, name, sizes, waits, [Raw(x) for x in arguments]))

    def _run(self, made: Any, name: str, sizes: Any, waits: bool, raws: list[Raw]) -> None:
        n = len(raws)
        data = (ctypes.c_void_p * n)(*[raw() for raw in raws])
        counts = (ctypes.c_longlong * n)(*[raw.count for raw in raws])
        grid, block = [(ctypes.c_uint * 3)(*s) for s in sizes]
        body = getattr(made, f"emulated_{name}")
        error = made.emulated_run(ctypes.cast(body, ctypes.c_void_p), ctypes.c_bool(waits), grid, block, data, counts)
        self.launched.append(name)
        if error:
            raise KernelError(f"{name}: {error.decode()}")

    # --- cuBLAS, column by column as its manual says ---

    def gemm(self, dtype: Any) -> Any:
        def run(handle: Any, op_a: int, op_b: int, m: int, n: int, k: int, alpha: Any, *more: Any) -> int:
            a, lda, to_a, b, ldb, to_b, beta, c, ldc, to_c, count = more
            assert (alpha.value, beta.value) == (1.0, 0.0)
            assert lda >= max(1, k if op_a else m)
            assert ldb >= max(1, n if op_b else k)
            assert ldc >= m

            def columns(address: int, rows: int, columns: int, distance: int) -> Any:
                item = np.dtype(dtype).itemsize
                size = (columns - 1) * distance + rows
                buffer = (ctypes.c_char * (size * item)).from_address(address)
                flat = np.frombuffer(buffer, dtype)
                return np.lib.stride_tricks.as_strided(flat, (rows, columns), (item, distance * item))

            def multiply() -> None:
                item = np.dtype(dtype).itemsize
                for i in range(count):
                    x = columns(a + i * to_a * item, *((k, m) if op_a else (m, k)), lda)
                    y = columns(b + i * to_b * item, *((n, k) if op_b else (k, n)), ldb)
                    out = columns(c + i * to_c * item, m, n, ldc)
                    out[...] = (x.T if op_a else x) @ (y.T if op_b else y)
                self.launched.append("gemm")

            self.do(multiply)
            return 0

        return run


def cuda_of(emulation: Emulation, **more: Any) -> dict[str, Any]:
    """Streams, events and graphs, as attributes of `cupy.cuda`."""
    stack: list[Any] = []

    class Stream:
        def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
            self.ptr = 0 if null else emulation.streams
            emulation.streams += not null
            self.waits: list[Any] = []

        def __enter__(self) -> Any:
            stack.append(self)
            return self

        def __exit__(self, *error: Any) -> None:
            stack.pop()

        def begin_capture(self) -> None:
            assert self.ptr, "the default stream cannot capture"
            assert emulation.recording is None
            emulation.recording = []

        def end_capture(self) -> Any:
            found, emulation.recording = emulation.recording, None
            assert found is not None
            return Graph(found)

        def wait_event(self, event: Any) -> None:
            self.waits.append(event)

        def synchronize(self) -> None:
            assert emulation.recording is None, "while a stream captures nothing is waited for"

    class Graph:
        def __init__(self, runs: list[Any]) -> None:
            self._runs = runs

        def launch(self, stream: Any = None) -> None:
            emulation.graphs += 1
            for run in self._runs:
                run()

    class Event:
        def __init__(self, *, disable_timing: bool = False) -> None:
            self.on: Any = None

        def record(self, stream: Any = None) -> None:
            self.on = stream

    default = Stream(null=True)
    return {"Stream": Stream, "Event": Event, "get_current_stream": lambda: stack[-1] if stack else default, **more}


BLAS = """
typedef int (*Gemm)(void*, int, int, int, int, int, void*, void*, int, long long, void*, int, long long, void*, void*,
                    int, long long, int);
static Gemm single, both;
extern "C" void emulated_gemm(Gemm s, Gemm d) { single = s; both = d; }
extern "C" int cublasSetStream_v2(void*, void*) { return 0; }
#define ADJOINT_GEMM(name, to) extern "C" int name(void* h, int p, int q, int m, int n, int k, void* one, void* a, \\
  int lda, long long sa, void* b, int ldb, long long sb, void* zero, void* c, int ldc, long long sc, int count) { \\
  return to(h, p, q, m, n, k, one, a, lda, sa, b, ldb, sb, zero, c, ldc, sc, count); }
ADJOINT_GEMM(cublasSgemmStridedBatched, single)
ADJOINT_GEMM(cublasDgemmStridedBatched, both)
"""


@functools.cache
def blas() -> Any:
    """A library of cuBLAS's functions, which call those that it is given."""
    source = folder() / "blas.cpp"
    source.write_text(BLAS)
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", str(folder() / "blas.so"), str(source)]
    processes.run(command)
    return ctypes.CDLL(str(folder() / "blas.so"))


def gemm_of(emulation: Emulation, dtype: Any) -> Any:
    """A product as C calls it."""
    number = ctypes.c_float if np.dtype(dtype).itemsize == 4 else ctypes.c_double
    pointer, whole, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    array, scalar = [pointer, whole, long], ctypes.POINTER(number)
    kind = ctypes.CFUNCTYPE(whole, pointer, *[whole] * 5, scalar, *array, *array, scalar, *array, whole)
    run = emulation.gemm(dtype)
    return kind(lambda *xs: run(*[x.contents if isinstance(x, scalar) else x for x in xs]))


def install(emulation: Emulation, cupy: Any, monkeypatch: Any) -> None:
    """Have a stand-in for CuPy compile and launch kernels, and call cuBLAS."""
    cupy.RawModule = emulation.raw_module
    more = {"device": SimpleNamespace(get_cublas_handle=lambda: 1)}
    for name, value in cuda_of(emulation, **more).items():
        setattr(cupy.cuda, name, value)
    emulation.callbacks = [gemm_of(emulation, np.float32), gemm_of(emulation, np.float64)]
    blas().emulated_gemm(*emulation.callbacks)
    module = SimpleNamespace(__file__=str(folder() / "blas.so"))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.cublas", module)


# --- NVIDIA's compilers, which need no GPU ---------------------------------------------------------

Compiler = Callable[[str, tuple[str, ...]], str]


@functools.cache
def nvidia() -> Compiler | None:
    """What compiles source and gives the errors in it: by NVRTC, which is what CuPy calls, or else by nvcc."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(place).glob("*/lib/libnvrtc.so.*")):
            return functools.partial(_by_nvrtc, ctypes.CDLL(str(path)))
    return _by_nvcc if shutil.which("nvcc") else None


def _by_nvrtc(nvrtc: Any, code: str, options: tuple[str, ...]) -> str:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"adjoint.cu", 0, None, None) == 0
    given = [option.encode() for option in (*options, "--gpu-architecture=compute_80")]
    status = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if status else ""


def _by_nvcc(code: str, options: tuple[str, ...]) -> str:
    path = folder() / "nvidia.cu"
    path.write_text(code)
    command = ["nvcc", "-ptx", "-arch=compute_80", *options, "-o", str(path.with_suffix(".ptx")), str(path)]
    done = processes.run(command, check=False)
    return done.stderr if done.returncode else ""
