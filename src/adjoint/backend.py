"""The one question a backend answers: how do you run this primitive?

A backend has one method to write, `implement(primitive)`. It is asked once per primitive and the
answer becomes an attribute, so that afterwards `B.multiply(x, y)` is an ordinary attribute look-up
and call. A leaf backend answers with a function of its library, a decorator with a closure over
its inner backend's answer.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from adjoint import errors, names
from adjoint.primitives import TABLE, DType, Primitive

Array = Any  # a backend's own value: it has `.shape`, and nothing else is assumed of it
Implementation = Callable[..., Any]
RandomKey = tuple[int, int]  # a seed and a counter: the same key gives the same numbers anywhere

# True inside a walk back: what runs there computes derivatives
walking: contextvars.ContextVar[bool] = contextvars.ContextVar("adjoint_walking", default=False)


_handed: contextvars.ContextVar[Callable[[Callable[[], RandomKey]], RandomKey] | None] = contextvars.ContextVar(
    "adjoint_keys", default=None
)


@contextlib.contextmanager
def replayed(known: list[RandomKey]) -> Iterator[None]:
    """In this context the known random keys are handed out again, then new ones, which become known."""
    outer, places = _handed.get(), itertools.count()

    def hand(draw: Callable[[], RandomKey]) -> RandomKey:
        i = next(places)
        if i == len(known):
            known.append(draw() if outer is None else outer(draw))
        return known[i]

    token = _handed.set(hand)
    try:
        yield
    finally:
        _handed.reset(token)


class _Interned(type):
    """Makes equal configurations of a backend one object, so that `is` compares backends."""

    _leaves: dict[tuple[Any, ...], Any] = {}
    _made: weakref.WeakSet[Any] = weakref.WeakSet()
    _lock = threading.Lock()

    if not TYPE_CHECKING:  # type checkers read the signature of __init__

        def __call__(cls, *args, **options):
            made = super().__call__(*args, **options)
            with _Interned._lock:
                if made.interned:
                    made = made.registry().setdefault((cls, *made.configuration()), made)
                _Interned._made.add(made)
            return made


class Backend(metaclass=_Interned):
    """Something that runs array primitives; it is the `device` of its tensors.

    Equal configurations are one object: `NumPy() is NumPy()`, also after pickling.
    """

    place: ClassVar[str | None] = None  # the argument that names write behind a colon, as in torch:cuda:0
    implied: ClassVar[dict[str, Any]] = {}  # what a name means without these options, if not the constructor's default
    interned = True  # equal configurations are one object
    ended = False  # a transform's level, once the transform has returned
    observes = False  # only looks at what passes
    traces = False  # whether an Autodiff over it records the user's source lines

    def configuration(self) -> tuple[Any, ...]:
        """The arguments that make this backend again; hashable."""
        return ()

    @functools.cached_property
    def name(self) -> str:
        """What `ad.device` makes this backend of; it follows from the configuration."""
        return names.written(type(self), self.configuration())

    def registry(self) -> MutableMapping[tuple[Any, ...], Any]:
        """Where the one object of an equal configuration is found."""
        return _Interned._leaves

    def implement(self, primitive: Primitive) -> Implementation:
        """A callable that runs the primitive: arrays positional, parameters by keyword."""
        raise errors.UnsupportedPrimitiveError(f"{self.name} cannot run the primitive {primitive.name!r}")

    def implement_into(self, primitive: Primitive) -> Implementation:
        """Like `implement`, but the callable may reuse the buffer of its first array.

        Only for callers that own that array: nothing else refers to it.
        """
        return self[primitive]

    def __getattr__(self, name: str) -> Implementation:
        base = name.removesuffix("_into")
        if base not in TABLE:
            raise AttributeError(f"{type(self).__name__} has no attribute or primitive {name!r}")
        if self.ended:
            raise self.left_over(base)
        if self.template is not self:
            implementation = vars(self)[name] = getattr(self.template, name)
            return implementation  # type: ignore[no-any-return]
        implementation = (self.implement if base == name else self.implement_into)(TABLE[base])
        vars(self)[name] = implementation
        return implementation

    def __getitem__(self, primitive: Primitive) -> Implementation:
        known = self.__dict__.get(primitive.name)
        if known is None:
            if self.ended:
                raise self.left_over(primitive.name)
            known = vars(self)[primitive.name] = self.implement(primitive)
        return known

    def left_over(self, what: str) -> errors.EndedError:
        """The error for work on a level that has ended."""
        return errors.EndedError(
            f"{what}: a tensor of a transform's level ({self.name}) was used after the transform had returned; return "
            "it from the function instead of keeping it: results may be trees, and has_aux=True is for what stands "
            "beside them"
        )

    def forget(self) -> None:
        """Drop the kept answers; `implement` is asked again."""
        known = vars(self)
        for name in [name for name in list(known) if name in TABLE or name.removesuffix("_into") in TABLE]:
            known.pop(name, None)  # another thread may have been faster

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
    def template(self) -> Backend:
        """What implements primitives for this backend: itself, unless it is a transform's level."""
        return self

    def chain(self) -> Iterator[Backend]:
        """This backend and its inner ones, down to the leaf."""
        yield self

    @property
    def leaf(self) -> Leaf:
        """The backend that computes, at the end of the chain."""
        *_, last = self.chain()
        assert isinstance(last, Leaf)
        return last

    def lift(self, array: Array, source: Backend) -> Array:
        """An array of `source`, a backend of this one's chain, as a constant of this one."""
        if source is not self:
            raise errors.DeviceError(f"{source} is not in the chain of {self}")
        return array

    def detach(self, array: Array) -> Array:
        """The same value as a constant of every level."""
        return array

    def copied(self, array: Array) -> Array:
        """The same array, tracked as it is, in memory that no assignment to another one reaches."""
        return array

    def tracked(self, array: Array) -> bool:
        """Whether some level records what is done with this array."""
        return False

    def moved(self, array: Array, source: Backend) -> Array:
        """An array of `source`, the same chain over another leaf, as one of this backend."""
        raise NotImplementedError

    def varies(self, array: Array) -> bool:
        """Whether this level knows more of the array than the inner one; if not, it is a constant here."""
        return False

    # --- between arrays and the outside ---

    def dtype_of(self, array: Array) -> DType:
        """The data type of an array, as the NumPy object that all backends share."""
        raise NotImplementedError

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        """A NumPy array as an array of this backend; `copy=False` may share its memory."""
        raise NotImplementedError

    def adopted(self, value: Any) -> Array | None:
        """An array of the leaf's own library as one of this backend, without a copy; None for anything else."""
        return None

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        """The values, which the caller must not write to."""
        raise NotImplementedError

    def native(self, array: Array) -> Any:
        """The value as an array of the leaf's own library, which the caller must not write to."""
        return array

    def values_of(self, array: Array) -> np.ndarray[Any, Any]:
        """All values there are, to look at: of a batch, those of every example."""
        return self.to_numpy(array)

    def knows(self, array: Array) -> bool:
        """Whether there are values to look at, for checks; where not, whoever uses them has to check."""
        return True

    def verified(self, array: Array, test: Callable[[Any], bool], error: Callable[[Any], Exception]) -> Array:
        """The same array. One whose values are not known yet raises the error when a part of it fails the test."""
        return array

    def bare(self, array: Array) -> Array:
        """The leaf's array behind all levels: of a batch, that of every example."""
        raise NotImplementedError

    def behind(self, array: Array, value: Array) -> Array:
        """The array with another leaf's array of the same value behind its levels."""
        return value

    def dump(self, array: Array) -> Any:
        """What of an array goes into a pickle."""
        raise NotImplementedError

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Array:
        """The array of a `dump`. Leaves keep their keys, or for a copy get new ones, noted in `keys`."""
        raise NotImplementedError

    def weak(self, value: complex, dtype: DType) -> Any:
        """A Python scalar, not zero, in the form in which it meets arrays of this dtype fastest."""
        return value

    def seed(self, n: int) -> None:
        """Start the sequence of random keys anew; `n` is any non-negative integer."""
        raise NotImplementedError

    def next_key(self) -> RandomKey:
        """The next key for a random primitive."""
        raise NotImplementedError


class Leaf(Backend):
    """A backend that computes. It hands out random keys: the only state a backend has."""

    def __init__(self) -> None:
        self._seed: int | None = None
        self._counter: Iterator[int] = itertools.count()

    def seed(self, n: int) -> None:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise errors.ArgumentError(f"seed: expected a non-negative integer, received {errors.shown(n)}")
        self._seed, self._counter = int(n), itertools.count()

    def next_key(self) -> RandomKey:
        hand = _handed.get()
        return self._draw() if hand is None else hand(self._draw)

    def _draw(self) -> RandomKey:
        if self._seed is None:
            self._seed = int.from_bytes(os.urandom(8), "little")
        return self._seed, next(self._counter)

    def moved(self, array: Array, source: Backend) -> Array:
        return self.from_numpy(source.to_numpy(array), copy=False)

    @classmethod
    def of(cls, value: Any) -> Leaf | None:
        """The leaf that an array of the library is on, None for anything else; it does not import the library."""
        return None

    def widest(self, dtype: DType) -> DType:
        """The dtype of Python's numbers and of other constants, or the next narrower one that the library has."""
        return dtype

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """A context without the library's floating-point warnings, for walks back over the user's code."""
        return contextlib.nullcontext()

    def bare(self, array: Array) -> Array:
        return array

    def computed(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The values of several arrays, which a lazy library computes at once."""
        return [self.to_numpy(array) for array in arrays]

    def persisted(self, arrays: Sequence[Array]) -> list[Array]:
        """The same arrays; those of a lazy library computed at once, and kept where they were computed."""
        return list(arrays)

    def undecided(self, array: Array) -> bool:
        """Whether no Python can branch on the value, and `branch` does."""
        return False

    def branch(self, index: Array, branches: Sequence[Callable[..., Any]], arrays: Sequence[Array]) -> list[Array]:
        """What the branch of this number gives for the arrays; all give arrays of the same shapes and dtypes."""
        raise NotImplementedError

    def loop(
        self, goes: Callable[..., Array], step: Callable[..., Sequence[Array]], arrays: Sequence[Array]
    ) -> list[Array]:
        """The arrays taken further by `step` as long as `goes` of them holds; their shapes and dtypes stay."""
        raise NotImplementedError

    def summary(self, array: Array) -> str | None:
        """What people see in the place of values that would have to be computed; None where they are there."""
        return None

    def dump(self, array: Array) -> Any:
        return self.to_numpy(array)

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Array:
        return self.from_numpy(state, copy=keys is not None)


def over_leaf(device: Backend, leaf: Backend) -> Backend:
    """The chain of a backend over another leaf."""
    return device.over(over_leaf(device.inner, leaf)) if isinstance(device, Decorator) else leaf


def living() -> list[Backend]:
    """All backends that there are, without the levels of transforms."""
    with _Interned._lock:
        return list(_Interned._made)


def forget(name: str) -> None:
    """Drop what every backend keeps of a primitive: it was declared anew."""
    for backend in living():
        vars(backend).pop(name, None)


J = TypeVar("J", bound=Backend, covariant=True)


class Decorator(Backend, Generic[J]):
    """A backend built on an inner backend, whose arrays wrap the inner one's.

    A subclass says how arrays are wrapped and how primitives are run; all else passes through.
    """

    inner: J
    viewed: Decorator[Any] | None = None  # the level that this one stands for, with other options: of the same arrays

    def __init__(self, inner: J) -> None:
        if not isinstance(inner, Backend):
            raise errors.DeviceError(
                f"{type(self).__name__} decorates a backend such as ad.NumPy(); received {inner!r}"
            )
        self.inner = inner
        self.weak = inner.weak  # type: ignore[method-assign]
        self.traces = inner.traces

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner,)

    def registry(self) -> MutableMapping[tuple[Any, ...], Any]:
        return vars(self.inner).setdefault("decorated", {})  # type: ignore[no-any-return]  # goes when the inner one goes

    def over(self, other: Backend) -> Backend:
        """The same level, with the same options, over another inner backend; there and back is the level itself."""
        if other is self.inner:
            return self
        options = self.configuration()[1:]
        if self.interned and self.template is self:
            return type(self)(other, *options)  # type: ignore[arg-type]
        siblings: dict[Backend, Backend] = vars(self).setdefault("_siblings", {self.inner: self})
        if other not in siblings:
            made = type(self)(other, *options) if self.template is self else type(self).fresh(other, *options)  # type: ignore[arg-type]
            siblings[other], vars(made)["_siblings"] = made, siblings
        return siblings[other]

    @classmethod
    def fresh(cls, inner: Backend, *options: Any) -> Self:
        """A level of its own over `inner`, for one call of a transform: no other one equals it.

        What a level is to its tensors is only who it is. Implementations do not depend on that, so a fresh
        level has those of the interned one with the same options, and costs a copy of a dictionary.
        """
        below = inner.template
        template = vars(below).get("decorated", {}).get((cls, below, *options))
        if template is None:
            template = cls(below, *options)  # type: ignore[arg-type]
            if template.interned:
                template.registry()[cls, below, *options] = template  # found again without making it
        level = object.__new__(cls)
        known = vars(level)
        known.update(vars(template))
        known.pop("decorated", None)
        known["inner"], known["_template"] = inner, template
        return level

    def end(self) -> None:
        """Nothing more is computed on this level, or on what decorates it: tensors there refuse work."""
        self.ended = True
        self.forget()
        for level in list(vars(self).pop("decorated", {}).values()):
            level.end()
        for level in list(vars(self).pop("_siblings", {}).values()):
            if not level.ended:
                level.end()

    @property
    def template(self) -> Backend:
        return self.__dict__.get("_template", self)  # type: ignore[no-any-return]

    def wrap(self, value: Array) -> Array:
        """An inner array as a constant of this level."""
        raise NotImplementedError

    def unwrap(self, array: Array) -> Array:
        """The inner array of an array of this level."""
        raise NotImplementedError

    def chain(self) -> Iterator[Backend]:
        yield self
        viewed = self.viewed
        while viewed is not None:
            yield viewed
            viewed = viewed.viewed
        yield from self.inner.chain()

    def lift(self, array: Array, source: Backend) -> Array:
        if source is self or (self.viewed is not None and self._stands_for(source)):
            return array
        return self.wrap(self.inner.lift(array, source))

    def _stands_for(self, level: Backend) -> bool:
        """Whether this is a view of the level, or a view of a view of it."""
        viewed = self.viewed
        while viewed is not None and viewed is not level:
            viewed = viewed.viewed
        return viewed is level

    def detach(self, array: Array) -> Array:
        return self.wrap(self.inner.detach(self.unwrap(array)))

    def remade(self, array: Array, f: Callable[[Array], Array]) -> Array:
        """The array with `f` applied to the inner arrays that it is made of."""
        return self.wrap(f(self.unwrap(array)))

    def copied(self, array: Array) -> Array:
        return self.remade(array, self.inner.copied)

    def moved(self, array: Array, source: Backend) -> Array:
        assert isinstance(source, Decorator)
        return self.remade(array, lambda value: self.inner.moved(value, source.inner))

    def tracked(self, array: Array) -> bool:
        return self.varies(array) or self.inner.tracked(self.unwrap(array))

    def dtype_of(self, array: Array) -> DType:
        return self.inner.dtype_of(self.unwrap(array))

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        return self.wrap(self.inner.from_numpy(values, copy=copy))

    def adopted(self, value: Any) -> Array | None:
        found = self.inner.adopted(value)
        return None if found is None else self.wrap(found)

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.inner.to_numpy(self.unwrap(array))

    def values_of(self, array: Array) -> np.ndarray[Any, Any]:
        return self.inner.values_of(self.unwrap(array))

    def native(self, array: Array) -> Any:
        return self.inner.native(self.unwrap(array))

    def knows(self, array: Array) -> bool:
        return self.inner.knows(self.unwrap(array))

    def verified(self, array: Array, test: Callable[[Any], bool], error: Callable[[Any], Exception]) -> Array:
        return self.remade(array, lambda below: self.inner.verified(below, test, error))

    def bare(self, array: Array) -> Array:
        return self.inner.bare(self.unwrap(array))

    def behind(self, array: Array, value: Array) -> Array:
        return self.remade(array, lambda below: self.inner.behind(below, value))

    def dump(self, array: Array) -> Any:
        return self.inner.dump(self.unwrap(array))

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Array:
        return self.wrap(self.inner.load(state, keys=keys))

    def seed(self, n: int) -> None:
        self.inner.seed(n)

    def next_key(self) -> RandomKey:
        return self.inner.next_key()
