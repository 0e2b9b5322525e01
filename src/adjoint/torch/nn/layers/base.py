"""Layers that are a function and its settings: one class of each row of a table."""

from __future__ import annotations

import inspect
from typing import Any

from adjoint.torch import creation
from adjoint.torch.nn import functional as F
from adjoint.torch.nn.functional.shared import reduction_of
from adjoint.torch.nn.module import Module
from adjoint.torch.nn.parameter import fresh
from adjoint.torch.signatures import TableSignature
from adjoint.torch.tensor import Tensor, values

_NEEDED = inspect.Parameter.empty


class Settings(Module):
    """A layer with settings alone, which are attributes of it."""

    _settings: dict[str, Any] = {}
    _shown = ""
    _by_place: int | None = None  # how many may be given without their names; None for all
    __signature__ = TableSignature()

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__()
        names = [*self._settings][: self._by_place]
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes {len(names)} arguments: {', '.join(names)}; received {args}"
            )
        found = dict(zip(names, args, strict=False))
        for name, value in given.items():
            if name not in self._settings or name in found:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
            found[name] = value
        for name, default in self._settings.items():
            if name not in found and default is _NEEDED:
                raise TypeError(f"{type(self).__name__}.__init__() missing 1 required positional argument: '{name}'")
            setattr(self, name, self._read(name, found.get(name, default)))

    def _read(self, name: str, value: Any) -> Any:
        """A setting in the form that is kept."""
        return value

    def extra_repr(self) -> str:
        text = self._shown.format_map(vars(self))
        if vars(self).get("inplace") and "inplace" not in text and self._shown != "-":
            text += (", " if text else "") + "inplace=True"
        return "" if self._shown == "-" else text


class Applied(Settings):
    """A function of one tensor with these settings."""

    _function: Any

    def forward(self, input: Tensor) -> Any:
        own = self.__dict__
        return type(self)._function(input, *[own[name] for name in self._settings])


def settings_of(text: str) -> dict[str, Any]:
    """`a b=1` as a dictionary; what is needed has no default."""
    found = {}
    for word in text.removeprefix("*").split():
        name, given, value = word.partition("=")
        found[name] = eval(value) if given else _NEEDED
    return found


def table(rows: str, base: type, among: dict[str, Any]) -> None:
    """The classes of a table: name, function, settings, and the names of those that are shown ("-" for nothing).

    What stands behind "=" is shown without its name.
    """
    for row in rows.strip().splitlines():
        name, function, settings, shown = [cell.strip() for cell in row.split("|")]
        words = [f"{{{w[1:]}}}" if w[0] == "=" else f"{w.partition('!')[0]}={{{w}}}" for w in shown.split() if w != "-"]
        shown = shown if shown == "-" else ", ".join(words)
        members = {
            "_function": staticmethod(F.ALL[function]), "_settings": settings_of(settings), "_shown": shown,
            "_by_place": 0 if settings.startswith("*") else None,
            "__module__": "adjoint.torch.nn", "__qualname__": name,
            "__doc__": f"`nn.functional.{function}` as a layer.",
        }  # fmt: skip
        among[name] = type(name, (base,), members)


class Loss(Settings):
    """A loss of predictions and targets; `weight` and `pos_weight` are buffers."""

    _function: Any
    _buffered = ("weight", "pos_weight")
    _settings = {"size_average": None, "reduce": None, "reduction": "mean"}
    _plain: tuple[str, ...] = ("reduction",)
    _weights: tuple[str, ...] = ()
    reduction: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._weights = tuple([name for name in cls._settings if name in cls._buffered])
        apart = ("size_average", "reduce", *cls._weights)
        cls._plain = tuple([name for name in cls._settings if name not in apart])

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        own = self.__dict__
        flags = own.pop("size_average", None), own.pop("reduce", None)
        if any([flag is not None for flag in flags]):
            self.reduction = reduction_of(*flags, "mean")
        for name in self._buffered:
            if name in own:
                self.register_buffer(name, own.pop(name))

    def forward(self, *tensors: Any, **named: Any) -> Any:
        own = self.__dict__
        given = {name: own[name] if name in own else getattr(self, name) for name in self._plain}
        for name in self._weights:
            given[name] = own["_buffers"][name]
        if named:
            if "log_input" in named and "log_input" in self._settings:  # what `PoissonNLLLoss` calls its input, too
                named["input"] = named.pop("log_input")
            return type(self)._function(*tensors, **named, **given)
        return type(self)._function(*tensors, **given)


def several(value: Any, count: int) -> tuple[Any, ...]:
    """A number as so many, or what is that already."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def made_of(*size: int, dtype: Any = None, device: Any = None) -> Any:
    """A parameter that waits for its values."""
    return fresh(values(creation.empty(*size, dtype=dtype, device=device)))
