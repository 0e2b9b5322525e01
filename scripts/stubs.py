"""Write `src/adjoint/__init__.pyi`: what type checkers and editors read of the public names, from their table."""

from pathlib import Path

import adjoint

FILE = Path(__file__).resolve().parent.parent / "src/adjoint/__init__.pyi"


def stub() -> str:
    """The text of the file: every name, imported from its module."""
    lines = ["# Written by scripts/stubs.py from the table in __init__.py.", ""]
    for module, names in adjoint._TABLE.items():
        module = f"adjoint.{module}".rstrip(".")
        lines += [f"from {module} import {name} as {name}" for name in names.split()]
    return "\n".join([*lines, "", "__all__: list[str]", ""])


if __name__ == "__main__":
    FILE.write_text(stub())
