"""`torch.nn.functional`: adjoint's functions of networks under PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

from adjoint.torch.arguments import guarded as _guarded
from adjoint.torch.missing import missing as _missing
from adjoint.torch.nn.functional import activations as _activations
from adjoint.torch.nn.functional import images as _images
from adjoint.torch.nn.functional import layers as _layers
from adjoint.torch.nn.functional import losses as _losses
from adjoint.torch.nn.functional.shared import of_integers as _of_integers

ALL: dict[str, Any] = dict(_activations.ALL)  # every function by its name
for _module, _names in {
    _images: """
        affine_grid channel_shuffle fold grid_sample interpolate pad pixel_shuffle pixel_unshuffle
        scaled_dot_product_attention unfold upsample upsample_bilinear upsample_nearest
    """,
    _layers: """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear conv1d conv2d conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d dropout dropout1d dropout2d dropout3d embedding
        embedding_bag feature_alpha_dropout fractional_max_pool2d fractional_max_pool3d group_norm instance_norm
        layer_norm linear local_response_norm lp_pool1d
        lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d one_hot rms_norm
    """,
    _losses: """
        binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity cross_entropy
        ctc_loss gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss
        multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss pairwise_distance pdist
        poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss
    """,
}.items():
    for _name in _names.split():
        _f = getattr(_module, _name)
        ALL[_name] = _f if _name == "linear" else _guarded(_f)  # which looks itself, as it is called most
ALL |= _layers.WITH_INDICES
for _name in ALL:
    if _name.startswith(("conv", "avg_pool", "max_pool2d", "max_pool3d", "bilinear")):
        ALL[_name] = _of_integers(ALL[_name])
globals().update(ALL)


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch.nn.functional")
