"""Losses under PyTorch's names, with its checks and its older arguments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import nn
from adjoint.nn import other_losses
from adjoint.torch.calls import call, number, off, overflow, without_slope
from adjoint.torch.dtypes import check_cast, default_float, of_numpy, promote, result_dtype
from adjoint.torch.graph import label
from adjoint.torch.lifted import is_batched
from adjoint.torch.nn.functional.shared import reduction_of, tensor
from adjoint.torch.operators import FUNCTIONS, METHODS, refuse_truths
from adjoint.torch.tensor import LEVEL, Tensor, axis_of, is_elsewhere, looked, of, values


def _last(reduction: str, made: str) -> str:
    """The last step of a loss that PyTorch makes of others, which is `made` where nothing is reduced."""
    return {"none": made, "mean": "Mean", "sum": "Sum"}[reduction]


_WEIGHED = {"none": "Mul", "mean": "Div", "sum": "Sum"}  # the last step of a loss with weights


def _reduced(losses: Any, reduction: str) -> Any:
    """Losses as they are, their mean or their sum, in this face's types."""
    return losses if reduction == "none" else getattr(losses, reduction)()


def _call_for(dtype: Any, function: Any, made: str, *args: Any, **options: Any) -> Any:
    """A function of adjoint's whose result has this type, which that of integers has not got: the default one then."""
    dtype = default_float() if dtype.kind in "biu" else dtype
    if all([not isinstance(x, Tensor) or x._dtype is dtype for x in (*args, *options.values())]):
        return call(function, made, *args, **options)
    return call(lambda *xs, **more: ad.astype(function(*xs, **more), dtype), made, *args, **options)


def _meeting(*operands: Any) -> Any:
    """The type that those of operands that are there meet in."""
    return result_dtype([x for x in operands if x is not None])


def _floating(x: Tensor) -> Tensor:
    """Integers as numbers of the default type."""
    return x.to(dtype=default_float()) if x._dtype.kind in "biu" else x


def _pair(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The two broadcast to each other, with PyTorch's warning where they need that."""
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )
        input, target = FUNCTIONS["broadcast_tensors"](input, target)
    return input, target


def _check_weight(weight: Any, input: Tensor) -> None:
    if weight is not None and weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")


def _refuse_kernel(kernel: str, *operands: Tensor) -> None:
    """Raise NotImplementedError for operands that do not meet in a real floating type."""
    if (kind := result_dtype(operands)).kind != "f":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{of_numpy(kind).class_name}'")


def _goes_into(target: Tensor, *operands: Tensor) -> None:
    """Raise RuntimeError where a loss of these operands, in the type of one of them, would lose what it is."""
    check_cast(result_dtype(operands), target._dtype)


def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """The squared difference, averaged, summed or as it is.

    >>> import adjoint.torch as torch
    >>> torch.nn.functional.mse_loss(torch.zeros(2), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    input, target = _pair(tensor(input, "mse_loss"), target)
    _check_weight(weight, input)
    _refuse_kernel("mse_cpu", input, target)
    made = "MseLoss" if weight is None else _WEIGHED[reduction]
    return call("nn.mse_loss", made, input, target, reduction=reduction, weight=weight)


def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """The size of the difference."""
    reduction = reduction_of(size_average, reduce, reduction)
    input, target = _pair(tensor(input, "l1_loss"), target)
    _check_weight(weight, input)
    refuse_truths(input, target)
    if result_dtype((input, target)).kind in "iu":
        losses = call(other_losses.l1_losses, "Mul", input, target, weight)
        if weight is not None and reduction == "mean":
            return losses.sum() / weight.sum()
        return _reduced(losses, reduction)
    kind = np.empty(0, result_dtype((input, target))).real.dtype
    kind = kind if weight is None else promote(kind, weight._dtype)
    made = _last(reduction, "Abs") if weight is None else _WEIGHED[reduction]
    return _call_for(kind, nn.l1_loss, made, input, target, reduction=reduction, weight=weight)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Any:  # fmt: skip
    """Half the squared difference over beta up to beta, and the size beyond."""
    reduction = reduction_of(size_average, reduce, reduction)
    input, target = _pair(tensor(input, "smooth_l1_loss"), target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    _refuse_kernel("smooth_l1_cpu", input, target)
    return call("nn.smooth_l1_loss", "SmoothL1Loss", input, target, reduction=reduction, beta=beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Any:
    """Half the squared difference up to delta, and in proportion to the size beyond."""
    reduction = reduction_of(None, None, reduction)
    input, target = _pair(tensor(input, "huber_loss"), target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _check_weight(weight, input)
    _goes_into(input, input, target)
    _refuse_kernel("huber_cpu", input, target)
    options: dict[str, Any] = {"reduction": reduction, "delta": delta, "weight": weight}
    return _call_for(input._dtype, nn.huber_loss, "HuberLoss", input, target, **options)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative log-probability of targets between 0 and 1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != tensor(input, "binary_cross_entropy").shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target._dtype is not input._dtype:
        raise RuntimeError(f"Found dtype {target.dtype.class_name} but expected {input.dtype.class_name}")
    _refuse_kernel("binary_cross_entropy", input)
    if not is_batched(input) and not ((looked(input) >= 0) & (looked(input) <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return call("nn.binary_cross_entropy", "BinaryCrossEntropy", input, target, weight=weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """The same of logits."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != tensor(input, "binary_cross_entropy_with_logits").shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target._dtype is not input._dtype:  # PyTorch writes to 1 - target
        if target._dtype.kind == "b":
            refuse_truths(target, True)
        _goes_into(target, input, target)
    whole = target._dtype.kind == "c" and input._dtype.kind != "c"  # complex logits are refused there
    function: Any = other_losses if whole else nn
    return _call_for(
        target._dtype, function.binary_cross_entropy_with_logits, "BinaryCrossEntropyWithLogits", input, target,
        weight=weight, pos_weight=pos_weight, reduction=reduction,
    )  # fmt: skip


# --- classes ------------------------------------------------------------------------------------------


_LABELS = np.dtype("int64").char


def _check_classes(input: Tensor, target: Tensor, ignore_index: int) -> None:
    """PyTorch's words for targets that do not fit."""
    if target._dtype != np.int64 and target._dtype != np.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.class_name}")
    if input.ndim > 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        size = target.shape[0] if target.ndim else 1
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({size}).")
    if tuple(target.shape) != (*input.shape[:1], *input.shape[2:])[: max(input.ndim - 1, 0)] and input.ndim > 1:
        raise RuntimeError(f"Expected target size {[input.shape[0], *input.shape[2:]]}, got {list(target.shape)}")
    classes = input.shape[min(1, input.ndim - 1)]
    if is_batched(target):
        return  # of each example: what is out of bounds is an error of adjoint's
    labels = looked(target)
    wrong = labels[((labels < 0) | (labels >= classes)) & (labels != ignore_index)]
    if wrong.size:
        raise IndexError(f"Target {wrong.flat[0]} is out of bounds.")


def _same_weight(input: Tensor, weight: Any) -> None:
    if weight is not None and weight._dtype is not input._dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.class_name} but found {weight.dtype.class_name}")


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative of the log-probabilities of classes."""
    reduction = reduction_of(size_average, reduce, reduction)
    _check_classes(tensor(input, "nll_loss"), target, ignore_index)
    _same_weight(input, weight)
    if input.ndim == 1 and target.shape == (1,):
        target = target[0]  # type: ignore[index]
    made = "NllLoss" if input.ndim <= 2 else "NllLoss2D"
    return call("nn.nll_loss", made, input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The negative log-probability, under softmax(input), of classes or of probabilities of classes.

    >>> import adjoint.torch as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(2, 4), torch.tensor([1, 3]))
    tensor(1.3863)
    """
    if weight is None and not label_smoothing and reduction == "mean" and size_average is None and reduce is None:
        if target._dtype.char in _LABELS and input._dtype.kind == "f" and input._dtype.itemsize > 2 and not off():
            shape, labels = values(input).shape, values(target).shape
            plain = not is_elsewhere(input) and not is_elsewhere(target)
            if plain and len(shape) == 2 and len(labels) == 1 and shape[0] == labels[0]:
                return _mean_of_classes(input, target, ignore_index)
    reduction = reduction_of(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    probabilities = target.shape == tensor(input, "cross_entropy").shape
    if probabilities and target._dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.class_name}"
        )
    _refuse_kernel("log_softmax_lastdim_kernel_impl", input)
    if not probabilities:
        _check_classes(input, target, ignore_index)
        _same_weight(input, weight)
    made = "Div" if probabilities or label_smoothing else "NllLoss" if input.ndim <= 2 else "NllLoss2D"
    found = call(
        "nn.cross_entropy", made, input, target, weight=weight, ignore_index=ignore_index,
        label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip
    return found.to(dtype=_meeting(input, target, weight)) if probabilities else found


_losses, _mean = LEVEL["labelled_cross_entropy"], LEVEL["labelled_mean"]


def _mean_of_classes(input: Tensor, target: Tensor, ignore_index: int) -> Any:
    """What most programs call, straight to the primitives that `ad.nn.cross_entropy` is made of."""
    try:
        labels = target._here
        out = of(_mean(_losses(input._here, labels, ignore=ignore_index), labels, axis=(0,), ignore=ignore_index))
    except Exception:
        _check_classes(input, target, ignore_index)
        raise
    label(out._array.node, "NllLoss")
    return out


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The negative log-probability of sequences whose places in time are not known."""
    reduction = reduction_of(None, None, reduction)
    _check_sequences(log_probs, input_lengths, target_lengths, blank)
    if isinstance(targets, Tensor) and targets._dtype.kind in "bf":
        targets = targets.long()
    return call(
        "nn.ctc_loss", _last(reduction, "CtcLoss"), log_probs, targets, input_lengths, target_lengths, blank=blank,
        reduction=reduction, zero_infinity=zero_infinity,
    )  # fmt: skip


def _check_sequences(log_probs: Tensor, input_lengths: Any, target_lengths: Any, blank: int) -> None:
    """PyTorch's words for lengths, types and a blank that do not fit."""
    if log_probs._dtype.kind != "f" or log_probs._dtype.itemsize < 4:
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{log_probs.dtype.class_name}'")
    batch = log_probs.shape[1] if log_probs.ndim == 3 else 1
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if not isinstance(lengths, Tensor):
            if not isinstance(lengths, (tuple, list)) or not all([isinstance(n, (int, Tensor)) for n in lengths]):
                raise TypeError(f"ctc_loss(): argument '{name}' must be tuple of ints, not {type(lengths).__name__}")
            continue
        if lengths._dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral")
        if lengths.numel() != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    if log_probs.ndim and not 0 <= blank < log_probs.shape[-1]:
        raise RuntimeError("blank must be in label range")
    if isinstance(input_lengths, Tensor) and is_batched(input_lengths):
        return
    given = looked(input_lengths) if isinstance(input_lengths, Tensor) else np.asarray(input_lengths)
    if given.dtype.kind in "iu" and given.size and log_probs.ndim > 1:
        for most, value, bound in (("most", given.max(), log_probs.shape[0]), ("least", given.min(), 0)):
            if (value > bound) if most == "most" else (value < bound):
                raise RuntimeError(f"Expected input_lengths to have value at {most} {bound}, but got value {value}")


def multi_margin_loss(
    input: Tensor, target: Tensor, p: object = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """By how much other classes come near to the right one."""
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _same_weight(input, weight)
    if input.ndim < 2 and target.numel() == 1:  # one example
        input, target = input.reshape(-1), target.reshape(())
    return call(
        "nn.multi_margin_loss", "MultiMarginLoss", input, target, p=p, margin=margin, weight=weight,
        reduction=reduction,
    )  # fmt: skip


# --- further losses, whose arguments are the core's but for the older ones --------------------------------


def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    log_target: bool = False,
) -> Any:  # fmt: skip
    """target (log(target) - input); "batchmean" is the sum over the size of the batch, as the definition has it."""
    batch = reduction == "batchmean"
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=2,
        )
    reduction = reduction_of(size_average, reduce, "sum" if batch else reduction)
    for kinds, called in (("c", "Complex"), ("biu", "Integral")):
        if tensor(input, "kl_div")._dtype.kind in kinds or target._dtype.kind in kinds:
            raise RuntimeError(f"kl_div: {called} inputs not supported.")
    input, target = FUNCTIONS["broadcast_tensors"](input, target)
    made = _last(reduction, "Mul")
    out = call("nn.kl_div", made, input, target, reduction=reduction, log_target=log_target)
    return out / input.shape[0] if batch and input.ndim else out


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None,
    eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative log-likelihood of counts."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not log_input or tensor(input, "poisson_nll_loss")._dtype.kind == target._dtype.kind:
        refuse_truths(1.0, input)
    input = _floating(input)
    kind = result_dtype((input, target))
    if full:
        refuse_truths(1.0, target)
        if target._dtype.kind == "c":
            _refuse_kernel("le_cpu", target)
    if input.shape != target.shape:
        input, target = FUNCTIONS["broadcast_tensors"](input, target)
    function: Any = other_losses if kind.kind == "c" else nn
    options = {"log_input": log_input, "full": full, "eps": eps, "reduction": reduction}
    made = _last(reduction, "Add" if full else "Sub")
    return _call_for(kind, function.poisson_nll_loss, made, input, target, **options)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """The negative log-likelihood of numbers with means and variances that are given."""
    reduction = reduction_of(None, None, reduction)
    if isinstance(var, Tensor) and var._dtype.kind != "f":
        if var._dtype.kind == "c":
            _refuse_kernel("lt_cpu", var)
        _goes_into(var, var, FUNCTIONS["empty"](()))
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = FUNCTIONS["ones_like"](input) * var
    elif not is_batched(var) and (looked(var) < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or any([n not in (1, m) for n, m in zip(var.shape, input.shape, strict=True)]):
            raise ValueError("var is of incorrect size")
        var = FUNCTIONS["broadcast_to"](var, input.shape)
    if var._dtype.kind == "c":
        METHODS["clamp"](var, min=eps)  # which is refused
    refuse_truths(input, target)
    input, target = FUNCTIONS["broadcast_tensors"](input, target)
    kind = result_dtype((input, target, var))
    function: Any = other_losses if kind.kind == "c" else nn
    made = _last(reduction, "Add" if full else "Mul")
    options = {"full": full, "eps": eps, "reduction": reduction}
    return _call_for(kind, function.gaussian_nll_loss, made, input, target, var, **options)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """log(1 + exp(-target input)) of targets 1 and -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if tensor(input, "soft_margin_loss")._dtype.kind == "b":
        METHODS["neg"](input)  # which is refused
    _goes_into(input, input, target, FUNCTIONS["empty"](()))
    if input._dtype.kind == "c":
        target = target.to(dtype=input._dtype)
    function: Any = other_losses if input._dtype.kind == "c" else nn
    return _call_for(input._dtype, function.soft_margin_loss, "SoftMarginLoss", input, target, reduction=reduction)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """A distance where the target is 1, and what it lacks to a margin where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if tensor(input, "hinge_embedding_loss")._dtype.kind == "b":
        refuse_truths(input, True)
    if input._dtype.kind == "c":
        _refuse_kernel("clamp_min", input)
    if input._dtype.kind != "f" or target._dtype.kind == "c":
        if input._dtype.kind == "u" and margin < 0:
            raise overflow(input._dtype)
        margin = number(margin, input._dtype).item()
        return _reduced(call(other_losses.hinge_embedding_losses, "Add", input, target, margin=margin), reduction)
    options: dict[str, Any] = {"margin": margin, "reduction": reduction}
    return _call_for(input._dtype, nn.hinge_embedding_loss, _last(reduction, "Add"), input, target, **options)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    reduction = reduction_of(size_average, reduce, reduction)
    if not input.ndim and not target.ndim:
        input, target = input.reshape(1), target.reshape(1)
    return call("nn.multilabel_margin_loss", "MultilabelMarginLoss", input, target, reduction=reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    reduction = reduction_of(size_average, reduce, reduction)
    if target._dtype.kind == "b":
        refuse_truths(1, target)
    made = _last(reduction, "Div")
    function: Any = other_losses if target._dtype.kind == "c" else nn
    kind, options = _meeting(input, target, weight), {"weight": weight, "reduction": reduction}
    return _call_for(kind, function.multilabel_soft_margin_loss, made, input, target, **options)


# --- distances ----------------------------------------------------------------------------------------


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along an axis."""
    if not x1.ndim and not x2.ndim:
        axis_of(dim, 0)
        return cosine_similarity(x1.reshape(1), x2.reshape(1), 0, eps)
    if (kind := result_dtype((x1, x2))).kind != "f":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {of_numpy(kind).class_name}"
        )
    return call("nn.cosine_similarity", "SumBackward1", x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of differences along the last axis."""
    refuse_truths(x1, x2)
    return call("nn.pairwise_distance", "NormBackward1", x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2) -> Any:
    """The distances between rows, each pair once."""
    found = call("nn.pdist", "Pdist", input, float(p))
    return found if p else without_slope("Pdist", found, input)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """One less the cosine where the target is 1, and how far it is above a margin where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    return call(
        "nn.cosine_embedding_loss", _last(reduction, "Add"), input1, input2, target, margin=margin, reduction=reduction
    )


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """What the difference of two scores, in the direction of the target, lacks to a margin."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    refuse_truths(input1, input2)
    made = _last(reduction, "ClampMin")
    return call("nn.margin_ranking_loss", made, input1, input2, target, margin=margin, reduction=reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """What the negative example lacks to be a margin further off than the positive one."""
    reduction = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    refuse_truths(anchor, positive)
    options: dict[str, Any] = {"margin": margin, "p": float(p), "eps": eps, "swap": swap, "reduction": reduction}
    return call("nn.triplet_margin_loss", _last(reduction, "ClampMin"), anchor, positive, negative, **options)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The same, by a distance that is given as a function of two of this face's tensors."""
    reduction = reduction_of(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    far = pairwise_distance if distance_function is None else distance_function
    near, away = far(anchor, positive), far(anchor, negative)
    if swap:
        away = FUNCTIONS["minimum"](away, far(positive, negative))
    return _reduced(FUNCTIONS["clamp_min"](near - away + margin, 0), reduction)
