"""Tables for notebooks and pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    lines = ["".join([f"<td>{html.escape(cell)}</td>" for cell in row]) for row in rows]
    top = "".join([f"<th>{html.escape(cell)}</th>" for cell in head])
    body = "".join([f"<tr>{line}</tr>" for line in lines])
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def captioned(caption: str, body: str) -> str:
    """One line of facts above what it is about."""
    return f'<div><span style="opacity:.7;font-size:85%">{html.escape(caption)}</span>{body}</div>'


def folded(caption: str, body: str, opened: bool = False) -> str:
    """What a reader may open."""
    return f"<details{' open' if opened else ''}><summary>{html.escape(caption)}</summary>{body}</details>"


def text(words: str) -> str:
    """Text as it is, line by line."""
    return f'<pre style="margin:.2em 0">{html.escape(words)}</pre>'
