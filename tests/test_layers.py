"""Imports point upward: a module imports from layers below its own, or from its own layer where that may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import processes
import pytest

import adjoint

ROOT = Path(adjoint.__file__).parent
PROJECT = Path(__file__).parent.parent

# From the lowest. A name stands for a module, or a package with all in it.
LAYERS = [
    {"counterparts"},
    {"methods", "renamed", "variables"},
    {"constants", "errors", "lines", "markup"},
    {"counters", "locks", "names", "scopes"},
    {"tree"},
    {"dtypes"},
    {"files", "primitives"},
    {"concrete", "random_keys", "transfer"},
    {"backend"},
    {"rules"},
    {"backends"},
    {"graph"},
    {"decorators"},
    {"devices"},
    {"tensor"},
    {"operands"},
    {"irrational", "operators"},
    {"functions"},
    {"fft", "linalg", "module", "special", "user_primitives"},
    {"extend"},
    {"conventions", "numpy_functions", "random", "stats"},
    {"nn", "numpy_methods", "numpy_protocols"},
    {"transforms"},
    {"compiler", "debug", "solvers"},
    {"autoray", "data", "implicit", "optim", "pot", "scipy"},
    {"quimb", "testing", "train"},
    {"pictures", "plot"},
    {""},  # adjoint/__init__.py
    {"autograd", "torch"},  # faces: other libraries' names over all of this
    {"__main__"},
]
FACES = {"autograd", "torch"}  # nothing imports them, not even lazily
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# What layers leave out although it is below them.
KEPT_APART = {
    "rules": {"backend"},  # rules are written against any backend
    "decorators": {"backends"},  # composition is the user's business
    "graph": {"backends"},
}


def name_of(path: Path) -> str:
    """`decorators.autodiff` for .../adjoint/decorators/autodiff.py; packages by their own name."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Imports for type checkers alone, with a reason each.
FOR_TYPES = {
    ("tensor", "functions.gradients"),  # `backward` is a method, and its signature says what it returns
    ("variables", "backend"),  # what the type variables stand for, of which a decorator's class has one
}

# What a layer below loads of one above when it is first asked for, by its name in a string, with a reason each.
BY_NAME = {
    ("backends.jax", "functions.pytrees"),  # tensors are pytrees of JAX as soon as there is a leaf of JAX
    ("graph.nodes", "pictures.drawing"),  # what notebooks show of a node
    ("functions.conversion", "numpy_protocols"),  # NumPy's functions that are called with tensors
    # steps that are a loop of a recording
    ("nn.classification", "transforms.control"),
    ("nn.modules.recurrent", "transforms.control"),
    ("special.arguments", "transforms.hosted"),  # functions of orders that have no values yet
}
# which have tables: of public names, of backends by name, of methods' bodies; which runs a program on the face
LAZY = {"", "devices", "methods", "torch.__main__", "torch.later"}

MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports(source: str) -> Iterator[tuple[str, int, bool]]:
    """The modules of adjoint that a source imports, at any depth; the line, and whether for types alone."""
    tree = ast.parse(source)
    for_types: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for_types.update(child.lineno for child in node.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found = full if full.removeprefix("adjoint.") in MODULES else base
                if found == "adjoint" or found.startswith("adjoint."):
                    yield found.removeprefix("adjoint").lstrip("."), node.lineno, node.lineno in for_types
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "adjoint" or alias.name.startswith("adjoint."):
                    yield alias.name.removeprefix("adjoint").lstrip("."), node.lineno, node.lineno in for_types


def wrong(module: str, source: str) -> list[str]:
    """The imports of a module that point the wrong way."""
    layer = module.partition(".")[0]
    complaints = []
    for imported, line, typing in imports(source):
        other = imported.partition(".")[0]
        inside = other == layer and layer != ""
        if typing and (module, imported) in FOR_TYPES:
            continue
        if (
            (not inside and LEVEL[other] >= LEVEL[layer])
            or other in KEPT_APART.get(layer, ())
            or (inside and layer == "decorators")
        ):
            complaints.append(f"{module or '__init__'}:{line} imports {imported or 'adjoint'}")
    return complaints


def by_name(module: str, source: str) -> list[str]:
    """The modules of adjoint that `import_module` is told in a string, where that is no exception."""
    complaints = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            told = ast.unparse(node.args[0]).lstrip("f").strip("'")
            known = module in LAZY or (module, told.removeprefix("adjoint.")) in BY_NAME
            if told.startswith("adjoint") and not known:
                complaints.append(f"{module}:{node.lineno} imports {told}")
    return complaints


@pytest.mark.parametrize("module", MODULES)
def test_imports_by_name_are_known(module: str) -> None:
    assert by_name(module, MODULES[module].read_text()) == []


def test_the_test_sees_imports_by_name() -> None:
    assert len(by_name("rules", "import_module('adjoint.tensor')")) == 1
    assert len(by_name("rules", "importlib.import_module(f'adjoint.{name}')")) == 1
    assert by_name("rules", "import_module('numpy')") == []


def test_nothing_loads_a_face_by_name() -> None:
    others = {name: path for name, path in MODULES.items() if name.partition(".")[0] not in FACES}
    assert [name for name in others if any(f"adjoint.{face}" in others[name].read_text() for face in FACES)] == []


def test_the_library_comes_without_its_faces() -> None:
    names = " ".join(f"adjoint.{face}" for face in FACES)
    program = f"import sys, adjoint; assert not set({names.split()}) & sys.modules.keys(); assert adjoint.grad"
    processes.python(program)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_upward(module: str) -> None:
    assert wrong(module, MODULES[module].read_text()) == []


def test_every_module_has_a_layer() -> None:
    assert {module.partition(".")[0] for module in MODULES} == set(LEVEL)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "from adjoint import dtypes"),
        ("primitives", "from adjoint.backend import Backend"),
        ("rules.elementwise", "import adjoint.backends.numpy"),
        ("rules.elementwise", "from adjoint.backend import Backend"),
        ("backends.numpy", "from adjoint.decorators.autodiff import Autodiff"),
        ("decorators.autodiff", "def f():\n    from adjoint.backends.numpy import NumPy"),
        ("decorators.autodiff", "from adjoint.decorators import tangent"),
        ("decorators.autodiff", "from adjoint.tensor import Tensor"),
        ("linalg", "from adjoint import special"),
        ("tensor", "import adjoint as ad"),
        ("tensor", "from adjoint.functions.gradients import Gradients"),
        ("tensor", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from adjoint.functions import nn"),
    ],
)
def test_the_test_sees_wrong_directions(module: str, source: str) -> None:
    assert len(wrong(module, source)) == 1


def test_the_test_accepts_right_directions() -> None:
    assert wrong("tensor", "from adjoint import errors\nimport numpy\nfrom adjoint.graph.nodes import Node") == []
    assert wrong("functions.nn", "from adjoint.functions.creation import asarray") == []


# --- faces ---

# What with an operator is a formula of numbers; those are the core's, in `adjoint.conventions` and beside `ad`'s own.
MATHEMATICS = set(
    "abs acos acosh arccos arcsin arctan asin asinh atan atan2 atanh cos cosh digamma erf erfc erfinv exp exp2 expm1 "
    "expit floor lgamma log log10 log1p log2 log_sigmoid log_softmax logaddexp logsigmoid logsumexp norm rsqrt sigmoid "
    "sin sinh softmax softplus sqrt square tan tanh trunc".split()
)

# Programs in a face's own functions, as they would be written for its library, with a reason each.
PROGRAMS = {
    "torch.distributions": "densities whose ends are the formulas' own",
    "torch.nn.layers.attention": "classes of several layers",
    "torch.autograd.gradcheck": "compares values",
    "torch.testing": "compares values",
    "autograd.misc.optimizers": "optimizers of HIPS autograd's",
    "autograd.test_util": "compares values",
}


def function_of(call: ast.Call) -> str:
    """The last name of what is called: `log` of x.log, _log and FUNCTIONS["log"]; none of Python's own numbers."""
    function = call.func
    if isinstance(function, ast.Subscript):
        return function.slice.value if isinstance(function.slice, ast.Constant) else ""
    name = ast.unparse(function)
    return "" if name.startswith("math.") else name.rpartition(".")[2].strip("_")


def formulas(source: str) -> list[str]:
    """The statements that have both operators and functions of numbers."""
    arithmetic, found = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            parts = list(ast.walk(node))
            if any(isinstance(part, ast.BinOp) and isinstance(part.op, arithmetic) for part in parts):
                if MATHEMATICS & {function_of(part) for part in parts if isinstance(part, ast.Call)}:
                    found.append(f"{node.lineno} {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("module", [name for name in MODULES if name.partition(".")[0] in FACES])
def test_faces_have_no_formulas(module: str) -> None:
    if not any(f"{module}.".startswith(f"{name}.") for name in PROGRAMS):
        assert formulas(MODULES[module].read_text()) == []


def test_the_test_sees_formulas() -> None:
    assert len(formulas("loss = input.exp() - target * input\nf = lambda x: 1 - torch.sqrt(x)")) == 2
    assert len(formulas("def f(x):\n    return reduced((-target * x).exp().log1p(), reduction)")) == 1
    assert len(formulas("loss = -(target * _log_sigmoid(x))\nplace = FUNCTIONS['floor']((x - low) / width)")) == 2
    assert formulas("bound = 1 / math.sqrt(size)\nx = y.exp()\nz = x + 1") == []
    assert all(any(f"{module}.".startswith(f"{name}.") for module in MODULES) for name in PROGRAMS)


# --- circles ---

# Imports of a table that is large, by the package that it is part of, when it is asked for; with a reason each.
KNOWN_CIRCLES = {("counterparts", "counterparts.modules")}  # names that are missing: few programs ask for one


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in number:
            visit(module)
    return found


def imported(module: str, source: str) -> set[str]:
    """What a module imports for more than types, at any depth, that is no known circle."""
    found = {other for other, _, typing in imports(source) if not typing and other != module}
    return {other for other in found if (module, other) not in KNOWN_CIRCLES}


def test_no_modules_import_one_another() -> None:
    """Imports inside of functions count: a circle through one is a circle."""
    assert circles({module: imported(module, path.read_text()) for module, path in MODULES.items()}) == []


def test_the_test_sees_circles() -> None:
    assert circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    inside = "def f():\n    from adjoint.torch.engine import backward"
    assert circles({"torch.graph": imported("torch.graph", inside), "torch.engine": {"torch.graph"}}) != []
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from adjoint.torch.engine import backward"
    assert imported("torch.graph", typed) == set()


# --- private names ---

# Tensors are made where a call would count, by who knows the dtype already.
SLOTS = {"_array", "_device", "_dtype", "_here", "_rare"}
MAKE_TENSORS = {"operands", "operators", "functions.indexing", "functions.pytrees"}
MAKE_TENSORS |= {
    "torch.calls",
    "torch.indexing",
    "torch.lifted",
    "torch.memory",
    "torch.reshaping",
    "torch.resizing",
    "torch.tensor",
    "torch.writes",
}  # of the face's own
SOURCES = {
    str(path.relative_to(PROJECT)): path
    for folder in ("src", "tests", "benchmarks", "examples", "scripts")
    for path in sorted((PROJECT / folder).rglob("*.py"))
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_imports(source: str) -> list[str]:
    """What a source imports of a module's own names, with a leading underscore."""
    return [
        f"{node.lineno} imports {alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if is_private(alias.name)
    ]


def set_from_outside(source: str) -> list[str]:
    """The private attributes that a source sets and that no class in it has."""
    tree = ast.parse(source)
    targets = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
    ]
    of_itself = lambda node: isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    own = {node.attr for node in targets if of_itself(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):  # declared there, or one of __slots__
            own.update(ast.unparse(entry.target) for entry in node.body if isinstance(entry, ast.AnnAssign))
            slots = [entry for entry in node.body if ast.unparse(entry).startswith("__slots__")]
            own.update(child.value for entry in slots for child in ast.walk(entry) if isinstance(child, ast.Constant))
    found = [f"{node.lineno} sets {node.attr}" for node in targets if is_private(node.attr) and node.attr not in own]
    for node in ast.walk(tree):  # setattr(other, "_name", ...) and vars(other)["_name"]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and len(node.args) == 3:
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and ast.unparse(node.args[0]) != "self":
                found.append(f"{node.lineno} sets {name.value}")
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if re.fullmatch(r"vars\((?!self\)).*\)|.*(?<!self)\.__dict__", ast.unparse(node.value)):
                found.append(f"{node.lineno} sets {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", SOURCES)
def test_private_names_stay_in_their_module(path: str) -> None:
    assert private_imports(SOURCES[path].read_text()) == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_sets_private_attributes_from_outside(module: str) -> None:
    found = set_from_outside(MODULES[module].read_text())
    if module in MAKE_TENSORS:
        found = [line for line in found if line.rpartition(" ")[2] not in SLOTS]
    assert found == []


def test_the_test_sees_private_names() -> None:
    assert private_imports("from adjoint.tensor import Tensor, _new as new") == ["1 imports _new"]
    assert private_imports("from __future__ import annotations\nfrom x import __version__") == []
    assert len(set_from_outside("level._inner = 1\nvars(level)['entered'] = 2\nsetattr(level, '_ended', True)")) == 3
    assert set_from_outside("def f(self):\n    self._inner = 1\n    vars(self)['x'] = 2\n    other._inner = 3") == []
