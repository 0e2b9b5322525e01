"""One view of a graph as SVG: its boxes and groups, and arrows from what is read to what reads it."""

from __future__ import annotations

import dataclasses
import html
import math
import os
from collections.abc import Callable, Sequence

from adjoint.pictures.boxes import Box
from adjoint.pictures.folding import Group, Part
from adjoint.pictures.layout import Layout, Point, layout

_WIDE = 6.3  # points that a character takes
TEXT = 'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="10.5" fill="#1a1d21"'
_LONGEST = 34  # characters of a line of text
_PORTS = 24  # boxes outside of a view that are drawn one by one
_EDGE = 8.0
_PALE, _FULL = (255, 247, 214), (242, 140, 56)  # of the smallest and the largest
_KINDS = {
    "leaf": "#c9ecd0",
    "node": "#dbe9fb",
    "cut": "#ffffff",
    "input": "#c9ecd0",
    "backward": "#ffe3c2",
    "group": "#eceef2",
}


@dataclasses.dataclass
class View:
    """A group that is opened: its picture, and which other views its groups lead to."""

    number: int
    svg: str
    inside: list[int]


class Colours:
    """The colours of boxes: by the size of gradients and by the bytes kept, on logarithmic scales, and by kind.

    A picture shows the first of these that it has, as a compiled function has neither gradients nor bytes.
    """

    def __init__(self, boxes: Sequence[Box]) -> None:
        sizes = [b.size for b in boxes if b.size is not None and 0 < b.size < math.inf]
        # a gradient that is as good as zero beside the largest must not take the colours from all others
        self.sizes: tuple[float, float] | None = (max(min(sizes), 1e-12 * max(sizes)), max(sizes)) if sizes else None
        kept = [b.bytes for b in boxes if b.bytes]
        self.kept: tuple[int, int] | None = (min(kept), max(kept)) if kept else None
        gradient = ["gradient"] if any(b.size is not None for b in boxes) else []
        self.names: list[str] = [*gradient, *(["bytes"] if kept else []), "kind"]

    def of(self, boxes: Sequence[Box]) -> dict[str, str]:
        """Of a box, or of a group's boxes: that of the largest gradient, of all bytes, and of the kind."""
        kind = boxes[0].kind if len(boxes) == 1 else "group"
        sizes = [b.size for b in boxes if b.size is not None]
        bad = any(not math.isfinite(size) for size in sizes)
        found = {
            "gradient": "#f3a6e8" if bad else _scaled(max(sizes), self.sizes) if sizes else "#ffffff",
            "bytes": _scaled(sum(b.bytes for b in boxes), self.kept),
            "kind": _KINDS[kind],
        }
        return {name: found[name] for name in self.names}


def _scaled(value: float, limits: tuple[float, float] | None) -> str:
    if limits is None or value <= 0:
        return "#ffffff"
    low, high = map(math.log, limits)
    part = 1.0 if high == low else min(1.0, max(0.0, (math.log(value) - low) / (high - low)))
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(_PALE, _FULL, strict=True))


# --- what is in a view -----------------------------------------------------------------------------


class Pictures:
    """Draws views of one graph; views that are alike are laid out once."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self.boxes = boxes
        self.colours: Colours = Colours(boxes)
        self.readers: list[list[int]] = [[] for _ in boxes]
        for box in boxes:
            for parent in box.parents:
                self.readers[parent].append(box.number)
        self._layouts: dict[tuple[tuple[Point, ...], tuple[tuple[int, int], ...]], Layout] = {}

    def of(self, part: Part) -> Sequence[Box]:
        """The boxes of a part."""
        return [part] if isinstance(part, Box) else self.boxes[part.first : part.last]

    def view(self, group: Group) -> View:
        """The picture of an open group, with the boxes around it that it reads and that read it."""
        place = {box.number: k for k, part in enumerate(group.parts) for box in self.of(part)}
        inside: dict[tuple[int, int], None] = {}
        read: dict[int, list[int]] = {}  # what stands outside, and the parts that read it
        given: dict[int, list[int]] = {}
        for number, k in place.items():
            for parent in self.boxes[number].parents:
                if parent not in place:
                    read.setdefault(parent, []).append(k)
                elif place[parent] != k:
                    inside[place[parent], k] = None
            for reader in self.readers[number]:
                if reader not in place:
                    given.setdefault(reader, []).append(k)
        cards = [self._card(part) for part in group.parts]
        arrows = list(inside)
        for ends, above in ((read, True), (given, False)):
            ports: list[tuple[str, int | None, list[int]]] = [
                (self._short(other), other, where) for other, where in ends.items()
            ]
            if len(ports) > _PORTS:
                ports = [(f"{len(ends)} others", None, [k for where in ends.values() for k in where])]
            for name, outside, where in ports:
                port = len(cards)
                cards.append(_port(name, outside))
                arrows += [(port, k) if above else (k, port) for k in dict.fromkeys(where)]
        sizes, wanted = tuple(card.size for card in cards), tuple(arrows)
        key = sizes, wanted
        if key not in self._layouts:
            self._layouts[key] = layout(sizes, wanted)
        numbers = [part.number for part in group.parts if isinstance(part, Group)]
        return View(group.number, _svg(cards, self._layouts[key]), numbers)

    def _short(self, number: int) -> str:
        box = self.boxes[number]
        return box.label or box.name

    def _card(self, part: Part) -> Card:
        colours = self.colours.of(self.of(part))
        if isinstance(part, Box):
            title = part.label or part.name
            facts = "cut" if part.kind == "cut" else " x ".join(map(str, part.shape)) or "number"
            kept = f" · {size_of(part.bytes)}" if part.bytes else ""
            return Card(part.kind, [title, facts + kept], colours, part.number, None)
        boxes = self.of(part)
        whole = sum(box.bytes for box in boxes)
        nodes = f"{len(boxes)} boxes" + (f" · {size_of(whole)}" if whole else "")
        return Card("group", [name_of(part, boxes), nodes], colours, None, part.number)


def name_of(group: Group, boxes: Sequence[Box]) -> str:
    """What a group is called: the loop or choice that it is, or how often it is repeated, and its lines, or its
    first and last one.
    """
    if group.name:
        return group.name
    lines = sorted({(box.line.file, box.line.line) for box in boxes if box.line is not None})
    if lines:
        first, last = lines[0], lines[-1]
        where = f"{file_of(first[0])}:{first[1]}"
        where += f"-{last[1]}" if last[1] != first[1] and last[0] == first[0] else ""
    else:
        named = [box.name for box in boxes if box.kind != "leaf"] or [boxes[0].name]
        where = named[0] if len(set(named)) == 1 else f"{named[0]} … {named[-1]}"
    return f"{group.times} x {where}" if group.times else where


def file_of(path: str) -> str:
    """A file's name; cells of notebooks are in files of IPython's, whose names say nothing."""
    return "cell" if "ipykernel_" in path else os.path.basename(path)


def size_of(count: int) -> str:
    """Bytes as one reads them."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count} B"


# --- as text ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Card:
    """A rectangle with lines of text; it stands for a box, or leads to a view."""

    kind: str
    texts: list[str]
    colours: dict[str, str]
    box: int | None
    opens: int | None

    @property
    def size(self) -> Point:
        longest = min(_LONGEST, max(map(len, self.texts)))
        return max(64.0, longest * _WIDE + 18), 14.0 * len(self.texts) + 10


def _port(name: str, number: int | None) -> Card:
    return Card("port", [name], {"kind": "none"}, number, None)


def _svg(cards: Sequence[Card], at: Layout) -> str:
    width, height = at.width + 2 * _EDGE, at.height + 2 * _EDGE
    head = f'viewBox="{-_EDGE:g} {-_EDGE:g} {width:g} {height:g}" width="{width:g}" height="{height:g}" {TEXT}'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {head}>']
    for start, *bends in at.curves:
        body = " ".join(f"{x:g} {y:g}" for x, y in bends)
        parts.append(f'<path d="M{start[0]:g} {start[1]:g}C{body}" fill="none" stroke="#8a919c"/>{_tip(*bends[-2:])}')
    parts += [_rectangle(card, centre) for card, centre in zip(cards, at.centres, strict=True)]
    return "".join([*parts, "</svg>"])


def _tip(before: Point, end: Point) -> str:
    dx, dy = end[0] - before[0], end[1] - before[1]
    long = math.hypot(dx, dy) or 1.0
    dx, dy = dx / long, dy / long
    x, y = end[0] - 7 * dx, end[1] - 7 * dy
    corners = [end, (x - 3 * dy, y + 3 * dx), (x + 3 * dy, y - 3 * dx)]
    return f'<path d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in corners)}Z" fill="#8a919c"/>'


def _rectangle(card: Card, centre: Point) -> str:
    width, height = card.size
    x, y = centre[0] - width / 2, centre[1] - height / 2
    shown: Callable[[str], str] = lambda text: text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    corner = 12 if card.kind in ("leaf", "input") else 4
    line = {"cut": "#c02626", "group": "#4b5563", "port": "#b6bcc6"}.get(card.kind, "#7c8694")
    dashes = ' stroke-dasharray="4 3"' if card.kind in ("cut", "port") else ""
    leads = "" if card.opens is None else f' data-opens="{card.opens}"'
    leads += "" if card.box is None else f' data-box="{card.box}"'
    colours = "".join(f' data-{name}="{colour}"' for name, colour in card.colours.items())
    texts = "".join(
        f'<text x="{centre[0]:g}" y="{y + 16 + 14 * k:g}" text-anchor="middle"'
        + (' font-weight="600"' if k == 0 and card.kind != "port" else ' fill="#4b5563"')
        + f">{html.escape(shown(text))}</text>"
        for k, text in enumerate(card.texts)
    )
    said = html.escape(", ".join(card.texts))
    under = ""
    if card.kind == "group":  # a second sheet below: there is more
        place = f'x="{x + 3:g}" y="{y + 3:g}" width="{width:g}" height="{height:g}"'
        under = f'<rect {place} rx="4" fill="#fff" stroke="{line}"/>'
    fill = next(iter(card.colours.values()))
    return (
        f'<g class="card {card.kind}" tabindex="0" role="button" aria-label="{said}"{leads}>{under}'
        f'<rect class="face" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner}" fill="{fill}" '
        f'stroke="{line}"{dashes}{colours}/>{texts}</g>'
    )
