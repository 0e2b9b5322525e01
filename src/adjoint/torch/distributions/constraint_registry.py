"""From all real numbers into a region: `biject_to(region)`, which has an inverse, and `transform_to(region)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.torch.distributions import constraints, transforms
from adjoint.torch.distributions.constraints import Constraint


class ConstraintRegistry:
    """Transforms by the classes of regions."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Have the factory make the transform of such regions; without it, a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _below(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


_kind: Any
for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda _: transforms.identity_transform)
    _registry.register(constraints.positive, lambda _: transforms.ExpTransform())
    for _kind in (constraints.greater_than, constraints.greater_than_eq):
        _registry.register(_kind, _above)
    _registry.register(constraints.less_than, _below)
    for _kind in (constraints.interval, constraints.half_open_interval):
        _registry.register(_kind, _between)
    _registry.register(constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform())
    _registry.register(
        constraints.independent,
        lambda c, made=_registry: transforms.IndependentTransform(made(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    _registry.register(
        constraints.cat,
        lambda c, made=_registry: transforms.CatTransform([made(part) for part in c.cseq], c.dim, c.lengths),
    )
    _registry.register(
        constraints.stack, lambda c, made=_registry: transforms.StackTransform([made(part) for part in c.cseq], c.dim)
    )
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda _: transforms.PositiveDefiniteTransform())
