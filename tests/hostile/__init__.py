"""Calls of public functions with arguments that nobody should pass, and what may come of them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import resource
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import adjoint as ad
from adjoint import errors
from adjoint.decorators import autodiff
from adjoint.devices import here
from adjoint.primitives import ELEMENTWISE, TABLE
from hostile import calls, values

LONGEST = 1000  # characters of a message
SECONDS = 10  # for a call, of the processor: others may keep it busy
MEMORY = 3 * 2**30  # that calls may take beside what there is

# options that are functions: others in their place raise what they raise
_FUNCTIONS = set(
    "solver linear_solver callback method distance_function shape dtype definition batching sparsity taylor operations "
    "into promotes pushforward implementation".split()
)

# Errors that are not ours: of what Python and NumPy call, which have read the arguments themselves, or of print.
OTHERS: dict[str, tuple[type[Exception], ...]] = {
    "Tensor.__format__": (ValueError, TypeError, DeprecationWarning),  # as of any number with such a format
    "Tensor.__array__": (ValueError, TypeError, DeprecationWarning, RecursionError),  # NumPy's of a wrong dtype
    "debug.print": (ValueError,),  # of integers that Python does not write out, or a terminal does not show
    "Tensor.__dlpack__": (BufferError, ValueError, TypeError, OverflowError, RuntimeError, AssertionError, IndexError),
}


class Slow(BaseException):
    """A call that takes too long; nobody catches it on the way."""


def called(name: str) -> Any:
    """The public function of a name, or the method of `Tensor`; None for a name that only says what to write."""
    try:
        return operator.attrgetter(name)(ad)
    except AttributeError:
        return None


class Call(NamedTuple):
    """A function by its name, and the arguments of one call, or of several: `grad(f)(x)` calls what it made."""

    name: str
    source: str

    def stages(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """The arguments, made anew."""
        found: list[tuple[list[Any], dict[str, Any]]] = []

        def record(*args: Any, **options: Any) -> Any:
            found.append((list(args), options))
            return record

        eval(self.source, {"__builtins__": {"slice": slice}}, values.Scope(_=record))
        return found

    def places(self) -> list[tuple[int, int | str]]:
        """What can be replaced: of each stage the arguments by position, and options, also those that are left out."""
        found: list[tuple[int, int | str]] = []
        for stage, (args, options) in enumerate(self.stages()):
            found += [(stage, i) for i in range(len(args))]
            names = dict.fromkeys(options)
            if not stage:
                names |= dict.fromkeys(_left_out(called(self.name), len(args)))
            found += [(stage, name) for name in names]
        if self.name.startswith("Tensor."):  # a method is called on a tensor
            found.remove((0, 0))
        return found

    def takes_function(self, place: tuple[int, int | str]) -> bool:
        """Whether a function stands there. Others raise what they raise, but one that returns a value may do."""
        stage, key = place
        args, options = self.stages()[stage]
        return key in _FUNCTIONS or callable(args[key] if isinstance(key, int) else options.get(key))

    def run(self, changed: dict[tuple[int, int | str], Any]) -> Any:
        """The call with other arguments in some places."""
        out = called(self.name)
        for stage, (args, options) in enumerate(self.stages()):
            if not callable(out):
                break
            for (where, place), value in changed.items():
                if where == stage and isinstance(place, int):
                    args[place] = value
                elif where == stage:
                    options[place] = value
            out = out(*args, **options)
        if isinstance(out, (ad.use_device, ad.use_dtype, ad.testing.source_locations)):
            with out:  # without which they say so, or stay
                pass
        return out


@functools.cache
def _signature(function: Any) -> Any:
    return inspect.signature(function.__init__ if inspect.isclass(function) else function)


def _left_out(function: Any, given: int) -> list[str]:
    try:
        parameters = list(_signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    parameters = parameters[1:] if inspect.isclass(function) else parameters
    named = [p.kind is p.KEYWORD_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and i >= given)
             for i, p in enumerate(parameters)]  # fmt: skip
    return [p.name for p, left in zip(parameters, named, strict=True) if left]


def _calls() -> list[Call]:
    found = []
    for names, arguments in [
        (calls.ELEMENTWISE, "V"),
        (calls.PAIRS, "V, V"),
        (calls.REDUCTIONS, "M"),
        (calls.REDUCTIONS, "M, axis=1"),
        (calls.INTEGERS, "I, I"),
        (calls.MATRICES, "M"),
        (calls.TREES, "[V, 1.0]"),
    ]:
        found += [Call(name, f"_({arguments})") for name in names.split()]
    for line in calls.OTHERS.strip().splitlines():
        name, _, rest = line.partition("(")
        found.append(Call(name, f"_({rest}"))
    known = {call.name for call in found}
    for name, primitive in TABLE.items():  # what was added since
        if primitive.kind is ELEMENTWISE and not primitive.parameters and name in ad.__all__ and name not in known:
            found.append(Call(name, f"_({', '.join('V' for _ in primitive.operands)})"))
    return found


CALLS = _calls()


def _topics() -> dict[str, list[Call]]:
    """The calls by module, and those of the package itself by letters."""
    found: dict[str, list[Call]] = {}
    for call in CALLS:
        module, _, name = call.name.rpartition(".")
        found.setdefault(module or ("a to l" if name.lower() < "m" else "m to z"), []).append(call)
    return found


TOPICS = _topics()


def judged(call: Call, error: BaseException) -> str | None:
    """What is wrong with an error; None if it is one that users should see, or comes out of their function."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    origin = "" if trace is None else trace.tb_frame.f_code.co_filename
    if origin == values.__file__ or (call.name.startswith("scipy.") and "/adjoint/" not in origin):
        return None  # the second: SciPy says of a search what it says without us
    if isinstance(error, Slow):
        return f"no answer in {SECONDS} seconds"
    if isinstance(error, OTHERS.get(call.name, ())):
        return None
    if not isinstance(error, errors.AdjointError):
        return f"{type(error).__name__}: {error}"[:300]
    message = str(error)
    if len(message) > LONGEST:
        return f"a message of {len(message)} characters: {message[:200]}"
    return None


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Warnings are errors, but those of floating-point numbers; a call that takes long ends, and memory is bounded."""

    def stop(number: int, frame: Any) -> None:
        raise Slow

    before, limits = signal.signal(signal.SIGPROF, stop), resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")  # Linux says how much is taken
    if pages.exists():
        taken = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, limits[1]))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def state() -> Any:
    """What a call must leave as it was."""
    return ad.default_device(), ad.default_dtype(), here.get(), np.geterr(), autodiff._tracing


def answered(call: Call, changed: dict[tuple[int, int | str], Any]) -> BaseException | None:
    """The error of a call, None if it gives a result."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        call.run(changed)
    except (Exception, Slow) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None
