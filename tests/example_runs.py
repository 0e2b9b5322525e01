"""Small runs of examples: a seed gives the same numbers and picture in any process, another one gives others."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import processes
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CHILD = """
import sys, {name} as example
vars(example).update({{name: eval(code, vars(example)) for name, code in {smaller}.items()}})
example.main(sys.argv[1:])
"""


def seed_decides(module: ModuleType, arguments: list[str], smaller: Mapping[str, str], folder: Path) -> None:
    """Compare a run here with one of a process of its own, and with one of another seed.

    `smaller` has code of other values of the module's constants, for examples that have no option for it.
    """

    def here(seed: str) -> tuple[str, bytes]:
        (place := folder / f"here{seed}").mkdir()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
            patch.chdir(place)
            for name, value in {name: eval(code, vars(module)) for name, code in smaller.items()}.items():
                patch.setattr(module, name, value)
            module.main([*arguments, "--seed", seed])
        return out.getvalue(), _only_picture(module, place)

    def there(seed: str) -> tuple[str, bytes]:
        (place := folder / f"there{seed}").mkdir()
        path = os.pathsep.join([str(EXAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])])
        code = CHILD.format(name=module.__name__, smaller=dict(smaller))
        command = [sys.executable, "-c", code, *arguments, "--seed", seed]
        done = processes.run(command, cwd=place, env={**os.environ, "PYTHONPATH": path})
        return done.stdout, _only_picture(module, place)

    said, picture = there("3")
    assert re.search(r"\d", said)
    assert here("3") == (said, picture)
    other, another = here("4")
    assert other != said
    assert another != picture


def _only_picture(module: ModuleType, place: Path) -> bytes:
    """The picture, which is the only file that a run leaves."""
    assert [path.name for path in place.iterdir()] == [f"{module.__name__}.png"]
    found = (place / f"{module.__name__}.png").read_bytes()
    assert found.startswith(b"\x89PNG")
    return found
