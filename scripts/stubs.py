"""Write what type checkers and editors read of names that tables make.

These are the public names, in `src/adjoint/__init__.pyi`, and the modules of functions of `ad.nn`.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adjoint
from adjoint.nn.modules import functions

SOURCES = Path(__file__).resolve().parent.parent / "src/adjoint"
KINDS = ("bool", "bool | None", "complex", "float", "int", "int | None", "str")  # of settings; others are Any


def public() -> Iterator[str]:
    """Every public name, imported from its module."""
    yield "# Written by scripts/stubs.py from the table in __init__.py.\n"
    for module, names in adjoint._TABLE.items():
        module = f"adjoint.{module}".rstrip(".")
        for name in names.split():
            yield f"from {module} import {name} as {name}"
    yield "\n__all__: list[str]"


def modules() -> Iterator[str]:
    """The modules of functions: classes whose fields are the functions' settings."""
    yield "# Written by scripts/stubs.py from the classes in functions.py.\n"
    yield "from typing import Any\n\nfrom adjoint.module.base import Module\nfrom adjoint.tensor import Tensor"
    for name, made in vars(functions).items():
        if inspect.isclass(made) and made.__module__ == functions.__name__:
            yield f"\nclass {name}(Module):"
            yield from methods(made)


def methods(made: Any) -> Iterator[str]:
    """Its fields, with their types and whether they have a default, and its call."""
    f = made.__call__.__wrapped__
    noted = inspect.signature(f).parameters
    for name, setting in inspect.signature(made).parameters.items():
        kind = noted[name].annotation
        default = "" if setting.default is setting.empty else " = ..."
        yield f"    {name}: {kind if kind in KINDS else 'Any'}{default}"
    result = "Tensor[Any]" if f.__annotations__["return"] == "Tensor[B]" else "Any"
    yield f"    def __call__(self, *operands: Any, key: int | None = None) -> {result}: ..."


FILES = {SOURCES / "__init__.pyi": public, SOURCES / "nn/modules/functions.pyi": modules}


def stub(path: Path) -> str:
    """The text of a file."""
    return "\n".join([*FILES[path](), ""])


if __name__ == "__main__":
    for path in FILES:
        path.write_text(stub(path))
