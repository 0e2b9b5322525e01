"""The primitive that CONTRIBUTING.md adds as an example: a copy with its changes passes its tests."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import processes
import pytest

import adjoint as ad

ROOT = Path(__file__).resolve().parent.parent
VALUES = """
import adjoint as ad
x, y = ad.tensor([3.0, 1.0, 2.0, ad.inf, ad.nan]), ad.tensor([1.0, 3.0, 2.0, ad.inf, 1.0])
assert ad.equal(ad.fdim(x, y)[:4], ad.tensor([2.0, 0.0, 0.0, 0.0])).all(), ad.fdim(x, y)
assert ad.isnan(ad.fdim(x, y)[4]) and ad.isnan(ad.fdim(y, x)[4])
assert ad.grad(lambda x, y: ad.fdim(x, y).sum(), argnums=(0, 1))(x[:4], y[:4])[1].tolist() == [-1.0, 0.0, 0.0, 0.0]
assert ad.fdim(ad.tensor([3, 1]), True).dtype is ad.int64
try:
    ad.fdim(x, 1j)
except ad.errors.DtypeError as error:
    assert str(error).startswith("fdim: expected real numbers, received complex64"), error
"""


def changes(text: str) -> list[tuple[str, str, str]]:
    """The file, the old text and the new one of each diff; the file is the last one named before it."""
    found = []
    for block in re.finditer(r"```diff\n(.*?)```", text, re.DOTALL):
        lines = block[1].splitlines(keepends=True)
        old, new = ("".join([line[1:] for line in lines if line[0] in kept]) for kept in (" -", " +"))
        found.append((re.findall(r"`((?:src|tests)/[\w/]+\.py)`", text[: block.start()])[-1], old, new))
    return found


@pytest.mark.slow
def test_the_worked_example(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for name in ("src", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    assert not hasattr(ad, "fdim")
    steps = changes(page[page.index("## Add a primitive") : page.index("## Add an array library")])
    assert len(steps) >= 5
    for path, old, new in steps:
        source = (tmp_path / path).read_text()
        assert source.count(old) == 1, f"{path} has {old!r} {source.count(old)} times"
        (tmp_path / path).write_text(source.replace(old, new))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    files = "derivatives function_derivatives leaf_backends sparse".split()
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "fdim",
             *[f"tests/test_{name}.py" for name in files]]  # fmt: skip
    for command in ([sys.executable, "-c", VALUES], tests):
        done = processes.run(command, check=False, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 10


def test_changes_are_read_as_they_stand() -> None:
    text = "of `src/a.py` and `tests/b.py`:\n```diff\n-old\n+new\n same\n```\nin `src/c.py`\n```diff\n+x\n\n y\n```\n"
    with pytest.raises(IndexError):
        changes("```diff\n+x\n```")
    assert changes(text.replace("\n\n y", "\n y")) == [
        ("tests/b.py", "old\nsame\n", "new\nsame\n"), ("src/c.py", "y\n", "x\ny\n"),
    ]  # fmt: skip
