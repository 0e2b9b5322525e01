"""`torch.autograd.graph`: nodes, edges, hooks for what is saved and for several gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from adjoint.graph.nodes import Result
from adjoint.locks import lock
from adjoint.torch import graph, saving
from adjoint.torch.engine import GradientEdge as GradientEdge
from adjoint.torch.grad_fn import GradFn, grad_fn
from adjoint.torch.graph import Handle
from adjoint.torch.missing import missing as _missing
from adjoint.torch.state import modes, no_saved_hooks, running
from adjoint.torch.tensor import Tensor
from adjoint.torch.writes import bump_version

Node = GradFn


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The node and the number of the result whose gradient is that of the tensor.

    >>> import adjoint.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x * 2)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor._array.node
    return GradientEdge(grad_fn(node), node.result or 0 if isinstance(node, Result) else 0)


def increment_version(tensor: Any) -> None:
    """Count a write that was done by other means, to one tensor or several."""
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(x)


class saved_tensors_hooks:
    """A block in which `pack_hook(tensor)` says what graphs keep of a tensor; `unpack_hook` makes a tensor of that.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
    ...     y = x.exp()
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    pack_hook: Any
    unpack_hook: Any

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        saving.push(self, saving.Hooks(self.pack_hook, self.unpack_hook))

    def __exit__(self, *_: object) -> None:
        saving.pop(self)


class save_on_cpu(saved_tensors_hooks):
    """A block in which graphs keep tensors in the memory of the CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which hooks for saved tensors are an error, with this message."""
    if modes.saved_hooks:
        raise RuntimeError(error_message)
    holder = lambda: None  # where an interrupt comes before the end, the block ends with it
    block = no_saved_hooks.enter(holder, error_message)
    try:
        yield
    finally:
        no_saved_hooks.end(block)


class _AllowMutation:
    def clear(self) -> None:
        """There are no copies to drop: values are never written to."""


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """A block in which what a graph saved may be overwritten: gradients are those of what was saved."""
    if graph.writes_allowed[0]:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    graph.writes_allowed[0] = True
    try:
        yield _AllowMutation()
    finally:
        graph.writes_allowed[0] = False


class _Handles:
    def __init__(self, handles: tuple[Handle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
    """Call `fn` with the gradients of tensors once a backward pass has all that it will have, or with the first.

    >>> import adjoint.torch as torch
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * 2).sum().backward()
    [tensor([2., 2.]), None]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    given = tuple(tensors)
    nodes = [x._array.node for x in given]
    own = lock()
    calls: dict[int, Any] = {}

    def every(i: int, g: Tensor) -> None:
        walk = running()
        with own:
            if id(walk) not in calls:
                calls[id(walk)] = [sum([walk.reaches(node) for node in nodes]), [None] * len(given)]
                walk.callbacks.append(lambda: calls.pop(id(walk), None))
            found = calls[id(walk)]
            found[0] -= 1
            found[1][i] = g
        if found[0] == 0:
            fn(found[1])

    def first(g: Tensor) -> None:
        walk = running()
        with own:
            if id(walk) in calls:
                return
            calls[id(walk)] = True
            walk.callbacks.append(lambda: calls.pop(id(walk), None))
        fn(g)

    if mode == "any":
        return _Handles(tuple([x.register_hook(first) for x in given]))
    return _Handles(tuple([x.register_hook(lambda g, i=i: every(i, g)) for i, x in enumerate(given)]))


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.autograd.graph")
