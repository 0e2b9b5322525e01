"""Calls of a compiled function that are like an earlier one: for these a function is written out, as source.

It looks once at each argument, at what a recording depends on and at nothing else, and runs the program. It reads no
call that it was not written for: that is left to the general way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint import devices, dtypes
from adjoint import tree as trees
from adjoint.backends.numpy import NumPy
from adjoint.compiler.calls import Signature, kind_of_node
from adjoint.compiler.environment import Environment, disabled, settings
from adjoint.compiler.numbers import can_vary
from adjoint.compiler.programs import Program, Result
from adjoint.compiler.rules import Node
from adjoint.compiler.sizes import BUILTINS, is_size
from adjoint.decorators.autodiff import Autodiff
from adjoint.functions.arguments import is_numeric
from adjoint.graph.nodes import LeafNode, Var
from adjoint.module.fields import Constant, Fields, Setting
from adjoint.primitives import Shape
from adjoint.scopes import here
from adjoint.tensor import Tensor, UniqueTensor, allocate
from adjoint.transforms.arguments import array_of

if TYPE_CHECKING:
    from adjoint.compiler.compiled import Called

Again = Callable[[tuple[Any, ...], dict[str, Any]], Any]

UNLIKE = object()  # what it gives where a call is of another kind


def again(f: Any, call: Signature, program: Program, called: Called | None, args: Any, kwargs: Any) -> Again | None:
    """The function for calls like this one, which has just run; None where the general way is taken each time.

    `called` is what ran, if results are tracked.
    """
    if call.level is not None:
        return None
    node = called.node(call, program.symbols is not None) if program.live and called is not None else None
    if program.live and node is None:
        return None
    return _Writer(f, call, program, called, node).written(args, kwargs)


class _UnknownError(Exception):
    """A part of a module that is read by flattening all of it."""


class _Writer:
    """The lines of the function, and the names in them: of constants in its scope, and of variables."""

    def __init__(self, f: Any, call: Signature, program: Program, called: Called | None, node: Node | None) -> None:
        self.f, self.call, self.program, self.called, self.node = f, call, program, called, node
        self.base, self.on_numpy = call.base, type(call.base) is NumPy
        self.lines: list[str] = []
        self.arrays: list[str] = []  # of the inputs
        self.numbers: list[str] = []  # those that are Python's numbers
        self.inputs: list[str] = []
        self.operands: list[str] = []  # the inputs as arrays of the level, where results are tracked
        self.count = 0  # of leaves that were read
        self._variables = 0
        self._known: dict[int, str] = {}  # names of constants, by identity
        self.scope: dict[str, Any] = {
            "Tensor": Tensor,
            "UniqueTensor": UniqueTensor,
            "Var": Var,
            "LeafNode": LeafNode,
            "ndarray": np.ndarray,
            "asarray": np.asarray,
            "tuple": tuple,
            "list": list,
            "dict": dict,
            "len": len,
            "isinstance": isinstance,
            "repr": repr,
            "KeyError": KeyError,
            "ValueError": ValueError,
            "new": allocate,
            "UNLIKE": UNLIKE,
            "__builtins__": BUILTINS,
        }

    def constant(self, value: Any) -> str:
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = f"c{len(self._known)}"
            self.scope[name] = value  # which keeps it, and so its identity
        return name

    def variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def do(self, line: str) -> None:
        self.lines.append(line)

    def refuse(self, condition: str) -> None:
        self.lines.append(f"if {condition}: return UNLIKE")

    def written(self, args: Any, kwargs: Any) -> Again:
        call, structure = self.call, self.call.structure
        self._settings()
        if call.of_module:
            module, positional, named = structure.children()
            self.read(self.constant(self.f), self.f, module)
        elif call.named:
            positional, named = structure.children()
        else:
            positional, named = structure, None
        self.refuse(f"len(args) != {len(args)} or len(kwargs) != {len(kwargs)}")
        self._parts("args", args, positional)
        if named is not None:
            self._entries("kwargs", kwargs, named)
        self._closed()
        checks, self.lines = self.lines, []
        self._run()
        lines = [
            "def again(args, kwargs):",
            " try:",
            *[f"  {line}" for line in checks],
            " except (KeyError, ValueError):",  # of other names, or another number of parts
            "  return UNLIKE",
            *[f" {line}" for line in self.lines],
        ]
        exec(compile("\n".join(lines), f"<call of {call.name}>", "exec"), self.scope)
        made: Again = self.scope.pop("again")  # so that nothing refers to itself
        return made

    # --- what a recording depends on beside arguments ---

    def _settings(self) -> None:
        now = settings()
        self.scope.update(here=here.get, chosen=dtypes.chosen_in_block.get, disabled=disabled.get)
        self.scope.update(devices=devices, dtypes=dtypes, settings=settings)
        same_here = f"devices.process_default is not {self.constant(devices.process_default)} or "
        same_here += f"dtypes.process_default is not {self.constant(dtypes.process_default)}"
        outside = now == (None, devices.process_default, dtypes.process_default, None, False)
        self.do("if here() is None and chosen() is None and disabled() is None:")
        self.do(f" if {same_here}: return UNLIKE" if outside else " return UNLIKE")
        self.refuse(f"settings() != {self.constant(now)}")
        self.lines[-1] = "el" + self.lines[-1]

    def _closed(self) -> None:
        """Tensors that the function closes over, and that all else which it reads is what it was."""
        before, f, call = self.call.environment, self.call.reads, self.call
        objects, changing = call.objects, call.changing
        if before is None:
            return
        now = [before]

        def later() -> Environment | None:
            found = Environment(f, objects, changing)
            if found.guard != now[0].guard:
                return None
            now[0] = found
            return found

        self.do(f"e = {self.constant(now)}[0]")
        self.do("if not e.is_unchanged():")
        self.do(f" e = {self.constant(later)}()")
        self.do(" if e is None: return UNLIKE")
        names = [self.variable() for _ in self.call.closed]
        if names:
            self.do(f"{', '.join(names)}, = e.tensors")
        for name, x in zip(names, self.call.closed, strict=True):
            self._tensor(name, x)

    # --- arguments ---

    def read(self, name: str, x: Any, structure: Any) -> None:
        """See that a variable holds what x is like, which has this structure; note the arrays in it."""
        cls = structure.type
        if cls is None:
            self._leaf(name, x)
        elif x is None:
            self.refuse(f"{name} is not None")
        elif cls is tuple or cls is list or (cls is x.__class__ and _is_namedtuple(x)):
            self.refuse(f"{name}.__class__ is not {self.constant(cls)} or len({name}) != {len(x)}")
            self._parts(name, x, structure)
        elif cls is dict and all([key.__class__ is str for key in x]):
            self.refuse(f"{name}.__class__ is not dict or len({name}) != {len(x)}")
            self._entries(name, x, structure)
        else:
            before = len(self.lines), len(self.arrays), self.count
            try:
                if not isinstance(x, Fields):
                    raise _UnknownError
                self._module(name, x, structure)
            except _UnknownError:
                del self.lines[before[0] :]
                for noted in (self.arrays, self.inputs, self.operands):
                    del noted[before[1] :]
                self.count = before[2]
                self._flattened(name, x)

    def _parts(self, name: str, x: Any, structure: Any) -> None:
        names = [self.variable() for _ in x]
        if names:
            self.do(f"{', '.join(names)}, = {name}")
        for part, value, inner in zip(names, x, structure.children(), strict=True):
            self.read(part, value, inner)

    def _entries(self, name: str, x: Any, structure: Any) -> None:
        for key, inner in zip(structure.entries(), structure.children(), strict=True):
            part = self.variable()
            self.do(f"{part} = {name}[{key!r}]")
            self.read(part, x[key], inner)

    def _flattened(self, name: str, x: Any) -> None:
        leaves, structure = trees.flatten(x)
        flat, found = self.variable(), self.variable()
        self.do(f"{flat}, {found} = {self.constant(trees.flatten)}({name})")
        self.refuse(f"{found} != {self.constant(structure)}")
        names = [self.variable() for _ in leaves]
        if names:
            self.do(f"{', '.join(names)}, = {flat}")
        for part, leaf in zip(names, leaves, strict=True):
            self._leaf(part, leaf)

    def _module(self, name: str, x: Fields, structure: Any) -> None:
        """A module: its class, what is frozen, the mode, and its fields, of which those without arrays are settings."""
        self.refuse(
            f"{name}.__class__ is not {self.constant(type(x))} or {name}._training is not {x._training} or "
            f"{name}._frozen != {self.constant(x._frozen)}"
        )
        held = self.variable()
        self.do(f"{held} = {name}.__dict__")
        for field, inner in zip(x._fields, structure.children(), strict=True):
            part = self.variable()
            self.do(f"{part} = {held}[{field!r}]")
            self._field(part, vars(x)[field], inner)

    def _field(self, name: str, x: Any, structure: Any) -> None:
        cls = structure.type
        if cls is Constant or (cls is Setting and x.__class__ is not Setting):
            self._value(name, x)
        elif cls is None or x is None or isinstance(x, Fields):
            self.read(name, x, structure)
        elif cls is tuple and x.__class__ is tuple:
            self.refuse(f"{name}.__class__ is not tuple")
            names = [self.variable() for _ in x]
            self.do(f"{', '.join(names)}{',' if names else '()'} = {name}")
            for part, value, inner in zip(names, x, structure.children(), strict=True):
                self._field(part, value, inner)
        elif cls is dict and x.__class__ is dict and all([key.__class__ is str for key in x]):
            self.refuse(f"{name}.__class__ is not dict or len({name}) != {len(x)}")
            for key, inner in zip(structure.entries(), structure.children(), strict=True):
                part = self.variable()
                self.do(f"{part} = {name}[{key!r}]")
                self._field(part, x[key], inner)
        else:
            raise _UnknownError

    def _leaf(self, name: str, x: Any) -> None:
        place = self.count
        self.count += 1
        cls = x.__class__
        if place in self.call.numbers:
            self.numbers.append(name)
            if cls is int:
                self.refuse(f"{name}.__class__ is not {self.constant(int)} or not {self.constant(can_vary)}({name})")
            else:
                self.refuse(f"{name}.__class__ is not {self.constant(cls)}")
            self._note(name, f"asarray({name})" if self.on_numpy else f"{self._from_caller()}(asarray({name}))")
        elif isinstance(x, Tensor):
            self._tensor(name, x)
        elif cls is np.ndarray:
            shape, dtype = self.call.specs[place]
            self.refuse(f"{name}.__class__ is not ndarray or {name}.dtype is not {self.constant(dtype)}")
            self._shape(f"{name}.shape", shape)
            self._note(name, name if self.on_numpy else f"{self._from_caller()}({name})")
        elif is_numeric(x):
            shape, dtype = self.call.specs[place]
            self.refuse(f"{name}.__class__ is not {self.constant(cls)} or {name}.dtype is not {self.constant(dtype)}")
            if isinstance(x, np.ndarray):
                self._shape(f"{name}.shape", shape)
            self._note(name, f"{self._from_caller()}({name})")
        else:
            self._value(name, x)

    def _from_caller(self) -> str:
        base = self.base
        return self.constant(lambda x: array_of(x, base))

    def _value(self, name: str, x: Any) -> None:
        """See that a variable holds what counts as x does: of Python's plain values an equal one, else x itself."""
        cls = x.__class__
        if x is None or cls is bool:
            self.refuse(f"{name} is not {x}")
        elif cls is int or cls is str:
            self.refuse(f"{name}.__class__ is not {self.constant(cls)} or {name} != {self.constant(x)}")
        elif cls is float or cls is complex:  # 0.0 equals -0.0, and nan nothing
            same = self.constant(repr(x))
            self.refuse(f"{name}.__class__ is not {self.constant(cls)} or repr({name}) != {same}")
        else:
            self.refuse(f"{name} is not {self.constant(x)}")

    def _tensor(self, name: str, x: Tensor[Any]) -> None:
        device, array = x._device, self.variable()
        self.refuse(f"{name}.__class__ is not Tensor and {name}.__class__ is not UniqueTensor")
        self.refuse(f"{name}._device is not {self.constant(device)}")
        self.do(f"{array} = {name}._array")
        kind = kind_of_node(x)
        while isinstance(device, Autodiff):
            if not kind:
                self.refuse(f"{array}.node is not None")
            elif kind == "leaf":
                self.refuse(f"not isinstance({array}.node, LeafNode)")
            else:
                self.refuse(f"{array}.node is None or isinstance({array}.node, LeafNode)")
            self.do(f"{array} = {array}.value")
            device, kind = device.inner, ""
        shape = f"{array}.shape" if self.on_numpy else f"tuple({array}.shape)"
        self.refuse(f"{name}._dtype is not {self.constant(x._dtype)}")
        self._shape(shape, x.shape)
        array = array if device is device.leaf else f"{self.constant(device.leaf_array)}({array})"
        self._note(name, array, f"{name}._array" if x._device is self.call.device else "")

    def _shape(self, shape: str, known: Shape) -> None:
        """See that the next input has its shape, and note the sizes that stand for several."""
        symbols, i = self.program.symbols, len(self.inputs)
        if symbols is None or not any(map(is_size, symbols.pattern[i])):
            return self.refuse(f"{shape} != {known}")
        found = self.variable()
        self.do(f"{found} = {shape}")
        self.refuse(f"len({found}) != {len(known)}")
        for k, n in enumerate(symbols.pattern[i]):
            if is_size(n) and symbols.places[n.text] == (i, k):
                self.do(f"{n.text} = {found}[{k}]")
            else:
                self.refuse(f"{found}[{k}] != {n}")

    def _note(self, name: str, array: str, operand: str = "") -> None:
        self.inputs.append(name)
        if self.node is not None and not operand:
            operand = self.variable()
            self.do(f"{operand} = Var(); {operand}.value = {array}; {operand}.node = None")
            array = f"{operand}.value"
        self.arrays.append(array)
        self.operands.append(operand)

    # --- results ---

    def _run(self) -> None:
        """The call of the program, and its results."""
        program, as_numpy = self.program, self.call.as_numpy
        sizes = ", ".join(program.symbols.values) if program.symbols is not None else ""
        answers = self.called.family.answers.first if self.node is not None and self.called is not None else None
        for numbers in (program.numbers, answers):
            if numbers is not None and numbers.guards:
                self.refuse(f"not {self.constant(numbers.hold)}(({''.join(f'{x}, ' for x in self.numbers)}))")
        arrays = "".join(f"{x}, " for x in self.arrays)
        if self.node is not None and self.called is not None:
            structure, fixed = self.called.made.of(self.call.inputs)
            names = [self.variable() if x is None else self.constant(x) for x in fixed]
            if sizes:
                self.refuse(f"not {self.constant(self.node.fits)}(({''.join(f'{x}.shape, ' for x in self.arrays)}))")
            targets = "".join(f"{name}, " for name, x in zip(names, fixed, strict=True) if x is None)
            self.do(f"{targets}= {self.constant(self.node.made)}([{arrays}], [{', '.join(self.operands)}])")
            self.do(f"return {self._built(names, structure)}")
            return
        inputs = "" if as_numpy else f", ({''.join(f'{x}, ' for x in self.inputs)})"
        by_program = f"return {self.constant(program.arrays if as_numpy else program.tensors)}(({arrays}){inputs})"
        plain = all([r.kind == "value" for r in program.results]) and program.are_own(as_numpy)
        if sizes and plain:
            run, calls = self.variable(), self.variable()
            self.do(f"{calls} = {self.constant(program.calls_of)}.get(({sizes}, ))")
            self.do(f"if {calls} is not None and {calls}[1] is not None and {calls}[0] > 1:")
            self.do(f" {calls}[0] -= 1; {run} = {calls}[1]")  # as `code_for`, with less to look at
            self.do("else:")
            self.do(f" {run} = {self.constant(program.code_for)}({sizes})")
            self.do(f" if {run} is None:")
            self.do(f"  if not {self.constant(program.serves)}({sizes}): return UNLIKE")
            self.do(f"  {by_program}")
            call = f"{run}({arrays}{sizes})"
        elif plain:
            replay = self.constant(program.replay)  # which its function needs as long as it runs
            direct = program.replay.direct
            call = f"{replay}(({arrays}))" if direct is None else f"{self.constant(direct)}({arrays})"
        else:
            if sizes:
                self.refuse(f"not {self.constant(program.serves)}({sizes})")
            return self.do(by_program)
        outputs = [self.variable() for _ in program.results]
        self.do(f"{''.join(f'{x}, ' for x in outputs) or '_'} = {call}")
        as_caller = self._as_array if as_numpy else self._as_tensor
        made = [as_caller(*each) for each in zip(outputs, program.results, strict=True)]
        self.do(f"return {self._built(made, program.structure)}")

    def _as_array(self, out: str, result: Result) -> str:
        to_numpy = self.constant(self.base.to_numpy)
        self.do(f"if {out}.__class__ is not ndarray: {out} = {self.constant(np.array)}({to_numpy}({out}))")
        self.do(f"if not {out}.ndim: {out} = {out}[()]")
        return out

    def _as_tensor(self, out: str, result: Result) -> str:
        levels, device = [], result.device
        while device.__class__ is Autodiff and device.aliases is None and device is not self.base:
            levels.append(device)
            device = device.inner
        if device is not self.base:  # which another level may wrap in its own way
            self.do(f"{out} = {self.constant(result.device.lift)}({out}, {self.constant(self.base)})")
            levels = []
        for _ in levels:
            var = self.variable()
            self.do(f"{var} = Var(); {var}.value = {out}; {var}.node = None")
            out = var
        made = self.variable()
        self.do(
            f"{made} = new(Tensor); {made}._array = {out}; {made}._device = {self.constant(result.device)}; "
            f"{made}._dtype = {self.constant(result.dtype)}"
        )
        return made

    def _built(self, leaves: Sequence[str], structure: Any) -> str:
        """The expression of the function's result."""
        if not _is_plain(structure):
            return f"{self.constant(trees.builder(structure))}(({''.join(f'{x}, ' for x in leaves)}))"
        return _expression(trees.unflatten(structure, leaves), structure)


def _is_plain(structure: Any) -> bool:
    """Whether it is of tuples, lists and dictionaries with names for keys."""
    kind = structure.type
    named = kind is not dict or all([key.__class__ is str for key in structure.entries()])
    return kind in (None, type(None), tuple, list, dict) and named and all(map(_is_plain, structure.children()))


def _expression(tree: Any, structure: Any) -> str:
    """The source of a tree that has names of variables for leaves."""
    if structure.type is None:
        return tree  # type: ignore[no-any-return]
    if tree is None:
        return "None"
    inner = structure.children()
    if structure.type is dict:
        children = dict(zip(structure.entries(), inner, strict=True))
        return "{" + ", ".join(f"{key!r}: {_expression(x, children[key])}" for key, x in tree.items()) + "}"
    parts = ", ".join(_expression(x, part) for x, part in zip(tree, inner, strict=True))
    return f"[{parts}]" if structure.type is list else f"({parts},)" if parts else "()"


def _is_namedtuple(x: Any) -> bool:
    """Whether it is a named tuple, flattened as one: nothing else was registered for its class."""
    opened = trees.opened(x) if isinstance(x, tuple) and hasattr(x, "_fields") else None
    return opened is not None and len(opened[0]) == len(x) and all(map(operator.is_, opened[0], x))
