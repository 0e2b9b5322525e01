"""What a function reads beside its arguments: closures, names of its module, attributes of objects that it names.

Tensors in closures, those that its module has for it, and those in attributes of objects, are arguments of the compiled
function, alone, in containers and in modules of layers. Of all else a guard is kept: when it has changed, the function
is recorded again.
"""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import dis
import functools
import inspect
import operator
import sys
import threading
import types
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.concrete import callbacks
from adjoint.devices import current_level, default_device
from adjoint.dtypes import chosen_dtype, default_dtype
from adjoint.lines import CHANGES, PACKAGE, is_of_library, names_in
from adjoint.module.fields import Fields
from adjoint.scopes import Variable, innermost
from adjoint.tensor import Tensor, raw_array
from adjoint.transforms.arguments import Function
from adjoint.transforms.closures import LARGE, Wrapper, closed_over, is_rebuilt, names_of_module
from adjoint.transforms.external import is_external
from adjoint.transforms.watched import can_be_watched

disabled: Variable[bool] = contextvars.ContextVar("adjoint_compile_disabled", default=None)


def settings() -> tuple[Any, ...]:
    """What the context and the process say."""
    return current_level(), default_device(), default_dtype(), chosen_dtype(), innermost(disabled) is not None


PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Same:
    """An object, equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def plain(x: Any) -> Any:
    """Equal for equal values of one type: 0.0 and -0.0 differ, so do 1 and True, and dates in other units."""
    return (x.__class__, repr(x)) if x.__class__ in (float, complex) or isinstance(x, np.generic) else (x.__class__, x)


@functools.lru_cache(1024)
def _names(code: types.CodeType, count: int) -> tuple[str, ...]:
    """The names of their module that a function and those defined in it read or assign to.

    Callbacks are left out, of which `count` are known.
    """
    own = [name for operation, name in names_in(code) if "GLOBAL" in operation or operation in _OF_CLASSES]
    inner = [name for x in _inner(code) for name in _names(x, count)]
    return tuple(dict.fromkeys([*own, *inner]))


def asks_for_types(f: Any) -> bool:
    """Whether a function calls `type`, which tells a symbol from the number that it stands for.

    Of a derivative the function itself counts: ours know symbols.
    """
    f = inspect.unwrap(f)
    return isinstance(f, types.FunctionType) and "type" in _names(f.__code__, callbacks.count)


@functools.lru_cache(1024)
def _read(code: types.CodeType, count: int) -> frozenset[str]:
    """The variables of closures that they read or assign to."""
    own = {name for operation, name in names_in(code) if "DEREF" in operation}
    return frozenset(own.union(*[_read(x, count) for x in _inner(code)]))


class _Names(NamedTuple):
    """The attributes that functions read, so far as can be seen."""

    read: frozenset[str]
    assigned: frozenset[str]  # which they change
    all: bool  # they may read any
    bypassed: bool  # ... from the dictionary of an object, which answers no reads of a block
    operators: frozenset[str]  # methods that are called by an operator alone, and may be


@functools.lru_cache(1024)
def _attributes(code: types.CodeType, count: int) -> _Names:
    own, assigned, last = set[str](), set[str](), ""
    for operation, name in names_in(code):
        if operation in ("STORE_ATTR", "DELETE_ATTR"):
            assigned.add(name)
        elif operation in _OF_OBJECTS:
            own.add(name)
            if name in CHANGES:
                assigned.add(last)
        last = name if operation in _OF_OBJECTS else ""
    used = frozenset(code.co_names).union(code.co_freevars)
    bypassed = not used.isdisjoint(_BYPASSING) or ("LOAD_GLOBAL", "copy") in names_in(code)
    parts = [_attributes(x, count) for x in _inner(code)]
    return _Names(
        frozenset(own.union(*[x.read for x in parts])),
        frozenset(assigned.union(*[x.assigned for x in parts])),
        bypassed or not used.isdisjoint(_BY_NAME) or any([x.all for x in parts]),
        bypassed or any([x.bypassed for x in parts]),
        frozenset(_operators(code)).union(*[x.operators for x in parts]),
    )


def _operators(code: types.CodeType) -> Iterator[str]:
    """Of the methods that ask an object how many, whether and which: those that the operations of a function may call.

    All other operators count as called: these read what changes often.
    """
    operations = {dis.opname[number] for number in set(code.co_code[::2])}
    asks = any(["_IF_" in x or x in ("UNARY_NOT", "TO_BOOL") for x in operations])
    if asks or not _ASKING.isdisjoint(code.co_names):
        yield from ("__len__", "__bool__")
    if "CONTAINS_OP" in operations:
        yield "__contains__"
    if "COMPARE_OP" in operations:
        yield from _ORDERS


_ASKING = frozenset("len bool any all filter list tuple reversed".split())
_ORDERS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_OF_QUESTIONS = frozenset(["__len__", "__bool__", "__contains__", *_ORDERS])

# functions that read what they are told to, and those that take it from the dictionary of an object
_BY_NAME = frozenset("getattr hasattr attrgetter methodcaller asdict astuple fields replace getmembers dir".split())
_BYPASSING = frozenset("vars __dict__ __getstate__ __reduce_ex__ deepcopy".split())


def _inner(code: types.CodeType) -> list[types.CodeType]:
    """The functions that are defined in one, but for callbacks."""
    return [x for x in code.co_consts if isinstance(x, types.CodeType) and x not in callbacks]


_OF_OBJECTS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_OF_CLASSES = ("LOAD_NAME", "STORE_NAME", "DELETE_NAME")  # in the body of a class, which may mean the module's


_OURS = __name__.partition(".")[0] + "."


def _is_users(module: types.ModuleType | None) -> bool:
    """Whether a module is neither of a library, nor ours, nor of Python itself."""
    if module is None:  # that of text that was executed
        return True
    file = getattr(module, "__file__", None) or ""
    return module.__name__ not in sys.builtin_module_names and not (is_of_library(file) or file.startswith(PACKAGE))


def changed(before: Any, now: Any) -> set[str] | None:
    """Of guards of one function: the attributes that differ; None where something else does."""
    if before == now or not before:
        return set()
    return None if before[0] != now[0] else {name for (_, name), _ in before[1] - now[1]}


def may_change(x: Any) -> bool:
    """Whether an argument that is no array is equal to itself alone, and what it holds may be another thing later."""
    if isinstance(x, (Tensor, np.ndarray, np.generic, *PLAIN)):
        return False
    equality: Any = type(x).__eq__
    return isinstance(x, (types.MethodType, functools.partial)) or equality is object.__eq__


def may_run(x: Any) -> list[Any]:
    """What calls of the modules in a tree may run: their classes, and functions and objects among their settings."""
    found: list[Any] = [type(x)] if isinstance(x, Fields) else []
    for part in x.values() if isinstance(x, dict) else vars(x).values() if isinstance(x, Fields) else x:
        if isinstance(part, (Fields, dict, list, tuple)):
            found += may_run(part)
        elif may_change(part):
            found.append(part)
    return found


class Environment:
    """What a function reads beside its arguments: `tensors` of its closure, each once, and a `guard` of all else.

    `objects` are arguments that are no arrays, of which the function may read more than what they are equal by. It
    changes attributes of the names `changing` itself: these are not looked at.
    """

    def __init__(self, f: Function, objects: Sequence[Any] = (), changing: Iterable[str] = ()) -> None:
        self.tensors: list[Tensor[Any]] = []
        self.guard: tuple[Any, ...] = ()
        self._attributes: dict[Any, tuple[Any, ...]] = {}  # what the guard has of each
        self._given, self._made_for = objects, (callbacks.count, set(changing))
        self._cells: list[tuple[types.CellType, Any]] = []
        self._known: list[tuple[Mapping[str, Any], str, Any]] = []  # names of modules, and attributes of objects
        self._read: set[tuple[int, str]] = set()  # ... which are these
        self._slots: list[tuple[Any, str, Any]] = []
        self._functions: list[tuple[types.FunctionType, types.CodeType, Any, Any]] = []
        self._containers: list[tuple[Any, tuple[Any, ...]]] = []
        self._contents: list[tuple[Any, Any]] = []  # arrays of numbers, and what is in them
        self._contexts: list[tuple[contextvars.ContextVar[Any], Any]] = []
        self._is_external = False  # what is gathered belongs to a function that runs in each call, and may fill buffers
        self._arrays: list[tuple[Tensor[Any], Any]] = []
        self._variable = ""  # the name by which the function reads what is being gathered
        self._variables: dict[int, str] = {}  # ... of what may change, by identity
        self._names: set[str] = {"__call__"}  # of attributes
        self._operators: set[str] = set()
        self._all = self._bypassed = False  # functions may read any attribute, and without asking for it
        self.assigned: set[str] = set(changing)  # ... which the function itself changes
        self.holders: list[Any] = []  # objects whose attributes have tensors
        self._of_holders: dict[Any, tuple[Any, tuple[Tensor[Any], ...]]] = {}  # tensors that attributes lead to
        self._held: list[tuple[Mapping[str, Any], str, Any]] = []
        self._objects: list[Any] = []
        if (
            not objects
            and f.__class__ is types.FunctionType
            and not (f.__closure__ or f.__defaults__ or f.__kwdefaults__ or _names(f.__code__, callbacks.count))
        ):
            return
        guard: list[Any] = []
        seen: set[Any] = set()
        try:
            self._gather(f, guard, seen, own=True)
            for x in objects:
                self._gather(x, guard, seen, own=False)
            self._gather_attributes(seen)
        except RecursionError:
            raise errors.ArgumentError("compile: what f closes over contains itself, or is nested too deep") from None
        self.guard = tuple(guard), frozenset(self._attributes.items())

    def moved(self, now: Environment) -> set[str]:
        """The names of attributes that have other tensors now."""
        theirs = now._of_holders
        return {
            at[1]
            for at, (_, tensors) in self._of_holders.items()
            if at in theirs and at in now._attributes and not _are_same(tensors, theirs[at][1])
        }

    def is_of(self, objects: Sequence[Any], changing: Iterable[str]) -> bool:
        """Whether it was made for these arguments, and for the callbacks that there are."""
        return (
            self._made_for == (callbacks.count, set(changing))
            and len(objects) == len(self._given)
            and all(map(operator.is_, objects, self._given))
        )

    def is_unchanged(self) -> bool:
        """Whether everything is the same object still."""
        try:
            for cell, value in self._cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # one that has no value, or none any more
            if any([_content(cell) is not value for cell, value in self._cells]):
                return False
        for known, name, value in self._known:
            if known.get(name, _Empty) is not value:
                return False
        for f, code, defaults, named in self._functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not named:
                return False
        for container, before in self._containers:
            if not _are_same(_parts(container), before):
                return False
        for x, content in self._contents:
            if _numbers(x) != content:
                return False
        for variable, value in self._contexts:
            if variable.get(_Empty) is not value:
                return False
        if any([getattr(x, name, _Empty) is not value for x, name, value in self._slots]):
            return False
        return all([raw_array(tensor) is array for tensor, array in self._arrays])

    def changed_variable(self) -> str | None:
        """The name of a variable whose value, or what is in it, is another one by now."""
        found: list[Any] = [x for x, before in self._containers if not _are_same(_parts(x), before)]
        found += [x for x, content in self._contents if _numbers(x) != content]
        found += [x for x, array in self._arrays if raw_array(x) is not array]
        found += [cell for cell, value in self._cells if _content(cell) is not value]
        names = [self._variables[id(x)] for x in found if self._variables.get(id(x))]
        names += [name for known, name, value in self._known if known.get(name, _Empty) is not value]
        return names[0] if names else None

    def codes(self) -> list[types.CodeType]:
        """Of the functions that it is of."""
        return [code for _, code, _, _ in self._functions]

    def _place(self, x: Tensor[Any]) -> int:
        """Which of the tensors it is, from now on at least."""
        place = next((i for i, y in enumerate(self.tensors) if y is x), len(self.tensors))
        if place == len(self.tensors):
            self.tensors.append(x)
        return place

    def _gather(self, x: Any, guard: list[Any], seen: set[Any], *, own: bool | None) -> None:
        """`own` says that another tensor can be given to the function: not so in the place of attributes of classes.

        None says so of attributes of objects, whose tensors are noted when all names that are assigned to are known.
        """
        if isinstance(x, Tensor):
            if own:
                guard.append(self._place(x))
            elif own is None:
                pass
            else:
                guard.append((Same(x), Same(raw_array(x))))
                self._arrays.append((x, raw_array(x)))
                self._variables[id(x)] = self._variable
            return
        if isinstance(x, PLAIN):
            guard.append(plain(x))
            if type(x) in PLAIN or (id(x), own) in seen:
                return
            seen.add((id(x), own))
            self._objects.append(x)
            return
        if (id(x), own) in seen:
            return
        seen.add((id(x), own))
        if isinstance(x, types.FunctionType):
            self._gather_function(x, guard, seen, own=own)
        elif isinstance(x, types.MethodType):
            self._gather(x.__func__, guard, seen, own=own)
            self._gather(x.__self__, guard, seen, own=own)
        elif isinstance(x, Wrapper):
            guard.append(type(x))
            self._gather(x.f, guard, seen, own=own)
        elif isinstance(x, MappingView) and (held := _viewed(x)) is not None:
            guard.append(type(x))
            self._gather(held, guard, seen, own=own)
        elif isinstance(x, _BUFFERS) and not _is_of_objects(x):
            content = None if self._is_external else _numbers(x)
            guard.append((Same(x), content))
            if content is not None:
                self._contents.append((x, content))
                self._variables[id(x)] = self._variable
        elif (isinstance(x, _CONTAINERS) and len(x) > LARGE) or (isinstance(x, np.ndarray) and x.size > LARGE):
            guard.append(Same(x))
        elif isinstance(x, (*_CONTAINERS, functools.partial, np.ndarray)):
            parts = _parts(x)
            if not isinstance(x, (tuple, functools.partial)):  # these stay as they are
                self._containers.append((x, parts))
                self._variables[id(x)] = self._variable
            if isinstance(x, _MAPPINGS):
                keys, parts = parts[: len(parts) // 2], parts[len(parts) // 2 :]
                guard.append((dict, tuple(map(plain, x))))
                for key in keys:
                    if may_change(key):  # its attributes may
                        self._gather(key, guard, seen, own=False)
            else:
                guard.append((type(x), len(parts)))
            for part in parts:
                self._gather(part, guard, seen, own=own if is_rebuilt(x) else False)
            if type(x) not in _EXACT:
                self._objects.append(x)
        elif isinstance(x, Fields) and own is not False:
            leaves, structure = trees.flatten(x)
            guard.append(structure)
            self._containers += [(held, _parts(held)) for held in _dictionaries(vars(x).values())]
            for leaf in leaves:
                self._gather(leaf, guard, seen, own=own)
            for part in may_run(x):
                self._gather(part, guard, seen, own=False)
        elif (
            isinstance(x, _OF_C)
            and x.__name__ not in CHANGES
            and not isinstance(x.__self__, (*_MANY, type, type(None)))
        ):
            guard.append(Same(x))
            self._gather(x.__self__, guard, seen, own=False)
        elif isinstance(x, contextvars.ContextVar):
            value = x.get(_Empty)
            guard.append(Same(x))
            self._contexts.append((x, value))
            self._gather_value(value, guard, seen)
        elif isinstance(x, _CACHED):
            guard.append(Same(x))
            self._gather_value(x.__wrapped__, guard, seen)
        else:
            guard.append(Same(x))
            if isinstance(x, (operator.attrgetter, operator.methodcaller)):
                self._names.update([name for text in _named_by(x) for name in text.split(".")])
            self._objects.append(x)

    def _gather_function(self, f: types.FunctionType, guard: list[Any], seen: set[Any], *, own: bool | None) -> None:
        guard.append(Same(f.__code__))
        if f.__code__ in callbacks:
            return
        read = _read(f.__code__, callbacks.count)
        around, self._is_external = self._is_external, self._is_external or is_external(f)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            value = _content(cell)
            self._cells.append((cell, value))
            self._variable = self._variables[id(cell)] = name
            if isinstance(value, (dict, list, *_BUFFERS)) and name not in read:  # callbacks fill it
                guard.append(Same(value))
            else:
                self._gather(value, guard, seen, own=own)
        self._is_external = around
        if f.__code__.co_filename.startswith(PACKAGE):  # ours do not change, but may hold what is the user's
            for value in (f.__defaults__, *(f.__kwdefaults__ or {}).values()):
                self._gather(value, guard, seen, own=False)
            return
        self._functions.append((f, f.__code__, f.__defaults__, f.__kwdefaults__))
        for defaults in (f.__defaults__, f.__kwdefaults__):
            self._gather(defaults, guard, seen, own=own)
        if vars(f):
            self._objects.append(f)
        names = _attributes(f.__code__, callbacks.count)
        self._names |= names.read
        self.assigned |= names.assigned
        self._operators |= names.operators
        self._all |= names.all
        self._bypassed |= names.bypassed
        known, replaced = f.__globals__, () if own is False else names_of_module(f)
        for name in _names(f.__code__, callbacks.count):
            value, self._variable = known.get(name, _Empty), name
            if (id(known), name) not in self._read:
                self._read.add((id(known), name))
                self._known.append((known, name, value))
            self._gather_value(value, guard, seen, own=own if name in replaced else False)

    def _gather_value(self, value: Any, guard: list[Any], seen: set[Any], *, own: bool | None = False) -> None:
        """What is read by a name of a module, or of an object."""
        if value is _Empty:
            return
        if isinstance(value, types.ModuleType):
            if _is_users(value) and id(value) not in seen:
                seen.add(id(value))
                self._objects.append(value)
        elif isinstance(value, types.FunctionType) and is_of_library(value.__code__.co_filename):
            guard.append(Same(value))
        else:
            self._gather(value, guard, seen, own=own)

    def _gather_attributes(self, seen: set[Any]) -> None:
        """What functions read of objects: what has a name that stands in their code. That may bring more of both."""
        looked: dict[int, Any] = {}
        while True:
            new = [x for x in self._objects if looked.get(id(x)) != self._so_far()]
            if not new:
                break
            for x in new:
                looked[id(x)] = self._so_far()
                self._gather_object(x, seen)
        self._known += [x for x in self._held if x[1] not in self.assigned]
        self._slots = [x for x in self._slots if x[1] not in self.assigned]
        self._attributes = {at: x for at, x in self._attributes.items() if at[1] not in self.assigned}
        for at, (x, tensors) in self._of_holders.items():
            if at in self._attributes:
                self._attributes[at] += tuple(map(self._place, tensors))
                untracked = [y for y in tensors if not y._device.tracked(raw_array(y))]  # others are refused there
                for y in untracked if self._bypassed else ():
                    self._attributes[at] += ((Same(y), Same(raw_array(y))),)
                    self._arrays.append((y, raw_array(y)))
                if not any([x is y for y in self.holders]):
                    self.holders.append(x)

    def _so_far(self) -> tuple[int, int, bool]:
        return len(self._names), len(self._operators), self._all

    def _gather_object(self, x: Any, seen: set[Any]) -> None:
        held = _dictionary(x)
        if isinstance(x, type):
            self._gather_class(x, None, seen)
            self._gather_class(type(x), None, seen)
            return
        if isinstance(x, threading.local):  # each thread has its own
            for name in self._names:
                self._slot(x, name, seen)
            return
        if isinstance(x, Backend):
            return
        if type(x).__module__.startswith(_OURS):
            for name, value in held.items():  # functions of the user are what counts
                if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
                    self._attribute(x, held, name, value, seen)
            return
        everything = self._all and _is_users(sys.modules.get(type(x).__module__)) and not isinstance(x, _MANY)
        everything = everything or isinstance(x, _WRITTEN) or (self._all and isinstance(x, types.SimpleNamespace))
        for name in [name for name in held if everything or name in self._names]:
            self._attribute(x, held, name, held[name], seen)
        self._gather_class(type(x), x, seen)

    def _gather_class(self, cls: type, x: Any, seen: set[Any]) -> None:
        """What the user's classes have for an object, or for themselves."""
        before: list[type] = []
        for each in cls.__mro__:
            if not _is_users(sys.modules.get(each.__module__)):
                continue
            for name in [name for name in vars(each) if self._is_read(name, vars(each)[name])]:
                member = vars(each)[name]
                if isinstance(member, types.MemberDescriptorType):
                    if x is not None:
                        self._slot(x, name, seen)
                    continue
                assigned = set(self.assigned)
                self._attribute(each, vars(each), name, member, seen)
                if name not in self._names:  # which may not run at all; if it does, it is seen what it has changed
                    self.assigned = assigned
                if isinstance(member, cached_property):
                    self.assigned.add(name)
                held = _dictionary(x)
                if held is not _NOTHING and name not in held:  # it may come
                    self._attribute(x, held, name, _Empty, seen)
                for nearer in before:
                    if name not in vars(nearer):
                        self._attribute(nearer, vars(nearer), name, _Empty, seen)
            before.append(each)

    def _slot(self, x: Any, name: str, seen: set[Any]) -> None:
        """What has no dictionary that says it."""
        if (id(x), name) not in self._read:
            self._read.add((id(x), name))
            value = getattr(x, name, _Empty)
            self._slots.append((x, name, value))
            if value is not _Empty:
                self._add(x, name, value, seen)

    def _is_read(self, name: str, member: Any) -> bool:
        """Whether functions may read what a class has by this name: operators are methods that they do not name."""
        if name in self._names:
            return True
        if name.startswith("__"):
            if name in _NO_OPERATORS or (name in _OF_QUESTIONS and name not in self._operators):
                return False
            return isinstance(member, types.FunctionType) and _is_written(member)
        return self._all

    def _attribute(self, x: Any, held: Mapping[str, Any], name: str, value: Any, seen: set[Any]) -> None:
        if (id(x), name) not in self._read:
            self._read.add((id(x), name))
            self._held.append((held, name, value))
            if value is not _Empty:
                self._add(x, name, value, seen)

    def _add(self, x: Any, name: str, value: Any, seen: set[Any]) -> None:
        found: list[Any] = []
        at, given = (Same(x), name), can_be_watched(x)
        self._attributes[at] = ()  # it has its place before what it leads to
        for part in _functions_of(value):
            self._gather_value(part, found, seen, own=None if given else False)
        self._attributes[at] = tuple(found)
        if given and (tensors := closed_over(value)):
            self._of_holders[at] = x, tuple(tensors.values())


_MANY = (types.ModuleType, types.FunctionType)  # have more attributes than are read
_NO_OPERATORS = frozenset(
    "__init__ __new__ __post_init__ __del__ __init_subclass__ __set_name__ __class_getitem__ __reduce__ __reduce_ex__ "
    "__getstate__ __setstate__ __copy__ __deepcopy__ __repr__ __str__ __format__ __dir__ __sizeof__".split()
)


def _is_written(f: types.FunctionType) -> bool:
    """Whether it stands in a file: what `dataclass` makes does not, and compares all fields."""
    return not f.__code__.co_filename.startswith("<string>")


_MAPPINGS = (dict, types.MappingProxyType)
_CONTAINERS = (*_MAPPINGS, list, tuple, set, frozenset, collections.deque, bytearray)
_EXACT = (*_CONTAINERS, functools.partial, np.ndarray)
_BUFFERS = (np.ndarray, array.array, memoryview, ctypes.Array, ctypes._SimpleCData)
_OF_C = (types.BuiltinMethodType, types.MethodWrapperType)
_CACHED = type(functools.lru_cache(_is_users))
_WRITTEN = (collections.UserDict, collections.UserList, collections.ChainMap)  # in Python: they keep all in attributes


_NOTHING: Mapping[str, Any] = {}


def _dictionary(x: Any) -> Mapping[str, Any]:
    """That of an object, whose class may answer any name."""
    try:
        return object.__getattribute__(x, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return _NOTHING


def _functions_of(member: Any) -> Iterable[Any]:
    """What runs where a member of a class is read; of other members they themselves."""
    if isinstance(member, (staticmethod, classmethod)):
        return [member.__func__]
    if isinstance(member, property):
        return [f for f in (member.fget, member.fset, member.fdel) if f is not None]
    if isinstance(member, cached_property):
        return [member.func]
    return [member]


def _parts(x: Any) -> tuple[Any, ...]:
    """What a container holds: of a dictionary the keys, then the values."""
    if isinstance(x, _MAPPINGS):
        return (*x, *x.values())
    if isinstance(x, np.ndarray):
        return tuple(x.flat)
    return (x.func, x.args, x.keywords) if isinstance(x, functools.partial) else tuple(x)


def _dictionaries(values: Iterable[Any]) -> Iterator[dict[Any, Any]]:
    """Those in what a module holds, which is a value but for them."""
    for x in values:
        if isinstance(x, dict):
            yield x
            yield from _dictionaries(x.values())
        elif isinstance(x, (list, tuple)):
            yield from _dictionaries(x)
        elif isinstance(x, Fields):
            yield from _dictionaries(vars(x).values())


def _viewed(x: Any) -> Mapping[Any, Any] | None:
    """The dictionary of a view."""
    held = getattr(x, "mapping", None)
    return getattr(x, "_mapping", None) if held is None else held


def _is_of_objects(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "O"


def _numbers(x: Any) -> Any:
    """What is in an array; None of many numbers, which must not change."""
    if isinstance(x, np.ndarray):
        return None if x.size > LARGE else (x.shape, x.dtype, x.tobytes())
    numbers = memoryview(x)
    return None if numbers.nbytes > 8 * LARGE else numbers.tobytes()


def _named_by(x: Any) -> list[str]:
    """The attributes that a function made by `operator` reads."""
    made, given, *_ = x.__reduce__()
    names = made.args if isinstance(made, functools.partial) else given
    return [name for name in names if isinstance(name, str)]


def _are_same(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    """Whether two rows hold the same objects."""
    return len(xs) == len(ys) and all(map(operator.is_, xs, ys))


class _Empty:
    """Of a cell that has no value yet."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty
