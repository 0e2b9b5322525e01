"""Lines of the user's source, for errors that come later than what caused them."""

from __future__ import annotations

import dis
import functools
import itertools
import linecache
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
IMPORTED = time.time()  # when this package was: its files are read from then on


@functools.cache
def _libraries() -> tuple[str, ...]:
    import sysconfig  # here, so that the import of all need not wait for it

    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple([os.path.join(place, "") for place in places])


@functools.lru_cache(1024)
def is_of_library(file: str) -> bool:
    """Whether a file is of a library, which stays as it is."""
    return file.startswith(_libraries()) and not file.startswith(PACKAGE)


@functools.lru_cache(1024)
def names_in(code: CodeType) -> tuple[tuple[str, str], ...]:
    """The operations of a function that have a name, of a variable or an attribute, each with it: others are "", ""."""
    if not (code.co_names or code.co_freevars or code.co_cellvars):
        return ()
    found: list[tuple[str, str]] = []
    more, text, read = 0, code.co_code, _reader(code)
    for place in range(0, len(text), 2):
        number, argument = text[place], more | text[place + 1]
        more = argument << 8 if number == dis.EXTENDED_ARG else 0
        if name := _OPERATIONS.get(number):
            found.append((name, read(name, argument)))
        elif number != _CACHE and found and found[-1][0]:
            found.append(("", ""))
    return tuple(found)


def _reader(code: CodeType) -> Callable[[str, int], str]:
    """The name that an operation's argument stands for. `dis` knows, and takes ten times as long to say it."""
    names: Any = code.co_names
    variable: Any = getattr(code, "_varname_from_oparg")  # noqa: B009  # which mypy has not heard of
    return lambda name, argument: names[argument >> _SHIFTS.get(name, 0)] if name in _OF_NAMES else variable(argument)


_OPERATIONS = {
    number: name
    for name, number in dis.opmap.items()
    if name.endswith(("GLOBAL", "GLOBALS", "_NAME", "DEREF", "_ATTR", "_METHOD"))
}
_OF_NAMES = frozenset([dis.opname[number] for number in dis.hasname])  # others are of variables
_SHIFTS = {"LOAD_GLOBAL": 1, **({"LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2} if sys.version_info >= (3, 12) else {})}
_CACHE = dis.opmap.get("CACHE")  # what follows some operations, and is none


class Line:
    """The innermost line on the stack that is not of this package: the user's."""

    __slots__ = ("file", "line")

    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        self.file: str = frame.f_code.co_filename
        self.line: int = frame.f_lineno

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {text}" if text else "")

    @classmethod
    def at(cls, file: str, line: int) -> Line:
        made = cls.__new__(cls)
        made.file, made.line = file, line
        return made


# methods that change a list, a dictionary or a set
CHANGES = frozenset("append appendleft extend insert add update setdefault pop popleft popitem remove clear".split())


def line_changing(codes: Iterable[CodeType], name: str) -> Line | None:
    """Where functions, or those defined in them, assign to a variable; else where they may change what is in it."""
    found: list[tuple[int, Line]] = []
    waiting = list(codes)
    while waiting:
        code = waiting.pop(0)
        waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
        rows = [(x.positions.lineno if x.positions else None, x) for x in dis.get_instructions(code)]
        changed = {
            line
            for line, x in rows
            if x.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "BINARY_OP") or x.argval in CHANGES
        }
        for line, x in rows:
            if line is not None and x.argval == name and x.opname.endswith(("_GLOBAL", "_DEREF", "_NAME")):
                rank = 0 if x.opname.startswith(("STORE", "DELETE")) else 1 if line in changed else 2
                found.append((rank, Line.at(code.co_filename, line)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


Frame = tuple[CodeType, int]


def stack() -> tuple[Frame, ...]:
    """The functions and lines on the stack that are not of this package, from the outermost in."""
    frame: FrameType | None = sys._getframe(1)
    found: list[Frame] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found[::-1])


def stack_level() -> int:
    """The `stacklevel` of a warning that is for the line of the user's."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def is_search(frame: FrameType) -> bool:
    """Whether it is of a search of SciPy's, in `scipy.optimize`."""
    name: str = frame.f_globals.get("__name__") or ""
    return name.startswith("scipy.optimize.")


def asked_by() -> str | None:
    """What outside of this package asks, for a message: a function of SciPy's, such as `scipy.linalg.solve`, a method
    of a table of pandas, or "assignment" where Python assigns to an element; None for anything else.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is not None and frame.f_lasti >= 0 and _library(frame) != "scipy":
        operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if operation in ("STORE_SUBSCR", "STORE_SLICE"):
            return "assignment"
    found: str | None = None
    while frame is not None and (library := _library(frame)) in ("numpy", "scipy", "pandas"):
        found = (_public_name(frame) or found) if library != "numpy" else found
        frame = frame.f_back
    return found


def numpy_caller() -> str | None:
    """The function of NumPy's, such as `np.histogram`, whose own code asks; None where NumPy's code does not."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    found: str | None = None
    while frame is not None and _library(frame) == "numpy":
        name = frame.f_code.co_name
        found = f"np.{name}" if hasattr(sys.modules["numpy"], name) else found
        frame = frame.f_back
    return found


def _library(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]


def _public_name(frame: FrameType) -> str | None:
    """What users call a function of SciPy's by, or a class, or a method of a distribution or of a table."""
    module, local = frame.f_globals["__name__"], frame.f_locals
    names = [frame.f_code.co_name]
    if module.startswith("pandas."):
        return f"pandas.{type(local['self']).__name__}.{names[0]}" if "self" in local and names[0][0] != "_" else None
    if names == ["wrapper"] and "f" in local:  # which stands for another one
        names, module = [local["f"].__name__], local["f"].__module__
    package = ".".join(itertools.takewhile(lambda part: part[0] != "_", module.split(".")))
    if package == "scipy.stats" and "self" in local and names != ["__init__"]:
        names.insert(0, str(getattr(local["self"], "name", "")))
    elif "self" in local:
        names = [type(local["self"]).__name__, *(names if names != ["__init__"] else [])]
    return f"{package}.{'.'.join(names)}" if hasattr(sys.modules.get(package), names[0]) else None


def line_of(error: BaseException) -> str | None:
    """The innermost line of the user's that led to an error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(PACKAGE)]
    if not frames:
        return None
    return f"{frames[-1].filename}:{frames[-1].lineno}" + (f": {frames[-1].line}" if frames[-1].line else "")
