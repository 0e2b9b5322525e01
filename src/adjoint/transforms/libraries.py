"""Where transforms run: arrays of other libraries as arguments, tensors that only the function itself knows.

With arrays of another library a transform runs on that library's leaf and gives its arrays. Where its function meets
tensors of a higher backend than that of its arguments, such as a leaf of `require_grad` beside NumPy arrays, it runs
again on that backend: so no derivative is lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.devices import current_level, leaf_of, libraries_imported, running_on
from adjoint.functions.conversion import native
from adjoint.operands import lower
from adjoint.tensor import Tensor, wrap

_OURS = trees.ATOMS | {FunctionType}  # leaves of no optional library
F = TypeVar("F", bound=Callable[..., Any])


def of_any_library(run: F) -> F:
    """A transformed function that also takes arrays of optional libraries, `torch.Tensor` or `jax.Array`.

    Beside tensors, and inside of other transforms, they are constants, and results are tensors; otherwise results are
    arrays of the same library, also those of functions among the results.
    """
    return of_libraries(run, run)


def kept_of_any_library(run: F) -> F:
    """The same for a transform whose results are called later: arrays are copied where the caller may write to them."""
    return of_libraries(run, run, keep=True)


def of_libraries(run: F, like: Callable[..., Any], keep: bool = False) -> F:
    """`of_any_library`, with the name, signature and documentation of another function."""

    def either(*args: Any, **kwargs: Any) -> Any:
        try:
            atoms = not kwargs and trees.ATOMS.issuperset(map(type, args))
            if atoms or not libraries_imported() or (not kwargs and _all_ours(args)):
                return run(*args, **kwargs)
            return _given_any(run, args, kwargs, keep)
        except errors.DeviceError as error:
            place = error.place
            if place is None or not _may_run_on(place, args, kwargs):
                raise
        with running_on(place):
            return of_libraries(run, like, keep)(*args, **kwargs)  # `either` would hold itself, for the collector

    return functools.update_wrapper(either, like)  # type: ignore[return-value]


def _all_ours(args: tuple[Any, ...]) -> bool:
    """Whether a glance tells that there are no arrays of optional libraries; they may be in tuples, as of `jvp`."""
    for x in args:
        cls = x.__class__
        if cls not in _OURS and not ((cls is tuple or cls is list) and trees.are_leaves(x)):
            return False
    return True


def _given_any(run: Callable[..., Any], args: Any, kwargs: Any, keep: bool) -> Any:
    """What a transformed function gives where there may be arrays of optional libraries."""
    leaves, structure = trees.flatten((args, kwargs))
    if all([x.__class__ in _OURS for x in leaves]):
        return run(*args, **kwargs)
    if any([x.__class__ not in trees.ATOMS and dtypes.is_table(x) for x in leaves]):
        leaves = [x.to_numpy() if dtypes.is_table(x) else x for x in leaves]
        args, kwargs = trees.unflatten(structure, leaves)
    places = [None if x.__class__ in trees.ATOMS else leaf_of(x) for x in leaves]
    if not any(places):
        return run(*args, **kwargs)
    given = [x if leaf is None else _tensor(x, leaf, keep) for x, leaf in zip(leaves, places, strict=True)]
    args, kwargs = trees.unflatten(structure, given)
    out = run(*args, **kwargs)
    inside = current_level() is not None or any([isinstance(x, Tensor) for x in leaves])
    return out if inside else trees.map(_to_caller, out)


def _may_run_on(place: Backend, args: Any, kwargs: Any) -> bool:
    """Whether all tensors among the arguments can be lifted there, and no transform runs around this one."""
    level = current_level()
    if level is not None and (level.is_fresh or level is place or level not in place.chain()):
        return False
    tensors = [x for x in trees.flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    return all([x.device is not place and lower(x._array, x.device, place) is not None for x in tensors])


def _tensor(array: Any, leaf: Any, keep: bool) -> Tensor[Any]:
    array = leaf.from_native(array)
    return wrap(leaf.copied(array) if keep else array, leaf)


def _to_caller(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x if x.device.tracked(x._array) else native(x)
    return of_any_library(x) if callable(x) else x
