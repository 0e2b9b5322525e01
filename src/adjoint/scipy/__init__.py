"""SciPy's optimizers with exact derivatives, on pytrees: `scipy.optimize` does the search.

Functions get tensors and are differentiated as often as a method asks for: gradients, Jacobians, Hessians, and
products with Hessians where a method is content with those. Where the search starts is a pytree, and the answer has
its structure; a list or tuple of Python numbers is an array, as it is in SciPy. SciPy works in float64; the function
gets the dtypes of the start, integers as float64.

Needs SciPy: `pip install 'adjoint[scipy]'`. To differentiate *through* a solution see `adjoint.implicit`.
"""

from adjoint.renamed import refusing
from adjoint.scipy.fits import curve_fit
from adjoint.scipy.searches import least_squares, minimize, root

__all__ = ["curve_fit", "least_squares", "minimize", "root"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__
