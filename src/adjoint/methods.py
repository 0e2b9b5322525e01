"""Methods of `Tensor` whose bodies are functions of the same names, imported when they are first asked for.

And what `help`, editors and the reference show as the parameters of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from adjoint.counterparts import counterpart

if TYPE_CHECKING:
    from inspect import Signature

F = TypeVar("F")

# Where the bodies of methods are: functions of the same names.
METHODS = {
    "functions.contraction": "__matmul__ __rmatmul__ __imatmul__ matmul dot",
    "functions.conversion": (
        "numpy native compute persist item tolist __array__ __array_ufunc__ __array_function__ __dlpack__ "
        "__dlpack_device__ __bool__ __int__ __float__ __complex__ __repr__ _repr_html_ __format__ __reduce__ __copy__ "
        "__deepcopy__"
    ),
    "functions.creation": "to_device astype",
    "functions.elementwise": (
        "__pow__ __rpow__ __ipow__ clip abs sign round floor ceil sqrt square exp log sin cos tanh conj real imag"
    ),
    "functions.gradients": (
        "require_grad set_require_grad is_require_grad is_tracked with_value detach backward grad grad_remove "
        "grad_replace inner"
    ),
    "functions.indexing": "__getitem__ __setitem__ nonzero",
    "functions.inspection": "__array_namespace__",
    "functions.reduction": "sum mean prod max min var std argmax argmin any all cumulative_sum cumulative_prod",
    "functions.shape": "reshape ravel permute_dims swapaxes expand_dims squeeze broadcast_to flip repeat diagonal",
    "functions.sorting": "argsort argpartition searchsorted",
    "numpy_methods": (
        "copy flatten transpose trace cumsum cumprod conjugate take compress choose __divmod__ __rdivmod__ fill put "
        "sort partition resize"
    ),
}


def modules_of(table: Mapping[str, str]) -> dict[str, str]:
    """The module of each name in a table of modules and their names. Raises TypeError for a name of two modules."""
    found: dict[str, str] = {}
    for module, names in table.items():
        for name in names.split():
            if name in found:
                raise TypeError(f"{name}: {found[name]} and {module} have one")
            found[name] = module
    return found


BODIES = modules_of(METHODS)


class Bound:
    """A method or a property of a class until it is first asked for: then its body takes its place."""

    def __init__(self, name: str, kind: Callable[..., Any] | None) -> None:
        self._name = name
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, x: Any, cls: Any = None) -> Any:
        name, owner = self._name, self._owner
        module = import_module(f"adjoint.{BODIES.get(name, 'operators')}")
        body = vars(module).get(name) or module.OPERATORS[name]
        setattr(owner, name, body if self._kind is None else self._kind(body))
        return getattr(owner if x is None else x, name)


class Absent:
    """A name that arrays of other libraries have: whoever asks for it is told what to write, by an AttributeError.

    A `__getattr__` would do without, and make each operator a third slower on Python 3.11.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, x: Any, cls: type) -> Any:
        kind = f"{cls.__name__!r} object" if x is not None else f"type object {cls.__name__!r}"
        message = f"{kind} has no attribute {self._name!r}{counterpart('Tensor', self._name)}"
        raise AttributeError(message, name=self._name, obj=cls if x is None else x)


def bound(method: F) -> F:
    """Marks a method whose body stands elsewhere: see `METHODS`; those of operators in `adjoint.operators`."""
    if isinstance(method, property):
        return Bound(method.fget.__name__, property)  # type: ignore[return-value, union-attr]
    return Bound(method.__name__, None)  # type: ignore[return-value, attr-defined]


class Signed(type):
    """A metaclass whose classes have the signature of `__init__`, where Python would show that of `__call__` here.

    Its errors for names that a class lacks say what is here: see `adjoint.counterparts`.
    """

    names_of = ""  # the table of such names

    if not TYPE_CHECKING:  # type checkers refuse other names themselves

        def __getattr__(cls, name: str) -> Any:
            hint = counterpart(cls.names_of, name) if cls.names_of else ""
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}{hint}", name=name, obj=cls)

    @property
    def __signature__(cls) -> Signature:
        import inspect  # asked for by people

        made = cls.__init__  # type: ignore[misc]  # of this class
        if made is object.__init__:
            return inspect.Signature()
        found = inspect.signature(made)
        return found.replace(parameters=[*found.parameters.values()][1:], return_annotation=inspect.Signature.empty)
