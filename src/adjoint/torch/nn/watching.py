"""Backward hooks of modules: their inputs and outputs go through a node each, on which the hooks hang."""

from __future__ import annotations

from typing import Any

from adjoint.torch.calls import off
from adjoint.torch.graph import label, maker, watched_marks
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.refusals import InFunction
from adjoint.torch.tensor import Tensor, copied, is_lifted, level_of, of, rare_of


class Watch:
    """The backward hooks of one call of a module."""

    before: list[Any]
    hooks: list[Any]
    module: Any

    def __init__(self, module: Any, hooks: list[Any], before: list[Any]) -> None:
        self.module, self.hooks, self.before = module, hooks, before
        self.grad_outputs: Any = None
        self.has_inputs: bool = False
        self.given: int = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, of which gradients come to the hooks."""
        self.given = len(args)
        self.tracked: list[int] = _tracked(args)
        out, node = _through(args)
        if node is not None:
            self.has_inputs = True
            marks = watched_marks(node)
            marks.post[id(self)] = lambda pulled, _: self._left(pulled, args)
        return out

    def _left(self, pulled: Any, args: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None:  # it did not come through the result, as in a second derivative
            return None
        found = iter(pulled)
        grads = [next(found) if i in self.tracked else _nothing(x) for i, x in enumerate(args)]
        answer = self._run_hooks(tuple(grads))
        self.grad_outputs = None
        return None if answer is None else tuple([answer[i] for i in self.tracked])

    def _run_hooks(self, grads: tuple[Any, ...]) -> Any:
        changed = False
        for hook in self.hooks:
            answer = hook(self.module, grads, self.grad_outputs)
            if answer is None:
                continue
            answer = answer if isinstance(answer, tuple) else (answer,)
            if len(answer) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(answer)}, but expected "
                    f"{len(grads)}"
                )
            if not self.has_inputs:
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None"
                )
            grads, changed = answer, True
        return grads if changed else None

    def outputs(self, result: Any) -> Any:
        """The result, from which gradients come."""
        several = isinstance(result, tuple)
        if not several and not isinstance(result, Tensor):
            return result
        results = result if several else (result,)
        tracked = _tracked(results)
        out, node = _through(results)
        if node is not None:
            watched_marks(node).pre[id(self)] = lambda grads: self._arrived(grads, tracked, len(results))
        return out if several else out[0]

    def _arrived(self, grads: Any, tracked: list[int], count: int) -> Any:
        """Hooks see a gradient for each result, None for what has none."""
        wide: list[Any] = [None] * count
        for i, g in zip(tracked, grads, strict=True):
            wide[i] = g
        given = found = tuple(wide)
        for hook in self.before:
            answer = hook(self.module, found)
            if answer is not None:
                found = answer if isinstance(answer, tuple) else (answer,)
        self.grad_outputs = found
        if not self.has_inputs and self.hooks:
            self._run_hooks((None,) * self.given)
            self.grad_outputs = None
        return None if found is given else tuple([found[i] for i in tracked])


def _tracked(values: tuple[Any, ...]) -> list[int]:
    """Which of them are tensors that require gradients."""
    return [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


def _nothing(x: Any) -> Any:
    """What hooks see of an argument without a gradient: zeros of a tensor, None of anything else."""
    return FUNCTIONS["zeros_like"](x.detach()) if isinstance(x, Tensor) else None


def _handed_on(B: Any, g: Any, xs: Any, ys: Any) -> list[Any]:
    """The gradients as they come; zeros for those of results that were not used."""
    zeros: Any = lambda x: B.full(shape=tuple(x.shape), value=0, dtype=B.dtype_of(x))
    return [zeros(x) if c is None else c for c, x in zip(g, xs, strict=True)]


def _through(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The tensors among values as results of one node that hands gradients on, and the node."""
    tracked = [x for x in values if isinstance(x, Tensor) and x.requires_grad]
    if not tracked or off() or any([is_lifted(x) for x in tracked]):
        return values, None
    arrays = [x._array for x in tracked]
    level = level_of(tracked[0])
    made = level.record("identity", _handed_on, arrays, [copied(a.value) for a in arrays])
    node = maker(made[0].node)
    label(node, "BackwardHookFunctionBackward")
    passed = [of(x) for x in made]
    for place, x in enumerate(passed):
        rare = rare_of(x)
        rare.creation, rare.entangled = InFunction("BackwardHookFunction", place, len(passed) > 1), True
    rest = iter(passed)
    return tuple([next(rest) if isinstance(x, Tensor) and x.requires_grad else x for x in values]), node
