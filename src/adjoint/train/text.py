"""Numbers, times and sizes as people read them."""

from __future__ import annotations

import math
from typing import Any


def number(x: Any) -> str:
    """Four digits of a number.

    >>> [number(x) for x in (0.123456, 12345.678, 1234567, 1.5e-7, None, float("nan"))]
    ['0.1235', '12,346', '1,234,567', '1.5e-07', '', 'nan']
    """
    if x is None:
        return ""
    if isinstance(x, int):
        return f"{x:,}"
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e7 else f"{x:.4g}"


def duration(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> [duration(s) for s in (0.25, 59.6, 3723, 200_000, float("nan"))]
    ['0:00', '1:00', '1:02:03', '2 d 07:33:20', '?']
    """
    if not math.isfinite(seconds):
        return "?"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02}:{minute:02}:{second:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def size(count: float) -> str:
    """Bytes.

    >>> size(200 * 2**20), size(3.2e9)
    ('200 MiB', '2.98 GiB')
    """
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
