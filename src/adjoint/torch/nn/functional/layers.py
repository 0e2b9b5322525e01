"""What layers compute: products, convolutions, pools, normalisations, dropout, tables."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.torch import overriding
from adjoint.torch.arguments import Sizes, guarded, refuse_others
from adjoint.torch.calls import call, check_size, explained, off, put, write
from adjoint.torch.dtypes import of_numpy
from adjoint.torch.lifted import is_batched, value_alone
from adjoint.torch.nn.functional import words
from adjoint.torch.nn.functional.shared import check_exact, drawing, probability, tensor
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import LEVEL, Tensor, is_elsewhere, is_lifted, looked, next_number, of, values

_linear = LEVEL["linear"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """x @ weight.T + bias: (..., inputs) and (outputs, inputs).

    >>> import adjoint.torch as torch
    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2))
    tensor([[2., 2., 2.]])
    """
    given = (input, weight) if bias is None else (input, weight, bias)
    if overriding.used and (found := overriding.overridden(linear, given, {})) is not NotImplemented:
        return found
    try:
        apart = is_elsewhere(input) or is_elsewhere(weight) or (bias is not None and is_elsewhere(bias))
    except AttributeError as error:
        if (found := overriding.overridden(linear, given, {})) is not NotImplemented:
            return found
        refuse_others(linear, (input, weight, bias), {}, error)
        raise
    x = values(input) if apart else input._here  # which is read once, also where it shares memory
    shape, other = x.shape, values(weight).shape
    if len(other) == 1 and input.ndim and bias is None:
        return FUNCTIONS["matmul"](input, weight)
    if len(other) != 2 or not shape or shape[-1] != other[1] or input._dtype is not weight._dtype:
        raise _misfit(input, weight)
    if bias is not None and bias._dtype is input._dtype and len(shape) == 2 and not off() and not apart:
        try:
            return of(_linear(x, weight._here, bias._here))
        except ValueError as error:
            raise explained(error, ()) from None
    if input._dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    rows = {1: ("View", "SqueezeBackward4"), 2: ("Addmm", "Mm")}
    with_bias, alone = rows.get(len(shape), ("View", "UnsafeView"))
    return call("nn.linear", alone if bias is None else with_bias, input, weight, bias)


def _misfit(x: Tensor, weight: Tensor) -> Exception:
    if x._dtype is not weight._dtype:
        return RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {x.dtype.class_name} and {weight.dtype.class_name}"
        )
    rows = math.prod(x.shape[:-1])
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1] if x.ndim else 1} and "
        f"{'x'.join(map(str, weight.shape[::-1]))})"
    )


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """x1 @ weight[o] @ x2 for each output o."""
    return call("nn.bilinear", "Add" if bias is not None else "View", input1, input2, weight, bias)


# --- convolutions -------------------------------------------------------------------------------------


def _convolution(axes: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
        dilation: Sizes = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        if groups <= 0:
            raise RuntimeError("non-positive groups is not supported")
        _check_axes(weight)
        _check_images(f"conv{axes}d", axes, input, weight, weight.shape[1] * groups, groups, "")
        _check_bias(input, bias)
        try:
            return call(
                f"nn.conv{axes}d", _node(axes, input), input, weight, bias, stride=_sizes(stride),
                padding=_sizes(padding), dilation=_sizes(dilation), groups=groups,
            )  # fmt: skip
        except RuntimeError as error:
            why = words.of_convolution(axes, input, weight, bias, stride, padding, dilation, groups)
            raise (error if why is None else RuntimeError(why)) from None

    conv.__name__ = conv.__qualname__ = f"conv{axes}d"
    return conv


def _transposed(axes: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
        output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
    ) -> Any:  # fmt: skip
        _check_axes(weight)
        _check_images(f"conv_transpose{axes}d", axes, input, weight, weight.shape[0], groups, "transposed=1, ")
        _check_bias(input, bias)
        return call(
            f"nn.conv_transpose{axes}d", _node(axes, input), input, weight, bias, stride=_sizes(stride),
            padding=_sizes(padding), output_padding=_sizes(output_padding), groups=groups, dilation=_sizes(dilation),
        )  # fmt: skip

    conv.__name__ = conv.__qualname__ = f"conv_transpose{axes}d"
    return conv


def _node(axes: int, x: Tensor) -> str:
    """The node of a convolution, which of a single example is that of a batch of one."""
    return "Convolution" if x.ndim == axes + 2 else "SqueezeBackward1"


def _sizes(value: Any) -> Any:
    """Sizes, one for each axis, or one for all."""
    if not isinstance(value, (list, tuple)):
        return value
    return value[0] if len(value) == 1 else tuple(value)


def _check_axes(weight: Tensor) -> None:
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")


def _check_images(name: str, axes: int, x: Tensor, weight: Tensor, channels: int, groups: int, more: str) -> None:
    """PyTorch's words for other axes or channels than a convolution's."""
    if x.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {name}, but got input of size: "
            f"{list(x.shape)}"
        )
    found = x.shape[-axes - 1]
    if found != channels:
        batched = list(x.shape) if x.ndim == axes + 2 else [1, *x.shape]
        raise RuntimeError(
            f"Given {more}groups={groups}, weight of size {list(weight.shape)}, expected input{batched} to have "
            f"{channels} channels, but got {found} channels instead"
        )
    if x._dtype is not weight._dtype:
        raise RuntimeError(
            f"Input type ({x.dtype}) and weight type ({weight.dtype}) should be the same: "
            f"torch.{x.dtype.class_name}Tensor and torch.{weight.dtype.class_name}Tensor"
        )


def _check_bias(x: Tensor, bias: Any) -> None:
    if bias is not None and bias._dtype is not x._dtype:
        raise RuntimeError(f"Input type ({x.dtype}) and bias type ({bias.dtype}) should be the same")


conv1d: Any = _convolution(1)
conv2d: Any = _convolution(2)
conv3d: Any = _convolution(3)
conv_transpose1d: Any = _transposed(1)
conv_transpose2d: Any = _transposed(2)
conv_transpose3d: Any = _transposed(3)


# --- pools ----------------------------------------------------------------------------------------------


def _max_pool(axes: int) -> Any:
    def pool(
        input: Tensor, kernel_size: Sizes, stride: Sizes = None, padding: Any = 0, dilation: Sizes = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        if 0 in input.shape[-axes - 1 :] and input.ndim in (axes + 1, axes + 2):
            raise RuntimeError(
                f"max_pool{axes}d: Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with optional 0 dim batch "
                f"size for input, whose non-batch dimensions have positive length, but got:{list(input.shape)}"
            )
        if axes == 1 and input._dtype.kind != "f":
            return _pooled_integers(pool, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        try:
            return call(
                f"nn.max_pool{axes}d", f"MaxPool{axes}DWithIndices", input, _sizes(kernel_size), _stride(stride),
                padding=_sizes(padding), dilation=_sizes(dilation), ceil_mode=ceil_mode, return_indices=return_indices,
            )  # fmt: skip
        except RuntimeError as error:
            why = words.of_pool(pool.__name__, axes, input, kernel_size, _stride(stride), padding, dilation)
            raise (error if why is None else RuntimeError(why)) from None

    pool.__name__ = pool.__qualname__ = f"max_pool{axes}d"
    return pool


def _pooled_integers(pool: Any, x: Tensor, *settings: Any) -> Any:
    """The largest of integers and their places: PyTorch has the two together alone."""
    if not settings[-1] or x._dtype.kind in "bc":
        kernel = "max_pool2d" if settings[-1] else "max_pool1d_impl"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{x.dtype.class_name}'")
    check_exact(pool.__name__, x)
    found, places = pool(x.double(), *settings)
    return found.to(dtype=x._dtype), places


def _stride(stride: Sizes) -> Any:
    """None, or an empty list, stands for the kernel's size."""
    return None if stride is None or (isinstance(stride, (list, tuple)) and not stride) else _sizes(stride)


def _avg_pool(axes: int) -> Any:
    def pool(
        input: Tensor, kernel_size: Sizes, stride: Sizes = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        options = {} if divisor_override is None else {"divisor_override": divisor_override}
        try:
            return call(
                f"nn.avg_pool{axes}d", f"AvgPool{axes}D", input, _sizes(kernel_size), _stride(stride),
                padding=_sizes(padding), ceil_mode=ceil_mode, count_include_pad=count_include_pad, **options,
            )  # fmt: skip
        except RuntimeError as error:
            why = words.of_pool(pool.__name__, axes, input, kernel_size, _stride(stride), padding)
            raise (error if why is None else RuntimeError(why)) from None

    pool.__name__ = pool.__qualname__ = f"avg_pool{axes}d"
    return pool


def _adaptive(kind: str, axes: int) -> Any:
    name = f"adaptive_{kind}_pool{axes}d"
    made = f"Adaptive{kind.capitalize()}Pool{axes}D"

    def output(input: Tensor, output_size: Any) -> Any:
        """The sizes, where None stands for the input's."""
        if axes > 1 and input.ndim < axes + 1:
            if isinstance(output_size, (tuple, list)):
                raise ValueError(f"Input dimension should be at least {axes + 1}")
            raise RuntimeError(f"{name}(): Expected {axes + 1}D or {axes + 2}D tensor, but got: {list(input.shape)}")
        if isinstance(output_size, (tuple, list)):
            if len(output_size) != axes:
                raise RuntimeError(f"{name}(): output_size must be {axes} integers, received {len(output_size)}")
            sizes = zip(output_size, input.shape[-axes:], strict=True)
            return tuple([own if wanted is None else wanted for wanted, own in sizes])
        return output_size if output_size is not None else tuple(input.shape[-axes:])

    def pool(input: Tensor, output_size: Sizes) -> Any:
        wanted = output(input, output_size)
        whole = wanted == 1 or wanted == (1,) * axes
        if tensor(input, name)._dtype.kind != "f":
            if whole:
                return FUNCTIONS["mean"](input, tuple(range(-axes, 0)), True)
            kernel = "adaptive_avg_pool3d_cpu" if axes == 3 else "adaptive_avg_pool2d"
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.class_name}'")
        return call(f"nn.{name}", "MeanBackward1" if whole and axes > 1 else made, input, wanted)

    def pool_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
        return call(f"nn.{name}", made, input, output(input, output_size), return_indices=return_indices)

    found: Any = pool if kind == "avg" else pool_with_indices
    found.__name__ = found.__qualname__ = name
    return found


def _unpool(axes: int) -> Any:
    def pool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Any = 0,
        output_size: Sizes = None,
    ) -> Any:
        size = _unpooled(input, axes, kernel_size, stride, padding, output_size)
        return call(
            f"nn.max_unpool{axes}d", f"MaxUnpool{axes}D", input, indices, _sizes(kernel_size), _stride(stride),
            _sizes(padding), size,
        )  # fmt: skip

    pool.__name__ = pool.__qualname__ = f"max_unpool{axes}d"
    return pool


def _unpooled(x: Tensor, axes: int, kernel: Any, stride: Sizes, padding: Any, wanted: Any) -> Any:
    """The size that was asked for, which is near that of a pool's input."""
    if wanted is None:
        return None
    size = tuple(wanted)[-axes:]
    if len(wanted) not in (axes, axes + 2):
        raise ValueError(f"output_size should be a sequence containing {axes} or {axes + 2} elements, but it has a "
                         f"length of '{len(wanted)}'")  # fmt: skip
    sizes = [(n,) * axes if isinstance(n, int) else tuple(n) for n in (kernel, stride or kernel, padding)]
    for i, (n, k, step, pad) in enumerate(zip(x.shape[-axes:], *sizes, strict=True)):
        usual = (n - 1) * step + k - 2 * pad
        if not usual - step < size[i] < usual + step:
            raise ValueError(
                f'invalid output_size "{size}" (dim {i} must be between {usual - step} and {usual + step})'
            )
    return size


def _lp_pool(axes: int) -> Any:
    def pool(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes = None, ceil_mode: bool = False) -> Any:
        check_size(norm_type)
        try:
            return call(
                f"nn.lp_pool{axes}d", "Pow", input, norm_type, _sizes(kernel_size), _stride(stride), ceil_mode=ceil_mode
            )
        except RuntimeError as error:
            why = words.of_pool(pool.__name__, axes, input, kernel_size, _stride(stride), 0)
            raise (error if why is None else RuntimeError(why)) from None

    pool.__name__ = pool.__qualname__ = f"lp_pool{axes}d"
    return pool


def _fractional(axes: int) -> Any:
    def pool(
        input: Tensor, kernel_size: Sizes, output_size: Sizes = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> Any:  # fmt: skip
        """The largest element under each of so many windows, whose places are drawn."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"fractional_max_pool{axes}d requires specifying either an output_size or an output_ratio")
        if _random_samples is not None:
            raise NotImplementedError(
                f"adjoint.torch: fractional_max_pool{axes}d(_random_samples=...) is not there; places of windows "
                "follow torch.manual_seed"
            )
        size = None if output_size is None else _sizes(output_size)
        return drawing(
            f"nn.fractional_max_pool{axes}d", f"FractionalMaxPool{axes}D", input, _sizes(kernel_size), size,
            output_ratio=output_ratio, return_indices=return_indices,
        )  # fmt: skip

    pool.__name__ = pool.__qualname__ = f"fractional_max_pool{axes}d"
    return pool


def _with_places(pool: Any) -> Any:
    """The form of a pool that always gives places, too."""

    place = [*inspect.signature(pool).parameters].index("return_indices")

    def spelled(*args: Any, **options: Any) -> Any:
        if len(args) > place:  # what it is does not matter
            args = (*args[:place], True, *args[place + 1 :])
            return pool(*args, **options)
        return pool(*args, **{**options, "return_indices": True})

    spelled.__name__ = spelled.__qualname__ = f"{pool.__name__}_with_indices"
    spelled.__wrapped__ = pool  # type: ignore[attr-defined]
    return spelled


def _with_size(pool: Any) -> Any:
    """A fractional pool that asks first for the sizes of its output, as PyTorch's does; another one as it is."""
    name: str = pool.__name__
    if not name.startswith("fractional"):
        return pool

    @functools.wraps(pool)
    def spelled(*args: Any, **options: Any) -> Any:
        if len(args) < 3 and options.get("output_size") is None and options.get("output_ratio") is None:
            raise ValueError(f"{name[:-13]} requires specifying either an output_size or an output_ratio")
        return pool(*args, **options)

    overriding.public[pool] = spelled
    return spelled


max_pool1d: Any = _max_pool(1)
max_pool2d: Any = _max_pool(2)
max_pool3d: Any = _max_pool(3)
avg_pool1d: Any = _avg_pool(1)
avg_pool2d: Any = _avg_pool(2)
avg_pool3d: Any = _avg_pool(3)
adaptive_avg_pool1d: Any = _adaptive("avg", 1)
adaptive_avg_pool2d: Any = _adaptive("avg", 2)
adaptive_avg_pool3d: Any = _adaptive("avg", 3)
adaptive_max_pool1d: Any = _adaptive("max", 1)
adaptive_max_pool2d: Any = _adaptive("max", 2)
adaptive_max_pool3d: Any = _adaptive("max", 3)
fractional_max_pool2d: Any = _fractional(2)
fractional_max_pool3d: Any = _fractional(3)
WITH_INDICES = {
    f"{pool.__name__}_with_indices": _with_size(guarded(_with_places(pool)))
    for pool in (
        max_pool1d, max_pool2d, max_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d,
        fractional_max_pool2d, fractional_max_pool3d,
    )
}  # fmt: skip
max_unpool1d: Any = _unpool(1)
max_unpool2d: Any = _unpool(2)
max_unpool3d: Any = _unpool(3)
lp_pool1d: Any = _lp_pool(1)
lp_pool2d: Any = _lp_pool(2)
lp_pool3d: Any = _lp_pool(3)


# --- normalisations -------------------------------------------------------------------------------------


def _values_per_channel(x: Tensor) -> None:
    if x.numel() == x.shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")


def _follow(input: Tensor, mean: Any, var: Any, momentum: float, of_batch: bool) -> None:
    """Write the next running statistics over the last."""
    from adjoint.torch.state import no_grad

    if not input.numel():
        return
    with no_grad():
        found = call(
            lambda x, m, v: ad.nn.running_statistics(x, m, v, momentum, of_batch=of_batch), None, input, mean, var
        )
        for known, new in zip((mean, var), found, strict=True):  # which transforms let pass where they are captured
            put(known, new if is_lifted(known) else value_alone(new), next_number())


def batch_norm(
    input: Tensor, running_mean: Any, running_var: Any, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel with mean 0 and variance 1, then scaled and shifted; in training the running ones follow."""
    if training:
        _values_per_channel(tensor(input, "batch_norm"))
    _same_parameters(input, running_mean, running_var, weight, bias)
    out = call(
        "nn.batch_norm", "NativeBatchNorm", input, running_mean, running_var, weight, bias, training=training, eps=eps
    )
    if training and running_mean is not None:
        _follow(input, running_mean, running_var, momentum, True)
    return out


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """As `batch_norm` for each example by itself."""
    if use_input_stats and math.prod(tensor(input, "instance_norm").shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    out = call(
        lambda x, m, v, w, b: ad.nn.instance_norm(
            x, running_mean=m, running_var=v, weight=w, bias=b, use_input_stats=use_input_stats, eps=eps
        ),
        "View", input, running_mean, running_var, weight, bias,
    ).to(dtype=input._dtype)  # fmt: skip
    if use_input_stats and running_mean is not None:
        _follow(input, running_mean, running_var, momentum, False)
    return out


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Any:
    """Groups of channels of each example with mean 0 and variance 1, then scaled and shifted."""
    if tensor(input, "group_norm").ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if input.shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:]) == 1:  # over all examples
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    _same_parameters(input, weight, bias)
    return call("nn.group_norm", "NativeGroupNorm", input, num_groups, weight, bias, eps).to(dtype=input._dtype)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Any:
    """The last axes with mean 0 and variance 1, then scaled and shifted."""
    shape = _fitting(tensor(input, "layer_norm"), normalized_shape)
    _same_parameters(input, weight, bias)
    return call("nn.layer_norm", "NativeLayerNorm", input, shape, weight, bias, eps).to(dtype=input._dtype)


def _same_parameters(input: Tensor, *given: Any) -> None:
    """Raise PyTorch's error for parameters of another type than the input's, but for single ones of halves."""
    kinds = [x._dtype for x in given if x is not None]
    if input._dtype.itemsize == 2 and np.dtype("float32") in kinds:
        other = next((k for k in kinds if k != np.float32), None)
        if other is not None:
            raise RuntimeError(f"expected scalar type {of_numpy(other).class_name} but found Float")
        return
    for kind in kinds:
        if kind is not input._dtype:
            raise RuntimeError(
                "mixed dtype (CPU): expect parameter to have scalar type of "
                f"{'Float' if input._dtype.itemsize == 2 else input.dtype.class_name}"
            )


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: Any = None) -> Any:
    """The last axes over the root of their mean square, then scaled."""
    shape = _fitting(tensor(input, "rms_norm"), normalized_shape)
    return call("nn.rms_norm", "Mul", input, shape, weight, eps).to(dtype=input._dtype)


def _fitting(x: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
            f"got input of size{list(x.shape)}"
        )
    return shape


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Each number over a power of the squares of those near to it in other channels."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if not input.numel():
        return input
    return call("nn.local_response_norm", "Div", input, size, alpha, beta, k)


# --- dropout --------------------------------------------------------------------------------------------


def _dropout(name: str, made: str, training: bool) -> Any:
    def drop(input: Tensor, p: float = 0.5, training: bool = training, inplace: bool = False) -> Any:
        probability(p)
        if not training or p == 0.0:
            return tensor(input, name)
        if p == 1.0 and not inplace and tensor(input, name)._dtype.kind != "f":
            return input * input.new_zeros(())

        def apply(x: Any) -> Any:
            return drawing(f"nn.{name}", made, x, p, training)

        return write(input, apply) if inplace else apply(tensor(input, name))

    drop.__name__ = drop.__qualname__ = name
    return drop


dropout: Any = _dropout("dropout", "Mul", True)
dropout1d: Any = _dropout("dropout1d", "Mul", True)
dropout2d: Any = _dropout("dropout2d", "Mul", True)
dropout3d: Any = _dropout("dropout3d", "Mul", True)
alpha_dropout: Any = _dropout("alpha_dropout", "Add", False)
feature_alpha_dropout: Any = _dropout("feature_alpha_dropout", "Add", False)


# --- tables ---------------------------------------------------------------------------------------------


def _rows(input: Tensor, weight: Tensor, name: str) -> None:
    if tensor(input, name)._dtype.kind != "i" or input._dtype.itemsize < 4:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{input.dtype.class_name}Tensor instead (while checking arguments for {name})"
        )


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """The rows of a table at integers; with `max_norm` the rows that are read are shortened in the table itself."""
    _rows(input, weight, "embedding")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if max_norm is not None:
        _renormed(weight, input, max_norm, norm_type)
    try:
        return call(
            "nn.embedding", "Embedding", input, weight, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
        )
    except IndexError as error:
        raise IndexError(f"index out of range in self: {error}") from None


def _renormed(weight: Tensor, rows: Tensor, max_norm: float, norm_type: float) -> None:
    from adjoint.torch.state import no_grad

    with no_grad():
        found = FUNCTIONS["unique"](rows)
        short = call("nn.embedding", None, found, weight, max_norm=float(max_norm), norm_type=float(norm_type))
        weight.index_copy_(0, found, short)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: Any = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    """Rows of a table, joined by bags."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    _rows(input, weight, "embedding_bag")
    if weight._dtype.kind != "f":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got torch.{weight.dtype.class_name}Tensor instead"
        )
    _check_offsets(input, offsets, per_sample_weights, weight)
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if input.ndim == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    if scale_grad_by_freq and mode == "max":
        raise RuntimeError("embedding_bag: scaling by frequency is not supported with mode 'max'")
    if max_norm is not None:
        _renormed(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:  # the same values, whose gradients are divided by how often their row is read
        often = FUNCTIONS["bincount"](input.reshape(-1), minlength=weight.shape[0]).clamp(min=1)
        fixed = weight.detach()
        weight = fixed + (weight - fixed) / often.to(dtype=weight._dtype).unsqueeze(1)
    try:
        return call(
            lambda i, w, o, f: ad.nn.embedding_bag(
                i, w, o, mode=mode, per_sample_weights=f, include_last_offset=include_last_offset,
                padding_idx=padding_idx,
            ),
            "EmbeddingBag", input, weight, offsets, per_sample_weights,
        )  # fmt: skip
    except IndexError as error:
        raise _out_of_table(input, weight, offsets) or error from None


def _check_offsets(input: Tensor, offsets: Any, factors: Any, weight: Tensor) -> None:
    """PyTorch's words for offsets and factors that do not fit the indices of bags."""
    if factors is not None and factors.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then it must have the same shape as "
            f"the input ({input.shape})"
        )
    if factors is not None and factors._dtype is not weight._dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type torch.{weight.dtype.class_name}Tensor does not equal "
            f"torch.{factors.dtype.class_name}Tensor"
        )
    if input.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if input.ndim == 2 or offsets is None:
        return
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    _rows(offsets, weight, "embedding_bag")
    if not is_batched(offsets) and offsets.numel() and (first := looked(offsets)[0]):
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {first}"
        )


def _out_of_table(input: Tensor, weight: Tensor, offsets: Any) -> Exception | None:
    """Which index or offset of bags is out of bounds."""
    indices = looked(input).ravel()
    wrong = np.flatnonzero((indices < 0) | (indices >= weight.shape[0]))
    if wrong.size:
        return RuntimeError(
            f"Index {wrong[0]} of input takes value {indices[wrong[0]]} which is not in the valid range "
            f"[0, {weight.shape[0]})"
        )
    if offsets is None or looked(offsets)[-1] <= indices.size:
        return None
    return RuntimeError(
        f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of "
        f"{looked(offsets)[-1]}"
    )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """Zeros, and a one at each integer, along a new last axis."""
    if tensor._dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if is_batched(tensor) and num_classes <= 0:
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    if not is_batched(tensor) and tensor.numel():
        if looked(tensor).min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if 0 <= num_classes <= looked(tensor).max():
            raise RuntimeError("Class values must be smaller than num_classes.")
    if not is_batched(tensor) and not tensor.numel() and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    made = call("nn.one_hot", None, tensor, num_classes)
    return made.long()
