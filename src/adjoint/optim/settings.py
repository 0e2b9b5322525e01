"""Classes that are settings, such as optimizers: what each setting may be is said where it is declared.

In trees their leaves are real numbers and tensors, by which a step can be differentiated; integers, words, functions
and the like are structure. What a transform puts in the place of leaves, such as gradients, is not checked.

>>> import adjoint as ad
>>> def after(optimizer):
...     model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
...     model, _ = optimizer.step(model, {"weight": ad.full((1, 1), 3.0)}, optimizer.init(model))
...     return model.weight.sum()
>>> ad.grad(after)(ad.optim.SGD(lr=0.1)).lr.item()
-3.0
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from adjoint import errors
from adjoint import tree as trees
from adjoint.counterparts import counterpart
from adjoint.functions.arguments import as_choice, as_flag, as_integer, as_number, as_positive, is_number, items, takes
from adjoint.methods import Signed
from adjoint.module.fields import part, register_parts
from adjoint.tensor import Tensor

Read = Callable[[Any, str, str], Any]  # of a value, and two names for messages, as those of `functions.arguments`


class _Meta(Signed):
    names_of = "Optimizer"

    def _make(cls, *args: Any, **settings: Any) -> Any:
        try:
            return super().__call__(*args, **settings)
        except TypeError as error:
            if takes(cls.__init__, (cls, *args), settings):  # type: ignore[misc]  # that of the class
                raise
            raise errors.ArgumentTypeError(_what_is_wrong(cls, args, settings)) from error

    if not TYPE_CHECKING:  # to whom a call gives an object of the class, as of any other
        __call__ = _make


def _what_is_wrong(cls: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> str:
    """What to write for settings by position, unknown ones, or one that is missing."""
    name, fields = cls.__name__, dataclasses.fields(cls)
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    known = [*required, *[field.name for field in fields if field.name not in required]]
    listed = f"its settings are {', '.join(known)}" if known else "it has none"
    if args:
        given = repr(args[0]) if is_number(args[0]) else "..."
        use = f", as {name}({known[0]}={given})" if known else ""
        return f"{name}: settings are given by name{use}; {listed}, and a model is for init and step"
    if unknown := [setting for setting in settings if setting not in known]:
        return f"{name}: no setting is called {unknown[0]}{counterpart('Settings', unknown[0])}; {listed}"
    return f"{name}: give {', '.join(f'{setting}=' for setting in required if setting not in settings)}"


class Settings(trees.Branch, metaclass=_Meta):
    """A frozen dataclass whose fields are settings; those that `setting` declares are read when one is made."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register_parts()

    def _tree_parts(self) -> trees.Parts:
        fields = dataclasses.fields(self)
        names, parts = tuple([field.name for field in fields]), []
        for field in fields:
            x = getattr(self, field.name)
            # by what it was declared as, since transforms put all kinds of objects in the place of leaves
            is_real = any(isinstance(number, float) for number in items(field.default) or (field.default,))
            parts.append(x if is_real and not callable(x) else _part(x))
        return parts, (self.__class__, names), names

    @classmethod
    def _tree_of(cls, known: Any, parts: Any) -> Any:
        made: Any = object.__new__(cls)
        vars(made).update(zip(known[1], parts, strict=True))
        return made

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if "read" in field.metadata:
                object.__setattr__(self, field.name, _read(self, field))


def setting(default: Any, read: Read) -> Any:
    """A field with a default and what reads it; of a tuple each of as many numbers as its default has."""
    return dataclasses.field(default=default, metadata={"read": read})


def in_use(value: Any) -> bool:
    """Whether a setting changes anything: 0 does not, but a tensor of it does in derivatives."""
    return isinstance(value, Tensor) or bool(value)


def _read(settings: Settings, field: dataclasses.Field[Any]) -> Any:
    """A setting in the form that is used. Tensors are left as they are: they may have no values yet."""
    value, name = getattr(settings, field.name), type(settings).__name__
    several, count = isinstance(field.default, tuple), len(items(field.default) or ())
    found: Any = items(value) if several else (value,)
    if several and (found is None or len(found) != count):
        raise errors.ArgumentTypeError(f"{name}: {field.name} are {count} numbers, received {errors.shown(value)}")
    read = tuple([x if isinstance(x, Tensor) else field.metadata["read"](x, name, field.name) for x in found])
    return read if several else read[0]


# --- readers -------------------------------------------------------------------------------------


def number(value: Any, name: str, what: str) -> float:
    """A finite number. Raises ArgumentTypeError for what is none, ArgumentError for nan and infinities."""
    found = float(as_number(value, name, what))
    if not math.isfinite(found):
        raise errors.ArgumentError(f"{name}: {what} is a finite number, received {errors.shown(value)}")
    return found


def positive(value: Any, name: str, what: str) -> float:
    """A number above 0. Raises ArgumentTypeError for what is none, ArgumentError for others and nan."""
    return float(as_positive(value, name, what))


def not_negative(value: Any, name: str, what: str) -> float:
    """A number from 0. Raises as `positive`."""
    return float(as_positive(value, name, what, zero=True))


def not_positive(value: Any, name: str, what: str) -> float:
    """A number up to 0. Raises as `positive`."""
    return -not_negative(-as_number(value, name, what), name, f"-{what}")


def fraction(value: Any, name: str, what: str) -> float:
    """A number from 0 that is less than 1: what decays by more would grow. Raises as `positive`."""
    found = not_negative(value, name, what)
    if not found < 1:
        raise errors.ArgumentError(f"{name}: {what} is less than 1, received {errors.shown(value)}")
    return found


def share(value: Any, name: str, what: str) -> float:
    """A number from 0 to 1. Raises as `positive`."""
    found = float(as_number(value, name, what))
    if not 0 <= found <= 1:
        raise errors.ArgumentError(f"{name}: {what} is a number from 0 to 1, received {errors.shown(value)}")
    return found


def or_schedule(read: Read) -> Read:
    """The same, or a function of the number of steps."""
    return lambda value, name, what: value if callable(value) else read(value, name, what)


def or_none(read: Read) -> Read:
    """The same, or None."""
    return lambda value, name, what: None if value is None else read(value, name, what)


def integer(least: int) -> Read:
    """An integer from 0 or 1."""
    return lambda value, name, what: as_integer(value, name, what, least)


def repetitions(value: Any, name: str, what: str) -> int:
    """How often something is done in each step, less than 100 times."""
    count = as_integer(value, name, what, 0)
    if count >= 100:
        raise errors.ArgumentError(f"{name}: {what} is less than 100, received {errors.shown(value)}")
    return count


def one_of(*known: str | None) -> Read:
    """One of some words."""
    return lambda value, name, what: as_choice(value, name, what, known)


flag: Read = as_flag
rate: Read = or_schedule(not_negative)


# --- trees ---------------------------------------------------------------------------------------


def _part(x: Any) -> Any:
    """What is no leaf is wrapped, so that it belongs to the structure."""
    if isinstance(x, Settings):
        return trees.Held(x)
    return tuple(map(_part, x)) if x.__class__ is tuple else part(x)
