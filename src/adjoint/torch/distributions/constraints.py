"""What values a parameter or a sample may have: `constraint.check(value)` says it for each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint.torch as torch
from adjoint.torch.lifted import all_true


class Constraint:
    """A region of values; the last `event_dim` axes are one event, and `check` gives a bool for each."""

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Dependent(Constraint):
    """A region that depends on other parameters: of an instance it is a property."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._discrete, self._events = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return bool(self._discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._events is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return int(self._events)

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        discrete = self._discrete if is_discrete is NotImplemented else is_discrete
        return _Dependent(is_discrete=discrete, event_dim=self._events if event_dim is NotImplemented else event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that is a region: a dependent one of the class, and one that can check of an instance."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._discrete, event_dim=self._events)


def is_dependent(constraint: Any) -> bool:
    """Whether a region depends on parameters and so cannot check."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """Axes of a region's events more: all of them must be valid."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        if found.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.dim()}: the last axes are one event"
            )
        return found.reshape(*found.shape[: found.dim() - self.reinterpreted_batch_ndims], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # all but nan


class _Bounded(Constraint):
    """Between bounds, of which either may be none and either may be among the values."""

    whole = False
    with_lower = with_upper = False

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Any) -> Any:
        found = value % 1 == 0 if self.whole else value == value
        if self.lower_bound is not None:
            low = self.lower_bound
            found = found & ((low <= value) if self.with_lower else (low < value))
        if self.upper_bound is not None:
            high = self.upper_bound
            found = found & ((value <= high) if self.with_upper else (value < high))
        return found

    def __repr__(self) -> str:
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        shown = ", ".join([f"{name}={bound}" for name, bound in bounds.items() if bound is not None])
        return f"{type(self).__name__.removeprefix('_')}({shown})"


class _IntegerInterval(_Bounded):
    is_discrete = whole = with_lower = with_upper = True


class _IntegerGreaterThan(_Bounded):
    is_discrete = whole = with_lower = True


class _GreaterThan(_Bounded):
    pass


class _GreaterThanEq(_Bounded):
    with_lower = True


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(None, upper_bound)


class _Interval(_Bounded):
    with_lower = with_upper = True


class _HalfOpenInterval(_Bounded):
    with_lower = True


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=torch.bool)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return _all_of(value.tril() == value)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        slack = torch.finfo(value.dtype).eps * value.size(-1) * 10  # of the norms of rows, which are one
        norms = torch.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & ((norms - 1).abs() <= slack).all(-1)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if all_true(square) else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        found = super().check(value)
        return torch.linalg.eigvalsh(value).ge(0).all(-1) if all_true(found) else found


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        found = super().check(value)
        return torch.linalg.cholesky_ex(value).info.eq(0) if all_true(found) else found


class _Joined(Constraint):
    """Several regions for parts of a value along an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Joined):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return torch.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        return torch.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


def _all_of(found: Any) -> Any:
    return found.reshape(*found.shape[:-2], -1).all(-1)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
