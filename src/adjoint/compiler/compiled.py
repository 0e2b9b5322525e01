"""`ad.compile`."""

from __future__ import annotations

import collections
import copy
import functools
import operator
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.compiler.again import UNLIKE, Again, again
from adjoint.compiler.calls import Seen, Signature, unsized, wants_numpy
from adjoint.compiler.cost import Cost, cost_of
from adjoint.compiler.donated import exclusive, give_away
from adjoint.compiler.environment import Environment, asks_for_types, disabled
from adjoint.compiler.general import KEPT, General
from adjoint.compiler.graph import Graph
from adjoint.compiler.numbers import OtherNumberError, can_vary
from adjoint.compiler.passes import after_each
from adjoint.compiler.programs import Program
from adjoint.compiler.replay import makes_code
from adjoint.compiler.rules import Answers, Family, Node, Noted, Rules, number_of
from adjoint.compiler.setting import setting
from adjoint.compiler.sizes import OneSizeError, is_size
from adjoint.compiler.turns import one_by_one
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import current_level, default_device, libraries_imported
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import as_shape, check_callable, integers, is_numeric, items
from adjoint.functions.creation import zeros
from adjoint.functions.shape import broadcast_to
from adjoint.lines import PACKAGE, Line, line_of, stack_level
from adjoint.module.fields import Fields
from adjoint.operands import lift_to
from adjoint.scopes import Block, Scope, innermost
from adjoint.tensor import Tensor, raw_array, wrap
from adjoint.transforms.arguments import array_of, arrays_on, to_numpy
from adjoint.transforms.closures import Wrapper
from adjoint.transforms.libraries import of_any_library

OFTEN = 8  # recordings after which a warning says what changes
RECENT = 4  # kinds of calls of which it is looked first whether a call is of them


def compile(f: Callable[..., Any], *, dynamic: Any = None, donate: Any = ()) -> Compiled:
    """f, recorded once as a graph of primitives, which is what runs from then on.

    The first call with arguments of some types runs f on tensors that have no values and records what it does: with
    all derivatives that are taken in it, with choices and loops (`ad.cond`, `ad.while_loop`, `ad.scan` and their like)
    as parts of the graph. Later calls run the graph, without what Python and adjoint do between primitives. Results are
    those of f: of tensors tensors, of NumPy arrays and of Python's floats NumPy arrays, without any of them tensors.

    Tensors and arrays are traced: other shapes, dtypes or devices make another recording, other values do not. All else
    counts as it is: Python's numbers, strings, functions, settings of modules. A number that is another one in
    the next call is traced from then on where it can be. A warning says what changes when there are many recordings.

    Transforms may be in f and around it, as in `ad.grad(ad.compile(f))`. `f.lower(*args)` shows the graph.
    On NumPy what can be is machine code, if llvmlite is installed (`adjoint[compile]`), and a warning says once if it
    is not; on CuPy it is CUDA kernels. `ADJOINT_COMPILE=replay` has the library called instead. `with
    ad.disable_compile():` runs f as it is, and so does the environment variable `ADJOINT_COMPILE=0`, if it is set
    before Python starts.

    Parameters
    ----------
    f
        A function of pytrees. It is run with tensors in the place of arrays. It reads closures, names of its module and
        attributes of objects anew with each call, but for attributes that it changes; it assigns to no tensor but its
        own.
    dynamic
        The axes whose sizes may change without another recording: for each positional argument an axis, a tuple of
        axes or None, which count for all arrays in it; True for all axes. By default those that have changed from one
        call to a later one; False has none. A size that f asks for, or chooses by, is recorded as it is.
    donate
        The numbers of positional arguments that are not needed after the call: results may be written over their
        arrays, also over NumPy arrays of the caller's. Using their tensors afterwards raises EndedError. Memory that
        anybody else refers to is left as it is.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        f is no function; an argument that is neither an array nor hashable; `dynamic` is none of these, or has more
        entries than there are positional arguments; `donate` are no numbers, or there is no such argument.
    AxisError
        `dynamic` names an axis that an array has not.
    DtypeError
        An argument that is an array of something else than numbers, a sparse matrix or a buffer.
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
    return Compiled(f, _dynamic(dynamic), integers(donate, "compile", "numbers of arguments in donate"))


def _dynamic(dynamic: Any) -> Any:
    """True, False, None, or a tuple of axes for each argument."""
    if dynamic is None or isinstance(dynamic, bool):
        return dynamic
    entries = items(dynamic)
    if entries is None:
        raise errors.ArgumentTypeError(
            f"compile: dynamic is True, False, None, or has an axis, a tuple of axes or None for each argument; "
            f"received {errors.shown(dynamic)}"
        )
    return [() if entry is None else integers(entry, "compile", "axes of dynamic") for entry in entries]


def _prototype(x: Any) -> Any:
    """Zeros for a shape, which are one number in memory."""
    return (
        broadcast_to(zeros(()), as_shape(x, "compile"))
        if isinstance(x, tuple) and all([y.__class__ is int for y in x])
        else x
    )


class disable_compile(Scope[None]):
    """In a `with` block, functions of `ad.compile` run as they are: to look at values, or for a debugger.

    >>> import adjoint as ad
    >>> @ad.compile
    ... def f(x):
    ...     return x * 2 if x > 0 else x
    >>> with ad.disable_compile():
    ...     f(ad.tensor(1.5)).item()
    3.0
    """

    _variable = disabled

    def __init__(self) -> None:
        super().__init__(None, True)


def _is_disabled() -> bool:
    return innermost(disabled) is not None or setting() == "0"


class Lowered:
    """A function as a graph. `str` gives it as text, `source` the Python function that runs it.

    `recorded` is the graph as it was recorded, and `passes` has the graph after each pass, by the pass's name.
    `llvm` is the text that LLVM compiles, and `assembly` what it makes of that for this processor. Both are empty where
    no machine code is made: on other libraries than NumPy, without llvmlite, and of graphs for all sizes.
    `cuda` is the source of kernels on CuPy, empty elsewhere and where CuPy has no compiler.
    `kernels` has a line for each loop of machine code: its name in `llvm`, the size, the primitives, and in how many
    parts it is cut for several threads; on CuPy for each kernel and product. `memory` is the largest number of bytes
    that a call of machine code has for arrays that are no results: 0 without.

    >>> import adjoint as ad
    >>> lowered = ad.compile(lambda x: x * x + 1).lower(ad.zeros(8))
    >>> print(lowered)
    inputs a: float32[8]
    b: float32[8] = multiply(a, a)
    c: float32[8] = add(b, 1)
    outputs c
    >>> print(lowered.source.splitlines()[0])
    def run(v0):
    """

    def __init__(self, program: Program) -> None:
        self.graph: Graph = program.graph
        self.recorded: Graph = program.recorded
        self.passes: dict[str, Graph] = after_each(program.recorded)
        self.source: str = program.replay.source
        self.memory: int = program.replay.memory
        self.kernels: list[str] = program.replay.kernels
        self._replay = program.replay

    @property
    def llvm(self) -> str:
        return self._replay.llvm()

    @property
    def cuda(self) -> str:
        """The CUDA source of kernels, on CuPy; empty elsewhere, and where CuPy has no compiler."""
        return self._replay.cuda

    @property
    def assembly(self) -> str:
        from adjoint.compiler.native.machine import assembly  # when it is needed: most programs never do

        return assembly(self.llvm) if self.llvm else ""

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        return f"<graph of {self.graph.size()} equations>"


class Compiled(Wrapper):
    """What `compile` makes of a function: call it as the function."""

    donate: tuple[int, ...]
    dynamic: Any
    of_module: bool

    def __init__(self, f: Callable[..., Any], dynamic: Any = None, donate: tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, f, updated=())
        vars(self).update({name: x for name, x in getattr(f, "__dict__", {}).items() if not hasattr(Compiled, name)})
        self.f, self.of_module = f, isinstance(f, Fields)
        self.name: str = getattr(f, "__name__", type(f).__name__)
        self.dynamic, self.donate = dynamic, donate
        self._programs: collections.OrderedDict[Any, Program] = collections.OrderedDict()
        self._others: dict[Any, list[Program]] = {}  # ... for numbers of which comparisons give something else
        self._general: collections.OrderedDict[Any, General] = collections.OrderedDict()
        self._families: collections.OrderedDict[Any, tuple[Called, ...]] = collections.OrderedDict()
        self._recordings = 0
        self._last: Seen | None = None
        self._again: collections.OrderedDict[Program, Again | None] = collections.OrderedDict()
        self._recent: tuple[Again, ...] = ()  # those of the last kinds of calls
        self.varying: set[Any] = set()  # places of numbers that are traced
        self.asked_on_levels: dict[int, Line | None] = {}  # ... of which calls on levels ask for the values
        self.surroundings: Environment | None = None  # of the last call
        self.changing: set[str] = set()  # attributes that f itself changes, which are read when it is recorded
        self._fixed: dict[int, Line | str | None] = {}  # ... and of those that cannot be: who asks for their values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recent = self._recent
        try:
            for known in recent:
                found = known(args, kwargs)
                if found is not UNLIKE:
                    if known is not recent[0]:  # that others are not meant takes time to see
                        self._recent = (known, *[x for x in recent if x is not known])
                    return found
            return _of_any_library(self, *args, **kwargs) if libraries_imported() else self.run(*args, **kwargs)
        except OtherNumberError:  # nothing has run by then
            pass
        call = Signature(self, args, kwargs)  # where the error is gone, which refers to donated arrays
        call.as_they_are()
        return self._run(call)[0]

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __reduce__(self) -> Any:
        """By its name, as functions are, where it stands in the place of the function; else what it was made of.

        What was recorded stays: a copy records anew.
        """
        name = getattr(self, "__qualname__", "")
        try:
            if operator.attrgetter(name)(sys.modules[self.__module__]) is self:
                return name
        except (AttributeError, KeyError):  # of a closure, say
            pass
        return Compiled, (self.f, self.dynamic, self.donate)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.f, '__qualname__', self.f)}>"

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The graph for these arguments, which is recorded if it has not been yet."""
        return Lowered(self._outside(Signature(self, args, kwargs), "lower"))

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Record for arguments like these ahead of the first call; nothing runs. Gives the compiled function.

        Of arrays only shapes, dtypes and devices count. A tuple of integers in the place of an argument stands for a
        tensor of that shape, of the default dtype on the default device; it takes no memory.

        >>> import adjoint as ad
        >>> f = ad.compile(lambda x: ad.sin(x) * 2).compile((2, 3))
        >>> f(ad.zeros((2, 3))).shape
        (2, 3)
        """
        given = {name: _prototype(x) for name, x in kwargs.items()}
        call = Signature(self, tuple(map(_prototype, args)), given)
        program = self._for_its_sizes(self._outside(call, "compile"), call)
        if not program.live:
            program.reusing(call.donated(self.donate))
        return self

    def cost(self, *args: Any, **kwargs: Any) -> Cost:
        """What a call with these arguments costs: a table of operations, bytes and time.

        It has a row for each kernel of machine code, and for each equation that has none. They are timed one by one,
        and the whole function; the fastest of some runs counts. These call nothing of `ad.debug` and leave the sequence
        of random keys as it is; functions of `ad.external` run each time.

        >>> import adjoint as ad
        >>> cost = ad.compile(lambda x, y: (x @ y).sum()).cost(ad.ones((2, 3)), ad.ones((3, 4)))
        >>> [(step.operations, step.bytes) for step in cost.steps]
        [(48, 104), (8, 36)]
        """
        call = Signature(self, args, kwargs)
        return cost_of(self._outside(call, "cost"), call.arrays)

    def _outside(self, call: Signature, what: str) -> Program:
        """The program of a call that is not made in a transform; where f runs as it is, what the leaf is asked."""
        if call.foreign:
            call.device = call.base
            program = call.recorded()
            assert program is not None
            return program
        if call.recording or call.around:
            raise errors.ArgumentError(f"{self.name}.{what}: called inside of a transform; call it outside")
        return self._program(call)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The call, where there are no arrays of other libraries."""
        if _is_disabled():
            return _eager(self.f, args, kwargs)
        try:
            call = Signature(self, args, kwargs)
        except errors.AdjointError:
            if _is_transform(self.f):
                _raise_as_it_is(self.f, args, kwargs)
            raise
        if call.recording:
            return self.f(*args, **kwargs)
        if call.foreign:  # a decorator of which nothing is known here
            return _eager(self.f, args, kwargs)
        out, program = self._run(call)
        if program is not None:
            self._remember(call, program, args, kwargs)
        return out

    def _run(self, call: Signature) -> tuple[Any, Program | None]:
        """The result, and the program by which calls like this one can run again without being read from scratch."""
        if call.around:
            return self._called(call), None
        program = self._program(call)
        if program.live:
            numbers = call.numbers
            out = self._called(call, is_counted=True)
            return out, program if call.numbers == numbers else None
        if self.donate:
            return self._donated(program, call), None
        return program.arrays(call.arrays) if call.as_numpy else program.tensors(call.arrays, call.inputs), program

    def _remember(self, call: Signature, program: Program, args: Any, kwargs: Any) -> None:
        """Have calls like this one run without being read from scratch, from the third on: many are made once."""
        known = self._again.get(program)
        if known is None:
            known = None
            if program in self._again:
                known = again(self.f, call, program, self._family(call), args, kwargs)
            self._again[program] = known
            while len(self._again) > KEPT:
                self._again.popitem(last=False)
        if known is not None:
            self._recent = (known, *[x for x in self._recent if x is not known][: RECENT - 1])

    def _donated(self, program: Program, call: Signature) -> Any:
        places, arrays = call.donated(self.donate), call.arrays
        over = places if exclusive(call.inputs, places, arrays) else ()
        returned = {id(call.inputs[r.of]) for r in program.results if r.kind == "given"}
        began = True
        try:
            return program.arrays(arrays, over) if call.as_numpy else program.tensors(arrays, call.inputs, over)
        except OtherNumberError:
            began = False
            raise
        finally:
            if began:
                give_away(call.inputs, places, self.name, returned)

    def _program(self, call: Signature) -> Program:
        program = self._programs.get(call.key)
        if program is None or not program.holds(call.values) or _comes_often(program, call):
            with one_by_one():
                return self._made(call)
        return program

    def _made(self, call: Signature) -> Program:
        program = self._held(call)
        if program is None:
            self._settle(call)
            program = self._held(call)
            if program is None:
                program = self._sized(call) or self._recorded(call)
                self._programs[call.key] = program
                while len(self._programs) > KEPT:
                    self._others.pop(self._programs.popitem(last=False)[0], None)
        elif _comes_often(program, call):
            program = self._for_its_sizes(program, call)
        return program

    def _for_its_sizes(self, program: Program, call: Signature) -> Program:
        """A program for several sizes as one for those of the call alone, where that has machine code."""
        if program.symbols is None or not makes_code(program.base):
            return program
        made = self._programs[call.key] = program.at([x.shape for x in call.inputs])
        return made

    def _held(self, call: Signature) -> Program | None:
        """The program for calls like this one that is right for its numbers."""
        program = self._programs.get(call.key)
        if program is None or program.holds(call.values):
            return program
        others = self._others.setdefault(call.key, [])
        others.append(program)
        found = next((p for p in others if p.holds(call.values)), None)
        if found is not None:
            others.remove(found)
            self._programs[call.key] = found
            return found
        del self._programs[call.key]
        if len(others) == OFTEN and program.numbers is not None:  # each number has a graph of its own, it seems
            self._fix(call, {call.numbers[k]: line for k, line in program.numbers.compared.items()})
            return self._held(call)
        return None

    def _sized(self, call: Signature) -> Program | None:
        """The program of other sizes, if it is right for these; else one that is recorded for several, if it can be."""
        if self.dynamic is False:
            return None
        shapes = [x.shape for x in call.inputs]
        ranks = call.ranks()
        general = self._general.get(ranks)
        if general is None:
            general = self._general[ranks] = General(call.dynamic_axes(), automatic=self.dynamic is None)
            while len(self._general) > KEPT:
                self._general.popitem(last=False)
        found: Program | None = general.fitting(shapes, call.values)
        if found is not None:
            return found
        axes = general.varying(shapes)
        if not axes:
            return None
        try:
            program = call.recorded(axes)
            if program is None and call.asked:  # for numbers: sizes may be symbols all the same
                self._fix(call, call.asked)
                program = call.recorded(axes)
        except Exception:  # whatever met a size that is no number; without, it is said what is wrong
            program = None
        if program is None:
            general.refuse(axes)
            return None
        self._count(call)
        self._last = call.seen()
        general.add(program)
        return program

    def _settle(self, call: Signature) -> None:
        """Have numbers traced that are others than in the last call, where nothing else is but sizes."""
        last = self._last
        if last is None or last.structure != call.structure or len(last.specs) != len(call.specs):
            return
        specs = zip(map(unsized, last.specs), map(unsized, call.specs), strict=True)
        differ = [i for i, (x, y) in enumerate(specs) if x != y]
        kinds = [(last.specs[i][0], call.specs[i][0]) for i in differ]
        if (
            differ
            and all([kind in ((int, int), (float, float)) for kind in kinds])
            and all([can_vary(call.leaves[i]) and i not in self._fixed for i in differ])
            and not asks_for_types(self.f)
        ):
            self.varying.update(differ)
            call.read()

    def _recorded(self, call: Signature) -> Program:
        self._count(call)
        while True:
            asked: str | Line | None = None
            try:
                program = call.recorded()
            except (errors.AdjointError, TypeError) as error:
                if not call.numbers:
                    raise
                program, asked = None, line_of(error)
            if program is not None:
                break
            self._fix(call, call.asked or dict.fromkeys(call.numbers, asked))
        self._last = call.seen()
        return program

    def _fix(self, call: Signature, numbers: Mapping[int, Line | str | None]) -> None:
        """Have numbers be what they are, because of who asks for their values."""
        self.varying.difference_update(numbers)
        self._fixed.update(numbers)
        call.read()

    def _count(self, call: Signature) -> None:
        self._recordings += 1
        if self._recordings == OFTEN and self._last is not None:
            warnings.warn(
                f"{self.name} was recorded {OFTEN} times, which takes longer than running it once: "
                f"{call.difference(self._last, self._fixed | self.asked_on_levels)}{self._asked(call)}",
                RuntimeWarning,
                stacklevel=stack_level(),
            )

    def _asked(self, call: Signature) -> str:
        """Where the function asks for a size or a number, for the warning."""
        last = self._last
        if last is not None and len(last.specs) == len(call.specs):
            for i, asked in (self._fixed | self.asked_on_levels).items():
                if asked is not None and last.specs[i] != call.specs[i]:
                    return f"; its value is asked for at {asked}"
        general = self._general.get(call.ranks())
        line = next(filter(None, general.pinned.values()), None) if general is not None else None
        return f"; a size is asked for at {line}" if line is not None else ""

    def _called(self, call: Signature, is_counted: bool = False) -> Any:
        """The call on levels that have to see it; `is_counted` where it has been recorded to learn that they have."""
        called = self._family(call)
        if called is None:
            with one_by_one():
                if self._kind(call) not in self._families:
                    self._settle(call)
                called = self._family(call) or self._new_family(call, is_counted)
        try:
            out = called.run(call)
            if called.uncounted.pop(tuple([x.shape for x in call.inputs]), False) and not is_counted:
                self._count(call)
                self._last = call.seen()
            return out
        except (errors.AdjointError, TypeError):
            if not call.numbers or called.has_run:
                raise
        self.asked_on_levels.update(dict.fromkeys(call.numbers))
        call.read()
        return self._called(call, is_counted)

    def _kind(self, call: Signature) -> Any:
        """What calls on levels have in common that one family serves: all but sizes, if these may change."""
        return call.key if self.dynamic is False else call.ranks()

    def _family(self, call: Signature) -> Called | None:
        for known in self._families.get(self._kind(call), ()):
            first = known.family.answers.first
            if first is None or first.hold(call.values):
                return known
        return None

    def _new_family(self, call: Signature, is_counted: bool) -> Called:
        known = self._families.get(self._kind(call), ())
        if len(known) == OFTEN and (first := known[0].family.answers.first) is not None:
            known[0].family.answers.fix(first.compared)
            call.read()
            known = self._families.get(self._kind(call), ())
        if not is_counted:
            self._count(call)
            self._last = call.seen()
        called = Called(copy.copy(call), self.asked_on_levels, self.dynamic is not False)
        self._families[self._kind(call)] = (called, *known)
        while len(self._families) > KEPT:
            self._families.popitem(last=False)
        return called


def _comes_often(program: Program, call: Signature) -> bool:
    """Whether a program for several sizes has run so often for those of the call that machine code is worth making."""
    if program.symbols is None or not makes_code(program.base):
        return False
    return program.met(*program.symbols.bind([x.shape for x in call.inputs]).values())


@of_any_library
def _of_any_library(compiled: Compiled, *args: Any, **kwargs: Any) -> Any:
    return compiled.run(*args, **kwargs)


# --- on levels -------------------------------------------------------------------------------------


class Called:
    """A function for calls of one type, as one of flat lists of tensors, for levels.

    `made` has what results are made of: their structure, and those that are no tensors, with None where a tensor is.
    """

    def __init__(self, call: Signature, asked: dict[int, Line | None], is_general: bool) -> None:
        self.made = Noted(_alike)
        self.uncounted: dict[Any, bool] = {}  # sizes after the first ones that were recorded alone
        self.options = call.options()
        numbers = [k for k, i in enumerate(call.places) if i in call.numbers]
        call.leaves, call.device = call.without_arrays(), call.base
        call.closed, call.inputs, call.environment = [], [], None
        self.call, self.numbers, self.has_run = call, set(numbers), False
        self.family = Family(call.name, self._flat, Answers(call.numbers, asked), is_general)

    def _flat(self, given: list[Tensor[Any]]) -> list[Tensor[Any]]:
        xs = [number_of(x) if k in self.numbers else wrap(x._array, x._device) for k, x in enumerate(given)]
        before = [None if k in self.numbers else raw_array(x) for k, x in enumerate(xs)]
        guard = self.call.as_before(len(xs) - len(self.call.places))
        out = self.call.call(xs)
        self.call._nothing_assigned(xs, before, guard)
        leaves, structure = trees.flatten(out)
        self.call.refuse_used_up(leaves)
        fixed = [None if isinstance(x, Tensor) else x for x in leaves]
        size: Any = next((n for x in given for n in x.shape if is_size(n)), None)
        asked = size.owner.count if size is not None else 0
        if self.numbers or size is not None:  # which asks for those that are in it
            repr((structure, [getattr(x, "__dict__", x) for x in fixed]))
        if size is not None and size.owner.count > asked:
            raise OneSizeError  # which is a result, or a part of one
        shapes = tuple([x.shape for x in given])
        if size is None and self.made.known and shapes not in self.made.known:
            self.uncounted[shapes] = True
        self.made.note(given, (structure, fixed))
        return [x for x in leaves if isinstance(x, Tensor)]

    def run(self, call: Signature) -> Any:
        xs = self._given(call)
        ys = iter(Rules(self.family, self.options).on(xs) if xs else self._flat([]))
        self.has_run = True
        structure, fixed = self.made.of(call.inputs)
        return trees.unflatten(structure, [next(ys) if x is None else x for x in fixed])

    def _given(self, call: Signature) -> list[Tensor[Any]]:
        device = call.device
        return [wrap(lift_to(x, device) if isinstance(x, Tensor) else array_of(x, device), device) for x in call.inputs]

    def node(self, call: Signature, any_size: bool) -> Node | None:
        """What calls like this one record on a level right over what computes; None on others."""
        device = call.device
        if (
            type(device) is not Autodiff
            or device.is_fresh
            or device.aliases is not None
            or device.inner is not call.base
        ):
            return None
        xs = self._given(call)
        active = [i for i, x in enumerate(xs) if device.is_active(x._array) and x.dtype.kind in INEXACT]
        return Rules(self.family, self.options).node(xs, device, active, any_size)


def _alike(x: Any, y: Any) -> bool:
    """Whether results are made of the same."""
    (structure, fixed), (other, others) = x, y
    return structure == other and all(map(_is_same, fixed, others))


def _is_same(x: Any, y: Any) -> bool:
    plain = x.__class__ in (bool, int, float, str) and x.__class__ is y.__class__
    return x is y or (plain and repr(x) == repr(y))


def _is_transform(f: Callable[..., Any]) -> bool:
    code = getattr(f, "__code__", None)
    return code is not None and code.co_filename.startswith(PACKAGE)


def _raise_as_it_is(f: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Raises what a transform says of arguments that are refused: it looks at them before it calls what it is of."""
    try:
        f(*args, **kwargs)
    except errors.AdjointError:
        raise
    except Exception:  # another library's, which says less
        return


def _eager(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """f as it is, with arrays in and out as they are for the compiled one."""
    leaves, structure = trees.flatten((args, kwargs))
    inside = current_level() is not None or not wants_numpy(leaves)
    device = current_level() or default_device()
    arrays = (np.ndarray, np.generic)
    given = [wrap(array_of(x, device), device) if isinstance(x, arrays) and is_numeric(x) else x for x in leaves]
    args, kwargs = trees.unflatten(structure, given)
    if inside:
        return f(*args, **kwargs)
    with Block(arrays_on, device):
        out = f(*args, **kwargs)
    return trees.map(_to_caller, out)


def _to_caller(x: Any) -> Any:
    return (
        to_numpy(x._device.leaf_array(x._array), x._device.leaf)
        if isinstance(x, Tensor) and not x._device.tracked(x._array)
        else x
    )
