"""Functions with rules of their own, and the levels they meet.

Such a function meets the levels of its arguments from the outermost inwards. A level that has nothing to
do with them hands it on; the first one that differentiates uses its rule, and runs it on the level below,
where it is a function like any other; a batch runs rule and function for all examples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, RandomKey, replayed
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.dependence import Dependence, Dependent, whole
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.decorators.taylor import Series, Taylor
from adjoint.devices import running_on
from adjoint.operands import lifted, meet, run
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.calls import zeros_like

Tensors = list[Tensor[Any]]
# levels that ask for derivatives, or for where there are any
_DIFFERENTIATING = (Autodiff, Tangent, Taylor, Dependence)


class Rules:
    """What levels ask of a custom function, on flat lists of tensors."""

    name: str

    def plain(self, xs: Tensors) -> Tensors:
        """The function."""
        raise NotImplementedError

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        """The function, and what `backward` needs of it."""
        raise NotImplementedError

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """The cotangents of the arguments."""
        raise NotImplementedError

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """The function and its tangents."""
        raise NotImplementedError

    def batch(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]] | None:
        """The function for all examples, if there is a rule for that."""
        return None

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        """What `backward` needs, of arguments and results on another backend than `forward` ran on."""
        return self.forward(xs)[1]

    differentiates = True  # it has a derivative of its own
    differs = True  # ... which may be another one than that of what it computes


def apply(rules: Rules, xs: Tensors, device: Backend) -> Tensors:
    """Run a custom function on tensors of one device."""
    if not isinstance(device, Decorator):
        return rules.plain(xs)
    inner = device.inner
    below = [wrap(device.unwrap(x._array), inner) for x in xs]
    varying = [device.varies(x._array) for x in xs]
    if not any(varying) and isinstance(device, (*_DIFFERENTIATING, Batched)):
        with running_on(inner):
            return _lift(apply(rules, below, inner), device)
    if isinstance(device, _DIFFERENTIATING) and not rules.differentiates:
        return rules.plain(xs)
    if isinstance(device, (Taylor, Dependence)) and not rules.differs:
        return rules.plain(xs)
    if isinstance(device, Autodiff):
        return _recorded(rules, xs, below, device)
    if isinstance(device, Tangent):
        moving = [x._array.tangent for x in xs]
        tangents = [
            wrap(zeros_like(inner, y._array) if t is None else t, inner) for t, y in zip(moving, below, strict=True)
        ]
        with running_on(inner):
            ys, moved = rules.push(below, tangents)
        return [
            wrap(Dual(lifted(y, inner), lifted(t, inner) if t.dtype.kind in "fc" else None), device)
            for y, t in zip(ys, moved, strict=True)
        ]
    if isinstance(device, Taylor):
        return _expanded(rules, xs, device)
    if isinstance(device, Dependence):
        return _depending(rules, xs, below, device)
    if isinstance(device, Batched):
        size = next(x._array.value.shape[0] for x in xs if x._array.batched)
        with running_on(inner):
            answer = rules.batch(size, varying, below)
        if answer is not None:
            return [wrap(Batch(lifted(y, inner), flag), device) for y, flag in zip(*answer, strict=True)]
    if not any(isinstance(level, _DIFFERENTIATING) for level in inner.chain()):
        return rules.plain(xs)
    through = _Through(rules, device, varying)
    with running_on(inner):
        ys = apply(through, below, inner)
    return through.up(ys, through.outs, device)


def _lift(ys: Tensors, device: Backend) -> Tensors:
    return [wrap(lifted(y, device), device) for y in ys]


def _recorded(rules: Rules, xs: Tensors, below: Tensors, device: Autodiff[Any]) -> Tensors:
    """One node for the function, whose pullback is its backward rule."""
    inner = device.inner
    keys: list[RandomKey] = []
    with running_on(inner), replayed(keys):
        ys, saved = rules.forward(below)
    for y in ys:
        if y.device is not inner and not any(level is y.device for level in inner.chain()):
            raise errors.TrackedError(
                f"{rules.name}: the function closes over a tensor that {device} tracks, for which its rule has no "
                "derivative; make it an argument (ad.closure_convert finds such tensors)"
            )
    values = [lifted(y, inner) for y in ys]
    shapes = [x.shape for x in below]
    kinds = [x.dtype for x in below]

    def pull(
        on: Any, cotangents: Sequence[Array | None], operands: Sequence[Array], results: Sequence[Array]
    ) -> list[Array | None]:
        given = []
        for c, value in zip(cotangents, results, strict=True):
            array = zeros_like(on, value) if c is None else c
            given.append(wrap(on.conj(array) if on.dtype_of(array).kind == "c" else array, on))
        with running_on(on):
            known = saved
            if on is not inner:  # the level itself, say, which records what the rule does
                with replayed(keys):
                    known = rules.residuals([wrap(x, on) for x in operands], [wrap(y, on) for y in results])
            found = rules.backward(known, given)
        answers: list[Array | None] = []
        for i, (g, shape, dtype) in enumerate(zip(found, shapes, kinds, strict=True)):
            if dtype.kind not in "fc":
                answers.append(None)
                continue
            if g.shape != shape or g.dtype != dtype:
                error = errors.ShapeError if g.shape != shape else errors.DtypeError
                raise error(
                    f"{rules.name}: the cotangent of argument {i} is {g.dtype} of shape {g.shape}, the argument "
                    f"{dtype} of shape {shape}"
                )
            array = lifted(g, on)
            answers.append(on.conj(array) if dtype.kind == "c" else array)
        return answers

    return [wrap(var, device) for var in device.record(rules.name, pull, [x._array for x in xs], values)]


def _expanded(rules: Rules, xs: Tensors, device: Taylor[Any]) -> Tensors:
    """The rule pushes the derivatives in t of the arguments, series of one order less, to those of the results."""
    inner, order = device.inner, device.order
    assert order is not None  # what varies on a level without an order comes from rules, not from users
    lower: Taylor[Any] = Taylor.fresh(inner, order - 1)
    below, derivatives = [], []
    for x in xs:
        terms = [x._array.term(k) for k in range(order + 1)]
        first = zeros_like(inner, terms[0]) if terms[1] is None else terms[1]
        below.append(wrap(Series(terms[0], terms[1:-1], None), lower))
        derivatives.append(wrap(Series(first, terms[2:], None), lower))
    with running_on(lower):
        ys, moved = rules.push(below, derivatives)
    answers = []
    for y, t in zip(ys, moved, strict=True):
        derivative: Series = lifted(t, lower)
        known = [derivative.term(k) for k in range(order)] if t.dtype.kind in "fc" else []
        answers.append(wrap(Series(lifted(y, lower).value, known, None), device))
    return answers


def _depending(rules: Rules, xs: Tensors, below: Tensors, device: Dependence[Any]) -> Tensors:
    """What the tangents that the rule gives depend on, where those of the arguments do on what they do.

    Where a rule applies such a function to tangents, itself perhaps, that stands for everything.
    """
    inner = device.inner
    if device.in_rule:
        with running_on(inner):
            ys = [lifted(y, inner) for y in rules.plain(below)]
        patterns = [x._array.pattern for x in xs if x._array.pattern is not None]
        return [
            wrap(Dependent(y, whole(patterns, math.prod(y.shape)) if inner.dtype_of(y).kind in "fc" else None), device)
            for y in ys
        ]
    lower: Dependence[Any] = Dependence.fresh(inner)
    lower.in_rule = True
    values = [wrap(lower.wrap(y._array), lower) for y in below]
    moving = [wrap(Dependent(y._array, x._array.pattern), lower) for x, y in zip(xs, below, strict=True)]
    with running_on(lower):
        ys, moved = rules.push(values, moving)
    return [
        wrap(Dependent(lifted(y, lower).value, lifted(t, lower).pattern), device)
        for y, t in zip(ys, moved, strict=True)
    ]


class _Through(Rules):
    """A custom function as one on the arrays inside a decorator's: of all examples of a batch, say."""

    def __init__(self, rules: Rules, level: Decorator[Any], flags: list[bool]) -> None:
        self.rules, self.name = rules, rules.name
        self.differentiates, self.differs = rules.differentiates, rules.differs
        self.level, self.flags = level, flags
        self.outs: list[bool] = []

    def up(self, xs: Tensors, flags: list[bool], level: Any) -> Tensors:
        """Tensors of the inner backend as those of the level."""
        if isinstance(level, Batched):
            return [wrap(Batch(lifted(x, level.inner), flag), level) for x, flag in zip(xs, flags, strict=True)]
        return [wrap(level.wrap(lifted(x, level.inner)), level) for x in xs]

    def down(self, ys: Tensors, level: Any) -> tuple[Tensors, list[bool]]:
        arrays = [lifted(y, level) for y in ys]
        return [wrap(level.unwrap(a), level.inner) for a in arrays], [level.varies(a) for a in arrays]

    def fresh(self, xs: Tensors) -> Decorator[Any]:
        """The level over the backend of these tensors; the one that was may have ended."""
        return type(self.level).fresh(meet(*xs), *self.level.configuration()[1:])

    def plain(self, xs: Tensors) -> Tensors:
        level = self.fresh(xs)
        with running_on(level):
            ys, self.outs = self.down(self.rules.plain(self.up(xs, self.flags, level)), level)
        return ys

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        level = self.fresh(xs)
        with running_on(level):
            results, saved = self.rules.forward(self.up(xs, self.flags, level))
            ys, self.outs = self.down(results, level)
        return ys, (level, saved, xs)

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        level, inside, xs = saved
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), None)
        with running_on(level):
            found = self.rules.backward(inside, self.up(cotangents, self.outs, level))
            arrays = [lifted(g, level) for g in found]
        answers = []
        inner = level.inner
        for array, flag in zip(arrays, self.flags, strict=True):
            value, batched = level.unwrap(array), level.varies(array)
            if flag and not batched:
                value = inner.broadcast_to(inner.expand_dims(value, axis=(0,)), shape=(size, *value.shape))
            elif batched and not flag:  # all examples share the argument
                value = inner.sum(value, axis=(0,), keepdims=False)
            answers.append(wrap(value, inner))
        return answers

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        level = self.fresh([*xs, *tangents])
        with running_on(level):
            ys, moved = self.rules.push(self.up(xs, self.flags, level), self.up(tangents, self.flags, level))
            below, self.outs = self.down(ys, level)
            down, flags = self.down(moved, level)
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), 0)
        spread = [
            run("broadcast_to", (run("expand_dims", (t,), axis=(0,)),), shape=(size, *t.shape))
            if mine and not flag
            else t
            for t, flag, mine in zip(down, flags, self.outs, strict=True)
        ]
        return below, spread
