"""The package as others see it: what it exports, what importing it costs, and that its pages tell the truth."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adjoint as ad
from adjoint.renamed import RENAMED
from adjoint.tensor import bind, bound

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = [
    "array_api_compat", "array_api_extra", "array_api_strict", "autograd", "cupy", "dask", "distributed", "hypothesis",
    "jax", "matplotlib", "mpmath", "opt_einsum", "pandas", "pytest", "rich", "scipy", "sklearn", "tensorflow", "torch",
]  # fmt: skip
SHARED = {"made"}  # helpers that one topic has for the others, besides as_...
ROOMS = [ad.fft, ad.implicit, ad.linalg, ad.nn, ad.random, ad.scipy, ad.special, ad.testing, ad.tree]
PUBLIC = [ad, ad.errors, *ROOMS]


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# --- exports ---


def test_exports_are_explicit() -> None:
    tree = ast.parse((ROOT / "src/adjoint/__init__.py").read_text())
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            bound.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            bound.update(target.id for target in node.targets if isinstance(target, ast.Name))
        else:
            assert isinstance(node, ast.Expr), "only re-exports and constants"
    assert bound - {"__all__", "_refusing"} == set(ad.__all__)
    assert len(ad.__all__) == len(set(ad.__all__))


@pytest.mark.parametrize(
    "name",
    "NumPy ArrayAPI Reference Autodiff Backend Tensor Gradients tensor asarray from_inner from_dlpack device "
    "default_device set_default_device use_device why testing random linalg fft special nn errors".split(),
)
def test_a_name_that_others_rely_on_is_there(name: str) -> None:
    assert name in ad.__all__
    assert hasattr(ad, name)


def test_every_public_function_of_a_topic_is_exported() -> None:
    """What `adjoint.functions` offers by its docstring is reachable by a public name or as a method."""
    missing = []
    topics = [path for path in (ROOT / "src/adjoint/functions").glob("[!_]*.py") if path.stem != "arguments"]
    for path in sorted(topics):
        module = importlib.import_module(f"adjoint.functions.{path.stem}")
        homes = (ad.nn,) if path.stem == "nn" else (ad, ad.Tensor)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith(("_", "as_"))
            if own and name not in SHARED and not any(hasattr(home, name) for home in homes):
                missing.append(f"{path.stem}.{name}")
    assert missing == []


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_what_is_public_says_what_it_is(module: object) -> None:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert (value.__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("module", ROOMS, ids=lambda m: m.__name__)
def test_a_topic_shows_its_public_names_only(module: Any) -> None:
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_errors_are_called_errors() -> None:
    assert dir(ad.errors) == sorted(
        name for name in vars(ad.errors) if name.endswith("Error") and name != "LinAlgError"
    )
    assert {kind.__name__ for kind in _tree(ad.errors.AdjointError)} == set(dir(ad.errors))


def _tree(kind: type) -> set[type]:
    return {kind}.union(*[_tree(below) for below in kind.__subclasses__() if below.__module__ == "adjoint.errors"])


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in RENAMED.items() for name in names], ids=str
)
def test_a_renamed_name_says_what_it_is_now(module: str, name: str) -> None:
    now = RENAMED[module][name]
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: it is now {now}")):
        getattr(importlib.import_module(module), name)
    page = (ROOT / "CHANGELOG.md").read_text().split("\n### Renamed\n")[1].split("\n## ")[0]
    (row,) = [line for line in page.splitlines() if f"`{module.replace('adjoint', 'ad')}.{name}`" in line]
    assert now.partition(",")[0].split("(")[0].split(".")[-1] in row


def test_other_names_are_missing_as_ever() -> None:
    for module in RENAMED:
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'$"):
            importlib.import_module(module).nothing


def test_every_method_has_a_body() -> None:
    bodies = [m.fget if isinstance(m, property) else m for m in vars(ad.Tensor).values()]
    assert [body for body in bodies if hasattr(body, "_bound")] == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([("f", len), ("g", abs), ("f", all)], "Marked.f: builtins and builtins"),
        ([("f", len)], r"\['g'\]"),
        ([("f", len), ("g", abs), ("h", all)], r"\['h'\]"),
    ],
)
def test_a_method_has_one_body(table: list[Any], said: str) -> None:
    class Marked:
        @bound
        def f(self) -> None: ...
        @property
        @bound
        def g(self) -> None: ...
        def h(self) -> None: ...

    with pytest.raises(TypeError, match=said):
        bind(Marked, table)
    bind(Marked, [("f", lambda self: 1), ("g", lambda self: 2)])
    assert (Marked().f(), Marked().g, Marked().h()) == (1, 2, None)


def test_it_is_typed() -> None:
    assert (Path(ad.__file__).parent / "py.typed").exists()


def test_the_version_comes_from_one_place() -> None:
    assert importlib.metadata.version("adjoint") == ad.__version__
    assert f"## {ad.__version__}" in (ROOT / "CHANGELOG.md").read_text()


# --- what importing costs ---


def test_only_hard_dependencies_are_required() -> None:
    required = [r for r in importlib.metadata.requires("adjoint") or [] if "extra ==" not in r]
    assert sorted(re.split(r"[<>=!~ ]", r)[0] for r in required) == ["numpy", "optree"]


def test_optional_libraries_are_never_imported() -> None:
    """Not by the import, and not by the work that does not name them."""
    code = f"""
import sys
import adjoint as ad
x = ad.tensor([1.0, 2.0]).require_grad()
ad.nn.gelu(x).sum().backward()[x].numpy()
ad.random.normal(3), ad.linalg.norm(x), repr(x)
print([name for name in {OPTIONAL} if name in sys.modules])
"""
    assert python(code) == "[]"


def test_import_brings_few_modules() -> None:
    """What the time of the import follows: hardly any modules but NumPy's and our own, one per topic."""
    count = "print(sum(not name.startswith('adjoint') for name in sys.modules))"
    numpy = int(python(f"import sys, numpy; {count}"))
    foreign = int(python(f"import sys, adjoint; {count}"))
    assert foreign - numpy < 12
    assert int(python("import sys, adjoint; print(sum(name.startswith('adjoint') for name in sys.modules))")) < 180


# --- pages ---


PAGES = ["README.md", "CONTRIBUTING.md", *[f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]]


def _blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def _missing(blocks: list[str]) -> bool:
    """Whether they import an optional library that is not installed."""
    names = re.findall(r"^(?:import|from) (\w+)", "\n".join(blocks), re.MULTILINE)
    return any(name in OPTIONAL and importlib.util.find_spec(name) is None for name in names)


@pytest.mark.parametrize("page", PAGES)
def test_examples_on_pages_give_what_they_say(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run one after the other; a comment behind `print(...)` says what it prints."""
    first, *sections = [_blocks(text) for text in (ROOT / page).read_text().split("\n## ")]
    if _missing(first):
        pytest.skip("needs what its first lines import")
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in [*first, *itertools.chain(*[blocks for blocks in sections if not _missing(blocks)])]:
        said = re.findall(r"^ *print\(.*\) +# (.*)$", block, re.MULTILINE)
        if "os.environ" in block:  # what libraries read when they are imported is for a process of its own
            printed = python(block)
        else:
            exec(block, scope)
            printed = capsys.readouterr().out
        assert printed.split() == " ".join(said).split()


def test_links_on_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
