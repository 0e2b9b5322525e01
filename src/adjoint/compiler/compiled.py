"""`ad.compile`."""

from __future__ import annotations

import collections
import contextvars
import copy
import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.compiler.environment import environment, plain
from adjoint.compiler.graph import Graph
from adjoint.compiler.numbers import follow_from
from adjoint.compiler.programs import Place, Program, Result, placed, results_of
from adjoint.compiler.rules import Family, Rules
from adjoint.compiler.traced import Traced
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import current_level, default_device, libraries_imported, observed_leaf
from adjoint.functions.arguments import check_callable, is_numeric
from adjoint.graph.nodes import LeafNode
from adjoint.lines import PACKAGE
from adjoint.module.fields import Fields
from adjoint.operands import lift_to
from adjoint.tensor import Tensor, raw_array, refuse_ended, wrap
from adjoint.transforms.arguments import array_of, base_of, to_numpy
from adjoint.transforms.closures import substituted
from adjoint.transforms.libraries import of_any_library

KEPT = 64  # programs of one function
OFTEN = 8  # recordings after which a warning says what changes

_disabled: contextvars.ContextVar[bool] = contextvars.ContextVar("adjoint_compile_disabled", default=False)


def compile(f: Callable[..., Any]) -> Compiled:
    """f, recorded once as a graph of primitives, which is what runs from then on.

    The first call with arguments of some types runs f on tensors that have no values and records what it does: with
    all derivatives that are taken in it, with choices and loops (`ad.cond`, `ad.while_loop`, `ad.scan` and their like)
    as parts of the graph. Later calls run the graph, without what Python and adjoint do between primitives. Results are
    those of f: of tensors tensors, of NumPy arrays NumPy arrays.

    Tensors and arrays are traced: other shapes, dtypes or devices make another recording, other values do not. All else
    counts as it is: Python's numbers, strings, functions, settings of modules. An integer that is another one in the
    next call is traced from then on where it can be. A warning says what changes when there are many recordings.

    Transforms may be in f and around it, as in `ad.grad(ad.compile(f))`. `f.lower(*args)` shows the graph.
    On NumPy what can be is machine code, if llvmlite is installed (`adjoint[compile]`), and a warning says once if it
    is not; `ADJOINT_COMPILE=replay` has NumPy called instead. The environment variable `ADJOINT_COMPILE=0` and
    `with ad.disable_compile():` run f as it is.

    Parameters
    ----------
    f
        A function of pytrees. It is run with tensors in the place of arrays. It reads closures and names of its module
        anew with each call, but attributes of objects only when it is recorded; it assigns to no tensor but its own.

    Raises
    ------
    ArgumentTypeError
        f is no function; an argument that is neither an array nor hashable.
    TrackedError
        While recording: f asks for a value, with the line that does; it assigns to a tensor that is not its own.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> slope = ad.compile(ad.grad(lambda x: (ad.sin(x) * x).sum()))
    >>> slope(np.array([0.0, 1.0])).round(3)
    array([0.   , 1.382])
    >>> print(ad.compile(lambda x: (x * x).sum()).lower(np.array([0.0, 1.0])))
    inputs a: float64[2]
    b: float64[2] = multiply(a, a)
    c: float64[] = sum(b; axis=(0,), keepdims=False)
    outputs c
    """
    check_callable("compile", f)
    return Compiled(f)


class disable_compile:
    """In a `with` block, functions of `ad.compile` run as they are: to look at values, or for a debugger.

    >>> import adjoint as ad
    >>> @ad.compile
    ... def f(x):
    ...     return x * 2 if x > 0 else x
    >>> with ad.disable_compile():
    ...     f(ad.tensor(1.5)).item()
    3.0
    """

    def __enter__(self) -> None:
        self._token = _disabled.set(True)

    def __exit__(self, *_: object) -> None:
        _disabled.reset(self._token)


def _is_disabled() -> bool:
    return _disabled.get() or os.environ.get("ADJOINT_COMPILE") == "0"


class Lowered:
    """A function as a graph. `str` gives it as text, `source` the Python function that runs it."""

    def __init__(self, program: Program) -> None:
        self.graph: Graph = program.graph
        self.recorded: Graph = program.recorded
        self.source: str = program.replay.source

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        return f"<graph of {self.graph.size()} equations>"


class Compiled:
    """What `compile` makes of a function: call it as the function."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.f, self.of_module = f, isinstance(f, Fields)
        self.name: str = getattr(f, "__name__", type(f).__name__)
        self._programs: collections.OrderedDict[Any, Program] = collections.OrderedDict()
        self._families: collections.OrderedDict[Any, _Called] = collections.OrderedDict()
        self._recordings = 0
        self._last: _Seen | None = None
        self._again: _Again | None = None
        self.varying: set[Any] = set()  # places of integers that are traced
        self._fixed: set[Any] = set()  # ... and of those that cannot be

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _of_any_library(self, *args, **kwargs) if libraries_imported() else self.run(*args, **kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.f, '__qualname__', self.f)}>"

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The graph for these arguments, which is recorded if it has not been yet."""
        call = _Signature(self, args, kwargs)
        if call.foreign:  # where it runs as it is: what the leaf would be asked
            call.device = call.base
            program = call.recorded()
            assert program is not None
            return Lowered(program)
        if call.around or call.recording:
            raise errors.ArgumentError(f"{self.name}.lower: called inside of a transform; lower what is compiled there")
        return Lowered(self._program(call))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The call, where there are no arrays of other libraries."""
        if _is_disabled():
            return _eager(self.f, args, kwargs)
        again = self._again
        if again is not None and not kwargs and current_level() is None:
            leaves, structure = trees.flatten(args)
            if structure == again.structure and (arrays := again.arrays(self.f, leaves)) is not None:
                if again.as_numpy:
                    return again.program.arrays(arrays)
                return again.program.tensors(arrays, [x for x in leaves if x.__class__ in (Tensor, np.ndarray)])
        call = _Signature(self, args, kwargs)
        if call.recording:
            return self.f(*args, **kwargs)
        if call.foreign:  # a decorator of which nothing is known here
            return _eager(self.f, args, kwargs)
        if call.around:
            return self._called(call)
        program = self._program(call)
        if program.live:
            return self._called(call)
        self._again = _Again.after(call, program)
        return program.arrays(call.arrays) if call.as_numpy else program.tensors(call.arrays, call.inputs)

    def _program(self, call: _Signature) -> Program:
        program = self._programs.get(call.key)
        if program is None:
            self._settle(call)
            program = self._programs.get(call.key)
            if program is None:
                program = self._recorded(call)
        return program

    def _settle(self, call: _Signature) -> None:
        """Have integers traced that are others than in the last call, where nothing else is."""
        last = self._last
        if last is None or last.structure != call.structure or len(last.specs) != len(call.specs):
            return
        differ = [i for i, (x, y) in enumerate(zip(last.specs, call.specs, strict=True)) if x != y]
        if differ and all(
            [call.specs[i][0] is int and last.specs[i][0] is int and i not in self._fixed for i in differ]
        ):
            self.varying.update(differ)
            call.read()

    def _recorded(self, call: _Signature) -> Program:
        self._count(call)
        try:
            program = call.recorded()
        except (errors.AdjointError, TypeError):
            if not call.numbers:
                raise
            program = None
        if program is None:  # numbers are what they are
            self.varying.difference_update(call.numbers)
            self._fixed.update(call.numbers)
            call.read()
            program = call.recorded()
            assert program is not None
        self._programs[call.key] = program
        self._last = call.seen()
        while len(self._programs) > KEPT:
            self._programs.popitem(last=False)
        return program

    def _count(self, call: _Signature) -> None:
        self._recordings += 1
        if self._recordings == OFTEN and self._last is not None:
            warnings.warn(
                f"{self.name} was recorded {OFTEN} times, which takes longer than running it once: "
                f"{call.difference(self._last)}",
                RuntimeWarning,
                stacklevel=_callers(),
            )

    def _called(self, call: _Signature) -> Any:
        """The call on levels that have to see it."""
        called = self._families.get(call.key)
        if called is None:
            self._count(call)
            self._last = call.seen()
            called = self._families[call.key] = _Called(copy.copy(call))
            while len(self._families) > KEPT:
                self._families.popitem(last=False)
        return called.run(call)


@of_any_library
def _of_any_library(compiled: Compiled, *args: Any, **kwargs: Any) -> Any:
    return compiled.run(*args, **kwargs)


class _Again(NamedTuple):
    """The last call, where the next one can be seen to be of its kind without reading all of it anew."""

    structure: Any
    specs: list[tuple[Any, ...]]  # of leaves: the class, and what is looked at
    base: Backend
    surroundings: tuple[Any, ...]
    guard: tuple[Any, ...]
    as_numpy: bool
    program: Program

    @classmethod
    def after(cls, call: _Signature, program: Program) -> _Again | None:
        if call.named or call.of_module or call.closed or call.numbers or call.level is not None:
            return None
        specs: list[tuple[Any, ...]] = []
        for x, spec in zip(call.leaves, call.specs, strict=True):
            if x.__class__ is np.ndarray:
                specs.append((np.ndarray, *spec))
            elif x.__class__ is Tensor and getattr(x._array, "node", None) is None:
                specs.append((Tensor, x.shape, x._dtype, x._device))
            elif x.__class__ in (bool, int, str, type(None)):
                specs.append((x.__class__, x))
            else:
                return None
        return cls(call.structure, specs, call.base, _surroundings(), call.guard, call.as_numpy, program)

    def arrays(self, f: Any, leaves: Sequence[Any]) -> list[Any] | None:
        """The arrays of this call, if it is of the same kind."""
        found = []
        for x, spec in zip(leaves, self.specs, strict=True):
            if x.__class__ is not spec[0]:
                return None
            if spec[0] is np.ndarray:
                if x.shape != spec[1] or x.dtype is not spec[2]:
                    return None
                found.append(self.base.from_numpy(x, copy=False))
            elif spec[0] is Tensor:
                if x._device is not spec[3] or x._dtype is not spec[2] or x.shape != spec[1]:
                    return None
                if getattr(x._array, "node", None) is not None:
                    return None
                found.append(x._device.leaf_array(x._array))
            elif x != spec[1]:
                return None
        return found if _surroundings() == self.surroundings and environment(f)[1] == self.guard else None


def _surroundings() -> tuple[Any, ...]:
    return default_device(), dtypes.default_dtype(), dtypes.chosen_dtype()


class _Seen(NamedTuple):
    """An earlier call, without its arrays."""

    structure: Any
    specs: list[Any]
    leaves: list[Any]
    guard: tuple[Any, ...]


# --- one call --------------------------------------------------------------------------------------


class _Signature:
    """A call: its arrays, and the key of all that the recording depends on."""

    def __init__(self, owner: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.f, self.name, self.of_module = owner.f, owner.name, owner.of_module
        self.varying, self.named = owner.varying, bool(kwargs)
        self.level = level = current_level()
        self.recording = level is not None and isinstance(level.leaf, Traced)
        if self.recording:
            return
        f = self.f
        given: Any = (args, kwargs) if not self.of_module else (f, args, kwargs)
        self.leaves, self.structure = trees.flatten(given if kwargs or self.of_module else args)
        self.closed, self.guard = ([], ()) if self.of_module else environment(f)
        tensors = [x for x in (*self.leaves, *self.closed) if isinstance(x, Tensor)]
        self.as_numpy = level is None and not any([isinstance(x, Tensor) for x in self.leaves])
        for x in tensors:
            refuse_ended(x, self.name)
        self.device: Backend = base_of(tensors, self.name) if tensors or level is not None else default_device()
        self.recording = isinstance(self.device.leaf, Traced)
        if self.recording:
            return
        self.base = observed_leaf(self.device)
        self.around = not all([_is_users(d, self.base) for d in {x._device for x in tensors} | {self.device}])
        self.foreign = self.around and not any([level.is_fresh for level in self.device.chain()])
        self.read()

    def read(self) -> None:
        """Look at the leaves: which are traced, and as what."""
        self.inputs: list[Any] = []  # what has arrays, closed-over tensors last
        self.places: list[int] = []  # of inputs among the leaves
        self.numbers: list[int] = []  # ... which are integers
        self.specs: list[Any] = []
        for i, x in enumerate(self.leaves):
            self.specs.append(self._spec(i, x))
        self.inputs += self.closed
        specs = (*self.specs, *[self._of_tensor(x) for x in self.closed])
        self.key = (
            self.structure,
            specs,
            self.device,
            self.guard,
            self.as_numpy,
            dtypes.default_dtype(),
            dtypes.chosen_dtype(),
        )
        try:
            hash(self.key)
        except TypeError:
            self.key = (_Equal(self.structure), *self.key[1:])

    def _spec(self, i: int, x: Any) -> Any:
        """What of a leaf the recording depends on; notes those that have arrays."""
        if isinstance(x, Tensor):
            self.inputs.append(x)
            self.places.append(i)
            return self._of_tensor(x)
        if x.__class__ is int and i in self.varying and -(2**63) <= x < 2**63:
            self.numbers.append(i)
            x = np.asarray(x)
            self.inputs.append(x)
            self.places.append(i)
            return int, None
        if isinstance(x, (np.ndarray, np.generic)):
            if not is_numeric(x):
                raise errors.ArgumentTypeError(
                    f"{self.name}: {self.path(i)} is an array of {x.dtype}; arrays are of numbers or booleans"
                )
            self.inputs.append(x)
            self.places.append(i)
            return x.shape, dtypes.as_dtype(x.dtype)
        found = plain(x)
        try:
            hash(found)
        except TypeError:
            raise errors.ArgumentTypeError(
                f"{self.name}: {self.path(i)} is {errors.shown(x)} of type {type(x).__name__}, which is neither "
                "an array nor hashable, so that another one could not be told from it; pass its parts, or a tuple"
            ) from None
        return found

    def _of_tensor(self, x: Tensor[Any]) -> Any:
        node = getattr(raw_array(x), "node", None)
        kind = "" if node is None else "leaf" if isinstance(node, LeafNode) else "result"
        if not kind and not self.around and x._device.tracked(raw_array(x)):
            self.around = True  # by an inner level
        return x.shape, x._dtype, x._device if not x._device.is_fresh else None, kind

    @property
    def arrays(self) -> list[Any]:
        """The arrays of the inputs, on the backend that computes."""
        return [
            x._device.leaf_array(x._array) if isinstance(x, Tensor) else array_of(x, self.base) for x in self.inputs
        ]

    def path(self, i: int) -> str:
        """How a leaf of the arguments is written."""
        path = trees.paths(self.structure)[i]
        if not self.named and not self.of_module:
            path = f"[0]{path}"
        first, _, rest = path.removeprefix("[").partition("]")
        if first == "0" and self.of_module:
            return f"the module{rest}"
        name, _, rest = rest.removeprefix("[").partition("]")
        return f"argument {name.strip(chr(39))}{rest}"

    def seen(self) -> _Seen:
        """What to compare later calls with."""
        return _Seen(self.structure, self.specs, self.without_arrays(), self.guard)

    def without_arrays(self) -> list[Any]:
        traced = set(self.places)
        return [None if i in traced else x for i, x in enumerate(self.leaves)]

    def difference(self, last: _Seen) -> str:
        """What of this call is not as in the last one."""
        if last.structure != self.structure:
            return f"the structure of the arguments changes, {trees.difference(self.structure, last.structure)}"
        for i, (x, y) in enumerate(zip(self.specs, last.specs, strict=True)):
            if x != y:
                value = not isinstance(self.leaves[i], (Tensor, np.ndarray, np.generic))
                if value:
                    return (
                        f"{self.path(i)} changes, from {errors.shown(last.leaves[i])} to "
                        f"{errors.shown(self.leaves[i])}; make it a tensor or a NumPy number, whose value may change"
                    )
                was, now = (f"{s[1]}{list(s[0])}" if isinstance(s[0], tuple) else errors.shown(s) for s in (y, x))
                where = "" if was != now else ", in its device or in what tracks it"
                return f"{self.path(i)} changes, from {was} to {now}{where}"
        if last.guard != self.guard:
            return "something in its closure or its module changes; make it an argument"
        return "the device, or the default dtype, changes"

    # --- recording ---

    def call(self, tensors: Sequence[Any]) -> Any:
        """f of these tensors in the place of inputs."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, tensors, strict=False):
            leaves[i] = x
        closed = tensors[len(self.places) :]
        given: Any = trees.unflatten(self.structure, leaves)
        if self.of_module:
            module, args, kwargs = given
            return module(*args, **kwargs)
        args, kwargs = given if self.named else (given, {})
        now = environment(self.f)[0]
        f = substituted(self.f, {id(x): y for x, y in zip(now, closed, strict=True)})
        return f(*args, **kwargs)

    def recorded(self) -> Program | None:
        """The program; None where integers that are traced would not count as Python's do."""
        with placed(self.base, self.device) as place:
            given = [self._argument(place, x) for x in self.inputs]
            tensors = [x for _, x in given]
            before = [raw_array(x) for x in tensors]
            guard = self.guard
            out = self.call(tensors)
            self._nothing_assigned(tensors, before, guard)
            leaves, structure = trees.flatten(out)
            nodes = {x._array.node: k for k, x in enumerate(tensors) if getattr(x._array, "node", None) is not None}
            results, outputs = results_of(place, leaves, nodes)
            graph = place.recording.graphs[0]
            graph.inputs, graph.outputs = [value for value, _ in given], outputs
            if any([r.kind == "live" for r in results]) and any([r.kind in ("leaf", "given") for r in results]):
                raise errors.TrackedError(
                    f"{self.name} returns leaves and results that are tracked by its arguments; of a compiled "
                    "step return loss.detach() beside the new leaves"
                )
            if self.numbers:
                numbers = [value for (value, _), i in zip(given, self.places, strict=False) if i in self.numbers]
                found = follow_from(graph, numbers)
                if found is None:
                    return None
                which = iter(outputs)
                for k, r in enumerate(results):
                    if r.kind in ("value", "leaf", "live") and (value := next(which)) in found:
                        if value.shape or value.dtype.kind == "f":
                            return None
                        results[k] = Result("number")
            return Program(self.base, graph, results, structure, self.name)

    def _argument(self, place: Place, x: Any) -> Any:
        if not isinstance(x, Tensor) or self.foreign:
            return place.argument(x.shape, dtypes.as_dtype(x.dtype), self.device)
        node = getattr(x._array, "node", None)
        kind = "" if node is None else "leaf" if isinstance(node, LeafNode) else "result"
        return place.argument(x.shape, x._dtype, x._device, kind)

    def _nothing_assigned(self, tensors: Sequence[Tensor[Any]], before: Sequence[Any], guard: Any) -> None:
        for k, (x, array) in enumerate(zip(tensors, before, strict=True)):
            if raw_array(x) is not array:
                what = self.path(self.places[k]) if k < len(self.places) else "a tensor that the function closes over"
                raise errors.TrackedError(
                    f"{self.name} assigns to {what}, of shape {x.shape}: only results come out of a compiled "
                    "function; assign to a copy, x.copy(), and return it"
                )
        if not self.of_module and environment(self.f)[1] != guard:
            raise errors.TrackedError(
                f"{self.name} changes what is in its closure or its module: it would do so only while it is "
                "recorded; take the old value as an argument, and return the new one"
            )


def _callers() -> int:
    """How many frames of this package stand above a warning's, for its stacklevel."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


class _Equal:
    """A structure that has no hash."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Equal) and bool(self.structure == other.structure)

    def __hash__(self) -> int:
        return 0


def _is_users(device: Backend, base: Backend) -> bool:
    """Whether a chain is of reverse modes that are no transform's, over what computes."""
    while device is not base:
        if not isinstance(device, Decorator):
            return device in base.chain()
        if not isinstance(device, Autodiff) or device.is_fresh or device.aliases is not None:
            return False
        device = device.inner
    return True


# --- on levels -------------------------------------------------------------------------------------


class _Called:
    """A function for calls of one type, as one of flat lists of tensors, for levels."""

    def __init__(self, call: _Signature) -> None:
        self.structure: Any = None
        self.fixed: list[Any] = []  # results, with None where a tensor is
        self.options = next((d.configuration()[1:] for d in call.device.chain() if isinstance(d, Autodiff)), None)
        call.leaves = call.without_arrays()
        call.closed = call.inputs = []
        self.call = call
        self.family = Family(call.name, self._flat)

    def _flat(self, xs: list[Tensor[Any]]) -> list[Tensor[Any]]:
        xs = [wrap(x._array, x._device) for x in xs]
        before = [raw_array(x) for x in xs]
        out = self.call.call(xs)
        self.call._nothing_assigned(xs, before, self.call.guard)
        leaves, self.structure = trees.flatten(out)
        self.fixed = [None if isinstance(x, Tensor) else x for x in leaves]
        return [x for x in leaves if isinstance(x, Tensor)]

    def run(self, call: _Signature) -> Any:
        device = call.device
        xs = [wrap(lift_to(x, device) if isinstance(x, Tensor) else array_of(x, device), device) for x in call.inputs]
        ys = iter(Rules(self.family, self.options).on(xs) if xs else self._flat([]))
        leaves = [next(ys) if x is None else x for x in self.fixed]
        return trees.unflatten(self.structure, leaves)


def _eager(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """f as it is, with arrays in and out as they are for the compiled one."""
    leaves, structure = trees.flatten((args, kwargs))
    inside = current_level() is not None or any([isinstance(x, Tensor) for x in leaves])
    device = current_level() or default_device()
    arrays = (np.ndarray, np.generic)
    given = [wrap(array_of(x, device), device) if isinstance(x, arrays) and is_numeric(x) else x for x in leaves]
    args, kwargs = trees.unflatten(structure, given)
    out = f(*args, **kwargs)
    return out if inside else trees.map(_to_caller, out)


def _to_caller(x: Any) -> Any:
    return (
        to_numpy(x._device.leaf_array(x._array), x._device.leaf)
        if isinstance(x, Tensor) and not x._device.tracked(x._array)
        else x
    )
