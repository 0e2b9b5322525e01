"""`torch.nn.modules.utils`: numbers as tuples, and names in states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Any:
    def parse(x: Any) -> Any:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in (1, 2, 3, 4))


def _reverse_repeat_tuple(t: Any, n: int) -> Any:
    return tuple([x for x in reversed(t) for _ in range(n)])


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Take a prefix from the names in a state, where they have it.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for key in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    about = getattr(state_dict, "_metadata", None) or {}
    for key in [name for name in about if name and (name == prefix.rstrip(".") or name.startswith(prefix))]:
        about[key[len(prefix) :]] = about.pop(key)
