"""What all transforms do with the arguments and the results of the function they run.

Which trees, positions and results they refuse is said here; what a single value has to be, in `functions/arguments.py`.
Arguments and results are pytrees. Functions of NumPy arrays and Python numbers give NumPy arrays,
functions of tensors give tensors. Names and signatures of transforms are JAX's.
"""

from __future__ import annotations

import contextvars
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batched
from adjoint.devices import chosen_device, current_level, default_device, observed_leaf
from adjoint.dtypes import DType
from adjoint.functions.arguments import check_callable, is_array, is_integer, is_numeric, is_value, items, kind_of
from adjoint.module.fields import FLATTENED, Constant, Fields, parted, register_parts
from adjoint.operands import adapted, lift_to, lower, unmet
from adjoint.scopes import Variable, innermost
from adjoint.tensor import Number, Tensor, refuse_ended, wrap
from adjoint.transforms.libraries import of_libraries

Function = Callable[..., Any]
_FLOATING = {d: d for d in (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)}
Argnums = int | str | Sequence[int | str]


# the device on which tensors stand for arrays that a user gave to a compiled function, while it runs as it is
arrays_on: Variable[Backend] = contextvars.ContextVar("adjoint_arrays_on", default=None)


def counts_as_array(x: Any) -> bool:
    """Whether its dtype says how precise a function is: a tensor's does not, but where it stands for an array."""
    if not isinstance(x, Tensor) or x._device is x._device.leaf.arrays_on:
        return True
    block = innermost(arrays_on)
    return block is not None and x._device is block.value


def base_of(values: Sequence[Any], name: str) -> Backend:
    """What a transform's levels are built on: the highest backend of the arguments and the active level.

    For NumPy arrays alone, outside of other transforms, the leaf of the default device and what observes it.
    """
    return _highest(values, name) or observed_leaf(default_device())


def _highest(values: Sequence[Any], name: str) -> Backend | None:
    """The highest backend of the arguments and the active level; None for NumPy arrays outside of other transforms."""
    top, there = current_level(), None  # and an argument on that backend
    for x in values:
        if not isinstance(x, Tensor) or x._device is top:
            continue
        refuse_ended(x, name)
        device = x._device
        if top is None or any(level is top for level in device.chain()):
            top, there = device, x
        elif lower(x._array, device, top) is None:
            raise unmet([x], top, name) if there is None else unmet([there, x], name=name)
    return top


def reverse_level(base: Backend) -> Autodiff[Any]:
    """A fresh level of reverse mode over a backend.

    Its options are those of the nearest Autodiff in the chain of the base, or else of the default
    device. A policy of `checkpoint` is for the function that was given it alone.
    """
    for level in (base, chosen_device()):
        while isinstance(level, Decorator):
            if isinstance(level, Autodiff):
                policy = "balanced" if level.checkpointing == "balanced" else None
                return Autodiff.fresh(base, policy, level.strong_zero)
            level = level.inner
    return Autodiff.fresh(base, None, False)


_NAMELESS = "a transform's argument"  # in messages, where it is not known which


def array_of(x: Any, base: Backend, *, keep: bool = False) -> Array:
    """A leaf of the arguments as an array of the base; `keep` copies what the caller may write to."""
    if isinstance(x, Tensor):
        return lift_to(x, base)
    if x.__class__ is np.ndarray and _FLOATING.get(x.dtype) is x.dtype:
        return base.from_numpy(x, copy=keep)
    number = base.leaf.number_type
    if number is not None and (x.__class__ is number or x.__class__ is float):
        return base.from_numpy(number(x), copy=False)
    dtypes.refuse_masked(x, _NAMELESS)
    values = np.asarray(x)
    if not is_array(x):
        values = values.astype(base.leaf.widest(values.dtype))
    dtype = dtypes.as_dtype(values.dtype, _NAMELESS)
    if values.dtype is not dtype:  # of another byte order
        values = values.astype(dtype)
    return base.from_numpy(values, copy=keep or isinstance(x, np.generic))


class Arguments:
    """The arguments of a call, and which of them a transform differentiates by.

    Of modules the leaves are parameters, of other trees all but integers; `held` is the structure with all else in it,
    `structure` has None there.
    `arrays` are those of the selected leaves, on the base, and `dtype` the one in which the function makes what has no
    dtype: theirs, unless there are tensors among them. `beside` are leaves of other arguments, such as tangents,
    which count for where the base is.
    """

    all: bool  # arguments are selected, and there are none by name
    args: Any
    arrays: list[Any]
    dtypes: list[Any]
    held: Any
    keys: Sequence[int | str]
    kwargs: Any
    leaves: list[Any]
    single: bool  # one argument is selected, and the answer is for it

    def __init__(
        self,
        name: str,
        f: Function,
        argnums: Argnums,
        args: Any,
        kwargs: Any,
        *,
        keep: bool = False,
        beside: Sequence[Any] = (),
    ) -> None:
        if not callable(f):
            check_callable(name, f)
        self.name = name
        self.args, self.kwargs = args, kwargs
        if isinstance(argnums, range) and args and argnums == range(len(args)):
            self.single, self.all, self.keys = False, not kwargs, argnums
        else:
            self.single = isinstance(argnums, (int, str, np.integer))
            self.keys = _keys(name, f, argnums, args, kwargs)
            self.all = not kwargs and self.keys == [*range(len(args))]
        chosen = list(args) if self.all else [args[k] if isinstance(k, int) else kwargs[k] for k in self.keys]
        self.flat: bool = trees.are_leaves(chosen)
        if self.flat:
            self.leaves, self.held, holes = chosen, trees.row(list, len(chosen)), None
        else:
            holes = self._flatten(chosen)
        self.structure = self.held if holes is None else trees.structure(holes)
        if holes is None and (self.all or len(self.keys) == len(args) + len(kwargs)):
            others = self.leaves
        else:
            others = args if not kwargs and trees.are_leaves(args) else trees.flatten((args, kwargs))[0]
        highest = _highest([*others, *beside], name)
        self.as_numpy: bool = highest is None
        self.base: Backend = highest or observed_leaf(default_device())
        base, number = self.base, self.base.leaf.number_type
        dtype: Any
        for again in (False, True):
            self.arrays, self.dtypes = [], []
            kinds: set[dtypes.DType | None] = set()
            try:
                for i, x in enumerate(self.leaves):
                    if x.__class__ is Tensor and x._dtype.kind in dtypes.INEXACT:
                        array, dtype = x._array if x._device is base else lift_to(x, base), x._dtype
                        if None not in kinds:
                            kinds.add(dtype if counts_as_array(x) else None)
                    elif x.__class__ is np.ndarray and _FLOATING.get(x.dtype) is x.dtype:
                        array, dtype = base.from_numpy(x, copy=keep), x.dtype
                        kinds.add(dtype)
                    elif number is not None and (x.__class__ is number or x.__class__ is float):
                        array = self.base.from_numpy(number(x), copy=False)
                        dtype = self.base.dtype_of(array)
                        kinds.add(dtype)
                    else:
                        array = self._array(i, x, keep)
                        dtype = self.base.dtype_of(array)
                        kinds.add(dtype if counts_as_array(x) else None)
                    self.arrays.append(array)
                    self.dtypes.append(dtype)
                break
            except errors.DtypeError:
                if again or not self._hold_integers():
                    raise
        self.dtype: dtypes.DType | None = None if None in kinds else dtypes.precision(frozenset(kinds))

    def _flatten(self, chosen: list[Any]) -> Any:
        """Take the selected arguments apart; gives their structure with holes for what is no parameter of a module."""
        before, holes = next(FLATTENED), None
        within = isinstance(chosen[0], Fields)  # as a loss of a model has it first
        if not within:
            self.leaves, self.held = trees.flatten(chosen)
        if within or next(FLATTENED) > before + 1:  # there are modules
            held, holes = parted(chosen)
            self.leaves, self.held = trees.flatten(held)
        if not self.leaves and any([x is None for x in chosen]):
            raise errors.ArgumentError(
                f"{self.name}: there is nothing to differentiate by: argument {self.keys[0]} is None"
            )
        return holes

    def _hold_integers(self) -> bool:
        """Make integers parts of the structure where an argument has other leaves, and say whether there were any."""
        register_parts()
        held, structure = trees.unflatten(self.held, self.leaves), trees.unflatten(self.structure, self.leaves)
        for k, tree in enumerate(held):
            if not all(map(has_no_slope, trees.flatten(tree)[0])):
                held[k] = trees.map(lambda x: Constant(constants(x, self.base)) if has_no_slope(x) else x, tree)
                structure[k] = trees.map(lambda x: None if has_no_slope(x) else x, structure[k])
        before = len(self.leaves)
        self.leaves, self.held = trees.flatten(held)
        self.structure = trees.structure(structure)
        return len(self.leaves) < before

    def path(self, i: int) -> str:
        """How the i-th selected leaf is written: `argument 0['w']`."""
        first, _, rest = trees.paths(self.structure)[i].partition("]")
        return f"argument {self.keys[int(first[1:])]}{rest}"

    def _array(self, i: int, x: Any, keep: bool) -> Array:
        if x.__class__ is float or (isinstance(x, Tensor) and x._dtype.kind in dtypes.INEXACT):
            return array_of(x, self.base)
        fault, dtype = None, getattr(x, "dtype", None) if is_array(x) else None
        if dtype is None and not isinstance(x, (float, complex)):
            fault = f"is {kind_of(x)} {errors.shown(x)}, not an array of real or complex floating dtype"
            if x.__class__ is int and abs(x) < 2**53:
                fault += f"; write it as {float(x)}"
            elif hasattr(x, "__array_namespace__"):
                library = x.__array_namespace__().__name__
                fault = f"is an array of {library}; make it a tensor, ad.asarray(x, device=ad.ArrayAPI({library}))"
            else:
                fault += "; make it another argument, or in a dataclass a field(metadata={'static': True})"
        elif dtype is not None and dtype.kind not in dtypes.INEXACT:
            fault = f"is {dtype}, which has no derivatives"
            fault += "; use astype(ad.float32)" if is_numeric(x) else ""
        if fault is None:
            try:
                return array_of(x, self.base, keep=keep)
            except errors.DtypeError as error:
                fault = f"is an array that is no tensor: {str(error).removeprefix(f'{_NAMELESS}: ')}"
        raise errors.DtypeError(f"{self.name}: {self.path(i)} {fault}")

    def check_complex(self, holomorphic: bool, otherwise: str = "") -> None:
        """Raises DtypeError for real arguments of a holomorphic function; for complex ones of others if told so."""
        for i, x in enumerate(self.arrays):
            kind = self.base.dtype_of(x).kind
            if holomorphic and kind != "c":
                raise errors.DtypeError(
                    f"{self.name}: {self.path(i)} is {self.base.dtype_of(x)}, and holomorphic functions have complex "
                    "arguments; use astype(ad.complex64)"
                )
            if not holomorphic and kind == "c" and otherwise:
                raise errors.DtypeError(f"{self.name}: {self.path(i)} is {self.base.dtype_of(x)}; {otherwise}")

    def run(self, f: Function, level: Backend, arrays: Sequence[Array]) -> Any:
        """f of the arguments, with these arrays of a level in the place of the selected leaves."""
        chosen = list(map(wrap, arrays, itertools.repeat(level), self.dtypes))
        if not self.flat:
            chosen = trees.unflatten(self.held, chosen)
        keys, base = self.keys, self.base
        if self.all:
            return f(*chosen)
        args = [None if i in keys else constants(x, base) for i, x in enumerate(self.args)]
        kwargs = {name: None if name in keys else constants(x, base) for name, x in self.kwargs.items()}
        for key, tree in zip(keys, chosen, strict=True):
            if isinstance(key, int):
                args[key] = tree
            else:
                kwargs[key] = tree
        return f(*args, **kwargs)

    def moved(self, base: Backend) -> Any:
        """The selected arguments as tensors of a backend over the base."""
        return trees.unflatten(self.held, [wrap(base.lift(x, self.base), base) for x in self.arrays])

    def above(self, tree: Any) -> Backend | None:
        """The backend over the base that a tree has tensors of: it belongs to a transform that runs later.

        None where the base can take them all in.
        """
        leaves, _ = trees.flatten(tree)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if all([lower(x._array, x.device, self.base) is not None for x in tensors]):
            return None
        device = base_of(tensors, self.name)
        return device if any(level is self.base for level in device.chain()) else None

    def again(self, run: Callable[[Any], Any], later: Backend) -> Any:
        """run(selected arguments) on the backend of a later transform, of what ran before.

        Random numbers were drawn then, once for all examples that there are now.
        """
        view = _drawing_once(later, self.base)
        out = run(self.moved(view))
        return trees.map(lambda x: wrap(x._array, later) if isinstance(x, Tensor) and x.device is view else x, out)

    def answer(self, arrays: Sequence[Array]) -> Any:
        """Results per selected leaf in the structure of the arguments."""
        return self.structured(list(map(self.result, arrays)))

    def structured(self, results: Sequence[Any]) -> Any:
        """What there is per selected leaf, in the structure of the arguments."""
        chosen = results if self.flat else trees.unflatten(self.structure, results)
        return chosen[0] if self.single else tuple(chosen)

    def result(self, array: Array, dtype: DType | None = None) -> Any:
        """An array of the base as what the caller gave: a NumPy array, or a tensor; `dtype` is its own, if known."""
        return to_numpy(array, self.base) if self.as_numpy else wrap(array, self.base, dtype)


class Nested(Arguments):
    """Arguments that are tensors of the level around the transform: those of nested derivatives mostly are.

    There is nothing else to see to.
    """

    all, as_numpy, dtype, flat = True, False, None, True

    def __init__(self, base: Backend, args: Sequence[Any], single: bool = False) -> None:
        self.base, self.args, self.single = base, args, single

    def run(self, f: Function, level: Backend, arrays: Sequence[Array]) -> Any:
        return f(*map(wrap, arrays, itertools.repeat(level), [x._dtype for x in self.args]))

    def result(self, array: Array, dtype: DType | None = None) -> Any:
        return wrap(array, self.base, dtype)


def are_on(level: Any, args: Sequence[Any]) -> bool:
    """Whether arguments are floating tensors of the level around a transform, and there are some."""
    if not args or args[0].__class__ is not Tensor or level.leaf.arrays_on is not None:  # they may stand for arrays
        return False
    for x in args:
        if x.__class__ is not Tensor or x._device is not level or x._dtype.kind not in dtypes.INEXACT:
            return False
    return True


def _drawing_once(device: Backend, base: Backend) -> Backend:
    """A view of the levels over the base whose examples share what is drawn."""
    if device is base:
        return base
    assert isinstance(device, Decorator)
    inner, options = _drawing_once(device.inner, base), device.configuration()[1:]
    if isinstance(device, Batched) and device.randomness != "shared":
        options = (None, "shared")
    elif inner is device.inner:
        return device
    return device.view(inner, *options)


def constants(tree: Any, base: Backend) -> Any:
    """NumPy arrays of an argument as tensors; everything else as it is."""
    if isinstance(tree, (Tensor, bool, int, float, complex, str)):
        return tree
    if tree.__class__ is np.ndarray and is_numeric(tree):
        return wrap(array_of(tree, base), base)
    leaves, structure = trees.flatten(tree)
    found = [isinstance(x, (np.ndarray, np.generic)) and is_numeric(x) for x in leaves]
    if not any(found):
        return tree
    return trees.unflatten(
        structure, [wrap(array_of(x, base), base) if n else x for x, n in zip(leaves, found, strict=True)]
    )


def has_no_slope(x: Any) -> bool:
    """Whether it is an integer or a boolean, or an array of them."""
    dtype = getattr(x, "dtype", None)
    return x.__class__ in (int, bool) if dtype is None else is_array(x) and dtype.kind in "iub"


def to_numpy(array: Array, base: Backend) -> Any:
    """An array of a leaf as a NumPy array of the caller's own, or a NumPy number."""
    values = base.to_numpy(array)
    return values[()] if not values.ndim else np.array(values)


def as_argnums(name: str, argnums: Any) -> Argnums:
    """A position, a name, or a tuple of them; what is neither is refused where the transform is made.

    So `grad(f, x)`, which was meant as `grad(f)(x)`, says so.
    """
    if argnums.__class__ is int or isinstance(argnums, (str, range)) or is_integer(argnums):
        return argnums
    entries = None if isinstance(argnums, Mapping) else items(argnums)
    for entry in (argnums,) if entries is None else entries:
        if not isinstance(entry, str) and not is_integer(entry):
            raise errors.ArgumentTypeError(
                f"{name}: argnums are positions or names, received {errors.shown(entry)}; "
                f"arguments are for what {name} gives: {name}(f)(x)"
            )
    found = tuple(entries or ())
    return range(len(found)) if found == tuple(range(len(found))) else found  # a glance tells that it is all


def _keys(name: str, f: Function, argnums: Argnums, args: Any, kwargs: Any) -> list[int | str]:
    """Positions, or names of keyword arguments, of what is differentiated by."""
    if isinstance(argnums, int) and 0 <= argnums < len(args):
        return [argnums]
    if isinstance(argnums, range) or (isinstance(argnums, tuple) and {int}.issuperset(map(type, argnums))):
        keys: list[int | str] = [*argnums]
        if args and keys == [*range(len(args))]:
            return keys
    keys = []
    for entry in (argnums,) if isinstance(argnums, (int, str, np.integer)) else argnums:
        place: Any = entry
        if isinstance(entry, str):
            if entry in kwargs:
                keys.append(entry)
                continue
            names = _positional(f)
            if entry not in names:
                raise errors.ArgumentError(
                    f"{name}: argnums names {errors.shown(entry)}, which is no name in the call and none of {names}"
                )
            place = names.index(entry)
        if not -len(args) <= place < len(args):
            few = f"{len(args)} positional argument" + "s" * (len(args) != 1)
            raise errors.ArgumentError(
                f"{name}: argnums is {errors.shown(entry)}, but the call has {few}"
                + (f" and no {errors.shown(entry)} by name" if isinstance(entry, str) else "")
            )
        keys.append(int(place) % len(args))
    if not keys:
        raise errors.ArgumentError(f"{name}: there is nothing to differentiate by")
    if len(set(keys)) < len(keys):
        raise errors.ArgumentError(f"{name}: argnums {errors.shown(argnums)} names an argument twice")
    return keys


def _positional(f: Function) -> list[str]:
    """The names of a function's positional parameters, as far as it tells them."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def results_of(name: str, out: Any) -> tuple[list[Any], Any]:
    """The leaves of a function's result as arrays or tensors, and its structure; Python's numbers are 64 bits wide.

    Raises ArgumentTypeError for anything else.
    """
    leaves, structure = trees.flatten(out)
    for i, x in enumerate(leaves):
        if x.__class__ is Tensor:
            continue
        if isinstance(x, (bool, int, float, complex)):
            x = leaves[i] = np.asarray(x)
        if not is_numeric(x):
            raise errors.ArgumentTypeError(
                f"{name}: the function's result{trees.paths(structure)[i]} is {kind_of(x)}; results are tensors"
            )
    return leaves, structure


def on_level(x: Any, level: Backend) -> Array:
    """A leaf of a result as an array of the level; constants are lifted."""
    if isinstance(x, Tensor):
        return lift_to(adapted([x], "result")[0] if x.__class__ is Number else x, level)
    values = dtypes.values_of(x, None, "result")
    return level.from_numpy(values if x.ndim else values.astype(level.leaf.widest(values.dtype)), copy=True)


def to_base(x: Any, level: Backend, call: Arguments) -> Any:
    """A tensor of a result without the levels above the base: a value for the caller. Anything else as it is."""
    return below(lift_to(x, level), level, call) if isinstance(x, Tensor) else x


def below(array: Array, level: Backend, call: Arguments) -> Any:
    """The value of an array of a level for the caller, without the levels above the base."""
    while level is not call.base:
        assert isinstance(level, Decorator)
        array, level = level.unwrap(array), level.inner
    return call.result(array)


def split_aux(name: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    """A function's result and, where it has one, what it returns beside it."""
    if not has_aux:
        return out, None
    check_pair(name, out, "with has_aux=True the function", "(result, aux)")
    return out  # type: ignore[no-any-return]


def check_pair(name: str, out: Any, what: str, parts: str) -> None:
    """Raises ArgumentTypeError where a function or a rule has not returned a pair."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise errors.ArgumentTypeError(f"{name}: {what} returns a pair {parts}, received {errors.shown(out)}")


def check_tuples(name: str, **given: Any) -> None:
    """Raises ArgumentTypeError where what has an entry per argument is no tuple."""
    if not all([isinstance(entries, (tuple, list)) for entries in given.values()]):
        raise errors.ArgumentTypeError(
            f"{name}: {' and '.join(given)} are tuples, one entry per argument of the function"
        )


def zeros_like(base: Any, array: Array) -> Array:
    return base.full(shape=tuple(array.shape), value=0, dtype=base.dtype_of(array))


def named(transform: str, f: Function) -> Callable[[Function], Function]:
    """Gives a transformed function the name, signature and documentation of the original."""

    if not callable(f):
        check_callable(transform, f)

    def rename(run: Function) -> Function:
        either = of_libraries(run, f)
        either.__name__ = f"{transform}({f.__name__ if hasattr(f, '__name__') else repr(f)})"
        return either

    return rename


def count(arrays: Sequence[Array]) -> int:
    return sum(math.prod(x.shape) for x in arrays)


def matching(name: str, what: str, tree: Any, structure: Any, arrays: Sequence[Array], base: Backend) -> list[Any]:
    """The leaves of tangents or cotangents as arrays of the base, each fitting its array; None for integers'."""
    return fitted(name, what, *trees.flatten(tree), structure, arrays, base, list(map(base.dtype_of, arrays)))


def fitted(
    name: str,
    what: str,
    leaves: Sequence[Any],
    found: Any,
    structure: Any,
    arrays: Sequence[Array],
    base: Backend,
    kinds: Sequence[DType],
) -> list[Array | None]:
    """`matching` of a tree that was taken apart, beside arrays of these dtypes."""
    if found is not structure and found != structure:
        raise errors.ArgumentError(
            f"{name}: the {what}s do not have the structure of the {'result' if what == 'cotangent' else 'primals'}, "
            f"{trees.difference(found, structure)}; received {errors.said(found)}, "
            f"expected {errors.said(structure)}"
        )
    fitting: list[Array | None] = []
    number = base.leaf.number_type
    for i, (x, like, dtype) in enumerate(zip(leaves, arrays, kinds, strict=True)):
        if dtype.kind not in dtypes.INEXACT:
            fitting.append(None)
            continue
        if x.__class__ is number and dtype is dtypes.float64:
            if like.shape == ():
                fitting.append(base.from_numpy(x, copy=False))
                continue
        elif x.__class__ is Tensor and x._dtype is dtype:
            array = x._array if x._device is base else lift_to(x, base)
            if array.shape == like.shape:
                fitting.append(array)
                continue
        if not is_value(x):
            raise errors.ArgumentTypeError(
                f"{_place(name, what, structure, i)} is {kind_of(x)}, expected an array of {dtype}"
            )
        array = array_of(x, base, keep=True)
        kind = base.dtype_of(array)
        if tuple(array.shape) != tuple(like.shape):
            raise errors.ShapeError(
                f"{_place(name, what, structure, i)} has shape {tuple(array.shape)}, expected {tuple(like.shape)}"
            )
        if kind.kind == "c" and dtype.kind != "c":
            raise errors.DtypeError(f"{_place(name, what, structure, i)} is {kind}, expected {dtype}; take its .real")
        fitting.append(array if kind == dtype else base.astype(array, dtype=dtype))
    return fitting


def _place(name: str, what: str, structure: Any, i: int) -> str:
    return f"{name}: the {what}{trees.paths(structure)[i]}"
