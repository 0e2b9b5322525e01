"""The package as others see it: what it exports, what importing it costs, and that its pages tell the truth."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import operator
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from each import Each

import adjoint as ad
from adjoint.methods import BODIES, METHODS, Bound, modules_of
from adjoint.operators import OPERATORS
from adjoint.renamed import RENAMED

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = [
    "PIL", "array_api_compat", "array_api_extra", "array_api_strict", "autograd", "cupy", "dask", "datasets",
    "distributed", "hypothesis", "jax", "matplotlib", "mpmath", "opt_einsum", "pandas", "pyarrow", "pygraphviz",
    "pytest", "rich", "scipy", "sklearn", "tensorboardX", "tensorflow", "torch",
]  # fmt: skip
LIGHT = "counterparts errors locks methods renamed tensor tree variables".split()  # what `import adjoint` brings
SHARED = {
    "along",
    "dtype_for",
    "elementwise_primitive",
    "formatted",
    "is_double",
    "leaves_behind",
    "made",
    "pairs",
    "places_beside",
    "selected",
    "stacked",
    "together",
    "refuse_graphs",
    "refuse_many",
}  # helpers that one topic has for the others, besides as_...
NAMESPACES = [getattr(ad, name) for name, module in ad._MODULES.items() if not module]
ROOMS = [*[module for module in NAMESPACES if module is not ad.errors], ad.nn.init]
PUBLIC = [ad, ad.errors, *ROOMS]


def python(code: str, *, eager: bool | None = None) -> str:
    """What a fresh interpreter prints."""
    environment = os.environ if eager is None else {**os.environ, "ADJOINT_EAGER": str(int(eager))}
    done = processes.python(code, env=environment)
    return done.stdout.strip()


# --- exports ---


def test_a_name_is_in_one_module() -> None:
    assert modules_of({"a": "f g", "b": "h"}) == {"f": "a", "g": "a", "h": "b"}
    with pytest.raises(TypeError, match="g: a and b have one"):
        modules_of({"a": "f g", "b": "g h"})


def test_stubs_are_what_the_tables_say() -> None:
    import stubs

    for path in stubs.FILES:
        assert path.read_text() == stubs.stub(path), "run python scripts/stubs.py"


def test_a_public_name_is_no_other_module() -> None:
    """Python binds a module to its name in the package when it is imported, over whatever has that name."""
    modules = {path.stem for path in Path(ad.__file__).parent.iterdir() if not path.stem.startswith("_")}
    clashes = {name for name, namespace in ad._MODULES.items() if namespace and name in modules}
    assert clashes == {"tensor"}  # which `__init__` imports first
    assert python("import adjoint.tensor as t, adjoint.functions; print(t.__module__)") == "adjoint.functions.creation"


@pytest.mark.parametrize("eager", [False, True])
def test_star_brings_the_public_names(eager: bool) -> None:
    code = """
import adjoint
kept = set(globals())
from adjoint import *
print(sorted(set(globals()) - kept - {"kept"}) == sorted(set(adjoint.__all__) - kept), dir(adjoint) == adjoint.__all__)
"""
    assert python(code, eager=eager) == "True True"


def test_python_says_which_name_was_meant() -> None:
    assert not hasattr(ad, "nonsense")
    done = processes.python("import adjoint as ad; ad.sqrtt", check=False)
    assert "module 'adjoint' has no attribute 'sqrtt'" in done.stderr
    assert done.stderr.endswith(" Did you mean: 'sqrt'?\n")


def test_reload_keeps_what_there_is() -> None:
    code = """
import importlib, adjoint as ad
sin, x = ad.sin, ad.tensor([1.0])
importlib.reload(ad)
print(ad.sin is sin, ad.tensor(x) is not x, type(x) is ad.Tensor)
"""
    assert python(code) == "True True True"


@pytest.mark.parametrize(
    "name",
    "NumPy ArrayAPI Reference Autodiff Backend Tensor Gradients tensor asarray from_inner from_dlpack device "
    "default_device set_default_device use_device default_dtype set_default_dtype use_dtype why "
    "testing random linalg fft special nn errors".split(),
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
        namespaces = (ad.nn,) if path.stem == "nn" else (ad, ad.Tensor)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith(("_", "as_"))
            if own and name not in SHARED and not any(hasattr(namespace, name) for namespace in namespaces):
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
    assert dir(module) == sorted(set(module.__all__))
    assert not [name for name in dir(module) if name.startswith("_")]
    assert all(hasattr(module, name) for name in module.__all__)


def test_errors_are_called_errors() -> None:
    assert dir(ad.errors) == sorted(
        name for name in vars(ad.errors) if name.endswith("Error") and name != "LinAlgError"
    )
    assert {kind.__name__ for kind in _tree(ad.errors.AdjointError)} == set(dir(ad.errors))


def test_every_exception_of_the_package_is_called_an_error() -> None:
    """Also those that no caller sees."""
    names = [path.relative_to(ROOT / "src").with_suffix("") for path in (ROOT / "src/adjoint").rglob("*.py")]
    modules = [importlib.import_module(".".join(name.parts).removesuffix(".__init__")) for name in names]
    kinds = {kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)}
    raised = {kind for kind in kinds if issubclass(kind, BaseException) and kind.__module__.startswith("adjoint")}
    assert raised >= {ad.errors.AdjointError, ad.errors.ShapeError}
    assert not {kind.__qualname__ for kind in raised if not kind.__qualname__.endswith("Error")}


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
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'; docs/functions.md"):
            importlib.import_module(module).nothing


def test_every_method_has_a_body() -> None:
    """The function that the table says, or an operator's; each was declared."""
    before = python(
        "from adjoint.tensor import Tensor; from adjoint.methods import Bound; "
        "print(*[n for n, m in vars(Tensor).items() if type(m) is Bound])",
        eager=False,
    )
    assert sorted(before.split()) == sorted(" ".join([*METHODS.values(), *OPERATORS]).split())
    for name in before.split():
        found = getattr(ad.Tensor, name)
        body = found.fget if isinstance(found, property) else found
        module = importlib.import_module(f"adjoint.{BODIES.get(name, 'operators')}")
        assert body is (vars(module).get(name) or module.OPERATORS[name])
    assert not any(isinstance(method, Bound) for method in vars(ad.Tensor).values())


@pytest.mark.parametrize("use", ["x.sum()", "Tensor.exp(x)", "x @ (2 * x)", "list(x)", "x.real", "np.ones(2) + x"])
def test_methods_are_there_before_their_topics(use: str) -> None:
    """Also of a tensor that a process has from a pickle, before it has asked for anything."""
    x = ad.tensor([1.0, 2.0])
    header = f"import pickle, numpy as np; from adjoint.tensor import Tensor; x = pickle.loads({pickle.dumps(x)!r})"
    assert python(f"{header}; print([{use}])") == repr([eval(use, {"x": x, "Tensor": ad.Tensor, "np": np})])


def test_it_is_typed() -> None:
    assert (Path(ad.__file__).parent / "py.typed").exists()


def test_the_version_comes_from_one_place() -> None:
    assert importlib.metadata.version("adjoint") == ad.__version__
    assert f"## {ad.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {ad.__version__}\n" in (ROOT / "CITATION.cff").read_text()


# --- python -m adjoint ---


def test_what_a_bug_report_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is there, one that is not, and one whose driver is missing."""
    main = importlib.import_module("adjoint.__main__")

    def broken() -> list[str]:
        raise OSError("no driver")

    libraries = {"optree": lambda: ["optree:0", "optree:1"], "nothing_there": list, "numpy": broken}
    monkeypatch.setattr(main, "_LIBRARIES", libraries)
    monkeypatch.setenv("ADJOINT_EAGER", "0")
    text = "\n".join(main.lines())
    for said in (
        f"adjoint {ad.__version__} on Python {sys.version.split()[0]}",
        f"numpy {np.__version__}",
        f"default device: {ad.default_device().name}",
        "ADJOINT_EAGER=0",
        f"optree     {importlib.metadata.version('optree')}: optree:0, optree:1",
        "nothing_there not installed: pip install 'adjoint[nothing_there]'",
        f"numpy      {np.__version__} cannot be used: OSError: no driver",
        "check_grads",
    ):
        assert said in text, said


@pytest.mark.slow
def test_python_m_adjoint_lists_each_optional_library() -> None:
    done = processes.run([sys.executable, "-m", "adjoint"])
    for library in ("numpy", "reference", "torch", "jax", "cupy", "dask"):
        assert re.search(rf"^  {library} ", done.stdout, re.MULTILINE)
    assert ("torch:cpu" in done.stdout) == (importlib.util.find_spec("torch") is not None)


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
    """What the time of the import follows: none but NumPy's and the class of tensors; the first gradient few."""
    count = "print(sum(not name.startswith('adjoint') for name in sys.modules))"
    numpy = int(python(f"import sys, numpy; {count}"))
    assert int(python(f"import sys, adjoint; {count}", eager=False)) - numpy < 3
    modules = int(python(f"import sys, numpy, optree; {count}"))  # which layers are registered with as they are defined
    assert int(python(f"import sys, adjoint; {count}", eager=True)) - modules < 18
    ours = "print(*sorted(name for name in sys.modules if name.startswith('adjoint')))"
    brought = python(f"import sys, adjoint; {ours}", eager=False).split()
    assert brought == ["adjoint", *(f"adjoint.{name}" for name in LIGHT)]
    gradient = f"import sys, adjoint as ad; ad.grad(lambda x: (x * x).sum())(ad.ones(3)); {ours}"
    used = python(gradient, eager=False).split()
    assert len(used) < 117
    assert set(used).isdisjoint(f"adjoint.{name}" for name in "fft linalg nn random backends.array_api".split())


def test_threads_may_ask_for_anything_at_once() -> None:
    code = f"""
import faulthandler, importlib, sys, threading
import adjoint as ad
faulthandler.dump_traceback_later(300, exit=True)  # where each thread waits, if they wait for one another
sys.setswitchinterval(1e-5)
names = {sorted(set(ad._MODULES.values()) - {""})!r}
jobs = [lambda name=name: importlib.import_module(f"adjoint.{{name}}") for name in names]
jobs += [lambda name=name: getattr(ad, name) for name in ad.__all__[::8]]
jobs += [lambda: ad.grad(lambda x: (x * x).sum())(ad.ones(3)), lambda: ad.nn.relu(ad.ones(2)) @ ad.ones(2)] * 3
start, failed = threading.Barrier(len(jobs)), []

def run(job):
    start.wait()
    try:
        job()
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""
    assert python(code, eager=False) == "[]"


# --- pages ---


MADE = ("gallery", "reference")  # by the build of the site
PAGES = [
    *("README.md", "CONTRIBUTING.md"),
    *[str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/**/*.md")) if p.parent.name not in MADE],
]


def blocks_of(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def need_missing(blocks: list[str]) -> bool:
    """Whether they import an optional library that is not installed."""
    text = "\n".join(blocks)
    names = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) + ["pygraphviz"] * ("ad.draw(" in text)
    return any(name in OPTIONAL and importlib.util.find_spec(name) is None for name in names)


@pytest.mark.parametrize("page", PAGES)
def test_examples_on_pages_give_what_they_say(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run one after the other; a comment behind `print(...)` says what it prints."""
    first, *sections = [blocks_of(text) for text in (ROOT / page).read_text().split("\n## ")]
    if need_missing(first):
        pytest.skip("needs what its first lines import")
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in [*first, *itertools.chain(*[blocks for blocks in sections if not need_missing(blocks)])]:
        said = re.findall(r"^ *(?:ad\.debug\.)?print\(.*\) +# (.*)$", block, re.MULTILINE)
        if "os.environ" in block:  # what libraries read when they are imported is for a process of its own
            printed = python(block)
        else:
            exec(block, scope)
            printed = capsys.readouterr().out
        assert printed.split() == " ".join(said).split()


def test_signatures_of_classes_name_their_parameters() -> None:
    class Net(ad.nn.Module):
        layer: ad.nn.Linear
        size: int = 3

    shown = {
        ad.nn.Linear: "(in_features, out_features, bias=True, *, dtype=None, device=None)",
        ad.nn.Softmax: "(axis=-1)",
        ad.optim.EMA: "(*, decay=0.999)",
        ad.NumPy: "()",
        ad.Torch: "(device='cpu')",
        Net: "(layer, size=3)",
    }
    with Each() as each:
        for kind, expected in shown.items():
            with each(kind.__name__):
                found = inspect.signature(kind)
                plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
                assert str(found.replace(parameters=plain)) == expected


def test_every_column_on_pages_has_a_name() -> None:
    """A reader who hears a table hears the header with each cell."""
    with Each() as each:
        for page in PAGES:
            lines = (ROOT / page).read_text().splitlines()
            for head, rule in itertools.pairwise(lines):
                if re.fullmatch(r"\|( *:?-+:? *\|)+", rule):
                    with each(f"{page}: {head}"):
                        names = head.strip()[1:-1].split("|")
                        assert all(name.strip() for name in names)
                        assert len(names) == rule.count("|") - 1


def test_links_on_pages_lead_somewhere() -> None:
    for page in [ROOT / name for name in PAGES]:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
            if "://" not in target and Path(target).parent.name not in MADE:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readmes_table_and_chart_state_the_same_ratios() -> None:
    """From the smallest to the largest of the cases of the chart, as benchmarks.json has them."""
    source = (ROOT / "benchmarks" / "__main__.py").read_text()
    short = ast.literal_eval(source.partition("SHORT = ")[2].partition("\n]\n")[0] + "]")
    rows = json.loads((ROOT / "docs" / "benchmarks.json").read_text())["rows"]
    spans = {}
    for peer in ("PyTorch", "JAX", "JAX jit", "autograd"):
        times = [row["seconds"] for row in rows if row["case"] in short and peer in row["seconds"]]
        ratios = [time["adjoint"] / time[peer] for time in times]
        spans[peer] = " to ".join([f"{r:.0f}" if r >= 10 else f"{r:.2f}" for r in (min(ratios), max(ratios))])
    cells = ["our time / theirs", "1", spans["PyTorch"], spans["JAX"], spans["autograd"]]
    assert f"| {' | '.join(cells)} |" in (ROOT / "README.md").read_text()


def test_the_readmes_table_states_the_ratios_of_compiled_functions() -> None:
    """From the smallest to the largest of all programs and numbers of threads on the page."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    head, _, *lines = page.partition("<!-- compiled -->\n")[2].partition("\n\n")[0].splitlines()
    names = [cell.strip() for cell in head.strip("|").split("|")]
    rows = [dict(zip(names, [cell.strip() for cell in line.strip("|").split("|")], strict=True)) for line in lines]
    spans = []
    for peer in ("torch.compile", "JAX jit"):
        ratios = [float(row[peer].removeprefix("< ")) for row in rows if row[peer] != "-"]
        spans.append(f"{min(ratios):.2f} to {max(ratios):.2f}")
    assert f"| ... compiled | 1 | {' | '.join(spans)} | - |" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("Linear", "ad.nn.Linear"),
        ("SGD", "ad.optim.SGD"),
        ("svd", "ad.linalg.svd"),
        ("erf", "ad.special.erf"),
        ("bernoulli", "ad.random.bernoulli"),
        ("mgrid", "ad.meshgrid, or ad.indices"),
        ("nn.sin", "ad.sin"),
        ("special.relu", "ad.nn.relu"),
        ("random.fft", "ad.fft"),
    ],
)
def test_a_name_of_another_module_says_which(name: str, use: str) -> None:
    with pytest.raises(AttributeError, match=f"use {re.escape(use)}$"):
        operator.attrgetter(name)(ad)


def test_a_name_of_no_module_says_where_all_are() -> None:
    for module in (ad, ad.special, ad.nn, ad.tree, ad.data, ad.scipy):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'; docs/functions.md lists what there is$"):
            _ = module.nonsense
        with pytest.raises(AttributeError, match="has no attribute '_nonsense'$"):
            _ = module._nonsense
