"""Numbers near both ends of a dtype: what has a value there has it, and its first derivative, without overflow."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from functions import FUNCTIONS
from vocabulary import Sample

import adjoint as ad

inf, nan = math.inf, math.nan
F = ad.nn
BASE = np.array([1.0, 2.0, 4.0])

# functions of x for which f(s x) = s^n f(x), and n
SLOPES_VANISH = {"normalize", "cosine_similarity", "layer_norm", "group_norm"}  # before 1 / s does, but not the values
SCALED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "vector_norm": (ad.linalg.vector_norm, 1),
    "vector_norm along an axis": (lambda x: ad.linalg.vector_norm(ad.stack([x, -x]), axis=1), 1),
    "vector_norm along the first axis": (lambda x: ad.linalg.vector_norm(ad.stack([x, -x]), axis=0, keepdims=True), 1),
    "vector_norm, complex": (lambda x: ad.linalg.vector_norm(x * (1 + 1j)), 1),
    "matrix_norm": (lambda x: ad.linalg.matrix_norm(ad.stack([x, -x])), 1),
    "std": (ad.std, 1),
    "std along an axis": (lambda x: ad.std(ad.stack([x, x]), axis=1), 1),
    "nanstd": (ad.nanstd, 1),
    "hypot": (lambda x: ad.hypot(x[0], x[1]), 1),
    "abs, complex": (lambda x: ad.abs(x * (1 + 1j)), 1),
    "cdist": (lambda x: ad.cdist(x[None], -x.detach()[None]), 1),
    "pairwise_distance": (lambda x: F.pairwise_distance(x, -x.detach(), eps=0), 1),
    "normalize": (lambda x: F.normalize(x, axis=0, eps=0.0), 0),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, x[::-1] * [1.0, -0.5, 0.25], axis=0, eps=0.0), 0),
    "layer_norm": (lambda x: F.layer_norm(x, (3,), eps=0.0) * [1, 5, 2], 0),
    "group_norm": (lambda x: F.group_norm(x[None, None], 1, eps=0.0) * [1, 5, 2], 0),
}


def value_and_slope(f: Any, x: Any) -> tuple[Any, Any]:
    x = ad.tensor(x).require_grad()
    out = f(x)
    return out.numpy(), out.backward()[x].numpy()


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize(("dtype", "scales"), [("f4", (1e20, 3e37, 1e-20)), ("f8", (1e200, 2e307, 1e-200))])
def test_scales_go_through(name: str, dtype: str, scales: tuple[float, ...]) -> None:
    f, power = SCALED[name]
    usual = value_and_slope(f, BASE.astype(dtype))
    for scale in scales:
        if name.endswith("_norm") and power == 0 and scale < 1:
            continue  # the variance is added to eps, and vanishes
        if name in ("cdist", "pairwise_distance", "hypot", "matrix_norm") and scale in (3e37, 2e307):
            continue  # twice the largest is no number of the dtype
        value, slope = value_and_slope(f, (BASE * scale).astype(dtype))
        tolerance = 2e-6 if dtype == "f4" else 1e-13
        np.testing.assert_allclose(value, usual[0] * dtype_of(dtype)(scale) ** power, rtol=tolerance)
        limits = np.finfo(dtype)
        if name not in SLOPES_VANISH and limits.tiny / limits.eps < float(scale) ** (power - 1) < limits.max / 8:
            expected = usual[1].astype("f8") * float(scale) ** (power - 1)
            # what cancels is as exact as the terms that do
            np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=tolerance * float(scale) ** (power - 1))


def dtype_of(name: str) -> Any:
    return np.dtype(name).type


def test_the_least_numbers() -> None:
    """Below the smallest normal number."""
    x = np.array([1e-40, 2e-40, 4e-40], dtype="f4")
    np.testing.assert_allclose(ad.std(ad.tensor(x)).item(), np.std(x.astype("f8")), rtol=1e-4)
    np.testing.assert_allclose(ad.linalg.norm(ad.tensor(x)).item(), np.linalg.norm(x.astype("f8")), rtol=1e-4)
    for f in (ad.std, ad.linalg.norm):
        np.testing.assert_allclose(ad.grad(f)(x), ad.grad(f)(x.astype("f8")), rtol=1e-4)


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss, functools.partial(F.smooth_l1_loss, beta=0.5)])
def test_losses_of_infinite_differences(loss: Any) -> None:
    for x, y in (([inf, 1.0, -inf], [0.0, 0.0, 0.0]), ([3e38, 1.0, -3e38], [-3e38, 0.0, 3e38])):
        a, b = (ad.tensor(np.array(v, dtype="f4")).require_grad() for v in (x, y))
        with np.errstate(all="ignore"):
            out = loss(a, b)
            grads = out.backward()
        assert out.item() == inf
        np.testing.assert_allclose(grads[a].numpy(), [1 / 3, 1 / 3, -1 / 3])
        np.testing.assert_allclose(grads[b].numpy(), [-1 / 3, -1 / 3, 1 / 3])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_slopes_of_infinite_numbers(dtype: str) -> None:
    x = np.array([-inf, -3e38, -3.0, -1.5, 3.0, 3e38, inf], dtype=dtype)
    slopes = [0, 0, 0, 0, 1, 1, 1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ad.grad(lambda x: F.hardswish(x).sum())(x), slopes)
        np.testing.assert_array_equal(ad.jvp(F.hardswish, (x,), (np.ones_like(x),))[1], slopes)
        second = ad.grad(lambda x: ad.grad(lambda x: F.hardswish(x).sum())(x).sum())(x)
    np.testing.assert_allclose(second, [0, 0, 0, 1 / 3, 0, 0, 0], rtol=1e-7)


def test_infinities_and_nans_of_norms() -> None:
    for x, expected in (([inf, 1.0], inf), ([nan, 1.0], nan), ([1e200, nan], nan), ([0.0, 0.0], 0.0), ([], 0.0)):
        for axis in (None, 0):
            with np.errstate(all="ignore"):
                found = ad.linalg.vector_norm(ad.tensor(np.array(x)), axis=axis).item()
            np.testing.assert_equal(found, expected)


def test_the_tightest_norms_beside_usual_ones() -> None:
    """Rows of all sizes in one call, real and complex."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 7)) * 10.0 ** np.linspace(-290, 290, 40)[:, None]
    for x in (rows, rows.T.copy().T, rows + 1j * rows[:, ::-1]):
        ours = ad.linalg.vector_norm(ad.tensor(x), axis=1).numpy()
        np.testing.assert_allclose(ours, [math.hypot(*abs(row)) for row in x], rtol=1e-14)


# --- all functions at large and small numbers ---

# whose values or first derivatives overflow or vanish before they have to, and why
KNOWN: dict[str, str] = {
    **dict.fromkeys(
        "corrcoef cov nn.rms_norm nn.gaussian_nll_loss nn.local_response_norm nn.cosine_embedding_loss "
        "nn.scaled_dot_product_attention nn.batch_norm nn.layer_norm nn.group_norm nn.instance_norm".split(),
        "products of two such numbers, as the definition has them and as in PyTorch",
    ),
    **dict.fromkeys(
        "cdist renorm nn.pdist nn.pairwise_distance nn.normalize nn.lp_pool1d nn.lp_pool2d "
        "nn.triplet_margin_loss nn.triplet_margin_with_distance_loss".split(),
        "norms of other orders than 2 take powers, as in PyTorch",
    ),
    **dict.fromkeys(("polyfit",), "squares of such a matrix"),
    **dict.fromkeys("interp histogram".split(), "places so far apart, or so near"),
    **dict.fromkeys(
        "nn.log_softmax nn.gumbel_softmax nn.binary_cross_entropy nn.multilabel_soft_margin_loss "
        "nn.multilabel_margin_loss".split(),
        "differences from 1, or from equal parts of it, that rounding takes",
    ),
}
ELSEWHERE = {"random", "special", "linalg", "fft"}  # draws; functions over their ranges; scales of matrices go through
SCALES = {"f8": (1e200, 1e-200), "f4": (1e25, 1e-25)}


def results(f: Any, args: list[Any], device: Any) -> list[Any]:
    """Values and gradients, as NumPy's arrays; None for no gradient."""
    xs = [ad.asarray(a, device=device).require_grad() if is_float(a) else a for a in args]
    out = f(*xs)
    outs = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.dtype.kind in "fc"]
    tracked = [o for o in outs if o.is_tracked()]
    grads = tracked[0].backward() if tracked else {}
    return [o.numpy() for o in outs] + [
        grads[x].numpy() if is_float(a) and x in grads else None for a, x in zip(args, xs, strict=True)
    ]


def is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def lost(name: str) -> list[str]:
    """Where a number of the dtype comes out as zero or as none, by 40-digit arithmetic."""
    found = []
    for dtype, scales in SCALES.items():
        least, most = float(np.finfo(dtype).tiny) * 1e3, float(np.finfo(dtype).max) / 1e3
        for scale in scales:
            for seed in range(3):
                f, *args = FUNCTIONS[name](Sample(seed))
                if sum(a.size for a in args if is_float(a)) > 40:
                    continue
                complex_one = {"f8": "c16", "f4": "c8"}[dtype]
                args = [
                    (a * scale).astype(complex_one if a.dtype.kind == "c" else dtype) if is_float(a) else a
                    for a in args
                ]
                try:
                    exact = results(f, args, ad.Autodiff(ad.Reference(40)))
                except (ad.errors.AdjointError, ArithmeticError, ValueError):
                    continue
                try:
                    ours = results(f, args, ad.Autodiff(ad.NumPy()))
                except ad.errors.SingularError as error:
                    found.append(f"{dtype} {scale}: {error}")
                    continue
                for x, y in zip(ours, exact, strict=True):
                    if x is None or y is None:
                        continue
                    size = np.abs(y)
                    # what cancelled is rounding of larger terms
                    bound = max(least, 1e-6 * np.max(size, initial=0, where=np.isfinite(size)))
                    wrong = (size > bound) & (size < most) & ~(np.isfinite(x) & (x != 0))
                    if wrong.any():
                        found.append(f"{dtype} {scale}: {x[wrong][0]} for {y[wrong][0]:.3g}")
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.partition(".")[0] not in ELSEWHERE])
def test_what_is_a_number_comes_out_as_one(name: str) -> None:
    found = lost(name)
    assert bool(found) == (name in KNOWN), found or f"{name} passes: take it off the list"


LENGTHS: dict[str, Callable[[Any], Any]] = {
    "norm": ad.linalg.norm,
    "std": ad.std,
    "hypot": lambda v: ad.hypot(ad.hypot(v[0], v[1]), v[2]),
    "abs": lambda v: ad.abs(v[0] + 1j * v[1]) + ad.abs(v[2]),
    "norm of complex numbers": lambda v: ad.linalg.vector_norm(v[:2] + 1j * v[1:]),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_slopes_of_lengths_do_not_depend_on_their_sizes(name: str) -> None:
    f, x = LENGTHS[name], np.array([0.3, -0.4, 0.7])
    slope, curvature = ad.grad(f)(x), ad.hessian(f)(x)
    with Each() as each:
        for size in (1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300):
            with each(size):
                np.testing.assert_allclose(ad.grad(f)(x * size), slope, rtol=1e-13)
                np.testing.assert_allclose(ad.jacobian(f, mode="forward")(x * size), slope, rtol=1e-13)
                np.testing.assert_allclose(ad.hessian(f)(x * size) * size, curvature, rtol=1e-12, atol=1e-14)
        for size in (1e-20, 1e20):
            with each(size, "float32"):
                small = (x * size).astype(np.float32)
                np.testing.assert_allclose(ad.grad(f)(small), slope, rtol=2e-6)
                found = ad.hessian(f)(small).astype(np.float64) * size
                np.testing.assert_allclose(found, curvature, rtol=1e-5, atol=1e-6)


def test_slopes_of_angles_do_not_depend_on_lengths() -> None:
    for scale in (1e-170, 1e-300, 1.0, 1e200):
        slopes = ad.grad(ad.atan2, argnums=(0, 1))(3 * scale, 4 * scale)
        np.testing.assert_allclose(np.array(slopes) * scale, [4 / 25, -3 / 25], rtol=1e-14)
        moved = ad.jvp(ad.atan2, (3 * scale, 4 * scale), (scale, 0.0))[1]
        np.testing.assert_allclose(moved, 4 / 25, rtol=1e-14)
        against = ad.grad(functools.partial(lambda x, y: ad.atan2(y, x), 4 * scale))(3 * scale)  # one is a number
        np.testing.assert_allclose(against * scale, 4 / 25, rtol=1e-14)
    assert ad.grad(ad.atan2, argnums=(0, 1))(0.0, 0.0) == (0.0, 0.0)


def test_a_loss_is_finite_where_its_terms_are() -> None:
    x = np.array(1.7e308)
    value, slope = ad.value_and_grad(lambda x: F.smooth_l1_loss(x, np.zeros(()), beta=2.0))(x)
    assert (value, slope) == (1.7e308, 1.0)


@pytest.mark.parametrize("beta", [1e-5, 1.0, 2.0, 3.0, 1e20, 1e30, np.inf])
@pytest.mark.parametrize("distance", [0.0, 1e-10, 1.0, -5.0, 1e10, 1e25, 3e38])
def test_smooth_l1_loss_at_all_sizes(beta: float, distance: float) -> None:
    x = np.float32(distance)
    value, slope = ad.value_and_grad(lambda x: F.smooth_l1_loss(x, np.float32(0), beta=beta))(x)
    size, inside = abs(float(x)), abs(float(x)) < beta
    np.testing.assert_allclose(value, size * (size / beta) / 2 if inside else size - beta / 2, rtol=3e-7, atol=1e-38)
    np.testing.assert_allclose(slope, float(x) / beta if inside else np.sign(x), rtol=3e-7, atol=1e-38)


def test_a_slope_is_finite_where_its_variance_is_not() -> None:
    x = np.array([3e38, -3e38, 1e38], "f4")
    with np.errstate(over="ignore"):
        found = ad.grad(ad.var)(x)
    np.testing.assert_allclose(found, ad.grad(ad.var)(x.astype("f8")), rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_of_betaln_do_not_cancel(order: int) -> None:
    """Of one large argument they are differences of what is nearly equal."""
    mpmath = peer("mpmath")
    for a, b in ((1e7, 3.0), (1e10, 2.0), (1e12, 1e3), (64.0, 1e-3), (65.0, 1e8), (500.0, 700.0), (60.0, 0.5)):
        found = ad.grad(ad.special.betaln)(a, b) if order == 1 else ad.grad(ad.grad(ad.special.betaln))(a, b)
        with mpmath.workdps(50):
            exact = mpmath.polygamma(order - 1, a) - mpmath.polygamma(order - 1, mpmath.mpf(a) + b)
        np.testing.assert_allclose(found, float(exact), rtol=3e-13, err_msg=f"{a} {b}")
