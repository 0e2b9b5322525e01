"""Scaling of losses, so that gradients of half precision do not vanish."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, TypeVar

from adjoint import errors
from adjoint import tree as trees
from adjoint.functions.arguments import check_tensor
from adjoint.functions.elementwise import where
from adjoint.functions.logic import isfinite, logical_and
from adjoint.functions.reduction import all as every
from adjoint.operands import is_concrete
from adjoint.optim.base import Optimizer, State
from adjoint.optim.gradients import GradientsParams
from adjoint.optim.settings import Settings, integer, positive, setting
from adjoint.tensor import Tensor

M = TypeVar("M")


class ScaleState(NamedTuple):
    """The present scale, and the steps since it changed."""

    scale: Any
    steps: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradScaler(Settings):
    """A scale of the loss that is as large as it may be. P. Micikevicius et al. (2018), section 3.2.

    Small gradients are zero in float16. So the loss is multiplied before `backward`, and the gradients are divided
    after it, in the dtype of the parameters. A step whose gradients are not finite is left out, and the scale is
    multiplied by `backoff_factor`; after `growth_interval` steps that are finite it is multiplied by `growth_factor`.
    Names and values are PyTorch's.

    Raises ArgumentError for a growth of 1 or less, a backoff of 1 or more, or numbers that are not positive.

    Examples
    --------
    >>> import adjoint as ad
    >>> model, optimizer, scaler = ad.nn.Linear(2, 1), ad.optim.SGD(lr=0.1), ad.optim.GradScaler()
    >>> state, scaling = optimizer.init(model), scaler.init()
    >>> def loss(model, scaling):
    ...     half = model.map(lambda w: w.astype(ad.float16))
    ...     return scaler.scale((half(ad.ones((3, 2), dtype=ad.float16)) ** 2).mean(), scaling)
    >>> grads = ad.grad(loss)(model, scaling)
    >>> model, state, scaling = scaler.step(optimizer, model, grads, state, scaling)
    """

    init_scale: float = setting(65536.0, positive)
    growth_factor: float = setting(2.0, positive)
    backoff_factor: float = setting(0.5, positive)
    growth_interval: int = setting(2000, integer(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.backoff_factor < 1 < self.growth_factor:
            raise errors.ArgumentError(
                f"GradScaler: growth_factor is more than 1 and backoff_factor less, received {self.growth_factor} and "
                f"{self.backoff_factor}"
            )

    def init(self) -> ScaleState:
        """The state before the first step."""
        return ScaleState(self.init_scale, 0)

    def scale(self, loss: Tensor[Any], scaling: ScaleState) -> Tensor[Any]:
        """The loss times the scale, in float32 or a wider dtype, in which the scale is no infinity.

        Raises ArgumentTypeError for what is no tensor, or no state.
        """
        check_tensor("GradScaler.scale", loss)
        _check_state(scaling)
        wide = loss.astype("float32") if loss.dtype.itemsize < 4 else loss
        scaled: Tensor[Any] = wide * scaling.scale
        return scaled

    def unscale(self, grads: Any, model: Any, scaling: ScaleState) -> GradientsParams:
        """The gradients of the loss itself, as for clipping, by the paths of the model's parameters."""
        _check_state(scaling)
        scale = scaling.scale
        return GradientsParams.from_grads(grads, model).map(lambda g: g / scale)

    def step(
        self, optimizer: Optimizer, model: M, grads: Any, state: State, scaling: ScaleState, *, lr: Any = None
    ) -> tuple[M, State, ScaleState]:
        """The optimizer's step by gradients of the scaled loss, or none if these are not finite, and the next scale."""
        return self.step_unscaled(optimizer, model, self.unscale(grads, model, scaling), state, scaling, lr=lr)

    def step_unscaled(
        self, optimizer: Optimizer, model: M, grads: Any, state: State, scaling: ScaleState, *, lr: Any = None
    ) -> tuple[M, State, ScaleState]:
        """`step` by what `unscale` gave, clipped or not."""
        _check_state(scaling)
        if not isinstance(optimizer, Optimizer):
            raise errors.ArgumentTypeError(
                f"GradScaler.step: the optimizer is one of ad.optim, such as ad.optim.SGD(), received "
                f"{errors.shown(optimizer)}"
            )
        found = GradientsParams.from_grads(grads, model)
        checks = [every(isfinite(g)) for g in found.values()]
        finite = checks[0]
        for check in checks[1:]:
            finite = logical_and(finite, check)
        if not is_concrete(finite):  # a program chooses when it runs
            taken, left = optimizer.step(model, found, state, lr=lr), (model, state)
            made, next_state = trees.map(lambda x, y: where(finite, x, y), taken, left)
            steps = where(finite, scaling.steps + 1, 0)
            grown = where(steps == self.growth_interval, scaling.scale * self.growth_factor, scaling.scale)
            steps = where(steps == self.growth_interval, 0, steps)
            return made, next_state, ScaleState(where(finite, grown, scaling.scale * self.backoff_factor), steps)
        if not finite:
            return model, state, ScaleState(scaling.scale * self.backoff_factor, 0)
        model, state = optimizer.step(model, found, state, lr=lr)
        if scaling.steps + 1 == self.growth_interval:
            return model, state, ScaleState(scaling.scale * self.growth_factor, 0)
        return model, state, ScaleState(scaling.scale, scaling.steps + 1)


def _check_state(scaling: Any) -> None:
    if not isinstance(scaling, ScaleState):
        raise errors.ArgumentTypeError(
            f"GradScaler: the state is what init() or the last step gave, received {errors.shown(scaling)}"
        )
