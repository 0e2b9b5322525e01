"""Choices and loops as functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

Plain Python `if`, `while` and `for` are always allowed where the values they ask for are known. These functions are for
bodies that `vmap` runs for many examples at once, which may choose differently and end at different steps. Names,
signatures and meanings are those of `jax.lax`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.concrete import Staged
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import creating_on, current_level
from adjoint.functions.arguments import (
    as_flag,
    as_integer,
    as_size,
    called,
    check_callable,
    is_array,
    is_value,
    kind_of,
)
from adjoint.functions.creation import full, zeros
from adjoint.functions.elementwise import clip
from adjoint.functions.indexing import along
from adjoint.functions.ranges import arange
from adjoint.functions.shape import concat, stacked
from adjoint.lines import line_of, stack_level
from adjoint.operands import adapted, chosen_number, concrete_values, deferred_check, in_dtype
from adjoint.random_keys import Replay, replayed
from adjoint.tensor import Number, Scalar, Tensor, raw_array, same, wrap
from adjoint.transforms.arguments import Function, array_of, base_of, check_pair, to_numpy
from adjoint.transforms.batches import vmap
from adjoint.transforms.carries import Carry, TreeType, assignable, examples_of, select_per_example
from adjoint.transforms.checkpoints import checkpoint
from adjoint.transforms.closures import Held, closed_over, mentions, opened, substituted
from adjoint.transforms.levels import Tensors
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.recomputed import HiddenTensorError, recomputed
from adjoint.transforms.scanned import scanned
from adjoint.transforms.staged import Choices, branched, chosen_per_example, compiled_loop, is_staged

AHEAD = 16  # steps of a loop with max_steps that are recorded one by one where their number may turn out to be small

_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("adjoint_control", default=False)


@of_any_library
def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """`true_fun(*operands)` where the predicate holds, `false_fun(*operands)` elsewhere.

    A predicate with one value calls one function; the other one is not run, and not checked. Inside `vmap`, where it
    may differ between examples, each function runs once for all examples, unless none takes it, and every example gets
    the result of its own. A function is given the operands of those that take it (for the others, those of one that
    does), so that no nan of an excluded branch comes into derivatives: this holds for what is passed as operands, not
    for what a function finds in its closure. Where the predicate has no value before a program runs, as under
    `jax.jit`, the program chooses.

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
    TrackedError
        A program that runs later chooses, and a branch uses tensors that are neither operands nor in its closure.

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
    check_callable("cond", true_fun, "true_fun")
    check_callable("cond", false_fun, "false_fun")

    def choose(base: Backend, pred: Any, *operands: Any) -> Any:
        holds = _decided(pred, "cond: pred", "b", late=True)
        if isinstance(holds, Tensor):
            if is_staged(holds) and not examples_of(holds)[2]:
                return branched("cond", base, holds.astype(dtypes.int32), [false_fun, true_fun], operands)
            named = {"true_fun": (holds, true_fun), "false_fun": (~holds, false_fun)}
            return _per_example("cond", base, holds, named, operands)
        return (true_fun if holds else false_fun)(*operands)

    return _called("cond", choose, pred, *operands)


@of_any_library
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
        raise errors.ArgumentTypeError(
            f"switch: branches are a list or tuple of functions, received {errors.shown(branches)}"
        )
    if not branches:
        raise errors.ArgumentError("switch: branches is empty; there is nothing to choose from")
    for i, branch in enumerate(branches):
        check_callable("switch", branch, f"branches[{i}]")
    last = len(branches) - 1

    def choose(base: Backend, index: Any, *operands: Any) -> Any:
        place = _decided(index, "switch: index", "iu", late=True)
        if isinstance(place, Tensor):
            number = clip(place, 0, last)
            if is_staged(place) and not examples_of(place)[2]:
                return branched("switch", base, number.astype(dtypes.int32), branches, operands)
            named = {f"branches[{i}]": (number == i, branch) for i, branch in enumerate(branches)}
            return _per_example("switch", base, place, named, operands)
        return branches[min(max(place, 0), last)](*operands)

    return _called("switch", choose, index, *operands)


@of_any_library
def while_loop(cond_fun: Function, body_fun: Function, init_val: Any, *, max_steps: int | None = None) -> Any:
    """`init_val` taken further by `body_fun` as long as `cond_fun` holds for it.

    Inside `vmap`, where examples may end at different steps, it runs until all have; those that have keep their carry.
    Derivatives go forward alone (`jvp`, `jacobian`, which finds out): in reverse mode use `fori_loop` or `scan`.
    Where the predicate has no value before a program runs, as under `jax.jit`, it is a loop of the program.

    Parameters
    ----------
    cond_fun
        From the carry to a boolean scalar.
    body_fun
        From the carry to the next carry, of the same structure, shapes and dtypes.
    init_val
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it, or stays one.
    max_steps
        How many steps there are at most, with which reverse mode works, too: it keeps what each step needs, and a
        compiled loop keeps so many carries.

    Raises
    ------
    ForwardOnlyError
        Without `max_steps` reverse mode tracks the carry, or what the body uses of its closure. It is raised before the
        first step, or, for what only a step can show, after that.
    ConvergenceError
        The predicate still holds after `max_steps`.
    ShapeError, DtypeError, ArgumentError
        The carry changes its type, with the place in the tree; the predicate is no boolean scalar.
    TrackedError
        Of a compiled loop: a step assigns to a tensor from outside, finds one elsewhere than in the carry and the
        closure, or draws random numbers under `jax.jit`.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    np.int64(192)
    >>> ad.grad(lambda x: ad.while_loop(lambda x: x < 100, lambda x: 2 * x, x, max_steps=10))(3.0)
    np.float64(64.0)
    """
    check_callable("while_loop", cond_fun, "cond_fun")
    check_callable("while_loop", body_fun, "body_fun")
    most = None if max_steps is None else as_integer(max_steps, "while_loop", "max_steps", 0)

    def loop(base: Backend, init: Any) -> Any:
        return _while("while_loop", base, cond_fun, body_fun, init, most)

    return _called("while_loop", loop, init_val)


@of_any_library
def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """`init_val` taken further by `body_fun(i, carry)` for each i from `lower` to before `upper`.

    It is a Python loop over Python integers, and differentiable in every mode. To a bound that has no value before a
    program runs, as under `jax.jit`, it is a `while_loop` of the program, with its derivatives and errors, and i is a
    tensor. Inside `vmap`, where bounds may differ between examples, it runs the steps of the longest; examples that are
    through keep their carry. If `lower` differs, i is a tensor.

    Parameters
    ----------
    lower, upper
        Integer scalars; none or few steps are taken where `upper` is not above `lower`.
    body_fun
        From i and the carry to the next carry, of the same structure, shapes and dtypes.
    init_val
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it, or stays one.

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
    check_callable("fori_loop", body_fun, "body_fun")

    def loop(base: Backend, lower: Any, upper: Any, init: Any) -> Any:
        ends = [("lower", lower), ("upper", upper)]
        leaf = base.leaf
        known: Any = leaf.is_length if isinstance(leaf, Staged) else lambda x: False
        first, last = (x if known(x) else _decided(x, f"fori_loop: {end}", "iu", late=True) for end, x in ends)
        first, last = (x.astype(dtypes.int64) if isinstance(x, Tensor) else x for x in (first, last))
        steps = last - first
        if isinstance(steps, Tensor) and is_staged(steps):
            step = lambda s: (s[0] + 1, s[1], body_fun(s[0], s[2]))
            return _while("fori_loop", base, lambda s: s[0] < s[1], step, (last - steps, last, init))[2]
        body, reasons = body_fun, list[BaseException]()
        if not isinstance(steps, Tensor):
            if (found := _counted(base, body, first, steps, init, reasons)) is not None:
                return found[0]
            body = _noted("fori_loop", body, steps, reasons)
        carry = Carry("fori_loop", init, base)
        leaves = carry.start()
        if isinstance(steps, Tensor):
            steps = int(concrete_values(steps, "fori_loop").max(initial=0))
        for t in range(steps):
            i = first + t
            leaves = carry.advance(
                lambda c, i: called("fori_loop", "body_fun(i, carry)", body, i, c), leaves, i < last, i
            )
        return carry.state(leaves)

    return _called("fori_loop", loop, lower, upper, init_val)


MANY = 1000  # steps, which are recorded in a second


def _noted(name: str, f: Function, steps: int, reasons: Sequence[BaseException]) -> Function:
    """A step, which warns where many are recorded one by one: once the first one has shown that it runs so."""
    if not reasons or steps <= MANY:
        return f
    taken = 0

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == 2:
            line = line_of(reasons[0])
            hint = "; compute with the number of the step itself, as in i * 1.0 or ad.asarray(x)[i]"
            warnings.warn(
                f"{name}: {steps} steps are recorded one by one, which takes time and memory for each, since a step "
                f"cannot be a part of a loop of the program: {errors.said(reasons[0])}"
                f"{hint if name == 'fori_loop' else ''}{'' if line is None else f'{chr(10)}  at {line}'}",
                RuntimeWarning,
                stacklevel=stack_level(),
            )
        return f(*args)

    return run


def _counted(base: Backend, body: Function, first: Any, steps: int, init: Any, reasons: list[BaseException]) -> Any:
    """The loop as a scan over its numbers, where the leaf's program loops over rows."""
    leaf = base.leaf
    if not isinstance(leaf, Staged) or not leaf.scans or steps < 1:
        return None
    if mentions(body, "type"):
        reasons.append(errors.TrackedError("body_fun calls type, which tells the number of a step from Python's"))
        return None
    numbers = arange(first, first + steps, dtype=dtypes.int64, device=base)
    step = lambda carry, i: (body(chosen_number(i[0], (first, first + steps - 1)), carry), ())
    return scanned("fori_loop", base, step, init, [numbers], list, steps, False, 1, reasons)


@of_any_library
def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """A loop over the slices of arrays that carries something along, and stacks what each step gives.

    It is differentiable in every mode. As in::

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
        The first carry, a pytree of arrays. A Python number takes the dtype that the first step gives it, or stays one.
    xs
        A pytree of arrays of one length along the first axis, by which they are sliced; None gives f None.
    length
        The number of steps, needed without xs.
    reverse
        Go from the last slice to the first; ys are where their slices are.
    checkpoint_every
        How many steps are one chunk, of which reverse mode keeps nothing but its first carry and its slices: the steps
        of one chunk at a time are run again in backward. With the square root of the length, memory grows as the
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
    check_callable("scan", f)

    def loop(base: Backend, init: Any, xs: Any) -> Any:
        return _scan("scan", base, f, init, xs, length, reverse, checkpoint_every)

    return _called("scan", loop, init, xs)  # type: ignore[no-any-return]


@of_any_library
def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """f of each slice of the arrays along their first axis, one after the other, stacked.

    Where f gives shape (m,), the result is (slices, m). `vmap` computes the same for all together; `map` takes the
    memory of one at a time, and f may do what differs from slice to slice. With a `batch_size`, so many are computed
    together by `vmap`, one batch after the other. Errors are those of `scan`.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.map(lambda x: x * x, np.arange(3.0))
    array([0., 1., 4.])
    """
    check_callable("map", f)
    if batch_size is not None:
        batch_size = as_integer(batch_size, "map", "batch_size", 1)

    def loop(base: Backend, xs: Any) -> Any:
        if batch_size is not None:
            starts = range(0, max(_steps("map", *trees.flatten(xs), None), 1), batch_size)
            batches = [slice(a, a + batch_size) for a in starts]
            run = vmap(f, randomness="split")  # as one after the other they would draw each their own
            parts = [run(trees.map(lambda x, some=some: x[some], xs)) for some in batches]
            return trees.map(lambda *ys: concat(ys), *parts)
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
    before, level = _inside.get(), current_level()
    outside = level is None and not before and not any([isinstance(x, Tensor) for x in leaves])
    as_outside = outside or (not before and _is_recorded_outside(name, leaves))  # where it is not recorded
    arrays: tuple[type, ...] = (np.ndarray, np.generic)
    if as_outside and not any([_is_of_floats(x) for x in leaves]):
        arrays = (*arrays, float, complex)
        leaves = [in_dtype(x, x.dtype, base, name) if _is_chosen_float(x) else x for x in leaves]
    leaves = [wrap(array_of(x, base, keep=True), base) if isinstance(x, arrays) else x for x in leaves]
    try:
        _inside.set(True)
        with creating_on(base) if outside else contextlib.nullcontext():
            out = f(base, *trees.unflatten(structure, leaves))
    finally:
        _inside.set(before)
    if outside:
        return trees.map(lambda x: _to_caller(x, base), out)
    if as_outside:
        return trees.map(lambda x: _to_recorded(x, base, name), out)
    if before or name in ("cond", "switch") or not (level is None or _is_recorded(level)):
        return out
    return trees.map(lambda x: adapted([x], name)[0] if x.__class__ is Number else x, out)  # a result, as of transforms


def _is_recorded_outside(name: str, leaves: Sequence[Any]) -> bool:
    """Whether a call that is recorded would be one without tensors, outside of transforms, if it were not."""
    level = current_level()
    if level is None or not _is_recorded(level):
        return False
    tensors = any([isinstance(x, Tensor) and x.__class__ is not Number for x in leaves])
    if not tensors or name in ("cond", "switch"):  # what these choose by may be no array
        return not tensors
    return level.leaf.arrays_on is level


def _is_recorded(level: Backend) -> bool:
    """Whether a level is no transform's, but stands for what a compiled function is called on."""
    return level.leaf.is_fresh and not (isinstance(level, Decorator) and (level.is_fresh or level.aliases is not None))


def _is_of_floats(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.__class__ is not Number and x.dtype.kind in dtypes.INEXACT
    return is_array(x) and x.dtype.kind in dtypes.INEXACT


def _is_chosen_float(x: Any) -> bool:
    return x.__class__ is Number and x.dtype.kind in dtypes.INEXACT


def _to_recorded(x: Any, base: Backend, name: str) -> Any:
    """What stands for the NumPy array that a call which is not recorded gives."""
    if x.__class__ is Number:
        return in_dtype(x, x.dtype, base, name)
    return wrap(base.from_numpy(np.asarray(x), copy=False), base) if isinstance(x, Scalar) else x


def _to_caller(x: Any, base: Backend) -> Any:
    if isinstance(x, Tensor):
        return to_numpy(x._array, base) if x.device is base else x
    return np.asarray(x)[()] if isinstance(x, Scalar) else x


def _decided(x: Any, what: str, kinds: str, *, late: bool = False) -> Any:
    """The value of a scalar as Python's, or the tensor itself if it differs between examples.

    The tensor, too, where nobody has to know the value before the compiled function runs, because that may be `late`.
    """
    wanted = "a boolean scalar" if kinds == "b" else "an integer scalar"
    if not isinstance(x, Tensor):
        if not is_value(x):
            raise errors.ArgumentTypeError(f"{what} is {kind_of(x)} {errors.shown(x)}, expected {wanted}")
        x = np.asarray(x)
    if x.dtype.kind not in kinds:
        hint = "compare it, as in x != 0" if kinds == "b" else "convert it with astype"
        raise errors.DtypeError(f"{what} is {x.dtype}, expected {wanted}; {hint}")
    if x.shape != ():
        hint = "any() or all() makes one of many, ad.where chooses by elements" if kinds == "b" else "index it"
        raise errors.ShapeError(f"{what} has shape {x.shape}, expected {wanted}; {hint}, ad.vmap runs for each")
    return (
        x
        if isinstance(x, Tensor) and (examples_of(x)[2] or (late and is_staged(x)))
        else concrete_values(x, what).item()
    )


def _per_example(name: str, base: Backend, choice: Tensor[Any], named: Choices, operands: tuple[Any, ...]) -> Any:
    """For each example the result of its choice."""
    if is_staged(choice):
        return chosen_per_example(name, base, named, operands)
    return select_per_example(name, named, operands)


def _while(name: str, base: Backend, cond_fun: Function, body_fun: Function, init: Any, most: int | None = None) -> Any:
    carry = Carry(name, init, base)
    leaves = carry.start()
    if most is None:
        _refuse_reverse(carry, leaves)
        for x in closed_over(body_fun).values():
            if _in_reverse(x):
                _refuse(f"{name}: a tensor of shape {x.shape} that body_fun closes over")
    step = lambda c: called(name, "body_fun(carry)", body_fun, c)
    waits = isinstance(base.leaf, Staged) and base.leaf.scans
    before: Any = True
    for taken in itertools.count():
        state, drawn = carry.state(leaves), Replay()
        with replayed(drawn) if waits else contextlib.nullcontext():
            go = _goes(called(name, "cond_fun(carry)", cond_fun, state))
        if isinstance(before, Tensor):
            go = before & go  # an example that has ended has, also if the predicate draws
        before = go
        if isinstance(go, Tensor) and is_staged(go):
            if drawn.keys:
                first = init if not taken else state
                return _drawing(name, base, cond_fun, body_fun, go, first, most, taken)
            if most is not None:
                return _bounded(base, cond_fun, body_fun, init if not taken else state, most, taken)
            return compiled_loop(name, carry, leaves, cond_fun, body_fun, _goes)
        if go is False or (isinstance(go, Tensor) and not concrete_values(go, name).any()):
            return state
        if most is not None and taken == most:
            raise _too_many(most)
        if waits and not drawn.keys and (most is None or taken >= AHEAD) and any([is_staged(x) for x in leaves]):
            # the values that decide are known, those carried beside them are not: a loop of the program all the same
            waits = False
            with contextlib.suppress(errors.AdjointError):  # a step that asks for its values, say: these are known here
                first = init if not taken else state
                if most is not None:
                    return _bounded(base, cond_fun, body_fun, first, most, taken)
                whole = Carry(name, first, base)
                return compiled_loop(name, whole, whole.start(), cond_fun, body_fun, _goes)
        leaves = carry.advance(step, leaves, go)
        if most is None:
            _refuse_reverse(carry, leaves)
    return None


def _bounded(base: Backend, cond_fun: Function, body_fun: Function, init: Any, most: int, taken: int) -> Any:
    """The loop of a compiled function as a scan, whose steps do nothing from the end on; some may be taken before."""

    def step(state: Any, _: Any) -> Any:
        return cond(cond_fun(state), body_fun, lambda state: state, state), ()

    state, _ = _scan("while_loop", base, step, init, None, most - taken, False, None)
    goes = _goes(cond_fun(state))
    if isinstance(goes, Tensor):
        deferred_check(goes, lambda values: ~values.any(), lambda _: _too_many(most))
    elif goes:
        raise _too_many(most)
    return state


def _drawing(
    name: str,
    base: Backend,
    cond_fun: Function,
    body_fun: Function,
    go: Tensor[Any],
    init: Any,
    most: int | None,
    taken: int,
) -> Any:
    """The loop of a compiled function whose predicate draws: it is asked once a step, and what it says is carried."""

    def body(both: Any) -> Any:
        new = called(name, "body_fun(carry)", body_fun, both[1])
        goes = _goes(called(name, "cond_fun(carry)", cond_fun, new))
        return goes if isinstance(goes, Tensor) else full((), goes, dtype=dtypes.bool, device=base), new

    holds, state = lambda both: both[0], (go, init)
    if most is not None:
        return _bounded(base, holds, body, state, most, taken)[1]
    carry = Carry(name, state, base)
    return compiled_loop(name, carry, carry.start(), holds, body, _goes)[1]


def _too_many(most: int) -> Exception:
    return errors.ConvergenceError(
        f"while_loop: the predicate still holds after max_steps={most}; allow more steps, or look at what the loop "
        "waits for"
    )


def _goes(go: Any) -> Any:
    return _decided(go, "while_loop: the result of cond_fun", "b", late=True)


# --- reverse mode and loops of unknown length ----------------------------------------------------


def _in_reverse(x: Tensor[Any]) -> bool:
    """Whether reverse mode tracks a tensor, on some level."""
    array, level = raw_array(x), x._device
    while isinstance(level, Decorator):
        if isinstance(level, Autodiff) and level.is_active(array):
            return True
        array, level = level.unwrap(array), level.inner
    return False


def _refuse_reverse(carry: Carry, leaves: Sequence[Tensor[Any]]) -> None:
    for i, x in enumerate(leaves):
        if _in_reverse(x):
            _refuse(carry.place(i))


def _refuse(what: str) -> None:
    raise errors.ForwardOnlyError(
        f"{what} is tracked by reverse mode, which keeps every step for backward, and how many steps the loop "
        "takes is not known before. Say max_steps= of while_loop, use fori_loop or scan with a fixed number of steps, "
        "forward mode (ad.jvp, ad.jacobian with mode='forward'), or detach() what needs no derivative before the loop"
    )


# --- scan ----------------------------------------------------------------------------------------


def _scan(
    name: str, base: Backend, f: Function, init: Any, xs: Any, length: int | None, reverse: bool, every: int | None
) -> tuple[Any, Any]:
    rows, layout = trees.flatten(xs)
    steps, reverse = _steps(name, rows, layout, length), as_flag(reverse, name, "reverse")
    if every is not None:
        every = as_integer(every, name, "checkpoint_every", 1)
    slices, reasons = trees.builder(layout), list[BaseException]()
    if (found := scanned(name, base, f, init, rows, slices, steps, reverse, reasons=reasons)) is not None:
        return found
    f = _noted(name, f, steps, reasons)
    carry = Carry(name, init, base)
    ys: TreeType | None = None

    def piece(f: Function, size: int, leaves: Tensors, rows: Tensors) -> tuple[Tensors, Tensors]:
        """So many steps: the leaves of the carry after them, and those of the ys, stacked."""
        nonlocal ys
        leaves = [assignable(x) for x in leaves]  # f may assign to its own, those given are kept
        collected: Tensors = []  # in one list: one for each step would be work for the garbage collector
        order = range(size - 1, -1, -1) if reverse else range(size)
        for parts in zip(*[along(row, order) for row in rows], strict=True) if rows else itertools.repeat((), size):
            out = called(name, "f(carry, x)", f, carry.state(leaves), slices(parts))
            check_pair(name, out, "f", "(carry, y)")
            leaves = carry.fit(out[0])
            if ys is None:
                ys = TreeType(f"{name}: the result y", out[1], base)
            collected += [same(y) for y in ys.fit(out[1])]
        assert ys is not None
        columns = [collected[i :: len(ys.specs)] for i in range(len(ys.specs))]
        return leaves, [stacked(column[::-1] if reverse else column) for column in columns]

    if not steps:
        with base.leaf.quiet():
            blank = [zeros((1, *row.shape[1:]), dtype=row.dtype, device=base) for row in rows]
            _, stacks = carry.adapted(lambda leaves: piece(f, 1, leaves, blank), carry.start())
        leaves = carry.start()
        stacks = [zeros((0, *y.shape[1:]), dtype=y.dtype, device=base) for y in stacks]
    elif every is None:
        leaves, stacks = carry.adapted(lambda leaves: piece(f, steps, leaves, rows), carry.start())
    else:
        run_again = _Again(name, f, piece)
        leaves, pieces = carry.start(), []
        starts = range(0, steps, every)
        for a in reversed(starts) if reverse else starts:
            chunk = [row[a : a + every] for row in rows]
            size = min(every, steps - a)
            leaves, part = carry.adapted(functools.partial(run_again, size, rows=chunk), leaves)
            pieces.append(part)
        if reverse:
            pieces.reverse()
        stacks = [concat(column) for column in zip(*pieces, strict=True)]
    assert ys is not None
    return carry.state(leaves), ys.tree(stacks)


class _Again:
    """A piece of a scan, of which reverse mode keeps the arguments and runs it again.

    What f closes over becomes an argument. Where f finds tensors elsewhere, in globals or attributes, or the level has
    options, values are made again by `checkpoint`, which sees all, but keeps a node for each primitive.
    """

    def __init__(self, name: str, f: Function, piece: Callable[..., tuple[Tensors, Tensors]]) -> None:
        self.name, self.f, self.piece = name, f, piece
        self.found = closed_over(f)
        self.later, self.closed = opened([f])
        self.sees_all = True

    def __call__(self, size: int, leaves: Tensors, *, rows: Tensors) -> tuple[Tensors, Tensors]:
        cuts = len(leaves), len(leaves) + len(rows)
        now = True

        def flat(xs: Tensors) -> Tensors:
            nonlocal now
            closed = xs[cuts[1] :]
            f = substituted(self.f, dict(zip(self.found, closed, strict=True))) if now else self.later(*closed)[0]
            copies = Held(f).but(Held(self.f)) if now else None  # where a change is lost
            now = False
            after, stacks = self.piece(f, size, xs[: cuts[0]], xs[cuts[0] : cuts[1]])
            if copies is not None and (what := copies.changed()) is not None:
                raise errors.TrackedError(
                    f"{self.name}: {what}, which is outside of it: with checkpoint_every steps run again, from the "
                    "carry and what is closed over alone; carry the new value along, or return it with the others"
                )
            return [*after, *stacks]

        if self.sees_all:
            try:
                out = recomputed(self.name, flat, [*leaves, *rows, *self.closed])
                return out[: cuts[0]], out[cuts[0] :]
            except HiddenTensorError:
                self.sees_all = False
        return checkpoint(self.piece)(self.f, size, leaves, rows)


def _steps(name: str, rows: Sequence[Any], layout: Any, length: int | None) -> int:
    """How many steps there are; raises where arrays disagree."""
    steps, source = None, "length"
    if length is not None:
        steps = as_size(as_integer(length, name, "length", 0), name, "length")
    for x, place in zip(rows, trees.paths(layout), strict=True):
        path = "xs" + place
        if not isinstance(x, Tensor) or not x.ndim:
            error = errors.ShapeError if isinstance(x, Tensor) else errors.ArgumentTypeError
            raise error(
                f"{name}: {path} is {errors.shown(x)}, which has no first axis to go along; lists and tuples are trees "
                "of arrays, ad.tensor makes one array of them"
            )
        if steps is None:
            steps, source = x.shape[0], path
        elif x.shape[0] != steps:
            says = f"length is {steps}" if source == "length" else f"{source} has {steps}"
            raise errors.ShapeError(f"{name}: {path} has {x.shape[0]} slices along its first axis, and {says}")
    if steps is None:
        hint = "" if name == "map" else "; say the number of steps, length="
        raise errors.ArgumentError(f"{name}: xs has no arrays{hint}")
    return steps
