"""The calls that an `ad.Profiled` backend has counted, as a flame graph and on a time line.

B. Gregg, The flame graph, Communications of the ACM 59 (2016): what is wide takes long, and what is called stands on
its caller.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from adjoint.decorators.observed import Call, Profiled
from adjoint.markup import table
from adjoint.pictures import pages
from adjoint.pictures.svg import TEXT, file_of, size_of

_WIDTH, _ROW = 1000.0, 19.0
_LEAST = 0.4  # points: what is narrower is not drawn
_COLOURS = {"forward": "#9cc4f2", "backward": "#f6b98a", "": "#d8dde4"}  # of primitives in either phase, and of callers


class Frame:
    """What is called from one place: its whole time in nanoseconds, its calls, and what it calls in turn."""

    bytes: int
    calls: int
    flops: int
    name: str
    phase: str
    time: int

    def __init__(self, name: str, phase: str = "") -> None:
        self.name, self.phase = name, phase
        self.time = self.calls = self.bytes = self.flops = 0
        self.inside: dict[str, Frame] = {}

    def add(self, call: Call) -> None:
        self.time += call.time
        self.calls += 1
        self.bytes += call.bytes
        self.flops += call.flops

    def child(self, name: str, phase: str = "") -> Frame:
        return self.inside.setdefault(name, Frame(name, phase))

    def said(self, whole: int) -> str:
        """All that is known of it, in a line."""
        share = f"{self.time / max(whole, 1):.1%}"
        return (
            f"{self.name}: {_duration(self.time)} ({share}), {self.calls:,} call{'' if self.calls == 1 else 's'}, "
            f"{size_of(self.bytes)}" + (f", {self.flops / self.time:.2f} GFLOP/s" if self.flops and self.time else "")
        )


def of_profile(profiled: Profiled[Any]) -> tuple[str, str, int]:
    """The page of the last calls, its flame graph as a picture, and how many calls there are."""
    calls = profiled.calls()
    top = tree(calls)
    drawn = _flame(top)
    rows = [
        (row.primitive, row.phase, f"{row.calls:,}", f"{row.seconds * 1e3:.3f}", size_of(row.bytes))
        for row in profiled.profile().rows
    ]
    counted = table(("primitive", "phase", "calls", "ms", "bytes"), rows)
    body = pages.source("times.html").replace("<!--flame-->", drawn).replace("<!--table-->", counted)
    body = body.replace("<!--about-->", f"{len(calls):,} calls, {_duration(top.time)} in {html.escape(profiled.name)}")
    start = min((call.start for call in calls), default=0)
    threads = {thread: k for k, thread in enumerate(dict.fromkeys(call.thread for call in calls))}
    data = {
        "colours": _COLOURS,
        "threads": list(threads),
        "calls": [
            [call.primitive, call.phase, call.start - start, call.time, threads[call.thread], _operands(call)]
            for call in calls
        ],
    }
    return pages.page("Profile", body, "times.js", data), drawn, len(calls)


def tree(calls: list[Call]) -> Frame:
    """The calls by where they come from: the lines of the user's stack, or else the phase; then the primitive."""
    top = Frame("all")
    for call in calls:
        frame = top
        frame.add(call)
        for code, line in call.stack:
            frame = frame.child(f"{code.co_name} ({file_of(code.co_filename)}:{line})")
            frame.add(call)
        if not call.stack:
            frame = frame.child(call.phase, call.phase)
            frame.add(call)
        frame = frame.child(call.primitive + (" in backward" if call.phase == "backward" else ""), call.phase)
        frame.add(call)
        frame.child(_operands(call), call.phase).add(call)
    return top


def _operands(call: Call) -> str:
    """The shapes of what went in and came out."""
    *given, last = [f"{x.dtype.name}{list(x.shape)}" for x in call.specs]
    return f"{', '.join(given)} → {last}"


def _duration(nanoseconds: int) -> str:
    for unit, one in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= one:
            return f"{nanoseconds / one:.3g} {unit}"
    return f"{nanoseconds / 1e3:.3g} µs"


# --- the flame graph ---------------------------------------------------------------------------------


def _flame(top: Frame) -> str:
    placed = list(_placed(top, 0.0, 0, _WIDTH / top.time)) if top.time else [(top, 0.0, _WIDTH, 0)]
    height = (max(depth for *_, depth in placed) + 1) * _ROW
    head = f'class="flame" viewBox="0 0 {_WIDTH:g} {height:g}" width="100%" role="img" aria-label="flame graph" {TEXT}'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {head}>']
    for frame, x, width, depth in placed:
        y = height - (depth + 1) * _ROW  # flames go up
        fits = int((width - 6) / 6.3)
        text = frame.name if len(frame.name) <= fits else frame.name[: fits - 1] + "…" if fits > 2 else ""
        whole, said = html.escape(frame.name), html.escape(frame.said(top.time))
        place = f'x="{x:.2f}" y="{y:g}" width="{max(width - 0.5, 0.3):.2f}" height="{_ROW - 1:g}"'
        parts.append(
            f'<g class="bar" data-x="{x:.2f}" data-w="{width:.2f}" data-name="{whole}"><title>{said}</title>'
            f'<rect {place} rx="2" fill="{_COLOURS[frame.phase]}"/>'
            f'<text x="{x + 3:.2f}" y="{y + 13:g}">{html.escape(text)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _placed(frame: Frame, x: float, depth: int, scale: float) -> Iterator[tuple[Frame, float, float, int]]:
    """Frames with their places; those that take longest stand first."""
    yield frame, x, frame.time * scale, depth
    for child in sorted(frame.inside.values(), key=lambda child: -child.time):
        if child.time * scale < _LEAST:
            break
        yield from _placed(child, x, depth + 1, scale)
        x += child.time * scale
