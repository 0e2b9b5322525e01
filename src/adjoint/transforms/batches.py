"""Functions of one example as functions of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import errors, trees
from adjoint.backend import Array
from adjoint.decorators.batched import Batch, Batched
from adjoint.devices import active, active_level
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.calls import (
    Function,
    array_of,
    base_of,
    is_array,
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

    Parameters
    ----------
    f
        A function of one example.
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

    @named("vmap", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = trees.flatten((args, kwargs))
        axes = _in_axes(in_axes, args, kwargs)
        base: Any = base_of(leaves, "vmap")
        as_numpy = active_level() is None and not any(isinstance(x, Tensor) for x in leaves)
        arrays = [array_of(x, base) if is_array(x) else x for x in leaves]
        size = _examples(arrays, axes, axis_size, structure)
        level: Batched[Any] = Batched.fresh(base, *((size, "split") if randomness == "split" else (None, randomness)))
        with active(level):
            given = [
                wrap(Batch(x if axis is None else _moved(base, x, axis, 0), axis is not None), level)
                if _is_batchable(x)
                else x
                for x, axis in zip(arrays, axes, strict=True)
            ]
            args, kwargs = trees.unflatten(structure, given)
            results, shape = results_of("vmap", f(*args, **kwargs))
            places = trees.spread(out_axes, shape, "vmap: out_axes")
            outs = []
            for i, (x, axis) in enumerate(zip(results, places, strict=True)):
                out: Batch = on_level(x, level)
                outs.append(_placed(base, out, axis, size, shape, i))
        return trees.unflatten(shape, [to_numpy(x, base) if as_numpy else wrap(x, base) for x in outs])

    return run


def _is_batchable(x: Any) -> bool:
    """Whether a leaf was made an array of the base: everything else that comes is passed as it is."""
    return hasattr(x, "shape")


def _in_axes(in_axes: Any, args: Any, kwargs: Any) -> list[int | None]:
    """The axis of each leaf of the arguments."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise errors.ArgumentError(f"vmap: in_axes {in_axes} has {len(in_axes)} entries for {len(args)} arguments")
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise errors.ArgumentTypeError(
            f"vmap: in_axes is an integer, None or a tuple, received {errors.shown(in_axes)}"
        )
    _, structure = trees.flatten(args)
    _, named = trees.flatten(kwargs)
    return [*trees.spread(in_axes, structure, "vmap: in_axes"), *[0] * named.num_leaves]


def _examples(arrays: Sequence[Any], axes: Sequence[int | None], size: int | None, structure: Any) -> int:
    """How many examples there are; raises where arguments disagree."""
    source = -1
    for i, (x, axis) in enumerate(zip(arrays, axes, strict=True)):
        if axis is None:
            continue
        rank = len(getattr(x, "shape", ()))
        if not -rank <= axis < rank:
            raise errors.AxisError(
                f"vmap: {_place(structure, i)} has {rank} axes, and in_axes says its axis {axis} counts the examples; "
                "None is for what all examples share"
            )
        if size is None:
            size, source = x.shape[axis], i
        elif x.shape[axis] != size:
            other = "axis_size is" if source < 0 else f"{_place(structure, source)} has"
            raise errors.ShapeError(
                f"vmap: {_place(structure, i)} has {x.shape[axis]} examples along axis {axis}, and {other} {size}"
            )
    if size is None:
        raise errors.ArgumentError("vmap: no argument has an axis of examples; give in_axes, or axis_size")
    return size


def _place(structure: Any, i: int) -> str:
    """How the i-th leaf of (args, kwargs) is written: `argument 0['w']`, `argument 'x'`."""
    path = trees.paths(structure)[i]
    first, _, rest = path[3:].removeprefix("[").partition("]")
    return f"argument {first}{rest}"


def _moved(base: Any, x: Array, source: int, target: int) -> Array:
    rank = len(x.shape)
    source, target = source % rank, target % rank
    if source == target:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return base.permute_dims(x, axes=tuple(order))


def _placed(base: Any, out: Batch, axis: int | None, size: int, structure: Any, i: int) -> Array:
    """A result with the axis of examples where out_axes says."""
    if axis is None:
        if out.batched:
            raise errors.ArgumentError(
                f"vmap: the result{trees.paths(structure)[i]} differs between examples; out_axes=None is for what "
                "does not"
            )
        return out.value
    rank = len(out.shape) + 1
    if not -rank <= axis < rank:
        raise errors.AxisError(
            f"vmap: the result{trees.paths(structure)[i]} has {rank} axes with that of the examples, and "
            f"out_axes says {axis}"
        )
    value = out.value
    if not out.batched:
        value = base.broadcast_to(base.expand_dims(value, axis=(0,)), shape=(size, *out.shape))
    return _moved(base, value, 0, axis)
