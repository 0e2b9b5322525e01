"""Trees of containers, as programs for PyTorch take them apart: lists, tuples, dictionaries, and what is registered.

`torch.utils._pytree` is private and used all the same. It is optree with PyTorch's habits: None is a leaf, and
dictionaries keep the order of their keys.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import optree
from optree import PyTreeSpec as TreeSpec

PyTree = Any
Context = Any
KeyPath = tuple[Any, ...]
_NAMESPACE = "adjoint.torch"
_REGISTERED_IN = (_NAMESPACE, "adjoint")  # transforms take arguments apart as adjoint's own do


def _ordered() -> Any:
    return optree.dict_insertion_ordered(True, namespace=_NAMESPACE)


def _is_leaf(is_leaf: Any) -> dict[str, Any]:
    return {"is_leaf": is_leaf, "none_is_leaf": True, "namespace": _NAMESPACE}


def tree_flatten(tree: PyTree, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and what it is made of.

    >>> from adjoint.torch.utils._pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"b": 1, "a": [2, None]})
    >>> leaves, tree_unflatten(leaves, spec)
    ([1, 2, None], {'b': 1, 'a': [2, None]})
    """
    with _ordered():
        return optree.tree_flatten(tree, **_is_leaf(is_leaf))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of these leaves."""
    return optree.tree_unflatten(treespec, leaves)


def tree_leaves(tree: PyTree, is_leaf: Any = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: PyTree, is_leaf: Any = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Any = None) -> PyTree:
    """The tree with the function's results in the place of the leaves."""
    with _ordered():
        return optree.tree_map(func, tree, *rests, **_is_leaf(is_leaf))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Any = None) -> PyTree:
    """The tree, after the function was called with its leaves."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Any = None) -> PyTree:
    """As `tree_map`, and the function is given the keys that lead to a leaf before it."""
    with _ordered():
        return optree.tree_map_with_path(func, tree, *rests, **_is_leaf(is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: Any = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Pairs of the keys that lead to a leaf, and the leaf."""
    with _ordered():
        paths, leaves, spec = optree.tree_flatten_with_path(tree, **_is_leaf(is_leaf))
    return list(zip(paths, leaves, strict=True)), spec


def map_only(kinds: Any, /) -> Callable[[Any], Any]:
    """A decorator: the function leaves what is not of these types as it is."""
    test: Any = (lambda x: isinstance(x, kinds)) if isinstance(kinds, (type, tuple)) else kinds
    return lambda func: lambda x: func(x) if test(x) else x


def tree_map_only(kinds: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Any = None) -> PyTree:
    """As `tree_map`, for the leaves of these types alone."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Any = None) -> PyTree:
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Any = None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Any = None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Any = None) -> bool:
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Any = None) -> bool:
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_is_leaf(tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether it is no container."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return optree.tree_is_leaf(tree, none_is_leaf=True, namespace=_NAMESPACE)


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **_: Any,
) -> None:
    """Have trees take objects of a class apart: `flatten_fn` gives children, and what makes the object of them."""
    for namespace in _REGISTERED_IN:
        optree.register_pytree_node(
            cls, flatten_fn, lambda rest, children: unflatten_fn(children, rest), namespace=namespace
        )


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    for namespace in _REGISTERED_IN:
        with contextlib.suppress(ValueError):
            optree.unregister_pytree_node(cls, namespace=namespace)
