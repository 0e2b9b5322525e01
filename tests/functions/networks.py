"""Calls of the functions of neural networks, over a few options; comparisons with PyTorch draw more of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}
nn = ad.nn


def _each(names: str, maker: Callable[[Any, Draw], Call]) -> None:
    for name in names.split():
        FUNCTIONS[f"nn.{name}"] = lambda d, f=operator.attrgetter(name)(nn): maker(f, d)


def _bound(f: Any, *args: Any, **how: Any) -> Any:
    return lambda *xs: f(*xs, *args, **how)


# --- activations: values away from -3, -1, -0.5, 0, 0.5, 1, 3 and 6, where some have kinks ---

_each(
    "relu6 leaky_relu rrelu elu celu selu logsigmoid mish hardtanh hardsigmoid hardswish hardshrink softshrink "
    "tanhshrink softsign",
    lambda f, d: (f, d.grid(d.shape(), 0.25)),
)
_each("threshold", lambda f, d: (_bound(f, 0.3, -2.0), d.grid(d.shape(), 0.2)))
_each("prelu", lambda f, d: (f, d.grid(d.pick((2, 3), (2, 3, 2)), 0.2), d.real((d.pick(1, 3),))))
_each("glu", lambda f, d: (_bound(f, d.pick(0, -1)), d.real((2, 4))))
_each("softmax softmin log_softmax", lambda f, d: (_bound(f, d.pick(0, -1)), d.real((2, 3))))


def _seeded(f: Any) -> Any:
    def call(*xs: Any) -> Any:
        xs[0].device.seed(7)
        return f(*xs)

    return call


_each("gumbel_softmax", lambda f, d: (_seeded(_bound(f, d.pick(1.0, 0.5), axis=d.pick(0, -1))), d.real((2, 3))))
_each("dropout", lambda f, d: (_seeded(_bound(f, d.pick(0.3, 0.8))), d.real(d.shape())))

_each(
    "alpha_dropout feature_alpha_dropout", lambda f, d: (_seeded(_bound(f, d.pick(0.3, 0.8), True)), d.real((2, 3, 2)))
)
_each(
    "dropout1d dropout2d dropout3d",
    lambda f, d: (_seeded(_bound(f, d.pick(0.3, 0.8))), d.real((2, 3, 2, 1, 2)[: int(f.__name__[-2]) + 2])),
)

# --- convolutions, windows, images ---


def _conv(f: Any, d: Draw) -> Call:
    axes = int(f.__name__[4])
    groups, kernel = d.pick(1, 2), (2, 1, 2)[:axes]
    how = {"stride": d.pick(1, 2), "padding": d.pick(0, 1), "dilation": d.pick(1, 2), "groups": groups}
    x, weight = d.either((d.pick(1, 2), 2, 4, 3, 3)[: axes + 2]), d.either((2, 2 // groups, *kernel))
    return _bound(f, **how), x, weight


def _conv_transpose(f: Any, d: Draw) -> Call:
    axes = int(f.__name__[14])
    how = {"stride": d.pick(1, 2), "padding": d.pick(0, 1), "groups": d.pick(1, 2)}
    how["output_padding"] = d.pick(*range(how["stride"]))
    x, weight = d.either((1, 2, 3, 2, 2)[: axes + 2]), d.either((2, d.pick(1, 2), 2, 3, 2)[: axes + 2])
    return _bound(f, **how), x, weight


_each("conv1d conv3d", _conv)
_each("conv_transpose1d conv_transpose2d conv_transpose3d", _conv_transpose)


def _pool(f: Any, d: Draw) -> Call:
    axes = int(f.__name__[-2])
    how = {"stride": d.pick(None, 1, 2), "padding": d.pick(0, 1), "ceil_mode": d.pick(True, False)}
    return _bound(f, 2, **how), d.distinct((2, 5, 4, 3)[: axes + 1])


_each("max_pool1d max_pool3d avg_pool1d avg_pool2d avg_pool3d", _pool)
_each(
    "lp_pool1d lp_pool2d lp_pool3d",
    lambda f, d: (_bound(f, d.pick(1, 2, 3.0), 2, 1), d.positive((2, 4, 3, 3)[: int(f.__name__[-2]) + 1])),
)
_each(
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d",
    lambda f, d: (_bound(f, d.pick(1, 2, 3)), d.distinct((2, 5, 4, 3)[: int(f.__name__[-2]) + 1])),
)
_each(
    "fractional_max_pool2d fractional_max_pool3d",
    lambda f, d: (_seeded(_bound(f, d.pick(1, 2), d.pick(1, 2))), d.distinct((2, 5, 4, 3)[: int(f.__name__[-2]) + 1])),
)


def _max_unpool(f: Any, d: Draw) -> Call:
    axes = int(f.__name__[-2])
    places = np.array([[4, 1], [0, 3]])[(..., *[None] * (axes - 1))]
    return (lambda x: f(x, places, 2, 1, 0, (5, 1, 1)[:axes])), d.real(places.shape)


_each("max_unpool1d max_unpool2d max_unpool3d", _max_unpool)
_each("unfold", lambda f, d: (_bound(f, 2, stride=d.pick(1, 2), padding=d.pick(0, 1)), d.either((2, 3, 4))))
_each("fold", lambda f, d: (_bound(f, (3, 4), 2, padding=0), d.either((8, 6))))
_each("rotary", lambda f, d: (f, d.either((2, d.pick(1, 3), 4))))
_each("channel_shuffle", lambda f, d: (_bound(f, d.pick(1, 2)), d.either((2, 4, d.pick(1, 3)))))
_each("pixel_shuffle pixel_unshuffle", lambda f, d: (_bound(f, 2), d.either((4, 2, 4))))


def _deformed(d: Draw) -> Call:
    """Places away from whole ones, where the samples have kinks."""
    groups, parts = d.pick(1, 2), d.pick(1, 2)
    how = {"stride": d.pick(1, 2), "padding": d.pick(0, 1), "dilation": d.pick(1, (2, 1))}
    x, weight = d.real((d.pick(1, 2), 2, 4, 4)), d.real((2, 2 // groups, *d.pick((2, 2), (1, 2))))
    size = nn.conv2d(ad.asarray(x), ad.asarray(weight), groups=groups, **how).shape[2:]
    count = parts * weight.shape[2] * weight.shape[3]
    offset = d.lay(
        d.rng.integers(-2, 2, (len(x), 2 * count, *size)) + d.rng.uniform(0.2, 0.8, (len(x), 2 * count, *size))
    )
    mask, bias = d.positive((len(x), count, *size)), d.real((2,))
    return d.pick(
        (lambda a, o, w: nn.deform_conv2d(a, o, w, **how), x, offset, weight),
        (lambda a, o, w, b, m: nn.deform_conv2d(a, o, w, b, mask=m, **how), x, offset, weight, bias, mask),
    )


FUNCTIONS["nn.deform_conv2d"] = _deformed
FUNCTIONS["nn.pad"] = lambda d: (
    _bound(nn.pad, (1, 2, -1, 1), d.pick("constant", "reflect", "replicate", "circular")),
    d.either((3, 4)),
)


def _interpolate(f: Any, d: Draw) -> Call:
    mode, shape = d.pick(
        ("nearest", (1, 2, 3)), ("linear", (1, 2, 3)), ("bilinear", (1, 1, 3, 2)), ("bicubic", (1, 1, 3, 2)),
        ("trilinear", (1, 1, 2, 2, 2)), ("area", (1, 1, 3, 4)),
    )  # fmt: skip
    return _bound(f, scale_factor=d.pick(2, 1.5, 0.5) if shape[2] > 2 else 2, mode=mode), d.real(shape)


_each("interpolate", lambda f, d: _interpolate(f, d))


def _grid_sample(f: Any, d: Draw) -> Call:
    """Samples well inside of pixels, and of the border."""
    grid = (d.rng.integers(-3, 4, (1, 2, 3, 2)) + d.between((1, 2, 3, 2), 0.2, 0.4)) * [2 / 3, 2 / 4]
    mode, border = d.pick("bilinear", "bicubic"), d.pick("zeros", "border", "reflection")
    return _bound(f, mode, border, True), d.real((1, 2, 5, 4)), grid


_each("grid_sample", _grid_sample)
_each("affine_grid", lambda f, d: (_bound(f, (2, 1, 2, 3), d.pick(True, False)), d.real((2, 2, 3))))

# --- layers and normalisations ---

_each("bilinear", lambda f, d: (f, d.real((2, 3)), d.real((2, 2)), d.real((2, 3, 2))))


def _embedding(f: Any, d: Draw) -> Call:
    places = d.rng.integers(0, 4, d.pick((3,), (2, 2)))
    return (lambda w: f(places, w)), d.either((4, 2))


_each("embedding", _embedding)


def _embedding_bag(f: Any, d: Draw) -> Call:
    places, offsets = np.array([0, 3, 1, 3, 2]), np.array([0, 2, 2])
    return (lambda w, mode=d.pick("sum", "mean", "max"): f(places, w, offsets, mode=mode, padding_idx=1)), d.distinct(
        (4, 2)
    )


_each("embedding_bag", _embedding_bag)
_each("rms_norm", lambda f, d: (lambda x, w: f(x, 3, w), d.real((2, 3)), d.real((3,))))


def _batch_norm(f: Any, d: Draw) -> Call:
    shape = d.pick((4, 2), (3, 2, 2))
    if d.pick(True, False):
        return (lambda x, w, b: f(x, None, None, w, b, training=True)), d.distinct(shape), d.real((2,)), d.real((2,))
    return f, d.distinct(shape), d.real((2,)), d.positive((2,)), d.real((2,)), d.real((2,))


_each("batch_norm", _batch_norm)
_each("group_norm", lambda f, d: (lambda x, w, b: f(x, 2, w, b), d.distinct((2, 4, 2)), d.real((4,)), d.real((4,))))
_each(
    "instance_norm",
    lambda f, d: (lambda x, w, b: f(x, weight=w, bias=b), d.distinct((2, 2, 3)), d.real((2,)), d.real((2,))),
)
_each("local_response_norm", lambda f, d: (_bound(f, d.pick(1, 2, 3), 0.5), d.real((2, 3, 2))))
_each("normalize", lambda f, d: (_bound(f, d.pick(1, 2, 3.0)), d.real((2, 3))))


def _attention(f: Any, d: Draw) -> Call:
    q, k, v = d.real((2, 3, 2)), d.real((2, d.pick(2, 4), 2)), None
    v = d.real((2, k.shape[1], d.pick(1, 2)))
    match d.pick("plain", "causal", "mask", "numbers", "dropout"):
        case "causal":
            return _bound(f, is_causal=True), q, k, v
        case "mask":
            return _bound(f, d.mask((3, k.shape[1]))), q, k, v
        case "numbers":
            return f, q, k, v, d.real((3, k.shape[1]))
        case "dropout":
            return _seeded(_bound(f, dropout_p=0.4)), q, k, v
    return f, q, k, v


_each("scaled_dot_product_attention", _attention)

# --- losses ---


def _two(f: Any, d: Draw) -> Call:
    return _bound(f, reduction=d.pick("mean", "sum", "none")), d.grid((2, 3), 0.2), d.grid((2, 3), 0.35)


_each("l1_loss huber_loss smooth_l1_loss", _two)
_each("binary_cross_entropy", lambda f, d: (f, d.between((2, 3), 0.1, 0.9), d.between((2, 3), 0.1, 0.9)))
_each("kl_div", lambda f, d: (_bound(f, log_target=d.pick(True, False)), d.real((2, 3)), d.positive((2, 3))))
_each("poisson_nll_loss", lambda f, d: (_bound(f, full=d.pick(True, False)), d.real((2, 3)), d.positive((2, 3)) + 1.0))
_each("gaussian_nll_loss", lambda f, d: (f, d.real((2, 3)), d.real((2, 3)), d.positive((2, d.pick(1, 3)))))
_each(
    "soft_margin_loss hinge_embedding_loss",
    lambda f, d: (lambda x: f(x, np.array([1.0, -1.0, 1.0])), d.grid((3,), 0.2)),
)
_each("nll_loss", lambda f, d: (lambda x: f(x, np.array([2, 0])), d.real((2, 3))))
_each("multi_margin_loss", lambda f, d: (lambda x: f(x, np.array([2, 0])), d.grid((2, 3), 0.07)))
_each("multilabel_margin_loss", lambda f, d: (lambda x: f(x, np.array([[2, 0, -1], [1, -1, 2]])), d.grid((2, 3), 0.07)))
_each("multilabel_soft_margin_loss", lambda f, d: (f, d.real((2, 3)), d.between((2, 3), 0.1, 0.9)))
_each("cosine_similarity", lambda f, d: (f, d.real((2, 3)), d.real((2, 3))))
_each("pdist", lambda f, d: (_bound(f, d.pick(2, 3.0)), d.real((3, 2))))
_each("pairwise_distance", lambda f, d: (_bound(f, d.pick(2, 3.0)), d.real((2, 3)), d.real((2, 3))))
_each(
    "cosine_embedding_loss",
    lambda f, d: (lambda x, y: f(x, y, np.array([1, -1]), margin=-1.5), d.real((2, 3)), d.real((2, 3))),
)
_each(
    "margin_ranking_loss",
    lambda f, d: (lambda x, y: f(x, y, np.array([1.0, -1.0]), margin=9.0), d.real((2,)), d.real((2,))),
)
_each(
    "triplet_margin_loss triplet_margin_with_distance_loss",
    lambda f, d: (_bound(f, margin=30.0), d.real((2, 3)), d.real((2, 3)), d.real((2, 3))),
)
_each(
    "ctc_loss",
    lambda f, d: (lambda x: f(nn.log_softmax(x), np.array([[1, 1], [2, 1]]), [4, 3], [2, 1]), d.real((4, 2, 3))),
)

# these give integers, and constants
OTHER = {"nn.one_hot", "nn.running_statistics", "nn.sinusoids"}
