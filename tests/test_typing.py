"""What static types promise: mypy and pyright accept and refuse the same lines of tests/typing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import sys
from pathlib import Path

import processes
import pytest

FOLDER = Path(__file__).parent / "typing"
FILES = sorted(FOLDER.glob("*.py"))
PROGRAMS = [path for path in FILES if path.stem not in ("accepted", "refused")]  # which run, too
Lines = dict[str, set[int]]


def marked() -> Lines:
    """The lines that say `# refused`, by file."""
    return {
        path.name: {n for n, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# refused")}
        for path in FILES
    }


def run(tool: str, *arguments: str) -> str:
    """What a type checker prints about the files; it must be installed in CI."""
    if importlib.util.find_spec(tool) is None:
        assert not os.environ.get("CI"), f"{tool} must be installed in CI: pip install 'adjoint[lint]'"
        pytest.skip(f"needs {tool}: pip install 'adjoint[lint]'")
    command = [sys.executable, "-m", tool, *arguments, *map(str, FILES)]
    return processes.run(command, check=False, cwd=FOLDER).stdout


def test_mypy_refuses_what_is_marked_and_nothing_else() -> None:
    found: Lines = {path.name: set() for path in FILES}
    for line in run("mypy", "--strict", "--no-pretty", "--config-file=").splitlines():
        if error := re.match(r"(.+\.py):(\d+): error: ", line):
            found[Path(error[1]).name].add(int(error[2]))
    assert found == marked()


def test_pyright_refuses_what_is_marked_and_nothing_else() -> None:
    found: Lines = {path.name: set() for path in FILES}
    for entry in json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable))["generalDiagnostics"]:
        if entry["severity"] == "error":
            found[Path(entry["file"]).name].add(entry["range"]["start"]["line"] + 1)
    assert found == marked()


def test_something_is_refused() -> None:
    assert {name for name, lines in marked().items() if lines} == {"refused.py"}
    assert len(marked()["refused.py"]) > 15


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem not in ("accepted", "refused")], ids=lambda path: path.stem
)
def test_programs_of_users_run(path: Path) -> None:
    if path.stem == "minima":
        pytest.importorskip("scipy")
        pytest.importorskip("pandas")
    runpy.run_path(str(path))
