"""Optimizers that ask for loss and gradients themselves, at points of their own: a function is passed for gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from adjoint import errors
from adjoint.functions.elementwise import abs as magnitude
from adjoint.functions.elementwise import where
from adjoint.functions.reduction import max as largest
from adjoint.functions.reduction import sum as total
from adjoint.functions.shape import concat, ravel, reshape, stack
from adjoint.module.base import Module
from adjoint.optim.base import Optimizer, State, check_state, gradients, parameters, rate_at, with_parameters
from adjoint.optim.gradients import GradientsParams
from adjoint.optim.settings import integer, not_negative, one_of, or_none, rate, setting
from adjoint.optim.wolfe import Point, strong_wolfe
from adjoint.tensor import Tensor

M = TypeVar("M")
LossAndGradients = Callable[[Any], tuple[Any, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosureOptimizer(Optimizer):
    """An optimizer whose `step` takes a function in the place of gradients, and calls it as often as it needs.

    `step(model, loss_and_gradients, state)` calls `loss_and_gradients(model)` for (loss, gradients), first at the model
    itself. `ad.value_and_grad(loss)` is such a function; so is one that calls `backward`. It should give the same loss
    for the same model: within a step the batch, and the key of what is drawn, stay. `step` raises ArgumentTypeError for
    what is no such function, and what other optimizers raise for the gradients that it gives.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1))).require_grad()
    >>> def loss_and_gradients(model):
    ...     loss = (model.weight**2).sum()
    ...     print("loss", loss.item())
    ...     return loss, loss.backward()
    >>> optimizer = ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.1), rho=0.5)
    >>> model, state = optimizer.step(model, loss_and_gradients, optimizer.init(model))
    loss 1.0
    loss 2.25
    """


def _evaluated(optimizer: Any, f: Any, model: Any) -> tuple[Any, GradientsParams]:
    """Loss and gradients at a model."""
    name = type(optimizer).__name__
    wanted = f"step: {name} takes a function of a model that gives (loss, gradients), as ad.value_and_grad(loss) does"
    if not callable(f) or isinstance(f, Module):
        raise errors.ArgumentTypeError(f"{wanted}; received {errors.shown(f)}")
    found = f(model)
    if not isinstance(found, tuple) or len(found) != 2:
        raise errors.ArgumentTypeError(f"{wanted}; it gave {errors.shown(found)}")
    return found[0], GradientsParams.from_grads(found[1], model)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SAM(ClosureOptimizer):
    """Steps of another optimizer by gradients from a bit uphill, towards flat minima. P. Foret et al. (2021).

    At x + rho g / ||g||, where the norm is that of all gradients, a second gradient is taken, and `optimizer` makes its
    step from x with that one. State and rate are those of `optimizer`. Raises ArgumentTypeError for an optimizer that
    takes no gradients, ArgumentError for rho out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> loss = lambda model: (model.weight**2).sum()
    >>> optimizer = ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.1), rho=0.5)
    >>> model, state = optimizer.step(model, ad.value_and_grad(loss), optimizer.init(model))
    >>> round(model.weight.item(), 4)  # the gradient at 1.5 is 3
    0.7
    """

    lr: ClassVar[Any] = property(lambda self: self.optimizer.lr)  # type: ignore[misc]
    optimizer: Optimizer
    rho: float = setting(0.05, not_negative)

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, Optimizer) or isinstance(self.optimizer, ClosureOptimizer):
            raise errors.ArgumentTypeError(
                f"SAM: optimizer is one that takes gradients, such as ad.optim.SGD(), received "
                f"{errors.shown(self.optimizer)}"
            )
        super().__post_init__()

    def init(self, model: Any) -> State:
        """The state of `optimizer` before the first step."""
        return self.optimizer.init(model)

    def step(self, model: M, grads: LossAndGradients, state: State, *, lr: Any = None) -> tuple[M, State]:
        """The next model and the next state; `grads` is a function, as `ClosureOptimizer` says, and called twice."""
        _, found = _evaluated(self, grads, model)
        norm, uphill = found.global_norm(), gradients(found, model)
        scale = self.rho / where(norm == 0, 1.0, norm)
        xs = {path: x for path, x in parameters(model).items() if path in uphill}
        above = with_parameters(model, {path: x + (scale * uphill[path]).astype(x.dtype) for path, x in xs.items()})
        return self.optimizer.step(model, _evaluated(self, grads, above)[1], state, lr=lr)


_ALL = "all"  # the path of the only slots of L-BFGS, which sees all parameters as one vector


@dataclasses.dataclass(frozen=True, kw_only=True)
class LBFGS(ClosureOptimizer):
    """A quasi-Newton method: curvature from the last gradients. D. Liu, J. Nocedal (1989). For whole batches.

    A step is up to `max_iter` iterations, with at most `max_eval` evaluations (`max_iter` * 5 // 4 for None). Each goes
    along -H g, where H is the approximation of the inverse Hessian by the last `history_size` changes s of x and y of g
    (algorithm 7.4 of J. Nocedal, S. Wright, 2006; pairs of s y <= 1e-10 are left out), as far as a line search for the
    strong Wolfe conditions goes that tries `lr` first, or by `lr` for `line_search_fn=None`. It ends early where the
    largest gradient is at most `tolerance_grad`, or x or the loss change by less than `tolerance_change`. Settings are
    PyTorch's, and so are defaults, but for the line search, which is on.

    Parameters without a gradient stay. It chooses by values, so it runs neither under `vmap` nor `jax.jit`. Raises
    ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 2, bias=False).at("weight").set(ad.tensor([[-1.2], [1.0]], dtype=ad.float64))
    >>> def rosenbrock(model):
    ...     (x,), (y,) = model.weight
    ...     return (1 - x) ** 2 + 100 * (y - x**2) ** 2
    >>> optimizer = ad.optim.LBFGS()
    >>> state = optimizer.init(model)
    >>> for _ in range(3):
    ...     model, state = optimizer.step(model, ad.value_and_grad(rosenbrock), state)
    >>> model.weight.round(decimals=4).tolist()
    [[1.0], [1.0]]
    """

    lr: Any = setting(1.0, rate)
    max_iter: int = setting(20, integer(1))
    max_eval: int | None = setting(None, or_none(integer(1)))
    tolerance_grad: float = setting(1e-7, not_negative)
    tolerance_change: float = setting(1e-9, not_negative)
    history_size: int = setting(100, integer(1))
    line_search_fn: str | None = setting("strong_wolfe", one_of("strong_wolfe", None))

    def init(self, model: Any) -> State:
        """The state before the first step: of all parameters as one vector."""
        x = _flat(parameters(model))
        nothing: dict[str, Any] = {"direction": 0 * x, "length": 0.0, "gradient": 0 * x, "scale": 1.0, "iterations": 0}
        return State(0, {_ALL: {**nothing, "steps": reshape(x, (1, -1))[:0], "changes": reshape(x, (1, -1))[:0]}})

    def step(self, model: M, grads: LossAndGradients, state: State, *, lr: Any = None) -> tuple[M, State]:
        """The next model and the next state; `grads` is a function, as `ClosureOptimizer` says."""
        check_state(state)
        slots: dict[str, Any] = dict(state.slots.get(_ALL, {}))
        xs = parameters(model)
        x = _flat(xs)
        if not slots or slots["gradient"].shape != x.shape:
            raise errors.ArgumentError("step: the state is not of this model; init(model) makes a new one")
        now = float(rate_at(self.lr if lr is None else lr, state.step))

        def at(x: Tensor[Any]) -> tuple[np.float64, Tensor[Any]]:
            there = with_parameters(model, _pieces(x, xs))
            loss, found = _evaluated(self, grads, there)
            known = gradients(found, there)
            return np.float64(float(loss)), _flat({path: known.get(path, 0 * piece) for path, piece in xs.items()})

        x, slots = self._iterated(x, slots, now, at)
        return with_parameters(model, _pieces(x, xs)), State(state.step + 1, {_ALL: slots})

    def _iterated(
        self, x: Tensor[Any], slots: dict[str, Any], lr: float, at: Callable[[Any], tuple[np.float64, Tensor[Any]]]
    ) -> tuple[Tensor[Any], dict[str, Any]]:
        """The vector of parameters after a step, and its slots."""
        loss, g = at(x)
        evaluations, most = 1, self.max_iter * 5 // 4 if self.max_eval is None else self.max_eval
        pairs = [(s, y, float(y @ s)) for s, y in zip(slots["steps"], slots["changes"], strict=True)]
        d, length, scale, before = slots["direction"], slots["length"], slots["scale"], slots["gradient"]
        iterations = slots["iterations"]
        for iteration in range(1, self.max_iter + 1):
            if _largest(g) <= self.tolerance_grad:
                break
            if not iterations:
                d, length = -g, min(1.0, 1 / float(total(magnitude(g)))) * lr
            else:
                s, y = length * d, g - before
                product = float(y @ s)
                if product > 1e-10:
                    pairs = [*pairs, (s, y, product)][-self.history_size :]
                    scale = product / float(y @ y)
                d, length = _direction(g, pairs, scale), lr
            iterations, before, last = iterations + 1, g, loss
            slope = np.float64(g @ d)
            if slope > -self.tolerance_change:
                break
            if self.line_search_fn is None:
                x = x + length * d
                if iteration == self.max_iter:  # of the next batch, maybe: no use to know more of this one
                    break
                loss, g = at(x)
                evaluations += 1
            else:
                found, tried = self._searched(
                    x, d, length, Point(np.float64(0), loss, g, slope), at, most - evaluations
                )
                length, loss, g = float(found.length), found.loss, found.gradient
                x, evaluations = x + length * d, evaluations + tried
            if evaluations >= most or _largest(length * d) <= self.tolerance_change:
                break
            if abs(loss - last) < self.tolerance_change:
                break
        kept = {"direction": d, "length": length, "gradient": before, "scale": scale, "iterations": iterations}
        rows = {"steps": [s for s, _, _ in pairs], "changes": [y for _, y, _ in pairs]}
        return x, {**kept, **{name: stack(found) if found else slots[name] for name, found in rows.items()}}

    def _searched(self, x: Any, d: Any, first: float, start: Point, at: Any, most: int) -> tuple[Point, int]:
        def along(length: np.float64) -> Point:
            loss, g = at(x + float(length) * d)
            return Point(length, loss, g, np.float64(g @ d))

        change = self.tolerance_change / _largest(d)
        return strong_wolfe(along, start, first, most=most, change=change, c1=1e-4, c2=0.9)


def _direction(g: Tensor[Any], pairs: list[tuple[Any, Any, float]], scale: float) -> Tensor[Any]:
    """-H g by the two loops of algorithm 7.4. A pair is (s, y), with its product."""
    q, factors = -g, []
    for s, y, product in reversed(pairs):
        factors.append(float(s @ q) / product)
        q = q - factors[-1] * y
    q = scale * q
    for (s, y, product), factor in zip(pairs, reversed(factors), strict=True):
        q = q + (factor - float(y @ q) / product) * s
    return q


def _flat(xs: dict[str, Tensor[Any]]) -> Tensor[Any]:
    if not xs:
        raise errors.ArgumentError("LBFGS: the model has no parameters to train")
    return concat([ravel(x) for x in xs.values()])


def _pieces(x: Tensor[Any], like: dict[str, Tensor[Any]]) -> dict[str, Tensor[Any]]:
    found, start = {}, 0
    for path, piece in like.items():
        found[path] = reshape(x[start : start + piece.size], piece.shape).astype(piece.dtype)
        start += piece.size
    return found


def _largest(x: Tensor[Any]) -> float:
    return float(largest(magnitude(x))) if x.size else 0.0
