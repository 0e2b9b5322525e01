"""Choices and loops of a program that runs later: of a staged leaf, whose own they become.

What has no value yet cannot choose in Python. A function then becomes one of arrays of the leaf, with all that it
closes over as arguments, and has rules: derivatives and batches of a choice are choices, those of a loop are loops.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend, LeafBackend
from adjoint.concrete import DrawsError, Staged, drawing_refused
from adjoint.decorators.batched import Batched
from adjoint.devices import current_level
from adjoint.functions.creation import full, made, zeros
from adjoint.functions.elementwise import where
from adjoint.operands import (
    chosen_number,
    common_backend,
    dtype_beside,
    dtype_of_numbers,
    in_dtype,
    in_place_of,
    is_number,
    lift_to,
    like_number,
)
from adjoint.primitives import ARRAY, DType
from adjoint.random_keys import Replay, any_key, keys_from, replayed, without_calls
from adjoint.tensor import Number, Tensor, raw_array, same, wrap
from adjoint.transforms.arguments import Function
from adjoint.transforms.carries import Carry, TreeType, WiderDtypeError, examples_of, of_one_type, taken_by
from adjoint.transforms.closures import Held, closed_over, opened, substituted
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Tensors, noticing
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

Choices = dict[str, tuple[Tensor[Any], Function]]  # masks and functions by what they are called


def is_staged(x: Tensor[Any]) -> bool:
    """Whether the leaf's program decides by this value, which it has not got yet."""
    array, leaf, _ = examples_of(x)
    return isinstance(leaf, Staged) and not leaf.is_concrete(array)


def chosen_per_example(name: str, base: Backend, chosen: Choices, operands: tuple[Any, ...]) -> Any:
    """For each example the result of the function whose mask holds for it, where masks have no values yet.

    As with values, a function is given the operands of those that take it, and for others the operands of the first
    that does. The program runs it only if some example takes it.
    """
    leaf: Any = base.leaf
    masked = {label: _of_the_first(mask, operands) for label, (mask, _) in chosen.items()}
    with leaf.aside(), without_calls(), keys_from(any_key):  # for structures, shapes and dtypes
        outs = [trees.flatten(f(*masked[label][1])) for label, (_, f) in chosen.items()]
    for label, (_, structure) in zip(chosen, outs, strict=True):
        if structure != outs[0][1]:
            raise errors.ArgumentError(
                f"{name}: {next(iter(chosen))} gives the structure {outs[0][1]} and {label} {structure}; where "
                "examples differ, they must be the same"
            )
    columns = zip(*[leaves for leaves, _ in outs], strict=True)
    paths = trees.paths(outs[0][1])
    kinds = [of_one_type(name, [*chosen], path, column, base) for path, column in zip(paths, columns, strict=True)]
    specs = [(x[0].shape, x[0].dtype) for x in kinds]

    def none(*_: Any) -> Tensors:
        return [zeros(shape, dtype=dtype, device=leaf) for shape, dtype in specs]

    def of_kind(f: Function, mask: Tensor[Any]) -> Function:
        def run(*xs: Any) -> Tensors:
            with taken_by(mask):
                out = trees.leaves(f(*xs))
            return [in_dtype(x, dtype, leaf, name) for x, (_, dtype) in zip(out, specs, strict=True)]

        return run

    found: Tensors = []
    for label, (mask, f) in chosen.items():
        some, given = masked[label]
        out = branched(name, base, some.astype(dtypes.int32), [none, of_kind(f, mask)], given)
        found = [where(mask, x, y) for x, y in zip(out, found, strict=True)] if found else out
    free = [x[0].__class__ is Number for x in kinds]
    return trees.unflatten(outs[0][1], [chosen_number(x) if f else x for x, f in zip(found, free, strict=True)])


def _of_the_first(mask: Tensor[Any], operands: Any) -> tuple[Tensor[Any], Any]:
    """Whether the mask holds for some example, and the operands with those of the first such one for the others."""
    array, leaf, levels = examples_of(mask)
    some = wrap(leaf.any(array, axis=tuple(range(len(levels))), keepdims=False), leaf)
    if 0 in array.shape:  # no examples
        return some, operands
    flat = leaf.astype(leaf.reshape(array, shape=(math.prod(array.shape),)), dtype=dtypes.int32)
    rest, places = leaf.argmax(flat, axis=0, keepdims=False), {}
    for level, size in zip(levels[::-1], array.shape[::-1], strict=True):
        places[level] = leaf.remainder(rest, size)
        rest = leaf.floor_divide(rest, size)

    def guarded(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        array, leaf, known = examples_of(x)
        if not any([level in places for level in known]):
            return x
        zero = leaf.full(shape=(), value=0, dtype=dtypes.int64)
        one = leaf.index(array, *[places.get(level, zero) for level in known], key=(ARRAY,) * len(known))
        return in_place_of(x, where(mask, same(x), wrap(one, leaf)))

    return some, trees.map(guarded, operands)


def branched(name: str, base: Backend, index: Tensor[Any], branches: Sequence[Function], operands: Any) -> Any:
    """The result of one branch, which the compiled function chooses. What branches close over become arguments."""
    leaves, structure = trees.flatten(operands)
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    functions, closed = opened(branches)
    kind: _Result | None = None

    def result(number: int, xs: Tensors) -> Any:
        given = list(leaves)
        for i, x in zip(places, xs, strict=False):
            given[i] = in_place_of(leaves[i], x)
        branch = functions(*xs[len(places) : len(places) + len(closed)])[number]
        with nothing_assigned(name, xs, branch):
            return branch(*trees.unflatten(structure, given))

    def flat(number: int) -> Callable[[Tensors], Tensors]:
        def run(xs: Tensors) -> Tensors:
            nonlocal kind
            out = result(number, xs)
            if kind is None:
                kind = _Result(f"{name}: the result", out, base)
            return kind.fit(out)

        return run

    xs = [*[leaves[i] for i in places], *closed] or [index]

    def chosen(drawn: Replay) -> Tensors:
        while True:
            try:
                with replayed(drawn):
                    return _chosen(name, index, [flat(number) for number in range(len(branches))], xs)
            except WiderDtypeError:  # than that of the branches before
                pass

    try:
        try:
            with keys_from(drawing_refused) if _where_examples_draw() else contextlib.nullcontext():
                found = chosen(Replay())
        except DrawsError:
            xs = [*xs, *of_examples()]
            found = chosen(Replay())
    except HiddenTensorError as error:
        raise errors.TrackedError(
            f"{name}: the program of {index.device.leaf} makes the choice, and branches become functions of their "
            "operands and of the tensors that they close over; what else they need has to be an operand, and new "
            f"tensors go on its device: {error}"
        ) from error
    assert kind is not None
    return kind.answer(found)


class _Result(TreeType):
    """What the branches of a choice give: leaves in the dtype in which those of all branches meet."""

    def __init__(self, what: str, tree: Any, base: Backend) -> None:
        super().__init__(what, tree, base)
        self.free: set[int] = set()  # leaves that are Python's numbers in each branch
        for i, x in enumerate(trees.leaves(tree)):
            if is_number(x):
                self.free.add(i)
                self.specs[i] = (), self._kept(dtype_of_numbers([x]))

    def _kept(self, dtype: DType) -> DType:
        return self.base.leaf.widest(dtype)

    def fit(self, tree: Any) -> Tensors:
        """Raises WiderDtypeError where the branches before have to give a wider dtype."""
        leaves, structure = trees.flatten(tree)
        if structure == self.structure:
            for i, x in enumerate(leaves):
                shape, known = self.specs[i]
                if not (is_number(x) or isinstance(x, Tensor)) or getattr(x, "shape", ()) != shape:
                    continue
                if i not in self.free:
                    dtype = dtype_beside(known, x)
                elif is_number(x):
                    dtype = self._kept(dtype_of_numbers([x, like_number(known)]))
                else:
                    self.free.remove(i)
                    dtype = dtype_beside(x.dtype, like_number(known))
                if dtype is not known:
                    self.specs[i] = shape, dtype
                    raise WiderDtypeError
                leaves[i] = in_dtype(x, dtype, current_level() or self.base, self.what)
            tree = self.tree(leaves)
        return super().fit(tree)

    def other_structure(self, structure: Any) -> NoReturn:
        raise errors.ArgumentError(
            f"{self.what} is {errors.said(self.structure)} of one branch and {errors.said(structure)} of another; "
            "which is taken is known when the program runs, so they must give the same structure"
        )

    def refuse(self, error: type[errors.AdjointError], i: int, x: Tensor[Any], hint: str) -> NoReturn:
        raise error(
            f"{self.place(i)} is {self.spec(i)} of one branch and {x.dtype} of shape {x.shape} of another; which is "
            "taken is known when the program runs, so they must give the same shape"
        )

    def answer(self, leaves: Tensors) -> Any:
        """The result of the choice, with numbers that are still to take a dtype."""
        free = [i in self.free and dtype.kind != "b" for i, (_, dtype) in enumerate(self.specs)]
        return self.tree([chosen_number(x) if number else x for x, number in zip(leaves, free, strict=True)])


class nothing_assigned:
    """Raises TrackedError where f assigns to a tensor, or changes its closure: of its program only results come out."""

    def __init__(self, name: str, xs: Sequence[Tensor[Any]], f: Function) -> None:
        self.name = name
        self.before = [(x, raw_array(x)) for x in xs]
        self.outside = Held(f)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            return
        if (what := self.outside.changed()) is not None:
            raise errors.TrackedError(
                f"{self.name}: {what}, which is outside of it, and would do so once, while the program is recorded; "
                "return the new value, and in a loop carry it along"
            )
        for x, array in self.before:
            if raw_array(x) is not array:
                raise errors.TrackedError(
                    f"{self.name}: it becomes a part of the program of {x.device.leaf}, and an assignment to a tensor "
                    f"of shape {x.shape} from outside would be lost; return the new value"
                )


def compiled_loop(
    name: str, carry: Carry, leaves: Tensors, cond_fun: Function, body_fun: Function, decided: Function
) -> Any:
    """The loop of a compiled function, which decides itself how long it goes on."""
    try:
        return _compiled_loop(name, carry, leaves, cond_fun, body_fun, decided, None)
    except DrawsError:
        leaf: Any = carry.base.leaf
        return _compiled_loop(name, carry, leaves, cond_fun, body_fun, decided, leaf.source_of_keys())


def _compiled_loop(
    name: str, carry: Carry, leaves: Tensors, cond_fun: Function, body_fun: Function, decided: Function, source: Any
) -> Any:
    """Steps that draw random keys, from a source, carry along how many have been taken."""
    asked = {key: x.detach() for key, x in closed_over(cond_fun).items()}  # a predicate has no derivative
    functions, closed = opened([substituted(cond_fun, asked), body_fun])
    beside = [] if source is None else of_examples()
    leaf: Any = carry.base.leaf
    count, numbers = len(leaves), [zeros((), dtype=dtypes.int64, device=leaf)] if source is not None else []
    if not carry.is_settled:
        body_fun = functions(*closed)[1]  # whose lists are copies
        with leaf.aside(), without_calls(), drawing(leaf, source, numbers):  # for the dtypes of numbers
            carry.adapted(lambda leaves: carry.fit(body_fun(carry.state(leaves))), leaves)
        leaves = carry.start()
    n = count + len(numbers)
    last = n + len(closed)

    def goes(xs: Tensors) -> Tensors:
        holds = functions(*xs[n:last])[0]
        with nothing_assigned(name, xs[n:], holds), drawing(leaf, None, []):
            go = decided(holds(carry.state(xs[:count])))
        return [go if isinstance(go, Tensor) else full((), go, dtype=dtypes.bool, device=common_backend(*xs))]

    def step(xs: Tensors) -> Tensors:
        body = functions(*xs[n:last])[1]
        with nothing_assigned(name, xs[n:], body), drawing(leaf, source, xs[count:n]):
            return [*carry.fit(body(carry.state(xs[:count]))), *[number + 1 for number in xs[count:n]]]

    try:
        loop = _Looped(name, goes, step, n, count if numbers else None)
        return carry.state(apply_on_level(loop, [*leaves, *numbers, *closed, *beside])[:count])
    except HiddenTensorError as error:
        raise errors.TrackedError(
            f"{name}: the program of {leaves[0].device.leaf} decides how long it goes on, and its functions become "
            "functions of the carry and of the tensors that they close over; what else they need has to be in the "
            f"carry: {error}"
        ) from error


def drawing(leaf: Any, source: Any, numbers: Tensors) -> contextlib.AbstractContextManager[None]:
    """In this block a step may draw random keys if there is a source of them, and the step's number."""
    if not leaf.scans:  # what it draws is seen afterwards
        return contextlib.nullcontext()
    return leaf.drawing(source, None if source is None else examples_of(numbers[0])[0])  # type: ignore[no-any-return]


def _where_examples_draw() -> Backend | None:
    """The level that draws here, if what it draws is of each example, or refused."""
    level = current_level()
    chain = () if level is None else level.chain()
    return level if any([isinstance(below, Batched) and below.randomness != "shared" for below in chain]) else None


def of_examples() -> Tensors:
    """What is of each example where a number drawn here is, and refused where that is.

    A choice or a loop that draws takes it along, since what no argument is of each example for runs once for all.
    """
    level = _where_examples_draw()
    if level is None:
        return []
    return [made(level, "random_uniform", key=any_key(), shape=(), dtype=dtypes.float32) < 2.0]


def _chosen(name: str, index: Tensor[Any], branches: Sequence[Flat], xs: Tensors) -> Tensors:
    """`branches[index](xs)`, where the leaf is to branch. Raises what `recomputed` does."""
    return _Chosen(name, branches, active_ones(name, xs)).on(index, xs)


class _Chosen(CustomRules):
    """One of several functions, by the first argument. Derivatives are those of each, chosen by it in turn."""

    def __init__(self, name: str, branches: Sequence[Flat], active: Sequence[bool]) -> None:
        self.name, self.active = name, list(active)
        self.parts = [Recomputed(name, f, active) for f in branches]

    def on(self, index: Tensor[Any], xs: Tensors) -> Tensors:
        return apply_on_level(self, [index, *xs])

    def plain(self, xs: Tensors) -> Tensors:
        index, *rest = xs
        leaf = common_backend(*xs)
        if not isinstance(leaf, LeafBackend):
            raise HiddenTensorError(f"{self.name}: {leaf} looks at what is computed")
        runs = [on_arrays(part, leaf) for part in self.parts]
        return [wrap(y, leaf) for y in leaf.branch(index._array, runs, [x._array for x in rest])]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.forward_by(xs, [False, *self.active])

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Tensors]:
        with noticing() as noticed:
            ys = self.on(xs[0], xs[1:])
        if noticed.found and any([x.device.tracked(x._array) for x in xs]):
            parts = [lambda xs, part=part: part.followed(xs, active[1:])[0] for part in self.parts]
            with without_calls(made=True):
                ys = _Chosen(self.name, parts, self.active).on(xs[0], xs[1:])
        return ys, xs

    def residuals(self, xs: Tensors, ys: Tensors) -> Tensors:
        return xs

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        index, *xs = saved
        pulled = [part.pulled for part in self.parts]
        active = [*self.active, *[True] * len(cotangents)]
        return [index, *_Chosen(self.name, pulled, active).on(index, [*xs, *cotangents])]

    def backward_of(
        self, saved: Tensors, cotangents: Sequence[Tensor[Any] | None], results: Tensors
    ) -> Sequence[Tensor[Any] | None]:
        index, *xs = saved
        given = [i for i, c in enumerate(cotangents) if c is not None]
        reached: set[int] = set()  # by some branch
        pulled = [functools.partial(part.pulled_from, given, reached) for part in self.parts]
        active = [*self.active, *[True] * len(given)]
        found = _Chosen(self.name, pulled, active).on(index, [*xs, *[c for c in cotangents if c is not None]])
        return [None, *[x if i in reached else None for i, x in enumerate(found)]]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        pushed = [part.pushed for part in self.parts]
        out = _Chosen(self.name, pushed, self.active * 2).on(xs[0], [*xs[1:], *tangents[1:]])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        given = [i for i, t in enumerate(tangents[1:]) if t is not None]
        moved: set[int] = set()  # in some branch
        pushed = [functools.partial(part.pushed_from, given, moved) for part in self.parts]
        active = [*self.active, *[self.active[i] for i in given]]
        out = _Chosen(self.name, pushed, active).on(xs[0], [*xs[1:], *[t for t in tangents[1:] if t is not None]])
        half = len(out) // 2
        return out[:half], [t if i in moved else None for i, t in enumerate(out[half:])]

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """A result is of each example where that of some branch is."""
        runs = [Examples(part.plain, level, size, flags[1:]) for part in self.parts]
        leaf: Any = common_backend(*xs).leaf
        found: dict[int, list[bool]] = {}

        def look(xs: Tensors, i: int) -> Tensors:
            found[i] = runs[i](xs)[1]
            return xs[:1]

        looks = [functools.partial(look, i=i) for i in range(len(runs))]
        with leaf.aside(loop=False), without_calls():  # as a choice: no check of a branch holds for the others
            _Chosen(self.name, looks, self.active).on(xs[0], xs[1:])
        several = [any(kinds) for kinds in zip(*found.values(), strict=True)]
        parts = [lambda xs, run=run: run.as_wide_as(several, xs) for run in runs]
        return _Chosen(self.name, parts, self.active).on(xs[0], xs[1:]), several


class _Looped(CustomRules):
    """A loop whose first `count` arguments are carried along, and the others stay.

    It goes on as long as [goes] of all holds. The one at `number` counts the steps, of all examples. Derivatives
    go forward. `plain` raises HiddenTensorError as `recomputed` does, and TrackedError for steps that draw random
    numbers where the leaf's loops cannot.
    """

    def __init__(self, name: str, goes: Flat, step: Flat, count: int, number: int | None) -> None:
        self.name, self.count, self.number = name, count, number
        self.goes, self.step = Recomputed(name, goes, ()), Recomputed(name, step, ())

    def plain(self, xs: Tensors) -> Tensors:
        leaf, closed = common_backend(*xs), [x._array for x in xs[self.count :]]
        if not isinstance(leaf, LeafBackend):
            raise HiddenTensorError(f"{self.name}: {leaf} looks at what is computed")
        goes, step = on_arrays(self.goes, leaf), on_arrays(self.step, leaf)
        found = leaf.loop(
            lambda *carry: goes(*carry, *closed)[0],
            lambda *carry: step(*carry, *closed),
            [x._array for x in xs[: self.count]],
        )
        if self.goes.replay.keys or self.step.replay.keys:
            raise errors.TrackedError(
                f"{self.name}: the program of {leaf} decides how long it goes on, and a step that draws random numbers "
                "would draw the same ones each time; draw them before, or take a fixed number of steps"
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
            places = [i for i, x in enumerate(xs) if x.dtype.kind in dtypes.INEXACT]

            def f(*active: Tensor[Any]) -> Tensors:
                given = list(xs)
                for i, x in zip(places, active, strict=True):
                    given[i] = x
                return self.step.f(all_on(common_backend(*given), given))

            ys, moved = jvp(f, [xs[i] for i in places], [tangents[i] for i in places])
            return [*ys, *moved]

        both = [*xs[:n], *tangents[:n], *xs[n:], *tangents[n:]]
        out = apply_on_level(
            _Looped(self.name, lambda both: self.goes.f(apart(both)[0]), step, 2 * n, self.number), both
        )
        return out[:n], out[n:]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        raise errors.ForwardOnlyError(
            f"{self.name}: reverse mode tracks what the loop of a compiled function uses; detach() that, or go forward"
        )

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """Until all examples have ended; those that have keep their carry. What is the same for all stays so."""
        n, several, found = self.count, flags[: self.count], flags
        leaf: Any = common_backend(*xs).leaf

        def goes_on(xs: Tensors) -> Tensors:
            return [full((), True, dtype=dtypes.bool, device=common_backend(*xs))]

        while True:  # until the carry is one for all, or of each, before a step as after it
            wide = [each(x, size) if new and not old else x for x, old, new in zip(xs, flags, several, strict=False)]
            kinds = [*several, *flags[n:]]
            asked = Examples(self._both, level, size, kinds)

            def look(xs: Tensors, asked: Examples = asked) -> Tensors:
                nonlocal found
                found = asked(xs)[1]
                return xs[:n]

            with leaf.aside(), without_calls():  # as a loop: what the first step is, if known, must not choose
                apply_on_level(_Looped(self.name, goes_on, look, n, self.number), [*wide, *xs[n:]])
            differ = found[0]
            after = [
                i != self.number and (differ or old or new)
                for i, (old, new) in enumerate(zip(several, found[1:], strict=True))
            ]
            if after == several:
                break
            several = after
        goes = Examples(self.goes.plain, level, size, kinds)
        step = Examples(self._kept if differ else self.step.plain, level, size, kinds)
        loop = _Looped(
            self.name,
            lambda xs: [goes(xs)[0][0].any()],
            lambda xs: step.as_wide_as(several, xs),
            n,
            self.number,
        )
        return apply_on_level(loop, [*wide, *xs[n:]]), several

    def _both(self, xs: Tensors) -> Tensors:
        return [*self.goes.plain(xs), *self.step.plain(xs)]

    def _kept(self, xs: Tensors) -> Tensors:
        (go,) = self.goes.plain(xs)
        given = xs
        if self.number is not None:  # a loop in the step draws for those alone that are on their way
            given = [*_of_the_first(go, xs[: self.count])[1], *xs[self.count :]]
        with taken_by(go):
            new = self.step.plain(given)
        pairs = enumerate(zip(new, xs, strict=False))
        return [x if i == self.number else where(go, x, old) for i, (x, old) in pairs]


def on_arrays(part: Recomputed, leaf: LeafBackend) -> Callable[..., list[Any]]:
    return lambda *arrays: [lift_to(y, leaf) for y in part.plain([wrap(a, leaf) for a in arrays])]
