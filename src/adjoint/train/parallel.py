"""Gradients of a batch whose parts are on several devices."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint.devices import device as find_device
from adjoint.functions.arguments import check_callable, items
from adjoint.optim.gradients import GradientsParams
from adjoint.train.cluster import Cluster
from adjoint.train.parts import (
    GradientsOf,
    Loss,
    added,
    divided,
    part_gradients,
    place_of,
    recording,
    seed_of,
    tree_sum,
)


def data_parallel(f: Loss, devices: Sequence[Any] | Cluster, has_aux: bool = False) -> GradientsOf:
    """A function of a model and a batch that gives f's value and its gradients, computed on several devices at once.

    Each device gets an equal part of the batch and the model; the parts run in threads of their own. Values and
    gradients are means, weighed by the sizes of the parts: those of the whole batch where f is a mean over its
    examples. They are added up in pairs, and sums in pairs, in an order that follows from the number of parts. What f
    draws at random follows from the random state and the number of the part.

    Parameters
    ----------
    f
        A function of a model and a batch with a scalar result.
    devices
        Backends or their names, or an `ad.train.Cluster`. Gradients come to where the model is.
    has_aux
        f gives a pair (result, aux). The value is then a pair of the mean and a list with the aux of each part.

    Raises
    ------
    ArgumentError, DeviceError
        There is no device, or one that is none; the arrays of a batch do not have the same length.
    WorkerError
        A cluster has no workers, or cannot be reached.

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
    if isinstance(devices, Cluster):
        return devices.gradients(f, has_aux)
    given = items(devices)
    if not given:
        raise errors.ArgumentError(
            f"data_parallel: devices are a sequence of backends or their names, received {errors.shown(devices)}"
        )
    places = [recording(find_device(device)) for device in given]

    def run(model: Any, batch: Any) -> tuple[Any, GradientsParams]:
        home = place_of(model)
        key = home.next_key()
        calls = [
            (f, has_aux, places[part.number], home, model, part, seed_of(key, part.number))
            for part in divided(batch, len(places))
        ]
        if len(calls) == 1:
            found = [part_gradients(*calls[0])]
        else:
            from concurrent.futures import ThreadPoolExecutor  # here, because it brings twenty modules

            contexts = [contextvars.copy_context() for _ in calls]  # the default device and its like, of this thread
            with ThreadPoolExecutor(len(calls)) as pool:
                found = list(pool.map(lambda context, call: context.run(part_gradients, *call), contexts, calls))
        return tree_sum(found, added).result(has_aux)

    return run
