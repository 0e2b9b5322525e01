"""The implicit function theorem, as rules of functions that are given by an equation.

Where F(y, theta) = 0 holds at the solution y, its derivative solves the linear system F_y dy = -F_theta dtheta: how
the solution was found does not matter, and nothing of the search is kept. See Griewank and Walther, Evaluating
Derivatives (2008), chapter 15; M. Blondel et al., Efficient and modular implicit differentiation (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.decorators.batched import Batched
from adjoint.functions.reduction import sum
from adjoint.functions.shape import stack
from adjoint.solvers.krylov import for_all_examples
from adjoint.solvers.linear import LinearSolver, max_iterations
from adjoint.solvers.vectors import applied, floats_of, of_dependence, with_floats
from adjoint.tensor import Tensor
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Tensors
from adjoint.transforms.recomputed import each
from adjoint.transforms.reverse import vjp

Vector = Tensor[Any]
Residual = Callable[[Vector, Tensors], Vector]


class Systems:
    """How the linear systems of derivatives are solved, for the function of this name."""

    linear_solver: LinearSolver
    linear_tol: float
    name: str

    def __init__(self, name: str, linear_solver: Any, linear_tol: float) -> None:
        self.name, self.linear_solver, self.linear_tol = name, LinearSolver(name, linear_solver), linear_tol


class _Implicit(CustomRules):
    """The vector y with residual(y, xs) = 0, as a function of the tensors xs."""

    f: Residual
    symmetric: bool

    def __init__(self, problem: Systems, f: Residual, symmetric: bool) -> None:
        self.problem, self.f, self.symmetric = problem, f, symmetric
        self.name = problem.name

    def solve(self, xs: Tensors) -> Vector:
        """y, of values without derivatives."""
        raise NotImplementedError

    def residual(self, y: Vector, xs: Tensors) -> Vector:
        raise NotImplementedError

    def linear(self, y: Vector, xs: Tensors, b: Vector, transposed: bool) -> Vector:
        """The u of A u = b, where A is the derivative of the residual by y, or its transpose."""
        raise NotImplementedError

    def one_by_one(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        """y of one example after the other. Each has the shape of xs[0]."""
        if not size:
            return [xs[0] if flags[0] else each(xs[0], 0)], [True]
        ys = [applied(self, [x[i] if flag else x for x, flag in zip(xs, flags, strict=True)]) for i in range(size)]
        return [stack(ys)], [True]

    def plain(self, xs: Tensors) -> Tensors:
        return [self.solve(xs)]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        y = applied(self, xs)
        return [y], (y, xs)

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return ys[0], xs

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        y, xs = saved
        u = self.linear(y, xs, cotangents[0], True)
        _, pull = vjp(lambda *floats: self.residual(y, with_floats(xs, floats)), *floats_of(xs))
        return with_floats(xs, pull(-u))

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        y = applied(self, xs)
        _, change = jvp(lambda *floats: self.residual(y, with_floats(xs, floats)), floats_of(xs), floats_of(tangents))
        return [y], [self.linear(y, xs, -change, False)]


class Known(_Implicit):
    """A solution that is known, as a function of [solution, *theta]: it does not change with the first by itself."""

    def __init__(self, problem: Systems, f: Residual, symmetric: bool = False) -> None:
        super().__init__(problem, f, symmetric)

    def solve(self, xs: Tensors) -> Vector:
        return xs[0]

    def residual(self, y: Vector, xs: Tensors) -> Vector:
        return self.f(y, xs[1:])

    def linear(self, y: Vector, xs: Tensors, b: Vector, transposed: bool) -> Vector:
        return applied(_System(self.problem, self.f, self.symmetric, transposed), [y, *xs[1:], b])


class _System(_Implicit):
    """The u of A u = b as a function of [x, *theta, b], where A is the Jacobian of f at x, or its transpose."""

    def __init__(self, problem: Systems, f: Residual, symmetric: bool, transposed: bool) -> None:
        super().__init__(problem, f, symmetric)
        self.transposed = transposed and not symmetric

    def solve(self, xs: Tensors) -> Vector:
        x, *theta, b = xs
        problem = self.problem
        try:
            u, found = problem.linear_solver(
                lambda x: self.f(x, theta),
                x,
                b,
                problem.linear_tol,
                symmetric=self.symmetric,
                transposed=self.transposed,
            )
        except errors.SingularError as error:
            raise errors.SingularError(
                f"{self.name}: the Jacobian at the solution is singular, so that the solution has no derivative"
            ) from error
        if not for_all_examples(found):
            limit = (
                ""
                if problem.linear_solver.each
                else f" in {max_iterations(x)} iterations up to {problem.linear_tol:.3g}"
            )
            raise errors.ConvergenceError(
                f"{self.name}: the linear system of the derivative was not solved{limit}: its matrix is close to "
                "singular, or wants another linear_solver" + (", or x is no minimum" if self.symmetric else ""),
                iterations=max_iterations(x),
            )
        return u

    def batch(
        self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors
    ) -> tuple[Tensors, list[bool]] | None:
        return self.one_by_one(size, flags, xs) if self.problem.linear_solver.each else None

    def residual(self, y: Vector, xs: Tensors) -> Vector:
        x, *theta, b = xs
        if self.transposed:
            return vjp(lambda x: self.f(x, theta), x)[1](y)[0] - b  # type: ignore[no-any-return]
        return jvp(lambda x: self.f(x, theta), (x,), (y,))[1] - b  # type: ignore[no-any-return]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        if not of_dependence(tangents):
            return super().push(xs, tangents)
        y = applied(self, xs)
        moved = y * 0  # the inverse of a matrix has no zeros to speak of
        for t in floats_of(tangents):
            moved = moved + sum(t.real).astype(y.dtype)
        return [y], [moved]

    def linear(self, y: Vector, xs: Tensors, b: Vector, transposed: bool) -> Vector:
        return applied(_System(self.problem, self.f, self.symmetric, transposed ^ self.transposed), [*xs[:-1], b])
