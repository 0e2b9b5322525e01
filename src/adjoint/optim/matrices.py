"""Optimizers that see a parameter as a matrix, not as so many numbers: by its rows, columns and directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.contraction import tensordot
from adjoint.functions.creation import eye, ones, zeros_like
from adjoint.functions.elementwise import maximum, minimum, rsqrt, sqrt, where
from adjoint.functions.shape import matrix_transpose, moveaxis, reshape
from adjoint.linalg.factors import eigh, qr
from adjoint.linalg.norms import vector_norm
from adjoint.module.fields import leaves_of
from adjoint.optim.base import Optimizer, State
from adjoint.optim.fused import Slots
from adjoint.optim.settings import (
    flag,
    fraction,
    in_use,
    integer,
    not_negative,
    not_positive,
    number,
    or_none,
    positive,
    rate,
    repetitions,
    setting,
)
from adjoint.tensor import Tensor
from adjoint.transforms.control import cond

Stepped = tuple[Tensor[Any], Slots]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatrixOptimizer(Optimizer):
    """An optimizer whose rule looks at axes: its parameters are real, as the axis of pairs would be one more."""

    def init(self, model: Any) -> State:
        """The state before the first step. Raises DtypeError for a complex parameter."""
        for leaf in leaves_of(model):
            if leaf.kind == "parameter" and (dtype := leaf.value.dtype).kind == "c":
                raise errors.DtypeError(
                    f"{type(self).__name__}: {leaf.path} is of {dtype}, but only real parameters have rows and columns "
                    "here; train it as two real ones, or by another optimizer"
                )
        return super().init(model)


# --- rows and columns ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adafactor(MatrixOptimizer):
    """Steps divided by averages of squared gradients, kept for rows and columns only. N. Shazeer, M. Stern (2018).

    w = t^beta2_decay;  R and C are averages of the means of g^2 over columns and over rows, (1 - w) R + w mean(g^2);
    v = R C / max(mean(R), eps[0]) for two axes or more (the last two), for fewer an average of g^2;
    u = g / max(sqrt(v), eps[0]), divided by max(1, rms(u) / d);  x = x (1 - lr weight_decay) -
    max(eps[1], rms(x)) min(lr, t^-1/2) u. A matrix of n rows and m columns needs n + m numbers of state. Settings and
    defaults are PyTorch's: eps[0] of None is the precision of the parameter. Raises ArgumentError for settings out of
    range, DtypeError for complex parameters.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(3, 2)
    >>> state = ad.optim.Adafactor().init(model)
    >>> {name: x.shape for name, x in state.slots["weight"].items()}
    {'rows': (2, 1), 'columns': (1, 3)}
    """

    lr: Any = setting(1e-2, rate)
    beta2_decay: float = setting(-0.8, not_positive)
    eps: tuple[float | None, float] = setting((None, 1e-3), or_none(not_negative))
    d: float = setting(1.0, positive)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        if x.ndim < 2:
            return {"square": zeros_like(x)}
        return {"rows": zeros_like(x[..., :1]), "columns": zeros_like(x[..., :1, :])}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        tiny, small = self.eps
        tiny = float(np.finfo(x.dtype).eps) if tiny is None else tiny
        weight = step**self.beta2_decay
        new, length = {}, _rms(x)
        scale = where(length > small, length, small)
        alpha = minimum(scale * lr, scale * step**-0.5)
        x = x * (1 - lr * self.weight_decay) if in_use(self.weight_decay) else x
        if x.ndim < 2:
            new["square"] = v = slots["square"] + weight * (g * g - slots["square"])
        else:
            for name, axis in (("rows", -1), ("columns", -2)):
                squares = vector_norm(g, axis=axis, keepdims=True) ** 2 / max(g.shape[axis], 1)
                new[name] = slots[name] + weight * (squares - slots[name])
            mean = new["rows"].sum(axis=-2, keepdims=True) / max(g.shape[-2], 1)
            v = new["rows"] * new["columns"] / maximum(mean, tiny)
        u = g * rsqrt(maximum(v, tiny * tiny))
        size = _rms(u) / self.d
        return x - alpha / where(size > 1, size, 1.0) * u, new


def _rms(x: Tensor[Any]) -> Tensor[Any]:
    root: Tensor[Any] = vector_norm(x) / max(x.size, 1) ** 0.5
    return root


# --- orthogonal steps ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Muon(MatrixOptimizer):
    """Steps of matrices by the nearest orthogonal matrix to their momentum. K. Jordan et al. (2024).

    m is the average of gradients, with Nesterov's look ahead b m / (1 - b^(t+1)) + (1 - b) g / (1 - b^t), where b is
    `momentum`. It is divided by its norm, then `ns_steps` times m = a m + (b A + c A^2) m, A = m m^T, with
    `ns_coefficients` a, b and c: Newton's and Schulz's iteration, which brings all singular values near 1. Then
    x = x - lr (sqrt(max(1, rows / columns)) m + weight_decay x). Rows are outputs, as in `ad.nn.Linear`.

    Parameters of two axes are matrices, also embeddings; all others take a step of `Adam` with `betas`, Nesterov's look
    ahead and `adam_weight_decay`. These are the rule and the defaults of Optax; PyTorch's computes in bfloat16. Raises
    ArgumentError for settings out of range, DtypeError for complex parameters.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(2, 2, bias=False).at("weight").set(ad.zeros((2, 2)))
    >>> optimizer = ad.optim.Muon(lr=1.0, ns_steps=20, ns_coefficients=(2, -1.5, 0.5))  # converges to the limit
    >>> gradient = ad.tensor([[0.0, 3.0], [-1.0, 0.0]])
    >>> model, state = optimizer.step(model, {"weight": gradient}, optimizer.init(model))
    >>> model.weight.round(decimals=3).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """

    momentum: float = setting(0.95, fraction)
    nesterov: bool = setting(True, flag)
    weight_decay: float = setting(0.0, not_negative)
    ns_coefficients: tuple[float, float, float] = setting((3.4445, -4.7750, 2.0315), number)
    ns_steps: int = setting(5, repetitions)
    eps: float = setting(1e-8, not_negative)
    betas: tuple[float, float] = setting((0.9, 0.999), fraction)
    adam_weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {name: zeros_like(x) for name in (["mean"] if x.ndim == 2 else ["mean", "square"])}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        if x.ndim == 2:
            m = self.momentum * slots["mean"] + (1 - self.momentum) * g
            longer = max(1.0, x.shape[0] / max(x.shape[1], 1)) ** 0.5
            change = longer * self.orthogonal(self._ahead(m, g, self.momentum, step)) + self.weight_decay * x
            return x - lr * change, {"mean": m}
        b1, b2 = self.betas
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["square"] + (1 - b2) * g * g
        change = self._ahead(m, g, b1, step) / (sqrt(v / (1 - b2**step)) + self.eps) + self.adam_weight_decay * x
        return x - lr * change, {"mean": m, "square": v}

    def _ahead(self, m: Tensor[Any], g: Tensor[Any], b: float, step: Any) -> Tensor[Any]:
        mean: Tensor[Any] = m / (1 - b**step)
        return b * m / (1 - b ** (step + 1)) + (1 - b) * g / (1 - b**step) if self.nesterov else mean

    def orthogonal(self, m: Tensor[Any]) -> Tensor[Any]:
        """What the iteration makes of a matrix."""
        if m.shape[0] > m.shape[1]:
            return matrix_transpose(self.orthogonal(matrix_transpose(m)))
        (a, b, c), m = self.ns_coefficients, m / (vector_norm(m) + self.eps)
        for _ in range(self.ns_steps):
            gram = m @ matrix_transpose(m)
            m = a * m + (b * gram + c * (gram @ gram)) @ m
        return m


# --- preconditioners -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shampoo(MatrixOptimizer):
    """Gradients preconditioned along each axis by all gradients so far. V. Gupta, T. Koren, Y. Singer (2018).

    For a matrix: L = L + g g^T;  R = R + g^T g;  x = x - lr L^(-1/4) g R^(-1/4), where both begin with eps times the
    identity. A parameter of k axes has k such matrices, to the power of -1/(2k); a number is a vector of one. Of an
    axis longer than `max_size` the matrix is its diagonal. Roots are by eigenvalues, at each step. Raises ArgumentError
    for settings out of range, DtypeError for complex parameters.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(2, 2, bias=False).at("weight").set(ad.zeros((2, 2)))
    >>> optimizer = ad.optim.Shampoo(lr=1.0, eps=1e-8)
    >>> model, state = optimizer.step(model, {"weight": ad.tensor([[0.0, 3.0], [-1.0, 0.0]])}, optimizer.init(model))
    >>> model.weight.round(decimals=3).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """

    lr: Any = setting(1e-1, rate)
    eps: float = setting(1e-4, positive)
    weight_decay: float = setting(0.0, not_negative)
    max_size: int = setting(1200, integer(0))

    def begin(self, x: Tensor[Any]) -> Slots:
        shape = x.shape or (1,)
        kinds = [(eye if n <= self.max_size else ones, n) for n in shape]
        return {str(axis): self.eps * kind(n, dtype=x.dtype, device=x.device) for axis, (kind, n) in enumerate(kinds)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        if not x.size:
            return x, slots
        g = g + self.weight_decay * x if in_use(self.weight_decay) else g
        g = whole = reshape(g, x.shape or (1,))
        new, power = {}, -0.5 / g.ndim
        for axis in range(g.ndim):
            others = [k for k in range(g.ndim) if k != axis]
            kept = slots[str(axis)]
            if kept.ndim == 1:
                new[str(axis)] = kept = kept + (whole * whole).sum(axis=others)
                g = moveaxis(moveaxis(g, axis, -1) * kept**power, -1, axis)
            else:
                new[str(axis)] = kept = kept + tensordot(whole, whole, axes=(others, others))
                g = _along(g, _power(kept, power, self.eps), axis)
        return x - lr * reshape(g, x.shape), new


def _power(x: Tensor[Any], power: float, lowest: float) -> Tensor[Any]:
    """A power of a symmetric matrix, none of whose eigenvalues is below the lowest but by rounding."""
    values, vectors = eigh(x)
    return (vectors * maximum(values, lowest) ** power) @ matrix_transpose(vectors)


def _along(x: Tensor[Any], matrix: Tensor[Any], axis: int) -> Tensor[Any]:
    """Each vector along an axis, v, becomes v @ matrix."""
    return moveaxis(tensordot(x, matrix, axes=([axis], [0])), -1, axis)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SOAP(MatrixOptimizer):
    """`AdamW` in the eigenvectors of `Shampoo`'s matrices, which turn slowly. N. Vyas et al. (2025), algorithm 3.

    For a matrix with orthogonal P and Q: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) (P^T g Q)^2;
    x = x (1 - lr weight_decay) - lr P (P^T m' Q / (sqrt(v') + eps)) Q^T, where m' and v' are m and v divided as in
    `Adam`; then L = b2 L + (1 - b2) g g^T and R likewise, and every `precondition_frequency` steps P and Q are those of
    the QR decompositions of L P and R Q. The first step changes no parameter: P and Q become the eigenvectors of its L
    and R, and t counts from the next. A parameter of more axes has a matrix for each, one of fewer than two axes none,
    and an axis longer than `max_size` none either: there it is `AdamW`. A first gradient of low rank has no unique
    eigenvectors, and then devices and precisions differ. Raises ArgumentError for settings out of range, DtypeError for
    complex parameters.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(2, 2, bias=False).at("weight").set(ad.zeros((2, 2)))
    >>> optimizer, gradient = ad.optim.SOAP(lr=1.0, weight_decay=0.0), ad.tensor([[0.0, 3.0], [-1.0, 0.0]])
    >>> state = optimizer.init(model)
    >>> for _ in range(2):
    ...     model, state = optimizer.step(model, {"weight": gradient}, state)
    >>> model.weight.round(decimals=3).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """

    lr: Any = setting(3e-3, rate)
    betas: tuple[float, float] = setting((0.95, 0.95), fraction)
    eps: float = setting(1e-8, not_negative)
    weight_decay: float = setting(1e-2, not_negative)
    precondition_frequency: int = setting(10, integer(1))
    max_size: int = setting(10000, integer(0))

    def begin(self, x: Tensor[Any]) -> Slots:
        slots = {"mean": zeros_like(x), "square": zeros_like(x)}
        for axis in self._axes(x):
            slots[f"basis {axis}"] = identity = eye(x.shape[axis], dtype=x.dtype, device=x.device)
            slots[f"matrix {axis}"] = 0 * identity
        return slots

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        axes, (b1, b2) = self._axes(x), self.betas
        first = step == 1
        t = step - 1 + first  # 0 has no average
        bases = {axis: slots[f"basis {axis}"] for axis in axes}

        def turned(y: Tensor[Any], of: Callable[[Tensor[Any]], Tensor[Any]]) -> Tensor[Any]:
            for axis in axes:
                y = _along(y, of(bases[axis]), axis)
            return y

        into = turned(g, lambda basis: basis)
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["square"] + (1 - b2) * into * into
        change = turned(m, lambda basis: basis) / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + self.eps)
        moved = x * (1 - lr * self.weight_decay) - lr * turned(change, matrix_transpose)
        new = {"mean": where(first, slots["mean"], m), "square": where(first, slots["square"], v)}
        for axis in axes:
            others = [k for k in range(x.ndim) if k != axis]
            new[f"matrix {axis}"] = p = b2 * slots[f"matrix {axis}"] + (1 - b2) * tensordot(g, g, axes=(others, others))
            turn = lambda p, q: cond(first, lambda p, q: eigh(p).eigenvectors, lambda p, q: qr(p @ q).Q, p, q)
            now = (step - 1) % self.precondition_frequency == 0
            new[f"basis {axis}"] = cond(now, turn, lambda p, q: q, p, bases[axis])
        return where(first, x, moved), new

    def _axes(self, x: Tensor[Any]) -> list[int]:
        """Those that have a matrix."""
        return [k for k, n in enumerate(x.shape) if 0 < n <= self.max_size] if x.ndim > 1 else []
