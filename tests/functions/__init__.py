"""Calls of every public function, drawn at random: shapes, values away from kinks, memory layouts.

`FUNCTIONS` maps a public name to a maker of calls: given a `Draw` it returns the function and its
arguments; the floating arrays among them are what derivatives are taken with respect to. `PLAIN`
names the public functions that have no derivatives, each with the NumPy call that it must equal.
A function that is the elementwise primitive of its name needs no maker: it is called with the
operands of that primitive's cases.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import CASES

import adjoint as ad
from adjoint.primitives import ELEMENTWISE, TABLE
from adjoint.rules import RECORDS, NotDifferentiable
from functions import arrays, core, linalg, networks, parts, random, special, standard
from functions.core import BITWISE, EINSUMS
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {
    **core.FUNCTIONS,
    **standard.FUNCTIONS,
    **arrays.FUNCTIONS,
    **parts.FUNCTIONS,
    **linalg.FUNCTIONS,
    **networks.FUNCTIONS,
    **special.FUNCTIONS,
    **random.FUNCTIONS,
}
PLAIN: dict[str, Any] = {**core.PLAIN, **standard.PLAIN}
OTHER: set[str] = set().union(core.OTHER, standard.OTHER, arrays.OTHER, linalg.OTHER, networks.OTHER, random.OTHER)


def _called(name: str) -> Callable[[Draw], Call]:
    """The function of an elementwise primitive's name, with operands of the primitive's cases."""

    def call(d: Draw) -> Call:
        case = d.pick(*CASES[name])
        places = [i for i, x in enumerate(case.operands) if isinstance(x, np.ndarray)]

        def f(*arrays: Any) -> Any:
            operands = list(case.operands)
            for i, x in zip(places, arrays, strict=True):
                operands[i] = x
            return getattr(ad, name)(*operands)

        return f, *[d.lay(case.operands[i]) for i in places]

    return call


for _name, _primitive in TABLE.items():
    if (
        _primitive.kind is ELEMENTWISE
        and not _primitive.parameters
        and not isinstance(RECORDS[_name], NotDifferentiable)
        and _name in ad.__all__
        and not {_name} & (FUNCTIONS.keys() | PLAIN.keys() | OTHER)
    ):
        FUNCTIONS[_name] = _called(_name)

__all__ = ["BITWISE", "EINSUMS", "FUNCTIONS", "OTHER", "PLAIN", "Draw"]
