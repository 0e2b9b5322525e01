"""`backward` and `grad`: what users give and ask for, around a pass over the graph (`walk.py`)."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from adjoint.decorators.batched import Batch
from adjoint.graph.nodes import Node, Var, var_of
from adjoint.torch import devices, dtypes, graph, overriding, tangents
from adjoint.torch.devices import where_of
from adjoint.torch.dtypes import Size
from adjoint.torch.graph import Accumulate
from adjoint.torch.lifted import gradients, in_transform, primal_of
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    Tensor,
    beside,
    is_lifted,
    leaf_of,
    level_of,
    of,
    where_is,
)
from adjoint.torch.walk import Pass


class GradientEdge(NamedTuple):
    """A node, and which of its results is meant."""

    node: Any
    output_nr: int = 0
    ownership_token: Any = None


def _several(x: Any) -> tuple[Any, ...]:
    if isinstance(x, (dict, int, float, str)):
        raise TypeError(f"expected Tensors or GradientEdges, but got {type(x).__name__}")
    return (x,) if x is None or isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def _roots(outputs: Any, grads: Any, walk: Pass) -> tuple[dict[Node, Any], int]:
    """The cotangents to start with, and how many there are of each in a batch."""
    given = (None,) * len(outputs) if grads is None else _several(grads)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    roots: dict[Node, Any] = {}
    size = 0
    if walk.batched:
        _check_batch(given)
    for i, (out, g) in enumerate(zip(outputs, given, strict=True)):
        array = _array_of(out)
        if array.node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        leaf = leaf_of(array.value)
        dtype = leaf.dtype_of(array.value)
        start = _implicit(array, dtype) if g is None else _explicit(array, dtype, out, g, i, walk)
        if walk.batched:
            size = start.shape[0]
            start = Batch(start, True)
        if dtype.kind == "c":
            start = walk.of_array(start).conj(start)
        elif walk.create and g is None:
            start = var_of(start, None)
        known = roots.get(array.node)
        roots[array.node] = start if known is None else walk.of_array(start).add(known, start)
    return roots, size


def _check_batch(given: Any) -> None:
    """Raise the errors of `vmap` for gradients that are no batch, or batches of several sizes."""
    sizes = set()
    for g in given:
        if isinstance(g, Tensor):
            if not g.ndim or not g.shape[0]:
                raise IndexError("is_grads_batched=True: each grad_output needs a first axis of at least one gradient")
            sizes.add(g.shape[0])
    if len(sizes) > 1:
        raise ValueError(f"is_grads_batched=True: expected batches of one size, got sizes {sorted(sizes)}")


def _array_of(out: Any) -> Any:
    if isinstance(out, GradientEdge):
        node = out.node._node
        level = node.level if isinstance(node, Accumulate) else node.vjp.level
        return var_of(level.leaf.full(shape=tuple(node.shape), value=0, dtype=np.dtype("float32")), node)
    if not isinstance(out, Tensor):
        raise TypeError(f"expected Tensor, but got {type(out).__name__}")
    return primal_of(out) if is_lifted(out) else out._array


def _implicit(array: Var, dtype: Any) -> Any:
    if math.prod(array.shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind != "f":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {dtypes.of_numpy(dtype)}"
        )
    if array.value.__class__ is np.ndarray:
        return np.ones(array.shape, dtype)
    return leaf_of(array.value).full(shape=tuple(array.shape), value=1, dtype=dtype)


def _shape_of_output(out: Any) -> Any:
    return Size(out.node._node.shape) if isinstance(out, GradientEdge) else out.shape


def _explicit(array: Var, dtype: Any, out: Any, g: Any, i: int, walk: Pass) -> Any:
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    shape = tuple(g.shape)[1:] if walk.batched else tuple(g.shape)
    if shape != tuple(array.shape):
        if not walk.batched:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{_shape_of_output(out)}."
            )
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
            "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
            f"mismatch was detected: grad_output[{i}] has a shape of {Size(shape)} and output[{i}] has a shape of "
            f"{_shape_of_output(out)}. If you only want some tensors in `grad_output` to be considered batched, "
            "consider using vmap."
        )
    if (g._dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {dtypes.of_numpy(dtype)}."
        )
    where = where_of(array.value)
    if where_is(g) is not where:
        raise devices.different(where, where_is(g))
    start = g._array if walk.create else g._array.value
    return start if g._dtype is dtype else (level_of(g) if walk.create else leaf_of(start)).astype(start, dtype=dtype)


def _node_of(x: Any) -> Any:
    node = x.node._node if isinstance(x, GradientEdge) else _array_of(x).node
    if node is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return node


def _run(
    outputs: Any, grads: Any, keep: bool, create: bool, wanted: Any, accumulating: bool, batched: bool = False
) -> Any:
    walk = Pass(keep, create, batched)
    roots, size = _roots(outputs, grads, walk)
    return walk, walk.run(roots, wanted, accumulating), size


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to `.grad` of the leaves that they were computed from, or of `inputs`.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward([(x * x).sum(), x.sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    outputs = _several(tensors)
    if modes.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use torch.func.grad or "
            "torch.func.vjp instead or call backward() outside of functorch transforms."
        )
    if inputs is not None:
        inputs = tuple(inputs.values()) if isinstance(inputs, dict) else _several(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    keep = create_graph if retain_graph is None else bool(retain_graph)
    grads = grad_tensors if grad_variables is None else grad_variables
    if inputs is None:
        _run(outputs, grads, keep, create_graph, None, True)
        return
    nodes = {_node_of(x) for x in inputs}
    for x in inputs:
        if isinstance(x, Tensor):
            x.retain_grad()  # which is nothing of leaves
    _run(outputs, grads, keep, create_graph, nodes, True)


def called(node: Any, grads: tuple[Any, ...]) -> Any:
    """The gradients of a node's operands for those of its results, which no hook sees; a leaf takes its own."""
    several = bool(node.shape) and not isinstance(node.shape[0], int)
    count = len(node.shape) if several else 1
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead: one for each result")
    for g in grads:
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"expected Tensor or None, but got {type(g).__name__}")
    for g, shape in zip(grads, node.shape if several else (node.shape,), strict=True):
        if g is not None and shape is not None and tuple(g.shape) != tuple(shape):
            raise RuntimeError(f"expected a gradient of shape {list(shape)}, received {list(g.shape)}")
    if all([g is None for g in grads]):
        nothing = graph.with_constants(node, [None for _ in graph.operands_of(node)], None)
        return nothing[0] if len(nothing) == 1 else tuple(nothing)
    walk = Pass(True, modes.enabled)
    if node.__class__ is Accumulate:
        walk.leaf(node, None, walk.given(grads[0]))
        return ()
    found = walk.alone(node, [None if g is None else walk.given(g) for g in grads] if several else walk.given(grads[0]))
    shown = [None if c is None else walk.shown(c) for c in found]
    shown = graph.with_constants(node, shown, None)
    return shown[0] if len(shown) == 1 else tuple(shown)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of outputs with respect to inputs, without adding to `.grad`: a tuple, or of a dict a dict.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (slope,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> torch.autograd.grad(slope, x)
    (tensor(18.),)
    """
    if overriding.used:
        asked = {"grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph}
        asked |= {"allow_unused": allow_unused, "is_grads_batched": is_grads_batched}
        asked |= {"materialize_grads": materialize_grads}
        if (answer := overriding.overridden(grad, (outputs, inputs), asked)) is not NotImplemented:
            return answer
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2
        )
    if isinstance(inputs, dict):
        each = grad(
            outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, each, strict=True))
    outs, ins = _several(outputs), _several(inputs)
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if not is_grads_batched and any([in_transform(x) for x in outs if isinstance(x, Tensor)]):
        given = [None] * len(outs) if grad_outputs is None else _several(grad_outputs)
        return tuple(
            [
                _unused(x, i, create_graph, allow_unused, materialize_grads) if g is None else g
                for i, (x, g) in enumerate(zip(ins, gradients(outs, ins, given, create_graph), strict=True))
            ]
        )
    nodes = [_node_of(x) for x in ins]
    moved = None
    if modes.duals is not None and not is_grads_batched:
        given = (None,) * len(outs) if grad_outputs is None else _several(grad_outputs)
        pull = lambda ys, cs: grad(ys, ins, cs, True, create_graph, allow_unused=True)
        moved = tangents.of_gradients(outs, given, nodes, pull)
        grad_outputs = [of(primal_of(g)) if isinstance(g, Tensor) and is_lifted(g) else g for g in given]
    walk, answers, size = _run(outs, grad_outputs, keep, create_graph, set(nodes), False, is_grads_batched)
    found: list[Any] = []
    for i, (x, node) in enumerate(zip(ins, nodes, strict=True)):
        g = answers.get(node)
        if g is None:
            found.append(_unused(x, i, create_graph, allow_unused, materialize_grads))
        elif is_grads_batched:
            found.append(_of_batch(walk, g, size))
        else:
            found.append(walk.shown(g))
    if moved is not None:
        return tuple([tangents.with_tangent(g, tangent) for g, tangent in zip(found, moved, strict=True)])
    return tuple(found)


def _unused(x: Any, i: int, create: bool, allowed: bool | None, materialize: bool) -> Any:
    """The gradient by what the outputs do not depend on."""
    if not (allowed or materialize):
        raise RuntimeError(
            f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if materialize and isinstance(x, GradientEdge):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    zeros = beside(x, np.zeros(x.shape, x._dtype)) if materialize else None
    return zeros.requires_grad_() if zeros is not None and create and not in_transform(x) else zeros


def _of_batch(walk: Pass, g: Any, size: int) -> Tensor:
    """All gradients of a batch along a first axis; the same one for all is repeated."""
    below = walk.of_array(g)
    B = below.inner
    if below.dtype_of(g).kind == "c":
        g = below.conj(g)
    value = g.value
    if not g.batched:
        value = B.broadcast_to(B.expand_dims(value, axis=(0,)), shape=(size, *value.shape))
    return of(value if walk.create else var_of(value, None))
