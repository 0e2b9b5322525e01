"""`LBFGS`: `ad.optim.LBFGS`, which calls the closure as often as it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

import adjoint as ad
from adjoint.graph.nodes import var_of
from adjoint.optim.base import State
from adjoint.tensor import wrap
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.optim.optimizer import Optimizer
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import Tensor, beside, constant, level_of, next_number, values
from adjoint.torch.writes import store

_ALL = "all"  # where adjoint's rule keeps its slots


class LBFGS(Optimizer):
    """A quasi-Newton method, for whole batches. D. Liu, J. Nocedal (1989).

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x**2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), bool(closure() < 1e-8)
    (13.0, True)
    """

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: Any = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: Any = None,
    ) -> None:  # fmt: skip
        if not lr >= 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        settings = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Any) -> Any:  # type: ignore[override]
        """Up to `max_iter` iterations; the first loss."""
        (group,) = self.param_groups
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        given = group["params"]
        settings = {name: group[name] for name in self.defaults if name != "lr"}
        rule = ad.optim.LBFGS(**settings)
        losses: list[Any] = []

        def evaluated(model: dict[str, Any]) -> tuple[Any, Any]:
            if losses:
                self._give(given, model)
            with grad_mode(True):
                loss = closure()
            losses.append(loss)
            grads = {str(i): _inner(p.grad) for i, p in enumerate(given) if p.grad is not None}
            return float(loss), grads

        model = {str(i): _inner(p) for i, p in enumerate(given)}
        state = self.state[given[0]]
        with grad_mode(False):
            before = self._slots(state, rule, model)
            model, after = rule.step(model, evaluated, before, lr=float(group["lr"]))
            self._give(given, model)
        self._keep(state, after.slots[_ALL], len(losses), float(losses[-1]))
        return losses[0]

    def _give(self, given: list[Any], model: dict[str, Any]) -> None:
        for i, p in enumerate(given):
            store(p, var_of(model[str(i)]._array, None), next_number())

    def _slots(self, state: dict[str, Any], rule: Any, model: Any) -> Any:
        """What adjoint's rule remembers, from PyTorch's names."""
        first = rule.init(model)
        if not state:
            return first
        slots = dict(first.slots[_ALL])
        slots |= {"direction": _inner(state["d"]), "length": float(state["t"]), "iterations": state["n_iter"]}
        slots |= {"gradient": _inner(state["prev_flat_grad"]), "scale": float(state["H_diag"])}
        if state["old_stps"]:
            rows = {"steps": state["old_stps"], "changes": state["old_dirs"]}
            slots |= {name: _rows(found) for name, found in rows.items()}
        return State(1, {_ALL: slots})

    def _keep(self, state: dict[str, Any], slots: dict[str, Any], evaluations: int, loss: float) -> None:
        steps, changes = slots["steps"]._array, slots["changes"]._array
        state["func_evals"] = state.get("func_evals", 0) + evaluations
        state |= {"n_iter": slots["iterations"], "d": constant(slots["direction"]._array), "t": slots["length"]}
        first = constant(slots["direction"]._array)
        state |= {"old_dirs": _row_by_row(changes), "old_stps": _row_by_row(steps)}
        state["ro"] = [(y @ s).reciprocal() for s, y in zip(state["old_stps"], state["old_dirs"], strict=True)]
        state |= {
            "H_diag": beside(first, np.asarray(float(slots["scale"]), slots["direction"].dtype)),
            "prev_flat_grad": constant(slots["gradient"]._array),
            "prev_loss": loss,
        }


def _inner(x: Any) -> Any:
    return wrap(values(x), level_of(x).inner, x._dtype)


def _rows(found: Any) -> Any:
    return _inner(FUNCTIONS["stack"](found))


def _row_by_row(array: Any) -> list[Tensor]:
    return [row.clone() for row in constant(array)]
