"""Solutions of inner problems: roots, fixed points and minima, differentiated by the implicit function theorem."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.decorators.batched import Batched
from adjoint.dtypes import FLOATING, finfo
from adjoint.functions.arguments import as_integer, as_positive, called, check_callable
from adjoint.functions.contraction import vecdot
from adjoint.functions.elementwise import abs, where
from adjoint.functions.logic import isfinite
from adjoint.functions.reduction import all, max
from adjoint.linalg import vector_norm
from adjoint.operands import common_backend, concrete_values
from adjoint.solvers.krylov import Solution, cg, for_all_examples, kept
from adjoint.solvers.linear import max_iterations, products
from adjoint.solvers.theorem import Known, Residual, Systems, Vector
from adjoint.solvers.vectors import Parameters, State, applied, lifted_result
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function, array_of, to_numpy
from adjoint.transforms.carries import with_examples_of
from adjoint.transforms.hosted import hosted, waits
from adjoint.transforms.levels import Tensors
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.reverse import grad, stop_gradient, value_and_grad


@of_any_library
def root(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float | None = None,
    maxiter: int = 50,
    solver: Function | None = None,
    linear_solver: str | Function | None = None,
    callback: Callable[[int, float], Any] | None = None,
) -> Any:
    """The x with f(x, *args) = 0, differentiable by `args` and by the tensors that f closes over.

    Parameters
    ----------
    f
        A function of x and `args` whose result has the structure and the shapes of x.
    x0
        Where the search starts: a pytree of floating arrays. The derivative with respect to it is zero.
    args
        Pytrees of arrays.
    tol
        x is found when a whole Newton step changed its entries by less than the square root of `tol`, relatively:
        such steps square the error. Where none does, as at zero, no entry of f may be larger than `tol` in the end.
        None is 2e-12 for float64, 6e-6 for float32.
    maxiter
        How many steps there may be.
    solver
        Another way to find x: `solver(g, x0)` gives x, where g is f as a function of x alone. Both work on NumPy
        arrays; it may be any Python, such as `lambda g, x0: scipy.optimize.root(g, x0).x`. That x solves the equation
        is checked coarsely: of the largest entry of f at x0, or of 1, at most a thousandth may be left.
    linear_solver
        How the linear systems of steps and derivatives are solved. "dense": by the whole Jacobian. "sparse": by the
        entries that its pattern has, and SciPy's sparse LU factors (`pip install 'adjoint[scipy]'`). "gmres", or "cg"
        for a symmetric positive definite Jacobian: by products alone. A function `linear_solver(matvec, b)` gives the u
        with `matvec(u) = b`, to three digits at least; all are NumPy vectors of the entries of x0, leaf after leaf,
        complex ones as real and imaginary parts. None chooses, see the notes.
    callback
        Called after each step with how many there were and the largest entry of f, of all examples in `vmap`:
        `callback=print` shows progress.

    Returns
    -------
    pytree
        As x0, tensors, or NumPy arrays where all that was given were such.

    Notes
    -----
    Newton's method with a line search. Halves are solved in float32: f meets x, `args` and what it closes over as such,
    and the result is rounded. Derivatives of any order and in any mode are solutions of linear systems with
    the Jacobian at x, or its transpose. Up to 100 unknowns systems are solved by the whole Jacobian; with more by the
    sparse one, where SciPy is installed and at most a tenth as many products as unknowns make it; else up to 500 by the
    whole one, with more by GMRES, and by the whole one after all where that does not converge soon and it has at most
    10 million entries. In `vmap` a batch goes on until all examples are found; functions of the user run for one
    example after the other.

    Raises
    ------
    ConvergenceError
        No solution within `maxiter` steps, or none of a derivative's system; a solver's result that is none.
    SingularError
        The Jacobian at the solution has no inverse: there is no derivative. In backward this, and that a system was not
        solved, are the cause of a BackwardError.
    ArgumentError, ShapeError, DtypeError
        x0 has no elements, or other than floating ones; f gives another structure, shape or kind; `linear_solver` is
        no name of one, or gives another shape.
    MissingLibraryError
        `linear_solver` is "sparse", and SciPy is not installed.
    TrackedError
        f uses a tensor whose derivative would be lost: one that is neither an argument nor in f's closure.

    Examples
    --------
    >>> import adjoint as ad
    >>> root_of = lambda a: ad.implicit.root(lambda x, a: x**2 - a, 1.0, a)
    >>> root_of(2.0), ad.grad(root_of)(2.0)
    (np.float64(1.41421356237...), np.float64(0.35355339059...))
    """
    problem = _Problem("root", f, x0, args, tol, maxiter, solver, linear_solver, callback)
    return problem.solution(problem.result, _newton, problem.result)


@of_any_library
def fixed_point(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float | None = None,
    maxiter: int = 1000,
    solver: Function | None = None,
    linear_solver: str | Function | None = None,
    callback: Callable[[int, float], Any] | None = None,
) -> Any:
    """The x with f(x, *args) = x, found by iterating f, differentiable by `args` and by what f closes over.

    x is found where f changes no entry by more than `tol` times the largest entry, or times 1. Linear systems, with the
    Jacobian of f(x) - x, are those of derivatives alone; `callback` gets the largest change. Everything else is as in
    `root`, which finds fixed points of functions that are no contractions: those are roots of f(x) - x.

    >>> import adjoint as ad
    >>> ad.implicit.fixed_point(lambda x: ad.cos(x), 1.0)
    np.float64(0.7390851332...)
    """
    problem = _Problem("fixed_point", f, x0, args, tol, maxiter, solver, linear_solver, callback)
    return problem.solution(lambda x, theta: problem.result(x, theta) - x, _iterated, problem.result)


@of_any_library
def minimize(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float | None = None,
    maxiter: int = 200,
    solver: Function | None = None,
    linear_solver: str | Function | None = None,
    callback: Callable[[int, float], Any] | None = None,
) -> Any:
    """A local minimum x of a scalar f(x, *args), differentiable by `args` and by what f closes over.

    f is twice differentiable, and x is found where the gradient by x is zero, in the sense of `root`. Newton's method
    with conjugate gradients and a line search, algorithm 7.1 of J. Nocedal and S. Wright, Numerical Optimization
    (2006), finds it; derivatives solve systems with the Hessian at x. With a `linear_solver` steps are the solutions
    that it gives, where they go down; so they are of more than 100 unknowns with a sparse Hessian. `callback` gets the
    largest entry of the gradient. Everything else is as in `root`.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> best = lambda a: ad.implicit.minimize(lambda x, a: ((x - a) ** 2).sum() + (x**4).sum(), np.zeros(2), a)
    >>> best(np.array([0.0, 3.0]))
    array([0., 1.])
    >>> ad.jacobian(best)(np.array([0.0, 3.0])).round(6)
    array([[1.      , 0.      ],
           [0.      , 0.142857]])
    """
    problem = _Problem("minimize", f, x0, args, tol, maxiter, solver, linear_solver, callback)

    def gradient(x: Vector, theta: Tensors) -> Vector:
        return grad(lambda x: problem.scalar(x, theta))(x)  # type: ignore[no-any-return]

    return problem.solution(gradient, _newton_cg, problem.scalar, symmetric=True)


_LEFT = 1e-3  # what a user's solver may leave of the equation, of what there is at the start, or of 1
_RESIDUALS = {
    "root": "the largest entry of the function",
    "fixed_point": "the largest change",
    "minimize": "the largest entry of the gradient",
}


class _Problem(Systems):
    """What is to be solved, on vectors."""

    def __init__(
        self,
        name: str,
        f: Function,
        x0: Any,
        args: Any,
        tol: Any,
        maxiter: Any,
        solver: Function | None,
        linear_solver: Any,
        callback: Callable[[int, float], Any] | None,
    ) -> None:
        self.maxiter, self.solver, self.callback = maxiter, solver, callback
        self.parameters = Parameters(name, f, args, x0)
        self.state = State(name, "x0", x0, self.parameters.base)
        eps = float(finfo(self.state.dtype).eps)
        if tol is None:
            tol = eps**0.75
        as_positive(tol, name, "tol")
        as_integer(maxiter, name, "maxiter", 1)
        if solver is not None:
            check_callable(name, solver, "solver")
        if callback is not None:
            check_callable(name, callback, "callback")
        self.tol = float(tol)
        # residuals of systems are no smaller than that, if rounded
        super().__init__(name, linear_solver, builtins.max(self.tol, eps ** (2 / 3)))

    def solution(
        self, residual: Residual, search: Callable[..., Vector], function: Residual, *, symmetric: bool = False
    ) -> Any:
        """The solution for the caller. `function` is what was given, and what the search gets."""
        rules = _Solution(self, residual, search, function, symmetric)
        xs = [stop_gradient(self.state.vector), *self.parameters.tensors]
        if waits(xs):
            (x,) = hosted(self.name, lambda xs: [applied(rules, xs)], xs, [(xs[0].shape, xs[0].dtype)])
        else:
            x = applied(rules, xs)
        return self.parameters.answer(self.state.answer(x))

    def result(self, x: Vector, theta: Tensors) -> Vector:
        with self.state.precise():
            return self.state.ravel(self.parameters.call(theta, self.state.unravel(x)))

    def scalar(self, x: Vector, theta: Tensors) -> Tensor[Any]:
        with self.state.precise():
            out = self.parameters.call(theta, self.state.unravel(x))
        if getattr(out, "shape", ()) != () or not isinstance(out, (Tensor, np.generic, int, float)):
            what = f"a result of shape {out.shape}" if hasattr(out, "shape") else f"{type(out).__name__}"
            raise errors.ShapeError(f"minimize: the function gives {what}, expected a scalar")
        if not isinstance(out, Tensor):
            out = wrap(array_of(out, x.device), x.device)
        if out.dtype.kind not in FLOATING:
            raise errors.DtypeError(f"minimize: the function gives {out.dtype}, expected a real floating result")
        return out

    def is_last(self, step: Vector, x: Vector) -> Tensor[Any]:
        """Whether a step of Newton's method, which squares relative errors, leaves no more than tol; zeros aside."""
        return all((abs(step) <= self.tol**0.5 * abs(x)) | (abs(step) <= self.tol * max(abs(x))))

    def report(self, count: int, sizes: Tensor[Any]) -> None:
        """Tells the user how far the search is."""
        if self.callback is not None:
            self.callback(count, float(np.max(concrete_values(sizes, self.name))))

    def failed(
        self, count: int, sizes: Tensor[Any], found: Tensor[Any], what: str, way: str = ""
    ) -> errors.ConvergenceError:
        """The error for examples that were not found; `way` comes before the ways out that it names."""
        flags, values = (concrete_values(x, self.name) for x in (found, sizes))
        flags, values = np.broadcast_arrays(flags, values)
        worst = float(np.max(values[~flags]))
        batch = f" for {np.sum(~flags)} of {flags.size} examples" if flags.ndim else ""
        return errors.ConvergenceError(
            f"{self.name}: not solved{batch} after {count} iterations: {what} is {worst:.3g}, and tol {self.tol:.3g}; "
            f"{way}start nearer to the solution, allow more with maxiter, or ask for less with tol",
            iterations=count,
            residual=worst,
        )


class _Solution(Known):
    """The solution of the problem, as a function of [x0, *theta]."""

    def __init__(
        self, problem: _Problem, f: Residual, search: Callable[..., Vector], function: Residual, symmetric: bool
    ) -> None:
        super().__init__(problem, f, symmetric)
        self.problem: _Problem
        self.search, self.function = search, function

    def solve(self, xs: Tensors) -> Vector:
        x0, *theta = xs
        device = common_backend(*xs)

        def function(x: Vector) -> Vector:
            out = self.function(x, theta)
            return lifted_result(out, device, self.name) if x.device is device else out

        if self.problem.solver is not None:
            return self._by_solver(function, x0, theta)
        with device.leaf.quiet():  # a line search may leave the domain of f
            return lifted_result(self.search(self.problem, function, x0), device, self.name)

    def _by_solver(self, function: Callable[[Vector], Vector], x0: Vector, theta: Tensors) -> Vector:
        state, device = self.problem.state, x0.device

        def g(tree: Any) -> Any:
            leaves, _ = trees.flatten(tree)
            out = function(state.ravel(tree, "what the solver calls it with", device))
            result = state.unravel(out) if out.ndim else out
            if any([isinstance(x, Tensor) for x in leaves]):
                return result
            return trees.map(lambda x: to_numpy(x._array, x.device), result)

        assert self.problem.solver is not None
        start = trees.map(lambda x: to_numpy(x._array, x.device), state.unravel(x0))
        found = called(self.problem.name, "solver(g, x0)", self.problem.solver, g, start)
        x = state.ravel(found, "the solver's result", device)
        if not for_all_examples(all(isfinite(x))):
            raise errors.ConvergenceError(f"{self.name}: the solver's result is not finite")
        left, start_left = (max(abs(self.f(point, theta))) for point in (x, x0))
        if not for_all_examples(left <= _LEFT * where(start_left > 1, start_left, 1.0)):
            worst = float(np.max(concrete_values(left, self.name)))
            raise errors.ConvergenceError(
                f"{self.name}: the solver's result is no solution: {_RESIDUALS[self.name]} is {worst:.3g} there",
                residual=worst,
            )
        return lifted_result(x, device, self.name)

    def batch(
        self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors
    ) -> tuple[Tensors, list[bool]] | None:
        problem = self.problem
        return self.one_by_one(size, flags, xs) if problem.solver is not None or problem.linear_solver.each else None


# --- searches ------------------------------------------------------------------------------------


def _newton(problem: _Problem, f: Function, x: Vector) -> Vector:
    """A root by Newton's method, with steps that make |f| smaller; C. Kelley, Solving Nonlinear Equations (2003)."""
    value = f(x)
    x = with_examples_of(x, value)
    found = solved = max(abs(value)) == 0
    count = 0
    while count < problem.maxiter and not for_all_examples(found):
        try:
            step, solved = map(kept, problem.linear_solver(f, x, -value, problem.tol**0.5))
        except errors.SingularError as error:
            raise errors.ConvergenceError(
                f"root: the Jacobian is singular after {count} steps; start elsewhere, or give a solver",
                iterations=count,
            ) from error
        count += 1
        last = solved & problem.is_last(step, x)  # what is no step of Newton's may be short anywhere
        size = vector_norm(value)
        moved, better = _line_search(lambda x: vector_norm(f(x)), x, step, size, -size)
        x = kept(where(found, x, where(last, x + step, moved)))
        value = kept(f(x))
        problem.report(count, max(abs(value)))
        found = kept(found | last | (max(abs(value)) == 0))
        if for_all_examples(found | ~better):  # those that are not found are stuck
            break
    found = found | (max(abs(value)) <= problem.tol)
    if not for_all_examples(found):
        way = "" if for_all_examples(found | solved) else "try another linear_solver, which did not solve a system, "
        raise problem.failed(count, max(abs(value)), found, _RESIDUALS["root"], way)
    return x


def _iterated(problem: _Problem, f: Function, x: Vector) -> Vector:
    """A fixed point by iteration."""
    value, count = f(x), 0
    found = change = max(abs(value - x)) < 0  # none so far
    while count < problem.maxiter and not for_all_examples(found):
        count += 1
        change = max(abs(value - x))
        problem.report(count, change)
        size = max(abs(x))
        x = kept(where(found, x, value))
        found = kept(found | (change <= problem.tol * where(size > 1, size, 1.0)))
        value = kept(f(x))
    if not for_all_examples(found):
        raise problem.failed(count, change, found, _RESIDUALS["fixed_point"])
    return x


def _newton_cg(problem: _Problem, f: Function, x: Vector) -> Vector:
    """A minimum by Newton's method with conjugate gradients, Nocedal and Wright (2006), algorithm 7.1."""
    value, slope = value_and_grad(f)(x)
    x = with_examples_of(x, slope)
    found = max(abs(slope)) == 0
    short = found & False
    count = 0
    while count < problem.maxiter and not for_all_examples(found):
        size = vector_norm(slope)
        exact = where(short, problem.tol**0.5, where(size < 0.25, size**0.5, 0.5))
        step, newton = map(kept, _down(problem, f, x, slope, exact))
        count += 1
        near = newton & problem.is_last(step, x)
        short, last = near, near & short  # the error is squared by a step that is solved for exactly, after a short one
        moved, better = _line_search(f, x, step, value, vecdot(slope, step))
        x = kept(where(found, x, where(near, x + step, moved)))
        value, slope = map(kept, value_and_grad(f)(x))
        problem.report(count, max(abs(slope)))
        found = kept(found | last | (max(abs(slope)) == 0))
        if for_all_examples(found | ~(better | near)):
            break
    found = found | (max(abs(slope)) <= problem.tol)
    if not for_all_examples(found):
        raise problem.failed(count, max(abs(slope)), found, _RESIDUALS["minimize"])
    return x


def _down(problem: _Problem, f: Function, x: Vector, slope: Vector, tol: Tensor[Any]) -> Solution:
    """A step that makes f smaller, and whether it is Newton's."""
    solver, slopes = problem.linear_solver, grad(f)
    if not solver.replaces_cg(slopes, x):
        return cg(products(slopes, x), -slope, tol, max_iterations(x))
    try:
        step, newton = solver(slopes, x, -slope, problem.tol**0.5, symmetric=True)
    except errors.SingularError:
        step, newton = -slope, slope[0] != slope[0]
    newton = newton & (vecdot(step, slope) < 0)
    if for_all_examples(newton):
        return step, newton
    other, _ = cg(products(slopes, x), -slope, tol, max_iterations(x))
    return where(newton, step, other), newton


def _line_search(
    merit: Function, x: Vector, step: Vector, start: Tensor[Any], slope: Tensor[Any]
) -> tuple[Vector, Tensor[Any]]:
    """x + alpha step for the first alpha of 1, 1/2, 1/4, ... at which the merit falls, x if there is none; and if so.

    It falls enough where it follows a small part of the slope (L. Armijo 1966), up to rounding.
    """
    slack = 10 * float(finfo(x.dtype).eps) * abs(start)
    alpha, trial = start * 0 + 1, x + step
    better = merit(trial) <= start + 1e-4 * slope + slack
    for _ in range(40):
        if for_all_examples(better):
            break
        alpha = where(better, alpha, alpha / 2)
        trial = x + alpha * step
        better = merit(trial) <= start + 1e-4 * alpha * slope + slack
    return where(better, trial, x), better
