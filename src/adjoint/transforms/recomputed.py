"""Functions that run again in the walk back: of each, reverse mode keeps the arguments and one node.

`checkpoint` makes values again and keeps a node for each primitive. Where there are very many primitives, as in long
loops, the nodes are what takes the memory; running the Python function again makes those anew as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Backend, Leaf, RandomKey, replayed
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.devices import active, active_level, default_device
from adjoint.functions.elementwise import where
from adjoint.functions.manipulation import broadcast_to
from adjoint.operands import lifted, meet
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.calls import zeros_like
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import Rules, Tensors, apply
from adjoint.transforms.reverse import vjp

Flat = Callable[[Tensors], Tensors]


class Hidden(errors.DeviceError):
    """The function is not known by its arguments: it has met a tensor of a level that is not theirs."""


def recomputed(name: str, f: Flat, xs: Tensors) -> Tensors:
    """f(xs), run again for derivatives. Random numbers are the same again.

    `f` may keep constants of its own, but what is differentiated has to be among `xs`: raises Hidden otherwise, and
    where a level has strong zeros, which the walk through a second run would not have.
    """
    return _Recomputed(name, f, _moving(name, xs)).on(xs)


def chosen(name: str, index: Tensor[Any], branches: Sequence[Flat], xs: Tensors) -> Tensors:
    """`branches[index](xs)`, where the leaf is to branch. Raises what `recomputed` does."""
    return _Chosen(name, branches, _moving(name, xs)).on(index, xs)


def looped(name: str, goes: Flat, step: Flat, xs: Tensors, closed: Tensors) -> Tensors:
    """`xs` taken further by step([*xs, *closed]) as long as [goes] of the same holds, where the leaf is to loop.

    Derivatives go forward. Raises Hidden as `recomputed` does, and TrackedError for steps that draw random numbers.
    """
    return _met(_Looped(name, goes, step, len(xs)), [*xs, *closed])


def _moving(name: str, xs: Tensors) -> list[bool]:
    if any([isinstance(level, Autodiff) and level.strong_zero for x in xs for level in x.device.chain()]):
        raise Hidden(f"{name}: {meet(*xs)} has strong zeros")
    return [x.device.tracked(x._array) for x in xs]


def _met(rules: Rules, xs: Tensors) -> Tensors:
    """The function on the level where its arguments meet, or on the active one above it."""
    device, level = meet(*xs), active_level()
    if level is not None and any(below is device for below in level.chain()):
        device = level
    return apply(rules, _all_on(device, xs), device)


class _Recomputed(Rules):
    """`moving` says which arguments derivatives may be asked for: the others stay constants when it runs again."""

    differs = False

    def __init__(self, name: str, f: Flat, moving: Sequence[bool]) -> None:
        self.name, self.f, self.moving = name, f, list(moving)
        self.keys: list[RandomKey] = []

    def on(self, xs: Tensors) -> Tensors:
        """The function, with this rule for its derivatives."""
        return _met(self, xs) if xs else self.plain(xs)

    def plain(self, xs: Tensors) -> Tensors:
        try:
            ys = self._run(xs)
        except errors.DeviceError as error:
            raise Hidden(*error.args) from error
        device = meet(*xs) if xs else default_device()
        for y in ys:
            if not any(level is y.device for level in device.chain()):
                raise Hidden(f"{self.name}: a result is on {y.device}, the arguments on {device}")
        return ys

    def _run(self, xs: Tensors) -> Tensors:
        with replayed(self.keys):
            return self.f(xs)

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.plain(xs), xs

    def residuals(self, xs: Tensors, ys: Tensors) -> Tensors:
        return xs

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        moving = [*self.moving, *[True] * len(cotangents)]
        return _Recomputed(self.name, self.pulled, moving).on([*saved, *cotangents])

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        out = _Recomputed(self.name, self.pushed, self.moving * 2).on([*xs, *tangents])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def pulled(self, both: Tensors) -> Tensors:
        """The cotangents of the arguments, from those and the cotangents of the results."""
        count = len(self.moving)
        moving, f = self._of_moving(both[:count])
        found = iter(vjp(f, *moving)[1](both[count:]) if moving else ())
        return [next(found) if self._moves(i, x) else _zeros(x) for i, x in enumerate(both[:count])]

    def pushed(self, both: Tensors) -> Tensors:
        """The results and their tangents, from the arguments and theirs."""
        count = len(self.moving)
        moving, f = self._of_moving(both[:count])
        ys, moved = jvp(f, moving, [t for i, t in enumerate(both[count:]) if self._moves(i, t)])
        return [*ys, *moved]

    def _moves(self, i: int, x: Tensor[Any]) -> bool:
        return self.moving[i] and x.dtype.kind in "fc"

    def _of_moving(self, xs: Tensors) -> tuple[Tensors, Callable[..., Tensors]]:
        """The arguments that derivatives are by, and the function of these."""
        places = [i for i, x in enumerate(xs) if self._moves(i, x)]

        def f(*moving: Tensor[Any]) -> Tensors:
            given = list(xs)
            for i, x in zip(places, moving, strict=True):
                given[i] = x
            return self._run(_all_on(meet(*given), given))

        return [xs[i] for i in places], f


class _Chosen(Rules):
    """One of several functions, by the first argument. Derivatives are those of each, chosen by it in turn."""

    def __init__(self, name: str, branches: Sequence[Flat], moving: Sequence[bool]) -> None:
        self.name, self.moving = name, list(moving)
        self.parts = [_Recomputed(name, f, moving) for f in branches]

    def on(self, index: Tensor[Any], xs: Tensors) -> Tensors:
        return _met(self, [index, *xs])

    def plain(self, xs: Tensors) -> Tensors:
        index, *rest = xs
        leaf = meet(*xs)
        if not isinstance(leaf, Leaf):
            raise Hidden(f"{self.name}: {leaf} looks at what is computed")
        runs = [_on_arrays(part, leaf) for part in self.parts]
        return [wrap(y, leaf) for y in leaf.branch(index._array, runs, [x._array for x in rest])]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.on(xs[0], xs[1:]), xs

    def residuals(self, xs: Tensors, ys: Tensors) -> Tensors:
        return xs

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        index, *xs = saved
        pulled = [part.pulled for part in self.parts]
        moving = [*self.moving, *[True] * len(cotangents)]
        return [index, *_Chosen(self.name, pulled, moving).on(index, [*xs, *cotangents])]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        pushed = [part.pushed for part in self.parts]
        out = _Chosen(self.name, pushed, self.moving * 2).on(xs[0], [*xs[1:], *tangents[1:]])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def batch(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """A result is of each example where that of some branch is."""
        runs = [_Examples(part.plain, size, flags[1:]) for part in self.parts]
        several = [any(kinds) for kinds in zip(*[run(xs[1:])[1] for run in runs], strict=True)]
        parts = [lambda xs, run=run: run.as_wide_as(several, xs) for run in runs]
        return _Chosen(self.name, parts, self.moving).on(xs[0], xs[1:]), several


class _Looped(Rules):
    """A loop whose first `count` arguments are carried along, and the others stay."""

    def __init__(self, name: str, goes: Flat, step: Flat, count: int) -> None:
        self.name, self.count = name, count
        self.goes, self.step = _Recomputed(name, goes, ()), _Recomputed(name, step, ())

    def plain(self, xs: Tensors) -> Tensors:
        leaf, closed = meet(*xs), [x._array for x in xs[self.count :]]
        if not isinstance(leaf, Leaf):
            raise Hidden(f"{self.name}: {leaf} looks at what is computed")
        goes, step = _on_arrays(self.goes, leaf), _on_arrays(self.step, leaf)
        found = leaf.loop(
            lambda *carry: goes(*carry, *closed)[0],
            lambda *carry: step(*carry, *closed),
            [x._array for x in xs[: self.count]],
        )
        if self.goes.keys or self.step.keys:
            raise errors.TrackedError(
                f"{self.name}: JAX traces how long it goes on, and a step that draws random numbers would draw the "
                "same ones each time; draw them before, or take a fixed number of steps"
            )
        return [wrap(y, leaf) for y in found]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """Of the loop that carries the tangents along."""
        n, rest = self.count, len(xs) - self.count

        def apart(both: Tensors) -> tuple[Tensors, Tensors]:
            carry, moved, closed, beside = both[:n], both[n : 2 * n], both[2 * n : 2 * n + rest], both[2 * n + rest :]
            return [*carry, *closed], [*moved, *beside]

        def step(both: Tensors) -> Tensors:
            xs, tangents = apart(both)
            places = [i for i, x in enumerate(xs) if x.dtype.kind in "fc"]

            def f(*moving: Tensor[Any]) -> Tensors:
                given = list(xs)
                for i, x in zip(places, moving, strict=True):
                    given[i] = x
                return self.step.f(_all_on(meet(*given), given))

            ys, moved = jvp(f, [xs[i] for i in places], [tangents[i] for i in places])
            return [*ys, *moved]

        both = [*xs[:n], *tangents[:n], *xs[n:], *tangents[n:]]
        out = _met(_Looped(self.name, lambda both: self.goes.f(apart(both)[0]), step, 2 * n), both)
        return out[:n], out[n:]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        raise errors.ForwardOnlyError(
            f"{self.name}: reverse mode tracks what the loop of a compiled function uses; detach() that, or go forward"
        )

    def batch(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """Until all examples have ended; those that have keep their carry. What is the same for all stays so."""
        n, several = self.count, flags[: self.count]
        while True:  # until the carry is one for all, or of each, before a step as after it
            wide = [_each(x, size) if new and not old else x for x, old, new in zip(xs, flags, several, strict=False)]
            kinds = [*several, *flags[n:]]
            differ, *found = _Examples(self._both, size, kinds)([*wide, *xs[n:]])[1]
            after = [differ or old or new for old, new in zip(several, found, strict=True)]
            if after == several:
                break
            several = after
        goes = _Examples(self.goes.plain, size, kinds)
        step = _Examples(self._kept if differ else self.step.plain, size, kinds)
        loop = _Looped(
            self.name,
            lambda xs: [goes(xs)[0][0].any()],
            lambda xs: step.as_wide_as(several, xs),
            n,
        )
        return _met(loop, [*wide, *xs[n:]]), several

    def _both(self, xs: Tensors) -> Tensors:
        return [*self.goes.plain(xs), *self.step.plain(xs)]

    def _kept(self, xs: Tensors) -> Tensors:
        (go,) = self.goes.plain(xs)
        return [where(go, new, old) for new, old in zip(self.step.plain(xs), xs, strict=False)]


class _Examples:
    """A function for all examples at once; `flags` say which arguments have an axis of them in front."""

    def __init__(self, f: Flat, size: int, flags: Sequence[bool]) -> None:
        self.f, self.size, self.flags = f, size, list(flags)

    def __call__(self, xs: Tensors) -> tuple[Tensors, list[bool]]:
        """The results, and which of them have that axis."""
        base: Any = meet(*xs)
        level: Batched[Any] = Batched.fresh(base, None, "error")
        with active(level):
            given = [wrap(Batch(lifted(x, base), flag), level) for x, flag in zip(xs, self.flags, strict=True)]
            found = [lifted(y, level) for y in self.f(given)]
        return [wrap(y.value, base) for y in found], [y.batched for y in found]

    def as_wide_as(self, several: Sequence[bool], xs: Tensors) -> Tensors:
        """The results, all those with the axis that are to have it."""
        ys, kinds = self(xs)
        return [
            _each(y, self.size) if wide and not kind else y for y, kind, wide in zip(ys, kinds, several, strict=True)
        ]


def _each(x: Tensor[Any], size: int) -> Tensor[Any]:
    return broadcast_to(x, (size, *x.shape))


def _on_arrays(part: _Recomputed, leaf: Leaf) -> Callable[..., list[Any]]:
    return lambda *arrays: [lifted(y, leaf) for y in part.plain([wrap(a, leaf) for a in arrays])]


def _all_on(device: Backend, xs: Tensors) -> Tensors:
    return [wrap(lifted(x, device), device) for x in xs]


def _zeros(x: Tensor[Any]) -> Tensor[Any]:
    return wrap(zeros_like(x.device, x._array), x.device)
