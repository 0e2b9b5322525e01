"""Between SciPy's vectors of float64 and the user's trees of tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.functions.arguments import AXES, called, check_callable, is_numeric
from adjoint.functions.shape import concat
from adjoint.graph.nodes import leaves_behind
from adjoint.operands import cast, fitting
from adjoint.solvers.vectors import State
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function, array_of, base_of, constants, to_numpy
from adjoint.transforms.forward import linearize
from adjoint.transforms.reverse import grad

Vector = np.ndarray[Any, np.dtype[np.float64]]


def optimizers() -> Any:
    try:
        import scipy.optimize
    except ModuleNotFoundError:
        raise errors.MissingLibraryError(
            "ad.scipy needs SciPy, which is not installed: pip install 'adjoint[scipy]'"
        ) from None
    return scipy.optimize


class Space:
    """Where a search takes place: the vectors of SciPy, and the trees of the user."""

    def __init__(self, name: str, x0: Any, args: Any) -> None:
        self.name = name
        x0 = _as_floats(f"{name}: x0", x0)
        leaves = [*trees.flatten(x0)[0], *trees.flatten(args)[0]]
        for x in leaves:
            if isinstance(x, Tensor) and x.is_tracked():
                raise errors.TrackedError(
                    f"{name}: an argument is tracked, and SciPy's search leaves the graph; detach() it, or see "
                    "ad.implicit for solutions with derivatives"
                )
        self.base = base_of(leaves, name)
        self.as_numpy: bool = not any([isinstance(x, Tensor) for x in leaves])
        self.state: State = State(name, "x0", x0, self.base)
        self.args: tuple[Any, ...] = tuple([constants(x, self.base) for x in args])
        self.start: Vector = float64(self.state.vector)

    def tensor(self, vector: Vector) -> Tensor[Any]:
        """SciPy's vector on the base, in the dtype of the state."""
        return cast(wrap(array_of(np.asarray(vector, np.float64), self.base, keep=True), self.base), self.state.dtype)

    def tree(self, vector: Vector) -> Any:
        """A vector as the user's tree."""
        tree = self.state.answer(self.tensor(vector))
        return trees.map(lambda x: to_numpy(x._array, x.device), tree) if self.as_numpy else tree

    def on_vectors(self, f: Function) -> Function:
        """A function of trees as one of vectors."""
        check_callable(self.name, f)
        return keep_name(f)(lambda x: self.call(f, self.state.unravel(x), *self.args))

    def call(self, f: Function, *args: Any) -> Any:
        """A function of the user, in the precision of the start."""
        with self.state.precise():
            return called(self.name, "fun(x, *args)", f, *args)

    def spread(self, bound: Any, what: str) -> Vector:
        """A number for every entry of the vector, from one for all or a tree with numbers or arrays as leaves."""
        parts = []
        structure = self.state.structure
        values = [bound]
        if structure.num_nodes > 1:
            values = trees.spread(bound, structure, f"{self.name}: {what}")
        for value, shape, size, dtype in zip(
            values, self.state.shapes, self.state.sizes, self.state.dtypes, strict=True
        ):
            if dtype.kind == "c":
                raise errors.DtypeError(f"{self.name}: {what} has no meaning for complex numbers, which have no order")
            try:
                parts.append(np.broadcast_to(np.asarray(values_of(value), np.float64), shape).reshape(size))
            except (TypeError, ValueError) as error:
                raise errors.ArgumentError(
                    f"{self.name}: {what} of an array of shape {shape} is {errors.shown(value)}; {error}"
                ) from None
        return np.concatenate(parts)


def keep_name(f: Function) -> Callable[[Function], Function]:
    """Keeps a function's name for messages, but not its signature."""

    def rename(run: Function) -> Function:
        run.__name__ = getattr(f, "__name__", repr(f))
        return run

    return rename


def _as_floats(name: str, tree: Any) -> Any:
    """Rows of Python numbers as arrays, and integers as float64, as SciPy reads them."""
    if isinstance(tree, (list, tuple)) and tree and _only_numbers(tree):
        with contextlib.suppress(errors.ShapeError):  # rows of different lengths are a tree
            tree = dtypes.array_of(tree, name)
    return trees.map(lambda x: _as_float(name, x), tree)


def _only_numbers(tree: Any, depth: int = 0) -> bool:
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return depth < AXES and all([_only_numbers(x, depth + 1) for x in tree])
    return isinstance(tree, (bool, int, float, complex))


def _as_float(name: str, x: Any) -> Any:
    x = x.to_numpy() if dtypes.is_table(x) else x
    if isinstance(x, int):
        x = fitting(x, dtypes.float64, name)
    if isinstance(x, (bool, int)) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biu"):
        return np.asarray(x, np.float64)
    if isinstance(x, Tensor) and x.dtype.kind in "biu":
        return x.astype(np.dtype(np.float64))
    return x


def values_of(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    if x.is_tracked():
        leaves = leaves_behind(getattr(x._array, "node", None))
        what = f"a leaf of shape {leaves[0].shape} that require_grad tracks" if leaves else "a tensor that is tracked"
        raise errors.TrackedError(
            f"ad.scipy: a function closes over {what}, and SciPy's search leaves the graph; use w.detach() there, or "
            "see ad.implicit for solutions with derivatives"
        )
    return x.numpy()


def float64(x: Any) -> Vector:
    return np.array(values_of(x), np.float64)  # SciPy's own, which it may write to


def flat_of(name: str, tree: Any) -> Tensor[Any]:
    """The arrays of a function's result, one behind the other, as one real vector."""
    leaves, structure = trees.flatten(tree)
    parts = []
    for i, x in enumerate(leaves):
        if not isinstance(x, Tensor) and is_numeric(x):
            x = np.asarray(x)
        kind = getattr(getattr(x, "dtype", None), "kind", "")
        if not isinstance(x, Tensor) or kind != "f":
            what = f"{type(x).__name__} {errors.shown(x)}" if not kind else f"an array of {x.dtype}"
            raise errors.DtypeError(
                f"{name}: the function's result{trees.paths(structure)[i]} is {what}; expected real floating tensors"
            )
        parts.append(x.reshape((x.size,)))
    if not parts:
        raise errors.ArgumentError(f"{name}: the function has no results")
    return parts[0] if len(parts) == 1 else concat(parts)


def flat_function(space: Space, f: Function, args: tuple[Any, ...] = ()) -> Function:
    """A function of trees as one from vectors to vectors."""
    check_callable(space.name, f)
    args = tuple([constants(x, space.base) for x in args])
    return keep_name(f)(lambda x: flat_of(space.name, space.call(f, space.state.unravel(x), *args)))


class Curvature:
    """Products with the Hessian of a function, linearised once for all directions at a point."""

    f: Function
    space: Space

    def __init__(self, space: Space, f: Function) -> None:
        self.space, self.f = space, f
        self.at: Vector | None = None
        self.along: Function | None = None

    def __call__(self, x: Vector, direction: Vector) -> Vector:
        if self.at is None or not np.array_equal(self.at, x):
            self.at = np.array(x)
            _, self.along = linearize(grad(self.f), self.space.tensor(x))
        assert self.along is not None
        return float64(self.along(self.space.tensor(direction)))


def operator(shape: tuple[int, int], product: Function, transposed: Function | None = None) -> Any:
    import scipy.sparse.linalg

    make: Any = scipy.sparse.linalg.LinearOperator
    return make(shape, matvec=product, rmatvec=transposed, dtype=np.float64)


def as_tuple(name: str, args: Any) -> tuple[Any, ...]:
    """SciPy takes a single argument without a tuple, too."""
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)
