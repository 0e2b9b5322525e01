"""`python -m adjoint.torch script.py`: a program written for PyTorch, with this face in its place.

For that one program `import torch`, and what is in it, gives the face: nothing else ever does that.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

USAGE = """usage: python -m adjoint.torch script.py [arguments]
       python -m adjoint.torch -m module [arguments]
       python -m adjoint.torch -c program [arguments]
       python -m adjoint.torch - [arguments], of a program that is read from the input"""


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and its modules as the face's, and `safetensors.torch`."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname == "safetensors.torch":
            return importlib.machinery.ModuleSpec(fullname, self)
        if fullname.partition(".")[0] != "torch" or importlib.util.find_spec(f"adjoint.{fullname}") is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        name = "torch.safetensors" if module.__name__ == "safetensors.torch" else module.__name__
        sys.modules[module.__name__] = importlib.import_module(f"adjoint.{name}")
        for known in [m for m in sys.modules if m.startswith("adjoint.torch.")]:
            # a module that is there already is not set on its package again, where a function may have its name
            sys.modules.setdefault(known.removeprefix("adjoint."), sys.modules[known])


def main(arguments: Sequence[str]) -> None:
    """Run a script, with -m a module, with -c or - a text, whose PyTorch is the face."""
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] in ("-m", "-c") and len(arguments) < 2):
        print(USAGE)
        raise SystemExit(0 if arguments and arguments[0] in ("-h", "--help") else 2)
    if arguments[0] not in ("-m", "-c", "-") and not Path(arguments[0]).exists():
        print(f"python -m adjoint.torch: there is no file {arguments[0]!r}", file=sys.stderr)
        raise SystemExit(2)
    sys.meta_path.insert(0, _Alias())
    if importlib.util.find_spec("einops") is not None:
        importlib.import_module("adjoint.torch.einops")  # before einops looks for PyTorch
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] in ("-c", "-"):
        program, rest = (arguments[1], arguments[2:]) if arguments[0] == "-c" else (sys.stdin.read(), arguments[1:])
        sys.argv = [arguments[0], *rest]
        sys.path.insert(0, "")
        sys.modules["__main__"] = made = ModuleType("__main__")
        exec(compile(program, "<string>" if arguments[0] == "-c" else "<stdin>", "exec"), vars(made))
    else:
        sys.argv = list(arguments)
        sys.path[0:1] = [str(Path(arguments[0]).resolve().parent)]
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
