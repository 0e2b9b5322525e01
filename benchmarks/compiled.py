"""`python -m benchmarks.compiled [words ...]`: compiled functions beside `jax.jit`, PyTorch and `torch.compile`.

Each program is written once, over the functions that the libraries share. All libraries take turns in one process; a
process with one thread has one processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import Case, Run, normal
from benchmarks.harness import times

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
START, END = "<!-- compiled -->", "<!-- end of compiled -->"
MEMORY, MEMORY_END = "<!-- memory -->", "<!-- end of memory -->"
# of JAX's machine code: memory is the same, and unrolled chains compile in half the time
UNOPTIMIZED = {"xla_backend_optimization_level": "0"}
RATE = 0.01
OURS, PEERS = "adjoint", ("JAX jit", "PyTorch", "torch.compile")
Function = Callable[..., Any]


class Library(NamedTuple):
    """What programs are written in."""

    xp: Any
    vmap: Function  # vmap(f, in_axes)
    grad: Function
    hessian: Function
    scan: Function  # scan(f, init, xs, length): the last carry
    log_softmax: Function  # along the last axis
    softmax: Function
    relu: Function
    sigmoid: Function
    erf: Function
    gelu: Function
    layer_norm: Function  # layer_norm(x, weight, bias), along the last axis
    conv: Function  # conv(x, w, groups): a size of 3 x 3 with a border of one
    pool: Function  # the largest of 2 x 2
    lstm: Function  # lstm(x, weights): all outputs


class Program(NamedTuple):
    """What is timed: a function of values, or its gradient by the first of them."""

    name: str
    f: Callable[[Library], Function]
    values: Sequence[Any]
    parameters: int = 0  # how many of the values it is differentiated by; 0: the function is timed as it is
    step: bool = False  # of gradient descent
    bounds: tuple[float | None, float | None] = (None, None)  # of ours / the best, with 1 thread and 2
    unrolled: bool = False  # a loop that torch.compile would take minutes for
    repeats: int = 40


# --- libraries ---


def _lstm(lib: Library, x: Any, weights: Any) -> Any:
    wi, wh, bi, bh = weights
    n = wh.shape[1]

    def step(carry: Any, gates: Any) -> Any:
        h, c, *_ = carry
        z = gates + h @ wh.T
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.xp.tanh(g)
        h = lib.sigmoid(o) * lib.xp.tanh(c)
        return (h, c), h

    zero = lib.xp.zeros((x.shape[1], n), dtype=x.dtype)
    return lib.scan(step, (zero, zero), x @ wi.T + (bi + bh), None)[1]


def adjoint() -> Library:
    import adjoint as ad

    made = Library(
        ad,
        ad.vmap,
        ad.grad,
        ad.hessian,
        lambda f, init, xs, length: ad.scan(f, init, xs, length=length),
        partial(ad.nn.log_softmax, axis=-1),
        partial(ad.nn.softmax, axis=-1),
        ad.nn.relu,
        ad.nn.sigmoid,
        ad.special.erf,
        ad.nn.gelu,
        lambda x, w, b: ad.nn.layer_norm(x, x.shape[-1:], w, b),
        lambda x, w, groups=1, stride=1: ad.nn.conv2d(x, w, stride=stride, padding=1, groups=groups),
        lambda x: ad.nn.max_pool2d(x, 2),
        lambda x, weights: _lstm(made, x, weights),
    )
    return made


def jax() -> Library:
    import jax
    import jax.numpy as jnp

    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        t = x - x.mean(-1, keepdims=True)
        return t * jax.lax.rsqrt((t * t).mean(-1, keepdims=True) + 1e-5) * w + b

    def conv(x: Any, w: Any, groups: int = 1, stride: int = 1) -> Any:
        borders = [(1, 1), (1, 1)]
        return jax.lax.conv_general_dilated(x, w, (stride, stride), borders, feature_group_count=groups)

    made = Library(
        jnp,
        jax.vmap,
        jax.grad,
        jax.hessian,
        lambda f, init, xs, length: jax.lax.scan(f, init, xs, length=length),
        jax.nn.log_softmax,
        jax.nn.softmax,
        jax.nn.relu,
        jax.nn.sigmoid,
        jax.scipy.special.erf,
        partial(jax.nn.gelu, approximate=False),
        layer_norm,
        conv,
        lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        lambda x, weights: _lstm(made, x, weights),
    )
    return made


def torch() -> Library:
    import torch as t

    F = t.nn.functional

    def scan(f: Function, init: Any, xs: Any, length: int | None) -> Any:
        carry = init
        for k in range(len(xs) if length is None else length):
            carry, _ = f(carry, None if xs is None else xs[k])
        return carry, None

    def lstm(x: Any, weights: Any) -> Any:
        zero = t.zeros((1, x.shape[1], weights[1].shape[1]))
        return t.lstm(x, (zero, zero), weights, True, 1, 0.0, False, False, False)[0]

    return Library(
        t,
        lambda f, in_axes: t.func.vmap(f, in_dims=in_axes),
        t.func.grad,
        t.func.hessian,
        scan,
        partial(t.log_softmax, dim=-1),
        partial(t.softmax, dim=-1),
        t.relu,
        t.sigmoid,
        t.erf,
        F.gelu,
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
        lambda x, w, groups=1, stride=1: F.conv2d(x, w, stride=stride, padding=1, groups=groups),
        lambda x: F.max_pool2d(x, 2),
        lstm,
    )


# --- programs ---


def _links(_: Library) -> Function:
    def f(x: Any, w: Any) -> Any:
        for _ in range(250):
            x = x * w
            x = x + w
            x = x * w
            x = x - w
        return x.sum()

    return f


def _expression(lib: Library) -> Function:
    xp = lib.xp
    return lambda a, b: ((xp.tanh(a * b) + lib.sigmoid(a)) * xp.exp(-b * b)).sum()


def _dense(lib: Library) -> Function:
    """Cross entropy of layers with relu between them; labels are one-hot."""

    def f(*values: Any) -> Any:
        *p, x, y = values
        for i in range(0, len(p) - 2, 2):
            x = lib.relu(x @ p[i] + p[i + 1])
        return -(lib.log_softmax(x @ p[-2] + p[-1]) * y).sum() / len(y)

    return f


def _layers(*sizes: int, batch: int) -> list[Any]:
    rng = np.random.default_rng(1)
    found: list[Any] = []
    for n, m in zip(sizes, sizes[1:], strict=False):
        found += [(rng.standard_normal((n, m)) / n**0.5).astype(np.float32), np.zeros(m, np.float32)]
    return [*found, *normal((batch, sizes[0])), _labels(batch, sizes[-1])]


def _labels(count: int, classes: int) -> Any:
    return np.eye(classes, dtype=np.float32)[np.random.default_rng(2).integers(0, classes, count)]


def _per_example(lib: Library) -> Function:
    def loss(p: Any, x: Any, y: Any) -> Any:
        return -(lib.log_softmax(lib.xp.tanh(x @ p[0] + p[1]) @ p[2] + p[3]) * y).sum()

    each = lib.vmap(lib.grad(loss), (None, 0, 0))
    return lambda *values: each(values[:4], *values[4:])


def _normed(lib: Library) -> Function:
    return lambda x, w, b: (lib.layer_norm(x, w, b) ** 2).sum()


def _energy(lib: Library) -> Function:
    """Of points that repel each other."""

    def f(x: Any) -> Any:
        apart = x[:, None] - x[None]
        return (1 / lib.xp.sqrt((apart * apart).sum(-1) + 0.1)).sum()

    return f


def _attention(lib: Library) -> Function:
    def f(q: Any, k: Any, v: Any) -> Any:
        return ((lib.softmax(q @ k.mT * q.shape[-1] ** -0.5) @ v) ** 2).sum()

    return f


def _logistic(lib: Library) -> Function:
    def loss(w: Any, x: Any, y: Any) -> Any:
        z = x @ w
        return lib.xp.log1p(lib.xp.exp(z)).sum() - (z * y).sum() + 0.5 * (w * w).sum()

    return lib.hessian(loss)


def _lorenz(lib: Library) -> Function:
    """E. Lorenz, Deterministic nonperiodic flow (1963); a hundred classical Runge-Kutta steps."""

    def f(p: Any, start: Any) -> Any:
        def slope(y: Any) -> Any:
            a, b, c = y[0], y[1], y[2]
            return lib.xp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])

        def step(y: Any, _: Any, h: float = 0.01) -> Any:
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        end = lib.scan(step, start, None, 100)[0]
        return (end * end).sum()

    return f


def _recurrent(lib: Library) -> Function:
    def f(u: Any, v: Any, o: Any, xs: Any, start: Any) -> Any:
        h = lib.scan(lambda h, x: (lib.xp.tanh(h @ u + x @ v), None), start, xs, None)[0]
        return ((h @ o) ** 2).sum()

    return f


def _fitted(lib: Library) -> Function:
    return lambda wi, wh, bi, bh, x, y: ((lib.lstm(x, [wi, wh, bi, bh]) - y) ** 2).mean()


def _images(lib: Library) -> Function:
    def f(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
        x = lib.pool(lib.relu(lib.conv(x, w1) + b1))
        x = lib.pool(lib.relu(lib.conv(x, w2) + b2))
        return -(lib.log_softmax(x.reshape((len(x), -1)) @ w3 + b3) * y).sum() / len(y)

    return f


def _strided(lib: Library) -> Function:
    """Layers that halve the sizes of images, as residual networks have."""

    def f(w1: Any, w2: Any, w3: Any, w4: Any, x: Any, y: Any) -> Any:
        x = lib.relu(lib.conv(x, w1))
        x = lib.relu(lib.conv(x, w2, stride=2))
        x = lib.relu(lib.conv(x, w3, stride=2))
        x = x.reshape((*x.shape[:2], -1)).mean(2)
        return -(lib.log_softmax(x @ w4) * y).sum() / len(y)

    return f


_STRIDED = [x / 6 for x in normal((16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (64, 10))]


def _depthwise(lib: Library) -> Function:
    return lambda x, w: (lib.conv(x, w, groups=x.shape[1]) ** 2).sum()


_LAYERS, _WIDTH, _LETTERS, _TOKENS, _HEADS = 4, 128, 96, (8, 128), 4


def _transformer(lib: Library) -> Function:
    """What the next letter is: layer norms before attention and before two dense layers."""

    def heads(x: Any) -> Any:
        return x.reshape((*x.shape[:2], _HEADS, -1)).swapaxes(1, 2)

    def f(*values: Any) -> Any:
        *p, x, y, mask = values
        h = p[0][x]
        for k in range(_LAYERS):
            g1, b1, q, w, g2, b2, m1, c1, m2, c2 = p[1 + 10 * k : 11 + 10 * k]
            z = lib.layer_norm(h, g1, b1) @ q
            a, b, c = (heads(z[..., i * _WIDTH : (i + 1) * _WIDTH]) for i in range(3))
            out = lib.softmax(a @ b.mT * (_WIDTH // _HEADS) ** -0.5 + mask) @ c
            h = h + out.swapaxes(1, 2).reshape(h.shape) @ w
            h = h + lib.relu(lib.layer_norm(h, g2, b2) @ m1 + c1) @ m2 + c2
        return -(lib.log_softmax(h @ p[-1]) * y).sum() / (y.shape[0] * y.shape[1])

    return f


def _letters() -> list[Any]:
    w, ones, zeros = _WIDTH, partial(np.ones, dtype=np.float32), partial(np.zeros, dtype=np.float32)
    rng = np.random.default_rng(3)

    def random(*shape: int) -> Any:
        return (rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)

    layer = [ones(w), zeros(w), random(w, 3 * w), random(w, w), ones(w), zeros(w)]
    layer += [random(w, 4 * w), zeros(4 * w), random(4 * w, w), zeros(w)]
    mask = np.triu(np.full((_TOKENS[1], _TOKENS[1]), -1e9, np.float32), 1)
    x = rng.integers(0, _LETTERS, _TOKENS)
    y = _labels(x.size, _LETTERS).reshape((*_TOKENS, -1))
    return [random(_LETTERS, w) * np.float32(10), *layer * _LAYERS, random(w, _LETTERS), x, y, mask]


def _cancer() -> list[Any]:
    from sklearn.datasets import load_breast_cancer

    data, target = load_breast_cancer(return_X_y=True)
    scaled = (data - data.mean(0)) / data.std(0)
    return [np.zeros(30, np.float32), scaled.astype(np.float32), target.astype(np.float32)]


def _small(*shapes: tuple[int, ...]) -> list[Any]:
    return [x * np.float32(0.1) for x in normal(*shapes)]


def _near_one(*shapes: tuple[int, ...]) -> list[Any]:
    return [np.abs(x) * np.float32(0.1) + np.float32(0.9) for x in normal(*shapes)]


MILLION = (1_000_000,)
_CONV = [*_small((16, 1, 3, 3), (16, 1, 1), (32, 16, 3, 3), (32, 1, 1), (1568, 10), (10,))]
PROGRAMS = [
    Program("chain of 1,000", _links, _near_one((16,), (16,)), 2, bounds=(0.5, 0.5), unrolled=True),
    Program("100 chains of 1,000", _links, _near_one((100, 16), (16,)), 2, bounds=(0.3, 0.3), unrolled=True),
    Program("expression of 1,000,000", _expression, normal(MILLION, MILLION), 2, bounds=(0.35, 0.35)),
    Program("MLP 784-256-256-10, SGD step", _dense, _layers(784, 256, 256, 10, batch=128), 6, True, (0.85, 0.7)),
    Program("MLP 64-32-10, SGD step", _dense, _layers(64, 32, 10, batch=32), 4, True, (0.35, 0.35)),
    Program("layer_norm, 1024 x 512", _normed, normal((1024, 512), (512,), (512,)), 3, bounds=(0.35, 0.35)),
    Program("energy of 1,000 points in space", _energy, normal((1000, 3)), 1),
    Program("attention, 8 x 4 x 128 x 32", _attention, normal(*[(8, 4, 128, 32)] * 3), 3, bounds=(0.6, 0.6)),
    Program("Hessian of logistic regression", _logistic, _cancer(), bounds=(0.55, 0.55)),
    Program(
        "Lorenz's equations, 100 steps",
        _lorenz,
        [np.array([10, 28, 8 / 3], np.float32), np.ones(3, np.float32)],
        1,
        bounds=(0.3, 0.3),
        unrolled=True,
    ),
    Program(
        "recurrent network, 100 steps",
        _recurrent,
        _small((32, 32), (8, 32), (32, 4), (100, 16, 8), (16, 32)),
        3,
        bounds=(0.4, 0.4),
        unrolled=True,
    ),
    Program(
        "LSTM of 64, 100 steps, SGD step",
        _fitted,
        _small((256, 64), (256, 64), (256,), (256,), (100, 32, 64), (100, 32, 64)),
        4,
        True,
        (1.0, 1.0),
        unrolled=True,
        repeats=15,
    ),
    Program("conv net, SGD step", _images, [*_CONV, *normal((64, 1, 28, 28)), _labels(64, 10)], 6, True, (0.95, 0.95)),
    *[
        Program(
            f"convolutions with strides, {n} images",
            _strided,
            [*_STRIDED, *normal((n, 3, 32, 32)), _labels(n, 10)],
            4,
            True,
        )
        for n in (8, 32)
    ],
    Program("depthwise convolution", _depthwise, normal((16, 32, 28, 28), (32, 1, 3, 3)), 2, bounds=(0.8, 0.8)),
    Program(
        "transformer of 4 x 128, SGD step", _transformer, _letters(), 2 + 10 * _LAYERS, True, (0.75, 0.75), repeats=15
    ),
    Program("per-example gradients", _per_example, _layers(64, 128, 10, batch=64), bounds=(0.5, 0.5)),
    Program("erf of 1,000,000", lambda lib: lib.erf, normal(MILLION), bounds=(0.5, 0.5)),
    Program("gelu of 1,000,000", lambda lib: lib.gelu, normal(MILLION), bounds=(0.5, 0.5)),
]


# --- runs ---


def whole(program: Program, f: Function, value_and_grad: Function) -> Function:
    """What is compiled: the function, its value and gradients, or a step along them."""
    n = program.parameters
    if not n:
        return f
    gradients = value_and_grad(f, tuple(range(n)))

    def run(*values: Any) -> Any:
        value, found = gradients(*values)
        return value, [p - RATE * g for p, g in zip(values, found, strict=False)] if program.step else found

    return run


def ours(program: Program) -> tuple[Any, list[Any]]:
    """The compiled function and its arguments."""
    import adjoint as ad

    f = ad.compile(whole(program, program.f(adjoint()), ad.value_and_grad))
    return f, [ad.tensor(x) for x in program.values]


def _ours(program: Program) -> Run:
    f, values = ours(program)
    return lambda: f(*values)


def _jax(program: Program) -> tuple[Any, list[Any]]:
    import jax as library

    f = library.jit(whole(program, program.f(jax()), library.value_and_grad))
    return f, [library.numpy.asarray(x) for x in program.values]


def _jitted(program: Program) -> Run:
    import jax as library

    f, values = _jax(program)
    return lambda: library.block_until_ready(f(*values))  # type: ignore[no-untyped-call]


def _of_torch(program: Program, compiled: bool) -> Run:
    """As users of PyTorch write it: `backward`, and updates in place."""
    import torch as t

    f: Function = program.f(torch())
    if compiled:
        f = t.compile(f)
    values = [t.tensor(x) for x in program.values]
    parameters = [x.requires_grad_() for x in values[: program.parameters]]

    def run() -> Any:
        value = f(*values)
        if parameters:
            value.backward()
        with t.no_grad():
            for p in parameters:
                if program.step:
                    p -= RATE * p.grad
                p.grad = None

    return run


def case(program: Program, threads: int) -> Case:
    make: dict[str, Callable[[], Run]] = {
        OURS: partial(_ours, program),
        "JAX jit": partial(_jitted, program),
        "PyTorch": partial(_of_torch, program, False),
    }
    if not program.unrolled:
        make["torch.compile"] = partial(_of_torch, program, True)
    return Case(program.name, make, threads=threads, repeats=program.repeats)


def _measured(programs: Sequence[Program], threads: int) -> list[dict[str, float]]:
    """The medians of each, in a process that has so many processors."""
    words = [sys.executable, "-m", "benchmarks.compiled", "--threads", str(threads), *[p.name for p in programs]]
    how = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    found: list[dict[str, float]] = json.loads(
        subprocess.run(words, check=True, stdout=subprocess.PIPE, env=how).stdout.splitlines()[-1]
    )
    return found


def _cells(program: Program, threads: int, seconds: dict[str, float]) -> list[str]:
    ours, bound = seconds[OURS], program.bounds[threads - 1]
    ratio = ours / min(seconds[peer] for peer in PEERS if peer in seconds)
    goal = f"{ratio:.2f}" if bound is None else f"{ratio:.2f} [{bound:g}]" + (" missed" if ratio > bound else "")
    ratios = [_ratio(ours / seconds[peer]) if peer in seconds else "-" for peer in PEERS]
    return [program.name, str(threads), f"{ours * 1e3:.3g} ms", *ratios, goal]


def _memory(programs: Sequence[Program]) -> str:
    """Bytes of intermediate results: our one piece of memory, and what JAX's compiler reports as temporary."""
    rows = [["compiled", "ours, bytes", "JAX jit, bytes", "ours / JAX"], ["---"] * 4]
    for program in programs:
        f, values = ours(program)
        mine = f.lower(*values).memory
        f, values = _jax(program)
        made = f.lower(*values).compile(compiler_options=UNOPTIMIZED)
        theirs = made.memory_analysis().temp_size_in_bytes
        rows.append(bytes_row(program.name, mine, theirs))
        print(program.name, file=sys.stderr)
    return _table(rows)


def bytes_row(name: str, mine: int, theirs: int) -> list[str]:
    ratio = "-" if mine == theirs == 0 else "more" if not theirs else _ratio(mine / theirs)
    return [name, f"{mine:,}", f"{theirs:,}", ratio + (" missed" if mine > theirs else "")]


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _written(text: str, start: str, end: str) -> None:
    """Put a table between the marks of the page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "jax", "torch", "llvmlite"))
    made = f"{start}\n{text}\n\nMeasured {date.today().isoformat()}, {versions}.\n{end}"
    page = PAGE.read_text()
    PAGE.write_text(page[: page.index(start)] + made + page[page.index(end) + len(end) :])


def _ratio(x: float) -> str:
    return f"{x:.2f}" if x >= 0.005 else "< 0.01"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("words", nargs="*", help="measure the programs whose name contains one; all if none is given")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="measure here, and print seconds as JSON")
    parser.add_argument("--memory", action="store_true", help="bytes of intermediate results in the place of times")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    options = parser.parse_args()
    chosen = [p for p in PROGRAMS if not options.words or any(word in p.name for word in options.words)]
    if not chosen:
        parser.error(f"no program contains {options.words}; there are: {'; '.join(p.name for p in PROGRAMS)}")
    if options.threads:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        tick = partial(print, file=sys.stderr)
        print(json.dumps([times(case(p, options.threads), tick)[0] for p in chosen]))
        return 0
    if options.memory:
        text = _memory(chosen)
    else:
        found = {threads: _measured(chosen, threads) for threads in (1, 2)}
        head = ["compiled", "threads", "ours", *PEERS, "the best of them"]
        rows = [_cells(p, threads, found[threads][i]) for i, p in enumerate(chosen) for threads in found]
        text = _table([head, ["---"] * len(head), *rows])
    print(text)
    if options.write:
        _written(text, *((MEMORY, MEMORY_END) if options.memory else (START, END)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
