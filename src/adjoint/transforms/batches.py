"""Functions of one example as functions of many."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Array
from adjoint.decorators.batched import Batch, Batched
from adjoint.devices import current_level, transform_level
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_integer,
    as_tensor,
    check_callable,
    check_shape,
    is_numeric,
)
from adjoint.functions.shape import moveaxis, reshape
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import (
    Function,
    array_of,
    base_of,
    named,
    on_level,
    results_of,
    to_numpy,
)


def vmap(
    f: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    randomness: str = "error",
) -> Function:
    """A function that runs f for each example of a batch, all together.

    Where f takes (n,) and gives (m,), the function takes (examples, n) and gives (examples, m).
    On NumPy arrays, where f meets a tensor that `require_grad` tracks, f begins again: what it prints comes twice.

    Parameters
    ----------
    f
        A function of one example. What is no array among its arguments is passed on as it is.
    in_axes
        Which axis of each positional argument counts the examples: an integer for all, or a tuple with an entry per
        argument, where None stands for an argument that all examples share, and a pytree says it for parts of one.
        Keyword arguments are split along their first axis.
    out_axes
        Where that axis goes in results: an integer, or a pytree of them; None for a result that is the same for all.
    axis_size
        The number of examples, if no argument has it.
    randomness
        What random functions in f draw: "split" for each example, "shared" once for all; "error" refuses.

    Raises
    ------
    AxisError, ShapeError, ArgumentError
        An argument without the axis, arguments that disagree about its size, or none that has it; axes that do not fit
        the arguments' structure; a result under out_axes=None that differs between examples.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(np.ones((3, 2)), np.array([1.0, 2.0]))
    array([3., 3., 3.])
    """

    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, (int, np.integer, tuple, type(None))):
        raise errors.ArgumentTypeError(
            f"vmap: in_axes is an integer, None or a tuple, received {errors.shown(in_axes)}; "
            "arguments are for what vmap gives: vmap(f)(x)"
        )
    if axis_size is not None:
        axis_size = as_integer(axis_size, "vmap", "axis_size", 0)
    as_choice(randomness, "vmap", "randomness", ("error", "split", "shared"))

    @named("vmap", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = trees.flatten(args)
        axes = _in_axes(in_axes, args, structure)
        shape = None
        if kwargs:
            more, shape = trees.flatten(kwargs)
            leaves, axes = [*leaves, *more], [*axes, *[0] * len(more)]
        base: Any = base_of(leaves, "vmap")
        as_numpy = current_level() is None and not any([isinstance(x, Tensor) for x in leaves])
        place = functools.partial(_path, structure, shape)
        size = _examples(leaves, axes, axis_size, place)
        level: Batched[Any] = Batched.fresh(base, *((size, "split") if randomness == "split" else (None, randomness)))
        with transform_level(level):
            given = [
                wrap(_batch(base, x, axis), level) if is_numeric(x) else x for x, axis in zip(leaves, axes, strict=True)
            ]
            args = trees.unflatten(structure, given[: structure.num_leaves])
            if shape is not None:
                kwargs = trees.unflatten(shape, given[structure.num_leaves :])
            results, shape = results_of("vmap", f(*args, **kwargs))
            outs = [
                _placed(base, on_level(x, level), axis, size, functools.partial(_result, shape, i))
                for i, (x, axis) in enumerate(zip(results, _out_axes(out_axes, shape), strict=True))
            ]
        return trees.unflatten(shape, [to_numpy(x, base) if as_numpy else wrap(x, base) for x in outs])

    return run


def _batch(base: Any, x: Any, axis: int | None) -> Batch:
    """An argument as an array of the level, the axis of examples in front."""
    array = array_of(x, base)
    return Batch(array, False) if axis is None else Batch(_moved(base, array, axis, 0), True)


def _path(structure: Any, keywords: Any, i: int) -> str:
    """How the i-th leaf of the arguments is written: `argument 0['w']`, `argument y`."""
    paths = trees.paths(structure) + ([] if keywords is None else trees.paths(keywords))
    first, _, rest = paths[i].partition("]")
    return f"argument {first[1:].strip(chr(39))}{rest}"


def _result(structure: Any, i: int) -> str:
    return f"vmap: the result{trees.paths(structure)[i]}"


def _in_axes(in_axes: Any, args: Any, structure: Any) -> list[int | None]:
    """The axis of each leaf of the positional arguments."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise errors.ArgumentError(
            f"vmap: in_axes {errors.shown(in_axes)} has {len(in_axes)} entries for {len(args)} arguments"
        )
    return _as_axes(trees.spread(in_axes, structure, "vmap: in_axes"), "in_axes")


def _out_axes(out_axes: Any, structure: Any) -> list[int | None]:
    """The axis of each leaf of the result."""
    return _as_axes(trees.spread(out_axes, structure, "vmap: out_axes"), "out_axes")


def _as_axes(axes: Sequence[Any], name: str) -> list[int | None]:
    return [axis if axis is None else as_integer(axis, "vmap", f"an axis in {name}") for axis in axes]


def _examples(leaves: Sequence[Any], axes: Sequence[int | None], size: int | None, place: Callable[[int], str]) -> int:
    """How many examples there are; raises where arguments disagree."""
    source = -1
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not is_numeric(x):
            raise errors.ArgumentTypeError(
                f"vmap: {place(i)} is {type(x).__name__} {errors.shown(x)}, which has no axis of examples; None in "
                "in_axes is for what all of them share"
            )
        shape = x.shape
        if not -len(shape) <= axis < len(shape):
            raise errors.AxisError(
                f"vmap: {place(i)} has shape {shape}, and in_axes says its axis {axis} counts the examples; None there "
                "is for what all of them share"
            )
        if size is None:
            size, source = shape[axis], i
        elif shape[axis] != size:
            known = "axis_size says" if source < 0 else f"{place(source)} has"
            raise errors.ShapeError(
                f"vmap: {place(i)} has {shape[axis]} examples along axis {axis}, and {known} {size}"
            )
    if size is None:
        raise errors.ArgumentError("vmap: no argument has an axis of examples; give in_axes, or axis_size")
    return size


def _moved(base: Any, x: Array, source: int, target: int) -> Array:
    rank = len(x.shape)
    source, target = source % rank, target % rank
    if source == target:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return base.permute_dims(x, axes=tuple(order))


def _placed(base: Any, out: Batch, axis: int | None, size: int, what: Callable[[], str]) -> Array:
    """A result with the axis of examples where out_axes says."""
    if axis is None:
        if out.batched:
            raise errors.ArgumentError(f"{what()} differs between examples; out_axes=None is for what does not")
        return out.value
    rank = len(out.shape) + 1
    if not -rank <= axis < rank:
        raise errors.AxisError(f"{what()} has {rank} axes with that of the examples, and out_axes says {axis}")
    value = out.value
    if not out.batched:
        shape = check_shape((size, *out.shape), "vmap")
        value = base.broadcast_to(base.expand_dims(value, axis=(0,)), shape=shape)
    return _moved(base, value, 0, axis)


def apply_along_axis(f: Callable[..., Any], axis: int, x: Any, /, *args: Any, **kwargs: Any) -> Any:
    """f of each line along an axis, all together by `vmap`; the axes of its result stand where that axis was.

    `f(line, *args, **kwargs)` gets a vector and returns a tensor. Raises ArgumentTypeError for other results, AxisError
    for an axis that is not there, and the errors of `vmap`.

    >>> import adjoint as ad
    >>> ad.apply_along_axis(ad.median, 1, ad.tensor([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]])).tolist()
    [2.0, 5.0]
    """
    check_callable("apply_along_axis", f)
    x = as_tensor(x, "apply_along_axis")
    place = as_axis(axis, x.ndim, "apply_along_axis")
    lines = moveaxis(x, place, -1)
    outer = lines.shape[:-1]
    out = vmap(lambda line: f(line, *args, **kwargs))(reshape(lines, (math.prod(outer), x.shape[place])))
    if not isinstance(out, Tensor):
        raise errors.ArgumentTypeError(f"apply_along_axis: f returns a tensor, received {type(out).__name__}")
    inner = out.ndim - 1
    out = reshape(out, (*outer, *out.shape[1:]))
    return moveaxis(out, tuple(range(len(outer), len(outer) + inner)), tuple(range(place, place + inner)))
