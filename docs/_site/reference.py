"""The reference of the site: a page per topic, written from the table of public names and from docstrings.

`pages()` gives the text of every page; `write(folder)` puts them where Sphinx reads them, and touches no file that is
as it should be. An object is `adjoint.nn.Linear` in the inventory, and is shown as people write it, `ad.nn.Linear`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import facts
import snippets
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

import adjoint as ad

ROOT = Path(__file__).resolve().parent.parent.parent

# pages of functions that are in `ad` itself: the title, and the modules of the table whose names are there
TOPICS = {
    "transforms": (
        "Gradients and other transformations",
        (
            "transforms.reverse transforms.forward transforms.jacobians transforms.batches transforms.checkpoints "
            "transforms.custom transforms.external extend transforms.elementwise transforms.closures transforms.sparse "
            "transforms.taylor functions.connections"
        ),
    ),
    "control": ("Choices and loops", "transforms.control"),
    "solvers": ("Differential equations", "solvers.ode solvers.events"),
    "tensor": ("Tensors and their gradients", "tensor functions.gradients"),
    "creation": ("Making tensors", "functions.creation functions.ranges functions.conversion"),
    "elementwise": ("Elementwise functions", "functions.elementwise functions.logic functions.numbers"),
    "reduction": ("Sums and statistics", "functions.reduction functions.statistics functions.binning"),
    "shape": ("Shapes", "functions.shape functions.padding functions.parts functions.combinations"),
    "indexing": ("Indexing and sorting", "functions.indexing functions.scatter functions.sorting functions.sets"),
    "contraction": (
        "Products and polynomials",
        "functions.contraction functions.convolution functions.calculus functions.polynomials linalg.distances",
    ),
    "backends": (
        "Backends and devices",
        (
            "devices backend backends.numpy backends.torch backends.jax backends.cupy backends.dask backends.array_api "
            "backends.reference decorators.autodiff decorators.tangent decorators.batched decorators.taylor "
            "decorators.dependence decorators.observed"
        ),
    ),
    "compile": ("Compiled functions", "compiler.compiled compiler.threads"),
    "pictures": ("Pictures", "pictures.drawing"),
    "dtypes": ("Data types and constants", "dtypes functions.inspection constants"),
}
TITLES = {
    "data": "Data",
    "debug": "Looking inside",
    "errors": "Errors",
    "fft": "Fourier transforms",
    "implicit": "Roots and minima",
    "linalg": "Linear algebra",
    "nn": "Neural networks",
    "optim": "Optimizers",
    "plot": "Plots",
    "random": "Random numbers",
    "scipy": "SciPy's optimizers",
    "special": "Special functions",
    "stats": "Distributions",
    "testing": "Checking derivatives",
    "train": "Training",
    "tree": "Trees",
}
CONSTANTS = {
    "bfloat16": "The data type bfloat16: 8 bits of precision, the range of float32. Needs `ml_dtypes`.",
    "newaxis": "`None`, as an index: an axis of length 1.",
    "__version__": "The version of adjoint.",
    "__array_api_version__": "The version of the array API standard that the namespace follows.",
}
# errors that prose names; lines of nothing else are heads of a "Raises" section, where napoleon wants words
_ERRORS = re.compile(rf"\b({'|'.join(dir(ad.errors))})\b")
OPERATORS = ("__call__", "__getitem__", "__contains__", "__enter__", "__iter__")


@functools.cache
def spaces() -> dict[str, Any]:
    """The public namespaces by name: "" for `ad` itself, "nn", "nn.init", ..."""
    found = {"": ad, **{name: getattr(ad, name) for name, module in ad._MODULES.items() if not module}}
    return {**found, "nn.init": ad.nn.init}


@functools.cache
def public() -> dict[str, Any]:
    """Every public name with its object, modules left out: "sum", "nn.Linear", ..."""
    found = {}
    for space, module in spaces().items():
        for name in dir(module):
            if not inspect.ismodule(value := getattr(module, name)):
                found[f"{space}.{name}".lstrip(".")] = value
    if "bfloat16" not in found:  # which `dir` leaves out, since it needs another library
        found["bfloat16"] = None
    return found


def first(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = text.strip().partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.;])\s(?=[A-Z`])", paragraph)[0]


# --- docstrings as reStructuredText ---


def literal(code: str, space: str, own: set[str]) -> str:
    """What stands between backticks: a link where it names something public, else code."""
    name = code.removeprefix("ad.").removesuffix("()")
    names = [name] if code.startswith("ad.") else [f"{space}.{name}", name]
    for full in names:
        if (full in public() or full in spaces()) and code not in own and (len(name) > 3 or code.startswith("ad.")):
            return f":py:obj:`{code} <adjoint.{full}>`" if full in public() else f":doc:`{code} </reference/{full}>`"
    code = code.replace("\n", " ")
    return f"``{code}``" if code.strip() == code and code else f":code:`{code}`"


def marked(text: str, space: str, own: set[str]) -> str:
    """Prose of a docstring, where backticks mean code, with what reStructuredText would read otherwise escaped."""
    parts = re.split(r"(``.*?``|`[^`]+`)", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = part if part.startswith("``") else literal(re.sub(r"\s+", " ", part[1:-1]), space, own)
            if parts[i + 1][:1].isalnum():
                parts[i] += "\\ "
        else:
            part = re.sub(r"(?<!\\)([*|])", r"\\\1", part)
            part = re.sub(r"(\w)_(?!\w)", r"\1\\_", part)
            lines = part.split("\n")
            linked = [_ERRORS.sub(r":py:exc:`\1 <adjoint.errors.\1>`", line) for line in lines]
            heads = [re.fullmatch(r"\w+Error(, \w+Error)*", line) for line in lines]
            parts[i] = "\n".join(
                [line if head else link for line, link, head in zip(lines, linked, heads, strict=True)]
            )
    return "".join(parts)


def text_of(doc: str, space: str, own: set[str]) -> str:
    """A docstring in NumPy's style as reStructuredText; examples stay as they are."""
    blocks = re.split(r"(\n\s*\n)", inspect.cleandoc(doc))
    example = re.compile(r"(Examples\n-+\n)?\s*>>>")
    blocks = [block if example.match(block) else marked(block, space, own) for block in blocks]
    config = Config(napoleon_use_rtype=False, napoleon_use_ivar=True)
    return str(NumpyDocstring("".join(blocks), config))


def indented(text: str, by: int = 3) -> str:
    return "\n".join([" " * by + line if line.strip() else "" for line in text.splitlines()])


# --- objects ---


def signature(value: Any) -> str:
    """Parameters with their defaults, without types, which docstrings say in words."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    if value is ad.Tensor:  # is made by functions
        return ""
    if family := getattr(getattr(value, "__self__", None), "parameters", ()):  # of a distribution
        default = value.__self__.defaults
        named = [inspect.Parameter(n, parameters[0].kind, default=default.get(n, inspect._empty)) for n in family]
        parameters = [parameters[0], *named]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    return re.sub(r"<(?:function|class|object) ?'?([\w.]*)[^>]*>", r"\1", text).replace("\\", "\\\\")


def parameters(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set()


def where(value: Any) -> str:
    """The file it is defined in."""
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
    except TypeError:
        path = (
            Path(inspect.getsourcefile(type(value)) or "") if type(value).__module__.startswith("adjoint") else Path()
        )
    return (
        f"src/adjoint/{path.relative_to(Path(ad.__file__).parent)}" if Path(ad.__file__).parent in path.parents else ""
    )


def shown(full: str, doc: str) -> str:
    """An example, where the docstring has none."""
    return "" if ">>>" in doc else snippets.example(full)


def footer(full: str, value: Any) -> str:
    """The facts, a line for each, as small print."""
    found = facts.rows(full, value, inspect.getdoc(value) or "")
    if file := where(value):
        found["Source"] = f"`{file}`"
    lines = [f"| **{about}:** {marked(said, full.rpartition('.')[0], set())}" for about, said in found.items()]
    return "\n\n.. rst-class:: facts\n\n" + "\n".join(lines) + "\n" if lines else ""


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class itself has, and its bases in the package that are not public themselves."""
    classes = [base for base in public().values() if inspect.isclass(base) and base is not kind]
    seen = set()
    for base in kind.__mro__:
        if base in classes or not base.__module__.startswith("adjoint"):
            continue
        for name in vars(base):
            if name in seen or (name.startswith("_") and name not in OPERATORS):
                continue
            seen.add(name)
            value = getattr(kind, name, None)
            raw = inspect.getattr_static(kind, name)
            if isinstance(raw, (staticmethod, classmethod, property)) or inspect.isroutine(value):
                yield name, value if not isinstance(raw, property) else raw


def method(full: str, name: str, value: Any, space: str) -> str:
    doc = inspect.getdoc(value) or ""
    kind = "property" if isinstance(value, property) else "method"
    head = f".. py:{kind}:: {full}.{name}" + ("" if kind == "property" else signature(value))
    if public().get(name) is value:
        body = f"The function :py:func:`ad.{name} <adjoint.{name}>` of this tensor: {marked(first(doc), '', set())}"
    else:
        body = text_of(doc, space, parameters(value)) if doc else ""
    return f"{head}\n\n{indented(body)}\n"


def entry(full: str, value: Any) -> str:
    """One object: signature, docstring, where it is and how it was checked."""
    space, _, name = full.rpartition(".")
    doc = inspect.getdoc(value) or ""
    if inspect.isclass(value):
        bases = [base for base in value.__mro__[1:] if base in public().values()]
        names = [key for key, other in public().items() if bases and other is bases[0]]
        head = f".. py:{'exception' if issubclass(value, BaseException) else 'class'}:: {full}{signature(value)}"
        body = text_of(doc, space, parameters(value))
        body += shown(full, doc)
        body += f"\nBases: :py:obj:`ad.{names[0]} <adjoint.{names[0]}>`\n" if names else ""
        below = [method(full, n, m, space) for n, m in sorted(members(value))]
        return f"{head}\n\n{indented(body + footer(full, value))}\n\n{indented(chr(10).join(below))}\n"
    if inspect.isroutine(value):
        body = text_of(doc, space, parameters(value)) + shown(full, doc) + footer(full, value)
        return f".. py:function:: {full}{signature(value)}\n\n{indented(body)}\n"
    if space == "stats":
        below = [
            method(full, n, getattr(value, n), space)
            for n in ("pdf", "pmf", "logpdf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
            if callable(getattr(value, n, None))
        ]
        body = text_of(doc, space, set()) + shown(full, doc) + footer(full, value)
        return f".. py:data:: {full}\n\n{indented(body)}\n\n{indented(chr(10).join(below))}\n"
    return f".. py:data:: {full}\n\n{indented(marked(said_of(full, value), '', set()))}\n"


def said_of(full: str, value: Any) -> str:
    """A sentence on what has no docstring of its own."""
    if full in CONSTANTS:
        return CONSTANTS[full]
    if full == "nn.Buffer":
        return "Marks a field of a module as a tensor that is no parameter: `mean: ad.nn.Buffer`."
    if isinstance(value, float):
        return f"The number {value!r}."
    return f"The data type {full}: NumPy's `dtype` object, which serves for every backend."


# --- pages ---


def heading(text: str, sign: str) -> str:
    return f"{text}\n{sign * len(text)}\n"


def summary(full: str, value: Any) -> str:
    """A row of the table at the top of a section."""
    doc = said_of(full, value) if full in CONSTANTS or not _documented(full, value) else inspect.getdoc(value) or ""
    said = " ".join(marked(first(doc), full.rpartition(".")[0], set()).split())
    return f"   * - :py:obj:`ad.{full} <adjoint.{full}>`\n     - {said}"


def _documented(full: str, value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value) or full.startswith("stats.")


def section(names: list[str]) -> str:
    rows = "\n".join([summary(name, public()[name]) for name in names])
    table = f".. list-table::\n   :class: names\n   :widths: 30 70\n\n{rows}\n"
    return table + "\n" + "\n".join([entry(name, public()[name]) for name in names])


def name_of(module: str) -> str:
    """The last part of a module's name as a title: "short_time" is "Short time"."""
    return module.rpartition(".")[2].replace("_", " ").capitalize()


def page(title: str, intro: str, sections: dict[str, list[str]], below: str = "") -> str:
    lines = [heading(title, "="), ".. py:currentmodule:: adjoint\n", intro, below]
    for name, names in sections.items():
        lines += [*([heading(name, "-")] if len(sections) > 1 else []), section(names)]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """The name of each page and its text."""
    listed = {module for _, modules in TOPICS.values() for module in modules.split()}
    if listed != ad._TABLE.keys() - {""} or TITLES.keys() != set(ad._TABLE[""].split()):
        raise ValueError(f"topics and titles do not fit the table: {sorted(listed ^ (ad._TABLE.keys() - {''}))}")
    if unknown := snippets.table().keys() - public().keys():
        raise ValueError(f"examples of what is not public: {sorted(unknown)}")
    found = {}
    for stem, (title, modules) in TOPICS.items():
        sections = {}
        for module in modules.split():
            doc = (inspect.getdoc(sys.modules[f"adjoint.{module}"]) or "").partition("\n\n")[0]
            sections[name_of(module)] = ad._TABLE[module].split()
        intro = marked(" ".join(doc.split()), "", set()) + "\n" if len(sections) == 1 else ""
        found[stem] = page(title, intro, sections)
    for space in [*TITLES, "nn.init"]:
        module = spaces()[space]
        sections = {}
        for name in dir(module):
            if (full := f"{space}.{name}") in public():
                home = getattr(public()[full], "__module__", "") or ""
                home = home if home.startswith("adjoint") else f"adjoint.{space}"
                kind = "Layers: " if ".nn.modules." in home else ""
                sections.setdefault(kind + name_of(home), []).append(full)
        sections = dict(sorted(sections.items(), key=lambda item: item[0]))
        title = f"{TITLES.get(space, 'Initial values of parameters')}: ad.{space}"
        intro = marked((inspect.getdoc(module) or "").partition("\n\n")[0], space, set()) + "\n"
        module_directive = f".. py:module:: adjoint.{space}\n\n"
        below = ".. py:currentmodule:: adjoint\n\n" + (
            "Initial values of parameters are in :doc:`ad.nn.init <nn.init>`.\n" if space == "nn" else ""
        )
        found[space] = page(title, module_directive + intro, sections, below)
    found["index"] = index()
    return found


def index() -> str:
    """What there is, by topic."""
    own = "\n".join([f"   {stem}" for stem in TOPICS])
    others = "\n".join([f"   {space}" for space in [*TITLES, "nn.init"]])
    return "\n".join(
        [
            heading("Reference", "="),
            ".. py:module:: adjoint\n",
            "Every public function and class, by topic, from its docstring: what it does, its arguments, the errors it",
            "raises, and an example, which was run. The small print has shapes, data types, how the derivative comes",
            "about and was checked, where it runs, and what errors say. Every backend runs every primitive. What a",
            "library cannot do raises ``UnsupportedPrimitiveError`` or ``DtypeError``, and :doc:`the section of its",
            "backend </backends>` tells it.",
            "Search finds names: try ``vmap``.\n",
            ".. toctree::\n   :maxdepth: 1\n   :caption: import adjoint as ad\n",
            own,
            "\n.. toctree::\n   :maxdepth: 1\n   :caption: Topics with a name of their own\n",
            others,
            "",
        ]
    )


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    texts = {f"{name}.rst": text for name, text in pages().items()}
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
