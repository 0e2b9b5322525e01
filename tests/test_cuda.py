"""CUDA source of compiled functions: compiled by NVIDIA's compilers, and run on a GPU or emulated on a processor."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import cuda_emulation
import numpy as np
import pytest
from cupy_stand_in import installed

import adjoint as ad
from adjoint.compiler.cuda import elements, preamble, products, segments
from adjoint.compiler.replay import Replay
from adjoint.operands import run
from adjoint.primitives import TABLE

pytest.importorskip("array_api_extra")


def _has_gpu() -> bool:
    try:
        return bool(importlib.import_module("cupy").cuda.runtime.getDeviceCount())
    except Exception:  # not installed, or no driver
        return False


REAL = _has_gpu()
_COMPILE = Replay._compile
emulated = pytest.mark.skipif(REAL, reason="looks into the emulation, and there is a GPU")


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The emulation; None where there is a GPU."""
    if REAL:
        yield None
        return
    monkeypatch.setenv("ADJOINT_COMPILE", "1")
    found = cuda_emulation.Emulation()
    cuda_emulation.install(found, installed(monkeypatch), monkeypatch)
    products.library.cache_clear()
    segments._module.cache_clear()

    def compiled(self: Replay, code: Any) -> None:  # an error of the compiler is one of the test
        code.link()
        self._code = None

    monkeypatch.setattr(Replay, "_compile", compiled)
    yield found
    products.library.cache_clear()
    segments._module.cache_clear()


def on_gpu(x: Any) -> Any:
    return ad.tensor(np.asarray(x), device="cupy")


def values(tree: Any) -> list[Any]:
    return [x.numpy() if isinstance(x, ad.Tensor) else np.asarray(x) for x in ad.tree.leaves(tree)]


def beside_eager(f: Callable[..., Any], *args: Any, calls: int = 4) -> Any:
    """f compiled on the GPU beside f as it is on NumPy: launched one by one, captured, and with other values."""
    compiled = ad.compile(f)
    results: list[Any] = []
    for k in range(calls):
        given = [np.asarray(x) if np.asarray(x).dtype.kind != "f" else np.asarray(x) * (1 + k / 8) for x in args]
        given = [x.astype(np.asarray(y).dtype) for x, y in zip(given, args, strict=True)]
        results.append((compiled(*map(on_gpu, given)), values(f(*map(ad.tensor, given)))))
    for found, expected in results:  # later calls have written over none of the first ones' results
        for x, y in zip(values(found), expected, strict=True):
            assert x.shape == y.shape
            assert x.dtype == y.dtype
            scale = np.abs(y[np.isfinite(y)]).max(initial=1.0) if y.dtype.kind == "f" else 1.0
            tolerance = {4: 2e-6, 8: 1e-14}[y.dtype.itemsize] if y.dtype.kind == "f" else 0
            np.testing.assert_allclose(x, y, rtol=20 * tolerance, atol=20 * tolerance * scale)
    return compiled.lower(*map(on_gpu, args))


# --- elementwise ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -7.25, 40.0, 1e-30, np.inf, -np.inf, np.nan])
PARAMETERS = {"hardtanh": {"low": -1.0, "high": 2.0}, "raise_to": {"least": 0.25}}
OWN_WAY = {"broadcast_to", "astype", "conj", "gelu"}  # operands as they are, and what cancels: among the programs


def _operands(name: str, dtype: Any) -> list[Any]:
    count = len(TABLE[name].operands)
    x = SPECIAL.astype(dtype) if dtype.kind == "f" else np.array([0, 1, 2, 3, 5, 100, 127], dtype)
    if dtype.kind == "i":
        x = np.concatenate([x, -x, [np.iinfo(dtype).min, np.iinfo(dtype).max]]).astype(dtype)
    grids = list(np.meshgrid(*[x] * min(count, 2), indexing="ij"))
    grids += [grids[0][::-1].copy()] * (count - len(grids))
    if name == "where":
        grids[0] = grids[0] > 0
    if name == "clip":
        grids[1:] = [np.minimum(*grids[1:]), np.maximum(*grids[1:])]
    return grids


def _elementwise(dtype: Any) -> list[str]:
    """The primitives that have an expression for a dtype."""
    kinds = elements.KINDS
    names = [name for name in elements.EXPRESSIONS if dtype.kind in kinds.get(name, "biuf") and name not in OWN_WAY]
    return [name for name in names if name in TABLE]


DTYPES = [np.dtype(name) for name in elements.TYPES]


def _all_of(dtype: Any) -> tuple[Callable[..., Any], list[Any]]:
    given = [_operands(name, dtype) for name in _elementwise(dtype)]

    def f(*xs: Any) -> Any:
        left = list(xs)
        found = []
        for name, operands in zip(_elementwise(dtype), given, strict=True):
            mine = [left.pop(0) for _ in operands]
            found.append(run(name, mine, **PARAMETERS.get(name, {})))
        return found

    return f, [x for operands in given for x in operands]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elementwise(dtype: Any) -> None:
    f, given = _all_of(dtype)
    with np.errstate(all="ignore"):
        found = values(ad.compile(f)(*map(on_gpu, given)))
        expected = values(f(*map(ad.tensor, given)))
    for name, x, y in zip(_elementwise(dtype), found, expected, strict=True):
        assert x.dtype == y.dtype, name
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(x, y, name)
            continue
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y), name)
        finite = np.isfinite(y)
        np.testing.assert_array_equal(x[~finite], y[~finite], name)
        assert np.all(np.abs(x[finite] - y[finite]) <= 4 * np.spacing(np.abs(y[finite]))), name


def test_casts() -> None:
    x = np.array([0.0, 1.5, -2.5, 100.0])
    dtypes = [getattr(ad, name) for name in elements.TYPES if not name.startswith("u")]
    beside_eager(lambda x: [x.astype(d) for d in dtypes] + [(x > 0).astype(ad.float32)], x)


# --- reductions, rows ----------------------------------------------------------------------------

SHAPES = [
    (),
    (1,),
    (31,),
    (33,),
    (1025,),
    (5, 1),
    (1, 7),
    (33, 31),
    (2, 3, 4),
    (3, 1025),
    (1025, 3),
    (70, 2, 65),
]


def _axes(shape: tuple[int, ...]) -> list[Any]:
    n = len(shape)
    return [tuple(i for i in range(n) if bits >> i & 1) for bits in range(1, 2**n)] or [()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_reductions(shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.normal(size=shape)
    x = (x > 0.3) if dtype == "bool" else (x * (1 if dtype[0] == "f" else 10)).astype(dtype)
    names = ["any", "all"] if dtype == "bool" else ["sum", "max", "min", "prod"]

    def f(x: Any) -> Any:
        return [run(name, [x], axis=axis, keepdims=False) for axis in _axes(shape) for name in names]

    beside_eager(f, np.asarray(x), calls=3)


def test_long_sums_are_exact() -> None:
    x = RNG.uniform(size=300_000).astype(np.float32)
    for shape in [(300_000,), (3, 100_000), (100_000, 3), (300, 1000)]:
        given, exact = x.reshape(shape), x.reshape(shape).astype(np.float64)
        for axis in (None, 0, -1):
            found = ad.compile(lambda x, axis=axis: x.sum(axis=axis))(on_gpu(given)).numpy()
            ours = np.abs(found - exact.sum(axis=axis)).max()
            theirs = np.abs(given.sum(axis=axis) - exact.sum(axis=axis)).max()
            assert ours <= max(2 * theirs, np.spacing(np.abs(found).max()))


def test_nan_and_infinite_values_are_reduced_as_they_are() -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 2.0], [np.inf, -np.inf, 0.0], [-np.inf, -1.0, 3.0]])

    def f(x: Any) -> Any:
        return [g(x, axis=axis) for g in (ad.sum, ad.max, ad.min, ad.prod) for axis in (0, 1, None)]

    with np.errstate(invalid="ignore"):
        found, expected = ad.compile(f)(on_gpu(x)), f(ad.tensor(x))
    for a, b in zip(values(found), values(expected), strict=True):
        np.testing.assert_array_equal(a, b)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, w, b: ad.special.softmax(x, axis=1),
    "softmax, columns": lambda x, w, b: ad.special.softmax(x, axis=0),
    "log_softmax": lambda x, w, b: ad.special.log_softmax(x, axis=1),
    "logsumexp": lambda x, w, b: ad.special.logsumexp(x, axis=1),
    "variance": lambda x, w, b: [x.mean(axis=0), x.var(axis=0), x.std()],
    "views": lambda x, w, b: [x[::2, ::-1] + 1, x.T * 2, ad.concat([x, x[1:]], axis=0), x[:, None] - x[None]],
    "assigned": lambda x, w, b: _assigned(x),
    "argmax": lambda x, w, b: [x.argmax(axis=0), x.argmax(axis=1)],
    "products": lambda x, w, b: [x @ w, w.T @ x.T, x.T @ x, (x @ w)[None] @ ad.stack([w.T, w.T])],
    "mixed": lambda x, w, b: ad.cumulative_sum(ad.exp(x @ w + b), axis=0) * ad.exp(w.sum()),
    "gelu": lambda x, w, b: ad.value_and_grad(lambda x: ad.nn.gelu(x).sum())(x),
    "where": lambda x, w, b: ad.where(x > 0, x, 0.1 * x) + ad.maximum(x, 0.5) + ad.abs(x) ** 1.5,
    "mlp": lambda x, w, b: ad.value_and_grad(lambda w, b: _loss(x, w, b), argnums=(0, 1))(w, b),
    "hessian": lambda x, w, b: ad.hessian(lambda b: _loss(x, w, b))(b),
    "jvp": lambda x, w, b: ad.jvp(lambda w: _loss(x, w, b), (w,), (ad.cos(w),)),
    "vmap": lambda x, w, b: ad.vmap(ad.grad(lambda row: (ad.tanh(row @ w + b) ** 2).sum()))(x),
    "norm": lambda x, w, b: ad.grad(lambda x: (_normed(x) * x).sum())(x),
    "scan": lambda x, w, b: ad.scan(lambda c, row: (ad.tanh(c + row), (c * row).sum()), x[0], x),
    "constants": lambda x, w, b: x * np.arange(5.0) + ad.tril(x[:5] @ w @ w.T)[:, 0],
}


def _assigned(x: Any) -> Any:
    x = x + 0.0
    x[1:3] = x[0] * 2
    x[:, 0] += 1.0
    return x


def _loss(x: Any, w: Any, b: Any) -> Any:
    return (ad.special.softmax(ad.tanh(x @ w) + b, axis=1) * ad.sin(x @ w)).sum()


def _normed(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / ad.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs(name: str, dtype: str) -> None:
    given = [RNG.normal(size=shape).astype(dtype) for shape in [(7, 5), (5, 4), (4,)]]
    beside_eager(PROGRAMS[name], *given)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 1025])
def test_sizes_and_layouts(size: int) -> None:
    x = RNG.normal(size=(size, 3))

    def f(x: Any, y: Any, z: Any) -> Any:
        rows = ad.exp(x - x.max(axis=1, keepdims=True)) + z
        return rows / rows.sum(axis=1, keepdims=True), (x * y).sum(axis=0), y * 2

    beside_eager(f, x, RNG.normal(size=(size, 1)), np.float64(0.5))
    compiled = ad.compile(f)
    for _ in range(3):
        wide = on_gpu(RNG.normal(size=(2 * size, 5)))
        given = [wide[::2, 1:4], wide.T[4:, :size].T, wide.sum() * 0 + 0.5]
        for a, b in zip(values(compiled(*given)), values(f(*given)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _random_program(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Some 30 lines of elementwise functions, broadcasts, views, products and reductions."""
    rng = np.random.default_rng(seed)
    lines = [(int(rng.integers(9)), int(rng.integers(1000)), int(rng.integers(1000))) for _ in range(30)]
    n = int(rng.choice([1, 3, 6, 33]))
    kinds: list[Callable[[Any, Any], Any]] = [
        lambda a, b: ad.tanh(a + b),
        lambda a, b: a * ad.sin(b),
        lambda a, b: ad.tanh(a @ b / n),
        lambda a, b: a - b.mean(axis=0, keepdims=True),
        lambda a, b: ad.special.softmax(a, axis=1) + 0.1 * b,
        lambda a, b: ad.where(a > b, a, 0.5 * b),
        lambda a, b: a.T + b.max(axis=1, keepdims=True),
        lambda a, b: a[::-1] * 0.5 + b,
        lambda a, b: a / (1.0 + b * b) + b.sum() / (n * n),
    ]

    def f(x: Any, w: Any) -> Any:
        known = [x, w, x.T, ad.tanh(x)]
        for kind, i, j in lines:
            known.append(kinds[kind](known[i % len(known)], known[j % len(known)]))
        return sum([x.mean() for x in known[4:]]), known[-1]

    return f, [rng.normal(size=(n, n)), rng.normal(size=(n, n))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    f, given = _random_program(seed)
    beside_eager(f, *given, calls=3)
    beside_eager(lambda x, w: ad.grad(lambda x, w: f(x, w)[0], argnums=(0, 1))(x, w), *given, calls=3)


def _slopes(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    return lambda *xs: ad.value_and_grad(lambda *xs: (f(*xs) ** 2).sum(), argnums=tuple(range(count)))(*xs)


LARGER: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "attention": (_slopes(ad.nn.scaled_dot_product_attention, 3), [(2, 3, 6, 4)] * 3),
    "layer_norm": (_slopes(lambda x, w, b: ad.nn.layer_norm(x, (8,), w, b), 3), [(2, 5, 8), (8,), (8,)]),
    "conv": (_slopes(lambda x, w: ad.nn.max_pool2d(ad.nn.conv2d(x, w), 2), 2), [(2, 3, 8, 8), (4, 3, 3, 3)]),
    "stacks": (lambda x, y: [x @ y, x.swapaxes(-1, -2) @ x, x[:, :1] @ y, x[0] @ y], [(2, 3, 4, 5), (2, 3, 5, 6)]),
    "embedding": (lambda w: ad.grad(lambda w: (w[np.array([0, 2, 2, 4])] ** 2).sum())(w), [(5, 3)]),
    "while": (lambda x: ad.while_loop(lambda c: (c < 10).all(), lambda c: c * 1.5 + 1, ad.abs(x)), [(4,)]),
    "arguments": (lambda x: [x, x, x.T, x + x, ad.sin(x), ad.cos(x), ad.tan(x)[0], ad.zeros(2)], [(3, 3)]),
}


@pytest.mark.parametrize("name", LARGER)
def test_larger_programs(name: str) -> None:
    f, shapes = LARGER[name]
    beside_eager(f, *[RNG.normal(size=shape) for shape in shapes])


# --- graphs of launches --------------------------------------------------------------------------


def _step(x: Any, w: Any, b: Any) -> Any:
    return ad.value_and_grad(lambda w, b: _loss(x, w, b), argnums=(0, 1))(w, b)


def _step_arguments(k: int = 0) -> list[Any]:
    rng = np.random.default_rng(k)
    return [rng.normal(size=shape) for shape in [(7, 5), (5, 4), (4,)]]


@emulated
def test_one_graph_of_all_launches(gpu: Any) -> None:
    compiled = ad.compile(_step)
    compiled(*map(on_gpu, _step_arguments()))
    assert gpu.graphs == 0
    for k in range(1, 4):
        compiled(*map(on_gpu, _step_arguments(k)))
        assert gpu.graphs == k
    assert len(gpu.modules) == 1
    assert gpu.launched.count("gemm") % 4 == 0 < gpu.launched.count("gemm")
    lowered = compiled.lower(*map(on_gpu, _step_arguments()))
    assert "__global__" in lowered.cuda
    assert any("cuBLAS" in line for line in lowered.kernels)


@emulated
def test_without_cublas_products_are_cupys(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "library", lambda: None)
    beside_eager(_step, *_step_arguments())
    beside_eager(PROGRAMS["products"], *_step_arguments())
    assert gpu.graphs == 0
    assert "gemm" not in gpu.launched


@emulated
def test_what_cannot_be_captured_runs_one_by_one(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: Any) -> Any:
        gpu.recording = None
        raise RuntimeError("a stream that does not capture")

    monkeypatch.setattr(importlib.import_module("cupy").cuda.Stream, "end_capture", refuses)
    beside_eager(_step, *_step_arguments())
    assert gpu.graphs == 0


@emulated
def test_large_arguments_are_not_copied(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_COPIED", 100)
    beside_eager(_step, *_step_arguments())
    assert gpu.graphs == 0


@emulated
def test_another_stream_waits() -> None:
    cupy = importlib.import_module("cupy")
    compiled = ad.compile(_step)
    for k in range(3):
        compiled(*map(on_gpu, _step_arguments(k)))
    stream = cupy.cuda.Stream()
    with stream:
        compiled(*map(on_gpu, _step_arguments(5)))
        compiled(*map(on_gpu, _step_arguments(6)))
    assert len(stream.waits) == 1


def test_arguments_are_not_written_to() -> None:
    given = [on_gpu(x) for x in _step_arguments()]
    compiled = ad.compile(_step)
    for _ in range(4):
        compiled(*given)
        for x, y in zip(given, _step_arguments(), strict=True):
            np.testing.assert_array_equal(x.numpy(), y)


@emulated
@pytest.mark.parametrize("refused", [False, True])
def test_without_a_compiler_the_graph_is_replayed(gpu: Any, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class CompileException(Exception):  # CuPy's name of it
        pass

    def fails(**how: Any) -> Any:
        raise CompileException("no") if refused else RuntimeError("no compiler")

    monkeypatch.setattr(Replay, "_compile", _COMPILE)
    monkeypatch.setattr(importlib.import_module("cupy"), "RawModule", fails)
    compiled = ad.compile(_step)
    if refused:
        with pytest.warns(RuntimeWarning, match="primitive by primitive"):
            found = compiled(*map(on_gpu, _step_arguments()))
    else:
        found = compiled(*map(on_gpu, _step_arguments()))
    for x, y in zip(values(found), values(_step(*map(ad.tensor, _step_arguments()))), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    assert not gpu.launched
    assert compiled.lower(*map(on_gpu, _step_arguments())).cuda == ""


def test_replay_has_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", "replay")
    assert ad.compile(_step).lower(*map(on_gpu, _step_arguments())).cuda == ""


def test_checks_of_values_are_made() -> None:
    compiled = ad.compile(lambda x, y: ad.nn.cross_entropy(x, y))
    x = np.random.default_rng(0).normal(size=(6, 3))
    labels = np.array([0, 1, 2, 2, 1, 0])
    expected = ad.nn.cross_entropy(ad.tensor(x), ad.tensor(labels)).numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(on_gpu(x), on_gpu(labels)).numpy(), expected, rtol=1e-12)
    with pytest.raises(ad.errors.AdjointError):
        compiled(on_gpu(x), on_gpu(labels + 1))


def test_random_numbers_are_those_of_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    f = lambda x: ad.exp(x) * ad.random.normal(x.shape, dtype=ad.float64).sum() + x.sum()
    x = on_gpu(np.arange(4.0))
    found = []
    for setting in ("1", "replay"):
        monkeypatch.setenv("ADJOINT_COMPILE", setting)
        compiled = ad.compile(f)
        ad.random.seed(1, device="cupy")
        found.append([compiled(x).numpy() for _ in range(4)])
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert len({y[0] for y in found[0]}) == 4


def test_sizes_that_come_again_have_kernels() -> None:
    compiled = ad.compile(lambda x: (ad.exp(x) * x).sum(axis=0))
    for n in (3, 4, 5, 5, 5):
        x = np.arange(2.0 * n).reshape(n, 2) / n
        np.testing.assert_allclose(compiled(on_gpu(x)).numpy(), (np.exp(x) * x).sum(axis=0), rtol=1e-12)
    compiled.compile(on_gpu(np.ones((5, 2))))  # which has them at once
    assert "__global__" in compiled.lower(on_gpu(np.ones((5, 2)))).cuda
    np.testing.assert_allclose(compiled(on_gpu(x)).numpy(), (np.exp(x) * x).sum(axis=0), rtol=1e-12)


# --- NVIDIA's compilers --------------------------------------------------------------------------


@pytest.mark.slow
@emulated
@pytest.mark.parametrize("what", ["elementwise", "reductions", "programs", "random programs"])
def test_nvidias_compiler_takes_the_source(what: str) -> None:
    compiles = cuda_emulation.nvidia()
    if compiles is None:
        pytest.skip("neither NVRTC (pip install nvidia-cuda-nvrtc) nor nvcc is installed")
    sources: dict[str, str] = {}
    if what == "elementwise":
        for dtype in DTYPES:
            f, given = _all_of(dtype)
            sources[str(dtype)] = ad.compile(f).lower(*map(on_gpu, given)).cuda
    elif what == "reductions":
        for shape in SHAPES:
            for dtype in ("float32", "float64", "int32", "uint8", "bool"):
                names = ["any", "all"] if dtype == "bool" else ["sum", "max", "min"]
                f = lambda x, names=names, shape=shape: [
                    run(name, [x], axis=axis, keepdims=True) for axis in _axes(shape) for name in names
                ]
                sources[f"{shape} {dtype}"] = ad.compile(f).lower(on_gpu(np.ones(shape, dtype))).cuda
    elif what == "programs":
        for name, f in PROGRAMS.items():
            for dtype in ("float32", "float64"):
                given = [x.astype(dtype) for x in _step_arguments()]
                sources[f"{name} {dtype}"] = ad.compile(f).lower(*map(on_gpu, given)).cuda
    else:
        for seed in range(12):
            f, given = _random_program(seed)
            slope = lambda x, w, f=f: ad.grad(lambda x, w: f(x, w)[0], argnums=(0, 1))(x, w)
            sources[str(seed)] = ad.compile(slope).lower(*map(on_gpu, given)).cuda
    whole = [preamble.PREAMBLE]  # all at once: to start the compiler takes longer than a kernel does
    for k, source in enumerate(sources.values()):
        whole.append(re.sub(r"\bn(\d+_\w+\(Array)", rf"p{k}_n\1", source.replace(preamble.PREAMBLE, "")))
    assert not compiles("\n".join(whole), segments.OPTIONS)
