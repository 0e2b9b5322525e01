"""A softmax over many classes, of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adjoint import errors
from adjoint.functions.arguments import as_integer, as_positive, integers
from adjoint.functions.reduction import argmax
from adjoint.functions.shape import concat
from adjoint.module.base import Module
from adjoint.nn.activations import log_softmax
from adjoint.nn.classification import nll_loss
from adjoint.nn.modules.linear import Key, Linear, Sequential
from adjoint.tensor import Operand, Tensor


class AdaptiveLogLoss(NamedTuple):
    """The logarithm of the probability of each example's class, and minus their mean."""

    output: Tensor[Any]
    loss: Tensor[Any]


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-likelihood of classes that are sorted by how frequent they are. E. Grave et al. (2017).

    x (batch, in_features) and classes (batch,) give the log-likelihoods (batch,) and the loss, a scalar. Classes below
    the first cutoff, and one for each cluster between cutoffs, are told apart by `head`; those in a cluster by a
    network in `tail`, whose inner width is `in_features / div_value` for the first one, and by that factor less for
    each that follows. All clusters are computed for all examples, as their classes are values.

    >>> import adjoint as ad
    >>> layer = ad.nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])
    >>> output, loss = layer(ad.ones((3, 16)), ad.tensor([4, 20, 99]))
    >>> output.shape, loss.shape, layer.log_prob(ad.ones((3, 16))).shape
    ((3,), (), (3, 100))
    """

    head: Linear
    tail: tuple[Sequential, ...]
    cutoffs: tuple[int, ...]

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        *, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        name = "AdaptiveLogSoftmaxWithLoss"
        width, classes = (as_integer(n, name, "a size", 1) for n in (in_features, n_classes))
        ends = (*integers(cutoffs, name, "cutoffs"), classes)
        if len(ends) < 2 or ends[0] < 1 or any(a >= b for a, b in zip(ends, ends[1:], strict=False)):
            raise errors.ArgumentError(
                f"{name}: cutoffs grow, from 1 or more to less than the {classes} classes, received {ends[:-1]}"
            )
        factor = float(as_positive(div_value, name, "div_value"))
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        self.head = Linear(width, ends[0] + len(ends) - 1, head_bias, **made)
        tail = []
        for k, (start, end) in enumerate(zip(ends, ends[1:], strict=False)):
            inner = int(width // factor ** (k + 1))
            if inner < 1:
                raise errors.ArgumentError(
                    f"{name}: nothing is left of {width} features in cluster {k}, divided by {factor} ** {k + 1}; take "
                    "a smaller div_value, or fewer cutoffs"
                )
            tail.append(Sequential(Linear(width, inner, False, **made), Linear(inner, end - start, False, **made)))
        self.tail, self.cutoffs = tuple(tail), ends

    def __call__(self, x: Operand[Any], target: Any, *, key: Key = None) -> AdaptiveLogLoss:
        """Of x (batch, in_features) and target (batch,), or of one example; errors are those of `ad.nn.nll_loss`."""
        output = -nll_loss(self.log_prob(x), target, reduction="none")
        return AdaptiveLogLoss(output, -output.mean())

    def log_prob(self, x: Operand[Any]) -> Tensor[Any]:
        """The logarithms of the probabilities of all classes, (batch, n_classes)."""
        first = log_softmax(self.head(x), -1)
        count = self.cutoffs[0]
        inside = [
            log_softmax(cluster(x), -1) + first[..., count + k : count + k + 1] for k, cluster in enumerate(self.tail)
        ]
        return concat([first[..., :count], *inside], axis=-1)

    def predict(self, x: Operand[Any]) -> Tensor[Any]:
        """The most probable class of each example, (batch,)."""
        return argmax(self.log_prob(x), axis=-1)
