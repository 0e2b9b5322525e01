"""Solutions of inner problems: roots, fixed points and minima, differentiated by the implicit function theorem."""

from adjoint.solvers.implicit import fixed_point, minimize, root

__all__ = ["fixed_point", "minimize", "root"]


def __dir__() -> list[str]:
    return __all__
