"""`torch.utils._pytree` takes trees apart as PyTorch's does."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

ours: Any = importlib.import_module("adjoint.torch.utils._pytree")  # a private module, of PyTorch
theirs: Any = pytest.importorskip("torch.utils._pytree")

Pair = namedtuple("Pair", "a b")
TREES = [
    1, None, [], (), {}, [1, (2, None)], {"b": 1, "a": [2, 3]}, Pair(1, [2]), OrderedDict(b=1, a=2),
    defaultdict(list, {"b": [1], "a": [2]}), deque([1, 2]), {1: "x", "y": {2}}, (None, [None]),
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees(tree: Any) -> None:
    leaves, spec = ours.tree_flatten(tree)
    assert leaves == theirs.tree_flatten(tree)[0]
    assert ours.tree_unflatten(leaves, spec) == tree
    assert ours.tree_map(str, tree) == theirs.tree_map(str, tree)
    assert ours.tree_is_leaf(tree) == theirs.tree_is_leaf(tree)
    assert spec.num_leaves == len(leaves)
    assert spec == ours.tree_structure(tree)
    stop = lambda x: isinstance(x, list)
    assert ours.tree_leaves(tree, is_leaf=stop) == theirs.tree_leaves(tree, is_leaf=stop)
    assert ours.tree_map_only(int, lambda x: x + 1, tree) == theirs.tree_map_only(int, lambda x: x + 1, tree)
    assert ours.tree_any_only(int, lambda x: x > 2, tree) == theirs.tree_any_only(int, lambda x: x > 2, tree)
    assert ours.tree_all(lambda x: x is not None, tree) == theirs.tree_all(lambda x: x is not None, tree)
    paths = [len(path) for path, _ in ours.tree_flatten_with_path(tree)[0]]
    assert paths == [len(path) for path, _ in theirs.tree_flatten_with_path(tree)[0]]


def test_classes_of_ones_own() -> None:
    class Box:
        def __init__(self, x: Any, name: str) -> None:
            self.x, self.name = x, name

    ours.register_pytree_node(Box, lambda b: ([b.x], b.name), lambda children, name: Box(*children, name))
    try:
        found = ours.tree_map(lambda x: x + 1, [Box(1, "n"), 2])
        assert (found[0].x, found[0].name, found[1]) == (2, "n", 3)
    finally:
        ours._deregister_pytree_node(Box)
    assert ours.tree_is_leaf(Box(1, "n"))
