"""Forward mode over reverse mode: the tangents of the gradients of dual numbers.

For an output y with the tangent ẏ and a cotangent c the gradient is g = c dy/dx. Its tangent is that of c, times dy/dx,
and c times the tangent of dy/dx, which is the gradient of c ẏ: derivatives may change places. ẏ was recorded as y was.
"""

from __future__ import annotations

from typing import Any

from adjoint.decorators.tangent import Dual
from adjoint.tensor import wrap
from adjoint.torch import graph
from adjoint.torch.lifted import lifted
from adjoint.torch.state import modes
from adjoint.torch.tensor import Tensor, level_of

_DEPENDS = (
    "adjoint.torch: the tangent that make_dual got depends on an input of autograd.grad; its gradient would be counted "
    "in. Pass tangent.detach()"
)
_HOOKED = (
    "adjoint.torch: autograd.grad of dual numbers is not there where tensors or nodes have hooks, which would not see "
    "tangents; remove them, or write torch.func.jvp of torch.func.grad"
)


def of_gradients(outputs: Any, cotangents: Any, wanted: list[Any], pull: Any) -> Any:
    """The tangents of the gradients by `pull(outputs, cotangents)`, None where there are none.

    `wanted` are the nodes of the inputs.
    """
    from adjoint.torch.autograd.forward_ad import unpack_dual

    outs, weights = [], []
    for out, g in zip(outputs, cotangents, strict=True):
        if not isinstance(out, Tensor):
            continue
        y = unpack_dual(out)
        c = unpack_dual(g) if isinstance(g, Tensor) else None
        if y.tangent is not None and y.tangent.requires_grad:
            outs.append(y.tangent)
            weights.append(g if c is None else c.primal)
        if c is not None and c.tangent is not None:
            outs.append(y.primal)
            weights.append(c.tangent)
    if not outs:
        return None
    if any([node in wanted for node in _before(modes.duals.given)]):
        raise NotImplementedError(_DEPENDS)
    if any([graph.is_hooked(node) for node in _before([x._array.node for x in outs])]):
        raise NotImplementedError(_HOOKED)
    return pull(outs, weights)


def _before(nodes: list[Any]) -> set[Any]:
    """These nodes, and all that led to them."""
    found: set[Any] = set()
    pending = [node for node in nodes if node is not None]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(node.edges())
    return found


def with_tangent(g: Any, tangent: Any) -> Any:
    """A gradient as the dual number that it is."""
    if g is None or tangent is None:
        return g
    return lifted(wrap(Dual(g._array, tangent._array), modes.duals.on(level_of(g)), g._dtype))
