"""What a user meets when something goes wrong: the calls and their messages, one file of text per topic.

A row is what was written, line by line after `>>> ` or `... `, and below it the error's class and its whole text, with
`...` for what varies. Lines of code that follow are the way out which the message names: they run without an error.
Rows are apart by an empty line, and each starts from the same names, those of `given` and `folder`, the path of an
empty folder. A file whose first line is `needs: library` is left out where that library is missing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import dtypes, errors
from adjoint.backends.special.hosted import scipy_special

HERE = Path(__file__).parent
SOURCE = Path(ad.__file__).parent
TOPICS = sorted(path.stem for path in HERE.glob("*.txt"))


@dataclasses.dataclass
class Row:
    """Code that fails, what it says, and the code that does not fail; `line` is where the row starts in its file."""

    line: int
    code: str
    kind: str
    text: str
    way_out: str


def parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Lines in runs of code and of text."""
    run: list[str] = []
    was = True
    for line in lines:
        if (code := line.startswith((">>>", "..."))) != was and run:
            yield was, run
            run = []
        was = code
        run.append(line[4:] if code else line.strip())
    yield was, run


def rows(topic: str) -> Iterator[Row]:
    lines = (HERE / f"{topic}.txt").read_text().split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith(">>> ") and not lines[i - 1].strip()]
    for start in starts:
        stop = next(i for i in range(start, len(lines)) if not lines[i].strip())
        found = ["\n".join(run) if code else " ".join(run) for code, run in parts(lines[start:stop])]
        kind, _, text = found[1].partition(": ") if len(found) > 1 else ("", "", "")
        yield Row(start + 1, found[0], kind, text, "\n".join(found[2:]))


def missing(topic: str) -> str:
    """The library that the rows of this file need and that is not installed, or nothing."""
    first = (HERE / f"{topic}.txt").read_text().split("\n", 1)[0]
    name = first.removeprefix("needs: ") if first.startswith("needs: ") else ""
    return name if name and importlib.util.find_spec(name) is None else ""


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """A block in which a library is not installed."""
    hidden = {key: sys.modules.pop(key) for key in list(sys.modules) if key == name or key.startswith(f"{name}.")}
    sys.modules[name] = None  # type: ignore[assignment]
    for found in (scipy_special, dtypes.bfloat16_dtype):  # before
        found.cache_clear()
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(hidden)


def given() -> dict[str, Any]:
    """The names that rows start with."""

    def leaf(values: Any) -> Any:
        return ad.tensor(values, dtype=ad.float64).require_grad()

    return {
        "__name__": "row",
        "ad": ad,
        "np": np,
        "x": leaf([1.0, 2.0, 3.0]),
        "y": leaf([4.0, 5.0]),
        "s": leaf(2.0),
        "A": leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "S": leaf([[2.0, 1.0], [1.0, 3.0]]),
        "n": ad.tensor([1, 2, 3]),
        "z": ad.tensor([1.0 + 1.0j, 2.0]),
        "v": np.array([1.0, 2.0, 3.0]),
        "image": ad.ones((1, 1, 4, 4)),
        "f": lambda x: (x * x).sum(),
        "without": without,
    }


def met(row: Row) -> BaseException | None:
    """The error that a row's code ends with."""
    names = given()
    jax = sys.modules.get("jax")  # which another test may have set to have 64 bits
    plain = contextlib.nullcontext() if jax is None else jax.enable_x64(False)
    with plain, warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        names["folder"] = Path(folder)
        warnings.simplefilter("ignore")
        try:
            exec(compile(row.code, "<row>", "exec"), names)
        except Exception as error:
            if row.way_out:
                exec(compile(row.way_out, "<way out>", "exec"), names)
            return error
    return None


def says(row: Row, error: BaseException) -> bool:
    pattern = ".*".join(re.escape(part) for part in row.text.split("..."))
    return type(error).__name__ == row.kind and bool(re.fullmatch(pattern, " ".join(str(error).split()), re.DOTALL))


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    """Errors know meanwhile the line of this package that made them, as `made_at`."""
    kinds = [errors.AdjointError, errors.OutOfMemoryError]  # the second has MemoryError's before the first's
    for kind in kinds:
        kind.__init__ = _initializer(kind)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for kind in kinds:
            del kind.__init__


def _initializer(kind: type[Exception]) -> Any:
    def init(self: Any, *args: Any, **options: Any) -> None:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == errors.__file__ and frame.f_back is not None:
            frame = frame.f_back
        self.made_at = (frame.f_code.co_filename, frame.f_lineno)
        super(kind, self).__init__(*args, **options)

    return init


def lines_of(error: BaseException) -> Iterator[tuple[str, int]]:
    """The lines of this package that made this error, and one whose text it repeats."""
    text = str(error)
    chain: list[BaseException | None] = [None]
    ahead = [error]
    while ahead:
        found = ahead.pop()
        if found in chain or str(found) not in text:
            continue
        chain.append(found)
        if hasattr(found, "made_at"):
            yield found.made_at
        ahead += [other for other in (found.__cause__, found.__context__) if other is not None]
