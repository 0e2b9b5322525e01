"""Recurrent networks: all steps of a sequence."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, REAL, Shape, declare, same_dtype


def _lstm_shape(x: Shape, weight: Shape, h: Shape, c: Shape) -> Shape:
    lead = len(x) - 3  # leading axes, which are the same
    if lead < 0 or not (
        h == c == (*x[:lead], x[lead + 1], weight[-1]) and weight[:-1] == (*x[:lead], 4 * weight[-1]) and x[lead] > 0
        and x[-1] == 4 * weight[-1]
    ):  # fmt: skip
        raise errors.ShapeError(
            f"lstm: expected inputs of gates (..., steps, batch, 4 H), a weight (..., 4 H, H) and states "
            f"(..., batch, H); received {x}, {weight}, {h} and {c}"
        )
    return (*x[: lead + 1], 2, *h[lead:])


def _operands(g: Shape, *rest: Shape, **_: Any) -> list[Shape]:
    return list(rest[:4])


# The states (h, c) after each step of a long short-term memory, (..., steps, 2, batch, H). The gates are those of x,
# (..., steps, batch, 4 H), input, forget, cell and output beside each other, plus the product of h with the weight.
declare("lstm", CONTRACTION, "x weight h c", shape=_lstm_shape, dtype=same_dtype, accepts=REAL)
declare(
    "lstm_pullback",
    CONTRACTION,
    "g x weight h c y",
    results=4,
    shape=_operands,
    dtype=lambda *dtypes, **_: [same_dtype(*dtypes)] * 4,
    accepts=REAL,
)
