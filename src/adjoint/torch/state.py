"""The modes of a thread: whether gradients are recorded, and the contexts and decorators that say so.

Hot functions look at one number, `special`: how many threads have any mode on. While it is zero, everything is
recorded, and they ask no further.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from typing import Any

from adjoint.locks import lock

special = 0
_lock = lock()


class Modes(threading.local):
    enabled = True  # gradients are recorded
    inference = False
    saved_hooks: tuple[Any, ...] = ()  # of this thread, the innermost last
    duals: Any = None  # the level of forward mode
    drawing: tuple[Any, ...] = ()  # of each vmap around: what random functions may draw, and for how many examples
    no_saved_hooks: str | None = None  # why there may be none


modes: Modes = Modes()


def add_special(n: int) -> None:
    """One thread more, or less, has a mode on."""
    global special
    with _lock:
        special += n


def set_enabled(on: bool) -> None:
    """Record gradients in this thread, or do not."""
    if modes.enabled != on:
        add_special(-1 if on else 1)
        modes.enabled = on


def set_inference(on: bool) -> None:
    if modes.inference != on:
        add_special(1 if on else -1)
        modes.inference = on


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

    __slots__ = ("before", "on")

    def __init__(self, on: bool) -> None:
        self.on: bool = on

    def __enter__(self) -> None:
        self.before: bool = modes.enabled
        set_enabled(self.on)

    def __exit__(self, *_: object) -> None:
        set_enabled(self.before)


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
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(modes.enabled)
        set_enabled(self._on)

    def __exit__(self, *_: object) -> None:
        set_enabled(self._before.pop())


class enable_grad(no_grad):
    """Gradients are recorded inside, also within `no_grad`."""

    _on = True


class set_grad_enabled(_Context):
    """Record gradients or not: from now on, or inside of a `with` block, or in a decorated function."""

    def __init__(self, mode: bool) -> None:
        self._before = modes.enabled
        self._mode = bool(mode)
        set_enabled(self._mode)

    def __call__(self, function: Any) -> Any:
        set_enabled(self._before)
        return super().__call__(function)

    def clone(self) -> Any:
        return type(self)(self._mode)

    def __enter__(self) -> None:
        set_enabled(self._mode)

    def __exit__(self, *_: object) -> None:
        set_enabled(self._before)


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
        self._before: list[tuple[bool, bool]] = []

    def clone(self) -> Any:
        return inference_mode(self._mode)

    def __enter__(self) -> None:
        self._before.append((modes.enabled, modes.inference))
        set_inference(self._mode)
        set_enabled(not self._mode)

    def __exit__(self, *_: object) -> None:
        enabled, inference = self._before.pop()
        set_enabled(enabled)
        set_inference(inference)
