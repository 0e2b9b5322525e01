"""How Python calls machine code: what of it has to be known where it was made by an earlier process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.compiler.graph import Value


class Call:
    """A function of machine code: its name, inputs and outputs, and how many bytes it has for other arrays.

    It `checks` values, and `shares` loops with other threads; `over` has for an output what it may be written over.
    `kernels` has a line for each loop.
    """

    checks: bool
    inputs: list[Value]
    kernels: list[str]
    memory: int
    name: str
    outputs: list[Any]
    over: dict[Value, list[Value]]
    shares: bool
    sizes: Any = None  # those that it takes as arguments behind arrays, of code for any

    def plain(self) -> dict[str, Any]:
        """What of it has to be known to call it, and not how it was written."""
        return {name: getattr(self, name) for name in Call.__annotations__}

    @property
    def shown(self) -> str:
        """The first kernel and all primitives of it, in one line."""
        first, *inner = self.kernels
        return ": ".join([first, *([", ".join(line.split(": ")[-1] for line in inner)] if inner else [])])


def again(run: Callable[..., bool], inputs: Sequence[Any], like: Sequence[Value], outputs: Sequence[Any]) -> None:
    """Call machine code with copies of arrays that are not as it reads them."""
    for copy in (None, True):  # of those that NumPy sees a reason to copy, and then of all
        copies = [np.array(x, y.dtype, order="C", copy=copy) for x, y in zip(inputs, like, strict=True)]
        if run(*copies, *outputs):
            return
    found, wanted = ([(tuple(x.shape), x.dtype.name) for x in xs] for xs in (copies, like))
    raise errors.ShapeError(
        f"arrays of {wanted} became {found} while a compiled function ran: nobody may resize its arguments meanwhile"
    )
