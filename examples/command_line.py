"""What the command lines of the examples share: options in one line of error, pictures, Ctrl-C."""

from __future__ import annotations

import argparse
import io
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Of an example: its docstring says what it does. Says in one line what is wrong."""

    def __init__(self, program: str, doc: str) -> None:
        super().__init__(prog=program, description=doc.split("\n\n", 1)[1], allow_abbrev=False)

    def add_seed(self, of_what: str) -> None:
        self.add_argument("--seed", type=at_least(0), default=0, help=f"of {of_what} (0)")

    def add_out(self) -> None:
        name = Path(self.prog).with_suffix(".png").name
        self.add_argument("--out", type=picture, default=name, help=f"the picture to write ({name})")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def at_least(least: int) -> Any:
    def integer(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, received {text!r}")
        return int(text)

    return integer


def picture(text: str) -> Path:
    """A path that a picture can be written to; tried now, before anything is computed."""
    path = Path(text)
    if path.suffix.lower() not in (".png", ".pdf", ".svg", ".jpg"):
        raise argparse.ArgumentTypeError(f"{text!r} should end in .png, .pdf, .svg or .jpg")
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error.strerror}") from None
    if not existed:
        path.unlink()
    return path


def progress(steps: int, what: str) -> Iterator[int]:
    """The numbers below `steps`, under a live bar of what is being done; it is full where the loop ends early."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=steps)
        try:
            for i in range(steps):
                yield i
                bar.advance(task)
        finally:
            bar.update(task, completed=steps)


def check(what: str, error: float, bound: float) -> None:
    """Say how far a result is from an independent one, and end the program if that is too far."""
    said = f"{what}: differs by {error:.1e}, allowed {bound:.0e}"
    if not error <= bound:  # nan is too far
        raise SystemExit(f"wrong: {said}")
    print(f"checked: {said}")


def save(figure: Any, path: Path) -> None:
    """Drawn in memory, so that an interruption leaves no half of a file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=110)
    path.write_bytes(drawn.getvalue())
    print(f"picture: {path}")


class Stop:
    """Whether Ctrl-C was pressed: the last of `presses` interrupts what is being done, others only ask to stop."""

    def __init__(self, program: str, presses: int = 1) -> None:
        self.program, self.left = program, presses
        self.asked = False
        self._before = signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: Any) -> None:
        self.asked = True
        self.left -= 1
        if self.left <= 0:
            raise KeyboardInterrupt

    def __enter__(self) -> Stop:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: Any, trace: TracebackType | None) -> None:
        if self.left <= 0 and kind:  # of any kind: an interrupted import makes its own of a KeyboardInterrupt
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            traceback.clear_frames(trace)  # which takes down a live bar
            print(f"{self.program}: interrupted; no picture was written", file=sys.stderr)
            sys.exit(130)  # as shells say it: 128 and the number of the signal
        signal.signal(signal.SIGINT, self._before)
