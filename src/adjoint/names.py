"""How backends are called: a name follows from a constructor's parameters, and is read by them again.

`autodiff[strong_zero]<torch:cuda:0>`: the class in small letters, the options that are not the constructor's defaults,
the inner backend; behind a colon, where a library keeps its arrays. The one declaration of all this is the constructor,
whose arguments are the backend's `configuration()`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adjoint import errors


@functools.cache
def constructor_parameters(kind: Any) -> Mapping[str, Any]:
    """What the constructor of a class of backends takes, with the defaults; None for what has none."""
    function = kind.__init__
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    known = dict.fromkeys(names) | dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return MappingProxyType(known | kind.implied)


def format_name(kind: Any, configuration: Sequence[Any]) -> str:
    """The name of a backend of this class and configuration.

    >>> from adjoint.decorators.autodiff import Autodiff
    >>> format_name(Autodiff, ("numpy", None, True))
    'autodiff[strong_zero]<numpy>'
    """
    defaults = constructor_parameters(kind)
    given = dict(zip(defaults, configuration, strict=False))  # of a place that is not named there is nothing
    inner, place = given.pop("inner", None), given.pop(kind.place, None)
    options = [_option(key, value) for key, value in given.items() if value != defaults[key]]
    return (
        str(kind.__name__).lower()
        + (f":{place}" if place is not None else "")
        + (f"[{','.join(options)}]" if options else "")
        + (f"<{inner}>" if inner is not None else "")
    )


def _option(key: str, value: Any) -> str:
    return key if value is True else f"{key}=0" if value is False else f"{key}={value}"


def parse_options(kind: Any, text: str | None, name: str) -> dict[str, Any]:
    """The options that stand in brackets in a name. Raises DeviceError for one that the class does not have."""
    known = {key: default for key, default in constructor_parameters(kind).items() if key not in ("inner", kind.place)}
    found: dict[str, Any] = dict(kind.implied)
    for part in filter(None, (text or "").lower().split(",")):
        key, equals, value = map(str.strip, part.partition("="))
        if key not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise errors.DeviceError(f"device {name!r}: {kind.__name__} has no option {key}; {has}")
        found[key] = _value(value, known[key]) if equals else True
    return found


def _value(text: str, default: Any) -> Any:
    if isinstance(default, bool) and text in ("0", "1"):
        return text == "1"
    return number(text)


def number(text: str) -> Any:
    """A whole number as such, anything else as it is."""
    return int(text) if text.removeprefix("-").isdecimal() else text
