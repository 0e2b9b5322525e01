"""The modes of a thread: whether gradients are recorded, and the contexts and decorators that say so.

Hot functions look at one number, `special`: how many modes are on, of all threads. While it is zero, everything is
recorded, and they ask no further.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
import weakref
from typing import Any, Generic, TypeVar

from adjoint.locks import lock
from adjoint.scopes import Block, nobody

special = 0
_lock = lock()


def add_special(n: int) -> None:
    """One thread more, or less, has a mode on."""
    global special
    with _lock:
        special += n


T = TypeVar("T")


class _Said(Block[T]):
    """What a block says; whether it is in `special`."""

    __slots__ = ("counts",)

    def __init__(self, value: T, outer: Any, holder: Any) -> None:
        self.value, self.outer, self.holder, self.counts = value, outer, holder, False

    def count(self, on: bool) -> None:
        global special
        with _lock:
            if self.counts != on:
                special += 1 if on else -1
                self.counts = on  # no signal comes between the two


def _always() -> bool:
    """The holder of what holds from now on."""
    return True


class Mode(threading.local, Generic[T]):
    """What one thing is in this thread: by default, in the innermost block that says so, or from now on.

    A block ends with the object of its `with` statement, also where a signal came before its end. Those that say
    something else than the default are counted in `special`.
    """

    def __init__(self, default: T) -> None:
        self._default = default
        self._top: _Said[T] | None = None

    def now(self) -> T:
        while (block := self._top) is not None and block.holder() is None:
            self._drop(block)
        return self._default if block is None else block.value

    def enter(self, holder: object | None, value: T) -> _Said[T]:
        """A block begins, which lasts as long as its holder, or until it is ended; without one it is to be given."""
        self.now()
        self._top = block = _Said(value, self._top, nobody if holder is None else weakref.ref(holder))
        if value != self._default:
            block.count(True)
        return block

    def leave(self, holder: object) -> None:
        """The innermost block of this holder ends."""
        self.now()
        block: Any = self._top
        while block is not None and block.holder() is not holder:
            block = block.outer
        if block is not None:
            self.end(block)

    def end(self, block: _Said[T]) -> None:
        block.holder = nobody  # which is all, in a generator that was left when others had begun
        self.now()

    def mark(self) -> Any:
        """The innermost block, to go back to."""
        self.now()
        return self._top

    def back_to(self, block: Any) -> None:
        """End the blocks that began since the mark, where it is still there."""
        known: Any = self._top
        while known is not None and known is not block:
            known = known.outer
        while known is block and self._top is not block:
            self._drop(self._top)  # type: ignore[arg-type]

    def change(self, value: T) -> None:
        """From now on, until the innermost block ends."""
        self.now()
        block = self._top
        if block is None:
            self._top = block = _Said(value, None, _always)
        block.value = value
        block.count(value != self._default)
        if block.holder is _always and value == self._default:
            self._top = None

    def _drop(self, block: _Said[T]) -> None:
        block.count(False)
        self._top = block.outer  # type: ignore[assignment]


recorded: Mode[tuple[bool, bool]] = Mode(
    (True, False)
)  # whether gradients are recorded, and whether this is inference mode
saved_hooks: Mode[tuple[Any, ...]] = Mode(())  # of this thread, the innermost last
no_saved_hooks: Mode[str | None] = Mode(None)  # why there may be none
duals: Mode[Any] = Mode(None)  # the level of forward mode
transforms: Mode[tuple[Any, ...]] = Mode(())  # the function transforms that run in this thread, the innermost last


class Modes(threading.local):
    drawing: tuple[Any, ...] = ()  # of each vmap around: what random functions may draw, and for how many examples
    passes: tuple[Any, ...] = ()  # the backward passes that run, the innermost last

    @property
    def enabled(self) -> bool:
        return recorded.now()[0]

    @property
    def inference(self) -> bool:
        return recorded.now()[1]

    @property
    def saved_hooks(self) -> tuple[Any, ...]:
        return saved_hooks.now()

    @property
    def duals(self) -> Any:
        return duals.now()

    @property
    def transforms(self) -> tuple[Any, ...]:
        return transforms.now()


modes: Modes = Modes()


def running() -> Any:
    """The backward pass that runs in this thread, the innermost, or None."""
    return modes.passes[-1] if modes.passes else None


anomaly = (False, True)  # of all threads: whether anomalies are looked for, and whether nan is one


def set_anomaly(on: bool, check_nan: bool = True) -> None:
    """Look for anomalies in all threads, or do not."""
    global anomaly
    if anomaly[0] != on:
        add_special(1 if on else -1)
    anomaly = (on, check_nan)


def is_grad_enabled() -> bool:
    """Whether gradients are recorded in this thread."""
    return modes.enabled


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return modes.inference


class grad_mode:
    """A block in which gradients are recorded, or not; the inside of backward passes runs in it."""

    __slots__ = ("block", "on")

    def __init__(self, on: bool) -> None:
        self.on: bool = on

    @property
    def __exit__(self) -> Any:  # `with` asks for this first, and keeps it until the end: see `scopes.Block`
        self.block = recorded.enter(None, (self.on, recorded.now()[1]))
        leave = self._leave  # after this no error may come: tracebacks keep what functions have
        self.block.holder = weakref.ref(leave)
        return leave

    def __enter__(self) -> None:
        pass

    def _leave(self, *_: object) -> None:
        recorded.end(self.block)


class in_transform:
    """A block in which a function transform runs its function; `differentiates` says whether it is no `vmap`.

    `given` are arguments that it does not differentiate by, to which its function may write all the same.
    """

    __slots__ = ("before", "block", "differentiates", "given", "roots")

    def __init__(self, differentiates: bool, given: Any = ()) -> None:
        self.differentiates: bool = differentiates
        self.given: Any = given
        self.before: list[Any] = []  # what those were that were written to, and what they are views of
        self.roots: list[Any] = []  # ... and which of them are no views

    @property
    def __exit__(self) -> Any:  # as in `grad_mode`
        self.block = transforms.enter(None, (*transforms.now(), self))
        leave = self._leave
        self.block.holder = weakref.ref(leave)
        return leave

    def __enter__(self) -> None:
        pass

    def _leave(self, *_: object) -> None:
        transforms.end(self.block)
        del self.block  # which refers to this


class _Context:
    """A context that is a decorator, too: of functions, generators and coroutines."""

    def clone(self) -> Any:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. "
                "You should only decorate functions or methods. To preserve the current behavior of class decoration, "
                "you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            setattr(function, "__init__", self(function.__init__))  # noqa: B010
            return function
        if inspect.isgeneratorfunction(function):
            return _generator(function, self)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **options: Any) -> Any:
                with self.clone():
                    return await function(*args, **options)

            return coroutine

        @functools.wraps(function)
        def decorated(*args: Any, **options: Any) -> Any:
            with self.clone():
                return function(*args, **options)

        return decorated


def _generator(function: Any, context: _Context) -> Any:
    """A generator function whose body runs in the context, and what it yields to does not."""

    @functools.wraps(function)
    def generator(*args: Any, **options: Any) -> Any:
        running = function(*args, **options)
        try:
            with context.clone():
                item = running.send(None)
            while True:
                try:
                    answer = yield item
                except GeneratorExit:
                    with context.clone():
                        running.close()
                    raise
                except BaseException as error:
                    with context.clone():
                        item = running.throw(error)
                else:
                    with context.clone():
                        item = running.send(answer)
        except StopIteration as stop:
            return stop.value

    return generator


class no_grad(_Context):
    """Nothing is recorded inside: what is computed there requires no gradient."""

    _on = False

    def __new__(cls, function: Any = None) -> Any:
        made = object.__new__(cls)
        return made if function is None else made(function)

    def __init__(self, function: Any = None) -> None:
        pass

    def __enter__(self) -> None:
        recorded.enter(self, (self._on, recorded.now()[1]))

    def __exit__(self, *_: object) -> None:
        recorded.leave(self)


class enable_grad(no_grad):
    """Gradients are recorded inside, also within `no_grad`."""

    _on = True


class set_grad_enabled(_Context):
    """Record gradients or not: from now on, or inside of a `with` block, or in a decorated function."""

    def __init__(self, mode: bool) -> None:
        if mode.__class__ is not bool:
            raise TypeError(f"set_grad_enabled(): argument 'enabled' must be bool, not {type(mode).__name__}")
        self._before: tuple[bool, bool] | None = recorded.now()
        self._mode = mode
        recorded.change((self._mode, self._before[1]))

    def _only_inside(self) -> None:
        """It was the object of a block, or a decorator: outside all is as it was."""
        if self._before is not None:
            recorded.change(self._before)
            self._before = None

    def __call__(self, function: Any) -> Any:
        self._only_inside()
        return super().__call__(function)

    def clone(self) -> Any:
        return type(self)(self._mode)

    def __enter__(self) -> None:
        self._only_inside()
        recorded.enter(self, (self._mode, recorded.now()[1]))

    def __exit__(self, *_: object) -> None:
        recorded.leave(self)


class inference_mode(_Context):
    """As `no_grad`; what is made inside can be part of no graph later."""

    def __new__(cls, mode: Any = True) -> Any:
        made = object.__new__(cls)
        if callable(mode):
            made.__init__(True)  # type: ignore[misc]
            return made(mode)
        return made

    def __init__(self, mode: Any = True) -> None:
        self._mode = bool(mode)

    def clone(self) -> Any:
        return inference_mode(self._mode)

    def __enter__(self) -> None:
        recorded.enter(self, (not self._mode, self._mode))

    def __exit__(self, *_: object) -> None:
        recorded.leave(self)
