"""What can go wrong, as one small tree.

    AdjointError
    ├── ShapeError (ValueError)              operands whose shapes do not fit
    │   └── NotSquareError (numpy.linalg.LinAlgError)  ... because linear algebra needs square matrices
    ├── DtypeError (TypeError)               a data type that the operation has no meaning for
    ├── AxisError (ValueError, IndexError)   an axis that the tensor does not have
    ├── OutOfRangeError (IndexError)         an index outside the tensor
    ├── ArgumentError (ValueError)           any other argument with a value that makes no sense
    │   └── ArgumentTypeError (TypeError)    ... or of a type that makes none
    ├── RangeError (OverflowError)           an integer that the data type does not hold
    ├── OutOfMemoryError (MemoryError)       a result that does not fit into memory
    ├── DeviceError (ValueError)             backends that do not meet, names that mean no backend
    ├── UnsupportedPrimitiveError (NotImplementedError)  a backend that cannot run a primitive
    ├── MissingLibraryError (ImportError)    an optional library that is not installed
    ├── OutOfScopeError (ModuleNotFoundError)       a module that another library has, and we do not
    ├── SingularError (numpy.linalg.LinAlgError)    a matrix without the wanted factor or inverse
    ├── NonFiniteError (FloatingPointError)         a primitive made a nan or an infinity, says `Checked`
    ├── ConvergenceError (RuntimeError)      an iteration that did not come to its end
    ├── NoAutodiffError (TypeError)          a gradient asked of a backend without autodiff
    ├── GraphError (RuntimeError)            a graph that cannot give what was asked of it
    │   ├── FreedGraphError                  it was used up by an earlier `backward`
    │   ├── EndedError                       a tensor of a transform's level was used after the transform
    │   ├── ForwardOnlyError                 reverse mode met what has derivatives in forward mode only
    │   ├── TrackedError (TypeError)         a tracked tensor was about to leave its graph silently
    │   └── BackwardError                    a pullback failed; the cause is chained
    ├── NoGradientError (KeyError)           `Gradients` has no entry, and why
    ├── FrozenModuleError (AttributeError)   a field of a module was assigned: modules are values
    ├── FileError (OSError)                  a file that cannot be read or written
    ├── WorkerError (RuntimeError)           a process that reads batches ended
    └── CheckError (AssertionError)          `check_grads` found a wrong derivative, `Checked` a wrong result

Each is also the built-in that NumPy would raise, so that `except ValueError` keeps its meaning.
"""

import reprlib
from typing import Any

from numpy.linalg import LinAlgError

from adjoint.renamed import refusing

globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, AdjointError)]


class _Short(reprlib.Repr):
    """Cuts long texts, and shows arrays and tensors by their dtype and shape."""

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > 1000:  # Python writes out no more than so many digits
            return f"<int of {x.bit_length()} bits>"
        return super().repr_int(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and shape:
            dtype = getattr(x, "dtype", None)  # a table has several
            of = "" if dtype is None else f"{dtype} and "
            return f"<{type(x).__name__} of {of}shape {self.repr1(shape, level)}>"
        return super().repr_instance(x, level)


_short = _Short()
_short.maxother = _short.maxstring = 80


def shown(value: object) -> str:
    """A received argument as messages show it: never longer than a line or two.

    >>> import numpy as np
    >>> shown((1, "a", np.zeros((2, 3))))
    "(1, 'a', <ndarray of float64 and shape (2, 3)>)"
    """
    try:
        text = _short.repr(value)
    except Exception:  # of a class that has the name of one of Python's, say
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 200 else f"{text[:120]}...{text[-77:]}"


def said(value: object) -> str:
    """What an exception of another library says, or a structure is: a few lines of it.

    >>> said(ValueError("a" * 1000)) == "a" * 250 + "..." + "a" * 147
    True
    """
    text = str(value)
    return text if len(text) <= 400 else f"{text[:250]}...{text[-147:]}"


class AdjointError(Exception):
    """The root of all of adjoint's own exceptions."""


class ShapeError(AdjointError, ValueError):
    """Operands whose shapes do not fit together, or not what was asked."""


class NotSquareError(ShapeError, LinAlgError):
    """Operands that are no square matrices."""


class DtypeError(AdjointError, TypeError):
    """A data type that the operation has no meaning for."""


class AxisError(AdjointError, ValueError, IndexError):
    """An axis that the tensor does not have, or one named twice."""


class OutOfRangeError(AdjointError, IndexError):
    """An index outside the tensor, or something that is no index at all."""


class ArgumentError(AdjointError, ValueError):
    """An argument with a value that makes no sense."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a type that makes no sense."""


class RangeError(AdjointError, OverflowError):
    """An integer that the data type does not hold."""


class OutOfMemoryError(MemoryError, AdjointError):  # in this order: Dask's workers make it by MemoryError.__new__
    """A result that does not fit into memory."""


class DeviceError(AdjointError, ValueError):
    """Backends that do not meet, or a name that means no backend."""

    place: Any = None  # where a transform may run instead, as its function met a tensor from there


class UnsupportedPrimitiveError(AdjointError, NotImplementedError):
    """A backend that cannot run a primitive."""


class MissingLibraryError(AdjointError, ImportError):
    """An optional library is needed and not installed; the message says which."""


class OutOfScopeError(AdjointError, ModuleNotFoundError):
    """A module of PyTorch's that its face does not have; the message says why."""


class SingularError(AdjointError, LinAlgError):
    """A matrix that has no inverse, or no factor of the wanted kind."""


class NonFiniteError(AdjointError, FloatingPointError):
    """A primitive made a nan or an infinity of operands that had none."""


class ConvergenceError(AdjointError, RuntimeError):
    """An iteration that did not reach its tolerance, after so many `iterations`, with this `residual`."""

    def __init__(self, message: str, *, iterations: int = 0, residual: float = float("nan")) -> None:
        super().__init__(message)
        self.iterations = iterations
        self.residual = residual


class NoAutodiffError(AdjointError, TypeError):
    """A gradient, or what needs one, was asked of a backend without autodiff."""


class GraphError(AdjointError, RuntimeError):
    """A graph that cannot give what was asked of it."""


class FreedGraphError(GraphError):
    """The graph was used up by an earlier `backward`."""


class EndedError(GraphError):
    """A tensor of a transform's level was used after the transform had returned."""


class ForwardOnlyError(GraphError):
    """Reverse mode met what has derivatives in forward mode only, such as a `while_loop`."""


class TrackedError(GraphError, TypeError):
    """A tracked tensor was about to leave its graph silently."""


class BackwardError(GraphError):
    """A pullback failed; the exception it raised is the `__cause__`."""


class NoGradientError(AdjointError, KeyError):
    """There is no gradient for this tensor; the message says why."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class FrozenModuleError(AdjointError, AttributeError):
    """A field of a module was assigned or deleted: modules are values."""


class FileError(AdjointError, OSError):
    """A file that cannot be read or written."""


class WorkerError(AdjointError, RuntimeError):
    """A process that reads batches ended, cannot be started, or raised what cannot be sent."""


class CheckError(AdjointError, AssertionError):
    """A derivative that does not agree with the numerical one, or a result that is not as the primitive promises."""
