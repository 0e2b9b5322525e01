"""What solvers work with: a pytree as one vector, a function's arrays as a list, and rules on those."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.decorators.dependence import Dependence
from adjoint.devices import current_level, default_device
from adjoint.functions.arguments import called, check_callable, is_numeric, is_value, kind_of
from adjoint.operands import cast, common_backend, lift_to, run
from adjoint.primitives import real_dtype
from adjoint.tensor import Tensor, same, wrap
from adjoint.transforms.arguments import Function, array_of, base_of, to_numpy
from adjoint.transforms.closures import as_now, closed_over, substituted
from adjoint.transforms.levels import CustomRules, Tensors, apply


class State:
    """A pytree of floating arrays as one real vector: leaf after leaf, a complex one as real and imaginary parts.

    `vector` is that of the tree itself, on the base. Halves are float32 in it, and in the trees that functions get:
    what solvers add up, and are to be as small as their tolerances, would be lost in theirs.
    """

    structure: Any

    def __init__(self, name: str, what: str, tree: Any, base: Backend) -> None:
        leaves, self.structure = trees.flatten(tree)
        self.name = name
        paths = trees.paths(self.structure)
        tensors = []
        for x, path in zip(leaves, paths, strict=True):
            if not is_value(x):
                raise errors.ArgumentTypeError(f"{name}: {what}{path} is {kind_of(x)}, expected an array of numbers")
            tensors.append(wrap(array_of(x, base, keep=True), base))
            if tensors[-1].dtype.kind not in dtypes.INEXACT:
                raise errors.DtypeError(
                    f"{name}: {what}{path} is {tensors[-1].dtype}, which has no derivatives; use floats, or astype"
                )
        self._given: list[Any] = [x.dtype for x in tensors]
        tensors = [cast(x, dtypes.summing(x.dtype)) for x in tensors]
        self.shapes: list[Any] = [x.shape for x in tensors]
        self.dtypes: list[Any] = [x.dtype for x in tensors]
        self.sizes: list[Any] = [math.prod(x.shape) * (1 + (x.dtype.kind == "c")) for x in tensors]
        self.size: int = sum(self.sizes)
        if not self.size:
            raise errors.ArgumentError(f"{name}: {what} has no elements")
        self.dtype: dtypes.DType = functools.reduce(dtypes.promote, [real_dtype(dtype) for dtype in self.dtypes])
        self.is_vector: Any = (
            self.structure.num_nodes == 1 and self.dtypes[0].kind in dtypes.FLOATING and len(self.shapes[0]) == 1
        )
        self.vector: Tensor[Any] = self._joined(tensors)
        given = [None if isinstance(x, Tensor) else y.dtype for x, y in zip(leaves, tensors, strict=True)]
        self.precision: dtypes.DType | None = dtypes.precision(frozenset(given))

    def precise(self) -> Any:
        """In this block a function of the state makes what has no dtype as precise as that, if it was no tensors."""
        return nullcontext() if self.precision is None else dtypes.creating_in(self.precision)

    def ravel(self, tree: Any, what: str = "the function's result", device: Backend | None = None) -> Tensor[Any]:
        """The vector of a tree with the structure and shapes of this one; what is no tensor in it goes to the device.

        Raises ArgumentError, ShapeError and DtypeError for another one, with the path to what differs.
        """
        if self.is_vector and tree.__class__ is Tensor and tree.dtype is self.dtype and tree.shape == self.shapes[0]:
            return tree
        leaves, structure = trees.flatten(tree)
        if structure != self.structure:
            hint = ""
            if self.structure == trees.structure(0.0) and isinstance(tree, (list, tuple)):
                hint = "; the state is one array, so join the numbers with ad.stack"
            raise errors.ArgumentError(
                f"{self.name}: {what} has the structure {errors.said(structure)}, expected that of the state, "
                f"{errors.said(self.structure)}{hint}"
            )
        tensors = []
        for i, (x, shape, dtype) in enumerate(zip(leaves, self.shapes, self.dtypes, strict=True)):
            if not is_value(x):
                hint = "; give its x alone" if hasattr(x, "x") else ""  # an OptimizeResult
                raise errors.ArgumentTypeError(f"{self._place(what, i)} is {kind_of(x)}, expected a tensor{hint}")
            if not isinstance(x, Tensor):
                place = device or current_level() or default_device()
                x = wrap(array_of(x, place), place)
            if x.shape != shape:
                raise errors.ShapeError(f"{self._place(what, i)} has shape {x.shape}, the state {shape}")
            if x.dtype.kind == "c" and dtype.kind in dtypes.FLOATING:
                raise errors.DtypeError(
                    f"{self._place(what, i)} is {x.dtype}, the state {dtype}; start from a complex one"
                )
            tensors.append(x)
        return self._joined(tensors)

    def _place(self, what: str, i: int) -> str:
        return f"{self.name}: {what}{trees.paths(self.structure)[i]}"

    def _joined(self, tensors: Tensors) -> Tensor[Any]:
        parts = []
        for x, dtype in zip(tensors, self.dtypes, strict=True):
            x = cast(x, dtype)
            for part in (x.real, x.imag) if dtype.kind == "c" else (x,):
                part = cast(part, self.dtype)
                parts.append(part if part.ndim == 1 else run("reshape", (part,), shape=(part.size,)))
        return parts[0] if len(parts) == 1 else run("concat", parts, axis=0)

    def unravel(self, x: Tensor[Any]) -> Any:
        """The tree of a vector; of a stack of vectors, with the stack's axes in front of each leaf's.

        Its leaves are objects of their own: a function may assign to them.
        """
        leading = x.shape[:-1]
        if self.is_vector:
            return same(x)
        leaves, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            part = x if size == self.size else x[..., start : start + size]
            if dtype.kind == "c":
                part = part[..., : size // 2] + 1j * part[..., size // 2 :]
            part = cast(part, dtype)
            leaves.append(same(part) if part.shape == (*leading, *shape) else part.reshape((*leading, *shape)))
            start += size
        return trees.unflatten(self.structure, leaves)

    def answer(self, x: Tensor[Any]) -> Any:
        """The tree of a vector for the caller, in the dtypes that were given."""
        leaves, _ = trees.flatten(self.unravel(x))
        return trees.unflatten(
            self.structure, [cast(leaf, dtype) for leaf, dtype in zip(leaves, self._given, strict=True)]
        )


class Parameters:
    """The arrays that a function depends on beside its state: those among its arguments, and what it closes over.

    `tensors` are theirs, halves as float32, on the base: the highest backend of them, of the other trees and of the
    active level.
    """

    f: Function
    leaves: list[Any]
    name: str
    structure: Any

    def __init__(self, name: str, f: Function, args: Any, *others: Any) -> None:
        check_callable(name, f)
        self.name, self.f, self._later = name, f, as_now(f)
        self.leaves, self.structure = trees.flatten(args)
        self.closed: dict[int, Tensor[Any]] = closed_over(f)
        known = [*trees.flatten(others)[0], *self.leaves, *self.closed.values()]
        self.base: Backend = base_of(known, name)
        self.as_numpy: bool = current_level() is None and not any(isinstance(x, Tensor) for x in known)
        self.places: list[int] = [i for i, x in enumerate(self.leaves) if is_numeric(x)]
        arrays = [*[self.leaves[i] for i in self.places], *self.closed.values()]
        tensors = [wrap(array_of(x, self.base, keep=True), self.base) for x in arrays]
        self.tensors: list[Tensor[Any]] = [cast(x, dtypes.summing(x.dtype)) for x in tensors]

    def call(self, values: Tensors, *first: Any) -> Any:
        """The function at `first` and then its arguments, with these values in the place of the tensors."""
        closed = dict(zip(self.closed, values[len(self.places) :], strict=True))
        form = f"f({'y, t' if len(first) > 1 else 'x'}, *args)"
        return called(self.name, form, substituted(self.f, closed), *first, *self.arguments(values))

    def arguments(self, values: Tensors | None = None) -> Any:
        """The arguments, with these values or their own in the place of the tensors."""
        leaves = list(self.leaves)
        for place, x in zip(self.places, self.tensors if values is None else values, strict=False):
            leaves[place] = same(x)  # which the function may assign to
        return trees.unflatten(self.structure, leaves)

    def settle(self) -> None:
        """Say that what runs from now on is derivatives: of the function as it was when it was given."""
        self.f = self._later

    def answer(self, tree: Any) -> Any:
        """Results for the caller: tensors, or NumPy arrays where all that was given were such."""
        self.settle()
        leaves, _ = trees.flatten(tree)
        if not self.as_numpy or any([x.device.tracked(x._array) for x in leaves]):
            return tree
        return trees.map(lambda x: to_numpy(x._array, x.device), tree)


# --- rules on lists of tensors -------------------------------------------------------------------


def floats_of(xs: Tensors) -> Tensors:
    """Those that have derivatives."""
    return [x for x in xs if x.dtype.kind in dtypes.INEXACT]


def with_floats(xs: Tensors, floats: Iterable[Tensor[Any]]) -> Tensors:
    """The list with other tensors in the place of those that have derivatives."""
    given = iter(floats)
    return [next(given) if x.dtype.kind in dtypes.INEXACT else x for x in xs]


def applied(rules: CustomRules, xs: Tensors) -> Tensor[Any]:
    """The only result of a function with rules, on the backend where its arguments meet."""
    device = common_backend(*xs)
    (y,) = apply(rules, [wrap(lift_to(x, device), device) for x in xs], device)
    return y


def of_dependence(xs: Tensors) -> bool:
    """Whether tangents are there for the sake of what they depend on: their values are not looked at."""
    return any(isinstance(level, Dependence) for level in common_backend(*xs).chain())


def lifted_result(x: Tensor[Any], device: Backend, name: str) -> Tensor[Any]:
    """A result of a function on the backend of its arguments; TrackedError where that would lose a derivative."""
    if x.device is device:
        return x
    try:
        return wrap(lift_to(x, device), device)
    except errors.DeviceError:
        raise errors.TrackedError(
            f"{name}: the function uses a tensor on {x.device} that is neither an argument nor a variable of its "
            "closure, so that its derivative would be lost; make it an argument"
        ) from None
