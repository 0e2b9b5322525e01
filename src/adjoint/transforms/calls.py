"""What all transforms do with the arguments and the results of the function they run.

Arguments and results are pytrees. Functions of NumPy arrays and Python numbers give NumPy arrays,
functions of tensors give tensors. Names and signatures of transforms are JAX's.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors, trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.devices import active_level, default_device
from adjoint.tensor import Tensor, grounded, lifted, wrap

Function = Callable[..., Any]
Argnums = int | str | Sequence[int | str]


def is_array(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, np.generic))


def base_of(values: Sequence[Any], name: str) -> Backend:
    """What a transform's levels are built on: the highest backend of the arguments and the active level.

    For NumPy arrays alone, outside of other transforms, the leaf of the default device.
    """
    top = active_level()
    for x in values:
        if not isinstance(x, Tensor):
            continue
        device = x.device
        if device.ended:
            raise errors.EndedError(f"{name}: an argument is left over from a transform that has returned")
        if top is None or any(level is top for level in device.chain()):
            top = device
        elif grounded(x._array, device, top) is None:
            raise errors.DeviceError(f"{name}: arguments on {top} and {device} do not meet; move one with to_device")
    return default_device().leaf if top is None else top


def array_of(x: Any, base: Backend, *, keep: bool = False) -> Array:
    """A leaf of the arguments as an array of the base; `keep` copies what the caller may write to."""
    if isinstance(x, Tensor):
        return lifted(x, base)
    dtypes.refuse_masked(x, "a transform's argument")
    values = np.asarray(x)
    dtypes.as_dtype(values.dtype)
    return base.from_numpy(values, copy=keep or isinstance(x, np.generic))


class Arguments:
    """The arguments of a call, and which of them a transform differentiates by.

    `arrays` are those of the selected leaves, on the base.
    """

    def __init__(self, name: str, f: Function, argnums: Argnums, args: Any, kwargs: Any, *, keep: bool = False) -> None:
        if not callable(f):
            raise errors.ArgumentTypeError(f"{name}: expected a function, received {f!r}")
        self.name = name
        self.args, self.kwargs = args, kwargs
        self.single = isinstance(argnums, (int, str))
        self.keys = _keys(name, f, [argnums] if isinstance(argnums, (int, str)) else list(argnums), args, kwargs)
        chosen = [args[key] if isinstance(key, int) else kwargs[key] for key in self.keys]
        leaves, self.structure = trees.flatten(chosen)
        others, _ = trees.flatten((args, kwargs))
        self.base = base_of(others, name)
        self.as_numpy = active_level() is None and not any(isinstance(x, Tensor) for x in others)
        self.leaves = leaves
        for i, x in enumerate(leaves):
            if not is_array(x) and not isinstance(x, (float, complex)):
                self._refuse(
                    i, f"is {type(x).__name__} {errors.shown(x)}, not an array of real or complex floating dtype"
                )
        self.arrays = [array_of(x, self.base, keep=keep) for x in leaves]
        for i, array in enumerate(self.arrays):
            dtype = self.base.dtype_of(array)
            if dtype.kind not in "fc":
                self._refuse(i, f"is {dtype}, which has no derivatives; use astype(ad.float32)")

    def path(self, i: int) -> str:
        """How the i-th selected leaf is written: `argument 0['w']`."""
        first, _, rest = trees.paths(self.structure)[i].partition("]")
        return f"argument {self.keys[int(first[1:])]}{rest}"

    def _refuse(self, i: int, fault: str) -> None:
        raise errors.DtypeError(f"{self.name}: {self.path(i)} {fault}")

    def run(self, f: Function, level: Backend, arrays: Sequence[Array]) -> Any:
        """f of the arguments, with these arrays of a level in the place of the selected leaves."""
        chosen = trees.unflatten(self.structure, [wrap(array, level) for array in arrays])
        args, kwargs = list(self.args), dict(self.kwargs)
        for i, x in enumerate(args):
            if i not in self.keys:
                args[i] = constants(x, self.base)
        for name, x in kwargs.items():
            kwargs[name] = constants(x, self.base)
        for key, tree in zip(self.keys, chosen, strict=True):
            if isinstance(key, int):
                args[key] = tree
            else:
                kwargs[key] = tree
        return f(*args, **kwargs)

    def answer(self, arrays: Sequence[Array]) -> Any:
        """Results per selected leaf in the structure of the arguments."""
        chosen = trees.unflatten(self.structure, [self.result(array) for array in arrays])
        return chosen[0] if self.single else tuple(chosen)

    def result(self, array: Array) -> Any:
        """An array of the base as what the caller gave: a NumPy array, or a tensor."""
        return to_numpy(array, self.base) if self.as_numpy else wrap(array, self.base)


def constants(tree: Any, base: Backend) -> Any:
    """NumPy arrays of an argument as tensors; everything else as it is."""
    if tree.__class__ is Tensor or not isinstance(tree, (np.ndarray, np.generic, tuple, list, dict)):
        if not hasattr(tree, "__dataclass_fields__"):
            return tree
    return trees.map(lambda x: wrap(array_of(x, base), base) if isinstance(x, (np.ndarray, np.generic)) else x, tree)


def to_numpy(array: Array, base: Backend) -> Any:
    """An array of a leaf as a NumPy array of the caller's own, or a NumPy number."""
    values = base.to_numpy(array)
    return values[()] if not values.ndim else np.array(values)


def _keys(name: str, f: Function, argnums: list[Any], args: Any, kwargs: Any) -> list[int | str]:
    """Positions, or names of keyword arguments, of what is differentiated by."""
    keys: list[int | str] = []
    for entry in argnums:
        if isinstance(entry, str):
            if entry in kwargs:
                keys.append(entry)
                continue
            try:
                names = list(inspect.signature(f).parameters)
            except (TypeError, ValueError):
                names = []
            if entry not in names:
                raise errors.ArgumentError(
                    f"{name}: argnums names {entry!r}, which the function does not take: {names}"
                )
            entry = names.index(entry)
        if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
            raise errors.ArgumentTypeError(f"{name}: argnums are positions or names, received {errors.shown(entry)}")
        if not -len(args) <= entry < len(args):
            raise errors.ArgumentError(f"{name}: argnums is {entry}, but the call has {len(args)} positional arguments")
        keys.append(int(entry) % len(args))
    if not keys or len(set(keys)) < len(keys):
        raise errors.ArgumentError(f"{name}: argnums {argnums} is empty or names an argument twice")
    return keys


def results_of(name: str, out: Any) -> tuple[list[Any], Any]:
    """The leaves of a function's result, which have to be arrays or numbers, and its structure."""
    leaves, structure = trees.flatten(out)
    for i, x in enumerate(leaves):
        if not is_array(x) and not isinstance(x, (bool, int, float, complex)):
            raise errors.ArgumentTypeError(
                f"{name}: the function's result{trees.paths(structure)[i]} is {type(x).__name__}; results are tensors"
            )
    return leaves, structure


def on_level(x: Any, level: Backend) -> Array:
    """A leaf of a result as an array of the level; constants are lifted."""
    if isinstance(x, Tensor):
        return lifted(x, level)
    return level.from_numpy(dtypes.values_of(x, None, "result"), copy=True)


def peeled(x: Any, level: Backend, call: Arguments) -> Any:
    """A leaf of a result without the levels above the base: a value for the caller."""
    if not isinstance(x, Tensor):
        return x
    array, source = on_level(x, level), level
    while source is not call.base:
        assert isinstance(source, Decorator)
        array, source = source.unwrap(array), source.inner
    return call.result(array)


def outcome(name: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    """A function's result and, where it has one, what it returns beside it."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise errors.ArgumentTypeError(f"{name}: with has_aux=True the function returns a pair (result, aux)")
    return out


def zeros_like(base: Any, array: Array) -> Array:
    return base.full(shape=tuple(array.shape), value=0, dtype=base.dtype_of(array))


def named(transform: str, f: Function) -> Callable[[Function], Function]:
    """Gives a transformed function the name, signature and documentation of the original."""

    def rename(run: Function) -> Function:
        if not callable(f):
            raise errors.ArgumentTypeError(f"{transform}: expected a function, received {errors.shown(f)}")
        functools.update_wrapper(run, f)
        run.__name__ = f"{transform}({getattr(f, '__name__', repr(f))})"
        return run

    return rename


def count(arrays: Sequence[Array]) -> int:
    return sum(math.prod(x.shape) for x in arrays)


def matching(
    name: str, what: str, tree: Any, structure: Any, arrays: Sequence[Array], base: Backend
) -> list[Array | None]:
    """The leaves of tangents or cotangents as arrays of the base, each fitting its array; None for integers'."""
    leaves, found = trees.flatten(tree)
    if found != structure:
        raise errors.ArgumentError(
            f"{name}: {what}s have the structure {found}, expected that of the "
            f"{'result' if what == 'cotangent' else 'primals'}: {structure}"
        )
    fitting: list[Array | None] = []
    for i, (x, like) in enumerate(zip(leaves, arrays, strict=True)):
        dtype = base.dtype_of(like)
        place = f"{name}: the {what}{trees.paths(structure)[i]}"
        if dtype.kind not in "fc":
            fitting.append(None)
            continue
        if not is_array(x) and not isinstance(x, (int, float, complex)):
            raise errors.ArgumentTypeError(f"{place} is {type(x).__name__}, expected an array")
        array = array_of(x, base, keep=True)
        kind = base.dtype_of(array)
        if tuple(array.shape) != tuple(like.shape):
            raise errors.ShapeError(f"{place} has shape {tuple(array.shape)}, expected {tuple(like.shape)}")
        if kind.kind == "c" and dtype.kind != "c":
            raise errors.DtypeError(f"{place} is {kind}, expected {dtype}; take its .real")
        fitting.append(array if kind == dtype else base.astype(array, dtype=dtype))
    return fitting
