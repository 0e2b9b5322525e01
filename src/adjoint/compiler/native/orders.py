"""Which results are to lie in memory as a transposed operand does, so that loops go through both in one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.elements import constant
from adjoint.compiler.native.kernels import REDUCTIONS

Order = tuple[int, ...]  # the axes of a value as they follow each other in memory


def following(graph: Graph, supported: Callable[[Equation], bool]) -> set[Value]:
    """The results of elementwise equations that lie as their operands do, which all lie in one other order.

    Only those of which no reader wants another order: else they would be copied, or read once more.
    """
    if not any(e.name == "permute_dims" for e in graph.equations):
        return set()
    orders: dict[Value, Order] = {}
    computed: set[Value] = set()
    for e in graph.equations:
        if e.name != "permute_dims" and not supported(e):
            continue
        out: Any = e.results[0]
        order = _order(e, out, orders)
        if order is not None and order != tuple(range(len(order))) and 1 not in out.shape:
            orders[out] = order
            if e.name != "permute_dims":
                computed.add(out)
    refused: set[Value] = set()
    for e in reversed(graph.equations):
        for x in e.operands:
            if x.__class__ is Value and x in orders and not _takes(e, orders[x], orders, refused):
                refused.add(x)
    return computed - refused


def _order(e: Equation, out: Value, orders: dict[Value, Order]) -> Order | None:
    """How the result of a transpose lies, and how that of an elementwise equation may."""
    if e.name == "permute_dims":
        axes = e.parameters["axes"]
        return tuple([axes.index(i) for i in orders.get(e.operands[0], range(len(axes)))])
    whole = [x for x in e.operands if x.__class__ is Value and constant(x) is None and like(x, out)]
    found = {orders.get(x) for x in whole}
    return found.pop() if len(found) == 1 else None


def like(x: Value, y: Value) -> bool:
    """Whether these have one shape. Axes are counted first: tuples of other lengths would compare sizes, which asks."""
    return len(x.shape) == len(y.shape) and x.shape == y.shape


def _takes(e: Equation, order: Order, orders: dict[Value, Order], refused: set[Value]) -> bool:
    """Whether an equation reads a value as well in this order."""
    if not e.results:  # a check, or something said
        return False
    out: Any = e.results[0]
    if e.name in REDUCTIONS:
        axis = {i % len(order) for i in e.parameters["axis"]}
        left = [i for i in order if i not in axis]
        return left == sorted(left)
    if e.name == "matmul":
        return all(len(x.shape) == 2 for x in e.operands)
    if e.name == "permute_dims" and out not in orders:
        return True  # which lies as its axes follow
    return out in orders and out not in refused and (e.name == "permute_dims" or orders[out] == order)
