"""`Tensor` and `Gradients` as pytrees of JAX: their functions run under `jax.jit`, `jax.vmap`, `jax.pmap`.

Of a tensor the leaf backend's array is traced, and its backend is static. A leaf tensor is a leaf again inside of the
compiled function, and so are leaves that come out of it: new ones each time, as `with_value` makes them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend, Decorator
from adjoint.backends.jax import JAX
from adjoint.functions.conversion import refuse_graphs
from adjoint.functions.gradients import Gradients
from adjoint.graph.nodes import LeafNode, new_leaf
from adjoint.tensor import Counter, Number, Tensor, UniqueTensor, allocate

_Static = tuple[Backend, tuple[bool, ...]]  # a tensor's backend, and for each level whether it is a leaf there


@functools.cache
def register(jax: Any) -> None:
    """Tell JAX of the classes."""
    for kind in (Tensor, UniqueTensor, Number, Counter):
        jax.tree_util.register_pytree_node(kind, _flatten, _unflatten)
    jax.tree_util.register_pytree_node(Gradients, _flatten_gradients, _unflatten_gradients)


def _flatten(x: Tensor[Any]) -> tuple[tuple[Any], _Static]:
    """The leaf backend's array. Raises TrackedError for results, DeviceError for a tensor that is not on JAX."""
    device, array, leaves = x._device, x._array, []
    while isinstance(device, Decorator):
        active = device.is_active(array)
        if active and device.is_fresh:
            raise errors.TrackedError(
                f"JAX cannot take the tensor of shape {x.shape}, which a transform of {device} follows: its derivative "
                "would be lost. Put jax.jit around the transform, as in jax.jit(ad.grad(f)), and call adjoint's "
                "functions inside of it"
            )
        if active and not isinstance(getattr(array, "node", None), LeafNode):
            refuse_graphs(x, "flatten for JAX")
        leaves.append(active)
        array, device = device.unwrap(array), device.inner
    if not isinstance(device, JAX):
        raise errors.DeviceError(
            f"JAX takes tensors on JAX; the one of shape {x.shape} is on {x.device}, so move it with "
            "x.to_device(ad.JAX()), or pass x.numpy()"
        )
    return (array,), (x._device, tuple(leaves))


def _unflatten(static: _Static, children: Any) -> Tensor[Any]:
    """The tensor of anything that JAX puts in the place of the array: tracers, shapes, or nothing."""
    (array,), (device, leaves) = children, static
    out: Tensor[Any] = allocate(Tensor)
    out._device, out._dtype = device, _DTYPES.get(getattr(array, "dtype", None))  # type: ignore[assignment, arg-type]
    out._array = _rebuilt(array, device, leaves)
    return out


def _rebuilt(array: Any, device: Any, leaves: tuple[bool, ...]) -> Any:
    """The array of a backend from that of its leaf backend."""
    if not leaves:
        return array
    array = _rebuilt(array, device.inner, leaves[1:])
    if not leaves[0]:
        return device.wrap(array)
    if hasattr(array, "shape"):
        return new_leaf(array, device)
    leaf = new_leaf(_NOTHING, device)
    leaf.value = leaf.node.value = array  # type: ignore[union-attr]
    return leaf


_DTYPES = {dtype: dtype for dtype in dtypes.ALL}  # of what else stands for an array there is none
_NOTHING = np.zeros(())


def _flatten_gradients(grads: Gradients[Any]) -> tuple[list[Tensor[Any]], Any]:
    """The gradients in the order of `values`. Of the leaves only the numbers go along."""
    return grads.values(), (
        grads._level,
        tuple(grads._arrays),
        tuple(grads._elsewhere.items()),
        grads._recorded,
    )


def _unflatten_gradients(static: Any, children: Any) -> Gradients[Any]:
    level, keys, elsewhere, recorded = static
    arrays = {key: x._array if isinstance(x, Tensor) else x for key, x in zip(keys, children, strict=True)}
    return Gradients(level, arrays, {}, dict(elsewhere), recorded)
