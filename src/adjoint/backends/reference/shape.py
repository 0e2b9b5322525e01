"""What moves elements and computes nothing, and what picks, places and sorts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line, Values, broadcast, flat, gather, places
from adjoint.backends.reference.scalars import Number

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


# --- structure ---


def _same_values(B: Reference, x: Values, **_: Any) -> Line:
    return x.values


def _permute_dims(B: Reference, x: Values, *, axes: tuple[int, ...]) -> Line:
    return gather(x, tuple(x.shape[i] for i in axes), lambda place: [place[axes.index(i)] for i in range(len(axes))])


def _flip(B: Reference, x: Values, *, axis: tuple[int, ...]) -> Line:
    return gather(x, x.shape, lambda place: [x.shape[i] - 1 - p if i in axis else p for i, p in enumerate(place)])


def _concat(B: Reference, *xs: Values, axis: int) -> Line:
    shape = (*xs[0].shape[:axis], sum(x.shape[axis] for x in xs), *xs[0].shape[axis + 1 :])
    out = []
    for place in places(shape):
        at, which = place[axis], 0
        while at >= xs[which].shape[axis]:
            at -= xs[which].shape[axis]
            which += 1
        out.append(xs[which].values[flat(xs[which].shape, (*place[:axis], at, *place[axis + 1 :]))])
    return out


def _pad(B: Reference, x: Values, *, widths: tuple[tuple[int, int], ...], value: Number) -> Line:
    out = []
    for place in places([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]):
        source = [i - before for i, (before, _) in zip(place, widths, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        out.append(x.values[flat(x.shape, source)] if inside else value)
    return out


def _triangle(keep: Callable[[int, int], bool]) -> Callable[..., Line]:
    """The elements whose column minus row is kept; zeros elsewhere."""

    def run(B: Reference, x: Values, *, k: int) -> Line:
        return [v if keep(p[-1] - p[-2], k) else 0 for v, p in zip(x.values, places(x.shape), strict=True)]

    return run


# --- indexing ---


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "reshape": _same_values,
    "expand_dims": _same_values,
    "squeeze": _same_values,
    "broadcast_to": lambda B, x, *, shape: broadcast(x, shape).values,
    "permute_dims": _permute_dims,
    "flip": _flip,
    "concat": _concat,
    "pad": _pad,
    "tril": _triangle(lambda diagonal, k: diagonal <= k),
    "triu": _triangle(lambda diagonal, k: diagonal >= k),
}
