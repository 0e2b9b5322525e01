"""Layers with weights: linear maps, convolutions, normalisations, tables."""

from __future__ import annotations

import math
from typing import Any

from adjoint.torch import creation
from adjoint.torch.nn import functional as F
from adjoint.torch.nn import init
from adjoint.torch.nn.layers.base import made_of, several
from adjoint.torch.nn.module import Module
from adjoint.torch.nn.parameter import Parameter
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.tensor import Tensor

_F: Any = F.ALL


def _within_fan(weight: Any, bias: Any) -> None:
    """Weights and biases uniform within 1 / sqrt(fan_in), as PyTorch starts them."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class Linear(Module):
    """x @ weight.T + bias.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.Linear(3, 2)
    >>> layer(torch.ones(4, 3)).shape, layer
    (torch.Size([4, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = made_of(out_features, in_features, dtype=dtype, device=device)
        self.register_parameter("bias", made_of(out_features, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _within_fan(self.weight, self.bias)

    def forward(self, input: Tensor) -> Any:
        return _F["linear"](input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The last map of attention, under PyTorch's name."""


class Bilinear(Module):
    """x1 @ weight[o] @ x2 + bias[o] for each output o."""

    in1_features: int
    in2_features: int
    out_features: int

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight: Any = made_of(out_features, in1_features, in2_features, dtype=dtype, device=device)
        self.register_parameter("bias", made_of(out_features, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.shape[1])
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Any:
        return _F["bilinear"](input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


# --- convolutions -----------------------------------------------------------------------------------------


class _Conv(Module):
    dilation: tuple[Any, ...]
    groups: int
    in_channels: int
    kernel_size: tuple[Any, ...]
    out_channels: int
    output_padding: tuple[Any, ...]
    stride: tuple[Any, ...]

    _axes = 1
    _transposed = False

    def _setup(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        modes = ("zeros", "reflect", "replicate", "circular")
        if not isinstance(padding_mode, str):
            raise ValueError(f"padding_mode must be one of {set(modes)}, not {type(padding_mode).__name__}")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'")
        if self._transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}")
            if padding == "same" and any([s != 1 for s in several(stride, self._axes)]):
                raise ValueError("padding='same' is not supported for strided convolutions")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation, self.output_padding = [
            several(value, self._axes) for value in (kernel_size, stride, dilation, output_padding)
        ]
        self.padding: str | tuple[Any, ...] = padding if isinstance(padding, str) else several(padding, self._axes)
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        self.weight: Any = made_of(channels[0], channels[1] // groups, *self.kernel_size, dtype=dtype, device=device)
        self.register_parameter("bias", made_of(out_channels, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _within_fan(self.weight, self.bias)

    def extra_repr(self) -> str:
        none = (0,) * self._axes
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._axes:
            text += f", dilation={self.dilation}"
        if self.output_padding != none:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Convolution(_Conv):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
                    device, dtype)  # fmt: skip

    def _widths(self) -> list[int]:
        """The padding as `nn.functional.pad` takes it: of the last axis first."""
        found: list[int] = []
        for i in reversed(range(self._axes)):
            if isinstance(self.padding, str):
                total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
                found += [total // 2, total - total // 2]
            else:
                found += [self.padding[i]] * 2
        return found

    def forward(self, input: Tensor) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = _F["pad"](input, self._widths(), self.padding_mode), 0
        return _F[f"conv{self._axes}d"](input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    """The convolution of signals (batch, channels, length)."""


class Conv2d(_Convolution):
    """The convolution of images (batch, channels, height, width)."""

    _axes = 2


class Conv3d(_Convolution):
    """The convolution of volumes (batch, channels, depth, height, width)."""

    _axes = 3


class _Transposed(_Conv):
    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
                    padding_mode, device, dtype)  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Any:
        extra = self.output_padding if output_size is None else self._extra(input, list(output_size))
        return _F[f"conv_transpose{self._axes}d"](
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, input: Tensor, size: list[int]) -> tuple[int, ...]:
        """The output padding that gives a size."""
        if len(size) == self._axes + (input.ndim - self._axes):
            size = size[-self._axes :]
        if len(size) != self._axes:
            raise ValueError(
                f"ConvTranspose{self._axes}D: for {input.ndim}D input, output_size must have {self._axes} or "
                f"{input.ndim} elements (got {len(size)})"
            )
        found = []
        for i, wanted in enumerate(size):
            n = input.shape[i - self._axes]
            least = (n - 1) * self.stride[i] - 2 * self.padding[i] + self.dilation[i] * (self.kernel_size[i] - 1) + 1
            if not least <= wanted <= least + self.stride[i] - 1:
                raise ValueError(f"requested an output size of {size}, but valid sizes start from {least} in axis {i}")
            found.append(wanted - least)
        return tuple(found)


class ConvTranspose1d(_Transposed):
    """The transpose of `Conv1d`."""


class ConvTranspose2d(_Transposed):
    """The transpose of `Conv2d`."""

    _axes = 2


class ConvTranspose3d(_Transposed):
    """The transpose of `Conv3d`."""

    _axes = 3


# --- normalisations ---------------------------------------------------------------------------------------


class _Norm(Module):
    """Per-channel statistics; `_tracks` and `_scales` are the defaults, `_ranks` the numbers of axes."""

    eps: float
    momentum: Any
    num_features: int

    _version = 2
    _ranks: tuple[int, ...] = (2, 3)
    _affine = True
    _tracks = True
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: Any = 0.1, affine: Any = None,
        track_running_stats: Any = None, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine: Any = self._affine if affine is None else affine
        self.track_running_stats: Any = self._tracks if track_running_stats is None else track_running_stats
        made = {"dtype": dtype, "device": device}
        self.register_parameter("weight", made_of(num_features, **made) if self.affine else None)
        self.register_parameter("bias", made_of(num_features, **made) if self.affine and bias else None)
        tracked = self.track_running_stats
        self.register_buffer("running_mean", creation.zeros(num_features, **made) if tracked else None)
        self.register_buffer("running_var", creation.ones(num_features, **made) if tracked else None)
        self.register_buffer("num_batches_tracked", creation.tensor(0, device=made["device"]) if tracked else None)
        self.reset_parameters()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        """Older states have no number of batches."""
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Norm):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._ranks:
            wanted = " or ".join([f"{n}D" for n in self._ranks])
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the average of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or self.running_mean is None
        follows = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if follows else (None, None)
        return _F["batch_norm"](input, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (batch, channels) or (batch, channels, length)."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (batch, channels, height, width).

    >>> import adjoint.torch as torch
    >>> torch.nn.BatchNorm2d(3)(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (batch, channels, depth, height, width)."""

    _ranks = (5,)


class _InstanceNorm(_Norm):
    _affine = _tracks = False

    def forward(self, input: Tensor) -> Any:
        if input.ndim not in self._ranks:
            wanted = " or ".join([f"{n}D" for n in self._ranks])
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")
        alone = input.ndim == self._ranks[0]  # without a batch
        x = input.unsqueeze(0) if alone else input
        momentum = 0.0 if self.momentum is None else self.momentum
        of_input = self.training or not self.track_running_stats
        out = _F["instance_norm"](
            x, self.running_mean, self.running_var, self.weight, self.bias, of_input, momentum, self.eps
        )
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (batch, channels, length), or without the batch."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (batch, channels, height, width), or without the batch."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (batch, channels, depth, height, width), or without the batch."""

    _ranks = (4, 5)


class GroupNorm(Module):
    """Normalisation of groups of channels."""

    affine: bool
    eps: float
    num_channels: int
    num_groups: int

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        made = {"dtype": dtype, "device": device}
        self.register_parameter("weight", made_of(num_channels, **made) if affine else None)
        self.register_parameter("bias", made_of(num_channels, **made) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Any:
        return _F["group_norm"](input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LayerNorm(Module):
    """Normalisation of the last axes."""

    elementwise_affine: bool
    eps: float

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape: tuple[Any, ...] = several(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = {"dtype": dtype, "device": device}
        self.register_parameter("weight", made_of(*self.normalized_shape, **made) if elementwise_affine else None)
        with_bias = elementwise_affine and bias
        self.register_parameter("bias", made_of(*self.normalized_shape, **made) if with_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Any:
        return _F["layer_norm"](input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last axes over the root of their mean square."""

    elementwise_affine: bool
    eps: Any

    def __init__(
        self, normalized_shape: Any, eps: Any = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape: tuple[Any, ...] = several(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = made_of(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Any:
        return _F["rms_norm"](x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


# --- tables -----------------------------------------------------------------------------------------------


class _Table(Module):
    embedding_dim: int
    num_embeddings: int
    padding_idx: Any

    weight: Any

    def _setup(self, rows: int, width: int, padding_idx: Any, given: Any, freeze: bool, made: Any) -> None:
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= rows
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, width, padding_idx
        if given is None:
            self.weight = made_of(rows, width, **made)
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
        else:
            if not isinstance(given, Tensor):
                raise WrongKindError(f"_weight must be a Tensor, not {type(given).__name__}")
            if tuple(given.shape) != (rows, width):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        from adjoint.torch.state import no_grad

        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """The rows of a table.

    >>> import adjoint.torch as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 5]])).shape
    torch.Size([2, 2, 3])
    """

    max_norm: Any
    norm_type: float
    scale_grad_by_freq: bool

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse
        self._setup(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, {"dtype": dtype, "device": device})

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: Any = None, **options: Any) -> Any:
        """The layer of a table that there is, which is not trained unless `freeze=False`."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        return cls(rows, width, padding_idx, _weight=embeddings, _freeze=freeze, **options)

    def forward(self, input: Tensor) -> Any:
        return _F["embedding"](
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is not default and value != default:
                text += f", {name}={value}"
        return text


class EmbeddingBag(_Table):
    """Rows of a table, joined by bags."""

    include_last_offset: bool
    max_norm: Any
    mode: str
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: Any = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self._setup(num_embeddings, embedding_dim, padding_idx, _weight, False, {"dtype": dtype, "device": device})

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
        """The layer of a table that there is, which is not trained unless `freeze=False`."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        made = cls(rows, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return _F["embedding_bag"](
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, False,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
