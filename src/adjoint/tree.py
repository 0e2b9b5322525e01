"""Pytrees: nested tuples, lists, dictionaries, named tuples, dataclasses and registered types, flattened by optree.

What is not one of them is a leaf: a tensor, an array, a number. None is an empty tree. Fields of dataclasses with
`metadata={"static": True}` are no children, but belong to the structure. Other classes are registered with optree:

>>> import optree
>>> class Pair:
...     def __init__(self, x, y):
...         self.x, self.y = x, y
>>> parts, build = lambda pair: ((pair.x, pair.y), None), lambda _, children: Pair(*children)
>>> _ = optree.register_pytree_node(Pair, parts, build, namespace="adjoint")
>>> leaves({"a": Pair(1.0, 2.0), "b": 3.0})
[1.0, 2.0, 3.0]
"""

from __future__ import annotations

import builtins
import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.locks import lock
from adjoint.renamed import refusing

__all__ = ["flatten", "leaves", "map", "paths", "structure", "unflatten"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__


_NAMESPACE = "adjoint"
_registering = lock()
ATOMS: set[type] = {bool, int, float, complex, np.ndarray, np.float32, np.float64}  # leaves, and so are tensors

Build = Callable[[Sequence[Any]], Any]
Parts = tuple[Sequence[Any], Any, Sequence[str]]  # the parts of a container, what else it is made of, and their names


class Branch:
    """What says itself which parts it has, and how another is made of other parts."""

    def _tree_parts(self) -> Parts:
        """The parts as `held` gives them, its class and what else it is made of, and the parts' names: attributes."""
        raise NotImplementedError

    @classmethod
    def _tree_of(cls, known: Any, parts: Sequence[Any]) -> Any:
        """One of these parts, and of what else the other was made of."""
        raise NotImplementedError


class Held:
    """Stands for a branch or a dataclass in what optree flattens: a class that optree knows, it keeps for ever."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, dictionaries in the order of their keys, and its structure.

    >>> import adjoint as ad
    >>> leaves, structure = ad.tree.flatten({"w": 1.0, "b": (2.0, None)})
    >>> leaves
    [2.0, 1.0]
    >>> ad.tree.unflatten(structure, [20.0, 10.0])
    {'w': 10.0, 'b': (20.0, None)}
    """
    cls = tree.__class__
    if cls in ATOMS:
        return [tree], _leaf()
    if (cls is tuple or cls is list) and are_leaves(tree):
        return list(tree), row(cls, len(tree))
    optree = _optree()
    first = Held(tree) if isinstance(tree, Branch) or id(cls) in _FIELDS else tree
    try:
        leaves, structure = optree.tree_flatten(first, namespace=_NAMESPACE)
        for x in leaves:
            if x.__class__ not in ATOMS and _is_branch(x):
                return optree.tree_flatten(held(tree), namespace=_NAMESPACE)  # type: ignore[no-any-return]
    except RecursionError:
        raise errors.ArgumentError("flatten: the tree contains itself, or is nested too deep") from None
    return leaves, structure


def are_leaves(parts: Sequence[Any]) -> bool:
    """Whether all parts of a tree are leaves of classes that are known to be no containers."""
    return ATOMS.issuperset(builtins.map(type, parts))


@functools.cache
def _leaf() -> Any:
    """The structure of a leaf."""
    return _optree().tree_structure(0, namespace=_NAMESPACE)


@functools.lru_cache(256)
def row(cls: type, length: int) -> Any:
    """The structure of a tuple or a list of leaves."""
    return _optree().tree_structure(cls([0] * length), namespace=_NAMESPACE)


@functools.cache
def _optree() -> Any:
    """The library, once it knows of `Held`; imported here, so that `import adjoint` need not wait for it."""
    import optree as library

    optree: Any = library

    def parts(holder: Any) -> Any:
        x = holder.it
        if isinstance(x, Branch):
            return x._tree_parts()
        parts, known, names = _opened(x)
        return [part if part.__class__ in ATOMS else held(part) for part in parts], known, names

    with _registering:
        if optree.tree_is_leaf(Held(None), namespace=_NAMESPACE):  # else another thread was faster
            entry = optree.GetAttrEntry
            optree.register_pytree_node(Held, parts, _built, path_entry_type=entry, namespace=_NAMESPACE)
    return optree


def _is_branch(x: Any) -> bool:
    """Whether optree is to see a `Held` in its place: of a leaf of optree's."""
    return isinstance(x, Branch) or hasattr(x.__class__, "__dataclass_fields__")


def held(tree: Any) -> Any:
    """The tree with a `Held` in the place of each branch, as optree is to see it."""
    cls = tree.__class__
    if cls in ATOMS or cls in _KEPT or tree is None:
        return tree
    if isinstance(tree, Branch) or id(cls) in _FIELDS:
        return Held(tree)
    if cls is tuple or cls is list:
        return cls(builtins.map(held, tree))
    if cls is dict:
        return {key: part if part.__class__ in ATOMS else held(part) for key, part in tree.items()}
    optree = _optree()
    if optree.tree_is_leaf(tree, namespace=_NAMESPACE):
        return Held(tree) if _is_branch(tree) else tree
    return optree.tree_map(held, tree, is_leaf=lambda x: x.__class__ in _KEPT, namespace=_NAMESPACE)


def _opened(x: Any) -> Parts:
    """Of a branch or a dataclass."""
    if isinstance(x, Branch):
        return x._tree_parts()
    names, fixed, _ = _fields(x.__class__)
    known = tuple([getattr(x, name) for name in fixed]) if fixed else ()  # parts of the structure
    return [getattr(x, name) for name in names], (x.__class__, known, kind(known) if fixed else ()), names


def _built(known: Any, parts: Sequence[Any]) -> Any:
    cls = known[0]
    if hasattr(cls, "_tree_of"):
        return cls._tree_of(known, parts)
    names, fixed, _ = _fields(cls)
    return cls(**dict(zip(names, parts, strict=True)), **dict(zip(fixed, known[1], strict=True)))


def _fields(cls: type) -> tuple[tuple[str, ...], tuple[str, ...], Any]:
    """The names of the fields of a dataclass that are parts of a tree, those of static ones, and what forgets them."""
    found = _FIELDS.get(id(cls))
    if found is None:
        import dataclasses

        fields = [f for f in dataclasses.fields(cls) if f.init]
        static = [bool(f.metadata.get("static")) for f in fields]
        names = tuple([f.name for f, fixed in zip(fields, static, strict=True) if not fixed])
        known = tuple([f.name for f, fixed in zip(fields, static, strict=True) if fixed])
        key = id(cls)
        found = _FIELDS[key] = names, known, weakref.ref(cls, lambda _: _FIELDS.pop(key, None))
    return found


_FIELDS: dict[
    int, tuple[tuple[str, ...], tuple[str, ...], Any]
] = {}  # ... by the `id` of the class, while there is one
_KEPT: set[type] = {Held}  # what `held` leaves as it is: what it made, and what is registered by `register`


def kind(x: Any) -> Any:
    """What tells numbers apart that are equal, 1, 1.0 and True, 0.0 and -0.0: structures hold it beside the number."""
    cls = x.__class__
    if cls is float or cls is complex:
        return repr(x)
    if cls is tuple:
        return tuple([kind(part) for part in x])
    return cls if cls is int or cls is bool else None


def register(cls: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    """Make a class a container for good: `flatten(x)` gives its parts and what else it is made of, for `unflatten`."""
    _optree().register_pytree_node(cls, flatten, lambda known, parts: unflatten(parts, known), namespace=_NAMESPACE)
    _KEPT.add(cls)


def opened(x: Any) -> tuple[list[Any], list[Any], Build] | None:
    """The parts of a container, their names or places, and what makes one of other parts; None of a leaf."""
    if x is None:
        return None
    optree = _optree()
    if optree.tree_is_leaf(x, namespace=_NAMESPACE):
        if not _is_branch(x):
            return None
        parts, known, names = _opened(x)
        return list(parts), list(names), functools.partial(_built, known)
    parts, known, names, build = optree.tree_flatten_one_level(x, namespace=_NAMESPACE)
    names = getattr(x, "_fields", names) if isinstance(x, tuple) else names
    return list(parts), list(names), lambda parts: build(known, parts)


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with these leaves.

    Raises ArgumentError for another number of leaves, ArgumentTypeError for what is no structure.
    """
    try:
        if structure is _leaf() and len(leaves) == 1:
            return leaves[0]
        if len(leaves) != structure.num_leaves:
            raise errors.ArgumentError(
                f"unflatten: the structure {errors.said(structure)} has {structure.num_leaves} leaves, received "
                f"{len(leaves)}"
            )
    except (AttributeError, TypeError):
        raise errors.ArgumentTypeError(
            f"unflatten: expected a structure, as ad.tree.structure gives, and a list of leaves; received "
            f"{errors.shown(structure)} and {errors.shown(leaves)}"
        ) from None
    for cls in (tuple, list):
        if structure is row(cls, len(leaves)):
            return cls(leaves)
    return structure.unflatten(leaves)


def builder(structure: Any) -> Build:
    """`unflatten` of this structure, for who calls it often; there are as many leaves as it has."""
    if structure is _leaf():
        return operator.itemgetter(0)
    for cls in (tuple, list):
        if structure is row(cls, structure.num_leaves):
            return cls
    return structure.unflatten  # type: ignore[no-any-return]


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order.

    >>> import adjoint as ad
    >>> ad.tree.leaves([1.0, {"w": 2.0}, None])
    [1.0, 2.0]
    """
    return flatten(tree)[0]


def structure(tree: Any) -> Any:
    """The structure of a tree: what is left without the leaves. Equal structures go together.

    >>> import adjoint as ad
    >>> ad.tree.structure([1.0, (2.0,)]) == ad.tree.structure(["a", ("b",)])
    True
    """
    return flatten(tree)[1]


def paths(structure: Any) -> list[str]:
    """Where each leaf of a structure stands, as one would write it; the root is an empty string.

    >>> import adjoint as ad
    >>> ad.tree.paths(ad.tree.structure([1.0, {"w": 2.0}]))
    ['[0]', "[1]['w']"]
    """
    try:
        accessors = structure.accessors()
    except AttributeError:
        raise errors.ArgumentTypeError(
            f"paths: expected a structure, as ad.tree.structure gives, received {errors.shown(structure)}"
        ) from None
    return [accessor.codify("") for accessor in accessors]


def difference(found: Any, wanted: Any) -> str:
    """Where a structure is not the wanted one: at the first leaf that one of the two does not have.

    >>> difference(flatten({"v": 1})[1], flatten({"w": 1})[1])
    "nothing is at ['w']"
    """
    mine, theirs = paths(found), paths(wanted)
    for path in theirs:
        if path not in mine:
            return f"nothing is at {path}" if path else "it is no single leaf"
    return next((f"nothing belongs at {path or 'the top'}" for path in mine if path not in theirs), "containers differ")


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The tree with `f` applied to each leaf, and to the leaves of further trees of the same structure.

    Raises ArgumentError for a tree of another structure.

    >>> import adjoint as ad
    >>> ad.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": (2.0,)}, {"w": 1.0, "b": (4.0,)})
    {'w': 0.5, 'b': (0.0,)}
    """
    if not callable(f):
        raise errors.ArgumentTypeError(f"map: expected a function, received {errors.shown(f)}")
    leaves, structure = flatten(tree)
    others = [flatten(other) for other in rest]
    for _, found in others:
        if found != structure:
            raise errors.ArgumentError(
                f"map: trees of structures {errors.said(structure)} and {errors.said(found)} do not go together"
            )
    return unflatten(structure, [f(*group) for group in zip(leaves, *[o[0] for o in others], strict=True)])


def spread(prefix: Any, structure: Any, what: str) -> list[Any]:
    """A value per leaf of a structure, from one value for all, or a tree that says it for branches.

    None stands for itself. Raises ArgumentError where the prefix does not fit.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * structure.num_leaves
    if prefix.__class__ is tuple and structure.type is tuple and len(prefix) == structure.num_children:
        parts = zip(
            prefix, structure.children(), strict=True
        )  # no type of a user's is made of other things than arrays
        return [value for part, child in parts for value in spread(part, child, what)]
    tree = structure.unflatten(range(structure.num_leaves))
    try:
        return list(
            _optree().broadcast_prefix(
                held(prefix),
                held(tree),
                is_leaf=lambda x: x is None,
                none_is_leaf=False,
                namespace=_NAMESPACE,
            )
        )
    except (ValueError, RecursionError) as error:
        raise errors.ArgumentError(
            f"{what} {errors.shown(prefix)} does not fit the structure {errors.said(structure)}: {errors.said(error)}"
        ) from None
