"""What choices and loops are made of: trees that keep their kind from step to step, examples that go different ways."""

from __future__ import annotations

import contextvars
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.batched import Batched
from adjoint.devices import current_level
from adjoint.dtypes import DType
from adjoint.functions.arguments import is_array, is_value, kind_of
from adjoint.operands import (
    adapted,
    chosen_number,
    concrete_values,
    dtype_beside,
    dtype_of_numbers,
    in_dtype,
    in_place_of,
    is_number,
    is_weak,
    like_number,
    run,
)
from adjoint.primitives import Shape
from adjoint.random_keys import Replay, replayed
from adjoint.scopes import Block, Variable, innermost
from adjoint.tensor import Number, Scalar, Tensor, same, wrap
from adjoint.transforms.arguments import Function
from adjoint.transforms.levels import Tensors


def _tensor(x: Any, dtype: DType | None, base: Backend, what: str) -> Tensor[Any]:
    """A leaf as a tensor; a number in this dtype, if that can hold it."""
    if x.__class__ is Number:
        if dtype is not None and dtype_beside(dtype, x) is dtype:
            return in_dtype(x, dtype, base, what)
        return adapted([x], what)[0]  # type: ignore[no-any-return]
    if isinstance(x, Tensor):
        return x
    if not is_value(x):
        raise errors.ArgumentTypeError(f"{what} is {kind_of(x)} {errors.shown(x)}, expected a tensor or a number")
    if not is_weak(x) or dtype is None or dtypes.promote_scalar(dtype, x) is not dtype:
        dtype = None
    return wrap(base.from_numpy(dtypes.values_of(x, dtype, what), copy=True), base)


def assignable(x: Tensor[Any]) -> Tensor[Any]:
    """The same value as an object of its own, and no leaf."""
    return run("reshape", (x,), shape=x.shape) if x.is_require_grad() else same(x)


# --- what stays the same from step to step -------------------------------------------------------


class TreeType:
    """The structure, shapes and dtypes of a tree of tensors, which the trees of later steps have too."""

    base: Backend
    structure: Any
    what: str

    def __init__(self, what: str, tree: Any, base: Backend) -> None:
        self.what, self.base = what, base
        given, self.structure = trees.flatten(tree)
        self._paths: list[str] | None = None
        self.tree = trees.builder(self.structure)
        leaves = [self._made(i, x, None) for i, x in enumerate(given)]
        self.specs: list[tuple[Shape, DType]] = [(x.shape, x.dtype) for x in leaves]
        # the class of a tree that is a tensor, or a tuple or a list of nothing else
        self.simple: Any = None
        if self.structure.is_leaf():
            self.simple = Tensor
        elif tree.__class__ in (tuple, list) and len(given) == len(tree) and all(map(operator.is_, given, tree)):
            self.simple = tree.__class__

    def place(self, i: int) -> str:
        """What a leaf is called."""
        if self._paths is None:
            self._paths = trees.paths(self.structure)
        return self.what + self._paths[i]

    def _made(self, i: int, x: Any, dtype: DType | None) -> Tensor[Any]:
        return _tensor(x, dtype, current_level() or self.base, self.place(i))

    def fit(self, tree: Any) -> Tensors:
        """The leaves of a tree of this kind; raises where it is of another."""
        if tree.__class__ is self.simple:  # the hot path of a loop of small steps
            leaves = [tree] if self.simple is Tensor else list(tree)
            specs = self.specs
            if len(leaves) == len(specs):
                for i, x in enumerate(leaves):
                    shape, dtype = specs[i]
                    if x.__class__ is not Tensor or x._dtype is not dtype or x._array.shape != shape:
                        break
                else:
                    return leaves
        leaves, structure = trees.flatten(tree)
        if structure is not self.structure and structure != self.structure:
            self.other_structure(structure)
        for i, (shape, dtype) in enumerate(self.specs):
            x = leaves[i] = self._made(i, leaves[i], dtype)
            if x.shape != shape:
                self.refuse(errors.ShapeError, i, x, "shapes stay, so start with the one that it becomes")
            if x.dtype is not dtype:
                self.other_dtype(i, x)
        return leaves

    def other_structure(self, structure: Any) -> NoReturn:
        raise errors.ArgumentError(
            f"{self.what} changed its structure{_first_difference(self.structure, structure)}: it was "
            f"{errors.said(self.structure)}, and became {errors.said(structure)}"
        )

    def other_dtype(self, i: int, x: Tensor[Any]) -> None:
        hint = "dtypes stay; astype converts what the first step gets, or what it gives"
        self.refuse(errors.DtypeError, i, x, hint)

    def refuse(self, error: type[errors.AdjointError], i: int, x: Tensor[Any], hint: str) -> NoReturn:
        raise error(f"{self.place(i)} was {self.spec(i)}, and became {x.dtype} of shape {x.shape}; {hint}")

    def spec(self, i: int) -> str:
        """What a leaf is, for a message."""
        shape, dtype = self.specs[i]
        return f"{dtype} of shape {shape}"


def _first_difference(old: Any, new: Any) -> str:
    """Where a leaf is in one of two structures alone."""
    before, after = trees.paths(old), trees.paths(new)
    gone = [path for path in before if path not in after]
    come = [path for path in after if path not in before]
    return f" ({gone[0] or 'the leaf'} is gone)" if gone else f" ({come[0] or 'a leaf'} is new)" if come else ""


class WiderDtypeError(Exception):
    """What comes out has a wider dtype than was expected, or is no number any more: it has to be computed again."""


class Carry(TreeType):
    """What a loop carries. Python numbers it starts from stay such, or take the dtype that the first step gives them.

    Leaves are tensors, those of numbers in full precision. In a `state`, which the loop's functions and its caller get,
    they are numbers again.
    """

    def __init__(self, name: str, init: Any, base: Backend) -> None:
        super().__init__(f"{name}: the carry", init, base)
        given = trees.leaves(init)
        self.first: list[Any] = [x if is_number(x) else self._made(i, x, None) for i, x in enumerate(given)]
        self.is_settled = not any(map(is_number, given))  # numbers keep their dtype after the first step
        self.free: set[int] = set()  # leaves that are numbers so far
        for i, x in enumerate(given):
            if is_number(x) and (dtype := self._kept(x)).kind != "b":
                self.free.add(i)
                self.specs[i] = (), dtype

    def _kept(self, *numbers: Any) -> DType:
        return self.base.leaf.widest(dtype_of_numbers(numbers))

    def _in_dtype(self, i: int, x: Any, dtype: DType) -> Tensor[Any]:
        return in_dtype(x, dtype, current_level() or self.base, self.place(i))

    def start(self) -> Tensors:
        """The first leaves, for a body that may assign to them."""
        return [
            self._in_dtype(i, x, self.specs[i][1]) if is_number(x) else assignable(x) for i, x in enumerate(self.first)
        ]

    def state(self, leaves: Tensors) -> Any:
        """The tree of these leaves."""
        if self.free:
            leaves = [chosen_number(x) if i in self.free else x for i, x in enumerate(leaves)]
        return self.tree(leaves)

    def fit(self, tree: Any) -> Tensors:
        """As that of other trees. Raises WiderDtypeError if the first step gives a number another dtype."""
        if self.is_settled and not self.free:
            return super().fit(tree)
        before = list(self.specs), set(self.free)
        leaves, structure = trees.flatten(tree)
        if structure == self.structure:
            leaves = [self._number(i, x) if i in before[1] else x for i, x in enumerate(leaves)]
        found = super().fit(trees.unflatten(structure, leaves))
        if before != (self.specs, self.free):
            raise WiderDtypeError
        self.is_settled = True
        return found

    def _number(self, i: int, x: Any) -> Any:
        """What a step gives where a number was: what keeps a number, or, after the first step alone, another tensor."""
        known = self.specs[i][1]
        if is_number(x):
            dtype = self._kept(x, like_number(known))
            if not self.is_settled:
                self.specs[i] = (), dtype
            return self._in_dtype(i, x, dtype)
        if not is_value(x) or getattr(x, "shape", ()) != ():
            return x  # which does not fit
        x = self._made(i, x, None)
        if self.is_settled or dtype_beside(x.dtype, self.first[i]) is not x.dtype:
            self.other_dtype(i, x)
        self.free.remove(i)
        self.specs[i] = (), x.dtype
        return x

    def other_dtype(self, i: int, x: Tensor[Any]) -> None:
        known = self.specs[i][1]
        if self.is_settled or not is_number(self.first[i]) or dtypes.promote(known, x.dtype) is not x.dtype:
            super().other_dtype(i, x)
        self.specs[i] = (), x.dtype

    def spec(self, i: int) -> str:
        if i in self.free:
            return f"a Python {type(like_number(self.specs[i][1])).__name__}"
        return super().spec(i)

    def adapted(self, run: Callable[[Tensors], Any], leaves: Tensors) -> Any:
        """run(leaves), with the first leaves again as long as their dtypes change; what was drawn stays drawn."""
        if self.is_settled:
            return run(leaves)
        replay = Replay()
        while True:
            try:
                with replayed(replay):
                    return run(leaves)
            except WiderDtypeError:
                leaves = self.start()

    def advance(self, f: Function, leaves: Tensors, go: Any, *operands: Any) -> Tensors:
        """One step, f(carry, *operands), of all examples or of those that `go` holds for."""

        def step(leaves: Tensors) -> Tensors:
            state = self.state(leaves)
            place = _example(go) if isinstance(go, Tensor) else {}
            if not place:
                return self.fit(f(state, *operands))
            with taken_by(go):
                found = self.fit(f(*_masked_operands(go, place, (state, *operands))))
            return [run("where", (go, new, old)) for new, old in zip(found, leaves, strict=True)]

        return self.adapted(step, leaves)  # type: ignore[no-any-return]


# --- examples that go different ways -------------------------------------------------------------


def examples_of(x: Tensor[Any]) -> tuple[Array, Backend, list[Backend]]:
    """The leaf's array under a tensor, the leaf, and the levels whose examples its first axes count, in order."""
    array, level = x._array, x._device
    counted: list[Backend] = []
    while isinstance(level, Decorator):
        if isinstance(level, Batched) and level.is_active(array):
            counted.append(level if level.aliases is None else level.aliases)
        array, level = level.unwrap(array), level.inner
    return array, level, counted[::-1]


_taking: Variable[tuple[Tensor[Any], ...]] = contextvars.ContextVar("adjoint_taking", default=None)


def taken_by(mask: Tensor[Any]) -> Block[tuple[Tensor[Any], ...]]:
    """In this block a function runs for examples that the mask holds for. What it computes for others is dropped."""
    return Block(_taking, (*masks_here(), mask))


def masks_here() -> tuple[Tensor[Any], ...]:
    """The masks that all have to hold for an example which takes the way that runs here."""
    block = innermost(_taking)
    return () if block is None else block.value


def with_examples_of(x: Tensor[Any], other: Tensor[Any]) -> Tensor[Any]:
    """x, of which all examples have a copy of their own where another tensor of its shape differs between them.

    What shares a value by chance, such as roots found where the search began, does not share its derivatives.
    """
    if not differs_more(other, [x]):
        return x
    return run("where", (other == other, x, x))  # type: ignore[no-any-return]


def differs_more(x: Tensor[Any], others: Sequence[Tensor[Any]]) -> bool:
    """Whether there is a batch whose examples differ in x and share the others."""
    known = [level for other in others for level in examples_of(other)[2]]
    return not all([level in known for level in examples_of(x)[2]])


def _example(mask: Tensor[Any]) -> dict[Backend, int] | None:
    """One example that the mask holds for, as its place at each level; empty if it holds for all, None if for none."""
    array, leaf, levels = examples_of(mask)
    values = concrete_values(wrap(array, leaf), "a choice between examples")
    if values.all():
        return {}
    if not values.any():
        return None
    return dict(zip(levels, np.argwhere(values)[0].tolist(), strict=True))


def _masked_operands(mask: Tensor[Any], place: dict[Backend, int], operands: Any) -> Any:
    """The operands, with those of one example in the place of all that the mask excludes.

    A function is not computed outside of its domain then, and `where` lets no derivative through to what is replaced.
    """

    def guard(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        array, leaf, levels = examples_of(x)
        if not any([level in place for level in levels]):
            return x  # the same for those that the mask holds for
        one = leaf.index(array, key=tuple([place.get(level, 0) for level in levels]))
        return in_place_of(x, run("where", (mask, x, wrap(one, leaf))))

    return trees.map(guard, operands)


def select_per_example(name: str, branches: dict[str, tuple[Tensor[Any], Function]], operands: tuple[Any, ...]) -> Any:
    """For each example the result of the branch whose mask holds for it."""
    taken: list[tuple[str, Tensor[Any], Any]] = []
    for label, (mask, branch) in branches.items():
        place = _example(mask)
        if place is None:
            continue
        if not place:
            return branch(*operands)
        with taken_by(mask):
            taken.append((label, mask, branch(*_masked_operands(mask, place, operands))))
    (first, _, out), *others = taken
    leaves, structure = trees.flatten(out)
    for label, _, out in others:
        found = trees.flatten(out)[1]
        if found != structure:
            raise errors.ArgumentError(
                f"{name}: {first} gives the structure {structure} and {label} {found}; where examples differ, they "
                "must be the same"
            )
    columns = [
        of_one_type(name, [label for label, _, _ in taken], trees.paths(structure)[i], column, taken[0][1].device)
        for i, column in enumerate(zip(*[trees.flatten(out)[0] for _, _, out in taken], strict=True))
    ]
    leaves = [column[0] for column in columns]
    for k, (_, mask, _) in enumerate(taken[1:], 1):
        leaves = [run("where", (mask, column[k], x)) for column, x in zip(columns, leaves, strict=True)]
    free = [column[0].__class__ is Number for column in columns]
    return trees.unflatten(structure, [chosen_number(x) if f else x for x, f in zip(leaves, free, strict=True)])


def of_one_type(name: str, labels: Sequence[str], path: str, column: Sequence[Any], device: Backend) -> Tensors:
    """A leaf of the results of several branches, as tensors of one shape and dtype, or as chosen numbers."""
    if all([is_number(x) for x in column]) and (kept := dtype_of_numbers(column)).kind != "b":
        level = current_level() or device
        return [chosen_number(in_dtype(x, level.leaf.widest(kept), level, name)) for x in column]
    arrays = [x.dtype for x in column if is_array(x)]
    numbers = [x for x in column if isinstance(x, Scalar)]
    dtype = arrays[0] if arrays else dtypes.values_of(numbers, None, name).dtype if numbers else None
    tensors = [_tensor(x, dtype, device, f"{name}: the result{path}") for x in column]
    first = tensors[0]
    for label, x in zip(labels, tensors, strict=True):
        if x.shape != first.shape or x.dtype is not first.dtype:
            error = errors.ShapeError if x.shape != first.shape else errors.DtypeError
            raise error(
                f"{name}: the result{path} of {labels[0]} is {first.dtype} of shape {first.shape}, and that of {label} "
                f"{x.dtype} of shape {x.shape}; where examples differ, they must be the same"
            )
    return tensors
