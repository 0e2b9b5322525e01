"""The curves of a history: which there are, on what scale, and drawn with characters or as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from adjoint.train.text import number

Points = list[tuple[float, float]]
Row = Mapping[str, Any]
_BESIDE = ("epoch", "step", "seconds", "loss", "lr", "valid_loss")  # columns of a history that are no metrics


class Series(NamedTuple):
    """A curve; a `noisy` one is drawn as it is, and as the mean of its neighbours."""

    name: str
    points: Points
    noisy: bool = False


class Chart(NamedTuple):
    """Curves over the steps of a run, or of whatever `along` says."""

    title: str
    series: list[Series]
    along: str = "step"
    linear: bool = False

    @property
    def log(self) -> bool:
        """Whether a logarithmic scale helps: all is above zero, and the largest is 20 times the smallest."""
        ys = [y for series in self.series for _, y in series.points]
        return not self.linear and bool(ys) and min(ys) > 0 and max(ys) > 20 * min(ys)


def charts(rows: Sequence[Row], steps: Mapping[str, Sequence[Any]]) -> list[Chart]:
    """Of a history: the loss, then a chart for each metric that is a number, then the rate if it changes."""
    loss = [
        Series("training", _finite(steps["step"], steps["loss"]), True),
        Series("validation", _column(rows, "valid_loss")),
    ]
    found = [Chart("loss", loss)]
    names = dict.fromkeys(name for row in rows for name in row if name not in _BESIDE)
    for name in dict.fromkeys(name.removeprefix("valid_") for name in names):
        parts = [Series("training", _column(rows, name)), Series("validation", _column(rows, f"valid_{name}"))]
        found.append(Chart(name, parts))
    rate = Chart("learning rate", [Series("", _column(rows, "lr"))], linear=True)
    if len({y for _, y in rate.series[0].points}) > 1:
        found.append(rate)
    kept = [chart._replace(series=[series for series in chart.series if series.points]) for chart in found]
    return [chart for chart in kept if chart.series]


def _column(rows: Sequence[Row], name: str) -> Points:
    present = [row for row in rows if name in row]
    return _finite([row.get("step") for row in present], [row[name] for row in present])


def _finite(xs: Sequence[Any], ys: Sequence[Any]) -> Points:
    pairs = zip(xs, ys, strict=True)
    return [(float(x), float(y)) for x, y in pairs if isinstance(y, (int, float)) and math.isfinite(y)]


def means(points: Points, parts: int) -> Points:
    """The mean of the points in each of so many equal parts of their range, where there are any."""
    low, high = points[0][0], points[-1][0]
    sums = [[0.0, 0.0, 0.0] for _ in range(parts)]
    for x, y in points:
        part = sums[min(int((x - low) / ((high - low) or 1) * parts), parts - 1)]
        for k, value in enumerate((x, y, 1.0)):
            part[k] += value
    return [(x / count, y / count) for x, y, count in sums if count]


# --- scales --------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """From values to 0 ... 1."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def of(cls, values: Sequence[float], log: bool = False, room: float = 0.0) -> Scale:
        """The scale that has all these values, with room beside them, a part of it; and where they are one."""
        low, high = min(values), max(values)
        if low == high:
            half = abs(low) / 2 or 1.0
            low, high = low - half, high + half
        if log:
            return cls(low * (low / high) ** room, high * (high / low) ** room, True)
        return cls(low - room * (high - low), high + room * (high - low))

    def __call__(self, x: float) -> float:
        if self.log:
            return math.log(x / self.low) / math.log(self.high / self.low)
        return (x - self.low) / (self.high - self.low)

    def ticks(self, about: int) -> list[float]:
        """Round numbers on it, about so many."""
        if not self.log:
            step = _round((self.high - self.low) / about)
            first = math.ceil(self.low / step - 1e-9)
            return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ([1, 2, 5], [1, 3], [1]):
            found = [d * 10.0**e for e in exponents for d in digits]
            found = [x for x in found if self.low <= x <= self.high]
            if len(found) <= about + 1:
                break
        return found[:: -(-len(found) // (about + 1)) or 1]

    def labels(self, about: int) -> list[tuple[float, str]]:
        """The ticks and what is written there."""
        ticks = self.ticks(about)
        return [(x, label(round(x, 12 - math.floor(math.log10(self.high - self.low))))) for x in ticks]


def _round(step: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= step * (1 - 1e-9))


def label(x: float, decimals: int = 6) -> str:
    """A number with no more decimals than so many."""
    if x and (abs(x) >= 1e6 or abs(x) < 1e-4):
        mantissa, exponent = f"{x:.{6}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    text = f"{x:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- with characters -----------------------------------------------------------------------------

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # Unicode's Braille patterns: columns of four dots


def braille(chart: Chart, width: int, height: int, end: float) -> list[list[tuple[str, int]]]:
    """Rows of characters up to a step, each with the number of the series that it belongs to, or -1.

    A character is two by four dots, of one series. In front and below are the axes with their labels.
    """
    lines = [means(s.points, width // 2) if s.noisy else s.points for s in chart.series]
    log = chart._replace(series=[Series("", line) for line in lines]).log
    across = Scale(0.0, end)
    up = Scale.of([y for line in lines for _, y in line], log)
    ticks = {round((1 - up(y)) * (height - 1)): text for y, text in up.labels(max(2, height // 3))}
    wide = max(map(len, ticks.values()), default=0)
    columns, rows = 2 * (width - wide - 2), 4 * height
    dots = [[0] * (columns // 2) for _ in range(height)]
    owner = [[-1] * (columns // 2) for _ in range(height)]
    for k, line in enumerate(lines):
        places = [(across(x) * (columns - 1), (1 - up(y)) * (rows - 1)) for x, y in line]
        for x, y in _between(places):
            if owner[y // 4][x // 2] != k:  # what comes later lies above
                dots[y // 4][x // 2], owner[y // 4][x // 2] = 0, k
            dots[y // 4][x // 2] |= _DOTS[x % 2][y % 4]
    found = []
    for row in range(height):
        head = f"{ticks.get(row, ''):>{wide}} {'┤' if row in ticks else '│'}"
        cells = zip(dots[row], owner[row], strict=True)
        found.append([(head, -1), *[(chr(0x2800 + mask) if mask else " ", k) for mask, k in cells]])
    return [
        *found,
        [(f"{'':>{wide}} └{'─' * (columns // 2)}", -1)],
        [(f"{'':>{wide}} 0{f'{label(end)} {chart.along}s':>{columns // 2}}", -1)],
    ]


def _between(places: Points) -> list[tuple[int, int]]:
    """The dots of the lines from place to place."""
    found = [(round(x), round(y)) for x, y in places[:1]]
    for (x0, y0), (x1, y1) in zip(places, places[1:], strict=False):
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        found += [(round(x0 + (x1 - x0) * k / steps), round(y0 + (y1 - y0) * k / steps)) for k in range(1, steps + 1)]
    return found


# --- as SVG --------------------------------------------------------------------------------------

COLOURS = ("#3b82f6", "#f59e0b")  # of training and validation, on white and on black
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 30, 30
_SMOOTH = 60  # points of a mean
_FONT = 'font-family="system-ui,sans-serif" font-size="11" fill="currentColor"'


def svg(chart: Chart, width: int = 460, height: int = 250) -> str:
    """The chart as an element of a page, in the colour of its text; what a point is says its title."""
    points = [point for series in chart.series for point in series.points]
    from_zero = [0.0] if chart.along == "step" else []
    across = Scale.of([*from_zero, *[x for x, _ in points]])
    up = Scale.of([y for _, y in points], chart.log, 0.0 if chart.along != "step" else 0.04)
    right, bottom = width - _RIGHT, height - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + across(x) * (right - _LEFT), bottom - up(y) * (bottom - _TOP)

    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="100%" role="img" aria-label="{html.escape(chart.title)}" {_FONT}>',
        _text(_LEFT, 16, chart.title + (" (logarithmic)" if up.log else ""), 'font-size="13" font-weight="600"'),
        f'<path d="M{_LEFT} {bottom}H{right}" stroke="currentColor" opacity=".4"/>',
        _text(right, height - 2, chart.along, 'text-anchor="end" opacity=".55"'),
    ]
    for y, said in up.labels(5):
        at = place(across.low, y)[1]
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="currentColor" opacity=".13"/>')
        parts.append(_text(_LEFT - 7, at + 4, said, 'text-anchor="end" opacity=".7"'))
    for x, said in across.labels(5):
        parts.append(_text(place(x, up.low)[0], bottom + 16, said, 'text-anchor="middle" opacity=".7"'))
    end: float = right
    coloured = list(zip(chart.series, COLOURS, strict=False))
    for series, colour in coloured[::-1]:
        parts.append(_text(end, 16, series.name, f'text-anchor="end" fill="{colour}" font-weight="600"'))
        end -= 8 + 7 * len(series.name)
    for series, colour in coloured:
        drawn = series.points
        if series.noisy and len(drawn) > _SMOOTH:
            parts.append(_path([place(*point) for point in drawn], f'stroke="{colour}" opacity=".28"'))
            drawn = means(drawn, _SMOOTH)
        parts.append(_path([place(*point) for point in drawn], f'stroke="{colour}" stroke-width="2"'))
        for point in drawn if len(drawn) <= _SMOOTH and not series.noisy else []:
            said = html.escape(f"{series.name} {chart.along} {number(point[0])}: {number(point[1])}".strip())
            x, y = place(*point)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"><title>{said}</title></circle>')
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, what: str, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(what)}</text>'


def _path(points: Points, more: str) -> str:
    return f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}" {more} stroke-linejoin="round" fill="none"/>'
