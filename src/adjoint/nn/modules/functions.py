"""Functions of `ad.nn` as modules: what a function takes after its tensors are the settings of its module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.functions.elementwise import tanh
from adjoint.module.base import Buffer, Module
from adjoint.nn import activations as act
from adjoint.nn import classification, distances, fractional_pooling, images, layers, losses, normalization, pooling

Maker = Callable[..., Module]


def module_of(name: str, f: Callable[..., Any], tensors: int = 1) -> Maker:
    """A class of modules that call a function of so many tensors; its other parameters are the fields.

    Weights among them are buffers. What the function takes as `training` is the module's.
    """
    parameters = inspect.signature(f).parameters
    settings = [p for p in list(parameters.values())[tensors:] if p.name != "training"]
    trains = "training" in parameters

    def __call__(self: Any, *operands: Any, key: int | None = None) -> Any:
        if len(operands) > tensors:
            raise errors.ArgumentTypeError(
                f"{name}: takes {tensors} tensor{'s' * (tensors > 1)}, received {len(operands)}; what else there is to "
                f"say is a field, as in ad.nn.{name}({', '.join(f'{p.name}=' for p in settings)})"
            )
        given = {p.name: getattr(self, p.name) for p in settings}
        return f(*operands, **given, **({"training": self.training} if trains else {}))

    functools.update_wrapper(__call__, f)
    fields: dict[str, Any] = {p.name: p.default for p in settings if p.default is not p.empty}
    notes = {p.name: Buffer if p.name in ("weight", "pos_weight") else Any for p in settings}
    where = "ad" if f is tanh else "ad.nn"
    doc = f"`{where}.{f.__name__}` as a module, with its settings. Shapes, dtypes and errors are those of the function."
    make: Any = type(Module)
    return make(name, (Module,), {**fields, "__annotations__": notes, "__call__": __call__, "__doc__": doc})  # type: ignore[no-any-return]


CELU: Maker = module_of("CELU", act.celu)
ELU: Maker = module_of("ELU", act.elu)
GELU: Maker = module_of("GELU", act.gelu)
GLU: Maker = module_of("GLU", act.glu)
Hardshrink: Maker = module_of("Hardshrink", act.hardshrink)
Hardsigmoid: Maker = module_of("Hardsigmoid", act.hardsigmoid)
Hardswish: Maker = module_of("Hardswish", act.hardswish)
Hardtanh: Maker = module_of("Hardtanh", act.hardtanh)
LeakyReLU: Maker = module_of("LeakyReLU", act.leaky_relu)
LogSigmoid: Maker = module_of("LogSigmoid", act.logsigmoid)
LogSoftmax: Maker = module_of("LogSoftmax", act.log_softmax)
Mish: Maker = module_of("Mish", act.mish)
ReLU: Maker = module_of("ReLU", act.relu)
ReLU6: Maker = module_of("ReLU6", act.relu6)
RReLU: Maker = module_of("RReLU", act.rrelu)
SELU: Maker = module_of("SELU", act.selu)
SiLU: Maker = module_of("SiLU", act.silu)
Sigmoid: Maker = module_of("Sigmoid", act.sigmoid)
Softmax: Maker = module_of("Softmax", act.softmax)
Softmin: Maker = module_of("Softmin", act.softmin)
Softplus: Maker = module_of("Softplus", act.softplus)
Softshrink: Maker = module_of("Softshrink", act.softshrink)
Softsign: Maker = module_of("Softsign", act.softsign)
Tanh: Maker = module_of("Tanh", tanh)
Tanhshrink: Maker = module_of("Tanhshrink", act.tanhshrink)
Threshold: Maker = module_of("Threshold", act.threshold)

AlphaDropout: Maker = module_of("AlphaDropout", layers.alpha_dropout)
Dropout: Maker = module_of("Dropout", layers.dropout)
Dropout1d: Maker = module_of("Dropout1d", layers.dropout1d)
Dropout2d: Maker = module_of("Dropout2d", layers.dropout2d)
Dropout3d: Maker = module_of("Dropout3d", layers.dropout3d)
FeatureAlphaDropout: Maker = module_of("FeatureAlphaDropout", layers.feature_alpha_dropout)
LocalResponseNorm: Maker = module_of("LocalResponseNorm", normalization.local_response_norm)

AdaptiveAvgPool1d: Maker = module_of("AdaptiveAvgPool1d", pooling.adaptive_avg_pool1d)
AdaptiveAvgPool2d: Maker = module_of("AdaptiveAvgPool2d", pooling.adaptive_avg_pool2d)
AdaptiveAvgPool3d: Maker = module_of("AdaptiveAvgPool3d", pooling.adaptive_avg_pool3d)
AdaptiveMaxPool1d: Maker = module_of("AdaptiveMaxPool1d", pooling.adaptive_max_pool1d)
AdaptiveMaxPool2d: Maker = module_of("AdaptiveMaxPool2d", pooling.adaptive_max_pool2d)
AdaptiveMaxPool3d: Maker = module_of("AdaptiveMaxPool3d", pooling.adaptive_max_pool3d)
AvgPool1d: Maker = module_of("AvgPool1d", pooling.avg_pool1d)
AvgPool2d: Maker = module_of("AvgPool2d", pooling.avg_pool2d)
AvgPool3d: Maker = module_of("AvgPool3d", pooling.avg_pool3d)
FractionalMaxPool2d: Maker = module_of("FractionalMaxPool2d", fractional_pooling.fractional_max_pool2d)
FractionalMaxPool3d: Maker = module_of("FractionalMaxPool3d", fractional_pooling.fractional_max_pool3d)
LPPool1d: Maker = module_of("LPPool1d", pooling.lp_pool1d)
LPPool2d: Maker = module_of("LPPool2d", pooling.lp_pool2d)
LPPool3d: Maker = module_of("LPPool3d", pooling.lp_pool3d)
MaxPool1d: Maker = module_of("MaxPool1d", pooling.max_pool1d)
MaxPool2d: Maker = module_of("MaxPool2d", pooling.max_pool2d)
MaxPool3d: Maker = module_of("MaxPool3d", pooling.max_pool3d)
MaxUnpool1d: Maker = module_of("MaxUnpool1d", pooling.max_unpool1d, 2)
MaxUnpool2d: Maker = module_of("MaxUnpool2d", pooling.max_unpool2d, 2)
MaxUnpool3d: Maker = module_of("MaxUnpool3d", pooling.max_unpool3d, 2)

ChannelShuffle: Maker = module_of("ChannelShuffle", images.channel_shuffle)
Fold: Maker = module_of("Fold", images.fold)
Interpolate: Maker = module_of("Interpolate", images.interpolate)
Pad: Maker = module_of("Pad", images.pad)
PixelShuffle: Maker = module_of("PixelShuffle", images.pixel_shuffle)
PixelUnshuffle: Maker = module_of("PixelUnshuffle", images.pixel_unshuffle)
Unfold: Maker = module_of("Unfold", images.unfold)

BCELoss: Maker = module_of("BCELoss", losses.binary_cross_entropy, 2)
BCEWithLogitsLoss: Maker = module_of("BCEWithLogitsLoss", losses.binary_cross_entropy_with_logits, 2)
CTCLoss: Maker = module_of("CTCLoss", classification.ctc_loss, 4)
CosineEmbeddingLoss: Maker = module_of("CosineEmbeddingLoss", distances.cosine_embedding_loss, 3)
CosineSimilarity: Maker = module_of("CosineSimilarity", distances.cosine_similarity, 2)
CrossEntropyLoss: Maker = module_of("CrossEntropyLoss", classification.cross_entropy, 2)
GaussianNLLLoss: Maker = module_of("GaussianNLLLoss", losses.gaussian_nll_loss, 3)
HingeEmbeddingLoss: Maker = module_of("HingeEmbeddingLoss", losses.hinge_embedding_loss, 2)
HuberLoss: Maker = module_of("HuberLoss", losses.huber_loss, 2)
KLDivLoss: Maker = module_of("KLDivLoss", losses.kl_div, 2)
L1Loss: Maker = module_of("L1Loss", losses.l1_loss, 2)
MSELoss: Maker = module_of("MSELoss", losses.mse_loss, 2)
MarginRankingLoss: Maker = module_of("MarginRankingLoss", distances.margin_ranking_loss, 3)
MultiLabelMarginLoss: Maker = module_of("MultiLabelMarginLoss", classification.multilabel_margin_loss, 2)
MultiLabelSoftMarginLoss: Maker = module_of("MultiLabelSoftMarginLoss", classification.multilabel_soft_margin_loss, 2)
MultiMarginLoss: Maker = module_of("MultiMarginLoss", classification.multi_margin_loss, 2)
NLLLoss: Maker = module_of("NLLLoss", classification.nll_loss, 2)
PairwiseDistance: Maker = module_of("PairwiseDistance", distances.pairwise_distance, 2)
PoissonNLLLoss: Maker = module_of("PoissonNLLLoss", losses.poisson_nll_loss, 2)
SmoothL1Loss: Maker = module_of("SmoothL1Loss", losses.smooth_l1_loss, 2)
SoftMarginLoss: Maker = module_of("SoftMarginLoss", losses.soft_margin_loss, 2)
TripletMarginLoss: Maker = module_of("TripletMarginLoss", distances.triplet_margin_loss, 3)
TripletMarginWithDistanceLoss: Maker = module_of(
    "TripletMarginWithDistanceLoss", distances.triplet_margin_with_distance_loss, 3
)
