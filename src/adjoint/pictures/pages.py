"""Pages that are one file: styles, scripts and data are in them."""

from __future__ import annotations

import functools
import html
import json
from pathlib import Path
from typing import Any

from adjoint.pictures.boxes import Box, Boxes
from adjoint.pictures.folding import Group
from adjoint.pictures.svg import Pictures, View, name_of, size_of


def of_boxes(found: Boxes, top: Group, title: str) -> tuple[str, str]:
    """The page of a graph, and the picture that it opens with."""
    pictures = Pictures(found.boxes)
    views: dict[int, View] = {}
    groups: dict[int, dict[str, Any]] = {}
    where: dict[int, int] = {}
    pending: list[tuple[Group, int | None]] = [(top, None)]
    while pending:
        group, above = pending.pop()
        views[group.number] = pictures.view(group)
        said = title if above is None else name_of(group, found.boxes[group.first : group.last])
        groups[group.number] = {"name": said, "above": above}
        for part in group.parts:
            if isinstance(part, Box):
                where[part.number] = group.number
            else:
                pending.append((part, group.number))
    limits = pictures.colours
    data = {
        "top": top.number,
        "groups": groups,
        "boxes": [{**_facts(box), "view": where[box.number]} for box in found.boxes],
        "colours": limits.names,
        "scales": {
            "gradient": [f"{x:.3g}" for x in limits.sizes or ()],
            "bytes": [size_of(x) for x in limits.kept or ()],
        },
    }
    kept = f"{len(found.boxes):,} boxes, {size_of(found.kept)} kept for backward"
    if any(box.kind == "input" for box in found.boxes):
        kept = f"{len(found.boxes):,} inputs and equations"
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in found.notes)
    drawn = "".join(f'<script type="text/plain" id="view{view.number}">{view.svg}</script>' for view in views.values())
    body = source("graph.html").replace("<!--notes-->", notes).replace("<!--views-->", drawn)
    body = body.replace("<!--title-->", html.escape(title)).replace("<!--about-->", kept)
    return page(title, body, "graph.js", data), views[top.number].svg


def _facts(box: Box) -> dict[str, Any]:
    """What the page tells of a box."""
    facts: dict[str, Any] = {
        "kind": box.kind,
        "name": box.name,
        "label": box.label,
        "shape": str(tuple(box.shape)),
        "dtype": box.dtype,
        "keeps": ", ".join(box.keeps),
        "bytes": size_of(box.bytes) if box.bytes else "",
        "line": str(box.line) if box.line is not None else "",
        "value": box.value,
        "gradient": box.gradient,
        "size": None if box.size is None else f"{box.size:.3g}",
        "parents": box.parents,
    }
    return {name: value for name, value in facts.items() if value not in ("", None, [])}


def page(title: str, body: str, script: str | None = None, data: Any = None) -> str:
    """A page, with a script and the data that it reads where there is one."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    run = (
        f'<script type="application/json" id="data">{text}</script><script>{source(script)}</script>' if script else ""
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{html.escape(title)}</title><style>{source("page.css")}'
        f"</style></head><body>{body}{run}</body></html>\n"
    )


@functools.cache
def source(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
