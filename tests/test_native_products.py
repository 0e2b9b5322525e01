"""Rows, products, convolutions, attention and loops as machine code, beside NumPy's."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from typing import Any

import native_code
import numpy as np
import pytest
from test_native import EDGES, close, is_as_exact, same, steps
from test_native import native as native

import adjoint as ad
from adjoint.compiler import passes
from adjoint.compiler.native import calls as native_calls
from adjoint.compiler.native import following, gemm, lowering, machine, patches, plan, text
from adjoint.compiler.native.views import Layout

pytest.importorskip("llvmlite")


def test_normalisations_and_losses_are_one_call() -> None:
    rng = np.random.default_rng(2)
    x, w, b = rng.normal(size=(6, 37)), rng.normal(size=37), rng.normal(size=37)
    labels = rng.integers(0, 37, 6)
    norm = lambda x, w, b: (ad.nn.layer_norm(x, 37, w, b) ** 2).sum()
    soft = lambda x: (
        (ad.nn.softmax(x) ** 2).sum() + (ad.nn.log_softmax(x) ** 3).sum() + ad.nn.softmax(x, axis=0)[0].sum()
    )
    for f, *xs in (
        (lambda x, w, b: ad.nn.layer_norm(x, 37, w, b), x, w, b),
        (ad.grad(norm, argnums=(0, 1, 2)), x, w, b),
        (ad.value_and_grad(soft), x),
    ):
        close(f, *xs, rtol=1e-11)
        assert not steps(f, *xs)
    loss = ad.value_and_grad(lambda x: ad.nn.cross_entropy(x, ad.asarray(labels)))
    close(loss, x, rtol=1e-12)
    large = np.where(rng.random((6, 37)) < 0.5, 1e30, -1e30).astype(np.float32)  # squares overflow
    large[0], large[1, 1:] = 2.0**100, 0.0  # all the same; one alone
    for scale in (1.0, 2.0**20, 2.0**-50, 2.0**-100, np.inf):
        with np.errstate(all="ignore"):
            xs = large * np.float32(scale)
            close(lambda x: ad.nn.layer_norm(x, 37), xs, rtol=1e-5)
            close(lambda x: ad.nn.layer_norm(x, 37), xs.astype(np.float64) ** 5, rtol=1e-12)
    ce = ad.compile(lambda x, labels: ad.nn.cross_entropy(x, labels))
    with pytest.raises(ad.errors.OutOfRangeError, match="targets from 0 to 37"):
        ce(x, np.array([0, 37, 1, 2, 3, 4]))


def test_what_forward_and_backward_share_is_computed_once() -> None:
    x = np.random.default_rng(6).normal(size=(40, 50))
    norm = ad.value_and_grad(lambda x: (ad.nn.layer_norm(x, 50) ** 3).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(norm).lower(x).recorded))
    assert [e.name for e in graph.equations].count("max") == 1  # of each row
    w = x[0]
    scaled = ad.value_and_grad(lambda x, w: (ad.nn.layer_norm(x, 50, w, w) ** 3).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(scaled).lower(x, w).recorded))
    assert [e.name for e in graph.equations].count("sqrt") == 1  # of the variance, which constants have a part in
    close(scaled, x, w, rtol=1e-11)
    assert [e.name for e in graph.equations].count("sum") == 5  # none of the gradient of w, which nobody reads
    again = ad.value_and_grad(lambda x: ad.checkpoint(lambda x: ad.exp(ad.sin(x)))(x).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(again).lower(x).recorded))
    assert [e.name for e in graph.equations].count("sin") == 2  # which is large
    close(norm, x, rtol=1e-11)
    attention = lambda x: (ad.nn.scaled_dot_product_attention(x, x, x) ** 2).sum()
    for f, count in ((attention, 1), (ad.checkpoint(attention), 2)):
        graph = lowering.lowered(passes.optimized(ad.compile(ad.value_and_grad(f)).lower(x).recorded))
        assert [e.name for e in graph.equations].count("exp") == count


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_attention_is_products_and_rows(dtype: str) -> None:
    rng = np.random.default_rng(7)
    q, v, bias = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 20, 8), (2, 3, 20, 5), (20, 20)))
    none = np.where(np.arange(20)[:, None] == 4, -np.inf, bias).astype(dtype)  # one query sees no key
    for more, causal in (((), False), ((), True), ((bias,), False), ((none,), False)):

        def loss(q: Any, k: Any, v: Any, *bias: Any, causal: bool = causal) -> Any:
            made = ad.nn.scaled_dot_product_attention(q, k, v, *bias, is_causal=causal)
            return (made * made).sum()

        step = ad.value_and_grad(loss, argnums=(0, 1, 2))
        close(step, q, q * 2, v, *more, rtol=1e-10 if dtype == "float64" else 1e-3)
        assert not steps(step, q, q * 2, v, *more)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_functions_of_images_read_arrays_as_they_lie(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions lay the batch out last; nothing is copied, which `again` would do."""
    copied: list[Any] = []
    again = native_calls.again
    monkeypatch.setattr(native_calls, "again", lambda *how: copied.append(how) or again(*how))
    rng = np.random.default_rng(9)
    x, w, b, v = (rng.normal(size=s).astype(dtype) for s in ((4, 2, 9, 9), (6, 2, 3, 3), (6,), (4, 3, 2, 2)))

    def net(w: Any, b: Any, v: Any, x: Any, stride: int, padding: int) -> Any:
        y = ad.nn.relu(ad.nn.conv2d(x, w, b, stride=stride))
        y = ad.nn.max_pool2d(y * 2.0 + y, 2) if stride == 1 else y * 2.0
        y = ad.tanh(ad.nn.conv2d(y, v, groups=6 // v.shape[1], padding=padding))
        return (y * y).sum() + y.mean(axis=(0, 2, 3))[0]

    for weights in (v, np.concatenate([v, v], axis=1)):
        for stride, padding in ((1, 0), (2, 0), (2, 1)):
            f = lambda w, b, v, x, stride=stride, padding=padding: net(w, b, v, x, stride, padding)
            rtol = 1e-10 if dtype == "float64" else 1e-3
            close(ad.value_and_grad(f, argnums=(0, 1, 2, 3)), w, b, weights, x, rtol=rtol)
            assert not copied


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_are_products_of_lines(axes: int) -> None:
    """With both gradients, as exact as NumPy's, for all that says where kernels are."""
    rng = np.random.default_rng(axes)
    conv = getattr(ad.nn, f"conv{axes}d")
    for case in range(6):
        dtype = ("float32", "float64")[case % 2]
        groups = (1, 2, 4)[case % 3]
        n, c, out = (int(rng.integers(1, 20)), groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 6)))
        kernel, sizes = rng.integers(1, 4, axes), rng.integers(6, 10, axes)
        stride, dilation = (1 + case // 4, 1, 2)[case % 3], 1 + case % 2
        how = {"stride": stride, "padding": tuple(rng.integers(0, 3, axes).tolist()), "dilation": dilation}
        x = rng.normal(size=(n, c, *sizes)).astype(dtype)
        w = rng.normal(size=(out, c // groups, *kernel)).astype(dtype)
        f = lambda x, w, how=how, groups=groups: conv(x * 2, w, groups=groups, **how)
        g = rng.normal(size=f(ad.asarray(x), ad.asarray(w)).shape).astype(dtype)
        step = lambda x, w, g, f=f: (f(x, w), ad.grad(lambda x, w: (f(x, w) * g).sum(), argnums=(0, 1))(x, w))
        values = lambda made: [np.asarray(z) for z in (made[0], *made[1])]
        exact = values(step(*[ad.asarray(z.astype(np.float64)) for z in (x, w, g)]))
        added = values(step(*[ad.asarray(abs(z).astype(np.float64)) for z in (x, w, g)]))
        eager, ours = values(step(*map(ad.asarray, (x, w, g)))), values(ad.compile(step)(x, w, g))
        for a, b, z, total in zip(ours, eager, exact, added, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype == np.dtype(dtype)
            assert is_as_exact(a, b, z, total), (how, x.shape, w.shape)
        if stride == 1 and all(p <= dilation * (k - 1) for p, k in zip(how["padding"], kernel, strict=True)):
            sums = lambda x, w, g, step=step: [(z * z).sum() for z in ad.tree.leaves(step(x, w, g))]
            assert not steps(sums, x, w, g)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("examples", [1, 3, 8, 18])
def test_convolutions_with_a_stride(examples: int, axes: int, dtype: str) -> None:
    """Images of few examples are divided by the stride first; a gradient has a part for each part of the kernels."""
    rng, kernels = np.random.default_rng([axes, examples]), []
    conv, turned = getattr(ad.nn, f"conv{axes}d"), getattr(ad.nn, f"conv_transpose{axes}d")
    for case in range(12 // axes):
        groups, sizes = (1, 2)[case % 2], rng.integers(5, 24 // axes, axes).tolist()
        c, out = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 6))
        kernel, stride = rng.integers(1, 6, axes).tolist(), rng.integers(1, 5, axes).tolist()
        stride[case % axes] = 2 + case % 3
        dilation = 2 if case % 5 == 4 and max(kernel) < 3 else 1
        how = {"stride": tuple(stride), "padding": tuple([int(rng.integers(0, k)) for k in kernel]), "groups": groups}
        x = rng.normal(size=(examples, c, *sizes)).astype(dtype)
        w = rng.normal(size=(out, c // groups, *kernel)).astype(dtype)
        forward = lambda x, w, how=how, d=dilation: conv(ad.tanh(x), w, dilation=d, **how)
        g = rng.normal(size=forward(ad.asarray(x), ad.asarray(w)).shape).astype(dtype)
        slope = ad.grad(lambda x, w, g, f=forward: (f(x, w) * g).sum(), argnums=(0, 1))
        step = lambda x, w, g, f=forward, h=slope, how=how: (f(x, w), *h(x, w, g), turned(ad.tanh(g), w, **how))
        values = lambda run, made: [np.asarray(z) for z in run(*map(ad.asarray, made))]
        given = x, w, g
        exact = values(step, [z.astype(np.float64) for z in given])
        added = values(step, [abs(z).astype(np.float64) for z in given])
        ours, eager = [np.asarray(z) for z in ad.compile(step)(*given)], values(step, given)
        for a, b, z, total in zip(ours, eager, exact, added, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            assert is_as_exact(a, b, z, total), (how, x.shape, w.shape)
        if dilation == 1 and np.prod(stride) <= 16:
            sums = lambda *z, f=step: [(y * y).sum() for y in f(*z)]
            assert not steps(sums, *given), (how, x.shape, w.shape)
        kernels += ad.compile(step).lower(*given).kernels
    assert any("convolution" in line for line in kernels)
    assert any("gradient of weights" in line for line in kernels)


@pytest.mark.parametrize("few", [True, False])
def test_short_lines_are_products_where_there_are_few(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one image whose lines fill no vector; many are NumPy's."""
    if not few:
        monkeypatch.setattr(patches, "_SHORT", 0)
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(1, 4, 5, 6)), rng.normal(size=(6, 4, 3, 3))
    for how in ({}, {"padding": 1}, {"dilation": 2, "padding": 2}, {"stride": 2}, {"stride": (1, 3), "padding": 1}):
        f = lambda x, w, how=how: ad.tanh(ad.nn.conv2d(x, w, **how))
        loss = ad.grad(lambda x, w, f=f: f(x, w).sum(), argnums=(0, 1))
        step = lambda x, w, f=f, loss=loss: (f(x, w), *loss(x, w))
        for a, b in zip(ad.compile(step)(x, w), step(ad.asarray(x), ad.asarray(w)), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-12, atol=1e-13, err_msg=str(how))
        sums = lambda x, w, step=step: [(y * y).sum() for y in step(x, w)]
        assert bool(steps(sums, x, w)) != few, how


@pytest.mark.parametrize("examples", [2, 16])
def test_large_strides_need_no_long_code(examples: int) -> None:
    """As those of patches, for whose gradient there would be a part for each place of a kernel."""
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(examples, 3, 32, 32)), rng.normal(size=(8, 3, 8, 8))
    loss = lambda x, w: (ad.nn.conv2d(x, w, stride=8) ** 2).sum()
    f, tensors = ad.compile(ad.grad(loss, argnums=(0, 1))), [ad.asarray(z) for z in (x, w)]
    for found, expected in zip(f(x, w), ad.grad(loss, argnums=(0, 1))(*tensors), strict=True):
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-9, atol=1e-9)
    assert len(f.lower(x, w).kernels) < 16


@pytest.mark.slow
def test_threads_share_convolutions_and_stacks_of_products() -> None:
    rng = np.random.default_rng(3)
    x, w, q = (rng.normal(size=s).astype("float32") for s in ((32, 4, 12, 12), (8, 2, 3, 3), (9, 40, 24)))

    def loss(x: Any, w: Any, q: Any) -> Any:
        return ad.square(ad.nn.conv2d(x, w, padding=1, groups=2)).sum() + ad.tanh(q @ q.mT @ q).sum()

    step, threads, found = ad.compile(ad.value_and_grad(loss, (0, 1, 2))), ad.get_num_threads(), []
    try:
        for n in (1, 2, 3, 7):
            ad.set_num_threads(n)
            found.append([np.asarray(z) for z in ad.tree.leaves(step(x, w, q))])
    finally:
        ad.set_num_threads(threads)
    kernels = step.lower(x, w, q).kernels
    assert any("convolution in" in line for line in kernels)
    assert any("parts: (9, 40, 24) @" in line for line in kernels)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("convolved", [True, False])
@pytest.mark.parametrize("examples", [1, 5, 16])
def test_windows_of_images_are_loops(examples: int, convolved: bool, dtype: str) -> None:
    """After a convolution and without, to the last bit: nans, infinities, zeros of both signs, several largest ones."""
    rng = np.random.default_rng(5)
    shape, often = (examples, 3, 7, 6), [0.4, 0.25, 0.25, 0.05, 0.05]
    x = rng.choice([0.0, 1.0, 2.0, np.nan, np.inf], shape, p=often).astype(dtype)
    ones, signs = np.ones((3, 1, 1, 1), dtype), rng.choice([-1.0, 1.0], (7, 6)).astype(dtype)
    for pool, kernel, how in (
        ("max", 2, {}),
        ("max", (3, 2), {"stride": (3, 3)}),
        ("max", 1, {"stride": 2}),
        ("max", 2, {"stride": 3, "dilation": 2}),
        ("avg", 2, {}),
        ("avg", (2, 3), {"stride": (2, 4)}),
        ("max", 3, {"stride": 1}),
        ("avg", (2, 3), {"stride": (1, 2)}),
    ):
        run = functools.partial(getattr(ad.nn, f"{pool}_pool2d"), kernel_size=kernel, **how)

        def step(x: Any, ones: Any, signs: Any, run: Any = run) -> Any:
            f = lambda images: ad.square(run(images)).sum()
            images = (ad.nn.conv2d(x, ones, groups=3) if convolved else x) * signs
            return run(images) * 1.5, ad.grad(f)(images) * 1.5

        given = [ad.asarray(z) for z in (x, ones, signs)]
        with np.errstate(all="ignore"):
            same(ad.compile(step)(*given), step(*given))
        if how.get("stride") not in (1, (1, 2)):
            sums = lambda *xs, step=step: [z.sum(axis=0) for z in step(*xs)]
            assert not [line for line in steps(sums, *given) if "transpose" not in line], (pool, kernel, how)


def lorenz(u: Any, p: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        x, y, z = u[0], u[1], u[2]
        return u + 0.01 * ad.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z]), x

    u, xs = ad.scan(step, u, None, length=50)
    return (u * u).sum() + xs.max()


def recurrent(w: Any, v: Any, b: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = ad.tanh(w @ h + v @ x + b)
        return h, h

    return (ad.scan(step, b * 0.0, xs)[1] ** 2).sum()


def test_loops_are_machine_code_forward_and_backward() -> None:
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=s) * 0.3 for s in ((9, 9), (9, 3), (9,), (20, 3))]
    u, p = np.ones(3), np.array([10.0, 28.0, 8 / 3])
    growing = lambda x: ad.fori_loop(0, 7, lambda i, c: c * 1.5 + i, x)
    for f, *xs in (
        (lorenz, u, p),
        (ad.grad(lorenz, argnums=(0, 1)), u, p),
        (ad.grad(recurrent, argnums=(0, 1, 2)), *weights),
        (ad.vmap(ad.grad(lorenz), in_axes=(0, None)), np.stack([u, 2 * u]), p),
        (growing, u),
        (ad.grad(lambda x: growing(x).sum()), u),
    ):
        close(f, *xs, rtol=1e-10)
        assert not steps(f, *xs), f


def test_products_of_small_matrices() -> None:
    rng = np.random.default_rng(4)
    for m, k, n in ((1, 1, 1), (3, 4, 5), (7, 33, 2), (2, 5, 40), (20, 1, 9), (1, 50, 1)):
        x, y = rng.normal(size=(m, k)), rng.normal(size=(k, n))
        for f in (
            lambda x, y: x @ y,
            lambda x, y: ad.permute_dims(ad.permute_dims(y, (1, 0)) @ ad.permute_dims(x, (1, 0)), (1, 0)),
            lambda x, y: x[:, ::-1] @ y,
        ):
            for dtype, rtol in (("float64", 1e-12), ("float32", 1e-4)):
                close(f, x.astype(dtype), y.astype(dtype), rtol=rtol)


LAYOUTS: list[Callable[[Any, Any], Any]] = [  # of matrices that are made in the program
    lambda lib, x: x,
    lambda lib, x: lib.swapaxes(lib.swapaxes(x, -1, -2) * 2, -1, -2),
    lambda lib, x: (x * 2)[..., ::-1, :],
    lambda lib, x: lib.concat([x, x * 2], axis=-1)[..., x.shape[-1] :],
    lambda lib, x: lib.concat([x, x * 2], axis=-2)[..., ::2, :],
    lambda lib, x: lib.swapaxes(lib.swapaxes(x * 2, 0, -1)[::-1], 0, -1),
]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("has_blas", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_products_in_any_layout(dtype: str, has_blas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger ones than are loops: of matrices, vectors and stacks, in one function."""
    if not has_blas:
        monkeypatch.setattr(plan, "integer_bits", lambda: 0)
        monkeypatch.setattr(plan, "pays", lambda x, y: False)
    rng = np.random.default_rng(8)
    sizes = [(40, 30, 20), (1, 90, 70), (90, 70, 1), (70, 1, 80), (1, 6000, 1), (33, 17, 19)]
    counts: list[Any] = [((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 1), (3,)), ((2, 3), (2, 3)), ((1,), ())]
    pairs = [
        (rng.normal(size=(*left, m, k)), rng.normal(size=(*right, k, n))) for m, k, n in sizes for left, right in counts
    ]
    xs = [x.astype(dtype) for pair in pairs for x in pair]
    ways = rng.integers(len(LAYOUTS), size=len(xs)).tolist()

    def products(lib: Any, *xs: Any) -> list[Any]:
        laid = [LAYOUTS[way](lib, x) for way, x in zip(ways, xs, strict=True)]
        return [x @ y for x, y in zip(laid[::2], laid[1::2], strict=True)]

    ours = functools.partial(products, ad)
    expected = [x.numpy() for x in ours(*map(ad.asarray, xs))]
    exact, added = (products(np, *[of(x.astype(np.longdouble)) for x in xs]) for of in (np.positive, np.abs))
    for x, y, z, total in zip(ad.compile(ours)(*xs), expected, exact, added, strict=True):
        assert x.shape == y.shape
        assert is_as_exact(x, y, z, total), x.shape
    assert bool(steps(ours, *xs)) != (has_blas and machine.integer_bits() > 0)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_larger_than_the_caches(dtype: str, twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks, each with all panels for some rows, where BLAS has shorter vectors; caches are small here."""
    for name, value in {"_ROOM": 1 << 13, "_BLOCK": 1 << 14, "_MOST": 0, "blas_is_narrow": lambda: True}.items():
        monkeypatch.setattr(gemm, name, value)
    monkeypatch.setattr(gemm, "multiplies_twice", lambda: twice)
    monkeypatch.setattr(gemm, "_PANELS", 1)
    rng = np.random.default_rng(5)
    for m, k, n in ((150, 300, 170), (70, 600, 200), (260, 31, 37)):
        x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        exact, added = (of(x.astype(np.longdouble)) @ of(y.astype(np.longdouble)) for of in (np.positive, np.abs))
        for f, *xs in (
            (lambda x, y: x @ y, x, y),
            (lambda x, y: x.T @ y, x.T.copy(), y),
            (lambda x, y: x @ y.T, x, y.T.copy()),
            (lambda x, y: x.T @ y.T, x.T.copy(), y.T.copy()),
        ):
            (line,) = ad.compile(f).lower(*xs).kernels
            assert "parts" in line
            assert "BLAS" not in line
            assert is_as_exact(ad.compile(f)(*xs), x @ y, exact, added)


FOLLOWED: list[tuple[int, Callable[..., Any]]] = [  # how many kernels are left, and functions of matrices
    (0, lambda p, b, c, d, s: ad.nn.relu(p() + b)),
    (0, lambda p, b, c, d, s: c - 0.1 * p()),
    (0, lambda p, b, c, d, s: (y := p(), ad.nn.relu(y) + c)),  # the product itself is wanted as well
    (0, lambda p, b, c, d, s: (d * p() + b) * s),
    (0, lambda p, b, c, d, s: (y := p(), v := 0.9 * c + y, d - 0.1 * v)[1:]),  # with what does not follow from it
    (0, lambda p, b, c, d, s: (y := p(), ad.where(c > 0.0, y, ad.sqrt(ad.abs(c))))[1]),
    (1, lambda p, b, c, d, s: ad.clip(p(), -1.0, 1.0).reshape(-1)[3:]),  # the others are copied
    (1, lambda p, b, c, d, s: (x := p(), y := ad.where(c > 0.0, x, 0.0), y.sum(axis=0))[1:]),
    (1, lambda p, b, c, d, s: (y := p() * s, y.sum(axis=-1), (y * d).max())),
    (1, lambda p, b, c, d, s: ad.nn.softmax(p() * 0.5 + c)),  # the scores would be written for it
    (1, lambda p, b, c, d, s: ad.tanh(p() + b)),  # a function that needs registers
    (1, lambda p, b, c, d, s: p() + c[::-1, ::-1]),
    (1, lambda p, b, c, d, s: (p() > c, p() * 2)),  # truth is not written by tiles
    (0, lambda p, b, c, d, s: p().T * 2 + b[0]),
]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("blocks", [False, True])
def test_what_follows_a_product_is_computed_in_its_tiles(
    dtype: str, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit as in a kernel of its own, for sums of one part and of several, and by threads."""
    if blocks:
        monkeypatch.setattr(gemm, "_BLOCK", 1 << 13)
    rng = np.random.default_rng(3)
    of = lambda *shape: rng.normal(size=shape).astype(dtype)
    for i, (m, k, n) in enumerate(((40, 30, 20), (37, 130, 70), (66, 33, 51))):
        xs = of(m, k), of(k, n), of(n), of(m, n), of(m, 1), of()
        if i == 1:
            xs = of(k, m).T, of(n, k).T, *xs[2:]
        for count, f in FOLLOWED:
            run = lambda x, y, *others, f=f: f(lambda: x @ y, *others)
            joined = ad.compile(run)
            assert len(joined.lower(*xs).kernels) == 1 + count
            with monkeypatch.context() as apart:
                apart.setattr(following, "join", lambda plan: None)
                expected = ad.tree.flatten(ad.compile(run)(*map(ad.asarray, xs)))[0]
            same(ad.tree.flatten(joined(*map(ad.asarray, xs)))[0], expected)


def test_what_follows_products_of_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    x, y, b, c, mask = (rng.normal(size=s) for s in ((2, 3, 20, 30), (2, 3, 30, 25), (25,), (2, 3, 20, 25), (20, 25)))
    for others, f in (
        ((x, y, b, c), lambda x, y, b, c: ad.nn.relu(x @ y + b) * c),
        ((x, y[0, 0], b, c), lambda x, y, b, c: ad.nn.relu(x @ y + b) * c),
        ((x, y, mask), lambda x, y, mask: x @ y * 0.5 + mask),
        ((x, y[0, 0], mask), lambda x, y, mask: x @ y * 0.5 + mask),
        ((x, y, c[:, :1], c[:, :, :1, :1]), lambda x, y, c, d: (x @ y - c) * d),
        ((x[:1, :1], y[0, 0], b), lambda x, y, b: ad.nn.relu(x @ y + b)),
    ):
        found = ad.compile(f)(*map(ad.asarray, others))
        with monkeypatch.context() as apart:
            apart.setattr(following, "join", lambda plan: None)
            same([found], [ad.compile(lambda *xs, f=f: f(*xs))(*map(ad.asarray, others))])


def test_parameters_are_moved_where_they_are_if_they_are_donated() -> None:
    """Also where the sum has parts, or somebody reads them after the gradient."""
    rng = np.random.default_rng(5)
    w = rng.normal(size=(60, 50))
    for k in (20, 300):
        x, g = rng.normal(size=(k, 60)), rng.normal(size=(k, 50))
        step = ad.compile(lambda w, x, g: w - 0.1 * (x.T @ g), donate=0)
        both = ad.compile(lambda w, x, g: (y := x.T @ g, g @ w.T, w - 0.1 * y)[1:], donate=0)
        for f in (step, both):
            given = ad.tensor(w)
            place = given.detach().numpy().ctypes.data
            found = f(given, ad.tensor(x), ad.tensor(g))
            *others, moved = found if isinstance(found, tuple) else (found,)
            assert moved.detach().numpy().ctypes.data == place
            np.testing.assert_allclose(moved.numpy(), w - 0.1 * (x.T @ g), rtol=1e-12, atol=1e-12)
            for other in others:
                np.testing.assert_allclose(other.numpy(), g @ w.T, rtol=1e-12, atol=1e-12)


WAYS: list[Callable[[Any], Any]] = [  # how the rows and columns of a matrix may lie in memory
    lambda x: np.pad(x, ((0, 2), (0, 3)))[:-2, :-3],
    lambda x: np.pad(x, ((0, 2), (0, 3))).T.copy().T[:-2, :-3],
    lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
]


@pytest.mark.slow
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("twice", [False, True])
def test_products_by_tiles(width: int, twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For processors of each kind, whatever this one is: all sizes, read as they lie, and nothing else is written."""
    if width > machine.vector_bytes():
        pytest.skip("this processor has no such vectors")
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    monkeypatch.setattr(gemm, "_APART", 64)
    for tiles, count in {"_OFTEN": 3, "_SOON": 3, "_PANELS": 1}.items():
        monkeypatch.setattr(gemm, tiles, count)
    monkeypatch.setattr(gemm, "multiplies_twice", lambda: twice)
    monkeypatch.setattr(gemm, "registers", lambda: 32 if width == 64 else 16)
    monkeypatch.setattr(gemm, "adds_products", lambda: width > 16)
    rng, given, called = np.random.default_rng(width), [], {}
    calls: list[str] = []
    for m, k, n in ((1, 1, 2), (2, 3, 40), (5, 70, 17), (24, 300, 33), (37, 2, 5), (1, 130, 100), (120, 130, 70)):
        for dtype, of_x, of_y in itertools.product(("float32", "float64"), WAYS, WAYS):
            if rng.random() < (0.8 if m * n > 500 else 0.4):
                continue
            x, y = (way(rng.normal(size=shape).astype(dtype)) for way, shape in ((of_x, (m, k)), (of_y, (k, n))))
            strides = [tuple((np.array(z.strides) // z.itemsize).tolist()) for z in (x, y)]
            for some in (0.0, 0.5):  # of sizes and strides are given when it runs
                named = [
                    f"%n{i}" if rng.random() < some else size for i, size in enumerate((m, k, n, *sum(strides, ())))
                ]
                rows, summed, columns, *apart = named
                b = text.Builder()
                b.called = called
                for name, size in zip(named, (m, k, n, *sum(strides, ())), strict=True):
                    if isinstance(name, str):
                        b.do(f"{name} = add i64 0, {size}")
                layouts = Layout((rows, summed), 0, tuple(apart[:2])), Layout((summed, columns), 0, tuple(apart[2:]))
                gemm.product(b, x.dtype, *layouts, ["%x", "%y", "%o"])
                calls += [f"define void @run{len(given)}(ptr %x, ptr %y, ptr %o) {{", *b.lines, "ret void", "}"]
                given.append((x, y))
    made = native_code.built("\n".join([*called.values(), *calls, "attributes #0 = { nounwind }"]))
    for i, (x, y) in enumerate(given):
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(made.get_function_address(f"run{i}"))
        out = np.full(x.shape[0] * y.shape[1] + 2, 7.0, x.dtype)
        run(x.ctypes.data, y.ctypes.data, out[1:].ctypes.data)
        exact, added = (of(x.astype(np.longdouble)) @ of(y.astype(np.longdouble)) for of in (np.positive, np.abs))
        assert is_as_exact(out[1:-1].reshape(exact.shape), x @ y, exact, added), (x.strides, y.strides)
        assert out[0] == out[-1] == 7.0


def test_products_of_special_values() -> None:
    """One summed element is a product, and the sign of a zero is that of a sum."""
    edges = np.array(EDGES)
    x, y = np.outer(edges, np.ones(70))[..., :1], np.resize(edges, (1, 700))
    wide = np.resize(edges, (60, 80))
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (wide[:, :1], y), (np.eye(80), wide.T), (wide, np.eye(80)[:, 5:])):
            same([ad.compile(ad.matmul)(ad.asarray(a), ad.asarray(b))], [ad.asarray(a) @ ad.asarray(b)])


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_products_with_unit_vectors_are_copies_of_what_is_finite(dtype: str) -> None:
    """One after the other, as of a chunk of a Jacobian; the other operand lies as it is, across, or apart."""
    finite = np.random.default_rng(5).integers(-9, 9, (7, 19)).astype(dtype)
    finite[2, 3], finite[6] = -0.0, 2.0**-140
    special = finite.copy()
    special[1, 4], special[5, 0], special[5, 18] = np.inf, np.nan, -np.inf
    layouts = (lambda y: y, lambda y: y.T, lambda y: y.T[2:, ::2], lambda y: y[1:, 3:9], lambda y: y[:, ::-1])
    ways = (lambda p, y: p, lambda p, y: p * 2 + y[0], lambda p, y: p.T.sum(axis=0), lambda p, y: [p, p + y[: len(p)]])
    for i, (lay, then) in enumerate(itertools.product(layouts, ways)):
        n = len(lay(finite))
        units = np.eye(n - i % 2, n, i % 2, dtype=dtype)
        f: Any = lambda values, lay=lay, units=units, then=then: then(ad.asarray(units) @ lay(values), lay(values))
        program = ad.compile(f)
        for values in map(ad.tensor, (finite, special)):
            with np.errstate(all="ignore"):
                same(*[ad.tree.flatten(g(values))[0] for g in (program, f)])
        assert any("chosen" in line for line in program.lower(values).kernels)


def test_derivatives_by_unit_vectors_of_what_is_not_finite() -> None:
    rng = np.random.default_rng(6)
    x, w, y = rng.normal(size=(40, 9)), rng.normal(size=9), rng.normal(size=40)
    f = lambda w, x, y: ((ad.tanh(x @ w) - y) ** 2).sum() + ad.log1p(ad.exp(x @ w)).sum()
    layer = lambda w, x, u: ad.tanh(w @ x) @ u
    for _ in range(2):
        for g, *given in (
            (ad.hessian(f), w, x, y),
            (ad.jacobian(layer, mode="forward"), w, x.T, x),
            (ad.jacobian(layer, mode="reverse"), w, x.T, x),
        ):
            tensors = [ad.asarray(z) for z in given]
            with np.errstate(all="ignore"):
                found, expected = ad.compile(g)(*tensors), g(*tensors)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
        x[3, 2] = np.inf


def test_long_chains() -> None:
    def chain(x: Any) -> Any:
        for i in range(1500):
            x = x.reshape((3, 1) if i % 2 else (3,)) if i < 1400 else x * 1.5 - 1.0
        return x

    x = np.linspace(0.9, 1.1, 3)
    same([ad.compile(chain)(ad.asarray(x))], [chain(ad.asarray(x))])


@pytest.mark.slow
def test_a_chain_and_its_gradient_need_no_memory_between() -> None:
    def chain(x: Any) -> Any:
        for _ in range(500):
            x = ad.sin(x) * x + 0.1
        return x.sum()

    slope, x = ad.compile(ad.grad(chain)), np.linspace(0.0, 1.0, 100)
    assert slope.lower(x).memory == 0
    np.testing.assert_allclose(slope(x), ad.grad(chain)(x), rtol=1e-9)


def test_many_elementary_functions_are_called() -> None:
    """Few are part of the loop; of many LLVM would take minutes."""

    def powers(count: int) -> str:
        def f(x: Any) -> Any:
            for _ in range(count):
                x = ad.sin(x) * x + 0.1
            return x

        return ad.compile(ad.grad(lambda x: f(x).sum())).lower(np.linspace(0.0, 1.0, 100)).llvm

    assert text.INLINE in powers(2)
    assert text.INLINE not in powers(200)
