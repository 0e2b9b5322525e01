"""Lines of the user's source, for errors that come later than what caused them."""

from __future__ import annotations

import linecache
import os
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


class Line:
    """The innermost line on the stack that is not of this package: the user's."""

    __slots__ = ("file", "line")

    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        self.file, self.line = frame.f_code.co_filename, frame.f_lineno

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {text}" if text else "")
