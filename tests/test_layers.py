"""Imports point upward: a module imports from layers below its own, or from its own layer where that may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import adjoint

ROOT = Path(adjoint.__file__).parent

# From the lowest. A name stands for a module, or a package with all in it.
LAYERS = [
    {"renamed"},
    {"constants", "errors"},
    {"locks", "names", "scopes"},
    {"tree"},
    {"dtypes"},
    {"primitives"},
    {"concrete", "random_keys", "transfer"},
    {"backend"},
    {"rules"},
    {"backends"},
    {"graph"},
    {"decorators"},
    {"devices"},
    {"tensor"},
    {"operands"},
    {"functions"},
    {"extend", "fft", "linalg", "special"},
    {"numpy_functions", "random"},
    {"nn", "numpy_protocols"},
    {"transforms"},
    {"solvers"},
    {"implicit", "scipy"},
    {"testing"},
    {""},  # adjoint/__init__.py
]
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
FOR_TYPES = {("tensor", "functions.gradients")}  # `backward` is a method, and its signature says what it returns

# What a layer below loads of one above when it is first asked for, by its name in a string, with a reason each.
BY_NAME = {
    ("backends.jax", "functions.pytrees"),  # tensors are pytrees of JAX as soon as there is a leaf of JAX
    ("functions.conversion", "numpy_protocols"),  # NumPy's functions that are called with tensors
}
LAZY = {"", "devices", "tensor"}  # which have tables: of public names, of backends by name, of methods' bodies

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
