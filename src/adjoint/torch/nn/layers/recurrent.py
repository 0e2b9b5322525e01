"""Recurrent networks: PyTorch's parameters around adjoint's cells and layers."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import adjoint as ad
from adjoint.module.fields import leaves_of, with_arrays
from adjoint.random_keys import seeded
from adjoint.torch.calls import call
from adjoint.torch.nn import init
from adjoint.torch.nn.functional.shared import drawing
from adjoint.torch.nn.layers.base import made_of
from adjoint.torch.nn.module import Module
from adjoint.torch.nn.utils.rnn import PackedSequence, padded, repacked
from adjoint.torch.tensor import Tensor

_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


@functools.lru_cache(64)
def _template(name: str, settings: tuple[tuple[str, Any], ...]) -> tuple[Any, Any]:
    """A module of adjoint's with these settings, in which weights are put for each call."""
    with seeded(0):
        made = getattr(ad.nn, name)(**dict(settings))
    return made, leaves_of(made)


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` have in common."""

    batch_first: bool
    bias: bool
    bidirectional: bool
    dropout: float
    hidden_size: int
    input_size: int
    mode: str
    num_layers: int

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        if not isinstance(mode, str) or mode.partition("_")[0] not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                UserWarning,
                stacklevel=3,
            )
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        out = proj_size or hidden_size
        rows = _GATES[mode.partition("_")[0]] * hidden_size
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else out * (2 if bidirectional else 1)
            for end in ("", "_reverse") if bidirectional else ("",):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", made_of(*shape, dtype=dtype, device=device))
                self._names.append([f"{name}_l{layer}{end}" for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Nothing: weights lie where they lie."""

    def _check(self, x: Tensor) -> None:
        if x.ndim not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {x.ndim}D instead")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )

        if x._dtype is not self.weight_ih_l0._dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({self.weight_ih_l0.dtype}). Convert input: "
                f"input.to({self.weight_ih_l0.dtype}), or convert model: model.to({x.dtype})"
            )

    def _check_state(self, x: Tensor, state: Any, alone: str) -> None:
        for place, part in enumerate(state if isinstance(state, (tuple, list)) else (state,)):
            if x.ndim == 2 and part.ndim != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {part.ndim}-D tensor")
            if x.ndim == 3 and part.ndim != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {part.ndim}-D tensor")
            batch = [x.shape[0 if self.batch_first else 1]] if x.ndim == 3 else []
            wanted = [len(self._names), *batch, self.hidden_size if place else self.proj_size or self.hidden_size]
            if list(part.shape) != wanted:
                alone = alone.replace("[0]", f"[{place}]")
                raise RuntimeError(f"Expected {alone} size {tuple(wanted)}, got {list(part.shape)}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The outputs of the last layer, and the states after the last step; of a packed sequence a packed one."""
        lengths, packed = None, None
        if isinstance(input, PackedSequence):
            packed = input
            input, lengths = padded(packed)
            if hx is not None and packed.sorted_indices is not None:
                hx = _each(hx, lambda part: part.index_select(1, packed.sorted_indices))
        first = self.batch_first and packed is None
        self._check(input)
        if hx is not None and packed is None:
            self._check_state(input, hx, "hidden[0]" if self.mode == "LSTM" else "hidden")
        outputs, state = self._run(input, hx, lengths, first)
        if packed is None:
            return outputs, state
        if packed.unsorted_indices is not None:
            state = _each(state, lambda part: part.index_select(1, packed.unsorted_indices))
        return repacked(packed, outputs), state

    def _run(self, x: Any, state: Any, lengths: Any, first: bool) -> Any:
        dropout = self.dropout if self.training else 0.0
        if self.proj_size:
            return self._run_projected(x, state, lengths, first, dropout)
        settings: dict[str, Any] = {
            "input_size": self.input_size, "hidden_size": self.hidden_size, "num_layers": self.num_layers,
            "bias": self.bias, "batch_first": first, "dropout": dropout, "bidirectional": self.bidirectional,
        }  # fmt: skip
        kind, _, nonlinearity = self.mode.partition("_")
        if kind == "RNN":
            settings["nonlinearity"] = nonlinearity.lower()
        model, leaves = _template(kind, tuple(settings.items()))
        paths = [f"cells.{k}.{n.partition('_l')[0]}" for k, names in enumerate(self._names) for n in names]
        weights = [weight for group in self.all_weights for weight in group]

        def run(x: Any, state: Any, *weights: Any) -> Any:
            return with_arrays(model, dict(zip(paths, weights, strict=True)), leaves)(x, state, lengths=lengths)

        apply = drawing if dropout else call
        return apply(run, "SqueezeBackward1" if x.ndim == 2 and lengths is None else None, x, state, *weights)

    def _run_projected(self, x: Any, state: Any, lengths: Any, first: bool, dropout: float) -> Any:
        """Layers whose output is a projection of what a cell gives. H. Sak, A. Senior, F. Beaufays (2014)."""
        ends = 2 if self.bidirectional else 1
        names = [[name.partition("_l")[0] for name in group] for group in self._names]
        settings = {"input_size": self.input_size, "hidden_size": self.hidden_size, "bias": self.bias}
        cell, leaves = _template("LSTMCell", tuple(settings.items()))

        def run(x: Any, state: Any, *weights: Any) -> Any:
            if first and x.ndim == 3:
                x = ad.swapaxes(x, 0, 1)
            given = iter(weights)
            out: list[Any] = []
            for k, group in enumerate(names):
                own = {name: next(given) for name in group}
                project = ad.matrix_transpose(own.pop("weight_hr"))
                if state is None:
                    h = ad.zeros((*x.shape[1:-1], self.proj_size), dtype=x.dtype)
                    c = ad.zeros((*x.shape[1:-1], self.hidden_size), dtype=x.dtype)
                else:
                    h, c = state[0][k], state[1][k]
                out.append(_follow(with_arrays(cell, own, leaves), project, x, h, c, lengths, k % ends == 1))
                if k % ends == ends - 1:
                    x = ad.concat([outputs for outputs, _, _ in out[-ends:]], axis=-1)
                    if dropout and k < len(names) - 1:
                        x = ad.nn.dropout(x, dropout)
            state = tuple([ad.stack([end[i] for end in out]) for i in (1, 2)])
            return ad.swapaxes(x, 0, 1) if first and x.ndim == 3 else x, state

        apply = drawing if dropout else call
        return apply(run, None, x, state, *[weight for group in self.all_weights for weight in group])

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        return text + "".join([f", {n}={getattr(self, n)}" for n, v in defaults.items() if getattr(self, n) != v])


def _follow(cell: Any, project: Any, x: Any, h: Any, c: Any, lengths: Any, backward: bool) -> Any:
    """All steps of a cell with a projection, or from the last one: the outputs and the last states."""
    outputs: list[Any] = [None] * x.shape[0]
    counts = None if lengths is None else ad.asarray(lengths)
    for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        full, inner = cell(x[t], (h, c))
        new = ad.matmul(full, project)
        if counts is None:
            h, c = new, inner
            outputs[t] = h
        else:
            runs = (counts > t)[:, None]
            h, c = ad.where(runs, new, h), ad.where(runs, inner, c)
            outputs[t] = ad.where(runs, new, 0.0)
    return ad.stack(outputs), h, c


def _each(state: Any, f: Any) -> Any:
    return tuple([f(part) for part in state]) if isinstance(state, (tuple, list)) else f(state)


class RNN(RNNBase):
    """Layers of tanh(W x + b + U h + c), or of relu of it, over sequences."""

    def __init__(self, *args: Any, **options: Any) -> None:
        nonlinearity = options.pop("nonlinearity", "tanh")
        if len(args) > 3:
            args, nonlinearity = (*args[:3], *args[4:]), args[3]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        if "proj_size" in options:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **options)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over sequences; the state is (h, c).

    >>> import adjoint.torch as torch
    >>> outputs, (h, c) = torch.nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> outputs.shape, h.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("LSTM", *args, **options)


class GRU(RNNBase):
    """Gated recurrent units over sequences."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if "proj_size" in options:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **options)


class RNNCellBase(Module):
    """What cells have in common: one step."""

    bias: bool
    hidden_size: int
    input_size: int

    _kind = "RNN"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = _GATES[self._kind] * hidden_size
        made = {"dtype": dtype, "device": device}
        self.weight_ih: Any = made_of(rows, input_size, **made)
        self.weight_hh: Any = made_of(rows, hidden_size, **made)
        self.register_parameter("bias_ih", made_of(rows, **made) if bias else None)
        self.register_parameter("bias_hh", made_of(rows, **made) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _settings(self) -> dict[str, Any]:
        return {"input_size": self.input_size, "hidden_size": self.hidden_size, "bias": self.bias}

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}")
        for part in (hx if isinstance(hx, (tuple, list)) else (hx,)) if hx is not None else ():
            if part.ndim != input.ndim or part.shape[-1] != self.hidden_size or part.shape[:-1] != input.shape[:-1]:
                raise RuntimeError(
                    f"{name}: hidden has inconsistent hidden_size: expected shape "
                    f"{(*input.shape[:-1], self.hidden_size)}, got {tuple(part.shape)}"
                )
        model, leaves = _template(f"{self._kind}Cell", tuple(self._settings().items()))
        names = list(self._parameters) if self.bias else ["weight_ih", "weight_hh"]

        def run(x: Any, state: Any, *weights: Any) -> Any:
            return with_arrays(model, dict(zip(names, weights, strict=True)), leaves)(x, state)

        made = "SqueezeBackward1" if input.ndim == 1 else None
        return call(run, made, input, hx, *[getattr(self, name) for name in names])

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += "" if self.bias else f", bias={self.bias}"
        word = getattr(self, "nonlinearity", "tanh")
        return text if word == "tanh" else f"{text}, nonlinearity={word}"


class RNNCell(RNNCellBase):
    """One step of `RNN`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _settings(self) -> dict[str, Any]:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return {**super()._settings(), "nonlinearity": self.nonlinearity}


class LSTMCell(RNNCellBase):
    """One step of `LSTM`."""

    _kind = "LSTM"


class GRUCell(RNNCellBase):
    """One step of `GRU`."""

    _kind = "GRU"
