"""Functions of tensors that ask for values, such as solvers, in a program that runs later: a step of it runs them then.

Their derivatives are steps as well: each runs the function, and pulls back or pushes forward what that recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.concrete import Staged
from adjoint.decorators.batched import Batched
from adjoint.devices import running_on
from adjoint.dtypes import DType
from adjoint.operands import common_backend, lift_to
from adjoint.primitives import Shape
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.levels import CustomRules, Tensors
from adjoint.transforms.recomputed import Examples, Flat, Recomputed, active_ones

Types = Sequence[tuple[Shape, DType]]


def waits(xs: Sequence[Tensor[Any]]) -> bool:
    """Whether some of these have values once a program runs that calls functions of arrays, and not yet."""
    for x in xs:
        leaf = x.device.leaf
        if isinstance(leaf, Staged) and leaf.hosts and not x.device.is_concrete(x._array):
            return True
    return False


def hosted(name: str, f: Flat, xs: Tensors, results: Types) -> Tensors:
    """f(xs) as a step of the program that `xs` wait for. f has tensors of these alone, and gives `results`."""
    return _Hosted(name, f, active_ones(name, xs), lambda _: results).on(xs)


class _Hosted(Recomputed):
    """`results` gives the types of the results from those of the arguments."""

    differs = True
    # with zeros: what has no cotangent is known when the step has run, and the program is made before
    forward_by, backward_of, push_of = CustomRules.forward_by, CustomRules.backward_of, CustomRules.push_of

    def __init__(self, name: str, f: Flat, active: Sequence[bool], results: Callable[[Types], Types]) -> None:
        super().__init__(name, f, active)
        self.results = results

    def plain(self, xs: Tensors) -> Tensors:
        leaf: Any = common_backend(*xs)
        if not waits(xs):
            return super().plain(xs)
        results = self.results([(x.shape, x.dtype) for x in xs])

        def run(*given: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            base = leaf.inner
            with running_on(base):
                ys = self._run([wrap(base.from_numpy(values, copy=True), base) for values in given])
                arrays = [base.to_numpy(lift_to(y, base)) for y in ys]
            return [np.asarray(y, dtype) for y, (_, dtype) in zip(arrays, results, strict=True)]

        return [wrap(y, leaf) for y in leaf.host(run, [x._array for x in xs], results)]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.on(xs), xs

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        count, active = len(saved), [*self.active, *[True] * len(cotangents)]
        return _Hosted(self.name, self.pulled, active, lambda types: types[:count]).on([*saved, *cotangents])

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        count = len(xs)
        pushed = _Hosted(self.name, self.pushed, self.active * 2, lambda types: [*self.results(types[:count])] * 2)
        out = pushed.on([*xs, *tangents])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """Of all examples at once, as a batch of values has them; each gets results of its own."""

        def of_one(types: Types) -> Types:
            pairs = zip(types, flags, strict=True)
            return self.results([(shape[1:] if flag else shape, dtype) for (shape, dtype), flag in pairs])

        several = [True] * len(of_one([(x.shape, x.dtype) for x in xs]))
        together = Examples(self._run, level, size, flags)
        rules = _Hosted(
            self.name,
            lambda xs: together.as_wide_as(several, xs),
            self.active,
            lambda types: [((size, *shape), dtype) for shape, dtype in of_one(types)],
        )
        return rules.on(xs), several
