"""Values while a function runs, under any transform: printed, or handed to a function.

>>> import adjoint as ad
>>> def loss(x):
...     y = x * x
...     ad.debug.print("y = {:.2f}", y)
...     return y
>>> gradient = ad.grad(loss)(1.5)
y = 2.25
"""

from __future__ import annotations

import builtins
import itertools
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.concrete import Staged, callbacks
from adjoint.devices import current_level
from adjoint.functions.arguments import check_callable
from adjoint.functions.conversion import formatted
from adjoint.operands import concrete_values
from adjoint.random_keys import is_first_call
from adjoint.renamed import refusing
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.carries import examples_of, masks_here
from adjoint.transforms.closures import as_given

__all__ = ["callback", "print"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__


def callback(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Call f with the values of tensors, as NumPy arrays; everything else in the arguments stays.

    It is called when the function around it runs: while derivatives are taken, with the values that they are taken at,
    and not again where they need a second run, as in a scan with `checkpoint_every`.
    Inside of `vmap` it is called for one example after the other; where none of the arguments differ between examples,
    once; where examples go different ways (`cond`, `while_loop`), for those that come there. What it returns is
    dropped, so that nothing can depend on the values without derivatives. Under `jax.jit` it is called when the
    compiled function runs; on Dask the values are computed for it.

    Raises ArgumentTypeError if f is no function.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> seen = []
    >>> ad.vmap(lambda x: ad.debug.callback(seen.append, x * x))(np.array([1.0, 2.0]))
    >>> seen
    [array(1.), array(4.)]
    """
    check_callable("debug.callback", f)
    if not is_first_call():
        return
    f = as_given(f)
    callbacks.add(f)
    leaves, structure = trees.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    found = [_examples(leaves[i]) for i in places]
    masks = [_examples(mask) for mask in masks_here()]  # of choices between examples: others are no examples here
    levels, masked = _levels(found), _levels(masks)

    def call(*values: np.ndarray[Any, Any]) -> None:
        sizes: dict[Backend, int] = {}
        here: Any = True
        for mask, (_, _, counted) in zip(values[len(found) :], masks, strict=True):
            here = here & mask[tuple([slice(None) if level in counted else None for level in masked])]
        for value, (_, _, counted) in zip(values, found, strict=False):
            sizes |= zip(counted, value.shape, strict=False)
        for example in itertools.product(*[range(sizes[level]) for level in levels]):
            at = dict(zip(levels, example, strict=True))
            if masks and not here[tuple([at.get(level, slice(None)) for level in masked])].any():
                continue
            for i, value, (_, _, counted) in zip(places, values, found, strict=False):
                leaves[i] = np.array(value[tuple([at[level] for level in counted])])
            given, named = trees.unflatten(structure, leaves)
            f(*given, **named)

    level, known = current_level(), [*found, *masks]
    later = [leaf for array, leaf, _ in known if not leaf.is_concrete(array)]
    if level is not None and level.leaf.is_fresh:  # a function is recorded, and all calls in it
        later.insert(0, level.leaf)
    for leaf in later:
        if isinstance(leaf, Staged):
            leaf.call(call, [array for array, _, _ in known])
            return
    call(*[concrete_values(wrap(array, leaf), "debug.callback") for array, leaf, _ in known])


def _examples(x: Tensor[Any]) -> tuple[Any, Backend, list[Backend]]:
    """As `examples_of`, with levels of the same examples as one."""
    array, leaf, levels = examples_of(x)
    return array, leaf, [_first(level) for level in levels]


def _first(level: Any) -> Backend:
    while level.examples_of is not None:
        level = level.examples_of
    return level  # type: ignore[no-any-return]


def _levels(found: list[tuple[Any, Backend, list[Backend]]]) -> list[Backend]:
    """The levels of batches that arrays have examples of, the inner ones first."""
    return sorted({level for _, _, counted in found for level in counted}, key=lambda level: len([*level.chain()]))


def print(*args: Any, **kwargs: Any) -> None:
    """Print values, of each example of a batch on a line of its own: `print("loss {:.3f} at {}", loss, step)`.

    The first argument is a format string, for the others, or is printed before them if it has no places for them. When
    and how often it prints is said at `callback`. An error in the format is raised as Python's own is.

    >>> import adjoint as ad
    >>> ad.debug.print("x is {x:.1f}", x=ad.tensor([1.0, 2.0]))
    x is [1.0, 2.0]
    >>> ad.debug.print(ad.tensor(3.0), "and", 4)
    3.0 and 4
    """
    template = args[0] if args and isinstance(args[0], str) and _has_places(args[0]) else None
    if template is None and kwargs:
        raise errors.ArgumentTypeError(f"debug.print: nothing in the format names {', '.join(kwargs)}")

    def show(*args: Any, **kwargs: Any) -> None:
        if template is None:
            builtins.print(*[formatted(x, "") if isinstance(x, np.ndarray) else x for x in args])
        else:
            builtins.print(_FORMATTER.vformat(template, args, kwargs))

    callback(show, *(args if template is None else args[1:]), **kwargs)


def _has_places(template: str) -> bool:
    return any(field is not None for _, field, _, _ in string.Formatter().parse(template))


class _Formatter(string.Formatter):
    """Python's, for which arrays have the format of their elements."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return formatted(value, format_spec) if isinstance(value, np.ndarray) else format(value, format_spec)


_FORMATTER = _Formatter()
