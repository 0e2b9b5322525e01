"""Optimizers that descend along the gradient, parameter by parameter. Names, settings and defaults are PyTorch's."""

from __future__ import annotations

import dataclasses
from typing import Any

from adjoint import errors
from adjoint.functions.creation import zeros_like
from adjoint.functions.elementwise import abs as magnitude
from adjoint.functions.elementwise import maximum, sign, sqrt
from adjoint.optim.base import Optimizer, chosen
from adjoint.optim.fused import Slots
from adjoint.optim.settings import flag, fraction, in_use, not_negative, rate, setting, share
from adjoint.tensor import Tensor

Stepped = tuple[Tensor[Any], Slots]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum, and Nesterov's look ahead. I. Sutskever et al. (2013).

    v = momentum v + (1 - dampening) g;  x = x - lr v, or with `nesterov` x - lr (g + momentum v). Raises ArgumentError
    for settings out of range, and for `nesterov` without momentum or with dampening.
    """

    momentum: float = setting(0.0, not_negative)
    dampening: float = setting(0.0, not_negative)
    nesterov: bool = setting(False, flag)
    weight_decay: float = setting(0.0, not_negative)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not in_use(self.momentum):
            raise errors.ArgumentError("SGD: nesterov looks ahead by momentum, which is 0; give it, as momentum=0.9")
        if self.nesterov and in_use(self.dampening):
            raise errors.ArgumentError(f"SGD: nesterov goes without dampening, received {self.dampening}")

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"velocity": zeros_like(x)} if in_use(self.momentum) else {}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g = _decayed(g, x, self.weight_decay)
        if not in_use(self.momentum):
            return x - lr * g, slots
        new = chosen(step == 1, g, (1 - self.dampening) * g) if in_use(self.dampening) else g
        v = self.momentum * slots["velocity"] + new
        return x - lr * (g + self.momentum * v if self.nesterov else v), {"velocity": v}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam: steps of about the rate, by averages of the gradient and of its square. D. Kingma, J. Ba (2015).

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  x = x - lr m' / (sqrt(v') + eps), where m' and v' are divided by
    1 - b1^t and 1 - b2^t, which numbers take in (section 2). With `amsgrad` v' is the largest so far (S. Reddi et al.,
    2018). Decay is added to gradients.
    """

    betas: tuple[float, float] = setting((0.9, 0.999), fraction)
    eps: float = setting(1e-8, not_negative)
    weight_decay: float = setting(0.0, not_negative)
    amsgrad: bool = setting(False, flag)

    def begin(self, x: Tensor[Any]) -> Slots:
        names = ["mean", "square", *(["largest"] if self.amsgrad else [])]
        return {name: zeros_like(x) for name in names}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        return self._moved(x, _decayed(g, x, self.weight_decay), slots, step, lr)

    def _moved(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        (b1, b2), new = self.betas, {}
        new["mean"] = m = b1 * slots["mean"] + (1 - b1) * g
        new["square"] = v = b2 * slots["square"] + (1 - b2) * g * g
        if self.amsgrad:
            new["largest"] = v = maximum(slots["largest"], v)
        root = (1 - b2**step) ** 0.5
        return x - lr * root / (1 - b1**step) * (m / (sqrt(v) + self.eps * root)), new


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """`Adam` with the decay taken off the parameters, not added to gradients. I. Loshchilov, F. Hutter (2019)."""

    weight_decay: float = setting(1e-2, not_negative)

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        return self._moved(x * (1 - lr * self.weight_decay), g, slots, step, lr)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RMSprop(Optimizer):
    """Steps divided by a running root mean square of the gradients. T. Tieleman, G. Hinton (2012), lecture 6e."""

    lr: Any = setting(1e-2, rate)
    alpha: float = setting(0.99, fraction)
    eps: float = setting(1e-8, not_negative)
    weight_decay: float = setting(0.0, not_negative)
    momentum: float = setting(0.0, not_negative)
    centered: bool = setting(False, flag)

    def begin(self, x: Tensor[Any]) -> Slots:
        names = ["square", *(["velocity"] if in_use(self.momentum) else []), *(["mean"] if self.centered else [])]
        return {name: zeros_like(x) for name in names}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g, new = _decayed(g, x, self.weight_decay), {}
        new["square"] = v = self.alpha * slots["square"] + (1 - self.alpha) * g * g
        if self.centered:
            new["mean"] = m = self.alpha * slots["mean"] + (1 - self.alpha) * g
            v = v - m * m
        g = g / (sqrt(v) + self.eps)
        if in_use(self.momentum):
            new["velocity"] = g = self.momentum * slots["velocity"] + g
        return x - lr * g, new


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients. J. Duchi et al. (2011)."""

    lr: Any = setting(1e-2, rate)
    lr_decay: float = setting(0.0, not_negative)
    weight_decay: float = setting(0.0, not_negative)
    initial_accumulator_value: float = setting(0.0, not_negative)
    eps: float = setting(1e-10, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"sum": zeros_like(x) + self.initial_accumulator_value}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g = _decayed(g, x, self.weight_decay)
        total = slots["sum"] + g * g
        return x - lr / (1 + (step - 1) * self.lr_decay) * g / (sqrt(total) + self.eps), {"sum": total}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adadelta(Optimizer):
    """Steps in the units of the parameters, by averages of squared gradients and squared steps. M. Zeiler (2012)."""

    lr: Any = setting(1.0, rate)
    rho: float = setting(0.9, share)
    eps: float = setting(1e-6, not_negative)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"square": zeros_like(x), "steps": zeros_like(x)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g = _decayed(g, x, self.weight_decay)
        v = self.rho * slots["square"] + (1 - self.rho) * g * g
        change = sqrt(slots["steps"] + self.eps) / sqrt(v + self.eps) * g
        return x - lr * change, {"square": v, "steps": self.rho * slots["steps"] + (1 - self.rho) * change * change}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adamax(Adam):
    """`Adam` by the largest magnitude of gradients, slowly forgotten. D. Kingma, J. Ba (2015), section 7."""

    lr: Any = setting(2e-3, rate)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"mean": zeros_like(x), "largest": zeros_like(x)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g, (b1, b2) = _decayed(g, x, self.weight_decay), self.betas
        m = b1 * slots["mean"] + (1 - b1) * g
        u = maximum(b2 * slots["largest"], magnitude(g) + self.eps)
        return x - lr / (1 - b1**step) * m / u, {"mean": m, "largest": u}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NAdam(Adam):
    """`Adam` with Nesterov's look ahead. T. Dozat (2016)."""

    lr: Any = setting(2e-3, rate)
    momentum_decay: float = setting(4e-3, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"mean": zeros_like(x), "square": zeros_like(x), "product": zeros_like(x.sum()) + 1}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g, (b1, b2) = _decayed(g, x, self.weight_decay), self.betas
        now, then = [b1 * (1 - 0.5 * 0.96 ** (t * self.momentum_decay)) for t in (step, step + 1)]
        product = slots["product"] * now
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["square"] + (1 - b2) * g * g
        scale = sqrt(v / (1 - b2**step)) + self.eps
        change = (1 - now) / (1 - product) * g + then / (1 - product * then) * m
        return x - lr * change / scale, {"mean": m, "square": v, "product": product}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAdam(Adam):
    """`Adam` that waits with its division until the variance of it is small. L. Liu et al. (2020)."""

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g, (b1, b2) = _decayed(g, x, self.weight_decay), self.betas
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["square"] + (1 - b2) * g * g
        longest = 2 / (1 - b2) - 1
        length = longest - 2 * step * b2**step / (1 - b2**step)
        mean, root = m / (1 - b1**step), sqrt(v) + self.eps
        bound = ((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length)
        divided = (chosen(length > 5, bound, 1.0) * (1 - b2**step)) ** 0.5 / root
        return x - lr * mean * chosen(length > 5, divided, 1.0), {"mean": m, "square": v}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lion(Optimizer):
    """Steps of the rate in each direction: the sign of an average. X. Chen et al. (2023). Defaults are the paper's."""

    lr: Any = setting(1e-4, rate)
    betas: tuple[float, float] = setting((0.9, 0.99), fraction)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"mean": zeros_like(x)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        (b1, b2), m = self.betas, slots["mean"]
        change = sign(b1 * m + (1 - b1) * g) + self.weight_decay * x
        return x - lr * change, {"mean": b2 * m + (1 - b2) * g}


def _decayed(g: Tensor[Any], x: Tensor[Any], weight_decay: float) -> Tensor[Any]:
    """The gradient of the loss and half of `weight_decay` times the sum of squares."""
    return g + weight_decay * x if in_use(weight_decay) else g
