"""`__torch_function__`: classes of users' own that say what operations on them do.

A subclass of `Tensor` gets a base, `Overriding`, whose methods call `__torch_function__`, and whose array hot code does
not find: it goes the slow way, which looks. So plain tensors pay nothing, and functions that are written by hand look
at one flag, `used`, until a program has such a class.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from adjoint.torch.tensor import Tensor, adopt, known_array

used = False  # whether a program has a class that overrides
public: dict[Any, Any] = {}  # of functions with a wrapper, that: what `__torch_function__` is called with

DEFAULT = "__torch_function__"


class _Off(threading.local):
    depth = 0  # of blocks in which subclasses are plain tensors to this thread


_off = _Off()


class DisableTorchFunctionSubclass:
    """A block in which operations take subclasses as plain tensors, and give such."""

    def __enter__(self) -> None:
        _off.depth += 1

    def __exit__(self, *_: object) -> None:
        _off.depth -= 1


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of a class whose results are plain tensors: `torch._C._disabled_torch_function_impl`."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def overrides(kind: type) -> bool:
    """Whether a class has a say in what operations on it do."""
    found = getattr(kind, DEFAULT, None)
    if found is None or kind is Tensor or found is disabled:
        return False
    return not any([base.__module__ == "torch._C" for base in kind.__mro__])  # PyTorch's tensors would ask us back


def _default(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Results are of the class, where all classes among the operands are above it."""
    if not all([issubclass(cls, kind) for kind in types]):
        return NotImplemented
    if _is_of_pytorch(func):
        raise TypeError(
            f"{getattr(func, '__name__', func)} is PyTorch's own function, which takes PyTorch's own tensors: that of "
            "adjoint.torch is for these, and x.detach().numpy() is an array for torch.from_numpy"
        )
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in no_wrap() else _converted(result, cls, (*args, *(kwargs or {}).values()))


def _is_of_pytorch(func: Any) -> bool:
    """Whether a function is the real PyTorch's: written in C, or of its modules. Ours are of Python."""
    owner = getattr(getattr(func, "__self__", func), "__objclass__", None)
    module = getattr(func, "__module__", None) if owner is None else owner.__module__
    return isinstance(func, types.BuiltinFunctionType) or str(module).partition(".")[0] == "torch"


def no_wrap() -> Any:
    """The functions whose results stay what they are."""
    return {vars(Tensor)[name].__get__ for name in ("_base", "grad")}


def _converted(result: Any, cls: Any, given: Any) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        if result.__class__ is Tensor and not any([result is x for x in given]):  # nobody else has it
            result.__class__ = cls
            return result
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        made: Any = getattr(result, "_make", type(result))
        return made([_converted(entry, cls, given) for entry in result])
    return result


@adopt
class _Default:
    __torch_function__ = classmethod(_default)


def _parts(values: Any) -> Iterator[Any]:
    for value in values:
        if value.__class__ in (list, tuple):
            yield from value
        else:
            yield value


def overloaded(values: Any) -> list[Any]:
    """The arguments that have a say, one of each class: subclasses before what they are of, then in their order."""
    found: list[Any] = []
    for value in _parts(values):
        kind = value.__class__
        if kind is Tensor or not hasattr(kind, DEFAULT) or not overrides(kind) or isinstance(value, type):
            continue
        if any([kind is type(known) for known in found]):
            continue
        if isinstance(value, Tensor) and _off.depth:
            continue
        at = next((i for i, known in enumerate(found) if issubclass(kind, type(known))), len(found))
        found.insert(at, value)
    return found


def overridden(function: Any, args: Any, options: Any) -> Any:
    """What `__torch_function__` of the arguments gives for a call; NotImplemented where none has any."""
    found = overloaded((*args, *options.values()))
    if not found:
        return NotImplemented
    function = public.get(function, function)
    if _is_of_python(function):
        args, options = _named(function, args, options)
        return dispatched(function, found, args, options, _kinds(found, (*args, *options.values())))
    return dispatched(function, found, args, options)


def _kinds(found: list[Any], values: Any) -> tuple[type, ...]:
    """The classes of those that have a say, with that of tensors where there are some."""
    asked = {Tensor, *[type(value) for value in found]}
    kinds: list[type] = []
    for value in _parts(values):
        kind = type(value)
        if kind in asked:
            asked.remove(kind)
            at = next((i for i, known in enumerate(kinds) if issubclass(kind, known)), len(kinds))
            kinds.insert(at, kind)
    return tuple(kinds)


def asking(function: Any) -> Any:
    """A function that asks `__torch_function__` of arguments that it does not take."""

    @functools.wraps(function)
    def spelled(*args: Any, **options: Any) -> Any:
        if used and (found := overridden(spelled, args, options)) is not NotImplemented:
            return found
        try:
            return function(*args, **options)
        except TypeError:
            if (found := overridden(spelled, args, options)) is not NotImplemented:
                return found
            raise

    return spelled


# what is a function of Python's in PyTorch, too, which gives what has a default by its name, and names tensors among
# the classes; and those of nn.functional that are none
_OF_PYTHON = frozenset(
    "split unique norm tensordot cdist stft lu meshgrid broadcast_tensors block_diag cartesian_prod "
    "chain_matmul".split()
)
_COMPILED = frozenset(
    "linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d "
    "avg_pool3d adaptive_avg_pool1d logsigmoid softplus gelu one_hot prelu pixel_shuffle pixel_unshuffle pdist sigmoid "
    "channel_shuffle cosine_similarity pairwise_distance scaled_dot_product_attention hardshrink softshrink "
    "tanh".split()
)
_STACKED = frozenset("softmax log_softmax softmin".split())


def _is_of_python(function: Any) -> bool:
    name, module = getattr(function, "__name__", ""), str(getattr(function, "__module__", ""))
    if module.startswith("adjoint.torch.nn.functional"):
        return name not in _COMPILED
    return name in _OF_PYTHON and module != "adjoint.torch.linalg"


def _named(function: Any, args: Any, options: Any) -> Any:
    """The arguments of a call, all but those that have no default by their names."""
    try:
        bound = inspect.signature(function).bind(*args, **options)
    except (TypeError, ValueError):
        return args, options
    bound.apply_defaults()
    places: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in bound.signature.parameters.values():
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            places += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= value
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            places.append(value)
        else:
            named[parameter.name] = value
    if function.__name__ in _STACKED:
        named["_stacklevel"] = 3
    if function.__name__ in ("tensordot", "lu"):
        named.setdefault("out", None)
    return tuple(places), named


def operated(name: str, *operands: Any) -> Any:
    """What `__torch_function__` gives for an operator beside what is no tensor; NotImplemented where none has any."""
    return overridden(getattr(Tensor, name), operands, {})


def dispatched(function: Any, found: list[Any], args: Any, options: Any, kinds: tuple[type, ...] = ()) -> Any:
    """Ask one argument after the other. Raises TypeError where none of them knows the function."""
    types = kinds or tuple([type(value) for value in found])
    for value in found:
        answer = value.__torch_function__(function, types, args, options)
        if answer is not NotImplemented:
            return answer
    module, name = str(getattr(function, "__module__", "")), getattr(function, "__name__", function)
    if ".nn." in module:
        name = f"torch.nn.functional.{name}"
        raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[*types]}")
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned NotImplemented: "
        f"{[*types]}"
    )


class Overriding(Tensor):
    """What subclasses of `Tensor` are made of in its place: each method asks `__torch_function__`."""

    __slots__ = ()

    @property
    def _here(self) -> Any:
        if not _off.depth and overrides(type(self)):
            raise AttributeError("_here")  # so that hot code goes the slow way
        array = known_array(self)
        return Tensor.__getattr__(self, "_here") if array is None else array

    @_here.setter
    def _here(self, array: Any) -> None:
        _slot.__set__(self, array)

    @property
    def _array(self) -> Any:
        with DisableTorchFunctionSubclass():
            return _get_array(self)

    @_array.setter
    def _array(self, var: Any) -> None:
        _set_array(self, var)

    def __getattr__(self, name: str) -> Any:
        if name == "_here":
            raise AttributeError(f"{type(self).__name__} overrides this operation")
        return super().__getattr__(name)


_slot: Any = vars(Tensor)["_here"]
_get_array, _set_array = vars(Tensor)["_array"].fget, vars(Tensor)["_array"].fset

# what operators are called as functions; those from the right have their operands in the order of the program
_OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "lt", "le", "gt", "ge", "neg", "abs")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    "__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_",
    "__radd__": "add", "__rmul__": "mul", "__rmatmul__": "matmul",
}  # fmt: skip
_OF_TENSORS = {"__rsub__": "sub", "__rtruediv__": "div", "__rpow__": "pow", "__rmod__": "remainder"}
_ASK_NOTHING = frozenset(
    "__new__ __init__ __init_subclass__ __getattr__ __hash__ __reduce_ex__ __copy__ __torch_function__ as_subclass "
    "__class__ __dict__ __weakref__ __doc__ __module__ __slots__ __annotations__ __array_priority__ __iter__ "
    "__dlpack__ __dlpack_device__".split()
)


def _method(name: str, member: Any) -> Any:
    known = (Tensor, int, float, complex, np.number, np.bool_)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        found = overloaded((self, *args, *options.values()))
        function, given = member, (self, *args)
        if name in _OPERATORS or name in _OF_TENSORS:
            other = args[0] if args else 0
            if not isinstance(other, known) and not overrides(type(other)):
                found = []
            elif name in _OPERATORS:
                function = vars(Tensor)[_OPERATORS[name]]
            elif isinstance(other, Tensor):
                function, given = vars(Tensor)[_OF_TENSORS[name]], (other, self)
            if name.startswith("__r") and isinstance(other, Tensor):
                given = (other, self)
        if not found:
            with DisableTorchFunctionSubclass():
                return member(self, *args, **options)
        return dispatched(function, found, given, options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = member.__doc__
    return method


def _attribute(member: Any) -> Any:
    def ask(function: Any, *args: Any) -> Any:
        found = overloaded(args[:1])
        if not found:
            with DisableTorchFunctionSubclass():
                return function(*args)
        return dispatched(function, found, args, {})

    write = None if member.fset is None else lambda self, value: ask(member.__set__, self, value)
    remove = None if member.fdel is None else lambda self: ask(member.__delete__, self)
    return property(lambda self: ask(member.__get__, self), write, remove, member.__doc__)


def _begin() -> None:
    """Give `Overriding` its methods: a program has a class that needs them."""
    global used
    used = True
    for name in list(vars(Tensor)):
        if name in _ASK_NOTHING or (name.startswith("_") and not name.startswith("__")):
            continue
        getattr(Tensor, name)  # which loads what is imported later
        member = vars(Tensor)[name]
        if isinstance(member, property):
            setattr(Overriding, name, _attribute(member))
        elif callable(member):
            if vars(Tensor).get(getattr(member, "__name__", name)) is not member:
                member.__name__ = name  # what users compare
            setattr(Overriding, name, _method(name, member))


def _init_subclass(cls: Any, **options: Any) -> None:
    super(Tensor, cls).__init_subclass__(**options)
    if issubclass(cls, Overriding) or not overrides(cls):
        return
    if not used:
        _begin()
    if Tensor in cls.__bases__:
        cls.__bases__ = tuple([Overriding if base is Tensor else base for base in cls.__bases__])
    else:  # of a class of ours, such as `Parameter`
        cls.__bases__ = (*cls.__bases__, Overriding)


Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[arg-type,assignment]


@adopt
class _Made:
    @staticmethod
    def _make_subclass(kind: Any, data: Any, require_grad: bool = False, **_: Any) -> Any:
        """A tensor of a class on the memory of another, without its history."""
        with DisableTorchFunctionSubclass():
            made = data.detach().as_subclass(kind)
            return made.requires_grad_() if require_grad else made
