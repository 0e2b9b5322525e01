"""Loops over slices in a program that runs later: of a staged leaf, whose own they become.

The loop has rules. Its derivative forward carries tangents along. Backward it is a loop the other way round, which
runs each step again from the carry that the step began with: of a loop of n steps n carries are kept. A loop for all
examples of a batch carries what is of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Backend, LeafBackend
from adjoint.concrete import Staged
from adjoint.decorators.batched import Batched
from adjoint.dtypes import INEXACT
from adjoint.functions.shape import moveaxis
from adjoint.operands import common_backend
from adjoint.random_keys import without_calls
from adjoint.tensor import Tensor, same, wrap
from adjoint.transforms.arguments import Function, check_pair, zeros_like
from adjoint.transforms.carries import Carry, TreeType, assignable
from adjoint.transforms.closures import opened
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Tensors
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
from adjoint.transforms.reverse import vjp
from adjoint.transforms.staged import nothing_assigned, on_arrays


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
) -> tuple[Any, Any] | None:
    """The last carry and the stacked ys of a scan, as a loop of the leaf's program; None where steps cannot be one.

    The first so many rows are `numbers`, which stand for Python's. What f closes over becomes an argument.
    """
    leaf = base.leaf
    if not isinstance(leaf, Staged) or not leaf.scans or not length:
        return None
    try:
        carry = Carry(name, init, base)
        made, closed = opened([f])
        n, m = len(carry.specs), len(rows)
        kind: TreeType | None = None

        def step(xs: Tensors) -> Tensors:
            nonlocal kind
            (run,) = made(*xs[n + m :])
            with nothing_assigned(name, xs[n + m :], run):
                state = carry.state([assignable(x) for x in xs[:n]])
                out = run(state, slices(xs[n : n + m]))
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
        xs = [*leaves, *rows, *closed]
        found = apply_on_level(_Scanned(name, step, n, m, length, reverse, numbers), xs)
    except errors.AdjointError:  # what is wrong, if anything is, is said where the steps run one by one
        return None
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

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        n = self.count
        saving = self.like(lambda xs: [*self.step.f(xs), *map(same, xs[:n])], n, self.rows)
        out = apply_on_level(saving, xs)
        return out[: len(out) - n], (xs, out[len(out) - n :])

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
        xs, carries = saved
        n, m = self.count, self.rows
        carried, along, staying = self.moving(xs)
        places = [*carried, *along, *staying]
        sums = len(carried) + len(staying)

        def back(both: Tensors) -> list[Any]:
            given, totals = both[: len(carried)], both[len(carried) : sums]
            args, g = both[sums : sums + n + m], both[sums + n + m : sums + n + m + len(cotangents) - n]
            args = [*args, *both[sums + n + m + len(g) :]]
            of_carry = dict(zip(carried, given, strict=True))
            with without_calls():  # forward made them
                ys, pull = vjp(self.of(args, places), *[args[i] for i in places])
                found = pull([*[of_carry.get(i, ys[i]) for i in range(n)], *g])
            a, b = len(carried), len(carried) + len(along)
            added = [total + c for total, c in zip(totals, found[b:], strict=True)]
            return [*found[:a], *added, *found[a:b]]

        start = [*[cotangents[i] for i in carried], *[_zeros(xs[i]) for i in staying]]
        rows = [*carries, *xs[n : n + m], *cotangents[n:]]
        loop = _Scanned(self.name, back, sums, len(rows), self.length, not self.reverse, 0)
        out = apply_on_level(loop, [*start, *rows, *xs[n + m :]])
        slots: dict[int, Any] = dict(zip([*carried, *staying, *along], out, strict=True))
        return [slots.get(i, x) for i, x in enumerate(xs)]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        n, m = self.count, self.rows
        carried, along, staying = self.moving(xs)
        places = [*carried, *along, *staying]
        cuts = [n, len(carried), m, len(along), len(xs) - n - m]

        def pushed(both: Tensors) -> Tensors:
            parts, start = [], 0
            for size in cuts:
                parts.append(both[start : start + size])
                start += size
            carry, moved, rows, beside, rest = parts
            ys, out = jvp(
                self.of([*carry, *rows, *rest], places),
                [[*carry, *rows, *rest][i] for i in places],
                [*moved, *beside, *both[start:]],
            )
            return [*ys[:n], *[out[i] for i in carried], *ys[n:], *out[n:]]

        given = [
            *xs[:n],
            *[tangents[i] for i in carried],
            *xs[n : n + m],
            *[tangents[i] for i in along],
            *xs[n + m :],
            *[tangents[i] for i in staying],
        ]
        found = apply_on_level(self.like(pushed, n + len(carried), m + len(along)), given)
        count = (len(found) - n - len(carried)) // 2
        of_carry = dict(zip(carried, found[n : n + len(carried)], strict=True))
        ys, moved = found[len(found) - 2 * count : len(found) - count], found[len(found) - count :]
        return [*found[:n], *ys], [*[of_carry[i] if i in of_carry else _zeros(xs[i]) for i in range(n)], *moved]

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


def _zeros(x: Tensor[Any]) -> Tensor[Any]:
    return wrap(zeros_like(x.device, x._array), x.device)
