"""Choices and loops as functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

Plain Python `if`, `while` and `for` are always allowed where the values they ask for are known. These functions are for
bodies that `vmap` runs for many examples at once, which may choose differently and end at different steps. Names,
signatures and meanings are those of `jax.lax`.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors, trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batched
from adjoint.devices import active_level, creating_on
from adjoint.dtypes import DType
from adjoint.functions.creation import zeros
from adjoint.functions.elementwise import clip
from adjoint.functions.manipulation import stack
from adjoint.primitives import Shape
from adjoint.tensor import Scalar, Tensor, peek, run, same, weak, wrap
from adjoint.transforms.calls import Function, array_of, base_of, is_array, to_numpy

_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("adjoint_control", default=False)


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """`true_fun(*operands)` where the predicate holds, `false_fun(*operands)` elsewhere.

    A predicate with one value calls one function; the other one is not run, and not checked. Inside `vmap`, where it
    may differ between examples, each function runs once for all examples, unless none takes it, and every example gets
    the result of its own. A function is given the operands of those that take it (for the others, those of one that
    does), so that no nan of an excluded branch comes into derivatives: this holds for what is passed as operands, not
    for what a function finds in its closure.

    Parameters
    ----------
    pred
        A boolean scalar.
    true_fun, false_fun
        Functions of the operands. Where both run, their results have one structure, and leaves of one shape and dtype.
    operands
        Pytrees of arrays.

    Raises
    ------
    ShapeError, DtypeError, ArgumentTypeError
        `pred` is no boolean scalar; a branch is no function; results of the two that do not go together.
    ArgumentError
        Results of different structure.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> root = lambda x: ad.cond(x > 0, ad.sqrt, ad.zeros_like, x)
    >>> root(np.array(4.0))
    np.float64(2.0)
    >>> ad.vmap(ad.grad(root))(np.array([4.0, 0.0, -1.0]))
    array([0.25, 0.  , 0.  ])
    """
    _check_callable("cond", true_fun=true_fun, false_fun=false_fun)

    def choose(base: Backend, pred: Any, *operands: Any) -> Any:
        holds = _decided(pred, "cond: pred", "b")
        if isinstance(holds, Tensor):
            return _each("cond", {"true_fun": (holds, true_fun), "false_fun": (~holds, false_fun)}, operands)
        return (true_fun if holds else false_fun)(*operands)

    return _called("cond", choose, pred, *operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """`branches[index](*operands)`, with the index clamped to those there are.

    As `cond`, for more than two: an index with one value calls one branch; inside `vmap`, where it may differ, the
    branches that some example takes run, each once for all.

    Parameters
    ----------
    index
        An integer scalar.
    branches
        One function of the operands or more.
    operands
        Pytrees of arrays.

    Raises
    ------
    ShapeError, DtypeError, ArgumentTypeError, ArgumentError
        `index` is no integer scalar, `branches` no sequence of functions or empty; results of several branches that do
        not go together.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.vmap(lambda i, x: ad.switch(i, [ad.sin, ad.exp, ad.negative], x))(np.arange(4), np.zeros(4))
    array([ 0.,  1., -0., -0.])
    """
    if not isinstance(branches, (list, tuple)):
        raise errors.ArgumentTypeError(f"switch: branches are a list or tuple of functions, received {branches!r}")
    if not branches:
        raise errors.ArgumentError("switch: branches is empty; there is nothing to choose from")
    _check_callable("switch", **{f"branches[{i}]": branch for i, branch in enumerate(branches)})
    last = len(branches) - 1

    def choose(base: Backend, index: Any, *operands: Any) -> Any:
        chosen = _decided(index, "switch: index", "iu")
        if isinstance(chosen, Tensor):
            number = clip(chosen, 0, last)
            named = {f"branches[{i}]": (number == i, branch) for i, branch in enumerate(branches)}
            return _each("switch", named, operands)
        return branches[min(max(chosen, 0), last)](*operands)

    return _called("switch", choose, index, *operands)


def while_loop(cond_fun: Function, body_fun: Function, init: Any) -> Any:
    """`init` taken further by `body_fun` as long as `cond_fun` holds for it.

    Inside `vmap`, where examples may end at different steps, it runs until all have; those that have keep their carry.
    Derivatives go forward alone (`jvp`, `jacobian(mode="forward")`): in reverse mode use `fori_loop` or `scan`.

    Parameters
    ----------
    cond_fun
        From the carry to a boolean scalar.
    body_fun
        From the carry to the next carry, of the same structure, shapes and dtypes.
    init
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it.

    Raises
    ------
    GraphError
        Reverse mode tracks the carry, or what the body uses of its closure. It is raised before the first step, or, for
        what only a step can show, after that.
    ShapeError, DtypeError, ArgumentError
        The carry changes its type, with the place in the tree; the predicate is no boolean scalar.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    np.int64(192)
    """
    _check_callable("while_loop", cond_fun=cond_fun, body_fun=body_fun)

    def loop(base: Backend, init: Any) -> Any:
        carry = _Carry("while_loop", init, base)
        leaves = carry.start()
        _refuse_reverse(carry, leaves)
        _refuse_closure(body_fun)
        while True:
            state = carry.tree(leaves)
            go = _decided(cond_fun(state), "while_loop: the result of cond_fun", "b")
            if go is False or (isinstance(go, Tensor) and not go.device.values_of(go._array).any()):
                return state
            leaves = carry.advance(body_fun, leaves, go)
            _refuse_reverse(carry, leaves)

    return _called("while_loop", loop, init)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init: Any) -> Any:
    """`init` taken further by `body_fun(i, carry)` for each i from `lower` to before `upper`.

    It is a Python loop over Python integers, and differentiable in every mode. Inside `vmap`, where bounds may differ
    between examples, it runs the steps of the longest; examples that are through keep their carry. If `lower` differs,
    i is a tensor.

    Parameters
    ----------
    lower, upper
        Integer scalars; none or few steps are taken where `upper` is not above `lower`.
    body_fun
        From i and the carry to the next carry, of the same structure, shapes and dtypes.
    init
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it.

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        A bound is no integer scalar; the carry changes its type, with the place in the tree.

    Examples
    --------
    >>> import adjoint as ad
    >>> power = lambda x: ad.fori_loop(0, 5, lambda i, c: c * x, 1.0)
    >>> ad.grad(power)(2.0)
    np.float64(80.0)
    """
    _check_callable("fori_loop", body_fun=body_fun)

    def loop(base: Backend, lower: Any, upper: Any, init: Any) -> Any:
        first, last = (_decided(x, f"fori_loop: {end}", "iu") for x, end in ((lower, "lower"), (upper, "upper")))
        first, last = (x.astype(dtypes.int64) if isinstance(x, Tensor) else x for x in (first, last))
        carry = _Carry("fori_loop", init, base)
        leaves = carry.start()
        steps = last - first
        if isinstance(steps, Tensor):
            steps = int(steps.device.values_of(steps._array).max(initial=0))
        for t in range(steps):
            i = first + t
            leaves = carry.advance(lambda c, i: body_fun(i, c), leaves, i < last, i)
        return carry.tree(leaves)

    return _called("fori_loop", loop, lower, upper, init)


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """A loop over the slices of arrays that carries something along, and stacks what each step gives.

    It is differentiable in every mode. As in

        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Parameters
    ----------
    f
        From the carry and a slice to a pair: the next carry, of the same structure, shapes and dtypes, and y, a pytree
        of arrays whose type is that of the first.
    init
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it.
    xs
        A pytree of arrays of one length along the first axis, by which they are sliced; None gives f None.
    length
        The number of steps, needed without xs.
    reverse
        Go from the last slice to the first; ys are where their slices are.
    checkpoint_every
        How many steps are one chunk, of which reverse mode keeps nothing but its first carry and its slices: the steps
        of one chunk at a time are run again in the walk back. With the square root of the length, memory grows as the
        square root of the length.

    Returns
    -------
    tuple
        The last carry, and the ys stacked along a new first axis. Where there is no step, f is called once, with
        zeros for a slice, for the shapes and dtypes of the ys.

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        xs of different lengths; no length, or a negative one; the carry or y changes its type, with the place in the
        tree; f does not return a pair; `checkpoint_every` is not positive.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 1., 3.]))
    """
    _check_callable("scan", f=f)

    def loop(base: Backend, init: Any, xs: Any) -> Any:
        return _scan("scan", base, f, init, xs, length, reverse, checkpoint_every)

    return _called("scan", loop, init, xs)  # type: ignore[no-any-return]


def map(f: Function, xs: Any) -> Any:
    """f of each slice of the arrays along their first axis, one after the other, stacked.

    `vmap` computes the same for all together; `map` takes the memory of one at a time, and f may do what differs from
    slice to slice. Errors are those of `scan`.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.map(lambda x: x * x, np.arange(3.0))
    array([0., 1., 4.])
    """
    _check_callable("map", f=f)

    def loop(base: Backend, xs: Any) -> Any:
        return _scan("map", base, lambda _, x: ((), f(x)), (), xs, None, False, None)[1]

    return _called("map", loop, xs)


# --- arguments and results -----------------------------------------------------------------------


def _called(name: str, f: Function, *args: Any) -> Any:
    """f(base, *args) with NumPy arrays as tensors of the base, and results as the caller's arguments are.

    Outside of transforms and of other loops, a call without tensors computes on a leaf and gives NumPy arrays, and
    Python floats without floating arrays are NumPy's float64. What meets a tensor of a closure stays a tensor.
    """
    leaves, structure = trees.flatten(args)
    base = base_of(leaves, name)
    outside = active_level() is None and not _inside.get() and not any([isinstance(x, Tensor) for x in leaves])
    arrays: tuple[type, ...] = (np.ndarray, np.generic)
    if outside and not any([is_array(x) and x.dtype.kind in "fc" for x in leaves]):
        arrays = (*arrays, float, complex)
    leaves = [wrap(array_of(x, base, keep=True), base) if isinstance(x, arrays) else x for x in leaves]
    token = _inside.set(True)
    try:
        with creating_on(base) if outside else contextlib.nullcontext():
            out = f(base, *trees.unflatten(structure, leaves))
    finally:
        _inside.reset(token)
    return trees.map(lambda x: _to_caller(x, base), out) if outside else out


def _to_caller(x: Any, base: Backend) -> Any:
    if isinstance(x, Tensor):
        return to_numpy(x._array, base) if x.device is base else x
    return np.asarray(x)[()] if isinstance(x, Scalar) else x


def _check_callable(name: str, **functions: Any) -> None:
    for place, f in functions.items():
        if not callable(f):
            raise errors.ArgumentTypeError(f"{name}: {place} is {f!r}, expected a function")


def _decided(x: Any, what: str, kinds: str) -> Any:
    """The value of a scalar as Python's, or the tensor itself if it differs between examples."""
    wanted = "a boolean scalar" if kinds == "b" else "an integer scalar"
    if not isinstance(x, Tensor):
        if not is_array(x) and not isinstance(x, Scalar):
            raise errors.ArgumentTypeError(f"{what} is {type(x).__name__} {x!r}, expected {wanted}")
        x = np.asarray(x)
    if x.dtype.kind not in kinds:
        hint = "compare it, as in x != 0" if kinds == "b" else "convert it with astype"
        raise errors.DtypeError(f"{what} is {x.dtype}, expected {wanted}; {hint}")
    if x.shape != ():
        hint = "any() or all() makes one of many, ad.where chooses by elements" if kinds == "b" else "index it"
        raise errors.ShapeError(f"{what} has shape {x.shape}, expected {wanted}; {hint}, ad.vmap runs for each")
    return x if isinstance(x, Tensor) and _below(x)[2] else x.item()


def _tensor(x: Any, dtype: DType | None, base: Backend, what: str) -> Tensor[Any]:
    """A leaf as a tensor; a Python number in this dtype, if that can hold it."""
    if isinstance(x, Tensor):
        return x
    if not is_array(x) and not isinstance(x, Scalar):
        raise errors.ArgumentTypeError(f"{what} is {type(x).__name__} {x!r}, expected a tensor or a number")
    if not weak(x) or dtype is None or dtypes.promote_scalar(dtype, x) is not dtype:
        dtype = None
    return wrap(base.from_numpy(dtypes.values_of(x, dtype, what), copy=True), base)


# --- what stays the same from step to step -------------------------------------------------------


class _Kind:
    """The structure, shapes and dtypes of a tree of tensors, which the trees of later steps have too."""

    def __init__(self, what: str, tree: Any, base: Backend) -> None:
        self.what, self.base = what, base
        leaves, self.structure = trees.flatten(tree)
        self.first = [x if isinstance(x, Tensor) else self._made(i, x, None) for i, x in enumerate(leaves)]
        self.specs: list[tuple[Shape, DType]] = [(x.shape, x.dtype) for x in self.first]

    def _made(self, i: int, x: Any, dtype: DType | None) -> Tensor[Any]:
        return _tensor(x, dtype, self.base, self.what + trees.paths(self.structure)[i])

    def tree(self, leaves: Sequence[Any]) -> Any:
        return trees.unflatten(self.structure, leaves)

    def fit(self, tree: Any) -> list[Tensor[Any]]:
        """The leaves of a tree of this kind; raises where it is of another."""
        leaves, structure = trees.flatten(tree)
        if structure != self.structure:
            raise errors.ArgumentError(
                f"{self.what} changed its structure{_first_difference(self.structure, structure)}: it was "
                f"{self.structure}, and became {structure}"
            )
        for i, (shape, dtype) in enumerate(self.specs):
            x = leaves[i]
            if not isinstance(x, Tensor):
                x = leaves[i] = self._made(i, x, dtype)
            if x.shape != shape:
                self.refuse(errors.ShapeError, i, x, "shapes stay")
            if x.dtype is not dtype:
                self.other_dtype(i, x)
        return leaves

    def other_dtype(self, i: int, x: Tensor[Any]) -> None:
        self.refuse(errors.DtypeError, i, x, "dtypes stay; astype converts what the first step gets, or what it gives")

    def refuse(self, error: type[errors.AdjointError], i: int, x: Tensor[Any], hint: str) -> None:
        shape, dtype = self.specs[i]
        raise error(
            f"{self.what}{trees.paths(self.structure)[i]} was {dtype} of shape {shape}, and became {x.dtype} of shape "
            f"{x.shape}; {hint}"
        )


def _first_difference(old: Any, new: Any) -> str:
    """Where a leaf is in one of two structures alone."""
    before, after = trees.paths(old), trees.paths(new)
    gone = [path for path in before if path not in after]
    come = [path for path in after if path not in before]
    return f" ({gone[0] or 'the leaf'} is gone)" if gone else f" ({come[0] or 'a leaf'} is new)" if come else ""


class _Wider(Exception):
    """Python numbers of the first carry have another dtype now: the first step has to be run again."""


class _Carry(_Kind):
    """What a loop carries. Python numbers it starts from take the dtype that the first step gives them."""

    def __init__(self, name: str, init: Any, base: Backend) -> None:
        super().__init__(f"{name}: the carry", init, base)
        self.numbers = {i: x for i, x in enumerate(trees.flatten(init)[0]) if weak(x)}
        self.wider: dict[int, DType] = {}

    def start(self) -> list[Tensor[Any]]:
        """The first leaves, as objects of their own: the body may assign to them."""
        return [same(x) for x in self.first]

    def fit(self, tree: Any) -> list[Tensor[Any]]:
        leaves = super().fit(tree)
        numbers, self.numbers = self.numbers, {}
        if not self.wider:
            return leaves
        for i, dtype in self.wider.items():
            self.first[i] = self._made(i, numbers[i], dtype)
            self.specs[i] = (), dtype
        self.wider = {}
        raise _Wider

    def other_dtype(self, i: int, x: Tensor[Any]) -> None:
        if i not in self.numbers or dtypes.promote_scalar(x.dtype, self.numbers[i]) is not x.dtype:
            super().other_dtype(i, x)
        self.wider[i] = x.dtype

    def adapted(self, run: Callable[[list[Tensor[Any]]], Any], leaves: list[Tensor[Any]]) -> Any:
        """run(leaves), with the first leaves again if their dtypes had to change."""
        try:
            return run(leaves)
        except _Wider:
            return run(self.start())

    def advance(self, f: Function, leaves: list[Tensor[Any]], go: Any, *operands: Any) -> list[Tensor[Any]]:
        """One step, f(carry, *operands), of all examples or of those that `go` holds for."""

        def step(leaves: list[Tensor[Any]]) -> list[Tensor[Any]]:
            state = self.tree(leaves)
            place = _example(go) if isinstance(go, Tensor) else {}
            if place is None:
                return leaves
            if not place:
                return self.fit(f(state, *operands))
            found = self.fit(f(*_guarded(go, place, (state, *operands))))
            return [run("where", (go, new, old)) for new, old in zip(found, leaves, strict=True)]

        return self.adapted(step, leaves)  # type: ignore[no-any-return]


# --- examples that go different ways -------------------------------------------------------------


def _below(x: Tensor[Any]) -> tuple[Array, Backend, list[Backend]]:
    """The leaf's array under a tensor, the leaf, and the levels whose examples its first axes count, in order."""
    array, level = x._array, x._device
    counted: list[Backend] = []
    while isinstance(level, Decorator):
        if isinstance(level, Batched) and level.varies(array):
            counted.append(level)
        array, level = level.unwrap(array), level.inner
    return array, level, counted[::-1]


def _example(mask: Tensor[Any]) -> dict[Backend, int] | None:
    """One example that the mask holds for, as its place at each level; empty if it holds for all, None if for none."""
    array, leaf, levels = _below(mask)
    values = leaf.to_numpy(array)
    if values.all():
        return {}
    if not values.any():
        return None
    return dict(zip(levels, np.argwhere(values)[0].tolist(), strict=True))


def _guarded(mask: Tensor[Any], place: dict[Backend, int], operands: Any) -> Any:
    """The operands, with those of one example in the place of all that the mask excludes.

    A function is not computed outside of its domain then, and `where` lets no derivative through to what is replaced.
    """

    def guard(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        array, leaf, levels = _below(x)
        if not any([level in place for level in levels]):
            return x  # the same for those that the mask holds for
        one = leaf.index(array, key=tuple([place.get(level, 0) for level in levels]))
        return run("where", (mask, x, wrap(one, leaf)))

    return trees.map(guard, operands)


def _each(name: str, branches: dict[str, tuple[Tensor[Any], Function]], operands: tuple[Any, ...]) -> Any:
    """For each example the result of the branch whose mask holds for it."""
    taken: list[tuple[str, Tensor[Any], Any]] = []
    for label, (mask, branch) in branches.items():
        place = _example(mask)
        if place is None:
            continue
        if not place:
            return branch(*operands)
        taken.append((label, mask, branch(*_guarded(mask, place, operands))))
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
        _of_one_kind(name, [label for label, _, _ in taken], trees.paths(structure)[i], column, taken[0][1].device)
        for i, column in enumerate(zip(*[trees.flatten(out)[0] for _, _, out in taken], strict=True))
    ]
    leaves = [column[0] for column in columns]
    for k, (_, mask, _) in enumerate(taken[1:], 1):
        leaves = [run("where", (mask, column[k], x)) for column, x in zip(columns, leaves, strict=True)]
    return trees.unflatten(structure, leaves)


def _of_one_kind(
    name: str, labels: Sequence[str], path: str, column: Sequence[Any], device: Backend
) -> list[Tensor[Any]]:
    """A leaf of the results of several branches, as tensors of one shape and dtype."""
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


# --- reverse mode and loops of unknown length ----------------------------------------------------


def _in_reverse(x: Any) -> bool:
    """Whether reverse mode tracks a tensor, on some level."""
    if not isinstance(x, Tensor):
        return False
    array, level = peek(x), x._device
    while isinstance(level, Decorator):
        if isinstance(level, Autodiff) and level.varies(array):
            return True
        array, level = level.unwrap(array), level.inner
    return False


def _refuse_reverse(carry: _Carry, leaves: Sequence[Tensor[Any]]) -> None:
    for i, x in enumerate(leaves):
        if _in_reverse(x):
            _refuse(f"{carry.what}{trees.paths(carry.structure)[i]}")


def _refuse_closure(body_fun: Any) -> None:
    """Raises for what can be seen in a function's closure before it is run."""
    code = getattr(body_fun, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(body_fun, "__closure__", None) or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(value, (Tensor, tuple, list, dict)) and any([_in_reverse(x) for x in trees.flatten(value)[0]]):
            _refuse(f"while_loop: {name!r}, which body_fun uses,")


def _refuse(what: str) -> None:
    raise errors.GraphError(
        f"{what} is tracked by reverse mode, which keeps every step for the walk back, and how many steps a while_loop "
        "takes is not known before. Use fori_loop or scan with a fixed number of steps, forward mode (ad.jvp, "
        "ad.jacobian with mode='forward'), or detach() what needs no derivative before the loop"
    )


# --- scan ----------------------------------------------------------------------------------------


def _scan(
    name: str, base: Backend, f: Function, init: Any, xs: Any, length: int | None, reverse: bool, every: int | None
) -> tuple[Any, Any]:
    rows, layout = trees.flatten(xs)
    steps = _steps(name, rows, layout, length)
    carry = _Carry(name, init, base)
    ys: _Kind | None = None

    def piece(leaves: list[Tensor[Any]], rows: list[Tensor[Any]], size: int) -> tuple[Any, list[Tensor[Any]]]:
        """So many steps: the leaves of the carry after them, and those of the ys, stacked."""
        nonlocal ys
        found = []
        for i in range(size - 1, -1, -1) if reverse else range(size):
            out = f(carry.tree(leaves), trees.unflatten(layout, [row[i] for row in rows]))
            if not isinstance(out, tuple) or len(out) != 2:
                raise errors.ArgumentTypeError(f"{name}: f returns a pair (carry, y), received {out!r}")
            leaves = carry.fit(out[0])
            ys = ys or _Kind(f"{name}: the result y", out[1], base)
            found.append([same(y) for y in ys.fit(out[1])])  # the next step may assign to the object
        if reverse:
            found.reverse()
        return leaves, [stack(column) for column in zip(*found, strict=True)]

    if not steps:
        with base.leaf.quiet():
            blank = [zeros((1, *row.shape[1:]), dtype=row.dtype, device=base) for row in rows]
            _, stacks = carry.adapted(lambda leaves: piece(leaves, blank, 1), carry.start())
        assert ys is not None
        empty = [zeros((0, *y.shape[1:]), dtype=y.dtype, device=base) for y in stacks]
        return carry.tree(carry.start()), ys.tree(empty)
    leaves, stacks = carry.adapted(lambda leaves: piece(leaves, rows, steps), carry.start())
    assert ys is not None
    return carry.tree(leaves), ys.tree(stacks)


def _steps(name: str, rows: Sequence[Any], layout: Any, length: int | None) -> int:
    """How many steps there are; raises where arrays disagree."""
    if length is not None:
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
            raise errors.ArgumentTypeError(f"{name}: length is a number of steps, received {length!r}")
        if length < 0:
            raise errors.ArgumentError(f"{name}: length is {length}, a number of steps is not negative")
    steps, source = length, "length"
    for i, x in enumerate(rows):
        path = "xs" + trees.paths(layout)[i]
        if not isinstance(x, Tensor) or not x.ndim:
            error = errors.ShapeError if isinstance(x, Tensor) else errors.ArgumentTypeError
            raise error(
                f"{name}: {path} is {x!r}, which has no first axis to go along; lists and tuples are trees of arrays, "
                "ad.tensor makes one array of them"
            )
        if steps is None:
            steps, source = x.shape[0], path
        elif x.shape[0] != steps:
            says = f"length is {steps}" if source == "length" else f"{source} has {steps}"
            raise errors.ShapeError(f"{name}: {path} has {x.shape[0]} slices along its first axis, and {says}")
    if steps is None:
        raise errors.ArgumentError(f"{name}: xs has no arrays; say the number of steps, length=")
    return int(steps)
