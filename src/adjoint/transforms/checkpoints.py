"""Recomputation: less memory between forward and backward, for more work.

A checkpointed function runs on views of the levels that its arguments live on. A view records into the
same graph, but keeps how to make values again where the policy does not keep them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import current_level, running_on
from adjoint.functions.arguments import as_integer, check_tensor, is_integer
from adjoint.graph.remat import MATMULS, NOTHING, Budget, Policy
from adjoint.operands import common_backend, lift_to
from adjoint.tensor import Tensor, refuse_ended, wrap
from adjoint.transforms.arguments import Function, named

F = TypeVar("F", bound=Function)


def checkpoint(f: F, policy: str | int | Sequence[str] = "nothing") -> F:
    """f, with its intermediate results made again in backward instead of kept.

    Parameters
    ----------
    f
        A function of pytrees of tensors. What it closes over gets its derivatives too; random numbers are the same
        when they are made again.
    policy
        What is kept of f's results for backward: "nothing", "matmuls" (products, convolutions and linear algebra),
        "everything", a sequence of names given with `checkpoint_name`, or a number of bytes to fill with what is
        not cheap to make again.

    Raises
    ------
    ArgumentError
        An unknown policy.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.grad(ad.checkpoint(lambda x: ad.sin(ad.sin(x))))(0.5)
    np.float64(0.7786...)
    """
    make = _policy(policy)

    @named("checkpoint", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = trees.flatten((args, kwargs))
        device = _device([x for x in leaves if isinstance(x, Tensor)])
        chosen = make()
        view = None if device is None or chosen is None else view_of(device, chosen)
        if view is None or device is None:
            return f(*args, **kwargs)
        args, kwargs = trees.unflatten(structure, [_on(x, view) for x in leaves])
        with running_on(view):
            out = f(*args, **kwargs)
        return trees.map(lambda x: _back(x, view, device), out)

    return run  # type: ignore[return-value]


def checkpoint_name(x: Tensor[Any], name: str) -> Tensor[Any]:
    """x, of any shape, under a name that a policy of `checkpoint` can ask to keep.

    >>> import adjoint as ad
    >>> f = ad.checkpoint(lambda x: ad.sin(ad.checkpoint_name(ad.exp(x), "power")), policy=["power"])
    >>> ad.grad(f)(0.0)
    np.float64(0.5403...)
    """
    check_tensor("checkpoint_name", x)
    if not isinstance(name, str):
        raise errors.ArgumentTypeError(f"checkpoint_name: a name is a string, received {errors.shown(name)}")
    level, array = x.device, x._array
    while isinstance(level, Decorator):
        policy = level.checkpointing if isinstance(level, Autodiff) else None
        remat = getattr(array, "remat", None)
        if isinstance(policy, Policy) and name in policy.names and remat is not None:
            remat.pinned = (array.value,)
        level, array = level.inner, level.unwrap(array)
    return x


_BY_NAME: dict[str, Policy | None] = {"everything": None, "nothing": NOTHING, "matmuls": MATMULS}


def _policy(policy: Any) -> Any:
    """A maker of the policy that a user means; None keeps everything."""
    if isinstance(policy, str) and policy in _BY_NAME:
        return lambda: _BY_NAME[policy]
    if is_integer(policy) and policy >= 0:
        return lambda: Budget(as_integer(policy, "checkpoint", "policy"))  # each call has the budget anew
    if isinstance(policy, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in policy):
        keeping = _keeping(tuple(sorted(policy)))
        return lambda: keeping
    raise errors.ArgumentError(
        "checkpoint: a policy is 'nothing', 'matmuls', 'everything', a sequence of names or a number of bytes; "
        f"received {errors.shown(policy)}"
    )


@functools.lru_cache(64)  # levels of one policy share what they know of primitives
def _keeping(names: tuple[str, ...]) -> Policy:
    return Policy(f"names={','.join(names)}", names=names)


def _device(tensors: Sequence[Tensor[Any]]) -> Backend | None:
    """Where the function will run: the highest backend of its arguments and the active level."""
    level = current_level()
    if not tensors:
        return level
    for x in tensors:
        refuse_ended(x, "checkpoint")
    device = common_backend(*tensors)
    return level if level is not None and any(below is device for below in level.chain()) else device


def view_of(device: Backend, policy: Policy) -> Backend | None:
    """A view of a chain in which every Autodiff level follows the policy; None if there is no such level."""
    if not isinstance(device, Decorator):
        return None
    below = view_of(device.inner, policy)
    if below is None and not isinstance(device, Autodiff):
        return None
    inner = device.inner if below is None else below
    if isinstance(device, Autodiff):
        return device.view(inner, policy, device.strong_zero)
    return device.view(inner, *device.configuration()[1:])


def _on(x: Any, view: Backend) -> Any:
    return wrap(lift_to(x, view), view) if isinstance(x, Tensor) else x


def _back(x: Any, view: Backend, device: Backend) -> Any:
    """A result on the levels that views stood for, as a value: what comes after does not make it again."""
    if not isinstance(x, Tensor) or x.device is not view:
        return x
    return wrap(_plain(x._array, view), device)


def _plain(array: Any, view: Backend) -> Any:
    """The array without how its levels would make it again."""
    if not isinstance(view, Decorator):
        return array
    inner = view.inner
    return view.map_arrays(array, lambda part: _plain(part, inner))
