"""Closure conversion: what a function closes over as arguments.

A script and a notebook keep in their module what a function keeps in its closure, so names of the module count, too.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy as copies
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from adjoint import errors
from adjoint import tree as trees
from adjoint.concrete import Staged
from adjoint.devices import current_level
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import check_callable
from adjoint.lines import PACKAGE, is_of_library, names_in
from adjoint.operands import in_place_of
from adjoint.scopes import Block, Variable, innermost
from adjoint.tensor import Tensor
from adjoint.transforms.arguments import Function
from adjoint.transforms.watched import can_be_watched, watched
from adjoint.tree import Branch


def closure_convert(f: Function, *args: Any) -> tuple[Function, list[Tensor[Any]]]:
    """f as a function of what it closes over: derivatives with respect to those tensors can then be taken.

    Gives (converted, closed): `converted(*args, *closed)` is `f(*args)`, where `closed` are the floating tensors in
    variables that f reads, of functions around it and of its module, and in functions, tuples, lists, dictionaries and
    modules of layers there. In its module nothing is looked up by a function that assigns to names there. `args` are
    examples of arguments; only functions with Python source are converted, and others close over nothing. Raises
    ArgumentTypeError for what is no function; `converted` raises ArgumentError for too few arguments.

    >>> import adjoint as ad
    >>> w = ad.tensor(3.0)
    >>> def make():
    ...     inner = w
    ...     return lambda x: x * inner
    >>> converted, closed = ad.closure_convert(make(), 2.0)
    >>> ad.grad(converted, 1)(2.0, *closed).item()
    2.0
    """
    check_callable("closure_convert", f)
    found = {key: x for key, x in closed_over(f).items() if x.dtype.kind in INEXACT}
    closed, f = list(found.values()), as_now(f)

    def converted(*values: Any) -> Any:
        split = len(values) - len(closed)
        if split < 0:
            raise errors.ArgumentError(
                f"closure_convert: expected the arguments and then {len(closed)} closed-over tensors, received "
                f"{len(values)}"
            )
        return substituted(f, dict(zip(found, values[split:], strict=True)))(*values[:split])

    return converted, closed


def closed_over(f: Function) -> dict[int, Tensor[Any]]:
    """The tensors that a function reads beside its arguments, in variables, functions and containers, by id."""
    found: dict[int, Tensor[Any]] = {}
    _gather(f, found, set())
    return found


def substituted(f: Function, values: dict[int, Any]) -> Function:
    """The function with other tensors in the place of those it closes over, by id."""
    if not values:
        return f
    block, copied = innermost(_attributes), _copied(f, values, anew=False)
    return copied if block is None else block.value.with_others(copied, values)  # type: ignore[no-any-return]


def as_now(f: Function) -> Function:
    """The function with its closure as it is now, to run again later.

    What is assigned to its variables meanwhile, and what its lists and dictionaries get, it does not see.
    """
    return _copied(f, {}, anew=True)  # type: ignore[no-any-return]


def opened(functions: Sequence[Function]) -> tuple[Function, list[Tensor[Any]]]:
    """The functions, as they are now, as a list that follows from the tensors they close over; and these tensors.

    Each list is made anew, with all variables, lists and dictionaries of the closures; see `as_given`.
    """
    found: dict[int, Tensor[Any]] = {}
    _gather(list(functions), found, set())
    objects = _holders(functions, found) if _is_recorded() else None
    first: dict[int, Any] = {}
    now = _copied(list(functions), {}, anew=True, origins=first)
    closed = list(found.values())
    outer, block = innermost(_origins), innermost(_attributes)
    known = {} if outer is None else outer.value.known
    attributes = Attributes([], {}, frozenset()) if block is None else block.value

    def made(*values: Any) -> Any:
        second: dict[int, Any] = {}
        new = dict(zip(found, map(in_place_of, closed, values), strict=True))
        copied = _copied(now, new, anew=True, origins=second)
        copied = [attributes.with_others(f, new, objects) for f in copied]
        origins = {key: first.get(id(x), x) for key, x in second.items()}
        origins = {key: known.get(id(x), x) for key, x in origins.items()}
        return [_in_copies(f, _Origins(origins)) for f in copied] if origins else copied

    return made, closed


class _Origins:
    """The lists and dictionaries that those of copied functions stand for, by the id of the copy."""

    __slots__ = ("known",)

    def __init__(self, known: dict[int, Any]) -> None:
        self.known = known


_origins: Variable[_Origins] = contextvars.ContextVar("adjoint_origins", default=None)


def _in_copies(f: Function, origins: _Origins) -> Function:
    """The copied function, which says while it runs what its lists and dictionaries stand for."""

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        with Block(_origins, origins):
            return f(*args, **kwargs)

    return run


def as_given(f: Function) -> Function:
    """The function that the user wrote, who reads the lists and dictionaries that it fills: none that are copies."""
    block = innermost(_origins)
    if block is None:
        return f
    known = block.value.known
    if isinstance(f, types.BuiltinMethodType) and id(f.__self__) in known:  # losses.append
        return getattr(known[id(f.__self__)], f.__name__)  # type: ignore[no-any-return]
    return _copied(f, known, anew=False)  # type: ignore[no-any-return]


class Attributes:
    """What attributes of objects have in the place of tensors, by the ids of these; not those of the names `but`.

    `before` are values that attributes had, by the ids of objects and by names: these are read, whatever they are now.
    """

    def __init__(
        self,
        objects: Sequence[Any],
        values: dict[int, Any],
        but: Set[str],
        before: Mapping[tuple[int, str], Any] | None = None,
    ) -> None:
        self.objects, self.values, self.but = objects, values, but
        self.before = before or {}
        self.known: set[int] = set(map(id, objects))
        self._made: dict[int, tuple[Any, Any]] = {}  # what was read, which is kept, and what was given for it

    def read(self, x: Any, name: str, value: Any) -> Any:
        if name in self.but:
            return value
        value = self.before.get((id(x), name), value)
        known = self._made.get(id(value))
        if known is None:
            known = self._made[id(value)] = value, _copied(value, self.values, anew=False)
        return known[1]

    @contextlib.contextmanager
    def given(self) -> Iterator[None]:
        """A block in which the attributes have them."""
        if not self.objects:
            yield
            return
        with watched(self.objects, self), Block(_attributes, self):
            yield

    def with_others(self, f: Any, values: dict[int, Any], more: Attributes | None = None) -> Any:
        """The function, which finds in attributes other tensors in the place of those that are given there now.

        In attributes of `more` objects it finds them in the place of those that were there.
        """
        if not callable(f) or not (more is not None or any([id(x) in values for x in self.values.values()])):
            return f
        mine = {key: values.get(id(x), x) for key, x in self.values.items()}
        if more is None:
            others = Attributes(self.objects, mine, self.but, self.before)
        else:
            before = {**self.before, **more.before}
            others = Attributes([*self.objects, *more.objects], {**values, **mine}, self.but, before)

        @functools.wraps(f)
        def run(*args: Any, **kwargs: Any) -> Any:
            with others.given():
                return f(*args, **kwargs)

        return run


_attributes: Variable[Attributes] = contextvars.ContextVar("adjoint_attributes", default=None)


def _holds_given(x: Any) -> bool:
    """Whether it is an object whose attributes are read otherwise now."""
    block = innermost(_attributes)
    return block is not None and id(x) in block.value.known


class Wrapper:
    """A function of ours around the function `f` of the user's, which stands for it where a program is recorded."""

    f: Callable[..., Any]


def _is_recorded() -> bool:
    level = current_level()
    return level is not None and isinstance(level.leaf, Staged)


def _copied(x: Any, values: dict[int, Any], *, anew: bool, origins: dict[int, Any] | None = None) -> Any:
    try:
        return _rebuilt(x, values, {}, {} if origins is None else origins, anew=anew)
    except RecursionError:
        raise errors.ArgumentError("what the function closes over is nested too deep; pass it as an argument") from None


LARGE = 1000  # entries: what is in larger containers nobody looks at


@functools.lru_cache(1024)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names of its module that a function reads, and those defined in it; none if they assign to one."""
    steps = [step for part in _codes(code) for step in names_in(part) if step[0].endswith("_GLOBAL")]
    return tuple(dict.fromkeys([name for _, name in steps])) if all([x == "LOAD_GLOBAL" for x, _ in steps]) else ()


def _codes(code: types.CodeType) -> list[types.CodeType]:
    return [code, *[x for part in code.co_consts if isinstance(part, types.CodeType) for x in _codes(part)]]


def names_of_module(f: types.FunctionType) -> list[str]:
    """The names of its module under which a user's function reads what may have tensors in it."""
    if f.__code__.co_filename.startswith(PACKAGE) or is_of_library(f.__code__.co_filename):
        return []
    known = f.__globals__
    return [name for name in _names(f.__code__) if _may_hold(known.get(name))]


@functools.lru_cache(1024)
def _mentioned(code: types.CodeType) -> frozenset[str]:
    return frozenset([name for part in _codes(code) for name in part.co_names])


def mentions(f: Function, name: str) -> bool:
    """Whether a function of the user's, or one that it closes over, has this name in its code."""
    waiting: list[Any] = [f]
    seen: set[int] = set()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, types.FunctionType) and not x.__code__.co_filename.startswith(PACKAGE):
            if name in _mentioned(x.__code__):
                return True
        waiting += _contents(x)
    return False


_LOOKING = {"globals", "eval", "exec", "vars", "_getframe", "currentframe"}  # functions that find names by themselves


def _read_by(f: types.FunctionType) -> dict[str, Any]:
    """The names of its module that a function reads, as they are now: the others must not live as long as a copy."""
    known, read = f.__globals__, _mentioned(f.__code__)
    if read & _LOOKING:
        return dict(known)
    return {name: x for name, x in known.items() if name in read or name.startswith("__")}


def _may_hold(x: Any) -> bool:
    if isinstance(x, types.FunctionType):
        return not x.__code__.co_filename.startswith(PACKAGE) and not is_of_library(x.__code__.co_filename)
    return (
        isinstance(x, (Tensor, Branch, Wrapper, functools.partial, types.MethodType))
        or (isinstance(x, (list, tuple, dict)) and len(x) <= LARGE)
        or _holds_given(x)
    )


def _contents(x: Any) -> list[Any]:
    """What a function reads beside its arguments, or a container holds; nothing for all else."""
    if isinstance(x, types.FunctionType):
        inside = [cell.cell_contents for cell in x.__closure__ or () if _filled(cell)]
        inside += [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return inside + [x.__globals__[name] for name in names_of_module(x)]
    if isinstance(x, functools.partial):
        return [x.func, x.args, x.keywords]
    if isinstance(x, types.MethodType):
        return [x.__func__, x.__self__]
    if isinstance(x, Wrapper):
        return [x.f] if _is_recorded() else []
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, Branch):
        return trees.leaves(x)
    return list(x) if isinstance(x, list) or _is_tuple(x) else []


def is_rebuilt(x: Any) -> bool:
    """Whether a container is looked into, and made anew with other tensors."""
    return isinstance(x, (list, dict, functools.partial)) or _is_tuple(x)


def _is_tuple(x: Any) -> bool:
    """A tuple that can be made from its contents."""
    return type(x) is tuple or (isinstance(x, tuple) and hasattr(x, "_make"))


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (an empty cell raises)
    except ValueError:
        return False
    return True


def _gather(x: Any, found: dict[int, Tensor[Any]], seen: set[int]) -> None:
    waiting, block = [x], innermost(_attributes)  # and not recursion: lists may be nested deep
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found[id(x)] = x
        elif block is not None and id(x) in block.value.known:
            found.update((id(y), y) for y in block.value.values.values())
        else:
            waiting += reversed(_contents(x))


def _holders(functions: Sequence[Function], found: dict[int, Tensor[Any]]) -> Attributes | None:
    """The objects that functions of a program lead to, with the attributes that code names as they are now.

    Their tensors are added to those found. Attributes that code assigns to are left alone.
    """
    names, assigned = set[str](), set[str]()
    before: dict[tuple[int, str], Any] = {}
    objects: list[Any] = []
    waiting: list[Any] = list(functions)
    seen: set[int] = set()
    looked: set[tuple[int, str]] = set()
    while waiting:
        while waiting:
            x = waiting.pop()
            if id(x) in seen or isinstance(x, (Tensor, types.ModuleType)) or _holds_given(x):
                continue
            seen.add(id(x))
            if isinstance(x, types.FunctionType):
                for part in _codes(x.__code__):
                    names.update(part.co_names)
                    assigned.update([name for step, name in names_in(part) if step == "STORE_ATTR"])
            if not isinstance(x, type) and can_be_watched(x):
                objects.append(x)
            else:
                waiting += _contents(x)
        for x in objects:
            for name, value in (*_methods(type(x), names), *_values(x, names)):
                if (id(x), name) not in looked:
                    looked.add((id(x), name))
                    waiting.append(value)
    for x in objects:
        before.update({(id(x), name): value for name, value in _values(x, names - assigned)})
    for value in before.values():
        found.update(closed_over(value))
    return Attributes(objects, {}, frozenset(), before) if before else None


def _methods(cls: type, names: set[str]) -> Iterator[tuple[str, Any]]:
    """Functions of a class that code may call, by names or operators."""
    for each in cls.__mro__:
        for name, member in vars(each).items() if each.__module__ != "builtins" else ():
            f = member.fget if isinstance(member, property) else member
            by_operator = name.startswith("__") and name not in _MAKING
            if isinstance(f, types.FunctionType) and (name in names or by_operator):
                yield name, f


def _values(x: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """The attributes of an object that have one of these names, in slots or its dictionary."""
    for each in type(x).__mro__:
        for name in names.intersection(vars(each)):
            member = vars(each)[name]
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    yield name, member.__get__(x)
    with contextlib.suppress(AttributeError):
        values = object.__getattribute__(x, "__dict__")
        yield from [(name, values[name]) for name in names.intersection(values)]


_MAKING = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__setstate__", "__set_name__")


def _rebuilt(x: Any, values: dict[int, Any], made: dict[int, Any], origins: dict[int, Any], *, anew: bool) -> Any:
    """The same thing with other tensors in its closure; the thing itself where there are none, but for `anew`.

    `origins` gets what new lists and dictionaries are copies of, by their ids.
    """
    if id(x) in values:
        return values[id(x)]
    if id(x) in made:
        return made[id(x)]

    def rebuilt(part: Any) -> Any:
        return _rebuilt(part, values, made, origins, anew=anew)

    if isinstance(x, types.FunctionType) and (x.__closure__ or _contents(x)):
        names = names_of_module(x) if closed_over(x) else []
        cells = [types.CellType() for _ in x.__closure__ or ()]
        known = _read_by(x) if names else x.__globals__
        copy: Any = types.FunctionType(x.__code__, known, x.__name__, None, tuple(cells))
        copy.__dict__.update(x.__dict__)
        made[id(x)] = copy
        copy.__defaults__ = rebuilt(x.__defaults__)
        copy.__kwdefaults__ = rebuilt(x.__kwdefaults__)
        for cell, old in zip(cells, x.__closure__ or (), strict=True):
            if _filled(old):
                cell.cell_contents = rebuilt(old.cell_contents)
        for name in names:
            known[name] = rebuilt(x.__globals__[name])
    elif isinstance(x, Wrapper) and _contents(x):
        f = rebuilt(x.f)
        return x if f is x.f else f
    elif isinstance(x, (list, dict)):
        copy = made[id(x)] = _copy_of(x)
        origins[id(copy)] = x
        _fill(copy, {key: rebuilt(x[key]) for key in (range(len(x)) if isinstance(x, list) else x)})
    elif isinstance(x, Branch):
        parts, structure = trees.flatten(x)
        new = [_rebuilt(part, values, made, origins, anew=False) for part in parts]  # a module is a value
        made[id(x)] = x if _same(new, parts) else trees.unflatten(structure, new)
        return made[id(x)]
    elif isinstance(x, (functools.partial, types.MethodType)) or _is_tuple(x):
        parts = list(map(rebuilt, _contents(x)))
        if _same(parts, _contents(x)):
            return x
        if isinstance(x, functools.partial):
            return functools.partial(parts[0], *parts[1], **parts[2])
        if isinstance(x, types.MethodType):
            return types.MethodType(parts[0], parts[1])
        kind: Any = type(x)
        return kind(parts) if kind is tuple else kind._make(parts)
    else:
        return x
    if not anew and _same(_contents(copy), _contents(x)):
        made[id(x)] = x
    return made[id(x)]


def _copy_of(x: Any) -> Any:
    try:
        return copies.copy(x)
    except Exception as error:
        raise _not_copied(x, error) from error


def _fill(copy: Any, parts: dict[Any, Any]) -> None:
    try:
        for key, part in parts.items():
            copy[key] = part
    except Exception as error:
        raise _not_copied(copy, error) from error


def _not_copied(x: Any, error: Exception) -> errors.ArgumentTypeError:
    kind = "list" if isinstance(x, list) else "dict"
    return errors.ArgumentTypeError(
        f"a function closes over a {type(x).__name__}, of which a copy with other tensors cannot be made: "
        f"{errors.shown(error)}; let it close over a plain {kind}, or over the tensors"
    )


# --- what a function changes ---------------------------------------------------------------------


class Held:
    """Variables, lists and dictionaries in the closure of a user's function, and what they hold."""

    def __init__(self, f: Function) -> None:
        self.found: list[tuple[Any, list[Any], str, Any]] = []  # a thing, what it holds, its name, and whose it is
        waiting: list[tuple[Any, str, Any]] = [(f, "", f)]
        seen: set[int] = set()
        while waiting:
            x, name, owner = waiting.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, types.FunctionType) and x.__code__.co_filename.startswith(PACKAGE):
                waiting += [(y, name, owner) for y in _contents(x) if callable(y)]  # ours change nothing of theirs
            elif isinstance(x, types.FunctionType):
                for key, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
                    self.found.append((cell, _inside(cell), key, x))
                    waiting += [(y, key, x) for y in _inside(cell)]
                waiting += [(x.__globals__[key], key, x) for key in names_of_module(x)]
            else:
                if isinstance(x, (list, dict)):
                    self.found.append((x, _inside(x), name, owner))
                waiting += [(y, name, owner) for y in _contents(x)]

    def but(self, other: Held) -> Held:
        """Without the things that the other has as well."""
        theirs = {id(x) for x, *_ in other.found}
        self.found = [entry for entry in self.found if id(entry[0]) not in theirs]
        return self

    def changed(self) -> str | None:
        """Which function holds something else now, at which line, and by which name."""
        for x, before, name, owner in self.found:
            now = _inside(x)
            if len(now) != len(before) or not _same(now, before):
                code = owner.__code__
                return f"{owner.__name__} at {code.co_filename}:{code.co_firstlineno} changes {name!r}"
        return None


def _inside(x: Any) -> list[Any]:
    if isinstance(x, types.CellType):
        return [x.cell_contents] if _filled(x) else []
    return [*x, *x.values()] if isinstance(x, dict) else list(x)


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
