"""Solutions of inner problems: roots, fixed points and minima, differentiated by the implicit function theorem."""

from adjoint.renamed import refusing
from adjoint.solvers.implicit import fixed_point, minimize, root

__all__ = ["fixed_point", "minimize", "root"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__
