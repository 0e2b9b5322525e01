"""Every function of `adjoint.torch.nn.functional`, called as PyTorch's is: the table that both libraries run."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_functions import fraction, positive, real, unit, vector

CASES: dict[str, list[tuple[Any, Any, str]]] = {}


def images(*shape: int) -> Any:
    return lambda r: real(r, shape)


def classes(*shape: int, below: int = 4) -> Any:
    return lambda r: r.integers(0, below, shape)


def case(name: str, arguments: str, *makers: Any) -> None:
    """A call of a function by names of its tensors, x y z w, in the order of what makes them."""
    source = f"lambda t, {', '.join('xyzw'[: len(makers)])}: t.nn.functional.{name}({arguments})"
    CASES.setdefault(name, []).append((eval(source), makers, "f"))


for _name in "relu relu6 sigmoid tanh celu elu hardsigmoid hardswish hardtanh leaky_relu mish selu silu gelu".split():
    case(_name, "x", real)
for _name in "hardshrink logsigmoid softshrink softsign tanhshrink softplus".split():
    case(_name, "x", real)
for _name in "relu_ celu_ elu_ hardtanh_ leaky_relu_ selu_".split():
    case(_name, "x * 1", real)
case("rrelu", "x", real)
case("rrelu_", "x * 1", real)
case("threshold", "x, 0.3, 2.0", real)
case("threshold_", "x * 1, 0.3, 2.0", real)
case("leaky_relu", "x * 1, 0.3, True", real)
case("hardtanh", "x, -0.2, max_val=0.7", real)
case("gelu", "x, approximate='tanh'", real)
case("softplus", "x, 3.0, 2.0", real)
case("prelu", "x, y", real, lambda r: fraction(r, (4,)))
case("glu", "x, 1", real)
case("glu", "x", images(2, 6))
case("softmax", "x, 1", real)
case("softmax", "x, dim=0, dtype=t.float64", real)
case("log_softmax", "x, -1", real)
case("softmin", "x, 1", real)
case("normalize", "x", real)
case("normalize", "x, p=3.0, dim=0", real)
case("linear", "x, y, z", real, images(2, 4), images(2))
case("linear", "x, y", images(2, 3, 4), images(5, 4))
case("linear", "x, y", real, vector)
case("bilinear", "x, y, z", images(3, 2), images(3, 4), images(5, 2, 4))
case("conv1d", "x, y, z, stride=2, padding=1", images(2, 3, 6), images(4, 3, 3), images(4))
case("conv2d", "x, y, None, [1, 2], (1, 0), 1, 2", images(1, 4, 5, 5), images(2, 2, 3, 2))
case("conv2d", "x, y, padding='same'", images(1, 2, 4, 4), images(2, 2, 3, 3))
case("conv3d", "x, y", images(1, 1, 3, 3, 3), images(2, 1, 2, 2, 2))
case("conv_transpose1d", "x, y, z, 2", images(1, 2, 4), images(2, 3, 3), images(3))
case("conv_transpose2d", "x, y, None, 2, 1, 1, 1", images(1, 2, 3, 3), images(2, 3, 3, 3))
case("conv_transpose3d", "x, y", images(1, 1, 2, 2, 2), images(1, 2, 2, 2, 2))
for _n, _shape in ((1, (2, 2, 6)), (2, (1, 2, 4, 6)), (3, (1, 1, 4, 4, 4))):
    case(f"max_pool{_n}d", "x, 2", images(*_shape))
    case(f"max_pool{_n}d", "x, 2, return_indices=True", images(*_shape))
    case(f"avg_pool{_n}d", "x, 2, 1, 1, False, False", images(*_shape))
    case(f"lp_pool{_n}d", "x, 2, 2", lambda r, _shape=_shape: positive(r, _shape))
    case(f"adaptive_avg_pool{_n}d", "x, 2", images(*_shape))
    case(f"adaptive_max_pool{_n}d", "x, 2", images(*_shape))
    case(f"max_unpool{_n}d", f"*t.nn.functional.max_pool{_n}d(x, 2, return_indices=True), 2", images(*_shape))
case("max_pool2d", "x, 3, [], 1, ceil_mode=True", images(1, 1, 5, 5))
case("adaptive_max_pool2d", "x, (3, None), return_indices=True", images(1, 2, 5, 4))
case("batch_norm", "x, None, None, y, z, True", images(4, 3), images(3), images(3))
case("batch_norm", "x, y.detach(), z.detach()", images(4, 3, 2), images(3), lambda r: positive(r, (3,)))
case("instance_norm", "x, weight=y, bias=z", images(2, 3, 5), images(3), images(3))
case("group_norm", "x, 2, y, z, 1e-3", images(2, 4, 3), vector, vector)
case("layer_norm", "x, (4,), y, z", real, vector, vector)
case("layer_norm", "x, [3, 4]", images(2, 3, 4))
case("rms_norm", "x, (4,), y", real, vector)
case("local_response_norm", "x, 2, alpha=0.1", images(2, 4, 3))
for _name in "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split():
    case(_name, "x, 0.3, False", images(2, 3, 4))
case("embedding", "y, x, padding_idx=1", images(4, 3), classes(2, 3))
case("embedding", "y, x, scale_grad_by_freq=True", images(4, 3), classes(5))
case("embedding_bag", "y, x, mode='sum'", images(4, 3), classes(2, 3))
case("embedding_bag", "y, x, t.tensor([0, 2, 2])", images(4, 3), classes(5))
case("embedding_bag", "y, x, mode='sum', per_sample_weights=z", images(4, 3), classes(2, 3), images(2, 3))
case("one_hot", "x, 5", classes(2, 3))
case("one_hot", "x", classes(4))
for _mode, _more in (("constant", ", value=1.5"), ("reflect", ""), ("replicate", ""), ("circular", "")):
    case("pad", f"x, (1, 2, 1, 0), '{_mode}'{_more}", images(1, 2, 3, 4))
case("pad", "x, [1, -1]", real)
case("unfold", "x, (2, 3), padding=1", images(1, 2, 4, 4))
case("fold", "x, (4, 4), [2, 2], stride=[2, 2]", images(1, 8, 4))
case("pixel_shuffle", "x, 2", images(2, 4, 2, 3))
case("pixel_unshuffle", "x, 2", images(1, 1, 4, 2))
case("channel_shuffle", "x, 2", images(1, 4, 2, 2))
case("interpolate", "x, scale_factor=2", images(1, 2, 3, 3))
case("interpolate", "x, 5, mode='linear'", images(1, 2, 3))
case("interpolate", "x, (5, 2), mode='bilinear', align_corners=True", images(1, 1, 3, 4))
case("interpolate", "x, (2, 2), mode='area'", images(1, 1, 3, 4))
case("interpolate", "x, (5, 2), mode='bilinear', antialias=True", images(1, 1, 3, 4))
case("interpolate", "x, scale_factor=(1.5, 2.0), mode='bicubic'", images(1, 1, 4, 3))
case("interpolate", "x, scale_factor=1.7, mode='nearest-exact'", images(1, 1, 4))
case("upsample", "x, scale_factor=2, mode='trilinear'", images(1, 1, 2, 2, 2))
case("upsample_nearest", "x, scale_factor=2", images(1, 1, 2, 3))
case("upsample_bilinear", "x, size=(3, 4)", images(1, 1, 2, 3))
case("affine_grid", "x, (1, 1, 3, 4), align_corners=False", images(1, 2, 3))
for _options in ("", ", 'nearest'", ", padding_mode='border', align_corners=True", ", padding_mode='reflection'"):
    case("grid_sample", f"x, y{_options}", images(1, 2, 4, 4), lambda r: unit(r, (1, 2, 3, 2)))
case("scaled_dot_product_attention", "x, y, z", images(2, 3, 4), images(2, 5, 4), images(2, 5, 2))
case("scaled_dot_product_attention", "x, y, z, is_causal=True, scale=0.3", *[images(1, 2, 3, 4)] * 3)
case("scaled_dot_product_attention", "x, y, z, w", *[images(1, 2, 3, 4)] * 3, images(3, 3))
for _name in "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss".split():
    _target = "t.sign(y.detach())" if _name == "soft_margin_loss" else "y"
    for _reduction in ("mean", "sum", "none"):
        case(_name, f"x, {_target}, reduction='{_reduction}'", real, real)
case("mse_loss", "x, y, weight=z", real, real, positive)
case("smooth_l1_loss", "x, y, beta=0.3", real, real)
case("huber_loss", "x, y, delta=0.4", real, real)
case("binary_cross_entropy", "x, y, z.detach()", fraction, fraction, positive)
case("binary_cross_entropy_with_logits", "x, y, pos_weight=z.detach()", real, fraction, lambda r: positive(r, (4,)))
case("nll_loss", "x, y", real, classes(3))
case("nll_loss", "x, y, z.detach(), ignore_index=1", images(2, 4, 3), classes(2, 3), lambda r: positive(r, (4,)))
case("cross_entropy", "x, y", real, classes(3))
case("cross_entropy", "x, y, ignore_index=2, reduction='sum'", images(2, 4, 3), classes(2, 3))
case("cross_entropy", "x, y, z.detach(), label_smoothing=0.2", real, classes(3), lambda r: positive(r, (4,)))
case("cross_entropy", "x, y.softmax(1)", real, real)
case("ctc_loss", "x.log_softmax(2), y, (5, 5), (2, 1)", images(5, 2, 4), lambda r: r.integers(1, 4, (2, 2)))
case("multi_margin_loss", "x, y", real, classes(3))
case("kl_div", "x, y, reduction='batchmean'", real, positive)
case("kl_div", "x, y, reduction='none', log_target=True", real, real)
case("poisson_nll_loss", "x, y, full=True", real, positive)
case("gaussian_nll_loss", "x, y, z, full=True", real, real, positive)
case("gaussian_nll_loss", "x, y, 0.5", real, real)
case("hinge_embedding_loss", "x, t.sign(y.detach())", real, real)
case("multilabel_margin_loss", "x, y", real, lambda r: np.array([[1, 2, -1, 0], [3, -1, 0, 1], [0, 1, 2, 3]]))
case("multilabel_soft_margin_loss", "x, y.detach()", real, fraction)
case("cosine_similarity", "x, y", real, real)
case("cosine_similarity", "x, y, 0, 1e-3", real, real)
case("pairwise_distance", "x, y", real, real)
case("pairwise_distance", "x, y, p=3.0, keepdim=True", real, real)
case("pdist", "x", real)
case("cosine_embedding_loss", "x, y, t.sign(z.detach()), 0.1", real, real, images(3))
case("margin_ranking_loss", "x, y, t.sign(z.detach()), 0.1", vector, vector, vector)
case("triplet_margin_loss", "x, y, z, swap=True", real, real, real)
case("triplet_margin_with_distance_loss", "x, y, z", real, real, real)

for _n, _shape in ((1, (2, 6)), (2, (1, 2, 5, 4)), (3, (1, 4, 3, 4))):
    case(f"max_pool{_n}d_with_indices", "x, 2, 1", images(*_shape))
    case(f"adaptive_max_pool{_n}d_with_indices", "x, 2", images(*_shape))

# drawn at random: tested by their means, and by the places of windows
DRAWN = {"gumbel_softmax"} | {f"fractional_max_pool{n}d{end}" for n in (2, 3) for end in ("", "_with_indices")}


def names() -> set[str]:
    return set(CASES) | DRAWN
