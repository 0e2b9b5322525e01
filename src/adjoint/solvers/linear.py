"""Linear systems with a Jacobian: by its matrix, dense or sparse, from products alone, or by a function of the user.

Sparse matrices are found and coloured as `ad.sparse_jacobian` does, and factored by SuperLU (X. Li et al., 1999).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.dtypes import finfo
from adjoint.functions.arguments import as_choice, called, is_numeric, kind_of
from adjoint.functions.elementwise import abs
from adjoint.functions.logic import isfinite
from adjoint.functions.reduction import all
from adjoint.linalg import solve, vector_norm
from adjoint.operands import concrete_values
from adjoint.rules.sparsity import scipy_sparse
from adjoint.solvers.krylov import Solution, cg, for_all_examples, gmres
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function
from adjoint.transforms.batches import vmap
from adjoint.transforms.carries import with_examples_of
from adjoint.transforms.forward import jvp, linearize
from adjoint.transforms.jacobians import jacobian
from adjoint.transforms.reverse import vjp
from adjoint.transforms.sparse import Colouring, jacobian_colouring, pattern_of, same_pattern

Vector = Tensor[Any]
Values = np.ndarray[Any, Any]

SMALL = 100  # up to so many unknowns systems are solved with dense matrices,
DENSE = 500  # up to so many where they are not sparse,
_ENTRIES = 10_000_000  # unless those of a batch have more entries
_TRIED = 300  # how many products are tried where the matrix is the other way
_LOOSE = 1e-3  # what a user's solver may leave of b
NAMES = ("dense", "sparse", "cg", "gmres")


class Matrix:
    """The values of a Jacobian, for systems (c I - J) u = b with numbers c: of a batch, those of all examples.

    `entries` are those of a matrix, or in the order of a pattern.
    """

    entries: Values
    name: str
    pattern: Any

    def __init__(self, name: str, entries: Values, pattern: Any = None) -> None:
        self.name, self.entries, self.pattern = name, entries, pattern

    def shifted(self, c: complex) -> Callable[[Values], Values]:
        """u as a function of b, complex if c is; raises SingularError for a matrix without inverse."""
        if self.pattern is None:
            try:
                inverse = np.linalg.inv(c * np.eye(self.entries.shape[-1]) - self.entries)
            except np.linalg.LinAlgError as error:
                raise errors.SingularError(f"{self.name}: {error}") from None
            return lambda b: (inverse @ b[..., None])[..., 0]
        unit = scipy_sparse().eye_array(self.pattern.shape[0], format="csr") * c
        solves = {
            place: factored(unit - self.with_entries(self.entries[place]))
            for place in np.ndindex(self.entries.shape[:-1])
        }

        def run(b: Values) -> Values:
            out = np.empty(b.shape, np.result_type(b, c))
            for place, solve_one in solves.items():
                out[place] = solve_one(b[place].astype(out.dtype), False)
            return out

        return run

    def with_entries(self, entries: Values) -> Any:
        return scipy_sparse().csr_array((entries, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)


class LinearSolver:
    """How systems A u = b are solved, where A is the Jacobian of a function of one vector, or its transpose.

    By name, by the user's function, or, for None, as size and pattern suggest.
    """

    choice: Any
    name: str

    def __init__(self, name: str, choice: Any) -> None:
        self.name, self.choice = name, choice
        self.each = callable(choice)  # it solves for one example after the other
        if not self.each:
            as_choice(choice, name, "linear_solver, if it is no function,", (*NAMES, None))
        if choice == "sparse":
            scipy_sparse()  # or say now that there is none
        self.colouring: Colouring | None = None
        self.may_be_sparse: bool | None = None

    def __call__(
        self, f: Function, x: Vector, b: Vector, tol: float, *, symmetric: bool = False, transposed: bool = False
    ) -> Solution:
        """u, and whether it was found: by products, up to |A u - b| <= tol |b|.

        Raises SingularError for a matrix without inverse.
        """
        transposed = transposed and not symmetric
        choice = self.choice
        if self.each:
            return self._by_user(f, x, b, symmetric or transposed)
        most = builtins.max(math.prod(v.device.leaf_array(v._array).shape) for v in (x, b))
        fits = x.size * most <= _ENTRIES
        if choice == "sparse" or (choice is None and (x.size > SMALL or not fits) and self._is_sparse(f, x)):
            return self._by_sparse_matrix(f, x, b, transposed)
        if choice == "dense" or (choice is None and fits and x.size <= DENSE):
            return _by_matrix(f, x, b, transposed)
        limit = max_iterations(x)
        if choice is None and fits:
            limit = min(limit, _TRIED)
        u, found = _by_products(f, x, b, tol, limit, symmetric, transposed, choice or ("cg" if symmetric else "gmres"))
        if choice is None and fits and not for_all_examples(found):
            return _by_matrix(f, x, b, transposed)
        return u, found

    def replaces_cg(self, f: Function, x: Vector) -> bool:
        """Whether Newton's steps to a minimum are its solutions, not those of conjugate gradients that stop early."""
        return self.choice is not None or (x.size > SMALL and self._is_sparse(f, x))

    # --- sparse matrices ---

    def _is_sparse(self, f: Function, x: Vector) -> bool:
        """Whether the Jacobian has so few entries, and so well apart, that its matrix is cheap. Known from then on."""
        if self.may_be_sparse is None:
            try:
                scipy_sparse()
            except errors.MissingLibraryError:
                self.may_be_sparse = False
            else:
                few = x.dtype.itemsize >= 4 and _has_zeros(f, x)
                self.may_be_sparse = few and self._coloured(f, x).products <= x.size // 10
        return self.may_be_sparse

    def _coloured(self, f: Function, x: Vector) -> Colouring:
        """The pattern at x, which is where it is looked for: f may decide by values. It mostly is that of before."""
        pattern = pattern_of(self.name, f, x)
        if self.colouring is None or not same_pattern(pattern, self.colouring.pattern):
            self.colouring = jacobian_colouring(pattern)
        return self.colouring

    def _by_sparse_matrix(self, f: Function, x: Vector, b: Vector, transposed: bool) -> Solution:
        colouring = self._coloured(f, x)
        entries = entries_of(f, x, colouring)
        if not entries.size:
            raise errors.SingularError(f"{self.name}: the Jacobian is zero")
        b = with_examples_of(b, entries[0])
        data = concrete_values(with_examples_of(entries, b[0]), self.name)
        matrix = Matrix(self.name, data, colouring.pattern)

        def run(right: Values) -> Values:
            out = np.empty_like(right)
            for place in np.ndindex(right.shape[:-1]):
                out[place] = factored(matrix.with_entries(data[place]))(right[place], transposed)
            return out

        u = on_values(b, run)
        return u, all(isfinite(u))

    def matrix(self, f: Function, x: Vector) -> Matrix:
        """The Jacobian of f at x, sparse if its size and pattern suggest that."""
        if x.size <= SMALL or not self._is_sparse(f, x):
            found = jacobian(f, mode="forward")(x)
            return Matrix(self.name, concrete_values(with_examples_of(found, x[0]), self.name))
        colouring = self._coloured(f, x)
        entries = with_examples_of(entries_of(f, x, colouring), x[0])
        return Matrix(self.name, concrete_values(entries, self.name), colouring.pattern)

    # --- the user's ---

    def _by_user(self, f: Function, x: Vector, b: Vector, transposed: bool) -> Solution:
        product = products(f, x) if transposed else linearize(f, x)[1]
        device = b.device

        def matvec(v: Any) -> Any:
            given = np.asarray(v, dtype=b.dtype)
            if given.size != b.size:
                raise errors.ShapeError(
                    f"{self.name}: the linear solver multiplies with a vector of shape {given.shape}, there are "
                    f"{b.size} unknowns"
                )
            return concrete_values(
                product(wrap(device.from_numpy(given.reshape(b.shape), copy=True), device)), self.name
            )

        def run(right: Values) -> Values:
            found = called(self.name, "linear_solver(matvec, b)", self.choice, matvec, np.array(right))
            hint = "; give its x alone" if isinstance(found, tuple) else ""
            if not is_numeric(found):
                raise errors.ArgumentTypeError(
                    f"{self.name}: the linear solver gives {kind_of(found)}, expected a vector{hint}"
                )
            if found.dtype.kind == "c" and right.dtype.kind != "c":
                raise errors.DtypeError(f"{self.name}: the linear solver gives {found.dtype}, expected {right.dtype}")
            u = np.asarray(found, dtype=right.dtype)
            if u.shape != right.shape:
                raise errors.ShapeError(
                    f"{self.name}: the linear solver gives an array of shape {u.shape} for {right.size} unknowns{hint}"
                )
            return u

        u = on_values(b, run)
        return u, vector_norm(product(u) - b) <= _LOOSE * vector_norm(b)  # where it broke down and did not say so


def max_iterations(x: Vector) -> int:
    """How many iterations a linear system may take."""
    return min(10 * x.size, 20_000)


def products(f: Function, x: Vector) -> Function:
    """Products with the transpose of f's Jacobian at x."""
    pullback = vjp(f, x)[1]
    return lambda v: pullback(v)[0]


def on_values(b: Vector, run: Callable[[Values], Values]) -> Vector:
    """What a function makes of the values of a vector, those of all examples of a batch: an array of that shape."""
    device, leaf = b.device, b.device.leaf
    return wrap(
        device.with_primal(b._array, lambda below: leaf.from_numpy(run(leaf.to_numpy(below)), copy=True)), device
    )


def factored(matrix: Any) -> Callable[[Values, bool], Values]:
    """Solutions with a sparse matrix, or its transpose; raises SingularError if there are none."""
    from scipy.sparse.linalg import splu

    try:
        factors = splu(matrix.tocsc())
    except RuntimeError as error:  # exactly singular
        raise errors.SingularError(str(error)) from None
    return lambda b, transposed: factors.solve(b, "T" if transposed else "N")


def entries_of(f: Function, x: Vector, colouring: Colouring) -> Vector:
    """The entries of the Jacobian of f at x, in the order of the pattern."""
    seeds = np.zeros((builtins.max(1, colouring.products), colouring.colours.size), dtype=x.dtype)
    seeds[colouring.colours, np.arange(colouring.colours.size)] = 1
    rows = wrap(x.device.from_numpy(seeds, copy=False), x.device)
    if colouring.forward:
        sums = vmap(lambda x, v: jvp(f, (x,), (v,))[1], (None, 0), randomness="shared")(x, rows)
    else:
        sums = vmap(lambda x, v: vjp(f, x)[1](v)[0], (None, 0), randomness="shared")(x, rows)
    return sums[colouring.group, colouring.place]  # type: ignore[no-any-return]


def _has_zeros(f: Function, x: Vector) -> bool:
    """Whether some columns of the Jacobian near x are mostly zeros: else its pattern might not fit into the memory."""
    rng = np.random.default_rng(0)
    columns = rng.choice(x.size, min(4, x.size), replace=False)
    units = np.zeros((len(columns), x.size), dtype=x.dtype)
    units[np.arange(len(columns)), columns] = 1
    shift = finfo(x.dtype).eps ** 0.5 * rng.standard_normal(x.size)  # because at zero more is zero
    moved = x + (abs(x) + 1) * wrap(x.device.from_numpy(shift.astype(x.dtype), copy=False), x.device)
    rows = wrap(x.device.from_numpy(units, copy=False), x.device)
    with x.device.leaf.quiet():
        out = concrete_values(
            vmap(lambda x, v: jvp(f, (x,), (v,))[1], (None, 0), randomness="shared")(moved, rows), "a solver"
        )
    return bool(np.mean(np.isfinite(out) & (out != 0)) < 0.1)


def _by_matrix(f: Function, x: Vector, b: Vector, transposed: bool) -> Solution:
    matrix = jacobian(f, mode="forward")(x)
    u = solve(matrix.mT if transposed else matrix, b)
    return u, all(isfinite(u))


def _by_products(
    f: Function, x: Vector, b: Vector, tol: float, limit: int, symmetric: bool, transposed: bool, method: str
) -> Solution:
    product = products(f, x) if symmetric or transposed else linearize(f, x)[1]
    return (cg if method == "cg" else gmres)(product, b, tol, limit)
