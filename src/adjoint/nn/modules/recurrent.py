"""Recurrent networks: cells for one step, and layers of them over sequences, with PyTorch's weights and values."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, ClassVar

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_flag, as_integer, as_layers, as_probability, as_tensor, as_tensors
from adjoint.functions.contraction import matmul
from adjoint.functions.creation import zeros
from adjoint.functions.elementwise import tanh, where
from adjoint.functions.logic import less
from adjoint.functions.parts import split
from adjoint.functions.ranges import arange
from adjoint.functions.shape import concat, expand_dims, flip, moveaxis, reshape, stack, unstack
from adjoint.module.base import Module
from adjoint.nn.activations import relu, sigmoid
from adjoint.nn.layers import dropout
from adjoint.nn.modules.linear import Key, within
from adjoint.operands import operand, run
from adjoint.tensor import Operand, Tensor

State = tuple[Tensor[Any], ...]


class _Cell(Module):
    """One step. `weight_ih` is (gates * hidden_size, input_size), `weight_hh` (gates * hidden_size, hidden_size)."""

    weight_ih: Tensor[Any]
    weight_hh: Tensor[Any]
    bias_ih: Tensor[Any] | None
    bias_hh: Tensor[Any] | None
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1  # how many tensors are handed on

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = None, device: Any = None
    ) -> None:
        name = type(self).__name__
        inputs, hidden = (as_integer(n, name, "a size", 1) for n in (input_size, hidden_size))
        wide, bias = self.gates * hidden, as_flag(bias, name, "bias")
        self.weight_ih = within(hidden, (wide, inputs), dtype, device)
        self.weight_hh = within(hidden, (wide, hidden), dtype, device)
        self.bias_ih = within(hidden, (wide,), dtype, device) if bias else None
        self.bias_hh = within(hidden, (wide,), dtype, device) if bias else None

    @property
    def hidden_size(self) -> int:
        """How many numbers the state of an example has."""
        return self.weight_hh.shape[1]

    def __call__(self, x: Operand[Any], state: Any = None, *, key: Key = None) -> Any:
        x = as_tensor(x, type(self).__name__)
        if state is not None and self.states > 1 and not (isinstance(state, (tuple, list)) and len(state) == 2):
            raise errors.ShapeError(
                f"{type(self).__name__}: a state is two tensors of shape (batch, hidden_size), received "
                f"{errors.shown(state)}"
            )
        before: Any = self.start(x.shape[:-1], x) if state is None else tuple(state) if self.states > 1 else (state,)
        after = self.step(self.project(x), before)
        return after if self.states > 1 else after[0]

    def start(self, shape: tuple[int, ...], like: Tensor[Any]) -> State:
        """Zeros for examples of a shape."""
        return tuple(
            zeros((*shape, self.hidden_size), dtype=like.dtype, device=like.device) for _ in range(self.states)
        )

    def project(self, x: Tensor[Any]) -> Tensor[Any]:
        """The part of all gates that comes from the inputs, which needs no state: of a whole sequence at once."""
        out = matmul(x, self.weight_ih.mT)
        return out if self.bias_ih is None else out + self.bias_ih

    def recur(self, h: Tensor[Any]) -> Tensor[Any]:
        """The part of all gates that comes from the state."""
        out = matmul(h, self.weight_hh.mT)
        return out if self.bias_hh is None else out + self.bias_hh

    def step(self, projected: Tensor[Any], state: State) -> State:
        """The next state, of which the first tensor is the output."""
        raise NotImplementedError


class RNNCell(_Cell):
    """h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu of it. J. Elman (1990).

    x is (..., input_size), the state (..., hidden_size). Weights and biases start uniform within 1 / sqrt(hidden_size).

    >>> import adjoint as ad
    >>> ad.nn.RNNCell(3, 4)(ad.ones((2, 3))).shape
    (2, 4)
    """

    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, dtype=dtype, device=device)
        self.nonlinearity = as_choice(nonlinearity, "RNNCell", "nonlinearity", ("tanh", "relu"))

    def step(self, projected: Tensor[Any], state: State) -> State:
        total = projected + self.recur(state[0])
        return (tanh(total) if self.nonlinearity == "tanh" else relu(total),)


class LSTMCell(_Cell, init=False):
    """Long short-term memory: the state is (h, c). S. Hochreiter, J. Schmidhuber (1997); F. Gers et al. (2000).

    x is (..., input_size), h and c are (..., hidden_size). The four gates stand below each other in the weights: input,
    forget, cell, output.

    >>> import adjoint as ad
    >>> h, c = ad.nn.LSTMCell(3, 4)(ad.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates, states = 4, 2

    def step(self, projected: Tensor[Any], state: State) -> State:
        h, c = state
        i, f, g, o = split(projected + self.recur(h), 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def follow(self, x: Tensor[Any], state: State, backward: bool) -> tuple[Tensor[Any], State]:
        """All steps of real numbers, or from the last one, as one primitive: the outputs and the last state."""
        gates = matmul(x, self.weight_ih.mT)
        if biases := [bias for bias in (self.bias_ih, self.bias_hh) if bias is not None]:
            gates = gates + sum(biases[1:], biases[0])
        steps, batch = x.shape[0], math.prod(x.shape[1:-1])
        shape = (*x.shape[1:-1], self.hidden_size)
        gates = reshape(flip(gates, axis=0) if backward else gates, (steps, batch, gates.shape[-1]))
        first = [reshape(part, (batch, self.hidden_size)) for part in state]
        found = run("lstm", as_tensors([gates, self.weight_hh, *first], "LSTM"))
        outs = reshape(found[:, 0], (steps, *shape))
        last = tuple([reshape(found[-1, k], shape) for k in range(2)])
        return flip(outs, axis=0) if backward else outs, last


class GRUCell(_Cell, init=False):
    """Gated recurrent unit. K. Cho et al. (2014), with the reset gate after the product, as in cuDNN and PyTorch.

    x is (..., input_size), the state (..., hidden_size). The three gates stand below each other in the weights: reset,
    update, new.

    >>> import adjoint as ad
    >>> ad.nn.GRUCell(3, 4)(ad.ones((2, 3))).shape
    (2, 4)
    """

    gates = 3

    def step(self, projected: Tensor[Any], state: State) -> State:
        (h,) = state
        xr, xz, xn = split(projected, 3, axis=-1)
        hr, hz, hn = split(self.recur(h), 3, axis=-1)
        z = sigmoid(xz + hz)
        new = tanh(xn + sigmoid(xr + hr) * hn)
        return (new + z * (h - new),)


class _Recurrent(Module):
    """Cells over sequences: one for each layer and direction, the forward one first."""

    cells: tuple[Any, ...]
    batch_first: bool
    dropout: float
    bidirectional: bool
    cell: ClassVar[type[_Cell]]

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = None, device: Any = None, **settings: Any,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        layers = as_layers(num_layers, name)
        hidden_size = as_integer(hidden_size, name, "hidden_size", 1)
        self.batch_first, self.bidirectional = (
            as_flag(flag, name, what) for flag, what in ((batch_first, "batch_first"), (bidirectional, "bidirectional"))
        )
        self.dropout = as_probability(dropout, name, "dropout")
        directions = 2 if self.bidirectional else 1
        sizes = [input_size, *[directions * hidden_size] * (layers - 1)]
        self.cells = tuple(
            self.cell(size, hidden_size, bias, dtype=dtype, device=device, **settings)
            for size in sizes
            for _ in range(directions)
        )

    def __call__(
        self, x: Operand[Any], state: Any = None, *, lengths: Any = None, key: Key = None
    ) -> tuple[Tensor[Any], Any]:
        """The outputs of the last layer at all steps, and the state after the last step of each cell.

        Parameters
        ----------
        x
            (steps, batch, input_size); (batch, steps, input_size) if `batch_first`; (steps, input_size) of one example.
        state
            The state before the first step, (cells, batch, hidden_size), or for `LSTM` a pair of them; zeros for None.
        lengths
            The number of steps of each example, (batch,): what follows is ignored, and its outputs are 0.

        Returns
        -------
        tuple
            The outputs, with the axes of x and hidden_size for each direction, and the state.
        """
        name = type(self).__name__
        x = as_tensor(x, name)
        if x.ndim not in (2, 3):
            raise errors.ShapeError(
                f"{name}: x is (steps, batch, input_size), or (steps, input_size) of one example, received {x.shape}"
            )
        turned = self.batch_first and x.ndim == 3
        x = moveaxis(x, 0, 1) if turned else x
        mask = None if lengths is None else self._mask(lengths, x)
        before = self._states(state, x)
        after: list[State] = []
        directions = 2 if self.bidirectional else 1
        for place in range(0, len(self.cells), directions):
            found = [self._run(place + d, x, before[place + d], mask, backward=d == 1) for d in range(directions)]
            x = found[0][0] if directions == 1 else concat([out for out, _ in found], axis=-1)
            after += [last for _, last in found]
            if self.dropout and place + directions < len(self.cells):
                x = dropout(x, self.dropout, self.training)
        last = [stack(parts) for parts in zip(*after, strict=True)]
        return moveaxis(x, 0, 1) if turned else x, tuple(last) if len(last) > 1 else last[0]

    def _run(self, place: int, x: Tensor[Any], state: State, mask: Any, *, backward: bool) -> tuple[Tensor[Any], State]:
        """One cell over all steps: its outputs and its last state."""
        cell = self.cells[place]
        if type(cell) is LSTMCell and mask is None and x.shape[0]:
            if not any(part.dtype.kind == "c" for part in (x, *state, cell.weight_ih, cell.weight_hh)):
                return cell.follow(x, state, backward)
        projected = cell.project(x)
        if x.device.leaf.is_fresh and x.shape[0] and all(part.dtype is projected.dtype for part in state):
            return _looped(cell, projected, state, mask, backward)
        steps = list(enumerate(unstack(projected)))
        outs: list[Any] = [None] * len(steps)
        for t, part in reversed(steps) if backward else steps:
            new = cell.step(part, state)
            if mask is None:
                outs[t] = new[0]
            else:
                new = tuple(where(mask[t], a, b) for a, b in zip(new, state, strict=True))
                outs[t] = where(mask[t], new[0], 0.0)
            state = new
        if not outs:
            return zeros((0, *x.shape[1:-1], cell.hidden_size), dtype=x.dtype, device=x.device), state
        return stack(outs), state

    def _states(self, state: Any, x: Tensor[Any]) -> list[State]:
        first = self.cells[0]
        if state is None:
            return [cell.start(x.shape[1:-1], x) for cell in self.cells]
        parts = state if first.states > 1 and isinstance(state, (tuple, list)) else (state,)
        shape = (len(self.cells), *x.shape[1:-1], first.hidden_size)
        shapes = [getattr(part, "shape", None) for part in parts]
        if shapes != [shape] * first.states:
            wanted = "a tensor" if first.states == 1 else "two tensors"
            raise errors.ShapeError(f"{type(self).__name__}: a state is {wanted} of shape {shape}, received {shapes}")
        return list(zip(*[unstack(operand(part, x, type(self).__name__)) for part in parts], strict=True))

    def _mask(self, lengths: Any, x: Tensor[Any]) -> Tensor[Any]:
        """Whether a step belongs to an example: (steps, batch, 1)."""
        counts = operand(lengths, x, type(self).__name__)
        if counts.shape != x.shape[1:-1] or counts.dtype.kind not in "iu":
            raise errors.ShapeError(
                f"{type(self).__name__}: lengths are integers of shape {x.shape[1:-1]}, received {counts.dtype} of "
                f"shape {counts.shape}"
            )
        steps = arange(x.shape[0], dtype=counts.dtype, device=x.device)
        return expand_dims(less(expand_dims(steps, axis=-1), counts), axis=-1)


def _looped(cell: Any, projected: Tensor[Any], state: State, mask: Any, backward: bool) -> tuple[Tensor[Any], State]:
    """One cell over all steps, as a loop of a recording, whose length does not grow with their number."""
    scan = import_module("adjoint.transforms.control").scan  # which is above

    def step(state: State, given: Any) -> tuple[State, Tensor[Any]]:
        part, there = given
        new = cell.step(part, state)
        if there is None:
            return new, new[0]
        return tuple(where(there, a, b) for a, b in zip(new, state, strict=True)), where(there, new[0], 0.0)

    last, outs = scan(step, state, (projected, mask), reverse=backward)
    return outs, last


class RNN(_Recurrent, init=False):
    """Layers of `RNNCell` over a sequence.

    >>> import adjoint as ad
    >>> outputs, state = ad.nn.RNN(3, 4, num_layers=2)(ad.ones((5, 2, 3)))
    >>> outputs.shape, state.shape
    ((5, 2, 4), (2, 2, 4))
    """

    cell = RNNCell


class LSTM(_Recurrent, init=False):
    """Layers of `LSTMCell` over a sequence; the state is a pair.

    >>> import adjoint as ad
    >>> outputs, (h, c) = ad.nn.LSTM(3, 4, bidirectional=True, batch_first=True)(ad.ones((2, 5, 3)))
    >>> outputs.shape, h.shape, c.shape
    ((2, 5, 8), (2, 2, 4), (2, 2, 4))
    """

    cell = LSTMCell


class GRU(_Recurrent, init=False):
    """Layers of `GRUCell` over a sequence.

    >>> import adjoint as ad
    >>> outputs, state = ad.nn.GRU(3, 4)(ad.ones((5, 2, 3)), lengths=ad.tensor([5, 3]))
    >>> outputs.shape, state.shape, outputs[4, 1].tolist()
    ((5, 2, 4), (1, 2, 4), [0.0, 0.0, 0.0, 0.0])
    """

    cell = GRUCell
