"""`torch.torch_version`: a version that is compared as one, with texts and with tuples."""

from __future__ import annotations

import re
from typing import Any


class TorchVersion(str):
    """The text of a version, in the order of versions.

    >>> import adjoint.torch as torch
    >>> torch.__version__ >= (2, 1), torch.__version__ > "2.9", torch.__version__ == torch.__version__ + ""
    (True, True, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: Any) -> Any:
        return _numbers(self) == _numbers(other)

    def __ne__(self, other: Any) -> Any:
        return _numbers(self) != _numbers(other)

    def __lt__(self, other: Any) -> Any:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: Any) -> Any:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: Any) -> Any:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: Any) -> Any:
        return _numbers(self) >= _numbers(other)


def _numbers(version: Any) -> tuple[tuple[int, ...], str]:
    """The numbers of a release, without zeros at the end, and what stands behind a plus."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    text, _, local = text.partition("+")
    found = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in found.group().split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), local
