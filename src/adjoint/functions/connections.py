"""Why gradients flow from a result to a leaf, or where their path is cut."""

from __future__ import annotations

import itertools
from typing import Any

from adjoint import errors
from adjoint.functions.gradients import as_autodiff
from adjoint.graph.locations import SourceLocation
from adjoint.graph.nodes import Node, ancestors, leaves_behind
from adjoint.tensor import Tensor


def why(x: Tensor[Any], loss: Tensor[Any]) -> str:
    """Tells whether gradients flow from `loss` to `x`: the path, or where it is cut.

    Both may have any shape. Cuts (`detach`, comparisons, integer casts) are known by name and source line only for what
    is computed while `ad.testing.source_locations()` is on.

    >>> import adjoint as ad
    >>> x = ad.tensor([1.0]).require_grad()
    >>> print(ad.why(x, (x * x).sum()))
    connected: x -> multiply -> sum
    """
    for tensor in (x, loss):
        if not isinstance(tensor, Tensor):
            raise errors.ArgumentTypeError(f"why: expected two tensors, received {type(tensor).__name__}")
    level = as_autodiff(loss, "why")
    if x.device is not level:
        return f"cut: x is on {x.device} and the loss on {level}; gradients flow on one backend"
    goal, start = x._array.node, loss._array.node
    if goal is None:
        location = getattr(x._array, "location", None)
        made = f" (it comes from {location.name!r} at {location})" if location else ""
        return f"cut: x is not tracked{made}; call require_grad() before it is used"
    path = None if start is None else _path(start, goal, cuts=False)
    if path is not None:
        return "connected: " + " -> ".join(["x", *[node.name for node in path[1:]]])
    source = start if start is not None else getattr(loss._array, "location", None)
    path = None if source is None else _path(source, goal, cuts=True)
    if path is not None:
        for step in path:
            if isinstance(step, SourceLocation):
                return f"cut at {step.name!r}, {step}: its result is a constant"
        for before, after in itertools.pairwise(path):
            if before not in (after.parents or ()):
                return f"cut between {before.name!r} and {after.name!r}"
    if any(node.parents is None for node in ancestors(start)):
        return "cut: the graph of the loss was freed by an earlier backward; call why before it, or retain_graph=True"
    hint = "" if level.records_locations() else "; compute it again under ad.testing.source_locations() to see where"
    if start is None:
        return f"cut: the loss is a constant{hint}"
    leaves = len(leaves_behind(start))
    return f"cut: the loss depends on {leaves} leaves, and x is not among what it was computed from{hint}"


def _path(start: Node | SourceLocation, goal: Node, *, cuts: bool) -> list[Any] | None:
    """The steps from the goal to the start, through what was recorded, and through cuts if asked."""
    came: dict[Any, Any] = {start: None}
    pending: list[Any] = [start]
    while pending:
        step = pending.pop()
        if step is goal:
            path = []
            while step is not None:
                if not (isinstance(step, Node) and step.result is not None):
                    path.append(step)
                step = came[step]
            return path
        sources = list(step.parents or ())
        if cuts and isinstance(step, Node) and hasattr(step, "location"):
            sources += step.location.parents
        for source in sources:
            if source not in came:
                came[source] = step
                pending.append(source)
    return None
