"""Functions that run again in the backward pass: of each, reverse mode keeps the arguments and one node.

`checkpoint` makes values again and keeps a node for each primitive. Where there are very many primitives, as in long
loops, the nodes are what takes the memory; running the Python function again makes those anew as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.devices import current_level, default_device, transform_level
from adjoint.dtypes import INEXACT, DType, choosing, chosen_dtype, creating_in, default_dtype
from adjoint.functions.shape import broadcast_to
from adjoint.operands import common_backend, lift_to, lower
from adjoint.random_keys import Replay, replayed, without_calls
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.levels import CustomRules, Tensors, apply, noticing, same_zeros
from adjoint.transforms.taped import Taped, pushed

Flat = Callable[[Tensors], Tensors]


class HiddenTensorError(errors.DeviceError):
    """The function is not known by its arguments: it has met a tensor of a level that is not theirs."""


def recomputed(name: str, f: Flat, xs: Tensors) -> Tensors:
    """f(xs), run again for derivatives. Random numbers are the same again.

    `f` may keep constants of its own, but what is differentiated has to be among `xs`: raises HiddenTensorError
    otherwise, and where a level has strong zeros, which the pass through a second run would not have.
    """
    return Recomputed(name, f, active_ones(name, xs)).on(xs)


def active_ones(name: str, xs: Tensors) -> list[bool]:
    if any([isinstance(level, Autodiff) and level.strong_zero for x in xs for level in x.device.chain()]):
        raise HiddenTensorError(f"{name}: {common_backend(*xs)} has strong zeros")
    return [x.device.tracked(x._array) for x in xs]


def apply_on_level(rules: CustomRules, xs: Tensors) -> Tensors:
    """The function on the level where its arguments meet, or on the active one above it.

    Results that are constants up there are where the arguments meet, as those of primitives.
    """
    device, level = common_backend(*xs), current_level()
    if level is None or level is device or not any(below is device for below in level.chain()):
        return apply(rules, all_on(device, xs), device)
    ys = []
    for y in apply(rules, all_on(level, xs), level):
        found = lower(y._array, y._device, device)
        ys.append(y if found is None or y.__class__ is not Tensor else wrap(*found))
    return ys


class Recomputed(CustomRules):
    """`active` says which arguments derivatives may be asked for: the others stay constants when it runs again."""

    active: list[bool]
    chosen: DType | None
    default: DType
    f: Flat
    name: str

    differs = False

    def __init__(self, name: str, f: Flat, active: Sequence[bool]) -> None:
        self.name, self.f, self.active = name, f, list(active)
        self.replay: Replay = Replay()
        self.chosen, self.default = chosen_dtype(), default_dtype()

    def on(self, xs: Tensors) -> Tensors:
        """The function, with this rule for its derivatives."""
        return apply_on_level(self, xs) if xs else self.plain(xs)

    def plain(self, xs: Tensors) -> Tensors:
        try:
            ys = self._run(xs)
        except errors.DeviceError as error:
            raise HiddenTensorError(*error.args) from error
        device = common_backend(*xs) if xs else default_device()
        for y in ys:
            if not any(level is y.device for level in device.chain()):
                raise HiddenTensorError(f"{self.name}: a result is on {y.device}, the arguments on {device}")
            if y.device.tracked(y._array) and not _following([y]) <= _following(xs):
                raise HiddenTensorError(f"{self.name}: a level follows a result, and none of the arguments")
        return ys

    def _run(self, xs: Tensors) -> Tensors:
        with replayed(self.replay), choosing(self.chosen), creating_in(self.default):
            return self.f(xs)

    def like(self, f: Flat, active: Sequence[bool], deeper: int = 0) -> Recomputed:
        """Another function that is recomputed in the same way; `deeper` counts the derivatives that it is."""
        return Recomputed(self.name, f, active)

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.forward_by(xs, self.active)

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Tensors]:
        with noticing() as noticed:
            ys = self.plain(xs)
        self.noticed |= noticed.found
        if noticed.found and any([x.device.tracked(x._array) for x in xs]):
            with without_calls(made=True):
                ys = self.followed(xs, active)[0]
        return ys, xs

    def followed(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, list[bool]]:
        """The results where reverse mode follows some arguments, and which of them it follows."""
        places = [i for i, x in enumerate(xs) if active[i] and x.dtype.kind in INEXACT]
        if not places:
            ys = self._run(xs)
            return ys, [False] * len(ys)
        taped = Taped(self.name, self._of(xs, places), [xs[i] for i in places])
        return taped.values, taped.follows

    def residuals(self, xs: Tensors, ys: Tensors) -> Tensors:
        return xs

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        active = [*self.active, *[True] * len(cotangents)]
        return self.like(self.pulled, active, 1).on([*saved, *cotangents])

    def backward_of(
        self, saved: Tensors, cotangents: Sequence[Tensor[Any] | None], results: Tensors
    ) -> Sequence[Tensor[Any] | None]:
        given = [i for i, c in enumerate(cotangents) if c is not None]
        active, reached = [*self.active, *[True] * len(given)], set[int]()
        f = functools.partial(self.pulled_from, given, reached)
        found = self.like(f, active, 1).on([*saved, *[c for c in cotangents if c is not None]])
        return [x if i in reached else None for i, x in enumerate(found)]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        out = self.like(self.pushed, self.active * 2, 1).on([*xs, *tangents])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        given = [i for i, t in enumerate(tangents) if t is not None]
        active, moved = [*self.active, *[self.active[i] for i in given]], set[int]()
        f = functools.partial(self.pushed_from, given, moved)
        out = self.like(f, active, 1).on([*xs, *[t for t in tangents if t is not None]])
        half = len(out) // 2
        return out[:half], [t if i in moved else None for i, t in enumerate(out[half:])]

    def batch(
        self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors
    ) -> tuple[Tensors, list[bool]] | None:
        """The function of all examples is recomputed as one: it knows what its parts share, and its derivatives do."""
        if not any([below.differentiates for below in level.inner.chain()]):
            return None
        together = Examples(self._run, level, size, flags)
        ys = self.like(together.alike, self.active).on(xs)
        return ys, together.found[: len(ys)]

    def pulled(self, both: Tensors) -> Tensors:
        """The cotangents of the arguments, from those and the cotangents of the results."""
        return self.pulled_from(None, set(), both)

    def pulled_from(self, given: Sequence[int] | None, reached: set[int], both: Tensors) -> Tensors:
        """`pulled` from the cotangents of some results, None for all; what has any itself is added to `reached`."""
        count = len(self.active)
        xs, cotangents = both[:count], both[count:]
        active, f = self._of_active(xs)
        if not active:
            return list(map(same_zeros, xs))
        taped = Taped(self.name, f, active)
        known = dict(enumerate(cotangents) if given is None else zip(given, cotangents, strict=True))
        found = iter(taped.pull([known.get(i) for i in range(len(taped.roots))]))
        answers = [next(found) if self._moves(i, x) else None for i, x in enumerate(xs)]
        reached.update(i for i, g in enumerate(answers) if g is not None)
        return [same_zeros(x) if g is None else g for g, x in zip(answers, xs, strict=True)]

    def pushed(self, both: Tensors) -> Tensors:
        """The results and their tangents, from the arguments and theirs."""
        return self.pushed_from(range(len(self.active)), set(), both)

    def pushed_from(self, given: Sequence[int], moved: set[int], both: Tensors) -> Tensors:
        """`pushed` from the tangents of some arguments; the results that have any themselves are added to `moved`."""
        xs, tangents = both[: len(self.active)], both[len(self.active) :]
        there = {i: t for i, t in zip(given, tangents, strict=True) if self._moves(i, t)}
        ys, found = pushed(lambda *xs: self._run(all_on(common_backend(*xs), list(xs))), xs, there)
        moved.update(found)
        return [*ys, *[found[i] if i in found else same_zeros(y) for i, y in enumerate(ys)]]

    def _moves(self, i: int, x: Tensor[Any]) -> bool:
        return self.active[i] and x.dtype.kind in INEXACT

    def _of_active(self, xs: Tensors) -> tuple[Tensors, Callable[..., Tensors]]:
        """The arguments that derivatives are by, and the function of these."""
        places = [i for i, x in enumerate(xs) if self._moves(i, x)]
        return [xs[i] for i in places], self._of(xs, places)

    def _of(self, xs: Tensors, places: Sequence[int]) -> Callable[..., Tensors]:
        def f(*active: Tensor[Any]) -> Tensors:
            given = list(xs)
            for i, x in zip(places, active, strict=True):
                given[i] = x
            return self._run(all_on(common_backend(*given), given))

        return f


def _following(xs: Tensors) -> set[Backend]:
    """The levels that differentiate some of these."""
    found: set[Backend] = set()
    for x in xs:
        array, level = x._array, x._device
        while isinstance(level, Decorator):
            if level.differentiates and level.is_active(array):
                found.add(level if level.aliases is None else level.aliases)
            array, level = level.unwrap(array), level.inner
    return found


class Examples:
    """A function for all examples of a level at once; `flags` say which arguments have an axis of them in front."""

    f: Flat
    flags: list[bool]
    level: Batched[Any]
    size: int

    def __init__(self, f: Flat, level: Batched[Any], size: int, flags: Sequence[bool]) -> None:
        self.f, self.level, self.size, self.flags = f, level, size, list(flags)
        self.found: list[bool] = []

    def __call__(self, xs: Tensors) -> tuple[Tensors, list[bool]]:
        """The results, and which of them have that axis."""
        base: Any = common_backend(*xs)
        level: Batched[Any] = Batched.fresh(base, *self.level.configuration()[1:])
        level.examples_of = self.level if self.level.is_fresh else None  # others are of any examples
        with transform_level(level):
            given = [wrap(Batch(lift_to(x, base), flag), level) for x, flag in zip(xs, self.flags, strict=True)]
            found = [lift_to(y, level) for y in self.f(given)]
        return [wrap(y.value, base) for y in found], [y.batched for y in found]

    def alike(self, xs: Tensors) -> Tensors:
        """The results, of which those have the axis, `found`, that had it the first time."""
        ys, kinds = self(xs)
        self.found = self.found or kinds
        return self._wide(xs, ys, kinds, self.found)

    def as_wide_as(self, several: Sequence[bool], xs: Tensors) -> Tensors:
        """The results, all those with the axis that are to have it."""
        return self._wide(xs, *self(xs), several)

    def _wide(self, xs: Tensors, ys: Tensors, kinds: Sequence[bool], several: Sequence[bool]) -> Tensors:
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), self.size)
        marks = zip(ys, kinds, several, strict=True)
        return [each(y, size) if wide and not kind else y for y, kind, wide in marks]


def each(x: Tensor[Any], size: int) -> Tensor[Any]:
    """The same value for so many examples."""
    return broadcast_to(x, (size, *x.shape))


def all_on(device: Backend, xs: Tensors) -> Tensors:
    return [wrap(lift_to(x, device), device) for x in xs]
