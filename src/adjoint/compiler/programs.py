"""A function that was recorded: its graph, ready to run, and how its results are made of what the graph gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.compiler.graph import RECORDED, Graph, Name, Value
from adjoint.compiler.numbers import Numbers
from adjoint.compiler.passes import dead_code, optimized
from adjoint.compiler.replay import Function, Replay, makes_code
from adjoint.compiler.sizes import Symbols, is_size
from adjoint.compiler.traced import Recording, Traced, recording
from adjoint.compiler.turns import one_by_one
from adjoint.concrete import collected_checks
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import transform_level
from adjoint.graph.nodes import LeafNode, ancestors, new_leaf
from adjoint.lines import line_of
from adjoint.operands import lift_to, run
from adjoint.primitives import DType, Shape
from adjoint.random_keys import recorded_on
from adjoint.tensor import Tensor, same, wrap

T = TypeVar("T")


# --- where a function is recorded ------------------------------------------------------------------


class Place:
    """A leaf that records, in the place of a backend, and the levels of users over it."""

    base: Backend
    leaf: Traced

    def __init__(self, base: Backend, device: Backend) -> None:
        self.base, self.leaf = base, Traced.fresh(base)
        self.copies: dict[Backend, Backend] = {base: self.leaf}
        self.device: Backend = self.over(device)
        self.recording: Recording

    def over(self, device: Backend) -> Backend:
        """The levels of a device over the leaf that records."""
        found = self.copies.get(device)
        if found is None:
            assert isinstance(device, Decorator)
            found = type(device).fresh(self.over(device.inner), *device.configuration()[1:])
            found.is_fresh = False  # it stands for a level of the user's, and is no transform's
            self.copies[device] = found
        return found

    def original(self, device: Backend) -> Backend | None:
        """The device that a copy is of."""
        return next((theirs for theirs, copy in self.copies.items() if copy is device), None)

    def argument(self, shape: Shape, dtype: DType, device: Backend, tracked: str = "") -> tuple[Value, Tensor[Any]]:
        """An input, and the tensor that stands for it on the copy of a device: a constant, a leaf or a result there."""
        value, level = Value(tuple(shape), dtype), self.over(device)
        x = wrap(level.lift(value, self.leaf), level)
        if tracked:
            assert isinstance(level, Autodiff)
            x = wrap(new_leaf(x._array.value, level), level)
        return value, run("reshape", (x,), shape=x.shape) if tracked == "result" else x


def placed(base: Backend, device: Backend, record: Callable[[Place], T]) -> T:
    """What a function gives for a place, on which everything that it computes is recorded."""
    place = Place(base, device)
    with (
        recording() as place.recording,
        collected_checks(place.recording.checks),
        recorded_on(place.leaf),
        transform_level(place.device, None, place.leaf),
    ):
        try:
            return record(place)
        except errors.AdjointError as error:
            _locate(error, place)
            raise
        except ValueError as error:
            if not isinstance(error.__cause__, errors.TrackedError):
                raise
            found = errors.TrackedError(str(error.__cause__))  # which NumPy has met, in `array[i] = x`
            _locate(found.with_traceback(error.__traceback__), place)
            raise found from error
        finally:
            place.leaf.arrays_on = None  # which would be a cycle
            for copy in place.copies.values():
                copy.end()


def _locate(error: errors.AdjointError, place: Place) -> None:
    """Add the line of the user's to a message, and the way out where it was a tensor that is no number.

    A leaf without derivatives gets the name of the one that will run, of which a device can be made.
    """
    line, text = line_of(error), str(error)
    if isinstance(error, errors.NoAutodiffError):
        text = text.replace(place.leaf.name, place.base.name)
    if line is not None and line not in text:
        error.args = (f"{text}{_HINT if RECORDED in text else ''}\n  at {line}", *error.args[1:])


_HINT = "; a tensor has no value while ad.compile records: pass a Python number among the arguments"


# --- results ---------------------------------------------------------------------------------------


class Result(NamedTuple):
    """How a result is made: `kind` is one of

    `value`   a constant on a device, of an output of the graph
    `number`  a Python number, of an output that follows from numbers alone
    `leaf`    a new leaf, that `with_value` made of the argument `of`, if there is one
    `given`   the argument `of` itself
    `fixed`   what does not depend on the arguments
    `live`    a value that is tracked, so that derivatives by arguments are to be known
    """

    kind: str
    device: Any = None
    dtype: Any = None
    of: Any = None


def results_of(place: Place, leaves: Sequence[Any], given: dict[Any, int]) -> tuple[list[Result], list[Value]]:
    """What results are made of, and the outputs of the graph; `given` are places of arguments by their leaf's node."""
    made, outputs = [], []
    for x in leaves:
        if is_size(x):
            made.append(Result("number"))
            dtype = np.dtype(np.int64 if isinstance(x, int) else np.float64)
            outputs.append(place.leaf["full"](shape=(), value=x, dtype=dtype))
            continue
        result = _result(place, x, given) if isinstance(x, Tensor) else Result("fixed", of=x)
        made.append(result)
        if result.kind in ("value", "leaf", "live"):
            outputs.append(x.device.leaf_array(x._array))
    return made, outputs


def _result(place: Place, x: Tensor[Any], given: dict[Any, int]) -> Result:
    device = place.original(x.device)
    if device is None:
        if not any(level is place.leaf for level in x.device.chain()):
            if x.device.tracked(x._array):
                raise errors.TrackedError(
                    f"a result of shape {x.shape} is tracked by a tensor that ad.compile was not given; make that an "
                    "argument, or return x.detach()"
                )
            return Result("fixed", of=same(x))  # a constant from outside
        x = wrap(lift_to(x, place.device), place.device)  # of a view of a level, say
        device = place.original(place.device)
    array, level = x._array, x._device
    depth = 0
    while isinstance(level, Decorator):
        node = array.node if isinstance(level, Autodiff) else None
        if node in given:
            return Result("given", of=given[node])
        if isinstance(node, LeafNode) and depth == 0:
            origin = getattr(node, "origin", None)
            of = next((i for leaf, i in given.items() if origin is not None and origin == leaf.key), None)
            return Result("leaf", device, x.dtype, of)
        if node is not None and not node.used_up:
            behind = [leaf for leaf in ancestors(node) if leaf in given]
            if not behind:
                raise errors.TrackedError(
                    f"a result of shape {x.shape} is tracked by a leaf that the function made itself, and tensors that "
                    "ad.compile returns are tracked by its arguments; return x.detach(), or make the leaf outside"
                )
            return Result("live", device, x.dtype)
        array, level = level.unwrap(array), level.inner
        depth += 1
    return Result("value", device, x.dtype)


# --- programs --------------------------------------------------------------------------------------


class Program:
    """A recorded function, which runs on the arrays of its arguments."""

    base: Backend
    name: str
    recorded: Graph
    results: list[Result]
    structure: Any

    def __init__(
        self,
        base: Backend,
        graph: Graph,
        results: Sequence[Result],
        structure: Any,
        name: str,
        symbols: Symbols | None = None,
        numbers: Numbers | None = None,
        waits: bool = False,
    ) -> None:
        self.waits = waits  # with machine code until that pays
        self.base, self.recorded, self.results, self.structure = base, graph, list(results), structure
        self.symbols = symbols  # of a graph for several sizes
        self.numbers = numbers if numbers is not None and numbers.guards else None  # of which some have been compared
        self.live: bool = any([r.kind == "live" for r in results])
        self.graph: Graph = optimized(graph)
        self.name = name
        self._replays: dict[tuple[int, ...], Replay] = {}
        self._work: tuple[float, int] | None = None  # seconds to make code, and how many steps there are
        self.calls_of: dict[tuple[int, ...], list[Any]] = {}  # of sizes what `met` counts, and `code_for` has found
        self.build = trees.builder(structure)
        self.draws: bool = any(e.name in ("key", "seed") for e in graph.equations)
        self._constant = [x.const is not None for x in self.graph.outputs]
        self._shared = [
            x.const is not None or x in self.graph.inputs or x in self.graph.outputs[:i]
            for i, x in enumerate(self.graph.outputs)
        ]

    def at(self, shapes: Sequence[Shape]) -> Program:
        """The program for these sizes alone, made of that for any: nothing is recorded again."""
        symbols = self.symbols
        assert symbols is not None
        sizes = symbols.bind(shapes)
        graph = self.recorded.at(sizes, lambda function: symbols.binding(function, **sizes))
        return Program(self.base, graph, self.results, self.structure, self.name, numbers=self.numbers)

    def serves(self, *sizes: int) -> bool:
        """Whether the graph is right for these, and sizes that come often have no machine code of their own."""
        assert self.symbols is not None
        return self.symbols.serves(*sizes) and not (self.met(*sizes) and makes_code(self.base))

    def code_for(self, *sizes: int) -> Function | None:
        """The function of machine code for these and others, where it is there and all that it gives is new.

        None, too, where they come often, and the graph may not be right for them: `serves` says more.
        """
        try:
            for serves, run in self._replays[()].for_sizes:
                if serves(*sizes):
                    if self.met(*sizes):
                        return None
                    if (calls := self.calls_of.get(sizes)) is not None:  # another thread may have emptied it
                        calls[1] = run
                    return run
        except ArithmeticError:
            pass
        return None

    def met(self, *sizes: int) -> bool:
        """Note a call for these sizes: whether replaying all of them has taken longer than making machine code does.

        By what is counted, not by the clock, so that each run of a user's program gets the same digits.
        """
        calls = self.calls_of.get(sizes)
        if calls is None:
            if len(self.calls_of) >= MOST:
                self.calls_of.clear()
            self.calls_of[sizes] = [_ONCE, None]
            return False
        if calls[0] == _ONCE:
            calls[0] = self._worth(sizes)
        calls[0] = max(calls[0] - 1, 0)
        return bool(calls[0] == 0)

    def _worth(self, sizes: Sequence[int]) -> int:
        """How many replays for these sizes take as long as making machine code does."""
        assert self.symbols is not None
        if self._work is None:
            self._work = _to_make(self.graph), _steps(self.graph)
        to_make, steps = self._work
        return int(to_make / _to_replay(steps, self.symbols.at(*sizes)))

    def holds(self, numbers: Sequence[Any]) -> bool:
        """Whether it is right for these numbers among the arguments."""
        return self.numbers is None or self.numbers.hold(numbers)

    @property
    def replay(self) -> Replay:
        return self.reusing(())

    def reusing(self, donated: Sequence[int]) -> Replay:
        """The replay that writes over these inputs; each is made when it is first asked for."""
        found = self._replays.get(tuple(donated))
        if found is None:
            with one_by_one():
                found = self._replays.get(tuple(donated))
                if found is None:
                    found = (
                        ready(self.graph, self.base, self.name, True)
                        if self.waits
                        else Replay(self.graph, self.base, self.name, self.symbols, donated)
                    )
                    self._replays[tuple(donated)] = found
        return found

    def outputs(self, arrays: Sequence[Any], replay: Replay) -> Sequence[Any]:
        """The arrays of the graph's outputs; constants of the graph are copied."""
        outs = replay(arrays)
        if True not in self._constant:
            return outs
        return [self.base.copied(x) if c else x for x, c in zip(outs, self._constant, strict=True)]

    def are_own(self, as_numpy: bool) -> bool:
        """Whether outputs can be given as they are: none is a constant; to NumPy, none is anybody else's memory.

        Of several sizes those of `code_for`.
        """
        if as_numpy:
            return (self.symbols is not None or all(self.replay.fresh)) and True not in self._shared
        return True not in self._constant

    def tensors(self, arrays: Sequence[Any], leaves: Sequence[Any], donated: Sequence[int] = ()) -> Any:
        """The function's result, with tensors where it has tensors. None of them is `live`."""
        base = self.base
        outs = iter(self.outputs(arrays, self.reusing(donated)))
        made: list[Any] = []
        for kind, device, dtype, of in self.results:
            if kind == "value":
                array = next(outs)
                if device is not base:
                    array = device.lift(array, base)
                made.append(wrap(array, device, dtype))
            elif kind == "fixed":
                made.append(same(of) if isinstance(of, Tensor) else np.array(of) if isinstance(of, np.ndarray) else of)
            elif kind == "given":
                made.append(leaves[of])
            elif kind == "number":
                made.append(base.to_numpy(next(outs)).item())
            elif kind == "leaf":
                value = wrap(device.inner.lift(next(outs), base), device.inner)
                like = leaves[of] if of is not None else None
                made.append(
                    like.with_value(value) if like is not None else wrap(new_leaf(value._array, device), device)
                )
        return self.build(made)

    def arrays(self, given: Sequence[Any], donated: Sequence[int] = ()) -> Any:
        """The function's result, with NumPy arrays of the caller's own where it has tensors."""
        replay = self.reusing(donated)
        outs, base = replay(given), self.base
        made: list[Any] = []
        k = 0
        for kind, _, _, of in self.results:
            if kind in ("value", "leaf", "live"):
                x, fresh = outs[k], replay.fresh[k] and not self._shared[k]
                k += 1
                if not fresh or x.__class__ is not np.ndarray:
                    x = np.array(base.to_numpy(x))
                if not x.ndim:
                    x = x[()]
                made.append(x)
            elif kind == "number":
                made.append(base.to_numpy(outs[k]).item())
                k += 1
            elif kind == "given":
                made.append(np.array(base.to_numpy(given[of]))[()])
            elif isinstance(of, Tensor):
                made.append(np.array(of.detach().numpy())[()])
            else:
                made.append(np.array(of) if isinstance(of, np.ndarray) else of)
        return self.build(made)


MOST = 1024  # sizes of which it is noted that there were calls
_ONCE = -1


def _to_make(graph: Graph) -> float:
    """About how many seconds it takes to make machine code of a graph."""
    return 0.03 + 0.0005 * graph.size()


def _to_replay(steps: int, shapes: Sequence[Shape]) -> float:
    """About how many seconds longer a replay takes than machine code: for each step, and for each of its bytes."""
    largest = max([math.prod(shape) for shape in shapes], default=1)
    return steps * (1.5e-6 + 1.6e-9 * largest)


def _steps(graph: Graph) -> int:
    """How many equations run; those of a loop of unknown length count as of a few steps."""
    count = 0
    for e in graph.equations:
        length: Any = e.parameters.get("length", 1) if e.name == "scan" else 16 if e.name == "while" else 1
        times = length.value if is_size(length) else length
        count += 1 + times * max([_steps(g) for g in e.graphs], default=0)
    return max(count, 1)


class Waiting:
    """A replay that becomes machine code once it has run so often that this pays."""

    def __init__(self, graph: Graph, base: Backend, name: str) -> None:
        self._now = Replay(graph, base, name, native=False)
        sizes = [x.shape for x in graph.inputs if isinstance(x, Value)]
        self._left = max(1, int(_to_make(graph) / _to_replay(_steps(graph), sizes)))

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        if self._left >= 0:
            self._left -= 1
            if self._left < 0:
                with one_by_one():
                    self._now = Replay(self._now.graph, self._now.base, self._now.name)
        return self._now(arrays)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name)


def ready(graph: Graph, base: Backend, name: str, waits: bool) -> Any:
    """A graph ready to run on a backend, at first without machine code if it waits."""
    return Waiting(graph, base, name) if waits and makes_code(base) else Replay(graph, base, name)


class Halves(NamedTuple):
    """A function and its pullback, recorded together: the second part reads what the first one leaves for it."""

    forward: Replay
    backward: Replay
    results: int  # how many
    given: tuple[int, ...]  # those whose cotangents the pullback reads
    draws: bool
    symbols: Symbols | None = None  # where they are for several sizes

    def holds(self, numbers: Sequence[Any]) -> bool:
        """Whether they are right for Python's numbers, as those of a program are: see Answers."""
        return True


def halves(
    graph: Graph,
    count: int,
    cotangents: Sequence[Value],
    given: Sequence[int],
    base: Backend,
    name: str,
    waits: bool,
    symbols: Symbols | None = None,
) -> Halves:
    """The two parts of a graph whose first `count` outputs need no cotangents, and whose last inputs are those.

    What the results need, and nothing else, is computed in the first part: so what `checkpoint` computes again is
    computed in the second.
    """
    graph = optimized(graph)
    dependent: set[Name] = set(cotangents)
    for e in graph.equations:
        if not dependent.isdisjoint(e.reads()):
            dependent.update(e.results)
    needed: set[Name] = {*graph.outputs[:count]}
    first, rest = [], []
    for e in reversed(graph.equations):
        if not needed.isdisjoint(e.results) or (e.has_effect and dependent.isdisjoint(e.reads())):
            first.append(e)
            needed.update(e.reads())
        else:
            rest.append(e)
    second = dead_code(Graph([], rest[::-1], graph.outputs[count:]))
    kept: list[Any] = [x for x in second.free() if x not in cotangents]
    if symbols is not None:  # the second part is to find them among its inputs, too
        found = symbols.among([x.shape for x in (*kept, *cotangents)]).places
        sizes = dict.fromkeys(graph.inputs[i] for name, (i, _) in symbols.places.items() if name not in found)
        kept += [x for x in sizes if x not in kept]
    second.inputs = [*kept, *cotangents]
    operands = [x for x in graph.inputs if x not in cotangents]
    forward = dead_code(Graph(operands, first[::-1], [*graph.outputs[:count], *kept]))
    draws = any(e.name in ("key", "seed") for e in graph.equations)
    label = f"{name}, backward"
    if symbols is None:
        parts = ready(forward, base, name, waits), ready(second, base, label, waits)
    else:
        later = symbols.among([x.shape for x in second.inputs])  # type: ignore[union-attr]
        parts = Replay(forward, base, name, symbols), Replay(second, base, label, later)
    return Halves(*parts, count, tuple(given), draws, symbols)
