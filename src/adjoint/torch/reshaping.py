"""Another shape in a tensor's place, such as `x.t_()`, where it shares memory."""

from __future__ import annotations

from typing import Any

from adjoint.graph.nodes import var_of
from adjoint.torch.graph import move_retained
from adjoint.torch.kinds import Permute, Reshape
from adjoint.torch.memory import counter_of, forget_view, is_view, node_of_base, place_of, shape_of
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import LEVEL, Rare, Tensor, new, values


def reshaped(x: Any, function: Any, name: str) -> Any:
    """Give x the shape of `function(x)`, a view of all of it. What x shares stays shared, and its views stay theirs."""
    memory = x._rare.memory
    living = memory.living()
    views = [t for t in living if t._rare.parent is x]
    before = _view(x, function) if is_view(x) else _base(x, function, name)
    for view in views:
        view._rare.parent = before
    counter_of(x).version += 1
    for other in living:
        if other is not x and is_view(other):
            forget_view(other)
    return x


def _view(x: Any, function: Any) -> Any:
    """x as a view of what it was, which is the answer."""
    rare, before = x._rare, _like(x, x._rare)
    before._array = x._array
    with grad_mode(True):  # a view is read through its parent: it has a history where its base has one
        made = function(before)
    x._rare = its = made._rare
    x._array = made._array
    its.grad, its.post, its.retains = rare.grad, rare.post, rare.retains
    if rare.creation is not None:
        its.creation, its.quiet = rare.creation, rare.quiet
    if rare.retains:
        move_retained(x, rare.retained_at, made._array.node)
        its.retained_at, rare.retains = made._array.node, False
    its.seen = rare.memory.version + (counter_of(x) is rare.memory)
    for tensor in (before, x):
        rare.memory.add(tensor)
    return before


def _base(x: Any, function: Any, name: str) -> Any:
    """x in its new shape, with a history of its own as before; the answer is a view of it in the old one."""
    rare, place = x._rare, place_of(x)
    old = node_of_base(x)
    plain: Tensor = new(Tensor)
    plain._rare = None
    plain._dtype, plain._array = x._dtype, var_of(values(x), old)
    view = function(plain)._rare.view
    array = view.read(LEVEL, plain._array)
    if array.node is not None:
        array.node.marks = name
    rare.path, rare.place = (*rare.path, view), None
    if rare.memory.buffer is None:
        x._array = array
    else:
        rare.node = array.node
    move_retained(x, old, array.node)
    before = _like(x, Rare())
    before._rare.memory, before._rare.parent, before._rare.entangled = rare.memory, x, True
    before._rare.view = _undone(view, x, plain, place)
    rare.memory.add(before)
    return before


def _undone(view: Any, x: Any, before: Any, place: Any) -> Any:
    """What leads back from x to what it was, of which the view left out nothing."""
    if view.__class__ is Permute:
        return Permute(view.inverse)
    return Reshape(shape_of(x), shape_of(before), place[0])


def _like(x: Any, rare: Any) -> Any:
    made: Tensor = new(Tensor)
    made._dtype, made._rare = x._dtype, rare
    return made
