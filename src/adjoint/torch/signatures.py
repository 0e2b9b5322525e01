"""What classes whose settings stand in a table take, for `inspect.signature` and `help`."""

from __future__ import annotations

import inspect
from typing import Any

_PLACED, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


class TableSignature:
    """The signature of a class by its `_settings`, of which `_by_place` may be given without their names."""

    def __init__(self, *first: str) -> None:
        self._first = [inspect.Parameter(name, _PLACED) for name in first]

    def __get__(self, value: Any, cls: Any = None) -> inspect.Signature | None:
        if not cls.__module__.startswith("adjoint.torch"):
            return None  # a user's class says itself what it takes
        count = len(cls._settings) if cls._by_place is None else cls._by_place
        known = [
            inspect.Parameter(name, _PLACED if i < count else _NAMED, default=default)
            for i, (name, default) in enumerate(cls._settings.items())
        ]
        return inspect.Signature([*self._first, *known])
