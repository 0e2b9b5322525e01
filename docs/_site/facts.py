"""The small print of the reference: shapes, dtypes, derivative and its checks, backends, errors, of each function.

Nothing here is written by hand. Shapes and kinds of dtypes are those of calls that the build makes, errors are those of
`tests/messages`, which the tests bring about one by one, and the rest is from `docs/functions.md`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.compiler.native.elements import EMITTERS
from adjoint.primitives import TABLE

ROOT = Path(__file__).resolve().parent.parent.parent
# what leaves are compared on: every primitive, with NumPy, in tests/test_leaf_backends.py
LEAVES = "NumPy, PyTorch, JAX, Dask, CuPy, any of the array API standard"
KINDS = {"booleans": "bool", "integers": "int64", "real": "float32", "complex": "complex64"}
ERRORS = 3  # shown of a function, or one of each class
GIVEN = "the result has the shape that is given"
BROADCAST = "operands broadcast, and the result has their common shape"


@functools.cache
def listed() -> dict[str, list[str]]:
    """The cells of docs/functions.md by public name: where from, dtypes, derivative, orders, compared with."""
    found = {}
    for line in (ROOT / "docs" / "functions.md").read_text().splitlines():
        if line.startswith("| `"):
            name, *cells = [cell.strip() for cell in line.strip("| \n").split("|")]
            found[name.strip("`")] = [*cells, *[""] * (5 - len(cells))]
    return found


@functools.cache
def messages() -> dict[str, list[tuple[str, str]]]:
    """The errors that a function raises in `tests/messages`: class and text. A text starts with the function's name."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "messages").glob("*.txt")):
        for row in re.split(r"\n\s*\n", path.read_text()):
            code = "\n".join([line[4:] for line in row.splitlines() if line.startswith((">>> ", "... "))])
            said = re.search(r"^(\w+Error): ((\w+): .*(?:\n(?!>>>|\.\.\.).*)*)", row, re.MULTILINE)
            if said is None:
                continue
            kind, text, name = said.groups()
            for full in set(re.findall(rf"\bad\.((?:\w+\.)*{name})\(", code)):
                text = " ".join(text.split())
                if (kind, text) not in found[full] and "  " not in text and len(text) < 160:
                    found[full].append((kind, text))
    return found


def result_of(f: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32") -> Any:
    """The result's shape, those of several as text; None for an error, or no tensor. Matrices have inverses."""
    operands = [(ad.ones(shape) * (0.25 + 0.25 * i)).astype(dtype) for i, shape in enumerate(shapes)]
    operands = [x + 4 * ad.eye(5) if x.shape[-2:] == (5, 5) else x for x in operands]
    with np.errstate(all="ignore"):
        try:
            out = f(*operands)
        except Exception:
            return None
    if isinstance(out, tuple) and out and all([isinstance(part, ad.Tensor) for part in out]):
        return " and ".join([str(tuple(part.shape)) for part in out])
    return tuple(out.shape) if isinstance(out, ad.Tensor) else None


def error_of(f: Callable[..., Any], *operands: Any) -> list[tuple[str, str]]:
    """The class and the text of the error of ours that a call raises."""
    try:
        with np.errstate(all="ignore"):
            f(*operands)
    except ad.errors.AdjointError as error:
        return [(type(error).__name__, " ".join(str(error).split()))]
    except Exception:
        pass
    return []


def _operands(f: Any) -> int:
    """How many arguments it needs, or 0 where none is an array's."""
    try:
        found = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return 0
    if any([p.default is p.empty and p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in found]):
        return 0
    return len([p for p in found if p.default is p.empty])


def _of_arrays(f: Any) -> bool:
    """Whether it is called as functions of arrays are, by place."""
    parameters = list(inspect.signature(f).parameters.values())
    return bool(parameters) and parameters[0].kind == inspect.Parameter.POSITIONAL_ONLY


@functools.cache
def shapes(full: str, f: Any) -> str:
    """What calls with arrays of some shapes gave."""
    if full.startswith("stats.") and (parameters := getattr(f, "parameters", ())):  # of one number
        log = getattr(f, "logpdf", None) or f.logpmf
        places = [(2, 3), (3,), *[()] * (len(parameters) - 1)]
        return BROADCAST if result_of(log, *places) == (2, 3) else ""
    if inspect.isroutine(f) and next(iter(inspect.signature(f).parameters), "") == "shape":
        made = result_of(lambda: f((2, 3))) or result_of(lambda: f((2, 3), 2))
        return GIVEN if made == (2, 3) else ""
    if not inspect.isroutine(f) or full not in listed() or full.startswith("random."):
        return ""
    if "depends on the values" in (inspect.getdoc(f) or ""):
        return "that of the result depends on the values"
    count = _operands(f)
    dtype = "float32" if result_of(f, *[(2, 3)] * count) else "int64"
    same = all([result_of(f, *[shape] * count, dtype=dtype) == shape for shape in ((2, 3), (4,), ())])
    if count == 1 and same:
        return "any; the result has that of the operand"
    apart = any(
        [kind == "ShapeError" for kind, _ in error_of(f, *[ad.ones(2 + i).astype(dtype) for i in range(count)])]
    )
    if count > 1 and same and apart and result_of(f, *[(2, 3), (3,), ()][:count], dtype=dtype) == (2, 3):
        return BROADCAST
    if count == 1 and "axis" in inspect.signature(f).parameters and result_of(f, (2, 3)) is not None:
        along = result_of(lambda x: f(x, axis=0), (2, 3, 5))
        if along == (3, 5) and result_of(f, (2, 3)) == ():
            kept = result_of(lambda x: f(x, axis=0, keepdims=True), (2, 3, 5)) == (1, 3, 5)
            return "without axis one number; else the axis goes" + (
                ", or stays with length 1 by keepdims" if kept else ""
            )
    if count in (1, 2):
        for given in ((2, 3, 5), (2, 5, 5), (2, 3), (5, 5), (5,)):
            pair = [given, given[:-2] + given[:-3:-1]][:count] if len(given) > 1 else [given] * count
            if (out := result_of(f, *pair)) is not None:
                return f"for example {' and '.join(map(str, pair))} give{'s' if count == 1 else ''} {out}"
    return ""


def kinds(full: str, f: Any) -> str:
    """The kinds of dtypes that a function of elements takes."""
    primitive = TABLE.get(full.rpartition(".")[2])
    if primitive is None or primitive.kind != "elementwise" or not (count := _operands(f)):
        return ""
    return ", ".join([kind for kind, dtype in KINDS.items() if result_of(f, *[(3,)] * count, dtype=dtype) == (3,)])


def errors(full: str, f: Any) -> list[tuple[str, str]]:
    """Those of `tests/messages`; where there are none, those of operands that do not fit."""
    found = messages().get(full, [])
    if not found and full in listed() and _of_arrays(f) and (count := _operands(f)):
        for operands in ([ad.ones(2 + i) for i in range(count)], [ad.ones(2) * 1j] * count, ["a"] * count):
            found = [*found, *error_of(f, *operands)]
    known = {re.sub(r"\b(float|complex)\d+\b", "", text): (kind, text) for kind, text in found[::-1]}
    texts = list(known.values())[::-1]  # those that differ in a dtype alone are one
    firsts = [pair for i, pair in enumerate(texts) if pair[0] not in [kind for kind, _ in texts[:i]]]
    return (firsts + [pair for pair in texts if pair not in firsts])[: max(ERRORS, len(firsts))]


def backends(full: str) -> str:
    """Where it runs; every leaf runs every primitive."""
    name = full.rpartition(".")[2]
    said = LEAVES
    if name in EMITTERS and (full == name or full.startswith("special.")):
        said += "; machine code in compiled functions on NumPy"
    if name in TABLE and TABLE[name].dynamic:
        said += "; the shape depends on values, so not in compiled functions, and Dask computes at once"
    return said


def rows(full: str, f: Any, doc: str) -> dict[str, str]:
    """The facts by what they are about; a fact that is not known is left out."""
    origin, dtypes, derivative, orders, oracles = listed().get(full, [""] * 5)
    found = {"Shapes": "" if "Parameters\n---" in doc else shapes(full, f)}
    taken = kinds(full, f)
    if "f" in dtypes and "real" not in taken:  # where operands are of several kinds, as those of `where`
        taken = ""
    tested = f"calls were run in {dtypes}" if dtypes else ""
    if not dtypes and found["Shapes"] == GIVEN and "dtype" in inspect.signature(f).parameters:
        made = f((2, 3), *[2] * (_operands(f) - 1)).dtype
        tested = "the default dtype unless one is given" if made == ad.default_dtype() else ""
    found["Dtypes"] = "; ".join(filter(None, [f"takes {taken}" if taken else "", tested]))
    checks = [f"checked with differences to order {orders}"] if orders else []
    checks += [f"compared with {oracles}"] if oracles else []
    found["Gradient" if derivative else "Checked"] = "; ".join([derivative] * bool(derivative) + checks)
    found["Backends"] = backends(full) if origin else ""
    found["Errors"] = "; ".join([f"{kind} ({text})" for kind, text in errors(full, f)])
    found["From"] = {"standard": "the array API standard", "ours": "no part of the standard"}.get(origin, "")
    return {about: said for about, said in found.items() if said}
