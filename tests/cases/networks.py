"""Cases of the primitives of neural networks: linear layers, windows, attention, recurrences, normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.primitives import window_shape
from cases.values import SHAPES, Case, distinct, real

# shape, kernel, stride, padding, dilation
_WINDOWS: list[tuple[Any, ...]] = [
    ((3,), (1,), (1,), ((0, 0),), (1,)),
    ((5,), (2,), (2,), ((0, 0),), (1,)),  # the last element is in no window
    ((5,), (2,), (2,), ((0, 1),), (1,)),
    ((2, 6), (3,), (1,), ((1, 1),), (2,)),
    ((2, 3, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((2, 4, 4), (3, 2), (1, 2), ((1, 1), (0, 0)), (1, 1)),
    ((1, 2, 3, 5), (1, 3), (1, 2), ((0, 0), (1, 2)), (1, 1)),
    ((3, 5), (1, 1), (2, 3), ((0, 0), (0, 0)), (1, 1)),
    ((2, 2, 3), (2, 1, 2), (1, 1, 1), ((0, 1), (0, 0), (1, 0)), (1, 1, 1)),
    ((0, 4), (2,), (1,), ((0, 0),), (1,)),
]


def _windows(name: str) -> list[Case]:
    cases = []
    for shape, kernel, stride, padding, dilation in _WINDOWS:
        how = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        out = window_shape(shape, **how)
        match name:
            case "window_sum":
                cases.append(Case((real(*shape),), how))
            case "window_spread":
                cases.append(Case((real(*out),), {**how, "size": shape[len(shape) - len(kernel) :]}))
            case "max_pool":
                cases.append(Case((distinct(*shape),), how))
            case _:
                cases.append(Case((real(*out), distinct(*shape)), how))
    return cases


# x, weight
_LINEAR: list[tuple[Any, ...]] = [
    ((3, 2), (4, 2)),
    ((2, 3, 2), (4, 2)),
    ((2, 1, 3, 2), (1, 2)),
    ((2, 0), (3, 0)),
    ((0, 2), (3, 2)),
]

# query, key, value, biases, causal
_ATTENTION: list[tuple[Any, ...]] = [
    ((3, 2), (4, 2), (4, 3), (), False),
    ((2, 3, 2), (2, 3, 2), (2, 3, 1), (), True),
    ((1, 2, 2, 3), (1, 2, 3, 3), (1, 2, 3, 2), ((1, 1, 2, 3),), False),
    ((2, 4, 2), (2, 2, 2), (2, 2, 2), ((2, 1, 2),), False),
    ((0, 2, 2), (0, 3, 2), (0, 3, 2), (), True),
]


def _attention(name: str) -> list[Case]:
    cases = []
    for q, k, v, biases, causal in _ATTENTION:
        out = (*q[:-1], v[-1])
        given = [real(*q), real(*k), real(*v)]
        if name == "attention_pullback":
            given = [real(*out), *given, real(*out)]
        how = {"scale": 0.7, "causal": causal}
        cases.append(Case((*given, *[real(*shape) for shape in biases]), how))
    return cases


# x, axes, scale and shift
_NORMALIZATIONS: list[tuple[Any, ...]] = [
    ((2, 3), (1,), (1, 3), (1, 3)),
    ((3, 2, 2), (0, 2), (1, 2, 1), (1, 2, 1)),
    ((2, 2, 2, 3), (2, 3), (1, 2, 2, 1), (1, 2, 2, 1)),
    ((2, 3, 2), (1, 2), (1, 3, 2), (1, 1, 1)),
    ((3,), (0,), (3,), (1,)),
    ((0, 3), (1,), (1, 3), (1, 3)),
]


def _normalizations(name: str) -> list[Case]:
    cases = []
    for x, axis, weight, bias in _NORMALIZATIONS:
        given = [distinct(*x), real(*weight), real(*bias)]
        if name == "normalize_pullback":
            given = [real(*x), *given]
        cases.append(Case(tuple(given), {"axis": axis, "epsilon": 1e-3}))
    return cases


# steps, batch, hidden size, and leading axes
_LSTMS: list[tuple[int, int, int, tuple[int, ...]]] = [(1, 2, 1, ()), (3, 2, 2, ()), (2, 0, 2, ()), (2, 1, 2, (2,))]


def _lstm(name: str) -> list[Case]:
    cases = []
    for steps, batch, size, lead in _LSTMS:
        states = (*lead, batch, size)
        given = [real(*lead, steps, batch, 4 * size), real(*lead, 4 * size, size), real(*states), real(*states)]
        if name == "lstm_pullback":
            whole = (*lead, steps, 2, batch, size)
            given = [real(*whole), *given, real(*whole)]
        cases.append(Case(tuple(given)))
    return cases


CASES: dict[str, list[Case]] = {
    "hardswish": [Case((np.asarray(4 * real(*shape)),)) for shape in SHAPES],
    "hinge": [Case((real(*shape),)) for shape in SHAPES],
    "softshrink": [Case((real(*shape),), {"bound": bound}) for shape in SHAPES for bound in (0.4, 0.0)],
    "elu": [
        Case((real(*shape),), {"alpha": alpha, "rate": rate})
        for shape in SHAPES
        for alpha, rate in ((1.0, 1.0), (1.7, 1.0), (0.7, 1 / 0.7), (-0.5, -2.0))
    ],
    "huber": [Case((real(*shape),), {"delta": delta}) for shape in SHAPES for delta in (1.0, 0.3)],
    "logistic_loss": [Case((real(*shape), real(*shape))) for shape in SHAPES] + [Case((real(2, 3), real(3)))],
    "hardtanh": [Case((real(*shape),), {"low": -0.6, "high": 0.9}) for shape in SHAPES],
    "leaky_relu": [Case((real(*shape),), {"slope": slope}) for shape in SHAPES for slope in (0.1, 0.0, 1.5, -1.0)],
    **{name: _windows(name) for name in ("max_pool", "max_pool_pullback", "window_sum", "window_spread")},
    **{name: _attention(name) for name in ("attention", "attention_pullback")},
    **{name: _normalizations(name) for name in ("normalize", "normalize_pullback")},
    **{name: _lstm(name) for name in ("lstm", "lstm_pullback")},
    "linear": [Case((real(*x), real(*weight), real(weight[0]))) for x, weight in _LINEAR],
}
