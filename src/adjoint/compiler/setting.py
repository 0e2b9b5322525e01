"""The environment variable `ADJOINT_COMPILE`."""

from __future__ import annotations

import os

from adjoint import errors


def setting() -> str:
    """What it says: "0" for functions as they are, "replay" for no machine code, "1" as where it is not set.

    Raises ArgumentError if it says anything else.
    """
    found = os.environ.get("ADJOINT_COMPILE") or "1"
    if found not in ("0", "1", "replay"):
        raise errors.ArgumentError(
            "the environment variable ADJOINT_COMPILE: '0' runs functions as they are, 'replay' makes no machine code, "
            f"'1' makes it, received {errors.shown(found)}"
        )
    return found
