"""Parts of a batch: dividing it, the gradients of one part, and sums of those in an order that is always the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.data.batches import Unread
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import leaf_of
from adjoint.functions.arguments import check_tensor, is_array
from adjoint.functions.creation import asarray
from adjoint.module.base import Module
from adjoint.module.fields import leaves_of
from adjoint.optim.gradients import GradientsParams
from adjoint.random_keys import RandomKey, seeded
from adjoint.tensor import Tensor
from adjoint.transforms.arguments import split_aux

T = TypeVar("T")
Loss = Callable[[Any, Any], Any]
GradientsOf = Callable[[Any, Any], tuple[Any, GradientsParams]]


class Part(NamedTuple):
    """A part of a batch; `weight` is its share of the examples, None where it is all of them."""

    number: int
    batch: Any
    weight: float | None


class Found(NamedTuple):
    """What parts gave: the value, the aux of each, and the gradients."""

    value: Any
    auxes: list[Any]
    grads: GradientsParams

    def result(self, has_aux: bool) -> tuple[Any, GradientsParams]:
        """The value, with the auxes beside it where there are, and the gradients."""
        return ((self.value, self.auxes) if has_aux else self.value), self.grads


def divided(batch: Any, count: int) -> list[Part]:
    """So many parts of a batch, as equal as can be; none that is empty."""
    if count == 1:
        return [Part(0, batch, None)]
    size = size_of(batch)
    bounds = [size * k // count for k in range(count + 1)]
    pairs = [(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True) if b > a]
    if len(pairs) == 1:
        return [Part(0, batch, None)]
    return [Part(k, _rows(batch, a, b), (b - a) / size) for k, (a, b) in enumerate(pairs)]


def _rows(batch: Any, start: int, stop: int) -> Any:
    if isinstance(batch, Unread):
        return batch.part(start, stop)
    return trees.map(lambda x: x[start:stop] if _is_array(x) and x.ndim else x, batch)


def part_gradients(f: Loss, has_aux: bool, device: Backend, home: Backend, model: Any, part: Part, seed: int) -> Found:
    """f's value and gradients of a part, computed on a device, brought home, and multiplied by the part's weight."""
    with seeded(seed):
        forked = model.fork(device)
        value, aux = split_aux("data_parallel", f(forked, on_device(part.batch, device)), has_aux)
        check_tensor("data_parallel: the loss", value)
        grads = GradientsParams.from_grads(value.backward(), forked)
    value, grads = asarray(values(value), device=home), grads.map(lambda g: asarray(g, device=home))
    if part.weight is not None:
        value, grads = value * part.weight, grads * part.weight
    return Found(value, [values(aux)], grads)


def added(x: Found, y: Found) -> Found:
    """The sums of what two parts gave."""
    return Found(x.value + y.value, x.auxes + y.auxes, x.grads + y.grads)


def tree_sum(terms: list[T], add: Callable[[T, T], T]) -> T:
    """The sum of neighbours, then of sums of neighbours, and so on: the order follows from the number of terms.

    >>> tree_sum(list("abcde"), lambda x, y: f"({x}{y})")
    '(((ab)(cd))e)'
    """
    while len(terms) > 1:
        terms = [add(*terms[k : k + 2]) if k + 1 < len(terms) else terms[k] for k in range(0, len(terms), 2)]
    return terms[0]


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
    if isinstance(batch, Unread):
        return batch.stop - batch.start
    sizes = {x.shape[0] for x in trees.leaves(batch) if _is_array(x) and x.ndim}
    if len(sizes) != 1:
        has = f"arrays of lengths {sorted(sizes)}" if sizes else "no array with a first axis"
        raise errors.ArgumentError(f"a batch has arrays with an example per row, all of one length; this one has {has}")
    return int(sizes.pop())


def seed_of(*words: int | RandomKey) -> int:
    """A seed that follows from numbers and keys, different for any others."""
    flat = [int(n) for word in words for n in (word if isinstance(word, tuple) else (word,))]
    return int(np.random.SeedSequence(flat).generate_state(1, np.uint64)[0])


def _is_array(x: Any) -> bool:
    return is_array(x) or leaf_of(x) is not None
