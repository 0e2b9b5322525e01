"""Layers with matrices, and what puts layers together. Arguments and initial values are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_axis, as_choice, as_flag, as_integer, as_tensor, check_callable
from adjoint.functions.creation import full
from adjoint.functions.shape import reshape, unflatten
from adjoint.module.base import Module, check_state
from adjoint.nn.activations import prelu
from adjoint.nn.layers import bilinear, embedding, embedding_bag, linear
from adjoint.random import normal, uniform
from adjoint.tensor import Operand, Tensor

Key = int | None


class Linear(Module):
    """`x @ weight.mT + bias`, for x of shape (..., in_features).

    weight (out_features, in_features) and bias (out_features,) start uniform within 1 / sqrt(in_features).

    >>> import adjoint as ad
    >>> ad.nn.Linear(3, 2)(ad.ones((5, 3))).shape
    (5, 2)
    """

    weight: Tensor[Any]
    bias: Tensor[Any] | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None, device: Any = None
    ) -> None:
        inputs, outputs = (as_integer(n, "Linear", "a number of features", 0) for n in (in_features, out_features))
        self.weight = within(inputs, (outputs, inputs), dtype, device)
        self.bias = within(inputs, (outputs,), dtype, device) if as_flag(bias, "Linear", "bias") else None

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return linear(x, self.weight, self.bias)


class Bilinear(Module):
    """`x1 @ weight @ x2 + bias` for each output: weight is (outputs, features of x1, features of x2).

    >>> import adjoint as ad
    >>> ad.nn.Bilinear(3, 4, 2)(ad.ones((5, 3)), ad.ones((5, 4))).shape
    (5, 2)
    """

    weight: Tensor[Any]
    bias: Tensor[Any] | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        sizes = [
            as_integer(n, "Bilinear", "a number of features", 0) for n in (out_features, in1_features, in2_features)
        ]
        self.weight = within(sizes[1], tuple(sizes), dtype, device)
        self.bias = within(sizes[1], (sizes[0],), dtype, device) if as_flag(bias, "Bilinear", "bias") else None

    def __call__(self, x1: Operand[Any], x2: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return bilinear(x1, x2, self.weight, self.bias)


class Embedding(Module):
    """A row of weight (num_embeddings, embedding_dim) for each integer. Rows start normal; that of `padding_idx` is 0.

    Indices of shape (a, b) give (a, b, embedding_dim).

    >>> import adjoint as ad
    >>> ad.nn.Embedding(10, 3)(ad.tensor([[1, 2], [3, 4]])).shape
    (2, 2, 3)
    """

    weight: Tensor[Any]
    padding_idx: int | None

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        self.weight = _rows("Embedding", num_embeddings, embedding_dim, padding_idx, dtype, device)
        self.padding_idx = padding_idx

    def __call__(self, indices: Any, *, key: Key = None) -> Tensor[Any]:
        return embedding(indices, self.weight, padding_idx=self.padding_idx)


class EmbeddingBag(Module):
    """`ad.nn.embedding_bag` with a weight (num_embeddings, embedding_dim), which starts as that of `Embedding`.

    >>> import adjoint as ad
    >>> ad.nn.EmbeddingBag(10, 3)(ad.tensor([[1, 2], [3, 4]])).shape
    (2, 3)
    """

    weight: Tensor[Any]
    mode: str
    include_last_offset: bool
    padding_idx: int | None

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *, mode: str = "mean", include_last_offset: bool = False,
        padding_idx: int | None = None, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.weight = _rows("EmbeddingBag", num_embeddings, embedding_dim, padding_idx, dtype, device)
        self.mode = as_choice(mode, "EmbeddingBag", "mode", ("sum", "mean", "max"))
        self.include_last_offset = as_flag(include_last_offset, "EmbeddingBag", "include_last_offset")
        self.padding_idx = padding_idx

    def __call__(
        self, indices: Any, offsets: Any = None, per_sample_weights: Any = None, *, key: Key = None
    ) -> Tensor[Any]:
        return embedding_bag(
            indices, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip


def _rows(name: str, rows: Any, width: Any, padding: Any, dtype: Any, device: Any) -> Tensor[Any]:
    """A table of normal numbers, with zeros in the row that stands for padding."""
    shape = tuple(as_integer(n, name, "a size", 0) for n in (rows, width))
    weight = normal(shape, dtype=dtype, device=device)
    if padding is not None:
        place = as_integer(padding, name, "padding_idx")
        if not -shape[0] <= place < shape[0]:
            raise errors.ArgumentError(f"{name}: padding_idx {place} is none of {shape[0]} rows")
        weight[place] = 0.0
    return weight


class Lambda(Module):
    """A function as a module: `Lambda(lambda x: x.mean(axis=1))`.

    Shapes are those of the function.
    """

    function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable("Lambda", function)
        self.function = function

    def __call__(self, x: Any, *, key: Key = None) -> Any:
        return self.function(x)


class Identity(Module):
    """The input, unchanged.

    Of any shape and dtype.
    """

    def __call__(self, x: Any, *, key: Key = None) -> Any:
        return x


class Flatten(Module):
    """Axes `start` to `end` joined into one.

    By default (batch, a, b) becomes (batch, a b).

    >>> import adjoint as ad
    >>> ad.nn.Flatten()(ad.ones((2, 3, 4))).shape
    (2, 12)
    """

    start: int = 1
    end: int = -1

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        x = as_tensor(x, "Flatten")
        first, last = (as_axis(axis, x.ndim, "Flatten") for axis in (self.start, self.end))
        if first > last:
            raise errors.ArgumentError(f"Flatten: axis {self.start} comes after axis {self.end} in shape {x.shape}")
        return reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


class Unflatten(Module):
    """One axis as several: `shape` are their sizes, of which one may be -1.

    >>> import adjoint as ad
    >>> ad.nn.Unflatten(1, (3, -1))(ad.ones((2, 12))).shape
    (2, 3, 4)
    """

    axis: int
    shape: tuple[int, ...]

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return unflatten(x, self.axis, self.shape)


class Sequential(Module):
    """Modules and functions, each applied to what the one before gives.

    Shapes are those of the layers: what one gives the next one takes.

    >>> import adjoint as ad
    >>> model = ad.nn.Sequential(ad.nn.Linear(3, 8), ad.nn.relu, ad.nn.Linear(8, 1))
    >>> model(ad.ones((2, 3))).shape
    (2, 1)
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Any) -> None:
        for layer in layers:
            check_callable("Sequential", layer, "a layer")
        self.layers = layers

    def __call__(self, x: Any, *, key: Key = None) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, place: int | slice) -> Any:
        """One layer, or those of a slice as another `Sequential`."""
        return Sequential(*self.layers[place]) if isinstance(place, slice) else self.layers[place]

    def apply(self, x: Any, state: Any, *, key: Key = None) -> tuple[Any, Any]:
        check_state(self, state)
        after = []
        for layer, before in zip(self.layers, state.layers, strict=True):
            x, new = layer.apply(x, before) if isinstance(layer, Module) else (layer(x), before)
            after.append(new)
        return x, state.at("layers").set(tuple(after))


class Residual(Module):
    """x + inside(x).

    What `inside` gives has the shape of x, or broadcasts with it.

    >>> import adjoint as ad
    >>> ad.nn.Residual(ad.nn.Identity())(ad.ones(2)).tolist()
    [2.0, 2.0]
    """

    inside: Any

    def __init__(self, inside: Callable[..., Any]) -> None:
        check_callable("Residual", inside)
        self.inside = inside

    def __call__(self, x: Any, *, key: Key = None) -> Any:
        return x + self.inside(x)

    def apply(self, x: Any, state: Any, *, key: Key = None) -> tuple[Any, Any]:
        if not isinstance(self.inside, Module):
            return self(x), state
        check_state(self, state)
        y, after = self.inside.apply(x, state.inside)
        return x + y, state.at("inside").set(after)


class PReLU(Module):
    """`ad.nn.prelu`: a slope below zero for all channels (`num_parameters=1`) or for each, which starts at `init`.

    The weight is (num_parameters,).
    """

    weight: Tensor[Any]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None, device: Any = None) -> None:
        self.weight = full(as_integer(num_parameters, "PReLU", "num_parameters", 1), init, dtype=dtype, device=device)

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return prelu(x, self.weight)


def within(inputs: int, shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor[Any]:
    """Uniform within 1 / sqrt(inputs)."""
    bound = 1 / math.sqrt(inputs) if inputs else 0.0
    return uniform(shape, low=-bound, high=bound, dtype=dtype, device=device)
