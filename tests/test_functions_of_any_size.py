"""Public functions that compute with sizes: recorded once for any, with results as without compiling."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, Draw
from hypothesis import Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from test_compile_sizes import rows, same_numbers
from test_compiled import ASKS, alike, derivatives

import adjoint as ad
from adjoint.compiler import programs
from adjoint.compiler.sizes import Symbols


def line(x: Any) -> Any:
    return x.T.reshape((1, 3, x.shape[0]))


def image(x: Any) -> Any:
    return ad.concat([x, x * 0.5, x + 1, x - 1], axis=1)[None, None]


def symmetric(x: Any) -> Any:
    return x @ x.T


STEPS = ad.nn.GRU(3, 2, num_layers=2, bidirectional=True)


# from (n, 3) to results
FORMS: dict[str, Any] = {
    "std": lambda x: x.std(axis=0),
    "std of all": lambda x: ad.std(x, correction=1),
    "np.std": lambda x: np.std(x, axis=0, ddof=1),
    "nanstd": lambda x: ad.nanstd(x, axis=0),
    "standardized": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
    "median": lambda x: ad.median(x, axis=0),
    "nanmedian": lambda x: ad.nanmedian(x, axis=0),
    "quantile": lambda x: ad.quantile(x, np.array([0.1, 0.5, 0.77]), axis=0),
    "percentile": lambda x: ad.percentile(x, 30.0),
    "nanquantile": lambda x: ad.nanquantile(x, 0.3, axis=0),
    **{
        f"quantile {method}": lambda x, method=method: ad.quantile(x, 0.3, axis=0, method=method)
        for method in ("lower", "higher", "nearest", "midpoint", "hazen", "inverted_cdf", "closest_observation")
    },
    "cov": lambda x: ad.cov(x.T),
    "corrcoef": lambda x: ad.corrcoef(x.T),
    "attention": lambda x: ad.nn.scaled_dot_product_attention(x.T, x.T, x.T),
    "avg_pool1d": lambda x: ad.nn.avg_pool1d(line(x), 2, padding=1),
    "avg_pool1d of the image": lambda x: ad.nn.avg_pool1d(line(x), 3, stride=1, padding=1, count_include_pad=False),
    "avg_pool2d, rounded up": lambda x: ad.nn.avg_pool2d(image(x), 3, stride=2, padding=1, ceil_mode=True),
    "lp_pool2d": lambda x: ad.nn.lp_pool2d(image(x), 2, (1, 2)),
    "places of max_pool2d": lambda x: ad.nn.max_pool2d(image(x), 3, padding=1, stride=2, return_indices=True),
    "max_unpool2d": lambda x: ad.nn.max_unpool2d(
        *ad.nn.max_pool2d(image(x), 3, padding=1, stride=2, return_indices=True), 3, 2, 1, output_size=(x.shape[0], 12)
    ),
    "adaptive_avg_pool2d": lambda x: ad.nn.adaptive_avg_pool2d(image(x), (None, 5)),
    "adaptive_avg_pool1d": lambda x: ad.nn.adaptive_avg_pool1d(line(x), 2),
    "adaptive_max_pool2d": lambda x: ad.nn.adaptive_max_pool2d(image(x), (2, 5)),
    "fractional_max_pool2d": lambda x: ad.nn.fractional_max_pool2d(image(x), 1, output_ratio=(0.9, 0.5)),
    "interpolate nearest": lambda x: ad.nn.interpolate(image(x), scale_factor=2),
    "interpolate nearest four times": lambda x: ad.nn.interpolate(image(x), scale_factor=(4, 1)),
    "interpolate nearest, scales from sizes": lambda x: ad.nn.interpolate(
        image(x), scale_factor=2, recompute_scale_factor=True
    ),
    "interpolate nearest-exact": lambda x: ad.nn.interpolate(image(x), scale_factor=1.5, mode="nearest-exact"),
    "interpolate bilinear": lambda x: ad.nn.interpolate(image(x), scale_factor=2, mode="bilinear"),
    "interpolate corners": lambda x: ad.nn.interpolate(image(x), scale_factor=2, mode="bilinear", align_corners=True),
    "interpolate bicubic": lambda x: ad.nn.interpolate(image(x), scale_factor=1.5, mode="bicubic"),
    "interpolate to a size": lambda x: ad.nn.interpolate(image(x), size=(7, 5), mode="bilinear"),
    "interpolate nearest to a size": lambda x: ad.nn.interpolate(image(x), size=(7, 5)),
    "affine_grid": lambda x: ad.nn.affine_grid(ad.eye(2, 3)[None], (1, 1, x.shape[0], 4)),
    "deform_conv2d": lambda x: ad.nn.deform_conv2d(
        image(x), 0.1 * ad.ones((1, 18, x.shape[0], 12)), ad.ones((1, 1, 3, 3)), padding=1
    ),
    "put_along_axis": lambda x: ad.put_along_axis(x, ad.argmax(x, axis=0, keepdims=True), 0.0, axis=0),
    "multi_margin_loss": lambda x: ad.nn.multi_margin_loss(x, ad.argmin(x, axis=1)),
    "embedding_bag": lambda x: ad.nn.embedding_bag(ad.argsort(x, axis=1), x[:1] + ad.arange(3.0)[:, None]),
    "segment_sum": lambda x: ad.segment_sum(x, ad.argmin(x, axis=1), x.shape[0] + 2),
    "toeplitz": lambda x: ad.linalg.toeplitz(x[:, 0], x[:, 1]),
    "circulant": lambda x: ad.linalg.circulant(x[:, 0]),
    "block_diag": lambda x: ad.linalg.block_diag(x, x.T),
    "polyder": lambda x: ad.polyder(x[:, 0]),
    "polyint": lambda x: ad.polyint(x[:, 0], 2),
    "polyadd": lambda x: ad.polyadd(x[1:, 0], x[:, 0]),
    "polydiv": lambda x: ad.polydiv(ad.concat([x[:, 0], ad.ones(3)]), ad.asarray([2.0, 1.0])),
    "delete": lambda x: (ad.delete(x, -1, axis=0), ad.delete(x, slice(0, 1), axis=0)),
    "insert": lambda x: ad.insert(x, [0, -1], 1.0, axis=0),
    **{
        f"pad {mode}": lambda x, mode=mode: ad.pad(x, ((4, 3), (0, 1)), mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "median", "linear_ramp")
    },
    "pad odd": lambda x: ad.pad(x, ((1, 2), (0, 0)), mode="reflect", reflect_type="odd"),
    "pad by a size": lambda x: ad.pad(x, ((0, x.shape[0]), (0, 0))),
    "stft": lambda x: abs(ad.fft.stft(ad.concat([*[x[:, 0]] * 4, ad.ones(8)]), 8)),
    "frequencies": lambda x: (ad.fft.fftfreq(x.shape[0]), ad.fft.rfftfreq(x.shape[0], 0.5)),
    "spaced": lambda x: (
        ad.logspace(0, 1, x.shape[0]),
        ad.geomspace(-1, -3, x.shape[0]),
        ad.linspace(0, 1, x.shape[0] - 1),
    ),
    "backwards": lambda x: (x[-2::-1], x[x.shape[0] - 1 : 0 : -1], x[::-2], x[x.shape[0] : 0 : -3]),
    "places": lambda x: (x[[0, -1]], x[x.shape[0] // 2, 1], x[ad.arange(x.shape[0]), 0]),
    "triangles": lambda x: (symmetric(x)[ad.tril_indices(x.shape[0])], x[ad.triu_indices(x.shape[0], 0, x.shape[1])]),
    "shifted triangles": lambda x: [
        symmetric(x)[find(x.shape[0], k)] for k in (-1, 1) for find in (ad.tril_indices, ad.triu_indices)
    ],
    "pdist": lambda x: ad.nn.pdist(x),
    "roots of sizes": lambda x: (x / x.shape[0] ** 0.5, ad.sqrt(x.shape[0]), ad.log(x.size), x * x.shape[0] ** 2),
    "filled": lambda x: (ad.full(2, x.shape[0] / 3), ad.asarray(x.shape[0] / 3), ad.asarray(x.shape[0], ad.float32)),
    "listed": lambda x: (ad.asarray([x.shape[0] ** 0.5, 1.0]), ad.asarray([[x.shape[0]], [2]]), ad.tensor(x.shape[0])),
    "largest": lambda x: (np.maximum(x, x.shape[0] / 4), np.minimum(x.shape[0], x)),
    "tri": lambda x: (ad.tri(x.shape[0]) @ x, ad.tri(x.shape[0], 5, k=-1)),
    "counted": lambda x: [ad.arange(x.shape[0], dtype=t) * 2 for t in (ad.float32, ad.float64, ad.float16)],
    "counted from": lambda x: (ad.arange(1.0, x.shape[0]) * x[1:, 0], ad.arange(0, 2 * x.shape[0], 2.0) * x[:, 1]),
    "indices": lambda x: (ad.indices(x.shape) * x, symmetric(x)[ad.diag_indices(x.shape[0])]),
    "where": lambda x: ad.where(x > 0, x.shape[0], 0.5),
    "wishart": lambda x: ad.stats.wishart.logpdf(
        symmetric(x) + ad.eye(x.shape[0]), x.shape[0] + 2.0, ad.eye(x.shape[0])
    ),
    "drawn": lambda x: (
        ad.nn.init.xavier_uniform(x.shape),
        ad.nn.init.kaiming_normal(x.shape),
        ad.random.normal(x.shape, std=x.shape[0] ** -0.5),
    ),
    "GRU": lambda x: STEPS(x)[0],
    "ctc_loss": lambda x: ad.nn.ctc_loss(ad.nn.log_softmax(x, axis=1), [1], [1], [1]),
}
NOT_OF_ONE_ROW = {"fractional_max_pool2d"}


@pytest.mark.parametrize("name", FORMS)
def test_functions_compute_with_sizes(name: str) -> None:
    for f in (FORMS[name], derivatives(FORMS[name])):
        g = ad.compile(lambda x, f=f: f(x), dynamic=True)

        def compare(n: int, f: Any = f, g: Any = g) -> None:
            x = ad.tensor(rows(n))
            with np.errstate(all="ignore"):
                with same_numbers():
                    expected = f(x)
                with same_numbers():
                    alike(g(x), expected)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of arrays of one or two rows, and that it was recorded often
            for n in (5, 4, 6, 3, 9, 2, 1, 7):
                if n > 1 or name not in NOT_OF_ONE_ROW:
                    compare(n)
            before = g._recordings
            for n in (17, 23, 41, 65, 83):  # as many more than a multiple of six
                compare(n)
        assert g._recordings <= before + 1  # where a window is longer than the arrays above
        assert not any(general.pinned for general in g._general.values())


ASKING = {  # why a function has to know the number of a size
    "chunk": "a list of as many parts",
    "combinations": "NumPy lists the places of all combinations",
    "delete": "NumPy finds what is left by more than a few places, or by a mask",
    "linalg.cross": "the components are taken apart; there are two or three",
    "linalg.solve_banded": "a row for each diagonal",
    "linalg.solveh_banded": "a row for each diagonal",
    "poly": "a step for each root",
    "polyval": "a step for each coefficient",
    "unstack": "a list of as many parts",
}


@pytest.mark.parametrize("slopes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_which_functions_ask_for_a_size(slopes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that asks is recorded for every size: whoever writes one that need not shall know it."""
    asked: set[str] = set()
    pin = Symbols.pin

    def noted(symbols: Symbols, size: Any) -> None:
        asked.add(name)
        pin(symbols, size)

    monkeypatch.setattr(Symbols, "pin", noted)
    for name in sorted(FUNCTIONS.keys() - ASKS.keys()):
        recorded(name, slopes)
    assert asked <= ASKING.keys()
    assert ASKING.keys() - asked <= (set() if slopes else {"linalg.solve_banded"})  # whose derivative asks


def recorded(name: str, slopes: bool) -> None:
    """Record a function with a symbol for each size."""

    @seeded(0)
    @settings(max_examples=1, phases=[Phase.generate])
    @given(data=st.data())
    def run(data: Any) -> None:
        f, *args = FUNCTIONS[name](Draw(data))
        xs = [ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in args]
        g = derivatives(f) if slopes else f
        with np.errstate(all="ignore"), same_numbers():
            ad.compile(lambda *xs: g(*xs), dynamic=True)(*xs)

    run()


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("std", "attention", "interpolate bilinear") else pytest.param(name, marks=pytest.mark.slow)
        for name in FORMS
    ],
)
def test_functions_of_any_size_are_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece of it for all sizes, or some where sizes choose; as exact as that for one size."""
    pytest.importorskip("llvmlite")
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    monkeypatch.setattr(programs, "_to_make", lambda graph: 1e9)  # none for a size alone
    for f in (FORMS[name], derivatives(FORMS[name])):
        g = ad.compile(lambda x, f=f: f(x), dynamic=True)
        for n in (17, 23, 41, 65, 83, 29):
            x = ad.tensor(rows(n))
            with np.errstate(all="ignore"):
                with same_numbers():
                    expected = f(x)
                with same_numbers():
                    alike(g(x), expected, rtol=1e-9)
        for p in [p for general in g._general.values() for p in general.programs]:
            assert not p.replay._is_fixed or all(e.name in NO_KERNELS for e in p.graph.equations), str(p.graph)


NO_KERNELS = {"index", "reshape", "permute_dims", "broadcast_to", "concat", "full"}  # views, and copies alone


@pytest.mark.parametrize("kind", [ad.nn.RNN, ad.nn.GRU])
def test_recurrent_layers_are_loops_in_recordings(kind: Any) -> None:
    """What is recorded does not grow with the number of steps, of one size or of any."""
    net = kind(3, 2, bidirectional=True)

    def length(n: int, **options: Any) -> int:
        lengths = np.array([n // 2, n])
        f = ad.compile(lambda x: net(x, lengths=lengths)[0], **options)
        return len(f.lower(ad.ones((n, 2, 3))).graph.equations)

    assert length(4) == length(40)
    assert length(4, dynamic=True) == length(40, dynamic=True)


@pytest.mark.parametrize("leaf", ["torch", "jax"])
def test_pairs_of_any_number_on_other_leaves(leaf: str) -> None:
    """JAX may have no double precision; what PyTorch calls imports modules, from functions made of source too."""
    pytest.importorskip(leaf)
    slope = ad.grad(lambda x: (ad.nn.pdist(x) ** 2).sum())
    f = ad.compile(slope)
    for n in (5, 9, 7, 12):
        x = ad.tensor(rows(n).astype(np.float32), device=leaf)
        np.testing.assert_allclose(np.asarray(f(x)), np.asarray(slope(x)), rtol=1e-4, atol=1e-5)
    assert f._recordings == 2
