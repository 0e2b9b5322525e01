"""A graph as a Python function over the implementations of a leaf: one line per equation, and nothing else.

What is not read any more is dropped at once. On NumPy views are taken without a call between, and an elementwise
function of large arrays writes over an operand that nobody else can see.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint import errors, random_keys
from adjoint.backend import Backend
from adjoint.backends.numpy import NumPy
from adjoint.compiler.graph import SPECIAL, Drawn, Equation, Graph, Key, Value
from adjoint.compiler.operations import operations_of_region
from adjoint.compiler.sizes import BUILTINS, SCOPE, Symbols, has_sizes, is_size, written
from adjoint.compiler.turns import one_by_one
from adjoint.decorators.observed import Profiled
from adjoint.lines import stack_level
from adjoint.operands import fail
from adjoint.primitives import TABLE, Spec, slices
from adjoint.primitives.sizes import as_recorded

if TYPE_CHECKING:
    from adjoint.compiler.cuda.segments import Code
    from adjoint.compiler.native.code import Code as NativeCode
    from adjoint.compiler.native.symbolic import Written

_REUSED = 1024  # bytes: smaller arrays NumPy keeps at hand
_MANY = 4096  # elements: for fewer the shorter way is faster
_VARIANTS = 8  # of machine code for any size, which differ in how sizes compare


Function = Callable[..., tuple[Any, ...]]


class Replay:
    """A graph ready to run on a backend: call it with the arrays of the inputs, and it gives those of the outputs."""

    base: Backend
    fresh: list[bool]
    graph: Graph
    memory: int
    name: str
    source: str
    symbols: Symbols | None

    def __init__(
        self,
        graph: Graph,
        base: Backend,
        name: str = "compiled",
        symbols: Symbols | None = None,
        donated: Sequence[int] = (),
        native: bool = True,
        tick: Callable[[], None] | None = None,
        remembered: bool = True,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.graph, self.base, self.name, self.symbols, self._donated = graph, base, name, symbols, donated
        self._variants: list[Replay] | None = None  # with machine code for any size, which serves where answers hold
        self.for_sizes: list[tuple[Callable[..., bool], Function]] = []  # those of them that give new arrays alone
        self._holds: Callable[..., bool] | None = None
        self._is_fixed = False  # whether there is no more such code
        written: Written | None = None
        if sizes is not None:
            from adjoint.compiler.native import symbolic

            written = symbolic.Written(sizes)
            graph = written.of(graph)
        elif symbols is not None and native and tick is None and type(base) is NumPy and makes_code(base):
            self._variants, native = [], False
        self._repeats = _has(graph, ("key", "call"))
        self._profiled = _profiled_numpy(base)
        writer = _Writer(base, symbols, native, tick, sizes is not None)
        writer.donated = {graph.inputs[i] for i in donated}
        if writer.on_processor:
            from adjoint.compiler.native.code import Code as NativeCode

            writer.native = NativeCode(graph, donated, writer.apart, remembered and sizes is None, sizes is not None)
        writer.write("run", graph)
        self._code = writer.code
        if writer.native is not None:
            writer.native.close()
        calls = writer.native.calls if writer.native is not None else []
        if written is not None:
            written.is_open = False
            self._conditions = written.conditions
            self._holds = written.function(self._conditions)
        self._unlinked: NativeCode | None = writer.native if calls else None
        self._warns, self._checks = writer.warns, any(call.checks for call in calls)
        self.memory = max([call.memory for call in calls], default=0) if sizes is None else 0
        self.kernels: list[str] = [line for call in calls for line in call.kernels]
        self.cuda = ""
        if writer.code is not None:
            self.memory = max([s.memory for s in writer.code.segments], default=0)
            self.kernels = [line for s in writer.code.segments for line in s.kernels]
            self.cuda = writer.code.text
        self.source = "\n".join(writer.lines) + "\n"
        self._places = writer.places
        self._file = f"<{name}>"  # with a number it would be another one each time, and Python keeps names of files
        exec(compile(self.source, self._file, "exec"), writer.scope)
        self.run: Function = writer.scope["run"]  # of arrays, behind which code for any size has the sizes
        self._scope = writer.scope
        self.equations: list[Equation] = writer.equations  # that run, one after the other
        self.shown: list[str] = writer.shown
        self.fresh = writer.fresh

    def __del__(self) -> None:
        self.__dict__.get("_scope", {}).clear()  # which its own functions refer to

    @property
    def direct(self) -> Function | None:
        """The function itself, where nothing has to be done before or after it, once it has run."""
        waits = self._variants is not None or self._unlinked is not None or self._code is not None
        return None if waits or self._checks or self._warns else self.run

    def _variant(self, sizes: tuple[int, ...], variants: list[Replay]) -> Replay | None:
        """The replay with machine code for these sizes and others, which is made where it is not there and can be."""
        assert self.symbols is not None
        if (known := _that_holds(variants, sizes)) is not None:
            return known
        if self._is_fixed or len(variants) >= _VARIANTS:
            return None
        from adjoint.compiler.native.symbolic import FixedError

        with one_by_one():
            if (known := _that_holds(variants, sizes)) is not None:  # another thread has made it
                return known
            try:
                named = dict(zip(self.symbols.values, sizes, strict=True))
                made = Replay(self.graph, self.base, self.name, self.symbols, self._donated, sizes=named)
                if made._unlinked is None:
                    raise FixedError
                made._link(made._unlinked)
            except (FixedError, RuntimeError):  # LLVM wants a number where there is a name
                self._is_fixed = True
                return None
            self.fresh = [x and y for x, y in zip(self.fresh, made.fresh, strict=True)]
            variants.append(made)
            if False not in made.fresh:
                serves = self.symbols.function(f"{self.symbols.serving} and {made._conditions}")
                self.for_sizes.append((serves, made.direct or made._of_all))
        return made

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        if self._variants is not None:
            assert self.symbols is not None
            sizes = tuple([arrays[i].shape[k] for i, k in self.symbols.axes])
            found = self._variant(sizes, self._variants)
            if found is not None:
                return found._checked(arrays, sizes)
        if self._unlinked is not None:
            self._link(self._unlinked)
        if self._code is not None:
            self._compile(self._code)
        return self._checked(arrays, ())

    def _of_all(self, *given: Any) -> tuple[Any, ...]:
        """The function of arrays and sizes."""
        count = len(self.graph.inputs)
        return self._checked(given[:count], given[count:])

    def _checked(self, arrays: Sequence[Any], sizes: tuple[int, ...]) -> tuple[Any, ...]:
        if self._checks:
            from adjoint.compiler.native.machine import NotHeldError

            known = random_keys.Replay()  # both runs draw the same
            try:
                with random_keys.replayed(known) if self._repeats else contextlib.nullcontext():
                    return self._quietly(arrays, sizes)
            except NotHeldError:
                pass
            with random_keys.replayed(known):
                return Replay(self.graph, self.base, self.name, self.symbols, native=False)(arrays)
        return self._quietly(arrays, sizes)

    def _quietly(self, arrays: Sequence[Any], sizes: tuple[int, ...]) -> tuple[Any, ...]:
        if not self._warns:
            return self.run(*arrays, *sizes)
        try:
            with self.base.leaf.quiet():
                return self.run(*arrays, *sizes)
        except Exception as error:
            self._explain(error, arrays)
            raise

    def _link(self, code: NativeCode) -> None:
        """Have machine code made, before the first call."""
        functions: dict[str, Callable[..., Any]] = code.link()
        if self._profiled is not None:
            for call in code.calls:
                arrays = [Spec(tuple(x.shape), x.dtype) for x in (*call.inputs, *call.outputs)]
                called = f"{self.name} {call.shown}"
                work = operations_of_region(call)  # type: ignore[arg-type]  # with a profile they are written here
                functions[call.name] = self._profiled.counted_kernel(called, functions[call.name], arrays, work)
        self._scope.update(functions)
        self._unlinked = None

    def _compile(self, code: Code) -> None:
        """Have CuPy compile kernels, before the first call; where it cannot, the graph is replayed without them."""
        try:
            code.link()
        except Exception as error:
            if type(error).__name__ == "CompileException":  # not that there is no compiler, but that it refuses this
                warnings.warn(
                    f"{self.name}: CuPy's compiler refuses CUDA source that ad.compile wrote, and the function runs "
                    f"primitive by primitive; please report this: {error}",
                    RuntimeWarning,
                    stacklevel=stack_level(),
                )
            plain = Replay(self.graph, self.base, self.name, self.symbols, native=False)
            vars(self).update({key: x for key, x in vars(plain).items() if key != "_scope"}, _plain=plain)
        self._code = None

    def llvm(self) -> str:
        """What LLVM makes machine code of, written again, as it is long and few want it; empty if none is made."""
        code = Replay(self.graph, self.base, symbols=self.symbols, remembered=False)._unlinked
        return code.text() if code is not None else ""

    def _explain(self, error: Exception, arrays: Sequence[Any]) -> None:
        """Raise what the failing primitive raises outside of a compiled function, if it was one."""
        place, line = self._place(error.__traceback__)
        if place is None or place.name not in TABLE:
            return
        if place.line is not None and isinstance(error, errors.AdjointError):
            raise type(error)(str(error).replace(f"{self._file}:{line}", str(place.line))) from error
        if self.symbols is not None:
            sizes = self.symbols.bind([x.shape for x in arrays])
            (place,) = Graph([], [place], []).at(sizes).equations
        try:
            fail(error, _Typed(self.base), place.name, place.operands, place.parameters)  # type: ignore[arg-type]
        except Exception as found:
            if found is not error:
                raise

    def _place(self, trace: TracebackType | None) -> tuple[Equation | None, int]:
        """The equation whose line was running, and the line: the innermost of this function's."""
        found, line = None, 0
        while trace is not None:
            if trace.tb_frame.f_globals is self._scope:
                line = trace.tb_lineno
                found = self._places.get(line)
            trace = trace.tb_next
        return found, line


def _that_holds(variants: Sequence[Replay], sizes: tuple[int, ...]) -> Replay | None:
    for x in variants:
        if x._holds is not None and x._holds(*sizes):
            return x
    return None


def _has(graph: Graph, names: Sequence[str]) -> bool:
    return any(e.name in names or any(_has(g, names) for g in e.graphs) for e in graph.equations)


def _profiled_numpy(base: Backend) -> Profiled[Any] | None:
    """The profile that counts what NumPy does, if that is all that a backend is."""
    return base if type(base) is Profiled and type(base.inner) is NumPy else None


def makes_code(base: Backend) -> bool:
    """Whether functions on a backend become code of their own: machine code on NumPy, CUDA's on CuPy.

    Also where a profile counts what NumPy does.
    """
    if type(base) is NumPy or _profiled_numpy(base) is not None:
        from adjoint.compiler.native.machine import wanted

        return wanted()
    cupy = sys.modules.get("adjoint.backends.cupy")  # imported by whoever has such a backend
    if cupy is not None and type(base) is cupy.CuPy:
        from adjoint.compiler.cuda.segments import wanted as wanted_on_gpu

        return wanted_on_gpu(base)
    return False


class _Typed:
    """A backend of which an error message says what it is, beside values of a graph."""

    def __init__(self, base: Backend) -> None:
        self.leaf, self.name = base.leaf, base.name

    def dtype_of(self, x: Value) -> Any:
        return x.dtype


class _Writer:
    def __init__(
        self,
        base: Backend,
        symbols: Symbols | None,
        native: bool,
        tick: Callable[[], None] | None,
        any_size: bool = False,
    ) -> None:
        self.base, self.on_numpy, self.symbols, self.any_size = base, type(base) is NumPy, symbols, any_size
        self.lines: list[str] = []
        self.places: dict[int, Equation] = {}
        self.scope: dict[str, Any] = {"__builtins__": BUILTINS, "leaf": base}
        self.fresh: list[bool] = []
        self.donated: set[Any] = set()  # inputs whose memory may be written to
        made = native and (symbols is None or any_size) and makes_code(base)
        self.on_processor = made and (self.on_numpy or _profiled_numpy(base) is not None)
        self.native: NativeCode | None = None
        self.tick = tick  # called after each equation
        self.apart = tick is not None or type(base) is Profiled
        self.equations: list[Equation] = []
        self.shown: list[str] = []
        if tick is not None:
            self.scope["tick"] = tick
        self.code: Code | None = None
        if made and not self.on_processor:
            from adjoint.compiler.cuda.segments import Code

            self.code = Code(base)
        self.warns = False  # whether it calls what may warn, or fail
        self._known: dict[int, str] = {}  # names of what is in the scope, by identity
        self._kept: list[Any] = []
        self._count = itertools.count()
        if symbols is not None:
            self.scope.update(SCOPE)

    def constant(self, value: Any) -> str:
        """A name in the scope of the function."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = f"c{next(self._count)}"
            self._kept.append(value)
            self.scope[name] = value
        return name

    def literal(self, value: Any) -> str:
        if self.symbols is not None and has_sizes(value):
            return written(value, self.literal)
        if value is None or value.__class__ in (bool, int, str):
            return repr(value)
        if value.__class__ is tuple and all(x.__class__ is int for x in value):
            return repr(value)
        return self.constant(value)

    # --- functions ---

    def write(self, name: str, graph: Graph, indent: str = "") -> None:
        """Append the definition of a graph, after those of graphs in it; these stand inside where there are sizes."""
        if self.native is not None:
            graph = self.native.divided(graph)
        if self.code is not None:
            from adjoint.compiler.cuda.segments import with_segments

            graph = with_segments(graph, lambda: f"n{next(self._count)}", self.code)
        inner = {id(g): f"g{next(self._count)}" for e in graph.equations for g in e.graphs}
        donated = self.donated if name == "run" else set()  # each step reads what the loop reads of it
        body = _Body(self, graph, inner, donated)
        parameters, within = [body.names[x] for x in graph.inputs], indent
        if self.symbols is not None and name == "run" and self.any_size:  # those for which it was chosen
            parameters += self.symbols.values
        head = f"{indent}def {name}({', '.join(parameters)}):"
        if self.symbols is not None:
            within += " "
            self.lines.append(head)
            for size, (i, axis) in self.symbols.places.items() if name == "run" and not self.any_size else ():
                self.lines.append(f" {size} = v{i}.shape[{axis}]")
        for e in graph.equations:
            for g in e.graphs:
                self.write(inner[id(g)], g, within)
        if self.symbols is None:
            self.lines.append(head)
        for e in graph.equations:
            for line in body.lines(e):
                self.lines.append(indent + line)
                self.places[len(self.lines)] = e
            if self.tick is not None and name == "run":
                self.lines.append(indent + " tick()")
        outputs = [body.read(x) for x in graph.outputs]
        self.lines.append(f"{indent} return ({''.join(x + ', ' for x in outputs)})")
        if name == "run":
            if self.tick is not None:
                texts = [line for line in str(graph).split("\n")[1:-1] if not line.startswith(" ")]
                self.equations = graph.equations
                self.shown = [
                    e.parameters["region"].shown if e.name == "native" else text
                    for e, text in zip(graph.equations, texts, strict=True)
                ]
            self.fresh = [x in body.owned for x in graph.outputs]


class _Body:
    """The lines of one function."""

    def __init__(self, writer: _Writer, graph: Graph, inner: dict[int, str], donated: set[Any]) -> None:
        self.writer, self.inner = writer, inner
        self.names: dict[Any, str] = {x: f"v{i}" for i, x in enumerate(graph.inputs)}
        self.inputs = set(graph.inputs)
        self.outputs = set(graph.outputs)
        self._next = itertools.count(len(graph.inputs))
        self.last: dict[Any, Equation] = {}
        self.reads: Counter[Any] = Counter(graph.outputs)
        for e in graph.equations:
            self.reads.update(set(e.reads()))
            for x in e.reads():
                self.last[x] = e
        for x in graph.outputs:
            self.last.pop(x, None)
        self.owned: set[Any] = donated & self.inputs  # values in memory of their own, which no other shares

    def read(self, x: Any) -> str:
        if x.__class__ is Value:
            return self.writer.constant(x.const) if x.const is not None else self.names[x]
        return self.names[x] if x.__class__ is Key else self.writer.literal(x)

    def lines(self, e: Equation) -> list[str]:
        if e.name == "native":
            return self.native(e)
        self.writer.warns = self.writer.warns or not self._is_of_numbers(e)
        call = self.segment(e) if e.name == "segment" else self.primitive(e) if e.name in TABLE else self.special(e)
        dead = list(dict.fromkeys(x for x in e.reads() if self.last.get(x) is e and x not in self.inputs))
        names = [self.names[x] for x in dead]
        if len(e.results) == 1 and names:
            self.names[e.results[0]] = names.pop()  # which drops the old value
        for x in e.results:
            if x not in self.names:
                self.names[x] = f"v{next(self._next)}"
        made = [self.names[x] for x in e.results]
        names += [self.names[x] for x in e.results if x not in self.last and x not in self.outputs]
        several = e.name not in TABLE or TABLE[e.name].results > 1
        target = f"{''.join(name + ', ' for name in made)}= " if several and made else f"{made[0]} = " if made else ""
        return [f" {target}{call}", *([f" del {', '.join(names)}"] if names else [])]

    def native(self, e: Equation) -> list[str]:
        """A call of machine code, which writes into new arrays."""
        from adjoint.compiler.native.calls import again

        writer, region = self.writer, e.parameters["region"]
        lines = []
        writer.scope.update(empty=np.empty, over=_over)
        places = self.written_over(e)
        for x in e.results:
            assert isinstance(x, Value)
            self.names[x] = f"v{next(self._next)}"
            new = f"{writer.literal(tuple(x.shape))}, {writer.constant(x.dtype)}"
            lines.append(f" {self.names[x]} = " + (f"over({places[x]}, {new})" if x in places else f"empty({new})"))
        made = [self.names[x] for x in region.outputs]
        if region.sizes is not None:
            made += region.sizes.values
        self.owned.update(e.results)
        given = [
            writer.constant(np.array(x.const, order="C")) if x.const is not None else self.names[x]
            for x in region.inputs
        ]
        outputs = "".join(f"{x}, " for x in made)
        inputs = "".join(f"{x}, " for x in given)
        retry = f"{writer.constant(again)}({region.name}, ({inputs}), {writer.constant(region.inputs)}, ({outputs}))"
        lines.append(f" {region.name}({inputs}{outputs}) or {retry}")
        dead = [x for x in e.reads() if self.last.get(x) is e and x not in self.inputs]
        return [*lines, *([f" del {', '.join(self.names[x] for x in dict.fromkeys(dead))}"] if dead else [])]

    def segment(self, e: Equation) -> str:
        """A call of kernels on a GPU, which gives new arrays."""
        return f"{self.writer.constant(e.parameters['region'])}({', '.join(map(self.read, e.operands))})"

    def written_over(self, e: Equation) -> dict[Any, str]:
        """Names of arrays that nobody reads any more, for results of machine code: those with few to choose first."""
        over = e.parameters["region"].over
        free = {x for x in e.reads() if x in self.owned and self.last.get(x) is e}
        choices = {x: [y for y in over.get(x, ()) if y in free] for x in e.results if _large(x)}  # type: ignore[arg-type]
        found: dict[Any, str] = {}
        for x in sorted(choices, key=lambda x: len(choices[x])):
            place = next((y for y in choices[x] if y in free), None)
            if place is not None:
                found[x] = self.names[place]
                free.discard(place)
        return found

    def special(self, e: Equation) -> str:
        writer = self.writer
        if e.name == "key" and not e.operands and "seed" not in e.parameters:
            writer.scope["Drawn"], writer.scope["draw"] = Drawn, writer.base.next_key
            return f"(Drawn(draw, {e.parameters['late']}, {self.reads[e.results[0]] == 1}),)"
        if e.name == "key" and len(e.operands) == 2 and writer.on_numpy:
            source, number = map(self.read, e.operands)
            writer.scope["int"] = int
            return f"({source}.of_step(int({number}), {e.parameters['place']}, {e.parameters['late']}),)"
        if e.name == "draw":
            return f"{self.read(e.operands[0])}()"
        self.owned.difference_update(e.reads())  # a step may give what it gets
        if self._is_of_numbers(e):
            return f"{writer.constant(e.parameters['function'])}({', '.join(map(self.read, e.operands))})"
        run = writer.constant(_scan if e.name == "scan" and writer.on_numpy else SPECIAL[e.name])
        functions = "".join(f"{self.inner[id(g)]}, " for g in e.graphs)
        operands = "".join(f"{self.read(x)}, " for x in e.operands)
        parameters = "".join(f", {name}={self.function(value)}" for name, value in e.parameters.items())
        return f"{run}(leaf, ({functions}), ({operands}){parameters})"

    def _is_of_numbers(self, e: Equation) -> bool:
        """Whether it is arithmetic with Python's numbers, which has no need of the leaf."""
        if e.name != "host" or not self.writer.on_numpy or self.writer.symbols is not None:
            return False
        return hasattr(e.parameters["function"], "of_numbers")

    def function(self, value: Any) -> str:
        """A parameter of what is no primitive: a function of the recording may have sizes in its closure."""
        symbols = self.writer.symbols
        if symbols is None or not callable(value):
            return self.writer.literal(value)
        sizes = "".join(f", {name}={name}" for name in symbols.values)
        return f"{self.writer.constant(symbols.binding)}({self.writer.constant(value)}{sizes})"

    def primitive(self, e: Equation) -> str:
        writer, primitive = self.writer, TABLE[e.name]
        run: Any = writer.base[primitive]
        if writer.on_numpy:
            if run.__class__ is np.ufunc:
                return self.ufunc(e, run)
            view = _FORMS.get(e.name)
            if view is not None and (text := view(e, self)) is not None:
                return text
            if e.name in _FRESH:
                self.owned.update(e.results)
            elif e.name in _WHOLE:
                self.hand_on(e)
            else:
                self.owned.difference_update(e.reads())  # the result may share their memory
        operands = [self.read(x) for x in e.operands]
        for name, value in e.parameters.items():
            text = f"{self.names[value]}()" if value.__class__ is Key else writer.literal(value)
            operands.append(f"{name}={text}")
        return f"{writer.constant(run)}({', '.join(operands)})"

    def hand_on(self, e: Equation) -> None:
        """A view of all elements has its array's memory for itself, if nobody else reads that array."""
        x = e.operands[0]
        alone = x in self.owned and self.reads[x] == 1
        self.owned.difference_update(e.reads())
        if alone:
            self.owned.update(e.results)

    def ufunc(self, e: Equation, run: np.ufunc) -> str:
        out = e.results[0]
        assert isinstance(out, Value)
        operands = [self.read(self.scalar(e, x)) for x in e.operands]
        if out.shape and _large(out):
            for x in e.operands:
                mine = x in self.owned and self.last.get(x) is e
                if mine and x.shape == out.shape and x.dtype == out.dtype:
                    operands.append(f"out={self.names[x]}")
                    break
        self.owned.add(out)
        return f"{self.writer.constant(run)}({', '.join(operands)})"

    def scalar(self, e: Equation, x: Any) -> Any:
        """A Python number as the array that meets another one fastest."""
        like = next(y for y in e.operands if y.__class__ is Value)
        if is_size(x):
            return x
        if like.dtype.kind == "f" and (x.__class__ is float or (x.__class__ is int and e.name in _ARITHMETIC)):
            with np.errstate(all="ignore"):
                made = np.array(x, like.dtype)
            return Value((), like.dtype, self.writer.scope.setdefault(_number(x, like.dtype), made))
        return x


def _large(x: Value) -> bool:
    """Whether memory is worth to be used again."""
    return _elements(x.shape) * x.dtype.itemsize >= _REUSED


def _over(x: np.ndarray[Any, Any], shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """The array's memory for one of this shape, if machine code writes into such arrays; else new memory."""
    if x.__class__ is np.ndarray and x.dtype is dtype and x.flags.carray:
        return x if x.shape == shape else x.reshape(shape)
    return np.empty(shape, dtype)


_ARITHMETIC = frozenset("add subtract multiply divide maximum minimum less less_equal greater greater_equal".split())


def _number(x: float, dtype: Any) -> str:
    """The name in the scope of a number."""
    return (
        f"n{dtype.name}_{'m' if math.copysign(1.0, x) < 0 else ''}{abs(x)!r}".replace(".", "p")
        .replace("-", "m")
        .replace("+", "_")
    )


# --- on NumPy ------------------------------------------------------------------------------------

# functions of the NumPy leaf, no ufuncs, whose results are in new memory whatever their operands are
_FRESH = frozenset({"matmul", "sum", "prod", "exp2"})
_WHOLE = frozenset({"reshape", "expand_dims", "squeeze", "permute_dims"})  # whose results have all elements, once


def _elements(shape: Any) -> int:
    """How many elements there are, or were in the recording."""
    return math.prod(map(as_recorded, shape))


def _reshaped(e: Equation, body: _Body) -> str | None:
    x, out = e.operands[0], e.results[0]
    if x.__class__ is not Value or not isinstance(out, Value) or _elements(out.shape) > _MANY:
        return None  # large ones that are broadcast are not copied element by element
    body.hand_on(e)
    return f"{body.read(x)}.reshape({body.writer.literal(out.shape)})"


def _transposed(e: Equation, body: _Body) -> str:
    body.hand_on(e)
    return f"{body.read(e.operands[0])}.transpose({tuple(e.parameters['axes'])!r})"


def _indexed(e: Equation, body: _Body) -> str | None:
    if len(e.operands) > 1:
        return None
    body.owned.difference_update(e.reads())
    return f"{body.read(e.operands[0])}[{body.writer.literal(slices(e.parameters['key']))}]"


def _summed(e: Equation, body: _Body) -> str:
    body.owned.update(e.results)
    x = e.operands[0]
    how = ", ".join(body.writer.literal(y) for y in (e.parameters["axis"], x.dtype, None, e.parameters["keepdims"]))
    return f"{body.writer.constant(np.add.reduce)}({body.read(x)}, {how})"


_FORMS: dict[str, Callable[[Equation, _Body], str | None]] = {
    "reshape": _reshaped,
    "expand_dims": _reshaped,
    "permute_dims": _transposed,
    "index": _indexed,
    "sum": _summed,
}


def _scan(
    leaf: Any, functions: Any, operands: Sequence[Any], *, count: int, rows: int, length: int, reverse: bool
) -> list[Any]:
    """`scan` with results written into arrays that are there from the first step on."""
    (step,) = functions
    carry, along, rest = operands[:count], operands[count : count + rows], operands[count + rows :]
    stacks: list[Any] = []
    for i in range(length - 1, -1, -1) if reverse else range(length):
        out = step(*carry, *[x[i] for x in along], *rest)
        carry, ys = out[:count], out[count:]
        if not stacks:
            stacks = [np.empty((length, *y.shape), y.dtype) for y in ys]
        for stack, y in zip(stacks, ys, strict=True):
            stack[i] = y
    return [*carry, *stacks]
