"""Normalisations, over features, batches, groups and neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_flag, as_number, inexact, integers, positive, real
from adjoint.functions.creation import ones, zeros
from adjoint.functions.elementwise import sqrt
from adjoint.functions.shape import moveaxis, reshape
from adjoint.operands import cast, operand, run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def layer_norm(
    x: Operand[B],
    normalized_shape: int | Sequence[int],
    weight: Operand[B] | None = None,
    bias: Operand[B] | None = None,
    eps: float = 1e-5,
) -> Tensor[B]:
    """x with mean 0 and variance 1 over its last axes, then scaled and shifted. J. Ba et al. (2016).

    `normalized_shape` is the shape of those axes, and of weight and bias. Raises ArgumentTypeError where it is no
    shape, ShapeError where they do not agree.
    """
    x, eps = real(x, "layer_norm", weight, bias), as_number(eps, "layer_norm", "eps")
    shape = integers(normalized_shape, "layer_norm", "the sizes in normalized_shape")
    scale, shift = (None if given is None else operand(given, x, "layer_norm") for given in (weight, bias))
    found = {"what x ends with": x.shape[x.ndim - len(shape) :]}
    found |= {name: given.shape for name, given in (("weight", scale), ("bias", shift)) if given is not None}
    for name, sizes in found.items():
        if sizes != shape or not shape:
            raise errors.ShapeError(f"layer_norm: normalized_shape is {errors.shown(shape)}, {name} has shape {sizes}")
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return _normalized(x, axes, eps, scale, shift, shape)


def _normalized(
    x: Tensor[Any], axes: tuple[int, ...], eps: float, scale: Any, shift: Any, shape: tuple[int, ...]
) -> Tensor[Any]:
    """Mean 0 and variance 1 along axes, then scaled and shifted by tensors or None, made of a shape first."""
    dtype = x.dtype
    for given in (scale, shift):
        dtype = dtype if given is None else dtypes.promote(dtype, given.dtype)
    wide = dtypes.summing(dtype)
    if (scale is None and shift is None) or not x.size:
        out = run("standardize", (cast(x, wide),), axis=axes, epsilon=eps)
        out = out if scale is None else out * reshape(scale, shape)
        return cast(out if shift is None else out + reshape(shift, shape), dtype)
    shape = (1,) * (x.ndim - len(shape)) + shape
    scale = ones(shape, dtype=wide, device=x.device) if scale is None else reshape(cast(scale, wide), shape)
    shift = zeros(shape, dtype=wide, device=x.device) if shift is None else reshape(cast(shift, wide), shape)
    return cast(run("normalize", (cast(x, wide), scale, shift), axis=axes, epsilon=eps), dtype)


def rms_norm(
    x: Operand[B],
    normalized_shape: int | Sequence[int],
    weight: Operand[B] | None = None,
    eps: float | None = None,
) -> Tensor[B]:
    """x over the root of its mean square over its last axes, then scaled. B. Zhang, R. Sennrich (2019).

    `eps` is added to the mean square, the dtype's machine epsilon unless given. The squares of complex numbers are
    complex, and so is their mean. The rest is as in `layer_norm`.
    """
    x = inexact(x, "rms_norm", weight)
    shape = integers(normalized_shape, "rms_norm", "the sizes in normalized_shape")
    scale = None if weight is None else operand(weight, x, "rms_norm")
    for name, sizes in (
        ("what x ends with", x.shape[x.ndim - len(shape) :]),
        ("weight", None if scale is None else scale.shape),
    ):
        if sizes is not None and (sizes != shape or not shape):
            raise errors.ShapeError(f"rms_norm: normalized_shape is {errors.shown(shape)}, {name} has shape {sizes}")
    least = float(dtypes.finfo(x.dtype).eps) if eps is None else as_number(eps, "rms_norm", "eps")
    wide = cast(x, dtypes.summing(x.dtype))
    square = (wide * wide).mean(axis=tuple(range(x.ndim - len(shape), x.ndim)), keepdims=True)
    out = cast(wide / sqrt(square + least), x.dtype)
    return out if scale is None else out * scale


def batch_norm(
    x: Operand[B],
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    *,
    training: bool = False,
    eps: float = 1e-5,
) -> Tensor[B]:
    """Each channel with mean 0 and variance 1, then scaled and shifted. S. Ioffe, C. Szegedy (2015).

    In training, mean and variance are those of the batch and all axes but the channels'; otherwise the running ones.
    Tensors are values: the running ones stay as they are, and `running_statistics` gives the next ones.

    Parameters
    ----------
    x
        (batch, channels, ...)
    running_mean, running_var
        (channels,): needed unless training.
    weight, bias
        (channels,)

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit; no statistics, or one value per channel in training.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.batch_norm(ad.tensor([[1.0], [3.0]]), training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    name = "batch_norm"
    x = _channels(x, name, weight, bias, running_mean, running_var)
    eps = as_number(eps, name, "eps")
    shape = (x.shape[1], *[1] * (x.ndim - 2))
    scale, shift = (_of_channels(v, x, name, what) for v, what in ((weight, "weight"), (bias, "bias")))
    if as_flag(training, name, "training"):
        if x.size == x.shape[1]:
            raise errors.ArgumentError(
                f"{name}: one value per channel, of shape {x.shape}, has no variance in training"
            )
        return _normalized(x, (0, *range(2, x.ndim)), eps, scale, shift, shape)
    return _by_statistics(x, running_mean, running_var, scale, shift, eps, name)


def _by_statistics(
    x: Tensor[Any], running_mean: Any, running_var: Any, scale: Any, shift: Any, eps: float, name: str
) -> Tensor[Any]:
    """Channels normalised by means and variances that are given, then scaled and shifted by tensors or None."""
    shape = (x.shape[1], *[1] * (x.ndim - 2))
    mean, variance = (
        _of_channels(v, x, name, what) for v, what in ((running_mean, "running_mean"), (running_var, "running_var"))
    )
    if mean is None or variance is None:
        raise errors.ArgumentError(f"{name}: running_mean and running_var are needed unless training")
    factor = 1 / sqrt(cast(variance, dtypes.summing(variance.dtype)) + eps)
    if scale is not None:
        factor = factor * scale
    offset = -mean * factor if shift is None else shift - mean * factor
    return cast(x * reshape(factor, shape) + reshape(offset, shape), x.dtype)


def running_statistics(
    x: Operand[B], running_mean: Any, running_var: Any, momentum: float = 0.1, *, of_batch: bool = True
) -> tuple[Tensor[B], Tensor[B]]:
    """The next running mean and variance of `batch_norm`: moved towards the batch's by `momentum`, as constants.

    x is (batch, channels, ...), the others (channels,). The variance is the unbiased one, over one less than the number
    of values, as in PyTorch. Without `of_batch` they are means of those of examples, as of `instance_norm`. Raises
    ShapeError where shapes do not fit.

    >>> import adjoint as ad
    >>> mean, variance = ad.nn.running_statistics(ad.tensor([[1.0], [3.0]]), ad.zeros(1), ad.ones(1), 0.5)
    >>> mean.tolist(), variance.tolist()
    ([1.0], [1.5])
    """
    name = "running_statistics"
    x, rate = _channels(x, name, running_mean, running_var).detach(), as_number(momentum, name, "momentum")
    mean, variance = (
        _of_channels(v, x, name, what) for v, what in ((running_mean, "running_mean"), (running_var, "running_var"))
    )
    if mean is None or variance is None:
        raise errors.ArgumentError(f"{name}: running_mean and running_var are tensors, received None")
    axes = (0, *range(2, x.ndim)) if as_flag(of_batch, "running_statistics", "of_batch") else tuple(range(2, x.ndim))
    found = [v.mean(axis=0) if v.ndim > 1 else v for v in (x.mean(axis=axes), x.var(axis=axes, correction=1))]
    pairs = zip(found, (mean.detach(), variance.detach()), strict=True)
    first, second = [cast(new * rate + old * (1 - rate), old.dtype) for new, old in pairs]
    return first, second


def group_norm(x: Operand[B], num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor[B]:
    """Groups of channels of each example with mean 0 and variance 1, then scaled and shifted. Y. Wu, K. He (2018).

    x is (batch, channels, ...), weight and bias (channels,). Raises ShapeError where the number of groups does not
    divide the channels, or shapes do not fit.
    """
    name = "group_norm"
    x, groups = _channels(x, name, weight, bias), positive(num_groups, name, "num_groups")
    eps = as_number(eps, name, "eps")
    if x.shape[1] % groups:
        raise errors.ShapeError(f"{name}: {groups} groups do not divide {x.shape[1]} channels, of shape {x.shape}")
    scale, shift = (_of_channels(v, x, name, what) for v, what in ((weight, "weight"), (bias, "bias")))
    members = x.shape[1] // groups
    split = reshape(x, (x.shape[0], groups, members, *x.shape[2:]))
    shape = (groups, members, *[1] * (x.ndim - 2))
    return reshape(_normalized(split, tuple(range(2, split.ndim)), eps, scale, shift, shape), x.shape)


def instance_norm(
    x: Operand[B],
    *,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    eps: float = 1e-5,
) -> Tensor[B]:
    """Each channel of each example with mean 0 and variance 1, then scaled and shifted. D. Ulyanov et al. (2016).

    x is (batch, channels, ...) with some axes behind the channels, the others (channels,). Without `use_input_stats`
    the running mean and variance are those of all examples. Raises ShapeError where shapes do not fit, ArgumentError
    where the running ones are needed and not there.
    """
    name = "instance_norm"
    x = _channels(x, name, weight, bias, running_mean, running_var)
    eps = as_number(eps, name, "eps")
    if x.ndim < 3:
        raise errors.ShapeError(f"{name}: expected (batch, channels, ...) with axes behind, received {x.shape}")
    scale, shift = (_of_channels(v, x, name, what) for v, what in ((weight, "weight"), (bias, "bias")))
    if not as_flag(use_input_stats, name, "use_input_stats"):
        return _by_statistics(x, running_mean, running_var, scale, shift, eps, name)
    return _normalized(x, tuple(range(2, x.ndim)), eps, scale, shift, (x.shape[1], *[1] * (x.ndim - 2)))


def local_response_norm(x: Operand[B], size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor[B]:
    """x / (k + alpha m)^beta with m the mean square over `size` neighbouring channels, zeros beyond the last ones.

    A. Krizhevsky et al. (2012), section 3.3, with a mean in place of a sum, as PyTorch has it. x is
    (batch, channels, ...). Raises ShapeError for other shapes, ArgumentError for a size below 1.
    """
    name = "local_response_norm"
    x, size = _channels(x, name), positive(size, name, "size")
    if x.ndim < 3:
        raise errors.ShapeError(f"{name}: expected (batch, channels, ...) with axes behind, received {x.shape}")
    alpha, beta, k = (as_number(v, name, what) for v, what in ((alpha, "alpha"), (beta, "beta"), (k, "k")))
    wide = moveaxis(cast(x, dtypes.summing(x.dtype)), 1, -1)
    how: dict[str, Any] = {"kernel": (size,), "stride": (1,), "dilation": (1,)}
    around = run("window_sum", (wide * wide,), padding=((size // 2, (size - 1) // 2),), **how)
    return cast(x / moveaxis((around * (alpha / size) + k) ** beta, -1, 1), x.dtype)


def _channels(given: Any, name: str, *beside: Any) -> Tensor[Any]:
    x = real(given, name, *beside)
    if x.ndim < 2:
        raise errors.ShapeError(f"{name}: expected (batch, channels, ...), received {x.shape}")
    return x


def _of_channels(value: Any, x: Tensor[Any], name: str, what: str) -> Tensor[Any] | None:
    if value is None:
        return None
    given = real(operand(value, x, name), name)
    if given.shape != x.shape[1:2]:
        raise errors.ShapeError(f"{name}: {what} is for {x.shape[1]} channels, received shape {given.shape}")
    return given
