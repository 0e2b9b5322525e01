"""The one question a backend answers: how do you run this primitive?

A backend has one method to write, `implement(primitive)`. It is asked once per primitive and the
answer becomes an attribute, so that afterwards `B.multiply(x, y)` is an ordinary attribute look-up
and call; `B["multiply"]` is the same, also for a primitive that has the name of a method. A leaf
backend answers with a function of its library, a decorator with a closure over its inner backend's
answer. What is not a question of primitives has protocols of its own: arrays in and out (`transfer`),
random keys (`random_keys`), whether there are values (`concrete`).
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from adjoint import errors, names
from adjoint.concrete import InnerValues, Values
from adjoint.counterparts import counterpart
from adjoint.locks import lock
from adjoint.methods import Signed
from adjoint.primitives import TABLE, Primitive
from adjoint.random_keys import InnerKeys, RandomKeys
from adjoint.transfer import Array as Array
from adjoint.transfer import InnerTransfer, Transfer
from adjoint.variables import J

Implementation = Callable[..., Any]
_allocate = object.__new__
DEEPEST = 100  # decorators in a chain; derivatives of such orders cost more than anybody has time for

# True inside a backward pass: what runs there computes derivatives
in_backward: contextvars.ContextVar[bool] = contextvars.ContextVar("adjoint_in_backward", default=False)


class _Interned(Signed):
    """Makes equal configurations of a backend one object, so that `is` compares backends."""

    _leaves: dict[tuple[Any, ...], Any] = {}
    _many: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
    _made: weakref.WeakSet[Any] = weakref.WeakSet()
    _lock = lock()
    _making = [False]  # whether one is; after an error until the next one is, to which finalizers leave things

    if not TYPE_CHECKING:  # type checkers read the signature of __init__

        def __call__(cls, *args, **options):
            made = super().__call__(*args, **options)
            with _Interned._lock:
                _Interned._making[0] = True
                if made.interned:
                    made = _Interned._known(made)
                _Interned._made.add(made)
                _Interned._making[0] = False
            return made

    @staticmethod
    def _known(made: Any) -> Any:
        """The one object of its configuration, which this one is if there is none yet."""
        try:
            return made.registry().setdefault((type(made), *made.configuration()), made)
        except TypeError:
            raise errors.DeviceError(
                f"{type(made).__name__}: options are hashable, received {errors.shown(made.configuration())}"
            ) from None


class computed_name:
    """A name that is made when it is first asked for, or set.

    Python's `cached_property` holds a lock meanwhile before version 3.12, and a fork would copy it.
    """

    def __init__(self, make: Callable[[Any], str]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, backend: Any, kind: Any = None) -> str:
        if backend is None:
            return self  # type: ignore[return-value]
        made = backend.name = self._make(backend)
        return made


class Backend(Transfer, RandomKeys, Values, metaclass=_Interned):
    """Something that runs array primitives; it is the `device` of its tensors.

    Equal configurations are one object: `NumPy() is NumPy()`, also after pickling.
    """

    place: ClassVar[str | None] = None  # the argument that names write behind a colon, as in torch:cuda:0
    implied: ClassVar[dict[str, Any]] = {}  # what a name means without these options, if not the constructor's default
    interned = True  # equal configurations are one object
    many = False  # ... and of its class there may be any number: each goes with the last that uses it
    is_fresh = False  # of one call of a transform, which ends it
    ended: bool = False  # ... once the transform has returned
    observes = False  # only looks at what passes
    depth: int = 0  # how many decorators are in the chain
    wants_locations: bool = False  # whether an Autodiff over it records the user's source lines

    def configuration(self) -> tuple[Any, ...]:
        """The arguments that make this backend again; hashable."""
        return ()

    @computed_name
    def name(self) -> str:
        """What `ad.device` makes this backend of; it follows from the configuration."""
        return names.format_name(type(self), self.configuration())

    def registry(self) -> MutableMapping[tuple[Any, ...], Any]:
        """Where the one object of an equal configuration is found."""
        return _Interned._many if self.many else _Interned._leaves

    def implement(self, primitive: Primitive) -> Implementation:
        """A callable that runs the primitive: arrays positional, parameters by keyword."""
        raise errors.UnsupportedPrimitiveError(f"{self.name} cannot run the primitive {primitive.name!r}")

    def numbers(self, primitive: Primitive) -> LeafBackend | None:
        """What runs a primitive faster on single numbers, and its rules: a backend of the same arrays, if there is one.

        Both have the class of these numbers, `number_type`.
        """
        return None

    def recorded(self, term: Any, g: str, primitive: Primitive) -> Implementation | None:
        """What runs an expression of a primitive's derivative, and records it as one node of single numbers.

        None where a backend does not record, or would do it no faster.
        """
        return None

    def implement_into(self, primitive: Primitive) -> Implementation:
        """Like `implement`, but the callable may reuse the buffer of its first array.

        Only for callers that own that array: nothing else refers to it.
        """
        return self[primitive]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        backend = super().__new__(cls)
        backend.implementations, backend._attributes = {}, set()
        return backend

    # what was answered, by name: no method can hide it, and it hides none
    implementations: dict[str, Implementation]
    _attributes: set[str]  # the names of those that are attributes, too

    def __getitem__(self, primitive: Primitive | str) -> Implementation:
        """What runs a primitive, which may have the name of a method."""
        name = primitive if isinstance(primitive, str) else primitive.name
        known = self.implementations.get(name)
        if known is None:
            if self.ended:
                raise self.ended_error(name)
            if self.prototype is not self:
                return self.prototype[primitive]
            known = self.implement(TABLE[name] if isinstance(primitive, str) else primitive)
            if name not in TABLE.leaving:
                self.implementations[name] = known
        return known

    __iter__: ClassVar[None] = None  # by __getitem__ Python would ask for a first primitive

    def __getattr__(self, name: str) -> Implementation:
        base = name.removesuffix("_into")
        if base not in TABLE and base not in TABLE.leaving:
            hint = counterpart("device", name)
            what = "attribute" if hint else "attribute or primitive"
            raise AttributeError(f"{type(self).__name__} has no {what} {name!r}{hint}", name=name, obj=self)
        if self.ended:
            raise self.ended_error(base)
        if self.prototype is not self:
            implementation = getattr(self.prototype, name)
        else:
            implementation = self[base] if base == name else self.implement_into(TABLE[base])
        if base not in TABLE.leaving:
            self._attributes.add(name)
            vars(self)[name] = implementation
        return implementation  # type: ignore[no-any-return]

    def ended_error(self, what: str) -> errors.EndedError:
        """The error for work on a level that has ended."""
        return errors.EndedError(
            f"{what}: a tensor of a transform's level ({self.name}) was used after the transform had returned; return "
            "it from the function instead of keeping it: results may be trees, and has_aux=True is for what stands "
            "beside them"
        )

    def forget(self, name: str | None = None) -> None:
        """Drop what was answered for a primitive, or for all; `implement` is asked again."""
        known: Any = self.__dict__
        if name is None:
            kept = known.copy()
            for attribute in known["_attributes"]:
                kept.pop(attribute, None)
            kept["implementations"] = {}  # fresh levels share that of their prototype
            self.__dict__ = kept  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue]
            return
        for attribute in (name, f"{name}_into"):
            if attribute in self._attributes:
                known.pop(attribute, None)  # another thread may have been faster
        self.implementations.pop(name, None)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    def __copy__(self) -> Backend:
        return self

    def __deepcopy__(self, memo: Any) -> Backend:
        return self

    # --- the chain from a backend down to its leaf ---

    @property
    def prototype(self) -> Backend:
        """What implements primitives for this backend: itself, unless it is a transform's level."""
        return self

    def chain(self) -> Iterator[Backend]:
        """This backend and its inner ones, down to the leaf."""
        yield self

    @property
    def leaf(self) -> LeafBackend:
        """The backend that computes, at the end of the chain."""
        raise NotImplementedError

    @property
    def decorated(self) -> dict[Any, Backend]:
        """What decorates this backend, by class and configuration; it goes when this one goes."""
        return vars(self).setdefault("_decorated", {})  # type: ignore[no-any-return]

    def end(self) -> None:
        """Nothing more is computed on this level, on what decorates it, and on the same one over other backends.

        Tensors there refuse work.
        """
        self.ended = True
        self.forget()
        known: Any = self.__dict__
        for others in ("_decorated", "_siblings"):
            if others in known:
                for level in list(known.pop(others).values()):
                    if not level.ended:
                        level.end()

    def lift(self, array: Array, source: Backend) -> Array:
        """An array of `source`, a backend of this one's chain, as a constant of this one."""
        if source is not self:
            raise errors.DeviceError(f"{source} is not in the chain of {self}")
        return array

    # whether it asks for derivatives, or for where there are any: functions with rules are not run through it then
    differentiates = False

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """The results of a function with rules of its own (`transforms.levels.Rules`) for tensors of this backend."""
        return rules.plain(xs)  # type: ignore[no-any-return]

    def detach(self, array: Array) -> Array:
        """The same value as a constant of every level."""
        return array

    def tracked(self, array: Array) -> bool:
        """Whether some level records what is done with this array."""
        return False

    def is_active(self, array: Array) -> bool:
        """Whether this level knows more of the array than the inner one; if not, it is a constant here."""
        return False


class LeafBackend(Backend):
    """A backend that computes, or that records what is to be computed."""

    number_type: type[Any] | None = None  # of what it computes without axes, where that is no array: see `numbers`
    digits: int | None = None  # of its numbers, where they may have more than those of double precision
    arrays_on: Backend | None = None  # of a recording: the device on which tensors stand for arrays that a user gave

    @property
    def leaf(self) -> LeafBackend:
        return self

    @classmethod
    def fresh(cls, *options: Any) -> Self:
        """A leaf for one call of a transform: no other one equals it, and it implements primitives itself."""
        level: Self = type.__call__(cls, *options)  # which interns nothing
        level.is_fresh = True
        return level

    def seed(self, n: int) -> None:
        super().seed(n)
        _Interned._leaves[type(self), *self.configuration()] = self  # kept, because it now differs from a new one

    def implement_into(self, primitive: Primitive) -> Implementation:
        return self.given(primitive.into) or self[primitive]

    def given(self, functions: dict[Any, Implementation]) -> Implementation | None:
        """What a user gave for this leaf, by its name or a class of it."""
        found = [functions[key] for key in (self.name, *type(self).__mro__) if key in functions]
        return found[0] if found else None

    @classmethod
    def of(cls, value: Any) -> LeafBackend | None:
        """The leaf that an array of the library is on, None for anything else; it does not import the library."""
        return None

    def lacks_memory(self, error: Exception) -> bool:
        """Whether the library's error says that there is not enough memory."""
        return isinstance(error, MemoryError)

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """A context without the library's floating-point warnings, for backward passes over the user's code."""
        return contextlib.nullcontext()


def over_leaf(device: Backend, leaf: Backend) -> Backend:
    """The chain of a backend over another leaf."""
    return device.over(over_leaf(device.inner, leaf)) if isinstance(device, Decorator) else leaf


def interned_backends() -> list[Backend]:
    """All backends that there are, without the levels of transforms."""
    with _Interned._lock:
        return list(_Interned._made)


def forget(name: str) -> None:
    """Drop what every backend keeps of a primitive: it was declared anew, or is gone."""
    for backend in interned_backends():
        backend.forget(name)


def is_making() -> bool:
    """Whether a thread is making a backend, perhaps this one, which a finalizer then must not wait for."""
    return _Interned._making[0]


class Decorator(InnerTransfer, InnerKeys, InnerValues, Backend, Generic[J]):
    """A backend built on an inner backend, whose arrays wrap the inner one's.

    A subclass says how arrays are wrapped and how primitives are run; all else passes through.
    """

    inner: J
    _siblings: dict[Backend, Decorator[Any]] | None = None  # the same level over other backends
    aliases: Decorator[Any] | None = None  # the level that this one stands for, with other options: of the same arrays

    def __init__(self, inner: J) -> None:
        if not isinstance(inner, Backend):
            raise errors.DeviceError(
                f"{type(self).__name__} decorates a backend such as ad.NumPy(); received {errors.shown(inner)}"
            )
        if inner.depth >= DEEPEST:
            raise errors.DeviceError(
                f"{type(self).__name__}: a chain has at most {DEEPEST} decorators; its calls go through all of them"
            )
        self.inner = inner
        self._leaf: LeafBackend = inner.leaf
        self.depth: int = inner.depth + 1
        vars(self)["as_scalar"] = inner.as_scalar  # without a call for each level
        self.wants_locations: bool = inner.wants_locations

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner,)

    def registry(self) -> MutableMapping[tuple[Any, ...], Any]:
        if self.many and not any([level.is_fresh for level in self.inner.chain()]):  # these end what decorates them
            return _Interned._many
        return self.inner.decorated

    def over(self, other: Backend) -> Backend:
        """The same level, with the same options, over another inner backend; there and back is the level itself."""
        if other is self.inner:
            return self
        options = self.configuration()[1:]
        if self.interned and not self.is_fresh:
            return type(self)(other, *options)  # type: ignore[arg-type]
        siblings = self._siblings = self._siblings or {self.inner: self}
        if other not in siblings:
            made = type(self).fresh(other, *options) if self.is_fresh else type(self)(other, *options)  # type: ignore[arg-type]
            siblings[other], made._siblings = made, siblings
        return siblings[other]

    @classmethod
    def fresh(cls, inner: Backend, *options: Any) -> Self:
        """A level of its own over `inner`, for one call of a transform: no other one equals it.

        What a level is to its tensors is only who it is. Implementations do not depend on that, so a fresh
        level has those of the interned one with the same options, and costs a copy of a dictionary.
        """
        mine = inner.__dict__  # in less than half the time of vars(inner)
        below: Any = mine.get("_prototype", inner)
        levels = below.__dict__.get("_decorated")
        prototype = None if levels is None else levels.get((cls, below, *options))
        if prototype is None:
            prototype = cls(below, *options)
            if prototype.many:  # the last ones are kept, for calls that come again
                recent = vars(below).setdefault("_recent", collections.deque(maxlen=4))
                if prototype not in recent:
                    recent.append(prototype)
            elif prototype.interned:
                prototype.registry()[cls, below, *options] = prototype  # found again without making it
        known = prototype.__dict__.copy()
        known.pop("_decorated", None)
        known["inner"], known["_prototype"], known["is_fresh"] = inner, prototype, True
        known["_leaf"] = mine.get("_leaf", inner)  # it may be one of a recording, and the prototype's is none
        level: Self = _allocate(cls)
        # one step, half the time of an update; pyright takes __dict__ of a class of one's own for fixed
        level.__dict__ = known  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue]
        return level

    def view(self, inner: Backend, *options: Any) -> Self:
        """A level that stands for this one, with other options or another inner backend: of the same arrays."""
        view = type(self).fresh(inner, *options)
        view.aliases = self
        return view

    def ended_error(self, what: str) -> errors.EndedError:
        leaf = self.leaf
        return leaf.ended_error(what) if leaf.is_fresh and leaf.ended else super().ended_error(what)

    @property
    def leaf(self) -> LeafBackend:
        return self._leaf

    @property
    def prototype(self) -> Backend:
        return self.__dict__.get("_prototype", self)  # type: ignore[no-any-return]

    def chain(self) -> Iterator[Backend]:
        yield self
        aliases = self.aliases
        while aliases is not None:
            yield aliases
            aliases = aliases.aliases
        yield from self.inner.chain()

    def lift(self, array: Array, source: Backend) -> Array:
        if source is self or (self.aliases is not None and self._stands_for(source)):
            return array
        return self.wrap(self.inner.lift(array, source))

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        if any([level.differentiates for level in self.inner.chain()]):
            return rules.through(xs, self)  # type: ignore[no-any-return]
        return rules.plain(xs)  # type: ignore[no-any-return]

    def rewrap(self, value: Array, is_active: bool) -> Array:
        """An inner array as one of this level, which is active there or is a constant."""
        return self.wrap(value)

    def cotangents(self, arrays: Sequence[Array], size: int, flags: Sequence[bool]) -> list[Array]:
        """Inner arrays for the cotangents of arguments, which flags say are active here, in `size` examples."""
        return [self.unwrap(array) for array in arrays]

    def alike(self, values: list[Array], tangents: list[Array]) -> tuple[list[Array], list[Array]]:
        """Values and their tangents: of each pair both are active here, or neither is."""
        return values, tangents

    def _stands_for(self, level: Backend) -> bool:
        """Whether this is a view of the level, or a view of a view of it."""
        aliases = self.aliases
        while aliases is not None and aliases is not level:
            aliases = aliases.aliases
        return aliases is level

    def detach(self, array: Array) -> Array:
        return self.wrap(self.inner.detach(self.unwrap(array)))

    def tracked(self, array: Array) -> bool:
        return self.is_active(array) or self.inner.tracked(self.unwrap(array))
