"""Activations, dropout, pools, padding, scaling and losses: layers without parameters, but for `PReLU`."""

from __future__ import annotations

from typing import Any

from adjoint.torch.nn import functional as F
from adjoint.torch.nn import init
from adjoint.torch.nn.layers.base import Applied, Loss, Settings, made_of, settings_of, several, table
from adjoint.torch.nn.module import Module
from adjoint.torch.tensor import Tensor

ALL: dict[str, Any] = {}

table(
    """
Threshold    | threshold    | threshold value inplace=False                       | threshold value
Hardtanh     | hardtanh     | min_val=-1.0 max_val=1.0 inplace=False              | min_val max_val
ReLU6        | relu6        | inplace=False                                       |
Sigmoid      | sigmoid      |                                                     |
Tanh         | tanh         |                                                     |
Hardsigmoid  | hardsigmoid  | inplace=False                                       | -
Hardswish    | hardswish    | inplace=False                                       | -
SiLU         | silu         | inplace=False                                       |
Mish         | mish         | inplace=False                                       |
ELU          | elu          | alpha=1.0 inplace=False                             | alpha
CELU         | celu         | alpha=1.0 inplace=False                             | alpha
SELU         | selu         | inplace=False                                       |
GLU          | glu          | dim=-1                                              | dim
GELU         | gelu         | approximate='none'                                  | approximate!r
Hardshrink   | hardshrink   | lambd=0.5                                           | =lambd
LeakyReLU    | leaky_relu   | negative_slope=0.01 inplace=False                   | negative_slope
LogSigmoid   | logsigmoid   |                                                     |
Softplus     | softplus     | beta=1.0 threshold=20.0                             | beta threshold
Softshrink   | softshrink   | lambd=0.5                                           | =lambd
Softsign     | softsign     |                                                     |
Tanhshrink   | tanhshrink   |                                                     |
Softmin      | softmin      | dim=None                                            | dim
Softmax      | softmax      | dim=None                                            | dim
LogSoftmax   | log_softmax  | dim=None                                            | dim
PixelShuffle | pixel_shuffle| upscale_factor                                      | upscale_factor
PixelUnshuffle | pixel_unshuffle | downscale_factor                               | downscale_factor
ChannelShuffle | channel_shuffle | groups                                         | groups
LocalResponseNorm | local_response_norm | size alpha=0.0001 beta=0.75 k=1.0       | =size alpha beta k
CosineSimilarity | cosine_similarity | dim=1 eps=1e-08                            |
PairwiseDistance | pairwise_distance | p=2.0 eps=1e-06 keepdim=False              |
Fold|fold|output_size kernel_size dilation=1 padding=0 stride=1|output_size kernel_size dilation padding stride
Unfold       | unfold       | kernel_size dilation=1 padding=0 stride=1           | kernel_size dilation padding stride
""",
    Applied,
    ALL,
)


class ReLU(Settings):
    """max(x, 0)"""

    _settings = {"inplace": False}
    inplace: bool

    def forward(self, input: Tensor) -> Any:
        return F.relu(input, self.inplace)


class PReLU(Module):
    """x, or a weight times x where it is negative."""

    init: float
    num_parameters: int

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight: Any = made_of(num_parameters, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Any:
        return F.ALL["prelu"](input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input: Tensor) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.ALL["softmax"](input, -3)


class Identity(Module):
    """What it gets; arguments are not looked at."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Pair(Applied):
    """A function of two tensors with these settings."""

    def forward(self, x1: Tensor, x2: Tensor) -> Any:  # type: ignore[override]
        own = self.__dict__
        return type(self)._function(x1, x2, *[own[name] for name in self._settings])


for _name in ("CosineSimilarity", "PairwiseDistance"):
    ALL[_name] = type(_name, (Pair,), {k: v for k, v in vars(ALL[_name]).items() if k != "__dict__"})


class _Dropout(Settings):
    _settings = {"p": 0.5, "inplace": False}
    _shown = "p={p}, inplace={inplace}"
    _function: Any

    def _read(self, name: str, value: Any) -> Any:
        if name == "p" and not 0 <= value <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {value}")
        return value

    def forward(self, input: Tensor) -> Any:
        own = self.__dict__
        return type(self)._function(input, own["p"], own["training"], own["inplace"])


for _name, _function in {
    "Dropout": "dropout", "Dropout1d": "dropout1d", "Dropout2d": "dropout2d", "Dropout3d": "dropout3d",
    "AlphaDropout": "alpha_dropout", "FeatureAlphaDropout": "feature_alpha_dropout",
}.items():  # fmt: skip
    ALL[_name] = type(
        _name,
        (_Dropout,),
        {
            "_function": staticmethod(F.ALL[_function]),
            "__module__": "adjoint.torch.nn",
            "__doc__": f"`nn.functional.{_function}` in training, and nothing in evaluation.",
        },
    )


class RReLU(Settings):
    """`nn.functional.rrelu`, with slopes that are drawn in training."""

    _settings = {"lower": 1.0 / 8, "upper": 1.0 / 3, "inplace": False}
    _shown = "lower={lower}, upper={upper}"

    def forward(self, input: Tensor) -> Any:
        return F.ALL["rrelu"](input, self.lower, self.upper, self.training, self.inplace)


class Flatten(Settings):
    """Axes from one to another as one."""

    _settings = {"start_dim": 1, "end_dim": -1}
    _shown = "start_dim={start_dim}, end_dim={end_dim}"
    start_dim: int
    end_dim: int

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """One axis as several."""

    dim: int
    unflattened_size: tuple[Any, ...]

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


# --- pools, padding, scaling --------------------------------------------------------------------------


class _Pool(Applied):
    """The stride is the kernel's size unless given."""

    _axes = 1
    _several = ("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d")  # whose sizes are kept as tuples

    def _read(self, name: str, value: Any) -> Any:
        if name == "stride" and value is None:
            value = self.kernel_size
        if type(self).__name__ in self._several and name in ("kernel_size", "stride", "padding"):
            return several(value, self._axes)
        return value


for _n in (1, 2, 3):
    _MAX = "kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False"
    _AVG = "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
    _more = "" if _n == 1 else " divisor_override=None"
    table(
        f"""
MaxPool{_n}d | max_pool{_n}d | {_MAX}|kernel_size stride padding dilation ceil_mode
AvgPool{_n}d|avg_pool{_n}d|{_AVG}{_more}| kernel_size stride padding
MaxUnpool{_n}d | max_unpool{_n}d | kernel_size stride=None padding=0 | kernel_size stride padding
""",
        type(f"_Pool{_n}d", (_Pool,), {"_axes": _n}),
        ALL,
    )
    table(
        f"""
LPPool{_n}d|lp_pool{_n}d|norm_type kernel_size stride=None ceil_mode=False|norm_type kernel_size stride ceil_mode
AdaptiveAvgPool{_n}d | adaptive_avg_pool{_n}d | output_size | output_size
AdaptiveMaxPool{_n}d | adaptive_max_pool{_n}d | output_size return_indices=False | output_size
""",
        Applied,
        ALL,
    )


def _max_pool(self: Any, input: Tensor) -> Any:
    """The function takes its last two settings in another order."""
    return type(self)._function(
        input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
    )


def _max_unpool(self: Any, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
    return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


for _n in (1, 2, 3):
    ALL[f"MaxPool{_n}d"].forward = _max_pool
    ALL[f"MaxUnpool{_n}d"].forward = _max_unpool


class _Fractional(Settings):
    _settings = settings_of("kernel_size output_size=None output_ratio=None return_indices=False _random_samples=None")
    _axes = 2
    _shown = "-"

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        if self.output_size is None and self.output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if self.output_size is not None and self.output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all([0 < ratio < 1 for ratio in self.output_ratio]):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {self.output_ratio})")

    def _read(self, name: str, value: Any) -> Any:
        return value if value is None or name == "return_indices" else several(value, self._axes)

    def forward(self, input: Tensor) -> Any:
        function = F.ALL[f"fractional_max_pool{self._axes}d"]
        return function(input, *[getattr(self, name) for name in self._settings])


class FractionalMaxPool2d(_Fractional):
    """The largest element under each of so many windows of images, whose places are drawn. B. Graham (2014)."""


class FractionalMaxPool3d(_Fractional):
    """The same of volumes."""

    _axes = 3


ALL |= {"FractionalMaxPool2d": FractionalMaxPool2d, "FractionalMaxPool3d": FractionalMaxPool3d}


class _Pad(Settings):
    _settings = settings_of("padding")
    _shown = "{padding}"
    _mode = "constant"
    _axes = 1
    padding: Any

    def _read(self, name: str, value: Any) -> Any:
        return several(value, 2 * self._axes) if name == "padding" else value

    def forward(self, input: Tensor) -> Any:
        return F.ALL["pad"](input, self.padding, self._mode, getattr(self, "value", None))


for _n in (1, 2, 3):
    for _name, _mode in {
        "Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate",
        "Circular": "circular",
    }.items():  # fmt: skip
        _members = {"_mode": _mode, "_axes": _n, "__module__": "adjoint.torch.nn", "__doc__": f"Padding: {_mode}."}
        if _name == "Constant":
            _members |= {"_settings": settings_of("padding value"), "_shown": "padding={padding}, value={value}"}
        ALL[f"{_name}Pad{_n}d"] = type(f"{_name}Pad{_n}d", (_Pad,), _members)


class Upsample(Module):
    """Images in another size, by `nn.functional.interpolate`."""

    align_corners: Any
    mode: str
    size: Any

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
        recompute_scale_factor: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor
        several_factors = isinstance(scale_factor, (tuple, list))
        self.scale_factor: tuple[float, ...] | Any | float = (
            tuple([float(f) for f in scale_factor]) if several_factors else scale_factor and float(scale_factor)
        )

    def forward(self, input: Tensor) -> Any:
        return F.ALL["interpolate"](
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        first = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


# --- losses --------------------------------------------------------------------------------------------

_OLD = "size_average=None reduce=None reduction='mean'"
_CLASSES = "weight=None size_average=None ignore_index=-100 reduce=None reduction='mean'"
_COUNTS = "log_input=True full=False size_average=None eps=1e-08 reduce=None reduction='mean'"
table(
    f"""
L1Loss                       | l1_loss                          | {_OLD} |
MSELoss                      | mse_loss                         | {_OLD} |
SmoothL1Loss                 | smooth_l1_loss                   | {_OLD} beta=1.0 |
HuberLoss                    | huber_loss                       | reduction='mean' delta=1.0 |
NLLLoss                      | nll_loss                         | {_CLASSES} |
CrossEntropyLoss             | cross_entropy                    | {_CLASSES} label_smoothing=0.0 |
BCELoss                      | binary_cross_entropy             | weight=None {_OLD} |
BCEWithLogitsLoss            | binary_cross_entropy_with_logits | weight=None {_OLD} pos_weight=None |
KLDivLoss                    | kl_div                           | {_OLD} log_target=False |
PoissonNLLLoss               | poisson_nll_loss                 | {_COUNTS} |
GaussianNLLLoss              | gaussian_nll_loss                | * full=False eps=1e-06 reduction='mean' |
SoftMarginLoss               | soft_margin_loss                 | {_OLD} |
HingeEmbeddingLoss           | hinge_embedding_loss             | margin=1.0 {_OLD} |
MultiMarginLoss              | multi_margin_loss                | p=1 margin=1.0 weight=None {_OLD} |
MultiLabelMarginLoss         | multilabel_margin_loss           | {_OLD} |
MultiLabelSoftMarginLoss     | multilabel_soft_margin_loss      | weight=None {_OLD} |
CosineEmbeddingLoss          | cosine_embedding_loss            | margin=0.0 {_OLD} |
MarginRankingLoss            | margin_ranking_loss              | margin=0.0 {_OLD} |
TripletMarginLoss            | triplet_margin_loss              | margin=1.0 p=2.0 eps=1e-06 swap=False {_OLD} |
CTCLoss                      | ctc_loss                         | blank=0 reduction='mean' zero_infinity=False |
""",
    Loss,
    ALL,
)


class TripletMarginWithDistanceLoss(Loss):
    """`nn.functional.triplet_margin_with_distance_loss`; a distance that is a module is a part of it."""

    _settings = {"distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean"}
    _by_place = 0
    _function = staticmethod(F.ALL["triplet_margin_with_distance_loss"])

    def _read(self, name: str, value: Any) -> Any:
        return ALL["PairwiseDistance"]() if name == "distance_function" and value is None else value


for _class in (
    ReLU, RReLU, PReLU, Softmax2d, Identity, Flatten, Unflatten, Upsample, UpsamplingNearest2d, UpsamplingBilinear2d,
    TripletMarginWithDistanceLoss,
):  # fmt: skip
    ALL[_class.__name__] = _class
