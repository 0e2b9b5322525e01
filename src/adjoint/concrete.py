"""Whether an array has values yet, and what waits for them: checks, choices, loops.

Primitives, rules and functions never ask. Control flow, solvers and `Checked` do, through `concrete_values`. A leaf
that computes later is *lazy*, if it can compute when it is asked, or *staged*, if there are no values before its whole
program runs: then its program chooses and loops itself.
"""

from __future__ import annotations

import contextlib
import contextvars
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Never

import numpy as np

from adjoint import errors
from adjoint.scopes import Block, Variable, innermost

Array = Any
Test = Callable[[Any], Any]  # whether all of some values pass, by operators and functions of NumPy alone
Fault = Callable[[np.ndarray[Any, Any]], Exception]  # the error for values of which some fail


class Values:
    """What a backend knows of values. A leaf that computes at once has them."""

    computes = True  # whether there are values at any time; of PyTorch's tensors on "meta" there are never

    def is_concrete(self, array: Array) -> bool:
        """Whether there are values, without computing any."""
        return True

    def concrete_values(self, array: Array) -> np.ndarray[Any, Any]:
        """All values there are: of a batch, those of every example."""
        return self.to_numpy(array)  # type: ignore[attr-defined, no-any-return]

    def leaf_array(self, array: Array) -> Array:
        """The leaf's array behind all levels: of a batch, that of every example."""
        return array

    def with_primal(self, array: Array, f: Callable[[Array], Array]) -> Array:
        """The array with `f` of the leaf's array of its value, which changes none of the values."""
        return f(array)


class InnerValues(Values):
    """Through a decorator: those of the inner arrays."""

    inner: Any
    unwrap: Callable[[Array], Array]
    map_arrays: Callable[[Array, Callable[[Array], Array]], Array]

    def is_concrete(self, array: Array) -> bool:
        return self.inner.is_concrete(self.unwrap(array))  # type: ignore[no-any-return]

    def concrete_values(self, array: Array) -> np.ndarray[Any, Any]:
        return self.inner.concrete_values(self.unwrap(array))  # type: ignore[no-any-return]

    def leaf_array(self, array: Array) -> Array:
        return self.inner.leaf_array(self.unwrap(array))

    def with_primal(self, array: Array, f: Callable[[Array], Array]) -> Array:
        return self.map_arrays(array, lambda below: self.inner.with_primal(below, f))


# --- leaves that compute later -------------------------------------------------------------------


class Lazy:
    """A leaf that computes values when they are asked for."""

    def computed(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The values of several arrays, computed at once."""
        raise NotImplementedError

    def persisted(self, arrays: Sequence[Array]) -> list[Array]:
        """The same arrays, computed at once, and kept where they were computed."""
        raise NotImplementedError

    def checked(self, array: Array, test: Test, error: Fault) -> Array:
        """The same array: whoever computes a part of it that fails the test gets the error.

        Test and error may be sent to other processes: they hold no tensors.
        """
        raise NotImplementedError

    def summary(self, array: Array) -> str:
        """What people see in the place of values that would have to be computed."""
        raise NotImplementedError


class Callbacks:
    """The code of functions that are called for their effects alone, and how many there are so far.

    What they fill, such as a list of losses, is none of what the functions around them read.
    """

    def __init__(self) -> None:
        self.count = 0
        self._known: weakref.WeakSet[types.CodeType] = weakref.WeakSet()

    def add(self, f: Callable[..., Any]) -> None:
        code = getattr(f, "__code__", None)
        if code is not None and code not in self._known:
            self._known.add(code)
            self.count += 1

    def __contains__(self, code: types.CodeType) -> bool:
        return code in self._known


callbacks = Callbacks()


class DrawsError(errors.TrackedError):
    """A step of a loop, or a branch, draws random numbers, and nobody has said that it may."""


def drawing_refused() -> Never:
    raise DrawsError("a step of a loop that is recorded draws a random number")


class Staged:
    """A leaf that records a program, which runs later: it chooses and loops by what has no value yet."""

    scans = False  # whether it loops over slices of arrays, too
    hosts = False  # whether its program can call functions of NumPy arrays

    def is_length(self, n: Any) -> bool:
        """Whether it is a size that is another one in other runs of the program, of which loops may be as long."""
        return False

    def branch(self, index: Array, branches: Sequence[Callable[..., Any]], arrays: Sequence[Array]) -> list[Array]:
        """What the branch of this number gives for the arrays; all give arrays of the same shapes and dtypes."""
        raise NotImplementedError

    def loop(
        self, goes: Callable[..., Array], step: Callable[..., Sequence[Array]], arrays: Sequence[Array]
    ) -> list[Array]:
        """The arrays taken further by `step` as long as `goes` of them holds; their shapes and dtypes stay."""
        raise NotImplementedError

    def scan(
        self,
        step: Callable[..., Sequence[Array]],
        carry: Sequence[Array],
        rows: Sequence[Array],
        length: int,
        reverse: bool,
        numbers: int,
    ) -> list[Array]:
        """The carry taken further by `step`, with one slice of each row after the other, and what else it gives,
        stacked.

        Raises DrawsError for a step that draws random numbers without a source, TrackedError for one with a loop to
        which what stands for Python's `numbers`, slices of the first rows, says how long it goes on.
        """
        raise NotImplementedError

    def source_of_keys(self) -> Any:
        """What steps of a loop draw random keys from, for each run of the program another one."""
        raise NotImplementedError

    def drawing(self, source: Any, number: Array | None) -> contextlib.AbstractContextManager[None]:
        """In this block a step of a loop runs, which draws the same keys wherever its number is the same.

        Without a source it must not draw, and raises DrawsError.
        """
        raise NotImplementedError

    def aside(self, loop: bool = True) -> contextlib.AbstractContextManager[None]:
        """In this block nothing is recorded to stay: a step of a loop or a branch is run for shapes and dtypes."""
        return contextlib.nullcontext()

    def host(
        self, f: Callable[..., list[Any]], arrays: Sequence[Array], specs: Sequence[tuple[Any, Any]]
    ) -> list[Array]:
        """What f gives for these arrays when the program runs: NumPy arrays of these shapes and dtypes."""
        raise NotImplementedError

    def call(self, f: Callable[..., None], arrays: Sequence[Array]) -> None:
        """Have f called with the values of these arrays, as NumPy arrays, when the program runs."""
        raise NotImplementedError


class Check(NamedTuple):
    """A check of a program that runs later: arrays of its leaf, whether they pass and which they are, and the error."""

    holds: Array
    values: Array
    error: Fault

    def settle(self, holds: Any, values: Any) -> None:
        """Raise the error, now that there are values, if they fail."""
        if not np.all(holds):
            raise self.error(np.asarray(values))


_collecting: Variable[list[Check]] = contextvars.ContextVar("adjoint_checks", default=None)


def collected_checks(checks: list[Check] | None = None) -> Block[list[Check]]:
    """In this block, a list of the checks that wait for values: who runs the program returns them, and settles them.

    Without anyone who collects them they are left out.
    """
    return Block(_collecting, [] if checks is None else checks)


def collecting() -> list[Check] | None:
    """The list of checks that wait for values, if somebody collects them."""
    block = innermost(_collecting)
    return None if block is None else block.value
