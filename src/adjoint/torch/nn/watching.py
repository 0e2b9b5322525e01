"""Backward hooks of modules: their inputs and outputs go through a node each, on which the hooks hang."""

from __future__ import annotations

from typing import Any

from adjoint.torch.calls import off
from adjoint.torch.graph import label, maker, watched_marks
from adjoint.torch.memory import InFunction
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
        out, node = _through(args)
        if node is not None:
            self.has_inputs = True
            marks = watched_marks(node)
            marks.post[id(self)] = lambda pulled, _: self._left(pulled, args)
            self._places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        return out

    def _left(self, pulled: Any, args: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None:  # it did not come through the result, as in a second derivative
            return None
        answer = self._run_hooks(self._widened(pulled, args))
        self.grad_outputs = None
        return answer

    def _widened(self, pulled: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients of tracked tensors among all arguments, None for the others."""
        found = iter(pulled)
        return tuple([next(found) if isinstance(x, Tensor) and x.requires_grad else None for x in args])

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
        return tuple([g for g in grads if g is not None]) if changed else None

    def outputs(self, result: Any) -> Any:
        """The result, from which gradients come."""
        several = isinstance(result, tuple)
        if not several and not isinstance(result, Tensor):
            return result
        out, node = _through(result if several else (result,))
        if node is not None:
            watched_marks(node).pre[id(self)] = self._arrived
        return out if several else out[0]

    def _arrived(self, grads: Any) -> Any:
        found = grads
        for hook in self.before:
            answer = hook(self.module, found)
            if answer is not None:
                found = answer if isinstance(answer, tuple) else (answer,)
        self.grad_outputs = found
        if not self.has_inputs and self.hooks:
            self._run_hooks((None,) * self.given)
            self.grad_outputs = None
        return None if found is grads else found


def _through(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The tensors among values as results of one node that hands gradients on, and the node."""
    tracked = [x for x in values if isinstance(x, Tensor) and x.requires_grad]
    if not tracked or off() or any([is_lifted(x) for x in tracked]):
        return values, None
    arrays = [x._array for x in tracked]
    level = level_of(tracked[0])
    made = level.record("identity", lambda B, g, xs, ys: list(g), arrays, [copied(a.value) for a in arrays])
    node = maker(made[0].node)
    label(node, "BackwardHookFunctionBackward")
    passed = [of(x) for x in made]
    for place, x in enumerate(passed):
        rare = rare_of(x)
        rare.creation, rare.entangled = InFunction("BackwardHookFunction", place, len(passed) > 1), True
    rest = iter(passed)
    return tuple([next(rest) if isinstance(x, Tensor) and x.requires_grad else x for x in values]), node
