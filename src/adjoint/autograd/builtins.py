"""Python's own containers: lists, tuples and dictionaries of boxes are lists, tuples and dictionaries.

`isinstance` and `type` look at the value of a box: `isinstance(x, np.ndarray)` is true of an array that is followed.
"""

from __future__ import annotations

import builtins
from typing import Any

from adjoint.autograd.boxes import getval
from adjoint.autograd.missing import missing

dict: Any = builtins.dict
list: Any = builtins.list
tuple: Any = builtins.tuple
DictBox, SequenceBox = dict, tuple


def isinstance(x: Any, kind: Any) -> bool:
    """Python's, of the value of a box."""
    return builtins.isinstance(x, kind) or builtins.isinstance(getval(x), kind)


def type(x: Any, *args: Any) -> Any:
    """Python's, of the value of a box."""
    return builtins.type(getval(x), *args)


__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
