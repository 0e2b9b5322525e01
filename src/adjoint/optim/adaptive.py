"""Optimizers that adapt the step of each parameter, or of each number in it, in ways beyond Adam's."""

from __future__ import annotations

import dataclasses
from typing import Any

from adjoint import errors
from adjoint.functions.creation import full_like, zeros_like
from adjoint.functions.elementwise import clip, sqrt, where
from adjoint.linalg.norms import vector_norm
from adjoint.optim.base import Optimizer, rate_at
from adjoint.optim.fused import Slots
from adjoint.optim.settings import fraction, not_negative, rate, setting
from adjoint.tensor import Tensor

Stepped = tuple[Tensor[Any], Slots]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LAMB(Optimizer):
    """`Adam` whose steps are as long as each parameter is, for large batches. Y. You et al. (2020), algorithm 2.

    With m' and v' of `Adam`, u = m' / (sqrt(v') + eps) + weight_decay x;  x = x - lr (||x|| / ||u||) u, where the norms
    are those of a whole parameter, and their ratio is 1 where one of them is 0. Defaults are Optax's. Raises
    ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.LAMB(lr=0.1)
    >>> model, state = optimizer.step(model, {"weight": ad.full((1, 1), 3.0)}, optimizer.init(model))
    >>> round(model.weight.item(), 4)
    0.9
    """

    betas: tuple[float, float] = setting((0.9, 0.999), fraction)
    eps: float = setting(1e-6, not_negative)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"mean": zeros_like(x), "square": zeros_like(x)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        b1, b2 = self.betas
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["square"] + (1 - b2) * g * g
        u = m / (1 - b1**step) / (sqrt(v / (1 - b2**step)) + self.eps) + self.weight_decay * x
        length, size = vector_norm(x), vector_norm(u)
        zero = (length == 0) | (size == 0)
        ratio = where(zero, 1.0, length / where(zero, 1.0, size))
        return x - lr * ratio * u, {"mean": m, "square": v}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adan(Optimizer):
    """Adam with Nesterov's look ahead by differences of gradients. X. Xie et al. (2022), algorithm 1.

    d = g - g of the step before (0 at first);  m, v and n are averages of g, of d, and of (g + (1 - b2) d)^2, divided
    by 1 - b1^t, 1 - b2^t and 1 - b3^t;  x = x - lr ((m + (1 - b2) v) / (sqrt(n + eps_root) + eps) + weight_decay x).
    Betas are factors of what was before, as Optax has them; the paper's are 1 minus these. Defaults are Optax's. Raises
    ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.Adan(lr=0.1)
    >>> model, state = optimizer.step(model, {"weight": ad.full((1, 1), 3.0)}, optimizer.init(model))
    >>> round(model.weight.item(), 4)
    0.9
    """

    betas: tuple[float, float, float] = setting((0.98, 0.92, 0.99), fraction)
    eps: float = setting(1e-8, not_negative)
    eps_root: float = setting(1e-8, not_negative)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {name: zeros_like(x) for name in ("mean", "difference", "square", "gradient")}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        b1, b2, b3 = self.betas
        d = where(step == 1, zeros_like(g), g - slots["gradient"])
        m = b1 * slots["mean"] + (1 - b1) * g
        v = b2 * slots["difference"] + (1 - b2) * d
        ahead = g + (1 - b2) * d
        n = b3 * slots["square"] + (1 - b3) * ahead * ahead
        change = m / (1 - b1**step) + (1 - b2) * (v / (1 - b2**step))
        change = change / (sqrt(n / (1 - b3**step) + self.eps_root) + self.eps) + self.weight_decay * x
        return x - lr * change, {"mean": m, "difference": v, "square": n, "gradient": g}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rprop(Optimizer):
    """Steps whose size grows while the sign of the gradient stays, for whole batches. M. Riedmiller, H. Braun (1993).

    A number's step size, `lr` at first, is multiplied by etas[1] where its gradient has the sign of the last, and by
    etas[0] where it has the other one (then the number stays, and its gradient counts as 0), within `step_sizes`;
    x = x - size sign(g). Settings and defaults are PyTorch's. Later rates change nothing: sizes begin with the first.
    Raises ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.Rprop(lr=0.1)
    >>> state = optimizer.init(model)
    >>> for _ in range(2):
    ...     model, state = optimizer.step(model, {"weight": ad.full((1, 1), 3.0)}, state)
    >>> round(model.weight.item(), 4)  # 1 - 0.1 - 0.1 * 1.2
    0.78
    """

    lr: Any = setting(1e-2, rate)
    etas: tuple[float, float] = setting((0.5, 1.2), not_negative)
    step_sizes: tuple[float, float] = setting((1e-6, 50.0), not_negative)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.etas
        if not (isinstance(low, Tensor) or low < 1) or not (isinstance(high, Tensor) or high > 1):
            raise errors.ArgumentError(f"Rprop: etas are a number below 1 and one above, received {self.etas}")

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"gradient": zeros_like(x), "size": full_like(x, 1.0) * rate_at(self.lr, 0)}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        product, size = g * slots["gradient"], slots["size"]
        size = where(product > 0, size * self.etas[1], where(product < 0, size * self.etas[0], size))
        size = clip(size, *self.step_sizes)
        g = where(product < 0, 0.0, g)
        return x - where(g > 0, size, where(g < 0, -size, 0.0)), {"gradient": g, "size": size}  # nan has no sign
