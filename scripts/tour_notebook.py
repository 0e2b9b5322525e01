"""Write docs/tour.ipynb: examples/tour.py as a notebook, executed."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import tour  # noqa: E402 (an example, not a package)

NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def code(stop: Callable[[], Any]) -> str:
    """The body of a stop as a cell: statements, and what it returns as the last line."""
    body = inspect.getsource(stop).split('"""')[2]
    statements, _, result = textwrap.dedent(body).strip().rpartition("return ")
    return statements + result


def cells() -> list[tuple[str, str]]:
    """The kind and the text of every cell."""
    found = [
        ("markdown", f"# {inspect.getdoc(tour)}\n\nMade from `examples/tour.py` by `scripts/tour_notebook.py`."),
        ("code", "import adjoint as ad"),
    ]
    for stop in tour.STOPS:
        title, _, rest = (inspect.getdoc(stop) or "").partition("\n\n")
        found += [("markdown", f"## {title}\n\n{rest}".strip()), ("code", code(stop))]
    return found


def main() -> None:
    import nbformat
    from nbclient import NotebookClient

    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    notebook = nbformat.v4.new_notebook(
        cells=[make[kind](text, id=f"cell-{i}") for i, (kind, text) in enumerate(cells())],
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    )
    NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False).execute()
    nbformat.write(notebook, NOTEBOOK)
    print(f"wrote {NOTEBOOK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
