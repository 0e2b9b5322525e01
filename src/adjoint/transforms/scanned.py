"""Loops over slices in a program that runs later: of a staged leaf, whose own they become.

The loop has rules. Its derivative forward carries tangents along. Backward it is a loop the other way round, which
runs each step again from the carry that the step began with: of a loop of n steps n carries are kept. A loop for all
examples of a batch carries what is of each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from adjoint import errors
from adjoint.backend import Backend, LeafBackend
from adjoint.concrete import DrawsError, Staged
from adjoint.decorators.batched import Batched
from adjoint.dtypes import INEXACT, int64
from adjoint.functions.ranges import arange
from adjoint.functions.shape import concat, moveaxis, stack
from adjoint.operands import common_backend
from adjoint.random_keys import without_calls
from adjoint.tensor import Tensor, same, wrap
from adjoint.transforms.arguments import Function, check_pair
from adjoint.transforms.carries import Carry, TreeType, assignable
from adjoint.transforms.closures import opened
from adjoint.transforms.levels import CustomRules, Tensors, noticing, same_zeros
from adjoint.transforms.recomputed import (
    Examples,
    Flat,
    HiddenTensorError,
    Recomputed,
    active_ones,
    all_on,
    apply_on_level,
    each,
)
from adjoint.transforms.staged import drawing, nothing_assigned, of_examples, on_arrays
from adjoint.transforms.taped import APART, Places, Plan, Taped, planned, pushed

MUCH = 2**27  # bytes
FEW = 16  # steps that draw, which are fast one by one, as NumPy draws and machine code computes what is between

T = TypeVar("T")


def scanned(
    name: str,
    base: Backend,
    f: Function,
    init: Any,
    rows: Tensors,
    slices: Callable[[Any], Any],
    length: int,
    reverse: bool,
    numbers: int = 0,
    reasons: list[BaseException] | None = None,
) -> tuple[Any, Any] | None:
    """The last carry and the stacked ys of a scan, as a loop of the leaf's program; None where steps cannot be one.

    The first so many rows are `numbers`, which stand for Python's. What f closes over becomes an argument. `reasons`
    gets why steps cannot be a loop.
    """
    leaf = base.leaf
    if not isinstance(leaf, Staged) or not leaf.scans or not length:
        return None
    loop = functools.partial(_scanned, name, base, f, init, rows, slices, length, reverse, numbers)
    try:
        try:
            return loop(None)
        except DrawsError:
            source = leaf.source_of_keys()
            if not leaf.is_length(length) and length <= FEW:
                return None
            return loop(source)
    except DrawsError:  # a step of the loop around this one may not yet
        raise
    except Exception as error:  # what is wrong, if anything is, is said where the steps run one by one
        if not numbers and not isinstance(error, errors.AdjointError):  # with a number others may come of that
            raise
        if reasons is not None:
            reasons.append(error)
        return None


def _scanned(
    name: str,
    base: Backend,
    f: Function,
    init: Any,
    rows: Tensors,
    slices: Callable[[Any], Any],
    length: int,
    reverse: bool,
    numbers: int,
    source: Any,
) -> tuple[Any, Any]:
    """Steps that draw random keys, from a source, have their number as a further row."""
    leaf: Any = base.leaf
    carry = Carry(name, init, base)
    made, closed = opened([f])
    count = len(rows)
    if source is not None:
        rows = [*rows, arange(length, dtype=int64, device=base)]
    n, m = len(carry.specs), len(rows)
    last, beside = n + m + len(closed), [] if source is None else of_examples()
    kind: TreeType | None = None

    def step(xs: Tensors) -> Tensors:
        nonlocal kind
        (run,) = made(*xs[n + m : last])
        with nothing_assigned(name, xs[n + m :], run), drawing(leaf, source, xs[n + count : n + m]):
            state = carry.state([assignable(x) for x in xs[:n]])
            out = run(state, slices(xs[n : n + count]))
        check_pair(name, out, "f", "(carry, y)")
        leaves = carry.fit(out[0])
        if kind is None:
            kind = TreeType(f"{name}: the result y", out[1], base)
        return [*leaves, *map(same, kind.fit(out[1]))]

    leaves = carry.start()
    active_ones(name, [*leaves, *rows, *closed])  # raises where zeros are strong
    if not carry.is_settled:
        with leaf.aside():
            carry.adapted(lambda leaves: step([*leaves, *[row[0] for row in rows], *closed]), leaves)
        leaves = carry.start()
    xs = [*leaves, *rows, *closed, *beside]
    found = apply_on_level(_Scanned(name, step, n, m, length, reverse, numbers), xs)
    assert kind is not None
    return carry.state(found[:n]), kind.tree(found[n:])


class _Scanned(CustomRules):
    """A loop whose first `count` arguments are carried along, and the next `rows` are gone along; the others stay."""

    differs = False

    def __init__(self, name: str, step: Flat, count: int, rows: int, length: int, reverse: bool, numbers: int) -> None:
        self.name, self.count, self.rows, self.length, self.reverse = name, count, rows, length, reverse
        self.numbers = numbers
        self.step = Recomputed(name, step, ())

    def like(self, step: Flat, count: int, rows: int) -> _Scanned:
        """Another loop of as many steps, whose first rows are those of this one."""
        return _Scanned(self.name, step, count, rows, self.length, self.reverse, self.numbers)

    def plain(self, xs: Tensors) -> Tensors:
        leaf = common_backend(*xs)
        if not isinstance(leaf, LeafBackend) or not isinstance(leaf, Staged):
            raise HiddenTensorError(f"{self.name}: {leaf} looks at what is computed")
        step, n = on_arrays(self.step, leaf), self.count + self.rows
        arrays = [x._array for x in xs]
        run = lambda *slices: step(*slices, *arrays[n:])
        return [
            wrap(y, leaf)
            for y in leaf.scan(
                run, arrays[: self.count], arrays[self.count : n], self.length, self.reverse, self.numbers
            )
        ]

    def in_the_open(self, xs: Tensors) -> Tensors:
        n, m = self.count, self.count + self.rows
        carry, pieces = xs[:n], list[Tensors]()
        for k in range(self.length):
            t = -1 - k if self.reverse else k
            args = [*carry, *[x[t] for x in xs[n:m]], *xs[m:]]
            ys = self.step.f(all_on(common_backend(*args), args))
            carry = ys[:n]
            pieces.append(ys[n:])
        parts = zip(*(pieces[::-1] if self.reverse else pieces), strict=True)
        return [*carry, *[stack(list(part)) for part in parts]]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return self.forward_by(xs, [True] * len(xs))

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        n = self.count
        saving = self.like(lambda xs: [*self.step.f(xs), *map(same, xs[:n])], n, self.rows)
        with noticing() as noticed:
            out = apply_on_level(saving, xs)
        self.noticed |= noticed.found
        if noticed.found and any([x.device.tracked(x._array) for x in xs]):
            followed = self._following(xs, list(active))
            saving = self.like(lambda xs: [*self.step.followed(xs, followed)[0], *map(same, xs[:n])], n, self.rows)
            with without_calls(made=True):
                out = apply_on_level(saving, xs)
        return out[: len(out) - n], (xs, out[len(out) - n :])

    def _following(self, xs: Tensors, active: list[bool]) -> list[bool]:
        """Which arguments of a step come of these, in some step."""
        n = self.count
        leaf: Any = common_backend(*xs).leaf
        found: list[bool] = []

        def look(xs: Tensors) -> Tensors:
            found[:] = self.step.followed(xs, active)[1]
            return xs[:n]

        while True:
            with leaf.aside(), without_calls():
                apply_on_level(self.like(look, n, self.rows), xs)
            after = [*[old or new for old, new in zip(active[:n], found, strict=False)], *active[n:]]
            if after == active:
                return active
            active = after

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return self.forward(xs)[1]

    def moving(self, xs: Tensors) -> list[list[int]]:
        """The places of floating arguments: of the carry, of rows, of those that stay."""
        places = [i for i, x in enumerate(xs) if x.dtype.kind in INEXACT]
        n, m = self.count, self.count + self.rows
        return [[i for i in places if i < n], [i for i in places if n <= i < m], [i for i in places if i >= m]]

    def of(self, xs: Tensors, places: Sequence[int]) -> Callable[..., Tensors]:
        """The step as a function of some of its arguments."""

        def step(*active: Tensor[Any]) -> Tensors:
            given = list(xs)
            for i, x in zip(places, active, strict=True):
                given[i] = x
            return self.step.f(all_on(common_backend(*given), given))

        return step

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        found = self.backward_of(saved, cotangents, cotangents)
        return [_or_zeros(g, x) for g, x in zip(found, saved[0], strict=True)]

    def backward_of(
        self, saved: Any, cotangents: Sequence[Tensor[Any] | None], results: Tensors
    ) -> Sequence[Tensor[Any] | None]:
        """The loop the other way round.

        It carries the cotangents of the carry and sums for what stays. The steps that have others than the rest come
        before it, each by itself.
        """
        xs, carries = saved
        n, m = self.count, self.rows
        carried, along, staying = self.moving(xs)
        places = [*carried, *along, *staying]
        given = {i: c for i, c in enumerate(cotangents) if c is not None and c.dtype.kind in INEXACT}
        beside = [i for i in given if i >= n]
        stacks = [*carries, *xs[n : n + m], *[given[i] for i in beside]]

        def pulled(args: Tensors, there: dict[int, Any], g: Tensors) -> tuple[Taped, dict[int, Any]]:
            """The cotangents of the arguments of a step, from those that are there of what it gives."""
            with without_calls():  # forward made them
                taped = Taped(self.name, self.of(args, places), [args[i] for i in places])
                there = {**there, **dict(zip(beside, g, strict=True))}
                return taped, dict(zip(places, taped.pull([there.get(i) for i in range(len(cotangents))]), strict=True))

        looks = True
        silent: dict[int, bool] = {}  # what a step of the loop gives no cotangent of

        def back(plan: Plan | None, both: Tensors) -> list[Any]:
            nonlocal looks
            some = carried if plan is None else sorted(plan.some)
            sums = len(some) + len(staying)
            args, g = both[sums : sums + n + m], both[sums + n + m : sums + n + m + len(beside)]
            args = [*args, *both[sums + n + m + len(g) :]]
            taped, found = pulled(args, dict(zip(some, both, strict=False)), g)
            if plan is None and looks:
                looks = False
                with without_calls():
                    self._planned_back(run, taped, places, given, carries)
            silent.update((i, c is None) for i, c in found.items())
            totals = dict(zip(staying, both[len(some) : sums], strict=True))
            added = [totals[i] if found[i] is None else totals[i] + found[i] for i in staying]
            each = [_or_zeros(found[i], args[i]) for i in (*some, *along)]
            return [*each[: len(some)], *added, *each[len(some) :]]

        def run(plan: Plan | None) -> Sequence[Tensor[Any] | None]:
            apart, some = (0, carried) if plan is None else (plan.apart, sorted(plan.some))
            there = {i: given[i] for i in carried if i in given}
            totals: dict[int, Any] = {}
            pieces: dict[int, list[Any]] = {i: [] for i in along}
            for k in range(apart):
                t = k if self.reverse else -1 - k
                rows = [x[t] for x in stacks]
                args = all_on(common_backend(*rows, *xs), [*rows[: n + m], *xs[n + m :]])
                _, found = pulled(args, there, rows[n + m :])
                there = {i: found[i] for i in carried if found[i] is not None}
                for i in staying:
                    if found[i] is not None:
                        totals[i] = totals[i] + found[i] if i in totals else found[i]
                for i in along:
                    pieces[i].append(_or_zeros(found[i], args[i])[None])
            if apart == self.length:
                out = {**there, **totals}
            else:
                left = slice(apart, None) if self.reverse else slice(-apart)
                rows = [x[left] for x in stacks] if apart else stacks
                start = [*[_or_zeros(there.get(i), xs[i]) for i in some]]
                start += [_or_zeros(totals.get(i), xs[i]) for i in staying]
                step = functools.partial(back, plan)
                loop = _Scanned(self.name, step, len(start), len(rows), self.length - apart, not self.reverse, 0)
                results = apply_on_level(loop, [*start, *rows, *xs[n + m :]])
                out = dict(zip([*some, *staying, *along], results, strict=True))
                out = {i: c for i, c in out.items() if not silent[i] or i in totals or (i in along and apart)}
            for i in along:
                if i not in out and not pieces[i]:
                    continue
                parts = [*pieces[i], out[i]] if i in out else pieces[i]
                out[i] = concat(parts if self.reverse else parts[::-1]) if len(parts) > 1 else parts[0]
            return [out.get(i) for i in range(len(xs))]

        return _by_its_plan(run)

    def _planned_back(self, loop: Any, taped: Taped, places: list[int], given: Iterable[int], carries: Tensors) -> None:
        """Raises _PlannedError if the loop backward is to be another one than that of all steps and all cotangents.

        A step apart reads the carry it began with as a whole, of which a loop may need parts alone. So there is none
        where all carries are much.
        """
        n = self.count
        beside = frozenset([i for i in given if i >= n])

        def before(there: Places) -> Places:
            return frozenset([places[k] for k in taped.leading(there | beside) if places[k] < n])

        plan = planned(
            frozenset([i for i in given if i < n]),
            self.length,
            before,
            lambda always, sometimes: taped.takes_zeros_back(always | beside, sometimes),
            APART if sum([math.prod(x.shape) * x.dtype.itemsize for x in carries]) <= MUCH else 0,
        )
        if plan != (0, frozenset([i for i in places if i < n])):
            raise _PlannedError(loop, plan)

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        ys, moved = self.push_of(xs, tangents)
        return ys, [_or_zeros(t, y) for t, y in zip(moved, ys, strict=True)]

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        """The loop that carries tangents along, after the steps that have others than the rest, each by itself."""
        n, m = self.count, self.rows
        carried, along, staying = self.moving(xs)
        given = {i: t for i, t in enumerate(tangents) if t is not None and t.dtype.kind in INEXACT}
        along, staying = [i for i in along if i in given], [i for i in staying if i in given]

        def moved(args: Tensors, there: dict[int, Any]) -> tuple[Tensors, dict[int, Any]]:
            """What a step gives, and the tangents that there are of that."""
            return pushed(lambda *xs: self.step.f(all_on(common_backend(*xs), list(xs))), args, there)

        looks, count = True, 0
        silent: set[int] = set()  # what a step of the loop gives no tangent of

        def forth(plan: Plan | None, both: Tensors) -> Tensors:
            nonlocal looks, count
            some = carried if plan is None else sorted(plan.some)
            parts, start = [], 0
            for size in (n, len(some), m, len(along), len(xs) - n - m, len(staying)):
                parts.append(both[start : start + size])
                start += size
            args = [*parts[0], *parts[2], *parts[4]]
            places = [*some, *along, *staying]
            if plan is None and looks:
                looks = False
                with without_calls():
                    self._planned_forth(run, args, [*carried, *along, *staying], given)
            ys, found = moved(args, dict(zip(places, [*parts[1], *parts[3], *parts[5]], strict=True)))
            count = len(ys)
            silent.update(i for i in range(count) if i not in found)
            out = [_or_zeros(found.get(i), y) for i, y in enumerate(ys)]
            return [*ys[:n], *[out[i] for i in some], *ys[n:], *out[n:]]

        def run(plan: Plan | None) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
            apart, some = (0, carried) if plan is None else (plan.apart, sorted(plan.some))
            carry, there = xs[:n], {i: given[i] for i in carried if i in given}
            pieces: list[Tensors] = []
            beside: list[dict[int, Any]] = []
            for k in range(apart):
                t = -1 - k if self.reverse else k
                args = [*carry, *[x[t] for x in xs[n : n + m]], *xs[n + m :]]
                args = all_on(common_backend(*xs), args)
                rows = {i: given[i][t] for i in along}
                ys, found = moved(args, {**there, **rows, **{i: given[i] for i in staying}})
                carry, there = ys[:n], {i: moves for i, moves in found.items() if i < n}
                pieces.append([y[None] for y in ys[n:]])
                beside.append({i: moves[None] for i, moves in found.items() if i >= n})
            if apart < self.length:
                left = slice(-apart) if self.reverse else slice(apart, None)
                start = [*carry, *[_or_zeros(there.get(i), xs[i]) for i in some]]
                stacks = [*xs[n : n + m], *[given[i] for i in along]]
                stacks = [x[left] for x in stacks] if apart else stacks
                rest = [*xs[n + m :], *[given[i] for i in staying]]
                step = functools.partial(forth, plan)
                count_left = self.length - apart
                loop = _Scanned(self.name, step, len(start), len(stacks), count_left, self.reverse, self.numbers)
                results = apply_on_level(loop, [*start, *stacks, *rest])
                carry = results[:n]
                there = {i: moves for i, moves in zip(some, results[n:], strict=False) if i not in silent}
                results = results[n + len(some) :]
                pieces.append(results[: count - n])
                beside.append({i: moves for i, moves in enumerate(results[count - n :], n) if i not in silent})
            if self.reverse:
                pieces.reverse()
                beside.reverse()
            ys = [concat(parts) if len(parts) > 1 else parts[0] for parts in map(list, zip(*pieces, strict=True))]
            out = [there.get(i) for i in range(n)]
            for i in range(n, n + len(ys)):
                if any(i in found for found in beside):
                    parts = [_or_zeros(found.get(i), part[i - n]) for found, part in zip(beside, pieces, strict=True)]
                    out.append(concat(parts) if len(parts) > 1 else parts[0])
                else:
                    out.append(None)
            return [*carry, *ys], out

        return _by_its_plan(run)

    def _planned_forth(self, loop: Any, args: Tensors, places: list[int], given: Iterable[int]) -> None:
        """As `_planned_back`, for tangents. `places` are those of all arguments that may have one."""
        n, k = self.count, len([i for i in places if i < self.count])
        taped = Taped(self.name, self.of(args, places), [args[i] for i in places])
        beside = frozenset(range(k, len(places)))

        def as_places(there: Places) -> Places:
            return frozenset([j for j, i in enumerate(places) if i in there and i < n])

        def after(there: Places) -> Places:
            found = taped.following(as_places(there) | beside)
            return frozenset([i for i in places if i < n and i in found])

        plan = planned(
            frozenset([i for i in given if i < n]),
            self.length,
            after,
            lambda always, sometimes: taped.takes_zeros_forth(as_places(always) | beside, as_places(sometimes)),
        )
        if plan != (0, frozenset([i for i in places if i < n])):
            raise _PlannedError(loop, plan)

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """Of what is carried along, that is of each example which is so in some step."""
        n, m = self.count, self.count + self.rows
        leaf: Any = common_backend(*xs).leaf
        rows = [moveaxis(x, 1, 0) if flag else x for x, flag in zip(xs[n:m], flags[n:m], strict=True)]
        several, found = flags[:n], flags
        while True:
            wide = [each(x, size) if new and not old else x for x, old, new in zip(xs, flags, several, strict=False)]
            kinds = [*several, *flags[n:]]
            examples = Examples(self.step.plain, level, size, kinds)

            def look(xs: Tensors, examples: Examples = examples) -> Tensors:
                nonlocal found
                found = examples(xs)[1]
                return xs[:n]

            with leaf.aside(), without_calls():  # as a loop: what the first step is, if known, must not choose
                apply_on_level(self.like(look, n, self.rows), [*wide, *rows, *xs[m:]])
            after = [old or new for old, new in zip(several, found, strict=False)]
            if after == several:
                break
            several = after
        outs = [*several, *found[n:]]
        loop = self.like(lambda xs: examples.as_wide_as(outs, xs), n, self.rows)
        ys = apply_on_level(loop, [*wide, *rows, *xs[m:]])
        return [*ys[:n], *[moveaxis(y, 1, 0) if flag else y for y, flag in zip(ys[n:], outs[n:], strict=True)]], outs


def _by_its_plan(run: Callable[[Plan | None], T]) -> T:
    """A loop by the plan that its first step makes, or as it is."""
    try:
        return run(None)
    except _PlannedError as error:
        if error.loop is not run:  # but one inside
            raise
        return run(error.plan)


class _PlannedError(Exception):
    """The loop is to go by a plan."""

    loop: object
    plan: Plan

    def __init__(self, loop: object, plan: Plan) -> None:
        super().__init__(plan)
        self.loop, self.plan = loop, plan


def _or_zeros(x: Tensor[Any] | None, like: Tensor[Any]) -> Tensor[Any]:
    return same_zeros(like) if x is None else x
