"""Calls of every public function, drawn at random: shapes, values away from kinks, memory layouts.

`FUNCTIONS` maps a public name to a maker of calls: given a `Draw` it returns the function and its
arguments; the floating arrays among them are what derivatives are taken with respect to. `PLAIN`
names the public functions that have no derivatives, each with the NumPy call that it must equal.
"""

from collections.abc import Callable
from typing import Any

from functions import arrays, core, linalg, networks, random, special, standard
from functions.core import BITWISE, EINSUMS
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {
    **core.FUNCTIONS,
    **standard.FUNCTIONS,
    **arrays.FUNCTIONS,
    **linalg.FUNCTIONS,
    **networks.FUNCTIONS,
    **special.FUNCTIONS,
    **random.FUNCTIONS,
}
PLAIN: dict[str, Any] = {**core.PLAIN, **standard.PLAIN}
OTHER: set[str] = set().union(core.OTHER, standard.OTHER, arrays.OTHER, linalg.OTHER, networks.OTHER, random.OTHER)

__all__ = ["BITWISE", "EINSUMS", "FUNCTIONS", "OTHER", "PLAIN", "Draw"]
