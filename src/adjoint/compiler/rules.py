"""A compiled function among levels: its derivatives and batches, each compiled as well.

A transform around a compiled function meets it as it meets a function with rules of its own. The rule is no other than
the function's derivative: that, too, is a function of arrays, and is recorded when it is first asked for.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.compiler.general import KEPT, General
from adjoint.compiler.graph import Value
from adjoint.compiler.numbers import Numbers, OtherNumberError
from adjoint.compiler.programs import MOST, Halves, Place, Program, halves, placed, results_of
from adjoint.compiler.sizes import OneSizeError, Symbols, has_sizes
from adjoint.compiler.traced import Traced, symbol_of
from adjoint.compiler.turns import one_by_one
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batched
from adjoint.devices import current_level, observed_leaf, running_on
from adjoint.dtypes import INEXACT, chosen_dtype, default_dtype
from adjoint.graph.nodes import Var
from adjoint.lines import Line
from adjoint.operands import common_backend, lift_to
from adjoint.primitives import DType, Shape
from adjoint.random_keys import Replay as Keys
from adjoint.random_keys import replayed, without_calls
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Pullback, Tensors, notice, noticing, same_zeros
from adjoint.transforms.recomputed import Examples, apply_on_level
from adjoint.transforms.reverse import vjp

Flat = Callable[[Tensors], Tensors]
Made = Callable[[Sequence[Any], Sequence[Var]], Tensors]  # results, of arrays and of those on the level


class Node(NamedTuple):
    """What calls of a function record, and whether it is right for arguments of these shapes."""

    made: Made
    fits: Callable[[Sequence[Shape]], bool]


class Spec(NamedTuple):
    """What of an argument a recording depends on."""

    shape: Shape
    dtype: DType


class Answers:
    """How Python's numbers among the arguments compare: as they did when the function was recorded first.

    `asked` has those that are to be what they are from the next call on, and who asked for their values.
    """

    def __init__(self, numbers: Sequence[int], asked: dict[int, Line | None]) -> None:
        self.numbers, self.asked = numbers, asked
        self.first: Numbers | None = None

    def take(self, place: Place) -> None:
        """See that a recording takes nothing else for granted. Raises OtherNumberError."""
        numbers = place.recording.numbers
        if numbers is None:
            return
        numbers.is_open = False
        if self.first is None and not numbers.asked:
            self.first = numbers
        if numbers.asked or numbers.guards.items() - (self.first.guards.items() if self.first else set()):
            self.fix(numbers.asked or numbers.compared)
            raise OtherNumberError

    def fix(self, asked: dict[int, Line]) -> None:
        self.asked.update({self.numbers[k]: line for k, line in asked.items()})


class Family:
    """A function of tensors, and what was made of it: programs by the types of arguments, derivatives, batches."""

    f: Flat
    name: str

    def __init__(self, name: str, f: Flat, answers: Answers, is_general: bool) -> None:
        self.name, self.f, self.answers = name, f, answers
        self.is_general = is_general  # whether sizes may change
        self.met: set[Any] = set()  # what has machine code for some sizes
        self.programs: dict[Any, Any] = {}
        self.general: dict[Any, General] = {}  # by what arguments are but for their sizes
        self.given: dict[Any, tuple[int, ...]] = {}  # the results that had cotangents the last time
        self.kin: dict[Any, Any] = {}
        self.noticed = False  # it calls functions whose rules one level applies to results, and nested levels do not

    def run(self, xs: Tensors) -> Tensors:
        with noticing() as noticed:
            ys = self.f(xs)
        self.noticed |= noticed.found
        return ys

    def derived(self, what: str, f: Flat) -> Family:
        return Family(f"{self.name}, {what}", f, self.answers, self.is_general)


class Rules(CustomRules):
    """One call of such a function. All that is computed for it draws the same random numbers.

    Derivatives are by the arguments `active` and of results that have cotangents, of nothing else: where another slope
    is infinite, its product with a cotangent of zero would be nan.
    """

    active: tuple[int, ...] | None
    family: Family
    keys: Keys
    name: str
    options: Any

    differs = False

    def __init__(
        self, family: Family, options: Any, keys: Keys | None = None, active: tuple[int, ...] | None = None
    ) -> None:
        self.family, self.name, self.options, self.active = family, family.name, options, active
        self.keys = Keys() if keys is None else keys

    def by(self, active: Sequence[int]) -> Rules:
        return Rules(self.family, self.options, self.keys, tuple(active))

    def on(self, xs: Tensors) -> Tensors:
        return apply_on_level(self, xs)

    def kin(self, identity: Any, make: Callable[[], Any]) -> Any:
        """What is made of the function once."""
        found = self.family.kin.get(identity)
        if found is None:
            found = self.family.kin.setdefault(identity, make())
        return found

    def derived(self, identity: Any, f: Flat) -> Rules:
        family = self.kin(identity, lambda: self.family.derived(identity[0], f))
        return Rules(family, self.options, self.keys)

    # --- programs ---

    def device_over(self, base: Backend) -> Backend:
        """Where the function finds its arguments: with reverse mode if it had that where it was called."""
        return base if self.options is None else Autodiff(base, *self.options)

    def waits(self, *how: Any) -> bool:
        """Whether there was the same for arguments of other sizes: then machine code waits until it pays."""
        known = how in self.family.met
        self.family.met.add(how)
        return known and self.family.is_general

    def how(self, kind: str, xs: Tensors, base: Backend, *more: Any) -> Any:
        """What a recording depends on beside sizes."""
        ranks = tuple([(len(x.shape), x.dtype) for x in xs])
        return kind, base, self.options, default_dtype(), chosen_dtype(), ranks, *more

    def program(self, xs: Tensors, base: Backend) -> Program:
        return self._found(self.how("plain", xs, base), xs, functools.partial(self._recorded, xs, base))  # type: ignore[no-any-return]

    def _found(self, how: Any, xs: Tensors, record: Callable[[Sequence[Shape], Symbols | None], Any]) -> Any:
        """What was recorded for arguments like these, or for any sizes."""
        programs, key = self.family.programs, (how, *[x.shape for x in xs])
        found = programs.get(key)
        if found is None:
            with one_by_one():
                found = programs.get(key)
                if found is None:
                    shapes = [x.shape for x in xs]
                    found = self._of_any_size(how, shapes, record) or record(shapes, None)
                    while len(programs) >= KEPT:
                        del programs[next(iter(programs))]
                    programs[key] = found
        return found

    def _of_any_size(
        self, how: Any, shapes: Sequence[Shape], record: Callable[[Sequence[Shape], Symbols | None], Any]
    ) -> Any:
        """What is recorded for several sizes, from the second on; None where that cannot be."""
        if not self.family.is_general:
            return None
        general = self.family.general.setdefault(how, General(set(), automatic=True))
        found = general.fitting(shapes, ())
        if found is not None or not (axes := general.varying(shapes)):
            return found
        symbols = Symbols()
        try:
            found = record(symbols.shapes(shapes, axes), symbols)
        except OtherNumberError:
            raise
        except Exception:  # whatever met a size that is no number; without, it is said what is wrong
            general.refuse(axes)
            return None
        finally:
            _close(symbols)
        general.add(found)
        return found

    def _recorded(self, xs: Tensors, base: Backend, shapes: Sequence[Shape], symbols: Symbols | None) -> Program:
        device = self.device_over(base)

        def record(place: Place) -> Program:
            place.recording.symbols = symbols
            given = _arguments(place, xs, shapes, device)
            results, outputs = results_of(place, self.family.run([x for _, x in given]), {})
            self.family.answers.take(place)
            graph: Any = place.recording.graphs[0]
            graph.inputs, graph.outputs = [value for value, _ in given], outputs
            _close(symbols)
            waits = symbols is None and self.waits("plain", base)
            return Program(base, graph, results, _row(len(results)), self.name, symbols, waits=waits)

        return placed(base, device, record)

    def parts(self, xs: Tensors, active: Sequence[int], base: Backend, given: tuple[int, ...] | None = None) -> Halves:
        """The function, and its pullback to these arguments from these results: by default those of the last time."""
        last, how = self.family.given, self.how("halves", xs, base, tuple(active))
        wanted = last.get(how) if given is None else given
        record = functools.partial(self._recorded_parts, xs, active, base, wanted)
        found: Halves = self._found((*how, wanted), xs, record)
        if wanted is None:  # now it is known which these are
            programs, general = self.family.programs, self.family.general
            with one_by_one():
                programs.setdefault(((*how, found.given), *[x.shape for x in xs]), found)
                if (*how, None) in general:
                    general.setdefault((*how, found.given), general[*how, None])
        last[how] = found.given
        return found

    def _recorded_parts(
        self,
        xs: Tensors,
        active: Sequence[int],
        base: Backend,
        given: tuple[int, ...] | None,
        shapes: Sequence[Shape],
        symbols: Symbols | None,
    ) -> Halves:
        device = self.device_over(base)

        def record(place: Place) -> Halves:
            place.recording.symbols = symbols
            operands = _arguments(place, xs, shapes, device)
            with noticing() as noticed:
                ys, wanted, pull = _pullback(self.family.f, [x for _, x in operands], active, given)
            self.family.noticed |= noticed.found
            _, outputs = results_of(place, ys, {})
            cotangents = [place.argument(ys[i].shape, ys[i].dtype, device) for i in wanted]
            gradients = pull([g for _, g in cotangents])
            self.family.answers.take(place)
            graph: Any = place.recording.graphs[0]
            graph.inputs = [value for value, _ in (*operands, *cotangents)]
            graph.outputs = [*outputs, *results_of(place, gradients, {})[1]]
            _close(symbols)
            waits = symbols is None and self.waits("halves", base, tuple(active), tuple(wanted))
            return halves(graph, len(ys), [value for value, _ in cotangents], wanted, base, self.name, waits, symbols)

        return placed(base, device, record)

    def drawing(self, draws: bool) -> Any:
        return replayed(self.keys) if draws else contextlib.nullcontext()

    # --- what levels ask for ---

    def plain(self, xs: Tensors) -> Tensors:
        device = common_backend(*xs)
        base = grounded(xs, device)
        if base is None:
            with replayed(self.keys):
                return self.family.run(xs)
        try:
            program = self.program(xs, base)
            self._notice()
            with self.drawing(program.draws):
                ys = program.tensors([_leaf_array(x) for x in xs], xs)
        except OtherNumberError:
            ys = self._unrecorded(xs, base)
        return [wrap(lift_to(y, device), device) for y in ys]

    def _unrecorded(self, xs: Tensors, base: Backend) -> Tensors:
        """The results where the function cannot be recorded for all numbers: it asks for them in a derivative, say."""
        device = self.device_over(base)
        with running_on(device), replayed(self.keys):
            ys = self.family.run([wrap(device.lift(_leaf_array(x), base), device) for x in xs])
        return [wrap(_leaf_array(y), base) for y in ys]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return self.forward_by(xs, [True] * len(xs))

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        device = common_backend(*xs)
        base = grounded(xs, device)
        places = [i for i, (x, by) in enumerate(zip(xs, active, strict=True)) if by and x.dtype.kind in INEXACT]
        if base is None or not places:
            return self._values(xs, places), (xs, None, ())
        try:
            parts = self.parts(xs, places, base)
            self._notice()
            with self.drawing(parts.draws):
                out = parts.forward([_leaf_array(x) for x in xs])
        except OtherNumberError:
            return self._values(xs, places), (xs, None, ())
        ys = [wrap(device.lift(y, base), device) for y in out[: parts.results]]
        return ys, (xs, (parts, places, base, device), out[parts.results :])

    def _notice(self) -> None:
        if self.family.noticed:
            notice()

    def _values(self, xs: Tensors, active: Sequence[int]) -> Tensors:
        """The results for levels further out: where reverse mode follows the function, it uses rules in it up."""
        family, ys = self.family, list[Tensor[Any]]()
        if not (family.noticed and active):
            with noticing() as noticed:
                ys = self.on(xs)
            family.noticed |= noticed.found
            if not (family.noticed and active):
                return ys
        f = family.f

        def ruled(values: Tensors) -> Tensors:
            with without_calls(made=bool(ys)):
                return _pullback(f, values, active, None)[0]

        return self.derived(("values", len(xs), tuple(active)), ruled).on(xs)

    def node(self, xs: Tensors, device: Autodiff[Any], active: Sequence[int], any_size: bool) -> Node | None:
        """What calls of the function record on reverse mode over what computes, for arguments like these."""
        base = device.inner
        run = self._direct([wrap(_leaf_array(x), base) for x in xs], base, base, active)
        if run is None or (run.last.symbols is None and any_size):
            return None
        name = self.name

        def made(arrays: Sequence[Any], operands: Sequence[Var]) -> list[Tensor[Any]]:
            values, pull = run(arrays)
            return [wrap(var, device) for var in device.record(name, pull, operands, values)]

        return Node(made, run.fits)

    def pullback(self, below: Tensors, device: Decorator[Any], active: Sequence[bool]) -> tuple[list[Any], Pullback]:
        base = grounded(below, device.inner)
        wanted = [i for i, x in enumerate(below) if active[i] and x.dtype.kind in INEXACT]
        if base is not None and wanted:
            run = self._direct(below, device.inner, base, wanted)
            if run is not None:
                try:
                    return run([_leaf_array(x) for x in below])
                except OtherNumberError:
                    pass
        return CustomRules.pullback(self.by(wanted), below, device, active)

    def _direct(self, xs: Tensors, inner: Backend, base: Backend, active: Sequence[int]) -> _Direct | None:
        """The results and the pullback of a node, of arrays on what computes; None where it takes more than that.

        `inner` is the backend below the level that has the node, on which arguments and results are constants.
        """
        try:
            with running_on(inner):
                parts = self.parts(xs, active, base)
        except OtherNumberError:
            return None
        graph: Any = parts.forward.graph
        if parts.draws or any([x.dtype.kind == "c" for x in (*graph.inputs, *graph.outputs[: parts.results])]):
            return None
        return _Direct(self, parts, [x.dtype for x in xs], inner, base, active)

    @property
    def noticed(self) -> bool:  # type: ignore[override]
        return self.family.noticed

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return xs, None, ()

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        found = self.backward_of(saved, cotangents, cotangents)
        return [same_zeros(x) if g is None else g for g, x in zip(found, saved[0], strict=True)]

    def backward_of(
        self, saved: Any, cotangents: Sequence[Tensor[Any] | None], results: Tensors
    ) -> Sequence[Tensor[Any] | None]:
        xs, how, kept = saved
        given = [i for i, c in enumerate(cotangents) if c is not None and c.dtype.kind in INEXACT]
        known: Tensors = [c for i in given if (c := cotangents[i]) is not None]
        if how is not None:
            parts, active, base, device = how
            is_grounded = grounded(known, device) is base
            if is_grounded:
                with contextlib.suppress(OtherNumberError), self.drawing(parts.draws):
                    if parts.given != tuple(given):  # others than the last time: the function runs once more
                        parts = self.parts(xs, active, base, tuple(given))
                        with without_calls():
                            kept = parts.forward([_leaf_array(x) for x in xs])[parts.results :]
                    out = parts.backward([*kept, *[_leaf_array(g) for g in known]])
                    answers = dict(zip(active, out, strict=True))
                    return [
                        wrap(device.lift(answers[i], base), device) if i in answers else None for i in range(len(xs))
                    ]
        moved = [i for i, x in enumerate(xs) if x.dtype.kind in INEXACT] if self.active is None else self.active
        f, count = self.family.f, len(xs)

        def pullback(both: Tensors) -> Tensors:
            with without_calls(made=True):  # when the function itself ran
                _, _, pull = _pullback(f, both[:count], moved, given)
            return list(pull(both[count:]))

        rules = self.derived(("pullback", count, tuple(moved), tuple(given)), pullback)
        found = dict(zip(moved, rules.on([*xs, *known]), strict=True))
        return [found.get(i) for i in range(count)]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        ys, moved = self.push_of(xs, tangents)
        return ys, [same_zeros(y) if t is None else t for t, y in zip(moved, ys, strict=True)]

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        active = [i for i, t in enumerate(tangents) if t is not None and t.dtype.kind in INEXACT]
        identity = "pushforward", tuple(active), tuple([(len(x.shape), x.dtype) for x in xs])
        pushed = self.kin((*identity, "function"), lambda: _Pushed(self.family.f, active, len(xs)))
        both = [*xs, *[t for i in active if (t := tangents[i]) is not None]]
        out = self.derived(identity, pushed).on(both)
        ys, moved = out[: len(out) // 2], out[len(out) // 2 :]
        return ys, [t if moves else None for t, moves in zip(moved, pushed.moves.of(both), strict=True)]

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        how = level.configuration()[1:]
        identity = "examples", *how, tuple(flags), tuple([(len(x.shape), x.dtype) for x in xs])
        examples = self.kin(
            (*identity, "function"),
            lambda: _Batch(Examples(self.family.f, Batched(observed_leaf(level), *how), size, flags)),
        )
        ys = self.derived(identity, examples).on(xs)
        return ys, examples.batched.of(xs)


class Noted:
    """What is noted of a function's results, by the shapes of its arguments, and once for sizes that stand for several.

    `alike` says whether two of these are the same.
    """

    def __init__(self, alike: Callable[[Any, Any], bool] = operator.eq) -> None:
        self.known: dict[Any, Any] = {}
        self.of_any: Any = None
        self.alike = alike

    def note(self, xs: Sequence[Any], found: Any) -> None:
        """Raises OneSizeError where it follows from sizes that stand for several."""
        shapes = _shapes(xs)
        if not has_sizes(shapes):
            self.known.pop(shapes, None)  # so that those of the last recordings are at the end
            while len(self.known) >= MOST:
                del self.known[next(iter(self.known))]
            self.known[shapes] = found
        elif self.of_any is None or self.alike(self.of_any, found):
            self.of_any = found
        else:
            raise OneSizeError

    def of(self, xs: Sequence[Any]) -> Any:
        """What was noted of a call with these arguments, which has run."""
        return self.known.get(_shapes(xs), self.of_any)


def _shapes(xs: Sequence[Any]) -> tuple[Shape, ...]:
    return tuple([x.shape for x in xs])


class _Batch:
    """A function for all examples of a level at once; `batched` says which results have an axis of them.

    Recorded again, for a derivative say, those have it that had it the first time.
    """

    def __init__(self, examples: Examples) -> None:
        self.examples, self.batched = examples, Noted()

    def __call__(self, xs: Tensors) -> Tensors:
        shapes = _shapes(xs)
        if not has_sizes(shapes) and shapes in self.batched.known:
            return self.examples.as_wide_as(self.batched.known[shapes], xs)
        ys, kinds = self.examples(xs)
        self.batched.note(xs, kinds)
        return ys


class _Direct:
    """Of arrays on what computes, the results of a function and the pullback of a node: see Rules._direct."""

    def __init__(
        self,
        rules: Rules,
        parts: Halves,
        dtypes: Sequence[DType],
        inner: Backend,
        base: Backend,
        active: Sequence[int],
    ) -> None:
        self.rules, self.last, self.dtypes = rules, parts, dtypes
        self.inner, self.base, self.active = inner, base, active

    def fits(self, shapes: Sequence[Shape]) -> bool:
        """Whether it is right for arguments of these shapes, if it is for several."""
        return self.last.symbols is not None and self.last.symbols.fits(shapes)

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], Pullback]:
        now, rules, inner, base, active = self.last, self.rules, self.inner, self.base, self.active
        is_base = inner is base
        rules._notice()
        out = now.forward(arrays)
        count = now.results
        kept = out[count:]

        def lifted(found: Sequence[Any]) -> list[Any]:
            return list(found) if is_base else [inner.lift(x, base) for x in found]

        def on_levels(saved: Any) -> Pullback:  # recorded, or of a batch
            specs = [Spec(tuple(x.shape), dtype) for x, dtype in zip(arrays, self.dtypes, strict=True)]
            return rules.by(active).pull_of(saved, inner, specs, Keys())

        def pull(on: Any, cotangents: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
            if on is not inner:
                return on_levels(None)(on, cotangents, operands, results)
            given = tuple([i for i, c in enumerate(cotangents) if c is not None])
            gs = [cotangents[i] for i in given]
            elsewhere = not is_base and any([inner.tracked(g) for g in gs])
            if not elsewhere:
                if not is_base:
                    gs = [inner.leaf_array(g) for g in gs]
                known, left = now, kept
                try:
                    if now.given != given:
                        with running_on(inner):
                            known = rules.parts([wrap(x, inner) for x in operands], active, base, given)
                        if now.symbols is None or (known.symbols is not None and known.symbols.serves_as(now.symbols)):
                            self.last = known  # what another thread has seen that it fits, it goes on to fit
                        with without_calls():
                            left = known.forward(operands if is_base else [inner.leaf_array(x) for x in operands])
                            left = left[count:]
                    found = dict(zip(active, lifted(known.backward([*left, *gs])), strict=True))
                    return [found.get(i) for i in range(len(arrays))]
                except OtherNumberError:
                    pass
            # what is saved does not serve
            return on_levels(([wrap(x, inner) for x in operands], None, ()))(on, cotangents, operands, results)

        return lifted(out[:count]), pull


class _Pushed:
    """A function and its tangents by some arguments, as one function; `moves` says which results have any."""

    def __init__(self, f: Flat, active: Sequence[int], count: int) -> None:
        self.f, self.active, self.count = f, active, count
        self.moves = Noted()

    def __call__(self, both: Tensors) -> Tensors:
        xs, tangents = both[: self.count], both[self.count :]

        def run(*values: Any) -> Tensors:
            ys = self.f(_with(xs, self.active, values))
            level: Any = current_level()
            self.moves.note(both, [y._device is level and level.is_active(y._array) for y in ys])
            return ys

        ys, moved = jvp(run, tuple([xs[i] for i in self.active]), tuple(tangents))
        return [*ys, *moved]


def _close(symbols: Symbols | None) -> None:
    """Have no more questions be asked about sizes: the recording is complete."""
    if symbols is not None:
        symbols.is_open = False


def _pullback(
    f: Flat, xs: Tensors, active: Sequence[int], given: Sequence[int] | None
) -> tuple[Tensors, list[int], Callable[[Tensors], Tensors]]:
    """The results, those that are to have cotangents (by default all that can), and the pullback of these."""
    wanted: list[int] = []

    def run(*values: Any) -> tuple[Tensors, Tensors]:
        level: Any = current_level()  # where all arguments are, as where the function was called
        ys = f(_with([wrap(lift_to(x, level), level) for x in xs], active, values))
        wanted[:] = [i for i, y in enumerate(ys) if y.dtype.kind in INEXACT and (given is None or i in given)]
        return [ys[i] for i in wanted], ys

    _, pull, ys = vjp(run, *[xs[i] for i in active], has_aux=True)
    return ys, wanted, pull


def _with(xs: Tensors, places: Sequence[int], values: Sequence[Any]) -> Tensors:
    given = list(xs)
    for i, x in zip(places, values, strict=True):
        given[i] = x
    return given


def _arguments(place: Place, xs: Tensors, shapes: Sequence[Shape], device: Backend) -> list[tuple[Value, Tensor[Any]]]:
    given = [place.argument(shape, x.dtype, device) for shape, x in zip(shapes, xs, strict=True)]
    place.recording.values = {value: number_of(x) for (value, _), x in zip(given, xs, strict=True) if not x.shape}
    return given


def number_of(x: Tensor[Any]) -> Any:
    """A tensor as one of Python's numbers: where it is recorded, what stands for that."""
    array = _leaf_array(x)
    return symbol_of(array) if array.__class__ is Value else x._device.leaf.to_numpy(array).item()


def _leaf_array(x: Tensor[Any]) -> Any:
    return x._device.leaf_array(x._array)


def grounded(xs: Sequence[Tensor[Any]], device: Backend) -> Backend | None:
    """The backend that computes, if these are constants of all levels over it; None where a level has to see them."""
    base = observed_leaf(device)
    level = device
    while level is not base:
        if not isinstance(level, Decorator) or level.observes:
            return None
        level = level.inner
    if isinstance(base.leaf, Traced):
        return None
    return None if any([x._device.tracked(x._array) for x in xs]) else base


def _row(count: int) -> Any:
    """The structure of a list of so many leaves."""
    return trees.structure([0.0] * count)
