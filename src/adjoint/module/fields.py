"""Classes whose annotated fields are a pytree: which of their arrays are parameters, and how another is made of one."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

from adjoint import errors
from adjoint import tree as trees
from adjoint.counterparts import counterpart
from adjoint.devices import leaf_of
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import is_array
from adjoint.functions.gradients import inner, is_require_grad
from adjoint.methods import Signed
from adjoint.random_keys import seeded
from adjoint.tensor import Tensor

M = TypeVar("M", bound="Fields")
T = TypeVar("T")

Buffer = Annotated[Tensor[Any], "buffer"]
"""Annotates a field whose tensor is not trained: a running mean. `Module.apply` gives new ones."""


class Leaf(NamedTuple):
    """An array of a module: where it is, its value, and what it is."""

    path: str
    value: Any
    kind: str  # "parameter", "frozen", "buffer", or "constant": a NumPy array, integers


class Setting:
    """What is no array, as a part of the structure."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Constant:
    """An array as a part of the structure, which is equal to itself alone."""

    def __init__(self, value: Any) -> None:
        self.value = value


@functools.cache
def register_parts() -> None:
    """Tell `ad.tree` of both."""
    trees.register(Setting, lambda x: ((), (x.value, trees.kind(x.value))), lambda _, known: known[0])
    trees.register(Constant, lambda x: ((), x), lambda _, x: x.value)


_SETTINGS = (str, int, float, complex, Constant, Setting, types.FunctionType)  # what is never a container
FLATTENED = itertools.count()  # how many modules were flattened: who asks before and after knows whether one was


# --- the class -----------------------------------------------------------------------------------


@dataclass_transform()
class _Meta(Signed):
    """Makes an object a value once `__init__` has run: all fields are there, and nothing can be assigned any more."""

    names_of = "Module"

    def _make(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        values = vars(made)
        for name in cls._fields:  # type: ignore[attr-defined]
            if name not in values and not hasattr(cls, name):
                raise errors.ArgumentError(f"{cls.__name__}: the field {name!r} has no value; assign it in __init__")
            values[name] = closed(getattr(made, name))
        values["_made"] = True
        return made

    if not TYPE_CHECKING:  # to whom a call gives an object of the class, as of any other
        __call__ = _make


class Fields(trees.Branch, metaclass=_Meta):
    """What `ad.nn.Module` is made of: fields, and that nothing is assigned to them."""

    # Of a class:
    _fields: ClassVar[tuple[str, ...]] = ()
    _buffers: ClassVar[frozenset[str]] = frozenset()  # the fields that are annotated so
    # Of an object, which has them beside its fields, but not as fields:
    _made: ClassVar[bool] = False
    _frozen: ClassVar[frozenset[str]] = frozenset()  # fields whose parameters are not trained
    _training: ClassVar[bool] = True
    if TYPE_CHECKING:
        __call__: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, *, init: bool = True, **kwargs: Any) -> None:
        """With `init=False` a class keeps the `__init__` of its base, and type checkers know it."""
        super().__init_subclass__(**kwargs)
        own = {name: note for name, note in inspect.get_annotations(cls).items() if not _is_class_var(note)}
        for name in own:
            hidden = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
            if hidden is not None and name not in cls._fields:
                raise errors.ArgumentError(
                    f"{cls.__name__}: the field {name!r} would hide {hidden.__name__}.{name}; rename it"
                )
        cls._fields = (*[name for name in cls._fields if name not in own], *own)
        cls._buffers = cls._buffers.difference(own) | {name for name, note in own.items() if _is_buffer(note)}
        if (own and init and "__init__" not in cls.__dict__) or cls.__init__ is object.__init__:
            setattr(cls, "__init__", _fields_init(cls))  # noqa: B010 (assigned, it is an override to type checkers)
        for name in ("__call__", "apply"):
            if name in cls.__dict__:
                setattr(cls, name, _keyed(cls.__dict__[name]))
        register_parts()

    def _tree_parts(self) -> trees.Parts:
        next(FLATTENED)
        values = vars(self)
        known = self.__class__, self._frozen, self._training
        return [part(values[name]) for name in self._fields], known, self._fields

    @classmethod
    def _tree_of(cls, known: Any, parts: Any) -> Any:
        made = _made(*known)
        vars(made).update(zip(cls._fields, parts, strict=True))
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if self._made:
            raise errors.FrozenModuleError(
                f"{type(self).__name__} is a value, and its {name} cannot be assigned; "
                f"model.at({name!r}).set(...) is another module"
            )
        if name not in self._fields:
            raise errors.ArgumentError(
                f"{type(self).__name__} has no field {name!r}; annotate it in the class, as in `{name}: ad.Tensor`"
            )
        vars(self)[name] = value

    def __getattr__(self, name: str) -> Any:
        hint = counterpart("Module", name)
        said = f"{type(self).__name__!r} object has no attribute {errors.shown(name)}{hint}"
        raise AttributeError(said, name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        raise errors.FrozenModuleError(
            f"{type(self).__name__} is a value, and its {name} cannot be deleted; "
            f"model.at({name!r}).set(None) is another module"
        )


def _keyed(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method that also takes `key=`, a seed, from which all that is drawn in it follows."""

    @functools.wraps(f)
    def run(*args: Any, key: int | None = None, **kwargs: Any) -> Any:
        if key is None:
            return f(*args, **kwargs)
        with seeded(key):
            return f(*args, **kwargs)

    return run


def part(x: Any) -> Any:
    """What a field has, with settings wrapped, so that they belong to the structure."""
    cls = x.__class__
    if x is None or cls is Tensor:
        return x
    if cls in _PLAIN:
        return Setting(x)
    if isinstance(x, Fields):
        return trees.Held(x)
    if cls is Constant or cls is Setting or is_array(x):
        return x
    if cls is tuple:
        return tuple(map(part, x))
    if is_setting(x):
        return Setting(x)
    children, _, build = opened(x)
    return trees.held(build(list(map(part, children))))


def rebuilt(cls: type[Any], children: Any, frozen: frozenset[str], training: bool) -> Any:
    made = _made(cls, frozen, training)
    vars(made).update(zip(cls._fields, children, strict=True))
    return made


def _made(cls: type[Any], frozen: frozenset[str], training: bool) -> Any:
    """A module whose fields are still to be written."""
    made = object.__new__(cls)
    values = vars(made)
    values["_frozen"], values["_training"], values["_made"] = frozen, training, True
    return made


def closed(value: Any) -> Any:
    """A field's value with tuples for lists, so that it stays as it is."""
    try:
        return _closed(value)
    except RecursionError:
        raise errors.ArgumentError("a field of a module contains itself, or is nested too deep") from None


def _closed(value: Any) -> Any:
    if isinstance(value, list) or value.__class__ is tuple:
        return tuple(map(_closed, value))
    if value.__class__ is dict:
        return {key: _closed(part) for key, part in value.items()}
    for x in trees.leaves(value):
        if not is_array(x) and leaf_of(x) is not None:
            raise errors.ArgumentTypeError(
                f"a field of a module has a {type(x).__module__}.{type(x).__name__}, which would not be trained; "
                "ad.asarray makes a tensor of it"
            )
    return value


def _fields_init(cls: type[Fields]) -> Callable[..., None]:
    """An `__init__` that takes the fields, in order or by name."""
    empty = inspect.Parameter.empty
    given = [hasattr(cls, name) for name in cls._fields]
    if given != sorted(given):
        raise errors.ArgumentTypeError(
            f"{cls.__name__}: fields without a default come first, and it has {', '.join(cls._fields)} in this order; "
            "give the later ones defaults, or define __init__"
        )
    signature = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=getattr(cls, name, empty))
            for name in cls._fields
        ]
    )

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise errors.ArgumentTypeError(
                f"{cls.__name__}: {error}; its fields are {', '.join(cls._fields) or 'none'}"
            ) from None
        given.apply_defaults()
        vars(self).update(given.arguments)

    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *signature.parameters.values()]
    )
    return __init__


def _is_buffer(note: Any) -> bool:
    return note is Buffer or (isinstance(note, str) and note.split("[")[0].rpartition(".")[2] == "Buffer")


def _is_class_var(note: Any) -> bool:
    text = note if isinstance(note, str) else repr(note)
    return text.rpartition("typing.")[2].startswith("ClassVar")


_PLAIN = {types.NoneType, bool, int, float, complex, str, types.FunctionType}  # classes of the most frequent settings

# --- trees of modules ----------------------------------------------------------------------------


def leaves_of(tree: Any, prefix: str = "", kind: str = "") -> list[Leaf]:
    """The arrays of a module, or of a tree of modules, in the order of the pytree's leaves."""
    found: list[Leaf] = []
    try:
        _gather(tree, prefix, kind, found)
    except RecursionError:
        raise errors.ArgumentError("a tree of parameters contains itself, or is nested too deep") from None
    return found


def _gather(tree: Any, prefix: str, kind: str, found: list[Leaf]) -> None:
    cls = tree.__class__
    if cls is Tensor:
        role = kind or "parameter"
        found.append(Leaf(prefix, tree, role if kind == "buffer" or tree._dtype.kind in INEXACT else "constant"))
    elif cls is tuple:
        for k, child in enumerate(tree):
            _gather(child, f"{prefix}.{k}" if prefix else str(k), kind, found)
    elif isinstance(tree, Fields):
        values, start = vars(tree), f"{prefix}." if prefix else ""
        alike = not (kind or tree._buffers or tree._frozen)
        for name in tree._fields:
            value = values[name]
            if value.__class__ not in _PLAIN:
                _gather(value, start + name, "" if alike else role_of(tree, name, kind), found)
    elif is_array(tree):
        constant = kind != "buffer" and not _is_trained(tree)
        found.append(Leaf(prefix, tree, "constant" if constant else kind or "parameter"))
    elif not is_setting(tree):
        children, names, _ = opened(tree)
        for name, child in zip(names, children, strict=True):
            _gather(child, joined(prefix, name), kind, found)


def role_of(module: Fields, name: str, kind: str) -> str:
    """What the arrays of a field are, in a module that is in a field of some kind."""
    if kind == "buffer" or name in module._buffers:
        return "buffer"
    return "frozen" if kind == "frozen" or name in module._frozen else ""


def _is_trained(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.kind in INEXACT


def fits(choice: str | Callable[..., Any], leaf: Leaf) -> bool:
    """Whether a path of an array or a part, a pattern such as `layers.*.bias`, or a function of path and value fits."""
    if callable(choice):
        return bool(choice(leaf.path, leaf.value))
    return fnmatch.fnmatchcase(leaf.path, choice) or fnmatch.fnmatchcase(leaf.path, f"{choice}.*")


def once_each(leaves: list[Leaf]) -> list[Leaf]:
    """Those with a tensor that none before them has."""
    found: dict[int, Leaf] = {}
    for leaf in leaves:
        found.setdefault(id(leaf.value), leaf)
    return list(found.values())


def with_arrays(module: T, values: Mapping[str, Any], leaves: list[Leaf] | None = None) -> T:
    """The module, or container, with other values at some paths. An array that is in several places stays one array.

    `leaves` are those of the module, for who has them.
    """
    leaves = leaves_of(module) if leaves is None else leaves
    shared = {id(leaf.value): values[leaf.path] for leaf in reversed(leaves) if leaf.path in values}
    images = iter([values.get(leaf.path, shared.get(id(leaf.value), leaf.value)) for leaf in leaves])
    return _with_images(module, lambda _: next(images))  # type: ignore[no-any-return]


def exchanged(module: T, images: Mapping[int, Any]) -> T:
    """The module, or container, with other arrays in the place of some, everywhere; `images` are by their `id`."""
    return _with_images(module, lambda x: images.get(id(x), x))  # type: ignore[no-any-return]


def parted(tree: Any, module: Any = None, kind: str = "") -> tuple[Any, Any]:
    """A tree in which all but parameters of modules are parts of the structure, and one with None in their places.

    A parameter that is a leaf of `require_grad` is its value: transforms differentiate by values.
    """
    if is_array(tree):
        if module is None:
            return tree, tree
        if kind == "" and _is_trained(tree):
            value = value_of(tree)
            return value, value
        return Constant(tree), None
    if is_setting(tree):
        return tree, tree
    if isinstance(tree, Fields):
        pairs = [parted(vars(tree)[name], tree, role_of(tree, name, kind)) for name in tree._fields]
        build: Any = functools.partial(rebuilt, type(tree), frozen=tree._frozen, training=tree._training)
    else:
        children, _, build = opened(tree)
        pairs = [parted(child, module, kind) for child in children]
    return build([held for held, _ in pairs]), build([hole for _, hole in pairs])


def value_of(x: Tensor[Any]) -> Tensor[Any]:
    """A leaf of `require_grad` as its value; what a running transform differentiates by stays tracked."""
    return inner(x) if _is_leaf(x) else x


def constant_of(x: Tensor[Any]) -> Tensor[Any]:
    """A leaf of `require_grad` as a constant on the same device."""
    return x.set_require_grad(False) if _is_leaf(x) else x


def _is_leaf(x: Tensor[Any]) -> bool:
    return is_require_grad(x) and not x._device.is_fresh


def mapped(module: M, f: Callable[[Leaf], Any]) -> M:
    """The module with f of each of its arrays."""
    images = map(f, leaves_of(module))
    return _with_images(module, lambda _: next(images))  # type: ignore[no-any-return]


def mapped_once(module: M, f: Callable[[Leaf], Any]) -> M:
    """The same, where f makes new arrays: of one that is in several places it makes one, in all of them."""
    made: dict[tuple[int, str], Any] = {}

    def once(leaf: Leaf) -> Any:
        key = id(leaf.value), leaf.kind
        if key not in made:
            made[key] = f(leaf)
        return made[key]

    return mapped(module, once)


def _with_images(tree: Any, image: Callable[[Any], Any]) -> Any:
    """The tree with the image of each array, in the order of `leaves_of`."""
    cls = tree.__class__
    if cls is Tensor:
        return image(tree)
    if cls is tuple:
        return tuple([_with_images(child, image) for child in tree])
    if cls in _PLAIN:
        return tree
    if isinstance(tree, Fields):
        held, made = vars(tree), _made(cls, tree._frozen, tree._training)
        values = vars(made)
        for name in tree._fields:
            x = held[name]
            values[name] = x if x.__class__ in _PLAIN else _with_images(x, image)
        return made
    if is_array(tree):
        return image(tree)
    children, _, build = opened(tree)
    return build([_with_images(child, image) for child in children])


def each_module(tree: Any, f: Callable[[Any, list[Any], str], Any], prefix: str = "") -> Any:
    """The tree with f of each module, its new children and its path, from the innermost on."""
    children, names, build = opened(tree)
    children = [each_module(child, f, joined(prefix, name)) for child, name in zip(children, names, strict=True)]
    return f(tree, children, prefix) if isinstance(tree, Fields) else build(children)


def opened(x: Any) -> tuple[list[Any], list[str], trees.Build]:
    """The parts of a module or container, their names, and what builds it again; nothing of what has no parts."""
    if isinstance(x, Fields):
        build = functools.partial(rebuilt, type(x), frozen=x._frozen, training=x._training)
        return [vars(x)[name] for name in x._fields], list(x._fields), build
    if x.__class__ is tuple:  # the most frequent container, and no question for optree
        return list(x), list(map(str, range(len(x)))), tuple
    found = None if is_array(x) or isinstance(x, (Constant, Setting)) else trees.opened(x)
    if found is None:
        return [], [], lambda _: x
    children, names, rebuild = found
    return children, list(map(str, names)), rebuild


def is_setting(x: Any) -> bool:
    """Whether it is neither a module, nor an array, nor a container."""
    if x is None or isinstance(x, _SETTINGS):
        return True
    if x.__class__ is tuple or isinstance(x, (Tensor, Fields)):
        return False
    return not is_array(x) and trees.opened(x) is None


def joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
