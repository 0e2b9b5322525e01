"""Gradients of a batch whose parts are on several devices."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import device as find_device
from adjoint.devices import leaf_of
from adjoint.functions.arguments import check_callable, check_tensor, is_array, items
from adjoint.functions.creation import asarray
from adjoint.module.base import Module
from adjoint.module.fields import leaves_of
from adjoint.optim.gradients import GradientsParams
from adjoint.random_keys import RandomKey, seeded
from adjoint.tensor import Tensor
from adjoint.transforms.arguments import split_aux

Loss = Callable[[Any, Any], Any]
GradientsOf = Callable[[Any, Any], tuple[Any, GradientsParams]]


def data_parallel(f: Loss, devices: Sequence[Any], has_aux: bool = False) -> GradientsOf:
    """A function of a model and a batch that gives f's value and its gradients, computed on several devices at once.

    Each device gets an equal part of the batch and the model; the parts run in threads of their own. Values and
    gradients are means, weighed by the sizes of the parts: those of the whole batch where f is a mean over its
    examples. What f draws at random follows from the random state and the number of the part.

    Parameters
    ----------
    f
        A function of a model and a batch with a scalar result.
    devices
        Backends or their names. Gradients come to where the model is.
    has_aux
        f gives a pair (result, aux). The value is then a pair of the mean and a list with the aux of each part.

    Raises
    ------
    ArgumentError, DeviceError
        There is no device, or one that is none; the arrays of a batch do not have the same length.

    Examples
    --------
    >>> import adjoint as ad
    >>> model = ad.nn.Linear(2, 1)
    >>> loss = lambda model, batch: ad.nn.mse_loss(model(batch[0]), batch[1])
    >>> batch = ad.ones((5, 2)), ad.zeros((5, 1))
    >>> value, grads = ad.train.data_parallel(loss, ["numpy", "reference"])(model, batch)
    >>> bool(ad.allclose(grads["bias"], ad.grad(loss)(model, batch).bias))
    True
    """
    check_callable("data_parallel", f)
    given = items(devices)
    if not given:
        raise errors.ArgumentError(
            f"data_parallel: devices are a sequence of backends or their names, received {errors.shown(devices)}"
        )
    places = [recording(find_device(device)) for device in given]

    def on(device: Backend, model: Any, batch: Any, seed: int) -> tuple[Any, Any, GradientsParams]:
        with seeded(seed):
            forked = model.fork(device)
            value, aux = split_aux("data_parallel", f(forked, on_device(batch, device)), has_aux)
            check_tensor("data_parallel: the loss", value)
            return values(value), values(aux), GradientsParams.from_grads(value.backward(), forked)

    def run(model: Any, batch: Any) -> tuple[Any, GradientsParams]:
        home = place_of(model)
        parts = _parts(batch, places)
        key = home.next_key()
        calls = [(on, place, model, part, seed_of(key, k)) for k, (place, part, _) in enumerate(parts)]
        if len(calls) == 1:
            found = [on(*calls[0][1:])]
        else:
            from concurrent.futures import ThreadPoolExecutor  # here, because it brings twenty modules

            contexts = [contextvars.copy_context() for _ in calls]  # the default device and its like, of this thread
            with ThreadPoolExecutor(len(calls)) as pool:
                found = list(pool.map(lambda context, call: context.run(*call), contexts, calls))
        losses, auxes, grads = map(list, zip(*found, strict=True))
        if len(calls) > 1:
            weights = [size / sum(size for *_, size in parts) for *_, size in parts]
            losses = [asarray(v, device=home) * w for v, w in zip(losses, weights, strict=True)]
            grads = [g.map(lambda g: asarray(g, device=home)) * w for g, w in zip(grads, weights, strict=True)]
        mean = sum(losses[1:], losses[0])
        slopes: GradientsParams = sum(grads[1:], grads[0])  # pyright: ignore[reportAssignmentType]
        return ((mean, auxes) if has_aux else mean), slopes

    return run


def values(tree: Any) -> Any:
    """The tree with its tensors' values, below the level that records."""
    return trees.map(lambda x: x.inner() if isinstance(x, Tensor) and isinstance(x.device, Autodiff) else x, tree)


def recording(device: Backend) -> Backend:
    """The device itself where it records, else one that does, over it."""
    return device if isinstance(device, Autodiff) else Autodiff(device)


def place_of(model: Module) -> Backend:
    """Where the first array of a model is, below the level that records. Raises ArgumentError if there is none."""
    for leaf in leaves_of(model):
        if isinstance(leaf.value, Tensor):
            device = leaf.value.device
            return device.inner if isinstance(device, Autodiff) else device  # type: ignore[no-any-return]
    raise errors.ArgumentError(f"{type(model).__name__} has no parameters to be trained")


def on_device(batch: Any, device: Backend, *, copy: bool | None = None) -> Any:
    """A batch with its arrays as tensors on a device; those of other libraries, too."""
    return trees.map(lambda x: asarray(x, device=device, copy=copy) if _is_array(x) else x, batch)


def size_of(batch: Any) -> int:
    """How many examples a batch has: the length of its arrays. Raises ArgumentError if they differ, or there are none.

    Arrays without axes belong to all examples.
    """
    sizes = {x.shape[0] for x in trees.leaves(batch) if _is_array(x) and x.ndim}
    if len(sizes) != 1:
        has = f"arrays of lengths {sorted(sizes)}" if sizes else "no array with a first axis"
        raise errors.ArgumentError(f"a batch has arrays with an example per row, all of one length; this one has {has}")
    return int(sizes.pop())


def seed_of(*words: int | RandomKey) -> int:
    """A seed that follows from numbers and keys, different for any others."""
    flat = [int(n) for word in words for n in (word if isinstance(word, tuple) else (word,))]
    return int(np.random.SeedSequence(flat).generate_state(1, np.uint64)[0])


def _parts(batch: Any, places: list[Backend]) -> list[tuple[Backend, Any, int]]:
    """The parts of a batch and the devices they belong to, with their sizes; none that is empty."""
    if len(places) == 1:
        return [(places[0], batch, 1)]
    size = size_of(batch)
    bounds = [size * k // len(places) for k in range(len(places) + 1)]
    return [
        (place, trees.map(lambda x, a=a, b=b: x[a:b] if _is_array(x) and x.ndim else x, batch), b - a)
        for place, a, b in zip(places, bounds[:-1], bounds[1:], strict=True)
        if b > a
    ]


def _is_array(x: Any) -> bool:
    return is_array(x) or leaf_of(x) is not None
