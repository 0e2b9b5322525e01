"""Comparisons of the functions of networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

import adjoint as ad
from benchmarks.comparisons import SMALL, Comparison, M, W, X, Y, normal
from benchmarks.fields import expit, softmax

Value = Any

IMAGES = normal(8, 16, 28, 28)
SIGNAL, VOLUME = normal(8, 16, 800), normal(2, 8, 16, 20, 20)
LABELS = np.random.default_rng(1).integers(0, 400, 250)
SIGNS = np.where(Y > 0, np.float32(1), np.float32(-1))
ZEROONE = (Y > 0).astype(np.float32)
PROB = np.clip(np.abs(X) / 5, 0.01, 0.99)
FILTERS, FILTERS1 = normal(32, 16, 3, 3), normal(32, 16, 5)
VECTORS, NEAR, FAR = normal(1000, 100), normal(1000, 100), normal(1000, 100)
SIGN1000 = np.where(normal(1000) > 0, np.float32(1), np.float32(-1))
TABLE = normal(5000, 64)
WORDS = np.random.default_rng(2).integers(0, 5000, 1600)
GAMMA, BETA = normal(400), normal(400)
CHANNELS = normal(16), normal(16)
Q, K, V = normal(8, 4, 64, 48), normal(8, 4, 64, 48), normal(8, 4, 64, 48)
GRID = np.random.default_rng(3).uniform(-1, 1, (8, 28, 28, 2)).astype(np.float32)


def _windows(x: Value, k: int, s: int) -> Value:
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(-2, -1))[..., ::s, ::s, :, :]


def _pooled(join: Any, axes: int) -> Callable[..., Value]:
    """Over windows of two that do not overlap: one slice joined with the other, axis after axis."""

    def run(x: Value) -> Value:
        for axis in range(x.ndim - axes, x.ndim):
            before = (slice(None),) * axis
            x = join(x[(*before, slice(0, None, 2))], x[(*before, slice(1, None, 2))])
        return x / 2**axes if join is np.add else x

    return run


def _lp_pool(x: Value) -> Value:
    return np.sqrt(4 * _pooled(np.add, 2)(x * x))


def _conv2d(x: Value, w: Value) -> Value:
    columns = _unfold(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))))
    return (w.reshape(32, -1) @ columns).reshape(8, 32, 28, 28)


def _conv1d(x: Value, w: Value) -> Value:
    patches = np.lib.stride_tricks.sliding_window_view(x, 5, axis=2).transpose(0, 1, 3, 2)
    return w.reshape(32, -1) @ patches.reshape(len(x), 80, -1)


def _unfold(x: Value) -> Value:
    patches = _windows(x, 3, 1).transpose(0, 1, 4, 5, 2, 3)
    return patches.reshape(len(x), x.shape[1] * 9, -1)


def _fold(x: Value) -> Value:
    out = np.zeros((8, 16, 28, 28), x.dtype)
    patches = x.reshape(8, 16, 3, 3, 26, 26)
    for i in range(3):
        for j in range(3):
            out[:, :, i : i + 26, j : j + 26] += patches[:, :, i, j]
    return out


def _normed(x: Value, axis: Any, gamma: Value, beta: Value) -> Value:
    t = x - x.mean(axis=axis, keepdims=True)
    t /= np.sqrt(np.mean(t * t, axis=axis, keepdims=True) + 1e-5)
    t *= gamma
    t += beta
    return t


def _batch_norm(x: Value, mean: Value, var: Value, gamma: Value, beta: Value) -> Value:
    scale = gamma / np.sqrt(var + 1e-5)
    return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]


def _rms_norm(x: Value, gamma: Value) -> Value:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.finfo(np.float32).eps) * gamma


def _response(x: Value) -> Value:
    wide = np.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
    total = wide[:, :16] + wide[:, 1:17] + wide[:, 2:18] + wide[:, 3:19] + wide[:, 4:20]
    return x / (1 + 1e-4 / 5 * total) ** 0.75


def _attention(q: Value, k: Value, v: Value) -> Value:
    return softmax(q @ k.transpose(0, 1, 3, 2) * (1 / math.sqrt(q.shape[-1]))) @ v


def _bilinear(x: Value, size: int) -> Value:
    for axis in (2, 3):
        n = x.shape[axis]
        at = np.clip((np.arange(size) + 0.5) * (n / size) - 0.5, 0, n - 1)
        low = at.astype(np.int64)
        high, t = np.minimum(low + 1, n - 1), (at - low).astype(x.dtype)
        t = t[:, None] if axis == 2 else t
        x = np.take(x, low, axis) * (1 - t) + np.take(x, high, axis) * t
    return x


def _grid_sample(x: Value, grid: Value) -> Value:
    b, c, h, w = x.shape
    at = [((grid[..., i] + 1) * n - 1) / 2 for i, n in ((1, h), (0, w))]
    wide = np.zeros((b, h + 2, w + 2, c), x.dtype)  # zeros around, so that nothing is out of range
    wide[:, 1:-1, 1:-1] = x.transpose(0, 2, 3, 1)
    low = [np.floor(a) for a in at]
    t = [a - l for a, l in zip(at, low, strict=True)]
    i, j = (l.astype(np.int64) + 1 for l in low)
    flat = wide.reshape(-1, c)
    first = (np.arange(b)[:, None, None] * (h + 2) + i) * (w + 2) + j
    out: Value = 0
    for di, wi in ((0, 1 - t[0]), (1, t[0])):
        for dj, wj in ((0, 1 - t[1]), (1, t[1])):
            out = out + flat[first + di * (w + 2) + dj] * (wi * wj)[..., None]
    return out.transpose(0, 3, 1, 2)


def _shuffled(x: Value) -> Value:
    b, c, h, w = x.shape
    return x.reshape(b, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(b, c // 4, 2 * h, 2 * w)


def _unshuffled(x: Value) -> Value:
    b, c, h, w = x.shape
    return x.reshape(b, c, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(b, 4 * c, h // 2, w // 2)


def _cross_entropy(x: Value, labels: Value) -> Value:
    t = x - x.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(t).sum(axis=1)) - t[np.arange(len(x)), labels])


def _smooth(x: Value, y: Value) -> Value:
    d = np.abs(x - y)
    c = np.minimum(d, 1)
    return np.mean(c * (d - 0.5 * c))


def _cosine(x: Value, y: Value) -> Value:
    return np.vecdot(x, y) / np.sqrt(np.vecdot(x, x) * np.vecdot(y, y))


def _distance(x: Value, y: Value) -> Value:
    d = x - y + np.float32(1e-6)
    return np.sqrt(np.vecdot(d, d))


def _margins(x: Value, labels: Value) -> Value:
    rows = np.arange(len(x))
    t = np.maximum(1 - x[rows, labels][:, None] + x, 0)
    t[rows, labels] = 0
    return t.sum() / x.size


def _embedded(x: Value, y: Value, s: Value) -> Value:
    c = _cosine(x, y)
    return np.mean(np.where(s > 0, 1 - c, np.maximum(c, 0)))


def _adaptive(x: Value) -> Value:
    return x.reshape(8, 16, 7, 4, 7, 4).mean(axis=(3, 5))


def _elu(x: Value) -> Value:
    return np.maximum(x, 0) + np.expm1(np.minimum(x, 0))


def _with(name: str, ours: Any, theirs: Any, *operands: Value) -> Comparison:
    return Comparison(name, ours, theirs, operands)


def _nn(name: str, theirs: Any, *operands: Value, suffix: str = "", equal: bool = True, **how: Any) -> Comparison:
    function = getattr(ad.nn, name)
    return Comparison(f"nn.{name}{suffix}", lambda *xs: function(*xs, **how), theirs, operands, equal=equal)


_SELU_A, _SELU_S = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

NETWORKS = [
    # activations
    _nn("relu", lambda x: np.maximum(x, 0), X),
    _nn("relu6", lambda x: np.clip(x, 0, 6), X),
    _nn("hardtanh", lambda x: np.clip(x, -1, 1), X),
    _nn("leaky_relu", lambda x: np.maximum(x, np.float32(0.01) * x), X),
    _nn("prelu", lambda x, a: np.maximum(x, 0) + a * np.minimum(x, 0), X, SMALL[:1]),
    _nn("rrelu", lambda x: np.maximum(x, np.float32(11 / 48) * x), X),
    _nn("elu", _elu, X),
    _nn("celu", _elu, X),
    _nn("selu", lambda x: _SELU_S * (np.maximum(x, 0) + _SELU_A * np.expm1(np.minimum(x, 0))), X),
    _nn("glu", lambda x: x[:, :200] * expit(x[:, 200:]), M),
    _nn("mish", lambda x: x * np.tanh(np.logaddexp(x, np.float32(0))), X),
    _nn("silu", lambda x: x * expit(x), X),
    _nn("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, X),
    _nn("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, X),
    _nn("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, np.float32(0)), X),
    _nn("softshrink", lambda x: x - np.clip(x, -0.5, 0.5), X),
    _nn("softsign", lambda x: x / (1 + np.abs(x)), X),
    _nn("tanhshrink", lambda x: x - np.tanh(x), X),
    _nn("threshold", lambda x: np.where(x > 0.1, x, np.float32(20)), X, threshold=0.1, value=20.0),
    _nn("softplus", lambda x: np.logaddexp(x, np.float32(0)), X),
    _nn("logsigmoid", lambda x: -np.logaddexp(-x, np.float32(0)), X),
    _nn("softmax", softmax, M),
    _nn("softmin", lambda x: softmax(-x), M),
    _nn(
        "gelu",
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        X,
        approximate="tanh",
        suffix=", tanh",
    ),
    _nn("gelu", lambda x: 0.5 * x * (1 + scipy.special.erf(x * math.sqrt(0.5))), X),
    _nn(
        "gumbel_softmax",
        lambda x: softmax(x - np.log(np.random.default_rng(0).standard_exponential(x.shape, np.float32))),
        M,
        equal=False,
    ),
    _nn("dropout", lambda x: x * (np.random.default_rng(0).random(x.shape, np.float32) >= 0.5) * 2, X, equal=False),
    # layers
    _nn("linear", lambda x, w, b: x @ w.T + b, M, W[:100], SMALL),
    _nn(
        "bilinear",
        lambda x, y, w: np.vecdot(
            (x @ w.reshape(10, 50, 50).transpose(1, 0, 2).reshape(50, 500)).reshape(-1, 10, 50), y[:, None, :]
        ),
        VECTORS[:, :50].copy(),
        NEAR[:, :50].copy(),
        normal(10, 50, 50),
    ),
    _nn("embedding", lambda i, w: w[i], WORDS, TABLE),
    _nn("conv1d", _conv1d, SIGNAL, FILTERS1),
    _nn("conv2d", _conv2d, IMAGES, FILTERS, padding=1),
    _nn("unfold", _unfold, IMAGES, kernel_size=3),
    _nn("fold", _fold, _unfold(IMAGES), output_size=28, kernel_size=3),
    _nn("max_pool1d", _pooled(np.maximum, 1), SIGNAL, kernel_size=2),
    _nn("max_pool2d", _pooled(np.maximum, 2), IMAGES, kernel_size=2),
    _nn("max_pool3d", _pooled(np.maximum, 3), VOLUME, kernel_size=2),
    _nn("avg_pool1d", _pooled(np.add, 1), SIGNAL, kernel_size=2),
    _nn("avg_pool2d", _pooled(np.add, 2), IMAGES, kernel_size=2),
    _nn("avg_pool3d", _pooled(np.add, 3), VOLUME, kernel_size=2),
    _nn("lp_pool2d", _lp_pool, np.abs(IMAGES), norm_type=2, kernel_size=2),
    _nn("adaptive_avg_pool2d", _adaptive, IMAGES, output_size=7),
    _nn("adaptive_max_pool2d", lambda x: x.reshape(8, 16, 7, 4, 7, 4).max(axis=(3, 5)), IMAGES, output_size=7),
    _with(
        "nn.layer_norm",
        lambda x, g, b: ad.nn.layer_norm(x, (400,), g, b),
        lambda x, g, b: _normed(x, -1, g, b),
        M,
        GAMMA,
        BETA,
    ),
    _with("nn.rms_norm", lambda x, g: ad.nn.rms_norm(x, (400,), g), _rms_norm, M, GAMMA),
    _with(
        "nn.batch_norm",
        lambda x, m, v, g, b: ad.nn.batch_norm(x, m, v, g, b),
        _batch_norm,
        IMAGES,
        CHANNELS[0],
        np.abs(CHANNELS[1]),
        *CHANNELS,
    ),
    _with(
        "nn.batch_norm, training",
        lambda x, g, b: ad.nn.batch_norm(x, None, None, g, b, training=True),
        lambda x, g, b: _normed(x, (0, 2, 3), g[:, None, None], b[:, None, None]),
        IMAGES,
        *CHANNELS,
    ),
    _with(
        "nn.group_norm",
        lambda x, g, b: ad.nn.group_norm(x, 4, g, b),
        lambda x, g, b: _normed(
            x.reshape(8, 4, 4, 28, 28), (2, 3, 4), g.reshape(4, 4, 1, 1), b.reshape(4, 4, 1, 1)
        ).reshape(x.shape),
        IMAGES,
        *CHANNELS,
    ),
    _with(
        "nn.instance_norm",
        lambda x, g, b: ad.nn.instance_norm(x, weight=g, bias=b),
        lambda x, g, b: _normed(x, (2, 3), g[:, None, None], b[:, None, None]),
        IMAGES,
        *CHANNELS,
    ),
    _nn("local_response_norm", _response, IMAGES, size=5),
    _nn("normalize", lambda x: x / np.maximum(np.sqrt(np.vecdot(x, x))[:, None], np.float32(1e-12)), M),
    _nn("scaled_dot_product_attention", _attention, Q, K, V),
    # images
    _nn(
        "interpolate",
        lambda x: np.repeat(np.repeat(x, 2, 2), 2, 3),
        IMAGES[:, :4].copy(),
        scale_factor=2,
        suffix=", nearest",
    ),
    _nn("interpolate", lambda x: _bilinear(x, 56), IMAGES[:, :4].copy(), size=56, mode="bilinear", suffix=", bilinear"),
    _nn("grid_sample", _grid_sample, IMAGES, GRID),
    _nn("pixel_shuffle", _shuffled, IMAGES, upscale_factor=2),
    _nn("pixel_unshuffle", _unshuffled, IMAGES, downscale_factor=2),
    *[
        _nn(
            "pad",
            lambda x, m=m: np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode=m),
            IMAGES,
            widths=(2, 2, 2, 2),
            mode=o,
            suffix=f", {o}",
        )
        for o, m in (("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap"))
    ],
    # losses
    _nn("mse_loss", lambda x, y: np.mean(np.square(x - y)), X, Y),
    _nn("l1_loss", lambda x, y: np.mean(np.abs(x - y)), X, Y),
    _nn("smooth_l1_loss", _smooth, X, Y),
    _nn("huber_loss", _smooth, X, Y),
    _nn("cross_entropy", _cross_entropy, M, LABELS),
    _nn("nll_loss", lambda x, i: -np.mean(x[np.arange(len(x)), i]), M, LABELS),
    _nn("binary_cross_entropy", lambda p, t: -np.mean(t * np.log(p) + (1 - t) * np.log(1 - p)), PROB, ZEROONE),
    _nn(
        "binary_cross_entropy_with_logits",
        lambda x, t: np.mean(np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))),
        X,
        ZEROONE,
    ),
    _nn("kl_div", lambda x, t: np.mean(t * (np.log(t) - x)), X, PROB),
    _nn("poisson_nll_loss", lambda x, t: np.mean(np.exp(x) - t * x), X, PROB),
    _nn("gaussian_nll_loss", lambda x, t, v: 0.5 * np.mean(np.log(v) + np.square(x - t) / v), X, Y, PROB),
    _nn("hinge_embedding_loss", lambda x, s: np.mean(np.where(s > 0, x, np.maximum(1 - x, 0))), X, SIGNS),
    _nn("margin_ranking_loss", lambda x, y, s: np.mean(np.maximum(-s * (x - y), 0)), X, Y, SIGNS),
    _nn("soft_margin_loss", lambda x, s: np.mean(np.logaddexp(-s * x, np.float32(0))), X, SIGNS),
    _nn("multi_margin_loss", _margins, M, LABELS),
    _nn(
        "multilabel_soft_margin_loss",
        lambda x, t: np.mean(np.logaddexp(x, np.float32(0)) - t * x),
        X.reshape(250, 400),
        ZEROONE.reshape(250, 400),
    ),
    _nn("cosine_similarity", _cosine, VECTORS, NEAR),
    _nn("cosine_embedding_loss", _embedded, VECTORS, NEAR, SIGN1000),
    _nn("pairwise_distance", _distance, VECTORS, NEAR),
    _nn(
        "triplet_margin_loss",
        lambda a, p, n: np.mean(np.maximum(_distance(a, p) - _distance(a, n) + 1, 0)),
        VECTORS,
        NEAR,
        FAR,
    ),
]
