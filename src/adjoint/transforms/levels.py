"""Functions with rules of their own, and the levels they meet.

Such a function meets the levels of its arguments from the outermost inwards, each by its method `apply_custom`. A level
that has nothing to do with them hands it on; the first one that differentiates uses its rule, and runs it on the level
below, where it is a function like any other; a batch runs rule and function for all examples.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import running_on
from adjoint.dtypes import INEXACT, choosing, chosen_dtype, default_dtype
from adjoint.functions.creation import full
from adjoint.operands import common_backend, lift_to
from adjoint.primitives import DType, Shape
from adjoint.random_keys import Replay, replayed, without_calls
from adjoint.scopes import Block, Variable, innermost
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import zeros_like

Tensors = list[Tensor[Any]]
Pullback = Callable[[Any, Sequence[Array | None], Sequence[Array], Sequence[Array]], list[Array | None]]


class Noticed:
    """Whether a function was called whose rule levels further out do not see: they follow what it computes.

    There one level, which has the rule alone, gives other second derivatives than nested levels.
    """

    __slots__ = ("found", "outer")

    def __init__(self, outer: Noticed | None) -> None:
        self.found, self.outer = False, outer


_noticing: Variable[Noticed] = contextvars.ContextVar("adjoint_noticing", default=None)


def noticing() -> Block[Noticed]:
    """In this block such calls are noticed."""
    outer = innermost(_noticing)
    return Block(_noticing, Noticed(None if outer is None else outer.value))


def notice() -> None:
    """There was such a call."""
    block = innermost(_noticing)
    noticed = None if block is None else block.value
    while noticed is not None:
        noticed.found, noticed = True, noticed.outer


class CustomRules:
    """What levels ask of a custom function, on flat lists of tensors, and what they make tensors with.

    Levels are below tensors: they see them as what has an `_array`.
    """

    name: str
    differentiates = True  # it has a derivative of its own
    differs = True  # ... which may be another one than that of what it computes

    noticed = False  # it is no function with a rule of its own, but may call one that is noticed

    # --- what the function is ---

    def plain(self, xs: Tensors) -> Tensors:
        """The function."""
        raise NotImplementedError

    def in_the_open(self, xs: Tensors) -> Tensors:
        """The function where a level follows all that it does."""
        return self.plain(xs)

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        """The function, and what `backward` needs of it."""
        raise NotImplementedError

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        """`forward` where `backward` has to give the cotangents of some arguments alone."""
        return self.forward(xs)

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """The cotangents of the arguments."""
        raise NotImplementedError

    def backward_of(
        self, saved: Any, cotangents: Sequence[Tensor[Any] | None], results: Tensors
    ) -> Sequence[Tensor[Any] | None]:
        """`backward` where some results have no cotangents. A rule that counts zeros for those meets 0 * inf."""
        return self.backward(
            saved, [same_zeros(y) if c is None else c for c, y in zip(cotangents, results, strict=True)]
        )

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """The function and its tangents."""
        raise NotImplementedError

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        """`push` where some arguments have no tangents."""
        return self.push(xs, [same_zeros(x) if t is None else t for t, x in zip(tangents, xs, strict=True)])

    def batch(self, level: Any, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]] | None:
        """The function for all examples of the level, if there is a rule for that."""
        return None

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        """What `backward` needs, of arguments and results on another backend than `forward` ran on."""
        return self.forward(xs)[1]

    # --- what a level needs to apply it ---

    tensor = staticmethod(wrap)
    lift_to = staticmethod(lift_to)
    running_on = staticmethod(running_on)

    def below(self, xs: Tensors, device: Decorator[Any]) -> Tensors:
        """The arguments on the inner backend, without what the level knows of them."""
        return [wrap(device.unwrap(x._array), device.inner) for x in xs]

    def handed_on(self, xs: Tensors, device: Decorator[Any]) -> Tensors:
        """The function on the inner backend, for a level that all of its arguments are constants of."""
        with running_on(device.inner):
            ys = apply(self, self.below(xs, device), device.inner)
        return [wrap(lift_to(y, device), device) for y in ys]

    def through(self, xs: Tensors, device: Decorator[Any]) -> Tensors:
        """The function and its rules with the level inside of them, for the levels that are further in."""
        through = _Through(self, device, [device.is_active(x._array) for x in xs])
        with running_on(device.inner):
            ys = apply(through, self.below(xs, device), device.inner)
        return through.up(ys, through.outs, device)

    def pullback(self, below: Tensors, device: Decorator[Any], active: Sequence[bool]) -> tuple[list[Array], Pullback]:
        """The results on the inner backend, and the backward rule as the pullback of a node of the level."""
        inner = device.inner
        replay = Replay()
        with running_on(inner), replayed(replay):
            ys, saved = self.forward_by(below, active)
        for y in ys:
            if y.device is not inner and not any(level is y.device for level in inner.chain()):
                raise errors.TrackedError(
                    f"{self.name}: the function closes over a tensor that {device} tracks, for which its rule has no "
                    "derivative; make it an argument (ad.closure_convert finds such tensors)"
                )
        specs = [(x.shape, x.dtype) for x in below]
        return [lift_to(y, inner) for y in ys], self.pull_of(saved, inner, specs, replay)

    def pull_of(self, saved: Any, inner: Backend, specs: Sequence[tuple[Shape, DType]], replay: Replay) -> Pullback:
        """The backward rule as the pullback of a node, of what was saved on the inner backend."""
        chosen, default = chosen_dtype(), default_dtype()

        def pull(
            on: Any, cotangents: Sequence[Array | None], operands: Sequence[Array], results: Sequence[Array]
        ) -> list[Array | None]:
            given = [
                None if c is None else wrap(on.conj(c) if on.dtype_of(c).kind == "c" else c, on) for c in cotangents
            ]
            ys = [wrap(y, on) for y in results]
            if self.noticed and isinstance(on, Autodiff) and on.inner is inner:
                with running_on(on, default), choosing(chosen), replayed(replay):
                    return self._recorded_on(on, cotangents, operands)
            with running_on(on, default), choosing(chosen):
                known = saved
                if on is not inner:  # what was saved is of the levels that the function ran on
                    with replayed(replay):
                        known = self.residuals([wrap(x, on) for x in operands], ys)
                found = self.backward_of(known, given, ys)
            answers: list[Array | None] = []
            for i, (g, (shape, dtype)) in enumerate(zip(found, specs, strict=True)):
                if g is None or dtype.kind not in INEXACT:
                    answers.append(None)
                    continue
                if g.shape != shape or g.dtype != dtype:
                    error = errors.ShapeError if g.shape != shape else errors.DtypeError
                    raise error(
                        f"{self.name}: the cotangent of argument {i} is {g.dtype} of shape {g.shape}, the argument "
                        f"{dtype} of shape {shape}"
                    )
                array = lift_to(g, on)
                answers.append(on.conj(array) if dtype.kind == "c" else array)
            return answers

        return pull

    def _recorded_on(
        self, level: Autodiff[Any], cotangents: Sequence[Array | None], operands: Sequence[Any]
    ) -> list[Array | None]:
        """The pullback as the level records it where it follows the function itself, which runs once more."""

        def end(on: Any, cotangents: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
            return list(cotangents)

        def conjugate(c: Any) -> Any:  # what stands in a graph is the conjugate of what a pass takes and gives
            return level.conj(c) if level.dtype_of(c).kind == "c" else c

        xs = [x if x.node is None else level.record(self.name, end, [x], [x.value])[0] for x in operands]
        with without_calls(made=True):
            ys = [lift_to(y, level) for y in self.in_the_open([wrap(x, level) for x in xs])]
        pairs = zip(ys, cotangents, strict=True)
        roots = [(y, conjugate(c)) for y, c in pairs if c is not None and y.node is not None]
        nodes = [x.node for x in xs if x.node is not None]
        found = level.pull(roots, retain_graph=True, wrt=nodes, on=level) if roots else {}
        return [conjugate(found[x.node.key][1]) if x.node is not None and x.node.key in found else None for x in xs]


def same_zeros(x: Tensor[Any]) -> Tensor[Any]:
    return wrap(zeros_like(x.device, x._array), x.device)


def apply(rules: CustomRules, xs: Tensors, device: Backend) -> Tensors:
    """Run a custom function on tensors of one device."""
    return device.apply_custom(rules, xs)


class _Through(CustomRules):
    """A custom function as one on the arrays inside a decorator's: of all examples of a batch, say."""

    def __init__(self, rules: CustomRules, level: Decorator[Any], flags: list[bool]) -> None:
        self.rules, self.name = rules, rules.name
        self.differentiates, self.differs = rules.differentiates, rules.differs
        self.level, self.flags = level, flags
        self.outs: list[bool] = []

    def up(self, xs: Tensors, flags: list[bool], level: Any) -> Tensors:
        """Tensors of the inner backend as those of the level; flags say which of them vary there."""
        return [wrap(level.rewrap(lift_to(x, level.inner), flag), level) for x, flag in zip(xs, flags, strict=True)]

    def down(self, ys: Tensors, level: Any) -> tuple[Tensors, list[bool]]:
        arrays = [lift_to(y, level) for y in ys]
        return [wrap(level.unwrap(a), level.inner) for a in arrays], [level.is_active(a) for a in arrays]

    def fresh(self, xs: Tensors) -> Decorator[Any]:
        """The level over the backend of these tensors; the one that was may have ended."""
        return type(self.level).fresh(common_backend(*xs), *self.level.configuration()[1:])

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
        return ys, (level, saved, xs, ys)

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        level = self.fresh(xs)
        with running_on(level):
            saved = self.rules.residuals(self.up(xs, self.flags, level), self.up(ys, self.outs, level))
        return level, saved, xs, ys

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """The cotangents of what examples share are sums over them, those of results as well as of arguments.

        The rule is handed those of one example: of a shared result an equal part, as all of it would be counted by
        each. Parts are safer than all for one example and zeros for the others, where a slope may be infinite, and
        results that vary to the rule alone have right cotangents at least where these are equal. The rule runs as
        often as before, and what it does with shared values is done once.
        """
        level, inside, xs, ys = saved
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), 1)
        shared = [not out and c.dtype.kind in INEXACT for out, c in zip(self.outs, cotangents, strict=True)]
        if not size and any(shared):
            return self.of_none(xs, ys, cotangents)
        given = [c / size if part and size > 1 else c for part, c in zip(shared, cotangents, strict=True)]
        with running_on(level):
            found = self.rules.backward(inside, self.up(given, self.outs, level))
            arrays = [lift_to(g, level) for g in found]
        return [wrap(a, level.inner) for a in level.cotangents(arrays, size, self.flags)]

    def of_none(self, xs: Tensors, ys: Tensors, cotangents: Tensors) -> Tensors:
        """`backward` where there are no examples, but results that they would share: as of one example, of ones."""

        def one(values: Tensors, flags: list[bool], fill: int) -> Tensors:
            return [
                full((1, *x.shape[1:]), fill, dtype=x.dtype, device=x.device) if flag else x
                for x, flag in zip(values, flags, strict=True)
            ]

        saved = self.residuals(one(xs, self.flags, 1), one(ys, self.outs, 1))
        found = self.backward(saved, one(cotangents, self.outs, 0))
        return [g[:0] if flag else g for g, flag in zip(found, self.flags, strict=True)]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        level = self.fresh([*xs, *tangents])
        with running_on(level):
            ys, moved = self.rules.push(self.up(xs, self.flags, level), self.up(tangents, self.flags, level))
            values, moved_on = level.alike([lift_to(y, level) for y in ys], [lift_to(t, level) for t in moved])
            self.outs = [level.is_active(a) for a in values]
        down = [[wrap(level.unwrap(a), level.inner) for a in arrays] for arrays in (values, moved_on)]
        return down[0], down[1]
