"""Machine code of earlier processes, in files.

A file is named after all that its machine code depends on, and begins with a sum of what is in it: what is cut off,
damaged or not ours is not loaded, and replaced. It is written beside its place and moved there, so that another
process finds all of it or nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_KEPT = 4096  # files
_A_DAY = 86_400  # seconds
_BEGIN = b"adjoint 1\n"
_NAME = re.compile(r"[0-9a-f]{64}")
_LEFT = re.compile(r"\.[0-9a-f]{64}\.\w+")  # the name of one while it is written


def folder() -> Path | None:
    """Where files are: `ADJOINT_CACHE`, which may be 0 for nowhere, else in the user's folder for such.

    None also where somebody else could write into it: what is read there runs.
    """
    given = os.environ.get("ADJOINT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if given is not None:
            where = Path(given).expanduser() if given not in ("", "0") else None
        else:
            where = (Path(base) if base else Path.home() / ".cache") / "adjoint"
    except RuntimeError:  # a user without a home
        return None
    return where if where is None or _is_own(where) else None


def _is_own(where: Path) -> bool:
    """Whether a folder is the user's own, or nobody's yet."""
    try:
        found = where.stat()
    except OSError:
        return True
    own: Callable[[], int] | None = getattr(os, "geteuid", None)  # Windows has other means
    return own is None or (found.st_uid in (own(), 0) and not found.st_mode & stat.S_IWOTH)


def load(key: str) -> bytes | None:
    """What was stored under this key, if it is there and whole."""
    where = folder()
    if where is None:
        return None
    try:
        found = (where / key).read_bytes()
    except OSError:
        return None
    start = len(_BEGIN) + 32
    content = found[start:]
    return content if found[:start] == _BEGIN + hashlib.sha256(content).digest() else None


def store(key: str, content: bytes) -> None:
    """Keep this for later processes; where nothing can be written, nothing is kept."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=where, prefix=f".{key}.")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(_BEGIN + hashlib.sha256(content).digest() + content)
            os.replace(name, where / key)
        except BaseException:
            os.unlink(name)
            raise
        _bound(where)


def _bound(where: Path) -> None:
    """Remove the older half where there are too many, and what a process that was killed has left.

    The folder may have files of the user's as well, which stay.
    """
    files = []
    for path in where.iterdir():
        if _NAME.fullmatch(path.name):
            files.append(path)
        elif _LEFT.fullmatch(path.name) and path.stat().st_mtime < time.time() - _A_DAY:
            path.unlink(missing_ok=True)
    if len(files) > _KEPT:
        for old in sorted(files, key=lambda p: p.stat().st_mtime)[: len(files) // 2]:
            old.unlink(missing_ok=True)
