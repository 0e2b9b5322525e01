"""Programs that tests run: each has a limit, and one that hangs is ended, and shows where it was and what it said."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import LIMIT


@contextlib.contextmanager
def started(command: Sequence[str | Path], limit: float = LIMIT, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program that runs meanwhile. At the limit, and with the block, it ends with all that it has started."""
    env = {**(options.pop("env", None) or os.environ), "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(command, env=env, start_new_session=True, **options) as process:
        limits = [
            threading.Timer(limit, process.send_signal, [signal.SIGABRT]),  # which has Python show its stacks
            threading.Timer(limit + 10, _end, [process]),
        ]
        for timer in limits:
            timer.start()
        try:
            yield process
        except BaseException as error:
            if limits[0].finished.is_set():
                error.add_note(f"{process.args} was ended after {limit:g} s")
            raise
        else:
            if limits[0].finished.is_set():
                pytest.fail(f"{process.args} was ended after {limit:g} s")
        finally:
            if process.poll() is None:
                _end(process)
            for timer in limits:
                timer.cancel()
                timer.join(LIMIT)


def run(
    command: Sequence[str | Path], check: bool = True, limit: float = LIMIT, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a program whose output is text; what it said is part of a failure."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started(command, limit, **{**pipes, **options}) as process:
        out, err = process.communicate(timeout=limit + 60)
        done = process.returncode
        if (check and done != 0) or done in (-signal.SIGABRT, -signal.SIGKILL):
            pytest.fail(f"{process.args} ended with {done}; it said\n{out}\nand to stderr\n{err}", pytrace=False)
    return subprocess.CompletedProcess(process.args, done, out, err)


def python(code: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """The same of a program of Python's."""
    return run([sys.executable, "-c", code], check, **options)


def _end(process: subprocess.Popen[Any]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
