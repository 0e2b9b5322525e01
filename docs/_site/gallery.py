"""The gallery of the site: a page per example with its text, its picture, what it prints, and its code.

Examples run in the build, two at a time. What came out is kept under `build/docs/gallery` until an example or the
package changes; tests of what examples print read it there, too, so that none runs twice.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "build" / "docs" / "gallery"

GROUPS = {
    "Statistics": "lynx_hare hmc gaussian_process newton logistic diabetes",
    "Physics and control": "three_bodies swing_up heat neural_ode beam wave_inversion thin_film",
    "Finance and images": "greeks deblur circles style hologram",
    "Equations and series": "ignition equilibrium taylor_orbit",
    "Networks": "digits airline characters autoencoder low_rank karate",
    "How sure is it?": "breast_cancer ensemble",
    "Large and fast": "data_parallel loop",
}
NOT_RUN = ("command_line", "tour", "out_of_core")  # a helper; the notebook; one that needs gigabytes and minutes


class Ran(NamedTuple):
    """What a run of an example left: what it printed, how long it took, of what source it is."""

    printed: str
    seconds: float
    key: str


def _key(name: str) -> str:
    files = [ROOT / "examples" / f"{name}.py", ROOT / "examples" / "command_line.py"]
    text = b"".join([path.read_bytes() for path in [*files, *sorted((ROOT / "src").rglob("*.py"))]])
    return hashlib.sha256(text).hexdigest()


def run(name: str) -> Ran:
    """Run an example as it is, unless that was done of the same source; its picture is `KEPT / f"{name}.png"`."""
    record, picture, key = KEPT / f"{name}.json", KEPT / f"{name}.png", _key(name)
    if record.exists() and picture.exists() and (found := Ran(**json.loads(record.read_text()))).key == key:
        return found
    KEPT.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "ADJOINT_EAGER": "0"}
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:  # another process may run it, too
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
        ran = Ran(done.stdout, time.perf_counter() - begin, key)
        left = sorted(os.listdir(folder))
        if done.returncode != 0 or left != [picture.name]:
            raise RuntimeError(f"examples/{name}.py left {left}, and said:\n{done.stderr}")
        noted = Path(folder, record.name)
        noted.write_text(json.dumps(ran._asdict()))
        Path(folder, picture.name).replace(picture)
        noted.replace(record)
    return ran


def _page(name: str, ran: Ran | None) -> str:
    title, _, text = (ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text())) or "").partition(
        "\n\n"
    )
    lines = [f"# {title.rstrip('.')}", "", text, ""]
    if ran is not None:
        lines += [f"```{{image}} {name}.png", f":alt: what examples/{name}.py draws", "```", ""]
        lines += [
            f"It prints, after {ran.seconds:.0f} seconds where this page was built:",
            "",
            "```text",
            ran.printed.rstrip(),
            "```",
            "",
        ]
    lines += [
        f"## The code: examples/{name}.py",
        "",
        f"```{{literalinclude}} ../../examples/{name}.py",
        ":language: python",
    ]
    return "\n".join([*lines, "```", ""])


def _card(name: str, ran: Ran | None) -> Iterator[str]:
    title = (ROOT / "examples" / f"{name}.py").read_text().removeprefix('"""').partition("\n")[0].rstrip('".')
    yield f":::{{grid-item-card}} {title}"
    yield from (f":link: {name}", ":link-type: doc")
    if ran is not None:
        yield from (f":img-bottom: {name}.png", f":img-alt: what examples/{name}.py draws")
    yield from (":::", "")


def write(folder: Path, *, execute: bool) -> None:
    """Write the pages; with `execute`, run the examples and show what they draw and print."""
    folder.mkdir(exist_ok=True)
    names = " ".join(GROUPS.values()).split()
    ran: dict[str, Ran | None] = dict.fromkeys(names)
    if execute:
        with ThreadPoolExecutor(2) as pool:
            ran = dict(zip(names, pool.map(run, names), strict=True))
    index = [
        "# Gallery",
        "",
        "Each example is one file and one command. The pictures are what it draws.",
        "",
    ]
    for group, members in GROUPS.items():
        index += [f"## {group}", "", "::::{grid} 1 1 2 2", ":gutter: 3", ""]
        index += [line for name in members.split() for line in _card(name, ran[name])] + ["::::", ""]
    index += ["```{toctree}", ":hidden:", "", *names, "```", ""]
    texts = {"index": "\n".join(index), **{name: _page(name, ran[name]) for name in names}}
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        if execute and name in names:
            shutil.copyfile(KEPT / f"{name}.png", folder / f"{name}.png")
