"""One call of a compiled function: its arrays, what the recording depends on, and the recording."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.compiler.environment import PLAIN, Environment, changed, may_change, may_run, plain
from adjoint.compiler.general import Axes
from adjoint.compiler.numbers import can_vary
from adjoint.compiler.programs import Place, Program, placed, results_of
from adjoint.compiler.sizes import Symbols
from adjoint.compiler.traced import Traced, line_of, refuse_closed, symbol_of
from adjoint.concrete import callbacks
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import current_level, default_device, observed_leaf
from adjoint.functions.arguments import as_axis, is_numeric
from adjoint.functions.gradients import Gradients
from adjoint.graph.nodes import LeafNode
from adjoint.lines import Line, line_changing
from adjoint.primitives import DType, Shape
from adjoint.tensor import Tensor, raw_array, refuse_ended
from adjoint.transforms.arguments import array_of, base_of
from adjoint.transforms.closures import Attributes, Held, substituted

if TYPE_CHECKING:
    from adjoint.compiler.compiled import Compiled


_USED_UP = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter, zip)


class Seen(NamedTuple):
    """An earlier call, without its arrays."""

    structure: Any
    specs: list[Any]
    leaves: list[Any]
    guard: tuple[Any, ...]


def wants_numpy(leaves: list[Any]) -> bool:
    """Whether arguments are NumPy's, or Python's floats, and none is a tensor: then results are NumPy's."""
    numbers = [
        isinstance(x, (np.ndarray, float, complex)) or (isinstance(x, np.generic) and is_numeric(x)) for x in leaves
    ]
    return any(numbers) and not any([isinstance(x, Tensor) for x in leaves])


def _is_array(x: Any) -> bool:
    """Whether it is an array of a library that is not known here: one of another content would not be told from it."""
    names = "__array__", "shape", "dtype"
    return all([hasattr(type(x), name) for name in names]) and not isinstance(x, (np.generic, int, float))


class Signature:
    """A call: its arrays, and the key of all that the recording depends on."""

    around: bool
    closed: list[Tensor[Any]]
    dynamic: Any
    environment: Environment | Any
    objects: list[Any]
    other: str | None
    f: Callable[..., Any]
    guard: tuple[()] | tuple[Any, ...]
    key: tuple[Any, ...]
    leaves: list[Any]
    level: Backend | None
    name: str
    named: bool
    of_module: bool
    structure: Any
    varying: set[Any]

    def __init__(self, owner: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.f, self.name, self.of_module = owner.f, owner.name, owner.of_module
        self.varying, self.named, self.dynamic = owner.varying, bool(kwargs), owner.dynamic
        self.asked_on_levels: Mapping[int, Line | None] = owner.asked_on_levels
        self.changing: set[str] = owner.changing
        self.level = level = current_level()
        self.recording: bool = level is not None and isinstance(level.leaf, Traced)
        if self.recording:
            return
        f = self.f
        given: Any = (args, kwargs) if not self.of_module else (f, args, kwargs)
        self.leaves, self.structure = trees.flatten(given if kwargs or self.of_module else args)
        self.reads: Any = type(f).__call__ if self.of_module else f  # the function whose surroundings count
        self.objects = [*[x for x in self.leaves if may_change(x)], *may_run(given)]
        known, self.other = owner.surroundings, None  # and the variable that is another one than in the last call
        if known is None or not known.is_of(self.objects, self.changing) or not known.is_unchanged():
            self.other = known.changed_variable() if known is not None else None
            known = Environment(self.reads, self.objects, self.changing)
            owner.surroundings = None if known.tensors else known
        self.environment, self.closed, self.guard = known, known.tensors, known.guard
        self.callbacks: int = callbacks.count
        tensors = [x for x in (*self.leaves, *self.closed) if isinstance(x, Tensor)]
        self.as_numpy: bool = (
            level is None
            and wants_numpy(self.leaves)
            and not any([x._device.tracked(raw_array(x)) for x in self.closed])  # a result may be tracked by it
        )
        for x in tensors:
            refuse_ended(x, self.name)
        self.device: Backend = base_of(tensors, self.name) if tensors or level is not None else default_device()
        self.recording = isinstance(self.device.leaf, Traced)
        if self.recording:
            return
        self.base: Backend = observed_leaf(self.device)
        self.around = not all([_is_users(d, self.base) for d in {x._device for x in tensors} | {self.device}])
        self.foreign: bool = self.around and not any([level.is_fresh for level in self.device.chain()])
        self.read()

    def read(self) -> None:
        """Look at the leaves: which are traced, and as what."""
        self.inputs: list[Any] = []  # what has arrays, closed-over tensors last
        self.places: list[int] = []  # of inputs among the leaves
        self.numbers: list[int] = []  # ... which are Python's numbers
        self.asked: dict[int, Line] = {}  # ... and where the value of one was asked for
        self.specs: list[Any] = []
        for i, x in enumerate(self.leaves):
            self.specs.append(self._spec(i, x))
        if self.around and not self.asked_on_levels.keys().isdisjoint(self.numbers):
            return self.as_they_are(self.asked_on_levels)
        self.inputs += self.closed
        specs = (*self.specs, *[self._of_tensor(x) for x in self.closed])
        self.key = (
            self.structure,
            specs,
            (self.base, self.options()) if self.around else self.device,  # a transform's level is another each time
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
        exact = x.__class__ is not float or self.base.widest(dtypes.float64) is dtypes.float64
        if i in self.varying and can_vary(x) and exact:  # else Python's float would lose digits on its way
            self.numbers.append(i)
            self.inputs.append(np.asarray(x))
            self.places.append(i)
            return x.__class__, None
        if isinstance(x, (np.ndarray, np.void)) or is_numeric(x):
            self.inputs.append(x)
            self.places.append(i)
            return x.shape, self._dtype(i, x)
        if _is_array(x):
            raise self._unknown(i, x)
        found = plain(x)
        try:
            hash(found)
        except (TypeError, ValueError):  # the latter of a view of memory that may be written to
            raise self._unknown(i, x) from None
        return found

    def _dtype(self, i: int, x: Any) -> DType:
        """That of an array; raises DtypeError where no tensor is made of it."""
        if x.__class__ is not np.ndarray and dtypes.is_masked(x):
            dtypes.refuse_masked(x, f"{self.name}: {self.path(i)}")
        hint = dtypes.as_numbers(x.dtype)
        if is_numeric(x):
            try:
                return dtypes.as_dtype(x.dtype)
            except errors.DtypeError as error:
                hint = f"; {error}; x.astype(ad.float64) is one of them"
        raise errors.DtypeError(f"{self.name}: {self.path(i)} is {errors.shown(x)}, expected numbers or booleans{hint}")

    def _unknown(self, i: int, x: Any) -> errors.AdjointError:
        """The error for what is no array, and what has no hash."""
        where = f"{self.name}: {self.path(i)} is {errors.shown(x)} of type {type(x).__name__}, which is"
        if hasattr(x, "toarray"):
            return errors.DtypeError(f"{where} no array; pass x.toarray(), or the arrays that it is made of")
        if dtypes.has_dtype(x):
            return errors.DtypeError(f"{where} no array; pass np.asarray(x)")
        return errors.ArgumentTypeError(
            f"{where} neither an array nor hashable, so that another one could not be told from it; pass its parts, or "
            "a tuple"
        )

    def as_they_are(self, fixed: Collection[int] | None = None) -> None:
        """Read the call again, with the values of numbers, by default of all, as parts of what is recorded."""
        self.varying = set() if fixed is None else self.varying.difference(fixed)
        self.read()

    def _of_tensor(self, x: Tensor[Any]) -> Any:
        kind = kind_of_node(x)
        if not kind and not self.around and x._device.tracked(raw_array(x)):
            self.around = True  # by an inner level
        return x.shape, x._dtype, x._device if not x._device.is_fresh else None, kind

    def options(self) -> Any:
        """Of the outermost reverse mode: how derivatives of the function are recorded."""
        return next((d.configuration()[1:] for d in self.device.chain() if isinstance(d, Autodiff)), None)

    def ranks(self) -> Any:
        """The key without sizes."""
        structure, specs, *rest = self.key
        return (structure, tuple([unsized(spec) for spec in specs]), *rest)

    def dynamic_axes(self) -> set[tuple[int, int]]:
        """The axes of the inputs that are said to change."""
        if self.dynamic is None:
            return set()
        if self.dynamic is True:
            return {(i, k) for i, x in enumerate(self.inputs) for k in range(len(x.shape))}
        numbers = self.arguments()
        if len(self.dynamic) > 1 + max(numbers, default=-1):
            raise errors.ArgumentError(
                f"{self.name}: dynamic has {len(self.dynamic)} entries for {1 + max(numbers, default=-1)} positional "
                "arguments"
            )
        return {
            (i, as_axis(axis, len(x.shape), f"{self.name}: dynamic"))
            for i, (x, place) in enumerate(zip(self.inputs, self.places, strict=False))
            for axis in (self.dynamic[numbers[place]] if -1 < numbers[place] < len(self.dynamic) else ())
        }

    def donated(self, donate: tuple[int, ...]) -> list[int]:
        """The places of donated arguments among the inputs."""
        numbers = self.arguments()
        for n in donate:
            if n not in numbers or n < 0:
                raise errors.ArgumentError(
                    f"{self.name}: donate names argument {n}, and {1 + max(numbers, default=-1)} positional arguments "
                    "with arrays were given"
                )
        return [i for i, place in enumerate(self.places) if numbers[place] in donate]

    def arguments(self) -> list[int]:
        """The number of the positional argument that each leaf belongs to; -1 for others."""
        given: Any = trees.unflatten(self.structure, self.leaves)
        if self.of_module:
            module, args, _ = given
            inside = [-1] * len(trees.leaves(module))
        else:
            args, inside = given[0] if self.named else given, []
        numbers = [*inside, *[n for n, x in enumerate(args) for _ in trees.leaves(x)]]
        return [*numbers, *[-1] * (len(self.leaves) - len(numbers))]

    @property
    def arrays(self) -> list[Any]:
        """The arrays of the inputs, on the backend that computes."""
        return [
            x._device.leaf_array(x._array) if isinstance(x, Tensor) else array_of(x, self.base) for x in self.inputs
        ]

    @property
    def values(self) -> list[Any]:
        """The numbers that are traced."""
        return [self.leaves[i] for i in self.numbers]

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

    def seen(self) -> Seen:
        """What to compare later calls with."""
        return Seen(self.structure, self.specs, self.without_arrays(), self.guard)

    def without_arrays(self) -> list[Any]:
        traced = set(self.places)
        return [None if i in traced else x for i, x in enumerate(self.leaves)]

    def difference(self, last: Seen, asked: Mapping[int, Any]) -> str:
        """What of this call is not as in the last one; `asked` has numbers whose values the function asks for."""
        if last.structure != self.structure:
            return self._other_structure(last)
        for i, (x, y) in enumerate(zip(self.specs, last.specs, strict=True)):
            if x != y:
                if i not in self.places:
                    return (
                        f"{self.path(i)} changes, from {errors.shown(last.leaves[i])} to "
                        f"{errors.shown(self.leaves[i])}{'' if asked.get(i) else _advice(self.leaves[i])}"
                    )
                was, now = (f"{s[1]}{list(s[0])}" if isinstance(s[0], tuple) else errors.shown(s) for s in (y, x))
                where = "" if was != now else ", in its device or in what tracks it"
                return f"{self.path(i)} changes, from {was} to {now}{where}"
        if last.guard != self.guard:
            names = sorted(changed(last.guard, self.guard) or ())
            if names:
                return f"the attribute {names[0]!r} of an object or a module changes; make it an argument"
            what = "something in its closure or its module" if self.other is None else f"{self.other!r}, outside of it,"
            return f"{what} changes; make it an argument"
        if self.numbers:
            which = " and ".join(map(self.path, self.numbers))
            return f"{which} changes, and with it what comparisons give; choose with ad.where of an array"
        return "the device, or the default dtype, changes"

    def _other_structure(self, last: Seen) -> str:
        """Which argument has other parts than in the last call, or other settings."""
        if not self.named and not self.of_module:
            pairs = list(zip(self.structure.children(), last.structure.children(), strict=False))
            if len(pairs) == len(self.structure.children()) == len(last.structure.children()):
                n, (now, before) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
                where = trees.difference(now, before).replace("containers differ", "its settings or classes differ")
                return f"the structure of argument {n} changes, {where}"
        return f"the structure of the arguments changes, {trees.difference(self.structure, last.structure)}"

    def looked(self) -> Environment:
        """What the function reads beside its arguments, as it is now."""
        known = self.environment
        if known is not None and known.is_of(self.objects, self.changing) and known.is_unchanged():
            return known
        return Environment(self.reads, self.objects, self.changing)

    # --- recording ---

    def call(self, tensors: Sequence[Any]) -> Any:
        """f of these tensors in the place of inputs."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, tensors, strict=False):
            leaves[i] = x
        closed = tensors[len(self.places) :]
        arguments: Any = trees.unflatten(self.structure, leaves)
        now = self.looked()
        values = {id(x): y for x, y in zip(now.tensors, closed, strict=True)}
        attributes = Attributes(now.holders, values, now.assigned)
        if self.of_module:
            f, args, kwargs = arguments
            with attributes.given():
                return f(*args, **kwargs)
        args, kwargs = arguments if self.named else (arguments, {})
        f = substituted(self.f, values)
        held = Held(f) if f is not self.f else None  # a copy, whose variables are nobody else's
        with attributes.given():
            out = f(*args, **kwargs)
        if held is not None and (what := held.changed()) is not None:
            raise errors.TrackedError(
                f"{self.name}: {what}, which is outside of it: it would do so only while it is recorded; take the old "
                "value as an argument, and return the new one"
            )
        return out

    def recorded(self, axes: Axes | None = None) -> Program | None:
        """The program, for several sizes of some axes; None where numbers that are traced have to be what they are."""
        symbols = Symbols() if axes else None
        try:
            return self._recorded(symbols, axes or set())
        finally:
            if symbols is not None:
                symbols.is_open = False

    def _recorded(self, symbols: Symbols | None, axes: Axes) -> Program | None:
        shapes = [x.shape for x in self.inputs]
        if symbols is not None:
            shapes = symbols.shapes(shapes, axes)
        return placed(self.base, self.device, lambda place: self._on(place, symbols, shapes))

    def _on(self, place: Place, symbols: Symbols | None, shapes: Sequence[Shape]) -> Program | None:
        numbers = {k for k, i in enumerate(self.places) if i in self.numbers}
        place.leaf.function, place.recording.symbols = self.name, symbols
        place.leaf.arrays_on = place.device if self.as_numpy else None
        given = [self._argument(place, x, shape) for x, shape in zip(self.inputs, shapes, strict=True)]
        place.recording.values = {given[k][0]: self.leaves[self.places[k]] for k in numbers}
        tensors: list[Any] = [symbol_of(value) if k in numbers else x for k, (value, x) in enumerate(given)]
        symbolic = place.recording.numbers
        before = [None if k in numbers else raw_array(x) for k, x in enumerate(tensors)]
        guard = self.guard
        out = self.call(tensors)
        self._nothing_assigned(tensors, before, guard)
        leaves, structure = trees.flatten(out)
        self.refuse_used_up(leaves)
        self._refuse_hidden(leaves, place.leaf)
        nodes = {
            x._array.node: k
            for k, x in enumerate(tensors)
            if k not in numbers and getattr(x._array, "node", None) is not None
        }
        results, outputs = results_of(place, leaves, nodes)
        refuse_closed(self.name, outputs)
        graph = place.recording.graphs[0]
        graph.inputs, graph.outputs = [value for value, _ in given], outputs
        if any([r.kind == "live" for r in results]) and any([r.kind in ("leaf", "given") for r in results]):
            raise errors.TrackedError(
                f"{self.name} returns leaves and results that are tracked by its arguments; of a compiled "
                "step return loss.detach() beside the new leaves"
            )
        if symbolic is not None:
            kept = symbolic.are_in(structure, results)
            symbolic.is_open = False
            if kept or symbolic.asked:
                self.asked = {self.numbers[k]: line for k, line in symbolic.asked.items()}
                return None
        if symbols is not None:
            if symbols.are_in(structure, results):
                return None
            symbols.is_open = False
        return Program(self.base, graph, results, structure, self.name, symbols, symbolic)

    def _argument(self, place: Place, x: Any, shape: Shape) -> Any:
        if not isinstance(x, Tensor) or self.foreign:
            return place.argument(shape, dtypes.as_dtype(x.dtype), self.device)
        return place.argument(shape, x._dtype, x._device, kind_of_node(x))

    def refuse_used_up(self, results: Sequence[Any]) -> None:
        """Raises ArgumentTypeError for what gives its values once, or is found by tensors that are gone."""
        for x in results:
            if isinstance(x, _USED_UP):
                if isinstance(x, types.CoroutineType):
                    x.close()  # else Python warns that nobody awaited it
                raise errors.ArgumentTypeError(
                    f"{self.name} returns {type(x).__name__}, whose values are computed later, when it is no longer "
                    "recorded; return a list or a tuple"
                )
            if isinstance(x, Gradients) and isinstance(x._level.leaf, Traced):
                raise errors.ArgumentTypeError(
                    f"{self.name} returns Gradients, which are found by tensors of the recording; return those that "
                    "are wanted, as in grads[w]"
                )

    def _refuse_hidden(self, results: Sequence[Any], leaf: Backend) -> None:
        """Raises ArgumentTypeError for objects and functions that hold tensors of the recording."""
        for x in results:
            if not isinstance(x, Tensor) and _holds(x, leaf, set()):
                raise errors.ArgumentTypeError(
                    f"{self.name} returns {type(x).__name__}, which is no pytree and holds tensors that have no values "
                    "once it is recorded; return its parts, as in grads[w], or make it a dataclass"
                )

    def as_before(self, closed: int) -> Any:
        """The guard, for a recording that is made after the call: of a derivative that was not asked for before.

        Raises TrackedError if what the function reads is not what it was, or not so many tensors beside its arguments.
        """
        now = self.looked()
        found = changed(self.guard, now.guard) if self.callbacks == callbacks.count else set()
        if found is None or found - self.changing or len(now.tensors) != closed:
            names = ", ".join(map(repr, sorted(found or ()))) or "what it reads beside its arguments"
            raise errors.TrackedError(
                f"{self.name}: {names} changed after the call whose derivative is asked for now; make it an argument, "
                "or change it after all derivatives"
            )
        return now.guard

    def _nothing_assigned(self, tensors: Sequence[Tensor[Any]], before: Sequence[Any], guard: Any) -> None:
        for k, (x, array) in enumerate(zip(tensors, before, strict=True)):
            if array is not None and raw_array(x) is not array:
                what = self.path(self.places[k]) if k < len(self.places) else "a tensor that the function closes over"
                raise errors.TrackedError(
                    f"{self.name} assigns to {what}, of shape {x.shape}: only results come out of a compiled "
                    f"function; assign to a copy, x.copy(), and return it{_line(x)}"
                )
        after = self.looked()
        now = after.guard
        if self.callbacks != callbacks.count:  # a guard of before looked at what they fill
            self.callbacks, self.guard = callbacks.count, now
            return
        found = changed(guard, now)
        if found is None:
            known = self.environment
            name = known.changed_variable() if known is not None else None
            what = "what is in its closure or its module" if name is None else f"{name!r}, which is outside of it"
            found_line = line_changing(known.codes(), name) if known is not None and name is not None else None
            line = "" if found_line is None else f"\n  at {found_line}"
            raise errors.TrackedError(
                f"{self.name} changes {what}: it would do so only while it is recorded; take the old value as an "
                f"argument, and return the new one{line}"
            )
        self.changing |= found
        if self.environment is not None:
            self.changing |= self.environment.moved(after)


def _advice(x: Any) -> str:
    """How a value may change without another recording."""
    if isinstance(x, (bool, int, float, complex)):
        return "; make it a tensor or a NumPy number, whose value may change"
    return "; make it once, outside of the calls" if callable(x) else ""


def _holds(x: Any, leaf: Backend, seen: set[int]) -> bool:
    """Whether there is a tensor of this leaf in what an object or a function holds."""
    if isinstance(x, (*PLAIN, type, types.ModuleType, np.ndarray, np.generic)) or id(x) in seen:
        return False
    if isinstance(x, Tensor):
        return any([level is leaf for level in x._device.chain()])
    seen.add(id(x))
    held: list[Any] = []
    if isinstance(x, (tuple, list, set, frozenset)):
        held = list(x)
    elif isinstance(x, (Mapping, Gradients)):
        held = list(x.values())
    elif isinstance(x, types.FunctionType):
        for cell in x.__closure__ or ():
            with contextlib.suppress(ValueError):  # it is empty
                held.append(cell.cell_contents)
    elif isinstance(x, types.MethodType):
        held = [x.__self__]
    elif isinstance(x, functools.partial):
        held = [x.func, x.args, x.keywords]
    else:
        slots = [y for c in type(x).__mro__ for y in vars(c).values() if isinstance(y, types.MemberDescriptorType)]
        for slot in slots:
            with contextlib.suppress(AttributeError):  # it is empty
                held.append(slot.__get__(x))
        held += getattr(x, "__dict__", {}).values()
    return any([_holds(y, leaf, seen) for y in held])


def _line(x: Tensor[Any]) -> str:
    """Where the value of a tensor was computed, for a message."""
    line = line_of(x._device.leaf_array(raw_array(x)))
    return "" if line is None else f"\n  at {line}"


def kind_of_node(x: Tensor[Any]) -> str:
    """How the outermost level tracks a tensor: as a leaf, as a result, or not."""
    node = getattr(raw_array(x), "node", None)
    return "" if node is None else "leaf" if isinstance(node, LeafNode) else "result"


def unsized(spec: Any) -> Any:
    """What of a leaf the recording depends on, without sizes."""
    return (len(spec[0]), *spec[1:]) if spec.__class__ is tuple and spec[0].__class__ is tuple else spec


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
