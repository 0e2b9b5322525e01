"""The table of docs/functions.md: every public function, found by running it and by reading what the tests name.

`python tests/vocabulary.py` prints it, `--write` puts it on the page. Calls are those of `functions.FUNCTIONS`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import test_standard
from functions import FUNCTIONS, OTHER, PLAIN, Draw
from test_function_derivatives import public_functions, transforms

import adjoint as ad
from adjoint.primitives import CREATION, STRUCTURAL, TABLE
from adjoint.rules import RECORDS, Composed, NotDifferentiable

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "functions.md"
STANDARD = {
    **dict.fromkeys(test_standard.FUNCTIONS, ""),
    **{f"linalg.{name}": "" for name in test_standard.LINALG},
    **{f"fft.{name}": "" for name in test_standard.FFT},
}
DTYPES = ("float16", "float32", "float64", "complex64", "complex128")
# what the comparisons of a test module are made with
ORACLES = {
    "test_against_torch": "PyTorch",
    "test_arrays": "NumPy",
    "test_arrays_against_peers": "PyTorch, JAX",
    "test_deform_conv2d": "PyTorch",
    "test_distributions": "SciPy",
    "test_fft": "PyTorch, SciPy, NumPy",
    "test_functions": "NumPy",
    "test_linalg": "PyTorch, SciPy, NumPy",
    "test_matrices": "SciPy, mpmath",
    "test_nn_against_torch": "PyTorch",
    "test_numpy_protocols": "NumPy",
    "test_parts": "NumPy",
    "test_parts_against_torch": "PyTorch",
    "test_polynomials": "NumPy",
    "test_singular_points": "PyTorch",
    "test_sorting": "NumPy, PyTorch",
    "test_special": "SciPy, mpmath",
    "test_special_parameters": "SciPy, mpmath",
    "test_special_cases": "the standard's text",
}


class Sample(Draw):
    """Draws without hypothesis: always the same ones."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]


def calls(name: str) -> Iterator[tuple[Callable[..., Any], list[Any]]]:
    """A few calls whose arguments have elements."""
    for seed in range(12):
        f, *args = FUNCTIONS[name](Sample(seed))
        if all(np.size(x) for x in args if isinstance(x, np.ndarray)):
            yield f, args


def is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def runs_in(name: str, dtype: str) -> bool:
    """Whether a call with arrays of this dtype gives values."""
    found = False
    for f, args in calls(name):
        given = [np.dtype(dtype).type(x) if is_float(x) and x.ndim == 0 else x for x in args]
        given = [x.astype(dtype) if is_float(x) else x for x in given]
        try:
            f(*[ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in given])
            found = True
        except (ad.errors.DtypeError, ad.errors.UnsupportedPrimitiveError, ad.errors.ArgumentError, TypeError):
            return False
        except Exception:
            continue
    return found


def primitives_of(name: str) -> list[str]:
    """The primitives that have derivatives, and that tracked calls run."""
    seen: dict[str, None] = {}
    for f, args in calls(name):
        leaf = ad.Profiled(ad.NumPy())
        with ad.use_device(ad.Autodiff(leaf)):
            try:
                f(*[ad.asarray(x).require_grad() if is_float(x) else x for x in args])
            except ad.errors.AdjointError:
                continue
        seen.update(dict.fromkeys(row.primitive for row in leaf.profile().rows if row.phase == "forward"))
    return [p for p in sorted(seen) if not isinstance(RECORDS.get(p), (NotDifferentiable, type(None)))]


def gradient(name: str) -> str:
    """How the derivative is had."""
    if name in PLAIN or name not in FUNCTIONS:
        return ""
    used = primitives_of(name)
    working = [p for p in used if TABLE[p].kind not in (STRUCTURAL, CREATION) and p not in ("astype", "index")]
    if name.rpartition(".")[2] in used:
        working = [name.rpartition(".")[2]]
    if not used:
        return "constant"
    if len(working) <= 1:
        (p,) = working or used[:1]
        record = RECORDS[p]
        kind = type(record).__name__.lower()
        if isinstance(record, Composed):
            kind = "fused" if record.fused else "composed"
        return f"{kind}: `{p}`"
    return "of " + ", ".join(f"`{p}`" for p in working[:4]) + (", ..." if len(working) > 4 else "")


# the namespace of the names in a test module, if it leaves that out
NAMESPACES = {
    "test_distributions": "random",
    "test_fft": "fft",
    "test_linalg": "linalg",
    "test_nn_against_torch": "nn",
    "test_special": "special",
    "test_special_parameters": "special",
}


# how a statement shows that it knows a library
SIGNS = {
    "JAX": r"\b(jax|jnp)\b",
    "NumPy": r"\bnp\.(?!testing|asarray|array|float|int|complex|random|errstate|ndarray|dtype|linspace|arange)",
    "PyTorch": r"\b(torch|theirs|F)\b",
    "SciPy": r"\b(scipy|stats)\b",
    "mpmath": r"\bmpmath\b",
}


@functools.cache
def named_in(module: str) -> dict[str, list[str]]:
    """The functions that a test module compares, and with what.

    They are the keys of its tables and the parameters called `name`, also where these are put together, and the
    attributes in statements that know another library; but not what stands in tests and tables of errors, and what
    makes tensors only in tables.
    """
    libraries = ORACLES[module].split(", ")
    loaded = importlib.import_module(module)
    public, namespace = public_functions(), NAMESPACES.get(module, "")
    words: set[str] = set()
    found: dict[str, list[str]] = {}
    for statement in ast.parse((TESTS / f"{module}.py").read_text()).body:
        nodes = list(ast.walk(statement))
        if any(
            isinstance(node, ast.Attribute) and ast.unparse(node) in ("pytest.raises", "errors.ShapeError")
            for node in nodes
        ):
            continue
        text = ast.unparse(statement)
        known = [lib for lib in libraries if re.search(SIGNS.get(lib, "a^"), text)]
        for name in {_called(node, loaded) for node in nodes if isinstance(node, ast.Attribute)} - OTHER:
            found[name] = [lib for lib in libraries if lib in known or lib in found.get(name, ())]
        for node in nodes:
            if isinstance(node, ast.Call) and "NumPy" in libraries:  # same(ad.arange(5), np.arange(5))
                sides = {ast.unparse(arg.func) for arg in node.args if isinstance(arg, ast.Call)}
                found.update({s[3:]: ["NumPy"] for s in sides if s.startswith("ad.") and f"np.{s[3:]}" in sides})
            if isinstance(node, ast.For) and ast.unparse(node.target) == "name":
                words.update(
                    n.value for n in ast.walk(node.iter) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                )
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            table = getattr(loaded, target.id) if isinstance(target, ast.Name) else None
            if isinstance(table, dict):
                words.update(key for key in table if isinstance(key, str))
        if isinstance(statement, ast.FunctionDef):
            words.update(_parameters(getattr(loaded, statement.name)))
    for word in words:
        first = word.replace(",", " ").split()[0] if word.strip() else ""
        if first != "tensor":
            found.update(dict.fromkeys((first, f"{namespace}.{first}"), libraries))
    return {name: libs for name, libs in found.items() if name in public}


def _called(node: ast.Attribute, loaded: Any) -> str:
    """The public name of `ad.linalg.qr`, or of `LA.qr` where LA is a module of ours."""
    root, _, rest = ast.unparse(node).partition(".")
    namespace = getattr(loaded, root, None)
    return f"{namespace.__name__}.{rest}".removeprefix("adjoint.") if inspect.ismodule(namespace) else ""


def _parameters(test: Any) -> Iterator[str]:
    """The values of a parameter `name` of a test."""
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else list(mark.args[0])
            if "name" in [n.strip() for n in names]:
                place = [n.strip() for n in names].index("name")
                for case in mark.args[1]:
                    values = getattr(case, "values", case)
                    value = values if isinstance(values, str) else values[place]
                    yield value


def oracles(name: str) -> str:
    if name in PLAIN:
        return "NumPy"
    same = [other for other in public_functions() if operator.attrgetter(other)(ad) is operator.attrgetter(name)(ad)]
    found = [lib for module in ORACLES for other in same for lib in named_in(module).get(other, [])]
    return ", ".join(dict.fromkeys(found))


def dtypes(name: str) -> str:
    if name in PLAIN or name not in FUNCTIONS:
        return ""
    works = [dtype for dtype in DTYPES if runs_in(name, dtype)]
    floats = [d.removeprefix("float") for d in works if d.startswith("float")]
    return "f" + "/".join(floats) + (", complex" if "complex128" in works else "") if floats else "complex"


def rows() -> Iterator[tuple[str, list[str]]]:
    for name in sorted(public_functions() - transforms(), key=lambda name: name.rpartition(".")[::2]):
        origin = "standard" if name in STANDARD else "ours"
        order = "2" if name in FUNCTIONS else ""
        yield name, [f"`{name}`", origin, dtypes(name), gradient(name), order, oracles(name)]


def table() -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _table()


def _table() -> str:
    lines = []
    counts: dict[str, int] = {}
    topic = None
    for name, cells in rows():
        namespace = name.rpartition(".")[0]
        if namespace != topic:
            topic = namespace
            lines += ["", f"## {f'ad.{namespace}' if namespace else 'ad'}", ""]
            lines += ["| function | from | dtypes | derivative | orders checked | compared with |"]
            lines += ["| --- | --- | --- | --- | --- | --- |"]
        lines.append("| " + " | ".join(cells) + " |")
        counts[cells[1]] = counts.get(cells[1], 0) + 1
        counts["checked"] = counts.get("checked", 0) + bool(cells[4])
    total = counts["standard"] + counts["ours"]
    head = (
        f"{total} functions: {counts['standard']} of the standard, {counts['ours']} beyond it; the derivatives of "
        f"{counts['checked']} are checked."
    )
    return "\n".join([head, *lines])


if __name__ == "__main__":
    made = table()
    if "--write" in sys.argv:
        page, start, end = PAGE.read_text(), "<!-- table -->\n", "<!-- end of table -->"
        PAGE.write_text(page[: page.index(start) + len(start)] + made + "\n" + page[page.index(end) :])
    else:
        print(made)
