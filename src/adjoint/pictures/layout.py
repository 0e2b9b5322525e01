"""Where boxes and arrows are: Graphviz's layout of layers (dot), in this process.

E. R. Gansner, E. Koutsofios, S. C. North, K.-P. Vo, A technique for drawing directed graphs, IEEE Transactions on
Software Engineering 19 (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adjoint import errors
from adjoint.locks import lock

Point = tuple[float, float]
_INCH = 72.0  # Graphviz has sizes in inches and places in points
# `nslimit` ends the search for shorter arrows, which takes 10 seconds where 100 boxes in a row all read one other box
_SETTINGS = (
    "digraph { graph[rankdir=TB nodesep=0.2 ranksep=0.35 nslimit=2] "
    'node[shape=box fixedsize=true label=""] edge[dir=none]'
)
_one_at_a_time = lock()  # Graphviz is not for several threads


class Layout(NamedTuple):
    """The size of a drawing, the centres of its boxes, and its arrows: a start, and three points per Bezier curve."""

    width: float
    height: float
    centres: list[Point]
    curves: list[list[Point]]


def library() -> Any:
    """Graphviz, through pygraphviz, whose wheels bring it along."""
    try:
        import pygraphviz  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError as error:
        raise errors.MissingLibraryError("draw needs pygraphviz: pip install 'adjoint[draw]'") from error
    return pygraphviz


def layout(sizes: Sequence[Point], arrows: Sequence[tuple[int, int]]) -> Layout:
    """A layout from top to bottom of boxes of these widths and heights, with arrows between boxes of these numbers."""
    boxes = [f"{k}[width={width / _INCH:.4f} height={height / _INCH:.4f}]" for k, (width, height) in enumerate(sizes)]
    ends = [f"{a}->{b}" for a, b in arrows]
    graph = library().AGraph(string="\n".join([_SETTINGS, *boxes, *ends, "}"]))
    with _one_at_a_time:
        text = graph.draw(format="plain", prog="dot").decode()
    lines = [line.split() for line in text.splitlines()]
    width, height = (float(x) * _INCH for x in lines[0][2:4])

    def points(numbers: Sequence[str]) -> list[Point]:
        values = [float(x) * _INCH for x in numbers]  # from below
        return [(round(x, 1), round(height - y, 1)) for x, y in zip(values[::2], values[1::2], strict=True)]

    centres = {int(words[1]): points(words[2:4])[0] for words in lines if words[0] == "node"}
    curves = {(int(w[1]), int(w[2])): points(w[4 : 4 + 2 * int(w[3])]) for w in lines if w[0] == "edge"}
    return Layout(width, height, [centres[k] for k in range(len(sizes))], [curves[ends] for ends in arrows])
