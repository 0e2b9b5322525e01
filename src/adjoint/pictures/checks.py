"""The page of a report on derivatives: its numbers, and the errors by the step of the differences."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from adjoint.markup import table
from adjoint.pictures.pages import page
from adjoint.testing import Comparison, GradsReport

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 300, 62, 40
_ROUNDING = 1e-17  # errors below are drawn there: a logarithm has no place for 0
_COLOURS = ("#2f6fd0", "#b4540a", "#0f8a6d", "#8a4fbf", "#b8325c", "#6b7280")


def of_report(report: GradsReport) -> tuple[str, str]:
    """The page, and its picture as SVG."""
    drawn = picture(report.comparisons)
    notes = "".join([f'<p class="note">{html.escape(note)}</p>' for note in report.notes])
    said = (
        "Errors of differences along a random direction, by their step. Where the derivative is right they fall with "
        "the fourth power of the step, until rounding makes them rise. Where it is wrong they stay where they are."
    )
    rows = table(report.HEAD, [row.cells for row in report.comparisons])
    body = (
        f'<header><h1>{html.escape(report.title)}</h1><p class="about">at {html.escape(report.arguments)}</p>{notes}'
        f'</header><main class="rows" tabindex="0">{rows}<p>{said}</p>{drawn}</main>'
    )
    return page(report.title, body), drawn


def picture(rows: Sequence[Comparison]) -> str:
    """Lines of errors over steps, both logarithmic."""
    lines = [
        [(math.log10(h), math.log10(max(e, _ROUNDING))) for h, e in row.errors if math.isfinite(e)] for row in rows
    ]
    ys = [y for line in lines for _, y in line] or [-1.0]
    xs = [x for line in lines for x, _ in line] or [-7.0, -1.0]
    low, high = math.floor(min(ys)), max(math.ceil(max(ys)), math.floor(min(ys)) + 1)
    first, last = min(xs), max(xs)

    def across(x: float) -> float:
        return _LEFT + (x - first) / (last - first) * (_WIDTH - _LEFT - 12)

    def down(y: float) -> float:
        return 12 + (high - y) / (high - low) * (_HEIGHT - 12 - _BOTTOM)

    parts = []
    for k in range(low, high + 1, max(1, (high - low) // 6)):
        parts.append(f'<path d="M{_LEFT} {down(k):.1f}H{_WIDTH - 12}" stroke="currentColor" opacity=".15"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{down(k) + 4:.1f}" text-anchor="end">1e{k}</text>')
    for k in range(math.ceil(first), math.floor(last) + 1):
        parts.append(f'<text x="{across(k):.1f}" y="{_HEIGHT - 22}" text-anchor="middle">1e{k}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">step</text>')
    height = _HEIGHT
    for n, (row, line) in enumerate(zip(rows, lines, strict=True)):
        colour, dashes = _COLOURS[n % len(_COLOURS)], "" if row.agrees else ' stroke-dasharray="6 4"'
        wide = 5 - 3 * (n % 2)  # the next line often lies on this one
        points = " ".join([f"{across(x):.1f},{down(y):.1f}" for x, y in line])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{wide}"{dashes}/>')
        order, way, *_ = row.cells
        said = f"order {order}, {way}{'' if row.agrees else ': wrong'}"
        height = _HEIGHT + 18 * (n + 1)
        parts.append(f'<path d="M{_LEFT} {height - 9}h26" stroke="{colour}" stroke-width="{wide}"{dashes}/>')
        parts.append(f'<text x="{_LEFT + 34}" y="{height - 5}">{said}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'aria-label="errors by the step of differences" font-family="system-ui,sans-serif" font-size="12" '
        f'fill="currentColor" style="max-width:100%;height:auto">{"".join(parts)}</svg>'
    )
